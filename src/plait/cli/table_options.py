"""Options of commands that read and write tables, and what of a run they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from plait.cli.options import HYPHEN, MACHINE, Flag, Several, Signed, WholeNumber, files_of, say
from plait.errors import InvalidInput

if TYPE_CHECKING:
    from plait.formats.layouts import LayoutChoice
    from plait.formats.tables import PartSettings
    from plait.run.executor import Executor
    from plait.vdj.germline import GermlineSet
    from plait.vdj.model import RecombinationModel
    from plait.vdj.models import PathModel

# Written out here, so that help and checks of options need not load what the words mean.
AmbiguousOption = Literal["first", "all", "fail"]
CallsOption = Literal["ignore", "use", "v", "j"]
ChainOption = Literal["auto", "vj", "vdj", "vddj"]
EmptyDOption = Literal["positions", "once", "none"]
ExecutorOption = Literal["local", "dask"]
LayoutOption = Literal[
    "auto",
    "airr",
    "immunarch",
    "trust4",
    "trust4-cdr3",
    "vdjtools",
    "mixcr",
    "10x",
    "bd",
    "adaptive",
    "adaptive-mouse",
    "vdjdb",
    "imgt",
]
JunctionLayoutOption = Literal[LayoutOption, "lines"]
ModelOption = Literal["dp2", "dp1", "exhaustive"]
OverflowOption = Literal["null", "float", "wide"]
StrandsOption = Literal[1, 2]

#: Groups of options.
INPUTS: Final = "What the inputs are"
PATHS: Final = "Path-counting model"
PARTS: Final = "Folders of parts (-o NAME/)"

_MOST_VALUES = 1000


def values_of(option: str, text: str | None) -> tuple[int, ...]:
    """The values of a sweep, from ``A:B`` (both ends included) or a list with commas between.

    >>> values_of("--sweep-pi", "0:4"), values_of("--sweep-nu", "0,5,10"), values_of("--sweep-nu", None)
    ((0, 1, 2, 3, 4), (0, 5, 10), ())
    """
    if text is None:
        return ()
    first, colon, last = text.partition(":")
    parts = [part.strip() for part in ((first, last) if colon else text.split(","))]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise _bad_values(option, text)
    numbers = [int(part) for part in parts]
    if not colon:
        return tuple(numbers)
    if not 0 <= numbers[1] - numbers[0] < _MOST_VALUES:
        raise _bad_values(option, text)
    return tuple(range(numbers[0], numbers[1] + 1))


def _bad_values(option: str, text: str) -> InvalidInput:
    return InvalidInput(
        option, found=repr(text), expected="a range such as 0:4, both ends included, or a list such as 0,2,4"
    )


@Parameter(name="*", group=INPUTS)
@dataclass(frozen=True, kw_only=True)
class JunctionSource:
    """Options that say what tables of junctions are.

    Attributes
    ----------
    layout
        What the tables are; auto recognises each by its header. lines: text without a header line, a junction
        in every line, behind it, after tabs, V and J calls if they are used; with --of nt,aa nucleotides,
        amino acids, V and J.
    column
        FIELD=COLUMN: a column of the tables for an AIRR field, as junction=cdr3_nt; may be given several
        times, and needs no known layout where all that is used is named.
    """

    layout: JunctionLayoutOption = "auto"
    column: Annotated[tuple[str, ...], Several] = ()

    @property
    def choice(self) -> LayoutChoice:
        """The layout they ask for."""
        if not self.column:
            return self.layout
        from plait.formats.layouts import columns_given

        return columns_given(self.layout, self.column)


@Parameter(name="*", group=INPUTS)
@dataclass(frozen=True, kw_only=True)
class Source(JunctionSource):
    """Options that say what the inputs are.

    Attributes
    ----------
    layout
        What the tables are; auto recognises each by its header.
    """

    layout: LayoutOption = "auto"


@Parameter(name="*", group=INPUTS)
@dataclass(frozen=True, kw_only=True)
class SheetSource(Source):
    """Options that say what the inputs are, and whose.

    Attributes
    ----------
    sheet
        In the place of inputs, samples as CSV or TSV: file, and if wanted subject_id (blank: the file says
        it) and other columns, as the condition; all are added to the rows of the file.
    """

    sheet: Path | None = None

    def files(self, inputs: Sequence[Path]) -> Sequence[Path]:
        """The inputs, or the files of the sheet."""
        if self.sheet is None:
            return inputs
        if inputs:
            raise InvalidInput("--sheet", found="a sheet and inputs beside it", expected="one of both")
        from plait.formats.layouts import FIELDS
        from plait.formats.sheets import read_sample_sheet

        return read_sample_sheet(self.sheet, taken={*FIELDS} - {"locus", "repertoire_id", "subject_id"})


@Parameter(name="*", group=PATHS)
@dataclass(frozen=True, kw_only=True)
class PathLimits:
    """Limits of a path-counting model.

    Attributes
    ----------
    strands
        dp2: hairpins opened on one strand, or on either one of two.
    pi
        Longest palindromic (P) extension of a gene end.
    nu
        dp2: most random (N) nucleotides at a junction; left out, 40 in IGH and 10 in other loci.
    nu_vd
        dp2: another limit between V and D.
    nu_dj
        dp2: another limit between D and J.
    """

    strands: StrandsOption = 1
    pi: WholeNumber = 4
    nu: WholeNumber | None = None
    nu_vd: WholeNumber | None = None
    nu_dj: WholeNumber | None = None

    def model_of(self, locus: str) -> PathModel:
        """The model they ask for, with the limits of a locus.

        Parameters
        ----------
        locus
            As of a germline set; empty if not known.
        """
        from plait.vdj.models import USUAL_NU, PathModel

        given = {name: value for name, value in asdict(self).items() if value is not None}
        if self.nu is None and locus in USUAL_NU and given.get("model", "dp2") == "dp2":
            given["nu"] = USUAL_NU[locus]
        for name in given.keys() & {"sweep_pi", "sweep_nu"}:
            given[name] = values_of(f"--{name.replace('_', '-')}", given[name])
        return PathModel(name=given.pop("model", "dp2"), **given)


@Parameter(name="*", group=PATHS)
@dataclass(frozen=True, kw_only=True)
class SweptModel(PathLimits):
    """Limits of a model, and others to count with besides.

    Attributes
    ----------
    sweep_pi
        dp2: values of pi to count with besides, as 0:4 (both ends included) or 0,2,4.
    sweep_nu
        dp2: values of nu to count with besides; every combination is counted.
    """

    sweep_pi: str | None = None
    sweep_nu: str | None = None


@Parameter(name="*", group=PATHS)
@dataclass(frozen=True, kw_only=True)
class StudiedModel(SweptModel):
    """Options of the path-counting model, which is dp2."""

    sweep_pi: str | None = "0:4"
    sweep_nu: str | None = "0:10"


@Parameter(name="*", group=PATHS)
@dataclass(frozen=True, kw_only=True)
class ModelParameters(SweptModel):
    """Options of a path-counting model.

    Attributes
    ----------
    model
        dp2: extension and erosion at every end; dp1: counts by the total number of N nucleotides;
        exhaustive: the same by enumeration.
    max_n
        dp1, exhaustive: largest total number of N nucleotides; otherwise 10, and 4 for exhaustive.
    empty_d
        dp1, exhaustive: ways in which D can vanish: once for every position in it, once, or none.
    """

    model: ModelOption = "dp2"
    max_n: WholeNumber | None = None
    empty_d: EmptyDOption = "positions"


@Parameter(name="*", group=MACHINE)
@dataclass(frozen=True, kw_only=True)
class ExecutorParameters:
    """Options that say where the work is done.

    Attributes
    ----------
    executor
        local: threads of this process; dask: a Dask cluster.
    scheduler
        dask: address of a scheduler that runs, as tcp://host:8786; otherwise workers are started on this
        machine.
    scheduler_file
        dask: file in which a scheduler that runs has written its address.
    workers
        dask: worker processes to start on this machine; otherwise as many as its processors allow.
    worker_memory
        dask: memory of each worker that is started, as 4GiB; otherwise its share of this machine's.
    """

    executor: ExecutorOption = "local"
    scheduler: str | None = None
    scheduler_file: Path | None = None
    workers: WholeNumber | None = None
    worker_memory: str | None = None

    def open(self, threads: int | None = None) -> AbstractContextManager[Executor]:
        """The executor they ask for; closed on exit.

        Parameters
        ----------
        threads
            Threads of this process, or of each worker that is started.
        """
        from plait.run.executor import open_executor

        options = {field.name: getattr(self, field.name) for field in fields(ExecutorParameters)}
        return open_executor(options.pop("executor"), threads=threads, **options)

    def ask_driver(self, device: str) -> None:
        """Have the driver of GPUs start while modules are loaded: it takes a third of a second.

        Parameters
        ----------
        device
            Where the work is done, as the user said.
        """
        from plait.devices.driver import probe

        if self.executor == "local" and device not in ("cpu", "reference"):
            Thread(target=probe).start()


@Parameter(name="*", group=MACHINE)
@dataclass(frozen=True, kw_only=True)
class RunParameters(ExecutorParameters):
    """Options that say how a run that can be resumed is done.

    Attributes
    ----------
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use. With
        workers that are started: threads of each, otherwise 1.
    resume
        Go on with what a stopped run of the same command had done.
    """

    threads: WholeNumber | None = None
    resume: Flag = False

    def open(self, threads: int | None = None) -> AbstractContextManager[Executor]:
        """The executor they ask for, with their threads."""
        return super().open(self.threads if threads is None else threads)


@Parameter(name="*", group=PARTS)
@dataclass(frozen=True, kw_only=True)
class PartParameters:
    """Options of outputs that are folders of parts: their names end in a slash.

    Attributes
    ----------
    partition
        Column of text by whose values the rows are put into folders of their own, as subject_id.
    part_rows
        Rows of a part; otherwise 262144, or half as many from text, and fewer where rows are long.
    """

    partition: str | None = None
    part_rows: Annotated[WholeNumber | None, Signed] = None

    @property
    def settings(self) -> PartSettings:
        """The settings they ask for."""
        from plait.formats.tables import PartSettings

        return PartSettings(self.partition, self.part_rows)


#: Genes of which a fault is told one by one.
_MOST_FAULTS = 6


def model_named(name: str, *, repair_anchors: bool = False) -> RecombinationModel:
    """The model of that name, file or folder, after telling what keeps genes out of it or is wrong with them.

    Parameters
    ----------
    name
        As the user gave it.
    repair_anchors
        Whether genes with a wrong conserved codon are mended where that is possible beyond doubt.
    """
    from plait.vdj.model.recombination_model import gene_faults, load_model, repair_model

    model = load_model(name)
    for note in model.notes():
        say(f"model {model.name}: {note}")
    mended, told = repair_model(model)
    _tell_faults(f"model {model.name}", gene_faults(model), told, repair_anchors)
    return mended if repair_anchors else model


def germline_named(
    name: str, *, anchors: Path | None = None, repair_anchors: bool | None = None
) -> GermlineSet:
    """The germline set of that name, file or folder, after telling what was decided and what is wrong in it.

    Parameters
    ----------
    name
        As the user gave it.
    anchors
        Table of anchors that replace those of the set.
    repair_anchors
        As for `model_named`; None where the command has no such option.
    """
    from plait.vdj.germline import load_germline
    from plait.vdj.germline.anchors import anchor_faults, repair_germline

    alleles = load_germline(name, anchors=anchors)
    for note in alleles.notes:
        say(f"germline set {alleles.name}: {note}")
    mended, told = repair_germline(alleles)
    _tell_faults(f"germline set {alleles.name}", anchor_faults(alleles.alleles()), told, repair_anchors)
    return mended if repair_anchors else alleles


def _tell_faults(
    whose: str, faults: Mapping[str, str], mendable: Mapping[str, str], repair: bool | None
) -> None:
    if repair:
        for name, what in mendable.items():
            say(f"{whose}: repaired {name}: {what}")
        faults = {name: fault for name, fault in faults.items() if name not in mendable}
    for name, fault in list(faults.items())[:_MOST_FAULTS]:
        say(f"{whose}: warning: {name}, {fault}")
    if len(faults) > _MOST_FAULTS:
        say(f"{whose}: warning: {len(faults) - _MOST_FAULTS} more; plait germline validate lists them")
    if mendable and not repair:
        how = "give --anchors" if repair is None else "--repair-anchors does"
        say(f"{whose}: rows of {', '.join(mendable)} come out wrong; the conserved codon can be found: {how}")


@contextmanager
def tables_of(inputs: Sequence[Path], resume: bool) -> Iterator[list[Path]]:
    """The tables, with a file that holds what comes by standard input in the place of ``-``.

    Parameters
    ----------
    inputs
        As the user gave them.
    resume
        Whether a stopped run is to go on.

    Raises
    ------
    InvalidInput
        If one is standard input, and the run is to go on: nobody can tell whether it is the same.
    """
    if resume and HYPHEN in map(str, inputs):
        raise InvalidInput("resume", found="standard input", expected="files, which can be told again")
    with files_of(inputs) as files:
        yield files
