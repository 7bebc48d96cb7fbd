"""``plait vdj study --model``: sharing that follows Pgen, path counts or neither; what is kept."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.dataset as ds
import pytest

from plait.errors import InvalidInput
from plait.vdj import count_paths, study
from plait.vdj.convergence import pgen_tables as pgen_columns
from plait.vdj.convergence.claims import read_table
from plait.vdj.germline import load_germline
from plait.vdj.model import GenerationProbability, load_model, write_model
from plait.vdj.models import PathModel

pytestmark = pytest.mark.usefixtures("few_draws")

MODEL = "human_TRB"
BASE = ("--germline", "human_trb", "--device", "cpu", "--pi", "2", "--nu", "8")
SWEEP = ("--sweep-pi", "2", "--sweep-nu", "2,8")
QUICK = (*BASE, *SWEEP, "--no-regression")
DONORS = 6
Made = list[tuple[str, str, str]]


def made_up(n: int) -> Made:
    """Different junctions with their genes."""
    germline, rng = load_germline("human_trb"), random.Random(5)
    genes = [(v, j) for v in germline.v[::9] for j in germline.j[::4] if v.cdr3_end and j.cdr3_end]
    found: dict[str, tuple[str, str, str]] = {}
    while len(found) < n:
        v, j = rng.choice(genes)
        middle = "".join(rng.choices("ACGT", k=rng.randrange(12)))
        junction = v.cdr3_end[: -rng.randrange(1, 6)] + middle + j.cdr3_end[rng.randrange(1, 8) :]
        found[junction] = (junction, v.gene, j.gene)
    return list(found.values())


def ranks(values: Any) -> Any:
    order = np.argsort(np.argsort(values))
    return order / (len(order) - 1) - 0.5


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of the same clonotypes, in donors by Pgen, by path count, and by neither."""
    folder = tmp_path_factory.mktemp("samples")
    rows = made_up(600)
    junctions, v, j = zip(*rows, strict=True)
    pgen = GenerationProbability(load_model(MODEL)).compute(junctions, v, j).pgen
    counted = count_paths(
        junctions, v, j, germline="human_trb", model=PathModel(pi=2, nu=8), device="cpu"
    ).path_count
    rng = np.random.default_rng(2)
    for name, driver in (("likely", ranks(pgen)), ("counted", ranks(counted)), ("neither", np.zeros(600))):
        lines = ["junction\tv_call\tj_call\tsubject_id"]
        for donor in range(DONORS):
            has = rng.random(600) < np.minimum(0.15 * np.exp(5 * driver), 0.9)
            has[donor * 100 : (donor + 1) * 100] |= rng.random(100) < 0.5
            lines += ["\t".join((*rows[k], f"d{donor}")) for k in np.flatnonzero(has)]
        lines.append("TGTGCCTTT\tTRBV99\tTRBJ1-1\td0")
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
        (folder / f"{name}.csv").write_text(f"file\n{name}.tsv\n")
    return folder


