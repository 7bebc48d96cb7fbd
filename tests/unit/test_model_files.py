"""Models in files: what is written is read again, and what is wrong is named with its place."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.recombination import small_model

from plait.errors import FormatError, InvalidInput
from plait.vdj.model import (
    RecombinationModel,
    bundled_model,
    bundled_models,
    load_model,
    read_model,
    write_model,
)
from plait.vdj.model.igor import MODEL_FILES
from plait.vdj.model.recombination_model import read_model as home_of_read_model

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
        (PARAMS, "%T;3", "%T;\u00b3", "%value;index"),
        (PARAMS, "%TRXV2*01;", "%TRXV1*01;", "TRXV1*01 2 times in V genes"),
        (PARAMS, "%0;0\n%1;1", "%-3;0\n%1;1", "found -3, expected a number of nucleotides"),
        (PARAMS, "%0;0\n%1;1", "%30000000000;0\n%1;1", "expected a number of nucleotides"),
        (PARAMS, "%0;0\n%1;1", "%1;0\n%1;1", "vd_ins with a number twice"),
        (PARAMS, "#SingleErrorRate\n0.0", "#SingleErrorRate\nnan", "found nan in error_rate"),
        (MARGINALS, "@vd_dinucl\n$Dim[16]", "@vd_dinucl\n$Dim[-4,-4]", "a line $Dim[...] of sizes"),
        (MARGINALS, "@j_choice", "@v_choice", "@v_choice twice"),
        (ANCHORS, "TRXV1*01,2", "TRXV1*01,\u00b2", "a position from 0 on"),
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


@pytest.mark.parametrize("value", ["inf", "nan"])
def test_steps_that_are_no_numbers(tmp_path: Path, value: str) -> None:
    model = small_model(7, zeros=False)
    write_model(model, tmp_path)
    path = tmp_path / MARGINALS
    before, after = path.read_text().split("@vd_dinucl\n$Dim[16]\n#\n%")
    path.write_text(f"{before}@vd_dinucl\n$Dim[16]\n#\n%{value},{after.partition(',')[2]}")
    with pytest.raises(FormatError, match="none or infinite in vd_dinucl"):
        read_model(tmp_path)


def test_a_folder_of_igor_itself(tmp_path: Path) -> None:
    """Other places and one other name, names that are headers of IMGT, anchors between semicolons."""
    model = small_model(4, d=True, genes=3)
    write_model(model, tmp_path / "m")
    own = tmp_path / "igor"
    (own / "models").mkdir(parents=True)
    (own / "ref_genome").mkdir()
    header = {g.name: f"X1|{g.name}|Homo sapiens|{g.function}|REGION|" for g in (*model.v, *model.j)}
    for file, place in (
        (PARAMS, "models/model_parms.txt"),
        (MARGINALS, f"models/{MARGINALS}"),
        (ANCHORS, f"ref_genome/{ANCHORS}"),
        (ANCHORS.replace("V", "J", 1), f"ref_genome/{ANCHORS.replace('V', 'J', 1)}"),
    ):
        text = (tmp_path / "m" / file).read_text()
        if file.endswith(".csv"):
            text = "".join(f"{';'.join(line.split(',')[:2])}\n" for line in text.splitlines())
        for name, full in header.items():
            text = text.replace(f"{name};", f"{full};")
        (own / place).write_text("\ufeff" + text, encoding="utf-8")
    again = read_model(own)
    assert (again.v, again.d, again.j) == (model.v, model.d, model.j)
    assert again.digest == read_model(tmp_path / "m").digest


def test_the_folder_of_an_inference(tmp_path: Path) -> None:
    model = small_model(4)
    write_model(model, tmp_path / "model.json")
    write_model(model, tmp_path / "model")
    assert load_model(tmp_path).digest == model.digest


@pytest.mark.parametrize("name", ["TRXV1,2", "TRXV1;2", "a|b", "a\nb"])
def test_names_that_a_folder_cannot_hold(tmp_path: Path, name: str) -> None:
    model = small_model(4)
    model = replace(model, v=(replace(model.v[0], name=name), *model.v[1:]))
    with pytest.raises(InvalidInput, match=r"write a \.json file"):
        write_model(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    write_model(model, tmp_path / "m.json")
    assert read_model(tmp_path / "m.json").v == model.v


def test_line_of_a_wrong_realisation(tmp_path: Path) -> None:
    write_model(small_model(7), tmp_path)
    line = changed(tmp_path, PARAMS, "%TRXV2*01;A", "%TRXV2*01;?")
    with pytest.raises(FormatError, match="sequence of TRXV2") as caught:
        read_model(tmp_path)
    assert caught.value.line == line


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"(?i)no such file"):
        read_model(tmp_path)
    with pytest.raises(FormatError, match=r"none\.json: found no such file"):
        read_model(tmp_path / "none.json")
    with pytest.raises(InvalidInput, match="found 'none'"):
        load_model("none")
    with pytest.raises(InvalidInput, match="model"):
        bundled_model("none")
    assert all(bundled_model(name).name for name in bundled_models())
    assert read_model is home_of_read_model


@pytest.fixture
def righor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data of a package righor that has two small models."""
    listed = []
    for locus, folder in (("igk", "b_kappa"), ("trb", "t_beta")):
        place = tmp_path / "righor_models" / "human" / folder
        write_model(small_model(7, d=locus == "trb"), place)
        names = ("params", "marginals", "v_gene_cdr3_anchors", "j_gene_cdr3_anchors")
        files = dict(zip((f"filename_{name}" for name in names), MODEL_FILES, strict=True))
        told = {"species": ["homo sapiens", "human"], "chain": ["kappa", locus], "description": "made up"}
        listed.append(told | {key: f"human/{folder}/{name}" for key, name in files.items()})
    (tmp_path / "righor_models" / "models.json").write_text(json.dumps(listed))
    about = tmp_path / "righor-9.9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: righor\nVersion: 9.9\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "righor_models"


