"""Generation probabilities of junctions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait._version import __version__
from plait.algebras import PROBABILITY
from plait.errors import InvalidInput
from plait.lanes import host_lanes
from plait.schedules.text_graphs import WeightedTexts
from plait.settings import thread_count
from plait.targets.weighted_kernels import weigh_kernel, weigh_pairs_kernel
from plait.types import Provenance
from plait.vdj.germline.names import NameIndex, canonical, split_call
from plait.vdj.germline.records import Allele
from plait.vdj.model.end_shapes import model_shapes
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.texts import EncodedTexts, TextKind, encode_texts
from plait.vdj.model.weights import make_scratch, weighted_chain
from plait.vdj.model.zero_reasons import PGEN_STATUSES, ZeroReasons
from plait.vdj.results import STATUSES

__all__ = ["GenerationProbability", "Pgen"]

#: Texts that a thread takes at a time.
_STRETCH = 512


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


class _Roots(NamedTuple):
    """Roots of each distinct call: those of call c are ``root[first[c]:first[c + 1]]``."""

    codes: NDArray[np.int64]
    first: NDArray[np.int64]
    root: NDArray[np.int32]
    status: NDArray[np.uint8]
    genes: list[tuple[int, ...]]


class GenerationProbability:
    """Computes how probable junctions are under a model.

    Parameters
    ----------
    model
        The model.
    threads
        How many threads; by default those of the settings.
    """

    def __init__(self, model: RecombinationModel, *, threads: int | None = None) -> None:
        self.model = model
        self._threads = thread_count() if threads is None else threads
        self._shapes = model_shapes(model)
        self._chain = weighted_chain(model, self._shapes)
        self._genes = {"v": _GeneNames(model, "v"), "j": _GeneNames(model, "j")}
        self._reasons = ZeroReasons(model)

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
            If columns are not of the same length.
        """
        texts = encode_texts(_column(junctions), kind)
        n = texts.status.size
        v = self._roots("v", v_call, n, self._shapes.v.root, self._shapes.v.together)
        j = self._roots("j", j_call, n, self._shapes.j.root, self._shapes.j.together)
        status = texts.status.copy()
        for roots in (v, j):
            undecided = status == 0
            status[undecided] = roots.status[roots.codes[undecided]]
        pgen = np.full(n, np.nan)
        rows = np.flatnonzero(status == 0)
        if rows.size:
            pgen[rows] = self._run(texts, rows, v, j)
        for row in np.flatnonzero(pgen == 0).tolist():
            codes = texts.codes[texts.start[row] : texts.start[row] + texts.length[row]]
            words = [texts.words[code] for code in codes.tolist()]
            reason = self._reasons.reason(words, v.genes[v.codes[row]], j.genes[j.codes[row]])
            status[row] = PGEN_STATUSES.index(reason)
        return Pgen(status, pgen, self.provenance(kind, v_call is not None, j_call is not None))

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
        shape = self._shapes.v if segment == "v" else self._shapes.j
        roots = self._roots(segment, calls, n, shape.root, shape.together)
        return lambda row: roots.genes[0 if calls is None else int(roots.codes[row])]

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
            device="cpu",
            schedule="weighted_chain" if self.model.d else "weighted_pairs",
            algebra="probability",
            parameters={
                "model": self.model.name,
                "model_digest": self.model.digest,
                "kind": kind,
                "v_calls": v_calls,
                "j_calls": j_calls,
            },
        )

    def _run(self, texts: EncodedTexts, rows: NDArray[np.int64], v: _Roots, j: _Roots) -> NDArray[np.float64]:
        v_first, v_root = _spread(v, rows)
        j_first, j_root = _spread(j, rows)
        batch = WeightedTexts(
            texts.codes, texts.start[rows], texts.length[rows], v_first, v_root, j_first, j_root
        )
        kernel = weigh_kernel if self.model.d else weigh_pairs_kernel
        out = np.zeros(rows.size)
        longest = int(batch.length.max())

        def run(first: int, last: int) -> None:
            scratch = make_scratch(self._chain, texts.parts, longest)
            kernel(host_lanes(), PROBABILITY, self._chain, texts.parts, batch, first, last, scratch, out)

        stretches = max(1, min(4 * self._threads, rows.size // _STRETCH))
        edges = [rows.size * k // stretches for k in range(stretches + 1)]
        if self._threads == 1 or stretches == 1:
            run(0, rows.size)
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(run, edges[:-1], edges[1:]))
        return out

    def _roots(
        self, segment: Literal["v", "j"], calls: Any, n: int, root: NDArray[np.int32], together: int
    ) -> _Roots:
        if calls is None:
            return _Roots(
                np.zeros(n, np.int64),
                np.array([0, 1]),
                np.array([together], np.int32),
                np.zeros(1, np.uint8),
                [tuple(k for k, gene in enumerate(self._genes[segment].genes) if gene.functional)],
            )
        column = _column(calls)
        if len(column) != n:
            raise InvalidInput(
                f"{segment}_call", found=f"{len(column)} calls", expected=f"{n}, one for each junction"
            )
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        found = [self._genes[segment].resolve(text) for text in encoded.dictionary.to_pylist()]
        sizes = np.array([len(genes) for _, genes in found], np.int64)
        chosen = [root[gene] for _, genes in found for gene in genes]
        return _Roots(
            codes,
            np.concatenate([[0], np.cumsum(sizes)]),
            np.array(chosen, np.int32),
            np.array([STATUSES.index(reason) for reason, _ in found], np.uint8),
            [genes for _, genes in found],
        )


def _column(values: Any) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values if isinstance(values, pa.Array) else pa.array(list(values), pa.large_string())


def _spread(roots: _Roots, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Roots of the given rows, one list after the other."""
    codes = roots.codes[rows]
    sizes = np.diff(roots.first)[codes]
    first = np.concatenate([[0], np.cumsum(sizes)])
    at = np.arange(first[-1]) - np.repeat(first[:-1], sizes) + np.repeat(roots.first[codes], sizes)
    return first, roots.root[at]


class _GeneNames:
    """Calls to genes of a model."""

    def __init__(self, model: RecombinationModel, segment: Literal["v", "j"]) -> None:
        self._segment = segment
        self.genes = model.v if segment == "v" else model.j
        self._index = NameIndex([_named(gene.name) for gene in self.genes])
        self._of_gene: dict[str, list[int]] = {}
        for k, gene in enumerate(self.genes):
            self._of_gene.setdefault(canonical(gene.gene), []).append(k)

    def resolve(self, call: str | None) -> tuple[str, tuple[int, ...]]:
        """A status, and the genes that a call means."""
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
