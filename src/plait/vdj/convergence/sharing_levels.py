"""Path counts and N2 lengths by the number of subjects that share a clonotype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.statistics.contingency import Pairs
from plait.statistics.quantiles import counted_quantiles
from plait.statistics.tally import Tally
from plait.vdj.convergence.composition import Composition

__all__ = [
    "LEVEL_COLUMNS",
    "LEVEL_SUMS",
    "N2_LENGTH_COLUMNS",
    "PATH_COUNT_COLUMNS",
    "n2_length_rows",
    "path_count_rows",
    "sharing_level_rows",
]

_SHARES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
_QUANTILES: Final = tuple(f"q{round(100 * share):02d}" for share in _SHARES)
#: What is added up by number of subjects.
LEVEL_SUMS: Final = ("clonotypes", "rows", "counted", "without_d")
#: Columns of sharing_levels.tsv.
LEVEL_COLUMNS: Final = (
    "subjects",
    "clonotypes",
    "rows",
    "counted",
    "zero_counts",
    *(f"path_count_{name}" for name in _QUANTILES),
    "path_count_mean_log10",
    *(f"n2_length_{name}" for name in _QUANTILES),
    "n2_length_mean",
    "n2_at_share",
)
#: Columns of path_count_by_sharing.tsv.
PATH_COUNT_COLUMNS: Final = ("subjects", "log10_low", "log10_high", "clonotypes")
#: Columns of n2_length_by_sharing.tsv.
N2_LENGTH_COLUMNS: Final = ("subjects", "n2_length", "clonotypes")

#: Bins of a factor of ten.
_BINS: Final = 4
#: What rounding may take off a logarithm: a power of ten is in the bin that it begins.
_SLACK: Final = 1e-9


def sharing_level_rows(
    levels: Tally, path_counts: Pairs, n2_lengths: Pairs, composition: Composition
) -> Iterator[dict[str, Any]]:
    """Rows of sharing_levels.tsv.

    Parameters
    ----------
    levels
        `LEVEL_SUMS` by number of subjects.
    path_counts, n2_lengths
        Counted pairs of these and the number of subjects.
    composition
        Nucleotides of the N regions.
    """
    for (level,), sums in levels:
        row: dict[str, Any] = {"subjects": level, **sums}
        values, counts = _of_level(path_counts, level)
        row["zero_counts"] = int(counts[values == 0].sum())
        row |= _quantiles("path_count", values, counts)
        nonzero = values > 0
        row["path_count_mean_log10"] = _mean(np.log10(values[nonzero].astype(np.float64)), counts[nonzero])
        values, counts = _of_level(n2_lengths, level)
        row |= _quantiles("n2_length", values, counts)
        row["n2_length_mean"] = _mean(values, counts)
        row["n2_at_share"] = composition.n2_at_share(level)
        yield row


def path_count_rows(path_counts: Pairs) -> Iterator[dict[str, Any]]:
    """Rows of path_count_by_sharing.tsv: bins of a quarter of a power of ten; zero has a bin of its own.

    Parameters
    ----------
    path_counts
        Counted pairs of path count and number of subjects.
    """
    for level in np.unique(path_counts.y).tolist():
        values, counts = _of_level(path_counts, level)
        zero = values == 0
        if zero.any():
            yield {"subjects": level, "clonotypes": int(counts[zero].sum())}
        logarithms = np.log10(values[~zero].astype(np.float64))
        bins, place = np.unique(np.floor(logarithms * _BINS + _SLACK).astype(np.int64), return_inverse=True)
        found = np.zeros(len(bins), np.int64)
        np.add.at(found, place, counts[~zero])
        for at, clonotypes in zip(bins.tolist(), found.tolist(), strict=True):
            yield {
                "subjects": level,
                "log10_low": at / _BINS,
                "log10_high": (at + 1) / _BINS,
                "clonotypes": clonotypes,
            }


def n2_length_rows(levels: Tally, n2_lengths: Pairs) -> Iterator[dict[str, Any]]:
    """Rows of n2_length_by_sharing.tsv: counted clonotypes; those without a D have a row of their own.

    Parameters
    ----------
    levels
        `LEVEL_SUMS` by number of subjects.
    n2_lengths
        Counted pairs of N2 length and number of subjects.
    """
    for (level,), sums in levels:
        if sums["without_d"]:
            yield {"subjects": level, "clonotypes": sums["without_d"]}
        values, counts = _of_level(n2_lengths, level)
        for length, clonotypes in zip(values.tolist(), counts.tolist(), strict=True):
            yield {"subjects": level, "n2_length": int(length), "clonotypes": clonotypes}


def _of_level(pairs: Pairs, level: float) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Values of x in ascending order, and how often they occur."""
    of_level = pairs.y == level
    return pairs.x[of_level], pairs.counts[of_level]


def _quantiles(name: str, values: NDArray[Any], counts: NDArray[np.int64]) -> dict[str, float | None]:
    found = counted_quantiles(values, counts, _SHARES)
    return {f"{name}_{label}": value for label, value in zip(_QUANTILES, found, strict=True)}


def _mean(values: NDArray[Any], counts: NDArray[np.int64]) -> float | None:
    n = int(counts.sum())
    return float(np.sum(values * counts)) / n if n else None
