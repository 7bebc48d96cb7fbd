"""Bad input ends in exit status 2 and one message that says where, what was found and what was expected."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

BASE = ("--germline", "mouse_trb", "--device", "reference")
HEADER = "sequence_id\tjunction\tv_call\tj_call\n"
ROW = "a\tTGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC\tTRBV13-1\tTRBJ2-7\n"


def left(folder: Path) -> list[str]:
    """Names in a folder but for the input."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("in."))


def truncated(content: bytes) -> bytes:
    packed = gzip.compress(content * 500)
    return packed[: len(packed) // 2]


def no_junction(name: str) -> str:
    return name.replace("junction", "cdr3")


FILES: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "empty": ("in.tsv", b"", ("in.tsv", "found an empty file", "expected")),
    "empty-gz": ("in.tsv.gz", gzip.compress(b""), ("in.tsv.gz", "found", "expected")),
    "missing-column": (
        "in.tsv",
        (no_junction(HEADER) + ROW).encode(),
        ("in.tsv", "found the columns 'sequence_id', 'cdr3'", "missing: junction"),
    ),
    "other-layout": (
        "in.tsv",
        b"CDR3.nt\tV.name\n",
        ("in.tsv", "expected layout 'immunarch'", "missing: J.name or J.gene", "--column j_call=NAME"),
    ),
    "10x-without-v": (
        "in.csv",
        b"barcode,chain,j_gene,cdr3,cdr3_nt\nAAAC-1,TRB,TRBJ2-7,CASSF,TGTGCCAGCAGCTTC\n",
        ("in.csv", "expected layout '10x'", "(missing: v_gene), or a table of airr, ", "v_call=NAME"),
    ),
    "reads": (
        "in.fq",
        b"@r\nACGT\n+\nIIII\n",
        ("found the columns '@r'", "plait vdj annotate makes such a table"),
    ),
    "ragged-short": (
        "in.tsv",
        (HEADER + ROW * 2 + "b\tTGT\n" + ROW).encode(),
        ("in.tsv, line 4", "found 2", "expected 4"),
    ),
    "ragged-long": (
        "in.tsv",
        (HEADER + ROW + ROW.rstrip() + "\tmore\n").encode(),
        ("in.tsv, line 3", "found 5", "expected 4"),
    ),
    "binary": ("in.tsv", bytes(range(256)) * 20, ("in.tsv", "found", "expected")),
    "binary-cell": (
        "in.tsv",
        (HEADER + ROW).encode() + b"b\tTG\xff\xfe\tTRBV1\tTRBJ1-1\n",
        ("in.tsv", "found", "UTF-8"),
    ),
    "truncated-gz": ("in.tsv.gz", truncated((HEADER + ROW).encode()), ("in.tsv.gz", "found", "expected")),
    "no-gz": ("in.tsv.gz", b"\x1f\x8b" + b"x" * 100, ("in.tsv.gz", "found", "expected")),
    "broken-parquet": ("in.parquet", b"PAR1" + b"\0" * 50 + b"PAR1", ("in.parquet", "found", "expected")),
}


@pytest.mark.parametrize("case", FILES)
def test_files(plait: Any, tmp_path: Path, case: str) -> None:
    name, content, told = FILES[case]
    path = tmp_path / name
    path.write_bytes(content)
    found = plait("vdj", "count", path, *BASE, "-o", tmp_path / "out.parquet")
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith(f"plait: error: {path}") and found.err.count("\n") == 1
    assert [text for text in told if text not in found.err] == []
    assert left(tmp_path) == []


