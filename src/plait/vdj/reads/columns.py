"""Tables as arrays, Arrow columns as flat arrays, and columns of text that are cut from reads.

Texts are slices, translations, calls, CIGAR strings and aligned sequences; what compiled code knows of reads
and their matches with alleles stands here, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.alphabets import AMINO_ACID_OF_MASKS, IUPAC_MASK
from plait.dp.pairs.paths import put_run
from plait.errors import FormatError, Unsupported
from plait.formats.checkpoints import letters_of
from plait.lang.compile import kernel, shared

#: Offsets of a column are 32-bit.
_MOST_LETTERS = 2**31 - 1


def check_letters(count: int) -> None:
    """Unsupported if a column of so many letters cannot be."""
    if count > _MOST_LETTERS:
        why = f"a column of a block holds {_MOST_LETTERS:,} at most"
        raise Unsupported(f"a block of {count:,} letters", why=why)


def text_array(
    letters: NDArray[np.uint8],
    starts: NDArray[Any],
    known: NDArray[np.bool_] | None = None,
    *,
    kind: pa.DataType | None = None,
) -> pa.Array:
    """A column over ASCII letters, which it keeps alive; null where not `known`. `starts` are (n + 1,).

    `kind` is ``pyarrow.string()``, the default, or ``pyarrow.binary()``.
    """
    check_letters(int(starts[-1] - starts[0]))
    flat = np.ascontiguousarray(letters[starts[0] : starts[-1]])
    offsets = np.ascontiguousarray(starts - starts[0], np.int32)
    nulls = None if known is None or known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    buffers = [nulls, pa.py_buffer(offsets), pa.py_buffer(flat)]
    return pa.Array.from_buffers(kind or pa.string(), starts.size - 1, buffers)


def owners(starts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Which run each of n rows belongs to.

    >>> owners(np.array([0, 2]), 5).tolist()
    [0, 0, 1, 1, 1]
    """
    return np.repeat(np.arange(starts.size), np.diff(np.append(starts, n)))


def edges_of(sizes: NDArray[Any]) -> NDArray[np.int64]:
    """Where groups of so many entries begin, and the end of the last."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def take_groups(
    edges: NDArray[np.int64], which: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which entries the groups `which` have, and where those of each begin; `edges` are (groups + 1,)."""
    sizes = edges[which + 1] - edges[which]
    taken = edges_of(sizes)
    return np.repeat(edges[which] - taken[:-1], sizes) + np.arange(taken[-1]), taken


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A table of n rows; a field is an array, (n, ...), of NumPy or Arrow, a `Groups` of n, or a table."""

    def columns(self) -> list[Any]:
        """The fields in order."""
        return [getattr(self, field.name) for field in fields(self)]

    def __len__(self) -> int:
        return len(self.columns()[0])

    def take(self, which: NDArray[Any]) -> Self:
        """Some of the rows: by number, int64 (m,), or where true, bool (n,)."""
        rows = np.flatnonzero(which) if which.dtype == np.bool_ else which
        if rows.size == len(self) and np.array_equal(rows, np.arange(rows.size)):
            return self
        return type(self)(*(_taken(own, rows) for own in self.columns()))

    @classmethod
    def join(cls, tables: Sequence[Self]) -> Self:
        """Tables, at least one, one behind the other."""
        filled = [table for table in tables if len(table)]
        if len(filled) == 1:
            return filled[0]
        columns = zip(*(table.columns() for table in tables), strict=True)
        return cls(*map(_joined, columns))

    def replaced(self, rows: NDArray[np.int64], other: Self) -> Self:
        """The table with others in the place of some rows, by number."""
        both, kept = self.join([self, other]), np.arange(len(self))
        kept[rows] = kept.size + np.arange(rows.size)
        return both.take(kept)


def _taken(column: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(column, pa.Array):
        return column.take(pa.array(rows))
    return column.take(rows) if isinstance(column, Rows) else column[rows]


def _joined(columns: Sequence[Any]) -> Any:
    if isinstance(columns[0], pa.Array):
        return pa.concat_arrays(columns)
    return columns[0].join(columns) if isinstance(columns[0], Rows) else np.concatenate(columns)


@dataclass(frozen=True, slots=True, eq=False)
class Groups(Rows):
    """A list of `values`, (m, ...), in each of n rows, with int64 (n + 1,) offsets `starts`."""

    values: NDArray[Any]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Values of each row."""
        return np.diff(self.starts)

    @property
    def first(self) -> NDArray[Any]:
        """The first value of each row; none is empty."""
        return self.values[self.starts[:-1]]

    def take(self, which: NDArray[np.int64]) -> Self:
        """The lists of some rows, by number."""
        entries, starts = take_groups(self.starts, which)
        return type(self)(self.values[entries], starts)

    @classmethod
    def join(cls, tables: Sequence[Self]) -> Self:
        """Lists of rows, one behind the other."""
        sizes = np.concatenate([own.sizes for own in tables])
        return cls(np.concatenate([own.values for own in tables]), edges_of(sizes))


