"""Figures of what goes with sharing: correlations, distributions, shares, other models, and Pgen.

Beside `study_report`, its one importer, because both together would be too long a file.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from plait.reports.figure import (
    LEAST_IN_A_POINT,
    LEVELS,
    StudyFigure,
    absent,
    drawn,
    gene_order,
    grouped_levels,
    number_text,
)
from plait.reports.page import Results, StudyTable
from plait.stats.contingency import wilson_interval

_POWERS: Final[dict[str, Any]] = {"labelExpr": "format(pow(10, datum.value), '~s')", "tickMinStep": 1}
_SMALL_POWERS: Final[dict[str, Any]] = {
    "labelExpr": "format(pow(10, datum.value), '.0e')",
    "tickMinStep": 1,
    "labelFlush": 12,
}


@dataclass(frozen=True, eq=False, slots=True)
class Measure:
    """Something that clonotypes have, with the table that tells its distribution.

    `high` is empty where the column `low` has numbers of their own, and not ends of bins. `drawing` is what
    its figures are given, `aside` what clonotypes without a place have, and `zero` the same in short.
    """

    name: str
    table: str
    low: str
    high: str
    drawing: Mapping[str, Any]
    why_not: str
    aside: str
    zero: str

    @property
    def key(self) -> str:
        """Its name in names of figures."""
        return self.name.lower().replace(" ", "_")


_COUNT = Measure(
    "path count",
    "path_count_by_sharing",
    "log10_low",
    "log10_high",
    # Labels such as 10k and 1M, or 1e-12, at powers of ten.
    {"colour": "$count", "title": "path count (recombination paths)", "powers": _POWERS},
    "The study has no path counts: its inputs were taken without them.",
    "a count of 0",
    "count 0",
)
_PGEN = Measure(
    "Pgen",
    "pgen_by_sharing",
    "log10_low",
    "log10_high",
    {"colour": "$pgen", "title": "generation probability (Pgen)", "powers": _SMALL_POWERS},
    "No clonotype has a Pgen.",
    "a Pgen of 0",
    "Pgen 0",
)
_N2 = Measure(
    "N2 length",
    "n2_length_by_sharing",
    "n2_length",
    "",
    {"colour": "$n2", "title": "N2 length (nt)", "powers": {}},
    "The study has no N2 lengths: no clonotype has a D gene call.",
    "no D gene call",
    "no D",
)


class Bin(NamedTuple):
    """Clonotypes by number of subjects, of one bin of a measure; None where the measure has no place."""

    low: float | None
    high: float | None
    levels: dict[int, int]


def drawn_measures(study: Results) -> tuple[Measure, ...]:
    """What clonotypes of a study are measured by: Pgen only where it was computed."""
    return (_COUNT, _PGEN, _N2) if study.table(_PGEN.table) is not None else (_COUNT, _N2)


def measure_bins(table: StudyTable | None, measure: Measure) -> list[Bin]:
    """Clonotypes in bins of a measure, those without a place first."""
    if table is None:
        return []
    lows = table.numbers(measure.low)
    highs = table.numbers(measure.high) if measure.high else [None if x is None else x + 1 for x in lows]
    found: dict[tuple[float | None, float | None], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for low, high, level, n in zip(
        lows, highs, table.integers("subjects"), table.integers("clonotypes"), strict=True
    ):
        found[low, high][level] += n
    bins = [Bin(low, high, dict(levels)) for (low, high), levels in found.items()]
    return sorted(bins, key=lambda bin_: -math.inf if bin_.low is None else bin_.low)


def bin_middle(measure: Measure, bin_: Bin) -> float:
    """Where a bin, which has a place, is on the axis of its measure."""
    # An N2 length is a number of its own, a bin of path counts has a width.
    low, high = bin_.low or 0.0, bin_.high or 0.0
    return (low + high) / 2 if measure.high else low


_X: Final = {
    "path_count": "path count",
    "pgen_nt": "Pgen",
    "n2_length": "N2 length",
    "n2_at": "A and T share of N2",
}
_Y: Final = {"subjects": "with number of subjects", "duplicate_count": "with frequency", "rows": "with rows"}
_KINDS: Final = {"all": 0, "subject": 1, "v_gene": 2, "j_gene": 3}
_BY: Final = {
    "correlations_by_subject": ("all", "subject"),
    "correlations_by_gene": ("v_gene", "j_gene"),
}
#: Path count against frequency, in the study that first asked.
_PUBLISHED: Final = -0.056
_MOST_STRATA = 48


def correlation_figures(study: Results) -> list[StudyFigure]:
    """Spearman's rank correlations with intervals, by subject and by gene."""
    table = study.table("correlations")
    if table is None:
        why = "The study has no correlations: there were too few clonotypes, or nothing that varies."
        return [absent(name, why) for name in _BY]
    figures = []
    for name, kinds in _BY.items():
        values, left = _correlations(table, kinds)
        if not values:
            figures.append(absent(name, "No such stratum has enough clonotypes."))
            continue
        caption = (
            "Spearman's rank correlations with 95 % intervals. Each clonotype counts once for its number of "
            "subjects, and once in every subject for its frequency there. "
        )
        if "all" in kinds:
            caption += "Dotted: the published correlation of path count and frequency, -0.056. "
        if any(value["low"] is None for value in values):
            caption += "Hollow: too few clonotypes, or too little variation, for an interval. "
        if left:
            caption += f"{left} strata with fewest clonotypes are in the table only."
        figures.append(_correlation_figure(name, caption.strip(), values, published="all" in kinds))
    return figures


