from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.examples import often

from plait.errors import FormatError, InvalidInput
from plait.formats import fastq as read_fastq
from plait.formats.fasta import read_fasta
from plait.formats.fastq import ReadBlock
from plait.formats.reads import ReadFiles, join_reads, open_reads, slice_reads

Read = tuple[str, str, str | None]


def write(folder: Path, content: bytes, name: str = "x.fastq") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def reads_of(block: ReadBlock) -> list[Read]:
    assert block.starts[0] == 0 and block.starts[-1] == block.letters.size
    assert len(block) == len(block.names)
    qualities = None if block.qualities is None else (block.qualities + 33).tobytes().decode()
    spans = zip(block.starts[:-1].tolist(), block.starts[1:].tolist(), strict=True)
    return [
        (name, block.sequence(i), None if qualities is None else qualities[begin:end])
        for i, (name, (begin, end)) in enumerate(zip(block.names, spans, strict=True))
    ]


def read(path: Path | Iterable[Path], **options: Any) -> list[Read]:
    paths = [path] if isinstance(path, Path) else list(path)
    with open_reads(paths, **options) as files:
        return [read for item in files for read in reads_of(item.reads)]


def counts(path: Path) -> Any:
    with open_reads([path]) as files:
        for _ in files:
            pass
        return files.counts[0]


FASTQ = b"@a 1:N:0\nACGT\n+\nIJ!~\n@b\tx y\nGG\n+b\nII\n"
WANTED: list[Read] = [("a", "ACGT", "IJ!~"), ("b", "GG", "II")]


@pytest.mark.parametrize(
    "text",
    [
        FASTQ,
        FASTQ.replace(b"\n", b"\r\n"),
        FASTQ.replace(b"G\n", b"G\r\n").replace(b"+\n", b"+\r\n"),
        FASTQ[:-1],
        FASTQ + b"\n\r\n \n\n\n\n",
        b"\n \r\n" + FASTQ,
        b"\xef\xbb\xbf" + FASTQ,
        FASTQ.replace(b"ACGT", b"acgu").replace(b"GG", b"gG"),
    ],
    ids=["plain", "crlf", "mixed", "no-last-end", "blank-end", "blank-start", "byte-order-mark", "lower"],
)
@pytest.mark.parametrize("codec", [None, "gzip", "zstd"])
def test_ways_to_write_the_same(tmp_path: Path, text: bytes, codec: str | None) -> None:
    path = tmp_path / "x"
    with pa.output_stream(str(path), compression=codec) as stream:
        stream.write(text)
    assert read(path) == WANTED


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    # bgzip writes such files, with an empty member at the end.
    path = write(tmp_path, gzip.compress(FASTQ[:17]) + gzip.compress(FASTQ[17:]) + gzip.compress(b""))
    assert read(path) == WANTED


def test_fasta(tmp_path: Path) -> None:
    path = write(tmp_path, b">a x\nAC\nGT\n>b\n\n>c\r\nac.u\r\n")
    assert read(path) == [("a", "ACGT", None), ("b", "", None), ("c", "ACNT", None)]


#: Records of one line, and what is none or does not look like one.
PLAIN = (b">%s\nACGTN\n", b">%s x y>z\nacgtnACGTTT\n", b">%s\r\nTTTT\r\n", b">%s\tu v\r\nG\n")
OTHER = (b">%s\nAC\nGT\n", b">%s\n\n", b">%s\nAC GT\n", b"> %s\nACRYU.\n", b">%s\nAC\n\n\n", b">%s\n")


