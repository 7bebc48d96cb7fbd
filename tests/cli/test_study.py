"""``plait vdj study``: what it writes and says, what is wrong, and going on after a stop."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.examples import often
from support.repertoires import simulated_repertoire

from plait.formats.atomic import AtomicFile
from plait.formats.checkpoints import Checkpoint
from plait.stats import path_fits
from plait.vdj.convergence import stages
from plait.vdj.convergence import study as study_run

SUBJECTS = ("ann", "bob", "cyd", "dan")
MODEL = ("--pi", "2", "--nu", "6", "--sweep-pi", "0,2", "--sweep-nu", "6")
BASE = ("--germline", "mouse_trb", "--device", "cpu", *MODEL)
QUICK = (*BASE, "--no-regression")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sheet of four files, one a subject, that share a third of their rows."""
    folder = tmp_path_factory.mktemp("samples")
    pool = simulated_repertoire(40, genes=4, seed=9).drop_columns("subject_id")
    lines = ["file,subject_id,dose"]
    for k, subject in enumerate(SUBJECTS):
        own = simulated_repertoire(60, genes=4, seed=k).drop_columns("subject_id")
        for name, rows in ((f"{subject}.tsv", own), (f"{subject}.more.tsv", pool.slice(5 * k, 25))):
            cells = [rows.column_names, *zip(*rows.to_pydict().values(), strict=True)]
            (folder / name).write_text("".join("\t".join(map(str, line)) + "\n" for line in cells))
            lines.append(f"{name},{subject},{k % 2}")
    (folder / "sheet.csv").write_text("\n".join(lines) + "\n")
    return folder / "sheet.csv"


def content(folder: Path) -> dict[str, bytes]:
    """All results but study.json, which tells times."""
    files = [path for name in ("tables", "clonotypes", "counts") for path in (folder / name).iterdir()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def facts_of(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / "study.json").read_text())
    for name in ("created", "timings", "inputs"):
        del facts[name]
    return facts


