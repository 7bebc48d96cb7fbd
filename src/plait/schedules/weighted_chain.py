"""The chain of weighted choices: prefix, insertions, fragment, insertions, suffix, over graphs of texts.

What may be inserted depends on the symbol inserted before it, which a node of the graph knows
(`plait.schedules.text_graphs`). Lanes run over the number of insertions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.algebras import choice, extend
from plait.lanes import load, lowest_bit, splat, store
from plait.recurrences.insertion import insert
from plait.schedules.end_trees import enter_ends
from plait.schedules.text_graphs import lay_graph

__all__ = [
    "WeightedChain",
    "WeightedScratch",
    "weigh_text",
]


class WeightedChain(NamedTuple):
    """What the chain is made of; all weights are values of one algebra.

    Attributes
    ----------
    insertion
        The recurrence of insertions, whose levels are the numbers of them, from 1.
    prefix, suffix
        `EndTrees`; suffixes have a context for every fragment.
    places
        int64 (fragments, 4): bits of the positions of each fragment that hold a symbol.
    fragment
        (fragments, width + 1, width + 1): weight of the part of n symbols that starts at s, ``[f, n, s]``.
    empty
        (fragments,): weight of nothing left.
    left_none, right_none
        (1,): weight of no insertion.
    left_length, right_length
        (1, levels padded): weight of 1, 2, ... insertions.
    left_first, right_first
        (4,): weight of the first inserted symbol: left the leftmost, right the rightmost.
    left_step, right_step
        (4, 4): weight of an inserted symbol (column) after the one inserted before it (row).
    """

    insertion: Any
    prefix: Any
    suffix: Any
    places: Any
    fragment: Any
    empty: Any
    left_none: Any
    right_none: Any
    left_length: Any
    right_length: Any
    left_first: Any
    right_first: Any
    left_step: Any
    right_step: Any


class WeightedScratch(NamedTuple):
    """Working memory of one worker.

    Attributes
    ----------
    graph
        `plait.schedules.text_graphs.TextGraph`.
    before, left
        (nodes, 1): of everything before a node: the prefix alone, and with insertions.
    after, right
        (nodes, fragments): of everything behind a node, likewise.
    left_levels, right_levels
        (nodes, lead + levels padded), and the latter ``nodes * fragments`` rows: by number of insertions.
    inserted
        (nodes, fragments): insertions that begin with a node, and all behind them.
    row
        (1, lanes): a group on its way to one number.
    stack
        int64 (most, 3): what is still to be visited.
    lead
        Columns before the first level, which stay zero.
    """

    graph: Any
    before: Any
    left: Any
    after: Any
    right: Any
    left_levels: Any
    right_levels: Any
    inserted: Any
    row: Any
    stack: Any
    lead: Any


@shared
def weigh_text(
    lanes: Any, alg: Any, chain: Any, parts: Any, texts: Any, item: int, scratch: Any, out: Any
) -> None:
    """Weight of everything that a text stands for, into ``out[item]``.

    Parameters
    ----------
    lanes
        Width of lane groups.
    alg
        The algebra.
    chain
        What texts are made of.
    parts, texts
        See `plait.schedules.text_graphs`.
    item
        Which text.
    scratch
        Memory of this worker.
    out
        (n,): weights.
    """
    graph = scratch.graph
    nodes = lay_graph(parts, texts, item, graph)
    enter_ends(alg, chain, texts, item, graph, nodes, scratch)
    insert_left(lanes, alg, chain, graph, nodes, scratch)
    insert_right(lanes, alg, chain, graph, nodes, scratch)
    out[item] = join(alg, chain, graph, nodes, scratch)


@shared
def insert_left(
    lanes: Any, alg: Any, chain: Any, graph: Any, nodes: int, scratch: Any
) -> None:
    """Insertions behind the prefix: `left` of every node."""
    levels = scratch.left_levels
    clear_levels(lanes, alg, levels, scratch.lead, 0)
    scratch.left[0, 0] = extend(alg, scratch.before[0, 0], chain.left_none[0])
    for u in range(1, nodes):
        symbol = graph.symbol[u]
        low = graph.before_first[u]
        high = graph.before_first[u + 1]
        entered = alg.zero
        for e in range(low, high):
            entered = choice(alg, entered, scratch.before[graph.before[e], 0])
        most = min(chain.left_length.shape[1], graph.place[u])
        end = scratch.lead
        for x in range(scratch.lead, scratch.lead + most, lanes.width):
            value = splat(lanes, alg.zero)
            for e in range(low, high):
                p = graph.before[e]
                if p > 0:
                    step = splat(lanes, chain.left_step[graph.symbol[p], symbol])
                    value = insert(chain.insertion, alg, value, load(lanes, levels, p, x - 1), step)
            store(lanes, levels, u, x, value)
            end = x + lanes.width
        if end + lanes.width <= levels.shape[1]:
            store(lanes, levels, u, end, splat(lanes, alg.zero))
        levels[u, scratch.lead] = extend(alg, chain.left_first[symbol], entered)
        found = over_lengths(lanes, alg, chain.left_length, levels, u, scratch, most)
        none = extend(alg, scratch.before[u, 0], chain.left_none[0])
        scratch.left[u, 0] = choice(alg, none, found)


@shared
def insert_right(
    lanes: Any, alg: Any, chain: Any, graph: Any, nodes: int, scratch: Any
) -> None:
    """Insertions before the suffix: `right` of every node."""
    contexts = chain.suffix.weight.shape[1]
    last = graph.place[nodes - 1]
    for u in range(nodes - 1, -1, -1):
        low = graph.after_first[u]
        high = graph.after_first[u + 1]
        for c in range(contexts):
            right = extend(alg, scratch.after[u, c], chain.right_none[0])
            for e in range(low, high):
                right = choice(alg, right, scratch.inserted[graph.after[e], c])
            scratch.right[u, c] = right
            if u > 0:
                most = min(chain.right_length.shape[1], last - graph.place[u] + 1)
                step_right(lanes, alg, chain, graph, u, c, most, scratch)


@shared
def step_right(
    lanes: Any, alg: Any, chain: Any, graph: Any, u: int, c: int, most: int, scratch: Any
) -> None:
    """Insertions whose leftmost symbol is that of node u, in one context."""
    levels = scratch.right_levels
    contexts = chain.suffix.weight.shape[1]
    symbol = graph.symbol[u]
    low = graph.after_first[u]
    high = graph.after_first[u + 1]
    row = u * contexts + c
    end = scratch.lead
    for x in range(scratch.lead, scratch.lead + most, lanes.width):
        value = splat(lanes, alg.zero)
        for e in range(low, high):
            y = graph.after[e]
            step = splat(lanes, chain.right_step[graph.symbol[y], symbol])
            value = insert(
                chain.insertion, alg, value, load(lanes, levels, y * contexts + c, x - 1), step
            )
        store(lanes, levels, row, x, value)
        end = x + lanes.width
    if end + lanes.width <= levels.shape[1]:
        store(lanes, levels, row, end, splat(lanes, alg.zero))
    levels[row, scratch.lead] = extend(alg, chain.right_first[symbol], scratch.after[u, c])
    scratch.inserted[u, c] = over_lengths(lanes, alg, chain.right_length, levels, row, scratch, most)


@shared
def clear_levels(lanes: Any, alg: Any, levels: Any, lead: int, row: int) -> None:
    """Set all levels of a row to zero."""
    for x in range(lead, levels.shape[1], lanes.width):
        store(lanes, levels, row, x, splat(lanes, alg.zero))


@shared
def over_lengths(
    lanes: Any, alg: Any, lengths: Any, levels: Any, row: int, scratch: Any, most: int
) -> Any:
    """Sum over the levels of a row, each with the weight of its length."""
    value = splat(lanes, alg.zero)
    for x in range(0, most, lanes.width):
        here = extend(alg, load(lanes, levels, row, scratch.lead + x), load(lanes, lengths, 0, x))
        value = choice(alg, value, here)
    store(lanes, scratch.row, 0, 0, value)
    found = alg.zero
    for x in range(lanes.width):
        found = choice(alg, found, scratch.row[0, x])
    return found


@shared
def join(alg: Any, chain: Any, graph: Any, nodes: int, scratch: Any) -> Any:
    """Bring left and right together, with every part of every fragment between them."""
    total = alg.zero
    fragments = chain.empty.size
    for u in range(nodes):
        left = scratch.left[u, 0]
        if left != alg.zero:
            inner = alg.zero
            for f in range(fragments):
                none = extend(alg, chain.empty[f], scratch.right[u, f])
                inner = choice(alg, inner, none)
                inner = choice(alg, inner, match_fragment(alg, chain, graph, u, f, scratch))
            total = choice(alg, total, extend(alg, left, inner))
    return total


@shared
def match_fragment(alg: Any, chain: Any, graph: Any, start: int, f: int, scratch: Any) -> Any:
    """Parts of a fragment that begin behind a node, each with all behind it."""
    stack = scratch.stack
    weights = chain.fragment
    stack[0, 0] = start
    stack[0, 1] = -1
    stack[0, 2] = 0
    top = 1
    found = alg.zero
    while top > 0:
        top -= 1
        u = stack[top, 0]
        starts = stack[top, 1]
        read = stack[top, 2]
        for e in range(graph.after_first[u], graph.after_first[u + 1]):
            y = graph.after[e]
            alive = starts & (chain.places[f, graph.symbol[y]] >> read)
            if alive != 0:
                weight = alg.zero
                rest = alive
                while rest != 0:
                    weight = choice(alg, weight, weights[f, read + 1, lowest_bit(rest)])
                    rest = rest & (rest - 1)
                found = choice(alg, found, extend(alg, weight, scratch.right[y, f]))
                stack[top, 0] = y
                stack[top, 1] = alive
                stack[top, 2] = read + 1
                top += 1
    return found
