"""Candidates for new alleles: haplotypes of recurrent changes, with what speaks for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.vdj.annotation.allele_groups import BASES, NO_BASE, AlleleGroup, SegmentAlleles
from plait.vdj.annotation.allele_phasing import Assigned, assign, haplotypes
from plait.vdj.annotation.allele_sites import Sites
from plait.vdj.annotation.clonotype_bases import ClonotypeBases

__all__ = ["Candidate", "Carriers", "group_candidates", "merge_equal"]

#: Fewest carriers that show a base for it to be taken as known, and the smallest share of those that do.
_KNOWN_BY = 3
_AGREEING = 2 / 3
#: Places that nearly as many clonotypes reach as any other do not keep haplotypes from being told apart.
_REACHED = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Carriers:
    """The clonotypes that carry a candidate, and those they are compared with.

    Attributes
    ----------
    partner, family, forward, reverse
        As in `plait.vdj.annotation.clonotype_bases.ClonotypeBases`, of the carriers; int64, shape (c,).
    expected
        Clonotypes that have the candidate, with the likely ones among those that fit another one as well.
    exact
        Whether a carrier differs nowhere from the candidate; bool, shape (c,).
    gene
        Clonotypes of the gene that reach a changed place.
    gene_exact
        Those of them that differ nowhere from their nearest known allele.
    gene_forward, gene_reverse
        Reads of all clonotypes of the gene by strand.
    sampled
        Whether the gene has more clonotypes than were looked at.
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

    Attributes
    ----------
    segment
        The alleles of its segment.
    parent
        Index of the known allele that it comes nearest to.
    codes
        Its bases on the axis of all alleles of the segment; int8, shape (width,).
    covered
        Where carriers show them; elsewhere they are those of the parent; bool, shape (width,).
    carriers
        The evidence.
    p_value, q_value
        Of the least certain of its changes.
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
    def _axis(self) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        return self.segment.layout(np.arange(len(self.segment.alleles)))

    @cached_property
    def changed(self) -> NDArray[np.int64]:
        """Columns in which it differs from its parent."""
        own = self._axis[0][self.parent]
        return np.flatnonzero((self.codes != own) & (own != NO_BASE) & self.covered)

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """Its changes as ``G123A``, with 1-based positions in the parent."""
        sequence, offset = self.segment.alleles[self.parent].sequence, int(self._axis[1][self.parent])
        return tuple(
            f"{sequence[c - offset]}{c - offset + 1}{BASES[self.codes[c]]}" for c in self.changed.tolist()
        )

    @cached_property
    def sequence(self) -> str:
        """The parent with the changes."""
        letters = list(self.segment.alleles[self.parent].sequence)
        for column in self.changed.tolist():
            letters[column - int(self._axis[1][self.parent])] = BASES[self.codes[column]]
        return "".join(letters)

    @cached_property
    def covered_ranges(self) -> tuple[tuple[int, int], ...]:
        """Parts of the parent, 0-based and half-open, in which the bases are known from carriers."""
        inside = np.concatenate([[False], self.covered, [False]]).astype(np.int8)
        edges = np.flatnonzero(np.diff(inside)) - int(self._axis[1][self.parent])
        return tuple((int(a), int(b)) for a, b in edges.reshape(-1, 2))


def group_candidates(
    segment: SegmentAlleles, clonotypes: ClonotypeBases, sites: Sites, number: int, least: int
) -> list[Candidate]:
    """The candidates of one group of alleles.

    Parameters
    ----------
    segment
        All alleles.
    clonotypes
        The independent clonotypes of the group.
    sites
        The changes of all groups.
    number
        The group.
    least
        Fewest clonotypes of a candidate.
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
    width = segment.layout(np.arange(len(segment.alleles)))[0].shape[1]
    wide, wide_covered = np.full(width, NO_BASE, np.int8), np.zeros(width, np.bool_)
    wide[shift : shift + group.width] = codes
    wide_covered[shift : shift + group.width] = covered
    p, q = float(sites.p_value[tested].max()), float(sites.q_value[tested].max())
    return Candidate(segment, int(group.alleles[allele]), wide, wide_covered, carriers, p, q)


def _shift(segment: SegmentAlleles, group: AlleleGroup) -> int:
    """Column of the segment's axis at which the axis of a group begins."""
    everything = segment.layout(np.arange(len(segment.alleles)))[1]
    return int(everything[group.alleles[0]] - group.offset[0])


def merge_equal(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates of which none is another one seen on a shorter stretch.

    Reads that are too short to tell two known alleles apart make a candidate of the one as well as of the
    other. The evidence of the shorter is added to that of the longer.

    Parameters
    ----------
    candidates
        Of one segment.
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
    return Carriers(
        np.concatenate([a.partner, b.partner]),
        np.concatenate([a.family, b.family]),
        np.concatenate([a.forward, b.forward]),
        np.concatenate([a.reverse, b.reverse]),
        a.expected + b.expected,
        np.concatenate([a.exact, b.exact]),
        max(a.gene, b.gene) if same_group else a.gene + b.gene,
        max(a.gene_exact, b.gene_exact) if same_group else a.gene_exact + b.gene_exact,
        a.gene_forward if same_group else a.gene_forward + b.gene_forward,
        a.gene_reverse if same_group else a.gene_reverse + b.gene_reverse,
        a.sampled or b.sampled,
    )
