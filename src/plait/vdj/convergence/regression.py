"""The regression of a study: shared or not, on path counts, regions and composition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from plait.executors.protocol import Executor
from plait.statistics.adaptive_lasso import fit_adaptive_lasso
from plait.statistics.design_file import DesignFile
from plait.statistics.group_comparison import compare_groups
from plait.statistics.regression_settings import AdaptiveLassoSettings, FitProgress
from plait.vdj.convergence.predictors import PredictorSet
from plait.vdj.convergence.settings import StudySettings

__all__ = ["PGEN_PAIRS", "Regression", "model_groups", "regress"]

#: Models that are compared with each other where there is Pgen: the second is the one to beat.
PGEN_PAIRS: Final = (
    ("pgen_only", "counts_only"),
    ("counts_and_pgen", "counts_only"),
    ("counts_and_pgen", "pgen_only"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """What came of the regression.

    Attributes
    ----------
    tables
        Rows of each table, by its name.
    columns
        Its columns.
    summary
        For study.json.
    """

    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)


def model_groups(predictors: PredictorSet) -> dict[str, list[str]]:
    """The models that are compared, each with its predictors.

    Parameters
    ----------
    predictors
        Those of the study.
    """
    counts = {p.name for p in predictors.predictors if p.group == "path_count"}
    # Where there is no D gene, what is inserted between V and J takes the place of N2.
    group = "n2" if any(p.group == "n2" for p in predictors.predictors) else "n1"
    inserted = {p.name for p in predictors.predictors if p.group == group}
    chosen = {
        "counts_only": counts,
        f"{group}_only": inserted,
        f"counts_and_{group}": counts | inserted,
        "all": set(predictors.names),
        "all_without_counts": set(predictors.names) - counts,
        f"all_without_{group}": set(predictors.names) - inserted,
    }
    pgen = {p.name for p in predictors.predictors if p.group == "pgen"}
    if pgen:
        chosen |= {
            "pgen_only": pgen,
            "counts_and_pgen": counts | pgen,
            "all_without_pgen": set(predictors.names) - pgen,
        }
    return {
        model: [name for name in predictors.names if name in names]
        for model, names in chosen.items()
        if names
    }


def regress(
    designs: Sequence[Path],
    predictors: PredictorSet,
    settings: StudySettings,
    *,
    executor: Executor,
    progress: Callable[[FitProgress], None],
) -> Regression:
    """Fit what can be fitted.

    Parameters
    ----------
    designs
        Files of predictors, in order.
    predictors
        The predictors.
    settings
        What is studied.
    executor
        Where the work is done.
    progress
        Told how far it is.
    """
    if not designs:
        lacking = "a path count and Pgen" if _has_pgen(predictors) else "a path count"
        return Regression(summary={"n": 0, "events": 0, "warnings": [f"No clonotype has {lacking}."]})
    design = DesignFile(designs)
    n, events = design.rows, design.events
    fewest = settings.folds
    if min(events, n - events) < fewest:
        text = (
            f"{events} of {n} clonotypes are shared by {settings.shared_by} subjects or more: "
            f"too few of one kind for a cross-validation with {settings.folds} folds."
        )
        return Regression(summary={"n": n, "events": events, "warnings": [text]})
    chosen = AdaptiveLassoSettings(
        lambdas=settings.lambdas, folds=settings.folds, halves=settings.halves, seed=settings.seed
    )
    fit = fit_adaptive_lasso(design, chosen, executor=executor, progress=progress)
    groups = model_groups(predictors)
    pairs = [pair for pair in PGEN_PAIRS if set(pair) <= set(groups)]
    comparison = compare_groups(design, groups, chosen, pairs=pairs, executor=executor, progress=progress)
    tables = dict(fit.tables())
    if pairs:
        tables["pgen_groups"] = comparison.paired
    tables["roc"] = pa.concat_tables([tables["roc"], comparison.roc.cast(tables["roc"].schema)])
    tables["group_comparison"] = comparison.table
    rows = {name: table.to_pylist() for name, table in tables.items()}
    columns = {name: list(table.column_names) for name, table in tables.items()}
    known = {p.name: p for p in predictors.predictors}
    for row in rows["predictors"]:
        of = known[row["predictor"]]
        row |= {"group": of.group, "meaning": of.meaning}
    columns["predictors"] = ["predictor", "group", "meaning", "mean", "sd", "vif", "note"]
    warnings = list(dict.fromkeys([*fit.warnings, *comparison.warnings]))
    summary = {"n": n, "events": events, **fit.summary(), "warnings": warnings}
    return Regression(tables=rows, columns=columns, summary=summary)


def _has_pgen(predictors: PredictorSet) -> bool:
    return any(p.group == "pgen" for p in predictors.predictors)
