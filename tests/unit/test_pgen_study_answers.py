"""Path counts and Pgen compared: tables against plain counting, and words that the intervals allow."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from plait.stats.rank_correlation import paired_differences, triples_of
from plait.vdj.convergence.answers import pgen_answer
from plait.vdj.convergence.pgen_tables import PGEN_COLUMNS, CorrelationTables, FigureSettings, PgenTables

SUBJECTS = [f"s{k}" for k in range(6)]
MODELS = {"pi": (0, 4), "nu": (2, 10)}


def drawn(n: int, *, by_count: float = 0.0, by_pgen: float = 0.0, seed: int = 0) -> tuple[pa.Table, pa.Table]:
    """Clonotypes and pairs; how often subjects have them follows path count, Pgen or neither."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal(n)
    x, z = (0.5 * common + 0.8 * rng.standard_normal(n) for _ in range(2))
    has = rng.random((n, 6)) < 0.12 * np.exp(np.clip(by_count * x + by_pgen * z, -3, 2))[:, None]
    has[np.flatnonzero(~has.any(axis=1)), 0] = True
    counts = np.round(10 ** (6 + 0.5 * x)).astype(np.int64)
    counts[rng.random(n) < 0.02] = 0
    pgen = 10 ** (-10 + 2 * z)
    pgen[rng.random(n) < 0.02] = 0.0
    unknown = rng.random(n) < 0.02
    status = np.where(unknown, "unknown_v_call", np.where(pgen == 0, "v_not_matching", "ok"))
    sweep = np.stack([counts // 7, counts, counts // 2, counts], axis=1)
    table = pa.table(
        {
            "v_gene": pa.array(np.where(rng.random(n) < 0.5, "V1", "V2")),
            "j_gene": pa.array(np.where(rng.random(n) < 0.5, "J1", "")),
            "subjects": pa.array(has.sum(axis=1), pa.int32()),
            "rows": pa.array(has.sum(axis=1)),
            "path_count": pa.array(counts, mask=rng.random(n) < 0.02),
            "path_count_sweep": pa.FixedSizeListArray.from_arrays(pa.array(sweep.ravel()), 4),
            "pgen_nt": pa.array(pgen, mask=unknown),
            "pgen_status": pa.array(status),
        }
    )
    row, subject = np.nonzero(has)
    pairs = table.select(["v_gene", "j_gene", "subjects", "path_count", "pgen_nt"]).take(pa.array(row))
    pairs = pairs.append_column("subject", pa.array([SUBJECTS[k] for k in subject]))
    return table, pairs.append_column("rows", pa.array(1 + rng.poisson(2.0, len(row))))


def filled(
    tables: tuple[pa.Table, pa.Table], settings: FigureSettings | None = None, pieces: int = 1
) -> PgenTables:
    chosen = settings or FigureSettings(pgen=True, **MODELS)
    found = PgenTables(chosen)
    clonotypes, pairs = tables
    for k in reversed(range(pieces)):
        part = PgenTables(chosen)
        part.add_clonotypes(clonotypes.take(np.arange(k, clonotypes.num_rows, pieces)))
        part.add_pairs(pairs.take(np.arange(k, pairs.num_rows, pieces)))
        found.merge(pickle.loads(pickle.dumps(part)))
    return found


def answered(n: int, **options: Any) -> dict[str, Any]:
    tables = drawn(n, **options)
    settings = FigureSettings(pgen=True, **MODELS)
    correlations = CorrelationTables(settings)
    correlations.add_clonotypes(tables[0])
    correlations.add_pairs(tables[1])
    study = {"clonotypes": n, "shared_clonotypes": n // 4, "parameters": {"recombination_model": "m"}}
    found = pgen_answer(study, list(filled(tables, settings).rows()), list(correlations.rows()))
    assert found is not None
    return found


def test_rows_are_those_of_plain_counting() -> None:
    tables = drawn(900, by_pgen=0.8)
    rows = list(filled(tables).rows())
    assert all(tuple(row) == PGEN_COLUMNS for row in rows)
    key = ("stratum_kind", "stratum", "y", "scope", "measure", "pi", "nu")
    assert len({tuple(row[name] for name in key) for row in rows}) == len(rows)
    data = tables[0].to_pydict()
    known = [
        (x, z, y, v)
        for x, z, y, v in zip(
            data["path_count"], data["pgen_nt"], data["subjects"], data["v_gene"], strict=True
        )
        if x is not None and z is not None
    ]
    for kind, stratum, scope, chosen in (
        ("all", "", "all", known),
        ("all", "", "above_zero", [row for row in known if row[0] and row[1]]),
        ("v_gene", "V2", "all", [row for row in known if row[3] == "V2"]),
    ):
        x, z, y, _ = (np.array(column) for column in zip(*chosen, strict=True))
        for wanted in paired_differences(
            ["spearman", "auc"], triples_of(x, z, y, np.ones(len(x), np.int64)), threshold=2
        ):
            (row,) = [
                row
                for row in rows
                if (row["stratum_kind"], row["stratum"], row["y"], row["scope"], row["measure"])
                == (kind, stratum, "subjects", scope, wanted.measure)
            ]
            assert row["n"] == len(x)
            for name, value in (("path_count", wanted.x), ("pgen", wanted.z), ("low", wanted.low)):
                assert math.isclose(row[name], value, rel_tol=1e-12)
    # A J gene that is not known is no stratum; frequency has no ROC curve.
    assert {row["stratum"] for row in rows if row["stratum_kind"] == "j_gene"} == {"J1"}
    assert {row["measure"] for row in rows if row["y"] == "rows"} == {"spearman", "kendall"}
    assert {row["stratum"] for row in rows if row["stratum_kind"] == "subject"} == set(SUBJECTS)


def test_models_of_the_sweep_are_in_bins() -> None:
    rows = list(filled(drawn(3000, by_count=0.8)).rows())
    chosen = ("all", "all", "subjects")
    whole = {r["measure"]: r for r in rows if (r["stratum_kind"], r["scope"], r["y"]) == chosen}
    of_sweep = [row for row in rows if row["scope"] == "sweep"]
    assert [(row["pi"], row["nu"]) for row in of_sweep[::2]] == [(0, 2), (0, 10), (4, 2), (4, 10)]
    for row in of_sweep:
        if row["nu"] == 10:
            one = whole[row["measure"]]
            assert abs(row["difference"] - one["difference"]) < 0.1 * (one["high"] - one["low"])


@pytest.mark.slow
def test_parts_do_not_matter_and_tables_are_bounded() -> None:
    tables = drawn(2000, by_pgen=0.5, seed=3)
    one = list(filled(tables).rows())
    assert one == list(filled(tables, pieces=3).rows())
    small = FigureSettings(pgen=True, exact_pairs=300, rounded_pairs=200, **MODELS)
    bounded = filled(tables, small)
    rounded = list(bounded.rows())
    assert rounded == list(filled(tables, small, pieces=4).rows())
    assert "binary digits kept: subjects by all" in bounded.notes()[0] and filled(tables).notes() == []
    wide = {k: row for k, row in enumerate(one) if row["stratum_kind"] == "all" and row["low"] is not None}
    for k, row in wide.items():
        assert abs(rounded[k]["difference"] - row["difference"]) < 0.5 * (row["high"] - row["low"])


def test_statuses() -> None:
    table, _ = tables = drawn(500)
    rows = list(filled(tables).status_rows())
    assert rows[0]["status"] == "ok" and sum(row["clonotypes"] for row in rows) == 500
    zeros = next(row for row in rows if row["status"] == "v_not_matching")
    assert zeros["clonotypes"] == table["pgen_status"].to_pylist().count("v_not_matching")
    assert zeros["meaning"].startswith("zero: ")


@pytest.mark.slow
def test_what_makes_sharing_wins() -> None:
    pgen = answered(3000, by_pgen=1.0)
    assert pgen["headline"].startswith("Generation probability predicts sharing better than path counts")
    assert pgen["figures"]["spearman_difference_low"] > 0 < pgen["figures"]["auc_difference_low"]
    assert pgen["figures"]["spearman_difference_over_subjects_low"] > 0
    counts = answered(3000, by_count=1.0)
    assert counts["headline"] == "Path counts predict sharing better than generation probability"
    assert "If the model was inferred from these repertoires" in counts["text"]


@pytest.mark.slow
@pytest.mark.parametrize("both", [0.0, 0.7])
def test_there_is_no_winner_where_there_is_none(both: float) -> None:
    told = [answered(700, by_count=both, by_pgen=both, seed=seed)["headline"] for seed in range(12)]
    cannot = "Whether generation probability or path counts predict sharing better cannot be told by ranks"
    assert sum(headline == cannot for headline in told) >= 11


def row(measure: str, difference: float, *, scope: str = "all", **others: Any) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(PGEN_COLUMNS)
    found |= {"stratum_kind": "all", "y": "subjects", "scope": scope, "measure": measure, "n": 500}
    found |= {"path_count": 0.2, "pgen": 0.2 + difference, "difference": difference}
    return found | {"low": difference - 0.05, "high": difference + 0.05} | others


def rising(x: str, estimate: float = 0.3) -> dict[str, Any]:
    found = {"stratum_kind": "all", "stratum": "", "x": x, "y": "subjects", "method": "spearman"}
    return found | {"estimate": estimate, "low": estimate - 0.02, "high": estimate + 0.02, "n": 500}


RISING = [rising("pgen_nt"), rising("path_count")]
BOTH = [row("spearman", 0.1, scope=scope) for scope in ("all", "above_zero")] + [row("auc", 0.1)]
BETTER = "Generation probability predicts sharing better than path counts"
CANNOT = "Whether generation probability or path counts predict sharing better cannot be told by ranks"


@pytest.mark.parametrize(
    ("rows", "correlations", "headline"),
    [
        (BOTH, RISING, BETTER),
        (
            [row("spearman", 0.1), *BOTH[1:2], row("auc", 0.01)],
            RISING,
            f"{BETTER}, by rank correlation alone",
        ),
        (
            [row("spearman", 0.01), *BOTH[1:]],
            RISING,
            f"{BETTER}, by area under the ROC curve alone",
        ),
        (
            [row("spearman", 0.1, subjects_low=-0.1, subjects_high=0.3), row("auc", 0.01)],
            RISING,
            CANNOT,
        ),
        (
            [row("spearman", 0.1), row("spearman", 0.0, scope="above_zero"), row("auc", 0.1)],
            RISING,
            f"{BETTER}, but not surely among clonotypes that both can make",
        ),
        (
            [row("spearman", 0.1), row("auc", -0.1)],
            RISING,
            "Which predicts sharing better, generation probability or path counts, depends on the measure",
        ),
        # Less against sharing is not with it.
        (BOTH, [rising("pgen_nt", -0.1), rising("path_count", -0.3)], CANNOT),
        (
            [*BOTH, row("auc", 0.01, scope="sweep", pi=4, nu=2), row("auc", 0.2, scope="sweep", pi=0, nu=0)],
            RISING,
            f"{BETTER}, but not surely better than those with at most 4 P and 2 N nucleotides",
        ),
        (
            [row("spearman", 0.1, low=None, high=None), row("auc", 0.1, low=None, high=None)],
            RISING,
            "Path counts and generation probability were not compared as predictors of sharing",
        ),
    ],
)
def test_headlines(rows: list[dict[str, Any]], correlations: list[dict[str, Any]], headline: str) -> None:
    found = pgen_answer({}, rows, correlations)
    assert found is not None and found["headline"] == headline


def test_headlines_tell_of_what_they_hold() -> None:
    def headline(study: dict[str, Any], rows: list[dict[str, Any]] = BOTH) -> str:
        found = pgen_answer(study, rows, RISING)
        assert found is not None
        return str(found["headline"])

    # From four subjects on there is no winner without an interval over them, whyever it is missing.
    assert headline({"subjects": 3}) == BETTER
    assert headline({"subjects": 4}) == CANNOT
    over = {"subjects_low": 0.01, "subjects_high": 0.2}
    sure = [row("spearman", 0.1, **over), BOTH[1], row("auc", 0.1, **over)]
    assert headline({"subjects": 4}, sure) == BETTER
    # What has no Pgen is not compared.
    study: dict[str, Any] = {"clonotypes": 5000, "shared_clonotypes": 300}
    study["pgen"] = {"above_zero": 900, "zero": 100, "without": 4000, "shared": 41}
    few = "only 41 clonotypes with Pgen are shared"
    assert headline(study) == f"{BETTER}; 80 % of the clonotypes have no Pgen ({few})"
    study["pgen"] |= {"without": 40, "shared": 290}
    assert headline(study) == BETTER
    # Which path counts they are, where others are not beaten.
    rows = [*BOTH, row("auc", 0.01, scope="sweep", pi=3, nu=2)]
    assert headline({"parameters": {"pi": 4, "nu": 10}}, rows) == (
        f"{BETTER} with at most 4 P and 10 N nucleotides, but not surely better than those with at most 3 P "
        "and 2 N nucleotides"
    )


def test_held_out_models_are_told() -> None:
    def group(model: str, other: str, less: float) -> dict[str, Any]:
        ends = {"deviance_low": less - 0.01, "deviance_high": less + 0.01}
        return {"model": model, "other": other, "deviance_less": less, **ends} | {
            "auc_more": -less, "auc_low": -less - 0.01, "auc_high": -less + 0.01, "n": 500,
        }  # fmt: skip

    groups = [
        group("pgen_only", "counts_only", -0.1),
        group("counts_and_pgen", "counts_only", -0.2),
        group("counts_and_pgen", "pgen_only", 0.001),
    ]
    study = {"clonotypes": 900, "shared_clonotypes": 40, "pgen": {"zero": 9, "without": 0}}
    study["parameters"] = {"recombination_model": "mine", "model_note": "Made of other mice."}
    found = pgen_answer(study, [row("spearman", 0.0), row("auc", 0.0)], RISING, groups)
    assert found is not None
    assert found["headline"] == (
        f"{CANNOT}; held out, a regression on generation probability alone predicts better (only 40 "
        "clonotypes are shared)"
    )
    for text in (
        "Pgen alone predicts better than path counts alone: deviance of Pgen less that of path counts -0.100",
        "Adding path counts to Pgen changes the deviance by 0.001 (-0.009 to 0.011), a change of no certain",
        "Adding Pgen to path counts surely lowers the deviance, by 0.200 (0.190 to 0.210).",
        "under the model mine; it is 0 for 9 clonotypes (1 %)",
        "Made of other mice.",
        "Only 40 clonotypes are shared, too few",
    ):
        assert text in found["text"], text
    assert found["figures"]["deviance_pgen_only_less_counts_only"] == -0.1
    assert pgen_answer(study, [], RISING) is None


def test_deviance_and_area_may_differ() -> None:
    group = {"model": "pgen_only", "other": "counts_only", "n": 500}
    group |= {"deviance_less": 0.03, "deviance_low": 0.02, "deviance_high": 0.04}
    agreeing = group | {"auc_more": -0.03, "auc_low": -0.04, "auc_high": -0.02}
    found = pgen_answer({}, BOTH, RISING, [agreeing])
    assert found is not None and "path counts alone predict better than Pgen alone" in found["text"]
    assert found["headline"] == f"{BETTER}; held out, a regression on path counts alone predicts better"
    differing = group | {"auc_more": 0.03, "auc_low": 0.02, "auc_high": 0.04}
    found = pgen_answer({}, BOTH, RISING, [differing])
    assert found is not None and found["headline"] == BETTER
    assert "which predicts better alone cannot be told" in found["text"]
    assert "The two do not agree" in found["text"]
