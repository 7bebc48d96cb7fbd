#!/usr/bin/env python3
"""What the assembler says of every CUDA kernel: registers, local memory, spills, static shared memory.

Needs the extra cuda13 and no device. Usage: python tools/cuda_kernels.py [part of a name] [--capability 9.0]
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil

from support.cuda_build import build
from support.cuda_examples import examples_of

import plait.devices
import plait.dp.bitparallel
import plait.dp.chain
import plait.dp.intervals
import plait.dp.pairs
import plait.ldpc
import plait.mapping
import plait.qgrams
import plait.random
import plait.states
from plait.devices.cuda import KERNELS


def main() -> None:
    """Print a line for each kernel and example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", default="", help="only kernels with this in their name")
    parser.add_argument("--capability", default="9.0")
    options = parser.parse_args()
    major, _, minor = options.capability.partition(".")
    rooms = plait.devices, plait.dp.bitparallel, plait.dp.chain, plait.dp.pairs, plait.mapping
    for room in (*rooms, plait.dp.intervals, plait.ldpc, plait.qgrams, plait.random, plait.states):
        for found in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            if found.name.rpartition(".")[2].startswith(("cuda", "gpu")):
                importlib.import_module(found.name)
    print(f"{'kernel':<58} {'example':>7} {'registers':>9} {'stack':>6} {'spills':>6} {'shared':>6}")
    for name, kernel in sorted(KERNELS.items()):
        if options.part not in name:
            continue
        for number, arguments in enumerate(examples_of(kernel)):
            made = build(kernel, arguments, (int(major), int(minor or 0)))
            told = f"{made.registers:>9} {made.stack:>6} {made.spills:>6} {made.shared:>6}"
            print(f"{name.removeprefix('plait.'):<58} {number:>7} {told}")


if __name__ == "__main__":
    main()
