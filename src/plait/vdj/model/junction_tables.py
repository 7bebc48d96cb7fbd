"""Junctions of tables of rearrangements, as nucleotides and as amino acids."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

import pyarrow as pa

from plait.formats.layouts import layout_named
from plait.formats.rearrangements import RearrangementReader
from plait.vdj.model.texts import AMINO_ACIDS, CODONS

__all__ = ["GivenCalls", "JunctionTable", "open_junctions", "renamed_columns", "translated"]

#: Which calls of a row are taken for what it was made of.
GivenCalls: TypeAlias = Literal["both", "v", "j", "none"]

_ACID_COLUMNS: Final = {
    "airr": ("junction_aa",),
    "immunarch": ("CDR3.aa",),
    "vdjtools": ("cdr3aa", "CDR3aa"),
    "mixcr": ("aaSeqCDR3", "AA. Seq. CDR3"),
}
_ACID: Final = {codon: acid for acid, codons in CODONS.items() for codon in codons}


class JunctionTable:
    """A table and where its junctions and calls are; made by `open_junctions`.

    Parameters
    ----------
    reader
        The table.
    acids
        Column of amino acids; None if there is none.
    calls
        Which calls are used.

    Attributes
    ----------
    reader : plait.formats.rearrangements.RearrangementReader
        The table.
    """

    def __init__(self, reader: RearrangementReader, acids: str | None, calls: GivenCalls) -> None:
        self.reader = reader
        self._acids = acids
        self._calls = calls

    def nucleotides(self, block: pa.RecordBatch) -> pa.Array:
        """Junctions of a block."""
        return block[self.reader.roles["junction"]]

    def amino_acids(self, block: pa.RecordBatch) -> pa.Array:
        """Junctions of a block as amino acids: as the table has them, or translated."""
        if self._acids is not None:
            return block[self._acids].cast(pa.string())
        return pa.array([translated(text) for text in self.nucleotides(block).to_pylist()], pa.string())

    def calls(self, block: pa.RecordBatch) -> tuple[pa.Array | None, pa.Array | None]:
        """V and J calls of a block, None for those that are not used."""
        used = {"both": "vj", "none": ""}.get(self._calls, self._calls)
        v, j = (block[self.reader.roles[f"{s}_call"]] if s in used else None for s in "vj")
        return v, j


def open_junctions(
    inputs: Sequence[str | os.PathLike[str]],
    *,
    layout: str,
    acids: bool,
    calls: GivenCalls,
    block_rows: int,
) -> JunctionTable:
    """Open tables; only the columns that are used need to be there.

    Parameters
    ----------
    inputs
        The tables.
    layout
        Name of their column layout.
    acids
        Whether amino acids alone will do.
    calls
        Which calls are used.
    block_rows
        Rows in a block.

    Raises
    ------
    InvalidInput, FormatError
        As `plait.formats.rearrangements.open_rearrangements`.
    """
    given = layout_named(layout)
    names = _ACID_COLUMNS[given.name]
    columns = dict(given.columns)
    junctions = columns["junction"]
    if acids:
        columns["junction"] = (*junctions, *names)
    for segment in "vj":
        if calls not in ("both", segment):
            # A column that is not read may be any, such as the one that must be there.
            columns[f"{segment}_call"] = (*columns[f"{segment}_call"], *columns["junction"])
    reader = RearrangementReader(inputs, layout=replace(given, columns=columns), block_rows=block_rows)
    found = next((name for name in names if name in reader.schema.names), None)
    return JunctionTable(reader, found, calls)


def renamed_columns(names: Sequence[str], results: Sequence[str]) -> dict[str, str]:
    """New names of input columns that have the name of a result.

    Parameters
    ----------
    names
        Columns of the input.
    results
        Columns of the results.
    """
    taken, renamed = {*names, *results}, {}
    for name in names:
        if name in results:
            new = f"input_{name}"
            while new in taken:
                new = f"input_{new}"
            taken.add(new)
            renamed[name] = new
    return renamed


def translated(junction: str | None) -> str | None:
    """A junction as amino acids, X where that depends on what a code stands for; None if it is out of frame.

    >>> translated("TGTGCNAGY"), translated("TGTG"), translated(None)
    ('CAS', None, None)
    """
    if not junction or len(junction) % 3:
        return None
    text = junction.upper()
    codons = (text[k : k + 3] for k in range(0, len(text), 3))
    return "".join(_ACID.get(codon) or _ambiguous(codon) for codon in codons)


_SETS: Final = dict(
    zip(
        "ACGTRYSWKMBDHVN",
        ("A", "C", "G", "T", "AG", "CT", "CG", "AT", "GT", "AC", "CGT", "AGT", "ACT", "ACG", "ACGT"),
        strict=True,
    )
)


def _ambiguous(codon: str) -> str:
    if not set(codon) <= set(_SETS):
        return "?"
    first, second, third = (_SETS[letter] for letter in codon)
    acids = {_ACID[a + b + c] for a in first for b in second for c in third}
    return acids.pop() if len(acids) == 1 and acids <= set(AMINO_ACIDS) else "X"
