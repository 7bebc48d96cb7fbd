"""Infer a model from tables of rearrangements: out of core, resumable, with its evidence."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from plait._version import __version__
from plait.errors import FormatError, InvalidInput, PlaitError
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.compression import content_digest
from plait.run.executor import LocalExecutor
from plait.settings import package_digest
from plait.vdj.model.evidence import EvidenceChoice, collect_evidence, open_evidence
from plait.vdj.model.expectations import Evidence
from plait.vdj.model.igor import check_igor_names
from plait.vdj.model.inference import InferenceFolder, InferenceProgress, InferenceRun, InferenceState
from plait.vdj.model.inference_tables import inference_answers, write_inference_tables
from plait.vdj.model.junction_tables import JunctionTable
from plait.vdj.model.model_files import write_model
from plait.vdj.model.recombination_model import RecombinationModel, entropies

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
    layout: str = "airr",
    name: str | None = None,
    iterations: int = 200,
    tolerance: float = 1e-5,
    pseudocount: float = 0.0,
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
        Column layout of the inputs.
    name
        What to call the model; by default the name of the folder.
    iterations
        Most iterations.
    tolerance
        Iterations end when the mean log-likelihood of a junction grows by less than this.
    pseudocount
        Added to the expected number of every possible choice: with it nothing that was possible becomes
        impossible because few junctions did not show it.
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
    wanted = choice or EvidenceChoice()
    executor = LocalExecutor(threads)
    # Before long work: an input may be no table.
    opened = open_evidence(inputs, wanted, layout)
    size = sum(table.reader.total_bytes for table in opened)
    folder = InferenceFolder(Path(output))
    with _abandoning(folder), AtomicFile(folder.facts) as file:
        folder.check_replaceable(resume=resume, force=force)
        settings: dict[str, object] = {"layout": layout, "iterations": iterations, "tolerance": tolerance}
        settings["pseudocount"] = pseudocount
        key = _key(opened, start, wanted, settings)
        store = folder.begin(key, resume=resume)
        run = InferenceRun(
            start, folder, store, executor.threads, pseudocount, progress or (lambda state: None)
        )
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
    if iterations < 1:
        raise InvalidInput("iterations", found=iterations, expected="at least 1")
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
    }
