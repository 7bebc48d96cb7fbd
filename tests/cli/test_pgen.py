"""``plait vdj pgen``, ``scenarios`` and ``generate``: what they write, and what they refuse."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.examples import often
from support.recombination import small_model

from plait.reports.model_text import PGEN_MEANINGS
from plait.vdj.model import (
    PGEN_STATUSES,
    GenerationProbability,
    ModelGene,
    RecombinationModel,
    ScenarioFinder,
    bundled_models,
    write_model,
)

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


@pytest.mark.parametrize("suffix", often(1, ["tsv", "parquet", "tsv.gz"]))
def test_pgen(plait: Any, model: Path, drawn: Path, tmp_path: Path, suffix: str) -> None:
    outs = [tmp_path / f"{k}.{suffix}" for k in range(2)]
    for out, threads in zip(outs, (1, 2), strict=True):
        words = ("--model", model, "--calls", "use", "--threads", threads, "-o", out)
        found = plait("vdj", "pgen", drawn, *words)
        assert found.status == 0 and "300 rows" in found.out and "that each row names" in found.out
    assert outs[0].read_bytes() == outs[1].read_bytes()
    if suffix == "tsv.gz":
        return
    rows, given = read(outs[0]), read(drawn)
    assert list(rows)[-4:] == ["pgen_nt", "pgen_nt_status", "pgen_aa", "pgen_aa_status"]
    engine = GenerationProbability(small(), threads=1)
    expected = engine.compute(given["junction"], given["v_call"], given["j_call"]).pgen.tolist()
    assert [float(x or "nan") for x in rows["pgen_nt"]] == pytest.approx(expected, nan_ok=True, rel=1e-14)
    acids = engine.compute(given["junction_aa"], given["v_call"], given["j_call"], kind="aa").pgen.tolist()
    assert [float(x or "nan") for x in rows["pgen_aa"]] == pytest.approx(acids, nan_ok=True, rel=1e-14)
    assert {s for s, text in zip(rows["pgen_aa_status"], given["junction_aa"], strict=True) if not text} == {
        "out_of_frame"
    }


def test_the_summary_says_what_came_of_all_rows(
    plait: Any, model: Path, drawn: Path, write_tsv: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out.parquet"
    given = read(drawn)
    columns = {name: given[name] for name in ("junction", "v_call", "j_call")}
    columns["v_call"] = ["TRBV9", *given["v_call"][1:]]
    found = plait("vdj", "pgen", write_tsv(columns), "--model", model, "--calls", "use", "--log10", "-o", out)
    assert found.status == 0 and "unknown_v_call: TRBV9 1" in found.out
    rows = read(out)
    facts = json.loads(Path(f"{out}.summary.json").read_text())
    counts = facts["pgen_nt"]["statuses"]
    assert counts == {status: rows["pgen_nt_status"].count(status) for status in set(rows["pgen_nt_status"])}
    assert facts["rows"] == 300 and facts["pgen_nt"]["blamed_calls"] == {"unknown_v_call": {"TRBV9": 1}}
    logs = sorted(x for x in rows["log10_pgen_nt"] if x is not None)
    assert logs == [math.log10(x) for x in sorted(x for x in rows["pgen_nt"] if x)]
    for share, value in facts["pgen_nt"]["log10_quantiles"].items():
        assert value == pytest.approx(np.quantile(logs, float(share), method="lower"), abs=0.011)
    assert facts["pgen_nt"]["zeros"] == sum(x == 0 for x in rows["pgen_nt"] if x is not None)


@pytest.mark.parametrize("command", often(1, ["pgen", "scenarios", "generate"]))
def test_help_names_the_models_that_come_with_it(plait: Any, command: str) -> None:
    shown = plait("vdj", command, "--help").out
    assert all(name in shown for name in bundled_models())


def test_every_status_has_a_meaning() -> None:
    assert set(PGEN_MEANINGS) == {*PGEN_STATUSES, "out_of_frame"}


def test_calls_and_columns(plait: Any, model: Path, write_tsv: Callable[..., Path], tmp_path: Path) -> None:
    junctions = ["TGTGCAGCTTTC", "", "AAAAAAGCTTTC", "TGTGCAGC?TTC"]
    columns = {
        "junction": junctions,
        "pgen_nt": ["a"] * 4,
        "v_call": ["TRBV1"] * 4,
        "j_call": ["TRBJ1", "x", "", ""],
    }
    out = tmp_path / "out.tsv"
    found = plait("vdj", "pgen", write_tsv(columns), "--model", model, "--calls", "v", "-o", out)
    assert found.status == 0 and "column pgen_nt is now input_pgen_nt" in found.out
    rows = read(out)
    assert rows["pgen_nt_status"] == ["ok", "missing_junction", "v_not_matching", "invalid_symbol"]
    assert rows["input_pgen_nt"] == ["a"] * 4 and rows["pgen_nt"][1:] == ["", "0", ""]
    engine = GenerationProbability(small(), threads=1)
    assert float(rows["pgen_nt"][0]) == engine.compute(junctions[:1], v_call=["TRBV1"]).pgen[0]


def test_tables_without_what_is_not_used(plait: Any, model: Path, write_tsv: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    words = ("--model", model, "-o", out)
    motifs = write_tsv({"junction_aa": ["CAF", "C[AS]F", "C.F"]})
    assert plait("vdj", "pgen", motifs, "--of", "motif", *words).status == 0
    values = [float(x) for x in read(out)["pgen_motif"]]
    assert values == sorted(values) and values[0] > 0
    # The columns that are there decide what is computed.
    assert plait("vdj", "pgen", motifs, *words).status == 0
    assert read(out)["pgen_aa_status"] == ["ok", "invalid_symbol", "invalid_symbol"]
    # Translated where there are no amino acids.
    junctions = ["TGTGCATTC", "TGTGCATT", "TGTGCRTTC", ""]
    nucleotides = write_tsv({"junction": junctions, "sequence_id": list("abcd")}, "nt.tsv")
    assert plait("vdj", "pgen", nucleotides, "--of", "aa", *words).status == 0
    rows = read(out)
    assert float(rows["pgen_aa"][0]) == values[0]
    assert rows["pgen_aa_status"] == ["ok", "out_of_frame", "ok", "missing_junction"]
    assert plait("vdj", "pgen", nucleotides, *words).status == 0
    assert list(read(out)) == ["junction", "sequence_id", "pgen_nt", "pgen_nt_status"]
    failed = plait("vdj", "pgen", nucleotides, "--calls", "use", *words)
    assert failed.status == 2 and "v_call" in failed.err
    assert plait("vdj", "pgen", nucleotides, "--of", "motif", *words).status == 2


def test_lines_without_a_header(plait: Any, model: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "lines.txt", tmp_path / "out.tsv"
    path.write_text("TGTGCAGCTTTC\tTRBV1\tTRBJ1\nTGTAGCCATTTT\tTRBV2\tTRBJ9\n")
    words = (path, "--layout", "lines", "--model", model, "-o", out)
    assert plait("vdj", "pgen", *words, "--of", "nt", "--calls", "use").status == 0
    assert read(out)["pgen_nt_status"] == ["ok", "unknown_j_call"]
    path.write_text("CAF\nCSFF\n")
    assert plait("vdj", "pgen", *words, "--of", "aa").status == 0
    assert list(read(out)) == ["junction_aa", "pgen_aa", "pgen_aa_status"] and len(read(out)["pgen_aa"]) == 2
    # What other programs write: nucleotides, amino acids and genes.
    path.write_text("TGTGCATTC\tCAF\tTRBV1\tTRBJ1\tmore\n")
    assert plait("vdj", "pgen", *words, "--of", "nt,aa", "--calls", "j").status == 0
    assert list(read(out))[:5] == ["junction", "junction_aa", "v_call", "j_call", "column_5"]
    assert read(out)["pgen_nt_status"] == read(out)["pgen_aa_status"] == ["ok"]
    failed = plait("vdj", "pgen", *words)
    assert failed.status == 2 and "of: found 'auto' for lines without a header" in failed.err
    path.write_text("TGTGCATTC\nTGTGCATTC\tTRBV1\n")
    failed = plait("vdj", "pgen", *words, "--of", "nt")
    assert (
        failed.status == 2
        and "line 2: found 2 columns, expected 1 columns, as in the first line" in failed.err
    )


def test_scenarios(plait: Any, model: Path, drawn: Path, tmp_path: Path) -> None:
    outs = [tmp_path / f"s{k}.tsv" for k in range(2)]
    for out, threads in zip(outs, (1, 2), strict=True):
        words = ("--model", model, "--best", 3, "--threads", threads, "-o", out)
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
            assert rows["n2"][at] == junction[scenario.d_end : scenario.j_start]
            assert rows["d_call"][at] == small().d[scenario.d].name
            cut = int(rows["d_3_deletion"][at]) - int(rows["p3d_length"][at])
            assert cut == scenario.d3_deletion
            assert 0 < float(rows["scenario_share"][at]) <= 1 + 1e-12
            at += 1
        if not best:
            assert rows["status"][at] == "too_short" and rows["scenario_rank"][at] == ""
            at += 1
    assert at == len(rows["record"])


def test_rows_without_scenarios(plait: Any, model: Path, write_tsv: Any, tmp_path: Path) -> None:
    out = tmp_path / "s.tsv"
    given = write_tsv(
        {"sequence_id": ["a", "b", "c"], "junction": ["TGTGCANTTC", "tgtgcagctttc", "AAAAAAAAA"]}
    )
    found = plait("vdj", "scenarios", given, "--model", model, "--best", 1, "-o", out)
    assert found.status == 0 and "1 scenarios. Of the generation probability" in found.out
    rows = read(out)
    assert rows["sequence_id"] == ["a", "b", "c"] and rows["scenario_rank"] == ["", "1", ""]
    assert rows["status"] == ["invalid_symbol", "ok", "v_not_matching"]
    assert float(rows["pgen_nt"][0]) > 0 and rows["v_call"][2] == rows["n1"][2] == ""


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_posteriors(plait: Any, tmp_path: Path, d: bool) -> None:
    write_model(small(d), tmp_path / "model.json")
    drawn, out = tmp_path / "drawn.parquet", tmp_path / "p.parquet"
    base = ("--model", tmp_path / "model.json")
    assert plait("vdj", "generate", *base, "-n", 12, "--keep", "all", "-o", drawn).status == 0
    assert plait("vdj", "scenarios", drawn, *base, "--posteriors", "-o", out).status == 0
    rows, given = read(out), read(drawn)
    finder, model = ScenarioFinder(small(d)), small(d)
    assert rows["junction"] == given["junction"] and ("posterior_d_call" in rows) == d
    for k, junction in enumerate(given["junction"]):
        if rows["pgen_nt_status"][k] != "ok":
            assert rows["posterior_v_call"][k] is rows["scenario_entropy"][k] is None
            continue
        whole = finder.best(junction, 1 << 16)
        total = sum(s.probability for s in whole)
        shares = [sum(s.probability for s in whole if s.j == j) / total for j in range(len(model.j))]
        assert rows["posterior_j_share"][k] == pytest.approx(max(shares))
        assert rows["posterior_j_call"][k] == model.j[int(np.argmax(shares))].name
        mean = sum(s.probability * s.v_deletion for s in whole) / total
        assert rows["mean_v_3_deletion"][k] == pytest.approx(mean, abs=1e-9)
        bits = -sum(s.probability / total * math.log2(s.probability / total) for s in whole)
        assert rows["scenario_entropy"][k] == pytest.approx(bits, abs=1e-9)


def test_chains_without_d(plait: Any, tmp_path: Path) -> None:
    write_model(small(d=False), tmp_path / "vj")
    out, scenarios = tmp_path / "drawn.parquet", tmp_path / "s.parquet"
    assert plait("vdj", "generate", "--model", tmp_path / "vj", "-n", 40, "-o", out).status == 0
    assert set(read(out)["d_call"]) == {None}
    assert plait("vdj", "scenarios", out, "--model", tmp_path / "vj", "-o", scenarios).status == 0
    assert set(read(scenarios)["d_call"]) == {None} and set(read(scenarios)["status"]) == {"ok"}


def test_bad_requests_leave_nothing(plait: Any, model: Path, drawn: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    out = tmp_path / "out.tsv"
    broken = json.loads(model.read_text())
    for words, message in (
        (("pgen", drawn, "--model", model, "--of", "nt", "--calls", "w", "-o", out), "--calls"),
        (("pgen", "-", "--model", model, "--resume", "-o", out), "resume: found standard input"),
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


@pytest.mark.slow
def test_a_model_without_productive_junctions(plait: Any, tmp_path: Path) -> None:
    model = small_model(2, d=False, most=0)
    j = tuple(
        replace(gene, sequence=gene.sequence[: (gene.anchor or 0) + 1] + "AA" + "GC") for gene in model.j
    )
    write_model(replace(model, j=j), tmp_path / "m.json")
    found = plait("vdj", "generate", "--model", tmp_path / "m.json", "-n", 5, "-o", tmp_path / "o.tsv")
    assert found.status == 2 and "no such junction" in found.err
    assert not (tmp_path / "o.tsv").exists()
