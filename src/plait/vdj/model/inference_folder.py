"""The folder of an inference: what is where, and how far it is."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.formats.atomic import output_errors
from plait.formats.checkpoints import Checkpoint
from plait.formats.json_text import parse_json
from plait.formats.owned_folders import check_replaceable, claim_folder
from plait.vdj.model.recombination_model import RecombinationModel

__all__ = ["InferenceFolder", "InferenceState", "StateStore"]

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
_TABLES: Final = (
    "p_v",
    "p_dj",
    "p_v_deletions",
    "p_d_deletions",
    "p_j_deletions",
    "p_vd_length",
    "p_dj_length",
    "vd_steps",
    "dj_steps",
)


class InferenceFolder:
    """A folder that belongs to one inference.

    Parameters
    ----------
    path
        The folder, made if it is not there; its parent must be.

    Attributes
    ----------
    path, work, evidence, tables, model, igor, facts, report : Path
        The folder; what is needed while it runs; in it, the evidence; tables; the model as JSON, and as a
        folder of IGoR; inference.json, there when it is finished; the page.

    Raises
    ------
    InvalidInput
        If the folder holds something else, or its parent is missing.
    FormatError
        If it cannot be written.
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

        Parameters
        ----------
        key
            Everything that the states depend on.
        resume
            Whether to go on with what a run that was stopped has kept.

        Raises
        ------
        InvalidInput
            With `resume`, if that was another run.
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

    Attributes
    ----------
    model
        The model of the iteration under way.
    batch
        Batches of this iteration that are done.
    counts
        What they added up to; empty before the first one.
    history
        What finished iterations found, one mapping each.
    collected
        What is known of the evidence.
    """

    model: RecombinationModel
    batch: int = 0
    counts: dict[str, NDArray[Any]] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    collected: dict[str, Any] = field(default_factory=dict)


class StateStore:
    """Keeps the last state of a run, whole or not at all.

    Parameters
    ----------
    checkpoint
        Where.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint

    def put(self, state: InferenceState) -> None:
        """Keep a state in place of the one before.

        Parameters
        ----------
        state
            The state.
        """
        facts = {"batch": state.batch, "history": state.history, "collected": state.collected}
        arrays = {f"model.{name}": getattr(state.model, name) for name in _TABLES}
        arrays |= {f"counts.{name}": table for name, table in state.counts.items()}
        packed = io.BytesIO()
        np.savez(packed, allow_pickle=False, **arrays)
        row = [pa.array([json.dumps(facts)], pa.large_string())]
        row.append(pa.array([packed.getvalue()], pa.large_binary()))
        self._checkpoint.put(0, pa.record_batch(row, schema=_STATE))

    def get(self, start: RecombinationModel) -> InferenceState | None:
        """The state that is kept; None if there is none.

        Parameters
        ----------
        start
            The model that the run began with.
        """
        batch = self._checkpoint.get(0)
        if batch is None:
            return None
        place = self._checkpoint.directory
        try:
            facts = parse_json(batch["facts"][0].as_py(), place, expected=_EXPECTED)
            _check_facts(facts)
            with np.load(io.BytesIO(batch["arrays"][0].as_py()), allow_pickle=False) as arrays:
                tables: dict[str, Any] = {name: arrays[f"model.{name}"] for name in _TABLES}
                counts = {
                    name.removeprefix("counts."): arrays[name]
                    for name in arrays.files
                    if name.startswith("counts.")
                }
            return InferenceState(model=replace(start, **tables), counts=counts, **facts)
        except (AttributeError, KeyError, TypeError, ValueError, zipfile.BadZipFile, EOFError) as error:
            raise FormatError(
                place, found=f"{type(error).__name__}: {error}", expected=_EXPECTED, hint="start anew"
            ) from error


def _check_facts(facts: Mapping[str, Any]) -> None:
    """Check the kinds of what a state holds; raises a `ValueError`, `TypeError` or `KeyError`."""
    history, collected = facts["history"], facts["collected"]
    wanted = [(facts, ("batch",)), (collected, _NUMBERS), *((row, _OF_ITERATIONS) for row in history)]
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
