"""How often each choice of the chain was made, in expectation, given a text.

The weight of a text is a sum of products (`plait.schedules.weighted_chain`). How often a factor was used is
its value times the derivative of the logarithm of that sum; all derivatives take one pass backwards over
what the pass forwards has stored. Trees collect counts at their nodes: what several genes share is divided
among them once for all texts, in proportion to their weights.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from plait._jit import shared
from plait.algebras import PROBABILITY, choice, extend, over_lanes
from plait.lanes import load, splat, store, width_of
from plait.schedules.end_trees import enter_ends
from plait.schedules.text_graphs import (
    count_after,
    count_before,
    lay_graph,
    node_after,
    node_before,
    place_of,
    step_back,
    step_on,
)
from plait.schedules.weighted_chain import insert_left, insert_right, join, padded_to, places_entered

__all__ = ["LEAST_WEIGHT", "ChainCounts", "ExpectationScratch", "expect_text"]


#: The least weight of a text of which expected numbers can be told.
LEAST_WEIGHT: Final = 1e-290


class ChainCounts(NamedTuple):
    """Expected numbers; what is found is added.

    Attributes
    ----------
    prefix, suffix, words
        Shapes of the weights of the trees: by node and context.
    left_none, right_none
        float64 (1,): no insertion.
    left_length, right_length
        Shapes of those of the chain, in the same order: 1, 2, ... insertions between margins.
    left_step, right_step
        float64 (20, lanes): rows 4 a + b for inserted symbol b after a, row 16 + b for the first one; to be
        added up over lanes.
    """

    prefix: Any
    suffix: Any
    words: Any
    left_none: Any
    right_none: Any
    left_length: Any
    right_length: Any
    left_step: Any
    right_step: Any


class ExpectationScratch(NamedTuple):
    """Derivatives, in the shapes of what they belong to in `WeightedScratch`.

    Attributes
    ----------
    before, left, after, right, left_levels, right_levels
        float64.
    """

    before: Any
    left: Any
    after: Any
    right: Any
    left_levels: Any
    right_levels: Any


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

    What weighs less than `LEAST_WEIGHT` counts as impossible.

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
    total = join(lanes, alg, chain, graph, nodes, scratch)
    # Derivatives of the logarithm of less than this could be infinite.
    total = total if total > LEAST_WEIGHT else 0.0
    out[item] = total
    if total > 0.0:
        turn_join(lanes, chain, graph, nodes, share / total, scratch, turned, counts)
        turn_right(lanes, chain, graph, nodes, scratch, turned, counts)
        turn_left(lanes, chain, graph, nodes, scratch, turned, counts)
        turn_ends(chain, texts, item, graph, nodes, scratch, turned, counts)


@shared
def add_group(lanes: Any, table: Any, row: int, x: int, value: Any) -> None:
    """Add a group to a table."""
    store(lanes, table, row, x, choice(PROBABILITY, load(lanes, table, row, x), value))


@shared
def turn_join(
    lanes: Any, chain: Any, graph: Any, nodes: int, scale: float, scratch: Any, turned: Any, counts: Any
) -> None:
    """Derivatives by `left` and `right`, and numbers of the words of fragments."""
    for u in range(nodes):
        turned.left[u, 0] = 0.0
        for c in range(turned.right.shape[1]):
            turned.right[u, c] = 0.0
    for c in range(0, chain.suffix.weight.shape[1], width_of(lanes)):
        for u in range(nodes):
            if scratch.left[u, 0] != 0.0:
                found = turn_words(lanes, chain, graph, nodes, u, c, scale, scratch, turned, counts)
                turned.left[u, 0] += scale * found


@shared
def turn_words(
    lanes: Any,
    chain: Any,
    graph: Any,
    nodes: int,
    start: int,
    c: int,
    scale: float,
    scratch: Any,
    turned: Any,
    counts: Any,
) -> Any:
    """Numbers of the words that begin behind a node, in the contexts from `c`; returns what they weigh."""
    alg = PROBABILITY
    tree = chain.words
    left = splat(lanes, scale * scratch.left[start, 0])
    found = splat(lanes, 0.0)
    t, u, top = 0, start, 0
    while t >= 0:
        part = load(lanes, tree.weight, t, c)
        right = load(lanes, scratch.right, u, c)
        found = choice(alg, found, extend(alg, part, right))
        used = extend(alg, left, part)
        add_group(lanes, turned.right, u, c, used)
        add_group(lanes, counts.words, t, c, extend(alg, used, right))
        t, u, top = step_on(tree, graph, nodes, t, u, scratch.stack, top)
    return over_lanes(alg, found)


@shared
def turn_left(lanes: Any, chain: Any, graph: Any, nodes: int, scratch: Any, turned: Any, counts: Any) -> None:
    """From the derivatives by `left`: those by `before`, and numbers of insertions on the left."""
    low, high = places_entered(PROBABILITY, graph, nodes, scratch.before, 1)
    most = chain.left_length.shape[1] - 2 * chain.margin
    for u in range(nodes):
        turned.before[u, 0] = turned.left[u, 0] * chain.left_none[0]
        counts.left_none[0] += turned.before[u, 0] * scratch.before[u, 0]
    for u in range(nodes - 1, 0, -1):
        place = place_of(graph, u)
        if low < place <= high + most:
            turn_left_node(lanes, chain, graph, nodes, u, low, high, most, scratch, turned, counts)
            if place - 1 <= high:
                symbol = graph.symbol[u]
                weight = chain.left_first[symbol] * turned.left_levels[u, place - 1 - low]
                for k in range(count_before(graph, u)):
                    p = node_before(graph, u, k)
                    turned.before[p, 0] += weight
                    counts.left_step[16 + symbol, 0] += weight * scratch.before[p, 0]


@shared
def turn_left_node(
    lanes: Any,
    chain: Any,
    graph: Any,
    nodes: int,
    u: int,
    low: int,
    high: int,
    most: int,
    scratch: Any,
    turned: Any,
    counts: Any,
) -> None:
    """Derivatives by the levels of a node, of which the rightmost inserted symbol is its own."""
    alg = PROBABILITY
    symbol = graph.symbol[u]
    here = place_of(graph, u) - low
    whole = splat(lanes, turned.left[u, 0])
    width = width_of(lanes)
    for x in range(max(0, here - most) // width * width, min(here, high + 1 - low), width):
        value = load(lanes, scratch.left_levels, u, x)
        at = chain.margin + most - here + x
        slope = extend(alg, load(lanes, chain.left_length, 0, at), whole)
        add_group(lanes, counts.left_length, 0, at, extend(alg, slope, value))
        # Longer insertions go on from this node, as far as there are as long ones.
        if x >= (here + 1 - most) // width * width and here + low < high + most:
            for k in range(count_after(graph, nodes, u)):
                y = node_after(graph, u, k)
                step = splat(lanes, chain.left_step[symbol, graph.symbol[y]])
                step = extend(alg, step, load(lanes, turned.left_levels, y, x))
                slope = choice(alg, slope, step)
                row = 4 * symbol + graph.symbol[y]
                add_group(lanes, counts.left_step, row, 0, extend(alg, step, value))
        store(lanes, turned.left_levels, u, x, slope)


@shared
def turn_right(
    lanes: Any, chain: Any, graph: Any, nodes: int, scratch: Any, turned: Any, counts: Any
) -> None:
    """From the derivatives by `right`: those by `after`, and numbers of insertions on the right."""
    contexts = chain.suffix.weight.shape[1]
    low, high = places_entered(PROBABILITY, graph, nodes, scratch.after, contexts)
    most = chain.right_length.shape[1] - 2 * chain.margin
    for u in range(nodes):
        place = place_of(graph, u)
        inside = max(0, low - most) < place <= high
        for c in range(contexts):
            turned.after[u, c] = turned.right[u, c] * chain.right_none[0]
            counts.right_none[0] += turned.after[u, c] * scratch.after[u, c]
            if inside:
                turn_right_node(lanes, chain, graph, u, c, low, high, most, scratch, turned, counts)
                if place >= low:
                    symbol = graph.symbol[u]
                    at = c * padded_to(lanes, high - low + 1) + place - low
                    weight = chain.right_first[symbol] * turned.right_levels[u, at]
                    turned.after[u, c] += weight
                    counts.right_step[16 + symbol, 0] += weight * scratch.after[u, c]


@shared
def turn_right_node(
    lanes: Any,
    chain: Any,
    graph: Any,
    u: int,
    c: int,
    low: int,
    high: int,
    most: int,
    scratch: Any,
    turned: Any,
    counts: Any,
) -> None:
    """Derivatives by the levels of a node in a context, of which the leftmost inserted symbol is its own."""
    alg = PROBABILITY
    symbol = graph.symbol[u]
    here = place_of(graph, u) - low
    lead = c * padded_to(lanes, high - low + 1)
    inserted = 0.0
    for k in range(count_before(graph, u)):
        inserted += turned.right[node_before(graph, u, k), c]
    whole = splat(lanes, inserted)
    width = width_of(lanes)
    for x in range(max(0, here) // width * width, min(high - low + 1, here + most), width):
        value = load(lanes, scratch.right_levels, u, lead + x)
        at = chain.margin + x - here
        slope = extend(alg, load(lanes, chain.right_length, 0, at), whole)
        add_group(lanes, counts.right_length, 0, at, extend(alg, slope, value))
        # Longer insertions go on to the left, as far as there are as long ones.
        if x < here - 1 + most and here - 1 + low > max(0, low - most):
            for k in range(count_before(graph, u)):
                p = node_before(graph, u, k)
                step = splat(lanes, chain.right_step[symbol, graph.symbol[p]])
                step = extend(alg, step, load(lanes, turned.right_levels, p, lead + x))
                slope = choice(alg, slope, step)
                row = 4 * symbol + graph.symbol[p]
                add_group(lanes, counts.right_step, row, 0, extend(alg, step, value))
        store(lanes, turned.right_levels, u, lead + x, slope)


@shared
def turn_ends(
    chain: Any, texts: Any, item: int, graph: Any, nodes: int, scratch: Any, turned: Any, counts: Any
) -> None:
    """Numbers of the nodes of prefixes and suffixes."""
    tree = chain.prefix
    for k in range(texts.prefix_first[item], texts.prefix_first[item + 1]):
        t, u, top = texts.prefix_root[k], 0, 0
        while t >= 0:
            counts.prefix[t, 0] += tree.weight[t, 0] * turned.before[u, 0]
            t, u, top = step_on(tree, graph, nodes, t, u, scratch.stack, top)
    for k in range(texts.suffix_first[item], texts.suffix_first[item + 1]):
        for end in range(nodes - 1, -1, -1):
            if place_of(graph, end) != place_of(graph, nodes - 1):
                break
            turn_suffix(chain.suffix, graph, texts.suffix_root[k], end, scratch, turned, counts)


@shared
def turn_suffix(tree: Any, graph: Any, root: int, end: int, scratch: Any, turned: Any, counts: Any) -> None:
    """Numbers of the nodes of a tree of suffixes, of texts that end with a node."""
    t, u, top = root, end, 0
    while t >= 0:
        for c in range(tree.weight.shape[1]):
            counts.suffix[t, c] += tree.weight[t, c] * turned.after[u, c]
        t, u, top = step_back(tree, graph, t, u, scratch.stack, top)
