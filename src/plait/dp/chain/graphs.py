"""Junctions with ambiguous symbols as graphs: a path from the first node to a last one is a text.

Every node carries the symbol that leads to it, and no two nodes that follow the same one carry the same
symbol, so that different paths are different texts. A text is written in *codes*, each standing for one or
more places: a nucleotide for one, an amino acid for three (`GraphParts`).

Schedules ask a graph by functions. A text of which every symbol is known needs no lists of edges
(`PathGraph`): loops over what is before or behind a node have one round, and the same bodies become those of
plain texts. Where symbols may have been misread (`ReadGraph`), all texts of one length are paths, and a node
weighs how probable it is that its symbol is read as the one that stands there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.lang.compile import by_type, by_type_of, shared
from plait.lang.lanes import splat


class GraphParts(NamedTuple):
    """What each code stands for: nodes in order of place, of which the first ones enter, the last leave.

    `nodes`, `entries` and `exits` are int64 (codes,) counts; `symbol` uint8 and `place` int64, both
    (codes, most nodes), places counted from 1. `before_first`, int64 (codes, most nodes + 1), are offsets
    into `before`, int64 (codes, most edges): nodes before each node, numbered in the part; none for entries,
    which follow all exits of the part before.
    """

    nodes: Any
    entries: Any
    exits: Any
    symbol: Any
    place: Any
    before_first: Any
    before: Any


class CodedJunctions(NamedTuple):
    """A batch of texts: text i is ``codes[start[i]:start[i] + length[i]]``, uint8.

    `v_first` (n + 1,) are offsets into `v_root` (int32): roots of the tries of V ends that text i
    may begin with; `j_first` and `j_root` likewise. All offsets and lengths are int64.
    """

    codes: Any
    start: Any
    length: Any
    v_first: Any
    v_root: Any
    j_first: Any
    j_root: Any

    def take(self, items: NDArray[np.int64]) -> CodedJunctions:
        """Some of them."""
        lists = (*taken(self.v_first, self.v_root, items), *taken(self.j_first, self.j_root, items))
        return CodedJunctions(self.codes, self.start[items], self.length[items], *lists)


def taken(
    first: NDArray[np.int64], values: NDArray[np.int32], lists: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Some lists, one after the other: where each begins, and their values.

    List k is ``values[first[k]:first[k + 1]]``.
    """
    sizes = np.diff(first)[lists]
    edges = np.concatenate([[0], np.cumsum(sizes)])
    return edges, values[np.arange(edges[-1]) + np.repeat(first[lists] - edges[:-1], sizes)]


class TextGraph(NamedTuple):
    """One graph; node 0 begins all paths, and nodes are in order of their place.

    `symbol` is uint8 (nodes,), not read for node 0; `place` int64 (nodes,), the symbols on the way to a node.
    `before_first`, int64 (nodes + 1,), are offsets into `before` (edges,), and `after_first`, int64
    (nodes + 2,), into `after` (edges,): the nodes before and after each node.
    """

    symbol: Any
    place: Any
    before_first: Any
    before: Any
    after_first: Any
    after: Any

    @staticmethod
    def lay_graph(graph: TextGraph, parts: Any, texts: Any, item: int) -> int:
        graph.place[0] = 0
        graph.before_first[0] = 0
        nodes = 1
        edges = 0
        exits = 1
        done = 0
        for k in range(texts.length[item]):
            code = texts.codes[texts.start[item] + k]
            base = nodes
            for x in range(parts.nodes[code]):
                graph.symbol[nodes] = parts.symbol[code, x]
                graph.place[nodes] = done + parts.place[code, x]
                graph.before_first[nodes] = edges
                if x < parts.entries[code]:
                    for y in range(base - exits, base):
                        graph.before[edges] = y
                        edges += 1
                else:
                    for e in range(parts.before_first[code, x], parts.before_first[code, x + 1]):
                        graph.before[edges] = base + parts.before[code, e]
                        edges += 1
                nodes += 1
            done = graph.place[nodes - 1]
            exits = parts.exits[code]
        graph.before_first[nodes] = edges
        turn_edges(graph, nodes, edges)
        return nodes

    @staticmethod
    def place_of(graph: TextGraph, u: int) -> Any:
        return graph.place[u]

    @staticmethod
    def count_before(graph: TextGraph, u: int) -> Any:
        return graph.before_first[u + 1] - graph.before_first[u]

    @staticmethod
    def node_before(graph: TextGraph, u: int, k: int) -> Any:
        return graph.before[graph.before_first[u] + k]

    @staticmethod
    def count_after(graph: TextGraph, nodes: int, u: int) -> Any:
        return graph.after_first[u + 1] - graph.after_first[u]

    @staticmethod
    def node_after(graph: TextGraph, u: int, k: int) -> Any:
        return graph.after[graph.after_first[u] + k]


