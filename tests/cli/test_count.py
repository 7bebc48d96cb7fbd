"""``plait vdj count``: what it writes and prints, and that nothing but the request decides it."""

from __future__ import annotations

import json
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.examples import often

from plait import __version__
from plait.cli.options import ModelParameters, PathLimits
from plait.vdj import STATUSES, PathModel, count_paths
from plait.vdj.calls import STATUS_MEANINGS
from plait.vdj.germline import load_germline

BASE = ("--germline", "mouse_trb")
SWEEP = ("--sweep-pi", "0:4", "--sweep-nu", "0:10")
#: Enough for some twenty blocks of a sweep, so that a run can be stopped between the first and the last.
MANY_ROWS = 52_000


def test_parquet(plait: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path) -> None:
    rows = mouse_rows(400)
    out = tmp_path / "out.parquet"
    found = plait("vdj", "count", write_tsv(rows), *BASE, "--nu", 8, "-o", out)
    assert found.status == 0
    table = pq.read_table(out)
    assert table.column_names[:6] == [*rows, "status", "path_count"]
    assert all(table[name].to_pylist() == values for name, values in rows.items())
    expected = count_paths(
        rows["junction"], rows["v_call"], rows["j_call"], germline="mouse_trb", model=PathModel(nu=8)
    )
    assert table["path_count"].to_pylist() == expected.path_count.tolist()
    # A fixed-size list of D alleles; what the order rule forbids is null.
    by_d = table["path_count_by_d"].to_pylist()
    for row, counts, allowed in zip(by_d, expected.by_d.tolist(), expected.allowed.tolist(), strict=True):
        assert row == [count if may else None for count, may in zip(counts, allowed, strict=True)]
    facts = json.loads(table.schema.metadata[b"plait.provenance"])
    assert facts["version"] == __version__
    assert facts["parameters"]["germline_digest"] == load_germline("mouse_trb").digest
    assert (facts["parameters"]["model"], facts["parameters"]["nu"]) == ("dp2", 8)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.tsv",
        "out.parquet",
        "out.parquet.summary.json",
    ]


def test_text_output(plait: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path) -> None:
    rows = mouse_rows(50)
    out = tmp_path / "out.tsv"
    assert plait("vdj", "count", write_tsv(rows), *BASE, *SWEEP, "-o", out).status == 0
    header, *lines = [line.split("\t") for line in out.read_text().splitlines()]
    expected = count_paths(
        rows["junction"],
        rows["v_call"],
        rows["j_call"],
        germline="mouse_trb",
        model=PathModel(sweep_pi=tuple(range(5)), sweep_nu=tuple(range(11))),
    )
    for k, line in enumerate(lines):
        cells = dict(zip(header, line, strict=True))
        assert cells["path_count_no_d_sweep"] == ",".join(map(str, expected.no_d_sweep[k].ravel()))
        first = cells["path_count_sweep_by_d"].split(",")[:55]
        assert first == list(map(str, expected.sweep_by_d[k, 0].ravel()))
    facts = json.loads(Path(f"{out}.json").read_text())
    assert (facts["rows"], facts["metadata"]["plait.provenance"]["version"]) == (50, __version__)
    (d_axis, pi_axis, nu_axis) = facts["metadata"]["plait.list_axes"]["path_count_sweep_by_d"]
    assert d_axis == {"axis": "d_allele", "values": ["TRBD1*01", "TRBD2*01"]}
    assert (pi_axis["values"], nu_axis["values"]) == (list(range(5)), list(range(11)))


@pytest.mark.parametrize(
    ("options", "column"),
    [
        # What would be at wider limits is compiled.
        pytest.param(("--model", "dp1", "--max-n", "3"), "path_count_by_n_by_d", marks=pytest.mark.slow),
        (("--model", "exhaustive", "--max-n", "2", "--empty-d", "once"), "path_count_by_n_by_d"),
        (("--strands", "2", "--nu-vd", "3", "--nu-dj", "4"), "path_count_by_d"),
        (("--chain", "vj"), "path_count_no_d"),
        (("--overflow", "float"), "path_count_by_d"),
        (("--overflow", "wide"), "path_count_by_d"),
    ],
)
def test_options_reach_the_model(
    plait: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path, options: tuple[str, ...], column: str
) -> None:
    out = tmp_path / "out.parquet"
    words = ("vdj", "count", write_tsv(mouse_rows(5)), *BASE, *options, "--device", "reference", "-o", out)
    assert plait(*words).status == 0
    assert column in pq.read_schema(out).names
    facts = json.loads(pq.read_schema(out).metadata[b"plait.provenance"])["parameters"]
    for option, value in zip(options[::2], options[1::2], strict=True):
        assert str(facts[option.removeprefix("--").replace("-", "_")]) == value


