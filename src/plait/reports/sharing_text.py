"""Sharing as text: how many clonotypes are found in how many individuals."""

from __future__ import annotations

import os

from plait.reports.plain_text import aligned, paragraph
from plait.vdj.sharing_table import SharingTable

__all__ = ["distribution_lines", "sharing_text"]


def sharing_text(found: SharingTable, output: str | os.PathLike[str]) -> str:
    """The distribution of sharing, in lines that fit a terminal.

    Parameters
    ----------
    found
        What to write.
    output
        Where the table of clonotypes is.
    """
    lines = [
        f"{found.rows:,} rows, {len(found.subjects):,} individuals, {found.clonotypes.num_rows:,} clonotypes",
    ]
    for reason, rows in found.left_out.items():
        lines += paragraph(f"{rows:,} rows are in no clonotype: {reason.replace('_', ' ', 1)}.")
    if found.clonotypes.num_rows:
        lines += ["", *distribution_lines(found, "individuals")]
    return "\n".join([*lines, "", f"table  {os.fspath(output)}"]) + "\n"


def distribution_lines(found: SharingTable, subject: str) -> list[str]:
    """A table of clonotypes by the number of individuals.

    Parameters
    ----------
    found
        What to write.
    subject
        What individuals are called, in the plural.
    """
    table = found.distribution().to_pylist()
    rows = [[subject, "clonotypes"]]
    counted = bool(table) and "counted" in table[0]
    if counted:
        rows[0] += ["median count", "middle half of counts", "count 0"]
    for entry in table:
        row = [str(entry["subjects"]), f"{entry['clonotypes']:,}"]
        if counted:
            row += [_number(entry["path_count_median"])]
            row += [f"{_number(entry['path_count_q25'])} - {_number(entry['path_count_q75'])}"]
            row += [f"{entry['zero_counts']:,}"]
        rows.append(row)
    return aligned(rows, ">" * len(rows[0]))


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value < 1e12 else f"{value:.3g}"
