"""Speed of alignment and database search beside parasail, pyopal and ssearch36, with the answers checked.

    python benchmarks/alignment.py --proteins DB.fasta [--query QUERY.fasta] [--repeat 5] [--json OUT.json]

DB.fasta holds proteins, QUERY.fasta one of them (the first record is used; by default that of DB.fasta of the
length nearest 352). Peers: ``pip install parasail pyopal``; ssearch36 of the FASTA package, if it is there.
A cell is one residue of a query against one of a target. Every figure is the best of the repeats, of one
thread unless it says otherwise, in thousand million cells a second (GCUPS) of processor time, of commands
from start to end. Gap costs are 11 for the first residue and 1 for every further one (2/-3, 7 and 2 for
nucleotides), the same for all programs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import parasail
import pyopal
from scoring_matrices import ScoringMatrix

from plait.align import align, align_many, score, score_many
from plait.align.database import SequenceDatabase, pack_sequences
from plait.align.letters import ALPHABETS
from plait.align.scoring import Scoring, free_ends_of, make_scoring
from plait.devices.target import CpuTarget
from plait.dp.pairs.blocks import BlockBatch, TargetBlocks
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.launches import BLOCK_SCORES
from plait.formats.fasta import Sequences, read_fasta

OPEN, EXTEND = 11, 1
#: GCUPS of the same scheme in C with intrinsics on one core of a Zen 4 at 3.67 GHz, by bits of a lane.
C_PROBE = {8: 40.0, 16: 20.5}
TRACED = 2000
DNA = 10_000


class Row(NamedTuple):
    """A line of the table."""

    work: str
    ours: float
    peer: str
    theirs: float
    asked: float
    bits: int | None = None


def best(
    call: Callable[[], Any], repeat: int, clock: Callable[[], float] = time.process_time
) -> tuple[float, Any]:
    """Seconds of the fastest of some calls, and what the last one gave."""
    fastest = float("inf")
    result = call()
    for _ in range(repeat):
        start = clock()
        result = call()
        fastest = min(fastest, clock() - start)
    return fastest, result


def ended() -> float:
    """Processor seconds of the commands that have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


def check(what: str, found: Any, expected: Any) -> None:
    """Stop if answers differ."""
    found, expected = np.asarray(found), np.asarray(expected)
    if not np.array_equal(found, expected):
        at = int(np.flatnonzero(found != expected)[0])
        raise SystemExit(f"{what}: answer {at} is {found[at]}, the peer says {expected[at]}")


class Proteins:
    """The database and the query, ready for every program."""

    def __init__(self, records: Sequences, query: str) -> None:
        letters = [records.sequence(k).decode() for k in range(len(records))]
        self.names = records.names
        self.targets = letters
        self.query = query
        self.cells = len(query) * sum(map(len, letters))
        self.packed: SequenceDatabase = pack_sequences(records, "proteins", kind="protein")
        self.scoring: Scoring = make_scoring("BLOSUM62", OPEN, EXTEND)
        matrix = ScoringMatrix.from_name("BLOSUM62")
        self.opal = pyopal.Database(letters, pyopal.Alphabet(matrix.alphabet))
        self.opal_matrix = matrix

    def scores(self, mode: Any, threads: int) -> Callable[[], Any]:
        """Scores of all targets, in their order."""
        codes = self.scoring.encode(self.query)
        columns = self.scoring.matrix.codes[np.frombuffer(ALPHABETS["protein"].encode(), np.uint8)]
        letters, rows = np.unique(codes, return_inverse=True)
        table = self.scoring.matrix.scores[np.ix_(letters, columns)]
        query = BlockQuery(rows.astype(np.int64), table, OPEN, EXTEND, free_ends_of(mode))
        blocks = TargetBlocks(self.packed.packed, self.packed.first_columns, self.packed.lengths)
        target, batch = CpuTarget(threads), BlockBatch([query], blocks, threads=threads)
        order = self.packed.order

        def call() -> Any:
            found = target.launch(BLOCK_SCORES, batch)[0].ravel()
            in_order = np.empty(len(self.targets), np.int64)
            in_order[order[order >= 0]] = found[order >= 0]
            return in_order

        return call

    def opal_scores(self, algorithm: str, overflow: str) -> Callable[[], Any]:
        """The same by pyopal."""
        aligner = pyopal.Aligner(self.opal_matrix, gap_open=OPEN, gap_extend=EXTEND)

        def call() -> Any:
            found = aligner.align(self.query, self.opal, algorithm=algorithm, overflow=overflow)
            return [result.score for result in found]

        return call


