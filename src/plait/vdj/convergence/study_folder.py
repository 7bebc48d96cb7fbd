"""The folder of a study: what is where, and whose it is."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from plait.formats.atomic import output_errors
from plait.formats.owned_folders import check_replaceable, claim_folder

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
        Folder of path counts and generation probabilities that several studies share; by default one
        inside.

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
        claim_folder(path, marker=_MARKER, kind=_KIND, what="study")
        # Of a run that was killed while it cleaned up.
        for folder in (self.parts, self.clonotypes, self.tables):
            shutil.rmtree(_put_away(folder), ignore_errors=True)
        for folder in (self.counts, self.parts, self.design, self.clonotypes, self.tables):
            with output_errors(folder):
                folder.mkdir(exist_ok=True)

    def check_replaceable(self, *, resume: bool, force: bool) -> None:
        """Check that an earlier study may be replaced; its path counts never are."""
        check_replaceable(self.path, self.study, self.progress, what="study", resume=resume, force=force)

    def start_anew(self) -> None:
        """Remove all results but the path counts."""
        for folder in (self.parts, self.clonotypes, self.tables):
            _remove(folder)
        for folder in (self.parts, self.design, self.clonotypes, self.tables):
            with output_errors(folder):
                folder.mkdir(exist_ok=True)

    def tidy(self) -> None:
        """Remove what a finished study no longer needs."""
        _remove(self.parts)


def _remove(folder: Path) -> None:
    """Remove a folder in one step: a run that is killed meanwhile leaves no half of it under its name."""
    away = _put_away(folder)
    with suppress(OSError):
        folder.rename(away)
        folder = away
    shutil.rmtree(folder, ignore_errors=True)


def _put_away(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.removed")
