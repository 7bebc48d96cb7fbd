"""Answers of folding beside those of ViennaRNA, and of plain enumeration: no times, only differences.

``python benchmarks/folding_answers.py --peer /path/to/python`` names an interpreter that has ViennaRNA, which
is no part of plait. Random sequences of 1 to 400 bases, 10 to 90 % of them G or C.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plait.errors import InvalidInput
from plait.folding import (
    FoldSettings,
    Model,
    Parameters,
    Restraints,
    evaluate,
    mfe,
    partition,
    sample,
    suboptimal,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.folding import structures, weight_of

#: What the peer runs: what is asked comes by standard input, answers go to standard output.
PEER = """
import json, sys
import RNA
told = json.load(sys.stdin)
if "save" in told:
    RNA.params_save(told["save"])
found = []
for asked in told["asked"]:
    model = RNA.md()
    model.dangles = asked.get("dangles", 2)
    model.temperature = asked.get("temperature", 37.0)
    fold = RNA.fold_compound(asked["sequence"], model)
    if "constraint" in asked:
        options = RNA.CONSTRAINT_DB_DEFAULT
        if asked["enforce"]:
            options |= RNA.CONSTRAINT_DB_ENFORCE_BP
        fold.hc_add_from_db(asked["constraint"], options)
    if "reactivities" in asked:
        fold.sc_add_SHAPE_deigan([-999, *asked["reactivities"]], 1.8, -0.6)
    structure, energy = fold.mfe()
    answer = {"structure": structure, "energy": energy}
    if "evaluate" in asked:
        answer["evaluated"] = fold.eval_structure(asked["evaluate"])
    if asked.get("sums"):
        fold.exp_params_rescale(energy)
        answer["ensemble"] = fold.pf()[1]
        table, n = fold.bpp(), len(asked["sequence"])
        answer["pairs"] = [
            (i - 1, j - 1, table[i][j])
            for i in range(1, n) for j in range(i + 1, n + 1) if table[i][j] > 1e-12
        ]
    if "within" in asked:
        near = fold.subopt(round(100 * asked["within"]), 1)
        answer["near"] = sorted((round(one.energy, 2), one.structure) for one in near)
    found.append(answer)
