"""The kernels of weighted chains: a warp for every text."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait._jit import shared
from plait.algebras import PROBABILITY
from plait.lanes.warps import WARP
from plait.recurrences.insertion import Insertion
from plait.schedules.warp_weighted_chain import ChainMemory, weigh_graph
from plait.schedules.warp_weighted_graphs import GraphMemory, Visits
from plait.schedules.warp_weighted_pairs import PairMemory, weigh_pair_graph
from plait.schedules.warp_weighted_paths import PathMemory, weigh_path
from plait.schedules.warp_weighted_tables import LevelTrees, WarpChain, WarpParts, WordTrees
from plait.targets.cuda import cuda, cuda_kernel

__all__ = [
    "ChainRoom",
    "DeviceWeightedTexts",
    "PathRoom",
    "chain_room",
    "pair_room",
    "path_room",
    "weigh_graphs",
    "weigh_pairs",
    "weigh_paths",
]

#: Ends of a text that are noted; the CPU weighs texts with more: motifs of much that may be anything.
ENDS = 128
_WEIGHTS, _WORDS, _HALVES, _OCTETS = (np.dtype(kind) for kind in (np.float64, np.int32, np.int16, np.uint8))


class DeviceWeightedTexts(NamedTuple):
    """`plait.schedules.text_graphs.WeightedTexts` in fewer bytes, and the order in which they are taken.

    Attributes
    ----------
    codes
        uint8 (total,).
    start, length
        int32 (n,).
    prefix_first, suffix_first
        int32 (n + 1,).
    prefix_root, suffix_root
        int32: numbers of trees.
    order
        int32 (n,): texts of about one size stand together.
    """

    codes: Any
    start: Any
    length: Any
    prefix_first: Any
    prefix_root: Any
    suffix_first: Any
    suffix_root: Any
    order: Any


class PathRoom(NamedTuple):
    """Elements of each array of `plait.schedules.warp_weighted_paths.PathMemory`, for one warp.

    Attributes
    ----------
    cells, steps
        Of 64 bits; there are two arrays of `cells`.
    symbols
        Bytes, a multiple of 8.
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

    Attributes
    ----------
    nodes
        Of the graph: a multiple of 8.
    places
        Of the graph, and one more: a multiple of 4.
    found
        Nodes of a level of a tree, twice: even.
    before, after, entered, levels
        Of 64 bits: as in `ChainMemory`; ``entered`` also as what is inserted in `PairMemory`.
    trail
        Of 16 bits, a multiple of 4.
    noted
        Of 32 bits: two `plait.schedules.warp_weighted_graphs.Visits`.
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
    """Shared memory of a warp for plain texts.

    Parameters
    ----------
    group
        Contexts at a time.
    longest
        Symbols of the longest text.
    """
    cells = (1 + group) * (longest + 1)
    return PathRoom(np.int32(cells), np.int32(2 * (longest + 2)), np.int32(_up(longest, 8)))


def chain_room(group: int, widest: int, deepest: int, nodes: int, places: int) -> ChainRoom:
    """Shared memory of a warp for graphs.

    Parameters
    ----------
    group
        Contexts at a time.
    widest
        Nodes of the widest level of a tree of ends.
    deepest
        Symbols of the longest word of a fragment.
    nodes, places
        Of the largest graph.
    """
    rows = [nodes, group * nodes, (1 + group) * nodes, 2 * (1 + group) * nodes]
    return _room(widest, nodes, places, rows, (deepest + 1) * WARP)


def pair_room(widest: int, nodes: int, places: int) -> ChainRoom:
    """The same without fragments: what is inserted, and noted ends in the place of a trail.

    Parameters
    ----------
    widest, nodes, places
        As for `chain_room`.
    """
    return _room(widest, nodes, places, [0, 0, nodes * WARP, 0], 0, 2 * (2 * ENDS + 1))


def _room(widest: int, nodes: int, places: int, rows: list[int], trail: int, noted: int = 0) -> ChainRoom:
    sizes = [_up(nodes, 8), _up(places + 1, 4), 2 * widest, *rows, trail, noted]
    return ChainRoom(*map(np.int32, sizes))


def _up(number: int, step: int) -> int:
    return -(-number // step) * step


def _path_examples() -> list[tuple[Any, ...]]:
    return [(PROBABILITY, _chain(), _texts(), *_numbers(2), path_room(1, 8), np.zeros(1))]


def _graph_examples() -> list[tuple[Any, ...]]:
    room = chain_room(1, 1, 1, 8, 8)
    return [(PROBABILITY, _chain(), _parts(), _texts(), *_numbers(2), room, np.zeros(1))]


def _numbers(count: int) -> tuple[Any, ...]:
    return (np.int32(0),) * count


def _chain() -> WarpChain:
    words, weights, octets = np.zeros(1, np.int32), np.zeros(1), np.zeros(1, np.uint8)
    ends = LevelTrees(words, weights, octets, words, words, words, np.int32(1))
    fragment = WordTrees(words, weights, octets, words, words, words, np.int32(1))
    tables = (weights,) * 4
    return WarpChain(Insertion(np.int64(0)), ends, ends, fragment, *tables, *_numbers(4))


def _texts() -> DeviceWeightedTexts:
    words = np.zeros(1, np.int32)
    lists = (words,) * 4
    return DeviceWeightedTexts(np.zeros(1, np.uint8), words, words, *lists, words)


def _parts() -> WarpParts:
    words, octets = np.zeros(1, np.int32), np.zeros(1, np.uint8)
    tables = (words,) * 4
    return WarpParts(words, words, octets, octets, *tables, *_numbers(2))


@cuda_kernel(_path_examples, max_registers=64)
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


@cuda_kernel(_graph_examples, max_registers=64)
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


@cuda_kernel(_graph_examples, max_registers=64)
def weigh_pairs(
    alg: Any, chain: Any, parts: Any, texts: Any, first: Any, last: Any, room: Any, out: Any
) -> None:
    """Weigh texts without fragments, those from `first` to `last` in their order."""
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
        prefixes=Visits(noted[: 2 * ENDS], noted[2 * ENDS : 2 * ENDS + 1], np.int32(ENDS)),
        suffixes=Visits(noted[2 * ENDS + 1 : 4 * ENDS + 1], noted[4 * ENDS + 1 :], np.int32(ENDS)),
    )
    for k in range(first + cuda.blockIdx.x * warps + warp, last, cuda.gridDim.x * warps):
        weigh_pair_graph(alg, chain, parts, texts, texts.order[k], graph, memory, out)
