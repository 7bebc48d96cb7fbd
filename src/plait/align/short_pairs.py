"""Single short pairs, one call after the other, in memory and with arguments laid out once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.align.batches import PairSweep, code_list
from plait.align.scoring import NO_CODE
from plait.dp.pairs import lists
from plait.dp.pairs.gaps import AffineGap
from plait.dp.pairs.lists import (
    PairResults,
    align_pairs_kernel,
    make_memory,
    make_setup,
    read_only,
    shared_setup,
)
from plait.dp.pairs.paths import COUNTS, PathColumns, Paths
from plait.dp.pairs.rows import SHORT_RESULT, Ends, ShortMemory, align_short_kernel, short_memory
from plait.dp.pairs.scores import PairTable
from plait.lang.algebras import MaxPlus
from plait.lang.compile import bound

#: Residues of the longest sequence.
MOST_RESIDUES: Final = 1 << 9
#: Cells of a pair that takes less time by itself, cell by cell, than lanes need to start.
_FEW_CELLS: Final = 3 << 10
_ILLEGAL: Final = bytes([NO_CODE])
#: Scores and costs that fit the lanes.
_NARROW: Final = 127

#: Score, query end and target end; the counts of `plait.dp.pairs.paths.COUNTS`; and the CIGAR.
ShortResult = tuple[list[int], list[int], str]


class ShortPairs:
    """Alignments of pairs of up to 512 residues each, neither empty; any number of threads may ask."""

    def __init__(self, pairs: PairSweep) -> None:
        self._pairs = pairs
        self._by_cells = _ByCells(pairs)

    @cached_property
    def _in_lanes(self) -> _InLanes | None:
        scoring = self._pairs.scoring
        largest = max(int(np.abs(scoring.matrix.scores).max()), scoring.gap_open)
        return _InLanes(self._pairs) if largest <= _NARROW else None

    def align(self, query: bytes, target: bytes) -> ShortResult | None:
        """The alignment; None if a letter is not in the matrix, or scores do not fit lanes."""
        few = len(query) * len(target) <= _FEW_CELLS
        chosen = self._by_cells if few else self._in_lanes
        return None if chosen is None else chosen.align(query, target)


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


class _InLanes:
    """The same in lanes, which takes longer to begin: a list of one pair, laid out once for all."""

    def __init__(self, pairs: PairSweep) -> None:
        self._pairs = pairs
        matrix = pairs.scoring.matrix
        self._codes = matrix.codes.tobytes()
        # Every letter occurs in what the lists are made ready for.
        self._letters = np.resize(np.arange(len(matrix.letters), dtype=np.uint8), MOST_RESIDUES)
        self._idle: list[_OnePair] = []

    def align(self, query: bytes, target: bytes) -> ShortResult | None:
        """As `_ByCells.align`."""
        codes = query.translate(self._codes), target.translate(self._codes)
        if _ILLEGAL in codes[0] or _ILLEGAL in codes[1]:
            return None
        try:
            own = self._idle.pop()
        except IndexError:
            own = _OnePair(self._pairs, self._letters)
        found = own.align(*codes)
        self._idle.append(own)
        return found


class _OnePair:
    """Memory of one pair after the other in lanes, for one thread."""

    def __init__(self, pairs: PairSweep, letters: NDArray[np.uint8]) -> None:
        matrix, size = pairs.scoring.matrix, letters.size
        task = pairs._task(code_list([letters]), code_list([letters]))
        setup = shared_setup(make_setup(task, keep=True))
        self._task, self._source = task, setup.rules[0]
        # In a table of few letters a query's letter is where its row begins.
        self._step = len(matrix.letters) if isinstance(self._source, PairTable) else 1
        runs = np.zeros((2 * size + 2, 2), np.int64)
        one, ends = np.zeros(1, np.int64), np.zeros((1, 4), np.int64)
        self._found = PairResults(one, ends, runs, np.zeros(1, np.int64))
        memory = make_memory(setup, size, size)
        self._sweep = bound(align_pairs_kernel, *setup, read_only(task), 0, 1, memory, self._found)
        self._bounds, none = np.zeros(2, np.int64), np.zeros(1, np.int64)
        stops = ends[0, 1:2], ends[0, 3:4]
        path = Paths(task.query, task.target, none, none, *stops, matrix.scores, runs, self._bounds)
        counts = np.zeros((1, len(COUNTS)), np.int64)
        cigars = np.zeros(4 * size + 4, np.uint8)
        self._columns = PathColumns(counts, cigars, np.zeros(2, np.int64), np.zeros(2, np.int64))
        self._describe = bound(lists.describe_kernel, path, self._columns)

    def align(self, query: bytes, target: bytes) -> ShortResult:
        """Score and ends, counts, CIGAR of a pair of codes."""
        task, source, found, columns = self._task, self._source, self._found, self._columns
        rows, residues = np.frombuffer(query, np.uint8), np.frombuffer(target, np.uint8)
        m, n = rows.size, residues.size
        task.query[:m], task.target[:n] = rows, residues
        task.query_starts[1], task.target_starts[1] = m, n
        source.query[:m], source.target[:n] = self._step * rows, residues
        self._sweep()
        self._bounds[1] = found.run_counts[0]
        columns.counts[:] = 0
        self._describe()
        _, query_end, _, target_end = found.ends[0].tolist()
        cigar = columns.cigars[: columns.bounds[1]].tobytes().decode("ascii")
        return [int(found.scores[0]), query_end, target_end], columns.counts[0].tolist(), cigar
