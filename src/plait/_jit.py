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
live in a folder named by a digest of the sources they are made from, and of the processor, because one home
folder may serve several. Numba is imported when a kernel has to be compiled, and not before: what is in the
cache is called without it (`plait._native`).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from plait import _native
from plait.errors import Unsupported
from plait.settings import cache_directory, source_digest

__all__ = [
    "by_type",
    "by_type_of",
    "compiled_cache",
    "host_features",
    "host_vector_bits",
    "implemented_in",
    "in_compiled_cache",
    "kernel",
    "prepare",
    "shared",
    "specialise",
]

F = TypeVar("F", bound=Callable[..., Any])

_COMPILED_PACKAGES = ("lanes", "recurrences", "schedules", "targets")


def __getattr__(name: str) -> Any:
    """What definitions of instructions are made of; asking for it imports Numba."""
    if name in ("intrinsic", "models", "register_model"):
        from numba import extending

        return getattr(extending, name)
    if name == "types":
        from numba.core import types

        return types
    if name == "ir":
        from llvmlite import ir

        return ir
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Arrays come from the caller and outlive every call, so compiled bodies count no references: with
# counting, the atomic increments of array arguments cost more than the arithmetic. Inlining lets the
# compiler keep a schedule's arrays in registers across the calls of its small bodies. Entry points for C,
# which nobody calls, would take a third of the time to compile.
_OPTIONS = {"_nrt": False, "forceinline": True, "no_cfunc_wrapper": True}

_Select = Callable[..., Callable[..., Any] | None]


class _Compiler:
    """What waits for Numba."""

    ready = False
    lock = threading.RLock()
    overloads: list[tuple[Callable[..., Any], _Select, str]] = []  # noqa: RUF012  # one for the process
    modules: list[str] = []  # noqa: RUF012


def prepare() -> None:
    """Import Numba and teach it everything that was declared."""
    with _Compiler.lock:
        if _Compiler.ready:
            return
        while _Compiler.modules:
            importlib.import_module(_Compiler.modules.pop())
        _Compiler.ready = True
        for function, select, target in _Compiler.overloads:
            _teach(function, select, target)
        _Compiler.overloads.clear()


def _teach(function: Callable[..., Any], select: _Select, target: str) -> None:
    def typing(*args: object) -> Callable[..., Any] | None:
        return select(*args)

    from numba.extending import overload

    overload(function, strict=False, target=target, jit_options=_OPTIONS)(typing)


def implemented_in(module: str) -> None:
    """Name a module that says with `specialise` how operations compile; imported when that is needed."""
    with _Compiler.lock:
        if _Compiler.ready:
            importlib.import_module(module)
        else:
            _Compiler.modules.append(module)


def specialise(function: Callable[..., Any], select: _Select, target: str = "generic") -> None:
    """Let compiled code use ``select(*argument_types)``, if any, where the source calls `function`.

    Parameters
    ----------
    function
        What the source calls.
    select
        From the types of the arguments to the body; None where it does not serve them.
    target
        For which compiled target: ``"generic"`` for all, ``"cuda"`` for CUDA before what all have. Only the
        CUDA target names itself, once it has imported its compiler.
    """
    with _Compiler.lock:
        if _Compiler.ready:
            _teach(function, select, target)
        else:
            _Compiler.overloads.append((function, select, target))


def shared(function: F) -> F:
    """Let compiled code call a Python function, on any target; from Python it stays interpreted."""
    specialise(function, lambda *args: function)
    return function


def by_type(stub: F) -> F:
    """Replace a stub by the static method of its name on the class of its first argument."""
    name = stub.__name__

    @functools.wraps(stub)
    def dispatch(*args: Any) -> Any:
        return body_of(type(args[0]))(*args)

    def body_of(kind: type) -> Callable[..., Any]:
        body: Callable[..., Any] | None = getattr(kind, name, None)
        if body is None:
            meaning = (stub.__doc__ or "").strip(" .\n")
            why = f"it has no {name!r} ({meaning}), which this schedule asks for"
            raise Unsupported(f"{kind.__name__} here", why=why)
        return body

    specialise(dispatch, lambda first, *rest: body_of(first.instance_class))
    return cast(F, dispatch)


def by_type_of(table: Mapping[type, F]) -> F:
    """A function whose body is picked from `table` by the class of its first argument."""

    def dispatch(*args: Any) -> Any:
        return table[type(args[0])](*args)

    specialise(dispatch, lambda first, *rest: table[first.instance_class])
    return cast(F, dispatch)


