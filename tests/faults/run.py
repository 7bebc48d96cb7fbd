"""Strike the commands that write with faults: ``python -m tests.faults --help``."""

from __future__ import annotations

import argparse
import errno
import io
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from random import Random

from tests.faults.faults import (
    Child,
    Ended,
    Fault,
    count_operations,
    fork,
    killed_before,
    refused_from,
    snapshot,
    stopped_before,
)
from tests.faults.scenarios import SCENARIOS, Scenario

from plait.cli import main as plait

_KILLED = -9
_WRONG = 2


class Bench:
    """A scenario with its inputs, and what it gives undisturbed.

    Attributes
    ----------
    reference
        Digests of its results.
    operations
        File operations of the undisturbed run.
    seconds
        What that took.
    failures
        What has gone wrong, a line each.
    cases
        Faults struck so far.
    """

    def __init__(self, name: str, scenario: Scenario, folder: Path) -> None:
        self.name, self.scenario = name, scenario
        self.inputs, self.output = folder / "in", folder / "out"
        self.failures: list[str] = []
        self.cases = 0
        self.inputs.mkdir(parents=True)
        if scenario.copied:
            self._prepare()
            self._warm()
        else:
            prepared = get_context("fork").Process(target=self._prepare)
            prepared.start()
            prepared.join()
        began = time.monotonic()
        ended = self.run(fault=count_operations())
        self.seconds = time.monotonic() - began
        if ended.status:
            raise RuntimeError(f"{name}: status {ended.status} undisturbed: {ended.told[-600:]}")
        self.operations = ended.operations
        self.reference = snapshot(self.output)
        before = os.umask(0o027)
        self.run()
        os.umask(before)
        self.check("two undisturbed runs differ", snapshot(self.output) == self.reference)
        self.check("it leaves hidden files", not any("/." in f"/{name}" for name in self.reference))
        for name, digest in self.reference.items():
            rights = (self.output / name).stat().st_mode & 0o777
            expected = 0o750 if digest == "folder" else 0o640
            self.check(f"{name} has rights {rights:o} with umask 027", rights == expected)

    def _prepare(self) -> None:
        with _silent():
            self.scenario.prepare(self.inputs)

    def _warm(self) -> None:
        """Run it in this process, so that all is compiled and loaded in the copies."""
        self._empty()
        before = os.getcwd()
        os.chdir(self.output)
        try:
            with _silent():
                plait(list(self.scenario.words))
        finally:
            os.chdir(before)

    def check(self, told: str, good: bool) -> None:
        """Note a failure."""
        if not good:
            self.failures.append(f"{self.name}: {told}")

    def _empty(self) -> None:
        shutil.rmtree(self.output, ignore_errors=True)
        self.output.mkdir()

    def start(self, *, resume: bool = False, fault: Fault | None = None, **limits: int | bool) -> Child:
        """Start the command."""
        words = (*self.scenario.words, *(("--resume",) if resume else ()))
        return fork(words, self.output, fault=fault, **limits)  # type: ignore[arg-type]

    def run(self, *, fault: Fault | None = None, **limits: int | bool) -> Ended:
        """Run it in an empty folder."""
        self._empty()
        return self.start(fault=fault, **limits).wait()

    def inspect(self, what: str) -> None:
        """Results that are there are whole."""
        self.cases += 1
        found = snapshot(self.output)
        for name in self.scenario.whole:
            if name in found and found[name] != self.reference.get(name):
                self.check(f"{what}: {name} is there and is not whole", False)

    def swept(self, what: str, *, folders: bool) -> None:
        """A run that could still do so has removed what is hidden, and its folder if nothing is in it."""
        found = snapshot(self.output)
        for name, digest in found.items():
            empty = digest == "folder" and not any(other.startswith(f"{name}/") for other in found)
            bare = folders and empty and "/" not in name
            self.check(f"{what}: it leaves {name}", not (bare or "/." in f"/{name}"))

    def finish(self, what: str, *, resume: bool) -> None:
        """The same command again gives what an undisturbed one gives, and leaves nothing else."""
        ended = self.start(resume=resume and self.scenario.resumable).wait()
        if ended.status == _WRONG and "--force" in ended.told:
            words = (*self.scenario.words, "--force")
            ended = fork(words, self.output).wait()
        if ended.status:
            self.check(f"{what}: again, status {ended.status}: {ended.told.strip()[-300:]}", False)
            return
        found = snapshot(self.output)
        if found != self.reference:
            names = sorted(
                n for n in found.keys() | self.reference.keys() if found.get(n) != self.reference.get(n)
            )
            self.check(f"{what}: again, other results: {', '.join(names[:6])}", False)


