"""Pairs of unit costs, by words of rows, against their definition: every free end, stripes and limits."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.alignment import BestAlignment, best_by_gotoh
from support.alignment_batches import AlignmentBatch
from support.alignment_solvers import pair_list
from support.examples import FULL, examples, often

from plait.align import (
    align_pairs,
    edit_distances,
    hamming_distances,
    match_mismatch,
    score_many,
    score_pairs,
)
from plait.align.scoring import END_NAMES
from plait.devices.target import CpuTarget, interpreted
from plait.dp.bitparallel import edit_lists, edits
from plait.dp.bitparallel.edit_lists import EDIT_LIST
from plait.dp.pairs.launches import PAIR_LIST
from plait.dp.pairs.lists import ListBatch, PairResults, make_setup
from plait.errors import InvalidInput
from plait.lang.lanes import lanes_of

FREE = [frozenset(name for bit, name in enumerate(END_NAMES) if number >> bit & 1) for number in range(16)]


Pairs = list[tuple[list[int], list[int]]]


def batch_of(pairs: Pairs, free: frozenset[str], gap: int = 1, both: int = 0) -> AlignmentBatch:
    """Pairs of unit costs, by the cost of a gap and the score of equal letters, which is even."""
    letters = 1 + max(code for pair in pairs for codes in pair for code in codes)
    other = both // 2 - gap
    scores = tuple(tuple(both if a == b else other for b in range(letters)) for a in range(letters))
    return AlignmentBatch(
        queries=tuple(tuple(query) for query, _ in pairs),
        targets=tuple(tuple(target) for _, target in pairs),
        scores=scores,
        gap_open=gap,
        gap_extend=gap,
        mode="semiglobal" if free else "global",
        free_ends=free,
    )


def drawn(rng: random.Random, letters: int, longest: int) -> tuple[list[int], list[int]]:
    """A pair: alike, repetitive, or neither."""
    query = rng.choices(range(letters), k=rng.randint(1, longest))
    target = rng.choices(range(letters), k=rng.randint(1, longest))
    kind = rng.randint(0, 3)
    if kind == 1:
        unit = target[: rng.randint(1, 5)]
        return (unit * longest)[: len(query)], (unit * longest)[: len(target)]
    if kind > 1:
        cut = rng.randint(0, len(query))
        rate = rng.choice([0.02, 0.3])
        target = [code for code in query if rng.random() > rate]
        target = target[cut // 2 :] + rng.choices(range(letters), k=rng.randint(0, 9))
    return query, target or [0]


def found_by(results: PairResults) -> list[BestAlignment]:
    """Minus the distances, and alignments."""
    ends, columns = np.cumsum(results.run_counts), []
    for last, count in zip(ends.tolist(), results.run_counts.tolist(), strict=True):
        columns.append("".join("MDI"[o] * n for o, n in results.runs[last - count : last].tolist()))
    return [
        BestAlignment(-score, (i, j), (m, n), own)
        for score, (i, m, j, n), own in zip(
            results.scores.tolist(), results.ends.tolist(), columns, strict=True
        )
    ]


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("free", FREE[::3], ids=lambda free: "+".join(sorted(free)) or "whole")
def test_definition(free: frozenset[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_lists, "host_lanes", lambda: lanes_of(2))
    monkeypatch.setattr(edits, "_FIRST_LIMIT", 3)
    monkeypatch.setattr(edit_lists, "_UNLIMITED", 1)
    monkeypatch.setattr(edit_lists, "_LOOK", 40)
    rng = random.Random(f"{sorted(free)}")
    pairs = [drawn(rng, letters, longest) for letters, longest in ((1, 9), (2, 40), (4, 70), (9, 300))]
    batch = batch_of(pairs, free)
    task = edits.edit_batch(pair_list(batch), True, interpreted=True)
    wanted = [best_by_gotoh(case) for case in batch.cases]
    for beside in (0, 1 << 20):
        monkeypatch.setattr(edit_lists, "_MOST_WORDS", beside)
        results = edit_lists.run_edits(
            (interpreted(edits.edit_pairs_kernel), interpreted(edit_lists.edit_groups_kernel)),
            task,
            CpuTarget(1),
        )
        assert found_by(results) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("distance", [0, 300, 970, 985, 2010, 2030])
@pytest.mark.parametrize("size", [513, 1100, 6400])
def test_lanes_that_slide(distance: int, size: int) -> None:
    """Around the distances that lanes hold; of rows that fill words and do not."""
    rng, pairs = random.Random(distance + size), []
    for shift in (0, distance // 3, -min(distance, size - 1) // 2):
        query = rng.choices(range(4), k=size + rng.randint(0, 70))
        target = query[max(-shift, 0) :] + rng.choices(range(4), k=max(shift, 0))
        for place in rng.sample(range(len(target)), min(distance - abs(shift), len(target))):
            target[place] = (target[place] + 1) % 4
        pairs += [(query, target), (target, query)]
    for pair in pairs:
        task, target_of = pair_list(batch_of([pair], FREE[0])), CpuTarget(1)
        found = target_of.launch(EDIT_LIST, edits.edit_batch(task, True))
        known = target_of.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
        assert np.array_equal(-found.scores, known.scores)
        assert np.array_equal(found.ends, known.ends)
        assert np.array_equal(found.runs, known.runs)
        for most in (int(found.scores[0]) - 1, int(found.scores[0])):
            limits = np.array([max(most, 0)])
            limited = target_of.launch(EDIT_LIST, edits.edit_batch(task, False, limits))
            assert limited.scores[0] == (found.scores[0] if limits[0] >= found.scores[0] else -1)


@examples(120)
@given(st.integers(0, 1 << 32))
def test_same_as_any_costs(seed: int) -> None:
    rng = random.Random(seed)
    free, threads = FREE[rng.choice([0, 0, *range(16)])], rng.randint(1, 3)
    letters = rng.choice([2, 4, 20] if FULL else [2, 4])
    longest = rng.choice([30, 700, 1500])
    pairs = [drawn(rng, letters, longest) for _ in range(rng.choice([1, 4, 20]))]
    gap, both = rng.choice([(1, 0), (4, 0), (1, 2), (2, 2), (3, -2)])
    batch = batch_of(pairs, free, gap, 0 if free else both)
    task, target = pair_list(batch), CpuTarget(threads)
    scale = edits.unit_costs(task)
    assert scale is not None
    known = target.launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
    residues = np.diff(task.query_starts) + np.diff(task.target_starts)
    for keep in (True, False) if FULL else (True,):
        found = target.launch(EDIT_LIST, edits.edit_batch(task, keep))
        assert ((scale.both * residues - scale.unit * found.scores) // 2).tolist() == known.scores.tolist()
        assert np.array_equal(found.ends[:, 1::2], known.ends[:, 1::2])
        if keep:
            assert np.array_equal(found.ends, known.ends)
            assert np.array_equal(found.runs, known.runs)
            assert np.array_equal(found.run_counts, known.run_counts)


@pytest.mark.parametrize("compiled", often(1, [True, False]))
def test_blocks_that_are_left(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    """Queries within targets, near to, and not at all: what is above a limit is left, and comes back."""
    if not compiled:
        monkeypatch.setattr(edit_lists, "host_lanes", lambda: lanes_of(2))
    left = []
    blocks = edit_lists._blocks_within
    if not compiled:
        monkeypatch.setattr(
            edit_lists,
            "_blocks_within",
            lambda *given: left.append((given[3], blocks(*given))) or left[-1][1],
        )
    rng = random.Random(8)
    pairs: Pairs = []
    for errors in [0, 0.03, 0.05, 0.2, 1] * (8 if compiled else 1):
        query = [rng.randrange(4) for _ in range(rng.randrange(330, 900 if compiled else 400))]
        inside = [
            rng.randrange(4) if rng.random() < errors else code for code in query if rng.random() > errors / 9
        ]
        around = [rng.randrange(4) for _ in range(rng.randrange(20, 700))]
        place = rng.randrange(len(around))
        pairs.append((query, around[:place] + inside + around[place:]))
    free = frozenset(("target_start", "target_end"))
    task = pair_list(batch_of(pairs, free))
    wanted = CpuTarget(1).launch(PAIR_LIST, ListBatch(make_setup(task, keep=False), task))
    calls = edit_lists._KERNELS if compiled else tuple(map(interpreted, edit_lists._KERNELS))
    for most in (None, 60):
        limits = None if most is None else np.full(len(pairs), most)
        batch = edits.edit_batch(task, False, limits, interpreted=not compiled)
        found = edit_lists.run_edits(calls, batch, CpuTarget(1))
        known = -wanted.scores if most is None else np.where(-wanted.scores > most, -1, -wanted.scores)
        assert found.scores.tolist() == known.tolist()
        assert np.array_equal(found.ends[known >= 0][:, [1, 3]], wanted.ends[known >= 0][:, [1, 3]])
    if not compiled:
        assert any(kept < before for before, (kept, _) in left)
        assert any(coming > kept > 1 for _, (kept, coming) in left)


def test_blocks_near_the_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two fixed ends, blocks are left above, come below, and leave pairs that are too far."""
    monkeypatch.setattr(edit_lists, "host_lanes", lambda: lanes_of(2))
    monkeypatch.setattr(edit_lists, "_NEAR", 4)
    monkeypatch.setattr(edit_lists, "_LOOK", 40)
    looks: list[tuple[tuple[int, int], tuple[int, int]]] = []
    near = edit_lists._blocks_near
    monkeypatch.setattr(
        edit_lists,
        "_blocks_near",
        lambda *given: looks.append((given[2], near(*given))) or looks[-1][1],
    )
    rng = random.Random(3)
    query = rng.choices(range(4), k=400)
    inserted = query[:150] + rng.choices(range(4), k=70) + query[150:330] + query[395:]
    pairs: Pairs = [(query, inserted), (query, query[:200] + query[203:]), (query, query[:199]), (query, [0])]
    pairs += [(query, rng.choices(range(4), k=size)) for size in (500, 501)]
    task = pair_list(batch_of(pairs, FREE[0]))
    wanted = CpuTarget(1).launch(PAIR_LIST, ListBatch(make_setup(task, keep=True), task))
    wanted = wanted._replace(scores=-wanted.scores)
    calls = tuple(map(interpreted, edit_lists._KERNELS))
    for most in (None, 150):
        limits = np.full(len(pairs), 900 if most is None else most)
        found = edit_lists.run_edits(
            calls, edits.edit_batch(task, True, limits, interpreted=True), CpuTarget(1)
        )
        assert found.scores.tolist() == np.where(wanted.scores > limits, -1, wanted.scores).tolist()
        assert found_by(found)[1] == found_by(wanted)[1]
    kept = [(before, after) for before, after in looks if after[0] < after[1]]
    assert any(after[0] > before[0] for before, after in kept)
    assert {after[1] - before[1] for before, after in kept} == {0, 1}
    assert len(kept) < len(looks)


