"""Exhaustive enumeration on GPUs: every N string, compared with everything that might ask for it."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from plait.devices.cuda import SIMULATED, CudaKernel, cuda
from plait.devices.cuda_devices import device_facts, free_memory, over_devices, uploaded
from plait.devices.cuda_target import CudaTarget
from plait.dp.chain.gpu_enumerate import (
    BYTE_ENTRY,
    MOST,
    PACKED_ENTRY,
    STRINGS,
    THREADS,
    ByteLetters,
    DParts,
    PackedLetters,
    compare_bytes,
    compare_packed,
    find_wanted,
)
from plait.dp.chain.launches import EnumerationBatch
from plait.dp.chain.tables import ChainTables, Junctions
from plait.errors import InvalidInput, Unsupported

#: ``"2bit"`` packs what it can and refuses the rest; ``"auto"`` gives the rest one byte per symbol.
Layout = Literal["auto", "8bit", "2bit"]

_Numbers = NDArray[Any]

#: Code of each mask in 2 bits, and -1 where there is none: A=0, T=1, G=2, C=3.
_CODE = np.full(16, -1, np.int8)
_CODE[[1, 2, 8, 4]] = range(4)
#: Codes for every byte; `_NO_CODE` where there is none.
_NO_CODE = 4
_TRANSLATION = bytes(int(_CODE[mask]) if mask < 16 and _CODE[mask] >= 0 else _NO_CODE for mask in range(256))
#: The published record: 16 bytes, with numbers of ends of 5 bits and a length of 6.
_RECORD = (5, 6, 56)
#: The wider one: its words are as many as its longest text needs.
_WIDE_RECORD = (12, 16, 236)
_WINDOW = 240


class Group(NamedTuple):
    """Junctions that share a layout: `items` of the batch, int64 (n,), with `letters` in host memory."""

    items: NDArray[np.int64]
    letters: ByteLetters | PackedLetters
    d_parts: DParts


def arrange(tables: ChainTables, texts: Junctions, layout: Layout) -> list[Group]:
    """Put every text of a batch into one of at most three groups.

    Raises `InvalidInput` if there is no such layout, and `Unsupported` if two bits a symbol are asked for and
    some text, end or D gene holds ambiguity codes.
    """
    if layout not in ("auto", "8bit", "2bit"):
        raise InvalidInput("layout", found=repr(layout), expected="one of auto, 8bit, 2bit")
    parts = _d_masks(tables)
    d_parts = _d_parts(tables, parts)
    symbols = np.concatenate([*parts, np.zeros(1, np.uint8)])
    every = np.arange(texts.start.size)
    if layout == "8bit":
        return [Group(every, _bytes(tables, texts, symbols), d_parts)]
    # With enough behind the last text for a window as long as the longest.
    codes = np.frombuffer(texts.symbols.tobytes().translate(_TRANSLATION) + bytes(_WINDOW), np.uint8)
    fits = _fit(tables, texts, symbols, codes)
    short = fits & (texts.length <= _RECORD[2])
    if max(_numbered(ends[short])[0].size for ends in (texts.v, texts.j)) > 1 << _RECORD[0]:
        short[:] = False
    long = fits & ~short
    if layout == "2bit" and not fits.all():
        raise Unsupported(
            f"{int((~fits).sum())} texts in the 2-bit layout",
            why="2 bits hold A, C, G or T: ambiguity codes in a text or a gene need the 8-bit layout",
        )
    groups = [
        Group(every[chosen], _packed(tables, texts.take(every[chosen]), symbols, codes, record), d_parts)
        for chosen, record in ((short, _RECORD), (long, _WIDE_RECORD))
        if chosen.any()
    ]
    if not fits.all():
        rest = every[~fits]
        groups.append(Group(rest, _bytes(tables, texts.take(rest), symbols), d_parts))
    return groups


def _d_masks(tables: ChainTables) -> list[NDArray[np.uint8]]:
    """Masks of every D gene, read back from the words of the chain."""
    words, found = tables.words, []
    for f in range(words.length.size):
        places = np.arange(words.length[f]) + words.first[f]
        bits = [words.places[words.word[f], 1 << bit] >> places & 1 for bit in range(4)]
        found.append(sum(b << k for k, b in enumerate(bits)).astype(np.uint8))
    return found


def _d_parts(tables: ChainTables, parts: list[NDArray[np.uint8]]) -> DParts:
    """Distinct parts of every D gene, with their multiplicity; what matches nothing is left out."""
    empty = tables.d_weights[tables.empty_row, 0]
    return _distinct(tuple(masks.tobytes() for masks in parts), tuple(int(ways) for ways in empty))


@functools.lru_cache(maxsize=16)
def _distinct(parts: tuple[bytes, ...], empty: tuple[int, ...]) -> DParts:
    """Distinct parts of strings of masks; the empty part is had in `empty` ways."""
    first, rows, offset = [0], [], 0
    for masks, ways in zip(parts, empty, strict=True):
        seen = {b"": [0, offset, ways]} if ways else {}
        for size in range(1, len(masks) + 1):
            for start in range(len(masks) - size + 1):
                part = masks[start : start + size]
                if 0 not in part:
                    seen.setdefault(part, [size, offset + start, 0])[2] += 1
        rows += sorted(seen.values())
        first.append(len(rows))
        offset += len(masks)
    rows.append([0, 0, 1])
    table = np.array(rows, np.int32)
    bounds = np.array([*first, len(rows)], np.int32)
    return DParts(bounds, table[:, 1].copy(), table[:, 0].copy(), table[:, 2].copy())


def _bytes(tables: ChainTables, texts: Junctions, d_bases: NDArray[np.uint8]) -> ByteLetters:
    return ByteLetters(
        np.concatenate([texts.symbols, np.zeros(1, np.uint8)]),
        texts.start.astype(np.int64),
        texts.length.astype(np.int32),
        texts.v.astype(np.int32),
        texts.j.astype(np.int32),
        tables.v_bases,
        tables.v_length.astype(np.int32),
        tables.j_bases,
        tables.j_length.astype(np.int32),
        d_bases,
        _with_none(tables.allowed),
    )


def _with_none(allowed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A column for having no D, which any J end may follow."""
    return np.concatenate([allowed, np.ones((allowed.shape[0], 1), np.uint8)], axis=1)


