"""What compiled code runs for the operations of `plait.lanes.groups`: vector instructions.

A group of more than one lane is an LLVM vector. LLVM splits vectors that are wider than a register and knows
the instructions of every processor; only the table look-up (`plait.lanes.shuffles`) needs more. Operands that
the definitions do not allow are refused when a kernel is compiled.
"""

from __future__ import annotations

from typing import Any

from plait._jit import intrinsic, ir, types
from plait.lanes.registers import (
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

__all__ = [
    "element_load",
    "element_store",
    "number_widen",
    "vector_add",
    "vector_add_saturating",
    "vector_and",
    "vector_any_bits",
    "vector_equal",
    "vector_greater",
    "vector_largest_lane",
    "vector_last_lane",
    "vector_load",
    "vector_lower_half",
    "vector_mask_bits",
    "vector_maximum",
    "vector_minimum",
    "vector_multiply",
    "vector_or",
    "vector_select",
    "vector_shift_in",
    "vector_shift_left",
    "vector_shift_right",
    "vector_splat",
    "vector_store",
    "vector_subtract",
    "vector_subtract_saturating",
    "vector_upper_half",
    "vector_widen",
]


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
