"""What compiled code runs for the operations of `plait.lang.lanes`.

Vector instructions, and which serves when.
"""

from __future__ import annotations

import operator
from typing import Any

from plait.lang import lanes as bits
from plait.lang import lanes as groups
from plait.lang.compile import host_features, intrinsic, ir, specialise, types
from plait.lang.registers import (
    INDEX,
    LaneGroup,
    LaneMask,
    alignment,
    call,
    element_type,
    in_rows,
    indices,
    undefined,
    vector_type,
)

_I8 = ir.IntType(8)
_I16 = ir.IntType(16)
_I64 = ir.IntType(64)


def _width(lanes: Any) -> int:
    return int(lanes.instance_class().width)


def _number(kind: Any) -> Any:
    """The type of a lane, or of a number itself."""
    return kind.element if isinstance(kind, LaneGroup) else kind


def _signed(kind: Any) -> bool:
    return bool(_number(kind).signed)


def _is_float(kind: Any) -> bool:
    return isinstance(_number(kind), types.Float)


def _is_integer(kind: Any) -> bool:
    return isinstance(_number(kind), types.Integer)


def _suffix(kind: Any) -> str:
    number = f"{'f' if _is_float(kind) else 'i'}{_number(kind).bitwidth}"
    return f"v{kind.width}{number}" if isinstance(kind, LaneGroup) else number


# --- memory -----------------------------------------------------------------------------------------


def _address(context: Any, builder: Any, kind: Any, place: Any, vector: Any) -> Any:
    array, row, lane = place
    view = context.make_array(kind)(context, builder, array)
    columns = builder.extract_value(view.shape, 1)
    offset = builder.add(builder.mul(row, columns), lane)
    return builder.bitcast(builder.gep(view.data, [offset]), vector.as_pointer())


@intrinsic
def vector_load(typing_context: Any, lanes: Any, rows: Any, row: Any, lane: Any) -> Any:
    """Read a group from one row."""
    if not in_rows(rows):
        return None
    kind = LaneGroup(rows.dtype, _width(lanes))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _address(context, builder, signature.args[1], args[1:4], vector_type(kind))
        value = builder.load(place)
        value.align = alignment(rows)
        return value

    return kind(lanes, rows, types.int64, types.int64), generate


@intrinsic
def vector_store(typing_context: Any, lanes: Any, rows: Any, row: Any, lane: Any, value: Any) -> Any:
    """Write a group to one row."""
    if not in_rows(rows) or not rows.mutable or value != LaneGroup(rows.dtype, _width(lanes)):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _address(context, builder, signature.args[1], args[1:4], vector_type(value))
        builder.store(args[4], place).align = alignment(rows)
        return context.get_dummy_value()

    return types.void(lanes, rows, types.int64, types.int64, value), generate


@intrinsic
def element_load(typing_context: Any, rows: Any, row: Any, lane: Any) -> Any:
    """Read one lane; other than ``rows[row, lane]``, without regard to negative indices."""
    if not in_rows(rows):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(_address(context, builder, signature.args[0], args, element_type(rows.dtype)))
        value.align = alignment(rows)
        return value

    return rows.dtype(rows, types.int64, types.int64), generate


@intrinsic
def element_store(typing_context: Any, rows: Any, row: Any, lane: Any, value: Any) -> Any:
    """Write one lane, without regard to negative indices."""
    if not in_rows(rows) or not rows.mutable:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _address(context, builder, signature.args[0], args[:3], element_type(rows.dtype))
        builder.store(args[3], place).align = alignment(rows)
        return context.get_dummy_value()

    return types.void(rows, types.int64, types.int64, rows.dtype), generate


@intrinsic
def vector_splat(typing_context: Any, lanes: Any, value: Any) -> Any:
    """Fill a group with one value."""
    kind = LaneGroup(value, _width(lanes))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        nothing = undefined(vector_type(kind))
        first = builder.insert_element(nothing, args[1], ir.Constant(INDEX, 0))
        return builder.shuffle_vector(first, nothing, indices([0] * kind.width))

    return kind(lanes, value), generate


