"""What the chain launches on each device: path counts, exhaustive enumeration, generation probabilities.

The CPU counts what leaves 64 bits and what two joined D genes make, the GPU all else, see `serves` in
`plait.dp.chain.gpu_count_launch`; what it leaves of a batch it gives to the CPU itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, Target, interpreted, over_threads, stretches
from plait.dp.chain.count import chain_item, enumerate_item
from plait.dp.chain.graphs import CodedJunctions, GraphParts
from plait.dp.chain.rows import Kind, PerModel, PerPosition
from plait.dp.chain.tables import (
    ALIVE_ROWS,
    D_BITS,
    LINES,
    ChainOutput,
    ChainScratch,
    ChainTables,
    Junctions,
)
from plait.dp.chain.weigh import PairScratch, WeightedChain, WeightedScratch, weigh_kernel
from plait.errors import Unsupported
from plait.lang.algebras import PROBABILITY, Count
from plait.lang.compile import kernel, kernel_optimised_twice
from plait.lang.lanes import PADDING, OneLane, host_lanes, padded

#: Fewest texts worth a thread of their own.
_STRETCH: Final = 512
#: Junctions, and strings of an enumeration, that are worth the start of a GPU not asked for by name.
_LEAST_TEXTS = 20_000
_LEAST_STRINGS = 1_000_000_000


class CountBatch(NamedTuple):
    """Junctions to count, and where to."""

    kind: Kind
    alg: Any
    tables: ChainTables
    texts: Junctions
    out: ChainOutput


class EnumerationBatch(NamedTuple):
    """Junctions to count with up to `most` insertions; `out` is int64 (n, D genes + 1, most + 1)."""

    tables: ChainTables
    texts: Junctions
    most: int
    out: NDArray[np.int64]


class WeighBatch(NamedTuple):
    """Junctions to weigh, at least one and none empty; `plain` says that every code stands for one symbol.

    `scratch` makes the memory of a thread, for the longest of them.
    """

    chain: WeightedChain
    parts: GraphParts
    texts: CodedJunctions
    plain: bool
    scratch: Callable[[], WeightedScratch | PairScratch]


class Weights(NamedTuple):
    """Weights, float64 (n,), and the descriptions of what computed them."""

    values: NDArray[np.float64]
    devices: frozenset[str]


def make_scratch(alg: Any, tables: ChainTables, longest: int) -> ChainScratch:
    """Working memory for texts of up to `longest` symbols.

    Raises `Unsupported` for an algebra whose neutral elements are not the numbers 0 and 1.
    """
    if not (alg.zero == 0 and alg.one == 1):
        why = f"its zero is {alg.zero} and its one {alg.one}; the tables hold numbers of ways, 0 and 1"
        raise Unsupported(f"{type(alg).__name__} for a chain of counted choices", why=why)
    dtype = tables.end_weights.dtype
    rows = longest + 2
    models = tables.end_weights.shape[1]
    levels = tables.level_weights.shape[1]
    # Lanes start at `lead`; the columns before it stay zero: level 0 reads them as the level below.
    lead = padded(int(tables.level_step))
    left_levels = np.zeros((rows, lead + levels), dtype)
    right_levels = np.zeros_like(left_levels)
    same = tables.left_lane.size == 0
    left = left_levels if same else np.zeros((rows, lead + models), dtype)
    words, genes = tables.words.places.shape[0], tables.words.length.size
    pairs = rows if tables.pair_allowed.any() else 1
    return ChainScratch(
        masks=np.zeros(rows, np.int64),
        places=np.zeros((words, padded(longest) + D_BITS + 2 * PADDING), np.int64),
        alive=np.zeros((words * ALIVE_ROWS, padded(longest) + PADDING), np.int64),
        depth=np.zeros(words, np.int64),
        weight=np.zeros(rows, dtype),
        arms=np.zeros(rows, np.int64),
        left_levels=left_levels,
        right_levels=right_levels,
        left=left,
        right=right_levels if same else np.zeros((rows, lead + models), dtype),
        single=left if same else np.zeros((rows, lead + models), dtype),
        entering=np.zeros((1, padded(rows) + models + PADDING), dtype),
        inner=np.zeros((1, models), dtype),
        total=np.zeros((genes + 2, models), dtype),
        carry=np.zeros((genes + 2, padded(rows) + models + PADDING), dtype),
        middle=np.zeros((pairs, models), dtype),
        behind=np.zeros((pairs, lead + models), dtype),
        symbols=np.zeros((2, padded(rows) + 3 * PADDING), np.int64),
        lines=np.zeros((LINES - 1 + tables.palindrome_row.shape[1], padded(rows) + 3 * PADDING), dtype),
        values=np.zeros((int(tables.joined_length.max(initial=0)) + 1, PADDING), dtype),
        lead=lead,
    )


@kernel_optimised_twice
def _run_chain(
    kind: Any, alg: Any, tables: Any, texts: Any, first: int, last: int, scratch: Any, out: Any
) -> None:
    for item in range(first, last):
        chain_item(kind, alg, tables, texts, item, scratch, out)


@kernel
def _run_enumeration(
    tables: Any, texts: Any, most: int, first: int, last: int, letters: Any, out: Any
) -> None:
    for item in range(first, last):
        enumerate_item(tables, texts, item, most, letters, out)


def _count(call: Any, batch: CountBatch, target: Target) -> ChainOutput:
    kind, alg, tables, texts, out = batch
    longest = int(texts.length.max(initial=0))
    # Positions take what a D weighs for the product of its ends, as it is where paths are counted.
    counted = isinstance(alg, Count)
    if counted and isinstance(kind.rows, PerModel) and tables.out_lane.size == 1 and not out.pair.shape[1]:
        kind = kind._replace(rows=PerPosition())

    def run(stretch: tuple[int, int]) -> None:
        call(kind, alg, tables, texts, *stretch, make_scratch(alg, tables, longest), out)

    over_threads(target.threads, stretches(target.threads, texts.start.size, _STRETCH), run)
    return out


def _enumerate(call: Any, batch: EnumerationBatch, target: Target) -> NDArray[np.int64]:
    tables, texts, most, out = batch

    def run(stretch: tuple[int, int]) -> None:
        call(tables, texts, most, *stretch, np.zeros(max(most, 1), np.int64), out)

    over_threads(target.threads, stretches(target.threads, texts.start.size, 1), run)
    return out


def _weigh(compiled: bool, batch: WeighBatch, target: Target) -> Weights:
    chain, parts, texts, _, scratch = batch
    call, lanes = (weigh_kernel, host_lanes()) if compiled else (interpreted(weigh_kernel), OneLane())
    out = np.zeros(texts.start.size)

    def run(stretch: tuple[int, int]) -> None:
        call(lanes, PROBABILITY, chain, parts, texts, *stretch, scratch(), out)

    over_threads(target.threads, stretches(target.threads, out.size, _STRETCH), run)
    return Weights(out, frozenset({target.description}))


def _many(batch: CountBatch | WeighBatch) -> bool:
    return bool(batch.texts.start.size >= _LEAST_TEXTS)


#: Path counts (dp1, dp2 with regions); fills `CountBatch.out`.
PATH_COUNTS: Final[Problem[CountBatch, ChainOutput]] = Problem(
    "path counts",
    cpu=partial(_count, _run_chain),
    reference=partial(_count, interpreted(_run_chain)),
    cuda="plait.dp.chain.gpu_count_launch:count_batch",
    worth=_many,
)
#: Counts by building every string; fills `EnumerationBatch.out`.
ENUMERATION: Final[Problem[EnumerationBatch, NDArray[np.int64]]] = Problem(
    "exhaustive enumeration",
    cpu=partial(_enumerate, _run_enumeration),
    reference=partial(_enumerate, interpreted(_run_enumeration)),
    cuda="plait.dp.chain.gpu_enumerate_launch:enumerate_batch",
    worth=lambda batch: batch.texts.start.size * 4**batch.most >= _LEAST_STRINGS,
)
#: Generation probabilities.
WEIGHTS: Final[Problem[WeighBatch, Weights]] = Problem(
    "generation probabilities",
    cpu=partial(_weigh, True),
    reference=partial(_weigh, False),
    cuda="plait.dp.chain.gpu_weigh_launch:weigh_batch",
    worth=_many,
)