def _correlations(table: StudyTable, kinds: tuple[str, ...]) -> tuple[list[dict[str, Any]], int]:
    columns = ("stratum_kind", "stratum", "x", "y", "method", "estimate:f", "low:f", "high:f", "n:f")
    values = [
        {
            "kind": kind,
            "stratum": "all together" if kind == "all" else stratum or "no name",
            "x": _X[x],
            "y": _Y[y],
            "estimate": estimate,
            "low": low,
            "high": high,
            "n": n,
        }
        for kind, stratum, x, y, method, estimate, low, high, n in table.rows(*columns)
        if kind in kinds and method == "spearman" and x in _X and y in _Y and estimate is not None
    ]
    sizes: dict[tuple[str, str], float] = {}
    for value in values:
        key = (value["kind"], value["stratum"])
        sizes[key] = max(sizes.get(key, 0.0), value["n"] or 0.0)
    ranked = sorted(sizes, key=lambda key: (key[0] != "all", -sizes[key], key))
    kept = set(ranked[:_MOST_STRATA])
    values = [value for value in values if (value["kind"], value["stratum"]) in kept]
    values.sort(key=lambda value: (_KINDS[value["kind"]], gene_order(value["stratum"])))
    return values, len(ranked) - len(kept)


def _correlation_figure(
    name: str, caption: str, values: list[dict[str, Any]], *, published: bool
) -> StudyFigure:
    strata = {stratum: at for at, stratum in enumerate(dict.fromkeys(value["stratum"] for value in values))}
    for value in values:
        value["order"] = strata[value["stratum"]]
    told = [value for value in values if value["kind"] == "all"] or values[:4]
    alt = "Spearman's rank correlations: " + "; ".join(
        f"{v['stratum']}, {v['x']} {v['y']}: {v['estimate']:.3f}"
        + ("" if v["low"] is None or v["high"] is None else f" ({v['low']:.3f} to {v['high']:.3f})")
        for v in told
    )
    panels = [x for x in _X.values() if any(value["x"] == x for value in values)]
    measures = [y for y in _Y.values() if any(value["y"] == y for value in values)]
    several = len(measures) > 1
    bare = {value["low"] is None for value in values}
    published = published and _X["path_count"] in panels
    given = {
        "panels": panels,
        "measures": measures,
        "colours": ["$shared", "$count", "$region"][: len(measures)],
        "step": 9 if several else 18,
        "offset": {"yOffset": {"field": "y", "sort": measures}} if several else {},
        # Only layers that there is something for: Vega warns of a scale without data.
        "intervals": False in bare,
        "hollow": True in bare,
        "published": published,
    }
    if published:
        where = {"x": _X["path_count"], "published": _PUBLISHED, "stratum": values[0]["stratum"], "order": 0}
        values = [*values, where]
    return replace(drawn(name, caption, alt, values, **given), alt=f"{alt}.")


