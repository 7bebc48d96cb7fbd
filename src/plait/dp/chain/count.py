"""Path counts and the region call of each junction.

The chain as a product of V, insertions, D, insertions, J.
"""

from __future__ import annotations

from typing import Any

from plait.dp.chain.insertions import Occurrences, keep, start
from plait.dp.chain.rows import (
    PositionRows,
    Span,
    add_match,
    clear_carry,
    clear_row,
    collect,
    fill_left,
    fill_right,
    first_end,
    insert_middle,
    sum_without_fragment,
)
from plait.dp.chain.tables import ALIVE_ROWS
from plait.lang.algebras import choice, extend
from plait.lang.compile import shared
from plait.lang.lanes import PADDING, any_bits, load, lowest_bit, population, splat, store


@shared
def load_text(alg: Any, tables: Any, texts: Any, item: int, scratch: Any) -> Any:
    """Copy a text's masks and insertion weights to scratch; returns its length and whether all weigh one."""
    first = texts.start[item]
    length = texts.length[item]
    plain = True
    for i in range(length):
        mask = texts.symbols[first + i]
        weight = tables.symbol_weight[mask]
        scratch.masks[i] = mask
        scratch.weight[i] = weight
        plain = plain and weight == alg.one
    scratch.weight[length] = alg.one
    return length, plain


@shared
def matched_prefix(tables: Any, prefix: int, masks: Any, length: int) -> int:
    """Length of the longest prefix of the text that is a prefix of the extended end."""
    n = 0
    most = min(length, tables.prefix_length[prefix])
    while n < most and (tables.prefix_symbols[prefix, n] & masks[n]) != 0:
        n += 1
    return n


@shared
def matched_suffix(tables: Any, suffix: int, masks: Any, length: int) -> int:
    """Length of the longest suffix of the text that is a suffix of the extended end."""
    n = 0
    most = min(length, tables.suffix_length[suffix])
    while n < most and (tables.suffix_symbols[suffix, n] & masks[length - 1 - n]) != 0:
        n += 1
    return n


@shared
def mirror_arms(mirror: Any, masks: Any, length: int, most: int, arms: Any) -> None:
    """For every centre c, the largest p <= most with text[c-p:c) the reverse complement of text[c:c+p)."""
    for c in range(length + 1):
        p = 0
        reach = min(most, c, length - c)
        while p < reach and (masks[c - 1 - p] & mirror[masks[c + p]]) != 0:
            p += 1
        arms[c] = p


@shared
def find_occurrences(lanes: Any, words: Any, suffix: int, pairs: int, length: int, scratch: Any) -> None:
    """Fill `alive` and `depth`: rows ``w * ALIVE_ROWS + 1 .. + depth[w]`` belong to word w.

    Only fragments that may precede the suffix are looked for; all of them if there are pairs.
    """
    for w in range(words.places.shape[0]):
        automaton = Occurrences(words.every_start[w] if pairs > 0 else words.allowed_starts[suffix, w])
        for a in range(length):
            scratch.places[0, a] = words.places[w, scratch.masks[a]]
        for x in range(length, length + words.longest + PADDING):
            scratch.places[0, x] = 0
        for x in range(0, length, lanes.width):
            store(lanes, scratch.alive, w * ALIVE_ROWS, x, splat(lanes, start(automaton)))
        scratch.depth[w] = read_all(lanes, words.longest, w * ALIVE_ROWS, length, scratch)


@shared
def read_all(lanes: Any, longest: int, row: int, length: int, scratch: Any) -> int:
    """Read symbols until no occurrence is left; returns how many were read before that."""
    read = 0
    while read < longest:
        left = splat(lanes, 0)
        for x in range(0, length, lanes.width):
            before = load(lanes, scratch.alive, row + read, x)
            after = keep(Occurrences(0), before, load(lanes, scratch.places, 0, x + read), splat(lanes, read))
            left = left | after
            store(lanes, scratch.alive, row + read + 1, x, after)
        if any_bits(left) == 0:
            break
        read += 1
    return read


