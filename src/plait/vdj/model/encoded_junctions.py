"""Columns of junctions and calls, encoded for the schedules."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.schedules.text_graphs import GraphParts, WeightedTexts
from plait.vdj.model.end_shapes import ModelShapes, model_shapes
from plait.vdj.model.gene_calls import GeneCalls, as_column
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.texts import TextKind, encode_texts

__all__ = ["EncodedJunctions", "JunctionEncoder", "chosen_texts", "split_texts"]


class EncodedJunctions(NamedTuple):
    """A batch of n rows, of which some can be used.

    Attributes
    ----------
    parts
        What each code stands for.
    texts
        The rows that can be used, in order.
    rows
        int64: which rows these are.
    status
        uint8 (n,): index into `plait.vdj.results.STATUSES`; 0 where a row can be used.
    """

    parts: GraphParts
    texts: WeightedTexts
    rows: NDArray[np.int64]
    status: NDArray[np.uint8]


class JunctionEncoder:
    """Encodes columns for models with the same genes.

    Parameters
    ----------
    model
        A model with these genes.
    shapes
        Its shapes, where they are known.
    missing
        What a row without a call is: one that may be made with any functional gene (``"any"``), or one that
        cannot be used (``"refused"``).
    """

    def __init__(
        self,
        model: RecombinationModel,
        *,
        shapes: ModelShapes | None = None,
        missing: Literal["refused", "any"] = "any",
    ) -> None:
        found = model_shapes(model) if shapes is None else shapes
        self._v = GeneCalls(model, "v", found.v, missing)
        self._j = GeneCalls(model, "j", found.j, missing)

    def encode(
        self, junctions: Any, v_call: Any = None, j_call: Any = None, *, kind: TextKind = "nt"
    ) -> EncodedJunctions:
        """Encode a batch.

        Parameters
        ----------
        junctions
            Sequence or Arrow array of texts, from the conserved Cys to the conserved Phe or Trp.
        v_call, j_call
            Genes or alleles, or lists of them, that each junction may be made with; None for no calls.
        kind
            What the junctions are: ``"nt"``, ``"aa"`` or ``"motif"``.

        Raises
        ------
        InvalidInput
            If the columns are not of one length.
        """
        texts = encode_texts(as_column(junctions), kind)
        n = texts.status.size
        v, j = self._v.read(v_call, n), self._j.read(j_call, n)
        status = texts.status.copy()
        for given in (v, j):
            undecided = status == 0
            status[undecided] = given.status[given.codes[undecided]]
        rows = np.flatnonzero(status == 0)
        batch = WeightedTexts(
            texts.codes, texts.start[rows], texts.length[rows], *v.spread(rows), *j.spread(rows)
        )
        return EncodedJunctions(texts.parts, batch, rows, status)


def split_texts(
    parts: GraphParts, texts: WeightedTexts, first: int, last: int
) -> list[tuple[bool, NDArray[np.int64]]]:
    """Texts of codes for one symbol each, and others: which kind, and which texts, counted from `first`.

    Parameters
    ----------
    parts, texts
        The texts.
    first, last
        Which of them.
    """
    start, length = texts.start[first:last], texts.length[first:last]
    low, high = (int(start.min()), int((start + length).max())) if start.size else (0, 0)
    several = np.cumsum(np.concatenate([[0], parts.nodes[texts.codes[low:high]] > 1]))
    plain = several[start - low + length] == several[start - low]
    found = [(kind, np.flatnonzero(plain == kind)) for kind in (True, False)]
    return [(kind, rows) for kind, rows in found if rows.size]


def chosen_texts(texts: WeightedTexts, rows: NDArray[np.int64]) -> WeightedTexts:
    """Some texts of a batch.

    Parameters
    ----------
    texts
        The batch.
    rows
        Which of them.
    """
    ends: list[NDArray[Any]] = []
    for first, root in ((texts.prefix_first, texts.prefix_root), (texts.suffix_first, texts.suffix_root)):
        sizes = np.diff(first)[rows]
        edges = np.concatenate([[0], np.cumsum(sizes)])
        ends += [edges, root[np.arange(edges[-1]) + np.repeat(first[rows] - edges[:-1], sizes)]]
    return WeightedTexts(texts.codes, texts.start[rows], texts.length[rows], *ends)
