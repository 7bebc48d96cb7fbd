"""Expected numbers of choices as the schedules count them, and as tables of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.lanes import PADDING, host_lanes
from plait.schedules.chain_expectations import ChainCounts, ExpectationScratch
from plait.schedules.choice_summaries import ChoiceSummary, PartOwners
from plait.schedules.pair_expectations import PairCounts, PairScratch
from plait.schedules.text_graphs import GraphParts, WeightedTexts
from plait.schedules.weighted_chain import WeightedScratch
from plait.targets.weighted_kernels import expect_kernel, expect_pairs_kernel
from plait.vdj.model.encoded_junctions import chosen_texts, split_texts
from plait.vdj.model.end_shapes import EndShape, ModelShapes
from plait.vdj.model.maximisation import Evidence
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.weights import make_scratch, part_weights, weighted_chain

__all__ = ["Counting", "CountingPairs", "CountingWithD", "counting_of"]

_Floats = NDArray[np.float64]
#: Codes by which working memory grows.
_GRAIN: Final = 64


class _Memory(NamedTuple):
    """Memory of a thread, and for what texts it is enough."""

    kind: tuple[int, ...]
    longest: int
    scratch: WeightedScratch
    turned: Any


class Counting(ABC):
    """Counts choices of one kind of chain under one model; threads may share it.

    Parameters
    ----------
    model, shapes
        The model, and the trees of its genes.

    Attributes
    ----------
    chain, weights
        Tables of the model: of the schedule, and of all parts.
    """

    _kernel: ClassVar[Callable[..., Any]]

    def __init__(self, model: RecombinationModel, shapes: ModelShapes) -> None:
        self._model = model
        self._shapes = shapes
        self.weights = part_weights(model, shapes)
        self.chain = weighted_chain(model, shapes)
        self._memory: deque[_Memory] = deque()
        self._zeros: deque[Any] = deque()

    @abstractmethod
    def empty(self) -> Any:
        """Counts of nothing: a named tuple of arrays."""

    @abstractmethod
    def evidence(self, counts: Any) -> Evidence:
        """Counts as tables of the model.

        Parameters
        ----------
        counts
            As of `empty`.
        """

    @abstractmethod
    def _flat(self, counts: Any) -> tuple[NDArray[Any], ...]:
        """Numbers of insertions on the left and on the right, and of symbols, likewise."""

    @abstractmethod
    def _turned(self, scratch: WeightedScratch) -> Any:
        """Memory for what the pass backwards needs."""

    def count(
        self,
        parts: GraphParts,
        texts: WeightedTexts,
        shares: _Floats,
        first: int,
        last: int,
        counts: Any,
    ) -> _Floats:
        """Add texts `first` to `last` to counts; returns how probable each is.

        Parameters
        ----------
        parts, texts
            The texts.
        shares
            float64 (n,): how many times each counts.
        first, last
            Which of them.
        counts
            As of `empty`.
        """
        found = np.zeros(last - first)
        for plain, rows in split_texts(parts, texts, first, last):
            some = chosen_texts(texts, first + rows)
            found[rows] = self._run(parts, some, shares[first + rows], counts, self._nothing, False, plain)
        return found

    def tell(
        self, parts: GraphParts, texts: WeightedTexts, rows: NDArray[np.int64], *, plain: bool
    ) -> tuple[_Floats, ChoiceSummary]:
        """What every one of some texts tells: how probable each is, and its choices.

        Parameters
        ----------
        parts, texts
            The texts.
        rows
            Which of them.
        plain
            Whether they are made of codes for one symbol each, or others.
        """
        told, ones = self.summary(rows.size), np.ones(rows.size)
        some = chosen_texts(texts, rows)
        try:
            counts = self._zeros.pop()
        except IndexError:
            counts = self.empty()
        weight = self._run(parts, some, ones, counts, told, True, plain)
        # Every text leaves them as it found them.
        self._zeros.append(counts)
        return weight, told

    def summary(self, n: int) -> ChoiceSummary:
        """Room for what n texts tell.

        Parameters
        ----------
        n
            How many.
        """
        sizes, (v, d, j) = self._sizes, self._owners
        return ChoiceSummary(
            prefix=v,
            words=d,
            suffix=j,
            prefix_share=np.zeros(len(self._model.v)),
            words_share=np.zeros(len(self._model.d)),
            suffix_share=np.zeros(len(self._model.j)),
            best=np.full((n, 3), -1, np.int32),
            share=np.zeros((n, 3)),
            cut=np.zeros((n, 4)),
            log=np.zeros(n),
            left_length=np.zeros((n, sizes[0])),
            right_length=np.zeros((n, sizes[1])),
            left_step=np.zeros((n, sizes[2])),
            right_step=np.zeros((n, sizes[3])),
        )

    @cached_property
    def _sizes(self) -> list[int]:
        return [table.size for table in self._flat(self.empty())]

    @cached_property
    def _nothing(self) -> ChoiceSummary:
        return self.summary(0)

    @cached_property
    def _owners(self) -> tuple[PartOwners, PartOwners, PartOwners]:
        shapes, weights = self._shapes, self.weights
        words = weights.d * np.eye(self.chain.words.weight.shape[1])[shapes.words.gene]
        return _owners(shapes.v, weights.v), _owners(shapes.words, words), _owners(shapes.j, weights.j)

    def _run(
        self,
        parts: GraphParts,
        texts: WeightedTexts,
        shares: _Floats,
        counts: Any,
        told: ChoiceSummary,
        each: bool,
        plain: bool,
    ) -> _Floats:
        n = texts.start.size
        out = np.zeros(n)
        with self._working(parts, int(texts.length.max(initial=1)), plain) as memory:
            type(self)._kernel(
                host_lanes(), self.chain, parts, texts, 0, n, shares, *memory, counts, out, told, each
            )
        return out

    @contextmanager
    def _working(
        self, parts: GraphParts, longest: int, plain: bool
    ) -> Generator[tuple[WeightedScratch, Any], None, None]:
        """Memory for both passes over texts of up to `longest` codes, of one thread at a time."""
        # What memory depends on, besides the model; the largest numbers of anything that parts have.
        kind = (plain, *(int(table.max(initial=0)) for table in parts), parts.before.shape[1])
        memory = None
        # One that does not fit is forgotten: it is of another kind of texts, or of shorter ones.
        while memory is None and self._memory:
            with suppress(IndexError):
                other = self._memory.pop()
                memory = other if other.kind == kind and other.longest >= longest else None
        if memory is None:
            room = -(-longest // _GRAIN) * _GRAIN
            scratch = make_scratch(self.chain, parts, room, plain=plain)
            memory = _Memory(kind, room, scratch, self._turned(scratch))
        yield memory.scratch, memory.turned
        self._memory.append(memory)


class CountingWithD(Counting):
    """V, D and J.

    Parameters
    ----------
    model, shapes
        The model, and the trees of its genes.
    """

    _kernel = staticmethod(expect_kernel)

    def empty(self) -> ChainCounts:
        """Counts of nothing."""
        chain = self.chain
        return ChainCounts(
            prefix=np.zeros_like(chain.prefix.weight),
            suffix=np.zeros_like(chain.suffix.weight),
            words=np.zeros_like(chain.words.weight),
            left_none=np.zeros(1),
            right_none=np.zeros(1),
            left_length=np.zeros_like(chain.left_length),
            right_length=np.zeros_like(chain.right_length),
            left_step=np.zeros((20, PADDING)),
            right_step=np.zeros((20, PADDING)),
        )

    def _flat(self, counts: ChainCounts) -> tuple[NDArray[Any], ...]:
        return counts.left_length, counts.right_length, counts.left_step, counts.right_step

    def _turned(self, scratch: WeightedScratch) -> ExpectationScratch:
        return ExpectationScratch(
            *(np.zeros_like(getattr(scratch, name)) for name in ExpectationScratch._fields)
        )

    def evidence(self, counts: ChainCounts) -> Evidence:
        """Counts as tables.

        Parameters
        ----------
        counts
            As of `empty`.
        """
        old, weights = self._model, self.weights
        v, d, j = self._shapes.v, self._shapes.words, self._shapes.j
        of_v = _table(old.p_v_deletions, (v.gene, v.cut), v.parts(counts.prefix, weights.v).sum(1))
        own = np.eye(counts.words.shape[1])[d.gene]
        parts_d = d.parts(counts.words, weights.d * own).sum(1)
        parts_j = j.parts(counts.suffix, weights.j)
        margin = self.chain.margin
        left = counts.left_length[0, margin : counts.left_length.shape[1] - margin][::-1]
        right = counts.right_length[0, margin : counts.right_length.shape[1] - margin]
        left_step, right_step = counts.left_step.sum(1), counts.right_step.sum(1)
        return Evidence(
            p_v=of_v.sum(1),
            p_dj=_table(old.p_dj[0].T, (j.gene,), parts_j).T[None],
            p_v_deletions=of_v,
            p_d_deletions=_table(old.p_d_deletions, (d.gene, d.cut, d.cut_right), parts_d),
            p_j_deletions=_table(old.p_j_deletions, (j.gene, j.cut), parts_j.sum(1)),
            p_vd_length=np.concatenate([counts.left_none, left]),
            p_dj_length=np.concatenate([counts.right_none, right]),
            vd_steps=left_step[:16].reshape(4, 4),
            dj_steps=right_step[:16].reshape(4, 4),
            vd_first=left_step[16:],
            dj_first=right_step[16:],
        )


class CountingPairs(Counting):
    """V and J.

    Parameters
    ----------
    model, shapes
        The model, and the trees of its genes.
    """

    _kernel = staticmethod(expect_pairs_kernel)

    def empty(self) -> PairCounts:
        """Counts of nothing."""
        return PairCounts(
            prefix=np.zeros_like(self.chain.prefix.weight),
            suffix=np.zeros_like(self.chain.suffix.weight),
            length=np.zeros(self._model.p_vd_length.size),
            step=np.zeros((5, 4)),
        )

    def _flat(self, counts: PairCounts) -> tuple[NDArray[Any], ...]:
        return counts.length, np.zeros(0), counts.step, np.zeros(0)

    def _turned(self, scratch: WeightedScratch) -> PairScratch:
        nodes = len(scratch.before)
        return PairScratch(
            np.zeros_like(scratch.before),
            np.zeros_like(scratch.after),
            np.zeros((nodes, 2)),
            np.zeros((nodes, 3), np.int64),
        )

    def evidence(self, counts: PairCounts) -> Evidence:
        """Counts as tables.

        Parameters
        ----------
        counts
            As of `empty`.
        """
        old, v, j = self._model, self._shapes.v, self._shapes.j
        parts_v = v.parts(counts.prefix, self.weights.v)
        parts_j = j.parts(counts.suffix, self.weights.j)
        together = _table(np.zeros((len(old.v), parts_v.shape[1])), (v.gene,), parts_v)[:, : len(old.j)]
        return Evidence(
            p_v=together.sum(1),
            p_dj=(together if len(old.p_dj) > 1 else together.sum(0, keepdims=True))[:, None],
            p_v_deletions=_table(old.p_v_deletions, (v.gene, v.cut), parts_v.sum(1)),
            p_d_deletions=np.zeros_like(old.p_d_deletions),
            p_j_deletions=_table(old.p_j_deletions, (j.gene, j.cut), parts_j.sum(1)),
            p_vd_length=counts.length.copy(),
            p_dj_length=np.zeros_like(old.p_dj_length),
            vd_steps=counts.step[:4].copy(),
            dj_steps=np.zeros((4, 4)),
            vd_first=counts.step[4].copy(),
            dj_first=np.zeros(4),
        )


def counting_of(model: RecombinationModel, shapes: ModelShapes) -> Counting:
    """What counts choices under a model.

    Parameters
    ----------
    model, shapes
        The model, and the trees of its genes.
    """
    return CountingWithD(model, shapes) if model.d else CountingPairs(model, shapes)


def _table(like: _Floats, place: Sequence[NDArray[np.int64]], numbers: _Floats) -> _Floats:
    """Numbers of parts, in a table of the shape of another one."""
    table = np.zeros(like.shape)
    np.add.at(table, tuple(place), numbers)
    return table


def _owners(shape: EndShape, weight: _Floats) -> PartOwners:
    """The parts of a set of trees by node."""
    order = np.argsort(shape.node, kind="stable")
    first = np.searchsorted(shape.node[order], np.arange(len(shape.child) + 1))
    table = weight[order]
    logs = np.log(np.where(table > 0, table, 1.0))
    return PartOwners(first, shape.gene[order], shape.cut[order], shape.cut_right[order], table, logs)
