"""Similar pairs by q-grams on GPUs: a query a warp, eight targets a lane, two counts of 16 bits in a word.

A module of its own: what CUDA runs, which is imported where a GPU is used.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import POOL
from plait.devices.cuda_target import CudaTarget
from plait.devices.ptx import on_halves
from plait.devices.target import over_threads
from plait.lang.compile import shared
from plait.lang.warps import WARP
from plait.qgrams.similarity import COLUMNS, Above, Grams, SimilarBatch, ranges_of

#: Warps of a block, which look at the same targets, and blocks that fill a device.
_WARPS: Final = 8
_BLOCKS: Final = 1 << 13
#: Bytes of a table of counts, pairs that there is room for.
_TABLE, _ROOM = 1 << 32, 1 << 22


_least: Final = on_halves("min", "u")


@shared
def _put(sink: Any, query: Any, target: Any, size: Any, common: Any) -> None:
    """Take note of what a query and a target have in common, if it is enough."""
    if common >= sink.least[size] and (target > query or not sink.own):
        at = cuda.atomic.add(sink.number, 0, 1)
        if at < sink.pairs.shape[0]:
            pair = sink.pairs[at]
            pair[0], pair[1], pair[2], pair[3] = query, target, common, size - common


_LONG: Final[Any] = np.zeros(1, np.int64)
_INTS: Final[Any] = np.zeros(1, np.int32)
_PAIRS: Final[Any] = np.zeros((1, 4), np.int64)
_TEXTS: Final = Grams(_INTS, _INTS, _LONG, _INTS, _INTS)


@cuda_kernel(lambda: [(_TEXTS, np.zeros((1, 1), np.int32))])
def fill_table(targets: Any, table: Any) -> None:
    """Counts of q-grams, `table` int32 (vocabulary, words), of two targets a word: a thread has a word."""
    word = cuda.grid(1)
    if word < table.shape[1]:
        for row in range(table.shape[0]):
            table[row, word] = 0
        for side in range(2):
            k = 2 * word + side
            if k < targets.sizes.size:
                for y in range(targets.starts[k], targets.starts[k + 1]):
                    count = targets.counts[y] & 0xFFFF
                    table[targets.grams[y], word] |= (
                        np.int32(np.uint32(count) << np.uint32(16)) if side else count
                    )


@cuda_kernel(lambda: [(Above(_LONG, True, _PAIRS, _LONG), _TEXTS, _TEXTS, _INTS, np.int64(1), _PAIRS[:, :2])])
def compare_warps(sink: Any, queries: Any, targets: Any, table: Any, across: Any, ranges: Any) -> None:
    """Compare 256 targets with queries in their range, one a warp; rows of `table`, flat, are so long."""
    lane, block = cuda.threadIdx.x % WARP, cuda.blockIdx.x
    word, apart = np.uint64(block * (COLUMNS // 2) + lane), np.uint64(across)
    first = ranges[block, 0] + cuda.blockIdx.y * _WARPS + cuda.threadIdx.x // WARP
    for a in range(first, ranges[block, 1], _WARPS * cuda.gridDim.y):
        sum0 = sum1 = sum2 = sum3 = np.int32(0)
        for place in range(queries.starts[a], queries.starts[a + 1]):
            y = np.uint32(place)
            n, at = queries.counts[y], np.uint64(np.uint64(np.uint32(queries.grams[y])) * apart + word)
            sum0 = np.int32(sum0 + _least(n, table[at]))
            sum1 = np.int32(sum1 + _least(n, table[at + np.uint64(WARP)]))
            sum2 = np.int32(sum2 + _least(n, table[at + np.uint64(2 * WARP)]))
            sum3 = np.int32(sum3 + _least(n, table[at + np.uint64(3 * WARP)]))
        size, query = queries.sizes[a], queries.order[a]
        for k in range(8):
            both = (sum0, sum1, sum2, sum3)[k >> 1]
            column = 2 * (block * (COLUMNS // 2) + lane + WARP * (k >> 1)) + (k & 1)
            if column < targets.sizes.size:
                common = np.uint32(both) >> np.uint32(16 * (k & 1)) & np.uint32(0xFFFF)
                _put(sink, query, targets.order[column], size + targets.sizes[column], common)


def _on_device(slot: Any, name: str, texts: Grams, first: int, last: int) -> Any:
    """`Grams` of texts from `first` on: int32 but for `starts`, `counts` in both halves, and none empty."""
    begin, end = int(texts.starts[first]), int(texts.starts[last])
    counts = np.minimum(texts.counts[begin:end], 0xFFFF).astype(np.uint32) * np.uint32(0x10001)
    given = texts.grams[begin:end], counts.view(np.int32)
    grams, pairs = (np.append(one, 0).astype(np.int32) for one in given)
    sizes, order = (one[first:last].astype(np.int32) for one in (texts.sizes, texts.order))
    own: Any = grams, pairs, texts.starts[first : last + 1] - begin, sizes, order
    return slot.upload(name, Grams(*own))


def similar_batch(batch: SimilarBatch, target: CudaTarget) -> list[NDArray[np.int64]] | None:
    """Pairs that are similar enough, in any order; None of others, and for q-grams of too many kinds."""
    queries, targets, sink = batch.queries, batch.targets, batch.sink
    most = _TABLE // (2 * batch.vocabulary) // COLUMNS * COLUMNS
    if not isinstance(sink, Above) or not most:
        return None
    ranges = ranges_of(batch, 0, np.iinfo(np.uint16).max)

    def one(first: int) -> NDArray[np.int64]:
        last = min(first + most, targets.sizes.size)
        own = ranges[first // COLUMNS : -(-last // COLUMNS)]
        with POOL.slot(target.devices) as slot:
            asked = _on_device(slot, "queries", queries, 0, queries.sizes.size)
            held = _on_device(slot, "targets", targets, first, last)
            table = slot.room("table", (batch.vocabulary, len(own) * COLUMNS // 2), np.int32)
            fill_table.launch(-(-table.shape[1] // 128), 128, held, table, stream=slot.stream)
            blocks = len(own), min(-(-queries.sizes.size // _WARPS), -(-_BLOCKS // len(own)))
            flat, across = table.reshape(table.size), np.int64(table.shape[1])
            given = asked, held, flat, across, slot.upload("ranges", own)

            least, room = slot.upload("least", sink.least), _ROOM
            while True:
                pairs = slot.room("pairs", (room, 4), np.int64)
                number = slot.upload("number", np.zeros(1, np.int64))
                there = Above(least, sink.own, pairs, number)
                compare_warps.launch(blocks, _WARPS * WARP, there, *given, stream=slot.stream)
                count = slot.download("number", number)
                slot.wait()
                if count[0] <= room:
                    few: NDArray[np.int64] = pairs[: max(int(count[0]), 1)].copy_to_host(stream=slot.stream)
                    return few[: count[0]]
                room = int(count[0])

    return over_threads(len(target.devices), range(0, targets.sizes.size, most), one)
