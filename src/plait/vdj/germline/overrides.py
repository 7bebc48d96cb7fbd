"""Anchor tables: CSV files ``gene,anchor_index[,function]``, the form that OLGA and IGoR use."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from plait.errors import FormatError
from plait.vdj.germline.files import PathLike, read_text
from plait.vdj.germline.germline_set import GermlineSet
from plait.vdj.germline.names import canonical
from plait.vdj.germline.records import Allele, AnchorSource, Functionality, parse_functionality

__all__ = ["AnchorRow", "apply_overrides", "read_anchor_table", "with_row"]

_EXPECTED = "a table 'gene,anchor_index' with an optional column 'function'"
_POSITION: Final = "a 0-based position"
#: More bases than any gene has.
_LONGEST: Final = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorRow:
    """One row of an anchor table.

    Attributes
    ----------
    name
        Allele or gene name as written.
    anchor
        0-based anchor, or None where the table has no position (empty or negative).
    functionality
        ``"F"``, ``"ORF"``, ``"P"`` or None.
    line
        1-based line.
    """

    name: str
    anchor: int | None
    functionality: Functionality | None
    line: int


def read_anchor_table(path: PathLike) -> tuple[AnchorRow, ...]:
    """Read an anchor table.

    Parameters
    ----------
    path
        CSV file, plain or gzip, with a header line; commas, semicolons or tabs between the columns.

    Returns
    -------
    tuple of AnchorRow
        The rows in order.

    Raises
    ------
    FormatError
        If a column or a name is missing, a position is no integer, or a name stands twice.
    """
    lines = read_text(path, _EXPECTED).splitlines()
    delimiter = next((mark for mark in ";\t" if mark in lines[0]), ",")
    table = csv.reader(lines, delimiter=delimiter)
    cut = _cells(path, table)
    columns = [cell.strip().lower() for cell in next(cut, ())]
    for needed in ("gene", "anchor_index"):
        if needed not in columns:
            found = f"columns {', '.join(columns)[:80]!r}"
            raise FormatError(path, line=1, found=found, expected=f"a column {needed!r}")
    rows: dict[str, AnchorRow] = {}
    for cells in cut:
        line = table.line_num
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) < len(columns):
            found = f"{len(cells)} cell(s)"
            raise FormatError(
                path, line=line, found=found, expected=f"{len(columns)} cells, as in the header"
            )
        row = dict(zip(columns, (cell.strip() for cell in cells), strict=False))
        name, position = row["gene"], row["anchor_index"]
        if not name or name in rows:
            found = f"a second row for {name[:40]}" if name else "a row without a name"
            raise FormatError(path, line=line, found=found, expected="one row an allele or gene")
        try:
            anchor = int(position) if position else -1
            if anchor > _LONGEST:
                raise ValueError(position)
        except ValueError:
            raise FormatError(
                path, line=line, column="anchor_index", found=repr(position[:40]), expected=_POSITION
            ) from None
        functionality = parse_functionality(row.get("function", ""))
        rows[name] = AnchorRow(
            name=name, anchor=anchor if anchor >= 0 else None, functionality=functionality, line=line
        )
    return tuple(rows.values())


def _cells(path: PathLike, table: Any) -> Iterator[list[str]]:
    try:
        yield from table
    except csv.Error as error:
        raise FormatError(path, line=table.line_num, found=str(error), expected=_EXPECTED) from error


def with_row(allele: Allele, row: AnchorRow, path: PathLike, source: AnchorSource) -> Allele:
    """An allele with the anchor (and functionality, where stated) of a table row.

    Raises
    ------
    FormatError
        If the position leaves no room for a codon, or the allele is a D.
    """
    if row.anchor is not None and (allele.segment == "D" or row.anchor + 3 > len(allele.sequence)):
        expected = "no anchor for a D" if allele.segment == "D" else f"0 to {len(allele.sequence) - 3}"
        raise FormatError(
            path,
            line=row.line,
            column="anchor_index",
            found=f"{row.anchor} for {allele.name}",
            expected=f"{expected}, a codon inside its {len(allele.sequence)} bases",
        )
    return replace(
        allele,
        anchor=row.anchor,
        anchor_source="none" if row.anchor is None else source,
        functionality=row.functionality or allele.functionality,
    )


def apply_overrides(germline: GermlineSet, path: PathLike) -> GermlineSet:
    """A germline set with the anchors of a table in the place of its own.

    Parameters
    ----------
    germline
        The set.
    path
        The table. A gene name sets all alleles of the gene; a row for an allele goes before one for its gene.
        A row without a position takes the anchor away.

    Returns
    -------
    GermlineSet
        A new set.

    Raises
    ------
    FormatError
        If the table is not what it should be, names something that the set does not have, or leaves the
        sequence.
    """
    rows: Mapping[str, AnchorRow] = {canonical(row.name): row for row in read_anchor_table(path)}
    known = {canonical(name) for a in germline.alleles() for name in (a.name, a.gene)}
    for key, row in rows.items():
        if key not in known:
            expected = f"an allele or gene of {germline.name}"
            raise FormatError(path, line=row.line, column="gene", found=repr(row.name), expected=expected)

    def changed(allele: Allele) -> Allele:
        row = rows.get(canonical(allele.name)) or rows.get(canonical(allele.gene))
        return with_row(allele, row, path, "override") if row else allele

    return replace(
        germline,
        v=tuple(map(changed, germline.v)),
        d=tuple(map(changed, germline.d)),
        j=tuple(map(changed, germline.j)),
    )
