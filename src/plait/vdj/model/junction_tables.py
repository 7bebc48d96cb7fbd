"""Junctions of tables of rearrangements, as nucleotides and as amino acids."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.layouts import Layout, layout_named
from plait.formats.rearrangements import RearrangementReader
from plait.run.rows import rows_per_block
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.texts import AMINO_ACIDS, CODONS, NUCLEOTIDES

#: Which calls of a row are taken for what it was made of: V and J, one of them, or none.
GivenCalls: TypeAlias = Literal["ignore", "use", "v", "j"]

#: Name of the layout of text without a header line.
LINES: Final = "lines"
_USED: Final = {"use": "vj", "v": "v", "j": "j", "ignore": ""}
_ACID_COLUMNS: Final = {
    "airr": ("junction_aa",),
    "immunarch": ("CDR3.aa",),
    "vdjtools": ("cdr3aa", "CDR3aa"),
    "mixcr": ("aaSeqCDR3", "AA. Seq. CDR3"),
    LINES: ("junction_aa",),
}
_ACID: Final = {codon: acid for acid, codons in CODONS.items() for codon in codons}


class JunctionColumns(NamedTuple):
    """Where junctions and calls stand in the columns that are worked on; -1 for what is not there.

    `v` and `j` are calls that are used, `named_v` and `named_j` calls used or not. The methods take the
    columns that are worked on.
    """

    nucleotides: int
    acids: int
    v: int
    j: int
    named_v: int = -1
    named_j: int = -1

    def texts(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Junctions as nucleotides."""
        return columns[self.nucleotides]

    def amino_acids(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Junctions as amino acids; those that the table lacks are translated."""
        given = columns[self.acids].cast(pa.string()) if self.acids >= 0 else None
        if self.nucleotides < 0:
            return given
        if given is None:
            return _translations(columns[self.nucleotides])
        lacking = pc.equal(pc.fill_null(given, ""), "")
        if not pc.any(lacking).as_py():
            return given
        made = _translations(columns[self.nucleotides].filter(lacking))
        return pc.replace_with_mask(given, lacking, made)

    def calls(self, columns: Sequence[pa.Array]) -> dict[str, pa.Array]:
        """V and J calls, those that are used."""
        return {name: columns[at] for name, at in (("v", self.v), ("j", self.j)) if at >= 0}

    def named(self, columns: Sequence[pa.Array]) -> dict[str, pa.Array]:
        """V and J calls that are there, used or not."""
        return {name: columns[at] for name, at in (("v", self.named_v), ("j", self.named_j)) if at >= 0}


class JunctionTable:
    """A table and where its junctions and calls are; made by `open_junctions`.

    `nucleotides` and `acids` are columns of junctions, None if there is none; `used` the calls that are used,
    as ``"vj"``. `paths` are the files as given, `columns` those that are worked on, `places` what they are.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        reader: RearrangementReader,
        nucleotides: str | None,
        acids: str | None,
        used: str,
    ) -> None:
        self.paths = [os.fspath(path) for path in paths]
        self.reader = reader
        calls = (reader.roles[f"{s}_call"] if s in used else None for s in "vj")
        named = (reader.roles.get(f"{s}_call") for s in "vj")
        names = [nucleotides, acids, *calls, *named]
        self.columns = list(dict.fromkeys(name for name in names if name is not None))
        self.places = JunctionColumns(*(self.columns.index(name) if name else -1 for name in names))

    def nucleotides(self, block: pa.RecordBatch) -> pa.Array:
        """Junctions of a block."""
        return self.places.texts(block.select(self.columns).columns)

    def calls(self, block: pa.RecordBatch) -> tuple[pa.Array | None, pa.Array | None]:
        """V and J calls of a block, None for those that are not used."""
        found = self.places.calls(block.select(self.columns).columns)
        return found.get("v"), found.get("j")


def open_junctions(
    inputs: Sequence[str | os.PathLike[str]],
    *,
    layout: str,
    acids: bool,
    calls: GivenCalls,
    block_rows: int,
    fewest_rows: int | None = None,
    nucleotides: bool = True,
) -> JunctionTable:
    """Open tables; only the columns that are used need to be there.

    The layout ``"lines"`` is text without a header line: a junction a line, as amino acids where nucleotides
    are not asked for; behind it, if need be, V and J calls. `acids` and `nucleotides` say whether these will
    do, `calls` which calls are used. `fewest_rows` is `block_rows` for rows that take much memory. Errors as
    of `plait.formats.rearrangements.open_rearrangements`.
    """
    given = _lines(nucleotides, acids) if layout == LINES else layout_named(layout)
    names, used = _ACID_COLUMNS[given.name], _USED[calls]
    own = given.columns["junction"]
    junctions = (*(own if nucleotides else ()), *(names if acids else ()))
    roles = ("junction", *(f"{segment}_call" for segment in used))
    given = replace(given, columns={**given.columns, "junction": junctions}, required=roles)

    reader = RearrangementReader(inputs, layout=given, block_rows=block_rows)
    if fewest_rows is not None:
        reader.block_rows = rows_per_block(reader.sampled_row_bytes(), fewest_rows, block_rows)
    first = reader.roles["junction"]
    acid = next((name for name in names if name in reader.schema.names), None)
    return JunctionTable(inputs, reader, first if first in own else None, acid, used)


