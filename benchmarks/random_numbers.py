"""Random numbers: answers and speed on one processor beside NumPy's and SciPy's generators, in turn.

    python benchmarks/random_numbers.py [NUMBERS]

Answers are compared first: MT19937's words with NumPy's, Sobol's points with SciPy's, MRG32k3a's words with
its definition in Python integers. Then millions of numbers a second of processor, the best of several turns
of three calls, into memory that is there already.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from commands import processor_name
from scipy.stats import qmc

from plait.devices.target import CpuTarget
from plait.random import Mrg32k3a, Mt19937, Sobol
from plait.random.draws import Draws, Exponential, Normal, Uniform

MOST = {"float64": Uniform(1 - 2.0**-53), "float32": Uniform(1 - 2.0**-24)}


def check(n: int) -> None:
    """Compare answers."""
    peer = np.random.MT19937(5)
    state = peer.state["state"]
    own = Mt19937(key=state["key"], pos=state["pos"])
    assert np.array_equal(own.raw(n, threads=1), peer.random_raw(n))
    points = qmc.Sobol(16, scramble=False, bits=32).random(n // 16)
    assert np.array_equal(Sobol(16).uniform(n // 16, threads=2), points)
    p, q, words = [12345] * 3, [12345] * 3, Mrg32k3a().raw(100_000, threads=2)
    for word in words.tolist():
        p = [p[1], p[2], (1403580 * p[1] - 810728 * p[0]) % 4294967087]
        q = [q[1], q[2], (527612 * q[2] - 1370589 * q[0]) % 4294944443]
        assert word == (p[2] - q[2]) % 4294967087
    print(f"answers equal: {n:,} words of MT19937, {n // 16:,} points in 16 dimensions, 100,000 of MRG32k3a")


def rates(calls: dict[str, tuple[int, Callable[[], Any]]]) -> None:
    """Millions a second of each, called in turn."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(7):
        for name, (_, call) in calls.items():
            # What others have written is out of the way after the first.
            for _ in range(3):
                begun = time.thread_time()
                call()
                best[name] = min(best[name], time.thread_time() - begun)
    for name, (n, _) in calls.items():
        print(f"{name:44} {n / best[name] / 1e6:8,.0f} M/s")


def own(generator: Any, kind: Any, dtype: str, n: int) -> tuple[int, Callable[[], Any]]:
    """A launch on one thread."""
    inner = isinstance(kind, (Normal, Exponential))
    unit = generator._inner if inner else generator._unit
    shape = (generator.dimensions, n // generator.dimensions) if isinstance(generator, Sobol) else n
    out = np.empty(shape, dtype)
    asked = Draws(kind, unit, generator._source, out)
    return n, lambda: CpuTarget(1).launch(generator._problem, asked)


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="?", type=int, default=1 << 20)
    n = parser.parse_args().numbers
    warnings.simplefilter("ignore")
    print(f"{processor_name()}, load {os.getloadavg()[0]:.1f}")
    print(f"numpy {np.__version__}, scipy {scipy.__version__}, {n:,} numbers at a time")
    check(n)
    out, single = np.empty(n), np.empty(n, np.float32)
    calls: dict[str, tuple[int, Callable[[], Any]]] = {}
    for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox"):
        bits = getattr(np.random, name)(1)
        g = np.random.Generator(bits)
        calls[f"numpy {name} float64"] = n, lambda g=g: g.random(out=out)
        if name in ("MT19937", "PCG64"):
            calls[f"numpy {name} random_raw"] = n, lambda bits=bits: bits.random_raw(n)
            calls[f"numpy {name} float32"] = n, lambda g=g: g.random(out=single, dtype=np.float32)
            calls[f"numpy {name} normal (ziggurat)"] = n, lambda g=g: g.standard_normal(out=out)
    for d in (1, 16):
        sobol = qmc.Sobol(d, scramble=False, bits=32)
        calls[f"scipy Sobol, {d} dimensions, float64"] = n, lambda s=sobol, d=d: s.random(n // d)
    for g in (Mrg32k3a(), Sobol(1), Mt19937()):
        name = f"plait {type(g).__name__}"
        calls[f"{name} raw"] = own(g, g._word, "uint32", n)
        for dtype, kind in MOST.items():
            calls[f"{name} {dtype}"] = own(g, kind, dtype, n)
        calls[f"{name} normal (inverse, 2 ulp)"] = own(g, Normal(), "float64", n)
    calls["plait Sobol float64, 16 dimensions"] = own(Sobol(16), MOST["float64"], "float64", n)
    rates(calls)


if __name__ == "__main__":
    main()
