"""Candidates for new alleles: haplotypes of clonotypes, and whether they only look like new alleles."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.vdj.alleles.sites import (
    BASES,
    NO_BASE,
    AlleleGroup,
    AlleleLimits,
    ClonotypeBases,
    SegmentAlleles,
    Sites,
)

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


#: Why a candidate may be none, in the order in which reasons are given.
REASONS = {
    "known_allele": "where it is covered, another known allele is the same",
    "hybrid": "one end is like one allele and the other end like another, both more frequent: PCR makes such",
    "hypermutation": "too few of its clonotypes differ nowhere else, as if mutated after recombination",
    "one_strand": "all its reads are of one strand, though reads of both are there",
    "few_partners": "it occurs with too few J genes (V genes, for a J allele)",
    "one_family": "most of its clonotypes have the same J gene and length of junction, as if one clone",
    "distant": "so many changes that it is rather a gene that the germline set lacks",
}

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
    """A candidate and what speaks against it, keys of `REASONS`; none for a new allele."""

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
        judged.append(Judged(candidate, tuple(r for r in REASONS if r in reasons)))
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