@pytest.mark.parametrize("seed", often(8, range(30)))
def test_fasta_of_one_line_a_record_is_as_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """In pieces of all sizes, the last line end missing or not, with other records from somewhere on."""
    rng = np.random.default_rng(seed)
    kinds = [PLAIN, PLAIN + OTHER][seed % 2]
    text = b"".join(kinds[rng.integers(len(kinds))] % b"n%d" % k for k in range(rng.integers(1, 40)))
    text = text if seed % 3 else text.rstrip()
    path = write(tmp_path, text, "x.fasta")
    usual = [block for block in read_fasta(path)]
    wanted = [
        (name, block.sequence(k).upper().replace(b"U", b"T").replace(b".", b"N").decode(), None)
        for block in usual
        for k, name in enumerate(block.names)
    ]
    for size in (40, 64, 1 << 20):
        monkeypatch.setattr("plait.formats.fastq._PIECE_BYTES", size)
        monkeypatch.setattr("plait.formats.reads._HEAD_BYTES", size)
        assert read(path) == wanted and counts(path).bases == sum(len(letters) for _, letters, _ in wanted)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b">b\nAC!T\n", "line 4: found '!' at position 3 of read 'b'"),
        (b">b x\ry\nACGT\n", "line 3: found a carriage return within a header line"),
        (b">b\nAC\x01T\n", "line 4: found the byte 0x01 in a sequence"),
        (b">\nACGT\n", "line 3: found a header without a name"),
        (b">", "line 3: found a header without a name"),
    ],
)
def test_what_is_wrong_in_fasta_is_told_with_its_place(tmp_path: Path, record: bytes, message: str) -> None:
    for behind in (b"", b">c\nA\n"):
        if record != b">" or not behind:
            with pytest.raises(FormatError, match=message):
                read(write(tmp_path, b">a x\nACGT\n" + record + behind, "x.fasta"))


def test_letters_are_upper_case_with_t_for_u_and_n_for_a_dot(tmp_path: Path) -> None:
    path = write(
        tmp_path, b"@a\nACGTRYSWKMBDHVNU.\n+\n" + b"I" * 17 + b"\n@b\nacgtryswkmbdhvnu.\n+\n" + b"I" * 17
    )
    assert [r[1] for r in read(path)] == ["ACGTRYSWKMBDHVNTN"] * 2
    assert counts(path).dots == 2


def test_empty_reads_are_reads(tmp_path: Path) -> None:
    for last in (b"\n", b"", b"\r\n\r\n"):
        path = write(tmp_path, b"@a\n\n+\n\n@b\nA\n+\nI\n@c\n\n+\n" + last)
        assert read(path) == [("a", "", ""), ("b", "A", "I"), ("c", "", "")]
        assert counts(path).empty_reads == 2


def test_a_long_read(tmp_path: Path) -> None:
    bases = "ACGTT" * 200_000
    text = f"@a\nAC\n+\nII\n@long\n{bases}\n+\n{'J' * len(bases)}\n@b\nA\n+\nI\n"
    assert read(write(tmp_path, text.encode())) == [
        ("a", "AC", "II"),
        ("long", bases, "J" * len(bases)),
        ("b", "A", "I"),
    ]


def test_names_may_hold_any_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, "@é π\nA\n+\nI\n".encode() + b"@caf\xe9\nA\n+\nI\n")
    assert [name for name, _, _ in read(path)] == ["é", "caf\\xe9"]


def test_blocks_hold_as_many_reads_as_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"".join(b"@r%d\nACGTA\n+\nIIIII\n" % i for i in range(100))
    one, two = write(tmp_path, text, "1"), write(tmp_path, text.replace(b"@r", b"@s"), "2")
    with open_reads([one, two], block_reads=30) as files:
        for _ in range(2):
            items = [(item.file, item.first, len(item.reads)) for item in files]
            assert items == [(f, at, min(30, 100 - at)) for f in (0, 1) for at in (0, 30, 60, 90)]
            assert [c.reads for c in files.counts] == [100, 100]
            assert [c.bases for c in files.counts] == [500, 500]
        assert files.bytes_read() == files.total_bytes == 2 * len(text)
        assert [identity[:2] for identity in files.identities] == [(str(p), len(text)) for p in (one, two)]
    monkeypatch.setattr("plait.formats.reads._BLOCK_BASES", 14)
    with open_reads([one], block_reads=30) as files:
        assert [len(item.reads) for item in files] == [2] * 50
    monkeypatch.setattr("plait.formats.reads._BLOCK_BASES", 3)
    with open_reads([one], block_reads=30) as files:
        assert [len(item.reads) for item in files] == [1] * 100


