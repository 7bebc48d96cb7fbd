"""For how many combinations of types each kernel was compiled, or loaded, in a run of tests; all workers.

What drawn cases alone ask for does not count: it is another each time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import is_hypothesis_test

__all__ = ["MOST", "Specialisations"]

#: Each takes 1 to 12 s of processor to compile.
MOST = 8


class Specialisations:
    """A plugin that names kernels with too many combinations of types; with `gate` the run fails then."""

    def __init__(self, gate: bool) -> None:
        from plait.lang import compile as _jit

        self._gate = gate
        self._kernels: list[Any] = []
        self._asked: dict[str, set[str]] = defaultdict(set)
        make: Callable[[Any], Any] = _jit.kernel

        def kernel(function: Any) -> Any:
            made = make(function)
            self._kernels.append(made)
            return made

        _jit.kernel = kernel

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Let kernels forget what drawn cases have asked for first: others ask for it again, if they do."""
        if not is_hypothesis_test(getattr(item, "obj", None)):
            return (yield)
        before = [(kernel, set(kernel._locks)) for kernel in self._kernels]
        try:
            return (yield)
        finally:
            for kernel, known in before:
                for types in set(kernel._locks) - known:
                    kernel._loaded.pop(types, None)
                    del kernel._locks[types]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Count those of this process; a worker tells them to the process that has started it."""
        for kernel in self._kernels:
            name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
            # A combination that the kernel refuses is compiled for nobody.
            numba = kernel._dispatcher.overloads if kernel._dispatcher is not None else ()
            self._asked[name] |= {
                str(types) for types in kernel._locks if types in kernel._loaded or types in numba
            }
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["specialisations"] = {name: sorted(types) for name, types in self._asked.items()}
        elif self._gate and self._too_many() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over those of a worker."""
        for name, types in getattr(node, "workeroutput", {}).get("specialisations", {}).items():
            self._asked[name] |= set(types)

    def _too_many(self) -> list[str]:
        counts = {name: len(types) for name, types in self._asked.items() if name.startswith("plait.")}
        return [
            f"{name} with {count} specialisations, at most {MOST}"
            for name, count in sorted(counts.items())
            if count > MOST
        ]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the kernels that were asked for more."""
        for told in self._too_many():
            terminalreporter.write_line(f"kernel {told}")
