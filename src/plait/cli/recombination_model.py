"""What the commands that need a recombination model have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from plait.cli.console import say

if TYPE_CHECKING:
    from plait.vdj.model import RecombinationModel

__all__ = ["CallsOption", "model_named"]

CallsOption = Literal["both", "v", "j", "none"]


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