def _lines(nucleotides: bool, acids: bool) -> Layout:
    columns = [*(["junction"] if nucleotides else []), *(["junction_aa"] if acids else [])]
    if not columns:
        raise InvalidInput("layout", found="lines of nothing", expected="nucleotides or amino acids")
    return Layout(
        name=LINES,
        description="text without a header line",
        columns={"junction": ("junction",), "v_call": ("v_call",), "j_call": ("j_call",)},
        header=(*columns, "v_call", "j_call"),
    )


_DIGITS: Final = np.full(256, 64, np.uint8)
for _k, _letter in enumerate("ACGT"):
    _DIGITS[[ord(_letter), ord(_letter.lower())]] = _k
#: uint8 (64,): letter of the amino acid of each codon, whose digits are those of its number.
ACID_OF_CODON: Final = np.frombuffer(
    "".join(_ACID[a + b + c] for a in "ACGT" for b in "ACGT" for c in "ACGT").encode(), np.uint8
)


def _translations(column: pa.Array) -> pa.Array:
    """Every junction as by `translated`."""
    texts = column.cast(pa.large_string()).fill_null("")
    sizes = pc.binary_length(texts).to_numpy(zero_copy_only=False)
    _, buffer, data = texts.buffers()
    if not len(texts) or data is None:
        return pa.array([None] * len(texts), pa.string())
    offsets = np.frombuffer(buffer, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    digits = _DIGITS[np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]]
    foreign = np.concatenate([[0], np.cumsum(digits > 3)])
    start = offsets - offsets[0]
    odd = foreign[start[1:]] > foreign[start[:-1]]
    framed = (sizes % 3 == 0) & (sizes > 0)
    acids = np.where(framed & ~odd, sizes // 3, 0)
    ends = np.concatenate([[0], np.cumsum(acids)])
    at = np.repeat(start[:-1] - 3 * ends[:-1], acids) + 3 * np.arange(ends[-1])
    letters = ACID_OF_CODON[16 * digits[at] + 4 * digits[at + 1] + digits[at + 2]] if at.size else at
    plain = pa.LargeStringArray.from_buffers(
        len(texts), pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(letters.astype(np.uint8))
    )
    found = pc.if_else(pa.array(framed), plain, pa.scalar(None, pa.large_string())).cast(pa.string())
    rest = np.flatnonzero(framed & odd)
    if rest.size:
        slow = [translated(text) for text in texts.take(pa.array(rest)).to_pylist()]
        found = pc.replace_with_mask(found, pa.array(framed & odd), pa.array(slow, pa.string()))
    return found


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


def _ambiguous(codon: str) -> str:
    if not set(codon) <= set(NUCLEOTIDES):
        return "?"
    first, second, third = (NUCLEOTIDES[letter] for letter in codon)
    acids = {_ACID[a + b + c] for a in first for b in second for c in third}
    return acids.pop() if len(acids) == 1 and acids <= set(AMINO_ACIDS) else "X"


#: Ends of genes in the order in which models have them: names of their deletions, and of P nucleotides.
END_COLUMNS: Final = (("v_3", "p3v"), ("d_5", "p5d"), ("d_3", "p3d"), ("j_5", "p5j"))


def choice_columns(
    model: RecombinationModel, fields: NDArray[np.int32], known: NDArray[np.bool_]
) -> dict[str, pa.Array]:
    """Calls, deletions and P nucleotides of n scenarios; null where nothing is known, and for D without D.

    `fields` are (n, 7 or more): V, D, J, and cuts of V, of D at 5' and 3', and of J, which count from the
    longest P extension.
    """
    of_d = known & bool(model.d)
    columns = {}
    for place, segment in enumerate("vdj"):
        names = pa.array([gene.name for gene in getattr(model, segment)], pa.string())
        there = of_d if segment == "d" else known
        columns[f"{segment}_call"] = names.take(int32_where(fields[:, place], there))
    for place, ((end, short), most) in enumerate(zip(END_COLUMNS, model.palindromes, strict=True), 3):
        cut, there = fields[:, place] - most, of_d if end.startswith("d") else known
        columns[f"{end}_deletion"] = int32_where(np.maximum(cut, 0), there)
        columns[f"{short}_length"] = int32_where(np.maximum(-cut, 0), there)
    return columns


def int32_where(values: NDArray[Any], known: NDArray[np.bool_]) -> pa.Array:
    """Numbers as int32, null where they are not known."""
    return pa.array(values.astype(np.int32), mask=~known)
