"""The most probable scenarios of the rows of files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from plait.errors import InvalidInput
from plait.executors.local import LocalExecutor
from plait.formats.blocks import read_ahead
from plait.formats.tables import open_table
from plait.settings import thread_count
from plait.vdj.model.junction_tables import GivenCalls, JunctionTable, open_junctions
from plait.vdj.model.pgen import GenerationProbability
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.scenarios import Scenario, ScenarioFinder
from plait.vdj.model.zero_reasons import PGEN_STATUSES
from plait.vdj.progress import Progress

__all__ = ["ScenarioFiles", "scenario_files"]

_BLOCK_ROWS: Final = 512
_SCHEMA: Final = pa.schema(
    [
        ("record", pa.int64()),
        ("sequence_id", pa.string()),
        ("junction", pa.string()),
        ("status", pa.string()),
        ("pgen_nt", pa.float64()),
        ("scenario_rank", pa.int32()),
        ("scenario_probability", pa.float64()),
        ("scenario_share", pa.float64()),
        ("v_call", pa.string()),
        ("d_call", pa.string()),
        ("j_call", pa.string()),
        *((f"{end}_deletion", pa.int32()) for end in ("v_3", "d_5", "d_3", "j_5")),
        *((f"{end}_length", pa.int32()) for end in ("p3v", "p5d", "p3d", "p5j", "n1", "n2")),
        ("n1", pa.string()),
        ("n2", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFiles:
    """A finished run.

    Attributes
    ----------
    output
        The table.
    rows
        Rows of the inputs.
    explained
        Those that have a scenario.
    scenarios
        Rows of the table that are scenarios.
    """

    output: Path
    rows: int
    explained: int
    scenarios: int


def scenario_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    model: RecombinationModel,
    *,
    best: int = 10,
    calls: GivenCalls = "both",
    layout: str = "airr",
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> ScenarioFiles:
    """Write the most probable scenarios of all rows of tables, one row per scenario.

    A row without any scenario is there once, with the reason in ``status``.

    Parameters
    ----------
    inputs
        AIRR Rearrangement tables (TSV, plain or compressed, or Parquet), or of another `layout`.
    output
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``.
    model
        The model.
    best
        Most scenarios of a row.
    calls
        Which calls are taken for what a row was made of.
    layout
        Column layout of the inputs.
    threads
        Blocks worked on at a time; the output does not depend on it.
    progress
        Called after every block.

    Raises
    ------
    InvalidInput
        If there is no input, `best` is less than 1, or the output cannot be.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="at least one file")
    if best < 1:
        raise InvalidInput("best", found=best, expected="at least 1")
    executor = LocalExecutor(thread_count() if threads is None else threads)
    table = open_junctions(inputs, layout=layout, acids=False, calls=calls, block_rows=_BLOCK_ROWS)
    run = _Run(table, model, best)
    used = [calls in ("both", segment) for segment in "vj"]
    facts = {"provenance": run.engine.provenance("nt", *used).as_dict(), "best": best}
    metadata = {f"plait.{name}": json.dumps(value, sort_keys=True) for name, value in facts.items()}
    rows = explained = scenarios = 0
    with (
        table.reader as reader,
        open_table(output, _SCHEMA, metadata=metadata, inputs=inputs) as writer,
        closing(read_ahead(executor.map(run.block, enumerate(reader)))) as results,
    ):
        for count, batch in results:
            writer.write(batch)
            ranks = batch["scenario_rank"].to_numpy(zero_copy_only=False)
            rows, explained = rows + count, explained + int((ranks == 1).sum())
            scenarios += batch.num_rows - int(batch["scenario_rank"].null_count)
            if progress is not None:
                progress(Progress(rows, reader.bytes_read(), reader.total_bytes))
    return ScenarioFiles(output=Path(output), rows=rows, explained=explained, scenarios=scenarios)


class _Run:
    """Everything that is fixed for one run."""

    def __init__(self, table: JunctionTable, model: RecombinationModel, best: int) -> None:
        self._table = table
        self._model = model
        self._best = best
        self._finder = ScenarioFinder(model)
        self.engine = GenerationProbability(model, threads=1)

    def block(self, numbered: tuple[int, pa.RecordBatch]) -> tuple[int, pa.RecordBatch]:
        """Rows of a block, and its scenarios."""
        number, block = numbered
        rows = list(self._rows(number * self._table.reader.block_rows, block))
        columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in _SCHEMA]
        return block.num_rows, pa.record_batch(columns, schema=_SCHEMA)

    def _rows(self, first: int, block: pa.RecordBatch) -> Generator[dict[str, Any], None, None]:
        texts, (v, j) = self._table.nucleotides(block), self._table.calls(block)
        pgen = self.engine.compute(texts, v, j)
        name = self._table.reader.roles.get("sequence_id")
        names = block[name].cast(pa.string()).to_pylist() if name else [None] * block.num_rows
        chosen = [self.engine.genes_of("v", v), self.engine.genes_of("j", j)]
        for k, text in enumerate(texts.to_pylist()):
            whole = float(pgen.pgen[k])
            row = {"record": first + k, "sequence_id": names[k], "junction": text}
            row |= {"status": PGEN_STATUSES[pgen.status[k]], "pgen_nt": None if np.isnan(whole) else whole}
            if not whole > 0:
                yield row
                continue
            if set(text.upper()) - set("ACGT"):
                yield row | {"status": "invalid_symbol"}
                continue
            genes = [found(k) for found in chosen]
            best = self._finder.best(text.upper(), self._best, v=genes[0], j=genes[1])
            for rank, scenario in enumerate(best, 1):
                told = self._told(scenario, text.upper())
                yield row | told | {"scenario_rank": rank, "scenario_share": scenario.probability / whole}

    def _told(self, scenario: Scenario, text: str) -> dict[str, Any]:
        model = self._model
        cuts = (scenario.v_deletion, scenario.d5_deletion, scenario.d3_deletion, scenario.j_deletion)
        found: dict[str, Any] = {
            "scenario_probability": scenario.probability,
            "v_call": model.v[scenario.v].name,
            "d_call": model.d[scenario.d].name if scenario.d >= 0 else None,
            "j_call": model.j[scenario.j].name,
            "n1": text[scenario.v_end : scenario.d_start],
            "n2": text[scenario.d_end : scenario.j_start],
        }
        found |= {"n1_length": len(found["n1"]), "n2_length": len(found["n2"])}
        deletions = ("v_3_deletion", "d_5_deletion", "d_3_deletion", "j_5_deletion")
        for cut, deletion, length in zip(cuts, deletions, ("p3v", "p5d", "p3d", "p5j"), strict=True):
            found[deletion], found[f"{length}_length"] = max(cut, 0), max(-cut, 0)
        if scenario.d < 0:
            for name in ("d_5_deletion", "d_3_deletion", "p5d_length", "p3d_length", "n2_length", "n2"):
                found[name] = None
        return found
