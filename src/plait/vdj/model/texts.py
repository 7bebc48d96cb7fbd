"""Columns of junctions and calls, encoded for the schedules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.alphabets import GENETIC_CODE
from plait.dp.chain.texts import GraphParts, WeightedTexts
from plait.errors import InvalidInput
from plait.vdj.model.gene_ends import GeneCalls, ModelShapes, as_column, model_shapes, taken
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.weights import parts_of
from plait.vdj.results import STATUSES

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
    `plait.vdj.results.STATUSES`.
    """

    parts: GraphParts
    codes: NDArray[np.uint8]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    status: NDArray[np.uint8]
    words: tuple[tuple[str, ...], ...]

    def plain(self) -> NDArray[np.bool_]:
        """Which junctions are made of codes for one symbol each, (n,); of an invalid one it means nothing."""
        single = np.zeros(256, np.bool_)
        single[: self.parts.nodes.size] = self.parts.nodes == 1
        if not single.any():
            return np.zeros(self.start.size, np.bool_)
        others = np.flatnonzero(~single[self.codes])
        found = np.ones(self.start.size, np.bool_)
        found[np.searchsorted(self.start, others, side="right") - 1] = False
        return found


def _letters(sets: Mapping[str, Sequence[str]]) -> tuple[GraphParts, NDArray[np.uint8], _Words]:
    """Parts of an alphabet, the code of each byte, 255 for others, and the words of each code."""
    code = np.full(256, 255, np.uint8)
    for k, letter in enumerate(sets):
        code[ord(letter)] = code[ord(letter.lower())] = k
    return parts_of(sets.values()), code, tuple(tuple(words) for words in sets.values())


_ALPHABETS: dict[str, Any] = {}


def _alphabet(kind: TextKind) -> tuple[GraphParts, NDArray[np.uint8], _Words]:
    if kind not in _ALPHABETS:
        if kind == "nt":
            _ALPHABETS[kind] = _letters(NUCLEOTIDES)
        else:
            _ALPHABETS[kind] = _letters({letter: _codons(acids) for letter, acids in AMINO_ACIDS.items()})
    found: tuple[GraphParts, NDArray[np.uint8], _Words] = _ALPHABETS[kind]
    return found


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
    column = junctions.cast(pa.large_string()).fill_null("")
    n = len(column)
    if n == 0:
        nothing = np.zeros(0, np.int64)
        return EncodedTexts(parts, np.zeros(0, np.uint8), nothing, nothing, np.zeros(0, np.uint8), words)
    _, offsets_buffer, data = column.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64)[column.offset : column.offset + n + 1]
    raw = (
        np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    )
    codes, start, length = code[raw], offsets[:-1] - offsets[0], np.diff(offsets)
    invalid = np.flatnonzero(codes == 255)
    status = np.zeros(n, np.uint8)
    if invalid.size:
        status[np.searchsorted(start, invalid, side="right") - 1] = STATUSES.index("invalid_symbol")
    return EncodedTexts(parts, codes, start, length, _with_lengths(status, length, kind), words)


def _with_lengths(status: NDArray[np.uint8], length: NDArray[np.int64], kind: TextKind) -> NDArray[np.uint8]:
    undecided = status == 0
    status[undecided & (length < _SHORTEST[kind])] = STATUSES.index("too_short")
    status[undecided & (length > _LONGEST[kind])] = STATUSES.index("too_long")
    status[length == 0] = STATUSES.index("missing_junction")
    return status


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
    status[ok] = _with_lengths(status[ok], sizes[ok], "motif")
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

    `parts` is what each code stands for; `status` (n,) are indices into `plait.vdj.results.STATUSES`, 0 where
    a row can be used.
    """

    parts: GraphParts
    texts: WeightedTexts
    rows: NDArray[np.int64]
    status: NDArray[np.uint8]


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
        self._v = GeneCalls(model, "v", found.v, missing)
        self._j = GeneCalls(model, "j", found.j, missing)

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
        texts = encode_texts(as_column(junctions), kind)
        n = texts.status.size
        v, j = self._v.read(v_call, n), self._j.read(j_call, n)
        status = texts.status.copy()
        for given in (v, j):
            undecided = status == 0
            status[undecided] = given.status[given.codes[undecided]]
        rows = np.flatnonzero(status == 0)
        batch = WeightedTexts(
            texts.codes, texts.start[rows], texts.length[rows], *v.spread(rows), *j.spread(rows)
        )
        return EncodedJunctions(texts.parts, batch, rows, status)


def split_texts(
    parts: GraphParts, texts: WeightedTexts, first: int, last: int
) -> list[tuple[bool, NDArray[np.int64]]]:
    """Texts `first` to `last`, those of codes for one symbol each (True) and others, counted from `first`."""
    start, length = texts.start[first:last], texts.length[first:last]
    low, high = (int(start.min()), int((start + length).max())) if start.size else (0, 0)
    several = np.cumsum(np.concatenate([[0], parts.nodes[texts.codes[low:high]] > 1]))
    plain = several[start - low + length] == several[start - low]
    found = [(kind, np.flatnonzero(plain == kind)) for kind in (True, False)]
    return [(kind, rows) for kind, rows in found if rows.size]


def chosen_texts(texts: WeightedTexts, rows: NDArray[np.int64]) -> WeightedTexts:
    """The texts `rows` of a batch."""
    v = taken(texts.prefix_first, texts.prefix_root, rows)
    j = taken(texts.suffix_first, texts.suffix_root, rows)
    return WeightedTexts(texts.codes, texts.start[rows], texts.length[rows], *v, *j)
