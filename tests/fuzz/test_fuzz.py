"""Short runs of the fuzzer, and every failure that it has ever found."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fuzz.parsers import PARSERS
from tests.fuzz.run import FAILURES, kept_case, kept_cases, run_cases, vacuous
from tests.fuzz.trial import Parser, limit_memory, outcome

#: Cases of one parser: a second of work at the most.
_CASES = {
    "options": 12,
    "olga": 120,
    "germline_fasta": 120,
    "inference_state": 60,
    "germline": 150,
    "study": 150,
}
# What libraries warn of in broken files is not of interest here.
pytestmark = pytest.mark.filterwarnings("ignore")

#: What is known to fail, and is being mended: case, parser and failure. Empty, or not there, when all holds.
_LIST = FAILURES / "open.tsv"
_OPEN = [line.split("\t") for line in _LIST.read_text().splitlines()] if _LIST.exists() else []
_OPEN_CASES = {case for case, _, _ in _OPEN}
_OPEN_PARSERS = {parser for _, parser, _ in _OPEN}
_KEPT = [case for case in kept_cases() if case not in _OPEN_CASES]


@pytest.mark.parametrize("name", list(PARSERS))
def test_mutated_files(name: str, tmp_path: Path) -> None:
    parser = PARSERS[name]()
    failures: list[str] = []

    def failed(case: bytes, told: str) -> None:
        if name in _OPEN_PARSERS:
            return
        path = tmp_path / f"{len(failures)}.case"
        path.write_bytes(case)
        failures.append(f"{told}: {path}")

    tally = run_cases(parser, 0, iter((0,)), tmp_path, failed, count=_CASES.get(name, 250))
    assert not failures, "\n".join(failures)
    assert vacuous(parser, tally) is None


@pytest.mark.parametrize("name", list(PARSERS))
def test_files_that_the_mutations_begin_with(name: str, tmp_path: Path) -> None:
    parser = PARSERS[name]()
    found = {outcome(parser, case, tmp_path).state for case in parser.seeds}
    assert found <= {"accepted", "refused"}
    assert name == "options" or "accepted" in found


@pytest.mark.parametrize("case", _KEPT)
def test_what_once_failed(case: str, tmp_path: Path) -> None:
    parser = PARSERS[case.split("/")[0]]()
    limit_memory()
    try:
        found = outcome(parser, kept_case(case), tmp_path)
    finally:
        limit_memory(0)
    assert found.state in ("accepted", "refused"), found.told


def test_a_failure_is_noticed(tmp_path: Path) -> None:
    def read(data: bytes, folder: Path) -> None:
        if b"x" in data:
            raise KeyError(data)

    parser = Parser(name="planted", seeds=[b"abc"], mutate=lambda rng, corpus: b"xyz", read=read)
    found: list[str] = []
    tally = run_cases(parser, 0, iter((0,)), tmp_path, lambda case, told: found.append(told), count=5)
    assert found == ["KeyError at test_fuzz.py:read"] and tally.failed[found[0]] == 5
    assert vacuous(parser, tally) is not None
