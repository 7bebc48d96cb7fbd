"""Read FASTQ files in pieces of whole records, as columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import IUPAC_MASK, MASK_SYMBOL, shown_letter
from plait.errors import FormatError
from plait.formats.fasta import (
    Names,
    Sequences,
    fasta_blocks,
    first_text,
    read_fasta,
    sequence_file_kind,
)
from plait.formats.files import ByteSource, check_readable, unchanged
from plait.lang.compile import kernel, shared
from plait.lang.lanes import equal, lanes_of, load, lowest_bit, mask_bits, splat, store, without_lowest


@dataclass(frozen=True, slots=True, eq=False)
class ReadBlock:
    """Reads, one after the other; `names` are the first words of headers.

    `letters` (bases,) are upper-case IUPAC letters as bytes, U written as T; `starts` (n + 1,) is where each
    read begins, and the end of the last. `qualities` are Phred scores, 0 to 93, in the layout of `letters`;
    None where the input has none. `headers` are whole, where they were asked for.
    """

    names: Sequence[str]
    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    qualities: NDArray[np.uint8] | None = None
    headers: Sequence[str] | None = None

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
    line on which each sequence begins. `headers` are whole, where they were asked for.
    """

    path: object
    first: int
    names: Sequence[str]
    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]
    qualities: NDArray[np.uint8] | None
    lines: NDArray[np.int64]
    headers: Sequence[str] | None = None


def shown_name(name: str) -> str:
    """A name in quotes, cut if it is long."""
    return repr(name if len(name) <= LONGEST_NAME_SHOWN else f"{name[:LONGEST_NAME_SHOWN]}...")


@kernel
def plain_kernel(letters: Any, qualities: Any, offset: int, capitals: Any, scores: Any) -> int:
    """Capital letters and Phred scores; whether (1 or 0) all are A, C, G, T or N, and qualities."""
    strange: Any = False
    for k in range(letters.size):
        letter = letters[k] & 0xDF
        known = (letter == 65) | (letter == 67) | (letter == 71) | (letter == 84) | (letter == 78)
        strange |= not known
        capitals[k] = letter
    for k in range(qualities.size):
        score = np.uint8(qualities[k] - offset)
        strange |= score > 93
        scores[k] = score
    return int(not strange)


def checked_reads(raw: RawReads) -> tuple[ReadBlock, int]:
    """Upper-case letters with T for U and N for a dot, and Phred scores; and the number of dots.

    FormatError at the first byte that is no IUPAC letter and no dot, or no quality; it names the read and the
    place.
    """
    given = np.zeros(0, np.uint8) if raw.qualities is None else raw.qualities
    letters, scores = np.empty_like(raw.letters), np.empty_like(given)
    dots = 0
    if not plain_kernel(raw.letters, given, QUALITY_OFFSET, letters, scores):
        # Not of `bytes`: such arrays could not be written to, and would need kernels of their own.
        text = bytearray(raw.letters)
        letters, dots = np.frombuffer(text.translate(_TRANSLATION), np.uint8), text.count(b".")
        if not letters.all():
            raise _strange_letter(raw, int((letters == 0).argmax()))
        if scores.size and scores.max() > _LAST_QUALITY - QUALITY_OFFSET:
            raise _strange_quality(raw, given)
    qualities = None if raw.qualities is None else scores
    return ReadBlock(raw.names, letters, raw.starts, qualities, raw.headers), dots


def _place(raw: RawReads, at: int) -> tuple[int, str]:
    read = int(np.searchsorted(raw.starts, at, "right")) - 1
    base = at - int(raw.starts[read]) + 1
    return read, f"at position {base} of read {shown_name(raw.names[read])}"


def _strange_letter(raw: RawReads, at: int) -> FormatError:
    read, where = _place(raw, at)
    return FormatError(
        raw.path,
        line=int(raw.lines[read]) or None,
        record=raw.first + read,
        found=f"{shown_letter(raw.letters, at)} {where}",
        expected="the IUPAC letters of nucleotides, or '.' for an unknown one",
        hint="are these proteins?" if raw.letters[at] in b"EFILPQXZefilpqxz*" else "the file may be damaged",
    )


