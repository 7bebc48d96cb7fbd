"""Path counts of a batch of junctions, and their Arrow form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.types import Provenance

#: Every value of the status column. All but the first are reasons for having no counts.
STATUSES = (
    "ok",
    "missing_junction",
    "invalid_symbol",
    "too_short",
    "too_long",
    "missing_v_call",
    "unknown_v_call",
    "ambiguous_v_call",
    "no_v_anchor",
    "missing_j_call",
    "unknown_j_call",
    "ambiguous_j_call",
    "no_j_anchor",
    "count_overflow",
)
#: Every one of them in plain words.
STATUS_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "ok": "counted",
        "missing_junction": "the junction is empty",
        "invalid_symbol": "the junction holds something that is no nucleotide code",
        "too_short": "the junction cannot hold both conserved codons",
        "too_long": "the junction is a whole read, or more",
        "missing_v_call": "the V call is empty",
        "unknown_v_call": "the germline set has no such V gene or allele",
        "ambiguous_v_call": "the V call is a list (--ambiguous fail)",
        "no_v_anchor": "the conserved Cys of this V allele is not known",
        "missing_j_call": "the J call is empty",
        "unknown_j_call": "the germline set has no such J gene or allele",
        "ambiguous_j_call": "the J call is a list (--ambiguous fail)",
        "no_j_anchor": "the conserved Phe or Trp of this J allele is not known",
        "count_overflow": "the count does not fit; see --overflow",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCounts:
    """Path counts of n junctions. Rows without status ``"ok"`` hold zeros.

    Count arrays are int64; with ``overflow="float"`` float64, with ``overflow="wide"`` Python integers
    (dtype object). D is the number of D alleles (0 for a V-J chain), P and U the values of pi and nu in the
    sweep (1 and 1 without one), N the numbers of N nucleotides 0..max_n.

    Attributes
    ----------
    status
        uint8 (n,): index into `STATUSES`.
    path_count
        (n,): sum over the allowed D alleles (over the allowed pairs in a V-D-D-J chain), and for dp1 and
        exhaustive over all N.
    by_d, zero_d_by_d
        (n, D): paths per D allele, and those with a D of zero length.
    no_d
        (n,): paths without a D gene.
    by_dd
        (n, D * D): paths per pair of D alleles (V-D-D-J chain).
    sweep_by_d, zero_d_sweep_by_d, no_d_sweep, sweep_by_dd
        (n, D, P, U), (n, D, P, U), (n, P, U) and (n, D * D, P, U): the same for every model of a sweep.
    by_n_by_d, no_d_by_n, by_n_by_dd
        (n, D, N), (n, N) and (n, D * D, N): dp1 and exhaustive.
    allowed
        bool (n, D): D alleles that the order rule allows with the row's J.
    pair_allowed
        bool (n, D * D): allowed pairs of D alleles.
    regions
        Region columns, each int32 (n,). Those of D mean nothing where ``d_match_length`` is 0.
    d_match
        int64 (n,): bit d is set where D allele d has the longest match.
    provenance
        How the counts were made.
    """

    status: NDArray[np.uint8]
    path_count: NDArray[Any]
    by_d: NDArray[Any]
    zero_d_by_d: NDArray[Any]
    no_d: NDArray[Any]
    by_dd: NDArray[Any]
    sweep_by_d: NDArray[Any]
    zero_d_sweep_by_d: NDArray[Any]
    no_d_sweep: NDArray[Any]
    sweep_by_dd: NDArray[Any]
    by_n_by_d: NDArray[Any]
    no_d_by_n: NDArray[Any]
    by_n_by_dd: NDArray[Any]
    allowed: NDArray[np.bool_]
    pair_allowed: NDArray[np.bool_]
    regions: Mapping[str, NDArray[np.int32]]
    d_match: NDArray[np.int64]
    provenance: Provenance

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Which rows have counts, bool (n,)."""
        return np.equal(self.status, 0)

    def __len__(self) -> int:
        return int(self.status.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathTotals:
    """Path counts of n junctions, summed over D alleles. Rows without status ``"ok"`` hold zeros.

    Attributes
    ----------
    status
        uint8 (n,): index into `STATUSES`.
    total
        (n, P, U): sum over the allowed D alleles, or pairs of them, for every value of pi and nu in the
        sweep; for dp1 and exhaustive (n, N), by the number of N nucleotides. Types as in `PathCounts`.
    provenance
        How the counts were made.
    """

    status: NDArray[np.uint8]
    total: NDArray[Any]
    provenance: Provenance
