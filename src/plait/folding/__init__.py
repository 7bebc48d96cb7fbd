"""RNA folding: structures of least energy, sums over all structures, probabilities of pairs.

What is named here is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait._exports import on_first_use

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

__getattr__, __dir__ = on_first_use(__name__, __file__)
