"""Trees of gene ends, which of them V and J calls allow, and a model as tables of the chain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.dp.chain.graphs import GraphParts, PathGraph, TextGraph, taken
from plait.dp.chain.insertions import Insertion
from plait.dp.chain.tables import EndTrees
from plait.dp.chain.weigh import PairScratch, WeightedChain, WeightedScratch
from plait.errors import InvalidInput
from plait.lang.lanes import PADDING, padded
from plait.vdj.calls import STATUSES, as_column
from plait.vdj.germline.allele import Allele, NameIndex, canonical, split_call
from plait.vdj.model.recombination_model import RecombinationModel

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EndShape:
    """A set of trees, and which cuts of which genes end at which node.

    `child` is (nodes, 4) as in `plait.dp.chain.tables.EndTrees`; `root` (genes,) is the tree of each gene
    alone, `together` that of all functional genes, -1 where every gene has its own. `node`, `gene`,
    `deletion` and `deletion_right` are (n,): what a deletion (of D genes: two) leaves of a gene ends at a
    node.
    """

    child: NDArray[np.int32]
    root: NDArray[np.int32]
    together: int
    node: _Ints
    gene: _Ints
    deletion: _Ints
    deletion_right: _Ints

    def trees(self, weight: NDArray[np.float64]) -> EndTrees:
        """The trees, from the weight (n, contexts) of every part."""
        table = np.zeros((len(self.child), weight.shape[1]))
        np.add.at(table, self.node, weight)
        return EndTrees(self.child, table)

    def parts(self, counts: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers of every part (n, contexts), from those of nodes and the weights of parts."""
        whole = self.trees(weight).weight
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = np.where(whole > 0, counts / whole, 0.0)
        found: NDArray[np.float64] = weight * rate[self.node]
        return found


@dataclass(frozen=True, slots=True)
class ModelShapes:
    """Trees of the V, D and J genes of a model; `words` is one tree of all D genes."""

    v: EndShape
    d: EndShape
    j: EndShape
    words: EndShape


class _Grower:
    def __init__(self) -> None:
        self.child: list[list[int]] = []
        self.owners: list[tuple[int, int, int, int]] = []

    def root(self) -> int:
        self.child.append([-1] * 4)
        return len(self.child) - 1

    def path(self, root: int, codes: Sequence[int]) -> list[int]:
        """The nodes of a word, the root first."""
        nodes = [root]
        for code in codes:
            if self.child[nodes[-1]][code] < 0:
                self.child[nodes[-1]][code] = self.root()
            nodes.append(self.child[nodes[-1]][code])
        return nodes

    def shape(self, roots: list[int], together: int) -> EndShape:
        owners = np.array(self.owners, np.int64).reshape(-1, 4)
        return EndShape(
            np.array(self.child, np.int32).reshape(-1, 4),
            np.array(roots, np.int32),
            together,
            *(np.ascontiguousarray(column) for column in owners.T),
        )


def model_shapes(model: RecombinationModel) -> ModelShapes:
    """Trees of all genes of a model; the junction keeps at least one nucleotide of V and of J."""
    return ModelShapes(
        _ends(model, "V", model.p_v_deletions.shape[1]),
        _words(model, apart=True),
        _ends(model, "J", model.p_j_deletions.shape[1]),
        _words(model, apart=False),
    )


def _codes(text: str) -> list[int]:
    return ["ACGT".index(letter) for letter in text]


def _ends(model: RecombinationModel, segment: Literal["V", "J"], cuts: int) -> EndShape:
    grower = _Grower()
    together = grower.root()
    roots = []
    for k, gene in enumerate(model.v if segment == "V" else model.j):
        codes = _codes(model.extended(segment, k))
        if segment == "J":
            codes.reverse()
        roots.append(grower.root())
        for root in (roots[-1], together) if gene.functional else (roots[-1],):
            for kept, node in enumerate(grower.path(root, codes)):
                if kept > 0 and len(codes) - kept < cuts:
                    grower.owners.append((node, k, len(codes) - kept, 0))
    return grower.shape(roots, together)


