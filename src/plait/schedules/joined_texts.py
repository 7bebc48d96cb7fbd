"""Write what is found of joined texts as letters: slices, readings of triplets, runs and aligned columns."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.schedules.joined_cuts import CROSSED
from plait.schedules.joined_layout import triplet_at
from plait.schedules.path_columns import put_run

__all__ = ["Columns", "Written", "join_slices", "read_triplets", "write_columns", "write_runs"]

_COMMA, _GAP, _UNKNOWN = 44, 45, 78
#: Letters of runs: skipped symbols of the text and of the entry, equal and other pairs, and the two gaps.
_CLIP, _SKIP, _EQUAL, _OTHER = 83, 78, 61, 88
_GAPS = (0, 68, 73)


class Written(NamedTuple):
    """A column of texts under way.

    Attributes
    ----------
    letters
        uint8, with room for all.
    bounds
        Where each begins, and the end of the last; int32, shape (n + 1,).
    """

    letters: Any
    bounds: Any


class Columns(NamedTuple):
    """Aligned texts and entries, and where in them the parts lie; the last three int32, shape (n,).

    Attributes
    ----------
    text, entry
        `Written`.
    fragment_at, suffix_at
        Column in which the match with a fragment and that with the suffix begin.
    """

    text: Any
    entry: Any
    fragment_at: Any
    suffix_at: Any


@shared
def join_slices(letters: Any, first: Any, length: Any, list_starts: Any, out: Any) -> None:
    """Join slices of letters, a comma between two of one list."""
    at = 0
    for i in range(list_starts.size - 1):
        for k in range(list_starts[i], list_starts[i + 1]):
            if k > list_starts[i]:
                out.letters[at] = _COMMA
                at += 1
            for x in range(length[k]):
                out.letters[at + x] = letters[first[k] + x]
            at += length[k]
        out.bounds[i + 1] = at


@shared
def read_triplets(letters: Any, first: Any, length: Any, tables: Any, out: Any) -> None:
    """Read the whole triplets of slices of letters."""
    at = 0
    for i in range(first.size):
        for p in range(first[i], first[i] + length[i] - 2, 3):
            out.letters[at] = triplet_at(letters, p, tables)
            at += 1
        out.bounds[i + 1] = at


@shared
def write_runs(letters: Any, starts: Any, entries: Any, matches: Any, out: Any) -> None:
    """Write the runs of all matches, with what of text and entry lies before and after.

    Parameters
    ----------
    letters, starts
        The texts.
    entries, matches
        `plait.schedules.joined_cuts.Entries` and `Matches`.
    out
        `Written`.
    """
    at = 0
    for i in range(matches.entry.size):
        e = matches.entry[i]
        if e >= 0:
            text = starts[i] + matches.text_start[i]
            entry = entries.starts[e] + matches.entry_start[i]
            at = put_run(out.letters, at, matches.text_start[i], _CLIP)
            at = put_run(out.letters, at, matches.entry_start[i], _SKIP)
            for r in range(matches.run_starts[i], matches.run_starts[i + 1]):
                kind = matches.runs[r, 0]
                length = matches.runs[r, 1]
                if kind == 0:
                    at = put_pairs(letters, text, entries.letters, entry, length, out.letters, at)
                else:
                    at = put_run(out.letters, at, length, _GAPS[kind])
                text += 0 if kind == 1 else length
                entry += 0 if kind == 2 else length
            at = put_run(out.letters, at, starts[i + 1] - starts[i] - matches.text_end[i], _CLIP)
            size = entries.starts[e + 1] - entries.starts[e]
            at = put_run(out.letters, at, size - matches.entry_end[i], _SKIP)
        out.bounds[i + 1] = at


@shared
def put_pairs(letters: Any, text: int, others: Any, entry: int, length: int, out: Any, at: int) -> int:
    """Write pairs as runs of equal and of other ones."""
    first = 0
    while first < length:
        equal = letters[text + first] == others[entry + first]
        k = first + 1
        while k < length and (letters[text + k] == others[entry + k]) == equal:
            k += 1
        at = put_run(out, at, k - first, _EQUAL if equal else _OTHER)
        first = k
    return at


@shared
def write_columns(texts: Any, order: Any, layout: Any, fragments: Any, number: Any, out: Any) -> None:
    """Write text and entries as columns, from the start of the prefix to the end of the suffix.

    Nothing is written where prefix and suffix lie the wrong way round.

    Parameters
    ----------
    texts
        `plait.schedules.joined_cuts.JoinedTexts`.
    order
        uint8 (n,): how prefix and suffix lie.
    layout
        `plait.schedules.joined_layout.Layout`.
    fragments
        `plait.schedules.joined_cuts.Entries`.
    number
        int64 (n,): which of them is called, -1 for none.
    out
        `Columns`.
    """
    at = 0
    for i in range(order.size):
        first = at
        if order[i] != CROSSED:
            has_prefix = texts.prefix.entry[i] >= 0
            if has_prefix:
                at = put_columns(texts.letters, texts.starts[i], texts.prefixes, texts.prefix, i, out, at)
            if texts.suffix.entry[i] >= 0:
                if has_prefix:
                    at = put_between(texts, i, layout, fragments, number[i], out, at, first)
                out.suffix_at[i] = at - first
                at = put_columns(texts.letters, texts.starts[i], texts.suffixes, texts.suffix, i, out, at)
        out.text.bounds[i + 1] = at
        out.entry.bounds[i + 1] = at


@shared
def put_between(
    texts: Any, i: int, layout: Any, fragments: Any, number: int, out: Any, at: int, first: int
) -> int:
    """Write what lies between prefix and suffix."""
    end: int = texts.suffix.text_start[i]
    begin: int = texts.prefix.text_end[i]
    base = texts.starts[i]
    for p in range(begin, end):
        out.text.letters[at + p - begin] = texts.letters[base + p]
        out.entry.letters[at + p - begin] = _UNKNOWN
    if number >= 0:
        place = at + layout.fragment_start[i] - begin
        out.fragment_at[i] = place - first
        entry = fragments.starts[number] + layout.fragment_place[i]
        for k in range(layout.fragment_end[i] - layout.fragment_start[i]):
            out.entry.letters[place + k] = fragments.letters[entry + k]
    return at + end - begin


@shared
def put_columns(letters: Any, base: int, entries: Any, matches: Any, i: int, out: Any, at: int) -> int:
    """Write the columns of a match."""
    text = base + matches.text_start[i]
    entry = entries.starts[matches.entry[i]] + matches.entry_start[i]
    for r in range(matches.run_starts[i], matches.run_starts[i + 1]):
        kind = matches.runs[r, 0]
        length = matches.runs[r, 1]
        for k in range(length):
            out.text.letters[at + k] = _GAP if kind == 1 else letters[text + k]
            out.entry.letters[at + k] = _GAP if kind == 2 else entries.letters[entry + k]
        at += length
        text += 0 if kind == 1 else length
        entry += 0 if kind == 2 else length
    return at