def test_blocks_are_as_they_come_where_no_number_is_asked_for(tmp_path: Path) -> None:
    """Mates stand beside each other all the same; names are not compared."""
    text = b"".join(b"@r%d\n%s\n+\n%s\n" % (i % 500, b"ACGTA" * 40, b"IJKLM" * 40) for i in range(6000))
    one, two = write(tmp_path, text, "1"), write(tmp_path, text.replace(b"A", b"T"), "2")
    with open_reads([one], block_reads=None) as files:
        blocks = [item.reads for item in files]
        assert files.counts[0].reads == 6000 and files.counts[0].duplicate_names == 0
    assert len(blocks) == 3 and [read for block in blocks for read in reads_of(block)] == read([one])
    with open_reads([one], [two], block_reads=None) as files:
        assert [(len(item.reads), len(item.mates or ())) for item in files] == [(6000, 6000)]


def test_an_iteration_may_be_left(tmp_path: Path) -> None:
    path = write(tmp_path, b"".join(b"@r%d\nA\n+\nI\n" % i for i in range(1000)))
    with open_reads([path], block_reads=10) as files:
        assert [next(iter(files)).reads.names[0] for _ in range(3)] == ["r0"] * 3


BAD = {
    "empty": (b"", "found an empty file, expected FASTQ or FASTA, plain or"),
    "blank": (b" \n\r\n", "found no reads, expected FASTQ or FASTA"),
    "empty gzip": (gzip.compress(b""), "found no reads"),
    "text": (b"sequence\tcount\n", r"line 1: found 'sequence\\tcount', expected '@' \(FASTQ\) or '>'"),
    "binary": (b"\x7fELF\0\0", "found binary data"),
    "Parquet": (b"PAR1....", "found a Parquet file, expected FASTQ or FASTA"),
    "bzip2": (bz2.compress(FASTQ), "found bzip2 data, expected FASTQ or FASTA"),
    "BAM": (gzip.compress(b"BAM\x01\0"), "found a BAM file"),
    "no name": (b"@a\nA\n+\nI\n@\nA\n+\nI\n", "line 5: found a header without a name"),
    "blank name": (b"@ x\nA\n+\nI\n", "line 1: found a header without a name"),
    "no header": (b"@a\nA\n+\nI\na\nA\n+\nI\n", "line 5: found 'a', expected a header line, '@name'"),
    "no plus": (b"@a x\nA\nI\n@b\n", "line 3: found 'I' as the third line of read 'a', expected a line that"),
    "wrapped": (b"@a\nA\nC\n+\nII\n@b\nA\n+\n", "line 3: found 'C' as the third line of read 'a'"),
    "blank third": (b"@a\nA\n\n+\n", "line 3: found a blank line as the third line of read 'a'"),
    "qualities": (b"@a\nACG\n+\nII\n", "line 4: found 2 qualities for the 3 bases of read 'a', expected one"),
    "more qualities": (b"@a\nA\n+\nII", "line 4: found 2 qualities for the 1 bases"),
    "blank between": (b"@a\nA\n+\nI\n\n@b\nA\n+\nI\n", "line 5: found a blank line, expected a header line"),
    "cut after header": (
        b"@a\nA\n+\nI\n@b x\n",
        "line 5: found the end of the file within the record of read 'b'",
    ),
    "cut in header": (b"@a\nA\n+\nI\n@b", "line 5: found the end of the file within"),
    "cut after sequence": (b"@a\nA\n+\nI\n@b\nA\n", "line 6: found the end of the file within"),
    "cut after plus": (b"@a\nA\n+\n", "line 3: found the end of the file within the record of read 'a'"),
    "junk at end": (b"@a\nA\n+\nI\nx", "line 5: found 'x', expected a header line"),
    "Mac": (b"@a\rA\r+\rI\r", "line 1: found the end of the file.*convert the line ends"),
    "letter": (
        b"@a\nA\n+\nI\n@b\nAC*\n+\nIII\n",
        r"line 6: found '\*' at position 3 of read 'b', expected the",
    ),
    "digit": (b"@a\nA1\n+\nII\n", "line 2: found '1' at position 2 of read 'a'"),
    "blank letter": (b"@a\nA C\n+\nIII\n", "line 2: found the byte 0x20 at position 2"),
    "inner return": (b"@a\nA\rC\n+\nIII\n", "line 2: found the byte 0x0D at position 2"),
    "not ASCII": (b"@a\nA\xc3\n+\nII\n", "line 2: found the byte 0xC3"),
    "low quality": (
        b"@a\nAC\n+\nI \n",
        "line 4: found the byte 0x20 as the quality at position 2 of read 'a'",
    ),
    "high quality": (b"@a\nAC\n+\n\x7fI\n", "line 4: found the byte 0x7F as the quality at position 1"),
    "FASTA protein": (b">a\nAC\nELM\n", "line 2: found 'E' at position 3 .*; are these proteins?"),
    "FASTA name": (b">a\nA\n>\nA\n", "line 3: found a header without a name"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_files_are_said(tmp_path: Path, content: bytes, message: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(FormatError, match=message) as caught:
        read(path)
    assert caught.value.path == str(path)


def test_an_error_far_into_a_file_names_its_line_and_record(tmp_path: Path) -> None:
    good = b"@r\nACGT\n+\nIIII\n" * 50_000
    path = write(tmp_path, good + b"@bad\nAC-T\n+\nIIII\n")
    with pytest.raises(FormatError, match=r"line 200002: found '-' at position 3 of read 'bad'") as caught:
        read(path)
    assert caught.value.record == 50_000
    path = write(tmp_path, good + b"@bad\nACT\n+\nIIII\n" + good)
    with pytest.raises(FormatError, match="line 200004: found 4 qualities") as caught:
        read(path)
    assert caught.value.record == 50_000


def test_a_file_of_one_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_fastq, "_LONGEST_RECORD", 1 << 20)
    with pytest.raises(FormatError, match="found a record of more than 1,048,576 bytes"):
        read(write(tmp_path, b"@a\n" + b"A" * (1 << 22)))


@pytest.mark.parametrize("codec", often(1, ["gzip", "zstd"]))
def test_a_truncated_file_is_said(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "x.fastq.gz"
    rng = np.random.default_rng(5)
    bases = np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, (3000, 100))]
    with pa.output_stream(str(path), compression=codec) as stream:
        stream.write(b"".join(b"@r\n%s\n+\n%s\n" % (row.tobytes(), row.tobytes()) for row in bases))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FormatError, match=f"{codec} (stream|file).*copy or download"):
        read(path)


