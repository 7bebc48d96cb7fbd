"""Speed of `plait find` beside other programs, with the answers checked, on one core.

    python benchmarks/mapping.py [TEXT.fa] [--megabases 20] [--patterns 100] [--repeat 3] [--avx2] [--json
    OUT.json]

Without a file the text is made up (40 % GC, tandem and dispersed repeats), and the patterns are drawn from
it, with some letters changed. Peers where they are installed: ``sassy-rs`` (all ends of edits, the fastest
that installs) and ``edlib`` (distances, for checking); they take turns with plait in one process, on the same
letters in memory. Answers are compared: mismatches with a brute force of NumPy, ends with those of sassy,
sites with bulges with an oracle that looks at all alignments, on part of them.

Every speed is the best of the repeats, of processor time, in thousand million letters times patterns a
second; with a PAM both strands count, so that a text counts twice. All of it counts: letters to codes,
planes, sites, search, and hits with their alignments; kernels are warm. The share is of the limit that the
instructions of the recurrence alone set, at the rate at which this core runs such instructions in the same
run: for as many letters as it has bits and a pattern of m letters 2 (m - 1) + 6 for mismatches, 5 m + 20 for
edits, each of three operands; fewer are needed where a pattern is given up before its end, and more where the
processor has those of two alone (5 (m - 1) + 6, 8 m + 24). ``--avx2`` runs it all in a process that knows
AVX2 alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from mapping_reads import processor
from support.mapping import bulge_limits, reverse_complement

from plait.formats.fasta import read_fasta
from plait.lang.algebras import BITS, algebra_in_lanes
from plait.lang.compile import host_vector_bits, kernel
from plait.lang.lanes import host_lanes, load, majority, parity, store
from plait.mapping import Hits, find

_AVX2 = "+avx2,+avx,+bmi,+bmi2,+fma,+f16c,+popcnt,+sse4.2,+sse4.1,+ssse3,+sse3,+lzcnt,+movbe,+cx16,+sahf"
_GIGA = 1e9
#: Letters, whether errors are edits, most errors; goals: speed, and how many times that of sassy.
_DENSE = (
    (20, False, 4, 15.0, 10),
    (24, False, 6, 15.0, 10),
    (20, True, 3, 8.0, 5),
    (32, True, 3, 5.0, 0),
    (64, True, 3, 2.5, 0),
)


def made_up_text(rng: np.random.Generator, letters: int) -> bytes:
    """Random letters with copies of stretches, far away and one behind the other."""
    text = rng.choice(np.frombuffer(b"ACGT", np.uint8), letters, p=[0.3, 0.2, 0.2, 0.3])
    for _ in range(letters // 5000):
        size = int(rng.integers(20, 400))
        source, goal = rng.integers(0, letters - 2000, 2)
        copies = 1 if rng.random() < 0.8 else 5
        part = np.tile(text[source : source + size], copies)[:2000]
        text[goal : goal + part.size] = part
    return text.tobytes()


def drawn_patterns(rng: np.random.Generator, text: bytes, count: int, size: int) -> dict[str, str]:
    """Patterns of a text with two letters changed in each."""
    found: dict[str, str] = {}
    while len(found) < count:
        begin = int(rng.integers(0, len(text) - size))
        own = list(text[begin : begin + size].decode().upper())
        if set(own) <= set("ACGT"):
            for place in rng.integers(0, size, 2):
                own[place] = str(rng.choice(list("ACGT")))
            found[f"p{len(found)}"] = "".join(own)
    return found


def best(repeat: int, *works: Callable[[], Any]) -> list[tuple[float, Any]]:
    """Least processor time and last result of each; they take turns."""
    least, results = [float("inf")] * len(works), [None] * len(works)
    for _ in range(repeat):
        for k, work in enumerate(works):
            start = time.process_time()
            results[k] = work()
            least[k] = min(least[k], time.process_time() - start)
    return list(zip(least, results, strict=True))


@kernel
def _logic(lanes: Any, algebra: Any, rows: Any, times: int) -> None:
    alg = algebra_in_lanes(algebra, lanes)
    a, b, c, d = (
        load(lanes, rows, 0, 0),
        load(lanes, rows, 1, 0),
        load(lanes, rows, 2, 0),
        load(lanes, rows, 3, 0),
    )
    e, f, g, h = (
        load(lanes, rows, 4, 0),
        load(lanes, rows, 5, 0),
        load(lanes, rows, 6, 0),
        load(lanes, rows, 7, 0),
    )
    for _ in range(times):
        a, b, c, d = parity(a, e, f), majority(b, f, g), parity(c, g, h), majority(d, h, e)
        e, f, g, h = parity(e, a, b), majority(f, b, c), parity(g, c, d), majority(h, d, a)
    store(lanes, rows, 0, 0, a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ alg.one)


def logic_rate() -> float:
    """Instructions on whole registers a second, of three bits each."""
    lanes, times = host_lanes(64), 20_000_000
    rows = np.arange(8 * lanes.width).reshape(8, lanes.width)
    _logic(lanes, BITS, rows, 1)
    return 8 * times / best(3, lambda: _logic(lanes, BITS, rows, times))[0][0]


def checked_mismatches(found: Hits, patterns: dict[str, str], text: bytes, k: int) -> None:
    """Compare some patterns with what NumPy counts at every place."""
    letters = np.frombuffer(text.upper(), np.uint8)
    for number, pattern in list(enumerate(patterns.values()))[:5]:
        count = np.zeros(letters.size - len(pattern) + 1, np.uint8)
        for i, letter in enumerate(pattern.encode()):
            count += letters[i : i + count.size] != letter
        own = found.rows.taken(found.rows.pattern == number)
        assert np.array_equal(own.start, np.flatnonzero(count <= k))
        assert np.array_equal(own.distance, count[own.start])


def checked_sites(
    found: Hits, patterns: dict[str, str], text: bytes, limits: tuple[int, int, int, int]
) -> int:
    """Compare sites of a stretch with an oracle of all alignments; returns how many were looked at."""
    guide, size, looked = next(iter(patterns.values())), 100_000, 0
    own = found.rows.taken((found.rows.pattern == 0) & (found.rows.end < size - 50))
    known = {
        (int(e) - 3 if s == 0 else int(b), int(s))
        for b, e, s in zip(own.start, own.end, own.strand, strict=True)
    }
    stretch = text[:size].decode().upper()
    for strand, letters in ((0, stretch), (1, reverse_complement(stretch.replace("N", "A")))):
        at = -1
        while (at := letters.find("GG", at + 1)) >= 0 and looked < 4000:
            place = at - 1
            goal = place if strand == 0 else size - place - 3
            if 60 < place < size - 60 and "N" not in letters[place - 30 : place + 3]:
                looked += 1
                hit = bulge_limits(guide[::-1], letters[place - 22 : place][::-1], limits) is not None
                if goal + 60 < size:
                    assert hit == ((goal, strand) in known), (goal, strand)
    return looked


class Report:
    """Lines of results, and the same as JSON."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def add(self, task: str, rate: float, goal: float, **more: Any) -> None:
        """Print a line."""
        self.lines.append({"task": task, "rate": rate, "goal": goal, **more})
        text = ", ".join(f"{k} {v:,.2f}" if isinstance(v, float) else f"{k} {v:,}" for k, v in more.items())
        met = "met" if rate >= goal else "NOT MET"
        print(f"{task:<44} {rate:8.2f} G/s  goal {goal:6.1f}  {met:<7}  {text}", flush=True)


