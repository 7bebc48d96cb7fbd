"""Which instruction serves which operation: the choice between one lane and a group, made by type.

Importing this module teaches compiled code the operations of `plait.lanes.groups`. Numba compares the
signatures of definition and implementation, so the implementations carry no annotations.
"""

from __future__ import annotations

import operator
from typing import Any

from plait._jit import specialise
from plait.lanes import bits, groups
from plait.lanes.bit_instructions import count_ones, count_trailing_zeros, last_one
from plait.lanes.instructions import (
    element_load,
    element_store,
    number_widen,
    vector_add,
    vector_add_saturating,
    vector_and,
    vector_any_bits,
    vector_equal,
    vector_greater,
    vector_largest_lane,
    vector_last_lane,
    vector_load,
    vector_lower_half,
    vector_mask_bits,
    vector_maximum,
    vector_minimum,
    vector_multiply,
    vector_or,
    vector_select,
    vector_shift_in,
    vector_shift_left,
    vector_shift_right,
    vector_splat,
    vector_store,
    vector_subtract,
    vector_subtract_saturating,
    vector_upper_half,
    vector_widen,
)
from plait.lanes.registers import LaneGroup, LaneMask
from plait.lanes.shuffles import vector_lookup

__all__: list[str] = []


def _is_one(lanes: Any) -> bool:
    return int(lanes.instance_class().width) == 1


def _is_group(a: Any) -> bool:
    return isinstance(a, LaneGroup)


def _load_group(lanes, rows, row, lane):  # type: ignore[no-untyped-def]
    return vector_load(lanes, rows, row, lane)


def _load_one(lanes, rows, row, lane):  # type: ignore[no-untyped-def]
    return element_load(rows, row, lane)


def _store_group(lanes, rows, row, lane, value):  # type: ignore[no-untyped-def]
    vector_store(lanes, rows, row, lane, value)


def _store_one(lanes, rows, row, lane, value):  # type: ignore[no-untyped-def]
    element_store(rows, row, lane, value)


def _splat_group(lanes, value):  # type: ignore[no-untyped-def]
    return vector_splat(lanes, value)


def _splat_one(lanes, value):  # type: ignore[no-untyped-def]
    return value


def _lookup_group(lanes, table, row, index):  # type: ignore[no-untyped-def]
    return vector_lookup(lanes, table, row, index)


def _lookup_one(lanes, table, row, index):  # type: ignore[no-untyped-def]
    return table[row, index]


def _add_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_add(a, b)


def _subtract_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_subtract(a, b)


def _multiply_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_multiply(a, b)


def _and_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_and(a, b)


def _or_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_or(a, b)


def _shift_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_shift_right(a, b)


def _shift_groups_left(a, b):  # type: ignore[no-untyped-def]
    return vector_shift_left(a, b)


def _add_saturating(a, b):  # type: ignore[no-untyped-def]
    return vector_add_saturating(a, b)


def _subtract_saturating(a, b):  # type: ignore[no-untyped-def]
    return vector_subtract_saturating(a, b)


def _maximum_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_maximum(a, b)


def _maximum_numbers(a, b):  # type: ignore[no-untyped-def]
    return a if a > b else b


def _minimum_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_minimum(a, b)


def _minimum_numbers(a, b):  # type: ignore[no-untyped-def]
    return a if a < b else b


def _equal_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_equal(a, b)


def _equal_numbers(a, b):  # type: ignore[no-untyped-def]
    return a == b


def _greater_groups(a, b):  # type: ignore[no-untyped-def]
    return vector_greater(a, b)


def _greater_numbers(a, b):  # type: ignore[no-untyped-def]
    return a > b


def _select_groups(mask, a, b):  # type: ignore[no-untyped-def]
    return vector_select(mask, a, b)


def _select_numbers(mask, a, b):  # type: ignore[no-untyped-def]
    return a if mask else b


def _mask_bits_group(mask):  # type: ignore[no-untyped-def]
    return vector_mask_bits(mask)


