"""Pairwise alignment and database search.

Costs of gaps are positive numbers, and the first residue of a gap costs `gap_open`: a gap of g residues costs
``gap_open + (g - 1) * gap_extend``.
"""

from plait.align.aligner import Aligner, make_aligner
from plait.align.alignments import (
    AlignmentSettings,
    align,
    align_many,
    align_pairs,
    score,
    score_many,
    score_pairs,
)
from plait.align.matrices import SubstitutionMatrix, bundled_matrices, load_matrix, match_mismatch
from plait.align.results import Alignment
from plait.align.scoring import Scoring, make_scoring
from plait.align.sums import count_alignments, count_optimal, log_partition, match_posteriors

__all__ = [
    "Aligner",
    "Alignment",
    "AlignmentSettings",
    "Scoring",
    "SubstitutionMatrix",
    "align",
    "align_many",
    "align_pairs",
    "bundled_matrices",
    "count_alignments",
    "count_optimal",
    "load_matrix",
    "log_partition",
    "make_aligner",
    "make_scoring",
    "match_mismatch",
    "match_posteriors",
    "score",
    "score_many",
    "score_pairs",
]
