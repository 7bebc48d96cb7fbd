"""Read FASTA files in blocks of whole records, at the speed of array operations; and names of records.

Bytes are looked at by NumPy, those of long records by compiled code, a piece of the file at a time; Python
sees each header once and no other line. Names that come again are found in bounded memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import shown_letter
from plait.errors import FormatError, InvalidInput
from plait.formats.files import ByteSource, FileKind, check_readable, foreign_content, sniff, unchanged
from plait.lang.compile import kernel
from plait.lang.lanes import greater, lanes_of, load, lowest_bit, mask_bits, splat, store, without_lowest

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SHOWN: Final = 40


def sequence_file_kind(path: str | os.PathLike[str], expected: str) -> FileKind:
    """How a file of sequences is compressed; anything but Parquet.

    `expected` is what the caller reads, for messages. FormatError if the file is empty, is of a known kind
    that holds no sequences, or is a pipe, which cannot be read twice.
    """
    check_readable(path)
    try:
        kind = sniff(path)
    except FormatError as error:
        if isinstance(error.__cause__, OSError):
            raise
        # Its words are about tables.
        raise FormatError(path, found=error.found, expected=expected) from None
    if kind is FileKind.PARQUET:
        raise FormatError(path, found="a Parquet file", expected=expected)
    return kind


def first_text(source: ByteSource, size: int, expected: str) -> tuple[bytes, int]:
    """Text of a file from the first line on that is not blank, and the 1-based number of that line.

    `size` bytes are read in one go; the text is empty if all lines are blank. `expected` is what the caller
    reads, for messages. FormatError if the content is of a known kind that holds no sequences.
    """
    line = 1
    text = source.read(max(size, _SHOWN)).removeprefix(_BYTE_ORDER_MARK)
    foreign = foreign_content(source.path, text)
    if foreign:
        raise FormatError(source.path, found=foreign.found, expected=expected)
    while text:
        first = text.lstrip()
        line += text.count(b"\n", 0, len(text) - len(first))
        if first:
            return first, line
        text = source.read(size)
    return b"", line


def shown_start(path: object, text: bytes, expected: str) -> str:
    """The first line of a file, given its first bytes, in quotes, for a message that it is none of sequences.

    FormatError if it is no text at all.
    """
    shown = text[:_SHOWN].splitlines()[0]
    if b"\0" in text or not shown.isascii():
        raise FormatError(path, found=f"binary data, starting with {shown!r}", expected=expected)
    return repr(shown.decode())


#: Residues that a record may have: more than the longest human chromosome.
_LONGEST_RECORD: Final = 1 << 28
#: Bytes of a record that are looked at in one go.
_LONG_BYTES: Final = 1 << 22
#: What a record takes at least, however short it is.
_RECORD_BYTES: Final = 32
# Small enough for the masks of a piece to stay in the second-level cache.
_PIECE_BYTES: Final = 1 << 18
_EXPECTED: Final = "FASTA text, plain or compressed with gzip or zstd"
_EXPECTED_HEADER: Final = "a header line, '>name'"
_LINE_END, _RETURN, _BLANK, _LAST_LETTER, _HEADER = 10, 13, 32, 126, ord(">")
# Bytes up to the blank that may stand between letters: tab, line feed and its kin, return, blank.
_SPACING: Final = np.isin(np.arange(_BLANK + 1), (9, 10, 11, 12, 13, 32))


@dataclass(frozen=True, eq=False, repr=False)
class Sequences:
    """Consecutive records of one FASTA file.

    `names` are the first words of headers, `descriptions` what follows, or ``""``. `letters` are residues of
    all records as ASCII bytes of either case; record i is ``letters[offsets[i]:offsets[i + 1]]``, maybe
    empty; `offsets` is (n + 1,). `lines` (n,) are 1-based numbers of headers in the decompressed text.
    `bytes_read` are those of the file, compressed if it is, that had been read when these records were
    complete. `qualities`, in the layout of the letters, are as FASTQ has them.
    """

    names: list[str]
    descriptions: list[str]
    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    lines: NDArray[np.int64]
    bytes_read: int = 0
    qualities: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Residues of each record. Shape (n,)."""
        return np.diff(self.offsets)

    def sequence(self, index: int) -> bytes:
        """Residues of one record, as written."""
        return self.letters[self.offsets[index] : self.offsets[index + 1]].tobytes()

    def quality(self, index: int) -> bytes:
        """Qualities of one record as FASTQ has them, or none."""
        if self.qualities is None:
            return b""
        return self.qualities[self.offsets[index] : self.offsets[index + 1]].tobytes()