class PathGraph(NamedTuple):
    """The graph of a plain text: node u is its u-th symbol; `symbol` is uint8 (nodes,), not read at 0."""

    symbol: Any

    @staticmethod
    def lay_graph(graph: PathGraph, parts: Any, texts: Any, item: int) -> int:
        start = texts.start[item]
        length = texts.length[item]
        for k in range(length):
            graph.symbol[k + 1] = parts.symbol[texts.codes[start + k], 0]
        nodes: int = length + 1
        return nodes

    @staticmethod
    def place_of(graph: PathGraph, u: int) -> int:
        return u

    @staticmethod
    def count_before(graph: PathGraph, u: int) -> int:
        return 1

    @staticmethod
    def node_before(graph: PathGraph, u: int, k: int) -> int:
        return u - 1

    @staticmethod
    def count_after(graph: PathGraph, nodes: int, u: int) -> int:
        return 1 if u + 1 < nodes else 0

    @staticmethod
    def node_after(graph: PathGraph, u: int, k: int) -> int:
        return u + 1


class ReadGraph(NamedTuple):
    """The graph of a plain text that was read with errors; node 4 p - 3 + s is symbol s at place p.

    `symbol` is uint8 (nodes,), `read` uint8 (places + 1,): what was read, from place 1 on. `rate`, float64
    (2,): how probable it is that a symbol is read as itself, and as each one of the others. `way`, float64
    (places + 1, 2): what the symbols on the walk under way weigh as they were read, and how many of them were
    misread, up to each place.
    """

    symbol: Any
    read: Any
    rate: Any
    way: Any

    @staticmethod
    def lay_graph(graph: ReadGraph, parts: Any, texts: Any, item: int) -> int:
        start = texts.start[item]
        length = texts.length[item]
        for k in range(length):
            graph.read[k + 1] = parts.symbol[texts.codes[start + k], 0]
            for s in range(4):
                graph.symbol[4 * k + 1 + s] = s
        nodes: int = 4 * length + 1
        return nodes

    @staticmethod
    def place_of(graph: ReadGraph, u: int) -> int:
        return (u + 3) // 4

    @staticmethod
    def count_before(graph: ReadGraph, u: int) -> int:
        return 4 if u > 4 else 1

    @staticmethod
    def node_before(graph: ReadGraph, u: int, k: int) -> int:
        return (u - 1) // 4 * 4 - 3 + k if u > 4 else 0

    @staticmethod
    def count_after(graph: ReadGraph, nodes: int, u: int) -> int:
        return 4 if u + 4 < nodes else 0

    @staticmethod
    def node_after(graph: ReadGraph, u: int, k: int) -> int:
        return (u + 3) // 4 * 4 + 1 + k


@by_type
def lay_graph(graph: Any, parts: Any, texts: Any, item: int) -> Any:
    """Write the graph of a junction, part by part; returns the number of nodes."""


@by_type
def place_of(graph: Any, u: int) -> Any:
    """Symbols on the way to a node."""


@by_type
def count_before(graph: Any, u: int) -> Any:
    """How many nodes `u` follows; it is not node 0."""


@by_type
def node_before(graph: Any, u: int, k: int) -> Any:
    """The k-th of them."""


@by_type
def count_after(graph: Any, nodes: int, u: int) -> Any:
    """How many nodes follow `u`."""


@by_type
def node_after(graph: Any, u: int, k: int) -> Any:
    """The k-th of them."""


@shared
def turn_edges(graph: Any, nodes: int, edges: int) -> None:
    """From the nodes before each node, those after each."""
    counts = graph.after_first
    for u in range(nodes + 2):
        counts[u] = 0
    for e in range(edges):
        counts[graph.before[e] + 2] += 1
    for u in range(2, nodes + 2):
        counts[u] += counts[u - 1]
    # Entry u + 1 is where the next node after u goes; in the end it is where those of u + 1 begin.
    for u in range(1, nodes):
        for e in range(graph.before_first[u], graph.before_first[u + 1]):
            p = graph.before[e]
            graph.after[counts[p + 1]] = u
            counts[p + 1] += 1


@shared
def is_misread(graph: Any, u: int) -> int:
    """Whether the symbol of a node is another one than that which was read, as a number."""
    return 0 if graph.symbol[u] == graph.read[place_of(graph, u)] else 1


@shared
def _nothing(graph: Any, u: int) -> None:
    pass


@shared
def _unchanged(graph: Any, u: int, value: Any) -> Any:
    return value


@shared
def _group_unchanged(graph: Any, lanes: Any, u: int, value: Any) -> Any:
    return value


@shared
def _none_counted(graph: Any, u: int, errors: Any, amount: Any) -> None:
    pass


@shared
def _begin_walk(graph: Any, u: int) -> None:
    place = place_of(graph, u)
    graph.way[place, 0] = 1.0
    graph.way[place, 1] = 0.0


