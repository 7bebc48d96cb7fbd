"""What a junction tells about how it was made: means over all of its scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.dp.chain.adjoint import ChoiceSummary
from plait.run.local import LocalExecutor
from plait.vdj.model.expectations import counting_of
from plait.vdj.model.gene_ends import model_shapes
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.texts import EncodedJunctions, JunctionEncoder, TextKind, split_texts

_Floats = NDArray[np.float64]
#: Junctions that a thread takes at a time.
_PIECE: Final = 256


@dataclass(frozen=True, slots=True)
class Posteriors:
    """What is known of the scenarios of n junctions, each weighted by its probability given the junction.

    Rows without a scenario have NaN, and -1 for genes.

    Attributes
    ----------
    status
        uint8 (n,): index into `plait.vdj.results.STATUSES`; 0 where a junction and its calls can be used.
    pgen
        float64 (n,): generation probability; NaN where the status is not 0.
    v, d, j
        int32 (n,): the most probable gene (entry of the model) of each kind; d is -1 in chains without D.
    v_probability, d_probability, j_probability
        float64 (n,): of these genes.
    deletions
        float64 (n, 4): mean deletions of V, of D at 5' and 3', and of J; P nucleotides count below zero.
    insertions
        float64 (n, 2): mean numbers of N nucleotides between V and D, and D and J; V and J, and 0.
    inserted
        float64 (n, 4): mean numbers of inserted A, C, G and T.
    entropy
        float64 (n,): of the scenarios given the junction, in bits; 0 where there is only one.
    """

    status: NDArray[np.uint8]
    pgen: _Floats
    v: NDArray[np.int32]
    d: NDArray[np.int32]
    j: NDArray[np.int32]
    v_probability: _Floats
    d_probability: _Floats
    j_probability: _Floats
    deletions: _Floats
    insertions: _Floats
    inserted: _Floats
    entropy: _Floats


class PosteriorFinder:
    """Finds what junctions tell under one model; threads may share it.

    Parameters
    ----------
    model
        The model.
    threads
        How many threads; by default those of the settings. Nothing depends on it.
    """

    def __init__(self, model: RecombinationModel, *, threads: int | None = None) -> None:
        self.model = model
        self._executor = LocalExecutor(threads)
        shapes = model_shapes(model)
        self._encoder = JunctionEncoder(model, shapes=shapes, missing="refused")
        self._counting = counting_of(model, shapes)

    def compute(
        self, junctions: Any, v_call: Any = None, j_call: Any = None, *, kind: TextKind = "nt"
    ) -> Posteriors:
        """Means over all scenarios of each junction.

        Parameters
        ----------
        junctions
            Sequence or Arrow array of nucleotide or amino acid sequences, or motifs.
        v_call, j_call
            Genes or alleles, or lists of them, which each junction is made with; without, all functional
            genes.
        kind
            What the junctions are: ``"nt"``, ``"aa"`` or ``"motif"``.

        Raises
        ------
        InvalidInput
            If the columns are not of one length.
        """
        batch = self._encoder.encode(junctions, v_call, j_call, kind=kind)
        found, counting = _empty(batch), self._counting

        def piece(first: int) -> None:
            last = min(first + _PIECE, batch.rows.size)
            for plain, rows in split_texts(batch.parts, batch.texts, first, last):
                weight, told = counting.tell(batch.parts, batch.texts, first + rows, plain=plain)
                _write(self.model, counting.chain.margin, weight, told, found, batch.rows[first + rows])

        for _ in self._executor.map(piece, range(0, batch.rows.size, _PIECE)):
            pass
        return found


def posteriors(
    model: RecombinationModel,
    junctions: Any,
    v_call: Any = None,
    j_call: Any = None,
    *,
    kind: TextKind = "nt",
    threads: int | None = None,
) -> Posteriors:
    """Means over all scenarios of each junction, see `PosteriorFinder`."""
    return PosteriorFinder(model, threads=threads).compute(junctions, v_call, j_call, kind=kind)


def _empty(batch: EncodedJunctions) -> Posteriors:
    n = batch.status.size
    none: list[Any] = [np.full(n, -1, np.int32) for _ in range(3)]
    nan: list[Any] = [np.full((n, *shape), np.nan) for shape in ((), (), (), (4,), (2,), (4,), ())]
    return Posteriors(batch.status, np.full(n, np.nan), *none, *nan)


def _write(
    model: RecombinationModel,
    margin: int,
    weight: _Floats,
    told: ChoiceSummary,
    found: Posteriors,
    rows: NDArray[np.int64],
) -> None:
    """Write what texts tell into rows."""
    found.pgen[rows] = weight
    made = np.flatnonzero(weight > 0)
    rows = rows[made]
    for k, segment in enumerate("vdj"):
        if segment != "d" or model.d:
            getattr(found, segment)[rows] = told.best[made, k]
            getattr(found, f"{segment}_probability")[rows] = told.share[made, k]
    # Cuts count from the longest P extension.
    longest = np.array(model.palindromes) * [1, *[bool(model.d)] * 2, 1]
    found.deletions[rows] = told.cut[made] - longest
    mean, inserted = told.log[made], np.zeros((made.size, 4))
    sides = _sides(model, margin, told)
    for side, (lengths, steps, p_length, p_steps, p_first) in enumerate(sides):
        number = lengths[made] * np.arange(p_length.size)
        found.insertions[rows, side] = number.sum(axis=1)
        inserted += steps[made].reshape(-1, 5, 4).sum(axis=1)
        mean = mean + (lengths[made] * _logs(p_length)).sum(axis=1)
        mean += (steps[made] * _logs(np.concatenate([p_steps.ravel(), p_first]))).sum(axis=1)
    found.insertions[rows, len(sides) :] = 0.0
    found.inserted[rows] = inserted
    found.entropy[rows] = np.maximum(np.log(weight[made]) - mean, 0.0) / np.log(2)


def _sides(
    model: RecombinationModel, margin: int, told: ChoiceSummary
) -> list[tuple[_Floats, _Floats, _Floats, _Floats, _Floats]]:
    """Numbers of insertions (n, lengths) and of steps (n, 20), and their probabilities, for each side."""
    left = told.left_length, told.left_step, model.p_vd_length, model.vd_steps, model.vd_first
    if not model.d:
        return [left]
    right = told.right_length, told.right_step, model.p_dj_length, model.dj_steps, model.dj_first
    found = []
    for backwards, (numbers, lanes, *p) in ((True, left), (False, right)):
        some = numbers[:, margin : numbers.shape[1] - margin]
        some = np.hstack([numbers[:, :1], some[:, ::-1] if backwards else some])
        found.append((some, lanes.reshape(len(lanes), 20, -1).sum(axis=2), *p))
    return found


def _logs(p: _Floats) -> _Floats:
    """Logarithms, 0 of 0: what is impossible is not counted."""
    return np.log(np.where(p > 0, p, 1.0))
