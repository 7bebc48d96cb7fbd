"""Folding with Turner's parameters: against ViennaRNA's answers, and against itself."""

from __future__ import annotations

import itertools
import json
import random
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.examples import often
from support.folding import structures

from plait.devices.target import resolve
from plait.dp.intervals import launches
from plait.dp.intervals.loops import BEYOND
from plait.errors import FormatError, InvalidInput, Unsupported
from plait.folding import (
    FoldSettings,
    Model,
    Parameters,
    Restraints,
    evaluate,
    folds,
    mfe,
    partition,
    sample,
    suboptimal,
)
from plait.folding.constraints import Molecule
from plait.folding.drawing import Drawn, dots_svg, layout, mountain_svg, overlaps, page, structure_svg
from plait.folding.folds import EnsembleRequest, _sums, codes_checked, energies_of
from plait.folding.inputs import Given, Inputs, Records
from plait.folding.structures import PairTable, brackets, described, most_expected_accuracy, partners_of

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "folding.json").read_text())
RESTRAINED = json.loads((Path(__file__).parents[1] / "golden" / "folding_known.json").read_text())
TRNA = "GCGGAUUUAGCUCAGUUGGGAGAGCGCCAGACUGAAGAUCUGGAGGUCCUGUGUUCGAUCCACAGAAUUCGCACCA"
#: Sequence, structure, energy and energy of the ensemble.
KNOWN = [
    ("GGGGAAAACCCC", "((((....))))", -5.40, -5.507422),
    ("GGGAAACCC", "(((...)))", -1.20, -1.619196),
    ("GGGAAAUCCCAGGGAAAUCCC", "(((....))).(((....)))", -6.90, -7.210546),
    (
        TRNA,
        "(((((((..((((........)))).(((((.......))))).....(((((.......))))))))))))....",
        -22.40,
        -24.127302,
    ),
    ("ACGU", "....", 0.00, 0.0),
]


def settings(dangles: int = 2, **more: Any) -> FoldSettings:
    return FoldSettings(Model(Parameters.standard(), dangles=dangles), **more)


@pytest.mark.parametrize(("sequence", "structure", "energy", "ensemble"), KNOWN)
def test_known_folds(sequence: str, structure: str, energy: float, ensemble: float) -> None:
    found = partition([sequence])[0]
    assert (found.structure, found.energy) == (structure, pytest.approx(energy, abs=1e-9))
    assert found.ensemble_energy == pytest.approx(ensemble, abs=2e-6)


@pytest.mark.parametrize("dangles", often(1, [0, 2]))
def test_energies_are_those_of_viennarna(dangles: int) -> None:
    golden = [one for one in GOLDEN if one["dangles"] == dangles]
    assert len(golden) > 30
    found = partition([one["sequence"] for one in golden], settings(dangles))
    for one, ours in zip(golden, found, strict=True):
        assert ours.energy == pytest.approx(one["energy"], abs=1e-6)
        assert ours.ensemble_energy == pytest.approx(one["ensemble"], abs=1e-5)
        model = settings(dangles).model
        for structure in (ours.structure, one["structure"]):
            energy = sum(loop.energy for loop in evaluate(one["sequence"], structure, model))
            assert energy == pytest.approx(one["energy"], abs=1e-6)
        if "pairs" in one:
            table = {
                (i + 1, j + 1): p
                for (i, j), p in zip(ours.table.pairs.tolist(), ours.table.probabilities, strict=True)
            }
            for i, j, p in one["pairs"]:
                assert table.get((i, j), 0) == pytest.approx(p, abs=1e-9)
            assert sum(p > 0.01 for p in table.values()) == len(one["pairs"])
            assert ours.diversity == pytest.approx(one["diversity"], abs=1e-6)
            assert ours.centroid()[0] == one["centroid"]
            assert ours.most_expected_accuracy()[0] == one["mea"]


def test_order_grouping_and_threads_change_nothing() -> None:
    sequences = [one["sequence"] for one in GOLDEN if one["dangles"] == 2]
    found = mfe(sequences, threads=1)
    backwards = mfe(sequences[::-1], threads=2)
    assert backwards.structures[::-1] == found.structures
    assert backwards.energies[::-1].tolist() == found.energies.tolist()
    for k in (0, 30, 60):
        alone = mfe([sequences[k]])
        assert (alone.structures, alone.energies) == ([found.structures[k]], [found.energies[k]])


