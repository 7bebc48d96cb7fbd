"""Evidence for a model: which rows of tables are, why others are not, and one file of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as arrow_ipc
from numpy.typing import NDArray

from plait.errors import FormatError, one_of, whole_fields
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.files import Closing, content_digest
from plait.formats.layouts import AUTO, LayoutChoice
from plait.formats.rearrangements import reblock
from plait.formats.sorted_runs import Direction, SortedRuns, SpilledBlocks, row_hash, run_starts, whole_runs
from plait.run.executor import Executor, Progress
from plait.vdj.calls import MEANINGS, STATUS_MEANINGS, STATUSES, text_of, whole_numbers
from plait.vdj.model.expectations import PIECE
from plait.vdj.model.junctions import GeneCalls, JunctionTable, encode_texts, model_shapes, open_junctions
from plait.vdj.model.recombination_model import RecombinationModel

#: Which rows are evidence.
RowChoice: TypeAlias = Literal["nonproductive", "out-of-frame", "productive", "all"]

#: What a rearrangement is, from its junction and its columns ``productive`` and ``vj_in_frame``.
ROW_KINDS: Final = ("productive", "out_of_frame", "stop_codon", "nonproductive_otherwise")
_CHOSEN: Final[Mapping[str, tuple[str, ...]]] = {
    "nonproductive": ROW_KINDS[1:],
    "out-of-frame": ("out_of_frame",),
    "productive": ("productive",),
    "all": ROW_KINDS,
}
_AMBIGUOUS: Final = "ambiguous_symbol"
#: Reasons for which a row is no evidence, in plain words; a kind of row is one where it is not asked for.
EVIDENCE_STATUSES: Final[Mapping[str, str]] = {
    **{name: meaning for name, meaning in STATUS_MEANINGS.items() if "ambiguous" not in name},
    **MEANINGS["evidence"],
}
#: What is equal in rows that are counted together.
EVIDENCE_KEY: Final = ("hash", "junction", "v_call", "j_call")
#: Columns of a block of evidence.
EVIDENCE_COLUMNS: Final = pa.schema(
    [
        ("hash", pa.uint64()),
        ("junction", pa.large_string()),
        ("v_call", pa.large_string()),
        ("j_call", pa.large_string()),
        ("repertoire", pa.large_string()),
        ("count", pa.int64()),
    ]
)
_MOST_EXAMPLES: Final = 3
#: Different unknown calls that are remembered; of more, only the rows are counted.
_MOST_CALLS: Final = 1000
_STOPS: Final = (48, 50, 56)
_FALSE: Final = frozenset(("f", "false", "0", "no"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceChoice:
    """What is evidence, and how often it counts.

    Attributes
    ----------
    rows
        Which rows: nonproductive ones (``"out-of-frame"``: only those whose junction is), productive ones, or
        all.
    calls
        Whether the V and J calls say what a row was made of (``"use"``), or all functional genes may have
        made it (``"ignore"``).
    weights
        Whether a junction with its genes counts ``"once"`` in every repertoire that has it, or as often as
        ``"count"``, the column of reads or molecules, says.
    max_rows
        Most junctions with their genes; of more, so many are drawn. None: all.
    seed
        Decides which ones.

    Raises
    ------
    InvalidInput
        If a value is none of these.
    """

    rows: RowChoice = "nonproductive"
    calls: Literal["use", "ignore"] = "use"
    weights: Literal["once", "count"] = "once"
    max_rows: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check values."""
        known = {"rows": tuple(_CHOSEN), "calls": ("use", "ignore"), "weights": ("once", "count")}
        for name, values in known.items():
            one_of(name, getattr(self, name), values)
        whole_fields(self, "max_rows", least=1)
        whole_fields(self, "seed", most=2**63 - 1)


@dataclass(slots=True)
class EvidenceTally:
    """Numbers of rows.

    `kinds` counts those with a junction that can be read, by `ROW_KINDS`; `left_out` those that are no
    evidence, by `EVIDENCE_STATUSES`, with `examples` of what the first ones of each have there; `unknown`
    counts rows by V and J calls that the model does not know.
    """

    rows: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)

    def merge(self, other: EvidenceTally) -> None:
        """Add the numbers of rows that follow."""
        self.rows += other.rows
        self.kinds.update(other.kinds)
        self.left_out.update(other.left_out)
        for reason, shown in other.examples.items():
            mine = self.examples.setdefault(reason, [])
            mine += shown[: _MOST_EXAMPLES - len(mine)]
        for call, rows in other.unknown.items():
            if call in self.unknown or len(self.unknown) < _MOST_CALLS:
                self.unknown[call] += rows


