"""The demo: real repertoires from file to report. Beside its command, because commands have no logic."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as arrow_parquet

from plait.errors import InvalidInput, whole
from plait.formats.atomic import AtomicFile, check_replaceable, claim_folder, output_errors
from plait.lang.compiling import work_time
from plait.reports.figure import check_report_drawing
from plait.reports.plain_text import paragraph
from plait.reports.study_report import study_text, write_study_report
from plait.vdj.convergence.study import study

if TYPE_CHECKING:
    from plait.vdj.convergence.stages import StudyProgress

_PACKAGE = "pyimmunarch"
_FILE = "_data/immdata.parquet"


def demo_repertoires() -> Path:
    """The file, in immunarch's layout; the package is found and never imported.

    InvalidInput if the package is not installed, or lacks the file.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    for folder in folders:
        path = Path(folder) / _FILE
        if path.is_file():
            return path
    raise InvalidInput(
        "demo data",
        found=f"{_PACKAGE} without {_FILE}" if folders else f"no package {_PACKAGE}",
        expected="the repertoires of 12 donors that it brings",
        hint="install it: pip install 'plait[demo]', or pip install '.[demo]' in a checkout",
    )


_LAYOUT = "immunarch"
#: Of the models that come with plait.
_MODEL = "human_TRB"
_MODEL_NOTE = (
    f"The model {_MODEL} was inferred by plait from these same repertoires, so it has seen what it predicts: "
    "that flatters generation probability here. A model of other data would be the better judge."
)
#: Enough for a demo: half of what a study draws by default.
_HALVES = 25


def run_demo(
    folder: str | os.PathLike[str],
    *,
    rows: int | None = None,
    device: str = "auto",
    force: bool = False,
    progress: Callable[[StudyProgress], None] | None = None,
) -> str:
    """Count the repertoires under 55 models, study who shares what, write the report, and tell what is seen.

    Writes ``samples.csv`` and ``study`` to `folder`; `rows` are evenly spread over the donors, all by
    default. The last line returned is the path of the page. InvalidInput if data are missing, `rows` is less
    than 1, or the folder holds something else or an earlier demo; TargetUnavailable if figures cannot be
    drawn.
    """
    if rows is not None:
        whole("rows", rows, 1)
    check_report_drawing()
    source = demo_repertoires()
    out = Path(folder)
    with output_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    claim_folder(out, marker="plait-demo.json", kind="plait demo", what="demo")
    check_replaceable(out, out / "study" / "study.json", what="demo", force=force)
    start = work_time()
    taken = source if rows is None else _some_rows(source, rows, out / "repertoires.parquet")
    found = study(
        _sheet(taken, out / "samples.csv"),
        out / "study",
        germline="human_trb",
        layout=_LAYOUT,
        halves=_HALVES,
        recombination_model=_MODEL,
        model_note=_MODEL_NOTE,
        device=device,
        force=True,
        progress=progress,
    )
    report = write_study_report(found.folder)
    lines = paragraph(
        "Real human TRB repertoires of 12 donors (data of pyimmunarch), counted under 55 models: dp2, one "
        "strand, pi 0 to 4, nu 0 to 10. Path counts below are for pi 4, nu 10; generation probabilities are "
        f"those of {_MODEL}, a model inferred from these same repertoires."
    )
    told = study_text(found, seconds=work_time() - start).splitlines()
    # The report is there already, so that how to make it need not be told.
    lines += ["", *(line for line in told if not line.startswith("report "))]
    lines += [f"figures  {report.figures[0].parent}", "", "To be opened in a browser:", str(report.page)]
    return "\n".join(lines) + "\n"


def _sheet(repertoires: Path, path: Path) -> Path:
    # Quoted, as the path of an installed package may hold a comma.
    text = 'file\n"{}"\n'.format(str(repertoires.resolve()).replace('"', '""'))
    with AtomicFile(path) as file, output_errors(path):
        file.stream.write(text.encode("utf-8"))
    return path


def _some_rows(source: Path, rows: int, path: Path) -> Path:
    table = arrow_parquet.read_table(source)
    wanted = np.linspace(0, table.num_rows - 1, min(rows, table.num_rows)).astype(np.int64)
    with AtomicFile(path) as file, output_errors(path):
        arrow_parquet.write_table(table.take(pa.array(wanted)), file.stream)
    return path
