"""Loci as SAM, BAM, PAF and rows of a table."""

from __future__ import annotations

import json
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_LETTER
from plait.errors import InvalidInput
from plait.formats.fasta import Names
from plait.formats.files import fast_zlib
from plait.lang.compile import kernel, shared
from plait.mapping.alignments import MATCH, write_number
from plait.mapping.genome import Genome
from plait.mapping.mapper import STATUSES, MappedReads

if TYPE_CHECKING:
    import pyarrow as pa

MapqRule = Literal["none", "unique"]
_NAME: Final = re.compile(r"[!-?A-~]{1,254}")
_CONTIG: Final = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
_ANOTHER: Final = "rename it, or choose another format"
_MOST_ROWS: Final = 1 << 15
#: Bytes of text in a block of BGZF, and what ends a file.
_BLOCK_BYTES: Final = 65_280
BGZF_END: Final = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_NIBBLES: Final = "=ACMGRSVTWYHKDBN"
#: Bytes of numbers and tags of a record at the most.
_NUMBERS: Final = 256
#: Bytes of a run of an alignment at the most.
_RUN_BYTES: Final = 20
_STEPS: Final = tuple(b"MIDNSHP=X")
#: Between the CIGAR and the letters: no mate. Before values of tags in SAM and PAF: a number, a text.
_NO_MATE: Final = tuple(b"\t*\t0\t0\t")
_NUMBER, _TEXT = tuple(b":i:"), tuple(b":Z:")
_NM, _NH, _HI, _MD = tuple(b"NM"), tuple(b"NH"), tuple(b"HI"), tuple(b"MD")
_FI, _TC, _YS, _CG = tuple(b"FI"), tuple(b"TC"), tuple(b"YS"), tuple(b"cg")


class Columns(NamedTuple):
    """Reads, loci and contigs as records are made of them.

    Texts are uint8 (bytes,), with a byte behind each that is none of it, and int64 (n + 1,) where they begin:
    `names` of reads, `contigs` and `words` for `statuses`. `letters` and `qualities` uint8 (letters,) are
    from `starts` int64 (reads + 1,) on; there may be no qualities. `numbering` int64 (contigs,) is the number
    of each in the header, `lengths` its letters; `complement` uint8 (256,) and `nibbles` uint8 (2, 256) are
    letters of the other strand, and of both as BAM has them. What follows is of loci, as in `HitRows`.
    """

    names: Any
    name_starts: Any
    letters: Any
    starts: Any
    qualities: Any
    statuses: Any
    counts: Any
    mates: Any
    contigs: Any
    contig_starts: Any
    lengths: Any
    numbering: Any
    words: Any
    word_starts: Any
    complement: Any
    nibbles: Any
    strand: Any
    contig: Any
    start: Any
    end: Any
    distance: Any
    runs: Any
    run_counts: Any
    differences: Any
    difference_sizes: Any


@shared
def _put(out: Any, at: int, data: Any, first: int, last: int) -> int:
    """Bytes of `data` into `out` uint8 (1, enough); this and the next ones return where they end."""
    # An index without a sign is not looked at, so that many bytes are copied at a time.
    to, of = np.uint64(at), np.uint64(first)
    for k in range(np.uint64(last - first)):
        out[0, to + k] = data[of + k]
    return at + last - first


@shared
def _put_name(out: Any, at: int, data: Any, starts: Any, k: int) -> int:
    return _put(out, at, data, starts[k], starts[k + 1] - 1)


@shared
def _put_byte(out: Any, at: int, byte: int) -> int:
    out[0, at] = byte
    return at + 1


@shared
def _put_constant(out: Any, at: int, text: Any) -> int:
    for k in range(len(text)):
        out[0, at + k] = text[k]
    return at + len(text)


@shared
def _put_field(out: Any, at: int, number: int) -> int:
    """A tab, and a number that is not negative."""
    return write_number(out, 0, _put_byte(out, at, 9), number)


@shared
def _put_tag(out: Any, at: int, name: Any, kind: Any) -> int:
    return _put_constant(out, _put_constant(out, _put_byte(out, at, 9), name), kind)


@shared
def _put_number(out: Any, at: int, name: Any, number: int) -> int:
    return write_number(out, 0, _put_tag(out, at, name, _NUMBER), number)


