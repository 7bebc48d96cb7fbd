"""Parity-check codes: speed on one processor beside the package ldpc, in turn, at 10 iterations.

    python benchmarks/parity_codes.py [--peer PYTHON]

A regular code of 3 checks a bit and 6 bits a check, of 1,024 and 8,000 bits, with so much noise that no word
is found early; millions of sent bits a second of processor. PYTHON is an interpreter with the package ldpc,
which decodes the same code in a process of its own, between two turns of plait; at 5 % of errors, where
nearly all words are found by both, its answers have to be the words sent, as those of plait.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from commands import processor_name

from plait.devices.target import CpuTarget
from plait.ldpc import Code, decode
from plait.ldpc.decoding import _DECODING, DecodeBatch

PEER = """
import json, sys, time
import numpy as np, scipy.sparse as sp
import ldpc
found = np.load(sys.argv[1])
rows, errors, m, n = found["rows"], found["errors"], int(found["m"]), int(found["n"])
H = sp.csr_matrix((np.ones(rows.size, np.uint8), (np.repeat(np.arange(m), 6), rows)), shape=(m, n))
out = {"version": ldpc.__version__}
for method in ("product_sum", "minimum_sum"):
    decoder = ldpc.BpDecoder(H, error_rate=0.05, max_iter=10, bp_method=method, schedule="parallel",
                             ms_scaling_factor=0.75)
    syndromes = [np.asarray(H @ e % 2, np.uint8).ravel() for e in errors]
    begun, steps, right = time.process_time(), 0, 0
    for syndrome, error in zip(syndromes, errors):
        right += bool((decoder.decode(syndrome) == error).all())
        steps += decoder.iter
    seconds = time.process_time() - begun
    out[method] = errors.size * steps / len(errors) / 10 / seconds / 1e6, right
print(json.dumps(out))
"""


def regular(size: int) -> Code:
    """Columns in three checks of six; pairs of the same column are exchanged away."""
    rng = np.random.default_rng(1)
    rows = rng.permutation(np.repeat(np.arange(size), 3)).reshape(-1, 6)
    while bad := [m for m, row in enumerate(rows) if len(set(row.tolist())) < 6]:
        for m in bad:
            other, i, j = rng.integers(len(rows)), *rng.integers(6, size=2)
            rows[m, i], rows[other, j] = rows[other, j], rows[m, i]
    return Code("regular (3, 6)", size, rows.tolist())


def speed(code: Code, method: Any, layered: bool, kind: Any, words: int) -> float:
    """Millions of bits a second of processor, 10 iterations each."""
    ratios = np.random.default_rng(2).normal(1, 1.4, (words, code.n))
    batch = DecodeBatch(code, ratios, method, layered, 10, kind)
    best = np.inf
    for _ in range(6):
        begun = time.thread_time()
        _, iterations, _ = CpuTarget(1).launch(_DECODING, batch)
        best = min(best, time.thread_time() - begun)
    assert iterations.min() == 10
    return ratios.size / best / 1e6


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="an interpreter with ldpc and scipy")
    peer = parser.parse_args().peer
    print(f"{processor_name()}, load {os.getloadavg()[0]:.1f}; Mbit/s, 10 iterations")
    for size in (1024, 8000):
        code = regular(size)
        errors = (np.random.default_rng(3).random((24, size)) < 0.05).astype(np.uint8)
        right = {}
        for method in ("sum-product", "min-sum"):
            log_ratio = np.log(0.95 / 0.05)
            found = decode(np.where(errors, -log_ratio, log_ratio), code, method=method, schedule="flooding")
            right[method] = int((found.bits == 0).all(axis=1).sum())
        rates = {
            f"plait {method} {'layered' if layered else 'flooding'}": speed(
                code, method, layered, kind, words
            )
            for method, kind, words in (("min-sum", np.int8, 128), ("sum-product", np.float32, 32))
            for layered in (False, True)
        }
        for name, rate in rates.items():
            print(f"{size:6,} bits  {name:28} {rate:9.2f}   {right[name.split()[1]]} of 24 words right")
        if peer is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "code.npz"
            np.savez(path, rows=code.bits, errors=errors, m=code.starts.size - 1, n=size)
            done = subprocess.run([peer, "-c", PEER, path], capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        for method, own in (("product_sum", "sum-product"), ("minimum_sum", "min-sum")):
            rate, good = told[method]
            ratio = rates[f"plait {own} flooding"] / rate
            name = f"ldpc {told['version']} {method}"
            print(f"{size:6,} bits  {name:28} {rate:9.2f}   {good} of 24 words right; plait {ratio:.0f} x")


if __name__ == "__main__":
    main()
