"""Generation probabilities of junctions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait._version import __version__
from plait.devices.target import resolve, used_devices
from plait.dp.chain.launches import WEIGHTS, WeighBatch
from plait.dp.chain.texts import WeightedTexts
from plait.types import Provenance
from plait.vdj.model.gene_ends import GeneCalls, GivenGenes, as_column, model_shapes
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.texts import EncodedTexts, TextKind, TooManySets, encode_texts
from plait.vdj.model.weights import make_scratch, weighted_chain
from plait.vdj.model.zero_reasons import ZeroReasons


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
        self._calls = {
            "v": GeneCalls(model, "v", self._shapes.v),
            "j": GeneCalls(model, "j", self._shapes.j),
        }
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
            If columns are not of the same length or hold no texts, or there is no such kind.
        """
        column = as_column(junctions)
        n = len(column)
        v, j = self._calls["v"].read(v_call, n), self._calls["j"].read(j_call, n)
        try:
            texts = encode_texts(column, kind)
        except TooManySets:
            if n == 1:
                raise
            return self._halves(column, v_call, j_call, kind)
        status = texts.status.copy()
        for roots in (v, j):
            undecided = status == 0
            status[undecided] = roots.status[roots.codes[undecided]]
        pgen = np.full(n, np.nan)
        rows = np.flatnonzero(status == 0)
        used: set[str] = set()
        if rows.size:
            pgen[rows] = self._run(texts, rows, v, j, used)
        zero = np.flatnonzero(pgen == 0)
        if zero.size:
            status[zero] = self._reasons.reasons(texts, zero, v, j)
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
        given = self._calls[segment].read(calls, n)
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
        return not self._calls[segment].resolve(call)[0].startswith("unknown_")

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

    def _run(
        self, texts: EncodedTexts, rows: NDArray[np.int64], v: GivenGenes, j: GivenGenes, used: set[str]
    ) -> NDArray[np.float64]:
        found, plain = np.empty(rows.size), texts.plain()[rows]
        for kind in (True, False):
            chosen = np.flatnonzero(plain == kind)
            if chosen.size:
                found[chosen] = self._weigh(texts, rows[chosen], v, j, kind, used)
        return found

    def _weigh(
        self,
        texts: EncodedTexts,
        rows: NDArray[np.int64],
        v: GivenGenes,
        j: GivenGenes,
        plain: bool,
        used: set[str],
    ) -> NDArray[np.float64]:
        """Weights of rows; notes in `used` what they were computed on."""
        batch = _batch(texts, rows, v, j)
        scratch = partial(make_scratch, self._chain, texts.parts, int(batch.length.max()), plain=plain)
        found = self._target.launch(WEIGHTS, WeighBatch(self._chain, texts.parts, batch, plain, scratch))
        used.update(found.devices)
        return found.values


def _batch(texts: EncodedTexts, rows: NDArray[np.int64], v: GivenGenes, j: GivenGenes) -> WeightedTexts:
    """Some junctions with the trees of their genes."""
    lists = (*v.spread(rows), *j.spread(rows))
    return WeightedTexts(texts.codes, texts.start[rows], texts.length[rows], *lists)
