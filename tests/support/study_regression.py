"""The regression of a made-up study: tables with the shape of real ones, from drawn coefficients."""

from __future__ import annotations

import numpy as np

__all__ = ["regression_summary", "regression_tables"]

_PREDICTORS = {
    "log_path_count_pi4_nu10": ("path_count", 0.16),
    "log_path_count_pi0_nu10": ("path_count", 0.02),
    "n2_length": ("n2", -0.61),
    "n2_at_share": ("n2", 0.21),
    "n2_a": ("n2", 0.03),
    "n2_g": ("n2", -0.02),
    "n1_length": ("n1", -0.33),
    "n1_at_share": ("n1", 0.08),
    "n1_g": ("n1", 0.01),
    "ndn_at_share": ("ndn", 0.05),
    "ndn_c": ("ndn", -0.04),
    "v_match_length": ("region", 0.12),
    "d_match_length": ("region", -0.05),
    "j_match_length": ("region", 0.19),
    "junction_length": ("region", -0.27),
    "vj_gap": ("region", 0.0),
    "v_family_TRBV13": ("v_family", 0.07),
    "v_family_TRBV12": ("v_family", -0.03),
    "v_family_TRBV5": ("v_family", 0.0),
    "j_family_TRBJ1": ("j_family", -0.06),
    "j_family_TRBJ2": ("j_family", 0.06),
}
_LAMBDAS, _CV_MIN, _CV_1SE, _BIC = 60, 41, 27, 32
_MODELS = {
    "counts_only": (2, 0.472, 0.634, 0.031),
    "n2_only": (4, 0.441, 0.702, 0.012),
    "counts_and_n2": (6, 0.436, 0.711, 0.007),
    "all": (21, 0.428, 0.724, 0.0),
    "all_without_counts": (19, 0.4291, 0.722, 0.0011),
    "all_without_n2": (17, 0.449, 0.690, 0.021),
}
_COMPARED = (
    "model",
    "predictors",
    "cv_deviance",
    "auc",
    "auc_low",
    "auc_high",
    "delta_vs_all",
    "delta_low",
    "delta_high",
    "n",
)
_CURVE_POINTS = 60
_Tables = dict[str, tuple[list[str], list[list[object]]]]


def regression_summary(rows: int, events: int) -> dict[str, object]:
    """What ``study.json`` says about the regression.

    Parameters
    ----------
    rows
        Clonotypes.
    events
        Shared ones.
    """
    lambdas = _lambdas()
    return {
        "n": rows,
        "events": events,
        "auc": 0.724,
        "chosen": {
            name: {"index": at, "lambda": lambdas[at]}
            for name, at in (("cv_min", _CV_MIN), ("cv_1se", _CV_1SE), ("bic", _BIC))
        },
        "warnings": ["n2_length and vj_gap carry nearly the same information (VIF 14.2)"],
    }


def regression_tables(rng: np.random.Generator, path_counts: bool) -> _Tables:
    """Tables by name: columns and rows.

    Parameters
    ----------
    rng
        What to draw from.
    path_counts
        Whether some of the predictors are path counts.
    """
    kept = {k: v for k, v in _PREDICTORS.items() if path_counts or v[0] != "path_count"}
    return {
        "predictors": (
            ["predictor", "group", "meaning", "mean", "sd", "vif", "note"],
            [
                [name, group, name.replace("_", " "), 1.5, 0.5, round(1 + 5 * abs(beta), 2), ""]
                for name, (group, beta) in kept.items()
            ],
        ),
        "lambda_path": _lambda_path(kept),
        "coefficients": _coefficients(kept),
        "calibration": _calibration(rng),
        "roc": _roc(),
        "group_comparison": (
            list(_COMPARED),
            [
                [name, n, deviance, auc, *_around(auc, 0.01), delta, *_around(delta, 0.002), 4000]
                for name, (n, deviance, auc, delta) in _MODELS.items()
                if path_counts or "count" not in name
            ],
        ),
    }


def _around(value: float, half: float) -> tuple[float, float]:
    return round(value - half, 5), round(value + half, 5)


def _lambdas() -> list[float]:
    return [float(f"{x:.6g}") for x in np.geomspace(0.2, 0.0002, _LAMBDAS)]


def _shrunk(beta: float, strength: float) -> float:
    # Adaptive weights: large coefficients are hardly shrunk.
    return float(np.sign(beta) * max(abs(beta) - strength * 0.3 / max(abs(beta), 0.02), 0.0))


def _lambda_path(kept: dict[str, tuple[str, float]]) -> tuple[list[str], list[list[object]]]:
    rows: list[list[object]] = []
    for k, strength in enumerate(_lambdas()):
        betas = [round(_shrunk(beta, strength), 5) for _, beta in kept.values()]
        nonzero = sum(beta != 0 for beta in betas)
        explained = round(0.14 * (1 - strength / 0.2), 5)
        # The held-out error falls, and rises a little where nearly all predictors are in.
        deviance = 0.5 - 0.5 * explained + 3e-5 * (max(0, k - _CV_MIN)) ** 2 / 4
        names = [name for name, at in (("cv_min", _CV_MIN), ("cv_1se", _CV_1SE), ("bic", _BIC)) if at == k]
        row: list[object] = [k, strength, nonzero, explained, round(4000 * deviance + 8 * nonzero, 3)]
        rows.append([*row, round(deviance, 6), 0.004, ",".join(names), *betas])
    columns = ["index", "lambda", "nonzero", "deviance_explained", "bic", "cv_deviance", "cv_se", "chosen"]
    return [*columns, *kept], rows


def _coefficients(kept: dict[str, tuple[str, float]]) -> tuple[list[str], list[list[object]]]:
    lambdas = _lambdas()
    rows: list[list[object]] = []
    for name, (_, beta) in kept.items():
        chosen = [round(_shrunk(beta, lambdas[at]), 5) for at in (_CV_MIN, _CV_1SE, _BIC)]
        stability = round(min(1.0, 0.12 + 6 * abs(beta)), 2)
        ends = [round(beta + shift, 5) for shift in (0.0, -0.045, 0.045)]
        rows.append([name, *ends, *chosen, stability, round(float(np.exp(chosen[1])), 5)])
    columns = ["predictor", "mle", "mle_low", "mle_high", "cv_min", "cv_1se", "bic"]
    return [*columns, "stability", "odds_ratio_per_sd"], rows


def _calibration(rng: np.random.Generator) -> tuple[list[str], list[list[object]]]:
    rows: list[list[object]] = []
    for k, predicted in enumerate(np.linspace(0.03, 0.55, 10)):
        observed = float(predicted + 0.012 * rng.standard_normal())
        cells = [round(x, 5) for x in (float(predicted), observed, observed - 0.03, observed + 0.03)]
        rows.append([k, *cells, 400])
    return ["bin", "predicted", "observed", "low", "high", "n"], rows


def _roc() -> tuple[list[str], list[list[object]]]:
    rows: list[list[object]] = []
    for model in ("cv_min", "counts_only", "n2_only", "counts_and_n2", "all"):
        auc = _MODELS.get(model, _MODELS["all"])[2]
        for rate in np.linspace(0, 1, _CURVE_POINTS):
            rows.append([model, round(float(rate), 4), round(float(rate ** (1 / auc - 1)), 4)])
    return ["model", "false_positive_rate", "true_positive_rate"], rows
