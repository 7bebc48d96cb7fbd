from __future__ import annotations

import math
import random
import tempfile
from collections import Counter
from itertools import groupby, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import FormatError, InvalidInput
from plait.formats.fastq import ReadBlock
from plait.vdj.clonotypes import umis as umi_consensus
from plait.vdj.clonotypes.umis import ConsensusReads, UmiCollector, UmiCounts, UmiSettings

SIZES = (2000, 9000, 1 << 22)


class Read(NamedTuple):
    umi: str
    letters: str
    scores: tuple[int, ...]
    mate: str = ""
    repertoire: str = ""


class Molecule(NamedTuple):
    name: str
    letters: str
    scores: tuple[int, ...]
    mate: str
    reads: int


def read(umi: str, letters: str, score: int = 30, **columns: str) -> Read:
    return Read(umi, letters, (score,) * len(letters), **columns)


def block(texts: list[str], scores: list[tuple[int, ...]] | None) -> ReadBlock:
    flat = None if scores is None else np.array([x for entry in scores for x in entry], np.uint8)
    starts = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    letters = np.frombuffer("".join(texts).encode(), np.uint8).copy()
    return ReadBlock([f"r{i}" for i in range(len(texts))], letters, starts, flat)


def molecules_in(found: ConsensusReads) -> list[Molecule]:
    reads, mates = found.reads, found.mates
    assert len(found.umis) == len(found.counts) == len(reads)
    return [
        Molecule(
            reads.names[i],
            reads.sequence(i),
            ()
            if reads.qualities is None
            else tuple(reads.qualities[reads.starts[i] : reads.starts[i + 1]].tolist()),
            "" if mates is None else mates.sequence(i),
            int(found.counts[i]),
        )
        for i in range(len(reads))
    ]


def collect(
    reads: list[Read], *, portion: int = 8, mates: bool = False, scored: bool = True, **settings: Any
) -> tuple[list[Molecule], UmiCounts]:
    with (
        tempfile.TemporaryDirectory() as folder,
        UmiCollector(Path(folder) / "reads", UmiSettings(**settings)) as collector,
    ):
        for repertoire, members in groupby(reads, lambda r: r.repertoire):
            part = list(members)
            for start in range(0, len(part), portion):
                some = part[start : start + portion]
                collector.add(
                    block([r.letters for r in some], [r.scores for r in some] if scored else None),
                    block([r.mate for r in some], [(30,) * len(r.mate) for r in some]) if mates else None,
                    [r.umi for r in some],
                    repertoire,
                )
        found = [molecule for part in collector.finish() for molecule in molecules_in(part)]
        return found, collector.counts


def like(one: Read, other: Read, settings: UmiSettings) -> bool:
    pairs = [
        (a, b)
        for a, b, p, q in zip(one.letters, other.letters, one.scores, other.scores, strict=False)
        if min(p, q) >= settings.min_quality and {a, b} <= set("ACGT")
    ]
    pairs += [(a, b) for a, b in zip(one.mate, other.mate, strict=False) if {a, b} <= set("ACGT")]
    sides = min(len(one.letters), len(other.letters)) + min(len(one.mate), len(other.mate))
    different = sum(a != b for a, b in pairs)
    enough = len(pairs) > 0 and 2 * len(pairs) >= sides
    return enough and 1000 * different <= round(1000 * settings.max_mismatch) * len(pairs)


def vote(copies: list[tuple[str, tuple[int, ...]]], cap: int) -> tuple[str, tuple[int, ...]]:
    """Posterior probabilities in plain floating point."""
    length = max(k for k in range(1000) if 2 * sum(len(text) >= k for text, _ in copies) >= len(copies))
    letters, scores = "", []
    for k in range(length):
        sums = dict.fromkeys("ACGT", 0)
        for text, given_scores in copies:
            if k < len(text) and text[k] in sums and given_scores[k] > 1:
                error = 10 ** (-given_scores[k] / 10)
                sums[text[k]] += round(1000 * math.log10(3 * (1 - error) / error))
        best = max(sums, key=lambda c: sums[c])
        rest = [10 ** ((sums[c] - sums[best]) / 1000) for c in sums if c != best]
        unsure = 1.0 in rest
        letters += "N" if unsure else best
        error = sum(rest) / (1 + sum(rest))
        scores.append(0 if unsure else min(cap, round(-10 * math.log10(max(error, 1e-20)))))
    return letters, tuple(scores)


