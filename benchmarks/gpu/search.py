"""Speed of database search on a GPU, with the scores checked against the CPU.

    python benchmarks/gpu/search.py [--sequences 570000] [--seed 1] [--devices 0] [--quick] [--only devices]

The database is drawn: as many proteins as Swiss-Prot has, their lengths log-normal with a mean of 360 and up
to 35,213 residues, of Swiss-Prot's composition. Relatives of the queries are put among them, some of which
score so high that the packed lanes cannot hold it. A cell is one residue of a query against one of a target,
as it is for the programs that print GCUPS; TCUPS are million million cells a second of wall-clock time, the
best of the repeats. CUDASW++4.0 reports 5.71 TCUPS on an H100.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from plait.align.batches import block_query
from plait.align.database import SequenceDatabase, pack_sequences
from plait.align.hits import search
from plait.align.scoring import Scoring, make_scoring, match_mismatch
from plait.align.settings import SearchSettings
from plait.align.sweeps import LOCAL, matrix_columns
from plait.devices.cuda import cuda
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.dp.pairs import gpu_search as cuda_search
from plait.dp.pairs import gpu_search as cuda_search_slots
from plait.dp.pairs.blocks import BestBatch, BlockBatch, TargetBlocks, best_of_scores
from plait.dp.pairs.gpu_packed import PackedTargets, packed_scores
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.launches import BLOCK_SCORES
from plait.formats.fasta import Sequences

#: Residues in the order of ARNDCQEGHILKMFPSTWYV, and how often they occur in Swiss-Prot, in thousandths.
RESIDUES = "ARNDCQEGHILKMFPSTWYV"
SHARES = (83, 55, 41, 55, 14, 39, 67, 71, 23, 59, 97, 58, 24, 39, 47, 66, 54, 11, 29, 68)
LONGEST = 35_213
TERA = 1e12


def drawn(rng: np.random.Generator, size: int) -> Any:
    """Letters of so many residues."""
    table = np.repeat(np.frombuffer(RESIDUES.encode(), np.uint8), SHARES)
    return table[rng.integers(0, table.size, size, dtype=np.uint16)]


def relative(letters: Any, rng: np.random.Generator, share: float) -> Any:
    """The same with a share of the residues drawn anew."""
    changed = letters.copy()
    where = rng.random(letters.size) < share
    changed[where] = drawn(rng, int(where.sum()))
    return changed


def make_database(rng: np.random.Generator, count: int, queries: list[Any]) -> SequenceDatabase:
    """Proteins, and three relatives of each query."""
    sigma = 0.75
    lengths = np.exp(rng.normal(np.log(360) - sigma**2 / 2, sigma, count)).astype(np.int64).clip(10, LONGEST)
    lengths[0] = LONGEST
    parts = np.split(drawn(rng, int(lengths.sum())), np.cumsum(lengths)[:-1])
    for query in queries:
        parts += [relative(query[:LONGEST], rng, share) for share in (0.05, 0.3, 0.6)]
    return packed(parts, "protein")


def packed(parts: list[Any], kind: Any) -> SequenceDatabase:
    """Sequences as a database in memory."""
    names = [f"s{k}" for k in range(len(parts))]
    offsets = np.concatenate([[0], np.cumsum([part.size for part in parts])]).astype(np.int64)
    lines = np.arange(len(parts))
    entries = Sequences(names, [""] * len(parts), np.concatenate(parts), offsets, lines)
    return pack_sequences(entries, "drawn", kind=kind)


def blocks_of(database: SequenceDatabase, first: int = 0, last: int | None = None) -> TargetBlocks:
    """Some blocks of a database."""
    last = database.blocks if last is None else last
    return TargetBlocks(
        database.packed, database.first_columns[first : last + 1], database.lengths[first:last]
    )


def prepared(letters: Any, scoring: Scoring, kind: Any) -> BlockQuery:
    """A query for targets of a kind."""
    return block_query(scoring.encode(letters.tobytes()), scoring, LOCAL, matrix_columns(scoring, kind))


def best_of(call: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Seconds of the fastest call, and what it returned."""
    times, result = [], None
    for _ in range(repeat):
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return min(times), result


def told(what: str, seconds: float, cells: int) -> None:
    """Print a line."""
    print(f"{what:58s} {seconds:9.4f} s {cells / seconds / TERA:8.3f} TCUPS", flush=True)


def nothing(cells: int) -> None:
    """Nobody watches."""


