"""Kernels from the cache run without Numba, and only for the types they were compiled for."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from plait import _native

PROGRAM = """
import contextlib
import json
import math
import shutil
import sys
from typing import NamedTuple

import numpy as np

from plait import _jit
from plait._compiling import compiled_kernels
from plait._jit import kernel

alone = _jit._alone


@contextlib.contextmanager
def after_another(file, name):
    # While it waits, what another process compiles arrives.
    with alone(file, name):
        shutil.copytree(sys.argv[2], file.parent, dirs_exist_ok=True)
        yield


if "waiting" in sys.argv:
    _jit._alone = after_another


class Scaled(NamedTuple):
    factor: object
    rows: object


def total(scaled, first, out):
    found = 0
    for k in range(first, scaled.rows.size):
        found += scaled.factor * scaled.rows[k]
        out[k] = scaled.rows[k]
    return found


def pair(a, b):
    return a + b, a * 0.5


def nothing(out):
    out[0] = 7


total, pair, nothing = kernel(total), kernel(pair), kernel(nothing)
def chosen(flags, out):
    return out[1] + 10 if flags[0] else out[1] + 20


def filled(values):
    values[:] = 3
    values[1:] = 4
    total = 0.0
    for k in range(values.size):
        total += math.exp(values[k]) + math.log1p(values[k])
    return total


chosen, filled = kernel(chosen), kernel(filled)
rows, out = np.arange(10, dtype=np.int16), np.zeros(10, np.int16)
found = [total(Scaled(3, rows), 2, out), total(Scaled(0.5, rows), 2, out), *pair(2, 3)]
read_only = rows.copy()
read_only.setflags(write=False)
found += [total(Scaled(np.int8(2), read_only), 0, out), nothing(out), int(out[0])]
found += [chosen((True,), out), chosen((False,), out), round(filled(np.zeros(1000)), 6)]
strided = np.arange(20, dtype=np.int16)[::2]
if "strided" in sys.argv:
    found.append(total(Scaled(3, strided), 0, out))
assert "waiting" not in sys.argv or not compiled_kernels()
print(json.dumps([found, "numba" in sys.modules]))
"""
#: Calls functions of the C library.
SUM = round(math.exp(3) + math.log1p(3) + sum(math.exp(4) + math.log1p(4) for _ in range(999)), 6)
ANSWERS = [132, 22.0, 5, 1.0, 90, None, 7, 11, 21, SUM]


class Two(NamedTuple):
    a: Any
    b: Any


class Other(NamedTuple):
    a: Any
    b: Any


def run(folder: Path, *words: str) -> list[Any]:
    import json

    program = folder / "program.py"
    if not program.exists():
        program.write_text(PROGRAM)
    environment = os.environ | {"PLAIT_CACHE_DIR": str(folder / "cache")}
    environment.pop("NUMBA_DISABLE_JIT", None)
    command = [sys.executable, str(program), *words]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return list(json.loads(result.stdout))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the program has run once, and a copy of its cache."""
    folder = tmp_path_factory.mktemp("first")
    assert run(folder) == [ANSWERS, True]
    (folder / "cache").rename(folder / "whole")
    return folder


@pytest.fixture
def folder(first: Path) -> Path:
    """The same, as the first run has left it."""
    shutil.rmtree(first / "cache", ignore_errors=True)
    shutil.copytree(first / "whole", first / "cache")
    return first


def test_a_second_process_does_not_need_numba(folder: Path) -> None:
    assert run(folder) == [ANSWERS, False]


def test_what_another_process_has_compiled_is_not_compiled_again(folder: Path, tmp_path: Path) -> None:
    (kept,) = (folder / "whole").iterdir()
    assert run(tmp_path, "waiting", str(kept)) == [ANSWERS, False]


def test_what_only_numba_can_pass_goes_through_it(folder: Path) -> None:
    found, with_numba = run(folder, "strided")
    assert found == [*ANSWERS, 3 * sum(range(0, 20, 2))]
    assert with_numba


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"not json", "cut", "other types"])
def test_a_damaged_file_is_compiled_again(folder: Path, damage: Any) -> None:
    for file in (folder / "cache").rglob("*.o"):
        whole = file.read_bytes()
        if damage == "cut":
            file.write_bytes(whole[:-100])
        elif damage == "other types":
            file.write_bytes(whole.replace(b'"types": "', b'"types": "d ', 1))
        else:
            file.write_bytes(damage)
    assert run(folder) == [ANSWERS, True]


def test_types_tell_everything_apart_that_numba_does() -> None:
    word = np.zeros(3, np.int64)
    read_only = word.copy()
    read_only.setflags(write=False)
    values = [
        1, True, 1.0, np.int8(1), np.uint8(1), np.int32(1), np.float32(1), (1, 1), (1, (1,)), Two(1, 1),
        Other(1, 1), Two(1, 1.0), word, read_only, word.reshape(3, 1), word.astype(np.int32),
        word.astype(np.uint64),
    ]  # fmt: skip
    found = [_native.signature((value,)) for value in values]
    assert None not in found
    types = [one.types for one in found if one is not None]
    assert len(set(types)) == len(types)


@pytest.mark.parametrize(
    "value",
    [
        None, "text", [1], 2**63, np.arange(6)[::2], np.asfortranarray(np.ones((2, 2))),
        np.zeros(2, object), np.zeros(2, ">i4"), np.frombuffer(bytes(17), np.int64, 2, 1),
        (1, None),
    ],
)  # fmt: skip
def test_other_arguments_are_left_to_numba(value: Any) -> None:
    assert _native.signature((value,)) is None


def test_numbers_follow_each_other_as_numba_passes_them() -> None:
    array = np.zeros((2, 3), np.int16)
    found = _native.signature((Two(np.int8(-4), array), 2.5))
    assert found is not None
    address = array.ctypes.data
    assert found.values == [-4, 0, 0, 6, 2, address, 2, 3, 6, 2, 2.5]
    assert "".join(found.codes) == "bPPqqPqqqqd"
