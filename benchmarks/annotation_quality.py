"""What becomes of clonotypes where reads have bases of low quality: precision and recall at every limit.

Used by `vdj_annotate.py`. Reads of known clones get scores, and at each base an error as often as its score
says. The scores are those of a FASTQ file, read by read, or of a model of an Illumina run.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from support.read_library import Library, block_of, simulate_reads
from support.read_simulation import Sequencing, SimulatedRead

from plait.formats.reads import open_reads
from plait.vdj.calls import first_gene
from plait.vdj.clonotypes.clonotypes import ClonotypeCollector, ClonotypeSettings
from plait.vdj.germline import GermlineSet
from plait.vdj.reads.annotator import ReadAnnotator
from plait.vdj.reads.rearrangements import AnnotationSettings

LIMITS = (0, 2, 5, 10, 15, 20, 25, 30)
BLOCK = 8192
#: Junction and J gene; V genes that fit a read equally well are another matter.
Key = tuple[str, str]


class Scored(NamedTuple):
    """Annotated reads with errors, and how many there are of each clone."""

    rows: list[pa.RecordBatch]
    clones: Counter[Key]


def model_scores(reads: int, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Phred scores of reads: about 38, and stretches of poor bases, more of them to the end of the read."""
    scores = np.clip(rng.normal(38.0, 1.5, (reads, length)).round(), 30, 41).astype(np.int64)
    share = 0.015 + 0.06 * (np.arange(length) / length) ** 2
    begins = rng.random((reads, length)) < share * rng.gamma(1.0, 1.0, (reads, 1))
    for shift in range(3):
        poor = np.zeros_like(begins)
        poor[:, shift:] = begins[:, : length - shift] & (rng.random((reads, length - shift)) < 0.6**shift)
        scores[poor] = rng.integers(2, 28, int(poor.sum()))
    return scores


def scores_of(path: Path, reads: int, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Scores of random reads of a file that are long enough."""
    found: list[NDArray[np.uint8]] = []
    with open_reads([path]) as reader:
        for item in reader:
            block = item.reads
            if block.qualities is None:
                raise SystemExit(f"{path} has no qualities")
            for k in np.flatnonzero(block.lengths >= length).tolist():
                found.append(block.qualities[block.starts[k] : block.starts[k] + length])
            if len(found) > 200_000:
                break
    return np.array(found, np.int64)[rng.integers(0, len(found), reads)]


def with_errors(read: str, scores: NDArray[np.int64], rng: np.random.Generator) -> str:
    """A read with another base as often as the scores say."""
    letters = np.frombuffer(read.encode(), np.uint8).copy()
    wrong = np.flatnonzero(rng.random(letters.size) < 10 ** (-scores[: letters.size] / 10))
    places = np.searchsorted(np.frombuffer(b"ACGT", np.uint8), letters[wrong])
    letters[wrong] = np.frombuffer(b"ACGT", np.uint8)[(places + rng.integers(1, 4, wrong.size)) % 4]
    return letters.tobytes().decode()


def clonotype_curve(germline: GermlineSet, reads: int, qualities: Path | None, seed: int) -> Iterator[str]:
    """Clonotypes of simulated reads at every limit, line by line."""
    rng = np.random.default_rng(seed)
    library = Library(reads=reads, clones=reads // 20, skew=1.0, sequencing=Sequencing(placement="primer"))
    made = list(simulate_reads([germline], library, seed=seed))
    length = library.sequencing.length
    drawn = (
        model_scores(reads, length, rng) if qualities is None else scores_of(qualities, reads, length, rng)
    )
    texts = [with_errors(r.read.sequence, own, rng) for r, own in zip(made, drawn, strict=True)]
    found = Scored(_annotated(germline, texts, drawn), Counter(_key(read) for read in made))
    yield f"{reads:,} reads of {len(found.clones):,} clones, mean quality {drawn.mean():.1f}"
    for satellites in (None, 20.0):
        yield "" if satellites is None else f"with satellites merged, --merge-satellites {satellites:.0f}"
        yield (
            f"{'limit':<16}{'clonotypes':>11}{'precision':>11}{'recall':>9}{'reads right':>13}{'wrong':>8}"
            f"{'lost':>8}{'below':>8}{'joined':>8}"
        )
        for limit in LIMITS:
            for joins in (False, True) if limit else (True,):
                yield _line(found, limit, satellites, joins)


def _annotated(germline: GermlineSet, texts: list[str], scores: NDArray[np.int64]) -> list[pa.RecordBatch]:
    annotator = ReadAnnotator([germline], settings=AnnotationSettings(min_junction_quality=0))
    qualities = [
        (own[: len(text)] + 33).astype(np.uint8).tobytes().decode()
        for text, own in zip(texts, scores, strict=True)
    ]
    names = [str(k) for k in range(len(texts))]
    return [
        annotator.annotate(
            block_of(texts[k : k + BLOCK], names=names[k : k + BLOCK], qualities=qualities[k : k + BLOCK])
        )[0]
        for k in range(0, len(texts), BLOCK)
    ]


def _key(read: SimulatedRead) -> Key:
    molecule = read.molecule
    return molecule.junction, first_gene(molecule.j_call)


def _good(batch: pa.RecordBatch, limit: int) -> pa.RecordBatch:
    """Rows whose junction has no base below a limit."""
    rows = batch.select(["quality", "cdr3_start", "cdr3_end"]).to_pylist()
    kept = [
        row["cdr3_start"] is None
        or min(row["quality"][row["cdr3_start"] - 4 : row["cdr3_end"] + 3]) >= chr(limit + 33)
        for row in rows
    ]
    return batch.filter(pa.array(kept))


def _line(found: Scored, limit: int, satellites: float | None, joins: bool) -> str:
    settings = ClonotypeSettings(satellite_ratio=satellites, min_quality=limit)
    with tempfile.TemporaryDirectory() as folder, ClonotypeCollector(f"{folder}/rows", settings) as collector:
        for batch in found.rows:
            collector.add(batch if joins else _good(batch, limit))
        table = pa.Table.from_batches(collector.finish(), collector.schema)
    counts = collector.counts
    called: Counter[Key] = Counter()
    for row in table.select(["junction", "j_call", "duplicate_count"]).to_pylist():
        called[row["junction"], first_gene(row["j_call"])] += row["duplicate_count"]
    true = len(called.keys() & found.clones.keys())
    right = (called & found.clones).total()
    total, reads = called.total(), found.clones.total()
    shares = (right / reads, (total - right) / reads, 1 - total / reads, counts.low_quality / reads)
    return (
        f"{limit:>3} {'joined' if joins and limit else 'left out' if limit else '':<12}{len(called):>11,}"
        f"{true / len(called):>11.2%}{true / len(found.clones):>9.2%}{shares[0]:>13.2%}{shares[1]:>8.2%}"
        f"{shares[2]:>8.2%}{shares[3]:>8.2%}{counts.joined / reads:>8.2%}"
    )
