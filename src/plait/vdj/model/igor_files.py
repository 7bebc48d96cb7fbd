"""The model files of IGoR and OLGA: ``model_params.txt``, ``model_marginals.txt`` and two tables of anchors.

Parameters list events with their realisations; a realisation's index, not its place in the file, is its place
in the marginals. Marginals are tables whose last axis is the event and whose others are its parents.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel

__all__ = ["MODEL_FILES", "read_igor_model"]

#: Names of the files in a model folder.
MODEL_FILES = (
    "model_params.txt",
    "model_marginals.txt",
    "V_gene_CDR3_anchors.csv",
    "J_gene_CDR3_anchors.csv",
)


@dataclass(slots=True)
class _Event:
    """An event with its realisations: (name, value) by index."""

    kind: str
    nickname: str
    line: int
    found: dict[int, tuple[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Table:
    line: int
    values: NDArray[np.float64]


def read_igor_model(folder: str | os.PathLike[str], *, name: str | None = None) -> RecombinationModel:
    """Read a model folder.

    Parameters
    ----------
    folder
        Where the four files are.
    name
        What to call the model; by default the folder's name.

    Raises
    ------
    FormatError
        If a file is missing or not as it should be.
    InvalidInput
        If probabilities do not add up to 1.
    """
    place = Path(folder)
    params, marginals, v_anchors, j_anchors = (place / name for name in MODEL_FILES)
    events, error_rate = _read_params(params)
    tables = _read_marginals(marginals)
    reader = _Assembly(params, marginals, events, tables)
    v = reader.genes("v_choice", _read_anchors(v_anchors))
    j = reader.genes("j_choice", _read_anchors(j_anchors))
    has_d = "d_gene" in events
    d = reader.genes("d_gene", {}) if has_d else ()
    p_v = reader.table("v_choice", (len(v),))
    p_j = reader.table("j_choice", (len(j),), (len(v), len(j)))
    left = "vd" if has_d else "vj"
    nothing = np.zeros((0, 0, 0))
    return RecombinationModel(
        name=name or place.name,
        v=v,
        d=d,
        j=j,
        p_v=p_v,
        p_dj=reader.joint(p_v, p_j, len(d)),
        p_v_deletions=reader.deletions("v_3_del", len(v)),
        p_j_deletions=reader.deletions("j_5_del", len(j)),
        p_d_deletions=reader.d_deletions(len(d)) if has_d else nothing,
        palindromes=tuple(  # type: ignore[arg-type]
            reader.palindrome(nickname) if nickname in events else 0
            for nickname in ("v_3_del", "d_5_del", "d_3_del", "j_5_del")
        ),
        p_vd_length=reader.lengths(f"{left}_ins"),
        vd_steps=reader.steps(f"{left}_dinucl"),
        p_dj_length=reader.lengths("dj_ins") if has_d else np.ones(1),
        dj_steps=reader.steps("dj_dinucl") if has_d else np.full((4, 4), 0.25),
        error_rate=error_rate,
        provenance={"format": "IGoR model folder", "folder": os.fspath(place)},
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(str(path), found=str(error), expected="a readable text file") from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield number, line.strip()


def _read_params(path: Path) -> tuple[dict[str, _Event], float]:
    events: dict[str, _Event] = {}
    section, event, error_rate = "", None, 0.0
    for number, line in _lines(path):
        if line.startswith("@"):
            section = line
        elif section == "@Event_list" and line.startswith("#"):
            words = line[1:].split(";")
            if len(words) != 5:
                raise FormatError(
                    str(path), line=number, found=line[:80], expected="#type;genes;side;priority;nickname"
                )
            event = _Event(words[0], words[4], number)
            events[words[4]] = event
        elif section == "@Event_list" and line.startswith("%") and event is not None:
            words = line[1:].split(";")
            if len(words) not in (2, 3) or not words[-1].isdigit():
                raise FormatError(
                    str(path), line=number, found=line[:80], expected="%name;sequence;index or %value;index"
                )
            if int(words[-1]) in event.found:
                raise FormatError(
                    str(path), line=number, found=f"index {words[-1]} twice", expected="every index once"
                )
            event.found[int(words[-1])] = (words[0], words[1] if len(words) == 3 else words[0])
        elif section == "@ErrorRate" and not line.startswith("#"):
            error_rate = _numbers(path, number, line.split(",")[:1])[0]
    for event in events.values():
        if sorted(event.found) != list(range(len(event.found))):
            raise FormatError(
                str(path),
                line=event.line,
                found=f"indices of {event.nickname} with gaps",
                expected=f"0 to {len(event.found) - 1}",
            )
    return events, error_rate


def _numbers(path: Path, line: int, words: list[str]) -> list[float]:
    try:
        return [float(word) for word in words]
    except ValueError as error:
        raise FormatError(str(path), line=line, found=str(error), expected="numbers") from None


def _read_marginals(path: Path) -> dict[str, _Table]:
    tables: dict[str, _Table] = {}
    name, start, shape, values = "", 0, (), []  # type: tuple[Any, ...], list[float]

    def finish() -> None:
        if not name:
            return
        if not shape or len(values) != int(np.prod(shape)):
            raise FormatError(
                str(path),
                line=start,
                found=f"{len(values)} numbers for {name}",
                expected=f"{int(np.prod(shape))}, as $Dim{list(shape)} says",
            )
        tables[name] = _Table(start, np.array(values).reshape(shape))

    for number, line in _lines(path):
        if line.startswith("@"):
            finish()
            name, start, shape, values = line[1:], number, (), []
        elif line.startswith("$Dim"):
            shape = tuple(int(n) for n in _numbers(path, number, line[5:].rstrip("]").split(",")))
        elif line.startswith("%"):
            values += _numbers(path, number, line[1:].split(","))
    finish()
    return tables


def _read_anchors(path: Path) -> dict[str, tuple[int, str]]:
    anchors = {}
    lines = list(_lines(path))
    for row in csv.DictReader(line for _, line in lines):
        gene, index = row.get("gene"), row.get("anchor_index")
        if gene is None or index is None or not index.strip().isdigit():
            raise FormatError(
                str(path), found=str(row)[:80], expected="columns gene, anchor_index and function"
            )
        anchors[gene] = (int(index), row.get("function") or "")
    return anchors


class _Assembly:
    """Puts events and tables together."""

    def __init__(
        self, params: Path, marginals: Path, events: dict[str, _Event], tables: dict[str, _Table]
    ) -> None:
        self._params = params
        self._marginals = marginals
        self._events = events
        self._tables = tables

    def _event(self, nickname: str) -> _Event:
        if nickname not in self._events:
            found = ", ".join(self._events) or "no events"
            raise FormatError(str(self._params), found=found, expected=f"an event {nickname}")
        return self._events[nickname]

    def genes(self, nickname: str, anchors: dict[str, tuple[int, str]]) -> tuple[ModelGene, ...]:
        event = self._event(nickname)
        genes = []
        for index in range(len(event.found)):
            name, sequence = event.found[index]
            anchor, function = anchors.get(name, (None, ""))
            if set(sequence.upper()) - set("ACGT"):
                raise FormatError(
                    str(self._params), found=f"sequence of {name}: {sequence[:40]}", expected="A, C, G and T"
                )
            genes.append(ModelGene(name, sequence.upper(), anchor, function))
        return tuple(genes)

    def table(self, nickname: str, *shapes: tuple[int, ...]) -> NDArray[np.float64]:
        table = self._tables.get(nickname)
        if table is None:
            found = ", ".join(self._tables)
            raise FormatError(str(self._marginals), found=found, expected=f"a table {nickname}")
        if table.values.shape not in shapes:
            raise FormatError(
                str(self._marginals),
                line=table.line,
                found=f"{nickname} of shape {table.values.shape}",
                expected=" or ".join(map(str, shapes)),
            )
        return table.values

    def joint(
        self, p_v: NDArray[np.float64], p_j: NDArray[np.float64], d: int
    ) -> NDArray[np.float64]:
        """P(D, J), of shape (1, D, J), averaged over V where it depends on it; without D given V, (V, 1, J)."""
        j = p_j.shape[-1]
        p_j = p_j.reshape(-1, 1, j)
        if d == 0:
            return p_j
        given = self.table("d_gene", (d,), (j, d), (p_v.size, j, d))
        joint: NDArray[np.float64] = p_j * np.swapaxes(given.reshape(-1, *given.shape[-2:]), -1, -2)
        if len(joint) > 1:
            joint = np.tensordot(p_v, joint, 1)[None]
        return np.ascontiguousarray(joint)

    def _deletion_order(self, nickname: str) -> list[int]:
        """Deletions by index; they must go up by one."""
        event = self._event(nickname)
        values = [int(event.found[index][0]) for index in range(len(event.found))]
        if values != list(range(values[0], values[0] + len(values))) or values[0] > 0:
            raise FormatError(
                str(self._params),
                line=event.line,
                found=f"{nickname}: {values[:8]}...",
                expected="deletions that go up by one, from the longest palindrome on",
            )
        return values

    def palindrome(self, nickname: str) -> int:
        return -self._deletion_order(nickname)[0]

    def deletions(self, nickname: str, genes: int) -> NDArray[np.float64]:
        return self.table(nickname, (genes, len(self._deletion_order(nickname))))

    def d_deletions(self, genes: int) -> NDArray[np.float64]:
        """P(5' deletion, 3' deletion | D)."""
        n5, n3 = len(self._deletion_order("d_5_del")), len(self._deletion_order("d_3_del"))
        five = self.table("d_5_del", (genes, n5))
        three = self.table("d_3_del", (genes, n5, n3), (genes, n3))
        return five[:, :, None] * (three if three.ndim == 3 else three[:, None, :])

    def lengths(self, nickname: str) -> NDArray[np.float64]:
        event = self._event(nickname)
        table = self.table(nickname, (len(event.found),))
        found = np.zeros(1 + max(int(value) for value, _ in event.found.values()))
        for index, (value, _) in event.found.items():
            found[int(value)] = table[index]
        return found

    def steps(self, nickname: str) -> NDArray[np.float64]:
        event = self._event(nickname)
        order = [next(k for k, (base, _) in event.found.items() if base == letter) for letter in "ACGT"]
        table = self.table(nickname, (16,)).reshape(4, 4)
        table = table[np.ix_(order, order)]
        return np.ascontiguousarray(table / table.sum(axis=1, keepdims=True))
