"""The report of an inference: figures from tables, one page that asks for nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support.examples import often
from support.recombination import drawn_junctions, small_model

from plait.errors import FormatError, InvalidInput
from plait.vdj.model import RecombinationModel, infer_files, uniform_model, write_model
from plait.vdj.model.evidence import EvidenceChoice
from plait.vdj.model.expectations import Evidence
from plait.vdj.model.inference_tables import evidence_rows, gene_rows, mean_deletions

pytest.importorskip("vl_convert", reason="reports are drawn with vl-convert, of plait's extra report")

from plait.reports.inference_report import inference_figures, read_inference, write_inference_report


def inferred(folder: Path, *, d: bool, rows: int = 60) -> Path:
    model = small_model(11, d=d, zeros=False)
    lines = ["junction\tv_call\tj_call", "TGTGCA\tTRXV1\t<b>TRXJ9</b>"]
    lines += [f"{text}\tTRXV1,TRXV2\tTRXJ1,TRXJ2" for text in drawn_junctions(model, 1, rows)]
    (folder / "rows.tsv").write_text("\n".join(lines) + "\n")
    infer_files(
        [folder / "rows.tsv"],
        folder / "out",
        uniform_model(model),
        choice=EvidenceChoice(rows="all"),
        iterations=3,
    )
    return folder / "out"


@pytest.mark.parametrize("d", often(1, [True, False]), ids=["vdj", "vj"])
def test_figures(tmp_path: Path, d: bool) -> None:
    folder = inferred(tmp_path, d=d)
    figures = {figure.name: figure for figure in inference_figures(read_inference(folder))}
    expected = ["log_likelihood", "gain", "entropy", "deletions"]
    expected += ["v_usage", "v_deletions", "j_usage", "j_deletions"]
    expected += ["genes_together", *(["d_deletions"] if d else []), "insertion_lengths", "n_nucleotides"]
    assert list(figures) == expected
    assert all(figure.spec is not None and len(figure.alt) > 20 for figure in figures.values())
    values = figures["v_usage"].spec["data"]["values"]
    assert sum(value["probability"] for value in values) == pytest.approx(1)
    heat = figures["v_deletions"].spec["data"]["values"]
    assert sum(value["p"] for value in heat) == pytest.approx(
        len({value["gene"] for value in heat}), abs=0.01
    )
    panels = {value["panel"] for value in figures["n_nucleotides"].spec["data"]["values"]}
    assert len(panels) == (2 if d else 1)


def test_the_page_is_whole_and_safe(tmp_path: Path) -> None:
    folder = inferred(tmp_path, d=True)
    page = write_inference_report(folder)
    text = page.read_text()
    assert page == folder / "report.html" and "<b>TRXJ9" not in text and "&lt;b&gt;TRXJ9" in text
    # Behind it is what draws, which holds such words without asking for anything.
    written = text[: text.index('<script type="application/json"')]
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", written)
    for name in ("genes", "evidence", "entropy", "iterations", "left_out", "inputs"):
        assert f'data-table="{name}"' in text
    assert "selection has shaped them" in text and 'class="card warned"' in text
    assert "plait vdj infer" in text and "plait vdj study" not in text
    assert write_inference_report(folder, tmp_path / "page.html").read_text() == text


@pytest.mark.slow
def test_a_sentence_stands_for_what_is_missing(tmp_path: Path) -> None:
    folder = inferred(tmp_path, d=False, rows=20)
    for path in (folder / "tables").iterdir():
        path.write_text(path.read_text().splitlines()[0] + "\n")
    figures = inference_figures(read_inference(folder))
    assert all(figure.spec is None and figure.caption.endswith(".") for figure in figures)
    write_inference_report(folder)
    (folder / "tables" / "genes.tsv").write_text("segment\n")
    with pytest.raises(FormatError, match=r"genes\.tsv"):
        read_inference(folder)
    (folder / "tables" / "genes.tsv").unlink()
    (folder / "inference.json").write_text("[")
    with pytest.raises(FormatError, match=r"inference\.json"):
        read_inference(folder)
    with pytest.raises(InvalidInput, match="finished plait vdj infer"):
        write_inference_report(tmp_path)


def evidence_of(model: RecombinationModel, n: float) -> Evidence:
    tables = {name: getattr(model, name) * n for name in Evidence._fields[:9]}
    return Evidence(**tables, vd_first=np.zeros(4), dj_first=np.zeros(4), errors=np.zeros(1))


def test_tables_add_up() -> None:
    model = small_model(3, zeros=False)
    rows = list(evidence_rows(model, evidence_of(model, 50)))
    by: dict[tuple[object, object], float] = {}
    for row in rows:
        key = (row["event"], row["given"])
        by[key] = by.get(key, 0.0) + float(str(row["probability"]))
        assert row["few"] == "yes"
        p = float(str(row["probability"]))
        assert row["standard_error"] == pytest.approx((p * (1 - p) / float(str(row["total"]))) ** 0.5)
    assert all(total == pytest.approx(1) for total in by.values())
    genes = gene_rows(model, evidence_of(model, 500))
    assert [row["few"] for row in genes if row["segment"] == "V"] == [
        "yes" if p * 500 < 100 else "no" for p in model.p_v
    ]
    means = mean_deletions(model)
    expected = sum(
        float(model.p_d_deletions[0, s, t]) * (s + t - 2)
        for s, t in np.ndindex(model.p_d_deletions.shape[1:])
    )
    assert means["D"][0] == pytest.approx(expected)


def test_model_in_the_folder_is_the_model(tmp_path: Path) -> None:
    folder = inferred(tmp_path, d=True)
    content = json.loads((folder / "model.json").read_text())
    assert content["provenance"]["parameters"]["rows"] == "all"
    from plait.vdj.model import read_model

    model = read_model(folder / "model.json")
    write_model(model, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (folder / "model.json").read_bytes()
