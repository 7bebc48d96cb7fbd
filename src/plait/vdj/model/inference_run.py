"""Iterations of an inference over its evidence, kept as they go."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from plait.errors import InvalidInput
from plait.vdj.model.encoded_junctions import JunctionEncoder
from plait.vdj.model.evidence_files import EvidenceFile
from plait.vdj.model.expectations import Expectation
from plait.vdj.model.inference_folder import InferenceFolder, InferenceState, StateStore
from plait.vdj.model.maximisation import Evidence
from plait.vdj.model.pgen import GenerationProbability
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.zero_reasons import PGEN_STATUSES

__all__ = ["InferenceProgress", "InferenceRun"]

#: What has been added up is kept as soon as so much time has passed since it was kept.
_SECONDS: Final = 30.0
_CALLS: Final = ("v_call", "j_call")
_MOST_EXAMPLES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceProgress:
    """How far an inference is.

    Attributes
    ----------
    stage
        What is being done.
    done, total
        Of this stage: bytes read, or junctions of the iteration under way.
    rows
        Rows read, or junctions done.
    iteration
        Of which iteration; 0 while evidence is collected.
    log_likelihood
        Mean over junctions, of the last iteration that is done.
    finished
        Whether an iteration has just been finished.
    """

    stage: str
    done: int
    total: int
    rows: int
    iteration: int = 0
    log_likelihood: float | None = None
    finished: bool = False


class InferenceRun:
    """Iterations over the evidence.

    Parameters
    ----------
    start
        The model to begin with.
    folder, store
        Where the evidence is, and states are kept.
    threads
        Pieces worked on at a time.
    pseudocount
        Added to the expected number of every possible choice.
    progress
        Told how far it is.
    """

    def __init__(
        self,
        start: RecombinationModel,
        folder: InferenceFolder,
        store: StateStore,
        threads: int,
        pseudocount: float,
        progress: Callable[[InferenceProgress], object],
    ) -> None:
        self._folder = folder
        self._store = store
        self._threads = threads
        self._pseudocount = pseudocount
        self._progress = progress
        self._iteration = 0
        self._log: float | None = None
        self._start = start

    def report(self, stage: str, done: int, total: int, rows: int, *, finished: bool = False) -> None:
        """Tell how far it is.

        Parameters
        ----------
        stage, done, total, rows, finished
            As in `InferenceProgress`.
        """
        self._progress(
            InferenceProgress(
                stage=stage,
                done=done,
                total=total,
                rows=rows,
                iteration=self._iteration,
                log_likelihood=self._log,
                finished=finished,
            )
        )

    def iterate(self, state: InferenceState, iterations: int, tolerance: float) -> tuple[Evidence, bool]:
        """Iterate until nothing is gained.

        Parameters
        ----------
        state
            Where to begin; it is kept up to date.
        iterations
            Most iterations.
        tolerance
            Gain of the mean log-likelihood below which they end.

        Returns
        -------
        evidence : Evidence
            Expected numbers of the last iteration.
        converged : bool
            Whether the gain was small enough.

        Raises
        ------
        InvalidInput
            If the model can make none of the junctions.
        """
        with EvidenceFile(self._folder.evidence) as file:
            first = Expectation(self._start, self._threads)
            encoder = JunctionEncoder(self._start, shapes=first.shapes)
            while True:
                history = state.history
                before = history[-1]["log_likelihood"] if history else None
                self._iteration, self._log = len(history) + 1, before
                expected = Expectation(state.model, self._threads, shapes=first.shapes)
                if state.counts:
                    expected.restore(state.counts)
                self._pass(file, encoder, expected, state)
                if not expected.junctions:
                    raise InvalidInput(
                        "evidence",
                        found=f"{expected.impossible:,} junctions, none of which the model can make",
                        expected="junctions that begin and end like genes of the model",
                        hint="do the genes belong to these rows, with both conserved codons in junctions?",
                    )
                gain = math.inf if before is None else expected.log_likelihood() - before
                converged = gain < tolerance
                ended = converged or len(history) + 1 == iterations
                if ended and expected.impossible:
                    self._explain(file, state)
                self._finish(state, expected, gain)
                if ended:
                    return expected.evidence(), converged
                self._store.put(state)

    def _pass(
        self, file: EvidenceFile, encoder: JunctionEncoder, expected: Expectation, state: InferenceState
    ) -> None:
        """All batches that are left of an iteration."""
        kept = time.monotonic()
        total = state.collected["evidence_weight"]
        for number in range(state.batch, file.batches):
            rows = file.batch(number)
            encoded = encoder.encode(rows["junction"], *_calls(rows))
            expected.add(encoded.parts, encoded.texts, rows["weight"].to_numpy()[encoded.rows])
            done = expected.junctions + expected.impossible
            self.report(f"iteration {self._iteration}", done, total, done)
            if time.monotonic() - kept >= _SECONDS and number + 1 < file.batches:
                state.batch, state.counts = number + 1, expected.counts()
                self._store.put(state)
                kept = time.monotonic()

    def _explain(self, file: EvidenceFile, state: InferenceState) -> None:
        """Why junctions cannot be made, with examples."""
        engine = GenerationProbability(state.model, threads=self._threads)
        reasons: Counter[str] = Counter()
        for number in range(file.batches):
            rows = file.batch(number)
            status = engine.compute(rows["junction"], *_calls(rows)).status
            for code in np.unique(status[status > 0]).tolist():
                found = np.flatnonzero(status == code)
                reasons[PGEN_STATUSES[code]] += int(rows["weight"].to_numpy()[found].sum())
                shown = state.collected["examples"].setdefault(PGEN_STATUSES[code], [])
                for row in found[: _MOST_EXAMPLES - len(shown)].tolist():
                    shown.append(" ".join(rows[name][row].as_py() for name in ("junction", *_CALLS)).strip())
        state.collected["impossible_by_reason"] = dict(reasons.most_common())

    def _finish(self, state: InferenceState, expected: Expectation, gain: float) -> None:
        """The state after an iteration."""
        state.model = expected.model(pseudocount=self._pseudocount)
        state.batch, state.counts = 0, {}
        self._log = expected.log_likelihood()
        state.history.append(
            {
                "iteration": self._iteration,
                "log_likelihood": self._log,
                "gain": gain if math.isfinite(gain) else None,
                "junctions": expected.junctions,
                "impossible": expected.impossible,
            }
        )
        done = expected.junctions + expected.impossible
        self.report(f"iteration {self._iteration}", done, done, done, finished=True)


def _calls(rows: pa.RecordBatch) -> list[pa.Array | None]:
    """V and J calls of a batch of evidence; None where they are ignored."""
    return [rows[name] if rows[name].dictionary.to_pylist() != [""] else None for name in _CALLS]
