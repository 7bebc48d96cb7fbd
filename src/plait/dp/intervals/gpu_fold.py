"""Folding on GPUs: sequences laid out for the kernels of `plait.dp.intervals.gpu_spans`, and answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import SIMULATED, cuda
from plait.devices.cuda_devices import Slot, SlotPool, device_facts, kept, over_devices, uploaded
from plait.devices.cuda_target import CudaTarget
from plait.dp.intervals.gpu_spans import (
    ROWS,
    SpanCells,
    SpanDerivatives,
    Spans,
    derive_spans,
    fill_spans,
    walk_sequences,
)
from plait.dp.intervals.launches import LEAST, EnsembleBatch, FoldBatch, Folded, Summed
from plait.dp.intervals.rows import Filled, Intervals
from plait.dp.intervals.tables import strands_of
from plait.dp.intervals.walk import walk_kernel
from plait.lang.warps import WARP

R = TypeVar("R")

#: Bases from which a sequence is worked on by all blocks, if few are so long.
_LONG: Final = 400
_FEW: Final = 24
#: Warps of a block that has a sequence of its own, and of those that share one.
_WARPS, _LONG_WARPS = 4, 16
#: Blocks that have a sequence of their own, for each multiprocessor.
_BLOCKS: Final = 8
#: Bytes of the tables of sequences that are worked on together.
_PIECE_BYTES: Final = 1 << 32
#: One sequence at a time: blocks that wait for each other must all be under way.
_ALL_BLOCKS: Final = threading.Lock()
#: Memory of the host that tables are copied to.
_SLOTS: Final = SlotPool(Slot, 2)


class _Piece:
    """Sequences on the current device, with what is kept of their cells."""

    def __init__(self, batch: Any, numbers: list[int], device: int) -> None:
        self.batch, self.numbers, self.device = batch, numbers, device
        self.strands = [batch.strands[k] for k in numbers]
        sizes = np.array([strand.codes.size for strand in self.strands], np.int64)
        self.sizes, self.step = sizes, max(int(sizes.max()), 1)
        self.alone = len(numbers) == 1 and self.step > _LONG
        self.kind = type(batch.algebra.zero)
        size = (self.step + 1) * self.step
        closed, by_stem, multi = (self.table(size) for _ in range(3))
        listed = cuda.device_array((len(numbers), size if isinstance(batch, FoldBatch) else 1), np.int32)
        places = self.step - np.arange(self.step + 2, dtype=np.int64) * (self.step - 1)
        self.starts = places
        where = uploaded(places), np.int64(self.step)
        cells = self.cells = SpanCells(closed, by_stem, multi, listed, self.table(self.step + 1), *where)
        by_size = size if isinstance(batch, EnsembleBatch) and batch.probabilities else 1
        by = SpanDerivatives(self.table(by_size), self.table(by_size), self.table(self.step + 1))
        laid_out = strands_of(self.strands, len(numbers), batch.algebra.one, apart=True)
        laid_out = laid_out._replace(group=np.int64(1), longest=np.int64(laid_out.longest))
        facts = device_facts(device)
        # The simulator runs one block after the other.
        most = 1 if SIMULATED else facts.multiprocessors
        self.blocks = min(most, -(-self.step // WARP))
        if not self.alone:
            self.blocks = min(len(numbers), facts.multiprocessors * _BLOCKS)
        rows = cuda.device_array((1 if self.alone else self.blocks, ROWS, self.step), self.kind)
        weights = kept(device, batch.loops, lambda: uploaded(batch.loops))
        texts, lengths, counter = map(uploaded, (laid_out, sizes, np.zeros(1, np.int64)))
        known = batch.rule, batch.algebra, weights, texts, lengths
        self.given = Spans(*known, cells, by, rows, counter, np.int64(self.alone))

    def table(self, size: int) -> Any:
        """Something of each sequence, with anything in it."""
        return cuda.device_array((len(self.numbers), size), self.kind)

    def launch(self, kernel: Any) -> None:
        """A kernel with a block for each sequence, or with all of them for one."""
        if not self.alone:
            kernel.launch(self.blocks, WARP * _WARPS, self.given)
            return
        with _ALL_BLOCKS:
            given = self.given._replace(counter=uploaded(np.zeros(1, np.int64)))
            kernel.launch(self.blocks, WARP * _LONG_WARPS, given)
            cuda.synchronize()

    def totals(self) -> NDArray[Any]:
        """X[0] of every sequence."""
        found: NDArray[Any] = self.cells.exterior.copy_to_host()[:, 0]
        return found


def _in_pieces(batch: Any, target: CudaTarget, tables: int, run: Callable[[_Piece], list[R]]) -> list[R]:
    """Results of all sequences, in their order; each has so many tables of all cells."""
    sizes = [strand.codes.size for strand in batch.strands]
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    few = sum(size > _LONG for size in sizes) <= _FEW
    pieces: list[list[int]] = []
    for k in order:
        need = tables * batch.algebra.zero.itemsize * (sizes[k] + 1) ** 2
        alone = few and sizes[k] > _LONG
        if not pieces or alone or (len(pieces[-1]) + 1) * need > _PIECE_BYTES:
            pieces.append([])
        pieces[-1].append(k)

    def one(device: int, numbers: list[int]) -> list[R]:
        return run(_Piece(batch, numbers, device))

    found: dict[int, R] = {}
    for numbers, results in zip(pieces, over_devices(target.devices, pieces, one), strict=True):
        found.update(zip(numbers, results, strict=True))
    return [found[k] for k in range(len(sizes))]


def fold_batch(batch: FoldBatch, target: CudaTarget) -> list[Folded]:
    """Best structures; the way back of one long sequence is gone by the CPU."""
    alg = batch.algebra

    def run(piece: _Piece) -> list[Folded]:
        piece.launch(fill_spans)
        n, count = piece.step, len(piece.numbers)
        shares = np.full((1, 3 * n + 8), alg.one)
        if piece.alone:
            with _SLOTS.slot([piece.device]) as slot:
                cells = piece.cells
                closed, multi, exterior = (slot.download(f"folding {k}", cells[k]) for k in (0, 2, 4))
                slot.wait()
                whole = Intervals(closed, multi, exterior, piece.starts, n)
                partners, left = np.empty((1, n), np.int32), np.empty((3, n + 2), np.int64)
                strands = strands_of(piece.strands, 1, alg.one)
                filled = Filled(batch.rule, alg, batch.loops, strands, whole)
                walk_kernel(filled, piece.sizes, shares, left, partners)
                return [Folded(float(whole.exterior[0, 0]), partners[0])]
        found, left = cuda.device_array((count, n), np.int32), cuda.device_array((count, 3, n + 2), np.int32)
        walk_sequences.launch(-(-count // WARP), WARP, piece.given, uploaded(shares), left, found)
        walked = found.copy_to_host()
        scores = piece.totals().astype(np.float64).tolist()
        sizes = piece.sizes.tolist()
        return [Folded(scores[b], walked[b, : sizes[b]]) for b in range(count)]

    return _in_pieces(batch, target, 4, run)


def sum_batch(batch: EnsembleBatch, target: CudaTarget) -> list[Summed] | None:
    """Sums and probabilities; None leaves logarithms, and structures to be drawn, to the CPU."""
    if batch.logarithms or any(batch.shares):
        return None

    def run(piece: _Piece) -> list[Summed]:
        piece.launch(fill_spans)
        totals, n = piece.totals(), piece.step
        with np.errstate(divide="ignore"):
            logarithms = np.log(totals).tolist()
        if not batch.probabilities:
            return [Summed(logarithm, *_pairs_of(np.empty(0), 1.0, n), []) for logarithm in logarithms]
        piece.launch(derive_spans)
        with _SLOTS.slot([piece.device]) as slot:
            weights = slot.download("folding 0", piece.cells.closed)
            slot.wait()
            told = zip(logarithms, weights, totals, strict=True)
            return [Summed(logarithm, *_pairs_of(own, total, n), []) for logarithm, own, total in told]

    return _in_pieces(batch, target, 5, run)


def _pairs_of(
    weights: NDArray[np.float64], total: float, step: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Pairs by their first bases, and how probable they are, of weights by spans."""
    with np.errstate(all="ignore"):
        # What is no number, where sums do not fit, is kept to be noticed.
        cells = np.flatnonzero(~(weights <= LEAST * total))
        rows = cells // step
        first = (cells - rows * step).astype(np.uint16)
        # By first bases, whose short numbers NumPy sorts by their digits; they are in the order of spans.
        order = np.argsort(first, kind="stable")
        pairs = np.empty((cells.size, 2), np.int32)
        pairs[:, 0] = first[order]
        pairs[:, 1] = pairs[:, 0] + rows[order] - 1
        return pairs, weights[cells[order]] / total
