"""Pairwise alignment and database search.

Costs of gaps are positive numbers, and the first residue of a gap costs `gap_open`: a gap of g residues costs
``gap_open + (g - 1) * gap_extend``. What is named here is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait._exports import on_first_use

if TYPE_CHECKING:
    from plait.align.aligner import (
        Aligner,
        AlignmentEnds,
        AlignmentSettings,
        align,
        align_many,
        align_pairs,
        end_pairs,
        local_best,
        make_aligner,
        score,
        score_many,
        score_pairs,
    )
    from plait.align.distances import edit_distances, hamming_distances
    from plait.align.hits import search
    from plait.align.results import Alignment, Alignments
    from plait.align.scoring import (
        Scoring,
        SubstitutionMatrix,
        bundled_matrices,
        load_matrix,
        make_scoring,
        match_mismatch,
        to_matrix,
    )
    from plait.align.sums import count_alignments, count_optimal, log_partition, match_posteriors

__all__ = [
    "Aligner",
    "Alignment",
    "AlignmentEnds",
    "AlignmentSettings",
    "Alignments",
    "Scoring",
    "SubstitutionMatrix",
    "align",
    "align_many",
    "align_pairs",
    "bundled_matrices",
    "count_alignments",
    "count_optimal",
    "edit_distances",
    "end_pairs",
    "hamming_distances",
    "load_matrix",
    "local_best",
    "log_partition",
    "make_aligner",
    "make_scoring",
    "match_mismatch",
    "match_posteriors",
    "score",
    "score_many",
    "score_pairs",
    "search",
    "to_matrix",
]

__getattr__, __dir__ = on_first_use(__name__, __file__)
