"""How often each choice of the chain without a fragment was made, in expectation, given a text.

Prefix and suffix are chosen together, so prefixes are counted by suffix. The weight of a text is a sum over
the nodes behind which a prefix ends: of what the prefix weighs and what may come behind it, context by
context. The pass backwards goes over the same nodes once more (see `plait.schedules.chain_expectations`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.algebras import PROBABILITY, choice, extend, over_lanes
from plait.lanes import load, splat, store, width_of
from plait.schedules.chain_expectations import LEAST_WEIGHT
from plait.schedules.end_trees import enter_ends
from plait.schedules.text_graphs import (
    count_before,
    lay_graph,
    node_before,
    place_of,
    step_back,
    step_on,
)

__all__ = ["PairCounts", "PairScratch", "expect_pair_text"]


class PairCounts(NamedTuple):
    """Expected numbers; what is found is added.

    Attributes
    ----------
    prefix, suffix
        Shapes of the weights of the trees: by node and context.
    length
        float64 (1 + most,): by number of insertions.
    step
        float64 (5, 4): by inserted symbol after the one before; row 4 is the first one.
    """

    prefix: Any
    suffix: Any
    length: Any
    step: Any


class PairScratch(NamedTuple):
    """What is worked out besides what `plait.schedules.weighted_chain.WeightedScratch` holds.

    Attributes
    ----------
    behind
        float64 (nodes, contexts): all that may come behind a prefix that ends at a node; the derivative by
        `before`.
    ahead
        float64 (nodes, contexts): all that may come before a suffix; the derivative by `after`.
    inserted
        float64 (nodes, 2): symbols inserted from one node up to each other one, and the derivative by that.
    span
        int64 (nodes, 3): whether a prefix ends at a node, and from and up to which context suffixes begin
        behind it, in whole groups; for most nodes they are few.
    """

    behind: Any
    ahead: Any
    inserted: Any
    span: Any


@shared
def expect_pair_text(
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
        As for `plait.schedules.weighted_pairs.weigh_pair_text`, with probabilities.
    share
        How many times the text counts.
    turned
        `PairScratch`.
    counts
        `PairCounts`.
    """
    graph = scratch.graph
    nodes = lay_graph(parts, texts, item, graph)
    enter_ends(PROBABILITY, chain, texts, item, graph, nodes, scratch)
    total = 0.0
    for u in range(nodes):
        find_span(lanes, scratch, u, turned)
    for u in range(nodes):
        if turned.span[u, 0] != 0:
            total += look_behind(lanes, chain, graph, nodes, u, scratch, turned)
    # Derivatives of the logarithm of less than this could be infinite.
    total = total if total > LEAST_WEIGHT else 0.0
    out[item] = total
    if total > 0.0:
        for u in range(nodes):
            for x in range(turned.span[u, 1], turned.span[u, 2], width_of(lanes)):
                store(lanes, turned.ahead, u, x, splat(lanes, 0.0))
        for u in range(nodes):
            if turned.span[u, 0] != 0:
                turn_insertions(lanes, chain, graph, nodes, u, share / total, scratch, turned, counts)
        turn_pair_ends(lanes, chain, texts, item, graph, nodes, share / total, scratch, turned, counts)


@shared
def find_span(lanes: Any, scratch: Any, u: int, turned: Any) -> None:
    """`span` of a node."""
    alg = PROBABILITY
    before = splat(lanes, 0.0)
    after = splat(lanes, 0.0)
    contexts = scratch.after.shape[1]
    for x in range(0, contexts, width_of(lanes)):
        before = choice(alg, before, load(lanes, scratch.before, u, x))
        after = choice(alg, after, load(lanes, scratch.after, u, x))
    turned.span[u, 0] = 0 if over_lanes(alg, before) == 0.0 else 1
    low = 0
    high = 0
    if over_lanes(alg, after) != 0.0:
        high = contexts
        while over_lanes(alg, load(lanes, scratch.after, u, low)) == 0.0:
            low += width_of(lanes)
        while over_lanes(alg, load(lanes, scratch.after, u, high - width_of(lanes))) == 0.0:
            high -= width_of(lanes)
    turned.span[u, 1] = low
    turned.span[u, 2] = high


@shared
def insert_from(chain: Any, graph: Any, nodes: int, start: int, inserted: Any) -> int:
    """Weights of the symbols inserted behind a node up to each other one, but for their number.

    Returns the node behind the last one that so many insertions reach.
    """
    furthest = place_of(graph, start) + chain.left_length.shape[1] - 2 * chain.margin
    for u in range(start + 1, nodes):
        if place_of(graph, u) > furthest:
            return u
        symbol = graph.symbol[u]
        value = 0.0
        for k in range(count_before(graph, u)):
            p = node_before(graph, u, k)
            if p == start:
                value += chain.left_first[symbol]
            elif p > start:
                value += inserted[p, 0] * chain.left_step[graph.symbol[p], symbol]
        inserted[u, 0] = value
    return nodes


@shared
def length_weight(chain: Any, number: int) -> Any:
    """Weight of a number of insertions of at least 1."""
    return chain.left_length[0, chain.left_length.shape[1] - chain.margin - number]


