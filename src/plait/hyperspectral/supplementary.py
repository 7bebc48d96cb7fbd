"""Supplementary information tables of 123.0-B-2: wavelengths, scale factors and the like, in the header."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from plait.errors import InvalidInput

__all__ = ["PURPOSES", "STRUCTURES", "SupplementaryTable"]

#: Meaning of the purposes that the standard names; 10 to 15 are the user's.
PURPOSES: Final = {0: "scale", 1: "offset", 2: "wavelength", 3: "full width at half maximum", 4: "defect"}
#: What there is one value of.
STRUCTURES: Final = ("image", "band", "band and column", "row and column")


@dataclass(frozen=True, slots=True, kw_only=True)
class SupplementaryTable:
    """One table.

    Attributes
    ----------
    kind
        What its values are.
    purpose
        0 to 15, see `PURPOSES`.
    structure
        0 to 3, index into `STRUCTURES`.
    values
        In the order of the standard. Floating-point ones as their bits: sign, exponent, significand from the
        most significant bit on.
    user_field
        Four bits that users may give a meaning to.
    depth
        Bits of an integer, 1 to 32.
    significand_bits, exponent_bits, exponent_bias
        Of floating-point values: 1 to 23, 2 to 8, and 0 to ``2**exponent_bits - 1``.
    """

    kind: Literal["unsigned", "signed", "float"]
    purpose: int
    structure: int
    values: tuple[int, ...]
    user_field: int = 0
    depth: int = 32
    significand_bits: int = 23
    exponent_bits: int = 8
    exponent_bias: int = 127

    @property
    def bits(self) -> int:
        """Bits of a value."""
        return 1 + self.exponent_bits + self.significand_bits if self.kind == "float" else self.depth

    def count(self, columns: int, rows: int, bands: int) -> int:
        """Number of values for an image of a size.

        Parameters
        ----------
        columns, rows, bands
            The size.
        """
        return (1, bands, bands * columns, rows * columns)[self.structure]

    @property
    def numbers(self) -> tuple[float, ...]:
        """The values as Python numbers."""
        if self.kind != "float":
            return self.values
        return tuple(self._number(word) for word in self.values)

    def _number(self, word: int) -> float:
        significand = word & ((1 << self.significand_bits) - 1)
        exponent = (word >> self.significand_bits) & ((1 << self.exponent_bits) - 1)
        sign = -1.0 if word >> (self.bits - 1) else 1.0
        if (
            exponent == (1 << self.exponent_bits) - 1
            and self.exponent_bits == 8
            and self.exponent_bias == 127
        ):
            return sign * float("inf") if significand == 0 else float("nan")
        scale = 2.0 ** (max(exponent, 1) - self.exponent_bias - self.significand_bits)
        return sign * scale * (significand + (1 << self.significand_bits) * (exponent > 0))

    def check(self, columns: int, rows: int, bands: int) -> None:
        """Check the values, and that there are as many as an image needs.

        Parameters
        ----------
        columns, rows, bands
            Size of the image.

        Raises
        ------
        InvalidInput
            If a value is out of its range, or there are too few or too many.
        """
        ranges = {
            "purpose": (0, 15), "structure": (0, 3), "user_field": (0, 15), "depth": (1, 32),
            "significand_bits": (1, 23), "exponent_bits": (2, 8),
            "exponent_bias": (0, (1 << self.exponent_bits) - 1),
        }  # fmt: skip
        for name, (low, high) in ranges.items():
            if not low <= getattr(self, name) <= high:
                found, expected = repr(getattr(self, name)), f"a whole number from {low} to {high}"
                raise InvalidInput(f"{name} of a supplementary table", found=found, expected=expected)
        if self.kind not in ("unsigned", "signed", "float"):
            expected = "unsigned, signed or float"
            raise InvalidInput("kind of a supplementary table", found=repr(self.kind), expected=expected)
        needed = self.count(columns, rows, bands)
        if len(self.values) != needed:
            what = f"values of a supplementary table, one for each {STRUCTURES[self.structure]}"
            raise InvalidInput(what, found=str(len(self.values)), expected=str(needed))
        low = -(1 << (self.depth - 1)) if self.kind == "signed" else 0
        high = (1 << self.bits) - 1 + low
        for value in self.values:
            if not low <= value <= high:
                expected = f"whole numbers from {low} to {high}"
                raise InvalidInput("value of a supplementary table", found=str(value), expected=expected)
