"""Which changes stand together in the same clonotypes: haplotypes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.vdj.annotation.allele_groups import NO_BASE

__all__ = ["Assigned", "assign", "haplotypes"]

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

    Attributes
    ----------
    member
        The one haplotype that a clonotype fits, -1 where none or several; int64, shape (n,).
    alone
        Clonotypes that fit each haplotype and no other; int64, shape (h,).
    fitting
        Clonotypes that fit each; int64, shape (h,).
    expected
        Clonotypes of each, those that fit several being shared out in proportion to `alone`; float64, (h,).
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

    Parameters
    ----------
    values
        Bases of the clonotypes at the places, in the order of the places, `NO_BASE` where not known;
        int8, shape (n, s).
    plain
        Bases of the parent allele; int8, shape (s,).

    Returns
    -------
    ndarray of int8, shape (h, s)
        Haplotypes, the parent itself among them where it occurs; `NO_BASE` where not known.
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
    """Tell which clonotypes belong to which haplotype.

    Parameters
    ----------
    values
        Bases of the clonotypes, as in `haplotypes`.
    found
        The haplotypes.
    """
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
