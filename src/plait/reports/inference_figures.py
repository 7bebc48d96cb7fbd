"""Figures of an inference: fit, genes and entropy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from plait.reports.study_figure import FILE_WIDTH, Spec, StudyFigure, absent, axis, spec_of, tooltips
from plait.reports.study_figures_genes import gene_order
from plait.reports.study_inputs import Study, StudyTable

__all__ = [
    "GENE_HEIGHT",
    "MOST_GENES",
    "PROBABILITY_LEGEND",
    "SECTIONS",
    "WIDE",
    "fit_figures",
    "genes_together",
    "ranked_genes",
    "usage_figure",
]

#: Sections of the page, in order.
SECTIONS: Final[Mapping[str, str]] = {
    "fit": "Fit and entropy",
    "genes": "Genes and their deletions",
    "insertions": "Insertions",
}
#: Genes that a figure has room for.
MOST_GENES: Final = 70
#: Of a line with one gene, in pixels.
GENE_HEIGHT: Final = 15
#: Legend of colours that stand for probabilities.
PROBABILITY_LEGEND: Final[Spec] = {
    "gradientLength": 180,
    "gradientThickness": 10,
    "title": "probability",
    "format": ".2~p",
    "tickCount": 4,
}
#: What makes a figure as wide as its place.
WIDE: Final[Spec] = {"width": FILE_WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}}
_GROUPS: Final = {"V": "genes", "J": "genes", "D": "genes", "deletions": "deletions"}


def fit_figures(result: Study) -> list[StudyFigure]:
    """Log-likelihood by iteration, and the bits of each choice.

    Parameters
    ----------
    result
        What to draw.
    """
    return [_likelihood(result), _gain(result), _entropy(result)]


def _likelihood(result: Study) -> StudyFigure:
    name, title = "log_likelihood", "Log-likelihood by iteration"
    table = result.table("iterations")
    if table is None:
        return absent(name, "fit", title, "No iteration was finished.", half=True)
    values = [
        {"iteration": k, "log_likelihood": log, "gain": gain}
        for k, log, gain in zip(
            table.integers("iteration"), table.numbers("log_likelihood"), table.numbers("gain"), strict=True
        )
    ]
    first, last = values[0], values[-1]
    caption = (
        f"Mean natural logarithm of the probability of a junction under the model before each iteration: "
        f"{first['log_likelihood']:.4f} to {last['log_likelihood']:.4f}. It cannot fall, but for rounding "
        "and pseudocounts."
    )
    x: Spec = {
        "field": "iteration",
        "type": "quantitative",
        "axis": axis("iteration", tickMinStep=1, format="d"),
        "scale": {"nice": False},
    }
    y: Spec = {
        "field": "log_likelihood",
        "type": "quantitative",
        "axis": axis("mean log-likelihood"),
        "scale": {"zero": False},
    }
    shown = [*tooltips(iteration__i="iteration", gain__f="gain")]
    shown.insert(1, {"field": "log_likelihood", "type": "quantitative", "title": "mean", "format": ".5f"})
    mark: Spec = {"type": "line", "color": "$count", "strokeWidth": 2.5, "point": {"color": "$count"}}
    body = {**WIDE, "height": 260, "mark": mark, "encoding": {"x": x, "y": y, "tooltip": shown}}
    alt = f"Line of the mean log-likelihood over {len(values)} iterations. {caption}"
    return StudyFigure(name, "fit", title, caption, alt, spec_of(values, body, alt), half=True)


def _gain(result: Study) -> StudyFigure:
    name, title = "gain", "What each iteration gained"
    table = result.table("iterations")
    values = (
        [
            {"iteration": k, "gain": gain}
            for k, gain in zip(table.integers("iteration"), table.numbers("gain"), strict=True)
            if gain is not None and gain > 0
        ]
        if table is not None
        else []
    )
    if not values:
        return absent(name, "fit", title, "There was one iteration only.", half=True)
    tolerance = result.decimal(result.entries("parameters"), "tolerance")
    ended = "iterations ended below it" if result.description.get("converged") else "it was not reached"
    caption = f"Growth of the mean log-likelihood, log scale. The tolerance was {tolerance:g}; {ended}."
    x: Spec = {"field": "iteration", "type": "quantitative", "scale": {"nice": False}}
    x["axis"] = axis("iteration", tickMinStep=1, format="d")
    y: Spec = {
        "type": "quantitative",
        "scale": {"type": "log"},
        "axis": axis("gain", format="~e", tickCount=6),
    }
    mark: Spec = {"type": "line", "color": "$count", "strokeWidth": 2.5, "point": {"color": "$count"}}
    shown = tooltips(iteration__i="iteration", gain__f="gain")
    layers: list[Spec] = [{"mark": mark, "encoding": {"x": x, "y": {"field": "gain", **y}, "tooltip": shown}}]
    if tolerance:
        rule: Spec = {"type": "rule", "color": "$quiet", "strokeDash": [5, 4]}
        layers.append({"mark": rule, "encoding": {"y": {"datum": tolerance, **y}}})
    alt = f"Line of what iterations gained, from {values[0]['gain']:.3g} to {values[-1]['gain']:.3g}."
    body = {**WIDE, "height": 260, "layer": layers}
    return StudyFigure(name, "fit", title, caption, alt, spec_of(values, body, alt), half=True)


def _entropy(result: Study) -> StudyFigure:
    name, title = "entropy", "Entropy of each choice"
    table = result.table("entropy")
    if table is None:
        return absent(name, "fit", title, "The run has no entropies.")
    bits = dict(zip(table.texts("choice"), table.numbers("bits"), strict=True))
    total = bits.pop("total", None) or sum(value or 0.0 for value in bits.values())
    values = [
        {
            "choice": choice,
            "bits": value or 0.0,
            "share": (value or 0.0) / total if total else 0.0,
            "kind": _GROUPS.get(choice.partition(" ")[0], "insertions"),
            "order": order,
        }
        for order, (choice, value) in enumerate(bits.items())
    ]
    caption = (
        f"Bits of each choice given those that it depends on; together {total:.1f}. It is the entropy of "
        "scenarios: different ones can make the same junction."
    )
    label: Spec = {"field": "choice", "type": "nominal", "sort": {"field": "order", "op": "min"}}
    colour: Spec = {
        "field": "kind",
        "title": None,
        "scale": {"domain": ["genes", "deletions", "insertions"], "range": ["$alone", "$count", "$n2"]},
    }
    encoding = {
        "y": {**label, "axis": {"title": None}},
        "x": {"field": "bits", "type": "quantitative", "axis": axis("bits")},
        "tooltip": tooltips(choice="choice", bits__f="bits", share__p="of all"),
    }
    text: Spec = {"type": "text", "align": "left", "dx": 5}
    layers: list[Spec] = [
        {"mark": {"type": "bar", "height": {"band": 0.7}}, "encoding": {"color": colour}},
        {"mark": text, "encoding": {"text": {"field": "bits", "format": ".1f"}}},
    ]
    body = {**WIDE, "height": 24 * len(values), "encoding": encoding, "layer": layers}
    told = "; ".join(f"{value['choice']} {value['bits']:.2f}" for value in values)
    alt = f"Bars of bits: {told}."
    return StudyFigure(name, "fit", title, caption, alt, spec_of(values, body, alt))


def ranked_genes(result: Study, segment: str) -> tuple[list[dict[str, Any]], int]:
    """Genes that were seen, in order of their names, and how many of the rarest ones have no room.

    Parameters
    ----------
    result
        What to draw.
    segment
        ``"V"``, ``"D"`` or ``"J"``.
    """
    table = result.table("genes")
    if table is None:
        return [], 0
    rows = [
        {
            "gene": gene,
            "probability": p or 0.0,
            "error": error or 0.0,
            "count": n or 0.0,
            "deletion": mean,
            "few": few,
        }
        for kind, gene, p, error, n, mean, few in zip(
            *(table.texts(column) for column in ("segment", "gene")),
            *(
                table.numbers(column)
                for column in ("probability", "standard_error", "expected_count", "mean_deletion")
            ),
            table.texts("few"),
            strict=True,
        )
        if kind == segment and n
    ]
    rows.sort(key=lambda row: -row["probability"])
    kept = sorted(rows[:MOST_GENES], key=lambda row: gene_order(row["gene"]))
    for order, row in enumerate(kept):
        row |= {
            "order": order,
            "low": max(row["probability"] - 2 * row["error"], 0.0),
            "high": row["probability"] + 2 * row["error"],
            "evidence": "few" if row["few"] == "yes" else "enough",
        }
    return kept, len(rows) - len(kept)


def usage_figure(result: Study, segment: str) -> StudyFigure:
    """How often genes are chosen.

    Parameters
    ----------
    result
        What to draw.
    segment
        ``"V"`` or ``"J"``.
    """
    name, title = f"{segment.lower()}_usage", f"{segment} genes"
    rows, left = ranked_genes(result, segment)
    if not rows:
        return absent(name, "genes", title, f"No {segment} gene was seen.", half=True)
    few = sum(row["evidence"] == "few" for row in rows)
    caption = (
        "Probability of each gene, with two standard errors on either side. Paler ones rest on fewer than "
        f"100 expected choices ({few} of {len(rows)})."
    )
    if left:
        caption += f" The {left} rarest are in the table."
    most = max(rows, key=lambda row: row["probability"])
    alt = (
        f"Bars of the probabilities of {len(rows)} {segment} genes. Most frequent is {most['gene']} with "
        f"{most['probability']:.1%}."
    )
    y: Spec = {"field": "gene", "type": "nominal", "sort": {"field": "order", "op": "min"}}
    y["axis"] = {"title": None, "labelOverlap": True}
    x: Spec = {"type": "quantitative", "axis": axis("probability", format="~p")}
    colour: Spec = {
        "field": "evidence",
        "title": "evidence",
        "scale": {"domain": ["enough", "few"], "range": ["$count", "$sequence2"]},
    }
    shown = tooltips(
        gene="gene",
        probability__p="probability",
        error__p="standard error",
        count__f="expected choices",
        deletion__f="mean deletion",
    )
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": {"band": 0.72}},
            "encoding": {"x": {"field": "probability", **x}, "color": colour},
        },
        {
            "mark": {"type": "rule", "color": "$ink", "strokeWidth": 1},
            "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}},
        },
    ]
    body = {
        **WIDE,
        "height": max(90, GENE_HEIGHT * len(rows)),
        "encoding": {"y": y, "tooltip": shown},
        "layer": layers,
    }
    return StudyFigure(name, "genes", title, caption, alt, spec_of(rows, body, alt), half=True)


def genes_together(table: StudyTable) -> StudyFigure:
    """D and J, or V and J, as a heat map.

    Parameters
    ----------
    table
        The table of evidence.
    """
    name = "genes_together"
    cells = list(
        zip(
            *(table.texts(column) for column in ("event", "given", "value")),
            *(table.numbers(column) for column in ("probability", "expected_count")),
            strict=True,
        )
    )
    pairs = [(*value.split(" ", 1), p, n) for event, _, value, p, n in cells if event == "d_and_j_gene" and p]
    title, first = "D genes with J genes", "D gene"
    if not pairs:
        of_v = {value: p or 0.0 for event, _, value, p, _ in cells if event == "v_gene"}
        pairs = [
            (given, value, of_v.get(given, 0.0) * p, n)
            for event, given, value, p, n in cells
            if event == "j_gene" and given and p
        ]
        title, first = "V genes with J genes", "V gene"
    if not pairs:
        return absent(name, "genes", title, "J is chosen for itself.")
    values = [{"one": one, "other": other, "probability": p, "count": n or 0.0} for one, other, p, n in pairs]
    shares: dict[str, float] = {}
    for value in values:
        shares[value["one"]] = shares.get(value["one"], 0.0) + value["probability"]
    kept = set(sorted(shares, key=lambda gene: -shares[gene])[:MOST_GENES])
    values = [value for value in values if value["one"] in kept]
    for axis_of, field in (("row", "one"), ("column", "other")):
        order = {gene: k for k, gene in enumerate(sorted({v[field] for v in values}, key=gene_order))}
        for value in values:
            value[axis_of] = order[value[field]]
    top = max(values, key=lambda value: value["probability"])
    caption = "Joint probability of both genes."
    if len(kept) < len(shares):
        caption += f" The {len(shares) - len(kept)} rarest are in the table."
    alt = f"Heat map. Most frequent: {top['one']} with {top['other']}, {top['probability']:.1%}."
    x: Spec = {"field": "other", "type": "nominal", "sort": {"field": "column", "op": "min"}}
    y: Spec = {"field": "one", "type": "nominal", "sort": {"field": "row", "op": "min"}}
    x["axis"] = axis("J gene", labelAngle=-60, labelOverlap=True, domain=False, ticks=False)
    y["axis"] = axis(first, labelOverlap=True)
    encoding: Spec = {
        "x": x,
        "y": y,
        "color": {"field": "probability", "type": "quantitative", "legend": PROBABILITY_LEGEND},
        "tooltip": tooltips(one=first, other="J gene", probability__p="probability", count__f="expected"),
    }
    body = {
        **WIDE,
        "height": max(70, 17 * len(kept)),
        "mark": {"type": "rect", "stroke": "$paper", "strokeWidth": 1},
        "encoding": encoding,
    }
    return StudyFigure(name, "genes", title, caption, alt, spec_of(values, body, alt))
