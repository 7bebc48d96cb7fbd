"""Weighted chains on GPUs: batches cut into pieces, copied, weighed and copied back, several at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import (
    POOL,
    Plan,
    Slot,
    device_facts,
    kept,
    over_devices,
    plan_for,
    uploaded,
)
from plait.devices.cuda_target import CudaTarget
from plait.dp.chain.gpu_tables import (
    own_symbols,
    warp_chain,
    warp_parts,
    warp_roots,
)
from plait.dp.chain.gpu_weigh import (
    ChainMemory,
    GraphMemory,
    PairMemory,
    Visits,
    weigh_graph,
    weigh_pair_graph,
)
from plait.dp.chain.gpu_weigh_plain import PathMemory, weigh_path
from plait.dp.chain.graphs import CodedJunctions, GraphParts
from plait.dp.chain.launches import WEIGHTS, WeighBatch, Weights
from plait.dp.chain.weigh import WeightedChain
from plait.lang.algebras import PROBABILITY
from plait.lang.compile import shared
from plait.lang.warps import WARP

#: Ends of a text that are noted; the CPU weighs texts with more: motifs of much that may be anything.
ENDS = 128
_WEIGHTS, _WORDS, _HALVES, _OCTETS = (np.dtype(kind) for kind in (np.float64, np.int32, np.int16, np.uint8))


class DeviceCodedJunctions(NamedTuple):
    """`plait.dp.chain.graphs.CodedJunctions` in fewer bytes, and the order in which they are taken.

    `codes` uint8 (total,), `start` and `length` int32 (n,), `v_first` and `j_first` int32 (n + 1,),
    `v_root` and `j_root` int32, numbers of tries. `order`, int32 (n,), puts texts of about one size
    together.
    """

    codes: Any
    start: Any
    length: Any
    v_first: Any
    v_root: Any
    j_first: Any
    j_root: Any
    order: Any


class PathRoom(NamedTuple):
    """Elements of each array of `plait.dp.chain.gpu_weigh_plain.PathMemory`, for one warp.

    `cells` (two arrays) and `steps` are of 64 bits, `symbols` bytes, a multiple of 8.
    """

    cells: Any
    steps: Any
    symbols: Any

    @property
    def bytes(self) -> int:
        """Bytes for a warp."""
        return int(8 * (2 * self.cells + self.steps) + self.symbols)


class ChainRoom(NamedTuple):
    """Elements of each array of a graph and of what is found on it, for one warp.

    `nodes` of the graph is a multiple of 8, `places`, one more than the graph has, of 4; `found`, nodes of a
    level of a trie, twice, is even. `before`, `after`, `entered` and `levels` are of 64 bits, as in
    `ChainMemory`; `entered` also as what is inserted in `PairMemory`. `trail` is of 16 bits, a multiple of 4,
    `noted` of 32: two `plait.dp.chain.gpu_weigh.Visits`.
    """

    nodes: Any
    places: Any
    found: Any
    before: Any
    after: Any
    entered: Any
    levels: Any
    trail: Any
    noted: Any

    @property
    def bytes(self) -> int:
        """Bytes for a warp."""
        weights = self.before + self.after + self.entered + self.levels
        halves = 5 * self.nodes + self.places + self.trail
        return int(8 * weights + 4 * (self.nodes + self.found + self.noted) + 2 * halves + self.nodes)


def path_room(group: int, longest: int) -> PathRoom:
    """Shared memory of a warp for plain texts of up to `longest` symbols, `group` contexts at a time."""
    cells = (1 + group) * (longest + 1)
    return PathRoom(np.int32(cells), np.int32(2 * (longest + 2)), np.int32(_up(longest, 8)))


def chain_room(group: int, widest: int, deepest: int, nodes: int, places: int) -> ChainRoom:
    """Shared memory of a warp for graphs of up to `nodes` and `places`, `group` contexts at a time.

    `widest` is the nodes of the widest level of a trie of ends, `deepest` the symbols of the longest word of
    a D gene.
    """
    rows = [nodes, group * nodes, (1 + group) * nodes, 2 * (1 + group) * nodes]
    return _room(widest, nodes, places, rows, (deepest + 1) * WARP)


def pair_room(widest: int, nodes: int, places: int) -> ChainRoom:
    """As `chain_room`, without D genes: what is inserted, and noted ends in the place of a trail."""
    return _room(widest, nodes, places, [0, 0, nodes * WARP, 0], 0, 2 * (2 * ENDS + 1))


def _room(widest: int, nodes: int, places: int, rows: list[int], trail: int, noted: int = 0) -> ChainRoom:
    sizes = [_up(nodes, 8), _up(places + 1, 4), 2 * widest, *rows, trail, noted]
    return ChainRoom(*map(np.int32, sizes))


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


@cuda_kernel(max_registers=64)
def weigh_paths(alg: Any, chain: Any, texts: Any, first: Any, last: Any, room: Any, out: Any) -> None:
    """Weigh plain texts, those from `first` to `last` in their order."""
    warps = cuda.blockDim.x // WARP
    warp = cuda.threadIdx.x // WARP
    weights = cuda.shared.array(0, _WEIGHTS)
    octets = cuda.shared.array(0, _OCTETS)
    place = warp * (2 * room.cells + room.steps)
    octet = 8 * warps * (2 * room.cells + room.steps) + warp * room.symbols
    memory = PathMemory(
        symbols=octets[octet : octet + room.symbols],
        entered=weights[place : place + room.cells],
        joined=weights[place + room.cells : place + 2 * room.cells],
        step=weights[place + 2 * room.cells : place + 2 * room.cells + room.steps],
    )
    for k in range(first + cuda.blockIdx.x * warps + warp, last, cuda.gridDim.x * warps):
        weigh_path(alg, chain, texts, texts.order[k], memory, out)


@shared
def graph_of(room: Any, warp: Any, each: Any, words: Any, halves: Any, octets: Any) -> Any:
    """The part of a warp's memory that holds a graph, and a trail and noted ends behind it.

    Weights of all warps come first, `each` for a warp, then words, halves and octets.
    """
    warps = cuda.blockDim.x // WARP
    own = 5 * room.nodes + room.places + room.trail
    integers = room.nodes + room.found + room.noted
    before = warps * (2 * each + integers)
    word = 2 * warps * each + warp * integers
    half = 2 * before + warp * own
    octet = 4 * before + 2 * warps * own + warp * room.nodes
    ahead = half + room.nodes
    begin = ahead + 4 * room.nodes
    graph = GraphMemory(
        symbol=octets[octet : octet + room.nodes],
        place=halves[half:ahead],
        behind=words[word : word + room.nodes],
        ahead=halves[ahead:begin],
        begin=halves[begin : begin + room.places],
        found=words[word + room.nodes : word + room.nodes + room.found],
    )
    trail = halves[begin + room.places : begin + room.places + room.trail]
    return graph, trail, words[word + room.nodes + room.found : word + integers]


@cuda_kernel(max_registers=64)
def weigh_graphs(
    alg: Any, chain: Any, parts: Any, texts: Any, first: Any, last: Any, room: Any, out: Any
) -> None:
    """Weigh texts of which not every symbol is known, those from `first` to `last` in their order."""
    warps = cuda.blockDim.x // WARP
    warp = cuda.threadIdx.x // WARP
    weights = cuda.shared.array(0, _WEIGHTS)
    words = cuda.shared.array(0, _WORDS)
    halves = cuda.shared.array(0, _HALVES)
    octets = cuda.shared.array(0, _OCTETS)
    each = room.before + room.after + room.entered + room.levels
    graph, trail, _ = graph_of(room, warp, each, words, halves, octets)
    after = warp * each + room.before
    entered = after + room.after
    levels = entered + room.entered
    memory = ChainMemory(
        before=weights[warp * each : after],
        after=weights[after:entered],
        entered=weights[entered:levels],
        levels=weights[levels : levels + room.levels],
        trail=trail,
    )
    for k in range(first + cuda.blockIdx.x * warps + warp, last, cuda.gridDim.x * warps):
        weigh_graph(alg, chain, parts, texts, texts.order[k], graph, memory, out)


@cuda_kernel(max_registers=64)
def weigh_pairs(
    alg: Any, chain: Any, parts: Any, texts: Any, first: Any, last: Any, room: Any, out: Any
) -> None:
    """Weigh texts without D genes, those from `first` to `last` in their order."""
    warps = cuda.blockDim.x // WARP
    warp = cuda.threadIdx.x // WARP
    weights = cuda.shared.array(0, _WEIGHTS)
    words = cuda.shared.array(0, _WORDS)
    halves = cuda.shared.array(0, _HALVES)
    octets = cuda.shared.array(0, _OCTETS)
    each = room.entered
    graph, _, noted = graph_of(room, warp, each, words, halves, octets)
    memory = PairMemory(
        inserted=weights[warp * each : (warp + 1) * each],
        v_ends=Visits(noted[: 2 * ENDS], noted[2 * ENDS : 2 * ENDS + 1], np.int32(ENDS)),
        j_ends=Visits(noted[2 * ENDS + 1 : 4 * ENDS + 1], noted[4 * ENDS + 1 :], np.int32(ENDS)),
    )
    for k in range(first + cuda.blockIdx.x * warps + warp, last, cuda.gridDim.x * warps):
        weigh_pair_graph(alg, chain, parts, texts, texts.order[k], graph, memory, out)


_Ints = NDArray[np.int64]

#: Threads per device, each with a piece: more of them wait for each other.
_THREADS: Final = 3
#: Most texts of a piece: enough to keep a device busy, few enough for several to be on their way.
_PIECE: Final = 1 << 18
#: Fewest texts worth a piece, and a thread, of their own.
_LEAST: Final = 1 << 14
#: Contexts that a warp takes at a time: few enough for texts of usual length to leave room for other warps.
_GROUP: Final = 4
#: Warps of a block, where so many have room.
_WARPS: Final = 4
#: Most blocks of a launch: enough for every device to have several waves of them.
_BLOCKS: Final = 1 << 14
#: Nodes up to which texts are of one size; the last is more than shared memory holds.
_SIZES: Final = np.array([64, 80, 96, 112, 128, 192, 256, 384, 512, 768, 1024, 2048, 1 << 15])


class WeightedLaunch:
    """A weighted chain on a device, ready for texts that are there; for the device that is current.

    The chain's weights are values of `algebra`, in float64.
    """

    def __init__(self, chain: WeightedChain, device: int, algebra: Any = PROBABILITY) -> None:
        self.tables: Any = uploaded(warp_chain(chain, _GROUP, algebra.zero))
        self._algebra = algebra
        self.pairs = not len(chain.d_root)
        self._shared = device_facts(device).shared_per_block

    def warps(self, parts: Any, nodes: int, places: int) -> tuple[Any, int]:
        """Shared memory of a warp, and how many warps a block has; 0 if none fits.

        `parts` is None for plain texts; `nodes` and `places` are those of the largest graph.
        """
        tables = self.tables
        room: Any
        if self.pairs:
            room = pair_room(int(tables.widest), nodes, places)
        elif parts is None:
            room = path_room(int(tables.group), places - 1)
        else:
            room = chain_room(int(tables.group), int(tables.widest), int(tables.d.deepest), nodes, places)
        return room, min(_WARPS, self._shared // room.bytes)

    def launch(self, parts: Any, texts: DeviceCodedJunctions, size: Size, out: Any, stream: Any = 0) -> None:
        """Weigh the texts of `size` on the device, into `out`, float64 (n,).

        `parts` are on the device, and None for plain texts of a chain with D genes.
        """
        room, warps = size.room, size.warps
        blocks = min(-(-(size.last - size.first) // warps), _BLOCKS)
        given: tuple[Any, ...] = (texts,) if parts is None else (parts, texts)
        kernel = weigh_pairs if self.pairs else weigh_paths if parts is None else weigh_graphs
        kernel.launch(
            blocks, warps * WARP, self._algebra, self.tables, *given, np.int32(size.first),
            np.int32(size.last), room, out, stream=stream, shared=warps * room.bytes,
        )  # fmt: skip


class Size(NamedTuple):
    """Junctions of about one size, `first` to `last` in their order.

    `room` is the shared memory of a warp, `warps` how many a block has.
    """

    first: int
    last: int
    room: Any
    warps: int


class Batch(NamedTuple):
    """A batch with what all its pieces share; codes are symbols where texts are plain.

    `parts` and `host_parts` are what codes stand for, for the lanes of a warp and on the host, `nodes`, int64
    (total + 1,), the nodes of all codes before each one; all None for plain texts. `v_tree` and
    `j_tree`, int32 (nodes,): numbers of tries, by their roots.
    """

    texts: CodedJunctions
    parts: Any
    host_parts: GraphParts | None
    nodes: _Ints | None
    v_tree: NDArray[np.int32]
    j_tree: NDArray[np.int32]


class Piece(NamedTuple):
    """A piece of a batch on a device: `sizes` are launched; `left`, int64, are texts that have no room."""

    texts: DeviceCodedJunctions
    sizes: list[Size]
    left: _Ints


def weigh_batch(batch: WeighBatch, target: CudaTarget) -> Weights:
    """Weights of a batch; the target's host weighs the texts that are left."""
    chain, parts, texts, plain, _ = batch
    out = np.zeros(texts.start.size)
    left = run_weighted(target.devices, chain, parts, texts, plain, out)
    used = frozenset({target.description} if left.size < out.size else ())
    if left.size:
        rest = target.host.launch(WEIGHTS, batch._replace(texts=texts.take(left)))
        out[left], used = rest.values, used | rest.devices
    return Weights(out, used)


