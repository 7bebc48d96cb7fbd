"""The chain as a product of processes: prefix, insertions, fragment(s), insertions, suffix.

Positions run along the text; every position holds a row of lanes (models, or numbers of insertions).
Matches do not depend on the model, so they are found once and each one adds its weight row to all lanes
at once. Only the few matches there are get visited: the matrix of a fragment is never stored.

The same functions run interpreted (the reference) and compiled, in groups of one to eight lanes.
"""

from __future__ import annotations

from typing import Any

from plait._jit import shared
from plait.algebras import choice, extend
from plait.lanes import lowest_bit, population
from plait.schedules.chain_rows import (
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
from plait.schedules.chain_tables import ALIVE_ROWS
from plait.schedules.matching import load_text, matched_prefix, matched_suffix, mirror_arms
from plait.schedules.regions import find_occurrences, find_regions

__all__ = ["chain_item"]


@shared
def chain_item(kind: Any, alg: Any, tables: Any, texts: Any, item: int, scratch: Any, out: Any) -> None:
    """All counts and region calls of one text.

    Parameters
    ----------
    kind
        Recurrence, meaning of rows and lane width: `plait.schedules.chain_rows.Kind`.
    alg
        The algebra.
    tables, texts, scratch, out
        See `plait.schedules.chain_tables`. Row `item` of `out` is overwritten.
    item
        Which text.
    """
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
    """Put the rows of `total` into the output, with the share of fragments of which nothing is left."""
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
    """The matches of `sum_from` whose first p symbols mirror whatever follows them."""
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
