"""Index and map on one core, in processor seconds: rates, and completeness by brute force.

Genomes are generated: a bacterium's size without repeats but chance, and 70 Mb of which a tenth are copies of
five families of 300 letters that are 2 to 20 % apart, with microsatellites. Reads of 100 letters have 0 to E
random substitutions, insertions and deletions, uniformly. A sample of them is compared, locus by locus, with
edit distances at every position of the genome.

    python benchmarks/mapping_reads.py                    # all
    python benchmarks/mapping_reads.py --letters 4600000 --errors 5 --reads 100000 --sample 20
    python benchmarks/mapping_reads.py --lookups          # lookups in blocks of neighbourhoods

razers3 and yara_mapper (package seqan-apps) run where they are on the path; where not, a line says so. So
does minimap2 as the package ``mappy``, which looks for the best places and not for all: how many of the loci
it tells is counted beside its speed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from support.lookups import (
    PerfectHash,
    automaton_errors,
    ball,
    binary_search_kernel,
    probe_kernel,
    scan_kernel,
)

from plait.formats.reads import open_reads
from plait.lang.compile import host_vector_bits, kernel
from plait.mapping import Index
from plait.mapping.genome import CODE_OF_BYTE
from plait.mapping.map_files import map_files
from plait.mapping.mapper import Mapper, MapSettings, map_reads

LETTERS = np.frombuffer(b"ACGT", np.uint8)
LENGTH = 100


def generated(letters: int, seed: int) -> np.ndarray:
    """Codes of a genome."""
    rng = np.random.default_rng(seed)
    genome = rng.integers(0, 4, letters).astype(np.uint8)
    if letters < 10_000_000:
        return genome
    families = rng.integers(0, 4, (5, 300)).astype(np.uint8)
    for place in rng.integers(0, letters - 300, letters // 3000):
        copy = families[rng.integers(5)].copy()
        other = rng.random(300) < rng.uniform(0.02, 0.2)
        copy[other] = rng.integers(0, 4, int(other.sum()))
        genome[place : place + 300] = copy
    for place in rng.integers(0, letters - 300, letters // 50_000):
        size = int(rng.integers(20, 200))
        genome[place : place + size] = np.resize(rng.integers(0, 4, rng.integers(1, 7)), size)
    return genome


def drawn(genome: np.ndarray, count: int, errors: int, seed: int) -> list[np.ndarray]:
    """Codes of reads of both strands."""
    rng = np.random.default_rng(seed)
    reads = []
    for place in rng.integers(0, genome.size - LENGTH - 10, count):
        read = genome[place : place + LENGTH + 6].tolist()
        for _ in range(rng.integers(0, errors + 1)):
            at, kind = int(rng.integers(LENGTH - 5)), rng.integers(3)
            if kind == 0:
                read[at] = int(rng.integers(4))
            elif kind == 1:
                del read[at]
            else:
                read.insert(at, int(rng.integers(4)))
        own = np.array(read[:LENGTH], np.uint8)
        reads.append(3 - own[::-1] if rng.random() < 0.5 else own)
    return reads


@kernel
def distances_kernel(read, text, column, out) -> None:  # type: ignore[no-untyped-def]
    """Edit distance of a read to what ends at each letter of a text: the plain recurrence."""
    for i in range(column.size):
        column[i] = i
    for j in range(text.size):
        diagonal = column[0]
        for i in range(read.size):
            value = min(diagonal + (read[i] != text[j]), min(column[i], column[i + 1]) + 1)
            diagonal = column[i + 1]
            column[i + 1] = value
        out[j] = column[read.size]


def brute_force(read: np.ndarray, text: np.ndarray, errors: int) -> list[tuple[str, int, int]]:
    """(strand, end, distance) of all loci."""
    found = []
    out = np.empty(text.size, np.uint8)
    for strand, query in (("+", read), ("-", np.ascontiguousarray(3 - read[::-1]))):
        distances_kernel(query, text, np.empty(read.size + 1, np.int64), out)
        last = None
        for end in np.flatnonzero(out <= errors).tolist():
            if errors == 0 or last is None or end - last > errors + 1:
                found.append((strand, end + 1, int(out[end])))
            elif out[end] < found[-1][2]:
                found[-1] = strand, end + 1, int(out[end])
            last = end
    return sorted(found)


def processor_seconds(work) -> tuple[float, object]:  # type: ignore[no-untyped-def]
    """Of the best of four runs, the first of which may load and compile."""
    best, result = float("inf"), None
    for _ in range(4):
        begun = time.process_time()
        result = work()
        best = min(best, time.process_time() - begun)
    return best, result


def peers(folder: Path, errors: int) -> None:
    """Other programs that find all loci."""
    commands = {
        "razers3": [
            "razers3",
            "-i",
            str(100 - errors),
            "-rr",
            "100",
            "-m",
            "1000000",
            "-tc",
            "1",
            "-o",
            "p.sam",
        ],
        "yara_mapper": [
            "yara_mapper",
            "-y",
            "full",
            "-s",
            str(errors),
            "-e",
            str(errors),
            "-t",
            "1",
            "-o",
            "p.bam",
        ],
    }
    for name, words in commands.items():
        if shutil.which(name) is None:
            print(f"  {name}: not installed here")
            continue
        target = "g" if name.startswith("yara") else "g.fa"
        if target == "g":
            subprocess.run(["yara_indexer", "g.fa", "-o", "g"], cwd=folder, check=True, capture_output=True)
        before = os.times()
        subprocess.run([*words, target, "r.fq"], cwd=folder, check=True, capture_output=True)
        after = os.times()
        seconds = after.children_user + after.children_system - before.children_user - before.children_system
        print(f"  {name}: {seconds:.2f} s of processor")


def processor() -> str:
    """The model of the processor."""
    if (facts := Path("/proc/cpuinfo")).exists():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def best_places(folder: Path, reads: list[np.ndarray], loci: list[tuple[int, str, int]], errors: int) -> None:
    """minimap2 for short reads with its secondary alignments: speed, and how many of the loci it tells."""
    if importlib.util.find_spec("mappy") is None:
        print("  minimap2: mappy is not installed here")
        return
    import mappy

    aligner = mappy.Aligner(str(folder / "g.fa"), preset="sr", best_n=1000, n_threads=1)
    texts = [LETTERS[read].tobytes().decode() for read in reads]
    told: list[tuple[int, str, int]] = []

    def work() -> None:
        told[:] = [
            (k, "+" if hit.strand == 1 else "-", hit.r_en)
            for k, text in enumerate(texts)
            for hit in aligner.map(text)
        ]

    seconds, _ = processor_seconds(work)
    near = {(k, strand, end + d) for k, strand, end in told for d in range(-2 * errors - 1, 2 * errors + 2)}
    found = sum(own in near for own in loci)
    share = found / max(len(loci), 1)
    print(
        f"  minimap2 {mappy.__version__} (best_n 1000, no files): {len(reads) / seconds:,.0f} reads/s, "
        f"{share:.2%} of the loci"
    )


def run(letters: int, errors: int, count: int, sample: int, folder: Path) -> None:
    """One genome and number of errors."""
    genome = generated(letters, 1)
    reads = drawn(genome, count, errors, 2)
    (folder / "g.fa").write_bytes(b">c\n" + LETTERS[genome].tobytes() + b"\n")
    qualities = np.random.default_rng(3).integers(53, 74, (count, LENGTH)).astype(np.uint8)
    with (folder / "r.fq").open("wb") as file:
        for k, read in enumerate(reads):
            file.write(b"@r%d\n%s\n+\n%s\n" % (k, LETTERS[read].tobytes(), qualities[k].tobytes()))
    seconds, index = processor_seconds(lambda: Index.build(folder / "g.fa", threads=1))
    assert isinstance(index, Index)
    print(f"{letters / 1e6:.1f} Mb, {count:,} reads, at most {errors} errors; load {os.getloadavg()[0]:.1f}")
    print(
        f"  index with reading: {letters / seconds / 1e6:.1f} Mbp/s, "
        f"{index.bytes / letters:.2f} bytes a letter"
    )
    index.save(folder / "g.plait-index")
    opening, _ = processor_seconds(lambda: Index.open(folder / "g.plait-index"))
    for kind in ("bam", "sam", "parquet"):
        output = folder / f"o.{kind}"
        how = MapSettings(errors=errors, threads=1)
        words = ([folder / "r.fq"], folder / "g.plait-index", output, how)
        seconds, done = processor_seconds(lambda words=words: map_files(*words))
        apart = count / (seconds - opening)
        print(
            f"  {kind}: {count / seconds:,.0f} reads/s, "
            f"without opening the index ({opening:.2f} s) {apart:,.0f}; "
            f"{done.loci:,} loci, {done.statuses['mapped']:,} reads mapped"
        )
    with open_reads([folder / "r.fq"]) as files:
        blocks = [item.reads for item in files]
    mapper = Mapper(index, MapSettings(errors=errors, threads=1))
    seconds, parts = processor_seconds(
        lambda: [part for own in blocks for part in mapper.map_block(own, np.zeros(len(own), np.int64))]
    )
    print(f"  mapping alone, reads and loci in memory: {count / seconds:,.0f} reads/s")
    loci, first = [], 0
    for part in parts:  # type: ignore[attr-defined]
        rows = part.hits
        loci += zip(
            (rows.read + first).tolist(), ["+-"[k] for k in rows.strand], rows.end.tolist(), strict=True
        )
        first += len(part.reads)
    best_places(folder, reads, loci, errors)
    checked = {f"r{k}": LETTERS[read].tobytes() for k, read in enumerate(reads[:sample])}
    rows = map_reads(checked, index, errors=errors).to_arrow().to_pylist()
    text = CODE_OF_BYTE[LETTERS[genome]]
    wrong = checked_loci = 0
    for k, read in enumerate(reads[:sample]):
        own = sorted((row["strand"], row["end"], row["distance"]) for row in rows if row["read"] == f"r{k}")
        truth = brute_force(read, text, errors)
        checked_loci += len(truth)
        wrong += own != truth
    print(f"  brute force: {sample} reads, {checked_loci} loci, {wrong} reads that differ")
    peers(folder, errors)


def lookups() -> None:
    """The source's table: queries a second, and neighbourhoods in millions that they answer for."""
    genome = generated(70_000_000, 1)
    print("lookups in a block of one seed of 4 letters: queries/s (M neighbourhoods/s)")
    key = np.zeros(genome.size - 3, np.uint8)
    for k in range(4):
        key = key << 2 | genome[k : genome.size - 3 + k]
    places = np.flatnonzero(key == 27)
    places = places[places + 20 < genome.size]
    rng = np.random.default_rng(4)
    for length in (4, 8, 16):
        words = np.zeros(places.size, np.int64)
        for k in range(length):
            words = words << 2 | genome[places + 4 + k]
        keys = np.unique(words)
        made = PerfectHash.build(keys)
        print(f" l = {length}: {words.size:,} neighbourhoods, {keys.size:,} distinct")
        for errors in (0, 1, 2, 3):
            queries = rng.choice(words, 3 if errors > 2 else 20).tolist()
            rates = _rates(words, keys, made, length, errors, queries)
            told = (f"{name} {own:,.0f} ({own * words.size / 1e6:,.0f})" for name, own in rates.items())
            print(f"  e = {errors}: {', '.join(told)}")


