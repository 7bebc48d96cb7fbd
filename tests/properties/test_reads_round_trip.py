"""Reads come back as they were written, however a file is laid out and cut; repeated names are counted."""

from __future__ import annotations

import collections
import gzip
import io
import pickle
from pathlib import Path

import dnaio
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import FormatError
from plait.formats.fasta import Names, RepeatedNames, hash_names, pair_names
from plait.formats.fastq import RawReads, checked_reads, fastq_reads
from plait.formats.files import ByteSource, FileKind
from plait.formats.reads import open_reads

Read = tuple[str, str, str | None]

WORDS = st.text("abcXYZ019:/._-", min_size=1, max_size=12)
SEQUENCES = st.text("ACGTNRY", max_size=40)
QUALITIES = st.integers(33, 126).map(chr)
LINE_ENDS = st.sampled_from(["\n", "\r\n"])


@st.composite
def fastq_records(draw: st.DrawFn) -> tuple[Read, str]:
    """A read, and its four lines with ends that may differ."""
    name, sequence = draw(WORDS), draw(SEQUENCES)
    quality = "".join(draw(st.lists(QUALITIES, min_size=len(sequence), max_size=len(sequence))))
    rest, again = draw(st.sampled_from(["", " 1:N:0:ACGT", "\t@x +"])), draw(st.booleans())
    lines = [f"@{name}{rest}", sequence, "+" + (f"{name}{rest}" if again else ""), quality]
    return (name, sequence, quality), "".join(line + draw(LINE_ENDS) for line in lines)


def read_all(paths: list[Path], block_reads: int) -> list[Read]:
    found: list[Read] = []
    with open_reads(paths, block_reads=block_reads) as files:
        for item in files:
            qualities = item.reads.qualities
            for i, name in enumerate(item.reads.names):
                span = slice(item.reads.starts[i], item.reads.starts[i + 1])
                text = None if qualities is None else (qualities[span] + 33).tobytes().decode()
                found.append((name, item.reads.sequence(i), text))
    return found


@given(
    st.lists(st.lists(fastq_records(), min_size=1, max_size=12), min_size=1, max_size=3),
    st.sampled_from(["", "gzip", "zstd"]),
    st.sampled_from([1, 2, 3, 8192]),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[Read, str]]],
    codec: str,
    block_reads: int,
) -> None:
    folder = tmp_path_factory.mktemp("reads")
    paths = []
    for number, records in enumerate(files):
        paths.append(folder / str(number))
        with pa.output_stream(str(paths[-1]), compression=codec or None) as stream:
            stream.write("".join(text for _, text in records).encode())
    assert read_all(paths, block_reads) == [read for records in files for read, _ in records]


@given(st.lists(fastq_records(), min_size=1, max_size=12), st.integers(1, 300), st.booleans())
def test_pieces_of_any_size_and_dnaio_agree(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[Read, str]], size: int, ended: bool
) -> None:
    text = "".join(text for _, text in records).encode()
    if not ended and records[-1][0][1]:
        text = text.rstrip(b"\r\n")
    path = tmp_path_factory.mktemp("reads") / "x"
    path.write_bytes(text)
    found: list[tuple[str, str, str]] = []
    with ByteSource(path, FileKind.PLAIN) as source:
        for raw in fastq_reads(source, source.read(size), 1, piece_bytes=size):
            assert raw.first == len(found)
            assert raw.lines.tolist() == [4 * (raw.first + i) + 2 for i in range(len(raw.names))]
            block, _ = checked_reads(raw)
            assert block.qualities is not None
            qualities = (block.qualities + 33).tobytes().decode()
            for i, name in enumerate(block.names):
                found.append((name, block.sequence(i), qualities[block.starts[i] : block.starts[i + 1]]))
    assert found == [read for read, _ in records]
    with dnaio.open(io.BytesIO(text), fileformat="fastq") as reader:
        assert found == [(r.name.split()[0], r.sequence, r.qualities) for r in reader]


@given(st.lists(fastq_records(), min_size=1, max_size=4), st.data())
def test_a_changed_byte_gives_reads_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[Read, str]], data: st.DataObject
) -> None:
    text = bytearray("".join(text for _, text in records).encode())
    place = data.draw(st.integers(0, len(text) - 1))
    kept = text[place]
    text[place] = data.draw(st.sampled_from(list(b"\n\r @+>AI\0\xff")))
    path = tmp_path_factory.mktemp("reads") / "x"
    path.write_bytes(bytes(text) if data.draw(st.booleans()) else gzip.compress(bytes(text)))
    try:
        found = read_all([path], 8192)
    except FormatError as error:
        assert str(path) in str(error)
    else:
        # A change that leaves a file of reads is one of a letter, a quality, a name or what follows one.
        assert abs(len(found) - len(records)) <= 1 or text[place] == kept


