"""The parameters of a CCSDS 123 stream, by the names of the standard, checked.

Each class is one part of the header: the image, the predictor and one of three entropy coders. A stream that
uses nothing of 123.0-B-2 is one of 123.0-B-1, byte for byte.
"""

from __future__ import annotations

import reprlib
import types
from collections.abc import Iterator
from dataclasses import dataclass, field, is_dataclass, replace
from functools import lru_cache
from numbers import Integral
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from plait.errors import InvalidInput, one_of, whole

_WORDS: Final = {
    int: "a whole number",
    bool: "true or false",
    str: "a text",
    types.NoneType: "nothing",
}


def check_types(part: Any) -> None:
    """Make numbers in a part and the parts in it Python's; InvalidInput if a field is of another type."""
    kind: type = type(part)
    for name, hint in _hints(kind).items():
        value = _plain(getattr(part, name))
        object.__setattr__(part, name, value)
        if not _fits(value, hint):
            raise InvalidInput(name, found=reprlib.repr(value), expected=_words(hint))
        for one in value if isinstance(value, tuple) else (value,):
            if is_dataclass(one):
                check_types(one)


def _plain(value: Any) -> Any:
    """Numbers of NumPy as Python's, also within tuples."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    kind = get_origin(hint)
    if kind in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if kind is tuple:
        return isinstance(value, tuple) and all(_fits(one, get_args(hint)[0]) for one in value)
    if kind is Literal:
        # Which words there are, the checks of values say.
        return isinstance(value, str)
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _words(hint: Any) -> str:
    kind = get_origin(hint)
    if kind in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(one) for one in get_args(hint)))
    if kind is tuple:
        inner = get_args(hint)[0]
        return "a list of lists of whole numbers" if get_origin(inner) is tuple else "a list"
    return "a text" if kind is Literal else _WORDS.get(hint, getattr(hint, "__name__", str(hint)))


_MOST = 65536
#: A row of numbers for each band.
Table: TypeAlias = tuple[tuple[int, ...], ...]


def check_length(name: str, found: int, expected: int) -> None:
    """InvalidInput if a table has not an entry for each band."""
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
            whole(name, getattr(self, name), 1, _MOST)
        whole("dynamic_range", self.dynamic_range, 2, 32)

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
        _check_adaptive(self)
        most = min(image.dynamic_range - 2, 14)
        if (self.accumulator_constant is None) == (self.accumulator_table is None):
            found = "neither" if self.accumulator_table is None else "both"
            expected = "either accumulator_constant or accumulator_table"
            raise InvalidInput("accumulator_constant", found=found, expected=expected)
        if self.accumulator_table is None:
            whole("accumulator_constant", self.accumulator_constant, 0, most)
            return
        check_length("accumulator_table", len(self.accumulator_table), image.bands)
        for value in self.accumulator_table:
            whole("accumulator_table", value, 0, most)

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
        one_of("block_size", self.block_size, (8, 16, 32, 64))
        whole("reference_interval", self.reference_interval, 1, 4096)


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
        _check_adaptive(self)
        if self.initial_sums is not None:
            check_length("initial_sums", len(self.initial_sums), image.bands)
            for value in self.initial_sums:
                most = (1 << (image.dynamic_range + self.initial_count_exponent)) - 1
                whole("initial_sums", value, 0, most)


def _check_adaptive(coder: SampleAdaptive | HybridCoder) -> None:
    whole("unary_length_limit", coder.unary_length_limit, 8, 32)
    whole("initial_count_exponent", coder.initial_count_exponent, 1, 8)
    least = max(4, coder.initial_count_exponent + 1)
    whole("rescaling_counter_size", coder.rescaling_counter_size, least, 11)


Coder: TypeAlias = SampleAdaptive | BlockAdaptive | HybridCoder


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
    offset
        Psi, as the damping; 0 in lossless streams.
    offset_in_header
        Whether the header carries the offset of each band, if it varies.
    """

    resolution: int
    damping: int | tuple[int, ...]
    in_header: bool = True
    offset: int | tuple[int, ...] = 0
    offset_in_header: bool = True

    def of_band(self, band: int) -> tuple[int, int]:
        """Phi and psi of a band."""
        phi, psi = (one if isinstance(one, int) else one[band] for one in (self.damping, self.offset))
        return phi, psi


