"""Compilation in this process: how many kernels, how long, and who wants to hear of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_LOCK = threading.Lock()


class _State:
    kernels: list[str] = []  # noqa: RUF012  # one for the process
    listeners: list[Callable[[str], None]] = []  # noqa: RUF012
    helpers: list[Callable[[str, str], Callable[[], bool] | None]] = []  # noqa: RUF012
    under_way = 0
    since = 0.0
    seconds = 0.0


@contextmanager
def compiling(kernel: str, *, here: bool = True) -> Iterator[None]:
    """Around the compilation of a kernel; not `here`: while another process compiles it."""
    with _LOCK:
        if not _State.under_way:
            _State.since = time.perf_counter()
        _State.under_way += 1
        listeners = list(_State.listeners) if here else []
    try:
        for listener in listeners:
            listener(kernel)
        yield
        if here:
            _State.kernels.append(kernel)
    finally:
        with _LOCK:
            _State.under_way -= 1
            if not _State.under_way:
                _State.seconds += time.perf_counter() - _State.since


@contextmanager
def helped(helper: Callable[[str, str], Callable[[], bool] | None]) -> Iterator[None]:
    """Ask `helper` meanwhile about every kernel that is missing, by its name and the types of its arguments.

    It lets other processes compile it, and gives a function that says whether they still may; or None.
    """
    _State.helpers.append(helper)
    try:
        yield
    finally:
        _State.helpers.remove(helper)


def wait_for_others(kernel: str, types: str, stem: str) -> None:
    """Wait while processes of a helper, if there is one, may still write the files ``stem.*`` of a kernel."""
    at_work = _State.helpers[-1](kernel, types) if _State.helpers else None
    if at_work is None:
        return
    files = [Path(f"{stem}{suffix}") for suffix in (".o", ".numba")]
    with compiling(kernel, here=False):
        while not any(file.exists() for file in files) and at_work():
            time.sleep(0.02)


def others_compiled(kernels: list[str]) -> None:
    """Count kernels that other processes have compiled for this one."""
    _State.kernels.extend(kernels)


@contextmanager
def listen(listener: Callable[[str], None]) -> Iterator[None]:
    """Call `listener` with the name of every kernel whose compilation begins meanwhile."""
    _State.listeners.append(listener)
    try:
        yield
    finally:
        _State.listeners.remove(listener)


def compiled_kernels() -> list[str]:
    """Names of the kernels that were compiled, one for each combination of types."""
    return list(_State.kernels)


def compiling_seconds() -> float:
    """Seconds in which at least one thread compiled, or waited for a process that did."""
    with _LOCK:
        return _State.seconds + (time.perf_counter() - _State.since if _State.under_way else 0.0)


def work_time() -> float:
    """`time.perf_counter` of a clock that stands still while a kernel is compiled: for rates of the work."""
    return time.perf_counter() - compiling_seconds()


@contextmanager
def alone(file: Path, kernel: str) -> Iterator[None]:
    """Wait while another process has locked this file; where files cannot be locked, do not."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):
            import fcntl

            lock = stack.enter_context(open(file, "w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                with compiling(kernel, here=False):
                    fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def taken(file: Path) -> bool:
    """Whether another process has locked this file now."""
    with suppress(ImportError, FileNotFoundError), open(file) as lock:
        import fcntl

        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return False
