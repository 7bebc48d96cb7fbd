"""Merging of mates: compiled and interpreted code against the model, place by place, and hand-made pairs."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plait.errors import InvalidInput
from plait.formats.fastq import ReadBlock
from plait.vdj.reads import mates as mates_module
from plait.vdj.reads import mates as overlap_kernels
from plait.vdj.reads.mates import MergedReads, count_other, merge_mates

OPPOSITE = dict(zip("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN", strict=True))
MEMBERS = {
    **{base: base for base in "ACGT"},
    **{"R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC"},
    **{"B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT"},
}
Mate = tuple[str, Sequence[int]]


def opposite(sequence: str) -> str:
    return "".join(OPPOSITE[letter] for letter in reversed(sequence))


def block(mates: Sequence[Mate], *, qualities: bool = True) -> ReadBlock:
    lengths = [len(sequence) for sequence, _ in mates]
    return ReadBlock(
        [f"r{i}" for i in range(len(mates))],
        np.frombuffer("".join(sequence for sequence, _ in mates).encode(), np.uint8),
        np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))),
        np.array([q for _, given in mates for q in given], np.uint8) if qualities else None,
    )


def even(sequence: str, quality: int = 30) -> Mate:
    return sequence, [quality] * len(sequence)


def merged_one(first: Mate, second: Mate, **options: float) -> tuple[str, list[int], MergedReads]:
    merged = merge_mates(block([first]), block([second]), **options)  # type: ignore[arg-type]
    assert merged.reads.qualities is not None
    return merged.reads.sequence(0), merged.reads.qualities.tolist(), merged


def drawn(length: int, seed: int = 0, letters: str = "ACGT") -> str:
    return "".join(random.Random(seed).choices(letters, k=length))


# --- the model ------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    merged: bool
    ambiguous: bool
    sequence: str
    qualities: list[int]


def trusted(letter: str, quality: int) -> float:
    return 0.75 if len(MEMBERS[letter]) > 1 else min(0.75, 10 ** (-quality / 10))


def agree(a: str, b: str) -> bool:
    return bool(set(MEMBERS[a]) & set(MEMBERS[b]))


def gain(a: tuple[str, int], b: tuple[str, int]) -> float:
    p, q = trusted(*a), trusted(*b)
    same = (1 - p) * (1 - q) + p * q / 3
    return math.log(same / 0.25) if agree(a[0], b[0]) else math.log((1 - same) / 0.75)


def consensus(a: tuple[str, int], b: tuple[str, int]) -> tuple[str, int]:
    p, q = trusted(*a), trusted(*b)
    same = agree(a[0], b[0])
    error = p * q / 3 / (1 - p - q + 4 * p * q / 3)
    letter = a[0] if len(MEMBERS[a[0]]) <= len(MEMBERS[b[0]]) else b[0]
    if not same:
        error = min(p, q) * (1 - max(p, q) / 3) / (p + q - 4 * p * q / 3)
        letter = a[0] if p <= q else b[0]
    scores = [0 if len(MEMBERS[x]) > 1 else quality for x, quality in (a, b)]
    return letter, min(round(-10 * math.log10(error)), max(41, *scores))


def answer(first: Mate, second: Mate, min_overlap: int, max_mismatch: float) -> Answer:
    """What the documentation of `plait.vdj.reads.mates` says, word for word."""
    a = list(zip(*first, strict=True))
    b = list(zip(opposite(second[0]), reversed(second[1]), strict=True))
    gains = {}
    for shift in range(-len(b), len(a) + 1):
        places = [(a[i], b[i - shift]) for i in range(max(0, shift), min(len(a), len(b) + shift))]
        differing = sum(not agree(x[0], y[0]) for x, y in places)
        if len(places) >= min_overlap and differing <= int(max_mismatch * len(places)):
            gains[shift] = sum(gain(x, y) for x, y in places)
    shifts = len(a) + len(b) - 2 * min_overlap + 1
    kept = Answer(False, False, first[0], list(first[1]))
    if not gains:
        return kept
    best = max(gains, key=gains.__getitem__)
    if gains[best] < math.log(shifts / 1e-4):
        return kept
    if any(other > gains[best] / 2 for shift, other in gains.items() if shift != best):
        return kept._replace(ambiguous=True)
    out = []
    for i in range(best + len(b)):
        if i >= len(a):
            out.append(b[i - best])
        else:
            out.append(consensus(a[i], b[i - best]) if i >= best else a[i])
    return Answer(True, False, "".join(x for x, _ in out), [q for _, q in out])


LETTERS = st.sampled_from(["ACGT", "ACGT", "AC", "ACGTN", "ACGTRYSWKMBDHVN"])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Mate, Mate]:
    """Mates of a molecule, with adapters where it is short, errors and qualities that need not fit."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    letters = draw(LETTERS)
    molecule = "".join(rng.choices(letters, k=draw(st.integers(0, 60))))
    mates = []
    for strand in (molecule, opposite(molecule)):
        length = draw(st.integers(0, 45))
        read = (strand + "".join(rng.choices("ACGT", k=45)))[:length]
        rate = draw(st.sampled_from([0, 0.02, 0.3]))
        read = "".join(rng.choice(letters) if rng.random() < rate else base for base in read)
        best = draw(st.sampled_from([2, 41, 93]))
        mates.append((read, [rng.randint(0, best) for _ in read]))
    return mates[0], mates[1]