class EvidenceRows:
    """Takes the evidence out of the blocks of one table.

    The genes of `model` are what calls mean. `name` is what the table is called in examples, and its
    repertoire where no column tells repertoires apart.
    """

    def __init__(
        self, model: RecombinationModel, choice: EvidenceChoice, table: JunctionTable, name: str
    ) -> None:
        self._choice = choice
        self._table = table
        self._name = name
        shapes = model_shapes(model)
        self._calls = {"v": GeneCalls(model, "v", shapes.v), "j": GeneCalls(model, "j", shapes.j)}
        self._genes = {"v": model.v, "j": model.j}
        roles, names = table.reader.roles, table.reader.schema.names
        self._repertoire = roles.get("repertoire") or roles.get("subject")
        self._count = roles.get("count") if choice.weights == "count" else None
        self._flags = [name for name in ("productive", "vj_in_frame") if name in names]

    def take(self, numbered: tuple[int, pa.RecordBatch]) -> tuple[pa.RecordBatch, EvidenceTally]:
        """The evidence of a block behind the number of its first row in the table, and the tally of its rows.

        Calls are names of genes of the model with commas between, empty if calls are ignored.
        """
        first, block = numbered
        n = block.num_rows
        # Not ascii_upper: of a slice that was cast, Arrow 26 returns other bytes.
        junctions = pc.utf8_upper(text_of(self._table.nucleotides(block)))
        texts = encode_texts(junctions, "nt")
        status = np.array(STATUSES, object)[texts.status]
        odd = np.flatnonzero(texts.codes > 3)
        if odd.size:
            rows = np.unique(np.searchsorted(texts.start, odd, side="right") - 1)
            status[rows[texts.status[rows] == 0]] = _AMBIGUOUS
        tally = EvidenceTally(rows=n)
        known = np.flatnonzero(status == "ok")
        kinds = row_kinds(texts.codes, texts.start, texts.length, self._said(block))
        tally.kinds.update(kinds[known].tolist())
        chosen = np.isin(kinds, _CHOSEN[self._choice.rows])
        status[known[~chosen[known]]] = kinds[known[~chosen[known]]]
        columns = {"junction": junctions}
        calls = dict(zip("vj", self._table.calls(block), strict=True))
        for segment in ("v", "j"):
            columns[f"{segment}_call"] = self._named(segment, calls[segment], status)
        self._explain(tally, status, first, junctions, calls)
        kept = pa.array(np.flatnonzero(status == "ok"))
        taken = {name: column.take(kept) for name, column in columns.items()}
        taken["hash"] = pa.array(row_hash(list(taken.values()), self._choice.seed))
        taken["repertoire"] = self._repertoires(block).take(kept)
        taken["count"] = self._counts(block).take(kept)
        rows = pa.record_batch([taken[name] for name in EVIDENCE_COLUMNS.names], schema=EVIDENCE_COLUMNS)
        return rows, tally

    def _said(self, block: pa.RecordBatch) -> NDArray[np.bool_]:
        """Rows that a column says to be nonproductive."""
        found = np.zeros(block.num_rows, np.bool_)
        for name in self._flags:
            encoded = block[name].cast(pa.large_string()).dictionary_encode(null_encoding="encode")
            no = [(text or "").strip().lower() in _FALSE for text in encoded.dictionary.to_pylist()]
            found |= np.array(no, np.bool_)[np.asarray(encoded.indices)]
        return found

    def _named(self, segment: Literal["v", "j"], calls: Any, status: NDArray[Any]) -> pa.Array:
        """Genes of the model that each row is made of; what is wrong with a call becomes its status."""
        n = status.size
        if self._choice.calls == "ignore":
            return pa.array([""], pa.large_string()).take(pa.array(np.zeros(n, np.int64)))
        given = self._calls[segment].read(text_of(calls), n)
        reasons = np.array(STATUSES, object)[given.status[given.codes]]
        wrong = (status == "ok") & (reasons != "ok")
        status[wrong] = reasons[wrong]
        names = [gene.name for gene in self._genes[segment]]
        found = [",".join(names[gene] for gene in sorted(genes)) for genes in given.genes]
        return pa.array(found, pa.large_string()).take(pa.array(given.codes))

    def _explain(
        self, tally: EvidenceTally, status: NDArray[Any], first: int, junctions: pa.Array, calls: Any
    ) -> None:
        left = np.flatnonzero(status != "ok")
        tally.left_out.update(status[left].tolist())
        for reason in tally.left_out:
            rows = left[status[left] == reason]
            segment = reason.removesuffix("_call").removesuffix("_anchor")[-1]
            column = junctions
            if reason.endswith(("_call", "_anchor")):
                column = calls[segment]
                if reason.startswith("unknown"):
                    found = pc.value_counts(text_of(column).take(pa.array(rows)))
                    tally.unknown.update({one["values"]: one["counts"] for one in found.to_pylist()})
            shown = column.take(pa.array(rows[:_MOST_EXAMPLES])).to_pylist()
            tally.examples[reason] = [
                f"{Path(self._name).name}, record {first + int(row)}: {text!r:.80}"
                for row, text in zip(rows[:_MOST_EXAMPLES], shown, strict=True)
            ]

    def _repertoires(self, block: pa.RecordBatch) -> pa.Array:
        own = pa.array([f"file {self._name}"], pa.large_string())
        if self._repertoire is None:
            return own.take(pa.array(np.zeros(block.num_rows, np.int64)))
        named = text_of(block[self._repertoire])
        return pc.if_else(pc.equal(named, ""), own[0], named)

    def _counts(self, block: pa.RecordBatch) -> pa.Array:
        if self._count is None or pa.types.is_null(block.schema.field(self._count).type):
            return pa.array(np.ones(block.num_rows, np.int64))
        numbers = whole_numbers(block[self._count], path=self._name, name=self._count)
        return pc.max_element_wise(pc.fill_null(numbers, 1), 1)


