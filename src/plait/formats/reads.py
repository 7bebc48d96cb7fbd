"""Read sequencing reads, single or in pairs, as a stream of blocks; and take their barcodes.

Unique molecular identifiers (UMIs) and barcodes of cells stand in names or tags, or at places of the mates.

Examples
--------
>>> from plait.formats.reads import BarcodePlace, open_reads
>>> with open_reads(
...     ["a_1.fastq.gz", "b_1.fastq.gz"], ["a_2.fastq.gz", "b_2.fastq.gz"]
... ) as files:  # doctest: +SKIP
...     for item in files:
...         print(item.file, item.first, len(item.reads), item.mates.lengths.mean())
>>> BarcodePlace.parse("read1:0-12+read2:0-8").parts
(BarcodePart(mate=1, begin=0, end=12), BarcodePart(mate=2, begin=0, end=8))
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput, whole
from plait.formats.fasta import Names, RepeatedNames, first_text, pair_names, sequence_file_kind, shown_start
from plait.formats.fastq import ReadBlock, checked_reads, fasta_reads, fastq_reads, shown_name
from plait.formats.files import ByteSource, Closing, identify, read_ahead, unchanged

T = TypeVar("T")

_HEAD_BYTES: Final = 1 << 16
#: As much as qualities leave room for in a record of FASTQ.
_LONGEST_READ: Final = 1 << 24
_EXPECTED: Final = "FASTQ or FASTA, plain or compressed with gzip or zstd"


def slice_reads(reads: ReadBlock, first: int, last: int) -> ReadBlock:
    """Reads `first` to `last`, not included, without copying their letters."""
    begin, end = int(reads.starts[first]), int(reads.starts[last])
    qualities = reads.qualities
    return ReadBlock(
        reads.names[first:last],
        reads.letters[begin:end],
        reads.starts[first : last + 1] - begin,
        None if qualities is None else qualities[begin:end],
        None if reads.headers is None else reads.headers[first:last],
    )


def join_reads(parts: Sequence[ReadBlock]) -> ReadBlock:
    """Reads of several blocks in one; without qualities if a block has none."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return ReadBlock([], np.zeros(0, np.uint8), np.zeros(1, np.int64))
    starts = np.zeros(1 + sum(map(len, parts)), np.int64)
    np.cumsum(np.concatenate([part.lengths for part in parts]), out=starts[1:])
    qualities = [part.qualities for part in parts if part.qualities is not None]
    headers = [part.headers for part in parts if part.headers is not None]
    return ReadBlock(
        Names.joined([part.names for part in parts]),
        np.concatenate([part.letters for part in parts]),
        starts,
        np.concatenate(qualities) if len(qualities) == len(parts) else None,
        [*chain.from_iterable(headers)] if headers else None,
    )


class ReadFile:
    """A file of reads.

    `bytes_read` from disk and bases written as a dot (`dots`) are counted so far. With `headers` reads have
    theirs. FormatError if the file is empty, begins neither like FASTQ nor like FASTA, or has no `headers`.
    """

    def __init__(self, path: str | os.PathLike[str], *, headers: bool = False) -> None:
        self.path = path
        self._headers = headers
        self.bytes_read = self.dots = 0
        self._kind = sequence_file_kind(path, _EXPECTED)
        with ByteSource(path, self._kind) as source:
            self._is_fasta = _start(source)[0].startswith(b">")
        if headers and self._is_fasta:
            raise FormatError(path, found="FASTA", expected="FASTQ, where tags are read from headers")

    def stream(self) -> ReadStream:
        """The reads from the first one on; to be closed."""
        self.bytes_read = self.dots = 0
        return ReadStream(self._blocks())

    def _blocks(self) -> Generator[ReadBlock, None, None]:
        with ByteSource(self.path, self._kind) as source:
            text, line = _start(source)
            if self._is_fasta:
                found = fasta_reads(source, text, line, longest=_LONGEST_READ)
            else:
                found = fastq_reads(source, text, line, headers=self._headers)
            for raw in found:
                self.bytes_read = source.bytes_read
                reads, dots = checked_reads(raw)
                self.dots += dots
                yield reads
            self.bytes_read = source.bytes_read