#: Limits of all bands, or one for each; where they are updated, a row of one or of each band for each period.
Limits: TypeAlias = int | tuple[int, ...] | Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorLimits:
    """Error limits of near-lossless streams (123.0-B-2).

    No sample differs from the original by more than its absolute limit, nor by more than its relative limit,
    in 2**-D of the absolute value that was predicted for it. The first sample of each band is exact.

    Attributes
    ----------
    absolute
        a_z: one number for all bands, or one for each. None if there are none, or if they are updated and the
        body holds them.
    relative
        r_z, likewise.
    absolute_bits, relative_bits
        D_A and D_R, bits of a limit: 1 to min(D - 1, 16). None for as many as the limits need, which the
        parameters then have; of limits that there are not, None.
    absolute_by_band, relative_by_band
        Whether there is a limit for each band; the limits tell, where there are any here.
    update_exponent
        u, 0 to 9, of the band-interleaved order: limits are updated every ``2**u`` rows, and `absolute` and
        `relative` have a row for each period, of one number or of one for each band. The body carries them.
        None if limits are not updated.
    """

    absolute: Limits | None = None
    relative: Limits | None = None
    absolute_bits: int | None = None
    relative_bits: int | None = None
    absolute_by_band: bool = False
    relative_by_band: bool = False
    update_exponent: int | None = None

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("absolute", "relative"):
            values = getattr(self, name)
            if values is None:
                continue
            if getattr(self, f"{name}_bits") is None:
                bits = max(_numbers_in(values), default=0).bit_length()
                object.__setattr__(self, f"{name}_bits", max(bits, 1))
            by_band = isinstance(values, tuple)
            if by_band and self.update_exponent is not None:
                many = any(isinstance(row, tuple) and len(row) > 1 for row in values)
                by_band = many or getattr(self, f"{name}_by_band")
            object.__setattr__(self, f"{name}_by_band", by_band)

    def periods(self, rows: int) -> int:
        """Periods of so many rows; 1 if limits are not updated."""
        return 1 if self.update_exponent is None else -(-rows >> self.update_exponent)

    def kinds(self, bands: int) -> list[tuple[str, int, int]]:
        """The kinds of limits there are: name, bits of a limit, and limits in so many bands."""
        kinds = (
            ("absolute", self.absolute_bits, self.absolute_by_band),
            ("relative", self.relative_bits, self.relative_by_band),
        )
        return [(name, bits, bands if by_band else 1) for name, bits, by_band in kinds if bits is not None]

    def updates(self, rows: int, bands: int) -> int:
        """Limits that the body carries up to so many rows."""
        if self.update_exponent is None:
            return 0
        return self.periods(rows) * sum(count for _, _, count in self.kinds(bands))

    def of_period(self, period: int) -> dict[str, tuple[int, ...]]:
        """Limits of a period by kind, of all bands or of each; InvalidInput if they are not here."""
        found = {}
        for name, bits, _ in self.kinds(1):
            values = getattr(self, name)
            if values is None:
                expected = f"the limits of {bits} bits, which the header of a stream does not have"
                raise InvalidInput(name, found="none", expected=expected)
            row = values if self.update_exponent is None else values[period]
            found[name] = row if isinstance(row, tuple) else (row,)
        return found

    def describe(self, depth: int) -> str:
        """The limits in words, for samples of so many bits.

        >>> ErrorLimits(absolute=(0, 3, 1), relative=41).describe(12)
        'absolute 0 to 3, relative 0.01'
        """
        found = []
        for name, _, _ in self.kinds(1):
            numbers = sorted({*_numbers_in(getattr(self, name) or ())})
            ends = dict.fromkeys((*numbers[:1], *numbers[-1:]))
            told = (f"{one:,}" if name == "absolute" else f"{one / (1 << depth):.3g}" for one in ends)
            found.append(f"{name} {' to '.join(told)}".rstrip())
        if self.update_exponent is not None:
            found.append(f"updated every {1 << self.update_exponent} rows")
        return ", ".join(found)

    @property
    def at_first(self) -> ErrorLimits:
        """Those of the first period, for all rows."""
        if self.update_exponent is None:
            return self
        found: dict[str, Any] = {f"{name}_bits": bits for name, bits, _ in self.kinds(1)}
        for name, row in self.of_period(0).items():
            found[name] = row if getattr(self, f"{name}_by_band") else row[0]
        return ErrorLimits(**found)

    def of_rows(self, first: int, last: int) -> ErrorLimits:
        """Those of a block of rows; InvalidInput if it begins within a period."""
        if self.update_exponent is None:
            return self
        period = 1 << self.update_exponent
        if first % period:
            found, expected = f"a block from row {first} on", f"blocks of a multiple of {period} rows"
            raise InvalidInput("blocks", found=found, expected=f"{expected}: error limits change so often")
        kept = {}
        for name, _, _ in self.kinds(1):
            values = getattr(self, name)
            if values is not None:
                kept[name] = values[first // period : -(-last // period)]
        return replace(self, **kept)

    def check(self, image: ImageLayout) -> None:
        """Check the values, and that they go with an image.

        Raises
        ------
        InvalidInput
            If one does not.
        """
        if self.update_exponent is not None:
            whole("update_exponent", self.update_exponent, 0, 9)
        if self.absolute_bits is None and self.relative_bits is None:
            raise InvalidInput("error_limits", found="none", expected="absolute or relative ones, or both")
        for name in ("absolute", "relative"):
            bits = getattr(self, f"{name}_bits")
            if bits is not None:
                most = min(image.dynamic_range - 1, 16)
                whole(f"{name}_bits", bits, 1, most, f" for samples of {image.dynamic_range} bits")
                self._check_values(name, getattr(self, name), bits, image)

    def _check_values(self, name: str, values: Limits | None, bits: int, image: ImageLayout) -> None:
        if values is None and self.update_exponent is None:
            raise InvalidInput(name, found="no limits", expected=f"them, of {bits} bits")
        if values is None:
            return
        rows: Any = (values,)
        if self.update_exponent is not None:
            rows, periods = values, self.periods(image.rows)
            if not isinstance(rows, tuple) or len(rows) != periods:
                found = f"{len(rows)} rows of limits" if isinstance(rows, tuple) else str(rows)
                expected = f"{periods} of them, one for each {1 << self.update_exponent} rows of the image"
                raise InvalidInput(name, found=found, expected=expected)
        count = image.bands if getattr(self, f"{name}_by_band") else 1
        for row in rows:
            numbers = row if isinstance(row, tuple) else (row,)
            if len(numbers) != count:
                found, expected = f"{len(numbers)} limits", f"{count} of them in {image.bands} bands"
                raise InvalidInput(name, found=found, expected=expected)
            for value in numbers:
                whole(name, value, 0, (1 << bits) - 1, f", which {bits} bits hold")


def _numbers_in(values: Any) -> Iterator[int]:
    for value in values if isinstance(values, tuple) else (values,):
        yield from (_numbers_in(value) if isinstance(value, tuple) else (value,))


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
    error_limits
        Those of near-lossless streams (123.0-B-2); None for lossless ones.
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
    error_limits: ErrorLimits | None = None

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
        whole("prediction_bands", self.prediction_bands, 0, 15)
        one_of("mode", self.mode, ("full", "reduced"))
        sums = ("wide-neighbor", "narrow-neighbor", "wide-column", "narrow-column")
        one_of("local_sum", self.local_sum, sums)
        if image.columns == 1 and (self.mode == "full" or self.local_sum.endswith("neighbor")):
            found = f"mode {self.mode!r} and local sum {self.local_sum!r}"
            expected = "mode 'reduced' and a column-oriented sum for an image of one column"
            raise InvalidInput("mode", found=found, expected=expected)
        whole("weight_resolution", self.weight_resolution, 4, 19)
        least = max(32, image.dynamic_range + self.weight_resolution + 2)
        whole("register_size", self.register_size, least, 64, " for this depth and weight resolution")
        one_of("weight_interval", self.weight_interval, tuple(1 << k for k in range(4, 12)))
        whole("weight_initial", self.weight_initial, -6, 9)
        whole("weight_final", self.weight_final, self.weight_initial, 9, ", from weight_initial on")
        self._check_table(image)
        self._check_offsets(image)
        self._check_representatives(image)
        if self.error_limits is not None:
            self.error_limits.check(image)

    def _check_table(self, image: ImageLayout) -> None:
        resolution, table = self.weight_table_resolution, self.weight_table
        if resolution is None:
            if table is not None:
                raise InvalidInput(
                    "weight_table", found="a table", expected="weight_table_resolution with it"
                )
            return
        whole("weight_table_resolution", resolution, 3, self.weight_resolution + 3)
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
                whole("weight_table", value, -half, half - 1)

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
                whole("weight_offsets", value, -6, 5)

    def _check_representatives(self, image: ImageLayout) -> None:
        found = self.representatives
        if found is None:
            return
        whole("resolution of representatives", found.resolution, 0, 4)
        for what, values in (("damping", found.damping), ("offset", found.offset)):
            name = f"{what} of representatives"
            numbers = (values,) if isinstance(values, int) else values
            if not isinstance(values, int):
                check_length(name, len(numbers), image.bands)
            for value in numbers:
                whole(name, value, 0, (1 << found.resolution) - 1)
            if what == "offset" and any(numbers) and self.error_limits is None:
                raise InvalidInput(name, found=reprlib.repr(values), expected="0, as in lossless streams")


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
            whole(f"{name} of a supplementary table", getattr(self, name), low, high)
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


Order = Literal["bi", "bsq"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamParameters:
    """Everything the header of a stream says.

    Attributes
    ----------
    image, predictor, coder
        The three parts.
    order
        Order of the codewords: band-interleaved or band-sequential.
    interleaving_depth
        M of the band-interleaved order, 1 (BIL) to the number of bands (BIP).
    output_word_size
        B, 1 to 8 bytes: the length of a stream is a multiple of it.
    user_field
        The byte that users may give a meaning to.
    supplementary
        Supplementary tables (123.0-B-2), at most 15.

    Raises
    ------
    InvalidInput
        If a value is out of its range, or does not go with another.
    """

    image: ImageLayout
    predictor: Predictor = field(default_factory=Predictor)
    coder: Coder = field(default_factory=SampleAdaptive)
    order: Order = "bi"
    interleaving_depth: int = 1
    output_word_size: int = 1
    user_field: int = 0
    supplementary: tuple[SupplementaryTable, ...] = ()

    def __post_init__(self) -> None:
        check_types(self)
        self.predictor.check(self.image)
        self.coder.check(self.image)
        one_of("order", self.order, ("bi", "bsq"))
        limits = self.predictor.error_limits
        if limits is not None and limits.update_exponent is not None and self.order != "bi":
            expected = "None: limits are updated in the band-interleaved order alone"
            raise InvalidInput("update_exponent", found=str(limits.update_exponent), expected=expected)
        if self.order == "bi":
            whole("interleaving_depth", self.interleaving_depth, 1, self.image.bands)
        whole("output_word_size", self.output_word_size, 1, 8)
        whole("user_field", self.user_field, 0, 255)
        whole("number of supplementary tables", len(self.supplementary), 0, 15)
        for table in self.supplementary:
            table.check(self.image.columns, self.image.rows, self.image.bands)

    @property
    def near_lossless(self) -> str | None:
        """The error limits in words; None of lossless streams."""
        limits = self.predictor.error_limits
        return None if limits is None else limits.describe(self.image.dynamic_range)
