"""Trees of gene ends without their weights: they stay the same while a model is inferred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from plait.algebras import PROBABILITY
from plait.schedules.end_trees import EndTrees
from plait.vdj.model.chain_values import entered_at
from plait.vdj.model.recombination_model import RecombinationModel

__all__ = ["EndShape", "ModelShapes", "model_shapes"]

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EndShape:
    """A set of trees, and which cuts of which genes end at which node.

    Attributes
    ----------
    child
        int32 (nodes, 4): as in `plait.schedules.end_trees.EndTrees`.
    root
        int32 (genes,): the tree of each gene alone.
    together
        Root of the tree of all functional genes; -1 where every gene has its own.
    node, gene, cut, cut_right
        int64 (n,): a gene's part that is left by a cut (fragments: by two) ends at a node.
    """

    child: NDArray[np.int32]
    root: NDArray[np.int32]
    together: int
    node: _Ints
    gene: _Ints
    cut: _Ints
    cut_right: _Ints

    def trees(self, weight: NDArray[Any], algebra: Any = PROBABILITY) -> EndTrees:
        """The trees, from the weight (n,) or (n, contexts) of every part, values of an algebra."""
        table = weight if weight.ndim == 2 else weight[:, None]
        return EndTrees(self.child, entered_at(algebra, len(self.child), self.node, table))

    def parts(self, counts: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers of every part (n, contexts), from those of nodes and the weights of parts."""
        table = weight if weight.ndim == 2 else weight[:, None]
        whole = self.trees(table).weight
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = np.where(whole > 0, counts / whole, 0.0)
        found: NDArray[np.float64] = table * rate[self.node]
        return found


@dataclass(frozen=True, slots=True)
class ModelShapes:
    """Trees of the V, D and J genes of a model.

    Attributes
    ----------
    v, d, j
        Of each kind.
    words
        One tree of all D genes.
    """

    v: EndShape
    d: EndShape
    j: EndShape
    words: EndShape


class _Grower:
    def __init__(self) -> None:
        self.child: list[list[int]] = []
        self.owners: list[tuple[int, int, int, int]] = []

    def root(self) -> int:
        self.child.append([-1] * 4)
        return len(self.child) - 1

    def path(self, root: int, codes: Sequence[int]) -> list[int]:
        """The nodes of a word, the root first."""
        nodes = [root]
        for code in codes:
            if self.child[nodes[-1]][code] < 0:
                self.child[nodes[-1]][code] = self.root()
            nodes.append(self.child[nodes[-1]][code])
        return nodes

    def shape(self, roots: list[int], together: int) -> EndShape:
        owners = np.array(self.owners, np.int64).reshape(-1, 4)
        return EndShape(
            np.array(self.child, np.int32).reshape(-1, 4),
            np.array(roots, np.int32),
            together,
            *(np.ascontiguousarray(column) for column in owners.T),
        )


def model_shapes(model: RecombinationModel) -> ModelShapes:
    """Trees of all genes of a model; the junction keeps at least one nucleotide of V and of J."""
    return ModelShapes(
        _ends(model, "V", model.p_v_deletions.shape[1]),
        _words(model, apart=True),
        _ends(model, "J", model.p_j_deletions.shape[1]),
        _words(model, apart=False),
    )


def _codes(text: str) -> list[int]:
    return ["ACGT".index(letter) for letter in text]


def _ends(model: RecombinationModel, segment: Literal["V", "J"], cuts: int) -> EndShape:
    grower = _Grower()
    together = grower.root()
    roots = []
    for k, gene in enumerate(model.v if segment == "V" else model.j):
        codes = _codes(model.extended(segment, k))
        if segment == "J":
            codes.reverse()
        roots.append(grower.root())
        for root in (roots[-1], together) if gene.functional else (roots[-1],):
            for kept, node in enumerate(grower.path(root, codes)):
                if kept > 0 and len(codes) - kept < cuts:
                    grower.owners.append((node, k, len(codes) - kept, 0))
    return grower.shape(roots, together)


def _words(model: RecombinationModel, *, apart: bool) -> EndShape:
    grower = _Grower()
    together = -1 if apart else grower.root()
    roots: list[int] = []
    left, right = model.p_d_deletions.shape[-2:]
    for k in range(len(model.d)):
        codes = _codes(model.extended("D", k))
        roots.append(grower.root() if apart else together)
        for s in range(min(left, len(codes) + 1)):
            for size, node in enumerate(grower.path(roots[-1], codes[s:])):
                if len(codes) - s - size < right:
                    grower.owners.append((node, k, s, len(codes) - s - size))
    if not grower.child:
        grower.root()
    return grower.shape(roots, together)
