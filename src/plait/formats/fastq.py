"""Read FASTQ files in pieces of whole records, at the speed of array operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import IUPAC_MASK, MASK_SYMBOL
from plait.errors import FormatError
from plait.formats.compression import ByteSource


@dataclass(frozen=True, slots=True, eq=False)
class ReadBlock:
    """Reads, one after the other; `names` are the first words of headers.

    `letters` (bases,) are upper-case IUPAC letters as bytes, U written as T; `starts` (n + 1,) is where each
    read begins, and the end of the last. `qualities` are Phred scores, 0 to 93, in the layout of `letters`;
    None where the input has none.
    """

    names: Sequence[str]
    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    qualities: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return self.starts.size - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bases of each read, int64, shape (n,)."""
        return np.diff(self.starts)

    def sequence(self, index: int) -> str:
        """Letters of one read."""
        return self.letters[self.starts[index] : self.starts[index + 1]].tobytes().decode("ascii")


#: What is added to a Phred score to make it a character (Sanger's FASTQ, and Illumina's from 1.8 on).
QUALITY_OFFSET: Final = 33
#: Letters of a name that a message shows.
LONGEST_NAME_SHOWN: Final = 60

_LAST_QUALITY: Final = 126


def _translation() -> bytes:
    """What each byte of a sequence line stands for; 0 for those that stand for nothing."""
    table = np.where(IUPAC_MASK, np.frombuffer(MASK_SYMBOL.encode(), np.uint8)[IUPAC_MASK], np.uint8(0))
    table[ord(".")] = ord("N")
    return table.tobytes()


_TRANSLATION: Final = _translation()


@dataclass(frozen=True, slots=True, eq=False)
class RawReads:
    """Reads as they stand in a file, the first of them number `first` in it, from 0.

    `names` are the first words of headers. `letters` and `qualities` are bytes (bases,) of sequences and
    quality strings, `starts` (n + 1,) where each begins, and the end of the last; `lines` (n,) the 1-based
    line on which each sequence begins.
    """

    path: object
    first: int
    names: Sequence[str]
    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    qualities: NDArray[np.uint8] | None
    lines: NDArray[np.int64]


def shown_name(name: str) -> str:
    """A name in quotes, cut if it is long."""
    return repr(name if len(name) <= LONGEST_NAME_SHOWN else f"{name[:LONGEST_NAME_SHOWN]}...")


def checked_reads(raw: RawReads) -> tuple[ReadBlock, int]:
    """Upper-case letters with T for U and N for a dot, and Phred scores; and the number of dots.

    FormatError at the first byte that is no IUPAC letter and no dot, or no quality; it names the read and the
    place.
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


_PIECE_BYTES: Final = 1 << 19
#: A record that is longer is no read; without a limit, a file of one line would be held in memory as a whole.
_LONGEST_RECORD: Final = 1 << 25
_LINE_END, _RETURN, _BLANK = 10, 13, 32
_SHOWN: Final = 40
_EXPECTED_HEADER: Final = "a header line, '@name'"


class _Lines(NamedTuple):
    """Where the four lines of n records begin and end, line ends left out. Shape (n, 4)."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def fastq_reads(
    source: ByteSource, text: bytes, line: int, *, piece_bytes: int = _PIECE_BYTES
) -> Iterator[RawReads]:
    """Read the records of a FASTQ file: header, sequence, ``+`` and qualities, on one line each.

    Line ends may be LF or CRLF, in turn if need be; blank lines may follow the last record. What stands
    behind the ``+`` is not looked at. `text` was read already, from the first header on, which stands on the
    1-based `line`; then `piece_bytes` are looked at in one go. FormatError if a record is incomplete or not
    laid out like this; it names the line.
    """
    path, first = source.path, 0
    pieces = chain((text,), iter(lambda: source.read(piece_bytes), b""))
    for records in _whole_records(path, line, pieces):
        reads, rest = _parse(path, first, line, records)
        if reads is not None:
            yield reads
            first += len(reads.names)
            line += 4 * len(reads.names)
        if rest is not None:
            _only_blanks(path, first, line, chain((rest,), pieces))
            return


