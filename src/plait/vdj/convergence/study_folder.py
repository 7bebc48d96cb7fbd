"""The folder of a study: what is where, and whose it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import output_errors, write_json

__all__ = ["StudyFolder"]

_MARKER: Final = "plait-study.json"
_KIND: Final = "plait study"


class StudyFolder:
    """A folder that belongs to one study.

    Parameters
    ----------
    path
        The folder, made if it is not there; its parent must be.
    counts
        Folder of path counts that several studies share; by default one inside.

    Attributes
    ----------
    path, counts, parts, progress, clonotypes, design, tables : Path
        The folder; path counts of the inputs; rows put aside while the study runs, and what of it is done;
        the table of clonotypes; predictors of the regression, kept as long as the rows put aside are; tables.
    study : Path
        study.json, there when the study is finished.

    Raises
    ------
    InvalidInput
        If the folder holds something else, or its parent is missing.
    FormatError
        If it cannot be written.
    """

    def __init__(self, path: Path, *, counts: Path | None = None) -> None:
        self.path = path
        self.counts = path / "counts" if counts is None else counts
        self.parts = path / "parts"
        self.progress = path / "parts" / "progress"
        self.design = path / "parts" / "design"
        self.clonotypes = path / "clonotypes"
        self.tables = path / "tables"
        self.study = path / "study.json"
        self._claim()
        for folder in (self.counts, self.parts, self.design, self.clonotypes, self.tables):
            with output_errors(folder):
                folder.mkdir(exist_ok=True)

    def start_anew(self) -> None:
        """Remove all results but the path counts."""
        for folder in (self.parts, self.clonotypes, self.tables):
            shutil.rmtree(folder, ignore_errors=True)
        for folder in (self.parts, self.design, self.clonotypes, self.tables):
            with output_errors(folder):
                folder.mkdir(exist_ok=True)

    def tidy(self) -> None:
        """Remove what a finished study no longer needs."""
        shutil.rmtree(self.parts, ignore_errors=True)

    def _claim(self) -> None:
        marker = self.path / _MARKER
        if self.path.is_dir():
            if self._ours(marker):
                return
            if any(self.path.iterdir()):
                raise InvalidInput(
                    "output",
                    found=f"{str(self.path)!r}, which holds something else",
                    expected="a new or empty folder, or that of an earlier study",
                    hint="it is left as it is; choose another folder",
                )
        elif self.path.exists():
            raise InvalidInput(
                "output", found=f"{str(self.path)!r}, which is a file", expected="the name of a folder"
            )
        elif not self.path.absolute().parent.is_dir():
            raise InvalidInput(
                "output",
                found=f"{str(self.path)!r}, in a folder that does not exist",
                expected="a folder name in an existing folder",
                hint=f"create it first: mkdir -p {self.path.absolute().parent}",
            )
        with output_errors(self.path):
            self.path.mkdir(exist_ok=True)
        write_json(marker, {"kind": _KIND, "version": 1})

    def _ours(self, marker: Path) -> bool:
        try:
            return bool(json.loads(marker.read_text(encoding="utf-8"))["kind"] == _KIND)
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FormatError(
                marker, found=str(error), expected="the marker of a study", hint="choose another folder"
            ) from error
