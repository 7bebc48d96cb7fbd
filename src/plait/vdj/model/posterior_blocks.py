"""What blocks of rows tell about how they were made, in this process or in others."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.vdj.model.junction_tables import JunctionColumns
from plait.vdj.model.pgen import GenerationProbability
from plait.vdj.model.pgen_blocks import PgenBlock, block_told, named_statuses
from plait.vdj.model.pgen_causes import PgenCauses
from plait.vdj.model.posteriors import PosteriorFinder
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.texts import TextKind

__all__ = ["BlockPosteriors"]

_FLOAT: Final = pa.float64()
_ENDS: Final = ("v_3", "d_5", "d_3", "j_5")
_BASES: Final = "acgt"


class BlockPosteriors:
    """Computes wherever it is called; picklable, its tables are made where they are needed.

    Parameters
    ----------
    model
        The model.
    places
        What the columns of a block are.

    Attributes
    ----------
    kinds
        That of the probabilities among the results.
    schema : pyarrow.Schema
        The result columns.
    """

    kinds: tuple[TextKind, ...] = ("nt",)

    def __init__(self, model: RecombinationModel, places: JunctionColumns) -> None:
        self._made_of = model, places
        self.model, self._places = self._made_of
        self._genes = [segment for segment in "vdj" if segment != "d" or model.d]
        fields = [("pgen_nt", _FLOAT), ("pgen_nt_status", pa.string())]
        for segment in self._genes:
            fields += [(f"posterior_{segment}_call", pa.string()), (f"posterior_{segment}_share", _FLOAT)]
        self._ends = [k for k, end in enumerate(_ENDS) if model.d or not end.startswith("d")]
        fields += [(f"mean_{_ENDS[k]}_deletion", _FLOAT) for k in self._ends]
        fields += [(f"mean_n{k}_length", _FLOAT) for k in (1, 2) if model.d or k == 1]
        fields += [(f"mean_n_{base}", _FLOAT) for base in _BASES]
        self.schema = pa.schema([*fields, ("scenario_entropy", _FLOAT)])

    @cached_property
    def _engine(self) -> GenerationProbability:
        return GenerationProbability(self.model, threads=1)

    @cached_property
    def _causes(self) -> PgenCauses:
        return PgenCauses(self._engine, self._places)

    @cached_property
    def _finder(self) -> PosteriorFinder:
        return PosteriorFinder(self.model, threads=1)

    def provenance(self) -> list[dict[str, Any]]:
        """How the numbers are made."""
        made = self._engine.provenance("nt", self._places.v >= 0, self._places.j >= 0).as_dict()
        return [{**made, "algebra": "expectation"}]

    def __call__(self, rows: pa.RecordBatch) -> PgenBlock:
        """The result of a block."""
        columns = rows.columns
        calls = self._places.calls(columns)
        texts = self._places.texts(columns)
        pgen = self._engine.compute(texts, calls.get("v"), calls.get("j"))
        ok = np.flatnonzero(pgen.pgen > 0)
        some = pa.array(ok)
        chosen = {name: column.take(some) for name, column in calls.items()}
        found = self._finder.compute(texts.take(some), chosen.get("v"), chosen.get("j"))
        known = np.zeros(len(texts), np.bool_)
        known[ok] = True

        def spread(values: NDArray[Any]) -> pa.Array:
            out = np.zeros(known.size, values.dtype)
            out[ok] = values
            return pa.array(out, mask=~known)

        result: dict[str, pa.Array] = {
            "pgen_nt": pa.array(pgen.pgen, mask=np.isnan(pgen.pgen)),
            "pgen_nt_status": named_statuses(pgen),
            "scenario_entropy": spread(found.entropy),
        }
        for segment in self._genes:
            names = pa.array([gene.name for gene in getattr(self.model, segment)], pa.string())
            result[f"posterior_{segment}_call"] = names.take(spread(getattr(found, segment)))
            result[f"posterior_{segment}_share"] = spread(getattr(found, f"{segment}_probability"))
        for k in self._ends:
            result[f"mean_{_ENDS[k]}_deletion"] = spread(found.deletions[:, k])
        for k in range(2):
            result[f"mean_n{k + 1}_length"] = spread(found.insertions[:, k])
        for k, base in enumerate(_BASES):
            result[f"mean_n_{base}"] = spread(found.inserted[:, k])
        batch = pa.record_batch([result[name] for name in self.schema.names], schema=self.schema)
        return block_told(self.kinds, batch, columns, self._places, self._causes)

    def restored(self, rows: pa.RecordBatch, result: pa.RecordBatch) -> PgenBlock:
        """A block that another run has computed.

        Parameters
        ----------
        rows
            Its rows.
        result
            The result columns.
        """
        return block_told(self.kinds, result, rows.columns, self._places, self._causes)

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockPosteriors, self._made_of
