"""A pytest plugin: what Numba really compiles a kernel from is compared with the kernel's sources.

Every Python function that runs while a kernel is compiled (what chooses and generates code) is recorded, and
every one that is compiled (bodies). What was compiled for an earlier kernel is forgotten, so that each is
compiled from nothing. The environment variable ``COMPILED_SOURCES`` names the file of the answers.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from plait.lang import compile as _jit

PACKAGE = Path(_jit.__file__).parents[1]
#: Part of every digest, by their files or by what they say of this machine.
MACHINERY = {"compile.py", "native.py", "closure.py", "compiling.py"}

found: list[dict[str, Any]] = []


@contextmanager
def recorded(files: set[str]) -> Iterator[None]:
    """Add to `files` those of all functions that run or are compiled."""
    from numba.core.bytecode import FunctionIdentity  # noqa: TID251  # what it compiles is asked of it

    compiled = FunctionIdentity.from_function.__func__
    codes: dict[int, Any] = {}

    def ran(frame: FrameType, event: str, _: object) -> None:
        codes[id(frame.f_code)] = frame.f_code

    def from_function(cls: type, function: Any) -> Any:
        code = getattr(function, "py_func", function).__code__
        codes[id(code)] = code
        return compiled(cls, function)

    FunctionIdentity.from_function = classmethod(from_function)
    before = sys.gettrace()
    sys.settrace(ran)
    try:
        yield
    finally:
        sys.settrace(before)
        FunctionIdentity.from_function = classmethod(compiled)
        files.update(os.path.abspath(code.co_filename) for code in codes.values())


def forget() -> None:
    """Let Numba compile again what kernels call."""
    from numba.core.typing.templates import builtin_registry  # noqa: TID251

    for template in builtin_registry.functions:
        if getattr(getattr(template, "_overload_func", None), "__module__", "") == "plait.lang.compile":
            template._impl_cache.clear()


def watch(kernel: type) -> None:
    """Record every compilation of a kernel."""
    compile_kernel: Callable[..., Any] = kernel._compiled  # type: ignore[attr-defined]

    def watched(self: Any, stem: str, args: tuple[Any, ...], signature: Any) -> Any:
        files, make = set[str](), _jit._compile
        forget()

        def compile_recorded(dispatcher: Any, kinds: Any, plain: bool) -> Any:
            with recorded(files):
                return make(dispatcher, kinds, plain)

        _jit._compile = compile_recorded
        try:
            code = compile_kernel(self, stem, args, signature)
        finally:
            _jit._compile = make
        sources = {os.path.abspath(file) for file in _jit.closure(self.py_func, args).files}
        ours = {file for file in files if Path(file).is_relative_to(PACKAGE)}
        missing = sorted(ours - sources - {str(PACKAGE / "lang" / name) for name in MACHINERY})
        found.append({"kernel": self.name, "used": sorted(ours), "missing": missing})
        return code

    kernel._compiled = watched  # type: ignore[attr-defined]


def pytest_configure() -> None:
    watch(_jit._Kernel)


def pytest_runtest_logfinish(nodeid: str) -> None:
    for one in found:
        one.setdefault("test", nodeid)
    Path(os.environ["COMPILED_SOURCES"]).write_text(json.dumps(found))
