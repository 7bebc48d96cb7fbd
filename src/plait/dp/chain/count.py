"""Path counts and the region call of each junction.

The chain as a product of V, insertions, D, insertions, J.
"""

from __future__ import annotations

from typing import Any

from plait.dp.chain.insertions import Occurrences, insert, keep, start
from plait.dp.chain.rows import (
    PerInsertions,
    PerModel,
    PerPosition,
    PositionRows,
    Span,
    add_match,
    clear_carry,
    clear_row,
    collect,
    fill_ends,
    first_end,
    insert_middle,
    sum_vj,
)
from plait.dp.chain.tables import ALIVE_ROWS, LINES
from plait.lang.algebras import choice, extend, over_lanes
from plait.lang.compile import by_type_of, shared
from plait.lang.lanes import (
    PADDING,
    any_bits,
    equal,
    last_lane,
    load,
    lowest_bit,
    population,
    select,
    shift_in,
    splat,
    store,
)


@shared
def load_text(alg: Any, tables: Any, texts: Any, item: int, scratch: Any) -> Any:
    """Copy a junction's IUPAC bits and weights to scratch; returns its length and whether all weigh one."""
    first = texts.start[item]
    length = texts.length[item]
    plain = True
    for i in range(length):
        bits = texts.symbols[first + i]
        weight = tables.symbol_weight[bits]
        scratch.masks[i] = bits
        scratch.weight[i] = weight
        plain = plain and weight == alg.one
    scratch.weight[length] = alg.one
    return length, plain


@shared
def matched(bases: Any, end: int, most: int, masks: Any, at: int, step: int) -> int:
    """How many bases of an end, up to `most`, match the junction from `at` on, in steps of 1 or -1."""
    n = 0
    while n < most and (bases[end, n] & masks[at + step * n]) != 0:
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
def find_places(words: Any, length: int, scratch: Any) -> None:
    """Fill `places`: for every word and base, the bits of the D gene positions that match it."""
    for w in range(words.places.shape[0]):
        for a in range(length):
            scratch.places[w, PADDING + a] = words.places[w, scratch.masks[a]]
        for x in range(PADDING + length, length + words.longest + 2 * PADDING):
            scratch.places[w, x] = 0


@shared
def find_occurrences(lanes: Any, words: Any, j: int, pairs: int, length: int, scratch: Any) -> None:
    """Fill `alive` and `depth`: rows ``w * ALIVE_ROWS + 1 .. + depth[w]`` belong to word w.

    Only D genes that may precede the J are looked for; all of them if there are pairs.
    """
    for w in range(words.places.shape[0]):
        automaton = Occurrences(words.every_start[w] if pairs > 0 else words.allowed_starts[j, w])
        for x in range(0, length, lanes.width):
            store(lanes, scratch.alive, w * ALIVE_ROWS, x, splat(lanes, start(automaton)))
        scratch.depth[w] = read_all(lanes, words.longest, w, length, scratch)


@shared
def read_all(lanes: Any, longest: int, w: int, length: int, scratch: Any) -> int:
    """Read bases until no occurrence of word w is left; returns how many were read before that."""
    row = w * ALIVE_ROWS
    read = 0
    while read < longest:
        left = splat(lanes, 0)
        for x in range(0, length, lanes.width):
            before = load(lanes, scratch.alive, row + read, x)
            places = load(lanes, scratch.places, w, PADDING + x + read)
            after = keep(Occurrences(0), before, places, splat(lanes, read))
            left = left | after
            store(lanes, scratch.alive, row + read + 1, x, after)
        if any_bits(left) == 0:
            break
        read += 1
    return read


