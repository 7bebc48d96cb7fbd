"""``plait germline``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from cyclopts import App

from plait.cli.germline import app
from plait.errors import FormatError, InvalidInput
from plait.vdj.germline import bundled_germlines, load_germline

Capture = pytest.CaptureFixture[str]


def run(*arguments: str | Path) -> object:
    root = App(result_action="return_value")
    root.command(app)
    return root(["germline", *map(str, arguments)], exit_on_error=False)


def test_list(capsys: Capture) -> None:
    run("list")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(bundled_germlines())
    assert load_germline("mouse_trb").digest[:12] in lines[1 + bundled_germlines().index("mouse_trb")]


def test_show_json_has_every_allele(capsys: Capture) -> None:
    run("show", "human_trb", "--format", "json")
    told = json.loads(capsys.readouterr().out)
    germline = load_germline("human_trb")
    assert told["digest"] == germline.digest
    assert told["d_j_order"] == {"TRBD2": ["TRBJ2"]}
    assert [row["name"] for row in told["alleles"]] == [a.name for a in germline.alleles()]
    for row, allele in zip(told["alleles"], germline.alleles(), strict=True):
        assert row["cdr3_end"] == allele.cdr3_end
        assert (row["gene"], row["segment"], row["functionality"]) == (
            allele.gene,
            allele.segment,
            allele.functionality,
        )
        assert (row["anchor"], row["anchor_source"]) == (allele.anchor, allele.anchor_source)
        assert row["length"] == len(allele.sequence)


def test_show_csv_and_fasta(capsys: Capture) -> None:
    run("show", "mouse_trb", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["cdr3_end"] for row in rows][:2] == ["TGCACCTGCAGTGCAGA", "TGTGCCAGCAGCCAAGA"]
    assert (rows[0]["regions"], rows[0]["source"]) == ("78 96 147 165", "pyimmunarch 0.1.1")
    run("show", "mouse_trb", "--format", "fasta")
    text = capsys.readouterr().out
    assert text.count(">") == len(rows)
    assert "".join(text.split(">published|TRBD1*01|")[1].splitlines()[1:2]) == "GGGACAGGGGGC"


def test_show_table_cuts_nothing(capsys: Capture) -> None:
    run("show", "human_tra")
    text = capsys.readouterr().out
    germline = load_germline("human_tra")
    assert f"digest: {germline.digest}" in text
    for allele in germline.alleles():
        assert allele.name in text and (allele.cdr3_end or allele.name) in text


def test_show_with_anchors(tmp_path: Path, capsys: Capture) -> None:
    table = tmp_path / "anchors.csv"
    table.write_text("gene,anchor_index\nTRBV1,276\n")
    run("show", "mouse_trb", "--format", "json", "--anchors", table)
    (row, *_) = json.loads(capsys.readouterr().out)["alleles"]
    assert (row["anchor"], row["anchor_source"], row["cdr3_end"]) == (276, "override", "TGCAGTGCAGA")


def test_validate_warns_with_exit_code_0(capsys: Capture) -> None:
    assert run("validate", "human_trb") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "warning\tduplicate_sequence\tTRBV6-3*01\thas the sequence of TRBV6-2*01" in lines
    assert "1 warning duplicate_sequence" in lines
    findings = sum("\t" in line for line in lines)
    assert lines[-1] == f"human_trb: 95 alleles, {findings} findings"


def test_validate_errors_have_exit_code_1(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "V.fasta").write_text(">TRBV1*01\nACGX\n>TRBV1*01\nACGT\n>TRBV2*01\nACGT\n")
    (tmp_path / "J.fasta").write_text(">TRBJ1-1*01\nACGT\n")
    assert run("validate", tmp_path) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "error\tinvalid_symbol\tTRBV1*01\tsymbol(s) 'X' are no IUPAC nucleotide codes" in lines
    assert "error\tduplicate_name\tTRBV1*01\t2 alleles have this name" in lines
    assert "warning\tmissing_anchor\tTRBJ1-1*01\tno conserved Phe or Trp codon is known or found" in lines
    assert "4 warning missing_anchor" in lines
    assert "1 error invalid_symbol" in lines


def test_validate_names_the_set_where_no_allele_is_meant(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "only_d.fasta"
    path.write_text(">TRBD1*01\nGGGACAGGGGGC\n")
    assert run("validate", path) == 1
    assert "error\tmissing_segment\tonly_d\tthe set has no V alleles" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["show", "validate"])
def test_what_cannot_be_read_is_raised(command: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="expected one of human_igh"):
        run(command, "nothing_trb")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(FormatError, match="line 1: found no JSON"):
        run(command, tmp_path / "bad.json")


def test_convert_there_and_back(tmp_path: Path, capsys: Capture) -> None:
    digest = load_germline("human_trb").digest
    run("convert", "human_trb", "-o", tmp_path / "copy.json")
    assert load_germline(tmp_path / "copy.json").digest == digest
    run("convert", tmp_path / "copy.json", "--output", tmp_path / "trio")
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["copy.json", *(f"trio{s}.fasta" for s in "CDJV"), "trio_anchors.csv"]
    assert capsys.readouterr().err == ""
    back = (
        "convert",
        tmp_path / "trio",
        "-o",
        tmp_path / "back.json",
        "--species",
        "human",
        "--name",
        "mine",
    )
    run(*back)
    assert "note: the file states no D-J order" in capsys.readouterr().err
    again = load_germline(tmp_path / "back.json")
    assert again.name == "mine"
    assert [a.name for a in again.alleles()] == [a.name for a in load_germline("human_trb").alleles()]
    assert [a.anchor for a in again.alleles()] == [a.anchor for a in load_germline("human_trb").alleles()]
    run("convert", tmp_path / "back.json", "-o", tmp_path / "table.csv")
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 1 + len(again.alleles())


def test_convert_single_files(tmp_path: Path) -> None:
    run("convert", "mouse_trb", "-o", tmp_path / "x.fasta")
    files = {letter: tmp_path / f"x{letter.upper()}.fasta" for letter in "vdjc"}
    for letter, path in files.items():
        path.rename(tmp_path / f"genes_{letter}")
    arguments = [item for letter in "vdjc" for item in (f"--{letter}", tmp_path / f"genes_{letter}")]
    anchors = ("--anchors", tmp_path / "x_anchors.csv")
    run("convert", *arguments, *anchors, "-o", tmp_path / "x.json", "--species", "mouse")
    again, germline = load_germline(tmp_path / "x.json"), load_germline("mouse_trb")
    for one, other in zip(again.alleles(), germline.alleles(), strict=True):
        assert (one.name, one.sequence, one.anchor, one.functionality) == (
            other.name, other.sequence, other.anchor, other.functionality,
        )  # fmt: skip


@pytest.mark.parametrize("arguments", [(), ("--v", "a"), ("mouse_trb", "--v", "a", "--j", "b")])
def test_convert_needs_one_input(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="expected a source, or --v and --j"):
        run("convert", *arguments, "-o", tmp_path / "out.json")
    assert list(tmp_path.iterdir()) == []


def test_convert_says_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="output: found"):
        run("convert", "mouse_trb", "-o", tmp_path / "no" / "folder" / "x.csv")
