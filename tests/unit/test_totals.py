"""Sums over D genes alone are the sums of what is counted in full."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.cases import make_germline
from support.examples import often

from plait.vdj import STATUSES, PathCounter, PathModel
from plait.vdj.germline import GermlineSet

ENDS = ["ACCTGCAGTGCAGA", "ACCTG"], ["CAAACACAGAAGTCTTC"]
READ = "ACCTGCAGTGCAGACCTGGGGAACACAGAAGTCTTC"
LARGE = READ[:10] + "N" * 40 + READ[-12:]
SWEEP = PathModel(sweep_pi=(0, 2), sweep_nu=(3, 5))


def germline(locus: str) -> GermlineSet:
    v, j = ENDS
    genes = [] if locus == "TRA" else ["GGGACAGGGGGC", "TTTT"]
    return make_germline(v, genes, j, locus=locus)


def columns(locus: str, *reads: str) -> tuple[pa.Array, pa.Array, pa.Array]:
    calls = [f"{locus}V1", f"{locus}V2, {locus}V1"]
    parts = (
        reads,
        [calls[k % 2] for k in range(len(reads))],
        [f"{locus}J1"] * len(reads),
    )
    return tuple(pa.array(part, pa.large_string()) for part in parts)  # type: ignore[return-value]


MODELS = (SWEEP, PathModel(nu=3), PathModel(name="dp1"), PathModel(name="exhaustive", max_n=1))
#: Two D genes are not enumerated.
COUNTED = [
    pytest.param(locus, model, marks=[pytest.mark.slow] * (model.name != "dp2"))
    for locus in ("TRB", "TRA", "TRD")
    for model in MODELS
][:-1]


@pytest.mark.parametrize(("locus", "model"), COUNTED)
@pytest.mark.parametrize("options", [{}, {"ambiguous": "all"}, {"overflow": "float"}])
def test_totals(locus: str, model: PathModel, options: dict[str, Any]) -> None:
    counter = PathCounter(germline(locus), model, device="cpu", threads=1, **options)
    parts = columns(locus, READ, "", READ[1:], "ACCTGTTC", "?")
    whole, found = counter.count(*parts), counter.totals(*parts)
    assert found.status.tolist() == whole.status.tolist()
    assert found.provenance == whole.provenance
    np.testing.assert_array_equal(found.path_count, whole.path_count)
    if model.name == "dp2":
        wanted = {
            "TRB": whole.sweep_by_d.sum(axis=1), "TRA": whole.no_d_sweep, "TRD": whole.sweep_by_dd.sum(axis=1)
        }[locus]  # fmt: skip
        shape = tuple(map(len, model.axes))
    else:
        wanted = {
            "TRB": whole.by_n_by_d.sum(axis=1), "TRA": whole.no_d_by_n, "TRD": whole.by_n_by_dd.sum(axis=1)
        }[locus]  # fmt: skip
        shape = (model.max_n + 1,)
    assert found.total.shape == (5, *shape)
    assert found.total.dtype == wanted.dtype
    if model.is_sweep or model.name != "dp2":
        np.testing.assert_array_equal(found.total, wanted)
    assert found.total.sum() > 0 or model.name == "exhaustive"
    if model.name == "dp2" and not model.is_sweep:
        np.testing.assert_array_equal(found.total[:, 0, 0], whole.path_count)


@pytest.mark.slow
@pytest.mark.parametrize("device", often(1, ["reference", "cpu"]))
def test_sums_that_do_not_fit_are_found(device: str) -> None:
    counter = PathCounter(germline("TRB"), replace(SWEEP, nu=40), device=device, threads=1)
    parts = columns("TRB", READ, LARGE)
    found, whole = counter.totals(*parts), counter.count(*parts)
    assert [STATUSES[code] for code in found.status] == ["ok", "count_overflow"]
    np.testing.assert_array_equal(found.total, whole.sweep_by_d.sum(axis=1))
