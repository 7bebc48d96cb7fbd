"""Count whole files: streamed in blocks, several at a time, resumable, in constant memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.layouts import AUTO, LayoutChoice
from plait.formats.rearrangements import MOST_BYTES, open_rearrangements
from plait.formats.sheets import SampleSheet
from plait.formats.tables import ONE_FILE, PartSettings
from plait.run.executor import Executor, LocalExecutor, Progress
from plait.run.rows import (
    AddedColumns,
    FinishedRun,
    RowRun,
    RowWork,
    WorkedBlock,
    asked_where_done,
    rows_per_block,
    run_rows,
)
from plait.types import Provenance
from plait.vdj.airr import RearrangementRows
from plait.vdj.calls import (
    ANY_IDENTITY,
    STATUSES,
    CauseFinder,
    IdentityLimit,
    RowTotals,
    TableCauses,
    cause_sentences,
    ends_of,
    explained,
    first_gene,
    foreign_sentences,
    looked_up,
    those,
)
from plait.vdj.counting import TOTALLED, PathCounter, PathCounts, PathTotals, ResultColumns
from plait.vdj.germline import GermlineSet

_OVERFLOW = STATUSES.index("count_overflow")
#: A gene with this share of zero counts or more, over at least `_FEWEST` rows, is reported.
_SUSPICIOUS = 0.5
_FEWEST = 20


@dataclass(frozen=True, slots=True)
class GeneZeros:
    """Counted rows with one gene, and those among them whose path count is zero."""

    rows: int
    zeros: int

    @property
    def share(self) -> float:
        """Share of zero counts."""
        return self.zeros / self.rows if self.rows else 0.0


@dataclass
class CountSummary(RowTotals):
    """Running totals of a counting run. Sums of blocks, in any order."""

    causes: TableCauses = field(default_factory=TableCauses)
    #: By segment and gene.
    _rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    _zeros: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(
        self, result: pa.RecordBatch, calls: Mapping[str, pa.Array]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Add a block: its result columns, and the V (``"v"``) and J calls (``"j"``) as they were given.

        Returns which rows are counted, and which of these have count 0.
        """
        self.add_statuses(result["status"], calls)
        counted: NDArray[np.bool_] = pc.equal(result["status"], "ok").to_numpy(zero_copy_only=False)
        zero = counted & ~_above_zero(result)
        for segment, column in calls.items():
            for rows, totals in ((counted, self._rows), (zero, self._zeros)):
                for entry in pc.value_counts(those(column, rows)).to_pylist():
                    totals[segment, first_gene(entry["values"])] += entry["counts"]
        return counted, zero

    @property
    def counted(self) -> int:
        """Rows with counts."""
        return self.statuses["ok"]

    @property
    def zeros(self) -> int:
        """Counted rows whose path count is zero."""
        return sum(n for (segment, _), n in self._zeros.items() if segment == "v")

    def genes(self, segment: str) -> dict[str, GeneZeros]:
        """Zero counts per gene of segment ``"v"`` or ``"j"``, the most frequent gene first."""
        rows = sorted(self._rows.items(), key=lambda item: (-item[1], item[0]))
        return {gene: GeneZeros(n, self._zeros[own, gene]) for (own, gene), n in rows if own == segment}

    def suspicious(self) -> list[str]:
        """Genes that are so often zero that their anchor or allele is probably wrong.

        Where most of the table is zero, only those that are zero far more often than the other genes; none
        where something else explains the zeros.
        """
        return [] if self.whole_table_explained else self._often_zero()

    @property
    def whole_table_explained(self) -> bool:
        """Whether what concerns the whole table explains most zeros."""
        return explained(self.causes, self.zeros, self.counted, self._concentrated())

    def _concentrated(self) -> bool:
        """Whether most zeros are of few genes of V, or of J, while most of the table has none."""
        often = self._often_zero()
        most = max(sum(self._zeros[segment, gene] for gene in often) for segment in "vj")
        return 4 * self.zeros <= 3 * self.counted and 2 * most >= self.zeros > 0

    def _often_zero(self) -> list[str]:
        return [
            gene
            for segment in "vj"
            for gene, found in self.genes(segment).items()
            if found.rows >= _FEWEST and found.share >= _SUSPICIOUS and self._stands_out(found)
        ]

    def _stands_out(self, found: GeneZeros) -> bool:
        others = GeneZeros(self.counted - found.rows, self.zeros - found.zeros)
        return 2 * self.zeros < self.counted or 2 * others.share <= found.share

    def remarks(self, germline: GermlineSet) -> list[str]:
        """What is to be said of the table as a whole: foreign genes, and causes of zeros."""
        own = f"germline set {germline.name}"
        unknown = {segment: self.blamed.of(f"unknown_{segment}_call") for segment in "vj"}
        called = self.rows - self.statuses["missing_v_call"]
        genes = {allele.gene for allele in germline.alleles()}
        return [
            *foreign_sentences(unknown, called, locus=germline.locus, own=own, genes=genes),
            *cause_sentences(
                self.causes,
                self.zeros,
                self.counted,
                what="path count",
                own=own,
                concentrated=self._concentrated(),
            ),
        ]

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> CountSummary:
        """What `as_dict` told, as far as `remarks` and totals need it."""
        found = cls(statuses=Counter({str(name): int(n) for name, n in facts["statuses"].items()}))
        found.causes = TableCauses.from_dict(facts["zero_causes"])
        for status, names in facts["blamed_calls"].items():
            found.blamed.blame(status, names)
        for segment in "vj":
            for gene, zeros in facts[f"zero_counts_by_{segment}_gene"].items():
                found._rows[segment, gene] += int(zeros["rows"])
                found._zeros[segment, gene] += int(zeros["zeros"])
        return found

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; statuses that did not occur are left out."""
        zeros = {
            f"zero_counts_by_{segment}_gene": {
                gene: {"rows": z.rows, "zeros": z.zeros, "share": z.share}
                for gene, z in self.genes(segment).items()
            }
            for segment in "vj"
        }
        return {
            **super().as_dict(),
            "rows": self.rows,
            "statuses": {name: self.statuses[name] for name in STATUSES if self.statuses[name]},
            "zero_counts": self.zeros,
            "zero_causes": self.causes.as_dict(),
            "suspicious_genes": self.suspicious(),
            **zeros,
        }


#: What a count depends on: the columns of a block that is counted, in this order.
COUNTED_ROLES = ("junction", "v_call", "j_call")


class CountPlan(NamedTuple):
    """How the rows of files are counted by `counter` where that is done; `on_gpu`: large batches on GPUs."""

    counter: PathCounter
    provenance: Provenance
    on_gpu: bool


def plan_on(executor: Executor, counter: PathCounter) -> CountPlan:
    """How a counter counts on the workers of an executor: what this machine has may be something else."""
    provenance, on_gpu = asked_where_done(executor, attrgetter("provenance", "on_gpu"), counter)
    return CountPlan(counter, provenance, on_gpu)


@dataclass(frozen=True)
class BlockCounter(RowWork[CountSummary]):
    """Counts rows on whatever machine it is called."""

    counter: PathCounter
    identity: IdentityLimit = ANY_IDENTITY
    #: Those of the result columns that are made.
    names: tuple[str, ...] | None = None

    def __call__(self, rows: pa.RecordBatch) -> WorkedBlock[CountSummary]:
        """Work on a block, whose calls are looked up once."""
        junction, v, j, *others = rows.columns
        columns = [junction, looked_up(v), looked_up(j), *others]
        result, device = self.result(columns)
        return WorkedBlock(result, self.summary(columns, result), device)

    def result(self, columns: list[pa.Array]) -> tuple[pa.RecordBatch, str | None]:
        """Their counts."""
        counts: PathCounts | PathTotals | None = None
        if self.counter.totals_are_enough and {*self.columns.schema.names} <= TOTALLED:
            counts = self.counter.totals(*columns[:3])
        # A total of one model that does not fit leaves those of the others.
        if counts is None or _OVERFLOW in counts.status:
            if len(columns[0]) > self.most:
                return self._in_pieces(columns)
            counts = self.counter.count(*columns[:3])
        self.identity.mark(counts.status, columns)
        return self.columns.batch(counts), counts.provenance.device

    def _in_pieces(self, columns: list[pa.Array]) -> tuple[pa.RecordBatch, str | None]:
        firsts = range(0, len(columns[0]), self.most)
        found = [self.result([column.slice(first, self.most) for column in columns]) for first in firsts]
        return pa.concat_batches([batch for batch, _ in found]), found[0][1]

    @cached_property
    def most(self) -> int:
        """Rows to count at a time: what is not written takes memory, too."""
        width = _row_bytes(self.counter.columns, self.counter.overflow, False, 0)
        return rows_per_block(width // _TIMES_ON_GPU, _FEWEST_ROWS, _TIMES_ON_GPU * _MOST_ROWS)

    def summary(self, columns: list[pa.Array], result: pa.RecordBatch) -> CountSummary:
        """Statuses, zeros by gene, and what explains zeros."""
        junction, v, j = columns[:3]
        summary = CountSummary()
        counted, zero = summary.add(result, {"v": v, "j": j})
        if self.counter.model.name == "exhaustive":
            # A second a row is not rare.
            return summary

        def possible(
            counter: PathCounter, texts: Sequence[str], rows: NDArray[np.int64]
        ) -> NDArray[np.bool_]:
            at = pa.array(rows)
            counts = counter.count(pa.array(texts, junction.type), v.take(at), j.take(at))
            return _above_zero(counter.columns.batch(counts))

        own, wider = self.counter, self.counter.at_default_limits
        summary.causes = self._causes.causes(
            junction,
            counted,
            zero,
            partial(possible, own),
            None if wider is None else partial(possible, wider),
        )
        return summary

    def facts(self, summary: CountSummary) -> dict[str, Any]:
        """The totals, and what is to be said of the table as a whole."""
        return {**summary.as_dict(), "remarks": summary.remarks(self.counter.germline)}

    @cached_property
    def columns(self) -> ResultColumns:
        """The result columns."""
        columns = self.counter.columns
        return columns if self.names is None else columns.only(self.names)

    @cached_property
    def _causes(self) -> CauseFinder:
        germline, model = self.counter.germline, self.counter.model
        ends = ends_of([a.cdr3_end for a in germline.v], [a.cdr3_end for a in germline.j])
        longest = max((len(d.sequence) for d in germline.d), default=0) if self.counter.chain != "vj" else 0
        if model.name != "dp2":
            most = model.max_n + longest
        else:
            limits = [model.nu if one is None else one for one in (model.nu_vd, model.nu_dj)]
            most = sum(limits) + longest if longest else max(limits)
        return CauseFinder(ends, most, {a.gene for a in germline.v})


def _above_zero(result: pa.RecordBatch) -> NDArray[np.bool_]:
    # Not to be exact: counts above 2^53 only have to stay different from zero.
    counts = result["path_count"].cast(pa.float64(), safe=False)
    found: NDArray[np.bool_] = pc.fill_null(pc.greater(counts, 0.0), False).to_numpy(zero_copy_only=False)
    return found


_ZERO_D = {
    "path_count_by_d": "path_count_zero_d_by_d",
    "path_count_sweep_by_d": "path_count_zero_d_sweep_by_d",
}
_AXIS_COLUMNS = {"d_allele": pa.string(), "pi": pa.int32(), "nu": pa.int32(), "n": pa.int32()}


def _counted(columns: ResultColumns) -> list[str]:
    """The list columns that become rows: the sweep's where there is a sweep."""
    names = [name for name in columns.axes if name not in _ZERO_D.values()]
    finest = [name for name in names if "_sweep" in name or "_by_n" in name]
    return finest or names