def run_weighted(
    devices: Sequence[int],
    chain: WeightedChain,
    parts: GraphParts,
    texts: CodedJunctions,
    plain: bool,
    out: NDArray[np.float64],
    algebra: Any = PROBABILITY,
) -> _Ints:
    """Fill `out`, pieces of the batch in parallel on devices; returns the texts that are left to the caller.

    No text is empty; `plain` says that every code stands for a single symbol. The chain's weights are values
    of `algebra`; those of the texts that are left are NaN.
    """
    everything = np.arange(texts.start.size)
    batch = batch_of(chain, parts, texts, plain)
    if batch is None or not texts.start.size:
        return everything
    cut = _plan(devices, texts)

    def run(device: int, piece: tuple[int, int]) -> _Ints:
        launch = kept(device, chain, lambda: WeightedLaunch(chain, device, algebra), type(algebra), algebra)
        there = None
        if batch.host_parts is not None:
            there = kept(device, batch.host_parts, lambda: uploaded(batch.parts))
        with POOL.slot([device]) as slot:
            return _weigh(slot, launch, there, batch, out, *piece)

    return np.concatenate(over_devices(list(devices) * cut.slots, cut.pieces, run))


def batch_of(chain: WeightedChain, parts: GraphParts, texts: CodedJunctions, plain: bool) -> Batch | None:
    """A batch, with what pieces share; None if a GPU cannot read it."""
    trees = warp_roots(chain.v), warp_roots(chain.j)
    if plain and len(chain.d_root):
        symbols = texts.codes
        if not np.array_equal(parts.symbol[:4, 0], np.arange(4)):
            symbols = parts.symbol[:, 0][np.minimum(texts.codes, len(parts.symbol) - 1)]
        return Batch(texts._replace(codes=symbols), None, None, None, *trees)
    found = warp_parts(parts)
    if found is None:
        return None
    # What no text uses may be no code.
    own = np.zeros(256, np.int64)
    own[: parts.nodes.size] = parts.nodes
    nodes = np.concatenate([[0], np.cumsum(own[texts.codes])])
    return Batch(texts, found, parts, nodes, *trees)


