"""Anchors, the places of the conserved codons, and what is wrong or odd in a germline set.

Anchors are found in sequences, or read from tables: CSV files ``gene,anchor_index[,function]``, the form that
OLGA and IGoR use. What can be mended is, and a set is told as rows and text.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from plait.alphabets import reverse_complement, translate
from plait.errors import FormatError
from plait.vdj.germline.files import PathLike, read_text, write_texts
from plait.vdj.germline.germline_set import (
    SEGMENTS,
    Allele,
    AnchorSource,
    Functionality,
    GermlineSet,
    bad_symbols,
    canonical,
    clean_sequence,
    gene_has_prefix,
    locus_of,
    parse_functionality,
)

# 0-based columns of an IMGT-gapped V sequence: the conserved Cys; where CDR1, FWR2, CDR2 and FWR3 begin
# (Lefranc et al. 2003, Dev. Comp. Immunol. 27, 55-77: codons 27, 39, 56, 66 and 104).
_GAPPED_COLUMN = 309
_GAPPED_REGIONS = (78, 114, 165, 195)
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


def gapped_regions(gapped: str) -> tuple[int, int, int, int] | None:
    """Positions as in `Allele.regions` of an IMGT-gapped V sequence; None where `gapped_v_anchor` is."""
    if gapped_v_anchor(gapped) is None:
        return None
    columns = "".join(gapped.split())
    first, second, third, fourth = (len(clean_sequence(columns[:column])) for column in _GAPPED_REGIONS)
    return first, second, third, fourth


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

    FormatError if the position leaves no room for a codon, or the allele is a D or C.
    """
    unanchored = allele.segment in "DC"
    if row.anchor is not None and (unanchored or row.anchor + 3 > len(allele.sequence)):
        expected = f"no anchor for a {allele.segment}" if unanchored else f"0 to {len(allele.sequence) - 3}"
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

    v, d, j, c = (tuple(map(changed, germline.alleles(segment))) for segment in SEGMENTS)
    return replace(germline, v=v, d=d, j=j, c=c)


Severity = Literal["error", "warning", "note"]

