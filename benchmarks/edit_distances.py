"""Unit costs (Levenshtein) beside edlib: distances, alignments, infixes; lists of pairs and one pair.

    python benchmarks/edit_distances.py

Random nucleotides and copies with 5 % errors, in equal parts substitutions, insertions and deletions. Each
line is microseconds of processor time a pair, of one thread, the best of several, in turn with the peer's:
from codes to distances or paths, all of `score_pairs` from strings, and edlib's `align` from the same
strings, which is called once a pair; then with more errors, and of texts that are not related, all distances
and those up to a limit; then one pair a call of both. Checked: distances are edlib's, and alignments cost
what they say. Peer: ``pip install edlib``. Hamming distances, of lists and of all against one, are beside
NumPy's of the same texts, joined, and equal to them.
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

REPEATS = 15
UNIT = match_mismatch(0, -1)
#: Letters of a sequence, and pairs of a list.
SIZES = ((150, 2000), (1000, 320), (10_000, 32), (10_000, 1))


def mutated(letters: str, rng: np.random.Generator, errors: float = 0.05) -> str:
    """A copy with errors in that part of its letters."""
    parts = []
    drawn = rng.random(len(letters)), rng.choice(list("ACGT"), len(letters))
    for letter, chance, other in zip(letters, *drawn, strict=True):
        if chance < errors / 3:
            parts.append(other)
        elif chance < 2 * errors / 3:
            parts += [letter, other]
        elif chance >= errors:
            parts.append(letter)
    return "".join(parts)


def best(*calls: Callable[[], Any], pairs: int) -> list[tuple[float, Any]]:
    """Microseconds a pair of the fastest call of each, called in turn, and what the last one gave."""
    found: list[tuple[float, Any]] = [(float("inf"), call()) for call in calls]
    for _ in range(REPEATS):
        for k, call in enumerate(calls):
            start = time.process_time()
            result = call()
            found[k] = min(found[k][0], 1e6 * (time.process_time() - start) / pairs), result
    return found


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
        settings: Any = {"mode": mode, "matrix": UNIT, "gap_open": 1, "gap_extend": 1, "threads": 1}
        calls: list[Callable[[], Any]] = [
            lambda: aligner.results(batch, keep),  # noqa: B023  # called at once
            lambda: [edlib.align(a, b, mode=code, task=task) for a, b in zip(queries, others, strict=True)],  # noqa: B023
        ]
        if not keep:
            calls.append(lambda: score_pairs(queries, others, **settings))  # noqa: B023
            calls.append(lambda: edit_distances(queries, others, mode=mode, threads=1))  # noqa: B023
        (ours, found), (peer, answers), *rest = best(*calls, pairs=pairs)
        whole, texts = [seconds for seconds, _ in rest] if rest else [float("nan")] * 2
        if keep:
            assert [one.score for one in aligner.alignments(batch, found)] == found.scores.tolist()
            checked = [one.mismatches + one.gaps for one in aligner.alignments(batch, found)]
            assert checked == (-found.scores).tolist()
        assert [answer["editDistance"] for answer in answers] == (-found.scores).tolist()
        print(
            f"{pairs:5} x {size:6} nt {name:16} {ours:9.2f} us ({peer / ours:5.1f} x), "
            f"score_pairs {whole:9.2f} us ({peer / whole:5.1f} x), "
            f"edit_distances {texts:9.2f} us ({peer / texts:5.1f} x), edlib {peer:9.2f} us",
            flush=True,
        )


def measure_errors(size: int, pairs: int, errors: float, rng: np.random.Generator) -> None:
    """Lines of `edit_distances` with more errors, or with texts that are not related where they are 1."""

    def drawn(letters: int) -> str:
        return "".join(rng.choice(list("ACGT"), letters))

    queries = [drawn(size) for _ in range(pairs)]
    targets = [drawn(size) if errors == 1 else mutated(query, rng, errors) for query in queries]
    inside = [drawn(size // 2) + target + drawn(size // 2) for target in targets]
    mode: Any
    few = size // 15
    for mode, others, code, most in (
        ("global", targets, "NW", -1),
        ("semiglobal", inside, "HW", -1),
        ("global", targets, "NW", few),
    ):
        limit = None if most < 0 else most
        (ours, found), (peer, known) = best(
            lambda: edit_distances(queries, others, mode=mode, at_most=limit, threads=1),  # noqa: B023
            lambda: [edlib.align(a, b, mode=code, k=most) for a, b in zip(queries, others, strict=True)],  # noqa: B023
            pairs=pairs,
        )
        assert [answer["editDistance"] for answer in known] == found.tolist()
        asked = f"at most {most}" if limit else "all"
        print(
            f"{pairs:5} x {size:6} nt {mode:10} {100 * errors:3.0f} % errors, {asked:11} "
            f"edit_distances {ours:7.2f} us "
            f"({peer / ours:4.1f} x), edlib {peer:7.2f} us",
            flush=True,
        )


def measure_calls(size: int, rng: np.random.Generator) -> None:
    """One call for one pair, from strings."""
    query = "".join(rng.choice(list("ACGT"), size))
    target, aligner, calls = mutated(query, rng), aligner_of("global"), max(100_000 // size, 20)
    for name, task, ours in (("score", "distance", aligner.score), ("align", "path", aligner.align)):
        (own, found), (peer, known) = best(
            lambda: [ours(query, target) for _ in range(calls)][-1],  # noqa: B023
            lambda: [edlib.align(query, target, task=task) for _ in range(calls)][-1],  # noqa: B023
            pairs=calls,
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
        (ours, found), (peer, known) = best(
            lambda: hamming_distances(queries, given, threads=1),  # noqa: B023
            lambda: (rows_of(queries) != rows_of(others)).sum(1),  # noqa: B023
            pairs=pairs,
        )
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
    for length, number in ((100, 2000), (150, 2000), (250, 1500), (400, 800), (1000, 320)):
        for rate in (0.05, 0.15, 1):
            measure_errors(length, number, rate, np.random.default_rng(length))
    for length in (14, 150, 400, 1000, 4000, 10_000):
        measure_calls(length, np.random.default_rng(length))
    for length, number in ((20, 20_000), (150, 20_000), (10_000, 100)):
        measure_hamming(length, number, np.random.default_rng(length))