def test_stretches_of_many_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(11)
    sequences = ["".join(draw.choices("ACGU", k=draw.randint(0, 40))) for _ in range(23)]
    expected = mfe(sequences, threads=1), partition(sequences, samples=2, seed=3, threads=1)
    monkeypatch.setattr(folds, "_STRETCH", 3)
    found = mfe(sequences, threads=3), partition(sequences, samples=2, seed=3, threads=3)
    assert found[0].structures == expected[0].structures
    assert found[0].energies.tolist() == expected[0].energies.tolist()
    for one, other in zip(found[1], expected[1], strict=True):
        assert one.samples == other.samples
        assert one.table.probabilities.tolist() == other.table.probabilities.tolist()
    with pytest.raises(InvalidInput, match="sequence 1: found 'é' at base 4"):
        mfe(["GGGéCCC"])
    wide = mfe(sequences, FoldSettings(max_span=10**20), threads=1)
    assert wide.structures == expected[0].structures
    with pytest.raises(InvalidInput, match="sequence 19: found 'X' at base 2"):
        mfe([*sequences[:18], "AXC", *sequences[18:], "Z"], threads=3)


def test_threads_take_long_sequences_of_many_scales() -> None:
    draw = random.Random(12)
    sequences = ["".join(draw.choices(letters, k=310)) for letters in ("ACGU", "AACGU", "GGCCAU", "A")]
    sequences += ["", "GGGAAACCC"]
    for one, other in zip(partition(sequences, threads=1), partition(sequences, threads=3), strict=True):
        assert one.ensemble_energy == other.ensemble_energy
        assert one.table.pairs.tolist() == other.table.pairs.tolist()
        assert one.table.probabilities.tolist() == other.table.probabilities.tolist()


def test_the_definition_gives_the_same() -> None:
    sequences = ["GGGAAACCC", "", "A", "GGGAAAUCCCAGGGAAAUCCC"]
    found, plain = mfe(sequences), mfe(sequences, device="reference")
    assert found.structures == plain.structures
    assert found.energies.tolist() == plain.energies.tolist()


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.folding.folds.free_bytes", lambda: 5_000_000)
    assert len(mfe(["ACGU"]).structures) == 1
    with pytest.raises(Unsupported, match=r"a sequence of 2,000 bases.*bytes of memory, 5,000,000 are free"):
        mfe(["ACGU", "A" * 2000])
    assert len(sample(["ACGU"], samples=9000)[0]) == 9000
    with pytest.raises(Unsupported, match=r"30,000 samples of a sequence of 4 bases"):
        sample(["ACGU"], samples=30_000)


def test_letters() -> None:
    assert mfe(["gggaaaccc", "GGGAAACCC", "NNNN", "", "GGGNNNNCCC", "TGGGAAACCCT"]).structures == [
        "(((...)))",
        "(((...)))",
        "....",
        "",
        "(((....)))",
        ".(((...))).",
    ]
    with pytest.raises(InvalidInput, match="sequence 2: found 'X' at base 3"):
        mfe(["ACGU", "ACX"])
    with pytest.raises(InvalidInput, match="at most 32,000"):
        mfe(["A" * 32_001])


def test_wrong_requests() -> None:
    for ask, told in (
        (lambda: mfe("GGGAAACCC"), "sequences: found one str, expected several"),
        (lambda: partition("GGGAAACCC"), "sequences: found one str"),
        (lambda: suboptimal("GGGAAACCC", within=1.0), "sequences: found one str"),
        (lambda: partition(["GGGAAACCC"], samples=-1), "samples: found -1"),
        (lambda: partition(["GGGAAACCC"], samples=1, seed=-1), "seed: found -1"),
        (lambda: FoldSettings(max_span=0), "max_span: found 0"),
        (lambda: FoldSettings(slope=float("nan")), "slope: found nan"),
        (lambda: FoldSettings(intercept=float("inf")), "intercept: found inf"),
    ):
        with pytest.raises(InvalidInput, match=told):
            ask()


