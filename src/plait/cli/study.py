"""``plait vdj study``, its report, and ``plait demo``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import Parameter

from plait.cli.options import (
    MODEL,
    AmbiguousOption,
    Bar,
    ChainOption,
    DeviceOption,
    Flag,
    FolderOutput,
    OptionalOutput,
    RunParameters,
    Source,
    StudiedModel,
    WholeNumber,
    germline_named,
    model_named,
    say,
)
from plait.errors import InvalidInput
from plait.lang.compiling import work_time

if TYPE_CHECKING:
    from plait.vdj.convergence.stages import StudyProgress
    from plait.vdj.convergence.study import Study


@Parameter(name="*", group="Regression")
@dataclass(frozen=True, kw_only=True)
class RegressionParameters:
    """Options of the regression.

    Attributes
    ----------
    no_regression
        Leave the regression out.
    models
        Limits pi/nu of the models whose path counts are predictors, as 4/10,0/10; otherwise the model
        itself, the one without P, and the one with at most 4 N at a junction.
    lambdas
        Penalties on the path.
    folds
        Parts of the cross-validation.
    halves
        Random halves of the clonotypes in which the choice of predictors is repeated; 0 for none.
    seed
        What folds and halves are drawn from.
    """

    no_regression: Flag = False
    models: str | None = None
    lambdas: WholeNumber = 100
    folds: WholeNumber = 5
    halves: WholeNumber = 50
    seed: WholeNumber = 0


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class PgenParameters:
    """Options of generation probabilities.

    Attributes
    ----------
    model
        A recombination model, by name or path (see plait vdj pgen): generation probabilities are computed and
        compared with path counts, and sharing with what they lead to expect. Without it there are none.
    model_calls
        use: of junctions made with the V and J gene of the clonotype; ignore: with any genes of the model
        (genes are left out of --key, then).
    """

    model: str | None = None
    model_calls: Literal["use", "ignore"] = "use"


@Parameter(name="*", group="Sharing")
@dataclass(frozen=True, kw_only=True)
class SharingParameters:
    """Options of who shares what, and what generation leads to expect.

    Attributes
    ----------
    shared_by
        A clonotype counts as shared if so many subjects have it.
    key
        What makes a clonotype where subjects are compared: cdr3nt or cdr3aa, behind it +v and +j where the
        gene is part of it, as cdr3aa+v+j. Path counts and the regression are of cdr3nt+v+j.
    mismatches
        Cluster these clonotypes within so many mismatches, in sharing.parquet.
    edits
        The same within so many edits.
    """

    shared_by: WholeNumber = 2
    key: str = "cdr3nt+v+j"
    mismatches: WholeNumber | None = None
    edits: WholeNumber | None = None


_PGEN = PgenParameters()
_REGRESSION = RegressionParameters()
_SHARING = SharingParameters()


def study(
    sheet: Path,
    *,
    germline: str,
    output: FolderOutput,
    anchors: Path | None = None,
    repair_anchors: Flag = False,
    sharing: SharingParameters = _SHARING,
    source: Source = Source(),
    subject: str | None = None,
    parameters: StudiedModel = StudiedModel(),
    chain: ChainOption = "auto",
    ambiguous: AmbiguousOption = "first",
    overflow: Literal["null", "float"] = "null",
    regression: RegressionParameters = _REGRESSION,
    pgen: PgenParameters = _PGEN,
    cache: Path | None = None,
    force: Flag = False,
    device: DeviceOption = "auto",
    run: RunParameters = RunParameters(),
) -> None:
    """Study convergent recombination: path counts, sharing, frequency, and what predicts sharing.

    Parameters
    ----------
    sheet
        Samples, CSV or TSV: file, if wanted subject_id (blank: the file says it), and covariates.
    germline
        Name of a bundled germline set (see plait germline list), or a file or folder.
    output
        Folder for study.json, tables, clonotypes and path counts.
    anchors
        CSV table gene,anchor_index[,function] of anchors that replace those of the germline set.
    repair_anchors
        Mend genes of the germline set and of the model whose conserved codon is not where these say, where
        there is one way to do so; each is named, and recorded in study.json.
    sharing
        Who shares what.
    source
        What the files are.
    subject
        Column that tells subjects apart; by default subject_id, or what the layout has for it. Where a file
        has none, its name is its subject.
    parameters
        The path-counting model.
    chain
        What is joined; auto takes what the germline set implies.
    ambiguous
        What a list of calls means: its first one, the sum over all, or a status.
    overflow
        Counts of 2^63 and more: a status (null), or all counts as floating-point numbers (float).
    regression
        The regression.
    pgen
        Generation probabilities.
    cache
        Folder of path counts that several studies share; otherwise counts in the output.
    force
        Replace an earlier study in the output; path counts are kept.
    device
        auto takes the first GPU that can be used, else the CPU; cpu; cuda, cuda:N or cuda:all for GPUs;
        reference is plain Python.
    run
        How the work is done.
    """
    from plait.vdj.convergence.study import study as study_files
    from plait.vdj.repertoires.sharing import SharingSettings

    alleles = germline_named(germline, anchors=anchors, repair_anchors=repair_anchors)
    recombination = None if pgen.model is None else model_named(pgen.model, repair_anchors=repair_anchors)
    start = work_time()
    with run.open() as executor, StudyBar() as progress:
        found = study_files(
            sheet,
            output,
            germline=alleles,
            anchors=anchors,
            model=parameters.model_of(alleles.locus),
            chain=chain,
            ambiguous=ambiguous,
            overflow=overflow,
            layout=source.choice,
            subject=subject,
            shared_by=sharing.shared_by,
            sharing=SharingSettings(key=sharing.key, mismatches=sharing.mismatches, edits=sharing.edits),
            predictor_models=models_of(regression.models),
            regression=not regression.no_regression,
            lambdas=regression.lambdas,
            folds=regression.folds,
            halves=regression.halves,
            seed=regression.seed,
            recombination_model=recombination,
            model_calls=pgen.model_calls,
            cache=cache,
            device=device,
            executor=executor,
            resume=run.resume,
            force=force,
            progress=progress,
        )
    _print(found, start)


def _print(found: Study, start: float) -> None:
    from plait.reports.study_report import study_text

    print(study_text(found, seconds=work_time() - start), end="")


def models_of(text: str | None) -> tuple[tuple[int, int], ...] | None:
    """Limits pi and nu of models, written with a slash between and commas.

    >>> models_of("4/10, 0/10"), models_of(None)
    (((4, 10), (0, 10)), None)
    """
    if text is None:
        return None
    found = []
    for part in text.split(","):
        pi, slash, nu = (piece.strip() for piece in part.partition("/"))
        if not slash or not all(n.isascii() and n.isdigit() and len(n) < 6 for n in (pi, nu)):
            raise InvalidInput(
                "--models", found=repr(text), expected="limits pi/nu with commas between, as 4/10,0/10"
            )
        found.append((int(pi), int(nu)))
    return tuple(found)


class StudyBar(Bar):
    """A bar for each stage; a context manager."""

    def __init__(self) -> None:
        super().__init__("study")

    def __call__(self, state: StudyProgress) -> None:
        """Show a new state."""
        self.rename(state.stage)
        self.show(0, "", state.done, state.total)


def report(
    folder: Path,
    /,
    *,
    output: OptionalOutput = None,
    figures: bool = True,
) -> None:
    """Write the report of a study: one HTML file that needs no network, and its figures.

    Parameters
    ----------
    folder
        The output folder of plait vdj study.
    output
        The page to write; report.html in the folder by default.
    figures
        Write every figure to the folder figures too, as PNG and SVG.
    """
    from plait.reports.study_report import report_text, write_study_report

    print(report_text(write_study_report(folder, output, figures=figures)), end="")


def demo(
    *,
    output: FolderOutput,
    rows: WholeNumber | None = None,
    device: DeviceOption = "auto",
    force: Flag = False,
) -> None:
    """Study the TRB repertoires of 12 human donors, from path counts under 55 models to a report.

    Parameters
    ----------
    output
        Folder for samples.csv and study, which holds report.html; made if it is not there.
    rows
        Take only so many rows, spread over the donors.
    device
        Where to count: auto, cpu, cuda, cuda:N or cuda:all.
    force
        Replace an earlier demo in the output.
    """
    from plait.reports.demo import run_demo

    say("studying the repertoires of 12 donors under 55 models")
    with StudyBar() as progress:
        told = run_demo(output, rows=rows, device=device, force=force, progress=progress)
    print(told, end="")
