"""The most shared clonotypes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.vdj.convergence.figure_settings import FigureSettings
from plait.vdj.germline.codons import translate

__all__ = ["TOP_COLUMNS", "TopShared"]

#: Columns of top_shared.tsv.
TOP_COLUMNS: Final = (
    "junction",
    "junction_aa",
    "v_gene",
    "j_gene",
    "subjects",
    "rows",
    "duplicate_count",
    "path_count",
    "pgen_nt",
    "n2_length",
)
_NAMES: Final = ("junction", "v_gene", "j_gene")
_FALLING: Final = ("subjects", "rows")
_ROW_BITS: Final = 40


@dataclass(slots=True)
class TopShared:
    """The first clonotypes by subjects, then rows, both falling, then junction, V and J. Can be pickled.

    Attributes
    ----------
    settings
        Of all tables.
    """

    settings: FigureSettings
    _top: pa.Table | None = field(default=None)

    def add_clonotypes(self, table: pa.Table) -> None:
        """Add clonotypes.

        Parameters
        ----------
        table
            As for `FigureTables.add_clonotypes`.
        """
        names = [name for name in TOP_COLUMNS if name in table.column_names]
        wanted = table.select(names)
        most = self.settings.most_shared
        if len(wanted) > most:
            # Texts are compared only among those that could be first by their numbers.
            rows = np.minimum(np.asarray(wanted["rows"]), (1 << _ROW_BITS) - 1)
            rank = (np.asarray(wanted["subjects"]).astype(np.int64) << _ROW_BITS) + rows
            least = np.partition(rank, len(rank) - most)[len(rank) - most] if most else np.iinfo(np.int64).max
            wanted = wanted.filter(pa.array(rank >= least))
        self._take(wanted)

    def merge(self, other: TopShared) -> None:
        """Add what another one holds.

        Parameters
        ----------
        other
            Of the same settings.
        """
        if other._top is not None:
            self._take(other._top)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of top_shared.tsv."""
        for row in [] if self._top is None else self._top.to_pylist():
            yield row | {"junction_aa": translate(row["junction"])}

    def _take(self, table: pa.Table) -> None:
        held = table if self._top is None else pa.concat_tables([self._top, table])
        order = [*((name, "descending") for name in _FALLING), *((name, "ascending") for name in _NAMES)]
        # Taken, not sliced: a slice would hold on to all the rest.
        self._top = held.take(pc.sort_indices(held, order)[: self.settings.most_shared])
