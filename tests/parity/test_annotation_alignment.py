"""Alignments of reads with alleles: against the general aligner, against all alleles, and as interpreted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.examples import often
from support.germline_matches import read_block

from plait.align import Alignment, align_pairs
from plait.align.scoring import SubstitutionMatrix
from plait.alphabets import MASK_SYMBOL, decode, encode, reverse_complement
from plait.devices.target import resolve
from plait.vdj.germline import load_germline
from plait.vdj.reads.allele_alignment import (
    NOWHERE,
    Parts,
    Paths,
    SegmentIndex,
    Segments,
    find_paths,
    find_segment,
    germline_index,
    score_all,
    score_pairs,
    segments_kernel,
)
from plait.vdj.reads.annotator import GermlineAligner
from plait.vdj.reads.candidates import (
    Candidates,
    Strand,
    VoteLimits,
    plain_score,
    put_planes,
    segment_score,
    settle_text,
    settled_texts,
    texts_of,
    vote_scratch,
    vote_text,
    votes_kernel,
)

SETS = (load_germline("mouse_tra"), load_germline("mouse_trb"))
INDEX = germline_index(SETS)
TARGET = resolve("cpu", 1)


def changed(random: np.random.Generator, sequence: str, rate: float, gaps: float) -> str:
    """A sequence with wrong, unknown, lost and inserted bases."""
    out = []
    for letter in sequence:
        wrong = random.random() < rate
        out.append("ACGTN"[random.integers(5)] if wrong else letter)
        if random.random() < gaps:
            out[-1] = "" if random.random() < 0.5 else out[-1] + "ACGT"[random.integers(4)] * 2
    return "".join(out)


def rearranged(random: np.random.Generator, rate: float, gaps: float, longest: int = 150) -> str:
    """A read of a rearrangement, on either strand."""
    germline = SETS[random.integers(2)]
    v = germline.v[random.integers(len(germline.v))].sequence
    j = germline.j[random.integers(len(germline.j))].sequence
    middle = "".join("ACGT"[k] for k in random.integers(0, 4, random.integers(12)))
    whole = v[: len(v) - random.integers(6)] + middle + j[random.integers(6) :] + "AGGACCTGAAAAACGTGTTC"
    last = len(whole) - int(random.integers(40))
    read = changed(random, whole[max(last - longest, 0) : last], rate, gaps)
    return reverse_complement(read) if random.random() < 0.5 else read


def general(index: SegmentIndex, reads: list[str], alleles: list[str]) -> list[Alignment]:
    scores = index.scoring.scores[1:, 1:]
    matrix = SubstitutionMatrix("sets", MASK_SYMBOL[1:], scores, "dna")
    costs = {"gap_open": index.scoring.gap_open, "gap_extend": index.scoring.gap_extend}
    return align_pairs(reads, alleles, mode="local", matrix=matrix, device="cpu", threads=1, **costs)  # type: ignore[arg-type]


def joined(sequences: list[str]) -> Parts:
    texts = texts_of(read_block(sequences))
    return Parts(texts.codes, texts.starts[:-1].copy(), texts.starts[1:].copy())


def pairs(index: SegmentIndex) -> tuple[list[str], list[str], NDArray[np.int64]]:
    """Reads cut out of alleles and changed, and the numbers of alleles to align them with."""
    random = np.random.default_rng(11)
    reads, numbers = [], []
    for k in range(300):
        number = int(random.integers(len(index.queries)))
        own = decode(index.words.letters[index.words.bounds[number] : index.words.bounds[number + 1]])
        first = int(random.integers(len(own) - 20))
        part = own[first : first + int(random.integers(20, 150))]
        reads.append(changed(random, part, 0.05 * (k % 3), 0.02 * (k % 2)))
        other = random.random() < 0.3
        numbers.append(int(random.integers(len(index.queries))) if other else number)
    bounds = index.words.bounds
    alleles = [decode(index.words.letters[bounds[k] : bounds[k + 1]]) for k in numbers]
    return reads, alleles, np.array(numbers)


def rescored(index: SegmentIndex, read: str, allele: str, paths: Paths, k: int) -> tuple[int, int, int]:
    """Score, end in the read and end in the allele of a path, from its start and its runs."""
    scoring = index.scoring
    a, b = encode(read), encode(allele)
    at, other, score = int(paths.read_start[k]), int(paths.germline_start[k]), 0
    for kind, length in paths.runs.values[paths.runs.starts[k] : paths.runs.starts[k + 1]].tolist():
        if kind == 0:
            score += int(scoring.scores[a[at : at + length], b[other : other + length]].sum())
        else:
            score -= scoring.gap_open + (length - 1) * scoring.gap_extend
        at += 0 if kind == 1 else length
        other += 0 if kind == 2 else length
    return score, at, other


def runs_of(cigar: str) -> list[list[int]]:
    runs: list[list[int]] = []
    for letter, length in zip(*_parts(cigar), strict=True):
        kind = {"=": 0, "X": 0, "D": 1, "I": 2}[letter]
        if runs and runs[-1][0] == kind:
            runs[-1][1] += length
        else:
            runs.append([kind, length])
    return runs


def _parts(cigar: str) -> tuple[list[str], list[int]]:
    letters = [c for c in cigar if not c.isdigit()]
    numbers = "".join(c if c.isdigit() else " " for c in cigar).split()
    return letters, [int(number) for number in numbers]


@pytest.mark.parametrize("name", ["v", "j"])
def test_scores_and_paths_are_those_of_the_general_aligner(name: str) -> None:
    index: SegmentIndex = getattr(INDEX, name)
    reads, alleles, numbers = pairs(index)
    expected = general(index, reads, alleles)
    parts = joined(reads)
    scores = score_pairs(TARGET, index, parts, numbers)
    assert scores.tolist() == [own.score for own in expected]
    some = np.flatnonzero(scores > 0)
    paths = find_paths(TARGET, index, parts.take(some), numbers[some], scores[some])
    gapped = 0
    for k, pair in enumerate(some.tolist()):
        own = expected[pair]
        found = rescored(index, reads[pair], alleles[pair], paths, k)
        assert found == (own.score, paths.read_end[k], paths.germline_end[k])
        runs = paths.runs.values[paths.runs.starts[k] : paths.runs.starts[k + 1]].tolist()
        if len(runs) > 1:
            gapped += 1
            ends = (own.query_start, own.query_end, own.target_start, own.target_end)
            assert runs == runs_of(own.cigar)
            assert ends == tuple(int(column[k]) for column in paths.columns()[:4])
            assert paths.mismatches[k] + paths.matches[k] == own.matches + own.mismatches
    assert gapped > 10


def test_few_pairs_and_all_alleles_score_alike() -> None:
    random = np.random.default_rng(3)
    parts = joined([rearranged(random, 0.02, 0.0) for _ in range(40)])
    for number in range(2):
        own = INDEX.j.of_set(number)
        scores = score_all(TARGET, INDEX.j, number, parts)
        few = [score_all(TARGET, INDEX.j, number, parts.take(np.array([k]))) for k in range(3)]
        assert np.array_equal(np.concatenate(few), scores[:3])
        alleles = np.arange(own.start, own.stop)
        one = score_pairs(TARGET, INDEX.j, parts.take(np.zeros(alleles.size, np.int64)), alleles)
        assert np.array_equal(one, scores[0])


def test_alleles_may_differ_in_the_letters_they_have() -> None:
    j = SETS[0].j[:4]
    texts = (j[0].sequence, j[1].sequence.replace("G", "R"), j[2].sequence.replace("A", "C"), "N" * 40)
    alleles = [replace(own, sequence=text, anchor=None) for own, text in zip(j, texts, strict=True)]
    index = germline_index([replace(SETS[0], j=tuple(alleles))]).j
    reads = [text for text in texts for _ in texts]
    expected = [own.score for own in general(index, reads, list(texts) * len(texts))]
    parts = joined(list(texts))
    numbers = np.tile(np.arange(len(texts)), len(texts))
    for target in (TARGET, resolve("reference")):
        every = np.repeat(np.arange(len(texts)), len(texts))
        assert score_pairs(target, index, parts.take(every), numbers).tolist() == expected
    assert score_all(TARGET, index, 0, parts).ravel().tolist() == expected


@pytest.mark.parametrize(
    ("rate", "gaps", "longest"),
    often(1, [(0.005, 0.0, 150), (0.03, 0.004, 150), (0.1, 0.01, 250), (0.0, 0.0, 1200)]),
    ids=["usual", "changed", "much changed", "whole"],
)
def test_no_allele_is_better_than_those_that_words_find(rate: float, gaps: float, longest: int) -> None:
    random = np.random.default_rng(17)
    reads = read_block([rearranged(random, rate, gaps, longest) for _ in range(250)])
    aligner = GermlineAligner(SETS, device="cpu")
    matches = aligner.align(reads)
    texts = texts_of(matches.reads)
    parts = Parts(texts.codes, texts.starts[:-1].copy(), texts.starts[1:].copy())
    scores = np.concatenate([score_all(TARGET, INDEX.v, number, parts) for number in range(2)], axis=1)
    called = np.flatnonzero(matches.germline >= 0)
    assert called.size > 240
    for k in called.tolist():
        best = int(scores[k].max())
        ties = set(np.flatnonzero(scores[k] == best).tolist())
        first = INDEX.v.offsets[matches.germline[k]]
        own = matches.v.alleles.take(np.array([k])).values + first
        assert matches.v.scores[k] == best
        assert set(own.tolist()) == {a for a in ties if INDEX.v.sets[a] == matches.germline[k]}
        assert own.tolist() == sorted(own.tolist())


@pytest.mark.slow
@pytest.mark.parametrize(
    "cut", often(1, [((100, 150),), ((200, 60),), ((60, 200),)]), ids=["even", "long read", "long mate"]
)
def test_no_allele_is_better_for_a_read_and_its_mate(cut: tuple[int, int]) -> None:
    random = np.random.default_rng(19)
    wholes = [rearranged(random, 0.01, 0.001, 1200) for _ in range(120)]
    reads, mates = (
        read_block([own[: cut[0]] for own in wholes]),
        read_block([own[-cut[1] :] for own in wholes]),
    )
    matches = GermlineAligner(SETS, device="cpu").align(reads, mates)
    assert matches.swapped is not None
    parts = []
    for own, other in ((reads, mates), (mates, reads)):
        texts = texts_of(own)
        taken = np.where(matches.swapped, texts_of(other).sizes, texts.sizes)
        letters = [
            (other if swapped else own).sequence(k) for k, swapped in enumerate(matches.swapped.tolist())
        ]
        turned = [
            reverse_complement(own) if back else own
            for own, back in zip(letters, matches.reversed.tolist(), strict=True)
        ]
        assert [len(own) for own in turned] == taken.tolist()
        parts.append(joined(turned))
    assert np.array_equal(parts[0].codes, texts_of(matches.reads).codes)
    scores, others = (
        np.concatenate([score_all(TARGET, INDEX.v, number, part) for number in range(2)], axis=1)
        for part in parts
    )
    called = np.flatnonzero(matches.germline >= 0)
    assert called.size > 110
    for k in called.tolist():
        own = matches.v.alleles.take(np.array([k])).values
        own = own + INDEX.v.offsets[matches.germline[k]]
        totals = (scores + others)[k]
        assert set(totals[own].tolist()) == {int(totals.max())}
        assert matches.v.scores[k] == scores[k, own[0]]


@pytest.mark.interpreted
def test_votes_as_interpreted() -> None:
    random = np.random.default_rng(7)
    reads = [rearranged(random, 0.03, 0.005, 90) for _ in range(6)]
    texts = texts_of(
        read_block([*reads, "", "ACGT", "N" * 30, "".join("ACGT"[k] for k in random.integers(0, 4, 90))])
    )
    words = INDEX.v.words
    limits = VoteLimits(1, 33, 4, 16, 5, 1, -1, 1)

    def memory() -> tuple[Any, Any]:
        return vote_scratch(INDEX.v, texts.sizes), _room()

    scratch, out = memory()
    reached, used = votes_kernel(words, texts.codes, texts.starts, 0, limits, scratch, out)
    own, expected = memory()
    at = 0
    for text in range(texts.sizes.size):
        first, last = texts.starts[text : text + 2].tolist()
        at = vote_text(words, texts.codes, first, last, text, limits, own, expected, at)
    assert (reached, used) == (texts.sizes.size, at)
    assert at >= 6
    for a, b in zip(out, expected, strict=True):
        assert np.array_equal(a[:at], b[:at])
    assert set(out.texts[:used].tolist()) <= set(range(6))


@pytest.mark.interpreted
def test_planes_score_as_letters_do() -> None:
    random = np.random.default_rng(23)
    words = INDEX.v.words
    scratch = vote_scratch(INDEX.v, np.array([400]))
    for _ in range(60):
        reference = int(random.integers(len(INDEX.v.queries)))
        own = decode(words.letters[words.bounds[reference] : words.bounds[reference + 1]])
        first = int(random.integers(len(own) - 40))
        read = changed(random, own[first : first + int(random.integers(30, 200))], 0.1, 0.0).replace("N", "A")
        texts = texts_of(read_block([read]))
        text = Strand(texts.codes, 0, len(read), 0, True)
        put_planes(words, text, scratch)
        diagonal = first + int(random.integers(-2, 3)) * int(random.integers(20))
        expected = segment_score(words, text, reference, diagonal)
        found, begin, end = plain_score(words, scratch.planes, len(read), reference, diagonal, -1, 0)
        assert max(found, 0) == expected
        pairs = zip(read[begin:end], own[begin + diagonal : end + diagonal], strict=True)
        assert sum(1 if a == b else -1 for a, b in pairs) == expected
        assert plain_score(words, scratch.planes, len(read), reference, diagonal, -1, expected)[0] in (
            found,
            -1,
        )
        assert plain_score(words, scratch.planes, len(read), reference, diagonal, -1, found)[0] == found
        assert plain_score(words, scratch.planes, len(read), reference, diagonal, -1, found + 60)[0] == -1


def _near_j(random: np.random.Generator, number: int) -> str:
    """A part of a read with much of a J, or of several ones, with what aligners are misled by."""
    own = SETS[number].j
    text = "".join("ACGT"[k] for k in random.integers(0, 4, random.integers(30)))
    for _ in range(1 + (random.random() < 0.2)):
        j = own[random.integers(len(own))].sequence
        j = changed(
            random, j[random.integers(12) :], random.choice([0.0, 0.02, 0.1]), random.choice([0, 0.03])
        )
        if random.random() < 0.3:
            # Some bases twice, or not at all.
            first, size = random.integers(len(j)), random.integers(-5, 6)
            j = j[:first] + j[first - abs(size) if size < 0 else first + size :]
        text += j[: len(j) - random.integers(3) * random.integers(20)]
    return text + "GAGGATCTGAGAAAT"[: random.integers(16)]


@pytest.mark.parametrize("number", [0, 1])
def test_settled_texts_are_as_aligned(number: int) -> None:
    random = np.random.default_rng(29 + number)
    parts = joined([_near_j(random, number) for _ in range(1500)])
    found = settled_texts(INDEX.j, number, parts)
    rows = np.flatnonzero(found.scores)
    assert rows.size > 100
    scores = score_all(TARGET, INDEX.j, number, parts)[rows]
    assert np.array_equal(found.scores[rows], scores.max(axis=1))
    assert np.array_equal(found.ties[rows], scores == scores.max(axis=1)[:, None])
    first = found.ties[rows].argmax(axis=1) + INDEX.j.offsets[number]
    told, searched = (
        find_paths(TARGET, INDEX.j, parts.take(rows), first, found.scores[rows], diagonals)
        for diagonals in (found.diagonals[rows], None)
    )
    assert all(np.array_equal(*own) for own in zip(told.columns()[:6], searched.columns()[:6], strict=True))
    assert told.runs.sizes.max() == 1


@pytest.mark.parametrize(("gap_open", "settled"), [(6, True), (5, False)])
def test_nothing_is_settled_where_a_gap_costs_less_than_words(gap_open: int, settled: bool) -> None:
    random = np.random.default_rng(37)
    index = INDEX.j._replace(scoring=INDEX.j.scoring._replace(gap_open=gap_open))
    found = settled_texts(index, 0, joined([_near_j(random, 0) for _ in range(300)]))
    assert found.scores.any() == settled


@pytest.mark.interpreted
def test_texts_settle_as_interpreted() -> None:
    random = np.random.default_rng(31)
    parts = joined([_near_j(random, 1) for _ in range(12)])
    compiled = settled_texts(INDEX.j, 1, parts)
    scratch, own = vote_scratch(INDEX.j, parts.sizes), INDEX.j.of_set(1)
    plainly = compiled._replace(**{name: np.zeros_like(own) for name, own in compiled._asdict().items()})
    limits = VoteLimits(1, 27, 0, 0, 6, 2, -2, 0)
    group = own.start, own.stop, int(np.diff(INDEX.j.words.bounds)[own].max())
    for text in range(12):
        ends = parts.firsts[text], parts.lasts[text]
        settle_text(INDEX.j.near, parts.codes, *ends, group, limits, scratch, plainly, text)
    assert all(np.array_equal(*both) for both in zip(compiled, plainly, strict=True))
    assert 0 < (compiled.scores > 0).sum() < 12


def _room() -> Candidates:
    return Candidates(*np.zeros((6, 4000), np.int64))


def test_votes_go_on_where_there_was_no_room() -> None:
    random = np.random.default_rng(8)
    texts = texts_of(read_block([rearranged(random, 0.02, 0.0) for _ in range(30)]))
    references = len(INDEX.v.queries)
    scratch = vote_scratch(INDEX.v, texts.sizes)
    limits = VoteLimits(1, 33, 4, 16, 5, 1, -1, 0)
    found = []
    for room in (20_000, 2 * references + 5):
        out = Candidates(*np.zeros((6, room), np.int64))
        text, rows = 0, []
        while text < 30:
            text, used = votes_kernel(INDEX.v.words, texts.codes, texts.starts, text, limits, scratch, out)
            rows.append(np.stack([column[:used] for column in out]))
        found.append(np.concatenate(rows, axis=1))
    assert np.array_equal(*found)


@pytest.mark.interpreted
def test_segments_as_interpreted() -> None:
    random = np.random.default_rng(9)
    words = INDEX.j.words
    reads = [changed(random, SETS[1].j[k].sequence[5:40], 0.05, 0.02) for k in range(8)]
    parts = joined(reads)
    alleles = np.arange(8) + INDEX.j.offsets[1]

    def segments(wanted: list[int]) -> Segments:
        starts, ends = np.zeros((2, 8), np.int64)
        nowhere = np.full(8, NOWHERE)
        return Segments(parts.firsts, parts.lasts, alleles, np.array(wanted), nowhere, starts, ends)

    for wanted, backwards in (([12] * 8, 0), ([20] * 8, 1), ([35] * 8, 0)):
        a, b = segments(wanted), segments(wanted)
        segments_kernel(words, parts.codes, 1, backwards, a)
        for pair in range(8):
            find_segment(words, parts.codes, pair, 1, backwards, b)
        for x, y in zip(a, b, strict=True):
            assert np.array_equal(x, y)
    assert (a.starts >= 0).any() and (a.starts < 0).any()
