"""``plait index`` and ``plait map``, from file to file."""

from __future__ import annotations

import gzip
import random
import re
import struct
import sys
import zlib

import numpy as np
import pyarrow.parquet
import pytest
from support.bam import bam_records
from support.mapping_truth import all_loci, reverse_complement

from plait.errors import FormatError
from plait.formats.files import fast_zlib
from plait.mapping import Index
from plait.mapping.map_files import map_files
from plait.mapping.records import bgzf
from plait.run.executor import LocalExecutor

LETTERS = np.array(list("ACGT"))


@pytest.fixture(scope="module")
def contigs():
    rng = np.random.default_rng(5)
    repeat = "".join(rng.choice(LETTERS, 90))
    texts = {f"chr{k}": "".join(rng.choice(LETTERS, 700)) + repeat for k in range(3)}
    return texts | {"empty": "", "small": "acgtnnacg"}


@pytest.fixture(scope="module")
def reads(contigs):
    first = contigs["chr0"]
    return {
        "repeat": first[-80:],
        "turned": reverse_complement(first[100:180]),
        "other": first[200:240] + ("A" if first[240] != "A" else "C") + first[241:280],
        "longer": first[300:340] + "GA" + first[340:380],
        "lost": "ACGT" * 20,
        "short": "ACGT",
        "wild": first[400:480].lower(),
    }


@pytest.fixture
def here(tmp_path, monkeypatch, contigs, reads):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.fa").write_text("".join(f">{name} some text\n{text}\n" for name, text in contigs.items()))
    (tmp_path / "r.fq").write_text(
        "".join(f"@{name}\n{text}\n+\n{'I' * (len(text) - 1)}5\n" for name, text in reads.items())
    )
    (tmp_path / "r.fa").write_text("".join(f">{name}\n{text}\n" for name, text in reads.items()))
    return tmp_path


def sam_rows(text):
    return [line.split("\t") for line in text.splitlines() if not line.startswith("@")]


def loci_of(rows):
    """(read, contig, strand, end, distance) of the mapped lines of SAM."""
    found = set()
    for row in rows:
        if int(row[1]) & 4:
            continue
        size = sum(int(count) for count, step in re.findall(r"(\d+)([=XID])", row[5]) if step != "I")
        strand = "-" if int(row[1]) & 16 else "+"
        found.add((row[0], row[2], strand, int(row[3]) - 1 + size, int(row[11].removeprefix("NM:i:"))))
    return found


def test_sam_has_every_locus(plait, here, reads, contigs):
    found = plait("map", "r.fq", "g.fa", "--errors", 3)
    assert found.status == 0
    assert "5 mapped; 1 unmapped; 1 too_short; 7 loci" in found.err
    rows = sam_rows(found.out)
    mapped = {name: text for name, text in reads.items() if name != "short"}
    assert loci_of(rows) == all_loci(mapped, contigs, 3)
    header = [line for line in found.out.splitlines() if line.startswith("@SQ")]
    assert header == [f"@SQ\tSN:{name}\tLN:{len(text)}" for name, text in contigs.items() if text]
    by_name = {row[0]: row for row in reversed(rows)}
    # The first line of a read has its letters, those of the text's strand; others have none.
    assert by_name["turned"][9] == reverse_complement(reads["turned"]) and by_name["turned"][1] == "16"
    assert by_name["turned"][10] == "5" + 79 * "I"
    assert by_name["wild"][9] == reads["wild"].upper()
    repeat = [row for row in rows if row[0] == "repeat"]
    assert [row[1] for row in repeat] == ["0", "256", "256"] and [row[9] for row in repeat[1:]] == ["*", "*"]
    assert [row[12:14] for row in repeat] == [["NH:i:3", f"HI:i:{k}"] for k in (1, 2, 3)]
    assert by_name["other"][5] == "40=1X39=" and by_name["other"][14] == f"MD:Z:40{contigs['chr0'][240]}39"
    assert by_name["longer"][5].count("I") >= 1 and by_name["longer"][11] == "NM:i:2"
    assert by_name["lost"][1:6] == ["4", "*", "0", "0", "*"]
    assert by_name["short"][-1] == "YS:Z:too_short" and by_name["short"][1] == "4"


