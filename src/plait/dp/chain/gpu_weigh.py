"""The weighted chain of one junction with ambiguous symbols by the lanes of a warp together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.dp.chain.gpu_weigh_plain import Span, over_warp, span_entered
from plait.dp.chain.insertions import insert
from plait.lang.algebras import choice, extend
from plait.lang.compile import by_type_of, shared
from plait.lang.lanes import lowest_bit
from plait.lang.warps import WARP, at, ballot, lane_index, shuffle, shuffle_up, synchronize_warp, warp_size

#: Bits of a word that tell which nodes; those above them tell the first one.
_SET = 16
_NODES = (1 << _SET) - 1


class GraphMemory(NamedTuple):
    """A graph, which the lanes of a warp share.

    `symbol` uint8 (nodes,) and `place` int16 (nodes,), the symbols on the way to a node. `behind`, int32
    (nodes,): the first node of the place before, times 65536, and bits for those that a node follows;
    `ahead`, int16 (4 * nodes,): the node that a symbol leads to, or -1. `begin`, int16 (places + 1,): first
    node of every place, and the number of nodes; `found`, int32 (2, widest): nodes that a level of a trie has
    come to.
    """

    symbol: Any
    place: Any
    behind: Any
    ahead: Any
    begin: Any
    found: Any


class EndRows(NamedTuple):
    """Where the weights of ends are added up: `cells`, (nodes, stride), cleared before the first trie.

    `context` is the first of `number` contexts, at most as many as lanes.
    """

    cells: Any
    context: Any
    number: Any
    stride: Any


class Visits(NamedTuple):
    """Where it is noted which ends there are.

    `node`, int32 (2, most): nodes of the tries, and nodes of the graph. `count`, int32 (1,): how many there
    are, more than `most` if some are missing for lack of room.
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
def enter_v(alg: Any, trees: Any, widest: Any, tree: Any, graph: Any, ends: Any) -> None:
    """Find the V ends of a trie; a V end belongs to the node that it ends with.

    `trees` are `plait.dp.chain.gpu_tables.LevelTrees` with levels of at most `widest` nodes; `ends` is
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
    """Add what a node of a trie weighs to some nodes of the graph: a lane for each context."""
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
    """Note some nodes of the graph with a node of a trie, if that weighs anything."""
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
def enter_j(alg: Any, trees: Any, widest: Any, tree: Any, places: Any, graph: Any, ends: Any) -> None:
    """Find the J ends of a trie, as `enter_v` does; they belong to the node that they are behind."""
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


class ChainMemory(NamedTuple):
    """Memory that the lanes of a warp share, besides the graph.

    `before`, (nodes,): what the V end before each node weighs; `after`, (nodes, group): the J end behind
    it, in each context. `entered`, (1 + group, nodes): what begins an insertion with a node, the leftmost,
    and in each context the rightmost; later all that is before a node, and behind it. `levels`,
    (2, 1 + group, nodes): two levels. `trail`, int16 (deepest + 1, lanes): nodes on the way of each lane.
    """

    before: Any
    after: Any
    entered: Any
    levels: Any
    trail: Any

    @staticmethod
    def is_entered(memory: ChainMemory, alg: Any, row: Any, u: Any, nodes: Any, number: Any) -> Any:
        if row == 0:
            return memory.before[at(u)] != alg.zero
        return memory.after[at(np.int32(u * number + row - 1))] != alg.zero


@shared
def weigh_graph(
    alg: Any, chain: Any, parts: Any, texts: Any, item: Any, graph: Any, memory: Any, out: Any
) -> None:
    """Weight of everything that a text stands for, into ``out[item]``.

    `chain` and `parts` as in `plait.dp.chain.gpu_tables`, `texts` are `plait.dp.chain.graphs.CodedJunctions`;
    `graph` is a `GraphMemory`, `memory` a `ChainMemory`.
    """
    nodes, places = lay_warp_graph(parts, texts, item, graph)
    clear_rows(alg, nodes, memory.before)
    one = np.int32(1)
    v_ends = EndRows(memory.before, np.int32(0), one, one)
    for k in range(texts.v_first[at(item)], texts.v_first[at(item + 1)]):
        enter_v(alg, chain.v, chain.widest, texts.v_root[at(k)], graph, v_ends)
    total = alg.zero
    context = np.int32(0)
    while context < chain.contexts:
        number = min(chain.group, np.int32(chain.contexts - context))
        clear_rows(alg, np.int32(nodes * number), memory.after)
        j_ends = EndRows(memory.after, context, number, number)
        for k in range(texts.j_first[at(item)], texts.j_first[at(item + 1)]):
            enter_j(alg, chain.j, chain.widest, texts.j_root[at(k)], places, graph, j_ends)
        span = places_entered(alg, nodes, number, graph, memory)
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
def places_entered(alg: Any, nodes: Any, number: Any, graph: Any, memory: Any) -> Any:
    """`Span` of the places of nodes with something; the first is behind the last where a side has nothing."""
    low, before, after, high = span_entered(alg, nodes, number, memory)
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
    """What V ends weigh that end just before a node."""
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
    """A level to the left of the D gene, of some nodes."""
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
    """A level to the right of the D gene, of some nodes, in context c and the next one, if there is one."""
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
    """D genes between both sides: what this lane has of the weight."""
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
            inner = read_words(alg, chain.d, np.int32(context + c), u, row, graph, memory)
            total = choice(alg, total, extend(alg, left, inner))
        i = np.int32(i + warp_size())
    return total


@shared
def read_words(alg: Any, words: Any, d: Any, u: Any, row: Any, graph: Any, memory: Any) -> Any:
    """Parts of a D gene that begin behind a node, each with all behind it."""
    lane = np.int32(lane_index())
    t = words.first[at(d)]
    end = words.first[at(d + 1)]
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


class PairMemory(NamedTuple):
    """Memory that the lanes of a warp share, besides the graph; `v_ends` and `j_ends` are `Visits`.

    `inserted`, (nodes, lanes): what insertions from each start to each node weigh.
    """

    inserted: Any
    v_ends: Any
    j_ends: Any


@shared
def weigh_pair_graph(
    alg: Any, chain: Any, parts: Any, texts: Any, item: Any, graph: Any, memory: Any, out: Any
) -> None:
    """Weight of everything that a text stands for, into ``out[item]``; NaN if it has too many ends.

    As `weigh_graph`, without D genes and with `PairMemory`.
    """
    lane = np.int32(lane_index())
    v_ends, j_ends = memory.v_ends, memory.j_ends
    if lane == 0:
        v_ends.count[at(0)] = 0
        j_ends.count[at(0)] = 0
    nodes, places = lay_warp_graph(parts, texts, item, graph)
    for k in range(texts.v_first[at(item)], texts.v_first[at(item + 1)]):
        enter_v(alg, chain.v, chain.widest, texts.v_root[at(k)], graph, v_ends)
    for k in range(texts.j_first[at(item)], texts.j_first[at(item + 1)]):
        enter_j(alg, chain.j, chain.widest, texts.j_root[at(k)], places, graph, j_ends)
    synchronize_warp()
    starts, ends = v_ends.count[at(0)], j_ends.count[at(0)]
    total = alg.zero
    x = np.int32(0)
    while x < starts and max(starts, ends) <= v_ends.most:
        number = min(np.int32(WARP), np.int32(starts - x))
        start = np.int32(-1)
        if lane < number:
            start = v_ends.node[at(v_ends.most + x + lane)]
        # The first start is of the first place of all.
        first = np.int32(v_ends.node[at(v_ends.most + x)])
        first = np.int32(graph.begin[at(graph.place[at(first)])])
        insert_after(alg, chain, nodes, first, start, graph, memory)
        total = choice(alg, total, over_pairs(alg, chain, first, x, number, ends, memory))
        synchronize_warp()
        x = np.int32(x + WARP)
    total = over_warp(alg, total)
    if lane == 0:
        out[at(item)] = total if max(starts, ends) <= v_ends.most else np.nan
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
    """Some V ends, all J ends and the insertions between them, in the contexts of this lane."""
    lane = np.int32(lane_index())
    v_ends, j_ends = memory.v_ends, memory.j_ends
    contexts = chain.contexts
    total = alg.zero
    context = np.int32(0)
    while context < contexts:
        # Lanes without a context have J ends that weigh nothing.
        own = min(np.int32(context + lane), np.int32(contexts - 1))
        for e in range(ends):
            y = j_ends.node[at(j_ends.most + e)]
            after = alg.zero
            if np.int32(context + lane) < contexts:
                after = chain.j.weight[at(j_ends.node[at(e)] * contexts + own)]
            if y >= first and ballot(after != alg.zero) != 0:
                before = alg.zero
                for k in range(number):
                    v = chain.v.weight[at(v_ends.node[at(x + k)] * contexts + own)]
                    before = choice(alg, before, extend(alg, v, memory.inserted[at(y * WARP + k)]))
                total = choice(alg, total, extend(alg, before, after))
        context = np.int32(context + WARP)
    return total
