"""Inference: models to begin with, iterations over the evidence, and files; out of core, resumable."""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import time
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait._version import __version__
from plait.dp.chain.graphs import CodedJunctions, GraphParts
from plait.errors import FormatError, InvalidInput, PlaitError, whole
from plait.formats.atomic import AtomicFile, check_replaceable, claim_folder, output_errors
from plait.formats.checkpoints import Checkpoint
from plait.formats.files import content_digest, parse_json
from plait.formats.layouts import AUTO, LayoutChoice
from plait.run.executor import LocalExecutor
from plait.settings import package_digest
from plait.vdj.model.evidence import EvidenceChoice, EvidenceFile, collect_evidence, open_evidence, read_as
from plait.vdj.model.expectations import ErrorRate, Evidence, Expectation, Steps, scaled
from plait.vdj.model.igor import check_igor_names
from plait.vdj.model.inference_tables import inference_answers, write_inference_tables
from plait.vdj.model.junctions import JunctionEncoder, JunctionTable, model_shapes
from plait.vdj.model.pgen import PGEN_STATUSES, GenerationProbability
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel, entropies, write_model

_Floats = NDArray[np.float64]

#: Gives the batches of texts, the same ones every time it is called.
Supply = Callable[[], Iterable[tuple[GraphParts, CodedJunctions]]]


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one iteration found.

    Attributes
    ----------
    number
        From 1.
    log_likelihood
        Mean of the natural logarithm of the probability of a junction, under the model before the iteration.
    junctions, impossible
        Junctions that count, and those that the model cannot make.
    model
        The model after it.
    evidence
        Expected numbers of choices that the model after it is made from.
    """

    number: int
    log_likelihood: float
    junctions: int
    impossible: int
    model: RecombinationModel
    evidence: Evidence


def uniform_model(
    model: RecombinationModel, *, genes: Literal["functional", "anchored"] = "functional"
) -> RecombinationModel:
    """The genes of a model with all choices equally probable, where a choice is possible.

    Deletions are those that leave something of V and of J; without D genes, J is chosen given V.

    Parameters
    ----------
    model
        The model.
    genes
        Which V and J genes are possible: those that are functional, or all with a known anchor, which makes
        sense where calls tell which gene a junction has.
    """

    def possible(gene: ModelGene) -> bool:
        return gene.functional if genes == "functional" else gene.anchor is not None

    v = np.array([possible(gene) for gene in model.v], float)
    j = np.array([possible(gene) for gene in model.j], float)
    rows = 1 if model.d else len(model.v)
    p_dj = np.broadcast_to(j, (rows, max(len(model.d), 1), len(model.j)))
    of_v, of_d, of_j = _possible_deletions(model)
    return replace(
        model,
        p_v=scaled(v, 0),
        p_dj=scaled(p_dj, 1, 2),
        p_v_deletions=scaled(of_v, 1),
        p_j_deletions=scaled(of_j, 1),
        p_d_deletions=scaled(of_d, 1, 2) if model.d else of_d,
        p_vd_length=scaled(np.ones_like(model.p_vd_length), 0),
        p_dj_length=scaled(np.ones_like(model.p_dj_length), 0),
        vd_steps=np.full((4, 4), 0.25),
        dj_steps=np.full((4, 4), 0.25),
    )


def observable_model(model: RecombinationModel, *, functional: bool = True) -> RecombinationModel:
    """The model of what a model makes: of junctions, which keep a nucleotide of V and of J.

    A scenario that leaves nothing of V or J makes no junction, so this, and not the model itself, is what
    junctions drawn from a model tell of it.

    Parameters
    ----------
    model
        The model.
    functional
        Whether only functional genes make junctions.
    """
    of_v, of_d, of_j = (
        table * possible
        for table, possible in zip(
            (model.p_v_deletions, model.p_d_deletions, model.p_j_deletions),
            _possible_deletions(model),
            strict=True,
        )
    )
    v, j = (
        np.array([gene.functional or not functional for gene in genes]) * table.sum(axis=1)
        for genes, table in ((model.v, of_v), (model.j, of_j))
    )
    # Deletions of D, too, can be more than there is of it.
    d = of_d.sum(axis=(1, 2)) if model.d else np.ones(1)
    p_dj = model.p_dj * d[:, None] * j
    return replace(
        model,
        p_v=scaled(model.p_v * v * (p_dj.sum(axis=(1, 2)) if len(p_dj) > 1 else 1.0), 0),
        p_dj=scaled(p_dj, 1, 2),
        p_v_deletions=scaled(of_v, 1),
        p_j_deletions=scaled(of_j, 1),
        p_d_deletions=scaled(of_d, 1, 2) if model.d else of_d,
    )


def _possible_deletions(model: RecombinationModel) -> tuple[_Floats, _Floats, _Floats]:
    """1 for deletions of V, D and J that can leave a part; at least a nucleotide of V and of J."""
    shapes = model_shapes(model)
    found = tuple(
        np.zeros_like(table) for table in (model.p_v_deletions, model.p_d_deletions, model.p_j_deletions)
    )
    found[0][shapes.v.gene, shapes.v.deletion] = 1.0
    if model.d:
        found[1][shapes.d.gene, shapes.d.deletion, shapes.d.deletion_right] = 1.0
    found[2][shapes.j.gene, shapes.j.deletion] = 1.0
    return found[0], found[1], found[2]


def infer_model(
    start: RecombinationModel,
    supply: Supply,
    *,
    iterations: int = 100,
    tolerance: float = 1e-5,
    pseudocount: float = 0.0,
    accelerate: bool = True,
    error_rate: ErrorRate = None,
    threads: int | None = None,
    progress: Callable[[Iteration], object] | None = None,
) -> RecombinationModel:
    """Improve a model until it explains junctions as well as it can.

    Parameters
    ----------
    start
        The model to begin with: that of `uniform_model`, or one from elsewhere (a warm start). What is
        impossible in it stays so. Genes that no junction has get probability 0, and keep the deletions of
        the start.
    supply
        The junctions.
    iterations
        How often all of them are gone through at most.
    tolerance
        The end: when a step of expectation maximisation has changed the mean log-likelihood of a junction by
        less.
    pseudocount
        Added to the expected number of every choice that is possible in `start`.
    accelerate
        Whether each third iteration tries to go further in the direction of the two before it (SQUAREM),
        which needs fewer iterations for the same model.
    error_rate
        How probable it is that a nucleotide of a junction was misread, as each of the others alike: a number,
        or ``"fit"`` to find it together with the model; None if junctions are as they were.
    threads
        Pieces worked on at a time; no result depends on it.
    progress
        Called after every iteration.

    Raises
    ------
    InvalidInput
        If there is no junction that `start` can make, or a number is below zero.
    """
    for name, value in (("tolerance", tolerance), ("pseudocount", pseudocount)):
        if not value >= 0:
            raise InvalidInput(name, found=value, expected="a number of at least 0")
    whole("iterations", iterations, 1)
    shapes = model_shapes(start)
    model, steps = _with_errors(start, error_rate), Steps()
    for number in range(1, iterations + 1):
        expected = Expectation(model, threads, shapes=shapes, error_rate=error_rate)
        for parts, texts in supply():
            expected.add(parts, texts)
        if not expected.junctions:
            raise InvalidInput(
                "junctions", found=f"none of {expected.impossible} that the model can make", expected="some"
            )
        mean = expected.log_likelihood()
        ended = abs(steps.gain(mean)) < tolerance
        longer = accelerate and not ended and number + 1 < iterations
        model = steps.next(model, expected, pseudocount, longer=longer)
        if progress is not None:
            numbers = number, mean, expected.junctions, expected.impossible
            progress(Iteration(*numbers, model, expected.evidence()))
        if ended:
            break
    return model


#: Where the search for an error rate begins, if the first model does not say.
_FIRST_RATE: Final = 0.01


def _with_errors(start: RecombinationModel, error_rate: ErrorRate) -> RecombinationModel:
    """The model to begin with; InvalidInput if the rate is none."""
    if error_rate == "fit":
        return replace(start, error_rate=start.error_rate or _FIRST_RATE)
    if error_rate is not None and not 0 <= error_rate < _HIGHEST_RATE:
        expected = f"fit, or a number from 0 to below {_HIGHEST_RATE}"
        raise InvalidInput("error_rate", found=error_rate, expected=expected)
    return replace(start, error_rate=error_rate or 0.0)


#: Nucleotides that are misread so often tell nothing.
_HIGHEST_RATE: Final = 0.75
_MARKER: Final = "plait-inference.json"
_EXPECTED: Final = "the state of an inference that was stopped"
_KIND: Final = "plait inference"
_STATE: Final = pa.schema([("facts", pa.large_string()), ("arrays", pa.large_binary())])
#: Numbers of what is known of the evidence, and of what an iteration found; mappings to numbers.
_NUMBERS: Final = ("rows", "repertoires", "distinct_junctions", "evidence_junctions", "evidence_weight")
_OF_ITERATIONS: Final = ("iteration", "log_likelihood", "junctions", "impossible")
_COUNTS: Final = ("rows_by_kind", "left_out", "unknown_calls")
_LARGEST: Final = 1e18
#: Tables of a model that inference changes.
_TABLES: Final = tuple(name for name in Evidence._fields if name != "errors" and not name.endswith("first"))


class InferenceFolder:
    """A folder that belongs to one inference; made if it is not there, its parent must be.

    `work` has what is needed while it runs, in it `evidence`. Results are the `tables`, the `model` as JSON
    and as a folder of IGoR (`igor`), `facts` (inference.json, there when it is finished) and the page
    `report`. InvalidInput if the folder holds something else or its parent is missing, FormatError if it
    cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work = path / "work"
        self.evidence = path / "work" / "evidence.arrow"
        self.tables = path / "tables"
        self.model = path / "model.json"
        self.igor = path / "model"
        self.facts = path / "inference.json"
        self.report = path / "report.html"
        self._new = claim_folder(path, marker=_MARKER, kind=_KIND, what="inference")

    def check_replaceable(self, *, resume: bool, force: bool) -> None:
        """Check that an earlier inference may be replaced."""
        results = (self.facts, self.work / "progress" / "block-00000000.arrows")
        check_replaceable(self.path, *results, what="inference", resume=resume, force=force)

    def begin(self, key: Mapping[str, object], *, resume: bool) -> StateStore:
        """Make room for what is needed while it runs; where states are kept.

        `key` is everything that the states depend on; with `resume`, InvalidInput if the run to go on with
        had another one.
        """
        if not resume:
            shutil.rmtree(self.work, ignore_errors=True)
        with output_errors(self.work):
            self.work.mkdir(exist_ok=True)
        return StateStore(Checkpoint(self.work / "progress", key=key, resume=resume))

    def clear(self) -> None:
        """Remove the results of an earlier run."""
        for folder in (self.tables, self.igor):
            shutil.rmtree(folder, ignore_errors=True)
        with output_errors(self.path):
            for file in (self.facts, self.model, self.report):
                file.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what a finished run no longer needs."""
        shutil.rmtree(self.work, ignore_errors=True)

    def abandon(self) -> None:
        """Leave nothing of a run that cannot go on; the folder goes, too, if this run has made it."""
        self.tidy()
        if self._new:
            (self.path / _MARKER).unlink(missing_ok=True)
            if not any(self.path.iterdir()):
                self.path.rmdir()


@dataclass(slots=True, kw_only=True)
class InferenceState:
    """How far an inference is.

    `model` is that of the iteration under way, `steps` how it was reached; `batch` of its batches are done
    and added up to `counts`, empty before the first one. `history` has a mapping of findings for each
    finished iteration, `collected` what is known of the evidence.
    """

    model: RecombinationModel
    steps: Steps = field(default_factory=Steps)
    batch: int = 0
    counts: dict[str, NDArray[Any]] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    collected: dict[str, Any] = field(default_factory=dict)


#: What NumPy and zipfile raise of bytes that are no archive of arrays, and what wrong facts end in.
_UNREADABLE: Final = (
    *(AttributeError, EOFError, KeyError, MemoryError, OSError, OverflowError, RuntimeError, SyntaxError),
    *(SystemError, TypeError, ValueError, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


class StateStore:
    """Keeps the last state of a run, whole or not at all."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def put(self, state: InferenceState) -> None:
        """Keep a state in place of the one before."""
        facts = {"batch": state.batch, "history": state.history, "collected": state.collected}
        facts["base"], facts["floor"] = state.steps.base, state.steps.floor
        models = {"model": state.model, "first": state.steps.first, "safe": state.steps.safe}
        arrays = {
            f"{which}.{name}": getattr(model, name)
            for which, model in models.items()
            if model is not None
            for name in (*_TABLES, "error_rate")
        }
        arrays |= {f"counts.{name}": table for name, table in state.counts.items()}
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, **arrays)
        row = [pa.array([json.dumps(facts)], pa.large_string())]
        row.append(pa.array([packed.getvalue()], pa.large_binary()))
        self._checkpoint.put(0, pa.record_batch(row, schema=_STATE))

    def get(self, start: RecombinationModel) -> InferenceState | None:
        """The state that is kept, of a run that began with the model `start`; None if there is none."""
        batch = self._checkpoint.get(0)
        if batch is None:
            return None
        place = self._checkpoint.directory
        try:
            facts = parse_json(batch["facts"][0].as_py(), place, expected=_EXPECTED)
            _check_facts(facts)
            with np.load(io.BytesIO(batch["arrays"][0].as_py()), allow_pickle=False) as arrays:
                models = {
                    which: replace(
                        start,
                        error_rate=float(arrays[f"{which}.error_rate"]),
                        **{name: arrays[f"{which}.{name}"] for name in _TABLES},
                    )
                    for which in ("model", "first", "safe")
                    if which == "model" or f"{which}.{_TABLES[0]}" in arrays.files
                }
                counts = {
                    name.removeprefix("counts."): arrays[name]
                    for name in arrays.files
                    if name.startswith("counts.")
                }
            steps = Steps(models.get("first"), models.get("safe"), facts.pop("base"), facts.pop("floor"))
            return InferenceState(model=models["model"], steps=steps, counts=counts, **facts)
        except FormatError:
            raise
        except _UNREADABLE as error:
            raise FormatError(
                place, found=f"{type(error).__name__}: {error!s:.200}", expected=_EXPECTED, hint="start anew"
            ) from error