@shared
def _walk(graph: Any, u: int, here: int, there: int) -> None:
    wrong = is_misread(graph, u)
    graph.way[there, 0] = graph.way[here, 0] * graph.rate[wrong]
    graph.way[there, 1] = graph.way[here, 1] + wrong


@shared
def _walk_on(graph: Any, u: int) -> None:
    _walk(graph, u, place_of(graph, u) - 1, place_of(graph, u))


@shared
def _walk_back(graph: Any, u: int) -> None:
    _walk(graph, u, place_of(graph, u), place_of(graph, u) - 1)


@shared
def _as_read(graph: Any, u: int, value: Any) -> Any:
    return value * graph.rate[is_misread(graph, u)]


@shared
def _on_way(graph: Any, u: int, value: Any) -> Any:
    return value * graph.way[place_of(graph, u), 0]


@shared
def _group_on_way(graph: Any, lanes: Any, u: int, value: Any) -> Any:
    return value * splat(lanes, graph.way[place_of(graph, u), 0])


@shared
def _count_misread(graph: Any, u: int, errors: Any, amount: Any) -> None:
    errors[0] += amount * is_misread(graph, u)


@shared
def _count_on_way(graph: Any, u: int, errors: Any, amount: Any) -> None:
    errors[0] += amount * graph.way[place_of(graph, u), 1]


def _where_misread(usual: Any, misread: Any) -> Any:
    """`misread` where symbols may have been misread, else `usual`."""
    return by_type_of({PathGraph: usual, TextGraph: usual, ReadGraph: misread})


#: Begin to walk at a node. A walk goes deep first, so what is known up to a place stays until it turns there.
begin_walk = _where_misread(_nothing, _begin_walk)
#: Go on to a node, and back over one.
walk_on = _where_misread(_nothing, _walk_on)
walk_back = _where_misread(_nothing, _walk_back)
#: A value times what the symbols on the walk to a node weigh as they were read; a group of them.
on_way = _where_misread(_unchanged, _on_way)
group_on_way = _where_misread(_group_unchanged, _group_on_way)
#: A value times what the symbol of a node weighs as it was read.
as_read = _where_misread(_unchanged, _as_read)
#: Add an amount for each symbol of the walk to a node that was misread; for the symbol of a node if it was.
count_on_way = _where_misread(_none_counted, _count_on_way)
count_misread = _where_misread(_none_counted, _count_misread)


@shared
def _own(graph: Any, rows: Any, u: int) -> Any:
    return rows[u, 0]


@shared
def _add_own(graph: Any, rows: Any, u: int, value: Any) -> None:
    rows[u, 0] += value


@shared
def _gathered(graph: Any, rows: Any, u: int) -> Any:
    total = 0.0
    if u % 4 == 0:
        for alike in range(max(u - 3, 0), u + 1):
            total += rows[alike, 0]
    return total


@shared
def _add_to_alike(graph: Any, rows: Any, u: int, value: Any) -> None:
    for alike in range(max(u - 3, 0), u + 1):
        rows[alike, 0] += value


#: Of nodes that the same ones follow, the last has the sum of their rows, the others have zero.
gathered = _where_misread(_own, _gathered)
#: Add a value to the rows of all of them, given the last one.
add_to_alike = _where_misread(_add_own, _add_to_alike)


@shared
def step_on(tree: Any, graph: Any, nodes: int, t: int, u: int, stack: Any, top: int) -> Any:
    """Go on along a tree and a graph together: the next nodes of both, -1 behind the last, and what is left.

    The first way on is taken at once, others are put aside; where none goes on, the last one that was put
    aside is taken.
    """
    next_t = -1
    next_u = 0
    for k in range(count_after(graph, nodes, u)):
        y = node_after(graph, u, k)
        below = tree.child[t, graph.symbol[y]]
        if below >= 0:
            if next_t >= 0:
                stack[top, 0] = next_t
                stack[top, 1] = next_u
                top += 1
            next_t = below
            next_u = y
    if next_t < 0 and top > 0:
        top -= 1
        next_t = stack[top, 0]
        next_u = stack[top, 1]
    if next_t >= 0:
        walk_on(graph, next_u)
    return next_t, next_u, top


@shared
def step_back(tree: Any, graph: Any, t: int, u: int, stack: Any, top: int) -> Any:
    """As `step_on`, with the symbol of node `u` itself, to the nodes before it."""
    next_t = -1
    next_u = 0
    below = tree.child[t, graph.symbol[u]] if u > 0 else -1
    if below >= 0:
        walk_back(graph, u)
        for k in range(count_before(graph, u)):
            if next_t >= 0:
                stack[top, 0] = next_t
                stack[top, 1] = next_u
                top += 1
            next_t = below
            next_u = node_before(graph, u, k)
    if next_t < 0 and top > 0:
        top -= 1
        next_t = stack[top, 0]
        next_u = stack[top, 1]
    return next_t, next_u, top
