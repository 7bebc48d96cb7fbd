"""Threads of a GPU that work in step: the operations by which the lanes of a warp meet.

A schedule for a GPU is written for one thread; what it says with these functions is the same compiled
(`plait.devices.cuda`) and in the CUDA simulator, which has barriers but no exchange within a warp. The
definitions here serve the simulator, which says in `place_in_warp` how lanes meet: each hands in its value,
all wait, and each reads what it needs. Without it they raise `RuntimeError`: one thread alone is no warp.

All lanes of a warp must call an exchange together. Values are numbers of 32 or 64 bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from plait.lang.compile import shared

#: Threads of a warp.
WARP = 32
_ADDING = threading.Lock()


def _alone() -> tuple[Any, int]:
    raise RuntimeError("lanes of a warp meet on a GPU or in the CUDA simulator only")


#: Gives the warp of the running thread, which has ``gather(lane, value)`` and ``wait(lane)``, and its lane.
place_in_warp: Callable[[], tuple[Any, int]] = _alone


def _exchange(value: Any, source: Any) -> Any:
    warp, lane = place_in_warp()
    return warp.gather(lane, value)[source(lane)]


@shared
def at(place: Any) -> Any:
    """A place in an array, not negative: compiled code need not look whether it counts from the end."""
    return np.uint32(place)


def in_word(word: Any, distance: Any) -> Any:
    """A distance to shift a word by, which is less than its bits: compiled code need not look at others."""
    return distance


def lane_index() -> int:
    """Place of this thread in its warp."""
    return place_in_warp()[1]


def warp_size() -> int:
    """Lanes of a warp, as a number that the compiler does not know: it unrolls no loop in steps of it."""
    return WARP


def synchronize_warp() -> None:
    """Wait for the lanes of the warp; what they wrote to shared memory is then seen by all."""
    warp, lane = place_in_warp()
    warp.wait(lane)


def ballot(flag: Any) -> Any:
    """The lanes for which a flag is true: bit k of a 64-bit word is lane k."""
    warp, lane = place_in_warp()
    return sum(1 << k for k, found in enumerate(warp.gather(lane, bool(flag))) if found)


def add_to(values: Any, place: Any, amount: Any) -> None:
    """Add to an element of a shared array, to which other lanes may add at the same time."""
    with _ADDING:
        values[place] += amount


def shuffle(value: Any, lane: Any) -> Any:
    """The value of a lane, named by each lane for itself."""
    return _exchange(value, lambda own: int(lane) % WARP)


def shuffle_up(value: Any, distance: Any) -> Any:
    """The value of the lane `distance` below; the lowest lanes keep their own."""
    return _exchange(value, lambda own: own - int(distance) if own >= distance else own)


def shuffle_down(value: Any, distance: Any) -> Any:
    """The value of the lane `distance` above; the highest lanes keep their own."""
    return _exchange(value, lambda own: own + int(distance) if own + distance < WARP else own)


def shuffle_xor(value: Any, mask: Any) -> Any:
    """The value of the lane whose number differs in the bits of `mask`."""
    return _exchange(value, lambda own: own ^ int(mask))
