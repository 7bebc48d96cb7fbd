"""Inference of a model from junctions by expectation maximisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.errors import Unsupported
from plait.lanes import host_lanes
from plait.schedules.chain_expectations import ChainCounts, ExpectationScratch
from plait.schedules.text_graphs import GraphParts, WeightedTexts
from plait.schedules.weighted_chain import WeightedScratch
from plait.settings import thread_count
from plait.targets.weighted_kernels import expect_kernel
from plait.vdj.model.end_shapes import ModelShapes, model_shapes
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.weights import make_scratch, part_weights, weighted_chain

__all__ = ["Iteration", "Supply", "infer_model", "uniform_model"]

#: Texts whose expected numbers are added up apart from the others, so that sums do not depend on threads.
_PIECE: Final = 4096

#: Gives the batches of texts, the same ones every time it is called.
Supply = Callable[[], Iterable[tuple[GraphParts, WeightedTexts]]]


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one iteration found.

    Attributes
    ----------
    number
        From 1.
    log_likelihood
        Mean of the natural logarithm of the probability of a junction, under the model before the iteration.
    junctions, impossible
        Junctions that count, and those that the model cannot make.
    model
        The model after it.
    """

    number: int
    log_likelihood: float
    junctions: int
    impossible: int
    model: RecombinationModel


def uniform_model(model: RecombinationModel) -> RecombinationModel:
    """The genes of a model with all choices equally probable, where a choice is possible."""

    def even(table: NDArray[np.float64], axes: tuple[int, ...]) -> NDArray[np.float64]:
        size = int(np.prod([table.shape[axis] for axis in axes]))
        return np.full(table.shape, 1.0 / size)

    v = np.array([gene.functional for gene in model.v], float)
    j = np.array([gene.functional for gene in model.j], float)
    p_dj = np.broadcast_to(j / j.sum() / max(len(model.d), 1), model.p_dj.shape).copy()
    d = np.zeros_like(model.p_d_deletions)
    for k in range(len(model.d)):
        whole = len(model.extended("D", k))
        d[k] = np.add.outer(np.arange(d.shape[1]), np.arange(d.shape[2])) <= whole
        d[k] /= d[k].sum()
    return replace(
        model,
        p_v=v / v.sum(),
        p_dj=p_dj,
        p_v_deletions=even(model.p_v_deletions, (1,)),
        p_j_deletions=even(model.p_j_deletions, (1,)),
        p_d_deletions=d,
        p_vd_length=even(model.p_vd_length, (0,)),
        p_dj_length=even(model.p_dj_length, (0,)),
        vd_steps=np.full((4, 4), 0.25),
        dj_steps=np.full((4, 4), 0.25),
    )


def infer_model(
    start: RecombinationModel,
    supply: Supply,
    *,
    iterations: int = 20,
    threads: int | None = None,
    progress: Callable[[Iteration], object] | None = None,
) -> RecombinationModel:
    """Improve a model until it explains junctions as well as it can.

    Parameters
    ----------
    start
        The model to begin with, as of `uniform_model`.
    supply
        The junctions.
    iterations
        How often all of them are gone through.
    threads
        Pieces worked on at a time; no result depends on it.
    progress
        Called after every iteration.

    Raises
    ------
    Unsupported
        If the model has no D genes.
    """
    if not start.d:
        raise Unsupported("inference without D genes", why="V and J are chosen together")
    shapes = model_shapes(start)
    model = start
    workers = thread_count() if threads is None else threads
    for number in range(1, iterations + 1):
        expected = _Expected(model, shapes)
        with ThreadPoolExecutor(workers) as pool:
            for parts, texts in supply():
                expected.add(parts, texts, pool)
        model = expected.model()
        if progress is not None:
            progress(
                Iteration(number, expected.log_likelihood(), expected.junctions, expected.impossible, model)
            )
    return model