def test_long_rows(plait: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path) -> None:
    path = write_tsv(mouse_rows(20))
    assert plait("vdj", "count", path, *BASE, *SWEEP, "-o", tmp_path / "lists.parquet").status == 0
    assert plait("vdj", "count", path, *BASE, *SWEEP, "--long", "-o", tmp_path / "long.parquet").status == 0
    lists = pq.read_table(tmp_path / "lists.parquet").to_pylist()
    tidy = pq.read_table(tmp_path / "long.parquet").to_pylist()
    d_names = [None, "TRBD1*01", "TRBD2*01"]
    told = {(r["record"], d_names.index(r["d_allele"]), r["pi"], r["nu"]): r["path_count"] for r in tidy}
    assert len(told) == len(tidy)
    for record, row in enumerate(lists):
        for place in range(55):
            pi, nu = divmod(place, 11)
            assert told.pop((record, 0, pi, nu)) == row["path_count_no_d_sweep"][place]
            for d in range(2):
                count = row["path_count_sweep_by_d"][55 * d + place]
                assert told.pop((record, d + 1, pi, nu), None) == count
    assert not told


def test_several_inputs(plait: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path) -> None:
    first, second = mouse_rows(30, seed=1), mouse_rows(40, seed=2)
    second = {"extra": ["x"] * 40, **dict(reversed(second.items()))}
    paths = write_tsv(first, "a.tsv"), write_tsv(second, "b.tsv")
    assert plait("vdj", "count", *paths, *BASE, "-o", tmp_path / "out.parquet").status == 0
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["junction"].to_pylist() == first["junction"] + second["junction"]
    assert table["extra"].to_pylist() == [None] * 30 + ["x"] * 40


def test_a_copy_under_another_name_is_warned_of(
    plait: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path
) -> None:
    path = write_tsv(mouse_rows(3, seed=1), "a.tsv")
    copy = shutil.copy(path, tmp_path / "b.tsv")
    found = plait("vdj", "count", path, copy, *BASE, "-o", tmp_path / "out.tsv")
    assert found.status == 0
    assert found.err.count("have the same content: what is in both is counted twice") == 1


def test_layout(plait: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path) -> None:
    rows = mouse_rows(10)
    names = {"junction": "CDR3.nt", "v_call": "V.name", "j_call": "J.name", "subject_id": "Sample"}
    path = write_tsv({names[name]: values for name, values in rows.items()})
    out = tmp_path / "out.tsv"
    assert plait("vdj", "count", path, *BASE, "-o", out).status == 0
    assert out.read_text().startswith(
        "CDR3.nt\tV.name\tJ.name\tSample\trepertoire_id\tsubject_id\tv_call\tj_call\tjunction\tstatus\tpath_count\t"
    )


def test_the_summary(plait: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path) -> None:
    rows = mouse_rows(300)
    for k in range(40):
        # A gene that is always 0: its junctions are another gene's, and long.
        rows["v_call"][k] = "TRBV31*01"
        rows["junction"][k] = "TGT" + "ACGTTGCA" * 7 + rows["junction"][k][-12:]
    rows["v_call"][50] = "TRBV99"
    rows["junction"][60:62] = ["TGTGCC!GCTTC", ""]
    rows["status"] = ["mine"] * 300
    out = tmp_path / "out.parquet"
    found = plait("vdj", "count", write_tsv(rows), *BASE, "-o", out)
    assert max(len(line) for line in found.out.splitlines() if str(out) not in line) <= 80
    for text in (
        "300 rows in ",
        "297  99.0 %  ok",
        "unknown_v_call    the germline set has no such V gene or allele",
        "unknown_v_call: TRBV99 1",
        "invalid_symbol",
        "missing_junction",
        "TRBV31",
        "wrong anchor or missing allele?",
        "The input column status is now input_status: status is a result.",
        f"table    {out}",
        f"summary  {out}.summary.json",
    ):
        assert text in found.out
    facts = json.loads(Path(f"{out}.summary.json").read_text())
    assert facts["statuses"] == {
        "ok": 297,
        "missing_junction": 1,
        "invalid_symbol": 1,
        "unknown_v_call": 1,
    }
    assert facts["suspicious_genes"] == ["TRBV31"]
    assert facts["blamed_calls"] == {"unknown_v_call": {"TRBV99": 1}}
    assert facts["renamed_columns"] == {"status": "input_status"}
    assert facts["rows"] == sum(facts["statuses"].values()) == 300
    assert pq.read_table(out)["input_status"].to_pylist() == ["mine"] * 300


def test_limits_of_a_locus() -> None:
    assert PathLimits().model_of("IGH").nu == 40
    assert PathLimits().model_of("TRB").nu == PathLimits().model_of("").nu == 10
    assert PathLimits(nu=7).model_of("IGH").nu == 7
    assert ModelParameters(model="dp1").model_of("IGH").max_n == 10