def _strange_quality(raw: RawReads, qualities: NDArray[np.uint8]) -> FormatError:
    at = int(((qualities < QUALITY_OFFSET) | (qualities > _LAST_QUALITY)).argmax())
    read, where = _place(raw, at)
    return FormatError(
        raw.path,
        # A record's qualities are two lines below its sequence.
        line=int(raw.lines[read]) + 2,
        record=raw.first + read,
        found=f"{shown_letter(qualities, at)} as the quality {where}",
        expected="qualities from '!' (0) to '~' (93)",
    )


_PIECE_BYTES: Final = 1 << 21
#: A record that is longer is no read; without a limit, a file of one line would be held in memory as a whole.
_LONGEST_RECORD: Final = 1 << 25
#: Line feed, and what a header of FASTQ or FASTA begins with, by the lines of a record.
_MARKS: Final = {4: np.array([10, 64], np.uint8), 2: np.array([10, 62], np.uint8)}
_SHOWN: Final = 40
_NONE: Final = np.zeros(0, np.uint8)
_EXPECTED_HEADER: Final = "a header line, '@name'"


class _RecordColumns(NamedTuple):
    """Columns of records, in memory for more than there are.

    `names` uint8 (enough,) with a line feed behind each, `letters` and `qualities` uint8 (1, enough),
    `name_starts` and `starts` int64 (enough,).
    """

    names: Any
    name_starts: Any
    letters: Any
    qualities: Any
    starts: Any


@shared
def _without_return(text: Any, begin: int, end: int) -> int:
    """Where a line ends, without a carriage return."""
    return end - 1 if end > begin and text[0, end - 1] == 13 else end


@shared
def _is_one_line(text: Any, begin: int, end: int) -> bool:
    """Whether a line has no carriage return but at its end."""
    stray = False
    for k in range(begin, end - 1):
        stray |= text[0, k] == 13
    return not stray


@kernel
def records_kernel(octets: Any, text: Any, marks: Any, ends: Any, out: Any) -> Any:
    """Copy whole records to columns; how many, where the next begins, and what is wrong there.

    `octets` are groups of 64 lanes of 8 bits; `text` uint8 (1, bytes) has 64 bytes more behind, `marks` uint8
    (2,) are a line feed and what a header begins with, `ends` int64 memory for the lines of a record: four,
    or two of FASTA, behind which the next record begins. Wrong: 0 nothing, or the end; 1 the layout; 2 no
    name.
    """
    size = text.shape[1] - 64
    at, base, count, name, letter = 0, 0, 0, 0, 0
    out.name_starts[0] = out.starts[0] = 0
    bits = mask_bits(equal(load(octets, text, 0, 0), splat(octets, marks[0])))
    while True:
        for line in range(ends.size):
            while bits == 0:
                base += 64
                if base >= size:
                    return count, at, 0
                bits = mask_bits(equal(load(octets, text, 0, base), splat(octets, marks[0])))
            ends[line] = base + lowest_bit(bits)
            bits = without_lowest(bits)
        sequence, quality, after = ends[0] + 1, ends[ends.size - 2] + 1, ends[ends.size - 1] + 1
        length = _without_return(text, sequence, ends[1]) - sequence
        good = text[0, at] == marks[1]
        if ends.size == 4:
            same = _without_return(text, quality, ends[3]) - quality == length
            good = good and text[0, ends[1] + 1] == 43 and same
        elif after >= size:
            return count, at, 0
        else:
            good = good and length > 0 and text[0, after] == marks[1] and _is_one_line(text, at, ends[0])
        if not good:
            return count, at, 1
        if text[0, at + 1] <= 32:
            return count, at, 2
        at += 1
        while text[0, at] > 32:
            out.names[name] = text[0, at]
            name += 1
            at += 1
        out.names[name] = 10
        name += 1
        # Beyond the last letters there is room for as many as are copied.
        for k in range(0, length, 64):
            store(octets, out.letters, 0, letter + k, load(octets, text, 0, sequence + k))
            if ends.size == 4:
                store(octets, out.qualities, 0, letter + k, load(octets, text, 0, quality + k))
        letter += length
        count += 1
        out.name_starts[count] = name
        out.starts[count] = letter
        at = after


