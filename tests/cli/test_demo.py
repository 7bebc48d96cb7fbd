"""``plait demo``: on drawn repertoires in the layout of its data, and on these where they are installed."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import InvalidInput
from plait.reports.demo import demo_repertoires
from plait.vdj.germline import load_germline

DONORS = ("A", "B", "C")


def drawn_repertoires(rows: int) -> pa.Table:
    germline = load_germline("human_trb")
    rng = random.Random(0)
    drawn = []
    for _ in range(rows // 2):
        v, j = rng.choice(germline.v), rng.choice(germline.j)
        middle = "".join(rng.choices("ACGT", k=rng.randrange(25)))
        drawn.append(((v.cdr3_end or "")[:-3] + middle + (j.cdr3_end or "")[4:], v.gene, j.gene))
    # Every clonotype in one donor, and half of them in a second one too.
    drawn += rng.sample(drawn, rows - len(drawn))
    junctions, v_names, j_names = zip(*drawn, strict=True)
    samples = [DONORS[k * len(DONORS) // rows] for k in range(rows)]
    return pa.table(
        {
            "Sample": samples,
            "Clones": [rng.randrange(1, 9) for _ in range(rows)],
            "CDR3.nt": junctions,
            "V.name": ["TRBV99", *v_names[1:]],
            "J.name": j_names,
        }
    )


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of the name with a data file; it cannot be imported."""
    package = tmp_path / "site" / "pyimmunarch"
    (package / "_data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    path = package / "_data" / "immdata.parquet"
    pq.write_table(drawn_repertoires(300), path)
    monkeypatch.syspath_prepend(package.parent)
    return path


@pytest.fixture
def draws() -> None:
    pytest.importorskip("vl_convert", reason="reports are drawn with vl-convert, of plait's extra report")
    pytest.importorskip("jinja2", reason="reports are made with Jinja, of plait's extra report")


@pytest.fixture
def undrawn(draws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of figures with nothing in them: drawing takes longer than the rest of a small demo."""
    monkeypatch.setenv("PLAIT_THREADS", "1")
    monkeypatch.setattr("plait.reports.figure.figure_files", lambda figure: (b"", b""))


@pytest.mark.slow
def test_a_device_can_be_named(plait: Any, installed: Path, tmp_path: Path, undrawn: None) -> None:
    words = ("demo", "-o", tmp_path / "out", "--rows", 12, "--device", "reference")
    assert plait(*words).status == 0
    (counts,) = (tmp_path / "out" / "study" / "counts").glob("*.parquet")
    metadata = pq.read_schema(counts).metadata
    assert json.loads(metadata[b"plait.provenance"])["device"] == "reference"


@pytest.mark.slow
def test_demo(
    plait: Any, installed: Path, tmp_path: Path, draws: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "new" / "folder"
    found = plait("demo", "-o", out)
    assert found.status == 0
    assert found.err.startswith("plait: studying the repertoires of 12 donors under 55 models\n")
    told = " ".join(found.out.split())
    for text in (
        "Real human TRB repertoires of 12 donors",
        "300 rows of 1 file, 3 subjects",
        " no path count; statuses.tsv says why",
        "subjects clonotypes median count middle half of counts mean N2",
        "What these figures cannot say",
    ):
        assert text in told
    assert "plait vdj report" not in told
    assert max(len(line) for line in found.out.splitlines() if str(out) not in line) <= 80
    assert found.out.splitlines()[-1] == str(out / "study" / "report.html")
    assert sorted(path.name for path in out.iterdir()) == ["plait-demo.json", "samples.csv", "study"]
    described = json.loads((out / "study" / "study.json").read_text())
    assert described["rows"] == 300 and described["inputs"][0]["file"] == str(installed)
    assert len(described["parameters"]["sweep_pi"]) * len(described["parameters"]["sweep_nu"]) == 55
    assert "<!doctype html>" in (out / "study" / "report.html").read_text("utf-8")
    assert (out / "study" / "figures" / "vj_usage.png").read_bytes().startswith(b"\x89PNG")
    # Drawing takes longer than the rest.
    monkeypatch.setenv("PLAIT_THREADS", "1")
    monkeypatch.setattr("plait.reports.figure.figure_files", lambda figure: (b"", b""))
    again = plait("demo", "-o", out)
    assert again.status == 2 and "which holds an earlier demo" in again.err and "--resume" not in again.err
    again = plait("demo", "-o", out, "--force")
    assert again.status == 0 and "Path counts of 1 file were there already" in again.out


def test_a_folder_with_something_else_is_left_alone(plait: Any, installed: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "samples.csv").write_text("mine")
    found = plait("demo", "-o", tmp_path / "mine", "--force")
    assert found.status == 2 and "which holds something else" in found.err
    assert (tmp_path / "mine" / "samples.csv").read_text() == "mine"


def test_fewer_rows(plait: Any, installed: Path, tmp_path: Path, undrawn: None) -> None:
    found = plait("demo", "-o", tmp_path / "out", "--rows", "20")
    assert found.status == 0 and "20 rows of 1 file, 3 subjects" in found.out
    taken = pq.read_table(tmp_path / "out" / "repertoires.parquet")
    assert taken.num_rows == 20 and set(taken["Sample"].to_pylist()) == set(DONORS)


@pytest.mark.parametrize("rows", [0, -5])
def test_rows_must_be_some(plait: Any, tmp_path: Path, rows: int) -> None:
    found = plait("demo", "-o", tmp_path / "out", "--rows", rows)
    assert found.status == 2 and f"rows: found {rows}, expected a whole number of at least 1" in found.err


def test_without_the_data(plait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, draws: None) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = plait("demo", "-o", tmp_path / "out")
    assert found.status == 2
    assert "demo data: found no package pyimmunarch" in found.err and "plait[demo]" in found.err
    assert not (tmp_path / "out").exists()


def test_without_what_draws(plait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # None in the table of modules makes an import fail.
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    found = plait("demo", "-o", tmp_path / "out")
    assert found.status == 2
    assert "vl_convert" in found.err and "plait[report]" in found.err
    assert not (tmp_path / "out").exists()


def test_a_package_without_the_file(installed: Path) -> None:
    installed.unlink()
    with pytest.raises(InvalidInput, match=r"found pyimmunarch without _data/immdata\.parquet"):
        demo_repertoires()


@pytest.mark.slow
def test_the_data_of_the_package(tmp_path: Path, plait: Any, undrawn: None) -> None:
    try:
        path = demo_repertoires()
    except InvalidInput as error:
        pytest.skip(reason=str(error))
    table = pq.read_table(path, columns=["Sample"])
    assert (table.num_rows, len(table["Sample"].unique())) == (76_820, 12)
    assert plait("demo", "-o", tmp_path / "out", "--rows", "600").status == 0
