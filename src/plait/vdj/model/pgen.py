"""Generation probabilities of junctions, and why some cannot be made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait._version import __version__
from plait.devices.choice import resolve, used_devices
from plait.dp.chain.launches import WEIGHTS, WeighBatch
from plait.types import Provenance
from plait.vdj.calls import STATUSES, as_column
from plait.vdj.model.junctions import EncodedTexts, JunctionEncoder, TextKind, TooManySets, split_texts
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.weights import (
    EndShape,
    GivenGenes,
    ModelShapes,
    make_scratch,
    model_shapes,
    weighted_chain,
)

#: Reasons for a generation probability of zero, in the order in which they are looked for.
ZERO_REASONS: Final = (
    "v_never_chosen",
    "j_never_chosen",
    "genes_never_together",
    "v_not_matching",
    "j_not_matching",
    "too_many_insertions",
    "no_scenario",
)
#: Every value of the status column: ``"ok"``, reasons for having no number, and reasons for zero.
PGEN_STATUSES: Final = (*STATUSES, *ZERO_REASONS)

_CODE: Final = {reason: PGEN_STATUSES.index(reason) for reason in ZERO_REASONS}
_Ints = NDArray[np.int64]


class ZeroReasons:
    """Finds reasons for zeros; `shapes` are the trees of the genes of the model."""

    def __init__(self, model: RecombinationModel, shapes: ModelShapes) -> None:
        self._p_dj = model.p_dj.sum(axis=1)
        self._insertions = sum(int(np.flatnonzero(p)[-1]) for p in (model.p_vd_length, model.p_dj_length))
        self._chosen = model.p_v > 0, self._p_dj.max(axis=0) > 0
        self._ends = [
            (shape, _reached(shape, p[shape.gene, shape.deletion] * chosen[shape.gene]))
            for shape, chosen, p in (
                (shapes.v, self._chosen[0], model.p_v_deletions),
                (shapes.j, self._chosen[1], model.p_j_deletions),
            )
        ]

    def reasons(self, rows: _Ints, texts: EncodedTexts, v: GivenGenes, j: GivenGenes) -> NDArray[np.uint8]:
        """Why the texts `rows` of a column cannot be made of their genes: indices into `PGEN_STATUSES`.

        `v` and `j` are the genes that each row of the column may be made of.
        """
        pairs, of_pair = np.unique(np.stack([v.codes[rows], j.codes[rows]]), axis=1, return_inverse=True)
        known = [self._of_genes(v.genes[a], j.genes[b]) for a, b in pairs.T.tolist()]
        found = np.array(known, np.uint8)[of_pair.ravel()]
        rest = np.flatnonzero(found == 0)
        at, words = rows[rest], _table_of(texts.words)
        kept_v = _longest(*self._ends[0], words, texts, at, *v.spread(at))
        kept_j = _longest(*self._ends[1], words[:, :, ::-1], texts, at, *j.spread(at), backwards=True)
        gap = texts.length[at] * words.shape[2] - kept_v - kept_j
        unknown = np.where(gap > self._insertions, _CODE["too_many_insertions"], _CODE["no_scenario"])
        unknown[kept_j == 0] = _CODE["j_not_matching"]
        unknown[kept_v == 0] = _CODE["v_not_matching"]
        found[rest] = unknown
        return found

    def _of_genes(self, v_genes: tuple[int, ...], j_genes: tuple[int, ...]) -> int:
        """What the genes alone say; 0 where they do not."""
        v, j = (
            [k for k in genes if chosen[k]]
            for genes, chosen in zip((v_genes, j_genes), self._chosen, strict=True)
        )
        if not v or not j:
            return _CODE["j_never_chosen" if v else "v_never_chosen"]
        if len(self._p_dj) > 1 and not self._p_dj[np.ix_(v, j)].any():
            return _CODE["genes_never_together"]
        return 0


def _reached(shape: EndShape, p: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether a gene can be cut at each node of its trees, from the probabilities of parts."""
    found: NDArray[np.bool_] = np.bincount(shape.node, p, len(shape.child)) > 0
    return found


def _table_of(words: tuple[tuple[str, ...], ...]) -> NDArray[np.int8]:
    """The words of each code as numbers of bases, int8 (codes, most words, bases), -1 for none."""
    table = np.full((len(words), max(map(len, words)), len(words[0][0])), -1, np.int8)
    for row, some in zip(table, words, strict=True):
        row[: len(some)] = [["ACGT".index(base) for base in word] for word in some]
    return table


def _longest(
    shape: EndShape,
    possible: NDArray[np.bool_],
    words: NDArray[np.int8],
    texts: EncodedTexts,
    rows: _Ints,
    first: _Ints,
    root: NDArray[np.int32],
    *,
    backwards: bool = False,
) -> _Ints:
    """Bases of the longest part of a gene that each text begins with (or ends, `backwards`), 0 for none.

    Text ``rows[i]`` goes along the trees with roots ``root[first[i]:first[i + 1]]``; `possible`, (nodes,):
    whether a gene can be cut there.
    """
    kept, t = np.zeros(rows.size, np.int64), 0
    owner, node = np.repeat(np.arange(rows.size), np.diff(first)), root.astype(np.int64)
    while owner.size:
        on = t < texts.length[rows[owner]]
        owner, node = owner[on], node[on]
        at = rows[owner]
        code = texts.codes[texts.start[at] + (texts.length[at] - 1 - t if backwards else t)]
        way, word = np.nonzero(words[code, :, 0] >= 0)
        owner, node, bases = owner[way], node[way], words[code[way], word]
        for k in range(words.shape[2]):
            node = shape.child[node, bases[:, k]].astype(np.int64)
            on = node >= 0
            owner, node, bases = owner[on], node[on], bases[on]
            kept[owner[possible[node]]] = t * words.shape[2] + k + 1
        if owner.size > at.size:
            # Words that lead to one node go on as one.
            owner, node = np.divmod(np.unique(owner * len(shape.child) + node), len(shape.child))
        t += 1
    return kept


