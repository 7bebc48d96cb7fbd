from __future__ import annotations

import random
from itertools import chain

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.vdj.clonotypes import error_clonotypes as satellites
from plait.vdj.clonotypes.error_clonotypes import Texts, find_parents, merge_satellites

Entry = tuple[int, str, int, str]


def texts(entries: list[Entry]) -> Texts:
    """Of groups, texts, counts, and letters with a ``?`` where they are doubtful."""
    letters = np.frombuffer("".join(text for _, text, _, _ in entries).encode(), np.uint8)
    doubts = np.array([c == "?" for c in chain(*(doubt for _, _, _, doubt in entries))], np.bool_)
    starts = np.cumsum([0, *(len(text) for _, text, _, _ in entries)])
    groups = np.array([group for group, _, _, _ in entries], np.int64)
    return Texts(letters, starts, groups, np.array([count for _, _, count, _ in entries], np.int64), doubts)


def oracle(entries: list[Entry], ratio: float) -> list[int]:
    parents = list(range(len(entries)))
    for child, (group, text, count, doubts) in enumerate(entries):
        best = None
        for parent, (other_group, other, other_count, _) in enumerate(entries):
            different = [i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b]
            if (
                (group, len(text), 1) == (other_group, len(other), len(different))
                and doubts[different[0]] == "?"
                and other_count >= ratio * count
                and (best is None or other_count > entries[best][2])
            ):
                best = parent
        parents[child] = child if best is None else best
    for child in range(len(entries)):
        while parents[parents[child]] != parents[child]:
            parents[child] = parents[parents[child]]
    return parents


@st.composite
def entry_lists(draw: st.DrawFn) -> list[Entry]:
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    entries: list[Entry] = []
    for group in range(draw(st.integers(0, 4))):
        length = rng.randrange(1, 6)
        words = {
            "".join(rng.choices("ACGTN", [4, 4, 1, 1, 1], k=length)) for _ in range(rng.randrange(1, 25))
        }
        for word in sorted(words):
            doubts = "".join(rng.choices("?.", [3, 1], k=length))
            entries.append((group, word, rng.choice([1, 1, 2, 3, 5, 10, 40]), doubts))
    return entries


@given(entry_lists(), st.sampled_from([1.5, 2, 10]), st.sampled_from([3, 1 << 20]))
def test_parents_are_those_that_comparing_all_pairs_gives(
    entries: list[Entry], ratio: float, probes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(satellites, "_PROBES", probes)
        assert find_parents(texts(entries), ratio).tolist() == oracle(entries, ratio)


@given(entry_lists(), st.integers(0, 4))
def test_letters_all_alike_to_the_hash_are_told_apart(entries: list[Entry], bits: int) -> None:
    """Hashes of few bits make different texts equal by chance, which must not matter."""

    class FewBits:
        def __init__(self, seed: int) -> None:
            self._rng = np.random.Generator(np.random.PCG64(seed))

        def integers(self, low: int, high: int, size: int, kind: type) -> np.ndarray[tuple[int], np.dtype]:
            return self._rng.integers(0, 1 << bits, size).astype(kind)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "default_rng", FewBits)
        assert find_parents(texts(entries), 2).tolist() == oracle(entries, 2)


def test_a_chain_ends_at_its_head() -> None:
    entries = [(0, "AAA", 400, "???"), (0, "AAC", 20, "???"), (0, "ACC", 1, "???"), (0, "GGG", 1, "???")]
    assert find_parents(texts(entries), 20).tolist() == [0, 0, 0, 3]


def clonotypes(quality: list[str] | None = None, **changes: list[object]) -> pa.RecordBatch:
    columns: dict[str, list[object]] = {
        "group": ["x"] * 3,
        "length": [3] * 3,
        "junction": ["AAA", "AAC", "CAA"],
        "duplicate_count": [50, 2, 3],
        "consensus_count": [70, 2, 9],
    }
    if quality is not None:
        columns["quality"] = list(quality)
    return pa.record_batch(columns | changes)


def test_counts_go_to_the_parent() -> None:
    found = merge_satellites(clonotypes(), 20, 25)
    assert found.clonotypes.select(["junction", "duplicate_count", "consensus_count"]).to_pylist() == [
        {"junction": "AAA", "duplicate_count": 52, "consensus_count": 72},
        {"junction": "CAA", "duplicate_count": 3, "consensus_count": 9},
    ]
    assert (found.satellites, found.satellite_count) == (1, 2)


@pytest.mark.parametrize(
    ("quality", "merged"),
    [
        (["III", "II9", "III"], 1),
        (["###", "II:", "III"], 0),
        (["III", "##I", "III"], 0),
        (["III", "", "III"], 1),
        (["", "", ""], 1),
        (["", "II9", ""], 1),
    ],
)
def test_good_bases_are_no_errors(quality: list[str], merged: int) -> None:
    """A Phred score of 24 is written 9, one of 25 with a colon."""
    assert merge_satellites(clonotypes(quality), 20, 25).satellites == merged


@pytest.mark.parametrize(
    "changes",
    [{"group": ["x", "y", "z"]}, {"length": [3, 4, 5], "junction": ["AAA", "AACA", "CAAAA"]}],
    ids=["genes", "length"],
)
def test_only_what_is_of_one_kind_is_compared(changes: dict[str, list[object]]) -> None:
    assert merge_satellites(clonotypes(**changes), 2, 25).satellites == 0


def test_nothing_to_merge() -> None:
    assert merge_satellites(clonotypes().slice(0, 0), 20, 25).clonotypes.num_rows == 0
    assert merge_satellites(clonotypes(), 30, 25).clonotypes.equals(clonotypes())
