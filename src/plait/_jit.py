"""The only door to Numba: decorators for bodies that serve every target, and for compiled kernels.

Kinds of function:

- ``@shared``: an ordinary Python function that compiled code may call too. Called from Python it runs
  interpreted; called from a kernel it is compiled for the kernel's target. This is how one body serves
  the reference, the CPU and CUDA.
- ``@by_type``: a stub whose body is the static method of the same name on the class of its first
  argument (an algebra or a recurrence), in Python and in compiled code alike.
- `specialise`: other code for compiled callers than the Python definition (vector instructions).
- ``@kernel``: a compiled CPU entry point, without the GIL, cached on disk.

Numba's own disk cache returns stale code when a function in another file changes, so compiled kernels
live in a folder named by a digest of the sources they are made from.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, models, overload, register_model

from plait.settings import cache_directory, source_digest

__all__ = [
    "by_type",
    "by_type_of",
    "compiled_cache",
    "host_vector_bits",
    "intrinsic",
    "ir",
    "kernel",
    "models",
    "register_model",
    "shared",
    "specialise",
    "types",
]

F = TypeVar("F", bound=Callable[..., Any])

_COMPILED_PACKAGES = ("lanes", "recurrences", "schedules", "targets")


# Arrays come from the caller and outlive every call, so compiled bodies count no references: with
# counting, the atomic increments of array arguments cost more than the arithmetic. Inlining lets the
# compiler keep a schedule's arrays in registers across the calls of its small bodies.
_OPTIONS = {"_nrt": False, "forceinline": True}


def specialise(function: Callable[..., Any], select: Callable[..., Callable[..., Any] | None]) -> None:
    """Let compiled code use ``select(*argument_types)``, if any, where the source calls `function`."""

    def typing(*args: object) -> Callable[..., Any] | None:
        return select(*args)

    overload(function, strict=False, target="generic", jit_options=_OPTIONS)(typing)


def shared(function: F) -> F:
    """Let compiled code call a Python function, on any target; from Python it stays interpreted."""
    specialise(function, lambda *args: function)
    return function


def by_type(stub: F) -> F:
    """Replace a stub by the static method of its name on the class of its first argument."""
    name = stub.__name__

    @functools.wraps(stub)
    def dispatch(*args: Any) -> Any:
        return getattr(type(args[0]), name)(*args)

    specialise(dispatch, lambda first, *rest: getattr(first.instance_class, name))
    return cast(F, dispatch)


def by_type_of(table: Mapping[type, F]) -> F:
    """A function whose body is picked from `table` by the class of its first argument."""

    def dispatch(*args: Any) -> Any:
        return table[type(args[0])](*args)

    specialise(dispatch, lambda first, *rest: table[first.instance_class])
    return cast(F, dispatch)


def kernel(function: F) -> F:
    """Compile a CPU entry point: no GIL, cached on disk under a digest of the sources."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(compiled_cache())
    try:
        return cast(F, numba.njit(nogil=True, cache=True, _nrt=False)(function))
    finally:
        numba.config.CACHE_DIR = before


@functools.cache
def compiled_cache() -> Path:
    """Folder of the compiled kernels of exactly these sources and this Numba."""
    package = Path(__file__).parent
    files = [Path(__file__), package / "algebras.py"]
    for name in _COMPILED_PACKAGES:
        files += sorted((package / name).glob("*.py"))
    digest = source_digest(files, numba.__version__)
    if numba.config.DISABLE_JIT:
        return cache_directory()
    folder = cache_directory() / digest
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            return folder
    except OSError:
        # A read-only home must not stop a run: compile again next time.
        temporary = Path(tempfile.mkdtemp(prefix="plait-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        return temporary


@functools.cache
def host_vector_bits() -> int:
    """Width in bits of the widest integer vectors that this processor computes with."""
    features = llvmlite.binding.get_host_cpu_features()
    if features.get("avx512dq"):
        return 512
    return 256 if features.get("avx2") else 128
