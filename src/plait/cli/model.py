"""``plait vdj pgen``, ``scenarios``, ``generate`` and ``infer``: what uses or makes a recombination model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from plait.cli.options import (
    MODEL,
    Bar,
    CallsOption,
    DeviceOption,
    Flag,
    FolderOutput,
    JunctionSource,
    PartParameters,
    RowProgress,
    RunParameters,
    Signed,
    TableOutput,
    ThreadsOption,
    WholeNumber,
    germline_named,
    model_named,
    tables_of,
    words_of,
)
from plait.errors import InvalidInput
from plait.lang.compiling import work_time

if TYPE_CHECKING:
    from plait.vdj.model import InferenceProgress, RecombinationModel


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class GivenModel:
    """Which recombination model is used.

    Attributes
    ----------
    model
        The recombination model: human_TRB, which comes with plait; human_TRA, human_IGH, human_IGK,
        human_IGL, mouse_TRA, mouse_TRB or righor_human_TRB, which plait[models] brings; a JSON file of
        plait; or a folder of IGoR or OLGA.
    repair_anchors
        Mend genes of the model whose conserved codon is not where the model says, where there is one way to
        do so; each is named, and recorded in the provenance.
    """

    model: str
    repair_anchors: Flag = False

    def load(self) -> RecombinationModel:
        """The model, after telling what is wrong with its genes."""
        return model_named(self.model, repair_anchors=self.repair_anchors)


def pgen(
    *inputs: Path,
    given: GivenModel,
    output: TableOutput,
    of: Literal["auto", "nt", "aa", "nt,aa", "motif"] = "auto",
    calls: CallsOption = "ignore",
    log10: Flag = False,
    columns: str | None = None,
    min_v_identity: float | None = None,
    source: JunctionSource = JunctionSource(),
    device: DeviceOption = "auto",
    run: RunParameters = RunParameters(),
    parts: PartParameters = PartParameters(),
) -> None:
    """Compute the generation probability of every row of one or more tables.

    Parameters
    ----------
    inputs
        Tables with junctions, of all kinds that plait vdj count takes; - is standard input.
    given
        The recombination model.
    output
        The table to write: .parquet, .tsv, .tsv.gz or .tsv.zst, with its summary beside; or a
        folder of Parquet parts: NAME/.
    of
        Of the nucleotides (nt), of the amino acids (aa, which are translated where the table lacks them), of
        both (nt,aa), or of motifs of amino acids in the column of amino acids (motif: [..] is one of several,
        . any). auto takes what the table has columns for.
    calls
        ignore sums over all functional genes of the model; use takes only the V and J genes or alleles that
        each row names; v and j those of V or of J alone.
    log10
        Add the common logarithms as columns.
    columns
        The columns to write, with commas between, as sequence_id,pgen_nt; otherwise all of the inputs and of
        the result. Of the inputs, what is left out is not read.
    min_v_identity
        Rows whose column v_identity is lower have no probability: their status is mutated. Left out, 0.98
        for immunoglobulins and 0 for T cell receptors; 0 computes all.
    source
        What the inputs are.
    device
        auto takes the first GPU that can be used, else the CPU; cpu; cuda, cuda:N or cuda:all for GPUs;
        reference is plain Python.
    run
        How the work is done.
    parts
        How a folder of parts is cut.
    """
    run.ask_driver(device)
    from plait.reports.model_text import pgen_text
    from plait.vdj.model.pgen import pgen_files

    found = given.load()
    start = work_time()
    with (
        tables_of(inputs, run.resume) as tables,
        run.open() as executor,
        RowProgress("computing") as progress,
    ):
        made = pgen_files(
            tables,
            output,
            found,
            of=of,
            calls=calls,
            log10=log10,
            columns=words_of(columns),
            min_v_identity=min_v_identity,
            layout=source.choice,
            device=device,
            executor=executor,
            resume=run.resume,
            progress=progress,
            parts=parts.settings,
        )
    print(pgen_text(made, calls=calls, seconds=work_time() - start), end="")


def scenarios(
    *inputs: Path,
    given: GivenModel,
    output: TableOutput,
    best: WholeNumber = 10,
    posteriors: Flag = False,
    columns: str | None = None,
    calls: CallsOption = "ignore",
    source: JunctionSource = JunctionSource(),
    run: RunParameters = RunParameters(),
    parts: PartParameters = PartParameters(),
) -> None:
    """List the most probable ways in which every row of one or more tables was made.

    Parameters
    ----------
    inputs
        Tables with junctions, of all kinds that plait vdj count takes; - is standard input.
    given
        The recombination model.
    output
        The table to write, one row per scenario: .parquet, .tsv, .tsv.gz or .tsv.zst, with
        its summary beside; or a folder of Parquet parts: NAME/.
    best
        Most scenarios of a row.
    posteriors
        Write what all scenarios of a row say together in the place of the best ones: the input rows with the
        most probable V, D and J, mean deletions and insertions, and the entropy of the scenarios in bits.
    columns
        The columns to write, with commas between; otherwise all.
    calls
        ignore tries all functional genes of the model; use only the V and J genes or alleles that each row
        names; v and j those of V or of J alone.
    source
        What the inputs are.
    run
        How the work is done.
    parts
        How a folder of parts is cut.
    """
    from plait.reports.model_text import pgen_text, scenario_text
    from plait.vdj.model.pgen import posterior_files
    from plait.vdj.model.scenarios import scenario_files

    found = given.load()
    start = work_time()
    with (
        tables_of(inputs, run.resume) as tables,
        run.open() as executor,
        RowProgress("explaining") as progress,
    ):
        options: dict[str, Any] = {
            "calls": calls,
            "columns": words_of(columns),
            "layout": source.choice,
            "executor": executor,
            "resume": run.resume,
            "progress": progress,
            "parts": parts.settings,
        }
        if posteriors:
            told = posterior_files(tables, output, found, **options)
            text = pgen_text(told, calls=calls, seconds=work_time() - start)
        else:
            made = scenario_files(tables, output, found, best=best, **options)
            text = scenario_text(made, calls=calls, seconds=work_time() - start)
    print(text, end="")


def generate(
    *,
    given: GivenModel,
    output: TableOutput,
    count: Annotated[WholeNumber, Parameter(name=["--count", "-n"], allow_leading_hyphen=True)],
    seed: Annotated[WholeNumber, Signed] = 0,
    keep: Literal["productive", "all"] = "productive",
    run: RunParameters = RunParameters(),
    parts: PartParameters = PartParameters(),
) -> None:
    """Draw junctions from a recombination model, with how each of them was made.

    Parameters
    ----------
    given
        The recombination model.
    output
        The table to write: .parquet, .tsv, .tsv.gz or .tsv.zst; or a folder of Parquet parts: NAME/.
    count
        Number of junctions.
    seed
        What the draws depend on; nothing else does, threads least of all.
    keep
        Junctions in frame, without stop codon, from Cys to Phe or Trp; or all.
    run
        How the work is done.
    parts
        How a folder of parts is cut.
    """
    from plait.vdj.model.sampling import generate_file

    found = given.load()
    start = work_time()
    with run.open() as executor, Bar("drawing", "{task.fields[done]:,} rows") as bar:
        made = generate_file(
            found,
            output,
            count,
            seed=seed,
            productive=keep == "productive",
            executor=executor,
            resume=run.resume,
            progress=lambda rows: bar.show(rows, "{:,.0f}/s", rows, count),
            parts=parts.settings,
        )
    seconds = work_time() - start
    rate = f", {made.rows / seconds:,.0f} rows/s" if made.rows else ""
    print(f"{made.rows:,} rows of {made.drawn:,} draws in {seconds:.1f} s{rate}")
    if made.resumed_blocks:
        print(f"{made.resumed_blocks:,} blocks were taken over from the stopped run.")
    print(f"table    {made.output}")


@Parameter(name="*", group=MODEL)
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
    repair_anchors: Flag = False
    chain: Literal["auto", "vj", "vdj"] = "auto"
    most_insertions: WholeNumber | None = None
    start: str | None = None
    uniform: Flag = False

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


@Parameter(name="*", group="Evidence")
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
    output: FolderOutput,
    genes: StartParameters = _START,
    evidence: EvidenceParameters = _EVIDENCE,
    source: JunctionSource = JunctionSource(),
    name: str | None = None,
    iterations: WholeNumber = 200,
    tolerance: float = 1e-5,
    pseudocount: float = 0.0,
    accelerate: bool = True,
    error_rate: Annotated[str | None, Signed] = None,
    report: bool = True,
    resume: Flag = False,
    force: Flag = False,
    threads: ThreadsOption = None,
) -> None:
    """Infer a recombination model from one or more tables.

    Parameters
    ----------
    inputs
        Tables with junctions, and V and J calls if they are used, of all kinds that plait vdj count takes; -
        is standard input.
    output
        Folder for the model, its evidence, tables and report.
    genes
        Which genes the model has.
    evidence
        What it is inferred from.
    source
        What the inputs are.
    name
        Name of the model; otherwise that of the folder.
    iterations
        Most passes over the evidence.
    tolerance
        Passes end when a step of expectation maximisation raises the mean log-likelihood of a junction by
        less.
    pseudocount
        Added to the expected number of every possible choice, so that what few junctions did not show stays
        possible.
    accelerate
        Try to go further in every third pass, in the direction of the two before it (SQUAREM).
    error_rate
        How probable it is that a nucleotide of a junction was misread: a number, or fit to find it together
        with the model; otherwise junctions are taken as they are.
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
            layout=source.choice,
            name=name,
            iterations=iterations,
            tolerance=tolerance,
            pseudocount=pseudocount,
            accelerate=accelerate,
            error_rate=_rate(error_rate),
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


def _rate(said: str | None) -> float | Literal["fit"] | None:
    """An error rate as it was said."""
    if said is None:
        return None
    if said == "fit":
        return "fit"
    try:
        return float(said)
    except ValueError:
        raise InvalidInput("error_rate", found=said, expected="fit or a number") from None


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
