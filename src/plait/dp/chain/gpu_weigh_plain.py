"""The weighted chain of one plain text, by the lanes of a warp together.

A text of which every symbol is known is a path, so an end of it is a walk down a trie. Insertions that begin
at one place belong to one lane, which follows them symbol by symbol: no two lanes come to one place at once.
D genes that begin at one place belong to one lane again. Lanes are shared out over places and contexts.

Contexts are taken a few at a time; everything before the D gene is the same in all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.dp.chain.insertions import insert
from plait.lang.algebras import choice, extend
from plait.lang.compile import by_type, shared
from plait.lang.lanes import highest_bit, lowest_bit
from plait.lang.warps import WARP, at, ballot, lane_index, shuffle_xor, synchronize_warp, warp_size


class PathMemory(NamedTuple):
    """Memory that the lanes of a warp share; `symbols`, uint8 (symbols,), is the text.

    `entered`, (1 + group, places): what the V end before each place weighs, and in each context the J end
    behind it; `joined` is the same with insertions. `step`, (2, places + 1): weight of each symbol inserted
    after its neighbour, left and right, with one element before them.
    """

    symbols: Any
    entered: Any
    joined: Any
    step: Any

    @staticmethod
    def is_entered(memory: PathMemory, alg: Any, row: Any, u: Any, places: Any, number: Any) -> Any:
        return memory.entered[at(np.int32(row * places + u))] != alg.zero


class Span(NamedTuple):
    """First and last place behind a V end, `low` and `before`, and before a J end, `after` and `high`."""

    low: Any
    before: Any
    after: Any
    high: Any


class Way(NamedTuple):
    """Insertions that begin at one place: at most `most`, 0 for a lane without work.

    `side` is 0 to the right of a V end, 1 to the left of a J end; `row` is that of what is entered and
    joined.
    """

    side: Any
    row: Any
    place: Any
    most: Any


@shared
def weigh_path(alg: Any, chain: Any, texts: Any, item: Any, memory: Any, out: Any) -> None:
    """Weight of a text, whose codes are symbols, into ``out[item]``; `memory` is a `PathMemory`.

    `chain` as in `plait.dp.chain.gpu_tables`, `texts` as in `plait.dp.chain.graphs.CodedJunctions`.
    """
    lane = lane_index()
    places = np.int32(texts.length[at(item)] + 1)
    read_path(alg, chain, texts, item, places, memory)
    total = alg.zero
    context = np.int32(0)
    while context < chain.contexts:
        number = min(chain.group, np.int32(chain.contexts - context))
        enter_path(alg, chain, texts, item, places, context, number, memory)
        span = span_entered(alg, places, number, memory)
        if span.low <= span.high:
            insert_path(alg, chain, places, number, span, memory)
            total = choice(alg, total, join_path(alg, chain, places, context, number, span, memory))
        synchronize_warp()
        context = np.int32(context + chain.group)
    total = over_warp(alg, total)
    if lane == 0:
        out[at(item)] = total


@shared
def over_warp(alg: Any, value: Any) -> Any:
    """The choice between what all lanes have."""
    mask = np.int32(WARP // 2)
    while mask > 0:
        value = choice(alg, value, shuffle_xor(value, mask))
        mask = np.int32(mask // 2)
    return value


@shared
def read_path(alg: Any, chain: Any, texts: Any, item: Any, places: Any, memory: Any) -> None:
    """The text, and what its symbols weigh as insertions."""
    first = texts.start[at(item)]
    i: Any = np.int32(lane_index())
    while i < np.int32(places - 1):
        memory.symbols[at(i)] = texts.codes[at(first + i)]
        i = np.int32(i + warp_size())
    synchronize_warp()
    row = np.int32(places + 1)
    i = np.int32(lane_index())
    while i < places:
        left, right = alg.zero, alg.zero
        if 0 < i < np.int32(places - 1):
            before, after = np.int32(memory.symbols[at(i - 1)]), np.int32(memory.symbols[at(i)])
            left = chain.step[at(4 * before + after)]
            right = chain.step[at(16 + 4 * after + before)]
        # Of symbol i, left; of symbol i - 1, right.
        memory.step[at(i + 1)] = left
        memory.step[at(row + i)] = right
        i = np.int32(i + warp_size())


@shared
def enter_path(
    alg: Any, chain: Any, texts: Any, item: Any, places: Any, context: Any, number: Any, memory: Any
) -> None:
    """What ends weigh: half of the lanes look for V ends, half for J ends."""
    lane = np.int32(lane_index())
    i: Any = lane
    begin = np.int32(0 if context == 0 else places)
    while i < np.int32((number + 1) * places - begin):
        memory.entered[at(begin + i)] = alg.zero
        i = np.int32(i + warp_size())
    synchronize_warp()
    if lane < WARP // 2:
        if context == 0:
            for k in range(texts.v_first[at(item)], texts.v_first[at(item + 1)]):
                enter_v_path(alg, chain.v, texts.v_root[at(k)], places, memory)
    else:
        own = np.int32(lane - WARP // 2)
        for k in range(texts.j_first[at(item)], texts.j_first[at(item + 1)]):
            enter_j_path(alg, chain.j, texts.j_root[at(k)], places, context, number, own, memory)
    synchronize_warp()


@shared
def enter_v_path(alg: Any, trees: Any, tree: Any, places: Any, memory: Any) -> None:
    """Add what the V ends of a trie weigh; the first lane adds."""
    lane = lane_index()
    t = trees.level[at(trees.first[at(tree)])]
    u = np.int32(0)
    while t >= 0:
        if lane == 0:
            memory.entered[at(u)] = choice(alg, memory.entered[at(u)], trees.weight[at(t)])
        if u == np.int32(places - 1):
            break
        t = trees.child[at(4 * t + np.int32(memory.symbols[at(u)]))]
        u = np.int32(u + 1)


@shared
def enter_j_path(
    alg: Any, trees: Any, tree: Any, places: Any, context: Any, number: Any, own: Any, memory: Any
) -> None:
    """Add what the J ends of a trie weigh; a lane for each context adds."""
    t = trees.level[at(trees.first[at(tree)])]
    u = np.int32(places - 1)
    while t >= 0:
        if own < number:
            cell = np.int32(np.int32(own + 1) * places + u)
            weight = trees.weight[at(t * trees.contexts + context + own)]
            memory.entered[at(cell)] = choice(alg, memory.entered[at(cell)], weight)
        if u == 0:
            break
        u = np.int32(u - 1)
        t = trees.child[at(4 * t + np.int32(memory.symbols[at(u)]))]


@by_type
def is_entered(memory: Any, alg: Any, row: Any, u: Any, places: Any, number: Any) -> Any:
    """Whether V ends before place or node u (row 0), or J begins behind it in a column (rows from 1)."""


@shared
def span_entered(alg: Any, places: Any, number: Any, memory: Any) -> Any:
    """`Span` of what is entered; the first place is behind the last one where a side has nothing."""
    low, before, after, high = places, np.int32(-1), places, np.int32(-1)
    x = np.int32(0)
    while x < places:
        u = np.int32(x + lane_index())
        v, j = False, False
        if u < places:
            v = is_entered(memory, alg, np.int32(0), u, places, number)
            for c in range(np.int32(1), np.int32(number + 1)):
                j = j or is_entered(memory, alg, c, u, places, number)
        found = ballot(v)
        if found != 0:
            low = min(low, np.int32(x + lowest_bit(found)))
            before = np.int32(x + highest_bit(found))
        found = ballot(j)
        if found != 0:
            after = min(after, np.int32(x + lowest_bit(found)))
            high = np.int32(x + highest_bit(found))
        x = np.int32(x + warp_size())
    return Span(low, before, after, high)


@shared
def insert_path(alg: Any, chain: Any, places: Any, number: Any, span: Any, memory: Any) -> None:
    """Insertions between the first V end and the last J end: what is joined, from what is entered."""
    lane = np.int32(lane_index())
    low, high = span.low, span.high
    width = np.int32(high - low + 1)
    i: Any = lane
    while i < np.int32(np.int32(number + 1) * width):
        row = np.int32(i // width)
        cell = np.int32(row * places + low + i % width)
        none = chain.none[at(min(row, np.int32(1)))]
        memory.joined[at(cell)] = extend(alg, memory.entered[at(cell)], none)
        i = np.int32(i + warp_size())
    synchronize_warp()
    reach = min(chain.most, np.int32(high - low))
    starts = np.int32(min(span.before, high) - low + 1)
    after = max(span.after, low)
    ends = np.int32(high - after + 1)
    x = np.int32(0)
    while x < np.int32(starts + number * ends):
        i = np.int32(x + lane)
        j = np.int32(i - starts)
        if j < 0:
            place = np.int32(low + i)
            way = Way(np.int32(0), np.int32(0), place, min(reach, np.int32(high - place)))
        else:
            row = np.int32(j // ends + 1)
            place = np.int32(after + j % ends)
            way = Way(
                np.int32(1), row, place, min(reach, np.int32(place - low)) if row <= number else np.int32(0)
            )
        follow(alg, chain, places, way, reach, memory)
        x = np.int32(x + warp_size())


@shared
def follow(alg: Any, chain: Any, places: Any, way: Any, reach: Any, memory: Any) -> None:
    """Insertions that begin at one place, of 1 to `reach` symbols; together with the other lanes."""
    forward = way.side == 0
    step = np.int32(1 if forward else -1)
    cell = np.int32(way.row * places + way.place)
    # The next symbol to insert: weights of symbols have one element before them.
    symbol = np.int32(way.place if forward else way.place - 1)
    near = np.int32(way.side * (places + 1) + symbol + 1)
    length = np.int32(way.side * (chain.most + 1) + 1)
    value, weight = alg.zero, alg.zero
    if way.most > 0:
        value = memory.entered[at(cell)]
        weight = chain.first[at(4 * way.side + np.int32(memory.symbols[at(symbol)]))]
    k = np.int32(1)
    while k <= reach:
        if k <= way.most:
            value = insert(chain.insertion, alg, alg.zero, value, weight)
            cell = np.int32(cell + step)
            near = np.int32(near + step)
            weight = memory.step[at(near)]
            found = extend(alg, value, chain.length[at(length)])
            memory.joined[at(cell)] = choice(alg, memory.joined[at(cell)], found)
        length = np.int32(length + 1)
        k = np.int32(k + 1)
        synchronize_warp()


@shared
def join_path(alg: Any, chain: Any, places: Any, context: Any, number: Any, span: Any, memory: Any) -> Any:
    """D genes between both sides: what this lane has of the weight."""
    d = chain.d
    width = np.int32(span.high - span.low + 1)
    total = alg.zero
    i: Any = np.int32(lane_index())
    while i < np.int32(number * width):
        c = np.int32(i // width)
        u = np.int32(span.low + i % width)
        left = memory.joined[at(u)]
        if left != alg.zero:
            row = np.int32(np.int32(c + 1) * places)
            t = d.first[at(context + c)]
            inner = alg.zero
            while True:
                behind = memory.joined[at(row + u)]
                inner = choice(alg, inner, extend(alg, d.weight[at(t)], behind))
                if u == span.high:
                    break
                t = d.child[at(4 * t + np.int32(memory.symbols[at(u)]))]
                if t < 0:
                    break
                u = np.int32(u + 1)
            total = choice(alg, total, extend(alg, left, inner))
        i = np.int32(i + warp_size())
    return total
