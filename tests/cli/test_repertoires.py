"""``plait vdj diversity`` and ``neighbours``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.examples import often

COLUMNS = {
    "junction": ["TGTGCCTTC", "tgtgccttc", "TGTGCCTTC", "TGTAGCTTC", ""],
    "v_call": ["TRBV1*01", "TRBV1*02", "TRBV1", "TRBV1*01", "TRBV1"],
    "j_call": ["TRBJ1-1*01"] * 5,
    "subject_id": ["a", "b", "b", "a", "a"],
    "arm": ["x", "y", "y", "x", "x"],
    "duplicate_count": ["3", "1", "2", "", "9"],
}


@pytest.mark.parametrize("suffix", often(1, ["tsv", "parquet"]))
def test_diversity(plait: Any, write_tsv: Any, tmp_path: Path, suffix: str) -> None:
    names = ("rarefaction", "spectratypes", "usage", "differences")
    paths = {name: tmp_path / f"{name}.{suffix}" for name in names}
    words = [word for name, path in paths.items() for word in (f"--{name}", path)]
    out = tmp_path / f"out.{suffix}"
    found = plait("vdj", "diversity", write_tsv(COLUMNS), "-o", out, *words, "--condition", "arm")
    assert (found.status, found.err) == (0, "")
    assert "0 of 3 genes and pairs of genes differ" in found.out
    if suffix == "parquet":
        rows = pq.read_table(out).select(["subject", "clonotypes", "copies", "hill_0"]).to_pylist()
        assert [list(row.values()) for row in rows] == [["a", 2, 4, 2.0], ["b", 1, 3, 1.0]]
        facts = json.loads(pq.read_schema(paths["usage"]).metadata[b"plait.diversity"])
        assert facts["settings"]["replicates"] == 50
    else:
        assert out.read_text().splitlines()[1].startswith("a\t2\t4\t1\t0\t")
        assert paths["differences"].read_text().splitlines()[1] == "J\t\tTRBJ1-1\tx\ty\t1\t1\t1\t1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--differences", "d.tsv"), "expected --condition with it"),
        (("--downsample", "5"), "expected a subject with 5 copies or more"),
        (("--subject", "patient"), "expected a column 'patient'"),
        (("--usage", "u.csv"), "u.csv"),
        (("--usage", "out.tsv"), "out.tsv"),
    ],
)
def test_bad_requests_leave_nothing(
    plait: Any, write_tsv: Any, tmp_path: Path, monkeypatch: Any, words: tuple[str, ...], message: str
) -> None:
    table = write_tsv(COLUMNS)
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    found = plait("vdj", "diversity", table, "-o", "out.tsv", *words)
    assert (found.status, found.out) == (2, "")
    assert message in found.err
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("subjects", [2, 12])
def test_figures(plait: Any, write_tsv: Any, tmp_path: Path, subjects: int) -> None:
    columns = {name: values[:4] * (subjects // 2) for name, values in COLUMNS.items()}
    columns["subject_id"] = [f"{name}{k // 4}" for k, name in enumerate(columns["subject_id"])]
    words = ("--figures", tmp_path / "figures", "--replicates", "3", "--knots", "4")
    found = plait("vdj", "diversity", write_tsv(columns), "-o", tmp_path / "out.tsv", *words)
    assert (found.status, found.err) == (0, "")
    names = ("diversity", "rarefaction", "v_by_subject")
    paths = sorted(tmp_path.glob("figures/*"))
    assert [path.name for path in paths] == [f"{name}.{kind}" for name in names for kind in ("png", "svg")]
    texts = [path.read_text() for path in paths if path.suffix == ".svg"]
    assert all(
        "<script" not in text and "http" not in text.replace("http://www.w3.org", "") for text in texts
    )
    # With many subjects, curves have no names.
    assert ["b0" in text for text in texts] == [True, subjects == 2, True]


QUERY = {
    "junction_aa": ["CAF", "CAAAAF"],
    "v_call": ["TRBV1"] * 2,
    "j_call": ["TRBJ1-1"] * 2,
    "tag": ["x", "y"],
}


def test_neighbours(plait: Any, write_tsv: Any, tmp_path: Path) -> None:
    query, table, out = write_tsv(QUERY, "query.tsv"), write_tsv(COLUMNS), tmp_path / "out.tsv"
    found = plait("vdj", "neighbours", query, table, "--control", table, "-o", out)
    assert (found.status, found.err) == (0, "")
    assert "2 receptors, 2 clonotypes of 2 individuals" in found.out
    header, first, second = (line.split("\t") for line in out.read_text().splitlines())
    assert header[:6] == ["junction_aa", "v_call", "j_call", "tag", "neighbours", "neighbour_subjects"]
    assert first[:7] == ["CAF", "TRBV1", "TRBJ1-1", "x", "2", "2", "3"] and second[4:7] == ["0", "0", "0"]
    drawn = plait("vdj", "neighbours", query, table, "--model", "human_TRB", "--draws", "500", "-o", out)
    assert drawn.status == 0 and "background of 500 junctions" in " ".join(drawn.out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "found none, expected one of them"),
        (("--control", "in.tsv", "--model", "human_TRB"), "found both"),
        (("--control", "in.tsv", "--edits", "4"), "edits"),
        (("--control", "in.tsv", "--key", "cdr3nt"), "query.tsv"),
        (("--control", "missing.tsv"), "missing.tsv"),
    ],
)
def test_neighbours_bad_requests(
    plait: Any, write_tsv: Any, tmp_path: Path, monkeypatch: Any, words: tuple[str, ...], message: str
) -> None:
    query, table = write_tsv(QUERY, "query.tsv"), write_tsv(COLUMNS)
    monkeypatch.chdir(tmp_path)
    found = plait("vdj", "neighbours", query, table, *words, "-o", "out.tsv")
    assert (found.status, found.out) == (2, "")
    assert message in found.err
    assert not (tmp_path / "out.tsv").exists()
