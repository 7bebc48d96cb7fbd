"""Which instructions of a GPU serve the operations on packed lanes (`plait.lanes.packed`).

Hopper and later devices compare and add packed integers in one instruction, and a sum with the maximum that
follows, or two maxima, in one as well. Before them packed integers are added piece by piece, and maxima are
those of half-precision numbers, which order values from 0 to 2047 alike. A negative integer of two's
complement is no number, minus infinity or a very low number in half precision, and none of these is ever the
maximum of it and another value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plait import _jit
from plait._jit import specialise
from plait.lanes import add_saturating, maximum
from plait.lanes.packed import AddedBefore, HalfPair, HighScores, IntegerStep, LowScores
from plait.targets.cuda import SIMULATED, capability_of_code

__all__ = ["WORD", "WORD_TYPE", "four_words", "shared_place", "two_letters"]

intrinsic: Callable[[Callable[..., Any]], Any] = _jit.intrinsic
ir: Any = _jit.ir
types: Any = _jit.types
#: Numba's type of a word.
WORD_TYPE: Any = types.int32

_HOPPER = (9, 0)


#: How far apart the places of neighbouring words in shared memory are.
WORD = 1 if SIMULATED else 4


def shared_place(words: Any) -> Any:
    """The place of the first word of an array in shared memory: its address, if compiled."""
    return np.uint32(0)


def four_words(words: Any, place: Any) -> Any:
    """Four words of an array in shared memory, from a place on that is a multiple of four words away."""
    if place % 4:
        raise IndexError(f"words from {place} on are not read together")
    return words[place], words[place + 1], words[place + 2], words[place + 3]


def two_letters(letters: Any, place: Any) -> Any:
    """The number of 16 bits at `place`, of an array that nobody writes to while the kernel runs."""
    return np.int32(letters[place])


def _instruction(text: str, earlier: str | None = None) -> Any:
    """PTX code for two 32-bit words, and what to do before Hopper."""

    @intrinsic
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(32)
            code = text if earlier is None or capability_of_code() >= _HOPPER else earlier
            return builder.asm(ir.FunctionType(word, [word, word]), code, "=r,r,r", args, False)

        return types.int32(types.int32, types.int32), generate

    return operation


def _score(half: str, one: str) -> str:
    """Add one half of the first word to the half of the second word in which `one` has a one."""
    return (
        f"{{.reg .b16 l,h; .reg .b32 both,one; mov.b32 {{l,h}},$1; mov.b32 both,{{{half},{half}}}; "
        f"mov.b32 one,{one}; fma.rn.f16x2 $0,both,one,$2;}}"
    )


_ONE_LOW, _ONE_HIGH = "0x00003c00", "0x3c000000"
_low_to_low = _instruction(_score("l", _ONE_LOW))
_low_to_high = _instruction(_score("l", _ONE_HIGH))
_high_to_low = _instruction(_score("h", _ONE_LOW))
_high_to_high = _instruction(_score("h", _ONE_HIGH))
_add_integers = _instruction(
    "add.s16x2 $0,$1,$2;",
    "{.reg .b16 a,b,c,d; mov.b32 {a,b},$1; mov.b32 {c,d},$2; "
    "add.s16 a,a,c; add.s16 b,b,d; mov.b32 $0,{a,b};}",
)
_maximum_and_0 = _instruction(
    "max.s16x2.relu $0,$1,$2;",
    "{.reg .b32 m,zero; mov.b32 zero,0; max.f16x2 m,$1,$2; max.f16x2 $0,m,zero;}",
)


_SHARED = 3


@intrinsic
def _address(typing_context: Any, words: Any) -> Any:
    """Where an array in shared memory begins, among the bytes of shared memory."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        inside = builder.addrspacecast(view.data, ir.IntType(32).as_pointer(_SHARED))
        return builder.ptrtoint(inside, ir.IntType(32))

    return types.uint32(words), generate


@intrinsic
def _load_four_words(typing_context: Any, address: Any) -> Any:
    """One load of 16 bytes."""
    four = types.UniTuple(types.int32, 4)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(32), 4)
        value = builder.load(builder.inttoptr(args[0], vector.as_pointer(_SHARED)))
        value.align = 16
        parts = [builder.extract_element(value, ir.Constant(ir.IntType(32), k)) for k in range(4)]
        return context.make_tuple(builder, four, parts)

    return four(types.uint32), generate


@intrinsic
def _load_two_letters(typing_context: Any, letters: Any, place: Any) -> Any:
    """One load into a word; seen as 16 bits, the compiler would go on with 16-bit arithmetic."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(view.data, [builder.zext(args[1], ir.IntType(64))])
        kind = ir.FunctionType(ir.IntType(32), [pointer.type])
        return builder.asm(kind, _LETTERS, "=r,l", [pointer], False)

    return types.int32(letters, types.uint32), generate


_LETTERS = "{.reg .b16 h; ld.global.nc.u16 h,[$1]; cvt.u32.u16 $0,h;}"


def _two_letters(letters, place):  # type: ignore[no-untyped-def]
    return _load_two_letters(letters, place)


def _four_words(words, place):  # type: ignore[no-untyped-def]
    return _load_four_words(place)


def _shared_place(words):  # type: ignore[no-untyped-def]
    return _address(words)


def _add_nothing(a, b):  # type: ignore[no-untyped-def]
    return a


def _add_integer_step(a, b):  # type: ignore[no-untyped-def]
    return HalfPair(_add_integers(a.bits, b.bits))


def _add_low_scores(a, b):  # type: ignore[no-untyped-def]
    return HalfPair(_low_to_high(b.second, _low_to_low(b.first, a.bits)))


def _add_high_scores(a, b):  # type: ignore[no-untyped-def]
    return HalfPair(_high_to_high(b.second, _high_to_low(b.first, a.bits)))


def _maximum(a, b):  # type: ignore[no-untyped-def]
    return HalfPair(_maximum_and_0(a.bits, b.bits))


_SUMS: dict[type, Callable[..., Any]] = {
    AddedBefore: _add_nothing,
    IntegerStep: _add_integer_step,
    LowScores: _add_low_scores,
    HighScores: _add_high_scores,
}


def _sum_of(a: Any, b: Any) -> Callable[..., Any] | None:
    is_pair = getattr(a, "instance_class", None) is HalfPair
    return _SUMS.get(getattr(b, "instance_class", None)) if is_pair else None  # type: ignore[arg-type]


def _maximum_of(a: Any, b: Any) -> Callable[..., Any] | None:
    return _maximum if getattr(a, "instance_class", None) is HalfPair else None


if not SIMULATED:
    specialise(shared_place, lambda words: _shared_place, target="cuda")
    specialise(four_words, lambda words, place: _four_words, target="cuda")
    specialise(two_letters, lambda letters, place: _two_letters, target="cuda")
    specialise(add_saturating, _sum_of, target="cuda")
    specialise(maximum, _maximum_of, target="cuda")