def long_schema(columns: ResultColumns) -> pa.Schema:
    """Columns of tidy rows: record (0-based input row), status, the axes, and the counts.

    Rows without D allele are the paths without a D gene. A pair of D alleles is written ``first+second``.
    Rows that have no counts are there once, with nulls.
    """
    axes = {axis for name in _counted(columns) for axis, _ in columns.axes[name]}
    axes = {"d_allele" if axis == "d_allele_pair" else axis for axis in axes} | {"d_allele"}
    if "n" not in axes:
        axes |= {"pi", "nu"}
    number = columns.schema.field("path_count").type
    fields = [pa.field("record", pa.int64()), pa.field("status", pa.string())]
    fields += [pa.field(name, kind) for name, kind in _AXIS_COLUMNS.items() if name in axes]
    fields.append(pa.field("path_count", number))
    if any(name in _ZERO_D for name in _counted(columns)):
        fields.append(pa.field("path_count_zero_d", number))
    return pa.schema(fields)


def items_per_row(columns: ResultColumns) -> int:
    """Most tidy rows that one input row can become."""
    return 1 + sum(int(columns.schema.field(name).type.list_size) for name in _counted(columns))


class LongRows(AddedColumns):
    """The columns of an input behind which stand those of `long_schema`, in tidy rows."""

    def __init__(self, given: pa.Schema, columns: ResultColumns) -> None:
        super().__init__(given, long_schema(columns))
        self.result = None
        self._columns = columns

    def columns(self, first: int, block: pa.RecordBatch, result: pa.RecordBatch) -> dict[str, pa.Array]:
        """The tidy rows of a block, whose first row is number `first`."""
        row, found = _long_rows(result, self._columns)
        tidy = pa.record_batch({"record": pa.array(row + first, pa.int64()), **found})
        given = {name: block[name].take(pa.array(row)) for name in self.inputs}
        return super().columns(first, pa.record_batch(given), tidy)


