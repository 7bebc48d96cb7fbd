"""Places where the clonotypes of an allele differ from it more often than errors explain.

Clonotypes are those of a sample of each group of alleles, by hashes that are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.alphabets import IUPAC_MASK, encode
from plait.errors import InvalidInput, whole_fields
from plait.formats.checkpoints import TextBytes, letters_of
from plait.stats.contingency import q_values
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.reads.columns import Rows

BASES = "ACGT"
#: Code of a base that is not known, or of a place that an allele does not have.
NO_BASE = 4

#: Largest share of differing bases between alleles of one group.
_FARTHEST = 0.2


#: Code of every byte: its place in `BASES`, or `NO_BASE`; int8, shape (256,). That of the complement is
#: 3 minus the code.
BASE_CODE = np.full(16, NO_BASE, np.int8)
BASE_CODE[encode(BASES)] = range(4)
BASE_CODE = BASE_CODE[IUPAC_MASK]


@dataclass(frozen=True, slots=True, eq=False)
class AlleleGroup:
    """Alleles of one gene on one axis.

    `alleles`, int64 (a,): indices in their segment of the germline set, in its order; `codes`,
    int8 (a, width): their bases on the axis; `offset`, int64 (a,): what to add to a position of each to get
    its column.
    """

    gene: str
    alleles: NDArray[np.int64]
    codes: NDArray[np.int8]
    offset: NDArray[np.int64]

    @property
    def width(self) -> int:
        """Columns of the axis."""
        return int(self.codes.shape[1])


class SegmentAlleles:
    """The V or the J alleles of a germline set, in groups.

    An allele without an anchor is in no group: `group_of` -1. `gene_of` numbers the genes. `letters`, int8,
    are the codes of the bases of all alleles, with (alleles + 1,) offsets `starts`; `window`, (alleles, 2):
    first position of each that is on the axis, and the end. int64 but for letters.
    """

    def __init__(self, germline: GermlineSet, segment: Literal["V", "J"]) -> None:
        self.segment: Literal["V", "J"] = segment
        self.alleles: tuple[Allele, ...] = germline.alleles(segment)
        sequences = [BASE_CODE[np.frombuffer(a.sequence.encode(), np.uint8)] for a in self.alleles]
        self.letters = np.concatenate([*sequences, np.zeros(0, np.int8)])
        self.starts = np.cumsum([0, *(s.size for s in sequences)], dtype=np.int64)
        genes = {gene: k for k, gene in enumerate(dict.fromkeys(a.gene for a in self.alleles))}
        self.gene_of = np.array([genes[a.gene] for a in self.alleles], np.int64)
        self.window = np.array([_window(a) for a in self.alleles], np.int64).reshape(-1, 2)
        self.group_of = np.full(len(self.alleles), -1, np.int64)
        self.groups = tuple(self._grouped(len(genes)))
        for k, group in enumerate(self.groups):
            self.group_of[group.alleles] = k

    def layout(self, members: NDArray[np.int64]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """Bases of some alleles on one axis, and the offset of each; see `AlleleGroup`."""
        window = self.window[members]
        lengths = window[:, 1] - window[:, 0]
        width = int(lengths.max(initial=0))
        first = width - lengths if self.segment == "V" else np.zeros_like(lengths)
        codes = np.full((members.size, width), NO_BASE, np.int8)
        for row, allele in enumerate(members):
            begin = self.starts[allele] + window[row, 0]
            codes[row, first[row] : first[row] + lengths[row]] = self.letters[begin : begin + lengths[row]]
        return codes, first - window[:, 0]

    @cached_property
    def axis(self) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """`layout` of all alleles."""
        return self.layout(np.arange(len(self.alleles)))

    def _grouped(self, genes: int) -> list[AlleleGroup]:
        found = []
        for gene in range(genes):
            left = np.array([k for k in np.flatnonzero(self.gene_of == gene) if self.window[k, 1] > 0], int)
            while left.size:
                codes, _ = self.layout(left)
                both = (codes != NO_BASE) & (codes[0] != NO_BASE)
                differing = (both & (codes != codes[0])).sum(axis=1)
                near = differing <= _FARTHEST * np.maximum(both.sum(axis=1), 1)
                members = left[near].astype(np.int64)
                codes, offset = self.layout(members)
                found.append(AlleleGroup(self.alleles[members[0]].gene, members, codes, offset))
                left = left[~near]
        return found


def _window(allele: Allele) -> tuple[int, int]:
    """Positions outside the CDR3; (0, 0) without an anchor."""
    if allele.anchor is None:
        return 0, 0
    if allele.segment == "V":
        return 0, allele.anchor
    return allele.anchor + 3, len(allele.sequence)


_NO_LIMIT = np.uint64(0xFFFFFFFFFFFFFFFF)
#: Rows that wait before they are summed up, at least.
_FEWEST_WAITING = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class RowFacts(Rows):
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


_Triple = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


class GroupSample(NamedTuple):
    """The sample of one group: its clonotypes, one row each, ordered by hash.

    `spans` are clonotype (its place here), packed (allele, start, end) and reads; `differences` clonotype,
    packed (allele, position, base) and reads; int64, shapes (s,) and (d,). `whole`: the sample has all
    clonotypes.
    """

    facts: RowFacts
    spans: _Triple
    differences: _Triple
    whole: bool


def pack(allele: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Three numbers in one: an allele and two that are below 65,536."""
    return allele << 32 | first << 16 | second


