"""Words of memory through which warps of a GPU hand each other values while they run.

A word of 64 bits is read and written at once, so nothing else is needed between a warp that writes a word and
one that reads it again and again until it is new.
"""

from __future__ import annotations

from typing import Any

from plait import _jit
from plait.targets.cuda import SIMULATED

__all__ = ["read_word", "write_word"]


def read_word(words: Any, at: Any) -> Any:
    """A word of an array, int64, as it is in memory now."""
    return words[at]


def write_word(words: Any, at: Any, value: Any) -> None:
    """Change a word of an array, int64."""
    words[at] = value


def _address(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    return builder.ptrtoint(builder.gep(view.data, [at]), _jit.ir.IntType(64))


def _instructions() -> tuple[Any, Any]:
    word = _jit.ir.IntType(64)

    def load(typing_context: Any, words: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, signature.args[0], *args)
            kind = _jit.ir.FunctionType(word, [word])
            return builder.asm(kind, "ld.relaxed.gpu.b64 $0,[$1];", "=l,l", [address], True)

        return _jit.types.int64(words, _jit.types.int64), generate

    def store(typing_context: Any, words: Any, at: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, signature.args[0], *args[:2])
            kind = _jit.ir.FunctionType(_jit.ir.VoidType(), [word, word])
            builder.asm(kind, "st.relaxed.gpu.b64 [$0],$1;", "l,l", [address, args[2]], True)
            return context.get_dummy_value()

        return _jit.types.void(words, _jit.types.int64, _jit.types.int64), generate

    return _jit.intrinsic(load), _jit.intrinsic(store)


if not SIMULATED:
    _load, _store = _instructions()
    _jit.specialise(read_word, lambda words, at: lambda words, at: _load(words, at), target="cuda")
    _jit.specialise(
        write_word, lambda words, at, value: lambda words, at, value: _store(words, at, value), target="cuda"
    )
