"""The only door to Numba: decorators for bodies that serve every target, and for compiled kernels.

Kinds of function:

- ``@shared``: an ordinary Python function that compiled code may call too. Called from Python it runs
  interpreted; called from a kernel it is compiled for the kernel's target. This is how one body serves
  the reference, the CPU and CUDA.
- ``@by_type``: a stub whose body is the static method of the same name on the class of its first
  argument (an algebra or a recurrence), in Python and in compiled code alike.
- `specialise`: other code for compiled callers than the Python definition (vector instructions).
- ``@kernel``: a compiled CPU entry point, without the GIL, cached on disk.

Numba's own disk cache returns stale code when a function in another file changes, so machine code is kept in
files named by a digest of the sources that it is made of (`plait.lang.closure`), in a folder for the
processor and the versions of the compilers. Numba is imported when a kernel has to be compiled, and not
before: what is in the cache is called without it (`plait.lang.native`).

A wheel can bring such files for `LEVELS` of processors (tools/build_wheel.py); they are looked up first. The
Python and the Numba that made them play no part when they run, so they are named by the sources alone.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import importlib.util
import itertools
import json
import os
import pickle
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar, cast

import numpy as np

from plait.errors import Unsupported
from plait.lang import closure as _closure
from plait.lang import native as _native
from plait.lang.compiling import alone, compiling, taken, wait_for_others
from plait.settings import cache_directory, source_digest

F = TypeVar("F", bound=Callable[..., Any])

_V2 = (
    *("cmov", "cx8", "fxsr", "mmx", "sse", "sse2", "cx16"),
    *("popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"),
)
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
#: Kinds of processors that wheels have machine code for, best first: LLVM's name, and what they compute with.
LEVELS = {
    "x86-64-v4": ("x86-64-v4", _V4),
    "x86-64-v3": ("x86-64-v3", _V3),
    "aarch64": ("generic", ("neon",)),
}

#: Settings of Numba that do not change what it compiles.
_HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_ENABLE_CUDASIM", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER"}


#: Decorators of definitions, and what types are made of.
_OF_NUMBA = {"infer_getattr", "intrinsic", "models", "register_model", "type_callable"}
_OF_NUMBA |= {"lower_builtin", "lower_getattr_generic"}


def __getattr__(name: str) -> Any:
    """What definitions of instructions are made of; asking for it imports Numba."""
    if name == "types":
        from numba.core import types

        return types
    if name == "ir":
        from llvmlite import ir

        return ir
    if name == "AttributeTemplate":
        from numba.core.typing import templates

        return templates.AttributeTemplate
    if name in _OF_NUMBA:
        from numba import extending

        return getattr(extending, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# Arrays come from the caller and outlive every call, so compiled bodies count no references: with
# counting, the atomic increments of array arguments cost more than the arithmetic. Inlining lets the
# compiler keep a schedule's arrays in registers across the calls of its small bodies. Entry points for C,
# which nobody calls, would take a third of the time to compile.
_OPTIONS = {"_nrt": False, "forceinline": True, "no_cfunc_wrapper": True}
#: Nor has Python to call what is called without Numba.
_UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
#: Numba's passes for texts as indices, expressions of whole arrays, and what asks to be inlined: what does
#: without counts of references has no use for them. The last one is for functions within functions, too.
_LEFT_OUT = ("NopythonRewrites", "InlineOverloads", "InlineClosureLikes")

_Select = Callable[..., Callable[..., Any] | None]


class _Compiler:
    """What waits for Numba."""

    ready = False
    lock = threading.RLock()
    overloads: list[tuple[Callable[..., Any], _Select, str]] = []  # noqa: RUF012  # one for the process
    modules: list[str] = []  # noqa: RUF012
    packages: list[str] = []  # noqa: RUF012
    replacements: dict[tuple[Callable[..., Any], str], list[_Select]] = {}  # noqa: RUF012


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
    """Name a module that says with `specialise` how operations of its package compile; imported when needed.

    All files of the package count as sources of whatever uses one of the operations.
    """
    with _Compiler.lock:
        _Compiler.packages.append(module.rpartition(".")[0])
        if _Compiler.ready:
            importlib.import_module(module)
        else:
            _Compiler.modules.append(module)


def specialise(function: Callable[..., Any], select: _Select, target: str = "generic") -> None:
    """Let compiled code use ``select(*argument_types)``, if any, where the source calls `function`.

    `select` gives the body, or None where it does not serve those types. `target` is ``"generic"`` for all
    compiled targets, or ``"cuda"``, which goes before; only the CUDA target names itself, once it has
    imported its compiler.
    """
    with _Compiler.lock:
        _Compiler.replacements.setdefault((function, target), []).append(select)
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


def closure(function: Callable[..., Any], args: tuple[Any, ...], *targets: str) -> _closure.Closure:
    """The sources of what a function compiles to for arguments, for the CPU or for other `targets`, too."""

    def replacements(called: Any) -> Iterator[_Select]:
        for target in ("generic", *targets):
            yield from _Compiler.replacements.get((called, target), ())

    roots = (function, *_closure.classes_of(args))
    return _closure.Closure(roots, __name__, _Compiler.packages, replacements)


def stem_of(name: str, sources: _closure.Closure, *facts: str) -> str:
    """Path of what is kept of a kernel made of these sources, but for the suffix."""
    # If a file has changed meanwhile, what this process runs is not what is on the disk.
    folder = _temporary_folder() if sources.changed else compiled_cache()
    return str(folder / _file_name(name, sources, *facts))


def _file_name(name: str, sources: _closure.Closure, *facts: str) -> str:
    return f"{name.replace('<locals>.', '')}-{sources.digest(*facts)}"


def _shipped(name: str, sources: _closure.Closure, found: _native.Signature) -> _native.NativeCode | None:
    """A kernel that came with plait; None if there is none for these sources, types and processor."""
    if sources.changed or not (folders := _shipped_folders()):
        return None
    file = f"{_file_name(name, sources, found.types)}.o"
    codes = (_native.load(folder / file, found, installed=True) for folder in folders)
    return next((code for code in codes if code is not None), None)


@functools.cache
def _shipped_folders() -> tuple[Path, ...]:
    """Folders of the machine code that came with plait and that this processor can run, best first."""
    # Of what chooses another code, only fewer features leave a choice among what came.
    if not all(setting.startswith("NUMBA_CPU_FEATURES=") for setting in _settings_of_numba()):
        return ()
    return tuple(folder for folder in map(shipped_folder, host_levels()) if folder.is_dir())


def host_levels() -> list[str]:
    """Those of `LEVELS` that this processor can run, best first."""
    features = host_features()
    return [level for level, (_, needed) in LEVELS.items() if all(map(features.get, needed))]


def shipped_folder(level: str) -> Path:
    """Folder of the machine code that comes with plait for one of `LEVELS`."""
    return Path(__file__).parent / "objects" / f"{level}-{source_digest(_own_files())}"


class _Kernel:
    """An entry point: machine code from the cache, or compiled for a call when it is not there."""

    def __init__(self, function: Callable[..., Any], twice: bool) -> None:
        functools.update_wrapper(self, function)
        self._twice = twice
        self.py_func = function
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._loaded: dict[str, _native.NativeCode | None] = {}
        self._locks: dict[object, threading.Lock] = {}
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        found = _native.signature(args)
        if found is None:
            return self._through_numba(args)
        types = found.types
        code = self._loaded[types] if types in self._loaded else self._prepared(found, args)
        if code is None:
            return self._through_numba(args)
        done, result = code(code.lay_out(found))
        # What stopped it is told by the slower way.
        return result if done else self._through_numba(args)

    def _prepared(self, found: _native.Signature, args: tuple[Any, ...]) -> _native.NativeCode | None:
        """Load or compile what these types need; one thread does, and others that need it wait."""
        with self._locks.setdefault(found.types, threading.Lock()):
            if found.types not in self._loaded:
                sources = closure(self.py_func, args)
                code = _shipped(self.name, sources, found)
                if code is None:
                    stem = stem_of(self.name, sources, found.types)
                    code = _native.load(Path(f"{stem}.o"), found)
                    if code is None:
                        if not sources.changed:
                            wait_for_others(self.name, found.types, stem)
                        code = self._compiled(stem, args, found)
                self._loaded[found.types] = code
            return self._loaded[found.types]

    def bound(self, *args: Any) -> Callable[[], Any]:
        """A call that lays its arguments out once: between calls only what arrays hold may change."""
        found = _native.signature(args)
        code = None if found is None else self._loaded.get(found.types) or self._prepared(found, args)
        if found is None or code is None:
            return functools.partial(self, *args)

        arguments = code.lay_out(found)

        def call() -> Any:
            done, result = code(arguments)
            return result if done else self._through_numba(args)

        return call

    def is_kept(self, args: tuple[Any, ...]) -> bool:
        """Whether nothing has to be compiled for the types of these arguments."""
        found, sources = _native.signature(args), closure(self.py_func, args)
        if found is None:
            return True
        file = _file_name(self.name, sources, found.types)
        shipped = [folder / f"{file}.o" for folder in _shipped_folders()]
        kept = [compiled_cache() / f"{file}{suffix}" for suffix in (".o", ".numba")]
        return any(path.exists() for path in (*shipped, *kept))

    def compile_ahead(self, args: tuple[Any, ...]) -> None:
        """Compile for the types of these arguments, unless that is done or another process is at it."""
        found = _native.signature(args)
        if found is not None and not self.is_kept(args):
            stem = stem_of(self.name, closure(self.py_func, args), found.types)
            if not taken(Path(f"{stem}.lock")):
                self._compiled(stem, args, found)

    def _through_numba(self, args: tuple[Any, ...]) -> Any:
        dispatcher = self.dispatcher
        kinds = tuple(dispatcher.typeof_pyval(value) for value in args)
        if kinds not in dispatcher.overloads:
            with self._locks.setdefault(kinds, threading.Lock()):
                if kinds not in dispatcher.overloads:
                    self._compiled(stem_of(self.name, closure(self.py_func, args), repr(kinds)), args, None)
        return dispatcher(*args)

    def _compiled(
        self, stem: str, args: tuple[Any, ...], found: _native.Signature | None
    ) -> _native.NativeCode | None:
        """Compile for these types; or load what another process has compiled meanwhile."""
        file = Path(f"{stem}.o")
        with alone(Path(f"{stem}.lock"), self.name):
            code = _native.load(file, found) if found is not None else None
            if code is not None:
                return code
            dispatcher = self.dispatcher
            kinds = tuple(dispatcher.typeof_pyval(value) for value in args)
            if _reloaded(Path(f"{stem}.numba"), dispatcher, kinds):
                return None
            with compiling(self.name):
                if found is not None and _native.KEPT:
                    compiled = _compile(_dispatcher(self.py_func, **_UNWRAPPED), kinds, self._twice)
                    if _native.save(file, found, compiled):
                        code = _native.load(file, found)
                if code is None:
                    compiled = _compile(dispatcher, kinds, self._twice)
                    _keep(Path(f"{stem}.numba"), kinds, compiled)
        return code

    @property
    def dispatcher(self) -> Any:
        """Numba's compiled function, for what only Numba can call."""
        with _Compiler.lock:
            if self._dispatcher is None:
                self._dispatcher = _dispatcher(self.py_func)
        return self._dispatcher