def test_an_index_changes_nothing(plait, here):
    usual = plait("map", "r.fa", "g.fa", "--errors", 2).out
    assert all(row[10] == "*" for row in sam_rows(usual))
    made = plait("index", "g.fa", "-o", "g.plait-index", "--threads", 2)
    assert made.status == 0 and "5 contigs, 2,379 letters" in made.err
    assert plait("index", "g.fa", "--check", "g.plait-index").status == 0
    for threads in (1, 3):
        assert plait("map", "r.fa", "g.plait-index", "--errors", 2, "--threads", threads).out == usual
    assert plait("map", "r.fa", "g.fa", "--error-rate", 2.5).status == 0


@pytest.mark.parametrize("reads_file", ["r.fq", "r.fa"])
def test_bam_is_sam(plait, here, reads_file):
    text = plait("map", reads_file, "g.fa", "--errors", 3).out
    assert plait("map", reads_file, "g.fa", "--errors", 3, "-o", "o.bam").status == 0
    data = (here / "o.bam").read_bytes()
    assert data.endswith(bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000"))
    header, rows = bam_records(data)
    assert rows == sam_rows(text)
    assert header.splitlines()[:5] == text.splitlines()[:5]
    # Every block says how long it is.
    at = 0
    while at < len(data):
        assert data[at : at + 4] == b"\x1f\x8b\x08\x04" and data[at + 12 : at + 16] == b"BC\2\0"
        at += struct.unpack_from("<H", data, at + 16)[0] + 1
    assert at == len(data)


@pytest.mark.parametrize("isal", [True, False])
def test_blocks_of_bgzf(monkeypatch, isal):
    fast_zlib.cache_clear()
    if isal:
        pytest.importorskip("isal", reason="isal is not installed: pip install 'plait[fast]'")
    else:
        monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    try:
        assert (fast_zlib() is zlib) == (not isal)
        # Random bytes, which no code makes shorter, have to fit a block, too.
        text = random.Random(5).randbytes(200_000) + bytes(100_000)
        data = bgzf(text)
        assert gzip.decompress(data) == text
        at = 0
        while at < len(data):
            at += struct.unpack_from("<H", data, at + 16)[0] + 1
        assert at == len(data)
    finally:
        fast_zlib.cache_clear()


def test_tables_and_paf_are_sam(plait, here, reads, contigs):
    rows = sam_rows(plait("map", "r.fq", "g.fa", "--errors", 3).out)
    assert plait("map", "r.fq", "g.fa", "--errors", 3, "-o", "o.parquet").status == 0
    table = pyarrow.parquet.read_table(here / "o.parquet").to_pylist()
    assert len(table) == len(rows)
    for row, line in zip(table, rows, strict=True):
        assert row["read"] == line[0] and row["mate"] is None
        if int(line[1]) & 4:
            assert row["contig"] is row["start"] is row["cigar"] is None and row["loci"] == 0
            assert row["status"] == ("too_short" if row["read"] == "short" else "unmapped")
            continue
        assert (row["contig"], row["start"] + 1, row["cigar"]) == (line[2], int(line[3]), line[5])
        assert row["strand"] == ("-" if int(line[1]) & 16 else "+")
        assert line[11:15] == [
            f"NM:i:{row['distance']}",
            f"NH:i:{row['loci']}",
            f"HI:i:{row['rank']}",
            f"MD:Z:{row['md']}",
        ]
    paf = [
        line.split("\t")
        for line in plait("map", "r.fq", "g.fa", "--errors", 3, "--format", "paf").out.splitlines()
    ]
    found = {(line[0], line[5], line[4], int(line[8]), int(line[12].removeprefix("NM:i:"))) for line in paf}
    assert found == loci_of(rows)
    for line in paf:
        assert int(line[6]) == len(contigs[line[5]]) and int(line[1]) == int(line[3]) == len(reads[line[0]])
        assert int(line[10]) - int(line[9]) == int(line[12].removeprefix("NM:i:"))


def test_mates_reports_and_qualities(plait, here):
    (here / "m.fq").write_text((here / "r.fq").read_text())
    found = plait("map", "r.fq", "g.fa", "--mate", "m.fq", "--errors", 0, "--mapq", "unique")
    rows = sam_rows(found.out)
    assert [row[0] for row in rows if not int(row[1]) & 256][:4] == ["repeat", "repeat", "turned", "turned"]
    by_mate = {k: [row[:11] for row in rows if f"FI:i:{k}" in row and "TC:i:2" in row] for k in (1, 2)}
    assert by_mate[1] == by_mate[2] and 2 * len(by_mate[1]) == len(rows)
    assert {row[0]: row[4] for row in rows} == {
        "repeat": "0", "turned": "60", "other": "0", "longer": "0", "lost": "0", "short": "0", "wild": "60"
    }  # fmt: skip
    best = plait("map", "r.fq", "g.fa", "--errors", 3, "--report", "best", "--max-hits", 2)
    rows = {row[0]: row for row in sam_rows(best.out)}
    assert rows["repeat"][1] == "4" and rows["repeat"][-2:] == ["NH:i:3", "YS:Z:too_many_hits"]


@pytest.fixture
def parts_of_a_block(monkeypatch):
    monkeypatch.setattr("plait.mapping.mapper.BLOCK_READS", 2)
    monkeypatch.setattr("plait.mapping.map_parts._MOST_BLOCKS", 1)


def test_a_folder_of_parts_is_the_table(plait, here, parts_of_a_block):
    assert plait("map", "r.fq", "g.fa", "--errors", "2", "-o", "o.parquet").status == 0
    assert plait("map", "r.fq", "g.fa", "--errors", "2", "-o", "o/", "--threads", "2").status == 0
    assert len(list((here / "o").glob("*.parquet"))) == 4
    assert pyarrow.parquet.read_table("o").equals(pyarrow.parquet.read_table("o.parquet"))


@pytest.mark.slow
def test_workers_write_the_same_bytes(plait, here, parts_of_a_block, dask_address):
    assert plait("index", "g.fa", "-o", "g.plait-index").status == 0
    there = "--executor", "dask", "--scheduler", dask_address
    for output in ("parts/", "o.sam", "o.bam", "o.parquet"):
        for folder, words in (("here", ()), ("there", there)):
            (here / folder).mkdir(exist_ok=True)
            words = ("map", "r.fq", "g.plait-index", "--mate", "r.fa", "-o", f"{folder}/{output}", *words)
            assert plait(*words).status == 0
        files = [file.name for file in (here / "here" / output).glob("*")] or [""]
        for file in files:
            one, other = (here / folder / output / file for folder in ("here", "there"))
            assert one.read_bytes() == other.read_bytes(), file


def test_a_run_that_was_stopped_goes_on(here, parts_of_a_block, plait):
    def stop(reads):
        if reads == 4:
            raise KeyboardInterrupt

    words = (["r.fq"], "g.fa", "o/")
    with pytest.raises(KeyboardInterrupt):
        map_files(*words, executor=LocalExecutor(1), progress=stop)
    assert not (here / "o").exists()
    seen = []
    map_files(*words, executor=LocalExecutor(1), resume=True, progress=seen.append)
    map_files(*words[:2], "whole/")
    assert seen == [2, 4, 6, 7]
    for path in (here / "whole").glob("*"):
        assert path.read_bytes() == (here / "o" / path.name).read_bytes()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-o", "o.sam", "--resume"), "resume: found the output 'o.sam', expected a folder of parts"),
        pytest.param(
            ("-o", "o/", "--executor", "dask", "--workers", "1"),
            "reference: found an index in memory",
            marks=pytest.mark.slow,
        ),
        (("-o", "o/", "--partition", "score"), "score"),
    ],
)
def test_wrong_requests_of_parts(plait, here, words, told):
    found = plait("map", "r.fq", "g.fa", *words)
    assert found.status == 2
    assert told in found.err
    assert not (here / "o").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("map", "r.fq"), "files: found 1 file, expected at least one file of reads"),
        (("map", "r.fq", "nothing.fa"), "nothing.fa"),
        (("map", "nothing.fq", "g.fa"), "nothing.fq"),
        (("map", "r.fq", "g.fa", "--errors", "40"), "errors: found 40"),
        (("map", "r.fq", "g.fa", "--errors", "2", "--error-rate", "3"), "one or the other"),
        (("map", "r.fq", "g.fa", "--report", "some"), "report"),
        (("map", "r.fq", "g.fa", "-o", "o.txt"), "o.txt"),
        (("map", "r.fq", "g.fa", "-o", "g.fa", "--format", "sam"), "g.fa"),
        (("map", "bad.fq", "g.fa"), "bad.fq, line 6"),
        (("map", "r.fq", "bad.fa"), "bad.fa, line 1: found '-' at position 3 of 'x'"),
        (("map", "r.fq", "twice.fa"), "a second sequence named 'x'"),
        (("map", "r.fq", "g.fa", "--mate", "m.fq"), "m.fq"),
        (("index", "g.fa"), "-o NAME.plait-index"),
        (("index", "g.fa", "-o", "i", "--seed-length", "20"), "seed_length"),
        (("index", "other.fa", "--check", "i.plait-index"), "another text"),
        (("index", "g.fa", "--check", "g.fa"), "expected an index"),
    ],
)
def test_wrong_requests(plait, here, words, told):
    (here / "bad.fq").write_text("@a\nACGT\n+\nIIII\n@b\nAC!T\n+\nIIII\n")
    (here / "bad.fa").write_text(">x\nAC-GT\n")
    (here / "twice.fa").write_text(">x\nACGT\n>x\nACGT\n")
    (here / "other.fa").write_text(">chr0\nACGT\n")
    (here / "m.fq").write_text("@a\nACGT\n+\nIIII\n")
    if "--check" in words and "i.plait-index" in words:
        Index.build("g.fa").save("i.plait-index")
    found = plait(*words)
    assert found.status == 2
    assert told in found.err
    assert not list(here.glob("*.partial"))


