"""A sample of clonotypes of each group of alleles, by hashes that are the same on every machine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.vdj.reads.columns import TextBytes

_NO_LIMIT = np.uint64(0xFFFFFFFFFFFFFFFF)
#: Rows that wait before they are summed up, at least.
_FEWEST_WAITING = 1 << 17

_Numbers = NDArray[np.int64]


class RowFacts(NamedTuple):
    """Rows of one segment, shape (n,) each.

    `group` of alleles, `hash` of the clonotype (uint64), `partner`: gene of the other segment, `forward` and
    `reverse` reads (int64); `junction`: large strings.
    """

    group: NDArray[np.int64]
    hash: NDArray[np.uint64]
    partner: NDArray[np.int64]
    forward: NDArray[np.int64]
    reverse: NDArray[np.int64]
    junction: pa.Array


class GroupSample(NamedTuple):
    """The sample of one group, ordered by hash; facts of its clonotypes as in `RowFacts`.

    `spans` are clonotype (its place here), packed (allele, start, end) and reads; `differences` clonotype,
    packed (allele, position, base) and reads; int64, shapes (s,) and (d,). `whole`: the sample has all
    clonotypes.
    """

    hash: NDArray[np.uint64]
    partner: NDArray[np.int64]
    forward: NDArray[np.int64]
    reverse: NDArray[np.int64]
    junction: pa.Array
    spans: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    differences: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    whole: bool


def pack(allele: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Three numbers in one: an allele and two that are below 65,536."""
    return allele << 32 | first << 16 | second


