"""``plait find``: formats of patterns, texts and outputs, and what is wrong with them."""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.bam import bam_records
from support.mapping import differs, reverse_complement

from plait.errors import InvalidInput
from plait.mapping.files import find_files
from plait.mapping.search import Finder, FindSettings

GUIDE = "GACGCATAAAGATGAGACGC"
SITE = "GACGCATATAGATGAGACGC"
HEAD = (
    "pattern_name\tpattern\tsequence_name\tstart\tend\tstrand\tdistance\tmismatches\tdna_bulges\t"
    "rna_bulges\tcigar\ttarget\tpam\n"
)
TEXT = "TT" + SITE + "TGGAACCGGTTNNNNACGTACGTAACC" + "GATTACAGATTACA" + "TTT"


def two_bit(sequences: dict[str, str], order: str = "<") -> bytes:
    """A 2bit file of sequences, with its runs of N and of lower case."""
    index, body = b"", b""
    first = 16 + sum(5 + len(name) for name in sequences)
    for name, text in sequences.items():
        index += struct.pack(f"{order}B", len(name)) + name.encode()
        index += struct.pack(f"{order}I", first + len(body))

        def runs(test: Any, text: str = text) -> bytes:
            marks = np.diff(np.array([0, *(test(c) for c in text), 0], np.int8))
            begins, ends = np.flatnonzero(marks == 1), np.flatnonzero(marks == -1)
            numbers = [begins.size, *begins.tolist(), *(ends - begins).tolist()]
            return struct.pack(f"{order}{len(numbers)}I", *numbers)

        codes = np.array(["TCAG".find(c.upper()) % 4 for c in text] + [0] * (-len(text) % 4), np.uint8)
        packed = (codes.reshape(-1, 4) << np.array([6, 4, 2, 0], np.uint8)).sum(axis=1).astype(np.uint8)
        body += struct.pack(f"{order}I", len(text)) + runs(lambda c: c in "Nn") + runs(str.islower)
        body += struct.pack(f"{order}I", 0) + packed.tobytes()
    return struct.pack(f"{order}4I", 0x1A412743, 0, len(sequences), 0) + index + body


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.fa").write_text(f">chr1 first\n{TEXT[:30]}\n{TEXT[30:]}\n>chr2\n{TEXT[::-1].lower()}\n")
    (tmp_path / "g.fa").write_text(f">g1\n{GUIDE}\n")
    return tmp_path


def rows(out: str) -> list[list[str]]:
    return [line.split("\t") for line in out.splitlines()[1:]]


def test_a_table_on_standard_output(plait: Any, here: Path) -> None:
    found = plait("find", "g.fa", "t.fa", "--mismatches", 1)
    assert found.status == 0
    assert (
        found.out
        == HEAD
        + "\t".join(
            ["g1", GUIDE, "chr1", "2", "22", "+", "1", "1", "0", "0", "8=1X11=", "GACGCATAtAGATGAGACGC", ""]
        )
        + "\n"
    )
    told = found.err.splitlines()[-1]
    assert told.startswith(
        f"plait: 1 pattern in 2 sequences ({2 * len(TEXT):,} letters): 1 hit, 0 without any"
    )


def test_guides(plait: Any, here: Path) -> None:
    found = plait("find", GUIDE, "t.fa", "--mismatches", 2, "--pam", "NGG")
    (row,) = rows(found.out)
    assert row == [
        GUIDE,
        GUIDE,
        "chr1",
        "2",
        "25",
        "+",
        "1",
        "1",
        "0",
        "0",
        "8=1X11=",
        "GACGCATAtAGATGAGACGC",
        "TGG",
    ]
    assert plait("find", GUIDE, "t.fa", "--mismatches", 0, "--pam", "NGG").out == HEAD
    bulged = GUIDE[:5] + "T" + GUIDE[5:12] + GUIDE[13:]
    found = plait(
        "find", bulged, "t.fa", "--mismatches", 2, "--pam", "NGG", "--dna-bulges", 1, "--rna-bulges", 1
    )
    (row,) = rows(found.out)
    assert row[3:5] == ["2", "25"] and row[8:10] == ["1", "1"] and row[12] == "TGG"


