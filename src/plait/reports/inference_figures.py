"""Figures of an inference: fit, genes and entropy, deletions and insertions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from plait.errors import FormatError
from plait.reports.figure import FILE_WIDTH, Spec, StudyFigure, absent, axis, spec_of, tooltips
from plait.reports.figures_repertoires import gene_order
from plait.reports.study_inputs import Study, StudyTable

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
    """Log-likelihood by iteration, and the bits of each choice."""
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
    """Genes (of V, D or J) that were seen, by name, and how many of the rarest ones have no room."""
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
    """How often V or J genes are chosen."""
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
    """D and J, or V and J, as a heat map, from the table of evidence."""
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
    """Genes with their deletions, insertions, and N nucleotides."""
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
