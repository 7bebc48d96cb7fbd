"""What commands have in common: options, inputs, and what users are told while they run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, make_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol, Self

from cyclopts import Parameter, Token

from plait.errors import InvalidInput, PlaitError
from plait.lang.compiling import compiled_kernels, compiling_seconds, helped, listen, work_time

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from rich.progress import Progress

    from plait.lang.ahead import Ahead


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
def files_of(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """The same files, with one that holds what comes by standard input in the place of ``-``.

    It is a temporary file, because files are read more than once.

    Raises
    ------
    InvalidInput
        If two of them are ``-``.
    """
    asked = [path for path in paths if str(path) == HYPHEN]
    if not asked:
        yield list(paths)
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
