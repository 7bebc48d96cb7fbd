"""Parameters of the predictor, by the names of the standard, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plait.errors import InvalidInput
from plait.hyperspectral.image_layout import ImageLayout, Table, check_choice, check_length, check_number

__all__ = ["LocalSum", "Mode", "Predictor", "Representatives", "WeightOffsets"]

Mode = Literal["full", "reduced"]
LocalSum = Literal["wide-neighbor", "narrow-neighbor", "wide-column", "narrow-column"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightOffsets:
    """Weight exponent offsets, by which bands learn faster or slower (123.0-B-2).

    Attributes
    ----------
    own
        For each band, the offset of the directional differences, -6 to 5; without meaning in reduced mode.
    others
        For each band z, the offsets of the bands before it, nearest first: min(z, P) numbers from -6 to 5.
    in_header
        Whether the header carries them.
    """

    own: tuple[int, ...]
    others: Table
    in_header: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Representatives:
    """Sample representatives, which stand for samples in sums and differences (123.0-B-2).

    Attributes
    ----------
    resolution
        Theta, 0 to 4.
    damping
        Phi, from 0 to ``2**resolution - 1``: one number, or one for each band.
    in_header
        Whether the header carries the damping of each band, if it varies.
    zero_offsets
        How the header says that psi, the offset, is zero, as it is in lossless streams: as one number, as a
        table that it carries, or as one that it does not.
    """

    resolution: int
    damping: int | tuple[int, ...]
    in_header: bool = True
    zero_offsets: Literal["fixed", "table", "elsewhere"] = "fixed"

    def of_band(self, band: int) -> int:
        """Phi of a band."""
        return self.damping if isinstance(self.damping, int) else self.damping[band]


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """Parameters of the predictor.

    Attributes
    ----------
    prediction_bands
        P, 0 to 15: earlier bands that a band is predicted from.
    mode
        Whether the directional differences in the own band count too (full) or not (reduced).
    local_sum
        Which neighbours make the local sum; the narrow ones are of 123.0-B-2.
    register_size
        R, max(32, D + Omega + 2) to 64.
    weight_resolution
        Omega, 4 to 19.
    weight_interval
        t_inc, a power of two from 16 to 2,048: samples after which the weights learn more slowly.
    weight_initial, weight_final
        v_min and v_max, -6 to 9: scaling exponent of the learning at the start and at the end.
    weight_table_resolution
        Q, 3 to Omega + 3, of custom initial weights; None for the default ones.
    weight_table
        For each band, its Q-bit initial weights: north, west, north-west (full mode), then the bands before
        it, nearest first. None with the default ones.
    weight_table_in_header
        Whether the header carries the table; if not, who decompresses must be given it.
    weight_offsets, representatives
        Of 123.0-B-2; None leaves them out.
    """

    prediction_bands: int = 3
    mode: Mode = "full"
    local_sum: LocalSum = "wide-neighbor"
    register_size: int = 64
    weight_resolution: int = 13
    weight_interval: int = 64
    weight_initial: int = -1
    weight_final: int = 3
    weight_table_resolution: int | None = None
    weight_table: Table | None = None
    weight_table_in_header: bool = True
    weight_offsets: WeightOffsets | None = None
    representatives: Representatives | None = None

    def components(self, band: int) -> int:
        """C_z, the weights of a band."""
        return min(band, self.prediction_bands) + 3 * (self.mode == "full")

    def check(self, image: ImageLayout) -> None:
        """Check the values, and that they go with an image.

        Raises
        ------
        InvalidInput
            If one does not.
        """
        check_number("prediction_bands", self.prediction_bands, 0, 15)
        check_choice("mode", self.mode, ("full", "reduced"))
        sums = ("wide-neighbor", "narrow-neighbor", "wide-column", "narrow-column")
        check_choice("local_sum", self.local_sum, sums)
        if image.columns == 1 and (self.mode == "full" or self.local_sum.endswith("neighbor")):
            found = f"mode {self.mode!r} and local sum {self.local_sum!r}"
            expected = "mode 'reduced' and a column-oriented sum for an image of one column"
            raise InvalidInput("mode", found=found, expected=expected)
        check_number("weight_resolution", self.weight_resolution, 4, 19)
        least = max(32, image.dynamic_range + self.weight_resolution + 2)
        check_number("register_size", self.register_size, least, 64, " for this depth and weight resolution")
        check_choice("weight_interval", self.weight_interval, tuple(1 << k for k in range(4, 12)))
        check_number("weight_initial", self.weight_initial, -6, 9)
        check_number("weight_final", self.weight_final, self.weight_initial, 9, ", from weight_initial on")
        self._check_table(image)
        self._check_offsets(image)
        self._check_representatives(image)

    def _check_table(self, image: ImageLayout) -> None:
        resolution, table = self.weight_table_resolution, self.weight_table
        if resolution is None:
            if table is not None:
                raise InvalidInput(
                    "weight_table", found="a table", expected="weight_table_resolution with it"
                )
            return
        check_number("weight_table_resolution", resolution, 3, self.weight_resolution + 3)
        if table is None:
            expected = "the table of the initial weights, which this stream does not carry"
            raise InvalidInput("weight_table", found="none", expected=expected)
        check_length("weight_table", len(table), image.bands)
        half = 1 << (resolution - 1)
        for band, row in enumerate(table):
            if len(row) != self.components(band):
                expected = f"{self.components(band)} weights of band {band}"
                raise InvalidInput("weight_table", found=f"{len(row)}", expected=expected)
            for value in row:
                check_number("weight_table", value, -half, half - 1)

    def _check_offsets(self, image: ImageLayout) -> None:
        offsets = self.weight_offsets
        if offsets is None:
            return
        check_length("weight_offsets", len(offsets.own), image.bands)
        check_length("weight_offsets", len(offsets.others), image.bands)
        for band, (own, others) in enumerate(zip(offsets.own, offsets.others, strict=True)):
            if len(others) != min(band, self.prediction_bands):
                expected = f"{min(band, self.prediction_bands)} offsets of bands before band {band}"
                raise InvalidInput("weight_offsets", found=f"{len(others)}", expected=expected)
            for value in (own, *others):
                check_number("weight_offsets", value, -6, 5)

    def _check_representatives(self, image: ImageLayout) -> None:
        found = self.representatives
        if found is None:
            return
        check_number("resolution of representatives", found.resolution, 0, 4)
        check_choice("zero_offsets", found.zero_offsets, ("fixed", "table", "elsewhere"))
        values = (found.damping,) if isinstance(found.damping, int) else found.damping
        if not isinstance(found.damping, int):
            check_length("damping of representatives", len(values), image.bands)
        for value in values:
            check_number("damping of representatives", value, 0, (1 << found.resolution) - 1)
