"""Which of two predictors goes better with sharing: coverage of the intervals by simulation.

    python benchmarks/paired_ranks.py [--draws 600] [--studies 250]

The share of the intervals of 95 % that hold the population difference is printed: for rows drawn
independently of each other (`plait.stats.rank_correlation`), and for studies whose subjects differ in what
their sharing follows, there beside those of leaving subjects out (`plait.vdj.convergence.pgen_tables`)
and the share of studies in which both intervals name a winner.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from plait.stats.rank_correlation import PAIRED_MEASURES, Triples, paired_differences, triples_of
from plait.vdj.convergence.pgen_tables import JACKKNIFE_MEASURES, SubjectCells, subject_intervals

ROWS = ((0.5, 0.5, -3.0, 0.7), (0.2, 0.8, -2.0, 0.7), (0.0, 0.0, -3.0, 0.7), (0.8, 0.3, -1.0, 0.0))
STUDIES = ((0.4, 0.4, 0.0), (0.4, 0.4, 0.3), (0.1, 0.7, 0.3), (0.0, 0.0, 0.0))


def rows(rng: np.random.Generator, n: int, by_x: float, by_z: float, level: float, common: float) -> Triples:
    """Rows with x tied, z hardly, and y mostly 1."""
    shared, alone = rng.standard_normal(n), (1 - common**2) ** 0.5
    x = np.round(4 * (common * shared + alone * rng.standard_normal(n)))
    z = common * shared + alone * rng.standard_normal(n)
    y = 1 + rng.poisson(np.exp(level + by_x * x / 4 + by_z * z))
    return triples_of(x, z, y, np.ones(n, np.int64))


def study(
    rng: np.random.Generator, subjects: int, n: int, by_x: float, by_z: float, apart: float
) -> tuple[list[Any], dict[str, tuple[float, float]]]:
    """Differences, and intervals over subjects, of a study with subjects that differ."""
    x = np.round(4 * rng.standard_normal(n)) / 4
    z = 0.6 * x + 0.8 * rng.standard_normal(n)
    has = np.zeros((n, subjects), bool)
    for k in range(subjects):
        of_x, of_z = by_x + apart * rng.standard_normal(), by_z + apart * rng.standard_normal()
        depth = -2.5 + 0.3 * rng.standard_normal()
        has[:, k] = rng.random(n) < 1 - np.exp(-np.exp(depth + of_x * x + of_z * z))
    y = has.sum(axis=1)
    x, z, y, has = x[y > 0], z[y > 0], y[y > 0], has[y > 0]
    ones = np.ones(len(x), np.int64)
    cells = [SubjectCells(x[m], z[m], y[m], ones[m]) for m in has.T]
    found = paired_differences(JACKKNIFE_MEASURES, triples_of(x, z, y, ones), threshold=2)
    return found, subject_intervals(cells, shared_by=2)


def of_rows(draws: int) -> None:
    """Print the coverage for independent rows."""
    rng = np.random.default_rng(1)
    print(f"independent rows, {draws} draws: coverage (share with an interval)")
    for case in ROWS:
        large = [
            paired_differences(PAIRED_MEASURES, rows(rng, 200_000, *case), threshold=2) for _ in range(4)
        ]
        truth = [float(np.mean([one[k].difference for one in large])) for k in range(len(PAIRED_MEASURES))]
        for n in (50, 200, 1000):
            hits, known = np.zeros(len(PAIRED_MEASURES)), np.zeros(len(PAIRED_MEASURES))
            for _ in range(draws):
                for k, one in enumerate(
                    paired_differences(PAIRED_MEASURES, rows(rng, n, *case), threshold=2)
                ):
                    known[k] += one.low == one.low
                    hits[k] += one.low <= truth[k] <= one.high
            told = "  ".join(
                f"{measure} {hits[k] / max(known[k], 1):.3f} ({known[k] / draws:.2f})"
                for k, measure in enumerate(PAIRED_MEASURES)
            )
            print(f"  {case}, n = {n}: {told}")


def of_studies(studies: int) -> None:
    """Print the coverage for subjects that differ."""
    rng = np.random.default_rng(3)
    print(f"studies, {studies} each: coverage over rows, over subjects; both on one side of 0")
    for subjects in (4, 8, 16):
        for case in STUDIES:
            large = [study(rng, subjects, 40_000, *case)[0] for _ in range(20)]
            found = [study(rng, subjects, 1500, *case) for _ in range(studies)]
            for k, measure in enumerate(JACKKNIFE_MEASURES):
                truth = float(np.mean([one[k].difference for one in large]))
                over_rows = np.mean([one[k].low <= truth <= one[k].high for one, _ in found])
                ends = [over[measure] for _, over in found]
                over_subjects = np.mean([low <= truth <= high for low, high in ends])
                sure = np.mean(
                    [
                        min(one[k].low, over[measure][0]) > 0 or max(one[k].high, over[measure][1]) < 0
                        for one, over in found
                    ]
                )
                told = f"{over_rows:.3f}, {over_subjects:.3f}; {sure:.3f}"
                print(f"  {subjects} subjects, {case}, {measure}: {told}")


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=600)
    parser.add_argument("--studies", type=int, default=250)
    given = parser.parse_args()
    of_rows(given.draws)
    of_studies(given.studies)


if __name__ == "__main__":
    main()
