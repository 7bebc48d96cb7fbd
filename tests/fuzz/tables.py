"""Parsers of sequences and tables: FASTA, FASTQ, text tables, Parquet, and compressed files."""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.fuzz.mutation import compressed_mutation, mutated_bytes, text_mutation, unbundle
from tests.fuzz.trial import Parser

from plait.errors import PlaitError
from plait.formats.fasta import read_fasta
from plait.formats.files import ByteSource, FileKind, sniff
from plait.formats.layouts import LAYOUTS
from plait.formats.reads import ReadFile, open_reads
from plait.formats.rearrangements import open_rearrangements
from plait.formats.tables import check_columns, header, rows_as_text

_FASTA = (
    b">a first\nACGTNACGT\nAC GT\n>b\n\n>c|x y z\r\nMKVL\r\nWW*\n",
    b"\xef\xbb\xbf\n\n>IGHV1-1*01 d\xc3\xa9\n" + b"ACGT" * 60 + b"\n" + b"acgt" * 60 + b"\n>e\nA",
    b">only header\n",
)
_FASTQ = (
    b"@a 1:N:0\nACGT\n+\nIJ!~\n@b\tx y\nGG\n+b\nII\n",
    b"\n@r/1\r\nACGUNacgu.\r\n+r/1\r\nIIIIIIIIII\r\n@r2\r\n\r\n+\r\n\r\n@r3\r\nA\r\n+\r\n~",
    b">a x\nACGT\nAC\n>b\nNNNN\n",
)


def place(folder: Path, data: bytes, name: str = "case") -> Path:
    """A file of a case."""
    path = folder / name
    with open(path, "wb", 0) as file:
        file.write(data)
    return path


def new_place(folder: Path, data: bytes, name: str = "case") -> Path:
    """A new file of a case, because the former may still be mapped."""
    (folder / name).unlink(missing_ok=True)
    return place(folder, data, name)


def folder_of(data: bytes, folder: Path) -> Path:
    """A folder with the files of a case."""
    path = folder / "folder"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, content in unbundle(data).items():
        place(path, content, name)
    return path


def _records(path: Path, block: int) -> list[tuple[str, str, bytes]]:
    found = []
    for part in read_fasta(path, block_residues=block):
        assert part.offsets[0] == 0 and part.offsets[-1] == part.letters.size
        assert len(part) == len(part.descriptions) == len(part.lines) > 0
        found += [(name, part.descriptions[k], part.sequence(k)) for k, name in enumerate(part.names)]
    return found


def _fasta(data: bytes, folder: Path) -> None:
    path = place(folder, data)
    found = _records(path, 1 << 16)
    if len(data) % 4 == 0 and not any(b">" in letters for _, _, letters in found):
        text = b"".join(b">%s %s\n%s\n" % (n.encode(), d.encode(), s) for n, d, s in found)
        assert _records(place(folder, text), 64) == found


def _reads(path: Path) -> list[tuple[Any, ...]]:
    found = []
    with ReadFile(path).stream() as stream:
        while len(part := stream.take(64)):
            rows = [part.sequence(k) for k in range(len(part))]
            quality = None if part.qualities is None else (part.qualities + 33).tobytes().decode("ascii")
            at = part.starts.tolist()
            found += [
                (name, rows[k], None if quality is None else quality[at[k] : at[k + 1]])
                for k, name in enumerate(part.names)
            ]
    return found


def _fastq(data: bytes, folder: Path) -> None:
    path = place(folder, data)
    found = _reads(path)
    for _, letters, quality in found:
        assert quality is None or len(letters) == len(quality)
    if found and found[0][2] is not None and len(data) % 4 == 0:
        text = "".join(f"@{name}\n{letters}\n+\n{quality}\n" for name, letters, quality in found)
        if not any(set(name) & set(" \t\r\n\v\f") for name, _, _ in found):
            assert _reads(place(folder, text.encode())) == found
    if len(data) % 64 == 1:
        # With its thread, its blocks and its names.
        with open_reads([path], block_reads=2) as files:
            assert sum(len(item.reads) for item in files) == len(found) == files.counts[0].reads


