from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import often

from plait.align import database as database_build
from plait.align.database import (
    DIGESTS,
    FORMAT_VERSION,
    HEADER_BYTES,
    SECTIONS,
    SequenceDatabase,
    build_database,
    is_database,
    open_database,
    pack_sequences,
)
from plait.align.letters import ALPHABETS, PAD_CODE, common_kind, count_letters, kind_of
from plait.align.settings import Kind
from plait.dp.pairs import blocks as packing
from plait.dp.pairs.blocks import BLOCK_LANES, arrange
from plait.errors import FormatError, InvalidInput, Unsupported
from plait.formats.fasta import Sequences, read_fasta

TEXT = {"protein": ALPHABETS["protein"], "dna": ALPHABETS["dna"]}


def fasta(path: Path, sequences: list[str], start: int = 0) -> Path:
    lines = (f">s{start + i}{' of é' * (i % 3)}\n{s}\n" for i, s in enumerate(sequences))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def read(path: Path) -> Sequences:
    (block,) = read_fasta(path)
    return block


def some(count: int, kind: Kind = "protein", seed: int = 0, longest: int = 90) -> list[str]:
    rng = np.random.default_rng(seed)
    letters = np.array(list(TEXT[kind]))
    return ["".join(letters[rng.integers(0, len(letters), n)]) for n in rng.integers(0, longest, count)]


def built_database(tmp_path: Path, count: int = 150) -> Path:
    out = tmp_path / "x.plaitdb"
    build_database([fasta(tmp_path / "x.fa", some(count))], out)
    return out


def check_packed(packed: SequenceDatabase, sequences: list[str]) -> None:
    """Compare with the definition, lane by lane."""
    order = sorted(range(len(sequences)), key=lambda i: -len(sequences[i]))
    blocks = -(-len(order) // BLOCK_LANES)
    assert packed.blocks == blocks and packed.lengths.shape == (blocks, BLOCK_LANES)
    assert packed.order.tolist() == order + [-1] * (blocks * BLOCK_LANES - len(order))
    assert packed.packed.shape == (packed.first_columns[-1], BLOCK_LANES)
    for block in range(blocks):
        first, last = packed.first_columns[block : block + 2]
        lanes = [sequences[i] for i in order[block * BLOCK_LANES : (block + 1) * BLOCK_LANES]]
        assert first % 4 == 0 and 0 <= last - first - len(lanes[0]) < 4
        for lane in range(BLOCK_LANES):
            text = lanes[lane] if lane < len(lanes) else ""
            codes = [packed.alphabet.index(letter) for letter in text]
            assert packed.lengths[block, lane] == len(text)
            assert packed.packed[first:last, lane].tolist() == codes + [PAD_CODE] * (
                last - first - len(codes)
            )
    assert len(packed) == len(sequences)
    assert packed.residues == sum(map(len, sequences))
    assert packed.longest == max(map(len, sequences))
    assert [packed.letters(i) for i in range(len(packed))] == sequences


def same(one: SequenceDatabase, other: SequenceDatabase) -> bool:
    arrays = ("packed", "first_columns", "lengths", "order")
    texts = all(
        [getattr(one, name)[i] for i in range(len(one))]
        == [getattr(other, name)[i] for i in range(len(other))]
        for name in ("names", "descriptions")
    )
    return texts and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        and getattr(one, name).dtype == getattr(other, name).dtype
        for name in arrays
    )


@st.composite
def sequence_lists(draw: st.DrawFn) -> tuple[Kind, list[str]]:
    kind: Kind = draw(st.sampled_from(["protein", "dna"]))
    one = st.text(TEXT[kind], max_size=draw(st.sampled_from([1, 5, 40])))
    few = draw(st.lists(one, min_size=1, max_size=30))
    return kind, few * draw(st.integers(1, 7))


@given(sequence_lists())
def test_packed_as_defined(tmp_path_factory: pytest.TempPathFactory, drawn: tuple[Kind, list[str]]) -> None:
    kind, sequences = drawn
    folder = tmp_path_factory.mktemp("packed")
    path = fasta(folder / "x.fa", sequences)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_MOST_COLUMNS", 12)
        packed = pack_sequences(read(path), path, kind=kind)
    check_packed(packed, sequences)
    assert packed.packed.ctypes.data % 64 == 0 or not packed.packed.size
    built = build_database([path], folder / "x.db", kind=kind)
    check_packed(built, sequences)
    assert built.kind == packed.kind == kind
    assert same(built, packed)
    built.verify()