@shared
def find_regions(tables: Any, j: int, length: int, scratch: Any, regions: Any, item: int) -> None:
    """Write the D columns of `plait.dp.chain.tables.REGION_FIELDS`.

    Ties between positions and D genes are joined: leftmost start and rightmost end of all longest
    occurrences; ``d_alleles`` has one bit per D that reaches the length. The extended part
    counted at an end is that of the occurrence with the fewest extended bases there.
    """
    words = tables.words
    for column in range(2, 8):
        regions[item, column] = -1 if column == 3 or column == 4 else 0
    for w in range(words.places.shape[0]):
        allowed = words.allowed_starts[j, w]
        read = scratch.depth[w]
        found = False
        while read > 0 and read >= regions[item, 2] and not found:
            for a in range(length - read + 1):
                starts = scratch.alive[w * ALIVE_ROWS + read, a] & allowed
                if starts != 0:
                    found = True
                    join_occurrence(tables, w, a, read, starts, length, regions, item)
            read -= 1
    begin, end = regions[item, 0], length - regions[item, 1]
    known = regions[item, 2] > 0
    tally(scratch.masks, begin, regions[item, 3] if known else end, regions, item, 8)
    tally(scratch.masks, regions[item, 4] if known else end, end, regions, item, 12)
    tally(scratch.masks, begin, end, regions, item, 16)


@shared
def join_occurrence(
    tables: Any, w: int, a: int, read: int, starts: int, length: int, regions: Any, item: int
) -> None:
    """Widen the call to the occurrences of `read` bases at position a, in one word of D genes."""
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
        f = words.d_of[w, bit]
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
    """Count the bases of [begin, end) that contain each base, to four columns."""
    # Four counters in one word: 15 bits apart, which holds any text that can be counted.
    counters = 0
    for i in range(begin, end):
        bits = masks[i]
        counters += (bits & 1) | ((bits & 2) << 14) | ((bits & 4) << 28) | ((bits & 8) << 42)
    for bit in range(4):
        regions[item, column + bit] = (counters >> (15 * bit)) & 0x7FFF


@shared
def chain_item(kind: Any, alg: Any, tables: Any, texts: Any, item: int, scratch: Any, out: Any) -> None:
    """All counts and region calls of a junction; overwrites row `item` of `out`, scratch is the caller's."""
    v, j = texts.v[item], texts.j[item]
    length, plain = load_text(alg, tables, texts, item, scratch)
    m_v = matched(tables.v_bases, v, min(length, tables.v_length[v]), scratch.masks, 0, 1)
    m_j = matched(tables.j_bases, j, min(length, tables.j_length[j]), scratch.masks, length - 1, -1)
    pairs = out.pair.shape[1]
    find_places(tables.words, length, scratch)
    if out.regions.shape[1] > 0:
        find_occurrences(kind.lanes, tables.words, j, pairs, length, scratch)
        out.regions[item, 0] = m_v
        out.regions[item, 1] = m_j
        find_regions(tables, j, length, scratch, out.regions, item)
    levels = kind.insertion.levels
    last = min(length, m_v + levels - 1)
    first = max(0, length - m_j - levels + 1)
    span = Span(v, j, m_v, m_j, length, first, last)
    sum_chain(kind.rows, kind, alg, tables, span, plain, scratch, out, item)
    out.bound[item] = bound_of(levels, tables, span, plain, scratch.masks, pairs)


@shared
def sum_over_matches(
    rows: Any, kind: Any, alg: Any, tables: Any, span: Any, plain: bool, scratch: Any, out: Any, item: int
) -> None:
    """`sum_chain` match by match of the D genes, all models or numbers of insertions of each in lanes."""
    palindrome = tables.palindrome_row.shape[1] - 1
    if out.regions.shape[1] == 0:
        find_occurrences(kind.lanes, tables.words, span.j, out.pair.shape[1], span.length, scratch)
    if palindrome > 0:
        mirror_arms(tables.mirror, scratch.masks, span.length, palindrome, scratch.arms)
    after = fill_ends(kind.rows, kind, alg, tables, span, plain, scratch)
    sum_paths(kind, alg, tables, span, after, scratch)
    write_counts(kind, alg, tables, span, scratch, out, item)
    if out.pair.shape[1] > 0:
        sum_two_d(kind, alg, tables, span, after, scratch, out, item)