@pytest.fixture(scope="module")
def whole(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study without a regression, in one go."""
    from plait.cli import main

    out = tmp_path_factory.mktemp("whole") / "out"
    assert main(["vdj", "study", str(samples), "-o", str(out), *QUICK]) == 0
    return out


def test_what_it_writes_and_says(plait: Any, samples: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = plait(
        "vdj", "study", samples, "-o", out, *QUICK, "--shared-by", "3", "--cache", tmp_path / "kept"
    )
    assert (found.status, found.err) == (0, "")
    assert "340 rows of 8 files, 4 subjects in " in found.out and "of them shared by 3 subjects" in found.out
    assert "subjects  clonotypes  median count" in found.out
    assert max(len(line) for line in found.out.splitlines() if str(out) not in line) <= 80
    assert sorted(path.name for path in out.iterdir()) == [
        "clonotypes", "plait-study.json", "sharing.parquet", "study.json", "tables",
    ]  # fmt: skip
    facts = json.loads((out / "study.json").read_text())
    assert (facts["rows"], facts["subjects"], facts["shared_by"]) == (340, 4, 3)
    assert facts["parameters"]["predictor_models"] == [[2, 6], [0, 6]]
    assert facts["tables"]["subjects"] == "tables/subjects.tsv"
    assert {out / path for path in facts["tables"].values()} == set((out / "tables").iterdir())
    subjects = (out / "tables" / "subjects.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in subjects[1:]] == list(SUBJECTS)
    assert [line.split("\t")[-1] for line in subjects] == ["dose", "0", "1", "0", "1"]
    assert facts["provenance"]["parameters"]["germline"] == "mouse_trb"
    assert [entry["subject"] for entry in facts["inputs"]] == [name for name in SUBJECTS for _ in "ab"]
    fewer = json.loads((whole / "study.json").read_text())["shared_clonotypes"]
    assert 0 < facts["shared_clonotypes"] < fewer


REGRESSION = {
    "predictors": "predictor group meaning mean sd vif note",
    "lambda_path": "index lambda nonzero deviance_explained bic cv_deviance cv_se chosen",
    "coefficients": "predictor mle mle_low mle_high cv_min cv_1se bic stability odds_ratio_per_sd",
    "calibration": "bin predicted observed low high n",
    "roc": "model false_positive_rate true_positive_rate",
    "group_comparison": "model predictors cv_deviance auc auc_low auc_high delta_vs_all delta_low delta_high",
}


def test_regression(plait: Any, samples: Path, whole: Path, tmp_path: Path) -> None:
    words = ("--lambdas", 8, "--folds", 2, "--halves", 2, "--models", "2/6,0/6", "--cache", whole / "counts")
    folders = [tmp_path / "one", tmp_path / "two"]
    for out, threads in zip(folders, (1, 3), strict=True):
        found = plait("vdj", "study", samples, "-o", out, *BASE, *words, "--threads", threads)
        assert (found.status, found.err) == (0, "")
    assert {path.name: path.read_bytes() for path in (folders[0] / "tables").iterdir()} == {
        path.name: path.read_bytes() for path in (folders[1] / "tables").iterdir()
    }
    assert facts_of(folders[0]) == facts_of(folders[1])
    facts = json.loads((folders[0] / "study.json").read_text())
    assert facts["regression"]["n"] == facts["counted_clonotypes"]
    assert facts["regression"]["events"] == facts["shared_clonotypes"] > 0
    tables = {
        name: [line.split("\t") for line in (folders[0] / path).read_text().splitlines()]
        for name, path in facts["tables"].items()
    }
    for name, columns in REGRESSION.items():
        assert tables[name][0][: len(columns.split())] == columns.split()
    predictors = [row[0] for row in tables["predictors"][1:]]
    assert predictors[:2] == ["log_path_count_pi2_nu6", "log_path_count_pi0_nu6"]
    assert [row[0] for row in tables["coefficients"][1:]] == predictors
    assert tables["lambda_path"][0][8:] == predictors
    models = ["counts_only", "n2_only", "counts_and_n2", "all", "all_without_counts", "all_without_n2"]
    assert [row[0] for row in tables["group_comparison"][1:]] == models
    assert {"drivers", "chosen_predictors"} <= {answer["id"] for answer in facts["answers"]}
    assert "adaptive LASSO" in found.out and max(map(len, found.out.splitlines()[:-3])) <= 80


@pytest.mark.slow
def test_no_regression_where_hardly_any_is_shared(
    plait: Any, samples: Path, whole: Path, tmp_path: Path
) -> None:
    words = ("--shared-by", 40, "--cache", whole / "counts")
    found = plait("vdj", "study", samples, "-o", tmp_path / "out", *BASE, *words)
    assert found.status == 0 and "Regression: 0 of " in found.out
    assert not (tmp_path / "out" / "tables" / "coefficients.tsv").exists()


@pytest.mark.slow
def test_counts_of_the_study_are_those_of_the_command(
    plait: Any, samples: Path, whole: Path, tmp_path: Path
) -> None:
    counts, out = tmp_path / "ann.parquet", tmp_path / "out"
    assert plait("vdj", "count", samples.parent / "ann.tsv", *BASE, "-o", counts).status == 0
    mine = next((whole / "counts").glob("ann-*.parquet"))
    assert pq.read_table(mine).equals(pq.read_table(counts))
    sheet = tmp_path / "sheet.csv"
    text = samples.read_text().replace("\nann.tsv", f"\n{counts}")
    sheet.write_text(text.replace("more.tsv", "x").replace("x", "more.tsv"))
    for path in samples.parent.glob("*.tsv"):
        shutil.copy(path, tmp_path)
    assert plait("vdj", "study", sheet, "-o", out, *QUICK).status == 0
    # What was counted before is taken as it is.
    assert not list((out / "counts").glob("ann-*"))
    assert {k: v for k, v in content(out).items() if "counts" not in k} == {
        k: v for k, v in content(whole).items() if "counts" not in k
    }


@pytest.mark.slow
def test_a_second_study_takes_the_counts_of_the_first(plait: Any, samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert plait("vdj", "study", samples, "-o", out, *QUICK).status == 0
    first = content(out), facts_of(out)
    before = {path: path.stat().st_mtime_ns for path in (out / "counts").iterdir()}
    found = plait("vdj", "study", samples, "-o", out, *QUICK)
    assert found.status == 2 and "which holds an earlier study" in found.err and "--force" in found.err
    both = plait("vdj", "study", samples, "-o", out, *QUICK, "--force", "--resume")
    assert both.status == 2 and "one or the other" in both.err
    assert (content(out), facts_of(out)) == first
    found = plait("vdj", "study", samples, "-o", out, *QUICK, "--force")
    assert "Path counts of 8 files were there already." in found.out
    assert {path: path.stat().st_mtime_ns for path in (out / "counts").iterdir()} == before
    assert (content(out), facts_of(out)) == first


#: Statements after which a run ends itself before the first part is grouped.
_WHEN_GROUPING = (
    "import os; from plait.vdj.convergence import stages as p;"
    "p.group_rows = lambda *a, **k: os.kill(os.getpid(), 9)"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"),
    often(1, [(signal.SIGINT, 130), (None, -signal.SIGKILL)]),
    ids=["interrupted when sorting", "killed when grouping"],
)
def test_a_stopped_run_is_resumed_to_the_byte(
    plait: Any,
    start_plait: Any,
    samples: Path,
    whole: Path,
    tmp_path: Path,
    stopping: Any,
    monkeypatch: pytest.MonkeyPatch,
    number: int | None,
    status: int,
) -> None:
    out = tmp_path / "out"
    words = ("vdj", "study", samples, "-o", out, *QUICK)
    process = start_plait(*words, before=_WHEN_GROUPING if number is None else stopping(number))
    _, err = process.communicate(timeout=300)
    assert process.returncode == status
    assert not (out / "study.json").exists()
    if number == signal.SIGINT:
        message = "plait: stopped; the same command with --resume continues where it stopped"
        assert err.splitlines()[-1] == message and "Traceback" not in err
        other = plait(*words, "--resume", "--nu-vd", "3")
        assert other.status == 2 and "resume: found a checkpoint of another run" in other.err
        assert "settings.nu_vd (stored null, now 3)" in other.err
        # That is told before anything is counted.
        assert len(list((out / "counts").glob("ann-*.parquet"))) == 1
    dealt: list[int] = []
    deal = stages.Dealer.__call__
    monkeypatch.setattr(
        stages.Dealer,
        "__call__",
        lambda self, stretch: (dealt.append(stretch.number), deal(self, stretch))[1],
    )
    assert plait(*words, "--resume").status == 0
    assert dealt == ([] if number is None else [3, 4, 5, 6, 7])
    assert (content(out), facts_of(out)) == (content(whole), facts_of(whole))
    assert not (out / "parts").exists()


@pytest.mark.slow
def test_the_last_stages_are_not_begun_anew(
    plait: Any, samples: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*BASE, "--lambdas", 6, "--folds", 2, "--halves", 2, "--cache", whole / "counts")
    done: list[str] = []
    most = 1000

    def counted(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def called(*given: Any, **named: Any) -> Any:
            if len(done) == most:
                raise KeyboardInterrupt
            done.append(name)
            return function(*given, **named)

        monkeypatch.setattr(owner, name, called)

    counted(stages.PartWork, "__call__")
    counted(stages, "public_clonotypes")
    counted(path_fits, "sum_pieces")
    once, out = tmp_path / "once", tmp_path / "out"
    assert plait("vdj", "study", samples, "-o", once, *words).status == 0
    passes = done.count("sum_pieces")
    assert done == ["__call__", "public_clonotypes", *["sum_pieces"] * passes] and passes > 8
    for expected in (["__call__"], ["public_clonotypes"], ["sum_pieces"] * (passes // 2)):
        done, most = [], len(expected)
        found = plait("vdj", "study", samples, "-o", out, *words, *(["--resume"] if out.exists() else []))
        assert (found.status, done) == (130, expected)
    done, most = [], 1000
    assert plait("vdj", "study", samples, "-o", out, *words, "--resume").status == 0
    assert done == ["sum_pieces"] * (passes - passes // 2)
    tables = [{path.name: path.read_bytes() for path in (one / "tables").iterdir()} for one in (once, out)]
    assert (tables[0], facts_of(once)) == (tables[1], facts_of(out))


@pytest.mark.slow
def test_a_stage_whose_files_are_gone_is_made_again(
    plait: Any, samples: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    words = ("vdj", "study", samples, "-o", out, *QUICK, "--cache", whole / "counts")

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(study_run, "_write_statuses", stopped)
        assert plait(*words).status == 130
    (out / "sharing.parquet").unlink()
    next((out / "clonotypes").iterdir()).unlink()
    assert plait(*words, "--resume").status == 0
    assert (out / "sharing.parquet").read_bytes() == (whole / "sharing.parquet").read_bytes()
    assert facts_of(out) == facts_of(whole)


@pytest.mark.slow
def test_what_a_killed_run_had_still_to_remove(
    plait: Any, samples: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    # Between the moment when counts stand under their name, and their checkpoint is gone.
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "remove", killed)
        assert plait("vdj", "study", samples, "-o", out, *QUICK).status == 130
    assert [path.name for path in (out / "counts").glob("*.checkpoint")]
    # While the study cleans up.
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda path, **_: killed() if path.exists() else None)
        assert plait("vdj", "study", samples, "-o", out, *QUICK, "--resume").status == 130
    assert not (out / "parts").exists() and not (out / "study.json").exists()
    assert plait("vdj", "study", samples, "-o", out, *QUICK, "--resume").status == 0
    assert (content(out), facts_of(out)) == (content(whole), facts_of(whole))
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in whole.iterdir())


@pytest.mark.slow
def test_a_stopped_count_of_another_place_is_no_hindrance(
    plait: Any, samples: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (out / "counts").mkdir(parents=True)
    shutil.copy(whole / "plait-study.json", out)
    name = next((whole / "counts").glob("ann-*.parquet")).name
    Checkpoint(out / "counts" / f"{name}.checkpoint", key={"inputs": ["elsewhere"]}, resume=False)
    assert plait("vdj", "study", samples, "-o", out, *QUICK).status == 0
    assert content(out) == content(whole)


def test_two_runs_do_not_share_a_folder(plait: Any, samples: Path, whole: Path) -> None:
    before = content(whole)
    with AtomicFile(whole / "study.json") as file:
        found = plait("vdj", "study", samples, "-o", whole, *QUICK)
        file.discard()
    assert found.status == 2 and "which another run is writing" in found.err
    assert content(whole) == before


@pytest.mark.parametrize(
    ("lines", "options", "told"),
    [
        (["file", "none.tsv"], (), "line 2, column 'file': found 'none.tsv', which is no such file"),
        (["file", "good.tsv", "good.tsv"], (), "line 3, column 'file'"),
        (["file", "no_subject.tsv"], ("--subject", "x"), "fill in subject_id in line 2 of the sheet"),
        (["file", "good.tsv"], ("--subject", "donor"), "expected a column 'donor'"),
        (["file", "good.tsv"], ("--layout", "immunarch"), "choose it with --layout airr"),
        (["file,subject_id", "good.tsv,x", "sheet.csv,x"], (), "sheet.csv: found the columns"),
        (["file", "good.tsv"], ("--models", "4"), "--models: found '4'"),
        (["file", "good.tsv"], ("--models", "3/6"), "models: found pi 3, nu 6"),
        (["file", "good.tsv"], ("--shared-by", "1"), "shared_by: found 1"),
        (["file", "good.tsv"], ("--sweep-pi", "4:2"), "--sweep-pi: found '4:2'"),
        (["file", "good.tsv"], ("--sweep-pi", "99"), "sweep_pi: found 99"),
        (["file", "good.tsv"], ("--germline", "none"), "none"),
        (["file", "good.tsv"], ("--overflow", "wide"), "wide"),
        (["file", "good.tsv"], ("-o", "missing/out"), "in a folder that does not exist"),
        (["file", "good.tsv"], ("-o", "good.tsv"), "which is a file"),
        (["file", "good.tsv"], ("-o", "."), "which holds something else"),
    ],
)
def test_bad_requests_write_nothing(
    plait: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lines: list[str],
    options: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.tsv").write_text("junction\tv_call\tj_call\tsubject_id\nTGTGCC\tTRBV1\tTRBJ1-1\tx\n")
    Path("no_subject.tsv").write_text("junction\tv_call\tj_call\nTGTGCC\tTRBV1\tTRBJ1-1\n")
    Path("sheet.csv").write_text("\n".join(lines) + "\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    given = (*BASE, "-o", "out", *options)
    words = dict(zip(given[::2], given[1::2], strict=True))
    found = plait("vdj", "study", "sheet.csv", "--no-regression", *itertools.chain(*words.items()))
    assert found.status == 2 and told in found.err and "Traceback" not in found.err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("TGTGCC\tTRBV1\tTRBJ1-1\tx\t1\nTGTGCC\tTRBV1\tTRBJ1-1\n", "a.tsv, line 3: found 3 columns"),
        ("TGTGCC\tTRBV1\tTRBJ1-1\tx\tmany\n", "a.tsv, column 'duplicate_count'"),
        (
            "TGTGCC\tTRBV1\tTRBJ1-1\tx\t1\nTGTGCC\tTRBV1\tTRBJ1-1\ty\t1\n",
            "found '2' for subject 'y', expected '1'",
        ),
    ],
)
def test_bad_content_leaves_no_result(plait: Any, tmp_path: Path, text: str, told: str) -> None:
    header = "junction\tv_call\tj_call\tsubject_id\tduplicate_count\n"
    (tmp_path / "a.tsv").write_text(header + text)
    (tmp_path / "b.tsv").write_text(header + "TGTGCCTGT\tTRBV1\tTRBJ1-1\ty\t1\n")
    (tmp_path / "sheet.csv").write_text("file,dose\na.tsv,1\nb.tsv,2\n")
    found = plait("vdj", "study", tmp_path / "sheet.csv", "-o", tmp_path / "out", *QUICK)
    assert found.status == 2 and told in found.err
    assert not (tmp_path / "out" / "study.json").exists()


def test_the_same_file_twice_is_noted(plait: Any, samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples.parent / "ann.tsv", tmp_path / "one.tsv")
    shutil.copy(samples.parent / "ann.tsv", tmp_path / "two.tsv")
    (tmp_path / "sheet.csv").write_text("file,subject_id\none.tsv,a\ntwo.tsv,b\n")
    found = plait("vdj", "study", tmp_path / "sheet.csv", "-o", tmp_path / "out", *QUICK)
    # Where lines end depends on the length of the folder's name.
    assert found.status == 0 and "has the same content as" in " ".join(found.out.split())
    assert json.loads((tmp_path / "out" / "study.json").read_text())["clonotypes"] > 0


@pytest.mark.slow
def test_progress_on_a_terminal(on_terminal: Any, samples: Path, tmp_path: Path) -> None:
    found, shown = on_terminal("vdj", "study", samples, "-o", tmp_path / "out", *QUICK)
    assert found.status == 0
    assert b"counting paths" in shown


@pytest.mark.slow
def test_workers_give_the_same_bytes(plait: Any, samples: Path, whole: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs pip install 'plait[cluster]'")
    out = tmp_path / "out"
    words = (*QUICK, "--executor", "dask", "--workers", 2)
    assert plait("vdj", "study", samples, "-o", out, *words).status == 0
    assert content(out) == content(whole)
    assert facts_of(out) == facts_of(whole)


@pytest.mark.slow
def test_a_stopped_run_can_be_begun_anew(plait: Any, samples: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    (out / "study.json").unlink()
    (out / "parts" / "run").mkdir(parents=True)
    (out / "parts" / "rows-000000-000.arrow").write_bytes(b"half of it")
    (out / "clonotypes" / "part-00077.parquet").write_bytes(b"of another study")
    assert plait("vdj", "study", samples, "-o", out, *QUICK).status == 0
    assert (content(out), facts_of(out)) == (content(whole), facts_of(whole))