class _Expected:
    """Expected numbers under one model."""

    def __init__(self, model: RecombinationModel, shapes: ModelShapes) -> None:
        self._model = model
        self._shapes = shapes
        self._chain = weighted_chain(model, shapes)
        self._counts = self._empty()
        self._log = 0.0
        self.junctions = 0
        self.impossible = 0

    def _empty(self) -> ChainCounts:
        chain = self._chain
        return ChainCounts(
            prefix=np.zeros_like(chain.prefix.weight),
            suffix=np.zeros_like(chain.suffix.weight),
            fragment=np.zeros_like(chain.fragment.weight),
            left_length=np.zeros(self._model.p_vd_length.size),
            right_length=np.zeros(self._model.p_dj_length.size),
            left_step=np.zeros((5, 4)),
            right_step=np.zeros((5, 4)),
        )

    def add(self, parts: GraphParts, texts: WeightedTexts, pool: ThreadPoolExecutor) -> None:
        """Add the numbers of a batch, piece by piece, in order."""
        n = texts.start.size
        pieces = [(first, min(first + _PIECE, n)) for first in range(0, n, _PIECE)]
        for counts, found in pool.map(lambda piece: self._piece(parts, texts, *piece), pieces):
            for total, part in zip(self._counts, counts, strict=True):
                total += part
            made = found > 0
            self._log += float(np.log(found[made]).sum())
            self.junctions += int(made.sum())
            self.impossible += int((~made).sum())

    def _piece(
        self, parts: GraphParts, texts: WeightedTexts, first: int, last: int
    ) -> tuple[ChainCounts, NDArray[np.float64]]:
        longest = int(texts.length[first:last].max(initial=0))
        scratch = make_scratch(self._chain, parts, longest)
        counts, out = self._empty(), np.zeros(texts.start.size)
        shares = np.ones(texts.start.size)
        turned = _turned(scratch)
        expect_kernel(
            host_lanes(), self._chain, parts, texts, first, last, shares, scratch, turned, counts, out
        )
        return counts, out[first:last]

    def log_likelihood(self) -> float:
        return self._log / max(self.junctions, 1)

    def model(self) -> RecombinationModel:
        """The model under which these numbers are most probable."""
        old, shapes, counts = self._model, self._shapes, self._counts
        weights = part_weights(old, shapes)
        v = _by_part(
            old.p_v_deletions.shape,
            (shapes.v.gene, shapes.v.cut),
            shapes.v.parts(counts.prefix, weights.v).sum(1),
        )
        of_j = shapes.j.parts(counts.suffix, weights.j)
        j = _by_part(old.p_j_deletions.shape, (shapes.j.gene, shapes.j.cut), of_j.sum(1))
        p_dj = np.zeros_like(old.p_dj[0])
        np.add.at(p_dj.T, shapes.j.gene, of_j)
        d = _by_part(
            old.p_d_deletions.shape,
            (shapes.d.gene, shapes.d.cut, shapes.d.cut_right),
            shapes.d.parts(counts.fragment, weights.d).sum(1),
        )
        return replace(
            old,
            p_v=_share(v.sum(1), old.p_v, (0,)),
            p_dj=_share(p_dj, old.p_dj[0], (0, 1))[None],
            p_v_deletions=_share(v, old.p_v_deletions, (1,)),
            p_j_deletions=_share(j, old.p_j_deletions, (1,)),
            p_d_deletions=_share(d, old.p_d_deletions, (1, 2)),
            p_vd_length=_share(counts.left_length, old.p_vd_length, (0,)),
            p_dj_length=_share(counts.right_length, old.p_dj_length, (0,)),
            vd_steps=_share(counts.left_step[:4], old.vd_steps, (1,)),
            dj_steps=_share(counts.right_step[:4], old.dj_steps, (1,)),
        )


def _by_part(
    shape: tuple[int, ...], place: Sequence[NDArray[np.int64]], numbers: NDArray[np.float64]
) -> NDArray[np.float64]:
    table = np.zeros(shape)
    np.add.at(table, tuple(place), numbers)
    return table


def _share(
    counts: NDArray[np.float64], old: NDArray[np.float64], axes: tuple[int, ...]
) -> NDArray[np.float64]:
    """Numbers as probabilities; what was never seen keeps its old ones."""
    total = counts.sum(axis=axes, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = np.where(total > 0, counts / total, old)
    return found


def _turned(scratch: WeightedScratch) -> ExpectationScratch:
    tables: dict[str, Any] = {
        name: np.zeros_like(getattr(scratch, name)) for name in ExpectationScratch._fields
    }
    return ExpectationScratch(**tables)