# --- arithmetic -------------------------------------------------------------------------------------


def _arithmetic(integer: str, floating: str | None) -> Any:
    """One of LLVM's instructions, which has a name for integers and another, if any, for other numbers."""

    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        name = floating if _is_float(a) else integer
        if a != b or name is None:
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, name)(*args)

        return a(a, b), generate

    return operation


vector_add = _arithmetic("add", "fadd")
vector_subtract = _arithmetic("sub", "fsub")
vector_multiply = _arithmetic("mul", "fmul")
vector_and = _arithmetic("and_", None)
vector_or = _arithmetic("or_", None)
vector_xor = _arithmetic("xor", None)


def _of_three(table: int, generic: Any) -> Any:
    """A function of the bits of three groups, by its truth table where there is an instruction for any."""

    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
        if a != b or a != c or not _is_integer(a):
            return None
        bits = a.width * a.element.bitwidth
        features = host_features()
        one = bits in (128, 256, 512) and features.get("avx512f" if bits == 512 else "avx512vl")

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if not one:
                return generic(builder, *args)
            words = ir.VectorType(_I64, bits // 64)
            cast = [builder.bitcast(value, words) for value in args]
            name = f"llvm.x86.avx512.pternlog.q.{bits}"
            found = call(builder, name, words, *cast, ir.Constant(INDEX, table))
            return builder.bitcast(found, args[0].type)

        return a(a, a, a), generate

    return operation


vector_parity = _of_three(0x96, lambda builder, a, b, c: builder.xor(builder.xor(a, b), c))
vector_majority = _of_three(
    0xE8,
    lambda builder, a, b, c: builder.or_(builder.and_(a, b), builder.and_(c, builder.or_(a, b))),
)


@intrinsic
def vector_shift_left(typing_context: Any, a: Any, b: Any) -> Any:
    """Shift left, by less than the bits of a lane."""
    if a != b or not _is_integer(a):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.shl(*args)

    return a(a, b), generate


@intrinsic
def vector_shift_right(typing_context: Any, a: Any, b: Any) -> Any:
    """Shift right, by less than the bits of a lane."""
    if a != b or not _is_integer(a):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ashr(*args) if _signed(a) else builder.lshr(*args)

    return a(a, b), generate


def _pairwise(signed: str, unsigned: str, floating: str) -> Any:
    """An LLVM intrinsic of two operands of the same type, scalar or vector."""

    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        if a != b:
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if not _is_float(a):
                name = signed if _signed(a) else unsigned
                return call(builder, f"llvm.{name}.{_suffix(a)}", args[0].type, *args)
            if floating in ("fadd", "fsub"):
                return getattr(builder, floating)(*args)
            return builder.select(builder.fcmp_ordered(floating, *args), *args)

        return a(a, a), generate

    return operation


vector_add_saturating = _pairwise("sadd.sat", "uadd.sat", "fadd")
vector_subtract_saturating = _pairwise("ssub.sat", "usub.sat", "fsub")
vector_maximum = _pairwise("smax", "umax", ">")
vector_minimum = _pairwise("smin", "umin", "<")


# --- masks ------------------------------------------------------------------------------------------


def _comparison(sign: str) -> Any:
    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        if a != b:
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if _is_float(a):
                return builder.fcmp_ordered(sign, *args)
            return (builder.icmp_signed if _signed(a) else builder.icmp_unsigned)(sign, *args)

        return LaneMask(a.width)(a, a), generate

    return operation


vector_equal = _comparison("==")
vector_greater = _comparison(">")


@intrinsic
def vector_select(typing_context: Any, mask: Any, a: Any, b: Any) -> Any:
    """Pick by a mask."""
    if a != b or mask != LaneMask(a.width):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return a(mask, a, a), generate


@intrinsic
def vector_mask_bits(typing_context: Any, mask: Any) -> Any:
    """Turn a mask into a word."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = builder.bitcast(args[0], ir.IntType(mask.width))
        return word if mask.width == 64 else builder.zext(word, ir.IntType(64))

    return types.int64(mask), generate


# --- across lanes -----------------------------------------------------------------------------------


def _reduction(signed: str, unsigned: str, floating: str | None) -> Any:
    @intrinsic
    def operation(typing_context: Any, a: Any) -> Any:
        name = floating if _is_float(a) else signed if _signed(a) else unsigned
        if name is None:
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return call(builder, f"llvm.vector.reduce.{name}.{_suffix(a)}", element_type(a.element), *args)

        return a.element(a), generate

    return operation


vector_any_bits = _reduction("or", "or", None)
vector_largest_lane = _reduction("smax", "umax", "fmax")


@intrinsic
def vector_last_lane(typing_context: Any, a: Any) -> Any:
    """Take the last lane out."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.extract_element(args[0], ir.Constant(INDEX, a.width - 1))

    return a.element(a), generate


def _half(upper: bool) -> Any:
    """One half of the lanes: a narrower group, or a number."""

    @intrinsic
    def operation(typing_context: Any, a: Any) -> Any:
        width = a.width // 2
        first = width if upper else 0

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if width == 1:
                return builder.extract_element(args[0], ir.Constant(INDEX, first))
            return builder.shuffle_vector(args[0], args[0], indices(range(first, first + width)))

        return (a.element if width == 1 else LaneGroup(a.element, width))(a), generate

    return operation


vector_lower_half = _half(False)
vector_upper_half = _half(True)


@intrinsic
def vector_shift_in(typing_context: Any, a: Any, first: Any) -> Any:
    """Move every lane up by one."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        entering = builder.insert_element(undefined(vector_type(a)), args[1], ir.Constant(INDEX, 0))
        return builder.shuffle_vector(args[0], entering, indices([a.width, *range(a.width - 1)]))

    return a(a, a.element), generate


@intrinsic
def vector_widen(typing_context: Any, like: Any, value: Any) -> Any:
    """Extend integers to the lane type of another group."""
    if not _is_integer(like) or not _is_integer(value) or value.element.bitwidth > like.element.bitwidth:
        return None
    kind = LaneGroup(like.element, value.width)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if value.element.bitwidth == like.element.bitwidth:
            return args[1]
        extend = builder.sext if _signed(value) else builder.zext
        return extend(args[1], vector_type(kind))

    return kind(like, value), generate


@intrinsic
def number_widen(typing_context: Any, like: Any, value: Any) -> Any:
    """Extend an integer to the type of another one; Numba's own arithmetic would make both 64 bits wide."""
    if not _is_integer(like) or not _is_integer(value):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[1], value, like)

    return like(like, value), generate


