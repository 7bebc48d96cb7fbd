"""What commands say while they run: on standard error, and progress only on a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Bar", "RowProgress", "say", "say_if_compiling"]


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


def say_if_compiling(part: str = "", seconds: int = 15) -> None:
    """Say that the first run compiles, if nothing compiled is there yet.

    Parameters
    ----------
    part
        Name of a module of kernels that the command needs; by default any will do.
    seconds
        How long it takes.
    """
    from plait._jit import compiled_cache

    if next(compiled_cache().rglob(f"{part}*.nbi"), None) is None:
        say(f"compiling for this processor (once, about {seconds} s)")


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
        elapsed = self._progress.tasks[0].elapsed or 0.0
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

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
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
