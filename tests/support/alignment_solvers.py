"""What each schedule answers to a batch, in lanes of any type and width.

A function returns one answer for each pair: the whole alignment, or what the schedule finds of it; or None if
the lanes cannot hold the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from support.alignment import BestAlignment
from support.alignment_batches import AlignmentBatch, rescore
from support.alignment_runs import swept

from plait.align.aligner import make_aligner
from plait.align.batches import block_query
from plait.align.results import Alignment
from plait.devices.target import Target
from plait.dp.pairs.blocks import TargetBlocks, run_blocks
from plait.dp.pairs.gaps import AffineGap, LinearGap
from plait.dp.pairs.inter_sequence import COLUMNS, PAD, BlockSetup, block_memory
from plait.dp.pairs.launches import PAIR_LIST
from plait.dp.pairs.lists import ListBatch, PairList, PairResults, PairSetup, make_setup, sweep_rules
from plait.dp.pairs.scores import ROWS, PairTable, SkewedProfile
from plait.dp.pairs.tiles import LongPair, TileSteps, align_long, score_long
from plait.dp.pairs.traceback import Costs
from plait.errors import Unsupported
from plait.lang.lanes import lanes_of

__all__ = [
    "Ending",
    "Found",
    "SweepForm",
    "as_told",
    "in_columns",
    "pair_list",
    "solve_blocks",
    "solve_pairs",
    "solve_public",
    "solve_rows",
    "solve_tiles",
]

_Call = Callable[..., Any]


class Ending(NamedTuple):
    """Score of an alignment and where it ends."""

    score: int
    end: tuple[int, int]


#: An alignment, or what is known of it; a number is its score.
Found = BestAlignment | Ending | int


def as_told(wanted: BestAlignment, found: Found) -> Found:
    """As much of an alignment as another answer tells.

    Parameters
    ----------
    wanted
        The whole alignment.
    found
        Says how much.
    """
    if isinstance(found, BestAlignment):
        return wanted
    return Ending(wanted.score, wanted.end) if isinstance(found, Ending) else wanted.score


def in_columns(alignment: Alignment) -> BestAlignment:
    """The alignment of a user in the form of the oracles."""
    columns, digits = "", ""
    for character in alignment.cigar:
        if character.isdigit():
            digits += character
        else:
            columns += {"=": "M", "X": "M"}.get(character, character) * int(digits)
            digits = ""
    start = (alignment.query_start, alignment.target_start)
    return BestAlignment(alignment.score, start, (alignment.query_end, alignment.target_end), columns)


def _answers(results: PairResults) -> list[Found]:
    answers: list[Found] = []
    last = 0
    for score, count, (i, m, j, n) in zip(
        results.scores.tolist(), results.run_counts.tolist(), results.ends.tolist(), strict=True
    ):
        runs = results.runs[last : last + count].tolist()
        last += count
        columns = "".join("MDI"[operation] * length for operation, length in runs)
        answers.append(BestAlignment(score, (i, j), (m, n), columns))
    return answers


def pair_list(batch: AlignmentBatch, number: int | None = None) -> PairList:
    """The pairs as schedules take them.

    Parameters
    ----------
    batch
        The pairs.
    number
        Number of the only one that is wanted; by default all are.
    """
    pairs = batch.pairs if number is None else batch.only(number).pairs
    return PairList(
        pairs.queries.codes,
        pairs.queries.starts,
        pairs.targets.codes,
        pairs.targets.starts,
        batch.scoring.matrix.scores,
        batch.gap_open,
        batch.gap_extend,
        batch.free,
    )


# --- rows -----------------------------------------------------------------------------------------------


def solve_rows(batch: AlignmentBatch, *, interpreted: bool) -> list[Found]:
    """By the row schedule.

    Parameters
    ----------
    batch
        The pairs.
    interpreted
        Whether to run plain Python.
    """
    found = [swept(case, interpreted=interpreted) for case in batch.cases]
    return [answer for answer in found if answer is not None]


# --- a query against many targets -----------------------------------------------------------------------


def _blocks(targets: Iterable[NDArray[np.uint8]], width: int) -> TargetBlocks:
    """All targets in one block, in as many groups as it takes."""
    parts = list(targets)
    lanes = -(-len(parts) // width) * width
    columns = -(-max(part.size for part in parts) // COLUMNS) * COLUMNS
    packed = np.full((columns, lanes), PAD, np.uint8)
    lengths = np.zeros((1, lanes), np.int32)
    for lane, part in enumerate(parts):
        packed[: part.size, lane] = part
        lengths[0, lane] = part.size
    return TargetBlocks(packed, np.array([0, columns], np.int64), lengths)


def _with_gaps(setup: BlockSetup, batch: AlignmentBatch, linear: bool) -> BlockSetup:
    number = setup.border.top.dtype.type
    if number is np.uint8:
        return setup
    gap: Any = AffineGap(number(-batch.gap_open), number(-batch.gap_extend))
    return setup._replace(gap=LinearGap(number(-batch.gap_open)) if linear else gap)


def solve_blocks(
    batch: AlignmentBatch, call: _Call, number: Any, width: int, *, linear: bool, threads: int = 1
) -> list[Found] | None:
    """Scores of the first query with all targets, a target in each lane.

    Parameters
    ----------
    batch
        Pairs with one and the same query.
    call
        Entry point for blocks.
    number, width
        Type and number of lanes.
    linear
        Whether to run the recurrence for linear gaps.
    threads
        Shares of blocks at a time.
    """
    pairs = batch.pairs
    query = block_query(pairs.queries[0], batch.scoring, batch.free)
    blocks = _blocks([pairs.targets[k] for k in range(len(pairs))], width)

    def forced(setup: BlockSetup, *arguments: Any) -> Any:
        own = _with_gaps(setup._replace(lanes=lanes_of(width)), batch, linear)
        packed, columns, lengths, chosen, _, out = arguments
        return call(own, packed, columns, lengths, chosen, block_memory(own), out)

    try:
        found = run_blocks(forced, query, blocks, threads, lambda cells: None, (number,))
    except Unsupported:
        return None
    return found.ravel()[: len(pairs)].tolist()  # type: ignore[no-any-return]


# --- pairs ----------------------------------------------------------------------------------------------


class SweepForm(NamedTuple):
    """How anti-diagonals are swept.

    Attributes
    ----------
    number, width
        Type and number of lanes.
    source
        ``"table8"``, ``"table16"``, ``"profile8"`` or ``"profile16"``: a table of all scores or the query's
        profile, in so many bits.
    stretch
        Columns after which values are counted from a new base, at most; None for what the scores allow.
    """

    number: Any
    width: int
    source: str
    stretch: int | None = None


def _source_of(task: PairList, source: Any, form: SweepForm) -> Any:
    """The source in the form that is asked for, or None; what the engine chose if that is it."""
    letter, number = (np.uint16, np.int16) if form.source.endswith("16") else (np.uint8, np.int8)
    if not np.array_equal(task.matrix.astype(number), task.matrix):
        return None
    if form.source.startswith("table"):
        size = len(task.matrix)
        if size**2 > 32:
            return None
        table = np.zeros((1, 32), number)
        table[0, : size**2] = task.matrix.ravel()
        target = np.concatenate([task.target, np.zeros(form.width, np.uint8)])
        return PairTable((task.query * size).astype(letter), target.astype(letter), table)
    if isinstance(source, SkewedProfile) and source.table.dtype == number:
        return source
    table = np.zeros((len(task.matrix), 32), number)
    table[:, : len(task.matrix)] = task.matrix.T
    return SkewedProfile(
        task.query, task.target.astype(np.int64), table, lanes_of(min(64, ROWS * form.width))
    )


def _setup(task: PairList, form: SweepForm, keep: bool) -> PairSetup | None:
    try:
        setup = make_setup(task, keep=keep, lanes=lanes_of(form.width), dtype=form.number)
    except Unsupported:
        return None
    source = _source_of(task, setup.rules[0], form)
    if source is None:
        return None
    limits = setup.limits
    if form.stretch is not None:
        # Values spread less in a shorter stretch, so that the offset of a longer one serves.
        limits = limits._replace(stretch=min(limits.stretch, form.stretch))
    return setup._replace(rules=sweep_rules(source, form.number, setup.rules[1], keep), limits=limits)


def solve_pairs(
    batch: AlignmentBatch, target: Target, form: SweepForm, *, keep: bool = True
) -> list[Found] | None:
    """Pair after pair along anti-diagonals.

    Parameters
    ----------
    batch
        The pairs; none is empty.
    target
        Where.
    form
        How they are swept.
    keep
        Whether choices are kept, for the paths; otherwise score and end are found.
    """
    task = pair_list(batch)
    setup = _setup(task, form, keep)
    if setup is None:
        return None
    results = target.launch(PAIR_LIST, ListBatch(setup, task))
    if keep:
        return _answers(results)
    ends = [(m, n) for _, m, _, n in results.ends.tolist()]
    return [Ending(score, end) for score, end in zip(results.scores.tolist(), ends, strict=True)]


def solve_tiles(
    batch: AlignmentBatch,
    steps: TileSteps,
    form: SweepForm,
    *,
    keep: bool = True,
    choice_limit: int = 1,
    checkpoint_limit: int = 1,
) -> list[Found] | None:
    """Pair after pair, tile by tile.

    Parameters
    ----------
    batch, form, keep
        As for `solve_pairs`.
    steps
        Of the target.
    choice_limit, checkpoint_limit
        Bytes; see `plait.dp.pairs.tiles.LongPair`.
    """
    answers: list[Found] = []
    for number in range(len(batch.queries)):
        task = pair_list(batch, number)
        setup = _setup(task, form, False)
        if setup is None:
            return None
        pair = LongPair(
            setup=setup,
            costs=Costs(
                task.query, task.target, task.matrix, task.gap_open, task.gap_extend, task.free.local
            ),
            free=task.free,
            choice_limit=choice_limit,
            checkpoint_limit=checkpoint_limit,
            progress=lambda cells: None,
        )
        if not keep:
            score, row, column = score_long(pair, steps).tolist()
            answers.append(Ending(score, (row + 1, column + 1)))
            continue
        best, start, runs = align_long(pair, steps)
        (score, row, column), (i, j) = best.tolist(), start.tolist()
        columns = "".join("MDI"[operation] * length for operation, length in runs.tolist())
        answers.append(BestAlignment(score, (i + 1, j + 1), (row + 1, column + 1), columns))
    return answers


# --- what users call ------------------------------------------------------------------------------------


def solve_public(
    batch: AlignmentBatch, *, device: str, traceback: str = "auto", threads: int = 1
) -> list[Found]:
    """As users align, by whatever schedules; every CIGAR is scored anew.

    Parameters
    ----------
    batch
        The pairs; they may be empty.
    device, traceback, threads
        As for `plait.align.align`.
    """
    scoring, pairs = batch.scoring, batch.pairs
    aligner = make_aligner(
        scoring,
        mode=batch.mode,  # type: ignore[arg-type]
        free_ends=sorted(batch.free_ends) if batch.mode == "semiglobal" else None,  # type: ignore[arg-type]
        traceback=traceback,  # type: ignore[arg-type]
        threads=threads,
        device=device,
    )
    scores = aligner.score_codes(pairs).tolist()
    answers: list[Found] = []
    for k, alignment in enumerate(aligner.align_codes(pairs)):
        again = rescore(alignment, pairs.queries[k], pairs.targets[k], scoring)
        told = (scores[k], alignment.score, again)
        if len(set(told)) > 1:
            raise AssertionError(f"pair {k}: scores without a path, with one, and of it: {told}")
        answers.append(in_columns(alignment))
    return answers
