"""Numba's CUDA simulator, with warps and with less waiting.

There the threads of a block are threads of Python, and another one asks them all the time whether they have
arrived at a barrier. It holds the interpreter while it asks, which takes more time than the kernels do.
`quicken` lets the last thread that arrives wake the others instead, and gives kernels NumPy's arrays in the
place of wrappers, which look at each element they hand out; and it says how the lanes of a warp meet, which
the simulator does not know.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from plait.lang import warps
from plait.lang.warps import WARP

__all__ = ["quicken"]


class _State:
    """How far the threads of a block are."""

    def __init__(self, threads: list[Any]) -> None:
        self.lock = threading.Lock()
        self.running = len(threads)
        self.waiting: list[Any] = []
        self.failed = False

    def arrived(self) -> list[Any]:
        """The waiting threads, if no other one runs; with the lock."""
        if self.running:
            return []
        released, self.waiting = self.waiting, []
        self.running = len(released)
        return released


def _plain(value: Any) -> Any:
    """A simulated device array as NumPy's array, also within tuples."""
    if isinstance(value, tuple):
        parts = [_plain(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return getattr(value, "_ary", value)


def quicken() -> None:
    """Replace how blocks of the simulator wait; for the process."""
    simulator: Any = importlib.import_module("numba.cuda.simulator.kernel")
    call = simulator.FakeCUDAKernel.__call__

    def call_plainly(self: Any, *arguments: Any) -> Any:
        return call(self, *(_plain(value) if isinstance(value, tuple) else value for value in arguments))

    simulator.FakeCUDAKernel.__call__ = call_plainly
    simulator.FakeWithinKernelCUDAArray = _plain
    simulator.BlockManager.run = _block_runner(simulator.BlockThread)
    simulator.BlockThread.run = _thread_runner(simulator.BlockThread.run)
    simulator.BlockThread.syncthreads = _synchronize
    shared: Any = importlib.import_module("numba.cuda.simulator.kernelapi").FakeCUDAShared
    shared.array = _shared_array(shared.array)
    warps.place_in_warp = _place


def _shared_array(array: Callable[..., Any]) -> Callable[..., Any]:
    """Shared arrays, by the line that asks: of two threads that are the first, both get the same one."""
    lock = threading.Lock()

    def shared_array(self: Any, shape: Any, dtype: Any) -> Any:
        if shape == 0:
            return array(self, shape, dtype)
        frame = sys._getframe(1)
        line = frame.f_code.co_filename, frame.f_lineno
        # Types of Numba go by NumPy's names.
        kind = np.dtype(dtype if isinstance(dtype, type | np.dtype) else str(dtype))
        with lock:
            if line not in self._allocations:
                self._allocations[line] = np.empty(shape, kind)
            return self._allocations[line]

    return shared_array


def _block_runner(make_thread: Callable[..., Any]) -> Callable[..., None]:
    def run(self: Any, grid_point: Any, *arguments: Any) -> None:
        threads = [
            make_thread(lambda: self._f(*arguments), self, grid_point, point, self._debug)
            for point in np.ndindex(*self._block_dim)
        ]
        self.plait_state = _State(threads)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Those that only stopped because another one failed come last.
        for thread in sorted(threads, key=lambda thread: bool(thread.abort)):
            if thread.exception:
                raise thread.exception[0].with_traceback(thread.exception[1])

    return run


def _thread_runner(run_thread: Callable[[Any], None]) -> Callable[[Any], None]:
    def run(self: Any) -> None:
        run_thread(self)
        state = self._manager.plait_state
        with state.lock:
            state.running -= 1
            state.failed = state.failed or self.exception is not None
            # Where one has failed, the others need not wait for it.
            released = state.waiting if state.failed else state.arrived()
            if state.failed:
                state.waiting = []
                state.running += len(released)
        for other in released:
            other.syncthreads_event.set()

    return run


def _synchronize(self: Any) -> None:
    state = self._manager.plait_state
    with state.lock:
        released: list[Any] = [self]
        if not state.failed:
            state.running -= 1
            state.waiting.append(self)
            released = state.arrived()
    for other in released:
        if other is not self:
            other.syncthreads_event.set()
    if self not in released:
        self.syncthreads_event.wait()
        self.syncthreads_event.clear()
    self.abort = state.failed
    if self.abort:
        raise RuntimeError("another thread of the block failed")


#: Seconds after which a simulated lane no longer waits for the others.
_PATIENCE = 60


class _Warp:
    """Where the lanes of one simulated warp meet.

    Values of one exchange and the next have slots of their own: a lane that writes for the next one has seen
    all others arrive there, so they are done with those before the last. So lanes wait once per exchange.
    """

    made = threading.Lock()

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
    with _Warp.made:
        warps = manager.__dict__.setdefault("plait_warps", {})
        if warp not in warps:
            threads = 1
            for size in manager._block_dim:
                threads *= size
            warps[warp] = _Warp(min(WARP, threads - warp * WARP))
    return warps[warp], lane
