"""Figures of the repertoires: gene usage, CDR3 lengths and N nucleotides."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, Final

from plait.reports.figure import (
    FILE_WIDTH,
    LEAST_IN_A_POINT,
    Spec,
    StudyFigure,
    absent,
    axis,
    short_names,
    spec_of,
    tooltips,
)
from plait.reports.study_inputs import Study, StudyTable

_MOST_GENES = 70


def gene_order(name: str) -> list[tuple[int, int, str]]:
    """A sort key with numbers in numeric order.

    >>> sorted(["TRBV13-1", "TRBV2", "TRBV13", "TRBV4"], key=gene_order)
    ['TRBV2', 'TRBV4', 'TRBV13', 'TRBV13-1']
    """
    return [
        (0, len(part.lstrip("0")), part.lstrip("0")) if part.isascii() and part.isdigit() else (1, 0, part)
        for part in re.split(r"([0-9]+)", name)
        if part
    ]


def gene_figures(study: Study) -> list[StudyFigure]:
    """Heat maps of V and J genes: clonotypes, and the share of shared ones."""
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


_MOST_SUBJECTS = 24
_SPANS: Final = {"n1": "N1 (V-D)", "n2": "N2 (D-J)", "ndn": "V-J gap (N1, D, N2)"}


def repertoire_figures(study: Study) -> list[StudyFigure]:
    """Gene usage, CDR3 lengths and N composition."""
    return [*gene_figures(study), _length_figure(study), _composition_figure(study)]


def _length_figure(study: Study) -> StudyFigure:
    name, title = "cdr3_lengths", "CDR3 length spectra"
    table = study.table("cdr3_lengths")
    if table is None:
        return absent(name, "repertoires", title, "The study has no junction lengths.")
    spectra: dict[str, dict[int, int]] = defaultdict(dict)
    for subject, length, n in zip(
        table.texts("subject"), table.integers("junction_length"), table.integers("clonotypes"), strict=True
    ):
        spectra[subject][length] = spectra[subject].get(length, 0) + n
    sizes = {subject: sum(spectrum.values()) for subject, spectrum in spectra.items()}
    ranked = sorted(sizes, key=lambda subject: (-sizes[subject], subject))[:_MOST_SUBJECTS]
    everything = sum(sizes.values())
    together: dict[int, int] = defaultdict(int)
    for spectrum in spectra.values():
        for length, n in spectrum.items():
            together[length] += n
    names = short_names(ranked)
    values = [
        {
            # Beside the name, so that a panel tells how many it is drawn from.
            "panel": f"{names[subject]} (n = {sizes[subject]:,})",
            "length": length,
            "from": length - 0.45,
            "to": length + 0.45,
            "share": spectra[subject].get(length, 0) / max(sizes[subject], 1),
            "all": together[length] / max(everything, 1),
            "clonotypes": spectra[subject].get(length, 0),
            "frame": "in frame" if length % 3 == 0 else "out of frame",
            "order": order,
            "subject": subject,
        }
        for order, subject in enumerate(sorted(ranked, key=gene_order))
        for length in sorted(together)
    ]
    left = len(sizes) - len(ranked)
    inside = sum(n for length, n in together.items() if length % 3 == 0) / max(everything, 1)
    peak = max(together, key=lambda length: (together[length], -length))
    caption = (
        "Share of each subject's clonotypes by length of the junction (CDR3 with both conserved codons); "
        f"the dots are all subjects together. {inside:.1%} are in frame."
    )
    if left:
        caption += (
            f" The {_MOST_SUBJECTS} subjects with most clonotypes are drawn; {left} others are in the table."
        )
    alt = (
        f"Histograms of junction lengths, one for each of {len(ranked)} subjects. The commonest length of "
        f"all together is {peak} nt; {inside:.1%} of clonotypes are in frame."
    )
    return StudyFigure(
        name, "repertoires", title, caption, alt, spec_of(values, _length_body(), alt), cell=(150, 4)
    )


def _length_body() -> Spec:
    shown = tooltips(
        subject="subject",
        length__i="length (nt)",
        share__p="share",
        all__p="of all",
        clonotypes__i="clonotypes",
    )
    x: Spec = {
        "type": "quantitative",
        "axis": axis("junction length (nt)", tickCount=5),
        "scale": {"zero": False},
    }
    y: Spec = {"type": "quantitative", "axis": axis("clonotypes", format="~p", tickCount=4)}
    frame: Spec = {
        "field": "frame",
        "title": None,
        "scale": {"domain": ["in frame", "out of frame"], "range": ["$count", "$alone"]},
    }
    return {
        "facet": {
            "field": "panel",
            "type": "nominal",
            "title": None,
            "sort": {"field": "order", "op": "min"},
            "header": {"labelLimit": 200, "labelFontSize": 11},
        },
        "columns": 4,
        "spacing": {"column": 16, "row": 24},
        "spec": {
            "width": 152,
            "height": 110,
            "encoding": {"tooltip": shown},
            "layer": [
                {
                    "mark": {"type": "rect"},
                    "encoding": {
                        "x": {"field": "from", **x},
                        "x2": {"field": "to"},
                        "y": {"field": "share", **y},
                        "y2": {"datum": 0},
                        "color": frame,
                    },
                },
                {
                    "transform": [{"filter": "datum.all > 0.002"}],
                    "mark": {"type": "point", "filled": True, "size": 9, "color": "$ink", "opacity": 0.8},
                    "encoding": {"x": {"field": "length", **x}, "y": {"field": "all", **y}},
                },
            ],
        },
    }


def _composition_figure(study: Study) -> StudyFigure:
    name, title = "n_composition", "N nucleotides of shared and unshared clonotypes"
    table = study.table("n_composition")
    if table is None:
        return absent(name, "repertoires", title, "The study has no N nucleotides: no regions were called.")
    values = [
        {
            "span": _SPANS.get(span, span),
            "base": base.upper(),
            "group": "shared" if shared in ("T", "true", "True", "1") else "unshared",
            "share": share,
            "low": low,
            "high": high,
            "n": n,
        }
        for span, base, shared, share, low, high, n in zip(
            *(table.texts(column) for column in ("span", "base", "shared")),
            *(table.numbers(column) for column in ("share", "low", "high")),
            table.integers("nucleotides"),
            strict=True,
        )
        if share is not None
    ]
    if not values:
        return absent(name, "repertoires", title, "The study has no N nucleotides.")
    rich = {
        group: sum(
            x["n"] for x in values if x["group"] == group and x["base"] in "AT" and "N2 (" in x["span"]
        )
        / max(1, sum(x["n"] for x in values if x["group"] == group and "N2 (" in x["span"]))
        for group in ("shared", "unshared")
    }
    caption = (
        "Share of each nucleotide among the N nucleotides of a junction, with 95 % intervals. "
        f"A and T together in N2: {rich['shared']:.1%} shared, {rich['unshared']:.1%} unshared. "
        f"n = {sum(x['n'] for x in values):,} nucleotides in all panels."
    )
    alt = (
        "Shares of A, C, G and T in N1, N2 and the whole V-J gap for shared and unshared clonotypes. A and "
        f"T make up {rich['shared']:.1%} of N2 nucleotides where shared and {rich['unshared']:.1%} where not."
    )
    spec = spec_of(values, _composition_body(values), alt)
    return StudyFigure(name, "repertoires", title, caption, alt, spec, cell=(170, 3))


def _composition_body(values: list[dict[str, Any]]) -> Spec:
    shown = tooltips(
        span="span", base="nucleotide", group="clonotypes", share__p="share", low__p="from", high__p="to"
    )
    y: Spec = {
        "type": "quantitative",
        "axis": axis("share of nucleotides", format="~p"),
        "scale": {"zero": False},
    }
    spans = [span for span in _SPANS.values() if any(x["span"] == span for x in values)]
    colour: Spec = {
        "field": "group",
        "title": None,
        "scale": {"domain": ["unshared", "shared"], "range": ["$alone", "$shared"]},
    }
    place: Spec = {
        "x": {"field": "base", "type": "nominal", "axis": axis("nucleotide", labelAngle=0)},
        "xOffset": {"field": "group", "sort": ["unshared", "shared"]},
        "color": colour,
        "tooltip": [*shown, *tooltips(n__i="nucleotides")],
    }
    return {
        "facet": {"field": "span", "type": "nominal", "title": None, "sort": spans},
        "columns": 3,
        "spacing": {"column": 20, "row": 24},
        "spec": {
            "width": 200,
            "height": 190,
            "encoding": place,
            "layer": [
                {
                    "mark": {"type": "rule", "strokeWidth": 2.5},
                    "encoding": {"y": {"field": "low", **y}, "y2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                    "encoding": {"y": {"field": "share", **y}},
                },
            ],
        },
    }