@intrinsic
def count_trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Index of the lowest bit that is set; any value if none is."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@intrinsic
def count_ones(typing_context: Any, word: Any) -> Any:
    """Number of bits that are set."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), generate


@intrinsic
def last_one(typing_context: Any, word: Any) -> Any:
    """Index of the highest bit that is set; any value if none is."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(zeros.type, 63), zeros)

    return types.int64(types.int64), generate


def _halves(builder: Any, table: Any, width: int) -> Any:
    """The 32 entries as two tables of 16, repeated to `width`."""
    nothing = undefined(table.type)
    low = builder.shuffle_vector(table, nothing, indices(k % 16 for k in range(width)))
    high = builder.shuffle_vector(table, nothing, indices(16 + k % 16 for k in range(width)))
    return low, high


def _shuffle_of_halves(builder: Any, name: str, table: Any, index: Any, width: int) -> Any:
    low, high = _halves(builder, table, width)
    fifteen = ir.Constant(index.type, [15] * width)
    within = builder.and_(index, fifteen)
    first = call(builder, name, index.type, low, within)
    second = call(builder, name, index.type, high, within)
    return builder.select(builder.icmp_unsigned(">", index, fifteen), second, first)


def _pieces(builder: Any, index: Any, width: int, piece: int) -> Any:
    """`index` as groups of `piece` lanes; a narrower one is filled up."""
    nothing = undefined(index.type)
    for start in range(0, max(width, piece), piece):
        yield builder.shuffle_vector(index, nothing, indices(min(start + k, width - 1) for k in range(piece)))


