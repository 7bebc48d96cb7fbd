"""Lists of pairs in lanes of octets, which hold differences between cells, against pair after pair."""

from __future__ import annotations

import itertools
import random
from math import isqrt
from typing import Any

import numpy as np
import pytest
from support.examples import FULL, often

from plait.align import align_pairs
from plait.devices.target import CpuTarget, ReferenceTarget
from plait.dp.pairs import choices, lists
from plait.dp.pairs.launches import PAIR_LIST
from plait.dp.pairs.lists import FreeEnds, ListBatch, PairList, PairResults, make_setup
from plait.dp.pairs.scores import Matches, PairTable
from plait.lang.lanes import host_lanes, lanes_of

#: Query's start and end, target's start and end.
FREE = list(itertools.product((False, True), repeat=4))
LOCAL = (False,) * 4 + (True, True)


def matrix_of(codes: int, match: int, mismatch: int) -> Any:
    return np.where(np.eye(codes, dtype=bool), match, mismatch).astype(np.int32)


def related(rng: random.Random, query: list[int], codes: int) -> list[int]:
    """A copy with errors, or now and then another sequence."""
    if rng.random() < 0.2:
        return rng.choices(range(codes), k=len(query))
    made: list[int] = []
    for code in query:
        kind = rng.random()
        made += [code] if kind > 0.15 else [rng.randrange(codes)] if kind > 0.1 else []
        made += [rng.randrange(codes)] if kind < 0.05 else []
    return made or [0]


def task_of(
    rng: random.Random, sizes: list[int], matrix: Any, costs: tuple[int, int], free: tuple[bool, ...]
) -> PairList:
    codes = len(matrix)
    queries = [rng.choices(range(codes), k=size) for size in sizes]
    targets = [related(rng, query, codes) for query in queries]

    def joined(sequences: list[list[int]]) -> tuple[Any, Any]:
        starts = np.cumsum([0, *map(len, sequences)])
        return np.array(list(itertools.chain(*sequences)), np.uint8), starts

    return PairList(*joined(queries), *joined(targets), matrix, *costs, FreeEnds(*(*free, False, False)[:6]))


def beside(task: PairList, width: int, keep: bool = True) -> ListBatch:
    batch = ListBatch(make_setup(task, keep=keep), task, lanes_of(width))
    assert lists._octets(batch) is not None
    return batch


def assert_same(found: PairResults, wanted: PairResults) -> None:
    for own, right in zip(found, wanted, strict=True):
        assert np.array_equal(own, right)


