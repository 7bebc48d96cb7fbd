"""Kinds of options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, Token

from plait.errors import InvalidInput

__all__ = [
    "AmbiguousOption",
    "ChainOption",
    "DeviceOption",
    "EmptyDOption",
    "LayoutOption",
    "ModelOption",
    "OutputOption",
    "OverflowOption",
    "StrandsOption",
    "WholeNumber",
    "values_of",
]

# Written out here, so that help and checks of options need not load what the words mean.
AmbiguousOption = Literal["first", "all", "fail"]
ChainOption = Literal["auto", "vj", "vdj", "vddj"]
DeviceOption = Literal["auto", "cpu", "reference"]
EmptyDOption = Literal["positions", "once", "none"]
LayoutOption = Literal["airr", "immunarch", "vdjtools", "mixcr"]
ModelOption = Literal["dp2", "dp1", "exhaustive"]
OverflowOption = Literal["null", "float", "wide"]
StrandsOption = Literal[1, 2]


def _whole_number(kind: object, tokens: Sequence[Token]) -> int:
    """Exactly what is written: the default turns 4.5 into 4 without a word."""
    text = tokens[0].value
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"found {text!r}, expected a whole number") from None


WholeNumber = Annotated[int, Parameter(converter=_whole_number)]
OutputOption = Annotated[Path, Parameter(name=["--output", "-o"])]

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
