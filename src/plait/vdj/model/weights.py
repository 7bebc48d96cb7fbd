"""A recombination model as tables of the chain schedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.dp.chain.insertions import Insertion
from plait.dp.chain.tables import EndTrees
from plait.dp.chain.texts import GraphParts, PathGraph, TextGraph
from plait.dp.chain.weigh import PairScratch, WeightedChain, WeightedScratch
from plait.lang.algebras import PROBABILITY
from plait.lang.lanes import PADDING, padded
from plait.vdj.model.gene_ends import Amounts, ModelShapes, empty_table, values_of
from plait.vdj.model.recombination_model import RecombinationModel


class PartWeights(NamedTuple):
    """Weights (n, contexts) of all parts of genes, in the order of `plait.vdj.model.gene_ends.EndShape`."""

    v: NDArray[np.float64]
    d: NDArray[np.float64]
    j: NDArray[np.float64]


def part_weights(model: RecombinationModel, shapes: ModelShapes) -> PartWeights:
    """Weights of all parts under a model.

    With D genes, V has one context and J one for every D. Without, both have one for every J, since V and J
    are chosen together: V brings the weight of the choice.
    """
    v, d, j = shapes.v, shapes.d, shapes.j
    of_v = model.p_v[v.gene] * model.p_v_deletions[v.gene, v.cut]
    of_j = model.p_j_deletions[j.gene, j.cut]
    if model.d:
        of_d = model.p_d_deletions[d.gene, d.cut, d.cut_right]
        return PartWeights(of_v[:, None], of_d[:, None], of_j[:, None] * model.p_dj[0].T[j.gene])
    given = _pad(np.broadcast_to(model.p_dj[:, 0], (len(model.v), len(model.j))))
    return PartWeights(
        of_v[:, None] * given[v.gene], np.zeros((0, 1)), of_j[:, None] * _pad(np.eye(len(model.j)))[j.gene]
    )


def weighted_chain(
    model: RecombinationModel,
    shapes: ModelShapes,
    algebra: Any = PROBABILITY,
    amounts: Amounts | None = None,
) -> WeightedChain:
    """The tables of a model, with weights that are values of an algebra.

    `shapes` are `plait.vdj.model.gene_ends.model_shapes` of it, or of a model with the same genes. The
    algebra is that of probabilities, their logarithms (`LogSum`), what is possible at all (`Count`) or
    `WeightedSum`, where `amounts` is what each choice adds; it takes parts that read alike together.
    """
    weights = part_weights(model, shapes)
    own = _pad(np.eye(max(len(model.d), 1)))[shapes.words.gene]

    def table(name: str, p: NDArray[np.float64]) -> NDArray[Any]:
        return np.ascontiguousarray(values_of(algebra, name, p, amounts))

    def lengths(name: str, p: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        values = table(name, p)
        between = empty_table(algebra, (1, 2 * PADDING + p.size - 1))
        between[0, PADDING : PADDING + p.size - 1] = values[1:][::-1] if name == "left_length" else values[1:]
        return values[:1].copy(), between

    left_none, left_length = lengths("left_length", model.p_vd_length)
    right_none, right_length = lengths("right_length", model.p_dj_length)
    return WeightedChain(
        insertion=Insertion(np.int64(0)),
        prefix=shapes.v.trees(table("v", weights.v), algebra),
        suffix=shapes.j.trees(table("j", weights.j), algebra),
        fragment=shapes.d.trees(table("d", weights.d), algebra),
        fragment_root=shapes.d.root,
        words=shapes.words.trees(table("d", weights.d * own), algebra),
        left_none=left_none,
        right_none=right_none,
        left_length=left_length,
        right_length=right_length,
        margin=PADDING,
        pick=_pick(max(model.p_vd_length.size, model.p_dj_length.size), algebra),
        left_first=table("left_first", model.vd_first),
        right_first=table("right_first", model.dj_first),
        left_step=table("left_step", model.vd_steps),
        right_step=table("right_step", model.dj_steps),
    )


def _pad(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """With columns of zeros, so that rows are whole groups of lanes."""
    extra = padded(table.shape[1]) - table.shape[1]
    return np.concatenate([table, np.zeros((len(table), extra))], axis=1)


def parts_of(codons: Iterable[Iterable[str]]) -> GraphParts:
    """Graph parts from the words over A, C, G, T of each code; the words of a code have one length."""
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


def _pick(lengths: int, algebra: Any) -> NDArray[Any]:
    """One in the middle of zeros."""
    side = lengths + 2 * PADDING
    table = empty_table(algebra, (1, 2 * side))
    table[0, side] = algebra.one
    return table


def _depth(tree: EndTrees) -> int:
    """Symbols of the longest end."""
    nodes, depth = np.arange(len(tree.child)), 0
    while True:
        below = tree.child[nodes]
        nodes = below[below >= 0]
        if not nodes.size:
            return depth
        depth += 1


def make_scratch(
    chain: WeightedChain, parts: GraphParts, longest: int, algebra: Any = PROBABILITY, *, plain: bool = False
) -> WeightedScratch | PairScratch:
    """Memory for texts of up to `longest` codes; `plain` if every code stands for a single symbol."""
    nodes = 2 + longest * int(parts.nodes.max())
    inner = int(parts.before_first.max(initial=0))
    edges = 1 + longest * (inner + int(parts.entries.max()) * max(int(parts.exits.max()), 1))
    contexts = chain.suffix.weight.shape[1]
    width = padded(contexts)
    left, right = (padded(_depth(tree) + 1) for tree in (chain.prefix, chain.suffix))
    widest = max(int(parts.entries.max()), int(parts.exits.max()), 4)
    deepest = int(parts.place.max()) * longest + 1
    graph = PathGraph(np.zeros(nodes, np.uint8)) if plain else _text_graph(nodes, edges)

    stack = np.zeros((deepest * widest + 8, 2), np.int64)

    def zeros(columns: int) -> NDArray[Any]:
        return empty_table(algebra, (nodes, columns))

    before, after = zeros(chain.prefix.weight.shape[1]), zeros(width)
    if not len(chain.fragment_root):
        return PairScratch(graph, before, after, zeros(1), np.zeros((nodes, 3), np.int64), stack)
    return WeightedScratch(
        graph=graph,
        before=before,
        left=zeros(1),
        after=after,
        right=zeros(width),
        left_levels=zeros(left),
        right_levels=zeros(right * contexts),
        inserted=zeros(width),
        stack=stack,
    )


def _text_graph(nodes: int, edges: int) -> TextGraph:
    return TextGraph(
        symbol=np.zeros(nodes, np.uint8),
        place=np.zeros(nodes, np.int64),
        before_first=np.zeros(nodes + 1, np.int64),
        before=np.zeros(edges, np.int64),
        after_first=np.zeros(nodes + 2, np.int64),
        after=np.zeros(edges, np.int64),
    )