def _in_this_thread() -> None:
    """Rows are read and decoded without other threads, which cost more than a small case."""
    import plait.formats.rearrangements as module

    def directly(items: Generator[Any, None, None]) -> Generator[Any, None, None]:
        yield from items

    module.read_ahead = directly
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _rows(path: Path, layout: str) -> tuple[pa.Schema, list[pa.RecordBatch], int]:
    with open_rearrangements([path], layout=layout, block_rows=16) as reader:
        blocks = list(reader)
        assert all(block.num_rows == 16 for block in blocks[:-1])
        for block in blocks:
            block.validate(full=True)
        return reader.schema, blocks, reader.blank_lines


def _table(data: bytes, folder: Path) -> None:
    path = place(folder, data)
    schema, blocks, blank = _rows(path, "auto")
    rows = sum(block.num_rows for block in blocks)
    if sniff(path) is FileKind.PLAIN:
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        header_less = blocks and "index_within_consensus" in schema.names
        told = next((k for k, line in enumerate(data.split(b"\n")) if not _is_note(line)), 0)
        assert rows + blank == lines - told - (not header_less), "rows are lost"
        # Others have cells with tabs, or AIRR fields twice when read again.
        if len(data) % 4 == 0 and not header_less and b"\t" in data.split(b"\n")[told]:
            check_columns(schema)
            text = header(path, schema) + b"".join(
                piece for block in blocks for piece in rows_as_text(path, block, 0)
            )
            _, again, more_blank = _rows(place(folder, text, "again"), "airr")
            # A row of one empty cell would be a blank line, but tables have three columns.
            same = [[column.cast(pa.string()).fill_null("") for column in block.columns] for block in blocks]
            if not any(pa.types.is_boolean(kind) for kind in schema.types):
                assert [block.columns for block in again] == same and not more_blank


def _is_note(line: bytes) -> bool:
    return line.removeprefix(b"\xef\xbb\xbf").startswith(b"# ")


_AIRR = (
    b"sequence_id\tv_call\tj_call\tjunction\tduplicate_count\tsubject_id\n"
    b"1\tTRBV13-1*01\tTRBJ2-1*01\tTGTGCCAGCAGTGATGCTTTC\t3\ts1\n2\tTRBV2\tTRBJ1-1,TRBJ1-2\tTGTTTC\t1\ts2\n"
    b"\n3\t\t\t\t\t\n4\tTRBV1\tTRBJ1-1\tNNNTGT\t1.5\ts1\n",
    b'\xef\xbb\xbfjunction\tv_call\tj_call\tx "quoted\r\nTGT\ta\tb\t"\r\nTGC\tc\td\t',
)


#: What columns of the kinds of tables hold; others hold a 3.
_CELLS = {
    **{"v_call": "TRBV05-01*01", "j_call": "Homsap TRBJ1-1*01 F, or TRBJ1-2*01(12)", "junction": "TGTGCCTTC"},
    **{"read": "ACGTTGTGCCTTCGG", "productive": "True", "cdr3": "GCC", "fwr3": "ACTGT", "fwr4": "TTCGG"},
}


def _other_layouts() -> list[bytes]:
    found = []
    for layout in LAYOUTS.values():
        names = {columns[0]: _CELLS.get(field, "3") for field, columns in layout.columns.items()}
        rows = [list(names), *(list(names.values()) for _ in range(3))]
        if layout.header:
            cell = dict(
                zip(layout.header, ("a", "0", *"VDJCAA", "TGTTTC", "1.0", "2.5", "9", "1"), strict=True)
            )
            rows = [list(cell.values())] * 2
        found += [b"".join(mark.join(row).encode() + b"\n" for row in rows) for mark in ("\t", ";")]
    return [*found, b"# a note\n" + found[0], b'"junction","v_call","j_call"\n"TGT","a ""b"", c",""\n']


