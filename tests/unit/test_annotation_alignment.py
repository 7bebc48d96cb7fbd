"""V and J alleles of reads: coordinates, strands, ties, mates, short and odd reads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from support.germline_matches import arrays_of, read_block

from plait.alphabets import IUPAC_MASK, reverse_complement
from plait.errors import InvalidInput
from plait.formats.fastq import ReadBlock
from plait.vdj import annotate
from plait.vdj.germline import Allele, GermlineSet, load_germline
from plait.vdj.reads.allele_alignment import Found, GermlineMatches, germline_index
from plait.vdj.reads.annotator import GermlineAligner
from plait.vdj.reads.candidates import find_word

TRB = load_germline("mouse_trb")
TRA = load_germline("mouse_tra")
ALIGNER = GermlineAligner([TRB], device="cpu")
BOTH = GermlineAligner([TRA, TRB], device="cpu")
BEHIND = "AGGACCTGAAAAACGTGTTCCCACCCGAGGTCGCTGTGTTTGAGCCATCAGAAGCAGAG"


def v_of(name: str, germline: GermlineSet = TRB) -> str:
    return next(allele.sequence for allele in germline.v if allele.name == name)


def j_of(name: str, germline: GermlineSet = TRB) -> str:
    return next(allele.sequence for allele in germline.j if allele.name == name)


V, J = v_of("TRBV16*01"), j_of("TRBJ2-5*01")
MIDDLE = "GGGACTGG"
READ = V[-70:-3] + MIDDLE + J[4:] + BEHIND


class Call(NamedTuple):
    """What one read has of a segment."""

    names: list[str]
    score: int
    read: tuple[int, int]
    germline: tuple[int, int]
    runs: list[list[int]]
    matches: int
    mismatches: int


def call_of(own: Found, alleles: tuple[Allele, ...], read: int) -> Call:
    one = own.take(np.array([read]))
    return Call(
        [alleles[k].name for k in one.alleles.values],
        int(one.scores[0]),
        (int(one.read_start[0]), int(one.read_end[0])),
        (int(one.paths.germline_start[0]), int(one.paths.germline_end[0])),
        one.paths.runs.values.tolist(),
        int(one.paths.matches[0]),
        int(one.paths.mismatches[0]),
    )


def calls(matches: GermlineMatches, read: int = 0, germline: GermlineSet = TRB) -> tuple[Call, Call]:
    return call_of(matches.v, germline.v, read), call_of(matches.j, germline.j, read)


def one(read: str, aligner: GermlineAligner = ALIGNER) -> GermlineMatches:
    return aligner.align(read_block([read]))


NOTHING = Call([], 0, (0, 0), (0, 0), [], 0, 0)


def same(a: GermlineMatches, b: GermlineMatches) -> bool:
    def arrays(own: GermlineMatches) -> list[NDArray[Any]]:
        segments = [*arrays_of(own.v), *arrays_of(own.j)]
        return [own.reads.letters, own.reads.starts, own.reversed, own.germline, *segments]

    return all(np.array_equal(x, y) for x, y in zip(arrays(a), arrays(b), strict=True))


def test_v_and_j_of_a_read() -> None:
    v, j = calls(one(READ))
    assert v == Call(["TRBV16*01"], 67, (0, 67), (len(V) - 70, len(V) - 3), [[0, 67]], 67, 0)
    # The J may begin by chance before it was joined.
    assert j.names == ["TRBJ2-5*01"]
    assert j.read == (75 - (4 - j.germline[0]), 75 + len(J) - 4)
    assert j.germline[1] == len(J)


@pytest.mark.parametrize(("left", "kept"), [(7, False), (8, False), (9, True), (12, True)])
def test_a_gap_in_the_junction_pays_for_itself(left: int, kept: bool) -> None:
    own = j_of("TRBJ1-3*01")
    read = V[-70:] + "GGCCG" + own[1 : 1 + left] + "G" + own[1 + left :] + BEHIND
    j = calls(one(read))[1]
    assert j.names == ["TRBJ1-3*01"]
    rest = len(own) - 1 - left
    assert [length for _, length in j.runs] == ([left, 1, rest] if kept else [rest])
    assert j.score == (len(own) - 1 - 6 if kept else rest)


def test_a_gap_of_j_is_as_far_right_as_it_can_be() -> None:
    # CTATTTTTGG for CTATTTTGG: the junction ends with the first Phe.
    own = j_of("TRBJ1-3*01")
    read = V[-70:] + "GGCCG" + own[:20] + "T" + own[20:] + BEHIND
    j = calls(one(read))[1]
    assert j.runs == [[0, 22], [2, 1], [0, len(own) - 22]]
    row = annotate([read], germline="mouse_trb").table.to_pylist()[0]
    assert row["junction"].endswith("GGCCG" + own[:22])


def test_both_strands_give_the_same() -> None:
    block = read_block([READ, reverse_complement(READ)], 30)
    assert block.qualities is not None
    qualities = block.qualities.copy()
    qualities[:3], qualities[-3:] = 7, 9
    matches = ALIGNER.align(replace(block, qualities=qualities))
    assert calls(matches, 0) == calls(matches, 1)
    assert matches.reversed.tolist() == [False, True]
    assert matches.reads.sequence(0) == matches.reads.sequence(1) == READ
    turned = matches.reads.qualities
    assert turned is not None
    assert turned[len(READ) : len(READ) + 3].tolist() == [9, 9, 9]
    assert turned[:3].tolist() == [7, 7, 7]


def test_alleles_that_tie_come_in_the_order_of_the_set() -> None:
    end = v_of("TRBV13-1*01")[-40:]
    assert end == v_of("TRBV13-1*02")[-40:]
    v, _ = calls(one(end + MIDDLE + J))
    assert v.names == ["TRBV13-1*01", "TRBV13-1*02"]
    same_gene = v_of("TRAV6-3*02", TRA)
    assert same_gene == v_of("TRAV6D-3*01", TRA)
    matches = one(same_gene + j_of("TRAJ22*01", TRA), BOTH)
    assert calls(matches, 0, TRA)[0].names == ["TRAV6-3*02", "TRAV6D-3*01"]


def test_the_germline_set_that_matches_best() -> None:
    alpha = v_of("TRAV10*01", TRA)[-80:] + j_of("TRAJ22*01", TRA)
    matches = BOTH.align(read_block([READ, alpha, "ACGTTGCA" * 20]))
    assert matches.germline.tolist() == [1, 0, -1]
    assert calls(matches, 0, TRB) == calls(one(READ))
    assert calls(matches, 1, TRA)[1].names == ["TRAJ22*01"]
    # A V that two sets have is called with the first, unless only the other has the J.
    other = replace(TRB, j=TRB.j[:2])
    for order, germline in (((other, TRB), 1), ((TRB, other), 0), ((TRB, TRB), 0)):
        aligner = GermlineAligner(order, device="cpu")
        assert one(READ, aligner).germline.tolist() == [germline]


def test_changes_and_unknown_bases() -> None:
    letters = list(READ)
    for at in (0, 30):
        letters[at] = "C" if letters[at] != "C" else "G"
    letters[20] = "N"
    v, _ = calls(one("".join(letters)))
    assert v == Call(["TRBV16*01"], 63, (1, 67), (len(V) - 69, len(V) - 3), [[0, 66]], 64, 2)


def test_ambiguous_bases_of_an_allele() -> None:
    for letter, lost in (("R" if V[-50] in "AG" else "Y", 1), ("Y" if V[-50] in "AG" else "R", 2), ("N", 1)):
        changed = V[:-50] + letter + V[-49:]
        allele = replace(TRB.v[0], name="TRBV99*01", gene="TRBV99", sequence=changed)
        v = call_of(one(READ, GermlineAligner([replace(TRB, v=(allele,))], device="cpu")).v, (allele,), 0)
        assert (v.score, v.matches, v.mismatches) == (67 - lost, 66, 1)


@pytest.mark.parametrize("kind", [1, 2], ids=["lost", "inserted"])
def test_gaps(kind: int) -> None:
    at = 30
    read = READ[:at] + READ[at + 2 :] if kind == 1 else READ[:at] + "AT" + READ[at:]
    v, j = calls(one(read))
    lost, extra = (2, 0) if kind == 1 else (0, 2)
    assert v.names == ["TRBV16*01"]
    assert v.score == 67 - lost - 6
    assert v.read == (0, 67 - lost + extra)
    assert v.germline == (len(V) - 70, len(V) - 3)
    assert [length for run, length in v.runs if run == kind] == [2]
    assert {run for run, _ in v.runs} == {0, kind}
    assert (v.matches, v.mismatches) == (67 - lost, 0)
    assert j.read[1] == len(read) - len(BEHIND)


def test_a_gene_that_the_set_lacks_is_called_with_the_nearest() -> None:
    lacking = replace(TRB, v=tuple(allele for allele in TRB.v if allele.gene != "TRBV13-1"))
    read = v_of("TRBV13-1*01")[-120:] + MIDDLE + J
    matches = one(read, GermlineAligner([lacking], device="cpu"))
    v, j = calls(matches, 0, lacking)
    assert {name.partition("*")[0] for name in v.names} <= {"TRBV13-2", "TRBV13-3"}
    assert v.mismatches > 0 and j.names == ["TRBJ2-5*01"]


def test_reads_that_begin_near_the_junction() -> None:
    anchor = next(allele.anchor for allele in TRB.v if allele.name == "TRBV16*01")
    assert anchor is not None
    for start in (anchor - 12, anchor):
        read = V[start:-3] + MIDDLE + J
        v, j = calls(one(read))
        assert v.germline == (start, len(V) - 3)
        assert v.read == (0, len(V) - 3 - start)
        assert "TRBV16*01" in v.names and j.names == ["TRBJ2-5*01"]


def test_a_short_v_needs_its_cys_and_a_sure_j() -> None:
    anchor = next(allele.anchor for allele in TRB.v if allele.name == "TRBV16*01")
    assert anchor is not None
    middle = V[anchor - 100 : anchor - 86]
    v, j = calls(one(middle + MIDDLE + J))
    assert v == NOTHING and j.names == ["TRBJ2-5*01"]
    assert one(V[anchor:-3] + MIDDLE + J[:10]).germline.tolist() == [-1]


def test_j_without_v() -> None:
    noise = "ACTGACATGTTCAGATACCATGGA"
    for read, backwards in ((noise + J + BEHIND, False), (reverse_complement(noise + J + BEHIND), True)):
        found = one(read)
        v, j = calls(found)
        assert v == NOTHING and found.v.paths.runs.starts.tolist() == [0, 0]
        assert (j.names, j.read) == (["TRBJ2-5*01"], (len(noise), len(noise + J)))
        assert found.reversed.tolist() == [backwards]
    assert one(noise + J[:14] + BEHIND).germline.tolist() == [-1], "chance may explain so few bases"


def test_j_without_v_in_one_of_two_mates() -> None:
    noise = "ACTGACATGTTCAGATACCATGGA"
    given, empty = noise + J + BEHIND, noise[:18] + noise
    for read, mate in ((given, empty), (empty, given)):
        found = ALIGNER.align(read_block([read]), read_block([mate]))
        v, j = calls(found)
        assert v == NOTHING and j.names == ["TRBJ2-5*01"]
        assert found.swapped is not None and found.swapped.tolist() == [read == empty]


def test_j_that_the_read_cuts() -> None:
    for kept in (16, 25):
        v, j = calls(one(V[-90:] + J[:kept]))
        assert v.read[0] == 0 and j.names[0] == "TRBJ2-5*01"
        assert j.read[1] == 90 + kept and j.germline[1] == kept


def test_v_without_j_and_j_left_of_v() -> None:
    v, j = calls(one(V[-120:]))
    assert v.score == 120 and j == NOTHING
    v, j = calls(one(J + "ACGGT" + V[20:170]))
    assert v.read[0] > j.read[1] - 10 and j.names == ["TRBJ2-5*01"]


def test_of_equal_alignments_the_nearest_pair() -> None:
    anchor = next(allele.anchor for allele in TRB.v if allele.name == "TRBV16*01")
    assert anchor is not None
    short, end = V[-60:-3] + MIDDLE + J, V[anchor:-3] + MIDDLE + J
    for read in (short + "ACG" + end, end + "ACG" + end):
        v, j = calls(one(read))
        assert 0 <= j.read[0] - v.read[1] <= len(MIDDLE) + 4
        assert j.read[1] - j.read[0] == len(J)


def test_odd_reads() -> None:
    reads = ["", "A", "ACGTACGTAC", "N" * 200, "RYSWKMBDHV" * 15, READ, "N" * 30 + READ]
    matches = ALIGNER.align(read_block(reads))
    assert matches.germline.tolist() == [-1] * 5 + [0, 0]
    assert all(calls(matches, k) == (NOTHING, NOTHING) for k in range(5))
    assert calls(matches, 6)[0].read == (30, 97)
    empty = ALIGNER.align(read_block([]))
    assert len(empty.reads) == 0 and empty.v.alleles.starts.tolist() == [0]


def test_a_long_read_is_as_its_part() -> None:
    random = np.random.default_rng(5)
    far = "".join(np.array(list("ACGT"))[random.integers(0, 4, 30_000)])
    whole = v_of("TRBV16*01")[:-3] + MIDDLE + J
    near, there = calls(one(far[:100] + whole + far[100:200])), calls(one(far + whole + far))
    for a, b in zip(near, there, strict=True):
        assert (a.names, a.score, a.germline, a.runs) == (b.names, b.score, b.germline, b.runs)
        assert b.read[0] - a.read[0] == len(far) - 100


def test_random_reads_have_nothing() -> None:
    random = np.random.default_rng(1)
    letters = np.frombuffer(b"ACGT", np.uint8)[random.integers(0, 4, 5000 * 150)]
    block = ReadBlock([""] * 5000, letters, np.arange(0, 5001 * 150, 150))
    matches = BOTH.align(block)
    assert not (matches.germline >= 0).any()
    assert not matches.v.scores.any() and not matches.j.scores.any()


def mixed_reads() -> list[str]:
    random = np.random.default_rng(2)
    reads = []
    for k in range(60):
        v, j = TRB.v[k % len(TRB.v)].sequence, TRB.j[k % len(TRB.j)].sequence
        letters = np.array(list(v[-int(random.integers(20, 150)) :] + MIDDLE[: k % 9] + j + BEHIND[:30]))
        wrong = random.random(letters.size) < 0.03
        letters[wrong] = np.array(list("ACGTN"))[random.integers(0, 5, int(wrong.sum()))]
        read = "".join(letters)
        reads.append(reverse_complement(read) if k % 2 else read)
    return reads


def test_blocks_of_any_size_side_by_side_give_the_same() -> None:
    reads = mixed_reads()
    whole = ALIGNER.align(read_block(reads))
    assert (whole.germline >= 0).mean() > 0.9
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda k: ALIGNER.align(read_block(reads[k : k + 7])), range(0, 60, 7)))
    for k in range(60):
        assert calls(parts[k // 7], k % 7) == calls(whole, k)
        assert parts[k // 7].v.support[k % 7] == whole.v.support[k]


def test_mates_decide_between_alleles() -> None:
    first, second = v_of("TRBV13-1*01"), v_of("TRBV13-1*02")
    differ = [k for k in range(len(first)) if first[k] != second[k]]
    assert differ
    end = second[-40:] + MIDDLE + J
    alone = calls(one(end))[0].names
    assert alone == ["TRBV13-1*01", "TRBV13-1*02"]
    mate = second[max(differ[0] - 50, 0) : differ[0] + 50]
    for strand in (str, reverse_complement):
        matches = ALIGNER.align(read_block([strand(end)]), read_block([strand(mate)]))
        v, j = calls(matches)
        assert v.names == ["TRBV13-1*02"] and j.names == ["TRBJ2-5*01"]
        assert v.read == (0, 40) and v.score == 40
        assert matches.swapped is not None and not matches.swapped.any()
        assert matches.reads.sequence(0) == end


def test_a_mate_with_the_j_takes_the_place_of_the_read() -> None:
    start, end = V[:100], READ
    for strand in (str, reverse_complement):
        block = (
            read_block([strand(start), strand(end), "ACGT" * 9]),
            read_block([strand(end), "", "ACGT" * 9]),
        )
        matches = ALIGNER.align(*block)
        assert matches.swapped is not None
        assert matches.swapped.tolist() == [True, False, False]
        assert matches.reads.sequence(0) == matches.reads.sequence(1) == end
        assert calls(matches, 0)[0].read == calls(matches, 1)[0].read
        assert calls(matches, 0)[1] == calls(matches, 1)[1]
        assert matches.v.support[0] < matches.v.support[1]


@pytest.mark.interpreted
def test_words_are_numbered_as_they_begin_in_the_alleles() -> None:
    germline = load_germline("mouse_trb")
    index = germline_index([germline])
    for words, alleles in ((index.v.words, germline.v), (index.j.near, germline.j)):
        number = {base: str(words.numbers[IUPAC_MASK[ord(base)]]) for base in "ACGT"}
        texts = ["".join(map(number.__getitem__, allele.sequence)) for allele in alleles]
        size = words.size
        expected = dict.fromkeys(
            int(text[k : k + size], 4) for text in texts for k in range(len(text) - size + 1)
        )
        assert words.words[:, 0].tolist() == list(expected)
        assert [find_word(words, word) for word in expected] == list(range(len(expected)))
        absent = next(word for word in range(4**size) if word not in expected)
        assert find_word(words, absent) == -1


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInput, match="germlines"):
        GermlineAligner([])
    with pytest.raises(InvalidInput, match="no V allele"):
        GermlineAligner([replace(TRB, v=())])
    with pytest.raises(InvalidInput, match="max_evalue"):
        GermlineAligner([TRB], max_evalue=0.0)
    with pytest.raises(InvalidInput, match="max_j_evalue"):
        GermlineAligner([TRB], max_j_evalue=float("nan"))
    with pytest.raises(InvalidInput, match="others"):
        ALIGNER.align(read_block([READ]), read_block([]))


def test_support_falls_with_the_score() -> None:
    matches = ALIGNER.align(read_block([V[-120:] + J, V[-60:] + J, V[-60:] + J[:25]]))
    assert matches.v.support[0] < matches.v.support[1] < 1e-10
    assert matches.j.support[1] < matches.j.support[2] < 1e-3