json.dump(found, sys.stdout)
"""
PAIRS = ("CG", "GC", "GU", "UG", "AU", "UA")


def drawn_sequence(draw: random.Random, longest: int, shortest: int = 1) -> str:
    """Random RNA of any length and composition."""
    share = draw.uniform(0.1, 0.9)
    return "".join(
        draw.choices("ACGU", [1 - share, share, share, 1 - share], k=draw.randint(shortest, longest))
    )


class Peer:
    """Another interpreter, and what it is asked."""

    def __init__(self, program: str) -> None:
        self._program = program

    def answers(self, asked: Sequence[dict[str, Any]], **more: str) -> list[dict[str, Any]]:
        """Answers, in the order of the questions."""
        done = subprocess.run(
            [self._program, "-c", PEER],
            input=json.dumps({"asked": asked, **more}),
            capture_output=True,
            text=True,
            check=True,
        )
        return list(json.loads(done.stdout))


def energies(peer: Peer, draw: random.Random, count: int) -> Iterator[str]:
    """Least energies, and what structures are worth in both programs."""
    given = [drawn_sequence(draw, 400) for _ in range(count)]
    found = mfe(given)
    asked = [{"sequence": s, "evaluate": t} for s, t in zip(given, found.structures, strict=True)]
    theirs = peer.answers(asked)
    apart = [abs(e - one["energy"]) for e, one in zip(found.energies, theirs, strict=True)]
    there = [abs(e - one["evaluated"]) for e, one in zip(found.energies, theirs, strict=True)]
    here = [
        abs(sum(loop.energy for loop in evaluate(s, one["structure"])) - one["energy"])
        for s, one in zip(given, theirs, strict=True)
    ]
    alike = sum(t == one["structure"] for t, one in zip(found.structures, theirs, strict=True))
    yield f"{count:,} sequences, {sum(map(len, given)):,} bases: {_off(apart)} energies differ"
    yield f"our structures evaluated by ViennaRNA, and its by plait: {_off(there)} and {_off(here)} differ"
    yield f"the same structure in {alike:,} (the others have the same energy)"


def _off(apart: Sequence[float]) -> int:
    return sum(one >= 0.005 for one in apart)


def ensembles(peer: Peer, draw: random.Random, count: int) -> Iterator[str]:
    """Energies of ensembles, and probabilities of pairs."""
    given = [drawn_sequence(draw, 300) for _ in range(count)]
    yield from _sums(peer, [({"sequence": one}, FoldSettings(), None) for one in given])


def constraints(peer: Peer, draw: random.Random, count: int) -> Iterator[str]:
    """Constraints, enforced or not, with and without reactivities."""
    work: list[tuple[dict[str, Any], FoldSettings, Restraints | None]] = []
    for k in range(count):
        sequence = drawn_sequence(draw, 150, 5)
        asked: dict[str, Any] = {"sequence": sequence, "enforce": k % 2 == 1}
        if k % 4 < 3:
            asked["constraint"] = _constraint(draw, sequence)
        if k % 4 > 1:
            asked["reactivities"] = [
                draw.choice([-1.0, draw.random() * 2, draw.random() / 4]) for _ in sequence
            ]
        known = Restraints(asked.get("constraint"), asked.get("reactivities"))
        work.append((asked, FoldSettings(enforce=asked["enforce"]), known))
    yield from _sums(peer, work)


def _constraint(draw: random.Random, sequence: str) -> str:
    """Some signs, and some nested pairs that can be."""
    signs = ["."] * len(sequence)
    for _ in range(draw.randint(0, 4)):
        signs[draw.randrange(len(signs))] = draw.choice("x|<>")
    for _ in range(draw.randint(0, 4)):
        i, j = sorted(draw.choices(range(len(signs)), k=2))
        depths = np.cumsum([{"(": 1, ")": -1}.get(sign, 0) for sign in signs[i : j + 1]])
        nested = depths[-1] == 0 and depths.min() == 0
        if j - i > 3 and sequence[i] + sequence[j] in PAIRS and signs[i] == signs[j] == "." and nested:
            signs[i], signs[j] = "(", ")"
    return "".join(signs)


def models(peer: Peer, draw: random.Random, count: int) -> Iterator[str]:
    """No dangles, and other temperatures with parameters that ViennaRNA has written."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "saved.par")
        peer.answers([], save=path)
        parameters = Parameters.read(path)
        work: list[tuple[dict[str, Any], FoldSettings, Restraints | None]] = []
        for k in range(count):
            asked: dict[str, Any] = {"sequence": drawn_sequence(draw, 150), "dangles": 0 if k % 2 else 2}
            asked["temperature"] = draw.choice([10.0, 25.0, 37.0, 55.0, 70.0])
            model = Model(parameters, asked["temperature"], asked["dangles"])
            work.append((asked, FoldSettings(model), None))
        yield from _sums(peer, work)


def _sums(
    peer: Peer, work: Sequence[tuple[dict[str, Any], FoldSettings, Restraints | None]]
) -> Iterator[str]:
    """Least energies, ensembles and pairs of both programs."""
    theirs = peer.answers([{**asked, "sums": True} for asked, _, _ in work])
    least, ensemble, pairs, unmet = [0.0], [0.0], [0.0], 0
    for (asked, settings, known), one in zip(work, theirs, strict=True):
        try:
            found = partition([asked["sequence"]], settings, restraints=[known])[0]
        except InvalidInput:
            # ViennaRNA gives an energy of 100,000 kcal/mol where there is no structure.
            unmet += 1
            if one["energy"] < 10_000:
                raise
            continue
        least.append(abs(found.energy - one["energy"]))
        ensemble.append(abs(found.ensemble_energy - one["ensemble"]))
        ours = {
            (i, j): p
            for (i, j), p in zip(found.table.pairs.tolist(), found.table.probabilities.tolist(), strict=True)
        }
        both = {(i, j): p for i, j, p in one["pairs"]}
        pairs += [abs(ours.get(k, 0.0) - both.get(k, 0.0)) for k in {*ours, *both}]
    yield f"{len(work):,} sequences, {unmet} without a structure in both: {_off(least)} least energies differ"
    told = f"ensemble {max(ensemble):.1e} kcal/mol, {len(pairs):,} probabilities {max(pairs):.1e}"
    yield f"largest differences: {told}"


