"""Weighted chains on GPUs: batches of texts cut into pieces, copied, weighed, copied back, several at a time.

Pieces have slots and threads as those of path counts have (`plait.targets.cuda_chain`). In a piece texts are
taken in the order of their size, and those of about one size are a launch of their own: shared memory decides
how many warps a multiprocessor holds. Texts whose graph leaves shared memory, and those of a chain without
fragments that have more ends than are noted, are left to the caller.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.algebras import PROBABILITY
from plait.lanes.warps import WARP
from plait.schedules.text_graphs import GraphParts, WeightedTexts
from plait.schedules.warp_weighted_tables import warp_chain, warp_parts, warp_roots
from plait.schedules.weighted_chain import WeightedChain
from plait.targets.cuda import SIMULATED, cuda
from plait.targets.cuda_devices import device_facts, least_free_memory, over_devices
from plait.targets.cuda_memory import Slot
from plait.targets.cuda_pieces import own_symbols, slot_of
from plait.targets.cuda_plan import Plan, plan
from plait.targets.cuda_weighted_kernels import (
    DeviceWeightedTexts,
    chain_room,
    pair_room,
    path_room,
    weigh_graphs,
    weigh_pairs,
    weigh_paths,
)

__all__ = ["Batch", "Piece", "Size", "WeightedLaunch", "batch_of", "place", "run_weighted"]

T = TypeVar("T")
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
#: Tables kept on devices.
_TABLES: Final = 16


class WeightedLaunch:
    """A weighted chain on a device, ready for texts that are there; for the device that is current.

    Parameters
    ----------
    chain
        What texts are made of.
    device
        Number of the device.
    algebra
        Of which the chain's weights are values, in float64.
    """

    def __init__(self, chain: WeightedChain, device: int, algebra: Any = PROBABILITY) -> None:
        self.tables: Any = _uploaded(warp_chain(chain, _GROUP, algebra.zero))
        self._algebra = algebra
        self.pairs = not len(chain.fragment_root)
        self._shared = device_facts(device).shared_per_block

    def warps(self, parts: Any, nodes: int, places: int) -> tuple[Any, int]:
        """Shared memory of a warp, and how many warps a block has; 0 if none fits.

        Parameters
        ----------
        parts
            `plait.schedules.warp_weighted_tables.WarpParts`; None for plain texts.
        nodes, places
            Of the largest graph.
        """
        tables = self.tables
        room: Any
        if self.pairs:
            room = pair_room(int(tables.widest), nodes, places)
        elif parts is None:
            room = path_room(int(tables.group), places - 1)
        else:
            room = chain_room(
                int(tables.group), int(tables.widest), int(tables.fragment.deepest), nodes, places
            )
        return room, min(_WARPS, self._shared // room.bytes)

    def launch(self, parts: Any, texts: DeviceWeightedTexts, size: Size, out: Any, stream: Any = 0) -> None:
        """Weigh texts of the device.

        Parameters
        ----------
        parts
            What codes stand for, on the device; None for plain texts of a chain with fragments.
        texts
            The texts.
        size
            Which of them, in their order.
        out
            float64 (n,).
        stream
            In which stream.
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
    """Texts of about one size.

    Attributes
    ----------
    first, last
        Which of them, in their order.
    room
        Shared memory of a warp.
    warps
        Of a block.
    """

    first: int
    last: int
    room: Any
    warps: int


class Batch(NamedTuple):
    """A batch with what all its pieces share.

    Attributes
    ----------
    texts
        Codes are symbols where they are plain.
    parts, host_parts
        What codes stand for, for the lanes of a warp and on the host; None for plain texts.
    nodes
        int64 (total + 1,): nodes of all codes before each one; None for plain texts.
    prefix_tree, suffix_tree
        int32 (nodes,): numbers of trees, by their roots.
    """

    texts: WeightedTexts
    parts: Any
    host_parts: GraphParts | None
    nodes: _Ints | None
    prefix_tree: NDArray[np.int32]
    suffix_tree: NDArray[np.int32]


class Piece(NamedTuple):
    """A piece of a batch on a device.

    Attributes
    ----------
    texts
        The texts.
    sizes
        What is launched.
    left
        int64: those that have no room.
    """

    texts: DeviceWeightedTexts
    sizes: list[Size]
    left: _Ints


