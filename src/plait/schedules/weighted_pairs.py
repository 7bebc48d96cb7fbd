"""The chain of weighted choices without a fragment, where prefix and suffix are chosen together.

The suffixes are the contexts: what a prefix weighs depends on them. Lanes run over contexts.
"""

from __future__ import annotations

from typing import Any

from plait._jit import shared
from plait.algebras import choice, extend
from plait.lanes import load, splat, store
from plait.schedules.end_trees import enter_ends
from plait.schedules.text_graphs import lay_graph
from plait.schedules.weighted_chain import over_lanes

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
    total = alg.zero
    for u in range(nodes):
        entered = False
        for c in range(scratch.before.shape[1]):
            entered = entered or scratch.before[u, c] != alg.zero
        if entered:
            insert_after(lanes, alg, chain, graph, nodes, u, scratch)
            total = choice(alg, total, over_contexts(lanes, alg, scratch, u))
    out[item] = total


@shared
def insert_after(lanes: Any, alg: Any, chain: Any, graph: Any, nodes: int, start: int, scratch: Any) -> None:
    """All insertions behind a node and the suffixes behind them, by context, into ``right[0]``."""
    most = chain.left_length.shape[1] - 2 * chain.margin
    inserted = scratch.inserted
    right = scratch.right
    none = splat(lanes, chain.left_none[0])
    for x in range(0, right.shape[1], lanes.width):
        store(lanes, right, 0, x, extend(alg, load(lanes, scratch.after, start, x), none))
    for u in range(start + 1, nodes):
        number = graph.place[u] - graph.place[start]
        if number > most:
            break
        symbol = graph.symbol[u]
        value = alg.zero
        for e in range(graph.before_first[u], graph.before_first[u + 1]):
            p = graph.before[e]
            if p == start:
                value = choice(alg, value, chain.left_first[symbol])
            elif p > start and graph.place[p] > graph.place[start]:
                step = chain.left_step[graph.symbol[p], symbol]
                value = choice(alg, value, extend(alg, inserted[p, 0], step))
        inserted[u, 0] = value
        if number > 0 and value != alg.zero:
            weight = splat(lanes, extend(alg, value, chain.left_length[0, chain.margin + most - number]))
            for x in range(0, right.shape[1], lanes.width):
                here = extend(alg, load(lanes, scratch.after, u, x), weight)
                store(lanes, right, 0, x, choice(alg, load(lanes, right, 0, x), here))


@shared
def over_contexts(lanes: Any, alg: Any, scratch: Any, u: int) -> Any:
    """What is before a node and what is behind it, together, over all contexts."""
    value = splat(lanes, alg.zero)
    for x in range(0, scratch.before.shape[1], lanes.width):
        here = extend(alg, load(lanes, scratch.before, u, x), load(lanes, scratch.right, 0, x))
        value = choice(alg, value, here)
    return over_lanes(lanes, alg, value, scratch.row)
