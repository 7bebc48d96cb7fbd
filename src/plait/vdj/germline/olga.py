"""The genomic part of OLGA and IGoR model folders."""

from __future__ import annotations

import re
from pathlib import Path

from plait.errors import FormatError
from plait.vdj.germline.allele import SEGMENTS, Allele, Segment, clean_sequence, gene_of
from plait.vdj.germline.anchors import AnchorRow, read_anchor_table, with_row
from plait.vdj.germline.fasta import read_header
from plait.vdj.germline.files import PathLike, read_text
from plait.vdj.germline.germline_set import Entry, GermlineSet, assemble

_PARAMETER_FILES = ("model_params.txt", "model_parms.txt", "final_parms.txt")
_EXPECTED = "an OLGA or IGoR parameter file"


def find_parameters(folder: PathLike) -> Path | None:
    """The parameter file of a model folder, or None if it is no model folder."""
    places = (Path(folder), Path(folder) / "models")
    paths = (place / name for place in places for name in _PARAMETER_FILES)
    return next((path for path in paths if path.is_file()), None)


def _anchor_table(folder: Path, segment: Segment) -> tuple[Path, dict[str, AnchorRow]]:
    # IGoR keeps its anchors in a folder of their own beside the model.
    for place in (folder, folder / "ref_genome", folder.parent / "ref_genome"):
        path = place / f"{segment}_gene_CDR3_anchors.csv"
        if path.is_file():
            return path, {row.name: row for row in read_anchor_table(path)}
    expected = f"{segment}_gene_CDR3_anchors.csv in the folder"
    raise FormatError(folder, found=f"no anchors of {segment} genes", expected=expected)


def _realisation(path: Path, line: int, text: str) -> tuple[str, str, int]:
    """Name, sequence and index of one ``%name;sequence;index`` line."""
    cells = text[1:].split(";")
    if len(cells) != 3 or not re.fullmatch("[0-9]{1,9}", cells[2].strip()):
        raise FormatError(path, line=line, found=repr(text[:60]), expected="'%name;sequence;index'")
    return read_header(cells[0]).name, clean_sequence(cells[1]), int(cells[2])


def _genes(path: Path) -> list[Entry]:
    """The alleles of the GeneChoice events, by segment in the order of their index."""
    choices: dict[Segment, dict[int, Entry]] = {segment: {} for segment in SEGMENTS}
    segment: Segment | None = None
    for number, raw in enumerate(read_text(path, _EXPECTED).splitlines(), 1):
        line = raw.strip()
        if line.startswith("@") and line != "@Event_list":
            break
        if line.startswith("#"):
            kind, *rest = line[1:].split(";")
            gene = rest[0] if rest else ""
            segment = next((s for s in SEGMENTS if kind == "GeneChoice" and gene == f"{s}_gene"), None)
            if kind == "GeneChoice" and segment is None:
                raise FormatError(path, line=number, found=repr(line), expected="V_gene, D_gene or J_gene")
        elif line.startswith("%") and segment:
            name, sequence, index = _realisation(path, number, line)
            if not name or index in choices[segment]:
                found = f"a second {segment} gene of index {index}" if name else "a gene without a name"
                raise FormatError(path, line=number, found=found, expected="a name and an index of its own")
            allele = Allele(name=name, gene=gene_of(name), segment=segment, sequence=sequence)
            choices[segment][index] = Entry(allele=allele, path=str(path), line=number)
    required: tuple[Segment, Segment] = ("V", "J")
    for needed in required:
        if not choices[needed]:
            raise FormatError(
                path, found=f"no {needed} genes", expected=f"an event '#GeneChoice;{needed}_gene;...'"
            )
    return [entry for chosen in choices.values() for _, entry in sorted(chosen.items())]


def read_olga_model(
    folder: PathLike,
    *,
    name: str | None = None,
    species: str = "",
    locus: str = "",
    strict: bool = True,
) -> GermlineSet:
    """Read the germline genes and anchors of a recombination model.

    Parameters
    ----------
    folder
        Folder with ``model_params.txt`` (IGoR: ``model_parms.txt`` or ``final_parms.txt``, perhaps in
        ``models``) and ``V_gene_CDR3_anchors.csv`` and ``J_gene_CDR3_anchors.csv`` (IGoR: in ``ref_genome``).
    name
        Name of the set; by default that of the folder.
    species, locus
        Species (binomial, ``human`` or ``mouse``) and locus; the locus is inferred from the J names.
    strict
        Whether to reject unusable sequences and repeated names, or keep them for `validate` to report.

    Returns
    -------
    GermlineSet
        The alleles by the index of the model. A gene that the anchor tables do not have keeps anchor None.

    Raises
    ------
    FormatError
        If a file is missing or not what it should be.
    """
    where = Path(folder)
    parameters = find_parameters(where)
    if parameters is None:
        expected = "a folder with " + " or ".join(_PARAMETER_FILES)
        raise FormatError(where, found="no parameter file", expected=expected)
    entries = _genes(parameters)
    names = {entry.allele.name for entry in entries}
    notes = []
    anchored: tuple[Segment, Segment] = ("V", "J")
    for segment in anchored:
        path, rows = _anchor_table(where, segment)
        unused = rows.keys() - names
        if unused:
            notes.append(f"{path.name} has {len(unused)} gene(s) that the model does not choose")
        entries = [_anchored(entry, segment, path, rows) for entry in entries]
    return assemble(
        entries,
        name=name or where.resolve().name,
        species=species,
        locus=locus,
        version="",
        source=f"model {where.resolve().name}",
        strict=strict,
        notes=notes,
    )


def _anchored(entry: Entry, segment: str, path: Path, rows: dict[str, AnchorRow]) -> Entry:
    row = rows.get(entry.allele.name)
    if entry.allele.segment != segment or row is None:
        return entry
    # A partial sequence may end before the position that the table gives for its gene.
    if row.anchor is not None and row.anchor + 3 > len(entry.allele.sequence):
        row = AnchorRow(name=row.name, anchor=None, functionality=row.functionality, line=row.line)
    allele = with_row(entry.allele, row, path, "given")
    return Entry(allele=allele, path=entry.path, line=entry.line)
