"""Commands that take a model or germline set say which genes are wrong, and repair them when asked to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.examples import often
from support.repertoires import simulated_repertoire

from plait.alphabets import reverse_complement
from plait.vdj.germline import load_germline, write_airr_json
from plait.vdj.model import bundled_model, load_model, read_model, write_model

GENE = "TRBV20-1*01"
FAULT = f"warning: {GENE}, probability 0."
JUNCTION = "TGCAGTGCTAGAGATCGGACAGGGGGCTACGAGCAGTACTTC"


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled model with one gene stored on the other strand, as a published model has one."""
    model = bundled_model("human_TRB")
    v = tuple(replace(g, sequence=reverse_complement(g.sequence)) if g.name == GENE else g for g in model.v)
    assert v != model.v
    path = tmp_path_factory.mktemp("model") / "wrong.json"
    write_model(replace(model, v=v), path)
    return path


def table(path: Path) -> Path:
    path.write_text(f"junction\tv_call\tj_call\n{JUNCTION}\tTRBV20-1*01\tTRBJ2-7*01\n")
    return path


@pytest.mark.parametrize("command", often(1, ["pgen", "scenarios", "generate"]))
def test_told_and_repaired(plait: Any, wrong: Path, tmp_path: Path, command: str) -> None:
    words = ["-n", 50] if command == "generate" else [table(tmp_path / "in.tsv"), "--calls", "use"]
    found = plait("vdj", command, *words, "--model", wrong, "-o", tmp_path / "plain.parquet")
    assert found.status == 0 and FAULT in found.err and "--repair-anchors does" in found.err
    mended = tmp_path / "mended.parquet"
    found = plait("vdj", command, *words, "--model", wrong, "--repair-anchors", "-o", mended)
    assert found.status == 0 and "warning" not in found.err
    assert f"repaired {GENE}: the sequence was the reverse complement of the gene" in found.err
    assert b'"repaired_anchors": {"TRBV20-1*01"' in pq.read_schema(mended).metadata[b"plait.provenance"]
    if command == "pgen":
        values = [pq.read_table(path)["pgen_nt"][0].as_py() for path in (tmp_path / "plain.parquet", mended)]
        right = tmp_path / "right.parquet"
        found = plait("vdj", "pgen", *words, "--model", "human_TRB", "-o", right)
        assert found.status == 0 and found.err == ""
        assert values[0] < 1e-3 * values[1] == 1e-3 * pq.read_table(right)["pgen_nt"][0].as_py()


@pytest.mark.parametrize("command", ["sharing", "neighbours"])
def test_repaired_as_a_background(plait: Any, wrong: Path, tmp_path: Path, command: str) -> None:
    query = tmp_path / "query.tsv"
    query.write_text("junction_aa\tv_call\tj_call\nCSARDRTGGYEQYF\tTRBV20-1\tTRBJ2-7\n")
    words = [] if command == "sharing" else [query]
    words += [table(tmp_path / "in.tsv"), "--draws", 1000, "--model", wrong, "-o", tmp_path / "out.tsv"]
    found = plait("vdj", command, *words)
    assert found.status == 0 and FAULT in found.err and "--repair-anchors does" in found.err
    found = plait("vdj", command, *words, "--repair-anchors")
    assert found.status == 0 and f"repaired {GENE}" in found.err and "come out wrong" not in found.err
    if command == "sharing":
        assert "In more than generation explains, with q_sharing <= 0.05: 0\n" in found.out


def test_infer(plait: Any, wrong: Path, tmp_path: Path) -> None:
    source, out = table(tmp_path / "in.tsv"), tmp_path / "out"
    with source.open("a") as file:
        file.write("TGTGCCAGCAGCTTAGAAACAGGGGGCTACGAGCAGTACTTC\tTRBV12-3*01\tTRBJ2-7*01\n")
    words = ("--start", wrong, "--rows", "all", "--iterations", 1, "--no-report", "-o", out)
    found = plait("vdj", "infer", source, *words)
    assert found.status == 0 and FAULT in found.err
    found = plait("vdj", "infer", source, *words, "--repair-anchors", "--force")
    assert found.status == 0 and f"repaired {GENE}" in found.err
    made = load_model(out)
    assert GENE in made.provenance["start"]["repaired_anchors"]
    assert made.v == bundled_model("human_TRB").v