@shared
def _put_cigar(out: Any, row: int, at: int, runs: Any, hit: int, count: int) -> int:
    """A CIGAR as text, of runs as in BAM, int64 (loci, most)."""
    for k in range(count):
        at = write_number(out, row, at, runs[hit, k] >> 4)
        out[row, at] = _STEPS[runs[hit, k] & 15]
        at += 1
    return at


@shared
def _put_scores(out: Any, at: int, given: Any, first: int, last: int, turned: bool, more: int) -> int:
    """Qualities with a number added, backwards if the read is turned."""
    to, of = np.uint64(at), np.uint64(last - 1 if turned else first)
    if turned:
        for k in range(np.uint64(last - first)):
            out[0, to + k] = given.qualities[of - k] + more
    else:
        for k in range(np.uint64(last - first)):
            out[0, to + k] = given.qualities[of + k] + more
    return at + last - first


@shared
def _flag(given: Any, found: Any, record: int) -> int:
    flag = 0 if found.primary[record] else 256
    if not found.mapped[record]:
        return flag + 4
    return flag + (16 if given.strand[found.hit[record]] == 1 else 0)


@shared
def _quality_of_mapping(given: Any, found: Any, record: int, unique: bool) -> int:
    """255, or if asked for by how many loci there are; 0 where there is none."""
    if not found.mapped[record]:
        return 0
    count = given.counts[found.read[record]]
    return (60 if count == 1 else 3 if count == 2 else 0) if unique else 255


@kernel
def sam_kernel(given: Any, found: Any, unique: bool, out: Any) -> int:
    """Lines of SAM of `Records`; how many bytes."""
    at = 0
    for record in range(found.read.size):
        read, hit, mapped = found.read[record], found.hit[record], found.mapped[record]
        at = _put_name(out, at, given.names, given.name_starts, read)
        at = _put_field(out, at, _flag(given, found, record))
        at = _put_byte(out, at, 9)
        if mapped:
            at = _put_name(out, at, given.contigs, given.contig_starts, given.contig[hit])
        else:
            at = _put_byte(out, at, 42)
        at = _put_field(out, at, given.start[hit] + 1 if mapped else 0)
        at = _put_field(out, at, _quality_of_mapping(given, found, record, unique))
        at = _put_byte(out, at, 9)
        if mapped:
            at = _put_cigar(out, 0, at, given.runs, hit, given.run_counts[hit])
        else:
            at = _put_byte(out, at, 42)
        at = _put_constant(out, at, _NO_MATE)
        at = _put_letters(out, at, given, read, found.primary[record], mapped and given.strand[hit] == 1)
        at = _put_sam_tags(out, at, given, found, record)
        at = _put_byte(out, at, 10)
    return at


@shared
def _put_letters(out: Any, at: int, given: Any, read: int, primary: bool, turned: bool) -> int:
    """Letters and qualities of a primary record on the strand of the text."""
    first = given.starts[read]
    last = given.starts[read + 1] if primary else first
    if first == last:
        at = _put_byte(out, at, 42)
    elif turned:
        to, of = np.uint64(at), np.uint64(last - 1)
        for k in range(np.uint64(last - first)):
            out[0, to + k] = given.complement[given.letters[of - k]]
        at += last - first
    else:
        at = _put(out, at, given.letters, first, last)
    at = _put_byte(out, at, 9)
    if first == last or given.qualities.size == 0:
        return _put_byte(out, at, 42)
    return _put_scores(out, at, given, first, last, turned, 33)


@shared
def _put_sam_tags(out: Any, at: int, given: Any, found: Any, record: int) -> int:
    read, hit = found.read[record], found.hit[record]
    if found.mapped[record]:
        at = _put_number(out, at, _NM, given.distance[hit])
    at = _put_number(out, at, _NH, given.counts[read])
    if found.mapped[record]:
        at = _put_number(out, at, _HI, found.rank[record])
        at = _put_tag(out, at, _MD, _TEXT)
        at = _put(out, at, given.differences[hit], 0, given.difference_sizes[hit])
    if given.mates[read] > 0:
        at = _put_number(out, at, _FI, given.mates[read])
        at = _put_number(out, at, _TC, 2)
    if given.statuses[read] > 1:
        at = _put_tag(out, at, _YS, _TEXT)
        at = _put_name(out, at, given.words, given.word_starts, given.statuses[read])
    return at