def _fit(
    tables: ChainTables, texts: Junctions, d_bases: NDArray[np.uint8], codes: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Which texts, with their ends, are of A, C, G and T."""
    if (_CODE[d_bases[d_bases != 0]] < 0).any():
        return np.zeros(texts.start.size, np.bool_)
    fits: NDArray[np.bool_] = texts.length <= _WIDE_RECORD[2]
    coded = codes == _NO_CODE
    if coded.any():
        before = np.concatenate([[0], np.cumsum(coded)])
        fits &= before[texts.start + texts.length] == before[texts.start]
    for symbols, lengths, which in (
        (tables.v_bases, tables.v_length, texts.v),
        (tables.j_bases, tables.j_length, texts.j),
    ):
        whole = _whole(symbols, lengths)
        plain = [bool((_CODE[row[:n]] >= 0).all()) for row, n in zip(symbols, whole, strict=True)]
        fits &= np.array(plain, np.bool_)[which]
        if len(plain) > 1 << _WIDE_RECORD[0]:
            fits[:] = False
    return fits


def _whole(symbols: NDArray[np.uint8], lengths: _Numbers) -> NDArray[np.int32]:
    """Symbols of each end up to the first that matches nothing."""
    found = [int((np.append(row[:n], 0) == 0).argmax()) for row, n in zip(symbols, lengths, strict=True)]
    return np.array(found, np.int32)


def _packed(
    tables: ChainTables,
    texts: Junctions,
    d_bases: NDArray[np.uint8],
    codes: NDArray[np.uint8],
    record: tuple[int, int, int],
) -> PackedLetters:
    field_bits, length_bits, most = record
    (v, v_place), (j, j_place) = _numbered(texts.v), _numbered(texts.j)
    symbols = most if record is _RECORD else -(-int(texts.length.max()) // 8) * 8
    ends = v_place | j_place << field_bits | texts.length << 2 * field_bits
    records = _records(texts.start, codes, symbols, ends, 2 * field_bits + length_bits)
    width = max(tables.v_bases.shape[1], tables.j_bases.shape[1])
    return PackedLetters(
        _padded(records),
        records.shape[1],
        field_bits,
        length_bits,
        *_packed_ends(tables.v_bases[v], tables.v_length[v], width),
        *_packed_ends(tables.j_bases[j], tables.j_length[j], width),
        -(-width // 16),
        _padded(_pack(d_bases[None, :])),
        _with_none(tables.allowed[j]),
    )


def _numbered(ends: _Numbers) -> tuple[_Numbers, _Numbers]:
    """The ends that occur, and for each text the place of its own among them."""
    occurs = np.bincount(ends) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[ends]


def _records(
    start: _Numbers, codes: NDArray[np.uint8], symbols: int, header: _Numbers, header_bits: int
) -> NDArray[np.uint32]:
    """A row of words for each text: a whole number of bytes with its header, then four symbols in each byte.

    Behind a text is what follows it in memory, which nobody looks at. `symbols` is a multiple of 8.
    """
    head = header_bits // 8
    eights = sliding_window_view(codes, symbols)[start].view("<u8") & np.uint64(0x0303030303030303)
    # Two bits of every byte move together: into four bits, a byte, and two bytes.
    for shift, kept in ((6, 0x000F000F000F000F), (12, 0x000000FF000000FF), (24, 0xFFFF)):
        eights = (eights | eights >> np.uint64(shift)) & np.uint64(kept)
    body = eights.astype("<u2").view(np.uint8)
    made = np.zeros((start.size, -(-(head + body.shape[1]) // 4) * 4), np.uint8)
    made[:, :head] = header.astype("<u8")[:, None].view(np.uint8)[:, :head]
    made[:, head : head + body.shape[1]] = body
    return made.view("<u4").astype(np.uint32, copy=False)


def _packed_ends(symbols: NDArray[np.uint8], lengths: _Numbers, width: int) -> tuple[_Numbers, _Numbers]:
    rows = np.zeros((symbols.shape[0], width), np.uint8)
    rows[:, : symbols.shape[1]] = symbols
    return _padded(_pack(rows)), _whole(symbols, lengths)


def _pack(rows: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Rows of masks as rows of words, 16 symbols in each; what has no code is packed as 0."""
    words = np.zeros((rows.shape[0], -(-rows.shape[1] // 16)), np.uint32)
    for k in range(rows.shape[1]):
        words[:, k // 16] |= np.maximum(_CODE[rows[:, k]], 0).astype(np.uint32) << np.uint32(2 * (k % 16))
    return words


def _padded(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Words in one row, with two more, so that reading two at a time never leaves it."""
    return np.concatenate([words.ravel(), np.zeros(2, np.uint32)])


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
    d_parts: Any
    compare: CudaKernel
    entry: int


class _Chunk(NamedTuple):
    """Junctions `first` to `last` of a group; where their lists start, uint64 (levels, pairs + 1)."""

    group: _Loaded
    first: int
    last: int
    edges: NDArray[np.uint64]


class _Piece(NamedTuple):
    """Junctions `first` to `last` of a group, for one device."""

    group: int
    first: int
    last: int


class _Room(NamedTuple):
    """Device memory of a chunk; there are two, so that one is read while the other is worked on."""

    edges: Any
    counts: Any


def enumerate_batch(batch: EnumerationBatch, target: CudaTarget) -> NDArray[np.int64] | None:
    """Fill ``batch.out``; None if there are more insertions than this module serves."""
    if batch.most > MOST:
        return None
    run_enumeration(target.devices, *batch)
    return batch.out


def run_enumeration(
    devices: Sequence[int],
    tables: ChainTables,
    texts: Junctions,
    most: int,
    out: NDArray[np.int64],
    *,
    layout: Layout = "auto",
    share: tuple[int, int] = (0, 1),
    observe: Observe | None = None,
) -> None:
    """Count by comparing all N strings of up to `most` (at most 10) symbols, as `enumerate_item` does.

    Junctions are shared out over CUDA devices; `tables` has rows `PerInsertions`. `out` is int64
    (texts, D genes + 1, most + 1): per D gene, and in the last row without one. Layout ``"auto"`` packs
    the texts that two bits a symbol can hold. `share` ``(k, m)`` does only the k-th of m shares of the N
    strings; the results of all shares add up to the counts. `observe` is called after every launch, on the
    thread of its device, which then waits for each. Raises `InvalidInput` if there is no such layout or
    share, `Unsupported` if `most` is too large or the layout cannot hold the texts.
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
    step = max(1, _PAIRS // (groups[0].d_parts.first.size - 1))
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
        self._choices = groups[0].d_parts.first.size - 1
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
                uploaded(group.letters, self._aside),
                uploaded(group.d_parts, self._aside),
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
            blocks, THREADS, group.letters, group.d_parts, first, last, self._levels - 1, table, edges,
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


def _spread() -> NDArray[np.int32]:
    """One-hot bytes of every four symbols, see `word_of`."""
    strings = np.arange(256)
    bytes_of = [1 << (strings >> 2 * k & 3) << 8 * (3 - k) for k in range(4)]
    return np.asarray(sum(bytes_of), np.int32)
