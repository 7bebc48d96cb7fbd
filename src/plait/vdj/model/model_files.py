"""Models in files: those that plait brings, JSON files, and whether their genes have conserved codons."""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from plait._version import __version__
from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.json_text import parse_json
from plait.vdj.germline.allele import Allele, Segment, parse_functionality
from plait.vdj.germline.files import read_text
from plait.vdj.germline.findings import anchor_faults, repaired
from plait.vdj.model.igor import MODEL_FILES, read_igor_model, write_igor_model
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel

_FORMAT: Final = "plait recombination model"
_VERSION: Final = 1
_SUFFIX: Final = "_model.json"
#: Member of ``probabilities``, attribute and number of axes.
_TABLES: Final = (
    ("v", "p_v", 1),
    ("dj", "p_dj", 3),
    ("v_deletion", "p_v_deletions", 2),
    ("d_deletion", "p_d_deletions", 3),
    ("j_deletion", "p_j_deletions", 2),
    ("vd_length", "p_vd_length", 1),
    ("vd_step", "vd_steps", 2),
    ("dj_length", "p_dj_length", 1),
    ("dj_step", "dj_steps", 2),
)
_ENDS: Final = ("v", "d5", "d3", "j")


def read_model(path: str | os.PathLike[str]) -> RecombinationModel:
    """Read a model.

    Parameters
    ----------
    path
        A JSON file of plait's own format (see `plait.vdj.model.model_files`), the folder that ``plait vdj
        infer`` has made, or a folder of IGoR or OLGA.

    Raises
    ------
    FormatError
        If a file is missing or not what it should be; the message names the line or the member.
    """
    place = Path(path)
    if place.is_dir():
        # The folder of an inference holds its model in both formats.
        own = place / "model.json"
        if not own.is_file() or (place / MODEL_FILES[0]).exists():
            return read_igor_model(place)
        place = own
    return _parse(place, read_text(place, "a model: a JSON file of plait, or a folder of IGoR or OLGA"))


def write_model(model: RecombinationModel, path: str | os.PathLike[str]) -> None:
    """Write a model.

    Parameters
    ----------
    model
        The model.
    path
        ``.json`` for plait's own format (see `plait.vdj.model.model_files`); any other name is that of a
        folder in the format of IGoR and OLGA.

    Raises
    ------
    InvalidInput, FormatError
        If it cannot be written there.
    """
    if not os.fspath(path).endswith(".json"):
        write_igor_model(model, path)
        return
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "written_by": f"plait {__version__}",
        "name": model.name,
        "error_rate": model.error_rate,
        "genes": {segment: [_gene_as_dict(g) for g in getattr(model, segment)] for segment in "vdj"},
        "palindromes": dict(zip(_ENDS, model.palindromes, strict=True)),
        "probabilities": {member: getattr(model, name).tolist() for member, name, _ in _TABLES},
        "provenance": model.provenance,
    }
    # Compact tables: an indented one would have a line for every number.
    members = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in content.items()
    )
    with AtomicFile(path) as file, output_errors(path):
        file.stream.write(("{\n" + ",\n".join(members) + "\n}\n").encode("utf-8"))


def _gene_as_dict(gene: ModelGene) -> dict[str, Any]:
    return {name: getattr(gene, name) for name in ("name", "sequence", "anchor", "function")}


def _parse(path: Path | str, text: str) -> RecombinationModel:
    found = _Members(path, "", parse_json(text, path, expected="a model as JSON"))
    said = found.get("format", str), found.get("version", int)
    if said != (_FORMAT, _VERSION):
        expected = f"format {_FORMAT!r}, version {_VERSION}"
        raise FormatError(path, found=f"format {said[0][:60]!r}, version {said[1]}", expected=expected)
    genes, ends = found.member("genes"), found.member("palindromes")
    tables = found.member("probabilities")
    try:
        return RecombinationModel(
            name=found.get("name", str),
            v=tuple(genes.genes("v")),
            d=tuple(genes.genes("d")),
            j=tuple(genes.genes("j")),
            palindromes=(ends.get("v", int), ends.get("d5", int), ends.get("d3", int), ends.get("j", int)),
            **{name: tables.table(member, axes) for member, name, axes in _TABLES},
            error_rate=found.number("error_rate"),
            provenance=found.get("provenance", dict),
        )
    except InvalidInput as error:
        members = {name: f"probabilities.{member}" for member, name, _ in _TABLES}
        what = members.get(error.what, error.what)
        raise FormatError(path, found=f"{error.found} in {what}", expected=error.expected) from error


