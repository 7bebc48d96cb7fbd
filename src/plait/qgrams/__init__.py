"""Similarity of texts by the q-grams that they share: all against all, above a threshold, or the nearest.

What is named here is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.qgrams.similarity import Similar, similar, similarities, smiles_letters

__all__ = ["Similar", "similar", "similarities", "smiles_letters"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module(f"{__name__}.similarity"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
