"""What the commands that need a recombination model have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from plait.cli.console import say
from plait.cli.standard_input import HYPHEN, files_of
from plait.errors import InvalidInput

if TYPE_CHECKING:
    from plait.vdj.model import RecombinationModel

__all__ = ["CallsOption", "JunctionLayoutOption", "model_named", "tables_of"]

# Written out here, so that help and checks of options need not load what the words mean.
CallsOption = Literal["ignore", "use", "v", "j"]
JunctionLayoutOption = Literal["airr", "immunarch", "vdjtools", "mixcr", "lines"]


def model_named(name: str) -> RecombinationModel:
    """The model of that name, file or folder, after telling what keeps genes out of it.

    Parameters
    ----------
    name
        As the user gave it.
    """
    from plait.vdj.model.model_files import load_model

    model = load_model(name)
    for note in model.notes():
        say(f"model {model.name}: {note}")
    return model


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
