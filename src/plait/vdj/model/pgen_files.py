"""Generation probabilities of the rows of files."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from plait.errors import InvalidInput
from plait.executors.local import LocalExecutor
from plait.formats.blocks import read_ahead
from plait.formats.tables import open_table
from plait.settings import thread_count
from plait.vdj.model.junction_tables import GivenCalls, JunctionTable, open_junctions, renamed_columns
from plait.vdj.model.pgen import GenerationProbability, Pgen
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.texts import TextKind
from plait.vdj.model.zero_reasons import PGEN_STATUSES
from plait.vdj.progress import Progress

__all__ = ["PgenFiles", "PgenKind", "pgen_files"]

#: What is computed: of nucleotides, of amino acids, of both, or of motifs of amino acids.
PgenKind: TypeAlias = Literal["nt", "aa", "both", "motif"]

#: Rows in a block: enough that its thread is busy for some tenths of a second.
_BLOCK_ROWS: Final = 1 << 14
_COLUMNS: Final = {
    "nt": ("pgen_nt", "status"),
    "aa": ("pgen_aa", "status"),
    "motif": ("pgen_aa", "status"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PgenFiles:
    """A finished run.

    Attributes
    ----------
    output
        The table.
    rows
        Its rows.
    statuses
        How many rows have each status, for every status column.
    renamed
        Input columns that had the name of a result column, with the names they were given.
    """

    output: Path
    rows: int
    statuses: dict[str, dict[str, int]]
    renamed: dict[str, str]


def pgen_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    model: RecombinationModel,
    *,
    kind: PgenKind = "nt",
    calls: GivenCalls = "both",
    layout: str = "airr",
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> PgenFiles:
    """Write tables with the generation probabilities of all their rows.

    Every input row is in the output, in input order, with all its columns, and then ``pgen_nt``,
    ``pgen_aa`` or both, and ``status`` (of both: ``status`` is that of the nucleotides, ``status_aa`` the
    other one).

    Parameters
    ----------
    inputs
        AIRR Rearrangement tables (TSV, plain or compressed, or Parquet), or of another `layout`.
    output
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``.
    model
        The model.
    kind
        What is computed. Amino acids and motifs are read from the column that the layout has for amino acids
        (``junction_aa``); where there is none, junctions are translated.
    calls
        Which calls are taken for what a row was made of; over others is summed.
    layout
        Column layout of the inputs.
    threads
        Blocks worked on at a time; the output does not depend on it.
    progress
        Called after every block.

    Raises
    ------
    InvalidInput
        If there is no input, or the output cannot be.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="at least one file")
    executor = LocalExecutor(thread_count() if threads is None else threads)
    kinds: tuple[TextKind, ...] = ("nt", "aa") if kind == "both" else (kind,)
    table = open_junctions(
        inputs, layout=layout, acids="nt" not in kinds, calls=calls, block_rows=_BLOCK_ROWS
    )
    run = _Run(table, GenerationProbability(model, threads=1), kinds, calls)
    statuses: dict[str, Counter[str]] = {name: Counter() for name in run.results if name.startswith("status")}
    with (
        table.reader as reader,
        open_table(output, run.schema, metadata=run.metadata(), inputs=inputs) as writer,
        closing(read_ahead(executor.map(run.block, reader))) as results,
    ):
        for batch in results:
            writer.write(batch)
            for name, counter in statuses.items():
                counter.update(batch[name].to_pylist())
            if progress is not None:
                progress(Progress(writer.rows, reader.bytes_read(), reader.total_bytes))
        rows = writer.rows
    return PgenFiles(
        output=Path(output),
        rows=rows,
        statuses={name: dict(counter.most_common()) for name, counter in statuses.items()},
        renamed=run.renamed,
    )


class _Run:
    """Everything that is fixed for one run."""

    def __init__(
        self,
        table: JunctionTable,
        engine: GenerationProbability,
        kinds: tuple[TextKind, ...],
        calls: GivenCalls,
    ) -> None:
        self._table = table
        self._engine = engine
        self._kinds = kinds
        self._calls = calls
        self.results = [name for kind in kinds for name in _COLUMNS[kind]]
        if len(kinds) > 1:
            self.results = ["pgen_nt", "pgen_aa", "status", "status_aa"]
        schema = table.reader.schema
        self.renamed = renamed_columns(schema.names, self.results)
        fields = [field.with_name(self.renamed.get(field.name, field.name)) for field in schema]
        for name in self.results:
            fields.append(pa.field(name, pa.string() if name.startswith("status") else pa.float64()))
        self.schema = pa.schema(fields)

    def metadata(self) -> dict[str, str]:
        used = [self._calls in ("both", segment) for segment in "vj"]
        provenance = [self._engine.provenance(kind, *used).as_dict() for kind in self._kinds]
        facts = {"provenance": provenance, "layout": self._table.reader.layout.name}
        return {f"plait.{name}": json.dumps(value, sort_keys=True) for name, value in facts.items()}

    def block(self, block: pa.RecordBatch) -> pa.RecordBatch:
        """The output rows of a block."""
        v, j = self._table.calls(block)
        found: dict[str, Pgen] = {}
        for kind in self._kinds:
            texts = self._table.nucleotides if kind == "nt" else self._table.amino_acids
            found[kind] = self._engine.compute(texts(block), v, j, kind=kind)
        columns: dict[str, Any] = {}
        for number, (each, pgen) in enumerate(found.items()):
            name, status = _COLUMNS[each]
            columns[name] = pa.array(pgen.pgen, mask=np.isnan(pgen.pgen))
            columns[status if number == 0 else f"{status}_{each}"] = _named(pgen)
        return pa.record_batch(
            [*block.columns, *(columns[name] for name in self.results)], schema=self.schema
        )


def _named(pgen: Pgen) -> pa.Array:
    return pa.array(PGEN_STATUSES, pa.string()).take(pa.array(pgen.status.astype(np.int32)))
