"""Figures of generation probability beside path counts: which of them goes better with sharing."""

from __future__ import annotations

from typing import Any, Final

from plait.reports.study_figure import (
    FILE_WIDTH,
    Spec,
    StudyFigure,
    absent,
    axis,
    number_text,
    spec_of,
    tooltips,
)
from plait.reports.study_figures_sweep import panels_by_pi
from plait.reports.study_inputs import Study, StudyTable

__all__ = ["pgen_figures", "pgen_sweep_figures"]

_MEASURES: Final = {"spearman": "Spearman's rho", "auc": "ROC curve area"}
_SCOPES: Final = {"all": "all clonotypes", "above_zero": "neither is 0"}
_NUMBERS: Final = (
    *("path_count", "pgen", "difference", "low", "high", "subjects_low", "subjects_high", "n"),
    *("pi", "nu"),
)


def pgen_figures(study: Study) -> list[StudyFigure]:
    """How much better Pgen goes with sharing than path counts do; none where there is no Pgen.

    Parameters
    ----------
    study
        What to draw.
    """
    table = study.table("pgen_comparison")
    if table is None:
        return []
    name, title = "pgen_less_path_count", "Does Pgen or path count go better with sharing?"
    rows = _rows(table)
    values = []
    for measure, told in _MEASURES.items():
        of_measure = [row for row in rows if row["measure"] == measure]
        for scope, what in _SCOPES.items():
            values += [_value(row, told, what) for row in of_measure if row["scope"] == scope]
        of_sweep = [row for row in of_measure if row["scope"] == "sweep"]
        if of_sweep:
            best = max(of_sweep, key=lambda row: row["path_count"])
            where = f"sweep, pi {best['pi']:g}, nu {best['nu']:g}"
            values.append(_value(best, told, where))
    if not values:
        why = "There are too few clonotypes with a path count and Pgen, or none are shared."
        return [absent(name, "drivers", title, why)]
    n = max(value["n"] for value in values)
    caption = (
        "How much higher a measure of Pgen with the number of subjects is than the same measure of the path "
        "count, on the same clonotypes: right of 0 Pgen goes better with sharing, left of it path counts. "
        "Thick: 95 % intervals that take clonotypes as independent; thin: those that take subjects as the "
        "units, every one left out once. Of the sweep, the best model was chosen with these data, which "
        f"flatters path counts. n = {number_text(n)} clonotypes."
    )
    told = "; ".join(
        f"{v['measure']}, {v['what']}: Pgen {v['pgen']:.3f}, path count {v['path_count']:.3f}, difference "
        f"{v['difference']:.3f}"
        for v in values
    )
    alt = f"Measures of Pgen less those of path counts: {told}."
    spec = spec_of(values, _body(len(values), any(v["subjects_low"] is not None for v in values)), alt)
    return [StudyFigure(name, "drivers", title, caption, alt, spec)]


def _rows(table: StudyTable) -> list[dict[str, Any]]:
    """Rows about sharing over all clonotypes that have a difference."""
    texts = ("stratum_kind", "y", "scope", "measure")
    columns = [*(table.texts(name) for name in texts), *(table.numbers(name) for name in _NUMBERS)]
    rows = [dict(zip((*texts, *_NUMBERS), cells, strict=True)) for cells in zip(*columns, strict=True)]
    return [
        row
        for row in rows
        if row["stratum_kind"] == "all" and row["y"] == "subjects" and row["difference"] is not None
    ]


def _value(row: dict[str, Any], measure: str, what: str) -> dict[str, Any]:
    return {
        "label": f"{measure},|{what}",
        "measure": measure,
        "what": what,
        **{name: row[name] for name in _NUMBERS[:8]},
    }


