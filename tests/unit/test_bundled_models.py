"""The models that come with plait: what they are, where they are from, and what they say."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from plait.errors import InvalidInput
from plait.vdj.germline import load_germline
from plait.vdj.model import (
    GenerationProbability,
    JunctionSampler,
    RecombinationModel,
    bundled_model,
    bundled_models,
    load_model,
    write_model,
)

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "src/plait/vdj/model/data"
SCRIPT = REPOSITORY / "tools/infer_bundled_models.py"
#: Human TRB of known specificities, which many people have: of GIL (influenza), NLV (CMV) and GLC (EBV).
PUBLIC = (
    ("CASSIRSSYEQYF", "TRBV19", "TRBJ2-7"),
    ("CASSLAPGATNEKLFF", "TRBV7-6", "TRBJ1-4"),
    ("CASSYQGGNYGYTF", "TRBV6-5", "TRBJ1-2"),
    ("CSARDGTGNGYTF", "TRBV20-1", "TRBJ1-2"),
)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("infer_bundled_models", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def model() -> RecombinationModel:
    return bundled_model("human_TRB")


def test_every_model_has_its_source_and_no_other_file_is_there() -> None:
    told = (DATA / "SOURCES.md").read_text("utf-8")
    files = {f"{name}_model.json" for name in bundled_models()}
    assert {path.name for path in DATA.iterdir()} == files | {"SOURCES.md"}
    for name in bundled_models():
        found = bundled_model(name)
        assert f"## `{name}`" in told and found.digest in told, "the digest in SOURCES.md is another one"
        assert found.name == name and found.provenance["data_sha256"] in told
        assert (DATA / f"{name}_model.json").stat().st_size < 300_000


def test_the_data_of_others_are_not_in_it() -> None:
    """Inferred by plait from data under the Apache License, and said so in the file."""
    found = bundled_model("human_TRB").provenance
    assert "Apache-2.0" in found["data"] and found["made_by"] == "tools/infer_bundled_models.py"
    assert found["productive"]["used"] + found["nonproductive"]["used"] > 75_000
    assert found["limits"]


def test_names() -> None:
    assert bundled_models() == ("human_TRB",)
    assert load_model("human_TRB").digest == bundled_model("human_TRB").digest
    assert load_model("human-trb").digest == bundled_model("human_TRB").digest
    with pytest.raises(InvalidInput, match=r"one of human_TRB.*plait\[models\]"):
        load_model("mouse_TRB")


def test_a_name_goes_before_a_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "human_TRB").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert load_model("human_TRB").name == "human_TRB"


def test_genes_are_those_of_the_germline_set(model: RecombinationModel) -> None:
    germline = load_germline("human_trb")
    alleles = {allele.name: allele for part in (germline.v, germline.d, germline.j) for allele in part}
    for gene in (*model.v, *model.d, *model.j):
        assert (gene.sequence, gene.anchor) == (alleles[gene.name].sequence, alleles[gene.name].anchor)
    # Those of the set that it was inferred with, which did not have the genes of the genome.
    assert {gene.gene for gene in model.v} == {
        allele.gene for allele in germline.v if allele.source == "pyimmunarch 0.1.1"
    }
    assert len({gene.gene for gene in model.v}) == len(model.v), "one allele of each V gene"


def test_every_possible_choice_has_a_chance(model: RecombinationModel) -> None:
    assert model.p_v.min() > 0 and model.p_vd_length.min() > 0 and model.p_dj_length.min() > 0
    for k, d in enumerate(model.d):
        for n, j in enumerate(model.j):
            allowed = not (d.gene == "TRBD2" and j.gene.startswith("TRBJ1"))
            assert (model.p_dj[0, k, n] > 0) == allowed, "D2 lies behind the J1 cluster"
    # Sums are those of decimal numbers: nothing is left to rounding.
    for table in (model.p_v, model.p_dj.ravel(), model.p_vd_length, model.p_dj_length):
        assert table.sum() == pytest.approx(1, abs=1e-13)
    for rows in (model.p_v_deletions, model.p_j_deletions, model.vd_steps, model.dj_steps):
        assert rows.sum(1) == pytest.approx(np.ones(len(rows)), abs=1e-13)


def test_genes_that_data_cannot_tell_apart_share_evenly(model: RecombinationModel) -> None:
    p = {gene.gene: float(share) for gene, share in zip(model.v, model.p_v, strict=True)}
    assert p["TRBV12-3"] == pytest.approx(p["TRBV12-4"], rel=1e-6) and p["TRBV12-3"] > 0.005
    assert p["TRBV6-2"] == pytest.approx(p["TRBV6-3"], rel=1e-6) and p["TRBV6-2"] > 0.001


def test_insertions_are_as_many_as_in_nonproductive_rearrangements(model: RecombinationModel) -> None:
    """Some 4 to 7 at each junction of human TRB; productive rearrangements of blood have fewer."""
    for table in (model.p_vd_length, model.p_dj_length):
        assert 4.5 < table @ np.arange(table.size) < 7
    # G and C are preferred: TdT.
    assert model.vd_first[[1, 2]].sum() > 0.5 and model.dj_first[[1, 2]].sum() > 0.5


def test_public_junctions(model: RecombinationModel) -> None:
    junctions, v, j = (list(column) for column in zip(*PUBLIC, strict=True))
    engine = GenerationProbability(model, threads=1)
    given = engine.compute(junctions, v, j, kind="aa").pgen
    free = engine.compute(junctions, kind="aa").pgen
    assert (given > 1e-11).all() and (given <= free).all() and (free < 1e-3).all()
    found = engine.compute(["TGTGCCAGCAGCTTAGCTACGAGCAGTACTTC"], ["TRBV7-2"], ["TRBJ2-7"])
    assert found.pgen[0] > 1e-9


def test_a_quarter_of_what_is_made_is_productive(model: RecombinationModel) -> None:
    draws = JunctionSampler(model, seed=1).block(0, 20_000)
    assert 0.32 < (draws.length % 3 == 0).mean() < 0.345
    assert 0.22 < draws.productive.mean() < 0.3
    assert 42 < draws.length[draws.productive].mean() < 48


@pytest.mark.slow
def test_other_data_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.parquet"
    table.write_bytes(b"PAR1")
    command = [sys.executable, SCRIPT, "--parquet", table, "--output", tmp_path / "out"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode != 0 and hashlib.sha256(b"PAR1").hexdigest() in run.stderr
    assert not (tmp_path / "out").exists()


def test_rows(script: ModuleType) -> None:
    rows = script.Rows(["A", "C", "G"], ["v"] * 3, ["j"] * 3, ["x", "y", "x"])
    kept, left = rows.without(["x"])
    assert (kept.junction, left.junction) == (["C"], ["A", "G"])
    assert script.productive("TGTGCCTTC") and not script.productive("TGTTAATTC")
    assert not script.productive("TGTGCCTTCA")


def test_rounding_keeps_sums_and_zeros(script: ModuleType) -> None:
    table = np.random.default_rng(1).dirichlet(np.full(50, 0.1), 3)
    table[0, :20] = 0
    table[0] /= table[0].sum()
    found = script.rounded(table, 1)
    assert np.abs(found - table).max() <= 50 * script.UNIT
    assert found.sum(1) == pytest.approx(np.ones(3), abs=1e-14) and (found[0, :20] == 0).all()
    assert all(x == float(f"{x:.10f}") for x in found.ravel().tolist()), "no more digits than units have"
    assert script.rounded(table.reshape(1, 3, 50) / 3, 2).sum() == pytest.approx(1, abs=1e-14)


def test_what_differs_is_told(script: ModuleType, model: RecombinationModel, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    assert "no such file" in script.apart(path, model)
    write_model(model, path)
    assert script.apart(path, model) == ""
    content = json.loads(path.read_text())
    step = content["probabilities"]["vd_step"][0]
    step[0], step[1] = step[0] + 1e-4, step[1] - 1e-4
    path.write_text(json.dumps(content))
    assert "differ by 1.0e-04" in script.apart(path, model)
    content["provenance"]["donors"] = 1
    path.write_text(json.dumps(content))
    assert "provenance" in script.apart(path, model)


def test_priors_are_what_few_rearrangements_leave(script: ModuleType) -> None:
    """Without rows of its own a model of nonproductive rearrangements is the one it begins with."""
    start = script.beginning()
    rows = script.Rows(["TGTGCCAGCAGTGAAGCTAACTATGGCTACACCTTC"], ["TRBV2"], ["TRBJ1-2"], ["x"])
    script.ROUNDS = {"productive": 2, "nonproductive": 2}
    known = script.known(start, rows)
    assert known.junction == rows.junction
    first, made = script.of_productive(start, known)
    assert (made.junctions, made.impossible) == (1, 0)
    assert first.p_v.argmax() == [gene.gene for gene in first.v].index("TRBV2") and first.p_v.min() > 0
    heavy = dict.fromkeys(script.WORTH, 1e9)
    second, _ = script.of_nonproductive(first, known, heavy)
    for name in script.WORTH:
        assert getattr(second, name) == pytest.approx(getattr(first, name), abs=1e-7), name
    light, _ = script.of_nonproductive(first, known)
    assert light.p_v.max() > first.p_v.max()