def _tables() -> Parser:
    _in_this_thread()
    words = [n.encode() for layout in LAYOUTS.values() for names in layout.columns.values() for n in names]
    words += [b"# ", b'"', b'""', b",", b";", b"-1", b"1e3", b"None"]
    return Parser(
        name="tables",
        seeds=(*_AIRR, *_other_layouts()),
        mutate=text_mutation([*words, b"TGTGCCAGC", b"TRBV1*01"]),
        read=_table,
        cases=1_000_000,
    )


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    """A table as a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


_TYPES = (
    *(
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.int64(),
        pa.float32(),
        pa.bool_(),
        pa.null(),
        pa.date32(),
    ),
    *(pa.timestamp("ns"), pa.decimal128(12, 3), pa.list_(pa.string()), pa.struct([("a", pa.int8())])),
    *(
        pa.dictionary(pa.int8(), pa.string()),
        pa.map_(pa.string(), pa.int8()),
        pa.string_view(),
        pa.time64("ns"),
    ),
)
_TEXTS = ("TGTGCC", "", "TRBV1*01", "é\t", "a\nb", "=1+1", None, "\0", "x" * 500, "\ufeff")
_OPTIONS: tuple[dict[str, Any], ...] = (
    *({}, {"compression": "gzip"}, {"compression": "zstd"}, {"row_group_size": 1}, {"use_dictionary": False}),
    *(
        {"data_page_version": "2.0"},
        {"write_page_checksum": True},
        {"version": "1.0"},
        {"write_statistics": False},
    ),
)


def _column(rng: Random, kind: pa.DataType, rows: int) -> pa.Array:
    texts = [rng.choice(_TEXTS) for _ in range(rows)]
    if pa.types.is_binary(kind):
        return pa.array([None if t is None else t.encode() + b"\xff" for t in texts], kind)
    try:
        if pa.types.is_list(kind):
            return pa.array([t and [t, None] for t in texts], kind)
        return pa.array(texts, pa.string()).cast(kind) if rng.random() < 0.5 else pa.array(texts, kind)
    except (pa.ArrowException, TypeError, ValueError):
        return pa.nulls(rows, kind)


def _broken_text(rng: Random, rows: int) -> pa.Array:
    """Text that is not UTF-8, as hostile files hold it."""
    texts = [rng.choice((b"TGT", b"\xff\xfe", b"\xed\xa0\x80", b"a\xc3")) for _ in range(rows)]
    raw = pa.array(texts, pa.binary())
    return pa.Array.from_buffers(pa.string(), rows, raw.buffers())


def mutated_parquet(rng: Random, corpus: Sequence[bytes]) -> bytes:
    """Mutations of the file, mostly of its end where its metadata are; or of the table that is written."""
    step = rng.randrange(10)
    data = rng.choice(corpus)
    if step < 3:
        return mutated_bytes(rng, data, corpus)
    if step < 7:
        size = int.from_bytes(data[-8:-4], "little")
        footer = bytearray(data[-8 - size : -8])
        for _ in range(1 + int(rng.expovariate(1))):
            footer[rng.randrange(len(footer))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        return data[: -8 - size] + bytes(footer) + data[-8:]
    rows = rng.choice((0, 1, 3, 20))
    names = ["junction", "v_call", "j_call", *(f"x{k}" for k in range(rng.randrange(3)))]
    if rng.random() < 0.2:
        names[rng.randrange(len(names))] = rng.choice(
            ("junction", "", "duplicate_count", "subject_id", "a\tb", "\0")
        )
    columns = [
        _broken_text(rng, rows)
        if rng.random() < 0.06
        else _column(rng, rng.choice(_TYPES) if rng.random() < 0.2 else pa.string(), rows)
        for _ in names
    ]
    try:
        return parquet_bytes(pa.Table.from_arrays(columns, names), **rng.choice(_OPTIONS))
    except (pa.ArrowException, OverflowError):
        return data


def _parquet(data: bytes, folder: Path) -> None:
    path = place(folder, data)
    schema, blocks, _ = _rows(path, "airr")
    rows = sum(block.num_rows for block in blocks)
    if data[:4] == b"PAR1" and len(data) % 4 == 0:
        assert rows == pq.read_metadata(path).num_rows, "rows are lost"
    if len(data) % 8 == 0:
        try:
            check_columns(schema)
            text = [piece for block in blocks for piece in rows_as_text(path, block, 0)]
        except PlaitError:
            return
        assert b"".join(text).count(b"\n") == rows


_IMGT_ROWS = (
    b"Sequence number\tSequence ID\tV-DOMAIN Functionality\tV-GENE and allele\tJ-GENE and allele\t"
    b"JUNCTION\t\n"
    b"1\ta\tproductive\tHomsap TRBV1*01 F\tHomsap TRBJ1-1*01 F\ttgtttc\t\n2\tb\tNo results\n"
)


def _archive(data: bytes, folder: Path) -> None:
    path = place(folder, data)
    assert sniff(path, archives=True) in (FileKind.ARCHIVE, FileKind.PLAIN)
    _rows(path, "auto")


def _archives() -> Parser:
    _in_this_thread()
    zipped, packed = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1_Summary.txt", b"x")
        archive.writestr("3_Nt-sequences.txt", _IMGT_ROWS)
    with tarfile.open(fileobj=packed, mode="w:xz") as file:
        for name, content in (("1_Summary.txt", b"x"), ("run/3_Nt-sequences_a.txt", _IMGT_ROWS)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    seeds = (zipped.getvalue(), packed.getvalue(), _IMGT_ROWS)

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        text = text_mutation([b"JUNCTION", b"\t", b"No results", b"or"])
        if rng.random() < 0.4:
            return mutated_bytes(rng, rng.choice(seeds[:2]), corpus)
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as archive:
            archive.writestr("3_Nt-sequences.txt", text(rng, [_IMGT_ROWS]))
        return held.getvalue()

    return Parser(name="archives", seeds=seeds, mutate=mutate, read=_archive, cases=100_000)


def _parquets() -> Parser:
    _in_this_thread()
    rows = {"junction": ["TGTGCC", "TGC", None], "v_call": ["TRBV1", "", "é"], "j_call": ["TRBJ1"] * 3}
    tables = [pa.table(rows), pa.table({**rows, "duplicate_count": [1, 2, None], "n": [[1.5], [], None]})]
    seeds = [parquet_bytes(table, **options) for table in tables for options in _OPTIONS[:7]]
    return Parser(name="parquet", seeds=seeds, mutate=mutated_parquet, read=_parquet, cases=1_000_000)


def _compressed(data: bytes, folder: Path) -> None:
    path = place(folder, data)
    kind = sniff(path)
    pieces, size = [], 0
    with ByteSource(path, kind) as source:
        while piece := source.read(1 << 16):
            size += len(piece)
            if size < 1 << 22:
                pieces.append(piece)
    if kind is FileKind.GZIP and size < 1 << 22:
        try:
            expected = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            # What follows the last member in the file is not a member: Arrow and gzip(1) differ about zeros.
            raise AssertionError(f"gzip refuses it: {type(error).__name__}") from error
        assert b"".join(pieces) == expected
    if len(data) % 16 == 0:
        _rows(path, "airr")


def _compressions() -> Parser:
    _in_this_thread()
    table = _AIRR[0]
    zstd = pa.Codec("zstd")
    seeds = (
        gzip.compress(table, mtime=0),
        gzip.compress(table[:50], mtime=0) + gzip.compress(table[50:], mtime=0) + gzip.compress(b"", mtime=0),
        zstd.compress(table, asbytes=True),
        zstd.compress(table[:50], asbytes=True) + zstd.compress(table[50:], asbytes=True),
        b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip" + zstd.compress(table, asbytes=True),
    )
    mutate = compressed_mutation(text_mutation([b"junction"]))
    return Parser(name="compressed", seeds=seeds, mutate=mutate, read=_compressed, cases=1_000_000)


def _sequence_parser(name: str, seeds: Sequence[bytes], read: Any, marks: bytes) -> Parser:
    words = (b">", b"@", b"+", b"@a", b">b", b"ACGTN", b"IIII", b" ", b"\r", b"acgu.")
    return Parser(name=name, seeds=seeds, mutate=text_mutation(words, marks), read=read, cases=1_000_000)


PARSERS = {
    "fasta": lambda: _sequence_parser("fasta", _FASTA, _fasta, b" >"),
    "fastq": lambda: _sequence_parser("fastq", _FASTQ, _fastq, b" @+"),
    "tables": _tables,
    "archives": _archives,
    "parquet": _parquets,
    "compressed": _compressions,
}