@contextmanager
def _silent() -> Iterator[io.StringIO]:
    told = io.StringIO()
    with redirect_stdout(told), redirect_stderr(told):
        yield told


def _steps(bench: Bench, most: int | None) -> list[int]:
    n = max(bench.operations, 1)
    if most is None or most >= n:
        return list(range(1, n + 1))
    return sorted({1 + round(k * (n - 1) / max(most - 1, 1)) for k in range(most)})


def kills(bench: Bench, most: int | None, rng: Random) -> None:
    """SIGKILL before every k-th file operation."""
    for k in _steps(bench, most):
        what = f"killed before operation {k} of {bench.operations}"
        ended = bench.run(fault=killed_before(k))
        bench.check(f"{what}: status {ended.status}: {ended.told[-200:]}", ended.status in (_KILLED, 0))
        bench.inspect(what)
        bench.finish(what, resume=k % 3 != 0)


def random_kills(bench: Bench, most: int | None, rng: Random) -> None:
    """SIGKILL at a random moment."""
    for _ in range(most or 20):
        moment = rng.random() * bench.seconds
        bench._empty()
        child = bench.start()
        time.sleep(moment)
        child.kill()
        child.wait()
        what = f"killed after {moment:.3f} s"
        bench.inspect(what)
        bench.finish(what, resume=rng.random() < 0.7)


def full_disks(bench: Bench, most: int | None, rng: Random) -> None:
    """No room from the k-th operation on, at it alone, or in files beyond a size; a read-only folder."""
    for k in _steps(bench, most):
        for code, only in ((errno.ENOSPC, False), (errno.ENOSPC, True), (errno.EROFS, False)):
            # A folder does not become read-only in the middle of a run.
            if code == errno.EROFS and k > 1:
                continue
            name = errno.errorcode[code]
            what = f"{name} {'at' if only else 'from'} operation {k} of {bench.operations}"
            ended = bench.run(fault=refused_from(k, code, only=only))
            _refused(bench, what, ended, swept=code == errno.ENOSPC)
    sizes = {int(share * 4096) for share in (0, 0.01, 0.25)} | {1 << 14, 1 << 16}
    for size in sorted(sizes)[: most or len(sizes)]:
        _refused(bench, f"files of at most {size} bytes", bench.run(file_bytes=size))


def _refused(bench: Bench, what: str, ended: Ended, *, swept: bool = True) -> None:
    # What only has to be put in order may fail without harm: then the results are whole.
    bench.check(f"{what}: status {ended.status}: {ended.told.strip()[-300:]}", ended.status in (_WRONG, 0))
    if ended.status == _WRONG:
        bench.check(f"{what}: no message", "plait: error:" in ended.told)
    bench.inspect(what)
    if ended.status == 0:
        found = snapshot(bench.output)
        whole = all(found.get(name) == digest for name, digest in bench.reference.items())
        bench.check(f"{what}: status 0 and other results", whole)
        return
    if swept:
        bench.swept(what, folders=True)
    bench.finish(what, resume=True)


