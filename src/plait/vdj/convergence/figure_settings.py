"""What the tables behind figures and answers are made with, and which columns they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["PAIR_COLUMNS", "FigureSettings"]

#: Columns of the clonotypes that `FigureTables.add_pairs` reads, where the study has them, beside its own
#: ``subject``, ``rows`` and ``duplicate_count`` (those of the clonotype in this subject); and ``pgen_nt``
#: with `FigureSettings.pgen`.
PAIR_COLUMNS: Final = (
    "v_gene",
    "j_gene",
    "subjects",
    "junction_length",
    "path_count",
    "n2_length",
    "n2_a",
    "n2_c",
    "n2_g",
    "n2_t",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSettings:
    """Settings of the tables.

    Attributes
    ----------
    shared_by
        Subjects that must have a clonotype for it to be called shared.
    pi, nu
        Values of the sweep; entry ``i * len(nu) + k`` of path_count_sweep belongs to pi[i] and nu[k].
    confidence
        Confidence of all intervals.
    fewest
        Rows below which the correlation in a stratum is not estimated.
    exact_pairs
        Distinct (stratum, x, y) up to which the tables behind the correlations are exact.
    rounded_pairs
        Where there are more, the most that the table of all rows may hold; those of strata may hold two to
        eight times as many. Values are rounded towards zero, as little as is needed.
    most_shared
        Rows of the table of the most shared clonotypes.
    pgen
        Whether clonotypes have generation probabilities.
    """

    shared_by: int = 2
    pi: tuple[int, ...] = ()
    nu: tuple[int, ...] = ()
    confidence: float = 0.95
    fewest: int = 20
    exact_pairs: int = 1 << 20
    rounded_pairs: int = 1 << 17
    most_shared: int = 2000
    pgen: bool = False
