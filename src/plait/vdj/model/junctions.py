"""Junctions of tables: nucleotides, amino acids and motifs, encoded for the chain or translated.

Also the trees of gene ends, which of them V and J calls allow, and a model as tables of the chain.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.alphabets import AMINO_ACID_OF_MASKS, GENETIC_CODE, IUPAC_MASK, encode
from plait.dp.chain.graphs import CodedJunctions, GraphParts, PathGraph, ReadGraph, TextGraph, taken
from plait.dp.chain.insertions import Insertion
from plait.dp.chain.tables import EndTrees
from plait.dp.chain.weigh import PairScratch, WeightedChain, WeightedScratch
from plait.errors import InvalidInput
from plait.formats.layouts import Layout, LayoutChoice
from plait.formats.rearrangements import RearrangementReader
from plait.lang.lanes import PADDING, padded
from plait.run.rows import rows_per_block
from plait.vdj.airr import translations
from plait.vdj.calls import STATUSES, as_column, encode_column, length_statuses
from plait.vdj.germline.germline_set import Allele, NameIndex, canonical, split_call
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
    """Weights (n, contexts) of all parts of genes, in the order of `plait.vdj.model.junctions.EndShape`."""

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
    chain: WeightedChain,
    parts: GraphParts,
    longest: int,
    *,
    plain: bool = False,
    error_rate: float | None = None,
) -> WeightedScratch | PairScratch:
    """Memory for texts of up to `longest` codes; `plain` if every code stands for a single symbol.

    With an `error_rate` plain texts are what was read of others, with so many wrong symbols a symbol.
    """
    nodes = 2 + longest * (int(parts.nodes.max()) if error_rate is None else 4)
    inner = int(parts.before_first.max(initial=0))
    edges = 1 + longest * (inner + int(parts.entries.max()) * max(int(parts.exits.max()), 1))
    contexts = chain.j.weight.shape[1]
    width = padded(contexts)
    left, right = (padded(_depth(tree) + 1) for tree in (chain.v, chain.j))
    widest = max(int(parts.entries.max()), int(parts.exits.max()), 4)
    deepest = int(parts.place.max()) * longest + 1
    graph: PathGraph | ReadGraph | TextGraph
    if error_rate is not None:
        rate = np.array([1.0 - error_rate, error_rate / 3.0])
        read, way = np.zeros(longest + 1, np.uint8), np.zeros((longest + 1, 2))
        graph = ReadGraph(np.zeros(nodes, np.uint8), read, rate, way)
    else:
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


TextKind: TypeAlias = Literal["nt", "aa", "motif"]

_ALL_CODONS: Final = tuple(product("TCAG", repeat=3))
#: Codons of each amino acid and of ``*``, the stop.
CODONS: Final[Mapping[str, tuple[str, ...]]] = {
    acid: tuple("".join(codon) for codon, own in zip(_ALL_CODONS, GENETIC_CODE, strict=True) if own == acid)
    for acid in sorted(set(GENETIC_CODE))
}
#: Letters for amino acids, and for sets of them; X is any of the twenty.
AMINO_ACIDS: Final[Mapping[str, str]] = {
    **{acid: acid for acid in CODONS},
    "B": "DN",
    "J": "IL",
    "X": "".join(acid for acid in CODONS if acid != "*"),
    "Z": "EQ",
}
#: Nucleotides that each IUPAC letter stands for.
NUCLEOTIDES: Final[Mapping[str, str]] = {
    letter: "".join(base for base in "ACGT" if IUPAC_MASK[ord(letter)] & IUPAC_MASK[ord(base)])
    for letter in "ACGTRYSWKMBDHVN"
}
_TOKEN = re.compile(r"\[([A-Za-z*]+)\]|([A-Za-z*.])")
#: Codes that one table of parts may have.
_MOST_CODES = 255
_SHORTEST: Final[Mapping[str, int]] = {"nt": 6, "aa": 2, "motif": 2}
_LONGEST: Final[Mapping[str, int]] = {"nt": 1000, "aa": 333, "motif": 333}


_Words: TypeAlias = tuple[tuple[str, ...], ...]


class TooManySets(InvalidInput):
    """Motifs of a batch have more sets of amino acids than there are codes; fewer motifs may do."""


class EncodedTexts(NamedTuple):
    """A column of n junctions, ``codes[start[i]:start[i] + length[i]]``.

    `parts` and `words` (over A, C, G, T) say what each code stands for; `status` (n,) are indices into
    `plait.vdj.calls.STATUSES`.
    """

    parts: GraphParts
    codes: NDArray[np.uint8]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    status: NDArray[np.uint8]
    words: tuple[tuple[str, ...], ...]


@cache
def _alphabet(kind: TextKind) -> tuple[GraphParts, NDArray[np.uint8], _Words]:
    """Parts of nucleotides or amino acids, the code of each byte, 255 for others, and the words of codes."""
    sets: Mapping[str, Sequence[str]] = NUCLEOTIDES
    if kind != "nt":
        sets = {letter: _codons(acids) for letter, acids in AMINO_ACIDS.items()}
    code = np.full(256, 255, np.uint8)
    for k, letter in enumerate(sets):
        code[ord(letter)] = code[ord(letter.lower())] = k
    return parts_of(sets.values()), code, tuple(tuple(words) for words in sets.values())


def _codons(acids: str) -> list[str]:
    return [codon for acid in acids for codon in CODONS[acid]]


def encode_texts(junctions: pa.Array, kind: TextKind) -> EncodedTexts:
    """Encode a column of junctions.

    Nucleotides may be IUPAC letters; amino acids may be X, B, J, Z and ``*``. In a motif ``[...]`` stands for
    one of several amino acids, ``.`` for any. InvalidInput if there is no such kind; TooManySets if motifs
    have more sets of amino acids than there are codes.
    """
    if kind not in _SHORTEST:
        raise InvalidInput("kind", found=repr(kind), expected=", ".join(_SHORTEST))
    if kind == "motif":
        return _encode_motifs(junctions.to_pylist())
    parts, code, words = _alphabet(kind)
    raw = encode_column(junctions, code, 255, _SHORTEST[kind], _LONGEST[kind])
    return EncodedTexts(parts, *raw, words)


def _encode_motifs(motifs: Sequence[str | None]) -> EncodedTexts:
    known: dict[str, int] = {}
    codes: list[int] = []
    length, status = [], np.zeros(len(motifs), np.uint8)
    for k, motif in enumerate(motifs):
        found = _acid_sets(motif or "")
        if found is None:
            status[k] = STATUSES.index("invalid_symbol")
            found = []
        length.append(len(found))
        codes += [known.setdefault(acids, len(known)) for acids in found]
    if len(known) > _MOST_CODES:
        raise TooManySets(
            "motifs",
            found=f"{len(known)} different sets of amino acids",
            expected=f"at most {_MOST_CODES} in a batch",
        )
    sizes = np.array(length, np.int64)
    ok = status == 0
    status[ok] = length_statuses(status[ok], sizes[ok], _SHORTEST["motif"], _LONGEST["motif"])
    words = tuple(tuple(_codons(acids)) for acids in known) or (("A",),)
    parts = parts_of(words)
    return EncodedTexts(parts, np.array(codes, np.uint8), np.cumsum(sizes) - sizes, sizes, status, words)


def _acid_sets(motif: str) -> list[str] | None:
    """The amino acids at every position of a motif; None if it is not one."""
    found, at = [], 0
    for token in _TOKEN.finditer(motif):
        if token.start() != at:
            return None
        at = token.end()
        letters = (token[1] or token[2]).upper().replace(".", "X")
        if not set(letters) <= set(AMINO_ACIDS):
            return None
        found.append("".join(sorted({acid for letter in letters for acid in AMINO_ACIDS[letter]})))
    return found if at == len(motif) else None


class EncodedJunctions(NamedTuple):
    """A batch of n rows; `texts` are the rows that can be used, in order, `rows` which these are.

    `parts` is what each code stands for; `status` (n,) are indices into `plait.vdj.calls.STATUSES`, 0 where
    a row can be used. `columns` are the junctions and the genes of all rows.
    """

    parts: GraphParts
    texts: CodedJunctions
    rows: NDArray[np.int64]
    status: NDArray[np.uint8]
    columns: tuple[EncodedTexts, GivenGenes, GivenGenes]


class JunctionEncoder:
    """Encodes columns for models with the same genes.

    Parameters
    ----------
    model
        A model with these genes.
    shapes
        Its shapes, where they are known.
    missing
        What a row without a call is: one that may be made with any functional gene (``"any"``), or one that
        cannot be used (``"refused"``).
    """

    def __init__(
        self,
        model: RecombinationModel,
        *,
        shapes: ModelShapes | None = None,
        missing: Literal["refused", "any"] = "any",
    ) -> None:
        found = model_shapes(model) if shapes is None else shapes
        self.calls = {
            "v": GeneCalls(model, "v", found.v, missing),
            "j": GeneCalls(model, "j", found.j, missing),
        }

    def encode(
        self, junctions: Any, v_call: Any = None, j_call: Any = None, *, kind: TextKind = "nt"
    ) -> EncodedJunctions:
        """Encode a batch.

        Parameters
        ----------
        junctions
            Sequence or Arrow array of texts, from the conserved Cys to the conserved Phe or Trp.
        v_call, j_call
            Genes or alleles, or lists of them, that each junction may be made with; None for no calls.
        kind
            What the junctions are: ``"nt"``, ``"aa"`` or ``"motif"``.

        Raises
        ------
        InvalidInput
            If the columns are not of one length.
        """
        columns = self.columns(as_column(junctions), v_call, j_call, kind)
        texts, *calls = columns
        status = texts.status.copy()
        for given in calls:
            undecided = status == 0
            status[undecided] = given.status[given.codes[undecided]]
        rows = np.flatnonzero(status == 0)
        lists = (one for given in calls for one in given.spread(rows))
        batch = CodedJunctions(texts.codes, texts.start[rows], texts.length[rows], *lists)
        return EncodedJunctions(texts.parts, batch, rows, status, columns)

    def columns(
        self, junctions: pa.Array, v_call: Any, j_call: Any, kind: TextKind = "nt"
    ) -> tuple[EncodedTexts, GivenGenes, GivenGenes]:
        """What the columns say, row by row; errors as of `encode`.

        Parameters
        ----------
        junctions, v_call, j_call, kind
            As for `encode`; junctions are an array.
        """
        n = len(junctions)
        v, j = self.calls["v"].read(v_call, n), self.calls["j"].read(j_call, n)
        return encode_texts(junctions, kind), v, j


def split_texts(
    parts: GraphParts, texts: CodedJunctions, first: int, last: int
) -> list[tuple[bool, NDArray[np.int64]]]:
    """Those of `first` to `last` of codes for one symbol each (True), and others, counted from `first`."""
    start, length = texts.start[first:last], texts.length[first:last]
    low, high = (int(start.min()), int((start + length).max())) if start.size else (0, 0)
    # Between them may be codes of junctions that cannot be used.
    many = np.zeros(256, np.bool_)
    many[: parts.nodes.size] = parts.nodes > 1
    several = low + np.flatnonzero(many.take(texts.codes[low:high]))
    plain = np.searchsorted(several, start + length) == np.searchsorted(several, start)
    found = [(kind, np.flatnonzero(plain == kind)) for kind in (True, False)]
    return [(kind, rows) for kind, rows in found if rows.size]


#: Which calls of a row are taken for what it was made of: V and J, one of them, or none.
GivenCalls: TypeAlias = Literal["ignore", "use", "v", "j"]

#: Name of the layout of text without a header line.
LINES: Final = "lines"
_USED: Final = {"use": "vj", "v": "v", "j": "j", "ignore": ""}


class JunctionColumns(NamedTuple):
    """Where junctions and calls stand in the columns that are worked on; -1 for what is not there.

    `v` and `j` are calls that are used, `named_v` and `named_j` calls used or not. The methods take the
    columns that are worked on.
    """

    nucleotides: int
    acids: int
    v: int
    j: int
    named_v: int = -1
    named_j: int = -1

    def texts(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Junctions as nucleotides."""
        return columns[self.nucleotides]

    def amino_acids(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Junctions as amino acids; those that the table lacks are translated."""
        given = columns[self.acids].cast(pa.string()) if self.acids >= 0 else None
        if self.nucleotides < 0:
            return given
        if given is None:
            return translations(columns[self.nucleotides])
        lacking = pc.equal(pc.fill_null(given, ""), "")
        if not pc.any(lacking).as_py():
            return given
        made = translations(columns[self.nucleotides].filter(lacking))
        return pc.replace_with_mask(given, lacking, made)

    def calls(self, columns: Sequence[pa.Array]) -> dict[str, pa.Array]:
        """V and J calls, those that are used."""
        return {name: columns[at] for name, at in (("v", self.v), ("j", self.j)) if at >= 0}

    def named(self, columns: Sequence[pa.Array]) -> dict[str, pa.Array]:
        """V and J calls that are there, used or not."""
        return {name: columns[at] for name, at in (("v", self.named_v), ("j", self.named_j)) if at >= 0}


class JunctionTable:
    """A table and where its junctions and calls are; made by `open_junctions`.

    `nucleotides` and `acids` are columns of junctions, None if there is none; `used` the calls that are used,
    as ``"vj"``. `paths` are the files as given, `columns` those that are worked on, `places` what they are.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        reader: RearrangementReader,
        nucleotides: str | None,
        acids: str | None,
        used: str,
    ) -> None:
        self.paths = [os.fspath(path) for path in paths]
        self.reader = reader
        calls = (reader.roles[f"{s}_call"] if s in used else None for s in "vj")
        named = (reader.roles.get(f"{s}_call") for s in "vj")
        names = [nucleotides, acids, *calls, *named]
        self.columns = list(dict.fromkeys(name for name in names if name is not None))
        self.places = JunctionColumns(*(self.columns.index(name) if name else -1 for name in names))

    def nucleotides(self, block: pa.RecordBatch) -> pa.Array:
        """Junctions of a block."""
        return self.places.texts(block.select(self.columns).columns)

    def calls(self, block: pa.RecordBatch) -> tuple[pa.Array | None, pa.Array | None]:
        """V and J calls of a block, None for those that are not used."""
        found = self.places.calls(block.select(self.columns).columns)
        return found.get("v"), found.get("j")


