"""Places where the clonotypes of an allele differ from it more often than errors explain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.vdj.annotation.allele_groups import NO_BASE
from plait.vdj.annotation.clonotype_bases import ClonotypeBases

__all__ = ["AlleleLimits", "BaseCounts", "Sites", "binomial_tail", "count_bases", "find_sites"]

#: Bases that are seen more often than this at a place are left out when the rate of errors is estimated.
_ERROR_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class AlleleLimits:
    """What a new allele needs.

    Attributes
    ----------
    min_clonotypes
        Fewest independent clonotypes that carry it.
    min_share
        Smallest share of the gene's clonotypes, of those that reach a changed place.
    min_partners
        Fewest J genes among them (V genes, where the new allele is one of J), or all that occur in the data
        if these are fewer.
    max_q
        Largest q-value: expected share of errors among the changes that are called.

    Raises
    ------
    InvalidInput
        If a limit is out of its range.
    """

    min_clonotypes: int = 8
    min_share: float = 0.1
    min_partners: int = 3
    max_q: float = 0.01

    def __post_init__(self) -> None:
        for name in ("min_clonotypes", "min_partners"):
            if getattr(self, name) < 1:
                raise InvalidInput(name, found=getattr(self, name), expected="at least 1")
        for name in ("min_share", "max_q"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidInput(name, found=getattr(self, name), expected="more than 0, at most 1")


@dataclass(frozen=True, slots=True, eq=False)
class BaseCounts:
    """Clonotypes by base, for the alleles of a group.

    Attributes
    ----------
    codes
        Bases of the alleles; int8, shape (a, width).
    bases
        Clonotypes of each allele that show a base in a column; int64, shape (a, width, 4).
    clonotypes
        Clonotypes of each allele; int64, shape (a,).
    exact
        Those of them that differ nowhere from it; int64, shape (a,).
    """

    codes: NDArray[np.int8]
    bases: NDArray[np.int64]
    clonotypes: NDArray[np.int64]
    exact: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """Changes that errors do not explain, of all groups of a segment.

    Attributes
    ----------
    group, allele, column, base
        Group, row of the allele in it, column of the axis and code of the new base; int64, shape (s,).
    p_value
        Probability of as many clonotypes by errors alone; float64, shape (s,).
    q_value
        The same corrected for the number of tests (Benjamini and Hochberg); float64, shape (s,).
    error_rate
        Share of clonotypes that show one given wrong base at a place.
    tests
        Number of tests.
    """

    group: NDArray[np.int64]
    allele: NDArray[np.int64]
    column: NDArray[np.int64]
    base: NDArray[np.int64]
    p_value: NDArray[np.float64]
    q_value: NDArray[np.float64]
    error_rate: float
    tests: int


def count_bases(clonotypes: ClonotypeBases) -> BaseCounts:
    """Count the bases of clonotypes by their nearest allele."""
    codes = clonotypes.group.codes
    counts = np.zeros((*codes.shape, NO_BASE), np.int64)
    n = np.zeros(len(codes), np.int64)
    exact = np.zeros(len(codes), np.int64)
    for allele, own in enumerate(codes):
        chosen = clonotypes.parent == allele
        n[allele] = chosen.sum()
        exact[allele] = (chosen & ~clonotypes.differing(own).any(axis=1)).sum()
        for base in range(NO_BASE):
            counts[allele, :, base] = (clonotypes.bases[chosen] == base).sum(axis=0)
    return BaseCounts(codes, counts, n, exact)


def binomial_tail(successes: int, trials: int, rate: float) -> float:
    """Probability of at least so many successes."""
    if successes <= 0:
        return 1.0
    if successes > trials or rate <= 0:
        return 0.0
    if rate >= 1:
        return 1.0
    odds = math.log(rate) - math.log1p(-rate)
    term = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    term += successes * odds + trials * math.log1p(-rate)
    largest, total, size = term, 0.0, 1.0
    for k in range(successes, trials + 1):
        total += size
        size *= (trials - k) / (k + 1) * math.exp(odds)
        if size < total * 1e-12 and k > rate * trials:
            break
    return min(1.0, math.exp(min(largest + math.log(total), 0.0)))


def find_sites(counts: Sequence[BaseCounts], limits: AlleleLimits) -> Sites:
    """Find changes that recur.

    Parameters
    ----------
    counts
        Of every group.
    limits
        What is asked for.

    Notes
    -----
    The rate of errors is that of all bases but those that every tenth clonotype or more shows at its place.
    Every base of every place of every allele is a test.
    """
    cells = [_cells(group) for group in counts]
    changed = np.concatenate([np.zeros(0, np.int64), *(c for c, _, _ in cells)])
    covering = np.concatenate([np.zeros(0, np.int64), *(n for _, n, _ in cells)])
    of_gene = np.concatenate([np.zeros(0, np.int64), *(g for _, _, g in cells)])
    quiet = changed <= np.maximum(_ERROR_SHARE * covering, 1)
    rate = float((changed[quiet].sum() + 1) / (covering[quiet].sum() + 1)) if changed.size else 1.0
    many = (changed >= limits.min_clonotypes) & (changed >= limits.min_share * of_gene)
    tested = np.flatnonzero(many)
    p = np.array([binomial_tail(int(changed[k]), int(covering[k]), rate) for k in tested])
    q = _q_values(p, changed.size)
    found = q <= limits.max_q
    index = tested[found]
    starts = np.cumsum([0, *(c.size for c, _, _ in cells)])
    group = np.searchsorted(starts, index, side="right") - 1
    places = [
        np.unravel_index(k - starts[g], counts[g].bases.shape) for k, g in zip(index, group, strict=True)
    ]
    allele, column, base = np.array(places, np.int64).reshape(-1, 3).T
    tests = int((covering > 0).sum())
    return Sites(group, allele, column, base, p[found], q[found], rate, tests)


def _cells(counts: BaseCounts) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Clonotypes with a base, those that cover the place, and those of all alleles that do; flat."""
    covering = counts.bases.sum(axis=2, keepdims=True)
    own = counts.codes[:, :, None]
    tested = (own != NO_BASE) & (np.arange(NO_BASE) != own)
    changed = np.where(tested, counts.bases, 0)
    n = np.where(tested, covering, 0)
    of_gene = np.broadcast_to(covering.sum(axis=0), n.shape)
    return changed.ravel(), n.ravel(), of_gene.ravel()


def _q_values(p: NDArray[np.float64], tests: int) -> NDArray[np.float64]:
    """q-values of the smallest p-values of so many tests."""
    order = np.argsort(p, kind="stable")
    scaled = p[order] * tests / np.arange(1, p.size + 1)
    values = np.empty_like(p)
    values[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return np.minimum(values, 1.0)