def read_fasta(
    path: str | os.PathLike[str], *, block_residues: int = 1 << 24, longest: int = _LONGEST_RECORD
) -> Iterator[Sequences]:
    r"""Read a FASTA file (plain, gzip or zstd) in blocks of whole records, at least one.

    Line ends may be LF or CRLF, lines of any length; blanks between residues and blank lines are left out.
    Which letters are allowed is for the caller to say; here they need only be printable ASCII. Headers that
    are not UTF-8 show their odd bytes as ``\xNN``.

    A block ends after `block_residues` bytes of text, headers included; a longer record is a block by itself,
    of at most `longest` residues. Memory is that of the block and, for a moment, of its longest record again.
    FormatError if the file is missing, empty, damaged or something else than FASTA, a header has no name, a
    sequence holds bytes that are no printable ASCII or is too long, or the file changes while it is read;
    InvalidInput if `block_residues` is not positive.
    """
    if block_residues < 1:
        raise InvalidInput("block_residues", found=block_residues, expected="a positive number")
    status = check_readable(path)
    with unchanged(path, status), ByteSource(path, sequence_file_kind(path, _EXPECTED)) as source:
        line, pieces = _start(source, min(block_residues, _PIECE_BYTES))
        yield from fasta_blocks(source, line, pieces, block_residues, longest)


def fasta_blocks(
    source: ByteSource, line: int, pieces: Iterator[bytes], block_residues: int, longest: int
) -> Iterator[Sequences]:
    """Blocks as of `read_fasta` of the rest of a file, which begins with a header on a line."""
    block, size, path = _Block(block_residues), 0, source.path
    for text, begins, ends in _records(pieces):
        if begins:
            records = len(block)
            line += _parse(path, line, text, block)
            size += max(len(text), _RECORD_BYTES * (len(block) - records))
        else:
            line += _parse_more(path, line, text, block)
            size += len(text)
        block.check_last(path, longest)
        if ends and size >= block_residues:
            yield block.sequences(source.bytes_read)
            block, size = _Block(block_residues), 0
    if size:
        yield block.sequences(source.bytes_read)


class FastaPiece(NamedTuple):
    """Some records, of which the first goes on with the last of the piece before if `continues`.

    A record that does not end here is alone in its piece; `ends` says whether the last one does.
    """

    records: Sequences
    continues: bool
    ends: bool


def fasta_pieces(path: str | os.PathLike[str]) -> Iterator[FastaPiece]:
    """Read a FASTA file piece by piece, so that a record of any length takes little memory.

    Errors are those of `read_fasta`, but for the length of records.
    """
    status = check_readable(path)
    with unchanged(path, status), ByteSource(path, sequence_file_kind(path, _EXPECTED)) as source:
        line, pieces = _start(source, _PIECE_BYTES)
        for text, begins, ends in _records(pieces):
            block = _Block(len(text))
            if begins:
                line += _parse(path, line, text, block)
            else:
                nothing = np.zeros(0, np.uint8)
                block.add(Sequences([""], [""], nothing, np.zeros(2, np.int64), np.array([line])))
                line += _parse_more(path, line, text, block)
            yield FastaPiece(block.sequences(source.bytes_read), not begins, ends)


