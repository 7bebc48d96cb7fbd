"""Texts of which not every symbol is known, as graphs: a path from the first node to a last one is a text.

Every node carries the symbol that leads to it, and no two nodes that follow the same one carry the same
symbol, so that different paths are different texts. A text is written in *codes*, of which each stands for
one or more places: a nucleotide for one, an amino acid for three. What a code stands for is a `GraphParts`
entry.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared

__all__ = ["GraphParts", "TextGraph", "WeightedTexts", "lay_graph"]


class GraphParts(NamedTuple):
    """What each code stands for: nodes in order of place, of which the first ones enter, the last leave.

    Attributes
    ----------
    nodes, entries, exits
        int64 (codes,): how many there are.
    symbol
        uint8 (codes, most nodes).
    place
        int64 (codes, most nodes): symbols read with this one, from 1.
    before_first, before
        int64 (codes, most nodes + 1) and (codes, most edges): nodes before each node, numbered in the part;
        none for entries, which follow all exits of the part before.
    """

    nodes: Any
    entries: Any
    exits: Any
    symbol: Any
    place: Any
    before_first: Any
    before: Any


class WeightedTexts(NamedTuple):
    """A batch of texts.

    Attributes
    ----------
    codes
        uint8 (total,): codes of all texts.
    start, length
        int64 (n,): text i is ``codes[start[i]:start[i] + length[i]]``.
    prefix_first, prefix_root
        int64 (n + 1,) and int32: roots of the trees of prefixes that text i may begin with.
    suffix_first, suffix_root
        The same for suffixes.
    """

    codes: Any
    start: Any
    length: Any
    prefix_first: Any
    prefix_root: Any
    suffix_first: Any
    suffix_root: Any


class TextGraph(NamedTuple):
    """One graph; node 0 begins all paths, and nodes are in order of their place.

    Attributes
    ----------
    symbol
        uint8 (nodes,); that of node 0 is not read.
    place
        int64 (nodes,): symbols on the way to a node.
    before_first, before
        int64 (nodes + 1,) and (edges,): nodes before each node.
    after_first, after
        int64 (nodes + 2,) and (edges,): nodes after each node.
    """

    symbol: Any
    place: Any
    before_first: Any
    before: Any
    after_first: Any
    after: Any


@shared
def lay_graph(parts: Any, texts: Any, item: int, graph: Any) -> int:
    """Write the graph of a text; returns the number of nodes."""
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