@shared
def find_regions(tables: Any, suffix: int, length: int, scratch: Any, regions: Any, item: int) -> None:
    """Write the fragment columns of `plait.dp.chain.tables.REGION_FIELDS`.

    Ties between positions and fragments are joined: leftmost start and rightmost end of all longest
    occurrences; ``fragment_choice`` has one bit per fragment that reaches the length. The extended part
    counted at an end is that of the occurrence with the fewest extended symbols there.
    """
    words = tables.words
    regions[item, 2] = 0
    regions[item, 3] = -1
    regions[item, 4] = -1
    regions[item, 5] = 0
    regions[item, 6] = 0
    regions[item, 7] = 0
    for w in range(words.places.shape[0]):
        allowed = words.allowed_starts[suffix, w]
        read = scratch.depth[w]
        found = False
        while read > 0 and read >= regions[item, 2] and not found:
            for a in range(length - read + 1):
                starts = scratch.alive[w * ALIVE_ROWS + read, a] & allowed
                if starts != 0:
                    found = True
                    join_occurrence(tables, w, a, read, starts, length, regions, item)
            read -= 1
    begin = regions[item, 0]
    end = length - regions[item, 1]
    known = regions[item, 2] > 0
    tally(scratch.masks, begin, regions[item, 3] if known else end, regions, item, 8)
    tally(scratch.masks, regions[item, 4] if known else end, end, regions, item, 12)
    tally(scratch.masks, begin, end, regions, item, 16)


@shared
def join_occurrence(
    tables: Any, w: int, a: int, read: int, starts: int, length: int, regions: Any, item: int
) -> None:
    """Widen the call to the occurrences of `read` symbols at position a, in one word of fragments."""
    words = tables.words
    if read > regions[item, 2]:
        regions[item, 2] = read
        regions[item, 3] = length
        regions[item, 4] = -1
        regions[item, 7] = 0
    fewest_left = read
    fewest_right = read
    while starts != 0:
        bit = lowest_bit(starts)
        starts = starts & (starts - 1)
        f = words.fragment_of[w, bit]
        s = bit - words.first[f]
        fewest_left = min(fewest_left, max(0, tables.region_left[f] - s))
        fewest_right = min(fewest_right, max(0, s + read - tables.region_right[f]))
        regions[item, 7] = regions[item, 7] | (1 << f)
    if a < regions[item, 3] or (a == regions[item, 3] and fewest_left < regions[item, 5]):
        regions[item, 3] = a
        regions[item, 5] = fewest_left
    if a + read > regions[item, 4] or (a + read == regions[item, 4] and fewest_right < regions[item, 6]):
        regions[item, 4] = a + read
        regions[item, 6] = fewest_right


@shared
def tally(masks: Any, begin: int, end: int, regions: Any, item: int, column: int) -> None:
    """Count the symbols of [begin, end) that contain each mask bit, to four columns."""
    # Four counters in one word: 15 bits apart, which holds any text that can be counted.
    counters = 0
    for i in range(begin, end):
        mask = masks[i]
        counters += (mask & 1) | ((mask & 2) << 14) | ((mask & 4) << 28) | ((mask & 8) << 42)
    for bit in range(4):
        regions[item, column + bit] = (counters >> (15 * bit)) & 0x7FFF


@shared
def chain_item(kind: Any, alg: Any, tables: Any, texts: Any, item: int, scratch: Any, out: Any) -> None:
    """All counts and region calls of one text; overwrites row `item` of `out`, scratch is the caller's."""
    prefix = texts.prefix[item]
    suffix = texts.suffix[item]
    length, plain = load_text(alg, tables, texts, item, scratch)
    m_prefix = matched_prefix(tables, prefix, scratch.masks, length)
    m_suffix = matched_suffix(tables, suffix, scratch.masks, length)
    pairs = out.pair.shape[1]
    find_occurrences(kind.lanes, tables.words, suffix, pairs, length, scratch)
    if out.regions.shape[1] > 0:
        out.regions[item, 0] = m_prefix
        out.regions[item, 1] = m_suffix
        find_regions(tables, suffix, length, scratch, out.regions, item)
    hidden = tables.hidden_row.shape[1] - 1
    if hidden > 0:
        mirror_arms(tables.mirror, scratch.masks, length, hidden, scratch.arms)
    levels = kind.insertion.levels
    last = min(length, m_prefix + levels - 1)
    first = max(0, length - m_suffix - levels + 1)
    span = Span(prefix, suffix, m_prefix, m_suffix, length, first, last)
    fill_left(kind.rows, kind, alg, tables, span, scratch)
    after = fill_right(kind.rows, kind, alg, tables, span, plain, scratch)
    sum_paths(kind, alg, tables, span, after, scratch)
    write_counts(kind, alg, tables, span, scratch, out, item)
    if pairs > 0:
        sum_two_fragments(kind, alg, tables, span, after, scratch, out, item)
    out.bound[item] = bound_of(levels, tables, span, scratch.masks, pairs)


