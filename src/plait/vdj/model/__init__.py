"""Recombination as a model of chances: generation probabilities, scenarios, sampling and inference.

Names are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.vdj.model.inference import Iteration, infer_model, uniform_model
    from plait.vdj.model.model_files import (
        bundled_model,
        bundled_models,
        load_model,
        read_model,
        write_model,
    )
    from plait.vdj.model.pgen import GenerationProbability, Pgen
    from plait.vdj.model.recombination_model import ModelGene, RecombinationModel
    from plait.vdj.model.sampling import Draws, JunctionSampler
    from plait.vdj.model.scenarios import Scenario, ScenarioFinder
    from plait.vdj.model.zero_reasons import PGEN_STATUSES

__all__ = [
    "PGEN_STATUSES",
    "Draws",
    "GenerationProbability",
    "Iteration",
    "JunctionSampler",
    "ModelGene",
    "Pgen",
    "RecombinationModel",
    "Scenario",
    "ScenarioFinder",
    "bundled_model",
    "bundled_models",
    "infer_model",
    "load_model",
    "read_model",
    "uniform_model",
    "write_model",
]

_HOME = {
    "PGEN_STATUSES": "zero_reasons",
    "Draws": "sampling",
    "GenerationProbability": "pgen",
    "Iteration": "inference",
    "JunctionSampler": "sampling",
    "ModelGene": "recombination_model",
    "Pgen": "pgen",
    "RecombinationModel": "recombination_model",
    "Scenario": "scenarios",
    "ScenarioFinder": "scenarios",
    "bundled_model": "model_files",
    "bundled_models": "model_files",
    "infer_model": "inference",
    "load_model": "model_files",
    "read_model": "model_files",
    "uniform_model": "inference",
    "write_model": "model_files",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"plait.vdj.model.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