@pytest.mark.parametrize(
    "content",
    [
        f">g1\n{GUIDE[:7]}\n{GUIDE[7:]}\n",
        f"@g1\n{GUIDE}\n+\n{'I' * 20}\n",
        f"name\tsequence\ng1\t{GUIDE}\n",
        f"g1\t{GUIDE.lower()}\n",
        f"# of ours\n{GUIDE}\r\n",
        f"# of ours\nProtospacer\tlength\tmore\tName\n{GUIDE}\t20\tx\tg1\n",
        f"primer\t{GUIDE}\n".replace("primer", "g1") + f"primer\t{'C' * 20}\t\n",
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_files_of_patterns(plait: Any, here: Path, content: str, compressed: bool) -> None:
    raw = content.encode()
    (here / "p").write_bytes(gzip.compress(raw) if compressed else raw)
    (row,) = rows(plait("find", "p", "t.fa", "--mismatches", 1).out)
    assert row[0] in ("g1", GUIDE) and row[3:5] == ["2", "22"]


def test_a_first_pattern_with_the_name_of_a_column_is_no_header(plait: Any, here: Path) -> None:
    (here / "p").write_text(f"primer\t{GUIDE}\n")
    (row,) = rows(plait("find", "p", "t.fa", "--mismatches", 1).out)
    assert row[:2] == ["primer", GUIDE]


def test_input_of_cas_offinder(plait: Any, here: Path) -> None:
    (here / "cas.txt").write_text(f"t.fa\n{'N' * 20}NGG 1 1\n{GUIDE}NNN 2\n{GUIDE[1:]}ANNN 1 other\n")
    found = plait("find", "cas.txt", "--format", "cas-offinder")
    head, *lines = found.out.splitlines()
    assert head.split("\t")[:4] == ["#Bulge type", "crRNA", "DNA", "Chromosome"]
    assert f"X\t{GUIDE}NNN\tGACGCATAtAGATGAGACGCTGG\tchr1\t2\t+\t1\t0" in lines
    (here / "cas.txt").write_text(f"t.fa\n{'N' * 20}NGG\n{GUIDE}NNN\t2\n{GUIDE}NN 2\n")
    found = plait("find", "cas.txt")
    assert found.status == 2 and "cas.txt, line 4" in found.err


def texts_of(content: str) -> dict[str, bytes]:
    plain = content.encode()
    records = dict(part.split("\n", 1) for part in content.split(">")[1:])
    letters = {name.split()[0]: "".join(text.split()) for name, text in records.items()}
    fastq = "".join(f"@{name}\n{text}\n+\n{'I' * len(text)}\n" for name, text in letters.items())
    # As bgzip does: members of gzip, and an empty one at the end.
    blocks = b"".join(gzip.compress(plain[k : k + 40]) for k in range(0, len(plain), 40)) + gzip.compress(b"")
    return {
        "fa": plain,
        "fa.gz": gzip.compress(plain),
        "bgzf": blocks,
        "zst": pa.Codec("zstd").compress(plain, asbytes=True),
        "fq": fastq.encode(),
        "2bit": two_bit(letters),
        "2bit of another order": two_bit(letters, ">"),
    }


@pytest.mark.parametrize("kind", ["fa.gz", "bgzf", "zst", "fq", "2bit", "2bit of another order"])
def test_texts_of_every_kind(plait: Any, here: Path, kind: str) -> None:
    (here / "in").write_bytes(texts_of((here / "t.fa").read_text())[kind])
    words = ("--errors", 3, "--edits")
    assert plait("find", GUIDE, "in", *words).out == plait("find", GUIDE, "t.fa", *words).out


@pytest.mark.parametrize("words", [("--errors", 3, "--edits"), ("--pam", "NGG", "--mismatches", 5)])
def test_an_index_is_a_text(plait: Any, here: Path, words: tuple[object, ...]) -> None:
    (here / "u.fa").write_text((here / "t.fa").read_text() + ">empty\n>last\n" + "ACGTN" * 9 + SITE)
    assert plait("index", "u.fa", "-o", "u.plait-index").status == 0
    found = [plait("find", GUIDE, name, *words, "--format", "paf").out for name in ("u.fa", "u.plait-index")]
    assert found[0] == found[1] and found[0].count("\n") >= 1


def test_standard_input(plait: Any, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BytesIO((here / "t.fa").read_bytes())

    monkeypatch.setattr(sys, "stdin", Input)
    assert len(rows(plait("find", GUIDE, "-", "--mismatches", 1).out)) == 1


@pytest.mark.parametrize("name", ["o.tsv", "o.tsv.gz", "o.parquet", "o.jsonl", "o.bed", "o.paf", "o.txt"])
def test_every_format(plait: Any, here: Path, name: str) -> None:
    found = plait("find", "g.fa", "t.fa", "--mismatches", 1, "-o", name)
    assert (found.status, found.out) == (0, "")
    data = (here / name).read_bytes()
    data = gzip.decompress(data) if name.endswith(".gz") else data
    if name == "o.parquet":
        assert pq.read_table(here / name)["target"].to_pylist() == ["GACGCATAtAGATGAGACGC"]
    elif name == "o.jsonl":
        assert json.loads(data)["start"] == 2
    elif name == "o.bed":
        assert data == b"chr1\t2\t22\tg1\t900\t+\n"
    elif name == "o.paf":
        assert data.decode().split("\t")[:12] == [
            "g1", "20", "0", "20", "+", "chr1", str(len(TEXT)), "2", "22", "19", "20", "255"
        ]  # fmt: skip
    elif name == "o.txt":
        assert data.decode().splitlines()[1].startswith(f"X\t{GUIDE}\tGACGCATAtAGATGAGACGC\tchr1\t2\t+\t1\t0")
    else:
        assert data.decode().startswith(HEAD + "g1\t")
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


def from_tag(cigar: str, md: str, letters: str) -> str:
    """The text that an alignment is with: letters of the pattern, changed as the tag MD says."""
    own, at, found = iter(letters), 0, []
    for count, step in re.findall(r"(\d+)([=XID])", cigar):
        for _ in range(int(count)):
            found += [] if step == "D" else [next(own)]
            if step == "I":
                found.pop()
            elif step == "D":
                found.append("-")
    for count, removed, changed in re.findall(r"(\d+)(?:\^([A-Z]+)|([A-Z]))?", md):
        at += int(count)
        for letter in removed or changed:
            found[at] = letter
            at += 1
    return "".join(found)


ALIGNED = {
    "mismatches": ("--mismatches", 3),
    "edits": ("--errors", 3, "--edits"),
    "sites": ("--pam", "NGG", "--mismatches", 2, "--dna-bulges", 1, "--rna-bulges", 1),
    "sites before": (
        "--pam",
        "TTN",
        "--pam-side",
        5,
        "--mismatches",
        2,
        "--dna-bulges",
        1,
        "--rna-bulges",
        1,
    ),
}


@pytest.fixture
def planted_text(here: Path) -> dict[str, str]:
    """Two sequences with guides, some changed, on both strands, in `t.fa`; and `p.fa` with the guides."""
    rng = np.random.default_rng(4)
    letters = np.array(list("ACGT"))
    texts = {}
    for name in ("chr1", "chr2"):
        parts = []
        for k in range(8):
            own = list(GUIDE if k % 2 else "GATTACARATTACAGATTAC".replace("R", "AG"[k // 4]))
            own[int(rng.integers(20))] = str(rng.choice(letters))
            if k % 3 == 0:
                own.insert(int(rng.integers(4, 16)), "T")
            site = "TTA" + "".join(own) + "AGG"
            parts.append(reverse_complement(site) if k > 4 else site)
            parts.append("".join(rng.choice(letters, 30)))
        texts[name] = "".join(parts)
    (here / "t.fa").write_text("".join(f">{name}\n{text}\n" for name, text in texts.items()))
    (here / "p.fa").write_text(f">g1\n{GUIDE}\n>r\nGATTACARATTACAGATTAC\n>no\n{'C' * 30}\n>shrt\nAC\n")
    return texts


@pytest.mark.parametrize("case", ALIGNED)
def test_alignments_of_all_formats_are_those_of_the_table(
    plait: Any, here: Path, planted_text: dict[str, str], case: str
) -> None:
    def found(kind: str) -> str:
        return plait("find", "p.fa", "t.fa", *ALIGNED[case], "--format", kind).out

    table = [dict(zip(HEAD.strip().split("\t"), row, strict=True)) for row in rows(found("tsv"))]
    assert {row["strand"] for row in table} == {"+", "-"} and len(table) > 8
    first = (case == "sites before", "+"), (case != "sites before", "-")
    expected = []
    for row in table:
        shift = len(row["pam"]) if (True, row["strand"]) in first else 0
        start, end = int(row["start"]) + shift, int(row["end"]) - len(row["pam"]) + shift
        place = row["pattern_name"], row["sequence_name"], start, end, row["strand"], row["cigar"]
        expected.append((*place, int(row["distance"])))
    paf = [line.split("\t") for line in found("paf").splitlines()]
    assert [
        (
            f[0],
            f[5],
            int(f[7]),
            int(f[8]),
            f[4],
            f[13].removeprefix("cg:Z:"),
            int(f[12].removeprefix("NM:i:")),
        )
        for f in paf
    ] == expected
    assert {f[6] for f in paf} <= {str(len(text)) for text in planted_text.values()}
    lines = [line.split("\t") for line in found("sam").splitlines()]
    records = [line for line in lines if not line[0].startswith("@") and line[2] != "*"]
    patterns = {"g1": GUIDE, "r": "GATTACARATTACAGATTAC"}
    for line, (name, sequence, start, end, strand, cigar, distance) in zip(records, expected, strict=True):
        flag = int(line[1])
        assert (line[0], line[2], int(line[3]) - 1, line[5]) == (name, sequence, start, cigar)
        assert "+-"[flag >> 4 & 1] == strand and line[11] == f"NM:i:{distance}"
        letters = patterns[name] if strand == "+" else reverse_complement(patterns[name])
        assert line[9] == ("*" if flag & 256 else letters)
        text = planted_text[sequence][start:end]
        tag = line[14].removeprefix("MD:Z:")
        assert not any(differs(p, t) for p, t in zip(from_tag(cigar, tag, letters), text, strict=True))
    for name in patterns:
        own = [line for line in records if line[0] == name]
        assert [line[12:14] for line in own] == [
            [f"NH:i:{len(own)}", f"HI:i:{k}"] for k in range(1, len(own) + 1)
        ]
        counts = [int(line[11].removeprefix("NM:i:")) for line in own]
        assert [not int(line[1]) & 256 for line in own].index(True) == counts.index(min(counts))
        assert sum(not int(line[1]) & 256 for line in own) == 1
    assert [line[:2] + line[11:] for line in lines[-2:]] == [
        ["no", "4", "NH:i:0"], ["shrt", "4", "NH:i:0", "YS:Z:too_short"]
    ]  # fmt: skip
    assert plait("find", "p.fa", "t.fa", *ALIGNED[case], "-o", "o.bam").status == 0
    assert bam_records((here / "o.bam").read_bytes())[1] == [f for f in lines if not f[0].startswith("@")]


def test_pysam_reads_bam(plait: Any, here: Path, planted_text: dict[str, str]) -> None:
    pysam = pytest.importorskip("pysam", reason="pysam is not installed")
    for words in (("find", "p.fa", "t.fa", *ALIGNED["edits"]), ("map", "r.fa", "t.fa", "--errors", 2)):
        (here / "r.fa").write_text("".join(f">{n}\n{t[9:209]}\n" for n, t in planted_text.items()))
        for kind in ("bam", "sam"):
            assert plait(*words, "-o", f"o.{kind}").status == 0
            with pysam.AlignmentFile(here / f"o.{kind}") as file:
                assert dict(zip(file.references, file.lengths, strict=True)) == {
                    name: len(text) for name, text in planted_text.items()
                }
                records = list(file)
            primary = [r for r in records if not (r.is_secondary or r.is_unmapped)]
            assert len(primary) == 2 and len(records) >= 2
            for record in primary:
                own = planted_text[record.reference_name][record.reference_start : record.reference_end]
                # Codes of the pattern that a letter matches stand for it.
                read = record.get_reference_sequence().upper()
                assert len(read) == len(own)
                assert not any(differs(p, t) for p, t in zip(read, own, strict=True))


@pytest.mark.parametrize(("strand", "hits"), [("+", 1), ("-", 0), ("both", 1)])
def test_strands(plait: Any, here: Path, strand: str, hits: int) -> None:
    found = plait("find", "g.fa", "t.fa", "--mismatches", 1, "--strand", strand)
    assert (found.status, len(rows(found.out))) == (0, hits)


def test_counts(plait: Any, here: Path) -> None:
    found = plait("find", "g.fa", "t.fa", "--mismatches", 1, "--count-only")
    assert rows(found.out) == [["g1", GUIDE, "ok", "0", "0"], ["g1", GUIDE, "ok", "1", "1"]]


def test_what_may_be_a_mistake_is_told(plait: Any, here: Path) -> None:
    (here / "u.fa").write_text(f">chr1\nMKVL-*{GUIDE}\n>chr1\n{GUIDE}\n")
    found = plait("find", GUIDE, "u.fa", "--mismatches", 0, "--max-hits", 1)
    assert len(rows(found.out)) == 1
    assert f"warning: 1 of 1 patterns too many hits: {GUIDE} (2)\n" in found.err
    assert "warning: several sequences are named chr1\n" in found.err
    assert "warning: the texts have '*', '-', 'L', which match nothing\n" in found.err
    found = plait("find", GUIDE, "u.fa", "--mismatches", 0, "-o", "o.sam")
    assert found.status == 2 and "several sequences named 'chr1'" in found.err
    assert not (here / "o.sam").exists()


def test_products_of_primers(plait: Any, here: Path) -> None:
    (here / "primers.tsv").write_text("f\tGACGCATATAGA\nr\tTGTAATCTGTAATC\n")
    found = plait("find", "primers.tsv", "t.fa", "--mismatches", 1, "--pairs", "--max-product", 100)
    end = TEXT.index("GATTACAGATTACA") + 14
    assert rows(found.out) == [["f", "r", "chr1", "2", str(end), str(end - 2), "0", "0"]]
    assert rows(plait("find", "primers.tsv", "t.fa", "--pairs", "--max-product", end - 3).out) == []


def test_barcodes_of_reads(plait: Any, here: Path) -> None:
    (here / "b.tsv").write_text("b1\tACGTACGTAC\nb2\tTTTTCCCCGG\nb3\tACGTACGTGG\n")
    reads = ["ACGTACGTACTTTT", "TTTTCCCGGAAAAA", "ACGTACGTACC"[:8] + "AGTT", "GGGGGGGGGGGGGG"]
    (here / "r.fq").write_text("".join(f"@r{k}\n{r}\n+\n{'I' * len(r)}\n" for k, r in enumerate(reads)))
    words = ("find", "b.tsv", "r.fq", "--errors", 1, "--edits", "--anchored", "--demultiplex")
    assert rows(plait(*words).out) == [
        ["r0", "assigned", "b1", "0"],
        ["r1", "assigned", "b2", "1"],
        ["r2", "ambiguous", "", "1"],
        ["r3", "none", "", ""],
    ]
    assert plait(*words[:-2], "--demultiplex").status == 2


def test_statuses(plait: Any, here: Path) -> None:
    (here / "p.tsv").write_text(f"s\tACG\nl\t{'A' * 65}\nm\tACGTACGT\ng\t{GUIDE}\n")
    found = plait("find", "p.tsv", "t.fa", "--mismatches", 4)
    assert found.status == 0
    for status in ("too short: s", "too long: l", "errors too many: m"):
        assert f"plait: warning: 1 of 4 patterns {status}\n" in found.err
    counts = rows(plait("find", "p.tsv", "t.fa", "--mismatches", 4, "--count-only").out)
    assert {(row[0], row[2]) for row in counts} == {
        ("s", "too_short"), ("l", "too_long"), ("m", "errors_too_many"), ("g", "ok")
    }  # fmt: skip
    found = plait("find", "ACGTACGT", "t.fa", "--mismatches", 1, "--max-hits", 1)
    assert "too many hits: ACGTACGT" in found.err and len(rows(found.out)) == 1


WRONG = {
    "no letter": (("find", "bad.tsv", "t.fa"), ("bad.tsv, line 2", "'X'", "IUPAC")),
    "names": (("find", "twice.tsv", "t.fa"), ("twice.tsv, line 2", "second pattern named 'a'")),
    "no patterns": (("find", "empty.tsv", "t.fa"), ("empty.tsv", "empty file")),
    "no sequence": (("find", "few.tsv", "t.fa"), ("few.tsv, line 2", "1 columns")),
    "empty sequence": (("find", "none.tsv", "t.fa"), ("1 that cannot be looked for (too_short)",)),
    "columns": (("find", "wide.tsv", "t.fa"), ("wide.tsv, line 1", "4 columns")),
    "no text": (("find", GUIDE), ("text", "none")),
    "missing text": (("find", GUIDE, "none.fa"), ("none.fa", "no such file")),
    "no FASTA": (("find", GUIDE, "g.txt"), ("g.txt", "expected FASTA, FASTQ or 2bit")),
    "cut 2bit": (("find", GUIDE, "cut.2bit"), ("cut.2bit", "an end after")),
    "2bit of another version": (("find", GUIDE, "old.2bit"), ("old.2bit", "version 7")),
    "short": (("find", "ACGT", "t.fa"), ("too_short",)),
    "too many errors": (("find", "ACGTACGT", "t.fa", "--errors", "4"), ("errors_too_many",)),
    "PAM of N": (("find", GUIDE, "t.fa", "--pam", "NN"), ("pam", "letter other than N")),
    "PAM with another letter": (("find", GUIDE, "t.fa", "--pam", "NXG"), ("pam", "IUPAC")),
    "negative": (("find", GUIDE, "t.fa", "--mismatches", "-1"), ("mismatches", "at least 0")),
    "bulges alone": (("find", GUIDE, "t.fa", "--dna-bulges", "1"), ("bulges", "a PAM")),
    "side of no PAM": (("find", GUIDE, "t.fa", "--pam-side", "5"), ("pam_side: found 5 alone", "a PAM, too")),
    "errors of no PAM": (("find", GUIDE, "t.fa", "--pam-mismatches", "1"), ("pam_mismatches", "a PAM, too")),
    "strata of all": (("find", GUIDE, "t.fa", "--strata", "1"), ("strata", "the report best")),
    "no product": (("find", GUIDE, "t.fa", "--pairs", "--max-product", "0"), ("max_product", "at least 1")),
    "side": (("find", GUIDE, "t.fa", "--pam", "NGG", "--pam-side", "4"), ("pam_side", "3, 5")),
    "input as output": (("find", GUIDE, "t.fa", "-o", "t.fa"), ("t.fa",)),
    "overhang of edits": (("find", GUIDE, "t.fa", "--edits", "--errors", "1", "--overhang"), ("overhang",)),
    "ends without starts": (
        ("find", GUIDE, "t.fa", "--errors", "1", "--edits", "--report", "ends", "--format", "bed"),
        ("format: found bed", "ends, which have no start"),
    ),
    "overhang of alignments": (
        ("find", GUIDE, "t.fa", "--mismatches", "1", "--overhang", "-o", "o.bam"),
        ("format: found bam with overhang",),
    ),
    "bytes": (("find", GUIDE, "binary.fa"), ("binary.fa", "line 2")),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_requests_and_files(plait: Any, here: Path, case: str) -> None:
    (here / "bad.tsv").write_text("a\tACGTACGTA\nb\tACGTXACGT\n")
    (here / "twice.tsv").write_text("a\tACGTACGTA\na\tACGTACGTC\n")
    (here / "empty.tsv").write_text("")
    (here / "few.tsv").write_text("a\tACGTACGTA\nACGTACGTAC\n")
    (here / "none.tsv").write_text("ACGTACGTA\t\n")
    (here / "wide.tsv").write_text("a\tACGTACGTA\tNGG\tmore\n")
    (here / "g.txt").write_text("chr1\nACGT\n")
    (here / "cut.2bit").write_bytes(two_bit({"a": "ACGTN" * 40})[:-9])
    (here / "old.2bit").write_bytes(struct.pack("<4I", 0x1A412743, 7, 0, 0))
    (here / "binary.fa").write_bytes(b">a\nAC\x01GT\n")
    words, said = WRONG[case]
    found = plait(*words)
    assert found.status == 2
    assert found.out == ""
    for text in said:
        assert text in found.err
    assert (found.err.count("\n") <= 2 and "found" in found.err and "expected" in found.err) or case in (
        "input as output",
        "overhang of edits",
    )


@pytest.mark.slow
def test_as_a_process(here: Path) -> None:
    words = [sys.executable, "-m", "plait", "find", GUIDE, "t.fa", "--mismatches", "1"]
    found = subprocess.run(words, capture_output=True, text=True, check=True)
    assert len(rows(found.stdout)) == 1


@pytest.fixture
def two_texts(here: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A 2bit file of which each sequence makes a part, and a FASTA file that is one."""
    monkeypatch.setattr("plait.mapping.find_parts.BLOCK_LETTERS", 8)
    other = {"chr7": TEXT * 3, "chr8": "ACGT" * 30, "none": "", "chr9": reverse_complement(TEXT)}
    (here / "t.2bit").write_bytes(two_bit(other))
    return "t.2bit", "t.fa"


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("--mismatches", 2), ("--errors", 3, "--edits"), ("--mismatches", 1, "--pam", "NGG")]
)
def test_parts_have_the_rows_of_a_table(
    plait: Any, here: Path, two_texts: tuple[str, ...], words: Any
) -> None:
    one = plait("find", "g.fa", *two_texts, *words, "-o", "o.parquet")
    found = plait("find", "g.fa", *two_texts, *words, "-o", "o/")
    assert one.status == found.status == 0
    assert re.sub(r" in [0-9.]+ s,.*", "", one.err) == re.sub(r" in [0-9.]+ s,.*", "", found.err)
    assert pq.read_table("o").equals(pq.read_table("o.parquet")), found.err
    assert pq.read_table("o").num_rows > 3
    assert len(list((here / "o").glob("*.parquet"))) >= 3


@pytest.mark.slow
def test_workers_write_the_same_parts(
    plait: Any, here: Path, two_texts: tuple[str, ...], dask_address: str
) -> None:
    words = ("find", "g.fa", *two_texts, "--mismatches", 2, "-o")
    assert plait(*words, "here/").status == 0
    assert plait(*words, "there/", "--executor", "dask", "--scheduler", dask_address).status == 0
    names = {path.name for path in (here / "here").iterdir()}
    assert names == {path.name for path in (here / "there").iterdir()}
    for name in names:
        assert (here / "here" / name).read_bytes() == (here / "there" / name).read_bytes(), name


def test_a_search_that_was_stopped_goes_on(
    plait: Any, here: Path, two_texts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = []

    class Stopped(Finder):
        def __init__(self, *given: Any) -> None:
            searched.append(given)
            if len(searched) == limit:
                raise KeyboardInterrupt
            super().__init__(*given)

    monkeypatch.setattr("plait.mapping.find_parts.Finder", Stopped)
    limit, words = 3, (GUIDE, two_texts, "o/", FindSettings(mismatches=2))
    with pytest.raises(KeyboardInterrupt):
        find_files(*words)
    assert not (here / "o").exists()
    limit = 0
    done = find_files(*words, resume=True)
    # Of four parts, the two that were there are not searched again.
    assert len(searched) == 3 + 2
    assert done == find_files(GUIDE, two_texts, "whole/", FindSettings(mismatches=2))
    for path in (here / "whole").iterdir():
        assert path.read_bytes() == (here / "o" / path.name).read_bytes()
    with pytest.raises(InvalidInput, match="resume"):
        find_files(SITE, two_texts, "o.tsv", resume=True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-o", "o.tsv", "--resume"), "resume: found the output 'o.tsv', expected a folder of parts"),
        (("-o", "o/", "--report", "best", "--resume"), "not of the best"),
        pytest.param(
            ("-o", "o.bed", "--executor", "dask", "--workers", "1"),
            "executor: found the output 'o.bed'",
            marks=pytest.mark.slow,
        ),
        (("-o", "o/", "--part-rows", "7"), "part_rows: found 7, expected none"),
        (("-o", "o.tsv", "--partition", "pattern"), "partition: found the output 'o.tsv'"),
        (("-o", "o/", "--partition", "score"), "score"),
    ],
)
def test_wrong_requests_of_parts(plait: Any, here: Path, words: tuple[str, ...], told: str) -> None:
    found = plait("find", "g.fa", "t.fa", "--mismatches", "2", *words)
    assert found.status == 2
    assert told in found.err
    assert not list(here.glob("o*"))
