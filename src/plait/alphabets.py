"""The IUPAC nucleotide alphabet as 4-bit masks: A=1, T/U=2, C=4, G=8; and the standard genetic code.

An ambiguity code is the OR of its members, anything else is 0. Two symbols match when the AND of
their masks is not zero. The numbering is that of the published path-counting programs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AMINO_ACID_OF_MASKS",
    "COMPLEMENT_LETTER",
    "COMPLEMENT_MASK",
    "GENETIC_CODE",
    "IUPAC_MASK",
    "MASK_SIZE",
    "MASK_SYMBOL",
    "decode",
    "encode",
    "reverse_complement",
    "reverse_complement_masks",
    "shown_letter",
    "translate",
]

_MEMBERS = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T",
    "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
_BIT = {"A": 1, "T": 2, "C": 4, "G": 8}


def _mask_of_byte() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for symbol, members in _MEMBERS.items():
        mask = sum(_BIT[m] for m in members)
        table[ord(symbol)] = table[ord(symbol.lower())] = mask
    table.setflags(write=False)
    return table


def _complement_of_mask() -> NDArray[np.uint8]:
    masks = np.arange(16, dtype=np.uint8)
    swapped = ((masks & 1) << 1) | ((masks & 2) >> 1) | ((masks & 4) << 1) | ((masks & 8) >> 1)
    swapped.setflags(write=False)
    return swapped.astype(np.uint8)


#: Mask of every byte value; 0 marks a byte that is no IUPAC nucleotide code. Shape (256,).
IUPAC_MASK = _mask_of_byte()
#: Mask of the complementary code. Shape (16,).
COMPLEMENT_MASK = _complement_of_mask()
#: Number of nucleotides a mask stands for. Shape (16,).
MASK_SIZE = np.array([int(m).bit_count() for m in range(16)], np.uint8)
#: The code of every mask; index 0 is "?". 16 characters.
MASK_SYMBOL = "?" + "".join(
    next(s for s in _MEMBERS if s != "U" and IUPAC_MASK[ord(s)] == m) for m in range(1, 16)
)
#: The upper-case code of the complement of every byte; "?" for one that is no code. Shape (256,).
COMPLEMENT_LETTER = np.frombuffer(MASK_SYMBOL.encode(), np.uint8)[COMPLEMENT_MASK[IUPAC_MASK]]


def encode(sequence: str | bytes) -> NDArray[np.uint8]:
    """Masks of a sequence, one per symbol; 0 where a symbol is no IUPAC code.

    >>> encode("acgtn").tolist()
    [1, 4, 8, 2, 15]
    """
    raw = sequence.encode("utf-8", "replace") if isinstance(sequence, str) else sequence
    return IUPAC_MASK[np.frombuffer(raw, np.uint8)]


def shown_letter(text: bytes | NDArray[np.uint8], place: int) -> str:
    r"""A letter as messages show it: in quotes, as a character of UTF-8 that begins there, or else the byte.

    Parameters
    ----------
    text
        Letters, as bytes.
    place
        Where it begins.

    Examples
    --------
    >>> shown_letter("GGéC".encode(), 2), shown_letter(b"GG\xff", 2)
    ("'é'", 'the byte 0xFF')
    """
    letter = bytes(text[place : place + 4]).decode("utf-8", "replace")[0]
    shown = letter.isprintable() and letter not in " \ufffd"
    return repr(letter) if shown else f"the byte 0x{text[place]:02X}"


def decode(masks: NDArray[np.uint8]) -> str:
    """The upper-case sequence of an array of masks.

    >>> decode(encode("acgtn"))
    'ACGTN'
    """
    return "".join(MASK_SYMBOL[m] for m in masks)


def reverse_complement_masks(masks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Masks of the reverse complement."""
    return COMPLEMENT_MASK[masks[::-1]]


def reverse_complement(sequence: str) -> str:
    """The reverse complement of an IUPAC sequence.

    >>> reverse_complement("GGGACN")
    'NGTCCC'
    """
    return decode(reverse_complement_masks(encode(sequence)))


#: Amino acids of the codons, ``*`` for a stop; each base in the order TCAG, the last one changing first.
GENETIC_CODE = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"


def _amino_acid_of_masks() -> NDArray[np.uint8]:
    letters = sorted(set(GENETIC_CODE))
    meant = np.array([1 << letters.index(letter) for letter in GENETIC_CODE]).reshape(4, 4, 4)
    members = (np.arange(16)[:, None] & [_BIT[base] for base in "TCAG"]) != 0
    for _ in range(3):
        # The axis of the next base becomes one of masks, the last one.
        possible = np.bitwise_or.reduce(np.where(members[:, :, None, None], meant, 0), axis=1)
        meant = np.moveaxis(possible, 0, -1)
    table = np.full(4096, ord("X"), np.uint8)
    for number, letter in enumerate(letters):
        table[meant.ravel() == 1 << number] = ord(letter)
    table.setflags(write=False)
    return table


#: What three masks read as, ``first << 8 | second << 4 | third``: X unless all their codons agree. (4096,).
AMINO_ACID_OF_MASKS = _amino_acid_of_masks()


def translate(sequence: str, start: int = 0) -> str:
    """Amino acids of the complete codons of ``sequence[start:]``.

    A codon with ambiguity codes is translated if all its readings agree; any other, and one with a symbol
    outside the IUPAC alphabet, gives ``X``. Stop codons give ``*``.

    Parameters
    ----------
    sequence
        IUPAC codes of either case.
    start
        Where the first codon begins.

    Examples
    --------
    >>> translate("TGYGCCAGCN")
    'CAS'
    """
    masks = encode(sequence[max(start, 0) :]).astype(np.int64)
    first, second, third = masks[: masks.size // 3 * 3].reshape(-1, 3).T
    found: bytes = AMINO_ACID_OF_MASKS[first << 8 | second << 4 | third].tobytes()
    return found.decode("ascii")
