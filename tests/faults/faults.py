"""Faults that strike a command at its k-th file operation, and the processes in which they do."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Ended", "Fault", "count_operations", "fork", "snapshot"]

#: Audit events of operations that change files; opening is one where something may be written.
_CHANGES = frozenset(
    {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "fsync"}
)
_REMOVALS = frozenset({"os.remove", "os.rmdir"})
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Called with the event and the number of operations so far, this one included.
Fault = Callable[[str, int], None]

_state: dict[str, Any] = {"fault": None, "seen": 0, "folder": ""}


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _state["fault"] is None:
        return
    if event == "open":
        path, mode, flags = arguments
        if isinstance(mode, str):
            changing = any(letter in mode for letter in "wax+")
        else:
            changing = bool((flags or 0) & _WRITES)
        if not changing or not _inside(path):
            return
    elif event not in _CHANGES or (event != "fsync" and not _inside(arguments[0])):
        return
    _state["seen"] += 1
    _state["fault"](event, _state["seen"])


def _inside(path: object) -> bool:
    try:
        return os.path.abspath(os.fsdecode(path)).startswith(_state["folder"])  # type: ignore[arg-type]
    except TypeError:
        return True


def _install() -> None:
    real = os.fsync

    def fsync(descriptor: Any) -> None:
        _hook("fsync", (descriptor,))
        real(descriptor)

    os.fsync = fsync
    sys.addaudithook(_hook)


def killed_before(k: int) -> Fault:
    """SIGKILL before the k-th operation."""

    def strike(event: str, seen: int) -> None:
        if seen == k:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)

    return strike


def stopped_before(k: int, number: int) -> Fault:
    """A signal that asks to stop, before the k-th operation."""

    def strike(event: str, seen: int) -> None:
        if seen == k:
            os.kill(os.getpid(), number)

    return strike


def refused_from(k: int, code: int = errno.ENOSPC, *, only: bool = False) -> Fault:
    """Every operation from the k-th on, or it alone, fails as on a full disk or in a read-only folder."""

    def strike(event: str, seen: int) -> None:
        # Room is never needed to remove something.
        if code == errno.ENOSPC and event in _REMOVALS:
            return
        if seen == k or (seen > k and not only):
            raise OSError(code, os.strerror(code))

    return strike


def count_operations() -> Fault:
    """Nothing happens; operations are counted."""
    return lambda event, seen: None


_COUNT = b"\x00operations "


class Ended(NamedTuple):
    """How a command ended: its status (negative: by that signal), its messages, and operations seen."""

    status: int
    told: str
    operations: int


def fork(
    words: tuple[str, ...],
    folder: Path,
    *,
    fault: Fault | None = None,
    file_bytes: int | None = None,
    broken_pipe: bool = False,
) -> Child:
    """Run a command in a copy of this process, which has loaded all that it needs."""
    told, tell = os.pipe()
    child = os.fork()
    if child:
        os.close(tell)
        return Child(child, told)
    status = 99
    try:
        os.chdir(folder)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.dup2(tell, 2)
        if broken_pipe:
            reader, writer = os.pipe()
            os.close(reader)
            os.dup2(writer, 1)
        else:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if file_bytes is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        _install()
        _state.update(fault=fault, seen=0, folder=str(folder))
        from plait.cli import main

        status = main(list(words))
        _state["fault"] = None
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(2, _COUNT + str(_state["seen"]).encode())
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}".encode())
    finally:
        # As when a program ends, but nothing of the parent's is run.
        os._exit(status)


class Child:
    """A running command."""

    def __init__(self, number: int, told: int) -> None:
        self.number, self._told = number, told

    def kill(self) -> None:
        """SIGKILL."""
        os.kill(self.number, signal.SIGKILL)

    def wait(self, seconds: float = 120.0) -> Ended:
        """Its end; one that hangs is killed and has status 98."""
        end, pieces, hung = time.monotonic() + seconds, [], False
        while True:
            if select.select([self._told], [], [], max(end - time.monotonic(), 0))[0]:
                piece = os.read(self._told, 1 << 16)
                pieces.append(piece)
                if piece:
                    continue
            else:
                hung = True
                self.kill()
            break
        os.close(self._told)
        _, status = os.waitpid(self.number, 0)
        told, _, count = b"".join(pieces).partition(_COUNT)
        text = told.decode("utf-8", "replace")
        return Ended(98 if hung else os.waitstatus_to_exitcode(status), text, int(count or 0))


def snapshot(folder: Path) -> dict[str, str]:
    """Digests of all files in a folder by their names, and the folders in it."""
    found = {}
    for path in sorted(_below(folder)):
        name = path.relative_to(folder).as_posix()
        found[name] = "folder" if path.is_dir() else hashlib.sha256(_timeless(path)).hexdigest()
    return found


def _timeless(path: Path) -> bytes:
    """Content without what tells of the run that made it."""
    data = path.read_bytes()
    if path.suffix == ".json" and b'"created"' in data:
        with contextlib.suppress(ValueError):
            return json.dumps(json.loads(data, object_hook=_lasting)).encode()
    return data


def _lasting(facts: dict[str, Any]) -> dict[str, Any]:
    """Without what tells of the run: when, how long, and what an earlier one had left."""
    return {key: value for key, value in facts.items() if key not in ("created", "timings", "counts_reused")}


def _below(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        yield from (Path(root) / name for name in (*folders, *files))