@shared
def look_behind(lanes: Any, chain: Any, graph: Any, nodes: int, start: int, scratch: Any, turned: Any) -> Any:
    """`behind` of a node; returns what all texts weigh whose prefix ends there."""
    alg = PROBABILITY
    after = scratch.after
    behind = turned.behind
    last = insert_from(chain, graph, nodes, start, turned.inserted)
    none = splat(lanes, chain.left_none[0])
    for x in range(0, after.shape[1], width_of(lanes)):
        store(lanes, behind, start, x, extend(alg, load(lanes, after, start, x), none))
    for u in range(start + 1, last):
        value = turned.inserted[u, 0]
        if turned.span[u, 2] > 0 and value != 0.0:
            weight = splat(lanes, value * length_weight(chain, place_of(graph, u) - place_of(graph, start)))
            for x in range(turned.span[u, 1], turned.span[u, 2], width_of(lanes)):
                here = extend(alg, load(lanes, after, u, x), weight)
                store(lanes, behind, start, x, choice(alg, load(lanes, behind, start, x), here))
    total = splat(lanes, 0.0)
    for x in range(0, after.shape[1], width_of(lanes)):
        here = extend(alg, load(lanes, scratch.before, start, x), load(lanes, behind, start, x))
        total = choice(alg, total, here)
    return over_lanes(alg, total)


@shared
def turn_insertions(
    lanes: Any,
    chain: Any,
    graph: Any,
    nodes: int,
    start: int,
    scale: float,
    scratch: Any,
    turned: Any,
    counts: Any,
) -> None:
    """Numbers of the insertions behind a node, and its share of `ahead`."""
    inserted = turned.inserted
    last = insert_from(chain, graph, nodes, start, inserted)
    pairs = meet(lanes, start, start, chain.left_none[0], scratch, turned)
    counts.length[0] += pairs * chain.left_none[0] * scale
    for u in range(start + 1, last):
        inserted[u, 1] = 0.0
        if turned.span[u, 2] > 0 and inserted[u, 0] != 0.0:
            number = place_of(graph, u) - place_of(graph, start)
            length = length_weight(chain, number)
            pairs = meet(lanes, start, u, inserted[u, 0] * length, scratch, turned)
            inserted[u, 1] = pairs * length * scale
            counts.length[number] += inserted[u, 1] * inserted[u, 0]
    for u in range(last - 1, start, -1):
        slope = inserted[u, 1]
        if slope != 0.0:
            symbol = graph.symbol[u]
            for k in range(count_before(graph, u)):
                p = node_before(graph, u, k)
                if p == start:
                    counts.step[4, symbol] += slope * chain.left_first[symbol]
                elif p > start:
                    step = slope * chain.left_step[graph.symbol[p], symbol]
                    counts.step[graph.symbol[p], symbol] += step * inserted[p, 0]
                    inserted[p, 1] += step


@shared
def meet(lanes: Any, start: int, u: int, weight: float, scratch: Any, turned: Any) -> Any:
    """Prefixes that end at `start` with suffixes behind `u`, by context; with `weight` into `ahead`."""
    alg = PROBABILITY
    between = splat(lanes, weight)
    total = splat(lanes, 0.0)
    for x in range(turned.span[u, 1], turned.span[u, 2], width_of(lanes)):
        before = load(lanes, scratch.before, start, x)
        total = choice(alg, total, extend(alg, before, load(lanes, scratch.after, u, x)))
        ahead = choice(alg, load(lanes, turned.ahead, u, x), extend(alg, before, between))
        store(lanes, turned.ahead, u, x, ahead)
    return over_lanes(alg, total)


@shared
def turn_pair_ends(
    lanes: Any,
    chain: Any,
    texts: Any,
    item: int,
    graph: Any,
    nodes: int,
    scale: float,
    scratch: Any,
    turned: Any,
    counts: Any,
) -> None:
    """Numbers of the nodes of prefixes and suffixes."""
    tree = chain.prefix
    for k in range(texts.prefix_first[item], texts.prefix_first[item + 1]):
        t, u, top = texts.prefix_root[k], 0, 0
        while t >= 0:
            if turned.span[u, 0] != 0:
                contexts = tree.weight.shape[1]
                add_product(lanes, tree.weight, turned.behind, scale, t, u, 0, contexts, counts.prefix)
            t, u, top = step_on(tree, graph, nodes, t, u, scratch.stack, top)
    tree = chain.suffix
    for k in range(texts.suffix_first[item], texts.suffix_first[item + 1]):
        for end in range(nodes - 1, -1, -1):
            if place_of(graph, end) != place_of(graph, nodes - 1):
                break
            t, u, top = texts.suffix_root[k], end, 0
            while t >= 0:
                low, high = turned.span[u, 1], turned.span[u, 2]
                add_product(lanes, tree.weight, turned.ahead, scale, t, u, low, high, counts.suffix)
                t, u, top = step_back(tree, graph, t, u, scratch.stack, top)


@shared
def add_product(
    lanes: Any,
    weights: Any,
    slopes: Any,
    scale: float,
    t: int,
    u: int,
    low: int,
    high: int,
    numbers: Any,
) -> None:
    """Weights of a node of a tree times their derivatives at a node of the graph, to its numbers."""
    alg = PROBABILITY
    scaled = splat(lanes, scale)
    for x in range(low, high, width_of(lanes)):
        value = extend(alg, load(lanes, weights, t, x), load(lanes, slopes, u, x))
        value = choice(alg, load(lanes, numbers, t, x), extend(alg, value, scaled))
        store(lanes, numbers, t, x, value)
