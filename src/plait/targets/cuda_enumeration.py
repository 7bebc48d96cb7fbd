"""Exhaustive enumeration on GPUs: every N string, compared with everything that might ask for it.

The published programs give each of the 4^n N strings of length n to a thread, which builds every V prefix
+ N1 + D fragment + N2 + J suffix with it and compares the result with every text up to the first mismatch.
What such a string has in common with those of all other threads is compared first here, once for all:

1. `find_wanted`, a thread per text and choice of D: V prefix, D fragment and J suffix, each up to its first
   mismatch, for every place they can have. Where they fit, the symbols of the text between them are a
   *wanted* N string, kept in a list with the number of ways in which the D fragment is cut from its gene.
2. `compare_packed` or `compare_bytes`, a thread per 16 N strings: each string is compared with each wanted
   string of each text, by itself; a thread adds up the ways of those that are equal.

So the comparisons of N strings are as many as lists are long times 4^n, none is left out, and nothing is
concluded from a wanted string but by an N string that equals it.

Devices of one machine take pieces of the texts in turn, smaller and smaller ones, so that they are done at
the same time. Ranks of MPI (`plait.executors.mpi`) share out the N strings, as the published programs do:
with a share k of m, those from ``4^n k / m`` on; their counts are added.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput, Unsupported
from plait.schedules.chain_tables import ChainTables, Texts
from plait.targets.cuda import SIMULATED, CudaKernel, cuda
from plait.targets.cuda_devices import device_facts, free_memory, over_devices
from plait.targets.cuda_enumeration_kernels import (
    STRINGS,
    THREADS,
    compare_bytes,
    compare_packed,
    find_wanted,
)
from plait.targets.cuda_enumeration_layouts import Group, Layout, arrange
from plait.targets.cuda_enumeration_letters import BYTE_ENTRY, MOST, PACKED_ENTRY, PackedLetters

__all__ = ["FINDING", "MOST", "Observe", "run_enumeration"]

#: Told after every launch, which is then waited for: number of N symbols (`FINDING` while wanted strings are
#: found), comparisons done, and seconds.
Observe = Callable[[int, int, float], None]
FINDING = -1

#: Pairs of a text and a choice of D that are prepared together, and numbers in a list (512 MB).
_PAIRS = 1 << 15
#: Of the texts that are left, the share that is one piece where several devices take them: one of so many for
#: each device. Fewest texts of a piece.
_SHARE_LEFT = 2
_LEAST_TEXTS = 1024
_LIST_NUMBERS = 1 << 27
#: Comparisons per launch, so that none runs for more than about a second.
_COMPARISONS = 2.0**43
#: Blocks per multiprocessor in a launch: enough for their ends to fall together.
_BLOCKS = 1 if SIMULATED else 256


class _Loaded(NamedTuple):
    """A group of texts in device memory, and the kernel of its layout."""

    items: NDArray[np.int64]
    letters: Any
    fragments: Any
    compare: CudaKernel
    entry: int


class _Chunk(NamedTuple):
    """Texts `first` to `last` of a group; where their lists start, uint64 (levels, pairs + 1)."""

    group: _Loaded
    first: int
    last: int
    edges: NDArray[np.uint64]


class _Piece(NamedTuple):
    """Texts `first` to `last` of a group, for one device."""

    group: int
    first: int
    last: int


class _Room(NamedTuple):
    """Device memory of a chunk; there are two, so that one is read while the other is worked on."""

    edges: Any
    counts: Any


def run_enumeration(
    devices: Sequence[int],
    tables: ChainTables,
    texts: Texts,
    most: int,
    out: NDArray[np.int64],
    *,
    layout: Layout = "auto",
    share: tuple[int, int] = (0, 1),
    observe: Observe | None = None,
) -> None:
    """Count by comparing all N strings of up to `most` symbols, as `enumerate_item` does.

    Parameters
    ----------
    devices
        Numbers of CUDA devices; the texts are shared out over them.
    tables
        The chain, of rows `PerInsertions`.
    texts
        The batch.
    most
        Largest total number of N symbols, at most 10.
    out
        int64 (texts, fragments + 1, most + 1): per fragment, and in the last row without a fragment.
    layout
        How symbols are stored; ``"auto"`` packs the texts that two bits a symbol can hold.
    share
        ``(k, m)``: only the k-th of m shares of the N strings, for work shared out further. The results of
        all shares add up to the counts.
    observe
        Called after every launch, on the thread of its device, which then waits for each.

    Raises
    ------
    InvalidInput
        If there is no such layout or share.
    Unsupported
        If `most` is too large, or the layout cannot hold the texts.
    """
    if not 0 <= most <= MOST:
        raise Unsupported(f"enumeration of {most} N symbols", why=f"{MOST} are the most")
    number, of = share
    if not 0 <= number < of:
        raise InvalidInput("share", found=repr(share), expected="(k, m) with 0 <= k < m")
    out[:] = 0
    if not texts.start.size:
        return
    groups = arrange(tables, texts, layout)
    strings = [(4**n * number // of, 4**n * (number + 1) // of) for n in range(most + 1)]
    step = max(1, _PAIRS // (groups[0].fragments.first.size - 1))
    pieces = _pieces([group.items.size for group in groups], len(devices), step)
    waiting: SimpleQueue[_Piece] = SimpleQueue()
    for piece in pieces:
        waiting.put(piece)
    adding, stop = threading.Lock(), threading.Event()

    def add(items: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        with adding:
            out[items] += counts

    def run(device: int, place: int) -> None:
        largest = max(piece.last - piece.first for piece in pieces)
        try:
            _Enumerator(device, groups, strings, largest, observe, stop).run(waiting, add)
        except BaseException:
            stop.set()
            raise

    if len(devices) == 1:
        over_devices(devices, [0], run)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="plait") as pool:
        try:
            # Waited for from here, an interrupt stops the devices at their next chunk.
            pool.submit(over_devices, devices, range(len(devices)), run).result()
        except BaseException:
            stop.set()
            raise


def _pieces(sizes: Sequence[int], devices: int, step: int) -> list[_Piece]:
    """Groups of texts cut into pieces of at most `step`; for several devices, small ones first and last."""
    left = sum(sizes)
    made: list[_Piece] = []
    for group, size in enumerate(sizes):
        first = 0
        while first < size:
            most = step
            if devices > 1:
                # Small ones at first, with which they begin soon.
                most = _LEAST_TEXTS if len(made) < devices else left // (_SHARE_LEFT * devices)
                most = min(step, max(most, _LEAST_TEXTS))
            last = min(first + most, size)
            made.append(_Piece(group, first, last))
            left -= last - first
            first = last
    return made


class _Enumerator:
    """What one device does; the device is current on this thread.

    While the device works on one chunk of texts, the next one is prepared and the counts of the last one are
    fetched, in a stream of their own.
    """

    def __init__(
        self,
        device: int,
        groups: list[Group],
        strings: list[tuple[int, int]],
        largest: int,
        observe: Observe | None,
        stop: threading.Event,
    ) -> None:
        self._groups = groups
        self._loaded: dict[int, _Loaded] = {}
        self._largest = largest
        self._strings = strings
        self._levels = len(strings)
        self._choices = groups[0].fragments.first.size - 1
        self._blocks = _BLOCKS * device_facts(device).multiprocessors
        self._observe = observe
        self._stop = stop
        self._work, self._aside = cuda.stream(), cuda.stream()
        self._spread = cuda.to_device(_spread(), stream=self._aside)
        self._most_numbers = min(_LIST_NUMBERS, free_memory() // 16)
        self._lists = cuda.device_array(1, np.int32)

    def run(
        self,
        waiting: SimpleQueue[_Piece],
        add: Callable[[NDArray[np.int64], NDArray[np.int64]], None],
    ) -> None:
        """Find, compare and hand counts to `add`, a chunk of texts at a time, while pieces are waiting."""
        pairs = self._largest * self._choices
        edges = self._levels * (pairs + 1)
        rooms = [
            _Room(cuda.device_array(edges, np.uint64), cuda.device_array((pairs, self._levels), np.int64))
            for _ in range(2)
        ]
        turns, under_way = itertools.cycle(rooms), None
        # Giving memory back would wait for the device.
        with cuda.defer_cleanup():
            for chunk in self._all_chunks(waiting):
                room = next(turns)
                begun = self._start(chunk, room)
                if under_way is not None:
                    self._collect(*under_way, add)
                under_way = chunk, room, begun
                if self._stop.is_set():
                    return
            if under_way is not None:
                self._collect(*under_way, add)

    def _all_chunks(self, waiting: SimpleQueue[_Piece]) -> Iterator[_Chunk]:
        numbers = cuda.device_array((self._largest * self._choices, self._levels), np.int64)
        while True:
            try:
                piece = waiting.get_nowait()
            except Empty:
                return
            yield from self._chunks(self._load(piece.group), piece.first, piece.last, numbers)

    def _load(self, number: int) -> _Loaded:
        """A group of texts, which stays in device memory."""
        if number not in self._loaded:
            group = self._groups[number]
            packed = isinstance(group.letters, PackedLetters)
            self._loaded[number] = _Loaded(
                group.items,
                _on_device(group.letters, self._aside),
                _on_device(group.fragments, self._aside),
                compare_packed if packed else compare_bytes,
                PACKED_ENTRY if packed else BYTE_ENTRY,
            )
        return self._loaded[number]

    def _chunks(self, group: _Loaded, first: int, last: int, numbers: Any) -> list[_Chunk]:
        """Cut texts so that their lists fit the memory, and comparing takes no more than a moment."""
        nothing = cuda.device_array(1, np.uint64)
        self._find(group, (first, last), numbers, nothing, False, self._aside)
        found = self._fetch(numbers, (last - first) * self._choices).reshape(last - first, -1, self._levels)
        per_text = found.sum(axis=1)
        strings = np.array([high - low for low, high in self._strings], np.float64)
        memory = per_text.sum(axis=1) * (group.entry / self._most_numbers)
        load = np.maximum(memory, (per_text * strings).max(axis=1) / _COMPARISONS)
        cuts = [0, *(np.flatnonzero(np.diff(np.cumsum(load).astype(np.int64))) + 1).tolist(), last - first]
        made = []
        for a, b in itertools.pairwise(cuts):
            lists = np.ascontiguousarray(found[a:b].reshape(-1, self._levels).T)
            ends = np.concatenate([[0], np.cumsum(lists)]) * group.entry
            starts = np.arange(self._levels)[:, None] * lists.shape[1] + np.arange(lists.shape[1] + 1)
            made.append(_Chunk(group, first + a, first + b, ends[starts].astype(np.uint64)))
        longest = max(int(chunk.edges[-1, -1]) for chunk in made)
        if longest > self._lists.size:
            size = max(longest, min(2 * self._lists.size, self._most_numbers))
            self._lists = cuda.device_array(size, np.int32)
        return made

    def _find(
        self, group: _Loaded, texts: tuple[int, int], table: Any, edges: Any, fill: bool, stream: Any
    ) -> None:
        begin = time.perf_counter()
        first, last = texts
        blocks = -(-(last - first) * self._choices // THREADS)
        find_wanted.launch(
            blocks, THREADS, group.letters, group.fragments, first, last, self._levels - 1, table, edges,
            self._lists, group.entry, fill, stream=stream,
        )  # fmt: skip
        self._note(FINDING, 0, begin, stream)

    def _start(self, chunk: _Chunk, room: _Room) -> Any:
        """Queue the work on a chunk; an event that comes when it is done."""
        group, pairs = chunk.group, chunk.edges.shape[1] - 1
        room.edges[: chunk.edges.size].copy_to_device(chunk.edges.ravel(), stream=self._aside)
        self._aside.synchronize()
        self._find(group, (chunk.first, chunk.last), room.counts, room.edges, True, self._work)
        for n, (low, high) in enumerate(self._strings):
            wanted = int(chunk.edges[n, -1] - chunk.edges[n, 0]) // group.entry
            if low == high or not wanted:
                continue
            begin = time.perf_counter()
            across = -(-(high - low) // (THREADS * STRINGS))
            down = max(1, min(-(-self._blocks // across), pairs, 65535))
            each = -(-pairs // down)
            edges = room.edges[n * (pairs + 1) : (n + 1) * (pairs + 1)]
            group.compare.launch(
                (across, -(-pairs // each)), THREADS, self._lists, edges, self._spread, low, high, n, each,
                room.counts, stream=self._work,
            )  # fmt: skip
            self._note(n, wanted * (high - low), begin, self._work)
        done = cuda.event()
        done.record(self._work)
        return done

    def _collect(
        self,
        chunk: _Chunk,
        room: _Room,
        done: Any,
        add: Callable[[NDArray[np.int64], NDArray[np.int64]], None],
    ) -> None:
        done.synchronize()
        counts = self._fetch(room.counts, chunk.edges.shape[1] - 1)
        add(chunk.group.items[chunk.first : chunk.last], counts.reshape(-1, self._choices, self._levels))

    def _fetch(self, table: Any, pairs: int) -> NDArray[np.int64]:
        """The first rows of a table, once the stream aside has come to it."""
        found = table[:pairs].copy_to_host(stream=self._aside)
        self._aside.synchronize()
        return np.asarray(found)

    def _note(self, n: int, compared: int, begin: float, stream: Any) -> None:
        if self._observe is not None:
            stream.synchronize()
            self._observe(n, compared, time.perf_counter() - begin)


def _on_device(fields: Any, stream: Any) -> Any:
    """A named tuple with its arrays in device memory."""
    moved = [cuda.to_device(x, stream=stream) if isinstance(x, np.ndarray) else x for x in fields]
    return type(fields)(*moved)


def _spread() -> NDArray[np.int32]:
    """One-hot bytes of every four symbols, see `word_of`."""
    strings = np.arange(256)
    bytes_of = [1 << (strings >> 2 * k & 3) << 8 * (3 - k) for k in range(4)]
    return np.asarray(sum(bytes_of), np.int32)