@kernel
def paf_kernel(given: Any, found: Any, unique: bool, out: Any) -> int:
    """Lines of PAF of those `Records` that are mapped; how many bytes."""
    at = 0
    for record in range(found.read.size):
        if not found.mapped[record]:
            continue
        read, hit = found.read[record], found.hit[record]
        length, contig = given.starts[read + 1] - given.starts[read], given.contig[hit]
        same = steps = 0
        for k in range(given.run_counts[hit]):
            steps += given.runs[hit, k] >> 4
            same += given.runs[hit, k] >> 4 if given.runs[hit, k] & 15 == MATCH else 0
        at = _put_name(out, at, given.names, given.name_starts, read)
        at = _put_field(out, _put_field(out, _put_field(out, at, length), 0), length)
        at = _put_byte(out, at, 9)
        at = _put_byte(out, at, 45 if given.strand[hit] == 1 else 43)
        at = _put_byte(out, at, 9)
        at = _put_name(out, at, given.contigs, given.contig_starts, contig)
        at = _put_field(out, _put_field(out, at, given.lengths[contig]), given.start[hit])
        at = _put_field(out, _put_field(out, _put_field(out, at, given.end[hit]), same), steps)
        at = _put_field(out, at, _quality_of_mapping(given, found, record, unique))
        at = _put_number(out, at, _NM, given.distance[hit])
        at = _put_number(out, at, _NH, given.counts[read])
        at = _put_number(out, at, _HI, found.rank[record])
        at = _put_tag(out, at, _CG, _TEXT)
        at = _put_cigar(out, 0, at, given.runs, hit, given.run_counts[hit])
        if given.mates[read] > 0:
            at = _put_number(out, at, _FI, given.mates[read])
        at = _put_byte(out, at, 10)
    return at


@shared
def _put_bytes(out: Any, at: int, number: int, count: int) -> int:
    """An integer of so many bytes, the lowest first."""
    for k in range(count):
        out[0, at + k] = (number >> (8 * k)) & 255
    return at + count


@shared
def _bin(start: int, end: int) -> int:
    """The bin of SAM's specification (5.3) of a stretch; before the first letter, that of nothing."""
    last = max(end, start + 1) - 1
    shift, first = 14, 4681
    while shift < 29 and start >> shift != last >> shift:
        shift += 3
        first = (first - 1) >> 3
    return 4680 if start < 0 else first + (start >> shift) if shift < 29 else 0


@kernel
def bam_kernel(given: Any, found: Any, unique: bool, out: Any) -> int:
    """Records of BAM of `Records`; how many bytes."""
    at = 0
    for record in range(found.read.size):
        read, hit, mapped = found.read[record], found.hit[record], found.mapped[record]
        first = given.starts[read]
        last = given.starts[read + 1] if found.primary[record] else first
        turned = mapped and given.strand[hit] == 1
        nibbles = given.nibbles[1 if turned else 0]
        runs, start = given.run_counts[hit] if mapped else 0, given.start[hit] if mapped else -1
        begin = at
        at = _put_bytes(out, at + 4, given.numbering[given.contig[hit]] if mapped else -1, 4)
        at = _put_bytes(out, at, start, 4)
        at = _put_bytes(out, at, given.name_starts[read + 1] - given.name_starts[read], 1)
        at = _put_bytes(out, at, _quality_of_mapping(given, found, record, unique), 1)
        at = _put_bytes(out, at, _bin(start, given.end[hit] if mapped else 0), 2)
        at = _put_bytes(out, at, runs, 2)
        at = _put_bytes(out, at, _flag(given, found, record), 2)
        at = _put_bytes(out, at, last - first, 4)
        at = _put_bytes(out, _put_bytes(out, _put_bytes(out, at, -1, 4), -1, 4), 0, 4)
        at = _put_byte(out, _put_name(out, at, given.names, given.name_starts, read), 0)
        for k in range(runs):
            at = _put_bytes(out, at, given.runs[hit, k], 4)
        for k in range(0, last - first, 2):
            pair = nibbles[given.letters[last - 1 - k if turned else first + k]] << 4
            if first + k + 1 < last:
                pair |= nibbles[given.letters[last - 2 - k if turned else first + k + 1]]
            at = _put_byte(out, at, pair)
        if given.qualities.size > 0:
            at = _put_scores(out, at, given, first, last, turned, 0)
        else:
            for _ in range(last - first):
                at = _put_byte(out, at, 255)
        at = _put_bam_tags(out, at, given, found, record)
        _put_bytes(out, begin, at - begin - 4, 4)
    return at


