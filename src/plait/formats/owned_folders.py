"""Folders of results that belong to one kind of run: nothing else is ever written over."""

from __future__ import annotations

import os
from pathlib import Path

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import output_errors, write_json
from plait.formats.json_text import read_json

__all__ = ["check_replaceable", "claim_folder"]


def claim_folder(path: Path, *, marker: str, kind: str, what: str) -> bool:
    """Make a folder one of a kind of run, or see that it is one.

    Parameters
    ----------
    path
        The folder, made if it is not there; its parent must be.
    marker
        Name of the file in it that says what it is.
    kind
        What the file says.
    what
        A run of the kind in messages, as ``"study"``.

    Returns
    -------
    bool
        Whether it was none before.

    Raises
    ------
    InvalidInput
        If the folder holds something else, or its parent is missing.
    FormatError
        If it cannot be written, or its marker is damaged.
    """
    file = path / marker
    if path.is_dir():
        if _ours(file, kind, what):
            return False
        if any(path.iterdir()):
            raise InvalidInput(
                "output",
                found=f"{str(path)!r}, which holds something else",
                expected=f"a new or empty folder, or that of an earlier {what}",
                hint="it is left as it is; choose another folder",
            )
    elif path.exists():
        raise InvalidInput("output", found=f"{str(path)!r}, which is a file", expected="the name of a folder")
    elif not path.absolute().parent.is_dir():
        raise InvalidInput(
            "output",
            found=f"{str(path)!r}, in a folder that does not exist",
            expected="a folder name in an existing folder",
            hint=f"create it first: mkdir -p {path.absolute().parent}",
        )
    with output_errors(path):
        path.mkdir(exist_ok=True)
    write_json(file, {"kind": kind, "version": 1})
    return True


def check_replaceable(path: Path, *results: Path, what: str, force: bool, resume: bool | None = None) -> None:
    """Check that a run that writes a folder may take the place of what an earlier one has left in it.

    Parameters
    ----------
    path
        The folder, claimed.
    *results
        What an earlier run would have left.
    what
        As for `claim_folder`.
    force
        Whether the user wants to replace it.
    resume
        Whether the user wants to go on with it; None if that kind of run cannot.

    Raises
    ------
    InvalidInput
        If there are results and neither is wanted, or both are.
    """
    if resume and force:
        raise InvalidInput("resume", found="force too", expected="one or the other")
    if not (resume or force) and any(map(os.path.lexists, results)):
        raise InvalidInput(
            "output",
            found=f"{str(path)!r}, which holds an earlier {what}",
            expected="a new or empty folder",
            hint=(
                f"{'' if resume is None else '--resume goes on with one that was stopped, '}"
                "--force begins anew and replaces it"
            ),
        )


def _ours(file: Path, kind: str, what: str) -> bool:
    if not os.path.lexists(file):
        return False
    expected = f"the marker of {'an' if what[0] in 'aeiou' else 'a'} {what}"
    found = read_json(file, expected=expected)
    if not isinstance(found, dict) or "kind" not in found:
        raise FormatError(file, found="something else", expected=expected, hint="choose another folder")
    return bool(found["kind"] == kind)
