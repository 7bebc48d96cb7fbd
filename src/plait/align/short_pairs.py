"""Single short pairs, one call after the other, in memory and with arguments laid out once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.align.batches import PairSweep, code_list
from plait.align.scoring import NO_CODE
from plait.dp.bitparallel.edit_lists import KEPT_SIZES, OneEdit
from plait.dp.bitparallel.edits import (
    MOST_LETTERS,
    EditBatch,
    EditScale,
    edit_batch,
    edit_pairs_kernel,
    unit_costs,
)
from plait.dp.pairs import lists
from plait.dp.pairs.gaps import AffineGap
from plait.dp.pairs.lists import (
    PairResults,
    align_kernel_of,
    make_memory,
    make_setup,
    read_only,
)
from plait.dp.pairs.paths import COUNTS, PathColumns, Paths
from plait.dp.pairs.rows import SHORT_RESULT, Ends, ShortMemory, align_short_kernel, short_memory
from plait.dp.pairs.scores import PairTable
from plait.lang.algebras import MaxPlus
from plait.lang.compile import bound

#: Residues of the longest sequence in lanes, and in words.
_MOST_IN_LANES: Final = 1 << 9
MOST_RESIDUES: Final = KEPT_SIZES[-1]
#: Cells of a pair that takes less time by itself, cell by cell, than lanes need to start.
_FEW_CELLS: Final = 3 << 10
_ILLEGAL: Final = bytes([NO_CODE])
#: Scores and costs that fit the lanes.
_NARROW: Final = 127

#: Score, query end and target end; the counts of `plait.dp.pairs.paths.COUNTS`; and the CIGAR.
ShortResult = tuple[list[int], list[int], str]
#: Codes of query and target.
_Sides = tuple[NDArray[np.uint8], NDArray[np.uint8]]


class ShortPairs:
    """Single pairs, neither sequence empty; any number of threads may ask.

    Of unit costs they have up to 16,384 residues, else up to 512.
    """

    def __init__(self, pairs: PairSweep) -> None:
        self._pairs = pairs
        self._by_cells = _ByCells(pairs)

    @cached_property
    def _in_lanes(self) -> _Kept | None:
        scoring = self._pairs.scoring
        largest = max(int(np.abs(scoring.matrix.scores).max()), scoring.gap_open)
        if largest > _NARROW:
            return None
        # Every letter occurs in what the lists are made ready for.
        codes = np.resize(np.arange(len(scoring.matrix.letters), dtype=np.uint8), _MOST_IN_LANES)
        return _Kept(scoring.matrix.codes, (_MOST_IN_LANES,), lambda _: _InLanes(self._pairs, codes))

    @cached_property
    def _in_words(self) -> tuple[_Kept, _Kept] | None:
        matrix = self._pairs.scoring.matrix
        # Other letters of nucleotides, which have other scores, are seldom.
        letters = min(len(matrix.letters), 4 if matrix.kind == "dna" else MOST_LETTERS)
        codes = code_list([np.arange(letters, dtype=np.uint8)])
        task = self._pairs._task(codes, codes)
        scale = unit_costs(task)
        if scale is None:
            return None
        legal = np.where(matrix.codes < letters, matrix.codes, NO_CODE)

        def kept(keep: bool) -> _Kept:
            edits = edit_batch(task, keep)
            return _Kept(legal, KEPT_SIZES, lambda size: _InWords(edits, scale, matrix.scores, size))

        return kept(False), kept(True)

    def find(self, query: bytes, target: bytes, keep: bool) -> ShortResult | None:
        """The alignment, without `keep` perhaps its score and ends alone; None if it is not served here.

        That is a pair too long, a letter that is not in the matrix, or scores that do not fit lanes.
        """
        found = None
        if self._in_words is not None:
            found = self._in_words[keep].align(query, target)
        if found is None and len(query) * len(target) <= _FEW_CELLS:
            return self._by_cells.align(query, target)
        if found is None and self._in_lanes is not None:
            found = self._in_lanes.align(query, target)
        return found


class _ByCells:
    """Alignments of short pairs, one at a time, in memory that is kept; any number of threads may ask."""

    def __init__(self, pairs: PairSweep) -> None:
        scoring, free = pairs.scoring, pairs.free
        local = bool(free.local)
        self._arguments: tuple[Any, ...] = (
            AffineGap(float(-scoring.gap_open), float(-scoring.gap_extend)),
            MaxPlus(0.0 if local else -math.inf, 0.0),
            Ends(bool(free.anywhere), bool(free.target_end), bool(free.query_end)),
            (local or bool(free.target_start), local or bool(free.query_start)),
            scoring.matrix.codes,
            scoring.matrix.scores.astype(np.float64),
        )
        self._idle: list[tuple[ShortMemory, memoryview, Callable[[], Any]]] = []

    def align(self, query: bytes, target: bytes) -> ShortResult | None:
        """Score and ends, counts, CIGAR; None if a letter is not in the matrix."""
        try:
            own = self._idle.pop()
        except IndexError:
            memory = short_memory(2 * MOST_RESIDUES, _FEW_CELLS)
            call = bound(align_short_kernel, *self._arguments, memory)
            own = memory, memoryview(memory.octets), call
        memory, octets, call = own
        numbers, size = memory.numbers, len(query)
        octets[:size], octets[size : size + len(target)] = query, target
        numbers[0], numbers[1] = size, len(target)
        letters = call()
        found = None
        if letters >= 0:
            first = 4 * MOST_RESIDUES
            cigar = octets[first : first + letters].tobytes().decode("ascii")
            found = numbers[SHORT_RESULT].tolist(), memory.counts[0].tolist(), cigar
        self._idle.append(own)
        return found


class _Pair(Protocol):
    """Memory of one pair after the other, with arguments laid out, for one thread."""

    def align(self, query: bytes, target: bytes) -> ShortResult:
        """As `ShortPairs.find`, of codes."""


class _Kept:
    """Memory that is kept for pairs of up to some sizes, from `make`; `codes` has those of all bytes."""

    def __init__(self, codes: NDArray[Any], sizes: Sequence[int], make: Callable[[int], _Pair]) -> None:
        self._codes, self._make = codes.astype(np.uint8).tobytes(), make
        self._idle: dict[int, list[_Pair]] = {size: [] for size in sizes}

    def align(self, query: bytes, target: bytes) -> ShortResult | None:
        """As `ShortPairs.find`."""
        longest = max(len(query), len(target))
        size = next((size for size in self._idle if size >= longest), None)
        if size is None:
            return None
        codes = query.translate(self._codes), target.translate(self._codes)
        if _ILLEGAL in codes[0] or _ILLEGAL in codes[1]:
            return None
        try:
            own = self._idle[size].pop()
        except IndexError:
            own = self._make(size)
        found = own.align(*codes)
        self._idle[size].append(own)
        return found


class _Description:
    """Counts and CIGAR of the runs of a pair; `ends` (1, 4) are as in `PairResults`."""

    def __init__(
        self, sides: _Sides, ends: NDArray[np.int64], matrix: NDArray[Any], runs: NDArray[np.int64]
    ) -> None:
        self._bounds, none = np.zeros(2, np.int64), np.zeros(1, np.int64)
        path = Paths(*sides, none, none, ends[0, 1:2], ends[0, 3:4], matrix, runs, self._bounds)
        counts = np.zeros((1, len(COUNTS)), np.int64)
        cigars = np.zeros(2 * len(runs), np.uint8)
        self._columns = PathColumns(counts, cigars, np.zeros(2, np.int64))
        self._describe = bound(lists.describe_kernel, path, self._columns)

    def of(self, runs: int) -> tuple[list[int], str]:
        """Of so many runs."""
        columns = self._columns
        self._bounds[1] = runs
        columns.counts[:] = 0
        self._describe()
        cigar = columns.cigars[: columns.bounds[1]].tobytes().decode("ascii")
        return columns.counts[0].tolist(), cigar


class _InLanes:
    """In lanes, which take longer to begin: a list of one pair, laid out once for all."""

    def __init__(self, pairs: PairSweep, letters: NDArray[np.uint8]) -> None:
        matrix, size = pairs.scoring.matrix, letters.size
        task = pairs._task(code_list([letters]), code_list([letters]))
        setup = make_setup(task, keep=True)
        self._task, self._source = task, setup.rules[0]
        # In a table of few letters a query's letter is where its row begins.
        self._step = len(matrix.letters) if isinstance(self._source, PairTable) else 1
        runs = np.zeros((2 * size + 2, 2), np.int64)
        one, ends = np.zeros(1, np.int64), np.zeros((1, 4), np.int64)
        self._found = PairResults(one, ends, runs, np.zeros(1, np.int64))
        memory = make_memory(setup, size, size)
        self._sweep = bound(align_kernel_of(setup), setup, read_only(task), 0, 1, memory, self._found)
        self._described = _Description((task.query, task.target), ends, matrix.scores, runs)

    def align(self, query: bytes, target: bytes) -> ShortResult:
        """As `ShortPairs.find`, of codes."""
        task, source, found = self._task, self._source, self._found
        rows, residues = np.frombuffer(query, np.uint8), np.frombuffer(target, np.uint8)
        m, n = rows.size, residues.size
        task.query[:m], task.target[:n] = rows, residues
        task.query_starts[1], task.target_starts[1] = m, n
        source.query[:m], source.target[:n] = self._step * rows, residues
        self._sweep()
        _, query_end, _, target_end = found.ends[0].tolist()
        described = self._described.of(found.run_counts[0])
        return [int(found.scores[0]), query_end, target_end], *described


class _InWords:
    """Unit costs, 64 rows in a word."""

    def __init__(self, edits: EditBatch, scale: EditScale, matrix: NDArray[Any], size: int) -> None:
        self._one, self._scale = OneEdit(edit_pairs_kernel, edits, size), scale
        found = self._one.found
        described = _Description(self._one.codes, found.ends, matrix, found.runs)
        self._described = described if edits.keep else None

    def align(self, query: bytes, target: bytes) -> ShortResult:
        """As `ShortPairs.find`, of codes."""
        residues = len(query) + len(target)
        runs = self._one.find(np.frombuffer(query, np.uint8), np.frombuffer(target, np.uint8), residues)
        found, scale = self._one.found, self._scale
        _, query_end, _, target_end = found.ends[0].tolist()
        score = (scale.both * residues - scale.unit * int(found.scores[0])) // 2
        described = ([], "") if self._described is None else self._described.of(runs)
        return [score, query_end, target_end], *described