def _plan(devices: Sequence[int], texts: CodedJunctions) -> Plan:
    """Pieces of a batch, several of which fit the memory of each device."""
    count = texts.start.size
    roots = texts.v_root.size + texts.j_root.size
    # Symbols may be shared, and texts between those of a piece: `own_symbols` keeps to twice the mean.
    each = 32 + -(-(2 * int(texts.length.sum()) + 8 * roots) // count)
    return plan_for(devices, count, each, _PIECE, _LEAST, _THREADS)


def _weigh(
    slot: Slot,
    launch: WeightedLaunch,
    parts: Any,
    batch: Batch,
    out: NDArray[np.float64],
    first: int,
    last: int,
) -> _Ints:
    """Weigh a piece, and wait for it; returns what is left of it."""
    piece = place(slot, launch, batch, first, last)
    if piece.sizes:
        found = slot.room("out", last - first, np.float64)
        for size in piece.sizes:
            launch.launch(parts, piece.texts, size, found, slot.stream)
        here = slot.download("out", found)
        slot.wait()
        out[first:last] = here
    out[first:last][piece.left] = np.nan
    return first + np.flatnonzero(np.isnan(out[first:last]))


def place(slot: Slot, launch: WeightedLaunch, batch: Batch, first: int, last: int) -> Piece:
    """Copy texts `first` to `last` of a batch to the current device."""
    texts = batch.texts
    start, length = texts.start[first:last], texts.length[first:last]
    nodes = 1 + (length if batch.nodes is None else batch.nodes[start + length] - batch.nodes[start])
    places = 1 + length * (1 if batch.parts is None else int(batch.parts.places))
    order, sizes, left = _sizes(launch, batch.parts, nodes, places)
    codes, start = own_symbols(texts.codes, start, length)
    lists = (
        *_list(texts.v_first, texts.v_root, batch.v_tree, first, last),
        *_list(texts.j_first, texts.j_root, batch.j_tree, first, last),
    )
    start, length, *rest = slot.upload_together("words", [start, length, *lists, order], np.int32)
    return Piece(DeviceCodedJunctions(slot.upload("codes", codes), start, length, *rest), sizes, left)


def _list(
    edges: _Ints, roots: NDArray[np.int32], trees: NDArray[np.int32], first: int, last: int
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Lists of some texts, with numbers of tries for their roots; at least one element."""
    begin, end = int(edges[first]), int(edges[last])
    found = trees[roots[begin:end]]
    return edges[first : last + 1] - begin, found if found.size else np.zeros(1, np.int32)


def _sizes(
    launch: WeightedLaunch, parts: Any, nodes: _Ints, places: _Ints
) -> tuple[NDArray[np.int32], list[Size], _Ints]:
    """Junctions in the order of their size, what is launched at a time, and the texts that have no room."""
    kinds = np.searchsorted(_SIZES, np.arange(int(nodes.max()) + 1)).astype(np.uint8)
    group = kinds[nodes]
    order = np.arange(nodes.size, dtype=np.int32)
    if (group != group[0]).any():
        order = np.argsort(group, kind="stable").astype(np.int32)
    edges = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=_SIZES.size + 1))])
    found: list[Size] = []
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if first == last:
            continue
        texts = order[first:last]
        room, warps = launch.warps(parts, int(nodes[texts].max()), int(places[texts].max()))
        # What is larger has no room either.
        if not warps:
            return order, found, np.sort(order[first:]).astype(np.int64)
        found.append(Size(first, last, room, warps))
    return order, found, np.zeros(0, np.int64)
