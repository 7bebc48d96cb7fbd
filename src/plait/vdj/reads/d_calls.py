"""Where the parts of a rearrangement lie: V and J cut where they overlap, the D between, P nucleotides.

Texts are reads; prefix, suffix and fragment are V, J and D; the middle is the junction; triplets are codons.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.chain.insertions import Occurrences, keep, start
from plait.dp.pairs.traceback import put_run
from plait.lang.compile import kernel, shared
from plait.lang.lanes import lowest_bit


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


#: How the two matches of a text lie: at most one there, prefix before suffix, or anything else.
ALONE, ORDERED, CROSSED = range(3)


class Entries(NamedTuple):
    """What texts are matched with: `letters` (uint8) of all entries, `starts` (int64, (e + 1,)) offsets.

    `anchors`, int64 (e,): first symbol of the triplet that ends or begins what is joined, -1 where unknown.
    """

    letters: Any
    starts: Any
    anchors: Any


class Matches(NamedTuple):
    """One match of each text, or none (`entry` -1, int64); half-open coordinates, int32, shape (n,).

    `runs`, int32 (r, 2): kind (0 pairs, 1 symbols of the entry alone, 2 of the text alone) and length;
    `run_starts`, int64 (n + 1,), are offsets into them.
    """

    entry: Any
    text_start: Any
    text_end: Any
    entry_start: Any
    entry_end: Any
    runs: Any
    run_starts: Any


class JoinedTexts(NamedTuple):
    """Texts (uint8 `letters`, int64 `starts` (n + 1,)), and what they match.

    `prefixes` and `suffixes` are `Entries`, `prefix` and `suffix` `Matches`.
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

    `marks`, uint8 (2, longest text), is scratch from the caller. To be filled: `prefix` and `suffix`,
    `Matches` with room for as many runs, and `order`, uint8 (n,): `ALONE`, `ORDERED` or `CROSSED`.
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


#: Stands for "no symbol has a quality".
_NO_QUALITY = 255
#: A triplet that reads as this ends everything.
_STOP = 42


class LayoutTables(NamedTuple):
    """What decides how texts are laid out; fragments are D alleles, a group those of one germline set.

    `masks` (uint8 (256,)): bits of what a letter may mean, 0 for what is no letter. `mirror` (uint8 (16,)):
    mask of the complement. `triplets` (uint8 (4096,)): what three masks read as,
    ``first << 8 | second << 4 | third``.

    `places` (int64 (words, 16)): bits of the fragment positions that each mask matches; `word_starts`
    (groups + 1,): first word of each group; `fragment_of`, `fragment_bit` (words, bits): fragment of its
    group that a bit belongs to, and the first bit of that fragment; `allowed_starts` (suffixes, words): bits
    from which a fragment before a suffix may be matched. `group_starts` (groups + 1,) are offsets into
    `fragments`. All int64.

    `furthest`: how far from its match an anchor may lie. `least`: symbols that a fragment needs to be called.
    `most_extended`: longest mirrored extension of an end.
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

    `prefix_columns`, `prefix_equal`, `prefix_shifted`: columns of the alignment, equal pairs, and whether the
    gaps before the middle shift its triplets; for the suffix the same of the gaps behind it. `compared` and
    `errors`: pairs outside the middle that tell, and those that differ, with the gaps there. The middle lies
    from the anchor of the prefix to the end of the triplet at that of the suffix; -1 where unknown.

    `stops`: triplets of the middle's frame that read as a stop, from the start of the prefix (of the middle
    if the prefix is shifted) to the end of the suffix. `worst`: least quality in the middle, 255 where there
    is none. `fragment`: number of the called one in its group, -1 for none; `fragment_place`: where in it the
    match begins; `fragment_start`, `fragment_end`: the match in the text. The last four count symbols that
    mirror an unshortened end, next to it.
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
    """What of a text, from `base` in `letters`, is outside the middle, `low` to `high`.

    `masks`: bits of what a letter may mean.
    """

    letters: Any
    base: Any
    masks: Any
    low: Any
    high: Any


@shared
def lay_out(texts: Any, qualities: Any, groups: Any, order: Any, tables: Any, out: Any, choice: Any) -> None:
    """Fill `out`, the `Layout` of all texts, whose matches do not overlap.

    `qualities`: uint8, a number for each letter, or none at all. `groups`, int64 (n,): group of fragments of
    each text. `order`: as `cut_overlaps` fills it. `choice`, int64 (n,), gets the bits of the fragments of
    the group that match as long as the called one.
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


_COMMA, _GAP, _UNKNOWN = 44, 45, 78
#: Letters of runs: skipped symbols of the text and of the entry, equal and other pairs, and the two gaps.
_CLIP, _SKIP, _EQUAL, _OTHER = 83, 78, 61, 88
_GAPS = (0, 68, 73)


class Written(NamedTuple):
    """A column of texts under way: uint8 `letters` with room for all, int32 (n + 1,) offsets `bounds`."""

    letters: Any
    bounds: Any


class Columns(NamedTuple):
    """Aligned texts and entries, both `Written`, and where in them the parts lie.

    `fragment_at`, `suffix_at`: column in which the match with a fragment and that with the suffix begin,
    int32 (n,).
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
    """Write into `out` the runs of all matches, with what of text and entry lies before and after."""
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

    Nothing is written where prefix and suffix lie the wrong way round. `number`, int64 (n,): which of the
    fragments is called, -1 for none; `order` as `cut_overlaps` fills it.
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


@kernel
def cut_overlaps_kernel(texts: Any, marks: Any, prefix: Any, suffix: Any, order: Any) -> None:
    """See `plait.vdj.reads.d_calls.cut_overlaps`."""
    cut_overlaps(texts, marks, prefix, suffix, order)


@kernel
def lay_out_kernel(
    texts: Any, qualities: Any, groups: Any, order: Any, tables: Any, out: Any, choice: Any
) -> None:
    """See `plait.vdj.reads.d_calls.lay_out`."""
    lay_out(texts, qualities, groups, order, tables, out, choice)


@kernel
def join_slices_kernel(letters: Any, first: Any, length: Any, list_starts: Any, out: Any) -> None:
    """See `plait.vdj.reads.d_calls.join_slices`."""
    join_slices(letters, first, length, list_starts, out)


@kernel
def read_triplets_kernel(letters: Any, first: Any, length: Any, tables: Any, out: Any) -> None:
    """See `plait.vdj.reads.d_calls.read_triplets`."""
    read_triplets(letters, first, length, tables, out)


@kernel
def write_runs_kernel(letters: Any, starts: Any, entries: Any, matches: Any, out: Any) -> None:
    """See `plait.vdj.reads.d_calls.write_runs`."""
    write_runs(letters, starts, entries, matches, out)


@kernel
def write_columns_kernel(texts: Any, order: Any, layout: Any, fragments: Any, number: Any, out: Any) -> None:
    """See `plait.vdj.reads.d_calls.write_columns`."""
    write_columns(texts, order, layout, fragments, number, out)