def near(peer: Peer, draw: random.Random, count: int) -> Iterator[str]:
    """Suboptimal structures."""
    asked: list[dict[str, Any]] = []
    for k in range(count):
        asked.append(
            {
                "sequence": drawn_sequence(draw, 120, 5),
                "within": draw.choice([0.0, 0.5, 1.0, 2.0, 3.0]),
                "enforce": True,
            }
        )
        if k % 3 == 0:
            asked[-1]["constraint"] = _constraint(draw, asked[-1]["sequence"])
    total, other, unmet = 0, 0, 0
    for one, theirs in zip(asked, peer.answers(asked), strict=True):
        known = [Restraints(one.get("constraint"))]
        try:
            found = suboptimal(
                [one["sequence"]],
                FoldSettings(enforce=True),
                within=one["within"],
                restraints=known,
                most=10**6,
            )[0]
        except InvalidInput:
            unmet += 1
            continue
        ours = [(round(float(e), 2), s) for e, s in zip(found.energies, found.structures, strict=True)]
        total += len(ours)
        other += sorted(ours) != [tuple(pair) for pair in theirs["near"]]
    told = f"{total:,} structures, {other} sets differ from RNAsubopt's"
    yield f"{count:,} sequences, {unmet} without a structure: {told}"


def _enumerated(sequence: str) -> dict[str, float]:
    """Boltzmann factors of all structures, each from its loops: nothing of recurrences."""
    from plait.dp.intervals.launches import strands_of
    from plait.folding.energies import SUMS, weigh
    from plait.folding.folds import codes_checked, molecule_of, strand_of
    from plait.folding.structures import brackets

    settings = FoldSettings()
    weighing = weigh(settings.model, "sums", 128)
    strand = strand_of(molecule_of(codes_checked(sequence, 1), None, settings), weighing, 0.0)
    strands = strands_of([strand], 1, SUMS.one)
    found = {}
    for pairs in structures(sequence):
        partners = np.full(len(sequence), -1)
        for i, j in pairs:
            partners[[i, j]] = j, i
        found[brackets([partners])[0]] = float(weight_of(pairs, weighing.rule, SUMS, weighing.loops, strands))
    return found


def enumeration(peer: Peer, draw: random.Random, count: int) -> Iterator[str]:
    """Probabilities and ensembles by enumeration of all structures in double precision."""
    apart, total, everything = [0.0], [0.0], 0
    for _ in range(count):
        sequence = drawn_sequence(draw, 19, 12)
        weights = _enumerated(sequence)
        everything += len(weights)
        whole = math.fsum(weights.values())
        one = partition([sequence])[0]
        expected: Counter[tuple[int, int]] = Counter()
        for structure, weight in weights.items():
            opened: list[int] = []
            for k, sign in enumerate(structure):
                if sign == "(":
                    opened.append(k)
                elif sign == ")":
                    expected[opened.pop(), k] += weight / whole  # type: ignore[assignment]
        ours = dict(zip(map(tuple, one.table.pairs.tolist()), one.table.probabilities.tolist(), strict=True))
        apart += [abs(ours.get(k, 0.0) - p) for k, p in expected.items()]
        thermal = FoldSettings().model.thermal_energy / 100
        total.append(abs(one.ensemble_energy + thermal * math.log(whole)))
    told = f"largest differences {max(apart):.1e} of probabilities, {max(total):.1e} kcal/mol of ensembles"
    yield f"{count} sequences, {everything:,} structures, {len(apart):,} pairs: {told}"


