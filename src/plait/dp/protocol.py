"""What every target offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.dp.chain.tables import ChainOutput, ChainTables, Texts
from plait.dp.pairs.blocks import SweepShape, TargetBlocks
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.lists import PairList, PairResults, PairSetup
from plait.dp.pairs.tiles import TileSteps
from plait.errors import PlaitError
from plait.types import Availability


class Target(Protocol):
    """A way to launch schedules."""

    @property
    def name(self) -> str:
        """Name, as given to ``device=``."""
        ...

    @property
    def description(self) -> str:
        """Name with what tells this device from others, for provenance."""
        ...

    def available(self) -> Availability:
        """Whether it can be used on this machine."""
        ...

    def successor(self, error: PlaitError) -> Target | None:
        """What does what this one could not, after an error of its device; None: tell the error."""
        ...

    def run_chain(self, kind: Any, alg: Any, tables: ChainTables, texts: Texts, out: ChainOutput) -> None:
        """Fill `out` for all texts."""
        ...

    def run_enumeration(self, tables: ChainTables, texts: Texts, most: int, out: Any) -> None:
        """Count by building every string, for up to `most` insertions; `out` is (n, fragments, most + 1)."""
        ...

    def run_pairs(self, setup: PairSetup, task: PairList) -> PairResults:
        """Align the pairs of a list; none is empty."""
        ...

    def run_blocks(
        self, query: BlockQuery, blocks: TargetBlocks, progress: Callable[[int], None]
    ) -> NDArray[np.int64]:
        """Best scores of a query, which is not empty, with the targets of blocks."""
        ...

    def sweep_shape(self) -> SweepShape:
        """What is best given to `sweep_blocks` at a time."""
        ...

    def sweep_blocks(self, queries: Sequence[BlockQuery], blocks: TargetBlocks) -> list[NDArray[np.int64]]:
        """Best scores of queries, none empty, with the targets of blocks; for several threads at a time."""
        ...

    def trace_targets(self, query: BlockQuery, task: PairList) -> PairResults:
        """Align a query with many targets in global mode; none is empty, see `plait.dp.pairs.blocks`."""
        ...

    def tile_steps(self) -> TileSteps:
        """Steps for one long pair, see `plait.dp.pairs.tiles`."""
        ...
