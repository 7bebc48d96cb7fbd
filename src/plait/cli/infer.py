"""``plait vdj infer``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plait.cli.console import Bar
from plait.cli.options import (
    JunctionLayoutOption,
    OutputOption,
    RepairOption,
    WholeNumber,
    germline_named,
    model_named,
    tables_of,
)
from plait.errors import InvalidInput
from plait.lang.compiling import work_time

if TYPE_CHECKING:
    from plait.vdj.model import InferenceProgress, RecombinationModel

Flag = Parameter(negative="")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StartParameters:
    """Options of the genes that a model is made of.

    Attributes
    ----------
    germline
        Germline set whose genes the model has: name of a bundled one (see plait germline list), or a file
        or folder. All choices are equally probable at first.
    anchors
        CSV table gene,anchor_index[,function] of anchors that replace those of the germline set.
    repair_anchors
        Mend genes whose conserved codon is not where the germline set or model says, where there is one way
        to do so; each is named, and recorded in the provenance.
    chain
        What is joined; auto takes what the germline set implies.
    most_insertions
        With --germline: most N nucleotides at a junction; otherwise 30 with D genes (60 in IGH), 40 without.
    start
        A model to begin with, in the place of a germline set: a JSON file of plait, a folder of IGoR or OLGA,
        or the name of a bundled model.
    uniform
        With --start: take its genes alone, all choices equally probable at first.
    """

    germline: str | None = None
    anchors: Path | None = None
    repair_anchors: RepairOption = False
    chain: Literal["auto", "vj", "vdj"] = "auto"
    most_insertions: WholeNumber | None = None
    start: str | None = None
    uniform: Annotated[bool, Flag] = False

    def model(self) -> RecombinationModel:
        """The model to begin with."""
        from plait.vdj.model import model_from_germline, uniform_model

        if (self.germline is None) == (self.start is None):
            given = "both" if self.germline else "neither"
            raise InvalidInput(
                "--germline, --start", found=given, expected="a germline set or a model to begin with"
            )
        if self.germline is None:
            model = model_named(str(self.start), repair_anchors=self.repair_anchors)
            return uniform_model(model) if self.uniform else model
        alleles = germline_named(self.germline, anchors=self.anchors, repair_anchors=self.repair_anchors)
        return model_from_germline(alleles, self.chain, most_insertions=self.most_insertions)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EvidenceParameters:
    """Options of the evidence.

    Attributes
    ----------
    rows
        Which rows are evidence: nonproductive ones (out of frame, or with a stop codon, or said to be so),
        which selection has not touched; only those out of frame; productive ones; or all.
    calls
        use: V and J calls say what a row was made of; ignore: any functional genes may have made it, and the
        probabilities of single genes then depend on the model to begin with.
    weights
        once: a junction with its V and J counts once in every repertoire; count: as often as its reads or
        molecules.
    max_rows
        Most junctions with their V and J; of more, so many are drawn.
    seed
        Decides which ones.
    """

    rows: Literal["nonproductive", "out-of-frame", "productive", "all"] = "nonproductive"
    calls: Literal["use", "ignore"] = "use"
    weights: Literal["once", "count"] = "once"
    max_rows: WholeNumber | None = None
    seed: WholeNumber = 0


_START = StartParameters()
_EVIDENCE = EvidenceParameters()


def infer(
    *inputs: Path,
    output: OutputOption,
    genes: StartParameters = _START,
    evidence: EvidenceParameters = _EVIDENCE,
    layout: JunctionLayoutOption = "airr",
    name: str | None = None,
    iterations: WholeNumber = 200,
    tolerance: float = 1e-5,
    pseudocount: float = 0.0,
    report: bool = True,
    resume: Annotated[bool, Flag] = False,
    force: Annotated[bool, Flag] = False,
    threads: WholeNumber | None = None,
) -> None:
    """Infer a recombination model from one or more tables.

    Parameters
    ----------
    inputs
        Tables with junctions, and V and J calls if they are used: TSV (plain, .gz or .zst) or Parquet; - is
        standard input.
    output
        Folder for the model, its evidence, tables and report.
    genes
        Which genes the model has.
    evidence
        What it is inferred from.
    layout
        Column names of the inputs; lines is text without a header line: a junction a line, and behind it
        V and J calls if they are used.
    name
        Name of the model; otherwise that of the folder.
    iterations
        Most passes over the evidence.
    tolerance
        Passes end when the mean log-likelihood of a junction grows by less.
    pseudocount
        Added to the expected number of every possible choice, so that what few junctions did not show stays
        possible.
    report
        Write the report: one HTML file that needs no network.
    resume
        Go on with what a stopped run of the same command had done.
    force
        Replace an earlier inference in the output.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    from plait.reports.model_text import inference_text
    from plait.vdj.model.evidence import EvidenceChoice
    from plait.vdj.model.inference import infer_files

    if report:
        from plait.reports.figure import check_report_drawing

        check_report_drawing()
    model = genes.model()
    begun = work_time()
    with tables_of(inputs, resume) as tables, InferenceBar() as progress:
        made = infer_files(
            tables,
            output,
            model,
            choice=EvidenceChoice(**asdict(evidence)),
            layout=layout,
            name=name,
            iterations=iterations,
            tolerance=tolerance,
            pseudocount=pseudocount,
            threads=threads,
            resume=resume,
            force=force,
            progress=progress,
        )
    seconds = work_time() - begun
    page = None
    if report:
        from plait.reports.inference_report import write_inference_report

        page = write_inference_report(made.folder)
    print(inference_text(made, seconds=seconds, page=page), end="")


class InferenceBar(Bar):
    """A bar for each stage, with the log-likelihood of the last iteration; a context manager."""

    def __init__(self) -> None:
        super().__init__("inference", "{task.fields[done]:,} rows")

    def __call__(self, state: InferenceProgress) -> None:
        """Show a new state."""
        title = state.stage
        if state.log_likelihood is not None:
            title += f", log-likelihood {state.log_likelihood:.5f}"
        self.rename(title)
        self.show(state.rows, "{:,.0f}/s", state.done, state.total)
