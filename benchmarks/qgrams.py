"""Similarities of q-grams: answers beside counters in Python, speed beside a merge of sorted q-grams.

    python benchmarks/qgrams.py [TEXTS]

Texts look like SMILES, 15 to 70 letters, drawn from pieces. 100,000 pairs are compared with
`collections.Counter`; then millions of pairs a second of processor, on one thread: what `plait similar`
computes, with and without making q-grams of the texts, and, compiled by the same compiler, a merge of two
sorted lists, as programs for counts of fingerprints do. With RDKit installed, its BulkTanimotoSimilarity.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from plait.devices.target import CpuTarget
from plait.lang.compile import kernel
from plait.qgrams import similar, similarities
from plait.qgrams.similarity import _SIMILAR, Matrix, SimilarBatch, _prepared

PIECES = [
    *(
        "C",
        "CC",
        "c1ccccc1",
        "C(=O)",
        "N",
        "O",
        "C(C)",
        "Cl",
        "F",
        "S(=O)(=O)",
        "c1ccncc1",
        "C1CCNCC1",
        "[nH]",
    ),
    *("C#N", "OC", "N(C)", "c1ccc2ccccc2c1", "[C@H]", "[C@@H](O)", "/C=C/", "Br", "c1cnc(N)nc1"),
]


def drawn(count: int) -> list[str]:
    """Texts like SMILES."""
    rng, found = random.Random(1), []
    for _ in range(count):
        text, length = "", rng.randint(15, 60)
        while len(text) < length:
            text += rng.choice(PIECES)
        found.append(text)
    return found


@kernel
def merged(queries: Any, targets: Any, out: Any) -> None:
    """Similarities by a merge of sorted lists; both are `Grams`."""
    for a in range(queries.sizes.size):
        for b in range(targets.sizes.size):
            i, j, shared = queries.starts[a], targets.starts[b], 0
            while i < queries.starts[a + 1] and j < targets.starts[b + 1]:
                if queries.grams[i] == targets.grams[j]:
                    shared += min(queries.counts[i], targets.counts[j])
                    i, j = i + 1, j + 1
                elif queries.grams[i] < targets.grams[j]:
                    i += 1
                else:
                    j += 1
            out[a, b] = shared / (queries.sizes[a] + targets.sizes[b] - shared)


def check(texts: list[str]) -> None:
    """100,000 pairs against counters."""
    some, others = texts[:250], texts[-400:]
    counts = [[Counter(t[k : k + 4] for k in range(len(t) - 3)) for t in part] for part in (some, others)]
    found = similarities(some, others)
    for i, a in enumerate(counts[0]):
        for j, b in enumerate(counts[1]):
            shared = sum((a & b).values())
            either = sum(a.values()) + sum(b.values()) - shared
            assert found[i, j] == np.float32(float(Fraction(shared, either)))
    print("100,000 similarities are those of collections.Counter, to the last bit")


def timed(calls: dict[str, tuple[int, Callable[[], Any]]]) -> None:
    """Millions of pairs a second of each, called in turn."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(4):
        for name, (_, call) in calls.items():
            begun = time.thread_time()
            call()
            best[name] = min(best[name], time.thread_time() - begun)
    for name, (pairs, _) in calls.items():
        print(f"{name:52} {pairs / best[name] / 1e6:9,.2f} M pairs/s {best[name]:8.3f} s")


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", nargs="?", type=int, default=8192)
    n = parser.parse_args().texts
    texts = drawn(n)
    print(f"{platform.processor() or platform.machine()}, load {os.getloadavg()[0]:.1f}; {n:,} texts")
    check(texts)
    (left, right), vocabulary = _prepared(texts, None, 4, (True, False))
    print(f"{vocabulary:,} q-grams, {left.grams.size / n:.1f} kinds and {left.sizes.mean():.1f} a text")
    out = np.empty((n, n), np.float32)
    inverse = 1 / np.maximum(np.arange(2 * left.sizes.max() + 1), 1)
    batch = SimilarBatch(left, right, vocabulary, Matrix(out, inverse))
    few = left._replace(sizes=left.sizes[:64])
    slow = np.empty((64, n), np.float32)
    calls: dict[str, tuple[int, Callable[[], Any]]] = {
        "merge of sorted q-grams": (64 * n, lambda: merged(few, right, slow)),
        "plait: lanes, matrix": (n * n, lambda: CpuTarget(1).launch(_SIMILAR, batch)),
        "plait: texts to matrix": (n * n, lambda: similarities(texts, threads=1, device="cpu")),
        "plait: texts to pairs of 0.6 or more": (n * n, lambda: similar(texts, at_least=0.6, threads=1)),
        "plait: texts to the 10 nearest": (n * n, lambda: similar(texts, nearest=10, threads=1)),
    }
    try:
        from rdkit import DataStructs
    except ImportError:
        print("rdkit is not installed")
    else:
        prints = [DataStructs.ULongSparseIntVect(1 << 40) for _ in texts]
        for one, text in zip(prints, texts, strict=True):
            for gram, count in Counter(text[k : k + 4] for k in range(len(text) - 3)).items():
                one[int.from_bytes(gram.encode(), "little")] = count
        some = prints[:8]
        calls["rdkit: BulkTanimotoSimilarity"] = (
            8 * n,
            lambda: [DataStructs.BulkTanimotoSimilarity(one, prints) for one in some],
        )
    timed(calls)
    assert np.array_equal(slow, out[left.order[:64]])


if __name__ == "__main__":
    main()
