"""Which kernels, for which types of arguments, a command line uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plait.lang import compile as _compile
from plait.lang import native


@contextmanager
def used_kernels() -> Iterator[dict[tuple[Any, str], None]]:
    """Kernels with the types that are called meanwhile in this process, in the order of first calls."""
    used: dict[tuple[Any, str], None] = {}
    calls = {name: getattr(_compile._Kernel, name) for name in ("__call__", "bound")}

    def noting(call: Any) -> Any:
        def noted(self: Any, *args: Any) -> Any:
            if found := native.signature(args):
                used[self, found.types] = None
            return call(self, *args)

        return noted

    try:
        for name, call in calls.items():
            setattr(_compile._Kernel, name, noting(call))
        yield used
    finally:
        for name, call in calls.items():
            setattr(_compile._Kernel, name, call)


def as_listed(kernel: Any, types: str) -> str:
    """How `plait.lang.ahead.LIST` writes it: module and name of the kernel, and its types.

    The module is that of its function, if it has it; others import it.
    """
    own = kernel.py_func.__module__
    for name, module in sorted(sys.modules.items(), key=lambda item: (item[0] != own, item[0])):
        if name.startswith("plait."):
            for attribute, found in vars(module).items():
                if found is kernel:
                    return f"{name}:{attribute} {types}"
    raise AssertionError(f"no module has the kernel {kernel.name}")


def command_of(words: list[str]) -> str:
    """The words of a command line that name the command."""
    return " ".join(words[: 2 if words[0] in ("vdj", "hsi") else 1])
