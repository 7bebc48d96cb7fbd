"""``plait demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plait.cli.console import RowProgress, say, say_if_compiling
from plait.cli.options import DeviceOption, WholeNumber

__all__ = ["demo"]


def demo(
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    rows: WholeNumber | None = None,
    device: DeviceOption = "auto",
) -> None:
    """Count the TRB repertoires of 12 human donors under 55 models, and draw path counts against sharing.

    Parameters
    ----------
    output
        Folder for demo.parquet, sharing.tsv and demo.png; made if it is not there.
    rows
        Take only so many rows, spread over the donors.
    device
        Where to count: auto, cpu, cuda, cuda:N or cuda:all.
    """
    from plait.reports.demo import demo_counter, run_demo

    counter = demo_counter(device)
    say("counting the repertoires of 12 donors under 55 models")
    if device != "reference":
        say_if_compiling()
    with RowProgress("counting") as progress:
        told = run_demo(output, counter, rows=rows, progress=progress)
    print(told, end="")
