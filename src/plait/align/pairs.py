"""What is written about an aligned pair, and the columns it can be written as."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from plait.align.results import Alignment
from plait.align.text import aligned_strings
from plait.errors import InvalidInput

__all__ = ["COLUMNS", "DEFAULT_COLUMNS", "AlignedPair", "PairColumn", "check_columns", "needs_alignment"]

_Value = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedPair:
    """Two sequences and how they align.

    Attributes
    ----------
    query_name, target_name
        First words of their headers.
    query, target
        The whole sequences, letters as read.
    score
        Score of the alignment.
    alignment
        The alignment, if more than the score was asked for.
    mode
        ``"global"``, ``"local"``, ...
    bit_score, evalue
        Statistics of the score, where there are any.
    target_description
        What follows the first word of the target's header.
    target_record
        Number of the target in its file or database, counted from 0, if it matters.
    """

    query_name: str
    target_name: str
    query: bytes
    target: bytes
    score: int
    alignment: Alignment | None
    mode: str
    bit_score: float | None = None
    evalue: float | None = None
    target_description: str = ""
    target_record: int | None = None


@dataclass(frozen=True, slots=True)
class PairColumn:
    """One column of a table of pairs.

    Attributes
    ----------
    kind
        Type of its values.
    value
        Its value for a pair; None if the pair has none.
    needs_alignment
        Whether the value is in the alignment, and not known from the score alone.
    """

    kind: Literal["string", "integer", "number"]
    value: Callable[[AlignedPair], _Value]
    needs_alignment: bool = False


def _of_alignment(kind: Literal["string", "integer", "number"], name: str) -> PairColumn:
    def value(pair: AlignedPair) -> _Value:
        found: _Value = getattr(pair.alignment, name, None)
        return found

    return PairColumn(kind, value, needs_alignment=True)


def _aligned(side: int) -> PairColumn:
    def value(pair: AlignedPair) -> _Value:
        if pair.alignment is None:
            return None
        return aligned_strings(pair.alignment, pair.query, pair.target)[side]

    return PairColumn("string", value, needs_alignment=True)


#: Every column, in the order of the documentation. Coordinates are 0-based and half-open; identity and
#: similarity are shares, from 0 to 1, of `length`, the columns of the alignment with its gaps.
COLUMNS: Final[Mapping[str, PairColumn]] = MappingProxyType(
    {
        "query": PairColumn("string", lambda pair: pair.query_name),
        "target": PairColumn("string", lambda pair: pair.target_name),
        "score": PairColumn("integer", lambda pair: pair.score),
        "bit_score": PairColumn("number", lambda pair: pair.bit_score),
        "evalue": PairColumn("number", lambda pair: pair.evalue),
        "query_start": _of_alignment("integer", "query_start"),
        "query_end": _of_alignment("integer", "query_end"),
        "query_length": PairColumn("integer", lambda pair: len(pair.query)),
        "target_start": _of_alignment("integer", "target_start"),
        "target_end": _of_alignment("integer", "target_end"),
        "target_length": PairColumn("integer", lambda pair: len(pair.target)),
        "identity": _of_alignment("number", "identity"),
        "similarity": _of_alignment("number", "similarity"),
        "length": _of_alignment("integer", "length"),
        "matches": _of_alignment("integer", "matches"),
        "mismatches": _of_alignment("integer", "mismatches"),
        "gaps": _of_alignment("integer", "gaps"),
        "gap_openings": _of_alignment("integer", "gap_openings"),
        "mode": PairColumn("string", lambda pair: pair.mode),
        "cigar": _of_alignment("string", "cigar"),
        "query_aligned": _aligned(0),
        "target_aligned": _aligned(1),
    }
)

#: Columns of a table for which none are chosen.
DEFAULT_COLUMNS: Final = tuple(
    name for name in COLUMNS if name not in ("bit_score", "evalue", "mode", "query_aligned", "target_aligned")
)


def check_columns(
    names: Sequence[str] | None,
    columns: Iterable[str] = COLUMNS,
    default: tuple[str, ...] = DEFAULT_COLUMNS,
) -> tuple[str, ...]:
    """Check a choice of columns.

    Parameters
    ----------
    names
        Names of `columns` in the order wanted; `default` if None.
    columns, default
        The columns there are, and those that nobody has to name.

    Returns
    -------
    tuple of str
        The names.

    Raises
    ------
    InvalidInput
        If there are none, one is unknown or one is there twice.
    """
    if names is None:
        return default
    known = tuple(columns)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise InvalidInput(
                "columns",
                found=repr(name),
                expected=f"names out of {', '.join(known)}",
                hint=f"did you mean {close[0]}?" if close else None,
            )
        if list(names).count(name) > 1:
            raise InvalidInput("columns", found=f"{name!r} more than once", expected="every column once")
    if not names:
        raise InvalidInput("columns", found="no name", expected=f"names out of {', '.join(known)}")
    return tuple(names)


def needs_alignment(names: Sequence[str], columns: Mapping[str, PairColumn] = COLUMNS) -> bool:
    """Whether a choice of columns needs more than scores.

    Parameters
    ----------
    names
        Their names.
    columns
        The columns there are.
    """
    return any(columns[name].needs_alignment for name in names)
