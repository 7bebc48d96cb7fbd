"""CCSDS 123 headers: every field there and back, what wraps to zero, and what is refused."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from support.ccsds123_strategies import near_lossless, stream_parameters
from support.ccsds123_streams import as_told

from plait.errors import InvalidInput
from plait.hyperspectral.header import BitReader, BitWriter, HeaderEnd, parse_header, write_header
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    ErrorLimits,
    HybridCoder,
    ImageLayout,
    Predictor,
    Representatives,
    SampleAdaptive,
    StreamParameters,
    SupplementaryTable,
    WeightOffsets,
)
from plait.hyperspectral.presets import CODER_KINDS

pytestmark = pytest.mark.interpreted(alone=True)

IMAGE = ImageLayout(columns=4, rows=3, bands=3, dynamic_range=16)
OFFSETS = WeightOffsets(own=(1, -6, 5), others=((), (2,), (0, -1)))


@given(parameters=stream_parameters(tables=True))
def test_what_is_written_is_read(parameters: StreamParameters) -> None:
    header = write_header(parameters)
    found, size = parse_header(header + b"\xff" * 9)
    assert found == parameters
    assert size == len(header)
    for cut in range(size):
        with pytest.raises(HeaderEnd):
            parse_header(header[:cut])


@given(parameters=near_lossless())
def test_what_is_written_of_error_limits_is_read(parameters: StreamParameters) -> None:
    header = write_header(parameters)
    found, size = parse_header(header + b"\xff" * 9)
    assert found == as_told(parameters)
    assert size == len(header)
    for cut in range(size):
        with pytest.raises(HeaderEnd):
            parse_header(header[:cut])


def _limited(limits: ErrorLimits, order: Any = "bi", depth: int = 16, **predictor: Any) -> StreamParameters:
    own, image = Predictor(error_limits=limits, **predictor), replace(IMAGE, dynamic_range=depth)
    return StreamParameters(image=image, predictor=own, coder=BlockAdaptive(), order=order)


@pytest.mark.parametrize(
    ("limits", "order", "kinds", "expected"),
    [
        # Fidelity 01; no updates; one limit, D_A = 3, and fill.
        (ErrorLimits(absolute=5), "bi", 0x40, "0003a0"),
        # There is no word on updates in band-sequential streams; fidelity 10; a limit for each of 3 bands.
        (ErrorLimits(relative=(1, 0, 3)), "bsq", 0x80, "424c"),
        # Both; D_A = 16 is written as 0.
        (ErrorLimits(absolute=0x8001, absolute_bits=16, relative=7), "bi", 0xC0, "0000800103e0"),
        (ErrorLimits(absolute=15, absolute_bits=15), "bsq", 0x40, "0f001e"),
        # Updates every 2**1 rows: the header has no limits.
        (ErrorLimits(absolute=((1,), (2,)), update_exponent=1), "bi", 0x40, "4102"),
        (
            ErrorLimits(absolute=((1, 2, 3),), relative=((6,),), update_exponent=9),
            "bi",
            0xC0,
            "494203",
        ),
    ],
)
def test_the_bytes_of_error_limits(limits: ErrorLimits, order: Any, kinds: int, expected: str) -> None:
    parameters = _limited(limits, order, depth=17)
    header = write_header(parameters)
    assert header[11] == kinds
    assert header[17:-2].hex() == expected
    assert parse_header(header)[0] == as_told(parameters)


def test_error_limits_come_between_weights_and_representatives() -> None:
    representatives = Representatives(resolution=2, damping=1, offset=(3, 0, 2))
    limits = ErrorLimits(absolute=1)
    header = write_header(_limited(limits, representatives=representatives, weight_offsets=OFFSETS))
    # Four bits of weight offsets for each of 1, 2 and 3 components, then limits, then Theta, phi and psi.
    assert header[17:-2].hex() == "1a250f000180020160c8"


@pytest.mark.parametrize(
    ("limits", "order", "told"),
    [
        (ErrorLimits(), "bi", "error_limits: found none, expected absolute or relative ones, or both"),
        (ErrorLimits(absolute_bits=3), "bi", "absolute: found no limits, expected them, of 3 bits"),
        (ErrorLimits(absolute=8, absolute_bits=3), "bi", "from 0 to 7, which 3 bits hold"),
        (ErrorLimits(relative=1 << 16), "bi", "relative_bits: found 17"),
        (ErrorLimits(absolute=(1, 2)), "bi", "absolute: found 2 limits, expected 3 of them in 3 bands"),
        (ErrorLimits(absolute=((1,),), update_exponent=1), "bi", "1 rows of limits, expected 2 of them"),
        (ErrorLimits(absolute=1, update_exponent=1), "bi", "absolute: found 1, expected 2 of them"),
        (ErrorLimits(absolute=((1,),), update_exponent=10), "bi", "update_exponent: found 10"),
        (ErrorLimits(absolute=((1,),), update_exponent=9), "bsq", "update_exponent"),
    ],
)
def test_error_limits_that_are_refused(limits: ErrorLimits, order: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        _limited(limits, order)


def test_headers_of_error_limits_that_are_refused() -> None:
    header = bytearray(write_header(_limited(ErrorLimits(absolute=5))))
    for place, value in ((17, 0x01), (17, 0x80), (17, 0x4A), (18, 0x83), (18, 0x13)):
        changed = bytearray(header)
        changed[place] = value
        with pytest.raises(InvalidInput):
            parse_header(bytes(changed))


def test_offsets_of_representatives_are_for_near_lossless_streams() -> None:
    found = Representatives(resolution=2, damping=1, offset=(0, 0, 1), offset_in_header=False)
    with pytest.raises(InvalidInput, match="offset of representatives"):
        StreamParameters(image=IMAGE, predictor=Predictor(representatives=found))
    parameters = _limited(ErrorLimits(relative=2), representatives=found)
    header = write_header(parameters)
    with pytest.raises(InvalidInput, match="the offset table, which this stream lacks"):
        parse_header(header)
    assert parse_header(header, offset=(0, 0, 1))[0] == parameters
    # Of a lossless stream, a table that is elsewhere can only be of zeros.
    zeros = Predictor(representatives=replace(found, offset=(0, 0, 0)))
    lossless = StreamParameters(image=IMAGE, predictor=zeros)
    assert parse_header(write_header(lossless))[0] == lossless


def test_largest_values_are_written_as_zero() -> None:
    image = ImageLayout(columns=65536, rows=65536, bands=65536, dynamic_range=16)
    predictor = Predictor(register_size=64, weight_interval=2048, weight_final=9, weight_resolution=19)
    coder = SampleAdaptive(unary_length_limit=32, initial_count_exponent=8, rescaling_counter_size=11)
    parameters = StreamParameters(
        image=image, predictor=predictor, coder=coder, interleaving_depth=65536, output_word_size=8
    )
    header = write_header(parameters)
    assert header[1:7] == bytes(6)
    assert header[7:12] == bytes(5)
    assert parse_header(header)[0] == parameters
    large = replace(parameters, image=replace(image, dynamic_range=32), coder=BlockAdaptive())
    assert write_header(large)[7] == 0b00100000
    assert write_header(large)[-2:] == b"\x60\x00"
    assert parse_header(write_header(large))[0] == large


def test_a_table_of_all_bands_takes_time_in_proportion() -> None:
    image = ImageLayout(columns=2, rows=1, bands=65536, dynamic_range=12)
    coder = SampleAdaptive(accumulator_constant=None, accumulator_table=tuple(k % 11 for k in range(65536)))
    parameters = StreamParameters(image=image, coder=coder)
    header = write_header(parameters)
    assert len(header) == 12 + 5 + 2 + 32768
    assert parse_header(header)[0] == parameters


@pytest.mark.parametrize(
    ("predictor", "coder", "given_tables"),
    [
        (
            Predictor(
                prediction_bands=2,
                mode="reduced",
                weight_table_resolution=5,
                weight_table=((), (3,), (-16, 15)),
                weight_table_in_header=False,
            ),
            SampleAdaptive(),
            {"weight_table": ((), (3,), (-16, 15))},
        ),
        (
            Predictor(prediction_bands=2, weight_offsets=replace(OFFSETS, in_header=False)),
            BlockAdaptive(),
            {"weight_offsets": replace(OFFSETS, in_header=False)},
        ),
        (
            Predictor(representatives=Representatives(resolution=3, damping=(1, 7, 0), in_header=False)),
            HybridCoder(),
            {"damping": (1, 7, 0)},
        ),
        (
            Predictor(),
            SampleAdaptive(accumulator_constant=None, accumulator_table=(1, 2, 14), table_in_header=False),
            {"accumulator_table": (1, 2, 14)},
        ),
    ],
)
def test_tables_that_a_stream_does_not_carry(predictor: Any, coder: Any, given_tables: Any) -> None:
    parameters = StreamParameters(image=IMAGE, predictor=predictor, coder=coder)
    header = write_header(parameters)
    with pytest.raises(InvalidInput):
        parse_header(header)
    assert parse_header(header, **given_tables)[0] == parameters


def test_empty_tables_take_no_byte() -> None:
    image = ImageLayout(columns=4, rows=3, bands=1, dynamic_range=16)
    predictor = Predictor(mode="reduced", weight_table_resolution=5, weight_table=((),))
    header = write_header(StreamParameters(image=image, predictor=predictor))
    assert len(header) == 19
    assert parse_header(header)[0].predictor == predictor


def _with_bit(header: bytes, bit: int) -> bytes:
    changed = bytearray(header)
    changed[bit // 8] ^= 0x80 >> bit % 8
    return bytes(changed)


@pytest.mark.parametrize("bit", [57, 80, 81, 87, 90, 91, 96, 96 + 32, 96 + 34], ids=lambda bit: f"bit{bit}")
def test_reserved_bits_are_refused(bit: int) -> None:
    header = write_header(StreamParameters(image=IMAGE))
    with pytest.raises(InvalidInput):
        parse_header(_with_bit(header, bit))


def test_a_constant_and_a_table_are_refused() -> None:
    header = write_header(StreamParameters(image=IMAGE))
    with pytest.raises(InvalidInput, match=r"accumulator table: found a table, and the constant 5"):
        parse_header(_with_bit(header, 8 * len(header) - 1))


def test_a_large_table_that_is_not_there_takes_no_memory() -> None:
    image = ImageLayout(columns=65536, rows=65536, bands=65536, dynamic_range=16)
    header = bytearray(write_header(StreamParameters(image=image)))
    header[11] |= 1
    # A table of 32-bit numbers for each column of each band.
    with pytest.raises(HeaderEnd):
        parse_header(bytes(header[:12]) + b"\x02\x40\x00" + bytes(1000))


def test_numbers_of_floating_point_tables() -> None:
    table = SupplementaryTable(
        kind="float", purpose=2, structure=1, values=(0x3F800000, 0xC0490FDB, 0x00000001)
    )
    assert table.numbers == (1.0, pytest.approx(-3.14159274), 2.0**-149)
    table.check(4, 3, 3)
    with pytest.raises(InvalidInput):
        table.check(4, 3, 2)


def test_bits_there_and_back() -> None:
    writer = BitWriter()
    for value, bits in ((-1, 3), (5, 0), (9, 40), (1, 4095), (2, 5000)):
        writer.put(value, bits)
    writer.fill()
    reader = BitReader(writer.bytes())
    assert reader.take_signed(3) == -1
    assert [reader.take(bits) for bits in (0, 40, 4095, 5000)] == [0, 9, 1, 2]
    assert reader.fill() == 0


def test_the_page_of_parameters_names_all_of_them() -> None:
    page = Path(__file__).parents[2].joinpath("docs/reference/hyperspectral-parameters.md").read_text()
    parts = (ImageLayout, Predictor, WeightOffsets, Representatives, ErrorLimits, SupplementaryTable)
    names = {field.name for part in (*parts, *CODER_KINDS.values()) for field in fields(part)}
    names |= {field.name for field in fields(StreamParameters)} - {"image", "predictor", "coder"}
    rows = "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert sorted(name for name in names if f"`{name}`" not in rows) == []
