"""Immune-repertoire and sequence analysis as recurrences: exact path counts of V(D)J recombination.

Importing plait is cheap: subjects are loaded when first used, and only they load Numba and Arrow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from plait._version import __version__
from plait.errors import (
    CountOverflow,
    DeviceFailure,
    DeviceMemoryError,
    FormatError,
    InvalidInput,
    PlaitError,
    TargetUnavailable,
    Unsupported,
)

if TYPE_CHECKING:
    from plait import align, episodes, folding, hyperspectral, ldpc, mapping, qgrams, random, states, vdj

__all__ = [
    "CountOverflow",
    "DeviceFailure",
    "DeviceMemoryError",
    "FormatError",
    "InvalidInput",
    "PlaitError",
    "TargetUnavailable",
    "Unsupported",
    "__version__",
    "align",
    "episodes",
    "folding",
    "hyperspectral",
    "ldpc",
    "mapping",
    "qgrams",
    "random",
    "states",
    "vdj",
]

_SUBJECTS = (
    "align",
    "episodes",
    "folding",
    "hyperspectral",
    "ldpc",
    "mapping",
    "qgrams",
    "random",
    "states",
    "vdj",
)


def __getattr__(name: str) -> Any:
    if name in _SUBJECTS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
