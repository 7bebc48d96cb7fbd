"""The most probable ways in which junctions were made, one by one, and tables of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.dp.chain.best import (
    SCENARIO_FIELDS,
    BestLists,
    Heap,
    InsertionWeights,
    ScenarioOutput,
    ScenarioQueries,
    ScenarioScratch,
    ScenarioTables,
    SegmentWeights,
    scenario_kernel,
)
from plait.dp.chain.graphs import taken
from plait.errors import InvalidInput
from plait.formats.layouts import AUTO, LayoutChoice
from plait.formats.tables import ONE_FILE, PartSettings
from plait.run.executor import Executor, LocalExecutor, Progress
from plait.run.rows import FinishedRun, RowRun, RowWork, chosen_columns, run_rows
from plait.vdj.calls import RowTotals, as_column
from plait.vdj.model.junctions import (
    EncodedTexts,
    GivenCalls,
    GivenGenes,
    JunctionColumns,
    JunctionEncoder,
    JunctionTable,
    choice_columns,
    int32_where,
    open_junctions,
)
from plait.vdj.model.pgen import PGEN_STATUSES, GenerationProbability
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel, packed_bases
from plait.vdj.reads.columns import edges_of, text_array

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
#: Scenarios that are searched for at a time, of all texts together.
_AT_A_TIME = 1 << 20
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to make a junction.

    Attributes
    ----------
    probability
        Of choosing all of this.
    v, d, j
        Indices of the genes; d is -1 in a chain without D.
    v_deletion, d5_deletion, d3_deletion, j_deletion
        Nucleotides taken away; below zero, P nucleotides that are kept.
    v_end, d_start, d_end, j_start
        Where the parts lie in the junction, 0-based, ends exclusive; N nucleotides are between.
    """

    probability: float
    v: int
    d: int
    j: int
    v_deletion: int
    d5_deletion: int
    d3_deletion: int
    j_deletion: int
    v_end: int
    d_start: int
    d_end: int
    j_start: int


@dataclass(frozen=True, slots=True)
class Scenarios:
    """The most probable scenarios of n junctions; all arrays have one entry for each scenario.

    `row` is the junction it makes, in order; `rank` is from 0, the most probable one. `fields` is (total,
    11), see `plait.dp.chain.best.SCENARIO_FIELDS`; deletions are numbered from the longest P extension.
    """

    row: _Ints
    rank: _Ints
    probability: _Floats
    fields: NDArray[np.int32]


