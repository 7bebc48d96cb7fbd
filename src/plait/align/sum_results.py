"""Results of sums over all alignments of a pair."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from plait.types import Provenance

__all__ = ["AlignmentCount", "LogPartition", "MatchPosteriors", "OptimalCount"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentCount:
    """How many alignments a pair has.

    Attributes
    ----------
    count
        The number; with ``overflow="float"`` in float64, rounded, infinite from 2^1024 on.
    mode
        ``"global"`` or ``"local"``.
    provenance
        How it was counted.
    """

    count: int | float
    mode: str
    provenance: Provenance = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalCount:
    """How many alignments of a pair have the best score.

    Attributes
    ----------
    score
        The best score.
    count
        How many alignments have it; with ``overflow="float"`` in float64, rounded, infinite from 2^1024 on.
    mode
        ``"global"`` or ``"local"``.
    provenance
        How it was counted.
    """

    score: int
    count: int | float
    mode: str
    provenance: Provenance = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPartition:
    """Logarithm of a partition function.

    Attributes
    ----------
    value
        Natural logarithm of the sum of ``exp(score / temperature)`` over all alignments.
    temperature
        What scores were divided by.
    mode
        ``"global"`` or ``"local"``.
    provenance
        How it was summed.
    """

    value: float
    temperature: float
    mode: str
    provenance: Provenance = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchPosteriors:
    """How likely residues are to be paired, where alignments weigh ``exp(score / temperature)``.

    Attributes
    ----------
    probabilities
        Probability that query residue i is paired with target residue j, float64, shape (m, n).
    log_partition
        Natural logarithm of the sum of the weights.
    temperature
        What scores were divided by.
    mode
        ``"global"`` or ``"local"``.
    provenance
        How they were summed.
    """

    probabilities: NDArray[np.float64]
    log_partition: float
    temperature: float
    mode: str
    provenance: Provenance = field(repr=False)

    @property
    def query_unpaired(self) -> NDArray[np.float64]:
        """Probability that each query residue is paired with none, shape (m,)."""
        return np.asarray(np.maximum(1.0 - self.probabilities.sum(axis=1), 0.0))

    @property
    def target_unpaired(self) -> NDArray[np.float64]:
        """Probability that each target residue is paired with none, shape (n,)."""
        return np.asarray(np.maximum(1.0 - self.probabilities.sum(axis=0), 0.0))
