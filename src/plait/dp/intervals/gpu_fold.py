"""Folding on GPUs: sequences laid out for the kernels of `plait.dp.intervals.gpu_spans`, and answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import chain, cycle, pairwise
from operator import itemgetter
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import SIMULATED, cuda
from plait.devices.cuda_devices import Slot, SlotPool, device_facts, kept, over_devices, uploaded
from plait.devices.cuda_target import CudaTarget
from plait.dp.intervals import gpu_spans
from plait.dp.intervals.launches import LEAST, Best, EnsembleBatch, FoldBatch, Summed, strands_of
from plait.dp.intervals.rows import Intervals, Walk
from plait.dp.intervals.walk import walk_kernel
from plait.lang.warps import WARP

R = TypeVar("R")

#: Bases from which a sequence is worked on by all blocks, if few are so long.
_LONG: Final = 400
_FEW: Final = 24
#: Warps of a block that has a sequence of its own, and of those that share one.
_WARPS, _LONG_WARPS = 4, 16
#: Blocks that have a sequence of their own, for each multiprocessor: all of them can be under way, so that
#: ways back of the piece before need not wait until others have begun.
_BLOCKS: Final = 6
#: Bytes of the tables of sequences that are worked on together, and the share of a device's memory at most.
_PIECE_BYTES, _SHARE = 1 << 32, 16
#: One sequence at a time: blocks that wait for each other must all be under way.
_ALL_BLOCKS: Final = threading.Lock()
#: While one piece is worked out, the next one is laid out, and then the last one taken apart. By one thread:
#: two would wait for Python's lock at each of a hundred calls of the driver.
_SLOTS: Final = SlotPool(lambda: (Slot(), Slot()), 2)


class _Piece:
    """Sequences on the current device, with what is kept of their cells."""

    def __init__(
        self, batch: Any, sizes: NDArray[np.int64], numbers: NDArray[np.int64], device: int, slot: Slot
    ) -> None:
        self.slot, self.sizes = slot, sizes[numbers]
        self.strands = [batch.strands[k] for k in numbers.tolist()]
        count, step = len(numbers), max(int(self.sizes.max()), 1)
        self.step, self.alone = step, count == 1 and step > _LONG
        self.kind = type(batch.algebra.zero)
        best = isinstance(batch, FoldBatch)
        size = (step + 1) * step
        closed, by_stem, multi = (self.table(name, (count, size)) for name in ("C", "s", "M"))
        listed = self.table("listed", (count, size if best else 1), np.int32)
        self.starts = step - np.arange(step + 2, dtype=np.int64) * (step - 1)
        exterior = self.table("X", (count, step + 1))
        places = slot.upload("places", self.starts)
        tables = closed, by_stem, multi, listed, exterior, places
        cells = self.cells = gpu_spans.SpanCells(*tables, np.int64(step))
        by_size = size if not best and batch.probabilities else 1
        by = [self.table(f"by {k}", (count, size)) for k, size in enumerate((by_size, by_size, step + 1))]
        known = strands_of(self.strands, count, batch.algebra.one, apart=True)
        # An array of nothing has an element that nobody reads.
        arrays = {
            name: slot.upload(name, one if one.size else np.zeros((len(one), 1), one.dtype))
            for name, one in zip(known._fields[:4], known, strict=False)
        }
        texts = known._replace(**arrays, group=np.int64(1), longest=np.int64(known.longest))
        facts = device_facts(device)
        self.warps = _LONG_WARPS if self.alone else _WARPS
        # The simulator runs one block after the other. One block has no cells of long spans, but their ends.
        self.blocks = min(1 if SIMULATED else facts.multiprocessors, -(-step // WARP) + 1)
        if not self.alone:
            self.blocks = min(count, facts.multiprocessors * _BLOCKS)
        memory = self.table("rows", (1 if self.alone else self.blocks, gpu_spans.ROWS * step))
        weights = kept(device, batch.loops, lambda: uploaded(batch.loops))
        lengths, counter = slot.upload("lengths", self.sizes), slot.upload("counter", np.zeros(1, np.int64))
        of_all = batch.rule, batch.algebra, weights, texts, lengths, cells
        where = gpu_spans.SpanDerivatives(*by), memory, counter, np.int64(self.alone)
        self.given = gpu_spans.Spans(*of_all, *where)

    def table(self, name: str, shape: tuple[int, int], kind: Any = None) -> Any:
        """An array with anything in it, of a long sequence for this time only."""
        if self.alone:
            return cuda.device_array(shape, kind or self.kind)
        return self.slot.room(name, shape, kind or self.kind)

    def launch(self, kernel: Any) -> None:
        """A kernel with a block for each sequence, or with all of them for one."""
        stream = self.slot.stream
        if not self.alone:
            kernel.launch(self.blocks, WARP * self.warps, self.given, stream=stream)
            return
        with _ALL_BLOCKS:
            self.given.counter.copy_to_device(np.zeros(1, np.int64), stream=stream)
            kernel.launch(self.blocks, WARP * self.warps, self.given, stream=stream)
            self.slot.wait()

    def download(self, *arrays: Any) -> list[NDArray[Any]]:
        """What is in some arrays when all is done; the next piece is written over it."""
        found = [self.slot.download(f"{k} {array.dtype}", array) for k, array in enumerate(arrays)]
        self.slot.wait()
        return found


def _in_pieces(
    batch: Any, target: CudaTarget, tables: int, run: Callable[[_Piece], Iterator[list[R]]]
) -> list[R]:
    """Results of all sequences, in their order; each has so many tables of all cells.

    `run` gives an empty list when a piece is under way, and then the results.
    """
    sizes = np.fromiter(map(len, map(itemgetter(0), batch.strands)), np.int64, len(batch.strands))
    order = np.argsort(sizes, kind="stable")
    needs = tables * batch.algebra.zero.itemsize * (sizes[order] + 1) ** 2
    few, pieces, first = np.count_nonzero(sizes > _LONG) <= _FEW, [], 0
    facts = device_facts(target.devices[0])
    blocks, most = facts.multiprocessors * _BLOCKS, min(_PIECE_BYTES, facts.memory // _SHARE)
    while first < sizes.size:
        # The last one of a piece needs most, and all of them are given as much.
        left = sizes.size - first
        less, many = np.searchsorted(needs[first:] * np.arange(1, left + 1), (most >> 2, most), "right")
        # Nothing goes on while the first one is laid out, and while the last one is taken apart.
        end = first + max(1, min(many, left - less if left > 2 * less else left) if first else less)
        # No block has a sequence more than others.
        end -= (end - first) % blocks if blocks < end - first < left else 0
        if few:
            edge = int(np.searchsorted(sizes[order], _LONG, "right"))
            end = first + 1 if first >= edge else min(end, edge)
        pieces.append(order[first:end])
        first = end

    def serve(device: int, mine: list[NDArray[np.int64]]) -> list[R]:
        found: list[R] = []
        under_way: list[Iterator[list[R]]] = []
        with _SLOTS.slot([device]) as slots:
            for numbers, slot in zip(mine, cycle(slots), strict=False):
                under_way.append(run(_Piece(batch, sizes, numbers, device, slot)))
                next(under_way[-1])
                if len(under_way) > 1:
                    found += next(under_way.pop(0))
            return found + next(under_way.pop())

    shares = [pieces[k :: len(target.devices)] for k in range(min(len(target.devices), len(pieces)))]
    found = list(chain.from_iterable(over_devices(target.devices, shares, serve)))
    done = np.concatenate([np.empty(0, np.int64), *chain.from_iterable(shares)])
    return found if (done[1:] > done[:-1]).all() else [found[k] for k in np.argsort(done).tolist()]


def fold_batch(batch: FoldBatch, target: CudaTarget) -> list[Best]:
    """Best structures; the way back of one long sequence is gone by the CPU."""
    alg = batch.algebra

    def run(piece: _Piece) -> Iterator[list[Best]]:
        piece.launch(gpu_spans.fill_spans)
        n, count, cells = piece.step, len(piece.sizes), piece.cells
        shares = np.full((1, 3 * n + 8), alg.one)
        if piece.alone:
            yield []
            closed, multi, exterior = piece.download(cells.closed, cells.multi, cells.exterior)
            whole = Intervals(closed, multi, exterior, piece.starts, n)
            signs, left = np.empty((1, n), np.uint8), np.empty((3, n + 2), np.int64)
            strands = strands_of(piece.strands, 1, alg.one)
            filled = Walk(batch.rule, alg, batch.loops, strands, whole)
            walk_kernel(filled, piece.sizes, shares, left, signs)
            yield [(float(exterior[0, 0]), signs.tobytes().decode())]
            return
        walked = piece.table("walked", (count, n), np.uint8)
        left = piece.slot.room("left", (count, 3, n + 2), np.int32)
        given = piece.given, piece.slot.upload("shares", shares), left, walked
        gpu_spans.walk_sequences.launch(-(-count // WARP), WARP, *given, stream=piece.slot.stream)
        yield []
        exterior, signs = piece.download(cells.exterior, walked)
        # Behind a sequence that is shorter than others there may be anything.
        text, first = signs.tobytes().decode("latin-1"), range(0, count * n, n)
        found = zip(exterior[:, 0].tolist(), first, piece.sizes.tolist(), strict=True)
        yield [(score, text[at : at + size]) for score, at, size in found]

    return _in_pieces(batch, target, 4, run)


def sum_batch(batch: EnsembleBatch, target: CudaTarget) -> list[Summed] | None:
    """Sums and probabilities; None leaves logarithms, and structures to be drawn, to the CPU."""
    if batch.logarithms or any(batch.shares):
        return None

    def run(piece: _Piece) -> Iterator[list[Summed]]:
        piece.launch(gpu_spans.fill_spans)
        if batch.probabilities:
            piece.launch(gpu_spans.derive_spans)
        yield []
        tables = _pairs_of(piece, batch.probabilities)
        (exterior,) = piece.download(piece.cells.exterior)
        with np.errstate(divide="ignore"):
            logarithms = np.log(exterior[:, 0]).tolist()
        yield [Summed(logarithm, *table, []) for logarithm, table in zip(logarithms, tables, strict=True)]

    return _in_pieces(batch, target, 5, run)


def _pairs_of(piece: _Piece, wanted: bool) -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
    """Pairs of each sequence by their first bases, and how probable they are."""
    if not wanted:
        return [(np.empty((0, 2), np.int32), np.empty(0))] * len(piece.sizes)
    slot, parts = piece.slot, -(-piece.step // gpu_spans.LISTED)
    ends = slot.room("ends", (len(piece.sizes), piece.step, parts), np.int32)

    def list_them(count: int, counting: bool) -> tuple[Any, Any]:
        pairs, shares = slot.room("pairs", (count, 2), np.int32), slot.room("shares", count, np.float64)
        known = piece.given, LEAST, counting, ends, pairs, shares
        gpu_spans.list_pairs.launch(-(-ends.size // 256), 256, *known, stream=slot.stream)
        return pairs, shares

    list_them(1, True)
    (counts,) = piece.download(ends)
    edges = np.cumsum(counts, dtype=np.int32).reshape(counts.shape)
    ends.copy_to_device(edges - counts, stream=slot.stream)
    found = piece.download(*list_them(max(int(edges[-1, -1, -1]), 1), False))
    pairs, shares = (one.copy() for one in found)
    return [(pairs[a:b], shares[a:b]) for a, b in pairwise([0, *edges[:, -1, -1].tolist()])]
