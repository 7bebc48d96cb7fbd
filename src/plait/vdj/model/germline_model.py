"""A model of the genes of a germline set, in which nothing is known yet: all choices are equally probable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput, Unsupported
from plait.vdj.germline.germline_set import GermlineSet
from plait.vdj.germline.records import Allele
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel

__all__ = ["model_from_germline"]

_Floats = NDArray[np.float64]
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
    ('vdj', 24, 0.0)
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