@shared
def sum_paths(kind: Any, alg: Any, tables: Any, span: Any, after: Any, scratch: Any) -> None:
    """Paths with one D, by D, and without one: the rows of `total`."""
    genes = tables.words.length.size
    levels = kind.insertion.levels
    for t in range(genes + 2):
        clear_row(kind, alg, scratch.total, t)
        clear_carry(kind.rows, kind, alg, span, scratch, t)
    sum_vj(kind.rows, kind, alg, tables, span, after, scratch, genes + 1)
    for a in range(span.last, -1, -1):
        nothing = a >= first_end(kind.rows, span, levels, a)
        collect(kind.rows, kind, alg, tables, span, scratch, a, after, a, nothing, genes)
    inner = PositionRows(scratch.inner, 0, 0, 0)
    for f in range(genes):
        if tables.allowed[span.j, f] != 0:
            for a in range(span.last, -1, -1):
                first = first_end(kind.rows, span, levels, a)
                found = sum_from(kind, alg, tables, span, f, a, first, scratch, after)
                collect(kind.rows, kind, alg, tables, span, scratch, a, inner, 0, found, f)


@shared
def write_counts(kind: Any, alg: Any, tables: Any, span: Any, scratch: Any, out: Any, item: int) -> None:
    """Put the rows of `total` into the output, with the share of fully deleted D."""
    total = scratch.total
    lane = tables.out_lane
    genes = tables.words.length.size
    if out.none.shape[1] > 0:
        for x in range(lane.size):
            out.none[item, lane[x]] = total[genes + 1, x]
    for f in range(genes):
        row = tables.empty_row[f] if tables.allowed[span.j, f] != 0 else 0
        for x in range(lane.size):
            empty = extend(alg, total[genes, x], tables.d_weights[row, x])
            full = choice(alg, total[f, x], empty)
            if out.empty.shape[1] > 0:
                out.empty[item, f, lane[x]] = empty
            if out.full.shape[1] == genes:
                out.full[item, f, lane[x]] = full
            else:
                out.full[item, 0, lane[x]] = choice(alg, out.full[item, 0, lane[x]], full) if f > 0 else full


@shared
def sum_from(
    kind: Any, alg: Any, tables: Any, span: Any, f: int, a: int, first: int, scratch: Any, after: Any
) -> bool:
    """Sum over matches of D gene f that start at `a` and end at b >= first, each with `after` of b.

    Returns whether there is any; ``inner[0]`` is only written then.
    """
    words = tables.words
    weights = tables.d_weights
    if a == span.length or a + tables.joined_length[f] + tables.palindrome_row.shape[1] - 1 < first:
        return False
    word = words.word[f]
    depth = scratch.depth[word]
    # What is left of an occurrence after more bases was there after fewer.
    read = max(0, first - a - 1)
    found = False
    while read < depth:
        alive = scratch.alive[word * ALIVE_ROWS + read + 1, a] & tables.joined_starts[f]
        if alive == 0:
            break
        read += 1
        alike = population(alive & tables.plain_starts[f, read])
        if alike > 0:
            row = tables.d_row[f, 0, read]
            add_match(kind, alg, weights, row, alike, after, a + read, found, scratch.inner)
            found = True
        rest = alive & ~tables.plain_starts[f, read]
        while rest != 0:
            s = lowest_bit(rest) - words.first[f] - tables.joined_left[f]
            rest = rest & (rest - 1)
            row = tables.d_row[f, s, s + read]
            add_match(kind, alg, weights, row, 1, after, a + read, found, scratch.inner)
            found = True
    return sum_mirrored(kind, alg, tables, span, f, a, first, scratch, after, found)