def fastq_reads(
    source: ByteSource, text: bytes, line: int, *, headers: bool = False, piece_bytes: int = _PIECE_BYTES
) -> Iterator[RawReads]:
    """Read the records of a FASTQ file: header, sequence, ``+`` and qualities, on one line each.

    Line ends may be LF or CRLF, in turn if need be; blank lines may follow the last record. What stands
    behind the ``+`` is not looked at. `text` was read already, from the first header on, which stands on the
    1-based `line`; then `piece_bytes`, or as many as a record has, are looked at in one go. With `headers`
    they are given whole, too. FormatError if a record is incomplete or not laid out like this; it names the
    line.
    """
    path, first = source.path, 0
    while text:
        reads, used, wrong = _parse(path, first, line, text)
        if used:
            if headers:
                told = text[:used].decode("utf-8", "backslashreplace").split("\n")[:-1:4]
                reads = replace(reads, headers=told)
            yield reads
            first += len(reads.names)
            line += 4 * len(reads.names)
            text = text[used:]
        if wrong:
            _check_record(path, first, line, text)
            _only_blanks(path, first, line, chain((text,), iter(lambda: source.read(piece_bytes), b"")))
            return
        if len(text) > _LONGEST_RECORD:
            raise FormatError(
                path,
                line=line,
                found=f"a record of more than {_LONGEST_RECORD:,} bytes",
                expected="reads",
                hint="are the line ends those of LF or CRLF?",
            )
        more = source.read(max(piece_bytes, len(text)))
        if not more:
            if not text.strip():
                return
            _check_end(path, first, line, text)
            more = b"\n"
        text += more


def fasta_reads(source: ByteSource, text: bytes, line: int, *, longest: int) -> Iterator[RawReads]:
    """Read the records of a FASTA file as `fastq_reads` does; FormatError as `read_fasta`.

    Those of one line of A, C, G, T and N are parsed as records of FASTQ are, up to the first other one.
    """
    path, first, ended = source.path, 0, False
    while True:
        reads, used, wrong = _parse(path, first, line, text, 2)
        plain = bool(plain_kernel(reads.letters, _NONE, QUALITY_OFFSET, np.empty_like(reads.letters), _NONE))
        if used and plain:
            yield reads
            first += len(reads.names)
            line += 2 * len(reads.names)
            text = text[used:]
        if ended and text == b">":
            return
        if wrong or ended or not plain or len(text) > _PIECE_BYTES:
            break
        more = source.read(_PIECE_BYTES)
        ended = not more
        # A record ends where the next one begins.
        text += more or (b">" if text.endswith(b"\n") else b"\n>")
    pieces = chain((text[: len(text) - ended],), iter(lambda: source.read(_PIECE_BYTES), b""))
    for block in fasta_blocks(source, line, pieces, _PIECE_BYTES, longest):
        yield RawReads(path, first, block.names, block.letters, block.offsets, None, block.lines + 1)
        first += len(block)


def read_sequences(path: str | os.PathLike[str], *, block_residues: int = 1 << 24) -> Iterator[Sequences]:
    """Read a file of sequences, FASTA (see `read_fasta`) or FASTQ, in blocks of whole records.

    Letters of FASTQ stay as they are; it has qualities, and no descriptions. FormatError as `read_fasta`, or
    if a record of FASTQ is not laid out as it should be or holds a byte that is no quality.
    """
    expected = "FASTA or FASTQ text, plain or compressed with gzip or zstd"
    status = check_readable(path)
    with unchanged(path, status), ByteSource(path, sequence_file_kind(path, expected)) as source:
        text, line = first_text(source, min(block_residues, _PIECE_BYTES), expected)
        if text[:1] == b"@":
            for raw in fastq_reads(source, text, line, piece_bytes=block_residues):
                yield _as_sequences(raw, source.bytes_read)
            return
    yield from read_fasta(path, block_residues=block_residues)


