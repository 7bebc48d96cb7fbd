"""What compiled code runs for the operations of `plait.lanes.bits`."""

from __future__ import annotations

from typing import Any

from plait._jit import intrinsic, ir, types

__all__ = ["count_ones", "count_trailing_zeros", "last_one"]


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
