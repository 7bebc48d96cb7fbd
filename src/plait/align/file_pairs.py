"""The pairs of the sequences in files: which there are, and batches of them in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from plait.align.coded_files import CodedBlock, CodedFile
from plait.align.codes import PairBatch, code_list
from plait.errors import FormatError, InvalidInput
from plait.formats.duplicate_names import DuplicateName, NameRegister

__all__ = [
    "FilePairs",
    "PairStretch",
    "Pairing",
    "Survey",
    "batches_of",
    "codes_of",
]

#: The first query with the first target and so on; every query with every target; one query with all.
Pairing = Literal["order", "all", "one"]

#: Records among which names that come again are looked for where nothing depends on it.
_MOST_NAMES: Final = 1 << 22
#: A batch has at most so many pairs, residues and cells, or one pair.
_MOST_PAIRS: Final = 1 << 15
_MOST_RESIDUES: Final = 1 << 23
_MOST_CELLS: Final = 1 << 32


@dataclass(frozen=True, slots=True, eq=False)
class PairStretch:
    """Pairs of records of two blocks: ``query_rows[k]`` of one with ``target_rows[k]`` of the other.

    Attributes
    ----------
    queries, targets
        The blocks.
    query_rows, target_rows
        Numbers of records in them, int64, shape (pairs,).
    """

    queries: CodedBlock
    query_rows: NDArray[np.int64]
    targets: CodedBlock
    target_rows: NDArray[np.int64]

    def __len__(self) -> int:
        return self.query_rows.size

    @property
    def sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Residues of the queries and of the targets, shape (pairs,) each."""
        return self.queries.codes.sizes[self.query_rows], self.targets.codes.sizes[self.target_rows]

    @property
    def has_one_query(self) -> bool:
        """Whether one query is paired with all the targets."""
        return bool(self.query_rows[0] == self.query_rows[-1])

    @property
    def target_range(self) -> tuple[int, int]:
        """Number of the first target, and of the one after the last; they are neighbours."""
        return int(self.target_rows[0]), int(self.target_rows[-1]) + 1

    def rows(self) -> Iterator[tuple[int, int]]:
        """Numbers of the records of each pair."""
        return zip(self.query_rows.tolist(), self.target_rows.tolist(), strict=True)

    def part(self, first: int, last: int) -> PairStretch:
        """Neighbouring pairs.

        Parameters
        ----------
        first, last
            Number of the first, and of the one after the last.
        """
        rows = slice(first, last)
        return PairStretch(self.queries, self.query_rows[rows], self.targets, self.target_rows[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a first pass over the files has found.

    Attributes
    ----------
    records
        Records of the queries and of the targets.
    pairs
        Pairs that will be aligned.
    cells
        Cells of their matrices, in the band if there is one.
    duplicates
        For each file that has one: its first name that comes again, and how many do.
    """

    records: tuple[int, int]
    pairs: int
    cells: int
    duplicates: tuple[tuple[DuplicateName, int], ...]


class _Census:
    """Counts what the blocks of a file hold while they pass by."""

    def __init__(self, file: CodedFile, width: int, unique: bool) -> None:
        self._file = file
        self._width = width
        self._unique = unique
        self._register: NameRegister | None = NameRegister()
        self.records = self.residues = self.columns = 0
        #: Cells of each record with all records before it.
        self.cells_with_earlier = 0
        self.duplicates: list[tuple[DuplicateName, int]] = []

    def blocks(self) -> Iterator[CodedBlock]:
        for block in self._file.blocks():
            sizes = block.codes.sizes
            columns = np.minimum(sizes, self._width)
            before = np.cumsum(sizes) - sizes
            self.cells_with_earlier += int(columns @ before) + self.residues * int(columns.sum())
            self.records += len(block)
            self.residues += int(sizes.sum())
            self.columns += int(columns.sum())
            self._look_for_duplicates(block)
            yield block

    def _look_for_duplicates(self, block: CodedBlock) -> None:
        if not self._unique and self.records > _MOST_NAMES:
            self._register = None
        if self._register is None:
            return
        found = self._register.add(self._file.path, block.sequences)
        if found and self._unique:
            raise _not_unique(found[0])
        if found:
            first, count = self.duplicates[0] if self.duplicates else (found[0], 0)
            self.duplicates = [(first, count + len(found))]


def _not_unique(duplicate: DuplicateName) -> FormatError:
    error = duplicate.error()
    return FormatError(
        error.path,
        line=error.line,
        found=error.found,
        expected=error.expected,
        hint="SAM refers to targets by name; rename it, or choose another format",
    )


class FilePairs:
    """The pairs of the sequences of two files, or of one.

    Parameters
    ----------
    queries
        The file of the queries.
    targets
        That of the targets. Without it every record of `queries` is paired with all that follow it there.
    pairing
        Which pairs there are.

    Raises
    ------
    InvalidInput
        If the pairing does not go with the number of files.
    """

    def __init__(self, queries: CodedFile, targets: CodedFile | None, pairing: Pairing) -> None:
        if pairing not in ("order", "all", "one"):
            raise InvalidInput("pairs", found=repr(pairing), expected="order, all or one")
        if targets is None and pairing != "all":
            raise InvalidInput(
                "pairs",
                found=f"{pairing!r} and one file",
                expected="two files, or 'all' for every pair of records of one file",
            )
        self._queries = queries
        self._targets = targets
        self._pairing = pairing

    def survey(self, *, width: int | None = None, unique_targets: bool = False) -> Survey:
        """Read the files once, to count and to check them.

        Parameters
        ----------
        width
            Columns of a row that are visited, if there is a band.
        unique_targets
            Whether names of targets have to differ.

        Raises
        ------
        InvalidInput
            If the numbers of records do not go with the pairing.
        FormatError
            If a file is no FASTA file, a letter is not in the matrix, or a name comes again that must not.
        """
        width = np.iinfo(np.int64).max if width is None else width
        if self._targets is None:
            own = _Census(self._queries, width, unique_targets)
            _run_through(own.blocks())
            count = own.records
            if count == 1:
                raise InvalidInput(
                    "pairs",
                    found=f"a single sequence in {self._queries.path}",
                    expected="two files, or one with several sequences",
                )
            return Survey(
                records=(count, count),
                pairs=count * (count - 1) // 2,
                cells=own.cells_with_earlier,
                duplicates=tuple(own.duplicates),
            )
        rows = _Census(self._queries, width, False)
        columns = _Census(self._targets, width, unique_targets)
        if self._pairing == "order":
            pairs = cells = 0
            for stretch in _in_order(rows.blocks(), columns.blocks()):
                sizes = stretch.sizes
                pairs += len(stretch)
                cells += int(sizes[0] @ np.minimum(sizes[1], width))
        else:
            _run_through(rows.blocks())
            _run_through(columns.blocks())
            pairs, cells = rows.records * columns.records, rows.residues * columns.columns
        self._check_counts(rows.records, columns.records)
        return Survey(
            records=(rows.records, columns.records),
            pairs=pairs,
            cells=cells,
            duplicates=(*rows.duplicates, *columns.duplicates),
        )

    def _check_counts(self, queries: int, targets: int) -> None:
        own = f"{queries:,} in {self._queries.path}"
        other = f"{targets:,} in {self._targets.path}" if self._targets else ""
        if self._pairing == "order" and queries != targets:
            hint = "one query with all targets is --pairs one, each with each is --pairs all"
            raise InvalidInput(
                "pairs",
                found=f"sequences: {own} and {other}",
                expected="as many of each to pair them by their order",
                hint=hint,
            )
        if self._pairing == "one" and queries != 1:
            raise InvalidInput(
                "pairs",
                found=f"sequences: {own}",
                expected="a single one to pair with all targets",
                hint="each with each is --pairs all",
            )

    def stretches(self) -> Iterator[PairStretch]:
        """All pairs in order of the queries, and for each query in order of the targets."""
        if self._targets is None:
            return _within(self._queries)
        if self._pairing == "order":
            return _in_order(self._queries.blocks(), self._targets.blocks())
        return _all_against_all(self._queries, self._targets)


def _run_through(blocks: Iterable[CodedBlock]) -> None:
    for _ in blocks:
        pass


def _in_order(queries: Iterator[CodedBlock], targets: Iterator[CodedBlock]) -> Iterator[PairStretch]:
    i = j = 0
    left, right = next(queries, None), next(targets, None)
    while left is not None and right is not None:
        count = min(len(left) - i, len(right) - j)
        yield PairStretch(left, np.arange(i, i + count), right, np.arange(j, j + count))
        i, j = i + count, j + count
        if i == len(left):
            left, i = next(queries, None), 0
        if j == len(right):
            right, j = next(targets, None), 0
    # The survey counts the records of both, also where one file has more.
    _run_through(queries)
    _run_through(targets)


def _all_against_all(queries: CodedFile, targets: CodedFile) -> Iterator[PairStretch]:
    for block in queries.blocks():
        for row in range(len(block)):
            for other in targets.blocks():
                yield PairStretch(block, np.full(len(other), row), other, np.arange(len(other)))


def _within(file: CodedFile) -> Iterator[PairStretch]:
    for block in file.blocks():
        for row in range(len(block)):
            number = block.first + row
            for other in file.blocks():
                rows = np.arange(max(number + 1 - other.first, 0), len(other))
                if rows.size:
                    yield PairStretch(block, np.full(rows.size, row), other, rows)


def batches_of(stretches: Iterable[PairStretch], *, width: int | None = None) -> Iterator[list[PairStretch]]:
    """Put pairs together to batches of bounded memory and work, in order.

    Parameters
    ----------
    stretches
        The pairs.
    width
        Columns of a row that are visited, if there is a band.
    """
    held: list[PairStretch] = []
    load = 0.0
    for stretch in stretches:
        loads = np.cumsum(_loads(stretch, width))
        first = 0
        while first < len(stretch):
            done = float(loads[first - 1]) if first else 0.0
            last = int(np.searchsorted(loads, done + 1.0 - load, "right"))
            if last <= first and not held:
                last = first + 1
            if last > first:
                held.append(stretch.part(first, last))
                load += float(loads[last - 1]) - done
                first = last
            if first < len(stretch):
                yield held
                held, load = [], 0.0
    if held:
        yield held


def _loads(stretch: PairStretch, width: int | None) -> NDArray[np.float64]:
    """The share of a batch that each pair takes: of its pairs, residues or cells, whichever is most."""
    rows, columns = stretch.sizes
    visited = columns if width is None else np.minimum(columns, width)
    by_cells = rows * visited.astype(np.float64) / _MOST_CELLS
    by_residues = (rows + columns) / _MOST_RESIDUES
    return np.maximum(np.maximum(by_cells, by_residues), 1.0 / _MOST_PAIRS)


def codes_of(batch: Sequence[PairStretch]) -> PairBatch:
    """The codes of all pairs of a batch."""
    return PairBatch(
        code_list([s.queries.codes[row] for s in batch for row in s.query_rows.tolist()]),
        code_list([s.targets.codes[row] for s in batch for row in s.target_rows.tolist()]),
    )
