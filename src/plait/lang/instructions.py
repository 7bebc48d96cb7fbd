"""What compiled code runs for the operations of `plait.lang.lanes`.

Vector instructions, and which serves when; those for tables and turned squares are in `plait.lang.shuffles`.
"""

from __future__ import annotations

import hashlib
import operator
from typing import Any

import numpy as np

from plait.lang import lanes as groups
from plait.lang.compile import (
    AttributeTemplate,
    host_features,
    infer_getattr,
    intrinsic,
    ir,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    specialise,
    type_callable,
    types,
)

#: Type of the lane numbers in LLVM's instructions.
INDEX = ir.IntType(32)


class LaneGroup(types.Type):  # type: ignore[misc]  # Numba is untyped
    """Numba type of a group of more than one lane; `element` is an integer or a floating-point type."""

    def __init__(self, element: Any, width: int) -> None:
        self.element = element
        self.width = width
        super().__init__(name=f"lanes({element} x {width})")


class LaneMask(types.Type):  # type: ignore[misc]  # Numba is untyped
    """Numba type of a mask over a group of more than one lane."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"mask({width})")


class Held(types.Type):  # type: ignore[misc]  # Numba is untyped
    """Numba type of the address of a tuple with names, `kind`, that has arrays."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        # Names of functions have those of their arguments.
        told = hashlib.blake2b(str(kind).encode(), digest_size=8).hexdigest()
        super().__init__(name=f"{kind.instance_class.__name__}_{told}")


def _has_arrays(kind: Any) -> bool:
    return isinstance(kind, types.Array) or any(map(_has_arrays, getattr(kind, "types", ())))


def _is_held(kind: Any) -> bool:
    return hasattr(kind, "fields") and _has_arrays(kind)


@register_model(Held)
class _HeldModel(models.PrimitiveModel):  # type: ignore[misc]  # Numba is untyped
    def __init__(self, manager: Any, kind: Held) -> None:
        super().__init__(manager, kind, manager[kind.kind].get_value_type().as_pointer())


@infer_getattr
class _HeldFields(AttributeTemplate):  # type: ignore[misc]  # Numba is untyped
    key = Held

    def generic_resolve(self, held: Held, name: str) -> Any:
        kind = dict(zip(held.kind.fields, held.kind.types, strict=True)).get(name)
        return Held(kind) if _is_held(kind) else kind


@lower_getattr_generic(Held)
def _held_field(context: Any, builder: Any, held: Held, address: Any, name: str) -> Any:
    at = held.kind.fields.index(name)
    place = builder.gep(address, [ir.Constant(INDEX, 0), ir.Constant(INDEX, at)], inbounds=True)
    return place if _is_held(held.kind.types[at]) else builder.load(place)


@type_callable(groups.held)
def _held_type(context: Any) -> Any:
    return lambda fields: Held(fields) if _is_held(fields) else fields


def _in_memory(builder: Any, value: Any) -> Any:
    """The address of a value, in the memory of the function."""
    with builder.goto_entry_block():
        place = builder.alloca(value.type)
    builder.store(value, place)
    return place


@lower_builtin(groups.held, types.BaseTuple)
def _hold(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    # In the memory of the caller: a function of its own would have none any more.
    return _in_memory(builder, args[0]) if _is_held(signature.args[0]) else args[0]


def element_type(kind: Any) -> Any:
    """LLVM's type of a number."""
    if isinstance(kind, types.Float):
        return ir.DoubleType() if kind.bitwidth == 64 else ir.FloatType()
    return ir.IntType(kind.bitwidth)


def vector_type(kind: LaneGroup) -> Any:
    """LLVM's type of a group."""
    return ir.VectorType(element_type(kind.element), kind.width)


def in_rows(array: Any) -> bool:
    """Whether the memory contract allows an array of this type: rows of C order."""
    return bool(array.ndim == 2 and array.layout == "C")


def alignment(array: Any) -> int:
    """Bytes that places in an array are a multiple of: those of a lane, or one in a mapped file."""
    return array.dtype.bitwidth // 8 if array.aligned else 1


def undefined(vector: Any) -> Any:
    """A vector of any values."""
    return ir.Constant(vector, ir.Undefined)


def indices(numbers: Any) -> Any:
    """Lane numbers for a shuffle."""
    listed = list(numbers)
    return ir.Constant(ir.VectorType(INDEX, len(listed)), listed)


def call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """Call one of LLVM's intrinsic functions by its full name."""
    kind = ir.FunctionType(result, [a.type for a in args])
    return builder.call(builder.module.declare_intrinsic(name, (), kind), args)


@register_model(LaneGroup)
class _GroupModel(models.PrimitiveModel):  # type: ignore[misc]  # Numba is untyped
    def __init__(self, manager: Any, kind: LaneGroup) -> None:
        super().__init__(manager, kind, vector_type(kind))


@register_model(LaneMask)
class _MaskModel(models.PrimitiveModel):  # type: ignore[misc]  # Numba is untyped
    def __init__(self, manager: Any, kind: LaneMask) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.IntType(1), kind.width))