@shared
def _put_integer(out: Any, at: int, name: Any, number: int) -> int:
    return _put_bytes(out, _put_byte(out, _put_constant(out, at, name), 105), number, 4)


@shared
def _put_bam_tags(out: Any, at: int, given: Any, found: Any, record: int) -> int:
    read, hit = found.read[record], found.hit[record]
    if found.mapped[record]:
        at = _put_integer(out, at, _NM, given.distance[hit])
    at = _put_integer(out, at, _NH, given.counts[read])
    if found.mapped[record]:
        at = _put_integer(out, at, _HI, found.rank[record])
        at = _put_byte(out, _put_constant(out, at, _MD), 90)
        at = _put(out, at, given.differences[hit], 0, given.difference_sizes[hit])
        at = _put_byte(out, at, 0)
    if given.mates[read] > 0:
        at = _put_integer(out, _put_integer(out, at, _FI, given.mates[read]), _TC, 2)
    if given.statuses[read] > 1:
        at = _put_byte(out, _put_constant(out, at, _YS), 90)
        at = _put_name(out, at, given.words, given.word_starts, given.statuses[read])
        at = _put_byte(out, at, 0)
    return at


@kernel
def cigars_kernel(runs: Any, counts: Any, out: Any, sizes: Any) -> None:
    """CIGARs as text, of runs as in BAM, int64 (rows, most); `out` uint8 (rows, enough)."""
    for row in range(counts.size):
        sizes[row] = _put_cigar(out, row, 0, runs, row, counts[row])


class Records(NamedTuple):
    """One record for each locus, and one for each read without any, in order of the reads.

    `read` and `hit` int64 are numbers, the latter of the locus, or 0 where `mapped` is not set; `primary` is
    the first record of a read, and `rank` the number of each from 1 on.
    """

    read: NDArray[np.int64]
    hit: NDArray[np.int64]
    mapped: NDArray[np.bool_]
    primary: NDArray[np.bool_]
    rank: NDArray[np.int64]


def records_of(block: MappedReads) -> Records:
    """What to write of reads, `unmapped` ones too."""
    kept = np.bincount(block.hits.read, minlength=len(block.reads))
    sizes = np.maximum(kept, 1)
    read = np.repeat(np.arange(len(block.reads)), sizes)
    rank = np.arange(read.size) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    mapped = kept[read] > 0
    hit = np.where(mapped, np.cumsum(mapped) - 1, 0)
    return Records(read, hit, mapped, rank == 1, rank)


def _some(found: Records, which: Any) -> Records:
    columns: list[Any] = [own[which] for own in found]
    return Records(*columns)


_NOTHING: Final = np.zeros(0, np.uint8)
_WORDS: Final = Names.of(STATUSES)


def _nibble_tables() -> NDArray[np.uint8]:
    """Letters as BAM has them, and their complements."""
    tables = np.full((2, 256), 15, np.uint8)
    for code, letter in enumerate(_NIBBLES):
        tables[0, ord(letter)] = code
    tables[1] = tables[0][COMPLEMENT_LETTER]
    return tables


