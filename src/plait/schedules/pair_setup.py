"""How a list of pairs is swept: type of the scores, lanes, stretches, score source, and memory for a thread.

Inside a stretch all values are counted from a base. With R rows of a stripe and C columns of a stretch, s the
largest score of two residues, o and x the costs of a gap's first and further residues, every value lies
between ``corner - 3 o - x (R + C)`` and ``corner + 2 o + (s + x) (R + C)``: downwards because a cell can be
reached from the corner by two gaps; upwards because taking the last c residues of a sequence out of an
alignment costs at most ``s + x`` for each and one opening. So a type that holds this span is exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._jit import host_features
from plait.algebras import MaxPlus, SaturatingMaxPlus
from plait.errors import Unsupported
from plait.lanes import host_lanes, lanes_of
from plait.recurrences.gaps import AffineGap
from plait.schedules.antidiagonal import Edges, Region, StripeScratch
from plait.schedules.pair_scores import ROWS, PairTable, ScoreScratch, SkewedProfile
from plait.schedules.pair_sweep import PairList, PairMemory
from plait.schedules.sweep_rules import Anywhere, AtEdges, KeepChoices, ScoresOnly

__all__ = ["PairSetup", "choice_bytes", "make_memory", "make_setup", "stretch_limits"]

_LONGEST_STRETCH = 4096
_SHORTEST_STRETCH = 64
_MARGIN = 64
#: Scores at the edges of regions are 32-bit, and those of lanes lie near them.
_LARGEST = 2**31 - 2**20


class PairSetup(NamedTuple):
    """Everything but the pairs: see `plait.schedules.pair_sweep.align_pair`.

    Attributes
    ----------
    lanes, gap, algebra, rules, limits
        Arguments of that name.
    """

    lanes: Any
    gap: Any
    algebra: Any
    rules: Any
    limits: Any


def stretch_limits(
    dtype: Any, width: int, largest_score: int, gap_open: int, gap_extend: int, columns: int
) -> Region | None:
    """Stretch and offset for which numbers of a type are exact; None if there is none.

    Parameters
    ----------
    dtype
        Signed integer type of the scores.
    width
        Lanes.
    largest_score
        Largest score of two residues.
    gap_open, gap_extend
        Costs, not negative.
    columns
        Columns of the longest target; a stretch is no longer than that.
    """
    info = np.iinfo(dtype)
    rows = ROWS * width
    step = max(largest_score, 0) + 2 * gap_extend
    room = int(info.max) - int(info.min) - 5 * gap_open - 2 * _MARGIN
    longest = min(_LONGEST_STRETCH, room // max(step, 1) - rows)
    needed = max(1, min(columns, _SHORTEST_STRETCH))
    if longest < needed:
        return None
    stretch = min(longest, max(columns, 1))
    offset = int(info.min) + 3 * gap_open + gap_extend * (rows + stretch) + _MARGIN
    return Region(0, 0, 0, 0, 0, stretch, offset, int(info.min), int(info.max), 0)


def _few_letters(codes: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The codes that occur, and the place of every code among them."""
    present = np.flatnonzero(np.bincount(codes, minlength=256))
    place = np.zeros(256, np.int64)
    place[present] = np.arange(present.size)
    return present, place


def _source(task: PairList, width: int, words: bool) -> Any:
    own, own_place = _few_letters(task.query)
    other, other_place = _few_letters(task.target)
    scores = task.matrix[np.ix_(own, other)]
    narrow = scores.size == 0 or (scores.min() >= -128 and scores.max() <= 127)
    padded = np.concatenate([other_place[task.target], np.zeros(width, np.int64)])
    if scores.size <= 32:
        # A look-up of 16-bit scores by 16-bit numbers is one instruction where there is AVX-512.
        letter, number = (np.uint16, np.int16) if words or not narrow else (np.uint8, np.int8)
        table = np.zeros((1, 32), number)
        table[0, : scores.size] = scores.ravel()
        return PairTable((own_place[task.query] * other.size).astype(letter), padded.astype(letter), table)
    kind = np.int8 if narrow else np.int16
    wide = lanes_of(min(64, ROWS * width))
    table = np.zeros((other.size, 32), kind)
    table[:, : own.size] = scores.T
    return SkewedProfile(own_place[task.query].astype(np.uint8), other_place[task.target], table, wide)


