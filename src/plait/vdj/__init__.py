"""V(D)J recombination: germline sets, path counts, region calls, sharing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.vdj.counting import PathCounter, count_paths
    from plait.vdj.explanation import Explanation, explain
    from plait.vdj.models import PathModel
    from plait.vdj.results import STATUSES, PathCounts, PathTotals
    from plait.vdj.sharing_table import SharingTable, sharing

__all__ = [
    "STATUSES",
    "Explanation",
    "PathCounter",
    "PathCounts",
    "PathModel",
    "PathTotals",
    "SharingTable",
    "count_paths",
    "explain",
    "sharing",
]

# Loaded on first use: germline sets can be read without the compiler behind the counts.
_HOME = {
    "STATUSES": "results",
    "Explanation": "explanation",
    "PathCounter": "counting",
    "PathCounts": "results",
    "PathModel": "models",
    "PathTotals": "results",
    "SharingTable": "sharing_table",
    "count_paths": "counting",
    "explain": "explanation",
    "sharing": "sharing_table",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"plait.vdj.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
