"""Functional genes whose conserved codon is not where it is said to be, and what mends them beyond doubt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from plait.alphabets import reverse_complement, translate
from plait.vdj.germline.allele import Allele
from plait.vdj.germline.anchors import certain_anchor
from plait.vdj.germline.findings import anchor_findings
from plait.vdj.germline.germline_set import GermlineSet


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
