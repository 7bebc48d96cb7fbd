"""Graphs of texts, laid by the lanes of a warp, and the ends that they begin and finish with.

A graph of `plait.schedules.text_graphs` has few nodes at each place, side by side: those before a node are a
first node and a bit for each, and a symbol leads from a node to one other at the most. Trees of ends are
looked for level by level, a lane for each node of a level.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import by_type_of, shared
from plait.algebras import choice
from plait.lanes import lowest_bit
from plait.lanes.warps import at, ballot, lane_index, shuffle, shuffle_up, synchronize_warp, warp_size

__all__ = [
    "EndRows",
    "GraphMemory",
    "Visits",
    "clear_rows",
    "enter_prefixes",
    "enter_suffixes",
    "lay_warp_graph",
    "without_lowest",
]

#: Bits of a word that tell which nodes; those above them tell the first one.
_SET = 16
_NODES = (1 << _SET) - 1


class GraphMemory(NamedTuple):
    """A graph, which the lanes of a warp share.

    Attributes
    ----------
    symbol
        uint8 (nodes,).
    place
        int16 (nodes,): symbols on the way to a node.
    behind
        int32 (nodes,): the first node of the place before, times 65536, and bits for those that a node
        follows.
    ahead
        int16 (4 * nodes,): the node that a symbol leads to, or -1.
    begin
        int16 (places + 1,): first node of every place, and the number of nodes.
    found
        int32 (2, widest): nodes that a level of a tree has come to.
    """

    symbol: Any
    place: Any
    behind: Any
    ahead: Any
    begin: Any
    found: Any


class EndRows(NamedTuple):
    """Where the weights of ends are added up.

    Attributes
    ----------
    cells
        (nodes, stride): cleared before the first tree.
    context, number
        The first context, and how many there are; at most as many as lanes.
    stride
        Cells of a node.
    """

    cells: Any
    context: Any
    number: Any
    stride: Any


class Visits(NamedTuple):
    """Where it is noted which ends there are.

    Attributes
    ----------
    node
        int32 (2, most): nodes of the trees, and nodes of the graph.
    count
        int32 (1,): how many there are; more than `most` if some are missing.
    most
        How many have room.
    """

    node: Any
    count: Any
    most: Any


@shared
def lay_warp_graph(parts: Any, texts: Any, item: Any, graph: Any) -> Any:
    """Write the graph of a text; returns the numbers of nodes and of places."""
    lane = np.int32(lane_index())
    length = np.int32(texts.length[at(item)])
    start = texts.start[at(item)]
    places = np.int32(length * parts.places + 1)
    if lane == 0:
        graph.place[at(0)] = 0
        graph.symbol[at(0)] = 0
        graph.behind[at(0)] = 0
        graph.begin[at(0)] = 0
        code = np.int32(texts.codes[at(start)])
        for a in range(4):
            graph.ahead[at(a)] = after_entry(parts, code, np.int32(a), np.int32(1))
    nodes = np.int32(1)
    x = np.int32(0)
    while x < length:
        k = np.int32(x + lane)
        code, own = np.int32(0), np.int32(0)
        if k < length:
            code = np.int32(texts.codes[at(start + k)])
            own = parts.nodes[at(code)]
        last = own
        distance = np.int32(1)
        while distance < warp_size():
            below = shuffle_up(last, distance)
            if lane >= distance:
                last = np.int32(last + below)
            distance = np.int32(2 * distance)
        if k < length:
            before, following = np.int32(-1), np.int32(-1)
            if k > 0:
                before = np.int32(texts.codes[at(start + k - 1)])
            if k + 1 < length:
                following = np.int32(texts.codes[at(start + k + 1)])
            lay_part(parts, code, before, following, k, np.int32(nodes + last - own), graph)
        nodes = np.int32(nodes + shuffle(last, np.int32(warp_size() - 1)))
        x = np.int32(x + warp_size())
    if lane == 0:
        graph.begin[at(places)] = nodes
    synchronize_warp()
    return nodes, places


@shared
def after_entry(parts: Any, code: Any, symbol: Any, base: Any) -> Any:
    """The node of a part that begins at `base` to which a symbol leads from before it, or -1."""
    inner = parts.entry[at(4 * code + symbol)]
    return np.int32(base + inner) if inner >= 0 else np.int32(-1)


@shared
def lay_part(parts: Any, code: Any, before: Any, following: Any, k: Any, base: Any, graph: Any) -> None:
    """Write what code k stands for, between the codes before and behind it; -1 where there is none."""
    number = parts.nodes[at(code)]
    first = np.int32(code * parts.most)
    exits = np.int32(1) if before < 0 else parts.exits[at(before)]
    entry = np.int32(np.int32(base - exits) << _SET | np.int32((1 << exits) - 1))
    for p in range(parts.places):
        begin = np.int32(base + parts.begin[at(code * parts.places + p)])
        graph.begin[at(k * parts.places + p + 1)] = begin
    outside = np.int32(number - parts.exits[at(code)])
    for x in range(number):
        u = np.int32(base + x)
        graph.symbol[at(u)] = parts.symbol[at(first + x)]
        graph.place[at(u)] = np.int32(k * parts.places + np.int32(parts.place[at(first + x)]))
        behind = parts.behind[at(first + x)]
        graph.behind[at(u)] = entry if behind < 0 else np.int32(behind + (base << _SET))
        for a in range(4):
            y = np.int32(-1)
            if x < outside:
                inner = parts.ahead[at(4 * (first + x) + a)]
                y = np.int32(base + inner) if inner >= 0 else np.int32(-1)
            elif following >= 0:
                y = after_entry(parts, following, np.int32(a), np.int32(base + number))
            graph.ahead[at(4 * u + a)] = y


@shared
def clear_rows(alg: Any, cells: Any, rows: Any) -> None:
    """Make cells of an array zero."""
    i: Any = np.int32(lane_index())
    while i < cells:
        rows[at(i)] = alg.zero
        i = np.int32(i + warp_size())
    synchronize_warp()


@shared
def without_lowest(word: Any) -> Any:
    """A set without its lowest member."""
    return np.int32(word & np.int32(word - 1))


@shared
def enter_prefixes(alg: Any, trees: Any, widest: Any, tree: Any, graph: Any, ends: Any) -> None:
    """Find the prefixes of a tree; a prefix belongs to the node that it ends with.

    Parameters
    ----------
    alg
        The algebra.
    trees
        `plait.schedules.warp_weighted_tables.LevelTrees`.
    widest
        Nodes of the widest level.
    tree
        Which tree.
    graph
        `GraphMemory`.
    ends
        `EndRows` or `Visits`.
    """
    lane = np.int32(lane_index())
    level = trees.first[at(tree)]
    last = trees.first[at(tree + 1)]
    if lane == 0:
        graph.found[at(0)] = 0
    add_end(ends, alg, trees, trees.level[at(level)], np.int32(0), np.int32(1))
    synchronize_warp()
    old, new = np.int32(0), widest
    level = np.int32(level + 1)
    hit = True
    while hit and level < last:
        hit = False
        x = trees.level[at(level)]
        end = trees.level[at(level + 1)]
        base = x
        while x < end:
            t = np.int32(x + lane)
            node = np.int32(-1)
            if t < end:
                before = graph.found[at(old + trees.above[at(t)])]
                if before >= 0:
                    node = np.int32(graph.ahead[at(4 * before + np.int32(trees.label[at(t)]))])
                graph.found[at(np.int32(new + t - base))] = node
            hits = ballot(node >= 0)
            while hits != 0:
                k = np.int32(lowest_bit(hits))
                hits = hits & (hits - 1)
                to = shuffle(node, k)
                add_end(ends, alg, trees, np.int32(x + k), to, np.int32(1))
                hit = True
            x = np.int32(x + warp_size())
        synchronize_warp()
        old, new = new, old
        level = np.int32(level + 1)


@shared
def add_to_rows(ends: Any, alg: Any, trees: Any, t: Any, first: Any, nodes: Any) -> None:
    """Add what a node of a tree weighs to some nodes of the graph: a lane for each context."""
    lane = np.int32(lane_index())
    if lane < ends.number:
        weight = trees.weight[at(t * trees.contexts + ends.context + lane)]
        left = nodes
        while left != 0:
            cell = np.int32(np.int32(first + lowest_bit(left)) * ends.stride + lane)
            ends.cells[at(cell)] = choice(alg, ends.cells[at(cell)], weight)
            left = without_lowest(left)


@shared
def add_visits(ends: Any, alg: Any, trees: Any, t: Any, first: Any, nodes: Any) -> None:
    """Note some nodes of the graph with a node of a tree, if that weighs anything."""
    lane = np.int32(lane_index())
    weighs = False
    c: Any = lane
    while c < trees.contexts:
        weighs = weighs or trees.weight[at(t * trees.contexts + c)] != alg.zero
        c = np.int32(c + warp_size())
    if ballot(weighs) != 0 and lane == 0:
        left = nodes
        while left != 0:
            k = ends.count[at(0)]
            if k < ends.most:
                ends.node[at(k)] = t
                ends.node[at(ends.most + k)] = np.int32(first + lowest_bit(left))
            ends.count[at(0)] = np.int32(k + 1)
            left = without_lowest(left)


#: A node of a tree has been found: at those nodes of a place, which begins with `first`, that are in a set.
add_end = by_type_of({EndRows: add_to_rows, Visits: add_visits})


@shared
def enter_suffixes(alg: Any, trees: Any, widest: Any, tree: Any, places: Any, graph: Any, ends: Any) -> None:
    """Find the suffixes of a tree, as `enter_prefixes` does; they belong to the node that they are behind."""
    lane = np.int32(lane_index())
    level = trees.first[at(tree)]
    last = trees.first[at(tree + 1)]
    # Nodes are found as sets of those of one place, since several may have one symbol.
    first = np.int32(graph.begin[at(places - 1)])
    exits = np.int32((1 << (graph.begin[at(places)] - first)) - 1)
    if lane == 0:
        graph.found[at(0)] = exits
    add_end(ends, alg, trees, trees.level[at(level)], first, exits)
    synchronize_warp()
    old, new = np.int32(0), widest
    level = np.int32(level + 1)
    place = np.int32(places - 1)
    hit = True
    while hit and level < last and place > 0:
        hit = False
        x = trees.level[at(level)]
        end = trees.level[at(level + 1)]
        base = x
        first = np.int32(graph.begin[at(place)])
        place = np.int32(place - 1)
        to = np.int32(graph.begin[at(place)])
        while x < end:
            t = np.int32(x + lane)
            nodes = np.int32(0)
            if t < end:
                nodes = read_back(graph, first, graph.found[at(old + trees.above[at(t)])], trees.label[at(t)])
                graph.found[at(np.int32(new + t - base))] = nodes
            hits = ballot(nodes != 0)
            while hits != 0:
                k = np.int32(lowest_bit(hits))
                hits = hits & (hits - 1)
                add_end(ends, alg, trees, np.int32(x + k), to, shuffle(nodes, k))
                hit = True
            x = np.int32(x + warp_size())
        synchronize_warp()
        old, new = new, old
        level = np.int32(level + 1)


@shared
def read_back(graph: Any, first: Any, nodes: Any, symbol: Any) -> Any:
    """The nodes before those of a set that have a symbol; sets have bits from the first of a place on."""
    found = np.int32(0)
    while nodes != 0:
        u = np.int32(first + lowest_bit(nodes))
        if graph.symbol[at(u)] == symbol:
            found = np.int32(found | (graph.behind[at(u)] & _NODES))
        nodes = without_lowest(nodes)
    return found
