"""The most probable scenarios of the rows of files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.run.executor import Executor
from plait.run.local import LocalExecutor
from plait.run.rows import FinishedRun, Progress, RowRun, RowWork, run_rows
from plait.vdj.calls import BlamedCalls
from plait.vdj.model.gene_ends import GeneCalls, as_column, model_shapes
from plait.vdj.model.junction_tables import GivenCalls, JunctionColumns, JunctionTable, open_junctions
from plait.vdj.model.pgen import GenerationProbability
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.scenarios import ScenarioFinder, Scenarios
from plait.vdj.model.texts import EncodedTexts, encode_texts
from plait.vdj.model.zero_reasons import PGEN_STATUSES
from plait.vdj.reads.columns import edges_of
from plait.vdj.reads.junctions import text_array

_INT: Final = pa.int32()
#: What is found of a row: which one of its block, and a scenario.
_FOUND: Final = pa.schema(
    [
        ("row", _INT),
        ("status", pa.string()),
        ("pgen_nt", pa.float64()),
        ("scenario_rank", _INT),
        ("scenario_probability", pa.float64()),
        ("scenario_share", pa.float64()),
        ("v_call", pa.string()),
        ("d_call", pa.string()),
        ("j_call", pa.string()),
        *((f"{end}_deletion", _INT) for end in ("v_3", "d_5", "d_3", "j_5")),
        *((f"{end}_length", _INT) for end in ("p3v", "p5d", "p3d", "p5j", "n1", "n2")),
        ("n1", pa.string()),
        ("n2", pa.string()),
    ]
)
_ENDS: Final = (("v_3", "p3v", 3), ("d_5", "p5d", 4), ("d_3", "p3d", 5), ("j_5", "p5j", 6))


@dataclass(slots=True)
class ScenarioSummary:
    """Running totals. Sums of blocks, in their order.

    `blamed` has the calls behind statuses that blame a call. `best_share` and `listed_share` are sums, over
    rows that have scenarios, of the share of the generation probability that the best one has, and all that
    are listed.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    blamed: BlamedCalls = field(default_factory=BlamedCalls)
    scenarios: int = 0
    best_share: float = 0.0
    listed_share: float = 0.0

    @property
    def explained(self) -> int:
        """Rows that have scenarios."""
        return self.statuses["ok"]

    def merge(self, other: ScenarioSummary) -> None:
        """Add the totals of another block; `other` is left unchanged."""
        self.statuses.update(other.statuses)
        self.blamed.merge(other.blamed)
        self.scenarios += other.scenarios
        self.best_share += other.best_share
        self.listed_share += other.listed_share

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; statuses that did not occur are left out."""
        n = self.explained
        return {
            "statuses": dict(sorted(self.statuses.items(), key=lambda item: (-item[1], item[0]))),
            "blamed_calls": self.blamed.as_dict(),
            "scenarios": self.scenarios,
            "mean_best_share": self.best_share / n if n else None,
            "mean_listed_share": self.listed_share / n if n else None,
        }


@dataclass(frozen=True)
class BlockScenarios(RowWork[ScenarioSummary]):
    """Searches wherever it is called; result columns are those of `_FOUND`.

    `places` is what the columns of a block are; at most `best` scenarios of a row are found.
    """

    model: RecombinationModel
    places: JunctionColumns
    best: int

    @cached_property
    def _engine(self) -> GenerationProbability:
        return GenerationProbability(self.model, threads=1)

    @cached_property
    def _finder(self) -> ScenarioFinder:
        return ScenarioFinder(self.model)

    @cached_property
    def _calls(self) -> tuple[GeneCalls, GeneCalls]:
        shapes = model_shapes(self.model)
        return GeneCalls(self.model, "v", shapes.v), GeneCalls(self.model, "j", shapes.j)

    def provenance(self) -> dict[str, Any]:
        """How scenarios are found."""
        made = self._engine.provenance("nt", self.places.v >= 0, self.places.j >= 0).as_dict()
        return {**made, "parameters": {**made["parameters"], "best": self.best}}

    def result(self, columns: list[pa.Array]) -> tuple[pa.RecordBatch, str | None]:
        """Their scenarios."""
        calls = self.places.calls(columns)
        texts = as_column(self.places.texts(columns))
        v, j = calls.get("v"), calls.get("j")
        pgen = self._engine.compute(texts, v, j)
        encoded = encode_texts(texts, "nt")
        status = np.array(PGEN_STATUSES, object)[pgen.status]
        odd = np.concatenate([[0], np.cumsum(encoded.codes > 3)])
        ambiguous = odd[encoded.start + encoded.length] > odd[encoded.start]
        status[ambiguous & (status == "ok")] = "invalid_symbol"
        good = np.flatnonzero(status == "ok")
        v_genes, j_genes = (c.read(given, len(texts)) for c, given in zip(self._calls, (v, j), strict=True))
        found = self._finder.search(encoded, good, v_genes, j_genes, self.best)
        return self._batch(encoded, status, pgen.pgen, good, found), None

    def _batch(
        self,
        texts: EncodedTexts,
        status: NDArray[Any],
        pgen: NDArray[np.float64],
        good: NDArray[np.int64],
        found: Scenarios,
    ) -> pa.RecordBatch:
        others = np.flatnonzero(status != "ok")
        row = np.concatenate([good[found.row], others])
        order = np.argsort(row, kind="stable")
        row, known = row[order], order < found.row.size
        # Behind all scenarios one that is nothing, for rows without one.
        at = np.where(known, order, found.row.size)
        fields = np.append(found.fields, np.zeros((1, found.fields.shape[1]), np.int32), axis=0)[at]
        value, whole = np.append(found.probability, 0.0)[at], pgen[row]
        columns: dict[str, Any] = {
            "row": pa.array(row, _INT),
            "status": pa.array(status[row], pa.string()),
            "pgen_nt": pa.array(whole, mask=np.isnan(whole)),
            "scenario_rank": _whole(np.append(found.rank + 1, 0)[at], known),
            "scenario_probability": pa.array(value, mask=~known),
            "scenario_share": pa.array(value / np.where(known, whole, 1.0), mask=~known),
            **self._choices(fields, known),
        }
        of_d = known & bool(self.model.d)
        for name, first, end, there in (("n1", 7, 8, known), ("n2", 9, 10, of_d)):
            length = np.where(there, fields[:, end] - fields[:, first], 0)
            columns[f"{name}_length"] = _whole(length, there)
            columns[name] = _cut(texts, texts.start[row] + fields[:, first], length, there)
        return pa.record_batch([columns[name] for name in _FOUND.names], schema=_FOUND)

    def _choices(self, fields: NDArray[np.int32], known: NDArray[np.bool_]) -> dict[str, pa.Array]:
        """Genes and what is cut off them."""
        model, of_d = self.model, known & bool(self.model.d)
        columns = {}
        for name, genes, place in (("v", model.v, 0), ("d", model.d, 1), ("j", model.j, 2)):
            names = pa.array([gene.name for gene in genes], pa.string())
            columns[f"{name}_call"] = names.take(_whole(fields[:, place], of_d if name == "d" else known))
        for (end, short, place), most in zip(_ENDS, model.palindromes, strict=True):
            cut, there = fields[:, place] - most, of_d if end.startswith("d") else known
            columns[f"{end}_deletion"] = _whole(np.maximum(cut, 0), there)
            columns[f"{short}_length"] = _whole(np.maximum(-cut, 0), there)
        return columns

    def summary(self, columns: list[pa.Array], result: pa.RecordBatch) -> ScenarioSummary:
        """What came of the rows."""
        rank = result["scenario_rank"].to_numpy(zero_copy_only=False)
        share = result["scenario_share"].to_numpy(zero_copy_only=False)
        first = np.flatnonzero(~(rank > 1))
        status = result["status"].take(pa.array(first))
        summary = ScenarioSummary(
            scenarios=int((rank >= 1).sum()),
            best_share=float(share[rank == 1].sum()),
            listed_share=float(share[rank >= 1].sum()),
        )
        for entry in pc.value_counts(status).to_pylist():
            summary.statuses[entry["values"]] += entry["counts"]
        summary.blamed.add(status, self.places.calls(columns))
        return summary

    def facts(self, summary: ScenarioSummary) -> dict[str, Any]:
        """The totals."""
        return {"rows": sum(summary.statuses.values()), **summary.as_dict()}


def _whole(values: NDArray[Any], known: NDArray[np.bool_]) -> pa.Array:
    return pa.array(values.astype(np.int32), mask=~known)


_LETTERS: Final = np.frombuffer(b"ACGT", np.uint8)


def _cut(
    texts: EncodedTexts, first: NDArray[np.int64], length: NDArray[np.int64], known: NDArray[np.bool_]
) -> pa.Array:
    """Stretches of texts."""
    bounds = edges_of(length)
    at = np.repeat(first - bounds[:-1], length) + np.arange(bounds[-1])
    return text_array(_LETTERS[texts.codes[at]], bounds, known)


#: Scenarios in a block, about, and its rows.
_BLOCK_SCENARIOS: Final = 1 << 16
_MOST_ROWS: Final = 1 << 12
_MOST_BLOCKS: Final = 64


def scenario_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    model: RecombinationModel,
    *,
    best: int = 10,
    calls: GivenCalls = "ignore",
    layout: str = "airr",
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> FinishedRun[ScenarioSummary]:
    """Write the most probable scenarios of all rows of tables, one row per scenario.

    A row without any scenario is there once, with the reason in ``status``. Beside the table stands a
    summary, ``OUTPUT.summary.json``; while the run lasts, computed blocks are kept in ``OUTPUT.checkpoint``.

    Parameters
    ----------
    inputs, output, model, calls, layout, threads, executor, resume, progress
        As for `plait.vdj.model.pgen_files.pgen_files`.
    best
        Most scenarios of a row.

    Raises
    ------
    InvalidInput
        If there is no input, `best` is out of range, the output cannot be, or a run to resume differs.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="at least one file")
    if not 1 <= best <= _BLOCK_SCENARIOS:
        raise InvalidInput("best", found=best, expected=f"1 to {_BLOCK_SCENARIOS:,}")
    executor = executor or LocalExecutor(threads)
    rows = max(1, min(_MOST_ROWS, _BLOCK_SCENARIOS // best))
    table = open_junctions(
        inputs, layout=layout, acids=False, calls=calls, block_rows=rows, fewest_rows=min(rows, 256)
    )
    work = BlockScenarios(model, table.places, best)
    with table.reader as reader:
        run = RowRun(
            reader=reader,
            inputs=inputs,
            columns=table.columns,
            work=work,
            provenance=work.provenance(),
            rows=ScenarioRows(table),
            summary=ScenarioSummary(),
            output=output,
            most=_MOST_BLOCKS,
        )
        return run_rows(run, executor, resume=resume, progress=progress)


class ScenarioRows:
    """A row per scenario, behind the number of its input row, its name and its junction."""

    renamed = None

    def __init__(self, table: JunctionTable) -> None:
        self._table = table
        self._names = table.reader.roles.get("sequence_id")
        own = [("record", pa.int64()), ("sequence_id", pa.string()), ("junction", pa.string())]
        self.schema = pa.schema([*own, *list(_FOUND)[1:]])

    def batch(self, first: int, block: pa.RecordBatch, result: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a block, whose first one is number `first`."""
        row = result["row"]
        record = first + np.asarray(row, np.int64)
        names = pa.nulls(block.num_rows) if self._names is None else block[self._names]
        own = [pa.array(record), names.cast(pa.string()).take(row), self._table.nucleotides(block).take(row)]
        return pa.record_batch([*own, *result.columns[1:]], schema=self.schema)
