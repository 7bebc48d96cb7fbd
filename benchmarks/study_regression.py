"""Regressions of the study: how fast, in how much memory, and as right as scikit-learn and glmnet.

    python benchmarks/study_regression.py [--part agreement|target|scaling] [--folder DIR] [--threads N]

Rows are made up, with predictors as the study has them: logarithms of path counts that say nearly the same,
lengths, numbers of nucleotides, indicators of gene families. *agreement* fits whole paths with the same
penalties by plait, scikit-learn and R's glmnet (if Rscript and glmnet are there) and compares the
coefficients. *target* is 3.4 million rows, 30 predictors, 100 penalties and 5 folds (published: 21 hours and
67 GB in R). *scaling* repeats it for 3, 10 and 30 million rows and extrapolates to 300 million. Each size
runs in a process of its own, of which the peak memory is told.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from regression_limit import gradient_seconds, multiply_adds_per_second
from regression_peers import agreement

from plait.run.executor import LocalExecutor
from plait.stats.adaptive_lasso import fit_adaptive_lasso
from plait.stats.design_file import DesignFile, DesignWriter
from plait.stats.path_fits import AdaptiveLassoSettings, FitProgress

PARTS = ("agreement", "target", "scaling")
TARGET_ROWS = 3_400_000
SCALING_ROWS = (3_000_000, 10_000_000, 30_000_000)
PLANNED_ROWS = 300_000_000
BATCH = 1 << 16

FAMILIES = 11
NAMES = (
    *(f"log_count_{model}" for model in ("4_10", "4_0", "0_10", "0_0")),
    *("n1_length", "n2_length", "v_match_length", "j_match_length", "d_match_length", "junction_length"),
    *(f"{span}_{base}" for span in ("n1", "n2", "ndn") for base in "acg"),
    *(f"family_{k}" for k in range(FAMILIES)),
)


def made_up(rows: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Predictors and outcomes as a study has them."""
    rng = np.random.default_rng(seed)
    n1, n2, d_match = rng.poisson(2.5, rows), rng.poisson(3.0, rows), rng.binomial(12, 0.5, rows)
    v_match, j_match = rng.binomial(15, 0.8, rows), rng.binomial(18, 0.7, rows)
    length = n1 + n2 + d_match + v_match + j_match + rng.poisson(1.0, rows)
    base = 6.0 + 0.55 * length - 0.4 * (n1 + n2) + rng.normal(0.0, 1.2, rows)
    counts = [base + rng.normal(0.0, spread, rows) for spread in (0.3, 0.4, 0.6, 0.9)]
    letters = []
    for size in (n1, n2, n1 + n2 + d_match):
        a = rng.binomial(size, 0.25)
        c = rng.binomial(size - a, 1 / 3)
        letters += [a, c, rng.binomial(size - a - c, 0.5)]
    family = rng.choice(FAMILIES + 1, rows, p=_shares())
    indicators = [family == k for k in range(FAMILIES)]
    columns = [*counts, n1, n2, v_match, j_match, d_match, length, *letters, *indicators]
    values = np.stack(columns, axis=1).astype(np.float64)
    eta = -2.1 - 0.35 * n2 - 0.1 * n1 + 0.12 * letters[3] + 0.05 * (base - 14.0) + 0.3 * (family == 2)
    return values, rng.random(rows) < 1.0 / (1.0 + np.exp(-eta))


def _shares() -> NDArray[np.float64]:
    """Frequencies of the families: from a third down to one in a thousand."""
    shares = np.geomspace(0.3, 0.001, FAMILIES)
    return np.append(shares, 1.0 - shares.sum()) if shares.sum() < 1 else np.append(shares, 0) / shares.sum()


def write_rows(path: Path, rows: int) -> DesignFile:
    """A design file of made-up rows, unless it is there."""
    if not path.exists():
        with DesignWriter(path, NAMES) as writer:
            for k, start in enumerate(range(0, rows, BATCH)):
                writer.write(*made_up(min(BATCH, rows - start), k))
    return DesignFile(path)