def test_limits_of_a_pair_whose_query_is_left_out() -> None:
    rng, target = random.Random(6), CpuTarget(1)
    query = [rng.randrange(4) for _ in range(600)]
    parts = (query[-50:], query[:50], query[270:330])
    for free in FREE[1:]:
        for pair in [(query, part) for part in parts] + [(part, query) for part in parts]:
            task = pair_list(batch_of([pair], free))
            distance = target.launch(EDIT_LIST, edits.edit_batch(task, False)).scores[0]
            for limit in {0, 5, int(distance)}:
                for keep in (False, True):
                    batch = edits.edit_batch(task, keep, np.array([limit]))
                    found = target.launch(EDIT_LIST, batch).scores.tolist()
                    assert found == [distance if distance <= limit else -1]


def test_limits() -> None:
    rng = random.Random(5)
    pairs = [drawn(rng, 4, rng.choice([6, 1400])) for _ in range(120)]
    for free in (FREE[0], FREE[8], FREE[12]):
        task, target = pair_list(batch_of(pairs, free)), CpuTarget(1)
        distances = target.launch(EDIT_LIST, edits.edit_batch(task, False)).scores
        limits = distances + np.arange(120) % 3 - 1
        for keep in (False, True):
            found = target.launch(EDIT_LIST, edits.edit_batch(task, keep, limits))
            assert found.scores.tolist() == np.where(distances > limits, -1, distances).tolist()


