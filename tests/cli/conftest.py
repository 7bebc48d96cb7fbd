"""Running commands in this process and in another, on small tables."""

from __future__ import annotations

import gzip
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from plait.cli import main

SOURCES = Path(__file__).resolve().parents[2] / "src"


class Outcome(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile what a command needs here: other kernels have left bodies, and other workers run beside."""
    monkeypatch.setattr("plait.lang.ahead.worth", lambda numbers: 1)


@pytest.fixture
def plait(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run a command line in this process."""

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        status = main([str(word) for word in words])
        out, err = capsys.readouterr()
        # What is compiled depends on the tests that ran before.
        told = [line for line in err.splitlines(keepends=True) if not line.startswith("plait: compil")]
        return Outcome(status, out, "".join(told))

    return run


@pytest.fixture
def start_plait() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command line in another process, after the statements `before`; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: object, before: str = "pass", **options: object) -> subprocess.Popen[str]:
        environment = os.environ | {"PYTHONPATH": str(SOURCES)}
        program = f"{before}; from plait.cli import main; raise SystemExit(main())"
        command = [sys.executable, "-c", program, *map(str, words)]
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
        started.append(subprocess.Popen(command, **(settings | options)))
        return started[-1]

    yield start
    for process in started:
        # Of a test that failed before it had waited: what is left open would fail another test.
        if process.returncode is None:
            process.kill()
            process.communicate()


@pytest.fixture
def on_terminal(start_plait: Callable[..., subprocess.Popen[str]]) -> Callable[..., tuple[Outcome, bytes]]:
    """Run a command line in another process whose standard error is a terminal: outcome and what it shows."""

    def run(*words: object, **options: object) -> tuple[Outcome, bytes]:
        master, slave = pty.openpty()
        process = start_plait(*words, stderr=slave, **options)
        os.close(slave)
        shown = b""
        try:
            while piece := os.read(master, 4096):
                shown += piece
        except OSError:
            # Linux reports the end of a terminal as an error.
            pass
        os.close(master)
        out, _ = process.communicate(timeout=300)
        return Outcome(process.returncode, out, ""), shown

    return run


@pytest.fixture
def write_tsv(tmp_path: Path) -> Callable[..., Path]:
    """Write columns as a table: ``write_tsv(columns, name="in.tsv")``."""

    def write(columns: dict[str, list[str]], name: str = "in.tsv") -> Path:
        lines = ["\t".join(columns), *map("\t".join, zip(*columns.values(), strict=True))]
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@pytest.fixture
def fasta(tmp_path: Path) -> Callable[..., Path]:
    """Write sequences, wrapped after six letters: ``fasta({"a": "ACGT"}, "in.fa")``; .gz is compressed."""

    def write(records: dict[str, str], name: str) -> Path:
        path = tmp_path / name
        text = "".join(
            f">{name} described\n{letters[:6]}\n{letters[6:]}\n" for name, letters in records.items()
        )
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


@pytest.fixture(scope="session")
def stopping() -> Callable[[int], str]:
    """Statements after which a run sends itself a signal when the third block is kept."""

    def statements(number: int) -> str:
        return (
            # A parent may have had Ctrl-C ignored for its children.
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
            "import os; from plait.formats.checkpoints import Checkpoint as c; put = c.put;"
            "c.put = lambda self, index, *rest: (put(self, index, *rest),"
            f" os.kill(os.getpid(), {int(number)}) if index == 2 else None)[0]"
        )

    return statements