def make_setup(task: PairList, *, keep: bool, lanes: Any = None, dtype: Any = None) -> PairSetup:
    """How to sweep the pairs of a list.

    Parameters
    ----------
    task
        The pairs; none is empty.
    keep
        Whether choices are kept, for walking back.
    lanes, dtype
        Width and type of the scores; by default what suits this processor and is exact.

    Raises
    ------
    Unsupported
        If scores could reach 2^31.
    """
    rows = int(np.diff(task.query_starts).max(initial=1))
    columns = int(np.diff(task.target_starts).max(initial=1))
    largest = int(task.matrix.max(initial=0))
    # No best alignment is worse than two gaps, and none has more pairs than the shorter sequence residues.
    lowest = (rows + columns) * task.gap_extend + 3 * task.gap_open
    if max(lowest, min(rows, columns) * largest) >= _LARGEST:
        why = f"scores of {rows:,} by {columns:,} residues could reach 2^31; scale scores and gap costs down"
        raise Unsupported("this pair with these scores", why=why)
    for kind in (np.int16, np.int32) if dtype is None else (dtype,):
        width = host_lanes(8 * np.dtype(kind).itemsize) if lanes is None else lanes
        limits = stretch_limits(kind, width.width, largest, task.gap_open, task.gap_extend, columns)
        if limits is not None:
            break
    else:
        raise Unsupported("these scores", why=f"they do not fit lanes of type {np.dtype(kind)}")
    number = np.dtype(kind).type
    gap = AffineGap(number(-task.gap_open), number(-task.gap_extend))
    free = task.free
    algebra: Any = SaturatingMaxPlus(number(limits.low), number(0))
    if free.local:
        algebra = MaxPlus(number(0), number(0))
    source = _source(task, width.width, kind == np.int16 and bool(host_features().get("avx512bw")))
    rules = (source, Anywhere() if free.anywhere else AtEdges(), KeepChoices() if keep else ScoresOnly())
    return PairSetup(width, gap, algebra, rules, limits)


def choice_bytes(setup: PairSetup, rows: int, columns: int) -> int:
    """Bytes of the choices of a pair.

    Parameters
    ----------
    setup
        How it is swept.
    rows, columns
        Residues of query and target.
    """
    entries = int(np.prod(_choice_shape(setup, rows, columns), dtype=np.int64))
    return entries * int(_choice_type(setup).itemsize)


def _choice_type(setup: PairSetup) -> Any:
    return np.dtype(f"u{max(setup.lanes.width, 8) // 8}")


def _choice_shape(setup: PairSetup, rows: int, columns: int) -> tuple[int, ...]:
    stripes = -(-rows // (ROWS * setup.lanes.width))
    stretches = -(-columns // setup.limits.stretch)
    if isinstance(setup.rules[2], ScoresOnly):
        return (stripes, stretches, 1, 1, 1)
    steps = min(setup.limits.stretch, columns) + setup.lanes.width - 1
    return (stripes, stretches, steps, ROWS, 4)


def make_memory(setup: PairSetup, rows: int, columns: int, *, edges: bool = True) -> PairMemory:
    """Memory of one thread for pairs of up to so many residues.

    Parameters
    ----------
    setup
        How they are swept.
    rows, columns
        Residues of the longest query and the longest target.
    edges
        Whether memory for edges and runs is needed.
    """
    width = setup.lanes.width
    kind = type(setup.gap.open)
    source = setup.rules[0]
    stretch = min(setup.limits.stretch, columns)
    few = isinstance(source, PairTable)
    numbers = np.int8 if few else source.table.dtype
    profile = 1 if few else source.table.shape[0]
    skewed = 1 if few else stretch + 2 * width + 4
    score = ScoreScratch(
        np.zeros((ROWS, width) if few else (1, ROWS * width), source.query.dtype),
        np.zeros((profile, ROWS * width), numbers),
        np.zeros((skewed, ROWS * width), numbers),
        np.tile(np.arange(width, dtype=np.int8), ROWS)[None],
        np.arange(-1, 127, dtype=np.int8)[None],
    )
    scratch = StripeScratch(
        np.zeros((17, width), kind),
        np.zeros((2, stretch + width), kind),
        np.zeros((2, stretch + width), kind),
        np.zeros((ROWS, width), np.int8),
        score,
    )
    sizes = (columns, columns, rows, rows) if edges else (0, 0, 0, 0)
    return PairMemory(
        Edges(*(np.zeros(size, np.int32) for size in sizes)),
        scratch,
        np.empty(_choice_shape(setup, rows, columns), _choice_type(setup)),
        np.zeros((rows + columns + 2 if edges else 0, 2), np.int64),
        np.zeros(5, np.int64),
        np.zeros(3, np.int64),
    )
