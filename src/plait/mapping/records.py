"""Loci as SAM, BAM, PAF and rows of a table: columns of bytes, joined record by record."""

from __future__ import annotations

import json
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_LETTER
from plait.errors import InvalidInput
from plait.formats.compression import fast_zlib
from plait.lang.compile import kernel
from plait.mapping.alignments import write_number
from plait.mapping.genome import Genome
from plait.mapping.mapper import STATUSES, HitRows, MappedReads

if TYPE_CHECKING:
    import pyarrow as pa

MapqRule = Literal["none", "unique"]
_UNMAPPED, _REVERSE, _SECONDARY = 4, 16, 256
_NO_QUALITY: Final = 255
_NAME: Final = re.compile(r"[!-?A-~]{1,254}")
_CONTIG: Final = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")
_ANOTHER: Final = "rename it, or choose another format"
_MOST_ROWS: Final = 1 << 15
#: Bytes of text in a block of BGZF, and what ends a file.
_BLOCK_BYTES: Final = 65_280
BGZF_END: Final = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_NIBBLES: Final = "=ACMGRSVTWYHKDBN"
_STEPS: Final = np.frombuffer(b"MIDNSHP=X", np.uint8)


class Piece(NamedTuple):
    """Bytes of each record: `data` uint8, from `starts` to `ends`, int64 (records,)."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def taken(self, which: NDArray[np.int64]) -> Piece:
        """Those of some records."""
        return Piece(self.data, self.starts[which], self.ends[which])

    def where(self, used: NDArray[np.bool_]) -> Piece:
        """Nothing where it is not used."""
        return Piece(self.data, self.starts, np.where(used, self.ends, self.starts))


@kernel
def join_kernel(data: Any, starts: Any, ends: Any, out: Any) -> None:
    """Bytes of all pieces of a record in turn: `starts` and `ends` int64 (records, pieces) in `data`."""
    at = 0
    for record in range(starts.shape[0]):
        for piece in range(starts.shape[1]):
            for k in range(starts[record, piece], ends[record, piece]):
                out[at] = data[k]
                at += 1


@kernel
def numbers_kernel(numbers: Any, out: Any, sizes: Any) -> None:
    """Decimal digits of numbers, none negative, into rows of 19 bytes; `sizes` int64 are how many."""
    for k in range(numbers.size):
        sizes[k] = write_number(out, k, 0, numbers[k])


@kernel
def cigars_kernel(runs: Any, counts: Any, letters: Any, out: Any, sizes: Any) -> None:
    """CIGARs as text, of runs as in BAM, int64 (rows, most); `out` uint8 (rows, enough)."""
    for row in range(counts.size):
        at = 0
        for k in range(counts[row]):
            at = write_number(out, row, at, runs[row, k] >> 4)
            out[row, at] = letters[runs[row, k] & 15]
            at += 1
        sizes[row] = at


@kernel
def turn_kernel(letters: Any, starts: Any, ends: Any, turned: Any, complement: Any, out: Any) -> None:
    """Letters of reads, those of some as reverse complements (or backwards), `complement` uint8 (256,)."""
    at = 0
    for read in range(starts.size):
        first, last = starts[read], ends[read]
        for k in range(last - first):
            out[at + k] = complement[letters[last - 1 - k]] if turned[read] else letters[first + k]
        at += last - first


@kernel
def nibbles_kernel(piece: Any, table: Any, out: Any) -> None:
    """Letters as BAM has them, two in a byte, each read from a byte of its own on."""
    at = 0
    for read in range(piece.starts.size):
        first, last = piece.starts[read], piece.ends[read]
        for k in range(first, last, 2):
            low = table[piece.data[k + 1]] if k + 1 < last else 0
            out[at] = (table[piece.data[k]] << 4) | low
            at += 1


def joined(pieces: Sequence[Piece]) -> bytes:
    """All pieces of the first record, then of the second, and so on."""
    sizes = [piece.data.size for piece in pieces]
    bases = np.cumsum([0, *sizes[:-1]])
    starts = np.stack([piece.starts + base for piece, base in zip(pieces, bases, strict=True)], axis=1)
    ends = np.stack([piece.ends + base for piece, base in zip(pieces, bases, strict=True)], axis=1)
    out = np.empty(int((ends - starts).sum()), np.uint8)
    join_kernel(np.concatenate([piece.data for piece in pieces]), starts, ends, out)
    return out.tobytes()


def constant(text: bytes, records: int) -> Piece:
    """The same bytes in each record."""
    data = np.frombuffer(bytearray(text), np.uint8)
    return Piece(data, np.zeros(records, np.int64), np.full(records, data.size, np.int64))


def texts(values: Iterable[str]) -> Piece:
    """Strings, one for each record."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    data = np.frombuffer(bytearray(b"".join(encoded)), np.uint8)
    return Piece(data, ends - np.fromiter(map(len, encoded), np.int64, len(encoded)), ends)