def clocks() -> str:
    """What nvidia-smi says about the devices."""
    asked = "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm,power.draw"
    done = subprocess.run(["nvidia-smi", asked, "--format=csv,noheader"], capture_output=True, text=True)
    return done.stdout.strip()


def scores(devices: list[int], queries: list[BlockQuery], blocks: TargetBlocks) -> list[Any]:
    """Scores of queries on GPUs."""
    return cuda_search.score_batch(BlockBatch(queries, blocks), CudaTarget(devices))


def on_cpu(query: BlockQuery, blocks: TargetBlocks) -> Any:
    """Scores of a query on the CPU, on all its threads."""
    target = CpuTarget()
    return target.launch(BLOCK_SCORES, BlockBatch([query], blocks, threads=target.threads))[0]


class Bench:
    """What is measured."""

    def __init__(self, database: SequenceDatabase, devices: list[int], repeat: int) -> None:
        self.database, self.devices, self.repeat = database, devices, repeat
        self.blocks = blocks_of(database)
        self.residues = database.residues
        self.scoring = make_scoring(None, 11, 1)

    def query(self, letters: Any) -> BlockQuery:
        """A protein, prepared."""
        return prepared(letters, self.scoring, "protein")

    def check(self, letters: Any, what: str, blocks: TargetBlocks) -> None:
        """Scores of the GPU against those of the CPU, and 32 bits against packed lanes."""
        query, used = self.query(letters), blocks.lengths > 0
        found = scores(self.devices, [query], blocks)[0][used]
        expected = on_cpu(query, blocks)[used]
        wide = without_packed(lambda: scores(self.devices, [query], blocks)[0])[used]
        for name, own in (("packed", found), ("32 bits", wide)):
            wrong = np.flatnonzero(own != expected)
            told = "OK" if not wrong.size else f"WRONG at {wrong[:5]}: {own[wrong[:5]]} {expected[wrong[:5]]}"
            print(f"check {what}, {name}: {used.sum()} targets, best {expected.max()}: {told}", flush=True)

    def resident(self, letters: Any, what: str) -> None:
        """Kernel alone: all targets are on the device."""
        query = cuda_search_slots.QueryForms(self.query(letters), self.database.longest).packed
        lengths = self.database.lengths.ravel()
        offsets = np.concatenate([[0], np.cumsum(lengths[lengths > 0])]).astype(np.int64)
        slot = cuda_search_slots.SearchSlot()
        sent = slot.send(self.blocks, np.flatnonzero(lengths), 1 << 23)
        stream = slot.stream
        targets = PackedTargets(sent.texts.codes, offsets, slot)
        out = cuda.device_array((1, offsets.size - 1), np.int32)
        packed_scores([query], targets, out)
        stream.synchronize()
        begin, end = cuda.event(), cuda.event()
        begin.record(stream)
        for _ in range(self.repeat):
            packed_scores([query], targets, out)
        end.record(stream)
        end.synchronize()
        seconds = begin.elapsed_time(end) / 1e3 / self.repeat
        told(f"kernel, resident, {what}", seconds, letters.size * self.residues)
        print("  clocks:", clocks())

    def with_transfer(
        self, queries: list[Any], what: str, repeat: int | None = None, *, kept: bool = False
    ) -> None:
        """From packed columns in host memory, or kept on the device from before, to scores in host memory."""
        own = [self.query(letters) for letters in queries]

        def call() -> list[Any]:
            # Of another array nobody knows that it has the same in it.
            packed = self.blocks.packed if kept else self.blocks.packed.view()
            return scores(self.devices, own, self.blocks._replace(packed=packed))

        call()
        seconds, _ = best_of(call, repeat or self.repeat)
        how = "targets kept" if kept else "with transfer"
        told(f"scores, {how}, {what}", seconds, sum(q.size for q in queries) * self.residues)

    def best(self, queries: list[Any], what: str) -> None:
        """The best 500 of each query, found on the device, against all scores."""
        own = [self.query(letters) for letters in queries]
        batch = BestBatch(own, self.blocks, [30] * len(own), 500)
        call = lambda: cuda_search.best_batch(batch, CudaTarget(self.devices))  # noqa: E731
        found = call()
        wanted = best_of_scores(scores(self.devices, own, self.blocks), batch)
        same = np.array_equal(*(np.stack(a)[:, np.lexsort(a[1::-1])] for a in (found, wanted)))
        print(f"check best of {len(own)} queries: {'OK' if same else 'WRONG'}", flush=True)
        seconds, _ = best_of(call, self.repeat)
        told(f"best with transfer, {what}", seconds, sum(q.size for q in queries) * self.residues)

    def streamed(self, queries: list[Any], residues: int, what: str) -> None:
        """As if the device were small: parts of so many residues."""
        slots = cuda_search_slots.SLOTS
        slots.plan(self.devices)
        before = dict(slots._plans)
        for device, plan in before.items():
            slots._plans[device] = plan._replace(residues=residues)
        try:
            self.with_transfer(queries, f"parts of {residues >> 20} M residues, {what}")
        finally:
            slots._plans.update(before)

    def searched(self, queries: list[Any], what: str, device: str, **settings: Any) -> Any:
        """plait.search: ranked, and the best aligned."""
        named = [(f"q{k}", letters.tobytes().decode()) for k, letters in enumerate(queries)]
        how = SearchSettings(gap_open=11, gap_extend=1, device=device, **settings)
        call = lambda: search(named, self.database, how)  # noqa: E731
        call()
        seconds, result = best_of(call, self.repeat)
        told(f"search {what}", seconds, result.cells)
        return result


