"""How often DNA without a rearrangement is given one: false positives by what the DNA is.

Used by `vdj_annotate.py`.
"""

from __future__ import annotations

import gzip
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from annotation_accuracy import BLOCK
from support.molecule_simulation import random_sequence
from support.read_library import Library, block_of, simulate_reads

from plait.formats.fastq import ReadBlock
from plait.vdj.germline import GermlineSet
from plait.vdj.reads.annotator import ReadAnnotator

LENGTH = 150
ASKED = "; asked < 1e-5"


def noise(germlines: Sequence[GermlineSet], reads: int, genome: Path | None) -> Iterator[str]:
    """Rates of rearrangements in DNA that has none, and in halves of them, which are harder."""
    annotator = ReadAnnotator(germlines)
    rng = np.random.default_rng(1)
    receptors = simulate_reads(germlines, Library(reads=2000, clones=2000), seed=1)
    shuffled = [np.frombuffer(r.read.sequence.encode(), np.uint8) for r in receptors]
    shuffled = [read for read in shuffled if read.size == LENGTH]
    small = _genome(random.Random("genome"), 5386, 0.447)
    yield _line(annotator, "random DNA", reads, lambda n: _letters(rng, n), ASKED)
    yield _line(
        annotator,
        "shuffled receptor reads",
        reads // 2,
        lambda n: rng.permuted(np.stack([shuffled[i] for i in rng.integers(0, len(shuffled), n)]), axis=1),
        ASKED,
    )
    yield _line(
        annotator,
        "a random genome of the size and composition of PhiX174, 1 % errors",
        reads // 10,
        lambda n: _genome_reads(rng, small, n),
        ASKED,
    )
    if genome is not None:
        real = _fasta(genome)
        what = f"{genome.name}, {real.size:,} nt, 1 % errors"
        yield _line(annotator, what, reads // 2, lambda n: _genome_reads(rng, real, n), ASKED)
    halves = random.Random("halves")
    yield _line(
        annotator,
        "20 to 110 bases of the end of a V, then random DNA",
        reads // 20,
        lambda n: _texts([_with_v(germlines, halves) for _ in range(n)]),
    )
    yield _line(
        annotator,
        "random DNA, then a whole J",
        reads // 20,
        lambda n: _texts([_with_j(germlines, halves) for _ in range(n)]),
    )


def _with_v(germlines: Sequence[GermlineSet], rng: random.Random) -> str:
    v, size = rng.choice(rng.choice(germlines).v).sequence, rng.randint(20, 110)
    return v[-size:] + random_sequence(rng, LENGTH - size)


def _with_j(germlines: Sequence[GermlineSet], rng: random.Random) -> str:
    j, before = rng.choice(rng.choice(germlines).j).sequence, rng.randint(20, LENGTH - 75)
    return random_sequence(rng, before) + j + random_sequence(rng, LENGTH - before - len(j))


def _texts(sequences: Sequence[str]) -> np.ndarray:
    return block_of(sequences).letters.reshape(len(sequences), LENGTH)


def _letters(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, (n, LENGTH))]


def _genome(rng: random.Random, size: int, gc: float) -> np.ndarray:
    at = (1 - gc) / 2
    return np.frombuffer("".join(rng.choices("ACGT", (at, gc / 2, gc / 2, at), k=size)).encode(), np.uint8)


def _fasta(path: Path) -> np.ndarray:
    content = path.read_bytes()
    lines = (gzip.decompress(content) if path.suffix == ".gz" else content).upper().splitlines()
    return np.frombuffer(b"".join(line for line in lines if not line.startswith(b">")), np.uint8)


def _genome_reads(rng: np.random.Generator, genome: np.ndarray, n: int) -> np.ndarray:
    starts = rng.integers(0, genome.size - LENGTH, n)
    reads = genome[starts[:, None] + np.arange(LENGTH)]
    wrong = rng.random(reads.shape) < 0.01
    reads[wrong] = rng.choice(np.frombuffer(b"ACGT", np.uint8), int(wrong.sum()))
    partner = np.zeros(256, np.uint8) + np.uint8(ord("N"))
    partner[np.frombuffer(b"ACGT", np.uint8)] = np.frombuffer(b"TGCA", np.uint8)
    reverse = rng.random(n) < 0.5
    reads[reverse] = partner[reads[reverse, ::-1]]
    return reads


def _line(
    annotator: ReadAnnotator, what: str, reads: int, make: Callable[[int], np.ndarray], asked: str = ""
) -> str:
    found: Counter[str] = Counter()
    productive = 0
    for first in range(0, reads, BLOCK):
        n = min(BLOCK, reads - first)
        letters = make(n)
        starts = np.arange(n + 1, dtype=np.int64) * LENGTH
        block = ReadBlock([f"noise_{first + i}" for i in range(n)], letters.reshape(-1).copy(), starts, None)
        batch = annotator.annotate(block)[0]
        statuses = batch.column("annotation_status").to_pylist()
        found.update(statuses)
        flags = batch.column("productive").to_pylist()
        productive += sum(s == "ok" and bool(flag) for s, flag in zip(statuses, flags, strict=True))
    rest = ", ".join(f"{name} {number:,}" for name, number in found.most_common())
    rate = found["ok"] / reads
    return (
        f"{what}: {found['ok']:,} of {reads:,} reads get a junction ({rate:.1e}{asked}), {productive:,} a "
        f"productive one; {rest}"
    )
