"""Inference of a model from junctions by expectation maximisation.

What is inferred, with V, D and J: P(V), P(D, J) as one table for all V, deletions given the gene (both ends
of D together), numbers of insertions and the Markov chains of inserted nucleotides. Without D: P(V) and
P(J | V), or P(J) alone where the start has one row of it.

Junctions are taken as they are: sequencing errors are not modelled, so reads have to be made into consensus
sequences or clonotypes first, and the error rate of an inferred model is 0. What is inferred is the
distribution among junctions, which all keep at least one nucleotide of V and of J (`observable_model`).
Choices that no junction can tell apart share what they have in a proportion that the start decides: deletions
of D that leave the same word and, where there are no calls, genes that are alike in what deletions leave of
them. P(V) and the deletions of V are therefore found with calls; without, only what they give together is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.schedules.text_graphs import GraphParts, WeightedTexts
from plait.vdj.model.end_shapes import model_shapes
from plait.vdj.model.expectations import Evidence, Expectation
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel

__all__ = ["Iteration", "Supply", "infer_model", "observable_model", "uniform_model"]

_Floats = NDArray[np.float64]

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
    evidence
        Expected numbers of choices that the model after it is made from.
    """

    number: int
    log_likelihood: float
    junctions: int
    impossible: int
    model: RecombinationModel
    evidence: Evidence


def uniform_model(
    model: RecombinationModel, *, genes: Literal["functional", "anchored"] = "functional"
) -> RecombinationModel:
    """The genes of a model with all choices equally probable, where a choice is possible.

    Deletions are those that leave something of V and of J; without D genes, J is chosen given V.

    Parameters
    ----------
    model
        The model.
    genes
        Which V and J genes are possible: those that are functional, or all with a known anchor, which makes
        sense where calls tell which gene a junction has.
    """

    def possible(gene: ModelGene) -> bool:
        return gene.functional if genes == "functional" else gene.anchor is not None

    v = np.array([possible(gene) for gene in model.v], float)
    j = np.array([possible(gene) for gene in model.j], float)
    rows = 1 if model.d else len(model.v)
    p_dj = np.broadcast_to(j, (rows, max(len(model.d), 1), len(model.j)))
    of_v, of_d, of_j = _possible_deletions(model)
    return replace(
        model,
        p_v=_scaled(v, 0),
        p_dj=_scaled(p_dj, 1, 2),
        p_v_deletions=_scaled(of_v, 1),
        p_j_deletions=_scaled(of_j, 1),
        p_d_deletions=_scaled(of_d, 1, 2) if model.d else of_d,
        p_vd_length=_scaled(np.ones_like(model.p_vd_length), 0),
        p_dj_length=_scaled(np.ones_like(model.p_dj_length), 0),
        vd_steps=np.full((4, 4), 0.25),
        dj_steps=np.full((4, 4), 0.25),
    )


def observable_model(model: RecombinationModel, *, functional: bool = True) -> RecombinationModel:
    """The model of what a model makes: of junctions, which keep a nucleotide of V and of J.

    A scenario that leaves nothing of V or J makes no junction, so this, and not the model itself, is what
    junctions drawn from a model tell of it.

    Parameters
    ----------
    model
        The model.
    functional
        Whether only functional genes make junctions.
    """
    of_v, of_d, of_j = (
        table * possible
        for table, possible in zip(
            (model.p_v_deletions, model.p_d_deletions, model.p_j_deletions),
            _possible_deletions(model),
            strict=True,
        )
    )
    v, j = (
        np.array([gene.functional or not functional for gene in genes]) * table.sum(axis=1)
        for genes, table in ((model.v, of_v), (model.j, of_j))
    )
    # Deletions of D, too, can be more than there is of it.
    d = of_d.sum(axis=(1, 2)) if model.d else np.ones(1)
    p_dj = model.p_dj * d[:, None] * j
    return replace(
        model,
        p_v=_scaled(model.p_v * v * (p_dj.sum(axis=(1, 2)) if len(p_dj) > 1 else 1.0), 0),
        p_dj=_scaled(p_dj, 1, 2),
        p_v_deletions=_scaled(of_v, 1),
        p_j_deletions=_scaled(of_j, 1),
        p_d_deletions=_scaled(of_d, 1, 2) if model.d else of_d,
    )


def _possible_deletions(model: RecombinationModel) -> tuple[_Floats, _Floats, _Floats]:
    """1 for deletions of V, D and J that can leave a part; at least a nucleotide of V and of J."""
    shapes = model_shapes(model)
    found = tuple(
        np.zeros_like(table) for table in (model.p_v_deletions, model.p_d_deletions, model.p_j_deletions)
    )
    found[0][shapes.v.gene, shapes.v.cut] = 1.0
    if model.d:
        found[1][shapes.d.gene, shapes.d.cut, shapes.d.cut_right] = 1.0
    found[2][shapes.j.gene, shapes.j.cut] = 1.0
    return found[0], found[1], found[2]


def _scaled(table: _Floats, *axes: int) -> _Floats:
    """With sums of 1 along some axes; what is all zero stays so."""
    total = table.sum(axis=axes, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: _Floats = np.where(total > 0, table / total, 0.0)
    return found


def infer_model(
    start: RecombinationModel,
    supply: Supply,
    *,
    iterations: int = 100,
    tolerance: float = 1e-5,
    pseudocount: float = 0.0,
    threads: int | None = None,
    progress: Callable[[Iteration], object] | None = None,
) -> RecombinationModel:
    """Improve a model until it explains junctions as well as it can.

    Parameters
    ----------
    start
        The model to begin with: that of `uniform_model`, or one from elsewhere (a warm start). What is
        impossible in it stays so. Genes that no junction has get probability 0, and keep the deletions of
        the start.
    supply
        The junctions.
    iterations
        How often all of them are gone through at most.
    tolerance
        The end: when the mean log-likelihood of a junction has changed by less from one iteration to the
        next.
    pseudocount
        Added to the expected number of every choice that is possible in `start`.
    threads
        Pieces worked on at a time; no result depends on it.
    progress
        Called after every iteration.

    Raises
    ------
    InvalidInput
        If there is no junction that `start` can make, or a number is below zero.
    """
    for name, value in (("tolerance", tolerance), ("pseudocount", pseudocount)):
        if not value >= 0:
            raise InvalidInput(name, found=value, expected="a number of at least 0")
    if iterations < 1:
        raise InvalidInput("iterations", found=iterations, expected="at least 1")
    shapes = model_shapes(start)
    model, before = start, -np.inf
    for number in range(1, iterations + 1):
        expected = Expectation(model, threads, shapes=shapes)
        for parts, texts in supply():
            expected.add(parts, texts)
        if not expected.junctions:
            raise InvalidInput(
                "junctions", found=f"none of {expected.impossible} that the model can make", expected="some"
            )
        model, mean = expected.model(pseudocount=pseudocount), expected.log_likelihood()
        if progress is not None:
            numbers = number, mean, expected.junctions, expected.impossible
            progress(Iteration(*numbers, model, expected.evidence()))
        if abs(mean - before) < tolerance:
            break
        before = mean
    return model
