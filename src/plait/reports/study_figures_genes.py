"""Figures of gene usage: clonotypes, and shared ones, by V and J gene."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from plait.reports.study_figure import (
    FILE_WIDTH,
    LEAST_IN_A_POINT,
    Spec,
    StudyFigure,
    absent,
    axis,
    spec_of,
    tooltips,
)
from plait.reports.study_inputs import Study, StudyTable

__all__ = ["gene_figures", "gene_order"]

_MOST_GENES = 70


def gene_order(name: str) -> list[tuple[int, int, str]]:
    """A sort key with numbers in numeric order.

    >>> sorted(["TRBV13-1", "TRBV2", "TRBV13", "TRBV4"], key=gene_order)
    ['TRBV2', 'TRBV4', 'TRBV13', 'TRBV13-1']

    Parameters
    ----------
    name
        Of a gene, or of anything else.
    """
    return [
        (0, len(part.lstrip("0")), part.lstrip("0")) if part.isascii() and part.isdigit() else (1, 0, part)
        for part in re.split(r"([0-9]+)", name)
        if part
    ]


def gene_figures(study: Study) -> list[StudyFigure]:
    """Heat maps of V and J genes: clonotypes, and the share of shared ones.

    Parameters
    ----------
    study
        What to draw.
    """
    titles = {"vj_usage": "Clonotypes by V and J gene", "vj_shared": "Shared clonotypes by V and J gene"}
    table = study.table("vj_usage")
    if table is None:
        why = "The study has no clonotypes with a V and a J gene."
        return [absent(name, "repertoires", title, why, half=True) for name, title in titles.items()]
    values, left = _gene_values(table)
    v = sorted({value["v"] for value in values}, key=gene_order)
    j = sorted({value["j"] for value in values}, key=gene_order)
    most = max(values, key=lambda value: value["clonotypes"])
    n = sum(table.integers("clonotypes"))
    rest = f" Genes with fewest clonotypes are left out: {left}." if left else ""
    usage = f"Colour: clonotypes of all subjects together, log scale; n = {n:,}.{rest}"
    alt = (
        f"Heat map of {len(v)} V genes by {len(j)} J genes. Most clonotypes have {most['v']} with "
        f"{most['j']}: {most['clonotypes']:,}."
    )
    places = {("v", gene): at for at, gene in enumerate(v)} | {("j", gene): at for at, gene in enumerate(j)}
    for value in values:
        value |= {"row": places["v", value["v"]], "column": places["j", value["j"]]}
    figures = [_heat_map("vj_usage", titles["vj_usage"], usage, alt, values, "clonotypes")]
    enough = [value for value in values if value["clonotypes"] >= LEAST_IN_A_POINT]
    if study.number("subjects") < 2 or not enough:
        why = "There is one subject only." if enough else "No pair of genes has enough clonotypes."
        return [*figures, absent("vj_shared", "repertoires", titles["vj_shared"], why, half=True)]
    share = (
        f"Colour: share of clonotypes found in {study.shared_by} or more subjects, for pairs of at least "
        f"{LEAST_IN_A_POINT} clonotypes.{rest}"
    )
    top = max(enough, key=lambda value: value["share"])
    alt = (
        f"Heat map of the share of shared clonotypes by V and J gene. It is largest for {top['v']} with "
        f"{top['j']}: {top['share']:.1%} of {top['clonotypes']:,}."
    )
    return [*figures, _heat_map("vj_shared", titles["vj_shared"], share, alt, enough, "share")]


def _gene_values(table: StudyTable) -> tuple[list[dict[str, Any]], int]:
    """One value for every pair of genes; with the number of genes left out."""
    pairs = list(
        zip(
            table.texts("v_gene"),
            table.texts("j_gene"),
            table.integers("clonotypes"),
            table.integers("shared_clonotypes"),
            table.integers("rows"),
            strict=True,
        )
    )
    kept, left = [], 0
    for names in ([pair[0] for pair in pairs], [pair[1] for pair in pairs]):
        sizes: dict[str, int] = defaultdict(int)
        for name, pair in zip(names, pairs, strict=True):
            sizes[name] += pair[2]
        ranked = sorted(sizes, key=lambda gene: (-sizes[gene], gene))
        kept.append(set(ranked[:_MOST_GENES]))
        left += max(0, len(ranked) - _MOST_GENES)
    values = [
        {"v": v or "none", "j": j or "none", "clonotypes": n, "shared": k, "rows": rows, "share": k / n}
        for v, j, n, k, rows in pairs
        if v in kept[0] and j in kept[1] and n
    ]
    return values, left


def _heat_map(
    name: str, title: str, caption: str, alt: str, values: list[dict[str, Any]], field: str
) -> StudyFigure:
    counts = field == "clonotypes"
    most = max(value[field] for value in values)
    legend: Spec = {"gradientLength": 220, "gradientThickness": 10, "title": field if counts else "shared"}
    scale: Spec = {"zero": True}
    if counts and most > 1:
        scale = {"type": "log", "nice": False, "domain": [min(value[field] for value in values), most]}
        powers = [10**k for k in range(len(str(most)))]
        legend["values"] = [power for power in powers if 2.5 * power < most] + [most]
    legend["format"] = ".3~s" if counts else "~p"
    shown = tooltips(
        v="V gene", j="J gene", clonotypes__i="clonotypes", shared__i="shared", share__p="shared share"
    )
    # Ordered by fields, so that no text of the data stands in an expression.
    column: Spec = {"field": "j", "type": "nominal", "sort": {"field": "column", "op": "min"}}
    row: Spec = {"field": "v", "type": "nominal", "sort": {"field": "row", "op": "min"}}
    column["axis"] = axis("J gene", labelAngle=-60, labelOverlap=True, domain=False, ticks=False)
    row["axis"] = axis("V gene", labelOverlap=True)
    body: Spec = {
        "width": FILE_WIDTH,
        "height": max(120, 17 * len({value["v"] for value in values})),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "mark": {"type": "rect", "stroke": "$paper", "strokeWidth": 1},
        "encoding": {
            "x": column,
            "y": row,
            "color": {"field": field, "type": "quantitative", "scale": scale, "legend": legend},
            "tooltip": shown,
        },
    }
    return StudyFigure(name, "repertoires", title, caption, alt, spec_of(values, body, alt), half=True)
