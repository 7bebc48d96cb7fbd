"""What is wrong or odd in a germline set, what can be mended, and the set as rows and text."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_low
from typing import Any, Literal

from plait.alphabets import reverse_complement, translate
from plait.vdj.germline.allele import Allele, bad_symbols, locus_of
from plait.vdj.germline.anchors import certain_anchor
from plait.vdj.germline.files import PathLike, write_texts
from plait.vdj.germline.germline_set import GermlineSet, gene_has_prefix

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
        protein = translate(allele.sequence[: allele.anchor])
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
    usual = median_low([len(a.sequence) for a in germline.v]) if germline.v else 0
    for allele in germline.alleles():
        end = allele.cdr3_end
        low, high = CDR3_END_LENGTHS[allele.segment]
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
        if allele.segment == "D":
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
        if allele.segment == "D" or allele.anchor is None or allele.functionality not in (None, "F"):
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
        "n_without_anchor": sum(a.anchor is None for a in alleles if a.segment != "D"),
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
