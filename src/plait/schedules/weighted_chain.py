"""The chain of weighted choices: prefix, insertions, fragment, insertions, suffix, over graphs of texts.

What may be inserted depends on the symbol inserted before it, which a node of the graph knows
(`plait.schedules.text_graphs`). Lanes run over the places at which insertions begin: few
of them hold anything, and what an insertion weighs for its length is known only where it ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.algebras import choice, extend
from plait.lanes import load, splat, store
from plait.recurrences.insertion import insert
from plait.schedules.end_trees import enter_ends
from plait.schedules.text_graphs import lay_graph

__all__ = [
    "WeightedChain",
    "WeightedScratch",
    "weigh_text",
]


class WeightedChain(NamedTuple):
    """What the chain is made of; all weights are values of one algebra.

    Attributes
    ----------
    insertion
        The recurrence of insertions, of which a level holds those that begin at one place.
    prefix, suffix
        `EndTrees`; suffixes have a context for every fragment.
    fragment
        `EndTrees` of all words in fragments; a word's weight is that of all parts that read so.
    fragment_root
        int32 (fragments,): the tree of each fragment.
    left_none, right_none
        (1,): weight of no insertion.
    left_length, right_length
        (1, ...): weight of 1, 2, ... insertions, of 2 and more backwards on the left, between `margin` zeros.
    margin
        Zeros before and behind the lengths: any group of lanes that holds one of them lies within the table.
    pick
        (1, ...): one in the middle of zeros, more than any row has levels: it puts a value into one lane.
    left_first, right_first
        (4,): weight of the first inserted symbol: left the leftmost, right the rightmost.
    left_step, right_step
        (4, 4): weight of an inserted symbol (column) after the one inserted before it (row).
    """

    insertion: Any
    prefix: Any
    suffix: Any
    fragment: Any
    fragment_root: Any
    left_none: Any
    right_none: Any
    left_length: Any
    right_length: Any
    margin: Any
    pick: Any
    left_first: Any
    right_first: Any
    left_step: Any
    right_step: Any


class WeightedScratch(NamedTuple):
    """Working memory of one worker.

    Attributes
    ----------
    graph
        `plait.schedules.text_graphs.TextGraph`.
    before, left
        (nodes, 1): of everything before a node: the prefix alone, and with insertions.
    after, right
        (nodes, fragments): of everything behind a node, likewise.
    left_levels, right_levels
        (nodes, levels padded), and the latter as many for each fragment: by the place where insertions begin.
    inserted
        (nodes, fragments): insertions that begin with a node, and all behind them.
    row
        (1, lanes): a group on its way to one number.
    stack
        int64 (most, 2): what is still to be visited.
    """

    graph: Any
    before: Any
    left: Any
    after: Any
    right: Any
    left_levels: Any
    right_levels: Any
    inserted: Any
    row: Any
    stack: Any


@shared
def weigh_text(
    lanes: Any, alg: Any, chain: Any, parts: Any, texts: Any, item: int, scratch: Any, out: Any
) -> None:
    """Weight of everything that a text stands for, into ``out[item]``.

    Parameters
    ----------
    lanes
        Width of lane groups.
    alg
        The algebra.
    chain
        What texts are made of.
    parts, texts
        See `plait.schedules.text_graphs`.
    item
        Which text.
    scratch
        Memory of this worker.
    out
        (n,): weights.
    """
    graph = scratch.graph
    nodes = lay_graph(parts, texts, item, graph)
    enter_ends(alg, chain, texts, item, graph, nodes, scratch)
    insert_left(lanes, alg, chain, graph, nodes, scratch)
    insert_right(lanes, alg, chain, graph, nodes, scratch)
    out[item] = join(alg, chain, graph, nodes, scratch)


@shared
def insert_left(lanes: Any, alg: Any, chain: Any, graph: Any, nodes: int, scratch: Any) -> None:
    """Insertions behind the prefix: `left` of every node."""
    low, high = places_entered(alg, graph, nodes, scratch.before)
    levels = scratch.left_levels
    count = padded_to(lanes, high - low + 1)
    for u in range(nodes):
        place = graph.place[u]
        scratch.left[u, 0] = extend(alg, scratch.before[u, 0], chain.left_none[0])
        if place > low:
            symbol = graph.symbol[u]
            entered = alg.zero
            for e in range(graph.before_first[u], graph.before_first[u + 1]):
                entered = choice(alg, entered, scratch.before[graph.before[e], 0])
            entered = splat(lanes, extend(alg, chain.left_first[symbol], entered))
            # Beyond the last place at which anything enters, lanes of zeros are picked.
            pick = chain.pick.shape[1] // 2 - min(place - 1 - low, count)
            at = chain.left_length.shape[1] - chain.margin - place + low
            found = splat(lanes, alg.zero)
            for x in range(0, count, lanes.width):
                value = extend(alg, load(lanes, chain.pick, 0, pick + x), entered)
                for e in range(graph.before_first[u], graph.before_first[u + 1]):
                    p = graph.before[e]
                    if graph.place[p] > low:
                        step = splat(lanes, chain.left_step[graph.symbol[p], symbol])
                        value = insert(chain.insertion, alg, value, load(lanes, levels, p, x), step)
                store(lanes, levels, u, x, value)
                if 0 <= at + x <= chain.left_length.shape[1] - lanes.width:
                    length = load(lanes, chain.left_length, 0, at + x)
                    found = choice(alg, found, extend(alg, value, length))
            total = over_lanes(lanes, alg, found, scratch.row)
            scratch.left[u, 0] = choice(alg, scratch.left[u, 0], total)


@shared
def insert_right(lanes: Any, alg: Any, chain: Any, graph: Any, nodes: int, scratch: Any) -> None:
    """Insertions before the suffix: `right` of every node."""
    contexts = chain.suffix.weight.shape[1]
    low, high = places_entered(alg, graph, nodes, scratch.after)
    count = padded_to(lanes, high - low + 1)
    for u in range(nodes - 1, -1, -1):
        place = graph.place[u]
        for c in range(contexts):
            right = extend(alg, scratch.after[u, c], chain.right_none[0])
            for e in range(graph.after_first[u], graph.after_first[u + 1]):
                right = choice(alg, right, scratch.inserted[graph.after[e], c])
            scratch.right[u, c] = right
            if 0 < place <= high:
                pick = chain.pick.shape[1] // 2 - (place - low if place >= low else count)
                at = chain.margin + low - place
                scratch.inserted[u, c] = step_right(
                    lanes, alg, chain, graph, u, c, high, count, pick, at, scratch
                )
            else:
                scratch.inserted[u, c] = alg.zero


@shared
def step_right(
    lanes: Any,
    alg: Any,
    chain: Any,
    graph: Any,
    u: int,
    c: int,
    high: int,
    count: int,
    pick: int,
    at: int,
    scratch: Any,
) -> Any:
    """Insertions whose leftmost symbol is that of a node, and all behind them, in one context."""
    levels = scratch.right_levels
    symbol = graph.symbol[u]
    entered = splat(lanes, extend(alg, chain.right_first[symbol], scratch.after[u, c]))
    found = splat(lanes, alg.zero)
    for x in range(0, count, lanes.width):
        value = extend(alg, load(lanes, chain.pick, 0, pick + x), entered)
        for e in range(graph.after_first[u], graph.after_first[u + 1]):
            y = graph.after[e]
            if graph.place[y] <= high:
                step = splat(lanes, chain.right_step[graph.symbol[y], symbol])
                shorter = load(lanes, levels, y, c * count + x)
                value = insert(chain.insertion, alg, value, shorter, step)
        store(lanes, levels, u, c * count + x, value)
        if 0 <= at + x <= chain.right_length.shape[1] - lanes.width:
            found = choice(alg, found, extend(alg, value, load(lanes, chain.right_length, 0, at + x)))
    return over_lanes(lanes, alg, found, scratch.row)


@shared
def places_entered(alg: Any, graph: Any, nodes: int, rows: Any) -> Any:
    """The first and the last place at which a row is not zero; the last is before the first where all are."""
    low = graph.place[nodes - 1] + 1
    high = -1
    for u in range(nodes):
        entered = False
        for c in range(rows.shape[1]):
            entered = entered or rows[u, c] != alg.zero
        if entered:
            low = min(low, graph.place[u])
            high = max(high, graph.place[u])
    return low, high


@shared
def padded_to(lanes: Any, count: int) -> int:
    """`count` rounded up to whole groups."""
    rounded: int = (count + lanes.width - 1) // lanes.width * lanes.width
    return rounded


@shared
def over_lanes(lanes: Any, alg: Any, value: Any, row: Any) -> Any:
    """Sum over the lanes of a group, by halves."""
    store(lanes, row, 0, 0, value)
    width = lanes.width
    while width > 1:
        width = width // 2
        for x in range(width):
            row[0, x] = choice(alg, row[0, x], row[0, x + width])
    return row[0, 0]


@shared
def join(alg: Any, chain: Any, graph: Any, nodes: int, scratch: Any) -> Any:
    """Bring left and right together, with every part of every fragment between them."""
    total = alg.zero
    fragments = chain.fragment_root.size
    for u in range(nodes):
        left = scratch.left[u, 0]
        if left != alg.zero:
            inner = alg.zero
            for f in range(fragments):
                root = chain.fragment_root[f]
                inner = choice(alg, inner, read_fragment(alg, chain.fragment, graph, root, u, f, scratch))
            total = choice(alg, total, extend(alg, left, inner))
    return total


@shared
def read_fragment(alg: Any, tree: Any, graph: Any, root: int, start: int, f: int, scratch: Any) -> Any:
    """Parts of a fragment that begin behind a node, nothing of it included, each with all behind it."""
    stack = scratch.stack
    stack[0, 0] = root
    stack[0, 1] = start
    top = 1
    found = alg.zero
    while top > 0:
        top -= 1
        t = stack[top, 0]
        u = stack[top, 1]
        found = choice(alg, found, extend(alg, tree.weight[t, 0], scratch.right[u, f]))
        for e in range(graph.after_first[u], graph.after_first[u + 1]):
            y = graph.after[e]
            below = tree.child[t, graph.symbol[y]]
            if below >= 0:
                stack[top, 0] = below
                stack[top, 1] = y
                top += 1
    return found
