"""V(D)J recombination: germline sets, annotation of reads, path counts, region calls, sharing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.vdj.alleles.new_alleles import NewAlleles, find_new_alleles
    from plait.vdj.alleles.sites import AlleleLimits
    from plait.vdj.calls import STATUSES
    from plait.vdj.convergence.study import Study, study
    from plait.vdj.counting import PathCounter, PathCounts, PathTotals, count_paths
    from plait.vdj.explanation import Explanation, explain
    from plait.vdj.models import PathModel
    from plait.vdj.reads.annotator import Annotations, annotate
    from plait.vdj.reads.rearrangements import AnnotationSettings
    from plait.vdj.repertoires.diversity import DiversitySettings, RepertoireDiversity, diversity
    from plait.vdj.repertoires.expected import ExpectedSharing, GenerationSettings
    from plait.vdj.repertoires.sharing import SharingSettings, SharingSummary, SharingTable, sharing

__all__ = [
    "STATUSES",
    "AlleleLimits",
    "AnnotationSettings",
    "Annotations",
    "DiversitySettings",
    "ExpectedSharing",
    "Explanation",
    "GenerationSettings",
    "NewAlleles",
    "PathCounter",
    "PathCounts",
    "PathModel",
    "PathTotals",
    "RepertoireDiversity",
    "SharingSettings",
    "SharingSummary",
    "SharingTable",
    "Study",
    "annotate",
    "count_paths",
    "diversity",
    "explain",
    "find_new_alleles",
    "sharing",
    "study",
]

# Loaded on first use: germline sets can be read without the compiler behind the counts.
_HOME = {
    name: module
    for module, names in {
        "alleles.new_alleles": ("NewAlleles", "find_new_alleles"),
        "alleles.sites": ("AlleleLimits",),
        "calls": ("STATUSES",),
        "convergence.study": ("Study", "study"),
        "counting": ("PathCounter", "PathCounts", "PathTotals", "count_paths"),
        "explanation": ("Explanation", "explain"),
        "models": ("PathModel",),
        "reads.annotator": ("Annotations", "annotate"),
        "reads.rearrangements": ("AnnotationSettings",),
        "repertoires.diversity": ("DiversitySettings", "RepertoireDiversity", "diversity"),
        "repertoires.expected": ("ExpectedSharing", "GenerationSettings"),
        "repertoires.sharing": ("SharingSettings", "SharingSummary", "SharingTable", "sharing"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"plait.vdj.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
