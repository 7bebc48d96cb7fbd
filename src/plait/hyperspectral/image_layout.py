"""Size and sample type of a cube, and checks of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from plait.errors import InvalidInput

__all__ = ["ImageLayout", "Table", "check_choice", "check_length", "check_number"]

_MOST = 65536
#: A row of numbers for each band.
Table: TypeAlias = tuple[tuple[int, ...], ...]


def check_number(name: str, value: object, low: int, high: int, why: str = "") -> None:
    """Check that a parameter is a whole number in a range.

    Raises
    ------
    InvalidInput
        If it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(name, found=repr(value), expected=f"a whole number from {low} to {high}{why}")


def check_choice(name: str, value: object, choices: tuple[Any, ...]) -> None:
    """Check that a parameter is one of several.

    Raises
    ------
    InvalidInput
        If it is not.
    """
    if value not in choices:
        raise InvalidInput(name, found=repr(value), expected=f"one of {', '.join(map(str, choices))}")


def check_length(name: str, found: int, expected: int) -> None:
    """Check that a table has an entry for each band.

    Raises
    ------
    InvalidInput
        If it has not.
    """
    if found != expected:
        raise InvalidInput(name, found=f"{found} entries", expected=f"{expected}, one for each band")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLayout:
    """Size and sample type of a cube.

    Attributes
    ----------
    columns, rows, bands
        NX, NY and NZ, each from 1 to 65,536.
    dynamic_range
        D, bits of a sample: 2 to 16, and to 32 with 123.0-B-2.
    signed
        Whether samples are signed, from ``-2**(D-1)`` to ``2**(D-1) - 1``, or unsigned from 0.

    Raises
    ------
    InvalidInput
        If a value is out of its range.
    """

    columns: int
    rows: int
    bands: int
    dynamic_range: int
    signed: bool = False

    def __post_init__(self) -> None:
        for name in ("columns", "rows", "bands"):
            check_number(name, getattr(self, name), 1, _MOST)
        check_number("dynamic_range", self.dynamic_range, 2, 32)

    @property
    def least(self) -> int:
        """Smallest sample value, s_min."""
        return -(1 << (self.dynamic_range - 1)) if self.signed else 0

    @property
    def middle(self) -> int:
        """Sample value in the middle, s_mid."""
        return 0 if self.signed else 1 << (self.dynamic_range - 1)

    @property
    def largest(self) -> int:
        """Largest sample value, s_max."""
        return (1 << self.dynamic_range) - 1 + self.least

    @property
    def samples(self) -> int:
        """Samples of the whole cube."""
        return self.columns * self.rows * self.bands
