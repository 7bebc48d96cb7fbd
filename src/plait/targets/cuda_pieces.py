"""Pieces of batches of texts on their way through a device: slots that all share, and symbols alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.targets.cuda_memory import Slot

__all__ = ["SLOTS", "own_symbols", "slot_of"]

#: Threads per device, each with a piece.
SLOTS: Final = 6
#: Symbols between texts that may be copied with them.
_APART: Final = 4096


class _Kept:
    """Slots that no piece uses, and how many there may be."""

    lock = threading.Lock()
    slots: dict[int, list[Slot]] = {}  # noqa: RUF012  # one for the process
    used: dict[int, threading.Semaphore] = {}  # noqa: RUF012


@contextlib.contextmanager
def slot_of(device: int) -> Iterator[Slot]:
    """A slot, as soon as one is free: there are so many for all batches that are under way at a time."""
    with _Kept.lock:
        used = _Kept.used.setdefault(device, threading.Semaphore(SLOTS))
        free = _Kept.slots.setdefault(device, [])
    with used:
        with _Kept.lock:
            slot = free.pop() if free else None
        slot = slot or Slot()
        yield slot
        # A slot whose piece has failed is given up.
        with _Kept.lock:
            free.append(slot)


def own_symbols(
    symbols: NDArray[np.uint8], start: NDArray[Any], length: NDArray[Any]
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """The symbols of some texts with few others, and where each text starts there.

    Parameters
    ----------
    symbols, start, length
        Text i is ``symbols[start[i]:start[i] + length[i]]``; there is at least one.
    """
    begin, end = int(start.min()), int((start + length).max())
    if end - begin <= 2 * int(length.sum()) + _APART:
        return symbols[begin:end], start - begin
    # They are from all over the place.
    compact = np.cumsum(length) - length
    return symbols[np.repeat(start - compact, length) + np.arange(int(length.sum()))], compact
