"""Files that were made to break a reader end in exit status 2 and a message that names them, never in 70."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.study_folder import write_study_folder

from plait.formats.checkpoints import Checkpoint
from plait.vdj.germline import load_germline, write_airr_json
from plait.vdj.model import model_from_germline, write_model
from plait.vdj.model.inference import StateStore

DEEP = "[" * 100_000
DIGITS = "9" * 5000
LONG = "x" * 300
ANCHORS = "V_gene_CDR3_anchors.csv"
PALINDROMES = '"palindromes": {"v": '


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A germline set, a model of it in both formats, and rows."""
    folder = tmp_path_factory.mktemp("files")
    germline = load_germline("mouse_trb")
    small = replace(germline, v=germline.v[:3], j=germline.j[:3])
    write_airr_json(small, folder / "germline.json")
    model = model_from_germline(small, most_insertions=3)
    write_model(model, folder / "model.json")
    write_model(model, folder / "model")
    v, j = small.v[0], small.j[0]
    junction = f"{v.cdr3_end}GGGACA{j.cdr3_end}"
    (folder / "rows.tsv").write_text(f"junction\tv_call\tj_call\n{junction}\t{v.name}\t{j.gene}\n")
    return folder


def refused(found: Any, path: Path, *told: str) -> None:
    assert found.status == 2, found.err
    assert str(path) in found.err and found.err.count("\n") == 1
    assert [text for text in told if text not in found.err] == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"GermlineSet": [', '"GermlineSet": [' + DEEP, "nested too deeply"),
        ('"cdr3_start": ', f'"cdr3_start": {DIGITS}', "a number of thousands of digits"),
        ('"cdr3_start": ', f'"cdr3_start": "{DIGITS}", "was": ', "cdr3_start"),
        ('"cdr3_start": ', '"cdr3_start": "\u00b2", "was": ', "cdr3_start"),
        ('"cdr3_start": ', '"cdr3_start": NaN, "was": ', "NaN, which is no number"),
        ('"cdr3_start": ', '"cdr3_start": 7, "cdr3_start": ', "the name 'cdr3_start' twice"),
        ('"species": {', '"species": {"label": "\\ud800", "was": {}, "wasid": ', "half of a character"),
    ],
)
def test_germline_sets(plait: Any, files: Path, tmp_path: Path, old: str, new: str, told: str) -> None:
    text = (files / "germline.json").read_text()
    assert old in text
    (tmp_path / "in.json").write_text(text.replace(old, new, 1))
    refused(plait("germline", "validate", tmp_path / "in.json"), tmp_path / "in.json")
    if "wasid" not in new:
        refused(plait("germline", "show", tmp_path / "in.json"), tmp_path / "in.json", told)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"version": 1', '"was": 1', "'version': found nothing"),
        ('"format": "plait recombination model"', '"format": "another"', "format 'another', version 1"),
        (PALINDROMES, f'{PALINDROMES}{10**18}, "was": ', "numbers from 0 to 10,000"),
        ('"error_rate": ', f'"error_rate": {DIGITS}, "was": ', "thousands of digits"),
    ],
)
def test_models(plait: Any, files: Path, tmp_path: Path, old: str, new: str, told: str) -> None:
    text = (files / "model.json").read_text()
    assert old in text
    (tmp_path / "in.json").write_text(text.replace(old, new, 1))
    words = ("vdj", "generate", "--model", tmp_path / "in.json", "-n", "5", "-o", tmp_path / "out.tsv")
    refused(plait(*words), tmp_path / "in.json", told)


