"""A model of V(D)J recombination: with which probability every choice is made; and models in files.

Those are the models that plait brings, JSON files, and whether their genes have conserved codons.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.errors import FormatError, InvalidInput, Unsupported
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.files import parse_json
from plait.vdj.germline.anchors import anchor_faults, repaired
from plait.vdj.germline.files import read_text
from plait.vdj.germline.germline_set import Allele, GermlineSet, Segment, parse_functionality

_Floats = NDArray[np.float64]
#: How far probabilities may be from a sum of 1: models are written with few digits.
_TOLERANCE = 1e-3
_BASES = "ACGT"
#: Tables, and axes along which they add up to 1: of all chains, and of those with D.
_SUMMED: Final = {
    "p_v": (0,),
    "p_dj": (1, 2),
    "p_v_deletions": (1,),
    "p_j_deletions": (1,),
    "p_vd_length": (0,),
    "vd_steps": (1,),
}
_SUMMED_OF_D: Final = {"p_d_deletions": (1, 2), "p_dj_length": (0,), "dj_steps": (1,)}
#: Nucleotides of a P extension.
_LONGEST = 10_000
_COMPLEMENT = str.maketrans(_BASES, _BASES[::-1])


@dataclass(frozen=True, slots=True)
class ModelGene:
    """A gene, or an allele of one, of a model.

    Attributes
    ----------
    name
        Its name.
    sequence
        Upper-case germline nucleotides.
    anchor
        V and J: 0-based position of the first base of the conserved codon; None if it is not known, in
        which case the gene makes no junction.
    function
        Functionality as the model's file has it: ``"F"``, ``"ORF"``, ``"P"``, ...
    """

    name: str
    sequence: str
    anchor: int | None = None
    function: str = ""

    @property
    def gene(self) -> str:
        """The name without the allele."""
        return self.name.partition("*")[0]

    @property
    def functional(self) -> bool:
        """Whether it is functional, surely (F) or by its rearranged sequences ((F)), and makes junctions."""
        return self.anchor is not None and self.function.strip() in ("F", "(F)")


@dataclass(frozen=True, kw_only=True)
class RecombinationModel:
    """Probabilities of genes, deletions and insertions.

    Attributes
    ----------
    name
        What the model is called.
    v, d, j
        The genes; no D for chains without one.
    p_v
        float64 (V,): probability of each V gene.
    p_dj
        float64 (1, D, J): of D and J together, for all V alike. Without D genes (V or 1, 1, J): of J, given V
        or for all V alike.
    p_v_deletions, p_j_deletions
        float64 (V, n) and (J, n): of each deletion at the end of a gene.
    p_d_deletions
        float64 (D, n5, n3): of deletions at both ends of D together.
    palindromes
        Longest P extension of V, of D at 5' and 3', and of J.
    p_vd_length, p_dj_length
        float64 (n,): of each number of N nucleotides; without D the first one alone.
    vd_steps, dj_steps
        float64 (4, 4): of each N nucleotide (column, in the order A, C, G, T) after the one before (row); V-D
        from 5' to 3', D-J from 3' to 5'. The first one comes from the stationary distribution.
    error_rate
        Probability that a nucleotide was read wrongly.
    provenance
        Where the model comes from.

    Raises
    ------
    InvalidInput
        If shapes do not go together, probabilities do not add up to 1, or two genes of a kind have one name.
    """

    name: str
    v: tuple[ModelGene, ...] = field(repr=False)
    d: tuple[ModelGene, ...] = field(repr=False)
    j: tuple[ModelGene, ...] = field(repr=False)
    p_v: _Floats = field(repr=False)
    p_dj: _Floats = field(repr=False)
    p_v_deletions: _Floats = field(repr=False)
    p_d_deletions: _Floats = field(repr=False)
    p_j_deletions: _Floats = field(repr=False)
    palindromes: tuple[int, int, int, int]
    p_vd_length: _Floats = field(repr=False)
    vd_steps: _Floats = field(repr=False)
    p_dj_length: _Floats = field(repr=False)
    dj_steps: _Floats = field(repr=False)
    error_rate: float = 0.0
    provenance: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Check shapes and sums."""
        nv, nd, nj = len(self.v), max(len(self.d), 1), len(self.j)
        self._shape("p_v", self.p_v, (nv,))
        # D and J that depend on V would need a lattice for each V; readers take the mean over V.
        rows = len(self.p_dj) if len(self.p_dj) == nv and not self.d else 1
        self._shape("p_dj", self.p_dj, (rows, nd, nj))
        self._shape("p_v_deletions", self.p_v_deletions, (nv, self.p_v_deletions.shape[-1]))
        self._shape("p_j_deletions", self.p_j_deletions, (nj, self.p_j_deletions.shape[-1]))
        if self.d:
            self._shape("p_d_deletions", self.p_d_deletions, (nd, *self.p_d_deletions.shape[-2:]))
        for name in ("vd_steps", "dj_steps") if self.d else ("vd_steps",):
            self._shape(name, getattr(self, name), (4, 4))
        self._check_names_and_numbers()
        for gene in (*self.v, *self.j):
            if gene.anchor is not None and not 0 <= gene.anchor <= len(gene.sequence) - 3:
                expected = f"a codon within the {len(gene.sequence)} nucleotides"
                raise InvalidInput(f"anchor of {gene.name}", found=gene.anchor, expected=expected)
        for what, table, axes, of in self._distributions():
            if not np.isfinite(table).all() or table.min(initial=0.0) < 0:
                raise InvalidInput(what, found="a negative or infinite number", expected="probabilities")
            sums = np.ravel(table.sum(axis=axes))
            # A gene that never occurs may have no deletions at all: it makes no junction.
            wrong = np.flatnonzero(
                (np.abs(sums - 1) > _TOLERANCE) & (sums != 0 if of is not _BASES and len(of) else True)
            )
            if wrong.size:
                place = f" for {of[int(wrong[0])]}" if of else ""
                raise InvalidInput(
                    what,
                    found=f"a sum of {float(sums[wrong[0]]):.6g}{place}",
                    expected="probabilities that add up to 1",
                )

    def _check_names_and_numbers(self) -> None:
        """Check that calls can name every gene, and numbers that are no table."""
        for segment, genes in (("V", self.v), ("D", self.d), ("J", self.j)):
            names = Counter(gene.name for gene in genes)
            for name, times in names.items():
                if not name or times > 1:
                    found = f"{name} {times} times" if name else "a gene without a name"
                    raise InvalidInput(f"{segment} genes", found=found, expected="every name once")
        if min(self.palindromes) < 0 or max(self.palindromes) > _LONGEST:
            found = ", ".join(f"{number!s:.20}" for number in self.palindromes)
            raise InvalidInput("palindromes", found=found, expected=f"numbers from 0 to {_LONGEST:,}")
        if not 0 <= self.error_rate <= 1:
            raise InvalidInput("error_rate", found=self.error_rate, expected="a probability")

    def _shape(self, what: str, table: _Floats, shape: tuple[int, ...]) -> None:
        if table.shape != shape:
            raise InvalidInput(what, found=f"shape {table.shape}", expected=f"shape {shape}")

    def _distributions(self) -> list[tuple[str, _Floats, tuple[int, ...], Sequence[str]]]:
        """Every table, the axes along which it adds up to 1, and what each of its sums is for."""
        v, d, j = ([gene.name for gene in genes] for genes in (self.v, self.d, self.j))
        given = {"p_v_deletions": v, "p_d_deletions": d, "p_j_deletions": j}
        given["p_dj"] = v if len(self.p_dj) > 1 else []
        bases: dict[str, Sequence[str]] = {"vd_steps": _BASES, "dj_steps": _BASES}
        of = {**given, **bases}
        return [
            (name, getattr(self, name), axes, of.get(name, ())) for name, axes in self.distributions().items()
        ]

    def distributions(self) -> Mapping[str, tuple[int, ...]]:
        """Names of the tables of this chain, and the axes along which each adds up to 1."""
        return {**_SUMMED, **_SUMMED_OF_D} if self.d else _SUMMED

    def notes(self) -> tuple[str, ...]:
        """What keeps genes of the model out of junctions, one sentence each."""
        found = []
        for segment, genes, share in (("V", self.v, self.p_v), ("J", self.j, self.p_j)):
            for what, flags in (
                ("without a sequence", [not gene.sequence for gene in genes]),
                ("without a known anchor", [gene.anchor is None for gene in genes]),
                ("that are not functional", [not gene.functional for gene in genes]),
            ):
                if any(flags):
                    total = float(share[np.array(flags)].sum())
                    found.append(
                        f"{sum(flags)} of {len(genes)} {segment} genes {what}, with probability {total:.4g}"
                    )
        return tuple(found)

    @property
    def chain(self) -> Literal["vj", "vdj"]:
        """What is joined."""
        return "vdj" if self.d else "vj"

    @cached_property
    def digest(self) -> str:
        """Of genes and probabilities, 16 hexadecimal digits: equal for models that give equal numbers."""
        found = hashlib.sha256()
        genes = [
            [(g.name, g.sequence, g.anchor, g.functional) for g in part] for part in (self.v, self.d, self.j)
        ]
        found.update(repr((genes, self.palindromes)).encode())
        for what, table, _, _ in self._distributions():
            found.update(f"{what}{table.shape}".encode() + np.ascontiguousarray(table).tobytes())
        return found.hexdigest()[:16]

    @property
    def p_j(self) -> _Floats:
        """float64 (J,): probability of each J gene, whatever V and D are."""
        given = self.p_dj.sum(axis=1)
        found: _Floats = self.p_v @ given if len(given) > 1 else given[0]
        return found

    def identity(self) -> dict[str, Any]:
        """What results say of the model they were made with."""
        told = {"model": self.name, "model_digest": self.digest}
        repaired = self.provenance.get("repaired_anchors")
        return {**told, "repaired_anchors": repaired} if repaired else told

    @cached_property
    def vd_first(self) -> _Floats:
        """float64 (4,): probability of the first N nucleotide between V and D (or V and J)."""
        return stationary_distribution(self.vd_steps)

    @cached_property
    def dj_first(self) -> _Floats:
        """float64 (4,): probability of the N nucleotide next to J."""
        return stationary_distribution(self.dj_steps)

    def extended_all(self, segment: Literal["V", "D", "J"]) -> list[str]:
        """`extended` of all genes of a segment.

        Parameters
        ----------
        segment
            Which kind of gene.
        """
        genes = {"V": self.v, "D": self.d, "J": self.j}[segment]
        return [self.extended(segment, k) for k in range(len(genes))]

    def extended(self, segment: Literal["V", "D", "J"], index: int) -> str:
        """The part of a gene that a junction may hold, with all P nucleotides; empty without anchor.

        Parameters
        ----------
        segment
            Which kind of gene.
        index
            Which one.
        """
        v, d5, d3, j = self.palindromes
        if segment == "V":
            gene = self.v[index]
            part = gene.sequence[gene.anchor :] if gene.anchor is not None else ""
            return part + _mirrored(part, v) if part else ""
        if segment == "J":
            gene = self.j[index]
            part = gene.sequence[: gene.anchor + 3] if gene.anchor is not None else ""
            return _mirrored(part[::-1], j)[::-1] + part if part else ""
        whole = self.d[index].sequence
        return _mirrored(whole[::-1], d5)[::-1] + whole + _mirrored(whole, d3)


