"""V(D)J recombination: germline sets, annotation of reads, path counts, region calls, sharing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.vdj.alleles.new_alleles import NewAlleles, find_new_alleles
    from plait.vdj.alleles.sites import AlleleLimits
    from plait.vdj.convergence.study import Study, study
    from plait.vdj.counting import PathCounter, count_paths
    from plait.vdj.explanation import Explanation, explain
    from plait.vdj.models import PathModel
    from plait.vdj.reads.annotator import Annotations, annotate
    from plait.vdj.reads.rearrangements import AnnotationSettings
    from plait.vdj.results import STATUSES, PathCounts, PathTotals
    from plait.vdj.sharing_table import SharingTable, sharing

__all__ = [
    "STATUSES",
    "AlleleLimits",
    "AnnotationSettings",
    "Annotations",
    "Explanation",
    "NewAlleles",
    "PathCounter",
    "PathCounts",
    "PathModel",
    "PathTotals",
    "SharingTable",
    "Study",
    "annotate",
    "count_paths",
    "explain",
    "find_new_alleles",
    "sharing",
    "study",
]

# Loaded on first use: germline sets can be read without the compiler behind the counts.
_HOME = {
    "STATUSES": "results",
    "AlleleLimits": "alleles.sites",
    "AnnotationSettings": "reads.rearrangements",
    "Annotations": "reads.annotator",
    "Explanation": "explanation",
    "NewAlleles": "alleles.new_alleles",
    "PathCounter": "counting",
    "PathCounts": "results",
    "PathModel": "models",
    "PathTotals": "results",
    "SharingTable": "sharing_table",
    "Study": "convergence.study",
    "annotate": "reads.annotator",
    "count_paths": "counting",
    "explain": "explanation",
    "find_new_alleles": "alleles.new_alleles",
    "sharing": "sharing_table",
    "study": "convergence.study",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"plait.vdj.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
