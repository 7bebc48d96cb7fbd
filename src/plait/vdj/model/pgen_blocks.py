"""Generation probabilities of blocks of rows, in this process or in others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.executors.protocol import Executor
from plait.targets.devices import used_devices
from plait.types import Provenance
from plait.vdj.model.junction_tables import JunctionColumns
from plait.vdj.model.pgen import GenerationProbability, Pgen
from plait.vdj.model.pgen_causes import PgenCauses
from plait.vdj.model.pgen_summary import PgenSummary
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.texts import TextKind
from plait.vdj.model.zero_reasons import PGEN_STATUSES

__all__ = ["BlockPgen", "PgenBlock", "block_told", "named_statuses"]

_OUT_OF_FRAME: Final = "out_of_frame"


@dataclass(frozen=True, slots=True)
class PgenBlock:
    """Result of a block.

    Attributes
    ----------
    result
        The result columns.
    summaries
        What came of its rows, for every kind.
    device
        What computed it; None if another run did.
    """

    result: pa.RecordBatch
    summaries: dict[TextKind, PgenSummary]
    device: str | None = None


class BlockPgen:
    """Computes wherever it is called; picklable, its tables are made where they are needed.

    Parameters
    ----------
    model
        The model.
    kinds
        What is computed.
    places
        What the columns of a block are.
    log10
        Whether there are columns of logarithms.
    device
        As for `plait.vdj.model.GenerationProbability`; one of the machine that computes.
    """

    def __init__(
        self,
        model: RecombinationModel,
        kinds: Sequence[TextKind],
        places: JunctionColumns,
        log10: bool,
        device: str = "cpu",
    ) -> None:
        self._made_of = model, tuple(kinds), places, log10, device
        self.model, self.kinds, self._places, self._log10, self._device = self._made_of
        fields = []
        for kind in self.kinds:
            fields.append(pa.field(f"pgen_{kind}", pa.float64()))
            if log10:
                fields.append(pa.field(f"log10_pgen_{kind}", pa.float64()))
            fields.append(pa.field(f"pgen_{kind}_status", pa.string()))
        self.schema = pa.schema(fields)

    @cached_property
    def engine(self) -> GenerationProbability:
        """What computes, in one thread: blocks are what runs in parallel."""
        return GenerationProbability(self.model, threads=1, device=self._device)

    @cached_property
    def causes(self) -> PgenCauses:
        """What looks for causes of zeros."""
        return PgenCauses(self.engine, self._places)

    def provenance(self) -> list[dict[str, Any]]:
        """How the numbers of each kind are made."""
        used = self._places.v >= 0, self._places.j >= 0
        made: list[Provenance] = [self.engine.provenance(kind, *used) for kind in self.kinds]
        return [found.as_dict() for found in made]

    def provenance_on(self, executor: Executor) -> list[dict[str, Any]]:
        """How workers make them: what this machine has may be something else.

        Parameters
        ----------
        executor
            Where blocks are to be worked on.
        """
        if not executor.elsewhere:
            return self.provenance()
        with closing(executor.map(_provenance_of, [self])) as found:
            return next(found)

    def __call__(self, rows: pa.RecordBatch) -> PgenBlock:
        """The result of a block."""
        columns = rows.columns
        calls = self._places.calls(columns)
        found: dict[str, Any] = {}
        devices = []
        for kind in self.kinds:
            acids = kind != "nt"
            texts = self._places.amino_acids(columns) if acids else self._places.texts(columns)
            pgen = self.engine.compute(texts, calls.get("v"), calls.get("j"), kind=kind)
            devices.append(pgen.provenance.device)
            status = named_statuses(pgen)
            if acids and self._places.nucleotides >= 0:
                given = pc.greater(pc.binary_length(self._places.texts(columns)), 0)
                framed = pc.and_(pc.equal(status, "missing_junction"), pc.fill_null(given, False))
                status = pc.if_else(framed, _OUT_OF_FRAME, status)
            found[f"pgen_{kind}"] = pa.array(pgen.pgen, mask=np.isnan(pgen.pgen))
            found[f"pgen_{kind}_status"] = status
            if self._log10:
                above = pgen.pgen > 0
                # Not that of NumPy, whose last digit depends on the processor.
                log = [math.log10(x) if x > 0 else 0.0 for x in pgen.pgen.tolist()]
                found[f"log10_pgen_{kind}"] = pa.array(np.array(log), mask=~above)
        batch = pa.record_batch([found[name] for name in self.schema.names], schema=self.schema)
        told = block_told(self.kinds, batch, columns, self._places, self.causes)
        return replace(told, device=used_devices(devices))

    def restored(self, rows: pa.RecordBatch, result: pa.RecordBatch) -> PgenBlock:
        """A block that another run has computed.

        Parameters
        ----------
        rows
            Its rows.
        result
            The result columns.
        """
        return block_told(self.kinds, result, rows.columns, self._places, self.causes)

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockPgen, self._made_of


def _provenance_of(blocks: BlockPgen) -> list[dict[str, Any]]:
    return blocks.provenance()


def block_told(
    kinds: Sequence[TextKind],
    result: pa.RecordBatch,
    columns: Sequence[pa.Array],
    places: JunctionColumns,
    causes: PgenCauses,
) -> PgenBlock:
    """A result with what came of its rows.

    Parameters
    ----------
    kinds
        The kinds of probability in it.
    result
        The result columns.
    columns, places
        Those that were worked on, and what they are.
    causes
        What looks for causes of zeros.
    """
    summaries: dict[TextKind, PgenSummary] = {kind: PgenSummary() for kind in kinds}
    for kind, summary in summaries.items():
        summary.add(result[f"pgen_{kind}_status"], result[f"pgen_{kind}"], places.calls(columns))
        causes.add(summary, kind, columns, result)
    return PgenBlock(result, summaries)


def named_statuses(pgen: Pgen) -> pa.Array:
    """The status of every row by its name.

    Parameters
    ----------
    pgen
        The rows.
    """
    return pa.array(PGEN_STATUSES, pa.string()).take(pa.array(pgen.status.astype(np.int32)))
