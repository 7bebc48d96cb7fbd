"""Near neighbours among junctions: all pairs within so many mismatches or edits, and clusters of them.

Two texts within k mismatches are equal once some k of their blocks are left out; two within k edits have a
text in common that comes of deleting at most k letters of either. So what is left is hashed, hash values are
sorted, and pairs with the same one are compared letter by letter. A pair is told in one pass only: that of
the blocks in which it differs, or of the longest text it can have in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from plait.errors import InvalidInput, Unsupported, whole
from plait.formats.checkpoints import letters_of
from plait.lang.compile import by_type, kernel, shared
from plait.lang.lanes import highest_bit
from plait.run.executor import Executor, LocalExecutor
from plait.stats.rows import random_words
from plait.vdj.calls import as_column

_Ints: TypeAlias = NDArray[np.int64]
_Words: TypeAlias = NDArray[np.uint64]

#: With more, most junctions of one length are near; and the ways to delete letters are too many.
MOST_MISMATCHES: Final = 8
MOST_EDITS: Final = 3
#: Ways of leaving out blocks of a text of some length; with more of them, blocks are longer.
_MOST_WAYS: Final = 128
#: Bits of a set of blocks.
_MOST_BLOCKS: Final = 64
#: Hash values sorted at a time.
_MOST_ENTRIES: Final = 1 << 24
#: Pairs written at a time, held of one pass, and returned.
_BUFFER: Final = 1 << 20
_MOST_OF_PASS: Final = 1 << 27
_MOST_PAIRS: Final = 1 << 30
_FACTOR: Final = 0x9E3779B97F4A7C15
_INVERSE: Final = pow(_FACTOR, -1, 1 << 64)


class _Texts(NamedTuple):
    """Texts in order of length, those of a query before all others.

    `letters` uint8, `starts` int64 (n + 1,), `groups` int64 (n,), `origin` int64 (n,): the place of each as
    given; `sums` uint64 (n,): the group and all letters, each times its code and the power of its place;
    `codes` uint64 (256,), `powers` and `inverses` uint64 (longest + 1,); `queries`: number of them, or 0.
    """

    letters: Any
    starts: Any
    groups: Any
    origin: Any
    sums: Any
    codes: Any
    powers: Any
    inverses: Any
    queries: int


class _Mismatches(NamedTuple):
    """Pairs of one length: the block of each letter, int64 (length,), and the set of blocks left out."""

    limit: int
    block: Any
    left_out: Any

    @staticmethod
    def is_told(rule: _Mismatches, texts: _Texts, i: int, j: int) -> Any:
        first, second = texts.starts[i], texts.starts[j]
        errors, differing = 0, np.uint64(0)
        for k in range(rule.block.size):
            if texts.letters[first + k] != texts.letters[second + k]:
                errors += 1
                if errors > rule.limit:
                    return False
                differing |= np.uint64(1) << np.uint64(rule.block[k])
        # Of all sets of blocks in which they agree elsewhere, the one with the lowest blocks tells of them.
        others = rule.left_out & ~differing
        if differing & ~rule.left_out != 0:
            return False
        return (
            others == 0
            or (np.uint64(1) << np.uint64(highest_bit(others))) - np.uint64(1) & ~rule.left_out == 0
        )


class _Edits(NamedTuple):
    """Pairs that have a text of some length in common, and none longer; `reach` int64 (2, 2 limit + 3)."""

    limit: int
    length: int
    reach: Any

    @staticmethod
    def is_told(rule: _Edits, texts: _Texts, i: int, j: int) -> Any:
        longest = max(texts.starts[i + 1] - texts.starts[i], texts.starts[j + 1] - texts.starts[j])
        return longest - edit_distance(texts, i, j, rule.limit, rule.reach) == rule.length


@by_type
def is_told(rule: Any, texts: Any, i: Any, j: Any) -> Any:
    """Whether two texts are near enough, and this is the pass that tells of them."""


@shared
def edit_distance(texts: Any, i: int, j: int, limit: int, reach: Any) -> int:
    """Levenshtein distance of two texts, at most limit + 1, by how far each diagonal reaches (Ukkonen 1985).

    *Information and Control* 64: 100-118. `reach` is int64 (2, 2 limit + 3).
    """
    first, second = texts.starts[i], texts.starts[j]
    rows, columns = texts.starts[i + 1] - first, texts.starts[j + 1] - second
    last, middle = columns - rows, limit + 1
    if abs(last) > limit:
        return limit + 1
    reach[:] = -limit - 2
    for errors in range(limit + 1):
        old, new = errors & 1, 1 - (errors & 1)
        for diagonal in range(-errors, errors + 1):
            at = middle + diagonal
            row = max(reach[old, at - 1], reach[old, at] + 1, reach[old, at + 1] + 1) if errors else 0
            row = min(row, rows, columns - diagonal)
            while row < rows and row + diagonal < columns:
                if texts.letters[first + row] != texts.letters[second + row + diagonal]:
                    break
                row += 1
            reach[new, at] = row
        if reach[new, middle + last] >= rows:
            return errors
    return limit + 1


@shared
def _entry(value: Any, i: int, part: int, parts: int, low: Any) -> Any:
    """A mixed hash value whose bits of `low` are 1 + the index of a text; 0 if it is of another part."""
    value = (value ^ (value >> np.uint64(32))) * np.uint64(_FACTOR)
    value ^= value >> np.uint64(29)
    if (value & low) % np.uint64(parts) != np.uint64(part):
        return np.uint64(0)
    return (value & ~low) | np.uint64(i + 1)


@kernel
def hash_texts(texts: _Texts) -> None:
    """Fill `sums`."""
    for i in range(texts.groups.size):
        start, total = texts.starts[i], np.uint64(texts.groups[i]) * np.uint64(_FACTOR)
        for k in range(texts.starts[i + 1] - start):
            total += texts.codes[texts.letters[start + k]] * texts.powers[k]
        texts.sums[i] = total


@kernel
def enter_masked(
    texts: _Texts, members: Any, places: Any, part: int, parts: int, low: Any, entries: Any
) -> int:
    """Entries of texts without the letters at places int64 (p,); their number, also where they do not fit."""
    count = 0
    for i in members:
        start, total = texts.starts[i], texts.sums[i]
        for k in places:
            total -= texts.codes[texts.letters[start + k]] * texts.powers[k]
        entry = _entry(total, i, part, parts, low)
        if entry != 0:
            if count < entries.size:
                entries[count] = entry
            count += 1
    return count


@kernel
def enter_shortened(
    texts: _Texts,
    members: Any,
    deleted: Any,
    prefix: Any,
    part: int,
    parts: int,
    low: Any,
    entries: Any,
    count: int,
) -> int:
    """Append entries of texts with as many letters deleted as `deleted`, int64 (d,), has places.

    Of a run of one letter the first ones are deleted. `prefix` is uint64 (longest + 1,). Returns the number
    of entries, also where they do not fit.
    """
    size = deleted.size
    for i in members:
        start, length = texts.starts[i], texts.starts[i + 1] - texts.starts[i]
        prefix[0] = 0
        for k in range(length):
            prefix[k + 1] = prefix[k] + texts.codes[texts.letters[start + k]] * texts.powers[k]
        group = texts.sums[i] - prefix[length]
        for d in range(size):
            deleted[d] = d
        while True:
            total, begin, distinct = group, 0, True
            for d in range(size):
                k = deleted[d]
                total += (prefix[k] - prefix[begin]) * texts.inverses[d]
                if k > begin and texts.letters[start + k] == texts.letters[start + k - 1]:
                    distinct = False
                begin = k + 1
            total += (prefix[length] - prefix[begin]) * texts.inverses[size]
            entry = _entry(total, i, part, parts, low)
            if distinct and entry != 0:
                if count < entries.size:
                    entries[count] = entry
                count += 1
            d = size - 1
            while d >= 0 and deleted[d] == length - size + d:
                d -= 1
            if d < 0:
                break
            deleted[d] += 1
            for rest in range(d + 1, size):
                deleted[rest] = deleted[rest - 1] + 1
    return count


@kernel
def tell_pairs(rule: Any, texts: _Texts, entries: Any, low: Any, state: Any, pairs: Any) -> int:
    """Pairs of texts with equal hash values, as far as there is room; how many, and where it goes on.

    `entries` are sorted. `pairs` uint64 (m,): the smaller place as given in the upper half. `state` int64
    (2,): the two entries to look at next; the first is past the end where all is told.
    """
    count, one = 0, np.uint64(1)
    begin, after = state[0], state[1]
    for a in range(begin, entries.size):
        i = np.int64((entries[a] & low) - one)
        b = max(after, a + 1) if a == begin else a + 1
        while (
            b < entries.size
            and (entries[a] ^ entries[b]) & ~low == 0
            and (i < texts.queries or not texts.queries)
        ):
            if count == pairs.size:
                state[0], state[1] = a, b
                return count
            j = np.int64((entries[b] & low) - one)
            apart = i != j and j >= texts.queries and texts.groups[i] == texts.groups[j]
            if apart and is_told(rule, texts, i, j):
                first, second = texts.origin[i], texts.origin[j]
                smaller, larger = min(first, second), max(first, second)
                pairs[count] = np.uint64(smaller) << np.uint64(32) | np.uint64(larger)
                count += 1
            b += 1
    state[0] = entries.size
    return count


@kernel
def join_equal(rule: Any, texts: _Texts, entries: Any, low: Any, parents: Any) -> None:
    """Make the first of equal texts the parent of the others; `parents` as for `link`."""
    one = np.uint64(1)
    for a in range(entries.size):
        i = np.int64((entries[a] & low) - one)
        b = a + 1
        while parents[i] == i and b < entries.size and (entries[a] ^ entries[b]) & ~low == 0:
            j = np.int64((entries[b] & low) - one)
            if parents[j] == j and texts.groups[i] == texts.groups[j] and is_told(rule, texts, i, j):
                parents[j] = i
            b += 1


@kernel
def link(first: Any, second: Any, parents: Any) -> None:
    """Join the sets of pairs of members; `parents` int64 (n,), the root of a set is its first member."""
    for k in range(first.size):
        a, b = first[k], second[k]
        while parents[a] != a:
            parents[a] = parents[parents[a]]
            a = parents[a]
        while parents[b] != b:
            parents[b] = parents[parents[b]]
            b = parents[b]
        parents[max(a, b)] = min(a, b)


@dataclass(frozen=True, slots=True)
class _Pass:
    """Texts that may be near each other in one way.

    `members` are texts by the number of letters that they lose; places are of the letters left out.
    """

    rule: Any
    members: tuple[_Ints, ...]
    places: _Ints
    entries: int
    part: int = 0
    parts: int = 1


class _Search:
    """All pairs among texts, or of a query and the others, pass by pass."""

    def __init__(self, texts: _Texts, limit: int, edits: bool, kept: _Ints | None = None) -> None:
        self._texts = texts
        self._limit = limit
        self._edits = edits
        self._low = np.uint64((1 << int(texts.groups.size + 1).bit_length()) - 1)
        lengths = np.diff(texts.starts)
        members = np.arange(lengths.size) if kept is None else kept
        self._by_length = {int(k): members[lengths[members] == k] for k in np.unique(lengths[members])}

    def passes(self) -> Iterator[_Pass]:
        """What is to be done, each with so many entries that they fit into memory."""
        for one in self._shortened() if self._edits else self._masked():
            parts = -(-one.entries // _MOST_ENTRIES)
            for part in range(parts):
                yield _Pass(one.rule, one.members, one.places, one.entries, part, parts)

    def _masked(self) -> Iterator[_Pass]:
        for length, members in self._by_length.items():
            fewest = min(self._limit, length)
            fitting = (
                b for b in range(fewest, min(length, _MOST_BLOCKS) + 1) if comb(b, fewest) <= _MOST_WAYS
            )
            blocks = max(fitting)
            block = np.arange(length) * blocks // max(length, 1)
            for chosen in combinations(range(blocks), fewest):
                left_out = np.uint64(sum(1 << b for b in chosen))
                places = np.flatnonzero(np.isin(block, chosen))
                yield _Pass(_Mismatches(self._limit, block, left_out), (members,), places, members.size)

    def _shortened(self) -> Iterator[_Pass]:
        none = np.zeros(0, np.int64)
        ends = {length - lost for length in self._by_length for lost in range(self._limit + 1)}
        for length in sorted(end for end in ends if end >= 0):
            members = tuple(self._by_length.get(length + lost, none) for lost in range(self._limit + 1))
            entries = sum(found.size * comb(length + lost, lost) for lost, found in enumerate(members))
            yield _Pass(_Edits(self._limit, length, none), members, none, entries)

    def __call__(self, one: _Pass) -> _Words:
        """The pairs that a pass tells of, in no order, uint64 (m,)."""
        rule, entries = one.rule, self._entries(one)
        if self._edits:
            rule = rule._replace(reach=np.zeros((2, 2 * self._limit + 3), np.int64))
        state = np.zeros(2, np.int64)
        found: list[_Words] = []
        buffer = np.zeros(min(_BUFFER, max(64, entries.size)), np.uint64)
        while state[0] < entries.size:
            told = tell_pairs(rule, self._texts, entries, self._low, state, buffer)
            found.append(buffer[:told].copy())
            if sum(map(len, found)) > _MOST_OF_PASS:
                raise _too_many()
        return np.concatenate(found) if found else buffer[:0]

    def join(self, one: _Pass, parents: _Ints) -> None:
        """Make the first of equal texts the parent of the others, where nothing is left out of them."""
        join_equal(one.rule, self._texts, self._entries(one), self._low, parents)

    def _entries(self, one: _Pass) -> _Words:
        """Hash values of a pass over indices of texts, in order."""
        entries = np.zeros(one.entries // one.parts + one.entries % one.parts, np.uint64)
        while (count := self._entered(one, entries)) > entries.size:
            entries = np.zeros(count, np.uint64)
        entries[:count].sort()
        return entries[:count]

    def _entered(self, one: _Pass, entries: _Words) -> int:
        if not self._edits:
            return enter_masked(
                self._texts, one.members[0], one.places, one.part, one.parts, self._low, entries
            )
        prefix, count = np.zeros(self._texts.powers.size, np.uint64), 0
        for lost, members in enumerate(one.members):
            deleted = np.zeros(lost, np.int64)
            count = enter_shortened(
                self._texts, members, deleted, prefix, one.part, one.parts, self._low, entries, count
            )
        return count


def pairs(
    junctions: Any,
    groups: ArrayLike | None = None,
    *,
    mismatches: int | None = None,
    edits: int | None = None,
    executor: Executor | None = None,
) -> tuple[_Ints, _Ints]:
    """All pairs of junctions of one group within so many mismatches, or edits; equal ones included.

    Letters are compared as they are: nucleotides or amino acids, in one case. `groups` are whole numbers
    (n,), such as codes of V and J genes; None: one group. Either `mismatches` (of equal lengths) or `edits`
    (Levenshtein distance) is given, up to 8 or 3. Returns int64 (pairs,) i and j, i < j, in order, whatever
    the threads of the executor, by default those of the settings.

    InvalidInput if a number is out of range, or a junction missing; Unsupported beyond 2^30 pairs.
    """
    names = as_column(junctions)
    return _unpacked(_found([names], [_group_codes(groups, len(names))], mismatches, edits, executor))


def matches(
    queries: Any,
    query_groups: ArrayLike | None,
    junctions: Any,
    groups: ArrayLike | None,
    *,
    mismatches: int | None = None,
    edits: int | None = None,
    executor: Executor | None = None,
) -> tuple[_Ints, _Ints]:
    """As `pairs`, of a query i and a junction j each."""
    texts = [as_column(queries, "queries"), as_column(junctions)]
    codes = [_group_codes(query_groups, len(texts[0])), _group_codes(groups, len(texts[1]))]
    if len(texts[0]) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    i, j = _unpacked(_found(texts, codes, mismatches, edits, executor))
    return i, j - len(texts[0])


def single_linkage(n: int, i: _Ints, j: _Ints) -> _Ints:
    """The clusters that chains of pairs join, int64 (n,): numbered from 0, in order of first members."""
    parents = np.arange(n)
    link(i, j, parents)
    return _labels(_roots(parents))


def clusters(
    junctions: Any,
    groups: ArrayLike | None = None,
    *,
    mismatches: int | None = None,
    edits: int | None = None,
    executor: Executor | None = None,
) -> _Ints:
    """As `single_linkage` of `pairs`, without all pairs in memory, and without those of equal junctions."""
    limit = distance_limit(mismatches, edits)
    names = as_column(junctions)
    texts = _texts([names], [_group_codes(groups, len(names))])
    # Members are numbered by length here.
    parents = np.arange(len(names))
    equal = _Search(texts, 0, False)
    for one in equal.passes():
        equal.join(one, parents)
    distinct = _Search(texts, limit, edits is not None, np.flatnonzero(parents == np.arange(parents.size)))
    place = np.argsort(texts.origin)
    for found in (executor or LocalExecutor()).map(distinct, distinct.passes()):
        i, j = _unpacked(found)
        link(place[i], place[j], parents)
    return _labels(_roots(parents)[place])


def _roots(parents: _Ints) -> _Ints:
    """The first member of the set of each."""
    while not np.array_equal(higher := parents[parents], parents):
        parents = higher
    return parents


def _labels(sets: _Ints) -> _Ints:
    """Numbers of sets in order of first members."""
    _, first, label = np.unique(sets, return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[label]


def _group_codes(groups: ArrayLike | None, n: int) -> _Ints:
    codes = np.zeros(n, np.int64) if groups is None else np.asarray(groups)
    if codes.shape != (n,) or (n and not np.issubdtype(codes.dtype, np.integer)):
        raise InvalidInput(
            "groups",
            found=f"{codes.dtype} {codes.shape}",
            expected=f"a whole number for each of {n:,} junctions",
        )
    return codes.astype(np.int64)


def distance_limit(mismatches: int | None, edits: int | None, *, least: int = 0) -> int:
    """The one limit that is given; InvalidInput if none or both are, or the search does not go so far."""
    limits = (("mismatches", mismatches, MOST_MISMATCHES), ("edits", edits, MOST_EDITS))
    given = [(name, value, most) for name, value, most in limits if value is not None]
    if len(given) != 1:
        found = "both" if given else "none of them"
        raise InvalidInput("mismatches, edits", found=found, expected="one of them")
    return whole(given[0][0], given[0][1], least, given[0][2])


def _found(
    parts: list[pa.Array],
    groups: list[_Ints],
    mismatches: int | None,
    edits: int | None,
    executor: Executor | None,
) -> _Words:
    """All pairs in order, uint64 (pairs,)."""
    limit = distance_limit(mismatches, edits)
    search = _Search(_texts(parts, groups), limit, edits is not None)
    found: list[_Words] = []
    for block in (executor or LocalExecutor()).map(search, search.passes()):
        found.append(block)
        if sum(map(len, found)) > _MOST_PAIRS:
            raise _too_many()
    told: _Words = np.concatenate(found) if found else np.zeros(0, np.uint64)
    told.sort()
    # With edits, a pair may have several of the longest texts in common.
    kept: _Words = told[np.diff(told, prepend=told[:1] + np.uint64(1)) != 0]
    return kept


def _texts(parts: list[pa.Array], groups: list[_Ints]) -> _Texts:
    column = pa.concat_arrays(parts)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null())[0])
        raise InvalidInput("junctions", found=f"none in row {row}", expected="a text in every row")
    n, queries = len(column), len(parts[0]) if len(parts) > 1 else 0
    if n >= 1 << 32:
        raise Unsupported(f"neighbours among {n:,} junctions", why="their places have 32 bits")
    lengths = np.diff(letters_of(column).starts)
    origin = np.lexsort((lengths, np.arange(n) >= queries))
    letters, starts = letters_of(column.take(pa.array(origin)))
    longest = int(lengths.max(initial=0))
    texts = _Texts(
        # Arrow's memory of no letters cannot be written to, and would be of another type.
        letters=np.require(letters, requirements="W"),
        starts=starts,
        groups=np.concatenate(groups)[origin],
        origin=origin,
        sums=np.zeros(n, np.uint64),
        codes=random_words(np.arange(256, dtype=np.uint64), 0, 0),
        powers=_powers(_FACTOR, longest),
        inverses=_powers(_INVERSE, longest),
        queries=queries,
    )
    hash_texts(texts)
    return texts


def _powers(factor: int, most: int) -> _Words:
    powers: _Words = np.multiply.accumulate(np.array([1] + [factor] * most, np.uint64))
    return powers


def _unpacked(packed: _Words) -> tuple[_Ints, _Ints]:
    """The two halves of words."""
    return (packed >> np.uint64(32)).astype(np.int64), (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _too_many() -> Unsupported:
    return Unsupported(
        "so many neighbours",
        why="they do not fit into memory; join only within V and J genes, or ask for fewer errors",
    )