def rows_of(table: NDArray[Any], sizes: NDArray[np.int64] | None = None) -> Piece:
    """Rows of an array as bytes; of those of bytes, the first so many."""
    rows = np.ascontiguousarray(table)
    width = rows.dtype.itemsize * (rows.shape[1] if rows.ndim > 1 else 1)
    starts = width * np.arange(len(rows), dtype=np.int64)
    return Piece(rows.view(np.uint8).ravel(), starts, starts + (width if sizes is None else sizes))


def numbers(values: NDArray[np.int64]) -> Piece:
    """Decimal numbers."""
    out, sizes = np.empty((values.size, 19), np.uint8), np.empty(values.size, np.int64)
    numbers_kernel(np.ascontiguousarray(values), out, sizes)
    return rows_of(out, sizes)


def cigars(rows: HitRows) -> Piece:
    """CIGARs as text."""
    out = np.empty((len(rows), 4 * rows.runs.shape[1]), np.uint8)
    sizes = np.empty(len(rows), np.int64)
    cigars_kernel(np.ascontiguousarray(rows.runs), rows.run_counts, _STEPS.copy(), out, sizes)
    return rows_of(out, sizes)


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


class RecordFormat(ABC):
    """How reads are written: head of a file, blocks of reads, end; `encode` is called by many threads.

    `grouped` says in the header that records of a read stand together.
    """

    grouped = "\tGO:query"

    def __init__(self, genome: Genome, mapq: MapqRule = "none") -> None:
        self.genome = genome
        self.mapq = mapq

    def head(self, version: str, command: str) -> bytes:
        """What stands before the first record."""
        return b""

    def encode(self, block: MappedReads, found: Records | None = None) -> bytes:
        """Records of some reads, of all their loci if not told which."""
        found = records_of(block) if found is None else found
        stretches = pairwise([*range(0, found.read.size, _MOST_ROWS), found.read.size])
        return b"".join(self._records(block, _some(found, slice(a, b))) for a, b in stretches)

    def end(self) -> bytes:
        """What stands behind the last record."""
        return b""

    @abstractmethod
    def _records(self, block: MappedReads, found: Records) -> bytes:
        """Records of some rows."""

    def _check_names(self, block: MappedReads) -> None:
        for name in block.reads.names:
            if not _NAME.fullmatch(name):
                raise InvalidInput(
                    "read name",
                    found=repr(name),
                    expected="1 to 254 printable ASCII characters without @, as SAM asks",
                    hint=_ANOTHER,
                )

    def _qualities_of_mapping(self, block: MappedReads, found: Records) -> NDArray[np.int64]:
        if self.mapq == "none":
            return np.where(found.mapped, _NO_QUALITY, 0)
        counts = block.counts[found.read]
        return np.where(found.mapped & (counts == 1), 60, np.where(found.mapped & (counts == 2), 3, 0))


def _flags(block: MappedReads, found: Records, hits: HitRows) -> NDArray[np.int64]:
    flags = np.where(found.mapped, 0, _UNMAPPED)
    flags += np.where(found.primary, 0, _SECONDARY)
    if len(hits):
        flags += np.where(found.mapped & (hits.strand[found.hit] == 1), _REVERSE, 0)
    return flags


