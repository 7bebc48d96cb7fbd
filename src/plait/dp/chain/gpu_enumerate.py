"""Kernels of the exhaustive enumeration, and its two data layouts: packed (2 bits a symbol) and bytes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.devices.cuda import SIMULATED, cuda, cuda_kernel
from plait.lang.compile import by_type_of, shared

#: Most N symbols: 2 bits for each stand in one 32-bit word, and a byte for each in three.
MOST = 10
#: Numbers in an entry of a list: the wanted codes, or three words of wanted masks; then the ways.
PACKED_ENTRY, BYTE_ENTRY = 2, 4


class DParts(NamedTuple):
    """Distinct D genes, choice by choice, shortest first; the last choice is to have none.

    Those of choice f are ``first[f]`` to ``first[f + 1]``, (choices + 1,); each is
    ``symbols[start:start + length]`` of the D gene symbols and is cut from its D in `ways` ways, all (n,).
    All are int32.
    """

    first: Any
    start: Any
    length: Any
    ways: Any


@shared
def word_of(spread: Any, string: Any, n: Any, word: Any) -> Any:
    """One-hot bytes of an N string: its last four symbols in word 0, the four before in word 1, and so on.

    Symbol k is ``string >> 2 * k & 3``, n symbols in all; where there are fewer than `word` (0, 1 or 2) asks
    for, bytes are 0. `spread`, int32 (256,), has the four bytes of every four symbols, the last in the lowest
    byte.
    """
    last = n - 4 * word
    if last <= 0:
        return np.int32(0)
    if last >= 4:
        return spread[(string >> (2 * last - 8)) & 255]
    made = spread[(string << (8 - 2 * last)) & 255]
    return np.int32(made & ((1 << (8 * last)) - 1))


@shared
def piece(words: Any, first: Any, bit: Any, bits: Any) -> Any:
    """Up to 32 bits from bit `bit` after word `first`; two words are read."""
    at = first + (bit >> 5)
    both = np.int64(words[at]) | (np.int64(words[at + 1]) << 32)
    return (both >> (bit & 31)) & ((1 << bits) - 1)


class ByteLetters(NamedTuple):
    """Junctions and germline parts, one mask per byte.

    `symbols` uint8 (total,); `start` int64, `length`, `v` and `j` int32, all (texts,). `v_ends` and `j_ends`,
    uint8 (n, width), J last base first, with lengths int32 (n,); `d_bases` uint8 (m,). `allowed`,
    uint8 (J, choices): which choices of D a J may follow.
    """

    symbols: Any
    start: Any
    length: Any
    v: Any
    j: Any
    v_ends: Any
    v_length: Any
    j_ends: Any
    j_length: Any
    d_bases: Any
    allowed: Any


class PackedLetters(NamedTuple):
    """Junctions and germline parts, 2 bits a symbol: A=0, T=1, G=2, C=3.

    `records`, uint32 (texts * record_words + 2,), have the bits of a text from the lowest on; `field_bits` is
    for the number of V and that of J each, `length_bits` for the length. `v_ends` and `j_ends`, uint32:
    `end_words` for each end, J last base first, and two more at the end, with lengths int32 (n,).
    `d_words`, uint32 (m,), are the bases of D and two words more. `allowed`, uint8 (J, choices): which
    choices of D a J may follow.
    """

    records: Any
    record_words: Any
    field_bits: Any
    length_bits: Any
    v_ends: Any
    v_length: Any
    j_ends: Any
    j_length: Any
    end_words: Any
    d_words: Any
    allowed: Any


def _byte_text_of(letters: Any, item: Any) -> Any:
    return letters.length[item], letters.v[item], letters.j[item]


def _byte_end_run(letters: Any, item: Any, ends: Any, end: Any, most: Any, at: Any, step: Any) -> Any:
    first, kept = letters.start[item] + at, 0
    while kept < most and (letters.symbols[first + step * kept] & ends[end, kept]) != 0:
        kept += 1
    return kept


def _byte_d_fits(letters: Any, item: Any, a: Any, start: Any, size: Any) -> Any:
    first = letters.start[item] + a
    for k in range(size):  # noqa: SIM110  # compiled code has no all()
        if (letters.symbols[first + k] & letters.d_bases[start + k]) == 0:
            return False
    return True


def _byte_note_wanted(
    letters: Any, item: Any, v: Any, n1: Any, b: Any, n2: Any, ways: Any, lists: Any, entry: Any
) -> None:
    first, n = letters.start[item], n1 + n2
    for word in range(3):
        masks = np.int64(0)
        for place in range(min(4, n - 4 * word)):
            k = n - 1 - 4 * word - place
            at = v + k if k < n1 else b + k - n1
            masks |= np.int64(letters.symbols[first + at]) << (8 * place)
        lists[entry + word] = masks
    lists[entry + 3] = ways


@shared
def text_piece(letters: Any, item: Any, at: Any, symbols: Any) -> Any:
    """Up to 16 symbols of a packed text."""
    header = 2 * letters.field_bits + letters.length_bits
    return piece(letters.records, item * letters.record_words, header + 2 * at, 2 * symbols)


def _packed_text_of(letters: Any, item: Any) -> Any:
    first, bits = item * letters.record_words, letters.field_bits
    v, j = piece(letters.records, first, 0, bits), piece(letters.records, first, bits, bits)
    return piece(letters.records, first, 2 * bits, letters.length_bits), v, j


def _packed_end_run(letters: Any, item: Any, ends: Any, end: Any, most: Any, at: Any, step: Any) -> Any:
    first, kept = end * letters.end_words, 0
    while kept < most and text_piece(letters, item, at + step * kept, 1) == piece(ends, first, 2 * kept, 2):
        kept += 1
    return kept


def _packed_d_fits(letters: Any, item: Any, a: Any, start: Any, size: Any) -> Any:
    for k in range(0, size, 16):
        some = min(16, size - k)
        if text_piece(letters, item, a + k, some) != piece(letters.d_words, 0, 2 * (start + k), 2 * some):
            return False
    return True


def _packed_note_wanted(
    letters: Any, item: Any, v: Any, n1: Any, b: Any, n2: Any, ways: Any, lists: Any, entry: Any
) -> None:
    wanted = text_piece(letters, item, v, n1) | (text_piece(letters, item, b, n2) << (2 * n1))
    lists[entry] = wanted
    lists[entry + 1] = ways


#: Length of a text, and the numbers of its V and its J: ``(letters, item)``.
text_of = by_type_of({ByteLetters: _byte_text_of, PackedLetters: _packed_text_of})
#: Bases of a text from `at` on, in steps of 1 or -1, that are those of an end, up to the first mismatch or
#: `most`: ``(letters, item, ends, end, most, at, step)``.
end_run = by_type_of({ByteLetters: _byte_end_run, PackedLetters: _packed_end_run})
#: Whether a D gene stands at `a` in a text, up to the first mismatch: ``(letters, item, a, start, size)``.
d_fits = by_type_of({ByteLetters: _byte_d_fits, PackedLetters: _packed_d_fits})
#: Write down the N string text[v:v + n1) + text[b:b + n2), and in how many ways it is asked for:
#: ``(letters, item, v, n1, b, n2, ways, lists, entry)``.
note_wanted = by_type_of({ByteLetters: _byte_note_wanted, PackedLetters: _packed_note_wanted})


#: Threads of a block; few in the simulator, where each is a thread of the operating system.
THREADS = 32 if SIMULATED else 256
#: N strings that one thread holds.
STRINGS = 16
_LEVELS = MOST + 1
_REST = (2 * STRINGS, THREADS)
#: Symbols of a string that cannot be made: they share no bit with any mask, and differ from every code.
_NO_BYTES = 0x10101010
_NO_CODES = -1


@cuda_kernel()
def find_wanted(
    letters: Any, d_parts: Any, first: int, last: int, most: int,
    table: Any, edges: Any, lists: Any, entry: int, fill: bool,
) -> None:  # fmt: skip
    """Wanted strings of texts `first` to `last`, each text with each choice of D: a thread per pair of these.

    The last choice of D is to have none. `table`, int64 (pairs, most + 1), gets the numbers of wanted strings
    of up to `most` N symbols. With `fill` they are written to `lists` instead, in entries of `entry` int32
    numbers (`PACKED_ENTRY` or `BYTE_ENTRY`), and `table` is cleared; those of each n and pair begin at
    `edges`, uint64 ((most + 1) * (pairs + 1),).
    """
    items = last - first
    thread = cuda.grid(1)
    choices = d_parts.first.size - 1
    pairs = items * choices
    if thread >= pairs:
        return
    f = thread // items
    item = first + thread - f * items
    pair = (item - first) * choices + f
    used = cuda.local.array(_LEVELS, np.int32)
    for n in range(most + 1):
        used[n] = 0
    length, v, j = text_of(letters, item)
    kept_v = end_run(letters, item, letters.v_ends, v, min(length, letters.v_length[v]), 0, 1)
    kept_j = end_run(letters, item, letters.j_ends, j, min(length, letters.j_length[j]), length - 1, -1)
    without = f == choices - 1
    u_last = d_parts.first[f + 1]
    if letters.allowed[j, f] == 0:
        u_last = d_parts.first[f]
    for a in range(min(length, kept_v + most) + 1):
        left = most - max(0, a - kept_v)
        for u in range(d_parts.first[f], u_last):
            b = a + d_parts.length[u]
            if b > length:
                break
            fewest = max(0, length - b - kept_j)
            if fewest > left or not d_fits(letters, item, a, d_parts.start[u], d_parts.length[u]):
                continue
            for end in range(max(0, a - most), min(a, kept_v) + 1):
                n1 = a - end
                largest = 0 if without else min(most - n1, length - b)
                for n2 in range(fewest, largest + 1):
                    n = n1 + n2
                    if fill:
                        place = np.int64(edges[n * (pairs + 1) + pair]) + used[n] * entry
                        note_wanted(letters, item, end, n1, b, n2, d_parts.ways[u], lists, place)
                    used[n] += 1
    for n in range(most + 1):
        table[pair, n] = 0 if fill else used[n]


@cuda_kernel()
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


@cuda_kernel()
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