def _dispatcher(function: Callable[..., Any], **options: Any) -> Any:
    import numba

    prepare()
    return numba.njit(nogil=True, _nrt=False, **options)(function)


@functools.cache
def _libraries(twice: bool) -> tuple[Any, Any]:
    """Classes of what Numba makes of a kernel, and of a body: code to be linked into one, never run alone.

    Numba would make machine code of every body all the same, and optimise each with all that it calls, what
    is called deep down again and again. Here a body gets what it calls and no more. Without the passes over
    functions that come before, chains take longer to compile.
    """
    from numba.core.codegen import JITCodeLibrary

    class Codegen:
        """That of the kernel, but without addresses: a body has none."""

        def __init__(self, codegen: Any) -> None:
            self._codegen = codegen

        def __getattr__(self, name: str) -> Any:
            return getattr(self._codegen, name)

        def set_env(self, *_: object) -> None:
            pass

    class Body(JITCodeLibrary):  # type: ignore[misc]
        @property
        def codegen(self) -> Any:
            return Codegen(self._codegen)

        def get_pointer_to_function(self, name: str) -> int:
            return 0

        def _optimize_final_module(self) -> None:
            passes, builder = self._codegen._module_pass_manager(opt=0, cost="cheap")
            passes.run(self._final_module, builder)

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

    class Twice(JITCodeLibrary):  # type: ignore[misc]
        def _optimize_final_module(self) -> None:
            super()._optimize_final_module()
            passes, builder = self._codegen._module_pass_manager()
            passes.run(self._final_module, builder)

    return (Twice if twice else JITCodeLibrary), Body


