"""Sequencing errors in UMIs: a rare UMI that is a frequent one with one wrong base is read as that one."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.formats.sorted_runs import SortedRuns, SpilledBlocks, run_starts, whole_runs
from plait.vdj.annotation.byte_columns import letters_of
from plait.vdj.annotation.satellites import Texts, find_parents

__all__ = ["UmiCorrector"]

_KEY: Final = ("repertoire", "length", "umi")
_SEPARATOR: Final = "\x1f"


class UmiCorrector:
    """Counts UMIs, and then corrects those of reads.

    The distinct UMIs of one repertoire are in memory when they are compared, and those that are corrected, of
    all repertoires, from then on.

    Parameters
    ----------
    blocks
        Where counts are kept that do not fit memory.
    ratio
        How many times as many reads the right UMI must have.
    memory_bytes
        Bytes of counts that wait in memory.

    Attributes
    ----------
    umis, reads : int
        UMIs that were corrected, and reads with them; known after `decide`.
    """

    def __init__(self, blocks: SpilledBlocks, ratio: float, memory_bytes: int) -> None:
        self._ratio = ratio
        self._counts = SortedRuns(
            blocks, dict.fromkeys(_KEY, "ascending"), memory_bytes=memory_bytes, combine=_added
        )
        self._wrong = pa.array([], pa.string())
        self._right = pa.array([], pa.string())
        self.umis = self.reads = 0

    def add(self, reads: pa.RecordBatch) -> None:
        """Count the UMIs of reads, in columns repertoire and umi."""
        counts = {
            "repertoire": reads["repertoire"],
            "length": pc.binary_length(reads["umi"]),
            "umi": reads["umi"],
            "reads": pa.array(np.ones(reads.num_rows, np.int64)),
        }
        self._counts.add(pa.record_batch(counts))

    def decide(self) -> None:
        """Find the wrong UMIs; to be called once, after the last `add`."""
        wrong, right = [self._wrong], [self._right]
        for known in whole_runs(self._counts.drain(), ("repertoire",)):
            letters, starts = letters_of(known["umi"])
            new = np.zeros(known.num_rows, np.int64)
            new[run_starts(known, _KEY[:2])] = 1
            counts = known["reads"].to_numpy()
            parents = find_parents(Texts(letters, starts, np.cumsum(new) - 1, counts), self._ratio)
            places = np.flatnonzero(parents != np.arange(parents.size))
            self.umis += places.size
            self.reads += int(counts[places].sum())
            wrong.append(_named(known.take(pa.array(places))))
            right.append(known["umi"].take(pa.array(parents[places])))
        self._wrong, self._right = pa.concat_arrays(wrong), pa.concat_arrays(right)

    def correct(self, reads: pa.RecordBatch) -> pa.RecordBatch:
        """Put the right UMI in the place of each wrong one.

        Parameters
        ----------
        reads
            Reads that have been counted, in columns repertoire, umi and any others.

        Returns
        -------
        pyarrow.RecordBatch
            The same reads and columns.
        """
        place = pc.index_in(_named(reads), value_set=self._wrong)
        umis = pc.coalesce(self._right.take(place), reads["umi"])
        return reads.set_column(reads.schema.get_field_index("umi"), "umi", umis)


def _named(rows: pa.RecordBatch) -> pa.Array:
    """UMIs with their repertoires."""
    return pc.binary_join_element_wise(rows["umi"], rows["repertoire"], _SEPARATOR)


def _added(rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row for each UMI of those in order."""
    starts = run_starts(rows, _KEY)
    columns = {name: rows[name].take(pa.array(starts)) for name in _KEY}
    return pa.record_batch(columns | {"reads": pa.array(np.add.reduceat(rows["reads"].to_numpy(), starts))})
