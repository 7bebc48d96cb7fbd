"""Folding on a GPU: short sequences by the hundred thousand, and long ones, beside the CPU's answers.

    python benchmarks/gpu/folding.py [--sweep]

Rates of short sequences are of kernels with everything on the device, and of the whole call. Best scores and
structures have to be those of the CPU, probabilities within 1e-9. `--sweep` tries other numbers of warps and
blocks.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from plait.devices.cuda import cuda
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.dp.intervals import gpu_fold, gpu_spans
from plait.dp.intervals.launches import ENSEMBLES, FOLDS, EnsembleBatch, FoldBatch, Strand
from plait.folding import Restraints, mfe
from plait.folding.energies import weigh
from plait.folding.folds import FoldSettings, codes_checked
from plait.lang.warps import WARP


def strands(count: int, shortest: int, longest: int) -> list[Strand]:
    """Random RNA."""
    draw = random.Random(longest)
    sizes = [draw.randint(shortest, longest) for _ in range(count)]
    return [Strand(codes_checked("".join(draw.choices("ACGU", k=size)), 1)) for size in sizes]


def fold_batch(given: list[Strand]) -> FoldBatch:
    """For best structures."""
    found = weigh(FoldSettings().model, "scores", 1 << 14)
    return FoldBatch(found.rule, found.algebra, found.loops, given)


def sum_batch(given: list[Strand], scale: float = 0.0) -> EnsembleBatch:
    """For probabilities; sums of long sequences are scaled."""
    found = weigh(FoldSettings().model, "sums", 1 << 14, scale)
    return EnsembleBatch(found.rule, found.algebra, found.loops, given, False, True, [[]] * len(given))


def least(run: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The least time of some runs behind one that compiles, and the answer."""
    run()
    times = []
    for _ in range(repeats):
        cuda.synchronize()
        begun = time.perf_counter()
        answer = run()
        cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return min(times), answer


def check() -> None:
    """Answers beside the CPU's."""
    gpu, cpu = CudaTarget((0,)), CpuTarget(None)
    for given in (strands(2000, 0, 120), strands(300, 100, 600), strands(2, 1500, 2000)):
        pairs = zip(gpu.launch(FOLDS, fold_batch(given)), cpu.launch(FOLDS, fold_batch(given)), strict=True)
        wrong = sum(one != two for one, two in pairs)
        print(
            f"{len(given)} sequences of up to {max(s.codes.size for s in given)}: {wrong} differ", flush=True
        )
    for given, scale in ((strands(300, 0, 120), 0.0), (strands(2, 500, 1000), 0.5)):
        batch = sum_batch(given, scale)
        apart = most = 0.0
        for one, two in zip(gpu.launch(ENSEMBLES, batch), cpu.launch(ENSEMBLES, batch), strict=True):
            most = max(most, abs(one.logarithm - two.logarithm) / max(1, abs(two.logarithm)))
            tables = [
                dict(zip(map(tuple, x.pairs.tolist()), x.probabilities, strict=True)) for x in (one, two)
            ]
            for key in tables[0].keys() | tables[1].keys():
                apart = max(apart, abs(tables[0].get(key, 0) - tables[1].get(key, 0)))
        print(
            f"{len(given)} ensembles: logarithms within {most:.1e}, probabilities within {apart:.1e}",
            flush=True,
        )


def check_enforced() -> None:
    """Constraints that are enforced, one a sequence, long ones among them."""
    draw, asked = random.Random(5), FoldSettings(enforce=True)
    texts = [
        "".join(draw.choices("ACGU", k=size)) for size in (*(draw.randint(20, 120) for _ in range(200)), 700)
    ]
    known = []
    for text in texts:
        signs = ["."] * len(text)
        best = mfe([text], threads=1).structures[0]
        for k in draw.sample(range(len(text)), 4):
            signs[k] = "x" if best[k] == "." else "|"
        known.append(Restraints("".join(signs)))
    one, two = (mfe(texts, asked, restraints=known, device=device) for device in ("cuda", "cpu"))
    wrong = sum(a != b for a, b in zip(one.structures, two.structures, strict=True))
    wrong += int((one.energies != two.energies).sum())
    print(f"{len(texts)} with enforced constraints: {wrong} differ", flush=True)


