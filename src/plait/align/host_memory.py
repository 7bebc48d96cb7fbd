"""How much memory this process may still take."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["free_bytes"]

#: Where nothing is known.
_PERHAPS = 4 << 30
_GROUP = Path("/sys/fs/cgroup")


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def free_bytes() -> int:
    """Bytes of memory that are free, within the limit of this process's control group if it has one."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        free = _PERHAPS
    most, taken = _number(_GROUP / "memory.max"), _number(_GROUP / "memory.current")
    if most is not None and taken is not None:
        free = min(free, most - taken)
    return max(free, 0)
