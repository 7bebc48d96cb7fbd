"""What commands have in common: options, those of tables and of runs too, inputs, and what users are told."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, make_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol, Self

from cyclopts import Parameter, Token

from plait.errors import InvalidInput, PlaitError
from plait.lang.compiling import compiled_kernels, compiling_seconds, helped, listen, work_time

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from rich.progress import Progress

    from plait.formats.layouts import LayoutChoice
    from plait.formats.tables import PartSettings
    from plait.lang.ahead import Ahead
    from plait.run.executor import Executor
    from plait.vdj.germline import GermlineSet
    from plait.vdj.model import RecombinationModel
    from plait.vdj.models import PathModel


class _State(Protocol):
    @property
    def rows(self) -> int: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def total_bytes(self) -> int: ...


def say(message: str) -> None:
    """Print a line for the user that is no result."""
    print(f"plait: {message}", file=sys.stderr, flush=True)


@contextmanager
def compilation_told(words: Sequence[str] = ()) -> Iterator[None]:
    """Compile what a command line needs, where it pays in several processes; say how much and how long."""
    before, seconds = len(compiled_kernels()), compiling_seconds()
    ahead: list[Ahead] = []

    def begun(*_: str) -> None:
        # The line that tells all comes over this one.
        if sys.stderr.isatty():
            print("plait: compiling for this machine", end="\r", file=sys.stderr, flush=True)

    def ask(kernel: str, types: str) -> Callable[[], bool] | None:
        begun()
        if not ahead:
            from plait.lang.ahead import Ahead

            ahead.append(processes.enter_context(Ahead(words)))
        return ahead[0](kernel, types)

    try:
        with listen(begun), ExitStack() as processes, helped(ask):
            yield
    finally:
        if count := len(compiled_kernels()) - before:
            kernels = f"{count} kernel{'' if count == 1 else 's'} for this machine"
            by = f" by {ahead[0].processes} processes" if ahead and ahead[0].processes else ""
            say(f"compiled {kernels} in {compiling_seconds() - seconds:.1f} s{by}, which are in no rate")


class Bar:
    """A bar with some facts and the time that is left; a context manager. Without a terminal, nothing.

    Parameters
    ----------
    title
        Stands before the bar.
    *facts
        Formats of the facts, which are fields of ``task.fields``.
    """

    def __init__(self, title: str, *facts: str) -> None:
        self._progress: Progress | None = None
        if not sys.stderr.isatty():
            return
        # Loaded here, because that takes longer than many a command.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            *(TextColumn(fact) for fact in facts),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(title, total=None, done=0, rate="")
        self._begun = work_time()

    def show(self, done: float, rate: str, completed: int, total: int) -> None:
        """Show a new state.

        Parameters
        ----------
        done
            What has been done, for the field ``done``.
        rate
            Format of what is done a second.
        completed, total
            Length of the bar.
        """
        if self._progress is None:
            return
        elapsed = work_time() - self._begun
        text = rate.format(done / elapsed) if elapsed > 0 else ""
        self._progress.update(self._task, completed=completed, total=total, done=done, rate=text)

    def rename(self, title: str) -> None:
        """Begin something else: another title, and the time from now on.

        Parameters
        ----------
        title
            Stands before the bar.
        """
        if self._progress is None or self._progress.tasks[0].description == title:
            return
        self._progress.reset(self._task, description=title, done=0, rate="")
        self._begun = work_time()

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
            self._begun = work_time()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()


class RowProgress(Bar):
    """A bar of bytes read, with rows, rows a second and the time that is left; a context manager.

    Parameters
    ----------
    title
        Stands before the bar.
    unit
        What is counted.
    """

    def __init__(self, title: str, unit: str = "rows") -> None:
        super().__init__(title, f"{{task.fields[done]:,}} {unit}")

    def __call__(self, state: _State) -> None:
        """Show a new state: rows written, and bytes read out of all."""
        self.show(state.rows, "{:,.0f}/s", state.bytes_read, state.total_bytes)


_GIGA = 1e9


class _CellState(Protocol):
    @property
    def cells(self) -> int: ...
    @property
    def total_cells(self) -> int: ...


class CellProgress(Bar):
    """A bar of cells visited, with thousand million cells a second and the time that is left.

    A context manager, silent where standard error is no terminal.

    Parameters
    ----------
    title
        Stands before the bar.
    """

    def __call__(self, state: _CellState) -> None:
        """Show a new state: cells visited, of all."""
        self.show(state.cells / _GIGA, "{:,.1f} GCUPS", state.cells, state.total_cells)


def _whole_number(kind: object, tokens: Sequence[Token]) -> int:
    """Exactly what is written: the default turns 4.5 into 4 without a word."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"found {text!r}, expected a whole number") from None


def _device(kind: object, tokens: Sequence[Token]) -> str:
    from plait.devices.target import check_device

    name = tokens[0].value
    try:
        check_device(name)
    except InvalidInput as wrong:
        raise ValueError(f"found {name!r}, expected {wrong.expected}") from None
    return name


def _file_output(kind: object, tokens: Sequence[Token]) -> Path:
    name = tokens[0].value
    if name.endswith("/"):
        raise ValueError(f"found {name!r}, expected the name of a file")
    return Path(name)