@pytest.mark.parametrize("limit", [512, 4096])
@pytest.mark.parametrize("count", often(2, [1, 63, 64, 65, 1000]))
def test_a_database_is_the_same_however_little_memory_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, count: int
) -> None:
    path = fasta(tmp_path / "x.fa", [*some(count, longest=60), "M" * 3000, ""])
    build_database([path], tmp_path / "large")
    monkeypatch.setattr(database_build, "_LEAST_MEMORY", 1)
    build_database([path], tmp_path / "small", memory_limit=limit)
    assert (tmp_path / "small").read_bytes() == (tmp_path / "large").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["large", "small", "x.fa"]


def test_records_of_several_files_are_numbered_through(tmp_path: Path) -> None:
    sequences = some(200)
    paths = [fasta(tmp_path / "1.fa", sequences[:70]), fasta(tmp_path / "2.fa", sequences[70:], start=70)]
    built = build_database(paths, tmp_path / "db")
    check_packed(built, sequences)
    assert [built.names[i] for i in (0, 69, 70, 199, -1)] == ["s0", "s69", "s70", "s199", "s199"]
    assert [built.descriptions[i] for i in (0, 1, 71)] == ["", "of é", "of é"]
    with pytest.raises(IndexError):
        built.names[200]


def test_all_sequences_empty(tmp_path: Path) -> None:
    built = build_database([fasta(tmp_path / "x.fa", ["", ""])], tmp_path / "db")
    assert (len(built), built.blocks, built.residues, built.longest) == (2, 1, 0, 0)
    assert built.packed.shape == (0, 64) and built.letters(1) == ""
    built.verify()


def test_what_the_header_says(tmp_path: Path) -> None:
    built = open_database(built_database(tmp_path))
    facts = {key: built.metadata[key] for key in ("kind", "sequences", "residues", "longest", "lanes", "pad")}
    assert facts == {
        "kind": "protein",
        "sequences": 150,
        "residues": built.residues,
        "longest": built.longest,
        "lanes": 64,
        "pad": 31,
    }
    assert built.metadata["alphabet"] == "ABCDEFGHIJKLMNOPQRSTUVWXYZ*"
    assert list(built.metadata["sections"]) == [*SECTIONS, DIGESTS]
    assert all(section["offset"] % 64 == 0 for section in built.metadata["sections"].values())
    assert built.packed.ctypes.data % 64 == 0


def test_arrays_cannot_be_written_to(tmp_path: Path) -> None:
    path = fasta(tmp_path / "x.fa", some(3))
    for packed in (pack_sequences(read(path), path, kind="protein"), build_database([path], tmp_path / "db")):
        for array in (packed.packed, packed.first_columns, packed.lengths, packed.order):
            assert not array.flags.writeable


def test_case_is_folded_and_u_is_t(tmp_path: Path) -> None:
    path = fasta(tmp_path / "x.fa", ["acgUuTn", "acguacguacguacguacguary"])
    assert build_database([path], tmp_path / "db").kind == "dna"
    assert open_database(tmp_path / "db", kind="dna").letters(0) == "ACGTTTN"
    assert pack_sequences(read(path), path, kind="protein").letters(0) == "ACGUUTN"


@pytest.mark.parametrize(
    ("letters", "kind"),
    [
        ("ACGT" * 9, "dna"),
        ("A", "dna"),
        ("acguacguacgur", "dna"),
        ("ACGTACGTACGTACGTQ", "dna"),
        ("ACGT" * 13 + "N" * 400, "dna"),
        ("ACGTRYSWKM" * 5, "dna"),
        ("MKVLATTGCA", "protein"),
        # What may be a primer or a peptide.
        ("GTGYCAGCMGCCGCGGTAA", None),
        ("GGNGTANGG", None),
        ("acgunnnnnnr", None),
        # Fibroin has no letter that nucleotides lack, and few that they have.
        ("GAGAGSGAGAGY" * 40, None),
        ("N" * 100, None),
        ("", None),
    ],
)
def test_the_kind_is_seen_in_the_letters(letters: str, kind: Kind | None) -> None:
    assert kind_of(counted(letters)) == kind
    # In any order, and as upper or lower case.
    assert kind_of(counted(letters[::-1].swapcase())) == kind


