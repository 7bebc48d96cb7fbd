"""The golden path counts, which the oracles made, come out of the package."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from support.cases import Answer, Batch, Junction, make_germline, run_chain
from support.problems import TARGETS

from plait.dp.chain.tables import REGION_FIELDS
from plait.lang.algebras import COUNT
from plait.lang.lanes import LANES
from plait.vdj.models import PathModel

ON_TARGETS = pytest.mark.parametrize(
    "target", [pytest.param("reference", marks=pytest.mark.interpreted), "cpu"]
)


@pytest.fixture(scope="module")
def golden(repository: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((repository / "tests/golden/path_counts.json").read_text())
    return found


def run(golden: dict[str, Any], model: PathModel, target: str) -> Answer:
    v, d, j = (list(golden[segment]) for segment in "vdj")
    order = {
        f"TRBD{k + 1}": tuple(f"TRBJ{n + 1}" for n, j_name in enumerate(j) if name in golden["joins"][j_name])
        for k, name in enumerate(d)
    }
    germline = make_germline(*(golden[segment].values() for segment in "vdj"), d_j_order=order)
    items = (Junction(x["junction"], v.index(x["v"]), j.index(x["j"])) for x in golden["junctions"])
    rows = "models" if model.name == "dp2" else "insertions"
    lanes = LANES[max(TARGETS[target].widths["count", rows])]
    return run_chain(Batch(germline, model, tuple(items)), TARGETS[target].make(), COUNT, lanes)


def of_allowed(golden: dict[str, Any], rows: list[list[list[int]]]) -> list[list[list[int]]]:
    """The lanes of the D genes that each junction may have."""
    places = list(golden["d"])
    return [
        [row[places.index(name)] for name in item["d"]]
        for item, row in zip(golden["junctions"], rows, strict=True)
    ]


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("reference", marks=pytest.mark.interpreted),
        pytest.param("cpu", marks=pytest.mark.slow),
    ],
)
def test_dp1(golden: dict[str, Any], target: str) -> None:
    found = run(golden, PathModel(name="dp1"), target)
    assert of_allowed(golden, found["full"]) == [item["dp1"] for item in golden["junctions"]]


@ON_TARGETS
@pytest.mark.parametrize("strands", [1, 2])
def test_dp2_sweep(golden: dict[str, Any], target: str, strands: int) -> None:
    model = PathModel(strands=strands, sweep_pi=(0, 2, 4), sweep_nu=(0, 3, 10))
    found = run(golden, model, target)
    names = [f"strands {strands}, pi {pi}, nu {nu}" for pi in model.pis for nu in model.nus]
    for kind, counts in (("full", found["full"]), ("zero_d", found["empty"])):
        wanted = [
            [[item["dp2"][name][kind][f] for name in names] for f in range(len(item["d"]))]
            for item in golden["junctions"]
        ]
        assert of_allowed(golden, counts) == wanted
    assert found["none"] == [[item["dp2"][name]["no_d"] for name in names] for item in golden["junctions"]]


@ON_TARGETS
def test_dp2_with_a_limit_for_each_junction(golden: dict[str, Any], target: str) -> None:
    found = run(golden, PathModel(nu_vd=2, nu_dj=6), target)
    wanted = [[[count] for count in item["dp2_apart"]] for item in golden["junctions"]]
    assert of_allowed(golden, found["full"]) == wanted


def _field(name: str) -> str:
    """What a field is called now that the file, which is kept for ever, calls by an older name."""
    if name == "fragment_choice":
        return "d_alleles"
    return name.replace("prefix_", "v_").replace("suffix_", "j_").replace("fragment_", "d_")


@ON_TARGETS
def test_regions(golden: dict[str, Any], target: str) -> None:
    found = run(golden, PathModel(), target)
    for item, row in zip(golden["junctions"], found["regions"], strict=True):
        wanted = {_field(name): value for name, value in item["regions"].items()}
        for part in ("before", "after", "between"):
            letters = wanted.pop(part)
            wanted |= {f"{part}_{bit}": letters[letter] for bit, letter in enumerate("ATCG")}
        assert dict(zip(REGION_FIELDS, row, strict=True)) == wanted


@pytest.mark.slow
def test_the_file_is_what_its_script_writes(golden: dict[str, Any], repository: Path) -> None:
    made = runpy.run_path(str(repository / "tests/golden/make_path_counts.py"))
    assert [(x["v"], x["j"], x["junction"]) for x in golden["junctions"]] == made["JUNCTIONS"]
    for item in golden["junctions"][-3:]:
        assert made["entry"](item["v"], item["j"], item["junction"]) == item