_MOST_ROWS = 8
_ROW_HEIGHT = 58
#: Clonotypes at each end of a distribution for which no room is made.
_OUTERMOST = 0.002


def distribution_figures(study: Results) -> list[StudyFigure]:
    """Distributions of path count, N2 length and, if computed, Pgen: one for every number of subjects."""
    figures = []
    for measure in drawn_measures(study):
        bins = measure_bins(study.table(measure.table), measure)
        name = f"{measure.key}_distributions"
        there = any(bin_.low is not None for bin_ in bins)
        figures.append(_ridge_figure(name, measure, bins) if there else absent(name, measure.why_not))
    return figures


class _Row(NamedTuple):
    """One distribution, as heights of bins and quartiles."""

    label: str
    n: int
    zeros: int
    heights: list[tuple[float, float, float]]
    quartiles: tuple[float, ...]


def _ridge_figure(name: str, measure: Measure, bins: list[Bin]) -> StudyFigure:
    totals: dict[int, int] = defaultdict(int)
    for bin_ in bins:
        for level, n in bin_.levels.items():
            totals[level] += n
    groups = [_row(label, levels, measure, bins) for label, levels in grouped_levels(totals, _MOST_ROWS)]
    rows = [row for row in groups if row is not None]
    caption = (
        f"Histograms of {measure.name} for clonotypes found in so many subjects, each as high as its own "
        "highest bin; the bar below spans the middle half, the dot is the median. Beside it: clonotypes "
        f"that have {measure.aside}, which are in no histogram."
    )
    if measure.high:
        caption += " Medians are taken from bins of a quarter of a power of ten."
    medians = "; ".join(
        f"{row.label}: median {number_text(_shown(measure, row.quartiles[1]))}, n = {row.n:,}" for row in rows
    )
    alt = f"Distributions of {measure.name} by number of subjects. {medians}."
    # Labels are made of whole numbers alone, so that they can stand in an expression.
    labels = ", ".join(
        f"['{row.label} subject{'' if row.label == '1' else 's'}', 'n = {row.n:,}']" for row in rows
    )
    given = {
        **measure.drawing,
        "height": _ROW_HEIGHT * len(rows) + 20,
        "domain": _ridge_domain(rows, measure),
        "rows": [-at for at in range(len(rows))],
        "labels": f"[{labels}][-datum.value]",
        "row_domain": [0.35 - len(rows), 1.0],
        "unit": f"{measure.name} from" if measure.high else "N2 length (nt)",
        # On the side where the tail of the histograms is thin.
        "note_side": {"align": "left", "dx": 3} if measure.high else {"align": "right", "dx": -3},
        "note_place": 0 if measure.high else {"expr": "width"},
    }
    return drawn(name, caption, alt, _ridge_values(rows, measure), **given)


def _shown(measure: Measure, value: float) -> float:
    return float(f"{10**value:.3g}") if measure.high else round(value, 1)


def _row(label: str, levels: range, measure: Measure, bins: list[Bin]) -> _Row | None:
    heights, zeros = [], 0
    for bin_ in bins:
        n = sum(bin_.levels.get(level, 0) for level in levels)
        if bin_.low is None:
            zeros += n
        else:
            middle = bin_middle(measure, bin_)
            half = ((bin_.high or 0.0) - bin_.low) / 2
            heights.append((middle - half, middle + half, float(n)))
    total = sum(height for _, _, height in heights)
    if not total:
        return None
    quartiles = [_quantile(heights, share * total, whole=not measure.high) for share in (0.25, 0.5, 0.75)]
    return _Row(label, round(total) + zeros, zeros, heights, tuple(quartiles))


