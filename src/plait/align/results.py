"""The alignment of two sequences: coordinates, CIGAR, counts over its columns, and how it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from plait.dp.pairs.lists import describe_kernel
from plait.dp.pairs.paths import COUNTS, PathColumns, Paths, describe_paths
from plait.errors import InvalidInput
from plait.types import Tabular

if TYPE_CHECKING:
    from plait.align.scoring import Scoring

_Bytes = NDArray[np.uint8]
_Runs = tuple[NDArray[np.uint8], NDArray[np.int64]]

MATCH, MISMATCH, INSERTION, DELETION = (ord(letter) for letter in "=XID")

_BLOCK_COLUMNS = 1 << 20
#: Longer numbers do not fit into 63 bits.
_MOST_DIGITS = 18
# Possessive: a long CIGAR leaves nothing to go back to.
_RUNS = re.compile(rf"(?:[1-9][0-9]{{0,{_MOST_DIGITS - 1}}}[=XID])*")
_NUMBERS = str.maketrans("=XID", "    ")
_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


class ColumnBlock(NamedTuple):
    """Columns of an alignment, one behind the other; uint8 arrays of one length.

    `operations` are `MATCH`, `MISMATCH`, `INSERTION` or `DELETION`; a sequence has the gap symbol where it
    has nothing.
    """

    operations: NDArray[np.uint8]
    query: NDArray[np.uint8]
    target: NDArray[np.uint8]


def parse_cigar(cigar: str) -> _Runs:
    """Runs of a CIGAR string: letters (``=XID`` in ASCII, uint8) and lengths (int64), (r,) each.

    The string ``""`` has no runs. `InvalidInput` if there is anything else, a letter without a number, or a
    number that is 0, begins with 0 or does not fit.

    >>> operations, lengths = parse_cigar("12=1X3D")
    >>> operations.tobytes(), lengths.tolist()
    (b'=XD', [12, 1, 3])
    """
    good = _RUNS.match(cigar)
    place = good.end() if good else 0
    if place < len(cigar):
        raise InvalidInput(
            "cigar",
            found=f"{cigar[place : place + 20]!r} at character {place + 1}",
            expected="runs of =, X, I and D such as 12=1X3D, none of them empty",
        )
    operations = np.frombuffer(cigar.translate(_WITHOUT_DIGITS).encode("ascii"), np.uint8)
    return operations, np.array([int(number) for number in cigar.translate(_NUMBERS).split()], np.int64)


def column_blocks(
    runs: _Runs,
    query: _Bytes,
    target: _Bytes,
    *,
    gap: int,
    columns: int = _BLOCK_COLUMNS,
) -> Iterator[ColumnBlock]:
    """Columns of an alignment in pieces, each but the last of `columns` columns.

    `query` and `target` are letters or codes of the aligned regions, exactly as long as the runs (of
    `parse_cigar`) say; `gap` stands where a sequence has no residue.
    """
    operations, lengths = runs
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    query_at = target_at = 0
    for start in range(0, total, columns):
        stop = min(start + columns, total)
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, stop, side="left")) + 1
        here = ends[first:last]
        inside = np.minimum(here, stop) - np.maximum(here - lengths[first:last], start)
        row = np.repeat(operations[first:last], inside)
        query_row, target_row = np.full((2, stop - start), gap, np.uint8)
        # The residues of a sequence lie in the columns in order, so a slice of it fills them.
        filled = row != DELETION
        used = int(np.count_nonzero(filled))
        query_row[filled] = query[query_at : query_at + used]
        query_at += used
        filled = row != INSERTION
        used = int(np.count_nonzero(filled))
        target_row[filled] = target[target_at : target_at + used]
        target_at += used
        yield ColumnBlock(row, query_row, target_row)


def aligned_regions(alignment: Alignment, query: _Bytes, target: _Bytes) -> tuple[_Runs, _Bytes, _Bytes]:
    """Runs of an alignment, as of `parse_cigar`, and the parts of the whole sequences that they cover.

    Sequences are letters or codes. `InvalidInput` if one ends before the coordinates do, or the CIGAR covers
    another number of residues.
    """
    runs = parse_cigar(alignment.cigar)
    regions = []
    for name, sequence, start, end, skipped in (
        ("query", query, alignment.query_start, alignment.query_end, DELETION),
        ("target", target, alignment.target_start, alignment.target_end, INSERTION),
    ):
        if not 0 <= start <= end <= len(sequence):
            raise InvalidInput(
                name,
                found=f"a sequence of {len(sequence)} residues",
                expected=f"the one that was aligned, from {start} to {end}",
            )
        used = int(runs[1][runs[0] != skipped].sum())
        if used != end - start:
            raise InvalidInput(
                "cigar",
                found=f"{used} residues of the {name}",
                expected=f"{end - start} as its coordinates say",
            )
        regions.append(sequence[start:end])
    return runs, regions[0], regions[1]


#: Characters of a number of columns, at most, and its letter.
_RUN_CHARACTERS = 20


def describe(paths: Paths, *, interpreted: bool = False) -> PathColumns:
    """Counts and CIGARs of n paths; `InvalidInput` if a path leaves its sequences."""
    n = len(paths.run_offsets) - 1
    # A run of pairs can fall apart into columns, each with a number of one digit.
    pairs = int(paths.runs[paths.runs[:, 0] == 0, 1].sum())
    room = 2 * pairs + _RUN_CHARACTERS * (len(paths.runs) + 1)
    counts, bounds = np.zeros((n, len(COUNTS)), np.int64), np.zeros(n + 1, np.int64)
    out = PathColumns(counts, np.empty(room, np.uint8), bounds)
    wrong = int((describe_paths if interpreted else describe_kernel)(paths, out))
    if wrong >= 0:
        found = (
            f"pair {wrong}, which ends at query {paths.query_ends[wrong]}, target {paths.target_ends[wrong]}"
        )
        raise InvalidInput("runs", found=found, expected="a path inside its sequences")
    return out._replace(cigars=out.cigars[: out.bounds[-1]].copy())


_GAP = ord("-")
#: Lines that are laid out at a time.
_BLOCK_LINES = 4096
#: Columns before the residues. Readers of the format cut every line there.
_MARGIN = 21
_FEWEST_DIGITS = 6
_RULE = "#" + 39 * "="
_IDENTICAL, _POSITIVE, _OTHER, _BLANK = (ord(mark) for mark in "|:. ")


def aligned_strings(alignment: Alignment, query: str | bytes, target: str | bytes) -> tuple[str, str]:
    """The aligned regions, with ``-`` where a sequence has a gap: two strings of one length.

    Letters are as given; `query` and `target` are the whole sequences, as they were aligned. `InvalidInput`
    if one is shorter than the coordinates say, or not ASCII.
    """
    aligned = aligned_regions(alignment, _letters("query", query), _letters("target", target))
    blocks = list(column_blocks(*aligned, gap=_GAP))
    first = b"".join(block.query.tobytes() for block in blocks)
    second = b"".join(block.target.tobytes() for block in blocks)
    return first.decode("ascii"), second.decode("ascii")


def alignment_lines(
    alignment: Alignment,
    query: str | bytes,
    target: str | bytes,
    *,
    names: tuple[str, str] = ("query", "target"),
    width: int = 60,
) -> Iterator[str]:
    """Lines, with line ends, of one alignment in EMBOSS's pair format (``srspair``), laid out piece by piece.

    Between the rows, ``|`` marks a match, ``:`` a mismatch of positive score, ``.`` any other mismatch.
    Coordinates are 1-based; a line without residues of a sequence shows how many came before it. `query` and
    `target` are the whole sequences, as they were aligned; rows show the first 13 characters of their names,
    fewer in front of long numbers, and `width` columns. `InvalidInput` if a sequence is shorter than the
    coordinates say, or has a letter the matrix lacks.

    Source: https://emboss.sourceforge.net/docs/themes/AlignFormats.html. EMBOSS itself leaves out the mark of
    a match that does not score, such as N with N; here the number of ``|`` is the identity.
    """
    if width < 1:
        raise InvalidInput("width", found=width, expected="at least 1")
    aligned = aligned_regions(alignment, _letters("query", query), _letters("target", target))
    yield from _header(alignment, names).splitlines(keepends=True)
    digits = max(_FEWEST_DIGITS, len(str(max(alignment.query_end, alignment.target_end))))
    label = _MARGIN - 2 - digits
    shown = [f"{name[:label]:<{label}}" for name in names]
    at = [alignment.query_start, alignment.target_start]
    for block in column_blocks(*aligned, gap=_GAP, columns=width * _BLOCK_LINES):
        rows = [block.query.tobytes().decode("ascii"), block.target.tobytes().decode("ascii")]
        marks = _marks(alignment, block.operations, block.query, block.target).tobytes().decode("ascii")
        for start in range(0, len(marks), width):
            lines = []
            for side in (0, 1):
                letters = rows[side][start : start + width]
                used = len(letters) - letters.count("-")
                first, at[side] = at[side] + (used > 0), at[side] + used
                lines.append(f"{shown[side]} {first:>{digits}} {letters} {at[side]:>{digits}}\n")
            yield lines[0]
            yield f"{' ' * _MARGIN}{marks[start : start + width]}\n"
            yield lines[1]
            yield "\n"
    yield "\n"


def _header(alignment: Alignment, names: tuple[str, str]) -> str:
    scoring = alignment.scoring
    length = alignment.length
    counts = {"Identity:": alignment.matches, "Similarity:": alignment.similar, "Gaps:": alignment.gaps}
    shares = "".join(
        f"# {title:<11} {count:>5}/{length} ({100 * count / length if length else 0.0:4.1f}%)\n"
        for title, count in counts.items()
    )
    return (
        f"{_RULE}\n#\n# Aligned_sequences: 2\n# 1: {names[0]}\n# 2: {names[1]}\n"
        f"# Matrix: {scoring.matrix.name}\n# Gap_penalty: {scoring.gap_open}.0\n"
        f"# Extend_penalty: {scoring.gap_extend}.0\n#\n# Length: {length}\n{shares}"
        f"# Score: {alignment.score}.0\n#\n#\n{_RULE}\n\n"
    )


def _marks(
    alignment: Alignment,
    operations: NDArray[np.uint8],
    query: NDArray[np.uint8],
    target: NDArray[np.uint8],
) -> NDArray[np.uint8]:
    marks = np.full(len(operations), _BLANK, np.uint8)
    marks[operations == MATCH] = _IDENTICAL
    different = np.flatnonzero(operations == MISMATCH)
    if not len(different):
        return marks
    matrix = alignment.scoring.matrix
    first, second = matrix.codes[query[different]], matrix.codes[target[different]]
    known = len(matrix.letters)
    for name, codes, letters in (("query", first, query), ("target", second, target)):
        if (codes >= known).any():
            letter = chr(letters[different[np.argmax(codes >= known)]])
            raise InvalidInput(name, found=f"the letter {letter!r}", expected=f"letters of {matrix.name}")
    positive = matrix.scores[first, second] > 0
    marks[different] = np.where(positive, np.uint8(_POSITIVE), np.uint8(_OTHER))
    return marks


def _letters(name: str, sequence: str | bytes) -> NDArray[np.uint8]:
    if not sequence.isascii():
        letters = sequence if isinstance(sequence, str) else sequence.decode("latin-1")
        foreign = next(letter for letter in letters if not letter.isascii())
        raise InvalidInput(name, found=f"the letter {foreign!r}", expected="ASCII letters")
    return np.frombuffer(sequence.encode("ascii") if isinstance(sequence, str) else sequence, np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """An alignment of a query to a target. Coordinates are 0-based and half-open.

    Residues outside the coordinates are not aligned, which costs nothing in the mode that was asked for. An
    alignment without columns has score 0 (or what its mode says of empty sequences) and an empty CIGAR.

    Attributes
    ----------
    score
        Sum over the columns.
    query_start, query_end, target_start, target_end
        What is aligned of the two.
    cigar
        The columns: ``=`` match, ``X`` mismatch, ``I`` residue of the query alone, ``D`` of the target alone.
    matches
        Columns with one letter twice; case does not matter, U is T in nucleotides, and an ambiguity code
        matches itself. Letters that the matrix has not are what they are scored as.
    mismatches
        Columns with two different letters.
    similar
        Columns with a positive substitution score: what EMBOSS calls similarity.
    gaps
        Columns with one residue.
    gap_openings
        Runs of such columns.
    scoring
        What it was scored with; left out of comparisons.
    query, target
        The whole sequences, if they are known; left out of comparisons.
    """

    score: int
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    cigar: str
    matches: int
    mismatches: int
    similar: int
    gaps: int
    gap_openings: int
    scoring: Scoring = field(repr=False, compare=False)
    query: str | bytes | None = field(default=None, repr=False, compare=False)
    target: str | bytes | None = field(default=None, repr=False, compare=False)

    @property
    def length(self) -> int:
        """Number of columns."""
        return self.matches + self.mismatches + self.gaps

    @property
    def identity(self) -> float:
        """Matches as a share of the columns, 0 to 1; 0 without columns."""
        return self.matches / self.length if self.length else 0.0

    @property
    def similarity(self) -> float:
        """Columns of positive score as a share of the columns, 0 to 1; 0 without columns."""
        return self.similar / self.length if self.length else 0.0

    @property
    def coordinates(self) -> NDArray[np.int64]:
        """Where aligned stretches and gaps begin and end, as in Biopython: query and target, (2, n)."""
        operations, lengths = parse_cigar(self.cigar)
        steps = np.stack([np.where(operations == skipped, 0, lengths) for skipped in (DELETION, INSERTION)])
        places = np.cumsum(np.insert(steps, 0, (self.query_start, self.target_start), axis=1), axis=1)
        kinds = np.where(operations == MISMATCH, MATCH, operations)
        # Matches and mismatches are one stretch.
        kept = np.ones(places.shape[1], np.bool_)
        kept[1:-1] = kinds[1:] != kinds[:-1]
        return places[:, kept]

    def __format__(self, form: str) -> str:
        if form == "cigar":
            return self.cigar
        if form not in ("", "text", "fasta"):
            raise InvalidInput("format", found=repr(form), expected="text, fasta or cigar")
        if form == "" and (self.query is None or self.target is None):
            return str(self)
        if form == "fasta":
            rows = aligned_strings(self, *self._sequences(None, None))
            return ">query\n{}\n>target\n{}\n".format(*rows)
        return self.text()

    def _sequences(
        self, query: str | bytes | None, target: str | bytes | None
    ) -> tuple[str | bytes, str | bytes]:
        given = self.query if query is None else query, self.target if target is None else target
        if given[0] is None or given[1] is None:
            raise InvalidInput(
                "query" if given[0] is None else "target", found="none", expected="what was aligned"
            )
        return given[0], given[1]

    def text(
        self,
        query: str | bytes | None = None,
        target: str | bytes | None = None,
        *,
        query_name: str = "query",
        target_name: str = "target",
        width: int = 60,
    ) -> str:
        """The alignment as EMBOSS shows it (format srspair).

        Parameters
        ----------
        query, target
            The whole sequences, as they were aligned; by default those of the alignment, if it has them.
        query_name, target_name
            Stand in front of the rows.
        width
            Columns in a line.

        Returns
        -------
        str
            A header and the rows, with 1-based coordinates. `alignment_lines` gives the same line by
            line, for alignments that are long.

        Raises
        ------
        InvalidInput
            If a sequence is not known, shorter than the coordinates say or has a letter the matrix lacks.
        """
        names = (query_name, target_name)
        return "".join(alignment_lines(self, *self._sequences(query, target), names=names, width=width))


#: Columns of numbers, in the order of `Alignment`: score and ends, then counts.
_ENDS: Final = ("score", "query_start", "query_end", "target_start", "target_end")
_COLUMNS: Final = (*_ENDS, *COUNTS[2:])
_Letters = str | bytes


class Alignments(Tabular, Sequence[Alignment]):
    """Alignments as columns; each becomes an `Alignment` when it is asked for.

    It is a sequence of them, equal to a list of equal ones. `to_arrow` has a row for each, with the columns
    below and ``cigar``.

    Parameters
    ----------
    alignments
        Alignments of one scoring.

    Attributes
    ----------
    score, query_start, query_end, target_start, target_end
        As of an `Alignment`, int64. Shape (n,).
    matches, mismatches, similar, gaps, gap_openings
        Numbers of columns of each kind, int64. Shape (n,).
    length, identity, similarity
        Columns of each, int64, and, as shares of them, matches and columns of positive score, float64. Shape
        (n,).
    cigar_letters
        All CIGARs in ASCII, one behind the other, uint8. Shape (letters,).
    cigar_offsets
        Where each CIGAR begins and the last ends, int64. Shape (n + 1,).
    """

    __slots__ = ("_numbers", "_scoring", "_sequences", "cigar_letters", "cigar_offsets")

    def __init__(self, alignments: Iterable[Alignment] = ()) -> None:
        given = list(alignments)
        self._numbers = np.array(
            [[getattr(own, name) for name in _COLUMNS] for own in given], np.int64
        ).reshape(-1, len(_COLUMNS))
        cigars = [own.cigar for own in given]
        self.cigar_letters = np.frombuffer("".join(cigars).encode("ascii"), np.uint8)
        self.cigar_offsets = np.concatenate(
            [np.zeros(1, np.int64), np.cumsum([*map(len, cigars)], dtype=np.int64)]
        )
        self._scoring = given[0].scoring if given else None
        kept = [(own.query, own.target) for own in given]
        self._sequences: tuple[Sequence[Any], Sequence[Any]] | None = None
        if any(one is not None or other is not None for one, other in kept):
            self._sequences = [one for one, _ in kept], [other for _, other in kept]

    @classmethod
    def of_columns(
        cls,
        numbers: NDArray[np.int64],
        letters: _Bytes,
        offsets: NDArray[np.int64],
        scoring: Scoring | None,
        sequences: tuple[Sequence[_Letters], Sequence[_Letters]] | None = None,
    ) -> Alignments:
        """Alignments from their columns.

        Parameters
        ----------
        numbers
            Those that are attributes, in the order of `Alignment`. Shape (n, 10).
        letters, offsets
            As `cigar_letters` and `cigar_offsets`.
        scoring
            What they were scored with.
        sequences
            All queries and all targets, if they are to be known.
        """
        made = cls.__new__(cls)
        made._numbers, made.cigar_letters, made.cigar_offsets = numbers, letters, offsets
        made._scoring, made._sequences = scoring, sequences
        return made

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Alignment]:
        n = len(self)
        queries, targets = self._sequences or ([None] * n, [None] * n)
        rows = zip(self._numbers.tolist(), self.cigars, queries, targets, strict=True)
        return (self._one(*row) for row in rows)

    @overload
    def __getitem__(self, which: int, /) -> Alignment: ...
    @overload
    def __getitem__(self, which: slice, /) -> Alignments: ...
    def __getitem__(self, which: int | slice, /) -> Alignment | Alignments:
        if isinstance(which, slice):
            return self.take(np.arange(len(self))[which])
        at = range(len(self))[which]
        first, last = self.cigar_offsets[at : at + 2].tolist()
        cigar = self.cigar_letters[first:last].tobytes().decode("ascii")
        queries, targets = self._sequences or ({at: None}, {at: None})
        return self._one(self._numbers[at].tolist(), cigar, queries[at], targets[at])

    def _one(
        self, numbers: list[int], cigar: str, query: _Letters | None, target: _Letters | None
    ) -> Alignment:
        score, query_start, query_end, target_start, target_end, *counts = numbers
        ends = score, query_start, query_end, target_start, target_end
        assert self._scoring is not None
        return alignment_of(ends, cigar, counts, self._scoring, query, target)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | Alignments):
            return NotImplemented
        return len(self) == len(other) and all(map(Alignment.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __getattr__(self, name: str) -> NDArray[np.int64]:
        if name not in _COLUMNS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        column: NDArray[np.int64] = self._numbers[:, _COLUMNS.index(name)]
        return column

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_COLUMNS]

    @property
    def length(self) -> NDArray[np.int64]:
        """Number of columns of each."""
        return np.asarray(self.matches + self.mismatches + self.gaps)

    @property
    def identity(self) -> NDArray[np.float64]:
        """Matches as a share of the columns of each, 0 to 1; 0 without columns."""
        return self.matches / np.maximum(self.length, 1)

    @property
    def similarity(self) -> NDArray[np.float64]:
        """Columns of positive score as a share of the columns of each, 0 to 1; 0 without columns."""
        return self.similar / np.maximum(self.length, 1)

    @property
    def cigars(self) -> list[str]:
        """All CIGARs."""
        whole = self.cigar_letters.tobytes().decode("ascii")
        return [whole[a:b] for a, b in pairwise(self.cigar_offsets.tolist())]

    def take(self, which: NDArray[np.int64]) -> Alignments:
        """Some of the alignments, in any order.

        Parameters
        ----------
        which
            Their places, from 0.
        """
        sizes = np.diff(self.cigar_offsets)[which]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        places = np.repeat(self.cigar_offsets[which] - offsets[:-1], sizes) + np.arange(offsets[-1])
        sequences = self._sequences
        if sequences is not None:
            sequences = [sequences[0][k] for k in which], [sequences[1][k] for k in which]
        letters = self.cigar_letters[places]
        return self.of_columns(self._numbers[which], letters, offsets, self._scoring, sequences)

    def of(self, queries: Sequence[_Letters], targets: Sequence[_Letters]) -> Alignments:
        """The same, with the sequences known.

        Parameters
        ----------
        queries, targets
            The whole sequences of each.
        """
        columns = self._numbers, self.cigar_letters, self.cigar_offsets
        return self.of_columns(*columns, self._scoring, (queries, targets))

    def _table(self, rows: int | None) -> Any:
        import pyarrow as pa

        own = self if rows is None else self[:rows]
        columns = {name: pa.array(own._numbers[:, k]) for k, name in enumerate(_COLUMNS)}
        bounds, letters = pa.py_buffer(own.cigar_offsets.copy()), pa.py_buffer(own.cigar_letters.copy())
        cigars = pa.LargeStringArray.from_buffers(len(own), bounds, letters).cast(pa.string())
        names = [*_ENDS, "cigar", *_COLUMNS[len(_ENDS) :]]
        return pa.table({name: columns.get(name, cigars) for name in names})


def alignment_of(
    ends: Sequence[int],
    cigar: str,
    counts: Sequence[int],
    scoring: Scoring,
    query: _Letters | None = None,
    target: _Letters | None = None,
) -> Alignment:
    """An alignment of score and ends, in its order, and numbers of columns, in that of `COUNTS`."""
    score, query_start, query_end, target_start, target_end = ends
    matches, mismatches, similar, gaps, gap_openings = counts
    return Alignment(
        score=score,
        query_start=query_start,
        query_end=query_end,
        target_start=target_start,
        target_end=target_end,
        cigar=cigar,
        matches=matches,
        mismatches=mismatches,
        similar=similar,
        gaps=gaps,
        gap_openings=gap_openings,
        scoring=scoring,
        query=query,
        target=target,
    )


def join_alignments(parts: Sequence[Alignments]) -> Alignments:
    """The alignments of all parts, one part behind the other; of one scoring, without their sequences."""
    filled = [part for part in parts if len(part)]
    if len(filled) == 1 or not filled:
        return filled[0] if filled else Alignments()
    sizes = np.concatenate([np.diff(part.cigar_offsets) for part in filled])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    numbers = np.concatenate([part._numbers for part in filled])
    letters = np.concatenate([part.cigar_letters for part in filled])
    return Alignments.of_columns(numbers, letters, offsets, filled[0]._scoring)


def make_alignment(
    query_codes: NDArray[np.uint8],
    target_codes: NDArray[np.uint8],
    scoring: Scoring,
    score: int,
    query_end: int,
    target_end: int,
    runs: NDArray[np.int64],
    *,
    interpreted: bool = False,
) -> Alignment:
    """An alignment from the path of one pair, which ends at `query_end` and `target_end`, exclusive.

    Codes are indices into the matrix. `runs`, (r, 2), are operation and number of columns, in the order of
    the sequences: operation 0 is a pair of residues, 1 a residue of the target alone, 2 one of the query
    alone. Runs may be empty, and neighbours may be of one operation; they are one run of the alignment then.
    `InvalidInput` if the path is longer than the sequences before its end.
    """
    zero, ends = np.zeros(1, np.int64), np.array([query_end, target_end], np.int64)
    places = (zero, zero, ends[:1], ends[1:])
    bounds = np.array([0, len(runs)], np.int64)
    paths = Paths(query_codes, target_codes, *places, scoring.matrix.scores, runs, bounds)
    return make_alignments(paths, scoring, np.array([score], np.int64), interpreted=interpreted)[0]


def make_alignments(
    paths: Paths, scoring: Scoring, scores: NDArray[np.int64], *, interpreted: bool = False
) -> Alignments:
    """Alignments from the paths of n pairs, all at once, in order of the pairs; `scores` are (n,).

    Pairs may share sequences. `InvalidInput` if a path is longer than the sequences before its end.
    """
    found = describe(Paths(*map(np.ascontiguousarray, paths)), interpreted=interpreted)
    counts, numbers = found.counts, np.empty((len(scores), len(_COLUMNS)), np.int64)
    for place, column in enumerate((scores, counts[:, 0], paths.query_ends, counts[:, 1], paths.target_ends)):
        numbers[:, place] = column
    numbers[:, len(_ENDS) :] = counts[:, 2:]
    return Alignments.of_columns(numbers, found.cigars, found.bounds, scoring)
