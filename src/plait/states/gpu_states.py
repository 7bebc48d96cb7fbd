"""Hidden Markov models and graphs on GPUs: a sequence a thread, or a sequence of frames a block.

A module of its own: what CUDA runs, which is imported where a GPU is used.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import POOL
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import over_threads
from plait.lang.algebras import Probability, SaturatingMaxPlus
from plait.lang.compile import shared, types
from plait.lang.lanes import lanes_of
from plait.states.decoding import (
    Decoded,
    Reached,
    SequenceBatch,
    best_state,
    laid_out,
    sweep_frames,
    trace_states,
)
from plait.states.graphs import Graph, GraphBatch, Path

_ONE: Final = lanes_of(1)
#: Threads of a block: of sequences, and with a graph.
_THREADS, _BLOCK = 64, 512
#: Sequences of a launch, and bytes of what reaches their states.
_SEQUENCES, _BYTES = 1 << 16, 1 << 33


def _examples() -> list[tuple[Any, ...]]:
    codes, rows = np.zeros((1, 1), np.int32), np.zeros((1, 1))
    memory = rows[None], rows[None], rows, codes
    kinds = SaturatingMaxPlus(-math.inf, 0.0), Probability(0.0, 1.0)
    tables = laid_out(kinds[0], rows[0], rows, rows, alone=True)[1]
    return [(alg, tables, codes, np.zeros(1, np.int64), memory) for alg in kinds]


@cuda_kernel(_examples)
def sweep_each(alg: Any, model: Any, codes: Any, counts: Any, memory: Any) -> None:
    """Sweep sequences of frames `codes` int32 (sequences, frames), one a thread, perhaps for their paths.

    `memory`: values (2, sequences, states), what reaches states (frames, sequences, states) or one row,
    what probabilities were divided by (sequences, frames) or scores (sequences, 1), and paths.
    """
    own, (values, reached, scales, path) = cuda.grid(1), memory
    if own >= counts.size:
        return
    end, count = own + 1, counts[own]
    ways, block = Reached(reached[:, own:end]), (np.int64(0), count)
    given = codes[own:end], counts[own:end]
    sweep_frames(_ONE, alg, model, *given, block, values[:, own:end], ways, scales[own:end])
    if reached.shape[0] > 1:
        scores = scales[own]
        scores[0], path[own, count - 1] = best_state(values[count & 1, own])
        trace_states(_ONE, alg, model, *given, block, ways, path[own:end])


def _swept(batch: SequenceBatch, target: CudaTarget, traced: bool, take: Any) -> None:
    """Sweep groups of sequences: ``take(numbers, frames of each, scales or scores, paths)``."""
    _, tables = laid_out(batch.algebra, *batch.model, alone=True)
    states = tables.begin.shape[1]

    def one(own: list[int]) -> None:
        codes, counts = batch.codes(own)
        with POOL.slot(target.devices) as slot:
            values = slot.room("values", (2, len(own), states), np.float64)
            ways = slot.room("reached", (codes.shape[1] + 1 if traced else 1, len(own), states), np.float64)
            out = slot.room("scales", (len(own), 1) if traced else codes.shape, np.float64)
            memory = values, ways, out, slot.room("path", codes.shape if traced else (1, 1), np.int32)
            given, blocks = slot.upload("given", (tables, codes, counts)), -(-len(own) // _THREADS)
            sweep_each.launch(blocks, _THREADS, batch.algebra, *given, memory, stream=slot.stream)
            scales, path = slot.download("scales", memory[2]), slot.download("path", memory[3])
            slot.wait()
            take(own, counts, scales, path)

    over_threads(len(target.devices), batch.groups(_SEQUENCES, _BYTES // (8 * states)), one)


def decode_batch(batch: SequenceBatch, target: CudaTarget) -> list[Decoded]:
    """What the CPU finds."""
    found = [Decoded(0.0, np.empty(0, np.int32))] * len(batch.rows)

    def take(own: Any, counts: Any, scores: Any, path: Any) -> None:
        for lane, k in enumerate(own):
            found[k] = Decoded(float(scores[lane, 0]), path[lane, : counts[lane]].copy())

    _swept(batch, target, True, take)
    return found


def likelihood_batch(batch: SequenceBatch, target: CudaTarget) -> NDArray[np.float64]:
    """What the CPU finds, but for roundings."""
    logs = np.array(batch.logs, np.float64)
    _swept(batch, target, False, lambda own, counts, scales, _: batch.add_logs(logs, own, counts, scales))
    return logs


class _Into(NamedTuple):
    """Arcs of a graph by the state they enter, and in order of their numbers.

    Those into state s are from ``starts[s]`` to ``starts[s + 1]``, int64, of which `ends` int32 (arcs, 2) has
    state and label, and `weights` float64. States that arcs without label enter are `late` int32, those of
    level k from ``levels[k]`` to ``levels[k + 1]``: such arcs come from earlier levels alone. `final` float64
    (states,).
    """

    starts: Any
    ends: Any
    weights: Any
    late: Any
    levels: Any
    final: Any


def into_states(graph: Graph, order: NDArray[np.int64]) -> _Into:
    """The arcs of a graph in this order, that of the states they enter."""
    arcs, states = graph.arcs, graph.states
    empty, level = arcs[arcs[:, 2] == 0], np.zeros(states, np.int64)
    np.maximum.at(level, empty[:, 1], graph.ranks[empty[:, 0]] + 1)
    late = np.argsort(level, kind="stable")
    levels = np.searchsorted(level[late], np.arange(1, level.max(initial=0) + 2))
    ends = np.ascontiguousarray(arcs[order][:, [0, 2]], np.int32)
    starts = np.searchsorted(arcs[order, 1], np.arange(states + 1))
    return _Into(starts, ends, graph.weights[order], late.astype(np.int32), levels, graph.ends)


@shared
def _best_arc(arcs: Any, s: Any, before: Any, frame: Any, labelled: Any, best: Any, arc: Any) -> Any:
    """The best way into a state, of equal ones that by the first arc: as it was, or by one of these arcs."""
    for k in range(arcs.starts[s], arcs.starts[s + 1]):
        label = arcs.ends[k, 1]
        if (label > 0) == labelled:
            value = before[arcs.ends[k, 0]] + arcs.weights[k]
            if labelled:
                value += frame[label - 1]
            if value > best or (value == best and k < arc):
                best, arc = value, np.int32(k)
    return best, arc


@shared
def _largest_of_block(found: Any, own: Any) -> Any:
    """The largest of a number of each thread; `found` (1,) has room for it, and a barrier comes after."""
    if cuda.threadIdx.x == 0:
        found[0] = -math.inf
    cuda.syncthreads()
    cuda.atomic.max(found, 0, own)
    cuda.syncthreads()
    return found[0]


@shared
def _frame(arcs: Any, start: Any, frame: Any, t: Any, old: Any, new: Any, back: Any) -> Any:
    """Values of states after a frame, and the arcs that they come by; the largest of those of this thread."""
    thread, threads, most = cuda.threadIdx.x, cuda.blockDim.x, -math.inf
    for s in range(thread, new.size, threads):
        best, arc = -math.inf, np.int32(-1)
        if t > 0:
            best, arc = _best_arc(arcs, s, old, frame, True, best, arc)
        elif s == start:
            best = 0.0
        new[s], back[s] = best, arc
    for level in range(arcs.levels.size - 1):
        cuda.syncthreads()
        for k in range(arcs.levels[level] + thread, arcs.levels[level + 1], threads):
            s = arcs.late[k]
            new[s], back[s] = _best_arc(arcs, s, new, frame, False, new[s], back[s])
    cuda.syncthreads()
    for s in range(thread, new.size, threads):
        most = max(most, new[s])
    return most


@shared
def _trace(arcs: Any, s: Any, t: Any, back: Any, path: Any) -> Any:
    """Arcs of the path into a state, from the last one on, and their number."""
    count = 0
    while back[t, s] >= 0:
        arc = back[t, s]
        path[count] = arc
        count += 1
        s = arcs.ends[arc, 0]
        t -= 1 if arcs.ends[arc, 1] > 0 else 0
    return count


def _graph_examples() -> list[tuple[Any, ...]]:
    ints, longs, rows = np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros((1, 1), np.int32)
    arcs = _Into(longs, rows, np.zeros(1), ints, longs, np.zeros(1))
    memory = np.zeros((1, 2, 1)), np.zeros((1, 1, 1), np.int32)
    out = np.zeros(1), rows, longs
    return [(arcs, np.zeros((1, 1, 1)), longs, np.int64(0), 1.0, memory, out)]


@cuda_kernel(_graph_examples)
def sweep_graph(arcs: Any, frames: Any, counts: Any, start: Any, beam: Any, memory: Any, out: Any) -> None:
    """Best paths through a graph, a sequence of `frames` (sequences, frames, labels) a block.

    `memory`: values (sequences, 2, states), and by what arcs, int32 (sequences, frames + 1, states). `out`:
    scores (sequences,), arcs of paths from their ends on, int32 (sequences, room), and their numbers.
    """
    largest = cuda.shared.array(1, types.float64)
    first = cuda.shared.array(1, types.int32)
    block, thread, threads = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    count, values, back = counts[block], memory[0][block], memory[1][block]
    for t in range(count + 1):
        frame = frames[block, max(t - 1, 0)]
        new = values[1 - (t & 1)]
        most = _frame(arcs, start, frame, t, values[t & 1], new, back[t])
        if beam < math.inf:
            least = _largest_of_block(largest, most) - beam
            for s in range(thread, new.size, threads):
                if new[s] < least:
                    new[s] = -math.inf
        cuda.syncthreads()
    new, best, own = values[1 - (count & 1)], -math.inf, np.int32(-1)
    for s in range(thread, new.size, threads):
        if new[s] + arcs.final[s] > best:
            best, own = new[s] + arcs.final[s], np.int32(s)
    if thread == 0:
        first[0] = new.size
    whole = _largest_of_block(largest, best)
    if own >= 0 and best == whole:
        cuda.atomic.min(first, 0, own)
    cuda.syncthreads()
    if thread == 0:
        out[0][block] = whole
        out[2][block] = _trace(arcs, first[0], count, back, out[1][block]) if whole > -math.inf else 0


def graph_batch(batch: GraphBatch, target: CudaTarget) -> list[Path] | None:
    """What the CPU finds; None if no more than some of the states are to be kept."""
    graph, states = batch.graph, batch.graph.states
    if batch.most is not None:
        return None
    order = np.argsort(graph.arcs[:, 1], kind="stable")
    arcs = into_states(graph, order)
    longest = max([1, *map(len, batch.frames)])
    room = longest + (longest + 1) * arcs.levels.size
    each = 4 * ((longest + 1) * states + room) + 8 * (2 * states + longest * graph.labels)
    most = max(_BYTES // each, 1)

    def one(first: int) -> list[Path]:
        own = batch.frames[first : first + most]
        with POOL.slot(target.devices) as slot:
            frames = np.zeros((len(own), longest, max(graph.labels, 1)))
            for k, rows in enumerate(own):
                frames[k, : len(rows), : graph.labels] = rows[:, : graph.labels]
            counts = np.array([len(rows) for rows in own])
            values = slot.room("values", (len(own), 2, states), np.float64)
            memory = values, slot.room("back", (len(own), longest + 1, states), np.int32)
            paths = slot.room("path", (len(own), room), np.int32)
            out = slot.room("scores", len(own), np.float64), paths, slot.room("lengths", len(own), np.int64)
            given = *slot.upload("given", (arcs, frames, counts)), np.int64(graph.start), float(batch.beam)
            sweep_graph.launch(len(own), _BLOCK, *given, memory, out, stream=slot.stream)
            found = [slot.download(f"out {k}", array) for k, array in enumerate(out)]
            slot.wait()
            told = zip(*found, strict=True)
            return [graph.path(float(score), order[path[:length][::-1]]) for score, path, length in told]

    found = over_threads(len(target.devices), range(0, len(batch.frames), most), one)
    return [path for some in found for path in some]