def kernels(given: list[Strand], *, walk: bool = False, ensemble: bool = True) -> list[float]:
    """Seconds of the fill, of ways back, of sums, and of these with derivatives, with all on the device."""
    found = []
    numbers, count = np.arange(len(given)), len(given)
    with gpu_fold._SLOTS.slot([0]) as (slot, _):
        sizes = np.array([strand.codes.size for strand in given], np.int64)
        piece = gpu_fold._Piece(fold_batch(given), sizes, numbers, 0, slot)
        n = piece.step
        found.append(least(lambda: piece.launch(gpu_spans.fill_spans))[0])
        if walk:
            room = cuda.to_device(np.zeros((1, 3 * n + 8), np.float32))
            left, signs = ((count, 3, n + 2), np.int32), ((count, n), np.uint8)
            room = (room, *(cuda.device_array(*like) for like in (left, signs)))
            blocks, ways_back = -(-count // WARP), gpu_spans.walk_sequences
            found.append(least(lambda: ways_back.launch(blocks, WARP, piece.given, *room))[0])
        if not ensemble:
            return [*found, 0.0, 0.0]
        sums = gpu_fold._Piece(sum_batch(given, 0.5 if n > 300 else 0.0), sizes, numbers, 0, slot)
        found.append(least(lambda: sums.launch(gpu_spans.fill_spans))[0])

        def all_of_it() -> None:
            sums.launch(gpu_spans.fill_spans)
            sums.launch(gpu_spans.derive_spans)

        found.append(least(all_of_it)[0])
    return found


def main() -> None:
    """Print a line for each kind of work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweep", action="store_true", help="other numbers of warps and blocks, too")
    options = parser.parse_args()
    gpu = CudaTarget((0,))
    print(gpu.description, flush=True)
    check()
    check_enforced()
    short = strands(1 << 15, 76, 76)
    kept = gpu_fold._WARPS, gpu_fold._BLOCKS
    shapes = [kept, (4, 4), (4, 8), (6, 4), (8, 3)] if options.sweep else [kept]
    for gpu_fold._WARPS, gpu_fold._BLOCKS in shapes:
        fill, walk, sums, both = (1e3 * seconds for seconds in kernels(short, walk=True))
        print(f"{len(short)} x 76, {gpu_fold._BLOCKS} blocks of {gpu_fold._WARPS} warps: ", end="")
        print(f"fill {fill:.1f}, walk {walk:.1f} ms, {1e3 * len(short) / (fill + walk):,.0f}/s; ", end="")
        print(f"sums {sums:.1f}, probabilities {both:.1f} ms, {1e3 * len(short) / both:,.0f}/s", flush=True)
    gpu_fold._WARPS, gpu_fold._BLOCKS = kept
    for many in (short, 4 * short):
        taken, _ = least(lambda many=many: gpu.launch(FOLDS, fold_batch(many)), 5)
        print(f"whole launch of {len(many)} {taken * 1e3:.0f} ms, {len(many) / taken:,.0f}/s", flush=True)
    widths = (gpu_fold._LONG_WARPS, 8) if options.sweep else (gpu_fold._LONG_WARPS,)
    for n in (1000, 3000, 10000):
        (long,) = strands(1, n, n)
        for gpu_fold._LONG_WARPS in widths:
            fill, sums, both = (1e3 * seconds for seconds in kernels([long], ensemble=n < 10000))
            taken, _ = least(lambda long=long: gpu.launch(FOLDS, fold_batch([long])), 20 if n < 10000 else 3)
            print(f"{n} bases, {gpu_fold._LONG_WARPS} warps: fill {fill:.1f}, sums {sums:.1f} ms, ", end="")
            print(f"and derivatives {both:.1f} ms; least energy {taken * 1e3:.1f} ms", flush=True)
        gpu_fold._LONG_WARPS = widths[0]
        if n < 10000:
            batch = sum_batch([long], 0.5)
            taken, _ = least(lambda batch=batch: gpu.launch(ENSEMBLES, batch), 5)
            print(f"{n} bases: probabilities {taken * 1e3:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