def _joined(builder: Any, parts: list[Any], width: int) -> Any:
    while len(parts) > 1:
        size = parts[0].type.count
        parts = [
            builder.shuffle_vector(parts[k], parts[k + 1], indices(range(2 * size)))
            for k in range(0, len(parts), 2)
        ]
    if parts[0].type.count == width:
        return parts[0]
    return builder.shuffle_vector(parts[0], undefined(parts[0].type), indices(range(width)))


def _byte_lookup(builder: Any, table: Any, index: Any, width: int) -> Any:
    """Look `index` up in 32 bytes, with the widest shuffle of this processor; None when it has none."""
    features = host_features()
    if features.get("avx512vbmi"):
        both = builder.shuffle_vector(table, undefined(table.type), indices(k % 32 for k in range(64)))
        name, piece = "llvm.x86.avx512.permvar.qi.512", 64

        def one(part: Any) -> Any:
            return call(builder, name, part.type, both, part)

    elif features.get("avx2"):
        name, piece = "llvm.x86.avx2.pshuf.b", 32

        def one(part: Any) -> Any:
            return _shuffle_of_halves(builder, name, table, part, piece)

    elif features.get("ssse3"):
        name, piece = "llvm.x86.ssse3.pshuf.b.128", 16

        def one(part: Any) -> Any:
            return _shuffle_of_halves(builder, name, table, part, piece)

    elif features.get("neon"):
        name, piece = "llvm.aarch64.neon.tbl2.v16i8", 16
        low, high = _halves(builder, table, 16)

        def one(part: Any) -> Any:
            return call(builder, name, part.type, low, high, part)

    else:
        return None
    return _joined(builder, [one(part) for part in _pieces(builder, index, width, piece)], width)


def _lookup_one_by_one(builder: Any, entries: Any, index: Any, vector: Any, align: int) -> Any:
    found = undefined(vector)
    for lane in range(vector.count):
        code = builder.extract_element(index, ir.Constant(INDEX, lane))
        # As the shuffles do: no index reads past the table.
        at = builder.zext(builder.and_(code, ir.Constant(code.type, 31)), _I64)
        entry = builder.load(builder.gep(entries, [at]))
        entry.align = align
        found = builder.insert_element(found, entry, ir.Constant(INDEX, lane))
    return found


def _word_lookup(builder: Any, table: Any, index: Any, width: int) -> Any:
    """Look 16-bit numbers up in 32 words; None when this processor has no shuffle."""
    words = ir.VectorType(_I16, width)
    if host_features().get("avx512bw"):
        name, piece = "llvm.x86.avx512.permvar.hi.512", 32
        parts = [call(builder, name, table.type, table, p) for p in _pieces(builder, index, width, piece)]
        return _joined(builder, parts, width)
    octets = builder.bitcast(table, ir.VectorType(_I8, 64))
    narrow = builder.trunc(index, ir.VectorType(_I8, width))
    halves = [
        builder.shuffle_vector(octets, undefined(octets.type), indices(range(first, 64, 2)))
        for first in (0, 1)
    ]
    low, high = (_byte_lookup(builder, half, narrow, width) for half in halves)
    if low is None:
        return None
    upper = builder.shl(builder.zext(high, words), ir.Constant(words, [8] * width))
    return builder.or_(builder.zext(low, words), upper)


def _whole_row(builder: Any, entries: Any, kind: Any, align: int) -> Any:
    row = builder.load(builder.bitcast(entries, ir.VectorType(kind, 32).as_pointer()))
    row.align = align
    return row


def _resized(builder: Any, index: Any, kind: Any) -> Any:
    """`index` in lanes of another width."""
    have = index.type.element.width
    wanted = ir.VectorType(kind, index.type.count)
    if have == kind.width:
        return index
    return builder.zext(index, wanted) if have < kind.width else builder.trunc(index, wanted)


