"""Entropies of the choices of a model are those of all its scenarios, listed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.recombination import small_model, stationary

from plait.vdj.model import RecombinationModel
from plait.vdj.model.recombination_model import entropies


def bits(p: np.ndarray) -> float:
    used = p[p > 0]
    return float(-(used @ np.log2(used)))


def insertions(lengths: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Probabilities of all inserted texts."""
    found, texts = [lengths[0]], [((code,), p) for code, p in enumerate(stationary(steps))]
    for p_length in lengths[1:]:
        found += [p_length * p for _, p in texts]
        texts = [((*codes, b), p * steps[codes[-1], b]) for codes, p in texts for b in range(4)]
    return np.array(found)


def scenarios(model: RecombinationModel) -> np.ndarray:
    left = insertions(model.p_vd_length, model.vd_steps)
    right = insertions(model.p_dj_length, model.dj_steps)
    rows = []
    for a, p_v in enumerate(model.p_v):
        given = model.p_dj[a if len(model.p_dj) > 1 else 0]
        for (k, c), p_dj in np.ndenumerate(given):
            cuts = np.multiply.outer(model.p_v_deletions[a], model.p_j_deletions[c]).ravel()
            of_d = model.p_d_deletions[k].ravel() if model.d else np.ones(1)
            cuts = p_v * p_dj * np.multiply.outer(cuts, of_d).ravel()
            rows.append(np.multiply.outer(np.multiply.outer(cuts, left).ravel(), right).ravel())
    return np.concatenate(rows)


@pytest.mark.parametrize("d", [True, False], ids=["vdj", "vj"])
def test_the_total_is_the_entropy_of_scenarios(d: bool) -> None:
    model = small_model(51, d=d, most=2 if d else 4, palindrome=0)
    found = entropies(model)
    listed = scenarios(model)
    assert listed.sum() == pytest.approx(1)
    assert found["total"] == pytest.approx(bits(listed), rel=1e-9)
    assert found["total"] == pytest.approx(sum(value for name, value in found.items() if name != "total"))
    assert found["V"] == pytest.approx(bits(model.p_v))
    whole = model.p_v[:, None, None] * model.p_dj if len(model.p_dj) > 1 else model.p_dj
    own = bits(whole.ravel()) - (found["V"] if len(model.p_dj) > 1 else 0.0)
    assert found["J"] + found.get("D given J", 0.0) == pytest.approx(own)
    names = ["V", "J", "deletions V", "deletions J", "insertions VJ", "nucleotides VJ", "total"]
    with_d = ["D given J", "deletions D", "insertions DJ", "nucleotides DJ"]
    assert set(found) == ({name.replace("VJ", "VD") for name in names} | set(with_d) if d else set(names))


def test_what_is_certain_has_no_entropy() -> None:
    model = small_model(52, d=False, genes=1, most=0)
    cuts = np.eye(model.p_v_deletions.shape[1])[:1]
    found = entropies(replace(model, p_v_deletions=cuts, p_j_deletions=cuts, p_dj=np.ones((1, 1, 1))))
    assert set(found.values()) == {0.0}
