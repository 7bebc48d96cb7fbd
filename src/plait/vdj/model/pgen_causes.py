"""What is to be said of the rows of a block beside their numbers: foreign calls, and causes of zeros."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.vdj.model.junction_tables import JunctionColumns
from plait.vdj.model.pgen import GenerationProbability
from plait.vdj.model.pgen_summary import PgenSummary
from plait.vdj.model.texts import TextKind
from plait.vdj.model.zero_reasons import ZERO_REASONS
from plait.vdj.zero_causes import CauseFinder, ends_of

__all__ = ["PgenCauses"]


class PgenCauses:
    """Looks for them.

    Parameters
    ----------
    engine
        What computes.
    places
        What the columns of a block are.
    """

    def __init__(self, engine: GenerationProbability, places: JunctionColumns) -> None:
        self._engine, self._places = engine, places
        model = engine.model
        ends = ends_of(
            [g.sequence[g.anchor :] for g in model.v if g.anchor is not None],
            [g.sequence[: g.anchor + 3] for g in model.j if g.anchor is not None],
        )
        insertions = sum(int(np.flatnonzero(p)[-1]) for p in (model.p_vd_length, model.p_dj_length))
        insertions += max((len(d.sequence) for d in model.d), default=0)
        genes = {g.gene for g in model.v}
        self._finders = {acids: CauseFinder(ends, insertions, genes, acids=acids) for acids in (False, True)}
        self._knows = cache(engine.knows)

    def add(
        self, summary: PgenSummary, kind: TextKind, columns: Sequence[pa.Array], result: pa.RecordBatch
    ) -> None:
        """Add what is found to a summary.

        Parameters
        ----------
        summary
            That of the block.
        kind
            What the junctions are.
        columns
            Those that are worked on.
        result
            The result columns.
        """
        named = self._places.named(columns)
        for segment, calls in named.items():
            self._add_foreign(summary, segment, calls)
        if named:
            given = [pc.greater(pc.binary_length(pc.fill_null(calls, "")), 0) for calls in named.values()]
            summary.called += int(np.logical_or.reduce([np.asarray(one) for one in given]).sum())
        if kind == "motif":
            return
        acids = kind == "aa"
        junctions = self._places.amino_acids(columns) if acids else self._places.texts(columns)
        status = result[f"pgen_{kind}_status"]
        zero = np.asarray(pc.is_in(status, pa.array(ZERO_REASONS)))
        used = self._places.calls(columns)

        def possible(texts: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
            v, j = (used[s].take(pa.array(rows)) if s in used else None for s in "vj")
            found: NDArray[np.bool_] = self._engine.compute(texts, v, j, kind=kind).pgen > 0
            return found

        counted = zero | np.asarray(pc.equal(status, "ok"))
        summary.causes.merge(self._finders[acids].causes(junctions, counted, zero, possible))

    def _add_foreign(self, summary: PgenSummary, segment: str, calls: pa.Array) -> None:
        encoded = pc.dictionary_encode(pc.fill_null(calls, ""))
        texts = encoded.dictionary.to_pylist()
        names = [f"unknown_{segment}_call" if t and not self._knows(segment, t) else "ok" for t in texts]
        summary.foreign.add(pa.array(names, pa.string()).take(encoded.indices), {segment: calls})
