"""A recombination model as tables of the chain schedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.lanes import PADDING, padded
from plait.recurrences.insertion import Insertion
from plait.schedules.text_graphs import GraphParts, TextGraph
from plait.schedules.end_trees import EndTrees
from plait.schedules.weighted_chain import WeightedChain, WeightedScratch
from plait.vdj.model.recombination_model import RecombinationModel

__all__ = ["ChainTables", "chain_tables", "make_scratch", "parts_of"]



class ChainTables(NamedTuple):
    """What a model is to the schedule.

    Attributes
    ----------
    chain
        The tables.
    v_root, j_root
        int32 (V,) and (J,): root of the tree of each gene alone.
    v_all, j_all
        Roots of the trees of all genes that are functional.
    """

    chain: WeightedChain
    v_root: NDArray[np.int32]
    j_root: NDArray[np.int32]
    v_all: int
    j_all: int


class _Trees:
    """Grows trees of ends."""

    def __init__(self, contexts: int) -> None:
        self._child: list[list[int]] = []
        self._weight: list[NDArray[np.float64]] = []
        self._contexts = contexts

    def root(self) -> int:
        self._child.append([-1] * 4)
        self._weight.append(np.zeros(self._contexts))
        return len(self._child) - 1

    def add(self, root: int, codes: Sequence[int], weights: NDArray[np.float64]) -> None:
        """An end, and the weight (kept, contexts) of keeping its first 0, 1, ... symbols."""
        at = root
        self._weight[at] += weights[0]
        for code, weight in zip(codes, weights[1:], strict=True):
            if self._child[at][code] < 0:
                self._child[at][code] = self.root()
            at = self._child[at][code]
            self._weight[at] += weight

    def done(self) -> EndTrees:
        return EndTrees(np.array(self._child, np.int32), np.array(self._weight))


def _codes(text: str) -> list[int]:
    return ["ACGT".index(letter) for letter in text]


def _kept(deletions: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Probability of keeping 0, 1, ... `length` nucleotides, of which the junction needs one at least."""
    found = np.zeros(length + 1)
    most = min(length, deletions.size - 1)
    found[length - most :] = deletions[: most + 1][::-1]
    found[0] = 0
    return found


def chain_tables(model: RecombinationModel) -> ChainTables:
    """The tables of a model.
    """
    v, v_root, v_all = _prefixes(model)
    j, j_root, j_all = _suffixes(model)
    words, word_roots = _words(model)
    left_none, left_length = _lengths(model.p_vd_length, True)
    right_none, right_length = _lengths(model.p_dj_length, False)
    chain = WeightedChain(
        insertion=Insertion(np.int64(0)),
        prefix=v,
        suffix=j,
        fragment=words,
        fragment_root=word_roots,
        left_none=left_none,
        right_none=right_none,
        left_length=left_length,
        right_length=right_length,
        margin=PADDING,
        pick=_pick(v, j),
        left_first=model.vd_first,
        right_first=model.dj_first,
        left_step=np.ascontiguousarray(model.vd_steps),
        right_step=np.ascontiguousarray(model.dj_steps),
    )
    return ChainTables(chain, v_root, j_root, v_all, j_all)


def _prefixes(model: RecombinationModel) -> tuple[EndTrees, NDArray[np.int32], int]:
    given = np.ones((len(model.v), 1))
    if not model.d:
        given = _pad(np.broadcast_to(model.p_dj[:, 0], (len(model.v), len(model.j))))
    trees = _Trees(given.shape[1])
    together = trees.root()
    roots = []
    for k, gene in enumerate(model.v):
        text = model.extended("V", k)
        weights = model.p_v[k] * _kept(model.p_v_deletions[k], len(text))[:, None] * given[k]
        roots.append(trees.root())
        if text:
            trees.add(roots[-1], _codes(text), weights)
            if gene.functional:
                trees.add(together, _codes(text), weights)
    return trees.done(), np.array(roots, np.int32), together


def _suffixes(model: RecombinationModel) -> tuple[EndTrees, NDArray[np.int32], int]:
    # A context for each D; without D genes one for each J, which the prefix has weighed.
    given = model.p_dj[0].T if model.d else _pad(np.eye(len(model.j)))
    trees = _Trees(given.shape[1])
    together = trees.root()
    roots = []
    for k, gene in enumerate(model.j):
        text = model.extended("J", k)[::-1]
        kept = _kept(model.p_j_deletions[k], len(text))
        weights = kept[:, None] * given[k]
        roots.append(trees.root())
        if text:
            trees.add(roots[-1], _codes(text), weights)
            if gene.functional:
                trees.add(together, _codes(text), weights)
    return trees.done(), np.array(roots, np.int32), together


