"""What ``plait vdj study`` and ``plait vdj report`` say when they are done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plait.reports.plain_text import aligned, paragraph, percent
from plait.reports.study_report import StudyReport
from plait.vdj.convergence.claims import as_text
from plait.vdj.convergence.run import Study
from plait.vdj.convergence.table_text import number, read_table

#: Sharing levels that are shown; the others are in the table.
_MOST_LEVELS = 10


def study_text(found: Study, *, seconds: float) -> str:
    """The study in lines that fit a terminal."""
    facts = found.facts
    reused = sum(entry["counts_reused"] for entry in facts["inputs"])
    rate = f", {facts['rows'] / seconds:,.0f} rows/s" if facts["rows"] and seconds > 0 else ""
    lines = [
        f"{facts['rows']:,} rows of {_plural(len(facts['inputs']), 'file')}, "
        f"{_plural(facts['subjects'], 'subject')} in {seconds:.1f} s{rate}",
        f"{_plural(facts['clonotypes'], 'clonotype')}, {facts['shared_clonotypes']:,} of them shared by "
        f"{facts['shared_by']} subjects or more",
    ]
    if reused:
        lines += paragraph(f"Path counts of {_plural(reused, 'file')} were there already.")
    lines += _left_out_lines(found)
    for note in facts["notes"]:
        lines += paragraph(f"Note: {note}")
    if facts["clonotypes"]:
        lines += ["", *_level_lines(found)]
    for answer in facts["answers"]:
        lines += ["", *paragraph(answer["headline"]), *paragraph(_short(answer), indent=2)]
    lines += _regression_lines(facts["regression"])
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


def _plural(n: int, word: str) -> str:
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def _left_out_lines(found: Study) -> list[str]:
    facts = found.facts
    lines = []
    for reason, rows in sorted(facts["left_out"].items()):
        share = percent(rows, facts["rows"])
        are = f"{_plural(rows, 'row')} ({share}) {'is' if rows == 1 else 'are'}"
        lines += paragraph(f"{are} in no clonotype: {reason.replace('_', ' ', 1)}.")
    uncounted = facts["clonotypes"] - facts["counted_clonotypes"]
    if uncounted:
        share = percent(uncounted, facts["clonotypes"])
        have = f"{_plural(uncounted, 'clonotype')} ({share}) {'has' if uncounted == 1 else 'have'}"
        lines += paragraph(f"{have} no path count; statuses.tsv says why{_most_often(found)}.")
    return lines


def _most_often(found: Study) -> str:
    """The most frequent reason for which rows were not counted."""
    statuses = [row for row in read_table(found.tables["statuses"]) if row["status"] != "ok"]
    if not statuses:
        return ""
    most = max(statuses, key=lambda row: int(row["rows"]))
    return f"; most often: {most['meaning']} ({_plural(int(most['rows']), 'row')})"


def _level_lines(found: Study) -> list[str]:
    levels = read_table(found.tables["sharing_levels"])
    rows = [["subjects", "clonotypes", "median count", "middle half of counts", "mean N2"]]
    for level in levels[:_MOST_LEVELS]:
        ends = [_count(level[f"path_count_q{q}"]) for q in (25, 75)]
        middle = "-" if ends == ["-", "-"] else " - ".join(ends)
        length = number(level.get("n2_length_mean"))
        rows.append(
            [
                level["subjects"],
                f"{int(level['clonotypes']):,}",
                _count(level["path_count_q50"]),
                middle,
                "-" if length is None else f"{length:.2f}",
            ]
        )
    lines = aligned(rows, ">>>>>")
    if len(levels) > _MOST_LEVELS:
        lines += [f"  and {len(levels) - _MOST_LEVELS} more, in sharing_levels.tsv"]
    return lines


def _count(cell: str) -> str:
    value = number(cell)
    if value is None:
        return "-"
    return f"{value:,.0f}" if value < 1e12 else f"{value:.3g}"


def _regression_lines(summary: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for warning in summary.get("warnings", ()):
        lines += ["", *paragraph(f"Regression: {warning}")]
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
