"""Speed of `plait find` on GPUs: kernels alone by CUDA events, whole commands, and answers beside the CPU's.

    python benchmarks/gpu/find.py [--letters 268435456] [--patterns 100] [--seed 1] [--device cuda]
        [--genome 3100000000] [--guides 1000] [--fasta] [--processors]

Texts are made up, of letters drawn alike. For each way of searching a text of `--letters`, in memory, is
looked through twice, the second time with an event before and behind every launch: seconds of kernels, and
letters times patterns, or sites times patterns, a second of the kernel that compares. The hits of the first
2^24 letters are compared with those of the CPU, column by column.

With `--genome` a 2bit file (`--fasta`: and a FASTA file) of so many letters in 24 sequences is written to a
temporary folder, and `--guides` guides are looked for beside NGG with 4 mismatches: kernels in this process,
then the command, twice, with the time of the machine's clock; `--processors` runs it on the CPU too. The
outputs of all have to be the same.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from plait.devices.cuda import CudaKernel, cuda
from plait.devices.driver import probe
from plait.mapping.hits import HitRows, joined, no_hits
from plait.mapping.patterns import read_patterns
from plait.mapping.search import Finder, FindSettings, found_in

_CHECKED = 1 << 24
_LETTERS = np.frombuffer(b"TCAG", np.uint8)
#: Ways of searching: words for it, settings, and the kernel that compares.
_WAYS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("20 letters, 4 mismatches", {"mismatches": 4, "strands": "+"}, "mismatch_words"),
    ("20 letters, 4 edits", {"errors": 4, "edits": True, "report": "ends", "strands": "+"}, "edit_words"),
    ("beside NGG, 4 mismatches", {"mismatches": 4, "pam": "NGG"}, "mismatch_words"),
    (
        "beside NGG, 4 mismatches and a bulge of each kind",
        {"mismatches": 4, "pam": "NGG", "dna_bulges": 1, "rna_bulges": 1},
        "few_level_words",
    ),
)


def _wait() -> None:
    """Half a millisecond and more of a device's time."""
    for _ in range(1000):
        cuda.nanosleep(1000)


@contextmanager
def timed_launches() -> Iterator[dict[str, float]]:
    """Seconds of the kernels that are launched meanwhile, by name, once it is over."""
    seconds: dict[str, float] = defaultdict(float)
    delay = cuda.jit(_wait)
    events: list[tuple[str, Any, Any]] = []
    launch = CudaKernel.launch

    def timed(self: CudaKernel, *how: Any, stream: Any = 0, **more: Any) -> None:
        start, end = cuda.event(), cuda.event()
        # The device has something to do until the launch has come, which is not its time.
        delay[1, 1, stream]()
        start.record(stream)
        launch(self, *how, stream=stream, **more)
        end.record(stream)
        events.append((self.name.rpartition(".")[2], start, end))

    CudaKernel.launch = timed  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        CudaKernel.launch = launch  # type: ignore[method-assign]
        cuda.synchronize()
        for name, start, end in events:
            seconds[name] += cuda.event_elapsed_time(start, end) / 1e3


def drawn(rng: np.random.Generator, count: int) -> dict[str, str]:
    """Patterns of 20 letters."""
    return {f"p{k}": _LETTERS[rng.integers(0, 4, 20)].tobytes().decode() for k in range(count)}


def searched(
    patterns: dict[str, str], text: Any, device: str, **settings: Any
) -> tuple[Finder, list[HitRows]]:
    """Hits of patterns in a text."""
    finder = Finder(read_patterns(patterns), FindSettings(device=device, **settings))
    return finder, [rows for _, rows in found_in(finder, text)]


def compare(patterns: dict[str, str], text: Any, device: str, **settings: Any) -> int:
    """Number of hits, which are those of the CPU."""
    finder, one = searched(patterns, text, device, **settings)
    other_finder, other = searched(patterns, text, "cpu", **settings)
    assert finder.sites == other_finder.sites, (finder.sites, other_finder.sites)
    assert np.array_equal(finder.totals, other_finder.totals)
    # How texts are cut is another matter.
    a, b = joined([no_hits(), *one]), joined([no_hits(), *other])
    for field in fields(HitRows):
        assert np.array_equal(getattr(a, field.name), getattr(b, field.name)), field.name
    return int(finder.totals.sum())


