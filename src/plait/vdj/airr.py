"""Rows as the AIRR Rearrangement schema wants them: the columns it requires, whatever else there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.alphabets import AMINO_ACID_OF_MASKS, IUPAC_MASK
from plait.formats.checkpoints import letters_of
from plait.formats.layouts import REQUIRED_ROLES, is_text
from plait.lang.compile import kernel
from plait.run.rows import AddedColumns

_FLAGS: Final = ("rev_comp", "productive")
#: Columns that belong to single reads.
OF_READS: Final = ("sequence", "sequence_alignment", "germline_alignment", "v_cigar", "d_cigar", "j_cigar")
_TEXTS: Final = ("sequence_id", "cell_id", "locus", "v_call", "d_call", "j_call", "c_call", "junction")
#: What version 2.0 of the schema requires; and cell, locus and C gene: readers of single cells ask for them.
REQUIRED: Final = pa.schema(
    [(name, pa.string()) for name in (*_TEXTS, "junction_aa")]
    + [(name, pa.bool_()) for name in _FLAGS]
    + [(name, pa.string()) for name in OF_READS]
)
#: Of which columns others are made.
_MADE_OF: Final = {"locus": "j_call", "junction_aa": "junction", "productive": "junction"}
LOCI: Final = ("TRA", "TRB", "TRG", "TRD", "IGH", "IGK", "IGL")
#: Masks of letters; in models, U is none of them.
_MASKS: Final = np.where(np.isin(np.arange(256), (ord("U"), ord("u"))), np.uint8(0), IUPAC_MASK)
_WORDS: Final = np.arange(1 << 12)
#: Amino acids of three masks, ? where one of them is none; and which are stop codons, letter by letter.
_ACIDS: Final = np.where(
    (_WORDS & 0xF00 > 0) & (_WORDS & 0xF0 > 0) & (_WORDS & 0xF > 0), AMINO_ACID_OF_MASKS, ord("?")
).astype(np.uint8)
_STOPS: Final = np.isin(
    _WORDS,
    [int(_MASKS[a]) << 8 | int(_MASKS[b]) << 4 | int(_MASKS[c]) for a, b, c in (b"TAA", b"TAG", b"TGA")],
)


def lacking(given: pa.Schema) -> pa.Schema:
    """The columns of `REQUIRED` that a table of rearrangements lacks; none if it is another table."""
    if not {*REQUIRED_ROLES} <= {*given.names} or not is_text(given.field("junction").type):
        return pa.schema([])
    return pa.schema([field for field in REQUIRED if field.name not in given.names])


def completed(rows: pa.RecordBatch, wanted: pa.Schema, first: int) -> list[pa.Array]:
    """Columns of `lacking`, null but for what a junction tells; row number `first` is the first one."""
    n, found = rows.num_rows, dict[str, pa.Array]()
    if "sequence_id" in wanted.names:
        found["sequence_id"] = pa.array(np.arange(first, first + n)).cast(pa.string())
    if "rev_comp" in wanted.names:
        # Junctions are on the strand of the genes; and the airr package reads no table without it.
        found["rev_comp"] = pa.array(np.zeros(n, np.bool_))
    if "locus" in wanted.names:
        found["locus"] = loci(rows["j_call"])
    if "junction_aa" in wanted.names or "productive" in wanted.names:
        codons = _Codons(rows["junction"])
        found |= {"junction_aa": codons.acids(), "productive": codons.productive()}
    return [found.get(field.name, pa.nulls(n, field.type)) for field in wanted]


def loci(names: pa.Array) -> pa.Array:
    """Locus of each gene, or of its own name, in any case; null for others.

    >>> loci(pa.array(["TRBJ1-1*01", "igh", "unknown", None])).to_pylist()
    ['TRB', 'IGH', None, None]
    """
    encoded = names.cast(pa.string()).dictionary_encode()
    known = pc.utf8_slice_codeunits(pc.utf8_upper(encoded.dictionary), 0, 3)
    loci = pc.if_else(pc.is_in(known, pa.array(LOCI)), known, pa.scalar(None, pa.string()))
    return loci.take(encoded.indices)


class _Codons:
    """What the codons of junctions that are in frame stand for."""

    def __init__(self, column: pa.Array) -> None:
        letters, starts = letters_of(column)
        self._sizes = np.diff(starts)
        n = self._sizes.size
        self._acids, self._ends = np.empty(letters.size // 3, np.uint8), np.zeros(n + 1, np.int32)
        self._framed, self._productive = np.empty(n, np.bool_), np.empty(n, np.bool_)
        read_codons(
            letters, starts, _MASKS, _ACIDS, _STOPS, self._acids, self._ends, self._framed, self._productive
        )

    def acids(self) -> pa.Array:
        """Amino acids, as `translations` has them."""
        letters, ends = pa.py_buffer(self._acids), pa.py_buffer(self._ends)
        valid = None if self._framed.all() else pa.py_buffer(np.packbits(self._framed, bitorder="little"))
        return pa.StringArray.from_buffers(self._sizes.size, ends, letters, valid)

    def productive(self) -> pa.Array:
        """Whether junctions are in frame without a stop codon; null where there is none."""
        return pa.array(self._productive, mask=self._sizes == 0)


@kernel
def read_codons(
    letters: Any, starts: Any, masks: Any, acids: Any, stops: Any, out: Any, ends: Any, framed: Any,
    productive: Any,
) -> None:  # fmt: skip
    """Amino acids of texts that are in frame, one behind the other, and which texts have no stop codon."""
    at = 0
    for i in range(framed.size):
        # That a place is not negative, the compiler cannot know.
        start, size = starts[i] & (1 << 62) - 1, starts[i + 1] - starts[i]
        framed[i] = size > 0 and size % 3 == 0
        productive[i] = framed[i]
        if framed[i]:
            for p in range(start, start + size, 3):
                word = (
                    np.int64(masks[letters[p]]) << 8
                    | np.int64(masks[letters[p + 1]]) << 4
                    | np.int64(masks[letters[p + 2]])
                )
                out[at] = acids[word]
                productive[i] = productive[i] and not stops[word]
                at += 1
        ends[i + 1] = at


def productive(junction: pa.Array) -> pa.Array:
    """Whether junctions are in frame without a stop codon; null where there is none.

    >>> productive(pa.array(["TGTTTC", "TGTTAA", "TGTT", ""])).to_pylist()
    [True, False, False, None]
    """
    return _Codons(junction).productive()


class RearrangementRows(AddedColumns):
    """The columns of an input, of a result, and behind them what AIRR requires and neither has.

    Examples
    --------
    >>> given = pa.record_batch({"junction": ["TGTTTC"], "v_call": ["TRBV1"], "j_call": ["TRBJ1-1"]})
    >>> rows = RearrangementRows(given.schema, pa.schema([("status", pa.string())]))
    >>> found = rows.batch(7, given, pa.record_batch({"status": ["ok"]}))
    >>> found.select(["sequence_id", "junction_aa", "productive", "v_cigar"]).to_pylist()
    [{'sequence_id': '7', 'junction_aa': 'CF', 'productive': True, 'v_cigar': None}]
    """

    def __init__(self, given: pa.Schema, added: pa.Schema) -> None:
        super().__init__(given, added)
        self._lacking = lacking(self.schema)
        self.schema = pa.schema([*self.schema, *self._lacking])

    def only(self, names: Sequence[str] | None) -> Self:
        """The same with those columns alone that are given, in that order."""
        super().only(names)
        if names is not None:
            self._lacking = pa.schema([field for field in self._lacking if field.name in names])
            sources = {_MADE_OF[name] for name in self._lacking.names if name in _MADE_OF}
            self.inputs = [*self.inputs, *sources.difference(self.inputs)]
        return self

    def columns(self, first: int, block: pa.RecordBatch, result: pa.RecordBatch) -> dict[str, pa.Array]:
        """What columns of a block can be made of, by name."""
        made = completed(block, self._lacking, first)
        return super().columns(first, block, result) | dict(zip(self._lacking.names, made, strict=True))


def translations(column: pa.Array) -> pa.Array:
    """Every junction as amino acids, X where codes leave them open, ? for no codes; null if out of frame.

    >>> translations(pa.array(["TGTGCNAGY", "TGTG", "TGTGCU", None])).to_pylist()
    ['CAS', None, 'C?', None]
    """
    return _Codons(column).acids()
