"""Small value types shared by every subject."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, NamedTuple

from plait.errors import TargetUnavailable

__all__ = ["Availability", "Provenance", "Tabular"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """How a result was made.

    Attributes
    ----------
    version
        Version of plait.
    device
        Target that ran, for example ``"cpu"``.
    schedule
        Name of the schedule.
    algebra
        Name of the algebra.
    parameters
        Everything else that determines the values.
    """

    version: str
    device: str
    schedule: str
    algebra: str
    parameters: dict[str, Any] = field(default_factory=dict)

    #: Plain dictionary, ready for JSON.
    as_dict = asdict


class Availability(NamedTuple):
    """Whether a device can be used here.

    Attributes
    ----------
    ok
        Whether it can.
    reason, fix
        If not: why, and what to do.
    """

    ok: bool
    reason: str = ""
    fix: str = ""


#: What is shown of a table: rows, and letters of a cell or of the names of the columns.
_SHOWN_ROWS, _SHOWN_LETTERS = 10, 80


class Tabular(ABC):
    """A result that is a table too, whose columns the description of its class tells."""

    __slots__ = ()

    @abstractmethod
    def _table(self, rows: int | None) -> Any:
        """An Arrow table of the first rows, or of all."""

    def to_arrow(self) -> Any:
        """The result as a table.

        Returns
        -------
        pyarrow.Table
            All rows.
        """
        return self._table(None)

    def to_pandas(self) -> Any:
        """The result as a data frame, with the columns of `to_arrow`.

        Returns
        -------
        pandas.DataFrame
            All rows.

        Raises
        ------
        TargetUnavailable
            If pandas is not installed.
        """
        try:
            import_module("pandas")
        except ImportError as error:
            fix = "install it: pip install pandas; to_arrow needs nothing more"
            raise TargetUnavailable("pandas", reason=str(error), fix=fix) from error
        return self.to_arrow().to_pandas()

    def _size(self) -> str:
        rows = len(self) if hasattr(self, "__len__") else self.to_arrow().num_rows
        return f"{rows:,} row{'' if rows == 1 else 's'}"

    def __repr__(self) -> str:
        names = ", ".join(self._table(0).column_names)
        return f"{type(self).__name__}: {self._size()}\n  columns: {_shown(names)}"

    def _repr_html_(self) -> str:
        """The first rows, as notebooks show them; all text is escaped."""
        from html import escape

        table = self._table(_SHOWN_ROWS)
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        head = "".join(f"<th>{escape(_shown(name))}</th>" for name in table.column_names)
        cells = ("".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        first = f", the first {table.num_rows}" if table.num_rows == _SHOWN_ROWS else ""
        told = f"<p>{escape(type(self).__name__)}: {self._size()}{first}</p>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{told}"


def _shown(value: object) -> str:
    """A value as one short line of printable letters."""
    text = "" if value is None else str(value)
    letters = "".join(letter if letter.isprintable() else "?" for letter in text[: _SHOWN_LETTERS + 1])
    return letters if len(letters) <= _SHOWN_LETTERS else f"{letters[: _SHOWN_LETTERS - 3]}..."
