"""The weighted chain of one text without a fragment, by the lanes of a warp together.

Prefix and suffix are chosen together: the suffixes are the contexts, and what a prefix weighs depends on
them. So it is only noted which prefixes and suffixes there are. Insertions from one to another depend on
neither and are found first, for as many prefixes as there are lanes; then lanes are contexts, and every
suffix is brought together with the prefixes before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import shared
from plait.algebras import choice, extend
from plait.lanes import lowest_bit
from plait.lanes.warps import WARP, at, ballot, lane_index, synchronize_warp
from plait.recurrences.insertion import insert
from plait.schedules.warp_weighted_graphs import (
    enter_prefixes,
    enter_suffixes,
    lay_warp_graph,
    without_lowest,
)
from plait.schedules.warp_weighted_paths import over_warp

__all__ = ["PairMemory", "weigh_pair_graph"]

_SET = 16
_NODES = (1 << _SET) - 1


class PairMemory(NamedTuple):
    """Memory that the lanes of a warp share, besides the graph.

    Attributes
    ----------
    inserted
        (nodes, lanes): what insertions from each start to each node weigh.
    prefixes, suffixes
        `plait.schedules.warp_weighted_graphs.Visits`.
    """

    inserted: Any
    prefixes: Any
    suffixes: Any


@shared
def weigh_pair_graph(
    alg: Any, chain: Any, parts: Any, texts: Any, item: Any, graph: Any, memory: Any, out: Any
) -> None:
    """Weight of everything that a text stands for, into ``out[item]``; NaN if it has too many ends.

    Parameters
    ----------
    alg, chain, parts, texts, item, graph, memory, out
        As for `plait.schedules.warp_weighted_chain.weigh_graph`, with `PairMemory`.
    """
    lane = np.int32(lane_index())
    prefixes, suffixes = memory.prefixes, memory.suffixes
    if lane == 0:
        prefixes.count[at(0)] = 0
        suffixes.count[at(0)] = 0
    nodes, places = lay_warp_graph(parts, texts, item, graph)
    for k in range(texts.prefix_first[at(item)], texts.prefix_first[at(item + 1)]):
        enter_prefixes(alg, chain.prefix, chain.widest, texts.prefix_root[at(k)], graph, prefixes)
    for k in range(texts.suffix_first[at(item)], texts.suffix_first[at(item + 1)]):
        enter_suffixes(alg, chain.suffix, chain.widest, texts.suffix_root[at(k)], places, graph, suffixes)
    synchronize_warp()
    starts, ends = prefixes.count[at(0)], suffixes.count[at(0)]
    total = alg.zero
    x = np.int32(0)
    while x < starts and max(starts, ends) <= prefixes.most:
        number = min(np.int32(WARP), np.int32(starts - x))
        start = np.int32(-1)
        if lane < number:
            start = prefixes.node[at(prefixes.most + x + lane)]
        # The first start is of the first place of all.
        first = np.int32(prefixes.node[at(prefixes.most + x)])
        first = np.int32(graph.begin[at(graph.place[at(first)])])
        insert_after(alg, chain, nodes, first, start, graph, memory)
        total = choice(alg, total, over_pairs(alg, chain, first, x, number, ends, memory))
        synchronize_warp()
        x = np.int32(x + WARP)
    total = over_warp(alg, total)
    if lane == 0:
        out[at(item)] = total if max(starts, ends) <= prefixes.most else np.nan
    synchronize_warp()


@shared
def insert_after(alg: Any, chain: Any, nodes: Any, first: Any, start: Any, graph: Any, memory: Any) -> None:
    """Insertions from the start of this lane to every node from `first` on."""
    lane = np.int32(lane_index())
    inserted = memory.inserted
    begin = np.int32(0)
    if start >= 0:
        begin = np.int32(graph.place[at(start)])
    u = first
    while u < nodes:
        value = alg.zero
        number = np.int32(np.int32(graph.place[at(u)]) - begin)
        if start >= 0 and 0 < number <= chain.most:
            symbol = np.int32(graph.symbol[at(u)])
            behind = graph.behind[at(u)]
            left: Any = np.int32(behind & _NODES)
            while left != 0:
                p = np.int32((behind >> _SET) + lowest_bit(left))
                if p == start:
                    value = choice(alg, value, chain.first[at(symbol)])
                elif number > 1:
                    step = chain.step[at(4 * np.int32(graph.symbol[at(p)]) + symbol)]
                    value = insert(chain.insertion, alg, value, inserted[at(p * WARP + lane)], step)
                left = without_lowest(left)
        inserted[at(u * WARP + lane)] = value
        u = np.int32(u + 1)
    u = first
    while u < nodes:
        number = np.int32(np.int32(graph.place[at(u)]) - begin)
        cell = np.int32(u * WARP + lane)
        if u == start:
            inserted[at(cell)] = chain.none[at(0)]
        elif 0 < number <= chain.most:
            inserted[at(cell)] = extend(alg, inserted[at(cell)], chain.length[at(number)])
        u = np.int32(u + 1)
    synchronize_warp()


@shared
def over_pairs(alg: Any, chain: Any, first: Any, x: Any, number: Any, ends: Any, memory: Any) -> Any:
    """Some prefixes, all suffixes and the insertions between them, in the contexts of this lane."""
    lane = np.int32(lane_index())
    prefixes, suffixes = memory.prefixes, memory.suffixes
    contexts = chain.contexts
    total = alg.zero
    context = np.int32(0)
    while context < contexts:
        # Lanes without a context have suffixes that weigh nothing.
        own = min(np.int32(context + lane), np.int32(contexts - 1))
        for e in range(ends):
            y = suffixes.node[at(suffixes.most + e)]
            after = alg.zero
            if np.int32(context + lane) < contexts:
                after = chain.suffix.weight[at(suffixes.node[at(e)] * contexts + own)]
            if y >= first and ballot(after != alg.zero) != 0:
                before = alg.zero
                for k in range(number):
                    prefix = chain.prefix.weight[at(prefixes.node[at(x + k)] * contexts + own)]
                    before = choice(alg, before, extend(alg, prefix, memory.inserted[at(y * WARP + k)]))
                total = choice(alg, total, extend(alg, before, after))
        context = np.int32(context + WARP)
    return total
