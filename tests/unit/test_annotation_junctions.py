"""Junctions, D calls, P nucleotides and reasons, from matches made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.germline_matches import Hit, make_matches, read_block
from support.rearrangement_rows import check_rows

from plait.errors import InvalidInput, Unsupported
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.reads.rearrangements import AnnotationSettings, RearrangementBuilder

pytestmark = pytest.mark.interpreted

#                         Cys = 18
V1 = "GATTCAGCAATGTATTTCTGTGCCAGCAGTGA"
V2 = "GATTCAGCAATGTATCTCTGTGCCAGCAGTCC"
#                  Phe = 13
J1 = "CAACACCTTGTACTTTGGTGCAGGCACCCGACTATCGGTGCTAG"
J2 = "CTATGAACAGTACTTCGGTCCCGGCACCAGGCTCACGGTTTTAG"
D1 = "GGGACAGGGGGC"
D2 = "GGGACTGGGGGGGC"


def allele(segment: Any, name: str, sequence: str, anchor: int | None = None) -> Allele:
    return Allele(name=name, gene=name.partition("*")[0], segment=segment, sequence=sequence, anchor=anchor)


TRB = GermlineSet(
    name="test_trb",
    species="Mus musculus",
    locus="TRB",
    version="1",
    source="made up",
    v=(allele("V", "TRBV1*01", V1, 18), allele("V", "TRBV2*01", V2, 18), allele("V", "TRBV3*01", V1)),
    d=(allele("D", "TRBD1*01", D1), allele("D", "TRBD2*01", D2)),
    j=(allele("J", "TRBJ1-1*01", J1, 13), allele("J", "TRBJ2-7*01", J2, 13)),
    d_j_order={"TRBD2": ("TRBJ2",)},
)
TRA = GermlineSet(
    name="test_tra",
    species="Mus musculus",
    locus="TRA",
    version="1",
    source="made up",
    v=(allele("V", "TRAV1*01", V2, 18),),
    d=(),
    j=(allele("J", "TRAJ1*01", J2, 13),),
)
SETTINGS = AnnotationSettings(min_length=0, alignment_parts=True)


def annotate(read: str, v: Hit | None, j: Hit | None, **given: Any) -> dict[str, Any]:
    """The row of one read, checked."""
    germlines = given.pop("germlines", [TRB])
    quality = given.pop("quality", 40)
    settings = given.pop("settings", SETTINGS)
    matches = make_matches(read_block([read], quality), germlines, [v], [j], **given)
    batch = RearrangementBuilder(germlines, settings).build(matches)
    check_rows(batch, germlines, settings)
    (row,) = batch.to_pylist()
    return row


def joined(middle: str, *, v_left: int = 32, j_from: int = 0, j: int = 0) -> tuple[str, Hit, Hit]:
    """A read of V1, something, and J, and its matches."""
    tail = (J1, J2)[j][j_from:]
    hits = Hit(0, 0, f"{v_left}M"), Hit(v_left + len(middle), j_from, f"{len(tail)}M", (j,))
    return V1[:v_left] + middle + tail, *hits


def shown(row: dict[str, Any], *names: str) -> list[Any]:
    return [row[name] for name in names]


def test_a_junction_goes_from_cys_to_phe() -> None:
    row = annotate(*joined("CCTA"))
    assert row["junction"] == "TGTGCCAGCAGTGA" + "CCTA" + J1[:16]
    assert shown(row, "junction_length", "vj_in_frame", "junction_aa_length") == [34, False, 11]
    assert row["annotation_status"] == "ok"


def test_gaps_before_the_anchors_move_them() -> None:
    read, _, j = joined("CC")
    row = annotate(read[:5] + "ACG" + read[5:], Hit(0, 0, "5M3I27M"), j._replace(read_start=37))
    assert row["junction"] == V1[18:] + "CC" + J1[:16]
    assert shown(row, "v_frameshift", "productive", "v_cigar") == [False, False, "5=3I27=46S"]
    row = annotate(read[:5] + read[6:], Hit(0, 0, "5M1D26M"), j._replace(read_start=33))
    assert row["junction"] == V1[18:] + "CC" + J1[:16]
    assert shown(row, "v_frameshift", "productive") == [True, False]


def test_a_frame_is_broken_by_a_gap_alone_where_the_junction_is_whole() -> None:
    for middle, stop in (("CCTA", False), ("CCTAC", True)):
        row = annotate(*joined(middle))
        assert shown(row, "vj_in_frame", "stop_codon", "productive") == [False, stop, False]
    row = annotate(*joined("CTAACC"))
    assert shown(row, "vj_in_frame", "stop_codon", "productive") == [True, True, False]
    read, v, j = joined("CTCCTC")
    row = annotate(read, v, j)
    assert shown(row, "vj_in_frame", "stop_codon", "productive") == [True, False, True]
    shifted = annotate(read[:3] + read[4:], Hit(0, 0, "3M1D28M"), j._replace(read_start=37))
    assert shown(shifted, "vj_in_frame", "stop_codon", "productive") == [True, False, False]
    late = j._replace(read_start=38, cigar="25M1D18M")
    shifted = annotate(read[:63] + read[64:], v, late)
    assert shown(shifted, "vj_in_frame", "j_frameshift", "productive") == [True, True, False]


def test_a_deleted_anchor_base_shortens_the_junction() -> None:
    read, _, j = joined("CCT")
    row = annotate(read[:18] + read[19:], Hit(0, 0, "18M1D13M"), j._replace(read_start=34))
    assert row["junction"] == V1[19:] + "CCT" + J1[:16]
    read, v, _ = joined("CCT")
    row = annotate(read[:50] + read[51:], v, Hit(35, 0, "15M1D28M"))
    assert row["junction"] == V1[18:] + "CCT" + J1[:15]


def test_an_anchor_outside_its_alignment_is_taken_from_the_diagonal() -> None:
    read, _, j = joined("CCT")
    whole = annotate(read, Hit(0, 0, "32M"), j)["junction"]
    assert annotate(read, Hit(0, 0, "12M"), j)["junction"] == whole
    assert annotate(read, Hit(0, 0, "32M"), Hit(52, 17, "27M"))["junction"] == whole
    near = AnnotationSettings(min_length=0, max_anchor_distance=2)
    row = annotate(read, Hit(0, 0, "18M"), j, settings=near)
    assert shown(row, "junction", "annotation_status", "productive") == [None, "no_anchor", None]
    assert annotate(read, Hit(0, 0, "19M"), j, settings=near)["junction"] == whole


def test_a_junction_that_the_read_does_not_hold_is_unknown() -> None:
    read, v, j = joined("CCT")
    row = annotate(read[20:], Hit(0, 20, "12M"), j._replace(read_start=15))
    assert shown(row, "junction", "annotation_status") == [None, "no_anchor"]
    row = annotate(read[: 35 + 15], v, Hit(35, 0, "15M"))
    assert row["annotation_status"] == "no_anchor"
    assert annotate(read, v._replace(alleles=(2,)), j)["annotation_status"] == "no_anchor"


def test_bases_that_two_genes_claim_go_where_most_of_them_match() -> None:
    # The read holds V1 up to ..AGTGA, and J1 from its base 5 on; both alignments run on by chance.
    read = V1 + J1[5:]
    v = Hit(0, 0, "32M")
    row = annotate(read, v, Hit(29, 2, "42M"))
    assert shown(row, "v_sequence_end", "j_sequence_start", "np1", "j_germline_start") == [32, 33, "", 6]
    # The last two bases of V do not match: J gets what it matches, and V ends with an equal base.
    read = V1[:30] + "CA" + J1[2:]
    row = annotate(read, v, Hit(30, 0, "44M"))
    assert shown(row, "v_sequence_end", "j_sequence_start", "v_identity") == [30, 31, 1.0]


def test_a_cut_ends_with_equal_bases() -> None:
    # Nothing that both claim matches: it lies between the genes.
    row = annotate(V1[:29] + "GTTT" + J1[4:], Hit(0, 0, "32M"), Hit(29, 0, "44M"))
    assert shown(row, "v_sequence_end", "j_sequence_start", "np1") == [29, 34, "GTTT"]
    assert shown(row, "v_cigar", "j_cigar") == ["29=44S3N", "33S4N40="]


def test_a_cut_inside_a_gap() -> None:
    # The V alignment bridges an insertion to two equal bases, which J matches as well.
    read = V1[:28] + J1[2:]
    row = annotate(read, Hit(0, 0, "28M3I2M"), Hit(28, 2, "42M"))
    assert shown(row, "v_cigar", "j_cigar", "np1") == ["28=42S4N", "28S2N42=", ""]
    row = annotate(V1[:28] + "AC" + V1[28:] + J1[6:], Hit(0, 0, "28M2I4M"), Hit(27, 0, "3M4I1M3D37M"))
    assert shown(row, "v_cigar", "j_cigar", "np1") == ["28=2I4=38S", "34S3N1=3D37=", ""]


@pytest.mark.parametrize(
    ("v", "j"),
    [
        (Hit(44, 0, "32M"), Hit(0, 0, "44M")),
        (Hit(10, 0, "10M"), Hit(5, 0, "30M")),
        (Hit(0, 0, "32M"), Hit(10, 0, "10M")),
    ],
)
def test_j_before_v_is_no_rearrangement(v: Hit, j: Hit) -> None:
    row = annotate(J1 + V1, v, j)
    assert row["annotation_status"] == "wrong_order"
    names = ("v_call", "sequence_alignment", "junction", "np1", "v_alignment_start", "complete_vdj")
    assert shown(row, *names) == ["TRBV1*01", None, None, None, None, None]


def test_d_is_the_longest_match_and_the_leftmost() -> None:
    row = annotate(*joined("TTGGGACATTGACAGGTT"))
    assert shown(row, "d_call", "d_sequence_start", "d_sequence_end") == ["TRBD1*01", 35, 40]
    assert shown(row, "d_germline_start", "d_cigar") == [1, "34S6=54S6N"]
    assert shown(row, "np1", "np2") == ["TT", "TTGACAGGTT"]
    row = annotate(*joined("TTGACATTTGACATT", j=1), settings=AnnotationSettings(min_length=0, min_d_length=4))
    assert shown(row, "d_sequence_start", "d_germline_start", "d_score") == [35, 3, 4]


def test_d_alleles_that_match_as_well_are_listed_that_of_the_coordinates_first() -> None:
    row = annotate(*joined("TTGGGACTT", j=1))
    assert row["d_call"] == "TRBD2*01"
    row = annotate(*joined("TTGGGACCT", j=1))
    assert row["d_call"] == "TRBD1*01,TRBD2*01"
    row = annotate(*joined("TTGACTGTTGACAGT", j=1))
    assert shown(row, "d_call", "d_germline_start") == ["TRBD2*01,TRBD1*01", 3]


def test_a_d_that_may_not_join_this_j_is_not_called() -> None:
    assert annotate(*joined("TTGGGACTGGTT", j=1))["d_call"] == "TRBD2*01"
    row = annotate(*joined("TTGGGACTGGTT", j=0))
    assert shown(row, "d_call", "d_score") == ["TRBD1*01", 5]


def test_a_d_needs_enough_bases_that_are_known() -> None:
    assert annotate(*joined("TTGGGATT"))["d_call"] is None
    assert annotate(*joined("TTGGGACTT"))["d_call"] == "TRBD1*01"
    row = annotate(*joined("TTNNNNNNNNTT"))
    assert shown(row, "d_call", "np1_length", "np2", "n2_length", "d_cigar") == [None, 12, None, None, None]


def test_no_d_without_d_genes() -> None:
    read = V2 + "GGGACAGGGG" + J2
    row = annotate(read, Hit(0, 0, "32M"), Hit(42, 0, "44M"), germlines=[TRB, TRA], sets=[1], mirrored=[True])
    assert shown(row, "locus", "v_call", "j_call", "d_call") == ["TRA", "TRAV1*01", "TRAJ1*01", None]
    assert shown(row, "np1", "rev_comp") == ["GGGACAGGGG", True]
    alone = annotate(read, Hit(0, 0, "32M"), Hit(42, 0, "44M"), germlines=[TRA])
    assert alone == {**row, "rev_comp": False}


def test_palindromes_are_told_from_n_nucleotides() -> None:
    # V ends ..GTGA: TCAC mirrors it; J begins CAAC: GTTG does.
    row = annotate(*joined("TCCTTG"))
    assert shown(row, "p3v_length", "p5j_length", "n1_length", "np1_length") == [2, 3, 1, 6]
    row = annotate(*joined("TCACTTGTTG"))
    assert shown(row, "p3v_length", "p5j_length", "n1_length") == [4, 4, 2]
    assert shown(annotate(*joined("TCA", v_left=31)), "p3v_length") == [0]
    # V takes what both could claim.
    row = annotate(*joined("TC"))
    assert shown(row, "p3v_length", "p5j_length", "n1_length") == [2, 0, 0]


def test_palindromes_of_an_untrimmed_d() -> None:
    row = annotate(*joined("ATCCC" + D1 + "GCA"))
    names = ("d_score", "p5d_length", "p3d_length", "n1_length", "n2_length", "np1_length", "np2_length")
    assert shown(row, *names) == [12, 4, 2, 1, 1, 5, 3]
    row = annotate(*joined("ATCCC" + D1[1:-1] + "GTA"))
    assert shown(row, "p5d_length", "p3d_length") == [0, 0]
    few = AnnotationSettings(min_length=0, max_p_length=1)
    assert shown(annotate(*joined("ATCCC" + D1 + "GCA"), settings=few), "p5d_length") == [1]


def test_reads_with_one_gene_or_none() -> None:
    read, v, j = joined("CC")
    row = annotate(read, v, None)
    assert shown(row, "annotation_status", "j_call", "np1") == ["no_j", None, None]
    assert shown(row, "sequence_alignment", "v_alignment_end", "germline_alignment") == [V1, 32, V1]
    row = annotate(read, None, j)
    assert shown(row, "annotation_status", "v_call", "j_alignment_start") == ["no_v", None, 1]
    row = annotate("ACGTNACGT", None, None)
    assert shown(row, "annotation_status", "rev_comp", "locus", "sequence") == [
        "no_v",
        None,
        None,
        "ACGTNACGT",
    ]


def test_reasons_in_order_of_precedence() -> None:
    read, v, j = joined("CCTA")

    def status(v: Hit | None, j: Hit | None, *, quality: int | None = 40, **limits: Any) -> str:
        settings = AnnotationSettings(**({"min_length": 0} | limits))
        return str(annotate(read, v, j, quality=quality, settings=settings)["annotation_status"])

    assert status(None, None, min_length=81) == "too_short"
    assert status(None, None, max_length=79) == "too_long"
    assert status(None, None, min_length=80, max_length=80) == "no_v"
    assert status(v, j, quality=9) == "low_quality"
    assert status(v, j, quality=None) == "ok"
    assert status(v, j, quality=9, min_junction_quality=0) == "ok"
    assert status(v, j, productive_only=True) == "out_of_frame"
    assert status(Hit(2, 0, "30M"), j, quality=2) == "too_many_errors"


def test_quality_outside_the_junction_does_not_count() -> None:
    read, v, j = joined("CCTA")
    reads = read_block([read])
    quality = reads.qualities
    assert quality is not None
    quality[:18] = 2
    quality[32 + 4 + 16 :] = 2
    batch = RearrangementBuilder([TRB], SETTINGS).build(make_matches(reads, [TRB], [v], [j]))
    assert batch["annotation_status"].to_pylist() == ["ok"]
    quality[18] = 9
    batch = RearrangementBuilder([TRB], SETTINGS).build(make_matches(reads, [TRB], [v], [j]))
    assert batch["annotation_status"].to_pylist() == ["low_quality"]


def test_productive_only_tells_why() -> None:
    settings = AnnotationSettings(min_length=0, productive_only=True)
    assert annotate(*joined("CTCCTC"), settings=settings)["annotation_status"] == "ok"
    read, v, j = joined("CTAACC")
    assert annotate(read, v, j, settings=settings)["annotation_status"] == "stop_codon"
    shifted = annotate(
        read[:3] + read[4:], Hit(0, 0, "3M1D28M"), j._replace(read_start=37), settings=settings
    )
    assert shifted["annotation_status"] == "out_of_frame"


def test_errors_are_those_outside_the_junction() -> None:
    read, v, j = joined("CC")
    wrong = read[:2] + "G" + read[3:]
    # 18 bases of V and 28 of J lie outside the junction.
    rate = AnnotationSettings(min_length=0, max_error_rate=1 / 46)
    assert annotate(wrong, v, j, settings=rate)["annotation_status"] == "ok"
    less = AnnotationSettings(min_length=0, max_error_rate=0.99 / 46)
    assert annotate(wrong, v, j, settings=less)["annotation_status"] == "too_many_errors"
    none = AnnotationSettings(min_length=0, max_error_rate=0)
    assert annotate(read[:20] + "A" + read[21:], v, j, settings=none)["annotation_status"] == "ok"
    # N is no error, a gap is one.
    assert annotate(read[:2] + "N" + read[3:], v, j, settings=none)["annotation_status"] == "ok"
    gap = annotate(read[:2] + read[5:], Hit(0, 0, "2M3D27M"), j._replace(read_start=31), settings=none)
    assert gap["annotation_status"] == "too_many_errors"


def test_settings_are_checked() -> None:
    assert AnnotationSettings().min_d_length == 5
    for wrong in (
        {"min_length": -1},
        {"min_length": True},
        {"max_length": 1.5},
        {"min_length": 50, "max_length": 49},
        {"max_error_rate": 1.1},
        {"max_error_rate": "0.1"},
        {"min_junction_quality": 94},
        {"min_d_length": 0},
        {"max_p_length": 17},
        {"productive_only": 1},
    ):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            AnnotationSettings(**wrong)  # type: ignore[arg-type]


def test_what_is_given_must_fit() -> None:
    with pytest.raises(InvalidInput, match="germline set"):
        RearrangementBuilder([])
    builder = RearrangementBuilder([TRB], SETTINGS)
    read, v, j = joined("CC")
    matches = make_matches(read_block([read]), [TRB], [v], [j])
    with pytest.raises(InvalidInput, match="umi_count: found 2 values"):
        builder.build(matches, umi_count=np.ones(2, np.int64))
    long = GermlineSet(**{**{f: getattr(TRB, f) for f in TRB.__dataclass_fields__},
                          "d": (allele("D", "TRBD1*01", "ACGT" * 16),)})  # fmt: skip
    with pytest.raises(Unsupported, match="62"):
        RearrangementBuilder([long])


@st.composite
def matched_reads(draw: st.DrawFn) -> tuple[str, Hit | None, Hit | None]:
    """A read and alignments of it that need not be good ones."""
    bases = st.text("ACGTN", max_size=14)
    left, right = draw(st.integers(0, 18)), draw(st.integers(20, 32))
    tail = draw(st.integers(0, 10))
    chosen = draw(st.integers(0, 1))
    middle = draw(bases | st.sampled_from([D1, D2, D1[2:9], "TCACGGGACTGGGG"]))
    before = draw(bases)
    v_part, j_part = list(V1[left:right]), list((J1, J2)[chosen][tail:])
    for part in (v_part, j_part):
        for place in draw(st.lists(st.integers(0, len(part) - 1), max_size=3)):
            part[place] = draw(st.sampled_from("ACGTN"))
    read = before + "".join(v_part) + middle + "".join(j_part) + draw(bases)
    size = len(read)
    v_start, j_start = len(before), len(before) + len(v_part) + len(middle)
    v_more = draw(st.integers(0, max(0, min(32 - right, size - v_start - (right - left)))))
    j_more = draw(st.integers(0, min(tail, j_start)))
    gap = draw(st.sampled_from(["", "1D", "3D", "2I", "3I"]))
    v_length = right - left + v_more
    v_runs = f"{v_length}M"
    if gap and v_length > 12:
        rest = v_length - 8 - (int(gap[0]))
        v_runs = f"8M{gap}{rest}M" if rest > 0 else v_runs
    v = Hit(v_start, left, v_runs, draw(st.sampled_from([(0,), (0, 1), (1, 0)])))
    j = Hit(j_start - j_more, tail - j_more, f"{len(j_part) + j_more}M", (chosen,))
    kept = draw(st.sampled_from(["both", "both", "both", "v", "j", "none"]))
    return read, v if kept in ("both", "v") else None, j if kept in ("both", "j") else None


@given(st.lists(matched_reads(), max_size=6), st.booleans(), st.sampled_from([None, 5, 30]))
def test_all_columns_agree(
    reads: list[tuple[str, Hit | None, Hit | None]], productive: bool, quality: int | None
) -> None:
    settings = AnnotationSettings(
        min_length=30, max_length=100, productive_only=productive, alignment_parts=productive
    )
    block = read_block([read for read, _, _ in reads], quality)
    matches = make_matches(block, [TRB], [v for _, v, _ in reads], [j for _, _, j in reads])
    check_rows(RearrangementBuilder([TRB], settings).build(matches), [TRB], settings)