def oracle(reads: list[Read], settings: UmiSettings) -> list[Molecule]:
    """The same, read by read."""
    found = []
    usable = sorted(r for r in reads if r.umi and set(r.umi) <= set("ACGT"))
    for (repertoire, umi), members in groupby(
        sorted(usable, key=lambda r: (r.repertoire, r.umi)), lambda r: (r.repertoire, r.umi)
    ):
        copies = sorted(members, key=lambda r: (r.letters, r.mate, r.scores))
        number = Counter((r.letters, r.mate) for r in copies)
        best = {(r.letters, r.mate): r for r in copies}
        groups: list[tuple[Read, list[Read]]] = []
        for key in sorted(number, key=lambda k: (-number[k], k)):
            same = [r for r in copies if (r.letters, r.mate) == key]
            for seed, joined in groups:
                if like(seed, best[key], settings):
                    joined += same
                    break
            else:
                if len(groups) < settings.max_molecules:
                    groups.append((best[key], same))
        for k, (_, joined) in enumerate(groups):
            if len(joined) >= settings.min_reads:
                letters, scores = vote([(r.letters, r.scores) for r in joined], settings.max_quality)
                mate, _ = vote([(r.mate, (30,) * len(r.mate)) for r in joined], settings.max_quality)
                name = f"{umi}-{k + 1}" if not repertoire else f"{repertoire}:{umi}-{k + 1}"
                found.append(Molecule(name, letters, scores, mate, len(joined)))
    return found


@st.composite
def read_lists(draw: st.DrawFn) -> list[Read]:
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    originals = [
        ("".join(rng.choices("ACGT", k=rng.randrange(1, 40))), "".join(rng.choices("ACGT", k=12)))
        for _ in range(4)
    ]
    umis = ["ACG", "ACT", "TTT", "", "ANA"]
    found = []
    for _ in range(draw(st.integers(0, 50))):
        letters, mate = rng.choice(originals)
        copy = [rng.choice("ACGTN") if rng.random() < 0.03 else c for c in letters]
        copy = copy[: rng.choice([len(copy), len(copy), max(1, len(copy) - 3)])]
        scores = tuple(rng.choices([0, 1, 2, 14, 15, 30, 40], k=len(copy)))
        found.append(Read(rng.choice(umis), "".join(copy), scores, mate, rng.choice(["", "s2"])))
    return found


def assert_same(found: list[Molecule], expected: list[Molecule]) -> None:
    assert [m._replace(scores=()) for m in found] == [m._replace(scores=()) for m in expected]
    for one, other in zip(found, expected, strict=True):
        # A sum on the edge between two scores may be rounded either way.
        assert len(one.scores) == len(other.scores)
        assert all(abs(a - b) <= 1 for a, b in zip(one.scores, other.scores, strict=True))


@pytest.mark.interpreted
@given(read_lists(), st.sampled_from(SIZES), st.integers(1, 20), st.randoms(), st.integers(1, 3))
def test_equal_to_reading_one_by_one(
    reads: list[Read], memory_bytes: int, portion: int, rng: random.Random, few: int
) -> None:
    settings = UmiSettings(min_reads=few, max_molecules=few + 1, memory_bytes=memory_bytes)
    expected = oracle(reads, settings)
    rng.shuffle(reads)
    found, counts = collect(
        reads, portion=portion, mates=True, min_reads=few, max_molecules=few + 1, memory_bytes=memory_bytes
    )
    assert_same(found, expected)
    assert counts.reads == len(reads) == sum(m.reads for m in found) + sum(counts.left_out.values())
    assert counts.molecules == len(found)
    rng.shuffle(reads)
    again, _ = collect(reads, mates=True, min_reads=few, max_molecules=few + 1)
    assert again == found


