"""Short calls: the same alignments as of lists, whatever the form of sequences and matrices."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.alignment import AlignmentCase
from support.alignment_strategies import alignment_cases
from support.examples import examples, often

from plait.align import (
    Alignment,
    Alignments,
    SubstitutionMatrix,
    align,
    align_many,
    align_pairs,
    end_pairs,
    load_matrix,
    local_best,
    make_aligner,
    make_scoring,
    score,
    score_many,
    to_matrix,
)
from plait.align.aligner import Aligner
from plait.align.scoring import Scoring
from plait.errors import InvalidInput

#: Biopython is compared with where it is installed.
NO_BIOPYTHON = "Biopython is no dependency; its objects are taken where it is there"

LETTERS = "ACD"


def aligner_of(case: AlignmentCase) -> tuple[Aligner, str, str]:
    """The settings of a case, and its sequences as letters."""
    size = len(case.scores)
    matrix = SubstitutionMatrix("case", LETTERS[:size], np.array(case.scores), "protein")
    aligner = make_aligner(
        Scoring(matrix, case.gap_open, case.gap_extend),
        mode=case.mode,  # type: ignore[arg-type]
        free_ends=case.free_ends if case.mode == "semiglobal" else None,  # type: ignore[arg-type]
    )
    query, target = ("".join(LETTERS[k] for k in own) for own in (case.query, case.target))
    return aligner, query, target


@given(alignment_cases(longest=20))
@examples(300)
def test_one_pair_is_aligned_as_in_a_list(case: AlignmentCase) -> None:
    aligner, query, target = aligner_of(case)
    batch = aligner.pair(query, target)
    assert aligner.align(query, target) == aligner.align_codes(batch)[0]
    assert aligner.score(query, target) == aligner.score_codes(batch)[0]


@given(alignment_cases(longest=40))
@examples(100)
def test_one_pair_in_lanes(case: AlignmentCase) -> None:
    """Longer pairs take lanes; here all do."""
    aligner, query, target = aligner_of(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plait.align.short_pairs._FEW_CELLS", 0)
        found = aligner.align(query, target), aligner.score(query, target)
    batch = aligner.pair(query, target)
    assert found == (aligner.align_codes(batch)[0], aligner.score_codes(batch)[0])


@pytest.mark.parametrize("matrix", often(2, ["few", "PAM30", "dear"]))
@pytest.mark.parametrize("mode", ["global", "local", "overlap"])
def test_matrices_and_lanes(matrix: str, mode: Any) -> None:
    """Few letters, many, and costs that do not fit narrow lanes."""
    letters = "ACGT" if matrix == "few" else "ARNDCQEGHILKMFPSTWYV"
    scoring = make_scoring("PAM30")
    if matrix == "few":
        scoring = make_scoring(("ACGT", np.eye(4, dtype=np.int64) * 9 - 4), 6, 1)
    elif matrix == "dear":
        scoring = make_scoring("PAM30", 300, 200)
    aligner = make_aligner(scoring, mode=mode)
    rng = np.random.default_rng(8)
    for size in (*rng.integers(50, 512, 12).tolist(), 512, 60, 511):
        query = "".join(rng.choice(list(letters), size))
        target = query[size // 3 :] + "".join(rng.choice(list(letters), size // 4))
        assert aligner.align(query, target) == aligner.align_codes(aligner.pair(query, target))[0]


@pytest.mark.parametrize("mode", ["global", "semiglobal", "overlap"])
@pytest.mark.parametrize("letters", often(1, ["ACGT", "ACGTN", "ARNDCQEGHILKMFPSTWYV"]))
def test_unit_costs(letters: str, mode: Any) -> None:
    """Distances as scores; letters of nucleotides that are not A, C, G or T; equal letters that score."""
    rng = np.random.default_rng(len(letters))
    same = np.eye(len(letters), dtype=np.int64)
    for scores in (same - 1, 2 * same) if mode == "global" else (same - 1,):
        aligner = make_aligner(make_scoring((letters, scores), 1, 1), mode=mode)
        assert aligner._short._in_words is not None
        for size in (1, 63, 64, 65, 250, 257, 513, 1024, 1025, 5000):
            query = "".join(rng.choice(list(letters), size))
            target = query[size // 5 :] + "".join(rng.choice(list(letters), size // 4))
            batch = aligner.pair(query, target)
            assert aligner.align(query, target) == aligner.align_codes(batch)[0]
            assert aligner.score(query, target) == aligner.score_codes(batch)[0]


def test_pairs_of_all_lengths_one_after_the_other() -> None:
    """Memory is kept between calls: what one leaves there is not seen by the next."""
    rng = np.random.default_rng(3)
    aligner = make_aligner(make_scoring(match=2, mismatch=-3), mode="local")
    for _ in range(60):
        query, target = ("".join(rng.choice(list("ACGT"), size)) for size in rng.integers(1, 90, 2))
        assert aligner.align(query, target) == aligner.align_codes(aligner.pair(query, target))[0]


@pytest.mark.parametrize("size", [255, 256, 257, 2000])
def test_longer_pairs_take_the_other_way(size: int) -> None:
    query, target = "ACGT" * (size // 4) + "A" * (size % 4), "ACGT" * 64
    aligner = make_aligner(make_scoring(kind="dna"))
    assert aligner.align(query, target) == aligner.align_codes(aligner.pair(query, target))[0]


def test_several_threads_share_an_aligner() -> None:
    aligner = make_aligner(make_scoring(kind="dna"))
    pairs = [("ACGT" * k, "AGGT" * (k + 1)) for k in range(1, 40)]
    expected = [aligner.align(*pair) for pair in pairs]
    wrong: list[int] = []

    def run() -> None:
        for _ in range(20):
            wrong.extend(k for k, pair in enumerate(pairs) if aligner.align(*pair) != expected[k])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("query", "target", "what"),
    [
        ("AC!T", "ACGT", "query: found '!' at position 3"),
        ("ACGT", "AC-T", "target: found '-' at position 3"),
        ("ACGT", "ACé", "target: found 'é' at position 3"),
        ("ACGT" * 60, "ACGT" * 60 + "!", "target: found '!' at position 241"),
        (b"AC\xff", "AC", "query: found 'ÿ' at position 3"),
        (7, "AC", "query: found a int, expected a sequence as str or bytes"),
        ("AC", np.array([1.0]), "target: found a ndarray, expected a sequence as str or bytes"),
    ],
)
def test_letters_that_are_wrong(query: Any, target: Any, what: str) -> None:
    aligner = make_aligner(make_scoring(kind="dna"))
    for call in (aligner.align, aligner.score, lambda *pair: align(*pair, kind="dna")):
        with pytest.raises(InvalidInput, match=what):
            call(query, target)


class Seq:
    """As Biopython's: letters that become bytes."""

    def __init__(self, letters: str) -> None:
        self.letters = letters

    def __bytes__(self) -> bytes:
        return self.letters.encode()