@intrinsic
def vector_lookup(typing_context: Any, lanes: Any, table: Any, row: Any, index: Any) -> Any:
    """``table[row, index]``, lane by lane, in a table of 32 columns."""
    if not in_rows(table) or index.element not in (types.uint8, types.uint16):
        return None
    kind = LaneGroup(table.dtype, index.width)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[1])(context, builder, args[1])
        entries = builder.gep(view.data, [builder.mul(args[2], ir.Constant(_I64, 32))])
        found = None
        if table.dtype.bitwidth == 8:
            octets = _whole_row(builder, entries, _I8, 1)
            found = _byte_lookup(builder, octets, _resized(builder, args[3], _I8), index.width)
        elif table.dtype.bitwidth == 16:
            words = _whole_row(builder, entries, _I16, alignment(table))
            found = _word_lookup(builder, words, _resized(builder, args[3], _I16), index.width)
        if found is None:
            found = _lookup_one_by_one(builder, entries, args[3], vector_type(kind), alignment(table))
        return found

    return kind(lanes, table, types.int64, index), generate


def _is_one(lanes: Any) -> bool:
    return int(lanes.instance_class().width) == 1


def _is_group(a: Any) -> bool:
    return isinstance(a, LaneGroup)


def _load_group(lanes, rows, row, lane):  # type: ignore[no-untyped-def]
    return vector_load(lanes, rows, row, lane)


def _load_one(lanes, rows, row, lane):  # type: ignore[no-untyped-def]
    return element_load(rows, row, lane)


def _store_group(lanes, rows, row, lane, value):  # type: ignore[no-untyped-def]
    vector_store(lanes, rows, row, lane, value)


def _store_one(lanes, rows, row, lane, value):  # type: ignore[no-untyped-def]
    element_store(rows, row, lane, value)


def _splat_group(lanes, value):  # type: ignore[no-untyped-def]
    return vector_splat(lanes, value)


def _splat_one(lanes, value):  # type: ignore[no-untyped-def]
    return value


def _lookup_group(lanes, table, row, index):  # type: ignore[no-untyped-def]
    return vector_lookup(lanes, table, row, index)


def _lookup_one(lanes, table, row, index):  # type: ignore[no-untyped-def]
    return table[row, index]


def _add_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_add(a, b)


def _subtract_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_subtract(a, b)


def _multiply_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_multiply(a, b)


def _and_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_and(a, b)


def _or_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_or(a, b)


def _xor_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_xor(a, b)


def _parity_groups(a, b, c):  # type: ignore[no-untyped-def]
    return vector_parity(a, b, c)


def _parity_numbers(a, b, c):  # type: ignore[no-untyped-def]
    return a ^ b ^ c


def _majority_groups(a, b, c):  # type: ignore[no-untyped-def]
    return vector_majority(a, b, c)


def _majority_numbers(a, b, c):  # type: ignore[no-untyped-def]
    return (a & b) | (c & (a | b))


def _shift_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_shift_right(a, b)


def _shift_groups_left(a, b):  # type: ignore[no-untyped-def]
    return vector_shift_left(a, b)


def _add_saturating(a, b):  # type: ignore[no-untyped-def]
    return vector_add_saturating(a, b)


def _subtract_saturating(a, b):  # type: ignore[no-untyped-def]
    return vector_subtract_saturating(a, b)


def _maximum_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_maximum(a, b)


def _maximum_numbers(a, b):  # type: ignore[no-untyped-def]
    return a if a > b else b


def _minimum_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_minimum(a, b)


def _minimum_numbers(a, b):  # type: ignore[no-untyped-def]
    return a if a < b else b


def _equal_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_equal(a, b)


def _equal_numbers(a, b):  # type: ignore[no-untyped-def]
    return a == b


def _greater_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_greater(a, b)


def _greater_numbers(a, b):  # type: ignore[no-untyped-def]
    return a > b


def _select_groups(mask, a, b):  # type: ignore[no-untyped-def]
    return vector_select(mask, a, b)


def _select_numbers(mask, a, b):  # type: ignore[no-untyped-def]
    return a if mask else b


def _mask_bits_group(mask):  # type: ignore[no-untyped-def]
    return vector_mask_bits(mask)


def _mask_bits_number(mask):  # type: ignore[no-untyped-def]
    return 1 if mask else 0


def _any_bits_group(a):  # type: ignore[no-untyped-def]
    return vector_any_bits(a)


