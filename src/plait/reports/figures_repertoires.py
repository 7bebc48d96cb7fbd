"""Figures of repertoires: diversity, V genes, overlaps, and clonotypes that are public."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from plait.reports.figure import StudyFigure, absent, drawn, gene_order, number_text
from plait.reports.page import Results
from plait.vdj.repertoires.diversity import RepertoireDiversity

_Rows = Sequence[Mapping[str, Any]]

#: Of curves; with more subjects, all have one.
_COLOURS: Final = ("$count", "$shared", "$n2", "$n1", "$ndn", "$region", "$pgen", "$alone")
_ROW: Final = 24
_GENE_ROW: Final = 15
#: Subjects of a matrix, and sets of them, that are drawn.
_MOST_SUBJECTS: Final = 40
_MOST_SETS: Final = 20
#: Pixels of a matrix of sets: bars, what their numbers take above them, a gap, and a line of the matrix.
_BARS: Final = 170
_ABOVE: Final = 50
_GAP: Final = 8
_LINE: Final = 20
_Z: Final = 1.96


def diversity_figures(found: RepertoireDiversity) -> list[StudyFigure]:
    """The figures, each with what it shows in words."""
    rows = found.diversity.to_pylist()
    told = "; ".join(
        f"{row['subject']} {row['hill_0']:,.0f} of {row['hill_0_estimate']:,.0f}" for row in rows[:12]
    )
    return [
        drawn(
            "diversity",
            "Distinct clonotypes seen, and how many there are at least (Chao1), with intervals of 95 %.",
            f"Clonotypes seen of those estimated: {told}{'; ...' if len(rows) > 12 else ''}.",
            rows,
            height=_ROW * len(rows),
        ),
        _rarefaction(found.rarefaction.to_pylist()),
        _v_genes([row for row in found.usage.to_pylist() if row["segment"] == "V"]),
    ]


def _rarefaction(rows: _Rows) -> StudyFigure:
    curves = [row for row in rows if row["order"] == 0]
    subjects = len({row["subject"] for row in curves})
    few = subjects <= len(_COLOURS)
    return drawn(
        "rarefaction",
        "Expected clonotypes by the number of copies; dots are what was seen, dashed lines go to double the "
        "depth, bands are intervals of 95 %.",
        f"One rising curve for each of {subjects} subjects, with its interval.",
        curves,
        colours=list(_COLOURS[:subjects]) if few else ["$count"] * subjects,
        legend={"title": None, "symbolOpacity": 1} if few else None,
    )


def _v_genes(rows: _Rows) -> StudyFigure:
    genes = sorted({row["v_gene"] for row in rows}, key=gene_order)
    order = {gene: k for k, gene in enumerate(genes)}
    usage = [{**row, "gene": row["v_gene"], "order": order[row["v_gene"]]} for row in rows]
    most = max(usage, key=lambda row: row["clonotypes_share"])
    return drawn(
        "v_by_subject",
        "Share of the clonotypes of each subject that have a V gene.",
        f"The largest share: {most['gene']} in {most['subject']}, {most['clonotypes_share']:.1%}.",
        usage,
        height=_GENE_ROW * len(genes),
    )


def subject_figures(study: Results) -> list[StudyFigure]:
    """V genes by subject, and rarefaction, of a study."""
    usage, curves = study.table("v_by_subject"), study.table("rarefaction")
    if usage is None or curves is None:
        return [absent(name, "The study has no clonotypes.") for name in ("v_by_subject", "rarefaction")]
    rows = usage.records("subject", "v_gene", "clonotypes:i")
    totals: dict[str, int] = defaultdict(int)
    for row in rows:
        totals[row["subject"]] += row["clonotypes"]
    for row in rows:
        row["clonotypes_share"] = row["clonotypes"] / max(totals[row["subject"]], 1)
    numbers = ("order:i", "copies:i", "diversity:f", "low:f", "high:f", "coverage:f")
    return [_v_genes(rows), _rarefaction(curves.records("subject", "part", *numbers))]


def public_figures(study: Results) -> list[StudyFigure]:
    """How many clonotypes are public, and are expected to be; who shares what; how alike subjects are."""
    figures = []
    for name, source, draw, why in (
        ("observed_and_expected_sharing", "expected_sharing", _expected, _NO_MODEL),
        ("subject_sets", "subject_sets", _sets, _ONE),
        ("overlap_matrix", "overlaps", _overlaps, _ONE),
    ):
        there = study.table(source) is not None and study.number("subjects") > 1
        figures.append(draw(study) if there else absent(name, why if study.table(source) is None else _ONE))
    return figures


_NO_MODEL: Final = (
    "The study has no model of recombination, so nothing is expected (--model of plait vdj study)."
)
_ONE: Final = "There is one subject only, so nothing can be shared."
_SERIES: Final = {"expected": "expected", "observed": "observed", "beyond": "more public than expected"}


def _records(study: Results, name: str, *columns: str) -> list[dict[str, Any]]:
    table = study.table(name)
    return [] if table is None else table.records(*columns)


def _expected(study: Results) -> StudyFigure:
    names = ("subjects:i", "observed:f", "expected:f", "expected_sd:f", "beyond:f")
    rows = _records(study, "expected_sharing", *names)
    values = []
    for row in rows:
        for name, told in _SERIES.items():
            n, sd = row[name] or 0.0, (row["expected_sd"] or 0.0) if name == "expected" else 0.0
            low, high = max(n - _Z * sd, _LEAST), n + _Z * sd
            if n >= _LEAST:
                values.append({"subjects": row["subjects"], "what": told, "n": n, "low": low, "high": high})
    several = [row for row in rows if row["subjects"] > 2]
    expected, seen, beyond = (sum(row[name] or 0 for row in several) for name in _SERIES)
    caption = (
        "Clonotypes by the number of subjects that have them, and as generation and selection at random lead "
        "to expect, with intervals of 95 %. More public than expected: at a false discovery rate of 5 %."
    )
    alt = (
        f"In three or more subjects {number_text(seen)} clonotypes are observed and {number_text(expected)} "
        f"expected; {number_text(beyond)} of them are more public than expected."
    )
    most = max((value["high"] for value in values), default=1.0)
    given = {
        "names": list(_SERIES.values()),
        "domain": [0.7, max((value["subjects"] for value in values), default=1) + 0.3],
        "numbers": [_LEAST, 1.5 * most],
        "powers": [10**k for k in range(math.ceil(math.log10(most)) + 1)],
    }
    return drawn("observed_and_expected_sharing", caption, alt, values, **given)


#: Clonotypes below which a number is not drawn.
_LEAST: Final = 0.5


def _sets(study: Results) -> StudyFigure:
    found: dict[int, tuple[int, list[str]]] = {}
    for number, clonotypes, subject in _records_of_sets(study):
        found.setdefault(number, (clonotypes, []))[1].append(subject)
    subjects = sorted({name for _, names in found.values() for name in names}, key=gene_order)
    shared = [one for one in found.values() if len(one[1]) > 1]
    if not shared:
        return absent("subject_sets", "No clonotype is in two subjects.")
    drawn_sets, most = shared[:_MOST_SETS], shared[0][0]
    values: list[dict[str, Any]] = []
    for k, (clonotypes, names) in enumerate(drawn_sets):
        told = {"set": k, "clonotypes": clonotypes}
        top = _BARS - max(1, round((_BARS - _ABOVE) * clonotypes / most))
        values.append(told | {"names": ", ".join(names), "top": top, "bottom": _BARS})
        values += [
            told | {"subject": name, "order": at, "in": name in names} for at, name in enumerate(subjects)
        ]
    others = study.number("subjects") - len(subjects)
    caption = (
        "Clonotypes that the subjects marked by dots have in common, and none of the other subjects: the "
        f"{len(drawn_sets)} largest of {len(shared)} such sets of two subjects or more."
    )
    if others:
        caption += f" Of the {len(subjects)} subjects with most reads; {others} others are not looked at."
    alt = "Largest sets: " + "; ".join(f"{', '.join(names)}: {n:,}" for n, names in drawn_sets[:5]) + "."
    height = _BARS + _GAP + _LINE * len(subjects)
    return drawn("subject_sets", caption, alt, values, height=height, lines=[_BARS + _GAP, height])


def _records_of_sets(study: Results) -> list[tuple[int, int, str]]:
    rows = _records(study, "subject_sets", "set:i", "clonotypes:i", "subject")
    return [(row["set"], row["clonotypes"], row["subject"]) for row in rows]


def _overlaps(study: Results) -> StudyFigure:
    columns = ("subject_a", "subject_b", "clonotypes_a:i", "clonotypes_b:i", "shared:i")
    rows = _records(
        study, "overlaps", *columns, "jaccard:f", "jaccard_at_depth:f", "morisita_horn:f", "depth:i"
    )
    sizes = {row["subject_a"]: row["clonotypes_a"] for row in rows}
    sizes |= {row["subject_b"]: row["clonotypes_b"] for row in rows}
    kept = sorted(sorted(sizes, key=lambda name: (-sizes[name], name))[:_MOST_SUBJECTS], key=gene_order)
    there = set(kept)
    rows = [row for row in rows if row["subject_a"] in there and row["subject_b"] in there]
    order = {name: k for k, name in enumerate(kept)}
    values = []
    for row in rows:
        numbers = {name: row[name] for name in ("shared", "jaccard", "jaccard_at_depth", "morisita_horn")}
        for a, b in ((row["subject_a"], row["subject_b"]), (row["subject_b"], row["subject_a"])):
            values.append({"a": a, "b": b, "order_a": order[a], "order_b": order[b], **numbers})
    most = max(rows, key=lambda row: row["jaccard_at_depth"] or 0.0)
    caption = (
        "Clonotypes that two subjects have in common, of all that either has (Jaccard's index), expected at "
        f"{number_text(rows[0]['depth'])} reads of each, so that depth does not matter."
    )
    if len(sizes) > len(kept):
        caption += f" The {len(kept)} subjects with most clonotypes are drawn."
    alt = (
        f"Matrix of {len(kept)} subjects; the most alike are {most['subject_a']} and {most['subject_b']}, "
        f"with {most['shared']:,} clonotypes in common."
    )
    return drawn("overlap_matrix", caption, alt, values, height=max(120, _ROW * len(kept)))
