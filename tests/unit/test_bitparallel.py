"""Bit-parallel recurrences, and their orders: interpreted against compiled, in every width of lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.examples import often

from plait.devices.target import CpuTarget, ReferenceTarget
from plait.dp.bitparallel.launches import (
    ALWAYS,
    EDIT_ENDS,
    MARGIN,
    MISMATCH_STARTS,
    SITE_MATCHES,
    PamSites,
    SiteBatch,
    TextBatch,
    encoded,
    pam_sites,
)
from plait.dp.bitparallel.recurrences import (
    LARGEST_FEW,
    LARGEST_SUM,
    FewMismatches,
    MismatchSum,
    UnitEdits,
    add_four,
    begin_sum,
    cell,
    count_bit,
)
from plait.dp.bitparallel.striped import ErrorLimits
from plait.lang.algebras import BITS, Bits
from plait.mapping.texts import letter_sets

PYTHON = Bits(0, (1 << 200) - 1)


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("size", [4, 8, 12, 20, 64])
def test_sums_of_mismatches_on_python_integers(size: int) -> None:
    rng = np.random.default_rng(size)
    planes = rng.integers(0, 2, (size, 200)) * rng.integers(0, 2, 200)
    words = [int("".join(map(str, row[::-1].tolist())), 2) for row in planes]
    for p, largest, limits in (
        (FewMismatches(), LARGEST_FEW, (0, 1, 6, 7)),
        (MismatchSum(), LARGEST_SUM, (0, 1, 6, 7, 8, 30)),
    ):
        for limit in limits:
            total = begin_sum(p, PYTHON, largest - limit)
            for k in range(0, size, 4):
                total = add_four(p, PYTHON, total, words[k : k + 4])
            passed = [(total[-1] >> lane) & 1 for lane in range(200)]
            assert passed == (planes.sum(axis=0) > limit).astype(int).tolist()


@pytest.mark.interpreted(alone=True)
def test_edit_columns_on_python_integers() -> None:
    rng = np.random.default_rng(2)
    pattern, texts = rng.integers(0, 4, 9), rng.integers(0, 4, (60, 200))
    one, rows = PYTHON.one, [(PYTHON.one, 0)] * 9
    score = [one if (9 >> k) & 1 else 0 for k in range(5)]
    columns = np.tile(np.arange(10), (200, 1))
    for letters in texts:
        right = left = 0
        for i, letter in enumerate(pattern):
            word = sum(1 << lane for lane in np.flatnonzero(letters != letter).tolist())
            up, down, right, left = cell(UnitEdits(), PYTHON, *rows[i], right, left, word)
            rows[i] = up, down
        for k in range(5):
            score[k], right, left = count_bit(UnitEdits(), PYTHON, score[k], right, left)
        new = np.zeros_like(columns)
        for i in range(1, 10):
            step = columns[:, i - 1] + (letters != pattern[i - 1])
            new[:, i] = np.minimum(np.minimum(step, columns[:, i] + 1), new[:, i - 1] + 1)
        columns = new
        found = [sum(((score[k] >> lane) & 1) << k for k in range(5)) for lane in range(200)]
        assert found == columns[:, 9].tolist()


def batch_of(letters: int, seed: int, lanes: int = 0) -> TextBatch:
    rng = np.random.default_rng(seed)
    text = rng.choice(np.frombuffer(b"ACGTN", np.uint8), letters, p=[0.3, 0.2, 0.2, 0.28, 0.02])
    text[: letters // 2] = np.tile(text[:12], letters // 24 + 1)[: letters // 2]
    whole = np.zeros(2 * MARGIN + (letters + 63 & -64), np.uint8)
    whole[MARGIN : MARGIN + letters] = text
    codes = encoded(whole, letter_sets(False))
    patterns, lengths = np.zeros((3, 12), np.uint8), np.array([8, 11, 12])
    for row, size, begin in zip(patterns, lengths, (0, 4, letters - 12), strict=True):
        own = codes[MARGIN + begin : MARGIN + begin + size] & 15
        row[:size] = np.where(own == 0, 15, own)
    return TextBatch(codes, letters, patterns, lengths, np.array([1, 2, 3]), 8, lanes)


def problems(lanes: int, letters: int) -> list[tuple[object, object]]:
    text = batch_of(letters, letters, lanes)
    sites = np.arange(MARGIN, MARGIN + letters - 1, 2)
    limits = (ErrorLimits(0, 0, 3), ErrorLimits(1, 1, 3), ErrorLimits(2, 1, 4))
    return [
        (MISMATCH_STARTS, text),
        (EDIT_ENDS, text),
        *((SITE_MATCHES, SiteBatch(text, sites, onward, own)) for own in limits for onward in (1, -1)),
    ]


def same(one: object, other: object) -> None:
    for a, b in zip(one, other, strict=True):  # type: ignore[call-overload]
        assert np.array_equal(a, b)


def widths(every: int, *more: int) -> Any:
    """One width in every run, and more in `make test-all`; 0 is what the processor computes with."""
    return pytest.mark.parametrize("lanes", [every, *(pytest.param(n, marks=pytest.mark.slow) for n in more)])


@pytest.mark.interpreted
@widths(0, 1, 2)
def test_compiled_as_interpreted(lanes: int) -> None:
    for problem, batch in problems(lanes, 40):
        found = CpuTarget(1).launch(problem, batch)
        same(found, ReferenceTarget().launch(problem, batch))
        assert found[0].size or problem is SITE_MATCHES


@widths(0, 1, 2, 4, 8)
def test_every_width_of_lanes_and_any_threads(lanes: int) -> None:
    for letters in (1500, 13):
        wide = [CpuTarget(1).launch(problem, batch) for problem, batch in problems(0, letters)]
        for target in (CpuTarget(1), CpuTarget(3)):
            for found, (problem, batch) in zip(wide, problems(lanes, letters), strict=True):
                same(found, target.launch(problem, batch))


@pytest.mark.interpreted
@pytest.mark.parametrize("limits", [(0, 4, 9), (7, 1, 2)])
def test_patterns_are_not_given_up_too_early(limits: tuple[int, ...]) -> None:
    rng = np.random.default_rng(limits)
    lengths, letters = np.array([16, 28, 39]), 900
    sets = rng.choice(np.array([1, 2, 4, 8, 15], np.uint8), (3, 39), p=[0.24] * 4 + [0.04])
    text = rng.choice(np.array([1, 2, 4, 8], np.uint8), letters)
    for begin in range(0, letters - 39, 43):
        # As many mismatches as there may be or one more, all in front, all at the end, or anywhere.
        g = int(rng.integers(3))
        text[begin : begin + lengths[g]] = np.minimum(sets[g, : lengths[g]], 8)
        count, where = limits[g] + int(rng.integers(2)), int(rng.integers(3))
        places = (np.arange(lengths[g]), np.arange(lengths[g])[::-1], rng.permutation(lengths[g]))[where]
        at = begin + places[:count]
        text[at] = np.where(text[at] == 1, 2, 1)
    codes = np.full(2 * MARGIN + 960, ALWAYS, np.uint8)
    codes[MARGIN : MARGIN + letters] |= text
    batch = TextBatch(codes, letters, sets, lengths, np.array(limits))
    found = CpuTarget(1).launch(MISMATCH_STARTS, batch)
    same(found, ReferenceTarget().launch(MISMATCH_STARTS, batch))
    padded = codes[MARGIN:] & 15
    for g, (length, limit) in enumerate(zip(lengths.tolist(), limits, strict=True)):
        count = sum((padded[i : i + letters] & sets[g, i] == 0).astype(int) for i in range(length))
        assert np.array_equal(found[1][found[0] == g], np.flatnonzero(count <= limit))
    assert all(np.isin(range(3), found[0]))


def edit_ends(codes: Any, letters: int, sets: Any, limit: int) -> Any:
    """Places of a text where a pattern ends within edits, by the whole matrix."""
    distances = np.zeros(letters + 1, np.int64)
    columns = np.arange(letters + 1)
    for k, own in enumerate(sets, 1):
        new = np.full(letters + 1, k)
        new[1:] = np.minimum(distances[:-1] + (codes[:letters] & own == 0), distances[1:] + 1)
        distances = np.minimum.accumulate(new - columns) + columns
    return np.flatnonzero(distances[1:] <= limit)


@pytest.mark.interpreted
@pytest.mark.parametrize("limit", often(1, [0, 1, 3]))
def test_rows_that_are_not_visited_hold_no_edits_within_the_limit(limit: int) -> None:
    rng = np.random.default_rng(limit)
    lengths, letters = np.array([9, 22, 40, 64]), 3000
    sets = rng.choice(np.array([1, 2, 4, 8], np.uint8), (4, 64))
    sets[3] = np.tile(sets[3, :7], 10)[:64]
    text = rng.choice(np.array([1, 2, 4, 8], np.uint8), letters)
    for begin in range(0, letters - 140, 75):
        # Beginnings, whole patterns and ends, with some letters changed, lacking, or one more.
        own = list(sets[g := int(rng.integers(4)), : lengths[g]])
        own = own[rng.integers(0, 8) if rng.random() < 0.2 else 0 :]
        own = own[: rng.integers(8, 64) if rng.random() < 0.4 else 64]
        for at in rng.integers(0, len(own), int(rng.integers(0, limit + 2))).tolist():
            own[at : at + int(rng.integers(2))] = [rng.choice(own)] * int(rng.integers(2))
        text[begin : begin + len(own)] = own
    codes = np.full(2 * MARGIN + 3008, ALWAYS, np.uint8)
    codes[MARGIN : MARGIN + letters] |= text
    batch = TextBatch(codes, letters, sets, lengths, np.full(4, limit))
    found = CpuTarget(1).launch(EDIT_ENDS, batch)
    for g, length in enumerate(lengths.tolist()):
        expected = edit_ends(text, letters, sets[g, :length], limit)
        assert np.array_equal(found[1][found[0] == g], expected)
        assert expected.size
    # A segment of the text in each bit, few columns each; then more columns, in the interpreter.
    same(found, ReferenceTarget().launch(EDIT_ENDS, batch._replace(lanes=1)))


def test_sites_of_pams() -> None:
    batch = batch_of(700, 4)
    text = batch.codes[MARGIN : MARGIN + 700] & 15
    for pam, mismatches in ((b"\x0f\x08\x08", 0), (b"\x02\x02\x02\x0d", 1), (b"\x01", 0)):
        letters = np.frombuffer(pam, np.uint8)
        want = [
            place
            for place in range(700 - letters.size + 1)
            if ((text[place : place + letters.size] & letters) == 0).sum() <= mismatches
        ]
        for ranges in ([[0, 700 - letters.size]], [[3, 50], [51, 51], [60, 699 - letters.size]], []):
            own = PamSites(letters, mismatches, np.array(ranges, np.int64).reshape(-1, 2))
            inside = [place for place in want if any(low <= place <= high for low, high in ranges)]
            for threads in (1, 2):
                found = pam_sites(batch.codes, own, 1, threads) - MARGIN
                assert found.tolist() == [place + letters.size for place in inside]
            found = pam_sites(batch.codes, own, -1, 1) - MARGIN
            assert found.tolist() == [place - 1 for place in inside]


def test_letters_to_codes() -> None:
    whole = np.zeros(2 * MARGIN + 256, np.uint8)
    whole[MARGIN : MARGIN + 128] = np.arange(128)
    sets = {ord(c): s for c, s in zip("ACGTUacgtu", (1, 4, 8, 2, 2) * 2, strict=True)}
    codes = encoded(whole, letter_sets(False))[MARGIN : MARGIN + 128]
    assert codes.tolist() == [16 | sets.get(k, 0) for k in range(128)]
    codes = encoded(whole, letter_sets(True))[MARGIN : MARGIN + 128]
    assert codes[ord("N")] == 31 and codes[ord("r")] == 25 and codes[ord("-")] == 16
    assert BITS.one == -1
