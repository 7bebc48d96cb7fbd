"""The regression of a study: shared or not, on path counts, regions, composition and gene families."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.formats.checkpoints import KeptSteps
from plait.run.executor import Executor
from plait.stats.adaptive_lasso import compare_groups, fit_adaptive_lasso
from plait.stats.design_file import DesignFile
from plait.stats.path_fits import AdaptiveLassoSettings, FitProgress
from plait.vdj.convergence.settings import StudySettings

_FAMILY = re.compile(r"[A-Z]+\d+")
#: Families with this share of the rows or more are predictors, up to so many of V and of J; the most
#: frequent one is what they are compared with.
_LEAST_SHARE = 0.01
_MOST_FAMILIES = {"v": 8, "j": 3}
_LENGTHS = {
    "junction_length": "nucleotides of the junction",
    "v_match_length": "nucleotides that match the V gene, P included",
    "j_match_length": "nucleotides that match the J gene, P included",
    "d_match_length": "nucleotides of the longest match with a D gene",
    "p3v_length": "P nucleotides at the V end",
    "p5d_length": "P nucleotides at the 5' end of D",
    "p3d_length": "P nucleotides at the 3' end of D",
    "p5j_length": "P nucleotides at the J end",
}
_BETWEEN = {"n1": "between V and D", "n2": "between D and J", "ndn": "between V and J, D included"}
#: What stands for the logarithm of a Pgen of zero, which has a predictor of its own: a usual value. What is
#: predicted does not depend on it.
_LOG_OF_ZERO = -10.0
_PGEN = {
    "log_pgen_nt": f"log10 of Pgen; {_LOG_OF_ZERO:g} where it is zero",
    "pgen_is_zero": "1 where the model cannot make the junction",
}
#: The fourth base, g, is what the others are compared with.
_BASES = "act"


class Predictor(NamedTuple):
    """One predictor, and what it means in plain words.

    Groups are ``path_count``, ``pgen``, ``region``, ``n1``, ``n2``, ``ndn``, ``v_family`` and ``j_family``.
    """

    group: str
    name: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorSet:
    """The predictors of a study, in order; picklable.

    `models` are places of the chosen models in the sweep (None: the single model); `families` those of V and
    of J that are predictors.
    """

    predictors: tuple[Predictor, ...]
    models: tuple[int | None, ...]
    families: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(predictor.name for predictor in self.predictors)

    def values(self, clonotypes: pa.Table) -> NDArray[np.float64]:
        """Values of the predictors, float64 (n, p), of clonotypes whose status is ``ok``."""
        found = np.zeros((clonotypes.num_rows, len(self.predictors)))
        place = {name: k for k, name in enumerate(self.names)}
        chosen = (p.name for p in self.predictors if p.group == "path_count")
        for name, values in zip(chosen, self._path_counts(clonotypes), strict=True):
            found[:, place[name]] = _single(np.log10(values + 1))
        if "log_pgen_nt" in place:
            pgen = _numbers(clonotypes, "pgen_nt")
            zero = pgen == 0
            logarithms = np.where(zero, _LOG_OF_ZERO, np.log10(np.where(zero, 1.0, pgen)))
            found[:, place["log_pgen_nt"]] = _single(logarithms)
            found[:, place["pgen_is_zero"]] = zero
        for predictor in self.predictors:
            if predictor.name in clonotypes.column_names:
                found[:, place[predictor.name]] = _numbers(clonotypes, predictor.name)
        for span in _BETWEEN:
            if f"{span}_a_share" in place:
                bases = {base: _numbers(clonotypes, f"{span}_{base}") for base in "acgt"}
                total = np.maximum(sum(bases.values()), 1)
                for base in _BASES:
                    found[:, place[f"{span}_{base}_share"]] = _single(bases[base] / total)
        for segment, names in self.families.items():
            encoded = clonotypes[f"{segment}_gene"].combine_chunks().dictionary_encode()
            families = np.array([family_of(gene) for gene in encoded.dictionary.to_pylist()], object)
            mine = families[np.asarray(encoded.indices)] if len(families) else families
            for name in names:
                found[:, place[f"{segment}_family_{name}"]] = mine == name
        return found

    def _path_counts(self, clonotypes: pa.Table) -> list[NDArray[np.float64]]:
        found = []
        swept = None
        if any(model is not None for model in self.models):
            lists = clonotypes["path_count_sweep"].combine_chunks()
            items = lists.type.list_size
            swept = np.asarray(lists.flatten().cast(pa.float64(), safe=False).fill_null(0)).reshape(-1, items)
        for model in self.models:
            if model is None:
                found.append(_numbers(clonotypes, "path_count"))
            else:
                assert swept is not None
                found.append(swept[:, model])
        return found


def family_of(gene: str) -> str:
    """The family of a V or J gene, by its name.

    >>> from plait.vdj.convergence.regression import family_of
    >>> family_of("TRBV13-2"), family_of("TRAV14D-3/DV8"), family_of("TRBJ2-7"), family_of("V5")
    ('TRBV13', 'TRAV14', 'TRBJ2', 'V5')
    """
    match = _FAMILY.match(gene)
    return match[0] if match else gene


def choose_predictors(
    settings: StudySettings, v_genes: Mapping[str, int], j_genes: Mapping[str, int]
) -> PredictorSet:
    """The predictors of a study; `v_genes` and `j_genes` are rows by gene."""
    found: list[Predictor] = []
    places: list[int | None] = []
    base = (settings.model.pi, settings.model.nu)
    for pi, nu in settings.predictor_models:
        places.append(settings.sweep_models.index((pi, nu)) if (pi, nu) != base else None)
        text = f"log10 of the path count + 1, with at most {pi} P and {nu} N nucleotides"
        found.append(Predictor("path_count", f"log_path_count_pi{pi}_nu{nu}", text))
    found += [Predictor("pgen", *one) for one in _PGEN.items() if settings.with_pgen]
    of_d = () if settings.with_d else ("d_match_length", "p5d_length", "p3d_length")
    found += [Predictor("region", *one) for one in _LENGTHS.items() if one[0] not in of_d]
    spans = {**_BETWEEN} if settings.with_d else {"n1": "between V and J"}
    for span, where in spans.items():
        if span != "ndn":
            text = f"nucleotides {where} that match neither"
            found.append(Predictor(span, f"{span}_length", text))
        for whole in _BASES:
            text = f"share of {whole.upper()} among the nucleotides {where}; 0 where there are none"
            found.append(Predictor(span, f"{span}_{whole}_share", text))
    families = {}
    for segment, genes in (("v", v_genes), ("j", j_genes)):
        chosen, reference = _families(genes, _MOST_FAMILIES[segment])
        families[segment] = chosen
        for name in chosen:
            text = f"1 where the {segment.upper()} family is {name}; compared with {reference} and rare ones"
            found.append(Predictor(f"{segment}_family", f"{segment}_family_{name}", text))
    return PredictorSet(predictors=tuple(found), models=tuple(places), families=families)


def _families(genes: Mapping[str, int], most: int) -> tuple[tuple[str, ...], str]:
    rows: Counter[str] = Counter()
    for gene, n in genes.items():
        rows[family_of(gene)] += n
    ordered = sorted(rows, key=lambda name: (-rows[name], name))
    if not ordered:
        return (), ""
    total = sum(rows.values())
    frequent = [name for name in ordered[1:] if rows[name] >= _LEAST_SHARE * total]
    return tuple(frequent[:most]), ordered[0]


def _single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """In single precision, which is more than enough and halves the design on disk."""
    return values.astype(np.float32)


def _numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column as floating-point numbers, 0 where it is null."""
    column = table[name].cast(pa.float64(), safe=False).fill_null(0)
    values: NDArray[np.float64] = column.to_numpy()
    return values


#: Models that are compared with each other where there is Pgen: the second is the one to beat.
PGEN_PAIRS: Final = (
    ("pgen_only", "counts_only"),
    ("counts_and_pgen", "counts_only"),
    ("counts_and_pgen", "pgen_only"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """What came of the regression: rows and columns of tables by name; `summary` is for study.json."""

    tables: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    columns: Mapping[str, list[str]] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)


def model_groups(predictors: PredictorSet) -> dict[str, list[str]]:
    """The models that are compared, each with its predictors."""
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
    kept: KeptSteps | None = None,
) -> Regression:
    """Fit what can be fitted; `designs` are files of predictors, in order; what is `kept` is taken over."""
    if not designs:
        has_pgen = any(p.group == "pgen" for p in predictors.predictors)
        lacking = "a path count and Pgen" if has_pgen else "a path count"
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
    fit = fit_adaptive_lasso(design, chosen, executor=executor, progress=progress, kept=kept)
    groups = model_groups(predictors)
    pairs = [pair for pair in PGEN_PAIRS if set(pair) <= set(groups)]
    comparison = compare_groups(
        design, groups, chosen, pairs=pairs, executor=executor, progress=progress, kept=kept
    )
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