@pytest.fixture(scope="module")
def whole(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from plait.cli import main

    out = tmp_path_factory.mktemp("whole") / "out"
    words = ("vdj", "study", str(samples / "likely.csv"), "-o", str(out), *QUICK, "--threads", "1")
    assert main([*words, "--model", MODEL]) == 0
    return out


def content(folder: Path) -> dict[str, bytes]:
    files = [path for name in ("tables", "clonotypes", "counts") for path in (folder / name).iterdir()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def facts_of(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / "study.json").read_text())
    for name in ("created", "timings", "inputs"):
        del facts[name]
    return facts


def answer_of(folder: Path) -> dict[str, Any]:
    answers = {answer["id"]: answer for answer in facts_of(folder)["answers"]}
    found: dict[str, Any] = answers["pgen_comparison"]
    return found


def test_pgen_of_every_clonotype(whole: Path) -> None:
    table = ds.dataset(whole / "clonotypes").to_table().to_pydict()
    genes = [table[name] for name in ("junction", "v_gene", "j_gene")]
    wanted = GenerationProbability(load_model(MODEL)).compute(*genes)
    found = np.array([np.nan if value is None else value for value in table["pgen_nt"]])
    assert np.array_equal(found, wanted.pgen, equal_nan=True)
    # The model is older than the germline set, and lacks some of its genes.
    known = {gene.name.partition("*")[0] for gene in load_model(MODEL).v}
    lacking = sum(gene not in known for gene in table["v_gene"])
    assert list(table["pgen_status"]).count("unknown_v_call") == np.isnan(found).sum() == lacking > 0
    statuses = {
        row["status"]: int(row["clonotypes"]) for row in read_table(whole / "tables/pgen_statuses.tsv")
    }
    facts = facts_of(whole)
    assert statuses == facts["pgen"]["statuses"] and sum(statuses.values()) == facts["clonotypes"]
    assert facts["pgen"]["zero"] == (found == 0).sum() and facts["pgen"]["without"] == lacking
    shared = np.array(table["subjects"]) >= 2
    assert facts["pgen"]["shared"] == np.sum(shared & ~np.isnan(found))
    limits = next(answer for answer in facts["answers"] if answer["id"] == "limits")
    assert limits["text"].startswith("All intervals, but those over subjects, take clonotypes as drawn")
    assert facts["parameters"]["model_digest"] == load_model(MODEL).digest
    assert (facts["parameters"]["recombination_model"], facts["parameters"]["model_calls"]) == (MODEL, "use")
    correlations = read_table(whole / "tables" / "correlations.tsv")
    assert {row["stratum_kind"] for row in correlations if row["x"] == "pgen_nt"} == {
        "all", "subject", "v_gene", "j_gene", "vj",
    }  # fmt: skip
    by_sharing = read_table(whole / "tables" / "pgen_by_sharing.tsv")
    assert sum(int(row["clonotypes"]) for row in by_sharing) == facts["clonotypes"] - lacking
    assert "pgen_nt" in read_table(whole / "tables" / "top_shared.tsv")[0]
    headline = answer_of(whole)["headline"]
    assert headline.startswith("Generation probability predicts sharing better than path counts")


@pytest.mark.slow
def test_the_answer_is_what_made_the_data(plait: Any, samples: Path, whole: Path, tmp_path: Path) -> None:
    for name, told in (
        ("counted", "Path counts predict sharing better than generation probability"),
        ("neither", "Whether generation probability or path counts predict sharing better cannot be told"),
    ):
        out = tmp_path / name
        found = plait("vdj", "study", samples / f"{name}.csv", "-o", out, *QUICK, "--model", MODEL)
        assert (found.status, found.err) == (0, "")
        assert answer_of(out)["headline"].startswith(told)
        assert told in " ".join(found.out.split())


@pytest.mark.slow
def test_nothing_depends_on_threads_or_parts(
    samples: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(whole / "counts", tmp_path / "kept")
    options: dict[str, Any] = {
        "germline": "human_trb",
        "model": PathModel(pi=2, nu=8, sweep_pi=(2,), sweep_nu=(2, 8)),
        "recombination_model": load_model(MODEL),
        "regression": False,
        "cache": tmp_path / "kept",
    }
    study(samples / "likely.csv", tmp_path / "threads", threads=3, **options)
    tables = {path.name: path.read_bytes() for path in (whole / "tables").iterdir()}
    assert {p.name: p.read_bytes() for p in (tmp_path / "threads" / "tables").iterdir()} == tables
    assert facts_of(tmp_path / "threads")["answers"] == facts_of(whole)["answers"]
    # In many parts.
    monkeypatch.setattr("plait.vdj.convergence.stages._PART_BYTES", 60_000)
    study(samples / "likely.csv", tmp_path / "parts", threads=2, **options)
    assert len(list((tmp_path / "parts" / "clonotypes").iterdir())) > 3
    assert {p.name: p.read_bytes() for p in (tmp_path / "parts" / "tables").iterdir()} == tables


@pytest.mark.slow
def test_pgen_is_computed_once(
    plait: Any, samples: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[int] = []
    compute = pgen_columns.PgenColumns._computed
    monkeypatch.setattr(
        pgen_columns.PgenColumns,
        "_computed",
        lambda self, *rest: (computed.append(1), compute(self, *rest))[1],
    )
    shutil.copytree(whole / "counts", tmp_path / "kept")
    words = ("vdj", "study", samples / "likely.csv", *QUICK, "--cache", tmp_path / "kept")
    assert plait(*words, "-o", tmp_path / "again", "--model", MODEL).status == 0
    assert computed == []
    # What is damaged is made again; another model or another use of calls is another content.
    (kept,) = (tmp_path / "kept").glob("pgen-*")
    good = kept.read_bytes()
    kept.write_bytes(good[:50])
    assert plait(*words, "-o", tmp_path / "damaged", "--model", MODEL).status == 0
    assert computed == [1] and kept.read_bytes() == good
    assert plait(*words, "-o", tmp_path / "any", "--model", MODEL, "--model-calls", "ignore").status == 0
    write_model(load_model(MODEL), tmp_path / "copy.json")
    assert plait(*words, "-o", tmp_path / "copy", "--model", tmp_path / "copy.json").status == 0
    assert computed == [1, 1]
    columns = [ds.dataset(folder / "clonotypes").to_table() for folder in (whole, tmp_path / "any")]
    use, ignore = (np.array(table["pgen_nt"].fill_null(0.0)) for table in columns)
    # With any genes a junction is made at least as often.
    assert np.all(ignore >= use * (1 - 1e-9)) and np.any(ignore > use * 1.01)
    assert "summed over all genes" in answer_of(tmp_path / "any")["text"]


@pytest.mark.slow
def test_a_run_stopped_after_pgen_goes_on(
    plait: Any, samples: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    words = ("vdj", "study", samples / "likely.csv", "-o", out, *QUICK, "--model", MODEL)

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("plait.vdj.convergence.stages.write_clonotypes", stopped)
        assert plait(*words).status == 130
    assert not (out / "study.json").exists() and len(list((out / "counts").glob("pgen-*"))) == 1
    monkeypatch.setattr(pgen_columns.PgenColumns, "_computed", stopped)
    assert plait(*words, "--resume").status == 0
    assert (content(out), facts_of(out)) == (content(whole), facts_of(whole))


@pytest.mark.slow
def test_regression_with_pgen(plait: Any, samples: Path, whole: Path, tmp_path: Path) -> None:
    words = (*BASE, *SWEEP, "--lambdas", 6, "--folds", 2, "--halves", 0, "--cache", whole / "counts")
    out = tmp_path / "out"
    found = plait("vdj", "study", samples / "likely.csv", "-o", out, *words, "--model", MODEL)
    assert (found.status, found.err) == (0, "")
    predictors = {row["predictor"]: row["group"] for row in read_table(out / "tables" / "predictors.tsv")}
    assert [name for name, group in predictors.items() if group == "pgen"] == ["log_pgen_nt", "pgen_is_zero"]
    models = {row["model"]: row for row in read_table(out / "tables" / "group_comparison.tsv")}
    assert {"pgen_only", "counts_and_pgen", "all_without_pgen", "counts_only"} <= set(models)
    pairs = read_table(out / "tables" / "pgen_groups.tsv")
    assert [(row["model"], row["other"]) for row in pairs] == [
        ("pgen_only", "counts_only"),
        ("counts_and_pgen", "counts_only"),
        ("counts_and_pgen", "pgen_only"),
    ]
    for row in pairs:
        one, other = models[row["model"]], models[row["other"]]
        for name, of_pair in (("cv_deviance", "deviance_less"), ("auc", "auc_more")):
            assert float(row[of_pair]) == pytest.approx(float(one[name]) - float(other[name]), abs=1e-8)
    assert float(pairs[0]["deviance_high"]) < 0 < float(pairs[0]["auc_low"])
    facts = facts_of(out)
    # One of those without a generation probability has no path count either.
    assert facts["regression"]["n"] == facts["counted_clonotypes"] - (facts["pgen"]["without"] - 1)
    answers = {answer["id"]: answer for answer in facts["answers"]}
    assert (
        "Held out, in logistic regressions, Pgen alone predicts better" in answers["pgen_comparison"]["text"]
    )
    assert "Generation probability is among the other predictors here" in answers["drivers"]["text"]


@pytest.mark.slow
def test_without_a_model_there_is_nothing_of_it(
    plait: Any, samples: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("vdj", "study", samples / "likely.csv", "-o", out, *QUICK, "--cache", whole / "counts")
    assert plait(*words).status == 0
    facts = facts_of(out)
    assert "pgen" not in json.dumps(facts) and "recombination_model" not in facts["parameters"]
    with_model = {path.name: path.read_bytes() for path in (whole / "tables").iterdir()}
    for path in (out / "tables").iterdir():
        if path.name not in ("correlations.tsv", "top_shared.tsv"):
            assert path.read_bytes() == with_model[path.name]
    lines = with_model["correlations.tsv"].splitlines(keepends=True)
    rest = b"".join(line for line in lines if b"\tpgen_nt\t" not in line)
    assert (out / "tables" / "correlations.tsv").read_bytes() == rest
    names = ds.dataset(out / "clonotypes").to_table().column_names
    assert not [name for name in names if name.startswith("pgen")]


@pytest.mark.slow
def test_a_model_of_other_genes_is_refused(samples: Path, tmp_path: Path) -> None:
    model = load_model(MODEL)
    other = replace(model, v=tuple(replace(gene, name=f"IGHV{k}") for k, gene in enumerate(model.v)))
    options: dict[str, Any] = {"germline": "human_trb", "regression": False, "recombination_model": other}
    with pytest.raises(InvalidInput, match="none of the V genes of 'human_trb'"):
        study(samples / "likely.csv", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
    # Which genes are called does not matter where calls are not used.
    found = study(samples / "likely.csv", tmp_path / "out", model_calls="ignore", **options)
    assert found.facts["pgen"]["above_zero"] > 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--model", "none"), "model: found 'none'"),
        (("--model", MODEL, "--model-calls", "both"), "both"),
        (("--model", MODEL, "--germline", "human_tra"), "a model of V-D-J joining"),
    ],
)
def test_bad_requests_write_nothing(
    plait: Any, samples: Path, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    given = ("-o", tmp_path / "out", *BASE, *options)
    words = dict(zip(given[::2], given[1::2], strict=True))
    found = plait("vdj", "study", samples / "likely.csv", *(word for pair in words.items() for word in pair))
    assert found.status == 2 and told in found.err and "Traceback" not in found.err
    assert not (tmp_path / "out").exists()