@shared
def sum_mirrored(
    kind: Any, alg: Any, tables: Any, span: Any, f: int, a: int, first: int,
    scratch: Any, after: Any, found: bool,
) -> bool:  # fmt: skip
    """The matches of `sum_from` whose first p bases are the reverse complement of whatever follows them."""
    words = tables.words
    bit = words.first[f] + tables.joined_left[f]
    row = words.word[f] * ALIVE_ROWS
    depth = scratch.depth[words.word[f]]
    for p in range(1, tables.palindrome_row.shape[1]):
        if a + 2 * p > span.length:
            break
        if scratch.arms[a + p] < p:
            continue
        read = max(0, first - a - p)
        while read <= depth and (scratch.alive[row + read, a + p] >> bit) & 1 != 0:
            weight = tables.palindrome_row[f, p, read]
            add_match(kind, alg, tables.d_weights, weight, 1, after, a + p + read, found, scratch.inner)
            found = True
            read += 1
    return found


@shared
def sum_two_d(
    kind: Any, alg: Any, tables: Any, span: Any, after: Any, scratch: Any, out: Any, item: int
) -> None:
    """Paths with two D genes: the second one and what follows it take the place of `after`."""
    inner = PositionRows(scratch.inner, 0, 0, 0)
    behind = PositionRows(scratch.behind, scratch.lead, 1, 0)
    genes = tables.words.length.size
    weights = tables.d_weights
    for second in range(genes):
        filled = False
        for f in range(genes):
            clear_row(kind, alg, scratch.total, f)
            if tables.allowed[span.j, second] != 0 and tables.pair_allowed[f, second] != 0:
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
                out.pair[item, f * genes + second, tables.out_lane[x]] = scratch.total[f, x]


@shared
def fill_behind(kind: Any, alg: Any, tables: Any, span: Any, second: int, after: Any, scratch: Any) -> None:
    """Rows of `behind`: insertions, the second of two D genes, and all that follows it."""
    inner = scratch.inner
    weights = tables.d_weights
    row = tables.empty_row[second]
    for c in range(span.length + 1):
        found = sum_from(kind, alg, tables, span, second, c, span.first, scratch, after)
        if c >= span.first:
            add_match(kind, alg, weights, row, 1, after, c, found, inner)
            found = True
        for x in range(inner.shape[1]):
            scratch.middle[c, x] = inner[0, x] if found else alg.zero
    insert_middle(kind.rows, kind, alg, tables, span, scratch)


#: Rows of `ChainScratch.lines`: what V and J give where they end and begin, the weights of bases, all that
#: comes before and after each position (behind V alone in `_SINGLE`), before a D whose first base, or another
#: one, stands there, and from `_FOLLOWS` on after a D with so many bases behind its gene.
_FROM_V, _FROM_J, _WEIGHT, _LEFT, _RIGHT, _SINGLE, _STARTS, _ENTERS, _FOLLOWS = range(LINES)


@shared
def sum_over_positions(
    rows: Any, kind: Any, alg: Any, tables: Any, span: Any, plain: bool, scratch: Any, out: Any, item: int
) -> None:
    """`sum_chain` of one model, positions in lanes: all matches of a D gene that a lane can hold at once."""
    lanes = kind.lanes
    lines = scratch.lines
    fill_lines(kind, alg, tables, span, plain, scratch)
    begun = fill_starts(lanes, alg, tables, span, scratch)
    deleted = splat(lanes, alg.zero)
    none = deleted
    for x in range(PADDING, PADDING + span.last + 1, lanes.width):
        either = extend(alg, load(lanes, lines, _LEFT, x), load(lanes, lines, _RIGHT, x))
        deleted = choice(alg, deleted, either)
        none = choice(alg, none, extend(alg, load(lanes, lines, _SINGLE, x), load(lanes, lines, _FROM_J, x)))
    genes = tables.words.length.size
    for f in range(genes):
        found = splat(lanes, alg.zero)
        if tables.allowed[span.j, f] != 0:
            found = choice(alg, begun, sum_matches(lanes, alg, tables, span, f, scratch))
        scratch.total[f, 0] = over_lanes(alg, found)
    scratch.total[genes, 0] = over_lanes(alg, deleted)
    scratch.total[genes + 1, 0] = over_lanes(alg, none)
    write_counts(kind, alg, tables, span, scratch, out, item)