def _mask_bits_number(mask):  # type: ignore[no-untyped-def]
    return 1 if mask else 0


def _any_bits_group(a):  # type: ignore[no-untyped-def]
    return vector_any_bits(a)


def _largest_lane_group(a):  # type: ignore[no-untyped-def]
    return vector_largest_lane(a)


def _same_number(a):  # type: ignore[no-untyped-def]
    return a


def _last_lane_group(a):  # type: ignore[no-untyped-def]
    return vector_last_lane(a)


def _lower_half_group(a):  # type: ignore[no-untyped-def]
    return vector_lower_half(a)


def _upper_half_group(a):  # type: ignore[no-untyped-def]
    return vector_upper_half(a)


def _shift_in_group(a, first):  # type: ignore[no-untyped-def]
    return vector_shift_in(a, first)


def _shift_in_number(a, first):  # type: ignore[no-untyped-def]
    return first


def _widen_group(like, value):  # type: ignore[no-untyped-def]
    return vector_widen(like, value)


def _widen_number(like, value):  # type: ignore[no-untyped-def]
    return number_widen(like, value)


def _highest_bit(word):  # type: ignore[no-untyped-def]
    return last_one(word)


def _lowest_bit(word):  # type: ignore[no-untyped-def]
    return count_trailing_zeros(word)


def _population(word):  # type: ignore[no-untyped-def]
    return count_ones(word)


def _by_width(one: Any, group: Any) -> Any:
    return lambda lanes, *rest: one if _is_one(lanes) else group


def _by_operand(number: Any, group: Any) -> Any:
    return lambda a, *rest: group if _is_group(a) else number


def _by_mask(number: Any, group: Any) -> Any:
    return lambda mask, *rest: group if isinstance(mask, LaneMask) else number


specialise(bits.highest_bit, lambda word: _highest_bit)
specialise(bits.lowest_bit, lambda word: _lowest_bit)
specialise(bits.population, lambda word: _population)
specialise(groups.load, _by_width(_load_one, _load_group))
specialise(groups.store, _by_width(_store_one, _store_group))
specialise(groups.splat, _by_width(_splat_one, _splat_group))
specialise(groups.lookup, _by_width(_lookup_one, _lookup_group))
specialise(groups.maximum, _by_operand(_maximum_numbers, _maximum_groups))
specialise(groups.minimum, _by_operand(_minimum_numbers, _minimum_groups))
specialise(groups.add_saturating, lambda a, b: _add_saturating)
specialise(groups.subtract_saturating, lambda a, b: _subtract_saturating)
specialise(groups.equal, _by_operand(_equal_numbers, _equal_groups))
specialise(groups.greater, _by_operand(_greater_numbers, _greater_groups))
specialise(groups.select, _by_mask(_select_numbers, _select_groups))
specialise(groups.mask_bits, _by_mask(_mask_bits_number, _mask_bits_group))
specialise(groups.any_bits, _by_operand(_same_number, _any_bits_group))
specialise(groups.largest_lane, _by_operand(_same_number, _largest_lane_group))
specialise(groups.last_lane, _by_operand(_same_number, _last_lane_group))
specialise(groups.lower_half, lambda a: _lower_half_group)
specialise(groups.upper_half, lambda a: _upper_half_group)
specialise(groups.shift_in, _by_operand(_shift_in_number, _shift_in_group))
specialise(groups.widen, _by_operand(_widen_number, _widen_group))
specialise(operator.add, _by_operand(None, _add_groups))
specialise(operator.sub, _by_operand(None, _subtract_groups))
specialise(operator.mul, _by_operand(None, _multiply_groups))
specialise(operator.and_, _by_operand(None, _and_groups))
specialise(operator.or_, _by_operand(None, _or_groups))
specialise(operator.lshift, _by_operand(None, _shift_groups_left))
specialise(operator.rshift, _by_operand(None, _shift_groups))