class RecordFormat(ABC):
    """How reads are written: head of a file, blocks of reads, end; `encode` is called by many threads.

    `grouped` says in the header that records of a read stand together. `write` is the kernel, and `sam_names`
    whether names are those that SAM allows.
    """

    grouped = "\tGO:query"
    sam_names = True

    def __init__(self, genome: Genome, mapq: MapqRule = "none") -> None:
        self.genome = genome
        self.mapq = mapq
        self._contigs = Names.of(genome.names)
        self._tables = COMPLEMENT_LETTER.copy(), _nibble_tables()

    def head(self, version: str, command: str) -> bytes:
        """What stands before the first record."""
        return b""

    def encode(self, block: MappedReads, found: Records | None = None) -> bytes | memoryview:
        """Records of some reads, of all their loci if not told which."""
        found = records_of(block) if found is None else found
        names = Names.of(block.reads.names)
        if self.sam_names:
            _check_names(names)
        given = self._columns(block, names)
        stretches = pairwise([*range(0, found.read.size, _MOST_ROWS), found.read.size])
        parts = [self._records(given, _some(found, slice(a, b))) for a, b in stretches]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def end(self) -> bytes:
        """What stands behind the last record."""
        return b""

    @staticmethod
    @abstractmethod
    def write(given: Columns, found: Records, unique: bool, out: Any) -> int:
        """Write records; how many bytes."""

    def _columns(self, block: MappedReads, names: Names) -> Columns:
        reads, genome = block.reads, self.genome
        loci = [getattr(block.hits, field.name) for field in fields(block.hits)][1:]
        # As those of an index file are: for arrays that can be written to, kernels would be compiled again.
        lengths = genome.lengths.view()
        lengths.flags.writeable = False
        return Columns(
            names.data,
            names.starts,
            reads.letters,
            reads.starts,
            _NOTHING.copy() if reads.qualities is None else reads.qualities,
            block.statuses,
            block.counts,
            block.mates,
            self._contigs.data,
            self._contigs.starts,
            lengths,
            # Contigs without letters are not in the header.
            np.cumsum(genome.lengths > 0) - 1,
            _WORDS.data,
            _WORDS.starts,
            *self._tables,
            *loci,
        )

    def _records(self, given: Columns, found: Records) -> memoryview:
        hits = found.hit[found.mapped]
        room = _NUMBERS * found.read.size + int(np.diff(given.name_starts)[found.read].sum())
        room += int(np.diff(given.contig_starts)[given.contig[hits]].sum())
        room += 2 * int(np.diff(given.starts)[found.read[found.primary]].sum())
        room += int((_RUN_BYTES * given.run_counts[hits] + given.difference_sizes[hits]).sum())
        out = np.empty((1, room), np.uint8)
        return out[0, : self.write(given, found, self.mapq == "unique", out)].data


def _check_names(names: Names) -> None:
    """Refuse names that SAM does not allow."""
    data = names.data[names.starts[0] : names.starts[-1]]
    good = (data > 32) & (data < 127) & (data != ord("@"))
    sizes = np.diff(names.starts)
    if int(good.sum()) + len(names) == data.size and (
        not len(names) or (sizes.min() > 1 and sizes.max() < 256)
    ):
        return
    for name in names:
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                "read name",
                found=repr(name),
                expected="1 to 254 printable ASCII characters without @, as SAM asks",
                hint=_ANOTHER,
            )


class SamFormat(RecordFormat):
    """SAM, a line for each locus; reads without one have the flag 4, and a status if there is a reason."""

    write = staticmethod(sam_kernel)

    def head(self, version: str, command: str) -> bytes:
        """The header: every contig, and what made it."""
        lines = [f"@HD\tVN:1.6\tSO:unsorted{self.grouped}\n"]
        for name, length in zip(self.genome.names, self.genome.lengths.tolist(), strict=True):
            if not _CONTIG.fullmatch(name):
                raise InvalidInput(
                    "contig name", found=repr(name), expected="a name that SAM allows", hint=_ANOTHER
                )
            if length:
                lines.append(f"@SQ\tSN:{name}\tLN:{length}\n")
        called = f"\tCL:{' '.join(command.split())}" if command else ""
        lines.append(f"@PG\tID:plait\tPN:plait\tVN:{version}{called}\n")
        return "".join(lines).encode("utf-8", "backslashreplace")


class PafFormat(RecordFormat):
    """PAF, a line for each locus with tags NM, NH, HI and cg; reads without any are left out."""

    sam_names = False
    write = staticmethod(paf_kernel)


class BamFormat(SamFormat):
    """BAM: what SAM has, in BGZF blocks."""

    write = staticmethod(bam_kernel)

    def head(self, version: str, command: str) -> bytes:
        """The header, in blocks of its own."""
        text = super().head(version, command)
        parts = [b"BAM\1", struct.pack("<i", len(text)), text]
        used = [
            (name, size)
            for name, size in zip(self.genome.names, self.genome.lengths.tolist(), strict=True)
            if size
        ]
        parts.append(struct.pack("<i", len(used)))
        for name, size in used:
            parts.append(struct.pack(f"<i{len(name) + 1}si", len(name) + 1, name.encode(), size))
        return bgzf(b"".join(parts))

    def end(self) -> bytes:
        """The empty block that ends a file."""
        return BGZF_END

    def encode(self, block: MappedReads, found: Records | None = None) -> bytes:
        """Records of some reads, in blocks of their own."""
        return bgzf(super().encode(block, found))