def unpack(packed: NDArray[np.int64]) -> _Triple:
    """The three numbers of `pack`."""
    return packed >> 32, packed >> 16 & 0xFFFF, packed & 0xFFFF


@dataclass(frozen=True, slots=True, eq=False)
class _Counts(Rows):
    """Reads by group, hash and packed key; int64, hashes uint64."""

    group: NDArray[np.int64]
    hash: NDArray[np.uint64]
    key: NDArray[np.int64]
    reads: NDArray[np.int64]

    def summed(self, limits: NDArray[np.uint64]) -> _Counts:
        """Those with hashes up to the limits of their groups, in order, equal ones as one."""
        kept = self.take(self.hash <= limits[self.group])
        kept = kept.take(np.lexsort((kept.key, kept.hash, kept.group)))
        first = _changes(kept.group, kept.hash, kept.key)
        return replace(kept.take(first), reads=_sums_of(kept.reads, first))


def _sums_of(values: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of runs of values, which begin at `first`."""
    return np.asarray(np.add.reduceat(values, first) if first.size else values[:0])


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
        none, hashes = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        # The first of each are summed up, the others wait.
        self._facts = [RowFacts(none, hashes, none, none, none, pa.nulls(0, pa.large_string()))]
        self._spans = [_Counts(none, hashes, none, none)]
        self._differences = self._spans.copy()

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
        self._facts.append(facts)
        self._spans.append(_Counts(facts.group, facts.hash, spans, reads))
        self._differences.append(_Counts(facts.group[row], facts.hash[row], differing, reads[row]))
        lists = [[len(rows) for rows in own] for own in (self._facts, self._spans, self._differences)]
        if sum(sum(own[1:]) for own in lists) > max(_FEWEST_WAITING, sum(own[0] for own in lists) // 2):
            self.merge()

    def merge(self) -> None:
        """Sum up what waits, and leave out what is beyond the limit."""
        if len(self._facts) == 1:
            return
        facts = RowFacts.join(self._facts)
        order = np.lexsort((facts.hash, facts.group))
        order = order[self.wanted(facts.group[order], facts.hash[order])]
        first = _changes(facts.group[order], facts.hash[order])
        forward, reverse = (_sums_of(own[order], first) for own in (facts.forward, facts.reverse))
        facts = replace(facts.take(order[first]), forward=forward, reverse=reverse)
        rank = np.arange(first.size) - np.searchsorted(facts.group, facts.group)
        last = rank == self._limit - 1
        self._limits[facts.group[last]] = facts.hash[last]
        self._facts = [facts.take(rank < self._limit)]
        self._spans, self._differences = (
            [_Counts.join(own).summed(self._limits)] for own in (self._spans, self._differences)
        )

    def group(self, number: int) -> GroupSample:
        """The sample of one group; `merge` first."""

        def of_group(rows: RowFacts | _Counts) -> NDArray[np.int64]:
            return np.arange(*np.searchsorted(rows.group, [number, number + 1]))

        def part(counts: _Counts) -> _Triple:
            own = counts.take(of_group(counts))
            return np.searchsorted(facts.hash, own.hash), own.key, own.reads

        facts = self._facts[0].take(of_group(self._facts[0]))
        whole = bool(self._limits[number] == _NO_LIMIT)
        return GroupSample(facts, part(self._spans[0]), part(self._differences[0]), whole)


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


@dataclass(frozen=True, slots=True, eq=False)
class ClonotypeBases:
    """Independent clonotypes of a group of alleles.

    `bases`, int8 (n, width): base that most reads of the clonotype show in each column of the group's axis,
    `NO_BASE` where there is none. int64 (n,): `parent`, row of the nearest allele of the group, the first of
    several; `partner`, gene of the other segment; `family`, the same for clonotypes with the same partner and
    junctions of one length; `forward` and `reverse` reads.

    `satellites` counts clonotypes left out, since another one with more reads has nearly the same junction.
    `whole`: these are all clonotypes of the gene, and not a sample of them.
    """

    group: AlleleGroup
    bases: NDArray[np.int8]
    parent: NDArray[np.int64]
    partner: NDArray[np.int64]
    family: NDArray[np.int64]
    forward: NDArray[np.int64]
    reverse: NDArray[np.int64]
    satellites: int
    whole: bool

    @property
    def known(self) -> NDArray[np.bool_]:
        """Where bases are known; bool, shape (n, width)."""
        return np.asarray(self.bases != NO_BASE)

    def differing(self, codes: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Where known bases differ from those of a sequence per clonotype, or of one for all."""
        return np.asarray((self.bases != codes) & (self.bases != NO_BASE) & (codes != NO_BASE))


def satellites(
    junction: pa.Array, partner: NDArray[np.int64], reads: NDArray[np.int64], hashes: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Which clonotypes differ in one base of the junction from one with more reads.

    Sequencing errors in a junction make such clonotypes; they are no independent evidence. Of two with as
    many reads, the one with the larger hash is the satellite. `partner`: gene of the other segment.
    """
    order = np.lexsort((hashes, -reads))
    row, masked = masked_hashes(letters_of(junction.take(pa.array(order))), partner[order])
    # Stable: within equal hashes, the rows stay in the order of their reads.
    by_hash = np.argsort(masked, kind="stable")
    again = np.flatnonzero(masked[by_hash][1:] == masked[by_hash][:-1]) + 1
    found = np.zeros(order.size, np.bool_)
    found[order[row[by_hash[again]]]] = True
    return found


def clonotype_bases(group: AlleleGroup, sample: GroupSample) -> ClonotypeBases:
    """The independent clonotypes of a sample."""
    facts = sample.facts
    reads = facts.forward + facts.reverse
    left_out = satellites(facts.junction, facts.partner, reads, facts.hash)
    kept = np.flatnonzero(~left_out)
    place = np.full(reads.size, -1, np.int64)
    place[kept] = np.arange(kept.size)
    bases = _consensus(group, sample, place, kept.size)
    lengths = np.diff(letters_of(facts.junction).starts)[kept]
    partner = facts.partner[kept]
    return ClonotypeBases(
        group,
        bases,
        _nearest(bases, group.codes),
        partner,
        partner << 16 | lengths,
        facts.forward[kept],
        facts.reverse[kept],
        int(left_out.sum()),
        sample.whole,
    )


def _consensus(group: AlleleGroup, sample: GroupSample, place: NDArray[np.int64], n: int) -> NDArray[np.int8]:
    """Bases of most reads; `place` is the row of each clonotype of the sample, or -1."""
    consensus = np.full((n, group.width), NO_BASE, np.int8)
    spans = [place[sample.spans[0]], *unpack(sample.spans[1]), sample.spans[2]]
    found = [place[sample.differences[0]], *unpack(sample.differences[1]), sample.differences[2]]
    spans = [column[spans[0] >= 0] for column in spans]
    found = [column[found[0] >= 0] for column in found]
    if not spans[0].size:
        return consensus
    shift = np.zeros(int(group.alleles.max()) + 1, np.int64)
    shift[group.alleles] = group.offset
    low = int((spans[2] + shift[spans[1]]).min())
    high = max(int((spans[3] + shift[spans[1]]).max()), low)
    counts = np.zeros((n, high - low, NO_BASE), np.int64)
    for k, allele in enumerate(group.alleles):
        own = spans[1] == allele
        ends = np.zeros((n, high - low + 1), np.int64)
        offset = int(group.offset[k]) - low
        np.add.at(ends, (spans[0][own], spans[2][own] + offset), spans[4][own])
        np.add.at(ends, (spans[0][own], spans[3][own] + offset), -spans[4][own])
        codes = group.codes[k, low:high]
        columns = np.flatnonzero(codes != NO_BASE)
        counts[:, columns, codes[columns]] += np.cumsum(ends, axis=1)[:, columns]
        own = found[1] == allele
        row, column, base, reads = found[0][own], found[2][own] + offset, found[3][own], found[4][own]
        np.add.at(counts, (row, column, codes[column]), -reads)
        sure = base != NO_BASE
        np.add.at(counts, (row[sure], column[sure], base[sure]), reads[sure])
    most = 2 * counts.max(axis=2) > counts.sum(axis=2)
    consensus[:, low:high] = np.where(most, counts.argmax(axis=2), NO_BASE)
    return consensus


def _nearest(bases: NDArray[np.int8], codes: NDArray[np.int8]) -> NDArray[np.int64]:
    known = bases != NO_BASE
    far = [((bases != own) & known & (own != NO_BASE)).sum(axis=1) for own in codes]
    return np.asarray(np.argmin(np.array(far).reshape(len(codes), -1), axis=0), np.int64)


#: Bases that are seen more often than this at a place are left out when the rate of errors is estimated.
_ERROR_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class AlleleLimits:
    """What a new allele needs.

    Attributes
    ----------
    min_clonotypes
        Fewest independent clonotypes that carry it.
    min_share
        Smallest share of the gene's clonotypes, of those that reach a changed place.
    min_partners
        Fewest J genes among them (V genes, where the new allele is one of J), or all that occur in the data
        if these are fewer.
    max_q
        Largest q-value: expected share of errors among the changes that are called.

    Raises
    ------
    InvalidInput
        If a limit is out of its range.
    """

    min_clonotypes: int = 8
    min_share: float = 0.1
    min_partners: int = 3
    max_q: float = 0.01

    def __post_init__(self) -> None:
        whole_fields(self, "min_clonotypes", "min_partners", least=1)
        for name in ("min_share", "max_q"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidInput(name, found=getattr(self, name), expected="more than 0, at most 1")


@dataclass(frozen=True, slots=True, eq=False)
class BaseCounts:
    """Clonotypes by base, for the alleles of a group.

    `codes`, int8 (a, width): bases of the alleles. int64: `bases` (a, width, 4), clonotypes of each allele
    that show a base in a column; `clonotypes` (a,), those of each allele; `exact` (a,), those that differ
    nowhere from it.
    """

    codes: NDArray[np.int8]
    bases: NDArray[np.int64]
    clonotypes: NDArray[np.int64]
    exact: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """Changes that errors do not explain, of all groups of a segment; shape (s,).

    `group`, row of the allele in it, column of the axis and code of the new base. `p_value`: probability of
    as many clonotypes by errors alone; `q_value`: corrected for the number of tests (Benjamini and Hochberg).
    `error_rate`: share of clonotypes that show one given wrong base at a place.
    """

    group: NDArray[np.int64]
    allele: NDArray[np.int64]
    column: NDArray[np.int64]
    base: NDArray[np.int64]
    p_value: NDArray[np.float64]
    q_value: NDArray[np.float64]
    error_rate: float
    tests: int


def count_bases(clonotypes: ClonotypeBases) -> BaseCounts:
    """Count the bases of clonotypes by their nearest allele."""
    codes = clonotypes.group.codes
    counts = np.zeros((*codes.shape, NO_BASE), np.int64)
    n = np.zeros(len(codes), np.int64)
    exact = np.zeros(len(codes), np.int64)
    for allele, own in enumerate(codes):
        chosen = clonotypes.parent == allele
        n[allele] = chosen.sum()
        exact[allele] = (chosen & ~clonotypes.differing(own).any(axis=1)).sum()
        for base in range(NO_BASE):
            counts[allele, :, base] = (clonotypes.bases[chosen] == base).sum(axis=0)
    return BaseCounts(codes, counts, n, exact)


def binomial_tail(successes: int, trials: int, rate: float) -> float:
    """Probability of at least so many successes."""
    if successes <= 0:
        return 1.0
    if successes > trials or rate <= 0:
        return 0.0
    if rate >= 1:
        return 1.0
    odds = math.log(rate) - math.log1p(-rate)
    term = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    term += successes * odds + trials * math.log1p(-rate)
    largest, total, size = term, 0.0, 1.0
    for k in range(successes, trials + 1):
        total += size
        size *= (trials - k) / (k + 1) * math.exp(odds)
        if size < total * 1e-12 and k > rate * trials:
            break
    return min(1.0, math.exp(min(largest + math.log(total), 0.0)))


def find_sites(counts: Sequence[BaseCounts], limits: AlleleLimits) -> Sites:
    """Find changes that recur.

    The rate of errors is that of all bases but those that every tenth clonotype or more shows at its place.
    Every base of every place of every allele is a test.
    """
    cells = [_cells(group) for group in counts]
    changed = np.concatenate([np.zeros(0, np.int64), *(c for c, _, _ in cells)])
    covering = np.concatenate([np.zeros(0, np.int64), *(n for _, n, _ in cells)])
    of_gene = np.concatenate([np.zeros(0, np.int64), *(g for _, _, g in cells)])
    quiet = changed <= np.maximum(_ERROR_SHARE * covering, 1)
    rate = float((changed[quiet].sum() + 1) / (covering[quiet].sum() + 1)) if changed.size else 1.0
    many = (changed >= limits.min_clonotypes) & (changed >= limits.min_share * of_gene)
    tested = np.flatnonzero(many)
    p = np.array([binomial_tail(int(changed[k]), int(covering[k]), rate) for k in tested])
    q = q_values(p, changed.size)
    found = q <= limits.max_q
    index = tested[found]
    starts = np.cumsum([0, *(c.size for c, _, _ in cells)])
    group = np.searchsorted(starts, index, side="right") - 1
    places = [
        np.unravel_index(k - starts[g], counts[g].bases.shape) for k, g in zip(index, group, strict=True)
    ]
    allele, column, base = np.array(places, np.int64).reshape(-1, 3).T
    tests = int((covering > 0).sum())
    return Sites(group, allele, column, base, p[found], q[found], rate, tests)


def _cells(counts: BaseCounts) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Clonotypes with a base, those that cover the place, and those of all alleles that do; flat."""
    covering = counts.bases.sum(axis=2, keepdims=True)
    own = counts.codes[:, :, None]
    tested = (own != NO_BASE) & (np.arange(NO_BASE) != own)
    changed = np.where(tested, counts.bases, 0)
    n = np.where(tested, covering, 0)
    of_gene = np.broadcast_to(covering.sum(axis=0), n.shape)
    return changed.ravel(), n.ravel(), of_gene.ravel()
