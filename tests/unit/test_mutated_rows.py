"""Rows whose V differs from its germline by more than a limit are neither counted nor given a probability."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.recombination import small_model

from plait.errors import InvalidInput
from plait.vdj.calls import IdentityLimit
from plait.vdj.count_files import count_files
from plait.vdj.counting import PathCounter
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.model import JunctionSampler
from plait.vdj.model.pgen import pgen_files

JUNCTION = "TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC"
ROW = {"junction": JUNCTION, "v_call": "TRBV13-1", "j_call": "TRBJ2-7"}


def write(path: Path, identities: list[Any]) -> Path:
    pq.write_table(pa.Table.from_pylist([ROW | {"v_identity": one} for one in identities]), path)
    return path


def statuses(folder: Path, identities: list[Any], germline: GermlineSet, **options: Any) -> list[str]:
    place = write(folder / "rows.parquet", identities)
    count_files([place], folder / "out.parquet", PathCounter(germline, device="cpu"), **options)
    table = pq.read_table(folder / "out.parquet")
    known = [count is not None for count in table["path_count"].to_pylist()]
    assert known == [status == "ok" for status in table["status"].to_pylist()]
    found: list[str] = table["status"].to_pylist()
    return found


def test_immunoglobulins_have_a_limit_and_t_cell_receptors_none(tmp_path: Path) -> None:
    receptor = load_germline("mouse_trb")
    heavy = replace(receptor, locus="IGH")
    shares = [1.0, 0.98, 0.979, None, 0.5]
    assert statuses(tmp_path, shares, receptor) == ["ok"] * 5
    wanted = ["ok", "ok", "mutated", "ok", "mutated"]
    assert statuses(tmp_path, shares, heavy) == wanted
    assert statuses(tmp_path, [None if s is None else 100 * s for s in shares], heavy) == wanted
    assert statuses(tmp_path, ["" if s is None else f" {s}" for s in shares], heavy) == wanted
    assert statuses(tmp_path, shares, heavy, min_v_identity=0.0) == ["ok"] * 5
    assert statuses(tmp_path, shares, receptor, min_v_identity=0.6) == [*["ok"] * 4, "mutated"]
    facts = json.loads((tmp_path / "out.parquet.summary.json").read_text())
    assert facts["provenance"]["parameters"]["min_v_identity"] == 0.6
    assert facts["statuses"] == {"ok": 4, "mutated": 1}


def test_what_is_no_identity_is_refused(tmp_path: Path) -> None:
    germline = replace(load_germline("mouse_trb"), locus="IGH")
    with pytest.raises(InvalidInput, match=r"v_identity: found .*much"):
        statuses(tmp_path, ["0.99", "much"], germline)
    for wrong in (1.5, -0.1, float("nan")):
        with pytest.raises(InvalidInput, match="expected a number from 0 to 1"):
            IdentityLimit.of(wrong, "IGH", [], [])


def test_generation_probabilities(tmp_path: Path) -> None:
    model = small_model(7)
    model = replace(model, v=(replace(model.v[0], name="IGHV1*01"), *model.v[1:]))
    texts = JunctionSampler(model, seed=1).block(0, 20).texts()[:3]
    rows = [{"junction": t, "v_identity": s} for t, s in zip(texts, (0.5, 0.99, None), strict=True)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    for limit, wanted in (
        (None, ["mutated", "ok", "ok"]),
        (0.0, ["ok"] * 3),
        (1.0, ["mutated"] * 2 + ["ok"]),
    ):
        found = pgen_files(
            [tmp_path / "rows.parquet"],
            tmp_path / "out.parquet",
            model,
            of="nt",
            log10=True,
            min_v_identity=limit,
        )
        table = pq.read_table(tmp_path / "out.parquet")
        assert table["pgen_nt_status"].to_pylist() == wanted
        for name in ("pgen_nt", "log10_pgen_nt"):
            assert [value is not None for value in table[name].to_pylist()] == [s == "ok" for s in wanted]
        assert found.summary["nt"].rows == 3
