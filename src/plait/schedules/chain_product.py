"""The chain as a product of processes: prefix, insertions, fragment(s), insertions, suffix.

Positions run along the text; every position holds a row of lanes (models, or numbers of insertions).
Matches do not depend on the model, so they are found once and each one adds its weight row to all lanes
at once. Only the few matches there are get visited: the matrix of a fragment is never stored.

The same functions run interpreted (the reference) and compiled, in groups of one to eight lanes.
"""

from __future__ import annotations

from typing import Any

from plait._jit import shared
from plait.algebras import extend
from plait.lanes import load, lowest_bit, population, store
from plait.recurrences.occurrences import Occurrences, every_start, keep
from plait.schedules.chain_rows import (
    Span,
    add_match,
    clear_row,
    collect,
    fill_left,
    fill_right,
    insert_middle,
    sum_without_fragment,
)
from plait.schedules.matching import load_text, matched_prefix, matched_suffix, mirror_arms
from plait.schedules.regions import find_regions

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
    length = load_text(alg, tables, texts, item, scratch)
    m_prefix = matched_prefix(tables, prefix, scratch.masks, length)
    m_suffix = matched_suffix(tables, suffix, scratch.masks, length)
    out.regions[item, 0] = m_prefix
    out.regions[item, 1] = m_suffix
    find_regions(kind.lanes, tables, suffix, length, scratch, out.regions, item)
    mirror_arms(scratch.masks, length, tables.hidden_row.shape[1] - 1, scratch.arms)
    levels = kind.insertion.levels
    last = min(length, m_prefix + levels - 1)
    first = max(0, length - m_suffix - levels + 1)
    span = Span(prefix, suffix, m_prefix, m_suffix, length, first, last)
    fill_left(kind.rows, kind, alg, tables, span, scratch)
    fill_right(kind, alg, tables, span, scratch)
    clear_row(kind, alg, scratch.total, 0)
    sum_without_fragment(kind.rows, kind, alg, tables, span, scratch)
    for x in range(tables.out_lane.size):
        out.none[item, tables.out_lane[x]] = scratch.total[0, x]
    sum_one_fragment(kind, alg, tables, span, scratch, out, item)
    if out.pair.shape[1] > 0:
        sum_two_fragments(kind, alg, tables, span, scratch, out, item)
    out.bound[item] = bound_of(levels, tables, span, scratch.masks, out.pair.shape[1])


@shared
def sum_one_fragment(
    kind: Any, alg: Any, tables: Any, span: Any, scratch: Any, out: Any, item: int
) -> None:
    """Paths with one fragment: all of them, and those in which nothing of the fragment is left."""
    lanes = kind.lanes
    total = scratch.total
    nothing = scratch.nothing
    clear_row(kind, alg, nothing, 0)
    clear_row(kind, alg, scratch.carry, 0)
    for a in range(span.last, -1, -1):
        collect(
            kind.rows, kind, alg, tables, span, scratch, a, scratch.right, scratch.lead, a, a >= span.first, nothing
        )
    for f in range(out.full.shape[1]):
        allowed = tables.allowed[span.suffix, f] != 0
        clear_row(kind, alg, total, 0)
        if allowed:
            row = tables.empty_row[f]
            for x in range(0, total.shape[1], lanes.width):
                empty = load(lanes, tables.fragment_weights, row, x)
                store(lanes, total, 0, x, extend(alg, load(lanes, nothing, 0, x), empty))
        for x in range(tables.out_lane.size):
            out.empty[item, f, tables.out_lane[x]] = total[0, x]
        if allowed:
            clear_row(kind, alg, scratch.carry, 0)
            for a in range(span.last, -1, -1):
                found = sum_from(kind, alg, tables, f, a, span.length, span.first, scratch, scratch.right)
                collect(kind.rows, kind, alg, tables, span, scratch, a, scratch.inner, 0, 0, found, total)
        for x in range(tables.out_lane.size):
            out.full[item, f, tables.out_lane[x]] = total[0, x]