@pytest.mark.slow
@pytest.mark.usefixtures("few_draws")
def test_study(plait: Any, wrong: Path, tmp_path: Path) -> None:
    rows = simulated_repertoire(60, subjects=["a", "b"], germline="human_trb", seed=1)
    pq.write_table(rows, tmp_path / "rows.parquet")
    (tmp_path / "sheet.csv").write_text("file\nrows.parquet\n")
    human = load_germline("human_trb")
    v = tuple(replace(a, sequence=reverse_complement(a.sequence)) if a.name == GENE else a for a in human.v)
    write_airr_json(replace(human, v=v), tmp_path / "set.json")
    words = [tmp_path / "sheet.csv", "--germline", tmp_path / "set.json", "--model", wrong]
    words += ["--no-regression", "--sweep-pi", "4", "--sweep-nu", "10", "-o", tmp_path / "out"]
    found = plait("vdj", "study", *words)
    assert found.status == 0 and FAULT in found.err and "--repair-anchors does" in found.err
    assert "may have a wrong conserved codon" in " ".join(found.out.split())
    found = plait("vdj", "study", *words, "--repair-anchors", "--force")
    assert found.status == 0
    notes = " ".join(json.loads((tmp_path / "out" / "study.json").read_text())["notes"])
    assert "may have a wrong" not in notes
    assert notes.count(f"repaired {GENE}") == 2


@pytest.mark.slow
def test_a_study_of_foreign_rows(plait: Any, tmp_path: Path) -> None:
    pq.write_table(simulated_repertoire(60, subjects=["a", "b"], seed=1), tmp_path / "rows.parquet")
    (tmp_path / "sheet.csv").write_text("file\nrows.parquet\n")
    words = (tmp_path / "sheet.csv", "--germline", "human_trb", "--no-regression", "-o", tmp_path / "out")
    found = plait("vdj", "study", *words)
    assert found.status == 0
    assert "mouse_trb has: rows of another species?" in " ".join(found.out.split())


def test_a_germline_set_with_a_wrong_gene(plait: Any, tmp_path: Path) -> None:
    mouse = load_germline("mouse_trb")
    v = tuple(
        replace(a, sequence=reverse_complement(a.sequence)) if a.name == "TRBV31*01" else a for a in mouse.v
    )
    write_airr_json(replace(mouse, v=v), tmp_path / "set.json")
    rows = simulated_repertoire(5, seed=1)
    pq.write_table(rows, tmp_path / "in.parquet")
    words = ("--germline", tmp_path / "set.json", "-o", tmp_path / "out.parquet")
    found = plait("vdj", "count", tmp_path / "in.parquet", *words)
    assert found.status == 0 and "warning: TRBV31*01, the codon at" in found.err and "--anchors" in found.err


def test_names_are_cleaned_when_read(tmp_path: Path) -> None:
    model = bundled_model("human_TRB")
    write_model(model, tmp_path / "folder")
    for name in ("model_params.txt", "V_gene_CDR3_anchors.csv"):
        path = tmp_path / "folder" / name
        text = path.read_text().replace("TRBD1*01", " TRBD1*01").replace(GENE, f" {GENE} ")
        path.write_text(text)
    assert " TRBD1*01" in (tmp_path / "folder" / "model_params.txt").read_text()
    found = read_model(tmp_path / "folder")
    for genes, others in ((found.v, model.v), (found.d, model.d), (found.j, model.j)):
        assert [g.name for g in genes] == [g.name for g in others]
        assert [g.anchor for g in genes] == [g.anchor for g in others]


def test_names_that_no_folder_can_hold_are_refused_at_once(plait: Any, tmp_path: Path) -> None:
    model = bundled_model("human_TRB")
    v = tuple(replace(g, name="TRBV20-1,x") if g.name == GENE else g for g in model.v)
    write_model(replace(model, v=v), tmp_path / "odd.json")
    source, out = table(tmp_path / "in.tsv"), tmp_path / "out"
    found = plait("vdj", "infer", source, "--start", tmp_path / "odd.json", "--rows", "all", "-o", out)
    assert found.status == 2 and "'TRBV20-1,x' of gene 'TRBV20-1,x'" in found.err
    assert not out.exists()


def test_a_model_without_a_version(plait: Any, tmp_path: Path) -> None:
    write_model(bundled_model("human_TRB"), tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    for change, told in (
        ({"format": "x"}, "column 'version': found nothing"),
        (
            {"format": "x", "version": 1},
            "found format 'x', version 1, expected format 'plait recombination model', version 1",
        ),
        ({}, "column 'version': found nothing"),
    ):
        other = {name: value for name, value in content.items() if name != "version"} | change
        (tmp_path / "model.json").write_text(json.dumps(other))
        words = ("--model", tmp_path / "model.json", "-o", tmp_path / "out.tsv")
        found = plait("vdj", "pgen", table(tmp_path / "in.tsv"), *words)
        assert found.status == 2 and told in found.err
