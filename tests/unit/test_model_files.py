"""Models in files: what is written is read again, and what is wrong is named with its place."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plait.errors import FormatError, InvalidInput
from plait.testing.recombination import small_model
from plait.vdj.model import (
    RecombinationModel,
    bundled_model,
    bundled_models,
    load_model,
    read_model,
    write_model,
)
from plait.vdj.model.model_files import read_model as home_of_read_model

pytestmark = pytest.mark.interpreted(alone=True)


def tables(model: RecombinationModel) -> dict[str, np.ndarray]:
    return {f.name: getattr(model, f.name) for f in fields(model) if f.name.startswith(("p_", "vd_", "dj_"))}


@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_own_format_is_exact(tmp_path: Path, d: bool) -> None:
    model = replace(small_model(3, d=d), error_rate=0.01)
    write_model(model, tmp_path / "m.json")
    again = read_model(tmp_path / "m.json")
    for name, table in tables(model).items():
        assert np.array_equal(getattr(again, name), table), name
    assert (again.v, again.d, again.j) == (model.v, model.d, model.j)
    assert (again.palindromes, again.provenance) == (model.palindromes, model.provenance)
    assert (again.error_rate, again.name) == (0.01, model.name)
    assert again.digest == model.digest != replace(model, p_v=model.p_v[::-1].copy()).digest
    write_model(again, tmp_path / "n.json")
    assert (tmp_path / "n.json").read_bytes() == (tmp_path / "m.json").read_bytes()


@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_folder(tmp_path: Path, d: bool) -> None:
    model = small_model(4, d=d, genes=3, palindrome=2)
    write_model(model, tmp_path / "m")
    again = read_model(tmp_path / "m")
    for name, table in tables(model).items():
        assert getattr(again, name) == pytest.approx(table, rel=1e-14, abs=1e-17), name
    assert again.palindromes == model.palindromes and again.v == model.v and again.name == "m"


def test_indices_and_not_lines_are_places(tmp_path: Path) -> None:
    model = small_model(5)
    write_model(model, tmp_path)
    path = tmp_path / "model_params.txt"
    lines = path.read_text().splitlines()
    v = [k for k, line in enumerate(lines) if line.startswith("%TRXV")]
    lines[v[0]], lines[v[1]] = lines[v[1]], lines[v[0]]
    path.write_text("\n".join(lines))
    assert read_model(tmp_path).v == model.v


def test_given_v(tmp_path: Path) -> None:
    """P(J | V) and P(D | V, J) become P(D, J), as the field's programs have it."""
    model = small_model(6, zeros=False)
    write_model(model, tmp_path)
    path = tmp_path / "model_marginals.txt"
    before, rest = path.read_text().split("@j_choice\n")
    _, after = rest.split("@v_3_del\n")
    rng = np.random.default_rng(0)
    p_j, p_d = rng.dirichlet(np.ones(2), 2), rng.dirichlet(np.ones(2), (2, 2))

    def rows(table: Any) -> str:
        return "".join(f"#\n%{','.join(map(repr, row))}\n" for row in table.reshape(-1, 2).tolist())

    between = f"@j_choice\n$Dim[2,2]\n{rows(p_j)}@d_gene\n$Dim[2,2,2]\n{rows(p_d)}@v_3_del\n"
    path.write_text(before + between + after)
    expected = np.einsum("v,vj,vjd->dj", model.p_v, p_j, p_d)
    assert read_model(tmp_path).p_dj[0] == pytest.approx(expected, rel=1e-14)


def changed(folder: Path, file: str, old: str, new: str) -> int:
    """Replace a text in a file of a model; returns its line."""
    path = folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return text[: text.index(old)].count("\n") + 1