def _quantile(heights: list[tuple[float, float, float]], wanted: float, *, whole: bool) -> float:
    below = 0.0
    for low, high, n in heights:
        if below + n >= wanted and n:
            return (low + high) / 2 if whole else low + (high - low) * (wanted - below) / n
        below += n
    return heights[-1][1]


def _ridge_values(rows: list[_Row], measure: Measure) -> list[dict[str, object]]:
    values: list[dict[str, object]] = []
    for at, row in enumerate(rows):
        most = max(height for _, _, height in row.heights)
        total = sum(height for _, _, height in row.heights)
        values += [
            {
                "row": at,
                "low": low,
                "high": high,
                "base": -at,
                "top": -at + 0.8 * height / most,
                "share": height / total,
                "clonotypes": round(height),
                "level": row.label,
                "from": _shown(measure, low) if measure.high else (low + high) / 2,
            }
            for low, high, height in row.heights
        ]
        q25, q50, q75 = row.quartiles
        shown = {f"shown{k}": _shown(measure, q) for k, q in enumerate(row.quartiles)}
        values.append(
            {"row": at, "q25": q25, "q50": q50, "q75": q75, "bar": -at - 0.09, "level": row.label, **shown}
        )
        if row.zeros:
            note = f"{measure.zero}: {row.zeros / row.n:.1%}"
            values.append({"row": at, "note": note, "at": -at + 0.22})
    return values


def _ridge_domain(rows: list[_Row], measure: Measure) -> list[float]:
    """From the lowest to the highest bin that is more than the outermost clonotypes of a row."""
    lows: list[float] = []
    highs: list[float] = []
    for row in rows:
        total = sum(n for _, _, n in row.heights)
        for ends, at in ((lows, 0), (highs, 1)):
            below = 0.0
            for bin_ in row.heights if at == 0 else reversed(row.heights):
                below += bin_[2]
                if below > _OUTERMOST * total:
                    ends.append(bin_[at])
                    break
    return [min(lows) - (0.35 if measure.high else 0.0), max(highs)]


_TOO_FEW: Final = f"There are too few clonotypes: no bin has {LEAST_IN_A_POINT}."
#: Powers of ten, or nucleotides, between two points that are joined.
_WIDEST_GAP: Final = 2.0
#: Standard errors to each side that an interval of 95 % reaches.
_Z: Final = 1.959964
_ONE_SUBJECT: Final = "There is one subject only, so nothing can be shared, and there is nothing to compare."


def driver_figures(study: Results) -> list[StudyFigure]:
    """The share of shared clonotypes by path count, N2 length and, where there is one, Pgen, on one scale."""
    found = {measure: measure_bins(study.table(measure.table), measure) for measure in drawn_measures(study)}
    points = {measure: _share_points(measure, bins, study.shared_by) for measure, bins in found.items()}
    top = max(point["high"] for of_one in points.values() for point in [{"high": 0.0}, *of_one])
    figures = []
    for measure, bins in found.items():
        name = f"sharing_by_{measure.key}"
        if study.number("subjects") <= 1:
            figures.append(absent(name, _ONE_SUBJECT))
        elif not points[measure]:
            figures.append(absent(name, _TOO_FEW if bins else measure.why_not))
        else:
            figures.append(_share_figure(name, measure, bins, points[measure], study, top))
    return figures


def _share_points(measure: Measure, bins: list[Bin], shared_by: int) -> list[dict[str, float]]:
    points = []
    piece, end = 0, -math.inf
    for bin_ in bins:
        n = sum(bin_.levels.values())
        if bin_.low is None or n < LEAST_IN_A_POINT:
            continue
        k = sum(shared for level, shared in bin_.levels.items() if level >= shared_by)
        low, high = wilson_interval(k, n, _Z)
        x = bin_middle(measure, bin_)
        # Nothing is drawn across bins that say nothing.
        piece += x - end > _WIDEST_GAP
        end = x
        point = {"share": k / n, "low": low, "high": high, "n": n, "shared": k, "x": x, "piece": piece}
        ends = {"from": 10**bin_.low, "to": 10 ** (bin_.high or 0.0)} if measure.high else {}
        points.append(point | ends)
    return points


