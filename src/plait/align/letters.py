"""Letters of proteins and nucleotides: their codes in databases, and what letters say that sequences are."""

from __future__ import annotations

import os
import string
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Protocol, SupportsBytes

import numpy as np
from numpy.typing import NDArray

from plait.align.settings import Kind
from plait.errors import FormatError, InvalidInput
from plait.formats.fasta import Sequences
from plait.formats.fastq import read_sequences

#: Letters of each kind in the order of their codes. In DNA, U has the code of T.
ALPHABETS: Final[dict[Kind, str]] = {
    "protein": string.ascii_uppercase + "*",
    "dna": "ACGTRYSWKMBDHVN",
}
#: Code that stands where a sequence has ended; codes are below 32, the size of a score profile.
PAD_CODE: Final = 31

#: What the tables give for bytes that are no letter of the kind.
ILLEGAL_CODE: Final = 255
#: Letters at the start of each file that are looked at to see what its sequences are.
SAMPLE: Final = 1 << 22
#: What to do where letters do not say it.
SAY_KIND: Final = "say which with --kind dna or --kind protein (kind= in Python)"
_COUNTED_AT_ONCE: Final = 1 << 16
# A protein has a quarter of its residues among A, C, G, T and N; DNA seldom has codes in one base of ten.
_DNA_SHARE: Final = 0.9
# Not one protein in a hundred million has none of the letters that nucleotides lack among so many residues.
_ENOUGH: Final = 50
_EXPECTED: Final[dict[Kind, str]] = {
    "protein": "protein letters (A to Z and '*')",
    "dna": "IUPAC nucleotide letters (ACGTU and RYSWKMBDHVN)",
}
_HINTS: Final[dict[Kind, str | None]] = {"protein": None, "dna": "if it is a protein, say so"}


class Record(Protocol):
    """A sequence with its name, such as Biopython's ``SeqRecord``."""

    @property
    def seq(self) -> Any:
        """The sequence."""


#: A sequence: text, bytes, what can be turned into bytes (Biopython's ``Seq``), or a record of one.
Letters = str | bytes | SupportsBytes | Record


def letters_of(sequence: Letters, what: str = "sequence") -> str | bytes:
    """The letters of a sequence or of a record; `InvalidInput` if it is neither."""
    if isinstance(sequence, str | bytes):
        return sequence
    inner: Any = getattr(sequence, "seq", sequence)
    if isinstance(inner, str):
        return inner
    if hasattr(inner, "__bytes__") or isinstance(inner, bytearray | memoryview):
        return bytes(inner)
    if isinstance(inner, np.ndarray) and inner.dtype == np.uint8:
        return inner.tobytes()
    raise InvalidInput(what, found=f"a {type(sequence).__name__}", expected="a sequence as str or bytes")


def _table(kind: Kind) -> bytes:
    table = bytearray([ILLEGAL_CODE]) * 256
    table[PAD_CODE] = PAD_CODE
    for code, letter in enumerate(ALPHABETS[kind]):
        table[ord(letter)] = table[ord(letter.lower())] = code
    if kind == "dna":
        table[ord("U")] = table[ord("u")] = table[ord("T")]
    return bytes(table)


#: Bytes that are no nucleotide.
_NO_NUCLEOTIDES: Final = np.frombuffer(_table("dna"), np.uint8) == ILLEGAL_CODE
#: Bytes that are no letter of either kind.
_NO_RESIDUES: Final = np.frombuffer(_table("protein"), np.uint8) == ILLEGAL_CODE

#: Code of each byte, for `bytes.translate`. `PAD_CODE`, a control character that no sequence holds, stays.
CODES: Final[dict[Kind, bytes]] = {"protein": _table("protein"), "dna": _table("dna")}
_LETTERS: Final = {kind: letters.encode().ljust(256, b"?") for kind, letters in ALPHABETS.items()}


def encode_residues(path: str | os.PathLike[str], sequences: Sequences, kind: Kind) -> bytes:
    """Codes of the residues of some records, one byte each, one record behind the other.

    Letters are of either case; ``ALPHABETS[kind][code]`` is that of a code. `FormatError`, with `path` and
    line, if a letter is none of the kind's.
    """
    codes = sequences.letters.tobytes().translate(CODES[kind])
    values = np.frombuffer(codes, np.uint8)
    if values.size and values.max() == ILLEGAL_CODE:
        raise _illegal(path, sequences, kind, int((values == ILLEGAL_CODE).argmax()))
    return codes


