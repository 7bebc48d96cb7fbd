"""Values of several 64-bit lanes: one name for one lane, for a CPU vector and for interpreted Python.

A schedule is given a width (`OneLane` .. `EightLanes`) and works on groups of that many neighbouring
lanes. In Python a group is a number (one lane) or a NumPy array; compiled, it is a number or a vector
register. Arithmetic is written ``a + b`` and ``a * b``, bit operations on integers ``a & b``, ``a | b`` and
``a >> b``; `maximum` and `any_bits` are functions.

Memory contract: a row that is read or written in groups must have a multiple of the width, counted from
the first lane of the first group; `PADDING` lanes are enough for every width.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from plait._jit import host_vector_bits, intrinsic, ir, models, register_model, specialise, types

__all__ = [
    "LANES",
    "PADDING",
    "EightLanes",
    "FourLanes",
    "OneLane",
    "TwoLanes",
    "any_bits",
    "host_lanes",
    "load",
    "maximum",
    "padded",
    "splat",
    "store",
]

#: Rows are padded to a multiple of this many lanes.
PADDING = 8


class OneLane(NamedTuple):
    """Groups of one lane: plain numbers."""

    width: int = 1


class TwoLanes(NamedTuple):
    """Groups of two lanes (128-bit vectors)."""

    width: int = 2


class FourLanes(NamedTuple):
    """Groups of four lanes (256-bit vectors)."""

    width: int = 4


class EightLanes(NamedTuple):
    """Groups of eight lanes (512-bit vectors)."""

    width: int = 8


#: Every width there is.
LANES: dict[int, Any] = {1: OneLane(), 2: TwoLanes(), 4: FourLanes(), 8: EightLanes()}


def host_lanes() -> Any:
    """The width that suits this processor."""
    return LANES[host_vector_bits() // 64]


def padded(lanes: int) -> int:
    """`lanes` rounded up to a multiple of `PADDING`.

    >>> padded(11)
    16
    """
    return -(-lanes // PADDING) * PADDING


def load(lanes: Any, rows: Any, row: int, lane: int) -> Any:
    """The group of ``rows[row]`` that starts at `lane`."""
    return rows[row, lane] if lanes.width == 1 else rows[row, lane : lane + lanes.width].copy()


def store(lanes: Any, rows: Any, row: int, lane: int, value: Any) -> None:
    """Write a group to ``rows[row]``, starting at `lane`."""
    if lanes.width == 1:
        rows[row, lane] = value
    else:
        rows[row, lane : lane + lanes.width] = value


def splat(lanes: Any, value: Any) -> Any:
    """A group with the same value in all lanes."""
    return value if lanes.width == 1 else np.full(lanes.width, value)


def maximum(a: Any, b: Any) -> Any:
    """The larger value, lane by lane."""
    if isinstance(a, np.ndarray):
        return np.maximum(a, b)
    return a if a >= b else b


def any_bits(a: Any) -> Any:
    """The bits that are set in any lane of a group of integers."""
    return np.bitwise_or.reduce(a) if isinstance(a, np.ndarray) else a


# --- compiled ---------------------------------------------------------------------------------------


class _Vector(types.Type):
    """Numba type of a group of more than one lane."""

    def __init__(self, element: Any, width: int) -> None:
        self.element = element
        self.width = width
        super().__init__(name=f"lanes({element} x {width})")


@register_model(_Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]  # Numba is untyped
    def __init__(self, manager: Any, kind: _Vector) -> None:
        super().__init__(manager, kind, _llvm(kind))


def _llvm(kind: _Vector) -> Any:
    element = ir.DoubleType() if isinstance(kind.element, types.Float) else ir.IntType(64)
    return ir.VectorType(element, kind.width)


def _width(lanes: Any) -> int:
    return int(lanes.instance_class().width)


def _address(context: Any, builder: Any, kind: Any, place: Any, vector: Any) -> Any:
    array, row, lane = place
    view = context.make_array(kind)(context, builder, array)
    columns = builder.extract_value(view.shape, 1)
    offset = builder.add(builder.mul(row, columns), lane)
    return builder.bitcast(builder.gep(view.data, [offset]), vector.as_pointer())


@intrinsic
def _load(typing_context: Any, lanes: Any, rows: Any, row: Any, lane: Any) -> Any:
    kind = _Vector(rows.dtype, _width(lanes))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _address(context, builder, signature.args[1], args[1:4], _llvm(kind))
        value = builder.load(place)
        value.align = 8
        return value

    return kind(lanes, rows, types.int64, types.int64), generate


@intrinsic
def _store(typing_context: Any, lanes: Any, rows: Any, row: Any, lane: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _address(context, builder, signature.args[1], args[1:4], _llvm(value))
        builder.store(args[4], place).align = 8
        return context.get_dummy_value()

    return types.void(lanes, rows, types.int64, types.int64, value), generate


@intrinsic
def _splat(typing_context: Any, lanes: Any, value: Any) -> Any:
    kind = _Vector(value, _width(lanes))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        nothing = ir.Constant(_llvm(kind), ir.Undefined)
        first = builder.insert_element(nothing, args[1], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(
            first, nothing, ir.Constant(ir.VectorType(ir.IntType(32), kind.width), [0] * kind.width)
        )

    return kind(lanes, value), generate


def _arithmetic(integer: str, floating: str) -> Any:
    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        name = floating if isinstance(a.element, types.Float) else integer

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, name)(*args)

        return a(a, b), generate

    return operation


_add = _arithmetic("add", "fadd")
_multiply = _arithmetic("mul", "fmul")
_and = _arithmetic("and_", "and_")
_or = _arithmetic("or_", "or_")
_shift_right = _arithmetic("ashr", "ashr")


@intrinsic
def _any_bits(typing_context: Any, a: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [_llvm(a)])
        name = f"llvm.vector.reduce.or.v{a.width}i64"
        return builder.call(builder.module.declare_intrinsic(name, (), kind), args)

    return types.int64(a), generate


@intrinsic
def _maximum(typing_context: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if isinstance(a.element, types.Float):
            larger = builder.fcmp_ordered(">=", *args)
        else:
            larger = builder.icmp_signed(">=", *args)
        return builder.select(larger, *args)

    return a(a, b), generate


# Numba compares the signatures of definition and implementation, so these carry no annotations.
def _load_group(lanes, rows, row, lane):  # type: ignore[no-untyped-def]
    return _load(lanes, rows, row, lane)


def _load_one(lanes, rows, row, lane):  # type: ignore[no-untyped-def]
    return rows[row, lane]


def _store_group(lanes, rows, row, lane, value):  # type: ignore[no-untyped-def]
    _store(lanes, rows, row, lane, value)


def _store_one(lanes, rows, row, lane, value):  # type: ignore[no-untyped-def]
    rows[row, lane] = value


def _splat_group(lanes, value):  # type: ignore[no-untyped-def]
    return _splat(lanes, value)


def _splat_one(lanes, value):  # type: ignore[no-untyped-def]
    return value


def _add_groups(a, b):  # type: ignore[no-untyped-def]
    return _add(a, b)


def _multiply_groups(a, b):  # type: ignore[no-untyped-def]
    return _multiply(a, b)


def _and_groups(a, b):  # type: ignore[no-untyped-def]
    return _and(a, b)


def _or_groups(a, b):  # type: ignore[no-untyped-def]
    return _or(a, b)


def _shift_groups(a, b):  # type: ignore[no-untyped-def]
    return _shift_right(a, b)


def _any_bits_group(a):  # type: ignore[no-untyped-def]
    return _any_bits(a)


def _any_bits_number(a):  # type: ignore[no-untyped-def]
    return a


def _maximum_groups(a, b):  # type: ignore[no-untyped-def]
    return _maximum(a, b)


def _maximum_numbers(a, b):  # type: ignore[no-untyped-def]
    return a if a >= b else b


specialise(load, lambda lanes, *rest: _load_one if _width(lanes) == 1 else _load_group)
specialise(store, lambda lanes, *rest: _store_one if _width(lanes) == 1 else _store_group)
specialise(splat, lambda lanes, value: _splat_one if _width(lanes) == 1 else _splat_group)
specialise(maximum, lambda a, b: _maximum_groups if isinstance(a, _Vector) else _maximum_numbers)
specialise(any_bits, lambda a: _any_bits_group if isinstance(a, _Vector) else _any_bits_number)
specialise(operator.add, lambda a, b: _add_groups if isinstance(a, _Vector) else None)
specialise(operator.mul, lambda a, b: _multiply_groups if isinstance(a, _Vector) else None)
specialise(operator.and_, lambda a, b: _and_groups if isinstance(a, _Vector) else None)
specialise(operator.or_, lambda a, b: _or_groups if isinstance(a, _Vector) else None)
specialise(operator.rshift, lambda a, b: _shift_groups if isinstance(a, _Vector) else None)
