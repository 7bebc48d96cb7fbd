"""Iterations and processor time of an inference with longer steps (SQUAREM) and without, to one likelihood.

    python benchmarks/vdj_inference_steps.py [--rows 5000] [--germline mouse_trb human_tra]
        [--tolerance 1e-5 1e-7]

Junctions with V and J called are drawn from a model with probabilities of a seed, as in
``vdj_inference_recovery.py``, and models are inferred from uniform tables.
"""

from __future__ import annotations

import argparse
import platform
import time
from itertools import pairwise

import pyarrow as pa
from vdj_inference_recovery import synthetic

from plait import __version__
from plait.dp.chain.sample import FIELDS
from plait.vdj.model import JunctionSampler, infer_model, uniform_model
from plait.vdj.model.inference import Iteration
from plait.vdj.model.junctions import JunctionEncoder


def compared(name: str, rows: int, tolerance: float) -> None:
    """Print a line with longer steps and one without."""
    truth = synthetic(name, 1)
    draws = JunctionSampler(truth, seed=1).block(0, rows)
    v, j = (
        pa.array([genes[k].name for k in draws.fields[:, FIELDS.index(s)].tolist()])
        for s, genes in (("v", truth.v), ("j", truth.j))
    )
    start = uniform_model(truth)
    given = JunctionEncoder(start).encode(pa.array(list(draws.texts())), v, j)
    infer_model(start, lambda: [(given.parts, given.texts)], iterations=1)
    for accelerate in (False, True):
        seen: list[Iteration] = []
        begun = time.process_time()
        infer_model(
            start,
            lambda: [(given.parts, given.texts)],
            iterations=2000,
            tolerance=tolerance,
            accelerate=accelerate,
            progress=seen.append,
        )
        seconds = time.process_time() - begun
        back = sum(b.log_likelihood < a.log_likelihood for a, b in pairwise(seen))
        print(
            f"{name:<11}{rows:>7,}{tolerance:>9.0e}  {'SQUAREM' if accelerate else 'EM':<8}{len(seen):>5}"
            f"{seconds:>9.1f} s  log-likelihood {seen[-1].log_likelihood:.7f}, {back} steps taken back"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000, help="junctions")
    parser.add_argument("--germline", nargs="+", default=["mouse_trb", "human_tra"], help="names of sets")
    parser.add_argument("--tolerance", nargs="+", type=float, default=[1e-5, 1e-7], help="ends iterations")
    options = parser.parse_args()
    print(f"plait {__version__}, Python {platform.python_version()}, {platform.machine()}")
    print("germline     rows   tolerance   iterations  processor time")
    for name in options.germline:
        for tolerance in options.tolerance:
            compared(name, options.rows, tolerance)


if __name__ == "__main__":
    main()
