"""Germline sets by name or path, and the genomic part of OLGA and IGoR model folders."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from plait.errors import FormatError, InvalidInput
from plait.vdj.germline.airr_json import parse_airr_json
from plait.vdj.germline.anchors import AnchorRow, apply_overrides, read_anchor_table, with_row
from plait.vdj.germline.fasta import find_trio, read_fasta, read_fasta_trio, read_header, trio_candidates
from plait.vdj.germline.files import PathLike, read_text
from plait.vdj.germline.germline_set import (
    LOCI,
    Allele,
    Entry,
    GermlineSet,
    Segment,
    assemble,
    clean_sequence,
    gene_of,
)

_PARAMETER_FILES = ("model_params.txt", "model_parms.txt", "final_parms.txt")
_EXPECTED_MODEL = "an OLGA or IGoR parameter file"


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
    choices: dict[Segment, dict[int, Entry]] = {"V": {}, "D": {}, "J": {}}
    segment: Segment | None = None
    for number, raw in enumerate(read_text(path, _EXPECTED_MODEL).splitlines(), 1):
        line = raw.strip()
        if line.startswith("@") and line != "@Event_list":
            break
        if line.startswith("#"):
            kind, *rest = line[1:].split(";")
            gene = rest[0] if rest else ""
            segment = next((s for s in choices if kind == "GeneChoice" and gene == f"{s}_gene"), None)
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


_EXPECTED = "a germline set: AIRR JSON, FASTA, or a folder with FASTA files or an OLGA or IGoR model"
_SUFFIX = "_germline.json.gz"
#: Sets by what they have in common, in the order in which they are taken.
_GROUPS = {"": LOCI, "_tr": LOCI[3:], "_ig": LOCI[:3]}


def _data() -> dict[str, str]:
    """File name by name of the set."""
    folder = Path(__file__).with_name("data")
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(_SUFFIX))
    return {name.removesuffix(_SUFFIX): name for name in names}


def bundled_germlines() -> tuple[str, ...]:
    """Names of the germline sets that come with plait, one a locus; for several see `load_germlines`."""
    return tuple(_data())


def _group(name: str) -> list[str]:
    """Bundled sets that the name of one or of several means, in any case; empty if none."""
    bare = name.lower().replace("-", "_")
    if bare in _data():
        return [bare]
    species, mark, kind = bare.partition("_")
    return [own for locus in _GROUPS.get(mark + kind, ()) if (own := f"{species}_{locus.lower()}") in _data()]


@cache
def _bundled(name: str) -> GermlineSet:
    file = _data()[name]
    packed = (Path(__file__).with_name("data") / file).read_bytes()
    return parse_airr_json(file, gzip.decompress(packed).decode(), name=name)


def guess_germline(v_call: str, j_call: str) -> str:
    """Name of the one bundled set that has both a V and a J call; InvalidInput if none or several have.

    >>> guess_germline("TRBV13-1", "TRBJ2-7")
    'mouse_trb'
    """
    calls: tuple[tuple[str, Segment], tuple[str, Segment]] = ((v_call, "V"), (j_call, "J"))
    having = tuple((call, _having(call, segment)) for call, segment in calls)
    both = [name for name in bundled_germlines() if all(name in names for _, names in having)]
    if len(both) == 1:
        return both[0]
    told = f"both calls are in {' and '.join(both)}"
    if not both:
        told = ", ".join(f"{call!r} is in {' and '.join(names) or 'none'}" for call, names in having)
    raise InvalidInput(
        "germline set",
        found=f"none given, and {told}",
        expected="calls that one bundled set alone has",
        hint="say which with --germline",
    )


def _having(call: str, segment: Segment) -> list[str]:
    """Bundled sets that know every name in a call."""
    found = {name: load_germline(name).resolve_all(call, segment) for name in bundled_germlines()}
    return [name for name, alleles in found.items() if alleles and None not in alleles]


def load_germline(
    name_or_path: PathLike,
    *,
    anchors: PathLike | None = None,
    name: str | None = None,
    species: str = "",
    locus: str = "",
    strict: bool = True,
) -> GermlineSet:
    """Load a germline set.

    Parameters
    ----------
    name_or_path
        Name of a bundled set, such as ``"mouse_trb"``, in any case; an AIRR Germline Set JSON file; a FASTA
        file with V, D, J and C sequences; a folder, or the common start of the names, of FASTA files of V, J
        and perhaps D and C; or an OLGA or IGoR model folder. Files may be gzip.
    anchors
        CSV table ``gene,anchor_index[,function]`` whose 0-based anchors replace those of the set.
    name
        Name of the set; by default the name of the bundled set, or one made from the file.
    species, locus
        For FASTA and models, which do not state them.
    strict
        Whether to reject unusable sequences and repeated names, or keep them for `validate` to report.

    Returns
    -------
    GermlineSet
        The set.

    Raises
    ------
    InvalidInput
        If there is neither a bundled set of that name nor a file.
    FormatError
        If a file is not what it should be.

    Examples
    --------
    >>> load_germline("mouse_trb").resolve("TRBV13-1", "V") is not None
    True
    """
    bundled = _group(name_or_path) if isinstance(name_or_path, str) else []
    if len(bundled) > 1 and not Path(name_or_path).exists():
        found = f"{name_or_path!r}, which is {len(bundled)} of them"
        raise InvalidInput("germline set", found=found, expected=f"one of {', '.join(bundled)}")
    if len(bundled) == 1:
        germline = _bundled(bundled[0])
        germline = replace(germline, name=name) if name else germline
    else:
        germline = _from_path(Path(name_or_path), name=name, species=species, locus=locus, strict=strict)
    return germline if anchors is None else apply_overrides(germline, anchors)


def load_germlines(name_or_path: PathLike, *, anchors: PathLike | None = None) -> tuple[GermlineSet, ...]:
    """Load one germline set, or all that a name means.

    Parameters
    ----------
    name_or_path
        ``human`` or ``mouse`` for all loci of a species, ``human_tr`` and ``human_ig`` for those of T cell
        receptors and of immunoglobulins, in any case; or one set, as in `load_germline`.
    anchors
        As in `load_germline`, for one set.

    Returns
    -------
    tuple of GermlineSet
        One set a locus.

    Raises
    ------
    InvalidInput, FormatError
        As `load_germline`; InvalidInput if anchors are given for several sets.

    Examples
    --------
    >>> [germline.locus for germline in load_germlines("human_TR")]
    ['TRA', 'TRB', 'TRG', 'TRD']
    """
    names = [] if Path(name_or_path).exists() else _group(str(name_or_path))
    if len(names) < 2:
        return (load_germline(name_or_path, anchors=anchors),)
    if anchors is not None:
        raise InvalidInput("anchors", found=f"{len(names)} germline sets", expected="the name or path of one")
    return tuple(map(_bundled, names))


def _from_path(path: Path, *, name: str | None, species: str, locus: str, strict: bool) -> GermlineSet:
    if path.is_file():
        start = read_text(path, _EXPECTED).lstrip()[:1]
        if start == ">":
            return read_fasta(path, name=name, species=species, locus=locus, strict=strict)
        if start in ("{", "["):
            return parse_airr_json(path, read_text(path, _EXPECTED), name=name, strict=strict)
        raise FormatError(path, found=f"text that starts with {start!r}", expected=_EXPECTED)
    if path.is_dir() and find_parameters(path):
        return read_olga_model(path, name=name, species=species, locus=locus, strict=strict)
    if path.is_dir() or any(trio_candidates(path).values()):
        files = {segment.lower(): file for segment, file in find_trio(path).items()}
        return read_fasta_trio(**files, name=name, species=species, locus=locus, strict=strict)
    import difflib

    known = ", ".join(bundled_germlines())
    near = difflib.get_close_matches(str(path).lower().replace("-", "_"), bundled_germlines(), n=1)
    raise InvalidInput(
        "germline set",
        found=repr(str(path)),
        expected=f"one of {known}, or a path",
        hint=f"did you mean {near[0]}?" if near else None,
    )
