"""Weight of a junction in the chain of weighted choices, with a fragment (D) and without.

Suffixes carry contexts: one per fragment, or, where prefix and suffix are chosen together and there is no
fragment, one per suffix. Lanes run over contexts, of which only those are read that some suffix of the text
has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.chain.insertions import insert
from plait.dp.chain.tables import enter_ends
from plait.dp.chain.texts import (
    count_after,
    count_before,
    lay_graph,
    node_after,
    node_before,
    place_of,
    step_on,
)
from plait.lang.algebras import choice, extend, over_lanes
from plait.lang.compile import shared
from plait.lang.lanes import load, splat, store, width_of


class WeightedChain(NamedTuple):
    """What the chain is made of; all weights are values of one algebra.

    A level of `insertion` holds the insertions that begin at one place. `prefix`, `suffix`, `fragment` and
    `words` are `EndTrees`; suffixes have a context for every fragment. `fragment` has all words in fragments,
    a word weighing what all parts that read so weigh; `fragment_root`, int32 (fragments,), is the root of
    each. `words` is all those tries as one with root 0, each fragment in its own context, contexts padded to
    whole groups of lanes.

    `left_none` and `right_none`, (1,): weight of no insertion. `left_length` and `right_length`, (1, ...):
    weight of 1, 2, ... insertions, of 2 and more backwards on the left, between `margin` zeros, so that any
    group of lanes that holds one of them lies within the table. `pick`, (1, ...), is a one in the middle of
    more zeros than there are lengths: it puts a value into one lane. `left_first` and `right_first`, (4,):
    weight of the first inserted symbol, left the leftmost, right the rightmost; `left_step` and `right_step`,
    (4, 4): weight of an inserted symbol (column) after the one inserted before it (row).
    """

    insertion: Any
    prefix: Any
    suffix: Any
    fragment: Any
    fragment_root: Any
    words: Any
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
    """Working memory of one worker; `graph` is a `plait.dp.chain.texts.TextGraph` or `PathGraph`.

    `before` and `left`, (nodes, 1): everything before a node, the prefix alone and with insertions. `after`
    and `right`, (nodes, contexts padded): everything behind a node, likewise. `left_levels` and
    `right_levels`, (nodes, levels padded), and the latter as many for each context: by the place where
    insertions begin. `inserted`, (nodes, contexts padded): insertions that begin with a node, and all behind
    them. `stack`, int64 (most, 2): what is still to be visited.
    """

    graph: Any
    before: Any
    left: Any
    after: Any
    right: Any
    left_levels: Any
    right_levels: Any
    inserted: Any
    stack: Any


@shared
def weigh_text(
    lanes: Any, alg: Any, chain: Any, parts: Any, texts: Any, item: int, scratch: Any, out: Any
) -> None:
    """Weight of everything that a text stands for, into ``out[item]``; scratch from the caller."""
    graph = scratch.graph
    nodes = lay_graph(parts, texts, item, graph)
    enter_ends(alg, chain, texts, item, graph, nodes, scratch)
    insert_left(lanes, alg, chain, graph, nodes, scratch)
    insert_right(lanes, alg, chain, graph, nodes, scratch)
    out[item] = join(lanes, alg, chain, graph, nodes, scratch)


@shared
def insert_left(lanes: Any, alg: Any, chain: Any, graph: Any, nodes: int, scratch: Any) -> None:
    """Insertions behind the prefix: `left` of every node."""
    low, high = places_entered(alg, graph, nodes, scratch.before, 1)
    levels = scratch.left_levels
    most = chain.left_length.shape[1] - 2 * chain.margin
    middle = chain.pick.shape[1] // 2
    width = width_of(lanes)
    for u in range(nodes):
        place = place_of(graph, u)
        total = extend(alg, scratch.before[u, 0], chain.left_none[0])
        if low < place <= high + most:
            symbol = graph.symbol[u]
            entered = alg.zero
            for k in range(count_before(graph, u)):
                entered = choice(alg, entered, scratch.before[node_before(graph, u, k), 0])
            entered = splat(lanes, extend(alg, chain.left_first[symbol], entered))
            found = splat(lanes, alg.zero)
            # Of the places where insertions begin, those that are near enough.
            here = place - low
            count = min(here, high + 1 - low)
            for x in range(max(0, here - most) // width * width, count, width):
                value = extend(alg, load(lanes, chain.pick, 0, middle + x + 1 - here), entered)
                for k in range(count_before(graph, u)):
                    p = node_before(graph, u, k)
                    if x < place_of(graph, p) - low:
                        step = splat(lanes, chain.left_step[graph.symbol[p], symbol])
                        value = insert(chain.insertion, alg, value, load(lanes, levels, p, x), step)
                store(lanes, levels, u, x, value)
                length = load(lanes, chain.left_length, 0, chain.margin + most - here + x)
                found = choice(alg, found, extend(alg, value, length))
            total = choice(alg, total, over_lanes(alg, found))
        scratch.left[u, 0] = total


@shared
def insert_right(lanes: Any, alg: Any, chain: Any, graph: Any, nodes: int, scratch: Any) -> None:
    """Insertions before the suffix: `right` of every node."""
    low, high = places_entered(alg, graph, nodes, scratch.after, chain.suffix.weight.shape[1])
    most = chain.right_length.shape[1] - 2 * chain.margin
    for u in range(nodes - 1, -1, -1):
        place = place_of(graph, u)
        for c in range(chain.suffix.weight.shape[1]):
            right = extend(alg, scratch.after[u, c], chain.right_none[0])
            for k in range(count_after(graph, nodes, u)):
                right = choice(alg, right, scratch.inserted[node_after(graph, u, k), c])
            scratch.right[u, c] = right
            if max(0, low - most) < place <= high:
                scratch.inserted[u, c] = step_right(
                    lanes, alg, chain, graph, nodes, u, c, low, high, most, scratch
                )
            else:
                scratch.inserted[u, c] = alg.zero


@shared
def step_right(
    lanes: Any,
    alg: Any,
    chain: Any,
    graph: Any,
    nodes: int,
    u: int,
    c: int,
    low: int,
    high: int,
    most: int,
    scratch: Any,
) -> Any:
    """Insertions whose leftmost symbol is that of a node, and all behind them, in one context."""
    levels = scratch.right_levels
    symbol = graph.symbol[u]
    middle = chain.pick.shape[1] // 2
    # Where insertions begin, counted from the first such place, this node is here.
    here = place_of(graph, u) - low
    lead = c * padded_to(lanes, high - low + 1)
    entered = splat(lanes, extend(alg, chain.right_first[symbol], scratch.after[u, c]))
    found = splat(lanes, alg.zero)
    width = width_of(lanes)
    for x in range(max(0, here) // width * width, min(high - low + 1, here + most), width):
        value = extend(alg, load(lanes, chain.pick, 0, middle + x - here), entered)
        if x + width > here + 1 and here + low < high:
            for k in range(count_after(graph, nodes, u)):
                y = node_after(graph, u, k)
                step = splat(lanes, chain.right_step[graph.symbol[y], symbol])
                value = insert(chain.insertion, alg, value, load(lanes, levels, y, lead + x), step)
        store(lanes, levels, u, lead + x, value)
        length = load(lanes, chain.right_length, 0, chain.margin + x - here)
        found = choice(alg, found, extend(alg, value, length))
    return over_lanes(alg, found)


@shared
def places_entered(alg: Any, graph: Any, nodes: int, rows: Any, contexts: int) -> Any:
    """The first and the last place at which a row is not zero; the last is before the first where all are."""
    low = 0
    while low < nodes and not is_entered(alg, rows, low, contexts):
        low += 1
    if low == nodes:
        return place_of(graph, nodes - 1) + 1, -1
    high = nodes - 1
    while not is_entered(alg, rows, high, contexts):
        high -= 1
    return place_of(graph, low), place_of(graph, high)


@shared
def is_entered(alg: Any, rows: Any, u: int, contexts: int) -> bool:
    """Whether a row is not zero."""
    entered = False
    for c in range(contexts):
        entered = entered or rows[u, c] != alg.zero
    return entered


@shared
def padded_to(lanes: Any, count: int) -> int:
    """`count` rounded up to whole groups."""
    width = width_of(lanes)
    rounded: int = (count + width - 1) // width * width
    return rounded


@shared
def join(lanes: Any, alg: Any, chain: Any, graph: Any, nodes: int, scratch: Any) -> Any:
    """Bring left and right together, with every part of every fragment between them."""
    total = alg.zero
    for c in range(0, chain.suffix.weight.shape[1], width_of(lanes)):
        found = splat(lanes, alg.zero)
        for u in range(nodes):
            left = scratch.left[u, 0]
            if left != alg.zero:
                inner = read_fragments(lanes, alg, chain, graph, nodes, u, c, scratch)
                found = choice(alg, found, extend(alg, splat(lanes, left), inner))
        total = choice(alg, total, over_lanes(alg, found))
    return total


@shared
def read_fragments(
    lanes: Any, alg: Any, chain: Any, graph: Any, nodes: int, start: int, c: int, scratch: Any
) -> Any:
    """Parts of fragments that begin behind a node, nothing of it included, each with all behind it.

    In the contexts from `c`.
    """
    tree = chain.words
    found = splat(lanes, alg.zero)
    t, u, top = 0, start, 0
    while t >= 0:
        part = load(lanes, tree.weight, t, c)
        found = choice(alg, found, extend(alg, part, load(lanes, scratch.right, u, c)))
        t, u, top = step_on(tree, graph, nodes, t, u, scratch.stack, top)
    return found


@shared
def weigh_pair_text(
    lanes: Any, alg: Any, chain: Any, parts: Any, texts: Any, item: int, scratch: Any, out: Any
) -> None:
    """Weight of everything that a text stands for, into ``out[item]``, without fragments.

    As `weigh_text`; `before` has as many contexts as `after`.
    """
    graph = scratch.graph
    nodes = lay_graph(parts, texts, item, graph)
    enter_ends(alg, chain, texts, item, graph, nodes, scratch)
    low = sum_suffixes(lanes, alg, nodes, scratch)
    first, last = contexts_entered(lanes, alg, scratch.right)
    total = splat(lanes, alg.zero)
    for u in range(nodes):
        if sum_row(lanes, alg, scratch.before, u, first, last) != alg.zero:
            found = insert_after(lanes, alg, chain, graph, nodes, u, low, first, last, scratch)
            total = choice(alg, total, found)
    out[item] = over_lanes(alg, total)


@shared
def sum_suffixes(lanes: Any, alg: Any, nodes: int, scratch: Any) -> int:
    """All suffixes by context into ``right[0]``; returns the first node behind which there is one."""
    after = scratch.after
    row = scratch.right
    contexts = row.shape[1]
    for x in range(0, contexts, width_of(lanes)):
        store(lanes, row, 0, x, splat(lanes, alg.zero))
    low = nodes
    for u in range(nodes - 1, -1, -1):
        if sum_row(lanes, alg, after, u, 0, contexts) != alg.zero:
            low = u
            for x in range(0, contexts, width_of(lanes)):
                store(lanes, row, 0, x, choice(alg, load(lanes, row, 0, x), load(lanes, after, u, x)))
    return low


@shared
def sum_row(lanes: Any, alg: Any, rows: Any, u: int, first: int, last: int) -> Any:
    """The choice between some contexts of a row."""
    found = splat(lanes, alg.zero)
    for x in range(first, last, width_of(lanes)):
        found = choice(alg, found, load(lanes, rows, u, x))
    return over_lanes(alg, found)


@shared
def contexts_entered(lanes: Any, alg: Any, row: Any) -> Any:
    """The groups of lanes from the first to the last that hold something."""
    width = width_of(lanes)
    first = 0
    last = row.shape[1]
    while first < last and sum_row(lanes, alg, row, 0, first, first + width) == alg.zero:
        first += width
    while first < last and sum_row(lanes, alg, row, 0, last - width, last) == alg.zero:
        last -= width
    return first, last


@shared
def insert_after(
    lanes: Any,
    alg: Any,
    chain: Any,
    graph: Any,
    nodes: int,
    start: int,
    low: int,
    first: int,
    last: int,
    scratch: Any,
) -> Any:
    """All prefixes that end at a node, with all insertions behind it and the suffixes behind those."""
    most = chain.left_length.shape[1] - 2 * chain.margin
    inserted = scratch.inserted
    found = splat(lanes, alg.zero)
    if start >= low:
        found = extend(
            alg, meet(lanes, alg, start, start, first, last, scratch), splat(lanes, chain.left_none[0])
        )
    for u in range(start + 1, nodes):
        number = place_of(graph, u) - place_of(graph, start)
        if number > most:
            break
        symbol = graph.symbol[u]
        value = alg.zero
        for k in range(count_before(graph, u)):
            p = node_before(graph, u, k)
            if p == start:
                value = choice(alg, value, chain.left_first[symbol])
            elif p > start and place_of(graph, p) > place_of(graph, start):
                step = chain.left_step[graph.symbol[p], symbol]
                value = choice(alg, value, extend(alg, inserted[p, 0], step))
        inserted[u, 0] = value
        if u >= low and number > 0 and value != alg.zero:
            length = chain.left_length[0, chain.margin + most - number]
            weight = splat(lanes, extend(alg, value, length))
            here = meet(lanes, alg, start, u, first, last, scratch)
            found = choice(alg, found, extend(alg, here, weight))
    return found


@shared
def meet(lanes: Any, alg: Any, start: int, u: int, first: int, last: int, scratch: Any) -> Any:
    """The prefixes that end at one node with the suffixes behind another, context by context."""
    found = splat(lanes, alg.zero)
    for x in range(first, last, width_of(lanes)):
        before = load(lanes, scratch.before, start, x)
        found = choice(alg, found, extend(alg, before, load(lanes, scratch.after, u, x)))
    return found
