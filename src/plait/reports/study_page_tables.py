"""The tables of a study report, as the page holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from plait.reports.study_inputs import Study, StudyTable

__all__ = ["page_tables"]

#: Titles, in the order of the page, and what else a reader should know.
_TITLES: Final = {
    "top_shared": ("Most shared clonotypes", "Up to 2,000, ranked by number of subjects, then rows."),
    "correlations": ("Correlations by stratum", ""),
    "pgen_comparison": (
        "Pgen and path counts compared",
        "Of each measure: of path counts, of Pgen, and the difference with its intervals.",
    ),
    "pgen_groups": (
        "Models with Pgen and path counts, held out",
        "Differences of the first model to the other: negative deviance and positive area are better.",
    ),
    "coefficients": (
        "Coefficients",
        "Per standard deviation of each predictor; stability is a share of halves.",
    ),
    "predictors": ("Predictors", ""),
    "group_comparison": ("Models beside each other", ""),
    "lambda_path": ("Penalties and coefficients", ""),
    "subjects": ("Subjects", ""),
    "vj_usage": ("V and J genes", ""),
    "sharing_levels": ("Clonotypes by number of subjects", ""),
    "n_composition": ("N nucleotides", ""),
    "sweep": ("Models of the sweep", "Quartiles are taken from bins of 0.05 in the logarithm to base 10."),
    "cdr3_lengths": ("CDR3 lengths", ""),
    "path_count_by_sharing": ("Path counts by number of subjects", "A row without bounds: counts of 0."),
    "n2_length_by_sharing": ("N2 lengths by number of subjects", "A row without a length: no D gene call."),
    "calibration": ("Calibration", ""),
    "roc": ("ROC curves", ""),
    "pgen_by_sharing": ("Pgen by number of subjects", "A row without bounds: a Pgen of 0."),
    "pgen_statuses": ("Pgen by status", "Why it is 0 or not known."),
    "statuses": ("Rows by status", ""),
}
#: A page must open at once whatever the study; the files have everything.
_MOST_CELLS = 60_000
_NUCLEOTIDE_COLUMNS: Final = frozenset(("junction", "junction_aa", "digest"))


def page_tables(
    study: Study, titles: Mapping[str, tuple[str, str]] | None = None
) -> dict[str, dict[str, Any]]:
    """Tables by name: title, note, columns, which of these are numbers or sequences, rows, and how many.

    Parameters
    ----------
    study
        Where they are.
    titles
        Title and note of each table, in the order of the page; by default those of a study.
    """
    found = {}
    for name, (title, note) in (titles or _TITLES).items():
        table = study.table(name)
        if table is not None:
            found[name] = {"title": title, "note": note, **_content(table)}
    return found


def _content(table: StudyTable) -> dict[str, Any]:
    names = list(table.columns)
    most = max(1, _MOST_CELLS // len(names))
    return {
        "columns": names,
        "numeric": [_is_numeric(table.columns[name]) for name in names],
        "sequence": [name in _NUCLEOTIDE_COLUMNS for name in names],
        "rows": [list(row) for row, _ in zip(table.rows(*names), range(most), strict=False)],
        "total": len(table),
    }


def _is_numeric(cells: Any) -> bool:
    some = False
    for cell in cells:
        if cell:
            some = True
            try:
                float(cell)
            except ValueError:
                return False
    return some