@contextlib.contextmanager
def _fewer_passes() -> Iterator[None]:
    """Leave out Numba's passes for what a body does not have."""
    from numba.core.compiler import DefaultPassBuilder

    make = DefaultPassBuilder.define_nopython_pipeline

    def fewer(state: Any, name: str = "nopython") -> Any:
        made = make(state, name)
        inner = any(isinstance(constant, CodeType) for constant in state.func_id.code.co_consts)
        left_out = _LEFT_OUT[:-1] if inner else _LEFT_OUT
        made.passes = [one for one in made.passes if one[0].__name__ not in left_out]
        return made

    DefaultPassBuilder.define_nopython_pipeline = staticmethod(fewer)
    try:
        yield
    finally:
        DefaultPassBuilder.define_nopython_pipeline = staticmethod(make)


def _compile(dispatcher: Any, kinds: tuple[Any, ...], twice: bool) -> Any:
    """What Numba compiles for these types."""
    from numba.core.compiler_lock import global_compiler_lock

    codegen, own = dispatcher.targetctx.codegen(), dispatcher.py_func.__qualname__
    kernel_library, body_library = _libraries(twice)

    with global_compiler_lock:
        # Within the lock: while another thread compiles, it is that one's.
        def create_library(name: str, **options: Any) -> Any:
            return (kernel_library if name == own else body_library)(codegen, name, **options)

        collecting = gc.isenabled()
        # It makes a million objects and little garbage: looking for that takes a tenth of the time.
        gc.disable()
        codegen.create_library = create_library
        try:
            with _fewer_passes():
                dispatcher.compile(kinds)
        finally:
            del codegen.create_library
            if collecting:
                if not gc.get_freeze_count():
                    # All of it is old at once, and not gone through twice on the way there.
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()
    return dispatcher.overloads[kinds]


