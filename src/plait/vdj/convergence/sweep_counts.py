"""Path counts under every model of a sweep, by the number of subjects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.statistics.contingency import ContingencyTable
from plait.vdj.convergence.figure_settings import FigureSettings

__all__ = ["SWEEP_COLUMNS", "SweepCounts", "bins_of", "swept_counts"]

#: Columns of sweep.tsv.
SWEEP_COLUMNS: Final = (
    "pi",
    "nu",
    "subjects",
    "counted",
    "zero_counts",
    "path_count_q25",
    "path_count_q50",
    "path_count_q75",
)
_QUANTILES: Final = {"path_count_q25": 0.25, "path_count_q50": 0.5, "path_count_q75": 0.75}
#: Bins of a factor of ten.
_BINS: Final = 20
_BLOCK: Final = 1 << 15
#: What rounding may take off a logarithm: a power of ten is in the bin that it begins.
_SLACK: Final = 1e-9
_COLUMN: Final = "path_count_sweep"


@dataclass(slots=True)
class SweepCounts:
    """Histograms of path counts, one for each model and number of subjects. Instances can be pickled.

    Attributes
    ----------
    settings
        Of all tables.
    """

    settings: FigureSettings
    _bins: ContingencyTable = field(default_factory=ContingencyTable)

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes; those without counts are passed over.

        Parameters
        ----------
        table
            As for `FigureTables.add_clonotypes`.
        """
        if _COLUMN not in table.column_names or not len(self._models):
            return
        for start in range(0, len(table), _BLOCK):
            block = table.slice(start, _BLOCK)
            kept = block.filter(block["path_count"].is_valid())
            if len(kept):
                self._add(kept)

    def merge(self, other: SweepCounts) -> None:
        """Add what another one holds.

        Parameters
        ----------
        other
            Of the same settings.
        """
        self._bins.merge(other._bins)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of sweep.tsv: models in their order, then by number of subjects."""
        for place, (pi, nu) in enumerate(self._models):
            pairs = self._bins.pairs((str(place),))
            for level in np.unique(pairs.y).tolist():
                of_level = pairs.y == level
                bins, counts = pairs.x[of_level], pairs.counts[of_level]
                row = {"pi": pi, "nu": nu, "subjects": level, "counted": int(counts.sum())}
                row["zero_counts"] = int(counts[bins == 0].sum())
                yield row | {name: _quantile(bins, counts, share) for name, share in _QUANTILES.items()}

    @property
    def _models(self) -> list[tuple[int, int]]:
        return [(pi, nu) for pi in self.settings.pi for nu in self.settings.nu]

    def _add(self, table: pa.Table) -> None:
        models = len(self._models)
        counts = swept_counts(table, models)
        levels, level = np.unique(np.asarray(table["subjects"]), return_inverse=True)
        bins = bins_of(counts)
        size = int(bins.max()) + 1
        keys = (np.arange(models) * len(levels) + level[:, None]) * size + bins
        found = np.bincount(keys.ravel())
        used = np.flatnonzero(found)
        model, rest = np.divmod(used, len(levels) * size)
        self._bins.add(
            rest % size,
            levels[rest // size],
            found[used],
            strata=(model, [(str(place),) for place in range(models)]),
        )


def swept_counts(table: pa.Table, models: int) -> NDArray[Any]:
    """Path counts of clonotypes, shape (clonotypes, models).

    Parameters
    ----------
    table
        With the column path_count_sweep, none of whose values is null.
    models
        How many there must be.

    Raises
    ------
    ValueError
        If there are others.
    """
    counts = np.asarray(table[_COLUMN].combine_chunks().flatten()).reshape(len(table), -1)
    if counts.shape[1] != models:
        raise ValueError(f"{counts.shape[1]} counts a clonotype, {models} models")
    return counts


def bins_of(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Bins of 0.05 in the logarithm to base 10: 0 for a count of zero, else 1 and those up to the count.

    Parameters
    ----------
    counts
        Path counts, of any shape.
    """
    positive = counts > 0
    logarithms = np.log10(np.where(positive, counts, 1).astype(np.float64))
    bins = np.floor(logarithms * _BINS + _SLACK).astype(np.int64) + 1
    return np.where(positive, np.maximum(bins, 1), 0)


def _quantile(bins: NDArray[np.int64], counts: NDArray[np.int64], share: float) -> float:
    """Middle of the first bin that reaches this share of all."""
    ends = np.cumsum(counts)
    place = int(bins[np.searchsorted(ends, share * ends[-1])])
    return 10 ** ((place - 0.5) / _BINS) if place else 0.0