@shared
def fill_lines(kind: Any, alg: Any, tables: Any, span: Any, plain: bool, scratch: Any) -> None:
    """What comes before and after each position: the insertions on all positions of a group together."""
    lanes = kind.lanes
    lines = scratch.lines
    for line in range(lines.shape[0]):
        for x in range(0, span.length + 1 + 2 * PADDING, lanes.width):
            store(lanes, lines, line, x, splat(lanes, alg.zero))
    for a in range(span.m_v + 1):
        lines[_FROM_V, PADDING + a] = tables.level_weights[tables.v_row[span.v, a], 0]
    for kept in range(span.m_j + 1):
        lines[_FROM_J, PADDING + span.length - kept] = tables.level_weights[tables.j_row[span.j, kept], 0]
    for i in range(0 if plain else span.length):
        lines[_WEIGHT, PADDING + i] = scratch.weight[i]
    same = tables.left_lane.size == 0
    left = 0 if same else tables.left_lane[0]
    single = 0 if same else tables.single_lane[0]
    for x in range(0, span.last + 1, lanes.width):
        value = inserted(kind, alg, lines, _FROM_V, x, min(left, x + lanes.width - 1), -1, plain)
        store(lanes, lines, _LEFT, PADDING + x, value)
        if single != left:
            value = inserted(kind, alg, lines, _FROM_V, x, min(single, x + lanes.width - 1), -1, plain)
        store(lanes, lines, _SINGLE, PADDING + x, value)
    right = 0 if same else tables.right_lane[0]
    for x in range(span.first, span.length + 1, lanes.width):
        value = inserted(kind, alg, lines, _FROM_J, x, min(right, span.length - x), 1, plain)
        store(lanes, lines, _RIGHT, PADDING + x, value)
        for p in range(tables.palindrome_row.shape[1]):
            follows = extend(alg, value, splat(lanes, tables.end_weights[1 + p, 0]))
            store(lanes, lines, _FOLLOWS + p, PADDING + x, follows)


@shared
def inserted(kind: Any, alg: Any, lines: Any, line: int, x: int, most: int, step: int, plain: bool) -> Any:
    """Up to `most` insertions between each position of a group and where a gene ends, in direction `step`."""
    lanes = kind.lanes
    value = load(lanes, lines, line, PADDING + x + step * most)
    for k in range(most - 1, -1, -1):
        entered = load(lanes, lines, line, PADDING + x + step * k)
        if plain:
            value = choice(alg, entered, value)
        else:
            weight = load(lanes, lines, _WEIGHT, PADDING + x + (k if step > 0 else -k - 1))
            value = insert(kind.insertion, alg, entered, value, weight)
    return value


@shared
def fill_starts(lanes: Any, alg: Any, tables: Any, span: Any, scratch: Any) -> Any:
    """What comes before a D, with palindromic bases, too; sums of those behind which no base follows.

    p of them stand there if they are the reverse complement of whatever follows them.
    """
    lines = scratch.lines
    symbols = scratch.symbols
    palindrome = tables.palindrome_row.shape[1] - 1
    for i in range(span.length):
        symbols[0, PADDING + i] = scratch.masks[i]
        symbols[1, PADDING + i] = tables.mirror[scratch.masks[i]]
    for x in range(span.length, span.length + PADDING):
        symbols[0, PADDING + x] = 0
        symbols[1, PADDING + x] = 0
    none = splat(lanes, alg.zero)
    begun = none
    for x in range(0, min(span.length, span.last + palindrome) + 1, lanes.width):
        enters = extend(alg, load(lanes, lines, _LEFT, PADDING + x), splat(lanes, tables.end_weights[1, 0]))
        mirrored = none
        alike = splat(lanes, -1)
        for p in range(1, min(palindrome, x + lanes.width - 1, span.length - x) + 1):
            before = load(lanes, symbols, 0, PADDING + x - p)
            after = load(lanes, symbols, 1, PADDING + x + p - 1)
            alike = select(equal(before & after, splat(lanes, 0)), splat(lanes, 0), alike)
            left = load(lanes, lines, _LEFT, PADDING + x - p)
            left = extend(alg, left, splat(lanes, tables.end_weights[1 + p, 0]))
            mirrored = choice(alg, mirrored, select(equal(alike, splat(lanes, 0)), none, left))
        store(lanes, lines, _ENTERS, PADDING + x, enters)
        store(lanes, lines, _STARTS, PADDING + x, choice(alg, enters, mirrored))
        begun = choice(alg, begun, extend(alg, mirrored, load(lanes, lines, _FOLLOWS, PADDING + x)))
    return begun


