"""Run the parsers on mutated files: ``python -m tests.fuzz --help``."""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gzip
import hashlib
import mmap
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.parsers import PARSERS
from tests.fuzz.trial import Parser, explained, limit_memory, minimised, outcome

FAILURES = Path(__file__).parent / "failures"
#: Larger cases are kept compressed.
_MOST_PLAIN = 1000
_ROOM = 1 << 20
_HANG_SECONDS = 60.0
#: Cases that are made from one random state.
_BATCH = 256
_MOST_SHOWN = 3


@dataclass
class Tally:
    """What became of the cases of a parser."""

    cases: int = 0
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, other: Tally) -> None:
        """Add those of another process."""
        self.cases += other.cases
        self.accepted += other.accepted
        self.refused.update(other.refused)
        self.failed.update(other.failed)


def cases_of(parser: Parser, seed: int, batch: int, count: int = _BATCH) -> Iterator[bytes]:
    """The cases of a batch: the same for the same seed."""
    rng = Random(f"{parser.name} {seed} {batch}")
    for _ in range(count):
        yield parser.mutate(rng, parser.seeds)


def run_cases(
    parser: Parser,
    seed: int,
    batches: Iterator[int],
    folder: Path,
    failed: Callable[[bytes, str], None],
    note: Callable[[bytes], None] = lambda case: None,
    count: int = _BATCH,
) -> Tally:
    """Run batches in this process."""
    tally = Tally()
    for batch in batches:
        for case in cases_of(parser, seed, batch, count):
            note(case)
            found = outcome(parser, case, folder)
            tally.cases += 1
            if found.state == "accepted":
                tally.accepted += 1
            elif found.state == "refused":
                tally.refused[found.told] += 1
            else:
                if not tally.failed[found.told]:
                    failed(case, found.told)
                tally.failed[found.told] += 1
        note(b"")
    return tally


def kept_cases() -> list[str]:
    """Names of the failures that are kept."""
    return sorted(path.relative_to(FAILURES).as_posix() for path in FAILURES.glob("*/*.case*"))