class SeqRecord:
    """As Biopython's: it has a sequence."""

    def __init__(self, letters: str) -> None:
        self.seq = Seq(letters)


def octets(letters: str) -> bytearray:
    """Bytes that may change."""
    return bytearray(letters.encode())


def array(letters: str) -> Any:
    """Letters as an array."""
    return np.frombuffer(letters.encode(), np.uint8)


@pytest.mark.parametrize("form", [str, str.encode, Seq, SeqRecord, octets, array])
def test_forms_of_sequences(form: Any) -> None:
    query, targets = "GATTACA", ["GATTACA", "GATACA", ""]
    expected = align_many(query, targets)
    assert align(form(query), form(targets[1])) == expected[1]
    assert score(form(query), form(targets[1])) == expected[1].score
    assert align_many(form(query), map(form, targets)) == expected
    assert score_many(form(query), map(form, targets)).tolist() == expected.score.tolist()
    assert align_pairs([form(query)] * 3, map(form, targets)) == expected
    assert local_best(form(query), form(query), 1)[0].score == 14


def test_settings_are_looked_at_in_every_call() -> None:
    """Aligners are kept between calls, but not those of what may change."""
    scores = {("A", "A"): 1, ("A", "C"): -1, ("C", "C"): 1}
    assert score("AC", "AC", matrix=scores, gap_open=2, gap_extend=1) == 2
    scores["A", "A"] = 5
    assert score("AC", "AC", matrix=scores, gap_open=2, gap_extend=1) == 6
    assert score("ACGT", "ACGT") == 8
    assert score("ACGT", "ACGT", kind="protein") == 4 + 9 + 6 + 5
    gaps: Any = {"gap_open": 7, "gap_extend": 2}
    assert [score("ACGT", "ACGT", match=match, **gaps) for match in (1, 3)] == [4, 12]
    assert score("ACGT", "AGT", mismatch=-30, gap_open=1, gap_extend=1) == 5
    for wrong in (True, 1.0):
        assert score("ACGT", "AGT", mismatch=-1, gap_open=1, gap_extend=1) == 5
        with pytest.raises(InvalidInput, match="gap_open"):
            score("ACGT", "AGT", mismatch=-1, gap_open=wrong, gap_extend=1)  # type: ignore[arg-type]
    ends = ["target_start"]
    assert score("GT", "ACGT", mode="semiglobal", free_ends=ends) == 4  # type: ignore[arg-type]
    ends.append("target_end")
    assert score("CG", "ACGT", mode="semiglobal", free_ends=ends) == 4  # type: ignore[arg-type]


