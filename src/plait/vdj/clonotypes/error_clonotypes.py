"""Satellites: rare clonotypes that sequencing errors make out of an abundant one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.formats.sorted_runs import run_starts
from plait.vdj.clonotypes.low_quality import ADDED
from plait.vdj.reads.columns import letters_of

#: Texts with one letter changed that are looked up at a time.
_PROBES: Final = 1 << 20
#: Of Phred scores as text.
_OFFSET: Final = 33


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
    n = clonotypes.num_rows
    new = np.zeros(n, np.int64)
    new[run_starts(clonotypes, ("group", "length"))] = 1
    letters, starts = letters_of(clonotypes["junction"])
    doubtful = None
    if "quality" in clonotypes.schema.names:
        doubtful = np.ones(letters.size, np.bool_)
        known = np.asarray(pc.not_equal(clonotypes["quality"], ""))
        scores = letters_of(clonotypes["quality"])[0]
        doubtful[np.repeat(known, np.diff(starts))] = scores < max_quality + _OFFSET
    counts = clonotypes["duplicate_count"].to_numpy()
    return Texts(letters, starts, np.cumsum(new) - 1, counts, doubtful)


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
        at = np.arange(parent.size) + np.repeat(
            texts.starts[part] - (np.cumsum(lengths[part]) - lengths[part]), lengths[part]
        )
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
    lengths = np.diff(texts.starts)[parent]
    ends = np.cumsum(lengths)
    within = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
    one = texts.letters[np.repeat(texts.starts[parent], lengths) + within]
    other = texts.letters[np.repeat(texts.starts[copy], lengths) + within]
    different = np.add.reduceat((one != other).astype(np.int64), ends - lengths)
    return parent[different == 1], copy[different == 1]
