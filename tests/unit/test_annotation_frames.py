"""Frames and ``productive``, from matches made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from support.germline_matches import Hit, make_matches, read_block
from support.rearrangement_rows import check_rows

from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.reads.rearrangements import RearrangementBuilder

pytestmark = pytest.mark.interpreted

#                        Cys = 18                    Phe = 13
V, J = "GATTCAGCAATGTATTTCTGTGCCAGCAGTGA", "CAACACCTTGTACTTTGGTGCAGGCACCCGACTATCGGTGCTAG"
TRB = GermlineSet(
    name="test_trb",
    species="Mus musculus",
    locus="TRB",
    version="1",
    source="made up",
    v=(Allele(name="TRBV1*01", gene="TRBV1", segment="V", sequence=V, anchor=18),),
    d=(),
    j=(Allele(name="TRBJ1-1*01", gene="TRBJ1-1", segment="J", sequence=J, anchor=13),),
)


def annotate(read: str, v: Hit, j: Hit) -> dict[str, Any]:
    batch = RearrangementBuilder([TRB]).build(make_matches(read_block([read]), [TRB], [v], [j]))
    check_rows(batch, [TRB])
    (row,) = batch.to_pylist()
    return row


def shown(row: dict[str, Any], *names: str) -> list[Any]:
    return [row[name] for name in names]


def test_a_gap_in_the_junction_does_not_shift_the_frame() -> None:
    # The alignment of J jumps a base for four that are equal by chance.
    for middle, length in (("CTC", 34), ("CTCTG", 36)):
        read = V + middle + J[:4] + "C" + J[4:]
        row = annotate(read, Hit(0, 0, "32M"), Hit(32 + len(middle), 0, "4M1I40M"))
        names = ("junction_length", "vj_in_frame", "j_frameshift", "productive")
        assert shown(row, *names) == [length, length == 36, False, length == 36]


def test_productive_is_judged_from_the_conserved_codons() -> None:
    read, v, j = V + "CTCCTC" + J, Hit(0, 0, "32M"), Hit(38, 0, "44M")
    # Two gaps of V that make up for each other, and a base lost behind the Phe: TAG at the end of J, or not.
    both = read[:3] + read[4:9] + "T" + read[9:]
    row = annotate(both, Hit(0, 0, "3M1D5M1I23M"), j)
    assert shown(row, "v_frameshift", "vj_in_frame", "stop_codon", "productive") == [False, True, False, True]
    for at, stop in ((30, True), (42, False)):
        row = annotate(read[: 38 + at] + read[39 + at :], v, j._replace(cigar=f"{at}M1D{43 - at}M"))
        assert shown(row, "j_frameshift", "stop_codon", "productive") == [True, stop, not stop]
