"""Kernels are compiled for types that are written down, before a command calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from plait.lang import ahead, compiling, native
from plait.lang.compile import kernel

LISTED = json.loads(ahead.LIST.read_text(encoding="ascii"))
WITHOUT_COMPILER = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")


class Pair(NamedTuple):
    rows: Any
    scale: Any


class Pair12(NamedTuple):
    a: Any
    b: Any
    c: Any


def types_of(*arguments: object) -> str:
    found = native.signature(arguments)
    assert found is not None
    return found.types


def test_arguments_have_the_types_that_are_written() -> None:
    read_only = np.zeros((2, 3), np.uint16)
    read_only.flags.writeable = False
    pair = Pair(np.zeros(4), (np.int8(3), True))
    arguments = (
        pair,
        read_only,
        1,
        2.5,
        np.float32(1),
        np.uint64(3),
        (),
        Pair12(1, False, np.zeros(1, bool)),
    )
    types = types_of(*arguments)
    made = ahead.arguments_of(types)
    assert types_of(*made) == types
    assert [type(value) for value in made] == [type(value) for value in arguments]


@WITHOUT_COMPILER
@pytest.mark.parametrize("width", LISTED["commands"])
def test_every_kernel_of_the_list_is_there(width: str) -> None:
    numbers = {k for lines in LISTED["commands"][width].values() for line in lines for k in line}
    assert numbers and max(numbers) < len(LISTED["kernels"])
    for number in numbers:
        found, arguments = ahead.kernel_and_arguments(number)
        assert types_of(*arguments) == LISTED["kernels"][number].partition(" ")[2]
        assert callable(found.compile_ahead)


@pytest.mark.parametrize("width", LISTED["commands"])
def test_a_demo_compiles_what_its_regression_needs_beside_what_counts(width: str) -> None:
    commands = LISTED["commands"][width]
    whole = max(commands["vdj study"], key=len)
    regression = {number for number in whole if ".logistic:" in LISTED["kernels"][number]}
    assert len(regression) == 3
    assert all(regression < set(line) and whole[0] in line for line in commands["demo"])


@kernel
def _total(rows: Any) -> Any:
    return rows[0] + rows[1]


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list of four kernels, of which a command uses all but the second; numbers that are compiled."""
    kernels = [f"{__name__}:_total {kind}1w" for kind in ("<i8", "<f8", "<i4", "<i2")]
    done: list[int] = []
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__, sys))
    monkeypatch.setattr(sys.modules[__name__], "_total", _total, raising=False)
    commands = {"vdj": [[1]], "vdj count": [[1], [0, 2, 3]]}
    monkeypatch.setattr(ahead, "_listed", lambda: ahead._Listed(kernels, [70, 9, 64, 2], commands))
    monkeypatch.setattr(ahead, "_is_kept", done.__contains__)
    monkeypatch.setenv("PLAIT_THREADS", "2")
    return done


class Process:
    """Compiles when it is looked at for the third time."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers, self.looks, self.ended = numbers, 0, False

    def poll(self) -> int | None:
        self.looks += 1
        return 0 if self.looks > 2 else None

    def terminate(self) -> None:
        self.ended = True

    def communicate(self) -> tuple[str, str]:
        return "", ""


@WITHOUT_COMPILER
def test_what_goes_with_a_missing_kernel_is_compiled_by_others(
    listed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Process] = []

    def start(numbers: list[int], processes: int) -> list[Process]:
        started.extend(Process(numbers) for _ in range(processes))
        return started[-processes:]

    monkeypatch.setattr(ahead, "start", start)
    words = ["vdj", "count", "rows.tsv"]
    with ahead.Ahead(words) as helper:
        assert helper(_total.name, "<u81w") is None, "of no command line"
        assert helper("another", "<i41w") is None
        assert helper(_total.name, "<f81w") is None, "nothing else goes with it"
        assert not started
        at_work = helper(_total.name, "<i41w")
        assert at_work is not None and at_work()
        while at_work():
            pass
        assert helper(_total.name, "<i81w") is not None
        before = len(compiling.compiled_kernels())
        listed += [0, 2, 3]
    assert compiling.compiled_kernels()[before:] == [_total.name] * 3
    assert helper.processes == 2
    # The one that is needed first, and then the largest.
    assert [process.numbers for process in started] == [[2, 0, 3]] * 2
    assert all(process.ended for process in started)
    for missing in ([2], [2, 3]):
        listed[:] = [number for number in (0, 2, 3) if number not in missing]
        with ahead.Ahead(words) as helper:
            assert helper(_total.name, "<i41w") is None, "a process takes longer to start than that"
    with ahead.Ahead(["vdj", "pgen"]) as helper:
        assert helper(_total.name, "<i41w") is None
    assert len(started) == 2


@WITHOUT_COMPILER
def test_processes_are_started_where_they_are_worth_it(
    listed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (ahead.worth([2]), ahead.worth([0, 3]), ahead.worth([0, 2])) == (1, 1, 2)
    assert ahead.worth([0, 0, 0, 0]) == 2, "there are two processors"
    monkeypatch.setenv("PLAIT_THREADS", "9")
    assert (ahead.worth([0, 0, 0, 0]), ahead.worth([0, 0])) == (4, 2)


def test_a_kernel_is_waited_for_while_others_are_at_work(tmp_path: Path) -> None:
    looks = iter([True, True, False, True])

    def at_work() -> bool:
        if not (found := next(looks)):
            (tmp_path / "kernel.o").touch()
        return found

    compiling.wait_for_others("kernel", "q", str(tmp_path / "other"))
    with compiling.helped(lambda *_: at_work):
        compiling.wait_for_others("kernel", "q", str(tmp_path / "other"))
        compiling.wait_for_others("kernel", "q", str(tmp_path / "kernel"))
    assert next(looks), "it was there already"


@pytest.mark.slow
@WITHOUT_COMPILER
def test_processes_share_a_list(tmp_path: Path) -> None:
    """The two shortest kernels of coding a cube."""
    small = sorted(
        (len(text), k) for k, text in enumerate(LISTED["kernels"]) if "skew_kernel" in text.partition(" ")[0]
    )
    program = (
        "import sys\nfrom plait.lang import ahead\nnumbers = list(map(int, sys.argv[1:]))\n"
        "assert ahead.missing(numbers) == numbers\n"
        "assert [p.communicate()[1] for p in ahead.start(numbers, 2)] == ['', '']\n"
        "assert not ahead.missing(numbers)\n"
    )
    command = [sys.executable, "-c", program, *(str(k) for _, k in small[:2])]
    environment = os.environ | {"PLAIT_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert len(list(tmp_path.rglob("*.o"))) == 2
