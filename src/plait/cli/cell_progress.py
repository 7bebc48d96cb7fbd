"""A bar of the cells of matrices, for commands that align."""

from __future__ import annotations

from typing import Protocol

from plait.cli.console import Bar

__all__ = ["CellProgress"]

_GIGA = 1e9


class _State(Protocol):
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

    def __call__(self, state: _State) -> None:
        """Show a new state: cells visited, of all."""
        self.show(state.cells / _GIGA, "{:,.1f} GCUPS", state.cells, state.total_cells)