def test_missing_files_and_wrong_arguments_are_said(tmp_path: Path) -> None:
    path, other = write(tmp_path, FASTQ), write(tmp_path, FASTQ, "y")
    with pytest.raises(FormatError, match="no such file"):
        open_reads([tmp_path / "none"])
    with pytest.raises(FormatError, match="a directory"):
        open_reads(tmp_path)
    with pytest.raises(InvalidInput, match="paths: found no input file"):
        open_reads([])
    with pytest.raises(InvalidInput, match="block_reads: found 0"):
        open_reads([path], block_reads=0)
    with pytest.raises(InvalidInput, match="mates: found 1 files of mates for 2 files of reads"):
        open_reads([path, other], [path])
    with pytest.raises(InvalidInput, match="twice, expected different files"):
        open_reads([path], path)
    (link := tmp_path / "link").symlink_to(path)
    with pytest.raises(InvalidInput, match="twice, expected different files"):
        open_reads([path, link])


# --- mates ----------------------------------------------------------------------------------------------


def pair(folder: Path, first: bytes, second: bytes, **options: Any) -> ReadFiles:
    return open_reads(write(folder, first, "1"), write(folder, second, "2"), **options)


def test_mates_come_together(tmp_path: Path) -> None:
    first = b"".join(b"@r%d 1:N\nAC\n+\nII\n" % i for i in range(50))
    second = b"".join(b"@r%d 2:N\nGGGG\n+\nJJJJ\n" % i for i in range(50))
    with pair(tmp_path, first, second, block_reads=7) as files:
        items = list(files)
        assert [len(item.reads) for item in items] == [7] * 7 + [1]
        assert all(item.mates is not None and len(item.mates) == len(item.reads) for item in items)
        assert files.counts[0].reads == 50 and files.counts[0].bases == 300
        assert files.bytes_read() == files.total_bytes == len(first) + len(second)


