"""Speed of mapping reads with diagonals looked at on GPUs: that kernel alone, and all of it beside the CPU's.

    python benchmarks/gpu/map.py [--letters 3100000000] [--reads 2000000] [--errors 3] [--device cuda]
        [--threads N] [--pairs 4194304]

The text is made up, of letters drawn alike in 24 sequences, in memory; reads are 100 letters of it with up
to `--errors` letters changed, of a third of them one is left out. The kernel is timed by CUDA events, for
diagonals of which half belong to other reads. All of it is what `plait.mapping.mapper` does with a file of
reads but for writing: reading, seeds, diagonals, checks, alignments; loci of all devices have to be the same.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import CudaKernel, cuda
from plait.devices.driver import probe
from plait.devices.target import CpuTarget, resolve
from plait.mapping.index import Index
from plait.mapping.mapper import Mapper, MapSettings, mapped_blocks
from plait.mapping.seeds import packed_reads
from plait.mapping.verification import BEYOND, DIAGONALS, DiagonalBatch

_LETTERS = np.frombuffer(b"ACGT", np.uint8)
_SIZE = 100


def reads_of(rng: np.random.Generator, text: Any, count: int, errors: int) -> tuple[Any, Any]:
    """Reads, uint8 (count, letters), and where they come from."""
    places = rng.integers(0, text.size - _SIZE - 1, count)
    found = text[places[:, None] + np.arange(_SIZE + 1)]
    for _ in range(errors - 1):
        found[np.arange(count), rng.integers(0, _SIZE, count)] = _LETTERS[rng.integers(0, 4, count)]
    lacking = np.where(rng.random(count) < 1 / 3, rng.integers(1, _SIZE, count), _SIZE)
    columns = np.arange(_SIZE)
    return np.take_along_axis(found, columns + (columns >= lacking[:, None]), axis=1), places


def kernel_alone(mapper: Mapper, reads: Any, places: Any, pairs: int, device: str) -> None:
    """Diagonals a second of the kernel, with the answers checked."""
    count, errors = len(reads), mapper.settings.errors
    starts, lengths = np.arange(count + 1, dtype=np.int64) * _SIZE, np.full(count, _SIZE)
    packed = packed_reads(reads.ravel(), starts, lengths, np.full(count, errors))
    rng = np.random.default_rng(5)
    rows = rng.integers(0, count, pairs)
    beside = np.where(rng.random(pairs) < 0.5, places[rng.integers(0, count, pairs)], places[rows])
    contigs = mapper.index.genome.starts
    size = int(mapper.index.genome.lengths[0])
    keys = (rows * 2 << 32) | (contigs[beside // size] + beside % size)
    batch = DiagonalBatch(mapper.index.arrays.words, packed, keys, True)
    target = resolve(device)
    events: list[tuple[Any, Any]] = []
    launch = CudaKernel.launch

    def timed(self: CudaKernel, *how: Any, stream: Any = 0, **more: Any) -> None:
        start, end = cuda.event(), cuda.event()
        start.record(stream)
        launch(self, *how, stream=stream, **more)
        end.record(stream)
        events.append((start, end))

    target.launch(DIAGONALS, batch)
    CudaKernel.launch = timed  # type: ignore[method-assign]
    begin = time.perf_counter()
    found = target.launch(DIAGONALS, batch)
    wall = time.perf_counter() - begin
    CudaKernel.launch = launch  # type: ignore[method-assign]
    cuda.synchronize()
    seconds = sum(cuda.event_elapsed_time(*pair) for pair in events) / 1e3
    part = batch._replace(keys=keys[: 1 << 18])
    begin = time.process_time()
    expected = CpuTarget(1).launch(DIAGONALS, part)
    cpu = time.process_time() - begin
    assert np.array_equal(found[: 1 << 18], expected)
    print(
        f"diagonals: {pairs:,}, {(found != BEYOND).mean():.2f} within {errors} errors; "
        f"kernel {pairs / seconds / 1e9:.2f} G/s, with copies {pairs / wall / 1e6:.0f} M/s, one processor "
        f"{(1 << 18) / cpu / 1e6:.1f} M/s",
        flush=True,
    )


def files_of(reads: NDArray[np.uint8], folder: Path) -> tuple[Path, Path]:
    """The reads as FASTQ and as FASTA."""
    fastq, fasta = folder / "reads.fq", folder / "reads.fa"
    lines = np.full((len(reads), 2 * _SIZE + 7), ord("\n"), np.uint8)
    lines[:, :2] = np.frombuffer(b"@r", np.uint8)
    lines[:, 3 : _SIZE + 3] = reads
    lines[:, _SIZE + 4] = ord("+")
    lines[:, _SIZE + 6 : -1] = ord("I")
    fastq.write_bytes(lines.tobytes())
    lines[:, 0] = ord(">")
    fasta.write_bytes(lines[:, : _SIZE + 4].tobytes())
    return fastq, fasta


def main() -> None:
    """Build the index, time the kernel, and map."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--letters", type=int, default=3_100_000_000)
    parser.add_argument("--reads", type=int, default=2_000_000)
    parser.add_argument("--errors", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--pairs", type=int, default=1 << 22)
    options = parser.parse_args()
    print(", ".join(found.name for found in probe().devices), f"{os.cpu_count()} processors", flush=True)
    rng = np.random.default_rng(1)
    size = options.letters // 24
    text = _LETTERS[rng.integers(0, 4, 24 * size, dtype=np.uint8)]
    begin = time.perf_counter()
    index = Index.build(
        {f"chr{k + 1}": text[k * size : (k + 1) * size].tobytes() for k in range(24)}, threads=options.threads
    )
    print(f"index of {text.size:,} letters: {time.perf_counter() - begin:.1f} s", flush=True)
    reads, places = reads_of(rng, text, options.reads, options.errors)
    own = MapSettings(errors=options.errors, threads=options.threads, device=options.device)
    inside = np.flatnonzero(places[: 1 << 16] % size + _SIZE < size)
    kernel_alone(Mapper(index, own), reads[inside], places[inside], options.pairs, options.device)
    with tempfile.TemporaryDirectory() as folder:
        fastq, fasta = files_of(reads, Path(folder))
        first = None
        ways = [(device, path) for device in ("cpu", options.device) for path in (fastq, fasta)]
        for device, path in 2 * ways:
            mapper = Mapper(index, MapSettings(errors=options.errors, threads=options.threads, device=device))
            begin = time.perf_counter()
            counts, sums = [], 0
            for block in mapped_blocks(mapper, path):
                counts.append(block.counts)
                sums += int((block.hits.start * (block.hits.contig + 1)).sum())
            wall = time.perf_counter() - begin
            told = (np.concatenate(counts).tobytes(), sums)
            first = told if first is None else first
            assert told == first, "other loci"
            loci = int(np.concatenate(counts).sum())
            print(
                f"{len(reads):,} reads, {loci:,} loci on {device}, {options.threads} threads, {path.suffix}: "
                f"{wall:.2f} s, {len(reads) / wall / 1e3:.0f} k reads/s",
                flush=True,
            )


if __name__ == "__main__":
    main()