def interrupts(bench: Bench, most: int | None, rng: Random) -> None:
    """Ctrl-C or SIGTERM before every k-th operation."""
    for k in _steps(bench, most):
        number = rng.choice((signal.SIGINT, signal.SIGTERM))
        what = f"{number.name} before operation {k} of {bench.operations}"
        ended = bench.run(fault=stopped_before(k, number))
        bench.check(f"{what}: status {ended.status}: {ended.told[-200:]}", ended.status in (128 + number, 0))
        if ended.status:
            bench.check(f"{what}: no message", "plait: stopped" in ended.told)
            # A signal may come after the last file in a folder is removed, and before that is.
            bench.swept(what, folders=False)
        bench.inspect(what)
        bench.finish(what, resume=True)


def changed_inputs(bench: Bench, most: int | None, rng: Random) -> None:
    """The input is another one, of the same size and time, when a run is resumed or while it is read."""
    change = bench.scenario.changed
    if change is None:
        return
    old = bench.reference
    change(bench.inputs)
    bench.run()
    new = snapshot(bench.output)
    change(bench.inputs)
    for k in _steps(bench, most):
        for while_read in (False, True):
            how = "while it is read" if while_read else "before it is resumed"
            what = f"input changed at operation {k} of {bench.operations}, {how}"

            def strike(event: str, seen: int, k: int = k) -> None:
                if seen == k:
                    change(bench.inputs)

            bench.run(fault=strike if while_read else killed_before(k))
            if not while_read:
                change(bench.inputs)
                ended = bench.start(resume=True).wait()
                told = f"status {ended.status}: {ended.told[-300:]}"
                bench.check(f"{what}: {told}", ended.status in (0, _WRONG))
            found = snapshot(bench.output)
            bench.cases += 1
            results = {name: found.get(name) for name in bench.scenario.whole if name in found}
            good = any(
                all(one[name] == digest for name, digest in results.items() if name in one)
                for one in (old, new)
            )
            bench.check(f"{what}: mixed results, status {0 if while_read else ended.status}", good)
            bench.run()
            if snapshot(bench.output) != old:
                change(bench.inputs)


def two_runs(bench: Bench, most: int | None, rng: Random) -> None:
    """Two runs into one output: refused, or both right."""
    for _ in range(most or 6):
        bench._empty()
        children = [bench.start(), bench.start()]
        ends = [child.wait() for child in children]
        told = " | ".join(f"{end.status} {end.told.strip()[-200:]}" for end in ends)
        bench.cases += 1
        bench.check(f"two runs: {told}", all(end.status in (0, _WRONG) for end in ends))
        if any(end.status == 0 for end in ends):
            bench.check(f"two runs: other results: {told}", snapshot(bench.output) == bench.reference)
        else:
            bench.check(f"two runs: neither succeeded: {told}", False)


def small_disks(bench: Bench, most: int | None, rng: Random) -> None:
    """A disk that is full before the results are complete, and then has room."""
    if os.geteuid() != 0:
        print(f"  {bench.name}: no small disk: only root can mount one")
        return
    for size in (0, 8, 24, 64)[: most or 4]:
        bench._empty()
        place = str(bench.output)
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size or 4}k", "tmpfs", place], check=False
        )
        if made.returncode:
            print(f"  {bench.name}: no small disk: mount ended with {made.returncode}")
            return
        try:
            ended = bench.start().wait()
            what = f"a disk of {size} KiB"
            bench.check(f"{what}: status {ended.status}: {ended.told[-300:]}", ended.status in (_WRONG, 0))
            bench.inspect(what)
            subprocess.run(["mount", "-o", "remount,size=64m", place], check=True)
            bench.finish(what, resume=True)
        finally:
            subprocess.run(["umount", place], check=True)


def broken_pipes(bench: Bench, most: int | None, rng: Random) -> None:
    """Nobody reads what is written to standard output."""
    words = list(bench.scenario.words)
    if bench.name not in ("align", "search"):
        return
    bench._empty()
    at = words.index("-o")
    ended = fork((*words[:at], *words[at + 2 :]), bench.output, broken_pipe=True).wait()
    bench.cases += 1
    bench.check(f"broken pipe: status {ended.status}: {ended.told[-300:]}", ended.status in (128 + 13, 0))
    bench.check(f"broken pipe: {ended.told[-300:]}", "error" not in ended.told.lower())