def _of_hits(column: NDArray[np.int64], found: Records, nothing: int) -> NDArray[np.int64]:
    return np.where(found.mapped, column[found.hit] if column.size else nothing, nothing)


def _hit_piece(piece: Piece, found: Records) -> Piece:
    """A piece of loci for each record; nothing where there is none."""
    if not piece.starts.size:
        return constant(b"", found.read.size)
    return piece.taken(found.hit).where(found.mapped)


class _Letters(NamedTuple):
    """Letters and qualities of primary records, on the strand of the text; nothing in others."""

    letters: Piece
    qualities: Piece | None


_SAME: Final = np.arange(256, dtype=np.uint8)


def _letters(block: MappedReads, found: Records, hits: HitRows) -> _Letters:
    starts = block.reads.starts[:-1][found.read]
    ends = np.where(found.primary, block.reads.starts[1:][found.read], starts)
    turned = _of_hits(hits.strand, found, 0) == 1
    places = np.zeros(starts.size + 1, np.int64)
    np.cumsum(ends - starts, out=places[1:])

    def made(data: NDArray[np.uint8], table: NDArray[np.uint8]) -> Piece:
        out = np.empty(int(places[-1]), np.uint8)
        turn_kernel(data, starts, ends, turned, table.copy(), out)
        return Piece(out, places[:-1], places[1:])

    qualities = block.reads.qualities
    # Copies of what is read from a file, because kernels are made for arrays that can be written to.
    return _Letters(
        made(np.array(block.reads.letters), COMPLEMENT_LETTER),
        None if qualities is None else made(np.array(qualities), _SAME),
    )


class SamFormat(RecordFormat):
    """SAM, a line for each locus; reads without one have the flag 4, and a status if there is a reason."""

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

    def _records(self, block: MappedReads, found: Records) -> bytes:
        self._check_names(block)
        hits, count = block.hits, found.read.size
        tab = constant(b"\t", count)
        star = constant(b"*", count)
        letters, qualities = _letters(block, found, hits)
        if qualities is not None:
            qualities = qualities._replace(data=qualities.data + np.uint8(33))
        names = texts(self.genome.names)
        contigs = _hit_piece(names.taken(hits.contig), found)
        pieces = [texts(block.reads.names).taken(found.read), tab, numbers(_flags(block, found, hits)), tab]
        pieces += [contigs, star.where(~found.mapped), tab, numbers(_of_hits(hits.start + 1, found, 0)), tab]
        pieces += [numbers(self._qualities_of_mapping(block, found)), tab]
        pieces += [
            _hit_piece(cigars(hits), found),
            star.where(~found.mapped),
            constant(b"\t*\t0\t0\t", count),
        ]
        pieces += [letters, star.where(letters.starts == letters.ends), tab]
        given = letters if qualities is None else qualities
        none = np.full(count, True) if qualities is None else given.starts == given.ends
        pieces += [given.where(~none), star.where(none)]
        return joined(pieces + _sam_tags(block, found))


def _sam_tags(block: MappedReads, found: Records) -> list[Piece]:
    hits, count = block.hits, found.read.size
    is_mapped = found.mapped

    def tag(name: bytes, piece: Piece, used: NDArray[np.bool_]) -> list[Piece]:
        return [constant(b"\t" + name, count).where(used), piece.where(used)]

    pieces = tag(b"NM:i:", numbers(_of_hits(hits.distance, found, 0)), is_mapped)
    pieces += tag(b"NH:i:", numbers(block.counts[found.read]), np.full(count, True))
    pieces += tag(b"HI:i:", numbers(found.rank), is_mapped)
    pieces += tag(b"MD:Z:", _hit_piece(rows_of(hits.differences, hits.difference_sizes), found), is_mapped)
    mates = block.mates[found.read]
    pieces += tag(b"FI:i:", numbers(mates), mates > 0)
    pieces.append(constant(b"\tTC:i:2", count).where(mates > 0))
    pieces += tag(b"YS:Z:", _reasons(block, found), block.statuses[found.read] > 1)
    return [*pieces, constant(b"\n", count)]