def packed_bases(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bases of n texts as 0 to 3, one text after the other, and where each begins and ends, (n + 1,)."""
    bases = np.array([_BASES.index(base) for text in texts for base in text], np.uint8)
    return bases, np.cumsum([0, *map(len, texts)], dtype=np.int64)


def _mirrored(part: str, count: int) -> str:
    """What P nucleotides follow a 3' end: the complement of its last `count` nucleotides, last one first."""
    return part[::-1][:count].translate(_COMPLEMENT)


def stationary_distribution(steps: _Floats) -> _Floats:
    """The stationary distribution (4,) of a Markov chain; `steps` (4, 4) go from row to column."""
    system = np.vstack([steps.T - np.eye(4), np.ones(4)])
    found: _Floats = np.linalg.lstsq(system, np.array([0.0, 0, 0, 0, 1]), rcond=None)[0]
    found = np.clip(found, 0.0, None)
    scaled: _Floats = found / found.sum()
    return scaled


#: Longest P extension.
_PALINDROME: Final = 4
#: Most nucleotides that are deleted from V, from either end of D, and from J.
_DELETED: Final = {"V": 16, "D": 16, "J": 18}
#: Most insertions where nothing else is asked for: heavy chains have the longest ones.
_INSERTED: Final = {"IGH": 60, "vdj": 30, "vj": 40}


def model_from_germline(
    germline: GermlineSet,
    chain: Literal["auto", "vj", "vdj"] = "auto",
    *,
    most_insertions: int | None = None,
) -> RecombinationModel:
    """The genes of a germline set as a model to begin inference with.

    Every V and every J with a known anchor is as probable as the others, every D among those that may join
    the J, every number of deletions among those that the gene allows, every number of insertions, every N
    nucleotide.

    Parameters
    ----------
    germline
        The germline set. Alleles with letters other than A, C, G and T are left out. One whose functionality
        the set does not state counts as functional.
    chain
        What is joined; ``"auto"`` takes what the set implies.
    most_insertions
        Most N nucleotides at a junction; by default 30 between V and D and between D and J (60 in IGH), and
        40 between V and J.

    Returns
    -------
    RecombinationModel
        The model.

    Raises
    ------
    InvalidInput
        If the set lacks genes that the chain is made of, or the number of insertions is not one.
    Unsupported
        If the chain has two D genes.

    Examples
    --------
    >>> from plait.vdj.germline import load_germline
    >>> model = model_from_germline(load_germline("mouse_trb"))
    >>> model.chain, len(model.v), float(round(model.p_dj[0, 1, 0], 9))
    ('vdj', 29, 0.0)
    """
    kind = germline.chain if chain == "auto" else chain
    if kind == "vddj":
        raise Unsupported("a model of chains with two D genes", why="models have one D gene at most")
    v, d, j = (_plain(germline.alleles(segment)) for segment in ("V", "D", "J"))
    d = d if kind == "vdj" else []
    for segment, alleles in (("V", v), ("J", j)):
        if not any(allele.anchor is not None for allele in alleles):
            raise InvalidInput(
                "germline set",
                found=f"{germline.name} with no {segment} gene whose anchor is known",
                expected=f"{segment} genes with anchors",
                hint="give anchors with --anchors",
            )
    if kind == "vdj" and not d:
        raise InvalidInput("chain", found=f"vdj, and {germline.name} has no D gene", expected="vj")
    most = _INSERTED.get(germline.locus, _INSERTED[kind]) if most_insertions is None else most_insertions
    if not 0 <= most <= 500:
        raise InvalidInput("most_insertions", found=most, expected="0 to 500")
    palindromes = (_PALINDROME, *(_PALINDROME if d else 0 for _ in range(2)), _PALINDROME)
    sizes = most + 1, (most + 1 if d else 1)
    return RecombinationModel(
        name=f"{germline.name}, nothing known",
        v=tuple(_gene(allele) for allele in v),
        d=tuple(_gene(allele) for allele in d),
        j=tuple(_gene(allele) for allele in j),
        p_v=_anchored(v) / _anchored(v).sum(),
        # Without D, J is chosen given V.
        p_dj=_joined(germline, d, j) if d else np.tile(_anchored(j) / _anchored(j).sum(), (len(v), 1, 1)),
        p_v_deletions=_end_deletions(v, "V"),
        p_d_deletions=_d_deletions(d) if d else np.zeros((0, 1, 1)),
        p_j_deletions=_end_deletions(j, "J"),
        palindromes=(palindromes[0], palindromes[1], palindromes[2], palindromes[3]),
        p_vd_length=np.full(sizes[0], 1 / sizes[0]),
        vd_steps=np.full((4, 4), 0.25),
        p_dj_length=np.full(sizes[1], 1 / sizes[1]),
        dj_steps=np.full((4, 4), 0.25),
        provenance={
            "germline_set": germline.name,
            "germline_digest": germline.digest,
            "germline_version": germline.version,
            "germline_source": germline.source,
            "germline_notes": list(germline.notes),
            "functionality_assumed": sum(a.functionality is None for a in (*v, *j)),
        },
    )


def _plain(alleles: Sequence[Allele]) -> list[Allele]:
    return [allele for allele in alleles if allele.sequence and not set(allele.sequence) - set("ACGT")]


def _gene(allele: Allele) -> ModelGene:
    function = "" if allele.segment == "D" else allele.functionality or "F"
    return ModelGene(allele.name, allele.sequence, allele.anchor, function)


def _anchored(alleles: Sequence[Allele]) -> _Floats:
    return np.array([allele.anchor is not None for allele in alleles], float)


def _joined(germline: GermlineSet, d: Sequence[Allele], j: Sequence[Allele]) -> _Floats:
    """Every J alike, and with it every D that may join it."""
    names = {allele.name: k for k, allele in enumerate(germline.d)}
    of_j = _anchored(j) / _anchored(j).sum()
    table = np.zeros((1, len(d), len(j)))
    for k, allele in enumerate(j):
        allowed = germline.allowed_d(allele)
        may = np.array([allowed[names[one.name]] for one in d], float)
        # A J that no D may join could not be made at all.
        may = may if may.any() else np.ones(len(d))
        table[0, :, k] = of_j[k] * may / may.sum()
    return table


def _end_deletions(alleles: Sequence[Allele], segment: Literal["V", "J"]) -> _Floats:
    """Deletions that leave a nucleotide at least, all alike."""
    table = np.zeros((len(alleles), _PALINDROME + _DELETED[segment] + 1))
    for row, allele in zip(table, alleles, strict=True):
        row[: (len(allele.cdr3_end or "") or 1) + _PALINDROME] = 1
        row /= row.sum()
    return table


def _d_deletions(alleles: Sequence[Allele]) -> _Floats:
    size = _PALINDROME + _DELETED["D"] + 1
    table = np.zeros((len(alleles), size, size))
    for one, allele in zip(table, alleles, strict=True):
        one += np.add.outer(np.arange(size), np.arange(size)) <= len(allele.sequence) + 2 * _PALINDROME
        one /= one.sum()
    return table


def entropies(model: RecombinationModel) -> dict[str, float]:
    """Entropy of every choice of a model in bits, each given the choices that it depends on.

    Parameters
    ----------
    model
        The model; its tables are scaled to a sum of 1.

    Returns
    -------
    dict
        By name: ``"V"``; ``"J"``, given V where it depends on it; ``"D given J"``; ``"deletions V"``,
        ``"deletions D"`` (both ends together), ``"deletions J"``, each given the gene; ``"insertions VD"``
        and ``"insertions DJ"`` (``"insertions VJ"``), of the numbers of N nucleotides; ``"nucleotides VD"``
        and so on, of the N nucleotides given how many there are; and ``"total"``, the sum, which is the
        entropy of scenarios: different ones may make the same junction.
    """
    p_v = _scaled(model.p_v)
    p_dj = np.stack([_scaled(table) for table in model.p_dj])
    p_j = p_dj.sum(axis=1)
    mean_j = p_v @ p_j if len(p_j) > 1 else p_j[0]
    found = {"V": _bits(p_v), "J": float(p_v @ _rows(p_j)) if len(p_j) > 1 else _bits(p_j[0])}
    if model.d:
        # D and J do not depend on V here.
        found["D given J"] = _bits(p_dj[0]) - found["J"]
    found["deletions V"] = float(p_v @ _rows(model.p_v_deletions))
    if model.d:
        whole = model.p_d_deletions.reshape(len(model.d), -1)
        found["deletions D"] = float(p_dj[0].sum(axis=1) @ _rows(whole))
    found["deletions J"] = float(mean_j @ _rows(model.p_j_deletions))
    junctions = [("VD" if model.d else "VJ", model.p_vd_length, model.vd_steps, model.vd_first)]
    if model.d:
        junctions.append(("DJ", model.p_dj_length, model.dj_steps, model.dj_first))
    for name, lengths, steps, first in junctions:
        p = _scaled(lengths)
        found[f"insertions {name}"] = _bits(p)
        # The first nucleotide is drawn from the distribution that the steps keep, and so is each later one.
        further = float(p[1:] @ np.arange(p.size - 1))
        found[f"nucleotides {name}"] = float(p[1:].sum()) * _bits(first) + further * float(
            first @ _rows(steps)
        )
    found["total"] = sum(found.values())
    return found


def _scaled(table: _Floats) -> _Floats:
    total = table.sum()
    return table / total if total > 0 else table


def _bits(p: _Floats) -> float:
    used = p[p > 0]
    return float((used * -np.log2(used)).sum())


def _rows(tables: _Floats) -> _Floats:
    """Entropy of each row."""
    return np.array([_bits(_scaled(row)) for row in tables])


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
        A JSON file of plait's own format, the folder that ``plait vdj infer`` has made, or one of IGoR
        or OLGA.

    Raises
    ------
    FormatError
        If a file is missing or not what it should be; the message names the line or the member.
    """
    place = Path(path)
    if place.is_dir():
        # Loaded here, because it makes models.
        from plait.vdj.model.igor import MODEL_FILES, read_igor_model

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
        ``.json`` for plait's own format; any other name is that of a folder in the format of IGoR and OLGA.

    Raises
    ------
    InvalidInput, FormatError
        If it cannot be written there.
    """
    if not os.fspath(path).endswith(".json"):
        from plait.vdj.model.igor import write_igor_model

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


#: What plait[models] brings.
_OF_RIGHOR = (
    "human_tra", "human_trb", "human_igh", "human_igk", "human_igl", "mouse_tra", "mouse_trb",
)  # fmt: skip


def _data() -> dict[str, Any]:
    folder = Path(__file__).with_name("data")
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
    """A model that comes with plait, or with the package righor if it is installed.

    Parameters
    ----------
    name
        One of `bundled_models`, in any case; or ``righor_human_TRB`` and so on, for which ``human_IGH`` is
        enough where plait has none of that name.

    Raises
    ------
    InvalidInput
        If there is none of that name.
    FormatError
        If a file of righor is not what it should be.
    """
    from plait.vdj.model.igor import installed_models, read_igor_files

    known, wanted = _data(), name.lower().replace("-", "_")
    like = {one.lower(): one for one in known}
    if wanted in like:
        file = known[like[wanted]]
        return _parse(file.name, file.read_text("utf-8"))
    installed = installed_models()
    like |= {one.lower(): one for one in installed}
    for one in (wanted, f"righor_{wanted}"):
        if one in like:
            paths, provenance = installed[like[one]]
            return read_igor_files(paths, like[one], provenance)
    import difflib

    near = difflib.get_close_matches(wanted, like, n=1, cutoff=0.8)
    hint = f"did you mean {like[near[0]]}?" if near else "plait vdj infer makes one from rearrangements"
    if not installed and wanted.removeprefix("righor_") in _OF_RIGHOR:
        hint = "pip install 'plait[models]' brings it"
    expected = f"one of {', '.join([*known, *installed])}, or a file or folder"
    raise InvalidInput("model", found=repr(name), expected=expected, hint=hint)


def load_model(name: str | os.PathLike[str]) -> RecombinationModel:
    """A model by its name, if it comes with plait, or else from a file or folder, or of the package righor.

    Parameters
    ----------
    name
        See `bundled_model` and `read_model`.

    Raises
    ------
    InvalidInput
        If there is neither.
    FormatError
        If a file is not what it should be.
    """
    if isinstance(name, str) and name.lower() in map(str.lower, _data()):
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
