"""Options of ``plait hsi`` that several of its commands share, and those of the header, each by its name."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from plait.cli.options import WholeNumber
from plait.errors import InvalidInput

if TYPE_CHECKING:
    from plait.formats.cube_input import RawShape

__all__ = [
    "ByteOrderOption",
    "FormatOption",
    "HeaderOptions",
    "PresetOption",
    "RawOptions",
    "dynamic_range_of",
]

# Written out here, so that help and checks of options need not load what the words mean.
PresetOption = Literal["fast", "default", "best"]
FormatOption = Literal["envi", "npy", "raw", "geotiff", "netcdf"]
ByteOrderOption = Literal["little", "big"]
ModeOption = Literal["full", "reduced"]
SumOption = Literal["wide-neighbor", "narrow-neighbor", "wide-column", "narrow-column"]
CoderOption = Literal["sample-adaptive", "block-adaptive", "hybrid"]
OrderOption = Literal["bi", "bsq"]
# Values that may begin with a minus sign.
Signed = Annotated[WholeNumber | None, Parameter(allow_leading_hyphen=True)]
Number = WholeNumber | None
#: Options that are no parameters of the header.
_NOT_NAMED = ("parameters", "any_reference_interval")


def _shape_of(text: str) -> tuple[int, int, int]:
    try:
        rows, columns, bands = (int(part) for part in text.split(","))
    except ValueError:
        expected = "rows, columns and bands such as 512,614,224"
        raise InvalidInput("--shape", found=repr(text), expected=expected) from None
    return rows, columns, bands


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RawOptions:
    """What has to be said of a file without a header.

    Attributes
    ----------
    shape
        ROWS,COLUMNS,BANDS of a file without a header.
    dtype
        Its type of samples: uint8, int8, uint16, int16, uint32 or int32.
    interleave
        Its order: bsq, bil or bip, or the axes y, x and z, slowest first. For .npy and NetCDF files, what the
        dimensions are, in their order; otherwise bip, and by their names.
    byte_order
        Its byte order.
    offset
        Bytes before its first sample.
    variable
        Which variable of a NetCDF file.
    """

    shape: str | None = None
    dtype: str | None = None
    interleave: str | None = None
    byte_order: ByteOrderOption | None = None
    offset: Number = None
    variable: str | None = None

    def raw(self) -> RawShape:
        """All but the variable."""
        from plait.formats.cube_input import RawShape

        found = {name: value for name, value in asdict(self).items() if name not in ("shape", "variable")}
        return RawShape(shape=None if self.shape is None else _shape_of(self.shape), **found)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class HeaderOptions:
    """Parameters of the stream by the names of the standard; what is left out is as in the preset.

    Attributes
    ----------
    parameters
        JSON file with parameters by name, tables included, as plait hsi info --json prints them.
    prediction_bands
        P, earlier bands that a band is predicted from: 0 to 15.
    mode
        Prediction mode.
    local_sum
        Neighbours that make the local sum; narrow ones are of 123.0-B-2.
    register_size
        R, bits of the register: 32 to 64.
    weight_resolution
        Omega, 4 to 19.
    weight_interval
        t_inc, a power of two from 16 to 2048.
    weight_initial
        v_min, -6 to 9.
    weight_final
        v_max, -6 to 9.
    coder
        Entropy coder; hybrid is of 123.0-B-2.
    unary_length_limit
        U_max, 8 to 32.
    initial_count_exponent
        gamma_0, 1 to 8.
    rescaling_counter_size
        gamma*, 4 to 9, and to 11 with 123.0-B-2.
    accumulator_constant
        K of the sample-adaptive coder, 0 to 14.
    block_size
        J of the block-adaptive coder: 8, 16, 32 or 64.
    reference_interval
        r of the block-adaptive coder, a multiple of 64 up to 4096.
    any_reference_interval
        Write any reference interval from 1 to 4096, though programs differ in what they do with those that
        are no multiple of 64.
    restricted
        Restricted set of code options of the block-adaptive coder, for up to 4 bits.
    order
        Order of the codewords: band-interleaved or band-sequential.
    interleaving_depth
        M of the band-interleaved order: 1 is BIL, the number of bands BIP.
    output_word_size
        B, bytes of an output word: 1 to 8.
    user_field
        The byte of the header that users may give a meaning to.
    """

    parameters: Path | None = None
    prediction_bands: Number = None
    mode: ModeOption | None = None
    local_sum: SumOption | None = None
    register_size: Number = None
    weight_resolution: Number = None
    weight_interval: Number = None
    weight_initial: Signed = None
    weight_final: Signed = None
    coder: CoderOption | None = None
    unary_length_limit: Number = None
    initial_count_exponent: Number = None
    rescaling_counter_size: Number = None
    accumulator_constant: Number = None
    block_size: Number = None
    reference_interval: Number = None
    any_reference_interval: Annotated[bool, Parameter(negative="")] = False
    restricted: bool | None = None
    order: OrderOption | None = None
    interleaving_depth: Number = None
    output_word_size: Number = None
    user_field: Number = None

    def given(self) -> dict[str, Any]:
        """The parameters that are asked for, by name."""
        from plait.hyperspectral.choices import read_parameters

        found = {} if self.parameters is None else read_parameters(self.parameters)
        named = {name: value for name, value in asdict(self).items() if name not in _NOT_NAMED}
        return found | {name: value for name, value in named.items() if value is not None}


def dynamic_range_of(text: str) -> int | None:
    """Bits of a sample, or None for as many as the samples need."""
    if text == "auto":
        return None
    try:
        return int(text)
    except ValueError:
        expected = "auto, or bits of a sample such as 16"
        raise InvalidInput("--dynamic-range", found=repr(text), expected=expected) from None


def tables_in(parameters: Path | None) -> dict[str, Any]:
    """Tables that a stream uses and does not carry, from a file of parameters."""
    from plait.hyperspectral.choices import read_parameters, tables_of

    return {} if parameters is None else tables_of(read_parameters(parameters))
