"""The tables of a chain as the lanes of a warp read them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.dp.chain.graphs import GraphParts
from plait.dp.chain.rows import Kind, PerInsertions, PerModel
from plait.dp.chain.tables import ChainTables, EndTrees
from plait.dp.chain.weigh import WeightedChain
from plait.lang.algebras import Count

#: Products of two windows, and weights of matches, stay below this.
_NARROW = 2.0**31
#: Most patterns, so that all of them have a lane.
_PATTERNS = 32


class WarpTables(NamedTuple):
    """A chain of V ends, F D genes and J ends, for M models of P patterns.

    `v_bases`, `j_bases`, `v_length`, `j_length`, `allowed`, `mirror`, `bound_ends`
    and `bound_d` are as in `plait.dp.chain.tables.ChainTables`, as are `region_left` and
    `region_right`, here int32 (F,). `v_sums` and `j_sums`, int32 (n, width, P): weight of all that
    keeps fewer than so many symbols of an end.

    `places`, (F, 16): for each text mask, the bits of a D gene's symbols that match it. `starts` and
    `joined`, (F,): bits of the whole D gene and of the part that takes part in the chain; `origin`, int32
    (F,), is the first bit of that part, and `early`, (F,), the bits below it, which stand for palindromic
    ends. `alike`, (F, width): for each number of symbols, the bits of starts that weigh the same as the
    first. `weight`, int32 (F * width * width * P,): by D gene, number of symbols, first bit and pattern.
    `empty`, int64 (F, M): weight of a fully deleted D gene. `width` is one more than the symbols of the
    longest D gene, `palindrome` the longest palindromic end.

    `unit`, uint8 (16,): 1 for text masks opposite which an insertion weighs one. `levels` is one more than
    the most insertions; `left_reach`, `right_reach` and `single_reach`, int32 (M,), are P times one more than
    the most insertions before the D gene, after it, and without one. `out_lane`, int32 (M,): where a model
    stands in the output. `genes` is F, `patterns` P.
    """

    v_bases: Any
    j_bases: Any
    v_length: Any
    j_length: Any
    allowed: Any
    mirror: Any
    v_sums: Any
    j_sums: Any
    places: Any
    starts: Any
    joined: Any
    early: Any
    origin: Any
    alike: Any
    weight: Any
    width: Any
    empty: Any
    region_left: Any
    region_right: Any
    unit: Any
    left_reach: Any
    right_reach: Any
    single_reach: Any
    out_lane: Any
    genes: Any
    palindrome: Any
    levels: Any
    patterns: Any
    bound_ends: Any
    bound_d: Any


def warp_serves(kind: Kind, alg: Any, tables: ChainTables) -> bool:
    """Whether a warp can run the chain: counting, at most one D gene, and weights that are not huge."""
    weights = tables.end_weights, tables.d_weights
    if type(alg) is not Count or any(values.dtype != np.int64 for values in weights):
        return False
    if tables.pair_allowed.any() or (tables.words.length > 62).any():
        return False
    models = tables.out_lane.size
    if isinstance(kind.rows, PerInsertions):
        rows = tables.v_row, tables.j_row, tables.d_row
        single = all(values.max(initial=0) <= 1 for values in rows) and tables.palindrome_row.shape[1] == 1
        return single and all(bool((values[1, :models] == 1).all()) for values in weights)
    patterns = int(tables.level_step)
    heaviest = float(tables.end_weights.max(initial=0)) * int(kind.insertion.levels)
    narrow = heaviest**2 < _NARROW and float(tables.bound_d) < _NARROW
    pattern = np.arange(models) % patterns
    repeated = all(bool((values[:, :models] == values[:, pattern]).all()) for values in weights)
    return isinstance(kind.rows, PerModel) and patterns <= _PATTERNS and narrow and repeated


#: Arrays of `ChainTables` that a warp reads as they are, and as int32.
_SAME = ("v_bases", "j_bases", "allowed", "mirror")
_NARROWER = ("v_length", "j_length", "region_left", "region_right", "out_lane")


def warp_tables(kind: Kind, tables: ChainTables) -> WarpTables:
    """The tables for a warp, of a chain that `warp_serves`."""
    words, models = tables.words, tables.out_lane.size
    by_model = isinstance(kind.rows, PerModel)
    patterns = int(tables.level_step) if by_model else 1
    starts = (np.int64(1) << words.length) - 1
    word: Any = np.uint32 if int(words.longest) <= 32 else np.int64
    reaches = [_reaches(lane, models, patterns) for lane in
              (tables.left_lane, tables.right_lane, tables.single_lane)]  # fmt: skip
    return WarpTables(
        **{name: getattr(tables, name) for name in _SAME},
        **{name: getattr(tables, name).astype(np.int32) for name in _NARROWER},
        v_sums=_sums(tables.end_weights, tables.v_row, patterns),
        j_sums=_sums(tables.end_weights, tables.j_row, patterns),
        places=((words.places[words.word] >> words.first[:, None]) & starts[:, None]).astype(word),
        starts=starts.astype(word),
        joined=(tables.joined_starts >> words.first).astype(word),
        early=((np.int64(1) << tables.joined_left) - 1).astype(word),
        origin=tables.joined_left.astype(np.int32),
        alike=_widened(tables.plain_starts >> words.first[:, None], int(words.longest) + 1).astype(word),
        weight=tables.d_weights[_rows(tables), :patterns].astype(np.int32).ravel(),
        width=np.int32(words.longest + 1),
        empty=np.ascontiguousarray(tables.d_weights[tables.empty_row, :models]),
        unit=(tables.symbol_weight == 1).astype(np.uint8),
        left_reach=reaches[0],
        right_reach=reaches[1],
        single_reach=reaches[2],
        genes=np.int32(words.length.size),
        palindrome=np.int32(tables.palindrome_row.shape[1] - 1),
        levels=np.int32(kind.insertion.levels),
        patterns=np.int32(patterns),
        bound_ends=np.float64(tables.bound_ends),
        bound_d=np.float64(tables.bound_d),
    )


def _reaches(lane: NDArray[np.int32], models: int, patterns: int) -> NDArray[np.int32]:
    """From the level that each model reads: its own where no levels are given."""
    read = lane if lane.size else np.arange(models)
    reaches: NDArray[np.int32] = ((read // patterns + 1) * patterns).astype(np.int32)
    return reaches


def _widened(rows: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    wide = np.zeros((rows.shape[0], max(width, rows.shape[1])), np.int64)
    wide[:, : rows.shape[1]] = rows
    return wide


def _sums(weights: NDArray[Any], rows: NDArray[np.int32], patterns: int) -> NDArray[np.int32]:
    sums = np.zeros((rows.shape[0], rows.shape[1] + 1, patterns), np.int32)
    np.cumsum(weights[rows][:, :, :patterns], axis=1, out=sums[:, 1:])
    return sums


def _rows(tables: ChainTables) -> NDArray[np.int32]:
    """Rows of weights, by D gene, number of symbols and first bit."""
    genes, width = tables.words.length.size, int(tables.words.longest) + 1
    rows = np.zeros((genes, width, width), np.int32)
    for f in range(genes):
        left, length = int(tables.joined_left[f]), int(tables.joined_length[f])
        for n in range(1, width):
            for s in range(length - n + 1):
                rows[f, n, left + s] = tables.d_row[f, s, s + n]
            for p in range(1, min(n, tables.palindrome_row.shape[1] - 1) + 1):
                if n - p <= length:
                    rows[f, n, left - p] = tables.palindrome_row[f, p, n - p]
    return rows


_Ints = NDArray[np.int32]
_Floats = NDArray[np.float64]
#: No node.
_NONE = -1
#: Most nodes of a part at one place: what a set of them is written in.
_MOST_ABREAST = 16


class LevelTrees(NamedTuple):
    """Tries, one after the other, each level by level.

    `child`, int32 (4 * nodes,): the node that a symbol leads to, or -1; `weight`, float64
    (nodes * contexts,); `label`, uint8 (nodes,): the symbol that leads to a node; `above`, int32 (nodes,):
    which node of the level above it follows. `level`, int32 (levels + 1,): first node of every level of every
    trie; `first`, int32 (trees + 1,): first level of every trie.
    """

    child: Any
    weight: Any
    label: Any
    above: Any
    level: Any
    first: Any
    contexts: Any


class WordTrees(NamedTuple):
    """Tries of all words of D genes in preorder: a node is followed by all that is below it.

    `child`, int32 (4 * nodes,), as in `LevelTrees`; `weight` float64, `label` uint8 and `depth` int32, the
    symbols on the way to a node, all (nodes,). `beyond`, int32 (nodes,): the first node that is not below it;
    `first`, int32 (D genes + 1,): the root of every D gene. `deepest` is the symbols of the longest word.
    """

    child: Any
    weight: Any
    label: Any
    depth: Any
    beyond: Any
    first: Any
    deepest: Any


class WarpChain(NamedTuple):
    """A weighted chain for a warp, float64; see `plait.dp.chain.weigh.WeightedChain`.

    `v` and `j` are `LevelTrees`, `d` is `WordTrees`. Left first, then right: `none`, (2,),
    weight of no insertion; `length`, (2 * (most + 1),), of 0 (not read), 1, .. `most` insertions; `first`,
    (2 * 4,), of the first inserted symbol; `step`, (2 * 16,), of one after another, by the one before it.
    `contexts` of J ends are as many as there are D genes, where there are any; `group` of them are taken
    at a time. `widest` is the nodes of the widest level of a trie of ends.
    """

    insertion: Any
    v: Any
    j: Any
    d: Any
    none: Any
    length: Any
    first: Any
    step: Any
    most: Any
    contexts: Any
    group: Any
    widest: Any


class WarpParts(NamedTuple):
    """`plait.dp.chain.graphs.GraphParts`, of which all stand for equally many places.

    `nodes` and `exits`, int32 (codes,): how many there are, and how many of them are at the last place.
    `symbol` and `place`, uint8 (codes * most,); places are counted from 1. `behind`, int32 (codes * most,):
    first node of the place before, numbered in the part, times 65536, and a bit for each of those which a
    node follows; -1 for nodes that follow the part before. `ahead`, int32 (codes * most * 4,): the node that
    a symbol leads to, -1 if it is none of the part; `entry`, int32 (codes * 4,): the same for whatever is
    before the part. `begin`, int32 (codes * places,): first node of each place. `most` nodes and `places` are
    those of the largest part.
    """

    nodes: Any
    exits: Any
    symbol: Any
    place: Any
    behind: Any
    ahead: Any
    entry: Any
    begin: Any
    most: Any
    places: Any


def warp_chain(chain: WeightedChain, group: int, zero: float = 0.0) -> WarpChain:
    """The tables of a chain; `group` is the contexts that a warp takes at a time, at most 16.

    Without D genes, V ends have a context for every one of the J ends. `zero` is that of the algebra.
    """
    v, j = _by_levels(chain.v), _by_levels(chain.j)
    margin = int(chain.margin)
    left, right = (table[0, margin : table.shape[1] - margin]
                   for table in (chain.left_length, chain.right_length))  # fmt: skip
    most = max(left.size, right.size)
    length = np.full((2, most + 1), zero)
    length[0, 1 : left.size + 1] = left[::-1]
    length[1, 1 : right.size + 1] = right
    contexts = len(chain.d_root) or int(j.contexts)
    widest = max(int(np.diff(trees.level).max(initial=1)) for trees in (v, j))
    return WarpChain(
        insertion=chain.insertion,
        v=v,
        j=j,
        d=_d_trees(chain),
        none=np.array([chain.left_none[0], chain.right_none[0]]),
        length=length.ravel(),
        first=np.concatenate([chain.left_first, chain.right_first]),
        step=np.concatenate([chain.left_step.ravel(), chain.right_step.ravel()]),
        most=np.int32(most),
        contexts=np.int32(contexts),
        group=np.int32(min(group, contexts)),
        widest=np.int32(widest),
    )


def warp_roots(trees: EndTrees) -> _Ints:
    """The number of the trie of each root, and -1 for other nodes: int32 (nodes,)."""
    roots = _roots(trees.child)
    found = np.full(len(trees.child), _NONE, np.int32)
    found[roots] = np.arange(roots.size)
    return found


def _roots(child: NDArray[Any]) -> NDArray[np.int64]:
    is_root = np.ones(len(child), np.bool_)
    is_root[child[child >= 0]] = False
    return np.flatnonzero(is_root)


def _by_levels(trees: EndTrees) -> LevelTrees:
    table = trees.child.tolist()
    # Nodes with the base that leads to each and its parent's place in the level above.
    found: list[tuple[int, int, int]] = []
    child: list[list[int]] = []
    level: list[int] = []
    first: list[int] = []
    for root in _roots(trees.child).tolist():
        first.append(len(level))
        row = [(root, 0, 0)]
        while row:
            level.append(len(found))
            found += row
            below: list[tuple[int, int, int]] = []
            for k, (node, _, _) in enumerate(row):
                child.append([_NONE] * 4)
                for base in range(4):
                    if table[node][base] >= 0:
                        child[-1][base] = len(found) + len(below)
                        below.append((table[node][base], base, k))
            row = below
    nodes, label, above = np.array(found, np.int32).reshape(-1, 3).T
    weight = np.ascontiguousarray(trees.weight[nodes], np.float64)
    return LevelTrees(
        child=np.array(child, np.int32).ravel(),
        weight=weight.ravel(),
        label=label.astype(np.uint8),
        above=np.ascontiguousarray(above),
        level=np.array([*level, len(found)], np.int32),
        first=np.array([*first, len(level)], np.int32),
        contexts=np.int32(weight.shape[1]),
    )


def _d_trees(chain: WeightedChain) -> WordTrees:
    table = chain.d.child.tolist()
    # Nodes with the base that leads to each and its depth.
    found: list[tuple[int, int, int]] = []
    child: list[list[int]] = []
    beyond: list[int] = []

    def visit(node: int, base: int, depth: int) -> int:
        place = len(found)
        found.append((node, base, depth))
        child.append([_NONE] * 4)
        beyond.append(place)
        for a in range(4):
            if table[node][a] >= 0:
                child[place][a] = visit(table[node][a], a, depth + 1)
        beyond[place] = len(found)
        return place

    first = [visit(int(root), 0, 0) for root in chain.d_root]
    nodes, label, depth = np.array(found, np.int32).reshape(-1, 3).T
    return WordTrees(
        child=np.array(child, np.int32).ravel(),
        weight=np.ascontiguousarray(chain.d.weight[nodes, 0], np.float64),
        label=label.astype(np.uint8),
        depth=np.ascontiguousarray(depth),
        beyond=np.array(beyond, np.int32),
        first=np.array([*first, len(found)], np.int32),
        deepest=np.int32(depth.max(initial=0)),
    )


def warp_parts(parts: GraphParts) -> WarpParts | None:
    """What codes stand for, as lanes read it; None if a warp cannot read them."""
    codes, most = parts.symbol.shape
    length = np.array([parts.place[c, max(parts.nodes[c] - 1, 0)] for c in range(codes)])
    places = int(length[0])
    if (length != places).any() or (parts.nodes == 0).any():
        return None
    behind = np.full((codes, most), _NONE, np.int32)
    ahead = np.full((codes, most, 4), _NONE, np.int32)
    entry = np.full((codes, 4), _NONE, np.int32)
    begin = np.zeros((codes, places), np.int32)
    for c in range(codes):
        nodes = int(parts.nodes[c])
        at = parts.place[c, :nodes]
        begin[c] = np.searchsorted(at, np.arange(1, places + 1))
        if np.bincount(at).max() > _MOST_ABREAST:
            return None
        entry[c, parts.symbol[c, : parts.entries[c]]] = np.arange(parts.entries[c])
        for x in range(int(parts.entries[c]), nodes):
            first = begin[c, at[x] - 2]
            before = parts.before[c, parts.before_first[c, x] : parts.before_first[c, x + 1]]
            behind[c, x] = int(first) << 16 | int((1 << (before - first)).sum())
            ahead[c, before, parts.symbol[c, x]] = x
    return WarpParts(
        nodes=parts.nodes.astype(np.int32),
        exits=parts.exits.astype(np.int32),
        symbol=parts.symbol.ravel(),
        place=parts.place.astype(np.uint8).ravel(),
        behind=behind.ravel(),
        ahead=ahead.ravel(),
        entry=entry.ravel(),
        begin=begin.ravel(),
        most=np.int32(most),
        places=np.int32(places),
    )


#: Symbols between texts that may be copied with them.
_APART: Final = 4096


def own_symbols(
    symbols: NDArray[np.uint8], start: NDArray[Any], length: NDArray[Any]
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """The symbols of some texts with few others, and where each text starts there.

    Text i is ``symbols[start[i]:start[i] + length[i]]``; there is at least one.
    """
    begin, end = int(start.min()), int((start + length).max())
    if end - begin <= 2 * int(length.sum()) + _APART:
        return symbols[begin:end], start - begin
    # They are from all over the place.
    compact = np.cumsum(length) - length
    return symbols[np.repeat(start - compact, length) + np.arange(int(length.sum()))], compact
