"""The k most probable scenarios of a junction.

Best lists of what ends or begins at each place are joined through a bounded heap.

Chains with D and without have a search each: as V-D-J with an empty D, the choice of V and J together would
be a factor of other products, in another order of equal scenarios.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.dp.chain.tables import CHOICE_FIELDS
from plait.lang.compile import kernel, shared

#: Columns of `ScenarioOutput.fields`.
SCENARIO_FIELDS = (*CHOICE_FIELDS, "v_end", "d_start", "d_end", "j_start")


class SegmentWeights(NamedTuple):
    """The V, D or J genes: `bases`, uint8, of all, J from the end, with offsets `first`, int64 (n + 1,).

    `weight`, float64: (n, deletions), of D (n, deletions on the left, on the right).
    """

    bases: Any
    first: Any
    weight: Any


class InsertionWeights(NamedTuple):
    """Weights of insertions, float64: `length` by their number, `base` (4,) of the first inserted base.

    `step`, (4, 4): of one after the one before, away from V or J.
    """

    length: Any
    base: Any
    step: Any


class ScenarioTables(NamedTuple):
    """What junctions are made of: `SegmentWeights` of V, D and J, `InsertionWeights` left and right of D.

    `joint`, float64 (1 or V genes, D genes, J genes); without D genes one of them.
    """

    v: Any
    d: Any
    j: Any
    joint: Any
    left: Any
    right: Any


class ScenarioQueries(NamedTuple):
    """Junctions, and the V and J genes that each may have.

    `codes` are uint8, bases 0 to 3; `start` and `length` int64 (n,). `v_first` and `j_first`, int64 (n + 1,),
    are offsets into the lists `v` and `j`, int32.
    """

    codes: Any
    start: Any
    length: Any
    v_first: Any
    v: Any
    j_first: Any
    j: Any


class BestLists(NamedTuple):
    """Lists of the largest values: `count` int64 (lists,), `value` float64 (lists, most), the largest first.

    `item`, int32 (lists, most, 2), is what has the value.
    """

    count: Any
    value: Any
    item: Any


class Heap(NamedTuple):
    """The best so far, the least of them first.

    `value` float64 (most,), `order` int64 (most,), when it came, and `item` int32 (most, 6).
    """

    value: Any
    order: Any
    item: Any


class ScenarioScratch(NamedTuple):
    """Memory for junctions of up to L bases.

    `left_inserted` and `right_inserted`, float64 (L + 1, L + 1): weight of inserting what is between two
    places. `v_ends` are `BestLists` of V that ends at each place, of gene and deletion, `j_begins` of J, for
    every D; `left` and `right` are the same with the insertions, of place and rank in the former. `heap` is a
    `Heap`.
    """

    left_inserted: Any
    right_inserted: Any
    v_ends: Any
    j_begins: Any
    left: Any
    right: Any
    heap: Any


class ScenarioOutput(NamedTuple):
    """What was found: `count` int64 (n,), `value` float64 (n, most), the largest first, and `fields`.

    `fields` is int32 (n, most, len(SCENARIO_FIELDS)); d is -1 where there are none.
    """

    count: Any
    value: Any
    fields: Any


@shared
def list_item(lists: Any, place: int, value: float, first: int, second: int) -> bool:
    """Put an item into a list of the largest ones; False if it is not larger than those of a full list."""
    values, items = lists.value, lists.item
    at = lists.count[place]
    if at == values.shape[1]:
        at -= 1
        if value <= values[place, at]:
            return False
    else:
        lists.count[place] += 1
    while at > 0 and values[place, at - 1] < value:
        values[place, at] = values[place, at - 1]
        items[place, at, 0] = items[place, at - 1, 0]
        items[place, at, 1] = items[place, at - 1, 1]
        at -= 1
    values[place, at] = value
    items[place, at, 0] = first
    items[place, at, 1] = second
    return True


@shared
def is_worse(heap: Any, one: int, other: int) -> bool:
    """Whether one item of the heap is to go before another."""
    a, b = heap.value[one], heap.value[other]
    return bool(a < b or (a == b and heap.order[one] > heap.order[other]))


@shared
def swap_items(heap: Any, one: int, other: int) -> None:
    """Exchange two items of the heap."""
    value, order = heap.value[one], heap.order[one]
    heap.value[one], heap.order[one] = heap.value[other], heap.order[other]
    heap.value[other], heap.order[other] = value, order
    for k in range(heap.item.shape[1]):
        item = heap.item[one, k]
        heap.item[one, k] = heap.item[other, k]
        heap.item[other, k] = item


@shared
def sink_item(heap: Any, at: int, size: int) -> None:
    """Let an item of the heap go down to where it belongs."""
    while True:
        least = at
        for below in range(2 * at + 1, min(2 * at + 3, size)):
            if is_worse(heap, below, least):
                least = below
        if least == at:
            return
        swap_items(heap, at, least)
        at = least


@shared
def least_wanted(heap: Any, size: int) -> float:
    """What an item must be larger than to have a place on the heap."""
    least: float = heap.value[0] if size == heap.value.size else 0.0
    return least


@shared
def push_item(
    heap: Any, size: int, order: int, value: float, a: int, b: int, c: int, d: int, e: int, f: int
) -> int:
    """Put an item on the heap, in the place of the least one if it is full; returns the size."""
    full = size == heap.value.size
    at = 0 if full else size
    heap.value[at], heap.order[at] = value, order
    heap.item[at, 0], heap.item[at, 1], heap.item[at, 2] = a, b, c
    heap.item[at, 3], heap.item[at, 4], heap.item[at, 5] = d, e, f
    if full:
        sink_item(heap, 0, size)
        return size
    while at > 0 and is_worse(heap, at, (at - 1) // 2):
        swap_items(heap, at, (at - 1) // 2)
        at = (at - 1) // 2
    return size + 1


@shared
def weigh_stretches(weights: Any, queries: Any, row: int, direction: int, inserted: Any) -> None:
    """Weights of all stretches as insertions, read to the right (direction 1) or to the left (-1)."""
    start, length, codes = queries.start[row], queries.length[row], queries.codes
    for begin in range(length + 1):
        value = 1.0
        inserted[begin, begin] = weights.length[0]
        room = length - begin if direction > 0 else begin
        for n in range(1, min(room, weights.length.size - 1) + 1):
            low = begin if direction > 0 else begin - n
            at = start + (low + n - 1 if direction > 0 else low)
            if n == 1:
                value = weights.base[codes[at]]
            else:
                value *= weights.step[codes[at - direction], codes[at]]
            inserted[low, low + n] = value * weights.length[n]


@shared
def matching(segment: Any, first: int, size: int, queries: Any, at: int, direction: int) -> int:
    """How many bases of a gene, of `size` from `first` on, are those of a junction from `at` on."""
    n = 0
    while n < size and segment.bases[first + n] == queries.codes[at + direction * n]:
        n += 1
    return n


@shared
def list_v(tables: Any, queries: Any, row: int, scratch: Any) -> None:
    """Lists of the V that end at each place."""
    start, length = queries.start[row], queries.length[row]
    for place in range(length + 1):
        scratch.v_ends.count[place] = 0
    for k in range(queries.v_first[row], queries.v_first[row + 1]):
        v = queries.v[k]
        first = tables.v.first[v]
        size = tables.v.first[v + 1] - first
        for kept in range(1, matching(tables.v, first, min(size, length), queries, start, 1) + 1):
            if size - kept < tables.v.weight.shape[1]:
                value = tables.v.weight[v, size - kept]
                if value > 0:
                    list_item(scratch.v_ends, kept, value, v, size - kept)


@shared
def list_j(tables: Any, queries: Any, row: int, scratch: Any) -> None:
    """Lists of the J that begin at each place, for every D."""
    start, length = queries.start[row], queries.length[row]
    genes = tables.joint.shape[1]
    for place in range(genes * (length + 1)):
        scratch.j_begins.count[place] = 0
    last = start + length - 1
    for k in range(queries.j_first[row], queries.j_first[row + 1]):
        j = queries.j[k]
        first = tables.j.first[j]
        size = tables.j.first[j + 1] - first
        for kept in range(1, matching(tables.j, first, min(size, length), queries, last, -1) + 1):
            if size - kept < tables.j.weight.shape[1]:
                for d in range(genes):
                    value = tables.j.weight[j, size - kept] * tables.joint[0, d, j]
                    if value > 0:
                        place = d * (length + 1) + length - kept
                        list_item(scratch.j_begins, place, value, j, size - kept)


@shared
def list_inserted(lists: Any, place: int, ends: Any, end: int, inserted: float, first: int) -> None:
    """Put all that a list of ends has, with the same insertions, into the list of a place."""
    for rank in range(ends.count[end] if inserted > 0 else 0):
        if not list_item(lists, place, ends.value[end, rank] * inserted, first, rank):
            break


@shared
def list_insertions(tables: Any, length: int, scratch: Any) -> None:
    """Lists of what is before and behind D that begins or ends at each place."""
    for place in range(length + 1):
        scratch.left.count[place] = 0
        for end in range(max(0, place - tables.left.length.size + 1), place + 1):
            inserted = scratch.left_inserted[end, place]
            list_inserted(scratch.left, place, scratch.v_ends, end, inserted, end)
    for d in range(tables.joint.shape[1]):
        row = d * (length + 1)
        for place in range(length + 1):
            scratch.right.count[row + place] = 0
            for begin in range(place, min(length, place + tables.right.length.size - 1) + 1):
                inserted = scratch.right_inserted[place, begin]
                list_inserted(scratch.right, row + place, scratch.j_begins, row + begin, inserted, begin)


@shared
def push_pairs(
    scratch: Any, size: int, order: int, weight: float, left: int, right: int, d: int, first: int, kept: int
) -> Any:
    """Put on the heap what a D at its place makes; returns size and order."""
    heap = scratch.heap
    for x in range(scratch.left.count[left]):
        before = weight * scratch.left.value[left, x]
        for y in range(scratch.right.count[right]):
            value = before * scratch.right.value[right, y]
            if value <= least_wanted(heap, size):
                if y == 0:
                    return size, order
                break
            size = push_item(heap, size, order, value, d, first, kept, left, x, y)
            order += 1
    return size, order


@shared
def search_d(tables: Any, queries: Any, row: int, scratch: Any) -> int:
    """Go through all D at all places; returns the size of the heap."""
    start, length = queries.start[row], queries.length[row]
    weights = tables.d.weight
    size, order = 0, 0
    for d in range(tables.joint.shape[1]):
        begin = tables.d.first[d]
        whole = tables.d.first[d + 1] - begin
        for first in range(min(whole + 1, weights.shape[1])):
            for place in range(length + 1):
                if scratch.left.count[place] == 0:
                    continue
                most = min(whole - first, length - place)
                for kept in range(matching(tables.d, begin + first, most, queries, start + place, 1) + 1):
                    cut = whole - first - kept
                    if cut < weights.shape[2] and weights[d, first, cut] > 0:
                        right = d * (length + 1) + place + kept
                        weight = weights[d, first, cut]
                        size, order = push_pairs(scratch, size, order, weight, place, right, d, first, kept)
    return size


@shared
def search_vj(tables: Any, queries: Any, row: int, scratch: Any) -> int:
    """Go through all V and J without D between; returns the size of the heap."""
    start, length = queries.start[row], queries.length[row]
    weights = tables.v.weight
    size, order = 0, 0
    for a in range(queries.v_first[row], queries.v_first[row + 1]):
        v = queries.v[a]
        first = tables.v.first[v]
        whole = tables.v.first[v + 1] - first
        most = matching(tables.v, first, min(whole, length), queries, start, 1)
        for b in range(queries.j_first[row], queries.j_first[row + 1]):
            j = queries.j[b]
            joint = tables.joint[v if tables.joint.shape[0] > 1 else 0, 0, j]
            for end in range(1, most + 1 if joint > 0 else 1):
                if whole - end < weights.shape[1]:
                    before = weights[v, whole - end] * joint
                    size, order = push_j(tables, queries, row, scratch, size, order, before, v, end, j)
    return size


@shared
def push_j(
    tables: Any, queries: Any, row: int, scratch: Any,
    size: int, order: int, before: float, v: int, end: int, j: int,
) -> Any:  # fmt: skip
    """Put on the heap what a V makes with every deletion of a J; returns size and order."""
    start, length = queries.start[row], queries.length[row]
    first = tables.j.first[j]
    whole = tables.j.first[j + 1] - first
    most = min(whole, length - end) if before > 0 else 0
    for kept in range(1, matching(tables.j, first, most, queries, start + length - 1, -1) + 1):
        begin = length - kept
        if whole - kept >= tables.j.weight.shape[1] or begin - end >= tables.left.length.size:
            continue
        value = before * tables.j.weight[j, whole - kept] * scratch.left_inserted[end, begin]
        if value > least_wanted(scratch.heap, size):
            size = push_item(scratch.heap, size, order, value, v, end, j, begin, 0, 0)
            order += 1
    return size, order


@shared
def write_scenario(tables: Any, length: int, scratch: Any, row: int, rank: int, out: Any) -> None:
    """Write the least item of the heap as a scenario."""
    found, fields = scratch.heap.item, out.fields
    if tables.d.first.size > 1:
        d, first, kept, left = found[0, 0], found[0, 1], found[0, 2], found[0, 3]
        x, y = found[0, 4], found[0, 5]
        right = d * (length + 1) + left + kept
        end, begin = scratch.left.item[left, x, 0], scratch.right.item[right, y, 0]
        v = scratch.v_ends.item[end, scratch.left.item[left, x, 1], 0]
        j = scratch.j_begins.item[d * (length + 1) + begin, scratch.right.item[right, y, 1], 0]
        whole = tables.d.first[d + 1] - tables.d.first[d]
        fields[row, rank, 1] = d
        fields[row, rank, 4], fields[row, rank, 5] = first, whole - first - kept
        fields[row, rank, 8], fields[row, rank, 9] = left, left + kept
    else:
        v, end, j, begin = found[0, 0], found[0, 1], found[0, 2], found[0, 3]
        fields[row, rank, 1] = -1
        fields[row, rank, 4], fields[row, rank, 5] = 0, 0
        fields[row, rank, 8], fields[row, rank, 9] = begin, begin
    fields[row, rank, 0], fields[row, rank, 2] = v, j
    fields[row, rank, 3] = tables.v.first[v + 1] - tables.v.first[v] - end
    fields[row, rank, 6] = tables.j.first[j + 1] - tables.j.first[j] - (length - begin)
    fields[row, rank, 7], fields[row, rank, 10] = end, begin


@kernel
def scenario_kernel(tables: Any, queries: Any, first: int, last: int, scratch: Any, out: Any) -> None:
    """Find the best scenarios of junctions `first` to `last`, into the same rows of the output."""
    for row in range(first, last):
        length = queries.length[row]
        weigh_stretches(tables.left, queries, row, 1, scratch.left_inserted)
        weigh_stretches(tables.right, queries, row, -1, scratch.right_inserted)
        if tables.d.first.size > 1:
            list_v(tables, queries, row, scratch)
            list_j(tables, queries, row, scratch)
            list_insertions(tables, length, scratch)
            size = search_d(tables, queries, row, scratch)
        else:
            size = search_vj(tables, queries, row, scratch)
        out.count[row] = size
        # The least one of those that are left goes last.
        while size > 0:
            size -= 1
            out.value[row, size] = scratch.heap.value[0]
            write_scenario(tables, length, scratch, row, size, out)
            swap_items(scratch.heap, 0, size)
            sink_item(scratch.heap, 0, size)
