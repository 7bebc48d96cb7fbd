"""Recombination as a model of chances: generation probabilities, scenarios, sampling and inference.

Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait._exports import on_first_use

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

__getattr__, __dir__ = on_first_use(__name__, __file__)
