"""OLGA and IGoR model folders, and anchor tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import FormatError
from plait.vdj.germline import apply_overrides, load_germline, read_olga_model, validate
from plait.vdj.germline.anchors import read_anchor_table

PARAMETERS = """@Event_list
#GeneChoice;V_gene;Undefined_side;7;v_choice
%TRBV2*01;AAATGTGCCAGC;1
%TRBV1*01;aaaaaatgtgcc;0
%TRBV3*01;ACGT;2
#GeneChoice;D_gene;Undefined_side;6;d_gene
%TRBD2*01;GGGACTGGGGGGGC;1
%TRBD1*01;GGGACAGGGGGC;0
#GeneChoice;J_gene;Undefined_side;7;j_choice
%X1|TRBJ2-1*01|Mus musculus|F|;TTCTTCGGACCAGGG;0
#Deletion;V_gene;Three_prime;5;v_3_del
%-4;0
@Edges
%GeneChoice_V_gene;nothing
"""
V_ANCHORS = "gene,anchor_index,function\nTRBV1*01,6,F\nTRBV2*01,3,(F) \nTRBV9*01,5,P\n"
J_ANCHORS = "gene;anchor_index\nTRBJ2-1*01;3\n"


def model(folder: Path, parameters: str = PARAMETERS, v: str = V_ANCHORS, j: str = J_ANCHORS) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "model_params.txt").write_text(parameters)
    (folder / "V_gene_CDR3_anchors.csv").write_text(v)
    (folder / "J_gene_CDR3_anchors.csv").write_text(j)
    return folder


def test_a_model(tmp_path: Path) -> None:
    germline = load_germline(model(tmp_path / "mouse_T_beta"))
    assert (germline.name, germline.locus, germline.source) == ("mouse_T_beta", "TRB", "model mouse_T_beta")
    assert [(a.name, a.anchor, a.functionality, a.anchor_source) for a in germline.v] == [
        ("TRBV1*01", 6, "F", "given"),
        ("TRBV2*01", 3, "F", "given"),
        ("TRBV3*01", None, None, "none"),
    ]
    assert germline.v[0].sequence == "AAAAAATGTGCC"
    assert [a.name for a in germline.d] == ["TRBD1*01", "TRBD2*01"]
    assert [(a.name, a.cdr3_end) for a in germline.j] == [("TRBJ2-1*01", "TTCTTC")]
    assert germline.notes[0] == "V_gene_CDR3_anchors.csv has 1 gene(s) that the model does not choose"
    assert [f.allele for f in validate(germline) if f.kind == "missing_anchor"] == ["TRBV3*01"]


def test_igor_folders(tmp_path: Path) -> None:
    flat = model(tmp_path / "flat")
    digest = read_olga_model(flat).digest
    (tmp_path / "igor" / "models").mkdir(parents=True)
    (tmp_path / "igor" / "ref_genome").mkdir()
    (tmp_path / "igor" / "models" / "model_parms.txt").write_text(PARAMETERS)
    (tmp_path / "igor" / "ref_genome" / "V_gene_CDR3_anchors.csv").write_text(V_ANCHORS)
    (tmp_path / "igor" / "ref_genome" / "J_gene_CDR3_anchors.csv").write_text(J_ANCHORS)
    assert load_germline(tmp_path / "igor").digest == digest
    assert load_germline(tmp_path / "igor" / "models").digest == digest


def test_an_anchor_behind_a_partial_sequence_is_no_anchor(tmp_path: Path) -> None:
    germline = read_olga_model(model(tmp_path / "m", v="gene,anchor_index\nTRBV3*01,270\n"))
    assert germline.v[2].anchor is None
    assert "TRBV3*01" in [f.allele for f in validate(germline) if f.kind == "missing_anchor"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%TRBV2*01;AAATGTGCCAGC;1", "%TRBV2*01;AAATGT", "line 3: found '%TRBV2.01;AAATGT', expected '%name"),
        ("%TRBV2*01;AAATGTGCCAGC;1", "%TRBV2*01;AAATGT;x", "line 3: found"),
        ("%TRBV2*01;AAATGTGCCAGC;1", "%TRBV2*01;AAATGT;0", "line 4: found a second V gene of index 0"),
        ("%TRBV2*01;AAATGTGCCAGC;1", "%;AAATGT;1", "line 3: found a gene without a name"),
        ("%TRBV2*01;AAATGTGCCAGC;1", "%TRBV2*01;AAAXGT;1", r"line 3: found symbol\(s\) 'X' in TRBV2"),
        ("%TRBV2*01;AAATGTGCCAGC;1", "%TRBV1*01;AAATGT;1", "line 3: found a second sequence in TRBV1"),
        ("GeneChoice;J_gene", "GeneChoice;C_gene", "line 9: found '#GeneChoice;C_gene"),
        ("#GeneChoice;J_gene;Undefined_side;7;j_choice", "#Other", "found no J genes"),
        (PARAMETERS, "words\n", "found no V genes"),
        (PARAMETERS, "", "found an empty file"),
    ],
)
def test_broken_parameters_are_said(tmp_path: Path, old: str, new: str, message: str) -> None:
    folder = model(tmp_path / "m", PARAMETERS.replace(old, new))
    with pytest.raises(FormatError, match=message):
        load_germline(folder)


def test_missing_anchors_are_said(tmp_path: Path) -> None:
    folder = model(tmp_path / "m")
    (folder / "J_gene_CDR3_anchors.csv").unlink()
    with pytest.raises(FormatError, match="found no anchors of J genes"):
        load_germline(folder)
    with pytest.raises(FormatError, match="found no parameter file"):
        read_olga_model(tmp_path)


def overridden(tmp_path: Path, text: str) -> dict[str, tuple[int | None, str, str | None]]:
    path = tmp_path / "anchors.csv"
    path.write_text(text)
    germline = apply_overrides(load_germline("mouse_trb"), path)
    before = {a.name: a for a in load_germline("mouse_trb").alleles()}
    return {
        a.name: (a.anchor, a.anchor_source, a.functionality)
        for a in germline.alleles()
        if a != before[a.name]
    }


def test_overrides(tmp_path: Path) -> None:
    assert overridden(tmp_path, "gene,anchor_index\nTRBV1*01,276\n") == {"TRBV1*01": (276, "override", "F")}
    # A gene name sets all of its alleles, a row for one of them goes before it; the order does not matter.
    both = "anchor_index\tfunction\tGene\n200\t[ORF]\tTRBV13-1\n\n100\t\ttrbv13-1*02\n"
    assert overridden(tmp_path, both) == {
        "TRBV13-1*01": (200, "override", "ORF"),
        "TRBV13-1*02": (100, "override", "F"),
    }
    # No position takes the anchor away.
    assert overridden(tmp_path, "gene,anchor_index\nTRBV1,\nTRBJ2-1,-1\n") == {
        "TRBV1*01": (None, "none", "F"),
        "TRBJ2-1*01": (None, "none", "F"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found an empty file"),
        (
            "gene,position\nTRBV1,3\n",
            "line 1: found columns 'gene, position', expected a column 'anchor_index'",
        ),
        ("anchor_index\n3\n", "expected a column 'gene'"),
        ("gene,anchor_index\nTRBV1\n", r"line 2: found 1 cell\(s\), expected 2 cells"),
        (
            "gene,anchor_index\nTRBV1,x\n",
            "line 2, column 'anchor_index': found 'x', expected a 0-based position",
        ),
        ("gene,anchor_index\nTRBV1,-5\n", "found '-5', expected a 0-based position, or nothing or -1"),
        ("gene,anchor_index\nTRBV1,3.5\n", "line 2, column 'anchor_index': found '3.5'"),
        ("gene,anchor_index\nTRBV1,3\nTRBV1,4\n", "line 3: found a second row for TRBV1"),
        ("gene,anchor_index\n,3\n", "line 2: found a row without a name"),
        (
            "gene,anchor_index\nTRBV77,3\n",
            "line 2, column 'gene': found 'TRBV77', expected an allele or gene of",
        ),
        ("gene,anchor_index\nTRBV1,285\n", "line 2, .*: found 285 for TRBV1.01, expected 0 to 284"),
        ("gene,anchor_index\nTRBD1,0\n", "line 2, .*: found 0 for TRBD1.01, expected no anchor for a D"),
    ],
)
def test_broken_tables_are_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        overridden(tmp_path, text)


def test_the_last_position_that_holds_a_codon(tmp_path: Path) -> None:
    assert overridden(tmp_path, "gene,anchor_index\nTRBV1,284\n") == {"TRBV1*01": (284, "override", "F")}


def test_table_rows_know_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("gene,anchor_index,function\r\n\r\nA,1,F\r\nB,2,P \r\n")
    assert [(r.name, r.anchor, r.functionality, r.line) for r in read_anchor_table(path)] == [
        ("A", 1, "F", 3),
        ("B", 2, "P", 4),
    ]