_I8 = ir.IntType(8)
_I16 = ir.IntType(16)
_I64 = ir.IntType(64)


def lane_count(lanes: Any) -> int:
    """Lanes of groups, by the type of what stands for them."""
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


def address_of(context: Any, builder: Any, kind: Any, place: Any, vector: Any) -> Any:
    """Where a group of a type of vectors lies: in an array of type `kind`, at a row and a lane."""
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
    kind = LaneGroup(rows.dtype, lane_count(lanes))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = address_of(context, builder, signature.args[1], args[1:4], vector_type(kind))
        value = builder.load(place)
        value.align = alignment(rows)
        return value

    return kind(lanes, rows, types.int64, types.int64), generate


def _storing(streamed: bool) -> Any:
    """Write a group to one row, `streamed`: past the caches."""

    @intrinsic
    def operation(typing_context: Any, lanes: Any, rows: Any, row: Any, lane: Any, value: Any) -> Any:
        if not in_rows(rows) or not rows.mutable or value != LaneGroup(rows.dtype, lane_count(lanes)):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = vector_type(value)
            written = builder.store(args[4], address_of(context, builder, signature.args[1], args[1:4], kind))
            written.align = context.get_abi_sizeof(kind) if streamed else alignment(rows)
            if streamed:
                once = builder.module.add_metadata([ir.Constant(INDEX, 1)])
                written.set_metadata("nontemporal", once)
            return context.get_dummy_value()

        return types.void(lanes, rows, types.int64, types.int64, value), generate

    return operation


vector_store, vector_stream = _storing(streamed=False), _storing(streamed=True)


@intrinsic
def element_load(typing_context: Any, rows: Any, row: Any, lane: Any) -> Any:
    """Read one lane; other than ``rows[row, lane]``, without regard to negative indices."""
    if not in_rows(rows):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.load(address_of(context, builder, signature.args[0], args, element_type(rows.dtype)))
        value.align = alignment(rows)
        return value

    return rows.dtype(rows, types.int64, types.int64), generate


@intrinsic
def element_store(typing_context: Any, rows: Any, row: Any, lane: Any, value: Any) -> Any:
    """Write one lane, without regard to negative indices."""
    if not in_rows(rows) or not rows.mutable:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = address_of(context, builder, signature.args[0], args[:3], element_type(rows.dtype))
        builder.store(args[3], place).align = alignment(rows)
        return context.get_dummy_value()

    return types.void(rows, types.int64, types.int64, rows.dtype), generate


@intrinsic
def row_prefetch(typing_context: Any, rows: Any, row: Any) -> Any:
    """Ask for the line of the cache in which a row begins."""
    if rows.layout != "C":
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(rows)(context, builder, args[0])
        columns = builder.extract_value(view.shape, 1) if rows.ndim == 2 else ir.Constant(_I64, 1)
        place = builder.bitcast(builder.gep(view.data, [builder.mul(args[1], columns)]), _I8.as_pointer())
        # To be read, from the nearest cache, as data.
        how = [ir.Constant(INDEX, number) for number in (0, 3, 1)]
        kind = ir.FunctionType(ir.VoidType(), [place.type, INDEX, INDEX, INDEX])
        builder.call(builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind), [place, *how])
        return context.get_dummy_value()

    return types.void(rows, types.int64), generate


@intrinsic
def vector_splat(typing_context: Any, lanes: Any, value: Any) -> Any:
    """Fill a group with one value."""
    kind = LaneGroup(value, lane_count(lanes))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        nothing = undefined(vector_type(kind))
        first = builder.insert_element(nothing, args[1], ir.Constant(INDEX, 0))
        return builder.shuffle_vector(first, nothing, indices([0] * kind.width))

    return kind(lanes, value), generate


# --- arithmetic -------------------------------------------------------------------------------------


def _arithmetic(integer: str | None, floating: str | None) -> Any:
    """One of LLVM's instructions, which may have a name for integers and another for other numbers."""

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
vector_divide = _arithmetic(None, "fdiv")
vector_and = _arithmetic("and_", None)
vector_or = _arithmetic("or_", None)
vector_xor = _arithmetic("xor", None)


def _by_truth_table(table: int, generic: Any) -> Any:
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


vector_parity = _by_truth_table(0x96, lambda builder, a, b, c: builder.xor(builder.xor(a, b), c))
vector_majority = _by_truth_table(
    0xE8,
    # a ^ b is part of the parity too.
    lambda builder, a, b, c: builder.or_(builder.and_(a, b), builder.and_(c, builder.xor(a, b))),
)


