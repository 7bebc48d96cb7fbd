"""Weight of a junction in the chain of weighted choices: V, insertions, D, insertions and J, or without D.

J carries a column of weights for every D or, where V and J are chosen together and there is no D, for every
J. Lanes run over these columns, of which only those are read that some J of the junction has.

The two are bodies of their own (design/0007): without D, insertions are worked out once for all columns,
from V to J, which as a chain with an empty D would be once for each of up to 61 columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.chain.graphs import (
    as_read,
    begin_walk,
    count_after,
    count_before,
    gathered,
    group_on_way,
    lay_graph,
    node_after,
    node_before,
    on_way,
    place_of,
    step_back,
    step_on,
)
from plait.dp.chain.insertions import insert
from plait.lang.algebras import choice, extend, over_lanes
from plait.lang.compile import by_type, by_type_of, kernel_optimised_twice, shared
from plait.lang.lanes import load, splat, store, width_of


class WeightedChain(NamedTuple):
    """What the chain is made of; all weights are values of one algebra.

    A level of `insertion` holds the insertions that begin at one place. `v` (V), `j` (J),
    `d` (D) and `words` are `EndTrees`; J has a column for every D. `d` has all words in D
    genes, a word weighing what all parts that read so weigh; `d_root`, int32 (D genes,), is the root
    of each. `words` is all those tries as one with root 0, each D in its own column, columns padded to whole
    groups of lanes.

    `left_none` and `right_none`, (1,): weight of no insertion. `left_length` and `right_length`, (1, ...):
    weight of 1, 2, ... insertions, of 2 and more backwards on the left, between `margin` zeros, so that any
    group of lanes that holds one of them lies within the table. `pick`, (1, ...), is a one in the middle of
    more zeros than there are lengths: it puts a value into one lane. `left_first` and `right_first`, (4,):
    weight of the first inserted base, left the leftmost, right the rightmost; `left_step` and `right_step`,
    (4, 4): weight of an inserted base (column) after the one inserted before it (row).
    """

    insertion: Any
    v: Any
    j: Any
    d: Any
    d_root: Any
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
    """Working memory of one worker; `graph` is one of those of `plait.dp.chain.graphs`.

    `before` and `left`, (nodes, 1): everything before a node, V alone and with insertions. `after` and
    `right`, (nodes, columns padded): everything behind a node, likewise. `left_levels` and `right_levels`,
    (nodes, levels padded), and the latter as many for each column: by the place where insertions begin.
    `inserted`, (nodes, columns padded): insertions that begin with a node, and all behind them. `stack`,
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
    stack: Any


class PairScratch(NamedTuple):
    """Working memory of one worker without D: `graph`, `after` and `stack` as in `WeightedScratch`.

    `before`, (nodes, columns padded): V before a node. `inserted`, (nodes, 1): bases inserted from one node
    up to each other one. `span`, int64 (nodes, 3): whether V ends at a node, and from and up to which column
    J begins behind it, in whole groups; for most nodes they are few.
    """

    graph: Any
    before: Any
    after: Any
    inserted: Any
    span: Any
    stack: Any


class Junction(NamedTuple):
    """One junction with what it is weighed by: its graph, of `nodes` nodes, is in `scratch`."""

    lanes: Any
    alg: Any
    chain: Any
    graph: Any
    nodes: Any
    scratch: Any


@kernel_optimised_twice
def weigh_kernel(
    lanes: Any, alg: Any, chain: Any, parts: Any, texts: Any, first: int, last: int, scratch: Any, out: Any
) -> None:
    """Weight of all that junctions `first` to `last` stand for, into `out`; scratch from the caller."""
    for item in range(first, last):
        junction = read_junction(lanes, alg, chain, parts, texts, item, scratch)
        out[item] = weigh(scratch, junction)


