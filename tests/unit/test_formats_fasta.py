from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import FormatError, InvalidInput
from plait.formats import fasta
from plait.formats.fasta import DuplicateName, NameRegister, Sequences, read_fasta
from plait.lang.lanes import lanes_of

Record = tuple[str, str, bytes, int]


def write(folder: Path, content: bytes, name: str = "x.fasta") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def records(path: Path, block_residues: int = 1 << 20) -> list[Record]:
    found = []
    for block in read_fasta(path, block_residues=block_residues):
        assert len(block) == len(block.names) == len(block.descriptions) == len(block.lines) > 0
        assert block.offsets[0] == 0 and block.offsets[-1] == block.letters.size
        assert block.lengths.tolist() == [len(block.sequence(i)) for i in range(len(block))]
        for i in range(len(block)):
            found.append((block.names[i], block.descriptions[i], block.sequence(i), int(block.lines[i])))
    return found


def read_by_lines(text: bytes) -> list[Record]:
    """The same, line by line; the text starts with a header, perhaps behind blanks."""
    lines: list[list[bytes]] = []
    numbers = []
    lead = text[: len(text) - len(text.lstrip())]
    for number, line in enumerate(text.lstrip().split(b"\n"), 1 + lead.count(b"\n")):
        if line.startswith(b">"):
            lines.append([line[1:]])
            numbers.append(number)
        else:
            lines[-1].append(line)
    found = []
    for (header, *body), number in zip(lines, numbers, strict=True):
        name, *rest = header.split(None, 1)
        description = b"".join(rest).rstrip()
        found.append((name.decode(), description.decode(), b"".join(b"".join(body).split()), number))
    return found


def test_a_file_as_most_are(tmp_path: Path) -> None:
    path = write(tmp_path, b">a\nMKV\nLA\n>b of something = 3\nMM*\n>c\n\n>d \nacgt\n")
    assert records(path) == [
        ("a", "", b"MKVLA", 1),
        ("b", "of something = 3", b"MM*", 4),
        ("c", "", b"", 6),
        ("d", "", b"acgt", 8),
    ]


@pytest.mark.parametrize(
    "text",
    [
        b">a x\r\nMK\r\nVL\r\n\r\n>b\r\nM\r\n",
        b">a x\nMK\nVL\n\n>b\nM",
        b"\n \n>a x\nMKVL\n>b\nM\n",
        b"\xef\xbb\xbf>a x\nMKVL\n>b\nM\n",
        b">a\tx  \n M K\tV L \n>b\r\nM\r",
        b"> a \t x\nMKVL\n>  b\nM\n",
    ],
    ids=["crlf", "no-final-newline", "blank-lines-first", "byte-order-mark", "blanks", "blank-before-name"],
)
def test_ways_to_write_the_same(tmp_path: Path, text: bytes) -> None:
    path = write(tmp_path, text)
    for block_residues in (1, 2, 7, 1 << 20):
        assert [record[:3] for record in records(path, block_residues)] == [
            ("a", "x", b"MKVL"),
            ("b", "", b"M"),
        ]


def test_only_a_header(tmp_path: Path) -> None:
    assert records(write(tmp_path, b">a")) == [("a", "", b"", 1)]
    assert records(write(tmp_path, b">a b\r\n>c")) == [("a", "b", b"", 1), ("c", "", b"", 2)]


def test_a_greater_sign_within_a_line_is_no_header(tmp_path: Path) -> None:
    path = write(tmp_path, b">a >b\nMK>c\n >d\n")
    assert records(path, 1) == [("a", ">b", b"MK>c>d", 1)]


def test_headers_may_hold_any_bytes_but_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path, ">é π\nMK\n".encode() + b">gi|1 one\x01gi|2 two\nMK\n>caf\xe9 \xff\nM\n")
    assert [record[:2] for record in records(path)] == [
        ("é", "π"),
        ("gi|1", "one\x01gi|2 two"),
        ("caf\\xe9", "\\xff"),
    ]