def _share_figure(
    name: str,
    measure: Measure,
    bins: list[Bin],
    values: list[dict[str, float]],
    study: Results,
    top: float,
) -> StudyFigure:
    n = sum(sum(bin_.levels.values()) for bin_ in bins)
    aside = sum(sum(bin_.levels.values()) for bin_ in bins if bin_.low is None)
    scarce = n - aside - sum(int(point["n"]) for point in values)
    left_out = [
        f"{number_text(count)} {why}"
        for count, why in (
            (aside, f"with {measure.aside}"),
            (scarce, f"in bins of fewer than {LEAST_IN_A_POINT}"),
        )
        if count > n / 100
    ]
    caption = (
        f"Share of clonotypes found in {study.shared_by} or more of {study.number('subjects')} subjects, "
        f"with 95 % intervals (Wilson); n = {number_text(n)} clonotypes"
        f"{', less ' if left_out else ''}{' and '.join(left_out)}."
    )
    first, last = values[0], values[-1]
    alt = (
        f"Share of shared clonotypes against {measure.name}: {first['share']:.1%} at the lowest bin drawn, "
        f"{last['share']:.1%} at the highest, and {max(p['share'] for p in values):.1%} at most."
    )
    place = {"from:f": f"{measure.name} from", "to:f": "to"} if measure.high else {"x:i": "N2 length (nt)"}
    given = {**measure.drawing, "top": min(1.0, max(top, 0.01)), "place_tooltip": place}
    return drawn(name, caption, alt, values, **given)


_NO_SWEEP = "The study has no counts of other models: it was run without a sweep, or without path counts."


def sweep_figures(study: Results) -> list[StudyFigure]:
    """Median counts and shares of zero counts, one panel for every pi."""
    table = study.table("sweep")
    if table is None:
        return [absent(name, _NO_SWEEP) for name in ("sweep_medians", "sweep_zeros")]
    columns = ("pi:i", "nu:i", "subjects:i", "counted:i", "zero_counts:i", "path_count_q50:f")
    names = ("pi", "nu", "subjects", "counted", "zeros", "median")
    points = [dict(zip(names, cells, strict=True)) for cells in table.rows(*columns)]
    levels = _drawn_levels(points)
    given = {"levels": levels, "colours": list(LEVELS[: len(levels)])}
    of_levels = [point for point in points if point["subjects"] in levels]
    told = _levels_text(points, levels)
    return [_sweep_medians(of_levels, told, given), _sweep_zeros(of_levels, told, given)]


def _drawn_levels(points: list[dict[str, Any]]) -> list[int]:
    sizes: dict[int, int] = defaultdict(int)
    for point in points:
        sizes[point["subjects"]] = max(sizes[point["subjects"]], point["counted"])
    enough = sorted(level for level, n in sizes.items() if n >= LEAST_IN_A_POINT) or sorted(sizes)
    if len(enough) <= len(LEVELS):
        return enough
    # One and two, and from there on evenly to the last.
    step = (len(enough) - 2) / (len(LEVELS) - 2)
    return [enough[0], *(enough[1 + round(k * step)] for k in range(len(LEVELS) - 1))]


def _sweep_medians(points: list[dict[str, Any]], levels: str, given: dict[str, Any]) -> StudyFigure:
    values = [p for p in points if p["median"]]
    if not values:
        return absent("sweep_medians", "All medians of path counts are 0.")
    caption = (
        "One panel for every longest palindromic extension (pi, nt), along it the most N nucleotides at a "
        "junction (nu, nt). Lines: median path count of clonotypes found in so many subjects. Medians of 0 "
        f"are not drawn (log scale). {levels}"
    )
    most = max(values, key=lambda p: (p["pi"], p["nu"], -p["subjects"]))
    alt = (
        "Small multiples by pi of the median path count against nu, one line for every number of subjects. "
        f"With pi {most['pi']} and nu {most['nu']} the median is {number_text(most['median'])} for "
        f"clonotypes in {most['subjects']} subject(s)."
    )
    return drawn("sweep_medians", caption, alt, values, **given)