@dataclass(frozen=True, slots=True)
class Pgen:
    """Generation probabilities of n junctions.

    Attributes
    ----------
    status
        uint8 (n,): index into `plait.vdj.model.PGEN_STATUSES`. ``"ok"`` where the probability is above zero;
        else a reason for having no number, or for zero.
    pgen
        float64 (n,); NaN where there is no number.
    provenance
        How the numbers were made.
    """

    status: NDArray[np.uint8]
    pgen: NDArray[np.float64]
    provenance: Provenance


class GenerationProbability:
    """Computes how probable junctions are under a model.

    Parameters
    ----------
    model
        The model.
    threads
        How many threads; by default those of the settings.
    device
        As for `plait.vdj.count_paths`: ``"cpu"``, ``"auto"`` (the first GPU that can be used, else the CPU),
        ``"cuda"``, ``"cuda:N"``, ``"cuda:all"`` or ``"reference"`` (plain Python).

    Raises
    ------
    InvalidInput
        If there is no such device.
    TargetUnavailable
        If CUDA is asked for and cannot be used.
    """

    def __init__(self, model: RecombinationModel, *, threads: int | None = None, device: str = "cpu") -> None:
        self.model = model
        self._target = resolve(device, threads)
        self._shapes = model_shapes(model)
        self._chain = weighted_chain(model, self._shapes)
        self._encoder = JunctionEncoder(model, shapes=self._shapes, missing="refused")
        self._reasons = ZeroReasons(model, self._shapes)

    def compute(
        self,
        junctions: Sequence[str | None] | pa.Array,
        v_call: Sequence[str | None] | pa.Array | None = None,
        j_call: Sequence[str | None] | pa.Array | None = None,
        *,
        kind: TextKind = "nt",
    ) -> Pgen:
        """Probabilities of junctions.

        Parameters
        ----------
        junctions
            Nucleotide or amino acid sequences from the conserved Cys to the conserved Phe or Trp, or motifs.
        v_call, j_call
            Genes or alleles, or lists of them, which each junction is made with; without, all functional
            genes of the model are summed over. A gene means all its alleles.
        kind
            What the junctions are: ``"nt"``, ``"aa"`` or ``"motif"``.

        Raises
        ------
        InvalidInput
            If columns are not of the same length or hold no texts, or there is no such kind.
        """
        column = as_column(junctions)
        try:
            batch = self._encoder.encode(column, v_call, j_call, kind=kind)
        except TooManySets:
            if len(column) == 1:
                raise
            return self._halves(column, v_call, j_call, kind)
        status, pgen = batch.status, np.full(len(column), np.nan)
        used: set[str] = set()
        for plain, some in split_texts(batch.parts, batch.texts, 0, batch.rows.size):
            texts = batch.texts.take(some)
            scratch = partial(make_scratch, self._chain, batch.parts, int(texts.length.max()), plain=plain)
            found = self._target.launch(WEIGHTS, WeighBatch(self._chain, batch.parts, texts, plain, scratch))
            pgen[batch.rows[some]] = found.values
            used.update(found.devices)
        zero = np.flatnonzero(pgen == 0)
        if zero.size:
            status[zero] = self._reasons.reasons(zero, *batch.columns)
        made = self.provenance(kind, v_call is not None, j_call is not None)
        return Pgen(status, pgen, replace(made, device=used_devices(used) or made.device))

    def _halves(self, junctions: pa.Array, v_call: Any, j_call: Any, kind: TextKind) -> Pgen:
        """The same, computed in two parts."""
        half = len(junctions) // 2
        columns = [None if c is None else as_column(c) for c in (junctions, v_call, j_call)]
        parts = [
            self.compute(*(None if c is None else c.slice(first, count) for c in columns), kind=kind)
            for first, count in ((0, half), (half, None))
        ]
        status = np.concatenate([part.status for part in parts])
        pgen = np.concatenate([part.pgen for part in parts])
        made = parts[0].provenance
        return Pgen(
            status, pgen, replace(made, device=used_devices(part.provenance.device for part in parts))
        )

    def genes_of(self, segment: Literal["v", "j"], calls: Any) -> Callable[[int], tuple[int, ...]]:
        """What tells which genes of the model are meant in each row of a column.

        Parameters
        ----------
        segment
            ``"v"`` or ``"j"``.
        calls
            The column; None for no calls: all functional genes.
        """
        n = 0 if calls is None else len(calls)
        given = self._encoder.calls[segment].read(calls, n)
        return lambda row: given.genes[0 if calls is None else int(given.codes[row])]

    def knows(self, segment: str, call: str) -> bool:
        """Whether the model has the genes of a V or J call, with or without an anchor.

        Parameters
        ----------
        segment
            ``"v"`` or ``"j"``.
        call
            A name or a list of names.
        """
        return not self._encoder.calls[segment].resolve(call)[0].startswith("unknown_")

    def provenance(self, kind: TextKind, v_calls: bool, j_calls: bool) -> Provenance:
        """How numbers are made.

        Parameters
        ----------
        kind
            What the junctions are.
        v_calls, j_calls
            Whether the calls are used.
        """
        return Provenance(
            version=__version__,
            device=self._target.description,
            schedule="weighted_chain" if self.model.d else "weighted_pairs",
            algebra="probability",
            parameters={
                **self.model.identity(),
                "kind": kind,
                "v_calls": v_calls,
                "j_calls": j_calls,
            },
        )
