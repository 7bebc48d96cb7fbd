"""Alignments made from the paths of a traceback, against column-by-column Python and other libraries."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.alignment_batches import rescore

from plait.align.results import Alignment, make_alignment, make_alignments, parse_cigar
from plait.align.scoring import Scoring, load_matrix, match_mismatch
from plait.dp.pairs.paths import Paths
from plait.errors import InvalidInput

DNA = Scoring(match_mismatch(2, -3), 7, 2)
PROTEIN = Scoring(load_matrix("BLOSUM62"), 12, 1)
KIND = {"=": 0, "X": 0, "D": 1, "I": 2}
RUNS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=12)
CIGAR_RUNS = st.lists(st.tuples(st.sampled_from("=XID"), st.integers(1, 10**17)), max_size=30)


def as_array(runs: list[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(runs, np.int64).reshape(-1, 2)


def residues(runs: list[tuple[int, int]]) -> tuple[int, int]:
    return sum(n for k, n in runs if k != 1), sum(n for k, n in runs if k != 2)


def described(query: bytes, target: bytes, runs: list[tuple[int, int]], scoring: Scoring) -> dict[str, Any]:
    """CIGAR, counts and score, a column at a time."""
    codes = scoring.encode(query), scoring.encode(target, "target")
    columns, similar, score, i, j = "", 0, 0, 0, 0
    for operation, length in runs:
        for _ in range(length):
            if operation == 0:
                pair = scoring.matrix.scores[codes[0][i], codes[1][j]]
                columns += "=" if codes[0][i] == codes[1][j] else "X"
                similar += int(pair > 0)
                score += int(pair)
            else:
                columns += "?DI"[operation]
            i, j = i + (operation != 1), j + (operation != 2)
    grouped = [(letter, len(list(group))) for letter, group in groupby(columns)]
    gaps = [n for letter, n in grouped if letter in "ID"]
    return {
        "cigar": "".join(f"{n}{letter}" for letter, n in grouped),
        "matches": columns.count("="),
        "mismatches": columns.count("X"),
        "similar": similar,
        "gaps": sum(gaps),
        "gap_openings": len(gaps),
        "score": score - sum(scoring.gap_open + (n - 1) * scoring.gap_extend for n in gaps),
    }


@st.composite
def pairs(draw: st.DrawFn, letters: bytes = b"ACGTUNacgtun") -> tuple[bytes, bytes, list[tuple[int, int]]]:
    runs = draw(RUNS)
    query, target = (
        bytes(draw(st.lists(st.sampled_from(letters), min_size=n, max_size=n))) for n in residues(runs)
    )
    return query, target, runs


def aligned(
    query: bytes, target: bytes, runs: list[tuple[int, int]], scoring: Scoring = DNA, score: int = 0
) -> Alignment:
    """The alignment of the last residues."""
    codes = scoring.encode(query), scoring.encode(target, "target")
    return make_alignment(*codes, scoring, score, len(query), len(target), as_array(runs))


@given(st.lists(CIGAR_RUNS, max_size=5))
def test_cigars_are_read(many: list[list[tuple[str, int]]]) -> None:
    for runs in many:
        found = parse_cigar("".join(f"{n}{letter}" for letter, n in runs))
        assert list(zip(found[0].tobytes().decode(), found[1].tolist(), strict=True)) == runs


@pytest.mark.parametrize(
    ("cigar", "found"),
    [
        ("12M", "'12M' at character 1"),
        ("3=x", "'x' at character 3"),
        ("=", "'=' at character 1"),
        ("3=I2D", "'I2D' at character 3"),
        ("3=0X2D", "'0X2D' at character 3"),
        ("3=05X", "'05X' at character 3"),
        ("3=4", "'4' at character 3"),
        ("3= 4X", "' 4X' at character 3"),
        ("3=-4X", "'-4X' at character 3"),
        ("9=9999999999999999999X", "'9999999999999999999X' at character 3"),
        ("3=²X", "'²X' at character 3"),
        ("3=2X\n", "'\\n' at character 5"),
    ],
)
def test_a_bad_cigar_is_refused(cigar: str, found: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_cigar(cigar)
    assert found in str(caught.value.found)


@given(pairs(), st.sampled_from([1, 3, 1 << 20]), st.binary(max_size=3), st.binary(max_size=3))
def test_alignments_are_as_described(
    pair: tuple[bytes, bytes, list[tuple[int, int]]], block: int, before: bytes, after: bytes
) -> None:
    query, target, runs = pair
    expected = described(query, target, runs, DNA)
    # Residues before and after the path, which is not all of the sequences in most modes.
    codes = [DNA.encode(b"A" * len(before) + text + b"C" * len(after)) for text in (query, target)]
    ends = [len(before) + len(text) for text in (query, target)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plait.align.results._BLOCK_COLUMNS", block)
        found = make_alignment(*codes, DNA, expected["score"], *ends, as_array(runs))
        assert {name: getattr(found, name) for name in expected} == expected
        assert rescore(found, *codes, DNA) == expected["score"]
    starts = (found.query_start, found.target_start)
    assert (*starts, found.query_end, found.target_end) == (len(before), len(before), *ends)
    assert found.length == sum(n for _, n in runs)
    if found.length:
        assert found.identity == expected["matches"] / found.length
        assert found.similarity == expected["similar"] / found.length


@given(st.lists(pairs(b"ACDWXBZ*ux"), max_size=6))
def test_many_at_once_are_as_one_by_one(many: list[tuple[bytes, bytes, list[tuple[int, int]]]]) -> None:
    expected = [described(*pair, PROTEIN) for pair in many]
    codes = [PROTEIN.encode(b"".join(pair[side] for pair in many)) for side in (0, 1)]
    offsets = [np.cumsum([0, *(len(pair[side]) for pair in many)])[:-1] for side in (0, 1)]
    ends = [np.array([len(pair[side]) for pair in many], np.int64) for side in (0, 1)]
    runs = as_array([run for pair in many for run in pair[2]])
    bounds = np.cumsum([0, *(len(pair[2]) for pair in many)])
    paths = Paths(*codes, *offsets, *ends, PROTEIN.matrix.scores, runs, bounds)
    found = make_alignments(paths, PROTEIN, np.array([item["score"] for item in expected], np.int64))
    assert [{name: getattr(a, name) for name in e} for a, e in zip(found, expected, strict=True)] == expected
    assert found == [
        aligned(*pair, PROTEIN, item["score"]) for pair, item in zip(many, expected, strict=True)
    ]


def test_pairs_may_share_sequences() -> None:
    codes, offsets = DNA.encode("ACGTACGT"), np.array([4, 0, 4], np.int64)
    target, target_offsets = DNA.encode("ACGA"), np.zeros(3, np.int64)
    ends, runs = np.full(3, 4, np.int64), as_array([(0, 4)] * 3)
    places = (offsets, target_offsets, ends, ends)
    paths = Paths(codes, target, *places, DNA.matrix.scores, runs, np.arange(4))
    found = make_alignments(paths, DNA, ends)
    assert [a.cigar for a in found] == ["3=1X"] * 3


def test_values_are_plain_integers() -> None:
    found = aligned(b"ACGT", b"ACT", [(0, 2), (2, 1), (0, 1)])
    others = ("cigar", "scoring", "query", "target")
    names = [name for name in Alignment.__dataclass_fields__ if name not in others]
    assert {type(getattr(found, name)) for name in names} == {int}


def test_without_columns() -> None:
    found = aligned(b"", b"", [])
    assert (found.cigar, found.length, found.identity, found.similarity) == ("", 0, 0.0, 0.0)
    assert rescore(found, *[DNA.encode("ACGT")] * 2, DNA) == 0
    none, codes = np.zeros(0, np.int64), DNA.encode("")
    paths = Paths(codes, codes, *[none] * 4, DNA.matrix.scores, as_array([]), np.zeros(1, int))
    assert make_alignments(paths, DNA, none) == []


def test_what_is_identical_and_what_similar() -> None:
    assert aligned(b"acguN", b"ACGTN", [(0, 5)]).cigar == "5="
    assert aligned(b"NRA", b"ARR", [(0, 3)]).cigar == "1X1=1X"
    found = aligned(b"XXKWJ", b"XARWX", [(0, 5)], PROTEIN)
    # X with X is a match that scores -1, K with R a mismatch that scores 2; J counts as X.
    assert (found.cigar, found.matches, found.similar) == ("1=2X2=", 3, 2)


def test_the_scoring_is_no_part_of_comparisons() -> None:
    found = aligned(b"ACGT", b"ACGT", [(0, 4)])
    assert found == replace(found, scoring=PROTEIN)
    assert found != replace(found, score=1)
    assert "scoring" not in repr(found)


@pytest.mark.parametrize("runs", [[(0, 5)], [(0, 4), (1, 1)], [(2, 1), (0, 4)]])
def test_a_path_longer_than_its_sequences_is_refused(runs: list[tuple[int, int]]) -> None:
    with pytest.raises(InvalidInput, match="pair 0, which ends at query 4, target 4, expected a path"):
        aligned(b"ACGT", b"ACGT", runs)


def test_an_end_outside_the_sequences_is_refused() -> None:
    codes = DNA.encode("ACGT")
    with pytest.raises(InvalidInput, match="pair 0, which ends at query 4, target 5, expected a path"):
        make_alignment(codes, codes, DNA, 0, 4, 5, as_array([(0, 4)]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cigar": "4=1X1I2="}, "8 residues of the query"),
        ({"cigar": "4=1X2D2="}, "7 residues of the query"),
        ({"cigar": "4=1X2I1D2="}, "8 residues of the target"),
        ({"cigar": "6=1I2D1="}, "8 residues of the query, expected 9"),
        ({"cigar": "3=2X2I2="}, "= or X in a wrong column"),
        ({"cigar": "5=2I2="}, "= or X in a wrong column"),
        ({"query_start": -1}, "query: found a sequence of 9 residues"),
        ({"target_end": 8}, "target: found a sequence of 7 residues"),
        ({"query_start": 1}, "cigar: found 9 residues of the query, expected 8"),
        ({"target_start": 1}, "cigar: found 7 residues of the target, expected 6"),
        ({"query_start": 9, "query_end": 0}, "query: found"),
    ],
)
def test_rescore_refuses_contradictions(change: dict[str, Any], message: str) -> None:
    query, target = b"ACGTAGGAC", b"ACGTCAC"
    right = aligned(query, target, [(0, 5), (2, 2), (0, 2)])
    assert (right.cigar, rescore(right, DNA.encode(query), DNA.encode(target), DNA)) == ("4=1X2I2=", 0)
    with pytest.raises(InvalidInput) as caught:
        rescore(replace(right, **change), DNA.encode(query), DNA.encode(target), DNA)
    assert message in str(caught.value)


def test_long_and_many() -> None:
    rng = np.random.default_rng(7)
    n = 100_000
    query = rng.integers(0, 4, n).astype(np.uint8)
    target = np.where(rng.random(n) < 0.1, rng.integers(0, 4, n), query).astype(np.uint8)
    long = make_alignment(query, target, DNA, 0, n, n, as_array([(0, 498), (1, 2), (2, 2)] * 200))
    assert (long.length, long.gap_openings, long.gaps) == (n + 400, 400, 800)
    places, ends = 100 * np.arange(900), np.full(900, 100, np.int64)
    runs = as_array([(0, 40), (1, 5), (0, 50), (2, 10)] * 900)
    bounds = 4 * np.arange(901)
    paths = Paths(query, target, places, places, ends, ends - 5, DNA.matrix.scores, runs, bounds)
    short = make_alignments(paths, DNA, ends)
    assert len(short) == 900 and {(a.length, a.gaps) for a in short} == {(105, 15)}


def random_proteins(seed: int, pairs: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    letters = "ARNDCQEGHILKMFPSTWYV"
    found = []
    for _ in range(pairs):
        query = rng.choices(letters, k=rng.randrange(5, 60))
        target = [rng.choice(letters) if rng.random() < 0.3 else letter for letter in query]
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(target))
            target[at : at + rng.randrange(3)] = rng.choices(letters, k=rng.randrange(4))
        found.append(("".join(query), "".join(target) or "A"))
    return found


@pytest.mark.parametrize("mode", ["nw", "sw"])
def test_against_parasail(mode: str) -> None:
    parasail = pytest.importorskip("parasail", reason="parasail is not installed")
    trace = getattr(parasail, f"{mode}_trace_striped_16")
    for query, target in random_proteins(3, 60):
        result = trace(query, target, PROTEIN.gap_open, PROTEIN.gap_extend, parasail.blosum62)
        # Its local CIGARs begin with gaps up to where the alignment starts.
        cigar = result.cigar.decode.decode()
        cigar = re.sub("^([0-9]+[ID])+", "", cigar) if mode == "sw" else cigar
        runs = [(KIND[chr(letter)], n) for letter, n in zip(*parse_cigar(cigar), strict=True)]
        codes = PROTEIN.encode(query), PROTEIN.encode(target)
        ends = result.end_query + 1, result.end_ref + 1
        found = make_alignment(*codes, PROTEIN, result.score, *ends, as_array(runs))
        assert found.cigar == cigar
        assert rescore(found, *codes, PROTEIN) == result.score
        if mode == "nw":
            assert (found.query_start, found.target_start, *ends) == (0, 0, len(query), len(target))


def test_against_biopython() -> None:
    align = pytest.importorskip("Bio.Align", reason="Biopython is not installed")
    aligner = align.PairwiseAligner(substitution_matrix=align.substitution_matrices.load("BLOSUM62"))
    aligner.open_gap_score, aligner.extend_gap_score = -PROTEIN.gap_open, -PROTEIN.gap_extend
    for query, target in random_proteins(4, 40):
        best = aligner.align(target, query)[0]
        steps = np.diff(best.coordinates).T.tolist()
        runs = [(0 if i and j else 1 if i else 2, max(i, j)) for i, j in steps]
        found = aligned(query.encode(), target.encode(), runs, PROTEIN, int(best.score))
        counts = best.counts()
        assert (found.matches, found.mismatches) == (counts.identities, counts.mismatches)
        assert found.gaps == counts.gaps
        codes = PROTEIN.encode(query), PROTEIN.encode(target)
        assert rescore(found, *codes, PROTEIN) == best.score
