"""The header of a stream: `StreamParameters` to bytes and back."""

from __future__ import annotations

from typing import Any, Final, Literal

from plait.errors import InvalidInput, PlaitError
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    Coder,
    HybridCoder,
    ImageLayout,
    LocalSum,
    Predictor,
    Representatives,
    SampleAdaptive,
    StreamParameters,
    SupplementaryTable,
    WeightOffsets,
)


class HeaderEnd(PlaitError):
    """A header is longer than the bytes there are."""


class BitWriter:
    """Appends fields of bits, most significant bit first."""

    def __init__(self) -> None:
        self._value = 0
        self._bits = 0
        self._pieces: list[bytes] = []

    def put(self, value: int, bits: int) -> None:
        """Append a field; its value is taken modulo ``2**bits``, two's complement where it is negative."""
        self._value = (self._value << bits) | (value & ((1 << bits) - 1))
        self._bits += bits
        if self._bits >= 4096:
            # A number that grows with every field would take time that grows with the square of their number.
            rest = self._bits % 8
            self._pieces.append((self._value >> rest).to_bytes(self._bits // 8, "big"))
            self._value &= (1 << rest) - 1
            self._bits = rest

    def fill(self) -> None:
        """Append zero bits up to a whole byte."""
        self.put(0, -self._bits % 8)

    def bytes(self) -> bytes:
        """What was put, a whole number of bytes."""
        return b"".join(self._pieces) + self._value.to_bytes(self._bits // 8, "big")


class BitReader:
    """Takes fields of bits, most significant bit first, from the start of the header on."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self.position = 0

    def take(self, bits: int) -> int:
        """The next field, unsigned; HeaderEnd if there are too few bytes."""
        self.require(bits)
        end = self.position + bits
        first, last = self.position // 8, -(-end // 8)
        word = int.from_bytes(self._data[first:last], "big") >> (8 * last - end)
        self.position = end
        return word & ((1 << bits) - 1)

    def require(self, bits: int) -> None:
        """HeaderEnd unless so many bits follow; before memory is allocated for what they hold."""
        if self.position + bits > 8 * len(self._data):
            raise HeaderEnd(f"the header needs more than the {len(self._data)} bytes there are")

    def take_signed(self, bits: int) -> int:
        """The next field, in two's complement; HeaderEnd if there are too few bytes."""
        value = self.take(bits)
        return value - (1 << bits) if value >> (bits - 1) else value

    def fill(self) -> int:
        """Skip to a whole byte; the bits skipped."""
        return self.take(-self.position % 8)


#: Values of fields, in the order of their numbers.
SUMS: Final[tuple[LocalSum, ...]] = ("wide-neighbor", "narrow-neighbor", "wide-column", "narrow-column")
KINDS: Final = ("unsigned", "signed", "float")
BLOCK_SIZES: Final = (8, 16, 32, 64)
#: K where there is a table instead.
NO_CONSTANT: Final = 15


def parse_header(
    data: bytes | memoryview,
    *,
    weight_table: tuple[tuple[int, ...], ...] | None = None,
    weight_offsets: WeightOffsets | None = None,
    damping: tuple[int, ...] | None = None,
    accumulator_table: tuple[int, ...] | None = None,
    initial_sums: tuple[int, ...] | None = None,
) -> tuple[StreamParameters, int]:
    """What a header says, and its length in bytes; `data` begins with the stream.

    The tables are those that the stream uses and does not carry; `initial_sums`, of the hybrid coder, is not
    needed to decompress. HeaderEnd if there are too few bytes; InvalidInput if a field holds what the
    standard does not allow, or a table is missing.
    """
    bits = BitReader(data)
    image, common, coder_kind, tables = _take_image(bits)
    supplementary = tuple(_take_supplementary(bits, image) for _ in range(tables))
    predictor = _take_predictor(bits, image, weight_table, weight_offsets, damping)
    coder = _take_coder(bits, image, coder_kind, accumulator_table, initial_sums)
    parameters = StreamParameters(
        image=image, predictor=predictor, coder=coder, supplementary=supplementary, **common
    )
    return parameters, bits.position // 8


def _wrapped(value: int, modulus: int) -> int:
    """A value whose maximum is written as zero."""
    return value or modulus


def _take_image(bits: BitReader) -> tuple[ImageLayout, dict[str, Any], int, int]:
    user = bits.take(8)
    columns, rows, bands = (_wrapped(bits.take(16), 1 << 16) for _ in range(3))
    signed = bool(bits.take(1))
    _reserved(bits, 1)
    large = bits.take(1)
    dynamic_range = _wrapped(bits.take(4), 16) + 16 * large
    sequential = bits.take(1)
    depth = bits.take(16)
    _reserved(bits, 2)
    word = _wrapped(bits.take(3), 8)
    kind = bits.take(2)
    _reserved(bits, 1)
    if bits.take(2):
        raise InvalidInput("quantizer", found="a near-lossless stream", expected="a lossless one")
    _reserved(bits, 2)
    tables = bits.take(4)
    image = ImageLayout(columns=columns, rows=rows, bands=bands, dynamic_range=dynamic_range, signed=signed)
    common = {
        "user_field": user,
        "order": "bsq" if sequential else "bi",
        "interleaving_depth": 1 if sequential else _wrapped(depth, 1 << 16),
        "output_word_size": word,
    }
    return image, common, kind, tables


def _reserved(bits: BitReader, size: int) -> None:
    if bits.take(size):
        what = f"reserved bits before bit {bits.position}"
        raise InvalidInput(what, found="a one", expected="zeros: this is no CCSDS 123 stream, or a later one")


def _take_supplementary(bits: BitReader, image: ImageLayout) -> SupplementaryTable:
    kind = bits.take(2)
    if kind > 2:
        raise InvalidInput("type of a supplementary table", found=str(kind), expected="0, 1 or 2")
    _reserved(bits, 2)
    facts: dict[str, Any] = {"kind": KINDS[kind], "purpose": bits.take(4)}
    _reserved(bits, 1)
    facts["structure"] = bits.take(2)
    _reserved(bits, 1)
    facts["user_field"] = bits.take(4)
    if kind == 2:
        facts["significand_bits"] = bits.take(5)
        facts["exponent_bits"] = _wrapped(bits.take(3), 8)
        facts["exponent_bias"] = bits.take(facts["exponent_bits"])
    else:
        facts["depth"] = _wrapped(bits.take(5), 32)
    table = SupplementaryTable(**facts, values=())
    take = bits.take_signed if kind == 1 else bits.take
    count = table.count(image.columns, image.rows, image.bands)
    bits.require(count * table.bits)
    values = tuple(take(table.bits) for _ in range(count))
    bits.fill()
    return SupplementaryTable(**facts, values=values)


def _take_predictor(
    bits: BitReader,
    image: ImageLayout,
    weight_table: tuple[tuple[int, ...], ...] | None,
    weight_offsets: WeightOffsets | None,
    damping: tuple[int, ...] | None,
) -> Predictor:
    _reserved(bits, 1)
    representatives = bits.take(1)
    facts: dict[str, Any] = {"prediction_bands": bits.take(4)}
    facts["mode"] = "reduced" if bits.take(1) else "full"
    offsets = bits.take(1)
    facts["local_sum"] = SUMS[bits.take(2)]
    facts["register_size"] = _wrapped(bits.take(6), 64)
    facts["weight_resolution"] = bits.take(4) + 4
    facts["weight_interval"] = 16 << bits.take(4)
    facts["weight_initial"] = bits.take(4) - 6
    facts["weight_final"] = bits.take(4) - 6
    offsets_in_header, custom, table_in_header = (bool(bits.take(1)) for _ in range(3))
    resolution = bits.take(5)
    plain = Predictor(**facts)
    if custom:
        facts["weight_table_resolution"] = resolution
        facts["weight_table_in_header"] = table_in_header
        facts["weight_table"] = weight_table
    if table_in_header:
        if not custom or not resolution:
            found = "a table without custom weights" if not custom else "a resolution of 0"
            raise InvalidInput("weight table", found=found, expected="custom weights of 3 bits and more")
        facts["weight_table"] = _take_rows(bits, image, plain.components, resolution)
    if offsets_in_header and not offsets:
        raise InvalidInput("weight offsets", found="a table of them", expected="none: they are all zero")
    if offsets:
        facts["weight_offsets"] = _take_offsets(bits, image, plain) if offsets_in_header else weight_offsets
        if facts["weight_offsets"] is None:
            expected = "the weight offsets, which this stream does not carry"
            raise InvalidInput("weight_offsets", found="none", expected=expected)
    if representatives:
        facts["representatives"] = _take_representatives(bits, image, damping)
    return Predictor(**facts)


def _take_rows(bits: BitReader, image: ImageLayout, count: Any, size: int) -> tuple[tuple[int, ...], ...]:
    """A row of signed numbers for each band."""
    bits.require(size * sum(count(band) for band in range(image.bands)))
    rows = tuple(tuple(bits.take_signed(size) for _ in range(count(band))) for band in range(image.bands))
    bits.fill()
    return rows


def _take_offsets(bits: BitReader, image: ImageLayout, plain: Predictor) -> WeightOffsets:
    full = plain.mode == "full"
    rows = _take_rows(bits, image, lambda band: min(band, plain.prediction_bands) + full, 4)
    return WeightOffsets(
        own=tuple(row[0] if full else 0 for row in rows), others=tuple(row[full:] for row in rows)
    )


def _take_representatives(
    bits: BitReader, image: ImageLayout, damping: tuple[int, ...] | None
) -> Representatives:
    _reserved(bits, 5)
    resolution = bits.take(3)
    _reserved(bits, 1)
    varying, in_header = bits.take(1), bits.take(1)
    _reserved(bits, 1)
    fixed = bits.take(4)
    _reserved(bits, 1)
    offsets = bits.take(2)
    _reserved(bits, 1)
    nonzero = bits.take(4)
    if varying and in_header:
        bits.require(resolution * image.bands)
        damping = tuple(bits.take(resolution) for _ in range(image.bands))
        bits.fill()
    if offsets & 1:
        bits.require(resolution * image.bands)
        nonzero |= any([bits.take(resolution) for _ in range(image.bands)])
        bits.fill()
    if nonzero:
        raise InvalidInput("offset of representatives", found="one", expected="none, as in lossless streams")
    zero_offsets: Literal["fixed", "table", "elsewhere"]
    zero_offsets = "table" if offsets & 1 else "elsewhere" if offsets else "fixed"
    if not varying:
        return Representatives(resolution=resolution, damping=fixed, zero_offsets=zero_offsets)
    if damping is None:
        raise InvalidInput("damping", found="none", expected="the damping table, which this stream lacks")
    return Representatives(
        resolution=resolution, damping=damping, in_header=bool(in_header), zero_offsets=zero_offsets
    )


def _take_coder(
    bits: BitReader,
    image: ImageLayout,
    kind: int,
    accumulator_table: tuple[int, ...] | None,
    initial_sums: tuple[int, ...] | None,
) -> Coder:
    if kind == 0b11:
        raise InvalidInput("entropy coder", found="3", expected="0, 1 or 2")
    if kind == 0b10:
        _reserved(bits, 1)
        size, restricted = bits.take(2), bool(bits.take(1))
        interval = _wrapped(bits.take(12), 4096)
        return BlockAdaptive(block_size=BLOCK_SIZES[size], reference_interval=interval, restricted=restricted)
    facts: dict[str, Any] = {"unary_length_limit": _wrapped(bits.take(5), 32)}
    facts["rescaling_counter_size"] = bits.take(3) + 4
    facts["initial_count_exponent"] = _wrapped(bits.take(3), 8)
    if kind == 0b01:
        _reserved(bits, 5)
        return HybridCoder(**facts, initial_sums=initial_sums)
    constant, in_header = bits.take(4), bool(bits.take(1))
    if constant != NO_CONSTANT:
        if in_header:
            found = f"a table, and the constant {constant}"
            raise InvalidInput("accumulator table", found=found, expected="either, with a constant of 15")
        return SampleAdaptive(**facts, accumulator_constant=constant)
    if in_header:
        bits.require(4 * image.bands)
        accumulator_table = tuple(bits.take(4) for _ in range(image.bands))
        bits.fill()
    if accumulator_table is None:
        expected = "the accumulator table, which this stream does not carry"
        raise InvalidInput("accumulator_table", found="none", expected=expected)
    return SampleAdaptive(
        **facts, accumulator_constant=None, accumulator_table=accumulator_table, table_in_header=in_header
    )


def write_header(parameters: StreamParameters) -> bytes:
    """The bytes of a header."""
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
