"""The letters of sequences and their codes in packed databases, the same for every scoring matrix."""

from __future__ import annotations

import os
import string
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.formats.fasta import Sequences

__all__ = [
    "ALPHABETS",
    "CODES",
    "ILLEGAL_CODE",
    "PAD_CODE",
    "Kind",
    "decode_residues",
    "encode_residues",
    "guess_kind",
]

#: What sequences are made of.
Kind = Literal["protein", "dna"]

#: Letters of each kind in the order of their codes. In DNA, U has the code of T.
ALPHABETS: Final[dict[Kind, str]] = {
    "protein": string.ascii_uppercase + "*",
    "dna": "ACGTRYSWKMBDHVN",
}
#: Code that stands where a sequence has ended; codes are below 32, the size of a score profile.
PAD_CODE: Final = 31

#: What the tables give for bytes that are no letter of the kind.
ILLEGAL_CODE: Final = 255
_SAMPLE: Final = 1 << 16
# A protein has a fifth of its residues among these; DNA seldom has other codes in one base of ten.
_BASES: Final = np.frombuffer(b"ACGTUNacgtun", np.uint8)
_DNA_SHARE: Final = 0.9
_EXPECTED: Final[dict[Kind, str]] = {
    "protein": "protein letters (A to Z and '*')",
    "dna": "IUPAC nucleotide letters (ACGTU and RYSWKMBDHVN)",
}
_HINTS: Final[dict[Kind, str | None]] = {"protein": None, "dna": "if it is a protein, say so"}


def _table(kind: Kind) -> bytes:
    table = bytearray([ILLEGAL_CODE]) * 256
    table[PAD_CODE] = PAD_CODE
    for code, letter in enumerate(ALPHABETS[kind]):
        table[ord(letter)] = table[ord(letter.lower())] = code
    if kind == "dna":
        table[ord("U")] = table[ord("u")] = table[ord("T")]
    return bytes(table)


#: Code of each byte, for `bytes.translate`. `PAD_CODE`, a control character that no sequence holds, stays.
CODES: Final[dict[Kind, bytes]] = {"protein": _table("protein"), "dna": _table("dna")}
_LETTERS: Final = {kind: letters.encode().ljust(256, b"?") for kind, letters in ALPHABETS.items()}


def encode_residues(path: str | os.PathLike[str], sequences: Sequences, kind: Kind) -> bytes:
    """Codes of the residues of some records, one byte each, one record behind the other.

    Parameters
    ----------
    path
        Their file, for the message.
    sequences
        The records; letters of either case.
    kind
        What they are.

    Returns
    -------
    bytes
        As many codes as ``sequences.letters``; ``ALPHABETS[kind][code]`` is the letter.

    Raises
    ------
    FormatError
        If a letter is none of the kind's.
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


def decode_residues(codes: NDArray[np.uint8], kind: Kind) -> str:
    """Letters of codes.

    Parameters
    ----------
    codes
        Codes of residues. Shape (n,).
    kind
        What they are.

    Returns
    -------
    str
        n capital letters.
    """
    return codes.tobytes().translate(_LETTERS[kind]).decode("ascii")


def guess_kind(letters: NDArray[np.uint8]) -> Kind:
    """What sequences are, from their first letters: DNA if nine of ten are A, C, G, T, U or N.

    Parameters
    ----------
    letters
        ASCII letters of either case. Shape (n,).

    Returns
    -------
    Kind
        ``"dna"`` or ``"protein"``; the latter also for no letter at all.
    """
    sample = letters[:_SAMPLE]
    bases = np.count_nonzero(np.isin(sample, _BASES))
    return "dna" if sample.size and bases >= _DNA_SHARE * sample.size else "protein"