def test_the_best_of_all_structures() -> None:
    sequence = "GGCGAAAGCAGCC"
    energies = {}
    for pairs in structures(sequence):
        partners = np.full(len(sequence), -1)
        for i, j in pairs:
            partners[[i, j]] = j, i
        text = brackets([partners])[0]
        energies[text] = round(sum(loop.energy for loop in evaluate(sequence, text)), 2)
    found = mfe([sequence])
    assert found.energies[0] == pytest.approx(min(energies.values()))
    assert energies[found.structures[0]] == min(energies.values())


def test_pairs_within_a_span() -> None:
    drawn = random.Random(3)
    sequence = "".join(drawn.choices("ACGU", k=150))
    found = mfe([sequence], settings(max_span=30))
    partners = partners_of(found.structures[0])
    assert max(j - i for i, j in enumerate(partners) if j > i) < 30
    assert mfe([sequence]).energies[0] <= found.energies[0] < 0
    table = partition([sequence], settings(max_span=30))[0].table
    assert (np.diff(table.pairs, axis=1) < 30).all()


@pytest.mark.parametrize(
    ("sequence", "device"),
    [("GGGAAAUCCCA", "reference"), pytest.param(TRNA, "cpu", marks=pytest.mark.slow)],
)
def test_logarithms_where_sums_do_not_fit(sequence: str, device: str) -> None:
    codes = [Molecule(codes_checked(sequence, 1))]
    wanted = EnsembleRequest(samples=2, seed=4)
    target = resolve("cpu", 1)

    def summed(target: Any, scale: float | None) -> Any:
        return dict(_sums(codes, settings(), wanted, [0], scale, target))[0]

    sums, logarithms, scaled = summed(target, 0.0), summed(resolve(device, 1), None), summed(target, 0.4)
    assert logarithms.logarithm == pytest.approx(sums.logarithm, rel=1e-12)
    assert scaled.logarithm == pytest.approx(sums.logarithm, rel=1e-12)
    for other in (logarithms, scaled):
        assert other.pairs.tolist() == sums.pairs.tolist()
        assert other.probabilities == pytest.approx(sums.probabilities, abs=1e-12)
        assert other.drawn == sums.drawn
    # A scale that makes all sums overflow is noticed.
    assert not np.isfinite(summed(target, -200.0).logarithm)


@pytest.mark.slow
def test_long_sequences_are_scaled() -> None:
    found = partition(["GC" * 1000], settings(), probabilities=False)[0]
    # exp(2500) is no number.
    assert found.energy < -1500
    assert found.energy - 1200 < found.ensemble_energy <= found.energy


def test_samples_depend_on_the_seed_and_the_place() -> None:
    first, second = (partition([TRNA, TRNA], samples=4, seed=7) for _ in range(2))
    assert [one.samples for one in first] == [one.samples for one in second]
    assert first[0].samples != first[1].samples
    for drawn in itertools.chain.from_iterable(one.samples for one in first):
        assert len(partners_of(drawn)) == len(TRNA)
    assert sample([TRNA, TRNA], samples=4, seed=7) == [one.samples for one in first]


def test_distances_are_never_below_none() -> None:
    # Rounding makes certain pairs more than certain, as sums of what is forced find them.
    pairs, more = np.array([[0, 9]], np.int32), np.array([1 + 2**-50])
    told = described([PairTable(10, pairs, more)])
    assert (told.distances, told.diversities) == ([0], [0])
    assert not np.signbit([*told.distances, *told.diversities]).any()


def test_tables_are_described_as_pair_by_pair() -> None:
    drawn = np.random.default_rng(2)
    tables = []
    for bases in (0, 7, 30, 12):
        pairs = np.argwhere(np.triu(np.ones((bases, bases), bool), 4)).astype(np.int32)
        tables.append(
            PairTable(bases, pairs, drawn.dirichlet(np.full(max(len(pairs), 1), 0.02))[: len(pairs)])
        )
    told = described([*tables, PairTable(3, np.empty((0, 2), np.int32), np.empty(0))])
    assert told.marks[0] == told.centroids[0].tobytes().decode() == ""
    assert (told.marks[-1], told.centroids[-1].tolist()) == ("...", [-1] * 3)
    assert any((one >= 0).any() for one in told.centroids)
    for one, centroid, diversity, distance in zip(
        tables, told.centroids[:-1], told.diversities[:-1], told.distances[:-1], strict=True
    ):
        expected, p = np.full(one.bases, -1), one.probabilities
        for i, j in one.pairs[p > 0.5].tolist():
            expected[i], expected[j] = j, i
        assert centroid.tolist() == expected.tolist()
        assert diversity == pytest.approx(2 * (p * (1 - p)).sum())
        assert distance == pytest.approx(np.where(p > 0.5, 1 - p, p).sum())
    assert described([]).marks == []


