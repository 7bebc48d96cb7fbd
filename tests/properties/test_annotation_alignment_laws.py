"""What holds for the V and J of any read."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.germline_matches import arrays_of, read_block

from plait.alphabets import encode, reverse_complement
from plait.vdj.germline import load_germline
from plait.vdj.reads.allele_alignment import J_SCORING, V_SCORING, Found, GermlineMatches
from plait.vdj.reads.annotator import GermlineAligner

TRB = load_germline("mouse_trb")
ALIGNER = GermlineAligner([TRB], device="cpu")
BASES = st.text("ACGT", max_size=15)


@st.composite
def rearranged(draw: st.DrawFn) -> tuple[str, int, int, int, int]:
    """A read without errors, its V and J, and how many bases of them it has."""
    v, j = draw(st.integers(0, len(TRB.v) - 1)), draw(st.integers(0, len(TRB.j) - 1))
    own, other = TRB.v[v].sequence, TRB.j[j].sequence
    bases = draw(st.integers(30, 200))
    lost, start = draw(st.integers(0, 6)), draw(st.integers(0, 8))
    kept = draw(st.integers(18, len(other) - start))
    part = own[len(own) - lost - bases : len(own) - lost]
    return part + draw(BASES) + other[start : start + kept] + draw(BASES), v, j, len(part), kept


def letters_with_errors(draw: st.DrawFn, read: str) -> str:
    for at in draw(st.lists(st.integers(0, len(read) - 1), max_size=5)):
        read = read[:at] + draw(st.sampled_from(["", "A", "C", "N", "R", "GT"])) + read[at + 1 :]
    return read


@st.composite
def any_read(draw: st.DrawFn) -> str:
    read = draw(st.text("ACGTN", max_size=120) | rearranged().map(lambda own: own[0]))
    read = letters_with_errors(draw, read) if read else read
    return reverse_complement(read) if draw(st.booleans()) else read


def alleles_of(own: Found, read: int) -> list[int]:
    found: list[int] = own.alleles.take(np.array([read])).values.tolist()
    return found


def check_segment(matches: GermlineMatches, name: str, read: int) -> None:
    own: Found = getattr(matches, name)
    scoring = {"v": V_SCORING, "j": J_SCORING}[name]
    alleles = alleles_of(own, read)
    assert alleles == sorted(set(alleles))
    assert (own.scores[read] > 0) == bool(alleles)
    if not alleles:
        nothing = (
            own.read_start,
            own.read_end,
            own.paths.germline_start,
            own.paths.germline_end,
            own.paths.matches,
            own.support,
        )
        assert not any(column[read] for column in nothing)
        assert own.paths.runs.starts[read] == own.paths.runs.starts[read + 1]
        return
    letters = encode(matches.reads.sequence(read))
    germline = encode(getattr(TRB, name)[alleles[0]].sequence)
    at, other, score, alike, pairs = int(own.read_start[read]), int(own.paths.germline_start[read]), 0, 0, 0
    for kind, length in own.paths.runs.take(np.array([read])).values.tolist():
        if kind == 0:
            a, b = letters[at : at + length], germline[other : other + length]
            score += int(scoring.scores[a, b].sum())
            alike += int(((a == b) & np.isin(a, (1, 2, 4, 8))).sum())
            pairs += length
        else:
            score -= scoring.gap_open + (length - 1) * scoring.gap_extend
        at, other = at + length * (kind != 1), other + length * (kind != 2)
    assert (at, other) == (own.read_end[read], own.paths.germline_end[read])
    assert score == own.scores[read]
    assert (alike, pairs - alike) == (own.paths.matches[read], own.paths.mismatches[read])


@given(st.lists(any_read(), max_size=4))
def test_alignments_score_what_they_are_said_to(reads: list[str]) -> None:
    matches = ALIGNER.align(read_block(reads))
    for read in range(len(reads)):
        check_segment(matches, "v", read)
        check_segment(matches, "j", read)
        turned = reverse_complement(reads[read])
        assert matches.reads.sequence(read) == (turned if matches.reversed[read] else reads[read])
        assert (matches.germline[read] >= 0) == (matches.v.scores[read] > 0)


@given(st.lists(any_read(), max_size=3))
def test_the_other_strand_gives_the_same(reads: list[str]) -> None:
    given, turned = (
        ALIGNER.align(read_block(block)) for block in (reads, [reverse_complement(read) for read in reads])
    )
    for a, b in ((given.v, turned.v), (given.j, turned.j)):
        for one, other in zip(arrays_of(a), arrays_of(b), strict=True):
            assert np.array_equal(one, other)
    found = given.germline >= 0
    assert np.array_equal(found, turned.germline >= 0)
    assert not (given.reversed & turned.reversed)[found].any()


@given(rearranged())
def test_known_alleles_are_found(read: tuple[str, int, int, int, int]) -> None:
    sequence, v, j, *bases = read
    matches = ALIGNER.align(read_block([sequence]))
    assert not matches.reversed[0]
    for own, alleles, true, part in ((matches.v, TRB.v, v, bases[0]), (matches.j, TRB.j, j, bases[1])):
        assert own.scores[0] >= part
        if own.scores[0] == part:
            assert alleles[true].sequence in {alleles[k].sequence for k in alleles_of(own, 0)}
