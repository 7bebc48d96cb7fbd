"""A bar of the cells of matrices, for commands that align."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from plait.lang.compiling import compiled_kernels, compiling_seconds, helped, listen, work_time

if TYPE_CHECKING:
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
