"""The sources that a kernel is made of.

Machine code is kept under a digest of them, so it must not miss any. What the code of a function names is
followed from the kernel on: functions and what replaces them in compiled code, the classes of arguments with
all that they define, tables of those, and constants by their values, wherever they come from. Of everything
that is reached, the whole file counts. A package whose operations are compiled as one of its modules says
(`plait.lang.compile.implemented_in`) counts with all its files.

A module of its own: what is followed is decided, and tested, without the compiler.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

#: What is not followed: its versions are part of every digest.
_FOREIGN = sys.stdlib_module_names | {"numpy", "numba", "llvmlite"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), np.generic, np.dtype)
#: Less what the clock of files may be late.
_STARTED = time.time() - 0.02

Replacements = Callable[[Any], Iterable[Any]]


class Closure:
    """Files, and values of constants, that are reached from some functions and classes, `roots`.

    Of `machinery`, the module of the decorators, only closures are followed; `packages` count with all their
    files; `replacements` gives the functions that say what compiled code calls in the place of a function.
    The keys of `files` are paths, in the order in which they were found.
    """

    def __init__(
        self, roots: Iterable[Any], machinery: str, packages: Iterable[str], replacements: Replacements
    ) -> None:
        self.files: dict[str, None] = {}
        self._machinery, self._packages, self._replacements = machinery, tuple(packages), replacements
        self._values: list[str] = []
        # Objects are held: what is looked up by identity must live.
        self._seen: dict[int, Any] = {}
        self._open = list(roots)[::-1]
        while self._open:
            self._visit(self._open.pop())

    def digest(self, *facts: str) -> str:
        """Digest of the files, the values and further facts."""
        digest = hashlib.blake2b("\0".join([*self._values, *facts]).encode(), digest_size=12)
        for content in sorted(_content(file) for file in self.files):
            digest.update(content)
        return digest.hexdigest()

    def add(self, files: Iterable[Path]) -> None:
        """Count further files."""
        self.files.update(dict.fromkeys(map(str, files)))

    @property
    def changed(self) -> bool:
        """Whether a file is no longer what this process was started with."""
        return any(_changed_at(file) > _STARTED for file in self.files)

    def _visit(self, found: Any) -> None:
        if isinstance(found, _PLAIN):
            self._values.append(repr(found))
            return
        if id(found) in self._seen:
            return
        self._seen[id(found)] = found
        if isinstance(found, FunctionType):
            self._function(found)
        elif isinstance(found, type):
            self._class(found)
        elif isinstance(found, np.ndarray):
            self._values.append(f"{found.dtype}{found.shape}{hashlib.blake2b(found.tobytes()).hexdigest()}")
        elif isinstance(found, Mapping):
            self._later(*found.keys(), *found.values())
        elif isinstance(found, (tuple, list, set, frozenset)):
            # The order of sets differs between processes, and may not matter to the code.
            items = sorted(found, key=repr) if isinstance(found, (set, frozenset)) else found
            self._later(type(found), *items)
        elif not isinstance(found, ModuleType):
            self._object(found)

    def _later(self, *found: Any) -> None:
        self._open += reversed(found)

    def _function(self, function: FunctionType) -> None:
        names = function.__globals__
        for cell in function.__closure__ or ():
            self._later(cell.cell_contents)
        # What replaces it was said of the function that the source calls. Modules that say how operations of
        # a package compile are imported only when something has to be compiled: their files count already.
        for made in self._replacements(function):
            if made.__module__ == self._machinery or not self._whole(made.__module__):
                self._later(made)
        if hasattr(function, "__wrapped__"):
            self._later(function.__wrapped__)
        module = str(names.get("__name__", ""))
        if module == self._machinery or self._whole(module) or _foreign(module):
            return
        self._file(names.get("__file__"), function.__code__)
        self._later(function.__defaults__, function.__kwdefaults__ or {})
        named = _names(function.__code__)
        self._named(names, named, named)

    def _named(self, names: Mapping[str, Any], wanted: Iterable[str], inside: Iterable[str]) -> None:
        """Follow what names stand for; of a module, what of it is named anywhere in the code."""
        for name in wanted:
            found = names.get(name)
            if isinstance(found, ModuleType):
                if not _foreign(found.__name__) and id(found) not in self._seen:
                    self._seen[id(found)] = found
                    self._named(vars(found), inside, inside)
            elif name in names:
                self._later(found)

    def _class(self, cls: type) -> None:
        if _foreign(cls.__module__) or self._whole(cls.__module__):
            self._values.append(f"{cls.__module__}.{cls.__qualname__}")
            return
        self._file(getattr(sys.modules.get(cls.__module__), "__file__", None), None)
        self._values.append(f"{cls.__module__}.{cls.__qualname__} {getattr(cls, '_fields', '')}")
        self._later(*cls.__bases__)
        self._later(*(value for name, value in vars(cls).items() if not name.startswith("__")))

    def _object(self, found: Any) -> None:
        """A descriptor, something that wraps a function, or an object of a class of ours."""
        parts = ("__func__", "__wrapped__", "py_func", "_defn", "func", "args", "keywords", "fget")
        inner = [getattr(found, name) for name in parts if hasattr(type(found), name) or name in _own(found)]
        if inner:
            self._later(*inner)
        elif isinstance(found, enum.Enum):
            self._later(type(found), found.value)
        elif not _foreign(type(found).__module__):
            self._later(type(found), *_own(found).values())

    def _file(self, file: str | None, code: CodeType | None) -> None:
        if file is not None and _content(file):
            self.files[file] = None
        elif code is not None:
            # Typed at a prompt: the code itself.
            self._later(code.co_code, repr(code.co_names), *(c for c in code.co_consts if type(c) in _PLAIN))

    def _whole(self, module: str) -> bool:
        for package in self._packages:
            if module == package or module.startswith(f"{package}."):
                for file in _files_of(package):
                    self.files[file] = None
                return True
        return False


def classes_of(arguments: Iterable[Any]) -> list[type]:
    """Classes of the tuples among arguments, and of those in them."""
    found: dict[type, None] = {}
    for value in arguments:
        if isinstance(value, tuple):
            found[type(value)] = None
            found.update(dict.fromkeys(classes_of(value)))
    return list(found)


def _own(found: Any) -> dict[str, Any]:
    return getattr(found, "__dict__", {})


def _foreign(module: str | None) -> bool:
    return module is None or module.partition(".")[0] in _FOREIGN


def _names(code: CodeType) -> tuple[str, ...]:
    names = code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names += _names(inner)
    return names


@functools.cache
def _content(file: str) -> bytes:
    """Digest of a file with its name; empty where there is none."""
    try:
        content = Path(file).read_bytes()
    except OSError:
        return b""
    return hashlib.blake2b(os.path.basename(file).encode() + b"\0" + content, digest_size=16).digest()


@functools.cache
def _files_of(package: str) -> list[str]:
    return sorted(str(file) for root in sys.modules[package].__path__ for file in Path(root).rglob("*.py"))


def _changed_at(file: str) -> float:
    try:
        return os.stat(file).st_ctime
    except OSError:
        return float("inf")
