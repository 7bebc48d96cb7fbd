"""Answers of `plait find` and `plait map` beside those of edlib and sassy, on thousands of random cases.

    python benchmarks/mapping_answers.py [--rounds 40] [--seed 1]

Texts have 50 to 2,000 letters, with changed copies of the patterns and short units in tandem, so that hits
overlap and lie at both ends; patterns have 8 to 64 letters, and reads about 60. Of each pair of a pattern and
a text are compared: all ends within k edits with those of sassy, with their costs; and the ends with fewest
edits with those of edlib. Loci of reads are compared with distances at every place. Needs
``pip install edlib sassy-rs``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import edlib
import numpy as np
import sassy

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.mapping import reverse_complement
from support.mapping_truth import all_loci

from plait import mapping

PATTERNS, TEXTS, READS = 20, 25, 4


def changed(letters: str, changes: int, rng: np.random.Generator) -> str:
    """A sequence with so many random substitutions, insertions and deletions at the most."""
    own = list(letters)
    for _ in range(changes):
        place, kind = int(rng.integers(len(own))), int(rng.integers(3))
        own[place : place + (kind != 1)] = ["ACGT"[int(rng.integers(4))]] if kind < 2 else []
        own = own or ["A"]
    return "".join(own)


def text_of(patterns: list[str], rng: np.random.Generator) -> str:
    """Random letters with what resembles patterns, at both ends too, and tandem repeats."""
    parts = []
    while sum(map(len, parts)) < rng.integers(50, 2000):
        kind, own = int(rng.integers(4)), patterns[int(rng.integers(len(patterns)))]
        own = own if rng.integers(2) else reverse_complement(own)
        if kind == 0:
            parts.append("".join(rng.choice(list("ACGT"), int(rng.integers(1, 80)))))
        elif kind == 1:
            parts.append(
                "".join(rng.choice(list("ACGT"), int(rng.integers(1, 8)))) * int(rng.integers(2, 30))
            )
        else:
            parts.append(changed(own, int(rng.integers(0, 5)), rng))
    return "".join(parts)


def compared(rng: np.random.Generator) -> tuple[int, int]:
    """Pairs and ends of a round; raises AssertionError where an answer differs."""
    k, count = int(rng.integers(0, 4)), 0
    unit = "".join(rng.choice(list("ACGT"), int(rng.integers(1, 6))))
    sizes = rng.integers(max(8, 2 * k + 1), 65, PATTERNS).tolist()
    patterns = ["".join(rng.choice(list("ACGT"), size)) for size in sizes[1:]] + [(unit * 64)[: sizes[0]]]
    texts = {str(j): text_of(patterns, rng) for j in range(TEXTS)}
    found = mapping.find(patterns, texts, errors=k, edits=True, report="ends", device="cpu")
    ends: dict[tuple[int, int, int], dict[int, int]] = {}
    rows = found.rows
    for g, j, s, end, distance in zip(
        *(c.tolist() for c in (rows.pattern, rows.sequence, rows.strand, rows.end, rows.distance)),
        strict=True,
    ):
        ends.setdefault((g, j, s), {})[end] = distance
    searcher = sassy.Searcher("dna", rc=False)
    for j, text in enumerate(texts.values()):
        for g, pattern in enumerate(patterns):
            for s, own in enumerate((pattern, reverse_complement(pattern))):
                mine = ends.get((g, j, s), {})
                theirs = {m.text_end: m.cost for m in searcher.search_all(own.encode(), text.encode(), k)}
                assert mine == theirs, ("sassy", own, text, k, mine, theirs)
                best = edlib.align(own, text, mode="HW", task="distance", k=k)
                assert best["editDistance"] == min(mine.values(), default=-1), ("edlib", own, text, k, mine)
                if mine:
                    few = {end for end, distance in mine.items() if distance == best["editDistance"]}
                    assert few == {last + 1 for _, last in best["locations"]}, ("edlib", own, text, k, few)
                count += len(mine)
    reads = {f"r{n}": text[a : a + 60] for n, text in enumerate(texts.values()) if len(text) > 100
             for a in (0, len(text) - 60, int(rng.integers(len(text) - 60)))[: 1 + n % 3]}  # fmt: skip
    reads = {name: changed(read, int(rng.integers(0, 5)), rng) for name, read in list(reads.items())[:READS]}
    hits = mapping.map(reads, texts, errors=4)
    assert set(hits.statuses) <= {"mapped", "unmapped"}
    got = {
        (row["read"], row["contig"], row["strand"], row["end"], row["distance"])
        for row in hits.to_arrow().to_pylist()
        if row["contig"] is not None
    }
    assert got == all_loci(reads, texts, 4), ("map", reads, texts)
    return 2 * PATTERNS * TEXTS, count


def main() -> None:
    """Rounds of 1,000 pairs each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pairs = ends = 0
    for number in range(options.rounds):
        more = compared(np.random.default_rng([options.seed, number]))
        pairs, ends = pairs + more[0], ends + more[1]
    print(f"{pairs:,} pairs of a pattern and a text, {ends:,} ends: all equal sassy's and edlib's")
    print(f"{options.rounds} times {READS} reads, 4 edits: all loci are those of distances at every place")


if __name__ == "__main__":
    main()
