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
from collections.abc import Callable, Iterator, Sequence
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
_ROUNDS = 4


@dataclass
class Tally:
    """What became of the cases of a parser."""

    cases: int = 0
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    cpu_seconds: float = 0.0

    def add(self, other: Tally) -> None:
        """Add those of another process."""
        self.cases += other.cases
        self.cpu_seconds += other.cpu_seconds
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
    tally, began = Tally(), time.process_time()
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
    tally.cpu_seconds = time.process_time() - began
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
    # The parent ends its workers, and drops what they write when it has stopped.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
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

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self._context = get_context("fork")
        self.name, self._seed, self._out = name, options.seed, options.failures
        self._processes = options.processes
        self.parser = PARSERS[name]()
        cases = options.cases or round(self.parser.cases * options.scale)
        self._batches = max(1, -(-cases // _BATCH))
        self.tally = Tally()
        self._known: set[str] = set()

    def _start(self, batches: range) -> list[Any]:
        shared, results = _Shared(), self._context.SimpleQueue()
        arguments = (self.name, self._seed, batches, shared, self._out, results)
        process = self._context.Process(target=_worker, args=arguments, daemon=True)
        process.start()
        return [process, shared, results, batches, batches.start]

    @property
    def planned(self) -> int:
        """How many cases there are to run."""
        return self._batches * _BATCH

    def run(self, over: Callable[[], bool], part: int, parts: int) -> None:
        """Run a part of the batches until all is done or the time is over; counted are those that end."""
        k, first, end = self._processes, *(self._batches * p // parts for p in (part, part + 1))
        alive = [self._start(range(start, end, k)) for start in range(first, min(first + k, end))]
        while alive:
            for one in list(alive):
                if not self._collect(one) or over():
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
        path = _write_case(self._out / self.name, name, case)
        print(f"  FAILED {self.name}: {told} ({path})", flush=True)


_COLUMNS = ("cases", "planned", "CPU us", "accepted", "refused", "messages", "failures")


def summary_line(name: str, planned: int, tally: Tally) -> str:
    """One parser's line of the table."""
    n = max(tally.cases, 1)
    return (
        f"{name:<16} {tally.cases:>9,} {planned:>9,} {tally.cpu_seconds / n * 1e6:>9,.0f} "
        f"{tally.accepted / n:>9.1%} {sum(tally.refused.values()) / n:>9.1%} {len(tally.refused):>9,} "
        f"{sum(tally.failed.values()):>9,}"
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


class _Stop:
    """Whether the run is to end: at a time, by Ctrl-C or by SIGTERM."""

    def __init__(self, seconds: float | None) -> None:
        self._end = float("inf") if seconds is None else time.monotonic() + seconds
        self.signal: int | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: object) -> None:
        self.signal = number

    def __call__(self) -> bool:
        return self.signal is not None or time.monotonic() > self._end


def _summary(runs: Sequence[_Workers]) -> tuple[list[str], bool]:
    """The table, what was not run, and what is wrong; and whether something is."""
    head = f"{'parser':<16}" + "".join(f" {name:>9}" for name in _COLUMNS)
    short, bad = [], []
    for run in runs:
        bad += [f"{run.name}: {failure} ({number:,} cases)" for failure, number in run.tally.failed.items()]
        if run.tally.cases < run.planned:
            short.append(f"{run.name}: stopped after {run.tally.cases:,} of {run.planned:,} cases")
        if run.tally.cases and (reason := vacuous(run.parser, run.tally)):
            bad.append(reason)
    table = [summary_line(run.name, run.planned, run.tally) for run in runs]
    command = f"python -m tests.fuzz {' '.join(sys.argv[1:])}".strip()
    return [command, "", head, *table, "", *short, *(bad or ["no failure in the cases that were run"])], bool(
        bad
    )


def main(arguments: list[str] | None = None) -> int:
    """Fuzz the parsers that are asked for; exit status 1 when a case failed, or a signal ended the run."""
    options = _options(arguments)
    faulthandler.disable()
    stop = _Stop(options.seconds)
    runs = [_Workers(name, options) for name in options.parser or PARSERS]
    print(f"parsers: {len(runs)}, cases: {sum(run.planned for run in runs):,}", flush=True)
    # In rounds where the time may not suffice, so that every parser has its share.
    rounds = 1 if options.seconds is None else _ROUNDS
    for number in range(rounds):
        for run in runs:
            if not stop():
                run.run(stop, number, rounds)
                print(f"{run.name}: {run.tally.cases:,} of {run.planned:,} cases", flush=True)
                if options.output:
                    # At once, so that a run that is killed leaves what it has found.
                    options.output.write_text("\n".join(_summary(runs)[0]) + "\n", encoding="utf-8")
    lines, bad = _summary(runs)
    print("\n".join(["", *lines[2:]]))
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if bad or stop.signal is not None else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--parser", action="append", choices=list(PARSERS), help="only this one; again for more"
    )
    parser.add_argument("--cases", type=int, help="cases of each parser; otherwise 10^6 or 10^5")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the cases of a full run")
    parser.add_argument(
        "--seconds", type=float, help="most time, shared among the parsers: what is not run is said"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--failures", type=Path, default=FAILURES, help="where minimised failures are kept")
    parser.add_argument("--output", type=Path, help="write the summary there")
    return parser.parse_args(arguments)
