"""Find new alleles in annotated reads, and write them and the germline sets extended by them.

Candidates are haplotypes of clonotypes; whether they only look like new alleles is judged here.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.alphabets import translate
from plait.formats.atomic import check_different, check_not_input
from plait.formats.rearrangements import open_rearrangements
from plait.formats.tables import facts_of, open_table
from plait.run.executor import Progress
from plait.types import Tabular
from plait.vdj.alleles.evidence import MOST_CLONOTYPES, AlleleEvidence
from plait.vdj.alleles.sites import (
    BASES,
    NO_BASE,
    AlleleGroup,
    AlleleLimits,
    ClonotypeBases,
    SegmentAlleles,
    Sites,
    clonotype_bases,
    count_bases,
    find_sites,
)
from plait.vdj.calls import MEANINGS
from plait.vdj.germline import Allele, GermlineSet, write_fasta_trio
from plait.vdj.germline.airr_json import airr_text
from plait.vdj.germline.files import write_texts

#: Fewest clonotypes that link a place to the rest of a haplotype.
_LINKING = 3
#: Smallest share of the clonotypes of a haplotype that splits it in two.
_SPLITTING = 0.1
#: Most haplotypes that are carried on at a time, and most times that new ones are begun. An individual has
#: few of a gene; only clonotypes that are mutated everywhere would make more.
_MOST = 24
_MOST_BLOCKS = 8


class Assigned(NamedTuple):
    """Which haplotypes clonotypes fit.

    `member`, int64 (n,): the one haplotype that a clonotype fits, -1 where none or several. Of each
    haplotype, (h,): `alone`, clonotypes that fit it and no other; `fitting`, all that fit; `expected`,
    float64, with those that fit several shared out in proportion to `alone`.
    """

    member: NDArray[np.int64]
    alone: NDArray[np.int64]
    fitting: NDArray[np.int64]
    expected: NDArray[np.float64]


def haplotypes(values: NDArray[np.int8], plain: NDArray[np.int8]) -> NDArray[np.int8]:
    """Find combinations of bases that occur together.

    From the place that most clonotypes reach, a haplotype is carried on place by place, by the clonotypes
    that fit no other one so far, and split where they disagree. Where too few reach, its base is not known.
    Changes that are in no haplotype then start others.

    `values`, int8 (n, s), are the bases of the clonotypes at the places, in order, `NO_BASE` where not known;
    `plain`, (s,), those of the parent allele. Returns int8 (h, s), likewise, the parent itself among them
    where it occurs.
    """
    found = np.zeros((0, plain.size), np.int8)
    tried = np.zeros(plain.size, np.bool_)
    for _ in range(_MOST_BLOCKS):
        missing = np.array([_has_new(values[:, s], found[:, s], plain[s]) for s in range(plain.size)], bool)
        open_places = np.flatnonzero(missing & ~tried)
        if not open_places.size or len(found) >= _MOST:
            break
        reach = (values[:, open_places] != NO_BASE).sum(axis=0)
        start = int(open_places[np.argmax(reach)])
        tried[start] = True
        found = np.concatenate([found, _block(values, start)])
    return np.asarray(np.unique(found, axis=0), np.int8)


def assign(values: NDArray[np.int8], found: NDArray[np.int8]) -> Assigned:
    """Tell which clonotypes, `values` as in `haplotypes`, belong to which haplotype."""
    unknown = values == NO_BASE
    fits = np.zeros((values.shape[0], len(found)), np.bool_)
    for k, own in enumerate(found):
        same = (values == own) & ~unknown
        fits[:, k] = (same | unknown | (own == NO_BASE)).all(axis=1) & same.any(axis=1)
    one = fits.sum(axis=1) == 1
    member = np.where(one, fits.argmax(axis=1) if len(found) else -1, -1).astype(np.int64)
    alone = np.bincount(member[one], minlength=len(found))
    weights = np.where(fits, alone, 0.0)
    shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1.0)
    return Assigned(member, alone, fits.sum(axis=0), shares.sum(axis=0))


def _has_new(seen: NDArray[np.int8], found: NDArray[np.int8], plain: np.int8) -> bool:
    """Whether a change at a place occurs often enough and is in no haplotype."""
    bases = np.flatnonzero(np.bincount(seen[seen != NO_BASE], minlength=NO_BASE) >= _LINKING)
    return bool(set(bases.tolist()) - {int(plain)} - set(found.tolist()))


def _block(values: NDArray[np.int8], start: int) -> NDArray[np.int8]:
    places = values.shape[1]
    block = np.full((1, places), NO_BASE, np.int8)
    first = last = start
    block = _split(values, block, start, np.zeros(values.shape[0], np.int64))
    reach = (values != NO_BASE).sum(axis=0)
    while first > 0 or last < places - 1:
        left = last == places - 1 or (first > 0 and reach[first - 1] >= reach[last + 1])
        place = first - 1 if left else last + 1
        first, last = min(first, place), max(last, place)
        block = _split(values, block, place, assign(values, block).member)
    return block


def _split(
    values: NDArray[np.int8], block: NDArray[np.int8], place: int, member: NDArray[np.int64]
) -> NDArray[np.int8]:
    """Carry haplotypes on to another place."""
    carried: list[tuple[int, NDArray[np.int8]]] = []
    for k, own in enumerate(block):
        seen = values[member == k, place]
        counts = np.bincount(seen[seen != NO_BASE], minlength=NO_BASE)
        enough = np.flatnonzero(counts >= max(_LINKING, _SPLITTING * counts.sum()))
        for base in enough if enough.size else (NO_BASE,):
            longer = own.copy()
            longer[place] = base
            carried.append((int(counts[base]) if enough.size else 0, longer))
    # Stable: among equals, those of the earlier haplotypes.
    carried.sort(key=lambda pair: -pair[0])
    kept = [longer for _, longer in carried[:_MOST]]
    return np.array(kept, np.int8).reshape(-1, values.shape[1])


#: Fewest carriers that show a base for it to be taken as known, and the smallest share of those that do.
_KNOWN_BY = 3
_AGREEING = 2 / 3
#: Places that nearly as many clonotypes reach as any other do not keep haplotypes from being told apart.
_REACHED = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Carriers:
    """The clonotypes that carry a candidate, and those they are compared with.

    `partner`, `family`, `forward` and `reverse`, int64 (c,), are as in
    `plait.vdj.alleles.sites.ClonotypeBases`. `expected` counts the likely carriers among those that fit
    another candidate, too; `exact`, (c,): differs nowhere from the candidate.

    `gene` counts the clonotypes of the gene that reach a changed place, `gene_exact` those of them that
    differ nowhere from their nearest known allele; `gene_forward` and `gene_reverse` are reads of all its
    clonotypes by strand. `sampled`: the gene has more clonotypes than were looked at.
    """

    partner: NDArray[np.int64]
    family: NDArray[np.int64]
    forward: NDArray[np.int64]
    reverse: NDArray[np.int64]
    expected: float
    exact: NDArray[np.bool_]
    gene: int
    gene_exact: int
    gene_forward: int
    gene_reverse: int
    sampled: bool


@dataclass(frozen=True, eq=False)
class Candidate:
    """A possible new allele.

    `parent` is the index of the nearest known allele. `codes` are its bases on the axis of all alleles of the
    segment, `covered` where carriers show them (elsewhere they are those of the parent); shape (width,). The
    p- and q-value are those of the least certain of its changes.
    """

    segment: SegmentAlleles
    parent: int
    codes: NDArray[np.int8]
    covered: NDArray[np.bool_]
    carriers: Carriers
    p_value: float
    q_value: float

    @property
    def clonotypes(self) -> int:
        """Independent clonotypes that carry it."""
        return int(self.carriers.partner.size)

    @property
    def share(self) -> float:
        """Share of the gene's clonotypes that reach a changed place."""
        return min(self.carriers.expected / max(self.carriers.gene, 1), 1.0)

    @cached_property
    def changed(self) -> NDArray[np.int64]:
        """Columns in which it differs from its parent."""
        own = self.segment.axis[0][self.parent]
        return np.flatnonzero((self.codes != own) & (own != NO_BASE) & self.covered)

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """Its changes as ``G123A``, with 1-based positions in the parent."""
        sequence, offset = self.segment.alleles[self.parent].sequence, int(self.segment.axis[1][self.parent])
        return tuple(
            f"{sequence[c - offset]}{c - offset + 1}{BASES[self.codes[c]]}" for c in self.changed.tolist()
        )

    @cached_property
    def sequence(self) -> str:
        """The parent with the changes."""
        letters = list(self.segment.alleles[self.parent].sequence)
        for column in self.changed.tolist():
            letters[column - int(self.segment.axis[1][self.parent])] = BASES[self.codes[column]]
        return "".join(letters)

    @cached_property
    def covered_ranges(self) -> tuple[tuple[int, int], ...]:
        """Parts of the parent, 0-based and half-open, in which the bases are known from carriers."""
        inside = np.concatenate([[False], self.covered, [False]]).astype(np.int8)
        edges = np.flatnonzero(np.diff(inside)) - int(self.segment.axis[1][self.parent])
        return tuple((int(a), int(b)) for a, b in edges.reshape(-1, 2))


