"""`plait.stats.contingency` and `tally`: the same counts whatever the order and the parts; the bound."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.stats.contingency import COARSEST, ContingencyTable, Pairs, Tally, least_level, recoded

Row = tuple[str, float, float, int]
NAMES = ("b", "a", "c")


def table_of(rows: list[Row], most: int | None = None, kind: Any = np.int64) -> ContingencyTable:
    table = ContingencyTable(most)
    if rows:
        add(table, rows, kind)
    return table


def add(table: ContingencyTable, rows: list[Row], kind: Any = np.int64) -> None:
    names, x, y, counts = zip(*rows, strict=True)
    used = list(dict.fromkeys(names))
    places = np.array([used.index(name) for name in names])
    table.add(
        np.array(x).astype(kind),
        np.array(y).astype(kind),
        np.array(counts),
        strata=(places, [(name,) for name in used]),
    )


def content(table: ContingencyTable) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for name in table.strata:
        x, y, counts = table.pairs(name)
        found.append((name, x.dtype.kind, x.tolist(), y.tolist(), counts.tolist()))
    return found


def plainly(rows: list[Row]) -> dict[str, list[tuple[float, float, int]]]:
    counted: Counter[tuple[str, float, float]] = Counter()
    for name, x, y, count in rows:
        counted[name, x, y] += count
    found: dict[str, list[tuple[float, float, int]]] = {}
    for (name, x, y), count in sorted(counted.items()):
        if count:
            found.setdefault(name, []).append((x, y, count))
    return found


def rows_of(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.tuples(st.sampled_from(NAMES), numbers, numbers, st.integers(0, 3)), max_size=40)


WHOLE = st.one_of(st.integers(-3, 3), st.integers(-(2**63) + 1, 2**63 - 1))
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, 1 / 3, -2.5, 1e300, -1e-300, float("inf")]),
    st.floats(allow_nan=False, allow_subnormal=True),
)


@given(rows_of(WHOLE))
def test_whole_numbers_are_counted_exactly(rows: list[Row]) -> None:
    found = table_of(rows)
    assert {name[0]: list(zip(*found.pairs(name), strict=True)) for name in found.strata} == plainly(rows)
    assert len(found) == sum(map(len, plainly(rows).values()))
    assert found.digits is None


@given(rows_of(FLOATS))
def test_floating_point_numbers_are_counted_exactly(rows: list[Row]) -> None:
    found = table_of(rows, kind=np.float64)
    assert {name[0]: list(zip(*found.pairs(name), strict=True)) for name in found.strata} == plainly(rows)


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@given(data=st.data(), most=st.sampled_from([None, 1, 3, 8]))
def test_parts_and_order_do_not_matter(kind: Any, data: st.DataObject, most: int | None) -> None:
    rows = data.draw(rows_of(WHOLE if kind is np.int64 else FLOATS))
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    parts = [
        table_of(list(shuffled[start:end]), most, kind)
        for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)
    ]
    for part in parts:
        if data.draw(st.booleans()):
            len(part)  # counts, and rounds, what it holds so far
    merged = ContingencyTable(most)
    for part in parts:
        merged.merge(pickle.loads(pickle.dumps(part)))
    left, right = ContingencyTable(most), ContingencyTable(most)
    for side, half in ((left, parts[: len(parts) // 2]), (right, parts[len(parts) // 2 :])):
        for part in half:
            side.merge(part)
    right.merge(left)
    whole = table_of(rows, most, kind)
    assert content(merged) == content(right) == content(whole)
    assert merged.digits == right.digits == whole.digits


@given(rows_of(WHOLE), st.integers(1, 12))
def test_the_bound_holds_and_keeps_order(rows: list[Row], most: int) -> None:
    exact, bounded = table_of(rows), table_of(rows, most)
    assert len(bounded) <= max(most, len(bounded.strata))
    for name in exact.strata:
        one, other = exact.pairs(name), bounded.pairs(name)
        assert one.counts.sum() == other.counts.sum()
        assert sorted(zip(other.x, other.y, strict=True)) == list(zip(other.x, other.y, strict=True))
        # Rounding is a map that keeps the order: the ranks of x by rows can only become ties.
        spread = [np.repeat(pairs.x, pairs.counts) for pairs in (one, other)]
        assert all(b <= 0 if a <= 0 else b >= 0 for a, b in zip(*spread, strict=True))
        assert np.all(np.abs(spread[1].astype(float)) <= np.abs(spread[0].astype(float)))


def test_as_few_digits_as_needed_are_dropped() -> None:
    table = ContingencyTable(4)
    table.add(np.array([1000, 1001, 1002, 1003, 5000]), np.ones(5, int))
    # 1000 to 1003 are 1111101000 to 1111101011 in binary: without the last of ten digits they are two.
    assert table.digits == 9
    assert table.pairs().x.tolist() == [1000, 1002, 0b1001110000000]
    assert table.pairs().counts.tolist() == [2, 2, 1]


def test_a_table_within_its_bound_is_exact() -> None:
    big = 2**62 + 1
    table = ContingencyTable(2)
    table.add(np.array([big, big - 1]), np.array([1, 1]))
    assert table.pairs().x.tolist() == [big - 1, big]
    table.add(np.array([1]), np.array([1]))
    assert table.pairs().x.tolist() == [1.0, 2.0**62]


def test_many_rows_are_counted_in_pieces() -> None:
    rng = np.random.default_rng(3)
    table = ContingencyTable()
    every = []
    for _ in range(6):
        x, y = rng.integers(0, 50, (2, 100_000))
        every.append(x * 50 + y)
        table.add(x, y)
    found = table.pairs()
    distinct, counts = np.unique(np.concatenate(every), return_counts=True)
    assert np.array_equal(found.x * 50 + found.y, distinct)
    assert np.array_equal(found.counts, counts)


def test_a_pickle_is_small() -> None:
    table = ContingencyTable()
    table.add(np.arange(10_000), np.arange(10_000) % 7)
    assert len(pickle.dumps(table)) < 10_000 * 6


def test_grouped_strata() -> None:
    table = ContingencyTable()
    names: list[tuple[str, ...]] = [("v1", "j1"), ("v1", "j2"), ("v2", "j1")]
    table.add(np.array([5, 5, 6]), np.array([1, 1, 2]), strata=(np.arange(3), names))
    by_v = table.grouped(lambda name: name[:1])
    assert by_v.strata == [("v1",), ("v2",)]
    assert [column.tolist() for column in by_v.pairs(("v1",))] == [[5], [1], [2]]
    assert [column.tolist() for column in table.grouped(lambda _: ()).pairs()] == [[5, 6], [1, 2], [2, 1]]
    assert table.pairs(("v9",)).counts.size == 0


def test_what_is_refused() -> None:
    table = ContingencyTable()
    with pytest.raises(ValueError, match="NaN"):
        table.add(np.array([np.nan]), np.array([1]))
    with pytest.raises(ValueError, match="negative"):
        table.add(np.array([1]), np.array([1]), np.array([-1]))
    with pytest.raises(ValueError, match="2 x, 1 y"):
        table.add(np.array([1, 2]), np.array([1]))
    with pytest.raises(ValueError, match="bounds"):
        table.merge(ContingencyTable(3))


def test_an_empty_table() -> None:
    table = ContingencyTable(5)
    assert (len(table), table.strata, table.digits) == (0, [], None)
    assert isinstance(table.pairs(), Pairs)
    assert table.pairs().x.size == 0
    table.merge(ContingencyTable(5))
    assert len(pickle.loads(pickle.dumps(table))) == 0


def test_tally_adds_whole_numbers_of_any_size() -> None:
    one, other = Tally(("n", "sum")), Tally(("n", "sum"))
    one.add([np.array(["b", "a", "b"])], [np.array([1, 2, 3]), np.array([2**62, 1, 1])])
    other.add([np.array(["b"])], [np.array([1]), np.array([2**62])])
    other.merge(one)
    other.merge(one)
    assert list(other) == [(("a",), {"n": 4, "sum": 2}), (("b",), {"n": 9, "sum": 3 * 2**62 + 2})]
    assert other.get("c") == {"n": 0, "sum": 0}
    assert len(other) == 2
    assert list(pickle.loads(pickle.dumps(other))) == list(other)
    with pytest.raises(ValueError, match="sums"):
        one.merge(Tally(("n",)))


@given(
    rows_of(st.one_of(WHOLE, st.integers(0, 2000))),
    st.integers(1, 12),
    st.sampled_from([np.int64, np.float64]),
)
def test_no_lower_level_would_do(rows: list[Row], most: int, kind: Any) -> None:
    """The level is the least one: found by trying all of them."""
    exact = table_of(rows, kind=kind)
    if len(exact) <= most:
        return
    block, whole = exact._counted, exact._whole

    def entries(level: int) -> int:
        x, y = (recoded(keys, w, 0, w, level) for keys, w in zip((block.x, block.y), whole, strict=True))
        return len(set(zip(block.stratum.tolist(), x.tolist(), y.tolist(), strict=True)))

    found = least_level(block, whole, 0, most)
    assert found == next((k for k in range(1, COARSEST) if entries(k) <= most), COARSEST)
