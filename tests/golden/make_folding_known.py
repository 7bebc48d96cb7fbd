"""Answers of ViennaRNA where something is known of made-up sequences: needs ViennaRNA 2.7.2."""

from __future__ import annotations

import json
import random
from pathlib import Path

import RNA

PAIRS = ("CG", "GC", "GU", "UG", "AU", "UA")


def constraint(draw: random.Random, sequence: str) -> str:
    """Some signs, and at most one pair of brackets."""
    signs = ["."] * len(sequence)
    for _ in range(draw.randint(0, 4)):
        signs[draw.randrange(len(signs))] = draw.choice("x|||<>")
    i, j = sorted(draw.choices(range(len(signs)), k=2))
    if j - i > 3 and sequence[i] + sequence[j] in PAIRS:
        signs[i], signs[j] = "(", ")"
    return "".join(signs)


def answer(draw: random.Random, number: int) -> dict[str, object]:
    """Energies in kcal/mol, pairs of at least 1 %, and structures within 1 kcal/mol of the best."""
    sequence = "".join(draw.choices("ACGU", k=draw.randint(12, 70)))
    found: dict[str, object] = {"sequence": sequence, "enforce": number % 2 == 1}
    fold = RNA.fold_compound(sequence)
    if number % 3 < 2:
        found["constraint"] = constraint(draw, sequence)
        options = RNA.CONSTRAINT_DB_DEFAULT | (RNA.CONSTRAINT_DB_ENFORCE_BP if found["enforce"] else 0)
        fold.hc_add_from_db(found["constraint"], options)
    if number % 3 > 0:
        values = [draw.choice([-1.0, round(draw.random() * 2, 3)]) for _ in sequence]
        found["reactivities"] = values
        fold.sc_add_SHAPE_deigan([-999, *values], 1.8, -0.6)
    structure, energy = fold.mfe()
    fold.exp_params_rescale(energy)
    found |= {"structure": structure, "energy": round(energy, 2), "ensemble": round(fold.pf()[1], 6)}
    table, n = fold.bpp(), len(sequence)
    cells = [(i, j, round(table[i][j], 12)) for i in range(1, n) for j in range(i + 1, n + 1)]
    found["pairs"] = [cell for cell in cells if cell[2] > 0.01]
    near = sorted((round(one.energy, 2), one.structure) for one in fold.subopt(100, 1))
    if len(near) <= 60:
        found["near"] = near
    return found


def main() -> None:
    """Write the file."""
    draw = random.Random(23)
    lines = ",\n".join(json.dumps(answer(draw, number)) for number in range(48))
    Path(__file__).with_name("folding_known.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