def _as_sequences(raw: RawReads, bytes_read: int) -> Sequences:
    qualities = raw.qualities
    assert qualities is not None
    if qualities.size and not QUALITY_OFFSET <= qualities.min() <= qualities.max() <= _LAST_QUALITY:
        raise _strange_quality(raw, qualities)
    names = list(raw.names)
    none = [""] * len(names)
    return Sequences(names, none, raw.letters, raw.starts, raw.lines - 1, bytes_read, qualities)


def _parse(path: object, first: int, line: int, text: bytes, lines: int = 4) -> tuple[RawReads, int, int]:
    """The whole records that a text begins with, how many bytes they are, and what is wrong with the next."""
    padded = np.empty((1, len(text) + 64), np.uint8)
    padded[0, : len(text)] = np.frombuffer(text, np.uint8)
    padded[0, len(text) :] = 0
    # A record has four bytes of each line of letters, or seven, at the least.
    most, room = len(text) // 4 + 2, 2 * len(text) // lines + 64
    out = _RecordColumns(
        np.empty(len(text) + 1, np.uint8),
        np.empty(most, np.int64),
        np.empty((1, room), np.uint8),
        np.empty((1, room if lines == 4 else 0), np.uint8),
        np.empty(most, np.int64),
    )
    count, used, wrong = records_kernel(lanes_of(64), padded, _MARKS[lines], np.empty(lines, np.int64), out)
    starts = out.starts[: count + 1]
    names = Names.of_bytes(out.names, out.name_starts[: count + 1])
    letters, qualities = (column[0, : starts[-1]] for column in (out.letters, out.qualities))
    numbers = line + lines * np.arange(count) + 1
    given = qualities if lines == 4 else None
    return RawReads(path, first, names, letters, starts, given, numbers), used, wrong


def _shown(text: bytes) -> str:
    cut = text[:_SHOWN]
    shown = repr(cut.decode("ascii")) if cut.isascii() else repr(cut)
    return f"{shown[:-1]}...{shown[-1]}" if len(text) > _SHOWN else shown


def _check_record(path: object, record: int, line: int, text: bytes) -> None:
    """Refuse what a text begins with in place of a record of four lines, but for a blank line."""
    lines = [own.removesuffix(b"\r") for own in text.split(b"\n", 4)[:4]]
    header, sequence, plus, quality = lines
    if not header.strip():
        return
    name = _name_of(header)
    hint: str | None = _ONE_LINE
    if not header.startswith(b"@"):
        at, found, expected = 0, _shown(header), _EXPECTED_HEADER
    elif not plus.startswith(b"+"):
        told = _shown(plus) if plus else "a blank line"
        at, found, expected = 2, f"{told} as the third line of read {name}", "a line that begins with '+'"
    elif len(sequence) != len(quality):
        found = f"{len(quality):,} qualities for the {len(sequence):,} bases of read {name}"
        at, expected, hint = 3, "one quality for each base", "the file may be damaged"
    else:
        at, found, expected, hint = 0, "a header without a name", _EXPECTED_HEADER, None
    raise FormatError(path, line=line + at, record=record, found=found, expected=expected, hint=hint)


def _name_of(header: bytes) -> str:
    return shown_name((header[1:].split() or [b""])[0].decode("utf-8", "backslashreplace"))


_ONE_LINE: Final = "a record is four lines: header, sequence, '+' and qualities; or the file is damaged"


def _check_end(path: object, first: int, line: int, text: bytes) -> None:
    """Refuse the last lines of a file if they are not four, of which the last line end may be missing."""
    lines = text.split(b"\n")
    # Without a last line end, the empty qualities of an empty read are no line at all.
    empty = len(lines) == 4 and not lines[1].strip() and not lines[3]
    if len(lines) == 4 and (lines[3] or empty):
        return
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
