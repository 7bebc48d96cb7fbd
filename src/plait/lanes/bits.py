"""Bit operations on signed 64-bit words."""

from __future__ import annotations

from typing import Any

from plait._jit import intrinsic, ir, specialise, types

__all__ = ["lowest_bit", "population"]


def lowest_bit(word: int) -> int:
    """Index of the lowest set bit of a word that is not zero.

    >>> lowest_bit(0b10100)
    2
    """
    value = int(word)
    return (value & -value).bit_length() - 1


def population(word: int) -> int:
    """Number of set bits.

    >>> population(0b10100)
    2
    """
    return (int(word) & 0xFFFFFFFFFFFFFFFF).bit_count()


@intrinsic
def _cttz(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


@intrinsic
def _ctpop(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), generate


def _compiled_lowest_bit(word):  # type: ignore[no-untyped-def]  # compiled only
    return _cttz(word)


def _compiled_population(word):  # type: ignore[no-untyped-def]  # compiled only
    return _ctpop(word)


specialise(lowest_bit, lambda word: _compiled_lowest_bit)
specialise(population, lambda word: _compiled_population)
