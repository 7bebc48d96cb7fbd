"""Germline sets by name or path."""

from __future__ import annotations

import difflib
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path

from plait.errors import FormatError, InvalidInput
from plait.vdj.germline.airr_json import parse_airr_json
from plait.vdj.germline.allele import Segment
from plait.vdj.germline.anchors import apply_overrides
from plait.vdj.germline.fasta import find_trio, read_fasta, read_fasta_trio, trio_candidates
from plait.vdj.germline.files import PathLike, read_text
from plait.vdj.germline.germline_set import GermlineSet
from plait.vdj.germline.olga import find_parameters, read_olga_model

_EXPECTED = "a germline set: AIRR JSON, FASTA, or a folder with FASTA files or an OLGA or IGoR model"
_SUFFIX = "_germline.json"


def _data() -> dict[str, str]:
    """File name by name of the set."""
    folder = resources.files("plait.vdj.germline").joinpath("data")
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(_SUFFIX))
    return {name.removesuffix(_SUFFIX): name for name in names}


def bundled_germlines() -> tuple[str, ...]:
    """Names of the germline sets that come with plait."""
    return tuple(_data())


@cache
def _bundled(name: str) -> GermlineSet:
    file = _data()[name]
    text = resources.files("plait.vdj.germline").joinpath("data", file).read_text("utf-8")
    return parse_airr_json(file, text, name=name)


def guess_germline(v_call: str, j_call: str) -> str:
    """Name of the one bundled set that has both a V and a J call; InvalidInput if none or several have.

    >>> guess_germline("TRBV13-1", "TRBJ2-7")
    'mouse_trb'
    """
    having = ((v_call, _having(v_call, "V")), (j_call, _having(j_call, "J")))
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
        Name of a bundled set, such as ``"mouse_trb"``; or an AIRR Germline Set JSON file; a FASTA file with
        V, D and J sequences; a folder, or the common start of the names, of a V, a J and perhaps a D FASTA
        file; or an OLGA or IGoR model folder. Files may be gzip.
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
    if isinstance(name_or_path, str) and name_or_path in _data():
        germline = _bundled(name_or_path)
        germline = replace(germline, name=name) if name else germline
    else:
        germline = _from_path(Path(name_or_path), name=name, species=species, locus=locus, strict=strict)
    return germline if anchors is None else apply_overrides(germline, anchors)


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
        trio = find_trio(path)
        return read_fasta_trio(
            trio["V"], trio["J"], trio.get("D"), name=name, species=species, locus=locus, strict=strict
        )
    known = ", ".join(bundled_germlines())
    near = difflib.get_close_matches(str(path).lower().replace("-", "_"), bundled_germlines(), n=1)
    raise InvalidInput(
        "germline set",
        found=repr(str(path)),
        expected=f"one of {known}, or a path",
        hint=f"did you mean {near[0]}?" if near else None,
    )
