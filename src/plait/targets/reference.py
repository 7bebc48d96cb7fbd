"""The reference target: the schedules as plain Python. Slow, and the definition of every other target.

It also serves counts too large for 64 bits, by running the same bodies on Python integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plait.schedules.chain_product import chain_item
from plait.schedules.chain_tables import ChainOutput, ChainTables, Texts, make_scratch
from plait.schedules.enumeration import enumerate_item
from plait.targets.protocol import Availability

__all__ = ["ReferenceTarget", "longest_text"]


def longest_text(texts: Texts) -> int:
    """Symbols in the longest text of a batch."""
    return int(texts.length.max(initial=0))


class ReferenceTarget:
    """Interpreted Python."""

    name = "reference"

    def available(self) -> Availability:
        """Always available."""
        return Availability(True)

    def run_chain(self, kind: Any, alg: Any, tables: ChainTables, texts: Texts, out: ChainOutput) -> None:
        """Fill `out` one text after the other."""
        scratch = make_scratch(tables, longest_text(texts), tables.end_weights.dtype)
        for item in range(texts.start.size):
            chain_item(kind, alg, tables, texts, item, scratch, out)

    def run_enumeration(self, tables: ChainTables, texts: Texts, most: int, out: Any) -> None:
        """Enumerate one text after the other."""
        for item in range(texts.start.size):
            enumerate_item(tables, texts, item, most, np.zeros(max(most, 1), np.int64), out)