def _illegal(path: object, sequences: Sequences, kind: Kind, place: int) -> FormatError:
    record = int(np.searchsorted(sequences.offsets, place, side="right")) - 1
    position = place - int(sequences.offsets[record]) + 1
    letter = chr(sequences.letters[place])
    return FormatError(
        path,
        line=int(sequences.lines[record]),
        found=f"{letter!r} at position {position:,} of the sequence {sequences.names[record]!r}",
        expected=_EXPECTED[kind],
        hint="take the gaps of the alignment out first" if letter in "-." else _HINTS[kind],
    )


#: What stands for any letter of a kind.
UNKNOWN: Final[dict[Kind, str]] = {"protein": "X", "dna": "N"}


def masked_records(sequences: Sequences, kind: Kind) -> Sequences:
    """The same records with lower-case letters taken for any letter of the kind."""
    letters = sequences.letters
    lower = (letters >= ord("a")) & (letters <= ord("z"))
    return replace(sequences, letters=np.where(lower, np.uint8(ord(UNKNOWN[kind])), letters))


def decode_residues(codes: NDArray[np.uint8], kind: Kind) -> str:
    """Capital letters of codes, shape (n,)."""
    return codes.tobytes().translate(_LETTERS[kind]).decode("ascii")


def count_letters(letters: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How often each letter of either kind occurs, shape (256,); 0 for all else, no sign of a kind."""
    counts = np.zeros(256, np.int64)
    for first in range(0, letters.size, _COUNTED_AT_ONCE):
        counts += np.bincount(letters[first : first + _COUNTED_AT_ONCE], minlength=256)
    return np.where(_NO_RESIDUES, 0, counts)


def count_sample(path: str | os.PathLike[str]) -> NDArray[np.int64]:
    """How often each letter occurs in the first records of a file of sequences, about `SAMPLE` letters."""
    return count_letters(next(read_sequences(path, block_residues=SAMPLE)).letters)


def kind_of(counts: NDArray[np.int64]) -> Kind | None:
    """What letters say that sequences are; `counts`, (256,), are how often each byte occurs.

    Letters that no nucleotide has (E, F, I, L, P, Q, ...) make them proteins, unless nine letters in ten are
    A, C, G, T, U or N: what else there is is an error then. Without such letters they are nucleotides if nine
    letters in ten are A, C, G, T or U, or if there are 50 letters besides N, with all of A, C, G and T (U)
    among them. A short primer with ambiguity codes may be a peptide, and the other way round: None where both
    may be, as it is without a letter.
    """
    a, c, g, t, unknown = (int(counts[list(codes)].sum()) for codes in (b"Aa", b"Cc", b"Gg", b"TtUu", b"Nn"))
    total, bases = int(counts.sum()), a + c + g + t
    if counts[_NO_NUCLEOTIDES].any():
        return "dna" if bases + unknown >= _DNA_SHARE * total else "protein"
    mixed = total - unknown >= _ENOUGH and min(a, c, g, t) > 0
    return "dna" if mixed or bases >= _DNA_SHARE * max(total, 1) else None


def common_kind(sides: Mapping[str, NDArray[np.int64]], otherwise: Kind | None = None) -> Kind:
    """What the sequences of all sides are: what is open on one side is what the other is.

    `sides` has how often each byte occurs, (256,), by what a side is called in errors. If all are open, their
    letters together decide, then `otherwise`; it is ``"protein"`` if there is no letter at all.
    `InvalidInput` if sides differ, or all are still open.
    """
    found = {kind_of(counts): side for side, counts in sides.items()}
    if found.keys() >= {"dna", "protein"}:
        raise InvalidInput(
            "kind",
            found=f"what looks like nucleotides in {found['dna']} and like proteins in {found['protein']}",
            expected="sequences of one kind",
            hint=SAY_KIND,
        )
    counts = np.sum([np.zeros(256, np.int64), *sides.values()], axis=0)
    kind = "protein" if "protein" in found else "dna" if "dna" in found else kind_of(counts) or otherwise
    if kind is None and counts.any():
        raise InvalidInput(
            "kind",
            found=f"letters in {' and '.join(sides)} that may be nucleotides or amino acids",
            expected="sequences that are plainly one of them",
            hint=SAY_KIND,
        )
    return kind or "protein"