def test_sequences_by_themselves_are_laid_out_in_their_order() -> None:
    texts = ["ACGU", "", "GG", "CCUA", "ACGU", "N", "N"]
    several = [launches.Strand(codes_checked(text, 1)) for text in texts]
    apart = launches.strands_of(several, len(several), np.float32(0), apart=True)
    rows = apart.codes.reshape(len(texts), -1)
    assert rows.shape[1] == apart.longest == 8
    for row, one in zip(rows, several, strict=True):
        assert row[1 : 1 + one.codes.size].tolist() == one.codes.tolist()
        assert {row[0], *row[1 + one.codes.size :]} == {BEYOND}
    beside = launches.strands_of(several, len(several) + 1, np.float32(0))
    assert (beside.codes.reshape(8, -1).T[:-1] == rows).all()
    assert (beside.codes.reshape(8, -1)[:, -1] == BEYOND).all()


def test_blocks_of_long_sequences_are_cut() -> None:
    short = Records([f"s{k}" for k in range(90)], [b"ACGU" * 19] * 90, list(range(90)), 7)
    assert list(short.cut()) == [short]
    given = [Given("." * 600, "rna.fa", k) for k in range(7)]
    long = Records(None, [b"ACGU" * 150] * 6 + [b""], list(range(7)), 9, list(given))
    parts = list(long.cut())
    assert [len(part.sequences) for part in parts] == [2, 2, 2, 1]
    for field in ("sequences", "lines", "constraints"):
        assert list(itertools.chain.from_iterable(getattr(part, field) for part in parts)) == getattr(
            long, field
        )
    assert {part.names for part in parts} == {None}
    assert list(Records(["a"], [b""], [1], 3).cut()) == [Records(["a"], [b""], [1], 3)]


def test_a_small_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rna.fa"
    path.write_text(">one\nGGGGAAAACCCC\n>two\nACGU\n")
    inputs = Inputs(path)
    blocks = list(inputs.records())
    path.write_text(">other\nACGU\n")
    assert list(inputs.records()) == blocks
    # GPUs are given other blocks.
    assert next(inputs.records(1 << 20)).names == ["other"]
    monkeypatch.setattr("plait.folding.inputs._HELD_BYTES", 4)
    large = Inputs(path)
    assert next(large.records()).names == ["other"]
    path.write_text(">third\nACGU\n")
    assert next(large.records()).names == ["third"]


def test_marks_of_few_pairs() -> None:
    table = PairTable(6, np.array([[0, 5]], np.int32), np.array([0.9]))
    assert brackets(described([table]).centroids) == ["(....)"]
    partners, worth = most_expected_accuracy(table)
    assert (brackets([partners])[0], worth) == ("(....)", pytest.approx(1.8 + 4))
    none = PairTable(4, np.empty((0, 2), np.int32), np.empty(0))
    assert none.paired().tolist() == [[0.0] * 4] * 2 and none.paired().dtype == np.float64
    assert most_expected_accuracy(none)[1] == 4


@pytest.mark.parametrize(
    ("structure", "told"),
    [
        ("((...))", "8"),
        ("(((..)))", "with 3 bases between"),
        ("((....)", "'\\(' at base 1"),
        (".....).).", "'\\)' at base 6"),
        ("(...x...)", "'x' at base 5"),
        (".(.....).", "G and C|A"),
    ],
)
def test_structures_that_cannot_be(structure: str, told: str) -> None:
    sequence = ("GAGGAAACC" + "C" * 9)[: max(len(structure), 8)]
    with pytest.raises(InvalidInput, match=told):
        evaluate(sequence, structure)