def _table_output(kind: object, tokens: Sequence[Token]) -> Path | str:
    name = tokens[0].value
    return name if name.endswith("/") or "://" in name else Path(name)


#: Groups of options, which help shows in the order of the alphabet, below those of the command alone.
MODEL: Final = "Recombination model"
MACHINE: Final = "Where it runs"
DeviceOption = Annotated[str, Parameter(converter=_device, group=MACHINE)]
WholeNumber = Annotated[int, Parameter(converter=_whole_number)]
ThreadsOption = Annotated[WholeNumber | None, Parameter(group=MACHINE)]
FolderOutput = Annotated[Path, Parameter(name=["--output", "-o"])]
FileOutput = Annotated[Path, Parameter(name=["--output", "-o"], converter=_file_output)]
#: Of tables: a folder of parts keeps the slash in which it ends, an address its own.
TableOutput = Annotated[Path | str, Parameter(name=["--output", "-o"], converter=_table_output)]
OptionalTable = Annotated[Path | str | None, Parameter(name=["--output", "-o"], converter=_table_output)]
#: A table beside the output.
FurtherTable = Annotated[Path | str | None, Parameter(converter=_table_output)]
OptionalOutput = Annotated[Path | None, Parameter(name=["--output", "-o"], converter=_file_output)]
#: A file beside the output.
FurtherFile = Annotated[Path | None, Parameter(converter=_file_output)]
KindOption = Literal["protein", "dna"]
Flag = Annotated[bool, Parameter(negative="")]
#: Of options that can be given several times.
Several: Final = Parameter(negative="", show_default=False)
#: Of values that may begin with a minus sign, so that what is wrong with them can be said.
Signed: Final = Parameter(allow_leading_hyphen=True)
#: The option that a field of settings is, by its type.
_OPTION_OF: Final[Mapping[object, object]] = {
    int: Annotated[WholeNumber, Signed],
    int | None: Annotated[WholeNumber | None, Signed],
    float | None: Annotated[float | None, Signed],
    bool: Flag,
}


def options_of(settings: type[DataclassInstance], group: str, **kinds: object) -> Any:
    """A class of options: the fields of settings with their defaults, and their docstring as help.

    Parameters
    ----------
    settings
        A dataclass.
    group
        Where help shows them.
    **kinds
        Types of options that are not those of their fields.
    """
    found = [
        (own.name, kinds.get(own.name, _OPTION_OF.get(own.type, own.type)), own.default)
        for own in fields(settings)
    ]
    told = {"__doc__": settings.__doc__, "__module__": settings.__module__}
    return Parameter(name="*", group=group)(
        make_dataclass(settings.__name__, found, namespace=told, kw_only=True)
    )


#: What stands for standard input or output.
HYPHEN: Final = "-"
#: Options whose value it may be, as they are written with one.
_WITH_HYPHEN: Final = {"-o": "--output", "--output": "--output", "--strand": "--strand"}


def words_of(text: str | None) -> tuple[str, ...] | None:
    """The words of a list with commas between; None where there is none.

    >>> words_of("junction, v_call"), words_of(None)
    (('junction', 'v_call'), None)
    """
    return None if text is None else tuple(word.strip() for word in text.split(",") if word.strip())


def with_hyphens(words: Sequence[str]) -> list[str]:
    """The words of a command line, with lone hyphens written so that they are no options.

    >>> with_hyphens(["align", "-", "b.fa", "-o", "-"])
    ['align', './-', 'b.fa', '--output=-']
    """
    found: list[str] = []
    for word in words:
        if word == HYPHEN and found and found[-1] in _WITH_HYPHEN:
            found[-1] = f"{_WITH_HYPHEN[found[-1]]}={HYPHEN}"
        else:
            found.append(f"./{HYPHEN}" if word == HYPHEN else word)
    return found


@contextmanager
def files_of(paths: Sequence[Path]) -> Iterator[Sequence[Path]]:
    """The same files, with one that holds what comes by standard input in the place of ``-``.

    It is a temporary file, because files are read more than once.

    Raises
    ------
    InvalidInput
        If two of them are ``-``.
    """
    asked = [path for path in paths if str(path) == HYPHEN]
    if not asked:
        yield paths
        return
    if len(asked) > 1:
        raise InvalidInput("-", found="standard input as two files", expected="one of them at the most")
    if sys.stdin is None:
        raise InvalidInput("-", found="no standard input, which is closed", expected="one that can be read")
    from plait.formats.atomic import output_errors

    with TemporaryDirectory(prefix="plait-") as folder:
        kept = Path(folder) / "standard-input"
        with output_errors(kept), kept.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield [kept if path in asked else path for path in paths]
        except PlaitError as error:
            # Nobody has named that file.
            error.args = tuple(str(told).replace(str(kept), "standard input") for told in error.args)
            raise


# Options of commands that read and write tables. Written out here, so that help and checks of options need
# not load what the words mean.
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
def tables_of(inputs: Sequence[Path], resume: bool = False) -> Iterator[Sequence[Path]]:
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