def open_junctions(
    inputs: Sequence[str | os.PathLike[str]],
    *,
    layout: LayoutChoice,
    acids: bool,
    calls: GivenCalls,
    block_rows: int,
    fewest_rows: int | None = None,
    nucleotides: bool = True,
) -> JunctionTable:
    """Open tables; only the columns that are used need to be there.

    The layout ``"lines"`` is text without a header line: a junction a line, as amino acids where nucleotides
    are not asked for; behind it, if need be, V and J calls. `acids` and `nucleotides` say whether these will
    do, `calls` which calls are used. `fewest_rows` is `block_rows` for rows that take much memory. Errors as
    of `plait.formats.rearrangements.open_rearrangements`.
    """
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="at least one file")
    given = _lines(nucleotides, acids) if layout == LINES else layout
    junctions = (*(("junction",) if nucleotides else ()), *(("junction_aa",) if acids else ()))
    required = [junctions, *((f"{segment}_call",) for segment in _USED[calls])]
    reader = RearrangementReader(inputs, layout=given, block_rows=block_rows, required=required)
    if fewest_rows is not None:
        reader.block_rows = rows_per_block(reader.sampled_row_bytes(), fewest_rows, block_rows)
    first = reader.roles[junctions[0]]
    acid = "junction_aa" if "junction_aa" in reader.schema.names else None
    return JunctionTable(inputs, reader, first if first == "junction" else None, acid, _USED[calls])


