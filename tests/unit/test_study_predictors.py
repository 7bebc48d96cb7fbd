"""What the regression sees of clonotypes: worked out again, one at a time."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.repertoires import simulated_repertoire

from plait.errors import InvalidInput
from plait.vdj import PathModel
from plait.vdj.convergence.regression import PredictorSet, choose_predictors, family_of, model_groups
from plait.vdj.convergence.settings import StudySettings
from plait.vdj.convergence.stages import clonotype_schema, pair_schema
from plait.vdj.counting import D_REGION_COLUMNS, PathCounter, ResultColumns, region_names
from plait.vdj.germline import load_germline

MODEL = PathModel(pi=2, nu=6, sweep_pi=(0, 2), sweep_nu=(0, 6))
SETTINGS = StudySettings(
    germline="mouse_trb", chain="vdj", model=MODEL, predictor_models=((2, 6), (0, 6), (2, 0))
)
V_GENES = {"TRBV1": 500, "TRBV12-1": 300, "TRBV12-2": 300, "TRBV2": 99, "TRBV3": 1, "TRBV13-2": 20}
J_GENES = {"TRBJ1-1": 700, "TRBJ2-7": 520}


@pytest.fixture(scope="module")
def clonotypes() -> pa.Table:
    """Counted rows in the place of clonotypes, some of them as if without a D nucleotide."""
    rows = simulated_repertoire(300, seed=2)
    columns = [rows[name].combine_chunks() for name in ("junction", "v_call", "j_call")]
    counter = PathCounter("mouse_trb", MODEL, device="cpu")
    result = ResultColumns(counter.germline, MODEL, "vdj", "null").batch(counter.count(*columns))
    sweep = np.asarray(result["path_count_sweep_by_d"].flatten().fill_null(0)).reshape(300, 2, 4).sum(axis=1)
    found = {name: result[name] for name in ("status", "path_count", *region_names(SETTINGS.chain))}
    # As it is where no nucleotide of any D gene occurs.
    with_d = pa.array([k % 9 > 0 for k in range(300)])
    for name in D_REGION_COLUMNS:
        found[name] = pc.if_else(with_d, found[name], pa.scalar(None, pa.int32()))
    found["path_count_sweep"] = pa.FixedSizeListArray.from_arrays(pa.array(sweep.ravel()), 4)
    found |= {"v_gene": pc.replace_substring_regex(columns[1], r"\*.*", ""), "junction": columns[0]}
    found |= {"j_gene": pc.replace_substring_regex(columns[2], r"\*.*", "")}
    found["junction_length"] = pc.utf8_length(columns[0])
    return pa.table(found)


def chosen() -> PredictorSet:
    return choose_predictors(SETTINGS, V_GENES, J_GENES)


def test_values(clonotypes: pa.Table) -> None:
    predictors = pickle.loads(pickle.dumps(chosen()))
    values = predictors.values(clonotypes)
    assert values.shape == (300, len(predictors.names)) and np.isfinite(values).all()
    zeros = 0
    for row, line in zip(clonotypes.to_pylist(), values.tolist(), strict=True):
        found = dict(zip(predictors.names, line, strict=True))
        # The sweep is pi outer, nu inner: (0, 0), (0, 6), (2, 0), (2, 6).
        for name, count in (
            ("pi2_nu6", row["path_count"]),
            ("pi0_nu6", row["path_count_sweep"][1]),
            ("pi2_nu0", row["path_count_sweep"][2]),
        ):
            assert found[f"log_path_count_{name}"] == pytest.approx(math.log10(count + 1), rel=1e-6)
        assert row["path_count"] == row["path_count_sweep"][3]
        zeros += row["n2_length"] is None
        for name in (
            "junction_length",
            "v_match_length",
            "d_match_length",
            "p5d_length",
            "n1_length",
            "n2_length",
        ):
            assert found[name] == (row[name] or 0)
        for span in ("n1", "n2", "ndn"):
            letters = [row[f"{span}_{base}"] or 0 for base in "acgt"]
            for base, n in zip("act", (letters[0], letters[1], letters[3]), strict=True):
                assert found[f"{span}_{base}_share"] == pytest.approx(n / max(sum(letters), 1), rel=1e-6)
        for family in ("TRBV1", "TRBV2", "TRBV13"):
            assert found[f"v_family_{family}"] == (family_of(row["v_gene"]) == family)
        assert found["j_family_TRBJ2"] == row["j_gene"].startswith("TRBJ2")
    assert zeros > 10, "no row without D"


def test_families_are_the_frequent_ones_but_one() -> None:
    predictors = chosen()
    # TRBV12 is the most frequent, TRBV3 has less than 1 % of the rows.
    assert predictors.families == {"v": ("TRBV1", "TRBV2", "TRBV13"), "j": ("TRBJ2",)}
    assert (
        "compared with TRBV12 and rare ones"
        in {p.name: p.meaning for p in predictors.predictors}["v_family_TRBV1"]
    )
    many = {f"TRBV{k}": 100 - k for k in range(30)}
    assert choose_predictors(SETTINGS, many, {}).families == {
        "v": tuple(f"TRBV{k}" for k in range(1, 9)),
        "j": (),
    }


def test_groups_of_the_models_that_are_compared() -> None:
    predictors = chosen()
    groups = model_groups(predictors)
    assert list(groups) == [
        "counts_only",
        "n2_only",
        "counts_and_n2",
        "all",
        "all_without_counts",
        "all_without_n2",
    ]
    assert groups["all"] == list(predictors.names)
    assert len(groups["counts_only"]) == 3 and all(
        name.startswith("log_path_count") for name in groups["counts_only"]
    )
    assert groups["n2_only"] == ["n2_length", "n2_a_share", "n2_c_share", "n2_t_share"]
    assert set(groups["all_without_n2"]) == set(groups["all"]) - set(groups["n2_only"])
    assert set(groups["counts_and_n2"]) == set(groups["counts_only"]) | set(groups["n2_only"])


def test_chains_without_d() -> None:
    settings = StudySettings(germline="mouse_tra", chain="vj", model=MODEL, predictor_models=((2, 6),))
    predictors = choose_predictors(settings, {}, {})
    assert not {p.group for p in predictors.predictors} & {"n2", "ndn"}
    assert "d_match_length" not in predictors.names and "n1_length" in predictors.names
    assert list(model_groups(predictors))[1] == "n1_only"
    columns = ResultColumns(load_germline("mouse_tra"), MODEL, "vj", "null").schema.names
    assert set(region_names("vj")) <= set(columns)


def test_schemas_say_what_the_columns_are() -> None:
    schema = clonotype_schema(SETTINGS, duplicate_count=False)
    assert "duplicate_count" not in schema.names and schema.field("path_count_sweep").type.list_size == 4
    floating = StudySettings(
        germline="mouse_trb", chain="vdj", model=MODEL, overflow="float", predictor_models=()
    )
    assert clonotype_schema(floating).field("path_count").type == pa.float64()
    names = pair_schema(SETTINGS).names
    assert names[:3] == ["subject", "rows", "duplicate_count"] and len(set(names)) == len(names)


@pytest.mark.parametrize(
    "wrong",
    [
        {"shared_by": 1},
        {"folds": 1},
        {"lambdas": True},
        {"seed": -1},
        {"overflow": "wide"},
        {"model": PathModel(name="dp1")},
        {"predictor_models": ((3, 6),)},
        {"predictor_models": ((2, 6), (2, 6))},
    ],
)
def test_settings_out_of_range(wrong: dict[str, object]) -> None:
    fixed: dict[str, object] = {
        "germline": "mouse_trb",
        "chain": "vdj",
        "model": MODEL,
        "predictor_models": (),
    }
    with pytest.raises(InvalidInput):
        StudySettings(**(fixed | wrong))  # type: ignore[arg-type]


def test_families() -> None:
    assert [family_of(gene) for gene in ("TRBV12-1", "TRBV1", "IGHV1-69D", "x")] == [
        "TRBV12",
        "TRBV1",
        "IGHV1",
        "x",
    ]
