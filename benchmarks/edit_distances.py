"""Unit costs (Levenshtein) beside edlib: distances, alignments, infixes; lists of pairs and one pair.

    python benchmarks/edit_distances.py

Random nucleotides and copies with 5 % errors, in equal parts substitutions, insertions and deletions. Each
line is microseconds of processor time a pair, of one thread, the best of several: from codes to distances or
paths, all of `score_pairs` from strings, and edlib's `align` from the same strings, which is called once a
pair; then one pair a call of both. Checked: distances are edlib's, and alignments cost what they say. Peer:
``pip install edlib``. Hamming distances, of lists and of all against one, are beside NumPy's of the same
texts, joined, and equal to them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import edlib
import numpy as np
from commands import processor_name

from plait.align import edit_distances, hamming_distances, match_mismatch, score_pairs
from plait.align.aligner import Aligner, make_aligner
from plait.align.batches import PairBatch
from plait.align.scoring import make_scoring

REPEATS = 7
UNIT = match_mismatch(0, -1)
#: Letters of a sequence, and pairs of a list.
SIZES = ((150, 2000), (1000, 320), (10_000, 32), (10_000, 1))


def mutated(letters: str, rng: np.random.Generator) -> str:
    """A copy with errors in a twentieth of its letters."""
    parts = []
    drawn = rng.random(len(letters)), rng.choice(list("ACGT"), len(letters))
    for letter, chance, other in zip(letters, *drawn, strict=True):
        if chance < 0.0167:
            parts.append(other)
        elif chance < 0.0333:
            parts += [letter, other]
        elif chance >= 0.05:
            parts.append(letter)
    return "".join(parts)


def best(call: Callable[[], Any], pairs: int) -> tuple[float, Any]:
    """Microseconds a pair of the fastest call, and what the last one gave."""
    fastest, result = float("inf"), call()
    for _ in range(REPEATS):
        start = time.process_time()
        result = call()
        fastest = min(fastest, time.process_time() - start)
    return 1e6 * fastest / pairs, result


def aligner_of(mode: Any) -> Aligner:
    """Of one thread."""
    return make_aligner(make_scoring(UNIT, 1, 1), mode=mode, threads=1, device="cpu")


def measure(size: int, pairs: int, rng: np.random.Generator) -> None:
    """Lines of one size."""
    queries = ["".join(rng.choice(list("ACGT"), size)) for _ in range(pairs)]
    targets = [mutated(query, rng) for query in queries]
    around = ["".join(rng.choice(list("ACGT"), size)) for _ in range(pairs)]
    inside = [a[: size // 2] + target + a[size // 2 :] for a, target in zip(around, targets, strict=True)]
    for name, mode, others, task, code in (
        ("distance", "global", targets, "distance", "NW"),
        ("alignment", "global", targets, "path", "NW"),
        ("infix, distance", "semiglobal", inside, "distance", "HW"),
    ):
        aligner = aligner_of(mode)
        batch = PairBatch(aligner.encode(queries, "query"), aligner.encode(others, "target"))
        keep = task == "path"
        ours, found = best(lambda: aligner.results(batch, keep), pairs)  # noqa: B023  # called at once
        if keep:
            whole = texts = float("nan")
            assert [one.score for one in aligner.alignments(batch, found)] == found.scores.tolist()
            checked = [one.mismatches + one.gaps for one in aligner.alignments(batch, found)]
            assert checked == (-found.scores).tolist()
        else:
            settings: Any = {"mode": mode, "matrix": UNIT, "gap_open": 1, "gap_extend": 1, "threads": 1}
            whole, _ = best(lambda: score_pairs(queries, others, **settings), pairs)  # noqa: B023
            texts, _ = best(lambda: edit_distances(queries, others, mode=mode, threads=1), pairs)  # noqa: B023

        def theirs() -> list[Any]:
            return [edlib.align(a, b, mode=code, task=task) for a, b in zip(queries, others, strict=True)]  # noqa: B023

        peer, answers = best(theirs, pairs)
        assert [answer["editDistance"] for answer in answers] == (-found.scores).tolist()
        print(
            f"{pairs:5} x {size:6} nt {name:16} {ours:9.2f} us ({peer / ours:5.1f} x), "
            f"score_pairs {whole:9.2f} us ({peer / whole:5.1f} x), "
            f"edit_distances {texts:9.2f} us ({peer / texts:5.1f} x), edlib {peer:9.2f} us",
            flush=True,
        )


def measure_calls(size: int, rng: np.random.Generator) -> None:
    """One call for one pair, from strings."""
    query = "".join(rng.choice(list("ACGT"), size))
    target, aligner, calls = mutated(query, rng), aligner_of("global"), max(100_000 // size, 20)
    for name, task, ours in (("score", "distance", aligner.score), ("align", "path", aligner.align)):
        own, found = best(lambda: [ours(query, target) for _ in range(calls)][-1], calls)  # noqa: B023
        peer, known = best(
            lambda: [edlib.align(query, target, task=task) for _ in range(calls)][-1],  # noqa: B023
            calls,
        )
        assert known["editDistance"] == -(found if name == "score" else found.score)
        print(
            f"a call for {size:6} nt, Aligner.{name} {own:9.2f} us ({peer / own:5.1f} x), "
            f"edlib {peer:9.2f} us",
            flush=True,
        )


def measure_hamming(size: int, pairs: int, rng: np.random.Generator) -> None:
    """Lines of texts of one length."""
    letters = np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, (2, pairs, size))]
    queries, targets = ([row.tobytes() for row in side] for side in letters)

    def rows_of(texts: list[bytes]) -> np.ndarray[Any, Any]:
        return np.frombuffer(b"".join(texts), np.uint8).reshape(len(texts), size)

    for name, others in (("pairs", targets), ("all, one", targets[:1])):
        given: Any = others if len(others) > 1 else others[0]
        ours, found = best(lambda: hamming_distances(queries, given, threads=1), pairs)  # noqa: B023
        peer, known = best(lambda: (rows_of(queries) != rows_of(others)).sum(1), pairs)  # noqa: B023
        assert np.array_equal(found, known)
        print(
            f"{pairs:5} x {size:6} nt Hamming, {name:8} {ours:9.3f} us ({peer / ours:5.1f} x), "
            f"NumPy {peer:9.3f} us",
            flush=True,
        )


if __name__ == "__main__":
    print(processor_name(), flush=True)
    for length, number in SIZES:
        measure(length, number, np.random.default_rng(length))
    for length in (14, 150, 400, 1000, 4000, 10_000):
        measure_calls(length, np.random.default_rng(length))
    for length, number in ((20, 20_000), (150, 20_000), (10_000, 100)):
        measure_hamming(length, number, np.random.default_rng(length))
