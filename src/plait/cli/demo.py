"""``plait demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plait.cli.console import say
from plait.cli.options import DeviceOption, WholeNumber


def demo(
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    rows: WholeNumber | None = None,
    device: DeviceOption = "auto",
    force: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Study the TRB repertoires of 12 human donors, from path counts under 55 models to a report.

    Parameters
    ----------
    output
        Folder for samples.csv and study, which holds report.html; made if it is not there.
    rows
        Take only so many rows, spread over the donors.
    device
        Where to count: auto, cpu, cuda, cuda:N or cuda:all.
    force
        Replace an earlier demo in the output.
    """
    from plait.cli.study import StudyBar
    from plait.reports.demo import run_demo

    say("studying the repertoires of 12 donors under 55 models")
    with StudyBar() as progress:
        told = run_demo(output, rows=rows, device=device, force=force, progress=progress)
    print(told, end="")
