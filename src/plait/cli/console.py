"""What commands say while they run: on standard error, and progress only on a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

__all__ = ["RowProgress", "say", "say_if_compiling"]


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


def say_if_compiling() -> None:
    """Say that the first run compiles, if nothing compiled is there yet."""
    from plait._jit import compiled_cache

    if next(compiled_cache().rglob("*.nbi"), None) is None:
        say("compiling for this processor (once, about 15 s)")


class RowProgress:
    """A bar of bytes read, with rows, rows a second and the time that is left; a context manager.

    Parameters
    ----------
    title
        Stands before the bar.
    """

    def __init__(self, title: str) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[rows]:,} rows"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            transient=True,
        )
        self._task = self._progress.add_task(title, total=None, rows=0, rate="")

    def __call__(self, state: _State) -> None:
        """Show a new state: rows written, and bytes read out of all."""
        elapsed = self._progress.tasks[0].elapsed or 0.0
        rate = f"{state.rows / elapsed:,.0f}/s" if elapsed > 0 else ""
        self._progress.update(
            self._task, completed=state.bytes_read, total=state.total_bytes, rows=state.rows, rate=rate
        )

    def __enter__(self) -> RowProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
