from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.episodes import at_most, most_without_overlap, neurons, occurrences, with_lists

from plait.devices.target import interpreted
from plait.episodes import count, mine, mining
from plait.errors import FormatError, InvalidInput

WINDOWS = [(0.0, 2.0), (1.0, 4.0)]


def as_text(kinds: list[int], windows: list[tuple[float, float]]) -> str:
    steps = (f" -({low:g},{high:g}]-> {kind}" for kind, (low, high) in zip(kinds[1:], windows, strict=True))
    return str(kinds[0]) + "".join(steps)


streams = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12)), min_size=1, max_size=14)
episodes = st.lists(st.integers(0, 2), min_size=1, max_size=4).flatmap(
    lambda kinds: st.tuples(
        st.just(kinds),
        st.lists(st.sampled_from(WINDOWS), min_size=len(kinds) - 1, max_size=len(kinds) - 1),
    )
)


@given(streams, st.lists(episodes, min_size=1, max_size=6), st.integers(1, 3))
def test_counts_are_the_most_without_overlap(
    stream: list[tuple[int, int]], asked: list[tuple[list[int], list[tuple[float, float]]]], threads: int
) -> None:
    """With events at one time, types that repeat, and steps of any length above 0."""
    types, times = zip(*stream, strict=True)
    found = count(types, times, [as_text(*episode) for episode in asked], threads=threads).table
    for episode, row in zip(asked, found.to_pylist(), strict=True):
        every = occurrences(types, times, episode)
        assert row["all_occurrences"] == len(every)
        assert row["count"] == most_without_overlap(every)
        assert row["size"] == len(episode[0])
        if every:
            assert row["last"] in {last for _, last in every}
            assert any(first == row["first"] and last <= row["last"] for first, last in every)
        else:
            assert row["first"] is None and row["last"] is None


@given(streams, st.integers(1, 4))
def test_every_frequent_episode_is_found(stream: list[tuple[int, int]], support: int) -> None:
    types, times = zip(*stream, strict=True)
    found = mine(types, times, windows=WINDOWS, support=support, max_size=3).table
    expected = {}
    for size in (1, 2, 3):
        for kinds in itertools.product(sorted(set(types)), repeat=size):
            for windows in itertools.product(WINDOWS, repeat=size - 1):
                most = most_without_overlap(occurrences(types, times, (kinds, windows)))
                if most >= support:
                    expected[as_text(list(kinds), list(windows))] = most
    assert dict(zip(found["episode"].to_pylist(), found["count"].to_pylist(), strict=True)) == expected
    assert found["size"].to_pylist() == sorted(found["size"].to_pylist())


def test_the_published_algorithms_agree() -> None:
    """Times are all different here; the first pass of the two gives bounds."""
    rng = np.random.default_rng(3)
    times = np.sort(rng.random(3000) * 4000)
    types = rng.integers(6, size=3000).astype(np.int32)
    asked = []
    for size in (2, 3, 5):
        for _ in range(8):
            asked.append((rng.integers(6, size=size).tolist(), [(5.0, 15.0)] * (size - 1)))
    found = count(types, times, [as_text(*episode) for episode in asked]).table["count"].to_pylist()
    assert found == [with_lists(types, times, episode) for episode in asked]
    assert all(n <= at_most(types, times, episode) for n, episode in zip(found, asked, strict=True))
    assert max(found) > 20


def test_planted_chains_are_the_longest_frequent_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    types, times, chains = neurons(seconds=20)
    found = mine(types, times, windows=[(5, 10)], support=120, max_size=6, threads=2)
    longest = [row for row in found.table.to_pylist() if row["size"] == 5]
    assert {row["episode"] for row in longest} == {as_text(chain, [(5, 10)] * 4) for chain in chains}
    assert found.levels[-1].size == 5 and [level.candidates for level in found.levels[:2]] == [26, 26 * 26]
    monkeypatch.setattr(mining, "_BLOCK", 7)
    assert mine(types, times, windows=[(5, 10)], support=120, threads=3).table.equals(found.table)
    monkeypatch.setattr(mining, "count_episodes", interpreted(mining.count_episodes))
    few = slice(0, 2000)
    by_definition = mine(types[few], times[few], windows=[(5, 10)], support=15, max_size=3)
    monkeypatch.undo()
    assert mine(types[few], times[few], windows=[(5, 10)], support=15, max_size=3).table.equals(
        by_definition.table
    )