def cold_caches(bench: Bench, most: int | None, rng: Random) -> None:
    """Four processes that begin with no compiled code, in one folder for it."""
    if bench.name != "scores":
        return
    bench._empty()
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PLAIT_CACHE_DIR": cache, "PLAIT_THREADS": "1"}
        words = [sys.executable, "-m", "plait", *bench.scenario.words[:-1]]
        names = [f"o{k}.tsv" for k in range(4)]
        running = [
            subprocess.Popen([*words, name], cwd=bench.output, env=environment, stderr=subprocess.PIPE)
            for name in names
        ]
        for one, name in zip(running, names, strict=True):
            _, told = one.communicate()
            bench.cases += 1
            bench.check(f"cold cache: status {one.returncode}: {told.decode()[-300:]}", one.returncode == 0)
            same = (bench.output / name).exists() and snapshot(bench.output)[name] == bench.reference["o.tsv"]
            bench.check("cold cache: other results", same)
        left = [path.name for path in Path(cache).rglob("*") if path.name.endswith((".partial", ".tmp"))]
        bench.check(f"cold cache: it leaves {', '.join(left[:5])}", not left)


FAULTS: dict[str, Callable[[Bench, int | None, Random], None]] = {
    "kill": kills,
    "random-kill": random_kills,
    "full-disk": full_disks,
    "interrupt": interrupts,
    "changed-input": changed_inputs,
    "two-runs": two_runs,
    "small-disk": small_disks,
    "broken-pipe": broken_pipes,
    "cold-cache": cold_caches,
}


def main(arguments: list[str] | None = None) -> int:
    """Strike what is asked for; exit status 1 when something went wrong."""
    options = _options(arguments)
    began_all = time.monotonic()
    lines = [f"$ python -m tests.faults {' '.join(sys.argv[1:])}".strip(), _processor(), ""]
    bad: list[str] = []
    cases = 0
    memory = Path("/dev/shm")
    for name in options.command or list(SCENARIOS):
        most = min(filter(None, (options.most, SCENARIOS[name].most)), default=None)
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
            began = time.monotonic()
            bench = Bench(name, SCENARIOS[name], Path(folder))
            for fault in options.fault or list(FAULTS):
                FAULTS[fault](bench, most, Random(f"{name} {fault} {options.seed}"))
            seconds = time.monotonic() - began
        lines.append(
            f"{name:<14} {bench.operations:>4} file operations {bench.cases:>6,} faults "
            f"{len(bench.failures):>4} failures {seconds:>7.1f} s"
        )
        print(lines[-1], flush=True)
        for line in bench.failures[: options.show]:
            print(f"  {line}", flush=True)
        bad += bench.failures
        cases += bench.cases
    seconds = time.monotonic() - began_all
    lines += ["", f"{cases:,} faults, {len(bad)} failures, {seconds:.0f} s", *bad]
    print(f"\n{lines[-1 - len(bad)]}")
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if bad else 0


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    text = facts.read_text(encoding="utf-8") if facts.exists() else ""
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    load = f"load {os.getloadavg()[0]:.1f} at the start"
    return f"{found[1] if found else platform.machine()}, {os.cpu_count()} processors, {load}"


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument(
        "--command", action="append", choices=list(SCENARIOS), help="only this one; again for more"
    )
    parser.add_argument(
        "--fault", action="append", choices=list(FAULTS), help="only this one; again for more"
    )
    parser.add_argument("--most", type=int, help="strike at so many of the operations; otherwise at all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=12, help="failures printed of each command")
    parser.add_argument("--output", type=Path, help="write the summary there")
    return parser.parse_args(arguments)
