"""Rank correlations: coverage of the intervals by simulation, beside the normal interval; speed beside SciPy.

    python benchmarks/rank_correlation.py [--draws 2000] [--pairs 1000000] [--bootstrap 500]

Coverage: tables of known cell probabilities are drawn again and again (seeded); the share of the intervals
of 95 % that hold the population value is printed, beside that of estimate ± 1.96 standard errors. Speed:
seconds of processor time for distinct pairs of random numbers, best of three, beside ``scipy.stats`` where it
is installed, whose estimates must be equal.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.stats.contingency import ContingencyTable, Pairs
from plait.stats.rank_correlation import kendall, spearman

SIZES = (20, 50, 200, 1000, 5000)


def cases() -> dict[str, NDArray[np.float64]]:
    """Cell probabilities: x down, y across."""
    near = np.abs(np.subtract.outer(np.arange(12), np.arange(12)))
    falling = np.array([[(0.02 + 0.004 * i) ** j for j in range(5)] for i in range(40)])
    return {
        "independent, y nearly all tied": np.outer(np.full(30, 1 / 30), [0.9, 0.09, 0.009, 0.001]),
        "related, y nearly all tied": falling / falling.sum(1, keepdims=True) / 40,
        "two by two, y = 1 in 3 %": np.array([[0.57, 0.01], [0.40, 0.02]]),
        "moderately related, few ties": np.exp(-near / 3.0),
        "strongly related, few ties": np.exp(-1.5 * near[:10, :10]),
    }


def of_table(counts: NDArray[np.int64]) -> Pairs:
    """Counted pairs from a table of counts."""
    x, y = np.nonzero(counts)
    return Pairs(x, y, counts[x, y])


def coverage(draws: int) -> None:
    """Print the coverage of every case."""
    print(f"coverage of 95 % intervals, {draws} draws; plait / normal / share with an interval")
    for name, cells in cases().items():
        shares = cells / cells.sum()
        rng = np.random.default_rng(7)
        for method in (spearman, kendall):
            truth = method(of_table(np.round(shares * 1e12).astype(np.int64))).estimate
            texts = []
            for n in SIZES:
                found = [
                    method(of_table(drawn.reshape(shares.shape)))
                    for drawn in rng.multinomial(n, shares.ravel(), size=draws)
                ]
                known = [one for one in found if not one.reason]
                ours = np.mean([one.low <= truth <= one.high for one in known]) if known else math.nan
                plain = [abs(one.estimate - truth) <= 1.96 * one.standard_error for one in known]
                normal = np.mean(plain) if known else math.nan
                texts.append(f"n={n}: {ours:.3f}/{normal:.3f}/{len(known) / draws:.2f}")
            print(f"  {name}, {method.__name__} {truth:+.3f}: {'  '.join(texts)}")


def bootstrap(draws: int) -> None:
    """Print standard errors beside those of the bootstrap."""
    print(f"standard error, plait / bootstrap of {draws} draws")
    for n, kinds in ((200, (30, 3)), (2000, (500, 4)), (5000, (40, 2000))):
        rng = np.random.default_rng(1)
        x = rng.integers(0, kinds[0], n)
        y = (
            np.minimum(rng.geometric(0.9 - 0.5 * x / kinds[0]), kinds[1])
            if kinds[1] < 10
            else x + rng.integers(0, kinds[1], n)
        )
        for method in (spearman, kendall):
            found = method(counted(x, y))
            values = []
            for _ in range(draws):
                chosen = rng.integers(0, n, n)
                values.append(method(counted(x[chosen], y[chosen])).estimate)
            print(f"  n={n} {method.__name__}: {found.standard_error:.5f} / {np.std(values):.5f}")


def counted(x: NDArray[Any], y: NDArray[Any]) -> Pairs:
    """Counted pairs of two columns."""
    table = ContingencyTable()
    table.add(x, y)
    return table.pairs()


def seconds(call: Callable[[], object]) -> float:
    """Least processor time of three."""
    best = math.inf
    for _ in range(3):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def speed(n: int) -> None:
    """Print seconds for n distinct pairs."""
    try:
        from scipy import stats
    except ImportError:
        stats = None
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1 << 40, n)
    for what, y in (("no ties", rng.integers(0, 1 << 40, n)), ("8 values of y", rng.integers(1, 9, n))):
        pairs = counted(x, y)
        texts = [f"counting {seconds(lambda y=y: counted(x, y)):.2f}"]
        for method, peer in ((spearman, "spearmanr"), (kendall, "kendalltau")):
            texts.append(f"{method.__name__} {seconds(lambda m=method, p=pairs: m(p)):.2f}")
            if stats is not None:
                call = getattr(stats, peer)
                if abs(float(call(x, y)[0]) - method(pairs).estimate) > 1e-12:
                    raise SystemExit(f"{peer} differs")
                texts[-1] += f" (scipy {seconds(lambda c=call, y=y: c(x, y)):.2f})"
        print(f"{len(pairs.x):,} distinct pairs, {what}: {', '.join(texts)} s")


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--bootstrap", type=int, default=500)
    given = parser.parse_args()
    speed(given.pairs)
    bootstrap(given.bootstrap)
    coverage(given.draws)


if __name__ == "__main__":
    main()
