"""Answers of a study: what is said for intervals on both sides of zero, around it, and missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plait.vdj.convergence.answers import answers, chosen_answer, driver_answer

STUDY = {"subjects": 8, "shared_by": 2, "clonotypes": 590_774, "shared_clonotypes": 36_555}
ABOVE, BELOW, AROUND, MISSING = (0.2, 0.3), (-0.3, -0.2), (-0.1, 0.1), (None, None)
SIDES = [ABOVE, BELOW, AROUND, MISSING]
NAMED = [
    pytest.param(ends, id=name)
    for ends, name in zip(SIDES, ("above", "below", "around", "missing"), strict=True)
]


def row(
    x: str = "path_count",
    y: str = "subjects",
    ends: tuple[float | None, float | None] = ABOVE,
    *,
    kind: str = "all",
    method: str = "spearman",
    n: int | None = 1000,
) -> dict[str, Any]:
    low, high = ends
    middle = None if low is None or high is None else (low + high) / 2
    found = {"stratum_kind": kind, "stratum": "", "x": x, "y": y, "method": method}
    return found | {"estimate": middle, "low": low, "high": high, "n": n}


def model(name: str, ends: tuple[float | None, float | None], auc: float | None = 0.7) -> dict[str, Any]:
    low, high = ends
    middle = None if low is None or high is None else (low + high) / 2
    found = {"model": name, "cv_deviance": 2.0, "auc": auc, "n": 5000}
    found |= {"auc_low": None if auc is None else auc - 0.01, "auc_high": None if auc is None else auc + 0.01}
    return found | {"delta_vs_all": middle, "delta_low": low, "delta_high": high}


def groups(
    counts: Any, n2: Any, alone: tuple[Any, Any] = (ABOVE, ABOVE), group: str = "n2"
) -> list[dict[str, Any]]:
    return [
        model("all", (0.0, 0.0)),
        model("all_without_counts", counts),
        model(f"all_without_{group}", n2),
        model("counts_only", alone[0]),
        model(f"{group}_only", alone[1]),
    ]


# Drivers


@pytest.mark.parametrize("n2", NAMED)
@pytest.mark.parametrize("counts", NAMED)
def test_what_adds_is_said_only_if_the_loss_is_above_zero(counts: Any, n2: Any) -> None:
    found = driver_answer(groups(counts, n2), STUDY)
    headline = found["headline"].lower()
    both = "path counts and the n2 region each add to what" in headline
    assert both == (counts is n2 is ABOVE)
    clauses = headline.split(";")
    for name, verb, ends in (("path counts", "add", counts), ("the n2 region", "adds", n2)):
        claims = both or any(clause.strip().startswith(f"{name} {verb} to") for clause in clauses)
        assert claims == (ends is ABOVE)
        open_one = any("whether" in c and name in c and "cannot be told" in c for c in clauses)
        assert open_one == (ends is AROUND)
        unshown = any(c.strip().startswith("that") and name in c and "is not shown" in c for c in clauses)
        assert unshown == (ends is BELOW)
        assert any("would add" in c and name in c for c in clauses) == (ends is MISSING)
        losses = [s for s in found["text"].split(". ") if s.lower().startswith(f"without {name}")]
        assert bool(losses) == (ends is not MISSING)
        assert all(("no certain sign" in s) == (ends is AROUND) for s in losses)
        assert all(("rises" in s, "falls" in s) == (ends is ABOVE, ends is BELOW) for s in losses)
    assert headline.count("what the other predictors tell of sharing") == 1
    assert ("does not follow" in found["text"]) == (BELOW in (counts, n2))


def test_no_use_is_never_claimed() -> None:
    """Predictors of no use often make predictions worse, and with few events useful ones do."""
    found = driver_answer(groups(BELOW, ABOVE), STUDY)
    first, second, _ = found["headline"].split("; ")
    assert first == "The N2 region adds to what the other predictors tell of sharing"
    assert second == "that path counts add to it is not shown"
    for claim in ("predicted better", "path counts do not", "no use of"):
        assert claim not in found["headline"] + found["text"]


@pytest.mark.parametrize(
    ("counts", "n2", "expected"),
    [
        (ABOVE, ABOVE, "the N2 region adds, but so do path counts"),
        (ABOVE, AROUND, "Here path counts do add"),
        (ABOVE, MISSING, "Here path counts do add"),
        (AROUND, ABOVE, "not excluded, but not shown"),
        (BELOW, ABOVE, "not excluded, but not shown"),
        (AROUND, AROUND, "do not decide"),
        (MISSING, ABOVE, "do not decide"),
        (BELOW, BELOW, "do not decide"),
    ],
)
def test_the_published_drivers_stand_beside(counts: Any, n2: Any, expected: str) -> None:
    text = driver_answer(groups(counts, n2), STUDY)["text"]
    assert "Published: an adaptive LASSO" in text
    assert expected in text


@pytest.mark.parametrize(
    ("alone", "expected"),
    [
        (((0.5, 0.6), (0.2, 0.3)), "alone, the N2 region predicts sharing better than path counts"),
        (((0.2, 0.3), (0.5, 0.6)), "alone, path counts predict sharing better than the N2 region"),
        (((0.25, 0.35), (0.2, 0.3)), "which of the two predicts sharing better alone cannot be told"),
        ((MISSING, (0.2, 0.3)), "which of the two predicts sharing better alone is not known"),
    ],
    ids=["n2", "counts", "overlap", "missing"],
)
def test_which_is_better_alone(alone: Any, expected: str) -> None:
    assert driver_answer(groups(ABOVE, ABOVE, alone), STUDY)["headline"].endswith(expected)


def test_losses_are_told_in_per_cent_of_the_deviance() -> None:
    text = driver_answer(groups((0.01, 0.03), (-0.03, -0.01)), STUDY)["text"]
    assert (
        "Without path counts, all other predictors kept, held-out deviance rises by 1 % (0.5 % to 1.5 %)."
        in text
    )
    assert (
        "Without the N2 region, all other predictors kept, held-out deviance falls by 1 % (0.5 % to 1.5 %):"
        in text
    )
    rows = [entry | {"cv_deviance": None} for entry in groups((0.01, 0.03), AROUND)]
    assert "rises by 0.020 (0.010 to 0.030)" in driver_answer(rows, STUDY)["text"]


@pytest.mark.parametrize(
    ("counts", "n2", "expected"),
    [
        ((0.1, 0.2), (0.5, 0.6), "Leaving out the N2 region costs more"),
        ((0.5, 0.6), (0.1, 0.2), "Leaving out path counts costs more"),
        ((0.1, 0.3), (0.2, 0.4), "Which of the two costs more when left out cannot be told"),
        (MISSING, (0.2, 0.4), None),
    ],
    ids=["n2", "counts", "overlap", "missing"],
)
def test_which_is_missed_more(counts: Any, n2: Any, expected: str | None) -> None:
    text = driver_answer(groups(counts, n2), STUDY)["text"]
    assert ("costs more" in text) == (expected is not None)
    assert expected is None or expected in text


def test_a_small_gain_is_called_little() -> None:
    """One per cent of the deviance of 2.0 is 0.02: a gain that is surely below it is little."""
    small, large = (0.001, 0.019), (0.001, 0.021)
    headlines = [driver_answer(groups(*ends), STUDY)["headline"] for ends in ((small, small), (small, large))]
    assert "each add a little to" in headlines[0]
    assert "little" not in headlines[1]
    one = driver_answer(groups(AROUND, small), STUDY)["headline"]
    assert one.startswith("The N2 region adds a little to what the other predictors tell of sharing; whether")
    rows = [entry | {"cv_deviance": None} for entry in groups(small, small)]
    assert "little" not in driver_answer(rows, STUDY)["headline"]


@pytest.mark.parametrize(
    "rows", [[], [model("all", (0.0, 0.0))], groups(MISSING, MISSING, (MISSING, MISSING))]
)
def test_no_comparison_no_claim(rows: Any) -> None:
    found = driver_answer(rows, STUDY)
    assert found["headline"] == "Path counts and N2 were not compared as predictors of sharing"
    assert found["figures"] == {}
    assert "Published" in found["text"]


def test_a_chain_without_d() -> None:
    found = driver_answer(groups(ABOVE, ABOVE, ((0.5, 0.6), (0.2, 0.3)), "n1"), STUDY)
    assert "the inserted nucleotides each add" in found["headline"]
    assert "alone, the inserted nucleotides predict sharing better" in found["headline"]
    assert "N2 region" not in found["headline"]
    assert "this one has none" in found["text"]
    one = driver_answer(groups(AROUND, ABOVE, group="n1"), STUDY)["headline"]
    assert one.startswith("The inserted nucleotides add to what the other predictors tell")


@pytest.mark.parametrize(
    ("shared", "clonotypes", "expected"),
    [
        (12, 1000, "Only 12 clonotypes are shared"),
        (1, 1000, "Only 1 clonotype is shared"),
        (990, 1000, "Only 10 clonotypes are not shared"),
        (100, 1000, ""),
        (None, 1000, ""),
    ],
)
def test_few_events_are_told(shared: int | None, clonotypes: int, expected: str) -> None:
    study = {"shared_clonotypes": shared, "clonotypes": clonotypes}
    found = driver_answer(groups(ABOVE, ABOVE), study)
    assert expected in found["text"]
    assert ("too few" in found["text"]) == bool(expected)
    assert found["headline"].endswith(f" ({expected.lower()})") == bool(expected)


# What was chosen


def coefficient(
    name: str, value: float | None, stability: float | None = 1.0, group: str | None = None
) -> Any:
    found = {"predictor": name, "cv_1se": value, "stability": stability}
    return found if group is None else found | {"group": group}


@pytest.mark.parametrize(
    ("count", "n2", "expected"),
    [
        (0.1, -0.5, "keeps both path counts and N2 predictors"),
        (0.0, -0.5, "keeps N2 predictors and no path count"),
        (0.1, 0.0, "keeps path counts and no N2 predictor"),
        (0.0, 0.0, "keeps neither path counts nor N2 predictors"),
    ],
)
def test_what_was_chosen(count: float, n2: float, expected: str) -> None:
    rows = [
        coefficient("log_path_count_pi4_nu10", count),
        coefficient("n2_length", n2),
        coefficient("v", 0.01),
    ]
    found = chosen_answer(rows)
    assert found is not None
    assert expected in found["headline"]
    assert found["figures"]["path_counts_kept"] == int(count != 0)
    assert found["figures"]["n2_kept"] == int(n2 != 0)
    assert "not shown to have no effect" in found["text"] and "Published" in found["text"]


def test_what_was_chosen_without_d() -> None:
    """N1 stands in the place of N2."""
    rows = [coefficient("log_path_count_pi4_nu10", 0.1), coefficient("n1_length", 0.0)]
    found = chosen_answer(rows)
    assert found is not None
    assert found["headline"] == "The adaptive LASSO keeps path counts and no N1 predictor"
    assert "N1: 0 of 1 kept." in found["text"] and "N2:" not in found["text"]
    assert found["figures"]["n1_kept"] == 0


def test_nothing_chosen_and_no_model() -> None:
    found = chosen_answer([coefficient("n2_length", 0.0)])
    assert found is not None and "keeps no predictor" in found["headline"]
    assert chosen_answer([]) is None
    assert chosen_answer([coefficient("n2_length", None)]) is None


def test_an_unstable_choice_is_marked() -> None:
    rows = [
        coefficient("n2_length", "-0.5", "0.42"),
        coefficient("n2_a_share", 0.25, 0.98),
        coefficient("x", 1, None),
    ]
    found = chosen_answer(rows)
    assert found is not None
    assert "n2_length -0.5 (in only 42 % of random halves)" in found["text"]
    assert "n2_a_share +0.25," not in found["text"].replace("n2_a_share +0.25.", "")
    assert found["text"].index("x +1") < found["text"].index("n2_length")


def test_groups_are_named_or_told_by_the_name() -> None:
    rows = [coefficient("a", 0.1, group="path_count"), coefficient("b", 0.1, group="path_count")]
    found = chosen_answer(rows)
    assert found is not None
    assert found["headline"] == "The adaptive LASSO keeps path counts"
    assert "sign of a single one means little" in found["text"]


# All of it


def test_all_answers_in_order() -> None:
    rows = [row(x, y) for x in ("path_count", "n2_length", "n2_at") for y in ("subjects", "duplicate_count")]
    found = answers(STUDY, rows, groups=groups(ABOVE, ABOVE), coefficients=[coefficient("n2_length", 1.0)])
    assert [answer["id"] for answer in found] == [
        "drivers",
        "path_count_and_sharing",
        "path_count_and_frequency",
        "n2_length_and_sharing",
        "n2_at_and_sharing",
        "chosen_predictors",
        "limits",
    ]
    for answer in found:
        assert set(answer) == {"id", "headline", "text", "figures"}
        assert answer["headline"] and answer["text"].endswith(".")
        assert "None" not in answer["text"] and "nan" not in answer["text"]
        assert all(value is None or isinstance(value, int | float) for value in answer["figures"].values())
        assert answer["headline"][0].isupper()


def test_rows_may_be_texts() -> None:
    rows = [{name: "" if value is None else str(value) for name, value in row().items()}]
    texts = [
        {name: "" if value is None else str(value) for name, value in one.items()}
        for one in groups(ABOVE, AROUND)
    ]
    assert answers(STUDY, rows, groups=texts) == answers(STUDY, [row()], groups=groups(ABOVE, AROUND))


@pytest.mark.parametrize(
    ("study", "expected"),
    [
        ({"subjects": 1}, "With one subject nothing can be shared"),
        ({"subjects": 3}, "With only 3 subjects"),
        ({"subjects": 3, "shared_by": 3}, "With only 3 subjects"),
        ({"subjects": 3, "shared_by": 4}, "With 3 subjects nothing can be shared by 4"),
        (STUDY, "found in 2 subjects or more"),
        ({}, "drawn independently"),
    ],
)
def test_limits(study: dict[str, Any], expected: str) -> None:
    last = answers(study, [])[-1]
    assert last["id"] == "limits"
    assert expected in last["text"]
    assert np.all([value is None or isinstance(value, int) for value in last["figures"].values()])
