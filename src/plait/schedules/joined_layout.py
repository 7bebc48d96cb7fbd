"""Where the parts of joined texts lie: the anchored middle, a fragment, extended ends, and errors."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.schedules.joined_cuts import ORDERED
from plait.schedules.joined_fragments import call_fragment, extend_ends

__all__ = ["Layout", "LayoutTables", "Outside", "lay_out", "triplet_at"]

#: Stands for "no symbol has a quality".
_NO_QUALITY = 255
#: A triplet that reads as this ends everything.
_STOP = 42


class LayoutTables(NamedTuple):
    """What decides how texts are laid out.

    Attributes
    ----------
    masks
        uint8 (256,): bits of what a letter may mean, 0 for what is no letter.
    mirror
        uint8 (16,): mask of the opposite of each mask.
    triplets
        uint8 (4096,): what three masks read as, ``first << 8 | second << 4 | third``.
    places
        int64 (words, 16): bits of the fragment positions that each mask matches.
    word_starts
        int64 (groups + 1,): first word of each group of fragments.
    fragment_of, fragment_bit
        int64 (words, bits): which fragment of its group a bit belongs to, and the first bit of that fragment.
    allowed_starts
        int64 (suffixes, words): bits from which a fragment before a suffix may be matched.
    fragments
        `plait.schedules.joined_cuts.Entries` of all groups.
    group_starts
        int64 (groups + 1,): first fragment of each group.
    furthest
        How far from its match an anchor may lie.
    least
        Symbols that a fragment needs to be called.
    most_extended
        Longest mirrored extension of an end.
    """

    masks: Any
    mirror: Any
    triplets: Any
    places: Any
    word_starts: Any
    fragment_of: Any
    fragment_bit: Any
    allowed_starts: Any
    fragments: Any
    group_starts: Any
    furthest: Any
    least: Any
    most_extended: Any


class Layout(NamedTuple):
    """What is found of each text; int32 (n,) each, changed in place.

    Attributes
    ----------
    prefix_columns, prefix_equal, prefix_shifted
        Columns of the alignment, equal pairs, and whether the gaps before the middle shift its triplets.
    suffix_columns, suffix_equal, suffix_shifted
        The same for the suffix, of the gaps behind the middle.
    compared, errors
        Pairs outside the middle that tell, and those that differ, with the gaps there.
    middle_start, middle_end
        The middle, from the anchor of the prefix to the end of the triplet at that of the suffix; -1 where
        unknown.
    stops
        Triplets of the middle's frame that read as a stop, from the start of the prefix, of the middle if the
        prefix is shifted, to the end of the suffix.
    worst
        Least quality in the middle, 255 where there is none.
    fragment, fragment_place
        Number of the called fragment in its group, -1 for none, and where in it the match begins.
    fragment_start, fragment_end
        The match in the text.
    prefix_extended, fragment_extended_left, fragment_extended_right, suffix_extended
        Symbols that mirror an unshortened end, next to it.
    """

    prefix_columns: Any
    prefix_equal: Any
    prefix_shifted: Any
    suffix_columns: Any
    suffix_equal: Any
    suffix_shifted: Any
    compared: Any
    errors: Any
    middle_start: Any
    middle_end: Any
    stops: Any
    worst: Any
    fragment: Any
    fragment_place: Any
    fragment_start: Any
    fragment_end: Any
    prefix_extended: Any
    fragment_extended_left: Any
    fragment_extended_right: Any
    suffix_extended: Any


class Outside(NamedTuple):
    """A text and what of it is outside the middle.

    Attributes
    ----------
    letters, base
        Letters of all texts, and where this one begins.
    masks
        Bits of what a letter may mean.
    low, high
        The middle.
    """

    letters: Any
    base: Any
    masks: Any
    low: Any
    high: Any


@shared
def lay_out(texts: Any, qualities: Any, groups: Any, order: Any, tables: Any, out: Any, choice: Any) -> None:
    """Fill the layout of all texts.

    Parameters
    ----------
    texts
        `plait.schedules.joined_cuts.JoinedTexts` whose matches do not overlap.
    qualities
        uint8, a number for each letter, or none at all.
    groups
        int64 (n,): group of fragments of each text.
    order
        uint8 (n,): as `plait.schedules.joined_cuts.cut_overlaps` says.
    tables
        `LayoutTables`.
    out
        `Layout`.
    choice
        int64 (n,): bits of the fragments of the group that match as long as the called one.
    """
    for i in range(order.size):
        ordered = order[i] == ORDERED
        find_middle(texts, i, ordered, tables.furthest, out)
        known = out.middle_start[i] >= 0
        size = texts.starts[i + 1] - texts.starts[i]
        low = out.middle_start[i] if known else size
        high = out.middle_end[i] if known else size
        out.compared[i] = 0
        out.errors[i] = 0
        find_shifts(texts, i, known, out)
        outside = Outside(texts.letters, texts.starts[i], tables.masks, low, high)
        tally(outside, texts.prefixes, texts.prefix, i, out, out.prefix_equal, out.prefix_columns)
        tally(outside, texts.suffixes, texts.suffix, i, out, out.suffix_equal, out.suffix_columns)
        out.stops[i] = 0
        out.worst[i] = _NO_QUALITY
        if known:
            first = low if out.prefix_shifted[i] else texts.prefix.text_start[i]
            out.stops[i] = count_stops(texts, tables, i, low, first, texts.suffix.text_end[i])
            if qualities.size > 0:
                for k in range(texts.starts[i] + low, texts.starts[i] + high):
                    out.worst[i] = min(out.worst[i], qualities[k])
        call_fragment(texts, tables, groups[i], i, ordered, out, choice)
        extend_ends(texts, tables, groups[i], i, ordered, out)


@shared
def place_of(matches: Any, i: int, q: int, after: int) -> int:
    """Place in the text of symbol q of the entry, plus `after` where the text has that symbol."""
    if q < matches.entry_start[i]:
        return int(matches.text_start[i] - (matches.entry_start[i] - q) + after)
    if q >= matches.entry_end[i]:
        return int(matches.text_end[i] + (q - matches.entry_end[i]) + after)
    p: int = matches.text_start[i]
    left: int = q - matches.entry_start[i]
    for r in range(matches.run_starts[i], matches.run_starts[i + 1]):
        kind = matches.runs[r, 0]
        length = matches.runs[r, 1]
        if kind == 0:
            if left < length:
                return p + left + after
            p += length
            left -= length
        elif kind == 1:
            if left < length:
                return p
            left -= length
        else:
            p += length
    return p


@shared
def find_middle(texts: Any, i: int, ordered: bool, furthest: int, out: Any) -> None:
    """Map the two anchors to the text."""
    out.middle_start[i] = -1
    out.middle_end[i] = -1
    if not ordered:
        return
    prefix = texts.prefix
    suffix = texts.suffix
    left = texts.prefixes.anchors[prefix.entry[i]]
    right = texts.suffixes.anchors[suffix.entry[i]]
    if left < 0 or right < 0:
        return
    missed_left = max(prefix.entry_start[i] - left, left + 3 - prefix.entry_end[i])
    missed_right = max(suffix.entry_start[i] - right, right + 3 - suffix.entry_end[i])
    if max(missed_left, missed_right) > furthest:
        return
    begin = place_of(prefix, i, left, 0)
    end = place_of(suffix, i, right + 2, 1)
    if begin >= 0 and end <= texts.starts[i + 1] - texts.starts[i] and end - begin >= 6:
        out.middle_start[i] = begin
        out.middle_end[i] = end


@shared
def find_shifts(texts: Any, i: int, known: bool, out: Any) -> None:
    """Whether start and middle, and middle and end, have different frames in text and entry."""
    before = texts.prefix
    after = texts.suffix
    out.prefix_shifted[i] = 0
    out.suffix_shifted[i] = 0
    if before.entry[i] >= 0:
        p = int(out.middle_start[i] if known else before.text_end[i])
        q = int(texts.prefixes.anchors[before.entry[i]] if known else before.entry_end[i])
        shift = (p - before.text_start[i]) - (q - before.entry_start[i])
        out.prefix_shifted[i] = 1 if shift % 3 != 0 else 0
    if after.entry[i] >= 0:
        p = int(out.middle_end[i] if known else after.text_start[i])
        q = int(texts.suffixes.anchors[after.entry[i]] + 3 if known else after.entry_start[i])
        shift = (after.text_end[i] - p) - (after.entry_end[i] - q)
        out.suffix_shifted[i] = 1 if shift % 3 != 0 else 0


@shared
def tally(text: Any, entries: Any, matches: Any, i: int, out: Any, equal: Any, columns: Any) -> None:
    """Count columns and equal pairs, and outside of the middle the pairs that tell, differences and gaps."""
    equal[i] = 0
    columns[i] = 0
    if matches.entry[i] < 0:
        return
    p = matches.text_start[i]
    q = entries.starts[matches.entry[i]] + matches.entry_start[i]
    same = 0
    compared = 0
    errors = 0
    for r in range(matches.run_starts[i], matches.run_starts[i + 1]):
        kind = matches.runs[r, 0]
        length = matches.runs[r, 1]
        columns[i] += length
        if kind != 0:
            errors += 1 if p < text.low or p >= text.high else 0
            p += 0 if kind == 1 else length
            q += 0 if kind == 2 else length
            continue
        for k in range(length):
            a = text.letters[text.base + p + k]
            b = entries.letters[q + k]
            outside = p + k < text.low or p + k >= text.high
            if a == b:
                same += 1
                compared += 1 if outside else 0
            elif (text.masks[a] & text.masks[b]) == 0 and outside:
                compared += 1
                errors += 1
        p += length
        q += length
    equal[i] = same
    out.compared[i] += compared
    out.errors[i] += errors


@shared
def count_stops(texts: Any, tables: Any, i: int, anchor: int, first: int, last: int) -> int:
    """Stops among the whole triplets of [first, last) in the frame of the anchor."""
    base = texts.starts[i]
    stops = 0
    for p in range(first + (anchor - first) % 3, last - 2, 3):
        stops += 1 if triplet_at(texts.letters, base + p, tables) == _STOP else 0
    return stops


@shared
def triplet_at(letters: Any, p: int, tables: Any) -> int:
    """What the triplet at p reads as."""
    a = int(tables.masks[letters[p]])
    b = int(tables.masks[letters[p + 1]])
    c = int(tables.masks[letters[p + 2]])
    return int(tables.triplets[(a << 8) | (b << 4) | c])
