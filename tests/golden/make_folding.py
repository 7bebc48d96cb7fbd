"""Answers of ViennaRNA, with its default parameters, of made-up sequences: needs ViennaRNA 2.7.2."""

from __future__ import annotations

import json
import random
from pathlib import Path

import RNA

DRAWN, LONGEST, PAIRED = 90, 200, 12
SPECIAL = (
    "CAACG",
    "GUUAC",
    "CUACGG",
    "CUCCGG",
    "CUUCGG",
    "CUUUGG",
    "CCAAGG",
    "CCCAGG",
    "CCGAGG",
    "CCUAGG",
    "CCACGG",
)
SPECIAL += (
    "CCGCGG",
    "CCUCGG",
    "CUAAGG",
    "CUCAGG",
    "CUUAGG",
    "CUGCGG",
    "CAACGG",
    "ACAGUGCU",
    "ACAGUGAU",
    "ACAGUGUU",
)
SPECIAL += ("ACAGUACU",)


def sequences() -> list[str]:
    """Sequences of any composition, some with N, and every special hairpin in a stem."""
    drawn = random.Random(17)
    found = [f"GCA{loop}UGC" for loop in SPECIAL]
    for number in range(DRAWN):
        share = drawn.random()
        weights = [1 - share, share, share, 1 - share, 0.1 if number % 6 == 0 else 0]
        found.append("".join(drawn.choices("ACGUN", weights, k=drawn.randint(1, LONGEST))))
    return found


def answers(sequence: str, dangles: int, number: int) -> dict[str, object]:
    """Energies in kcal/mol; of some, pairs that are at least 1 % probable."""
    told = RNA.md()
    told.dangles = dangles
    fold = RNA.fold_compound(sequence, told)
    structure, energy = fold.mfe()
    fold.exp_params_rescale(energy)
    _, ensemble = fold.pf()
    found = {"energy": round(energy, 2), "structure": structure, "ensemble": round(ensemble, 6)}
    if number % 8 == 0:
        table = fold.bpp()
        n = len(sequence)
        found["pairs"] = [
            [i, j, round(table[i][j], PAIRED)]
            for i in range(1, n)
            for j in range(i + 1, n + 1)
            if table[i][j] > 0.01
        ]
        found["diversity"] = round(fold.mean_bp_distance(), 8)
        found["centroid"] = fold.centroid()[0]
        found["mea"] = fold.MEA()[0]
    return found


def main() -> None:
    """Write the file."""
    found = [
        {"sequence": sequence, "dangles": dangles, **answers(sequence, dangles, number)}
        for number, sequence in enumerate(sequences())
        for dangles in ((2, 0) if number % 3 == 0 else (2,))
    ]
    lines = ",\n".join(json.dumps(one) for one in found)
    Path(__file__).with_name("folding.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