def samples(peer: Peer, draw: random.Random, count: int) -> Iterator[str]:
    """Draws against probabilities of structures by enumeration: chi-square."""
    for _ in range(count):
        sequence = drawn_sequence(draw, 18, 16)
        weights = _enumerated(sequence)
        whole, draws = math.fsum(weights.values()), 20_000
        seen = Counter(sample([sequence], samples=draws, seed=draw.randrange(1 << 30))[0])
        assert set(seen) <= set(weights)
        expected = {structure: draws * weight / whole for structure, weight in weights.items()}
        rare = [structure for structure, often in expected.items() if often < 10]
        cells = [(seen[s], often) for s, often in expected.items() if often >= 10]
        cells.append((sum(seen[s] for s in rare), sum(expected[s] for s in rare)))
        cells = [cell for cell in cells if cell[1] > 0]
        square, free = sum((a - b) ** 2 / b for a, b in cells), len(cells) - 1
        # Wilson and Hilferty: the cube root of chi-square over its degrees of freedom is nearly normal.
        spread = 2 / (9 * max(free, 1))
        score = ((square / max(free, 1)) ** (1 / 3) - (1 - spread)) / spread**0.5
        chance = 0.5 * math.erfc(score / 2**0.5)
        told = f"{draws:,} draws, chi-square {square:.1f} of {free} degrees of freedom"
        yield f"{sequence}: {told}, p = {chance:.3f}"


def families(peer: Peer, files: Sequence[Path], most: int) -> Iterator[str]:
    """Least energies of real sequences, from alignments in Stockholm format, other letters as N."""
    for path in files:
        rows: dict[str, str] = {}
        for line in path.read_text().splitlines():
            words = line.split()
            if len(words) == 2 and not line.startswith(("#", "//")):
                rows[words[0]] = rows.get(words[0], "") + words[1]
        bases = [re.sub(r"[-._~]", "", row).upper().replace("T", "U") for row in rows.values()]
        given = [re.sub("[^ACGU]", "N", one) for one in bases]
        given = given[:: max(1, len(given) // most)][:most]
        found = mfe(given)
        theirs = peer.answers([{"sequence": one} for one in given])
        apart = [abs(e - one["energy"]) for e, one in zip(found.energies, theirs, strict=True)]
        sizes = sorted(map(len, given))
        told = f"{len(given)} of {len(rows):,} sequences, {sizes[0]} to {sizes[-1]:,} bases"
        yield f"{path.name}: {told}: {_off(apart)} energies differ"


PARTS: dict[str, tuple[Callable[[Peer, random.Random, int], Iterator[str]], int]] = {
    "least energies": (energies, 10_000),
    "ensembles and probabilities": (ensembles, 1_000),
    "constraints and reactivities": (constraints, 1_000),
    "other models": (models, 400),
    "suboptimal structures": (near, 600),
    "enumeration": (enumeration, 40),
    "samples": (samples, 8),
}


def main() -> None:
    """Print differences, part by part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, help="an interpreter that has ViennaRNA")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; may be repeated")
    parser.add_argument("--share", type=float, default=1.0, help="of all sequences")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--families", nargs="*", type=Path, default=[], help="alignments of real sequences")
    options = parser.parse_args()
    for name, (run, count) in PARTS.items():
        if not options.part or name in options.part:
            draw = random.Random(f"{name} {options.seed}")
            for line in run(Peer(options.peer), draw, max(1, round(count * options.share))):
                print(f"{name}: {line}", flush=True)

    for line in families(Peer(options.peer), options.families, 60):
        print(f"families: {line}", flush=True)


if __name__ == "__main__":
    main()