class ReadStream(Closing):
    """Blocks of a file, cut anew as they are asked for; a context manager."""

    def __init__(self, blocks: Generator[ReadBlock, None, None]) -> None:
        self._blocks = blocks
        self._held: ReadBlock | None = None
        self._at = 0

    def take(self, reads: int, bases: int | None = None, *, whole: bool = False) -> ReadBlock:
        """The next reads; none at the end of the file.

        There are fewer only where the file ends or they would have more than `bases` bases together, unless
        one read has more; or, if `whole`, where others would have to be copied to stand beside them.
        """
        parts: list[ReadBlock] = []
        left = reads
        room = bases
        while left > 0:
            if self._held is None or self._at == len(self._held):
                self._held, self._at = next(self._blocks, None), 0
                if self._held is None:
                    break
            last = min(self._at + left, len(self._held))
            if room is not None:
                starts = self._held.starts[self._at : last + 1]
                fit = int(np.searchsorted(starts, starts[0] + room, "right")) - 1
                last = self._at + max(fit, 0 if parts else 1)
            if last == self._at:
                break
            part = slice_reads(self._held, self._at, last)
            parts.append(part)
            full = last < min(self._at + left, len(self._held))
            left -= len(part)
            self._at = last
            if whole:
                break
            if room is not None:
                room -= part.letters.size
                if full or room <= 0:
                    break
        return join_reads(parts)

    def put_back(self, reads: ReadBlock) -> None:
        """Make reads that were taken the next ones again: the last ones, or some of them from one on."""
        if self._held is not None:
            reads = join_reads([reads, slice_reads(self._held, self._at, len(self._held))])
        self._held, self._at = reads, 0

    def close(self) -> None:
        """Close the file."""
        self._blocks.close()


def _start(source: ByteSource) -> tuple[bytes, int]:
    """Text from the first line on that is not blank, and its number."""
    text, line = first_text(source, _HEAD_BYTES, _EXPECTED)
    if not text:
        raise FormatError(source.path, found="no reads", expected=_EXPECTED, hint="leave an empty file out")
    if text[:1] not in (b"@", b">"):
        raise FormatError(
            source.path,
            line=line,
            found=shown_start(source.path, text, _EXPECTED),
            expected="'@' (FASTQ) or '>' (FASTA)",
        )
    return text, line


#: Bases after which a block ends, so that long reads do not take more memory than short ones.
_BLOCK_BASES: Final = 1 << 23
_USUAL_READS: Final = 8192

_Path = str | os.PathLike[str]


@dataclass(slots=True)
class ReadCounts:
    """What one file, or two files of mates, held as far as it was read; `reads` are reads, or pairs.

    `empty_reads` have no bases; in pairs, each mate counts. `dots` are bases written as a dot, which are
    taken for N. `duplicate_names` counts reads whose name an earlier read of the file has, exactly or as an
    estimate; see `plait.formats.fasta.RepeatedNames`.
    """

    reads: int = 0
    bases: int = 0
    empty_reads: int = 0
    dots: int = 0
    duplicate_names: int = 0
    duplicate_names_exact: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class ReadItem:
    """Consecutive reads of one file, both numbered from 0.

    `first` is the number of the first of them in the file. `mates` has the second mate of each, in the order
    of `reads` and under the same names; None without files of mates.
    """

    file: int
    first: int
    reads: ReadBlock
    mates: ReadBlock | None