def _rates(words, keys, made, length, errors, queries) -> dict[str, float]:  # type: ignore[no-untyped-def]
    near, narrow = np.empty(words.size, np.bool_), words.astype(np.uint32)
    rates = {"scan": rate(queries, lambda query: scan_kernel(narrow, query, errors, near))}
    if errors < 3:
        changes = ball(length, errors)
        many = np.random.default_rng(5).choice(words, 4000 if errors < 2 else 200)
        out, counts = np.empty((many.size, changes.size), np.int64), np.empty(many.size, np.int64)
        own = rate([many], lambda block: binary_search_kernel(keys, block, changes, out, counts))
        rates["binary search"] = own * many.size
        rates["perfect hash"] = many.size * rate(
            [many], lambda block: probe_kernel(made, block, changes, out, counts)
        )
    if 2 * errors < length:
        shifts = 2 * np.arange(length - errors - 1, -1, -1)
        patterns = ["".join("ACGT"[q >> 2 * errors >> s & 3] for s in shifts) for q in queries[:3]]
        rates["automaton"] = rate(patterns, lambda own: automaton_errors(own, words, length, errors))
    return rates


def rate(queries, work) -> float:  # type: ignore[no-untyped-def]
    """Queries a second of processor time; the first one is not counted."""
    work(queries[0])
    begun, done = time.process_time(), 0
    while time.process_time() - begun < 0.3:
        for query in queries:
            work(query)
        done += len(queries)
    return done / (time.process_time() - begun)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--letters", type=int)
    parser.add_argument("--errors", type=int, default=5)
    parser.add_argument("--reads", type=int, default=100_000)
    parser.add_argument("--sample", type=int, default=10)
    parser.add_argument("--lookups", action="store_true")
    given = parser.parse_args()
    if given.lookups:
        lookups()
        return
    print(f"{processor()}, {host_vector_bits()} bits, one thread, seconds of processor")
    sets = [
        (4_600_000, 5, 100_000, 30),
        (4_600_000, 0, 100_000, 5),
        (70_000_000, 5, 20_000, 4),
        (70_000_000, 3, 40_000, 4),
    ]
    if given.letters:
        sets = [(given.letters, given.errors, given.reads, given.sample)]
    for one in sets:
        with TemporaryDirectory(prefix="plait-") as folder:
            run(*one, Path(folder))


if __name__ == "__main__":
    main()
