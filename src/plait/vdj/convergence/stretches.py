"""What the rows of a study are dealt out by: stretches of files, and what became of their rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow.parquet as arrow_parquet

from plait.vdj.convergence.count_cache import CountedSample

__all__ = ["Dealt", "Stretch", "stretches"]

#: Rows of a task, about.
_STRETCH_ROWS = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Row groups of one file's counts: one task.

    Attributes
    ----------
    number
        Its place in the order of all rows.
    sample
        The file.
    first, last
        Row groups, `last` not included.
    """

    number: int
    sample: CountedSample
    first: int
    last: int


@dataclass(slots=True, kw_only=True)
class Dealt:
    """What a task did: its totals.

    Attributes
    ----------
    rows
        All rows.
    left_out
        Rows in no clonotype, by reason.
    statuses
        Rows by status of the path count.
    subjects
        Rows by subject, those left out not included.
    left_out_of
        Rows left out by subject, where that is known.
    v_genes, j_genes
        Rows by gene.
    pieces
        Names of the pieces, in order.
    """

    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    subjects: Counter[str] = field(default_factory=Counter)
    left_out_of: Counter[str] = field(default_factory=Counter)
    v_genes: Counter[str] = field(default_factory=Counter)
    j_genes: Counter[str] = field(default_factory=Counter)
    pieces: list[str] = field(default_factory=list)

    def merge(self, other: Dealt) -> None:
        """Add what another task did.

        Parameters
        ----------
        other
            Of later rows.
        """
        self.rows += other.rows
        self.pieces += other.pieces
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))

    def to_json(self) -> str:
        """Everything as text."""
        counters = {name: dict(getattr(self, name)) for name in _COUNTERS}
        return json.dumps({"rows": self.rows, "pieces": self.pieces, **counters})

    @classmethod
    def from_json(cls, text: str) -> Dealt:
        """The reverse of `to_json`.

        Parameters
        ----------
        text
            What it gave.
        """
        stored = json.loads(text)
        counters = {name: Counter(stored[name]) for name in _COUNTERS}
        return cls(rows=stored["rows"], pieces=list(stored["pieces"]), **counters)


_COUNTERS = ("left_out", "statuses", "subjects", "left_out_of", "v_genes", "j_genes")


def stretches(samples: Sequence[CountedSample]) -> list[Stretch]:
    """The tasks.

    Parameters
    ----------
    samples
        The files, in order.
    """
    found: list[Stretch] = []
    for sample in samples:
        with arrow_parquet.ParquetFile(sample.counts) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        first = rows = 0
        for group, size in enumerate(sizes, start=1):
            rows += size
            if rows >= _STRETCH_ROWS or group == len(sizes):
                found.append(Stretch(number=len(found), sample=sample, first=first, last=group))
                first, rows = group, 0
    return found
