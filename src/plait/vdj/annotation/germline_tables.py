"""The alleles of several germline sets side by side, as the arrays that compiled code reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_MASK, IUPAC_MASK, MASK_SIZE, MASK_SYMBOL
from plait.schedules.chain_tables import FRAGMENT_BITS, FragmentWords
from plait.schedules.joined_cuts import Entries
from plait.schedules.joined_layout import LayoutTables
from plait.vdj.annotation.annotation_settings import AnnotationSettings
from plait.vdj.chain import chain_tables
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.germline.codons import translate
from plait.vdj.models import PathModel

__all__ = ["GermlineTables", "SegmentTable", "germline_tables"]


class SegmentTable(NamedTuple):
    """Alleles of one segment of all sets.

    Attributes
    ----------
    entries
        Their sequences and anchors.
    first
        int64 (sets + 1,): first allele of each set.
    names, name_starts
        Their names, one after the other, uint8, and where each begins, int64 (alleles + 1,).
    alleles
        The alleles.
    """

    entries: Entries
    first: NDArray[np.int64]
    names: NDArray[np.uint8]
    name_starts: NDArray[np.int64]
    alleles: tuple[Allele, ...]


class GermlineTables(NamedTuple):
    """What annotation needs to know of its germline sets.

    Attributes
    ----------
    v, d, j
        Alleles by segment; without D alleles of sets whose chain has none.
    layout
        Tables and limits.
    loci
        Locus of each set.
    d_places
        int64 (J alleles, longest D + 1): places at which a match of so many bases can begin in the D alleles
        that may join each J allele.
    """

    v: SegmentTable
    d: SegmentTable
    j: SegmentTable
    layout: LayoutTables
    loci: tuple[str, ...]
    d_places: NDArray[np.int64]


def germline_tables(germlines: Sequence[GermlineSet], settings: AnnotationSettings) -> GermlineTables:
    """Tables of several germline sets.

    Parameters
    ----------
    germlines
        The sets.
    settings
        Limits.

    Raises
    ------
    Unsupported
        If a D allele is longer than 62 bases, or a set has more than 62 of them.
    """
    d = _segment([() if g.chain == "vj" else g.d for g in germlines])
    return GermlineTables(
        v=_segment([g.v for g in germlines]),
        d=d,
        j=_segment([g.j for g in germlines]),
        layout=_layout_tables(germlines, d, settings),
        loci=tuple(g.locus for g in germlines),
        d_places=_d_places(germlines, d),
    )


def _segment(sets: Sequence[tuple[Allele, ...]]) -> SegmentTable:
    alleles = tuple(allele for group in sets for allele in group)
    letters, starts = _joined([allele.sequence for allele in alleles])
    names, name_starts = _joined([allele.name for allele in alleles])
    anchors = np.array([-1 if a.anchor is None else a.anchor for a in alleles], np.int64)
    first = np.cumsum([0, *(len(group) for group in sets)], dtype=np.int64)
    return SegmentTable(Entries(letters, starts, anchors), first, names, name_starts, alleles)


def _d_places(germlines: Sequence[GermlineSet], d: SegmentTable) -> NDArray[np.int64]:
    sizes = np.diff(d.entries.starts)
    # Rows are D alleles: how many places there are for a match of each length.
    places = np.maximum(sizes[:, None] - np.arange(int(sizes.max(initial=0)) + 1) + 1, 0)
    rows = []
    for k, germline in enumerate(germlines):
        own = places[d.first[k] : d.first[k + 1]]
        rows += [np.array(germline.allowed_d(j)[: len(own)], np.int64) @ own for j in germline.j]
    return np.array(rows, np.int64).reshape(len(rows), places.shape[1])


def _joined(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    encoded = [text.encode() for text in texts]
    starts = np.cumsum([0, *(len(text) for text in encoded)], dtype=np.int64)
    # A copy, because the kernels are compiled for arrays that can be written.
    return np.frombuffer(b"".join(encoded), np.uint8).copy(), starts


def _layout_tables(
    germlines: Sequence[GermlineSet], d: SegmentTable, settings: AnnotationSettings
) -> LayoutTables:
    words = [chain_tables(g, PathModel(pi=0, nu=0), g.chain).words for g in germlines]
    counts = [w.places.shape[0] for w in words]
    starts = np.cumsum([0, *counts], dtype=np.int64)
    suffixes = np.cumsum([0, *(len(g.j) for g in germlines)])
    allowed = np.zeros((int(suffixes[-1]), int(starts[-1])), np.int64)
    for k, found in enumerate(words):
        allowed[suffixes[k] : suffixes[k + 1], starts[k] : starts[k + 1]] = found.allowed_starts
    places = np.concatenate([w.places for w in words]).reshape(-1, 16)
    # A base that is not known says nothing for a D allele.
    places[:, MASK_SIZE != 1] = 0
    return LayoutTables(
        masks=IUPAC_MASK.copy(),
        mirror=COMPLEMENT_MASK.copy(),
        triplets=_triplets().copy(),
        places=places,
        word_starts=starts,
        fragment_of=np.concatenate([w.fragment_of for w in words]).reshape(-1, FRAGMENT_BITS),
        fragment_bit=np.concatenate([_first_bits(w) for w in words]),
        allowed_starts=allowed,
        fragments=d.entries,
        group_starts=d.first,
        furthest=settings.max_anchor_distance,
        least=settings.min_d_length,
        most_extended=settings.max_p_length,
    )


def _first_bits(words: FragmentWords) -> NDArray[np.int64]:
    if not words.first.size:
        return np.zeros((0, FRAGMENT_BITS), np.int64)
    found: NDArray[np.int64] = words.first[words.fragment_of]
    return found


@lru_cache(maxsize=1)
def _triplets() -> NDArray[np.uint8]:
    """Amino acid of every three masks; X where one is no letter."""
    table = np.full((16, 16, 16), ord("X"), np.uint8)
    for first in range(1, 16):
        for second in range(1, 16):
            text = "".join(
                MASK_SYMBOL[first] + MASK_SYMBOL[second] + MASK_SYMBOL[third] for third in range(1, 16)
            )
            table[first, second, 1:] = np.frombuffer(translate(text).encode(), np.uint8)
    return table.ravel()
