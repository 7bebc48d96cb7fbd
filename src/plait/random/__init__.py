"""Streams of random numbers in which any place can be reached at once: MRG32k3a, Sobol's sequence, MT19937.

What is named here is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.random.mrg32k3a import Mrg32k3a
    from plait.random.mt19937 import Mt19937
    from plait.random.sobol import Sobol

__all__ = ["Mrg32k3a", "Mt19937", "Sobol"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(f"{__name__}.{name.lower()}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
