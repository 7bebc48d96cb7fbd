"""The report of an inference: one HTML file that needs no network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from plait._version import __version__
from plait.errors import InvalidInput
from plait.formats.atomic import AtomicFile, output_errors
from plait.reports.drawing import check_report_drawing, drawn_with
from plait.reports.figure import StudyFigure
from plait.reports.inference_figures import SECTIONS, end_figures, fit_figures
from plait.reports.page import answer_card, as_given, html_page, page_tables, table_heading, when_text
from plait.reports.study_inputs import Study, read_results
from plait.vdj.model.inference_tables import INFERENCE_COLUMNS, selection_warning

_TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "genes": (
        "Genes",
        "Few: fewer than 100 expected choices. Alike: genes with the same part of a junction. The mean "
        "deletion of D is that of both ends together.",
    ),
    "evidence": (
        "Every probability with its evidence",
        "The standard error takes expected choices as if they had been seen. Few: a distribution that rests "
        "on fewer than 100 of them.",
    ),
    "entropy": ("Entropy", ""),
    "iterations": ("Iterations", ""),
    "left_out": ("Rows left out", ""),
    "inputs": ("Inputs", ""),
}
_LEADS: Final[Mapping[str, str]] = {
    "fit": "How well the model explains the junctions, and where the variety of junctions comes from.",
    "genes": (
        "How often recombination chooses each gene, before selection if nonproductive rows are the evidence, "
        "and what it takes off its end. Every gene has its own distribution; what few junctions show is "
        "mostly noise."
    ),
    "insertions": "Numbers of N nucleotides, and the Markov chains that make them.",
}
_NAMES: Final[Mapping[str, str]] = {
    "log_likelihood": "mean log-likelihood",
    "bits_a_junction": "bits a junction",
    "bits_inserted": "bits of inserted nucleotides",
    "inserted_V-D": "inserted V-D",
    "inserted_D-J": "inserted D-J",
    "inserted_V-J": "inserted V-J",
    "deleted_V": "deleted from V",
    "deleted_J": "deleted from J",
}


def read_inference(folder: str | os.PathLike[str]) -> Study:
    """Read what ``plait vdj infer`` left in its folder: a description and tables.

    InvalidInput if it is no folder of a finished inference; FormatError if the description or a table is not
    what it should be.
    """
    path = Path(folder)
    described = path / "inference.json"
    if not described.is_file():
        raise InvalidInput(
            "inference",
            found=f"{str(path)!r} without a file inference.json",
            expected="the output folder of a finished plait vdj infer",
            hint="if that run was stopped, repeat its command with --resume",
        )
    return read_results(path, described, INFERENCE_COLUMNS)


def inference_figures(result: Study) -> list[StudyFigure]:
    """All figures, in the order of the page."""
    return [*fit_figures(result), *end_figures(result)]


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
    tables = page_tables(result, _TITLES)
    content = {
        **_words(result),
        "sections": _sections(result, figures),
        "contents": [("answers", "Answers"), *((k, k.capitalize()) for k in SECTIONS), *_LAST],
        "tables": [table_heading(name, table) for name, table in tables.items()],
    }
    with AtomicFile(page) as file, output_errors(page):
        file.stream.write(html_page(content, figures, tables).encode("utf-8"))
    return page


_LAST: Final = (("tables", "Tables"), ("methods", "Methods"))


def _sections(result: Study, figures: Sequence[StudyFigure]) -> list[dict[str, Any]]:
    warning = selection_warning(result.description)
    return [
        {
            "anchor": anchor,
            "title": title,
            "lead": _LEADS[anchor],
            "figures": [figure for figure in figures if figure.section == anchor],
            "warnings": [f"{warning[0].upper()}{warning[1:]}."] if warning and anchor == "genes" else [],
        }
        for anchor, title in SECTIONS.items()
    ]


def _words(result: Study) -> dict[str, Any]:
    described = result.description
    created = described.get("created")
    facts = [
        ("rows", f"{result.number('rows'):,}"),
        ("different junctions", f"{result.number('evidence_junctions'):,}"),
        ("iterations", f"{result.number('iterations_done'):,}"),
        ("bits of entropy", f"{result.decimal(result.entries('entropies'), 'total'):.1f}"),
    ]
    chain = "V, D and J" if described.get("chain") == "vdj" else "V and J"
    return {
        "title": f"A recombination model of {chain} from {result.number('junctions'):,} junctions",
        "under": (
            "How often recombination chooses each gene, deletes and inserts: the model under which the "
            "junctions are most probable, found by expectation maximisation over all scenarios."
        ),
        "created": when_text(created) if created else "",
        "facts": facts,
        "answers": [answer_card(answer, _NAMES) for answer in result.items("answers")],
        "no_answers": "The inference gives no answers.",
        "tables_lead": (
            "They hold what the figures are drawn from; the files of the same names lie in the folder "
            "tables of the inference."
        ),
        "methods": _methods(result),
        "methods_lead": "What it takes to make the model again.",
        "made_from": f"the inference in the folder {result.folder.resolve().name}",
        "command": "plait vdj infer",
        "without_script": (
            "Figures and tables of this page are drawn by a script, which is turned off here. The same "
            "tables lie in the folder tables beside this page."
        ),
        "holds": "the model, sums over junctions, and a few rows that were left out",
    }


def _methods(result: Study) -> list[dict[str, Any]]:
    described = result.description
    made = [
        ["model made by plait", as_given(described.get("version", "unknown"))],
        ["report made by plait", __version__],
        ["figures drawn with", drawn_with()],
        ["algorithm", as_given(described.get("algorithm"))],
        ["converged", as_given(described.get("converged"))],
    ]
    parts = [
        {"title": "Parameters", "rows": _listed(result.entries("parameters"))},
        {"title": "Start", "rows": _listed(result.entries("start"))},
        {"title": "Versions and provenance", "rows": made},
        {"title": "Rows by kind", "rows": _listed(result.entries("rows_by_kind"))},
    ]
    unknown = _listed(result.entries("unknown_calls"))
    return [*parts, {"title": "Calls that the model does not know", "rows": unknown or [["none", ""]]}]


def _listed(entries: Mapping[str, Any]) -> list[list[str]]:
    return [[name.replace("_", " "), as_given(value)] for name, value in entries.items()]
