"""Junctions of real length, from the bundled mouse TRB genes and, where they are at hand, from real mice."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from support.answers import expected
from support.cases import Batch, Junction, run_chain, run_enumeration
from support.examples import often

from plait.devices.target import CpuTarget
from plait.lang.algebras import COUNT
from plait.lang.lanes import host_lanes
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.models import PathModel

#: V, D and J genes, and how much of each is left, with N and P nucleotides in between.
RECIPES = [
    ("TRBV13-1", 0, "", "TRBD1", (0, 9), "", "TRBJ2-7", 0),
    ("TRBV13-1", 3, "TA", "TRBD1", (2, 8), "CG", "TRBJ1-1", 4),
    ("TRBV19", 1, "A", "TRBD2", (4, 14), "T", "TRBJ2-1", 2),
    ("TRBV5", 4, "GGTC", "TRBD2", (0, 3), "AAT", "TRBJ2-3", 6),
    ("TRBV20", 2, "", "TRBD1", (3, 3), "CATT", "TRBJ1-3", 5),
    ("TRBV1", 0, "CC", "TRBD2", (5, 12), "", "TRBJ2-2", 0),
]


def assembled(germline: GermlineSet, recipe: tuple[object, ...]) -> Junction:
    v_name, v_lost, n1, d_name, (s, t), n2, j_name, j_lost = recipe
    v, d, j = (germline.resolve(str(n), x) for n, x in ((v_name, "V"), (d_name, "D"), (j_name, "J")))
    v_end, j_end = germline.v[v].cdr3_end, germline.j[j].cdr3_end
    made = v_end[: len(v_end) - v_lost] + n1 + germline.d[d].sequence[s:t] + n2 + j_end[j_lost:]
    return Junction(made, v, j)


@pytest.fixture(scope="module")
def germline() -> GermlineSet:
    return load_germline("mouse_trb")


@pytest.fixture(scope="module")
def assembled_junctions(germline: GermlineSet) -> tuple[Junction, ...]:
    plain = [assembled(germline, recipe) for recipe in RECIPES]
    # Codes in V, around D and in J that hold the nucleotide they replace.
    codes = str.maketrans("ACGT", "MYKW")
    coded = [
        replace(
            item,
            sequence="".join(s.translate(codes) if k % 8 == 3 else s for k, s in enumerate(item.sequence)),
        )
        for item in plain[:2]
    ]
    return (*plain, *coded)


def real_junctions(folder: Path, germline: GermlineSet, every: int) -> tuple[Junction, ...]:
    """Every so many rows of the shared repertoires, if their genes are in the set."""
    found = []
    with gzip.open(folder / "mouse_TRB_real_8mice_36samples.tsv.gz", "rt") as file:
        for number, row in enumerate(csv.DictReader(file, delimiter="\t")):
            if number % every == 0:
                v, j = germline.resolve(row["v_call"], "V"), germline.resolve(row["j_call"], "J")
                if v is not None and j is not None:
                    found.append(Junction(row["junction"], v, j))
            if len(found) == 40:
                break
    return tuple(found)


def assert_right(batch: Batch) -> None:
    found, wanted = run_chain(batch, CpuTarget(1), COUNT, host_lanes()), expected(batch)
    assert {name: found[name] for name in wanted} == wanted


MODELS = [
    PathModel(name="dp1"),
    PathModel(nu=10, pi=4),
    PathModel(nu=3, pi=4, strands=2, sweep_pi=(0, 2), sweep_nu=(0, 1, 2, 3)),
    PathModel(nu=6, pi=3, nu_vd=2),
]


@pytest.mark.slow
@pytest.mark.parametrize("model", often(1, MODELS), ids=lambda m: f"{m.name}-{m.strands}-{m.nu_vd}")
def test_assembled(
    model: PathModel,
    germline: GermlineSet,
    assembled_junctions: tuple[Junction, ...],
) -> None:
    batch = Batch(germline, model, assembled_junctions)
    assert_right(batch)
    counts = run_chain(batch, CpuTarget(1), COUNT, host_lanes())["full"]
    assert sum(any(any(row) for row in item) for item in counts) > len(counts) // 2


@pytest.mark.parametrize("model", MODELS[:3], ids=lambda m: f"{m.name}-{m.strands}")
def test_real(model: PathModel, germline: GermlineSet, shared_data: Path) -> None:
    junctions = real_junctions(shared_data, germline, 1500)
    assert len(junctions) == 40
    assert_right(Batch(germline, model, junctions[::4]))


@pytest.mark.slow
@pytest.mark.parametrize("empty_d", ["positions", "once", "none"])
def test_dp1_is_the_enumeration(
    empty_d: str,
    germline: GermlineSet,
    assembled_junctions: tuple[Junction, ...],
) -> None:
    dp1 = PathModel(name="dp1", max_n=3, empty_d=empty_d)
    batch = Batch(germline, dp1, assembled_junctions)
    counts = run_chain(batch, CpuTarget(1), COUNT, host_lanes())
    built = run_enumeration(replace(batch, model=replace(dp1, name="exhaustive")), CpuTarget(2))
    assert built == {name: counts[name] for name in ("full", "none")}
    assert any(row[0][-1] or row[1][-1] for row in counts["full"])
