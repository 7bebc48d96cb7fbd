"""Where the germline V, D and J of one junction match it: the lattice behind its path count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import encode, reverse_complement
from plait.vdj.germline import Allele

__all__ = ["DPlace", "EndMatch", "LongestD", "longest_d", "match_j", "match_v"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndMatch:
    """The V or the J end laid along a junction.

    Attributes
    ----------
    allele
        Name of the allele.
    sequence
        The part of the allele inside the junction, upper case, with its palindromic extension, lower case,
        in the direction of the junction.
    start
        Junction position of the first symbol of `sequence`; negative where J is longer than the junction.
    germline_length
        Symbols of `sequence` that are germline.
    matched
        Symbols that match without a break, counted from the anchor.
    palindromic
        Those among them that belong to the extension.
    mismatch
        Junction position of the first symbol that differs, None if everything inside the junction matches.
    """

    allele: str
    sequence: str
    start: int
    germline_length: int
    matched: int
    palindromic: int
    mismatch: int | None

    @property
    def complete(self) -> bool:
        """Whether all of the germline part that lies inside the junction matches."""
        return self.mismatch is None or self.matched >= self.germline_length

    def symbol_at(self, position: int) -> str:
        """The germline symbol over a junction position."""
        return self.sequence[position - self.start]


@dataclass(frozen=True, slots=True)
class DPlace:
    """One place of a longest D match.

    Attributes
    ----------
    junction_start
        Position of its first nucleotide in the junction.
    d_start
        Position in the D allele; negative inside the palindrome before it.
    """

    junction_start: int
    d_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LongestD:
    """The longest matches of one D allele.

    Attributes
    ----------
    allele
        Name of the allele.
    sequence
        The allele, upper case, between its palindromic extensions, lower case.
    extension
        Length of each extension.
    length
        Nucleotides of the longest match, extensions included.
    places
        Every place of that length, from left to right.
    """

    allele: str
    sequence: str
    extension: int
    length: int
    places: tuple[DPlace, ...]

    def piece(self, place: DPlace) -> str:
        """The matching part of `sequence`."""
        first = place.d_start + self.extension
        return self.sequence[first : first + self.length]


def match_v(junction: str, allele: Allele, pi: int) -> EndMatch:
    """Lay a V end along a junction, from its first symbol on.

    Parameters
    ----------
    junction
        IUPAC codes.
    allele
        The V allele; it has an anchor.
    pi
        Longest palindromic extension.
    """
    end = allele.cdr3_end or ""
    sequence = end + _palindrome_after(end, pi)
    matched = _matching(encode(junction), encode(sequence))
    return EndMatch(
        allele=allele.name,
        sequence=sequence,
        start=0,
        germline_length=len(end),
        matched=matched,
        palindromic=max(0, matched - len(end)),
        mismatch=matched if matched < min(len(junction), len(sequence)) else None,
    )


def match_j(junction: str, allele: Allele, pi: int) -> EndMatch:
    """Lay a J end along a junction, from its last symbol back.

    Parameters
    ----------
    junction
        IUPAC codes.
    allele
        The J allele; it has an anchor.
    pi
        Longest palindromic extension.
    """
    end = allele.cdr3_end or ""
    sequence = _palindrome_before(end, pi) + end
    matched = _matching(encode(junction)[::-1], encode(sequence)[::-1])
    broken = matched < min(len(junction), len(sequence))
    return EndMatch(
        allele=allele.name,
        sequence=sequence,
        start=len(junction) - len(sequence),
        germline_length=len(end),
        matched=matched,
        palindromic=max(0, matched - len(end)),
        mismatch=len(junction) - 1 - matched if broken else None,
    )


def longest_d(junction: str, allele: Allele, pi: int) -> LongestD:
    """The longest matches of a D allele, extended at both ends, anywhere in a junction.

    Parameters
    ----------
    junction
        IUPAC codes.
    allele
        The D allele.
    pi
        Longest palindromic extension.
    """
    before = _palindrome_before(allele.sequence, pi)
    sequence = before + allele.sequence + _palindrome_after(allele.sequence, pi)
    best = 0
    places: list[DPlace] = []
    text, gene = encode(junction), encode(sequence)
    for at in range(len(junction)):
        for d in range(len(sequence)):
            length = _matching(text[at:], gene[d:])
            if length > best:
                best, places = length, []
            if length == best > 0:
                places.append(DPlace(at, d - len(before)))
    return LongestD(
        allele=allele.name, sequence=sequence, extension=len(before), length=best, places=tuple(places)
    )


def _palindrome_after(end: str, pi: int) -> str:
    return reverse_complement(end)[:pi].lower()


def _palindrome_before(end: str, pi: int) -> str:
    return reverse_complement(end[:pi]).lower() if pi else ""


def _matching(text: NDArray[np.uint8], sequence: NDArray[np.uint8]) -> int:
    """Symbols from the start on that have a nucleotide in common."""
    size = min(text.size, sequence.size)
    common = (text[:size] & sequence[:size]) != 0
    return size if common.all() else int(common.argmin())