def without_packed(call: Callable[[], Any]) -> Any:
    """Call with 32 bits for all targets."""
    module: Any = cuda_search
    kept = module._FORMS, module.PackedQuery
    module._FORMS, module.PackedQuery = module._Forms(), lambda *given: SimpleNamespace(possible=False)
    try:
        return call()
    finally:
        module._FORMS, module.PackedQuery = kept


def attempt(what: str, call: Callable[[], Any]) -> None:
    """Call, and go on after an error."""
    try:
        call()
    except Exception as error:
        print(f"FAILED {what}: {type(error).__name__}: {error}", flush=True)


def dna(rng: np.random.Generator, devices: list[int], repeat: int) -> None:
    """Reads of 1,000 bases, and a chromosome."""
    bases = np.frombuffer(b"ACGT", np.uint8)
    letters = bases[rng.integers(0, 4, 2000)]
    reads = [bases[rng.integers(0, 4, 1000)] for _ in range(50_000)]
    reads += [letters[:900].copy(), letters[500:1400].copy()]
    database = packed(reads, "dna")
    scoring = Scoring(match_mismatch(2, -3), 7, 2)
    query = prepared(letters, scoring, "dna")
    blocks = blocks_of(database)
    some = blocks_of(database, 0, 20)
    found = scores(devices, [query], some)[0]
    expected = on_cpu(query, some)
    print("check DNA:", "OK" if np.array_equal(found, expected) else "WRONG", flush=True)
    call = lambda: scores(devices, [query], blocks)  # noqa: E731
    call()
    seconds, _ = best_of(call, repeat)
    told("scores with transfer, DNA, query 2,000, 50,000 x 1,000", seconds, letters.size * database.residues)


def uniform(rng: np.random.Generator, devices: list[int], repeat: int) -> None:
    """Targets of one length, so that nothing but the arithmetic counts."""
    letters = drawn(rng, 100_000 * 1000)
    bench = Bench(packed(np.split(letters, 100_000), "protein"), devices, repeat)
    for size in (320, 1280):
        bench.resident(letters[:size], f"100,000 targets of 1,000, query {size:,}")


def on_some(number: int, command: list[str], **how: Any) -> Any:
    """Run a command that sees so many of the devices."""
    seen = os.environ | {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(number)))}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=seen, **how)


def called(bench: Bench, queries: list[Any]) -> None:
    """A search on all devices, as a call; a digest of the hits."""
    result = bench.searched(queries, f"{len(queries)} queries of 352", "cuda:all", score_only=True)
    hits = [(pair.target_name, pair.score) for own in result.hits for pair in own]
    print(hashlib.sha256(repr(hits).encode()).hexdigest(), len(hits), flush=True)


def several_devices(given: argparse.Namespace) -> None:
    """The same hits from 1, 2, 4, .. devices, and how much faster: calls, with everything but the start."""
    alone, expected = 0.0, ""
    number = 1
    while number <= len(given.devices.split(",")):
        own = [sys.executable, __file__, "--sequences", str(given.sequences), "--only", "called"]
        line, digest = on_some(number, own).stdout.decode().splitlines()[-2:]
        seconds = float(line.split()[-4])
        alone, expected = alone or seconds, expected or digest
        same = "OK" if digest == expected else "WRONG"
        print(f"{number} devices: {line}")
        print(f"  {alone / seconds:.2f} times as fast as one; hits against one: {same}", flush=True)
        number *= 2