def searcher() -> Any:
    """sassy's, or None."""
    if importlib.util.find_spec("sassy") is None:
        return None
    import sassy

    return sassy.Searcher("dna", rc=False)


def all_ends(peer: Any, patterns: list[str], text: bytes, k: int) -> list[Any]:
    """What sassy finds of each pattern."""
    return [peer.search_all(pattern.encode(), text, k) for pattern in patterns]


def dense(
    report: Report, text: bytes, options: argparse.Namespace, rng: np.random.Generator, rate: float
) -> None:
    """Mismatches and edits at every place of one strand."""
    peer = searcher()
    how = {"strands": "+", "threads": 1, "device": "cpu"}
    own = {"text": text}
    wide = host_vector_bits()
    for size, edits, k, goal, times in _DENSE:
        patterns = drawn_patterns(rng, text, options.patterns, size)
        settings = how | ({"errors": k, "edits": True, "report": "ends"} if edits else {"mismatches": k})
        few = list(patterns.values())[: max(2, min(6, options.patterns // 20))]
        works: list[Callable[[], Any]] = [partial(find, patterns, own, **settings)]
        if peer is not None:
            works.append(partial(all_ends, peer, few, text.upper(), min(k, 3)))
        timed = best(options.repeat, *works)
        speed = len(patterns) * len(text) / timed[0][0] / _GIGA
        logic = (5 * size + 20) if edits else 2 * (size - 1) + 6
        more: dict[str, Any] = {
            "hits": len(timed[0][1]),
            "share of limit": speed * _GIGA * logic / (rate * wide),
        }
        if peer is not None:
            other = len(few) * len(text) / timed[1][0] / _GIGA
            more |= {"sassy": other, "times sassy": speed / other}
            more |= {"asked times": times} if times else {}
        if edits and peer is not None:
            ends = {(g, m.text_end) for g, found in enumerate(timed[1][1]) for m in found}
            rows = timed[0][1].rows
            mine = zip(rows.pattern.tolist(), rows.end.tolist(), strict=True)
            assert ends == {(g, e) for g, e in mine if g < len(few)}
        if not edits:
            checked_mismatches(timed[0][1], patterns, text, k)
        report.add(f"{'edits' if edits else 'mismatches'} <= {k}, {size} letters", speed, goal, **more)


def guides(report: Report, text: bytes, options: argparse.Namespace, rng: np.random.Generator) -> None:
    """Guides beside NGG, both strands."""
    how = {"pam": "NGG", "mismatches": 4, "threads": 1, "device": "cpu"}
    for count, bulges, goal in (
        (options.patterns, 0, 80.0),
        (10 * options.patterns, 0, 80.0),
        (options.patterns, 1, 20.0),
    ):
        patterns = drawn_patterns(rng, text, count, 20)
        settings = how | {"dna_bulges": bulges, "rna_bulges": bulges}
        ((seconds, found),) = best(options.repeat, partial(find, patterns, {"text": text}, **settings))
        checked = checked_sites(found, patterns, text, (4, bulges, bulges, 4 + 2 * bulges))
        speed = 2 * count * len(text) / seconds / _GIGA
        title = f"{count:,} guides, 4 mismatches" + (", 1 + 1 bulges" if bulges else "")
        report.add(title, speed, goal, hits=len(found), checked=checked)


def command(report: Report, rng: np.random.Generator) -> None:
    """Seconds of a whole command on 5 Mb, warm."""
    with tempfile.TemporaryDirectory() as folder:
        text = made_up_text(rng, 5_000_000)
        file = Path(folder) / "t.fa"
        file.write_bytes(b">chr1\n" + b"\n".join(text[k : k + 80] for k in range(0, len(text), 80)) + b"\n")
        words = [sys.executable, "-m", "plait", "find", text[1000:1020].decode(), str(file)]
        took = []
        for _ in range(3):
            start = time.perf_counter()
            subprocess.run([*words, "--mismatches", "4"], check=True, capture_output=True)
            took.append(time.perf_counter() - start)
    report.lines.append({"task": "command on 5 Mb", "seconds": min(took), "goal": 1.5})
    met = "met" if min(took) < 1.5 else "NOT MET"
    print(f"{'a command on 5 Mb, warm':<44} {min(took):8.2f} s    goal    1.5  {met}")


def text_of(options: argparse.Namespace, rng: np.random.Generator) -> bytes:
    """The letters of a file, or made-up ones."""
    if options.text is None:
        return made_up_text(rng, int(options.megabases * 1e6))
    parts: list[NDArray[np.uint8]] = [block.letters for block in read_fasta(options.text)]
    return np.concatenate(parts)[: int(options.megabases * 1e6)].tobytes().upper()


def main() -> None:
    """Run the tasks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", nargs="?")
    parser.add_argument("--megabases", type=float, default=20.0)
    parser.add_argument("--patterns", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--avx2", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.avx2 and "NUMBA_CPU_FEATURES" not in os.environ:
        env = os.environ | {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": _AVX2}
        sys.exit(subprocess.run([sys.executable, *sys.argv], env=env, check=False).returncode)
    rng = np.random.default_rng(16)
    text, report, rate = text_of(options, rng), Report(), logic_rate()
    about = f"{host_vector_bits()} bits, {rate / _GIGA:.1f} G logic instructions/s, {len(text):,} letters"
    print(f"{processor()}, {about}, load {os.getloadavg()[0]:.1f}")
    dense(report, text, options, rng, rate)
    guides(report, text, options, rng)
    command(report, rng)
    if options.json:
        options.json.write_text(
            json.dumps({"bits": host_vector_bits(), "results": report.lines}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