def counted(letters: str) -> Any:
    return count_letters(np.frombuffer(letters.encode(), np.uint8))


PRIMER, PEPTIDE, BASES, PROTEIN = "GTGYCAGCMGCCGCGGTAA", "GGNGTANGG", "ACGT" * 20, "MKVLAWERTY"


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        (PRIMER, BASES, "dna"),
        (PEPTIDE, PROTEIN, "protein"),
        (PRIMER, "", None),
        (PRIMER, PEPTIDE, None),
        (PRIMER, PRIMER * 3, "dna"),
        (BASES, PROTEIN, None),
        ("", "", "protein"),
    ],
)
def test_the_kind_is_that_of_both(one: str, other: str, kind: Kind | None) -> None:
    for sides in ((one, other), (other, one)):
        counts = dict(zip(("a.fa", "b.fa"), map(counted, sides), strict=True))
        if kind is None:
            with pytest.raises(InvalidInput, match=r"kind: found .*say which with --kind dna or --kind pro"):
                common_kind(counts)
        else:
            assert common_kind(counts) == kind


@pytest.mark.parametrize("change", ["first", "second"])
def test_all_files_of_a_database_are_of_one_kind(tmp_path: Path, change: str) -> None:
    files = [fasta(tmp_path / "1.fa", [BASES]), fasta(tmp_path / "2.fa", [PROTEIN], start=1)]
    with pytest.raises(InvalidInput, match="kind: found what looks like nucleotides"):
        build_database(files if change == "second" else files[::-1], tmp_path / "db")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (">a\nMK\n>b x\nMKV\n1A\n", "protein", r"line 3: found '1' at position 4 of the sequence 'b', exp"),
        (">a\nMK-V\n", "protein", r"line 1: found '-' at position 3 .*\(A to Z and '\*'\); take the gaps"),
        (">a\nACGT\n>e\n>b\nACGE\n", "dna", "line 4: found 'E' at position 4 .*IUPAC nucleotide.*protein"),
        (">a\nACGTACGTACGTACGTQ\n", "auto", "line 1: found 'Q' at position 17 of the sequence 'a'"),
        (">a\nMK\n>e\n>b\n*\n>c\n\n~\n", "protein", "line 6: found '~' at position 1 of the sequence 'c'"),
        (">a\nMK>b\n", "protein", "line 1: found '>' at position 3"),
    ],
)  # fmt: skip
def test_illegal_letters_are_said(tmp_path: Path, text: str, kind: Kind, message: str) -> None:
    path = tmp_path / "x.fa"
    path.write_text(text)
    with pytest.raises(FormatError, match=message) as caught:
        build_database([path], tmp_path / "db", kind=kind)
    assert caught.value.path == str(path)
    assert os.listdir(tmp_path) == ["x.fa"]
    if kind != "auto":
        with pytest.raises(FormatError, match=message):
            pack_sequences(read(path), path, kind=kind)


def test_repeated_names_are_refused_unless_allowed(tmp_path: Path) -> None:
    paths = [fasta(tmp_path / "1.fa", ["MK", "MK"]), fasta(tmp_path / "2.fa", ["VL"], start=1)]
    with pytest.raises(
        FormatError, match=r"2\.fa, line 1: found a second sequence named 's1'.*1\.fa, line 3"
    ):
        build_database(paths, tmp_path / "db")
    built = build_database(paths, tmp_path / "db", allow_duplicate_names=True)
    assert [built.names[i] for i in range(3)] == ["s0", "s1", "s1"]


def test_arguments_that_are_wrong(tmp_path: Path) -> None:
    path = fasta(tmp_path / "x.fa", ["MK"])
    with pytest.raises(InvalidInput, match="fasta_paths: found no file"):
        build_database([], tmp_path / "db")
    with pytest.raises(InvalidInput, match=r"output: found .*x\.fa', which is also an input"):
        build_database([path], tmp_path / "." / "x.fa")
    with pytest.raises(InvalidInput, match="memory_limit: found 1,000 bytes, expected at least 16,777,216"):
        build_database([path], tmp_path / "db", memory_limit=1000)
    with pytest.raises(InvalidInput, match="kind: found 'rna', expected 'auto' or one of protein, dna"):
        build_database([path], tmp_path / "db", kind="rna")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="folder that does not exist"):
        build_database([path], tmp_path / "none" / "db")


