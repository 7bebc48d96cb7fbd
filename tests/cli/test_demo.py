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
from plait.vdj.demo_data import demo_repertoires
from plait.vdj.germline import load_germline
from plait.vdj.sharing_table import CLONOTYPE

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


def test_a_device_can_be_named(plait: Any, installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib, of plait's extra demo")
    words = ("demo", "-o", tmp_path / "out", "--rows", 12, "--device", "reference")
    assert plait(*words).status == 0
    metadata = pq.read_schema(tmp_path / "out" / "demo.parquet").metadata
    assert json.loads(metadata[b"plait.provenance"])["device"] == "reference"


def test_demo(plait: Any, installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib, of plait's extra demo")
    out = tmp_path / "new" / "folder"
    found = plait("demo", "-o", out)
    assert found.status == 0
    assert found.err.startswith("plait: counting the repertoires of 12 donors under 55 models\n")
    told = " ".join(found.out.split())
    for text in (
        "300 real human TRB rows of 3 donors, counted under 55 models",
        "299 rows were counted.",
        "1 were not: the germline set has no such V gene or allele (TRBV99 1)",
        "donors clonotypes median count middle half of counts count 0",
        "Spearman's rank correlation of path count and number of donors",
    ):
        assert text in told
    assert max(len(line) for line in found.out.splitlines() if str(out) not in line) <= 80
    names = sorted(path.name for path in out.iterdir())
    assert names == [
        "demo.parquet",
        "demo.parquet.summary.json",
        "demo.png",
        "sharing.tsv",
        "sharing.tsv.json",
    ]
    table = pq.read_table(out / "demo.parquet")
    assert table.num_rows == 300
    assert table.schema.field("path_count_sweep_by_d").type.list_size == 3 * 55
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
    clonotypes = [line.split("\t") for line in (out / "sharing.tsv").read_text().splitlines()]
    assert clonotypes[0] == [*CLONOTYPE, "subjects", "rows", "duplicate_count", "path_count"]
    assert sum(int(line[4]) for line in clonotypes[1:]) == 300


def test_fewer_rows(plait: Any, installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib, of plait's extra demo")
    found = plait("demo", "-o", tmp_path / "out", "--rows", "20")
    assert found.status == 0 and found.out.startswith("20 real human TRB rows of 3 donors")
    assert set(pq.read_table(tmp_path / "out" / "demo.parquet")["Sample"].to_pylist()) == set(DONORS)


@pytest.mark.parametrize("rows", [0, -5])
def test_rows_must_be_some(plait: Any, tmp_path: Path, rows: int) -> None:
    found = plait("demo", "-o", tmp_path / "out", "--rows", rows)
    assert found.status == 2 and f"rows: found {rows}, expected at least 1" in found.err


def test_without_the_data(plait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib, of plait's extra demo")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = plait("demo", "-o", tmp_path / "out")
    assert found.status == 2
    assert "demo data: found no package pyimmunarch" in found.err and "plait[demo]" in found.err
    assert not (tmp_path / "out").exists()


def test_without_matplotlib(plait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # None in the table of modules makes an import fail.
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = plait("demo", "-o", tmp_path / "out")
    assert found.status == 2
    assert "matplotlib cannot be imported" in found.err and "plait[demo]" in found.err
    assert not (tmp_path / "out").exists()


def test_a_package_without_the_file(installed: Path) -> None:
    installed.unlink()
    with pytest.raises(InvalidInput, match=r"found pyimmunarch without _data/immdata\.parquet"):
        demo_repertoires()


def test_the_figure_is_the_same_for_the_same_data(plait: Any, installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib, of plait's extra demo")
    for name in ("a", "b"):
        assert plait("demo", "-o", tmp_path / name, "--rows", "50").status == 0
    assert (tmp_path / "a" / "demo.png").read_bytes() == (tmp_path / "b" / "demo.png").read_bytes()


def test_the_data_of_the_package(tmp_path: Path, plait: Any) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib, of plait's extra demo")
    try:
        path = demo_repertoires()
    except InvalidInput as error:
        pytest.skip(reason=str(error))
    table = pq.read_table(path, columns=["Sample"])
    assert (table.num_rows, len(table["Sample"].unique())) == (76_820, 12)
    assert plait("demo", "-o", tmp_path / "out", "--rows", "600").status == 0
