"""Sheets: which files there are, whose they are, and what else is known of them."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, overload

from plait.errors import FormatError, InvalidInput
from plait.formats.datasets import parts_of
from plait.formats.files import read_text
from plait.formats.parquet import ParquetInput

_FILE: Final = "file"
_SUBJECT: Final = "subject_id"
_MATE: Final = "mate"
_OWN: Final = (_FILE, _SUBJECT, _MATE)
#: What columns may be called besides.
_OTHER: Final = {"path": _FILE, "subject": _SUBJECT}
_SUFFIXES: Final = re.compile(
    r"((\.airr)?\.(tsv|csv|txt|tab|out|parquet|txz|tar\.xz|zip))?(\.(gz|zst))?$", re.IGNORECASE
)


def sample_name(path: str | os.PathLike[str]) -> str:
    """The name of a file without folder and suffixes, or of a folder.

    >>> sample_name("a/donor.1.tsv.gz"), sample_name("run/vquest.txz")
    ('donor.1', 'vquest')
    """
    name = Path(path).name
    return _SUFFIXES.sub("", name) or name


def file_names(paths: Iterable[str | os.PathLike[str]], field: str) -> list[str]:
    """Subjects, or another field, called as files; InvalidInput if two would be one that nobody asked for."""
    names = [sample_name(path) for path in paths]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        what = field.removesuffix("_id")
        raise InvalidInput(
            "paths",
            found=f"several files that would be the {what} {repeated[0]!r}",
            expected=f"files with different names, or that say the {what} of their rows",
            hint=f"name them in a sheet (--sheet), in a column {field}",
        )
    return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One line of the sheet, numbered from 1; blank covariates are not there.

    `subject`: whose rows they are; None: the file says it. `mate`: file of the second mates of reads.
    """

    line: int
    path: Path
    mate: Path | None
    subject: str | None
    covariates: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSheet(Sequence[Path]):
    """A sample sheet: its lines, and the names of all covariates, in order; the sequence of its files."""

    path: Path
    samples: tuple[Sample, ...]
    covariates: tuple[str, ...]

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Path]: ...
    def __getitem__(self, index: int | slice) -> Path | Sequence[Path]:
        """File of a line."""
        return [sample.path for sample in self.samples][index]

    def __len__(self) -> int:
        """Number of files."""
        return len(self.samples)

    @property
    def facts(self) -> list[dict[str, str]]:
        """What is known of each file: its subject, if the sheet names it, and covariates."""
        return [
            {**({} if one.subject is None else {"subject_id": one.subject}), **one.covariates}
            for one in self.samples
        ]

    def check_covariates(self) -> None:
        """Check, as far as the sheet names subjects, that every one has one value of each covariate."""
        self.of_subjects([[] if one.subject is None else [one.subject] for one in self.samples])

    def of_subjects(self, subjects: Sequence[Iterable[str]]) -> dict[str, dict[str, str]]:
        """Covariates of every subject, in alphabetical order; `subjects` are those of each sample's file.

        FormatError if a subject has two values of one covariate.
        """
        found: dict[str, dict[str, str]] = {}
        said: dict[tuple[str, str], int] = {}
        for sample, names in zip(self.samples, subjects, strict=True):
            for subject in names:
                known = found.setdefault(subject, {})
                for name, value in sample.covariates.items():
                    if known.setdefault(name, value) != value:
                        raise FormatError(
                            self.path,
                            line=sample.line,
                            column=name,
                            found=f"{value!r} for subject {subject!r}",
                            expected=f"{known[name]!r}, as in line {said[subject, name]}",
                            hint="a covariate has one value for each subject",
                        )
                    said.setdefault((subject, name), sample.line)
        return dict(sorted(found.items()))