def unpack(
    packed: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The three numbers of `pack`."""
    return packed >> 32, packed >> 16 & 0xFFFF, packed & 0xFFFF


class _Counts:
    """Sums of reads by (group, hash, key)."""

    def __init__(self) -> None:
        self.group = np.zeros(0, np.int64)
        self.hash = np.zeros(0, np.uint64)
        self.key = np.zeros(0, np.int64)
        self.reads = np.zeros(0, np.int64)
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64], _Numbers]] = []
        self.waiting = 0

    def add(
        self, group: NDArray[np.int64], hash: NDArray[np.uint64], key: NDArray[np.int64], reads: _Numbers
    ) -> None:
        self._waiting.append((group, hash, key, reads))
        self.waiting += group.size

    def merge(self, limits: NDArray[np.uint64]) -> None:
        parts = [(self.group, self.hash, self.key, self.reads), *self._waiting]
        group, hash, key, reads = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        kept = hash <= limits[group]
        group, hash, key, reads = group[kept], hash[kept], key[kept], reads[kept]
        order = np.lexsort((key, hash, group))
        group, hash, key = group[order], hash[order], key[order]
        first = _changes(group, hash, key)
        self.group, self.hash, self.key = group[first], hash[first], key[first]
        self.reads = np.add.reduceat(reads[order], first) if first.size else reads
        self._waiting, self.waiting = [], 0


def _changes(*columns: NDArray[np.int64] | NDArray[np.uint64]) -> NDArray[np.int64]:
    """Where sorted rows begin to differ from the one before."""
    n = columns[0].size
    new = np.zeros(n, np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(new)


class ClonotypeSample:
    """Clonotypes of all groups of one segment, at most `limit` of a group."""

    def __init__(self, groups: int, limit: int) -> None:
        self._limit = limit
        self._limits = np.full(groups, _NO_LIMIT, np.uint64)
        self._facts = RowFacts(
            np.zeros(0, np.int64),
            np.zeros(0, np.uint64),
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            pa.nulls(0, pa.large_string()),
        )
        self._waiting: list[RowFacts] = []
        self._spans = _Counts()
        self._differences = _Counts()

    def wanted(self, group: NDArray[np.int64], hash: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which rows can still be in the sample at the end."""
        return hash <= self._limits[group]

    def add(
        self, facts: RowFacts, spans: NDArray[np.int64], row: NDArray[np.int64], differing: NDArray[np.int64]
    ) -> None:
        """Add rows.

        `spans` are packed (allele, start, end) of each; `row` and `differing` are row and packed
        (allele, position, base) of every difference.
        """
        reads = facts.forward + facts.reverse
        self._waiting.append(facts)
        self._spans.add(facts.group, facts.hash, spans, reads)
        self._differences.add(facts.group[row], facts.hash[row], differing, reads[row])
        held = self._facts.group.size + self._spans.reads.size + self._differences.reads.size
        waiting = sum(f.group.size for f in self._waiting) + self._spans.waiting + self._differences.waiting
        if waiting > max(_FEWEST_WAITING, held // 2):
            self.merge()

    def merge(self) -> None:
        """Sum up what waits, and leave out what is beyond the limit."""
        if not self._waiting:
            return
        parts = [self._facts, *self._waiting]
        group, hash, partner, forward, reverse = (
            np.concatenate([part[k] for part in parts]) for k in range(5)
        )
        order = np.lexsort((hash, group))
        order = order[hash[order] <= self._limits[group[order]]]
        first = _changes(group[order], hash[order])
        rank = np.arange(first.size) - np.searchsorted(group[order[first]], group[order[first]])
        if first.size:
            forward = np.add.reduceat(forward[order], first)
            reverse = np.add.reduceat(reverse[order], first)
        kept = rank < self._limit
        place = order[first][kept]
        junction = pa.concat_arrays([part.junction for part in parts]).take(pa.array(place))
        last = rank == self._limit - 1
        self._limits[group[order[first]][last]] = hash[order[first]][last]
        self._facts = RowFacts(
            group[place], hash[place], partner[place], forward[kept], reverse[kept], junction
        )
        self._waiting = []
        self._spans.merge(self._limits)
        self._differences.merge(self._limits)

    def group(self, number: int) -> GroupSample:
        """The sample of one group; `merge` first."""
        facts = self._facts
        begin, end = np.searchsorted(facts.group, [number, number + 1])
        hashes = facts.hash[begin:end]

        def part(
            counts: _Counts,
        ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
            a, b = np.searchsorted(counts.group, [number, number + 1])
            return np.searchsorted(hashes, counts.hash[a:b]), counts.key[a:b], counts.reads[a:b]

        return GroupSample(
            hashes,
            facts.partner[begin:end],
            facts.forward[begin:end],
            facts.reverse[begin:end],
            facts.junction.slice(begin, end - begin),
            part(self._spans),
            part(self._differences),
            bool(self._limits[number] == _NO_LIMIT),
        )


#: Places of a text that have random words of their own; further ones use them again, turned.
_PLACES = 512


def _words() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    generator = np.random.Generator(np.random.PCG64(20_240_817))
    words = generator.integers(0, 1 << 64, (_PLACES, 256), np.uint64)
    return words, generator.integers(0, 1 << 64, _PLACES, np.uint64)


_WORDS, _BLANK = _words()


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words with every bit depending on every bit (the finaliser of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _letters(texts: TextBytes) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """The text of every byte, its place in it, and its word."""
    lengths = np.diff(texts.starts)
    row = np.repeat(np.arange(lengths.size), lengths)
    place = np.arange(row.size) - np.repeat(texts.starts[:-1], lengths)
    words = _WORDS[place % _PLACES, texts.data]
    # So that a letter far behind is not the same as one at the beginning.
    turn = (place // _PLACES).astype(np.uint64)
    return row, place, words + turn * np.uint64(0x9E3779B97F4A7C15)


def text_sums(texts: TextBytes) -> NDArray[np.uint64]:
    """What `salted` makes hashes of."""
    return _sums(texts, _letters(texts)[2])


def _sums(texts: TextBytes, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)])
    return np.asarray(running[texts.starts[1:]] - running[texts.starts[:-1]])


def salted(sums: NDArray[np.uint64], salts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A 64-bit hash of every text and a number, `sums` being `text_sums` of the texts."""
    return mixed(sums ^ mixed(salts.astype(np.uint64) + np.uint64(1)))


def masked_hashes(texts: TextBytes, salts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """A hash of every text with each of its letters left out in turn: the texts, and the hashes.

    Texts of one length and number have such a hash in common exactly if they differ in at most one letter.
    """
    row, place, words = _letters(texts)
    lengths = np.diff(texts.starts)
    whole = _sums(texts, words) + mixed((salts * 4096 + lengths).astype(np.uint64) + np.uint64(1))
    return row, mixed(whole[row] - words + _BLANK[place % _PLACES])