@shared
def sum_from(
    kind: Any, alg: Any, tables: Any, f: int, a: int, length: int, first: int, scratch: Any, right: Any
) -> bool:
    """Sum over matches of fragment f that start at `a` and end at b >= first, each with ``right[b]``.

    Returns whether there is any; ``inner[0]`` is only written then.
    """
    masks = scratch.masks
    weights = tables.fragment_weights
    automaton = Occurrences(tables.fragment_length[f])
    if a + automaton.length + tables.hidden_row.shape[1] - 1 < first:
        return False
    starts = every_start(automaton)
    read = 0
    found = False
    while a + read < length:
        starts = keep(automaton, starts, tables.fragment_places[f, masks[a + read]], read)
        if starts == 0:
            break
        read += 1
        if a + read < first:
            continue
        alike = population(starts & tables.plain_starts[f, read])
        if alike > 0:
            row = tables.fragment_row[f, 0, read]
            add_match(kind, alg, weights, row, alike, right, scratch.lead, a + read, found, scratch.inner)
            found = True
        rest = starts & ~tables.plain_starts[f, read]
        while rest != 0:
            s = lowest_bit(rest)
            rest = rest & (rest - 1)
            row = tables.fragment_row[f, s, s + read]
            add_match(kind, alg, weights, row, 1, right, scratch.lead, a + read, found, scratch.inner)
            found = True
    return sum_mirrored(kind, alg, tables, f, a, length, first, scratch, right, found)


@shared
def sum_mirrored(
    kind: Any, alg: Any, tables: Any, f: int, a: int, length: int, first: int, scratch: Any, right: Any, found: bool
) -> bool:
    """The matches of `sum_from` whose first p symbols mirror whatever follows them."""
    for p in range(1, tables.hidden_row.shape[1]):
        if a + 2 * p > length:
            break
        if scratch.arms[a + p] < p:
            continue
        t = 0
        while True:
            b = a + p + t
            if b >= first:
                row = tables.hidden_row[f, p, t]
                add_match(
                    kind, alg, tables.fragment_weights, row, 1, right, scratch.lead, b, found, scratch.inner
                )
                found = True
            if b == length or t == tables.fragment_length[f]:
                break
            if (tables.fragment_places[f, scratch.masks[b]] >> t) & 1 == 0:
                break
            t += 1
    return found


@shared
def sum_two_fragments(
    kind: Any, alg: Any, tables: Any, span: Any, scratch: Any, out: Any, item: int
) -> None:
    """Paths with two fragments: the second one and what follows it take the place of `right`."""
    fragments = tables.fragment_length.size
    inner = scratch.inner
    total = scratch.total
    for second in range(fragments):
        if tables.allowed[span.suffix, second] == 0:
            continue
        fill_behind(kind, alg, tables, span, second, scratch)
        for f in range(fragments):
            if tables.pair_allowed[f, second] == 0:
                continue
            clear_row(kind, alg, total, 0)
            clear_row(kind, alg, scratch.carry, 0)
            row = tables.empty_row[f]
            for a in range(span.last, -1, -1):
                found = sum_from(kind, alg, tables, f, a, span.length, 0, scratch, scratch.behind)
                add_match(
                    kind, alg, tables.fragment_weights, row, 1, scratch.behind, scratch.lead, a, found, inner
                )
                collect(kind.rows, kind, alg, tables, span, scratch, a, inner, 0, 0, True, total)
            for x in range(tables.out_lane.size):
                out.pair[item, f * fragments + second, tables.out_lane[x]] = total[0, x]


@shared
def fill_behind(kind: Any, alg: Any, tables: Any, span: Any, second: int, scratch: Any) -> None:
    """Rows of `behind`: insertions, the second of two fragments, and all that follows it."""
    inner = scratch.inner
    row = tables.empty_row[second]
    for c in range(span.length + 1):
        found = sum_from(kind, alg, tables, second, c, span.length, span.first, scratch, scratch.right)
        if c >= span.first:
            add_match(
                kind, alg, tables.fragment_weights, row, 1, scratch.right, scratch.lead, c, found, inner
            )
            found = True
        for x in range(inner.shape[1]):
            scratch.middle[c, x] = inner[0, x] if found else alg.zero
    insert_middle(kind.rows, kind, alg, tables, span, scratch)


@shared
def bound_of(levels: int, tables: Any, span: Any, masks: Any, pairs: int) -> float:
    """A number that no count of this text exceeds, final or on the way, from the numbers of matches."""
    fragments = (span.length + 1.0) * tables.bound_fragment
    if pairs > 0:
        fragments = fragments * fragments
    weight = 1.0
    largest = 4.0 ** (3.0 * levels)
    for i in range(span.length):
        if weight < largest:
            weight = weight * tables.bound_symbol[masks[i]]
    return (span.m_prefix + 1.0) * (span.m_suffix + 1.0) * tables.bound_ends * fragments * weight