def kept_case(name: str) -> bytes:
    """One of them."""
    data = (FAILURES / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


def _write_case(folder: Path, name: str, case: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    large = len(case) > _MOST_PLAIN
    path = folder / f"{name}.case{'.gz' if large else ''}"
    path.write_bytes(gzip.compress(case, 9, mtime=0) if large else case)
    return path


def keep_failure(parser: Parser, case: bytes, told: str, folder: Path, out: Path) -> None:
    """Keep a failing case, as small as it gets, with the traceback beside the message."""
    small = minimised(parser, case, told, folder)
    name = hashlib.blake2b(told.encode(), digest_size=6).hexdigest()
    path = _write_case(out / parser.name, name, small)
    trace = explained(parser, small, folder) if "more than" not in told else ""
    print(f"  FAILED {parser.name}: {told} ({path})\n{trace}", flush=True)


class _Shared:
    """What a worker is at: when the case began, and its bytes; seen by the parent when the worker is gone."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, _ROOM)

    def note(self, case: bytes) -> None:
        self._map[:16] = len(case).to_bytes(8, "little") + time.monotonic_ns().to_bytes(8, "little")
        self._map[16 : 16 + len(case)] = case

    def case(self) -> tuple[bytes, float]:
        size = int.from_bytes(self._map[:8], "little")
        return self._map[16 : 16 + size], (
            time.monotonic_ns() - int.from_bytes(self._map[8:16], "little")
        ) / 1e9


def _worker(name: str, seed: int, batches: range, shared: _Shared, out: Path, results: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    parser = PARSERS[name]()
    with _scratch() as folder:
        for case in parser.seeds:
            outcome(parser, case, folder)
        for batch in batches:
            # Beyond what it has by now: of libraries' pools, and of what cases before have left.
            limit_memory()
            found = run_cases(
                parser, seed, iter((batch,)), folder, lambda c, t: results.put(("failed", c, t)), shared.note
            )
            results.put(("tally", batch, found))
    results.put(("done", None, None))


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What libraries print of broken files is not shown."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class _Workers:
    """Processes that run the cases of one parser; one that dies or hangs is replaced."""

    def __init__(self, name: str, cases: int, seed: int, processes: int, out: Path) -> None:
        self._context = get_context("fork")
        self._name, self._seed, self._out = name, seed, out
        self._batches = max(1, cases // _BATCH)
        self._processes = processes
        self.parser = PARSERS[name]()
        self.tally = Tally()
        self._known: set[str] = set()

    def _start(self, batches: range) -> list[Any]:
        shared, results = _Shared(), self._context.SimpleQueue()
        arguments = (self._name, self._seed, batches, shared, self._out, results)
        process = self._context.Process(target=_worker, args=arguments, daemon=True)
        process.start()
        return [process, shared, results, batches, batches.start]

    def run(self, end: float) -> None:
        """Run until all is done or the time is over."""
        began = time.perf_counter()
        k, n = self._processes, self._batches
        alive = [self._start(range(first, n, k)) for first in range(min(k, n))]
        while alive:
            for one in list(alive):
                if not self._collect(one) or time.monotonic() > end:
                    one[0].kill()
                    one[0].join()
                    alive.remove(one)
                elif not one[0].is_alive() and one[2].empty():
                    alive.remove(one)
                    self._lost(one, f"killed by signal {-one[0].exitcode}")
                    alive.append(self._start(one[3][one[3].index(one[4]) + 1 :]))
                elif one[1].case()[0] and one[1].case()[1] > _HANG_SECONDS:
                    one[0].kill()
                    one[0].join()
                    alive.remove(one)
                    self._lost(one, f"more than {_HANG_SECONDS:g} s")
                    alive.append(self._start(one[3][one[3].index(one[4]) + 1 :]))
            time.sleep(0.02)
        self.tally.seconds = time.perf_counter() - began

    def _collect(self, one: list[Any]) -> bool:
        """Take results; False when the worker has done its part."""
        while not one[2].empty():
            what, first, second = one[2].get()
            if what == "done":
                return False
            if what == "tally":
                one[4] = first + self._processes
                self.tally.add(second)
            elif second not in self._known:
                self._known.add(second)
                with _scratch() as folder, _quiet():
                    keep_failure(self.parser, first, second, folder, self._out)
        return True

    def _lost(self, one: list[Any], told: str) -> None:
        if one[0].exitcode and one[0].exitcode > 0:
            raise RuntimeError("the harness itself failed: see the traceback above")
        case, _ = one[1].case()
        self.tally.failed[told] += 1
        name = hashlib.blake2b(case, digest_size=6).hexdigest()
        path = _write_case(self._out / self._name, name, case)
        print(f"  FAILED {self._name}: {told} ({path})", flush=True)


def summary_line(name: str, tally: Tally) -> str:
    """One parser's line of the table."""
    n = max(tally.cases, 1)
    return (
        f"{name:<16} {tally.cases:>9,} {n / max(tally.seconds, 1e-9):>9,.0f} {tally.accepted / n:>9.1%} "
        f"{sum(tally.refused.values()) / n:>9.1%} {len(tally.refused):>9,} {sum(tally.failed.values()):>9,}"
    )


def vacuous(parser: Parser, tally: Tally) -> str | None:
    """Why the mutations test nothing, or None."""
    if not tally.cases:
        return f"{parser.name}: not run"
    accepted = tally.accepted / tally.cases
    refused = sum(tally.refused.values()) / tally.cases
    if accepted < parser.least_accepted or refused < parser.least_refused:
        return f"{parser.name}: {accepted:.1%} accepted and {refused:.1%} refused: the mutations test nothing"
    return None


def main(arguments: list[str] | None = None) -> int:
    """Fuzz the parsers that are asked for; exit status 1 when a case failed."""
    options = _options(arguments)
    faulthandler.disable()
    names = options.parser or list(PARSERS)
    columns = ("cases", "a second", "accepted", "refused", "messages", "failures")
    head = f"{'parser':<16}" + "".join(f" {name:>9}" for name in columns)
    lines, bad = [f"python -m tests.fuzz {' '.join(sys.argv[1:])}".strip(), "", head], []
    print(head, flush=True)
    for name in names:
        workers = _Workers(name, 1, options.seed, options.processes, options.failures)
        cases = options.cases or max(1, round(workers.parser.cases * options.scale))
        workers = _Workers(name, cases, options.seed, options.processes, options.failures)
        workers.run(time.monotonic() + options.seconds if options.seconds else float("inf"))
        lines.append(summary_line(name, workers.tally))
        print(lines[-1], flush=True)
        bad += [f"{name}: {told} ({number:,} cases)" for told, number in workers.tally.failed.items()]
        if told := vacuous(workers.parser, workers.tally):
            bad.append(told)
    lines += ["", *(bad or ["no failure"])]
    print("\n".join(["", *(bad or ["no failure"])]))
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if bad else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--parser", action="append", choices=list(PARSERS), help="only this one; again for more"
    )
    parser.add_argument("--cases", type=int, help="cases of each parser; otherwise 10^6 or 10^5")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the cases of a full run")
    parser.add_argument("--seconds", type=float, help="most time for each parser")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--failures", type=Path, default=FAILURES, help="where minimised failures are kept")
    parser.add_argument("--output", type=Path, help="write the summary there")
    return parser.parse_args(arguments)
