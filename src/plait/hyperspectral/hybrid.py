"""The hybrid entropy coder (CCSDS 123.0-B-2) and its sixteen variable-to-variable codes (annex B)."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from plait.hyperspectral.coders import count_at, filled_backwards, put
from plait.lang.compile import shared
from plait.lang.lanes import highest_bit, lowest_bit

#: Bits of a codeword that are looked up at once.
LOOKUP_BITS = 10


class HybridCodeArrays(NamedTuple):
    """Constants of the hybrid coder, 64-bit integers.

    `depth`, `limit`, `start`, `most` and `group` are as in `plait.hyperspectral.coders.AdaptiveCode`;
    `threshold`, that of the first code, is where high entropy begins.
    """

    depth: Any
    limit: Any
    start: Any
    most: Any
    group: Any
    threshold: Any


class WordTables(NamedTuple):
    """The sixteen codes; all int64, C order.

    codes, (16, 3): threshold, largest number that is a symbol of its own, node of the empty input word.
    nodes, (nodes, 16): for each incomplete input word and symbol, the node of the longer word, or ``-1 - k``
        for complete word k.
    words, (words, 4): output bits of each complete word, their number, first symbol, number of symbols.
    symbols, (1, symbols): symbols of complete words.
    lookup, (16, ``2**LOOKUP_BITS``): for the next bits of a stream read backwards ``-1 - k``, or a branch.
    branches, (branches, 2): for the bit that follows, likewise.
    """

    codes: Any
    nodes: Any
    words: Any
    symbols: Any
    lookup: Any
    branches: Any


@shared
def _code_of(tables: Any, count: int, total: int) -> Any:
    """Number of the last code whose threshold is above a mean."""
    scaled = total << 14
    low = 0
    # Sums in place of branches, which nothing predicts.
    for half in (8, 4, 2, 1):
        low += half * (scaled < count * tables.codes[low + half, 0])
    return low


@shared
def _exponent(code: Any, count: int, total: int) -> Any:
    """The parameter k of a number of high entropy."""
    mean = total + ((49 * count) >> 5)
    k = highest_bit(mean) - highest_bit(count) - 2
    if k >= 0 and count << (k + 2) > mean:
        k -= 1
    return max(min(k, max(code.depth - 2, 2)), 0)


@shared
def _put_reversed(words: Any, held: int, bits: int, at: int, code: Any, value: int, k: int) -> Any:
    zeros = value >> k
    low = value & ((1 << k) - 1)
    if zeros + k < 32 and zeros < code.limit:
        return put(words, held, bits, at, ((low << 1) | 1) << zeros, zeros + 1 + k)
    if zeros < code.limit:
        held, bits, at = put(words, held, bits, at, low, k)
        return put(words, held, bits, at, 1 << zeros, zeros + 1)
    held, bits, at = put(words, held, bits, at, value, code.depth)
    return put(words, held, bits, at, 0, code.limit)


@shared
def _put_small(
    words: Any, held: int, bits: int, at: int, code: Any, tables: Any, open_words: Any, i: int, value: int
) -> Any:
    """Append a number of low entropy to the open word of code i."""
    largest = tables.codes[i, 1]
    if value > largest:
        held, bits, at = _put_reversed(words, held, bits, at, code, value - largest - 1, 0)
        value = largest + 1
    node = tables.nodes[open_words[i], value]
    if node < 0:
        held, bits, at = put(words, held, bits, at, tables.words[-1 - node, 0], tables.words[-1 - node, 1])
        node = tables.codes[i, 2]
    open_words[i] = node
    return held, bits, at


@shared
def code_small_rows(
    code: Any, tables: Any, residuals: Any, row: int, sums: Any, open_words: Any, cursor: Any
) -> None:
    """Append the codewords of rows from number `row` on.

    `residuals` and `sums` are as in `plait.hyperspectral.coders.code_rows`. `open_words`, int64, (16,), has
    the node of the incomplete input word of each code. `cursor` has room for 96 bits a residual. `sums`,
    `open_words` and `cursor` are changed in place.
    """
    stacks, rows, columns, bands = residuals.shape
    words, state = cursor
    held, bits, at = state[0], state[1], state[2]
    for k in range(stacks * rows):
        stack, y = k // rows, k % rows
        start = (row + y) * columns
        for first in range(0, bands, code.group):
            last = min(first + code.group, bands)
            for x in range(columns):
                t = start + x
                if t == 0:
                    for z in range(first, last):
                        held, bits, at = put(words, held, bits, at, residuals[stack, y, x, z], code.depth)
                    continue
                before, count = count_at(code, t), count_at(code, t + 1)
                for z in range(first, last):
                    value, total = residuals[stack, y, x, z], sums[stack, z]
                    if before == code.most:
                        held, bits, at = put(words, held, bits, at, total & 1, 1)
                        total = (total + 4 * value + 1) >> 1
                    else:
                        total += 4 * value
                    sums[stack, z] = total
                    if total << 14 >= code.threshold * count:
                        k = _exponent(code, count, total)
                        held, bits, at = _put_reversed(words, held, bits, at, code, value, k)
                    else:
                        i = _code_of(tables, count, total)
                        held, bits, at = _put_small(words, held, bits, at, code, tables, open_words, i, value)
    state[0], state[1], state[2] = held, bits, at


@shared
def _take(words: Any, held: int, bits: int, at: int, size: int) -> Any:
    held, bits, at = filled_backwards(words, held, bits, at)
    return held & ((1 << size) - 1), held >> size, bits - size, at


@shared
def _take_reversed(words: Any, held: int, bits: int, at: int, code: Any, k: int) -> Any:
    held, bits, at = filled_backwards(words, held, bits, at)
    zeros = lowest_bit(held) if held else bits
    if zeros >= code.limit:
        return _take(words, held >> code.limit, bits - code.limit, at, code.depth)
    low, held, bits, at = _take(words, held >> (zeros + 1), bits - zeros - 1, at, k)
    return (zeros << k) | low, held, bits, at


@shared
def _take_word(words: Any, held: int, bits: int, at: int, tables: Any, i: int) -> Any:
    """The number of the next complete word of code i."""
    held, bits, at = filled_backwards(words, held, bits, at)
    found = tables.lookup[i, held & ((1 << LOOKUP_BITS) - 1)]
    taken = LOOKUP_BITS
    while found >= 0:
        found = tables.branches[found, (held >> taken) & 1]
        taken += 1
    size = tables.words[-1 - found, 1]
    return -1 - found, held >> size, bits - size, at


@shared
def _take_small(
    words: Any, held: int, bits: int, at: int, code: Any, tables: Any, open_words: Any, i: int
) -> Any:
    """The next number of low entropy, of code i."""
    if open_words[1, i] == 0:
        word, held, bits, at = _take_word(words, held, bits, at, tables, i)
        open_words[0, i] = tables.words[word, 2]
        open_words[1, i] = tables.words[word, 3]
    open_words[1, i] -= 1
    value = tables.symbols[0, open_words[0, i] + open_words[1, i]]
    if value > tables.codes[i, 1]:
        more, held, bits, at = _take_reversed(words, held, bits, at, code, 0)
        value += more
    return value, held, bits, at


@shared
def _take_number(
    words: Any,
    held: int,
    bits: int,
    at: int,
    code: Any,
    tables: Any,
    open_words: Any,
    counts: Any,
    sums: Any,
    z: int,
) -> Any:
    """The number before what was read last, of band z."""
    before, count = counts
    total = sums[z]
    if total << 14 >= code.threshold * count:
        k = _exponent(code, count, total)
        value, held, bits, at = _take_reversed(words, held, bits, at, code, k)
    else:
        i = _code_of(tables, count, total)
        value, held, bits, at = _take_small(words, held, bits, at, code, tables, open_words, i)
    if before == code.most:
        # The sum is half of what it was with the number, rounded up; the bit tells which of two it was.
        odd, held, bits, at = _take(words, held, bits, at, 1)
        doubled = 2 * total - 4 * value - 1
        sums[z] = doubled + ((doubled & 1) ^ odd)
    else:
        sums[z] = total - 4 * value
    return value, held, bits, at


@shared
def decode_small_rows(
    code: Any, tables: Any, residuals: Any, row: int, sums: Any, open_words: Any, cursor: Any
) -> None:
    """Read the codewords of rows backwards; the inverse of `code_small_rows`.

    `residuals` are filled from the last to the first; `sums` become those before the rows. `open_words`,
    int64, (2, 16), has for each code where the symbols of the word under way begin, and how many are left.
    `cursor` has words with the lowest bits first; beyond the end all bits are 0, and the caller checks
    whether the next word lies too far behind it. All are changed in place.
    """
    stacks, rows, columns, bands = residuals.shape
    words, state = cursor
    held, bits, at = state[0], state[1], state[2]
    groups = (bands + code.group - 1) // code.group
    for k in range(stacks * rows - 1, -1, -1):
        stack, y = k // rows, k % rows
        start = (row + y) * columns
        for group in range(groups - 1, -1, -1):
            first = group * code.group
            last = min(first + code.group, bands)
            for x in range(columns - 1, -1, -1):
                t = start + x
                counts = count_at(code, t), count_at(code, t + 1)
                for z in range(last - 1, first - 1, -1):
                    if t == 0:
                        value, held, bits, at = _take(words, held, bits, at, code.depth)
                    else:
                        value, held, bits, at = _take_number(
                            words, held, bits, at, code, tables, open_words, counts, sums[stack], z
                        )
                    residuals[stack, y, x, z] = value
    state[0], state[1], state[2] = held, bits, at


#: A sample is of high entropy from this threshold on: S * 2**14 >= G * threshold. That of the first code.
HIGH_ENTROPY_THRESHOLD = 303336


@dataclass(frozen=True, slots=True)
class HybridCode:
    """One code, for residuals where S * 2**14 < G * T; T is its `threshold`.

    `limit` is L, the largest residual that is a symbol of its own; larger ones are the escape symbol ``X``.
    `words` has the output word, as bits, of each complete input word, as hexadecimal digits and ``X``;
    `flush` that of each incomplete one.
    """

    limit: int
    threshold: int
    words: dict[str, str]
    flush: dict[str, str]


@functools.cache
def hybrid_codes() -> tuple[HybridCode, ...]:
    """The codes, in order of falling thresholds."""
    data = Path(__file__).with_name("data") / "hybrid_codes.json"
    found = json.loads(data.read_text(encoding="ascii"))
    return tuple(
        HybridCode(limit, threshold, table["code"], table["flush"])
        for limit, threshold, table in zip(found["L"], found["T"], found["tables"], strict=True)
    )


def _digit(symbol: str, limit: int) -> int:
    return limit + 1 if symbol == "X" else int(symbol, 16)


@functools.cache
def word_tables() -> WordTables:
    """The codes as arrays."""
    codes, lookup = [], []
    nodes: list[list[int]] = []
    words: list[list[int]] = []
    symbols: list[int] = []
    # Branch 0 is nobody's, so that 0 says that there is none yet.
    branches = [[-1, -1]]
    for code in hybrid_codes():
        node_of = {prefix: len(nodes) + k for k, prefix in enumerate(code.flush)}
        nodes += [[0] * 16 for _ in node_of]
        codes.append([code.threshold, code.limit, node_of[""]])
        numbers = {}
        for word, bits in code.words.items():
            numbers[bits[::-1]] = number = -1 - len(words)
            for k, symbol in enumerate(word):
                nodes[node_of[word[:k]]][_digit(symbol, code.limit)] = node_of.get(word[: k + 1], number)
            words.append([int(bits, 2), len(bits), len(symbols), len(word)])
            symbols += [_digit(symbol, code.limit) for symbol in word]
        lookup.append(_looked_up(numbers, branches))
    arrays = codes, nodes, words, [symbols], lookup, branches
    return WordTables(*(np.array(array, np.int64) for array in arrays))


def _looked_up(words: dict[str, int], branches: list[list[int]]) -> list[int]:
    """Of a code, what the next bits of a stream read backwards mean; longer words get branches."""

    def new_branch() -> int:
        branches.append([0, 0])
        return len(branches) - 1

    found = [0] * (1 << LOOKUP_BITS)
    for bits, number in words.items():
        root, rest = bits[:LOOKUP_BITS], bits[LOOKUP_BITS:]
        low = int(root[::-1], 2)
        if not rest:
            for entry in range(low, 1 << LOOKUP_BITS, 1 << len(bits)):
                found[entry] = number
            continue
        found[low] = branch = found[low] or new_branch()
        for bit in rest[:-1]:
            branches[branch][int(bit)] = branches[branch][int(bit)] or new_branch()
            branch = branches[branch][int(bit)]
        branches[branch][int(rest[-1])] = number
    return found


@functools.cache
def flush_words() -> tuple[tuple[dict[int, str], dict[str, tuple[int, int]]], ...]:
    """For each code, what ends its open word.

    The output word of each node; and, for each output word, where the symbols of its input word begin and how
    many there are.
    """
    found, node, place = [], 0, 0
    for code in hybrid_codes():
        places: dict[str, int] = {}
        for word in code.words:
            # The last complete word that begins so; any would do.
            places |= {word[:k]: place for k in range(len(word))}
            place += len(word)
        out = dict(enumerate(code.flush.values(), node))
        node += len(code.flush)
        back = {output: (places[prefix], len(prefix)) for prefix, output in code.flush.items()}
        found.append((out, back))
    return tuple(found)