class _Block:
    """Records on their way into a block; the letters go into one large array from the start.

    Kept piece by piece and joined at the end, they would cost twice the fresh memory, a fifth of all time.
    """

    def __init__(self, room: int) -> None:
        self._names: list[str] = []
        self._descriptions: list[str] = []
        self._letters = np.empty(room, np.uint8)
        self._size = 0
        self._lengths: list[NDArray[np.int64]] = []
        self._lines: list[NDArray[np.int64]] = []

    def add(self, records: Sequences) -> None:
        self._append(records.letters)
        self._names += records.names
        self._descriptions += records.descriptions
        self._lengths.append(records.lengths)
        self._lines.append(records.lines)

    def extend_last(self, letters: NDArray[np.uint8]) -> None:
        self._append(letters)
        self._lengths[-1][-1] += letters.size

    def check_last(self, path: object, longest: int) -> None:
        if self._lengths[-1][-1] > longest:
            raise FormatError(
                path,
                line=int(self._lines[-1][-1]),
                found=f"a record of more than {longest:,} residues",
                expected=f"at most {longest:,}",
            )

    def __len__(self) -> int:
        return len(self._names)

    def _append(self, letters: NDArray[np.uint8]) -> None:
        size = self._size + letters.size
        if size > self._letters.size:
            grown = np.empty(max(size, self._size * 3 // 2), np.uint8)
            grown[: self._size] = self._letters[: self._size]
            self._letters = grown
        self._letters[self._size : size] = letters
        self._size = size

    def sequences(self, bytes_read: int) -> Sequences:
        offsets = np.concatenate([np.zeros(1, np.int64), *self._lengths])
        return Sequences(
            self._names,
            self._descriptions,
            self._letters[: self._size],
            np.cumsum(offsets, out=offsets),
            np.concatenate(self._lines),
            bytes_read,
        )


def _start(source: ByteSource, size: int) -> tuple[int, Iterator[bytes]]:
    """Number of the first line that is not blank, and the text from there on in pieces."""
    first, line = first_text(source, size, _EXPECTED)
    if not first:
        raise FormatError(source.path, found="no sequence, only blank lines", expected=_EXPECTED_HEADER)
    if first[0] != _HEADER:
        fastq = first.startswith(b"@")
        raise FormatError(
            source.path,
            line=line,
            found=f"{'FASTQ, ' if fastq else ''}{shown_start(source.path, first, _EXPECTED)}",
            expected=_EXPECTED_HEADER,
            hint="convert it to FASTA first" if fastq else None,
        )
    return line, chain((first,), iter(lambda: source.read(size), b""))


def _records(pieces: Iterator[bytes]) -> Iterator[tuple[bytes, bool, bool]]:
    """Texts that end where a record does, but for long ones; whether they begin and end with a record."""
    held: list[bytes] = []
    size, begins, last = 0, True, 0
    for text in pieces:
        # The line end before a header may be the last byte of the piece before.
        first = 0 if text[0] == _HEADER and last == _LINE_END else _next_record(text)
        last = text[-1]
        if first is not None:
            cut = text.rfind(b"\n>") + 1
            end = cut if begins else first
            yield b"".join([*held, text[:end]]), begins, True
            if end < cut:
                yield text[end:cut], True, True
            held, size, begins = [text[cut:]], len(text) - cut, True
            continue
        held.append(text)
        size += len(text)
        if size > _LONG_BYTES:
            joined = b"".join(held)
            # What begins with a header has to end with a line.
            cut = joined.rfind(b"\n") + 1 if begins else len(joined)
            yield joined[:cut], begins, False
            held, size, begins = [joined[cut:]], len(joined) - cut, False
    rest = b"".join(held)
    yield rest if rest.endswith(b"\n") else rest + b"\n", begins, True


def _next_record(text: bytes) -> int | None:
    """Place of the first header behind a line end; headers are fewer than lines."""
    place = text.find(b">", 1)
    while place > 0 and text[place - 1] != _LINE_END:
        place = text.find(b">", place + 1)
    return place if place > 0 else None


class _Headers(NamedTuple):
    """Where the headers of a text are: ``>``, the first blank or line end, and the line end. Shape (n,)."""

    starts: NDArray[np.int64]
    name_ends: NDArray[np.int64]
    ends: NDArray[np.int64]


def _parse(path: object, first_line: int, text: bytes, block: _Block) -> int:
    """Put the records of a text, from a header to a line end, into a block; give its number of lines."""
    data = np.frombuffer(text, np.uint8)
    low = data <= _BLANK
    gaps = np.flatnonzero(low)
    kinds = data[gaps]
    gap_of_line = np.flatnonzero(kinds == _LINE_END)
    line_ends = gaps[gap_of_line]
    if not line_ends.size:
        raise FormatError(
            path,
            line=first_line,
            found=f"a header line of more than {_LONG_BYTES:,} bytes",
            expected=_EXPECTED_HEADER,
        )
    line_starts = np.concatenate(([0], line_ends[:-1] + 1))
    heads = np.flatnonzero(data[line_starts] == _HEADER)
    # Each record is a header, from its start to behind its line end, and a body up to the next record.
    starts, bodies = line_starts[heads], line_ends[heads] + 1
    stops = np.append(starts[1:], data.size)
    spans = np.stack((bodies - starts, stops - bodies), axis=1).ravel()
    in_body = np.repeat(np.tile((False, True), heads.size), spans)
    if gaps.size > line_ends.size:
        _check_gaps(path, first_line, data, gaps[kinds != _LINE_END], in_body)
    first_gaps = np.concatenate(([0], gap_of_line[heads[1:] - 1] + 1))
    headers = _Headers(starts, gaps[first_gaps], bodies - 1)
    names, descriptions = _names(path, first_line + heads, text, headers, low)
    letters = data[np.greater(in_body, low, out=in_body)]
    if letters.size and letters.max() > _LAST_LETTER:
        raise _strange_byte(path, first_line, data, int(((data > _LAST_LETTER) & in_body).argmax()))
    gaps_of_body = np.append(first_gaps[1:], gaps.size) - gap_of_line[heads] - 1
    offsets = np.zeros(heads.size + 1, np.int64)
    np.cumsum(stops - bodies - gaps_of_body, out=offsets[1:])
    block.add(Sequences(names, descriptions, letters, offsets, first_line + heads))
    return line_ends.size


#: The last byte that is a blank, the last that is a letter, line feed and carriage return.
_EDGES: Final = np.array([_BLANK, _LAST_LETTER, _LINE_END, _RETURN], np.uint8)


@kernel
def lines_kernel(octets: Any, text: Any, edges: Any, out: Any) -> Any:
    """Copy letters of lines; how many, how many lines, and whether (1 or 0) there is nothing else.

    `octets` are groups of 64 lanes of 8 bits; `text` uint8 (1, bytes) has 64 letters more behind, `out` uint8
    room for all of it and as many; `edges` is `_EDGES`.
    """
    size, count, lines, plain = text.shape[1] - 64, 0, 0, 1
    for base in range(0, size, 64):
        own = load(octets, text, 0, base)
        blanks = ~mask_bits(greater(own, splat(octets, edges[0])))
        if mask_bits(greater(own, splat(octets, edges[1]))) != 0:
            plain = 0
        begin = 0
        while blanks != 0:
            place = lowest_bit(blanks)
            blanks = without_lowest(blanks)
            byte = text[0, base + place]
            if byte == edges[2]:
                lines += 1
            elif byte != edges[3]:
                plain = 0
            # Beyond the letters that count there is room for as many as are copied.
            store(octets, out, 0, count, load(octets, text, 0, base + begin))
            count += place - begin
            begin = place + 1
        store(octets, out, 0, count, load(octets, text, 0, base + begin))
        count += min(64, size - base) - begin
    return count, lines, plain


def _parse_more(path: object, first_line: int, text: bytes, block: _Block) -> int:
    """Put more lines of the last record into a block; give their number."""
    padded = np.full((1, len(text) + 64), ord("A"), np.uint8)
    padded[0, :-64] = np.frombuffer(text, np.uint8)
    out = np.empty((1, len(text) + 64), np.uint8)
    count, lines, plain = lines_kernel(lanes_of(64), padded, _EDGES, out)
    if plain:
        block.extend_last(out[0, :count])
        return int(lines)
    data = np.frombuffer(text, np.uint8)
    low = data <= _BLANK
    places = np.flatnonzero(low)
    strange = ~_SPACING[data[places]]
    if strange.any():
        raise _strange_byte(path, first_line, data, int(places[strange.argmax()]))
    letters = data[~low]
    if letters.size and letters.max() > _LAST_LETTER:
        raise _strange_byte(path, first_line, data, int((data > _LAST_LETTER).argmax()))
    block.extend_last(letters)
    return text.count(b"\n")


#: Control characters end a word as blanks do.
_BLANKS: Final = bytes(range(33))
_SPACES: Final = b" " * 33 + bytes(range(33, 256))


def _names(
    path: object, lines: NDArray[np.int64], text: bytes, headers: _Headers, low: NDArray[np.bool_]
) -> tuple[list[str], list[str]]:
    """First words and the rest of headers; cut with what is known, for this is a third of the time."""
    starts, name_ends = headers.starts + 1, headers.name_ends
    ends = headers.ends - (np.frombuffer(text, np.uint8)[headers.ends - 1] == _RETURN)
    names = [text[a:b] for a, b in zip(starts.tolist(), name_ends.tolist(), strict=True)]
    rests = [text[a:b] for a, b in zip((name_ends + 1).tolist(), ends.tolist(), strict=True)]
    outer_blank = low[np.minimum(name_ends + 1, ends)] | low[ends - 1]
    for number in np.flatnonzero((name_ends == starts) | ((name_ends < ends) & outer_blank)).tolist():
        whole = text[starts[number] : ends[number]].strip(_BLANKS)
        if not whole:
            raise FormatError(
                path,
                line=int(lines[number]),
                found="a header without a name",
                expected=_EXPECTED_HEADER,
            )
        size = len(whole.translate(_SPACES).split(None, 1)[0])
        names[number], rests[number] = whole[:size], whole[size:].lstrip(_BLANKS)
    return _decoded(names), _decoded(rests)


def _decoded(texts: list[bytes]) -> list[str]:
    return b"\n".join(texts).decode("utf-8", "backslashreplace").split("\n")


def _check_gaps(
    path: object,
    first_line: int,
    data: NDArray[np.uint8],
    places: NDArray[np.int64],
    in_body: NDArray[np.bool_],
) -> None:
    """Refuse control characters among letters, and carriage returns that do not end their line."""
    strange = ~_SPACING[data[places]] & in_body[places]
    if strange.any():
        raise _strange_byte(path, first_line, data, int(places[strange.argmax()]))
    # A text ends with a line end, so that something follows.
    stray = (data[places] == _RETURN) & ~in_body[places] & (data[places + 1] != _LINE_END)
    if stray.any():
        raise FormatError(
            path,
            line=_line_of(first_line, data, int(places[stray.argmax()])),
            found="a carriage return within a header line",
            expected="lines that end in LF or CRLF",
            hint="convert the line ends",
        )


def _strange_byte(path: object, first_line: int, data: NDArray[np.uint8], place: int) -> FormatError:
    return FormatError(
        path,
        line=_line_of(first_line, data, place),
        found=f"{shown_letter(data, place)} in a sequence",
        expected="letters",
        hint="the file may be damaged, or not be text",
    )


def _line_of(first_line: int, data: NDArray[np.uint8], place: int) -> int:
    return first_line + int(np.count_nonzero(data[:place] == _LINE_END))


# A place is a line number, and above it the number of the file.
_LINE_BITS: Final = 40


@dataclass(frozen=True, slots=True)
class DuplicateName:
    """A name that an earlier record has, too.

    `path` and the 1-based `line` are those of the later header, `first_path` and `first_line` those of the
    first one.
    """

    name: str
    path: str
    line: int
    first_path: str
    first_line: int

    def error(self, hint: str | None = None) -> FormatError:
        """What to raise where names must differ, with what to do about it, if anything."""
        where = f"line {self.first_line}"
        if self.first_path != self.path:
            where = f"{self.first_path}, {where}"
        return FormatError(
            self.path,
            line=self.line,
            found=f"a second sequence named {self.name!r}, after that of {where}",
            expected="a name of its own for every sequence",
            hint=hint,
        )


class _Run(NamedTuple):
    """Hashes in rising order, equal ones in order of input, and where their headers are."""

    hashes: NDArray[np.int64]
    places: NDArray[np.int64]


class NameRegister:
    """Remembers the names of many records in 16 bytes each, to find the ones that come again.

    A name is remembered by Python's 64-bit hash of it: with a million names, the chance that two different
    ones are taken for equal is below one in ten million.
    """

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._last_line = 0
        # Each run is more than twice as long as the next, so that all together are merged in n log n.
        self._runs: list[_Run] = []

    def add(self, path: str | os.PathLike[str], sequences: Sequences) -> list[DuplicateName]:
        """Remember the names of some records; those of them whose name an earlier record has, in order."""
        first_line = int(sequences.lines[0]) if len(sequences) else self._last_line + 1
        # A file that begins again is read a second time: all its names are there already.
        if not self._paths or self._paths[-1] != str(path) or first_line <= self._last_line:
            self._paths.append(str(path))
        if len(sequences):
            self._last_line = int(sequences.lines[-1])
        places = sequences.lines | (len(self._paths) - 1) << _LINE_BITS
        hashes = np.fromiter(map(hash, sequences.names), np.int64, len(sequences))
        order = np.argsort(hashes, kind="stable")
        run = _Run(hashes[order], places[order])
        # Looked up in rising order, which is several times faster.
        firsts = np.full(len(sequences), -1, np.int64)
        for known in (*self._runs, run):
            at = np.minimum(np.searchsorted(known.hashes, run.hashes), len(known.hashes) - 1)
            found = (firsts < 0) & (known.hashes[at] == run.hashes) & (known.places[at] != run.places)
            firsts[found] = known.places[at[found]]
        firsts[order] = firsts.copy()
        self._append(run)
        return [self._duplicate(sequences, i, int(firsts[i])) for i in np.flatnonzero(firsts >= 0).tolist()]

    def _append(self, run: _Run) -> None:
        while self._runs and len(self._runs[-1].hashes) <= 2 * len(run.hashes):
            hashes, places = (np.concatenate(pair) for pair in zip(self._runs.pop(), run, strict=True))
            order = np.argsort(hashes, kind="stable")
            run = _Run(hashes[order], places[order])
        self._runs.append(run)

    def _duplicate(self, sequences: Sequences, index: int, first: int) -> DuplicateName:
        return DuplicateName(
            name=sequences.names[index],
            path=self._paths[-1],
            line=int(sequences.lines[index]),
            first_path=self._paths[first >> _LINE_BITS],
            first_line=first & ((1 << _LINE_BITS) - 1),
        )


_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = np.uint64(0xD6E8FEB86659FD93)
_HALF: Final = np.uint64(32)
#: Hashes that are put among the others in one go.
_MOST_WAITING: Final = 1 << 17
#: Characters between the name of a pair and the number of the mate.
_SEPARATORS: Final = "/._"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Names(Sequence[str]):
    """Names without line feeds as UTF-8, uint8 (bytes,), with a line feed behind each.

    `starts` int64 (n + 1,) are where they begin, and where the last one's line feed ends.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, names: Sequence[str]) -> Names:
        """Names as bytes, if they are not already."""
        if isinstance(names, Names):
            return names
        encoded = [name.encode("utf-8", "backslashreplace") + b"\n" for name in names]
        starts = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=starts[1:])
        return cls(np.frombuffer(bytearray(b"".join(encoded)), np.uint8), starts)

    @classmethod
    def of_bytes(cls, data: NDArray[np.uint8], starts: NDArray[np.int64]) -> Names:
        """Names as a file has them; bytes that are not UTF-8 are told by their numbers."""
        data = data[: starts[-1]]
        if data.max(initial=0) < 128:
            return cls(data, starts)
        return cls.of(data.tobytes().decode("utf-8", "backslashreplace").split("\n")[:-1])

    def __len__(self) -> int:
        return self.starts.size - 1

    @classmethod
    def joined(cls, parts: Sequence[Sequence[str]]) -> Names:
        """Names of several in one."""
        every = [cls.of(part) for part in parts]
        sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.starts) for part in every)])
        data = [part.data[part.starts[0] : part.starts[-1]] for part in every]
        return cls(np.concatenate(data), np.cumsum(sizes))

    @overload
    def __getitem__(self, which: int) -> str: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[str]: ...
    def __getitem__(self, which: int | slice) -> str | Sequence[str]:
        places = range(len(self))[which]
        if not isinstance(places, range):
            return Names(self.data, self.starts[places : places + 2])._texts()[0]
        if places.step != 1:
            return self._texts()[which]
        return Names(self.data, self.starts[places.start : max(places.start, places.stop) + 1])

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _texts(self) -> list[str]:
        text = self.data[self.starts[0] : self.starts[-1]].tobytes()
        return text.decode().split("\n")[:-1]


@kernel
def hash_kernel(data: Any, starts: Any, multiplier: Any, out: Any) -> None:
    """Polynomials of the bytes of each name, modulo 2^64: `out` uint64 (n,)."""
    for name in range(out.size):
        power, total = multiplier, multiplier - multiplier
        for k in range(starts[name], starts[name + 1]):
            total += np.uint64(data[k]) * power
            power *= multiplier
        out[name] = total


def hash_names(names: Sequence[str]) -> NDArray[np.uint64]:
    """A number for each name, the same in every process; names have no line feeds.

    It is (n,): a polynomial of the bytes modulo 2^64, stirred so that every bit depends on all.
    """
    own = Names.of(names)
    hashes = np.empty(len(own), np.uint64)
    hash_kernel(own.data, own.starts, _MULTIPLIER, hashes)
    for _ in range(2):
        hashes = (hashes ^ (hashes >> _HALF)) * _MIX
    stirred: NDArray[np.uint64] = hashes ^ (hashes >> _HALF)
    return stirred


class RepeatedNames:
    """Counts the names that came before, in memory that does not grow with the number of reads.

    Up to `room` names, of 16 bytes each, the count is exact. Beyond that only the names whose hash is a
    multiple of a power of two are kept, all of them at first and half as many each time that room runs out,
    and what is counted among them is multiplied by that power. A repeated name is kept each time or never, so
    that the estimate has no bias; it depends on nothing but the names.
    """

    def __init__(self, room: int = 1 << 20) -> None:
        self._room = room
        self._shift = 0
        self._hashes = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.int64)
        self._waiting: list[NDArray[np.uint64]] = []
        self._waiting_size = 0

    @property
    def exact(self) -> bool:
        """Whether all names are kept."""
        self._settle()
        return self._shift == 0

    @property
    def count(self) -> int:
        """Names that an earlier read has, too."""
        self._settle()
        return int(self._counts.sum() - self._counts.size) << self._shift

    def add(self, names: Sequence[str]) -> None:
        """Count the names of further reads."""
        hashes = hash_names(names)
        if self._shift:
            hashes = self._kept(hashes)
        self._waiting.append(hashes)
        self._waiting_size += hashes.size
        if self._waiting_size > _MOST_WAITING:
            self._settle()

    def _kept(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        kept: NDArray[np.uint64] = hashes[hashes << np.uint64(64 - self._shift) == 0]
        return kept

    def _settle(self) -> None:
        if not self._waiting_size:
            return
        new, counts = np.unique(np.concatenate(self._waiting), return_counts=True)
        self._waiting, self._waiting_size = [], 0
        at = np.searchsorted(self._hashes, new)
        known = self._hashes[np.minimum(at, self._hashes.size - 1)] == new if self._hashes.size else at < 0
        self._counts[at[known]] += counts[known]
        self._counts = np.insert(self._counts, at[~known], counts[~known])
        self._hashes = np.insert(self._hashes, at[~known], new[~known])
        while self._hashes.size > self._room:
            self._shift += 1
            keep = self._hashes << np.uint64(64 - self._shift) == 0
            self._hashes, self._counts = self._hashes[keep], self._counts[keep]


def pair_names(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], int | None]:
    """The names that mates have in common; the number of the first two that are no mates, where they end.

    Mates have the same name, or one that ends in 1 and one that ends in 2 after a slash, a dot or an
    underscore, which is left out. There are as many of the one as of the other; the number is None if all are
    mates.
    """
    if first == second:
        return list(first), None
    names = []
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        if one == other:
            names.append(one)
        elif one[-1:] == "1" and other[-1:] == "2" and one[:-1] == other[:-1] and one[-2:-1] in _SEPARATORS:
            names.append(one[:-2])
        else:
            return names, number
    return names, None