@pytest.mark.parametrize(
    "damage", ["version", "newer", "header", "cut", "longer", "words", "entries", "empty", "text"]
)
def test_damaged_indexes(tmp_path, damage):
    path = tmp_path / "i.plait-index"
    Index.build({"c": "ACGTTGCATG" * 40}).save(path)
    data = bytearray(path.read_bytes())
    told = "checksum"
    if damage in ("version", "newer"):
        data[8] = 0 if damage == "version" else 9
        told = "format version"
    elif damage == "header":
        data[40] ^= 1
    elif damage in ("cut", "longer"):
        data = data[:-9] if damage == "cut" else data + b"more"
        told = "bytes"
    elif damage == "words":
        data[12288 + 400] ^= 4
    elif damage == "entries":
        data[-8] ^= 255
    else:
        data = bytearray() if damage == "empty" else bytearray(b">c\nACGT\n")
        told = "expected an index"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=told):
        Index.open(path)


def test_an_index_that_says_what_is_not_so(tmp_path):
    """Places are checked, for kernels use them: a forged table with right checksums is refused."""
    made = Index.build({"c": "ACGTTGCATG" * 40})
    start = made.arrays.start.copy()
    start[5], start[6] = 400, 3
    Index(made.genome, made.arrays._replace(start=start)).save(tmp_path / "f")
    with pytest.raises(FormatError, match="its tables"):
        Index.open(tmp_path / "f")
    entries = made.arrays.entries.copy()
    entries[7] |= 0xFFFFFFFF
    Index(made.genome, made.arrays._replace(entries=entries)).save(tmp_path / "f")
    with pytest.raises(FormatError, match="its tables"):
        Index.open(tmp_path / "f")