@shared
def read_junction(
    lanes: Any, alg: Any, chain: Any, parts: Any, texts: Any, item: int, scratch: Any
) -> Junction:
    """Lay a junction's graph, with what V weighs before each node, and J behind it: `before` and `after`."""
    graph = scratch.graph
    junction = Junction(lanes, alg, chain, graph, lay_graph(graph, parts, texts, item), scratch)
    for u in range(junction.nodes):
        for c in range(scratch.before.shape[1]):
            scratch.before[u, c] = alg.zero
        for c in range(scratch.after.shape[1]):
            scratch.after[u, c] = alg.zero
    visit_v(AddWeights(alg, graph, chain.v.weight, scratch.before), junction, texts, item)
    visit_j(AddWeights(alg, graph, chain.j.weight, scratch.after), junction, texts, item)
    return junction


class AddWeights(NamedTuple):
    """Adds to `rows`, by node of the graph, what the nodes of a trie weigh."""

    alg: Any
    graph: Any
    weight: Any
    rows: Any

    @staticmethod
    def visit(visitor: AddWeights, t: int, u: int) -> None:
        for c in range(visitor.weight.shape[1]):
            weight = on_way(visitor.graph, u, visitor.weight[t, c])
            visitor.rows[u, c] = choice(visitor.alg, visitor.rows[u, c], weight)


@by_type
def visit(visitor: Any, t: int, u: int) -> None:
    """Do something about node t of a trie, of which a part of V, D or J ends at node u of the graph."""


@shared
def visit_v(visitor: Any, junction: Any, texts: Any, item: int) -> None:
    """Visit all V with which the junction may begin."""
    _, _, chain, graph, nodes, scratch = junction
    for k in range(texts.v_first[item], texts.v_first[item + 1]):
        t, u, top = texts.v_root[k], 0, 0
        begin_walk(graph, u, False)
        while t >= 0:
            visit(visitor, t, u)
            t, u, top = step_on(chain.v, graph, nodes, t, u, scratch.stack, top)


@shared
def visit_j(visitor: Any, junction: Any, texts: Any, item: int) -> None:
    """Visit all J with which the junction may end."""
    _, _, chain, graph, nodes, scratch = junction
    for k in range(texts.j_first[item], texts.j_first[item + 1]):
        for end in range(nodes - 1, -1, -1):
            if place_of(graph, end) != place_of(graph, nodes - 1):
                break
            t, u, top = texts.j_root[k], end, 0
            begin_walk(graph, u, False)
            while t >= 0:
                visit(visitor, t, u)
                t, u, top = step_back(chain.j, graph, t, u, scratch.stack, top)


@shared
def weigh_vdj(kind: Any, junction: Any) -> Any:
    """Weight of V, insertions, D, insertions and J; picked by the type of `kind`."""
    insert_left(junction)
    insert_right(junction)
    return join(junction)


