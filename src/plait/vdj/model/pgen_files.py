"""Generation probabilities of the rows of files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from plait.errors import FormatError, InvalidInput
from plait.executors.local import LocalExecutor
from plait.executors.protocol import Executor
from plait.settings import thread_count
from plait.targets.devices import check_device, resolve, used_devices
from plait.vdj.model.junction_tables import LINES, GivenCalls, JunctionTable, open_junctions
from plait.vdj.model.pgen_blocks import BlockPgen, PgenBlock
from plait.vdj.model.pgen_summary import PgenSummary
from plait.vdj.model.posterior_blocks import BlockPosteriors
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.texts import TextKind
from plait.vdj.progress import Progress
from plait.vdj.row_runs import AddedColumns, RowRun, RowWork, run_key, run_rows

__all__ = ["PgenFiles", "PgenOf", "pgen_files", "posterior_files"]

#: What is computed: of nucleotides, of amino acids, of both, of motifs of amino acids, or of what is there.
PgenOf: TypeAlias = Literal["auto", "nt", "aa", "nt,aa", "motif"]

#: Rows in a block: enough that its thread is busy for some tenths of a second.
_BLOCK_ROWS: Final = 1 << 14
_FEWEST_ROWS: Final = 1 << 10
#: The same where a GPU computes: enough that it is worth a copy.
_GPU_ROWS: Final = 1 << 16
#: Blocks worked on at a time: one thread reads and one writes, however many compute.
_MOST_BLOCKS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PgenFiles:
    """A finished run.

    Attributes
    ----------
    output
        The table.
    summary_path
        JSON with the totals.
    rows
        Its rows.
    summaries
        What came of them, for every kind of probability.
    calls
        Which calls were used.
    renamed
        Input columns that had the name of a result column, with the names they were given.
    blank_lines
        Blank lines in text inputs.
    resumed_blocks
        Blocks taken over from the run that was stopped.
    remarks
        What is to be said of the table as a whole: foreign genes, and causes of zeros; for every kind.
    """

    output: Path
    summary_path: Path
    rows: int
    summaries: dict[TextKind, PgenSummary]
    calls: GivenCalls
    renamed: dict[str, str]
    blank_lines: int
    resumed_blocks: int
    remarks: dict[TextKind, list[str]]


def pgen_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    model: RecombinationModel,
    *,
    of: PgenOf = "auto",
    calls: GivenCalls = "ignore",
    log10: bool = False,
    layout: str = "airr",
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    device: str = "auto",
    progress: Callable[[Progress], None] | None = None,
) -> PgenFiles:
    """Write tables with the generation probabilities of all their rows.

    Every input row is in the output, in input order, with all its columns, and then ``pgen_nt`` and
    ``pgen_nt_status``, ``pgen_aa`` and ``pgen_aa_status``, or both. Beside the table stands a summary,
    ``OUTPUT.summary.json``. While the run lasts, computed blocks are kept in ``OUTPUT.checkpoint``.

    Parameters
    ----------
    inputs
        AIRR Rearrangement tables (TSV, plain or compressed, or Parquet), or of another `layout`.
    output
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``.
    model
        The model.
    of
        What is computed: ``"nt"``, ``"aa"`` or both; ``"auto"`` for those of which there is a column. Amino
        acids that a table lacks are translated. Motifs (``"motif"``: ``pgen_motif``) are read from the
        column of amino acids.
    calls
        Which calls are taken for what a row was made of; over others is summed.
    log10
        Whether there are common logarithms, too.
    layout
        Column layout of the inputs, or ``"lines"`` for text without a header line.
    threads
        Blocks worked on at a time; the output does not depend on it.
    executor
        Where blocks are worked on; by default so many threads of this process. The output is the same.
    resume
        Take over the blocks that a stopped run of the same inputs and parameters has computed.
    device
        As for `plait.vdj.model.GenerationProbability`; one of the machine that computes. Values of a GPU are
        within 1e-12 of those of the CPU, relative.
    progress
        Called after every block.

    Raises
    ------
    InvalidInput
        If there is no input, the output cannot be, or a run to resume differs.
    FormatError
        If an input is not what it should be, or the disk is full.
    TargetUnavailable
        If CUDA is asked for and cannot be used.
    """
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="at least one file")
    if layout == LINES and of == "auto":
        raise InvalidInput(
            "of", found="'auto' for lines without a header", expected="'nt', 'aa', 'nt,aa' or 'motif'"
        )
    if executor is None:
        executor = LocalExecutor(thread_count() if threads is None else threads)
    table = open_junctions(
        inputs,
        layout=layout,
        acids=of in ("auto", "aa", "motif") or (of, layout) == ("nt,aa", LINES),
        nucleotides=layout != LINES or of.startswith("nt"),
        calls=calls,
        block_rows=_block_rows(device, executor),
        fewest_rows=_FEWEST_ROWS,
    )
    blocks = BlockPgen(model, _kinds(table, of, inputs[0]), table.places, log10, device)
    run = _Run(table, blocks, blocks.provenance_on(executor))
    return _run(run, inputs, output, executor, calls, resume, progress)


def posterior_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    model: RecombinationModel,
    *,
    calls: GivenCalls = "ignore",
    layout: str = "airr",
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> PgenFiles:
    """Write tables with what all scenarios of each row have in common.

    Every input row is in the output, in input order, with all its columns, and then its generation
    probability, the most probable gene of each kind, means of deletions and insertions over all scenarios,
    and their entropy; see `plait.vdj.model.posteriors.Posteriors`. Summary and checkpoint as for
    `pgen_files`.

    Parameters
    ----------
    inputs, output, model, calls, layout, threads, executor, resume, progress
        As for `pgen_files`.

    Raises
    ------
    InvalidInput
        If there is no input, the output cannot be, or a run to resume differs.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="at least one file")
    if executor is None:
        executor = LocalExecutor(thread_count() if threads is None else threads)
    table = open_junctions(
        inputs,
        layout=layout,
        acids=False,
        calls=calls,
        block_rows=_FEWEST_ROWS,
        fewest_rows=_FEWEST_ROWS // 4,
    )
    blocks = BlockPosteriors(model, table.places)
    run = _Run(table, blocks, blocks.provenance())
    return _run(run, inputs, output, executor, calls, resume, progress)


