"""Parameters of the three entropy coders, by the names of the standard, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from plait.errors import InvalidInput
from plait.hyperspectral.image_layout import ImageLayout, check_choice, check_length, check_number

__all__ = ["BlockAdaptive", "Coder", "HybridCoder", "SampleAdaptive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleAdaptive:
    """Parameters of the sample-adaptive entropy coder.

    Attributes
    ----------
    unary_length_limit
        U_max, 8 to 32.
    initial_count_exponent
        gamma_0, 1 to 8.
    rescaling_counter_size
        gamma*, max(4, gamma_0 + 1) to 9, and to 11 with 123.0-B-2.
    accumulator_constant
        K, 0 to D - 2, at most 14; None with a table.
    accumulator_table
        k''_z of each band, as K; None with a constant.
    table_in_header
        Whether the header carries the table.
    """

    unary_length_limit: int = 18
    initial_count_exponent: int = 1
    rescaling_counter_size: int = 6
    accumulator_constant: int | None = 5
    accumulator_table: tuple[int, ...] | None = None
    table_in_header: bool = True

    def check(self, image: ImageLayout) -> None:
        """Check the values, and that they go with an image.

        Raises
        ------
        InvalidInput
            If one does not.
        """
        check_number("unary_length_limit", self.unary_length_limit, 8, 32)
        check_number("initial_count_exponent", self.initial_count_exponent, 1, 8)
        least = max(4, self.initial_count_exponent + 1)
        check_number("rescaling_counter_size", self.rescaling_counter_size, least, 11)
        most = min(image.dynamic_range - 2, 14)
        if (self.accumulator_constant is None) == (self.accumulator_table is None):
            found = "neither" if self.accumulator_table is None else "both"
            expected = "either accumulator_constant or accumulator_table"
            raise InvalidInput("accumulator_constant", found=found, expected=expected)
        if self.accumulator_table is None:
            check_number("accumulator_constant", self.accumulator_constant, 0, most)
            return
        check_length("accumulator_table", len(self.accumulator_table), image.bands)
        for value in self.accumulator_table:
            check_number("accumulator_table", value, 0, most)

    def exponent(self, band: int) -> int:
        """Exponent k'' of a band."""
        if self.accumulator_table is not None:
            return self.accumulator_table[band]
        return self.accumulator_constant or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockAdaptive:
    """Parameters of the block-adaptive entropy coder, that of CCSDS 121.0-B-2.

    Attributes
    ----------
    block_size
        J, 8, 16, 32 or 64 samples.
    reference_interval
        r, 1 to 4,096 blocks. Programs agree on streams in which it is a multiple of 64.
    restricted
        Whether the restricted set of code options is used; it has an effect for D up to 4 alone.
    """

    block_size: int = 64
    reference_interval: int = 4096
    restricted: bool = False

    def check(self, image: ImageLayout) -> None:
        """Check the values, and that they go with an image.

        Raises
        ------
        InvalidInput
            If one does not.
        """
        check_choice("block_size", self.block_size, (8, 16, 32, 64))
        check_number("reference_interval", self.reference_interval, 1, 4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridCoder:
    """Parameters of the hybrid entropy coder of 123.0-B-2.

    Attributes
    ----------
    unary_length_limit, initial_count_exponent, rescaling_counter_size
        As in `SampleAdaptive`.
    initial_sums
        High-resolution accumulator of each band at the start, 0 to ``2**(D + initial_count_exponent) - 1``.
        The compressor may choose them freely: streams do not carry them, and need not. None for
        ``4 * 2**initial_count_exponent``.
    """

    unary_length_limit: int = 18
    initial_count_exponent: int = 1
    rescaling_counter_size: int = 6
    initial_sums: tuple[int, ...] | None = None

    def check(self, image: ImageLayout) -> None:
        """Check the values, and that they go with an image.

        Raises
        ------
        InvalidInput
            If one is out of its range.
        """
        check_number("unary_length_limit", self.unary_length_limit, 8, 32)
        check_number("initial_count_exponent", self.initial_count_exponent, 1, 8)
        least = max(4, self.initial_count_exponent + 1)
        check_number("rescaling_counter_size", self.rescaling_counter_size, least, 11)
        if self.initial_sums is not None:
            check_length("initial_sums", len(self.initial_sums), image.bands)
            for value in self.initial_sums:
                most = (1 << (image.dynamic_range + self.initial_count_exponent)) - 1
                check_number("initial_sums", value, 0, most)


Coder: TypeAlias = SampleAdaptive | BlockAdaptive | HybridCoder