def bgzf(data: bytes | memoryview) -> bytes:
    """Bytes as blocks of BGZF, each a gzip member that says how long it is."""
    zlib, parts = fast_zlib(), []
    for first in range(0, len(data), _BLOCK_BYTES):
        block = data[first : first + _BLOCK_BYTES]
        text = zlib.compress(block, 1, -15)
        head = struct.pack("<4B L 2B H 2B H H", 31, 139, 8, 4, 0, 0, 255, 6, 66, 67, 2, len(text) + 25)
        parts.append(head + text + struct.pack("<LL", zlib.crc32(block), len(block)))
    return b"".join(parts)


#: Formats by name, with what file names they go with.
MAP_FORMATS: Final = {
    "bam": (".bam",),
    "sam": (".sam", ".sam.gz", ".sam.zst"),
    "paf": (".paf", ".paf.gz", ".paf.zst"),
    "parquet": (".parquet",),
}
TEXT_FORMATS: Final[dict[str, type[RecordFormat]]] = {"bam": BamFormat, "sam": SamFormat, "paf": PafFormat}


def table_schema() -> pa.Schema:
    """Columns of a table of loci; a read without any has a row with its status alone."""
    import pyarrow as pa

    text, whole = pa.string(), pa.int64()
    kinds = {
        "read": text,
        "mate": whole,
        "status": text,
        "loci": whole,
        "rank": whole,
        "strand": text,
        "contig": text,
    }
    kinds |= {"start": whole, "end": whole, "distance": whole, "cigar": text, "md": text}
    return pa.schema(list(kinds.items()))


class TableFormat:
    """Reads as rows of a table."""

    def __init__(self, genome: Genome) -> None:
        self.genome = genome

    def encode(self, block: MappedReads) -> Any:
        """Rows of some reads, a batch of Arrow."""
        import pyarrow as pa

        found, hits = records_of(block), block.hits
        none, mates = ~found.mapped, block.mates[found.read]
        own = pa.array(found.hit, pa.int64(), mask=none)

        def texts(rows: NDArray[np.uint8], sizes: NDArray[np.int64]) -> pa.Array:
            """The first so many bytes of each row, by locus."""
            ends = np.zeros(sizes.size + 1, np.int32)
            np.cumsum(sizes, out=ends[1:])
            data = rows[np.arange(rows.shape[1]) < sizes[:, None]]
            return pa.StringArray.from_buffers(sizes.size, pa.py_buffer(ends), pa.py_buffer(data)).take(own)

        def words(values: Sequence[str], which: NDArray[Any], given: pa.Array = None) -> pa.Array:
            found = pa.array(values, pa.string()).take(pa.array(which))
            return found if given is None else found.take(given)

        def values(column: NDArray[np.int64]) -> pa.Array:
            return pa.array(column).take(own)

        cigars = np.empty((len(hits), 4 * hits.runs.shape[1]), np.uint8)
        sizes = np.empty(len(hits), np.int64)
        cigars_kernel(hits.runs, hits.run_counts, cigars, sizes)
        columns = [
            words(list(block.reads.names), found.read),
            pa.array(mates, pa.int64(), mask=mates == 0),
            words(STATUSES, block.statuses[found.read]),
            pa.array(block.counts[found.read], pa.int64()),
            pa.array(found.rank, pa.int64(), mask=none),
            words("+-", hits.strand, own),
            words(self.genome.names, hits.contig, own),
            values(hits.start),
            values(hits.end),
            values(hits.distance),
            texts(cigars, sizes),
            texts(hits.differences, hits.difference_sizes),
        ]
        return pa.record_batch(columns, schema=table_schema())


def provenance_text(facts: dict[str, Any]) -> dict[str, str]:
    """Metadata of a table."""
    return {"plait.provenance": json.dumps(facts, sort_keys=True)}
