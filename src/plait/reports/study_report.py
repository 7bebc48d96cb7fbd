"""The report of a study: one HTML file, every figure as PNG and SVG beside it, and what a terminal is told.

Here are the figures of the repertoires, too: gene usage, CDR3 lengths and N nucleotides.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from plait._version import __version__
from plait.formats.atomic import AtomicFile, output_errors
from plait.reports.figure import (
    LEAST_IN_A_POINT,
    StudyFigure,
    absent,
    check_report_drawing,
    drawn,
    drawn_with,
    figure_files,
    gene_order,
    short_names,
)
from plait.reports.figures_regression import regression_figures
from plait.reports.figures_sharing import (
    correlation_figures,
    distribution_figures,
    driver_figures,
    pgen_figures,
    pgen_sweep_figures,
    sweep_figures,
)
from plait.reports.page import Results, StudyTable, as_given, as_read, listed, read_study, report_page
from plait.reports.plain_text import aligned, large_number, paragraph, percent, plural, rate_text
from plait.vdj.convergence.claims import as_text, number, read_table
from plait.vdj.convergence.study import Study

_MOST_GENES = 70
_MOST_SUBJECTS = 24
_SPANS: Final = {"n1": "N1 (V-D)", "n2": "N2 (D-J)", "ndn": "V-J gap (N1, D, N2)"}


def gene_figures(study: Results) -> list[StudyFigure]:
    """Heat maps of V and J genes: clonotypes, and the share of shared ones."""
    table = study.table("vj_usage")
    if table is None:
        why = "The study has no clonotypes with a V and a J gene."
        return [absent(name, why) for name in ("vj_usage", "vj_shared")]
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
    figures = [_heat_map("vj_usage", usage, alt, values, "clonotypes")]
    enough = [value for value in values if value["clonotypes"] >= LEAST_IN_A_POINT]
    if study.number("subjects") < 2 or not enough:
        why = "There is one subject only." if enough else "No pair of genes has enough clonotypes."
        return [*figures, absent("vj_shared", why)]
    share = (
        f"Colour: share of clonotypes found in {study.shared_by} or more subjects, for pairs of at least "
        f"{LEAST_IN_A_POINT} clonotypes.{rest}"
    )
    top = max(enough, key=lambda value: value["share"])
    alt = (
        f"Heat map of the share of shared clonotypes by V and J gene. It is largest for {top['v']} with "
        f"{top['j']}: {top['share']:.1%} of {top['clonotypes']:,}."
    )
    return [*figures, _heat_map("vj_shared", share, alt, enough, "share")]


def _gene_values(table: StudyTable) -> tuple[list[dict[str, Any]], int]:
    """One value for every pair of genes; with the number of genes left out."""
    columns = ("v_gene", "j_gene", "clonotypes:i", "shared_clonotypes:i", "rows:i")
    pairs = list(table.rows(*columns))
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


def _heat_map(name: str, caption: str, alt: str, values: list[dict[str, Any]], field: str) -> StudyFigure:
    counts = field == "clonotypes"
    most = max(value[field] for value in values)
    legend: dict[str, Any] = {"title": field if counts else "shared"}
    scale: dict[str, Any] = {"zero": True}
    if counts and most > 1:
        scale = {"type": "log", "nice": False, "domain": [min(value[field] for value in values), most]}
        powers = [10**k for k in range(len(str(most)))]
        legend["values"] = [power for power in powers if 2.5 * power < most] + [most]
    legend["format"] = ".3~s" if counts else "~p"
    height = max(120, 17 * len({value["v"] for value in values}))
    return drawn(name, caption, alt, values, field=field, scale=scale, legend=legend, height=height)


def repertoire_figures(study: Results) -> list[StudyFigure]:
    """Gene usage, CDR3 lengths and N composition."""
    return [*gene_figures(study), _length_figure(study), _composition_figure(study)]


def _length_figure(study: Results) -> StudyFigure:
    table = study.table("cdr3_lengths")
    if table is None:
        return absent("cdr3_lengths", "The study has no junction lengths.")
    spectra: dict[str, dict[int, int]] = defaultdict(dict)
    for subject, length, n in table.rows("subject", "junction_length:i", "clonotypes:i"):
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
    return drawn("cdr3_lengths", caption, alt, values)


def _composition_figure(study: Results) -> StudyFigure:
    table = study.table("n_composition")
    if table is None:
        return absent("n_composition", "The study has no N nucleotides: no regions were called.")
    columns = ("span", "base", "shared", "share:f", "low:f", "high:f", "nucleotides:i")
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
        for span, base, shared, share, low, high, n in table.rows(*columns)
        if share is not None
    ]
    if not values:
        return absent("n_composition", "The study has no N nucleotides.")
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
    spans = [span for span in _SPANS.values() if any(x["span"] == span for x in values)]
    return drawn("n_composition", caption, alt, values, spans=spans)


_MOST_INPUTS: Final = 500


def study_page(study: Results, figures: Sequence[StudyFigure]) -> str:
    """The whole page as HTML; figures are those of `study_figures`."""
    clonotypes, subjects = study.number("clonotypes"), study.number("subjects")
    rows, shared = study.number("rows"), study.number("shared_clonotypes")
    left_out = study.entries("left_out")
    left = sum(int(study.decimal(left_out, reason)) for reason in left_out)
    facts = [("subjects", f"{subjects:,}"), ("rows", f"{rows:,}"), ("clonotypes", f"{clonotypes:,}")]
    if subjects > 1:
        share = f" ({shared / clonotypes:.1%})" if clonotypes else ""
        facts.append((f"in {study.shared_by} or more subjects", f"{shared:,}{share}"))
    facts.append(("rows left out", f"{left:,}"))
    told = study.entries("regression").get("warnings")
    return report_page(
        "study",
        study,
        figures,
        title=f"Convergent recombination in {subjects:,} subject{'' if subjects == 1 else 's'}",
        facts=facts,
        methods=_methods(study),
        warnings={"regression": [str(text) for text in told] if isinstance(told, list) else []},
    )


def _methods(study: Results) -> list[dict[str, Any]]:
    described = study.description
    parts: list[dict[str, Any]] = []
    for key, title in (("parameters", "Parameters"), ("provenance", "Versions and provenance")):
        rows = listed(study.entries(key))
        if key == "provenance":
            made = [["study made by plait", as_given(described.get("version", "unknown"))]]
            rows = [*made, ["report made by plait", __version__], ["figures drawn with", drawn_with()], *rows]
        parts.append({"title": title, "rows": rows})
    inputs = [
        [
            str(item.get("file", "")),
            ", ".join(f"{k}: {as_given(v)}" for k, v in item.items() if k != "file"),
        ]
        for item in study.items("inputs")
    ]
    parts.append({"title": f"Inputs ({len(inputs):,})", "rows": inputs[:_MOST_INPUTS]})
    if len(inputs) > _MOST_INPUTS:
        parts[-1]["rows"].append([f"{len(inputs) - _MOST_INPUTS:,} more", "in study.json"])
    left = listed(study.entries("left_out"), lambda n: f"{as_given(n)} rows")
    parts.append({"title": "Rows left out", "rows": left or [["none", ""]]})
    regression = {name: value for name, value in study.entries("regression").items() if name != "warnings"}
    timings = listed(study.entries("timings"), lambda seconds: f"{as_read(seconds)} s")
    others = (("Regression", listed(regression, as_read)), ("Time taken", timings))
    return [*parts, *({"title": title, "rows": rows} for title, rows in others if rows)]


@dataclass(frozen=True, slots=True)
class StudyReport:
    """What was written: the page, its bytes, PNG and SVG of each figure.

    `missing`: titles of figures that the study has no data for.
    """

    page: Path
    page_bytes: int
    figures: tuple[Path, ...]
    missing: tuple[str, ...]


def study_figures(study: Results) -> list[StudyFigure]:
    """All figures, in the order of the page; FormatError if a table is not what it should be."""
    return [
        *driver_figures(study),
        *pgen_figures(study),
        *distribution_figures(study),
        *regression_figures(study),
        *correlation_figures(study),
        *sweep_figures(study),
        *pgen_sweep_figures(study),
        *repertoire_figures(study),
    ]


def write_study_report(
    folder: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    figures: bool = True,
    progress: Callable[[str], None] | None = None,
) -> StudyReport:
    """Write the report of a finished study: a page, by default ``report.html`` in its folder, and figures.

    Reads only ``study.json`` and ``tables``; writes figures to ``figures`` there. `progress` gets each
    figure's name before it is drawn. TargetUnavailable if what draws is not installed; InvalidInput if it is
    no finished study, or the output cannot have its name; FormatError if the study is damaged, or the page
    cannot be written.
    """
    check_report_drawing()
    study = read_study(folder)
    page = Path(output) if output is not None else study.folder / "report.html"
    drawn = study_figures(study)
    with AtomicFile(page) as file, output_errors(page):
        content = study_page(study, drawn).encode("utf-8")
        file.stream.write(content)
        written = _write_figures(drawn, study.folder / "figures", progress) if figures else []
    missing = tuple(figure.title for figure in drawn if figure.spec is None)
    return StudyReport(page, len(content), tuple(written), missing)


def _write_figures(
    figures: Sequence[StudyFigure], folder: Path, progress: Callable[[str], None] | None
) -> list[Path]:
    with output_errors(folder):
        folder.mkdir(exist_ok=True)
    written = []
    for figure in figures:
        # A figure of an earlier run, of which this one has none, would tell what is not so any more.
        paths = [folder / f"{figure.name}.{kind}" for kind in ("png", "svg")]
        if figure.spec is None:
            with output_errors(folder):
                for path in paths:
                    path.unlink(missing_ok=True)
            continue
        if progress is not None:
            progress(figure.name)
        for path, content in zip(paths, figure_files(figure), strict=True):
            with AtomicFile(path, durable=False) as file, output_errors(path):
                file.stream.write(content)
            written.append(path)
    return written


#: Sharing levels that are shown; the others are in the table.
_MOST_LEVELS = 10


def study_text(found: Study, *, seconds: float) -> str:
    """The study in lines that fit a terminal."""
    facts = found.facts
    reused = sum(entry["counts_reused"] for entry in facts["inputs"])
    lines = [
        f"{facts['rows']:,} rows of {plural(len(facts['inputs']), 'file')}, "
        f"{plural(facts['subjects'], 'subject')} {rate_text(facts['rows'], seconds)}",
        f"{plural(facts['clonotypes'], 'clonotype')}, {facts['shared_clonotypes']:,} of them shared by "
        f"{facts['shared_by']} subjects or more",
    ]
    if reused:
        lines += paragraph(f"Path counts of {plural(reused, 'file')} were there already.")
    lines += _left_out_lines(found)
    for note in facts["notes"]:
        lines += paragraph(f"Note: {note}")
    if facts["clonotypes"]:
        lines += ["", *_level_lines(found)]
    for answer in facts["answers"]:
        lines += ["", *paragraph(answer["headline"]), *paragraph(_short(answer), indent=2)]
    for warning in facts["regression"].get("warnings", ()):
        lines += ["", *paragraph(f"Regression: {warning}")]
    lines += ["", f"tables   {found.folder / 'tables'}", f"answers  {found.folder / 'study.json'}"]
    lines += [f"report   plait vdj report {found.folder}"]
    return "\n".join(lines) + "\n"


def _short(answer: Mapping[str, Any]) -> str:
    """The text of an answer; of a correlation its figures over all alone."""
    figures = answer["figures"]
    if figures.get("spearman") is None:
        return str(answer["text"])
    rho, low, high = (figures[f"spearman{end}"] for end in ("", "_low", "_high"))
    interval = "" if low is None or high is None else f" ({as_text(low)} to {as_text(high)})"
    return f"Spearman's rho {as_text(rho)}{interval}, n = {figures['n']:,}"


def _left_out_lines(found: Study) -> list[str]:
    facts = found.facts
    lines = []
    for reason, rows in sorted(facts["left_out"].items()):
        share = percent(rows, facts["rows"])
        are = f"{plural(rows, 'row')} ({share}) {'is' if rows == 1 else 'are'}"
        lines += paragraph(f"{are} in no clonotype: {reason.replace('_', ' ', 1)}.")
    uncounted = facts["clonotypes"] - facts["counted_clonotypes"]
    if uncounted:
        share = percent(uncounted, facts["clonotypes"])
        have = f"{plural(uncounted, 'clonotype')} ({share}) {'has' if uncounted == 1 else 'have'}"
        lines += paragraph(f"{have} no path count; statuses.tsv says why{_most_often(found)}.")
    return lines


def _most_often(found: Study) -> str:
    """The most frequent reason for which rows were not counted."""
    statuses = [row for row in read_table(found.tables["statuses"]) if row["status"] != "ok"]
    if not statuses:
        return ""
    most = max(statuses, key=lambda row: int(row["rows"]))
    return f"; most often: {most['meaning']} ({plural(int(most['rows']), 'row')})"


def _level_lines(found: Study) -> list[str]:
    levels = read_table(found.tables["sharing_levels"])
    rows = [["subjects", "clonotypes", "median count", "middle half of counts", "mean N2"]]
    for level in levels[:_MOST_LEVELS]:
        ends = [large_number(number(level[f"path_count_q{q}"])) for q in (25, 75)]
        middle = "-" if ends == ["-", "-"] else " - ".join(ends)
        length = number(level.get("n2_length_mean"))
        rows.append(
            [
                level["subjects"],
                f"{int(level['clonotypes']):,}",
                large_number(number(level["path_count_q50"])),
                middle,
                "-" if length is None else f"{length:.2f}",
            ]
        )
    lines = aligned(rows, ">>>>>")
    if len(levels) > _MOST_LEVELS:
        lines += [f"  and {len(levels) - _MOST_LEVELS} more, in sharing_levels.tsv"]
    return lines


def report_text(written: StudyReport) -> str:
    """Where figures and page are; the page last, so that a script finds it."""
    lines = []
    if written.missing:
        missing = "; ".join(written.missing)
        lines += paragraph(f"{len(written.missing)} figures have no data in this study: {missing}.")
    if written.figures:
        number = len(written.figures) // 2
        lines.append(f"figures  {written.figures[0].parent} ({number} as PNG and SVG)")
    lines.append(f"page     {written.page} ({written.page_bytes / 1e6:.1f} MB)")
    return "\n".join(lines) + "\n"
