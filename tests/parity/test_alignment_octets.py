"""One pair along anti-diagonals in octets of differences: the same alignments as of wider numbers."""

from __future__ import annotations

import numpy as np
import pytest

from plait.devices.target import CpuTarget, ReferenceTarget, Target
from plait.dp.pairs.launches import PAIR_LIST
from plait.dp.pairs.lists import FreeEnds, ListBatch, PairList, PairSetup, make_setup
from plait.dp.pairs.scores import Matches, PairTable, SkewedProfile
from plait.lang.lanes import lanes_of

Numbers = np.random.Generator


def related(rng: Numbers, rows: int, letters: int) -> tuple[np.ndarray, np.ndarray]:
    """A sequence and another that is like it here and there."""
    query = rng.integers(0, letters, rows).astype(np.uint8)
    target = np.delete(query, rng.integers(0, rows, rows // 20))
    changed = rng.integers(0, target.size, target.size // 12)
    target[changed] = rng.integers(0, letters, changed.size)
    before = rng.integers(0, letters, int(rng.integers(0, 30))).astype(np.uint8)
    return query, np.concatenate([before, target])


def pair_list(rng: Numbers, sizes: list[int], letters: int, matrix: np.ndarray) -> PairList:
    """Pairs with gap costs and free ends drawn so that octets hold all differences."""
    pairs = [related(rng, rows, letters) for rows in sizes]
    gap_open = int(rng.integers(4, 19))
    costs = gap_open, int(rng.integers(0, gap_open + 1))
    starts = [np.cumsum([0, *(one[k].size for one in pairs)]) for k in (0, 1)]
    queries, targets = (np.concatenate([one[k] for one in pairs]) for k in (0, 1))
    return PairList(
        queries,
        starts[0],
        targets,
        starts[1],
        matrix,
        *costs,
        FreeEnds(*(rng.random(4) < 0.5).tolist(), False, False),
    )


def matrix_of(rng: Numbers, letters: int, kind: type) -> np.ndarray:
    """Scores that are looked up in one of the three ways."""
    if kind is not Matches:
        return rng.integers(-6, 9, (letters, letters)).astype(np.int32)
    equal = np.eye(letters, dtype=bool)
    return np.where(equal, rng.integers(1, 8), -rng.integers(0, 6)).astype(np.int32)


def in_stretches(rng: Numbers, setup: PairSetup) -> PairSetup:
    """The same sweep, in stretches of columns."""
    stretch = int(rng.integers(1, setup.limits.stretch + 1))
    return setup._replace(limits=setup.limits._replace(stretch=stretch))


def check(target: Target, task: PairList, setup: PairSetup, number: type, keep: bool) -> None:
    """Compare with lanes of a wider type."""
    found = target.launch(PAIR_LIST, ListBatch(setup, task))
    wanted = CpuTarget(1).launch(PAIR_LIST, ListBatch(make_setup(task, keep=keep, dtype=number), task))
    columns = slice(None) if keep else slice(1, None, 2)
    np.testing.assert_array_equal(found.scores, wanted.scores)
    np.testing.assert_array_equal(found.ends[:, columns], wanted.ends[:, columns])
    np.testing.assert_array_equal(found.run_counts, wanted.run_counts)
    np.testing.assert_array_equal(found.runs, wanted.runs)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("kind", "letters"), [(Matches, 4), (PairTable, 5), (SkewedProfile, 20)])
def test_octets_find_the_alignments_of_wider_numbers(kind: type, letters: int, keep: bool) -> None:
    rng = np.random.default_rng(letters)
    for trial in range(40):
        sizes = rng.integers(1, (40, 300, 900)[trial % 3], int(rng.integers(1, 4))).tolist()
        task = pair_list(rng, sizes, letters, matrix_of(rng, letters, kind))
        setup = in_stretches(rng, make_setup(task, keep=keep, dtype=np.uint8))
        assert setup.gap.over.dtype == np.uint8
        check(CpuTarget(1), task, setup, (np.int16, np.int32)[trial % 2], keep)


@pytest.mark.parametrize(("kind", "letters"), [(Matches, 4), (PairTable, 5), (SkewedProfile, 20)])
def test_the_definition_finds_them_too(kind: type, letters: int) -> None:
    rng = np.random.default_rng(100 + letters)
    for width in (2, 8):
        task = pair_list(rng, [3, 4 * width, 4 * width + 5], letters, matrix_of(rng, letters, kind))
        setup = in_stretches(rng, make_setup(task, keep=True, dtype=np.uint8, lanes=lanes_of(width)))
        check(ReferenceTarget(), task, setup, np.int32, True)


def test_what_octets_cannot_hold_is_swept_in_wider_numbers() -> None:
    rng = np.random.default_rng(1)
    many, few = pair_list(rng, [2000], 4, matrix_of(rng, 4, Matches)), FreeEnds(*[False] * 6)
    many = many._replace(gap_open=10, gap_extend=2, free=few)
    assert make_setup(many, keep=True).gap._fields == ("over",)
    for other in (
        many._replace(gap_open=85),
        # Two residues more in gaps lie next to nothing below the diagonal, and no pair is as good.
        many._replace(matrix=np.full((4, 4), -23, np.int32), gap_open=92, gap_extend=1),
        many._replace(gap_open=2, gap_extend=3),
        many._replace(matrix=many.matrix - 30),
        many._replace(free=few._replace(local=True, anywhere=True)),
        many._replace(free=few._replace(anywhere=True)),
    ):
        setup = make_setup(other, keep=True)
        assert setup.gap._fields == ("open", "prolong")
        check(CpuTarget(1), other, setup, np.int32, True)