def open_reads(
    paths: _Path | Sequence[_Path],
    mates: _Path | Sequence[_Path] | None = None,
    *,
    block_reads: int | None = _USUAL_READS,
    headers: bool = False,
) -> ReadFiles:
    """Open one or more files of reads.

    They are FASTQ or FASTA, plain, gzip (bgzip too) or zstd, told apart by content; nothing but their first
    bytes is read. `mates` are files of the second mates, one for each of `paths`. Letters may be of either
    case; U is read as T and a dot as N. Qualities are Phred scores with 33 added. Without `block_reads`,
    blocks of reads without mates are as they come from the file, and no names are compared. With `headers`
    first mates have theirs, of FASTQ. InvalidInput if `paths` is empty, `mates` are not as many, a file is
    named twice, or `block_reads` is less than 1; FormatError if a file is missing, empty, or not a file of
    reads.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    others = [mates] if isinstance(mates, str | os.PathLike) else mates and list(mates)
    if not given:
        raise InvalidInput("paths", found="no input file", expected="at least one")
    if others is not None and len(others) != len(given):
        raise InvalidInput(
            "mates",
            found=f"{len(others)} files of mates for {len(given)} files of reads",
            expected="one file of mates for each file of reads",
        )
    if block_reads is not None:
        whole("block_reads", block_reads, 1)
    return ReadFiles(given, others or None, block_reads=block_reads, headers=headers)


class ReadFiles(Closing):
    """Reads of one or more files as blocks; made by `open_reads`.

    Each iteration starts from the first read. A block holds `block_reads` reads of one file or, at its end or
    after eight million bases, fewer; the blocks depend on nothing else. The next block is read in another
    thread while the caller works on one; leaving the loop or `close` ends it.

    `identities` are the absolute path, size in bytes and modification time in ns of each file, mates behind
    reads, to recognise the input again; `total_bytes` is their size on disk. `counts` is what each file held
    so far in this iteration; those of two files of mates are counted together.
    """

    def __init__(
        self, paths: Sequence[_Path], mates: Sequence[_Path] | None, *, block_reads: int | None, headers: bool
    ) -> None:
        self.paths = list(paths)
        self.mate_paths = None if mates is None else list(mates)
        self.block_reads = block_reads
        files = (*paths, *(mates or ()))
        statuses, self.identities = identify(files)
        self._statuses = dict(zip(files, statuses, strict=True))
        self.total_bytes = sum(size for _, size, _ in self.identities)
        self._files = [ReadFile(path, headers=headers) for path in paths]
        self._mate_files = [ReadFile(path) for path in mates or ()]
        self.counts = [ReadCounts() for _ in paths]
        self._running: Generator[ReadItem, None, None] | None = None

    def bytes_read(self) -> int:
        """Bytes read from disk so far in this iteration, out of `total_bytes`."""
        return sum(file.bytes_read for file in (*self._files, *self._mate_files))

    def __iter__(self) -> Iterator[ReadItem]:
        self.close()
        for file in (*self._files, *self._mate_files):
            file.bytes_read = 0
        self.counts = [ReadCounts() for _ in self.paths]
        self._running = read_ahead(self._items())
        return self._running

    def close(self) -> None:
        """End an iteration under way; its thread and files are closed on return."""
        if self._running is not None:
            self._running.close()
            self._running = None

    def _items(self) -> Generator[ReadItem, None, None]:
        for number, file in enumerate(self._files):
            names, counts = RepeatedNames(), self.counts[number]
            mate_file = self._mate_files[number] if self._mate_files else None
            first = 0
            with contextlib.ExitStack() as files:
                for one in (file, mate_file) if mate_file else (file,):
                    files.enter_context(unchanged(one.path, self._statuses[one.path]))
                for reads, mates in _pairs(file, mate_file, self.block_reads):
                    if self.block_reads is not None:
                        names.add(reads.names)
                    _count(counts, reads, mates)
                    counts.dots = file.dots + (mate_file.dots if mate_file else 0)
                    yield ReadItem(number, first, reads, mates)
                    first += len(reads)
            counts.duplicate_names, counts.duplicate_names_exact = names.count, names.exact


def _pairs(
    file: ReadFile, mate_file: ReadFile | None, block_reads: int | None
) -> Iterator[tuple[ReadBlock, ReadBlock | None]]:
    first = 0
    with contextlib.ExitStack() as files:
        stream = files.enter_context(file.stream())
        mate_stream = files.enter_context(mate_file.stream()) if mate_file else None
        whole = block_reads is None and mate_file is None
        while reads := stream.take(block_reads or _USUAL_READS, _BLOCK_BASES, whole=whole):
            mates = None
            if mate_stream and mate_file:
                mates = mate_stream.take(len(reads), _BLOCK_BASES)
                if len(mates) < len(reads) and (more := mate_stream.take(1)):
                    # They are longer: what is left waits for the next block.
                    mate_stream.put_back(more)
                    stream.put_back(slice_reads(reads, len(mates), len(reads)))
                    reads = slice_reads(reads, 0, len(mates))
                reads, mates = _paired(file, mate_file, first, reads, mates)
            yield reads, mates
            first += len(reads)
        if mate_stream and mate_file and (more := mate_stream.take(1)):
            raise _too_few(mate_file.path, file.path, first, more.names[0])


def _paired(
    file: ReadFile, mate_file: ReadFile, first: int, reads: ReadBlock, mates: ReadBlock
) -> tuple[ReadBlock, ReadBlock]:
    """Mates under their common names."""
    both = len(mates)
    names, wrong = pair_names(reads.names[:both], mates.names)
    if wrong is not None:
        one, other = reads.names[wrong], mates.names[wrong]
        swapped = pair_names([other], [one])[1] is None
        raise FormatError(
            mate_file.path,
            record=first + wrong,
            found=f"read {shown_name(other)}",
            expected=f"the mate of {shown_name(one)}, record {first + wrong} of {os.fspath(file.path)}",
            hint="the files of first and second mates are the wrong way round"
            if swapped
            else "mates must stand in the same order in both files",
        )
    if both < len(reads):
        raise _too_few(file.path, mate_file.path, first + both, reads.names[both])
    return (
        ReadBlock(names, reads.letters, reads.starts, reads.qualities, reads.headers),
        ReadBlock(names, mates.letters, mates.starts, mates.qualities),
    )


def _too_few(longer: _Path, shorter: _Path, reads: int, name: str) -> FormatError:
    """Error for mates of which one file has more than the other."""
    return FormatError(
        shorter,
        record=reads,
        found=f"the end of the file after {reads:,} reads",
        expected=f"the mate of {shown_name(name)}, record {reads} of {os.fspath(longer)}",
        hint="the files are not of the same run, or one of them was cut off",
    )


def _count(counts: ReadCounts, reads: ReadBlock, mates: ReadBlock | None) -> None:
    counts.reads += len(reads)
    for block in (reads, mates):
        if block is not None:
            counts.bases += block.letters.size
            counts.empty_reads += int((block.lengths == 0).sum())


_EXPECTED_PLACE: Final = (
    "name, name:REGEX with one group, tag:CB, or places such as read1:0-12 or read1:0-8+read2:0-8"
)
_PART: Final = re.compile(r"read([12]):([0-9]{1,9})-([0-9]{1,9})")
_TAG: Final = re.compile(r"tag:([A-Za-z][A-Za-z0-9])")
#: Where names have barcodes: UMIs behind the last colon or underscore, where a number of the mate may follow;
#: cells before the last underscore, or before the number of a contig of Cell Ranger.
_IN_NAMES: Final = {
    "umi": r"[:_]([ACGTNacgtn]+(?:[+-][ACGTNacgtn]+)*)(?:/[12])?$",
    "cell": r"(?:^|_)([ACGTNacgtn]+(?:-\d+)?)_(?:contig_\d+|[ACGTNacgtn]+(?:/[12])?)$",
}


class BarcodePart(NamedTuple):
    """Bases ``begin:end`` of a mate, 1 or 2, from its start, 0-based and half-open."""

    mate: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class BarcodePlace:
    """Where UMIs, or the barcodes of cells, stand: in names or tags of reads, or at places of their mates.

    `pattern` is a regular expression that is searched for in names, or in whole headers if `tagged`, its
    group being the barcode; None for places. Of several `parts` the bases are joined, one after the other.
    A UMI is bases in upper case alone, what names a `cell` stays as it is.
    """

    pattern: re.Pattern[str] | None
    parts: tuple[BarcodePart, ...] = ()
    tagged: bool = False
    cell: bool = False

    @classmethod
    def parse(cls, text: str, *, cell: bool = False) -> BarcodePlace:
        """The place that an option names, of a UMI or of a cell.

        It is ``name`` for the bases behind the last colon or underscore of a read's name (of cells: before
        the last underscore, or before ``_contig_1``); ``name:REGEX`` for the group of a regular expression;
        ``tag:CB`` for a tag ``CB:Z:...`` of the header; ``read1:0-12`` for bases of the first mate, 0-based
        and half-open, ``read2:0-8`` for bases of the second, and several such places with ``+`` between.
        InvalidInput if it is none of these, the expression is wrong or has not exactly one group, or places
        are empty or overlap.
        """
        what = "cell" if cell else "umi"
        if text == "name":
            return cls(re.compile(_IN_NAMES[what]), cell=cell)
        if text.startswith("name:"):
            return cls(_pattern_in_names(text, text.removeprefix("name:"), what), cell=cell)
        if tag := _TAG.fullmatch(text):
            return cls(re.compile(rf"\s{tag[1]}:Z:(\S+)"), tagged=True, cell=cell)
        parts = []
        for word in text.split("+"):
            found = _PART.fullmatch(word.strip())
            if not found:
                raise InvalidInput(what, found=_shown_option(text), expected=_EXPECTED_PLACE)
            part = BarcodePart(*map(int, found.groups()))
            if part.begin >= part.end:
                raise InvalidInput(
                    what,
                    found=f"{_shown_option(text)}, in which {part.begin}-{part.end} is empty",
                    expected="places that end behind their begin",
                )
            parts.append(part)
        if _overlap(parts):
            raise InvalidInput(what, found=_shown_option(text), expected="places that do not overlap")
        return cls(None, tuple(parts), cell=cell)

    def check_mates(self, paired: bool) -> None:
        """Check that there are mates if a part stands in the second one; InvalidInput if not."""
        if not paired and any(part.mate == 2 for part in self.parts):
            raise InvalidInput(
                "cell" if self.cell else "umi",
                found="a place in the second mates",
                expected="files of second mates, or another place",
            )


def _overlap(parts: Iterable[BarcodePart]) -> bool:
    return any(one.mate == other.mate and other.begin < one.end for one, other in pairwise(sorted(parts)))


def _shown_option(text: str) -> str:
    return f"{text!r:.100}"


def _pattern_in_names(text: str, expression: str, what: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        told = f"{_shown_option(text)} ({error!s:.80})"
        raise InvalidInput(what, found=told, expected="a regular expression") from None
    if pattern.groups != 1:
        raise InvalidInput(
            what,
            found=f"{_shown_option(text)} with {pattern.groups} groups",
            expected="a regular expression with one group, which is the barcode",
            hint="write (?:...) for brackets that are no group",
        )
    return pattern


class BarcodedReads(NamedTuple):
    """Reads without their barcodes: first mates, or single reads, second mates, or None, and the barcodes.

    `barcodes` has a list for each place that was asked for, with a text for each read, empty where the name
    or header does not match, or a mate ends before the place does.
    """

    reads: ReadBlock
    mates: ReadBlock | None
    barcodes: list[list[str]]


def take_barcodes(reads: ReadBlock, mates: ReadBlock | None, places: Sequence[BarcodePlace]) -> BarcodedReads:
    """Take the barcodes of reads, at each of `places`; one entry for each read, in order.

    From a mate with barcodes all bases up to the end of the last place are cut away: what stands before or
    between places (spacers, sample barcodes) is no part of the molecule either. Mates that are too short for
    that stay as they are. InvalidInput if a barcode stands in the second mate and there is none, or places
    overlap.
    """
    parts = [part for place in places for part in place.parts]
    if _overlap(parts):
        raise InvalidInput("cell", found="bases of the UMI", expected="places that do not overlap")
    for place in places:
        place.check_mates(mates is not None)
    blocks = {1: reads, 2: mates}
    ends = {mate: max(p.end for p in own) for mate, own in groupby(sorted(parts), lambda p: p.mate)}
    known = np.ones(len(reads), np.bool_)
    for mate, end in ends.items():
        known &= _given(blocks[mate]).lengths >= end
    found = []
    for place in places:
        if place.pattern is not None:
            texts = reads.headers if place.tagged and reads.headers is not None else reads.names
            found.append(_matched(texts, place))
        else:
            found.append(_cut(blocks, place.parts, known))
    for mate, end in ends.items():
        blocks[mate] = _without_start(_given(blocks[mate]), np.where(known, end, 0))
    return BarcodedReads(_given(blocks[1]), blocks[2], found)


def _cut(
    blocks: Mapping[int, ReadBlock | None], parts: Iterable[BarcodePart], known: NDArray[np.bool_]
) -> list[str]:
    """Bases of mates at some places, joined; empty where not `known`."""
    columns = []
    for part in parts:
        block = _given(blocks[part.mate])
        columns.append(block.letters[block.starts[:-1][known, None] + np.arange(part.begin, part.end)])
    bases = np.concatenate(columns, axis=1)
    text, width = bases.tobytes().decode("ascii"), bases.shape[1]
    found = [""] * known.size
    for number, index in enumerate(np.flatnonzero(known).tolist()):
        found[index] = text[number * width : (number + 1) * width]
    return found


def _given(value: T | None) -> T:
    assert value is not None
    return value


def _matched(texts: Sequence[str], place: BarcodePlace) -> list[str]:
    found = (_given(place.pattern).search(text) for text in texts)
    # A group that is left out of a match is None.
    barcodes = [(one and one.group(1)) or "" for one in found]
    return barcodes if place.cell else [umi.upper().replace("+", "").replace("-", "") for umi in barcodes]


def _without_start(reads: ReadBlock, cuts: NDArray[np.int64]) -> ReadBlock:
    """The reads without as many of their first bases."""
    rests = reads.lengths - cuts
    keep = np.repeat(np.tile((False, True), len(reads)), np.stack((cuts, rests), axis=1).ravel())
    starts = np.zeros(len(reads) + 1, np.int64)
    np.cumsum(rests, out=starts[1:])
    qualities = None if reads.qualities is None else reads.qualities[keep]
    return ReadBlock(reads.names, reads.letters[keep], starts, qualities)
