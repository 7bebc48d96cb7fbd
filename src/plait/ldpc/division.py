"""Division of lanes, which Python's own does not let compiled loops do side by side: it looks for zeros.

A module of its own: it is imported when something is compiled.
"""

from __future__ import annotations

from typing import Any

from plait.lang.compile import intrinsic, specialise
from plait.lang.instructions import LaneGroup
from plait.ldpc.messages import ratio


@intrinsic  # type: ignore[untyped-decorator]  # Numba is untyped
def divide(typing_context: Any, a: Any, b: Any) -> Any:
    """Divide floating-point numbers."""
    if a != b:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fdiv(*args)

    return a(a, b), generate


def _of_groups(a, b):  # type: ignore[no-untyped-def]
    return divide(a, b)


def _of_numbers(a, b):  # type: ignore[no-untyped-def]
    return a / b


specialise(ratio, lambda a, b: _of_groups if isinstance(a, LaneGroup) else _of_numbers)
