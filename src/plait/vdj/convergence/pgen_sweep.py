"""Path counts under every model of a sweep, and Pgen, of the same clonotypes: both in bins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.statistics.contingency import ContingencyTable
from plait.statistics.paired_ranks import Triples, triples_of
from plait.vdj.convergence.figure_settings import FigureSettings
from plait.vdj.convergence.sweep_counts import bins_of, swept_counts

__all__ = ["PgenSweep"]

_SWEEP: Final = "path_count_sweep"
#: Bins of a factor of ten of Pgen, which spans many more of these than path counts do.
_BINS: Final = 10
#: Added to the logarithm of Pgen: what is smaller is in the first bin.
_LEAST: Final = 100
_BLOCK: Final = 1 << 16
#: Cells up to which a block is counted in a full array.
_FULL: Final = 1 << 22


@dataclass(slots=True)
class PgenSweep:
    """Clonotypes by model, number of subjects, path count and Pgen. Instances can be pickled.

    Path counts are in bins of 0.05 of the logarithm to base 10, Pgen in those of 0.1; zeros have a bin of
    their own. So what is held is bounded, and ranks are hardly coarser than they were.

    Attributes
    ----------
    settings
        Of all tables.
    """

    settings: FigureSettings
    _bins: ContingencyTable = field(default_factory=ContingencyTable)

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes that have path counts and Pgen.

        Parameters
        ----------
        table
            With the columns subjects, pgen_nt and, if there is a sweep, path_count_sweep.
        """
        if _SWEEP not in table.column_names or not self.models:
            return
        for start in range(0, len(table), _BLOCK):
            self._add(table.slice(start, _BLOCK))

    def merge(self, other: PgenSweep) -> None:
        """Add what another one holds.

        Parameters
        ----------
        other
            Of the same settings.
        """
        self._bins.merge(other._bins)

    @property
    def models(self) -> list[tuple[int, int]]:
        """Limits (pi, nu) of the models, in their order."""
        return [(pi, nu) for pi in self.settings.pi for nu in self.settings.nu]

    def triples(self, place: int) -> Triples:
        """Path count, Pgen and number of subjects of the clonotypes, under one model.

        Parameters
        ----------
        place
            Of the model.
        """
        prefix = str(place)
        found = [(int(name[1]), self._bins.pairs(name)) for name in self._bins.strata if name[0] == prefix]
        if not found:
            nothing = np.zeros(0, np.int64)
            return Triples(nothing, nothing, nothing, nothing)
        x, z, counts = (np.concatenate([pairs[k] for _, pairs in found]) for k in range(3))
        y = np.repeat([level for level, _ in found], [len(pairs.counts) for _, pairs in found])
        return triples_of(x, z, y, counts)

    def _add(self, table: pa.Table) -> None:
        models = len(self.models)
        counts = swept_counts(table, models)
        levels, level = np.unique(np.asarray(table["subjects"]), return_inverse=True)
        pgen = _pgen_bins(np.asarray(table["pgen_nt"]))
        base = int(pgen.max(initial=0)) + 1
        for place in range(models):
            bins = bins_of(counts[:, place])
            width = int(bins.max(initial=0)) + 1
            keys = (level * width + bins) * base + pgen
            used, found = _counted(keys, len(levels) * width * base)
            rest, z = np.divmod(used, base)
            of_level, x = np.divmod(rest, width)
            names = [(str(place), str(one)) for one in levels.tolist()]
            self._bins.add(x, z, found, strata=(of_level, names))


def _counted(keys: NDArray[Any], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct keys, and how often each occurs."""
    if size > _FULL:
        used, counts = np.unique(keys, return_counts=True)
        return used.astype(np.int64), counts.astype(np.int64)
    found = np.bincount(keys)
    used = np.flatnonzero(found)
    return used, found[used]


def _pgen_bins(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """0 for a probability of zero."""
    positive = values > 0
    logarithms = np.log10(np.where(positive, values, 1.0))
    bins = np.floor((logarithms + _LEAST) * _BINS).astype(np.int64) + 1
    return np.where(positive, np.maximum(bins, 1), 0)