class _Kernel:
    """An entry point: machine code from the cache, or compiled for a call when it is not there."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._loaded: dict[str, _native.NativeCode | None] = {}
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        found = _native.signature(args)
        if found is None:
            return self.dispatcher(*args)
        if found.outside:
            return self.uncached(*args)
        types = found.types
        if types not in self._loaded:
            self._loaded[types] = _native.load(compiled_cache(), self._name, found)
        code = self._loaded[types]
        if code is None:
            code = self._compile(found, args)
        if code is None:
            return self.dispatcher(*args)
        done, result = code(found)
        # What stopped it is told by the slower way.
        return result if done else self.dispatcher(*args)

    def _compile(self, found: _native.Signature, args: tuple[Any, ...]) -> _native.NativeCode | None:
        """Compile for these types, unless Numba has; or load what another process has compiled meanwhile."""
        kinds = tuple(self.dispatcher.typeof_pyval(value) for value in args)
        if kinds in self.dispatcher.overloads:
            return None
        with _alone(compiled_cache(), f"{self._name} {found.types}"):
            code = _native.load(compiled_cache(), self._name, found)
            if code is None:
                self.dispatcher.compile(kinds)
                compiled = self.dispatcher.overloads.get(kinds)
                if compiled is not None:
                    _native.save(compiled_cache(), self._name, found, compiled)
        self._loaded[found.types] = code
        return code

    @property
    def dispatcher(self) -> Any:
        """Numba's compiled function."""
        with _Compiler.lock:
            if self._dispatcher is None:
                import numba

                prepare()
                with in_compiled_cache():
                    self._dispatcher = numba.njit(nogil=True, cache=True, _nrt=False)(self.py_func)
        return self._dispatcher

    @functools.cached_property
    def uncached(self) -> Any:
        """The same for classes of other packages, of whose changes the cache knows nothing."""
        with _Compiler.lock:
            import numba

            prepare()
            return numba.njit(nogil=True, _nrt=False)(self.py_func)


@contextlib.contextmanager
def _alone(folder: Path, name: str) -> Iterator[None]:
    """Wait while another process does what has this name; where files cannot be locked, do not."""
    digest = hashlib.blake2b(name.encode(), digest_size=12).hexdigest()
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            file = stack.enter_context(open(folder / f"{digest}.lock", "w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def in_compiled_cache() -> Iterator[None]:
    """Let what is made meanwhile keep its machine code in `compiled_cache`."""
    import numba

    with _Compiler.lock:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(compiled_cache())
        try:
            yield
        finally:
            numba.config.CACHE_DIR = before


def kernel(function: F) -> F:
    """Compile a CPU entry point: no GIL, cached on disk under a digest of the sources."""
    return function if _interpreted() else cast(F, _Kernel(function))


def _interpreted() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "").strip() not in ("", "0")


def _version_of_numba() -> Path:
    """The file in which Numba states its version; looking for it does not import Numba."""
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("numba")
    return Path(found.origin).with_name("_version.py")


@functools.cache
def compiled_cache() -> Path:
    """Folder of the compiled kernels of exactly these sources, this Numba and this processor."""
    package = Path(__file__).parent
    files = [Path(__file__), Path(_native.__file__), package / "algebras.py", _version_of_numba()]
    for name in _COMPILED_PACKAGES:
        files += sorted((package / name).glob("*.py"))
    digest = source_digest(files, *_processor())
    if _interpreted():
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
    features = host_features()
    if features.get("avx512bw") and features.get("avx512dq"):
        return 512
    return 256 if features.get("avx2") else 128


@functools.cache
def host_features() -> dict[str, bool]:
    """The instruction sets that compiled code may use, by LLVM's names.

    They follow Numba's settings: with ``NUMBA_CPU_FEATURES`` they are those that it names, even if the
    processor has more, and ``NUMBA_ENABLE_AVX=0`` takes away what begins with avx.
    """
    triple, _, named = _processor()
    features = {name[1:]: name[0] == "+" for name in named.replace(" ", "").split(",") if name}
    if triple.startswith(("aarch64", "arm64")):
        # Every 64-bit Arm processor has it, but not every operating system says so.
        features.setdefault("neon", True)
    return features


def _processor() -> tuple[str, str, str]:
    """What Numba compiles for, as it tells LLVM: platform, processor, features with + or - before them."""
    import llvmlite.binding as llvm

    features = os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        host = llvm.get_host_cpu_features()
        if os.environ.get("NUMBA_ENABLE_AVX", "").strip() == "0":
            host.update({name: False for name in host if name.startswith("avx")})
        features = host.flatten()
    name = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    return llvm.get_process_triple(), name, features
