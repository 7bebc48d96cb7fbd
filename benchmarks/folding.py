"""RNA folding beside ViennaRNA: processor time of both on one core in the same run, and their answers.

``python benchmarks/folding.py --peer /path/to/python`` names an interpreter that has ViennaRNA,
which is no part of plait; with ``--linearfold`` pylinearfold, whose energies are of the best it finds;
with ``--contrafold`` best structures by CONTRAfold's parameters beside those by Turner's, without a peer.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import time
from collections.abc import Callable

from plait.folding import FoldSettings, Model, Parameters, mfe, partition

#: What the peer runs: sequences come by standard input; per kind of work, processor seconds and energies.
PEER = """
import json, sys, time
import RNA
told = json.load(sys.stdin)
found = {}
for kind, sequences, repeats in told:
    best, energies = 1e9, []
    for _ in range(repeats):
        begun = time.process_time()
        energies = []
        for s in sequences:
            if kind == "beam":
                import pylinearfold
                energies.append(pylinearfold.fold(s)["free_energy"])
            elif kind == "mfe":
                energies.append(RNA.fold(s)[1])
            else:
                model = RNA.md()
                model.compute_bpp = int(kind == "pairs")
                fold = RNA.fold_compound(s, model)
                energy = fold.mfe()[1]
                fold.exp_params_rescale(energy)
                energies.append(fold.pf()[1])
        best = min(best, time.process_time() - begun)
    found[f"{kind} {len(sequences)} x {len(sequences[0])}"] = best, energies
print(json.dumps({"version": RNA.__version__, "found": found}))
"""


def sequences(count: int, bases: int) -> list[str]:
    """Random RNA."""
    drawn = random.Random(bases)
    return ["".join(drawn.choices("ACGU", k=bases)) for _ in range(count)]


def ours(kind: str, given: list[str]) -> list[float]:
    """Energies of least energy, or of ensembles with or without probabilities of pairs."""
    if kind in ("mfe", "beam"):
        return list(map(float, mfe(given, threads=1).energies))
    found = partition(given, probabilities=kind == "pairs", threads=1)
    return [one.ensemble_energy for one in found]


def best_time(run: Callable[[], list[float]], repeats: int) -> tuple[float, list[float]]:
    """The least processor time of some runs, after one that compiles."""
    run()
    best, energies = float("inf"), []
    for _ in range(repeats):
        begun = time.process_time()
        energies = run()
        best = min(best, time.process_time() - begun)
    return best, energies


def beside_contrafold(turns: int) -> None:
    """Print how long best structures take by scores of double precision, beside those of single precision."""
    learned = FoldSettings(Model(Parameters.contrafold()))
    for count, bases in ((512, 76), (40, 400), (4, 1000)):
        given = sequences(count, bases)

        def by_turner(given: list[str] = given) -> list[float]:
            return list(mfe(given, threads=1).energies)

        def by_contrafold(given: list[str] = given) -> list[float]:
            return list(mfe(given, learned, threads=1).energies)

        each = [(best_time(by_turner, 1)[0], best_time(by_contrafold, 1)[0]) for _ in range(turns)]
        one, other = (1e3 * min(found) for found in zip(*each, strict=True))
        name = f"mfe {count} x {bases}"
        print(
            f"{name:<20} Turner {one:.1f} ms, CONTRAfold {other:.1f} ms: {other / one:.2f} times", flush=True
        )


def main() -> None:
    """Print a line for each kind of work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="an interpreter that has ViennaRNA")
    parser.add_argument("--long", action="store_true", help="3,000 bases, too")
    parser.add_argument("--linearfold", action="store_true", help="least energies beside LinearFold's, alone")
    parser.add_argument("--contrafold", action="store_true", help="CONTRAfold's parameters alone")
    parser.add_argument("--short", action="store_true", help="76 bases alone")
    parser.add_argument("--turns", type=int, default=1, help="of both, one after the other: the least counts")
    options = parser.parse_args()
    if options.contrafold:
        return beside_contrafold(options.turns)
    work = [("mfe", sequences(1, 76), 20), ("mfe", sequences(512, 76), 2), ("mfe", sequences(1, 500), 4)]
    work += [("mfe", sequences(1, 1000), 3), ("sum", sequences(64, 76), 2), ("sum", sequences(1, 500), 3)]
    work += [("sum", sequences(1, 1000), 2), ("pairs", sequences(64, 76), 2), ("pairs", sequences(1, 500), 2)]
    work += [("pairs", sequences(1, 1000), 2)]
    if options.short:
        work = [(kind, given, 2 * repeats) for kind, given, repeats in work if len(given[0]) == 76]
    if options.long:
        work += [("mfe", sequences(1, 3000), 1), ("pairs", sequences(1, 3000), 1)]
    if options.linearfold:
        work = [("beam", sequences(1, bases), 2) for bases in (500, 1000, 2000, 3000, 5000)]
    peer: dict[str, tuple[float, list[float]]] = {}
    mine: dict[str, tuple[float, list[float]]] = {}
    for _ in range(options.turns):
        if options.peer:
            done = subprocess.run(
                [options.peer, "-c", PEER], input=json.dumps(work), capture_output=True, text=True, check=True
            )
            told = json.loads(done.stdout)
            for name, found in told["found"].items():
                peer[name] = min(peer.get(name, found), found)
        for kind, given, repeats in work:
            name = f"{kind} {len(given)} x {len(given[0])}"
            found = best_time(lambda kind=kind, given=given: ours(kind, given), repeats)
            mine[name] = min(mine.get(name, found), found)
    if options.peer:
        print(f"ViennaRNA {told['version']}; its sums include the least energy, as plait's do")
    print(f"{'work':<20} {'plait':>12} {'the peer':>12} {'ratio':>7}  largest difference, kcal/mol")
    for name, (seconds, energies) in mine.items():
        line = f"{name:<20} {seconds * 1e3:>9.2f} ms"
        if name in peer:
            theirs, answers = peer[name]
            apart = max(abs(a - b) for a, b in zip(energies, answers, strict=True))
            line += f" {theirs * 1e3:>9.2f} ms {theirs / seconds:>7.1f}  {apart:.1e}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
