"""The adjoint of the weighted chain: expected counts of every choice, given a junction."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from plait.dp.chain.tables import enter_ends
from plait.dp.chain.texts import (
    count_after,
    count_before,
    lay_graph,
    node_after,
    node_before,
    place_of,
    step_back,
    step_on,
)
from plait.dp.chain.weigh import insert_left, insert_right, join, padded_to, places_entered
from plait.lang.algebras import PROBABILITY, choice, extend, over_lanes
from plait.lang.compile import shared
from plait.lang.lanes import load, splat, store, width_of

#: The least weight of a text of which expected numbers can be told.
LEAST_WEIGHT: Final = 1e-290


class ChainCounts(NamedTuple):
    """Expected counts, float64; what is found is added.

    `prefix`, `suffix` and `words` are shaped as the weights of the tries, by node and context; `left_none`
    and `right_none` are (1,). `left_length` and `right_length` are shaped and ordered as those of the chain:
    1, 2, ... insertions between margins. `left_step` and `right_step`, (20, lanes), to be added up over
    lanes: row 4 a + b for inserted symbol b after a, row 16 + b for the first one.
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
    """Derivatives, float64, shaped as what they belong to in `plait.dp.chain.weigh.WeightedScratch`."""

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
    """Weight of a text into ``out[item]``, and `share` times its expected counts added to `counts`.

    As `plait.dp.chain.weigh.weigh_text`, with probabilities; `turned` is scratch of the caller. What weighs
    less than `LEAST_WEIGHT` counts as impossible.
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
    """Derivatives by `left` and `right`, and expected counts of the words of fragments."""
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
    """Counts of the words that begin behind a node, in the contexts from `c`; returns what they weigh."""
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
    """From the derivatives by `left`: those by `before`, and expected counts of insertions on the left."""
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
    """From the derivatives by `right`: those by `after`, and expected counts of insertions on the right."""
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
    """Expected counts of the nodes of prefixes and suffixes."""
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
    """Expected counts of the nodes of a trie of suffixes, of texts that end with a node."""
    t, u, top = root, end, 0
    while t >= 0:
        for c in range(tree.weight.shape[1]):
            counts.suffix[t, c] += tree.weight[t, c] * turned.after[u, c]
        t, u, top = step_back(tree, graph, t, u, scratch.stack, top)


class PairCounts(NamedTuple):
    """Expected counts, float64; what is found is added.

    `prefix` and `suffix` are shaped as the weights of the tries, by node and context; `length`, (1 + most,),
    by number of insertions; `step`, (5, 4), by inserted symbol after the one before, row 4 for the first one.
    """

    prefix: Any
    suffix: Any
    length: Any
    step: Any


class PairScratch(NamedTuple):
    """What is worked out besides what `plait.dp.chain.weigh.WeightedScratch` holds.

    `behind`, float64 (nodes, contexts): all that may come behind a prefix that ends at a node, the derivative
    by `before`; `ahead`, the same before a suffix, the derivative by `after`. `inserted`, float64 (nodes, 2):
    symbols inserted from one node up to each other one, and the derivative by that. `span`, int64 (nodes, 3):
    whether a prefix ends at a node, and from and up to which context suffixes begin behind it, in whole
    groups; for most nodes they are few.
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
    """Weight of a text into ``out[item]``, and `share` times its expected counts added to `counts`.

    As `plait.dp.chain.weigh.weigh_pair_text`, with probabilities; `turned` is scratch of the caller. What
    weighs less than `LEAST_WEIGHT` counts as impossible.
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
    """Expected counts of the insertions behind a node, and its share of `ahead`."""
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
    """Expected counts of the nodes of prefixes and suffixes."""
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
    """Add weights of a trie's node times their derivatives at a graph's node to its expected counts."""
    alg = PROBABILITY
    scaled = splat(lanes, scale)
    for x in range(low, high, width_of(lanes)):
        value = extend(alg, load(lanes, weights, t, x), load(lanes, slopes, u, x))
        value = choice(alg, load(lanes, numbers, t, x), extend(alg, value, scaled))
        store(lanes, numbers, t, x, value)


class PartOwners(NamedTuple):
    """Parts of genes in the order of the trie nodes at which they end.

    Parts of node t are ``first[t]`` to ``first[t + 1]``, int64 (nodes + 1,). `gene`, `cut` and `cut_right`,
    int64 (parts,): whose they are, and cuts. `weight` and `log`, float64 (parts, contexts): weight and its
    logarithm, 0 where there is none.
    """

    first: Any
    gene: Any
    cut: Any
    cut_right: Any
    weight: Any
    log: Any


class ChoiceSummary(NamedTuple):
    """What is found for n texts; `prefix`, `words` and `suffix` are `PartOwners`.

    `prefix_share`, `words_share` and `suffix_share`, float64 (genes,), are working memory, zeros between
    texts. `best`, int32 (n, 3): the most probable prefix, fragment and suffix, -1 for none, with
    probabilities `share`, float64 (n, 3). `cut`, float64 (n, 4): mean cuts of prefix, fragment on the left
    and on the right, and suffix. `log`, float64 (n,): mean logarithm of the weights of all parts together.
    The lengths and steps, float64 (n, ...), are expected counts of the text, flat, as of `ChainCounts`, or of
    `PairCounts`, where those on the right are missing.
    """

    prefix: Any
    words: Any
    suffix: Any
    prefix_share: Any
    words_share: Any
    suffix_share: Any
    best: Any
    share: Any
    cut: Any
    log: Any
    left_length: Any
    right_length: Any
    left_step: Any
    right_step: Any


@shared
def tell_text(chain: Any, parts: Any, texts: Any, item: int, scratch: Any, counts: Any, told: Any) -> None:
    """What a text tells into row `item` of `told`, a `ChoiceSummary`.

    `counts` must hold this text alone, counted once by `expect_text`; all counts become zero.
    """
    graph = scratch.graph
    nodes = last_node(parts, texts, item) + 1
    take_ends(chain, graph, nodes, texts, item, scratch, counts, told)
    for start in range(nodes):
        t, u, top = 0, start, 0
        while t >= 0:
            take_parts(told.words, counts.words, chain.words.weight, t, item, 1, 2, told.words_share, told)
            t, u, top = step_on(chain.words, graph, nodes, t, u, scratch.stack, top)
    name_best(told.words_share, item, 1, told)
    take_row(counts.left_length, told.left_length, item)
    take_row(counts.right_length, told.right_length, item)
    told.left_length[item, 0] = counts.left_none[0]
    told.right_length[item, 0] = counts.right_none[0]
    counts.left_none[0] = 0.0
    counts.right_none[0] = 0.0
    take_row(counts.left_step, told.left_step, item)
    take_row(counts.right_step, told.right_step, item)


@shared
def tell_pair_text(
    chain: Any, parts: Any, texts: Any, item: int, scratch: Any, counts: Any, told: Any
) -> None:
    """As `tell_text`, after `plait.dp.chain.adjoint.expect_pair_text`."""
    nodes = last_node(parts, texts, item) + 1
    take_ends(chain, scratch.graph, nodes, texts, item, scratch, counts, told)
    for k in range(counts.length.size):
        told.left_length[item, k] = counts.length[k]
        counts.length[k] = 0.0
    take_row(counts.step, told.left_step, item)


@shared
def last_node(parts: Any, texts: Any, item: int) -> int:
    """The last node of the graph of a text."""
    last = 0
    for k in range(texts.length[item]):
        last += parts.nodes[texts.codes[texts.start[item] + k]]
    return last


@shared
def take_row(numbers: Any, rows: Any, item: int) -> None:
    """Move a table into a row, one row of the table after the other."""
    for a in range(numbers.shape[0]):
        for b in range(numbers.shape[1]):
            rows[item, a * numbers.shape[1] + b] = numbers[a, b]
            numbers[a, b] = 0.0


@shared
def take_ends(
    chain: Any, graph: Any, nodes: int, texts: Any, item: int, scratch: Any, counts: Any, told: Any
) -> None:
    """Take what stands at the tries of prefixes and suffixes."""
    for k in range(4):
        told.cut[item, k] = 0.0
    told.log[item] = 0.0
    tree = chain.prefix
    for k in range(texts.prefix_first[item], texts.prefix_first[item + 1]):
        t, u, top = texts.prefix_root[k], 0, 0
        while t >= 0:
            take_parts(told.prefix, counts.prefix, tree.weight, t, item, 0, 0, told.prefix_share, told)
            t, u, top = step_on(tree, graph, nodes, t, u, scratch.stack, top)
    name_best(told.prefix_share, item, 0, told)
    tree = chain.suffix
    for k in range(texts.suffix_first[item], texts.suffix_first[item + 1]):
        for end in range(nodes - 1, -1, -1):
            if place_of(graph, end) != place_of(graph, nodes - 1):
                break
            t, u, top = texts.suffix_root[k], end, 0
            while t >= 0:
                take_parts(told.suffix, counts.suffix, tree.weight, t, item, 3, 3, told.suffix_share, told)
                t, u, top = step_back(tree, graph, t, u, scratch.stack, top)
    name_best(told.suffix_share, item, 2, told)


@shared
def take_parts(
    owners: Any,
    numbers: Any,
    weights: Any,
    t: int,
    item: int,
    left: int,
    right: int,
    share: Any,
    told: Any,
) -> None:
    """Share the expected counts of a node out among the parts that end there."""
    for c in range(numbers.shape[1]):
        if numbers[t, c] > 0.0:
            rate = numbers[t, c] / weights[t, c]
            numbers[t, c] = 0.0
            for k in range(owners.first[t], owners.first[t + 1]):
                value = rate * owners.weight[k, c]
                share[owners.gene[k]] += value
                told.log[item] += value * owners.log[k, c]
                told.cut[item, left] += value * owners.cut[k]
                if right != left:
                    told.cut[item, right] += value * owners.cut_right[k]


@shared
def name_best(share: Any, item: int, column: int, told: Any) -> None:
    """The most probable gene, the first of those that are equally probable; shares become zero."""
    best = -1
    most = 0.0
    for k in range(share.size):
        if share[k] > most:
            most = share[k]
            best = k
        share[k] = 0.0
    told.best[item, column] = best
    told.share[item, column] = most
