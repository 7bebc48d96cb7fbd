"""CONTRAfold's scores: against a plain definition of them, structure by structure."""

from __future__ import annotations

import math
import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.examples import often
from support.folding import structures, within

import plait.folding
from plait.cli import main
from plait.errors import FormatError, Unsupported
from plait.folding import FoldSettings, Model, Parameters, Restraints, evaluate, mfe, partition, suboptimal
from plait.folding.structures import partners_of

SETTINGS = FoldSettings(Model(Parameters.contrafold()))
FILE = Path(plait.folding.__file__).parent / "data" / "contrafold.params.complementary"
#: Of every loop and unpaired base, at most.
ROUNDING = 1e-8
TRNA = "GCGGAUUUAGCUCAGUUGGGAGAGCGCCAGACUGAAGAUCUGGAGGUCCUGUGUUCGAUCCACAGAAUUCGCACCA"
#: Scores of best structures and logarithms of sums, found by another implementation (gpu_contrafold 0.1.0),
#: with hairpins of three bases or more and every structure of a multiloop counted once.
KNOWN = [
    (
        "GCGGAUUUAGCUCAGUUGGGAGAGCGCCAGACUGAAGAUCUGGAGGUCCUGUGUUCGAUCCACAGAAUUCGCACCA",
        "(((((((..((((........)))).(((((.......))))).....(((((.......))))))))))))....",
        4.683,
        9.494208136,
    ),
    (
        "UUUNUNAGNUNAGCGGACCNUAUAUAANCCNNCNGUCNUNNCCAAACUAUCCNGCGUANA",
        "............................................................",
        -0.584,
        0.046285648,
    ),
    (
        "GUAUCGAAAUAUUUCCGUAGUUAUACGUCUGCCAAAGUAAUGCAGUCCAUACUAGUGUACAUCCUUUCCGCCCACUUGCCACUUCUUGGU",
        "..........................(.((((.........)))).)...........................................",
        -0.429,
        4.237368702,
    ),
    (
        "CGCCUGCUGGAGCGCUGUCGGUCUUGUUGGAUUCGGGAUGGCGUGGAACGAGGACAAACAAACCGGAUACCCAUCAGAGCGUUCUGCAGGUUGCUAAGGAGUCCACUCUU",
        ".((((((.((((((((.......(((.(((((((((..((..................))..))))))..))).)))))))))))))))))...................",
        8.042,
        15.323159139,
    ),
]


@cache
def told() -> dict[str, float]:
    lines = FILE.read_text().split("\n")
    return {name: float(value) for name, value in (line.split() for line in lines if line)}


def named(group: str, letters: str) -> float:
    """A score by letters, of which some are told from the other end; what is beyond the ends has none."""
    if "N" in letters or " " in letters:
        return 0.0
    names = f"{group}_{letters}", f"{group}_{letters[::-1]}"
    return next(told()[name] for name in names if name in told())


def by_length(group: str, length: int) -> float:
    return sum(told().get(f"{group}_at_least_{k}", 0.0) for k in range(length + 1))


def loop_score(s: str, pair: tuple[int, int], inner: list[tuple[int, int]]) -> float:
    """The loop that a pair closes, as CONTRAfold scores it: what pairs within it count for is part of it."""
    i, j = pair
    score = sum(named("base_pair", s[p] + s[q]) for p, q in inner)

    def ends(a: int, b: int) -> float:
        letters = s[a] + s[b] + s[a + 1] + s[b - 1]
        return named("helix_closing", s[a] + s[b]) + named("terminal_mismatch", letters)

    def branch(a: int, b: int) -> float:
        """A stem, seen from its loop."""
        closing = named("helix_closing", s[a] + s[b])
        left = named("dangle_left", s[a] + s[b] + s[a + 1]) if a + 1 < len(s) else 0.0
        return closing + left + (named("dangle_right", s[a] + s[b] + s[b - 1]) if b > 0 else 0.0)

    if i < 0:
        unpaired = len(s) - sum(q - p + 1 for p, q in inner)
        score += unpaired * told()["external_unpaired"]
        return score + sum(told()["external_paired"] + branch(q, p) for p, q in inner)
    if not inner:
        return score + ends(i, j) + by_length("hairpin_length", min(j - i - 1, 30))
    if len(inner) > 1:
        unpaired = j - i - 1 - sum(q - p + 1 for p, q in inner)
        score += told()["multi_base"] + told()["multi_paired"] + branch(i, j)
        score += unpaired * told()["multi_unpaired"]
        return score + sum(told()["multi_paired"] + branch(q, p) for p, q in inner)
    ((p, q),) = inner
    one, other = p - i - 1, j - q - 1
    if one == other == 0:
        return score + named("helix_stacking", s[i] + s[j] + s[p] + s[q])
    score += ends(i, j) + ends(q, p)
    if one == 0 or other == 0:
        if one + other == 1:
            score += named("bulge_0x1_nucleotides", s[i + 1] if one else s[j - 1])
        return score + by_length("bulge_length", one + other)
    if one == other == 1:
        score += named("internal_1x1_nucleotides", s[i + 1] + s[j - 1])
    score += told().get(f"internal_explicit_{min(one, other)}_{max(one, other)}", 0.0)
    score += by_length("internal_length", one + other) + by_length("internal_asymmetry", abs(one - other))
    return score + (by_length("internal_symmetric_length", one) if one == other else 0.0)