def _reasons(block: MappedReads, found: Records) -> Piece:
    return texts(STATUSES).taken(block.statuses[found.read].astype(np.int64))


class PafFormat(RecordFormat):
    """PAF, a line for each locus with tags NM, NH, HI and cg; reads without any are left out."""

    def _records(self, block: MappedReads, found: Records) -> bytes:
        found = _some(found, found.mapped)
        hits, count = block.hits.taken(found.hit), found.read.size
        lengths = block.reads.lengths[found.read]
        tab = constant(b"\t", count)
        sign = Piece(np.frombuffer(bytearray(b"+-"), np.uint8), hits.strand, hits.strand + 1)
        used = np.arange(hits.runs.shape[1]) < hits.run_counts[:, None]
        sizes, steps = np.where(used, hits.runs >> 4, 0), hits.runs & 15
        columns = [
            texts(block.reads.names).taken(found.read),
            numbers(lengths),
            numbers(np.zeros(count, np.int64)),
        ]
        columns += [numbers(lengths), sign, texts(self.genome.names).taken(hits.contig)]
        columns += [numbers(self.genome.lengths[hits.contig]), numbers(hits.start), numbers(hits.end)]
        columns += [numbers(np.where(steps == 7, sizes, 0).sum(axis=1)), numbers(sizes.sum(axis=1))]
        pieces = [piece for column in columns for piece in (column, tab)]
        pieces += [numbers(self._qualities_of_mapping(block, found)), constant(b"\tNM:i:", count)]
        pieces += [numbers(hits.distance), constant(b"\tNH:i:", count), numbers(block.counts[found.read])]
        pieces += [
            constant(b"\tHI:i:", count),
            numbers(found.rank),
            constant(b"\tcg:Z:", count),
            cigars(hits),
        ]
        mates = block.mates[found.read]
        pieces += [constant(b"\tFI:i:", count).where(mates > 0), numbers(mates).where(mates > 0)]
        return joined([*pieces, constant(b"\n", count)])


