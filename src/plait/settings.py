"""Settings read from the environment.

=================== ============================================ ==========================================
variable            meaning                                      default
=================== ============================================ ==========================================
``PLAIT_CACHE_DIR`` folder of compiled code, made when missing   ``plait`` in the user's cache folder
``PLAIT_DEBUG``     1: commands that fail show the traceback too only the message
``PLAIT_THREADS``   threads used when a call does not say        the processors that this process may use
=================== ============================================ ==========================================

``PLAIT_THREADS`` is read at each call; ``PLAIT_CACHE_DIR`` before the first compiled code is loaded.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from plait.errors import MOST_THREADS, InvalidInput, whole

__all__ = ["cache_directory", "package_digest", "show_tracebacks", "source_digest", "thread_count"]


def cache_directory() -> Path:
    """Folder in which compiled code is kept between runs; it need not exist yet.

    Everything in it can be deleted at any time: it is compiled again when needed.

    Raises
    ------
    InvalidInput
        If ``PLAIT_CACHE_DIR`` begins with a user that does not exist.
    """
    named = os.environ.get("PLAIT_CACHE_DIR", "")
    try:
        return Path(named).expanduser().absolute() if named else _user_cache() / "plait"
    except RuntimeError as error:
        if named:
            raise InvalidInput("PLAIT_CACHE_DIR", found=repr(named), expected="a folder") from error
        # A user without a home: no folder can be made there, so that what is compiled is kept for one run.
        return Path(os.devnull) / "plait"


def thread_count() -> int:
    """Number of threads used when a call does not say.

    Raises
    ------
    InvalidInput
        If ``PLAIT_THREADS`` is not a whole number from 1 to `MOST_THREADS`.
    """
    named = os.environ.get("PLAIT_THREADS", "").strip()
    if not named:
        return _usable_processors()
    number = int(named) if named.isascii() and named.isdigit() else named
    return whole("PLAIT_THREADS", number, 1, MOST_THREADS)


def show_tracebacks() -> bool:
    """Whether a command that fails shows where in the program it did."""
    return os.environ.get("PLAIT_DEBUG", "").strip() not in ("", "0")


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    # The XDG rules say that a relative path in this variable is to be ignored.
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".cache"


def _usable_processors() -> int:
    # Counts what a batch system or taskset left to this process, where the platform can say.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def package_digest() -> str:
    """Digest of all source files of plait, when first asked for: what may change any result."""
    return source_digest(Path(__file__).parent.rglob("*.py"))


def source_digest(files: Iterable[Path], *facts: str) -> str:
    """Digest of source files and other facts: what compiled code and stored results depend on.

    Parameters
    ----------
    files
        Files, in any order.
    *facts
        Versions and the like.
    """
    # Loaded here, because help does without it.
    import hashlib

    digest = hashlib.blake2b("\0".join(facts).encode(), digest_size=8)
    # Wherever the files are installed.
    for name, content in sorted((file.name, file.read_bytes()) for file in files):
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()