def score_of(s: str, pairs: list[tuple[int, int]]) -> float:
    loops = [(pair, within(pairs, *pair)) for pair in [(-1, len(s)), *pairs]]
    return sum(loop_score(s, pair, inner) for pair, inner in loops)


def drawn(seed: int, bases: int, letters: str = "ACGU") -> str:
    return "".join(random.Random(seed).choices(letters, k=bases))


SHORT = [drawn(seed, 14 + seed % 3, "ACGGCUN" if seed == 3 else "ACGGCU") for seed in range(8)]


@pytest.mark.parametrize("sequence", often(4, [*SHORT, "GGAGGAAACCGGAAACCACC", ""]))
@pytest.mark.parametrize("device", often(1, ["reference", "cpu"]))
def test_every_structure_counts_as_it_is_scored(sequence: str, device: str) -> None:
    scores = {tuple(sorted(pairs)): score_of(sequence, pairs) for pairs in structures(sequence)}
    (found,) = partition([sequence], SETTINGS, threads=1, device=device)
    total = sum(map(math.exp, scores.values()))
    assert -found.ensemble_energy == pytest.approx(math.log(total), abs=1e-12)
    assert abs(found.energy + max(scores.values())) <= ROUNDING * len(sequence)
    table = dict(zip(map(tuple, found.table.pairs.tolist()), found.table.probabilities, strict=True))
    shares: dict[tuple[int, int], float] = {}
    for pairs, score in scores.items():
        for pair in pairs:
            shares[pair] = shares.get(pair, 0.0) + math.exp(score) / total
    assert {*table} == {*shares}
    assert all(table[pair] == pytest.approx(share, abs=1e-12) for pair, share in shares.items())
    (near,) = suboptimal([sequence], SETTINGS, within=2.0, threads=1, device=device)
    least = -max(scores.values())
    count = [sum(-score <= least + edge for score in scores.values()) for edge in (1.998, 2.002)]
    assert count[0] <= len(near) <= count[1]


@pytest.mark.slow
def test_rounding_does_not_add_up() -> None:
    # A helix scores 0.007 more than the open chain: fewer digits for each base would hide that.
    sequence = f"GC{'A' * 484}GC"
    (found,) = partition([sequence], SETTINGS, threads=1)
    helix = score_of(sequence, [(0, 487), (1, 486)])
    assert helix > score_of(sequence, [])
    assert found.energy == pytest.approx(-helix, abs=1e-6)
    assert found.structure == f"(({'.' * 484}))"
    assert found.frequency == pytest.approx(math.exp(helix + found.ensemble_energy), rel=1e-6)


@pytest.mark.parametrize(("device", "bases"), often(1, [("reference", 25), ("cpu", 150)]))
def test_forced_pairs_are_scored_as_exactly(device: str, bases: int) -> None:
    settings, constraint = FoldSettings(SETTINGS.model, enforce=True), f"({'.' * bases})"
    for seed in range(3):
        sequence = f"G{drawn(seed, bases)}C"
        found = mfe([sequence], settings, restraints=[Restraints(constraint)], device=device, threads=1)
        pairs = [(i, int(j)) for i, j in enumerate(partners_of(found.structures[0])) if i < j]
        assert (0, bases + 1) in pairs
        assert abs(found.energies[0] + score_of(sequence, pairs)) < ROUNDING * len(sequence)


def test_interior_loops_of_all_sides_are_explained() -> None:
    for one in range(31):
        for other in range(31 - one):
            left, right = drawn(one, one + 1), drawn(other, other + 1)
            sequence = f"{left[0]}G{left[1:]}CAAAAAG{right[:-1]}C{right[-1]}"
            i, p, q, j = 1, 2 + one, 8 + one, 9 + one + other
            found = evaluate(sequence, brackets(len(sequence), [(i, j), (p, q)]), SETTINGS.model)
            total = -sum(loop.energy for loop in found)
            expected = score_of(sequence, [(i, j), (p, q)])
            assert abs(total - expected) < ROUNDING * len(sequence), (one, other)