def _sweep_zeros(points: list[dict[str, Any]], levels: str, given: dict[str, Any]) -> StudyFigure:
    values = [p | {"share": p["zeros"] / p["counted"]} for p in points if p["counted"]]
    if not values:
        return absent("sweep_zeros", "No clonotype was counted.")
    caption = (
        "Share of clonotypes that a model cannot make at all: its limits on palindromes (pi) and N "
        f"nucleotides (nu) are too narrow for them. {levels}"
    )
    least, most = min(p["share"] for p in values), max(p["share"] for p in values)
    alt = (
        "Small multiples by pi of the share of clonotypes with count 0 against nu, one line for every "
        f"number of subjects; shares are between {least:.1%} and {most:.1%}."
    )
    return drawn("sweep_zeros", caption, alt, values, **given)


def _levels_text(points: list[dict[str, Any]], levels: list[int]) -> str:
    sizes = {p["subjects"]: p["counted"] for p in points}
    told = ", ".join(f"{level}: n = {sizes[level]:,}" for level in levels)
    left = len(sizes) - len(levels)
    return f"Subjects: {told}." + (
        f" {left} other numbers of subjects are in the table only." if left else ""
    )


_MEASURES: Final = {"spearman": "Spearman's rho", "auc": "ROC curve area"}
_SCOPES: Final = {"all": "all clonotypes", "above_zero": "neither is 0"}
_NUMBERS: Final = (
    *("path_count", "pgen", "difference", "low", "high", "subjects_low", "subjects_high", "n"),
    *("pi", "nu"),
)


def pgen_figures(study: Results) -> list[StudyFigure]:
    """How much better Pgen goes with sharing than path counts do; none where there is no Pgen."""
    table = study.table("pgen_comparison")
    if table is None:
        return []
    name = "pgen_less_path_count"
    rows = _compared(table)
    values = []
    for measure, told in _MEASURES.items():
        of_measure = [row for row in rows if row["measure"] == measure]
        for scope, what in _SCOPES.items():
            values += [_value(row, told, what) for row in of_measure if row["scope"] == scope]
        of_sweep = [row for row in of_measure if row["scope"] == "sweep"]
        if of_sweep:
            best = max(of_sweep, key=lambda row: row["path_count"])
            values.append(_value(best, told, f"sweep, pi {best['pi']:g}, nu {best['nu']:g}"))
    if not values:
        return [absent(name, "There are too few clonotypes with a path count and Pgen, or none are shared.")]
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
    over_subjects = any(value["subjects_low"] is not None for value in values)
    shown = {"subjects_low:f": "over subjects from", "subjects_high:f": "to"} if over_subjects else {}
    return [drawn(name, caption, alt, values, height=38 * len(values) + 10, subjects_tooltip=shown)]


def _compared(table: StudyTable) -> list[dict[str, Any]]:
    """Rows about sharing over all clonotypes that have a difference."""
    texts = ("stratum_kind", "y", "scope", "measure")
    return [
        row
        for row in table.records(*texts, *(f"{name}:f" for name in _NUMBERS))
        if row["stratum_kind"] == "all" and row["y"] == "subjects" and row["difference"] is not None
    ]


def _value(row: dict[str, Any], measure: str, what: str) -> dict[str, Any]:
    told = {"label": f"{measure},|{what}", "measure": measure, "what": what}
    return told | {name: row[name] for name in _NUMBERS[:8]}


def pgen_sweep_figures(study: Results) -> list[StudyFigure]:
    """How well path counts of every model tell shared clonotypes, and Pgen; none where there is no Pgen."""
    table = study.table("pgen_comparison")
    if table is None:
        return []
    rows = [row for row in _compared(table) if row["scope"] == "sweep" and row["measure"] == "auc"]
    if not rows:
        return [absent("sweep_and_pgen", "The study was run without a sweep, or nothing is shared.")]
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
    return [drawn("sweep_and_pgen", caption, alt, values)]