def test_a_matrix_file_is_read_in_every_call(tmp_path: Any) -> None:
    file = tmp_path / "own"
    for value in (1, 4):
        file.write_text(f"  A C\nA {value} 0\nC 0 {value}\n")
        assert score("AC", "AC", matrix=file, gap_open=2, gap_extend=1) == 2 * value
        assert score("AC", "AC", matrix=str(file), gap_open=2, gap_extend=1) == 2 * value


def test_kinds_are_guessed_as_for_lists() -> None:
    for query, target in (("ACGU", "acgt"), (b"ACGT", "ACGT"), ("ACGT", "ACGTNN"), ("", "ACGT"), ("", "")):
        found = align(query, target)
        assert found == align_pairs([query], [target])[0]
        assert found.scoring == align_pairs([query] * 2, [target] * 2)[0].scoring
    with pytest.raises(InvalidInput, match="nucleotides or amino acids"):
        align("GTGYCAGCMGCC", "GTGYCAGCMGCC")


@given(alignment_cases(longest=20, banded=True, dropped=True))
@examples(60)
def test_ends_are_those_of_alignments(case: AlignmentCase) -> None:
    aligner, query, target = aligner_of(case)
    aligner = replace(aligner, band=case.band, x_drop=case.x_drop)
    batch = aligner.pair(query, target)
    try:
        found, expected = aligner.end_codes(batch), aligner.align_codes(batch)
    except InvalidInput:
        # No alignment lies in the band.
        return
    for name in ("score", "query_end", "target_end"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()


def test_ends_of_pairs() -> None:
    queries, targets = ["ACGT", "", "TTGCA"], ["TACGA", "ACG", "TTGA"]
    for mode in ("global", "local", "overlap"):
        found, expected = end_pairs(queries, targets, mode=mode), align_pairs(queries, targets, mode=mode)  # type: ignore[arg-type]
        for name in ("score", "query_end", "target_end"):
            assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    with pytest.raises(InvalidInput, match="2 queries and 1 targets"):
        end_pairs(["A", "C"], ["A"])


# --- results ------------------------------------------------------------------------------------------------


def test_columns_are_those_of_the_alignments() -> None:
    rng = np.random.default_rng(5)
    targets = ["".join(rng.choice(list("ACGT"), size)) for size in rng.integers(0, 40, 50)]
    found = align_many("ACGTTGCATTACGGCA", targets, mode="local")
    assert found == [align("ACGTTGCATTACGGCA", target, mode="local", kind="dna") for target in targets]
    for name in ("score", "query_start", "query_end", "target_start", "target_end", "matches", "mismatches",
                 "similar", "gaps", "gap_openings", "length", "identity"):  # fmt: skip
        column = getattr(found, name)
        assert isinstance(column, np.ndarray)
        assert column.tolist() == [getattr(own, name) for own in found], name
    assert found.cigars == [own.cigar for own in found]
    assert found.cigar_letters.tobytes().decode() == "".join(found.cigars)
    assert np.diff(found.cigar_offsets).tolist() == [len(cigar) for cigar in found.cigars]
    again = Alignments(found)
    assert again == found
    assert again.to_arrow().equals(found.to_arrow())
    assert found.to_arrow()["cigar"].to_pylist() == found.cigars
    assert (found[3], found[-1]) == (list(found)[3], list(found)[-1])
    assert (found[5].query, found[5].target) == ("ACGTTGCATTACGGCA", targets[5])
    assert found[10:20:3] == list(found)[10:20:3]
    assert [own.target for own in found[::-1]] == targets[::-1]
    assert found != [*found][:-1] and found != 3 and Alignments() == []
    with pytest.raises(IndexError):
        found[50]
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        found.scores  # noqa: B018  # asked for
    with pytest.raises(TypeError):
        hash(found)


def test_queries_that_come_often_among_others() -> None:
    """Those meet all their targets at once; results are in the order of the pairs."""
    rng = np.random.default_rng(6)
    targets = ["".join(rng.choice(list("ACGT"), size)) for size in rng.integers(0, 30, 90)]
    queries = [["ACGTACGGT", "TTGCATGAC", targets[k]][k % 3] for k in range(90)]
    for mode in ("global", "local"):
        found = align_pairs(queries, targets, mode=mode)  # type: ignore[arg-type]
        assert found == [align(*pair, mode=mode, kind="dna") for pair in zip(queries, targets, strict=True)]  # type: ignore[arg-type]


def test_coordinates() -> None:
    found = align("GATTACAGATTACA", "GATTCAGATTTACA")
    assert found.cigar == "4=1I4=1D5="
    assert found.coordinates.tolist() == [[0, 4, 5, 9, 9, 14], [0, 4, 4, 8, 9, 14]]
    local = align("TTTACGTACGGGAA", "CCACGAACGGGCC", mode="local")
    assert local.cigar == "3=1X5="
    assert local.coordinates.tolist() == [[3, 12], [2, 11]]
    assert align("AC", "", kind="dna").coordinates.tolist() == [[0, 2], [0, 0]]
    assert align("A", "C", mode="local", kind="dna").coordinates.tolist() == [[0], [0]]


def test_coordinates_are_those_of_biopython() -> None:
    bio = pytest.importorskip("Bio.Align", reason=NO_BIOPYTHON)
    pairs = bio.PairwiseAligner(match_score=2, mismatch_score=-3, open_gap_score=-7, extend_gap_score=-2)
    query, target = "GATTACAGATTACA", "GATTCAGATTTACA"
    ours = align(query, target).coordinates.tolist()
    assert ours in [own.coordinates.tolist() for own in pairs.align(query, target)]


def test_alignments_as_text() -> None:
    query, target = "GATTACA", "GATACA"
    found = align(query, target)
    assert format(found) == found.text() == found.text(query, target) == f"{found:text}"
    assert f"{found:cigar}" == found.cigar
    assert (
        f"{found:fasta}"
        == f">query\n{query}\n>target\n{'GAT-ACA' if 'GAT-ACA' in format(found) else 'GA-TACA'}\n"
    )
    bare = Alignments.of_columns(
        np.zeros((1, 10), np.int64), np.zeros(0, np.uint8), np.zeros(2, np.int64), found.scoring
    )[0]
    assert f"{bare}" == str(bare)
    with pytest.raises(InvalidInput, match="query: found none"):
        bare.text()
    with pytest.raises(InvalidInput, match="target: found none"):
        bare.text(query)
    with pytest.raises(InvalidInput, match="format: found 'sam', expected text, fasta or cigar"):
        format(found, "sam")
    assert isinstance(found, Alignment)


# --- matrices -----------------------------------------------------------------------------------------------


class LettersAndScores(np.ndarray[Any, Any]):
    """As Biopython's ``substitution_matrices.Array``: an array with an alphabet."""

    alphabet = "ACGT"


class ScoringMatrix:
    """As of ``scoring_matrices``: an alphabet, and scores beside it."""

    alphabet = "ACGT"
    name = "own"
    matrix = np.eye(4) * 3 - 1


def test_forms_of_matrices() -> None:
    scores = np.eye(4, dtype=np.int64) * 3 - 1
    wanted = SubstitutionMatrix("custom", "ACGT", scores, "dna")
    pairs = {(a, b): int(scores[i, j]) for i, a in enumerate("ACGT") for j, b in enumerate("ACGT")}
    half = {a + b: value for (a, b), value in pairs.items() if a <= b}
    for form in (("ACGT", scores), ("acgt", scores.astype(float)), pairs, half,
                 scores.astype(float).view(LettersAndScores)):  # fmt: skip
        found = to_matrix(form)
        assert found == wanted
        assert hash(found) == hash(wanted)
        assert align("ACGT", "AGT", matrix=form, gap_open=2, gap_extend=1).score == 4
    assert to_matrix(ScoringMatrix()).name == "own"
    assert to_matrix(("ACGT", scores), name="mine", kind="protein").kind == "protein"
    assert to_matrix(wanted) is wanted
    assert to_matrix("BLOSUM62") is load_matrix("BLOSUM62")


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (7, "matrix: found a int, expected a matrix, its name or file, letters and an array"),
        ({"A": 1}, "matrix: found the key 'A', expected pairs of letters"),
        ({("A", 1): 1}, r"matrix: found the key \('A', 1\), expected pairs of letters"),
        ({"AA": 1, "CC": 1}, "matrix: found no score of 'A' and 'C', expected one"),
        ({"AA": 1.5}, "matrix: found the score 1.5, expected whole numbers"),
        ({"AA": float("inf")}, "matrix: found the score inf, expected whole numbers"),
        ({"AA": None}, "matrix: found no score of 'A' and 'A', expected one"),
        ({"AA": "x"}, r"scores of shape \(1, 1\) and type <U1"),
        ({}, "the letters ''"),
        (("ACG", np.zeros((2, 2), int)), r"scores of shape \(2, 2\) and type int64"),
        (("AAC", np.zeros((3, 3), int)), "the letters 'AAC'"),
    ],
)
def test_what_is_no_matrix(source: Any, what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        make_scoring(source, 2, 1)


def test_matrices_of_biopython() -> None:
    matrices = pytest.importorskip("Bio.Align.substitution_matrices", reason=NO_BIOPYTHON)
    found, ours = to_matrix(matrices.load("BLOSUM62")), load_matrix("BLOSUM62")
    assert (found.letters, found.scores.tolist()) == (ours.letters, ours.scores.tolist())
    seq = pytest.importorskip("Bio.Seq", reason=NO_BIOPYTHON).Seq("HEAGAWGHEE")
    record = pytest.importorskip("Bio.SeqRecord", reason=NO_BIOPYTHON).SeqRecord(seq, id="one")
    expected = align("HEAGAWGHEE", "PAWHEAE", mode="local")
    found_alignment = align(record, seq.__class__("PAWHEAE"), mode="local", matrix=matrices.load("BLOSUM62"),
                            gap_open=12, gap_extend=1)  # fmt: skip
    assert found_alignment == expected


def test_equal_scorings() -> None:
    one, other = make_scoring(match=2, mismatch=-3), make_scoring(match=2, mismatch=-3)
    assert one == other
    assert hash(one) == hash(other)
    assert {one: 1}[other] == 1
    others = [
        make_scoring(None, 7, 2, match=3),
        make_scoring(match=2, gap_open=8),
        make_scoring(kind="protein"),
        make_scoring(("ACGTRYSWKMBDHVN", one.matrix.scores), 7, 2),
    ]
    for changed in others:
        assert changed != one
    assert one.matrix != "2/-3"
    assert (one.gap_open, one.gap_extend, one.matrix.kind) == (7, 2, "dna")


@given(st.integers(0, 9), st.integers(-9, 0))
@examples(20)
def test_match_and_mismatch(match: int, mismatch: int) -> None:
    if match == mismatch:
        with pytest.raises(InvalidInput, match="match: found 0, as mismatch"):
            make_scoring(match=match, mismatch=mismatch, gap_open=3, gap_extend=1)
        return
    how: Any = {"match": match, "mismatch": mismatch, "gap_open": 99, "gap_extend": 99}
    assert score("ACGT", "ACCT", **how) == 3 * match + mismatch
    assert score("ACGT", "ACCT", kind="protein", **how) == 3 * match + mismatch


def test_match_scores_beside_a_matrix() -> None:
    with pytest.raises(InvalidInput, match="a matrix and match or mismatch scores"):
        align("A", "A", matrix="NUC.4.4", match=1)