def kernels(options: argparse.Namespace) -> None:
    """A line for each way of searching."""
    rng = np.random.default_rng(options.seed)
    patterns = drawn(rng, options.patterns)
    text = _LETTERS[rng.integers(0, 4, options.letters, dtype=np.uint8)].tobytes()
    for words, settings, compares in _WAYS:
        hits = compare(patterns, text[:_CHECKED], options.device, **settings)
        own = {"count_only": True, **settings}
        searched(patterns, text, options.device, **own)
        begin = time.perf_counter()
        with timed_launches() as seconds:
            finder, _ = searched(patterns, text, options.device, **own)
        wall = time.perf_counter() - begin
        looked = finder.sites or len(text)
        rate = looked * len(patterns) / seconds[compares] / 1e12
        told = ", ".join(f"{name} {1e3 * value:.2f} ms" for name, value in seconds.items())
        print(
            f"{words}: {len(patterns)} patterns, {len(text):,} letters, {looked:,} places: "
            f"{rate:.2f} T places x patterns/s; {told}; all {wall:.2f} s; "
            f"{hits:,} hits in {_CHECKED:,} letters as the CPU's",
            flush=True,
        )


def write_genome(folder: Path, letters: int, seed: int, *, fasta: bool) -> list[Path]:
    """A 2bit file of 24 sequences, and the same as FASTA."""
    rng = np.random.default_rng(seed)
    names = [f"chr{k}" for k in range(1, 25)]
    size = letters // len(names)
    paths = [folder / "genome.2bit"]
    with open(paths[0], "wb") as file:
        file.write(struct.pack("<IIII", 0x1A412743, 0, len(names), 0))
        at = 16 + sum(1 + len(name) + 4 for name in names)
        for name in names:
            file.write(bytes([len(name)]) + name.encode() + struct.pack("<I", at))
            at += 16 - (-size // 4)
        packed = []
        for _ in names:
            packed.append(rng.bytes(-(-size // 4)))
            file.write(struct.pack("<IIII", size, 0, 0, 0) + packed[-1])
    if fasta:
        from plait.formats.twobit import read_two_bit

        paths.append(folder / "genome.fa")
        with open(paths[1], "wb") as file:
            for part in read_two_bit(paths[0], piece=60 << 16):
                if part.start == 0:
                    file.write(b"\n>" + part.name.encode() + b"\n" if part.name != names[0] else b">chr1\n")
                rows = part.letters.size // 60
                lines = np.full((rows, 61), ord("\n"), np.uint8)
                lines[:, :60] = part.letters[: rows * 60].reshape(rows, 60)
                file.write(lines.tobytes() + part.letters[rows * 60 :].tobytes())
            file.write(b"\n")
    return paths


def commands(options: argparse.Namespace) -> None:
    """Kernels of a genome, and whole commands."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        guides = drawn(np.random.default_rng(options.seed + 1), options.guides)
        (folder / "guides.tsv").write_text("".join(f"{key}\t{value}\n" for key, value in guides.items()))
        paths = write_genome(folder, options.genome, options.seed, fasta=options.fasta)
        print(f"{options.genome:,} letters written", flush=True)
        settings = {"mismatches": 4, "pam": "NGG"}
        begin = time.perf_counter()
        with timed_launches() as seconds:
            finder, _ = searched(guides, paths[0], options.device, count_only=True, **settings)
        told = ", ".join(f"{key} {value:.3f} s" for key, value in seconds.items())
        print(
            f"{len(guides)} guides, {finder.letters:,} letters, {finder.sites:,} sites, "
            f"{finder.totals.sum():,} hits: "
            f"kernels {sum(seconds.values()):.3f} s ({told}); all {time.perf_counter() - begin:.2f} s",
            flush=True,
        )
        devices = [options.device] * 2 + ["cpu"] * options.processors
        for path in paths:
            for number, device in enumerate(devices):
                out = folder / f"{path.suffix[1:]}{number}.tsv"
                line = [folder / "guides.tsv", path, "--pam", "NGG", "--mismatches", "4", "--device", device]
                begin = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-m", "plait", "find", *map(str, line), "-o", str(out)],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                wall = time.perf_counter() - begin
                assert filecmp.cmp(out, folder / "2bit0.tsv", shallow=False), f"{out} is another one"
                print(
                    f"find {path.name} on {device}: {wall:.2f} s; {done.stderr.splitlines()[-1]}", flush=True
                )


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--letters", type=int, default=1 << 28)
    parser.add_argument("--patterns", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--genome", type=int, default=0)
    parser.add_argument("--guides", type=int, default=1000)
    parser.add_argument("--fasta", action="store_true")
    parser.add_argument("--processors", action="store_true")
    options = parser.parse_args()
    names = ", ".join(found.name for found in probe().devices)
    print(f"{names}; {os.cpu_count()} processors", flush=True)
    if options.letters:
        kernels(options)
    if options.genome:
        commands(options)


if __name__ == "__main__":
    main()
