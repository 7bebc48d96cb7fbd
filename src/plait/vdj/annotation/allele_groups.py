"""Alleles of one gene on one axis, so that reads called to different ones of them can be compared.

V alleles are laid out so that their conserved Cys codons stand at the same place, J alleles by their Phe or
Trp codon, and only what lies outside the CDR3 is on the axis: V up to the Cys codon, J from behind the Phe or
Trp codon on. Alleles of a gene that do not resemble one another when laid out so, because one has an inserted
or a deleted base, are put into groups of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from plait.vdj.germline import Allele, GermlineSet

__all__ = ["BASES", "BASE_CODE", "NO_BASE", "AlleleGroup", "SegmentAlleles"]

BASES = "ACGT"
#: Code of a base that is not known, or of a place that an allele does not have.
NO_BASE = 4

#: Largest share of differing bases between alleles of one group.
_FARTHEST = 0.2


def _codes() -> NDArray[np.int8]:
    table = np.full(256, NO_BASE, np.int8)
    for code, base in enumerate(BASES):
        table[ord(base)] = table[ord(base.lower())] = code
    table[ord("U")] = table[ord("u")] = BASES.index("T")
    return table


#: Code of every byte: its place in `BASES`, or `NO_BASE`; int8, shape (256,). That of the complement is
#: 3 minus the code.
BASE_CODE = _codes()


@dataclass(frozen=True, slots=True, eq=False)
class AlleleGroup:
    """Alleles of one gene on one axis.

    Attributes
    ----------
    gene
        The gene.
    alleles
        Indices of the alleles in their segment of the germline set, in its order; int64, shape (a,).
    codes
        Their bases on the axis; int8, shape (a, width).
    offset
        What to add to a position of each allele to get its column; int64, shape (a,).
    """

    gene: str
    alleles: NDArray[np.int64]
    codes: NDArray[np.int8]
    offset: NDArray[np.int64]

    @property
    def width(self) -> int:
        """Columns of the axis."""
        return int(self.codes.shape[1])


class SegmentAlleles:
    """The V or the J alleles of a germline set, in groups.

    Parameters
    ----------
    germline
        The set.
    segment
        ``"V"`` or ``"J"``.

    Attributes
    ----------
    segment : str
        The segment.
    alleles : tuple of Allele
        Its alleles.
    groups : tuple of AlleleGroup
        Groups; an allele without an anchor is in none.
    group_of : ndarray of int64
        Group of every allele, -1 for none.
    gene_of : ndarray of int64
        Number of the gene of every allele.
    letters : ndarray of int8
        Codes of the bases of all alleles, one after the other.
    starts : ndarray of int64
        Where each allele begins in `letters`, and the end of the last.
    window : ndarray of int64, shape (alleles, 2)
        First position that is on the axis, and the end, for every allele.
    """

    def __init__(self, germline: GermlineSet, segment: Literal["V", "J"]) -> None:
        self.segment: Literal["V", "J"] = segment
        self.alleles: tuple[Allele, ...] = germline.alleles(segment)
        sequences = [BASE_CODE[np.frombuffer(a.sequence.encode(), np.uint8)] for a in self.alleles]
        self.letters = np.concatenate([*sequences, np.zeros(0, np.int8)])
        self.starts = np.cumsum([0, *(s.size for s in sequences)], dtype=np.int64)
        genes = {gene: k for k, gene in enumerate(dict.fromkeys(a.gene for a in self.alleles))}
        self.gene_of = np.array([genes[a.gene] for a in self.alleles], np.int64)
        self.window = np.array([_window(a) for a in self.alleles], np.int64).reshape(-1, 2)
        self.group_of = np.full(len(self.alleles), -1, np.int64)
        self.groups = tuple(self._grouped(len(genes)))
        for k, group in enumerate(self.groups):
            self.group_of[group.alleles] = k

    def layout(self, members: NDArray[np.int64]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """Bases of some alleles on one axis, and the offset of each; see `AlleleGroup`."""
        window = self.window[members]
        lengths = window[:, 1] - window[:, 0]
        width = int(lengths.max(initial=0))
        first = width - lengths if self.segment == "V" else np.zeros_like(lengths)
        codes = np.full((members.size, width), NO_BASE, np.int8)
        for row, allele in enumerate(members):
            begin = self.starts[allele] + window[row, 0]
            codes[row, first[row] : first[row] + lengths[row]] = self.letters[begin : begin + lengths[row]]
        return codes, first - window[:, 0]

    def _grouped(self, genes: int) -> list[AlleleGroup]:
        found = []
        for gene in range(genes):
            left = np.array([k for k in np.flatnonzero(self.gene_of == gene) if self.window[k, 1] > 0], int)
            while left.size:
                codes, _ = self.layout(left)
                both = (codes != NO_BASE) & (codes[0] != NO_BASE)
                differing = (both & (codes != codes[0])).sum(axis=1)
                near = differing <= _FARTHEST * np.maximum(both.sum(axis=1), 1)
                members = left[near].astype(np.int64)
                codes, offset = self.layout(members)
                found.append(AlleleGroup(self.alleles[members[0]].gene, members, codes, offset))
                left = left[~near]
        return found


def _window(allele: Allele) -> tuple[int, int]:
    """Positions outside the CDR3; (0, 0) without an anchor."""
    if allele.anchor is None:
        return 0, 0
    if allele.segment == "V":
        return 0, allele.anchor
    return allele.anchor + 3, len(allele.sequence)