def _largest_lane_group(a):  # type: ignore[no-untyped-def]
    return vector_largest_lane(a)


def _same_number(a):  # type: ignore[no-untyped-def]
    return a


def _last_lane_group(a):  # type: ignore[no-untyped-def]
    return vector_last_lane(a)


def _lower_half_group(a):  # type: ignore[no-untyped-def]
    return vector_lower_half(a)


def _upper_half_group(a):  # type: ignore[no-untyped-def]
    return vector_upper_half(a)


def _shift_in_group(a, first):  # type: ignore[no-untyped-def]
    return vector_shift_in(a, first)


def _shift_in_number(a, first):  # type: ignore[no-untyped-def]
    return first


def _widen_group(like, value):  # type: ignore[no-untyped-def]
    return vector_widen(like, value)


def _widen_number(like, value):  # type: ignore[no-untyped-def]
    return number_widen(like, value)


def _highest_bit(word):  # type: ignore[no-untyped-def]
    return last_one(word)


def _lowest_bit(word):  # type: ignore[no-untyped-def]
    return count_trailing_zeros(word)


def _without_lowest(word):  # type: ignore[no-untyped-def]
    return word & (word - 1)


def _population(word):  # type: ignore[no-untyped-def]
    return count_ones(word)


def _by_width(one: Any, group: Any) -> Any:
    return lambda lanes, *rest: one if _is_one(lanes) else group


def _by_operand(number: Any, group: Any) -> Any:
    return lambda a, *rest: group if _is_group(a) else number


def _by_mask(number: Any, group: Any) -> Any:
    return lambda mask, *rest: group if isinstance(mask, LaneMask) else number


specialise(bits.highest_bit, lambda word: _highest_bit)
specialise(bits.lowest_bit, lambda word: _lowest_bit)
specialise(bits.without_lowest, lambda word: _without_lowest)
specialise(bits.population, lambda word: _population)
specialise(groups.load, _by_width(_load_one, _load_group))
specialise(groups.store, _by_width(_store_one, _store_group))
specialise(groups.splat, _by_width(_splat_one, _splat_group))
specialise(groups.lookup, _by_width(_lookup_one, _lookup_group))
specialise(groups.maximum, _by_operand(_maximum_numbers, _maximum_groups))
specialise(groups.minimum, _by_operand(_minimum_numbers, _minimum_groups))
specialise(groups.add_saturating, lambda a, b: _add_saturating)
specialise(groups.subtract_saturating, lambda a, b: _subtract_saturating)
specialise(groups.parity, _by_operand(_parity_numbers, _parity_groups))
specialise(groups.majority, _by_operand(_majority_numbers, _majority_groups))
specialise(groups.equal, _by_operand(_equal_numbers, _equal_groups))
specialise(groups.greater, _by_operand(_greater_numbers, _greater_groups))
specialise(groups.select, _by_mask(_select_numbers, _select_groups))
specialise(groups.mask_bits, _by_mask(_mask_bits_number, _mask_bits_group))
specialise(groups.any_bits, _by_operand(_same_number, _any_bits_group))
specialise(groups.largest_lane, _by_operand(_same_number, _largest_lane_group))
specialise(groups.last_lane, _by_operand(_same_number, _last_lane_group))
specialise(groups.lower_half, lambda a: _lower_half_group)
specialise(groups.upper_half, lambda a: _upper_half_group)
specialise(groups.shift_in, _by_operand(_shift_in_number, _shift_in_group))
specialise(groups.widen, _by_operand(_widen_number, _widen_group))
specialise(operator.add, _by_operand(None, _add_groups))
specialise(operator.sub, _by_operand(None, _subtract_groups))
specialise(operator.mul, _by_operand(None, _multiply_groups))
specialise(operator.and_, _by_operand(None, _and_groups))
specialise(operator.or_, _by_operand(None, _or_groups))
specialise(operator.xor, _by_operand(None, _xor_groups))
specialise(operator.lshift, _by_operand(None, _shift_groups_left))
specialise(operator.rshift, _by_operand(None, _shift_groups))
