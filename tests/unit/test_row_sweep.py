"""The row schedule against whole matrices, against every alignment there is, and against other programs."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from support.alignment import AlignmentCase, BestAlignment, best_by_enumeration, best_by_gotoh, score_columns
from support.alignment_runs import prepare, swept
from support.alignment_strategies import alignment_cases

from plait.align.aligner import make_aligner
from plait.align.scoring import END_NAMES, free_ends_of, make_scoring
from plait.dp.pairs.rows import row_sweep
from plait.errors import InvalidInput

LETTERS = "ACGT"
SIMPLE = tuple(tuple(2 if a == b else -3 for b in LETTERS) for a in LETTERS)
APART = tuple(tuple(2 if a == b else -99 for b in LETTERS) for a in LETTERS)
UNIT = tuple(tuple(0 if a == b else -1 for b in LETTERS) for a in LETTERS)


def case_of(query: str, target: str, **how: Any) -> AlignmentCase:
    codes = (tuple(LETTERS.index(letter) for letter in sequence) for sequence in (query, target))
    how = {"scores": SIMPLE, "gap_open": 7, "gap_extend": 2} | how
    return AlignmentCase(**dict(zip(("query", "target"), codes, strict=True)), **how)


def drawn(rng: random.Random, shortest: int, longest: int) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(shortest, longest)))


def similar(rng: random.Random, sequence: str) -> str:
    """A sequence with a tenth of its letters changed, left out or put in."""
    parts = []
    for letter in sequence:
        parts.append(
            rng.choice(("", drawn(rng, 1, 1), letter + drawn(rng, 1, 3))) if rng.random() < 0.1 else letter
        )
    return "".join(parts) or "A"


# --- against the definitions ----------------------------------------------------------------------------


@pytest.mark.interpreted
@given(alignment_cases(longest=4, banded=True))
def test_both_definitions_agree(case: AlignmentCase) -> None:
    assert best_by_gotoh(case) == best_by_enumeration(case)


@given(alignment_cases(banded=True, dropped=True))
def test_compiled_rows_are_the_definition(case: AlignmentCase) -> None:
    assert swept(case) == best_by_gotoh(case)


@pytest.mark.interpreted
@given(alignment_cases(longest=8, banded=True, dropped=True))
def test_interpreted_rows_are_the_definition(case: AlignmentCase) -> None:
    assert swept(case, interpreted=True) == best_by_gotoh(case)


@pytest.mark.slow
def test_longer_pairs_with_x_drop_are_the_definition() -> None:
    rng = random.Random(11)
    stopped = 0
    for _ in range(150):
        query = drawn(rng, 10, 40)
        extend = rng.randint(0, 2)
        case = case_of(
            query, similar(rng, query), gap_open=extend + rng.randint(0, 9), gap_extend=extend,
            mode="extension", x_drop=rng.randint(0, 16), band=rng.choice((None, (-5, 4), (0, 9))),
        )  # fmt: skip
        found = swept(case)
        assert found == best_by_gotoh(case)
        stopped += found != swept(dataclasses.replace(case, x_drop=None))
    assert 10 < stopped < 140


@given(alignment_cases(banded=True, dropped=True))
def test_runs_are_as_few_as_can_be(case: AlignmentCase) -> None:
    if swept(case) is not None:
        runs = prepare(case).align().runs
        assert (runs[:, 1] > 0).all()
        assert (runs[1:, 0] != runs[:-1, 0]).all()


@given(alignment_cases(banded=True, dropped=True))
def test_the_score_alone_is_that_of_the_path(case: AlignmentCase) -> None:
    found = swept(case)
    if found is not None:
        assert prepare(case).score() == (found.score, *found.end)
        assert score_columns(case, found.start, found.columns) == found.score


# --- the tie rule, by hand ------------------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("query", "target", "how", "wanted"),
    [
        # A gap moves to the right, where walking back meets it last: the diagonal goes first.
        ("AA", "AAA", {}, (-3, (0, 0), (2, 3), "DMM")),
        ("AAA", "AA", {}, (-3, (0, 0), (3, 2), "IMM")),
        # With nothing to choose between two gaps, walking back meets the target's first.
        ("A", "C", {"gap_open": 1, "gap_extend": 1}, (-2, (0, 0), (1, 1), "ID")),
        # Gaps that reach the first row or column.
        ("AA", "CC", {"scores": APART, "gap_open": 3, "gap_extend": 1}, (-8, (0, 0), (2, 2), "IIDD")),
        ("AA", "CC", {"scores": APART, "gap_open": 3, "gap_extend": 1, "band": (0, 2)},
         (-8, (0, 0), (2, 2), "DDII")),
        # Of equally good ends, the first one of the query, then of the target.
        ("ACGA", "A", {"mode": "local"}, (2, (0, 0), (1, 1), "M")),
        ("A", "CACA", {"mode": "local"}, (2, (0, 1), (1, 2), "M")),
        # The shortest of those that end there: three mismatches cost two matches and a half.
        ("AAACCAA", "AAAGGAA", {"mode": "local"}, (6, (0, 0), (3, 3), "MMM")),
        ("A", "C", {"mode": "local"}, (0, (0, 0), (0, 0), "")),
        # Nothing has a positive score: the first vertex of the band.
        ("AAA", "CCC", {"mode": "local", "band": (2, 3)}, (0, (0, 2), (0, 2), "")),
        ("AAA", "CCC", {"mode": "local", "band": (-3, -2)}, (0, (2, 0), (2, 0), "")),
        ("ACG", "GGGACG", {"mode": "local", "band": (-2, -1)}, (2, (2, 0), (3, 1), "M")),
        ("ACGT", "TTACGTTT", {"mode": "semiglobal", "free_ends": frozenset({"target_start", "target_end"})},
         (8, (0, 2), (4, 6), "MMMM")),
        ("TTACG", "ACGCC", {"mode": "overlap"}, (6, (2, 0), (5, 3), "MMM")),
        ("ACGTTT", "ACGAAA", {"mode": "extension"}, (6, (0, 0), (3, 3), "MMM")),
    ],
)  # fmt: skip
def test_ties(query: str, target: str, how: dict[str, Any], wanted: tuple[Any, ...]) -> None:
    case = case_of(query, target, **how)
    assert best_by_gotoh(case) == BestAlignment(*wanted)
    assert swept(case, interpreted=True) == BestAlignment(*wanted)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("query", "target", "mode", "wanted"),
    [
        ("", "", "global", (0, (0, 0), (0, 0), "")),
        ("", "ACG", "global", (-11, (0, 0), (0, 3), "DDD")),
        ("ACG", "", "global", (-11, (0, 0), (3, 0), "III")),
        ("", "ACG", "local", (0, (0, 0), (0, 0), "")),
        ("ACG", "", "extension", (0, (0, 0), (0, 0), "")),
        # The whole target, then the whole query, are left out.
        ("", "ACG", "overlap", (0, (0, 0), (0, 0), "")),
        ("ACG", "", "overlap", (0, (0, 0), (0, 0), "")),
        ("A", "C", "overlap", (0, (0, 1), (0, 1), "")),
    ],
)
def test_empty_alignments(query: str, target: str, mode: str, wanted: tuple[Any, ...]) -> None:
    case = case_of(query, target, mode=mode)
    assert best_by_gotoh(case) == swept(case, interpreted=True) == BestAlignment(*wanted)


# --- bands and X-drop -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "band", "message"),
    [
        ({}, (-2, 0), "end of an alignment: one with 1 between"),
        ({}, (1, 4), "start of an alignment: one with 0 between"),
        ({}, (3, -3), "-> 3 to -3"),
        ({"mode": "semiglobal", "free_ends": frozenset({"target_start"})}, (2, 9), "end"),
        ({"mode": "overlap"}, (6, 9), "start"),
        ({"mode": "local"}, (6, 9), "between -4 and 5"),
        ({"mode": "local"}, (2, 1), "the lower first"),
        ({"mode": "extension"}, (-3, -1), "start"),
    ],
)
def test_a_band_without_an_alignment_is_refused(
    how: dict[str, Any], band: tuple[int, int], message: str
) -> None:
    case = case_of("ACGT", "ACGTA", band=band, **how)
    assert best_by_gotoh(case) is None
    with pytest.raises(InvalidInput) as caught:
        prepare(case)
    assert caught.value.what == "band"
    assert message.removeprefix("-> ") in str(caught.value)


def test_a_band_bounds_time_and_memory() -> None:
    rng = np.random.default_rng(4)
    query = rng.integers(0, 4, 200_000).astype(np.uint8)
    target = np.concatenate([query[:70_000], query[70_003:]])
    scores = np.array(SIMPLE)
    found = row_sweep(query, target, scores, gap_open=7, gap_extend=2, band=(-8, 8))
    assert found.direction_bytes() <= 200_001 * 17
    path = found.align()
    # Three residues of the query are without a partner.
    assert path.score == 2 * len(target) - 7 - 2 * 2
    assert path.runs[:, 1][path.runs[:, 0] == 2].tolist() == [3]


def test_x_drop_bounds_the_work() -> None:
    rng = np.random.default_rng(5)
    query = rng.integers(0, 4, 30_000).astype(np.uint8)
    target = rng.integers(0, 4, 30_000).astype(np.uint8)
    target[:2_000] = query[:2_000]
    scores = np.array(SIMPLE)
    sweep = row_sweep(
        query, target, scores, gap_open=7, gap_extend=2, free=free_ends_of("extension"), x_drop=40
    )
    path = sweep.align()
    assert path[:5] == (path.score, 0, path.query_end, 0, path.target_end)
    assert path.score >= 4_000
    assert 2_000 <= path.query_end < 2_100
    # Rows that were not visited still have their whole window.
    narrowed = sweep.windows.last - sweep.windows.first + 1 < 30_001
    assert narrowed.sum() < 3_000
    assert (sweep.windows.last - sweep.windows.first)[narrowed].max() < 60


@pytest.mark.interpreted
def test_x_drop_by_hand() -> None:
    # Behind four matches, 8, come three mismatches, -1: more than 8 below the best and dropped.
    case = case_of("ACGTAAAGGGGGGG", "ACGTCCCGGGGGGG", gap_open=30, gap_extend=30, mode="extension")
    for most, score in ((8, 8), (9, 13), (None, 13)):
        found = swept(dataclasses.replace(case, x_drop=most), interpreted=True)
        assert found is not None
        assert found.score == score


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"mode": "sideways"}, "mode"),
        ({"mode": "semiglobal", "free_ends": ("left",)}, "free_ends"),
        ({"x_drop": 5}, "x_drop"),
        ({"mode": "extension", "x_drop": -1}, "x_drop"),
        ({"gap_open": 2**52, "gap_extend": 1}, "scores"),
    ],
)
def test_bad_arguments(how: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        if "gap_open" in how:
            row_sweep(np.zeros(3, np.uint8), np.zeros(3, np.uint8), np.array(SIMPLE), **how)
        make_aligner(make_scoring(), **how)
    assert caught.value.what == what


def test_read_only_codes() -> None:
    codes = np.zeros(5, np.uint8)
    codes.flags.writeable = False
    assert row_sweep(codes, codes, np.array(SIMPLE), gap_open=7, gap_extend=2).score() == (10, 5, 5)


# --- against other programs -----------------------------------------------------------------------------

#: What may be left out in each of parasail's semi-global functions.
FLAVOURS = {
    "nw": (),
    "sg": END_NAMES,
    "sg_qb": ("query_start",),
    "sg_qe": ("query_end",),
    "sg_qx": ("query_start", "query_end"),
    "sg_db": ("target_start",),
    "sg_de": ("target_end",),
    "sg_dx": ("target_start", "target_end"),
    "sg_qb_db": ("query_start", "target_start"),
    "sg_qb_de": ("query_start", "target_end"),
    "sg_qe_db": ("query_end", "target_start"),
    "sg_qe_de": ("query_end", "target_end"),
}


def edge_score(case: AlignmentCase) -> float:
    """Score of the best alignment that ends before the first residue of one sequence."""
    m, n = case.end
    found = [-np.inf]
    for length, start, end in ((m, "query_start", "target_end"), (n, "target_start", "query_end")):
        if case.free(end):
            found.append(0 if case.free(start) else -case.gap_open - (length - 1) * case.gap_extend)
    return max(found)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_semiglobal_scores_are_those_of_parasail(flavour: str) -> None:
    parasail = pytest.importorskip("parasail", reason="parasail is not installed")
    matrix = parasail.matrix_create(LETTERS, 2, -3)
    rng = random.Random(flavour)
    for _ in range(80):
        query = drawn(rng, 1, 40)
        target = rng.choice((drawn(rng, 1, 40), drawn(rng, 0, 9) + similar(rng, query)))
        opened, extend = rng.choice(((7, 2), (3, 3), (1, 0), (4, 1)))
        theirs = getattr(parasail, f"{flavour}_scan_32")(query, target, opened, extend, matrix)
        costs = {"gap_open": opened, "gap_extend": extend}
        free = frozenset(FLAVOURS[flavour])
        case = case_of(query, target, mode="semiglobal", free_ends=free, **costs)
        # In parasail an alignment takes at least one residue of each.
        assert prepare(case).score().score == max(theirs.score, edge_score(case))


def test_local_scores_are_those_of_parasail() -> None:
    parasail = pytest.importorskip("parasail", reason="parasail is not installed")
    matrix = parasail.matrix_create(LETTERS, 2, -3)
    rng = random.Random(1)
    for _ in range(100):
        query = drawn(rng, 1, 60)
        target = drawn(rng, 0, 20) + similar(rng, query)
        theirs = parasail.sw_scan_32(query, target, 7, 2, matrix)
        assert prepare(case_of(query, target, mode="local")).score().score == theirs.score


def biopython_aligner(case: AlignmentCase) -> Any:
    align = pytest.importorskip("Bio.Align", reason="Biopython is not installed")
    aligner = align.PairwiseAligner(match_score=2, mismatch_score=-3)
    aligner.mode = "local" if case.mode == "local" else "global"
    aligner.open_gap_score, aligner.extend_gap_score = -case.gap_open, -case.gap_extend
    # There, a deletion is a residue of the target alone.
    for kind, name in (("deletion", "target"), ("insertion", "query")):
        for side, end in (("left", "start"), ("right", "end")):
            if case.free(f"{name}_{end}"):
                setattr(aligner, f"open_{side}_{kind}_score", 0)
                setattr(aligner, f"extend_{side}_{kind}_score", 0)
    return aligner


@pytest.mark.parametrize("ends", range(16))
def test_all_free_ends_are_those_of_biopython(ends: int) -> None:
    free = frozenset(end for bit, end in enumerate(END_NAMES) if ends >> bit & 1)
    rng = random.Random(ends)
    for _ in range(40):
        query = drawn(rng, 1, 25)
        target = rng.choice((drawn(rng, 1, 25), drawn(rng, 0, 9) + similar(rng, query)))
        case = case_of(query, target, mode="semiglobal", free_ends=free)
        theirs = biopython_aligner(case).score(target, query)
        assert prepare(case).score().score == theirs


def test_local_scores_are_those_of_biopython() -> None:
    rng = random.Random(2)
    for _ in range(60):
        query = drawn(rng, 1, 30)
        case = case_of(query, drawn(rng, 0, 9) + similar(rng, query), mode="local")
        target = "".join(LETTERS[code] for code in case.target)
        assert prepare(case).score().score == biopython_aligner(case).score(target, query)


@pytest.mark.parametrize(
    ("theirs", "free"), [("NW", ()), ("SHW", ("target_end",)), ("HW", ("target_start", "target_end"))]
)
def test_unit_costs_are_those_of_edlib(theirs: str, free: tuple[str, ...]) -> None:
    edlib = pytest.importorskip("edlib", reason="edlib is not installed")
    rng = random.Random(theirs)
    for _ in range(100):
        query = drawn(rng, 1, 50)
        target = rng.choice((drawn(rng, 1, 50), drawn(rng, 0, 9) + similar(rng, query)))
        case = case_of(
            query, target, scores=UNIT, gap_open=1, gap_extend=1, mode="semiglobal", free_ends=frozenset(free)
        )
        found = edlib.align(query, target, mode=theirs)
        # edlib does not end before the first residue of the target.
        assert max(-prepare(case).score().score, 0) == min(
            found["editDistance"], len(query) if free else 10**9
        )
