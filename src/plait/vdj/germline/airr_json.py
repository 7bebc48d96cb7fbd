"""Read AIRR Germline Set files (schema 2.0).

AIRR coordinates are 1-based. ``cdr3_start`` counts in a delineation's ``unaligned_sequence`` and is the base
behind the conserved Cys codon. ``j_cdr3_end`` is, in the words of the schema, the first base of the conserved
Phe or Trp codon, in ``sequence``; files exist that mean the last base of the CDR3, or count in
``coding_sequence``. So the reading under which most J genes of a file show Phe or Trp there is taken, and
noted if it is not the schema's.

What AIRR has no field for stands under the key ``plait``; files without it are read as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from plait.errors import FormatError
from plait.formats.json_text import parse_json
from plait.vdj.germline.anchors import gapped_v_anchor
from plait.vdj.germline.assemble import Entry, assemble
from plait.vdj.germline.codons import translate
from plait.vdj.germline.fasta import with_found_anchor
from plait.vdj.germline.files import PathLike, read_text
from plait.vdj.germline.germline_set import GermlineSet
from plait.vdj.germline.json_record import Record
from plait.vdj.germline.records import (
    SEGMENTS,
    Allele,
    AnchorSource,
    Segment,
    clean_sequence,
    parse_functionality,
)

__all__ = ["parse_airr_json", "read_airr_json"]

_EXPECTED = "an AIRR Germline Set file (JSON)"
# Of the sources that our own key states, those that the AIRR fields alone do not tell.
_STATED: dict[str, AnchorSource] = {"gapped": "gapped", "motif": "motif", "override": "override"}


class _JReading(NamedTuple):
    """What a file means by ``j_cdr3_end``."""

    in_sequence: bool
    codon_start: bool

    def anchor(self, position: int, offset: int) -> int:
        """0-based anchor in the coding sequence, which starts at 0-based `offset` of the full one."""
        return position - (1 if self.codon_start else 0) - (offset if self.in_sequence else 0)

    def __str__(self) -> str:
        what = "the first base of the conserved codon" if self.codon_start else "the last base of the CDR3"
        return f"{what}, counted in {'sequence' if self.in_sequence else 'coding_sequence'}"


# The schema's reading first: it is taken when nothing speaks for another.
_J_READINGS = tuple(_JReading(i, c) for c in (True, False) for i in (True, False))


def _sets(path: PathLike, content: object) -> list[Record]:
    top = Record(path, content, "the file")
    if "allele_descriptions" in top.fields:
        return [top]
    if "GermlineSet" not in top.fields:
        keys = ", ".join(map(repr, list(top.fields)[:5])) or "no key"
        raise FormatError(path, found=keys, expected="a key 'GermlineSet'")
    value = top.fields["GermlineSet"]
    if isinstance(value, Mapping):
        value = [value] if "allele_descriptions" in value else list(value.values())
    if not isinstance(value, list) or not value:
        raise FormatError(
            path, column="GermlineSet", found=repr(value)[:40], expected="a list of germline sets"
        )
    sets = [Record(path, item, f"germline set {i}") for i, item in enumerate(value)]
    kinds = {(s.text("locus"), s.species()) for s in sets}
    if len(kinds) > 1:
        found = "; ".join(sorted(f"{locus} of {species or 'unknown species'}" for locus, species in kinds))
        raise FormatError(path, found=found, expected="sets of one locus and species", hint="split the file")
    return sets


def _coding_sequence(allele: Record) -> tuple[str, int]:
    """Ungapped coding sequence, and where it starts in the ungapped full sequence."""
    full = clean_sequence(allele.text("sequence", default=""))
    coding = clean_sequence(allele.text("coding_sequence", default=""))
    start, end = allele.integer("gene_start"), allele.integer("gene_end")
    if not coding:
        if not full:
            raise allele.error(
                "coding_sequence", "neither coding_sequence nor sequence", "a nucleotide sequence"
            )
        coding = full[(start or 1) - 1 : end]
    offset = full.find(coding) if start is None or full[start - 1 :][: len(coding)] != coding else start - 1
    return coding, max(offset, 0)


def _shift(part: str, coding: str) -> int:
    """What to add to a position in `part` to get one in `coding`."""
    return coding.find(part) if part in coding else -max(part.find(coding), 0)


def _v_anchor(allele: Record, coding: str) -> tuple[int | None, AnchorSource | None, str | None]:
    """Anchor of a V gene by its delineations, how it is known, and a note."""
    delineations = allele.records("v_gene_delineations")
    delineations.sort(key=lambda d: d.text("delineation_scheme", default="") != "IMGT")
    given: int | None = None
    gapped: int | None = None
    for d in delineations:
        position, aligned = d.integer("cdr3_start"), d.text("aligned_sequence", default="")
        if given is None and position is not None:
            unaligned = d.text("unaligned_sequence", default="") or coding
            before = len(clean_sequence(unaligned[: max(position - 4, 0)]))
            given = before + _shift(clean_sequence(unaligned), coding)
        if gapped is None and aligned and d.text("delineation_scheme", default="") == "IMGT":
            column = gapped_v_anchor(aligned)
            gapped = None if column is None else column + _shift(clean_sequence(aligned), coding)
    inside = range(0, len(coding) - 2)
    note = None
    if given is not None and given not in inside:
        note, given = f"cdr3_start of {allele.label} lies outside its sequence", None
    if gapped is not None and gapped not in inside:
        gapped = None
    if given is None:
        return gapped, "gapped", note
    if gapped is not None and _codon(coding, given) != "C" and _codon(coding, gapped) == "C":
        note = f"cdr3_start of {allele.label} does not follow a Cys; its aligned sequence gave the anchor"
        return gapped, "gapped", note
    return given, "given", note


def _codon(sequence: str, anchor: int) -> str:
    return translate(sequence[anchor : anchor + 3])


def _j_fit(sequence: str, anchor: int) -> int:
    """How well a position looks like that of the conserved codon of a J gene, 0 to 2."""
    codons = translate(sequence[anchor : anchor + 12]) if anchor >= 0 else ""
    if codons[:1] not in ("F", "W"):
        return 0
    return 2 if len(codons) == 4 and codons[1] == codons[3] == "G" else 1


def _j_reading(stated: Sequence[tuple[str, int, int]], ours: bool) -> _JReading:
    """The reading under which the J genes fit best; `stated` has sequence, j_cdr3_end and offset."""
    if ours:
        return _J_READINGS[0]

    def fit(reading: _JReading) -> int:
        return sum(_j_fit(seq, reading.anchor(position, offset)) for seq, position, offset in stated)

    return max(_J_READINGS, key=fit)


class _Pending(NamedTuple):
    """An allele before its anchor is known."""

    allele: Allele
    offset: int
    j_cdr3_end: int | None
    j_source: AnchorSource
    note: str | None


def _pending(record: Record, segment: Segment) -> _Pending:
    name = record.text("label")
    coding, offset = _coding_sequence(record)
    ours = record.child("plait")
    functional = record.boolean("functional")
    functionality = {True: "F", False: "P", None: None}[functional]
    if ours:
        functionality = ours.text("functionality", default="")
    known = parse_functionality(functionality or "")
    allele = with_found_anchor(segment, name, coding, known, record.names("aliases"))
    anchor, source, note = _v_anchor(record, coding) if segment == "V" else (None, None, None)
    stated = ours.text("anchor_source", default="") if ours else ""
    if stated == "none":
        allele = replace(allele, anchor=None, anchor_source="none")
    elif anchor is not None and source is not None:
        allele = replace(allele, anchor=anchor, anchor_source=_STATED.get(stated, source))
    if ours:
        allele = replace(allele, gene=ours.text("gene", default="") or allele.gene)
    j_cdr3_end = record.integer("j_cdr3_end") if segment == "J" else None
    return _Pending(allele, offset, j_cdr3_end, _STATED.get(stated, "given"), note)


def _with_j_anchor(pending: _Pending, reading: _JReading) -> tuple[Allele, str | None]:
    allele = pending.allele
    if pending.j_cdr3_end is None:
        return allele, None
    anchor = reading.anchor(pending.j_cdr3_end, pending.offset)
    if not 0 <= anchor <= len(allele.sequence) - 3:
        return allele, f"j_cdr3_end of {allele.name} lies outside its sequence"
    return replace(allele, anchor=anchor, anchor_source=pending.j_source), None


def _alleles(sets: Iterable[Record]) -> tuple[list[_Pending], list[str]]:
    pending, skipped = [], []
    for germline in sets:
        for record in germline.records("allele_descriptions", required=True):
            kind = record.text("sequence_type")
            segment = next((s for s in SEGMENTS if s == kind), None)
            if segment:
                pending.append(_pending(record, segment))
            elif kind == "C":
                skipped.append(record.label)
            else:
                raise record.error("sequence_type", repr(kind), "'V', 'D', 'J' or 'C'")
    return pending, [f"{len(skipped)} constant region(s) left out: {', '.join(skipped)}"] if skipped else []


def parse_airr_json(
    path: PathLike, text: str, *, name: str | None = None, strict: bool = True
) -> GermlineSet:
    """Make a germline set of the text of an AIRR Germline Set file; see `read_airr_json`."""
    sets = _sets(path, parse_json(text, path, expected=_EXPECTED))
    pending, notes = _alleles(sets)
    notes += [p.note for p in pending if p.note]
    head = sets[0]
    ours = head.child("plait")
    own_version, own_source = (ours.text(k, default="") if ours else "" for k in ("version", "source"))
    stated = [(p.allele.sequence, p.j_cdr3_end, p.offset) for p in pending if p.j_cdr3_end is not None]
    reading = _j_reading(stated, ours is not None)
    if stated and reading != _J_READINGS[0]:
        notes.append(f"j_cdr3_end was read as {reading}")
    entries = []
    for i, p in enumerate(pending):
        allele, note = _with_j_anchor(p, reading)
        notes += [note] if note else []
        entries.append(Entry(allele=allele, path=str(path), record=i))
    d_j_order, d_d_order = ours.orders() if ours else (None, None)
    return assemble(
        entries,
        name=name or head.text("germline_set_name", default="") or Path(path).stem,
        species=head.species(),
        locus=head.text("locus"),
        version=own_version or str(head.fields.get("release_version") or ""),
        source=own_source or head.text("germline_set_ref", default="") or str(path),
        strict=strict,
        d_j_order=d_j_order,
        d_d_order=d_d_order,
        notes=notes,
    )


def read_airr_json(path: PathLike, *, name: str | None = None, strict: bool = True) -> GermlineSet:
    """Read an AIRR Germline Set file, plain or gzip.

    Several sets in one file are joined if they are of one locus and species.

    Parameters
    ----------
    path
        The file.
    name
        Name of the set; by default the file's own.
    strict
        Whether to reject unusable sequences and repeated names, or keep them for `validate` to report.

    Returns
    -------
    GermlineSet
        The set.

    Raises
    ------
    FormatError
        If the file is no JSON, lacks a required key, or has one of the wrong type.
    """
    return parse_airr_json(path, read_text(path, _EXPECTED), name=name, strict=strict)
