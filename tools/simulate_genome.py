"""A small genome with repeats, and guides, primers and barcodes of it, to try `plait find` on.

    python tools/simulate_genome.py --letters 200000 --seed 1

writes genome.fa (two chromosomes, 40 % GC, tandem and dispersed repeats, a run of N), guides.tsv (20 letters
beside NGG, one of them in a repeat), primers.tsv (a pair of a product of 400 letters), and barcodes.tsv with
reads.fastq of three samples, which begin with them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

_COMPLEMENT = str.maketrans("ACGT", "TGCA")


def simulate(rng: np.random.Generator, letters: int) -> list[str]:
    """Sequences of two chromosomes."""
    text = rng.choice(np.frombuffer(b"ACGT", np.uint8), letters, p=[0.3, 0.2, 0.2, 0.3])
    repeat = text[1000:1300].copy()
    repeat[100:123] = np.frombuffer(b"GACCTGATTGCAACGTTAGCTGG", np.uint8)
    for goal in rng.integers(5000, letters - 5000, letters // 10_000).tolist():
        own = repeat.copy()
        changed = rng.random(own.size) < 0.08
        own[changed] = rng.choice(np.frombuffer(b"ACGT", np.uint8), int(changed.sum()))
        text[goal : goal + own.size] = own
    text[3000:3080] = np.tile(np.frombuffer(b"CA", np.uint8), 40)
    text[letters // 4 : letters // 4 + 200] = ord("N")
    whole = text.tobytes().decode()
    return [whole[: letters // 2], whole[letters // 2 :]]


def main() -> None:
    """Write the files into the current folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--letters", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    chromosomes = simulate(rng, options.letters)
    lines = [f">chr{k}\n{text}\n" for k, text in enumerate(chromosomes, 1)]
    Path("genome.fa").write_text("".join(lines))
    unique = chromosomes[0].index("GG", 20_000)
    guides = {"in_repeat": "GACCTGATTGCAACGTTAGC", "unique": chromosomes[0][unique - 21 : unique - 1]}
    Path("guides.tsv").write_text("".join(f"{name}\t{guide}\n" for name, guide in guides.items()))
    product = chromosomes[1][30_000:30_400]
    pair = {"forward": product[:20], "reverse": product[-20:].translate(_COMPLEMENT)[::-1]}
    Path("primers.tsv").write_text("".join(f"{name}\t{primer}\n" for name, primer in pair.items()))
    barcodes = {"sample1": "ACGTTGCAAC", "sample2": "TTGGCATCGA", "sample3": "CAGATCTTGG"}
    Path("barcodes.tsv").write_text("".join(f"{name}\t{code}\n" for name, code in barcodes.items()))
    reads = []
    for k in range(60):
        code = list(barcodes.get(f"sample{k % 4 + 1}", "GGGGGGGGGG"))
        if k % 5 == 0:
            code[int(rng.integers(10))] = "A"
        begin = int(rng.integers(1000, 20_000))
        read = "".join(code) + chromosomes[0][begin : begin + 50]
        reads.append(f"@read{k}\n{read}\n+\n{'I' * len(read)}\n")
    Path("reads.fastq").write_text("".join(reads))


if __name__ == "__main__":
    main()
