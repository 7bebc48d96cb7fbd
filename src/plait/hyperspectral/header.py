"""The header of a stream: `StreamParameters` to bytes and back."""

from __future__ import annotations

from plait.hyperspectral.header_bits import BitWriter, HeaderEnd
from plait.hyperspectral.header_parser import BLOCK_SIZES, KINDS, NO_CONSTANT, SUMS, parse_header
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    HybridCoder,
    Representatives,
    SampleAdaptive,
    StreamParameters,
)
from plait.hyperspectral.supplementary import SupplementaryTable

__all__ = ["HeaderEnd", "parse_header", "write_header"]


def write_header(parameters: StreamParameters) -> bytes:
    """The bytes of a header.

    Parameters
    ----------
    parameters
        What it says.
    """
    bits = BitWriter()
    _put_image(bits, parameters)
    for table in parameters.supplementary:
        _put_supplementary(bits, table)
    _put_predictor(bits, parameters)
    _put_coder(bits, parameters)
    return bits.bytes()


def _put_image(bits: BitWriter, parameters: StreamParameters) -> None:
    image = parameters.image
    bits.put(parameters.user_field, 8)
    for size in (image.columns, image.rows, image.bands):
        bits.put(size, 16)
    bits.put(image.signed, 1)
    bits.put(0, 1)
    bits.put(image.dynamic_range > 16, 1)
    bits.put(image.dynamic_range, 4)
    bits.put(parameters.order == "bsq", 1)
    bits.put(parameters.interleaving_depth if parameters.order == "bi" else 0, 16)
    bits.put(0, 2)
    bits.put(parameters.output_word_size, 3)
    kind = {SampleAdaptive: 0b00, HybridCoder: 0b01, BlockAdaptive: 0b10}[type(parameters.coder)]
    bits.put(kind, 2)
    bits.put(0, 5)
    bits.put(len(parameters.supplementary), 4)


def _put_supplementary(bits: BitWriter, table: SupplementaryTable) -> None:
    for value, size in (
        (KINDS.index(table.kind), 2),
        (0, 2),
        (table.purpose, 4),
        (0, 1),
        (table.structure, 2),
        (0, 1),
        (table.user_field, 4),
    ):
        bits.put(value, size)
    if table.kind == "float":
        bits.put(table.significand_bits, 5)
        bits.put(table.exponent_bits, 3)
        bits.put(table.exponent_bias, table.exponent_bits)
    else:
        bits.put(table.depth, 5)
    for value in table.values:
        bits.put(value, table.bits)
    bits.fill()


def _put_predictor(bits: BitWriter, parameters: StreamParameters) -> None:
    found = parameters.predictor
    offsets, table, resolution = found.weight_offsets, found.weight_table, found.weight_table_resolution
    in_header = table is not None and found.weight_table_in_header
    for value, size in (
        (0, 1),
        (found.representatives is not None, 1),
        (found.prediction_bands, 4),
        (found.mode == "reduced", 1),
        (offsets is not None, 1),
        (SUMS.index(found.local_sum) >> 1, 1),
        (SUMS.index(found.local_sum), 1),
        (found.register_size, 6),
        (found.weight_resolution - 4, 4),
        (found.weight_interval.bit_length() - 5, 4),
        (found.weight_initial + 6, 4),
        (found.weight_final + 6, 4),
        (offsets is not None and offsets.in_header, 1),
        (resolution is not None, 1),
        (in_header, 1),
        (resolution or 0, 5),
    ):
        bits.put(value, size)
    if in_header and table is not None and resolution is not None:
        for row in table:
            for value in row:
                bits.put(value, resolution)
        bits.fill()
    if offsets is not None and offsets.in_header:
        for own, others in zip(offsets.own, offsets.others, strict=True):
            for value in (own, *others) if found.mode == "full" else others:
                bits.put(value, 4)
        bits.fill()
    if found.representatives is not None:
        _put_representatives(bits, found.representatives, parameters.image.bands)


def _put_representatives(bits: BitWriter, found: Representatives, bands: int) -> None:
    varying = not isinstance(found.damping, int)
    bits.put(found.resolution, 8)
    bits.put(0, 1)
    bits.put(varying, 1)
    bits.put(varying and found.in_header, 1)
    bits.put(0, 1)
    bits.put(0 if not isinstance(found.damping, int) else found.damping, 4)
    bits.put(0, 1)
    bits.put(found.zero_offsets != "fixed", 1)
    bits.put(found.zero_offsets == "table", 1)
    bits.put(0, 5)
    if not isinstance(found.damping, int) and found.in_header:
        for value in found.damping:
            bits.put(value, found.resolution)
        bits.fill()
    if found.zero_offsets == "table":
        bits.put(0, bands * found.resolution)
        bits.fill()


def _put_coder(bits: BitWriter, parameters: StreamParameters) -> None:
    coder = parameters.coder
    if isinstance(coder, BlockAdaptive):
        bits.put(0, 1)
        bits.put(BLOCK_SIZES.index(coder.block_size), 2)
        bits.put(coder.restricted, 1)
        bits.put(coder.reference_interval, 12)
        return
    bits.put(coder.unary_length_limit, 5)
    bits.put(coder.rescaling_counter_size - 4, 3)
    bits.put(coder.initial_count_exponent, 3)
    if isinstance(coder, HybridCoder):
        bits.put(0, 5)
        return
    table = coder.accumulator_table
    bits.put(NO_CONSTANT if table is not None else coder.accumulator_constant or 0, 4)
    bits.put(table is not None and coder.table_in_header, 1)
    if table is not None and coder.table_in_header:
        for value in table:
            bits.put(value, 4)
        bits.fill()
