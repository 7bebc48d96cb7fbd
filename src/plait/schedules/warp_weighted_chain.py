"""The weighted chain of one text of which not every symbol is known, by the lanes of a warp together.

Lanes run over nodes of the graph, of which every one is fed by those beside it, for all numbers of
insertions at once: level by level a node holds all insertions that end with it and have at most so many more
before them, each weighed for its length (Horner's rule). Nodes to the left of the fragment, and to the right
in each context, are rows side by side. Fragments that begin behind one node belong to one lane, which walks
their trees with a trail of nodes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import shared
from plait.algebras import choice, extend
from plait.lanes import highest_bit, lowest_bit
from plait.lanes.warps import WARP, at, ballot, lane_index, synchronize_warp, warp_size
from plait.recurrences.insertion import insert
from plait.schedules.warp_weighted_graphs import (
    EndRows,
    clear_rows,
    enter_prefixes,
    enter_suffixes,
    lay_warp_graph,
    without_lowest,
)
from plait.schedules.warp_weighted_paths import Span, over_warp

__all__ = ["ChainMemory", "weigh_graph"]

_SET = 16
_NODES = (1 << _SET) - 1


class ChainMemory(NamedTuple):
    """Memory that the lanes of a warp share, besides the graph.

    Attributes
    ----------
    before
        (nodes,): what the prefix before each node weighs.
    after
        (nodes, group): the suffix behind each node, in each context.
    entered
        (1 + group, nodes): what begins an insertion with a node: the leftmost, and in each context the
        rightmost. Later all that is before a node, and behind it.
    levels
        (2, 1 + group, nodes): two levels.
    trail
        int16 (deepest + 1, lanes): nodes on the way of each lane.
    """

    before: Any
    after: Any
    entered: Any
    levels: Any
    trail: Any


@shared
def weigh_graph(
    alg: Any, chain: Any, parts: Any, texts: Any, item: Any, graph: Any, memory: Any, out: Any
) -> None:
    """Weight of everything that a text stands for, into ``out[item]``.

    Parameters
    ----------
    alg
        The algebra.
    chain, parts
        See `plait.schedules.warp_weighted_tables`.
    texts
        As in `plait.schedules.text_graphs.WeightedTexts`.
    item
        Which text.
    graph
        `plait.schedules.warp_weighted_graphs.GraphMemory`.
    memory
        `ChainMemory`.
    out
        Weights.
    """
    nodes, places = lay_warp_graph(parts, texts, item, graph)
    clear_rows(alg, nodes, memory.before)
    one = np.int32(1)
    prefixes = EndRows(memory.before, np.int32(0), one, one)
    for k in range(texts.prefix_first[at(item)], texts.prefix_first[at(item + 1)]):
        enter_prefixes(alg, chain.prefix, chain.widest, texts.prefix_root[at(k)], graph, prefixes)
    total = alg.zero
    context = np.int32(0)
    while context < chain.contexts:
        number = min(chain.group, np.int32(chain.contexts - context))
        clear_rows(alg, np.int32(nodes * number), memory.after)
        suffixes = EndRows(memory.after, context, number, number)
        for k in range(texts.suffix_first[at(item)], texts.suffix_first[at(item + 1)]):
            enter_suffixes(alg, chain.suffix, chain.widest, texts.suffix_root[at(k)], places, graph, suffixes)
        span = span_entered(alg, nodes, number, graph, memory)
        if span.low <= span.high:
            newest = insert_graph(alg, chain, nodes, number, span, graph, memory)
            bring_together(alg, chain, nodes, number, newest, graph, memory)
            total = choice(alg, total, join_graph(alg, chain, nodes, context, number, span, graph, memory))
        synchronize_warp()
        context = np.int32(context + chain.group)
    total = over_warp(alg, total)
    if lane_index() == 0:
        out[at(item)] = total


@shared
def span_entered(alg: Any, nodes: Any, number: Any, graph: Any, memory: Any) -> Any:
    """`Span` of what is entered; the first place is behind the last one where a side has nothing."""
    low, before, after, high = nodes, np.int32(-1), nodes, np.int32(-1)
    x = np.int32(0)
    while x < nodes:
        u = np.int32(x + lane_index())
        prefix, suffix = False, False
        if u < nodes:
            prefix = memory.before[at(u)] != alg.zero
            for c in range(number):
                suffix = suffix or memory.after[at(u * number + c)] != alg.zero
        found = ballot(prefix)
        if found != 0:
            low = min(low, np.int32(x + lowest_bit(found)))
            before = np.int32(x + highest_bit(found))
        found = ballot(suffix)
        if found != 0:
            after = min(after, np.int32(x + lowest_bit(found)))
            high = np.int32(x + highest_bit(found))
        x = np.int32(x + warp_size())
    if before < 0 or high < 0:
        return Span(np.int32(1), np.int32(0), np.int32(0), np.int32(0))
    place = graph.place
    first, last = np.int32(place[at(low)]), np.int32(place[at(before)])
    return Span(first, last, np.int32(place[at(after)]), np.int32(place[at(high)]))


@shared
def insert_graph(alg: Any, chain: Any, nodes: Any, number: Any, span: Any, graph: Any, memory: Any) -> Any:
    """Insertions that end, or begin, with each node; returns where in `levels` they are.

    A level has something where the one before it has, and one place further on.
    """
    enter_insertions(alg, chain, nodes, number, graph, memory)
    old, new = np.int32(0), np.int32(nodes * np.int32(number + 1))
    first = np.int32(graph.begin[at(span.low + 1)])
    last = np.int32(graph.begin[at(span.high + 1)])
    k = min(chain.most, np.int32(span.high - span.low))
    reached, left = np.int32(span.before + 1), span.after
    while k > 0:
        end = min(last, np.int32(graph.begin[at(min(reached, span.high) + 1)]))
        insert_left(alg, chain, k, first, end, old, new, graph, memory)
        begin = max(first, np.int32(graph.begin[at(max(left, np.int32(1)))]))
        c = np.int32(0)
        while c < number:
            insert_right(alg, chain, k, nodes, number, c, begin, last, old, new, graph, memory)
            c = np.int32(c + 2)
        synchronize_warp()
        old, new = new, old
        k = np.int32(k - 1)
        reached, left = np.int32(reached + 1), np.int32(left - 1)
    return old


@shared
def enter_insertions(alg: Any, chain: Any, nodes: Any, number: Any, graph: Any, memory: Any) -> None:
    """What begins an insertion: into `entered`; nothing is inserted yet."""
    cells = np.int32(nodes * np.int32(number + 1))
    for row in range(np.int32(number + 1)):
        side = min(np.int32(row), np.int32(1))
        u: Any = np.int32(lane_index())
        while u < nodes:
            value = alg.zero
            if u > 0:
                if row > 0:
                    value = memory.after[at(u * number + row - 1)]
                else:
                    value = before_node(alg, u, graph, memory)
                first = chain.first[at(4 * side + np.int32(graph.symbol[at(u)]))]
                value = extend(alg, value, first)
            cell = np.int32(row * nodes + u)
            memory.entered[at(cell)] = value
            memory.levels[at(cell)] = alg.zero
            memory.levels[at(cells + cell)] = alg.zero
            u = np.int32(u + warp_size())
    synchronize_warp()


@shared
def before_node(alg: Any, u: Any, graph: Any, memory: Any) -> Any:
    """What prefixes weigh that end just before a node."""
    value = alg.zero
    behind = graph.behind[at(u)]
    left: Any = np.int32(behind & _NODES)
    while left != 0:
        p = np.int32((behind >> _SET) + lowest_bit(left))
        value = choice(alg, value, memory.before[at(p)])
        left = without_lowest(left)
    return value


@shared
def insert_left(
    alg: Any, chain: Any, k: Any, first: Any, last: Any, old: Any, new: Any, graph: Any, memory: Any
) -> None:
    """A level to the left of the fragment, of some nodes."""
    length = chain.length[at(k)]
    u = np.int32(first + lane_index())
    while u < last:
        value = extend(alg, memory.entered[at(u)], length)
        symbol = np.int32(graph.symbol[at(u)])
        behind = graph.behind[at(u)]
        left: Any = np.int32(behind & _NODES)
        while left != 0:
            p = np.int32((behind >> _SET) + lowest_bit(left))
            step = chain.step[at(4 * np.int32(graph.symbol[at(p)]) + symbol)]
            value = insert(chain.insertion, alg, value, memory.levels[at(old + p)], step)
            left = without_lowest(left)
        memory.levels[at(new + u)] = value
        u = np.int32(u + warp_size())


@shared
def insert_right(
    alg: Any, chain: Any, k: Any, nodes: Any, number: Any, c: Any, first: Any, last: Any, old: Any, new: Any,
    graph: Any, memory: Any,
) -> None:  # fmt: skip
    """A level to the right of the fragment, of some nodes, in context c and the next one, if there is one."""
    length = chain.length[at(chain.most + 1 + k)]
    one = np.int32(np.int32(c + 1) * nodes)
    # Where it is the last one, it is done twice.
    other = np.int32(min(np.int32(c + 2), number) * nodes)
    u = np.int32(first + lane_index())
    while u < last:
        value = extend(alg, memory.entered[at(one + u)], length)
        second = extend(alg, memory.entered[at(other + u)], length)
        symbol = np.int32(graph.symbol[at(u)])
        for a in range(np.int32(0), np.int32(4)):
            y = np.int32(graph.ahead[at(4 * u + a)])
            if y >= 0:
                step = chain.step[at(16 + 4 * a + symbol)]
                value = insert(chain.insertion, alg, value, memory.levels[at(old + one + y)], step)
                second = insert(chain.insertion, alg, second, memory.levels[at(old + other + y)], step)
        memory.levels[at(new + one + u)] = value
        memory.levels[at(new + other + u)] = second
        u = np.int32(u + warp_size())


@shared
def bring_together(
    alg: Any, chain: Any, nodes: Any, number: Any, newest: Any, graph: Any, memory: Any
) -> None:
    """All that is before a node, and behind it, with and without insertions: into `entered`."""
    u: Any = np.int32(lane_index())
    while u < nodes:
        value = extend(alg, memory.before[at(u)], chain.none[at(0)])
        memory.entered[at(u)] = choice(alg, value, memory.levels[at(newest + u)])
        for c in range(number):
            base = np.int32(np.int32(c + 1) * nodes)
            value = extend(alg, memory.after[at(u * number + c)], chain.none[at(1)])
            for a in range(np.int32(0), np.int32(4)):
                y = np.int32(graph.ahead[at(4 * u + a)])
                if y >= 0:
                    value = choice(alg, value, memory.levels[at(newest + base + y)])
            memory.entered[at(base + u)] = value
        u = np.int32(u + warp_size())
    synchronize_warp()


@shared
def join_graph(
    alg: Any, chain: Any, nodes: Any, context: Any, number: Any, span: Any, graph: Any, memory: Any
) -> Any:
    """Fragments between both sides: what this lane has of the weight."""
    total = alg.zero
    first = np.int32(graph.begin[at(span.low)])
    width = np.int32(graph.begin[at(span.high + 1)] - first)
    i: Any = np.int32(lane_index())
    while i < np.int32(number * width):
        c = np.int32(i // width)
        u = np.int32(first + i % width)
        left = memory.entered[at(u)]
        if left != alg.zero:
            row = np.int32(np.int32(c + 1) * nodes)
            inner = read_words(alg, chain.fragment, np.int32(context + c), u, row, graph, memory)
            total = choice(alg, total, extend(alg, left, inner))
        i = np.int32(i + warp_size())
    return total


@shared
def read_words(alg: Any, words: Any, fragment: Any, u: Any, row: Any, graph: Any, memory: Any) -> Any:
    """Parts of a fragment that begin behind a node, each with all behind it."""
    lane = np.int32(lane_index())
    t = words.first[at(fragment)]
    end = words.first[at(fragment + 1)]
    found = extend(alg, words.weight[at(t)], memory.entered[at(row + u)])
    memory.trail[at(lane)] = u
    t = np.int32(t + 1)
    while t < end:
        depth = words.depth[at(t)]
        before = np.int32(memory.trail[at(np.int32(depth - 1) * WARP + lane)])
        y = np.int32(graph.ahead[at(4 * before + np.int32(words.label[at(t)]))])
        if y >= 0:
            memory.trail[at(depth * WARP + lane)] = y
            found = choice(alg, found, extend(alg, words.weight[at(t)], memory.entered[at(row + y)]))
            t = np.int32(t + 1)
        else:
            t = words.beyond[at(t)]
    return found