def _long_rows(
    result: pa.RecordBatch, columns: ResultColumns
) -> tuple[NDArray[np.int64], dict[str, pa.Array]]:
    """What row each tidy row is of, and the columns of `long_schema` behind its number."""
    number = columns.schema.field("path_count").type
    sources: list[pa.Array] = []
    items: list[dict[str, Any]] = []
    places, zero_places, offset = [], [], 0
    n = result.num_rows
    labels = _labels(columns)
    wanted = [(name, _ZERO_D.get(name), labels[name]) for name in _counted(columns)]
    if not any(name.startswith("path_count_no_d") for name, _, _ in wanted):
        wanted.append(("path_count_no_d", None, labels["path_count_no_d"]))
    sentinel = sum(len(found) * n * (1 if zero is None else 2) for _, zero, found in wanted)
    for name, zero, found in wanted:
        items += found
        grid = offset + np.arange(n * len(found)).reshape(n, -1)
        places.append(grid)
        sources.append(_flat(result[name]))
        offset += grid.size
        if zero is None:
            zero_places.append(np.full_like(grid, sentinel))
        else:
            zero_places.append(grid + grid.size)
            sources.append(_flat(result[zero]))
            offset += grid.size
    pool = pa.concat_arrays([*sources, pa.nulls(1, number)])
    place = np.concatenate(places, axis=1)
    kept = np.asarray(pool.is_valid())[place]
    alone = ~kept.any(axis=1, keepdims=True)
    kept = np.concatenate([kept, alone], axis=1)
    row, item = np.nonzero(kept)
    filler = np.full((n, 1), sentinel)
    value = np.concatenate([place, filler], axis=1)[row, item]
    zero_value = np.concatenate([*zero_places, filler], axis=1)[row, item]
    items.append({})
    found_columns: dict[str, pa.Array] = {
        "status": result["status"].take(pa.array(row)),
        "path_count": pool.take(pa.array(value)),
        "path_count_zero_d": pool.take(pa.array(zero_value)),
    }
    for axis, kind in _AXIS_COLUMNS.items():
        found_columns[axis] = pa.array([i.get(axis) for i in items], kind).take(pa.array(item))
    return row, found_columns


