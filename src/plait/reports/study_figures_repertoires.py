"""Figures of the repertoires: CDR3 lengths and N nucleotides."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from plait.reports.study_figure import (
    Spec,
    StudyFigure,
    absent,
    axis,
    short_names,
    spec_of,
    tooltips,
)
from plait.reports.study_figures_genes import gene_figures, gene_order
from plait.reports.study_inputs import Study

__all__ = ["repertoire_figures"]

_MOST_SUBJECTS = 24
_SPANS: Final = {"n1": "N1 (V-D)", "n2": "N2 (D-J)", "ndn": "V-J gap (N1, D, N2)"}


def repertoire_figures(study: Study) -> list[StudyFigure]:
    """Gene usage, CDR3 lengths and N composition.

    Parameters
    ----------
    study
        What to draw.
    """
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