@shared
def sum_matches(lanes: Any, alg: Any, tables: Any, span: Any, f: int, scratch: Any) -> Any:
    """Sums over all matches of a D gene, by lanes, with what stands before and after them.

    Base by base of the gene, a lane holds the matches that end with it at the position of that lane, behind
    which a J may come from `first` on. Two groups of positions in turn, since each base waits for the one
    before; what goes on from the groups before them stands in `values`.
    """
    word = tables.words.word[f]
    bits = 1 << (tables.words.first[f] + tables.joined_left[f])
    length = tables.joined_length[f]
    extended = tables.region_right[f] - tables.region_left[f] - 1
    # Behind the last position at which a D may begin, later bases alone are still met.
    latest = span.last + tables.palindrome_row.shape[1] - 1
    total = splat(lanes, alg.zero)
    for s in range(length + 1):
        store(lanes, scratch.values, s, 0, splat(lanes, alg.zero))
    for x in range(PADDING, PADDING + min(span.length, latest + length), 2 * lanes.width):
        y = x + lanes.width
        left_places, right_places = load(lanes, scratch.places, word, x), load(lanes, scratch.places, word, y)
        s = max(0, x - PADDING - latest)
        most = min(length, y - PADDING + lanes.width + length - span.first)
        left = right = left_ends = right_ends = splat(lanes, alg.zero)
        before = load(lanes, scratch.values, s, 0)
        while s < most:
            right_longer = shift_in(right, last_lane(left))
            left_longer = shift_in(left, last_lane(before))
            before = load(lanes, scratch.values, s + 1, 0)
            left = read_base(lanes, alg, scratch.lines, left_places, bits << s, s, x, left_longer)
            right = read_base(lanes, alg, scratch.lines, right_places, bits << s, s, y, right_longer)
            store(lanes, scratch.values, s + 1, 0, right)
            if s <= extended:
                left_ends = choice(alg, left_ends, left)
                right_ends = choice(alg, right_ends, right)
            else:
                total = followed(lanes, alg, scratch.lines, s - extended, x, left, total)
                total = followed(lanes, alg, scratch.lines, s - extended, y, right, total)
            s += 1
        total = followed(lanes, alg, scratch.lines, 0, x, left_ends, total)
        total = followed(lanes, alg, scratch.lines, 0, y, right_ends, total)
    return total


@shared
def read_base(lanes: Any, alg: Any, lines: Any, places: Any, bit: int, s: int, x: int, longer: Any) -> Any:
    """Matches that base s of a D gene ends: longer ones, and one that begins."""
    begun = load(lanes, lines, _STARTS if s == 0 else _ENTERS, x)
    missed = equal(places & splat(lanes, bit), splat(lanes, 0))
    return select(missed, splat(lanes, alg.zero), choice(alg, longer, begun))


@shared
def followed(lanes: Any, alg: Any, lines: Any, behind: int, x: int, value: Any, total: Any) -> Any:
    """Add matches that end at the positions of a group, with what stands after them, to a total."""
    return choice(alg, total, extend(alg, value, load(lanes, lines, _FOLLOWS + behind, x + 1)))


#: All counts of a junction, written to row `item` of the output.
sum_chain = by_type_of(
    {PerModel: sum_over_matches, PerInsertions: sum_over_matches, PerPosition: sum_over_positions}
)


