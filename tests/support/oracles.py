"""Path counts and region calls, as the definitions say them: strings, slices and nested loops.

Nothing here is fast, and nothing is shared with the schedules that it is compared with, not even the
alphabet. A gene end that is too short to mirror is extended by ``?``, which matches nothing.
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

__all__ = [
    "LETTERS",
    "Dp2Counts",
    "RegionCall",
    "alike",
    "call_regions",
    "choices",
    "count_dp1",
    "count_dp2",
    "end_ways",
    "enumerate_paths",
    "extended_d",
    "fragment_ways",
    "letter_counts",
    "palindrome_after",
    "palindrome_before",
    "reverse_complement",
]

LETTERS = "ACGT"
_MEMBERS = {
    "A": "A", "C": "C", "G": "G", "T": "T",
    "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT", "?": "",
}  # fmt: skip
_PARTNER = {"A": "T", "C": "G", "G": "C", "T": "A"}


def choices(symbol: str) -> int:
    """How many nucleotides a symbol stands for."""
    return len(_MEMBERS[symbol])


def alike(text: str, pattern: str) -> bool:
    """Whether two sequences are of one length and every pair of symbols has a nucleotide in common."""
    return len(text) == len(pattern) and all(_pair_alike(a, b) for a, b in zip(text, pattern, strict=True))


@functools.cache
def _pair_alike(a: str, b: str) -> bool:
    return bool(set(_MEMBERS[a]) & set(_MEMBERS[b]))


def reverse_complement(sequence: str) -> str:
    """The other strand, read in its own direction."""
    return "".join(_complement(symbol) for symbol in reversed(sequence))


@functools.cache
def _complement(symbol: str) -> str:
    partners = {_PARTNER[member] for member in _MEMBERS[symbol]}
    return next(code for code, members in _MEMBERS.items() if set(members) == partners)


def palindrome_after(end: str, extension: int) -> str:
    """The nucleotides that a cut so far from the hairpin adds to a 3' end."""
    return reverse_complement(end[max(0, len(end) - extension) :]).ljust(extension, "?")


def palindrome_before(end: str, extension: int) -> str:
    """The nucleotides that a cut so far from the hairpin adds to a 5' end."""
    return reverse_complement(end[:extension]).rjust(extension, "?")


def extended_d(d: str, pi: int) -> str:
    """A D gene with its palindromes at both ends."""
    return palindrome_before(d, pi) + d + palindrome_after(d, pi)


def _inserted(read: str, first: int, last: int) -> int:
    """Number of N strings that read[first:last) may stand for."""
    ways = 1
    for symbol in read[first:last]:
        ways *= choices(symbol)
    return ways


def count_dp1(
    read: str, v: str, ds: Sequence[str], j: str, *, pi: int = 4, most: int = 10, empty_d: str = "positions"
) -> list[int]:
    """DP-1 by its nested sums (four with one D gene): paths with 0, 1, .. `most` N nucleotides."""
    v_ext, j_ext = v + palindrome_after(v, pi), palindrome_before(j, pi) + j
    ways_of = [functools.partial(_occurrences, read, extended_d(d, pi), empty_d) for d in ds]
    counts = [0] * (most + 1)

    def add(first: int, genes: int, n: int, ways: int, j_first: int) -> None:
        """Add paths of which all before `first` is made, with so many genes and N nucleotides."""
        for a in range(first, min(j_first, first + most - n) + 1):
            more = ways * _inserted(read, first, a)
            if genes == len(ds) and a == j_first:
                counts[n + a - first] += more
            elif genes < len(ds):
                for b in range(a, j_first + 1):
                    if found := ways_of[genes](a, b):
                        add(b, genes + 1, n + a - first, more * found, j_first)

    # Every v <= a <= b <= .. <= j.
    for v_last, j_first in product(_prefixes(read, v_ext), _suffixes(read, j_ext)):
        add(v_last, 0, 0, 1, j_first)
    return counts


@functools.cache
def _occurrences(read: str, d_ext: str, empty_d: str, a: int, b: int) -> int:
    """In how many places of an extended D gene read[a:b) is found."""
    if a == b:
        return {"positions": len(d_ext) + 1, "once": 1, "none": 0}[empty_d]
    return sum(alike(read[a:b], d_ext[s : s + b - a]) for s in range(len(d_ext) - (b - a) + 1))


def _prefixes(read: str, v_ext: str) -> list[int]:
    """Every length to which the read starts like V."""
    return [k for k in range(min(len(read), len(v_ext)) + 1) if alike(read[:k], v_ext[:k])]


