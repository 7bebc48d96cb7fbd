"""The arrays that the chain reads and writes, named, and germline ends as tries.

A text is a junction, from its V end to its J end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: Columns of `ChainOutput.regions`; -1 in the D gene columns means that no D gene symbol occurs. The last
#: twelve count the symbols that contain each mask bit: before the D gene, after it, and between the ends.
REGION_FIELDS = (
    "v_match",
    "j_match",
    "d_match",
    "d_start",
    "d_end",
    "d_extended_left",
    "d_extended_right",
    "d_alleles",
    *(f"{part}_{bit}" for part in ("before", "after", "between") for bit in range(4)),
)


#: First columns of what tells how a junction was made: numbers of genes, then of deleted bases.
CHOICE_FIELDS = ("v", "d", "j", "v_deletion", "d5_deletion", "d3_deletion", "j_deletion")
#: Positions of the longest D gene: they are the bits of one word.
D_BITS = 62
#: Rows of `ChainScratch.alive` per word: one for each number of symbols read.
ALIVE_ROWS = D_BITS + 1
#: Rows of `ChainScratch.lines`; the last one is there for each number of palindromic symbols.
LINES = 9


class Junctions(NamedTuple):
    """A batch of texts as symbol masks; several may share their symbols.

    Text i is ``symbols[start[i]:start[i] + length[i]]``; `symbols` is uint8 (total,), all others int64 (n,).
    `v` and `j` are the V and the J allele of text i.
    """

    symbols: Any
    start: Any
    length: Any
    v: Any
    j: Any

    def take(self, items: Any) -> Junctions:
        """Some of them."""
        return Junctions(self.symbols, *(field[items] for field in self[1:]))


class DWords(NamedTuple):
    """D genes packed into words: one bit per symbol, an empty bit between two D genes.

    `places`, int64 (words, 16), has for each text mask the bits of the positions that match it. `word`,
    `first` and `length`, int64 (n,): the word of each D gene, its first bit and its number of symbols.
    `every_start`, int64 (words,): bits of all D genes of a word; `d_of`, int64
    (words, D_BITS): the D gene of each bit; `allowed_starts`, int64 (J ends, words): bits of the
    D genes that may precede a J end. `longest` is in symbols.
    """

    places: Any
    word: Any
    first: Any
    length: Any
    every_start: Any
    d_of: Any
    allowed_starts: Any
    longest: Any


class ChainTables(NamedTuple):
    """What the chain is made of. M lanes are the models asked for, K x P the insertion levels.

    Ends: `v_bases` and `j_bases` are extended ends as masks, uint8 (n, width), J ends stored
    last symbol first; `v_length` and `j_length` int64 (n,). `v_row` and `j_row`, int32
    (n, width + 1), give the row of `end_weights` for each kept length; row 0 is all zero.

    D genes: `words` packs them, extended at both ends. `joined_starts`, `joined_left` and `joined_length`,
    int64 (n,), are the bits, the symbols before and the length of the part that takes part in the chain.
    `d_row`, int32 (n, width + 1, width + 1), is the row of `d_weights` for bases [s:t) of a D gene,
    `palindrome_row`, int32 (n, palindrome + 1, width + 1), that of p palindromic symbols before [0:t), and
    `empty_row`, int32 (n,), that of a fully deleted D gene. `plain_starts`, int64 (n, width + 1), has for
    each length the bits of the starts whose row is that of the first one: they are counted, not visited.
    `region_left` and `region_right`, int64 (n,), are start and end of the unextended part. `allowed`, uint8
    (J ends, D genes): which D genes may precede a J end; `pair_allowed`, uint8 (D genes, D genes):
    which D gene may precede which, all 0 where pairs are not asked for.

    Weights: `end_weights` and `d_weights` are (rows, M), `level_weights` (rows, K * P) with lane
    ``k * P + p``, all padded to `plait.lang.lanes.PADDING` lanes; `level_step` is P. `symbol_weight`, (16,),
    is the weight of inserting a symbol opposite each text mask; `mirror`, uint8 (16,), the complement of each
    mask.

    Models: `left_lane`, `right_lane` and `single_lane`, int32 (M,), are the insertion levels read left and
    right of the D gene, and without one; all three are empty where M = K * P and every model reads its own
    lane. `middle_limit`, int64 (M,), is the longest insertion between two D genes; `out_lane`, int64 (M,),
    where lane x stands in the output. `bound_ends`, `bound_d` (floats) and `bound_symbol` (float64
    (16,)) are factors of an upper bound of every count.
    """

    v_bases: Any
    j_bases: Any
    v_length: Any
    j_length: Any
    v_row: Any
    j_row: Any
    words: Any
    joined_starts: Any
    joined_left: Any
    joined_length: Any
    d_row: Any
    palindrome_row: Any
    empty_row: Any
    region_left: Any
    region_right: Any
    allowed: Any
    pair_allowed: Any
    end_weights: Any
    d_weights: Any
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
    bound_d: Any
    bound_symbol: Any


class ChainScratch(NamedTuple):
    """Working memory of one worker.

    Rows f of `total` and `carry` belong to D gene f, the last two rows to a fully deleted D gene and to
    no D gene. `places`, `symbols` and `lines` have `plait.lang.lanes.PADDING` columns before position 0;
    row s + 1 of `values` belongs to base s of a D gene.
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
    symbols: Any
    lines: Any
    values: Any
    lead: Any


class ChainOutput(NamedTuple):
    """Results of a batch of n texts; what is not wanted has no columns, which saves writing and copying.

    `full` and `empty`, (n, D genes, M): all paths, and those with the D gene fully deleted; or `full` is
    (n, 1, M), summed over D genes, and `empty` (n, 0, M). `none`, (n, M) or (n, 0): paths without a
    D gene. `pair`, (n, pairs, M): two D genes, pair ``first * D genes + second``. `regions` is int64
    (n, len(REGION_FIELDS)) or (n, 0). No exact count of a text, final or intermediate, exceeds `bound`,
    float64 (n,).
    """

    full: Any
    empty: Any
    none: Any
    pair: Any
    regions: Any
    bound: Any


class EndTrees(NamedTuple):
    """Tries of V ends, of J ends read backwards, or of all words of D genes.

    `child`, int32 (nodes, 4), is the node that a symbol leads to, or -1; `weight`, (nodes, contexts), is that
    of all ends that are cut here.
    """

    child: Any
    weight: Any
