"""Read and write AIRR Germline Set files (schema 2.0)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from plait.alphabets import translate
from plait.errors import FormatError, InvalidInput
from plait.formats.files import parse_json
from plait.vdj.germline.anchors import gapped_regions, gapped_v_anchor
from plait.vdj.germline.fasta import with_found_anchor
from plait.vdj.germline.files import PathLike, read_text, write_texts
from plait.vdj.germline.germline_set import (
    LOCI,
    SEGMENTS,
    TAXA,
    Allele,
    AnchorSource,
    Entry,
    GermlineSet,
    Segment,
    assemble,
    clean_sequence,
    gene_of,
    parse_functionality,
)

#: Longer than any germline gene, with its reference sequence around it.
_LARGEST: Final = 10**9
_DIGITS: Final = re.compile(r"[0-9]{1,10}")


class Record:
    """A JSON object with typed access to its fields; FormatError if it is none.

    `label` is the name of its place in the file, for messages.
    """

    def __init__(self, path: PathLike, value: object, label: str) -> None:
        if not isinstance(value, Mapping):
            raise FormatError(path, found=f"{_kind(value)} as {label}", expected="an object")
        self.path = path
        self.fields: Mapping[str, object] = value
        self.label = label

    def error(self, key: str, found: str, expected: str) -> FormatError:
        """A `FormatError` at a field of this object."""
        return FormatError(self.path, column=key, found=f"{found} in {self.label}", expected=expected)

    def text(self, key: str, default: str | None = None) -> str:
        """A string; the default if it is missing or null, and an error if there is no default."""
        value = self.fields.get(key)
        if value is None:
            if default is None:
                raise self.error(key, "nothing" if key not in self.fields else "null", "a string")
            return default
        if not isinstance(value, str):
            raise self.error(key, _kind(value), "a string")
        return value

    def integer(self, key: str) -> int | None:
        """A positive integer, or None if it is missing or null."""
        value = self.fields.get(key)
        if value is None:
            return None
        if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST:
            raise self.error(key, repr(value)[:40], "a positive integer")
        return value

    def boolean(self, key: str) -> bool | None:
        """A truth value, or None if it is missing or null."""
        value = self.fields.get(key)
        if value is None or isinstance(value, bool):
            return value
        raise self.error(key, repr(value)[:40], "true or false")

    def child(self, key: str) -> Record | None:
        """An object inside this one, or None if it is missing or null."""
        value = self.fields.get(key)
        return None if value is None else Record(self.path, value, f"{key} of {self.label}")

    def records(self, key: str, required: bool = False) -> list[Record]:
        """The objects of a list; empty if it is missing or null, unless it is required."""
        value = self.fields.get(key)
        if value is None and not required:
            return []
        if not isinstance(value, list):
            raise self.error(key, "nothing" if value is None else _kind(value), "a list")
        return [
            Record(self.path, item, _label(item, f"{key}[{i}] of {self.label}"))
            for i, item in enumerate(value)
        ]

    def names(self, key: str) -> tuple[str, ...]:
        """The non-empty strings of a list; empty if it is missing or null."""
        value = self.fields.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.error(key, _kind(value), "a list of strings")
        return tuple(item for item in value if isinstance(item, str) and item)

    def species(self) -> str:
        """The species: the label of an ontology term, or a plain string; empty if missing."""
        value = self.fields.get("species")
        if isinstance(value, Mapping):
            return Record(self.path, value, f"species of {self.label}").text("label", default="")
        return self.text("species", default="")

    def orders(self) -> tuple[dict[str, tuple[str, ...]], tuple[tuple[str, str], ...] | None]:
        """The joining rules ``d_j_order`` and ``d_d_order`` as in `GermlineSet`."""
        d_j = self.fields.get("d_j_order") or {}
        if not isinstance(d_j, Mapping) or not all(_is_names(prefixes) for prefixes in d_j.values()):
            raise self.error("d_j_order", repr(d_j)[:60], "an object of D gene to list of J gene prefixes")
        order = {gene: tuple(prefixes) for gene, prefixes in d_j.items()}
        d_d = self.fields.get("d_d_order")
        if d_d is None:
            return order, None
        if not isinstance(d_d, list) or not all(_is_names(pair) and len(pair) == 2 for pair in d_d):
            raise self.error("d_d_order", repr(d_d)[:60], "a list of pairs of D genes, or null")
        return order, tuple((a, b) for a, b in d_d)


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _label(item: object, place: str) -> str:
    label = item.get("label") if isinstance(item, Mapping) else None
    return label if isinstance(label, str) and label else place


def _kind(value: object) -> str:
    if value is None:
        return "null"
    kinds = {bool: "a truth value", int: "a number", float: "a number", str: "a string", list: "a list"}
    return kinds.get(type(value), "an object")


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


def _v_regions(allele: Record, coding: str) -> tuple[int, int, int, int] | None:
    """Regions of a V gene by its IMGT delineation, or by its IMGT-gapped sequence."""
    for d in allele.records("v_gene_delineations"):
        if d.text("delineation_scheme", default="") != "IMGT":
            continue
        unaligned = d.text("unaligned_sequence", default="") or coding
        shift = _shift(clean_sequence(unaligned), coding)
        starts = [d.integer(f"{part}_start") for part in _DELINEATED[1:]]
        first, second, third, fourth = (
            -1 if start is None else len(clean_sequence(unaligned[: start - 1])) + shift for start in starts
        )
        if 0 <= first <= second <= third <= fourth <= len(coding) and None not in starts:
            return first, second, third, fourth
        aligned = d.text("aligned_sequence", default="")
        gapped = gapped_regions(aligned)
        if gapped is not None and clean_sequence(aligned) == coding:
            return gapped
    return None


def _codon(sequence: str, anchor: int) -> str:
    return translate(sequence[anchor : anchor + 3])


class _Pending(NamedTuple):
    """An allele before its anchor is known; `motif` tells whether a motif may be that of a J."""

    allele: Allele
    offset: int
    j_cdr3_end: int | None
    j_source: AnchorSource
    note: str | None
    motif: bool

    def j_anchor(self, reading: _JReading) -> int | None:
        """The anchor that the file gives under a reading, perhaps outside of the sequence."""
        return None if self.j_cdr3_end is None else reading.anchor(self.j_cdr3_end, self.offset)

    def fit(self, reading: _JReading) -> int:
        """How well that position looks like the conserved codon of a J gene, 0 to 2."""
        anchor = self.j_anchor(reading)
        codons = (
            translate(self.allele.sequence[anchor : anchor + 12])
            if anchor is not None and anchor >= 0
            else ""
        )
        if codons[:1] not in ("F", "W"):
            return 0
        return 2 if len(codons) == 4 and codons[1] == codons[3] == "G" else 1


def _pending(record: Record, segment: Segment) -> _Pending:
    name = record.text("label")
    coding, offset = _coding_sequence(record)
    ours = record.child("plait")
    functional = record.boolean("functional")
    functionality = {True: "F", False: "P", None: None}[functional]
    if ours:
        functionality = ours.text("functionality", default="")
    known = parse_functionality(functionality or "")
    anchor, source, note = _v_anchor(record, coding) if segment == "V" else (None, None, None)
    j_cdr3_end = record.integer("j_cdr3_end") if segment == "J" else None
    gene, origin, stated = (
        ours.text(key, default="") if ours else "" for key in ("gene", "source", "anchor_source")
    )
    allele = Allele(
        name=name,
        gene=gene or gene_of(name),
        segment=segment,
        sequence=coding,
        functionality=known,
        aliases=record.names("aliases"),
        source=origin,
    )
    if anchor is not None and source is not None and stated != "none":
        allele = replace(allele, anchor=anchor, anchor_source=_STATED.get(stated, source))
    elif stated != "none" and j_cdr3_end is None:
        # To look for a motif takes longer than everything else that is done here.
        allele = _with_motif(allele)
    regions = _v_regions(record, coding) if segment == "V" else None
    if regions is not None and regions[-1] <= (-1 if allele.anchor is None else allele.anchor):
        allele = replace(allele, regions=regions)
    return _Pending(allele, offset, j_cdr3_end, _STATED.get(stated, "given"), note, stated != "none")


def _with_motif(allele: Allele) -> Allele:
    """The allele with the anchor that a motif of its sequence tells."""
    found = with_found_anchor(allele.segment, allele.name, allele.sequence, allele.functionality)
    return replace(allele, anchor=found.anchor, anchor_source=found.anchor_source)


def _with_j_anchor(pending: _Pending, reading: _JReading) -> tuple[Allele, str | None]:
    allele, anchor = pending.allele, pending.j_anchor(reading)
    if anchor is None:
        return allele, None
    if not 0 <= anchor <= len(allele.sequence) - 3:
        allele = _with_motif(allele) if pending.motif else allele
        return allele, f"j_cdr3_end of {allele.name} lies outside its sequence"
    return replace(allele, anchor=anchor, anchor_source=pending.j_source), None


def _alleles(sets: Iterable[Record]) -> list[_Pending]:
    pending = []
    for germline in sets:
        for record in germline.records("allele_descriptions", required=True):
            kind = record.text("sequence_type")
            segment = next((s for s in SEGMENTS if s == kind), None)
            if segment is None:
                raise record.error("sequence_type", repr(kind), "'V', 'D', 'J' or 'C'")
            pending.append(_pending(record, segment))
    return pending


def parse_airr_json(
    path: PathLike, text: str, *, name: str | None = None, strict: bool = True
) -> GermlineSet:
    """Make a germline set of the text of an AIRR Germline Set file; see `read_airr_json`."""
    sets = _sets(path, parse_json(text, path, expected=_EXPECTED))
    pending = _alleles(sets)
    notes = [p.note for p in pending if p.note]
    head = sets[0]
    ours = head.child("plait")
    own_version, own_source = (ours.text(k, default="") if ours else "" for k in ("version", "source"))
    reading = _J_READINGS[0] if ours else max(_J_READINGS, key=lambda r: sum(p.fit(r) for p in pending))
    if reading != _J_READINGS[0]:
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


_DELINEATED = ("fwr1", "cdr1", "fwr2", "cdr2", "fwr3")


def _delineation(allele: Allele, anchor: int) -> dict[str, Any]:
    """1-based first and last bases of the regions, as far as they are known: the conserved Cys ends FWR3."""
    starts = [0, *(allele.regions or [None] * 4), anchor + 3]
    bounds: dict[str, int | None] = {}
    for part, start, end in zip(_DELINEATED, starts, starts[1:], strict=False):
        bounds |= {f"{part}_start": None if start is None else start + 1, f"{part}_end": end}
    bounds["cdr3_start"] = anchor + 4
    return {
        "sequence_delineation_id": "1",
        "delineation_scheme": "IMGT",
        "unaligned_sequence": allele.sequence,
        "aligned_sequence": None,
        **bounds,
        "alignment_labels": None,
    }


def _codon_frame(anchor: int) -> int:
    """Codon position of the first base of a J sequence, 1 to 3."""
    return (-anchor) % 3 + 1


def _description(
    allele: Allele, species: dict[str, Any], locus: str, dates: dict[str, Any]
) -> dict[str, Any]:
    anchor = allele.anchor
    j_anchor = anchor if allele.segment == "J" else None
    stem = locus + allele.segment
    content: dict[str, Any] = {
        "allele_description_id": allele.name,
        "acknowledgements": [],
        **dates,
        "label": allele.name,
        "sequence": allele.sequence,
        "coding_sequence": allele.sequence,
        "aliases": list(allele.aliases),
        "locus": locus,
        "sequence_type": allele.segment,
        # The schema asks for the key and lets it be null: not known.
        "functional": None if allele.functionality is None else allele.functionality == "F",
        "inference_type": None,
        "species": species,
        "gene_designation": allele.gene.removeprefix(stem),
        "allele_designation": allele.name.partition("*")[2] or None,
        "gene_start": 1,
        "gene_end": len(allele.sequence),
    }
    if allele.segment == "V":
        content["v_gene_delineations"] = [] if anchor is None else [_delineation(allele, anchor)]
    if allele.segment == "J":
        content["j_codon_frame"] = None if j_anchor is None else _codon_frame(j_anchor)
        content["j_cdr3_end"] = None if j_anchor is None else j_anchor + 1
    content["plait"] = {
        "gene": allele.gene,
        "functionality": allele.functionality,
        "anchor_source": allele.anchor_source,
    } | ({"source": allele.source} if allele.source else {})
    return content


def airr_text(
    germline: GermlineSet,
    *,
    release_date: str | None = None,
    release_description: str = "",
    acknowledgements: Sequence[dict[str, Any]] = (),
    curation: str | None = None,
) -> str:
    """A germline set as the text of an AIRR Germline Set file, the same for the same input.

    `release_date` is ``YYYY-MM-DD`` or None for null, `acknowledgements` are contributors as the schema
    describes them. A locus that the schema does not have raises an `InvalidInput`.
    """
    if germline.locus not in LOCI:
        raise InvalidInput("locus", found=repr(germline.locus), expected=", ".join(LOCI), hint="use --locus")
    species = {"id": TAXA.get(germline.species), "label": germline.species}
    dates = {
        "release_version": int(germline.version) if re.fullmatch("[0-9]{1,9}", germline.version) else 1,
        "release_date": release_date,
        "release_description": release_description,
    }
    d_d_order = germline.d_d_order
    content = {
        "germline_set_id": germline.name,
        "acknowledgements": list(acknowledgements),
        **dates,
        "germline_set_name": germline.name,
        "germline_set_ref": f"plait:{germline.name}",
        "species": species,
        "locus": germline.locus,
        "allele_descriptions": [
            _description(allele, species, germline.locus, dates) for allele in germline.alleles()
        ],
        "curation": curation,
        "plait": {
            "version": germline.version,
            "source": germline.source,
            "d_j_order": {gene: list(prefixes) for gene, prefixes in germline.d_j_order.items()},
            "d_d_order": None if d_d_order is None else [list(pair) for pair in d_d_order],
        },
    }
    return json.dumps({"GermlineSet": [content]}, indent=1) + "\n"


def write_airr_json(germline: GermlineSet, path: PathLike) -> None:
    """Write a germline set as an AIRR Germline Set file.

    Parameters
    ----------
    germline
        The set. Everything but its notes is kept: reading the file gives the same digest.
    path
        The file; it is replaced in one step.

    Raises
    ------
    InvalidInput
        If the locus is not one of the schema, or the file cannot be written.
    """
    write_texts({Path(path): airr_text(germline)})
