"""Germline sets as FASTA: one file a segment, IMGT-style or plain headers, gapped or ungapped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from plait.alphabets import translate
from plait.errors import FormatError, InvalidInput
from plait.vdj.germline.anchors import find_j_anchor, find_v_anchor, gapped_regions, gapped_v_anchor
from plait.vdj.germline.files import PathLike, fasta_stem, read_text, write_texts
from plait.vdj.germline.germline_set import (
    SEGMENTS,
    Allele,
    AnchorSource,
    Entry,
    Functionality,
    GermlineSet,
    Segment,
    assemble,
    clean_sequence,
    gene_of,
    locus_of,
    parse_functionality,
)

_EXPECTED = "a FASTA file of germline sequences"
_LINE = 60
_CONSTANT = {"IGHM", "IGHD", "IGHG", "IGHA", "IGHE"}


class FastaHeader(NamedTuple):
    """Allele name and functionality in a header; None if it does not say."""

    name: str
    functionality: Functionality | None


def read_header(header: str) -> FastaHeader:
    """Allele name and functionality of a header line, without its ``>``.

    Between bars the second field is the name and the fourth the functionality, as IMGT writes them; otherwise
    the first word or field is the name.

    >>> read_header("M88304|TRBV1*01|Homo sapiens|(F)|V-REGION|")
    FastaHeader(name='TRBV1*01', functionality='F')
    """
    fields = [field.strip() for field in header.split("|")]
    named_first = locus_of(fields[0]) and not (len(fields) > 1 and locus_of(fields[1]))
    if len(fields) == 1 or named_first:
        return FastaHeader((fields[0].split() or [""])[0], None)
    return FastaHeader(fields[1], parse_functionality(fields[3]) if len(fields) > 3 else None)


def _v_anchor(raw: str, sequence: str) -> tuple[int | None, AnchorSource]:
    gapped = gapped_v_anchor(raw)
    if gapped is not None and translate(sequence[gapped : gapped + 3]) == "C":
        return gapped, "gapped"
    # No Cys in its columns: the gene has lost it, or the alignment is shifted and there is one nearby.
    found = find_v_anchor(sequence)
    return (gapped, "gapped") if found is None and gapped is not None else (found, "motif")


def with_found_anchor(
    segment: Segment, name: str, raw: str, functionality: Functionality | None, **known: Any
) -> Allele:
    """An allele with its anchor, and its regions if its sequence has IMGT gaps; else a motif is the anchor.

    `raw` is with or without gaps, in any case; `known` are other fields of the allele.
    """
    sequence = clean_sequence(raw)
    anchor: int | None = None
    found: AnchorSource = "motif"
    if segment == "V":
        anchor, found = _v_anchor(raw, sequence)
        if found == "gapped":
            known.setdefault("regions", gapped_regions(raw))
    elif segment == "J":
        anchor = find_j_anchor(sequence)
    return Allele(
        name=name,
        gene=gene_of(name),
        segment=segment,
        sequence=sequence,
        functionality=functionality,
        anchor=anchor,
        anchor_source="none" if anchor is None else found,
        **known,
    )


def _records(path: PathLike) -> Iterator[tuple[int, str, str]]:
    """Line number, header and raw sequence of every record."""
    start, header, parts = 0, "", list[str]()
    for number, line in enumerate(read_text(path, _EXPECTED).splitlines(), 1):
        if line.startswith(">"):
            if start:
                yield start, header, "".join(parts)
            start, header, parts = number, line[1:].strip(), []
        elif line.strip() and not line.startswith(";"):
            if not start:
                raise FormatError(path, line=number, found=repr(line[:40]), expected="a header line, '>name'")
            parts.append(line.strip())
    if start:
        yield start, header, "".join(parts)


def _segment_of(name: str) -> Segment | None:
    """Segment that a name states; IGHD*01 is the constant gene delta, IGHD1-1*01 a D."""
    letter = name[3:4].upper() if locus_of(name) else ""
    if gene_of(name).upper() in _CONSTANT or gene_of(name)[:4].upper() in _CONSTANT - {"IGHD"}:
        return "C"
    return next((segment for segment in SEGMENTS if segment == letter), None)


def _entries(path: PathLike, segment: Segment | None) -> list[Entry]:
    entries = []
    for line, header, raw in _records(path):
        name, functionality = read_header(header)
        if not name:
            raise FormatError(
                path, line=line, found="a header without a name", expected="'>name' or IMGT fields"
            )
        stated = _segment_of(name)
        if segment is None and stated is None:
            raise FormatError(
                path,
                line=line,
                found=f"allele {name!r}",
                expected="a name with V, D, J or C as its fourth letter, as in TRBV1*01",
                hint="give V, D, J and C in files of their own",
            )
        if segment and stated and segment != stated:
            raise FormatError(
                path, line=line, found=f"{stated} allele {name!r}", expected=f"{segment} alleles"
            )
        allele = with_found_anchor(segment or stated or "V", name, raw, functionality)
        entries.append(Entry(allele=allele, path=str(path), line=line))
    return entries


def trio_candidates(folder_or_prefix: PathLike) -> dict[Segment, list[Path]]:
    """FASTA files by segment, in a folder or with a common start of their names; see `find_trio`."""
    where = Path(folder_or_prefix)
    folder, prefix = (where, None) if where.is_dir() else (where.parent, where.name)
    found: dict[Segment, list[Path]] = {segment: [] for segment in SEGMENTS}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        stem = fasta_stem(path.name)
        segment = next((s for s in SEGMENTS if stem and stem[-1].upper() == s), None)
        if stem and segment and (prefix is None or stem[:-1].rstrip("._-") == prefix.rstrip("._-")):
            found[segment].append(path)
    return found


def find_trio(folder_or_prefix: PathLike) -> dict[Segment, Path]:
    """The V, D, J and C FASTA files in a folder, or those whose names start with a prefix.

    A file belongs to a segment if its name ends in V, D, J or C, in any case, before ``.fasta``, ``.fa``,
    ``.fna`` or ``.fas``, and perhaps ``.gz``. Behind a prefix only ``.``, ``_`` and ``-`` may precede it.
    InvalidInput if V or J is missing, or a segment has several files.
    """
    found = trio_candidates(folder_or_prefix)
    for segment, paths in found.items():
        if len(paths) > 1 or (not paths and segment in "VJ"):
            names = ", ".join(path.name for path in paths) or "none"
            raise InvalidInput(
                str(folder_or_prefix),
                found=f"{segment} FASTA files: {names}",
                expected=f"one FASTA file whose name ends in {segment}",
                hint="name the files V.fasta, D.fasta and J.fasta, or use --v, --d and --j",
            )
    return {segment: paths[0] for segment, paths in found.items() if paths}


def read_fasta_trio(
    v: PathLike,
    j: PathLike,
    d: PathLike | None = None,
    c: PathLike | None = None,
    *,
    name: str | None = None,
    species: str = "",
    locus: str = "",
    strict: bool = True,
) -> GermlineSet:
    """Read the V, J and perhaps D and C sequences of one locus.

    Parameters
    ----------
    v, j, d, c
        FASTA files, plain or gzip. In V, dots are IMGT gaps.
    name
        Name of the set; by default the name of the V file without its last letter.
    species, locus
        Species (binomial, ``human`` or ``mouse``) and locus; the locus is inferred from the J names.
    strict
        Whether to reject unusable sequences and repeated names, or keep them for `validate` to report.

    Returns
    -------
    GermlineSet
        The set. Alleles whose anchor cannot be found are in it with anchor None.

    Raises
    ------
    FormatError
        If a file is not what it should be.
    """
    files: dict[Segment, PathLike | None] = {"V": v, "D": d, "J": j, "C": c}
    entries = [entry for s, path in files.items() if path is not None for entry in _entries(path, s)]
    stem = fasta_stem(Path(v).name) or Path(v).name
    return assemble(
        entries,
        name=name or stem[:-1].rstrip("._-") or Path(v).resolve().parent.name,
        species=species,
        locus=locus,
        source="FASTA " + ", ".join(Path(path).name for path in files.values() if path is not None),
        strict=strict,
    )


def read_fasta(
    path: PathLike, *, name: str | None = None, species: str = "", locus: str = "", strict: bool = True
) -> GermlineSet:
    """Read V, D, J and C sequences of one locus from one file; the names tell the segment.

    Parameters
    ----------
    path
        FASTA file, plain or gzip. In V, dots are IMGT gaps.
    name
        Name of the set; by default that of the file.
    species, locus
        Species (binomial, ``human`` or ``mouse``) and locus; the locus is inferred from the J names.
    strict
        Whether to reject unusable sequences and repeated names, or keep them for `validate` to report.

    Returns
    -------
    GermlineSet
        The set. Alleles whose anchor cannot be found are in it with anchor None.

    Raises
    ------
    FormatError
        If the file is not what it should be.
    """
    return assemble(
        _entries(path, None),
        name=name or fasta_stem(Path(path).name) or Path(path).name,
        species=species,
        locus=locus,
        source=f"FASTA {Path(path).name}",
        strict=strict,
    )


def fasta_texts(germline: GermlineSet) -> Mapping[Segment, str]:
    """The set as FASTA text by segment; segments without alleles are left out."""
    texts: dict[Segment, str] = {}
    for segment in SEGMENTS:
        lines = []
        for allele in germline.alleles(segment):
            source = allele.source.replace("|", " ")
            fields = (
                source,
                allele.name,
                germline.species,
                allele.functionality or "",
                f"{segment}-REGION",
                "",
            )
            wrapped = [allele.sequence[i : i + _LINE] for i in range(0, len(allele.sequence), _LINE)]
            lines += [">" + "|".join(fields), *wrapped]
        if lines:
            texts[segment] = "\n".join(lines) + "\n"
    return texts


def write_fasta_trio(germline: GermlineSet, prefix: PathLike) -> tuple[Path, ...]:
    """Write ``PREFIXV.fasta``, ``PREFIXD.fasta`` and so on for each segment, and ``PREFIX_anchors.csv``.

    A FASTA suffix of the prefix is left out. FASTA cannot hold anchors; the CSV is the one that ``--anchors``
    reads, with an empty anchor_index for a V or J allele without an anchor. Regions and joining
    rules are lost.

    Parameters
    ----------
    germline
        The set.
    prefix
        Start of the paths; for a folder, the files in it get the name of the set.

    Returns
    -------
    tuple of Path
        The files written.

    Raises
    ------
    InvalidInput, FormatError
        If one cannot be written, or the prefix is a device or pipe.
    """
    where = Path(prefix)
    if where.is_dir():
        # Names come from files: none may lead out of the folder, or be hidden in it.
        where /= re.sub(r"[^\w.-]", "_", germline.name).lstrip(".")
    elif where.exists() and not where.is_file():
        raise InvalidInput(
            "output",
            found=f"{str(where)!r}, which is a device or pipe",
            expected="the name of a .json or .csv file, a folder, or the common start of the names of files",
        )
    stem = fasta_stem(where.name) or where.name
    texts = {
        where.with_name(f"{stem}{segment}.fasta"): text for segment, text in fasta_texts(germline).items()
    }
    rows = ["gene,anchor_index,function"]
    rows += [
        f"{a.name},{'' if a.anchor is None else a.anchor},{a.functionality or ''}"
        for a in (*germline.v, *germline.j)
    ]
    texts[where.with_name(f"{stem}_anchors.csv")] = "\n".join(rows) + "\n"
    write_texts(texts)
    return tuple(texts)
