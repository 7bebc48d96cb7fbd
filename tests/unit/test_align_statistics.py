"""Bit scores and E-values against BLAST's, and the parameters against their definitions."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from importlib import resources
from typing import Any

import numpy as np
import pytest

from plait.align.scoring import SubstitutionMatrix, load_matrix, make_scoring, match_mismatch
from plait.align.statistics import KarlinAltschul, Parameters, karlin_altschul, length_adjustment
from plait.errors import InvalidInput

# blastp 2.12.0+ -comp_based_stats 0 -seg no -evalue 1000 -outfmt 15 against 3,000 proteins with 1,202,740
# residues: matrix, gap existence, gap extension, query length, target length, raw score, bit score, E-value,
# length adjustment (hsp_len).
BLASTP = [
    ("BLOSUM62", 11, 1, 15, 303, 77, 34.2686, 1.7124e-05, 0),
    ("BLOSUM62", 11, 1, 15, 275, 26, 14.6234, 189.021, 0),
    ("BLOSUM62", 11, 1, 60, 153, 308, 123.25, 3.20284e-39, 33),
    ("BLOSUM62", 11, 1, 60, 729, 31, 16.5494, 348.539, 33),
    ("BLOSUM62", 11, 1, 355, 277, 39, 19.631, 381.536, 85),
    ("BLOSUM62", 9, 2, 60, 153, 308, 128.081, 2.39456e-41, 40),
    ("BLOSUM62", 9, 2, 355, 515, 39, 19.8058, 376.701, 70),
    ("BLOSUM45", 14, 2, 60, 153, 356, 105.118, 1.68555e-32, 26),
    ("BLOSUM45", 14, 2, 355, 278, 52, 19.5947, 339.969, 116),
    ("BLOSUM50", 13, 2, 60, 153, 384, 111.758, 5.00686e-35, 29),
    ("BLOSUM50", 13, 2, 355, 599, 53, 19.5938, 411.711, 99),
    ("BLOSUM80", 10, 1, 60, 153, 330, 146.167, 2.37455e-45, 38),
    ("BLOSUM80", 10, 1, 355, 329, 37, 19.7766, 401.723, 48),
    ("BLOSUM90", 10, 1, 15, 303, 91, 41.8097, 3.18654e-08, 1),
    ("BLOSUM90", 10, 1, 355, 616, 39, 20.0538, 346.268, 46),
    ("PAM30", 9, 1, 15, 518, 38, 19.3022, 7.71117, 5),
    ("PAM30", 9, 1, 60, 153, 452, 194.901, 1.6889e-59, 19),
    ("PAM70", 10, 1, 60, 572, 34, 17.732, 239.111, 27),
    ("PAM70", 10, 1, 355, 671, 40, 20.251, 313.57, 33),
    ("PAM250", 14, 2, 60, 662, 40, 15.8836, 355.961, 16),
    ("PAM250", 14, 2, 355, 110, 52, 19.0345, 239.014, 154),
]
RESIDUES, SEQUENCES = 1_202_740, 3_000

# The same of blastn 2.12.0+ -task blastn -dust no (-task megablast -gapopen 0 -gapextend 0 for the row with
# existence 0) against 458 sequences with 686,072 bases: reward, penalty, existence, extension and so on.
BLASTN = [
    (2, -3, 5, 2, 60, 1439, 65, 59.8958, 4.95876e-11, 18),
    (1, -2, 1, 2, 60, 1439, 28, 53.4575, 2.47113e-09, 15),
    (1, -2, 1, 2, 1417, 1546, 283, 531.711, 8.22994e-152, 19),
    (1, -3, 2, 2, 1417, 1546, 115, 227.811, 2.51273e-60, 16),
    (1, -4, 1, 2, 1417, 1473, 93, 183.05, 7.49295e-47, 16),
    (1, -1, 3, 2, 60, 1439, 37, 59.8736, 2.17025e-11, 26),
    (4, -5, 6, 5, 60, 1439, 139, 58.4012, 6.20307e-11, 25),
    (5, -4, 10, 6, 60, 1439, 195, 49.7344, 1.13763e-08, 44),
    (3, -4, 6, 3, 60, 1516, 89, 51.9475, 8.49225e-09, 23),
    (2, -5, 2, 4, 60, 1439, 47, 46.1917, 7.77281e-07, 13),
    (4, -6, 10, 4, 60, 1439, 130, 59.8958, 2.65423e-11, 18),
    (1, -5, 3, 3, 1417, 1488, 59, 118.736, 1.72258e-27, 14),
    (2, -7, 2, 4, 60, 1439, 37, 36.876, 0.000500297, 13),
    (3, -2, 5, 5, 1417, 1439, 1866, 565.009, 6.0667e-162, 188),
    (2, -4, 0, 5, 1417, 1439, 563, 520.952, 1.42198e-148, 21),
]
BASES, BASE_SEQUENCES = 686_072, 458

# blastp 2.12.0+ with one -subject: query length, target length, raw score, E-value (BLOSUM62, 11/1).
SUBJECT = [(882, 221, 41, 0.102409), (355, 221, 14, 76.8816), (60, 221, 18, 3.86072), (998, 221, 11, 495.386)]

# Lambda, K and H without gaps as blastn 2.12.0+ prints them for a query of equally frequent bases.
UNGAPPED = {
    (1, -5): "1.39 0.747 1.38", (1, -4): "1.38 0.738 1.36", (2, -7): "0.69 0.548 1.34",
    (1, -3): "1.37 0.711 1.31", (2, -5): "0.681 0.515 1.24", (1, -2): "1.33 0.621 1.12",
    (2, -3): "0.634 0.408 0.912", (3, -4): "0.41 0.34 0.811", (4, -5): "0.301 0.306 0.753",
    (1, -1): "1.1 0.333 0.549", (3, -2): "0.271 0.13 0.222", (5, -4): "0.192 0.176 0.357",
}  # fmt: skip


def table() -> dict[str, Any]:
    text = resources.files("plait.align").joinpath("data", "karlin_altschul.json").read_text("utf-8")
    return json.loads(text)


def statistics(matrix: Any, existence: int, extension: int) -> KarlinAltschul:
    found, reason = karlin_altschul(make_scoring(matrix, existence + extension, extension))
    assert found is not None, reason
    assert reason == ""
    return found


def as_printed(values: Any) -> list[str]:
    return [f"{value:.6g}" for value in np.asarray(values, np.float64).ravel()]


@pytest.mark.parametrize("row", BLASTP, ids=str)
def test_equal_to_blastp(row: tuple[Any, ...]) -> None:
    matrix, existence, extension, query, target, raw, bits, evalue, adjustment = row
    found = statistics(matrix, existence, extension)
    assert as_printed(found.bit_score(raw)) == as_printed(bits)
    ours = found.evalue(raw, query, target, database_residues=RESIDUES, database_sequences=SEQUENCES)
    assert as_printed(ours) == as_printed(evalue)
    assert length_adjustment(found.gapped, query, RESIDUES, SEQUENCES).item() == adjustment


@pytest.mark.parametrize("row", BLASTN, ids=str)
def test_equal_to_blastn(row: tuple[Any, ...]) -> None:
    reward, penalty, existence, extension, query, target, raw, bits, evalue, adjustment = row
    found = statistics(match_mismatch(reward, penalty), existence, extension)
    assert as_printed(found.bit_score(raw)) == as_printed(bits)
    ours = found.evalue(raw, query, target, database_residues=BASES, database_sequences=BASE_SEQUENCES)
    assert as_printed(ours) == as_printed(evalue)
    assert length_adjustment(found.gapped, query, BASES, BASE_SEQUENCES).item() == adjustment


def test_a_target_of_its_own() -> None:
    query, target, raw, evalue = zip(*SUBJECT, strict=True)
    assert as_printed(statistics("BLOSUM62", 11, 1).evalue(raw, query, target)) == as_printed(evalue)


def test_nucleotide_target_of_its_own_is_a_database_of_one() -> None:
    found = statistics(match_mismatch(2, -3), 5, 2)
    lengths = np.array([50, 800, 30_000])
    alone = found.evalue(60, 400, lengths)
    for value, length in zip(alone, lengths.tolist(), strict=True):
        assert value == found.evalue(60, 400, length, database_residues=length, database_sequences=1)


def test_arrays_broadcast() -> None:
    found = statistics("BLOSUM62", 11, 1)
    raw, target = np.array([30, 60, 90]), np.array([100, 200, 300])
    many = found.evalue(raw, 250, target, database_residues=RESIDUES)
    assert many.shape == (3,)
    each = [found.evalue(r, 250, t, database_residues=RESIDUES) for r, t in zip(raw, target, strict=True)]
    assert many.tolist() == [value.item() for value in each]
    grid = found.evalue(raw[:, None], np.array([100, 250])[None], 200, database_residues=RESIDUES)
    assert grid.shape == (3, 2)
    assert found.bit_score(raw).shape == (3,)
    assert found.evalue(np.zeros(0), 10, 10).shape == (0,)
    adjusted = length_adjustment(found.gapped, np.array([[15], [355]]), RESIDUES, np.array([10, 3000]))
    assert adjusted.shape == (2, 2)
    assert adjusted.dtype == np.int64


def test_evalues_fall_with_the_score_and_never_below_zero() -> None:
    found = statistics("BLOSUM62", 11, 1)
    evalues = found.evalue(np.arange(0, 20_000), 352, 353, database_residues=200_000_000)
    assert np.isfinite(evalues).all()
    assert (np.diff(evalues) <= 0).all()
    assert evalues[-1] == 0
    assert (np.diff(evalues[:2000]) < 0).all()


@pytest.mark.parametrize("evalue", [0.0, 1e-3, 10.0])
@pytest.mark.parametrize("query_length", [1, 30, 352, 5_000])
@pytest.mark.parametrize(
    "scoring", [("BLOSUM62", 11, 1), (match_mismatch(2, -3), 5, 2), (match_mismatch(1, -3), 5, 2)], ids=str
)
def test_lower_scores_have_worse_evalues(
    scoring: tuple[Any, int, int], query_length: int, evalue: float
) -> None:
    found = statistics(*scoring)
    lengths, database = np.arange(1, 3_000), {"database_residues": 200_000_000, "database_sequences": 570_000}
    least = found.least_score(evalue, query_length, 2_999, **database)
    scores = np.arange(max(least - 3, 0), least)
    assert np.all(found.evalue(scores[:, None], query_length, lengths, **database) > evalue)
    if evalue:
        # No more than two bits below what has it.
        enough = found.evalue(least + np.arange(3 / found.gapped.lambda_), query_length, 2_999, **database)
        assert enough.min() <= max(evalue, enough[0] / 4)


def test_empty_and_tiny_sequences_have_an_evalue() -> None:
    for found in (statistics("BLOSUM62", 11, 1), statistics(match_mismatch(2, -3), 5, 2)):
        values = found.evalue(0, np.array([0, 1, 2, 10]), np.array([0, 1, 2, 10]))
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        whole = found.evalue(0, np.array([0, 1, 5000]), 1, database_residues=1, database_sequences=1)
        assert np.isfinite(whole).all()


@pytest.mark.parametrize(
    "given", [{"database_residues": 0}, {"database_residues": 9, "database_sequences": 0}]
)
def test_an_empty_database(given: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match=f"^{list(given)[-1]}: found 0, expected 1 or more"):
        statistics("BLOSUM62", 11, 1).evalue(30, 10, 10, **given)


def brute_force_adjustment(parameters: Parameters, m: int, n: int, number: int) -> int:
    """The largest whole l that does not lie above the right side, by trying each."""
    best = 0
    for length in range(m):
        space = (m - length) * (n - number * length)
        if n <= number * length or parameters.k * space <= max(m, n):
            break
        right = parameters.beta + parameters.alpha / parameters.lambda_ * math.log(parameters.k * space)
        if length <= right:
            best = length
    return best


@pytest.mark.parametrize("scoring", ["BLOSUM62", "PAM30", "BLOSUM90"])
def test_length_adjustment_is_the_largest_that_fits(scoring: str) -> None:
    found, _ = karlin_altschul(make_scoring(scoring))
    assert found is not None
    rng = np.random.default_rng(7)
    query, number = rng.integers(20, 3000, 60), rng.integers(1, 5000, 60)
    residues = number * rng.integers(100, 600, 60)
    ours = length_adjustment(found.gapped, query, residues, number)
    each = zip(query.tolist(), residues.tolist(), number.tolist(), strict=True)
    assert ours.tolist() == [brute_force_adjustment(found.gapped, *one) for one in each]


def test_odd_scores_count_as_even_where_the_parameters_ask_for_it() -> None:
    even = statistics(match_mismatch(2, -3), 5, 2)
    assert even.evalue(65, 60, 900) == even.evalue(64, 60, 900)
    assert even.bit_score(65) > even.bit_score(64)
    other = statistics(match_mismatch(1, -2), 1, 2)
    assert other.evalue(31, 60, 900) < other.evalue(30, 60, 900)


def test_every_row_is_found() -> None:
    data = table()
    for name, entry in data["protein"].items():
        assert len({tuple(row[:2]) for row in entry["gapped"]}) == len(entry["gapped"])
        for row in entry["gapped"]:
            found = statistics(name, row[0], row[1])
            assert found.gapped == Parameters(*row[2:])
            assert found.ungapped == Parameters(*entry["ungapped"])
    assert sum(len(entry["gapped"]) for entry in data["protein"].values()) == 82
    for entry in data["nucleotide"]:
        for row in entry["gapped"]:
            unit = 1 if float(row[1]).is_integer() else 2
            matrix = match_mismatch(entry["match"] * unit, entry["mismatch"] * unit)
            found = statistics(matrix, row[0] * unit, int(row[1] * unit))
            assert found.gapped.lambda_ * unit == row[2]
            assert (found.gapped.k, found.gapped.h, found.gapped.beta) == (row[3], row[4], row[6])
            assert found.even_scores == entry["even_scores"]
    assert sum(len(entry["gapped"]) for entry in data["nucleotide"]) == 59


def ungapped_parameters(match: int, mismatch: int) -> tuple[float, float, float]:
    """Lambda, K and H of Karlin and Altschul (1990) for equally frequent bases."""
    chances = {match: 0.25, mismatch: 0.75}
    low, high = 1e-6, 8.0
    for _ in range(100):
        middle = (low + high) / 2
        above = sum(p * math.exp(middle * s) for s, p in chances.items()) > 1
        low, high = (low, middle) if above else (middle, high)
    entropy = low * sum(s * p * math.exp(low * s) for s, p in chances.items())
    sums, series = {0: 1.0}, 0.0
    for steps in range(1, 2000):
        grown: dict[int, float] = defaultdict(float)
        for total, p in sums.items():
            for score, q in chances.items():
                grown[total + score] += p * q
        sums = {total: p for total, p in grown.items() if p > 1e-14}
        term = sum(p * min(1.0, math.exp(low * total)) for total, p in sums.items()) / steps
        series += term
        if term < 1e-8:
            break
    return low, low * math.exp(-2 * series) / (entropy * -math.expm1(-low)), entropy


@pytest.mark.parametrize(
    "entry", table()["nucleotide"], ids=lambda entry: f"{entry['match']}/{entry['mismatch']}"
)
def test_ungapped_nucleotide_parameters(entry: dict[str, Any]) -> None:
    pair = entry["match"], entry["mismatch"]
    assert [f"{value:.3g}" for value in entry["ungapped"]] == UNGAPPED[pair].split()
    assert entry["ungapped"] == pytest.approx(ungapped_parameters(*pair), rel=2e-5)


def test_dear_gaps_are_as_no_gaps() -> None:
    found = statistics(match_mismatch(1, -3), 5, 2)
    assert found.gapped == found.ungapped
    assert found.gapped.lambda_ == 1.37406
    assert statistics(match_mismatch(2, -4), 10, 4).gapped.lambda_ == pytest.approx(1.33271 / 2)
    # blastn 2.12.0+ -reward 1 -penalty -3 -gapopen 5 -gapextend 2, a query of 400 equally frequent bases,
    # the database of BLASTN: length adjustment 14.
    assert length_adjustment(found.gapped, 400, BASES, BASE_SEQUENCES).item() == 14


def test_a_matrix_is_known_by_its_scores() -> None:
    blosum = load_matrix("BLOSUM62")
    renamed = SubstitutionMatrix("mine", blosum.letters, blosum.scores, "protein")
    assert statistics(renamed, 11, 1).gapped == statistics("BLOSUM62", 11, 1).gapped
    order = np.array([blosum.letters.index(letter) for letter in "ACDEFGHIKLMNPQRSTVWYX"])
    fewer = SubstitutionMatrix("m", "ACDEFGHIKLMNPQRSTVWYX", blosum.scores[np.ix_(order, order)], "protein")
    assert statistics(fewer, 11, 1).gapped == statistics("BLOSUM62", 11, 1).gapped
    changed = blosum.scores.copy()
    changed[0, 0] += 1
    found, reason = karlin_altschul(
        make_scoring(SubstitutionMatrix("BLOSUM62", blosum.letters, changed, "protein"), 12, 1)
    )
    assert found is None
    assert reason == (
        "there are no Karlin-Altschul parameters for the matrix 'BLOSUM62', only for BLOSUM45, BLOSUM50, "
        "BLOSUM62, BLOSUM80, BLOSUM90, PAM30, PAM70, PAM250"
    )


def test_nuc_4_4_is_match_5_mismatch_4() -> None:
    assert statistics("NUC.4.4", 10, 6).gapped == statistics(match_mismatch(5, -4), 10, 6).gapped


@pytest.mark.parametrize(
    ("matrix", "gap_open", "gap_extend", "reason"),
    [
        (
            "PAM30",
            5,
            5,
            "PAM30 with gap_open/gap_extend 5/5, only with 9/2, 8/2, 7/2, 11/1, 10/1, 9/1",
        ),
        (
            match_mismatch(5, -4),
            6,
            6,
            "match/mismatch 5/-4 with gap_open/gap_extend 6/6, only with 16/6, 14/6, or where gap_open - "
            "gap_extend is at least 25 and gap_extend at least 10",
        ),
        (
            match_mismatch(2, -4),
            3,
            1,
            "match/mismatch 2/-4 with gap_open/gap_extend 3/1, only with 5/5, 8/4, 6/4, 4/4, 8/2, 6/2, 4/2, "
            "or where gap_open - gap_extend is at least 4 and gap_extend at least 4",
        ),
        (
            match_mismatch(7, -1),
            8,
            1,
            "match/mismatch 7/-1, only "
            "for 1/-1, 1/-2, 1/-3, 1/-4, 1/-5, 2/-3, 2/-5, 2/-7, 3/-2, 3/-4, 4/-5, 5/-4 and their multiples",
        ),
    ],
)
def test_why_there_are_none(matrix: Any, gap_open: int, gap_extend: int, reason: str) -> None:
    assert karlin_altschul(make_scoring(matrix, gap_open, gap_extend)) == (
        None,
        f"there are no Karlin-Altschul parameters for {reason}",
    )


def test_nucleotide_matrices_with_more_scores_have_none() -> None:
    scores = np.full((4, 4), -3)
    np.fill_diagonal(scores, 2)
    scores[0, 2] = scores[2, 0] = -1
    found, reason = karlin_altschul(make_scoring(SubstitutionMatrix("ts", "ACGT", scores, "dna"), 7, 2))
    assert found is None
    assert reason.startswith(
        "there are no Karlin-Altschul parameters for the matrix 'ts', only for one match and"
    )
    assert (
        karlin_altschul(make_scoring(SubstitutionMatrix("p", "AC", scores[:2, :2], "dna"), 7, 2))[0] is None
    )