def database_rows(data: Proteins, repeat: int) -> list[Row]:
    """Scores of one query against all targets."""
    rows = []
    for mode, algorithm, bits in (("local", "sw", 8), ("global", "nw", 16)):
        seconds, ours = best(data.scores(mode, 1), repeat)
        peers = [best(data.opal_scores(algorithm, way), 2) for way in ("simple", "buckets")]
        fastest = min(peers, key=lambda found: found[0])
        check(f"{mode} scores", ours, fastest[1])
        rates = data.cells / seconds / 1e9, data.cells / fastest[0] / 1e9
        rows.append(
            Row(
                f"{mode} scores, one query, {len(data.targets):,} proteins",
                rates[0],
                "pyopal",
                rates[1],
                3,
                bits,
            )
        )
    profile = parasail.profile_create_sat(data.query, parasail.blosum62)
    few = data.targets[:4000]

    def striped() -> Any:
        return [parasail.sw_striped_profile_sat(profile, target, OPEN, EXTEND).score for target in few]

    seconds, theirs = best(striped, 2)
    ours_seconds, ours = best(
        lambda: score_many(
            data.query,
            data.targets,
            mode="local",
            matrix="BLOSUM62",
            gap_open=OPEN,
            gap_extend=EXTEND,
            threads=1,
        ),
        repeat,
    )
    check("local scores", ours[:4000], theirs)
    rate = len(data.query) * sum(map(len, few)) / seconds / 1e9
    rows.append(
        Row(
            "the same from letters (score_many)",
            data.cells / ours_seconds / 1e9,
            "parasail striped sat",
            rate,
            3,
        )
    )
    return rows


def traced_row(data: Proteins, repeat: int) -> Row:
    """Global alignments with CIGAR."""
    targets = data.targets[:TRACED]
    cells = len(data.query) * sum(map(len, targets))
    profile = parasail.profile_create_16(data.query, parasail.blosum62)

    def theirs() -> Any:
        found = []
        for target in targets:
            # Held all together, their tables would take more time than the alignments.
            one = parasail.nw_trace_scan_profile_16(profile, target, OPEN, EXTEND)
            found.append((one.score, one.cigar.decode))
        return found

    def ours() -> Any:
        return align_many(data.query, targets, matrix="BLOSUM62", gap_open=OPEN, gap_extend=EXTEND, threads=1)

    seconds, found = best(ours, repeat)
    peer_seconds, expected = best(theirs, 2)
    check("scores of alignments", [one.score for one in found], [one[0] for one in expected])
    return Row(
        f"{len(targets):,} global alignments with CIGAR",
        cells / seconds / 1e9,
        "parasail trace scan 16",
        cells / peer_seconds / 1e9,
        3,
    )


def mutated(length: int, rate: float, seed: int) -> tuple[str, str]:
    """A random sequence and a copy with substitutions, insertions and deletions."""
    rng = np.random.default_rng(seed)
    one = rng.integers(0, 4, length)
    kind = rng.random(length)
    parts = []
    for letter, chance in zip(one, kind, strict=True):
        if chance < rate / 3:
            parts.append((letter + 1 + rng.integers(3)) % 4)
        elif chance < 2 * rate / 3:
            parts += [letter, rng.integers(4)]
        elif chance >= rate:
            parts.append(letter)
    return tuple("".join("ACGT"[k] for k in codes) for codes in (one, parts))  # type: ignore[return-value]


def fastest_kind(word: str, pair: tuple[str, str], repeat: int) -> tuple[str, float, int]:
    """Of parasail's striped and scan kernels in 16 bits: its name, seconds, and the score."""
    matrix = parasail.matrix_create("ACGT", 2, -3)
    found = []
    for order in ("striped", "scan"):
        kernel: Any = getattr(parasail, f"{word}_{order}_16")

        def call(kernel: Any = kernel) -> int:
            one = kernel(*pair, 7, 2, matrix)
            if "trace" in word:
                assert one.cigar.decode
            score_found: int = one.score
            return score_found

        seconds, theirs = best(call, repeat)
        found.append((seconds, f"parasail {word[2:].strip('_')} {order} 16".replace("  ", " "), theirs))
    seconds, name, theirs = min(found)
    return name, seconds, theirs


def dna_rows(repeat: int) -> list[Row]:
    """One pair of nucleotide sequences."""
    query, target = mutated(DNA, 0.05, 2)
    cells = len(query) * len(target) / 1e9
    rows = []
    for what, word, asked, call in (
        ("affine score", "nw", 3, lambda: score(query, target, threads=1)),
        ("with CIGAR", "nw_trace", 10, lambda: align(query, target, threads=1).score),
    ):
        seconds, ours = best(call, 2 * repeat)
        name, peer, theirs = fastest_kind(word, (query, target), 3)
        check(what, [ours], [theirs])
        rows.append(Row(f"10 kbp x 10 kbp, {what}", cells / seconds, name, cells / peer, asked))
    return rows