def test_a_failed_build_leaves_the_older_database(tmp_path: Path) -> None:
    out = built_database(tmp_path)
    before = out.read_bytes()
    (tmp_path / "bad.fa").write_text(">a\nMK\n>b\nM!\n")
    with pytest.raises(FormatError, match="'!' at position 2"):
        build_database([tmp_path / "x.fa", tmp_path / "bad.fa"], out, allow_duplicate_names=True)
    assert out.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["bad.fa", "x.fa", "x.plaitdb"]


def test_a_device_without_room_is_said_before_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fasta(tmp_path / "x.fa", ["MKV" + "M" * 997, "L"])
    usage = namedtuple("usage", ["free"])
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(100))
    with pytest.raises(
        FormatError, match=r"found 100 bytes free .*room for 64,000; 64,000 of them are for the"
    ):
        build_database([path], tmp_path / "db")


def test_a_long_sequence_is_not_packed_beyond_the_limit(tmp_path: Path) -> None:
    path = fasta(tmp_path / "x.fa", ["MK", "M" * 1000])
    with pytest.raises(
        InvalidInput, match=r"found 1,000 bytes, expected at least 64,000 .*longest 's1' with 1,000 residues"
    ):
        pack_sequences(read(path), path, kind="protein", memory_limit=1000)
    with pytest.raises(Unsupported, match=r"2,147,483,648 residues"):
        arrange(np.array([5, 2**31]))


def test_another_kind_is_refused(tmp_path: Path) -> None:
    out = built_database(tmp_path)
    with pytest.raises(FormatError, match="found a database of kind 'protein', expected one of kind 'dna'"):
        open_database(out, kind="dna")


@pytest.mark.parametrize("size", [0, 5, 8, 100, 4095, 4096, 5000, -1])
def test_a_truncated_database_is_said(tmp_path: Path, size: int) -> None:
    out = built_database(tmp_path)
    content = out.read_bytes()
    out.write_bytes(content[:size])
    with pytest.raises(FormatError, match=r"found (an empty file|only [\d,]+ bytes), expected") as caught:
        open_database(out)
    if size == 5000:
        assert f"found only 5,000 bytes, expected {len(content):,} bytes" in str(caught.value)
        assert "truncated" in str(caught.value)


def test_a_database_with_something_behind_it_is_said(tmp_path: Path) -> None:
    out = built_database(tmp_path)
    size = out.stat().st_size
    out.write_bytes(out.read_bytes() + b"x")
    with pytest.raises(FormatError, match=f"found {size + 1:,} bytes, expected {size:,} bytes"):
        open_database(out)


@pytest.mark.parametrize(
    ("version", "hint"),
    [(0, "; build it again with"), (1, "; build it again with"), (3, "; use a newer plait, or build")],
)
def test_another_version_is_said(tmp_path: Path, version: int, hint: str) -> None:
    out = built_database(tmp_path)
    content = bytearray(out.read_bytes())
    content[8:12] = struct.pack("<I", version)
    out.write_bytes(content)
    with pytest.raises(
        FormatError,
        match=f"found a database of format version {version}, expected version {FORMAT_VERSION}{hint}",
    ):
        open_database(out)


def test_other_files_are_no_database(tmp_path: Path) -> None:
    out = built_database(tmp_path)
    assert is_database(out)
    other = tmp_path / "other"
    for content, found in ((b">a\nMK\n", "FASTA text"), (b"PAR1abcd", "a file that starts with b'PAR1abcd'")):
        other.write_bytes(content)
        assert not is_database(other)
        with pytest.raises(
            FormatError, match=f"found {found}, expected a packed database made by 'plait search"
        ):
            open_database(other)
    with pytest.raises(FormatError, match="no such file"):
        is_database(tmp_path / "none")


def test_a_changed_header_is_noticed(tmp_path: Path) -> None:
    out = built_database(tmp_path)
    content = bytearray(out.read_bytes())
    content[40] ^= 1
    out.write_bytes(content)
    found, expected = zlib.crc32(content[16:HEADER_BYTES]), struct.unpack_from("<I", content, 12)[0]
    with pytest.raises(
        FormatError, match=f"found checksum {found:08x} of the header, expected {expected:08x}"
    ):
        open_database(out)
