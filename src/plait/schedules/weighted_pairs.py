"""The chain of weighted choices without a fragment, where prefix and suffix are chosen together.

The suffixes are the contexts: what a prefix weighs depends on them. Lanes run over contexts, of which only
those are read that some suffix of the text has.
"""

from __future__ import annotations

from typing import Any

from plait._jit import shared
from plait.algebras import choice, extend, over_lanes
from plait.lanes import load, splat, store, width_of
from plait.schedules.end_trees import enter_ends
from plait.schedules.text_graphs import count_before, lay_graph, node_before, place_of

__all__ = ["weigh_pair_text"]


@shared
def weigh_pair_text(
    lanes: Any, alg: Any, chain: Any, parts: Any, texts: Any, item: int, scratch: Any, out: Any
) -> None:
    """Weight of everything that a text stands for, into ``out[item]``.

    Parameters
    ----------
    lanes, alg, chain, parts, texts, item, scratch, out
        As for `plait.schedules.weighted_chain.weigh_text`; there are no fragments, and `before` has as many
        contexts as `after`.
    """
    graph = scratch.graph
    nodes = lay_graph(parts, texts, item, graph)
    enter_ends(alg, chain, texts, item, graph, nodes, scratch)
    low = sum_suffixes(lanes, alg, nodes, scratch)
    first, last = contexts_entered(lanes, alg, scratch.right)
    total = splat(lanes, alg.zero)
    for u in range(nodes):
        if sum_row(lanes, alg, scratch.before, u, first, last) != alg.zero:
            found = insert_after(lanes, alg, chain, graph, nodes, u, low, first, last, scratch)
            total = choice(alg, total, found)
    out[item] = over_lanes(alg, total)


@shared
def sum_suffixes(lanes: Any, alg: Any, nodes: int, scratch: Any) -> int:
    """All suffixes by context into ``right[0]``; returns the first node behind which there is one."""
    after = scratch.after
    row = scratch.right
    contexts = row.shape[1]
    for x in range(0, contexts, width_of(lanes)):
        store(lanes, row, 0, x, splat(lanes, alg.zero))
    low = nodes
    for u in range(nodes - 1, -1, -1):
        if sum_row(lanes, alg, after, u, 0, contexts) != alg.zero:
            low = u
            for x in range(0, contexts, width_of(lanes)):
                store(lanes, row, 0, x, choice(alg, load(lanes, row, 0, x), load(lanes, after, u, x)))
    return low


@shared
def sum_row(lanes: Any, alg: Any, rows: Any, u: int, first: int, last: int) -> Any:
    """The choice between some contexts of a row."""
    found = splat(lanes, alg.zero)
    for x in range(first, last, width_of(lanes)):
        found = choice(alg, found, load(lanes, rows, u, x))
    return over_lanes(alg, found)


@shared
def contexts_entered(lanes: Any, alg: Any, row: Any) -> Any:
    """The groups of lanes from the first to the last that hold something."""
    width = width_of(lanes)
    first = 0
    last = row.shape[1]
    while first < last and sum_row(lanes, alg, row, 0, first, first + width) == alg.zero:
        first += width
    while first < last and sum_row(lanes, alg, row, 0, last - width, last) == alg.zero:
        last -= width
    return first, last


@shared
def insert_after(
    lanes: Any,
    alg: Any,
    chain: Any,
    graph: Any,
    nodes: int,
    start: int,
    low: int,
    first: int,
    last: int,
    scratch: Any,
) -> Any:
    """All prefixes that end at a node, with all insertions behind it and the suffixes behind those."""
    most = chain.left_length.shape[1] - 2 * chain.margin
    inserted = scratch.inserted
    found = splat(lanes, alg.zero)
    if start >= low:
        found = extend(
            alg, meet(lanes, alg, start, start, first, last, scratch), splat(lanes, chain.left_none[0])
        )
    for u in range(start + 1, nodes):
        number = place_of(graph, u) - place_of(graph, start)
        if number > most:
            break
        symbol = graph.symbol[u]
        value = alg.zero
        for k in range(count_before(graph, u)):
            p = node_before(graph, u, k)
            if p == start:
                value = choice(alg, value, chain.left_first[symbol])
            elif p > start and place_of(graph, p) > place_of(graph, start):
                step = chain.left_step[graph.symbol[p], symbol]
                value = choice(alg, value, extend(alg, inserted[p, 0], step))
        inserted[u, 0] = value
        if u >= low and number > 0 and value != alg.zero:
            length = chain.left_length[0, chain.margin + most - number]
            weight = splat(lanes, extend(alg, value, length))
            here = meet(lanes, alg, start, u, first, last, scratch)
            found = choice(alg, found, extend(alg, here, weight))
    return found


@shared
def meet(lanes: Any, alg: Any, start: int, u: int, first: int, last: int, scratch: Any) -> Any:
    """The prefixes that end at one node with the suffixes behind another, context by context."""
    found = splat(lanes, alg.zero)
    for x in range(first, last, width_of(lanes)):
        before = load(lanes, scratch.before, start, x)
        found = choice(alg, found, extend(alg, before, load(lanes, scratch.after, u, x)))
    return found