@pytest.mark.parametrize(
    ("gap", "extend", "scores"),
    [
        (2, 1, ((0, -1), (-1, 0))),
        (0, 0, ((0, 0), (0, 0))),
        (1, 1, ((1, -1), (-1, 1))),
        (1, 1, ((0, -1), (-1, -1))),
        (2, 2, ((0, -1), (-1, 0))),
    ],
)
def test_other_costs(gap: int, extend: int, scores: tuple[tuple[int, ...], ...]) -> None:
    batch = AlignmentBatch(
        queries=((0, 1),), targets=((1, 0),), scores=scores, gap_open=gap, gap_extend=extend
    )
    assert edits.unit_costs(pair_list(batch)) is None


def test_scores_of_equal_letters_need_global_alignment() -> None:
    pairs: Pairs = [([0, 1], [1, 0])]
    assert edits.unit_costs(pair_list(batch_of(pairs, FREE[0], 2, 2))) == (2, 6)
    assert edits.unit_costs(pair_list(batch_of(pairs, FREE[8], 2, 2))) is None


@pytest.mark.parametrize("mode", ["global", "semiglobal", "overlap"])
def test_distances_of_texts(mode: Any) -> None:
    rng = random.Random(mode)
    pairs = [drawn(rng, 3, rng.choice([5, 90])) for _ in range(40)]
    queries, targets = (["".join("ACG"[code] for code in one[k]) for one in pairs] for k in (0, 1))
    queries += ["", "", "A", "ACG"]
    targets += ["", "AC", "", "G"]
    how: Any = {"matrix": match_mismatch(0, -1), "gap_open": 1, "gap_extend": 1, "mode": mode}
    scores = score_pairs(queries, targets, **how)
    assert [one.score for one in align_pairs(queries, targets, **how)] == scores.tolist()
    assert score_many(queries[0], targets[:40], **how)[0] == scores[0]
    found = edit_distances(queries, [target.encode() for target in targets], mode=mode, threads=2)
    assert found.tolist() == (-scores).tolist()
    assert edit_distances(queries, targets, mode=mode, at_most=1 << 80).min(initial=0) >= 0
    limited = edit_distances(queries, targets, mode=mode, at_most=2)
    assert limited.tolist() == np.where(found > 2, -1, found).tolist()
    assert edit_distances([], [], mode=mode).size == 0