def run_weighted(
    devices: Sequence[int],
    chain: WeightedChain,
    parts: GraphParts,
    texts: WeightedTexts,
    plain: bool,
    out: NDArray[np.float64],
    algebra: Any = PROBABILITY,
) -> _Ints:
    """Fill `out`, pieces of the batch in parallel on devices; returns the texts that are left to the caller.

    Parameters
    ----------
    devices
        Numbers of devices.
    chain
        What texts are made of.
    parts
        What codes stand for.
    texts
        The batch; no text is empty.
    plain
        Whether every code stands for a single symbol.
    out
        Weights; NaN for those that are left.
    algebra
        Of which the chain's weights are values.
    """
    everything = np.arange(texts.start.size)
    batch = batch_of(chain, parts, texts, plain)
    if batch is None or not texts.start.size:
        return everything
    cut = _plan(devices, texts)

    def run(device: int, piece: tuple[int, int]) -> _Ints:
        launch = _kept(device, chain, lambda: WeightedLaunch(chain, device, algebra), type(algebra), algebra)
        there = None
        if batch.host_parts is not None:
            there = _kept(device, batch.host_parts, lambda: _uploaded(batch.parts))
        with slot_of(device) as slot:
            return _weigh(slot, launch, there, batch, out, *piece)

    return np.concatenate(over_devices(list(devices) * cut.slots, cut.batches, run))


def batch_of(chain: WeightedChain, parts: GraphParts, texts: WeightedTexts, plain: bool) -> Batch | None:
    """A batch, with what pieces share; None if a GPU cannot read it.

    Parameters
    ----------
    chain, parts, texts, plain
        As for `run_weighted`.
    """
    trees = warp_roots(chain.prefix), warp_roots(chain.suffix)
    if plain and len(chain.fragment_root):
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


def _plan(devices: Sequence[int], texts: WeightedTexts) -> Plan:
    """Pieces of a batch, several of which fit the memory of each device."""
    count = texts.start.size
    roots = texts.prefix_root.size + texts.suffix_root.size
    # Symbols may be shared, and texts between those of a piece: `own_symbols` keeps to twice the mean.
    each = 32 + -(-(2 * int(texts.length.sum()) + 8 * roots) // count)
    free, tightest = least_free_memory(devices, tidy=False)
    return plan(
        count, each, free_bytes=free, most_items=_PIECE, least_items=_LEAST,
        slots=1 if SIMULATED else _THREADS, device=f"cuda:{tightest}",
    )  # fmt: skip


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
    """Copy a piece of a batch to the current device.

    Parameters
    ----------
    slot
        Where it goes.
    launch
        The chain there.
    batch
        The batch.
    first, last
        Which of its texts.
    """
    texts = batch.texts
    start, length = texts.start[first:last], texts.length[first:last]
    nodes = 1 + (length if batch.nodes is None else batch.nodes[start + length] - batch.nodes[start])
    places = 1 + length * (1 if batch.parts is None else int(batch.parts.places))
    order, sizes, left = _sizes(launch, batch.parts, nodes, places)
    codes, start = own_symbols(texts.codes, start, length)
    lists = (
        *_list(texts.prefix_first, texts.prefix_root, batch.prefix_tree, first, last),
        *_list(texts.suffix_first, texts.suffix_root, batch.suffix_tree, first, last),
    )
    start, length, *rest = slot.upload_together("words", [start, length, *lists, order], np.int32)
    return Piece(DeviceWeightedTexts(slot.upload("codes", codes), start, length, *rest), sizes, left)


def _list(
    edges: _Ints, roots: NDArray[np.int32], trees: NDArray[np.int32], first: int, last: int
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Lists of some texts, with numbers of trees for their roots; at least one element."""
    begin, end = int(edges[first]), int(edges[last])
    found = trees[roots[begin:end]]
    return edges[first : last + 1] - begin, found if found.size else np.zeros(1, np.int32)


def _sizes(
    launch: WeightedLaunch, parts: Any, nodes: _Ints, places: _Ints
) -> tuple[NDArray[np.int32], list[Size], _Ints]:
    """Texts in the order of their size, what is launched at a time, and the texts that have no room."""
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


def _uploaded(value: Any) -> Any:
    """Tables on the device, also within tuples; empty ones get an element that nobody reads."""
    if isinstance(value, tuple):
        return type(value)(*map(_uploaded, value))
    if not isinstance(value, np.ndarray):
        return value
    return cuda.to_device(np.ascontiguousarray(value) if value.size else np.zeros(1, value.dtype))


class _Kept:
    """Tables on devices, which later batches use again, with what they are made from."""

    lock = threading.Lock()
    tables: OrderedDict[tuple[Any, ...], tuple[Any, Any]] = OrderedDict()  # noqa: RUF012  # one for the process


def _kept(device: int, source: Any, make: Callable[[], T], *how: Any) -> T:
    """What is made from a source for a device, in a way; the last few are kept."""
    key = (device, id(source), *how)
    with _Kept.lock:
        known = _Kept.tables.get(key)
        if known is None:
            known = _Kept.tables[key] = source, make()
            while len(_Kept.tables) > _TABLES:
                _Kept.tables.popitem(last=False)
        # Tables of texts come and go, while those of the model stay.
        _Kept.tables.move_to_end(key)
        found: T = known[1]
        return found
