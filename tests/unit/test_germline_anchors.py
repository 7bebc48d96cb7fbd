"""Anchors of single sequences, most of them real genes that mislead a simple search."""

from __future__ import annotations

import pytest

from plait.alphabets import translate
from plait.vdj.germline import find_j_anchor, find_v_anchor, gapped_v_anchor
from plait.vdj.germline.anchors import v_candidates

# The ends of V genes, in the frame of the gene, and the CDR3 end that is right.
V_ENDS = {
    "mouse TRBV1, second Cys": ("AACATGAGCCAGGGCAGAACCTTGTACTGCACCTGCAGTGCAGA", "TGCACCTGCAGTGCAGA"),
    "mouse TRBV23, Cys before": (
        "AGAACGTGCGAAGCAGAAGACTCAGCACTGTACTTGTGCTCCAGCAGTCAATC",
        "TGCTCCAGCAGTCAATC",
    ),
    "mouse TRBV19, Phe Leu": ("GCCCAGAAGAACGAGATGGCCGTTTTTCTCTGTGCCAGCAGTATAG", "TGTGCCAGCAGTATAG"),
    "mouse TRBV30, no Ala": ("GCAAGGCCTGGAGACAGCAGTATCTATTTCTGTAGTTCTAGAGA", "TGTAGTTCTAGAGA"),
    "human TRBV7-6, Arg": ("CGCACAGAGCAGCGGGACTCGGCCATGTATCGCTGTGCCAGCAGCTTAGC", "TGTGCCAGCAGCTTAGC"),
    "human TRBV7-2*03, Thr": ("CGCACACAGCAGGAGGACTCGGCCGTGTATCTCTGTACCAGCAGCTTAGC", "TGTACCAGCAGCTTAGC"),
    "human TRBV9": ("AGCTCTCTGGAGCTGGGGGACTCAGCTTTGTATTTCTGTGCCAGCAGCGTAG", "TGTGCCAGCAGCGTAG"),
}
J_GENES = {
    "mouse TRBJ1-1, Phe Phe": (
        "CAAACACAGAAGTCTTCTTTGGTAAAGGAACCAGACTCACAGTTGTAG",
        "CAAACACAGAAGTCTTCTTT",
    ),
    "mouse TRBJ2-1": (
        "TAACTATGCTGAGCAGTTCTTCGGACCAGGGACACGACTCACCGTCCTAG",
        "TAACTATGCTGAGCAGTTCTTC",
    ),
    "Cys for Phe": (
        "GATAGGCTTTGGGAATGTGCTGCATTGCGGGTCCGGCACTCAAGTGATTGTTTTACCAC",
        "GATAGGCTTTGGGAATGTGCTGCATTGC",
    ),
    "Ala for the first Gly": (
        "GGTTTTCAGATGGCCAGAAGCTGCTCTTTGCAAGGGGAACCATGTTAAAGGTGGATCTTA",
        "GGTTTTCAGATGGCCAGAAGCTGCTCTTT",
    ),
    "human IGHJ6, one base more": (
        "ATTACTACTACTACTACGGTATGGACGTCTGGGGCCAAGGGACCACGGTCACCGTCTCCTCA",
        "ATTACTACTACTACTACGGTATGGACGTCTGG",
    ),
}


@pytest.mark.parametrize("case", V_ENDS)
def test_v_anchor(case: str) -> None:
    sequence, end = V_ENDS[case]
    # The frame is that of the first base: bring the gene's end into it.
    shifted = "A" * ((len(end) - len(sequence)) % 3) + sequence
    anchor = find_v_anchor(shifted)
    assert anchor is not None
    assert shifted[anchor:] == end


@pytest.mark.parametrize("case", J_GENES)
def test_j_anchor(case: str) -> None:
    sequence, end = J_GENES[case]
    anchor = find_j_anchor(sequence)
    assert anchor is not None
    assert sequence[: anchor + 3] == end


def test_the_last_cys_of_trbv1_is_the_worse_candidate() -> None:
    sequence, _ = V_ENDS["mouse TRBV1, second Cys"]
    best, second = v_candidates("A" * ((17 - len(sequence)) % 3) + sequence)
    assert second.anchor == best.anchor + 6
    assert second.score < best.score


def test_a_v_without_its_cys_has_no_anchor() -> None:
    # Human TRBV17: Tyr in the place of Cys.
    assert find_v_anchor("CCTGCAGAACCCAGGGACTCGGCTGTGTATCTCTACAGCAGTGGT") is None


def test_a_v_whose_frame_is_broken_is_found_in_another_frame() -> None:
    sequence, end = V_ENDS["human TRBV9"]
    for shift in range(3):
        shifted = "A" * shift + sequence
        anchor = find_v_anchor(shifted)
        assert anchor is not None
        assert shifted[anchor:] == end


def test_a_weak_cys_in_another_frame_is_not_believed() -> None:
    assert find_v_anchor("AA" + "GCTGCTGCTTGTGCTGCT") is None


def test_ambiguity_codes_are_read() -> None:
    # TGY is Cys whatever Y is, TTY is Phe.
    assert find_v_anchor("GACTCAGCTTTGTATTTCTGYGCC") == 18
    assert find_j_anchor("CTTTCTTYGGACAAGGCACCAGACTCACAGTTGTAG") == 5
    # TGN may be Cys, Trp or a stop.
    assert find_v_anchor("GACTCAGCTTTGTATTTCTGNGCC") is None


def test_a_j_without_a_motif_has_no_anchor() -> None:
    # Mouse TRBJ2-6, a pseudogene.
    assert find_j_anchor("TGCACTGGCCCTGACTGATTGGCAGCCGATTGAACAGCCTATGCGAGA") is None


def test_a_j_motif_with_a_stop_behind_it_gives_way() -> None:
    clean = "TTCGGACAAGGCACCAGACTCACAGTTGTAG"
    assert find_j_anchor("TTTGGTCAAGGTTAA" + clean) == 15


@pytest.mark.parametrize("sequence", ["", "A", "TGT", "TGTGCCAGC", "N" * 60])
def test_short_and_unknown_sequences_are_no_error(sequence: str) -> None:
    assert find_v_anchor(sequence) is None
    assert find_j_anchor(sequence) is None


def test_gapped_columns() -> None:
    gapped = "a" * 100 + "." * 12 + "c" * 197 + "tgtgccagc"
    assert gapped_v_anchor(gapped) == 297


@pytest.mark.parametrize(
    "gapped",
    ["A" * 309 + "TGTGCC", "A" * 99 + "..." + "A" * 100, "A" * 300 + "." * 9 + "T.TGCC"],
    ids=["no gaps", "too short", "gap in the codon"],
)
def test_what_is_not_gapped_to_the_codon_gives_nothing(gapped: str) -> None:
    assert gapped_v_anchor(gapped) is None


def test_translation() -> None:
    assert translate("TTTTAAATGGCNYTRMGRNNNRAYTG") == "F*MALRXX"
    assert translate("ATTT", 1) == "F"
    assert translate("AT") == ""
    assert translate("A?T") == "X"


def test_a_j_motif_in_another_frame_gives_way() -> None:
    # TTT GGG CAA GGG stands one base too early for the frame that ends one base after a codon.
    sequence = "ATTTGGGCAAGGGATTCGGACAAGGCACCAGACTCACAGTTGTAG"
    assert find_j_anchor(sequence) == sequence.index("TTCGGACAAGGC")
    assert find_j_anchor(sequence[:14] + "CTAAGGCACCAGACTCACAGTTGTAG") == 1