def _check_facts(facts: Mapping[str, Any]) -> None:
    """Check the kinds of what a state holds; raises a `ValueError`, `TypeError` or `KeyError`."""
    history, collected = facts["history"], facts["collected"]
    wanted = [(facts, ("batch",)), (collected, _NUMBERS), *((row, _OF_ITERATIONS) for row in history)]
    for name in ("base", "floor"):
        if not isinstance(facts[name], float | None):
            raise TypeError(f"{name} {facts[name]!r:.40}")
    for row, names in wanted:
        for name in names:
            if type(row[name]) not in (int, float) or not -_LARGEST < row[name] < _LARGEST:
                raise ValueError(f"{name} {row[name]!r:.40}")
    for name in _COUNTS:
        if not all(type(number) is int for number in collected[name].values()):
            raise ValueError(f"{name} without numbers")
    for shown in collected["examples"].values():
        if not all(isinstance(text, str) for text in shown):
            raise ValueError("examples that are no text")


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


@dataclass(slots=True)
class InferenceRun:
    """Iterations over the evidence, beginning with the model `start`.

    `threads` pieces are worked on at a time; `pseudocount` is added to the expected number of every possible
    choice; `accelerate`: whether longer steps are tried; `error_rate` as of `Expectation`.
    """

    start: RecombinationModel
    folder: InferenceFolder
    store: StateStore
    threads: int
    pseudocount: float
    accelerate: bool
    error_rate: ErrorRate
    progress: Callable[[InferenceProgress], object]
    _iteration: int = 0
    _log: float | None = None

    def report(self, stage: str, done: int, total: int, rows: int, *, finished: bool = False) -> None:
        """Tell how far it is, as in `InferenceProgress`."""
        self.progress(
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
        """Iterate until the mean log-likelihood gains less than `tolerance`, at most `iterations` times.

        `state` is kept up to date. Returns the expected numbers of the last iteration and whether the gain
        was small enough. InvalidInput if the model can make none of the junctions.
        """
        with EvidenceFile(self.folder.evidence) as file:
            first = Expectation(self.start, self.threads)
            encoder = JunctionEncoder(self.start, shapes=first.shapes)
            while True:
                history = state.history
                before = history[-1]["log_likelihood"] if history else None
                self._iteration, self._log = len(history) + 1, before
                expected = Expectation(
                    state.model, self.threads, shapes=first.shapes, error_rate=self.error_rate
                )
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
                gain = state.steps.gain(expected.log_likelihood())
                converged = gain < tolerance
                ended = converged or len(history) + 1 == iterations
                if ended and expected.impossible:
                    self._explain(file, state)
                longer = self.accelerate and not ended and len(history) + 2 < iterations
                self._finish(state, expected, gain, longer)
                if ended:
                    return expected.evidence(), converged
                self.store.put(state)

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
                self.store.put(state)
                kept = time.monotonic()

    def _explain(self, file: EvidenceFile, state: InferenceState) -> None:
        """Why junctions cannot be made, with examples."""
        engine = GenerationProbability(state.model, threads=self.threads)
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

    def _finish(self, state: InferenceState, expected: Expectation, gain: float, longer: bool) -> None:
        """The state after an iteration; the next step may be a `longer` one."""
        state.model = state.steps.next(state.model, expected, self.pseudocount, longer=longer)
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


#: Facts that do not belong to the model: times, and rows of the inputs.
_NOT_OF_THE_MODEL: Final = ("created", "examples")
_ALGORITHM: Final = "expectation maximisation over all scenarios of every junction"


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredFiles:
    """A finished inference.

    Attributes
    ----------
    folder
        Its folder.
    model
        The model.
    facts
        Content of inference.json.
    tables
        File of each table, by its name.
    """

    folder: Path
    model: RecombinationModel
    facts: Mapping[str, Any]
    tables: Mapping[str, Path]


def infer_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    start: RecombinationModel,
    *,
    choice: EvidenceChoice | None = None,
    layout: LayoutChoice = AUTO,
    name: str | None = None,
    iterations: int = 200,
    tolerance: float = 1e-5,
    pseudocount: float = 0.0,
    accelerate: bool = True,
    error_rate: ErrorRate = None,
    threads: int | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Callable[[InferenceProgress], object] | None = None,
) -> InferredFiles:
    """Infer a model from tables, and write it with its evidence.

    The evidence is collected first, into a file in the folder, in memory that does not grow with it. Every
    iteration goes over it once. What is written depends neither on threads, nor on the order of rows and
    files, nor on whether the run was stopped and resumed.

    Parameters
    ----------
    inputs
        AIRR Rearrangement tables (TSV, plain or compressed, or Parquet), or of another `layout`.
    output
        Folder of the results.
    start
        The model to begin with, as of `plait.vdj.model.model_from_germline`; what it makes impossible stays
        impossible.
    choice
        Which rows are evidence, and how often they count.
    layout
        Layout of the inputs, as of `plait.vdj.sharing`.
    name
        What to call the model; by default the name of the folder.
    iterations
        Most iterations.
    tolerance
        Iterations end when a step of expectation maximisation raises the mean log-likelihood of a junction by
        less.
    pseudocount
        Added to the expected number of every possible choice: with it nothing that was possible becomes
        impossible because few junctions did not show it.
    accelerate
        Whether each third iteration tries to go further in the direction of the two before it (SQUAREM).
    error_rate
        How probable it is that a nucleotide was misread, as of `infer_model`.
    threads
        Pieces worked on at a time.
    resume
        Go on with what a run of the same inputs and options that was stopped has done.
    force
        Replace an earlier inference in the folder.
    progress
        Called after every block and batch.

    Raises
    ------
    InvalidInput
        If there is no input or no evidence, the output cannot be or holds an earlier
        inference, or a run to resume differs.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    _check(inputs, iterations, tolerance, pseudocount)
    check_igor_names(start)
    start, wanted = _with_errors(start, error_rate), choice or EvidenceChoice()
    executor = LocalExecutor(threads)
    opened = open_evidence(inputs, wanted, layout)
    size = sum(table.reader.total_bytes for table in opened)
    folder = InferenceFolder(Path(output))
    with _abandoning(folder), AtomicFile(folder.facts) as file:
        folder.check_replaceable(resume=resume, force=force)
        settings: dict[str, object] = {"layout": read_as(opened), "iterations": iterations}
        settings |= {"tolerance": tolerance, "pseudocount": pseudocount, "accelerate": accelerate}
        settings |= {} if error_rate is None else {"error_rate": error_rate}
        store = folder.begin(_key(opened, start, wanted, settings), resume=resume)
        told = progress or (lambda state: None)
        run = InferenceRun(start, folder, store, executor.threads, pseudocount, accelerate, error_rate, told)
        state = store.get(start)
        if state is None:
            collected = collect_evidence(
                opened,
                folder.evidence,
                start,
                wanted,
                executor=executor,
                progress=lambda now: run.report("collecting evidence", now.bytes_read, size, now.rows),
            )
            state = InferenceState(model=start, collected=collected.as_dict())
            _check_evidence(state.collected, wanted)
            store.put(state)
        else:
            _check_same_inputs(inputs, state)
        # Until now an earlier result could stay: the inputs might have been wrong.
        folder.clear()
        evidence, converged = run.iterate(state, iterations, tolerance)
        facts = _facts(state, start, wanted, settings, converged)
        model = replace(
            state.model,
            name=name or folder.path.absolute().name,
            provenance={key: value for key, value in facts.items() if key not in _NOT_OF_THE_MODEL},
        )
        tables = _write(folder, model, evidence, facts, file)
    folder.tidy()
    return InferredFiles(folder=folder.path, model=model, facts=facts, tables=tables)


def _write(
    folder: InferenceFolder,
    model: RecombinationModel,
    evidence: Evidence,
    facts: dict[str, Any],
    file: AtomicFile,
) -> dict[str, Path]:
    """Write the model and its tables, and last the facts."""
    tables = write_inference_tables(folder.tables, model, evidence, facts)
    write_model(model, folder.model)
    write_model(model, folder.igor)
    facts["answers"] = inference_answers(model, evidence, facts)
    facts["tables"] = {table: os.path.relpath(path, folder.path) for table, path in tables.items()}
    with output_errors(folder.facts):
        text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
        file.stream.write(f"{text}\n".encode())
    return tables


def _check(inputs: Sequence[object], iterations: int, tolerance: float, pseudocount: float) -> None:
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="at least one file")
    whole("iterations", iterations, 1)
    for what, number in (("tolerance", tolerance), ("pseudocount", pseudocount)):
        if not 0 <= number < math.inf:
            raise InvalidInput(what, found=number, expected="0 or more")


@contextmanager
def _abandoning(folder: InferenceFolder) -> Iterator[None]:
    """Leave nothing of a run that fails for what it was given; of one that was stopped, what it has done."""
    try:
        yield
    except PlaitError as error:
        other_run = isinstance(error, InvalidInput) and error.what in ("resume", "output", "checkpoint")
        no_room = isinstance(error, FormatError) and Path(error.path).is_relative_to(folder.path)
        if not other_run and not no_room:
            folder.abandon()
        raise


def _check_same_inputs(inputs: Sequence[str | os.PathLike[str]], state: InferenceState) -> None:
    """Check that the evidence of a stopped run is that of these files."""
    for path, known in zip(inputs, state.collected["inputs"], strict=True):
        if content_digest(path) != known["digest"]:
            raise InvalidInput(
                "resume",
                found=f"another content of {os.fspath(path)!r} than the stopped run has read",
                expected="the same inputs",
                hint="the input has changed since; start anew without resuming",
            )


def _key(
    opened: Sequence[JunctionTable],
    start: RecombinationModel,
    choice: EvidenceChoice,
    settings: Mapping[str, object],
) -> dict[str, object]:
    """What must be equal for a run to be resumed."""
    return {
        "version": __version__,
        "sources": package_digest(),
        "inputs": [list(identity) for table in opened for identity in table.reader.identities],
        "start": start.digest,
        **settings,
        **asdict(choice),
    }


def _check_evidence(collected: Mapping[str, Any], choice: EvidenceChoice) -> None:
    if collected["evidence_junctions"]:
        return
    kinds = ", ".join(f"{n:,} {kind.replace('_', ' ')}" for kind, n in collected["rows_by_kind"].items())
    left = ", ".join(f"{n:,} {reason}" for reason, n in collected["left_out"].items())
    hint = None
    if choice.rows != "all" and not any(
        n for kind, n in collected["rows_by_kind"].items() if kind not in collected["left_out"]
    ):
        hint = "--rows all or productive uses others, of which selection has taken a part away"
    unknown = list(collected["unknown_calls"])[:5]
    if unknown and hint is None:
        hint = f"calls that the model does not know: {', '.join(unknown)}; do its genes belong to these rows?"
    raise InvalidInput(
        "evidence",
        found=f"none among {collected['rows']:,} rows ({kinds or 'no junction'}; left out: {left or 'none'})",
        expected=f"rows that are evidence (--rows {choice.rows}, --calls {choice.calls})",
        hint=hint,
    )


def _facts(
    state: InferenceState,
    start: RecombinationModel,
    choice: EvidenceChoice,
    settings: Mapping[str, object],
    converged: bool,
) -> dict[str, Any]:
    last = state.history[-1]
    return {
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "algorithm": _ALGORITHM,
        "parameters": {**asdict(choice), **settings},
        "start": {"name": start.name, "digest": start.digest, **start.provenance},
        **state.collected,
        "chain": start.chain,
        "iterations_done": last["iteration"],
        "converged": converged,
        "log_likelihood": last["log_likelihood"],
        "junctions": last["junctions"],
        "impossible": last["impossible"],
        "history": list(state.history),
        "entropies": entropies(state.model),
        **({"error_rate": state.model.error_rate} if "error_rate" in settings else {}),
    }