def _flat(column: pa.Array) -> pa.Array:
    return column.flatten() if pa.types.is_fixed_size_list(column.type) else column


def _labels(columns: ResultColumns) -> dict[str, list[dict[str, Any]]]:
    """For every counted column, the axis values of each list item."""
    base = {"pi": columns.model.pi, "nu": columns.model.nu}
    found: dict[str, list[dict[str, Any]]] = {"path_count_no_d": [base]}
    for name in _counted(columns):
        axes = [
            ("d_allele" if axis == "d_allele_pair" else axis, values) for axis, values in columns.axes[name]
        ]
        default = {} if any(axis == "n" for axis, _ in axes) else base
        found[name] = [
            {**default, **dict(zip((axis for axis, _ in axes), point, strict=True))}
            for point in product(*(values for _, values in axes))
        ]
    return found


#: Rows per block: a row group of the output and the unit of work, of threads and of resuming.
_MOST_ROWS = 65536
_FEWEST_ROWS = 256
#: Blocks worked on at a time, so that many processors do not take much memory.
_MOST_BLOCKS = 16
#: How many times as many rows a block has where a GPU counts: what Python does for each costs more than rows.
_TIMES_ON_GPU = 4
#: The same for enumeration on a GPU: while it works on one, the next one is made.
_MOST_ENUMERATED = 2
#: A guess of what one tidy row takes, beside its input columns.
_LONG_ROW_BYTES = 250