@pytest.mark.parametrize(
    ("file", "changed", "told"),
    [
        (ANCHORS, lambda text: text.replace("gene,", "x" * 200_000, 1), "field"),
        (ANCHORS, lambda text: text + "y" * 200_000 + ",1,F\n", "larger than"),
        (ANCHORS, lambda text: text + f"TRBV99,{DIGITS},F\n", "'anchor_index': found '9999"),
        (ANCHORS, lambda text: text + text.splitlines()[1].replace(",", ",1", 1) + "\n", "row for"),
        ("model_params.txt", lambda text: text.replace(";0\n", f";{DIGITS}\n", 1), "index"),
        ("model_marginals.txt", lambda text: text.replace("$Dim[", f"$Dim[{DIGITS},", 1), "whole number"),
        ("model_marginals.txt", lambda text: text.replace("$Dim[", "$Dim[" + "1," * 70, 1), "a line $Dim"),
    ],
)
def test_models_of_igor(
    plait: Any, files: Path, tmp_path: Path, file: str, changed: Callable[[str], str], told: str
) -> None:
    for path in (files / "model").iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    text = (tmp_path / file).read_text()
    assert changed(text) != text
    (tmp_path / file).write_text(changed(text))
    out = tmp_path / "out.tsv"
    refused(plait("vdj", "pgen", files / "rows.tsv", "--model", tmp_path, "-o", out), tmp_path / file, told)
    if file == ANCHORS:
        refused(plait("germline", "show", tmp_path), tmp_path / file)


@pytest.mark.parametrize("name", ["~nobody-has-this-name/a.tsv", LONG])
def test_sample_sheets(plait: Any, files: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "sheet.csv").write_text(f"file,subject_id\n{name},a\n")
    words = ("vdj", "study", tmp_path / "sheet.csv", "--germline", files / "germline.json")
    found = plait(*words, "-o", tmp_path / "out")
    refused(found, tmp_path / "sheet.csv", "line 2, column 'file'", "which is no such file")


def test_names_that_no_file_can_have(plait: Any, tmp_path: Path) -> None:
    refused(plait("germline", "show", tmp_path / LONG), tmp_path / LONG, "File name too long")


def test_a_file_that_goes_away(plait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        os.stat(tmp_path / "gone")

    monkeypatch.setattr("plait.cli.germline.bundled_germlines", gone)
    refused(plait("germline", "list"), tmp_path / "gone", "found No such file or directory")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("batch",), "x"),
        (("history",), 1),
        (("history", 0), []),
        (("history", 0, "log_likelihood"), "much"),
        (("history", 0, "iteration"), 10**400),
        (("collected", "evidence_weight"), None),
        (("collected", "left_out"), {"why": "x"}),
        (("collected", "examples"), {"why": [1]}),
        ((), 1),
    ],
)
def test_states_of_inferences(
    plait: Any, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any, value: Any
) -> None:
    out = tmp_path / "out"
    words = ("vdj", "infer", files / "rows.tsv", "--start", files / "model.json", "-o", out)
    options = ("--rows", "all", "--iterations", "3", "--tolerance", "0", "--no-report")
    put, kept = StateStore.put, []

    def stopped(store: StateStore, state: Any) -> None:
        put(store, state)
        kept.append(state)
        if len(kept) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StateStore, "put", stopped)
        assert plait(*words, *options).status == 130
    store = Checkpoint.__new__(Checkpoint)
    store.directory = out / "work" / "progress"
    block = store.get(0)
    assert block is not None
    facts = json.loads(block["facts"][0].as_py())
    within = facts
    for step in place[:-1]:
        within = within[step]
    if place:
        within[place[-1]] = value
    changed = pa.array([json.dumps(facts if place else value)], pa.large_string())
    store.put(0, pa.record_batch([changed, block["arrays"]], schema=block.schema))
    refused(plait(*words, *options, "--resume"), store.directory, "the state of an inference")


def test_descriptions_of_studies(plait: Any, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="reports are drawn with vl-convert, of plait's extra report")
    folder = write_study_folder(tmp_path / "study", genes={"TRBV1": f"TRBV{DIGITS}"})
    assert plait("vdj", "report", folder, "--no-figures").status == 0
    text = (folder / "study.json").read_text()
    for new in ("1e400", DIGITS, '"many"', DEEP, "NaN"):
        (folder / "study.json").write_text(text.replace('"clonotypes": ', f'"clonotypes": {new}, "was": ', 1))
        refused(plait("vdj", "report", folder, "--no-figures"), folder)