def _lines(nucleotides: bool, acids: bool) -> Layout:
    columns = [*(["junction"] if nucleotides else []), *(["junction_aa"] if acids else [])]
    if not columns:
        raise InvalidInput("layout", found="lines of nothing", expected="nucleotides or amino acids")
    return Layout(
        name=LINES,
        description="text without a header line",
        columns={name: (name,) for name in (*columns, "v_call", "j_call")},
        header=(*columns, "v_call", "j_call"),
        names="airr",
    )


#: uint8 (64,): letter of the amino acid of each codon; its digits, 0 to 3 for A, C, G and T, are its number.
ACID_OF_CODON: Final = AMINO_ACID_OF_MASKS.reshape(16, 16, 16)[np.ix_(*[encode("ACGT")] * 3)].ravel()
#: Ends of genes in the order in which models have them: names of their deletions, and of P nucleotides.
END_COLUMNS: Final = (("v_3", "p3v"), ("d_5", "p5d"), ("d_3", "p3d"), ("j_5", "p5j"))


def choice_columns(
    model: RecombinationModel, fields: NDArray[np.int32], known: NDArray[np.bool_]
) -> dict[str, pa.Array]:
    """Calls, deletions and P nucleotides of n scenarios; null where nothing is known, and for D without D.

    `fields` are (n, 7 or more): V, D, J, and cuts of V, of D at 5' and 3', and of J, which count from the
    longest P extension.
    """
    of_d = known & bool(model.d)
    columns = {}
    for place, segment in enumerate("vdj"):
        names = pa.array([gene.name for gene in getattr(model, segment)], pa.string())
        there = of_d if segment == "d" else known
        columns[f"{segment}_call"] = names.take(int32_where(fields[:, place], there))
    for place, ((end, short), most) in enumerate(zip(END_COLUMNS, model.palindromes, strict=True), 3):
        cut, there = fields[:, place] - most, of_d if end.startswith("d") else known
        columns[f"{end}_deletion"] = int32_where(np.maximum(cut, 0), there)
        columns[f"{short}_length"] = int32_where(np.maximum(-cut, 0), there)
    return columns


def int32_where(values: NDArray[Any], known: NDArray[np.bool_]) -> pa.Array:
    """Numbers as int32, null where they are not known."""
    return pa.array(values.astype(np.int32), mask=~known)
