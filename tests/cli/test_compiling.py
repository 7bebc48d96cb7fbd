"""What commands say about compilation, and that their rates are of the work alone."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from plait.cli.options import compilation_told
from plait.lang.compiling import compiling, compiling_seconds, work_time

TOLD = (
    r"plait: compiled (\d+) kernels? for this machine in (\d+\.\d) s(?: by \d processes)?, "
    r"which are in no rate\n"
)


#: Compilation takes a thousand seconds longer by every clock that is asked.
LONGER = """
import contextlib, time, plait.lang.compile as c
real, compiling, later = time.perf_counter, c.compiling, [0]
time.perf_counter = lambda: real() + later[0]

@contextlib.contextmanager
def longer(*words, **options):
    with compiling(*words, **options):
        yield
        later[0] += 1000

c.compiling = longer
"""


@pytest.fixture
def run(start_plait: Any, tmp_path: Path) -> Any:
    """Run a command with a cache of its own; what it printed."""

    def call(*words: object) -> tuple[str, str]:
        environment = os.environ | {"PLAIT_CACHE_DIR": str(tmp_path / "cache")}
        process = start_plait(*words, before=f"exec({LONGER!r})", env=environment)
        out, err = process.communicate(timeout=500)
        assert process.returncode == 0, err
        return out, err

    return call


@pytest.mark.slow
@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_whatever_is_compiled_is_told_once_and_in_no_rate(run: Any, tmp_path: Path) -> None:
    generate = ("vdj", "generate", "--model", "human_TRB", "-n", 20, "--threads", 1)
    out, err = run(*generate, "-o", tmp_path / "first.tsv")
    told = re.fullmatch(TOLD, err)
    assert told is not None and told[1] == "1"
    seconds = re.search(r"in ([\d.]+) s", out)
    assert seconds is not None and float(seconds[1]) < 1000 < float(told[2])
    assert run(*generate, "-o", tmp_path / "second.tsv")[1] == ""
    # Another command needs other kernels, and says so although something is compiled.
    (tmp_path / "in.fasta").write_text(">a\nACGTACGTAA\n>b\nACGTTACGTA\n")
    words = ("find", "ACGTACGT", tmp_path / "in.fasta", "--mismatches", 1)
    _, err = run(*words, "-o", tmp_path / "out.tsv")
    told = re.search(f"^{TOLD}", err, re.MULTILINE)
    assert told is not None and int(told[1]) == len(list((tmp_path / "cache").rglob("*.o"))) - 1


def test_a_command_that_fails_tells_what_it_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="stop"), compilation_told():
        with compiling("first"), compiling("second"):
            pass
        with compiling("waits", here=False):
            pass
        raise ValueError("stop")
    told = re.fullmatch(TOLD, capsys.readouterr().err)
    assert told is not None and told[1] == "2"


def test_nothing_is_said_where_nothing_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    with compilation_told():
        pass
    assert capsys.readouterr().err == ""


def test_the_clock_of_work_stands_still_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("plait.lang.compiling.time.perf_counter", lambda: now[0])
    start, before = work_time(), compiling_seconds()
    now[0] += 1
    with compiling("outer"):
        now[0] += 10
        with compiling("inner"):
            now[0] += 10
            assert work_time() - start == pytest.approx(1)
        now[0] += 10
    now[0] += 2
    assert work_time() - start == pytest.approx(3)
    assert compiling_seconds() - before == pytest.approx(30)
