"""Junctions of tables: nucleotides, amino acids and motifs, encoded for the chain or translated."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.alphabets import GENETIC_CODE
from plait.dp.chain.graphs import CodedJunctions, GraphParts
from plait.errors import InvalidInput
from plait.formats.layouts import Layout, layout_named
from plait.formats.rearrangements import RearrangementReader
from plait.run.rows import rows_per_block
from plait.vdj.calls import STATUSES, as_column, encode_column, length_statuses, text_bytes
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.weights import GeneCalls, GivenGenes, ModelShapes, model_shapes, parts_of

TextKind: TypeAlias = Literal["nt", "aa", "motif"]

_ALL_CODONS: Final = tuple(product("TCAG", repeat=3))
#: Codons of each amino acid and of ``*``, the stop.
CODONS: Final[Mapping[str, tuple[str, ...]]] = {
    acid: tuple("".join(codon) for codon, own in zip(_ALL_CODONS, GENETIC_CODE, strict=True) if own == acid)
    for acid in sorted(set(GENETIC_CODE))
}
#: Letters for amino acids, and for sets of them; X is any of the twenty.
AMINO_ACIDS: Final[Mapping[str, str]] = {
    **{acid: acid for acid in CODONS},
    "B": "DN",
    "J": "IL",
    "X": "".join(acid for acid in CODONS if acid != "*"),
    "Z": "EQ",
}
#: Nucleotides that each IUPAC letter stands for.
NUCLEOTIDES: Final[Mapping[str, str]] = dict(
    zip(
        "ACGTRYSWKMBDHVN",
        ("A", "C", "G", "T", "AG", "CT", "CG", "AT", "GT", "AC", "CGT", "AGT", "ACT", "ACG", "ACGT"),
        strict=True,
    )
)
_TOKEN = re.compile(r"\[([A-Za-z*]+)\]|([A-Za-z*.])")
#: Codes that one table of parts may have.
_MOST_CODES = 255
_SHORTEST: Final[Mapping[str, int]] = {"nt": 6, "aa": 2, "motif": 2}
_LONGEST: Final[Mapping[str, int]] = {"nt": 1000, "aa": 333, "motif": 333}


_Words: TypeAlias = tuple[tuple[str, ...], ...]


class TooManySets(InvalidInput):
    """Motifs of a batch have more sets of amino acids than there are codes; fewer motifs may do."""


class EncodedTexts(NamedTuple):
    """A column of n junctions, ``codes[start[i]:start[i] + length[i]]``.

    `parts` and `words` (over A, C, G, T) say what each code stands for; `status` (n,) are indices into
    `plait.vdj.calls.STATUSES`.
    """

    parts: GraphParts
    codes: NDArray[np.uint8]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    status: NDArray[np.uint8]
    words: tuple[tuple[str, ...], ...]


@cache
def _alphabet(kind: TextKind) -> tuple[GraphParts, NDArray[np.uint8], _Words]:
    """Parts of nucleotides or amino acids, the code of each byte, 255 for others, and the words of codes."""
    sets: Mapping[str, Sequence[str]] = NUCLEOTIDES
    if kind != "nt":
        sets = {letter: _codons(acids) for letter, acids in AMINO_ACIDS.items()}
    code = np.full(256, 255, np.uint8)
    for k, letter in enumerate(sets):
        code[ord(letter)] = code[ord(letter.lower())] = k
    return parts_of(sets.values()), code, tuple(tuple(words) for words in sets.values())


def _codons(acids: str) -> list[str]:
    return [codon for acid in acids for codon in CODONS[acid]]


def encode_texts(junctions: pa.Array, kind: TextKind) -> EncodedTexts:
    """Encode a column of junctions.

    Nucleotides may be IUPAC letters; amino acids may be X, B, J, Z and ``*``. In a motif ``[...]`` stands for
    one of several amino acids, ``.`` for any. InvalidInput if there is no such kind; TooManySets if motifs
    have more sets of amino acids than there are codes.
    """
    if kind not in _SHORTEST:
        raise InvalidInput("kind", found=repr(kind), expected=", ".join(_SHORTEST))
    if kind == "motif":
        return _encode_motifs(junctions.to_pylist())
    parts, code, words = _alphabet(kind)
    raw = encode_column(junctions, code, 255, _SHORTEST[kind], _LONGEST[kind])
    return EncodedTexts(parts, *raw, words)


def _encode_motifs(motifs: Sequence[str | None]) -> EncodedTexts:
    known: dict[str, int] = {}
    codes: list[int] = []
    length, status = [], np.zeros(len(motifs), np.uint8)
    for k, motif in enumerate(motifs):
        found = _acid_sets(motif or "")
        if found is None:
            status[k] = STATUSES.index("invalid_symbol")
            found = []
        length.append(len(found))
        codes += [known.setdefault(acids, len(known)) for acids in found]
    if len(known) > _MOST_CODES:
        raise TooManySets(
            "motifs",
            found=f"{len(known)} different sets of amino acids",
            expected=f"at most {_MOST_CODES} in a batch",
        )
    sizes = np.array(length, np.int64)
    ok = status == 0
    status[ok] = length_statuses(status[ok], sizes[ok], _SHORTEST["motif"], _LONGEST["motif"])
    words = tuple(tuple(_codons(acids)) for acids in known) or (("A",),)
    parts = parts_of(words)
    return EncodedTexts(parts, np.array(codes, np.uint8), np.cumsum(sizes) - sizes, sizes, status, words)


def _acid_sets(motif: str) -> list[str] | None:
    """The amino acids at every position of a motif; None if it is not one."""
    found, at = [], 0
    for token in _TOKEN.finditer(motif):
        if token.start() != at:
            return None
        at = token.end()
        letters = (token[1] or token[2]).upper().replace(".", "X")
        if not set(letters) <= set(AMINO_ACIDS):
            return None
        found.append("".join(sorted({acid for letter in letters for acid in AMINO_ACIDS[letter]})))
    return found if at == len(motif) else None


class EncodedJunctions(NamedTuple):
    """A batch of n rows; `texts` are the rows that can be used, in order, `rows` which these are.

    `parts` is what each code stands for; `status` (n,) are indices into `plait.vdj.calls.STATUSES`, 0 where
    a row can be used. `columns` are the junctions and the genes of all rows.
    """

    parts: GraphParts
    texts: CodedJunctions
    rows: NDArray[np.int64]
    status: NDArray[np.uint8]
    columns: tuple[EncodedTexts, GivenGenes, GivenGenes]


class JunctionEncoder:
    """Encodes columns for models with the same genes.

    Parameters
    ----------
    model
        A model with these genes.
    shapes
        Its shapes, where they are known.
    missing
        What a row without a call is: one that may be made with any functional gene (``"any"``), or one that
        cannot be used (``"refused"``).
    """

    def __init__(
        self,
        model: RecombinationModel,
        *,
        shapes: ModelShapes | None = None,
        missing: Literal["refused", "any"] = "any",
    ) -> None:
        found = model_shapes(model) if shapes is None else shapes
        self.calls = {
            "v": GeneCalls(model, "v", found.v, missing),
            "j": GeneCalls(model, "j", found.j, missing),
        }

    def encode(
        self, junctions: Any, v_call: Any = None, j_call: Any = None, *, kind: TextKind = "nt"
    ) -> EncodedJunctions:
        """Encode a batch.

        Parameters
        ----------
        junctions
            Sequence or Arrow array of texts, from the conserved Cys to the conserved Phe or Trp.
        v_call, j_call
            Genes or alleles, or lists of them, that each junction may be made with; None for no calls.
        kind
            What the junctions are: ``"nt"``, ``"aa"`` or ``"motif"``.

        Raises
        ------
        InvalidInput
            If the columns are not of one length.
        """
        columns = self.columns(as_column(junctions), v_call, j_call, kind)
        texts, *calls = columns
        status = texts.status.copy()
        for given in calls:
            undecided = status == 0
            status[undecided] = given.status[given.codes[undecided]]
        rows = np.flatnonzero(status == 0)
        lists = (one for given in calls for one in given.spread(rows))
        batch = CodedJunctions(texts.codes, texts.start[rows], texts.length[rows], *lists)
        return EncodedJunctions(texts.parts, batch, rows, status, columns)

    def columns(
        self, junctions: pa.Array, v_call: Any, j_call: Any, kind: TextKind = "nt"
    ) -> tuple[EncodedTexts, GivenGenes, GivenGenes]:
        """What the columns say, row by row; errors as of `encode`.

        Parameters
        ----------
        junctions, v_call, j_call, kind
            As for `encode`; junctions are an array.
        """
        n = len(junctions)
        v, j = self.calls["v"].read(v_call, n), self.calls["j"].read(j_call, n)
        return encode_texts(junctions, kind), v, j


def split_texts(
    parts: GraphParts, texts: CodedJunctions, first: int, last: int
) -> list[tuple[bool, NDArray[np.int64]]]:
    """Those of `first` to `last` of codes for one symbol each (True), and others, counted from `first`."""
    start, length = texts.start[first:last], texts.length[first:last]
    low, high = (int(start.min()), int((start + length).max())) if start.size else (0, 0)
    # Between them may be codes of junctions that cannot be used.
    many = np.zeros(256, np.bool_)
    many[: parts.nodes.size] = parts.nodes > 1
    several = np.concatenate([[0], np.cumsum(many[texts.codes[low:high]])])
    plain = several[start - low + length] == several[start - low]
    found = [(kind, np.flatnonzero(plain == kind)) for kind in (True, False)]
    return [(kind, rows) for kind, rows in found if rows.size]


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
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="at least one file")
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
    raw, start, sizes = text_bytes(column)
    if not raw.size:
        return pa.array([None] * len(column), pa.string())
    digits = _DIGITS[raw]
    foreign = np.concatenate([[0], np.cumsum(digits > 3)])
    odd = foreign[start + sizes] > foreign[start]
    framed = (sizes % 3 == 0) & (sizes > 0)
    acids = np.where(framed & ~odd, sizes // 3, 0)
    ends = np.concatenate([[0], np.cumsum(acids)])
    at = np.repeat(start - 3 * ends[:-1], acids) + 3 * np.arange(ends[-1])
    letters = ACID_OF_CODON[16 * digits[at] + 4 * digits[at + 1] + digits[at + 2]] if at.size else at
    plain = pa.LargeStringArray.from_buffers(
        len(column), pa.py_buffer(ends.astype(np.int64)), pa.py_buffer(letters.astype(np.uint8))
    )
    found = pc.if_else(pa.array(framed), plain, pa.scalar(None, pa.large_string())).cast(pa.string())
    rest = np.flatnonzero(framed & odd)
    if rest.size:
        slow = [translated(text) for text in column.take(pa.array(rest)).to_pylist()]
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