NAMES = st.lists(st.lists(WORDS, min_size=1, max_size=20), min_size=1, max_size=10)


@given(NAMES)
def test_repeated_names_are_counted(blocks: list[list[str]]) -> None:
    names, seen, repeated = RepeatedNames(), set[str](), 0
    for block in blocks:
        names.add(block)
        for name in block:
            repeated += name in seen
            seen.add(name)
        assert (names.count, names.exact) == (repeated, True)


def test_many_repeated_names_are_estimated_in_bounded_memory() -> None:
    names = RepeatedNames(room=2000)
    for first in range(0, 100_000, 1000):
        names.add([f"read:{i}" for i in range(first, first + 1000)])
        names.add([f"read:{i}" for i in range(first, first + 300)])
    assert not names.exact
    assert names._hashes.size <= 2000
    assert abs(names.count - 30_000) < 5000


def test_blocks_do_not_matter_to_the_estimate() -> None:
    texts = [f"x{i % 7000}" for i in range(10_000)]
    found = set()
    for size in (100, 999, 10_000):
        names = RepeatedNames(room=500)
        for first in range(0, len(texts), size):
            names.add(texts[first : first + size])
        found.add(names.count)
    assert len(found) == 1


def test_hashes_are_the_same_everywhere_and_differ_between_names() -> None:
    assert hash_names(["read1", "", "é"]).tolist() == hash_names(["read1", "", "é"]).tolist()
    texts = [f"M0:{i}:{j}" for i in range(300) for j in range(300)] + ["", "a", "aa"]
    hashes = hash_names(texts)
    assert np.unique(hashes).size == len(texts)
    for bit in range(64):
        share = ((hashes >> np.uint64(bit)) & np.uint64(1)).mean()
        assert abs(share - 0.5) < 0.02
    assert collections.Counter(hash_names(["b", "a", "b"]).tolist()).most_common(1)[0][1] == 2


@given(st.lists(WORDS, max_size=5), st.sampled_from(["/", ".", "_"]))
def test_names_of_mates_pair_up(names: list[str], separator: str) -> None:
    first, second = ([f"{name}{separator}{end}" for name in names] for end in "12")
    assert pair_names(first, second) == (names, None)
    assert pair_names(names, names) == (names, None)
    if names:
        assert pair_names(second, first) == ([], 0)
        assert pair_names([*first, "x"], [*second, "y"]) == (names, len(names))


NAMES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=6), max_size=8)


@pytest.mark.slow
@given(NAMES, NAMES, st.slices(8), st.integers(-9, 9))
def test_names_as_bytes_are_a_list_of_texts(
    names: list[str], others: list[str], which: slice, place: int
) -> None:
    own = Names.of(names)
    assert len(own) == len(names) and list(own) == names and own == names
    assert list(own[which]) == names[which]
    assert Names.joined([own[which], others, own]) == names[which] + others + names
    assert hash_names(own[which]).tolist() == hash_names(names[which]).tolist()
    assert pickle.loads(pickle.dumps(own)) == names and Names.of_bytes(own.data, own.starts) == names
    if -len(names) <= place < len(names):
        assert own[place] == own[np.int64(place)] == names[place]
    else:
        with pytest.raises(IndexError):
            own[place]


def test_every_byte_as_a_letter_and_as_a_quality() -> None:
    def read(letter: int, quality: int) -> tuple[int, int]:
        letters, qualities = np.array([65, letter, 65], np.uint8), np.array([65, quality, 65], np.uint8)
        raw = RawReads("x", 0, ["a"], letters, np.array([0, 3]), qualities, np.array([2]))
        try:
            block, dots = checked_reads(raw)
        except FormatError as error:
            return (-1, -1) if "quality" not in str(error) else (-2, -2)
        assert dots == (letter == ord(".")) and block.qualities is not None
        return int(block.letters[1]), int(block.qualities[1])

    codes = {ord(code): ord(code) for code in "ACGTRYSWKMBDHVN"} | {ord("U"): ord("T")}
    codes |= {code + 32: letter for code, letter in codes.items()} | {ord("."): ord("N")}
    for byte in range(256):
        for quality in (33, 126):
            letter = codes.get(byte, -1)
            assert read(byte, quality) == ((letter, quality - 33) if letter > 0 else (-1, -1))
        assert read(ord("C"), byte) == ((ord("C"), byte - 33) if 33 <= byte <= 126 else (-2, -2))