@shared
def sum_paths(kind: Any, alg: Any, tables: Any, span: Any, after: Any, scratch: Any) -> None:
    """Paths with one fragment, by fragment, and without one: the rows of `total`."""
    fragments = tables.words.length.size
    levels = kind.insertion.levels
    for t in range(fragments + 2):
        clear_row(kind, alg, scratch.total, t)
        clear_carry(kind.rows, kind, alg, span, scratch, t)
    sum_without_fragment(kind.rows, kind, alg, tables, span, after, scratch, fragments + 1)
    for a in range(span.last, -1, -1):
        nothing = a >= first_end(kind.rows, span, levels, a)
        collect(kind.rows, kind, alg, tables, span, scratch, a, after, a, nothing, fragments)
    inner = PositionRows(scratch.inner, 0, 0, 0)
    for f in range(fragments):
        if tables.allowed[span.suffix, f] != 0:
            for a in range(span.last, -1, -1):
                first = first_end(kind.rows, span, levels, a)
                found = sum_from(kind, alg, tables, span, f, a, first, scratch, after)
                collect(kind.rows, kind, alg, tables, span, scratch, a, inner, 0, found, f)


@shared
def write_counts(kind: Any, alg: Any, tables: Any, span: Any, scratch: Any, out: Any, item: int) -> None:
    """Put the rows of `total` into the output, with the share of fully deleted fragments."""
    total = scratch.total
    lane = tables.out_lane
    fragments = tables.words.length.size
    if out.none.shape[1] > 0:
        for x in range(lane.size):
            out.none[item, lane[x]] = total[fragments + 1, x]
    for f in range(fragments):
        row = tables.empty_row[f] if tables.allowed[span.suffix, f] != 0 else 0
        for x in range(lane.size):
            empty = extend(alg, total[fragments, x], tables.fragment_weights[row, x])
            full = choice(alg, total[f, x], empty)
            if out.empty.shape[1] > 0:
                out.empty[item, f, lane[x]] = empty
            if out.full.shape[1] == fragments:
                out.full[item, f, lane[x]] = full
            else:
                out.full[item, 0, lane[x]] = choice(alg, out.full[item, 0, lane[x]], full) if f > 0 else full


@shared
def sum_from(
    kind: Any, alg: Any, tables: Any, span: Any, f: int, a: int, first: int, scratch: Any, after: Any
) -> bool:
    """Sum over matches of fragment f that start at `a` and end at b >= first, each with `after` of b.

    Returns whether there is any; ``inner[0]`` is only written then.
    """
    words = tables.words
    weights = tables.fragment_weights
    if a == span.length or a + tables.joined_length[f] + tables.hidden_row.shape[1] - 1 < first:
        return False
    word = words.word[f]
    depth = scratch.depth[word]
    read = 0
    found = False
    while read < depth:
        alive = scratch.alive[word * ALIVE_ROWS + read + 1, a] & tables.joined_starts[f]
        if alive == 0:
            break
        read += 1
        if a + read < first:
            continue
        alike = population(alive & tables.plain_starts[f, read])
        if alike > 0:
            row = tables.fragment_row[f, 0, read]
            add_match(kind, alg, weights, row, alike, after, a + read, found, scratch.inner)
            found = True
        rest = alive & ~tables.plain_starts[f, read]
        while rest != 0:
            s = lowest_bit(rest) - words.first[f] - tables.joined_left[f]
            rest = rest & (rest - 1)
            row = tables.fragment_row[f, s, s + read]
            add_match(kind, alg, weights, row, 1, after, a + read, found, scratch.inner)
            found = True
    return sum_mirrored(kind, alg, tables, span, f, a, first, scratch, after, found)