def _keep(file: Path, kinds: tuple[Any, ...], compiled: Any) -> None:
    """Keep what only Numba can call."""
    from numba.core.serialize import dumps

    if not (compiled.library.has_dynamic_globals or any(not loop.can_cache for loop in compiled.lifted)):
        _native.write(file, dumps((kinds, compiled._reduce())))


def _reloaded(file: Path, dispatcher: Any, kinds: tuple[Any, ...]) -> bool:
    """Give Numba what `_keep` has kept, if it is there."""
    content = _native.read(file)
    if content is None:
        return False
    from numba.core.compiler import CompileResult

    context = dispatcher.targetctx
    context.refresh()
    known, reduced = pickle.loads(content)
    if known != kinds:
        return False
    compiled = CompileResult._rebuild(context, *reduced)
    context.insert_user_function(compiled.entry_point, compiled.fndesc, [compiled.library])
    dispatcher.add_overload(compiled)
    return True


def kernel(function: F) -> F:
    """Compile a CPU entry point: no GIL, cached on disk under a digest of its sources."""
    return function if _interpreted() else cast(F, _Kernel(function, twice=False))


def kernel_optimised_twice(function: F) -> F:
    """The same for the few that are slower if LLVM goes over them once; it takes a tenth longer."""
    return function if _interpreted() else cast(F, _Kernel(function, twice=True))