def text_rows(repeat: int) -> list[Row]:
    """A query in a text that is 8,000 times as long."""
    query, found = mutated(1000, 0.05, 2)
    text = list(mutated(8000 * len(query), 0, 3)[0])
    text[len(text) // 3 : len(text) // 3 + len(found)] = found
    pair = query, "".join(text)
    cells = len(query) * len(text) / 1e9
    rows = []
    for mode, word in (("local", "sw"), ("semiglobal", "sg_dx")):
        seconds, ours = best(
            lambda mode=mode: align(*pair, mode=mode, threads=1).score,
            repeat,
        )
        name, peer, theirs = fastest_kind(word, pair, 2)
        check(f"in a text, {mode}", [ours], [theirs])
        rows.append(Row(f"1,000 nt in 8 Mbp, {mode}", cells / seconds, name, cells / peer, 3))
    return rows


def command_rows(data: Proteins, folder: Path, repeat: int, queries: int) -> list[Row]:
    """Whole commands, start included, held to one processor."""
    if shutil.which("ssearch36") is None:
        return []
    database, packed, query = folder / "db.fasta", folder / "db.plaitdb", folder / "query.fasta"
    database.write_text("".join(f">{n}\n{s}\n" for n, s in zip(data.names, data.targets, strict=True)))
    chosen = [data.query] if queries == 1 else data.targets[:queries]
    query.write_text("".join(f">query{k}\n{sequence}\n" for k, sequence in enumerate(chosen)))
    plait = [sys.executable, "-m", "plait", "search"]
    subprocess.run([*plait, "index", database, "-o", packed], check=True, capture_output=True)
    hold = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    costs = ["--gap-open", "12", "--gap-extend", "1", "--top", "20", "--threads", "1"]
    ours = [*hold, *plait, query, packed, *costs, "-o", folder / "hits.tsv"]
    theirs = [
        *hold,
        "ssearch36",
        "-T",
        "1",
        "-s",
        "BL62",
        "-f",
        "-11",
        "-g",
        "-1",
        "-d",
        "0",
        query,
        database,
    ]
    cells = sum(map(len, chosen)) * sum(map(len, data.targets))
    times = []
    for command in (ours, theirs):
        seconds, _ = best(
            lambda command=command: subprocess.run(command, check=True, capture_output=True),
            repeat,
            ended,
        )
        times.append(cells / seconds / 1e9)
    what = f"whole command, {queries} {'query' if queries == 1 else 'queries'}"
    return [Row(what, times[0], "ssearch36, whole command", times[1], 2)]


def scaling(data: Proteins, repeat: int) -> str:
    """What a second thread gives."""
    seconds = [best(data.scores("local", threads), repeat, time.perf_counter)[0] for threads in (1, 2)]
    one, two = (data.cells / taken / 1e9 for taken in seconds)
    return f"local scores with 1 and 2 threads: {one:.1f} and {two:.1f} GCUPS ({two / one:.2f} x)"


def line(row: Row) -> str:
    """A row as text."""
    share = f"{100 * row.ours / C_PROBE[row.bits]:4.0f} %" if row.bits else "     -"
    ratio = row.ours / row.theirs
    return (
        f"{row.work:46s} {row.ours:7.2f}  {row.peer:26s} {row.theirs:6.2f} {ratio:6.1f} x "
        f"{row.asked:5.0f} x {share}"
    )


def main() -> None:
    """Measure, check and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--proteins", type=Path, required=True)
    parser.add_argument("--query", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    records = next(iter(read_fasta(options.proteins, block_residues=1 << 30)))
    if options.query:
        query = next(iter(read_fasta(options.query))).sequence(0).decode()
    else:
        query = records.sequence(int(np.argmin(abs(records.lengths - 352)))).decode()
    data = Proteins(records, query)
    print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}")
    targets = f"{len(data.targets):,} targets of {data.packed.residues:,} residues"
    print(f"query of {len(query)} residues, {targets}")
    print(f"{'work':46s} {'plait':>7s}  {'peer':26s} {'peer':>6s} {'ratio':>8s} {'asked':>7s} {'of C':>6s}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        steps = (
            lambda: database_rows(data, options.repeat),
            lambda: [traced_row(data, options.repeat)],
            lambda: dna_rows(options.repeat),
            lambda: text_rows(options.repeat),
            lambda: command_rows(data, Path(folder), 3, 1),
            lambda: command_rows(data, Path(folder), 2, 20),
        )
        for step in steps:
            for row in step():
                print(line(row), flush=True)
                rows.append(row)
    print(scaling(data, options.repeat))
    print("all answers equal to the peers'")
    if options.json:
        options.json.write_text(json.dumps([row._asdict() for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
