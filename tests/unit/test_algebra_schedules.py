"""Every algebra on every schedule that takes one: the answer is right, or the combination is refused.

`MinPlus` stands for an algebra that somebody adds, with all operations that look as if they mattered: what is
high is bad in it, its zero is plus infinity and its one is 0.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from support import chain_values
from support.alignment import AlignmentCase, all_alignments, best_by_gotoh
from support.alignment_batches import AlignmentBatch
from support.alignment_runs import prepare
from support.alignment_solvers import pair_list
from support.alignment_strategies import alignment_cases
from support.examples import examples, often
from support.generation_problems import GENERATION_PROBLEMS, weigh_batch

from plait.devices.target import CpuTarget, ReferenceTarget
from plait.dp.pairs.gaps import AffineGap, GapStates, LinearGap
from plait.dp.pairs.inter_sequence import Block, BlockScratch, EveryCell, RowEnds, block_scores
from plait.dp.pairs.launches import PAIR_LIST
from plait.dp.pairs.lists import ListBatch, make_setup
from plait.dp.pairs.rows import Drop, NoDirections, Rows, _sweep_rows, sweep_rows
from plait.dp.pairs.states import COLUMNS, Paired, Plain, Scope, StatePair, _sweep_states, sweep_states
from plait.dp.pairs.states import Forget as ForgetVertices
from plait.errors import Unsupported
from plait.lang.algebras import (
    BIG_COUNT,
    COUNT,
    EXACTNESS,
    LOG_SUM,
    MAX_PRODUCT,
    PROBABILITY,
    SATURATING_COUNT,
    WEIGHTED_SUM,
    Bits,
    MaxPlus,
    Optimal,
    SaturatingMaxPlus,
)
from plait.lang.compile import kernel
from plait.lang.lanes import LANES, add_saturating, lanes_of, minimum, splat

pytestmark = pytest.mark.interpreted


class MinPlus(NamedTuple):
    """Least sum of costs; nothing rises above ``zero``."""

    zero: Any
    one: Any

    @staticmethod
    def algebra_in_lanes(alg: Any, lanes: Any) -> Any:
        return MinPlus(splat(lanes, alg.zero), splat(lanes, alg.one))

    @staticmethod
    def with_zero(alg: Any, zero: Any) -> Any:
        return MinPlus(zero, alg.one)

    @staticmethod
    def is_better(alg: Any, a: Any, b: Any) -> Any:
        return a < b

    @staticmethod
    def choice(alg: Any, a: Any, b: Any) -> Any:
        return minimum(a, b)

    @staticmethod
    def extend(alg: Any, a: Any, b: Any) -> Any:
        return minimum(add_saturating(a, b), alg.zero)

    @staticmethod
    def repeat(alg: Any, a: Any, times: Any) -> Any:
        return a


class Unordered(NamedTuple):
    """The same by one who has not said what is better."""

    zero: Any
    one: Any

    choice = MinPlus.choice
    extend = MinPlus.extend


MIN_PLUS = MinPlus(math.inf, 0.0)
MAX_PLUS = MaxPlus(-math.inf, 0.0)
OPTIMAL = Optimal((-math.inf, 0), (0.0, 1), MAX_PLUS, BIG_COUNT)
ALGEBRAS: dict[str, Any] = {
    "count": COUNT,
    "big count": BIG_COUNT,
    "saturating count": SATURATING_COUNT,
    "probability": PROBABILITY,
    "max product": MAX_PRODUCT,
    "max plus": MAX_PLUS,
    "saturating max plus": SaturatingMaxPlus(-math.inf, 0.0),
    "log sum": LOG_SUM,
    "optimal": OPTIMAL,
    "weighted sum": WEIGHTED_SUM,
    "min plus": MIN_PLUS,
    "unordered": Unordered(math.inf, 0.0),
}


def test_every_algebra_is_here() -> None:
    # Bits counts nothing by itself: its recurrences have tests of their own (test_bitparallel).
    assert {type(algebra) for algebra in ALGEBRAS.values()} == {*EXACTNESS, MinPlus, Unordered} - {Bits}


def in_both(names: Iterable[str], own: Iterable[str]) -> list[Any]:
    """Names with whether code is compiled for them: in every run for some algebras of one's own alone.

    The algebras of plait are compiled in these schedules by the tests of the schedules themselves.
    """
    return [
        pytest.param(name, compiled, id=f"{name}-{'compiled' if compiled else 'interpreted'}",
                     marks=[pytest.mark.slow] if compiled and name not in own else [])
        for name in names
        for compiled in (False, True)
    ]  # fmt: skip


# --- rows, with bands and X-drop ------------------------------------------------------------------------


class Written(NamedTuple):
    """How scores are written as values of an algebra, and read again."""

    algebra: Any
    write: Any
    read: Any
    modes: tuple[str, ...]
    dtype: Any = np.float64


EDGES = ("global", "semiglobal", "overlap", "extension")
LEAST = np.int32(np.iinfo(np.int32).min)
ORDERED = {
    "max plus": Written(MAX_PLUS, lambda x: x, lambda x: x, EDGES),
    "max plus from 0": Written(MaxPlus(0.0, 0.0), lambda x: x, lambda x: x, ("local",)),
    "saturating": Written(SaturatingMaxPlus(LEAST, np.int32(0)), np.int32, int, EDGES, np.int32),
    "max product": Written(MAX_PRODUCT, lambda x: 2.0**x, math.log2, EDGES),
    "min plus": Written(MIN_PLUS, lambda x: -x, lambda x: -x, EDGES),
    "min plus up to 0": Written(MinPlus(0.0, 0.0), lambda x: -x, lambda x: -x, ("local",)),
}


def rows_in(case: AlignmentCase, written: Written, call: Any) -> tuple[Any, ...]:
    """Score and end by the row schedule, in values of an algebra."""
    sweep = prepare(case)
    write, kind = written.write, written.dtype
    values = np.vectorize(write, otypes=[kind])
    gap = type(sweep.gap)(*(write(cost) for cost in sweep.gap))
    border = sweep.border._replace(top=values(sweep.border.top), left=values(sweep.border.left))
    pair = sweep.pair._replace(scores=values(sweep.pair.scores))
    drop = Drop(write(sweep.drop.most)) if isinstance(sweep.drop, Drop) else sweep.drop
    rows = Rows(*(np.empty(len(case.target) + 1, kind) for _ in range(2)))
    score, i, j = call(
        gap, written.algebra, NoDirections(), pair, border, sweep.ends, sweep.windows, drop, rows
    )
    return written.read(score), (int(i), int(j))


@pytest.mark.parametrize(("name", "compiled"), in_both(ORDERED, ()))
def test_rows_in_an_ordered_algebra(name: str, compiled: bool) -> None:
    written = ORDERED[name]
    call: Any = _sweep_rows if compiled else sweep_rows

    @examples(120 if compiled else 60)
    @given(alignment_cases(longest=8, modes=written.modes, banded=True, dropped=True))
    def check(case: AlignmentCase) -> None:
        wanted = best_by_gotoh(case)
        if wanted is not None:
            assert rows_in(case, written, call) == (wanted.score, wanted.end)

    check()


CASE = AlignmentCase(
    query=(0, 1, 2, 1), target=(0, 2, 1), scores=((2, -3, -3), (-3, 2, -3), (-3, -3, 2)),
    gap_open=3, gap_extend=1,
)  # fmt: skip
NO_ORDER = [name for name, algebra in ALGEBRAS.items() if not hasattr(algebra, "is_better")]


def either(names: list[str]) -> list[Any]:
    """Interpreted, all of them; compiled, one in every run."""
    return [*((name, True) for name in names), *often(1, [(name, False) for name in names])]


@pytest.mark.parametrize(("name", "interpreted"), either(NO_ORDER))
@pytest.mark.parametrize("mode", ["global", "local"])
def test_rows_refuse_what_has_no_best(mode: str, name: str, interpreted: bool) -> None:
    if not interpreted and name in ("optimal", "weighted sum", "big count"):
        pytest.skip("its values are no numbers of a processor")
    case = dataclasses.replace(CASE, mode=mode)
    sweep = prepare(case, interpreted=interpreted)._replace(algebra=ALGEBRAS[name])
    with pytest.raises(Unsupported, match="is_better"):
        sweep.score()


@pytest.mark.parametrize("interpreted", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_paths_in_another_algebra(interpreted: bool) -> None:
    sweep = prepare(CASE, interpreted=interpreted)
    pair = sweep.pair._replace(scores=-sweep.pair.scores)
    border = sweep.border._replace(top=-sweep.border.top, left=-sweep.border.left)
    other = sweep._replace(algebra=MIN_PLUS, pair=pair, border=border, gap=AffineGap(3.0, 1.0))
    wanted, found = sweep.align(), other.align()
    assert found.score == -wanted.score
    assert found.runs.tolist() == wanted.runs.tolist()


# --- pairs along anti-diagonals -------------------------------------------------------------------------

LANED = ("max plus", "saturating max plus")


@pytest.mark.parametrize(("name", "interpreted"), either([name for name in ALGEBRAS if name not in LANED]))
def test_pairs_refuse_what_is_no_score(name: str, interpreted: bool) -> None:
    target = ReferenceTarget() if interpreted else CpuTarget(1)
    task = pair_list(
        AlignmentBatch(
            queries=(CASE.query,), targets=(CASE.target,), scores=CASE.scores,
            gap_open=CASE.gap_open, gap_extend=CASE.gap_extend,
        )
    )  # fmt: skip
    setup = make_setup(task, keep=True, lanes=lanes_of(2), dtype=np.int16)
    algebra = ALGEBRAS[name]
    if name == "min plus":
        algebra = MinPlus(np.int16(32767), np.int16(0))
    with pytest.raises(Unsupported, match="adds_scores"):
        target.launch(PAIR_LIST, ListBatch(setup._replace(algebra=algebra), task))


# --- targets in lanes -----------------------------------------------------------------------------------


@kernel
def _block_scores(
    lanes: Any, gap: Any, algebra: Any, ends: Any, query: Any, table: Any, block: Any, scratch: Any, out: Any
) -> None:
    out[0] = block_scores(lanes, gap, algebra, ends, query, table, block, scratch)


def in_lane(case: AlignmentCase, sign: int, algebra: Any, call: Any) -> int:
    """The score of a pair in one lane, where `sign` says what a score is worth in the algebra."""
    m, n = len(case.query), len(case.target)
    columns = -(-n // 4) * 4
    # What lies behind a target is the worst there is.
    table = np.full((len(case.scores), 32), -sign * (1 << 20), np.int32)
    table[:, : len(case.scores)] = sign * np.array(case.scores)
    packed = np.full((columns, 1), 31, np.uint8)
    packed[:n, 0] = case.target
    local = case.mode == "local"

    def side(size: int, first: int) -> Any:
        cost = case.gap_open + case.gap_extend * (np.arange(size) - first)
        cost = np.where(np.arange(size) < first, 0, cost)
        return (-sign * (np.zeros(size, np.int64) if local else cost)).astype(np.int32)

    top, left = side(columns + 1, 1), side(m, 0)[:, None].copy()
    opened = (left - np.int32(sign * case.gap_open)).astype(np.int32)
    scratch = BlockScratch(left, opened, np.zeros((len(case.scores), 4), np.int32))
    lengths = np.array([[n]], np.int32)
    block = Block(packed, 0, columns, 0, lengths, top, np.array([-1, 0, 1], np.int32))
    gap = AffineGap(np.int32(-sign * case.gap_open), np.int32(-sign * case.gap_extend))
    if case.gap_open == case.gap_extend:
        gap = LinearGap(gap.open)
    ends = EveryCell() if local else RowEnds(False)
    query = np.array(case.query, np.int64)
    out = np.zeros(1, np.int32)
    call(lanes_of(1), gap, algebra, ends, query, table, block, scratch, out)
    return sign * int(out[0])


def _interpreted_blocks(*arguments: Any) -> None:
    *given, out = arguments
    out[0] = np.asarray(block_scores(*given)).ravel()[0]


@pytest.mark.parametrize(("name", "compiled"), in_both(("max plus", "min plus"), ("min plus",)))
def test_lanes_in_an_ordered_algebra(name: str, compiled: bool) -> None:
    kind, sign = (MaxPlus, 1) if name == "max plus" else (MinPlus, -1)

    @examples(60)
    @given(alignment_cases(longest=6, modes=("global", "local")))
    def check(case: AlignmentCase) -> None:
        if not case.query or not case.target:
            return
        if compiled and (case.mode == "local") != (case.gap_open == case.gap_extend):
            # Two kernels of four have every part: what is left out runs interpreted.
            return
        zero = 0 if case.mode == "local" else -sign * (1 << 24)
        call = _block_scores if compiled else _interpreted_blocks
        wanted = best_by_gotoh(case)
        assert wanted is not None
        assert in_lane(case, sign, kind(np.int32(zero), np.int32(0)), call) == wanted.score

    check()


@pytest.mark.parametrize("name", [name for name in ALGEBRAS if name not in (*LANED, "min plus")])
def test_lanes_refuse_what_has_none(name: str) -> None:
    with pytest.raises(Unsupported, match="algebra_in_lanes"):
        in_lane(CASE, 1, ALGEBRAS[name], _interpreted_blocks)


# --- states: sums over all alignments -------------------------------------------------------------------


def states_in(case: AlignmentCase, algebra: Any, write: Any, tables: Any, call: Any) -> Any:
    """The sum over all global alignments, in values of an algebra."""
    pair = StatePair(
        np.array(case.query, np.uint8), np.array(case.target, np.uint8),
        tables([[write(x) for x in row] for row in case.scores]),
    )  # fmt: skip
    gap = GapStates(write(-case.gap_open), write(-case.gap_extend))
    memory = tables([[write(0)] * COLUMNS] * (len(case.target) + 1))
    scope = Scope(algebra.one, algebra.zero, False)
    return call(gap, algebra, ForgetVertices(), pair, scope, memory)


def _numbers(values: Any) -> Any:
    return Plain(np.array(values, float))


def _pairs(values: Any) -> Any:
    whole = np.array(values, float)
    return Paired(whole[..., 0].copy(), whole[..., 1].astype(np.int64))


MIN_AMONG = Optimal((math.inf, 0), (0.0, 1), MIN_PLUS, COUNT)
SUMS = {
    "min plus": (MIN_PLUS, lambda x: float(-x), _numbers, lambda scores: -max(scores)),
    "max product": (MAX_PRODUCT, lambda x: 2.0**x, _numbers, lambda scores: 2.0 ** max(scores)),
    "probability": (PROBABILITY, lambda x: 2.0**x, _numbers, lambda s: sum(2.0**score for score in s)),
    # How many of the alignments are the cheapest: what is best is asked of the algebra, not of ">".
    "optimal of min plus": (
        MIN_AMONG, lambda x: (float(-x), 1), _pairs, lambda s: (-max(s), s.count(max(s))),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "compiled"), in_both(SUMS, ("optimal of min plus",)))
def test_states_in_any_algebra(name: str, compiled: bool) -> None:
    algebra, write, tables, answer = SUMS[name]
    call: Any = _sweep_states if compiled else sweep_states

    @examples(25)
    @given(alignment_cases(longest=4, modes=("global",)))
    def check(case: AlignmentCase) -> None:
        scores = [found.score for found in all_alignments(case)]
        found = states_in(case, algebra, write, tables, call)
        assert np.allclose(found, answer(scores), rtol=1e-12, atol=0)

    check()


def test_the_best_among_what_has_no_order_is_refused() -> None:
    algebra = Optimal((0.0, 0), (1.0, 1), PROBABILITY, COUNT)
    with pytest.raises(Unsupported, match="is_better"):
        states_in(CASE, algebra, lambda x: (2.0**x, 1), _pairs, sweep_states)


# --- the chain of weighted choices ----------------------------------------------------------------------


@pytest.fixture
def logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs for `MinPlus`, as somebody would add them."""

    def costs(p: Any) -> Any:
        with np.errstate(divide="ignore"):
            return -np.log2(p)

    monkeypatch.setitem(chain_values._VALUES, MinPlus, costs)
    monkeypatch.setitem(chain_values._TOGETHER, MinPlus, np.minimum)


@pytest.mark.parametrize(("problem", "compiled"), in_both(("vdj-nt", "vdj-aa", "vj-nt"), ()))
def test_the_weighted_chain_in_another_algebra(problem: str, compiled: bool, logarithms: None) -> None:
    found = GENERATION_PROBLEMS[problem]
    for batch in found.edge_cases[:2]:
        plain = batch.plain and problem.endswith("nt")
        costs = weigh_batch(batch, MIN_PLUS, LANES[1], interpreted=not compiled, plain=plain)
        wanted = [
            -math.log2(max((p for p, _ in ways), default=0.0) or 5e-324) for ways in found.oracle(batch)
        ]
        wanted = [math.inf if cost > 1000 else cost for cost in wanted]
        assert costs == pytest.approx(wanted, rel=1e-12, abs=1e-12)