def bound(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """``function(*args)``, to be called often; of a kernel, arguments are laid out once."""
    return function.bound(*args) if isinstance(function, _Kernel) else functools.partial(function, *args)


def _interpreted() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "").strip() not in ("", "0")


def _version_of_numba() -> Path:
    """The file in which Numba states its version; looking for it does not import Numba."""
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("numba")
    return Path(found.origin).with_name("_version.py")


def _own_files() -> list[Path]:
    """Sources of what compiles, keeps and calls kernels."""
    return [Path(__file__), Path(_native.__file__), Path(_closure.__file__)]


def _settings_of_numba() -> list[str]:
    """Settings of the environment that change what Numba compiles."""
    settings = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_")]
    return [setting for setting in settings if setting.partition("=")[0] not in _HARMLESS]


@functools.cache
def compiled_cache() -> Path:
    """Folder of what is compiled by this Numba for this processor."""
    root = cache_directory()
    if _interpreted():
        return root
    import llvmlite

    versions = (str(sys.implementation.cache_tag), np.__version__, str(llvmlite.__version__))
    sources = [*_own_files(), _version_of_numba()]
    folder = root / source_digest(sources, *versions, *_processor(), *_settings_of_numba())
    try:
        for made in (root, folder):
            made.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
        others = [made for made in (root, folder) if not _native.only_ours(made.stat())]
        if not others:
            return folder
        reason = f"{others[0]} does not belong to this user alone, or others may write to it"
    except OSError as error:
        reason = f"{root} cannot be used: {error.strerror}"
    warnings.warn(f"compiled code is not kept: {reason}; PLAIT_CACHE_DIR names another folder", stacklevel=2)
    return _temporary_folder()


@functools.cache
def _temporary_folder() -> Path:
    """A folder of compiled code for this process alone."""
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
    triple, name, features = _told_by_llvm()
    if os.environ.get("NUMBA_ENABLE_AVX", "").strip() == "0":
        features.update({feature: False for feature in features if feature.startswith("avx")})
    flat = ",".join(f"{'+' if has else '-'}{feature}" for feature, has in sorted(features.items()))
    named = os.environ.get("NUMBA_CPU_NAME") or name
    return triple, named, os.environ.get("NUMBA_CPU_FEATURES", flat)


def _told_by_llvm() -> tuple[str, str, dict[str, bool]]:
    """Platform, processor and features; kept, because loading LLVM takes longer than many a run."""
    file = _processor_file()
    if file is not None:
        with contextlib.suppress(ValueError, TypeError):
            triple, name, features = json.loads(_native.read(file) or b"")
            return str(triple), str(name), dict(features)
    import llvmlite.binding as llvm

    told = llvm.get_process_triple(), llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())
    if file is not None:
        with contextlib.suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _native.write(file, json.dumps(told).encode())
    return told


def _processor_file() -> Path | None:
    """File for what LLVM tells of this processor; None where nothing else tells which one it is."""
    import llvmlite

    # The system may name another processor than an emulator lets programs see: NumPy has asked that one.
    seen = getattr(sys.modules.get("numpy._core._multiarray_umath"), "__cpu_features__", None)
    if seen is None or not _native.KEPT:
        return None
    try:
        with open("/proc/cpuinfo", encoding="latin-1") as cpus:
            # The first processor, but for how fast it is now.
            lines = itertools.takewhile(str.strip, cpus)
            facts = [line for line in lines if not line.startswith(("cpu MHz", "bogomips"))]
    except OSError:
        return None
    system = os.uname()
    facts += [system.sysname, system.release, system.machine, str(llvmlite.__version__), repr(seen)]
    # Valgrind loads its own libraries so.
    facts += [os.environ.get("LD_PRELOAD", "")]
    return cache_directory() / f"processor-{source_digest(_own_files(), *facts)}"
