"""Exhaustive enumeration: build every string a chain can make and compare it with the text.

The published GPU programs work this way. It proves the dynamic-programming schedules: for every number
of insertions it must give the same counts. Its cost grows as 4^n, so it is for small n.
"""

from __future__ import annotations

from typing import Any

from plait._jit import shared

__all__ = ["enumerate_item"]


@shared
def enumerate_item(tables: Any, texts: Any, item: int, most: int, letters: Any, out: Any) -> None:
    """Count the ways to make one text with 0..most inserted symbols.

    Parameters
    ----------
    tables
        Chain tables of rows `PerInsertions` (fragments extended at both ends); weights are not read,
        but for the number of ways in which a fragment may vanish.
    texts, item
        Which text.
    most
        Largest total number of insertions.
    letters
        Scratch of at least `most` integers.
    out
        int64 (n, fragments + 1, most + 1): per fragment, and in the last row without a fragment.
    """
    first = texts.start[item]
    length = texts.length[item]
    prefix = texts.prefix[item]
    suffix = texts.suffix[item]
    fragments = tables.words.length.size
    for f in range(fragments + 1):
        for n in range(most + 1):
            out[item, f, n] = 0
    for n in range(most + 1):
        strings = 4**n
        for string in range(strings):
            rest = string
            for k in range(n):
                letters[k] = 1 << (rest & 3)
                rest = rest >> 2
            for f in range(fragments + 1):
                if f == fragments or tables.allowed[suffix, f] != 0:
                    out[item, f, n] += ways_with(
                        tables, texts.symbols, first, length, prefix, suffix, f, letters, n
                    )


@shared
def ways_with(
    tables: Any, symbols: Any, first: int, length: int, prefix: int, suffix: int, f: int, letters: Any, n: int
) -> int:
    """Ways to make the text with exactly these inserted letters and fragment f; past the end, with none."""
    ways = 0
    fragments = tables.words.length.size
    size = tables.words.length[f] if f < fragments else 0
    for v in range(min(length, tables.prefix_length[prefix]) + 1):
        if v > 0 and (symbols[first + v - 1] & tables.prefix_symbols[prefix, v - 1]) == 0:
            break
        for n1 in range(n + 1):
            a = v + n1
            if a > length or (n1 > 0 and (symbols[first + a - 1] & letters[n1 - 1]) == 0):
                break
            if f == fragments:
                if n1 == n:
                    ways += ends_with(tables, symbols, first, length, suffix, a, letters, n, n)
                continue
            row = tables.empty_row[f]
            ways += tables.fragment_weights[row, 0] * ends_with(
                tables, symbols, first, length, suffix, a, letters, n1, n
            )
            for s in range(size):
                for t in range(s + 1, size + 1):
                    b = a + t - s
                    if b > length or not has_symbol(tables.words, f, t - 1, symbols[first + b - 1]):
                        break
                    ways += ends_with(tables, symbols, first, length, suffix, b, letters, n1, n)
    return ways


@shared
def has_symbol(words: Any, f: int, place: int, mask: int) -> bool:
    """Whether a fragment position matches a text symbol."""
    return bool((words.places[words.word[f], mask] >> (words.first[f] + place)) & 1)


@shared
def ends_with(
    tables: Any, symbols: Any, first: int, length: int, suffix: int, b: int, letters: Any, n1: int, n: int
) -> int:
    """1 if the text from b on is letters[n1:n) followed by a suffix of the end, else 0."""
    kept = length - b - (n - n1)
    if kept < 0 or kept > tables.suffix_length[suffix]:
        return 0
    for k in range(n1, n):
        if (symbols[first + b + k - n1] & letters[k]) == 0:
            return 0
    for k in range(kept):
        if (symbols[first + length - 1 - k] & tables.suffix_symbols[suffix, k]) == 0:
            return 0
    return 1