def _body(rows: int, over_subjects: bool) -> Spec:
    x: Spec = {"type": "quantitative", "axis": axis("measure of Pgen less that of the path count", grid=True)}
    shown = tooltips(
        measure="measure", what="of", pgen__f="Pgen", path_count__f="path count", difference__f="difference"
    )
    shown += tooltips(low__f="from", high__f="to", n__i="clonotypes")
    if over_subjects:
        shown += tooltips(subjects_low__f="over subjects from", subjects_high__f="to")
    layers: list[Spec] = [
        {
            "data": {"values": [{"zero": 0}]},
            "mark": {"type": "rule", "color": "$line", "strokeWidth": 1.5},
            "encoding": {
                "x": {"field": "zero", **x},
                "y": {"value": 0},
                "y2": {"value": {"expr": "height"}},
            },
        }
    ]
    ends = [("low", "high", 5.0, 0.45)]
    if over_subjects:
        ends.append(("subjects_low", "subjects_high", 1.5, 1.0))
    for low, high, width, opacity in ends:
        layers.append(
            {
                "mark": {"type": "rule", "strokeWidth": width, "opacity": opacity, "color": "$pgen"},
                "encoding": {"x": {"field": low, **x}, "x2": {"field": high}},
            }
        )
    layers.append(
        {
            "mark": {"type": "point", "filled": True, "size": 80, "color": "$pgen", "opacity": 1},
            "encoding": {"x": {"field": "difference", **x}},
        }
    )
    return {
        "width": FILE_WIDTH,
        "height": 38 * rows + 10,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "encoding": {
            "y": {
                "field": "label",
                "type": "nominal",
                "sort": None,
                "axis": {"title": None, "labelLimit": 150, "labelExpr": "split(datum.label, '|')"},
            },
            "tooltip": shown,
        },
        "layer": layers,
    }


def pgen_sweep_figures(study: Study) -> list[StudyFigure]:
    """How well path counts of every model tell shared clonotypes, and Pgen; none where there is no Pgen.

    Parameters
    ----------
    study
        What to draw.
    """
    table = study.table("pgen_comparison")
    if table is None:
        return []
    rows = [row for row in _rows(table) if row["scope"] == "sweep" and row["measure"] == "auc"]
    name, title = "sweep_and_pgen", "Path counts of each model, and Pgen: how well they tell what is shared"
    if not rows:
        return [absent(name, "sweep", title, "The study was run without a sweep, or nothing is shared.")]
    values = [{key: row[key] for key in ("pi", "nu", "path_count", "pgen", "low", "high")} for row in rows]
    best = max(values, key=lambda value: value["path_count"])
    caption = (
        "Area under the ROC curve of shared against other clonotypes, for the path count under every model "
        "(dots) and for Pgen (line), on the same clonotypes and both in bins. One panel for every longest "
        "palindromic extension (pi, nt), along it the most N nucleotides at a junction (nu, nt)."
    )
    alt = (
        f"Area under the ROC curve: at most {best['path_count']:.3f}, with pi {best['pi']:g} and "
        f"nu {best['nu']:g}; of Pgen {best['pgen']:.3f}."
    )
    shown = tooltips(pi__i="pi (nt)", nu__i="nu (nt)", path_count__f="area, path count")
    shown += tooltips(pgen__f="area, Pgen", low__f="Pgen less path count from", high__f="to")
    x: Spec = {"field": "nu", "type": "quantitative", "axis": axis("nu (nt)", tickCount=5)}
    y: Spec = {"type": "quantitative", "axis": axis("area under the ROC curve"), "scale": {"zero": False}}
    dots = {"type": "line", "point": {"size": 26, "color": "$count"}, "strokeWidth": 1.5, "color": "$count"}
    body = panels_by_pi(
        {
            "encoding": {"x": x, "tooltip": shown},
            "layer": [
                {
                    "mark": {"type": "line", "color": "$pgen", "strokeWidth": 2.5},
                    "encoding": {"y": {"field": "pgen", **y}},
                },
                {"mark": dots, "encoding": {"y": {"field": "path_count", **y}}},
            ],
        }
    )
    spec = spec_of(values, body, alt)
    return [StudyFigure(name, "sweep", title, caption, alt, spec, cell=(92, 5))]