class ScenarioFinder:
    """Finds the most probable scenarios of junctions.

    Parameters
    ----------
    model
        The model.
    """

    def __init__(self, model: RecombinationModel) -> None:
        self.model = model
        self._tables = _tables(model)

    def best(
        self,
        junction: str,
        count: int = 10,
        *,
        v: Sequence[int] | None = None,
        j: Sequence[int] | None = None,
    ) -> list[Scenario]:
        """The most probable scenarios of one junction, the best first.

        Parameters
        ----------
        junction
            From the conserved Cys to the conserved Phe or Trp: A, C, G and T.
        count
            How many, at most.
        v, j
            Indices of genes that it may be made with; by default all functional ones.

        Raises
        ------
        InvalidInput
            If the junction has other letters, or `count` is out of range.
        """
        if set(junction) - set("ACGT"):
            raise InvalidInput("junction", found=repr(junction), expected="A, C, G and T")
        codes = np.array(["ACGT".index(letter) for letter in junction], np.uint8)
        lists = [
            self._functional(self.model.v) if v is None else v,
            self._functional(self.model.j) if j is None else j,
        ]
        v_list, j_list = (np.array(genes, np.int32) for genes in lists)
        queries = ScenarioQueries(
            codes,
            np.array([0]),
            np.array([codes.size]),
            np.array([0, v_list.size]),
            v_list,
            np.array([0, j_list.size]),
            j_list,
        )
        found = self._search(queries, count)
        return [
            self._scenario(value, fields)
            for value, fields in zip(found.probability.tolist(), found.fields.tolist(), strict=True)
        ]

    def search(
        self, texts: EncodedTexts, rows: _Ints, v: GivenGenes, j: GivenGenes, count: int = 10
    ) -> Scenarios:
        """The most probable scenarios of many junctions.

        Parameters
        ----------
        texts
            A column of nucleotide sequences.
        rows
            Which ones; they have no ambiguous letters.
        v, j
            The genes that each row of the column may be made of.
        count
            How many of each, at most.

        Returns
        -------
        Scenarios
            ``row`` counts `rows`.

        Raises
        ------
        InvalidInput
            If `count` is out of range.
        """
        (v_first, v_list), (j_first, j_list) = (_spread(given, rows) for given in (v, j))
        queries = ScenarioQueries(
            texts.codes, texts.start[rows], texts.length[rows], v_first, v_list, j_first, j_list
        )
        return self._search(queries, count)

    def _search(self, queries: ScenarioQueries, count: int) -> Scenarios:
        if not 1 <= count <= _MOST:
            raise InvalidInput("count", found=count, expected=f"1 to {_MOST:,}")
        n = queries.length.size
        scratch = _scratch(self._tables, int(queries.length.max(initial=0)), count)
        step = max(1, _AT_A_TIME // count)
        out = ScenarioOutput(
            np.zeros(min(step, n), np.int64),
            np.zeros((min(step, n), count)),
            np.zeros((min(step, n), count, len(SCENARIO_FIELDS)), np.int32),
        )
        parts = []
        for first in range(0, n, step):
            last = min(first + step, n)
            some = queries._replace(
                start=queries.start[first:last],
                length=queries.length[first:last],
                v_first=queries.v_first[first : last + 1],
                j_first=queries.j_first[first : last + 1],
            )
            scenario_kernel(self._tables, some, 0, last - first, scratch, out)
            there = np.arange(count) < out.count[: last - first, None]
            row, rank = np.nonzero(there)
            values, fields = out.value[: last - first], out.fields[: last - first]
            parts.append(Scenarios(first + row, rank, values[there], fields[there]))
        if not parts:
            nothing = np.zeros(0, np.int64)
            return Scenarios(nothing, nothing, np.zeros(0), np.zeros((0, len(SCENARIO_FIELDS)), np.int32))
        joined = [
            [getattr(part, name) for part in parts] for name in ("row", "rank", "probability", "fields")
        ]
        return Scenarios(*(np.concatenate(pieces) for pieces in joined))

    def _functional(self, genes: Sequence[ModelGene]) -> list[int]:
        return [k for k, gene in enumerate(genes) if gene.functional]

    def _scenario(self, probability: float, fields: Sequence[int]) -> Scenario:
        v, d, j, *cuts, v_end, d_start, d_end, j_start = fields
        deletions = [cut - most for cut, most in zip(cuts, self.model.palindromes, strict=True)]
        if d < 0:
            deletions[1:3] = 0, 0
        return Scenario(probability, *(v, d, j, *deletions, v_end, d_start, d_end, j_start))


def _tables(model: RecombinationModel) -> ScenarioTables:
    return ScenarioTables(
        v=_segment(model.extended_all("V"), model.p_v[:, None] * model.p_v_deletions),
        d=_segment(model.extended_all("D"), model.p_d_deletions),
        j=_segment([text[::-1] for text in model.extended_all("J")], model.p_j_deletions),
        joint=np.ascontiguousarray(model.p_dj),
        left=InsertionWeights(
            np.ascontiguousarray(model.p_vd_length), model.vd_first, np.ascontiguousarray(model.vd_steps)
        ),
        right=InsertionWeights(
            np.ascontiguousarray(model.p_dj_length), model.dj_first, np.ascontiguousarray(model.dj_steps)
        ),
    )


def _segment(genes: Sequence[str], weight: _Floats) -> SegmentWeights:
    return SegmentWeights(*packed_bases(genes), np.ascontiguousarray(weight))


def _scratch(tables: ScenarioTables, longest: int, count: int) -> ScenarioScratch:
    """Memory for junctions of up to `longest` bases."""
    places = longest + 1 if tables.d.first.size > 1 else 1
    begins = places * tables.joint.shape[1]
    (v, v_cuts), (j, j_cuts) = tables.v.weight.shape, tables.j.weight.shape
    ends, starts = _lists(places, min(count, v)), _lists(begins, min(count, j))
    left, right = _lists(places, min(count, v * v_cuts)), _lists(begins, min(count, j * j_cuts))
    heap = Heap(np.zeros(count), np.zeros(count, np.int64), np.zeros((count, 6), np.int32))
    inserted = np.zeros((2, longest + 1, longest + 1))
    return ScenarioScratch(inserted[0], inserted[1], ends, starts, left, right, heap)


def _lists(number: int, most: int) -> BestLists:
    return BestLists(
        np.zeros(number, np.int64), np.zeros((number, most)), np.zeros((number, most, 2), np.int32)
    )


def _spread(given: GivenGenes, rows: _Ints) -> tuple[_Ints, NDArray[np.int32]]:
    """Genes of the given rows, one list after the other: where each begins, and the genes."""
    edges = edges_of(np.array([len(genes) for genes in given.genes], np.int64))
    return taken(edges, np.array(list(chain.from_iterable(given.genes)), np.int32), given.codes[rows])


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


@dataclass
class ScenarioSummary(RowTotals):
    """Running totals. Sums of blocks, in their order.

    `best_share` and `listed_share` are sums, over
    rows that have scenarios, of the share of the generation probability that the best one has, and all that
    are listed.
    """

    scenarios: int = 0
    best_share: float = 0.0
    listed_share: float = 0.0

    @property
    def explained(self) -> int:
        """Rows that have scenarios."""
        return self.statuses["ok"]

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; statuses that did not occur are left out."""
        n = self.explained
        return {
            **super().as_dict(),
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
    def _encoder(self) -> JunctionEncoder:
        return JunctionEncoder(self.model, missing="refused")

    def provenance(self) -> dict[str, Any]:
        """How scenarios are found."""
        made = self._engine.provenance("nt", self.places.v >= 0, self.places.j >= 0).as_dict()
        return {**made, "parameters": {**made["parameters"], "best": self.best}}

    def result(self, columns: list[pa.Array]) -> tuple[pa.RecordBatch, str | None]:
        """Their scenarios."""
        calls = self.places.calls(columns)
        given = as_column(self.places.texts(columns)), calls.get("v"), calls.get("j")
        pgen = self._engine.compute(*given)
        encoded, v_genes, j_genes = self._encoder.columns(*given)
        status = np.array(PGEN_STATUSES, object)[pgen.status]
        odd = np.concatenate([[0], np.cumsum(encoded.codes > 3)])
        ambiguous = odd[encoded.start + encoded.length] > odd[encoded.start]
        status[ambiguous & (status == "ok")] = "invalid_symbol"
        good = np.flatnonzero(status == "ok")
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
            "scenario_rank": int32_where(np.append(found.rank + 1, 0)[at], known),
            "scenario_probability": pa.array(value, mask=~known),
            "scenario_share": pa.array(value / np.where(known, whole, 1.0), mask=~known),
            **choice_columns(self.model, fields, known),
        }
        of_d = known & bool(self.model.d)
        for name, first, end, there in (("n1", 7, 8, known), ("n2", 9, 10, of_d)):
            length = np.where(there, fields[:, end] - fields[:, first], 0)
            columns[f"{name}_length"] = int32_where(length, there)
            columns[name] = _cut(texts, texts.start[row] + fields[:, first], length, there)
        return pa.record_batch([columns[name] for name in _FOUND.names], schema=_FOUND)

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
        summary.add_statuses(status, self.places.calls(columns))
        return summary

    def facts(self, summary: ScenarioSummary) -> dict[str, Any]:
        """The totals."""
        return {"rows": summary.rows, **summary.as_dict()}


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
    layout: LayoutChoice = AUTO,
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    parts: PartSettings = ONE_FILE,
    columns: Sequence[str] | None = None,
) -> FinishedRun[ScenarioSummary]:
    """Write the most probable scenarios of all rows of tables, one row per scenario.

    A row without any scenario is there once, with the reason in ``status``. Beside the table stands a
    summary, ``OUTPUT.summary.json``; while the run lasts, computed blocks are kept in ``OUTPUT.checkpoint``.

    Parameters
    ----------
    inputs, output, model, calls, layout, threads, executor, resume, progress, parts
        As for `plait.vdj.model.pgen.pgen_files`.
    best
        Most scenarios of a row.
    columns
        The columns to write, in this order; all by default.

    Raises
    ------
    InvalidInput
        If there is no input, `best` is out of range, the output cannot be, or a run to resume differs.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    if not 1 <= best <= _BLOCK_SCENARIOS:
        raise InvalidInput("best", found=best, expected=f"1 to {_BLOCK_SCENARIOS:,}")
    executor = executor or LocalExecutor(threads)
    rows = max(1, min(_MOST_ROWS, _BLOCK_SCENARIOS // best))
    table = open_junctions(
        inputs, layout=layout, acids=False, calls=calls, block_rows=rows, fewest_rows=min(rows, 256)
    )
    work = BlockScenarios(model, table.places, best)
    with table.reader as reader:
        written = ScenarioRows(table, columns)
        reader.read_only({*table.columns, *written.inputs})
        run = RowRun(
            reader=reader,
            inputs=inputs,
            columns=table.columns,
            work=work,
            provenance=work.provenance(),
            rows=written,
            summary=ScenarioSummary(),
            output=output,
            parts=parts,
            most=_MOST_BLOCKS,
        )
        return run_rows(run, executor, resume=resume, progress=progress)


class ScenarioRows:
    """A row per scenario, behind the number of its input row, its name and its junction."""

    renamed = None
    result = None

    def __init__(self, table: JunctionTable, names: Sequence[str] | None) -> None:
        self._columns, self._places = table.columns, table.places
        self._names = table.reader.roles.get("sequence_id")
        self.inputs = [] if self._names is None else [self._names]
        own = [("record", pa.int64()), ("sequence_id", pa.string()), ("junction", pa.string())]
        self.schema = chosen_columns(pa.schema([*own, *list(_FOUND)[1:]]), names)

    def batch(self, first: int, block: pa.RecordBatch, result: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a block, whose first one is number `first`."""
        row = result["row"]
        record = first + np.asarray(row, np.int64)
        names = pa.nulls(block.num_rows) if self._names is None else block[self._names]
        junctions = self._places.texts(block.select(self._columns).columns)
        found = dict(zip(result.schema.names, result.columns, strict=True)) | {
            "record": pa.array(record),
            "sequence_id": names.cast(pa.string()).take(row),
            "junction": junctions.take(row),
        }
        return pa.record_batch([found[name] for name in self.schema.names], schema=self.schema)
