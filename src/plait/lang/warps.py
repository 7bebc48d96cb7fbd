"""Threads of a GPU that work in step: the operations by which the lanes of a warp meet.

A schedule for a GPU is written for one thread; what it says with these functions is the same compiled
(`plait.devices.cuda`) and in the CUDA simulator, which has barriers but no exchange within a warp. The
definitions here serve the simulator: every lane puts its value into a slot, all wait, and each reads the slot
it needs. Interpreted without a simulator they raise `RuntimeError`, because one thread alone is no warp.

All lanes of a warp must call an exchange together. Values are numbers of 32 or 64 bits.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from plait.lang.compile import shared

#: Threads of a warp.
WARP = 32
#: Seconds after which a simulated lane no longer waits for the others.
_PATIENCE = 60


class _Warp:
    """Where the lanes of one simulated warp meet.

    Values of one exchange and the next have slots of their own: a lane that writes for the next one has seen
    all others arrive there, so they are done with those before the last. So lanes wait once per exchange.
    """

    lock = threading.Lock()

    def __init__(self, lanes: int) -> None:
        self.values: tuple[list[Any], list[Any]] = ([None] * WARP, [None] * WARP)
        self._turn = [0] * lanes
        self._lock = threading.Lock()
        self._arrived = 0
        # One lock for each lane, held until the last one arrives: lanes that wake need not queue for another.
        self._gates = [threading.Lock() for _ in range(lanes)]
        for gate in self._gates:
            gate.acquire()

    def wait(self, lane: int) -> None:
        """Wait until all lanes are here."""
        with self._lock:
            self._arrived += 1
            last = self._arrived == len(self._gates)
            if last:
                self._arrived = 0
        if last:
            for other, gate in enumerate(self._gates):
                if other != lane:
                    gate.release()
        elif not self._gates[lane].acquire(timeout=_PATIENCE):
            raise RuntimeError(f"lane {lane} of a simulated warp waited for others that do not come")

    def gather(self, lane: int, value: Any) -> list[Any]:
        """Give a value, and look at those of all lanes."""
        values = self.values[self._turn[lane]]
        self._turn[lane] ^= 1
        values[lane] = value
        self.wait(lane)
        return values


def _place() -> tuple[_Warp, int]:
    """The warp of the running thread, and its lane."""
    thread: Any = threading.current_thread()
    found = getattr(thread, "plait_warp", None)
    if found is None:
        found = thread.plait_warp = _first_place(thread)
    return found


def _first_place(thread: Any) -> tuple[_Warp, int]:
    manager = getattr(thread, "_manager", None)
    if manager is None:
        raise RuntimeError("lanes of a warp meet on a GPU or in the CUDA simulator only")
    warp, lane = divmod(thread.thread_id, WARP)
    with _Warp.lock:
        warps = manager.__dict__.setdefault("plait_warps", {})
        if warp not in warps:
            threads = 1
            for size in manager._block_dim:
                threads *= size
            warps[warp] = _Warp(min(WARP, threads - warp * WARP))
    return warps[warp], lane


def _exchange(value: Any, source: Any) -> Any:
    warp, lane = _place()
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
    return _place()[1]


def warp_size() -> int:
    """Lanes of a warp, as a number that the compiler does not know: it unrolls no loop in steps of it."""
    return WARP


def synchronize_warp() -> None:
    """Wait for the lanes of the warp; what they wrote to shared memory is then seen by all."""
    warp, lane = _place()
    warp.wait(lane)


def ballot(flag: Any) -> Any:
    """The lanes for which a flag is true: bit k of a 64-bit word is lane k."""
    warp, lane = _place()
    return sum(1 << k for k, found in enumerate(warp.gather(lane, bool(flag))) if found)


def add_to(values: Any, place: Any, amount: Any) -> None:
    """Add to an element of a shared array, to which other lanes may add at the same time."""
    with _Warp.lock:
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
