"""The fragment between prefix and suffix of a text, and symbols beside unshortened ends that mirror them."""

from __future__ import annotations

from typing import Any

from plait._jit import shared
from plait.lanes import lowest_bit
from plait.recurrences.occurrences import Occurrences, keep, start

__all__ = ["call_fragment", "extend_ends"]


@shared
def call_fragment(texts: Any, tables: Any, group: int, i: int, ordered: bool, out: Any, choice: Any) -> None:
    """Find the longest match of a fragment between prefix and suffix, the leftmost one of them."""
    choice[i] = 0
    out.fragment[i] = -1
    out.fragment_place[i] = 0
    out.fragment_start[i] = 0
    out.fragment_end[i] = 0
    if not ordered:
        return
    base = texts.starts[i]
    end = texts.suffix.text_start[i]
    best = tables.least
    for a in range(texts.prefix.text_end[i], end):
        if end - a < best:
            break
        for w in range(tables.word_starts[group], tables.word_starts[group + 1]):
            automaton = Occurrences(tables.allowed_starts[texts.suffix.entry[i], w])
            alive = start(automaton)
            read = 0
            while a + read < end:
                mask = tables.masks[texts.letters[base + a + read]]
                after = keep(automaton, alive, tables.places[w, mask], read)
                if after == 0:
                    break
                alive = after
                read += 1
            if read < best or read == 0:
                continue
            if read > best or out.fragment[i] < 0:
                best = read
                choice[i] = 0
                bit = lowest_bit(alive)
                out.fragment[i] = tables.fragment_of[w, bit]
                out.fragment_place[i] = bit - tables.fragment_bit[w, bit]
                out.fragment_start[i] = a
                out.fragment_end[i] = a + read
            while alive != 0:
                choice[i] = choice[i] | (1 << tables.fragment_of[w, lowest_bit(alive)])
                alive = alive & (alive - 1)


@shared
def extend_ends(texts: Any, tables: Any, group: int, i: int, ordered: bool, out: Any) -> None:
    """Count the mirrored symbols next to ends that are not shortened: outer ends first."""
    out.prefix_extended[i] = 0
    out.suffix_extended[i] = 0
    out.fragment_extended_left[i] = 0
    out.fragment_extended_right[i] = 0
    if not ordered:
        return
    prefix = texts.prefix
    suffix = texts.suffix
    begin = prefix.text_end[i]
    end = suffix.text_start[i]
    called = out.fragment[i] >= 0
    left_limit = out.fragment_start[i] if called else end
    base = texts.starts[i]
    entry_end = texts.prefixes.starts[prefix.entry[i] + 1]
    if texts.prefixes.starts[prefix.entry[i]] + prefix.entry_end[i] == entry_end:
        out.prefix_extended[i] = mirrored(
            texts.letters, base + begin, 1, left_limit - begin, texts.prefixes.letters, entry_end - 1, tables
        )
        begin += out.prefix_extended[i]
    right_limit = out.fragment_end[i] if called else begin
    if suffix.entry_start[i] == 0:
        entry_start = texts.suffixes.starts[suffix.entry[i]]
        out.suffix_extended[i] = mirrored(
            texts.letters, base + end - 1, -1, end - right_limit, texts.suffixes.letters, entry_start, tables
        )
        end -= out.suffix_extended[i]
    if called:
        number = tables.group_starts[group] + out.fragment[i]
        first = tables.fragments.starts[number]
        last = tables.fragments.starts[number + 1]
        size = out.fragment_end[i] - out.fragment_start[i]
        if out.fragment_place[i] == 0:
            out.fragment_extended_left[i] = mirrored(
                texts.letters,
                base + left_limit - 1,
                -1,
                left_limit - begin,
                tables.fragments.letters,
                first,
                tables,
            )
        if first + out.fragment_place[i] + size == last:
            out.fragment_extended_right[i] = mirrored(
                texts.letters,
                base + right_limit,
                1,
                end - right_limit,
                tables.fragments.letters,
                last - 1,
                tables,
            )


@shared
def mirrored(letters: Any, p: int, step: int, room: int, entry: Any, q: int, tables: Any) -> int:
    """Symbols from p on, in a direction, that mirror those of an entry from q on, in the other."""
    n = 0
    most = min(room, tables.most_extended)
    while n < most:
        mask = tables.masks[letters[p + step * n]]
        if (mask & (mask - 1)) != 0 or (mask & tables.mirror[tables.masks[entry[q - step * n]]]) == 0:
            break
        n += 1
    return n
