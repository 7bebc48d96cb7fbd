"""Anchors, the places of the conserved codons: found in sequences, or read from tables.

The tables are CSV files ``gene,anchor_index[,function]``, the form that OLGA and IGoR use.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from plait.alphabets import translate
from plait.errors import FormatError
from plait.vdj.germline.allele import (
    Allele,
    AnchorSource,
    Functionality,
    canonical,
    clean_sequence,
    parse_functionality,
)
from plait.vdj.germline.files import PathLike, read_text
from plait.vdj.germline.germline_set import GermlineSet

# 0-based first column of the conserved Cys in an IMGT-gapped V sequence.
_GAPPED_COLUMN = 309
# How many codons at the 3' end of a V gene are searched; the longest CDR3 end known has 14.
_V_WINDOW = 20

# Score of the amino acid at a distance before the Cys: IMGT 98, 100, 102 and 103.
_V_CONTEXT = (
    (6, {"D": 3, "N": 1, "Q": 1, "E": 1, "H": 1}),
    (4, {"A": 2, "G": 1, "S": 1}),
    (2, {"Y": 4, "F": 3, "L": 1, "H": 1}),
    (1, {"Y": 2, "F": 2, "L": 2, "H": 1, "I": 1, "R": 1}),
)
# Least score in the frame of the first base: mouse TRBV1 has 4, all other genes 6 and more.
_LEAST = 4
# Least score in the other frames, where only a truncated or damaged gene has its Cys, and how far it must be
# ahead of the frame of the first base. In intact genes it never is.
_LEAST_ELSEWHERE = 8
_LEAD = 3

# Distances from the anchor to the end of the J gene that are believed for the weaker motifs.
_J_TAIL = range(28, 38)
_J_MOTIF = re.compile("[FW]G.G")
_J_WEAKER = (re.compile("[FW][GAS].[GA]"), re.compile("[^*]G.G"), re.compile("[FW]G.."))


class VCandidate(NamedTuple):
    """A Cys codon near the 3' end of a V sequence, `anchor` being its 0-based first base.

    `score`, 0 to 11: how well the amino acids before it fit the end of framework 3.
    """

    score: int
    anchor: int


def v_candidates(sequence: str, frame: int = 0) -> tuple[VCandidate, ...]:
    """Cys codons near the end of an ungapped V sequence, best first, among equals the one nearest the end."""
    protein = translate(sequence, frame)
    found = []
    for k in range(max(0, len(protein) - _V_WINDOW), len(protein)):
        if protein[k] == "C":
            score = sum(points.get(protein[k - back], 0) for back, points in _V_CONTEXT if k >= back)
            found.append(VCandidate(score, 3 * k + frame))
    return tuple(sorted(found, reverse=True))


def find_v_anchor(sequence: str) -> int | None:
    """Position of the conserved Cys codon of an ungapped V sequence.

    In the frame of the first base, unless another frame has a much more convincing one.

    Parameters
    ----------
    sequence
        Upper-case IUPAC codes without gaps.

    Returns
    -------
    int or None
        0-based position of the first base of the codon.
    """
    best = [next(iter(v_candidates(sequence, frame)), VCandidate(0, 0)) for frame in range(3)]
    here, other = best[0], max(best[1:])
    if other.score >= max(_LEAST_ELSEWHERE, here.score + _LEAD):
        return other.anchor
    return here.anchor if here.score >= _LEAST else None


def gapped_v_anchor(gapped: str) -> int | None:
    """Position, in the ungapped sequence, of columns 310 to 312 of an IMGT-gapped V sequence.

    Parameters
    ----------
    gapped
        IMGT-gapped sequence; gaps are ``.`` or ``-``.

    Returns
    -------
    int or None
        0-based position, or None if the sequence has no gaps, or gaps within the columns, or ends before
        them.
    """
    columns = "".join(gapped.split())
    codon = clean_sequence(columns[_GAPPED_COLUMN : _GAPPED_COLUMN + 3])
    if len(codon) < 3 or not ("." in columns or "-" in columns):
        return None
    return len(clean_sequence(columns[:_GAPPED_COLUMN]))


def _first(matches: Iterator[int], sequence: str) -> int | None:
    """The first anchor with no stop codon behind it, else the first."""
    anchors = list(matches)
    return next((a for a in anchors if "*" not in translate(sequence, a)), next(iter(anchors), None))


def find_j_anchor(sequence: str) -> int | None:
    """Position of the conserved Phe or Trp codon of a J sequence.

    Preferred is ``[FW]-G-x-G`` in the frame in which the J region ends with the first base of a codon; then
    weaker motifs in that frame, at a credible distance from the end; then the full motif in any frame.

    Parameters
    ----------
    sequence
        Upper-case IUPAC codes without gaps.

    Returns
    -------
    int or None
        0-based position of the first base of the codon.
    """
    size = len(sequence)
    in_frame = [a for a in range(0, size - 11) if (size - a) % 3 == 1]
    codons = {a: translate(sequence[a : a + 12]) for a in range(0, size - 11)}
    found = _first((a for a in in_frame if _J_MOTIF.match(codons[a])), sequence)
    for weaker in _J_WEAKER:
        if found is None:
            credible = (a for a in in_frame if size - a in _J_TAIL and weaker.match(codons[a]))
            found = next((a for a in credible if "*" not in translate(sequence, a)), None)
    if found is None:
        found = _first((a for a in codons if _J_MOTIF.match(codons[a])), sequence)
    return found


def certain_anchor(segment: str, sequence: str) -> int | None:
    """The conserved codon of a V or J sequence if there is exactly one convincing place for it, else None.

    Upper-case IUPAC codes without gaps.
    """
    if segment == "V":
        found = [
            one.anchor
            for frame in range(3)
            for one in v_candidates(sequence, frame)
            if one.score >= _LEAST_ELSEWHERE and "*" not in translate(sequence[: one.anchor], frame)
        ]
    else:
        size = len(sequence)
        found = [
            a
            for a in range(size - 11)
            if (size - a) % 3 == 1 and size - a in _J_TAIL
            if _J_MOTIF.match(translate(sequence[a : a + 12])) and "*" not in translate(sequence, a)
        ]
    return found[0] if len(found) == 1 else None


_EXPECTED = "a table 'gene,anchor_index' with an optional column 'function'"
_POSITION: Final = "a 0-based position, or nothing or -1 where there is no anchor"
#: More bases than any gene has.
_LONGEST: Final = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorRow:
    """One row of an anchor table, `line` counted from 1.

    `name` is an allele or gene as written; `anchor` is 0-based, None where the table has no position
    (empty or -1).
    """

    name: str
    anchor: int | None
    functionality: Functionality | None
    line: int


def read_anchor_table(path: PathLike) -> tuple[AnchorRow, ...]:
    """Read an anchor table, CSV, plain or gzip; the rows in order.

    A header line; commas, semicolons or tabs between the columns. FormatError if a column or a name is
    missing, a position is no integer, or a name stands twice.
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
            if not -1 <= anchor <= _LONGEST:
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

    FormatError if the position leaves no room for a codon, or the allele is a D.
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