@shared
def insert_left(junction: Any) -> None:
    """Insertions behind V: `left` of every node."""
    lanes, alg, chain, graph, nodes, scratch = junction
    low, high = places_entered(junction, scratch.before, 1)
    levels = scratch.left_levels
    most = chain.left_length.shape[1] - 2 * chain.margin
    middle = chain.pick.shape[1] // 2
    width = width_of(lanes)
    for u in range(nodes):
        place = place_of(graph, u)
        total = extend(alg, scratch.before[u, 0], chain.left_none[0])
        if low < place <= high + most:
            base = graph.symbol[u]
            entered = alg.zero
            for k in range(count_before(graph, u)):
                entered = choice(alg, entered, scratch.before[node_before(graph, u, k), 0])
            entered = splat(lanes, extend(alg, as_read(graph, u, chain.left_first[base]), entered))
            found = splat(lanes, alg.zero)
            # Of the places where insertions begin, those that are near enough.
            here = place - low
            count = min(here, high + 1 - low)
            for x in range(max(0, here - most) // width * width, count, width):
                value = extend(alg, load(lanes, chain.pick, 0, middle + x + 1 - here), entered)
                for k in range(count_before(graph, u)):
                    p = node_before(graph, u, k)
                    if x < place_of(graph, p) - low:
                        step = splat(lanes, as_read(graph, u, chain.left_step[graph.symbol[p], base]))
                        value = insert(chain.insertion, alg, value, load(lanes, levels, p, x), step)
                store(lanes, levels, u, x, value)
                length = load(lanes, chain.left_length, 0, chain.margin + most - here + x)
                found = choice(alg, found, extend(alg, value, length))
            total = choice(alg, total, over_lanes(alg, found))
        scratch.left[u, 0] = total


@shared
def insert_right(junction: Any) -> None:
    """Insertions before J: `right` of every node."""
    _, alg, chain, graph, nodes, scratch = junction
    low, high = places_entered(junction, scratch.after, chain.j.weight.shape[1])
    most = chain.right_length.shape[1] - 2 * chain.margin
    for u in range(nodes - 1, -1, -1):
        place = place_of(graph, u)
        for c in range(chain.j.weight.shape[1]):
            right = extend(alg, scratch.after[u, c], chain.right_none[0])
            for k in range(count_after(graph, nodes, u)):
                right = choice(alg, right, scratch.inserted[node_after(graph, u, k), c])
            scratch.right[u, c] = right
            if max(0, low - most) < place <= high:
                scratch.inserted[u, c] = step_right(junction, u, c, low, high, most)
            else:
                scratch.inserted[u, c] = alg.zero


@shared
def step_right(junction: Any, u: int, c: int, low: int, high: int, most: int) -> Any:
    """Insertions whose leftmost base is that of a node, and all behind them, in one column."""
    lanes, alg, chain, graph, nodes, scratch = junction
    levels = scratch.right_levels
    base = graph.symbol[u]
    middle = chain.pick.shape[1] // 2
    # Where insertions begin, counted from the first such place, this node is here.
    here = place_of(graph, u) - low
    lead = c * padded_to(lanes, high - low + 1)
    entered = splat(lanes, extend(alg, as_read(graph, u, chain.right_first[base]), scratch.after[u, c]))
    found = splat(lanes, alg.zero)
    width = width_of(lanes)
    for x in range(max(0, here) // width * width, min(high - low + 1, here + most), width):
        value = extend(alg, load(lanes, chain.pick, 0, middle + x - here), entered)
        if x + width > here + 1 and here + low < high:
            for k in range(count_after(graph, nodes, u)):
                y = node_after(graph, u, k)
                step = splat(lanes, as_read(graph, u, chain.right_step[graph.symbol[y], base]))
                value = insert(chain.insertion, alg, value, load(lanes, levels, y, lead + x), step)
        store(lanes, levels, u, lead + x, value)
        length = load(lanes, chain.right_length, 0, chain.margin + x - here)
        found = choice(alg, found, extend(alg, value, length))
    return over_lanes(alg, found)


@shared
def places_entered(junction: Any, rows: Any, columns: int) -> Any:
    """The first and the last place at which a row is not zero; the last is before the first where all are."""
    _, alg, _, graph, nodes, _ = junction
    low = 0
    while low < nodes and not is_entered(alg, rows, low, columns):
        low += 1
    if low == nodes:
        return place_of(graph, nodes - 1) + 1, -1
    high = nodes - 1
    while not is_entered(alg, rows, high, columns):
        high -= 1
    return place_of(graph, low), place_of(graph, high)


@shared
def is_entered(alg: Any, rows: Any, u: int, columns: int) -> bool:
    """Whether a row is not zero."""
    entered = False
    for c in range(columns):
        entered = entered or rows[u, c] != alg.zero
    return entered


@shared
def padded_to(lanes: Any, count: int) -> int:
    """`count` rounded up to whole groups."""
    width = width_of(lanes)
    rounded: int = (count + width - 1) // width * width
    return rounded


@shared
def join(junction: Any) -> Any:
    """Bring left and right together, with every part of every D between them."""
    lanes, alg, chain, graph, nodes, scratch = junction
    total = alg.zero
    for c in range(0, chain.j.weight.shape[1], width_of(lanes)):
        found = splat(lanes, alg.zero)
        for u in range(nodes):
            left = gathered(graph, scratch.left, u)
            if left != alg.zero:
                found = choice(alg, found, extend(alg, splat(lanes, left), read_d(junction, u, c)))
        total = choice(alg, total, over_lanes(alg, found))
    return total


@shared
def read_d(junction: Any, start: int, c: int) -> Any:
    """Parts of D that begin behind a node, nothing included, each with all behind it; columns from c."""
    lanes, alg, chain, graph, nodes, scratch = junction
    tree = chain.words
    found = splat(lanes, alg.zero)
    t, u, top = 0, start, 0
    begin_walk(graph, u, True)
    while t >= 0:
        part = group_on_way(graph, lanes, u, load(lanes, tree.weight, t, c))
        found = choice(alg, found, extend(alg, part, load(lanes, scratch.right, u, c)))
        t, u, top = step_on(tree, graph, nodes, t, u, scratch.stack, top)
    return found


@shared
def weigh_vj(kind: Any, junction: Any) -> Any:
    """Weight of V, insertions and J; picked by the type of `kind`."""
    lanes, alg, _, _, nodes, scratch = junction
    find_spans(junction)
    total = splat(lanes, alg.zero)
    for u in range(nodes):
        if scratch.span[u, 0] != 0:
            total = choice(alg, total, join_from(junction, u))
    return over_lanes(alg, total)


#: Weight of a junction that has been read, by its scratch.
weigh = by_type_of({WeightedScratch: weigh_vdj, PairScratch: weigh_vj})


@shared
def find_spans(junction: Any) -> None:
    """`span` of every node."""
    lanes, alg, _, _, nodes, scratch = junction
    columns = scratch.after.shape[1]
    width = width_of(lanes)
    for u in range(nodes):
        before = splat(lanes, alg.zero)
        after = splat(lanes, alg.zero)
        for x in range(0, columns, width):
            before = choice(alg, before, load(lanes, scratch.before, u, x))
            after = choice(alg, after, load(lanes, scratch.after, u, x))
        low = 0
        high = 0
        if over_lanes(alg, after) != alg.zero:
            high = columns
            while over_lanes(alg, load(lanes, scratch.after, u, low)) == alg.zero:
                low += width
            while over_lanes(alg, load(lanes, scratch.after, u, high - width)) == alg.zero:
                high -= width
        scratch.span[u, 0] = 0 if over_lanes(alg, before) == alg.zero else 1
        scratch.span[u, 1] = low
        scratch.span[u, 2] = high


@shared
def insert_at(junction: Any, start: int, u: int) -> Any:
    """Weight of the bases inserted behind a node up to another, u, but for their number."""
    _, alg, chain, graph, _, scratch = junction
    base = graph.symbol[u]
    value = alg.zero
    for k in range(count_before(graph, u)):
        p = node_before(graph, u, k)
        if p == start:
            value = choice(alg, value, chain.left_first[base])
        elif p > start:
            step = chain.left_step[graph.symbol[p], base]
            value = choice(alg, value, extend(alg, scratch.inserted[p, 0], step))
    return as_read(graph, u, value)


@shared
def length_weight(chain: Any, number: int) -> Any:
    """Weight of a number of insertions of at least 1, without D."""
    return chain.left_length[0, chain.left_length.shape[1] - chain.margin - number]


@shared
def join_from(junction: Any, start: int) -> Any:
    """All V that end at a node, with all insertions behind it and the J behind those."""
    lanes, alg, chain, graph, nodes, scratch = junction
    most = chain.left_length.shape[1] - 2 * chain.margin
    found = extend(alg, meet(junction, start, start), splat(lanes, chain.left_none[0]))
    for u in range(start + 1, nodes):
        number = place_of(graph, u) - place_of(graph, start)
        if number > most:
            break
        value = insert_at(junction, start, u)
        scratch.inserted[u, 0] = value
        if scratch.span[u, 2] > 0 and value != alg.zero:
            weight = splat(lanes, extend(alg, value, length_weight(chain, number)))
            found = choice(alg, found, extend(alg, meet(junction, start, u), weight))
    return found


@shared
def meet(junction: Any, start: int, u: int) -> Any:
    """V that ends at one node with J behind another, column by column."""
    lanes, alg, _, _, _, scratch = junction
    found = splat(lanes, alg.zero)
    for x in range(scratch.span[u, 1], scratch.span[u, 2], width_of(lanes)):
        before = load(lanes, scratch.before, start, x)
        found = choice(alg, found, extend(alg, before, load(lanes, scratch.after, u, x)))
    return found