def _run(
    run: _Run,
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    executor: Executor,
    calls: GivenCalls,
    resume: bool,
    progress: Callable[[Progress], None] | None,
) -> PgenFiles:
    with run.table.reader as reader:
        finished = run_rows(
            RowRun(
                reader=reader,
                inputs=inputs,
                work=run.work(),
                schema=run.schema,
                metadata=run.metadata(),
                key=run_key(reader, {"of": run.provenance}, columns=run.schema.names),
                most=_MOST_BLOCKS,
            ),
            output,
            executor,
            resume=resume,
            progress=progress,
            add=run.add,
            facts=run.facts,
        )
    return PgenFiles(
        output=Path(output),
        summary_path=finished.summary_path,
        rows=finished.rows,
        summaries=run.summaries,
        calls=calls,
        renamed=run.renamed,
        blank_lines=finished.blank_lines,
        resumed_blocks=finished.resumed_blocks,
        remarks=run.remarks(),
    )


class _Run:
    """Everything that is fixed for one run, and its totals."""

    def __init__(
        self, table: JunctionTable, blocks: BlockPgen | BlockPosteriors, provenance: list[dict[str, Any]]
    ) -> None:
        self.table = table
        self._blocks = blocks
        self.provenance = provenance
        self._devices: set[str] = set()
        self._added = AddedColumns(table.reader.schema, blocks.schema)
        self.renamed, self.schema = self._added.renamed, self._added.schema
        self.summaries = {kind: PgenSummary() for kind in blocks.kinds}

    def work(self) -> RowWork[PgenBlock]:
        return RowWork(
            columns=self.table.columns,
            work=self._blocks,
            stored=lambda found: found.result,
            restored=self._blocks.restored,
            finish=lambda first, block, found: self._added.batch(block, found.result),
        )

    def metadata(self) -> dict[str, str]:
        facts = {"provenance": self.provenance, "layout": self.table.reader.layout.name}
        return {f"plait.{name}": json.dumps(value, sort_keys=True) for name, value in facts.items()}

    def add(self, block: PgenBlock) -> None:
        if block.device is not None:
            self._devices.add(block.device)
        for kind, summary in block.summaries.items():
            self.summaries[kind].merge(summary)

    def remarks(self) -> dict[TextKind, list[str]]:
        return {kind: summary.remarks(self._blocks.model) for kind, summary in self.summaries.items()}

    def facts(self) -> dict[str, Any]:
        """Content of the summary file."""
        rows = next(iter(self.summaries.values())).rows
        totals = {f"pgen_{kind}": summary.as_dict() for kind, summary in self.summaries.items()}
        device = used_devices(self._devices)
        provenance = [{**made, "device": device or made["device"]} for made in self.provenance]
        return {
            "provenance": provenance,
            "renamed_columns": self.renamed,
            "rows": rows,
            **totals,
            "remarks": self.remarks(),
        }


def _block_rows(device: str, executor: Executor) -> int:
    """Most rows of a block: the same wherever blocks go, if a GPU is asked for by name."""
    check_device(device)
    there = device.startswith("cuda") or (not executor.elsewhere and resolve(device).name.startswith("cuda"))
    return _GPU_ROWS if there else _BLOCK_ROWS


def _kinds(table: JunctionTable, of: PgenOf, path: object) -> tuple[TextKind, ...]:
    """What is computed, from what was asked for and what is there."""
    places = table.places
    if of == "auto":
        there = {"nt": places.nucleotides >= 0, "aa": places.acids >= 0}
        return cast(tuple[TextKind, ...], tuple(kind for kind, found in there.items() if found))
    if of == "motif" and places.acids < 0:
        raise FormatError(
            str(path), found="no column of amino acids", expected="motifs in the column of amino acids"
        )
    return cast(tuple[TextKind, ...], tuple(of.split(",")))
