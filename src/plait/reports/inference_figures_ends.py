"""Figures of an inference: deletions and insertions."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, Final

from plait.errors import FormatError
from plait.reports.inference_figures import (
    GENE_HEIGHT,
    PROBABILITY_LEGEND,
    WIDE,
    genes_together,
    ranked_genes,
    usage_figure,
)
from plait.reports.study_figure import Spec, StudyFigure, absent, axis, spec_of, tooltips
from plait.reports.study_figures_genes import gene_order
from plait.reports.study_inputs import Study

__all__ = ["end_figures"]

_ENDS: Final = {
    "V 3'": "$count",
    "D 5'": "$ndn",
    "D 3'": "$n1",
    "J 5'": "$n2",
}
#: Events whose values are numbers of nucleotides.
_COUNTED: Final = ("_deletion", "_insertions")
#: What is less probable is not drawn.
_LEAST: Final = 1e-4
_JUNCTIONS: Final = {"vd": "V-D", "dj": "D-J", "vj": "V-J"}


class _Evidence:
    """Rows of the table of evidence by event."""

    def __init__(self, result: Study) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        table = result.table("evidence")
        if table is None:
            return
        for event, given, value, p, error, n, total in zip(
            *(table.texts(column) for column in ("event", "given", "value")),
            *(
                table.numbers(column)
                for column in ("probability", "standard_error", "expected_count", "total")
            ),
            strict=True,
        ):
            numbers = 2 if event == "d_5_and_3_deletion" else 1
            if event.endswith(_COUNTED) and not re.fullmatch(rf"(?:(^| )-?[0-9]{{1,5}}){{{numbers}}}", value):
                expected = f"{numbers} whole number{'s' if numbers > 1 else ''} for {event}"
                raise FormatError(table.path, column="value", found=repr(value[:40]), expected=expected)
            row = {"given": given, "value": value, "p": p or 0.0, "error": error or 0.0}
            self.rows[event].append({**row, "count": n or 0.0, "total": total or 0.0})


def end_figures(result: Study) -> list[StudyFigure]:
    """Genes with their deletions, insertions, and N nucleotides.

    Parameters
    ----------
    result
        What to draw.
    """
    evidence = _Evidence(result)
    figures = [_mean_deletions(evidence)]
    for segment, event in (("V", "v_3_deletion"), ("J", "j_5_deletion")):
        # Beside each other: they have the same genes in the same order.
        figures += [usage_figure(result, segment), _deletions_by_gene(result, evidence, segment, event)]
    table = result.table("evidence")
    if table is not None:
        figures.append(genes_together(table))
    if evidence.rows["d_5_and_3_deletion"]:
        figures.append(_d_deletions(evidence))
    return [*figures, _lengths(evidence), _steps(evidence)]


def _mean_deletions(evidence: _Evidence) -> StudyFigure:
    name, title = "deletions", "Deletions at each end, all genes together"
    sums: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for event, end in (("v_3_deletion", "V 3'"), ("j_5_deletion", "J 5'")):
        for row in evidence.rows[event]:
            sums[end][int(row["value"])] += row["count"]
    for row in evidence.rows["d_5_and_3_deletion"]:
        for end, deleted in zip(("D 5'", "D 3'"), row["value"].split(), strict=True):
            sums[end][int(deleted)] += row["count"]
    totals = {end: sum(found.values()) for end, found in sums.items()}
    values = [
        {"end": end, "deleted": k, "from": k - 0.42, "to": k + 0.42, "p": n / totals[end], "count": n}
        for end in _ENDS
        if totals.get(end)
        for k, n in sorted(sums[end].items())
    ]
    if not values:
        return absent(name, "genes", title, "There is no evidence of deletions.")
    means = {end: sum(k * n for k, n in sums[end].items()) / totals[end] for end in _ENDS if totals.get(end)}
    told = ", ".join(f"{end} {mean:.1f}" for end, mean in means.items())
    caption = (
        f"Expected shares of numbers of deleted nucleotides. Below zero: P nucleotides. Means: {told}. D "
        "that is deleted as a whole can be so in many ways, which are equally probable at first."
    )
    alt = f"Histograms of deletions. Means: {told}."
    ends = list(means)
    x: Spec = {"type": "quantitative", "axis": axis("deleted nucleotides", tickMinStep=2)}
    y: Spec = {"field": "p", "type": "quantitative", "axis": axis("share", format="~p", tickCount=4)}
    colour: Spec = {
        "field": "end",
        "legend": None,
        "scale": {"domain": ends, "range": [_ENDS[end] for end in ends]},
    }
    spec: Spec = {
        "width": 160,
        "height": 130,
        "mark": {"type": "rect"},
        "encoding": {
            "x": {"field": "from", **x},
            "x2": {"field": "to"},
            "y": y,
            "y2": {"datum": 0},
            "color": colour,
            "tooltip": tooltips(end="end", deleted__i="deleted", p__p="share", count__f="expected"),
        },
    }
    body = {
        "facet": {"field": "end", "type": "nominal", "title": None, "sort": ends},
        "columns": 4,
        "spacing": {"column": 18, "row": 24},
        "spec": spec,
    }
    return StudyFigure(name, "genes", title, caption, alt, spec_of(values, body, alt), cell=(150, 4))


def _deletions_by_gene(result: Study, evidence: _Evidence, segment: str, event: str) -> StudyFigure:
    name, title = f"{segment.lower()}_deletions", f"Deletions of each {segment} gene"
    genes, left = ranked_genes(result, segment)
    order = {row["gene"]: row for row in genes}
    values = [
        {
            "gene": f"{row['given']} ({row['total']:,.0f})",
            "order": order[row["given"]]["order"],
            "deleted": int(row["value"]),
            **{key: row[key] for key in ("p", "error", "count", "total")},
        }
        for row in evidence.rows[event]
        if row["given"] in order and row["p"] >= _LEAST
    ]
    if not values:
        return absent(name, "genes", title, f"No {segment} gene was seen.", half=True)
    caption = "Probability of each number of deletions; P nucleotides below zero. Brackets: expected choices."
    if left:
        caption += f" The {left} rarest genes are in the table."
    alt = f"Heat map of the deletions of {len(genes)} {segment} genes."
    y: Spec = {"field": "gene", "type": "nominal", "sort": {"field": "order", "op": "min"}}
    shown = tooltips(
        gene="gene", deleted__i="deleted", p__p="probability", error__p="standard error", count__f="expected"
    )
    body = {
        **WIDE,
        "height": max(90, GENE_HEIGHT * len(genes)),
        "mark": {"type": "rect", "stroke": "$paper", "strokeWidth": 0.5},
        "encoding": {
            "x": {
                "field": "deleted",
                "type": "ordinal",
                "axis": axis("deleted nucleotides", labelAngle=0, labelOverlap=True),
            },
            "y": {**y, "axis": {"title": None, "labelOverlap": True, "labelFontSize": 11}},
            "color": {"field": "p", "type": "quantitative", "legend": PROBABILITY_LEGEND},
            "tooltip": shown,
        },
    }
    return StudyFigure(name, "genes", title, caption, alt, spec_of(values, body, alt), half=True)


def _d_deletions(evidence: _Evidence) -> StudyFigure:
    title = "Deletions of each D gene, both ends together"
    values = []
    for row in evidence.rows["d_5_and_3_deletion"]:
        if row["p"] < _LEAST:
            continue
        five, three = (int(part) for part in row["value"].split())
        found = {key: row[key] for key in ("p", "error", "count")}
        values.append(
            {"gene": f"{row['given']} ({row['total']:,.0f})", "five": five, "three": three, **found}
        )
    genes = sorted({value["gene"] for value in values}, key=gene_order)
    caption = "Probability of deletions at the 5' and the 3' end; P nucleotides below zero."
    alt = f"Heat maps of the deletions at both ends of {len(genes)} D genes."
    encoding: Spec = {
        "x": {
            "field": "five",
            "type": "ordinal",
            "axis": axis("deleted at 5'", labelAngle=0, labelOverlap=True),
        },
        "y": {
            "field": "three",
            "type": "ordinal",
            "sort": "descending",
            "axis": axis("deleted at 3'", labelOverlap=True),
        },
        "color": {"field": "p", "type": "quantitative", "legend": PROBABILITY_LEGEND},
        "tooltip": tooltips(
            gene="gene", five__i="at 5'", three__i="at 3'", p__p="probability", count__f="expected"
        ),
    }
    body = {
        "facet": {"field": "gene", "type": "nominal", "title": None, "sort": genes},
        "columns": 3,
        "spacing": {"column": 20, "row": 24},
        "spec": {"width": 220, "height": 220, "mark": {"type": "rect"}, "encoding": encoding},
    }
    spec = spec_of(values, body, alt)
    return StudyFigure("d_deletions", "genes", title, caption, alt, spec, cell=(200, 3))


def _lengths(evidence: _Evidence) -> StudyFigure:
    name, title = "insertion_lengths", "Numbers of inserted nucleotides"
    values, means = [], {}
    for short, junction in _JUNCTIONS.items():
        rows = evidence.rows[f"{short}_insertions"]
        for row in rows:
            values.append(
                {
                    "junction": junction,
                    "inserted": int(row["value"]),
                    "p": row["p"],
                    "low": max(row["p"] - 2 * row["error"], 0.0),
                    "high": row["p"] + 2 * row["error"],
                    "count": row["count"],
                }
            )
        if rows:
            means[junction] = sum(int(row["value"]) * row["p"] for row in rows)
    if not values:
        return absent(name, "insertions", title, "There is no evidence of insertions.", half=True)
    told = ", ".join(f"{junction} {mean:.2f}" for junction, mean in means.items())
    caption = f"Probability of each number, with two standard errors on either side. Means: {told}."
    alt = f"Lines of the distributions of numbers of inserted nucleotides. Means: {told}."
    junctions = list(means)
    colour: Spec = {
        "field": "junction",
        "title": None,
        "legend": {"symbolOpacity": 1, "symbolType": "stroke"},
        "scale": {"domain": junctions, "range": ["$count", "$shared"][: len(junctions)]},
    }
    y: Spec = {"type": "quantitative", "axis": axis("probability", format="~p")}
    layers: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.22},
            "encoding": {"y": {"field": "low", **y}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "strokeWidth": 2, "point": {"size": 28, "filled": True}},
            "encoding": {"y": {"field": "p", **y}},
        },
    ]
    x: Spec = {
        "field": "inserted",
        "type": "quantitative",
        "axis": axis("inserted nucleotides", tickMinStep=1),
        "scale": {"nice": False},
    }
    shown = tooltips(
        junction="junction", inserted__i="inserted", p__p="probability", count__f="expected choices"
    )
    body = {
        **WIDE,
        "height": 260,
        "encoding": {"x": x, "color": colour, "tooltip": shown},
        "layer": layers,
    }
    return StudyFigure(name, "insertions", title, caption, alt, spec_of(values, body, alt), half=True)


def _steps(evidence: _Evidence) -> StudyFigure:
    name, title = "n_nucleotides", "Each N nucleotide after the one before"
    values = []
    for short, junction in _JUNCTIONS.items():
        for row in evidence.rows[f"{short}_nucleotide"]:
            direction = "from J, 3' to 5'" if short == "dj" else "5' to 3'"
            found = {"before": row["given"].removeprefix("after "), "next": row["value"]}
            values.append({"panel": f"{junction} ({direction})", **found, "p": row["p"], **_strength(row)})
    if not values:
        return absent(name, "insertions", title, "No N nucleotide follows another one.", half=True)
    caption = (
        "Rows: the nucleotide before; columns: the one that is added to it. Rows add up to 1. Between D and "
        "J insertions are read from J."
    )
    told = ", ".join(f"{v['next']} after {v['before']} {v['p']:.2f} ({v['panel']})" for v in values[:8])
    alt = f"Heat maps of the probabilities of N nucleotides: {told}."
    place: Spec = {
        "x": {
            "field": "next",
            "type": "nominal",
            "axis": axis("next", labelAngle=0, ticks=False, domain=False),
        },
        "y": {"field": "before", "type": "nominal", "axis": axis("after")},
        "tooltip": tooltips(before="after", next="next", p__p="probability", count__f="expected choices"),
    }
    colour: Spec = {"field": "p", "type": "quantitative", "legend": None, "scale": {"domain": [0, 0.6]}}
    text: Spec = {"field": "ink", "legend": None, "scale": {"domain": ["weak", "strong"]}}
    text["scale"]["range"] = ["$ink", "$paper"]
    layers: list[Spec] = [
        {"mark": {"type": "rect", "stroke": "$paper"}, "encoding": {"color": colour}},
        {
            "mark": {"type": "text", "fontWeight": 600},
            "encoding": {"text": {"field": "p", "format": ".2f"}, "color": text},
        },
    ]
    body = {
        "facet": {"field": "panel", "type": "nominal", "title": None, "sort": "descending"},
        "columns": 2,
        "resolve": {"scale": {"color": "independent"}},
        "spacing": {"column": 20, "row": 24},
        "spec": {"width": 170, "height": 190, "encoding": place, "layer": layers},
    }
    spec = spec_of(values, body, alt)
    return StudyFigure(name, "insertions", title, caption, alt, spec, cell=(120, 2), half=True)


def _strength(row: dict[str, Any]) -> dict[str, Any]:
    return {"count": row["count"], "ink": "strong" if row["p"] > 0.33 else "weak"}