_TRUE = ("T", "TRUE", "1")
_SKIPPED, _MISSING, _PAIRS, _GAPS = range(1, 5)


def _kinds() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for letters, kind in (("S", _SKIPPED), ("N", _MISSING), ("M=X", _PAIRS), ("ID", _GAPS)):
        for letter in letters:
            table[ord(letter)] = kind
    return table


_KIND = _kinds()


class Cigars(NamedTuple):
    """What the cigars of AIRR rows say, in bases; int64, shape (n,) each.

    `skipped` bases of the read and `missing` ones of the germline lie before the alignment; `gaps` are the
    bases of the one that the other lacks, within it.
    """

    skipped: NDArray[np.int64]
    missing: NDArray[np.int64]
    pairs: NDArray[np.int64]
    gaps: NDArray[np.int64]


def texts(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column as large strings, null where it is empty; all null where the batch does not have it."""
    place = batch.schema.get_field_index(name)
    if place < 0:
        return pa.nulls(batch.num_rows, pa.large_string())
    column = batch.column(place).cast(pa.large_string())
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.large_string()), column)


def integers(batch: pa.RecordBatch, name: str, *, source: str = "the table") -> NDArray[np.int64]:
    """A column of whole numbers that are not negative, -1 where there is none or no such column.

    FormatError, which names `source`, if a cell is something else.
    """
    place = batch.schema.get_field_index(name)
    if place < 0:
        return np.full(batch.num_rows, -1, np.int64)
    column = batch.column(place)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = texts(batch, name)
    try:
        # Some programs write whole numbers as 12.0.
        whole = column.cast(pa.float64()).cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FormatError(source, column=name, found=str(error), expected="whole numbers") from error
    values: NDArray[np.int64] = pc.fill_null(whole, -1).to_numpy(zero_copy_only=False)
    return values


def booleans(batch: pa.RecordBatch, name: str) -> NDArray[np.bool_]:
    """A column of truth values, text (``T``, ``true``, ``1``) or not; False where there is none."""
    place = batch.schema.get_field_index(name)
    if place < 0:
        return np.zeros(batch.num_rows, np.bool_)
    column = batch.column(place)
    if not pa.types.is_boolean(column.type):
        column = pc.is_in(pc.utf8_upper(texts(batch, name)), value_set=pa.array(_TRUE, pa.large_string()))
    return np.array(pc.fill_null(column, False), np.bool_)


def read_cigars(column: pa.Array) -> Cigars:
    """Read a column of cigars, whether or not they begin with what lies before the alignment."""
    data, starts = letters_of(column)
    n = starts.size - 1
    digit = (data >= ord("0")) & (data <= ord("9"))
    ends = np.flatnonzero(~digit)
    first = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64) if ends.size else ends
    # A length that is too long for a number is no cigar; the nonsense it gives is refused later.
    length = np.zeros(ends.size, np.int64)
    for place in range(int((ends - first).max(initial=0))):
        inside = first + place < ends
        values = data[np.minimum(first + place, data.size - 1)].astype(np.int64) - ord("0")
        length = np.where(inside, length * 10 + values, length)
    row = np.searchsorted(starts, ends, side="right") - 1
    kind = _KIND[data[ends]]
    aligned = (kind == _PAIRS) | (kind == _GAPS)
    before = np.cumsum(aligned)
    runs_before = np.concatenate([[0], before])[np.searchsorted(ends, starts[:-1])] if n else before[:0]
    leading = before == runs_before[row] if ends.size else aligned

    def total(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(row[chosen], length[chosen], n).astype(np.int64)

    return Cigars(
        total(leading & (kind == _SKIPPED)),
        total(leading & (kind == _MISSING)),
        total(kind == _PAIRS),
        total(kind == _GAPS),
    )


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
_GAP_LETTERS = (0, 68, 73)


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
                    at = put_run(out.letters, at, length, _GAP_LETTERS[kind])
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


def cigar_texts(reads: MatchedReads, matches: Matches) -> pa.Array:
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