@pytest.fixture(
    params=["compiled", pytest.param("interpreted", marks=pytest.mark.interpreted)], scope="module"
)
def kernel(request: pytest.FixtureRequest) -> object:
    found = overlap_kernels.merge_pairs_kernel
    return getattr(found, "py_func", found) if request.param == "interpreted" else found


@given(st.lists(pairs(), min_size=1, max_size=4), st.integers(1, 15), st.sampled_from([0, 0.2, 0.5]))
def test_any_pairs_are_merged_as_the_model_says(
    kernel: object, given_pairs: list[tuple[Mate, Mate]], min_overlap: int, max_mismatch: float
) -> None:
    firsts, seconds = zip(*given_pairs, strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mates_module, "merge_pairs_kernel", kernel)
        merged = merge_mates(
            block(firsts), block(seconds), min_overlap=min_overlap, max_mismatch=max_mismatch
        )
    starts, qualities = merged.reads.starts, merged.reads.qualities
    others, other_qualities = merged.others, merged.others.qualities
    assert qualities is not None and other_qualities is not None
    for i, (first, second) in enumerate(given_pairs):
        found = Answer(
            bool(merged.merged[i]),
            bool(merged.ambiguous[i]),
            merged.reads.sequence(i),
            qualities[starts[i] : starts[i + 1]].tolist(),
        )
        assert found == answer(first, second, min_overlap, max_mismatch)
        rest = others.sequence(i), other_qualities[others.starts[i] : others.starts[i + 1]].tolist()
        assert rest == (("", []) if found.merged else (opposite(second[0]), list(second[1])[::-1]))


@pytest.mark.interpreted
@given(st.integers(0, 150), st.integers(0, 150), st.integers(0, 2**32), st.integers(0, 200))
def test_differing_places_are_counted_in_groups_of_lanes(x: int, y: int, seed: int, most: int) -> None:
    size = 150 - max(x, y)
    bits = np.zeros((3, 300), np.uint8)
    bits[:2, :150] = np.random.default_rng(seed).choice([1, 2, 4, 8, 15], (2, 150))
    bits[:2, 150:] = 255
    bits[:2, 150 + 64 :] = 0
    shorter = bits.copy()
    shorter[0, x + size : x + size + 64] = shorter[1, y + size : y + size + 64] = 255
    wanted = int(((bits[0, x : x + size] & bits[1, y : y + size]) == 0).sum())
    found = count_other(mates_module._LANES, shorter, x, y, size, most)
    assert found == wanted if wanted <= most else found > most


# --- what users see -------------------------------------------------------------------------------------


@given(st.integers(20, 250), st.integers(12, 120), st.integers(0, 2**32))
@example(insert=20, length=120, seed=1)
@example(insert=120, length=120, seed=1)
def test_mates_without_errors_give_the_molecule(insert: int, length: int, seed: int) -> None:
    molecule, adapters = drawn(insert, seed), drawn(2 * length, seed + 1)
    first = (molecule + adapters[:length])[:length]
    second = (opposite(molecule) + adapters[length:])[:length]
    sequence, _, merged = merged_one(even(first, 37), even(second, 37))
    overlap = min(insert, length) - max(0, insert - length)
    assert merged.merged[0] == (overlap >= 14) or 12 <= overlap < 14
    if merged.merged[0]:
        assert sequence == molecule
        assert merged.overlap[0] == overlap and merged.disagreements[0] == 0
        assert merged.others.sequence(0) == ""
    else:
        assert (sequence, merged.others.sequence(0)) == (first, opposite(second))


def test_the_better_base_wins_and_its_quality_falls() -> None:
    molecule = drawn(60)
    wrong = "C" if molecule[30] != "C" else "G"
    first, second = list(molecule), list(opposite(molecule))
    second[29] = OPPOSITE[wrong]
    low, high = [30] * 60, [30] * 60
    low[29], high[30] = 10, 35
    sequence, qualities, merged = merged_one(("".join(first), high), ("".join(second), low))
    assert sequence == molecule
    # 10^-3.5 (1 - 0.1 / 3) / (10^-3.5 + 0.1 - ...): the posterior of Edgar and Flyvbjerg.
    assert qualities[30] == 25 and merged.disagreements[0] == 1
    assert set(qualities[:30] + qualities[31:]) == {41}
    sequence, qualities, _ = merged_one(("".join(first), low[::-1]), ("".join(second), high[::-1]))
    assert sequence == molecule[:30] + wrong + molecule[31:]


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        (("A", 30), ("A", 2), ("A", 32)),
        (("A", 2), ("A", 2), ("A", 3)),
        (("A", 40), ("A", 40), ("A", 41)),
        (("A", 60), ("A", 40), ("A", 60)),
        (("A", 0), ("C", 30), ("C", 30)),
        (("A", 30), ("C", 30), ("A", 3)),
        (("N", 30), ("C", 20), ("C", 20)),
        (("R", 30), ("C", 20), ("C", 20)),
        (("R", 2), ("A", 20), ("A", 20)),
        (("N", 2), ("N", 2), ("N", 1)),
    ],
)
def test_consensus_of_two_bases(
    first: tuple[str, int], second: tuple[str, int], wanted: tuple[str, int]
) -> None:
    before, after = drawn(25), drawn(25, 1)
    a = before + first[0] + after, [30] * 25 + [first[1]] + [30] * 25
    b = opposite(before + second[0] + after), [30] * 25 + [second[1]] + [30] * 25
    sequence, qualities, merged = merged_one(a, b)
    assert merged.merged[0] and (sequence[25], qualities[25]) == wanted