PIECES = [b"\n", b"\r\n", b" ", b"\t", b"\n>", b"\n>x", b"AC", b"G", b">", b"\n\n", b"\n>yy zz ", b"b c"]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.sampled_from([1, 2, 3, 5, 17, 1 << 20]))
def test_equal_to_reading_line_by_line(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], block_residues: int
) -> None:
    text = b">first" + b"".join(pieces)
    path = write(tmp_path_factory.mktemp("fasta"), text)
    nameless = [
        n for n, line in enumerate(text.split(b"\n"), 1) if line.startswith(b">") and not line[1:].strip()
    ]
    if nameless:
        with pytest.raises(FormatError, match="a header without a name, expected a header line") as caught:
            records(path, block_residues)
        assert caught.value.line == nameless[0]
    else:
        assert records(path, block_residues) == read_by_lines(text)


SEQUENCES = st.binary(max_size=200).map(lambda raw: bytes(65 + byte % 26 for byte in raw))


@given(
    st.lists(SEQUENCES, min_size=1, max_size=30),
    st.integers(1, 80),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "gzip", "zstd"]),
    st.integers(1, 500),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    sequences: list[bytes],
    width: int,
    line_end: str,
    codec: str,
    block_residues: int,
) -> None:
    lines = []
    for number, sequence in enumerate(sequences):
        text = sequence.decode()
        lines += [f">s{number} number {number}", *(text[i : i + width] for i in range(0, len(text), width))]
    content = "".join(line + line_end for line in lines).encode()
    path = tmp_path_factory.mktemp("fasta") / "x"
    with pa.output_stream(str(path), compression=codec or None) as stream:
        stream.write(content)
    found = records(path, block_residues)
    assert [record[2] for record in found] == sequences
    assert [record[:2] for record in found] == [(f"s{i}", f"number {i}") for i in range(len(sequences))]
    assert [lines[record[3] - 1].split()[0] for record in found] == [f">s{i}" for i in range(len(sequences))]


def test_blocks_hold_whole_records_and_about_as_much_as_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, b"".join(b">s%d\n%s\n" % (i, b"M" * 95) for i in range(100)))
    blocks = list(read_fasta(path, block_residues=1000))
    assert sum(map(len, blocks)) == 100
    assert all(9 <= len(block) <= 20 for block in blocks[:-1])
    assert [len(block) for block in read_fasta(path, block_residues=1)] == [1] * 100
    long = write(tmp_path, b">a\nM\n>b\n" + b"M" * 5000 + b"\n>c\nM\n", "long")
    assert [block.names for block in read_fasta(long, block_residues=100)] == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found an empty file, expected FASTA text, plain or compressed with gzip or zstd"),
        (b" \n\r\n\n", "found no sequence, only blank lines, expected a header line, '>name'"),
        (gzip.compress(b""), "found no sequence"),
        (b"\n\nMKVLA\n>a\nMK\n", "line 3: found 'MKVLA', expected a header line, '>name'"),
        (b"@read1\nACGT\n+\nIIII\n", "line 1: found FASTQ, '@read1', .*; convert it to FASTA"),
        (b"sequence_id\tjunction\n", r"line 1: found 'sequence_id\\tjunction', expected a header line"),
        (b">a\nMK\n>\nMK\n", "line 3: found a header without a name"),
        (b">a\nMK\n>b\nMK\n>  \t\nMK\n", "line 5: found a header without a name"),
        (b">a\nMK\nM\0K\n", "line 3: found the byte 0x00 in a sequence, expected letters; the file may be"),
        (b">a\nMK\n>b\nM\x7fK\n", "line 4: found the byte 0x7F in a sequence"),
        (b">a\n\nMK\nM\xc3\xa9\n", "line 4: found 'é' in a sequence"),
        (b"\x7fELF\0\0\0\0", r"found binary data, starting with b'\\x7fELF.*expected FASTA text"),
        (
            b">a b\rMK\r>c\rMK\r",
            "line 1: found a carriage return within a header line.*convert the line ends",
        ),
        (b">a\nMK\n>b x\ry\r\nMK\n", "line 3: found a carriage return within a header line"),
        (b"PAR1....", "found a Parquet file, expected FASTA text"),
        (
            bz2.compress(b">a\nMK\n"),
            "found bzip2 data, expected FASTA text, plain or compressed with gzip or",
        ),
        (gzip.compress(b"BAM\x01\0\0"), "found a BAM file, expected FASTA text"),
        (">a\nMK\n".encode("utf-16"), "found UTF-16 text, expected FASTA text"),
        (b"%PDF-1.7\n", "found a PDF document, expected FASTA text"),
    ],
    # Named: gzip writes the time into its header, and all workers must collect the same names.
    ids=[
        "empty",
        "blank lines",
        "empty gzip",
        "no header",
        "FASTQ",
        "table",
        "header of nothing",
        "header of blanks",
        "NUL",
        "DEL",
        "not ASCII",
        "ELF",
        "old Mac lines",
        "return in a header",
        "Parquet",
        "bzip2",
        "BAM",
        "UTF-16",
        "PDF",
    ],
)
def test_bad_files_are_said(tmp_path: Path, content: bytes, message: str) -> None:
    path = write(tmp_path, content)
    for block_residues in (1 << 20, 4):
        with pytest.raises(FormatError, match=message) as caught:
            records(path, block_residues)
        assert caught.value.path == str(path)


