"""Kernels from the cache run without Numba, and only for the types they were compiled for."""

from __future__ import annotations

import importlib
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.examples import often

from plait.lang import compile as _jit
from plait.lang import native as _native

PROGRAM = """
import contextlib
import json
import math
import os
import platform
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from plait.lang import compile as _jit
from plait.lang.compiling import compiled_kernels
from plait.lang.compile import kernel

alone = _jit.alone


@contextlib.contextmanager
def after_another(file, name):
    # While it waits, what another process compiles arrives.
    with alone(file, name):
        shutil.copytree(sys.argv[2], file.parent, dirs_exist_ok=True)
        yield


if "shipped" in sys.argv:
    _jit._shipped_folders = lambda: (Path(sys.argv[2]) / "none", Path(sys.argv[2]))
if "waiting" in sys.argv:
    _jit.alone = after_another
if "llvm" in sys.argv:
    _jit._native._linked = lambda *objects: None


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


def weighed(factor, rows):
    found = 0
    for k in range(rows.size):
        found += factor * rows[k]
    return found


total, pair, nothing, weighed = kernel(total), kernel(pair), kernel(nothing), kernel(weighed)
def chosen(flags, out):
    return out[1] + 10 if flags[0] else out[1] + 20


def filled(values):
    values[:] = 3
    values[1:] = 4
    total = 0.0
    for k in range(values.size):
        total += math.exp(values[k]) + math.log1p(values[k])
    return total


def added(whole, short, other, fraction):
    return 1.0 * whole[0] + whole[1] + whole[2] + short[0] + short[1] + other[0] + other[1] + fraction


chosen, filled, added = kernel(chosen), kernel(filled), kernel(added)
rows, out = np.arange(10, dtype=np.int16), np.zeros(10, np.int16)
if "threads" in sys.argv:
    loads, load = [], _jit._native.load

    def counted(*args):
        loads.append(args)
        return load(*args)

    _jit._native.load = counted
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(nothing, [out] * 64))
    print(json.dumps([len(loads), "numba" in sys.modules, compiled_kernels()]))
    sys.exit()
if "changed" in sys.argv:
    os.utime(__file__)
if "few" in sys.argv:
    nothing(out)
    print(json.dumps([int(out[0]), "numba" in sys.modules, compiled_kernels()]))
    sys.exit()
found = [total(Scaled(3, rows), 2, out), total(Scaled(0.5, rows), 2, out), *pair(2, 3)]
read_only = rows.copy()
read_only.setflags(write=False)
found += [total(Scaled(np.int8(2), read_only), 0, out), nothing(out), int(out[0])]
found += [chosen((True,), out), chosen((False,), out), round(filled(np.zeros(1000)), 6)]
whole = np.int32(-70_000), np.uint32(4_000_000_000), np.uint64(1 << 40)
found.append(added(whole, (np.int8(-1), np.uint8(200)), (np.int16(-300), np.uint16(60_000)), np.float32(0.5)))
strided = np.arange(20, dtype=np.int16)[::2]
if "strided" in sys.argv:
    found.append(weighed(3, strided))
assert "waiting" not in sys.argv or not compiled_kernels()
# Loading LLVM takes longer than many a run.
by_llvm = "own" not in sys.argv or sys.platform != "linux" or platform.machine() != "x86_64"
assert by_llvm or "llvmlite.binding" not in sys.modules
print(json.dumps([found, "numba" in sys.modules, compiled_kernels()]))
"""
#: Calls functions of the C library.
SUM = round(math.exp(3) + math.log1p(3) + sum(math.exp(4) + math.log1p(4) for _ in range(999)), 6)
ADDED = -70_000 + 4_000_000_000 + (1 << 40) - 1 + 200 - 300 + 60_000 + 0.5
ANSWERS = [132, 22.0, 5, 1.0, 90, None, 7, 11, 21, SUM, ADDED]


class Two(NamedTuple):
    a: Any
    b: Any


class Other(NamedTuple):
    a: Any
    b: Any


class Run(NamedTuple):
    """What the program found, whether it imported Numba, what it compiled, and what it warned of."""

    found: Any
    numba: bool
    compiled: list[str]
    warned: str