def test_models_of_an_installed_package(righor: Path) -> None:
    for name in ("human_IGK", "Human_igk", "righor_human_IGK"):
        found = load_model(name)
        assert (found.name, found.chain, found.v) == ("righor_human_IGK", "vj", small_model(7, d=False).v)
    assert found.provenance["package"] == "righor 9.9 (MIT)"
    assert found.provenance["files"][0] == "human/b_kappa/model_params.txt"
    # What comes with plait goes before.
    assert load_model("human_trb").name == "human_TRB"
    assert load_model("righor_human_TRB").v == small_model(7, d=True).v
    with pytest.raises(InvalidInput, match=r"human_TRB, .*did you mean righor_human_IGK\?"):
        load_model("righor_human_IGKK")


@pytest.mark.parametrize("text", ["{", "3", "[3]", "[{}]", '[{"chain": ["x"]}]'])
def test_a_package_that_is_another_one(righor: Path, text: str) -> None:
    (righor / "models.json").write_text(text)
    with pytest.raises(FormatError, match=r"models\.json"):
        load_model("human_IGK")


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.vdj.model.igor.installed_models", dict)
    with pytest.raises(InvalidInput, match=r"pip install 'plait\[models\]'"):
        load_model("human_IGH")


def test_unknown_bases_before_the_anchor_do_no_harm(tmp_path: Path) -> None:
    model = small_model(7)
    write_model(model, tmp_path)
    place = tmp_path / "model_params.txt"
    gene = model.v[0]
    assert gene.anchor is not None
    longer = gene.sequence[: gene.anchor] + "ANC" + gene.sequence[gene.anchor :]
    place.write_text(place.read_text().replace(f";{gene.sequence};0", f";{longer};0", 1))
    table = tmp_path / "V_gene_CDR3_anchors.csv"
    row = f"{gene.name},{gene.anchor}"
    table.write_text(table.read_text().replace(row, f"{gene.name},{gene.anchor + 3}", 1))
    found = read_model(tmp_path).v[0]
    assert (found.anchor, found.sequence) == (1, "C" + gene.sequence[gene.anchor :])


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), "other", "'other', version 1"),
        (("version",), 2, "version 1"),
        (("genes",), [], "'genes'"),
        (("genes", "v", 0, "anchor"), 77, "anchor of TRXV1"),
        (("genes", "v", 0, "sequence"), "ACN", "genes.v[0].sequence"),
        (("genes", "v", 0, "name"), "TRXV2*01", "TRXV2*01 2 times in V genes"),
        (("genes", "d", 0, "name"), "", "a gene without a name in D genes"),
        (("palindromes", "v"), -1, "in palindromes"),
        (("error_rate",), float("nan"), "NaN, which is no number"),
        (("error_rate",), 10**400, "error_rate"),
        (("probabilities", "v"), [10**400, 0], "probabilities.v"),
        (("probabilities", "dj"), None, "probabilities.dj': found None"),
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b"\x1f\x8b\x08\x00", "found damaged or cut-off gzip data"),
        (b"{\xe9", "no UTF-8 text at position 1"),
        (b"[]", "found list, expected an object"),
    ],
)
def test_files_that_are_no_json(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "m.json").write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read_model(tmp_path / "m.json")
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
