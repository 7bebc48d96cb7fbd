"""The kernel of path counts: a warp for every text."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait.algebras import COUNT
from plait.lanes.warps import WARP, lane_index
from plait.schedules.chain_rows import PerInsertions, PerModel
from plait.schedules.warp_chain import WarpMemory, chain_of_warp
from plait.schedules.warp_models import models_of
from plait.schedules.warp_tables import WarpTables
from plait.targets.cuda import cuda, cuda_kernel

__all__ = ["ChainRoom", "DeviceCounts", "DeviceTexts", "count_texts", "room_of"]

_WORDS, _HALVES, _OCTETS = np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.uint8)


class DeviceTexts(NamedTuple):
    """`plait.schedules.chain_tables.Texts` in fewer bytes.

    Attributes
    ----------
    symbols
        uint8 (total,).
    start
        int32 (n,).
    length, prefix, suffix
        uint16 (n,).
    """

    symbols: Any
    start: Any
    length: Any
    prefix: Any
    suffix: Any


class DeviceCounts(NamedTuple):
    """The arrays of `plait.schedules.chain_tables.ChainOutput` that a chain of one fragment has."""

    full: Any
    empty: Any
    none: Any
    regions: Any
    bound: Any


class ChainRoom(NamedTuple):
    """Elements of each array of `plait.schedules.warp_chain.WarpMemory`, for one warp.

    Attributes
    ----------
    places, rising
        Of 64 bits.
    window, corners
        Of 32 bits; there are two windows.
    masks, arms
        Bytes.
    """

    places: Any
    rising: Any
    window: Any
    corners: Any
    masks: Any
    arms: Any

    @property
    def bytes(self) -> int:
        """Bytes for a warp."""
        return int(
            8 * (self.places + self.rising) + 4 * (2 * self.window + self.corners) + self.masks + self.arms
        )


def room_of(levels: int, patterns: int, by_model: bool, longest: int) -> ChainRoom:
    """Shared memory of a warp for texts of up to `longest` symbols.

    Parameters
    ----------
    levels
        One more than the most insertions.
    patterns
        Patterns of models.
    by_model
        Whether a row is one value per model.
    longest
        Symbols of the longest text.
    """
    symbols = (longest + WARP) // WARP * WARP
    window = (levels + longest + 1) * patterns
    return ChainRoom(
        places=np.int32(symbols + 2 * WARP),
        rising=np.int32(0 if by_model else levels),
        window=np.int32(window if by_model else 0),
        corners=np.int32(0 if by_model else levels),
        masks=np.int32(symbols),
        arms=np.int32(symbols if by_model else 0),
    )


#: Numbers of dimensions and types of the arrays of `WarpTables`; None is the word of a fragment.
_ARRAYS: dict[str, tuple[int, Any]] = {
    **dict.fromkeys(("prefix_symbols", "suffix_symbols", "allowed"), (2, np.uint8)),
    **dict.fromkeys(("mirror", "unit"), (1, np.uint8)),
    **dict.fromkeys(("prefix_sums", "suffix_sums"), (3, np.int32)),
    **dict.fromkeys(("prefix_length", "suffix_length", "origin", "weight", "out_lane"), (1, np.int32)),
    **dict.fromkeys(("left_reach", "right_reach", "single_reach"), (1, np.int32)),
    **dict.fromkeys(("region_left", "region_right"), (1, np.int32)),
    **dict.fromkeys(("starts", "joined", "early"), (1, None)),
    **dict.fromkeys(("places", "alike"), (2, None)),
    "empty": (2, np.int64),
}


def _examples() -> list[tuple[Any, ...]]:
    """Both kinds of rows, with words of 32 and of 64 bits."""
    found = []
    numbers: dict[str, Any] = {name: np.int32(1) for name in WarpTables._fields if name not in _ARRAYS}
    numbers |= dict.fromkeys(("bound_ends", "bound_fragment"), np.float64(1))
    for word in (np.uint32, np.int64):
        arrays = {name: np.zeros((1,) * n, kind or word) for name, (n, kind) in _ARRAYS.items()}
        tables = WarpTables(**numbers, **arrays)
        texts = DeviceTexts(np.zeros(1, np.uint8), np.zeros(1, np.int32), *(np.zeros(1, np.uint16),) * 3)
        counts = np.zeros((1, 1, 1), np.int64)
        out = DeviceCounts(counts, counts, counts[0], counts[0], np.zeros(1))
        found += [
            (rows(np.int64(1)), COUNT, tables, texts, out, room_of(1, 1, True, 4), np.int32(64))
            for rows in (PerModel, PerInsertions)
        ]
    return found


@cuda_kernel(_examples, max_registers=64)
def count_texts(rows: Any, alg: Any, tables: Any, texts: Any, out: Any, room: Any, step: Any) -> None:
    """Count all texts; `step` models at a time."""
    warps = cuda.blockDim.x // WARP
    warp = cuda.threadIdx.x // WARP
    words = cuda.shared.array(0, _WORDS)
    halves = cuda.shared.array(0, _HALVES)
    octets = cuda.shared.array(0, _OCTETS)
    place = warp * (room.places + room.rising)
    half = 2 * warps * (room.places + room.rising) + warp * (2 * room.window + room.corners)
    octet = (
        warps * (8 * (room.places + room.rising) + 4 * (2 * room.window + room.corners))
        + warp * (room.masks + room.arms)
    )  # fmt: skip
    memory = WarpMemory(
        masks=octets[octet : octet + room.masks],
        arms=octets[octet + room.masks : octet + room.masks + room.arms],
        places=words[place : place + room.places],
        left=halves[half : half + room.window],
        right=halves[half + room.window : half + 2 * room.window],
        corners=halves[half + 2 * room.window : half + 2 * room.window + room.corners],
        rising=words[place + room.places : place + room.places + room.rising],
    )
    for model in range(0, tables.out_lane.size, step):
        models = models_of(tables, model, lane_index())
        for item in range(cuda.blockIdx.x * warps + warp, texts.start.size, cuda.gridDim.x * warps):
            chain_of_warp(rows, alg, tables, texts, item, models, memory, out)