def test_the_line_of_a_fault_counts_all_pieces(tmp_path: Path) -> None:
    text = b">a\nMK\nVL\n" * 1000 + b">b\nM\x80\n"
    with pytest.raises(FormatError, match="line 3002: found the byte 0x80"):
        records(write(tmp_path, text), 64)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_truncated_file_is_said_after_what_could_be_read(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "x.fa"
    text = b"".join(b">s%d\n%s\n" % (i, bytes(65 + (i * k) % 20 for k in range(99))) for i in range(3000))
    with pa.output_stream(str(path), compression=codec) as stream:
        stream.write(text)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FormatError, match=f"{codec} (stream|file)"):
        records(path)


def test_a_missing_file_and_a_directory_are_said(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        records(tmp_path / "none")
    with pytest.raises(FormatError, match="a directory"):
        records(tmp_path)


def test_a_block_needs_room(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="block_residues: found 0, expected a positive number"):
        records(write(tmp_path, b">a\nM\n"), 0)


NAMES = st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6), min_size=1, max_size=12)


@given(NAMES, st.integers(1, 3))
def test_every_repeated_name_is_found_with_its_first_place(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[list[str]], files: int
) -> None:
    folder = tmp_path_factory.mktemp("names")
    register, first = NameRegister(), dict[str, tuple[str, int]]()
    for number in range(files):
        path = write(folder, b"".join(f">{n}\nM\n".encode() for b in blocks for n in b), f"{number}.fa")
        places = iter(records(path))
        for block in read_fasta(path, block_residues=6):
            expected = []
            for name in block.names:
                line = next(places)[3]
                if name in first:
                    expected.append(DuplicateName(name, str(path), line, *first[name]))
                first.setdefault(name, (str(path), line))
            assert register.add(path, block) == expected


def test_a_repeated_name_is_said_with_both_places(tmp_path: Path) -> None:
    first, second = write(tmp_path, b">a\nM\n>b\nM\n>a\nM\n", "1"), write(tmp_path, b">b\nM\n", "2")
    register = NameRegister()
    found: list[DuplicateName] = []
    for path in (first, second):
        block: Sequences
        for block in read_fasta(path):
            found += register.add(path, block)
    within, between = (str(duplicate.error()) for duplicate in found)
    assert within.startswith(f"{first}, line 5: found a second sequence named 'a', after that of line 1, ")
    assert between.startswith(
        f"{second}, line 1: found a second sequence named 'b', after that of {first}, line 3"
    )


@given(st.binary(max_size=200) | st.text(st.sampled_from("ACGTN\n\r"), max_size=300).map(str.encode))
def test_lines_of_letters(text: bytes) -> None:
    padded = np.full((1, len(text) + 64), ord("A"), np.uint8)
    padded[0, : len(text)] = np.frombuffer(text, np.uint8)
    out = np.empty((1, len(text) + 64), np.uint8)
    count, lines, plain = fasta.lines_kernel(lanes_of(64), padded, fasta._EDGES, out)
    assert plain == all(byte in b"\r\n" or 32 < byte < 127 for byte in text)
    assert out[0, :count].tobytes() == bytes(byte for byte in text if byte > 32)
    assert lines == text.count(b"\n")
