"""Lookups in a block of neighbourhoods, for comparison: automata, a scan, binary search, perfect hashing.

They answer which words of one length are within some errors of a query. `plait map` uses none of them: exact
pieces are consecutive entries of its index. They are here, tested with the vectors of their source (T. T.
Tran, Lille 2013; Wu and Manber 1992; Botelho, Pagh and Ziviani 2007), because what they cost is the reason
for that.

A word is an integer of 2 bits a letter, A, C, G, T as 0 to 3, the first letter highest; up to 16 letters.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.lang.compile import kernel, shared
from plait.lang.lanes import population
from plait.mapping.genome import CODE_OF_BYTE

__all__ = [
    "PerfectHash",
    "automaton_errors",
    "automaton_step",
    "ball",
    "binary_search_kernel",
    "edge_of",
    "jenkins",
    "probe_kernel",
    "scan_kernel",
    "words_of_texts",
]

#: What an automaton takes for an occurrence: anywhere in the word, beginning where it begins, or without
#: gaps.
Automaton = Literal["free", "anchored", "substitutions"]
_KINDS: Final = ("free", "anchored", "substitutions")
#: Bits of a machine word in the source: a word of l letters is one of floor(32 / (2 l)).
_BITS: Final = 32
_MOST_LETTERS: Final = 16
_ATTEMPTS: Final = 1000
_MASK32: Final = 0xFFFFFFFF
_GOLDEN: Final = 0x9E3779B9


def words_of_texts(texts: list[str]) -> NDArray[np.int64]:
    """Words of texts of A, C, G and T of one length.

    >>> words_of_texts(["ACG", "TTT"]).tolist()
    [6, 63]
    """
    found = np.zeros(len(texts), np.int64)
    for column in zip(*texts, strict=True):
        found = found << 2 | CODE_OF_BYTE[np.frombuffer("".join(column).encode(), np.uint8)]
    return found


@shared
def automaton_step(kind: int, rows: Any, mask: int, j: int, letters: int, count: int, repeated: Any) -> None:
    """Rows 0 to e of the automaton, `rows` int64, after the j-th letter of `count` words, j from 1.

    A row has a slice of `letters` bits for each word; bit i of a slice of row k says that the first i + 1
    letters of the pattern match up to here with at most k errors. `mask` is where the pattern has each word's
    letter, and `repeated` has the lowest bit of each slice. `kind` 0 begins anywhere, 1 where the word does,
    2 has no gaps.
    """
    every = (1 << (letters * count)) - 1
    inner = every & ~repeated
    old = rows[0]
    if kind == 1:
        rows[0] = (((old << 1) & inner) | (repeated if j <= 1 else 0)) & mask
    else:
        rows[0] = ((old << 1) | repeated) & mask & every
    for k in range(1, rows.size):
        here, begun = rows[k], repeated * ((1 << k) - 1)
        if kind == 1:
            new = (((here << 1) & inner) | (repeated if j - 1 <= k else 0)) & mask
            new |= old | ((old << 1) & inner) | ((rows[k - 1] << 1) & inner)
            new |= repeated if j <= k else 0
        else:
            new = ((here << 1) & mask) | (old << 1) | begun
            if kind == 0:
                new |= old | (rows[k - 1] << 1)
        rows[k] = new & every
        old = here


@kernel
def automaton_kernel(
    kind: int, fields: Any, table: Any, letters: int, count: int, rows: Any, out: Any
) -> None:
    """Fewest errors of each word, or one more than there may be: `out` uint8 (groups, count).

    `fields` int64 (groups, l) are the j-th letters of `count` words, the first highest; `table` int64
    (4^count,) is the mask of each of them; `rows` int64 (e + 1,) is memory.
    """
    repeated = np.int64(0)
    for slice_ in range(count):
        repeated |= 1 << (slice_ * letters)
    for group in range(fields.shape[0]):
        for word in range(count):
            out[group, word] = rows.size
        for k in range(rows.size):
            rows[k] = repeated * ((1 << k) - 1)
        for j in range(1, fields.shape[1] + 1):
            automaton_step(kind, rows, table[fields[group, j - 1]], j, letters, count, repeated)
            if kind == 2 and j < letters:
                continue
            for word in range(count):
                top = (count - word) * letters - 1
                for k in range(rows.size):
                    if (rows[k] >> top) & 1 and k < out[group, word]:
                        out[group, word] = k


def automaton_errors(
    pattern: str,
    words: NDArray[np.int64],
    length: int,
    errors: int,
    kind: Automaton = "free",
    *,
    together: int = 0,
) -> NDArray[np.uint8]:
    """Fewest errors with which a pattern is in each word of `length` letters; errors + 1 if there are more.

    As many words as fit 32 bits go through the automaton at once, or so many `together`. `InvalidInput` if
    the pattern is longer than a word, or has no more letters than errors.
    """
    size = len(pattern)
    if not errors < size <= length <= _MOST_LETTERS:
        raise InvalidInput("pattern", found=f"{size} letters", expected=f"{errors + 1} to {length}")
    count = together or _BITS // (2 * length)
    codes = CODE_OF_BYTE[np.frombuffer(pattern.encode(), np.uint8)]
    own = np.array([sum(1 << k for k in range(size) if codes[k] == letter) for letter in range(4)])
    table = np.zeros(1, np.int64)
    for _ in range(count):
        table = (table[:, None] << size | own[None, :]).ravel()
    padded = np.zeros(-(-words.size // count) * count, np.int64)
    padded[: words.size] = words
    shifts = 2 * np.arange(length - 1, -1, -1)
    letters = (padded[:, None] >> shifts & 3).reshape(-1, count, length)
    fields = np.zeros((len(letters), length), np.int64)
    for word in range(count):
        fields = fields << 2 | letters[:, word]
    out = np.empty((len(fields), count), np.uint8)
    automaton_kernel(_KINDS.index(kind), fields, table, size, count, np.empty(errors + 1, np.int64), out)
    return out.ravel()[: words.size]


@kernel
def scan_kernel(words: Any, query: int, most: int, out: Any) -> None:
    """Whether each word has at most so many mismatches: exclusive or, pairs of bits folded, and counted."""
    for k in range(words.size):
        other = words[k] ^ query
        out[k] = population((other | (other >> 1)) & 0x55555555) <= most


def ball(length: int, errors: int) -> NDArray[np.int64]:
    """What to change in a word to get all that differ from it in up to so many letters, each once, int64.

    >>> ball(7, 1).size, ball(8, 2).size
    (22, 277)
    """
    found = [0]
    for count in range(1, errors + 1):
        for places in combinations(range(length), count):
            for changes in product((1, 2, 3), repeat=count):
                found.append(sum(change << 2 * place for place, change in zip(places, changes, strict=True)))
    return np.array(found, np.int64)


@kernel
def binary_search_kernel(keys: Any, queries: Any, changes: Any, out: Any, counts: Any) -> None:
    """Numbers of the sorted `keys` that are a query with a change: `out` (queries, changes), `counts`."""
    for item in range(queries.size):
        count = 0
        for k in range(changes.size):
            word = queries[item] ^ changes[k]
            low, high = 0, keys.size
            while low < high:
                middle = (low + high) >> 1
                if keys[middle] < word:
                    low = middle + 1
                else:
                    high = middle
            if low < keys.size and keys[low] == word:
                out[item, count] = low
                count += 1
        counts[item] = count


@shared
def jenkins(first: int, second: int, third: int, size: int, seed: int) -> Any:
    """Three 32-bit values of a key of up to 11 bytes: bytes 0-3, 4-7 and 8-10 as numbers (Jenkins 1996)."""
    a = (_GOLDEN + first) & _MASK32
    b = (_GOLDEN + second) & _MASK32
    c = (seed + (third << 8) + size) & _MASK32
    for p, q, s in ((13, 8, 13), (12, 16, 5), (3, 10, 15)):
        a = ((a - b - c) & _MASK32) ^ (c >> p)
        b = ((b - c - a) & _MASK32) ^ ((a << q) & _MASK32)
        c = ((c - a - b) & _MASK32) ^ (b >> s)
    return a, b, c


@shared
def edge_of(word: int, part: int, seed: int) -> Any:
    """The three vertices of a word, one in each part of so many."""
    a, b, c = jenkins(word, 0, 0, 4, seed)
    return a % part, part + b % part, 2 * part + c % part


@shared
def slot_of(word: Any, values: Any, part: int, seed: int) -> Any:
    """The slot that a word has if it is one of the keys."""
    x, y, z = edge_of(word, part, seed)
    which = (np.int64(values[x]) + np.int64(values[y]) + np.int64(values[z])) % 3
    return x if which == 0 else y if which == 1 else z


@kernel
def peel_kernel(
    keys: Any, part: int, seed: int, edges: Any, degrees: Any, mixed: Any, order: Any, values: Any
) -> int:
    """Values of the vertices, uint8 (3 part,), so that each key has a slot of its own; 1 if there are any.

    Edges with a vertex of their own are taken away as long as there is one; then, from the last one back,
    that vertex gets the value that leads to it. `edges` (keys, 3), `degrees` and `mixed` (3 part,), `order`
    int64 are memory.
    """
    degrees[:] = 0
    mixed[:] = 0
    for k in range(keys.size):
        edges[k, 0], edges[k, 1], edges[k, 2] = edge_of(keys[k], part, seed)
        for side in range(3):
            degrees[edges[k, side]] += 1
            mixed[edges[k, side]] ^= k
    found = 0
    for vertex in range(3 * part):
        if degrees[vertex] == 1:
            found = _take_away(mixed[vertex], edges, degrees, mixed, order, found)
    # What has been taken away is looked at again, for vertices that have one edge left.
    done = 0
    while done < found:
        for side in range(3):
            vertex = edges[order[done], side]
            if degrees[vertex] == 1:
                found = _take_away(mixed[vertex], edges, degrees, mixed, order, found)
        done += 1
    # A number: what returns another type can be called by Numba alone.
    return int(found == keys.size and _give_values(edges, order, values, degrees))


@shared
def _take_away(edge: int, edges: Any, degrees: Any, mixed: Any, order: Any, found: int) -> int:
    """Write an edge behind those that are taken away; returns how many these are."""
    for side in range(3):
        vertex = edges[edge, side]
        degrees[vertex] -= 1
        mixed[vertex] ^= edge
    order[found] = edge
    return found + 1


@shared
def _give_values(edges: Any, order: Any, values: Any, visited: Any) -> bool:
    visited[:] = 0
    values[:] = 3
    for item in range(order.size - 1, -1, -1):
        edge = order[item]
        own = -1
        total = 0
        for side in range(3):
            vertex = edges[edge, side]
            if own < 0 and visited[vertex] == 0:
                own = side
            else:
                total += values[vertex]
        values[edges[edge, own]] = (own - total) % 3
        for side in range(3):
            visited[edges[edge, side]] = 1
    return True


class PerfectHash(NamedTuple):
    """A perfect hash of distinct words: `values` uint8 (3 part,), and the word in each slot, `table`.

    Slots without a word of their own hold the first one, which has another slot, so that it is not found
    there.
    """

    values: Any
    table: Any
    part: int
    seed: int

    @classmethod
    def build(cls, keys: NDArray[np.int64], *, seed: int = 13) -> PerfectHash:
        """The hash of words, with the first seed from `seed` on for which the graph can be peeled."""
        part = max(3, -(-123 * keys.size // 300))
        part += 1 - part % 2
        room = [np.empty(3 * part, np.int64) for _ in range(2)]
        edges, order = np.empty((keys.size, 3), np.int64), np.empty(keys.size, np.int64)
        values = np.full(3 * part, 3, np.uint8)
        for tried in range(seed, seed + _ATTEMPTS):
            if peel_kernel(keys, part, tried, edges, room[0], room[1], order, values):
                table = np.full(3 * part, keys[0] if keys.size else -1, np.int64)
                slots = np.empty(keys.size, np.int64)
                slots_kernel(keys, values, part, tried, slots)
                table[slots] = keys
                return cls(values, table, part, tried)
        raise AssertionError("no acyclic graph in a thousand attempts")


@kernel
def slots_kernel(keys: Any, values: Any, part: int, seed: int, out: Any) -> None:
    """Slots of words."""
    for k in range(keys.size):
        out[k] = slot_of(keys[k], values, part, seed)


@kernel
def probe_kernel(made: Any, queries: Any, changes: Any, out: Any, counts: Any) -> None:
    """Slots of the words that are a query with one of the changes; `made` is a `PerfectHash`."""
    values, table, part, seed = made
    for item in range(queries.size):
        count = 0
        for k in range(changes.size):
            word = queries[item] ^ changes[k]
            slot = slot_of(word, values, part, seed)
            if table[slot] == word:
                out[item, count] = slot
                count += 1
        counts[item] = count