@pytest.fixture(autouse=True)
def _however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs stand beside each other even where most lanes are empty."""
    monkeypatch.setattr(lists, "_LANES_FOR_ONE", 1 << 30)


@pytest.mark.interpreted
@pytest.mark.parametrize("free", [*FREE[:: 1 if FULL else 5], LOCAL])
def test_interpreted(free: tuple[bool, ...]) -> None:
    rng = random.Random(str(free))
    for width in (2, 4):
        # Empty lanes in the last group, odd and even columns, one residue.
        sizes = [1, 2, 3, 5, 8, 6, 7][: 2 * width - 1]
        matrix = matrix_of(4, 2, -3)
        matrix[0, 1] += width == 4
        task = task_of(rng, sizes, matrix, (7, 2), free)
        target = ReferenceTarget()
        assert_same(
            target.launch(PAIR_LIST, beside(task, width)),
            target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task)),
        )


@pytest.mark.parametrize("free", [*FREE, LOCAL])
def test_all_lengths_and_free_ends(free: tuple[bool, ...]) -> None:
    rng = random.Random(str(free))
    width, target = host_lanes(8).width, CpuTarget(1)
    for longest, pairs in ((4, 5 * width + 3), (40, 2 * width + 5), (150, width + 1), (300, 9)):
        sizes = [rng.randint(1, longest) for _ in range(pairs)]
        codes, opened = rng.randint(2, 5), rng.randint(1, 12)
        costs = (opened, rng.randint(0, opened))
        matrix = matrix_of(codes, rng.randint(1, 6), -rng.randint(0, sum(costs)))
        if free == LOCAL:
            # As of N, there is a letter, or room for one, that no alignment ends in.
            matrix[4:], matrix[:, 4:] = -1, -1
        elif rng.random() < 0.5:
            drawn = [rng.randint(-sum(costs), 9) for _ in range(codes * codes)]
            matrix = np.array(drawn, np.int32).reshape(codes, codes)
        task = task_of(rng, sizes, matrix, costs, free)
        wanted = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
        assert_same(target.launch(PAIR_LIST, beside(task, width)), wanted)
        assert_same(CpuTarget(3).launch(PAIR_LIST, beside(task, width)), wanted)
        scores = target.launch(PAIR_LIST, beside(task, width, keep=False))
        assert np.array_equal(scores.scores, wanted.scores) and scores.runs.shape == (0, 2)
        assert np.array_equal(scores.ends[:, [1, 3]], wanted.ends[:, [1, 3]])


@pytest.mark.interpreted
@pytest.mark.parametrize("free", [FREE[0], LOCAL])
def test_interpreted_queries_of_many_letters(free: tuple[bool, ...]) -> None:
    """Profiles of all lanes have more rows than an octet tells apart."""
    rng, target = random.Random(str(free)), ReferenceTarget()
    task = task_of(rng, [3, 4] * 8, matrix_of(20, 4, -1), (7, 2), free)
    assert_same(
        target.launch(PAIR_LIST, beside(task, 16)),
        target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task)),
    )


def against(task: PairList, pairs: int, rng: random.Random) -> PairList:
    """The first query of a task, again and again, with parts of it."""
    query = task.query[: task.query_starts[1]]
    ends = [sorted((rng.randrange(query.size), rng.randrange(query.size))) for _ in range(pairs)]
    targets = [np.roll(query, first)[first : last + 1] for first, last in ends]
    return task._replace(
        query=np.tile(query, pairs),
        query_starts=np.arange(pairs + 1) * query.size,
        target=np.concatenate(targets),
        target_starts=np.cumsum([0, *map(len, targets)]),
    )


@pytest.mark.slow
@pytest.mark.parametrize("free", [FREE[0], FREE[7], FREE[9], LOCAL])
def test_one_query_of_many_letters(free: tuple[bool, ...]) -> None:
    rng, target, width = random.Random(str(free)), CpuTarget(1), host_lanes(8).width
    for codes, longest in ((7, 30), (24, 110)):
        drawn = [rng.randint(-5, 11) for _ in range(codes * codes)]
        matrix = np.array(drawn, np.int32).reshape(codes, codes)
        task = against(task_of(rng, [longest], matrix, (11, 1), free), width + 5, rng)
        wanted = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
        assert_same(target.launch(PAIR_LIST, beside(task, width)), wanted)
        # Of several queries there is a profile for each.
        task.query[-1] = (task.query[-1] + 1) % codes
        wanted = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
        assert_same(target.launch(PAIR_LIST, beside(task, width)), wanted)


@pytest.mark.parametrize("free", often(3, [(FREE[0],), (FREE[6],), (FREE[15],), (LOCAL,)]))
def test_queries_of_many_letters(free: tuple[bool, ...]) -> None:
    rng, target, width = random.Random(str(free)), CpuTarget(1), host_lanes(8).width
    for codes, longest, pairs in ((20, 9, width + 2), (24, 200, 2 * width), (30, 70, 3 * width - 1)):
        drawn = [rng.randint(-5, 11) - 3 * (free == LOCAL) for _ in range(codes * codes)]
        matrix = np.array(drawn, np.int32).reshape(codes, codes)
        sizes = [rng.randint(1, longest) for _ in range(pairs)]
        task = task_of(rng, sizes, matrix, (rng.randint(8, 20), rng.randint(0, 8)), free)
        wanted = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
        assert_same(target.launch(PAIR_LIST, beside(task, width)), wanted)
        assert_same(CpuTarget(3).launch(PAIR_LIST, beside(task, width)), wanted)


@pytest.mark.parametrize("letters", [4, 20])
def test_of_many_best_cells_the_first_counts(letters: int) -> None:
    """Sequences of few words, of which many alignments are as good, some of them in two columns at a time."""
    rng, target, width = random.Random(letters), CpuTarget(1), host_lanes(8).width
    matrix = matrix_of(letters, 2, -2)
    for costs in ((0, 0), (3, 1), (2, 2)):
        words = [rng.choices(range(letters), k=3) for _ in range(2)]
        sizes = [rng.randint(1, 40) for _ in range(2 * width)]
        sequences = [
            (np.array(list(itertools.chain(*rng.choices(words, k=40))), np.uint8), np.cumsum([0, *own]))
            for own in (sizes, rng.sample(sizes, len(sizes)))
        ]
        codes = [part for own, starts in sequences for part in (np.resize(own, starts[-1]), starts)]
        task = PairList(*codes, matrix, *costs, FreeEnds(*LOCAL))
        if costs[0] == 0:
            task = task._replace(matrix=np.maximum(matrix, 0))
        wanted = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
        if lists._octets(ListBatch(make_setup(task, keep=True), task, host_lanes(8))) is not None:
            assert_same(target.launch(PAIR_LIST, beside(task, width)), wanted)
        else:
            assert costs[0] == 0


def test_queries_that_only_together_repeat_the_first() -> None:
    rng, width = random.Random(4), host_lanes(8).width
    lengths = [4, *(3, 5) * (width // 2)]
    targets = [rng.choices(range(20), k=4) for _ in lengths]
    drawn = [rng.randint(-5, 11) for _ in range(400)]
    query, starts = np.arange(sum(lengths)) % 2, np.cumsum([0, *lengths])
    every = np.arange(len(lengths) + 1) * 4
    codes = query.astype(np.uint8), starts, np.array(targets, np.uint8).ravel(), every
    costs = np.array(drawn, np.int32).reshape(20, 20), 11, 1
    task = PairList(*codes, *costs, FreeEnds(*FREE[0], False, False))
    found, wanted = (ListBatch(make_setup(task, keep=True), task, lanes) for lanes in (host_lanes(8), None))
    assert_same(CpuTarget(1).launch(PAIR_LIST, found), CpuTarget(1).launch(PAIR_LIST, wanted))


@pytest.mark.interpreted
@pytest.mark.parametrize("free", [FREE[3], LOCAL])
def test_many_letters_interpreted(free: tuple[bool, ...]) -> None:
    rng, target = random.Random(8), ReferenceTarget()
    matrix = np.array([rng.randint(-5, 11) for _ in range(144)], np.int32).reshape(12, 12)
    one, each = (task_of(rng, sizes, matrix, (9, 2), free) for sizes in ([16], [16, 4, 5, 1, 7]))
    for task in (against(one, 5, rng), each):
        wanted = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
        assert_same(target.launch(PAIR_LIST, beside(task, 4)), wanted)


ENDS = FREE[0], FREE[-1], FREE[6]


@pytest.mark.parametrize(
    ("match", "mismatch", "costs", "ends"),
    [
        # What cells lie above those on their diagonals goes up to a match and a gap, down to two gaps.
        (127, -42, (42, 0), ENDS),
        (127, -84, (42, 0), ENDS),
        (127, -84, (42, 42), ENDS),
        (0, -85, (85, 0), ENDS),
        (15, -160, (80, 80), ENDS),
        (3, -128, (84, 44), ENDS),
        (255 - 3 * 84, -85, (84, 1), ENDS),
        (6, -17, (10, 1), (*ENDS, LOCAL)),
        # Values of local alignment stay within octets until a gap more is taken from them.
        (127, -64, (32, 0), [LOCAL]),
        (127, -64, (32, 32), [LOCAL]),
        (3, -126, (63, 0), [LOCAL]),
        (15, -120, (60, 60), [LOCAL]),
        (255 - 4 * 62, -63, (62, 1), [LOCAL]),
    ],
)
def test_scores_at_the_limits(match: int, mismatch: int, costs: tuple[int, int], ends: Any) -> None:
    mismatch = max(mismatch, -128)
    rng, target, width = random.Random(match), CpuTarget(1), host_lanes(8).width
    for free in ends:
        matrix = matrix_of(3, match, mismatch)
        task = task_of(rng, [rng.randint(1, 70) for _ in range(width + 7)], matrix, costs, free)
        wanted = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
        assert_same(target.launch(PAIR_LIST, beside(task, width)), wanted)


@pytest.mark.parametrize("free", [FREE[0], LOCAL])
def test_choices_that_caches_do_not_hold(free: tuple[bool, ...]) -> None:
    """They are written past them; scores grow far beyond what an octet holds."""
    rng, target, width = random.Random(5), CpuTarget(1), host_lanes(8).width
    size = 20 + isqrt(2 * choices._CACHED // width)
    task = task_of(rng, [size - k % 9 for k in range(width)], matrix_of(4, 2, -3), (7, 2), free)
    wanted = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
    assert_same(target.launch(PAIR_LIST, beside(task, width)), wanted)


def test_one_score_of_equal_letters_needs_no_table() -> None:
    def source(matrix: Any, free: tuple[bool, ...] = FREE[0]) -> Any:
        task = task_of(random.Random(4), [30] * 9, matrix, (7, 2), free)
        octets = lists._octets(ListBatch(make_setup(task, keep=True), task, host_lanes(8)))
        assert octets is not None
        return octets[2]

    other, worth = matrix_of(4, 2, -3), matrix_of(4, 2, 1)
    other[0, 1] = -1
    assert isinstance(source(matrix_of(4, 2, -3)), Matches)
    assert np.array_equal(source(matrix_of(4, 2, -3)).table, [[11, 16]])
    assert isinstance(source(matrix_of(4, 2, -3), LOCAL), Matches)
    assert isinstance(source(other), PairTable)
    assert isinstance(source(worth), PairTable)


def test_what_octets_do_not_hold() -> None:
    rng = random.Random(1)

    def serves(match: int, mismatch: int, costs: tuple[int, int], free: tuple[bool, ...] = FREE[0]) -> bool:
        task = task_of(rng, [9] * 9, matrix_of(4, match, mismatch), costs, free)
        setup = make_setup(task, keep=True)
        return lists._octets(ListBatch(setup, task, host_lanes(8))) is not None

    assert serves(2, -3, (7, 2)) and serves(2, -3, (7, 2), LOCAL)
    # Alignments from the first residues to any, and local ones where every residue is worth something.
    assert not serves(2, -3, (7, 2), (*FREE[0], False, True)) and not serves(2, 1, (7, 2), LOCAL)
    assert serves(2, 1, (7, 2))
    assert serves(105, -100, (50, 0)) and not serves(106, -100, (50, 0)) and not serves(105, -101, (50, 0))
    assert serves(55, -100, (50, 0), LOCAL) and not serves(56, -100, (50, 0), LOCAL)
    assert serves(5, -14, (7, 2)) and not serves(5, -15, (7, 2)) and not serves(5, -4, (2, 3))
    task = task_of(rng, [9] * 9, matrix_of(4, 2, -3), (7, 2), FREE[0])
    assert lists._octets(ListBatch(make_setup(task, keep=True), task)) is None


def test_groups_of_unlike_lengths_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    width = host_lanes(8).width

    def swept(least: int, most: int, match: int = 2, free: tuple[bool, ...] = FREE[0]) -> int:
        sizes = np.linspace(least, most, 2 * width).astype(int).tolist()
        task = task_of(random.Random(least), sizes, matrix_of(4, match, -3), (7, 2), free)
        none = np.zeros((len(sizes), 4), np.int64)
        found = PairResults(none[:, 0], none, none[:0, :2], none[:, 1])
        return lists._run_beside(lambda *given: 0, beside(task, width), task, found, 1)[1].size // width

    assert [swept(450, 500), swept(50, 60), swept(50, 500), swept(2700, 3000)] == [2, 2, 0, 0]
    # 16 bits hold local scores of 290 matches, not of 330.
    assert [swept(n, n, 110, LOCAL) for n in (290, 330)] == [2, 0] and swept(330, 330, 110) == 2


@pytest.mark.parametrize(("columns", "groups"), [(8_192, 1), (8_193, 0)])
def test_short_beside_very_long_ones_take_no_memory_for_both(columns: int, groups: int) -> None:
    width = host_lanes(8).width
    task = task_of(random.Random(1), [3] * width, matrix_of(4, 2, -3), (7, 2), FREE[0])
    starts, letters = np.arange(width + 1) * columns, np.zeros(width * columns, np.uint8)
    task = task._replace(target=letters, target_starts=starts)
    none = np.zeros((width, 4), np.int64)
    found = PairResults(none[:, 0], none, none[:0, :2], none[:, 1])
    done = lists._run_beside(lambda *given: 0, beside(task, width), task, found, 1)[1]
    assert done.size == groups * width


@pytest.mark.parametrize("mode", ["global", "semiglobal", "overlap", "local"])
def test_public_lists(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    ran: list[int] = []
    run = lists._run_beside

    def noted(*given: Any) -> Any:
        found = run(*given)
        ran.append(found[1].size)
        return found

    monkeypatch.setattr(lists, "_run_beside", noted)
    rng, lanes = random.Random(mode), host_lanes(8).width
    sizes = [rng.randint(40, 60) for _ in range(3 * lanes)]
    queries = ["".join(rng.choices("ACGT", k=size)) for size in sizes]
    targets = ["".join("ACGTN"[c] for c in related(rng, ["ACGT".index(c) for c in q], 5)) for q in queries]
    how: Any = {"mode": mode, "kind": "dna", "gap_open": 7, "gap_extend": 2, "device": "cpu", "threads": 1}
    found = align_pairs(queries, targets, **how)
    assert ran == [3 * lanes]
    # A few pairs, or pairs that are much larger than others, take less time one after the other.
    for first in range(0, 40, 3):
        some = slice(first, first + 3)
        assert list(align_pairs(queries[some], targets[some], **how)) == list(found[some])
    assert not any(ran[1:])
    large = queries[0] * 12, targets[0] * 12
    (alone,) = align_pairs([large[0]], [large[1]], **how)
    mixed = align_pairs([*queries[:7], large[0], *queries[7:]], [*targets[:7], large[1], *targets[7:]], **how)
    assert ran[-1] == 3 * lanes
    assert list(mixed) == [*found[:7], alone, *found[7:]]
