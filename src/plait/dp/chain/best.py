"""The k most probable scenarios of a junction.

Best lists of what ends or begins at each place are joined through a bounded heap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.compile import kernel, shared

#: Columns of `ScenarioOutput.fields`.
SCENARIO_FIELDS = (
    "prefix",
    "fragment",
    "suffix",
    "prefix_cut",
    "fragment_cut_left",
    "fragment_cut_right",
    "suffix_cut",
    "prefix_end",
    "fragment_start",
    "fragment_end",
    "suffix_start",
)


class ScenarioTables(NamedTuple):
    """What texts are made of: symbols (uint8), deletion, insertion and joint weights (float64).

    `prefix`, `suffix` and `fragment` are the symbols of all of each kind, suffixes from their end, with
    offsets `prefix_first`, `suffix_first` and `fragment_first`, int64 (n + 1,). `prefix_weight` and
    `suffix_weight` are (n, cuts), `fragment_weight` (n, left cuts, right cuts); a cut is a number of deleted
    symbols. `joint`, (1 or prefixes, fragments, suffixes), without fragments one of them. `left_length` and
    `right_length`, (n,): by number of insertions; `left_first` and `right_first`, (4,): of the first inserted
    symbol; `left_step` and `right_step`, (4, 4): of one after the one before, away from the prefix or suffix.
    """

    prefix: Any
    prefix_first: Any
    prefix_weight: Any
    suffix: Any
    suffix_first: Any
    suffix_weight: Any
    fragment: Any
    fragment_first: Any
    fragment_weight: Any
    joint: Any
    left_length: Any
    left_step: Any
    left_first: Any
    right_length: Any
    right_step: Any
    right_first: Any


class ScenarioQueries(NamedTuple):
    """Texts, and the prefixes and suffixes that each may have.

    `codes` are uint8, symbols 0 to 3; `start` and `length` int64 (n,). `prefix_first` and `suffix_first`,
    int64 (n + 1,), are offsets into the lists `prefixes` and `suffixes`, int32.
    """

    codes: Any
    start: Any
    length: Any
    prefix_first: Any
    prefixes: Any
    suffix_first: Any
    suffixes: Any


class ScenarioScratch(NamedTuple):
    """Memory for texts of up to L symbols.

    `left_inserted` and `right_inserted`, float64 (L + 1, L + 1): weight of inserting what is between two
    places. `ends` are lists of prefixes that end at each place, `rights` of suffixes, for every fragment;
    `lists` and `right_lists` are the same with the insertions. Of each list: ``_count`` int64, ``_value``
    float64 (lists, most), ``_item`` int32 (lists, most, 2). `heap_value` float64 (most,), `heap_order` int64
    (most,) and `heap_item` int32 (most, 6): the best so far, the least of them first.
    """

    left_inserted: Any
    right_inserted: Any
    ends_count: Any
    ends_value: Any
    ends_item: Any
    rights_count: Any
    rights_value: Any
    rights_item: Any
    lists_count: Any
    lists_value: Any
    lists_item: Any
    right_lists_count: Any
    right_lists_value: Any
    right_lists_item: Any
    heap_value: Any
    heap_order: Any
    heap_item: Any


class ScenarioOutput(NamedTuple):
    """What was found: `count` int64 (n,), `value` float64 (n, most), the largest first, and `fields`.

    `fields` is int32 (n, most, len(SCENARIO_FIELDS)); the fragment is -1 where there are none.
    """

    count: Any
    value: Any
    fields: Any


#: Numbers that an item of the heap holds.
_NUMBERS = 6


@shared
def list_item(count: Any, values: Any, items: Any, place: int, value: float, first: int, second: int) -> None:
    """Put an item into a list of the largest ones."""
    at = count[place]
    if at == values.shape[1]:
        at -= 1
        if value <= values[place, at]:
            return
    else:
        count[place] += 1
    while at > 0 and values[place, at - 1] < value:
        values[place, at] = values[place, at - 1]
        items[place, at, 0] = items[place, at - 1, 0]
        items[place, at, 1] = items[place, at - 1, 1]
        at -= 1
    values[place, at] = value
    items[place, at, 0] = first
    items[place, at, 1] = second


@shared
def is_worse(scratch: Any, one: int, other: int) -> bool:
    """Whether one item of the heap is to go before another."""
    a, b = scratch.heap_value[one], scratch.heap_value[other]
    return bool(a < b or (a == b and scratch.heap_order[one] > scratch.heap_order[other]))


@shared
def swap_items(scratch: Any, one: int, other: int) -> None:
    """Exchange two items of the heap."""
    value, order = scratch.heap_value[one], scratch.heap_order[one]
    scratch.heap_value[one], scratch.heap_order[one] = scratch.heap_value[other], scratch.heap_order[other]
    scratch.heap_value[other], scratch.heap_order[other] = value, order
    for k in range(_NUMBERS):
        item = scratch.heap_item[one, k]
        scratch.heap_item[one, k] = scratch.heap_item[other, k]
        scratch.heap_item[other, k] = item


@shared
def sink_item(scratch: Any, at: int, size: int) -> None:
    """Let an item of the heap go down to where it belongs."""
    while True:
        least = at
        for below in range(2 * at + 1, min(2 * at + 3, size)):
            if is_worse(scratch, below, least):
                least = below
        if least == at:
            return
        swap_items(scratch, at, least)
        at = least


@shared
def push_item(
    scratch: Any, size: int, order: int, value: float, a: int, b: int, c: int, d: int, e: int, f: int
) -> int:
    """Put an item on the heap, in the place of the least one if it is full; returns the size."""
    full = size == scratch.heap_value.size
    at = 0 if full else size
    scratch.heap_value[at], scratch.heap_order[at] = value, order
    scratch.heap_item[at, 0], scratch.heap_item[at, 1], scratch.heap_item[at, 2] = a, b, c
    scratch.heap_item[at, 3], scratch.heap_item[at, 4], scratch.heap_item[at, 5] = d, e, f
    if full:
        sink_item(scratch, 0, size)
        return size
    while at > 0 and is_worse(scratch, at, (at - 1) // 2):
        swap_items(scratch, at, (at - 1) // 2)
        at = (at - 1) // 2
    return size + 1


@shared
def weigh_insertions(tables: Any, queries: Any, row: int, scratch: Any) -> None:
    """Weights of all stretches as insertions."""
    start, length = queries.start[row], queries.length[row]
    codes = queries.codes
    for low in range(length + 1):
        value = 1.0
        scratch.left_inserted[low, low] = tables.left_length[0]
        for high in range(low + 1, min(length, low + tables.left_length.size - 1) + 1):
            code = codes[start + high - 1]
            if high == low + 1:
                value = tables.left_first[code]
            else:
                value *= tables.left_step[codes[start + high - 2], code]
            scratch.left_inserted[low, high] = value * tables.left_length[high - low]
    for high in range(length + 1):
        value = 1.0
        scratch.right_inserted[high, high] = tables.right_length[0]
        for low in range(high - 1, max(0, high - tables.right_length.size + 1) - 1, -1):
            code = codes[start + low]
            if low == high - 1:
                value = tables.right_first[code]
            else:
                value *= tables.right_step[codes[start + low + 1], code]
            scratch.right_inserted[low, high] = value * tables.right_length[high - low]


@shared
def list_prefixes(tables: Any, queries: Any, row: int, scratch: Any) -> None:
    """Lists of the prefixes that end at each place."""
    start, length = queries.start[row], queries.length[row]
    for place in range(length + 1):
        scratch.ends_count[place] = 0
    for k in range(queries.prefix_first[row], queries.prefix_first[row + 1]):
        gene = queries.prefixes[k]
        first = tables.prefix_first[gene]
        size = tables.prefix_first[gene + 1] - first
        for at in range(min(size, length)):
            if tables.prefix[first + at] != queries.codes[start + at]:
                break
            cut = size - at - 1
            if cut < tables.prefix_weight.shape[1]:
                value = tables.prefix_weight[gene, cut]
                if value > 0:
                    list_item(
                        scratch.ends_count, scratch.ends_value, scratch.ends_item, at + 1, value, gene, cut
                    )


@shared
def list_suffixes(tables: Any, queries: Any, row: int, scratch: Any) -> None:
    """Lists of the suffixes that begin at each place, for every fragment."""
    start, length = queries.start[row], queries.length[row]
    fragments = tables.joint.shape[1]
    for place in range(fragments * (length + 1)):
        scratch.rights_count[place] = 0
    for k in range(queries.suffix_first[row], queries.suffix_first[row + 1]):
        gene = queries.suffixes[k]
        first = tables.suffix_first[gene]
        size = tables.suffix_first[gene + 1] - first
        for at in range(min(size, length)):
            if tables.suffix[first + at] != queries.codes[start + length - 1 - at]:
                break
            cut = size - at - 1
            if cut < tables.suffix_weight.shape[1]:
                for fragment in range(fragments):
                    value = tables.suffix_weight[gene, cut] * tables.joint[0, fragment, gene]
                    if value > 0:
                        place = fragment * (length + 1) + length - at - 1
                        list_item(
                            scratch.rights_count,
                            scratch.rights_value,
                            scratch.rights_item,
                            place,
                            value,
                            gene,
                            cut,
                        )


@shared
def list_insertions(tables: Any, length: int, scratch: Any) -> None:
    """Lists of what is before and behind fragments that begin or end at each place."""
    count, values, items = scratch.lists_count, scratch.lists_value, scratch.lists_item
    for place in range(length + 1):
        count[place] = 0
        for end in range(max(0, place - tables.left_length.size + 1), place + 1):
            inserted = scratch.left_inserted[end, place]
            for rank in range(scratch.ends_count[end] if inserted > 0 else 0):
                value = scratch.ends_value[end, rank] * inserted
                if count[place] == values.shape[1] and value <= values[place, values.shape[1] - 1]:
                    break
                list_item(count, values, items, place, value, end, rank)
    count, values, items = (
        scratch.right_lists_count,
        scratch.right_lists_value,
        scratch.right_lists_item,
    )
    for fragment in range(tables.joint.shape[1]):
        for place in range(length + 1):
            row = fragment * (length + 1) + place
            count[row] = 0
            for begin in range(place, min(length, place + tables.right_length.size - 1) + 1):
                inserted = scratch.right_inserted[place, begin]
                other = fragment * (length + 1) + begin
                for rank in range(scratch.rights_count[other] if inserted > 0 else 0):
                    value = scratch.rights_value[other, rank] * inserted
                    if count[row] == values.shape[1] and value <= values[row, values.shape[1] - 1]:
                        break
                    list_item(count, values, items, row, value, begin, rank)


@shared
def push_pairs(
    scratch: Any,
    size: int,
    order: int,
    weight: float,
    left: int,
    right: int,
    fragment: int,
    first: int,
    kept: int,
) -> Any:
    """Put on the heap what a fragment at its place makes; returns size and order."""
    for x in range(scratch.lists_count[left]):
        before = weight * scratch.lists_value[left, x]
        for y in range(scratch.right_lists_count[right]):
            value = before * scratch.right_lists_value[right, y]
            if value <= (scratch.heap_value[0] if size == scratch.heap_value.size else 0.0):
                if y == 0:
                    return size, order
                break
            size = push_item(scratch, size, order, value, fragment, first, kept, left, x, y)
            order += 1
    return size, order


@shared
def search_fragments(tables: Any, queries: Any, row: int, scratch: Any) -> int:
    """Go through all fragments at all places; returns the size of the heap."""
    start, length = queries.start[row], queries.length[row]
    size, order = 0, 0
    for fragment in range(tables.joint.shape[1]):
        begin = tables.fragment_first[fragment]
        whole = tables.fragment_first[fragment + 1] - begin
        for first in range(min(whole + 1, tables.fragment_weight.shape[1])):
            for place in range(length + 1):
                if scratch.lists_count[place] == 0:
                    continue
                for kept in range(min(whole - first, length - place) + 1):
                    if kept > 0 and (
                        tables.fragment[begin + first + kept - 1] != queries.codes[start + place + kept - 1]
                    ):
                        break
                    cut = whole - first - kept
                    if cut >= tables.fragment_weight.shape[2]:
                        continue
                    weight = tables.fragment_weight[fragment, first, cut]
                    if weight > 0:
                        right = fragment * (length + 1) + place + kept
                        size, order = push_pairs(
                            scratch, size, order, weight, place, right, fragment, first, kept
                        )
    return size


@shared
def search_pairs(tables: Any, queries: Any, row: int, scratch: Any) -> int:
    """Go through all prefixes and suffixes without a fragment between; returns the size of the heap."""
    start, length = queries.start[row], queries.length[row]
    size, order = 0, 0
    for a in range(queries.prefix_first[row], queries.prefix_first[row + 1]):
        v = queries.prefixes[a]
        v_first = tables.prefix_first[v]
        v_size = tables.prefix_first[v + 1] - v_first
        for b in range(queries.suffix_first[row], queries.suffix_first[row + 1]):
            j = queries.suffixes[b]
            joint = tables.joint[v if tables.joint.shape[0] > 1 else 0, 0, j]
            for at in range(min(v_size, length) if joint > 0 else 0):
                if tables.prefix[v_first + at] != queries.codes[start + at]:
                    break
                cut = v_size - at - 1
                if cut < tables.prefix_weight.shape[1]:
                    before = tables.prefix_weight[v, cut] * joint
                    size, order = push_suffixes(
                        tables, queries, row, scratch, size, order, before, v, at + 1, j
                    )
    return size


@shared
def push_suffixes(
    tables: Any,
    queries: Any,
    row: int,
    scratch: Any,
    size: int,
    order: int,
    before: float,
    v: int,
    end: int,
    j: int,
) -> Any:
    """Put on the heap what a prefix makes with every cut of a suffix; returns size and order."""
    start, length = queries.start[row], queries.length[row]
    first = tables.suffix_first[j]
    whole = tables.suffix_first[j + 1] - first
    for at in range(min(whole, length - end) if before > 0 else 0):
        if tables.suffix[first + at] != queries.codes[start + length - 1 - at]:
            break
        cut, begin = whole - at - 1, length - at - 1
        if cut >= tables.suffix_weight.shape[1] or begin - end >= tables.left_length.size:
            continue
        value = before * tables.suffix_weight[j, cut] * scratch.left_inserted[end, begin]
        if value > (scratch.heap_value[0] if size == scratch.heap_value.size else 0.0):
            size = push_item(scratch, size, order, value, v, end, j, begin, 0, 0)
            order += 1
    return size, order


@shared
def tell_item(tables: Any, length: int, scratch: Any, item: int, row: int, rank: int, out: Any) -> None:
    """Write the item of a heap as a scenario."""
    found, fields = scratch.heap_item, out.fields
    if tables.fragment_first.size > 1:
        fragment, first, kept, left = (
            found[item, 0],
            found[item, 1],
            found[item, 2],
            found[item, 3],
        )
        right = fragment * (length + 1) + left + kept
        x, y = found[item, 4], found[item, 5]
        end, end_rank = scratch.lists_item[left, x, 0], scratch.lists_item[left, x, 1]
        begin = scratch.right_lists_item[right, y, 0]
        begin_rank = scratch.right_lists_item[right, y, 1]
        v, j = (
            scratch.ends_item[end, end_rank, 0],
            scratch.rights_item[fragment * (length + 1) + begin, begin_rank, 0],
        )
        whole = tables.fragment_first[fragment + 1] - tables.fragment_first[fragment]
        fields[row, rank, 1] = fragment
        fields[row, rank, 4], fields[row, rank, 5] = first, whole - first - kept
        fields[row, rank, 8], fields[row, rank, 9] = left, left + kept
    else:
        v, end, j, begin = found[item, 0], found[item, 1], found[item, 2], found[item, 3]
        fields[row, rank, 1] = -1
        fields[row, rank, 4], fields[row, rank, 5] = 0, 0
        fields[row, rank, 8], fields[row, rank, 9] = begin, begin
    fields[row, rank, 0], fields[row, rank, 2] = v, j
    fields[row, rank, 3] = tables.prefix_first[v + 1] - tables.prefix_first[v] - end
    fields[row, rank, 6] = tables.suffix_first[j + 1] - tables.suffix_first[j] - (length - begin)
    fields[row, rank, 7], fields[row, rank, 10] = end, begin


@shared
def find_chains(tables: Any, queries: Any, row: int, scratch: Any, out: Any) -> None:
    """Find the best scenarios of a text, and write them into the same row of the output."""
    length = queries.length[row]
    weigh_insertions(tables, queries, row, scratch)
    if tables.fragment_first.size > 1:
        list_prefixes(tables, queries, row, scratch)
        list_suffixes(tables, queries, row, scratch)
        list_insertions(tables, length, scratch)
        size = search_fragments(tables, queries, row, scratch)
    else:
        size = search_pairs(tables, queries, row, scratch)
    out.count[row] = size
    # The least one of those that are left goes last.
    while size > 0:
        size -= 1
        out.value[row, size] = scratch.heap_value[0]
        tell_item(tables, length, scratch, 0, row, size, out)
        swap_items(scratch, 0, size)
        sink_item(scratch, 0, size)


@kernel
def scenario_kernel(tables: Any, queries: Any, first: int, last: int, scratch: Any, out: Any) -> None:
    """Texts `first` to `last`, see `plait.dp.chain.best.find_chains`."""
    for row in range(first, last):
        find_chains(tables, queries, row, scratch, out)