#: Shortest and longest plausible part of an allele inside the junction, in nucleotides.
CDR3_END_LENGTHS = {"V": (6, 45), "D": (5, 45), "J": (9, 45)}
# How far the length of a V sequence may lie from the median of its set, in nucleotides.
_V_LENGTH_TOLERANCE = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One observation about a germline set.

    Attributes
    ----------
    kind
        Short name of the kind of observation, for example ``"missing_anchor"``.
    severity
        ``"error"`` (the set cannot be trusted as it is), ``"warning"`` or ``"note"``.
    allele
        Name of the allele, or empty if it concerns the set.
    message
        What was found, as a sentence.
    """

    kind: str
    severity: Severity
    allele: str
    message: str


def _warning(kind: str, allele: Allele, message: str) -> Finding:
    return Finding(kind=kind, severity="warning", allele=allele.name, message=message)


def _error(kind: str, allele: str, message: str) -> Finding:
    return Finding(kind=kind, severity="error", allele=allele, message=message)


def _sequence_findings(allele: Allele) -> Iterator[Finding]:
    bad = bad_symbols(allele.sequence)
    if not allele.sequence:
        yield _error("empty_sequence", allele.name, "the sequence is empty")
    if bad:
        yield _error("invalid_symbol", allele.name, f"symbol(s) {bad!r} are no IUPAC nucleotide codes")


def _stop_codon(allele: Allele) -> Iterator[Finding]:
    # Beyond the anchor of a V and before that of a J, a stop can be trimmed away in joining.
    if allele.segment == "V":
        frame = 0 if allele.anchor is None else allele.anchor % 3
        protein = translate(allele.sequence[frame : allele.anchor])
        where = (
            "before its conserved codon" if allele.anchor is not None else "in the frame of its first base"
        )
    elif allele.anchor is not None:
        protein, where = translate(allele.sequence, allele.anchor), "behind its conserved codon"
    else:
        return
    if "*" in protein:
        yield _warning("stop_codon", allele, f"{protein.count('*')} stop codon(s) {where}")


def anchor_findings(allele: Allele) -> Iterator[Finding]:
    """What is odd about the anchor of a V or J allele, which is known."""
    size, anchor = len(allele.sequence), allele.anchor
    assert anchor is not None
    if not 0 <= anchor <= size - 3:
        yield _error("anchor_range", allele.name, f"anchor {anchor} leaves no codon in {size} bases")
        return
    codon = translate(allele.sequence[anchor : anchor + 3])
    expected = "C" if allele.segment == "V" else "FW"
    if codon not in expected:
        yield _warning(
            "anchor_codon",
            allele,
            f"the codon at {anchor} is {allele.sequence[anchor : anchor + 3]} ({codon}), "
            f"not {' or '.join(expected)}",
        )
    if allele.segment == "V" and anchor % 3:
        yield _warning("anchor_frame", allele, f"the codon at {anchor} is not in the frame of the first base")
    if allele.segment == "J":
        motif = translate(allele.sequence[anchor : anchor + 12])
        if len(motif) < 4 or motif[1] != "G" or motif[3] != "G":
            yield _warning("anchor_motif", allele, f"{motif} behind the anchor is not [FW]GxG")
        if (size - anchor) % 3 != 1:
            message = f"the codon at {anchor} is not in the frame that ends one base after a codon"
            yield _warning("anchor_frame", allele, message)


def _length_findings(germline: GermlineSet) -> Iterator[Finding]:
    lengths = sorted(len(a.sequence) for a in germline.v)
    usual = lengths[(len(lengths) - 1) // 2] if lengths else 0
    for allele in germline.alleles():
        end = allele.cdr3_end
        low, high = CDR3_END_LENGTHS.get(allele.segment, (0, 0))
        if end is not None and not low <= len(end) <= high:
            message = f"the part inside the junction has {len(end)} bases, usual are {low} to {high}"
            yield _warning("cdr3_end_length", allele, message)
        if allele.segment == "V" and abs(len(allele.sequence) - usual) > _V_LENGTH_TOLERANCE:
            message = f"{len(allele.sequence)} bases, the median V has {usual}"
            yield _warning("sequence_length", allele, message)


def _duplicate_findings(germline: GermlineSet) -> Iterator[Finding]:
    for name, times in Counter(a.name for a in germline.alleles()).items():
        if times > 1:
            yield _error("duplicate_name", name, f"{times} alleles have this name")
    first: dict[tuple[str, str], Allele] = {}
    for allele in germline.alleles():
        other = first.setdefault((allele.segment, allele.sequence), allele)
        if other.name != allele.name:
            yield _warning("duplicate_sequence", allele, f"has the sequence of {other.name}")


def _set_findings(germline: GermlineSet) -> Iterator[Finding]:
    for segment, alleles in (("V", germline.v), ("J", germline.j)):
        if not alleles:
            yield _error("missing_segment", "", f"the set has no {segment} alleles")
    if not germline.locus:
        yield _error("locus", "", "the locus is not known and cannot be told from the names")
    for allele in germline.alleles():
        locus = locus_of(allele.name)
        # V genes of TRA and TRD are shared, named TRAV../DV.. or not.
        shared = allele.segment == "V" and {locus, germline.locus} <= {"TRA", "TRD"}
        if germline.locus and locus and locus != germline.locus and not shared:
            yield _warning("locus", allele, f"the name says {locus}, the set is {germline.locus}")
    d_genes = {a.gene for a in germline.d}
    for gene, prefixes in germline.d_j_order.items():
        if gene not in d_genes:
            yield _error("order_rule", gene, "the D-J order names a D gene that the set does not have")
        for prefix in prefixes:
            if not any(gene_has_prefix(a, prefix) for a in germline.j):
                message = f"the D-J order allows {prefix}, which is no J gene of the set"
                yield _error("order_rule", gene, message)
    for pair in germline.d_d_order or ():
        for gene in pair:
            if gene not in d_genes:
                yield _error("order_rule", gene, "the D-D order names a D gene that the set does not have")


def validate(germline: GermlineSet) -> list[Finding]:
    """Look for everything that is wrong or odd in a germline set.

    Parameters
    ----------
    germline
        The set; read it with ``strict=False`` to have unusable sequences reported here and not raised.

    Returns
    -------
    list of Finding
        Errors first, then warnings, then the notes of the reader; in the order of the alleles within each.
    """
    found = list(_set_findings(germline))
    for allele in germline.alleles():
        found += _sequence_findings(allele)
        if allele.segment in "DC":
            continue
        if allele.anchor is None:
            codon = "Cys" if allele.segment == "V" else "Phe or Trp"
            found.append(_warning("missing_anchor", allele, f"no conserved {codon} codon is known or found"))
        else:
            found += anchor_findings(allele)
        found += _stop_codon(allele)
    found += _length_findings(germline)
    found += _duplicate_findings(germline)
    found += [Finding(kind="note", severity="note", allele="", message=note) for note in germline.notes]
    rank = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda finding: rank[finding.severity])


def anchor_faults(alleles: Iterable[Allele]) -> dict[str, str]:
    """What is wrong with the conserved codon of functional V and J alleles, by name.

    One whose functionality is not known counts as functional.
    """
    found = {}
    for allele in alleles:
        if allele.segment in "DC" or allele.anchor is None or allele.functionality not in (None, "F"):
            continue
        for finding in anchor_findings(allele):
            if finding.kind in ("anchor_codon", "anchor_range"):
                found[allele.name] = finding.message
    return found


def repaired(allele: Allele) -> tuple[Allele, str] | None:
    """One of `anchor_faults` as it must be, and what was done; None if there is no way, or more than one."""
    turned = reverse_complement(allele.sequence)
    here, there = (certain_anchor(allele.segment, text) for text in (allele.sequence, turned))
    if (here is None) == (there is None):
        return None
    sequence, anchor = (allele.sequence, here) if there is None else (turned, there)
    assert anchor is not None  # one of the two is known
    codon = sequence[anchor : anchor + 3]
    told = f"the anchor is {anchor} ({codon}, {translate(codon)}) and not {allele.anchor}"
    if there is not None:
        where = f"{codon} ({translate(codon)}) is at {anchor}"
        told = f"the sequence was the reverse complement of the gene; {where}"
    return replace(allele, sequence=sequence, anchor=anchor, anchor_source="motif"), told


def repair_germline(germline: GermlineSet) -> tuple[GermlineSet, dict[str, str]]:
    """A germline set with all alleles of `anchor_faults` that can be mended, and what was done to each."""
    faults = anchor_faults(germline.alleles())
    mended = {a.name: fixed for a in germline.alleles() if a.name in faults and (fixed := repaired(a))}
    v, j = (
        tuple(mended[a.name][0] if a.name in mended else a for a in part) for part in (germline.v, germline.j)
    )
    told = {name: what for name, (_, what) in mended.items()}
    notes = tuple(f"repaired {name}: {what}" for name, what in told.items())
    return replace(germline, v=v, j=j, notes=(*germline.notes, *notes)), told


def allele_row(allele: Allele) -> dict[str, str | int | None]:
    """One allele by the names of `COLUMNS`; ``cdr3_end`` is what counting uses of it."""
    end = allele.cdr3_end
    return {
        "name": allele.name,
        "gene": allele.gene,
        "segment": allele.segment,
        "functionality": allele.functionality,
        "anchor": allele.anchor,
        "anchor_source": allele.anchor_source,
        "cdr3_end_length": None if end is None else len(end),
        "cdr3_end": end,
        "length": len(allele.sequence),
        "regions": None if allele.regions is None else " ".join(map(str, allele.regions)),
        "source": allele.source,
        "sequence": allele.sequence,
    }


#: Columns of the table of alleles.
COLUMNS = tuple(allele_row(Allele(name="", gene="", segment="D", sequence="")))


def metadata(germline: GermlineSet) -> dict[str, Any]:
    """Everything about a set but its alleles, ready for JSON."""
    alleles = germline.alleles()
    return {
        "name": germline.name,
        "species": germline.species,
        "locus": germline.locus,
        "chain": germline.chain,
        "version": germline.version,
        "source": germline.source,
        "digest": germline.digest,
        "n_v": len(germline.v),
        "n_d": len(germline.d),
        "n_j": len(germline.j),
        "n_c": len(germline.c),
        "n_without_anchor": sum(a.anchor is None for a in alleles if a.segment in "VJ"),
        "d_j_order": {gene: list(prefixes) for gene, prefixes in germline.d_j_order.items()},
        "d_d_order": None if germline.d_d_order is None else [list(pair) for pair in germline.d_d_order],
        "notes": list(germline.notes),
    }


def json_text(germline: GermlineSet) -> str:
    """A set with every allele as JSON text: the keys of `metadata`, and ``alleles``."""
    rows = [allele_row(allele) | {"aliases": list(allele.aliases)} for allele in germline.alleles()]
    return json.dumps(metadata(germline) | {"alleles": rows}, indent=1) + "\n"


def csv_text(germline: GermlineSet) -> str:
    """The alleles of a set as CSV text with a header line; empty where a value is not known."""
    buffer = io.StringIO()
    table = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(allele_row(allele) for allele in germline.alleles())
    return buffer.getvalue()


def write_csv(germline: GermlineSet, path: PathLike) -> None:
    """Write the alleles of a set as CSV.

    Parameters
    ----------
    germline
        The set.
    path
        The file; it is replaced in one step.

    Raises
    ------
    InvalidInput
        If the file cannot be written.
    """
    write_texts({Path(path): csv_text(germline)})
