"""What every target offers."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from plait.schedules.chain_tables import ChainOutput, ChainTables, Texts

__all__ = ["Availability", "Target"]


class Availability(NamedTuple):
    """Whether a target can be used here, and if not, why and what to do."""

    ok: bool
    reason: str = ""
    fix: str = ""


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