@shared
def sum_mirrored(
    kind: Any,
    alg: Any,
    tables: Any,
    span: Any,
    f: int,
    a: int,
    first: int,
    scratch: Any,
    after: Any,
    found: bool,
) -> bool:
    """The matches of `sum_from` whose first p symbols are the reverse complement of whatever follows them."""
    words = tables.words
    weights = tables.fragment_weights
    bit = words.first[f] + tables.joined_left[f]
    for p in range(1, tables.hidden_row.shape[1]):
        if a + 2 * p > span.length:
            break
        if scratch.arms[a + p] < p:
            continue
        t = 0
        while True:
            b = a + p + t
            if b >= first:
                row = tables.hidden_row[f, p, t]
                add_match(kind, alg, weights, row, 1, after, b, found, scratch.inner)
                found = True
            if b == span.length or t == tables.joined_length[f]:
                break
            if (words.places[words.word[f], scratch.masks[b]] >> (bit + t)) & 1 == 0:
                break
            t += 1
    return found


@shared
def sum_two_fragments(
    kind: Any, alg: Any, tables: Any, span: Any, after: Any, scratch: Any, out: Any, item: int
) -> None:
    """Paths with two fragments: the second one and what follows it take the place of `after`."""
    inner = PositionRows(scratch.inner, 0, 0, 0)
    behind = PositionRows(scratch.behind, scratch.lead, 1, 0)
    fragments = tables.words.length.size
    weights = tables.fragment_weights
    for second in range(fragments):
        filled = False
        for f in range(fragments):
            clear_row(kind, alg, scratch.total, f)
            if tables.allowed[span.suffix, second] != 0 and tables.pair_allowed[f, second] != 0:
                if not filled:
                    fill_behind(kind, alg, tables, span, second, after, scratch)
                    filled = True
                clear_carry(kind.rows, kind, alg, span, scratch, f)
                row = tables.empty_row[f]
                for a in range(span.last, -1, -1):
                    found = sum_from(kind, alg, tables, span, f, a, 0, scratch, behind)
                    add_match(kind, alg, weights, row, 1, behind, a, found, scratch.inner)
                    collect(kind.rows, kind, alg, tables, span, scratch, a, inner, 0, True, f)
            for x in range(tables.out_lane.size):
                out.pair[item, f * fragments + second, tables.out_lane[x]] = scratch.total[f, x]


@shared
def fill_behind(kind: Any, alg: Any, tables: Any, span: Any, second: int, after: Any, scratch: Any) -> None:
    """Rows of `behind`: insertions, the second of two fragments, and all that follows it."""
    inner = scratch.inner
    weights = tables.fragment_weights
    row = tables.empty_row[second]
    for c in range(span.length + 1):
        found = sum_from(kind, alg, tables, span, second, c, span.first, scratch, after)
        if c >= span.first:
            add_match(kind, alg, weights, row, 1, after, c, found, inner)
            found = True
        for x in range(inner.shape[1]):
            scratch.middle[c, x] = inner[0, x] if found else alg.zero
    insert_middle(kind.rows, kind, alg, tables, span, scratch)


@shared
def bound_of(levels: int, tables: Any, span: Any, masks: Any, pairs: int) -> Any:
    """A number that no count of this text exceeds, final or on the way, from the numbers of matches.

    What insertions add is cut off far above any limit: all that matters there is that it is too large.
    """
    fragments = (span.length + 1.0) * tables.bound_fragment
    if pairs > 0:
        fragments = fragments * fragments
    # No path inserts more symbols than its insertions allow; none weighs more than one opposite a full mask.
    largest = tables.bound_symbol[15] ** min(3.0 * levels, 400.0)
    weight = 1.0
    for i in range(span.length):
        if weight < largest:
            weight = weight * tables.bound_symbol[masks[i]]
    weight = min(weight, largest)
    return (span.m_prefix + 1.0) * (span.m_suffix + 1.0) * tables.bound_ends * fragments * weight


@shared
def enumerate_item(tables: Any, texts: Any, item: int, most: int, letters: Any, out: Any) -> None:
    """Count the ways to make one text with 0..most inserted symbols, trying every string of them.

    `tables` has rows `PerInsertions` (fragments extended at both ends); its weights are not read, but for the
    number of ways in which a fragment may vanish. `letters` is scratch of at least `most` integers; `out` is
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