def count_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    counter: PathCounter,
    *,
    layout: LayoutChoice = AUTO,
    long: bool = False,
    min_v_identity: float | None = None,
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    parts: PartSettings = ONE_FILE,
    columns: Sequence[str] | None = None,
) -> FinishedRun[CountSummary]:
    """Count the paths of all rows of files and write one table.

    Every input row is in the output, in input order, with all its columns. Beside the table stands a
    summary, ``OUTPUT.summary.json``. While the run lasts, computed blocks are kept in ``OUTPUT.checkpoint``.

    Parameters
    ----------
    inputs
        AIRR Rearrangement tables (TSV, plain or compressed, or Parquet), or of another `layout`. With a sheet
        (`plait.formats.sheets.SampleSheet`) a file without a subject has its own name as subject_id.
    output
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``; or a folder of parts, whose name ends
        in a slash.
    counter
        What counts; made with ``threads=1``, since blocks are what runs in parallel.
    layout
        Layout of the inputs, as of `plait.vdj.sharing`.
    long
        Write one row per input row, D allele and model instead of lists.
    min_v_identity
        Rows whose ``v_identity`` (a share, or per cent) is lower are mutated: they have that status and no
        counts. By default 0.98 for immunoglobulins and 0 for T cell receptors.
    threads
        Blocks worked on at a time, at most 16 (exhaustive: as many as asked for, and 2 on a GPU).
    executor
        Where blocks are counted; by default so many threads of this process. The output is the same.
    resume
        Take over the blocks that a killed run of the same inputs and parameters has computed.
    progress
        Called after every block or part.
    parts
        How a folder of parts is cut.
    columns
        The columns to write, in this order, of those of the inputs and of the result; all by default. What
        is left out is not read and, where that is separate work, not made. With a sweep there is
        ``path_count_sweep`` besides: totals under every model.

    Raises
    ------
    InvalidInput
        If there is no input, the output cannot be, or a run to resume differs.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="at least one file")
    executor = executor or LocalExecutor(threads)
    plan = plan_on(executor, counter)
    provenance = plan.provenance.as_dict()
    slow, most = _pace(plan, executor)
    size = MOST_BYTES // (items_per_row(counter.columns) if long else 1)
    # Of the files of a sheet, each is of one subject.
    named = "subject_id" if isinstance(inputs, SampleSheet) else None
    with open_rearrangements(
        inputs, layout=layout, block_rows=_FEWEST_ROWS, block_bytes=size, named=named
    ) as reader:
        worked = [reader.roles[role] for role in COUNTED_ROLES]
        identity = IdentityLimit.of(min_v_identity, counter.germline.locus, worked, reader.schema.names)
        provenance["parameters"] |= identity.parameters
        work, rows = _plan_rows(BlockCounter(counter, identity), reader.schema, columns, long)
        if columns is not None:
            reader.read_only({*worked, *rows.inputs})
        # A second per row is not rare: progress, resuming and threads need small blocks.
        if not slow:
            times = _TIMES_ON_GPU if plan.on_gpu else 1
            row_bytes = _row_bytes(work.columns, counter.overflow, long, reader.sampled_row_bytes())
            reader.block_rows = rows_per_block(row_bytes // times, _FEWEST_ROWS, times * _MOST_ROWS)
        # What the lists of each column run over, for readers of the table.
        axes = {
            name: [{"axis": axis, "values": values} for axis, values in found]
            for name, found in work.columns.axes.items()
        }
        run = RowRun(
            reader=reader,
            inputs=inputs,
            columns=worked,
            work=work,
            provenance=provenance,
            rows=rows,
            summary=CountSummary(),
            output=output,
            parts=parts,
            most=most,
            metadata={"list_axes": axes, "layout": reader.layout.name},
        )
        return run_rows(run, executor, resume=resume, progress=progress)


def _plan_rows(
    work: BlockCounter, given: pa.Schema, columns: Sequence[str] | None, long: bool
) -> tuple[BlockCounter, AddedColumns]:
    """The work, of whose columns those are made that are asked for, and the rows that are written."""
    made = work.counter.columns
    if long:
        return work, LongRows(given, made).only(columns)
    if columns is None:
        return work, RearrangementRows(given, made.schema)
    rows = RearrangementRows(given, made.offered).only(columns)
    # The summary is made from statuses and counts.
    work = replace(work, names=("status", "path_count", *columns))
    rows.result = work.columns.schema if {*work.columns.schema.names} <= {*columns} else None
    return work, rows


def _pace(plan: CountPlan, executor: Executor) -> tuple[bool, int]:
    """Whether a row may take long, and how many blocks to work on at a time."""
    if plan.counter.model.name != "exhaustive":
        return False, _MOST_BLOCKS
    # A GPU enumerates thousands of rows as soon as a few, and one block of them after the other.
    return not plan.on_gpu, _MOST_ENUMERATED if plan.on_gpu else executor.slots


def _row_bytes(columns: ResultColumns, overflow: str, long: bool, input_bytes: int) -> int:
    """Bytes that a row takes with its results."""
    number = 400 if overflow == "wide" else 8
    width = input_bytes + sum(number * getattr(field.type, "list_size", 1) for field in columns.schema)
    if long:
        width += (_LONG_ROW_BYTES + input_bytes) * items_per_row(columns)
    return width