def group_candidates(
    segment: SegmentAlleles, clonotypes: ClonotypeBases, sites: Sites, number: int, least: int
) -> list[Candidate]:
    """The candidates, each of at least `least` clonotypes, of group `number` of the alleles.

    `clonotypes` are the independent ones of the group, `sites` the changes of all groups.
    """
    found = []
    here = np.flatnonzero(sites.group == number)
    for allele in np.unique(sites.allele[here]).tolist():
        own = here[sites.allele[here] == allele]
        rows = np.flatnonzero(clonotypes.parent == allele)
        phased = _phased(clonotypes, allele, rows, sites, own, least)
        for k, kind in enumerate(phased.kinds):
            new = (kind != phased.plain) & (kind != NO_BASE)
            shown = phased.values[:, new] == kind[new]
            chosen = rows[(phased.assigned.member == k) & shown.any(axis=1)]
            place = np.searchsorted(phased.columns, sites.column[phased.sites])
            tested = phased.sites[sites.base[phased.sites] == kind[place]]
            if new.any() and chosen.size and tested.size:
                expected = float(phased.assigned.expected[k])
                found.append(_candidate(segment, clonotypes, allele, chosen, sites, tested, expected))
    return [candidate for candidate in found if candidate.changed.size]


class _Phased(NamedTuple):
    """Haplotypes of one allele: columns and bases looked at, the changes kept, and who has them."""

    columns: NDArray[np.int64]
    plain: NDArray[np.int8]
    values: NDArray[np.int8]
    sites: NDArray[np.int64]
    kinds: NDArray[np.int8]
    assigned: Assigned