def _shift(signed: str, unsigned: str) -> Any:
    """Shift lanes, each by less than its bits."""

    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        if a != b or not _is_integer(a):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, signed if _signed(a) else unsigned)(*args)

        return a(a, b), generate

    return operation


vector_shift_left = _shift("shl", "shl")
vector_shift_right = _shift("ashr", "lshr")


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


@intrinsic
def lane_quotient(typing_context: Any, a: Any, b: Any) -> Any:
    """Divide integers of 64 bits, numbers or groups, as floating-point numbers that hold them."""
    if a != b or not _is_integer(a):
        return None
    kind: Any = ir.DoubleType()
    kind = ir.VectorType(kind, a.width) if isinstance(a, LaneGroup) else kind

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = builder.fdiv(*(builder.sitofp(value, kind) for value in args))
        return builder.fptosi(found, args[0].type)

    return a(a, a), generate


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
        if first == a:
            return builder.shuffle_vector(args[1], args[0], indices(range(a.width - 1, 2 * a.width - 1)))
        entering = builder.insert_element(undefined(vector_type(a)), args[1], ir.Constant(INDEX, 0))
        return builder.shuffle_vector(args[0], entering, indices([a.width, *range(a.width - 1)]))

    return a(a, a if first == a else a.element), generate


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
def lane_narrow(typing_context: Any, like: Any, value: Any) -> Any:
    """Hold signed integers, a number or a group, at the limits of a narrower type, and cut them."""
    if not _is_integer(like) or not _is_integer(value) or not _signed(value):
        return None
    number, grouped = _number(like), isinstance(value, LaneGroup)
    if number.bitwidth >= _number(value).bitwidth:
        return None
    kind = LaneGroup(number, value.width) if grouped else number

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = args[1]
        for name, limit in ("smax", number.minval), ("smin", number.maxval):
            bound = ir.Constant(found.type, [limit] * value.width if grouped else limit)
            found = call(builder, f"llvm.{name}.{_suffix(value)}", found.type, found, bound)
        return builder.trunc(found, vector_type(kind) if grouped else element_type(number))

    return kind(like, value), generate


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


# --- what stands for an operation in compiled code -------------------------------------------------------


def _of_one(operation: Any) -> Any:
    return lambda a: operation(a)


