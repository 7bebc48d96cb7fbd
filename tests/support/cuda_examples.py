"""Arguments of all types that kernels are launched with, to compile them without a device.

Values are NumPy's, of which only the types matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plait.devices.cuda import CudaKernel
from plait.dp.chain import gpu_count_launch, gpu_enumerate, gpu_weigh_launch
from plait.dp.chain.gpu_count_launch import DeviceCounts, DeviceJunctions
from plait.dp.chain.gpu_enumerate import BYTE_ENTRY, MOST, PACKED_ENTRY, ByteLetters, DParts, PackedLetters
from plait.dp.chain.gpu_tables import LevelTrees, WarpChain, WarpParts, WarpTables, WordTrees
from plait.dp.chain.gpu_weigh_launch import DeviceCodedJunctions
from plait.dp.chain.insertions import Insertion
from plait.dp.chain.rows import PerInsertions, PerModel
from plait.dp.pairs import gpu_packed, gpu_search, gpu_stripes, gpu_wide
from plait.dp.pairs.gaps import AffineGap, LinearGap
from plait.lang.algebras import COUNT, PROBABILITY, MaxPlus, SaturatingMaxPlus
from plait.lang.packed import IntegerStep
from plait.lang.warps import WARP

Arguments = list[tuple[Any, ...]]

#: Kernels of some of the sizes for which they are made.
_PACKED = [gpu_packed.search_kernel(*sizes) for sizes in ((8, 44), (16, 24), (32, 8))]
_STRIPED = gpu_packed.striped_kernel(8, 40)

_NUMBER, _WORD, _LONG = np.int32(0), np.zeros(1, np.int32), np.zeros(1, np.int64)
_WORDS, _LONGS, _OCTETS, _WEIGHTS = (
    np.zeros(4, np.int32),
    np.zeros(4, np.int64),
    np.zeros(1, np.uint8),
    np.zeros(1),
)


def _packed() -> Arguments:
    costs = gpu_packed.Costs(AffineGap(IntegerStep(_NUMBER), IntegerStep(_NUMBER)), _NUMBER)
    pieces, numbers = np.zeros((1, 3), np.int32), (_NUMBER, _NUMBER, np.int32(1))
    return [(*_LAYOUT, pieces, *numbers, _WORDS, costs, _WORDS, _TABLE, _TABLE)]


def _striped() -> Arguments:
    costs = gpu_packed.Costs(AffineGap(IntegerStep(_NUMBER), IntegerStep(_NUMBER)), _NUMBER)
    return [(*_LAYOUT, np.int32(2), np.int32(1), _WORDS, costs, _WORDS, _NUMBER, _TABLE, _TABLE)]


_LAYOUT = np.zeros(4, np.uint16), _LONGS, _WORDS, _WORDS
_TABLE = np.zeros((2, 2), np.int32)


def _bundle() -> Arguments:
    return [(np.zeros(4, np.uint8), _LONGS, _WORDS, _LONGS, _WORDS, np.zeros(4, np.uint16))]


def _wide() -> Arguments:
    wide = np.zeros((1, 1), np.int32)
    query = gpu_wide.WideQuery(_WORD, _WORD, _WORD, _WORD, _WORD, _NUMBER, _NUMBER)
    texts = gpu_wide.DeviceTexts(_OCTETS, np.zeros(2, np.int64))
    memory = gpu_wide.WideMemory(wide, wide, _WORD)
    local, free = MaxPlus(_NUMBER, _NUMBER), SaturatingMaxPlus(_NUMBER, _NUMBER)
    rest = (query, texts, _WORD, memory, _WORD)
    return [
        (AffineGap(_NUMBER, _NUMBER), (local, free), *rest),
        (LinearGap(_NUMBER), (free, free), *rest),
    ]


def _untangle() -> Arguments:
    return [(np.zeros(1, np.uint32), np.zeros((3, 2), np.int64), np.zeros(2, np.int64), _OCTETS)]


def _stripes() -> Arguments:
    one = np.int32(1)
    task = gpu_stripes.Task(_OCTETS, _OCTETS, np.zeros((1, 1), np.int32))
    sides = gpu_stripes.Sides(_LONG, _LONG, _LONG, _LONG, _LONG)
    edges = np.zeros((1, 1), np.int64)
    kept = gpu_stripes.Kept(edges, edges, np.zeros((1, 1), np.int32))
    free = SaturatingMaxPlus(one, one)
    rest = (task, sides, kept, _WORD, gpu_stripes.Shape(one, one, one, one, one))
    algebras = (MaxPlus(one, one), free)
    affine, linear = AffineGap(_WORD, _WORD), LinearGap(_WORD)
    wide, narrow = gpu_stripes.WideScores(), gpu_stripes.NarrowScores()
    return [
        (affine, algebras, gpu_stripes.Anywhere(), wide, *rest),
        (affine, algebras, gpu_stripes.AtEdges(), narrow, *rest),
        (linear, algebras, gpu_stripes.Anywhere(), narrow, *rest),
        (linear, algebras, gpu_stripes.AtEdges(), wide, *rest),
    ]


def _find_wanted() -> Arguments:
    """Both layouts of texts."""
    table, words = np.zeros((1, 1), np.uint8), np.zeros(2, np.uint32)
    d_parts = DParts(_WORD, _WORD, _WORD, _WORD)
    rest = (_WORD, _WORD, _WORD, table, _WORD, table, _WORD, _OCTETS, table)
    coded = ByteLetters(_OCTETS, _LONG, *rest)
    packed = PackedLetters(words, 4, 5, 6, words, _WORD, words, _WORD, 1, words, table)
    out = np.zeros((1, MOST + 1), np.int64), np.zeros(2 * (MOST + 1), np.uint64), _WORDS
    return [(letters, d_parts, 0, 1, MOST, *out, BYTE_ENTRY, False) for letters in (coded, packed)]


def _compare(words: int) -> Arguments:
    lists, edges = np.zeros(words, np.int32), np.zeros(2, np.uint64)
    return [(lists, edges, np.zeros(256, np.int32), 0, 0, MOST, 1, np.zeros((1, MOST + 1), np.int64))]


#: Numbers of dimensions and types of the arrays of `WarpTables`; None is the word of a D gene.
_ARRAYS: dict[str, tuple[int, Any]] = {
    **dict.fromkeys(("v_bases", "j_bases", "allowed"), (2, np.uint8)),
    **dict.fromkeys(("mirror", "unit"), (1, np.uint8)),
    **dict.fromkeys(("v_sums", "j_sums"), (3, np.int32)),
    **dict.fromkeys(("v_length", "j_length", "origin", "weight", "out_lane"), (1, np.int32)),
    **dict.fromkeys(("left_reach", "right_reach", "single_reach"), (1, np.int32)),
    **dict.fromkeys(("region_left", "region_right"), (1, np.int32)),
    **dict.fromkeys(("starts", "joined", "early"), (1, None)),
    **dict.fromkeys(("places", "alike"), (2, None)),
    "empty": (2, np.int64),
}


def _count() -> Arguments:
    """Both kinds of rows, with words of 32 and of 64 bits."""
    found = []
    numbers: dict[str, Any] = {name: np.int32(1) for name in WarpTables._fields if name not in _ARRAYS}
    numbers |= dict.fromkeys(("bound_ends", "bound_d"), np.float64(1))
    for word in (np.uint32, np.int64):
        arrays = {name: np.zeros((1,) * n, kind or word) for name, (n, kind) in _ARRAYS.items()}
        tables = WarpTables(**numbers, **arrays)
        texts = DeviceJunctions(_OCTETS, _WORD, *(np.zeros(1, np.uint16),) * 3)
        counts = np.zeros((1, 1, 1), np.int64)
        out = DeviceCounts(counts, counts, counts[0], counts[0], _WEIGHTS)
        room = gpu_count_launch.room_of(1, 1, True, 4)
        found += [
            (rows(np.int64(1)), COUNT, tables, texts, out, room, np.int32(64))
            for rows in (PerModel, PerInsertions)
        ]
    return found


def _weigh(graphs: bool) -> Arguments:
    ends = LevelTrees(_WORD, _WEIGHTS, _OCTETS, _WORD, _WORD, _WORD, np.int32(1))
    d = WordTrees(_WORD, _WEIGHTS, _OCTETS, _WORD, _WORD, _WORD, np.int32(1))
    chain = WarpChain(Insertion(np.int64(0)), ends, ends, d, *(_WEIGHTS,) * 4, *(_NUMBER,) * 4)
    texts = DeviceCodedJunctions(_OCTETS, *(_WORD,) * 7)
    if not graphs:
        return [(PROBABILITY, chain, texts, _NUMBER, _NUMBER, gpu_weigh_launch.path_room(1, 8), _WEIGHTS)]
    parts = WarpParts(_WORD, _WORD, _OCTETS, _OCTETS, *(_WORD,) * 4, _NUMBER, _NUMBER)
    room = gpu_weigh_launch.chain_room(1, 1, 1, 8, 8)
    return [(PROBABILITY, chain, parts, texts, _NUMBER, _NUMBER, room, _WEIGHTS)]


#: Lists of arguments, one for each combination of types, by the kernel's name.
_EXAMPLES: dict[str, Callable[[], Arguments]] = {
    "plait.devices.cuda_devices.neighbours": lambda: [(np.zeros(WARP, np.int32),)],
    **{kernel.name: _packed for kernel in _PACKED},
    _STRIPED.name: _striped,
    gpu_packed.bundle.name: _bundle,
    gpu_packed.clear.name: lambda: [(_TABLE, _TABLE)],
    gpu_search.find_best.name: lambda: [(_TABLE, _WORDS, _NUMBER, _TABLE, _TABLE, _TABLE)],
    gpu_search.untangle.name: _untangle,
    gpu_wide.wide_scores.name: _wide,
    gpu_stripes.sweep_stripes.name: _stripes,
    gpu_enumerate.find_wanted.name: _find_wanted,
    gpu_enumerate.compare_packed.name: lambda: _compare(PACKED_ENTRY),
    gpu_enumerate.compare_bytes.name: lambda: _compare(BYTE_ENTRY),
    gpu_count_launch.count_texts.name: _count,
    gpu_weigh_launch.weigh_paths.name: lambda: _weigh(graphs=False),
    gpu_weigh_launch.weigh_graphs.name: lambda: _weigh(graphs=True),
    gpu_weigh_launch.weigh_pairs.name: lambda: _weigh(graphs=True),
}


def examples_of(kernel: CudaKernel) -> Arguments:
    """Lists of arguments of a kernel of plait; KeyError if nobody has written any."""
    return (kernel.examples or _EXAMPLES[kernel.name])()