def test_a_single_read_stays_as_it_is() -> None:
    scores = tuple(range(2, 61))
    letters = "".join(random.Random(1).choices("ACGT", k=len(scores)))
    found, _ = collect([Read("AAA", letters, scores)])
    assert found == [Molecule("AAA-1", letters, scores, "", 1)]


@pytest.mark.interpreted
def test_reads_outvote_an_error() -> None:
    reads = [read("AAA", "ACGTACGTACGTACGTACGT")] * 3
    reads.append(Read("AAA", "ACGTACGTACGTACGTACGA", (30,) * 19 + (10,)))
    (found,), _ = collect(reads)
    assert (found.letters, found.reads, found.scores[0]) == (reads[0].letters, 4, 60)
    (found,), _ = collect(reads[2:], max_quality=93)
    # Evidence of 34.8 decibel against 14.3.
    assert (found.letters, found.scores[0], found.scores[-1]) == (reads[0].letters, 65, 20)


def test_good_reads_outvote_many_bad_ones() -> None:
    bad = [read("AAA", "ACGTACGTACGTACGTACGA", 3)] * 3
    (found,), _ = collect([read("AAA", "ACGTACGTACGTACGTACGT", 40), *bad], min_quality=0)
    assert found.letters[-1] == "T"


@pytest.mark.interpreted
def test_equal_votes_decide_nothing() -> None:
    (found,), _ = collect([read("AAA", "ACGT" * 10), read("AAA", "CCGT" * 1 + "ACGT" * 9)])
    assert found.letters == "N" + ("ACGT" * 10)[1:]
    assert found.scores[0] == 0


@pytest.mark.interpreted
def test_molecules_with_one_umi_are_told_apart() -> None:
    a, b = "ACGTTGCAACGTTGCA", "TTTTCCCCGGGGAAAA"
    found, counts = collect([read("AAA", a), read("AAA", b), read("AAA", a), read("CCC", a)])
    assert [(m.name, m.letters, m.reads) for m in found] == [
        ("AAA-1", a, 2),
        ("AAA-2", b, 1),
        ("CCC-1", a, 1),
    ]
    found, counts = collect([read("AAA", a), read("AAA", b), read("AAA", a)], max_molecules=1)
    assert [(m.name, m.reads) for m in found] == [("AAA-1", 2)]
    assert counts.left_out == {"too_many_molecules": 1}


@pytest.mark.parametrize("memory_bytes", SIZES)
def test_errors_in_umis_are_corrected(memory_bytes: int) -> None:
    text, other = "ACGTTGCAACGTTGCA", "TTTTCCCCGGGGAAAA"
    reads = [read(umi, text, repertoire=name) for name in "ab" for umi in ["AAAA"] * 20 + ["AAAC", "AACC"]]
    reads += [read("AAAG", other), read("AAA", text), read("CCCC", text), read("CCCG", text)]
    random.Random(3).shuffle(reads)
    reads.sort(key=lambda r: r.repertoire)
    found, counts = collect(reads, umi_ratio=10, memory_bytes=memory_bytes)
    assert [(m.name, m.reads) for m in found] == [
        *((name, 1) for name in ("AAA-1", "AAAG-1", "CCCC-1", "CCCG-1")),
        *((f"{name}:{umi}-1", n) for name in "ab" for umi, n in (("AAAA", 21), ("AACC", 1))),
    ]
    assert (counts.corrected_umis, counts.corrected_reads) == (2, 2)
    reads.append(read("AAAG", other, repertoire="b"))
    found, counts = collect(reads, umi_ratio=10, memory_bytes=memory_bytes)
    # A read of another molecule does not join it, whatever its UMI.
    assert [(m.name, m.reads) for m in found][-3:] == [("b:AAAA-1", 21), ("b:AAAA-2", 1), ("b:AACC-1", 1)]
    assert counts.corrected_umis == 3


