"""Short runs of the fuzzer, and every failure that it has ever found."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.fuzz.parsers import PARSERS
from tests.fuzz.run import kept_case, kept_cases, run_cases, vacuous
from tests.fuzz.trial import Parser, limit_memory, outcome

from plait.formats import rearrangements

#: Twice the cases of one parser: a second of work at the most.
_CASES = {
    "options": 12,
    "olga": 120,
    "germline_fasta": 120,
    "inference_state": 60,
    "germline": 150,
    "study": 150,
    "index": 40,
}
# What libraries warn of in broken files is not of interest here.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def threads_afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Parsers of tables do without threads: what other tests of this process find is as before."""
    monkeypatch.setattr(rearrangements, "read_ahead", rearrangements.read_ahead)
    counts = pa.cpu_count(), pa.io_thread_count()
    yield
    pa.set_cpu_count(counts[0])
    pa.set_io_thread_count(counts[1])


@pytest.mark.parametrize("name", list(PARSERS))
def test_mutated_files(name: str, tmp_path: Path) -> None:
    parser = PARSERS[name]()
    failures: list[str] = []

    def failed(case: bytes, told: str) -> None:
        path = tmp_path / f"{len(failures)}.case"
        path.write_bytes(case)
        failures.append(f"{told}: {path}")

    tally = run_cases(parser, 0, iter((0,)), tmp_path, failed, count=_CASES.get(name, 250) // 2)
    assert not failures, "\n".join(failures)
    assert vacuous(parser, tally) is None


@pytest.mark.parametrize("name", list(PARSERS))
def test_files_that_the_mutations_begin_with(name: str, tmp_path: Path) -> None:
    parser = PARSERS[name]()
    found = {outcome(parser, case, tmp_path).state for case in parser.seeds}
    assert found <= {"accepted", "refused"}
    assert name == "options" or "accepted" in found


@pytest.mark.parametrize("case", kept_cases())
def test_what_once_failed(case: str, tmp_path: Path) -> None:
    parser = PARSERS[case.split("/")[0]]()
    limit_memory()
    try:
        found = outcome(parser, kept_case(case), tmp_path)
    finally:
        limit_memory(0)
    assert found.state in ("accepted", "refused"), found.told


@pytest.mark.slow
def test_a_run_that_is_stopped_says_what_it_has_run(tmp_path: Path) -> None:
    words = [
        "-m",
        "tests.fuzz",
        "--parser",
        "matrix",
        "--parser",
        "texts",
        "--output",
        str(tmp_path / "o.txt"),
    ]
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "parsers: 2, cases: 200,192\n"
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert process.returncode == 1
    written = (tmp_path / "o.txt").read_text()
    for text in (rest, written):
        assert re.search(r"^matrix: stopped after [\d,]+ of 100,096 cases$", text, re.M)
        assert "texts: stopped after 0 of 100,096 cases" in text and "in the cases that were run" in text


def test_a_failure_is_noticed(tmp_path: Path) -> None:
    def read(data: bytes, folder: Path) -> None:
        if b"x" in data:
            raise KeyError(data)

    parser = Parser(name="planted", seeds=[b"abc"], mutate=lambda rng, corpus: b"xyz", read=read)
    found: list[str] = []
    tally = run_cases(parser, 0, iter((0,)), tmp_path, lambda case, told: found.append(told), count=5)
    assert found == ["KeyError at test_fuzz.py:read"] and tally.failed[found[0]] == 5
    assert vacuous(parser, tally) is not None
