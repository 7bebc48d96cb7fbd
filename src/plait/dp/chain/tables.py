"""The arrays that the chain reads and writes, named, and germline ends as tries.

A text is a junction; a prefix is its V end, a suffix its J end and a fragment a D.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.errors import Unsupported
from plait.lang.lanes import PADDING, padded

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


#: First columns of what tells how a junction was made: numbers of genes, then of deleted bases.
CHOICE_FIELDS = ("v", "d", "j", "v_deletion", "d5_deletion", "d3_deletion", "j_deletion")
#: Positions of the longest fragment: they are the bits of one word.
FRAGMENT_BITS = 62
#: Rows of `ChainScratch.alive` per word: one for each number of symbols read.
ALIVE_ROWS = FRAGMENT_BITS + 1


class Texts(NamedTuple):
    """A batch of texts as symbol masks; several may share their symbols.

    Text i is ``symbols[start[i]:start[i] + length[i]]``; `symbols` is uint8 (total,), all others int64 (n,).
    `prefix` and `suffix` say which prefix and suffix make text i.
    """

    symbols: Any
    start: Any
    length: Any
    prefix: Any
    suffix: Any


class FragmentWords(NamedTuple):
    """Fragments packed into words: one bit per symbol, an empty bit between two fragments.

    `places`, int64 (words, 16), has for each text mask the bits of the positions that match it. `word`,
    `first` and `length`, int64 (n,): the word of each fragment, its first bit and its number of symbols.
    `every_start`, int64 (words,): bits of all fragments of a word; `fragment_of`, int64
    (words, FRAGMENT_BITS): the fragment of each bit; `allowed_starts`, int64 (suffixes, words): bits of the
    fragments that may precede a suffix. `longest` is in symbols.
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

    Ends: `prefix_symbols` and `suffix_symbols` are extended ends as masks, uint8 (n, width), suffixes stored
    last symbol first; `prefix_length` and `suffix_length` int64 (n,). `prefix_row` and `suffix_row`, int32
    (n, width + 1), give the row of `end_weights` for each kept length; row 0 is all zero.

    Fragments: `words` packs them, extended at both ends. `joined_starts`, `joined_left` and `joined_length`,
    int64 (n,), are the bits, the symbols before and the length of the part that takes part in the chain.
    `fragment_row`, int32 (n, width + 1, width + 1), is the row of `fragment_weights` for fragment[s:t),
    `hidden_row`, int32 (n, hidden + 1, width + 1), that of p palindromic symbols before fragment[0:t), and
    `empty_row`, int32 (n,), that of a fully deleted fragment. `plain_starts`, int64 (n, width + 1), has for
    each length the bits of the starts whose row is that of the first one: they are counted, not visited.
    `region_left` and `region_right`, int64 (n,), are start and end of the unextended part. `allowed`, uint8
    (suffixes, fragments): which fragments may precede a suffix; `pair_allowed`, uint8 (fragments, fragments):
    which fragment may precede which, all 0 where pairs are not asked for.

    Weights: `end_weights` and `fragment_weights` are (rows, M), `level_weights` (rows, K * P) with lane
    ``k * P + p``, all padded to `plait.lang.lanes.PADDING` lanes; `level_step` is P. `symbol_weight`, (16,),
    is the weight of inserting a symbol opposite each text mask; `mirror`, uint8 (16,), the complement of each
    mask.

    Models: `left_lane`, `right_lane` and `single_lane`, int32 (M,), are the insertion levels read left and
    right of the fragment, and without one; all three are empty where M = K * P and every model reads its own
    lane. `middle_limit`, int64 (M,), is the longest insertion between two fragments; `out_lane`, int64 (M,),
    where lane x stands in the output. `bound_ends`, `bound_fragment` (floats) and `bound_symbol` (float64
    (16,)) are factors of an upper bound of every count.
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

    Rows f of `total` and `carry` belong to fragment f, the last two rows to a fully deleted fragment and to
    no fragment.
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
    """Results of a batch of n texts; what is not wanted has no columns, which saves writing and copying.

    `full` and `empty`, (n, fragments, M): all paths, and those with the fragment fully deleted; or `full` is
    (n, 1, M), summed over fragments, and `empty` (n, 0, M). `none`, (n, M) or (n, 0): paths without a
    fragment. `pair`, (n, pairs, M): two fragments, pair ``first * fragments + second``. `regions` is int64
    (n, len(REGION_FIELDS)) or (n, 0). No exact count of a text, final or intermediate, exceeds `bound`,
    float64 (n,).
    """

    full: Any
    empty: Any
    none: Any
    pair: Any
    regions: Any
    bound: Any


def make_scratch(alg: Any, tables: ChainTables, longest: int) -> ChainScratch:
    """Working memory for texts of up to `longest` symbols.

    Raises `Unsupported` for an algebra whose neutral elements are not the numbers 0 and 1.
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
    """Tries of prefixes, of suffixes read backwards, or of all words of fragments.

    `child`, int32 (nodes, 4), is the node that a symbol leads to, or -1; `weight`, (nodes, contexts), is that
    of all ends that are cut here.
    """

    child: Any
    weight: Any