def test_a_loop_too_long_for_recurrences_is_evaluated() -> None:
    # ViennaRNA 2.7.2 gives 5.88.
    loops = evaluate("G" + "A" * 40 + "GGGAAACCC" + "A" * 3 + "C", "(" + "." * 40 + "(((...)))...)")
    assert sum(loop.energy for loop in loops) == pytest.approx(5.88)


def test_many_at_a_time_as_each_by_itself() -> None:
    long = ("G" + "A" * 40 + "GGGAAACCC" + "A" * 3 + "C", "(" + "." * 40 + "(((...)))...)")
    drawn = random.Random(8)
    sequences = ["".join(drawn.choices("ACGUN", k=size)) for size in (0, 1, 30, 90, 41)] + [TRNA]
    folded = partition(sequences, settings(), samples=3, seed=5)
    several = [(one, text) for one, found in zip(sequences, folded, strict=True) for text in found.samples]
    several.append(long)
    molecules = [Molecule(codes_checked(one, 1)) for one, _ in several]
    energies = energies_of(molecules, [partners_of(text) for _, text in several], settings().model)
    for (one, text), energy in zip(several, energies, strict=True):
        assert energy == pytest.approx(sum(loop.energy for loop in evaluate(one, text)), abs=1e-9)
    told = described([one.table for one in folded])
    assert told.marks == [one.marks for one in folded]
    assert told.diversities == [one.diversity for one in folded]
    assert list(zip(brackets(told.centroids), told.distances, strict=True)) == [
        one.centroid() for one in folded
    ]


# --- what is known beforehand ---------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_known_counts_as_it_does_in_viennarna() -> None:
    for one in RESTRAINED:
        known = [Restraints(one.get("constraint"), one.get("reactivities"))]
        asked = settings(enforce=one["enforce"])
        found = partition([one["sequence"]], asked, restraints=known)[0]
        assert found.energy == pytest.approx(one["energy"], abs=1e-6)
        assert found.ensemble_energy == pytest.approx(one["ensemble"], abs=1e-5)
        table = dict(zip(map(tuple, found.table.pairs.tolist()), found.table.probabilities, strict=True))
        for i, j, p in one["pairs"]:
            assert table.get((i - 1, j - 1), 0) == pytest.approx(p, abs=1e-9)
        assert sum(p > 0.01 for p in table.values()) == len(one["pairs"])
        if "near" in one:
            near = suboptimal([one["sequence"]], asked, within=1.0, restraints=known)[0]
            ours = [[round(e, 2), s] for e, s in zip(near.energies.tolist(), near.structures, strict=True)]
            assert sorted(ours) == sorted(one["near"])


@pytest.mark.slow
def test_forced_pairs_are_in_every_sample() -> None:
    sequence = "GGGAAAUCCCAGGGAAAUCCC"
    constraint = "|.......................("[: len(sequence) - 5] + ".|..."
    known = [Restraints(constraint)]
    drawn = sample([sequence], settings(enforce=True), samples=60, seed=2, restraints=known)[0]
    free = sample([sequence], settings(), samples=60, seed=2, restraints=known)[0]
    forced = [k for k, sign in enumerate(constraint) if sign == "|"]
    assert all(one[k] != "." for one in drawn for k in forced)
    assert any(one[k] == "." for one in free for k in forced)


@pytest.mark.parametrize("device", often(1, ["reference", "cpu"]))
def test_constraints_of_all_kinds(device: str) -> None:
    def folded(constraint: str, sequence: str = "GGGGAAAACCCC", **more: Any) -> str:
        known = [Restraints(constraint)]
        return mfe([sequence], settings(**more), restraints=known, device=device).structures[0]

    assert folded("............") == "((((....))))"
    assert folded("x...........")[0] == "."
    assert folded("<..........>") == "((((....))))"
    assert ">" not in folded(">...........") and folded(">...........")[0] == "."
    assert folded("(.........).") in ("(((.....))).", "............")
    assert folded("(.........).", enforce=True) == "(((.....)))."
    assert folded("|...........", enforce=True) == folded("............")
    with pytest.raises(InvalidInput, match="no structure in which"):
        folded("(..........)", max_span=8, enforce=True)