def _pad(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """With columns of zeros, so that rows are whole groups of lanes."""
    extra = padded(table.shape[1]) - table.shape[1]
    return np.concatenate([table, np.zeros((len(table), extra))], axis=1)


def _words(model: RecombinationModel) -> tuple[EndTrees, NDArray[np.int32]]:
    """All words of every D gene, with P."""
    trees = _Trees(1)
    roots = []
    n5, n3 = model.p_d_deletions.shape[-2:]
    for k in range(len(model.d)):
        codes = _codes(model.extended("D", k))
        roots.append(trees.root())
        for s in range(min(n5, len(codes) + 1)):
            weights = np.zeros((len(codes) - s + 1, 1))
            for t in range(max(s, len(codes) - n3 + 1), len(codes) + 1):
                weights[t - s] = model.p_d_deletions[k, s, len(codes) - t]
            trees.add(roots[-1], codes[s:], weights)
    if not model.d:
        trees.root()
    return trees.done(), np.array(roots, np.int32)


def _lengths(p: NDArray[np.float64], backwards: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probability of no insertion, and of 1, 2, ... between margins of zeros."""
    table = np.zeros((1, 2 * PADDING + p.size - 1))
    table[0, PADDING : PADDING + p.size - 1] = p[1:][::-1] if backwards else p[1:]
    return p[:1].copy(), table


def parts_of(codons: Iterable[Iterable[str]]) -> GraphParts:
    """Graph parts from the words that each code stands for; all words of a code have one length.

    Parameters
    ----------
    codons
        Words over A, C, G, T of every code.
    """
    return _packed([_part(sorted(set(words))) for words in codons])


class _Part(NamedTuple):
    symbol: list[int]
    place: list[int]
    before: list[list[int]]
    entries: int
    exits: int


def _part(words: Sequence[str]) -> _Part:
    """The smallest graph of the words whose nodes know their symbol."""
    length = len(words[0])
    layer: dict[tuple[int, frozenset[str]], int] = {}
    symbol: list[int] = []
    place: list[int] = []
    before: list[list[int]] = []
    # What may follow, of all that has been read alike; the empty node is outside the part.
    current: dict[int, frozenset[str]] = {-1: frozenset(words)}
    entries = exits = 0
    for depth in range(1, length + 1):
        layer, following = {}, {}
        for node, rest in current.items():
            for code, letter in enumerate("ACGT"):
                tails = frozenset(word[1:] for word in rest if word[0] == letter)
                if not tails:
                    continue
                key = (code, tails)
                if key not in layer:
                    layer[key] = len(symbol)
                    symbol.append(code)
                    place.append(depth)
                    before.append([])
                    following[layer[key]] = tails
                if node >= 0:
                    before[layer[key]].append(node)
        current = following
        exits = len(layer)
        entries = entries if depth > 1 else len(layer)
    return _Part(symbol, place, before, entries, exits)


def _packed(parts: Sequence[_Part]) -> GraphParts:
    most = max(len(part.symbol) for part in parts)
    edges = max(sum(map(len, part.before)) for part in parts)
    symbol = np.zeros((len(parts), most), np.uint8)
    place = np.zeros((len(parts), most), np.int64)
    first = np.zeros((len(parts), most + 1), np.int64)
    before = np.zeros((len(parts), max(edges, 1)), np.int64)
    for k, part in enumerate(parts):
        n = len(part.symbol)
        symbol[k, :n] = part.symbol
        place[k, :n] = part.place
        first[k, 1 : n + 1] = np.cumsum([len(nodes) for nodes in part.before])
        flat = [node for nodes in part.before for node in nodes]
        before[k, : len(flat)] = flat
    return GraphParts(
        nodes=np.array([len(part.symbol) for part in parts]),
        entries=np.array([part.entries for part in parts]),
        exits=np.array([part.exits for part in parts]),
        symbol=symbol,
        place=place,
        before_first=first,
        before=before,
    )


def _pick(*trees: EndTrees) -> NDArray[np.float64]:
    """One in the middle of zeros."""
    side = max(padded(_depth(tree) + 1) for tree in trees) + PADDING
    table = np.zeros((1, 2 * side))
    table[0, side] = 1
    return table


def _depth(tree: EndTrees) -> int:
    """Symbols of the longest end."""
    depth = np.zeros(len(tree.child), np.int64)
    for node, below in enumerate(tree.child):
        depth[below[below >= 0]] = depth[node] + 1
    return int(depth.max(initial=0))


def make_scratch(chain: WeightedChain, parts: GraphParts, longest: int, dtype: Any = np.float64) -> WeightedScratch:
    """Memory for texts of up to `longest` codes."""
    nodes = 2 + longest * int(parts.nodes.max())
    inner = int(parts.before_first.max(initial=0))
    edges = 1 + longest * (inner + int(parts.entries.max()) * max(int(parts.exits.max()), 1))
    contexts = chain.suffix.weight.shape[1]
    left, right = (padded(_depth(tree) + 1) for tree in (chain.prefix, chain.suffix))
    widest = max(int(parts.entries.max()), int(parts.exits.max()), 4)
    deepest = int(parts.place.max()) * longest + 1
    graph = TextGraph(
        symbol=np.zeros(nodes, np.uint8),
        place=np.zeros(nodes, np.int64),
        before_first=np.zeros(nodes + 1, np.int64),
        before=np.zeros(edges, np.int64),
        after_first=np.zeros(nodes + 2, np.int64),
        after=np.zeros(edges, np.int64),
    )
    return WeightedScratch(
        graph=graph,
        before=np.zeros((nodes, chain.prefix.weight.shape[1]), dtype),
        left=np.zeros((nodes, 1), dtype),
        after=np.zeros((nodes, contexts), dtype),
        right=np.zeros((nodes, contexts), dtype),
        left_levels=np.zeros((nodes, left), dtype),
        right_levels=np.zeros((nodes, right * contexts), dtype),
        inserted=np.zeros((nodes, contexts), dtype),
        row=np.zeros((1, PADDING), dtype),
        stack=np.zeros((deepest * widest + 8, 2), np.int64),
    )
