"""Rows with doubtful bases in the junction: they make no clonotype, and join one that good rows have made."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.formats.sorted_runs import run_starts
from plait.vdj.reads.columns import letters_of, text_array

#: Sums that a clonotype gets from rows that join it.
ADDED: Final = ("duplicate_count", "consensus_count", "umi_count")
#: Clonotypes that can agree with a row are equal in these.
_GROUP: Final = ("group", "length")
#: Stands for a doubtful base.
_MASK: Final = ord(".")
#: Of Phred scores as text.
_OFFSET: Final = 33
#: Pairs of a clonotype and a row that are compared at a time.
_PAIRS: Final = 1 << 20
#: Why a row joins no clonotype.
_NONE, _SEVERAL, _TOO_FEW = -1, -2, -3
_REASONS: Final = {
    _NONE: "no_clonotype_agrees",
    _SEVERAL: "several_clonotypes_agree",
    _TOO_FEW: "too_few_good_bases",
}


def split_low_quality(rows: pa.RecordBatch, min_quality: int) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """Good rows, and those with a base below a Phred score in their junction, masked; None if there are none.

    Rows without scores are good. Masked rows have ``group``, ``length``, ``junction`` with dots for such
    bases, ``rows`` (1 each) and the sums `ADDED`.
    """
    if min_quality <= 0 or "quality" not in rows.schema.names:
        return rows, None
    scores, starts = letters_of(rows["quality"])
    doubtful = scores < min_quality + _OFFSET
    sizes = np.diff(starts)
    low = np.diff(np.concatenate(([0], np.cumsum(doubtful)))[starts]) > 0
    if not low.any():
        return rows, None
    taken = rows.filter(pa.array(low))
    letters, edges = letters_of(taken["junction"])
    masked = np.where(doubtful[np.repeat(low, sizes)], np.uint8(_MASK), letters)
    columns = {name: taken[name] for name in (*_GROUP, *ADDED) if name in taken.schema.names}
    columns["junction"] = text_array(masked, edges)
    columns["rows"] = pa.array(np.ones(taken.num_rows, np.int64))
    return rows.filter(pa.array(~low)), pa.record_batch(columns)


class LowQualityRows:
    """Masked rows by group, length and junction, which join the clonotypes that pass by in the same order.

    `joined` rows are counted in a clonotype; `left_out` has the others by reason: ``no_clonotype_agrees``,
    ``several_clonotypes_agree``, ``too_few_good_bases`` (less than half of the junction).
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._held = next(self._batches, None)
        self.any = self._held is not None
        self.joined = 0
        self.left_out: Counter[str] = Counter()

    def join(self, clonotypes: pa.RecordBatch) -> pa.RecordBatch:
        """Count each row in the only clonotype that its good bases agree with; the same clonotypes and order.

        A call gets all clonotypes of one or more groups and lengths, in order, behind those of the last call.
        """
        starts = run_starts(clonotypes, _GROUP).tolist()
        ends = [*starts[1:], clonotypes.num_rows]
        own = {_key(clonotypes, first): (first, end) for first, end in zip(starts, ends, strict=True)}
        sums = {name: clonotypes[name].to_numpy().copy() for name in ADDED if name in clonotypes.schema.names}
        for masked in self._until(_key(clonotypes, starts[-1])):
            edges = run_starts(masked, _GROUP).tolist()
            for first, end in zip(edges, [*edges[1:], masked.num_rows], strict=True):
                part = masked.slice(first, end - first)
                low, high = own.get(_key(part, 0), (0, 0))
                parent = _only_agreeing(clonotypes["junction"].slice(low, high - low), part["junction"])
                self._count(part, parent)
                found = parent >= 0
                for name, values in sums.items():
                    np.add.at(values, parent[found] + low, part[name].to_numpy()[found])
        columns = {name: clonotypes[name] for name in clonotypes.schema.names}
        return pa.record_batch(columns | {name: pa.array(values) for name, values in sums.items()})

    def finish(self) -> None:
        """Count the rows that lie behind all clonotypes."""
        for masked in self._until(None):
            self._count(masked, np.full(masked.num_rows, _NONE))

    def _count(self, masked: pa.RecordBatch, parent: NDArray[np.int64]) -> None:
        rows = masked["rows"].to_numpy()
        self.joined += int(rows[parent >= 0].sum())
        for code, reason in _REASONS.items():
            number = int(rows[parent == code].sum())
            if number:
                self.left_out[reason] += number

    def _until(self, key: tuple[str, int] | None) -> Iterator[pa.RecordBatch]:
        """Rows that were not yet taken and are not behind a group and length."""
        while self._held is not None:
            rows = self._held
            end = rows.num_rows
            if key is not None:
                end = bisect_right(range(end), key, key=lambda i: _key(rows, i))
            if end:
                yield rows.slice(0, end)
            if end < rows.num_rows:
                self._held = rows.slice(end)
                return
            self._held = next(self._batches, None)


def _key(rows: pa.RecordBatch, i: int) -> tuple[str, int]:
    return rows["group"][i].as_py(), rows["length"][i].as_py()


def _only_agreeing(junctions: pa.Array, masked: pa.Array) -> NDArray[np.int64]:
    """The one junction that each masked one agrees with, else the code of a reason; all of one length."""
    letters, starts = letters_of(masked)
    length = int(starts[1])
    rows = letters.reshape(-1, length)
    whole = _words(letters_of(junctions)[0].reshape(-1, length))
    good = _words(np.where(rows == _MASK, np.uint8(0), np.uint8(255)))
    wanted = _words(rows) & good
    parent = np.full(len(rows), _NONE)
    # The middle tells junctions of the same genes apart.
    order = np.argsort(np.abs(np.arange(whole.shape[1]) - whole.shape[1] // 2), kind="stable").tolist()
    step = max(1, _PAIRS // max(len(whole), 1))
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        word = order[0]
        row, own = np.nonzero((whole[None, :, word] & good[part, None, word]) == wanted[part, None, word])
        for word in order[1:]:
            same = (whole[own, word] & good[part][row, word]) == wanted[part][row, word]
            row, own = row[same], own[same]
        number = np.bincount(row, minlength=len(parent[part]))
        parent[first + row] = own
        parent[part][number > 1] = _SEVERAL
    parent[2 * np.count_nonzero(rows == _MASK, axis=1) > length] = _TOO_FEW
    return parent


def _words(letters: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Rows of letters as 64-bit words."""
    padded = np.zeros((len(letters), -(-letters.shape[1] // 8) * 8), np.uint8)
    padded[:, : letters.shape[1]] = letters
    return padded.view(np.uint64)
