"""Generation probabilities of a made-up study: tables with the shape of real ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["pgen_tables"]

_COMPARED = (
    *("stratum_kind", "stratum", "y", "scope", "pi", "nu", "measure", "path_count", "pgen", "difference"),
    *("low", "high", "subjects_low", "subjects_high", "n"),
)
_PAIRS = (("pgen_only", "counts_only", -0.012), ("counts_and_pgen", "pgen_only", -0.001))
_Tables = dict[str, tuple[list[str], list[list[object]]]]


def pgen_tables(
    rng: np.random.Generator, subjects: NDArray[np.int64], log_pgen: NDArray[np.float64]
) -> _Tables:
    """Tables by name: columns and rows.

    Parameters
    ----------
    rng
        What to draw from.
    subjects
        Of each clonotype.
    log_pgen
        Logarithm to base 10 of the probability of each clonotype; minus infinity for zero.
    """
    by_sharing: list[list[object]] = []
    zero = np.isinf(log_pgen)
    for level in np.unique(subjects).tolist():
        mine = subjects == level
        if int((mine & zero).sum()):
            by_sharing.append([level, None, None, int((mine & zero).sum())])
        bins, counts = np.unique(np.floor(log_pgen[mine & ~zero] * 4), return_counts=True)
        by_sharing += [[level, b / 4, (b + 1) / 4, int(n)] for b, n in zip(bins, counts, strict=True)]
    shared = subjects > 1
    statuses: list[list[object]] = [
        [status, int(of.sum()), int(of.sum()), int((of & shared).sum()), meaning]
        for status, of, meaning in (("ok", ~zero, "above zero"), ("no_scenario", zero, "zero"))
    ]
    compared = [
        _compared(measure, scope, base, difference, subjects.size)
        for measure, base, difference in (
            ("spearman", 0.11, 0.05),
            ("kendall", 0.09, 0.04),
            ("auc", 0.63, 0.06),
        )
        for scope in ("all", "above_zero")
    ]
    for pi in range(5):
        for nu in range(11):
            for measure, base in (("spearman", 0.11), ("auc", 0.63)):
                here = base + 0.07 * np.exp(-0.3 * abs(nu - 2)) - 0.01 * (4 - pi)
                row = _compared(
                    measure, "sweep", round(float(here), 4), 0.06 - float(here) + base, subjects.size
                )
                row[4:6], row[12:14] = [pi, nu], [None, None]
                compared.append(row)
    ends = 0.002 + 0.001 * float(rng.random())
    groups: list[list[object]] = [
        [model, other, less, less - ends, less + ends, -2 * less, -2 * less - ends, -2 * less + ends, 4000]
        for model, other, less in _PAIRS
    ]
    columns = ["model", "other", "deviance_less", "deviance_low", "deviance_high", "auc_more", "auc_low"]
    return {
        "pgen_by_sharing": (["subjects", "log10_low", "log10_high", "clonotypes"], by_sharing),
        "pgen_statuses": (["status", "clonotypes", "rows", "shared_clonotypes", "meaning"], statuses),
        "pgen_comparison": (list(_COMPARED), compared),
        "pgen_groups": ([*columns, "auc_high", "n"], groups),
    }


def _compared(measure: str, scope: str, base: float, difference: float, n: int) -> list[object]:
    half = 2 / n**0.5
    row: list[object] = ["all", None, "subjects", scope, None, None, measure, base, base + difference]
    row += [difference, difference - half, difference + half]
    over = measure != "kendall" and scope == "all"
    return [*row, difference - 2 * half if over else None, difference + 2 * half if over else None, n]
