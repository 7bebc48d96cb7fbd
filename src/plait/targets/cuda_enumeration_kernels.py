"""Kernels of the exhaustive enumeration: what is left to compare, and N strings compared with it.

`find_wanted` compares the parts that do not depend on the N string, once for all threads: a V prefix, a D
fragment and a J suffix at their places in a text. Where they fit, the text says what the two N parts between
them would have to be: a *wanted* string with the number of ways in which these parts are had. Then every
thread of `compare_packed` or `compare_bytes` holds some of the 4^n N strings and compares each of them with
every wanted string, one by one, and counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plait._jit import shared
from plait.targets.cuda import SIMULATED, cuda, cuda_kernel
from plait.targets.cuda_enumeration_letters import (
    BYTE_ENTRY,
    MOST,
    PACKED_ENTRY,
    example_letters,
    fragment_fits,
    note_wanted,
    prefix_run,
    suffix_run,
    text_of,
    word_of,
)

__all__ = ["STRINGS", "THREADS", "compare_bytes", "compare_packed", "find_wanted"]

#: Threads of a block; few in the simulator, where each is a thread of the operating system.
THREADS = 32 if SIMULATED else 256
#: N strings that one thread holds.
STRINGS = 16
_LEVELS = MOST + 1
_REST = (2 * STRINGS, THREADS)
#: Symbols of a string that cannot be made: they share no bit with any mask, and differ from every code.
_NO_BYTES = 0x10101010
_NO_CODES = -1


def _find_examples() -> list[tuple[Any, ...]]:
    found = []
    for letters, fragments in example_letters():
        table, lists = np.zeros((1, _LEVELS), np.int64), np.zeros(4, np.int32)
        edges = np.zeros(2 * _LEVELS, np.uint64)
        found.append((letters, fragments, 0, 1, MOST, table, edges, lists, BYTE_ENTRY, False))
    return found


@cuda_kernel(_find_examples)
def find_wanted(
    letters: Any,
    fragments: Any,
    first: int,
    last: int,
    most: int,
    table: Any,
    edges: Any,
    lists: Any,
    entry: int,
    fill: bool,
) -> None:
    """Wanted strings of texts `first` to `last`, each text with each choice of D: a thread per pair of these.

    Parameters
    ----------
    letters, fragments
        Texts and D fragments; the last choice of D is to have none.
    first, last
        Which texts.
    most
        Most N symbols.
    table
        int64 (pairs, most + 1): gets the numbers of wanted strings; where they are written, it is cleared.
    edges
        uint64 ((most + 1) * (pairs + 1),): where in `lists` those of each n and pair begin.
    lists
        int32: gets entries of `entry` numbers.
    entry
        `PACKED_ENTRY` or `BYTE_ENTRY`.
    fill
        Write them, rather than their numbers.
    """
    items = last - first
    thread = cuda.grid(1)
    choices = fragments.first.size - 1
    pairs = items * choices
    if thread >= pairs:
        return
    f = thread // items
    item = first + thread - f * items
    pair = (item - first) * choices + f
    used = cuda.local.array(_LEVELS, np.int32)
    for n in range(most + 1):
        used[n] = 0
    length, prefix, suffix = text_of(letters, item)
    kept_v = prefix_run(letters, item, length, prefix)
    kept_j = suffix_run(letters, item, length, suffix)
    without = f == choices - 1
    u_last = fragments.first[f + 1]
    if letters.allowed[suffix, f] == 0:
        u_last = fragments.first[f]
    for a in range(min(length, kept_v + most) + 1):
        left = most - max(0, a - kept_v)
        for u in range(fragments.first[f], u_last):
            b = a + fragments.length[u]
            if b > length:
                break
            fewest = max(0, length - b - kept_j)
            if fewest > left or not fragment_fits(letters, item, a, fragments.start[u], fragments.length[u]):
                continue
            for v in range(max(0, a - most), min(a, kept_v) + 1):
                n1 = a - v
                largest = 0 if without else min(most - n1, length - b)
                for n2 in range(fewest, largest + 1):
                    n = n1 + n2
                    if fill:
                        place = np.int64(edges[n * (pairs + 1) + pair]) + used[n] * entry
                        note_wanted(letters, item, v, n1, b, n2, fragments.ways[u], lists, place)
                    used[n] += 1
    for n in range(most + 1):
        table[pair, n] = 0 if fill else used[n]


def _compare_examples(words: int) -> list[tuple[Any, ...]]:
    lists, edges = np.zeros(words, np.int32), np.zeros(2, np.uint64)
    counts = np.zeros((1, _LEVELS), np.int64)
    return [(lists, edges, np.zeros(256, np.int32), 0, 0, MOST, 1, counts)]


@cuda_kernel(lambda: _compare_examples(PACKED_ENTRY))
def compare_packed(
    lists: Any, edges: Any, spread: Any, low: int, high: int, n: int, pairs_per_block: int, counts: Any
) -> None:
    """Compare N strings `low` to `high`, 2 bits a symbol, with what pairs of text and D want."""
    own = cuda.local.array(STRINGS, np.int32)
    step = cuda.gridsize(1)
    mine = low + cuda.grid(1)
    for k in range(STRINGS):
        string = mine + k * step
        own[k] = np.int32(string) if string < high else np.int32(_NO_CODES)
    first = cuda.blockIdx.y * pairs_per_block
    for pair in range(first, min(first + pairs_per_block, edges.size - 1)):
        found = np.int32(0)
        place, end = edges[pair], edges[pair + 1]
        while place < end:
            wanted = lists[place]
            # The strings of a thread differ, so at most one of them is the wanted one.
            equal = False
            for k in range(STRINGS):
                equal |= own[k] == wanted
            if equal:
                found = np.int32(found + lists[place + np.uint64(1)])
            place += np.uint64(PACKED_ENTRY)
        if found != 0:
            cuda.atomic.add(counts, (pair, n), np.int64(found))


@cuda_kernel(lambda: _compare_examples(BYTE_ENTRY))
def compare_bytes(
    lists: Any, edges: Any, spread: Any, low: int, high: int, n: int, pairs_per_block: int, counts: Any
) -> None:
    """Compare N strings `low` to `high`, one byte a symbol, with wanted masks, 4 symbols at a time.

    An N string stops at its first word with a symbol that the mask does not hold.
    """
    own = cuda.local.array(STRINGS, np.int32)
    # Words that are seldom looked at do not take registers, so that more warps fit.
    rest = cuda.shared.array(_REST, np.int32)
    step = cuda.gridsize(1)
    mine = low + cuda.grid(1)
    thread = cuda.threadIdx.x
    for k in range(STRINGS):
        string = mine + k * step
        own[k] = word_of(spread, string, n, 0) if string < high else np.int32(_NO_BYTES)
        rest[k, thread] = word_of(spread, string, n, 1)
        rest[STRINGS + k, thread] = word_of(spread, string, n, 2)
    # Without a barrier the compiler would keep what was stored in registers after all.
    cuda.syncthreads()
    first = cuda.blockIdx.y * pairs_per_block
    for pair in range(first, min(first + pairs_per_block, edges.size - 1)):
        found = np.int32(0)
        place, end = edges[pair], edges[pair + 1]
        while place < end:
            lacking = ~lists[place]
            # The least of what the strings, each by itself, have and the first word wanted lacks.
            least = np.int32(_NO_BYTES)
            for k in range(0, STRINGS, 2):
                least = min(least, min(np.int32(own[k] & lacking), np.int32(own[k + 1] & lacking)))
            if least == 0:
                found = np.int32(found + lists[place + np.uint64(3)] * _matches(own, rest, lists, place))
            place += np.uint64(BYTE_ENTRY)
        if found != 0:
            cuda.atomic.add(counts, (pair, n), np.int64(found))


@shared
def _matches(own: Any, rest: Any, lists: Any, place: Any) -> Any:
    """How many of a thread's N strings match a wanted one in all words."""
    thread = cuda.threadIdx.x
    first, second, third = lists[place], lists[place + np.uint64(1)], lists[place + np.uint64(2)]
    matches = 0
    for k in range(STRINGS):
        if (own[k] & ~first) == 0 and (rest[k, thread] & ~second) == 0:
            matches += (rest[STRINGS + k, thread] & ~third) == 0
    return matches