def _product(odd: bool) -> Any:
    """Multiply every other lane of groups of 32-bit integers into 64 bits."""

    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        if a != b or not _is_integer(a) or a.element.bitwidth != 32:
            return None
        wide = LaneGroup(types.int64, a.width // 2)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = vector_type(wide)
            half = ir.Constant(kind, [32] * wide.width)
            cast = [builder.bitcast(value, kind) for value in args]
            # Their lower halves alone are multiplied, for which there is an instruction.
            both = cast if odd else [builder.shl(value, half) for value in cast]
            return builder.mul(*(builder.ashr(value, half) for value in both))

        return wide(a, b), generate

    return operation


vector_product_even, vector_product_odd = _product(False), _product(True)


@intrinsic
def vector_interleaved(typing_context: Any, even: Any, odd: Any, shift: Any) -> Any:
    """Shift lanes of 64 bits, and take the lower halves of one and the other in turn."""
    if even != odd or shift != LaneGroup(types.int32, 2 * even.width):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        low, half = (ir.Constant(args[0].type, [n] * even.width) for n in (0xFFFFFFFF, 32))
        both = builder.bitcast(args[2], args[0].type)
        places = builder.and_(both, low), builder.lshr(both, half)
        halves = [
            builder.bitcast(builder.lshr(*one), args[2].type) for one in zip(args[:2], places, strict=True)
        ]
        order = [k if k % 2 == 0 else shift.width + k - 1 for k in range(shift.width)]
        return builder.shuffle_vector(*halves, indices(order))

    return shift(even, odd, shift), generate


def _of_two(operation: Any) -> Any:
    return lambda a, b: operation(a, b)


def _of_three(operation: Any) -> Any:
    return lambda a, b, c: operation(a, b, c)


def _of_five(operation: Any) -> Any:
    return lambda a, b, c, d, e: operation(a, b, c, d, e)


def _load_group(lanes, rows, row, lane):  # type: ignore[no-untyped-def]
    return vector_load(lanes, rows, row, lane)


def _load_one(lanes, rows, row, lane):  # type: ignore[no-untyped-def]
    return element_load(rows, row, lane)


def _store_one(lanes, rows, row, lane, value):  # type: ignore[no-untyped-def]
    element_store(rows, row, lane, value)


def _same(a):  # type: ignore[no-untyped-def]
    return a


def _second(a, b):  # type: ignore[no-untyped-def]
    return b


def _parity_numbers(a, b, c):  # type: ignore[no-untyped-def]
    return a ^ b ^ c


def _majority_numbers(a, b, c):  # type: ignore[no-untyped-def]
    return (a & b) | (c & (a ^ b))


def _without_lowest(word):  # type: ignore[no-untyped-def]
    return word & (word - 1)


def _maximum_numbers(a, b):  # type: ignore[no-untyped-def]
    return a if a > b else b


def _minimum_numbers(a, b):  # type: ignore[no-untyped-def]
    return a if a < b else b


def _equal_numbers(a, b):  # type: ignore[no-untyped-def]
    return a == b


def _greater_numbers(a, b):  # type: ignore[no-untyped-def]
    return a > b


def _select_numbers(mask, a, b):  # type: ignore[no-untyped-def]
    return a if mask else b


def _product_numbers(a, b):  # type: ignore[no-untyped-def]
    return np.int64(a) * np.int64(b)


def _no_product(a, b):  # type: ignore[no-untyped-def]
    return np.int64(0)


def _shifted_number(even, odd, shift):  # type: ignore[no-untyped-def]
    return even >> shift


def _mask_bits_number(mask):  # type: ignore[no-untyped-def]
    return 1 if mask else 0


def by_width(operation: Any, one: Any, group: Any) -> None:
    """Say what serves groups of one lane, and others."""
    specialise(operation, lambda lanes, *rest: one if lane_count(lanes) == 1 else group)


def _by_kind(operation: Any, number: Any, group: Any) -> None:
    """Say what serves numbers, None for what Numba does, and groups or masks of more than one lane."""
    specialise(operation, lambda a, *rest: group if isinstance(a, (LaneGroup, LaneMask)) else number)


by_width(groups.load, _load_one, _load_group)
by_width(groups.store, _store_one, _of_five(vector_store))
by_width(groups.stream, _store_one, _of_five(vector_stream))
by_width(groups.splat, _second, _of_two(vector_splat))
specialise(groups.prefetch, lambda rows, row: _of_two(row_prefetch))
_by_kind(groups.maximum, _maximum_numbers, _of_two(vector_maximum))
_by_kind(groups.minimum, _minimum_numbers, _of_two(vector_minimum))
_by_kind(groups.quotient, _of_two(lane_quotient), _of_two(lane_quotient))
_by_kind(groups.ratio, _of_two(vector_divide), _of_two(vector_divide))
_by_kind(groups.product, _of_two(vector_multiply), _of_two(vector_multiply))
_by_kind(groups.parity, _parity_numbers, _of_three(vector_parity))
_by_kind(groups.majority, _majority_numbers, _of_three(vector_majority))
_by_kind(groups.equal, _equal_numbers, _of_two(vector_equal))
_by_kind(groups.greater, _greater_numbers, _of_two(vector_greater))
_by_kind(groups.select, _select_numbers, _of_three(vector_select))
_by_kind(groups.product_even, _product_numbers, _of_two(vector_product_even))
_by_kind(groups.product_odd, _no_product, _of_two(vector_product_odd))
_by_kind(groups.interleaved, _shifted_number, _of_three(vector_interleaved))
_by_kind(groups.mask_bits, _mask_bits_number, _of_one(vector_mask_bits))
_by_kind(groups.any_bits, _same, _of_one(vector_any_bits))
_by_kind(groups.largest_lane, _same, _of_one(vector_largest_lane))
_by_kind(groups.last_lane, _same, _of_one(vector_last_lane))
_by_kind(groups.shift_in, _second, _of_two(vector_shift_in))
_by_kind(groups.narrow, _of_two(lane_narrow), _of_two(lane_narrow))
_by_kind(groups.widen, _of_two(number_widen), _of_two(vector_widen))
_WITHOUT_NUMBERS: dict[Any, Any] = {
    operator.add: vector_add,
    operator.sub: vector_subtract,
    operator.mul: vector_multiply,
    operator.and_: vector_and,
    operator.or_: vector_or,
    operator.xor: vector_xor,
    operator.lshift: vector_shift_left,
    operator.rshift: vector_shift_right,
}
_OF_ALL: dict[Any, Any] = {
    groups.add_saturating: _of_two(vector_add_saturating),
    groups.subtract_saturating: _of_two(vector_subtract_saturating),
    groups.lower_half: _of_one(vector_lower_half),
    groups.upper_half: _of_one(vector_upper_half),
    groups.highest_bit: _of_one(last_one),
    groups.lowest_bit: _of_one(count_trailing_zeros),
    groups.population: _of_one(count_ones),
    groups.without_lowest: _without_lowest,
}
for _operation, _made in _WITHOUT_NUMBERS.items():
    _by_kind(_operation, None, _of_two(_made))
for _operation, _made in _OF_ALL.items():
    specialise(_operation, lambda *kinds, made=_made: made)