def test_an_older_output_survives(plait: Any, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text(HEADER + "b\tTGT\n")
    out = tmp_path / "out.tsv"
    out.write_text("of yesterday")
    assert plait("vdj", "count", tmp_path / "in.tsv", *BASE, "-o", out).status == 2
    assert out.read_text() == "of yesterday"
    assert left(tmp_path) == ["out.tsv"]


TWO_OUTPUTS = (
    ("vdj", "sharing", "in.tsv", "-o", "out.tsv", "--by-subject", "q.tsv", "--overlap", "./q.tsv"),
    ("vdj", "sharing", "in.tsv", "-o", "q.tsv", "--by-subject", "q.tsv"),
    ("vdj", "diversity", "in.tsv", "-o", "q.tsv", "--usage", "q.tsv"),
    ("fold", "in.fa", "-o", "q.tsv", "--pairs", "q.tsv", "--probabilities", "--device", "reference"),
    ("hsi", "compress", "in.npy", "-o", "q.c123", "--index", "q.c123"),
    ("hsi", "compress", "in.npy", "-o", "q.c123", "--index", "q.c123.json"),
)


@pytest.mark.parametrize("case", range(len(TWO_OUTPUTS)))
def test_two_outputs_of_one_name(
    plait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.tsv").write_text(HEADER + ROW)
    (tmp_path / "in.fa").write_text(">a\nGGGAAACCC\n")
    np.save(tmp_path / "in.npy", np.zeros((2, 3, 4), np.uint16))
    found = plait(*TWO_OUTPUTS[case])
    assert (found.status, found.out) == (2, "")
    assert "for two outputs, expected a file for each" in found.err and str(tmp_path / "q.") in found.err
    assert left(tmp_path) == []


def test_an_absent_file(plait: Any, tmp_path: Path) -> None:
    found = plait("vdj", "count", tmp_path / "nowhere.tsv", *BASE, "-o", tmp_path / "out.parquet")
    assert found.status == 2
    assert f"{tmp_path / 'nowhere.tsv'}: found no such file" in found.err
    # Most commands read standard input.
    found = plait("vdj", "study", "-", *BASE, "-o", tmp_path / "out")
    assert found.status == 2 and "save standard input to a file first" in found.err


def test_the_current_folder_has_been_removed(
    plait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.tsv").write_text(HEADER + ROW)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    found = plait("vdj", "count", tmp_path / "in.tsv", *BASE, "-o", "out.tsv")
    assert (found.status, found.out) == (2, "") and "current folder: found it removed" in found.err


def test_no_file(plait: Any, tmp_path: Path) -> None:
    found = plait("vdj", "count", *BASE, "-o", tmp_path / "out.parquet")
    assert (found.status, found.err) == (
        2,
        "plait: error: inputs: found no file, expected at least one file\n",
    )


@pytest.mark.parametrize("suffix", ["parquet", "tsv", "tsv.gz"])
def test_a_header_alone_is_a_table_of_no_rows(plait: Any, tmp_path: Path, suffix: str) -> None:
    (tmp_path / "in.tsv").write_text(HEADER)
    out = tmp_path / f"out.{suffix}"
    found = plait("vdj", "count", tmp_path / "in.tsv", *BASE, "-o", out)
    assert found.status == 0
    assert "0 rows in " in found.out and "The input has a header and no rows; so has the output." in found.out
    if suffix == "parquet":
        table = pq.read_table(out)
        assert table.num_rows == 0 and "path_count" in table.column_names


JUNCTIONS = {
    "TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC": "ok",
    "tgtgccagcagttgggactggtatgaacagtacttc": "ok",
    "UGUGCCAGCAGUUGGGACUGGUAUGAACAGUACUUC": "ok",
    "TGTGCCAGCAGNNRYGACTGGTATGAACAGTACTTC": "ok",
    "TGTTTC": "ok",
    "TGTTT": "too_short",
    "": "missing_junction",
    "TGTGCC AGCTTC": "invalid_symbol",
    "TGTGCC-AGCTTC": "invalid_symbol",
    "CASSWDWYEQYF!": "invalid_symbol",
    "TGTGCC\u00e4AGCTTC": "invalid_symbol",
    "ACGT" * 2500: "too_long",
}


def test_rows_that_cannot_be_counted_have_a_status(plait: Any, tmp_path: Path) -> None:
    calls = {
        ("TRBV13-1", "TRBJ2-7"): "ok",
        ("TRBV99", "TRBJ2-7"): "unknown_v_call",
        ("TRBV13-1*99", "TRBJ2-7"): "unknown_v_call",
        ("TRAV1", "TRBJ2-7"): "unknown_v_call",
        ("TRBV13-1", "nonsense"): "unknown_j_call",
        ("", "TRBJ2-7"): "missing_v_call",
        ("TRBV13-1", " "): "missing_j_call",
    }
    first = next(iter(JUNCTIONS))
    rows = [(junction, "TRBV13-1", "TRBJ2-7") for junction in JUNCTIONS]
    rows += [(first, v, j) for v, j in calls]
    lines = ["\t".join(("x", *row)) + "\n" for row in rows]
    (tmp_path / "in.tsv").write_text(HEADER + "".join(lines), encoding="utf-8")
    out = tmp_path / "out.parquet"
    assert plait("vdj", "count", tmp_path / "in.tsv", *BASE, "-o", out).status == 0
    table = pq.read_table(out)
    assert table["status"].to_pylist() == [*JUNCTIONS.values(), *calls.values()]
    counts = table["path_count"].to_pylist()
    assert [count is None for count in counts] == [status != "ok" for status in table["status"].to_pylist()]
    # Case and U do not matter; a junction shorter than the germline ends is counted like any other.
    assert counts[0] == counts[1] == counts[2] > 0
    assert counts[4] > 0


def test_ambiguous_calls(plait: Any, tmp_path: Path) -> None:
    calls = ("TRBV13-1,TRBV13-2", "TRBV13-1,TRBV99", "TRBV13-1*01,TRBV13-1*01")
    junction = ROW.split("\t")[1]
    rows = "".join(f"x\t{junction}\t{call}\tTRBJ2-7\n" for call in calls)
    (tmp_path / "in.tsv").write_text(HEADER + rows)
    found = {}
    for policy in ("first", "all", "fail"):
        out = tmp_path / f"{policy}.parquet"
        words = ("vdj", "count", tmp_path / "in.tsv", *BASE, "--ambiguous", policy, "-o", out)
        assert plait(*words).status == 0
        found[policy] = pq.read_table(out, columns=["status", "path_count"]).to_pylist()
    assert [row["status"] for row in found["first"]] == ["ok"] * 3
    assert [row["status"] for row in found["all"]] == ["ok", "unknown_v_call", "ok"]
    assert [row["status"] for row in found["fail"]] == ["ambiguous_v_call", "ambiguous_v_call", "ok"]
    assert found["all"][0]["path_count"] > found["first"][0]["path_count"] == found["all"][2]["path_count"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pi", "-1"), "pi: found -1, expected a whole number from 0 to 16"),
        (("--pi", "17"), "pi: found 17, expected"),
        (("--nu", "-3"), "nu: found -3, expected a whole number from 0 to 200"),
        (("--nu", "1000000"), "nu: found 1000000, expected"),
        (("--nu-vd", "201"), "nu_vd: found 201, expected"),
        (("--sweep-nu", "0:300"), "sweep_nu: found 201, expected"),
        (("--sweep-nu", "5:2"), "--sweep-nu: found '5:2', expected a range such as 0:4"),
        (("--sweep-pi", "3,1"), "sweep_pi: found (3, 1), expected increasing values"),
        (
            ("--model", "dp1", "--sweep-pi", "0:2"),
            "sweep_pi: found a value with model dp1, expected model dp2",
        ),
        (("--model", "exhaustive", "--max-n", "11"), "max_n: found 11, expected a whole number from 0 to 10"),
        (("--threads", "0"), "threads: found 0, expected a whole number from 1 to 4096"),
        (("--threads", "100000000"), "threads: found 100000000, expected a whole number from 1 to 4096"),
        (("--germline", "mose_trb"), "mouse_trb"),
        (("--anchors", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_parameters(plait: Any, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    (tmp_path / "in.tsv").write_text(HEADER + ROW)
    base = BASE if "--germline" not in options else BASE[2:]
    found = plait("vdj", "count", tmp_path / "in.tsv", *base, *options, "-o", tmp_path / "out.parquet")
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith("plait: error: ") and message in found.err
    assert left(tmp_path) == []


def test_a_chain_without_its_genes(plait: Any, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text(HEADER + ROW)
    words = ("vdj", "count", tmp_path / "in.tsv", "--germline", "mouse_tra", "--chain", "vdj")
    found = plait(*words, "-o", tmp_path / "out.parquet")
    assert found.status == 2
    assert "chain: found 'vdj', expected 'vj': the germline set has no D alleles" in found.err


OUTPUTS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "suffix": (lambda folder: folder / "out.csv", "expected a name that ends in .parquet, .tsv"),
    "no-folder": (lambda folder: folder / "no" / "out.tsv", "in a folder that does not exist"),
    "folder": (lambda folder: folder, "expected a name that ends in"),
    "folder-with-suffix": (lambda folder: folder / "folder.tsv", "which is a directory"),
    "input": (lambda folder: folder / "in.tsv", "which is also an input"),
    "not-writable": (lambda folder: Path("/proc/plait.tsv"), "/proc/plait.tsv: found"),
    "in-a-file": (lambda folder: folder / "in.tsv" / "out.tsv", "output: found"),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_outputs(plait: Any, tmp_path: Path, case: str) -> None:
    place, message = OUTPUTS[case]
    if case == "not-writable" and not Path("/proc/self").exists():
        pytest.skip(reason="there is no /proc here")
    (tmp_path / "in.tsv").write_text(HEADER + ROW)
    (tmp_path / "folder.tsv").mkdir()
    found = plait("vdj", "count", tmp_path / "in.tsv", *BASE, "-o", place(tmp_path))
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith("plait: error: ") and message in found.err
    assert left(tmp_path) == ["folder.tsv"]
    assert (tmp_path / "in.tsv").read_text() == HEADER + ROW


@pytest.mark.parametrize("suffix", ["parquet", "tsv"])
def test_a_full_disk(plait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    (tmp_path / "in.tsv").write_text(HEADER + ROW * 3)
    real = os.fsync

    def full(descriptor: int) -> None:
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")).name == f".out.{suffix}.partial":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    if not Path("/proc/self/fd").exists():
        pytest.skip(reason="files cannot be told by their number without /proc")
    monkeypatch.setattr(os, "fsync", full)
    found = plait("vdj", "count", tmp_path / "in.tsv", *BASE, "-o", tmp_path / f"out.{suffix}")
    assert found.status == 2
    assert f"out.{suffix}: found no space left on the device, expected room for the output" in found.err
    assert found.err.strip().endswith("; the same command with --resume continues where it stopped")
    # What was counted is kept, so that --resume can go on.
    assert left(tmp_path) == [f"out.{suffix}.checkpoint"]
    monkeypatch.setattr(os, "fsync", real)
    words = ("vdj", "count", tmp_path / "in.tsv", *BASE, "-o", tmp_path / f"out.{suffix}")
    assert "1 blocks were taken over" in plait(*words, "--resume").out


@pytest.mark.slow
def test_no_more_room_in_the_middle(
    start_plait: Any, mouse_rows: Any, write_tsv: Any, tmp_path: Path
) -> None:
    words = ("vdj", "count", write_tsv(mouse_rows(300)), *BASE, "-o", tmp_path / "out.tsv")
    before = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))"
    process = start_plait(*words, before=before)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "found the limit on the size of a file reached, expected room for the output" in err
    assert "Traceback" not in err
    assert not (tmp_path / "out.tsv").exists()


def test_two_runs_cannot_write_one_output(plait: Any, tmp_path: Path) -> None:
    from plait.formats.atomic import AtomicFile

    (tmp_path / "in.tsv").write_text(HEADER + ROW)
    with AtomicFile(tmp_path / "out.parquet"):
        found = plait("vdj", "count", tmp_path / "in.tsv", *BASE, "-o", tmp_path / "out.parquet")
    assert found.status == 2 and "which another run is writing" in found.err


def test_a_folder_that_is_no_checkpoint(plait: Any, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text(HEADER + ROW)
    mine = tmp_path / "out.parquet.checkpoint"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    found = plait("vdj", "count", tmp_path / "in.tsv", *BASE, "-o", tmp_path / "out.parquet")
    assert found.status == 2 and "which is not a checkpoint of plait" in found.err
    assert (mine / "notes.txt").read_text() == "mine"
