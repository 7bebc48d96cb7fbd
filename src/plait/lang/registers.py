"""Groups of lanes in compiled code: Numba's types for them, and how LLVM is told of them."""

from __future__ import annotations

from typing import Any

from plait.lang.compile import ir, models, register_model, types

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
