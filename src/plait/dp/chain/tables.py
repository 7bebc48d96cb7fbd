"""The arrays that the chain reads and writes, named, and gene ends as trees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.dp.chain.texts import place_of, step_back, step_on
from plait.errors import Unsupported
from plait.lang.algebras import choice
from plait.lang.compile import shared
from plait.lang.lanes import PADDING, padded

__all__ = [
    "ALIVE_ROWS",
    "FRAGMENT_BITS",
    "REGION_FIELDS",
    "ChainOutput",
    "ChainTables",
    "EndTrees",
    "FragmentWords",
    "Texts",
    "enter_ends",
    "make_scratch",
]

#: Columns of `ChainOutput.regions`; -1 in the fragment columns means that no fragment symbol occurs. The last
#: twelve count the symbols that contain each mask bit: before the fragment, after it, and between the ends.
REGION_FIELDS = (
    "prefix_match",
    "suffix_match",
    "fragment_match",
    "fragment_start",
    "fragment_end",
    "fragment_extended_left",
    "fragment_extended_right",
    "fragment_choice",
    *(f"{part}_{bit}" for part in ("before", "after", "between") for bit in range(4)),
)


#: Positions of the longest fragment: they are the bits of one word.
FRAGMENT_BITS = 62
#: Rows of `ChainScratch.alive` per word: one for each number of symbols read.
ALIVE_ROWS = FRAGMENT_BITS + 1


class Texts(NamedTuple):
    """A batch of texts as symbol masks; several may share their symbols.

    Attributes
    ----------
    symbols
        uint8 (total,): masks of all texts.
    start, length
        int64 (n,): text i is ``symbols[start[i]:start[i] + length[i]]``.
    prefix, suffix
        int64 (n,): which prefix and suffix make text i.
    """

    symbols: Any
    start: Any
    length: Any
    prefix: Any
    suffix: Any


class FragmentWords(NamedTuple):
    """Fragments packed into words: one bit per symbol, an empty bit between two fragments.

    Attributes
    ----------
    places
        int64 (words, 16): for each text mask, the bits of the positions that match it.
    word, first, length
        int64 (n,): the word of each fragment, its first bit and its number of symbols.
    every_start
        int64 (words,): the bits of all fragments of a word.
    fragment_of
        int64 (words, FRAGMENT_BITS): which fragment a bit belongs to.
    allowed_starts
        int64 (suffixes, words): the bits of the fragments that may precede a suffix.
    longest
        Symbols in the longest fragment.
    """

    places: Any
    word: Any
    first: Any
    length: Any
    every_start: Any
    fragment_of: Any
    allowed_starts: Any
    longest: Any


class ChainTables(NamedTuple):
    """What the chain is made of. M lanes are the models asked for, K x P the insertion levels.

    Attributes
    ----------
    prefix_symbols, suffix_symbols
        uint8 (n, width): extended ends as masks; suffixes are stored last symbol first.
    prefix_length, suffix_length
        int64 (n,): symbols in each.
    prefix_row, suffix_row
        int32 (n, width + 1): row of the end weights for each kept length; row 0 is all zero.
    words
        The fragments, extended at both ends.
    joined_starts, joined_left, joined_length
        int64 (n,): the part of each fragment that takes part in the chain: its bits, the symbols before it,
        and its length.
    fragment_row
        int32 (n, width + 1, width + 1): row of the fragment weights for fragment[s:t).
    hidden_row
        int32 (n, hidden + 1, width + 1): row for a mirrored end of p symbols before fragment[0:t).
    empty_row
        int32 (n,): row for a fragment of which nothing is left.
    region_left, region_right
        int64 (n,): where the unextended part of a fragment starts and ends.
    allowed
        uint8 (suffixes, fragments): which fragments may precede a suffix.
    pair_allowed
        uint8 (fragments, fragments): which fragment may precede which; all 0 where pairs are not asked for.
    end_weights, fragment_weights
        (rows, M padded): weights per model; rows of lanes are padded to `plait.lang.lanes.PADDING`.
    level_weights
        (rows, K * P padded): end weights per insertion level; lane ``k * P + p``.
    symbol_weight
        (16,): weight of inserting a symbol opposite each text mask.
    mirror
        uint8 (16,): the mask that stands opposite each text mask in a mirrored end.
    level_step
        P, the distance between two levels of a lane.
    plain_starts
        int64 (n, width + 1): for each length, the bits of the starts whose row is that of the first one:
        they are counted, not visited.
    out_lane
        int64 (M,): where lane x stands in the output.
    left_lane, right_lane, single_lane
        int32 (M,): insertion level read by each model left and right of the fragment, and where there is
        no fragment; all three empty where M = K * P and every model reads its own lane.
    middle_limit
        int64 (M,): longest insertion between two fragments, model by model.
    bound_ends, bound_fragment, bound_symbol
        float and float64 (16,): factors of an upper bound of every count.
    """

    prefix_symbols: Any
    suffix_symbols: Any
    prefix_length: Any
    suffix_length: Any
    prefix_row: Any
    suffix_row: Any
    words: Any
    joined_starts: Any
    joined_left: Any
    joined_length: Any
    fragment_row: Any
    hidden_row: Any
    empty_row: Any
    region_left: Any
    region_right: Any
    allowed: Any
    pair_allowed: Any
    end_weights: Any
    fragment_weights: Any
    level_weights: Any
    symbol_weight: Any
    mirror: Any
    level_step: Any
    plain_starts: Any
    out_lane: Any
    left_lane: Any
    right_lane: Any
    single_lane: Any
    middle_limit: Any
    bound_ends: Any
    bound_fragment: Any
    bound_symbol: Any


class ChainScratch(NamedTuple):
    """Working memory of one worker.

    Rows f of `total` and `carry` belong to fragment f, the last two rows to a fragment of which nothing is
    left, and to no fragment.
    """

    masks: Any
    places: Any
    alive: Any
    depth: Any
    weight: Any
    arms: Any
    left_levels: Any
    right_levels: Any
    left: Any
    right: Any
    single: Any
    entering: Any
    inner: Any
    total: Any
    carry: Any
    middle: Any
    behind: Any
    lead: Any


class ChainOutput(NamedTuple):
    """Results of a batch of n texts.

    What is not wanted has no columns, which spares the time to write it, and to copy it from a device.

    Attributes
    ----------
    full, empty
        (n, fragments, M): all paths, and those with nothing left of the fragment; or `full` is (n, 1, M): the
        sum over the fragments, and `empty` (n, 0, M).
    none
        (n, M): paths without a fragment; or (n, 0).
    pair
        (n, pairs, M): paths with two fragments, pair ``first * fragments + second``.
    regions
        int64 (n, len(REGION_FIELDS)), or (n, 0).
    bound
        float64 (n,): no exact count of the text, final or intermediate, exceeds this.
    """

    full: Any
    empty: Any
    none: Any
    pair: Any
    regions: Any
    bound: Any


def make_scratch(alg: Any, tables: ChainTables, longest: int) -> ChainScratch:
    """Working memory for texts of up to `longest` symbols.

    Parameters
    ----------
    alg
        The algebra; its neutral elements are the numbers 0 and 1.
    tables
        The chain.
    longest
        Length of the longest text.

    Raises
    ------
    Unsupported
        If the algebra is another, of which numbers of ways are no values.
    """
    if not (alg.zero == 0 and alg.one == 1):
        why = f"its zero is {alg.zero} and its one {alg.one}; the tables hold numbers of ways, 0 and 1"
        raise Unsupported(f"{type(alg).__name__} for a chain of counted choices", why=why)
    dtype = tables.end_weights.dtype
    rows = longest + 2
    models = tables.end_weights.shape[1]
    levels = tables.level_weights.shape[1]
    # Lanes start at `lead`; the columns before it stay zero: level 0 reads them as the level below.
    lead = padded(int(tables.level_step))
    left_levels = np.zeros((rows, lead + levels), dtype)
    right_levels = np.zeros_like(left_levels)
    same = tables.left_lane.size == 0
    left = left_levels if same else np.zeros((rows, lead + models), dtype)
    words, fragments = tables.words.places.shape[0], tables.words.length.size
    pairs = rows if tables.pair_allowed.any() else 1
    return ChainScratch(
        masks=np.zeros(rows, np.int64),
        places=np.zeros((1, padded(longest) + FRAGMENT_BITS + PADDING), np.int64),
        alive=np.zeros((words * ALIVE_ROWS, padded(longest) + PADDING), np.int64),
        depth=np.zeros(words, np.int64),
        weight=np.zeros(rows, dtype),
        arms=np.zeros(rows, np.int64),
        left_levels=left_levels,
        right_levels=right_levels,
        left=left,
        right=right_levels if same else np.zeros((rows, lead + models), dtype),
        single=left if same else np.zeros((rows, lead + models), dtype),
        entering=np.zeros((1, padded(rows) + models + PADDING), dtype),
        inner=np.zeros((1, models), dtype),
        total=np.zeros((fragments + 2, models), dtype),
        carry=np.zeros((fragments + 2, padded(rows) + models + PADDING), dtype),
        middle=np.zeros((pairs, models), dtype),
        behind=np.zeros((pairs, lead + models), dtype),
        lead=lead,
    )


class EndTrees(NamedTuple):
    """Trees of prefixes, of suffixes read backwards, or of all words of fragments.

    Attributes
    ----------
    child
        int32 (nodes, 4): the node that a symbol leads to, or -1.
    weight
        (nodes, contexts): of all ends that are cut here.
    """

    child: Any
    weight: Any


@shared
def enter_ends(alg: Any, chain: Any, texts: Any, item: int, graph: Any, nodes: int, scratch: Any) -> None:
    """What the prefix before each node weighs, and the suffix behind it: `before` and `after`."""
    for u in range(nodes):
        for c in range(scratch.before.shape[1]):
            scratch.before[u, c] = alg.zero
        for c in range(scratch.after.shape[1]):
            scratch.after[u, c] = alg.zero
    for k in range(texts.prefix_first[item], texts.prefix_first[item + 1]):
        enter_prefix(alg, chain.prefix, graph, nodes, texts.prefix_root[k], scratch)
    for k in range(texts.suffix_first[item], texts.suffix_first[item + 1]):
        enter_suffix(alg, chain.suffix, graph, nodes, texts.suffix_root[k], scratch)


@shared
def enter_prefix(alg: Any, tree: Any, graph: Any, nodes: int, root: int, scratch: Any) -> None:
    """Add to `before` what the prefixes of a tree weigh."""
    before = scratch.before
    t, u, top = root, 0, 0
    while t >= 0:
        for c in range(tree.weight.shape[1]):
            before[u, c] = choice(alg, before[u, c], tree.weight[t, c])
        t, u, top = step_on(tree, graph, nodes, t, u, scratch.stack, top)


@shared
def enter_suffix(alg: Any, tree: Any, graph: Any, nodes: int, root: int, scratch: Any) -> None:
    """Add to `after` what the suffixes of a tree weigh."""
    after = scratch.after
    for end in range(nodes - 1, -1, -1):
        if place_of(graph, end) != place_of(graph, nodes - 1):
            break
        t, u, top = root, end, 0
        while t >= 0:
            for c in range(tree.weight.shape[1]):
                after[u, c] = choice(alg, after[u, c], tree.weight[t, c])
            t, u, top = step_back(tree, graph, t, u, scratch.stack, top)
