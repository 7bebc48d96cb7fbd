"""The adjoint of the weighted chain: expected counts of every choice, given a junction, and posteriors."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from plait.dp.chain.graphs import (
    add_to_alike,
    as_read,
    begin_walk,
    count_after,
    count_before,
    count_misread,
    count_on_way,
    gathered,
    group_on_way,
    node_after,
    node_before,
    on_way,
    place_of,
    step_on,
)
from plait.dp.chain.weigh import (
    find_spans,
    insert_at,
    length_weight,
    padded_to,
    places_entered,
    read_junction,
    visit,
    visit_j,
    visit_v,
    weigh_vdj,
)
from plait.lang.algebras import PROBABILITY, over_lanes
from plait.lang.compile import by_type_of, kernel_optimised_twice, shared
from plait.lang.lanes import load, splat, store, width_of

#: The least weight of a junction of which expected numbers can be told.
LEAST_WEIGHT: Final = 1e-290


class ChainCounts(NamedTuple):
    """Expected counts, float64; what is found is added.

    `v`, `j` and `words` are shaped as the weights of the tries, by node and column; `left_none` and
    `right_none` are (1,). `left_length` and `right_length` are shaped and ordered as those of the chain: 1,
    2, ... insertions between margins. `left_step` and `right_step`, (20, lanes), to be added up over lanes:
    row 4 a + b for inserted base b after a, row 16 + b for the first one. `errors`, (1,): misread bases,
    where there can be any.
    """

    v: Any
    j: Any
    words: Any
    left_none: Any
    right_none: Any
    left_length: Any
    right_length: Any
    left_step: Any
    right_step: Any
    errors: Any


class PairCounts(NamedTuple):
    """Expected counts without D, float64; what is found is added.

    `v` and `j` are shaped as the weights of the tries, by node and column; `length`, (1 + most,),
    by number of insertions; `step`, (5, 4), by inserted base after the one before, row 4 for the first one.
    `errors` as of `ChainCounts`.
    """

    v: Any
    j: Any
    length: Any
    step: Any
    errors: Any


class ChainAdjoint(NamedTuple):
    """Derivatives, float64, shaped as what they belong to in `plait.dp.chain.weigh.WeightedScratch`."""

    before: Any
    left: Any
    after: Any
    right: Any
    left_levels: Any
    right_levels: Any


class PairAdjoint(NamedTuple):
    """Derivatives without D, float64.

    `behind`, (nodes, columns): all that may come behind a V that ends at a node, the derivative by `before`;
    `ahead`, the same before a J, the derivative by `after`. `inserted`, (nodes, 1): that by the bases
    inserted from one node up to each other one.
    """

    behind: Any
    ahead: Any
    inserted: Any


@kernel_optimised_twice
def expect_kernel(
    lanes: Any, chain: Any, parts: Any, texts: Any, first: int, last: int, shares: Any, scratch: Any,
    adjoint: Any, counts: Any, out: Any, posterior: Any, each: Any,
) -> None:  # fmt: skip
    """Weights of junctions `first` to `last` into `out`; expected counts, times `shares`, added to `counts`.

    As `plait.dp.chain.weigh.weigh_kernel`, with probabilities; `adjoint` is scratch of the caller. What
    weighs less than `LEAST_WEIGHT` counts as impossible. If `each`, the counts of every junction are moved to
    `posterior`: they must be zero before, and are zero after it.
    """
    for item in range(first, last):
        junction = read_junction(lanes, PROBABILITY, chain, parts, texts, item, scratch)
        total = forward(adjoint, junction)
        # Derivatives of the logarithm of less than this could be infinite.
        total = total if total > LEAST_WEIGHT else 0.0
        out[item] = total
        if total > 0.0:
            backward(adjoint, junction, texts, item, shares[item] / total, counts)
            if each:
                take_ends(junction, texts, item, counts, posterior)
                take_middle(counts, junction, item, posterior)


@shared
def backward_vdj(adjoint: Any, junction: Any, texts: Any, item: int, scale: float, counts: Any) -> None:
    """`backward` with D."""
    backward_join(junction, scale, adjoint, counts)
    backward_right(junction, adjoint, counts)
    backward_left(junction, adjoint, counts)
    v, j, graph = junction.chain.v.weight, junction.chain.j.weight, junction.graph
    visit_v(AddCounts(graph, v, adjoint.before, counts.v, counts.errors), junction, texts, item)
    visit_j(AddCounts(graph, j, adjoint.after, counts.j, counts.errors), junction, texts, item)


class AddCounts(NamedTuple):
    """Adds to `counts`, by node of a trie, its weights times derivatives, by node of the graph."""

    graph: Any
    weight: Any
    slopes: Any
    counts: Any
    errors: Any

    @staticmethod
    def visit(visitor: AddCounts, t: int, u: int) -> None:
        for c in range(visitor.weight.shape[1]):
            number = on_way(visitor.graph, u, visitor.weight[t, c]) * visitor.slopes[u, c]
            visitor.counts[t, c] += number
            count_on_way(visitor.graph, u, visitor.errors, number)


@shared
def add_group(lanes: Any, table: Any, row: int, x: int, value: Any) -> None:
    """Add a group to a table."""
    store(lanes, table, row, x, load(lanes, table, row, x) + value)


@shared
def backward_join(junction: Any, scale: float, adjoint: Any, counts: Any) -> None:
    """Derivatives by `left` and `right`, and expected counts of the words of D."""
    lanes, _, chain, graph, nodes, scratch = junction
    for u in range(nodes):
        adjoint.left[u, 0] = 0.0
        for c in range(adjoint.right.shape[1]):
            adjoint.right[u, c] = 0.0
    for c in range(0, chain.j.weight.shape[1], width_of(lanes)):
        for u in range(nodes):
            left = gathered(graph, scratch.left, u)
            if left != 0.0:
                found = backward_d(junction, u, c, scale * left, adjoint, counts)
                add_to_alike(graph, adjoint.left, u, scale * found)


@shared
def backward_d(junction: Any, start: int, c: int, before: float, adjoint: Any, counts: Any) -> Any:
    """Counts of the words that begin behind a node, in the columns from `c`; returns what they weigh.

    `before` is what all before them weighs, times the scale of the counts.
    """
    lanes, alg, chain, graph, nodes, scratch = junction
    tree = chain.words
    left = splat(lanes, before)
    found = splat(lanes, 0.0)
    t, u, top = 0, start, 0
    begin_walk(graph, u, True)
    while t >= 0:
        part = group_on_way(graph, lanes, u, load(lanes, tree.weight, t, c))
        right = load(lanes, scratch.right, u, c)
        found = found + part * right
        used = left * part
        add_group(lanes, adjoint.right, u, c, used)
        add_group(lanes, counts.words, t, c, used * right)
        count_on_way(graph, u, counts.errors, over_lanes(alg, used * right))
        t, u, top = step_on(tree, graph, nodes, t, u, scratch.stack, top)
    return over_lanes(alg, found)


@shared
def backward_left(junction: Any, adjoint: Any, counts: Any) -> None:
    """From the derivatives by `left`: those by `before`, and expected counts of insertions on the left."""
    _, _, chain, graph, nodes, scratch = junction
    low, high = places_entered(junction, scratch.before, 1)
    most = chain.left_length.shape[1] - 2 * chain.margin
    for u in range(nodes):
        adjoint.before[u, 0] = adjoint.left[u, 0] * chain.left_none[0]
        counts.left_none[0] += adjoint.before[u, 0] * scratch.before[u, 0]
    for u in range(nodes - 1, 0, -1):
        place = place_of(graph, u)
        if low < place <= high + most:
            backward_left_node(junction, u, low, high, most, adjoint, counts)
            if place - 1 <= high:
                base = graph.symbol[u]
                weight = as_read(graph, u, chain.left_first[base]) * adjoint.left_levels[u, place - 1 - low]
                for k in range(count_before(graph, u)):
                    p = node_before(graph, u, k)
                    adjoint.before[p, 0] += weight
                    counts.left_step[16 + base, 0] += weight * scratch.before[p, 0]


@shared
def backward_left_node(
    junction: Any, u: int, low: int, high: int, most: int, adjoint: Any, counts: Any
) -> None:
    """Derivatives by the levels of a node, of which the rightmost inserted base is its own."""
    lanes, alg, chain, graph, nodes, scratch = junction
    base = graph.symbol[u]
    here = place_of(graph, u) - low
    whole = splat(lanes, adjoint.left[u, 0])
    width = width_of(lanes)
    for x in range(max(0, here - most) // width * width, min(here, high + 1 - low), width):
        value = load(lanes, scratch.left_levels, u, x)
        at = chain.margin + most - here + x
        slope = load(lanes, chain.left_length, 0, at) * whole
        add_group(lanes, counts.left_length, 0, at, slope * value)
        # Longer insertions go on from this node, as far as there are as long ones.
        if x >= (here + 1 - most) // width * width and here + low < high + most:
            for k in range(count_after(graph, nodes, u)):
                y = node_after(graph, u, k)
                step = splat(lanes, as_read(graph, y, chain.left_step[base, graph.symbol[y]]))
                step = step * load(lanes, adjoint.left_levels, y, x)
                slope = slope + step
                add_group(lanes, counts.left_step, 4 * base + graph.symbol[y], 0, step * value)
        store(lanes, adjoint.left_levels, u, x, slope)
        count_misread(graph, u, counts.errors, over_lanes(alg, slope * value))


@shared
def backward_right(junction: Any, adjoint: Any, counts: Any) -> None:
    """From the derivatives by `right`: those by `after`, and expected counts of insertions on the right."""
    lanes, _, chain, graph, nodes, scratch = junction
    columns = chain.j.weight.shape[1]
    low, high = places_entered(junction, scratch.after, columns)
    most = chain.right_length.shape[1] - 2 * chain.margin
    for u in range(nodes):
        place = place_of(graph, u)
        inside = max(0, low - most) < place <= high
        for c in range(columns):
            adjoint.after[u, c] = adjoint.right[u, c] * chain.right_none[0]
            counts.right_none[0] += adjoint.after[u, c] * scratch.after[u, c]
            if inside:
                backward_right_node(junction, u, c, low, high, most, adjoint, counts)
                if place >= low:
                    base = graph.symbol[u]
                    at = c * padded_to(lanes, high - low + 1) + place - low
                    weight = as_read(graph, u, chain.right_first[base]) * adjoint.right_levels[u, at]
                    adjoint.after[u, c] += weight
                    counts.right_step[16 + base, 0] += weight * scratch.after[u, c]


@shared
def backward_right_node(
    junction: Any, u: int, c: int, low: int, high: int, most: int, adjoint: Any, counts: Any
) -> None:
    """Derivatives by the levels of a node in a column, of which the leftmost inserted base is its own."""
    lanes, alg, chain, graph, _, scratch = junction
    base = graph.symbol[u]
    here = place_of(graph, u) - low
    lead = c * padded_to(lanes, high - low + 1)
    inserted = 0.0
    for k in range(count_before(graph, u)):
        inserted += adjoint.right[node_before(graph, u, k), c]
    whole = splat(lanes, inserted)
    width = width_of(lanes)
    for x in range(max(0, here) // width * width, min(high - low + 1, here + most), width):
        value = load(lanes, scratch.right_levels, u, lead + x)
        at = chain.margin + x - here
        slope = load(lanes, chain.right_length, 0, at) * whole
        add_group(lanes, counts.right_length, 0, at, slope * value)
        # Longer insertions go on to the left, as far as there are as long ones.
        if x < here - 1 + most and here - 1 + low > max(0, low - most):
            for k in range(count_before(graph, u)):
                p = node_before(graph, u, k)
                step = splat(lanes, as_read(graph, p, chain.right_step[base, graph.symbol[p]]))
                step = step * load(lanes, adjoint.right_levels, p, lead + x)
                slope = slope + step
                add_group(lanes, counts.right_step, 4 * base + graph.symbol[p], 0, step * value)
        store(lanes, adjoint.right_levels, u, lead + x, slope)
        count_misread(graph, u, counts.errors, over_lanes(alg, slope * value))


@shared
def forward_vj(adjoint: Any, junction: Any) -> Any:
    """`forward` without D; `plait.dp.chain.weigh.weigh_vj` would not leave `behind`, in other roundings."""
    find_spans(junction)
    total = 0.0
    for u in range(junction.nodes):
        if junction.scratch.span[u, 0] != 0:
            total += look_behind(junction, u, adjoint)
    return total


@shared
def backward_vj(adjoint: Any, junction: Any, texts: Any, item: int, scale: float, counts: Any) -> None:
    """`backward` without D."""
    lanes, _, chain, graph, nodes, scratch = junction
    span = scratch.span
    for u in range(nodes):
        for x in range(span[u, 1], span[u, 2], width_of(lanes)):
            store(lanes, adjoint.ahead, u, x, splat(lanes, 0.0))
    for u in range(nodes):
        if span[u, 0] != 0:
            backward_insertions(junction, u, scale, adjoint, counts)
    errors = counts.errors
    ends = AddGroups(lanes, graph, chain.v.weight, adjoint.behind, scale, counts.v, errors, span, False)
    visit_v(ends, junction, texts, item)
    ends = AddGroups(lanes, graph, chain.j.weight, adjoint.ahead, scale, counts.j, errors, span, True)
    visit_j(ends, junction, texts, item)


class AddGroups(NamedTuple):
    """As `AddCounts`, times `scale`, in whole groups of lanes: where V ends or, if `narrow`, J begins."""

    lanes: Any
    graph: Any
    weight: Any
    slopes: Any
    scale: Any
    counts: Any
    errors: Any
    span: Any
    narrow: Any

    @staticmethod
    def visit(visitor: AddGroups, t: int, u: int) -> None:
        lanes, graph, weight, slopes, scale, counts, errors, span, narrow = visitor
        low = span[u, 1] if narrow else 0
        high = span[u, 2] if narrow else weight.shape[1] * span[u, 0]
        scaled = splat(lanes, scale)
        for x in range(low, high, width_of(lanes)):
            value = group_on_way(graph, lanes, u, load(lanes, weight, t, x)) * load(lanes, slopes, u, x)
            value = value * scaled
            add_group(lanes, counts, t, x, value)
            count_on_way(graph, u, errors, over_lanes(PROBABILITY, value))


@shared
def insert_from(junction: Any, start: int) -> Any:
    """Weights of the bases inserted behind a node up to each other one, but for their number: `inserted`.

    Returns the node behind the last one that so many insertions reach.
    """
    _, _, chain, graph, nodes, scratch = junction
    furthest = place_of(graph, start) + chain.left_length.shape[1] - 2 * chain.margin
    for u in range(start + 1, nodes):
        if place_of(graph, u) > furthest:
            return u
        scratch.inserted[u, 0] = insert_at(junction, start, u)
    return nodes


@shared
def look_behind(junction: Any, start: int, adjoint: Any) -> Any:
    """`behind` of a node; returns what all texts weigh whose V ends there."""
    lanes, alg, chain, graph, _, scratch = junction
    after = scratch.after
    behind = adjoint.behind
    last = insert_from(junction, start)
    none = splat(lanes, chain.left_none[0])
    for x in range(0, after.shape[1], width_of(lanes)):
        store(lanes, behind, start, x, load(lanes, after, start, x) * none)
    for u in range(start + 1, last):
        value = scratch.inserted[u, 0]
        if scratch.span[u, 2] > 0 and value != 0.0:
            weight = splat(lanes, value * length_weight(chain, place_of(graph, u) - place_of(graph, start)))
            for x in range(scratch.span[u, 1], scratch.span[u, 2], width_of(lanes)):
                add_group(lanes, behind, start, x, load(lanes, after, u, x) * weight)
    total = splat(lanes, 0.0)
    for x in range(0, after.shape[1], width_of(lanes)):
        total = total + load(lanes, scratch.before, start, x) * load(lanes, behind, start, x)
    return over_lanes(alg, total)


@shared
def backward_insertions(junction: Any, start: int, scale: float, adjoint: Any, counts: Any) -> None:
    """Expected counts of the insertions behind a node, and its share of `ahead`."""
    _, _, chain, graph, _, scratch = junction
    inserted, slopes = scratch.inserted, adjoint.inserted
    last = insert_from(junction, start)
    pairs = meet_ahead(junction, start, start, chain.left_none[0], adjoint)
    counts.length[0] += pairs * chain.left_none[0] * scale
    for u in range(start + 1, last):
        slopes[u, 0] = 0.0
        if scratch.span[u, 2] > 0 and inserted[u, 0] != 0.0:
            number = place_of(graph, u) - place_of(graph, start)
            length = length_weight(chain, number)
            pairs = meet_ahead(junction, start, u, inserted[u, 0] * length, adjoint)
            slopes[u, 0] = pairs * length * scale
            counts.length[number] += slopes[u, 0] * inserted[u, 0]
    for u in range(last - 1, start, -1):
        slope = slopes[u, 0]
        if slope != 0.0:
            base = graph.symbol[u]
            count_misread(graph, u, counts.errors, slope * inserted[u, 0])
            for k in range(count_before(graph, u)):
                p = node_before(graph, u, k)
                if p == start:
                    counts.step[4, base] += slope * as_read(graph, u, chain.left_first[base])
                elif p > start:
                    step = slope * as_read(graph, u, chain.left_step[graph.symbol[p], base])
                    counts.step[graph.symbol[p], base] += step * inserted[p, 0]
                    slopes[p, 0] += step


@shared
def meet_ahead(junction: Any, start: int, u: int, weight: float, adjoint: Any) -> Any:
    """V that ends at `start` with J behind `u`, over all columns; V with `weight` into `ahead`."""
    lanes, alg, _, _, _, scratch = junction
    between = splat(lanes, weight)
    total = splat(lanes, 0.0)
    for x in range(scratch.span[u, 1], scratch.span[u, 2], width_of(lanes)):
        before = load(lanes, scratch.before, start, x)
        total = total + before * load(lanes, scratch.after, u, x)
        add_group(lanes, adjoint.ahead, u, x, before * between)
    return over_lanes(alg, total)


#: Weight of a junction that has been read; what the pass backwards needs is left in the scratch.
forward = by_type_of({ChainAdjoint: weigh_vdj, PairAdjoint: forward_vj})
#: Derivatives, and expected counts times `scale`, the share of a junction divided by its weight.
backward = by_type_of({ChainAdjoint: backward_vdj, PairAdjoint: backward_vj})


class PartOwners(NamedTuple):
    """Parts of genes in the order of the trie nodes at which they end.

    Parts of node t are ``first[t]`` to ``first[t + 1]``, int64 (nodes + 1,). `gene`, `deletion` and
    `deletion_right`, int64 (parts,): whose they are, and what is deleted. `weight` and `log`, float64
    (parts, columns): weight and its logarithm, 0 where there is none.
    """

    first: Any
    gene: Any
    deletion: Any
    deletion_right: Any
    weight: Any
    log: Any


class PosteriorRows(NamedTuple):
    """What is found for n junctions; `v`, `words` and `j` are `PartOwners` of V, D and J.

    `v_share`, `words_share` and `j_share`, float64 (genes,), are working memory, zeros between
    junctions. `best`, int32 (n, 3): the most probable V, D and J, -1 for none, with probabilities `share`,
    float64 (n, 3). `deletion`, float64 (n, 4): mean deletions of V, of D on the left and right, and of J.
    `log`, float64 (n,): mean logarithm of the weights of all parts together. The lengths and steps, float64
    (n, ...), are expected counts of the junction, flat, as of `ChainCounts`, or of `PairCounts`, where those
    on the right are missing.
    """

    v: Any
    words: Any
    j: Any
    v_share: Any
    words_share: Any
    j_share: Any
    best: Any
    share: Any
    deletion: Any
    log: Any
    left_length: Any
    right_length: Any
    left_step: Any
    right_step: Any


@shared
def take_ends(junction: Any, texts: Any, item: int, counts: Any, posterior: Any) -> None:
    """Take what is counted of V and J."""
    for k in range(4):
        posterior.deletion[item, k] = 0.0
    posterior.log[item] = 0.0
    chain, deletion, log = junction.chain, posterior.deletion, posterior.log
    share = posterior.v_share
    parts = TakeParts(posterior.v, counts.v, chain.v.weight, item, 0, 0, share, deletion, log)
    visit_v(parts, junction, texts, item)
    name_best(share, item, 0, posterior)
    share = posterior.j_share
    parts = TakeParts(posterior.j, counts.j, chain.j.weight, item, 3, 3, share, deletion, log)
    visit_j(parts, junction, texts, item)
    name_best(share, item, 2, posterior)


@shared
def take_vdj(counts: Any, junction: Any, item: int, posterior: Any) -> None:
    """`take_middle` with D."""
    _, _, chain, graph, nodes, scratch = junction
    share, log = posterior.words_share, posterior.log
    parts = TakeParts(
        posterior.words, counts.words, chain.words.weight, item, 1, 2, share, posterior.deletion, log
    )
    for start in range(nodes):
        t, u, top = 0, start, 0
        while t >= 0:
            visit(parts, t, u)
            t, u, top = step_on(chain.words, graph, nodes, t, u, scratch.stack, top)
    name_best(share, item, 1, posterior)
    take_table(counts.left_length, posterior.left_length, item)
    take_table(counts.right_length, posterior.right_length, item)
    posterior.left_length[item, 0] = counts.left_none[0]
    posterior.right_length[item, 0] = counts.right_none[0]
    counts.left_none[0] = 0.0
    counts.right_none[0] = 0.0
    take_table(counts.left_step, posterior.left_step, item)
    take_table(counts.right_step, posterior.right_step, item)


@shared
def take_vj(counts: Any, junction: Any, item: int, posterior: Any) -> None:
    """`take_middle` without D."""
    for k in range(counts.length.size):
        posterior.left_length[item, k] = counts.length[k]
        counts.length[k] = 0.0
    take_table(counts.step, posterior.left_step, item)


#: Take what is counted of D and of insertions.
take_middle = by_type_of({ChainCounts: take_vdj, PairCounts: take_vj})


@shared
def take_table(numbers: Any, rows: Any, item: int) -> None:
    """Move a table into a row, one row of the table after the other."""
    for a in range(numbers.shape[0]):
        for b in range(numbers.shape[1]):
            rows[item, a * numbers.shape[1] + b] = numbers[a, b]
            numbers[a, b] = 0.0


class TakeParts(NamedTuple):
    """Shares the expected counts `numbers` of trie nodes out among the parts that end there.

    `left` and `right` are the columns of `deletion`, one of them twice for V and J.
    """

    owners: Any
    numbers: Any
    weights: Any
    item: Any
    left: Any
    right: Any
    share: Any
    deletion: Any
    log: Any

    @staticmethod
    def visit(visitor: TakeParts, t: int, u: int) -> None:
        owners, numbers, weights, item, left, right, share, deletion, log = visitor
        for c in range(numbers.shape[1]):
            if numbers[t, c] > 0.0:
                rate = numbers[t, c] / weights[t, c]
                numbers[t, c] = 0.0
                for k in range(owners.first[t], owners.first[t + 1]):
                    value = rate * owners.weight[k, c]
                    share[owners.gene[k]] += value
                    log[item] += value * owners.log[k, c]
                    deletion[item, left] += value * owners.deletion[k]
                    if right != left:
                        deletion[item, right] += value * owners.deletion_right[k]


@shared
def name_best(share: Any, item: int, column: int, posterior: Any) -> None:
    """The most probable gene, the first of those that are equally probable; shares become zero."""
    best = -1
    most = 0.0
    for k in range(share.size):
        if share[k] > most:
            most = share[k]
            best = k
        share[k] = 0.0
    posterior.best[item, column] = best
    posterior.share[item, column] = most
