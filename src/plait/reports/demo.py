"""The demo: real repertoires from file to figure."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

from plait.errors import InvalidInput
from plait.formats.atomic import output_errors
from plait.reports.count_text import MEANINGS
from plait.reports.plain_text import aligned, paragraph, percent
from plait.reports.sharing_figure import check_drawing, draw_sharing
from plait.reports.sharing_text import distribution_lines
from plait.vdj.count_files import CountedFiles, count_files
from plait.vdj.counting import PathCounter
from plait.vdj.demo_data import demo_repertoires
from plait.vdj.models import PathModel
from plait.vdj.progress import Progress
from plait.vdj.sharing_files import write_sharing
from plait.vdj.sharing_table import SharingTable, sharing
from plait.vdj.zero_counts import REASONS, zero_reasons

__all__ = ["demo_counter", "run_demo"]

_LAYOUT = "immunarch"
_MODEL = PathModel(sweep_pi=tuple(range(5)), sweep_nu=tuple(range(11)))
_COLUMNS = [
    "Sample",
    "Clones",
    "CDR3.nt",
    "V.name",
    "J.name",
    "status",
    "path_count",
    "v_match_length",
    "j_match_length",
    "d_match_length",
    "vj_gap",
]
_MOST_NAMES = 4
_RANK = (
    "Spearman's rank correlation of path count and number of donors: {0.rho:.3f} (n = {0.n:,} clonotypes). "
    "Nearly all clonotypes are found in one donor, which holds it near 0 whatever the shared ones are like."
)


@dataclass(frozen=True, slots=True)
class _Demo:
    """Everything that the text tells."""

    counted: CountedFiles
    table: pa.Table
    found: SharingTable


def demo_counter(device: str = "auto") -> PathCounter:
    """What the demo counts: 55 models, pi from 0 to 4 and nu from 0 to 10.

    Parameters
    ----------
    device
        As for `plait.vdj.count_paths`.
    """
    return PathCounter("human_trb", _MODEL, device=device, threads=1)


def run_demo(
    folder: str | os.PathLike[str],
    counter: PathCounter,
    *,
    rows: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> str:
    """Count the repertoires, write ``demo.parquet``, ``sharing.tsv`` and ``demo.png``, and tell what is seen.

    Parameters
    ----------
    folder
        Where to write; made if it is not there.
    counter
        From `demo_counter`.
    rows
        How many rows to take, evenly spread over the donors; all by default.
    progress
        As for `plait.vdj.count_files`.

    Raises
    ------
    InvalidInput
        If the data are not installed or `rows` is less than 1.
    TargetUnavailable
        If figures cannot be drawn.
    """
    if rows is not None and rows < 1:
        raise InvalidInput("rows", found=rows, expected="at least 1")
    check_drawing()
    source = demo_repertoires()
    out = Path(folder)
    with output_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    start = perf_counter()
    with TemporaryDirectory() as scratch:
        path = source if rows is None else _some_rows(source, rows, Path(scratch))
        counted = count_files([path], out / "demo.parquet", counter, layout=_LAYOUT, progress=progress)
    table = arrow_parquet.read_table(out / "demo.parquet", columns=_COLUMNS)
    found = sharing(table, layout=_LAYOUT)
    write_sharing(found.clonotypes, out / "sharing.tsv", found, inputs=[out / "demo.parquet"])
    donors = len(found.subjects)
    draw_sharing(
        found,
        out / "demo.png",
        subject="donors",
        source=f"{table.num_rows:,} human TRB rows of {donors} donors (pyimmunarch)",
        limits="Path counts: model dp2, one strand, pi = 4, nu = 10",
    )
    return _text(_Demo(counted, table, found), out, perf_counter() - start)


def _some_rows(source: Path, rows: int, folder: Path) -> Path:
    table = arrow_parquet.read_table(source)
    wanted = np.linspace(0, table.num_rows - 1, min(rows, table.num_rows)).astype(np.int64)
    path = folder / source.name
    arrow_parquet.write_table(table.take(pa.array(wanted)), path)
    return path


def _text(demo: _Demo, folder: Path, seconds: float) -> str:
    lines = paragraph(
        f"{demo.table.num_rows:,} real human TRB rows of {len(demo.found.subjects)} donors, counted under 55 "
        "models (dp2, one strand, pi 0 to 4, nu 0 to 10). Figures below are for pi 4, nu 10."
    )
    lines += ["", *_donor_lines(demo), "", *_status_lines(demo), "", *_zero_lines(demo), ""]
    lines += ["Clonotypes (junction, V gene, J gene) by the number of donors that have them:"]
    lines += [*distribution_lines(demo.found, "donors")]
    rank = demo.found.correlation()
    if not math.isnan(rank.rho):
        lines += ["", *paragraph(_RANK.format(rank))]
    lines += ["", f"{seconds:.0f} s. Written to {folder}:"]
    told = {
        "demo.parquet": "all rows, counts of all models",
        "demo.parquet.summary.json": "rows by status, zero counts by gene",
        "sharing.tsv": "one row per clonotype",
        "demo.png": "path count against sharing",
    }
    lines += aligned([[name, text] for name, text in told.items()], "<<")
    return "\n".join(lines) + "\n"


def _donor_lines(demo: _Demo) -> list[str]:
    rows = [["donor", "rows", "clonotypes", "median count", "count 0"]]
    sets = Counter(demo.found.by_subject["subject"].to_pylist())
    for donor in demo.found.subjects:
        part = demo.table.filter(pc.equal(demo.table["Sample"], donor))
        rows.append(_row(donor, part, sets[donor]))
    rows.append(_row("all", demo.table, demo.found.clonotypes.num_rows))
    return aligned(rows, "<>>>>", indent=0)


def _row(name: str, part: pa.Table, clonotypes: int) -> list[str]:
    counts = part.filter(pc.equal(part["status"], "ok"))["path_count"].to_numpy()
    median = f"{np.median(counts):,.0f}" if counts.size else "-"
    zeros = percent(int((counts == 0).sum()), counts.size)
    return [name, f"{part.num_rows:,}", f"{clonotypes:,}", median, zeros]


def _status_lines(demo: _Demo) -> list[str]:
    summary = demo.counted.summary
    lines = [f"{summary.counted:,} rows were counted."]
    for status, n in summary.statuses.items():
        if status == "ok":
            continue
        names = [f"{name} {k:,}" for name, k in summary.blamed_calls(status).items()][:_MOST_NAMES]
        named = f" ({', '.join(names)})" if names else ""
        lines += paragraph(f"{n:,} were not: {MEANINGS[status]}{named}.")
    return lines


def _zero_lines(demo: _Demo) -> list[str]:
    summary = demo.counted.summary
    lines = [f"{summary.zeros:,} counts ({percent(summary.zeros, summary.counted)}) are 0, because"]
    reasons = zero_reasons(demo.table, _MODEL)
    return lines + aligned([[f"{n:,}", REASONS[name]] for name, n in reasons.items()], "><")
