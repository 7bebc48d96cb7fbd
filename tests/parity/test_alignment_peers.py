"""Scores and alignments against other programs: parasail, Biopython, edlib and pyopal.

None of them is needed; what is not installed is skipped. How they break ties is their own affair, so that
their scores are compared, and every alignment of ours is scored anew.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from support.alignment_batches import rescore

from plait.align import align_pairs, load_matrix, match_mismatch, score_many, score_pairs
from plait.align.scoring import END_NAMES, make_scoring

BASES = "ACGT"
RESIDUES = "ARNDCQEGHILKMFPSTWYV"
DNA = match_mismatch(2, -3, letters="ACGTN")
UNIT = match_mismatch(0, -1, letters=BASES)
COSTS = ((7, 2), (3, 3), (5, 0), (12, 1))
#: What may be left out in each of parasail's functions.
FLAVOURS: dict[str, tuple[str, ...]] = {
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


def drawn(rng: random.Random, letters: str, shortest: int, longest: int) -> str:
    return "".join(rng.choices(letters, k=rng.randint(shortest, longest)))


def related(rng: random.Random, sequence: str, letters: str) -> str:
    """Another sequence, or this one with changes, gaps, repeats and something before and behind it."""
    if rng.random() < 0.3:
        return drawn(rng, letters, 1, len(sequence) + 20)
    parts = [letter if rng.random() < 0.9 else rng.choice(letters) for letter in sequence]
    for _ in range(rng.randrange(4)):
        first = rng.randrange(len(parts) + 1)
        last = min(len(parts), first + rng.choice((1, 1, 2, 5, 20)))
        parts[first:last] = rng.choice(([], [], parts[first:last] * 3, list(drawn(rng, letters, 1, 12))))
    return drawn(rng, letters, 0, 9) + "".join(parts) + drawn(rng, letters, 0, 9) or letters[0]


def pairs(seed: Any, count: int, longest: int, letters: str = BASES) -> tuple[list[str], list[str]]:
    rng = random.Random(str(seed))
    queries = [drawn(rng, letters, 1, longest) for _ in range(count)]
    return queries, [related(rng, query, letters) for query in queries]


def checked_scores(queries: list[str], targets: list[str], **how: Any) -> list[int]:
    """Our scores; those of the alignments and of their CIGARs must be the same."""
    scores: list[int] = score_pairs(queries, targets, **how).tolist()
    scoring = make_scoring(how["matrix"], how["gap_open"], how["gap_extend"])
    for query, target, score, found in zip(
        queries, targets, scores, align_pairs(queries, targets, **how), strict=True
    ):
        assert found.score == score
        assert rescore(found, scoring.encode(query), scoring.encode(target), scoring) == score
    return scores


def left_out(free: tuple[str, ...], sizes: tuple[int, int], gap_open: int, gap_extend: int) -> float:
    """Score of the best alignment that ends before the first residue of one sequence."""
    found = [-np.inf]
    for size, start, end in zip(
        sizes, ("query_start", "target_start"), ("target_end", "query_end"), strict=True
    ):
        if end in free:
            found.append(0 if start in free else -gap_open - (size - 1) * gap_extend)
    return max(found)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_parasail_global_and_semiglobal(flavour: str) -> None:
    parasail = pytest.importorskip("parasail", reason="parasail is not installed")
    theirs = getattr(parasail, f"{flavour}_scan_32")
    free = FLAVOURS[flavour]
    how: dict[str, Any] = {"mode": "semiglobal", "free_ends": free} if free else {}
    for letters, matrix, ours in (
        (BASES, parasail.matrix_create(BASES, 2, -3), DNA),
        (RESIDUES, parasail.blosum62, load_matrix("BLOSUM62")),
    ):
        for gap_open, gap_extend in COSTS:
            queries, targets = pairs((flavour, gap_open), 60, 150, letters)
            found = checked_scores(
                queries, targets, matrix=ours, gap_open=gap_open, gap_extend=gap_extend, **how
            )
            for query, target, score in zip(queries, targets, found, strict=True):
                # In parasail an alignment takes at least one residue of each.
                edge = left_out(free, (len(query), len(target)), gap_open, gap_extend)
                assert score == max(theirs(query, target, gap_open, gap_extend, matrix).score, edge)


def test_parasail_local() -> None:
    parasail = pytest.importorskip("parasail", reason="parasail is not installed")
    for letters, matrix, ours in (
        (BASES, parasail.matrix_create(BASES, 2, -3), DNA),
        (RESIDUES, parasail.blosum62, load_matrix("BLOSUM62")),
    ):
        for gap_open, gap_extend in COSTS:
            queries, targets = pairs(gap_open, 250, 200, letters)
            found = checked_scores(
                queries, targets, matrix=ours, gap_open=gap_open, gap_extend=gap_extend, mode="local"
            )
            for query, target, score in zip(queries, targets, found, strict=True):
                assert score == parasail.sw_scan_32(query, target, gap_open, gap_extend, matrix).score


@pytest.mark.parametrize("mode", ["local", "global"])
def test_parasail_against_many(mode: str) -> None:
    parasail = pytest.importorskip("parasail", reason="parasail is not installed")
    theirs = parasail.sw_scan_32 if mode == "local" else parasail.nw_scan_32
    rng = random.Random(mode)
    _, targets = pairs(mode, 700, 300, RESIDUES)
    for query in ("M", drawn(rng, RESIDUES, 60, 60), targets[3] + targets[5], "W" * 40):
        found = score_many(query, targets, mode=mode, matrix="BLOSUM62", gap_open=11, gap_extend=1)  # type: ignore[arg-type]
        assert found.tolist() == [theirs(query, t, 11, 1, parasail.blosum62).score for t in targets]


def biopython(free: tuple[str, ...], gap_open: int, gap_extend: int, local: bool = False) -> Any:
    align = pytest.importorskip("Bio.Align", reason="Biopython is not installed")
    aligner = align.PairwiseAligner(match_score=2, mismatch_score=-3)
    aligner.mode = "local" if local else "global"
    aligner.open_gap_score, aligner.extend_gap_score = -gap_open, -gap_extend
    # There, a deletion is a residue of the target alone.
    for kind, name in (("deletion", "target"), ("insertion", "query")):
        for side, end in (("left", "start"), ("right", "end")):
            if f"{name}_{end}" in free:
                setattr(aligner, f"open_{side}_{kind}_score", 0)
                setattr(aligner, f"extend_{side}_{kind}_score", 0)
    return aligner


@pytest.mark.parametrize("ends", range(16))
def test_biopython_with_all_free_ends(ends: int) -> None:
    free = tuple(end for bit, end in enumerate(END_NAMES) if ends >> bit & 1)
    for gap_open, gap_extend in COSTS:
        if free and gap_open == gap_extend:
            # For linear gaps Biopython takes another algorithm, which may leave out the ends of both.
            continue
        aligner = biopython(free, gap_open, gap_extend)
        queries, targets = pairs((ends, gap_open), 50, 90)
        costs = {"gap_open": gap_open, "gap_extend": gap_extend}
        found = checked_scores(queries, targets, matrix=DNA, mode="semiglobal", free_ends=free, **costs)
        assert found == [aligner.score(t, q) for q, t in zip(queries, targets, strict=True)]


def test_biopython_local() -> None:
    for gap_open, gap_extend in COSTS:
        aligner = biopython((), gap_open, gap_extend, local=True)
        queries, targets = pairs(gap_open, 150, 120)
        found = checked_scores(
            queries, targets, matrix=DNA, gap_open=gap_open, gap_extend=gap_extend, mode="local"
        )
        assert found == [aligner.score(t, q) for q, t in zip(queries, targets, strict=True)]


@pytest.mark.parametrize(
    ("theirs", "free"), [("NW", ()), ("SHW", ("target_end",)), ("HW", ("target_start", "target_end"))]
)
def test_edlib_unit_costs(theirs: str, free: tuple[str, ...]) -> None:
    edlib = pytest.importorskip("edlib", reason="edlib is not installed")
    for longest, count in ((40, 600), (700, 60), (3000, 4)):
        queries, targets = pairs((theirs, longest), count, longest)
        how: dict[str, Any] = {"mode": "semiglobal", "free_ends": free} if free else {}
        found = checked_scores(queries, targets, matrix=UNIT, gap_open=1, gap_extend=1, **how)
        for query, target, score in zip(queries, targets, found, strict=True):
            distance = edlib.align(query, target, mode=theirs)["editDistance"]
            # edlib does not end before the first residue of the target.
            assert -score == (min(distance, len(query)) if free else distance)


@pytest.mark.parametrize(
    ("theirs", "mode"), [("sw", "local"), ("nw", "global"), ("hw", "semiglobal"), ("ov", "overlap")]
)
def test_pyopal_against_many(theirs: str, mode: str) -> None:
    pyopal = pytest.importorskip("pyopal", reason="pyopal is not installed")
    _, targets = pairs(mode, 600, 250, RESIDUES)
    database = pyopal.Database(targets)
    for gap_open, gap_extend in ((11, 1), (4, 4), (4, 3)):
        aligner = pyopal.Aligner("BLOSUM62", gap_open=gap_open, gap_extend=gap_extend)
        for query in (targets[1], targets[7] + targets[2] + targets[3], "MKV"):
            # Linear gaps in 16 bits, of which the parity matrix has some, would be two kernels more.
            wide = mode == "overlap" or (mode == "local" and query != "MKV")
            if gap_open == gap_extend and wide:
                continue
            results = aligner.align(query, database, algorithm=theirs)
            wanted = [0] * len(targets)
            for result in results:
                wanted[result.target_index] = result.score
            costs = {"gap_open": gap_open, "gap_extend": gap_extend}
            found = score_many(query, targets, mode=mode, matrix="BLOSUM62", **costs)  # type: ignore[arg-type]
            # In Opal, an overlap takes at least one residue of each.
            assert [max(score, 0) if mode == "overlap" else score for score in wanted] == found.tolist()
