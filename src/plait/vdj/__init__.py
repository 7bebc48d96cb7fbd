"""V(D)J recombination: germline sets, annotation of reads, path counts, region calls, sharing.

Names are loaded on first use: germline sets can be read without the compiler behind the counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait._exports import on_first_use

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

__getattr__, __dir__ = on_first_use(__name__, __file__)
