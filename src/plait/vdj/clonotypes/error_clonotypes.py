"""Clonotypes that sequencing errors make, and rows that may be erroneous.

Error clonotypes, or satellites, are rare ones beside an abundant one. Rows with doubtful bases in the
junction make no clonotype, and join one that good rows have made.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.formats.checkpoints import letters_of
from plait.formats.sorted_runs import run_starts
from plait.vdj.reads.columns import edges_of, owners, take_groups, text_array

#: Texts with one letter changed that are looked up at a time.
_PROBES: Final = 1 << 20
#: Of Phred scores as text.
_OFFSET: Final = 33
#: Sums that a clonotype gets from rows that join it.
ADDED: Final = ("duplicate_count", "consensus_count", "umi_count")
#: Clonotypes that can agree with a row are equal in these.
_GROUP: Final = ("group", "length")
#: Stands for a doubtful base.
_MASK: Final = ord(".")
#: Pairs of a clonotype and a row that are compared at a time.
_PAIRS: Final = 1 << 20
#: Why a row joins no clonotype.
_NONE, _SEVERAL, _TOO_FEW = -1, -2, -3
_REASONS: Final = {
    _NONE: "no_clonotype_agrees",
    _SEVERAL: "several_clonotypes_agree",
    _TOO_FEW: "too_few_good_bases",
}


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Texts one after the other, none empty, those that are compared with each other together.

    `letters` (uint8) have int64 (n + 1,) offsets `starts`. `groups`, int64 (n,), rise from 0; all texts of a
    group are of one length. `counts`, int64 (n,): how often each was seen, at least once. `doubtful`, in the
    layout of `letters`: those that may be errors; None: all.
    """

    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    groups: NDArray[np.int64]
    counts: NDArray[np.int64]
    doubtful: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class MergedSatellites:
    """Clonotypes that are no satellites, in their former order, with the counts of their satellites added.

    `satellites` were merged, `satellite_count` is the sum of their ``duplicate_count``.
    """

    clonotypes: pa.RecordBatch
    satellites: int
    satellite_count: int


def find_parents(texts: Texts, ratio: float) -> NDArray[np.int64]:
    """For each text, the one it is an erroneous copy of, or itself; int64 (n,).

    A parent is of the same group, differs in one letter and was seen at least `ratio` (above 1) times as
    often; the letter in which the copy differs is a doubtful one. Of several parents the most frequent
    counts, of equally frequent ones the first. A copy of a copy belongs to the parent of both.
    """
    parent = np.arange(texts.counts.size)
    if parent.size == 0:
        return parent
    found = [(pairs[0], pairs[1]) for pairs in _pairs(texts, ratio)]
    if not found:
        return parent
    parents, copies = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((parents, -texts.counts[parents], copies))
    first = order[np.flatnonzero(np.diff(copies[order], prepend=-1))]
    parent[copies[first]] = parents[first]
    # Counts rise along every chain, so that it ends.
    while not np.array_equal(parent, parent[parent]):
        parent = parent[parent]
    return parent


def merge_satellites(clonotypes: pa.RecordBatch, ratio: float, max_quality: int) -> MergedSatellites:
    """Add satellites to the clonotypes they come from, which are at least `ratio` times as abundant.

    Rows of one repertoire, V gene, J gene and length stand together. Where the qualities of the junctions are
    known, the best Phred score that a deviating base has in any read must be lower than `max_quality`.
    """
    texts = _texts(clonotypes, max_quality)
    parent = find_parents(texts, ratio)
    satellites = np.flatnonzero(parent != np.arange(parent.size))
    if satellites.size == 0:
        return MergedSatellites(clonotypes, 0, 0)
    columns = {name: clonotypes[name] for name in clonotypes.schema.names}
    for name in ADDED:
        if name in columns:
            values = columns[name].to_numpy().copy()
            np.add.at(values, parent[satellites], values[satellites])
            columns[name] = pa.array(values)
    kept = np.ones(parent.size, np.bool_)
    kept[satellites] = False
    return MergedSatellites(
        pa.record_batch(columns).filter(pa.array(kept)),
        satellites.size,
        int(texts.counts[satellites].sum()),
    )