def commands(bench: Bench, queries: list[Any]) -> None:
    """Whole commands, from files to a table, on 1, 2, 4, .. devices."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_fasta(place / "q.fa", queries)
        database = bench.database
        write_fasta(place / "d.fa", [database.letters(k).encode() for k in range(len(database))])
        plait = [sys.executable, "-m", "plait", "search"]
        on_some(1, [*plait, "index", "d.fa", "-o", "d.plait"], cwd=place)
        cells = sum(letters.size for letters in queries) * bench.residues
        alone, expected, number = 0.0, b"", 1
        while number <= len(bench.devices):
            command = [*plait, "q.fa", "d.plait", "-o", "out.tsv", "--device", "cuda:all", "--score-only"]
            seconds, _ = best_of(partial(on_some, number, command, cwd=place), 3)
            told(f"command, {len(queries)} queries of 352 on {number} devices", seconds, cells)
            found = (place / "out.tsv").read_bytes()
            alone, expected = alone or seconds, expected or found
            same = "OK" if found == expected else "WRONG"
            print(f"  {alone / seconds:.2f} times as fast as one; table against one: {same}", flush=True)
            number *= 2


def write_fasta(path: Path, sequences: list[Any]) -> None:
    """Records s0, s1, .."""
    with path.open("wb") as file:
        for number, letters in enumerate(sequences):
            file.write(b">s%d\n%s\n" % (number, bytes(letters)))


def main() -> None:
    """Draw, check and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sequences", type=int, default=570_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", default="0")
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="leave out what takes more than a few seconds")
    parser.add_argument("--only", help="what to run, such as check or devices")
    given = parser.parse_args()
    devices = [int(number) for number in given.devices.split(",")]
    rng = np.random.default_rng(given.seed)
    queries = [drawn(rng, size) for size in (352, 5_000, 50_000)]
    many = [drawn(rng, 352) for _ in range(200)]
    more, many = many, many[:20]
    start = time.perf_counter()
    database = make_database(rng, given.sequences, queries)
    print(
        f"{len(database):,} sequences, {database.residues:,} residues, drawn in "
        f"{time.perf_counter() - start:.1f} s",
        flush=True,
    )
    print(clocks(), flush=True)
    bench = Bench(database, devices, given.repeat)
    name = "cuda:all" if len(devices) > 1 else f"cuda:{devices[0]}"
    middle = database.blocks // 2
    parts = {
        "usual targets": blocks_of(database, middle, min(middle + 40, database.blocks)),
        "long targets": blocks_of(database, 2, 6),
    }
    works: list[tuple[str, Callable[[], Any]]] = [
        ("check", lambda: bench.check(queries[0], "query 352, usual targets", parts["usual targets"])),
        ("check", lambda: bench.check(queries[1], "query 5,000, long targets", parts["long targets"])),
        ("resident", lambda: bench.resident(queries[0], "query 352")),
        ("transfer", lambda: bench.with_transfer(queries[:1], "query 352")),
        ("transfer", lambda: bench.with_transfer(many, "20 queries of 352")),
        ("transfer", lambda: bench.with_transfer(many, "20 queries of 352", kept=True)),
        ("best", lambda: bench.best(many, "20 queries of 352")),
        ("resident", lambda: bench.resident(queries[1], "query 5,000")),
        ("uniform", lambda: uniform(rng, devices, given.repeat)),
        ("streamed", lambda: bench.streamed(many, 1 << 24, "20 queries of 352")),
        ("wide", lambda: without_packed(lambda: bench.with_transfer(queries[:1], "32 bits, query 352", 2))),
        ("DNA", lambda: dna(rng, devices, given.repeat)),
        ("search", lambda: bench.searched(many, "20 queries of 352, scores only", name, score_only=True)),
    ]
    if len(devices) > 1:
        works.append(("devices", lambda: several_devices(given)))
    if len(devices) > 1 or given.only == "commands":
        works.append(("commands", lambda: commands(bench, more)))
    if given.only == "called":
        works.append(("called", lambda: called(bench, more)))
    if not given.quick:
        works += [
            ("resident", lambda: bench.resident(queries[2], "query 50,000")),
            ("transfer", lambda: bench.with_transfer(queries[2:], "query 50,000", 1)),
            ("search", lambda: bench.searched(queries[:1], "query 352, 500 hits", name, evalue=None)),
            ("search", lambda: bench.searched(many, "20 queries, 2,000 hits", name, evalue=None, top=100)),
        ]
    for what, call in works:
        if given.only in (None, what):
            attempt(what, call)


if __name__ == "__main__":
    main()