def run(folder: Path, *words: str) -> Run:
    program = folder / "program.py"
    if not program.exists():
        program.write_text(PROGRAM)
    environment = os.environ | {"PLAIT_CACHE_DIR": str(folder / "cache")}
    environment.pop("NUMBA_DISABLE_JIT", None)
    command = [sys.executable, str(program), *words]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    found, numba, compiled = json.loads(result.stdout)
    return Run(found, numba, compiled, result.stderr)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the program has run once, and a copy of its cache."""
    folder = tmp_path_factory.mktemp("first")
    made = run(folder)
    assert made.found == ANSWERS and made.numba
    (folder / "cache").rename(folder / "whole")
    return folder


@pytest.fixture
def folder(first: Path) -> Path:
    """The same, as the first run has left it."""
    shutil.rmtree(first / "cache", ignore_errors=True)
    shutil.copytree(first / "whole", first / "cache")
    return first


def the_object(folder: Path, kernel: str = "nothing") -> Path:
    """The file of a kernel."""
    (file,) = (folder / "cache").rglob(f"*.{kernel}-*.o")
    return file


@pytest.mark.parametrize("linker", often(2, ["own", "llvm"]))
def test_a_second_process_does_not_need_numba(folder: Path, linker: str) -> None:
    assert run(folder, linker) == (ANSWERS, False, [], "")


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="others are linked by LLVM"
)
def test_what_needs_a_linker_is_left_to_llvm(folder: Path) -> None:
    facts, _, code = (_native.read(the_object(folder, "filled")) or b"").partition(b"\n")
    size = json.loads(facts)["bytes"]
    own, entry = bytearray(code[:size]), code[size:]
    assert _native._linked(bytes(own), entry) is not None
    assert _native._linked(entry[:18] + b"\xb7" + entry[19:], entry) is None

    def refused(place: int, value: int) -> bool:
        changed = bytearray(own)
        changed[place] = value
        return _native._linked(bytes(changed), entry) is None

    headers = int.from_bytes(own[40:48], "little")
    sections = _native._sections(bytes(own))
    text = next(k for k, (_, _, flags, *_) in enumerate(sections) if flags & 0x4 and flags >> 8)
    moved = next(offset for _, kind, _, _, offset, _, _, of, *_ in sections if (kind, of) == (4, text))
    assert refused(moved + 8, 2)  # an address beside the place
    assert refused(headers + 64 * text + 8, 0x7)  # code that is written to
    assert refused(headers + 64 * text + 24, own[headers + 64 * text + 24] + 1)  # not where it may stand
    assert refused(headers + 64 * text + 4, 8)  # not in the file


@pytest.mark.skipif(not _native.KEPT, reason="nothing is kept here")
def test_a_processor_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path))
    first = _jit._told_by_llvm()
    (file,) = tmp_path.iterdir()
    binding = importlib.import_module("llvmlite.binding")
    assert first == (
        binding.get_process_triple(),
        binding.get_host_cpu_name(),
        dict(binding.get_host_cpu_features()),
    )
    monkeypatch.setattr(binding, "get_host_cpu_name", lambda: "another")
    assert _jit._told_by_llvm() == first
    # Another machine with the same home.
    system = SimpleNamespace(sysname="Linux", release="other", machine="x86_64")
    monkeypatch.setattr(os, "uname", lambda: system)
    assert _jit._told_by_llvm()[1] == "another"
    assert len(list(tmp_path.iterdir())) == 2
    # A program that sees another processor than the system does.
    features = importlib.import_module("numpy._core._multiarray_umath")
    monkeypatch.setattr(features, "__cpu_features__", {"SSE": True})
    assert _jit._told_by_llvm()[1] == "another"
    assert len(list(tmp_path.iterdir())) == 3
    # Nothing tells which it is.
    monkeypatch.delattr(features, "__cpu_features__")
    assert _jit._told_by_llvm()[1] == "another"
    assert len(list(tmp_path.iterdir())) == 3
    monkeypatch.undo()
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path))
    file.write_bytes(file.read_bytes()[:-1])
    assert _jit._told_by_llvm() == first
    for content in (b"[]", b"null", b"not", b'{"a": 1}', b'["a", "b", 3]', b'["a", "b", {}, 4]'):
        _native.write(file, content)
        assert _jit._told_by_llvm() == first


@pytest.mark.skipif(not _native.KEPT, reason="nothing is kept here")
@pytest.mark.parametrize("error", [OSError, AttributeError])
def test_a_system_that_refuses_is_left_to_llvm(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    file = the_object(folder, "filled")
    facts, _, _ = (_native.read(file) or b"").partition(b"\n")
    found: Any = SimpleNamespace(types=json.loads(facts)["types"], codes=[])

    def refuse(*objects: bytes) -> None:
        raise error

    monkeypatch.setattr(_native, "_linked", refuse)
    assert _native.load(file, found) is not None


def test_what_another_process_has_compiled_is_not_compiled_again(folder: Path, tmp_path: Path) -> None:
    (kept,) = (path for path in (folder / "whole").iterdir() if path.is_dir())
    assert run(tmp_path, "waiting", str(kept)) == (ANSWERS, False, [], "")


def test_what_came_with_plait_is_used_before_the_cache(folder: Path, tmp_path: Path) -> None:
    (kept,) = (path for path in (folder / "whole").iterdir() if path.is_dir())
    # Whoever has installed it.
    shipped = shutil.copytree(kept, tmp_path / "shipped")
    for file in shipped.iterdir():
        file.chmod(0o664)
    assert run(tmp_path, "shipped", str(shipped)) == (ANSWERS, False, [], "")
    assert not (tmp_path / "cache").exists()
    damaged = next(shipped.glob("*.nothing-*.o"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert run(tmp_path, "shipped", str(shipped)).compiled == ["__main__.nothing"]


def test_what_came_with_plait_is_for_this_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def levels(features: str, **settings: str) -> list[str]:
        for name in [name for name in os.environ if name.startswith("NUMBA_")]:
            monkeypatch.delenv(name)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(_jit, "host_features", lambda: dict.fromkeys(features.split(), True))
        return [folder.name for folder in _jit._shipped_folders.__wrapped__()]

    monkeypatch.setattr(_jit, "shipped_folder", lambda level: tmp_path / level)
    v3, v4, arm = (" ".join(_jit.LEVELS[name][1]) for name in ("x86-64-v3", "x86-64-v4", "aarch64"))
    assert levels(v4) == []
    for level in _jit.LEVELS:
        (tmp_path / level).mkdir()
    assert levels(f"{v4} gfni") == ["x86-64-v4", "x86-64-v3"]
    assert levels(v3) == ["x86-64-v3"]
    assert levels(v3.replace("bmi2", "")) == []
    assert levels(arm) == ["aarch64"]
    # Whoever chooses how Numba compiles wants what it compiles.
    assert levels(v4, NUMBA_OPT="1") == []
    assert levels(v4, NUMBA_NUM_THREADS="2") == ["x86-64-v4", "x86-64-v3"]


@pytest.mark.slow
def test_what_only_numba_can_call_is_kept_too(folder: Path) -> None:
    answers = [*ANSWERS, 3 * sum(range(0, 20, 2))]
    assert run(folder, "strided") == (answers, True, ["__main__.weighed"], "")
    (kept,) = (folder / "cache").rglob("*.numba")
    assert run(folder, "strided") == (answers, True, [], "")
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert run(folder, "strided") == (answers, True, ["__main__.weighed"], "")
    assert _native.read(kept) is not None


def test_damaged_files_are_compiled_again(folder: Path) -> None:
    files = {
        kernel: the_object(folder, kernel) for kernel in ("pair", "nothing", "chosen", "filled", "added")
    }
    whole = {kernel: file.read_bytes() for kernel, file in files.items()}
    assert {file.stat().st_mode & 0o777 for file in files.values()} == {0o600}
    files["pair"].write_bytes(b"")
    files["nothing"].write_bytes(whole["nothing"][:-100])
    files["chosen"].write_bytes(whole["chosen"] + b"\0")
    files["filled"].write_bytes(whole["filled"].replace(b'"types": "', b'"types": "d ', 1))
    files["added"].chmod(0o620)
    assert run(folder) == (ANSWERS, True, [f"__main__.{kernel}" for kernel in files], "")
    # What is compiled again takes the place of what was damaged.
    assert all(_native.read(file) is not None for file in files.values())
    assert {file.stat().st_mode & 0o777 for file in files.values()} == {0o600}


def test_a_flipped_bit_anywhere_is_found(folder: Path) -> None:
    file = the_object(folder)
    whole = file.read_bytes()
    assert _native.read(file) is not None
    # The checksum, the facts and the code, each in many places.
    for place in {*range(200), *range(200, len(whole), 61), len(whole) - 1}:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        file.write_bytes(damaged)
        assert _native.read(file) is None, place


@pytest.mark.skipif(os.name != "posix", reason="folders have no such rights here")
@pytest.mark.parametrize("which", often(1, ["root", "folder", "owner"]))
def test_a_folder_that_others_may_write_to_is_not_used(
    folder: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folder / "cache"
    (inner,) = (path for path in root.iterdir() if path.is_dir())
    spoiled = inner if which == "folder" else root
    assert {root.stat().st_mode & 0o777, inner.stat().st_mode & 0o777} == {0o700}
    if which != "owner":
        spoiled.chmod(0o720)
    elif os.geteuid() == 0:
        os.chown(spoiled, 12345, 12345)
    else:
        pytest.skip(reason="only root can give folders away")
    before = {file: file.read_bytes() for file in inner.iterdir()}
    if which == "root":
        made = run(folder, "few")
        assert (made.found, made.compiled) == (7, ["__main__.nothing"])
        (line,) = [line for line in made.warned.splitlines() if "compiled code is not kept" in line]
        assert f"{spoiled} " in line and "PLAIT_CACHE_DIR" in line
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(root))
    with pytest.warns(UserWarning, match=f"compiled code is not kept: {spoiled} .*PLAIT_CACHE_DIR"):
        assert _jit.compiled_cache.__wrapped__() == _jit._temporary_folder()
    assert {file: file.read_bytes() for file in inner.iterdir()} == before


def test_neither_links_nor_pipes_are_read(tmp_path: Path) -> None:
    _native.write(tmp_path / "real", b"code")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert _native.read(tmp_path / "real") == b"code"
    assert _native.read(tmp_path / "link") is None
    os.mkfifo(tmp_path / "pipe")
    assert _native.read(tmp_path / "pipe") is None


@pytest.mark.slow
def test_threads_that_need_a_kernel_compile_it_once(tmp_path: Path) -> None:
    # Once before, once when no other process can be compiling it, and once it is compiled.
    assert run(tmp_path, "threads") == (3, True, ["__main__.nothing"], "")
    assert run(tmp_path, "threads") == (1, False, [], "")


def test_threads_compile_different_kernels_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, arrived = (
        importlib.import_module("numba.core.compiler_lock").global_compiler_lock,
        threading.Event(),
    )

    def acquire() -> None:
        arrived.set()
        type(lock).acquire(lock)

    def of_another(*_: object, **__: object) -> None:
        raise AssertionError("a library of a kernel that another thread compiles")

    dispatcher = _jit._dispatcher(lambda a: a + 1)
    codegen = dispatcher.targetctx.codegen()
    with ThreadPoolExecutor(1) as pool:
        with lock:
            monkeypatch.setattr(lock, "acquire", acquire)
            codegen.create_library = of_another
            compiled = pool.submit(_jit._compile, dispatcher, (dispatcher.typeof_pyval(1),), False)
            assert arrived.wait(60)
            del codegen.create_library
        assert compiled.result().library.get_pointer_to_function(compiled.result().fndesc.llvm_func_name)


@pytest.mark.slow
def test_sources_that_changed_since_the_start_are_not_kept(tmp_path: Path) -> None:
    assert run(tmp_path, "few", "changed").compiled == ["__main__.nothing"]
    assert run(tmp_path, "few").compiled == ["__main__.nothing"]
    assert run(tmp_path, "few") == (7, False, [], "")


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


def test_addresses_are_those_that_numpy_tells(tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(bytes(64))
    read_only = np.frombuffer(b"abcdefgh", np.uint8)
    mapped = np.memmap(tmp_path / "words", np.int64, "r")
    for array in (np.arange(9)[2:], read_only, np.asarray(mapped)[1:], np.empty(0), np.zeros((2, 3, 0))):
        found = _native.signature((array,))
        assert found is not None and found.values[4] == array.__array_interface__["data"][0]
