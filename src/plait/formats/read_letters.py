"""Letters and qualities of reads: from the bytes of a file to upper-case codes and Phred scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.formats.read_block import ReadBlock

__all__ = ["LONGEST_NAME_SHOWN", "QUALITY_OFFSET", "RawReads", "checked_reads", "shown_name"]

#: What is added to a Phred score to make it a character (Sanger's FASTQ, and Illumina's from 1.8 on).
QUALITY_OFFSET: Final = 33
#: Letters of a name that a message shows.
LONGEST_NAME_SHOWN: Final = 60

_IUPAC: Final = "ACGTRYSWKMBDHVN"
_LAST_QUALITY: Final = 126


def _translation() -> bytes:
    """What each byte of a sequence line stands for; 0 for those that stand for nothing."""
    table = bytearray(256)
    for letter in _IUPAC:
        table[ord(letter)] = table[ord(letter.lower())] = ord(letter)
    table[ord("U")] = table[ord("u")] = ord("T")
    table[ord(".")] = ord("N")
    return bytes(table)


_TRANSLATION: Final = _translation()


@dataclass(frozen=True, slots=True, eq=False)
class RawReads:
    """Reads as they stand in a file.

    Attributes
    ----------
    path
        The file.
    first
        Number of the first of them in the file, from 0.
    names
        First word of each header.
    letters
        Bytes of the sequences, one after the other; uint8, shape (bases,).
    starts
        Where each begins, and the end of the last; int64, shape (n + 1,).
    qualities
        Bytes of the quality strings in the same layout, or None.
    lines
        1-based line on which each sequence begins; int64, shape (n,).
    """

    path: object
    first: int
    names: Sequence[str]
    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    qualities: NDArray[np.uint8] | None
    lines: NDArray[np.int64]


def shown_name(name: str) -> str:
    """A name in quotes, cut if it is long.

    Parameters
    ----------
    name
        The name.
    """
    return repr(name if len(name) <= LONGEST_NAME_SHOWN else f"{name[:LONGEST_NAME_SHOWN]}...")


def checked_reads(raw: RawReads) -> tuple[ReadBlock, int]:
    """Upper-case letters with T for U and N for a dot, and Phred scores.

    Parameters
    ----------
    raw
        The reads.

    Returns
    -------
    reads : ReadBlock
        The same reads.
    dots : int
        Bases that were written as a dot.

    Raises
    ------
    FormatError
        At the first byte that is no IUPAC letter and no dot, or no quality; it names the read and the place.
    """
    # Not of `bytes`: such arrays could not be written to, and would need kernels of their own.
    text = bytearray(raw.letters)
    letters = np.frombuffer(text.translate(_TRANSLATION), np.uint8)
    if not letters.all():
        raise _strange_letter(raw, int((letters == 0).argmax()))
    qualities = raw.qualities
    if qualities is not None and qualities.size:
        if qualities.min() < QUALITY_OFFSET or qualities.max() > _LAST_QUALITY:
            raise _strange_quality(raw, qualities)
        qualities = qualities - np.uint8(QUALITY_OFFSET)
    return ReadBlock(raw.names, letters, raw.starts, qualities), text.count(b".")


def _place(raw: RawReads, at: int) -> tuple[int, str]:
    read = int(np.searchsorted(raw.starts, at, "right")) - 1
    base = at - int(raw.starts[read]) + 1
    return read, f"at position {base} of read {shown_name(raw.names[read])}"


def _shown_byte(byte: int) -> str:
    return repr(chr(byte)) if 33 <= byte <= 126 else f"the byte 0x{byte:02X}"


def _strange_letter(raw: RawReads, at: int) -> FormatError:
    read, where = _place(raw, at)
    byte = int(raw.letters[at])
    return FormatError(
        raw.path,
        line=int(raw.lines[read]),
        record=raw.first + read,
        found=f"{_shown_byte(byte)} {where}",
        expected="the IUPAC letters of nucleotides, or '.' for an unknown one",
        hint="are these proteins?" if chr(byte).upper() in "EFILPQZX*" else "the file may be damaged",
    )


def _strange_quality(raw: RawReads, qualities: NDArray[np.uint8]) -> FormatError:
    at = int(((qualities < QUALITY_OFFSET) | (qualities > _LAST_QUALITY)).argmax())
    read, where = _place(raw, at)
    return FormatError(
        raw.path,
        # A record's qualities are two lines below its sequence.
        line=int(raw.lines[read]) + 2,
        record=raw.first + read,
        found=f"{_shown_byte(int(qualities[at]))} as the quality {where}",
        expected="qualities from '!' (0) to '~' (93)",
    )