def brackets(bases: int, pairs: list[tuple[int, int]]) -> str:
    signs = ["."] * bases
    for i, j in pairs:
        signs[i], signs[j] = "(", ")"
    return "".join(signs)


@pytest.mark.slow
def test_structures_of_longer_sequences_weigh_what_was_found() -> None:
    sequences = [drawn(seed, 60 + 7 * seed, "ACGU" if seed % 3 else "AACGU") for seed in range(20)]
    for sequence, structure, energy in zip(
        sequences, (found := mfe(sequences, SETTINGS)).structures, found.energies, strict=True
    ):
        pairs = [(i, int(j)) for i, j in enumerate(partners_of(structure)) if i < j]
        assert abs(energy + score_of(sequence, pairs)) < ROUNDING * len(sequence)


@pytest.mark.slow
@pytest.mark.parametrize(("sequence", "structure", "score", "logarithm"), KNOWN)
def test_known_scores(sequence: str, structure: str, score: float, logarithm: float) -> None:
    (found,) = partition([sequence], SETTINGS)
    assert found.structure == structure
    assert abs(found.energy + score) < ROUNDING * len(sequence) + 0.0005
    assert -found.ensemble_energy == pytest.approx(logarithm, abs=1e-6)


def test_energies_have_nothing_of_learned_scores() -> None:
    model = SETTINGS.model
    with pytest.raises(Unsupported, match="dangles of 0"):
        Model(Parameters.contrafold(), dangles=0)
    with pytest.raises(Unsupported, match="temperature of 30"):
        mfe(["GGGAAACCC"], FoldSettings(Model(Parameters.contrafold(), 30.0)))
    with pytest.raises(Unsupported, match="reactivities"):
        mfe(["GGGAAACCC"], SETTINGS, restraints=[Restraints(reactivities=np.zeros(9))])
    assert model.parameters.unit == "nats"
    assert model.gamma == 6.0


def test_a_file_of_scores_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.params"
    path.write_text(FILE.read_text().replace("multi_base -1.199055076", "multi_base -2.199055076"))
    own = Parameters.read(path)
    assert own.learned
    assert own.energies["multi_base"] == pytest.approx(219.9055076)
    assert (
        own.energies["helix_stacking"].tolist() == Parameters.contrafold().energies["helix_stacking"].tolist()
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("multi_base -1.199055076\n", "", "no multi_base"),
        ("base_pair_AU 0.59791199", "base_pair_AU much", r"line 4: found 'much'"),
        ("terminal_mismatch_AUAC", "terminal_mismatch_AUAX", "no terminal_mismatch_AUAC"),
    ],
)
def test_broken_files_of_scores(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "mine.params"
    assert old in FILE.read_text()
    path.write_text(FILE.read_text().replace(old, new))
    with pytest.raises(FormatError, match=message):
        Parameters.read(path)


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trna.fa"
    path.write_text(f">trna\n{TRNA}\n")
    assert main(["fold", str(path), "--parameters", "contrafold", "--mea", "--samples", "1"]) == 0
    shown = capsys.readouterr()
    (found,) = partition([TRNA], SETTINGS)
    assert f"{found.structure} ({found.energy:6.2f})" in shown.out
    assert f"{found.most_expected_accuracy(6.0)[0]} {{" in shown.out
    assert " s; CONTRAfold\n" in shown.err
    assert main(["fold", str(path), "--parameters", "contrafold", "--samples", "1"]) == 0
    assert f"free energy of ensemble = {found.ensemble_energy:6.2f} nats" in capsys.readouterr().out
    assert main(["fold", str(path), "--parameters", "contrafold", "--mea", "--gamma", "0.5"]) == 0
    assert f"{found.most_expected_accuracy(0.5)[0]} {{" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--parameters", "contrafold", "--dangles", "0"], "dangles of 0"),
        (["--parameters", "contrafold", "--temperature", "20"], "temperature of 20"),
        (["--gamma", "2"], "--gamma"),
        (["--mea", "--gamma", "0"], "--gamma"),
    ],
)
def test_options_that_do_not_apply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    path = tmp_path / "trna.fa"
    path.write_text(f">trna\n{TRNA}\n")
    assert main(["fold", str(path), *options]) == 2
    assert message in capsys.readouterr().err
