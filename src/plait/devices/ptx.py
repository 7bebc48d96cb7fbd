"""Instructions of GPUs that Numba has no name for, on 32-bit words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plait.devices.cuda import SIMULATED, capability_of_code
from plait.lang.compile import intrinsic, ir, types

#: The compute capability that has instructions for pairs of 16 bits.
_HOPPER = (9, 0)


def instruction(text: str, earlier: str | None = None, plain: Callable[[Any, Any], Any] | None = None) -> Any:
    """PTX code for two 32-bit words, what to do before Hopper, and what it is in the simulator."""
    if SIMULATED and plain is not None:
        return plain

    @intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
    def operation(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(32)
            code = text if earlier is None or capability_of_code() >= _HOPPER else earlier
            return builder.asm(ir.FunctionType(word, [word, word]), code, "=r,r,r", args, False)

        return types.int32(types.int32, types.int32), generate

    return operation


def on_halves(name: str, kind: str = "s") -> Any:
    """An operation, ``add``, ``min`` or ``max``, on two numbers of 16 bits in a word, ``s`` or ``u``."""
    plain: Any = {"add": np.add, "min": np.minimum, "max": np.maximum}[name]

    def halves(word: Any) -> Any:
        return np.array([word], np.int32).view(np.int16 if kind == "s" else np.uint16)

    return instruction(
        f"{name}.{kind}16x2 $0,$1,$2;",
        f"v{name}2.{kind}32.{kind}32.{kind}32 $0,$1,$2,$2;",
        lambda a, b: plain(halves(a), halves(b)).view(np.int32)[0],
    )