def _words(model: RecombinationModel, *, apart: bool) -> EndShape:
    grower = _Grower()
    together = -1 if apart else grower.root()
    roots: list[int] = []
    left, right = model.p_d_deletions.shape[-2:]
    for k in range(len(model.d)):
        codes = _codes(model.extended("D", k))
        roots.append(grower.root() if apart else together)
        for s in range(min(left, len(codes) + 1)):
            for size, node in enumerate(grower.path(roots[-1], codes[s:])):
                if len(codes) - s - size < right:
                    grower.owners.append((node, k, s, len(codes) - s - size))
    if not grower.child:
        grower.root()
    return grower.shape(roots, together)


class GivenGenes(NamedTuple):
    """What the rows of a column mean; many rows mean the same.

    `codes` (n,) is the distinct call of each row. The roots of the trees of call c are
    ``root[first[c]:first[c + 1]]``, its status, an index into `plait.vdj.calls.STATUSES`, ``status[c]``,
    and its genes in the model ``genes[c]``.
    """

    codes: NDArray[np.int64]
    first: NDArray[np.int64]
    root: NDArray[np.int32]
    status: NDArray[np.uint8]
    genes: list[tuple[int, ...]]

    def spread(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Roots of the given rows, one list after the other: where each begins, and the roots."""
        return taken(self.first, self.root, self.codes[rows])


class GeneCalls:
    """Reads calls of one kind of gene: `segment` is ``"v"`` or ``"j"``, `shape` the trees of these genes.

    A row without a call cannot be used (`missing` is ``"refused"``), or may be made with any functional gene
    (``"any"``).
    """

    def __init__(
        self,
        model: RecombinationModel,
        segment: Literal["v", "j"],
        shape: EndShape,
        missing: Literal["refused", "any"] = "refused",
    ) -> None:
        self._segment = segment
        self._shape = shape
        self._missing = missing
        self.genes = model.v if segment == "v" else model.j
        self._index = NameIndex([_named(gene.name) for gene in self.genes])
        self._of_gene: dict[str, list[int]] = {}
        for k, gene in enumerate(self.genes):
            self._of_gene.setdefault(canonical(gene.gene), []).append(k)
        self._functional = tuple(k for k, gene in enumerate(self.genes) if gene.functional)

    def read(self, calls: Any, n: int) -> GivenGenes:
        """What a column of `n` calls means; None is no calls at all: all functional genes.

        InvalidInput if there are more or fewer, or they are no texts.
        """
        together = np.array([self._shape.together], np.int32)
        if calls is None:
            return GivenGenes(
                np.zeros(n, np.int64), np.array([0, 1]), together, np.zeros(1, np.uint8), [self._functional]
            )
        column = as_column(calls, f"{self._segment}_call")
        if len(column) != n:
            raise InvalidInput(
                f"{self._segment}_call", found=f"{len(column)} calls", expected=f"{n}, one for each junction"
            )
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        texts = encoded.dictionary.to_pylist()
        found = [self.resolve(text) for text in texts]
        roots = [
            together if self._any(text) else self._shape.root[list(genes)]
            for text, (_, genes) in zip(texts, found, strict=True)
        ]
        return GivenGenes(
            codes,
            np.concatenate([[0], np.cumsum([part.size for part in roots], dtype=np.int64)]),
            np.concatenate([np.zeros(0, np.int32), *roots]),
            np.array([STATUSES.index(reason) for reason, _ in found], np.uint8),
            [genes for _, genes in found],
        )

    def _any(self, call: str | None) -> bool:
        return self._missing == "any" and (call is None or not call.strip())

    def resolve(self, call: str | None) -> tuple[str, tuple[int, ...]]:
        """A status, and the genes that a name or a list of names means; a gene means all its alleles."""
        if self._any(call):
            return "ok", self._functional
        if call is None or not call.strip():
            return f"missing_{self._segment}_call", ()
        found: list[int] = []
        for name in split_call(call) or (call,):
            one = self._index.resolve_all(name)
            known = [gene for gene in one if gene is not None]
            if not one or len(known) < len(one):
                return f"unknown_{self._segment}_call", ()
            for gene in known:
                whole = "*" not in name or name.endswith("*00")
                found += self._of_gene[canonical(self.genes[gene].gene)] if whole else [gene]
        genes = tuple(dict.fromkeys(found))
        if all(self.genes[gene].anchor is None for gene in genes):
            return f"no_{self._segment}_anchor", ()
        return "ok", genes


def _named(name: str) -> Allele:
    return Allele(name=name, gene=name.partition("*")[0], segment="V", sequence="")


class PartWeights(NamedTuple):
    """Weights (n, contexts) of all parts of genes, in the order of `plait.vdj.model.weights.EndShape`."""

    v: NDArray[np.float64]
    d: NDArray[np.float64]
    j: NDArray[np.float64]


def part_weights(model: RecombinationModel, shapes: ModelShapes) -> PartWeights:
    """Weights of all parts under a model.

    With D genes, V has one context and J one for every D. Without, both have one for every J, since V and J
    are chosen together: V brings the weight of the choice.
    """
    v, d, j = shapes.v, shapes.d, shapes.j
    of_v = model.p_v[v.gene] * model.p_v_deletions[v.gene, v.deletion]
    of_j = model.p_j_deletions[j.gene, j.deletion]
    if model.d:
        of_d = model.p_d_deletions[d.gene, d.deletion, d.deletion_right]
        return PartWeights(of_v[:, None], of_d[:, None], of_j[:, None] * model.p_dj[0].T[j.gene])
    given = _pad(np.broadcast_to(model.p_dj[:, 0], (len(model.v), len(model.j))))
    return PartWeights(
        of_v[:, None] * given[v.gene], np.zeros((0, 1)), of_j[:, None] * _pad(np.eye(len(model.j)))[j.gene]
    )


def weighted_chain(model: RecombinationModel, shapes: ModelShapes) -> WeightedChain:
    """The tables of a model; `shapes` are `model_shapes` of it, or of a model with the same genes."""
    weights = part_weights(model, shapes)
    own = _pad(np.eye(max(len(model.d), 1)))[shapes.words.gene]
    left, right = np.ascontiguousarray(model.p_vd_length), np.ascontiguousarray(model.p_dj_length)
    # A one in the middle of zeros.
    side = max(left.size, right.size) + 2 * PADDING
    pick = np.zeros((1, 2 * side))
    pick[0, side] = 1.0
    return WeightedChain(
        insertion=Insertion(np.int64(0)),
        v=shapes.v.trees(weights.v),
        j=shapes.j.trees(weights.j),
        d=shapes.d.trees(weights.d),
        d_root=shapes.d.root,
        words=shapes.words.trees(weights.d * own),
        left_none=left[:1].copy(),
        right_none=right[:1].copy(),
        left_length=np.pad(left[:0:-1], PADDING)[None],
        right_length=np.pad(right[1:], PADDING)[None],
        margin=PADDING,
        pick=pick,
        left_first=np.ascontiguousarray(model.vd_first),
        right_first=np.ascontiguousarray(model.dj_first),
        left_step=np.ascontiguousarray(model.vd_steps),
        right_step=np.ascontiguousarray(model.dj_steps),
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
    chain: WeightedChain, parts: GraphParts, longest: int, *, plain: bool = False
) -> WeightedScratch | PairScratch:
    """Memory for texts of up to `longest` codes; `plain` if every code stands for a single symbol."""
    nodes = 2 + longest * int(parts.nodes.max())
    inner = int(parts.before_first.max(initial=0))
    edges = 1 + longest * (inner + int(parts.entries.max()) * max(int(parts.exits.max()), 1))
    contexts = chain.j.weight.shape[1]
    width = padded(contexts)
    left, right = (padded(_depth(tree) + 1) for tree in (chain.v, chain.j))
    widest = max(int(parts.entries.max()), int(parts.exits.max()), 4)
    deepest = int(parts.place.max()) * longest + 1
    graph = PathGraph(np.zeros(nodes, np.uint8)) if plain else _text_graph(nodes, edges)

    stack = np.zeros((deepest * widest + 8, 2), np.int64)

    def zeros(columns: int) -> NDArray[Any]:
        return np.zeros((nodes, columns))

    before, after = zeros(chain.v.weight.shape[1]), zeros(width)
    if not len(chain.d_root):
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
