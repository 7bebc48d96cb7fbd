"""The k best local alignments against their definitions, for every split of the matrix."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.alignment import AlignmentCase, k_best_apart, k_best_disjoint
from support.alignment_solvers import in_columns
from support.examples import examples, often

from plait.align import Alignment, align, batches, local_best, match_mismatch
from plait.align.aligner import make_aligner
from plait.align.scoring import SubstitutionMatrix, make_scoring
from plait.align.settings import SeveralBest
from plait.dp.pairs import kbest
from plait.dp.pairs.tiles import LongPair
from plait.errors import InvalidInput, Unsupported
from plait.lang import compile

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
#: Rows and columns of tiles, cells of which all values are looked at, and bytes of edges.
SPLITS = ((128, 4096, 1 << 20, 1 << 30), (7, 5, 30, 1 << 30), (16, 3, 400, 600), (40, 64, 64, 900))


@pytest.fixture(params=often(2, [(one,) for one in SPLITS]), ids=str)
def split(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cut_into(request.param, monkeypatch)
    yield


def cut_into(split: tuple[int, int, int, int], patch: pytest.MonkeyPatch) -> None:
    rows, columns, seen, limit = split
    patch.setattr(kbest, "_TILE_ROWS", rows)
    patch.setattr(kbest, "_TILE_COLUMNS", columns)
    patch.setattr(kbest, "_SEEN_CELLS", seen)
    patch.setattr(batches, "LongPair", partial(LongPair, checkpoint_limit=limit))


def drawn(rng: random.Random, most: int = 80) -> tuple[AlignmentCase, SubstitutionMatrix]:
    """Two sequences, often alike or repetitive, and a matrix: equal letters, or a random one."""
    size = rng.randint(2, 20)
    letters = LETTERS[:size]
    one = rng.choices(range(size), k=rng.randint(1, most))
    other = rng.choices(range(size), k=rng.randint(1, most))
    kind = rng.randint(0, 3)
    if kind == 1:
        other = [rng.randrange(size) if rng.random() < 0.2 else code for code in one]
    elif kind == 2:
        unit = other[: rng.randint(1, 6)]
        one, other = (unit * 40)[: rng.randint(1, most)], (unit * 40)[: rng.randint(1, most)]
    scores = np.full((size, size), -rng.randint(0, 6)) + np.diag([rng.randint(1, 9)] * size)
    if rng.random() < 0.3:
        scores = np.array([[rng.randint(-6, 7) for _ in letters] for _ in letters])
    matrix = SubstitutionMatrix("drawn", letters, scores, kind="protein")
    extend = rng.randint(0, 3)
    case = AlignmentCase(
        query=tuple(one),
        target=tuple(other),
        scores=tuple(map(tuple, matrix.scores[:size, :size].tolist())),
        gap_open=extend + rng.choice((0, 0, 1, 4, 9)),
        gap_extend=extend,
        mode="local",
    )
    return case, matrix


def found(case: AlignmentCase, matrix: SubstitutionMatrix, asked: SeveralBest, **how: Any) -> list[Alignment]:
    scoring = make_scoring(matrix, case.gap_open, case.gap_extend)
    aligner = make_aligner(scoring, mode="local", **how)
    query, target = ("".join(LETTERS[code] for code in codes) for codes in (case.query, case.target))
    return aligner.best_of_pair(aligner.pair(query, target), asked)


def compare(seed: int, most: int = 80, **how: Any) -> None:
    rng = random.Random(seed)
    case, matrix = drawn(rng, most)
    k, least, apart = rng.randint(1, 12), rng.choice((1, 5, 12)), rng.choice((1, 2, 5, 5, 9))
    ends = found(case, matrix, SeveralBest(most=k, apart=apart, min_score=least), **how)
    assert [in_columns(one) for one in ends] == k_best_apart(case, k, least, apart)
    k = min(k, 5)
    disjoint = found(case, matrix, SeveralBest(most=k, apart=0, min_score=least), **how)
    assert [in_columns(one) for one in disjoint] == k_best_disjoint(case, k, least)


@pytest.mark.slow
@pytest.mark.usefixtures("split")
@pytest.mark.parametrize("threads", often(1, [3, 1]))
def test_splits_find_what_the_definitions_say(threads: int) -> None:
    for seed in range(12):
        compare(seed, threads=threads)


@pytest.mark.slow
@given(st.integers(0, 2**32), st.sampled_from(SPLITS))
@examples(40, deadline=None)
def test_drawn_pairs(seed: int, split: tuple[int, int, int, int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        cut_into(split, patch)
        compare(seed)


@pytest.mark.slow
def test_two_thousand_pairs() -> None:
    for seed in range(2_000):
        with pytest.MonkeyPatch.context() as patch:
            cut_into(SPLITS[seed % len(SPLITS)], patch)
            compare(1_000 + seed)


@pytest.mark.interpreted(alone=True)
def test_reference_finds_what_the_definitions_say() -> None:
    with pytest.MonkeyPatch.context() as patch:
        cut_into(SPLITS[2], patch)
        for seed in range(3):
            compare(seed, 12, device="reference")


def test_example_of_the_literature() -> None:
    """Match 5, mismatch -3, a gap of g residues 8 + g: score 18, ends 11 and 9, 8 columns."""
    matrix = match_mismatch(5, -3, letters="ACGU")
    how: dict[str, Any] = {"matrix": matrix, "gap_open": 9, "gap_extend": 1}
    (best,) = local_best("AAUGCCAUUGCCGG", "CAGCCUCGCUUAG", 1, **how)
    assert (best.score, best.query_end, best.target_end, best.length) == (18, 11, 9, 8)


@pytest.mark.slow
def test_the_first_is_that_of_align() -> None:
    rng = random.Random(5)
    query, target = ("".join(rng.choices("ACGT", k=size)) for size in (700, 900))
    wanted = align(query, target, mode="local")
    assert local_best(query, target, 1, disjoint=True)[0] == wanted
    assert local_best(query, target, 1)[0].score == wanted.score


def test_parts_of_the_matrix_need_no_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Visits of some of the tiles take the code that is kept on disk, as the visit of all does."""
    rng = np.random.default_rng(4)
    query, target = ("".join(rng.choice(list("ACGT"), size)) for size in (300, 900))
    aligner = make_aligner(make_scoring(kind="dna"), mode="local", threads=1, device="cpu")
    batch, asked = aligner.pair(query, target), SeveralBest(most=5, apart=3, min_score=8)
    whole = aligner.best_of_pair(batch, asked)

    def refuse(*given: Any) -> None:
        raise AssertionError("only Numba can call that")

    monkeypatch.setattr(compile._Kernel, "_through_numba", refuse)
    cut_into((16, 64, 1 << 10, 1 << 30), monkeypatch)
    # Several tiles in a visit, and several visits.
    monkeypatch.setattr(kbest, "_SWEPT_PER_KEPT", 1)
    monkeypatch.setattr(kbest, "_VISITED_SIDE", 256)
    assert aligner.best_of_pair(batch, asked) == whole


