"""Threads, their number and the size of a batch do not change a bit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.cases import Answer, Batch, Junction, run_chain, run_enumeration
from support.examples import often
from support.problems import PROBLEMS

from plait.devices.target import CpuTarget
from plait.lang.algebras import COUNT
from plait.lang.lanes import host_lanes
from plait.vdj.models import PathModel

#: More texts than one thread takes at a time.
TEXTS = 2300


def many(problem: str, most: int) -> Batch:
    """A long batch of different junctions, made by cutting a piece out of the middle of the drawn ones."""
    (batch, *_) = PROBLEMS[problem].edge_cases
    stems = [item for item in batch.junctions if len(item.sequence) > 9]
    texts = [
        Junction(stem.sequence[:k] + stem.sequence[k + gap :], stem.v, stem.j)
        for gap in range(14)
        for stem in stems
        for k in range(len(stem.sequence))
    ]
    repeated = (texts * (most // len(texts) + 1))[:most]
    return replace(batch, junctions=tuple(repeated))


def run(batch: Batch, threads: int, pieces: list[tuple[int, int]] | None = None) -> Answer:
    return run_chain(batch, CpuTarget(threads), COUNT, host_lanes(), pieces=pieces)


@pytest.mark.parametrize("problem", often(1, ["dp2-one-strand", "dp1", "vj-dp2", "vddj-dp2"]))
def test_threads_and_pieces(problem: str) -> None:
    batch = many(problem, TEXTS)
    whole = run(batch, 1)
    assert any(any(row) for row in whole["none"])
    assert run(batch, 3) == whole
    assert run(batch, 2, [(0, 1), (1, TEXTS - 1), (TEXTS - 1, TEXTS)]) == whole
    backwards = replace(batch, junctions=batch.junctions[::-1])
    assert {name: rows[::-1] for name, rows in run(backwards, 3).items()} == whole


@pytest.mark.slow
def test_enumeration_by_threads() -> None:
    batch = replace(many("dp1", 40), model=PathModel(name="exhaustive", pi=2, max_n=2))
    whole = run_enumeration(batch, CpuTarget(1))
    assert run_enumeration(batch, CpuTarget(3)) == whole


def test_no_texts() -> None:
    batch = replace(many("dp2-one-strand", 1), junctions=())
    assert not any(run(batch, 3).values())