def read_sample_sheet(path: str | os.PathLike[str], *, taken: Collection[str] = ()) -> SampleSheet:
    """Read a sample sheet; the files exist, and none is there twice.

    Text separated by commas or tabs, with a header: ``file`` (or ``path``), if wanted ``subject_id`` (or
    ``subject``) and ``mate``, and covariates, which must not be called as a column that is `taken`. Files are
    relative to the folder of the sheet; a folder of parts stands for its files. FormatError, which names the
    line, if it is something else.
    """
    source = Path(path)
    lines = _lines(source)
    if not lines:
        raise FormatError(source, found="no text at all", expected="a header line with a column 'file'")
    number, header = lines[0]
    header = _check_header(source, number, header, taken)
    samples: list[Sample] = []
    seen: dict[str, int] = {}
    for line, cells in lines[1:]:
        if len(cells) != len(header):
            raise FormatError(
                source,
                line=line,
                found=f"{len(cells)} column{'s' if len(cells) > 1 else ''}",
                expected=f"{len(header)} columns, as in the header",
            )
        for sample in _parts(_sample(source, line, dict(zip(header, cells, strict=True)))):
            real = os.path.realpath(sample.path)
            if real in seen:
                raise FormatError(
                    source,
                    line=line,
                    column=_FILE,
                    found=f"{str(sample.path)!r} again",
                    expected="every file once",
                    hint=f"it is in line {seen[real]} already",
                )
            seen[real] = line
            samples.append(sample)
    if not samples:
        raise FormatError(source, found="a header and no lines", expected="a line for each file")
    covariates = tuple(name for name in header if name not in _OWN)
    return SampleSheet(path=source, samples=tuple(samples), covariates=covariates)


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """Cells of all lines that are not blank, stripped, with line numbers."""
    text = read_text(path, "a text file: the sample sheet, not one of the samples")
    first = next((line for line in text.splitlines() if line.strip()), "")
    separator = "\t" if "\t" in first else ","
    source = io.StringIO(text, newline="")
    reader = csv.reader(source, delimiter=separator, strict=True, skipinitialspace=True)
    found = []
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                found.append((reader.line_num, stripped))
    except csv.Error as error:
        raise FormatError(
            path, line=reader.line_num, found=str(error), expected="cells separated by commas or tabs"
        ) from error
    return found


def _check_header(path: Path, line: int, header: Sequence[str], taken: Collection[str]) -> list[str]:
    """The names of the columns, those of files and subjects by one name each."""
    shown = ", ".join(map(repr, header[:20]))
    header = [_OTHER[name] if name in _OTHER and _OTHER[name] not in header else name for name in header]
    if _FILE not in header:
        hint = None
        if len(header) == 1 and ";" in header[0]:
            hint = "separate the cells by commas or tabs, not semicolons"
        elif _FILE in [name.lower() for name in header]:
            hint = "column names are matched exactly, in lower case"
        elif {"junction", "v_call"} & set(header):
            hint = "this is a table of rearrangements; name it in a sheet"
        raise FormatError(
            path, line=line, found=f"the columns {shown}", expected="a column 'file'", hint=hint
        )
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated or "" in header:
        wrong = (
            f"column name {repeated[0]!r} more than once"
            if repeated[:1] > [""]
            else "a column without a name"
        )
        raise FormatError(path, line=line, found=wrong, expected="every column named, and once")
    for name in header:
        if name in taken or name in _OTHER:
            raise FormatError(
                path,
                line=line,
                found=f"a covariate called {name!r}",
                expected="another name",
                hint="a table that is written has a column of this name",
            )
    return header


def _sample(sheet: Path, line: int, cells: Mapping[str, str]) -> Sample:
    if not cells[_FILE]:
        raise FormatError(sheet, line=line, column=_FILE, found="nothing", expected="the name of a file")
    covariates = {name: value for name, value in cells.items() if name not in _OWN and value}
    return Sample(
        line=line,
        path=_existing(sheet, line, _FILE, cells[_FILE]),
        mate=_existing(sheet, line, _MATE, cells[_MATE]) if cells.get(_MATE) else None,
        subject=cells.get(_SUBJECT) or None,
        covariates=covariates,
    )


def _parts(sample: Sample) -> list[Sample]:
    """The sample, or one for each file of a dataset; its name is the subject where nothing else says it."""
    parts = parts_of(sample.path)
    if parts is None:
        return [sample]
    found = []
    for path, told in parts:
        file = ParquetInput(path)
        subject = sample.subject or told.get(_SUBJECT)
        if subject is None and _SUBJECT in file.constants:
            subject = file.constants[_SUBJECT]
        elif subject is None and _SUBJECT not in file.schema.names:
            subject = sample_name(sample.path)
        found.append(replace(sample, path=Path(path), subject=subject))
    return found


def _existing(sheet: Path, line: int, column: str, given: str) -> Path:
    """A file that the sheet names; names are relative to its folder."""
    try:
        path = sheet.parent / Path(given).expanduser()
    except RuntimeError:
        # There is no user of the name that follows the tilde.
        path = sheet.parent / given
    if not os.path.isfile(path) and parts_of(path) is None:
        kind = "a folder" if os.path.isdir(path) else "no such file"
        raise FormatError(
            sheet,
            line=line,
            column=column,
            found=f"{given[:200]!r}, which is {kind}",
            expected="a file that exists",
            hint=f"names are relative to the folder of the sheet: {str(path)[-300:]!r} is meant",
        )
    return path
