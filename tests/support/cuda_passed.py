"""Which tests of CUDA kernels have passed with which sources: those of unchanged ones can be left out.

``make cuda-passed`` runs all of them and keeps in `RECORD`: for every file of simulator tests, the sources of
the kernels that they launched (`plait.lang.closure`), the files of plait and of the tests that stood on the
stack of a launch, and those that the tests import, with one digest of all; for every test with the marker
``made_of``, the digest that the marker has. A file that is not named can only have come to matter by a
change of one that is.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import tomllib
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
RECORD = REPOSITORY / "tests" / "cuda_passed.toml"
_HEAD = """\
# Tests of CUDA kernels that have passed, with digests of what they and the kernels are made of.
# Made by `make cuda-passed`; `make test` leaves out those of which nothing has changed since.
"""
#: Names under which a test tells the process that keeps the record what it is made of.
_LAUNCHED, _DIGEST = "sources of launched kernels", "digest of sources"
_PACKAGE, _ENDS = REPOSITORY / "src" / "plait", (".py", "/__init__.py")
_SIMULATOR = "tests/support/simulator.py"


class Sources(NamedTuple):
    """A file of simulator tests that has passed: how many they are, and of what."""

    tests: int
    digest: str
    sources: tuple[str, ...]


class Passed(NamedTuple):
    """What the record says: files of simulator tests, and digests of other tests, by their ids."""

    simulated: dict[str, Sources]
    digests: dict[str, str]


def digest_of(sources: Iterable[str], root: Path = REPOSITORY) -> str:
    """Digest of files, by paths below `root`, whether they are there or not."""
    digest = hashlib.blake2b(digest_size=12)
    for name in sorted(sources):
        file = root / name
        content = file.read_bytes() if file.is_file() else b"gone"
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def kept(record: Path = RECORD) -> Passed:
    """What the record says."""
    found = tomllib.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    simulated = {
        name: Sources(one["tests"], one["digest"], tuple(one["sources"]))
        for name, one in found.get("simulated", {}).items()
    }
    return Passed(simulated, found.get("digests", {}))


def unchanged(record: Path = RECORD, root: Path = REPOSITORY) -> dict[str, int]:
    """Files of simulator tests of which nothing has changed since they passed; how many tests."""
    simulated = kept(record).simulated
    return {name: one.tests for name, one in simulated.items() if digest_of(one.sources, root) == one.digest}


def keep(passed: Passed, record: Path = RECORD) -> None:
    """Write the record."""
    lines = [_HEAD, "[digests]"]
    lines += [f'"{name}" = "{digest}"' for name, digest in sorted(passed.digests.items())]
    for name, (tests, digest, sources) in sorted(passed.simulated.items()):
        lines += ["", f'[simulated."{name}"]', f"tests = {tests}", f'digest = "{digest}"', "sources = ["]
        lines += [*(f'  "{source}",' for source in sources), "]"]
    record.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Recorder:
    """A plugin that watches launches while tests run, and keeps what has passed."""

    def __init__(self, *, simulated: bool) -> None:
        self._launched: set[str] = set()
        self._tests: dict[str, list[tuple[bool, set[str]]]] = {}
        self._digests: dict[str, str | None] = {}
        if simulated:
            self._watch()

    def _watch(self) -> None:
        from plait.devices import cuda

        launch = cuda.CudaKernel.launch

        def noted(kernel: Any, blocks: Any, threads: Any, *arguments: Any, **options: Any) -> None:
            self._note(cuda.closure, kernel, arguments)
            launch(kernel, blocks, threads, *arguments, **options)

        cuda.CudaKernel.launch = noted  # type: ignore[method-assign]

    def _note(self, closure: Callable[..., Any], kernel: Any, arguments: tuple[Any, ...]) -> None:
        files = {*closure(kernel.py_func, arguments, "cuda").files}
        frame = sys._getframe(2)
        while frame is not None:
            files.add(frame.f_code.co_filename)
            frame = frame.f_back  # type: ignore[assignment]
        self._launched |= {name for name in map(_within, files) if name is not None}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Let the report of a test have what it launches."""
        self._launched.clear()
        marker = item.get_closest_marker("made_of")
        if marker is not None:
            item.user_properties.append((_DIGEST, marker.args[0]))
        yield
        item.user_properties.append((_LAUNCHED, sorted(self._launched)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what the tests tell, in the process that runs or starts them."""
        if report.skipped or (report.when != "call" and report.passed):
            return
        told: dict[str, Any] = dict(report.user_properties)
        if _DIGEST in told:
            self._digests[report.nodeid] = told[_DIGEST] if report.passed else None
        else:
            tests = self._tests.setdefault(report.nodeid.partition("::")[0], [])
            tests.append((report.passed, set(told.get(_LAUNCHED, ()))))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep what was run as a whole, if this process is not a worker of another."""
        config = session.config
        part = config.option.keyword or any("::" in name for name in config.args)
        if part or hasattr(config, "workerinput"):
            return
        simulated, digests = kept()
        simulated = {name: one for name, one in simulated.items() if name not in self._tests}
        for file, tests in self._tests.items():
            launched = set().union(*(sources for _, sources in tests))
            # Where nothing was launched, nothing says what the tests depend on.
            if launched and all(fine for fine, _ in tests):
                sources = tuple(sorted({*launched, *imported(REPOSITORY / file), file, _SIMULATOR}))
                simulated[file] = Sources(len(tests), digest_of(sources), sources)
        if self._digests:
            digests = {name: digest for name, digest in self._digests.items() if digest is not None}
        keep(Passed(simulated, digests))


def imported(file: Path) -> set[str]:
    """Sources of plait that a file of tests imports itself, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    found = {
        _within(str(_PACKAGE.parent / (name.replace(".", "/") + end))) for name in names for end in _ENDS
    }
    return {name for name in found if name is not None and (REPOSITORY / name).is_file()}


def _within(file: str) -> str | None:
    """Path below the repository, if it is a source of plait or of the tests."""
    path = Path(file)
    if not path.is_relative_to(REPOSITORY):
        return None
    name = path.relative_to(REPOSITORY).as_posix()
    return name if name.startswith(("src/plait/", "tests/")) else None
