"""What every target offers."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from plait.schedules.chain_tables import ChainOutput, ChainTables, Texts

__all__ = ["Availability", "ChainPlan", "Target", "plan_chain"]


class Availability(NamedTuple):
    """Whether a target can be used here, and if not, why and what to do."""

    ok: bool
    reason: str = ""
    fix: str = ""


class ChainPlan(NamedTuple):
    """Memory that a chain batch takes, in bytes; computed without touching a device."""

    tables: int
    scratch: int
    output: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.tables + self.scratch + self.output


class Target(Protocol):
    """A way to launch schedules."""

    @property
    def name(self) -> str:
        """Name, as given to ``device=``."""
        ...

    def available(self) -> Availability:
        """Whether it can be used on this machine."""
        ...

    def run_chain(self, kind: Any, alg: Any, tables: ChainTables, texts: Texts, out: ChainOutput) -> None:
        """Fill `out` for all texts."""
        ...

    def run_enumeration(self, tables: ChainTables, texts: Texts, most: int, out: Any) -> None:
        """Count by building every string, for up to `most` insertions; `out` is (n, fragments, most + 1)."""
        ...


def plan_chain(tables: ChainTables, texts: int, longest: int, pairs: int, itemsize: int = 8) -> ChainPlan:
    """Bytes for a batch of `texts` texts of up to `longest` symbols."""
    models = tables.end_weights.shape[1]
    fragments = tables.words.length.size
    arrays = [*tables, *tables.words]
    held = sum(getattr(field, "nbytes", 0) for field in arrays)
    lanes = 2 * tables.level_weights.shape[1] + 5 * models + 6
    rows = (2 * fragments + 1 + pairs) * models + 8
    return ChainPlan(held, (longest + 2) * lanes * itemsize, texts * (rows * itemsize + 8))