@pytest.mark.slow
def test_one_letter_in_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell of a repetitive pair is as good as others; few tiles are looked into all the same."""
    looked_into = []
    cells = kbest._cells
    monkeypatch.setattr(kbest, "_cells", lambda *given: looked_into.append(given[2]) or cells(*given))
    monkeypatch.setattr(kbest, "_TILE_COLUMNS", 256)
    monkeypatch.setattr(kbest, "_SEEN_CELLS", 1 << 15)
    found = local_best("A" * 3_000, "A" * 4_000, 50, kind="dna")
    # The end of all, then those along the last row, the earliest column first.
    assert [(one.score, one.target_end) for one in found] == [(6_000, end) for end in range(3_000, 3_250, 5)]
    assert sum(tile.cells for tile in looked_into) < 3_000 * 4_000 / 20
    disjoint = local_best("A" * 300, "A" * 400, 5, disjoint=True, kind="dna")
    assert [one.score for one in disjoint] == [600, 600, 600, 600, 600]
    assert len({one.target_end - one.query_end for one in disjoint}) == 5


def test_nothing_to_find() -> None:
    assert local_best("", "ACGT", 3, kind="dna") == []
    assert local_best("AAAA", "CCCC", 3, kind="dna") == []
    assert local_best("AAAA", "AAAA", 3, min_score=9, kind="dna") == []


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"k": 0}, "best: found 0"),
        ({"apart": 0}, "apart: found 0"),
        ({"min_score": 0}, "min_score: found 0"),
        ({"mode": "global"}, "several alignments of a pair: found mode 'global'"),
        ({"band": 3}, "several alignments of a pair: found a band"),
        ({"k": 2.5}, "best: found 2.5"),
    ],
)
def test_settings_that_cannot_be(given: dict[str, Any], found: str) -> None:
    with pytest.raises(InvalidInput, match=found):
        local_best("ACGT", "ACGT", **{"kind": "dna", **given})


def test_scores_that_are_too_large() -> None:
    matrix = match_mismatch(32_767, -1, letters="ACGT")
    with pytest.raises(Unsupported, match=r"could reach 2\^29"):
        local_best("A" * 20_000, "A" * 20_000, 2, matrix=matrix, gap_open=1, gap_extend=1)
