"""Compilation ahead of need, in several processes.

`specialisations.json` has kernels, each with the types of its arguments as `plait.lang.native` writes them
and the size of its machine code, and which of them some command lines have used, for each width of vectors
(`tools/build_wheel.py --list`).
A kernel is compiled for arguments of these types without being run. What is not in the list is compiled when
it is called, as ever.

A module of its own, because the processes run it.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from plait.lang.compile import host_vector_bits
from plait.lang.compiling import others_compiled
from plait.settings import thread_count

LIST = Path(__file__).with_name("specialisations.json")
_ARRAY = re.compile(r"([<>|][iufb]\d)(\d)([wr])")
_PLAIN: dict[str, Any] = {"q": 0, "d": 0.0, "?": False}
#: KiB of machine code beside the largest kernel that are worth another process. A KiB takes 0.07 s to
#: compile (211 kernels on a Zen 4, r = 0.94), and a process, which imports Numba, over a second to start.
_WORTH = 64


class _Listed(NamedTuple):
    """Kernels with types, KiB of each, and for these vectors: commands with what their lines used."""

    kernels: list[str]
    kib: list[int]
    commands: dict[str, list[list[int]]]


@functools.cache
def _listed() -> _Listed:
    content = json.loads(LIST.read_text(encoding="ascii"))
    return _Listed(content["kernels"], content["kib"], content["commands"].get(str(host_vector_bits()), {}))


def listed() -> list[int]:
    """Numbers of all kernels that commands have used with vectors of this width, the largest first."""
    found = {k for lines in _listed().commands.values() for line in lines for k in line}
    return sorted(found, key=lambda k: -_listed().kib[k])


def text_of(number: int) -> str:
    """A kernel of the list: module, colon, name, and the types."""
    return _listed().kernels[number]


def kernel_and_arguments(number: int) -> tuple[Any, tuple[Any, ...]]:
    """A kernel of the list, and arguments of its types."""
    place, _, types = text_of(number).partition(" ")
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name), arguments_of(types)


def arguments_of(types: str) -> tuple[Any, ...]:
    """Arguments whose `plait.lang.native.Signature.types` are these."""
    return tuple(_values(iter(types.split()))[0])


def _values(words: Iterator[str]) -> tuple[list[Any], str]:
    """Values up to the end or a closing bracket, and the word at which they end."""
    found: list[Any] = []
    for word in words:
        if word == ")":
            return found, word
        if word.endswith("("):
            items, _ = _values(words)
            module, _, name = word[:-1].removesuffix(str(len(items))).rpartition(".")
            kind = getattr(importlib.import_module(module), name)
            found.append(tuple.__new__(kind, items))
        elif array := _ARRAY.fullmatch(word):
            values = np.zeros((1,) * int(array[2]), array[1])
            values.flags.writeable = array[3] == "w"
            found.append(values)
        else:
            found.append(_PLAIN[word] if word in _PLAIN else np.dtype(np.dtype(word).str).type(0))
    return found, ""


def missing(numbers: Iterable[int]) -> list[int]:
    """Those kernels of the list that have to be compiled."""
    return [number for number in numbers if not _is_kept(number)]


def _is_kept(number: int) -> bool:
    kernel, arguments = kernel_and_arguments(number)
    # With the compiler off there are functions only.
    return not hasattr(kernel, "is_kept") or kernel.is_kept(arguments)


def start(numbers: Sequence[int], processes: int) -> list[subprocess.Popen[str]]:
    """Start processes that compile these kernels of the list: each whatever no other one is at."""
    command = [sys.executable, "-m", __name__, *map(str, numbers)]
    return [
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        for _ in range(min(processes, len(numbers)))
    ]


def worth(numbers: Sequence[int]) -> int:
    """Processes that are worth their start to compile these kernels of the list."""
    sizes = [_listed().kib[number] for number in numbers]
    beside = sum(sizes) - max(sizes)
    return min(thread_count(), len(sizes), 1 + beside // _WORTH)


class Ahead:
    """Compiles what a command is known to need beside the first kernel that is missing; a context manager.

    `words` are those of the command line; `processes` those that were started.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words, self.processes = words, 0
        self._lock = threading.Lock()
        self._at_work: list[subprocess.Popen[str]] = []
        self._asked: set[int] = set()

    def __call__(self, kernel: str, types: str) -> Callable[[], bool] | None:
        """Let processes compile a kernel and what goes with it; says whether they are at work, or is None."""
        with self._lock:
            try:
                wanted = self._wanted(kernel, types)
            except (AttributeError, ImportError, TypeError):
                # The list is of other sources.
                return None
            if len(wanted) > 1:
                if (processes := worth(wanted)) == 1:
                    return None
                self.processes += processes
                self._asked.update(wanted)
                self._at_work += start(wanted, processes)
            elif not self._asked.intersection(wanted):
                return None
        return lambda: any(process.poll() is None for process in self._at_work)

    def _wanted(self, kernel: str, types: str) -> list[int]:
        """The number of a kernel, and what is missing with it unless it has been asked for."""
        # Of lines that need it, the one that needs least beside it.
        for line in sorted(self._lines(), key=len):
            number = self._number(line, kernel, types)
            if number is not None and number in self._asked:
                return [number]
            if number is not None:
                others = [k for k in missing(line) if k != number and k not in self._asked]
                return [number, *sorted(others, key=lambda k: -_listed().kib[k])]
        return []

    def _lines(self) -> list[list[int]]:
        commands = _listed().commands
        names = [name for name in commands if name.split() == list(self._words[: len(name.split())])]
        return commands[max(names, key=len)] if names else []

    @staticmethod
    def _number(line: list[int], kernel: str, types: str) -> int | None:
        alike = [number for number in line if text_of(number).partition(" ")[2] == types]
        return next((number for number in alike if kernel_and_arguments(number)[0].name == kernel), None)

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        # What is still compiled was not needed after all.
        for process in self._at_work:
            process.terminate()
            process.communicate()
        others_compiled([kernel_and_arguments(k)[0].name for k in sorted(self._asked) if _is_kept(k)])


def main() -> None:
    """Compile kernels of the list, while the process that has asked for them lives."""
    parent, failed = os.getppid(), False
    for number in map(int, sys.argv[1:]):
        if os.getppid() != parent:
            return
        try:
            kernel, arguments = kernel_and_arguments(number)
            kernel.compile_ahead(arguments)
        except Exception as error:
            # The others of the list can be compiled all the same.
            failed = True
            print(f"{text_of(number)}: {type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    main()
