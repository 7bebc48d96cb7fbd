"""How often each choice of the chain was made, in expectation, given a text.

The weight of a text is a sum of products (`plait.schedules.weighted_chain`). How often a factor was used is
its value times the derivative of the logarithm of that sum; all derivatives take one pass backwards over
what the pass forwards has stored. Trees collect counts at their nodes: what several genes share is divided
among them once for all texts, in proportion to their weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.algebras import PROBABILITY
from plait.schedules.end_trees import enter_ends
from plait.schedules.text_graphs import lay_graph
from plait.schedules.weighted_chain import insert_left, insert_right, join, padded_to, places_entered

__all__ = ["ChainCounts", "ExpectationScratch", "expect_text"]


class ChainCounts(NamedTuple):
    """Expected numbers; what is found is added.

    Attributes
    ----------
    prefix, suffix, fragment
        Shapes of the weights of the trees: by node.
    left_length, right_length
        float64 (1 + most,): by number of insertions.
    left_step, right_step
        float64 (5, 4): by inserted symbol after the one before; row 4 is the first one.
    """

    prefix: Any
    suffix: Any
    fragment: Any
    left_length: Any
    right_length: Any
    left_step: Any
    right_step: Any


class ExpectationScratch(NamedTuple):
    """Derivatives, in the shapes of what they belong to in `WeightedScratch`.

    Attributes
    ----------
    before, left, after, right, left_levels, right_levels, inserted
        float64.
    """

    before: Any
    left: Any
    after: Any
    right: Any
    left_levels: Any
    right_levels: Any
    inserted: Any


@shared
def expect_text(
    lanes: Any,
    chain: Any,
    parts: Any,
    texts: Any,
    item: int,
    share: float,
    scratch: Any,
    turned: Any,
    counts: Any,
    out: Any,
) -> None:
    """Weight of a text into ``out[item]``, and `share` of its expected numbers into `counts`.

    Parameters
    ----------
    lanes, chain, parts, texts, item, scratch, out
        As for `plait.schedules.weighted_chain.weigh_text`, with probabilities.
    share
        How many times the text counts.
    turned
        `ExpectationScratch`.
    counts
        `ChainCounts`.
    """
    alg = PROBABILITY
    graph = scratch.graph
    nodes = lay_graph(parts, texts, item, graph)
    enter_ends(alg, chain, texts, item, graph, nodes, scratch)
    insert_left(lanes, alg, chain, graph, nodes, scratch)
    insert_right(lanes, alg, chain, graph, nodes, scratch)
    total = join(alg, chain, graph, nodes, scratch)
    out[item] = total
    if total > 0.0:
        turn_join(chain, graph, nodes, share / total, scratch, turned, counts)
        turn_right(lanes, chain, graph, nodes, scratch, turned, counts)
        turn_left(lanes, chain, graph, nodes, scratch, turned, counts)
        turn_ends(chain, texts, item, graph, nodes, scratch, turned, counts)


@shared
def turn_join(
    chain: Any, graph: Any, nodes: int, scale: float, scratch: Any, turned: Any, counts: Any
) -> None:
    """Derivatives by `left` and `right`, and numbers of the words of fragments."""
    fragments = chain.fragment_root.size
    for u in range(nodes):
        for f in range(fragments):
            turned.right[u, f] = 0.0
    for u in range(nodes):
        turned.left[u, 0] = 0.0
        if scratch.left[u, 0] != 0.0:
            for f in range(fragments):
                turn_fragment(chain, graph, u, f, scale, scratch, turned, counts)


@shared
def turn_fragment(
    chain: Any, graph: Any, start: int, f: int, scale: float, scratch: Any, turned: Any, counts: Any
) -> None:
    """The share of one fragment that begins behind a node."""
    stack = scratch.stack
    tree = chain.fragment
    left = scratch.left[start, 0] * scale
    stack[0, 0] = chain.fragment_root[f]
    stack[0, 1] = start
    top = 1
    while top > 0:
        top -= 1
        t = stack[top, 0]
        u = stack[top, 1]
        weight = tree.weight[t, 0]
        turned.left[start, 0] += weight * scratch.right[u, f] * scale
        turned.right[u, f] += left * weight
        counts.fragment[t, 0] += left * weight * scratch.right[u, f]
        for e in range(graph.after_first[u], graph.after_first[u + 1]):
            y = graph.after[e]
            below = tree.child[t, graph.symbol[y]]
            if below >= 0:
                stack[top, 0] = below
                stack[top, 1] = y
                top += 1


@shared
def turn_left(lanes: Any, chain: Any, graph: Any, nodes: int, scratch: Any, turned: Any, counts: Any) -> None:
    """From the derivatives by `left`: those by `before`, and numbers of insertions on the left."""
    low, high = places_entered(PROBABILITY, graph, nodes, scratch.before)
    most = counts.left_length.size - 1
    for u in range(nodes):
        turned.before[u, 0] = turned.left[u, 0] * chain.left_none[0]
        counts.left_length[0] += turned.before[u, 0] * scratch.before[u, 0]
    for u in range(nodes - 1, 0, -1):
        place = graph.place[u]
        if place > low:
            symbol = graph.symbol[u]
            end = min(high, place - 1)
            for i in range(max(low, place - most), end + 1):
                at = chain.left_length.shape[1] - chain.margin - place + i
                weight = chain.left_length[0, at] * turned.left[u, 0]
                counts.left_length[place - i] += weight * scratch.left_levels[u, i - low]
                turned.left_levels[u, i - low] = weight
            for i in range(low, min(place - most, end + 1)):
                turned.left_levels[u, i - low] = 0.0
            for e in range(graph.after_first[u], graph.after_first[u + 1]):
                y = graph.after[e]
                step = chain.left_step[symbol, graph.symbol[y]]
                used = 0.0
                for i in range(low, end + 1):
                    weight = step * turned.left_levels[y, i - low]
                    used += weight * scratch.left_levels[u, i - low]
                    turned.left_levels[u, i - low] += weight
                counts.left_step[symbol, graph.symbol[y]] += used
            if place - 1 <= high:
                weight = chain.left_first[symbol] * turned.left_levels[u, place - 1 - low]
                for e in range(graph.before_first[u], graph.before_first[u + 1]):
                    p = graph.before[e]
                    turned.before[p, 0] += weight
                    counts.left_step[4, symbol] += weight * scratch.before[p, 0]


@shared
def turn_right(
    lanes: Any, chain: Any, graph: Any, nodes: int, scratch: Any, turned: Any, counts: Any
) -> None:
    """From the derivatives by `right`: those by `after`, and numbers of insertions on the right."""
    contexts = chain.suffix.weight.shape[1]
    low, high = places_entered(PROBABILITY, graph, nodes, scratch.after)
    count = padded_to(lanes, high - low + 1)
    most = counts.right_length.size - 1
    for c in range(contexts):
        for u in range(nodes):
            place = graph.place[u]
            turned.after[u, c] = turned.right[u, c] * chain.right_none[0]
            counts.right_length[0] += turned.after[u, c] * scratch.after[u, c]
            if 0 < place <= high:
                inserted = 0.0
                for e in range(graph.before_first[u], graph.before_first[u + 1]):
                    inserted += turned.right[graph.before[e], c]
                turn_right_node(chain, graph, u, c, inserted, low, high, count, most, scratch, turned, counts)


@shared
def turn_right_node(
    chain: Any,
    graph: Any,
    u: int,
    c: int,
    inserted: float,
    low: int,
    high: int,
    count: int,
    most: int,
    scratch: Any,
    turned: Any,
    counts: Any,
) -> None:
    """The share of insertions whose leftmost symbol is that of a node."""
    place = graph.place[u]
    symbol = graph.symbol[u]
    lead = c * count - low
    for i in range(max(low, place), high + 1):
        number = i - place + 1
        weight = 0.0
        if number <= most:
            weight = chain.right_length[0, chain.margin + number - 1] * inserted
            counts.right_length[number] += weight * scratch.right_levels[u, lead + i]
        turned.right_levels[u, lead + i] = weight
    for e in range(graph.before_first[u], graph.before_first[u + 1]):
        p = graph.before[e]
        if p > 0:
            step = chain.right_step[symbol, graph.symbol[p]]
            used = 0.0
            for i in range(max(low, place), high + 1):
                weight = step * turned.right_levels[p, lead + i]
                used += weight * scratch.right_levels[u, lead + i]
                turned.right_levels[u, lead + i] += weight
            counts.right_step[symbol, graph.symbol[p]] += used
    if place >= low:
        weight = chain.right_first[symbol] * turned.right_levels[u, lead + place]
        turned.after[u, c] += weight
        counts.right_step[4, symbol] += weight * scratch.after[u, c]


@shared
def turn_ends(
    chain: Any, texts: Any, item: int, graph: Any, nodes: int, scratch: Any, turned: Any, counts: Any
) -> None:
    """Numbers of the nodes of prefixes and suffixes."""
    for k in range(texts.prefix_first[item], texts.prefix_first[item + 1]):
        turn_prefix(chain.prefix, graph, texts.prefix_root[k], scratch, turned, counts)
    for k in range(texts.suffix_first[item], texts.suffix_first[item + 1]):
        turn_suffix(chain.suffix, graph, nodes, texts.suffix_root[k], scratch, turned, counts)


@shared
def turn_prefix(tree: Any, graph: Any, root: int, scratch: Any, turned: Any, counts: Any) -> None:
    """Numbers of the nodes of a tree of prefixes."""
    stack = scratch.stack
    stack[0, 0] = root
    stack[0, 1] = 0
    top = 1
    while top > 0:
        top -= 1
        t = stack[top, 0]
        u = stack[top, 1]
        counts.prefix[t, 0] += tree.weight[t, 0] * turned.before[u, 0]
        for e in range(graph.after_first[u], graph.after_first[u + 1]):
            y = graph.after[e]
            below = tree.child[t, graph.symbol[y]]
            if below >= 0:
                stack[top, 0] = below
                stack[top, 1] = y
                top += 1


@shared
def turn_suffix(tree: Any, graph: Any, nodes: int, root: int, scratch: Any, turned: Any, counts: Any) -> None:
    """Numbers of the nodes of a tree of suffixes."""
    stack = scratch.stack
    for end in range(nodes - 1, -1, -1):
        if graph.place[end] != graph.place[nodes - 1]:
            break
        stack[0, 0] = root
        stack[0, 1] = end
        top = 1
        while top > 0:
            top -= 1
            t = stack[top, 0]
            u = stack[top, 1]
            for c in range(tree.weight.shape[1]):
                counts.suffix[t, c] += tree.weight[t, c] * turned.after[u, c]
            if u > 0:
                below = tree.child[t, graph.symbol[u]]
                if below >= 0:
                    for e in range(graph.before_first[u], graph.before_first[u + 1]):
                        stack[top, 0] = below
                        stack[top, 1] = graph.before[e]
                        top += 1