@pytest.mark.parametrize("ends", ["/1 /2", ".1 .2", "_1 _2", " "])
def test_names_of_mates(tmp_path: Path, ends: str) -> None:
    one, two = ends.split(" ")
    first = f"@a{one}\nAC\n+\nII\n@b{one} x\nA\n+\nI\n".encode()
    second = f"@a{two} y\nGG\n+\nJJ\n@b{two}\nG\n+\nJ\n".encode()
    with pair(tmp_path, first, second) as files:
        (item,) = files
    assert item.mates is not None
    assert reads_of(item.reads) == [("a", "AC", "II"), ("b", "A", "I")]
    assert reads_of(item.mates) == [("a", "GG", "JJ"), ("b", "G", "J")]


def test_mates_may_be_fasta(tmp_path: Path) -> None:
    with pair(tmp_path, b"@a\nAC\n+\nII\n", b">a\nGG\n") as files:
        (item,) = files
    assert item.reads.qualities is not None and item.mates is not None and item.mates.qualities is None


def named(*names: str) -> bytes:
    return "".join(f"@{name}\nA\n+\nI\n" for name in names).encode()


@pytest.mark.parametrize("block_reads", [1, 2, 100])
@pytest.mark.parametrize(
    ("first", "second", "at", "message"),
    [
        (
            "a b c",
            "a b",
            "2",
            "record 2: found the end of the file after 2 reads, expected the mate of 'c', record 2",
        ),
        (
            "a b",
            "a b c",
            "1",
            "record 2: found the end of the file after 2 reads, expected the mate of 'c', record 2",
        ),
        (
            "a b c",
            "a x c",
            "2",
            "record 1: found read 'x', expected the mate of 'b', record 1 of .*; mates must",
        ),
        ("a/1 b/1", "b/2 a/2", "2", "record 0: found read 'b/2', expected the mate of 'a/1'"),
        ("a/2", "a/1", "2", "the wrong way round"),
        ("read1", "read2", "2", "found read 'read2', expected the mate of 'read1'"),
    ],
    ids=["fewer", "more", "other", "order", "swapped", "no-separator"],
)
def test_mates_that_are_none_are_said(
    tmp_path: Path, block_reads: int, first: str, second: str, at: str, message: str
) -> None:
    files = pair(tmp_path, named(*first.split()), named(*second.split()), block_reads=block_reads)
    with files, pytest.raises(FormatError, match=message) as caught:
        list(files)
    assert caught.value.path == str(tmp_path / at)
    assert str(tmp_path / ("1" if at == "2" else "2")) in str(caught.value)


# --- blocks ---------------------------------------------------------------------------------------------


def test_blocks_are_joined_and_cut() -> None:
    block = ReadBlock(list("abc"), np.frombuffer(b"ACGTTA", np.uint8), np.array([0, 2, 2, 6]), None)
    assert reads_of(slice_reads(block, 1, 3)) == [("b", "", None), ("c", "GTTA", None)]
    assert reads_of(join_reads([slice_reads(block, 2, 3), block]))[0] == ("c", "GTTA", None)
    assert len(join_reads([])) == 0
