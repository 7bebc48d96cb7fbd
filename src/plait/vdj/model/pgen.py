"""Generation probabilities of junctions."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.algebras import PROBABILITY
from plait.errors import InvalidInput
from plait.lanes import host_lanes
from plait.schedules.text_graphs import WeightedTexts
from plait.settings import thread_count
from plait.targets.weighted_kernels import weigh_kernel, weigh_pairs_kernel
from plait.vdj.germline.names import NameIndex, canonical, split_call
from plait.vdj.germline.records import Allele
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.texts import EncodedTexts, TextKind, encode_texts
from plait.vdj.model.end_shapes import model_shapes
from plait.vdj.model.weights import make_scratch, weighted_chain
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
        uint8 (n,): index into `plait.vdj.results.STATUSES`.
    pgen
        float64 (n,); NaN where the status is not ``"ok"``.
    """

    status: NDArray[np.uint8]
    pgen: NDArray[np.float64]


class _Roots(NamedTuple):
    """Roots of each distinct call: those of call c are ``root[first[c]:first[c + 1]]``."""

    codes: NDArray[np.int64]
    first: NDArray[np.int64]
    root: NDArray[np.int32]
    status: NDArray[np.uint8]


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
        return Pgen(status, pgen)

    def _run(
        self, texts: EncodedTexts, rows: NDArray[np.int64], v: _Roots, j: _Roots
    ) -> NDArray[np.float64]:
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
            kernel(
                host_lanes(), PROBABILITY, self._chain, texts.parts, batch, first, last, scratch, out
            )

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
            )
        column = _column(calls)
        if len(column) != n:
            raise InvalidInput(f"{segment}_call", found=f"{len(column)} calls", expected=f"{n}, one for each junction")
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
        self._genes = model.v if segment == "v" else model.j
        self._index = NameIndex([_named(gene.name) for gene in self._genes])
        self._of_gene: dict[str, list[int]] = {}
        for k, gene in enumerate(self._genes):
            self._of_gene.setdefault(canonical(gene.gene), []).append(k)

    def resolve(self, call: str | None) -> tuple[str, tuple[int, ...]]:
        """A status, and the genes that a call means."""
        if call is None or not call.strip():
            return f"missing_{self._segment}_call", ()
        found: list[int] = []
        for name in split_call(call) or (call,):
            one = self._index.resolve_all(name)
            if not one or any(gene is None for gene in one):
                return f"unknown_{self._segment}_call", ()
            for gene in one:
                whole = "*" not in name or name.endswith("*00")
                found += self._of_gene[canonical(self._genes[gene].gene)] if whole else [gene]  # type: ignore[index]
        genes = tuple(dict.fromkeys(found))
        if all(self._genes[gene].anchor is None for gene in genes):
            return f"no_{self._segment}_anchor", ()
        return "ok", genes


def _named(name: str) -> Allele:
    return Allele(name=name, gene=name.partition("*")[0], segment="V", sequence="")
