"""RNA folding: structures of least energy, sums over all structures, probabilities of pairs.

What is named here is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.folding.constraints import Restraints
    from plait.folding.energies import Model
    from plait.folding.folds import (
        Ensemble,
        Folds,
        FoldSettings,
        Loop,
        Suboptimals,
        evaluate,
        mfe,
        partition,
        sample,
        suboptimal,
    )
    from plait.folding.parameters import Parameters

__all__ = [
    "Ensemble",
    "FoldSettings",
    "Folds",
    "Loop",
    "Model",
    "Parameters",
    "Restraints",
    "Suboptimals",
    "evaluate",
    "mfe",
    "partition",
    "sample",
    "suboptimal",
]

_HOME = {
    **dict.fromkeys(__all__, "folds"),
    "Model": "energies",
    "Parameters": "parameters",
    "Restraints": "constraints",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
