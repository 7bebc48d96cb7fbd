"""The report of an inference: fit, genes, deletions and insertions in one HTML file that needs no network.

Beside its command, because commands have no logic.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from plait._version import __version__
from plait.errors import FormatError
from plait.formats.atomic import AtomicFile, output_errors
from plait.reports.figure import StudyFigure, absent, check_report_drawing, drawn, drawn_with, gene_order
from plait.reports.page import Results, StudyTable, as_given, listed, read_results, report_page
from plait.vdj.model.inference_tables import INFERENCE_COLUMNS, selection_warning


def read_inference(folder: str | os.PathLike[str]) -> Results:
    """Read what ``plait vdj infer`` left in its folder: a description and tables.

    InvalidInput if it is no folder of a finished inference; FormatError if the description or a table is not
    what it should be.
    """
    return read_results("inference", folder, INFERENCE_COLUMNS)


def inference_figures(result: Results) -> list[StudyFigure]:
    """All figures, in the order of the page."""
    return [_likelihood(result), _gain(result), _entropy(result), *_end_figures(result)]


def write_inference_report(
    folder: str | os.PathLike[str], output: str | os.PathLike[str] | None = None
) -> Path:
    """Write the report of a finished inference; by default ``report.html`` in its folder. Returns the page.

    TargetUnavailable if what draws figures is not installed, InvalidInput if the folder is no finished
    inference, FormatError if it is not what it should be, or the disk does not take the report.
    """
    check_report_drawing()
    result = read_inference(folder)
    page = Path(output) if output is not None else result.folder / "report.html"
    figures = inference_figures(result)
    with AtomicFile(page) as file, output_errors(page):
        file.stream.write(_page(result, figures).encode("utf-8"))
    return page


def _page(result: Results, figures: Sequence[StudyFigure]) -> str:
    described = result.description
    facts = [
        ("rows", f"{result.number('rows'):,}"),
        ("different junctions", f"{result.number('evidence_junctions'):,}"),
        ("iterations", f"{result.number('iterations_done'):,}"),
        ("bits of entropy", f"{result.decimal(result.entries('entropies'), 'total'):.1f}"),
    ]
    chain = "V, D and J" if described.get("chain") == "vdj" else "V and J"
    warning = selection_warning(described)
    return report_page(
        "inference",
        result,
        figures,
        title=f"A recombination model of {chain} from {result.number('junctions'):,} junctions",
        facts=facts,
        methods=_methods(result),
        warnings={"genes": [f"{warning[0].upper()}{warning[1:]}."]} if warning else {},
    )


def _methods(result: Results) -> list[dict[str, Any]]:
    described = result.description
    made = [
        ["model made by plait", as_given(described.get("version", "unknown"))],
        ["report made by plait", __version__],
        ["figures drawn with", drawn_with()],
        ["algorithm", as_given(described.get("algorithm"))],
        ["converged", as_given(described.get("converged"))],
    ]
    parts = [
        {"title": "Parameters", "rows": listed(result.entries("parameters"))},
        {"title": "Start", "rows": listed(result.entries("start"))},
        {"title": "Versions and provenance", "rows": made},
        {"title": "Rows by kind", "rows": listed(result.entries("rows_by_kind"))},
    ]
    unknown = listed(result.entries("unknown_calls"))
    return [*parts, {"title": "Calls that the model does not know", "rows": unknown or [["none", ""]]}]


#: Genes that a figure has room for.
_MOST_GENES: Final = 70
#: Of a line with one gene, in pixels.
_GENE_HEIGHT: Final = 15
_GROUPS: Final = {"V": "genes", "J": "genes", "D": "genes", "deletions": "deletions"}


def _likelihood(result: Results) -> StudyFigure:
    table = result.table("iterations")
    if table is None:
        return absent("log_likelihood", "No iteration was finished.")
    values = table.records("iteration:i", "log_likelihood:f", "gain:f")
    first, last = values[0], values[-1]
    caption = (
        f"Mean natural logarithm of the probability of a junction under the model before each iteration: "
        f"{first['log_likelihood']:.4f} to {last['log_likelihood']:.4f}. It cannot fall, but for rounding "
        "and pseudocounts."
    )
    alt = f"Line of the mean log-likelihood over {len(values)} iterations. {caption}"
    return drawn("log_likelihood", caption, alt, values)


def _gain(result: Results) -> StudyFigure:
    table = result.table("iterations")
    rows = table.records("iteration:i", "gain:f") if table is not None else []
    values = [row for row in rows if row["gain"] is not None and row["gain"] > 0]
    if not values:
        return absent("gain", "There was one iteration only.")
    tolerance = result.decimal(result.entries("parameters"), "tolerance")
    ended = "iterations ended below it" if result.description.get("converged") else "it was not reached"
    caption = f"Growth of the mean log-likelihood, log scale. The tolerance was {tolerance:g}; {ended}."
    alt = f"Line of what iterations gained, from {values[0]['gain']:.3g} to {values[-1]['gain']:.3g}."
    return drawn("gain", caption, alt, values, tolerance=tolerance)


def _entropy(result: Results) -> StudyFigure:
    table = result.table("entropy")
    if table is None:
        return absent("entropy", "The run has no entropies.")
    bits: dict[str, float | None] = dict(table.rows("choice", "bits:f"))
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
    told = "; ".join(f"{value['choice']} {value['bits']:.2f}" for value in values)
    return drawn("entropy", caption, f"Bars of bits: {told}.", values, height=24 * len(values))


def _ranked_genes(result: Results, segment: str) -> tuple[list[dict[str, Any]], int]:
    """Genes (of V, D or J) that were seen, by name, and how many of the rarest ones have no room."""
    table = result.table("genes")
    if table is None:
        return [], 0
    numbers = ("probability:f", "standard_error:f", "expected_count:f", "mean_deletion:f")
    rows = [
        {
            "gene": gene,
            "probability": p or 0.0,
            "error": error or 0.0,
            "count": n or 0.0,
            "deletion": mean,
            "few": few,
        }
        for kind, gene, p, error, n, mean, few in table.rows("segment", "gene", *numbers, "few")
        if kind == segment and n
    ]
    rows.sort(key=lambda row: -row["probability"])
    kept = sorted(rows[:_MOST_GENES], key=lambda row: gene_order(row["gene"]))
    for order, row in enumerate(kept):
        row |= {
            "order": order,
            "low": max(row["probability"] - 2 * row["error"], 0.0),
            "high": row["probability"] + 2 * row["error"],
            "evidence": "few" if row["few"] == "yes" else "enough",
        }
    return kept, len(rows) - len(kept)


def _usage(result: Results, segment: str) -> StudyFigure:
    """How often V or J genes are chosen."""
    name = f"{segment.lower()}_usage"
    rows, left = _ranked_genes(result, segment)
    if not rows:
        return absent(name, f"No {segment} gene was seen.")
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
    return drawn(name, caption, alt, rows, height=max(90, _GENE_HEIGHT * len(rows)))


def _genes_together(table: StudyTable) -> StudyFigure:
    """D and J, or V and J, as a heat map, from the table of evidence."""
    name = "genes_together"
    cells = list(table.rows("event", "given", "value", "probability:f", "expected_count:f"))
    pairs = [(*value.split(" ", 1), p, n) for event, _, value, p, n in cells if event == "d_and_j_gene" and p]
    first = "D gene"
    if not pairs:
        of_v = {value: p or 0.0 for event, _, value, p, _ in cells if event == "v_gene"}
        pairs = [
            (given, value, of_v.get(given, 0.0) * p, n)
            for event, given, value, p, n in cells
            if event == "j_gene" and given and p
        ]
        first = "V gene"
    if not pairs:
        return absent(name, "J is chosen for itself.")
    values = [{"one": one, "other": other, "probability": p, "count": n or 0.0} for one, other, p, n in pairs]
    shares: dict[str, float] = {}
    for value in values:
        shares[value["one"]] = shares.get(value["one"], 0.0) + value["probability"]
    kept = set(sorted(shares, key=lambda gene: -shares[gene])[:_MOST_GENES])
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
    figure = drawn(name, caption, alt, values, first=first, height=max(70, 17 * len(kept)))
    return replace(figure, title=f"{first}s with J genes")


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

    def __init__(self, result: Results) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        table = result.table("evidence")
        if table is None:
            return
        columns = ("probability:f", "standard_error:f", "expected_count:f", "total:f")
        for event, given, value, p, error, n, total in table.rows("event", "given", "value", *columns):
            numbers = 2 if event == "d_5_and_3_deletion" else 1
            if event.endswith(_COUNTED) and not re.fullmatch(rf"(?:(^| )-?[0-9]{{1,5}}){{{numbers}}}", value):
                expected = f"{numbers} whole number{'s' if numbers > 1 else ''} for {event}"
                raise FormatError(table.path, column="value", found=repr(value[:40]), expected=expected)
            row = {"given": given, "value": value, "p": p or 0.0, "error": error or 0.0}
            self.rows[event].append({**row, "count": n or 0.0, "total": total or 0.0})


def _end_figures(result: Results) -> list[StudyFigure]:
    """Genes with their deletions, insertions, and N nucleotides."""
    evidence = _Evidence(result)
    figures = [_mean_deletions(evidence)]
    for segment, event in (("V", "v_3_deletion"), ("J", "j_5_deletion")):
        # Beside each other: they have the same genes in the same order.
        figures += [_usage(result, segment), _deletions_by_gene(result, evidence, segment, event)]
    table = result.table("evidence")
    if table is not None:
        figures.append(_genes_together(table))
    if evidence.rows["d_5_and_3_deletion"]:
        figures.append(_d_deletions(evidence))
    return [*figures, _lengths(evidence), _steps(evidence)]


def _mean_deletions(evidence: _Evidence) -> StudyFigure:
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
        return absent("deletions", "There is no evidence of deletions.")
    means = {end: sum(k * n for k, n in sums[end].items()) / totals[end] for end in _ENDS if totals.get(end)}
    told = ", ".join(f"{end} {mean:.1f}" for end, mean in means.items())
    caption = (
        f"Expected shares of numbers of deleted nucleotides. Below zero: P nucleotides. Means: {told}. D "
        "that is deleted as a whole can be so in many ways, which are equally probable at first."
    )
    alt = f"Histograms of deletions. Means: {told}."
    ends = list(means)
    return drawn("deletions", caption, alt, values, ends=ends, colours=[_ENDS[end] for end in ends])


def _deletions_by_gene(result: Results, evidence: _Evidence, segment: str, event: str) -> StudyFigure:
    name = f"{segment.lower()}_deletions"
    genes, left = _ranked_genes(result, segment)
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
        return absent(name, f"No {segment} gene was seen.")
    caption = "Probability of each number of deletions; P nucleotides below zero. Brackets: expected choices."
    if left:
        caption += f" The {left} rarest genes are in the table."
    alt = f"Heat map of the deletions of {len(genes)} {segment} genes."
    return drawn(name, caption, alt, values, height=max(90, _GENE_HEIGHT * len(genes)))


def _d_deletions(evidence: _Evidence) -> StudyFigure:
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
    return drawn("d_deletions", caption, alt, values, genes=genes)


def _lengths(evidence: _Evidence) -> StudyFigure:
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
        return absent("insertion_lengths", "There is no evidence of insertions.")
    told = ", ".join(f"{junction} {mean:.2f}" for junction, mean in means.items())
    caption = f"Probability of each number, with two standard errors on either side. Means: {told}."
    alt = f"Lines of the distributions of numbers of inserted nucleotides. Means: {told}."
    colours = ["$count", "$shared"][: len(means)]
    return drawn("insertion_lengths", caption, alt, values, junctions=list(means), colours=colours)


def _steps(evidence: _Evidence) -> StudyFigure:
    values = []
    for short, junction in _JUNCTIONS.items():
        for row in evidence.rows[f"{short}_nucleotide"]:
            direction = "from J, 3' to 5'" if short == "dj" else "5' to 3'"
            values.append(
                {
                    "panel": f"{junction} ({direction})",
                    "before": row["given"].removeprefix("after "),
                    "next": row["value"],
                    "p": row["p"],
                    "count": row["count"],
                    "ink": "strong" if row["p"] > 0.33 else "weak",
                }
            )
    if not values:
        return absent("n_nucleotides", "No N nucleotide follows another one.")
    caption = (
        "Rows: the nucleotide before; columns: the one that is added to it. Rows add up to 1. Between D and "
        "J insertions are read from J."
    )
    told = ", ".join(f"{v['next']} after {v['before']} {v['p']:.2f} ({v['panel']})" for v in values[:8])
    alt = f"Heat maps of the probabilities of N nucleotides: {told}."
    return drawn("n_nucleotides", caption, alt, values)
