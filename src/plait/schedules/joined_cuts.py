"""Matches of texts with two lists of entries, one before the other, and cutting them where they overlap.

A text is thought to begin like one entry of the list of prefixes and to end like one of the list of suffixes,
with something else between. Both matches may claim the same symbols of the text. They are then cut at the
place where most symbols equal those of the entry that they are left to; among equal places the last one,
which leaves most to the prefix. After a cut each match ends there with a pair of equal symbols.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared

__all__ = ["ALONE", "CROSSED", "ORDERED", "Entries", "JoinedTexts", "Matches", "cut_overlaps"]

#: How the two matches of a text lie: at most one there, prefix before suffix, or anything else.
ALONE, ORDERED, CROSSED = range(3)


class Entries(NamedTuple):
    """What texts are matched with.

    Attributes
    ----------
    letters
        All entries, one after the other; uint8.
    starts
        Where each begins, and the end of the last; int64, shape (e + 1,).
    anchors
        First symbol of the triplet of each that ends or begins what is joined, -1 where unknown; int64 (e,).
    """

    letters: Any
    starts: Any
    anchors: Any


class Matches(NamedTuple):
    """One match of each text, or none.

    Attributes
    ----------
    entry
        Which entry, -1 for none; int64, shape (n,).
    text_start, text_end, entry_start, entry_end
        What is matched, half-open; int32, shape (n,).
    runs
        Kind (0 pairs, 1 symbols of the entry alone, 2 of the text alone) and length; int32, shape (r, 2).
    run_starts
        Where the runs of each begin, and the end of the last; int64, shape (n + 1,).
    """

    entry: Any
    text_start: Any
    text_end: Any
    entry_start: Any
    entry_end: Any
    runs: Any
    run_starts: Any


class JoinedTexts(NamedTuple):
    """Texts and what they match.

    Attributes
    ----------
    letters
        All texts, one after the other; uint8.
    starts
        Where each begins, and the end of the last; int64, shape (n + 1,).
    prefixes, suffixes
        `Entries`.
    prefix, suffix
        `Matches`.
    """

    letters: Any
    starts: Any
    prefixes: Any
    suffixes: Any
    prefix: Any
    suffix: Any


@shared
def cut_overlaps(texts: Any, marks: Any, prefix: Any, suffix: Any, order: Any) -> None:
    """Copy all matches, cut where they overlap.

    Parameters
    ----------
    texts
        `JoinedTexts`.
    marks
        uint8 (2, longest text): scratch.
    prefix, suffix
        `Matches` with room for as many runs, to be filled.
    order
        uint8 (n,): `ALONE`, `ORDERED` or `CROSSED`, to be filled.
    """
    before = texts.prefix
    after = texts.suffix
    used = 0
    taken = 0
    for i in range(order.size):
        first = after.text_start[i]
        last = before.text_end[i]
        order[i] = ALONE
        if before.entry[i] >= 0 and after.entry[i] >= 0:
            fits = before.text_start[i] <= first and last <= after.text_end[i]
            order[i] = ORDERED if fits else CROSSED
        if order[i] == ORDERED and first < last:
            cut = best_cut(texts, i, first, last, marks)
            ends = copy_before(texts, i, cut, prefix, used)
            begins = copy_after(texts, i, cut, suffix, taken)
            if ends > used and begins > taken:
                used = ends
                taken = begins
                prefix.run_starts[i + 1] = used
                suffix.run_starts[i + 1] = taken
                continue
            order[i] = CROSSED
        used = copy_all(before, i, prefix, used)
        taken = copy_all(after, i, suffix, taken)


@shared
def best_cut(texts: Any, i: int, first: int, last: int, marks: Any) -> int:
    """Place in [first, last] with most equal pairs of the prefix before it and of the suffix from it on."""
    base = texts.starts[i]
    mark_equal(texts.letters, base, texts.prefixes, texts.prefix, i, first, last, marks[0])
    mark_equal(texts.letters, base, texts.suffixes, texts.suffix, i, first, last, marks[1])
    gained = 0
    most = 0
    cut = first
    for k in range(last - first):
        gained += int(marks[0, k]) - int(marks[1, k])
        if gained >= most:
            most = gained
            cut = first + k + 1
    return cut


@shared
def mark_equal(
    letters: Any, base: int, entries: Any, matches: Any, i: int, first: int, last: int, marks: Any
) -> None:
    """Mark the symbols of [first, last) that are paired with an equal one."""
    for k in range(last - first):
        marks[k] = 0
    p = matches.text_start[i]
    q = entries.starts[matches.entry[i]] + matches.entry_start[i]
    for r in range(matches.run_starts[i], matches.run_starts[i + 1]):
        kind = matches.runs[r, 0]
        length = matches.runs[r, 1]
        if kind == 0:
            for k in range(max(0, first - p), min(length, last - p)):
                if letters[base + p + k] == entries.letters[q + k]:
                    marks[p + k - first] = 1
        p += 0 if kind == 1 else length
        q += 0 if kind == 2 else length


@shared
def copy_all(source: Any, i: int, out: Any, used: int) -> int:
    """Copy the match of a text; returns how many runs are used then."""
    out.entry[i] = source.entry[i]
    out.text_start[i] = source.text_start[i]
    out.text_end[i] = source.text_end[i]
    out.entry_start[i] = source.entry_start[i]
    out.entry_end[i] = source.entry_end[i]
    for r in range(source.run_starts[i], source.run_starts[i + 1]):
        out.runs[used, 0] = source.runs[r, 0]
        out.runs[used, 1] = source.runs[r, 1]
        used += 1
    out.run_starts[i + 1] = used
    return used


@shared
def copy_before(texts: Any, i: int, cut: int, out: Any, used: int) -> int:
    """Copy what of the prefix lies before a place and ends with an equal pair."""
    source = texts.prefix
    base = texts.starts[i]
    p = source.text_start[i]
    q = source.entry_start[i]
    letters = texts.prefixes.starts[source.entry[i]]
    out.entry[i] = source.entry[i]
    out.text_start[i] = out.text_end[i] = p
    out.entry_start[i] = out.entry_end[i] = q
    for r in range(source.run_starts[i], source.run_starts[i + 1]):
        length = source.runs[r, 1]
        if source.runs[r, 0] == 0:
            k = min(length, cut - p) - 1
            while k >= 0 and texts.letters[base + p + k] != texts.prefixes.letters[letters + q + k]:
                k -= 1
            if k >= 0:
                out.text_end[i] = p + k + 1
                out.entry_end[i] = q + k + 1
        p += 0 if source.runs[r, 0] == 1 else length
        q += 0 if source.runs[r, 0] == 2 else length
    p = source.text_start[i]
    for r in range(source.run_starts[i], source.run_starts[i + 1]):
        if p == out.text_end[i]:
            break
        kind = source.runs[r, 0]
        length = source.runs[r, 1] if kind == 1 else min(source.runs[r, 1], out.text_end[i] - p)
        out.runs[used, 0] = kind
        out.runs[used, 1] = length
        used += 1
        p += 0 if kind == 1 else length
    return used


@shared
def copy_after(texts: Any, i: int, cut: int, out: Any, used: int) -> int:
    """Copy what of the suffix lies behind a place and begins with an equal pair."""
    source = texts.suffix
    base = texts.starts[i]
    p = source.text_start[i]
    q = source.entry_start[i]
    letters = texts.suffixes.starts[source.entry[i]]
    out.entry[i] = source.entry[i]
    out.text_end[i] = source.text_end[i]
    out.entry_end[i] = source.entry_end[i]
    found = False
    for r in range(source.run_starts[i], source.run_starts[i + 1]):
        kind = source.runs[r, 0]
        length = source.runs[r, 1]
        k = 0
        if kind == 0 and not found:
            k = max(0, cut - p)
            while k < length and texts.letters[base + p + k] != texts.suffixes.letters[letters + q + k]:
                k += 1
            if k < length:
                found = True
                out.text_start[i] = p + k
                out.entry_start[i] = q + k
        if found:
            out.runs[used, 0] = kind
            out.runs[used, 1] = length - k
            used += 1
        p += 0 if kind == 1 else length
        q += 0 if kind == 2 else length
    return used
