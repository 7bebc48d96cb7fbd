"""Means over all scenarios: how often each choice was made over many junctions, and what each one tells."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.dp.chain.adjoint import (
    ChainAdjoint,
    ChainCounts,
    PairAdjoint,
    PairCounts,
    PartOwners,
    PosteriorRows,
    expect_kernel,
)
from plait.dp.chain.graphs import CodedJunctions, GraphParts
from plait.dp.chain.weigh import PairScratch, WeightedScratch
from plait.errors import InvalidInput
from plait.lang.lanes import PADDING, host_lanes
from plait.run.executor import LocalExecutor
from plait.vdj.model.junctions import (
    EncodedJunctions,
    EndShape,
    JunctionEncoder,
    ModelShapes,
    TextKind,
    make_scratch,
    model_shapes,
    part_weights,
    split_texts,
    weighted_chain,
)
from plait.vdj.model.recombination_model import RecombinationModel, stationary_distribution

_Floats = NDArray[np.float64]
#: What is assumed of misread nucleotides, as of `Expectation`.
ErrorRate: TypeAlias = float | Literal["fit"] | None
#: Steps of the search for a Markov chain, and the gain per symbol below which it ends.
_MOST_ROUNDS: Final = 100
_SMALLEST_GAIN: Final = 1e-13


class Evidence(NamedTuple):
    """Expected numbers of choices, in the shapes of the tables of the model.

    Attributes
    ----------
    p_v, p_dj, p_v_deletions, p_d_deletions, p_j_deletions, p_vd_length, p_dj_length, vd_steps, dj_steps
        As in `plait.vdj.model.RecombinationModel`; steps count all N nucleotides but the first ones.
    vd_first, dj_first
        float64 (4,): first N nucleotides, those from which insertions are built.
    errors
        float64 (1,): misread nucleotides, of all that were read; 0 where there are none by assumption.
    """

    p_v: _Floats
    p_dj: _Floats
    p_v_deletions: _Floats
    p_d_deletions: _Floats
    p_j_deletions: _Floats
    p_vd_length: _Floats
    p_dj_length: _Floats
    vd_steps: _Floats
    dj_steps: _Floats
    vd_first: _Floats
    dj_first: _Floats
    errors: _Floats


def most_probable_model(
    old: RecombinationModel, seen: Evidence, *, pseudocount: float = 0.0, error_rate: float = 0.0
) -> RecombinationModel:
    """The model under which the choices counted in `seen` are most probable: the M step of EM.

    What was impossible under `old` stays so. A distribution of which nothing was seen, as the deletions of a
    gene that never occurs, stays as it was. `pseudocount` is added to the number of every possible choice,
    once for each of the four N nucleotides after each.
    """

    def share(name: str, axes: tuple[int, ...]) -> _Floats:
        table: _Floats = getattr(old, name)
        counts = getattr(seen, name) + pseudocount * (table > 0)
        total = counts.sum(axis=axes, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(total > 0, counts / total, table)

    tables: dict[str, Any] = {name: share(name, axes) for name, axes in old.distributions().items()}
    for side in ("vd", "dj") if old.d else ("vd",):
        steps = f"{side}_steps"
        numbers = getattr(seen, steps), getattr(seen, f"{side}_first")
        tables[steps] = most_probable_steps(tables[steps], getattr(old, steps), *numbers, pseudocount)
    # Whatever the errors of another model's reads were, these have their own rate.
    return replace(old, error_rate=error_rate, **tables)


def most_probable_steps(
    start: _Floats, old: _Floats, steps: _Floats, first: _Floats, pseudocount: float = 0.0
) -> _Floats:
    """The Markov chain under which steps, and first symbols drawn from what it keeps, are most probable.

    Shares of steps alone are not: the distribution of first symbols follows from them. Beginning with the
    better of the chains `start` and `old`, steps get a part of the first symbols as if they had led there,
    until the derivative vanishes. That leads upwards, but may lead too far: then half of the way is tried,
    and so on. `steps` are numbers (4, 4), `first` (4,); `pseudocount` is added to every possible step.
    """
    counts = steps + pseudocount * (old > 0)
    total = counts.sum() + first.sum()
    if total == 0:
        return old
    best, value = max(
        ((chain, _log_likelihood(chain, counts, first)) for chain in (start, old)), key=lambda pair: pair[1]
    )
    for _ in range(_MOST_ROUNDS):
        towards = _stepped(best, counts, first)
        part, chain = 1.0, towards
        while (other := _log_likelihood(chain, counts, first)) < value - _SMALLEST_GAIN * total:
            part /= 2
            chain = best + part * (towards - best)
        if not other > value:
            break
        best, gain, value = chain, other - value, other
        if gain < _SMALLEST_GAIN * total:
            break
    return best


def _log_likelihood(chain: _Floats, steps: _Floats, first: _Floats) -> float:
    kept = stationary_distribution(chain)
    with np.errstate(divide="ignore"):
        logs, of_first = np.log(chain), np.log(kept)
    return float((steps[steps > 0] * logs[steps > 0]).sum() + (first[first > 0] * of_first[first > 0]).sum())


def _stepped(chain: _Floats, steps: _Floats, first: _Floats) -> _Floats:
    """Steps as numbers, with those that the first symbols stand for, as shares."""
    kept = stationary_distribution(chain)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.where(kept > 0, first / kept, 0.0)
    # The derivative of what is kept by a step: Schweitzer's, with the fundamental matrix of the chain.
    fundamental = np.linalg.pinv(np.eye(4) - chain + kept)
    gain = fundamental @ rate
    # Rows add up to 1, so only differences matter.
    counts = steps + chain * kept[:, None] * (gain - gain.min())
    total = counts.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: _Floats = np.where(total > 0, counts / total, chain)
    return found


#: Codes by which working memory grows.
_GRAIN: Final = 64


class _Memory(NamedTuple):
    """Memory of a thread, and for what texts it is enough."""

    kind: tuple[int, ...]
    longest: int
    scratch: WeightedScratch | PairScratch
    adjoint: Any


class Counting(ABC):
    """Counts choices of one kind of chain under one model; threads may share it.

    `chain` are the model's tables for the schedule, `weights` those of all parts of genes; `counts` in the
    methods are as of `empty`.
    """

    def __init__(
        self, model: RecombinationModel, shapes: ModelShapes, error_rate: float | None = None
    ) -> None:
        self._model = model
        self._shapes = shapes
        self._error_rate = error_rate
        self.weights = part_weights(model, shapes)
        self.chain = weighted_chain(model, shapes)
        self._memory: deque[_Memory] = deque()
        self._zeros: deque[Any] = deque()

    @abstractmethod
    def empty(self) -> Any:
        """Counts of nothing: a named tuple of arrays."""

    @abstractmethod
    def evidence(self, counts: Any) -> Evidence:
        """Counts as tables of the model."""

    @abstractmethod
    def _flat(self, counts: Any) -> tuple[NDArray[Any], ...]:
        """Numbers of insertions on the left and on the right, and of symbols, likewise."""

    @abstractmethod
    def _adjoint(self, scratch: Any) -> Any:
        """Memory for what the pass backwards needs."""

    def count(
        self,
        parts: GraphParts,
        texts: CodedJunctions,
        shares: _Floats,
        first: int,
        last: int,
        counts: Any,
    ) -> _Floats:
        """Add texts `first` to `last` to counts, each `shares` (n,) times; how probable each is."""
        found = np.zeros(last - first)
        for plain, rows in split_texts(parts, texts, first, last):
            some = texts.take(first + rows)
            found[rows] = self._run(parts, some, shares[first + rows], counts, self._nothing, False, plain)
        return found

    def posterior(
        self, parts: GraphParts, texts: CodedJunctions, rows: NDArray[np.int64], *, plain: bool
    ) -> tuple[_Floats, PosteriorRows]:
        """What each of the texts `rows` tells: how probable it is, and its choices.

        `plain` says whether they are made of codes for one symbol each, or others.
        """
        posterior, ones = self.summary(rows.size), np.ones(rows.size)
        some = texts.take(rows)
        try:
            counts = self._zeros.pop()
        except IndexError:
            counts = self.empty()
        weight = self._run(parts, some, ones, counts, posterior, True, plain)
        # Every text leaves them as it found them.
        self._zeros.append(counts)
        return weight, posterior

    def summary(self, n: int) -> PosteriorRows:
        """Room for what n texts tell."""
        sizes, (v, d, j) = self._sizes, self._owners
        return PosteriorRows(
            v=v,
            words=d,
            j=j,
            v_share=np.zeros(len(self._model.v)),
            words_share=np.zeros(len(self._model.d)),
            j_share=np.zeros(len(self._model.j)),
            best=np.full((n, 3), -1, np.int32),
            share=np.zeros((n, 3)),
            deletion=np.zeros((n, 4)),
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
    def _nothing(self) -> PosteriorRows:
        return self.summary(0)

    @cached_property
    def _owners(self) -> tuple[PartOwners, PartOwners, PartOwners]:
        shapes, weights = self._shapes, self.weights
        words = weights.d * np.eye(self.chain.words.weight.shape[1])[shapes.words.gene]
        return _owners(shapes.v, weights.v), _owners(shapes.words, words), _owners(shapes.j, weights.j)

    def _run(
        self,
        parts: GraphParts,
        texts: CodedJunctions,
        shares: _Floats,
        counts: Any,
        posterior: PosteriorRows,
        each: bool,
        plain: bool,
    ) -> _Floats:
        n = texts.start.size
        out = np.zeros(n)
        with self._working(parts, int(texts.length.max(initial=1)), plain) as memory:
            expect_kernel(
                host_lanes(), self.chain, parts, texts, 0, n, shares, *memory, counts, out, posterior, each
            )
        return out

    @contextmanager
    def _working(
        self, parts: GraphParts, longest: int, plain: bool
    ) -> Generator[tuple[WeightedScratch | PairScratch, Any], None, None]:
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
            rate = self._error_rate
            scratch = make_scratch(self.chain, parts, room, plain=plain, error_rate=rate)
            memory = _Memory(kind, room, scratch, self._adjoint(scratch))
        yield memory.scratch, memory.adjoint
        self._memory.append(memory)


class CountingWithD(Counting):
    """Counts choices of V, D and J."""

    def empty(self) -> ChainCounts:
        """Counts of nothing."""
        chain = self.chain
        return ChainCounts(
            v=np.zeros_like(chain.v.weight),
            j=np.zeros_like(chain.j.weight),
            words=np.zeros_like(chain.words.weight),
            left_none=np.zeros(1),
            right_none=np.zeros(1),
            left_length=np.zeros_like(chain.left_length),
            right_length=np.zeros_like(chain.right_length),
            left_step=np.zeros((20, PADDING)),
            right_step=np.zeros((20, PADDING)),
            errors=np.zeros(1),
        )

    def _flat(self, counts: ChainCounts) -> tuple[NDArray[Any], ...]:
        return counts.left_length, counts.right_length, counts.left_step, counts.right_step

    def _adjoint(self, scratch: WeightedScratch) -> ChainAdjoint:
        return ChainAdjoint(*(np.zeros_like(getattr(scratch, name)) for name in ChainAdjoint._fields))

    def evidence(self, counts: ChainCounts) -> Evidence:
        """Counts as tables of the model."""
        old, weights = self._model, self.weights
        v, d, j = self._shapes.v, self._shapes.words, self._shapes.j
        of_v = _table(old.p_v_deletions, (v.gene, v.deletion), v.parts(counts.v, weights.v).sum(1))
        own = np.eye(counts.words.shape[1])[d.gene]
        parts_d = d.parts(counts.words, weights.d * own).sum(1)
        parts_j = j.parts(counts.j, weights.j)
        margin = self.chain.margin
        left = counts.left_length[0, margin : counts.left_length.shape[1] - margin][::-1]
        right = counts.right_length[0, margin : counts.right_length.shape[1] - margin]
        left_step, right_step = counts.left_step.sum(1), counts.right_step.sum(1)
        return Evidence(
            p_v=of_v.sum(1),
            p_dj=_table(old.p_dj[0].T, (j.gene,), parts_j).T[None],
            p_v_deletions=of_v,
            p_d_deletions=_table(old.p_d_deletions, (d.gene, d.deletion, d.deletion_right), parts_d),
            p_j_deletions=_table(old.p_j_deletions, (j.gene, j.deletion), parts_j.sum(1)),
            p_vd_length=np.concatenate([counts.left_none, left]),
            p_dj_length=np.concatenate([counts.right_none, right]),
            vd_steps=left_step[:16].reshape(4, 4),
            dj_steps=right_step[:16].reshape(4, 4),
            vd_first=left_step[16:],
            dj_first=right_step[16:],
            errors=counts.errors.copy(),
        )


class CountingPairs(Counting):
    """Counts choices of V and J."""

    def empty(self) -> PairCounts:
        """Counts of nothing."""
        return PairCounts(
            v=np.zeros_like(self.chain.v.weight),
            j=np.zeros_like(self.chain.j.weight),
            length=np.zeros(self._model.p_vd_length.size),
            step=np.zeros((5, 4)),
            errors=np.zeros(1),
        )

    def _flat(self, counts: PairCounts) -> tuple[NDArray[Any], ...]:
        return counts.length, np.zeros(0), counts.step, np.zeros(0)

    def _adjoint(self, scratch: PairScratch) -> PairAdjoint:
        return PairAdjoint(
            *(np.zeros_like(rows) for rows in (scratch.before, scratch.after, scratch.inserted))
        )

    def evidence(self, counts: PairCounts) -> Evidence:
        """Counts as tables of the model."""
        old, v, j = self._model, self._shapes.v, self._shapes.j
        parts_v = v.parts(counts.v, self.weights.v)
        parts_j = j.parts(counts.j, self.weights.j)
        together = _table(np.zeros((len(old.v), parts_v.shape[1])), (v.gene,), parts_v)[:, : len(old.j)]
        return Evidence(
            p_v=together.sum(1),
            p_dj=(together if len(old.p_dj) > 1 else together.sum(0, keepdims=True))[:, None],
            p_v_deletions=_table(old.p_v_deletions, (v.gene, v.deletion), parts_v.sum(1)),
            p_d_deletions=np.zeros_like(old.p_d_deletions),
            p_j_deletions=_table(old.p_j_deletions, (j.gene, j.deletion), parts_j.sum(1)),
            p_vd_length=counts.length.copy(),
            p_dj_length=np.zeros_like(old.p_dj_length),
            vd_steps=counts.step[:4].copy(),
            dj_steps=np.zeros((4, 4)),
            vd_first=counts.step[4].copy(),
            dj_first=np.zeros(4),
            errors=counts.errors.copy(),
        )


def counting_of(model: RecombinationModel, shapes: ModelShapes, error_rate: float | None = None) -> Counting:
    """What counts choices under a model; `shapes` are the trees of its genes."""
    return (CountingWithD if model.d else CountingPairs)(model, shapes, error_rate)


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
    gene, deletion, right = (part[order] for part in (shape.gene, shape.deletion, shape.deletion_right))
    return PartOwners(first, gene, deletion, right, table, logs)


#: Junctions whose expected numbers are added up apart from the others. Sums depend on nothing else: batches
#: of whole pieces give the same bits as one batch of all.
PIECE: Final = 4096


class Expectation:
    """Expected numbers of choices under one model, added up batch by batch.

    The sums depend on the texts, their order and where batches end, and on no number of threads. Batches
    that are multiples of `PIECE` texts (but the last) give the bits of a single batch.

    Parameters
    ----------
    model
        The model.
    threads
        Pieces worked on at a time; by default those of the settings.
    shapes
        Trees of the genes, where they are known: those of any model with the same genes.
    error_rate
        How probable it is that a nucleotide was misread, as each of the others alike: a number, or ``"fit"``
        for that of `model`, which the most probable one then follows; None where junctions are as they were.

    Attributes
    ----------
    junctions, impossible
        Junctions that count, and those that the model cannot make.
    shapes
        Trees of the genes.
    """

    def __init__(
        self,
        model: RecombinationModel,
        threads: int | None = None,
        *,
        shapes: ModelShapes | None = None,
        error_rate: ErrorRate = None,
    ) -> None:
        self._model = model
        self._error_rate = error_rate
        self.shapes = model_shapes(model) if shapes is None else shapes
        self._executor = LocalExecutor(threads)
        rate = model.error_rate if error_rate == "fit" else error_rate
        self._counting = counting_of(model, self.shapes, rate)
        self._counts = self._counting.empty()
        self._log = 0.0
        self._nucleotides = 0
        self.junctions = 0
        self.impossible = 0

    def add(self, parts: GraphParts, texts: CodedJunctions, weights: NDArray[np.int64] | None = None) -> None:
        """Add the numbers of a batch.

        Parameters
        ----------
        parts, texts
            As of `plait.vdj.model.junctions.JunctionEncoder`.
        weights
            int64 (n,): how often each text counts; once by default.
        """
        n = texts.start.size
        times = np.ones(n, np.int64) if weights is None else weights
        shares = times.astype(np.float64)
        pieces = [(first, min(first + PIECE, n)) for first in range(0, n, PIECE)]
        results = self._executor.map(lambda piece: self._piece(parts, texts, shares, *piece), pieces)
        for (first, last), (counts, found) in zip(pieces, results, strict=True):
            for total, part in zip(self._counts, counts, strict=True):
                total += part
            made = found > 0
            self._log += float((np.log(found[made]) * shares[first:last][made]).sum())
            self._nucleotides += int((texts.length * times)[first:last][made].sum())
            self.junctions += int(times[first:last][made].sum())
            self.impossible += int(times[first:last][~made].sum())

    def _piece(
        self, parts: GraphParts, texts: CodedJunctions, shares: _Floats, first: int, last: int
    ) -> tuple[Any, _Floats]:
        counts = self._counting.empty()
        return counts, self._counting.count(parts, texts, shares, first, last, counts)

    def log_likelihood(self) -> float:
        """Mean of the natural logarithm of the probability of the junctions that count; 0 for none."""
        return self._log / max(self.junctions, 1)

    def counts(self) -> dict[str, NDArray[Any]]:
        """All that has been added up, to be written down and restored; copies."""
        return {
            **{name: table.copy() for name, table in self._counts._asdict().items()},
            "log_likelihood": np.array([self._log]),
            "junctions": np.array([self.junctions, self.impossible, self._nucleotides]),
            "model": np.array([int(self._model.digest, 16)], np.uint64),
        }

    def restore(self, counts: Mapping[str, NDArray[Any]]) -> None:
        """Go on from where `counts` was called.

        Parameters
        ----------
        counts
            What it returned.

        Raises
        ------
        InvalidInput
            If it belongs to another model.
        """
        own = self.counts()
        for name in sorted(own.keys() | counts.keys()):
            there, here = (
                f"{table[name].dtype}{list(table[name].shape)}" if name in table else "none"
                for table in (counts, own)
            )
            if there != here:
                raise InvalidInput(f"counts of {name}", found=there, expected=here)
        if counts["model"][0] != own["model"][0]:
            raise InvalidInput(
                "counts",
                found=f"those of the model {int(counts['model'][0]):016x}",
                expected=f"those of {self._model.digest}",
            )
        self._counts = type(self._counts)(*(counts[name].copy() for name in self._counts._fields))
        self._log = float(counts["log_likelihood"][0])
        self.junctions, self.impossible, self._nucleotides = map(int, counts["junctions"])

    def evidence(self) -> Evidence:
        """Expected numbers of all choices."""
        return self._counting.evidence(self._counts)

    def model(self, *, pseudocount: float = 0.0) -> RecombinationModel:
        """The model under which these numbers are most probable; what was never seen stays as it was.

        Parameters
        ----------
        pseudocount
            Added to the number of every possible choice.
        """
        seen, rate = self.evidence(), self._error_rate or 0.0
        if rate == "fit":
            rate = float(seen.errors[0]) / max(self._nucleotides, 1)
        return most_probable_model(self._model, seen, pseudocount=pseudocount, error_rate=rate)


def scaled(table: _Floats, *axes: int) -> _Floats:
    """With sums of 1 along some axes; what is all zero stays so."""
    total = table.sum(axis=axes, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: _Floats = np.where(total > 0, table / total, 0.0)
    return found


@dataclass(slots=True)
class Steps:
    """Which model is tried after which: two steps of EM, then one that goes on in their direction (SQUAREM).

    R. Varadhan and C. Roland, Scand. J. Stat. 35, 335-353 (2008), third step length, of square roots of
    probabilities. Where the longer step has explained junctions no better than the two before it, it is
    taken back. `first` is the model before both steps, `safe` what EM made of the second one, while a longer
    step is tried; `base` the mean log-likelihood of the model of which EM made the next one, None after a
    longer step, `floor` the objective that such a step has to reach.
    """

    first: RecombinationModel | None = None
    safe: RecombinationModel | None = None
    base: float | None = None
    floor: float = 0.0

    def next(
        self, model: RecombinationModel, expected: Expectation, pseudocount: float, *, longer: bool
    ) -> RecombinationModel:
        """The model to try after `model`, of which `expected` is known; a longer one only if it may be."""
        updated, mean = expected.model(pseudocount=pseudocount), expected.log_likelihood()
        objective = mean
        if pseudocount:
            objective += pseudocount / expected.junctions * _log_prior(model)
        safe, self.safe = self.safe, None
        if safe is not None:
            self.base = mean if objective >= self.floor else self.base
            return updated if objective >= self.floor else safe
        self.base = mean
        if self.first is None or not longer:
            self.first = model if longer else None
            return updated
        found = _further(self.first, model, updated)
        self.first = None
        if found is None:
            return updated
        self.safe, self.floor = updated, objective
        return found

    def gain(self, mean: float) -> float:
        """By how much a step of EM has raised the mean log-likelihood; infinite after another one."""
        return math.inf if self.base is None or self.safe is not None else mean - self.base


def _log_prior(model: RecombinationModel) -> float:
    """Sum of the logarithms of all probabilities above zero."""
    return sum(float(np.log(t[t > 0]).sum()) for t in (getattr(model, n) for n in model.distributions()))


def _weights(model: RecombinationModel) -> dict[str, _Floats]:
    """How often each distribution of a table is drawn from, in a shape that fits the table."""
    p_d, p_j = (model.p_dj.sum(axis=axes) for axes in ((0, 2), (0, 1)))
    share = {"p_v_deletions": model.p_v[:, None], "p_j_deletions": p_j[:, None] / len(model.p_dj)}
    if len(model.p_dj) > 1:
        share["p_dj"] = model.p_v[:, None, None]
    if model.d:
        share["p_d_deletions"] = p_d[:, None, None]
    return share


def _further(
    first: RecombinationModel, second: RecombinationModel, third: RecombinationModel
) -> RecombinationModel | None:
    """From where two steps of EM began, so far in their direction as their bend allows; None if not further.

    What is possible after both steps stays so.
    """
    axes, share = third.distributions(), _weights(third)
    moved = bent = 0.0
    roots = {name: [np.sqrt(getattr(m, name)) for m in (first, second, third)] for name in axes}
    for name, (a, b, c) in roots.items():
        weight = share.get(name, np.ones(1))
        moved += float((weight * (b - a) ** 2).sum())
        bent += float((weight * (c - 2 * b + a) ** 2).sum())
    if not bent > 0 or moved <= bent:
        return None
    length = math.sqrt(moved / bent)
    tables: dict[str, Any] = {}
    for name, (a, b, c) in roots.items():
        far = np.maximum(a + 2 * length * (b - a) + length**2 * (c - 2 * b + a), 0.1 * c)
        tables[name] = scaled(far**2, *axes[name])
    return replace(third, **tables)


#: Junctions that a thread takes at a time.
_PIECE: Final = 256


@dataclass(frozen=True, slots=True)
class Posteriors:
    """What is known of the scenarios of n junctions, each weighted by its probability given the junction.

    Rows without a scenario have NaN, and -1 for genes.

    Attributes
    ----------
    status
        uint8 (n,): index into `plait.vdj.calls.STATUSES`; 0 where a junction and its calls can be used.
    pgen
        float64 (n,): generation probability; NaN where the status is not 0.
    v, d, j
        int32 (n,): the most probable gene (entry of the model) of each kind; d is -1 in chains without D.
    v_probability, d_probability, j_probability
        float64 (n,): of these genes.
    deletions
        float64 (n, 4): mean deletions of V, of D at 5' and 3', and of J; P nucleotides count below zero.
    insertions
        float64 (n, 2): mean numbers of N nucleotides between V and D, and D and J; V and J, and 0.
    inserted
        float64 (n, 4): mean numbers of inserted A, C, G and T.
    entropy
        float64 (n,): of the scenarios given the junction, in bits; 0 where there is only one.
    """

    status: NDArray[np.uint8]
    pgen: _Floats
    v: NDArray[np.int32]
    d: NDArray[np.int32]
    j: NDArray[np.int32]
    v_probability: _Floats
    d_probability: _Floats
    j_probability: _Floats
    deletions: _Floats
    insertions: _Floats
    inserted: _Floats
    entropy: _Floats


class PosteriorFinder:
    """Finds what junctions tell under one model; threads may share it.

    Parameters
    ----------
    model
        The model.
    threads
        How many threads; by default those of the settings. Nothing depends on it.
    """

    def __init__(self, model: RecombinationModel, *, threads: int | None = None) -> None:
        self.model = model
        self._executor = LocalExecutor(threads)
        shapes = model_shapes(model)
        self._encoder = JunctionEncoder(model, shapes=shapes, missing="refused")
        self._counting = counting_of(model, shapes)

    def compute(
        self, junctions: Any, v_call: Any = None, j_call: Any = None, *, kind: TextKind = "nt"
    ) -> Posteriors:
        """Means over all scenarios of each junction.

        Parameters
        ----------
        junctions
            Sequence or Arrow array of nucleotide or amino acid sequences, or motifs.
        v_call, j_call
            Genes or alleles, or lists of them, which each junction is made with; without, all functional
            genes.
        kind
            What the junctions are: ``"nt"``, ``"aa"`` or ``"motif"``.

        Raises
        ------
        InvalidInput
            If the columns are not of one length.
        """
        batch = self._encoder.encode(junctions, v_call, j_call, kind=kind)
        found, counting = _empty(batch), self._counting

        def piece(first: int) -> None:
            last = min(first + _PIECE, batch.rows.size)
            for plain, rows in split_texts(batch.parts, batch.texts, first, last):
                weight, posterior = counting.posterior(batch.parts, batch.texts, first + rows, plain=plain)
                _write(self.model, counting.chain.margin, weight, posterior, found, batch.rows[first + rows])

        for _ in self._executor.map(piece, range(0, batch.rows.size, _PIECE)):
            pass
        return found


def _empty(batch: EncodedJunctions) -> Posteriors:
    n = batch.status.size
    none: list[Any] = [np.full(n, -1, np.int32) for _ in range(3)]
    nan: list[Any] = [np.full((n, *shape), np.nan) for shape in ((), (), (), (4,), (2,), (4,), ())]
    return Posteriors(batch.status, np.full(n, np.nan), *none, *nan)


def _write(
    model: RecombinationModel,
    margin: int,
    weight: _Floats,
    posterior: PosteriorRows,
    found: Posteriors,
    rows: NDArray[np.int64],
) -> None:
    """Write what texts tell into rows."""
    found.pgen[rows] = weight
    made = np.flatnonzero(weight > 0)
    rows = rows[made]
    for k, segment in enumerate("vdj"):
        if segment != "d" or model.d:
            getattr(found, segment)[rows] = posterior.best[made, k]
            getattr(found, f"{segment}_probability")[rows] = posterior.share[made, k]
    # Cuts count from the longest P extension.
    longest = np.array(model.palindromes) * [1, *[bool(model.d)] * 2, 1]
    found.deletions[rows] = posterior.deletion[made] - longest
    mean, inserted = posterior.log[made], np.zeros((made.size, 4))
    sides = _sides(model, margin, posterior)
    for side, (lengths, steps, p_length, p_steps, p_first) in enumerate(sides):
        number = lengths[made] * np.arange(p_length.size)
        found.insertions[rows, side] = number.sum(axis=1)
        inserted += steps[made].reshape(-1, 5, 4).sum(axis=1)
        mean = mean + (lengths[made] * _logs(p_length)).sum(axis=1)
        mean += (steps[made] * _logs(np.concatenate([p_steps.ravel(), p_first]))).sum(axis=1)
    found.insertions[rows, len(sides) :] = 0.0
    found.inserted[rows] = inserted
    found.entropy[rows] = np.maximum(np.log(weight[made]) - mean, 0.0) / np.log(2)


def _sides(
    model: RecombinationModel, margin: int, posterior: PosteriorRows
) -> list[tuple[_Floats, _Floats, _Floats, _Floats, _Floats]]:
    """Numbers of insertions (n, lengths) and of steps (n, 20), and their probabilities, for each side."""
    left = posterior.left_length, posterior.left_step, model.p_vd_length, model.vd_steps, model.vd_first
    if not model.d:
        return [left]
    right = posterior.right_length, posterior.right_step, model.p_dj_length, model.dj_steps, model.dj_first
    found = []
    for backwards, (numbers, lanes, *p) in ((True, left), (False, right)):
        some = numbers[:, margin : numbers.shape[1] - margin]
        some = np.hstack([numbers[:, :1], some[:, ::-1] if backwards else some])
        found.append((some, lanes.reshape(len(lanes), 20, -1).sum(axis=2), *p))
    return found


def _logs(p: _Floats) -> _Floats:
    """Logarithms, 0 of 0: what is impossible is not counted."""
    return np.log(np.where(p > 0, p, 1.0))
