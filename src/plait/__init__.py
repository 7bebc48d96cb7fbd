"""Immune-repertoire and sequence analysis as recurrences: exact path counts of V(D)J recombination.

Importing plait is cheap: subjects are loaded when first used, and only they load Numba and Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait._exports import on_first_use
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

__getattr__, __dir__ = on_first_use(__name__, __file__)