@pytest.mark.parametrize(
    ("known", "told"),
    [
        (Restraints("..."), "constraint of sequence 2: found 3 signs, expected 12"),
        (Restraints("....[......."), "found '\\[' at base 5"),
        (Restraints("....(......."), "found '\\(' at base 5"),
        (Restraints("(...)......."), "pair of bases 1 and 5, G and A"),
        (Restraints("..(..)......"), "pair of bases 3 and 6"),
        (Restraints(reactivities=[1.0]), "reactivities of sequence 2: found an array of shape \\(1,\\)"),
    ],
)
def test_what_does_not_fit_is_told(known: Restraints, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        mfe(["ACGU", "GGGGAAAACCCC"], restraints=[None, known])
    with pytest.raises(InvalidInput, match="1 of them, expected 2"):
        mfe(["ACGU", "ACGU"], restraints=[None])


@pytest.mark.parametrize("device", often(1, ["reference", "cpu"]))
def test_suboptimal_structures_are_all_there_are(device: str) -> None:
    sequence = "GGCGAAAGCAGCCAA"
    energies = {}
    for pairs in structures(sequence):
        partners = np.full(len(sequence), -1)
        for i, j in pairs:
            partners[[i, j]] = j, i
        text = brackets([partners])[0]
        energies[text] = round(sum(loop.energy for loop in evaluate(sequence, text)), 2)
    least = min(energies.values())
    for within in (0.0, 3.3, 20.0):
        expected = sorted((e, s) for s, e in energies.items() if e <= round(least + within, 2))
        found = suboptimal([sequence], within=within, device=device)[0]
        energy = [round(e, 2) for e in found.energies.tolist()]
        assert list(zip(energy, found.structures, strict=True)) == expected
        assert found.complete
        few = suboptimal([sequence], within=within, most=3, device=device)[0]
        assert few.structures == found.structures[:3]
        assert few.complete == (len(expected) <= 3)
    plain = suboptimal([sequence, "", "A"], within=2.0, device="reference")
    assert plain[0].structures == suboptimal([sequence], within=2.0, device=device)[0].structures
    assert [one.structures for one in plain[1:]] == [[""], ["."]]


@pytest.mark.slow
def test_the_best_of_more_structures_than_are_held() -> None:
    found = suboptimal([TRNA], within=7.0)[0]
    assert len(found.structures) > 9000 and found.complete
    few = suboptimal([TRNA], within=7.0, most=700)[0]
    assert (few.structures, few.complete) == (found.structures[:700], False)
    with pytest.raises(InvalidInput, match="within"):
        suboptimal([TRNA], within=-1.0)
    with pytest.raises(InvalidInput, match="most"):
        suboptimal([TRNA], within=1.0, most=0)


# --- drawings -------------------------------------------------------------------------------------------


def test_a_layout_has_pairs_and_neighbours_a_step_apart() -> None:
    found = mfe([TRNA]).structures[0]
    partners = partners_of(found)
    places = layout(partners)
    assert np.hypot(*np.diff(places, axis=0).T) == pytest.approx(np.ones(len(TRNA) - 1))
    for i, j in enumerate(partners):
        if j > i:
            assert np.hypot(*(places[i] - places[j])) == pytest.approx(1.0)
    assert not overlaps(places)
    # Two arms of a loop of three that are longer than the loop is wide lie upon each other.
    assert overlaps(np.array([[0, 0], [1, 0], [1, 1], [0.1, 0.1]]))


def test_drawings_are_whole_xml() -> None:
    for sequence in ("", "ACGU", TRNA, "GGGAAACCC" * 40):
        one = partition([sequence])[0]
        drawn = Drawn("<a> & b", sequence, one.structure, one.table)
        for svg in (structure_svg(drawn), dots_svg(drawn), mountain_svg(drawn)):
            assert ElementTree.fromstring(svg).tag.endswith("svg")
        text = page(drawn, {"least energy": "-1 < 0"}, [sequence], "plait")
        assert "<h1>&lt;a&gt; &amp; b</h1>" in text
        assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


# --- parameters -----------------------------------------------------------------------------------------


def written(path: Path, enthalpies: bool = True, **changes: str) -> Path:
    """The parameters that come with plait in ViennaRNA's format; enthalpies are twice the energies."""
    from plait.folding.parameters import _NUMBERS, _SHAPES, _SPECIAL

    energies = Parameters.standard().energies
    lines = ["## RNAfold parameter file v2.0", "/* a", "comment */"]
    for name, shape in _SHAPES.items():
        table, section = energies[name], name.replace("interior", "internal")
        for axis in range(table.ndim if table.ndim == 6 else 0):
            table = np.take(table, range(1, table.shape[axis]), axis)
        for axis, size in enumerate(shape):
            if size == 7:
                table = np.concatenate([np.take(table, range(1, 7), axis), np.take(table, [1], axis)], axis)
        for suffix, factor in (("", 1), ("_enthalpies", 2)):
            if factor == 1 or enthalpies:
                words = ["INF" if np.isinf(e) else str(int(factor * e)) for e in table.ravel()]
                lines += [
                    f"# {section}{suffix}",
                    *(" ".join(words[k : k + 10]) for k in range(0, len(words), 10)),
                ]
    numbers = {
        "ML_params": "0 0 930 1860 -90 -180",
        "NINIO": "60 120 300",
        "Misc": "410 820 50 100 107.856 0",
    }
    assert set(numbers) == set(_NUMBERS)
    special = Parameters.standard().special
    for section, length in _SPECIAL.items():
        loops = [
            f"{loop} {energy:g} {2 * energy:g}" for loop, energy in special.items() if len(loop) == length
        ]
        numbers[section] = "\n".join(loops)
    for section, told in (numbers | changes).items():
        lines += [f"# {section}", told]
    path.write_text("\n".join([*lines, "# END", ""]))
    return path


def test_a_parameter_file_is_read(tmp_path: Path) -> None:
    read = Parameters.read(written(tmp_path / "a.par"))
    standard = Parameters.standard()
    for name, table in standard.energies.items():
        np.testing.assert_array_equal(read.energies[name], table)
    # With enthalpies twice as large, energies vanish where they are equal to the entropy's part.
    warm = read.at(100.0)
    share = (100 + 273.15) / (37 + 273.15)
    assert warm.energies["stack"][1, 1] == pytest.approx(-240 * (2 - share))
    assert mfe([TRNA], FoldSettings(Model(read))).energies == pytest.approx([-22.40])
    assert mfe([TRNA], FoldSettings(Model(read, 60.0))).energies[0] > -22


def test_changed_parameters_count(tmp_path: Path) -> None:
    read = Parameters.read(written(tmp_path / "a.par", Tetraloops="GAAAAC -2000 0"))
    assert mfe(["GGGGAAAACCCC"], FoldSettings(Model(read))).energies == pytest.approx([-29.90])


def test_other_temperatures_need_enthalpies(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="no enthalpies"):
        mfe([TRNA], FoldSettings(Model(Parameters.standard(), 25.0)))
    read = Parameters.read(written(tmp_path / "a.par", enthalpies=False))
    with pytest.raises(Unsupported, match="no enthalpies"):
        read.at(25)
    with pytest.raises(InvalidInput, match="0 to 100"):
        read.at(-3)
    with pytest.raises(Unsupported, match="use 0 or 2"):
        Model(read, dangles=1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("GGGAAACCC\n", "line 1: found 'GGGAAACCC'"),
        ("## RNAfold parameter file v2.0\n# stack\n1 2 x\n", "3 numbers in stack"),
        ("## RNAfold parameter file v2.0\n# NINIO\n1 2 x\n", "line 3: found 'x'"),
        ("## RNAfold parameter file v2.0\n# NINIO\n1 nan 3\n", "line 3: found 'nan'"),
        ("## RNAfold parameter file v2.0\n# Triloops\nGAAC 3 4\n", "line 3: found 'GAAC', expected 5 bases"),
        ("## RNAfold parameter file v2.0\n\n# Hexaloops\nACAGUGCU 3\n", "line 4: found 2 words"),
    ],
)
def test_broken_parameter_files(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "a.par"
    path.write_text(text)
    with pytest.raises(FormatError, match=told):
        Parameters.read(path)