def row_kinds(
    codes: NDArray[np.uint8],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    nonproductive: NDArray[np.bool_],
) -> NDArray[Any]:
    """What each rearrangement is, one of `ROW_KINDS`.

    A junction out of frame, or with a stop codon, is nonproductive whatever a column says: it ends with the
    conserved Phe or Trp, and cannot be read so far. `codes` are A, C, G and T of all junctions as 0 to 3;
    `start`, `length` and `nonproductive`, what columns say, are (n,).
    """
    kinds = np.full(length.size, ROW_KINDS[0], object)
    kinds[nonproductive] = ROW_KINDS[3]
    row = np.repeat(np.arange(length.size), length)
    place = np.arange(codes.size) - start[row]
    codon = np.flatnonzero((place % 3 == 0) & (place + 3 <= length[row]))
    letters = [codes[codon + k].astype(np.int64) for k in range(3)]
    value = 16 * letters[0] + 4 * letters[1] + letters[2]
    plain = np.maximum.reduce(letters) < 4 if codon.size else np.zeros(0, np.bool_)
    kinds[row[codon[plain & np.isin(value, _STOPS)]]] = ROW_KINDS[2]
    kinds[length % 3 > 0] = ROW_KINDS[1]
    return kinds


#: Junctions of a batch: whole pieces of `plait.vdj.model.expectations.Expectation`.
BATCH_ROWS: Final = 16 * PIECE
_BLOCK_ROWS: Final = 1 << 16
#: Rows that wait in memory until they are sorted.
_WAITING_BYTES: Final = 96 << 20
_CALLS: Final = ("v_call", "j_call")


@dataclass(slots=True)
class CollectedEvidence:
    """What was collected.

    `inputs` has for each file its path, digest, rows, and rows that are evidence; `repertoires` counts those
    with evidence. `junctions` counts different junctions with their genes, `kept` those that the evidence has
    (all, or as many as were asked for), `weight` how often all of these count together.
    """

    tally: EvidenceTally = field(default_factory=EvidenceTally)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    repertoires: int = 0
    junctions: int = 0
    kept: int = 0
    weight: int = 0

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        tally = self.tally
        return {
            "inputs": self.inputs,
            "rows": tally.rows,
            "rows_by_kind": dict(tally.kinds),
            "left_out": dict(tally.left_out.most_common()),
            "examples": tally.examples,
            "unknown_calls": dict(tally.unknown.most_common(50)),
            "repertoires": self.repertoires,
            "distinct_junctions": self.junctions,
            "evidence_junctions": self.kept,
            "evidence_weight": self.weight,
        }


def open_evidence(
    inputs: Sequence[str | os.PathLike[str]], choice: EvidenceChoice, layout: LayoutChoice = AUTO
) -> list[JunctionTable]:
    """Open every table by itself; InvalidInput or FormatError if one is missing or not of this layout."""
    return [
        open_junctions([path], layout=layout, acids=False, calls=choice.calls, block_rows=_BLOCK_ROWS)
        for path in inputs
    ]


def read_as(tables: Sequence[JunctionTable]) -> str:
    """Layouts that the tables were read as."""
    return ", ".join(sorted({table.reader.recognised for table in tables}))