def _whole_records(path: object, line: int, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Texts of a multiple of four lines; the last one may have any number and lack its line end."""
    held: list[bytes] = []
    lines = size = 0
    for text in pieces:
        held.append(text)
        lines += text.count(b"\n")
        size += len(text)
        if lines >= 4:
            joined = b"".join(held) if len(held) > 1 else text
            cut = len(joined)
            for _ in range(lines % 4 + 1):
                cut = joined.rfind(b"\n", 0, cut)
            yield joined[: cut + 1]
            line += lines - lines % 4
            held = [joined[cut + 1 :]]
            lines, size = lines % 4, len(joined) - cut - 1
        elif size > _LONGEST_RECORD:
            raise FormatError(
                path,
                line=line,
                found=f"a record of more than {_LONGEST_RECORD:,} bytes",
                expected="reads",
                hint="are the line ends those of LF or CRLF?",
            )
    if size:
        yield b"".join(held)


def _parse(path: object, first: int, line: int, text: bytes) -> tuple[RawReads | None, bytes | None]:
    """The records of a text, and the blank line, if any, with what follows, that is in place of one."""
    data = np.frombuffer(text, np.uint8)
    gaps = np.flatnonzero(data <= _BLANK)
    kinds = data[gaps]
    gap_of_line = np.flatnonzero(kinds == _LINE_END)
    line_ends = gaps[gap_of_line]
    if line_ends.size < 4:
        return _last_record(path, first, line, text)
    ends = line_ends.reshape(-1, 4)
    starts = np.concatenate(([0], line_ends[:-1] + 1)).reshape(-1, 4)
    if gaps.size > line_ends.size and bool((kinds == _RETURN).any()):
        ends = ends - ((data[ends - 1] == _RETURN) & (ends > starts))
    lines, rest = _Lines(starts, ends), None
    wrong = _wrong_records(data, lines)
    if wrong.size:
        whole = int(wrong[0])
        head = slice(int(starts[whole, 0]), int(ends[whole, 0]))
        if text[head].strip():
            raise _layout_error(
                path, first + whole, line + 4 * whole, text, _Lines(starts[whole], ends[whole])
            )
        rest = text[starts[whole, 0] :]
        lines = _Lines(starts[:whole], ends[:whole])
        if not whole:
            return None, rest
    first_gaps = np.concatenate(([0], gap_of_line[3:-1:4] + 1))[: len(lines.starts)]
    names = _names(path, first, line, text, lines, gaps[first_gaps])
    letters, qualities, offsets = _letters(data, lines)
    numbers = line + 4 * np.arange(len(names)) + 1
    return RawReads(path, first, names, letters, offsets, qualities, numbers), rest


def _wrong_records(data: NDArray[np.uint8], lines: _Lines) -> NDArray[np.int64]:
    """Records that are not laid out as they should be."""
    lengths = lines.ends - lines.starts
    right = data[lines.starts[:, 0]] == ord("@")
    right &= data[lines.starts[:, 2]] == ord("+")
    right &= lengths[:, 1] == lengths[:, 3]
    return np.flatnonzero(~right)


def _letters(
    data: NDArray[np.uint8], lines: _Lines
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int64]]:
    """Bytes of the second and of the fourth lines, and where those of each record begin."""
    starts, ends = lines
    count = len(starts)
    edges = np.stack((starts[:, 1], ends[:, 1], starts[:, 3], ends[:, 3]), axis=1).ravel()
    spans = np.diff(edges, prepend=0)
    data = data[: edges[-1]]
    letters = data[np.repeat(np.tile((False, True, False, False), count), spans)]
    qualities = data[np.repeat(np.tile((False, False, False, True), count), spans)]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(ends[:, 1] - starts[:, 1], out=offsets[1:])
    return letters, qualities, offsets


def _names(
    path: object, first: int, line: int, text: bytes, lines: _Lines, name_ends: NDArray[np.int64]
) -> list[str]:
    """First words of the headers."""
    starts = lines.starts[:, 0] + 1
    nameless = np.flatnonzero(name_ends <= starts)
    if nameless.size:
        record = int(nameless[0])
        raise FormatError(
            path,
            line=line + 4 * record,
            record=first + record,
            found="a header without a name",
            expected=_EXPECTED_HEADER,
        )
    names = [text[a:b] for a, b in zip(starts.tolist(), name_ends.tolist(), strict=True)]
    return b"\n".join(names).decode("utf-8", "backslashreplace").split("\n")


def _shown(text: bytes) -> str:
    cut = text[:_SHOWN]
    shown = repr(cut.decode("ascii")) if cut.isascii() else repr(cut)
    return f"{shown[:-1]}...{shown[-1]}" if len(text) > _SHOWN else shown


def _layout_error(path: object, record: int, line: int, text: bytes, lines: _Lines) -> FormatError:
    """What is wrong with a record of four lines."""
    header, sequence, plus, quality = (
        text[a:b] for a, b in zip(lines.starts.tolist(), lines.ends.tolist(), strict=True)
    )
    name, hint = _name_of(header), _ONE_LINE
    if not header.startswith(b"@"):
        at, found, expected = 0, _shown(header), _EXPECTED_HEADER
    elif not plus.startswith(b"+"):
        told = _shown(plus) if plus else "a blank line"
        at, found, expected = 2, f"{told} as the third line of read {name}", "a line that begins with '+'"
    else:
        found = f"{len(quality):,} qualities for the {len(sequence):,} bases of read {name}"
        at, expected, hint = 3, "one quality for each base", "the file may be damaged"
    return FormatError(path, line=line + at, record=record, found=found, expected=expected, hint=hint)


def _name_of(header: bytes) -> str:
    return shown_name((header[1:].split() or [b""])[0].decode("utf-8", "backslashreplace"))


_ONE_LINE: Final = "a record is four lines: header, sequence, '+' and qualities; or the file is damaged"


def _last_record(path: object, first: int, line: int, text: bytes) -> tuple[RawReads | None, bytes | None]:
    """The last record where its line end is missing; an error if more is."""
    lines = text.split(b"\n")
    if not text.strip():
        return None, text
    # Without a last line end, the empty qualities of an empty read are no line at all.
    empty = len(lines) == 4 and not lines[1].strip() and not lines[3]
    if len(lines) == 4 and (lines[3] or empty):
        return _parse(path, first, line, text + b"\n")
    header = lines[0].rstrip(b"\r")
    if not header.startswith(b"@"):
        raise FormatError(path, line=line, record=first, found=_shown(header), expected=_EXPECTED_HEADER)
    held = sum(bool(part) for part in lines)
    hint = "copy or download the file again"
    if len(lines) == 1 and b"\r" in header:
        hint = "lines must end in LF or CRLF: convert the line ends"
    raise FormatError(
        path,
        line=line + held - 1,
        record=first,
        found=f"the end of the file within the record of read {_name_of(header)}",
        expected="four lines: header, sequence, '+' and qualities",
        hint=hint,
    )


def _only_blanks(path: object, first: int, line: int, pieces: Iterator[bytes]) -> None:
    """Refuse blank lines with something behind them."""
    for text in pieces:
        if text.strip():
            raise FormatError(
                path, line=line, record=first, found="a blank line", expected=_EXPECTED_HEADER, hint=_ONE_LINE
            )
