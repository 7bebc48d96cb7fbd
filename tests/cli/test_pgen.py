"""``plait vdj pgen``, ``scenarios`` and ``generate``: what they write, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from plait.testing.recombination import small_model
from plait.vdj.model import GenerationProbability, ModelGene, RecombinationModel, ScenarioFinder, write_model

Table = dict[str, list[Any]]


def small(d: bool = True) -> RecombinationModel:
    """Whose junctions begin with Cys and end with Phe, more often than not."""
    model = small_model(1, d=d, zeros=False, most=4)
    v = (ModelGene("TRBV1*01", "TGTGCA", 0, "F"), ModelGene("TRBV2*01", "TGTAGC", 0, "F"))
    j = (ModelGene("TRBJ1*01", "GCTTTC", 3, "F"), ModelGene("TRBJ2*01", "CATTTT", 3, "F"))
    return replace(model, name="small", v=v, j=j)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_model(small(), tmp_path / "model.json")
    return tmp_path / "model.json"


def read(path: Path) -> Table:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pydict()
    header, *lines = [line.split("\t") for line in path.read_text().splitlines()]
    return {name: [line[k] for line in lines] for k, name in enumerate(header)}


@pytest.fixture
def drawn(plait: Any, model: Path, tmp_path: Path) -> Path:
    out = tmp_path / "drawn.tsv"
    assert plait("vdj", "generate", "--model", model, "-n", 300, "--keep", "all", "-o", out).status == 0
    return out


def test_generate(plait: Any, model: Path, tmp_path: Path) -> None:
    outs = [tmp_path / f"{k}.tsv" for k in range(3)]
    for out, threads, n in zip(outs, (1, 3, 1), (400, 400, 500), strict=True):
        words = ("--model", model, "-n", n, "--seed", 7, "--threads", threads, "-o", out)
        found = plait("vdj", "generate", *words)
        assert found.status == 0 and f"{n} rows of" in found.out
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert outs[2].read_bytes().startswith(outs[0].read_bytes())
    rows = read(outs[0])
    assert set(rows["productive"]) == {"T"} and len(rows["junction"]) == 400
    for junction, acids, length in zip(
        rows["junction"], rows["junction_aa"], rows["junction_length"], strict=True
    ):
        assert (acids[0], len(junction), len(acids)) == ("C", int(length), int(length) // 3)
        assert acids[-1] in "FW" and "*" not in acids
    facts = json.loads(Path(f"{outs[0]}.json").read_text())["metadata"]["plait.provenance"]["parameters"]
    assert (facts["seed"], facts["model"], facts["model_digest"]) == (7, "small", small().digest)


def test_generated_rows_say_what_was_chosen(drawn: Path) -> None:
    model, rows = small(), read(drawn)
    assert set(rows["productive"]) == {"T", "F"}
    for k, junction in enumerate(rows["junction"]):
        v = next(gene for gene in model.v if gene.name == rows["v_call"][k])
        if rows["p3v_length"][k] == "0":
            kept = len(v.sequence) - int(rows["v_3_deletion"][k])
            assert junction.startswith(v.sequence[:kept])
        else:
            assert junction.startswith(v.sequence) and rows["v_3_deletion"][k] == "0"
        assert (rows["junction_aa"][k] == "") == (len(junction) % 3 > 0)


@pytest.mark.parametrize("suffix", ["tsv", "parquet", "tsv.gz"])
def test_pgen(plait: Any, model: Path, drawn: Path, tmp_path: Path, suffix: str) -> None:
    outs = [tmp_path / f"{k}.{suffix}" for k in range(2)]
    for out, threads in zip(outs, (1, 2), strict=True):
        words = ("--model", model, "--kind", "both", "--threads", threads, "-o", out)
        found = plait("vdj", "pgen", drawn, *words)
        assert found.status == 0 and "300 rows" in found.out
    assert outs[0].read_bytes() == outs[1].read_bytes()
    if suffix == "tsv.gz":
        return
    rows, given = read(outs[0]), read(drawn)
    assert list(rows)[-4:] == ["pgen_nt", "pgen_aa", "status", "status_aa"]
    engine = GenerationProbability(small(), threads=1)
    expected = engine.compute(given["junction"], given["v_call"], given["j_call"]).pgen.tolist()
    assert [float(x or "nan") for x in rows["pgen_nt"]] == pytest.approx(expected, nan_ok=True, rel=1e-14)
    acids = engine.compute(given["junction_aa"], given["v_call"], given["j_call"], kind="aa").pgen.tolist()
    assert [float(x or "nan") for x in rows["pgen_aa"]] == pytest.approx(acids, nan_ok=True, rel=1e-14)
    assert {s for s, text in zip(rows["status_aa"], given["junction_aa"], strict=True) if not text} == {
        "missing_junction"
    }


def test_calls_and_columns(plait: Any, model: Path, write_tsv: Callable[..., Path], tmp_path: Path) -> None:
    junctions = ["TGTGCAGCTTTC", "", "AAAAAAGCTTTC", "TGTGCAGC?TTC"]
    columns = {
        "junction": junctions,
        "status": ["a"] * 4,
        "v_call": ["TRBV1"] * 4,
        "j_call": ["TRBJ1", "x", "", ""],
    }
    out = tmp_path / "out.tsv"
    found = plait("vdj", "pgen", write_tsv(columns), "--model", model, "--calls", "v", "-o", out)
    assert found.status == 0 and "column status is now input_status" in found.out
    rows = read(out)
    assert rows["status"] == ["ok", "missing_junction", "v_not_matching", "invalid_symbol"]
    assert rows["input_status"] == ["a"] * 4 and rows["pgen_nt"][1:] == ["", "0", ""]
    engine = GenerationProbability(small(), threads=1)
    assert float(rows["pgen_nt"][0]) == engine.compute(junctions[:1], v_call=["TRBV1"]).pgen[0]


def test_tables_without_what_is_not_used(plait: Any, model: Path, write_tsv: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    words = ("--model", model, "--calls", "none", "-o", out)
    motifs = write_tsv({"junction_aa": ["CAF", "C[AS]F", "C.F"]})
    assert plait("vdj", "pgen", motifs, "--kind", "motif", *words).status == 0
    values = [float(x) for x in read(out)["pgen_aa"]]
    assert values == sorted(values) and values[0] > 0
    # Translated where there are no amino acids.
    nucleotides = write_tsv({"junction": ["TGTGCATTC", "TGTGCATT"]}, "nt.tsv")
    assert plait("vdj", "pgen", nucleotides, "--kind", "aa", *words).status == 0
    rows = read(out)
    assert (float(rows["pgen_aa"][0]), rows["status"][1]) == (values[0], "missing_junction")
    failed = plait("vdj", "pgen", nucleotides, "--model", model, "-o", out)
    assert failed.status == 2 and "v_call" in failed.err


def test_scenarios(plait: Any, model: Path, drawn: Path, tmp_path: Path) -> None:
    outs = [tmp_path / f"s{k}.tsv" for k in range(2)]
    for out, threads in zip(outs, (1, 2), strict=True):
        words = ("--model", model, "--best", 3, "--calls", "none", "--threads", threads, "-o", out)
        assert plait("vdj", "scenarios", drawn, *words).status == 0
    assert outs[0].read_bytes() == outs[1].read_bytes()
    rows, given = read(outs[0]), read(drawn)
    finder = ScenarioFinder(small())
    at = 0
    for record, junction in enumerate(given["junction"]):
        best = finder.best(junction, 3) if len(junction) >= 6 else []
        for rank, scenario in enumerate(best, 1):
            assert (int(rows["record"][at]), int(rows["scenario_rank"][at])) == (record, rank)
            assert float(rows["scenario_probability"][at]) == scenario.probability
            assert rows["n1"][at] == junction[scenario.v_end : scenario.d_start]
            assert 0 < float(rows["scenario_share"][at]) <= 1 + 1e-12
            at += 1
        if not best:
            assert rows["status"][at] == "too_short" and rows["scenario_rank"][at] == ""
            at += 1
    assert at == len(rows["record"])


def test_chains_without_d(plait: Any, tmp_path: Path) -> None:
    write_model(small(d=False), tmp_path / "vj")
    out, scenarios = tmp_path / "drawn.parquet", tmp_path / "s.parquet"
    assert plait("vdj", "generate", "--model", tmp_path / "vj", "-n", 40, "-o", out).status == 0
    assert "d_call" not in read(out)
    assert plait("vdj", "scenarios", out, "--model", tmp_path / "vj", "-o", scenarios).status == 0
    assert set(read(scenarios)["d_call"]) == {None} and set(read(scenarios)["status"]) == {"ok"}


def test_bad_requests_leave_nothing(plait: Any, model: Path, drawn: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    out = tmp_path / "out.tsv"
    broken = json.loads(model.read_text())
    for words, message in (
        (("generate", "--model", model, "-n", -1, "-o", out), "count"),
        (("generate", "--model", model, "-n", 1, "--seed", -1, "-o", out), "seed"),
        (("generate", "--model", "nowhere", "-n", 1, "-o", out), "nowhere"),
        (("pgen", "--model", model, "-o", out), "inputs"),
        (("pgen", tmp_path / "none.tsv", "--model", model, "-o", out), "none.tsv"),
        (("pgen", drawn, "--model", model, "-o", drawn), "also an input"),
        (("scenarios", drawn, "--model", model, "--best", 0, "-o", out), "best"),
        (("pgen", drawn, "--model", drawn, "-o", out), "drawn.tsv, line 1"),
    ):
        found = plait("vdj", *words)
        assert found.status == 2 and message in found.err, found.err
    assert sorted(tmp_path.iterdir()) == before and broken["name"] == "small"


def test_a_model_without_productive_junctions(plait: Any, tmp_path: Path) -> None:
    model = small_model(2, d=False, most=0)
    j = tuple(
        replace(gene, sequence=gene.sequence[: (gene.anchor or 0) + 1] + "AA" + "GC") for gene in model.j
    )
    write_model(replace(model, j=j), tmp_path / "m.json")
    found = plait("vdj", "generate", "--model", tmp_path / "m.json", "-n", 5, "-o", tmp_path / "o.tsv")
    assert found.status == 2 and "no productive junction" in found.err
    assert not (tmp_path / "o.tsv").exists()
