"""Which simulator tests have passed with which sources, so that those of unchanged kernels can be left out.

``make simulated`` runs all of them and keeps in `RECORD`, for every file of tests, the sources of the kernels
that they launched (`plait.lang.closure`), the files of plait and of the tests that stood on the stack of a
launch, and one digest of all. `unchanged` compares digests: a file that is not named can only have come to
matter by a change of one that is.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
RECORD = REPOSITORY / "tests" / "parity" / "simulated.toml"
#: Name under which a test tells the process that keeps the record what it launched.
PROPERTY = "sources of launched kernels"
_HEAD = """\
# Files of simulator tests that have passed: the sources of the kernels that they launch, and their digest.
# Made by `make simulated`; `make test` leaves out files of which nothing has changed since.
"""


class Passed(NamedTuple):
    """A file of tests that has passed: how many they are, and from what sources."""

    tests: int
    digest: str
    sources: tuple[str, ...]


def digest_of(sources: Iterable[str], root: Path = REPOSITORY) -> str:
    """Digest of files, by paths below `root`; of one that is gone, none."""
    digest = hashlib.blake2b(digest_size=12)
    for name in sorted(sources):
        file = root / name
        content = file.read_bytes() if file.is_file() else b"gone"
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def kept(record: Path = RECORD) -> dict[str, Passed]:
    """What the record says, by the paths of test files."""
    if not record.is_file():
        return {}
    found = tomllib.loads(record.read_text(encoding="utf-8"))
    return {name: Passed(one["tests"], one["digest"], tuple(one["sources"])) for name, one in found.items()}


def unchanged(record: Path = RECORD, root: Path = REPOSITORY) -> dict[str, int]:
    """Test files of which nothing has changed since they passed, with their numbers of tests."""
    return {
        name: one.tests for name, one in kept(record).items() if digest_of(one.sources, root) == one.digest
    }


def keep(passed: dict[str, tuple[int, set[str]]], record: Path = RECORD, root: Path = REPOSITORY) -> None:
    """Write the record of test files: numbers of their tests, and their sources."""
    lines = [_HEAD]
    for name, (tests, sources) in sorted(passed.items()):
        listed = "".join(f'  "{source}",\n' for source in sorted(sources))
        lines.append(
            f'["{name}"]\ntests = {tests}\ndigest = "{digest_of(sources, root)}"\nsources = [\n{listed}]\n'
        )
    record.write_text("\n".join(lines), encoding="utf-8")


class Recorder:
    """A plugin that watches launches while tests run, and keeps the record when all of a file have passed."""

    def __init__(self) -> None:
        from plait.devices import cuda

        self._launched: set[str] = set()
        self._tests: dict[str, list[tuple[bool, set[str]]]] = {}
        launch = cuda.CudaKernel.launch

        def noted(kernel: Any, blocks: Any, threads: Any, *arguments: Any, **options: Any) -> None:
            self._note(kernel, arguments)
            launch(kernel, blocks, threads, *arguments, **options)

        cuda.CudaKernel.launch = noted  # type: ignore[method-assign]
        self._closure: Callable[..., Any] = cuda.closure

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Let the report of a test have what the test launches."""
        self._launched.clear()
        yield
        item.user_properties.append((PROPERTY, sorted(self._launched)))

    def _note(self, kernel: Any, arguments: tuple[Any, ...]) -> None:
        files = {*self._closure(kernel.py_func, arguments).files}
        frame = sys._getframe()
        while frame is not None:
            files.add(frame.f_code.co_filename)
            frame = frame.f_back  # type: ignore[assignment]
        self._launched |= {name for name in map(_within, files) if name is not None}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect what the tests tell, in the process that runs or starts them."""
        if report.failed or (report.when == "call" and report.passed):
            told = [set(files) for name, files in report.user_properties if name == PROPERTY]
            file = report.nodeid.partition("::")[0]
            self._tests.setdefault(file, []).append((report.passed, set().union(*told)))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Keep the record of what was run, if this process is not a worker of another."""
        config = session.config
        if (
            hasattr(config, "workerinput")
            or config.option.keyword
            or any("::" in name for name in config.args)
        ):
            return
        passed = {
            name: (one.tests, {*one.sources}) for name, one in kept().items() if name not in self._tests
        }
        for file, tests in self._tests.items():
            sources = set().union(*(sources for _, sources in tests))
            # Where nothing was launched, nothing says what the tests depend on.
            if sources and all(fine for fine, _ in tests):
                passed[file] = (len(tests), sources | {file, _SIMULATOR})
        keep(passed)


_SIMULATOR = "tests/support/simulator.py"


def _within(file: str) -> str | None:
    """Path below the repository, if it is a source of plait or of the tests."""
    path = Path(file)
    if not path.is_relative_to(REPOSITORY):
        return None
    name = path.relative_to(REPOSITORY).as_posix()
    return name if name.startswith(("src/plait/", "tests/")) else None