PARAMS, MARGINALS, ANCHORS = "model_params.txt", "model_marginals.txt", "V_gene_CDR3_anchors.csv"


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (PARAMS, "%TRXV2*01;", "%TRXV2*01", "%name;sequence;index"),
        (PARAMS, "#GeneChoice;V_gene;Undefined_side;7;v_choice", "#GeneChoice;v_choice", "#type;genes;side"),
        (PARAMS, "%1;2", "%1;1", "index 1 twice"),
        (PARAMS, "%-1;0", "%-3;0", "deletions that go up by one"),
        (PARAMS, "%-1;0", "%x;0", "a whole number"),
        (PARAMS, "%T;3", "%U;3", "A, C, G, U"),
        (PARAMS, ";v_choice", ";v_gene", "an event v_choice"),
        (MARGINALS, "$Dim[2]", "$Dim[3]", "2 numbers of v_choice, expected 3"),
        (MARGINALS, "$Dim[2]", "#", "$Dim[...]"),
        (MARGINALS, "%0.", "%0,0.", "3 numbers of v_choice, expected 2"),
        (MARGINALS, "%0.", "%O.", "could not convert"),
        (MARGINALS, "@v_3_del", "@v_del", "a table v_3_del"),
        (MARGINALS, "%0.", "%0.5", "p_v (v_choice) with a sum of"),
        (ANCHORS, "TRXV1*01,2", "TRXV1*01,-1", "a position from 0 on"),
        (ANCHORS, "anchor_index", "anchor", "no column anchor_index"),
    ],
)
def test_what_is_wrong_in_a_folder(tmp_path: Path, file: str, old: str, new: str, message: str) -> None:
    write_model(small_model(7, zeros=False), tmp_path)
    line = changed(tmp_path, file, old, new)
    with pytest.raises(FormatError) as caught:
        read_model(tmp_path)
    assert message in str(caught.value) and file in str(caught.value)
    assert caught.value.line is None or abs(caught.value.line - line) <= 60


def test_line_of_a_wrong_realisation(tmp_path: Path) -> None:
    write_model(small_model(7), tmp_path)
    line = changed(tmp_path, PARAMS, "%TRXV2*01;A", "%TRXV2*01;?")
    with pytest.raises(FormatError, match="sequence of TRXV2") as caught:
        read_model(tmp_path)
    assert caught.value.line == line


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file"):
        read_model(tmp_path)
    with pytest.raises(FormatError, match="JSON file of plait"):
        read_model(tmp_path / "none.json")
    with pytest.raises(InvalidInput, match="found 'none'"):
        load_model("none")
    with pytest.raises(InvalidInput, match="model"):
        bundled_model("none")
    assert all(bundled_model(name).name for name in bundled_models())
    assert read_model is home_of_read_model


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), "other", "'other', 1"),
        (("version",), 2, "version 1"),
        (("genes",), [], "'genes'"),
        (("genes", "v", 0, "anchor"), 77, "anchor of TRXV1"),
        (("genes", "v", 0, "sequence"), "ACN", "genes.v[0].sequence"),
        (("palindromes", "d3"), "1", "palindromes.d3"),
        (("probabilities", "v"), [0.5, 0.6], "found a sum of 1.1 in probabilities.v"),
        (("probabilities", "v"), [0.5, -0.5], "a negative or infinite number"),
        (("probabilities", "v"), [1.0], "expected shape (2,)"),
        (("probabilities", "vd_step", 2), [1, 1], "probabilities.vd_step"),
        (("probabilities", "v_deletion", 1), [0.9, 0, 0, 0, 0, 0, 0], "a sum of 0.9 for TRXV2*01"),
        (("probabilities", "dj_length"), "x", "probabilities.dj_length"),
        (("probabilities", "dj_step", 1), [0, 0, 0, 0], "a sum of 0 for C"),
    ],
)
def test_what_is_wrong_in_a_file(tmp_path: Path, place: Any, value: Any, message: str) -> None:
    path = tmp_path / "m.json"
    write_model(small_model(8), path)
    content = json.loads(path.read_text())
    within = content
    for step in place[:-1]:
        within = within[step]
    within[place[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(FormatError) as caught:
        read_model(path)
    assert message in str(caught.value)


def test_json_errors_have_lines(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{\n"format": }')
    with pytest.raises(FormatError, match="line 2"):
        read_model(tmp_path / "m.json")


def test_notes() -> None:
    model = small_model(9)
    v = (replace(model.v[0], anchor=None), replace(model.v[1], function="P"))
    told = " ".join(replace(model, v=v).notes())
    assert "1 of 2 V genes without a known anchor" in told
    assert "2 of 2 V genes that are not functional" in told
    assert model.notes() == ()
