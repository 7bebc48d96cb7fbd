"""How often each choice was made, in expectation, over many junctions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.executors.local import LocalExecutor
from plait.schedules.text_graphs import GraphParts, WeightedTexts
from plait.settings import thread_count
from plait.vdj.model.end_shapes import ModelShapes, model_shapes
from plait.vdj.model.expected_counts import counting_of
from plait.vdj.model.maximisation import Evidence, most_probable_model
from plait.vdj.model.recombination_model import RecombinationModel

__all__ = ["PIECE", "Evidence", "Expectation"]

_Floats = NDArray[np.float64]
#: Texts whose expected numbers are added up apart from the others. Sums depend on nothing else: batches of
#: whole pieces give the same bits as one batch of all.
PIECE: Final = 4096


class Expectation:
    """Expected numbers of choices under one model, added up batch by batch.

    The sums depend on the texts, their order and where batches end, and on no number of threads. Batches
    that are multiples of `PIECE` texts (but the last) give the bits of a single batch.

    Parameters
    ----------
    model
        The model.
    threads
        Pieces worked on at a time; by default those of the settings.
    shapes
        Trees of the genes, where they are known: those of any model with the same genes.

    Attributes
    ----------
    junctions, impossible
        Junctions that count, and those that the model cannot make.
    shapes
        Trees of the genes.
    """

    def __init__(
        self, model: RecombinationModel, threads: int | None = None, *, shapes: ModelShapes | None = None
    ) -> None:
        self._model = model
        self.shapes = model_shapes(model) if shapes is None else shapes
        self._executor = LocalExecutor(thread_count() if threads is None else threads)
        self._counting = counting_of(model, self.shapes)
        self._counts = self._counting.empty()
        self._log = 0.0
        self.junctions = 0
        self.impossible = 0

    def add(self, parts: GraphParts, texts: WeightedTexts, weights: NDArray[np.int64] | None = None) -> None:
        """Add the numbers of a batch.

        Parameters
        ----------
        parts, texts
            As of `plait.vdj.model.encoded_junctions.JunctionEncoder`.
        weights
            int64 (n,): how often each text counts; once by default.
        """
        n = texts.start.size
        times = np.ones(n, np.int64) if weights is None else weights
        shares = times.astype(np.float64)
        pieces = [(first, min(first + PIECE, n)) for first in range(0, n, PIECE)]
        results = self._executor.map(lambda piece: self._piece(parts, texts, shares, *piece), pieces)
        for (first, last), (counts, found) in zip(pieces, results, strict=True):
            for total, part in zip(self._counts, counts, strict=True):
                total += part
            made = found > 0
            self._log += float((np.log(found[made]) * shares[first:last][made]).sum())
            self.junctions += int(times[first:last][made].sum())
            self.impossible += int(times[first:last][~made].sum())

    def _piece(
        self, parts: GraphParts, texts: WeightedTexts, shares: _Floats, first: int, last: int
    ) -> tuple[Any, _Floats]:
        counts = self._counting.empty()
        return counts, self._counting.count(parts, texts, shares, first, last, counts)

    def log_likelihood(self) -> float:
        """Mean of the natural logarithm of the probability of the junctions that count; 0 for none."""
        return self._log / max(self.junctions, 1)

    def counts(self) -> dict[str, NDArray[Any]]:
        """All that has been added up, to be written down and restored; copies."""
        return {
            **{name: table.copy() for name, table in self._counts._asdict().items()},
            "log_likelihood": np.array([self._log]),
            "junctions": np.array([self.junctions, self.impossible]),
            "model": np.array([int(self._model.digest, 16)], np.uint64),
        }

    def restore(self, counts: Mapping[str, NDArray[Any]]) -> None:
        """Go on from where `counts` was called.

        Parameters
        ----------
        counts
            What it returned.

        Raises
        ------
        InvalidInput
            If it belongs to another model.
        """
        own = self.counts()
        for name in sorted(own.keys() | counts.keys()):
            there, here = (
                f"{table[name].dtype}{list(table[name].shape)}" if name in table else "none"
                for table in (counts, own)
            )
            if there != here:
                raise InvalidInput(f"counts of {name}", found=there, expected=here)
        if counts["model"][0] != own["model"][0]:
            raise InvalidInput(
                "counts",
                found=f"those of the model {int(counts['model'][0]):016x}",
                expected=f"those of {self._model.digest}",
            )
        self._counts = type(self._counts)(*(counts[name].copy() for name in self._counts._fields))
        self._log = float(counts["log_likelihood"][0])
        self.junctions, self.impossible = (int(number) for number in counts["junctions"])

    def evidence(self) -> Evidence:
        """Expected numbers of all choices."""
        return self._counting.evidence(self._counts)

    def model(self, *, pseudocount: float = 0.0) -> RecombinationModel:
        """The model under which these numbers are most probable; what was never seen stays as it was.

        Parameters
        ----------
        pseudocount
            Added to the number of every possible choice.
        """
        return most_probable_model(self._model, self.evidence(), pseudocount=pseudocount)
