"""What the commands that need a recombination model or a germline set have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plait.cli.console import say
from plait.cli.standard_input import HYPHEN, files_of
from plait.errors import InvalidInput

if TYPE_CHECKING:
    from plait.vdj.germline import GermlineSet
    from plait.vdj.model import RecombinationModel

__all__ = [
    "CallsOption",
    "JunctionLayoutOption",
    "RepairOption",
    "germline_named",
    "model_named",
    "tables_of",
]

# Written out here, so that help and checks of options need not load what the words mean.
CallsOption = Literal["ignore", "use", "v", "j"]
JunctionLayoutOption = Literal["airr", "immunarch", "vdjtools", "mixcr", "lines"]
RepairOption = Annotated[bool, Parameter(negative="")]
#: Genes of which a fault is told one by one.
_MOST_FAULTS = 6


def model_named(name: str, *, repair_anchors: bool = False) -> RecombinationModel:
    """The model of that name, file or folder, after telling what keeps genes out of it or is wrong with them.

    Parameters
    ----------
    name
        As the user gave it.
    repair_anchors
        Whether genes with a wrong conserved codon are mended where that is possible beyond doubt.
    """
    from plait.vdj.model.gene_check import gene_faults, repair_model
    from plait.vdj.model.model_files import load_model

    model = load_model(name)
    for note in model.notes():
        say(f"model {model.name}: {note}")
    mended, told = repair_model(model)
    _tell_faults(f"model {model.name}", gene_faults(model), told, repair_anchors)
    return mended if repair_anchors else model


def germline_named(
    name: str, *, anchors: Path | None = None, repair_anchors: bool | None = None
) -> GermlineSet:
    """The germline set of that name, file or folder, after telling what was decided and what is wrong in it.

    Parameters
    ----------
    name
        As the user gave it.
    anchors
        Table of anchors that replace those of the set.
    repair_anchors
        As for `model_named`; None where the command has no such option.
    """
    from plait.vdj.germline import load_germline
    from plait.vdj.germline.anchor_repair import anchor_faults, repair_germline

    alleles = load_germline(name, anchors=anchors)
    for note in alleles.notes:
        say(f"germline set {alleles.name}: {note}")
    mended, told = repair_germline(alleles)
    _tell_faults(f"germline set {alleles.name}", anchor_faults(alleles.alleles()), told, repair_anchors)
    return mended if repair_anchors else alleles


def _tell_faults(
    whose: str, faults: Mapping[str, str], mendable: Mapping[str, str], repair: bool | None
) -> None:
    if repair:
        for name, what in mendable.items():
            say(f"{whose}: repaired {name}: {what}")
        faults = {name: fault for name, fault in faults.items() if name not in mendable}
    for name, fault in list(faults.items())[:_MOST_FAULTS]:
        say(f"{whose}: warning: {name}, {fault}")
    if len(faults) > _MOST_FAULTS:
        say(f"{whose}: warning: {len(faults) - _MOST_FAULTS} more; plait germline validate lists them")
    if mendable and not repair:
        how = "give --anchors" if repair is None else "--repair-anchors does"
        say(f"{whose}: rows of {', '.join(mendable)} come out wrong; the conserved codon can be found: {how}")


@contextmanager
def tables_of(inputs: Sequence[Path], resume: bool) -> Iterator[list[Path]]:
    """The tables, with a file that holds what comes by standard input in the place of ``-``.

    Parameters
    ----------
    inputs
        As the user gave them.
    resume
        Whether a stopped run is to go on.

    Raises
    ------
    InvalidInput
        If one is standard input, and the run is to go on: nobody can tell whether it is the same.
    """
    if resume and HYPHEN in map(str, inputs):
        raise InvalidInput("resume", found="standard input", expected="files, which can be told again")
    with files_of(inputs) as files:
        yield files