@shared
def bound_of(levels: int, tables: Any, span: Any, plain: bool, masks: Any, pairs: int) -> Any:
    """A number that no count of this junction exceeds, final or on the way, from the numbers of matches.

    What insertions add is cut off far above any limit: all that matters there is that it is too large.
    """
    of_d = (span.length + 1.0) * tables.bound_d
    if pairs > 0:
        of_d = of_d * of_d
    weight = 1.0
    if not plain:
        # No path inserts more bases than its insertions allow, none of which weighs more than one opposite a
        # full mask.
        largest = tables.bound_symbol[15] ** min(3.0 * levels, 400.0)
        for i in range(span.length):
            if weight < largest:
                weight = weight * tables.bound_symbol[masks[i]]
        weight = min(weight, largest)
    return (span.m_v + 1.0) * (span.m_j + 1.0) * tables.bound_ends * of_d * weight


@shared
def enumerate_item(tables: Any, texts: Any, item: int, most: int, letters: Any, out: Any) -> None:
    """Count the ways to make one junction with 0..most inserted bases, trying every string of them.

    `tables` has rows `PerInsertions` (D genes extended at both ends); its weights are not read, but for the
    number of ways in which a D may vanish. `letters` is scratch of at least `most` integers; `out` is
    int64 (n, D genes + 1, most + 1): per D, and in the last row without a D.
    """
    first = texts.start[item]
    length = texts.length[item]
    v = texts.v[item]
    j = texts.j[item]
    genes = tables.words.length.size
    for f in range(genes + 1):
        for n in range(most + 1):
            out[item, f, n] = 0
    for n in range(most + 1):
        strings = 4**n
        for string in range(strings):
            rest = string
            for k in range(n):
                letters[k] = 1 << (rest & 3)
                rest = rest >> 2
            for f in range(genes + 1):
                if f == genes or tables.allowed[j, f] != 0:
                    out[item, f, n] += ways_with(tables, texts.symbols, first, length, v, j, f, letters, n)


@shared
def ways_with(
    tables: Any, symbols: Any, first: int, length: int, v: int, j: int, f: int, letters: Any, n: int
) -> int:
    """Ways to make the junction with exactly these inserted letters and D gene f; past the end, with none."""
    ways = 0
    genes = tables.words.length.size
    size = tables.words.length[f] if f < genes else 0
    for kept in range(min(length, tables.v_length[v]) + 1):
        if kept > 0 and (symbols[first + kept - 1] & tables.v_bases[v, kept - 1]) == 0:
            break
        for n1 in range(n + 1):
            a = kept + n1
            if a > length or (n1 > 0 and (symbols[first + a - 1] & letters[n1 - 1]) == 0):
                break
            if f == genes:
                if n1 == n:
                    ways += ends_with(tables, symbols, first, length, j, a, letters, n, n)
                continue
            row = tables.empty_row[f]
            ways += tables.d_weights[row, 0] * ends_with(tables, symbols, first, length, j, a, letters, n1, n)
            for s in range(size):
                for t in range(s + 1, size + 1):
                    b = a + t - s
                    if b > length or not has_symbol(tables.words, f, t - 1, symbols[first + b - 1]):
                        break
                    ways += ends_with(tables, symbols, first, length, j, b, letters, n1, n)
    return ways


@shared
def has_symbol(words: Any, f: int, place: int, bits: int) -> bool:
    """Whether a D position matches a junction base."""
    return bool((words.places[words.word[f], bits] >> (words.first[f] + place)) & 1)


@shared
def ends_with(
    tables: Any, symbols: Any, first: int, length: int, j: int, b: int, letters: Any, n1: int, n: int
) -> int:
    """1 if the junction from b on is letters[n1:n) followed by an end of J, else 0."""
    kept = length - b - (n - n1)
    if kept < 0 or kept > tables.j_length[j]:
        return 0
    for k in range(n1, n):
        if (symbols[first + b + k - n1] & letters[k]) == 0:
            return 0
    for k in range(kept):
        if (symbols[first + length - 1 - k] & tables.j_bases[j, k]) == 0:
            return 0
    return 1