def _suffixes(read: str, j_ext: str) -> list[int]:
    """Every position from which on the read ends like J."""
    kept = range(min(len(read), len(j_ext)) + 1)
    return [len(read) - k for k in kept if alike(read[len(read) - k :], j_ext[len(j_ext) - k :])]


def enumerate_paths(
    read: str, v: str, ds: Sequence[str], j: str, *, pi: int = 4, most: int = 4, empty_d: str = "positions"
) -> list[int]:
    """Build every string with 0, 1, .. `most` N nucleotides and any number of D genes, and compare."""
    v_ext, j_ext = v + palindrome_after(v, pi), palindrome_before(j, pi) + j
    suffixes = [j_ext[k:] for k in range(len(j_ext) + 1)]
    pieces = []
    for d in ds:
        d_ext = extended_d(d, pi)
        found = Counter(d_ext[s:t] for s in range(len(d_ext)) for t in range(s + 1, len(d_ext) + 1))
        found[""] = {"positions": len(d_ext) + 1, "once": 1, "none": 0}[empty_d]
        pieces.append(found)
    counts = [0] * (most + 1)
    for n in range(most + 1):
        for letters in product(LETTERS, repeat=n):
            for k in range(len(v_ext) + 1):
                counts[n] += _ways_on(read, v_ext[:k], "".join(letters), pieces, suffixes)
    return counts


def _ways_on(
    read: str, built: str, letters: str, pieces: Sequence[Counter[str]], suffixes: Sequence[str]
) -> int:
    """Ways to complete what is built so far with exactly these letters."""
    if not alike(read[: len(built)], built):
        return 0  # Whatever follows cannot mend it.
    if not pieces:
        return sum(alike(read, built + letters + suffix) for suffix in suffixes)
    return sum(
        times * _ways_on(read, built + letters[:cut] + piece, letters[cut:], pieces[1:], suffixes)
        for cut in range(len(letters) + 1)
        for piece, times in pieces[0].items()
    )


def end_ways(delta: int, pi: int, strands: int) -> int:
    """Ways to extend an end by up to `pi` and then erode it, so that it is `delta` longer than before."""
    ways = 0
    for extension in range(pi + 1):
        if extension >= delta:
            ways += strands if extension else 1
    return ways


def fragment_ways(fragment: str, d: str, *, pi: int, strands: int) -> int:
    """Ways to cut a fragment from a D gene whose ends are both extended by its own palindromes."""
    d_ext = extended_d(d, pi)
    return sum(
        end_ways(pi - s, pi, strands) * end_ways(s + len(fragment) - pi - len(d), pi, strands)
        for s in range(len(d_ext) - len(fragment) + 1)
        if alike(fragment, d_ext[s : s + len(fragment)])
    )


class Dp2Counts(NamedTuple):
    """Paths of DP-2.

    Attributes
    ----------
    full
        All of them.
    zero_d
        Those in which no nucleotide comes from a D gene.
    """

    full: int
    zero_d: int


def count_dp2(
    read: str,
    v: str,
    ds: Sequence[str],
    j: str,
    *,
    pi: int,
    limits: Sequence[int],
    strands: int,
    choose: Callable[[int, int], int] = operator.add,
) -> Dp2Counts:
    """DP-2 as a product of dense matrices.

    Without D genes it is ``sV N sJ``, with two of them ``sV N sD N sD N sJ``.

    Parameters
    ----------
    read
        The sequence to be made.
    v, ds, j
        Gene ends, and D genes from V to J.
    pi
        Longest extension.
    limits
        Most N nucleotides of each junction, from V to J; one more than there are D genes.
    strands
        1, or 2 if a cut on either strand is another path.
    choose
        What is done with alternatives: added up, or with ``max`` the one of most ways taken.
    """
    v_ext, j_ext = v + palindrome_after(v, pi), palindrome_before(j, pi) + j
    ends = range(len(read) + 1)
    left = [0] * len(ends)
    for k in _prefixes(read, v_ext):
        left[k] = end_ways(k - len(v), pi, strands)
    right = [0] * len(ends)
    for k in _suffixes(read, j_ext):
        right[k] = end_ways(len(read) - k - len(j), pi, strands)
    full = zero = _times(left, _insertion_matrix(read, limits[0]), choose)
    for d, limit in zip(ds, limits[1:], strict=True):
        matrix = _fragment_matrix(read, d, pi, strands, choose)
        diagonal = [[matrix[a][b] if a == b else 0 for b in ends] for a in ends]
        insertion = _insertion_matrix(read, limit)
        full = _times(_times(full, matrix, choose), insertion, choose)
        zero = _times(_times(zero, diagonal, choose), insertion, choose)
    return Dp2Counts(_dot(full, right, choose), _dot(zero, right, choose))


