"""The model files of IGoR and OLGA: ``model_params.txt``, ``model_marginals.txt`` and two tables of anchors.

Parameters list events with their realisations; a realisation's index, not its place in the file, is its place
in the marginals. Marginals are tables whose last axis is the event and whose others are its parents.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.vdj.model.igor_text import (
    IgorEvent,
    IgorTable,
    model_paths,
    read_anchors,
    read_marginals,
    read_parameters,
)
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel

__all__ = ["read_igor_model"]

#: Tables of a model, and the nicknames of theirs.
_NICKNAMES = {
    "p_v": ("v_choice",),
    "p_dj": ("d_gene", "j_choice"),
    "p_v_deletions": ("v_3_del",),
    "p_d_deletions": ("d_3_del",),
    "p_j_deletions": ("j_5_del",),
    "p_vd_length": ("vd_ins", "vj_ins"),
    "p_dj_length": ("dj_ins",),
    "vd_steps": ("vd_dinucl", "vj_dinucl"),
    "dj_steps": ("dj_dinucl",),
}


def read_igor_model(folder: str | os.PathLike[str], *, name: str | None = None) -> RecombinationModel:
    """Read a model folder.

    Parameters
    ----------
    folder
        Where the four files are, under the names that OLGA gives them; or IGoR's folder with ``models`` and
        ``ref_genome``.
    name
        What to call the model; by default the folder's name.

    Raises
    ------
    FormatError
        If a file is missing or not as it should be, or probabilities do not add up to 1.
    """
    place = Path(folder)
    params, marginals, v_anchors, j_anchors = model_paths(place)
    events, error_rate = read_parameters(params)
    tables = read_marginals(marginals)
    reader = _Assembly(params, marginals, events, tables)
    v = reader.genes("v_choice", read_anchors(v_anchors))
    j = reader.genes("j_choice", read_anchors(j_anchors))
    has_d = "d_gene" in events
    d = reader.genes("d_gene", {}) if has_d else ()
    p_v = reader.table("v_choice", (len(v),))
    p_j = reader.table("j_choice", (len(j),), (len(v), len(j)))
    left = "vd" if has_d else "vj"
    nothing = np.zeros((0, 0, 0))
    try:
        return RecombinationModel(
            name=name or place.resolve().name,
            v=v,
            d=d,
            j=j,
            p_v=p_v,
            p_dj=reader.joint(p_v, p_j, len(d)),
            p_v_deletions=reader.deletions("v_3_del", len(v)),
            p_j_deletions=reader.deletions("j_5_del", len(j)),
            p_d_deletions=reader.d_deletions(len(d)) if has_d else nothing,
            palindromes=tuple(  # type: ignore[arg-type]  # there are four
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
    except InvalidInput as error:
        known = [nickname for nickname in _NICKNAMES.get(error.what, ()) if nickname in tables]
        if not known:
            found = f"{error.found} in {error.what}"
            raise FormatError(params, found=found, expected=error.expected) from error
        raise FormatError(
            marginals,
            line=tables[known[0]].line,
            found=f"{error.what} ({' and '.join(known)}) with {error.found}",
            expected=error.expected,
        ) from error


def _imgt_header(name: str) -> tuple[str, str]:
    """Allele and functionality; in models of IGoR, names are the headers of IMGT's FASTA files."""
    words = name.split("|")
    return (words[1].strip(), words[3].strip()) if len(words) > 3 else (name, "")


class _Assembly:
    """Puts events and tables together."""

    def __init__(
        self, params: Path, marginals: Path, events: dict[str, IgorEvent], tables: dict[str, IgorTable]
    ) -> None:
        self._params = params
        self._marginals = marginals
        self._events = events
        self._tables = tables

    def _event(self, nickname: str) -> IgorEvent:
        if nickname not in self._events:
            found = ", ".join(self._events) or "no events"
            raise FormatError(self._params, found=found, expected=f"an event {nickname}")
        return self._events[nickname]

    def genes(self, nickname: str, anchors: dict[str, tuple[int, str]]) -> tuple[ModelGene, ...]:
        event = self._event(nickname)
        genes = []
        for index in range(len(event.found)):
            header, sequence = event.found[index]
            name, told = _imgt_header(header)
            anchor, function = anchors.get(header, (None, ""))
            function = function or told
            if set(sequence.upper()) - set("ACGT"):
                found, expected = f"{sequence[:40]!r} as sequence of {name}", "A, C, G and T"
                raise FormatError(self._params, line=event.lines[index], found=found, expected=expected)
            if anchor is not None and anchor + 3 > len(sequence):
                # Of some alleles only the beginning is known: they make no junction.
                anchor = None
            genes.append(ModelGene(name, sequence.upper(), anchor, function))
        return tuple(genes)

    def table(self, nickname: str, *shapes: tuple[int, ...]) -> NDArray[np.float64]:
        table = self._tables.get(nickname)
        if table is None:
            found = ", ".join(self._tables)
            raise FormatError(self._marginals, found=found, expected=f"a table {nickname}")
        if table.values.shape not in shapes:
            raise FormatError(
                self._marginals,
                line=table.line,
                found=f"{nickname} of shape {table.values.shape}",
                expected=" or ".join(map(str, shapes)),
            )
        return table.values

    def joint(self, p_v: NDArray[np.float64], p_j: NDArray[np.float64], d: int) -> NDArray[np.float64]:
        """P(D, J) of shape (1, D, J), averaged over V where it depends on V; (V, 1, J) without D."""
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
                self._params,
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
        numbers = Counter(int(value) for value, _ in event.found.values())
        if max(numbers.values()) > 1:
            what, expected = f"{nickname} with a number twice", "every number of insertions once"
            raise FormatError(self._params, line=event.line, found=what, expected=expected)
        found = np.zeros(1 + max(numbers))
        for index, (value, _) in event.found.items():
            found[int(value)] = table[index]
        return found

    def steps(self, nickname: str) -> NDArray[np.float64]:
        event = self._event(nickname)
        places = {base.upper(): index for index, (base, _) in event.found.items()}
        if sorted(places) != list("ACGT") or len(event.found) != 4:
            found = f"{nickname} with {', '.join(base for base, _ in event.found.values())}"
            raise FormatError(self._params, line=event.line, found=found, expected="A, C, G and T")
        order = [places[letter] for letter in "ACGT"]
        table = self.table(nickname, (16,)).reshape(4, 4)[np.ix_(order, order)]
        sums = table.sum(axis=1, keepdims=True)
        if not (np.isfinite(sums) & (sums > 0)).all():
            # Also NaN, and numbers that are infinite.
            odd = "a row of zeros" if np.isfinite(sums).all() else "a number that is none or infinite"
            found, line = f"{odd} in {nickname}", self._tables[nickname].line
            raise FormatError(self._marginals, line=line, found=found, expected="four distributions")
        # The published values of the field's programs come from rows that are scaled to 1.
        return np.ascontiguousarray(table / sums)