def test_repertoires_are_kept_apart() -> None:
    reads = [read("AAA", "ACGT", repertoire=name) for name in ("b", "a", "b")]
    found, _ = collect(reads)
    assert [(m.name, m.reads) for m in found] == [("a:AAA-1", 1), ("b:AAA-1", 2)]


@pytest.mark.parametrize("memory_bytes", SIZES)
def test_blocks_depend_on_the_molecules_alone(monkeypatch: pytest.MonkeyPatch, memory_bytes: int) -> None:
    """A run can be resumed block by block."""
    monkeypatch.setattr(umi_consensus, "_BLOCK", 4)
    settings = UmiSettings(memory_bytes=memory_bytes)
    with tempfile.TemporaryDirectory() as folder, UmiCollector(f"{folder}/reads", settings) as collector:
        for name in "ba":
            umis = ["".join(umi) for umi in product("ACG", repeat=2)]
            collector.add(block(["ACGT"] * 9, None), None, umis, name)
        sizes = [(found.repertoire, len(found.reads)) for found in collector.finish()]
    assert sizes == [("a", 4), ("a", 4), ("a", 1), ("b", 3), ("b", 4), ("b", 2)]


def test_reads_without_umi_or_of_small_molecules_are_counted() -> None:
    reads = [read(umi, "ACGT") for umi in ("", "ACN", "AAA", "CCC", "CCC")]
    found, counts = collect(reads, min_reads=2)
    assert [(m.name, m.reads) for m in found] == [("CCC-1", 2)]
    assert counts.left_out == {"ambiguous_umi": 1, "no_umi": 1, "too_few_reads": 1}


@pytest.mark.interpreted
def test_a_consensus_is_as_long_as_half_of_its_reads() -> None:
    text = "ACGTTGCAACGTTGCAGGTT"
    reads = [read("AAA", text[:n]) for n in (20, 18, 15, 12)]
    (found,), _ = collect(reads)
    assert found.letters == text[:18]


def test_without_qualities_there_are_none() -> None:
    (found,), _ = collect([read("AAA", "ACGT")] * 2, scored=False)
    assert found == Molecule("AAA-1", "ACGT", (), "", 2)


def test_no_reads_give_no_molecules() -> None:
    assert collect([])[0] == []
    assert collect([read("", "")])[0] == []


def test_reads_without_bases_are_of_one_molecule_each_sequence() -> None:
    assert collect([read("AAA", ""), read("AAA", "")])[0] == [Molecule("AAA-1", "", (), "", 2)]


def test_wrong_input_is_refused(tmp_path: Path) -> None:
    reads = block(["ACGT"], None)
    with UmiCollector(tmp_path / "reads") as collector:
        with pytest.raises(InvalidInput, match="one for each read"):
            collector.add(reads, None, [])
        collector.add(reads, None, ["AAA"])
        with pytest.raises(InvalidInput, match="mates of all or of none"):
            collector.add(reads, reads, ["AAA"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"min_reads": 0},
        {"max_mismatch": -0.1},
        {"min_quality": 94},
        {"max_quality": 0},
        {"max_molecules": 0},
        {"umi_ratio": 1},
    ],
    ids=lambda entry: next(iter(entry)),
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(settings))):
        UmiSettings(**settings)


def test_damage_on_disk_is_found(tmp_path: Path) -> None:
    with UmiCollector(tmp_path / "reads", UmiSettings(memory_bytes=1)) as collector:
        collector.add(block(["ACGT"], None), None, ["AAA"])
        (path,) = (tmp_path / "reads").glob("*.arrows")
        path.write_bytes(b"")
        with pytest.raises(FormatError, match="damaged"):
            list(collector.finish())
    assert list(tmp_path.iterdir()) == []
