"""Junctions drawn from the weighted chain, by alias tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.dp.chain.tables import CHOICE_FIELDS
from plait.lang.compile import kernel, shared

#: Columns of `DrawOutput.fields`.
FIELDS = (*CHOICE_FIELDS, "left_length", "right_length")
#: Numbers of the sequence that belong to one draw.
_STRETCH = np.uint64(1024)
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_HALF = 2.0**-53


class AliasTables(NamedTuple):
    """Discrete distributions, for draws by Walker's alias method in Vose's form.

    `first`, int64 (tables + 1,), are offsets into `keep`, float64 (total,), the probability of keeping a
    place, and `other`, int64 (total,), what is drawn otherwise.
    """

    first: Any
    keep: Any
    other: Any


class ChainDraws(NamedTuple):
    """What is drawn from.

    `tables` holds, in this order: V; D and J, once for all V or for each; deletions of each V, D and J; both
    insertion lengths; bases after each of four, and the first one, left and right. `joint`, `v_deletion`,
    `d_deletion`, `j_deletion`, `length`, `left_step` and `right_step` are the first table of each kind.
    `joints` is 1 or the number of V genes. A joint draw is ``d * j_genes + j``, a deletion of D
    ``left * d3_deletions + right``. `symbols`, uint8, are the bases of all ends and D genes; `v_first`,
    `d_first` and `j_first`, int64 (n + 1,), are offsets.
    """

    tables: Any
    joint: Any
    v_deletion: Any
    d_deletion: Any
    j_deletion: Any
    length: Any
    left_step: Any
    right_step: Any
    joints: Any
    j_genes: Any
    d3_deletions: Any
    symbols: Any
    v_first: Any
    d_first: Any
    j_first: Any


class DrawOutput(NamedTuple):
    """What was drawn: `symbols` uint8 (n, most) and `fields` int32 (n, len(FIELDS)).

    `length`, int64 (n,), is -1 where an end was cut to nothing.
    """

    symbols: Any
    length: Any
    fields: Any


@shared
def next_number(state: Any) -> Any:
    """The state after a step, and its number in [0, 1)."""
    state = state + _GAMMA
    z = state
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    z = z ^ (z >> np.uint64(31))
    return state, np.float64(z >> np.uint64(11)) * _HALF


@shared
def draw(tables: Any, table: int, state: Any) -> Any:
    """The state after a draw, and what was drawn."""
    first = tables.first[table]
    size = tables.first[table + 1] - first
    state, number = next_number(state)
    scaled = number * size
    place = np.int64(scaled)
    if scaled - place < tables.keep[first + place]:
        return state, place
    return state, tables.other[first + place]


@shared
def draw_text(draws: Any, seed: Any, item: int, row: int, out: Any) -> None:
    """Draw text number `item`, into row `row`."""
    tables = draws.tables
    state = np.uint64(seed) + np.uint64(item) * _STRETCH * _GAMMA
    state, v = draw(tables, 0, state)
    state, joint = draw(tables, draws.joint + (v if draws.joints > 1 else 0), state)
    d = joint // draws.j_genes
    j = joint % draws.j_genes
    state, v_deletion = draw(tables, draws.v_deletion + v, state)
    state, j_deletion = draw(tables, draws.j_deletion + j, state)
    fields = out.fields
    fields[row, 0], fields[row, 1], fields[row, 2] = v, d, j
    fields[row, 3], fields[row, 6] = v_deletion, j_deletion
    kept = draws.v_first[v + 1] - draws.v_first[v] - v_deletion
    rest = draws.j_first[j + 1] - draws.j_first[j] - j_deletion
    if kept < 1 or rest < 1:
        out.length[row] = -1
        return
    at = 0
    for k in range(kept):
        out.symbols[row, at] = draws.symbols[draws.v_first[v] + k]
        at += 1
    state, left = draw(tables, draws.length, state)
    state = insert_bases(tables, draws.left_step, state, out.symbols, row, at, left, 1)
    at += left
    fields[row, 7], fields[row, 8] = left, 0
    if draws.d_first.size > 1:
        state, cut = draw(tables, draws.d_deletion + d, state)
        low, high = cut // draws.d3_deletions, cut % draws.d3_deletions
        fields[row, 4], fields[row, 5] = low, high
        first = draws.d_first[d] + low
        last = draws.d_first[d + 1] - high
        if last < first:
            out.length[row] = -1
            return
        for k in range(first, last):
            out.symbols[row, at] = draws.symbols[k]
            at += 1
        state, right = draw(tables, draws.length + 1, state)
        state = insert_bases(tables, draws.right_step, state, out.symbols, row, at + right - 1, right, -1)
        at += right
        fields[row, 8] = right
    for k in range(draws.j_first[j + 1] - rest, draws.j_first[j + 1]):
        out.symbols[row, at] = draws.symbols[k]
        at += 1
    out.length[row] = at


@shared
def insert_bases(
    tables: Any, table: int, state: Any, symbols: Any, row: int, at: int, count: int, direction: int
) -> Any:
    """Draw inserted symbols one after the other; returns the state."""
    before = 4
    for k in range(count):
        state, before = draw(tables, table + before, state)
        symbols[row, at + direction * k] = before
    return state


@kernel
def draw_kernel(draws: Any, seed: Any, first: int, count: int, out: Any) -> None:
    """Draws `first` and on, see `plait.dp.chain.sample.draw_text`."""
    for row in range(count):
        draw_text(draws, seed, first + row, row, out)