def test_every_status_has_a_meaning() -> None:
    # In this order: places in it are stored.
    of_v = ["missing_v_call", "unknown_v_call", "ambiguous_v_call", "no_v_anchor"]
    of_junction = ["ok", "missing_junction", "invalid_symbol", "too_short", "too_long"]
    of_j = [name.replace("_v_", "_j_") for name in of_v]
    assert list(STATUSES) == [*of_junction, *of_v, *of_j, "count_overflow", "mutated"]
    assert all(STATUS_MEANINGS[name].strip() for name in STATUSES)


def test_threads_do_not_change_a_byte(plait: Any, mouse_rows: Any, write_tsv: Any, tmp_path: Path) -> None:
    path = write_tsv(mouse_rows(14_000))
    written = []
    for threads in (1, 2, 3):
        out = tmp_path / f"{threads}" / "out.parquet"
        out.parent.mkdir()
        words = ("vdj", "count", path, *BASE, *SWEEP, "--threads", threads, "-o", out)
        assert plait(*words).status == 0
        written.append((out.read_bytes(), Path(f"{out}.summary.json").read_bytes()))
    assert pq.ParquetFile(tmp_path / "1" / "out.parquet").num_row_groups > 1
    assert written[0] == written[1] == written[2]


@pytest.mark.slow
def test_silent_where_nobody_looks(start_plait: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path) -> None:
    words = ("vdj", "count", write_tsv(mouse_rows(10)), *BASE, "--device", "reference")
    process = start_plait(*words, "-o", tmp_path / "out.parquet")
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("10 rows in ")


def test_progress_on_a_terminal(on_terminal: Any, write_tsv: Any, mouse_rows: Any, tmp_path: Path) -> None:
    words = ("vdj", "count", write_tsv(mouse_rows(10)), *BASE, "--device", "reference")
    found, shown = on_terminal(*words, "-o", tmp_path / "out.parquet")
    assert found.status == 0 and found.out.startswith("10 rows in ")
    assert b"counting" in shown and b"rows" in shown


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory: pytest.TempPathFactory, mouse_rows: Any) -> Path:
    """A table of several blocks."""
    few = mouse_rows(2000)
    rows = list(zip(*few.values(), strict=True))
    rng = random.Random(0)
    path = tmp_path_factory.mktemp("many") / "many.tsv"
    with path.open("w") as file:
        file.write("\t".join(few) + "\n")
        file.writelines("\t".join(rng.choice(rows)) + "\n" for _ in range(MANY_ROWS))
    return path


@pytest.fixture(scope="module")
def whole_run(many_rows: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Output and summary of a run that nobody stopped."""
    from plait.cli import main

    out = tmp_path_factory.mktemp("whole") / "out.parquet"
    assert main(["vdj", "count", str(many_rows), *BASE, *SWEEP, "-o", str(out)]) == 0
    return {path.name: path.read_bytes() for path in out.parent.iterdir()}


@pytest.mark.parametrize(
    ("number", "status"),
    often(1, [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]),
)
def test_a_stopped_run_is_resumed_to_the_byte(
    plait: Any,
    start_plait: Any,
    many_rows: Path,
    whole_run: dict[str, bytes],
    tmp_path: Path,
    stopping: Any,
    number: int,
    status: int,
) -> None:
    out = tmp_path / "out.parquet"
    words = ("vdj", "count", many_rows, *BASE, *SWEEP, "-o", out)
    process = start_plait(*words, before=stopping(number))
    _, err = process.communicate(timeout=300)
    assert process.returncode == status
    assert not out.exists()
    if number != signal.SIGKILL:
        message = "plait: stopped; the same command with --resume continues where it stopped"
        assert err.splitlines()[-1] == message and "Traceback" not in err
        assert [path.name for path in tmp_path.iterdir()] == ["out.parquet.checkpoint"]
    found = plait(*words, "--resume")
    assert found.status == 0 and "blocks were taken over from the stopped run" in found.out
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == whole_run


@pytest.mark.slow
def test_another_run_is_not_resumed(
    plait: Any, start_plait: Any, many_rows: Path, tmp_path: Path, stopping: Any
) -> None:
    out = tmp_path / "out.parquet"
    words = ("vdj", "count", many_rows, *BASE, *SWEEP, "-o", out)
    process = start_plait(*words, before=stopping(signal.SIGKILL))
    process.communicate(timeout=300)
    found = plait("vdj", "count", many_rows, *BASE, *SWEEP, "--pi", "3", "--resume", "-o", out)
    assert found.status == 2
    assert "resume: found a checkpoint of another run" in found.err
    assert "parameters.pi (stored 4, now 3)" in found.err
    assert not out.exists()
