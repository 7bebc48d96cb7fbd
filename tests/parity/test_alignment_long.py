"""Pairs of many tiles: one alignment from every way of walking back, and laws that hold at any length."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from support.alignment_batches import rescore
from support.examples import often

from plait.align import Alignment, align, batches, score
from plait.dp.pairs import tiles as tile_grid
from plait.dp.pairs.tiles import LongPair

MODES = ("global", "local", "overlap", "extension", "semiglobal")
Pair = tuple[str, str]


@pytest.fixture(autouse=True, scope="module")
def small_tiles() -> Iterator[None]:
    """Tiles of a few stripes, and little memory, so that tiles are cut again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tile_grid, "_LEAST_TILE", 100)
        patch.setattr(tile_grid, "_LARGEST_TILE", 500)
        limited = partial(LongPair, choice_limit=1 << 17, checkpoint_limit=1 << 17)
        patch.setattr(batches, "LongPair", limited)
        yield


def drawn(rng: random.Random, size: int) -> str:
    return "".join(rng.choices("ACGT", k=size))


def changed(rng: random.Random, sequence: str) -> str:
    return "".join(rng.choice("ACGTN") if rng.random() < 0.1 else letter for letter in sequence)


def pairs() -> dict[str, Pair]:
    """Pairs that make long gaps, equally good paths, and much between the aligned pieces."""
    rng = random.Random(20)
    one = drawn(rng, 1_500)
    near = changed(rng, one)
    repeat = "ACGGT" * 260
    return {
        "changed": (one, near),
        "long gap in the target": (one, near[:300] + near[1_000:]),
        "long gap in the query": (near[:700] + near[1_300:], one),
        "moved": (one, near[900:] + drawn(rng, 300) + near[:900]),
        "repeats": (repeat, repeat[3:600] + repeat[615:1_200]),
        "one letter": ("A" * 1_100, "A" * 900),
        "nothing alike": ("AC" * 600, "GT" * 500),
        "inside": (drawn(rng, 400) + one[500:900] + drawn(rng, 200), one),
        "short and long": (one[200:260], near),
        "one residue": ("G", near),
    }


PAIRS = pairs()


def assert_scored(found: Alignment, query: str, target: str) -> None:
    scoring = found.scoring
    assert rescore(found, scoring.encode(query), scoring.encode(target), scoring) == found.score


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", often(1, PAIRS))
def test_every_way_finds_one_alignment(name: str, mode: Any) -> None:
    query, target = PAIRS[name]
    how: dict[str, Any] = {"mode": mode, "kind": "dna"}
    for costs in ({}, {"gap_open": 3, "gap_extend": 3}, {"gap_open": 40, "gap_extend": 0}):
        found = align(query, target, traceback="full", threads=1, **how, **costs)
        assert_scored(found, query, target)
        # A band that holds all cells: row by row.
        assert align(query, target, band=len(query) + len(target), **how, **costs) == found
        for threads in (1, 3):
            assert align(query, target, traceback="linear", threads=threads, **how, **costs) == found
        assert score(query, target, **how, **costs) == found.score


def test_threads_do_not_change_which_alignment() -> None:
    query, target = PAIRS["repeats"]
    found = {
        align(query, target, mode="local", traceback="linear", threads=threads).cigar
        for threads in (1, 2, 3, 3, 3, 8)
    }
    assert len(found) == 1


@pytest.mark.parametrize("name", often(1, PAIRS))
def test_laws(name: str) -> None:
    query, target = PAIRS[name]

    def best(query: str, target: str, mode: Any, **how: Any) -> int:
        return align(query, target, mode=mode, traceback="linear", kind="dna", **how).score

    for mode in ("global", "local", "overlap"):
        assert best(target, query, mode) == best(query, target, mode)
        assert best(query[::-1], target[::-1], mode) == best(query, target, mode)
    begun = best(query, target, "semiglobal", free_ends=["target_start"])
    assert begun == best(query[::-1], target[::-1], "semiglobal", free_ends=["target_end"])
    assert begun == best(target, query, "semiglobal", free_ends=["query_start"])
    other, another = PAIRS["changed"]
    joined = best(query + other, target + another, "global")
    assert joined >= best(query, target, "global") + best(other, another, "global")
    assert best(query + other, another + target, "local") >= best(other, another, "local")
    ladder = [best(query, target, mode) for mode in ("global", "semiglobal", "overlap", "local")]
    assert ladder == sorted(ladder)
