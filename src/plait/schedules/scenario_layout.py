"""What a search for scenarios is given, what it needs, and what it makes."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "SCENARIO_FIELDS",
    "ScenarioOutput",
    "ScenarioQueries",
    "ScenarioScratch",
    "ScenarioTables",
]

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
    """What texts are made of.

    Attributes
    ----------
    prefix, suffix, fragment
        uint8: symbols of all of each kind; those of a suffix from its end.
    prefix_first, suffix_first, fragment_first
        int64 (n + 1,): where each begins.
    prefix_weight, suffix_weight
        float64 (n, cuts): of each with a cut.
    fragment_weight
        float64 (n, left cuts, right cuts).
    joint
        float64 (1 or prefixes, fragments, suffixes): of these together; without fragments one of them.
    left_length, right_length
        float64 (n,): of numbers of insertions.
    left_step, right_step
        float64 (4, 4): of an inserted symbol after the one before, away from the prefix or suffix.
    left_first, right_first
        float64 (4,): of the first one.
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

    Attributes
    ----------
    codes
        uint8: symbols 0 to 3.
    start, length
        int64 (n,): where each text lies.
    prefix_first, suffix_first
        int64 (n + 1,): where the list of each text begins.
    prefixes, suffixes
        int32: the lists.
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

    Attributes
    ----------
    left_inserted, right_inserted
        float64 (L + 1, L + 1): of inserting what is between two places.
    ends
        Lists of prefixes that end at each place; ``rights`` of suffixes, for every fragment.
    lists
        The same with the insertions; ``right_lists`` for every fragment.
    ends_count, rights_count, lists_count, right_lists_count
        int64: how many each list has.
    ends_value, rights_value, lists_value, right_lists_value
        float64 (lists, most).
    ends_item, rights_item, lists_item, right_lists_item
        int32 (lists, most, 2).
    heap_value, heap_order, heap_item
        float64 (most,), int64 (most,), int32 (most, 6): the best so far, the least of them first.
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
    """What was found.

    Attributes
    ----------
    count
        int64 (n,): how many of each text.
    value
        float64 (n, most): the largest first.
    fields
        int32 (n, most, len(SCENARIO_FIELDS)); the fragment is -1 where there are none.
    """

    count: Any
    value: Any
    fields: Any
