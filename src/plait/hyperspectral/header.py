"""The header of a stream: `StreamParameters` to bytes and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from plait.errors import InvalidInput, PlaitError
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    Coder,
    ErrorLimits,
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
UP: Final = "up"
_FLAG: Final = (False, True)
#: K where there is a table instead.
NO_CONSTANT: Final = 15


class Field(NamedTuple):
    """A field of `bits` bits; without a name zeros, which are reserved.

    `values` are what its numbers stand for, in their order; `UP` where the largest one, a power of two, is
    written as zero; None where they are the values.
    """

    name: str
    bits: int
    values: Sequence[Any] | None = None


_IMAGE: Final = (
    Field("user_field", 8), Field("columns", 16, UP), Field("rows", 16, UP), Field("bands", 16, UP),
    Field("signed", 1, _FLAG), Field("", 1), Field("large", 1), Field("dynamic_range", 4, UP),
    Field("order", 1, ("bi", "bsq")), Field("interleaving_depth", 16, UP), Field("", 2),
    Field("output_word_size", 3, UP), Field("entropy coder", 2, (SampleAdaptive, HybridCoder, BlockAdaptive)),
    Field("", 1), Field("quantizer", 2), Field("", 2), Field("tables", 4),
)  # fmt: skip
_SUPPLEMENTARY: Final = (
    Field("type of a supplementary table", 2, KINDS), Field("", 2), Field("purpose", 4), Field("", 1),
    Field("structure", 2), Field("", 1), Field("user_field", 4),
)  # fmt: skip
_INTEGER: Final = (Field("depth", 5, UP),)
_FLOAT: Final = (Field("significand_bits", 5), Field("exponent_bits", 3, UP))
_PREDICTOR: Final = (
    Field("", 1), Field("has_representatives", 1), Field("prediction_bands", 4),
    Field("mode", 1, ("full", "reduced")), Field("has_offsets", 1), Field("local_sum", 2, SUMS),
    Field("register_size", 6, UP), Field("weight_resolution", 4, range(4, 20)),
    Field("weight_interval", 4, tuple(16 << k for k in range(16))),
    Field("weight_initial", 4, range(-6, 10)), Field("weight_final", 4, range(-6, 10)),
    Field("offsets_in_header", 1), Field("custom", 1), Field("weight_table_in_header", 1, _FLAG),
    Field("weight_table_resolution", 5),
)  # fmt: skip
_REPRESENTATIVES: Final = (
    Field("", 5), Field("resolution", 3), Field("", 1), Field("varying", 1), Field("in_header", 1, _FLAG),
    Field("", 1), Field("damping", 4), Field("", 1), Field("offset_varying", 1),
    Field("offset_in_header", 1, _FLAG), Field("", 1), Field("offset", 4),
)  # fmt: skip
_UPDATES: Final = (Field("", 1), Field("updated", 1), Field("", 2), Field("update_exponent", 4))
_LIMITS: Final = (Field("", 1), Field("by_band", 1, _FLAG), Field("", 2), Field("size", 4, UP))
#: Bits of the number that says which error limits there are.
_KINDS_OF_LIMITS: Final = {"absolute": 1, "relative": 2}
_ADAPTIVE: Final = (
    Field("unary_length_limit", 5, UP), Field("rescaling_counter_size", 3, range(4, 12)),
    Field("initial_count_exponent", 3, UP),
)  # fmt: skip
_CODER_FIELDS: Final = {
    SampleAdaptive: (*_ADAPTIVE, Field("accumulator_constant", 4), Field("table_in_header", 1, _FLAG)),
    HybridCoder: (*_ADAPTIVE, Field("", 5)),
    BlockAdaptive: (
        Field("", 1), Field("block_size", 2, (8, 16, 32, 64)), Field("restricted", 1, _FLAG),
        Field("reference_interval", 12, UP),
    ),
}  # fmt: skip


def _take(bits: BitReader, fields: Sequence[Field]) -> dict[str, Any]:
    """Values of fields by name; InvalidInput for a number that stands for nothing."""
    found: dict[str, Any] = {}
    for name, size, values in fields:
        number = bits.take(size)
        if not name and number:
            what, expected = f"reserved bits before bit {bits.position}", "zeros: this is no CCSDS 123 stream"
            raise InvalidInput(what, found="a one", expected=f"{expected}, or a later one")
        if values is UP:
            found[name] = number or 1 << size
        elif values is None:
            found[name] = number
        elif number < len(values):
            found[name] = values[number]
        else:
            raise InvalidInput(name, found=str(number), expected="0, 1 or 2")
    found.pop("", None)
    return found


def _put(bits: BitWriter, fields: Sequence[Field], *parts: object, **more: Any) -> None:
    """Write fields, whose values are `more`, or else attributes of one of the parts."""
    for name, size, values in fields:
        owner = next((part for part in parts if hasattr(part, name)), None)
        value = more[name] if name in more else getattr(owner, name) if name else 0
        bits.put(int(value) if values is None or values is UP else values.index(value), size)


def _take_table(bits: BitReader, count: int, size: int, *, signed: bool = False) -> tuple[int, ...]:
    bits.require(count * size)
    take = bits.take_signed if signed else bits.take
    found = tuple(take(size) for _ in range(count))
    bits.fill()
    return found


def _put_table(bits: BitWriter, values: Iterable[int], size: int) -> None:
    for value in values:
        bits.put(value, size)
    bits.fill()


def parse_header(
    data: bytes | memoryview,
    *,
    weight_table: tuple[tuple[int, ...], ...] | None = None,
    weight_offsets: WeightOffsets | None = None,
    damping: tuple[int, ...] | None = None,
    offset: tuple[int, ...] | None = None,
    accumulator_table: tuple[int, ...] | None = None,
    initial_sums: tuple[int, ...] | None = None,
) -> tuple[StreamParameters, int]:
    """What a header says, and its length in bytes; `data` begins with the stream.

    The tables are those that the stream uses and does not carry; `initial_sums`, of the hybrid coder, is not
    needed to decompress. HeaderEnd if there are too few bytes; InvalidInput if a field holds what the
    standard does not allow, or a table is missing.
    """
    bits = BitReader(data)
    found = _take(bits, _IMAGE)
    found["dynamic_range"] += 16 * found.pop("large")
    limited = found.pop("quantizer")
    if found["order"] == "bsq":
        found["interleaving_depth"] = 1
    coder_kind, tables = found.pop("entropy coder"), found.pop("tables")
    sizes = ("columns", "rows", "bands", "dynamic_range", "signed")
    image = ImageLayout(**{name: found.pop(name) for name in sizes})
    supplementary = tuple(_take_supplementary(bits, image) for _ in range(tables))
    tables_outside = {"weight_table": weight_table, "damping": damping, "offset": offset}
    predictor = _take_predictor(bits, image, tables_outside, weight_offsets, (limited, found["order"]))
    coder = _take_coder(bits, image, coder_kind, accumulator_table, initial_sums)
    parameters = StreamParameters(
        image=image, predictor=predictor, coder=coder, supplementary=supplementary, **found
    )
    return parameters, bits.position // 8


def write_header(parameters: StreamParameters) -> bytes:
    """The bytes of a header."""
    bits, image = BitWriter(), parameters.image
    limits = parameters.predictor.error_limits
    kinds = _KINDS_OF_LIMITS if limits is not None else {}
    limited = sum(kind for name, kind in kinds.items() if getattr(limits, f"{name}_bits") is not None)
    more = {"entropy coder": type(parameters.coder), "quantizer": limited}
    more["tables"] = len(parameters.supplementary)
    depth = parameters.interleaving_depth if parameters.order == "bi" else 0
    large = image.dynamic_range > 16
    _put(bits, _IMAGE, image, parameters, large=large, interleaving_depth=depth, **more)
    for table in parameters.supplementary:
        _put_supplementary(bits, table)
    _put_predictor(bits, parameters.predictor, image, parameters.order)
    _put_coder(bits, parameters.coder)
    return bits.bytes()


def _take_supplementary(bits: BitReader, image: ImageLayout) -> SupplementaryTable:
    facts = _take(bits, _SUPPLEMENTARY)
    facts["kind"] = facts.pop("type of a supplementary table")
    if facts["kind"] == "float":
        facts |= _take(bits, _FLOAT)
        facts["exponent_bias"] = bits.take(facts["exponent_bits"])
    else:
        facts |= _take(bits, _INTEGER)
    table = SupplementaryTable(**facts, values=())
    count = table.count(image.columns, image.rows, image.bands)
    return replace(table, values=_take_table(bits, count, table.bits, signed=table.kind == "signed"))


def _put_supplementary(bits: BitWriter, table: SupplementaryTable) -> None:
    _put(bits, _SUPPLEMENTARY, table, **{"type of a supplementary table": table.kind})
    if table.kind == "float":
        _put(bits, (*_FLOAT, Field("exponent_bias", table.exponent_bits)), table)
    else:
        _put(bits, _INTEGER, table)
    _put_table(bits, table.values, table.bits)


def _take_predictor(
    bits: BitReader,
    image: ImageLayout,
    tables: dict[str, Any],
    weight_offsets: WeightOffsets | None,
    limited: tuple[int, str],
) -> Predictor:
    facts = _take(bits, _PREDICTOR)
    representatives, offsets = facts.pop("has_representatives"), facts.pop("has_offsets")
    offsets_in_header, custom = facts.pop("offsets_in_header"), facts.pop("custom")
    table = {name: facts.pop(name) for name in ("weight_table_resolution", "weight_table_in_header")}
    resolution, plain = table["weight_table_resolution"], Predictor(**facts)
    if custom:
        facts |= {**table, "weight_table": tables["weight_table"]}
    if table["weight_table_in_header"]:
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
    if limited[0]:
        facts["error_limits"] = _take_limits(bits, image, *limited)
    if representatives:
        facts["representatives"] = _take_representatives(bits, image, tables, lossless=not limited[0])
    return Predictor(**facts)


def _put_predictor(bits: BitWriter, found: Predictor, image: ImageLayout, order: str) -> None:
    offsets, table, resolution = found.weight_offsets, found.weight_table, found.weight_table_resolution
    in_header = table is not None and found.weight_table_in_header
    _put(
        bits,
        _PREDICTOR,
        found,
        has_representatives=found.representatives is not None,
        has_offsets=offsets is not None,
        offsets_in_header=offsets is not None and offsets.in_header,
        custom=resolution is not None,
        weight_table_in_header=in_header,
        weight_table_resolution=resolution or 0,
    )
    if in_header and table is not None and resolution is not None:
        _put_table(bits, chain.from_iterable(table), resolution)
    if offsets is not None and offsets.in_header:
        full = found.mode == "full"
        rows = zip(offsets.own, offsets.others, strict=True)
        _put_table(bits, (one for own, others in rows for one in ((own,) * full + others)), 4)
    if found.error_limits is not None:
        _put_limits(bits, found.error_limits, order)
    if found.representatives is not None:
        _put_representatives(bits, found.representatives)


def _take_rows(
    bits: BitReader, image: ImageLayout, count: Callable[[int], int], size: int
) -> tuple[tuple[int, ...], ...]:
    """A row of signed numbers for each band."""
    counts = [count(band) for band in range(image.bands)]
    numbers = iter(_take_table(bits, sum(counts), size, signed=True))
    return tuple(tuple(islice(numbers, own)) for own in counts)


def _take_offsets(bits: BitReader, image: ImageLayout, plain: Predictor) -> WeightOffsets:
    full = plain.mode == "full"
    rows = _take_rows(bits, image, lambda band: min(band, plain.prediction_bands) + full, 4)
    return WeightOffsets(
        own=tuple(row[0] if full else 0 for row in rows), others=tuple(row[full:] for row in rows)
    )


def _take_limits(bits: BitReader, image: ImageLayout, limited: int, order: str) -> ErrorLimits:
    facts: dict[str, Any] = {}
    if order == "bi":
        updates = _take(bits, _UPDATES)
        if updates["updated"]:
            facts["update_exponent"] = updates["update_exponent"]
        elif updates["update_exponent"]:
            found = f"a period of 2**{updates['update_exponent']} rows"
            raise InvalidInput("updates of error limits", found=found, expected="none, where there are none")
    for name, kind in _KINDS_OF_LIMITS.items():
        if not limited & kind:
            continue
        one = _take(bits, _LIMITS)
        facts |= {f"{name}_by_band": one["by_band"], f"{name}_bits": one["size"]}
        if "update_exponent" not in facts:
            values = _take_table(bits, image.bands if one["by_band"] else 1, one["size"])
            facts[name] = values if one["by_band"] else values[0]
    return ErrorLimits(**facts)


def _put_limits(bits: BitWriter, found: ErrorLimits, order: str) -> None:
    updated = found.update_exponent is not None
    if order == "bi":
        _put(bits, _UPDATES, updated=updated, update_exponent=found.update_exponent or 0)
    for name in _KINDS_OF_LIMITS:
        size, values = getattr(found, f"{name}_bits"), getattr(found, name)
        if size is None:
            continue
        _put(bits, _LIMITS, by_band=getattr(found, f"{name}_by_band"), size=size)
        if not updated:
            _put_table(bits, values if isinstance(values, tuple) else (values,), size)


def _take_representatives(
    bits: BitReader, image: ImageLayout, tables: dict[str, Any], *, lossless: bool
) -> Representatives:
    facts = _take(bits, _REPRESENTATIVES)
    for name, flag, in_header in (
        ("damping", "varying", "in_header"),
        ("offset", "offset_varying", "offset_in_header"),
    ):
        if not facts.pop(flag):
            # One number; then the flag of a table says nothing.
            del facts[in_header]
            continue
        facts[name] = tables[name]
        if facts[in_header]:
            facts[name] = _take_table(bits, image.bands, facts["resolution"])
        elif name == "offset" and facts[name] is None and lossless:
            facts[name] = (0,) * image.bands
        if facts[name] is None:
            raise InvalidInput(name, found="none", expected=f"the {name} table, which this stream lacks")
    return Representatives(**facts)


def _put_representatives(bits: BitWriter, found: Representatives) -> None:
    damping, offset = found.damping, found.offset
    varying, offset_varying = isinstance(damping, tuple), isinstance(offset, tuple)
    _put(
        bits,
        _REPRESENTATIVES,
        found,
        varying=varying,
        in_header=varying and found.in_header,
        damping=0 if varying else damping,
        offset_varying=offset_varying,
        offset_in_header=offset_varying and found.offset_in_header,
        offset=0 if offset_varying else offset,
    )
    for values, carried in ((damping, found.in_header), (offset, found.offset_in_header)):
        if isinstance(values, tuple) and carried:
            _put_table(bits, values, found.resolution)


def _take_coder(
    bits: BitReader,
    image: ImageLayout,
    kind: type[Coder],
    accumulator_table: tuple[int, ...] | None,
    initial_sums: tuple[int, ...] | None,
) -> Coder:
    facts = _take(bits, _CODER_FIELDS[kind])
    if kind is BlockAdaptive:
        return BlockAdaptive(**facts)
    if kind is HybridCoder:
        return HybridCoder(**facts, initial_sums=initial_sums)
    constant, in_header = facts["accumulator_constant"], facts["table_in_header"]
    if constant != NO_CONSTANT:
        if in_header:
            found = f"a table, and the constant {constant}"
            raise InvalidInput("accumulator table", found=found, expected="either, with a constant of 15")
        return SampleAdaptive(**facts | {"table_in_header": True})
    if in_header:
        accumulator_table = _take_table(bits, image.bands, 4)
    if accumulator_table is None:
        expected = "the accumulator table, which this stream does not carry"
        raise InvalidInput("accumulator_table", found="none", expected=expected)
    return SampleAdaptive(**facts | {"accumulator_constant": None, "accumulator_table": accumulator_table})


def _put_coder(bits: BitWriter, coder: Coder) -> None:
    if not isinstance(coder, SampleAdaptive):
        _put(bits, _CODER_FIELDS[type(coder)], coder)
        return
    table = coder.accumulator_table
    in_header = table is not None and coder.table_in_header
    constant = NO_CONSTANT if table is not None else coder.accumulator_constant or 0
    more = {"accumulator_constant": constant, "table_in_header": in_header}
    _put(bits, _CODER_FIELDS[SampleAdaptive], coder, **more)
    if in_header and table is not None:
        _put_table(bits, table, 4)