def test_repeats_are_not_merged() -> None:
    for unit in ("A", "CA", "CAGCAGT"):
        repeat = (unit * 60)[:60]
        sequence, _, merged = merged_one(even(repeat), even(opposite(repeat)))
        assert not merged.merged[0] and merged.ambiguous[0]
        assert (sequence, merged.others.sequence(0)) == (repeat, repeat)
    # A repeat beside something else does no harm.
    molecule = drawn(40) + "CA" * 20
    sequence, _, merged = merged_one(even(molecule), even(opposite(molecule)))
    assert merged.merged[0] and sequence == molecule


def test_low_qualities_count_for_less() -> None:
    molecule = drawn(60)
    first, second = molecule[:36], opposite(molecule[24:])
    assert merged_one(even(first), even(second))[2].merged[0]
    assert not merged_one(even(first, 5), even(second, 5))[2].merged[0]


def test_limits_are_obeyed() -> None:
    molecule = drawn(100)
    first, second = even(molecule[:60]), even(opposite(molecule[40:]))
    assert merged_one(first, second, min_overlap=20)[2].merged[0]
    assert not merged_one(first, second, min_overlap=21)[2].merged[0]
    wrong = "".join(OPPOSITE[x] if i == 45 else x for i, x in enumerate(molecule))
    first = even(wrong[:60])
    assert merged_one(first, second, max_mismatch=0.05)[2].merged[0]
    assert not merged_one(first, second, max_mismatch=0.04)[2].merged[0]


def test_unrelated_reads_are_not_merged() -> None:
    rng = np.random.default_rng(3)
    letters = np.frombuffer(b"ACGT", np.uint8)
    starts = np.arange(20_001) * 150
    first, second = (
        ReadBlock(
            [""] * 20_000, letters[rng.integers(0, 4, 3_000_000)], starts, np.full(3_000_000, 38, np.uint8)
        )
        for _ in range(2)
    )
    merged = merge_mates(first, second)
    assert merged.merged.sum() <= 2
    assert (merged.reads.letters == first.letters).mean() > 0.999


def test_reads_without_qualities() -> None:
    molecule = drawn(60)
    wrong = molecule[:30] + OPPOSITE[molecule[30]] + molecule[31:]
    plain, other = block([even(molecule)], qualities=False), block([even(opposite(wrong))], qualities=False)
    merged = merge_mates(plain, other)
    assert merged.reads.qualities is None and merged.others.qualities is None
    assert merged.reads.sequence(0) == molecule[:30] + "N" + molecule[31:]
    merged = merge_mates(block([even(molecule, 20)]), other)
    assert merged.reads.sequence(0) == wrong and merged.reads.qualities is not None


def test_results_do_not_depend_on_what_else_is_in_the_block() -> None:
    rng = random.Random(8)
    given_pairs = []
    for _ in range(40):
        molecule = drawn(rng.randint(0, 90), rng.randint(0, 2**30))
        given_pairs.append((even(molecule[:50]), even(opposite(molecule)[:50])))
    firsts, seconds = zip(*given_pairs, strict=True)
    together = merge_mates(block(firsts), block(seconds))
    for i, (first, second) in enumerate(given_pairs):
        alone = merge_mates(block([first]), block([second]))
        assert alone.reads.sequence(0) == together.reads.sequence(i)
        assert alone.merged[0] == together.merged[i]
        assert alone.overlap[0] == together.overlap[i]


def test_nothing_to_merge() -> None:
    merged = merge_mates(block([]), block([]))
    assert len(merged.reads) == len(merged.others) == merged.merged.size == 0
    sequence, _, merged = merged_one(even(""), even("ACGT"))
    assert (sequence, merged.others.sequence(0), bool(merged.merged[0])) == ("", "ACGT", False)


def test_wrong_arguments_are_said() -> None:
    one = block([even("ACGT")])
    with pytest.raises(InvalidInput, match="mates: found 0 for 1 reads"):
        merge_mates(one, block([]))
    with pytest.raises(InvalidInput, match="min_overlap: found 0"):
        merge_mates(one, one, min_overlap=0)
    with pytest.raises(InvalidInput, match=r"max_mismatch: found 1\.5"):
        merge_mates(one, one, max_mismatch=1.5)