def timed(path: Path, threads: int, halves: int) -> dict[str, float]:
    """One fit in this process: seconds, processor seconds by stage, and peak memory."""
    design = DesignFile(path)
    stages: dict[str, float] = {}
    at = [time.process_time()]

    def told(progress: FitProgress) -> None:
        now = time.process_time()
        stage = progress.stage.split(":")[0]
        stages[stage] = stages.get(stage, 0.0) + now - at[0]
        at[0] = now

    begin, worked = time.perf_counter(), time.process_time()
    fit = fit_adaptive_lasso(
        design, AdaptiveLassoSettings(halves=halves), executor=LocalExecutor(threads), progress=told
    )
    return {
        "rows": design.rows,
        "seconds": time.perf_counter() - begin,
        "processor_seconds": time.process_time() - worked,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "file_bytes": os.path.getsize(path),
        "auc": fit.auc,
        "warnings": list(fit.warnings),
        "stages": stages,
    }


def measure(folder: Path, rows: int, threads: int, halves: int) -> dict[str, float]:
    """`timed` in a process of its own."""
    path = folder / f"rows-{rows}.design"
    write_rows(path, rows)
    command = [
        sys.executable,
        __file__,
        "--one",
        str(path),
        "--threads",
        str(threads),
        "--halves",
        str(halves),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def lines(found: dict[str, float], threads: int) -> Iterator[str]:
    """What one run says."""
    yield (
        f"{found['rows']:,} rows x {len(NAMES)} predictors, 100 penalties, 5 folds: "
        f"{found['seconds']:.1f} s, {found['processor_seconds']:.1f} s of processor on {threads} threads, "
        f"peak {found['peak_bytes'] / 2**20:,.0f} MiB, file {found['file_bytes'] / 2**20:,.0f} MiB, "
        f"AUC {found['auc']:.4f}"
    )
    yield "   processor seconds: " + ", ".join(f"{k} {v:.1f}" for k, v in found["stages"].items())
    yield from (f"   {text}" for text in found["warnings"])


def run(options: argparse.Namespace, folder: Path) -> Iterator[str]:
    """All parts that were asked for."""
    threads, halves = options.threads, options.halves
    if "agreement" in options.part:
        yield "-- the same paths by others"
        yield from agreement(*made_up(options.agreement_rows, 0), folder, threads)
    if "target" in options.part:
        yield f"-- target: under 120 s and 2 GiB on 2 cores (published: 21 h, 67 GB); {halves} halves besides"
        found = measure(folder, options.rows, threads, halves)
        yield from lines(found, threads)
        limit = multiply_adds_per_second(3)
        own = gradient_seconds(DesignFile(folder / f"rows-{options.rows}.design"), 600, 5)
        least = 2 * (len(NAMES) + 1) / limit
        yield (
            f"   a row and a model: {own * 1e9:.2f} ns of a core; {2 * (len(NAMES) + 1)} products that are "
            f"added up take {least * 1e9:.2f} ns at its limit of {limit / 1e9:.1f} G a second: "
            f"{least / own:.0%} of the limit, exponentials, logarithms and divisions not counted"
        )
    if "scaling" in options.part:
        yield "-- scaling"
        points = []
        for rows in options.scaling_rows:
            found = measure(folder, rows, threads, halves)
            yield from lines(found, threads)
            points.append((found["rows"], found["seconds"]))
        slope, start = np.polyfit(*np.array(points, float).T, 1) if len(points) > 1 else (np.nan, np.nan)
        yield f"   {slope * 1e6:.2f} s a million rows and {start:.1f} s; {PLANNED_ROWS:,} rows: "
        yield f"   {(start + slope * PLANNED_ROWS) / 60:.0f} min by extrapolation"


def main() -> None:
    """Run what was asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--folder", type=Path, help="where design files are kept; a temporary one by default")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--halves", type=int, default=50)
    parser.add_argument("--rows", type=int, default=TARGET_ROWS)
    parser.add_argument("--agreement-rows", type=int, default=50_000)
    parser.add_argument("--scaling-rows", type=int, nargs="+", default=SCALING_ROWS)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(timed(options.one, options.threads, options.halves)))
        return
    options.part = options.part or list(PARTS)
    print(f"{platform.processor() or platform.machine()}, {options.threads} threads", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for line in run(options, folder):
            print(line, flush=True)


if __name__ == "__main__":
    main()
