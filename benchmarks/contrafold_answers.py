"""CONTRAfold's parameters beside gpu_contrafold 0.1.0, whose CPU code is another implementation of them.

``python benchmarks/contrafold_answers.py FOLDER [SEQUENCES]``: the folder that has the package, which
is no part of plait. There hairpins have fewer than three bases, too, which are made impossible, and
multiloops whose last bases are unpaired are added up several times, as in CONTRAfold: sums are compared
without multiloops, and with its recurrence changed so that each counts once. Its probabilities are of
single precision, from exponentials that are approximated.
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from commands import processor_name

from plait.folding import FoldSettings, Model, Parameters, evaluate, partition

#: What adds multiloops up several times, and what adds each up once.
SEVERAL = """                if FM[i, j - 1] > HALF:
                    sum_i = lse(sum_i, FM[i, j - 1] + mu)
                if FM1[i, j] > HALF:
                    sum_i = lse(sum_i, FM1[i, j])
"""
ONCE = """                FS[i, j] = lse(FM1[i, j], FS[i, j - 1] + mu)
                sum_i = lse(sum_i, FS[i, j])
"""
TABLE = "    FM1 = np.full((L + 2, L + 2), NEGv)\n"


def peer(folder: str, *, once: bool) -> ModuleType:
    """Its code, with each multiloop added up once."""
    path = Path(folder) / "gpu_contrafold" / "cpu.py"
    code = path.read_text().replace("cache=True", "cache=False")
    if once:
        assert SEVERAL in code and TABLE in code
        code = code.replace(SEVERAL, ONCE, 1).replace(TABLE, TABLE + TABLE.replace("FM1", "FS"), 1)
    found = ModuleType(f"peer_{once}")
    found.__file__ = str(path)
    exec(compile(code, str(path), "exec"), found.__dict__)
    return found


def main() -> None:
    """Print what is compared, and how far answers are apart."""
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    draw = random.Random(1)
    sequences = [
        "".join(draw.choices("ACGU" if draw.random() < 0.9 else "ACGUN", k=draw.randint(1, 130)))
        for _ in range(count)
    ]
    sequences += ["".join(draw.choices("ACGU", k=draw.randint(200, 300))) for _ in range(count // 10)]
    theirs, once = peer(sys.argv[1], once=False), peer(sys.argv[1], once=True)
    known: dict[str, Any] = theirs.load()
    known["hp_cum"] = np.concatenate([np.full(3, -1e9), known["hp_cum"][3:]])
    settings = FoldSettings(Model(Parameters.contrafold()))
    energies = {**settings.model.parameters.energies, "multi_base": np.array(1e11)}
    without = FoldSettings(Model(replace(settings.model.parameters, energies=energies)))
    print(f"{processor_name()}; {len(sequences)} sequences of up to {max(map(len, sequences))} bases")

    mine = partition(sequences, settings, probabilities=False)
    best = [theirs.mfe(sequence, known) for sequence in sequences]
    same = sum(one.structure == other for one, other in zip(mine, best, strict=True))
    lost = [
        sum(loop.energy for loop in evaluate(sequence, other, settings.model)) - one.energy
        for sequence, one, other in zip(sequences, mine, best, strict=True)
    ]
    print(f"best structures: {same} the same; others score at most {max(map(abs, lost)):.4f} apart")
    pairs = list(zip(sequences, mine, strict=True))
    apart = [abs(one.ensemble_energy + once.logZ(sequence, known)) for sequence, one in pairs]
    print(f"logarithms of sums, each multiloop once: {max(apart):.1e} apart")
    more = [theirs.logZ(sequence, known) + one.ensemble_energy for sequence, one in pairs]
    print(f"as CONTRAfold adds them up: up to {max(more):.3f} more")
    known["mb"] = -1e9
    pairs = list(zip(sequences, partition(sequences, without), strict=True))
    apart = [abs(theirs.logZ(sequence, known) + one.ensemble_energy) for sequence, one in pairs]
    print(f"logarithms of sums without multiloops: {max(apart):.1e} apart")
    most, alike = 0.0, 0
    for sequence, one in pairs:
        table = np.zeros((len(sequence),) * 2)
        table[one.table.pairs[:, 0], one.table.pairs[:, 1]] = one.table.probabilities
        most = max(most, float(np.abs(theirs.bpp(sequence, known) - table).max()))
        alike += theirs.mea(sequence, known) == one.most_expected_accuracy(6)[0]
    print(f"the same, probabilities: {most:.1e} apart; most expected accuracy: {alike} structures the same")


if __name__ == "__main__":
    main()