def _times(
    vector: Sequence[int], matrix: Sequence[Sequence[int]], choose: Callable[[int, int], int]
) -> list[int]:
    return [_dot(vector, [row[j] for row in matrix], choose) for j in range(len(vector))]


def _dot(a: Sequence[int], b: Sequence[int], choose: Callable[[int, int], int]) -> int:
    return functools.reduce(choose, (x * y for x, y in zip(a, b, strict=True)), 0)


def _insertion_matrix(read: str, limit: int) -> list[list[int]]:
    ends = range(len(read) + 1)
    return [[_inserted(read, i, j) if 0 <= j - i <= limit else 0 for j in ends] for i in ends]


def _fragment_matrix(
    read: str, d: str, pi: int, strands: int, choose: Callable[[int, int], int]
) -> list[list[int]]:
    """Ways in which the D process makes read[a:b): p mirrored nucleotides, then D extended[s:t)."""
    d_ext = d + palindrome_after(d, pi)
    ends = range(len(read) + 1)
    matrix = [[0 for _ in ends] for _ in ends]
    for p, s in [(0, s) for s in range(len(d_ext) + 1)] + [(p, 0) for p in range(1, pi + 1)]:
        for t in range(s, len(d_ext) + 1):
            ways = end_ways(p - s, pi, strands) * end_ways(t - len(d), pi, strands)
            for a in range(len(read) - p - (t - s) + 1):
                b = a + p + t - s
                mirrored = alike(read[a : a + p], reverse_complement(read[a + p : a + 2 * p]))
                if mirrored and alike(read[a + p : b], d_ext[s:t]):
                    # All ways to lose the whole D are one process, however they are chosen from.
                    matrix[a][b] = matrix[a][b] + ways if a == b else choose(matrix[a][b], ways)
    return matrix


class RegionCall(NamedTuple):
    """What a read looks like: lengths and positions of its germline parts; -1 for a D that is not there.

    Attributes
    ----------
    prefix_match, suffix_match
        Nucleotides like V and like J.
    fragment_match
        Nucleotides of the longest match of a D.
    fragment_start, fragment_end
        Its leftmost start and rightmost end.
    fragment_extended_left, fragment_extended_right
        How much of the match at that start, and at that end, lies in a palindrome, at least.
    fragment_choice
        Sum of 2^k over the D genes k that match so long.
    """

    prefix_match: int
    suffix_match: int
    fragment_match: int
    fragment_start: int
    fragment_end: int
    fragment_extended_left: int
    fragment_extended_right: int
    fragment_choice: int


def call_regions(read: str, v: str, ds: Sequence[str | None], j: str, *, pi: int) -> RegionCall:
    """Region calls; a D of None may not join this J."""
    m_v = max(_prefixes(read, v + palindrome_after(v, pi)))
    m_j = len(read) - min(_suffixes(read, palindrome_before(j, pi) + j))
    found = list(_d_matches(read, ds, pi))
    longest = max((b - a for a, b, *_ in found), default=0)
    if longest == 0:
        return RegionCall(m_v, m_j, 0, -1, -1, 0, 0, 0)
    best = [match for match in found if match[1] - match[0] == longest]
    start = min(a for a, *_ in best)
    end = max(b for _, b, *_ in best)
    left = min(extended for a, _, extended, _, _ in best if a == start)
    right = min(extended for _, b, _, extended, _ in best if b == end)
    return RegionCall(m_v, m_j, longest, start, end, left, right, sum(1 << k for k in {f for *_, f in best}))


def _d_matches(read: str, ds: Sequence[str | None], pi: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Start and end in the read, nucleotides in the left and right palindrome, and number of the D."""
    for f, d in enumerate(ds):
        d_ext = "" if d is None else extended_d(d, pi)
        origin = ["L"] * pi + ["D"] * (len(d_ext) - 2 * pi) + ["R"] * pi
        for s in range(len(d_ext)):
            for t in range(s + 1, len(d_ext) + 1):
                for a in range(len(read) - (t - s) + 1):
                    if alike(read[a : a + t - s], d_ext[s:t]):
                        yield a, a + t - s, origin[s:t].count("L"), origin[s:t].count("R"), f


def letter_counts(read: str, first: int, last: int) -> dict[str, int]:
    """How many symbols of read[first:last) may be each nucleotide; nothing if the stretch is negative."""
    stretch = read[first:last] if first < last else ""
    return {letter: sum(letter in _MEMBERS[symbol] for symbol in stretch) for letter in LETTERS}