def _phased(
    clonotypes: ClonotypeBases,
    allele: int,
    rows: NDArray[np.int64],
    sites: Sites,
    own: NDArray[np.int64],
    least: int,
) -> _Phased:
    """Find haplotypes; a place that too few reach to tell two of them apart is left out."""
    while True:
        columns = np.unique(sites.column[own])
        plain = clonotypes.group.codes[allele, columns]
        seen = clonotypes.bases[np.ix_(rows, columns)]
        allowed = np.zeros((columns.size, NO_BASE + 1), np.bool_)
        allowed[np.arange(columns.size), plain] = True
        allowed[np.searchsorted(columns, sites.column[own]), sites.base[own]] = True
        values = np.where(allowed[np.arange(columns.size), seen], seen, NO_BASE).astype(np.int8)
        kinds = haplotypes(values, plain)
        assigned = assign(values, kinds)
        changed = ((kinds != plain) & (kinds != NO_BASE)).any(axis=1)
        thin = changed & (assigned.alone < least) & (assigned.fitting >= least)
        reach = (values != NO_BASE).sum(axis=0)
        far = np.argsort(reach, kind="stable")[: max(1, columns.size // 8)]
        if columns.size == 1 or not thin.any() or reach[far[0]] > _REACHED * reach.max():
            return _Phased(columns, plain, values, own, kinds, assigned)
        own = own[~np.isin(sites.column[own], columns[far])]


def _candidate(
    segment: SegmentAlleles,
    clonotypes: ClonotypeBases,
    allele: int,
    chosen: NDArray[np.int64],
    sites: Sites,
    tested: NDArray[np.int64],
    expected: float,
) -> Candidate:
    group = clonotypes.group
    own = group.codes[allele]
    bases = clonotypes.bases[chosen]
    counts = np.array([(bases == base).sum(axis=0) for base in range(NO_BASE)])
    most, total = counts.max(axis=0), counts.sum(axis=0)
    covered = (most >= _KNOWN_BY) & (most > _AGREEING * total) & (own != NO_BASE)
    codes = np.where(covered, counts.argmax(axis=0), own).astype(np.int8)
    changed = np.flatnonzero(codes != own)
    reaching = clonotypes.known[:, changed].any(axis=1)
    exact = ~clonotypes.differing(group.codes[clonotypes.parent]).any(axis=1)
    carriers = Carriers(
        clonotypes.partner[chosen],
        clonotypes.family[chosen],
        clonotypes.forward[chosen],
        clonotypes.reverse[chosen],
        expected,
        ~((bases != codes) & (bases != NO_BASE) & (codes != NO_BASE)).any(axis=1),
        int(reaching.sum()),
        int((reaching & exact).sum()),
        int(clonotypes.forward.sum()),
        int(clonotypes.reverse.sum()),
        not clonotypes.whole,
    )
    shift = _shift(segment, group)
    width = segment.axis[0].shape[1]
    wide, wide_covered = np.full(width, NO_BASE, np.int8), np.zeros(width, np.bool_)
    wide[shift : shift + group.width] = codes
    wide_covered[shift : shift + group.width] = covered
    p, q = float(sites.p_value[tested].max()), float(sites.q_value[tested].max())
    return Candidate(segment, int(group.alleles[allele]), wide, wide_covered, carriers, p, q)


def _shift(segment: SegmentAlleles, group: AlleleGroup) -> int:
    """Column of the segment's axis at which the axis of a group begins."""
    return int(segment.axis[1][group.alleles[0]] - group.offset[0])


def merge_equal(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates of one segment of which none is another one seen on a shorter stretch.

    Reads that are too short to tell two known alleles apart make a candidate of the one as well as of the
    other. The evidence of the shorter is added to that of the longer.
    """
    order = sorted(
        candidates,
        key=lambda c: (-int(c.covered.sum()), -c.clonotypes, c.parent, c.changes),
    )
    kept: list[Candidate] = []
    for candidate in order:
        same = next((k for k, longer in enumerate(kept) if _within(candidate, longer)), None)
        if same is None:
            kept.append(candidate)
        else:
            kept[same] = replace(kept[same], carriers=_joined(kept[same], candidate))
    return kept


def _within(shorter: Candidate, longer: Candidate) -> bool:
    at = shorter.covered
    return bool((shorter.codes[at] == longer.codes[at]).all() and longer.covered[shorter.changed].all())


def _joined(longer: Candidate, shorter: Candidate) -> Carriers:
    a, b = longer.carriers, shorter.carriers
    same_group = longer.segment.group_of[longer.parent] == longer.segment.group_of[shorter.parent]
    together = max if same_group else operator.add
    return Carriers(
        np.concatenate([a.partner, b.partner]),
        np.concatenate([a.family, b.family]),
        np.concatenate([a.forward, b.forward]),
        np.concatenate([a.reverse, b.reverse]),
        a.expected + b.expected,
        np.concatenate([a.exact, b.exact]),
        together(a.gene, b.gene),
        together(a.gene_exact, b.gene_exact),
        a.gene_forward if same_group else a.gene_forward + b.gene_forward,
        a.gene_reverse if same_group else a.gene_reverse + b.gene_reverse,
        a.sampled or b.sampled,
    )


#: A hybrid is at most this share of the rarer of its two halves.
_HYBRID_SHARE = 0.5
#: Carriers that differ nowhere else, as a share of what is expected of a new allele, are at least this.
_EXACT_SHARE = 0.5
#: With a smaller share of clonotypes that differ nowhere from an allele, all are taken to be mutated.
_FEWEST_EXACT = 0.05
#: Smaller probabilities are taken as signs of an artefact.
_UNLIKELY_STRAND = 0.001
#: Largest share of one family of junctions.
_FAMILY_SHARE = 0.5
#: More changes than both are not those of an allele.
_MOST_CHANGES = 8
_MOST_CHANGED = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A candidate and what speaks against it, as `MEANINGS` has it; nothing for a new allele."""

    candidate: Candidate
    reasons: tuple[str, ...]


def enough(candidate: Candidate, limits: AlleleLimits) -> bool:
    """Whether a candidate has the clonotypes and the share of its gene that are asked for."""
    return candidate.clonotypes >= limits.min_clonotypes and candidate.share >= limits.min_share


def judge(
    candidates: Sequence[Candidate],
    known: NDArray[np.int64],
    *,
    exact_share: float,
    partners: int,
    limits: AlleleLimits,
) -> list[Judged]:
    """Judge candidates of one segment, the most frequent first, so that hybrids of new alleles are seen too.

    `known`: for every allele of the segment, the clonotypes that differ nowhere from it. `exact_share`: share
    of all clonotypes that differ nowhere from their allele, known or new. `partners`: genes of the other
    segment in the data.
    """
    order = sorted(candidates, key=lambda c: (-c.clonotypes, c.parent, c.changes))
    judged: list[Judged] = []
    if not order:
        return judged
    segment = order[0].segment
    codes = segment.axis[0]
    counts = known.astype(np.int64)
    for candidate in order:
        reasons = _origin(candidate, codes, counts, len(segment.alleles))
        reasons += _evidence(candidate, exact_share, partners, limits)
        judged.append(Judged(candidate, tuple(r for r in MEANINGS["allele_artefacts"] if r in reasons)))
        if not reasons:
            codes = np.concatenate([codes, candidate.codes[None]])
            counts = np.append(counts, candidate.carriers.exact.sum())
    return judged


def _origin(
    candidate: Candidate, codes: NDArray[np.int8], counts: NDArray[np.int64], known: int
) -> list[str]:
    """Whether other alleles explain the sequence; the first `known` of them are of the germline set."""
    at = candidate.covered
    same = codes[:, at] == candidate.codes[at]
    size = same.shape[1]
    left = np.where(same.all(axis=1), size, (~same).argmax(axis=1))
    right = np.where(same.all(axis=1), size, (~same[:, ::-1]).argmax(axis=1))
    if (left[:known] == size).any():
        return ["known_allele"]
    frequent = _HYBRID_SHARE * counts >= max(int(candidate.carriers.exact.sum()), 1)
    left, right = left[frequent], right[frequent]
    if left.size and (left[:, None] + right >= size).any():
        return ["hybrid"]
    return []


def _evidence(candidate: Candidate, exact_share: float, partners: int, limits: AlleleLimits) -> list[str]:
    carriers = candidate.carriers
    n, reasons = candidate.clonotypes, []
    if _mutated(candidate, exact_share):
        reasons.append("hypermutation")
    forward, reverse = int((carriers.forward > 0).sum()), int((carriers.reverse > 0).sum())
    share = carriers.gene_reverse / max(carriers.gene_forward + carriers.gene_reverse, 1)
    if (reverse == 0 and (1 - share) ** n < _UNLIKELY_STRAND) or (
        forward == 0 and share**n < _UNLIKELY_STRAND
    ):
        reasons.append("one_strand")
    if np.unique(carriers.partner).size < min(limits.min_partners, partners):
        reasons.append("few_partners")
    if np.unique(carriers.family, return_counts=True)[1].max(initial=0) > _FAMILY_SHARE * n:
        reasons.append("one_family")
    changes = candidate.changed.size
    if changes > _MOST_CHANGES and changes > _MOST_CHANGED * candidate.covered.sum():
        reasons.append("distant")
    return reasons


def _mutated(candidate: Candidate, exact_share: float) -> bool:
    """Whether its carriers differ elsewhere, too, more often than others do.

    Mutated clonotypes share a hot spot without being free of other changes; those with a new allele are so as
    often as any other, among the clonotypes of the gene and among all. Where nearly all clonotypes are
    mutated the two cannot be told apart.
    """
    carriers, n = candidate.carriers, candidate.clonotypes
    exact = int(carriers.exact.sum())
    of_exact = exact / max(exact + carriers.gene_exact, 1)
    return (
        exact_share < _FEWEST_EXACT
        or exact < _EXACT_SHARE * exact_share * n
        or of_exact < _EXACT_SHARE * n / max(carriers.gene, 1)
    )


_Path = str | os.PathLike[str]
_Source: TypeAlias = pa.Table | pa.RecordBatch | _Path | Sequence[_Path]

_BLOCK_ROWS = 16384
#: Columns of a table of candidates.
CANDIDATE_SCHEMA = pa.schema(
    [
        *(
            (name, pa.string())
            for name in ("allele", "gene", "segment", "parent", "changes", "status", "reasons")
        ),
        *((name, pa.int64()) for name in ("clonotypes", "exact_clonotypes", "gene_clonotypes")),
        ("share", pa.float64()),
        ("sampled", pa.bool_()),
        *((name, pa.int64()) for name in ("partner_genes", "reads", "forward_reads", "reverse_reads")),
        *((name, pa.string()) for name in ("covered", "also_parents")),
        *((name, pa.float64()) for name in ("p_value", "q_value")),
        ("sequence", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NewAlleles(Tabular):
    """What was found; `to_arrow` gives `candidates`.

    Attributes
    ----------
    candidates
        One row per candidate, the V alleles first, then by gene, those that are new alleles (``status``
        ``candidate``) before those that look like artefacts (``likely_artefact``), the most frequent first.
        The columns are explained in the page on new alleles of the documentation.
    germline
        The set that the reads were called with.
    rows
        Rows read.
    left_out
        Rows that are no evidence, by reason; ``v_`` and ``j_`` reasons are those of one segment alone.
    clonotypes
        Independent clonotypes looked at, by segment.
    satellites
        Clonotypes left out since their junctions are nearly those of others with more reads, by segment.
    error_rate
        Share of the clonotypes that show one given wrong base at a place, by segment.
    """

    candidates: pa.Table
    germline: GermlineSet
    rows: int
    left_out: Mapping[str, int]
    clonotypes: Mapping[str, int]
    satellites: Mapping[str, int]
    error_rate: Mapping[str, float]

    def _table(self, rows: int | None) -> pa.Table:
        return self.candidates.slice(0, rows)

    @property
    def extended(self) -> GermlineSet:
        """The germline set with the new alleles, those of status ``candidate``, beside their parents."""
        return extended_germline(self.germline, self.candidates)


def find_new_alleles(
    source: _Source,
    germline: GermlineSet,
    *,
    limits: AlleleLimits | None = None,
    most_clonotypes: int = MOST_CLONOTYPES,
    progress: Callable[[Progress], None] | None = None,
) -> NewAlleles:
    """Find V and J alleles that a germline set lacks, in annotated reads of one individual.

    Parameters
    ----------
    source
        Arrow rows, or one or more AIRR Rearrangement files with the sequences of the reads, as
        ``plait vdj annotate`` writes them.
    germline
        The set that the reads were called with.
    limits
        What a new allele needs.
    most_clonotypes
        Most clonotypes of a gene that are looked at.
    progress
        Called with how far the files are read.

    Returns
    -------
    NewAlleles
        The candidates, whatever the order of the rows.

    Raises
    ------
    FormatError
        If a file is not what it should be.
    InvalidInput
        If `most_clonotypes` is less than 1.
    """
    evidence = AlleleEvidence(germline, most_clonotypes=most_clonotypes)
    if isinstance(source, pa.Table | pa.RecordBatch):
        for batch in source.to_batches(_BLOCK_ROWS) if isinstance(source, pa.Table) else [source]:
            evidence.add(batch)
    else:
        with open_rearrangements(source, block_rows=_BLOCK_ROWS) as reader:
            name = ", ".join(path for path, _, _ in reader.identities)
            for batch in reader:
                evidence.add(batch, source=name)
                if progress is not None:
                    progress(Progress(evidence.rows, reader.bytes_read(), reader.total_bytes))
    return new_alleles_of(evidence, limits=limits)


def new_alleles_of(evidence: AlleleEvidence, *, limits: AlleleLimits | None = None) -> NewAlleles:
    """Candidates for new alleles from collected evidence."""
    asked = limits or AlleleLimits()
    judged, facts = [], {}
    for name in ("V", "J"):
        found, facts[name] = _of_segment(evidence, name, asked)
        judged += found
    return NewAlleles(
        candidates=_table(judged),
        germline=evidence.germline,
        rows=evidence.rows,
        left_out=evidence.left_out,
        clonotypes={name: clonotypes for name, (clonotypes, _, _) in facts.items()},
        satellites={name: satellites for name, (_, satellites, _) in facts.items()},
        error_rate={name: error_rate for name, (_, _, error_rate) in facts.items()},
    )


def _of_segment(
    evidence: AlleleEvidence, name: str, limits: AlleleLimits
) -> tuple[list[Judged], tuple[int, int, float]]:
    """Candidates; and clonotypes, satellites and the rate of errors."""
    segment, sample = evidence.segments[name], evidence.samples[name]
    sample.merge()
    counts, partners, satellites = [], set[int](), 0
    for number, group in enumerate(segment.groups):
        clonotypes = clonotype_bases(group, sample.group(number))
        counts.append(count_bases(clonotypes))
        partners |= set(clonotypes.partner.tolist())
        satellites += clonotypes.satellites
    sites = find_sites(counts, limits)
    found: list[Candidate] = []
    for number in np.unique(sites.group).tolist():
        clonotypes = clonotype_bases(segment.groups[number], sample.group(number))
        found += group_candidates(segment, clonotypes, sites, number, limits.min_clonotypes)
    known = np.zeros(len(segment.alleles), np.int64)
    for group, told in zip(segment.groups, counts, strict=True):
        known[group.alleles] = told.exact
    candidates = [c for c in merge_equal(found) if enough(c, limits)]
    exact = int(known.sum()) + sum(int(c.carriers.exact.sum()) for c in candidates)
    total = sum(int(told.clonotypes.sum()) for told in counts)
    judged = judge(
        candidates, known, exact_share=exact / max(total, 1), partners=len(partners), limits=limits
    )
    return judged, (total, satellites, sites.error_rate)


def _table(judged: Sequence[Judged]) -> pa.Table:
    rows = sorted(
        judged,
        key=lambda j: (
            j.candidate.segment.segment == "J",
            j.candidate.segment.group_of[j.candidate.parent],
            bool(j.reasons),
            -j.candidate.clonotypes,
            j.candidate.changes,
        ),
    )
    return pa.Table.from_pylist([_row(j) for j in rows], schema=CANDIDATE_SCHEMA)


def _row(judged: Judged) -> dict[str, object]:
    candidate, carriers = judged.candidate, judged.candidate.carriers
    parent = candidate.segment.alleles[candidate.parent]
    forward, reverse = int(carriers.forward.sum()), int(carriers.reverse.sum())
    also = [candidate.segment.alleles[k].name for k in _also_parents(candidate)]
    return {
        "allele": "_".join([parent.name, *candidate.changes]),
        "gene": parent.gene,
        "segment": parent.segment,
        "parent": parent.name,
        "changes": ",".join(candidate.changes),
        "status": "likely_artefact" if judged.reasons else "candidate",
        "reasons": ",".join(judged.reasons),
        "clonotypes": candidate.clonotypes,
        "exact_clonotypes": int(carriers.exact.sum()),
        "gene_clonotypes": carriers.gene,
        "share": candidate.share,
        "sampled": carriers.sampled,
        "partner_genes": int(np.unique(carriers.partner).size),
        "reads": forward + reverse,
        "forward_reads": forward,
        "reverse_reads": reverse,
        "covered": ",".join(f"{a + 1}-{b}" for a, b in candidate.covered_ranges),
        "also_parents": ",".join(also),
        "p_value": candidate.p_value,
        "q_value": candidate.q_value,
        "sequence": candidate.sequence,
    }


def _also_parents(candidate: Candidate) -> NDArray[np.int64]:
    """Other alleles that it comes as near to, where it is covered."""
    codes = candidate.segment.axis[0]
    far = (codes[:, candidate.covered] != candidate.codes[candidate.covered]).sum(axis=1)
    near = np.flatnonzero(far == far[candidate.parent])
    return np.asarray(near[near != candidate.parent])


def extended_germline(germline: GermlineSet, candidates: pa.Table) -> GermlineSet:
    """A germline set with the candidates of status ``candidate`` in it, each behind the alleles of its gene.

    Every new allele gets a note. Its anchor is that of its parent, as only bases were exchanged. A V with a
    stop codon in its frame is a pseudogene (P), whatever its parent is.
    """
    rows = [row for row in candidates.to_pylist() if row["status"] == "candidate"]
    if not rows:
        return germline
    notes = [
        f"{row['allele']} is inferred from {row['clonotypes']} clonotypes, known at {row['covered']}"
        f" and elsewhere taken to be {row['parent']}"
        for row in rows
    ]
    return replace(
        germline,
        name=f"{germline.name}_extended",
        source=f"{germline.source}; {len(rows)} inferred by plait vdj alleles",
        v=_with_new(germline.v, [row for row in rows if row["segment"] == "V"]),
        j=_with_new(germline.j, [row for row in rows if row["segment"] == "J"]),
        notes=(*germline.notes, *notes),
    )


def _with_new(alleles: tuple[Allele, ...], rows: Iterable[Mapping[str, str]]) -> tuple[Allele, ...]:
    found = list(alleles)
    for row in rows:
        parent = next(a for a in alleles if a.name == row["parent"])
        stops = parent.segment == "V" and "*" in translate(row["sequence"], (parent.anchor or 0) % 3)
        last = max(k for k, a in enumerate(found) if a.gene == parent.gene)
        new = replace(
            parent,
            name=row["allele"],
            sequence=row["sequence"],
            functionality="P" if stops else parent.functionality,
            aliases=(),
            source="plait vdj alleles",
        )
        found.insert(last + 1, new)
    return tuple(found)


def find_in_files(
    inputs: Sequence[_Path],
    output: _Path,
    germline: GermlineSet,
    *,
    extended: _Path | None = None,
    limits: AlleleLimits | None = None,
    most_clonotypes: int = MOST_CLONOTYPES,
    progress: Callable[[Progress], None] | None = None,
) -> NewAlleles:
    """Find new alleles in annotated reads and write them, as `find_new_alleles`.

    `output` is ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``; for `extended` see `write_extended`.
    InvalidInput if an output cannot be written, or is an input; FormatError if a file is not what it should
    be.
    """
    asked = limits or AlleleLimits()
    if extended is not None:
        check_not_input(extended, inputs)
        check_different(output, extended)
        _extended_texts(germline, extended)
    facts: dict[str, object] = {"germline": {"name": germline.name, "digest": germline.digest}}
    facts |= {"limits": asdict(asked) | {"most_clonotypes": most_clonotypes}}
    metadata = facts_of("new_alleles", inputs, **facts)
    with open_table(output, CANDIDATE_SCHEMA, metadata=metadata, inputs=inputs) as writer:
        found = find_new_alleles(
            list(inputs), germline, limits=asked, most_clonotypes=most_clonotypes, progress=progress
        )
        writer.write(found.candidates)
        if extended is not None:
            write_extended(found.extended, extended)
    return found


def write_extended(germline: GermlineSet, path: _Path) -> None:
    """Write an extended germline set so that it can be used as one.

    FILE.json is an AIRR Germline Set, in which ``curation`` says where the new alleles come from; a folder
    gets FASTA files; anything else is the common start of the names of FASTA files.
    """
    texts = _extended_texts(germline, path)
    if texts:
        write_texts(texts)
    else:
        write_fasta_trio(germline, path)


def _extended_texts(germline: GermlineSet, path: _Path) -> dict[Path, str]:
    """The JSON file, or nothing; raises what writing would raise, but for the file itself."""
    if Path(path).suffix.lower() != ".json":
        return {}
    return {Path(path): airr_text(germline, curation=". ".join(germline.notes) or None)}
