"""Named column layouts: under which column names a kind of export keeps the values plait needs.

A layout is always chosen by name and never guessed, because a guess can be silently wrong. When the
chosen layout does not fit a header, the error says which other one would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Final

from plait.errors import FormatError, InvalidInput

REQUIRED_ROLES: Final = ("junction", "v_call", "j_call")
OPTIONAL_ROLES: Final = ("subject", "repertoire", "sequence_id", "count")

_SHOWN_COLUMNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where one kind of table keeps each role.

    `name` is as given to ``--layout``, `description` one line for help texts. `columns` has for each role the
    column names accepted for it, case sensitive, the preferred one first; every table must have the roles
    `required`. `header` names the columns of text without a header line, as far as they go; empty where there
    is one.
    """

    name: str
    description: str
    columns: Mapping[str, tuple[str, ...]]
    required: tuple[str, ...] = REQUIRED_ROLES
    header: tuple[str, ...] = ()

    def fits(self, columns: Sequence[str]) -> bool:
        """Whether every required role has a column."""
        return not self.missing(columns)

    def missing(self, columns: Sequence[str]) -> list[str]:
        """Required roles without a column."""
        present = set(columns)
        return [role for role in self.required if not present.intersection(self.columns[role])]

    def required_text(self) -> str:
        """Required columns worded for a message, alternatives joined by ``or``."""
        return ", ".join(" or ".join(self.columns[role]) for role in self.required)


_ALL: Final = (
    Layout(
        name="airr",
        description="AIRR Rearrangement, 1.x and 2.0",
        columns={
            "junction": ("junction",),
            "v_call": ("v_call",),
            "j_call": ("j_call",),
            "subject": ("subject_id",),
            "repertoire": ("repertoire_id",),
            "sequence_id": ("sequence_id",),
            "count": ("duplicate_count",),
        },
    ),
    Layout(
        name="immunarch",
        description="immunarch data frames",
        columns={
            "junction": ("CDR3.nt",),
            "v_call": ("V.name",),
            "j_call": ("J.name",),
            # The sample is all that such a table knows about the individual.
            "subject": ("Sample",),
            "repertoire": ("Sample",),
            "count": ("Clones",),
        },
    ),
    Layout(
        name="vdjtools",
        description="vdjtools clonotype tables",
        columns={
            "junction": ("cdr3nt", "CDR3nt"),
            "v_call": ("v", "V"),
            "j_call": ("j", "J"),
            "count": ("count", "#count"),
        },
    ),
    Layout(
        name="mixcr",
        description="MiXCR exportClones, compact or verbose headers",
        columns={
            "junction": ("nSeqCDR3", "N. Seq. CDR3"),
            "v_call": (
                "allVHitsWithScore",
                "bestVHit",
                "bestVGene",
                "All V hits",
                "Best V hit",
                "Best V gene",
            ),
            "j_call": (
                "allJHitsWithScore",
                "bestJHit",
                "bestJGene",
                "All J hits",
                "Best J hit",
                "Best J gene",
            ),
            "sequence_id": ("cloneId", "Clone ID"),
            "count": ("cloneCount", "readCount", "Clone count"),
        },
    ),
)

LAYOUTS: Final[Mapping[str, Layout]] = {layout.name: layout for layout in _ALL}


def layout_named(name: str) -> Layout:
    """The layout of that name, one of `LAYOUTS`; InvalidInput if there is none."""
    if name not in LAYOUTS:
        raise InvalidInput("layout", found=repr(name), expected=f"one of {', '.join(LAYOUTS)}")
    return LAYOUTS[name]


def assign_roles(
    layout: Layout, headers: Sequence[tuple[str | PathLike[str], Sequence[str]]]
) -> dict[str, str]:
    """Column name of every role, from the path and column names (`headers`) of each input file.

    Required roles are always there, and in every file under this name; optional ones only if at least one
    file has them. FormatError if a file lacks a required column, or the files keep a role under different
    names.
    """
    for path, columns in headers:
        if not layout.fits(columns):
            raise _missing_columns(layout, path, columns)
    roles: dict[str, str] = {}
    for role, accepted in layout.columns.items():
        if role in layout.required:
            roles[role] = _shared_name(role, accepted, headers)
        else:
            found = [name for name in accepted if any(name in columns for _, columns in headers)]
            if found:
                roles[role] = found[0]
    return roles


def _shared_name(
    role: str, accepted: Sequence[str], headers: Sequence[tuple[str | PathLike[str], Sequence[str]]]
) -> str:
    for name in accepted:
        if all(name in columns for _, columns in headers):
            return name
    first_path, first_columns = headers[0]
    first = next(name for name in accepted if name in first_columns)
    path, columns = next((path, columns) for path, columns in headers if first not in columns)
    other = next(name for name in accepted if name in columns)
    raise FormatError(
        path,
        found=f"column {other!r} for {role}",
        expected=f"column {first!r}, as in {first_path}",
        hint="give files of one export style in one run, or rename the column",
    )


def _missing_columns(layout: Layout, path: str | PathLike[str], columns: Sequence[str]) -> FormatError:
    lacking = ", ".join(" or ".join(layout.columns[role]) for role in layout.missing(columns))
    shown = ", ".join(repr(name) for name in columns[:_SHOWN_COLUMNS])
    if len(columns) > _SHOWN_COLUMNS:
        shown += f" and {len(columns) - _SHOWN_COLUMNS} more"
    return FormatError(
        path,
        found=f"the columns {shown}",
        expected=f"layout {layout.name!r} with the columns {layout.required_text()} (missing: {lacking})",
        hint=_header_hint(layout, columns),
    )


def _header_hint(layout: Layout, columns: Sequence[str]) -> str | None:
    fitting = [other.name for other in _ALL if other.fits(columns)]
    if fitting:
        return f"the header fits layout {fitting[0]!r}: choose it with --layout {fitting[0]}"
    for separator, name in ((",", "commas"), (";", "semicolons")):
        if len(columns) == 1 and separator in columns[0]:
            return f"the header looks separated by {name}: convert the file to tab-separated values"
    unquoted = [name.strip('"') for name in columns]
    if any(other.fits(unquoted) for other in _ALL):
        return "the header is quoted: write the file without quotes (in R: quote = FALSE)"
    lowered = {name.strip().lower() for name in columns}
    wanted = [name for role in layout.missing(columns) for name in layout.columns[role]]
    if any(name.lower() in lowered for name in wanted):
        return "column names are matched exactly, including upper and lower case and blanks"
    return None