def _texts(clonotypes: pa.RecordBatch, max_quality: int) -> Texts:
    groups = owners(run_starts(clonotypes, _GROUP), clonotypes.num_rows)
    letters, starts = letters_of(clonotypes["junction"])
    doubtful = None
    if "quality" in clonotypes.schema.names:
        doubtful = np.ones(letters.size, np.bool_)
        known = np.asarray(pc.not_equal(clonotypes["quality"], ""))
        scores = letters_of(clonotypes["quality"])[0]
        doubtful[np.repeat(known, np.diff(starts))] = scores < max_quality + _OFFSET
    counts = clonotypes["duplicate_count"].to_numpy()
    return Texts(letters, starts, groups, counts, doubtful)


def _pairs(texts: Texts, ratio: float) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Every parent with every text that can be a copy of it."""
    lengths = np.diff(texts.starts)
    rng = np.random.default_rng(5)
    factors = rng.integers(0, 1 << 64, int(lengths.max()), np.uint64)
    hashes = _hashes(texts, factors)
    # Texts of different groups get different hashes, but for chance.
    hashes += rng.integers(0, 1 << 64, int(texts.groups[-1]) + 1, np.uint64)[texts.groups]
    order = np.argsort(hashes, kind="stable")
    table = hashes[order]
    heads = np.flatnonzero(np.diff(texts.groups, prepend=-1))
    rarest = np.minimum.reduceat(texts.counts, heads)[texts.groups]
    able = np.flatnonzero(texts.counts >= ratio * rarest)
    alphabet = np.unique(texts.letters)
    edges = _portions(lengths[able] * alphabet.size)
    for first, last in pairwise(edges):
        part = able[first:last]
        parent = np.repeat(part, lengths[part])
        at, _ = take_groups(texts.starts, part)
        for letter in alphabet:
            other = np.flatnonzero(texts.letters[at] != letter)
            change = letter.astype(np.uint64) - texts.letters[at[other]]
            wanted = hashes[parent[other]] + change * factors[(at - texts.starts[parent])[other]]
            copies, found = _look_up(table, order, wanted)
            probe = other[found]
            yield _checked(texts, ratio, parent[probe], copies, at[probe], letter)


def _hashes(texts: Texts, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """For each text the sum of its letters times the factors of their places."""
    lengths = np.diff(texts.starts)
    hashes = np.zeros(lengths.size, np.uint64)
    for first, last in pairwise(_portions(lengths)):
        edges = texts.starts[first : last + 1]
        place = np.arange(edges[0], edges[-1]) - np.repeat(edges[:-1], lengths[first:last])
        letters = texts.letters[edges[0] : edges[-1]]
        hashes[first:last] = np.add.reduceat(letters * factors[place], edges[:-1] - edges[0])
    return hashes


def _portions(sizes: NDArray[np.int64]) -> list[int]:
    """Edges of portions whose sizes add up to about as many probes as are looked up at a time."""
    portion = np.cumsum(sizes) // _PROBES
    inner = np.flatnonzero(np.diff(portion)) + 1
    return [0, *inner.tolist(), sizes.size] if sizes.size else [0]


def _look_up(
    table: NDArray[np.uint64], order: NDArray[np.int64], wanted: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Texts whose hashes are wanted, and which of the wanted ones."""
    low = np.searchsorted(table, wanted)
    hit = np.flatnonzero(table[np.minimum(low, table.size - 1)] == wanted)
    high = np.searchsorted(table, wanted[hit], side="right")
    number = high - low[hit]
    probe = np.repeat(hit, number)
    within = np.arange(probe.size) - np.repeat(np.cumsum(number) - number, number)
    return order[low[probe] + within], probe


def _checked(
    texts: Texts,
    ratio: float,
    parent: NDArray[np.int64],
    copy: NDArray[np.int64],
    at: NDArray[np.int64],
    letter: np.uint8,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs that are right: hashes can be equal by chance, and counts and qualities have to fit."""
    there = at - texts.starts[parent] + texts.starts[copy]
    right = (texts.groups[parent] == texts.groups[copy]) & (parent != copy)
    right &= texts.counts[parent] >= ratio * texts.counts[copy]
    right &= texts.letters[np.minimum(there, texts.letters.size - 1)] == letter
    parent, copy, there = parent[right], copy[right], there[right]
    if texts.doubtful is not None:
        doubtful = texts.doubtful[there]
        parent, copy = parent[doubtful], copy[doubtful]
    if parent.size == 0:
        return parent, copy
    one, edges = take_groups(texts.starts, parent)
    other, _ = take_groups(texts.starts, copy)
    unlike = texts.letters[one] != texts.letters[other]
    different = np.add.reduceat(unlike.astype(np.int64), edges[:-1])
    return parent[different == 1], copy[different == 1]


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
    low = np.diff(edges_of(doubtful)[starts]) > 0
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
