"""Recombination as a model of chances: generation probabilities, scenarios, sampling and inference.

Names are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.vdj.model.evidence import EvidenceChoice
    from plait.vdj.model.expectations import Evidence, Expectation, PosteriorFinder, Posteriors
    from plait.vdj.model.inference import (
        InferenceProgress,
        InferredFiles,
        Iteration,
        infer_files,
        infer_model,
        observable_model,
        uniform_model,
    )
    from plait.vdj.model.junctions import JunctionEncoder
    from plait.vdj.model.pgen import PGEN_STATUSES, GenerationProbability, Pgen
    from plait.vdj.model.recombination_model import (
        ModelGene,
        RecombinationModel,
        bundled_model,
        bundled_models,
        entropies,
        load_model,
        model_from_germline,
        read_model,
        write_model,
    )
    from plait.vdj.model.sampling import Draws, JunctionSampler
    from plait.vdj.model.scenarios import Scenario, ScenarioFinder

__all__ = [
    "PGEN_STATUSES",
    "Draws",
    "Evidence",
    "EvidenceChoice",
    "Expectation",
    "GenerationProbability",
    "InferenceProgress",
    "InferredFiles",
    "Iteration",
    "JunctionEncoder",
    "JunctionSampler",
    "ModelGene",
    "Pgen",
    "PosteriorFinder",
    "Posteriors",
    "RecombinationModel",
    "Scenario",
    "ScenarioFinder",
    "bundled_model",
    "bundled_models",
    "entropies",
    "infer_files",
    "infer_model",
    "load_model",
    "model_from_germline",
    "observable_model",
    "read_model",
    "uniform_model",
    "write_model",
]

_HOME = {
    name: module
    for module, names in {
        "evidence": "EvidenceChoice",
        "expectations": "Evidence Expectation PosteriorFinder Posteriors",
        "inference": "InferenceProgress InferredFiles Iteration infer_files infer_model observable_model "
        "uniform_model",
        "junctions": "JunctionEncoder",
        "pgen": "PGEN_STATUSES GenerationProbability Pgen",
        "recombination_model": "ModelGene RecombinationModel bundled_model bundled_models entropies "
        "load_model model_from_germline read_model write_model",
        "sampling": "Draws JunctionSampler",
        "scenarios": "Scenario ScenarioFinder",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"plait.vdj.model.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