class BamFormat(SamFormat):
    """BAM: what SAM has, in BGZF blocks."""

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

    def _records(self, block: MappedReads, found: Records) -> bytes:
        self._check_names(block)
        hits = block.hits
        names = texts(name + "\0" for name in block.reads.names).taken(found.read)
        letters, qualities = _letters(block, found, hits)
        sizes = letters.ends - letters.starts
        packed = np.empty(int(((sizes + 1) // 2).sum()), np.uint8)
        nibbles_kernel(letters, _nibble_table(), packed)
        ends = np.cumsum((sizes + 1) // 2)
        if qualities is None:
            qualities = letters._replace(data=np.full(letters.data.size, 255, np.uint8))
        runs = rows_of(hits.runs.astype("<u4"), 4 * hits.run_counts)
        body = [names, _hit_piece(runs, found), Piece(packed, ends - (sizes + 1) // 2, ends), qualities]
        body += _bam_tags(block, found)
        total = sum((piece.ends - piece.starts for piece in body), np.full(found.read.size, 32))
        head = self._bam_head(block, found, names, sizes, total)
        return joined([rows_of(head), *body])

    def _bam_head(
        self,
        block: MappedReads,
        found: Records,
        names: Piece,
        sizes: NDArray[np.int64],
        total: NDArray[np.int64],
    ) -> NDArray[Any]:
        hits = block.hits
        kinds = "block_size:i4 ref:i4 pos:i4 l_name:u1 mapq:u1 bin:u2 n_cigar:u2 flag:u2 l_seq:i4"
        fields = [(name, "<" + kind) for name, kind in (word.split(":") for word in kinds.split())]
        fields += [(name, "<i4") for name in ("next_ref", "next_pos", "tlen")]
        head = np.zeros(found.read.size, fields)
        # Contigs without letters are not in the header.
        numbering = np.cumsum(self.genome.lengths > 0) - 1
        head["block_size"] = total
        head["ref"] = _of_hits(numbering[hits.contig], found, -1)
        head["pos"] = _of_hits(hits.start, found, -1)
        head["l_name"] = names.ends - names.starts
        head["mapq"] = self._qualities_of_mapping(block, found)
        head["bin"] = _bins(head["pos"].astype(np.int64), _of_hits(hits.end, found, 0))
        head["n_cigar"] = _of_hits(hits.run_counts, found, 0)
        head["flag"] = _flags(block, found, hits)
        head["l_seq"] = sizes
        head["next_ref"] = head["next_pos"] = -1
        return head


def _bins(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bin of SAM's specification (5.3) of each stretch."""
    last = np.maximum(ends, starts + 1) - 1
    found = np.zeros(starts.size, np.int64)
    for shift, first in ((26, 1), (23, 9), (20, 73), (17, 585), (14, 4681)):
        found = np.where(starts >> shift == last >> shift, first + (starts >> shift), found)
    return np.where(starts < 0, 4680, found)


def _bam_tags(block: MappedReads, found: Records) -> list[Piece]:
    hits, count = block.hits, found.read.size
    every = np.full(count, True)

    def number(name: bytes, values: NDArray[np.int64], used: NDArray[np.bool_]) -> Piece:
        tags = np.zeros(count, [("name", "S3"), ("value", "<i4")])
        tags["name"], tags["value"] = name, values
        return rows_of(tags).where(used)

    mates = block.mates[found.read]
    reasoned = block.statuses[found.read] > 1
    return [
        number(b"NMi", _of_hits(hits.distance, found, 0), found.mapped),
        number(b"NHi", block.counts[found.read], every),
        number(b"HIi", found.rank, found.mapped),
        constant(b"MDZ", count).where(found.mapped),
        _hit_piece(rows_of(hits.differences, hits.difference_sizes), found),
        constant(b"\0", count).where(found.mapped),
        number(b"FIi", mates, mates > 0),
        number(b"TCi", np.full(count, 2), mates > 0),
        constant(b"YSZ", count).where(reasoned),
        _reasons(block, found).where(reasoned),
        constant(b"\0", count).where(reasoned),
    ]


def _nibble_table() -> NDArray[np.uint8]:
    table = np.full(256, 15, np.uint8)
    for code, letter in enumerate(_NIBBLES):
        table[ord(letter)] = code
    return table


def bgzf(data: bytes) -> bytes:
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
        none = ~found.mapped

        def strings(piece: Piece, empty: NDArray[np.bool_] | None = None) -> pa.Array:
            offsets = np.zeros(found.read.size + 1, np.int32)
            np.cumsum(piece.ends - piece.starts, out=offsets[1:])
            data = pa.py_buffer(joined([piece]))
            made = pa.StringArray.from_buffers(found.read.size, pa.py_buffer(offsets), data)
            return made if empty is None else pa.compute.if_else(pa.array(empty), None, made)

        def values(column: NDArray[np.int64]) -> pa.Array:
            return pa.array(_of_hits(column, found, 0), pa.int64(), mask=none)

        signs = Piece(np.frombuffer(bytearray(b"+-"), np.uint8), hits.strand, hits.strand + 1)
        columns = [
            strings(texts(block.reads.names).taken(found.read)),
            pa.array(block.mates[found.read], pa.int64(), mask=block.mates[found.read] == 0),
            strings(_reasons(block, found)),
            pa.array(block.counts[found.read], pa.int64()),
            pa.array(found.rank, pa.int64(), mask=none),
            strings(_hit_piece(signs, found), none),
            strings(_hit_piece(texts(self.genome.names).taken(hits.contig), found), none),
            values(hits.start),
            values(hits.end),
            values(hits.distance),
            strings(_hit_piece(cigars(hits), found), none),
            strings(_hit_piece(rows_of(hits.differences, hits.difference_sizes), found), none),
        ]
        return pa.record_batch(columns, schema=table_schema())


def provenance_text(facts: dict[str, Any]) -> dict[str, str]:
    """Metadata of a table."""
    return {"plait.provenance": json.dumps(facts, sort_keys=True)}
