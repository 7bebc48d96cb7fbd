"""CCSDS 123 headers: every field there and back, what wraps to zero, and what is refused."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from support.ccsds123_strategies import stream_parameters

from plait.errors import InvalidInput
from plait.hyperspectral.header import BitReader, BitWriter, HeaderEnd, parse_header, write_header
from plait.hyperspectral.parameters import (
    BlockAdaptive,
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


@pytest.mark.parametrize(
    "bit", [57, 80, 81, 87, 88, 89, 90, 91, 96, 96 + 32, 96 + 34], ids=lambda bit: f"bit{bit}"
)
def test_reserved_bits_and_near_lossless_streams_are_refused(bit: int) -> None:
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
    parts = (ImageLayout, Predictor, WeightOffsets, Representatives, SupplementaryTable)
    names = {field.name for part in (*parts, *CODER_KINDS.values()) for field in fields(part)}
    names |= {field.name for field in fields(StreamParameters)} - {"image", "predictor", "coder"}
    rows = "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert sorted(name for name in names if f"`{name}`" not in rows) == []
