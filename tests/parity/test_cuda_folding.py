"""Folding on GPUs, or in the simulator, against the CPU: scores and structures bit for bit, probabilities."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from support.folding import HAIRPINS, codes_of, weights_of

from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.dp.intervals import gpu_fold
from plait.dp.intervals.launches import ENSEMBLES, FOLDS, EnsembleBatch, FoldBatch, Strand
from plait.dp.intervals.nearest_neighbor import NearestNeighbor
from plait.folding import FoldSettings, Restraints
from plait.folding.constraints import molecule_of
from plait.folding.folds import fold_molecules
from plait.folding.structures import partners_of
from plait.lang.algebras import PROBABILITY, SaturatingMaxPlus

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]

BEST = SaturatingMaxPlus(np.float32(-np.inf), np.float32(0))
SUM = PROBABILITY._replace(zero=np.float64(0), one=np.float64(1))


def strands(sizes: list[int], seed: int, paired: Any) -> list[Strand]:
    draw = random.Random(seed)
    texts = ["".join(draw.choices("ACGGU", k=size)) for size in sizes]
    size = sizes[-1]
    texts[-1] = "".join(HAIRPINS)[:size] + texts[-1][len("".join(HAIRPINS)) :]
    found = [Strand(codes_of(text)) for text in texts]
    places = np.arange(size)
    # The last one has pairs that are not allowed, and bases that weigh something besides if they are paired.
    return [
        *found[:-1],
        found[-1]._replace(
            partners=np.stack([places - 21, places + 21]).astype(np.int32),
            stacked=np.full(size, paired[0]),
            paired=np.repeat(paired, size).reshape(2, size),
        ),
    ]


@pytest.fixture(params=["a block each", "all blocks"])
def few_threads(request: Any, monkeypatch: Any) -> None:
    for name in ("_WARPS", "_LONG_WARPS"):
        monkeypatch.setattr(gpu_fold, name, 2)
    monkeypatch.setattr(gpu_fold, "_LONG", 8 if request.param == "all blocks" else 400)


@pytest.mark.usefixtures("few_threads")
def test_best_structures() -> None:
    drawn = np.random.default_rng(3)
    weights = weights_of(lambda shape: drawn.integers(-30, 12, shape).astype(np.float32), 80, BEST.zero)
    given = strands([0, 3, 13, 45, 38], 5, np.array([2, -2], np.float32))
    batch = FoldBatch(NearestNeighbor(np.float32(-1), np.float32(0)), BEST, weights, given)
    expected = CpuTarget(1).launch(FOLDS, batch)
    found = CudaTarget((0,)).launch(FOLDS, batch)
    for one, other in zip(found, expected, strict=True):
        assert one == other
    assert sum(score > 0 for score, _ in found) == 3


@pytest.mark.usefixtures("few_threads")
def test_probabilities() -> None:
    drawn = np.random.default_rng(4)
    weights = weights_of(lambda shape: drawn.random(shape) * 0.6, 80, 0.0)
    given = strands([2, 11, 44, 37], 6, np.array([1.25, 0.8]))
    rule = NearestNeighbor(np.float64(0.6), np.float64(0.9))
    batch = EnsembleBatch(rule, SUM, weights, given, False, True, [[]] * len(given))
    expected = CpuTarget(1).launch(ENSEMBLES, batch)
    found = CudaTarget((0,)).launch(ENSEMBLES, batch)
    for one, other in zip(found, expected, strict=True):
        assert one.logarithm == pytest.approx(other.logarithm, rel=1e-12, abs=1e-12)
        assert one.pairs.tolist() == other.pairs.tolist()
        assert np.abs(one.probabilities - other.probabilities).max(initial=0) < 1e-12
    assert sum(one.pairs.size for one in found) > 500


def test_pieces_that_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(9)
    weights = weights_of(lambda shape: drawn.integers(-30, 12, shape).astype(np.float32), 40)
    monkeypatch.setattr(gpu_fold, "_PIECE_BYTES", 2 * 4 * 4 * 15**2)
    given = strands([14, 9, 12, 14, 3, 11, 13, 14], 7, np.array([2, -2], np.float32))
    pieces = list[int]()
    made = gpu_fold._Piece

    def piece(*known: Any) -> Any:
        found = made(*known)
        pieces.append(len(found.sizes))
        return found

    monkeypatch.setattr(gpu_fold, "_Piece", piece)
    batch = FoldBatch(NearestNeighbor(np.float32(-1), np.float32(0)), BEST, weights, given)
    assert CudaTarget((0,)).launch(FOLDS, batch) == CpuTarget(1).launch(FOLDS, batch)
    assert len(pieces) > 2 and sum(pieces) == len(given)


@pytest.mark.usefixtures("few_threads")
def test_enforced_constraints() -> None:
    asked, draw, molecules = FoldSettings(enforce=True), random.Random(8), []
    for size in (12, 26, 31):
        sequence = "GC" + "".join(draw.choices("ACGU", k=size - 4)) + "GC"
        constraint = "(" + "".join(draw.choices("...x|<>", k=size - 2)) + ")"
        molecules.append(molecule_of(codes_of(sequence), Restraints(constraint), asked))
    expected = fold_molecules(molecules, asked, CpuTarget(1))
    found = fold_molecules(molecules, asked, CudaTarget((0,)))
    for one, other, molecule in zip(found, expected, molecules, strict=True):
        assert one == other
        if molecule.forced is not None and one[0] > -np.inf:
            assert (partners_of(one[1])[molecule.forced] >= 0).all()
    assert sum(one[0] > -np.inf for one in found) > 1


def test_what_is_left_to_the_cpu() -> None:
    drawn = np.random.default_rng(4)
    weights = weights_of(drawn.random, 40)
    rule = NearestNeighbor(np.float64(0.6), np.float64(0.9))
    batch = EnsembleBatch(
        rule, SUM, weights, strands([20], 1, np.array([1.25, 0.8])), False, False, [[drawn.random(80)]]
    )
    (expected,) = CpuTarget(1).launch(ENSEMBLES, batch)
    (found,) = CudaTarget((0,)).launch(ENSEMBLES, batch)
    assert found.drawn == expected.drawn
