"""V(D)J recombination: germline sets, path counts, region calls, sharing."""

from plait.vdj.counting import PathCounter, count_paths
from plait.vdj.models import PathModel
from plait.vdj.results import STATUSES, PathCounts

__all__ = ["STATUSES", "PathCounter", "PathCounts", "PathModel", "count_paths"]
