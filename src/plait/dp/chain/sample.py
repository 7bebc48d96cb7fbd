"""Junctions drawn from the weighted chain, by alias tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.lang.compile import kernel, shared

#: Columns of `DrawOutput.fields`.
FIELDS = (
    "prefix",
    "fragment",
    "suffix",
    "prefix_cut",
    "fragment_cut_left",
    "fragment_cut_right",
    "suffix_cut",
    "left_length",
    "right_length",
)
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

    `tables` holds, in this order: prefix; fragment and suffix, once for all prefixes or for each; cuts of
    each prefix, fragment and suffix; both insertion lengths; symbols after each of four, and the first one,
    left and right. `joint`, `prefix_cut`, `fragment_cut`, `suffix_cut`, `length`, `left_step` and
    `right_step` are the first table of each kind. `joints` is 1 or the number of prefixes. A joint draw is
    ``fragment * suffixes + suffix``, a fragment cut ``left * cuts_right + right``. `symbols`, uint8, are
    those of all ends and fragments; `prefix_first`, `fragment_first` and `suffix_first`, int64 (n + 1,), are
    offsets.
    """

    tables: Any
    joint: Any
    prefix_cut: Any
    fragment_cut: Any
    suffix_cut: Any
    length: Any
    left_step: Any
    right_step: Any
    joints: Any
    suffixes: Any
    cuts_right: Any
    symbols: Any
    prefix_first: Any
    fragment_first: Any
    suffix_first: Any


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
    state, prefix = draw(tables, 0, state)
    state, joint = draw(tables, draws.joint + (prefix if draws.joints > 1 else 0), state)
    fragment = joint // draws.suffixes
    suffix = joint % draws.suffixes
    state, prefix_cut = draw(tables, draws.prefix_cut + prefix, state)
    state, suffix_cut = draw(tables, draws.suffix_cut + suffix, state)
    fields = out.fields
    fields[row, 0], fields[row, 1], fields[row, 2] = prefix, fragment, suffix
    fields[row, 3], fields[row, 6] = prefix_cut, suffix_cut
    kept = draws.prefix_first[prefix + 1] - draws.prefix_first[prefix] - prefix_cut
    rest = draws.suffix_first[suffix + 1] - draws.suffix_first[suffix] - suffix_cut
    if kept < 1 or rest < 1:
        out.length[row] = -1
        return
    at = 0
    for k in range(kept):
        out.symbols[row, at] = draws.symbols[draws.prefix_first[prefix] + k]
        at += 1
    state, left = draw(tables, draws.length, state)
    state = insert_symbols(tables, draws.left_step, state, out.symbols, row, at, left, 1)
    at += left
    fields[row, 7], fields[row, 8] = left, 0
    if draws.fragment_first.size > 1:
        state, cut = draw(tables, draws.fragment_cut + fragment, state)
        low, high = cut // draws.cuts_right, cut % draws.cuts_right
        fields[row, 4], fields[row, 5] = low, high
        first = draws.fragment_first[fragment] + low
        last = draws.fragment_first[fragment + 1] - high
        if last < first:
            out.length[row] = -1
            return
        for k in range(first, last):
            out.symbols[row, at] = draws.symbols[k]
            at += 1
        state, right = draw(tables, draws.length + 1, state)
        state = insert_symbols(tables, draws.right_step, state, out.symbols, row, at + right - 1, right, -1)
        at += right
        fields[row, 8] = right
    for k in range(draws.suffix_first[suffix + 1] - rest, draws.suffix_first[suffix + 1]):
        out.symbols[row, at] = draws.symbols[k]
        at += 1
    out.length[row] = at


@shared
def insert_symbols(
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
