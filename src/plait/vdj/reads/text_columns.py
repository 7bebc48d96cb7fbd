"""Columns of text that are cut from reads: slices, translations, calls, CIGAR strings, aligned sequences.

Here stands what compiled code knows of reads and their matches with alleles.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.alphabets import AMINO_ACID_OF_MASKS, IUPAC_MASK
from plait.dp.pairs.paths import put_run
from plait.lang.compile import kernel, shared
from plait.vdj.reads.columns import check_letters, edges_of, text_array


class Alleles(NamedTuple):
    """Alleles of one segment: `letters` (uint8) of all, `starts` (int64, (a + 1,)) offsets.

    `anchors`, int64 (a,): first base of the conserved codon, -1 where unknown.
    """

    letters: Any
    starts: Any
    anchors: Any


class Matches(NamedTuple):
    """One match of each read with one of `alleles`, or none (`allele` -1, int64); half-open, int32, (n,).

    `runs`, int32 (r, 2): kind (0 pairs, 1 bases of the allele alone, 2 of the read alone) and length;
    `run_starts`, int64 (n + 1,), are offsets into them.
    """

    alleles: Any
    allele: Any
    read_start: Any
    read_end: Any
    germline_start: Any
    germline_end: Any
    runs: Any
    run_starts: Any


class MatchedReads(NamedTuple):
    """Reads (uint8 `letters`, int64 `starts` (n + 1,)), and their `Matches` with V and J alleles."""

    letters: Any
    starts: Any
    v: Any
    j: Any


class Codons(NamedTuple):
    """`masks` (uint8 (256,)): bits of the bases that a letter may mean, 0 for what is no letter.

    `amino_acids` (uint8 (4096,)): what three masks read as, ``first << 8 | second << 4 | third``.
    """

    masks: Any
    amino_acids: Any


#: How V and J of a read lie: at most one there, V before J, or anything else.
ALONE, ORDERED, CROSSED = range(3)
#: Stands for "no base has a quality".
NO_QUALITY: Final = 255
_COMMA, _GAP, _UNKNOWN = 44, 45, 78
#: Operations of CIGAR strings: skipped bases of the read and of the allele, equal and other pairs, two gaps.
_CLIP, _SKIP, _EQUAL, _OTHER = 83, 78, 61, 88
_GAPS = (0, 68, 73)


class Written(NamedTuple):
    """A column of texts under way: uint8 `letters` with room for all, int32 (n + 1,) offsets `bounds`."""

    letters: Any
    bounds: Any


class AlignedTexts(NamedTuple):
    """Aligned `read` and `germline`, both `Written`; columns in which D and J begin, int32 (n,)."""

    read: Any
    germline: Any
    d_at: Any
    j_at: Any


@shared
def amino_acid_at(letters: Any, p: int, codons: Any) -> int:
    """What the codon at p reads as."""
    a = int(codons.masks[letters[p]])
    b = int(codons.masks[letters[p + 1]])
    c = int(codons.masks[letters[p + 2]])
    return int(codons.amino_acids[(a << 8) | (b << 4) | c])


@kernel
def join_slices(letters: Any, first: Any, length: Any, list_starts: Any, out: Any) -> None:
    """Join slices of letters, a comma between two of one list."""
    at = 0
    for i in range(list_starts.size - 1):
        for k in range(list_starts[i], list_starts[i + 1]):
            if k > list_starts[i]:
                out.letters[at] = _COMMA
                at += 1
            for x in range(length[k]):
                out.letters[at + x] = letters[first[k] + x]
            at += length[k]
        out.bounds[i + 1] = at


@kernel
def read_codons(letters: Any, first: Any, length: Any, codons: Any, out: Any) -> None:
    """Translate the whole codons of slices of letters."""
    at = 0
    for i in range(first.size):
        for p in range(first[i], first[i] + length[i] - 2, 3):
            out.letters[at] = amino_acid_at(letters, p, codons)
            at += 1
        out.bounds[i + 1] = at


@kernel
def write_cigars(letters: Any, starts: Any, matches: Any, out: Any) -> None:
    """Write the CIGAR strings of all matches, with what of read and allele lies before and after."""
    alleles = matches.alleles
    at = 0
    for i in range(matches.allele.size):
        number = matches.allele[i]
        if number >= 0:
            p = starts[i] + matches.read_start[i]
            q = alleles.starts[number] + matches.germline_start[i]
            at = put_run(out.letters, at, matches.read_start[i], _CLIP)
            at = put_run(out.letters, at, matches.germline_start[i], _SKIP)
            for r in range(matches.run_starts[i], matches.run_starts[i + 1]):
                kind = matches.runs[r, 0]
                length = matches.runs[r, 1]
                if kind == 0:
                    at = put_pairs(letters, p, alleles.letters, q, length, out.letters, at)
                else:
                    at = put_run(out.letters, at, length, _GAPS[kind])
                p += 0 if kind == 1 else length
                q += 0 if kind == 2 else length
            at = put_run(out.letters, at, starts[i + 1] - starts[i] - matches.read_end[i], _CLIP)
            size = alleles.starts[number + 1] - alleles.starts[number]
            at = put_run(out.letters, at, size - matches.germline_end[i], _SKIP)
        out.bounds[i + 1] = at


@shared
def put_pairs(letters: Any, p: int, others: Any, q: int, length: int, out: Any, at: int) -> int:
    """Write pairs as runs of equal and of other ones."""
    first = 0
    while first < length:
        equal = letters[p + first] == others[q + first]
        k = first + 1
        while k < length and (letters[p + k] == others[q + k]) == equal:
            k += 1
        at = put_run(out, at, k - first, _EQUAL if equal else _OTHER)
        first = k
    return at


@kernel
def write_aligned(reads: Any, order: Any, d: Any, out: Any) -> None:
    """Write read and germline as aligned, from the start of V to the end of J; `d` are `Matches`.

    Nothing is written where V and J lie the wrong way round.
    """
    v = reads.v
    j = reads.j
    at = 0
    for i in range(order.size):
        first = at
        if order[i] != CROSSED:
            if v.allele[i] >= 0:
                at = put_aligned(reads, v, i, out, at)
            if j.allele[i] >= 0:
                if v.allele[i] >= 0:
                    at = put_between(reads, i, d, out, at, first)
                out.j_at[i] = at - first
                at = put_aligned(reads, j, i, out, at)
        out.read.bounds[i + 1] = at
        out.germline.bounds[i + 1] = at


@shared
def put_between(reads: Any, i: int, d: Any, out: Any, at: int, first: int) -> int:
    """Write what lies between V and J, with the called D."""
    begin: int = reads.v.read_end[i]
    end: int = reads.j.read_start[i]
    base = reads.starts[i]
    for p in range(begin, end):
        out.read.letters[at + p - begin] = reads.letters[base + p]
        out.germline.letters[at + p - begin] = _UNKNOWN
    if d.allele[i] >= 0:
        place = at + d.read_start[i] - begin
        out.d_at[i] = place - first
        q = d.alleles.starts[d.allele[i]] + d.germline_start[i]
        for k in range(d.read_end[i] - d.read_start[i]):
            out.germline.letters[place + k] = d.alleles.letters[q + k]
    return at + end - begin


@shared
def put_aligned(reads: Any, match: Any, i: int, out: Any, at: int) -> int:
    """Write the columns of a match."""
    p = reads.starts[i] + match.read_start[i]
    q = match.alleles.starts[match.allele[i]] + match.germline_start[i]
    for r in range(match.run_starts[i], match.run_starts[i + 1]):
        kind = match.runs[r, 0]
        length = match.runs[r, 1]
        for k in range(length):
            out.read.letters[at + k] = _GAP if kind == 1 else reads.letters[p + k]
            out.germline.letters[at + k] = _GAP if kind == 2 else match.alleles.letters[q + k]
        at += length
        p += 0 if kind == 1 else length
        q += 0 if kind == 2 else length
    return at


def _room(letters: int, n: int) -> Written:
    check_letters(letters)
    return Written(np.zeros(letters, np.uint8), np.zeros(n + 1, np.int32))


@cache
def codons() -> Codons:
    """The genetic code for reads; copies, because the kernels are compiled for arrays that can be written."""
    return Codons(IUPAC_MASK.copy(), AMINO_ACID_OF_MASKS.copy())


def slices(
    letters: NDArray[np.uint8], first: NDArray[np.int64], length: NDArray[Any], known: NDArray[np.bool_]
) -> pa.Array:
    """Slices of letters, null where not `known`; `first` and `length` have shape (n,)."""
    length = np.where(known, length, 0)
    out = _room(int(length.sum()), first.size)
    join_slices(letters, first, length, np.arange(first.size + 1), out)
    return text_array(out.letters, out.bounds, known)


def translations(
    letters: NDArray[np.uint8], first: NDArray[np.int64], length: NDArray[Any], known: NDArray[np.bool_]
) -> tuple[pa.Array, NDArray[np.int64]]:
    """Amino acids of the whole codons of `slices`, and how many each has."""
    count = np.where(known, length // 3, 0)
    out = _room(int(count.sum()), first.size)
    read_codons(letters, first, 3 * count, codons(), out)
    return text_array(out.letters, out.bounds, known), count


def joined_names(
    names: NDArray[np.uint8], starts: NDArray[np.int64], lists: NDArray[np.int64], which: NDArray[np.int64]
) -> Written:
    """Lists of the names `which`, with offsets `lists`, commas between; `names` have offsets `starts`."""
    length = np.diff(starts)[which]
    out = _room(int(length.sum()) + which.size, lists.size - 1)
    join_slices(names, starts[:-1][which], length, lists, out)
    return out


def cigars(reads: MatchedReads, matches: Matches) -> pa.Array:
    """CIGAR strings of the whole reads, null without a match."""
    n = matches.allele.size
    # A run of pairs can alternate, two characters a pair; any number has at most ten digits.
    pairs = int(matches.runs[: int(matches.run_starts[-1]), 1].sum(dtype=np.int64))
    out = _room(2 * pairs + 12 * len(matches.runs) + 44 * n, n)
    write_cigars(reads.letters, reads.starts, matches, out)
    return text_array(out.letters, out.bounds, matches.allele >= 0)


def aligned_texts(
    reads: MatchedReads, order: NDArray[np.uint8], d: Matches, columns: NDArray[np.int32]
) -> AlignedTexts:
    """Reads and germline as aligned; `columns`, (n,), are those of the alignments with V and J."""
    n = order.size
    both = (reads.v.allele >= 0) & (reads.j.allele >= 0)
    between = np.where(both, np.maximum(reads.j.read_start - reads.v.read_end, 0), 0)
    size = int((columns + between).sum(dtype=np.int64))
    out = AlignedTexts(_room(size, n), _room(size, n), np.zeros(n, np.int32), np.zeros(n, np.int32))
    write_aligned(reads, order, d, out)
    return out


def without_gaps(written: Written) -> Written:
    """The same texts, gaps left out."""
    letters = written.letters[: int(written.bounds[-1])]
    kept = letters != _GAP
    return Written(letters[kept], edges_of(kept)[written.bounds])