def collect_evidence(
    tables: Sequence[JunctionTable],
    output: Path,
    model: RecombinationModel,
    choice: EvidenceChoice,
    *,
    executor: Executor,
    progress: Callable[[Progress], object] | None = None,
) -> CollectedEvidence:
    """Collect the evidence of tables into `output`, for `EvidenceFile`.

    `progress` is called after every block. InvalidInput or FormatError if a table is not what it should be,
    or the disk is full.
    """
    found, done = CollectedEvidence(), 0
    total_bytes = sum(table.reader.total_bytes for table in tables)
    names: dict[str, set[str]] = {name: set() for name in (*_CALLS, "repertoire")}
    with SpilledBlocks(output.with_suffix(".sorting")) as spilled:
        order: dict[str, Direction] = dict.fromkeys((*EVIDENCE_KEY, "repertoire"), "ascending")
        runs = SortedRuns(spilled, order, memory_bytes=_WAITING_BYTES, combine=_combined)
        for table in tables:
            path = table.paths[0]
            work = EvidenceRows(model, choice, table, path)
            before, evidence, blocks = found.tally.rows, 0, table.reader.numbered()
            with table.reader as reader, closing(executor.map(work.take, blocks, size=_bytes_of)) as results:
                for rows, tally in results:
                    found.tally.merge(tally)
                    evidence += rows.num_rows
                    for name, texts in names.items():
                        texts.update(pc.unique(rows[name]).to_pylist())
                    runs.add(rows)
                    if progress is not None:
                        progress(Progress(found.tally.rows, done + reader.bytes_read(), total_bytes))
                done += reader.total_bytes
            facts = {"file": path, "digest": content_digest(path)}
            reader.check_unchanged()
            rows_here = found.tally.rows - before
            found.inputs.append({**facts, "rows": rows_here, "evidence_rows": evidence})
        found.repertoires = len(names["repertoire"])
        _write(runs, output, found, choice, {name: sorted(names[name]) for name in _CALLS})
    return found


def _bytes_of(numbered: tuple[int, pa.RecordBatch]) -> int:
    return int(numbered[1].nbytes)


def _combined(rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row of equal ones, with the sum of their counts."""
    starts = run_starts(rows, (*EVIDENCE_KEY, "repertoire"))
    if starts.size == rows.num_rows:
        return rows
    sums = np.add.reduceat(np.asarray(rows["count"]), starts)
    columns = rows.take(pa.array(starts)).columns
    return pa.record_batch([*columns[:-1], pa.array(sums)], schema=rows.schema)


def _write(
    runs: SortedRuns,
    output: Path,
    found: CollectedEvidence,
    choice: EvidenceChoice,
    names: dict[str, list[str]],
) -> None:
    """The evidence as batches of equal length, in the order of the hash."""
    dictionaries = {name: pa.array(names[name], pa.large_string()) for name in _CALLS}
    kind = pa.dictionary(pa.int32(), pa.large_string())
    schema = pa.schema(
        [("junction", pa.large_string()), ("v_call", kind), ("j_call", kind), ("weight", pa.int64())]
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for rows in whole_runs(runs.drain(), EVIDENCE_KEY):
            starts = run_starts(rows, EVIDENCE_KEY)
            counts = np.asarray(rows["count"]) if choice.weights == "count" else np.ones(rows.num_rows, int)
            weight = np.add.reduceat(counts, starts)
            found.junctions += starts.size
            room = starts.size if choice.max_rows is None else max(choice.max_rows - found.kept, 0)
            kept = pa.array(starts[:room])
            if not len(kept):
                continue
            found.kept += len(kept)
            found.weight += int(weight[:room].sum())
            columns = [rows["junction"].take(kept)]
            for name in _CALLS:
                codes = pc.index_in(rows[name].take(kept), value_set=dictionaries[name])
                columns.append(pa.DictionaryArray.from_arrays(codes, dictionaries[name]))
            yield pa.record_batch([*columns, pa.array(weight[:room])], schema=schema)

    with ExitStack() as stack:
        file = stack.enter_context(AtomicFile(output, durable=False))
        stack.enter_context(output_errors(output))
        writer = stack.enter_context(arrow_ipc.new_file(file.stream, schema))
        for batch in reblock(batches(), BATCH_ROWS):
            writer.write_batch(batch)


class EvidenceFile(Closing):
    """Reads what `collect_evidence` wrote; a context manager; FormatError if the file is something else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._source = pa.memory_map(str(path))
            self._reader = arrow_ipc.open_file(self._source)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error
        self.batches: int = self._reader.num_record_batches

    def batch(self, number: int) -> pa.RecordBatch:
        """Columns junction, v_call, j_call and weight of a batch, counted from 0.

        FormatError if it is damaged.
        """
        try:
            return self._reader.get_batch(number)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> FormatError:
        return FormatError(
            self._path,
            found=f"a damaged or unreadable file ({error})",
            expected="the evidence that this run has collected",
            hint="run again without --resume",
        )

    def close(self) -> None:
        """Close the file; no batch may be used any more."""
        self._source.close()
