"""``plait vdj infer``: what it writes and says, what is wrong, and going on after a stop."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.examples import often
from support.recombination import small_model

from plait.formats.atomic import AtomicFile
from plait.vdj.model import (
    EvidenceChoice,
    JunctionSampler,
    ModelGene,
    RecombinationModel,
    infer_files,
    load_model,
    uniform_model,
    write_model,
)

#: Few junctions in a batch, and all that is added up kept at once: a small run has many places to stop at.
SMALL_BATCHES = (
    "import plait.vdj.model.evidence as f; f.BATCH_ROWS = 300;"
    "import plait.vdj.model.inference as r; r._SECONDS = 0.0"
)


def small(d: bool = True) -> RecombinationModel:
    model = small_model(7, d=d, zeros=False, most=4)
    v = (ModelGene("TRBV1*01", "TGTGCAAC", 0, "F"), ModelGene("TRBV2*01", "TGTAGCTT", 0, "F"))
    j = (ModelGene("TRBJ1*01", "GCTTTC", 3, "F"), ModelGene("TRBJ2*01", "CATTTT", 3, "F"))
    return replace(model, name="small", v=v, j=j)


def table(model: RecombinationModel, n: int, seed: int = 1) -> dict[str, list[str]]:
    """Rows that a model makes, of two repertoires."""
    draws = JunctionSampler(model, seed=seed).block(0, n)
    fields = draws.fields
    v, j = ([genes[k].name for genes, k in zip([g] * n, fields[:, at], strict=True)]
            for g, at in ((model.v, 0), (model.j, 2)))  # fmt: skip
    texts = draws.texts()
    return {
        "junction": texts,
        "v_call": v,
        "j_call": j,
        "productive": ["T" if flag else "F" for flag in draws.productive],
        "repertoire_id": [f"r{k % 2}" for k in range(n)],
    }


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("start") / "start.json"
    write_model(small(), path)
    return path


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 rows that the model makes."""
    path = tmp_path_factory.mktemp("rows") / "rows.tsv"
    columns = table(small(), 3000)
    lines = ["\t".join(columns), *map("\t".join, zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def words_of(rows: object, start: Path, out: Path, *more: object) -> tuple[object, ...]:
    return ("vdj", "infer", rows, "--start", start, "--uniform", "-o", out, "--name", "m", *more)


QUICK = ("--no-report", "--iterations", 4, "--tolerance", 0)


def content(folder: Path) -> dict[str, bytes]:
    """All that was written but inference.json, which tells times."""
    names = ("model.json", "model/*", "tables/*")
    files = [path for name in names for path in sorted(folder.glob(name))]
    assert len(files) == 1 + 4 + 6
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def facts_of(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / "inference.json").read_text())
    del facts["created"]
    return facts


@pytest.fixture(scope="module")
def whole(rows: Path, start: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run in one go, in the small batches of those that are stopped."""
    from plait.cli import main
    from plait.vdj.model import evidence as evidence_files

    out = tmp_path_factory.mktemp("whole") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence_files, "BATCH_ROWS", 300)
        assert main([str(word) for word in words_of(rows, start, out, *QUICK, "--rows", "all")]) == 0
    return out


def test_what_it_writes_and_says(plait: Any, rows: Path, start: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="reports are drawn with vl-convert, of plait's extra report")
    out = tmp_path / "out"
    found = plait(*words_of(rows, start, out, "--tolerance", 0.001))
    assert found.status == 0, found.err
    assert "3,000 rows of 1 file in " in found.out and "productive rows are not asked for" in found.out
    assert "Take care" not in found.out and "total" in found.out
    assert max(len(line) for line in found.out.splitlines() if str(out) not in line) <= 80
    assert sorted(path.name for path in out.iterdir()) == [
        "inference.json", "model", "model.json", "plait-inference.json", "report.html", "tables",
    ]  # fmt: skip
    facts = json.loads((out / "inference.json").read_text())
    kinds = facts["rows_by_kind"]
    assert facts["rows"] == 3000 == sum(kinds.values()) + facts["left_out"].get("too_short", 0)
    assert facts["left_out"]["productive"] == kinds["productive"] > 0
    assert facts["evidence_weight"] == facts["junctions"] + facts["impossible"]
    assert facts["converged"] and facts["repertoires"] == 2
    model = load_model(out / "model.json")
    assert model.name == "m" and model.digest == load_model(out / "model.json").digest
    assert model.provenance["inputs"][0]["digest"] == facts["inputs"][0]["digest"]
    assert "created" not in model.provenance and "examples" not in model.provenance
    folder = load_model(out / "model")
    assert np.allclose(folder.p_dj, model.p_dj, atol=1e-12)
    logs = [entry["log_likelihood"] for entry in facts["history"]]
    assert all(b >= a - 1e-9 for a, b in pairwise(logs))
    evidence = [line.split("\t") for line in (out / "tables" / "evidence.tsv").read_text().splitlines()]
    v = {row[2]: [float(x) for x in row[3:7]] for row in evidence if row[0] == "v_gene"}
    n = facts["junctions"]
    for k, gene in enumerate(model.v):
        p, error, count, total = v[gene.name]
        assert p == pytest.approx(model.p_v[k], abs=1e-9) and total == pytest.approx(n)
        assert count == pytest.approx(p * n) and error == pytest.approx((p * (1 - p) / n) ** 0.5, rel=1e-6)
    page = (out / "report.html").read_text()
    assert "A recombination model of V, D and J" in page and "Log-likelihood by iteration" in page


def test_selected_rows_are_warned_of(
    plait: Any, rows: Path, start: Path, tmp_path: Path, whole: Path
) -> None:
    facts = facts_of(whole)
    assert "and selection has shaped them" in facts["answers"][0]["headline"]
    out = tmp_path / "out"
    found = plait(*words_of(rows, start, out, *QUICK, "--rows", "productive"))
    assert found.status == 0 and "Take care: productive rows are evidence (--rows productive)" in found.out
    assert facts_of(out)["left_out"].keys() >= {"out_of_frame"}


@pytest.mark.slow
def test_a_model_is_recovered(plait: Any, rows: Path, start: Path, tmp_path: Path) -> None:
    truth, out = small(), tmp_path / "out"
    words = ("--no-report", "--iterations", 40, "--rows", "all", "--weights", "count")
    assert plait(*words_of(rows, start, out, *words)).status == 0
    found, before = load_model(out / "model.json"), uniform_model(truth)
    for name in ("p_j_deletions", "p_vd_length", "p_v_deletions"):
        was, now = (np.abs(getattr(m, name) - getattr(truth, name)).sum() for m in (before, found))
        assert now < 0.6 * was, (name, was, now)
    assert np.abs(found.p_v - truth.p_v).max() < 0.03


@pytest.mark.slow
def test_misread_nucleotides_are_found(plait: Any, start: Path, tmp_path: Path, write_tsv: Any) -> None:
    """Reads with one nucleotide in twenty replaced, also where the run is stopped on its way."""
    rng, columns = np.random.default_rng(5), table(small(), 3000)
    columns["junction"] = [
        "".join("ACGT"[(at + rng.integers(1, 4)) % 4] if rng.random() < 0.05 else "ACGT"[at] for at in codes)
        for codes in (map("ACGT".index, text) for text in columns["junction"])
    ]
    reads, out, other = write_tsv(columns), tmp_path / "out", tmp_path / "other"
    quick = ("--no-report", "--rows", "all", "--weights", "count", "--iterations", 12, "--no-accelerate")
    found = plait(*words_of(reads, start, out, *quick, "--error-rate", "fit"))
    assert found.status == 0 and "were misread, found with the model" in " ".join(found.out.split())
    facts = facts_of(out)
    assert 0.044 < facts["error_rate"] < 0.056
    logs = [entry["log_likelihood"] for entry in facts["history"]]
    assert all(b >= a - 1e-9 for a, b in pairwise(logs))
    assert load_model(out / "model.json").error_rate == facts["error_rate"]
    assert load_model(out / "model").error_rate == facts["error_rate"]

    def stop(now: Any) -> None:
        if now.iteration == 5 and not now.finished:
            raise KeyboardInterrupt

    choice = EvidenceChoice(rows="all", weights="count")
    run = partial(
        infer_files, [reads], other, uniform_model(load_model(start)), choice=choice, name="m",
        iterations=12, accelerate=False, error_rate="fit",
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        run(progress=stop)
    assert run(resume=True).model.error_rate == facts["error_rate"]
    assert (other / "model.json").read_bytes() == (out / "model.json").read_bytes()
    given = plait(*words_of(reads, start, out, *quick, "--error-rate", "0.05", "--force"))
    assert given.status == 0 and "500.0 were misread, as given" in " ".join(given.out.split())
    assert load_model(out / "model.json").error_rate == 0.05


@pytest.mark.slow
def test_threads_and_the_order_of_rows_change_nothing(
    plait: Any, rows: Path, start: Path, tmp_path: Path
) -> None:
    header, *lines = rows.read_text().splitlines()
    files = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    files[0].write_text("\n".join([header, *lines[:1000:-1]]) + "\n")
    files[1].write_text("\n".join([header, *lines[:1001]]) + "\n")
    outs = [tmp_path / name for name in ("one", "three", "mixed")]
    for out, threads in zip(outs[:2], (1, 3), strict=True):
        assert plait(*words_of(rows, start, out, *QUICK, "--threads", threads)).status == 0
    assert content(outs[0]) == content(outs[1]) and facts_of(outs[0]) == facts_of(outs[1])
    assert plait(*words_of(files[0], start, outs[2], *QUICK, files[1])).status == 0
    assert load_model(outs[2] / "model.json").digest == load_model(outs[0] / "model.json").digest
    assert (outs[2] / "tables" / "evidence.tsv").read_bytes() == content(outs[0])["tables/evidence.tsv"]


def stopping(puts: int, number: int) -> str:
    """Statements after which a run sends itself a signal when a state is kept for the so-manieth time."""
    return (
        f"{SMALL_BATCHES};import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from plait.vdj.model.inference import StateStore as s; put = s.put; n = [0];"
        "s.put = lambda self, state: (put(self, state), n.append(0),"
        f" os.kill(os.getpid(), {int(number)}) if len(n) == {puts + 1} else None)[0]"
    )


#: Within the first iteration, and within the second.
STOPS = [(3, signal.SIGINT), (9, signal.SIGKILL)]


@pytest.mark.slow
@pytest.mark.parametrize(("puts", "number"), often(1, STOPS), ids=[f"{n}-{s.name}" for n, s in STOPS])
def test_a_stopped_run_is_resumed_to_the_byte(
    plait: Any,
    start_plait: Any,
    rows: Path,
    start: Path,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    puts: int,
    number: signal.Signals,
) -> None:
    out = tmp_path / "out"
    words = words_of(rows, start, out, *QUICK, "--rows", "all")
    process = start_plait(*words, before=stopping(puts, number))
    _, err = process.communicate(timeout=300)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number), err
    assert not (out / "inference.json").exists() and not (out / "model.json").exists()
    if number == signal.SIGINT:
        message = "plait: stopped; the same command with --resume continues where it stopped"
        assert err.splitlines()[-1] == message and "Traceback" not in err
        other = plait(*words, "--resume", "--seed", 3)
        assert other.status == 2 and "resume: found a checkpoint of another run" in other.err
        assert "seed (stored 0, now 3)" in other.err
    from plait.vdj.model import evidence as evidence_files
    from plait.vdj.model import inference as inference_run

    monkeypatch.setattr(evidence_files, "BATCH_ROWS", 300)
    batches: list[int] = []
    read = inference_run.EvidenceFile.batch
    monkeypatch.setattr(
        inference_run.EvidenceFile, "batch", lambda self, k: (batches.append(k), read(self, k))[1]
    )
    assert plait(*words, "--resume").status == 0
    every = -(-facts_of(whole)["evidence_junctions"] // 300)
    assert batches[: every - 1] == list(range((puts - 1) % every, every))[: every - 1] + list(
        range(max(0, every - 1 - (every - (puts - 1) % every)))
    )
    assert (content(out), facts_of(out)) == (content(whole), facts_of(whole))
    assert not (out / "work").exists()


def test_weights(rows: Path, tmp_path: Path) -> None:
    """A row of three reads that count is a row in three repertoires that count once."""
    header, *lines = rows.read_text().splitlines()
    unique = {line.rsplit("\t", 2)[0]: line.rsplit("\t", 2)[1] for line in lines[:200]}
    heavy, thrice = tmp_path / "heavy.tsv", tmp_path / "thrice.tsv"
    names = header.rsplit("\t", 2)[0]
    heavy.write_text(f"{names}\tduplicate_count\n" + "".join(f"{row}\t3\n" for row in unique))
    three = "".join(f"{row}\tr{k}\n" for row in unique for k in range(3))
    thrice.write_text(f"{names}\trepertoire_id\n{three}")
    digests = set()
    begin = uniform_model(small())
    for path, weights in ((heavy, "count"), (thrice, "once"), (thrice, "count")):
        choice = EvidenceChoice(rows="all", weights=weights)
        out = tmp_path / f"{path.stem}-{weights}"
        made = infer_files([path], out, begin, choice=choice, iterations=2, tolerance=0)
        assert made.facts["evidence_weight"] == 3 * made.facts["evidence_junctions"]
        digests.add(made.model.digest)
    assert len(digests) == 1
    once = infer_files([heavy], tmp_path / "once", begin, choice=EvidenceChoice(rows="all"), iterations=2)
    assert once.facts["evidence_weight"] == once.facts["evidence_junctions"]


def test_calls_that_are_ignored_need_not_be_there(
    plait: Any, start: Path, tmp_path: Path, rows: Path
) -> None:
    lines = rows.read_text().splitlines()
    path, out = tmp_path / "j.tsv", tmp_path / "out"
    path.write_text("\n".join(line.split("\t")[0] for line in lines) + "\n")
    failed = plait(*words_of(path, start, out, *QUICK))
    assert failed.status == 2 and "v_call" in failed.err and not out.exists()
    words = (*QUICK, "--calls", "ignore", "--rows", "out-of-frame", "--max-rows", 100)
    found = plait(*words_of(path, start, out, *words))
    assert found.status == 0 and "Calls were ignored" in found.out
    facts = facts_of(out)
    assert facts["evidence_junctions"] == 100 < facts["distinct_junctions"]
    assert plait(*words_of(path, start, tmp_path / "other", *words, "--seed", 1)).status == 0
    assert facts_of(tmp_path / "other")["log_likelihood"] != facts["log_likelihood"]


@pytest.mark.slow
def test_chains_without_d(plait: Any, tmp_path: Path, write_tsv: Any) -> None:
    truth = small(d=False)
    write_model(truth, tmp_path / "vj.json")
    path, out = write_tsv(table(truth, 2000)), tmp_path / "out"
    words = ("--rows", "all", "--weights", "count", "--tolerance", 0.001, "--no-report")
    found = plait(*words_of(path, tmp_path / "vj.json", out, *words))
    assert found.status == 0, found.err
    model = load_model(out / "model.json")
    assert model.chain == "vj" and np.abs(model.p_v - truth.p_v).sum() < 0.1
    assert {line.split("\t")[0] for line in (out / "tables" / "evidence.tsv").read_text().splitlines()} == {
        "event", "v_gene", "j_gene", "v_3_deletion", "j_5_deletion", "vj_insertions", "vj_nucleotide",
    }  # fmt: skip


def test_a_germline_set_is_enough(plait: Any, write_tsv: Any, tmp_path: Path) -> None:
    columns = {
        "junction": ["TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC", "TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTT"] * 2,
        "v_call": ["TRBV13-1", "TRBV13-1", "TRBV99", ""],
        "j_call": ["TRBJ2-7"] * 4,
    }
    out = tmp_path / "out"
    words = ("--germline", "mouse_trb", "--most-insertions", 12, "-o", out, *QUICK)
    found = plait("vdj", "infer", write_tsv(columns), *words, "--rows", "all", "--pseudocount", 0.5)
    assert found.status == 0, found.err
    facts, model = facts_of(out), load_model(out / "model.json")
    assert facts["left_out"] == {"unknown_v_call": 1, "missing_v_call": 1}
    assert facts["unknown_calls"] == {"TRBV99": 1} and "in.tsv, record 2: 'TRBV99'" in str(facts["examples"])
    assert model.p_vd_length.size == 13 and model.p_vd_length.min() > 0
    assert facts["start"]["germline_set"] == "mouse_trb"


@contextmanager
def held(out: Path) -> Iterator[None]:
    """Another run is writing there."""
    with AtomicFile(out / "inference.json") as file:
        yield
        file.discard()


def test_one_run_in_a_folder(plait: Any, rows: Path, start: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = words_of(rows, start, out, *QUICK)
    assert plait(*words).status == 0
    before = content(out)
    with held(out):
        found = plait(*words)
    assert found.status == 2 and "another run is writing" in found.err
    found = plait(*words)
    assert found.status == 2 and "which holds an earlier inference" in found.err and "--force" in found.err
    assert content(out) == before
    # Nor does one that fails for its inputs.
    bad = tmp_path / "bad.tsv"
    bad.write_text(rows.read_text().replace("TRBV", "IGHV"))
    assert plait(*words_of(bad, start, out, *QUICK), "--force").status == 2
    assert content(out) == before and facts_of(out)["rows"] == 3000
    assert plait(*words, "--force").status == 0 and content(out) == before


def test_bad_requests_leave_nothing(
    plait: Any, rows: Path, start: Path, tmp_path: Path, write_tsv: Any
) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("kept")
    empty = write_tsv({"junction": [], "v_call": [], "j_call": []}, "empty.tsv")
    foreign = write_tsv({"junction": ["TGTGCAT"], "v_call": ["IGHV1"], "j_call": ["IGHJ1"]}, "foreign.tsv")
    odd = write_tsv({"junction": ["AAAAAAAAAAA"], "v_call": ["TRBV1"], "j_call": ["TRBJ1"]}, "odd.tsv")
    productive = write_tsv({"junction": ["TGTGCAGCTTTC"], "v_call": ["TRBV1"], "j_call": ["TRBJ1"]}, "p.tsv")
    no_junction = write_tsv({"sequence": ["A"], "v_call": ["TRBV1"], "j_call": ["TRBJ1"]}, "n.tsv")
    cut = tmp_path / "cut.tsv.gz"
    cut.write_bytes(b"\x1f\x8b\x08\x00broken")
    wrong_count = write_tsv(
        {"junction": ["TGTGCATTC"], "v_call": ["TRBV1"], "j_call": ["TRBJ1"], "duplicate_count": ["x"]},
        "w.tsv",
    )
    before = sorted(tmp_path.iterdir())
    base = ("--start", start, "-o", out, "--no-report")
    for words, message in (
        ((*base,), "inputs: found no file"),
        ((tmp_path / "none.tsv", *base), "none.tsv"),
        ((no_junction, *base), "missing: junction"),
        ((cut, *base), "cut.tsv.gz"),
        ((empty, *base), "none among 0 rows"),
        ((foreign, *base), "calls that the model does not know: IGHV1"),
        ((odd, *base), "none of which the model can make"),
        ((productive, *base), "--rows all or productive uses others"),
        ((wrong_count, *base, "--rows", "all", "--weights", "count"), "duplicate_count"),
        ((rows, *base, "--iterations", 0), "iterations"),
        ((rows, *base, "--tolerance", -1), "tolerance"),
        ((rows, *base, "--max-rows", 0), "max_rows"),
        ((rows, *base, "--error-rate", 0.75), "error_rate"),
        ((rows, *base, "--error-rate", "nan"), "error_rate"),
        ((rows, *base, "--error-rate", "often"), "found often, expected fit or a number"),
        ((rows, *base, "--rows", "few"), "rows"),
        ((rows, *base, "--germline", "mouse_trb"), "found both"),
        ((rows, "-o", out), "found neither"),
        ((rows, "--start", "nowhere", "-o", out), "nowhere"),
        ((rows, "--germline", "human_tra", "--chain", "vdj", "-o", out), "no D gene"),
        ((rows, "--start", start, "-o", other, "--no-report"), "holds something else"),
        ((rows, "--start", start, "-o", tmp_path / "a" / "b", "--no-report"), "does not exist"),
    ):
        found = plait("vdj", "infer", *words)
        assert found.status == 2 and message in found.err, (words, found.err)
        assert sorted(tmp_path.iterdir()) == before, words
    assert [path.name for path in other.iterdir()] == ["mine.txt"]


@pytest.mark.slow
def test_progress_on_a_terminal(on_terminal: Any, rows: Path, start: Path, tmp_path: Path) -> None:
    found, shown = on_terminal(*words_of(rows, start, tmp_path / "out", *QUICK))
    assert found.status == 0
    assert b"iteration 2, log-likelihood -" in shown and b"rows" in shown