def test_order_unit_and_origin_do_not_matter() -> None:
    types, times = ["B", "A", "A", "B"], [3, 1, 10, 11]
    asked = ["A -(0,5]-> B", "B"]
    first = count(types, times, asked).table
    assert first["count"].to_pylist() == [2, 2]
    late = np.array(times) + 2**62
    moved = count(types, late, asked).table
    assert moved["first"].to_pylist() == [2**62 + 1, 2**62 + 3] and moved["last"].to_pylist()[0] == 2**62 + 11
    scaled = count(types[::-1], np.array(times[::-1]) / 2, ["A -(0,2.5]-> B"]).table
    assert scaled["count"].to_pylist() == [2] and scaled["last"].to_pylist() == [5.5]
    assert count(types, times, ["A -(0,5]-> never"]).table["count"].to_pylist() == [0]


def test_numbers_of_chains_that_do_not_fit_are_not_told() -> None:
    """2^13 chains a step: five steps are too many for 64 bits, four are not."""
    times = np.repeat(np.arange(6.0), 1 << 13)
    types = np.repeat(np.arange(6), 1 << 13)
    asked = [as_text(list(range(n)), [(0.0, 1.0)] * (n - 1)) for n in (4, 5)]
    assert count(types, times, asked).table["all_occurrences"].to_pylist() == [1 << 52, None]


def test_results_are_tables() -> None:
    found = mine(pa.array(["A", "B"]), pa.array([1, 2]), windows=[(0, 1)], support=1)
    assert found.to_arrow().num_rows == 3 and "episode" in repr(found)
    nothing = mine([], [], windows=[(0, 1)], support=1)
    assert nothing.table.num_rows == 0 and nothing.levels[0].candidates == 0


@pytest.mark.parametrize(
    ("types", "times", "text"),
    [
        (["A", None], [1, 2], "record 1, column 'type': found None, expected a name"),
        (["A", "x -(y"], [1, 2], "record 1, column 'type': found 'x -(y'"),
        (["A", "B"], ["1", "x"], "record 1, column 'time': found 'x', expected a number"),
        (["A", "B"], [1.0, float("nan")], "record 1, column 'time': found nan, expected a number"),
        (["A", "B"], [0, 2**62], "found times 4,611,686,018,427,387,904 apart"),
        (["A"], [1, 2], "times: found 2, expected 1, one per event"),
    ],
)
def test_bad_events(types: list[str | None], times: list[object], text: str) -> None:
    with pytest.raises((FormatError, InvalidInput)) as caught:
        mine(types, times, windows=[(0, 1)], support=1)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"windows": []}, "window: found none"),
        ({"windows": [(0, 1), (0, 1)]}, "expected one or more, each once"),
        ({"windows": [(0, 1), (2, 1)]}, "window: found 2:1, expected LO:HI with 0 <= LO < HI"),
        ({"windows": [(float("nan"), 1)]}, "window: found nan:1"),
        ({"support": 0}, "support: found 0, expected a whole number of at least 1"),
        ({"max_size": 65}, "max_size: found 65, expected a whole number from 1 to 64"),
    ],
)
def test_bad_settings(changed: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        mine(["A"], [1], **{"windows": [(0, 1)], "support": 1, **changed})  # type: ignore[arg-type]
    assert text in str(caught.value)


def test_too_many_frequent_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining, "_MOST_FREQUENT", 5)
    with pytest.raises(
        InvalidInput, match="support: found 1, with which over 5 episodes of size 2 are frequent"
    ):
        mine(list("ABCABC"), range(6), windows=[(0, 9)], support=1)


@pytest.mark.parametrize(
    "text", ["", "A -(1,0]-> B", "A -(0,1]->", "A -(x,1]-> B", "A -(0,inf]-> B", "A -(-1,1]-> B"]
)
def test_bad_episodes(text: str) -> None:
    with pytest.raises(InvalidInput, match="episode: found"):
        count(["A"], [1], [text])