@pytest.mark.slow
def test_letters_are_bytes() -> None:
    assert edit_distances(["Abc\t7", b"\xff\x00"], ["abc\t-", b"\x00\xff"]).tolist() == [2, 2]


def test_too_many_letters_are_refused() -> None:
    many = "".join(map(chr, range(33)))
    with pytest.raises(InvalidInput, match="texts: found 33 different letters, expected 32 at the most"):
        edit_distances([many], [many])


@pytest.mark.parametrize("letters", [1, 3, 4, 5, 20])
@pytest.mark.parametrize("compiled", [True, False])
def test_codes_are_numbered_as_they_come(letters: int, compiled: bool) -> None:
    """Of four, blocks are numbered without a look at each; one more may come late, and numbers go on."""
    rng = np.random.default_rng(letters)
    chosen = rng.permutation(256)[:letters].astype(np.uint8)
    early, late = rng.integers(0, min(letters, 4), 3 * edits._NUMBERED), rng.integers(0, letters, 5_000)
    codes = chosen[np.concatenate([early, late])]
    numbers: dict[int, int] = {}
    wanted = [numbers.setdefault(code, len(numbers)) for code in codes.tolist()]
    parts = codes[:100].copy(), codes[100:].copy()
    found, place, count = edits._numbered(*parts, interpreted=not compiled)
    assert np.concatenate(found).tolist() == wanted
    assert count == len(numbers) and {code: int(place[code]) for code in numbers} == numbers


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((["A"], []), {}, "pairs: found 1 queries and 0 targets"),
        (("A", ["A"]), {}, "queries: found one str, expected several texts"),
        ((["A", 3], ["A"]), {}, "queries: found a int as number 2"),
        ((["A"], ["\xe9"]), {}, "targets: found the letter '\xe9' in number 1"),
        ((["A"], ["A"]), {"mode": "local"}, "mode: found 'local', expected global, semiglobal or overlap"),
        ((["A"], ["A"]), {"at_most": -1}, "at_most: found -1, expected a whole number"),
    ],
)
def test_bad_input(arguments: Any, settings: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        edit_distances(*arguments, **settings)


@pytest.mark.parametrize("threads", [1, 3])
def test_hamming_distances(threads: int) -> None:
    rng = random.Random(threads)
    pairs = []
    for _ in range(700):
        query = rng.choices(range(256), k=rng.choice([0, 1, 63, 192, 193, 500]))
        pairs.append((bytes(query), bytes(c if rng.random() < rng.random() else 0 for c in query)))
    queries, targets = zip(*pairs, strict=True)
    known = np.array([sum(a != b for a, b in zip(*pair, strict=True)) for pair in pairs])
    assert hamming_distances(queries, targets, threads=threads).tolist() == known.tolist()
    limited = hamming_distances(queries, targets, at_most=100, threads=threads)
    assert limited.tolist() == np.where(known > 100, -1, known).tolist()
    alike = [query for query in queries if len(query) == 193]
    one = hamming_distances(alike, alike[0], threads=threads)
    assert one.tolist() == hamming_distances(alike, [alike[0]] * len(alike)).tolist()
    assert one[0] == 0 < one[1]
    assert hamming_distances([], "A").size == hamming_distances([], []).size == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["A", "AC"], ["A", "ACG"]), "pairs: found 2 and 3 letters in number 2, expected texts of the same"),
        ((["AC", "A"], "AC"), "pairs: found 1 and 2 letters in number 2"),
        ((["A"], ["A", "C"]), "pairs: found 1 queries and 2 targets, expected as many .* or one target"),
        ((["A"], 3), "targets: found one int, expected several texts"),
    ],
)
def test_bad_texts_for_hamming(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        hamming_distances(*arguments)