class _Members:
    """Members of an object of a file, with errors that name them."""

    def __init__(self, path: Path | str, where: str, content: Any) -> None:
        self._path = path
        self._where = where
        if not isinstance(content, dict):
            raise self._wrong("", type(content).__name__, "an object")
        self._content = content

    def _wrong(self, member: str, found: object, expected: str) -> FormatError:
        place = ".".join(part for part in (self._where, member) if part)
        return FormatError(self._path, column=place or None, found=found, expected=expected)

    def get(self, member: str, kind: Any) -> Any:
        value = self._content.get(member)
        if not isinstance(value, kind) or isinstance(value, bool):
            told = f"{value!r:.40}" if member in self._content else "nothing"
            raise self._wrong(member, told, f"a member of type {getattr(kind, '__name__', kind)}")
        return value

    def number(self, member: str) -> float:
        value = self.get(member, float | int)
        try:
            return float(value)
        except OverflowError:
            raise self._wrong(member, "a number that is too large", "a number") from None

    def member(self, name: str) -> _Members:
        return _Members(self._path, f"{self._where}.{name}".strip("."), self.get(name, dict))

    def genes(self, segment: str) -> list[ModelGene]:
        genes = []
        for k, entry in enumerate(self.get(segment, list)):
            found = _Members(self._path, f"{self._where}.{segment}[{k}]", entry)
            sequence = found.get("sequence", str)
            if set(sequence) - set("ACGT"):
                raise found._wrong("sequence", repr(sequence[:40]), "A, C, G and T")
            anchor = found.get("anchor", int | None)
            name, function = (found.get(member, str).strip() for member in ("name", "function"))
            genes.append(ModelGene(name, sequence, anchor, function))
        return genes

    def table(self, member: str, axes: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        values = self.get(member, list)
        try:
            table = np.array(values, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise self._wrong(member, "lists of unequal length, or no numbers", "numbers") from None
        if table.size == 0:
            table = np.zeros((0,) * axes)
        if table.ndim != axes:
            raise self._wrong(member, f"lists of depth {table.ndim}", f"depth {axes}")
        return table


def _data() -> dict[str, Any]:
    folder = resources.files("plait.vdj.model").joinpath("data")
    items = sorted((item for item in folder.iterdir() if item.name.endswith(_SUFFIX)), key=lambda i: i.name)
    return {item.name.removesuffix(_SUFFIX): item for item in items}


def bundled_models() -> tuple[str, ...]:
    """Names of the models that come with plait.

    Examples
    --------
    >>> bundled_models()
    ('human_TRB',)
    """
    return tuple(_data())


def bundled_model(name: str) -> RecombinationModel:
    """A model that comes with plait.

    Parameters
    ----------
    name
        One of `bundled_models`.

    Raises
    ------
    InvalidInput
        If there is none of that name.
    """
    known = _data()
    if name not in known:
        like = {one.lower(): one for one in known}
        near = difflib.get_close_matches(name.lower().replace("-", "_"), like, n=1, cutoff=0.8)
        own = "plait vdj infer makes one from rearrangements"
        raise InvalidInput(
            "model",
            found=repr(name),
            expected=f"one of {', '.join(known)}, or a file or folder",
            hint=f"did you mean {like[near[0]]}?" if near else own,
        )
    return _parse(known[name].name, known[name].read_text("utf-8"))


def load_model(name: str | os.PathLike[str]) -> RecombinationModel:
    """A model by its name, if it comes with plait, or else from a file or folder.

    Parameters
    ----------
    name
        See `bundled_models`, or `read_model`.

    Raises
    ------
    InvalidInput
        If there is neither.
    FormatError
        If a file is not what it should be.
    """
    if isinstance(name, str) and name in _data():
        return bundled_model(name)
    return read_model(name) if os.path.exists(name) else bundled_model(os.fspath(name))


def _alleles(model: RecombinationModel) -> dict[str, tuple[Allele, float]]:
    """Functional V and J genes with a probability above zero, and that probability, by name."""
    both: tuple[tuple[Segment, Any, Any], ...] = (("V", model.v, model.p_v), ("J", model.j, model.p_j))
    return {
        gene.name: (
            Allele(
                name=gene.name,
                gene=gene.gene,
                segment=segment,
                sequence=gene.sequence,
                functionality=parse_functionality(gene.function) or "P",
                anchor=gene.anchor,
            ),
            float(p),
        )
        for segment, genes, share in both
        for gene, p in zip(genes, share, strict=True)
        if gene.functional and p > 0
    }


def gene_faults(model: RecombinationModel) -> dict[str, str]:
    """What is wrong with the conserved codon of functional genes that the model chooses, by name.

    Examples
    --------
    >>> from plait.vdj.model import bundled_model
    >>> gene_faults(bundled_model("human_TRB"))
    {}
    """
    known = _alleles(model)
    found = anchor_faults(allele for allele, _ in known.values())
    return {name: f"probability {known[name][1]:.4g}: {message}" for name, message in found.items()}


def repair_model(model: RecombinationModel) -> tuple[RecombinationModel, dict[str, str]]:
    """A model with all genes of `gene_faults` that can be mended beyond doubt, and what was done to each.

    A gene is mended if its conserved codon has one convincing place: elsewhere in its sequence, or in the
    reverse complement. Probabilities stay as they are. The provenance of the model names the genes.
    """
    known = _alleles(model)
    mended = {name: fixed for name in gene_faults(model) if (fixed := repaired(known[name][0]))}
    told = {name: what for name, (_, what) in mended.items()}
    if not told:
        return model, told

    def changed(genes: tuple[ModelGene, ...]) -> tuple[ModelGene, ...]:
        return tuple(
            replace(g, sequence=mended[g.name][0].sequence, anchor=mended[g.name][0].anchor)
            if g.name in mended
            else g
            for g in genes
        )

    provenance = {**model.provenance, "repaired_anchors": told}
    return replace(model, v=changed(model.v), j=changed(model.j), provenance=provenance), told
