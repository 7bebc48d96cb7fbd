"""Sums of whole numbers by key, in any order and any number of parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

_Column: TypeAlias = Any


@dataclass(slots=True)
class Tally:
    """Sums by key. Python's integers hold them, so they do not overflow; instances can be pickled."""

    sums: tuple[str, ...]
    _held: dict[tuple[Any, ...], list[int]] = field(default_factory=dict)

    def add(self, keys: Sequence[_Column], amounts: Sequence[_Column]) -> None:
        """Add rows: columns (n,) that make the key, and one of whole numbers for each sum; nulls count 0."""
        names = [f"key{i}" for i in range(len(keys))]
        sums = [f"sum{i}" for i in range(len(amounts))]
        table = pa.table([*keys, *amounts], names=[*names, *sums])
        grouped = table.group_by(names, use_threads=False).aggregate([(name, "sum") for name in sums])
        found = [grouped[name].to_pylist() for name in names]
        totals = [grouped[f"{name}_sum"].to_pylist() for name in sums]
        for key, total in zip(zip(*found, strict=True), zip(*totals, strict=True), strict=True):
            self._take(key, total)

    def merge(self, other: Tally) -> None:
        """Add all that another tally of the same sums holds (else ValueError); it stays as it is."""
        if other.sums != self.sums:
            raise ValueError(f"sums {self.sums} and {other.sums}")
        for key, total in other._held.items():
            self._take(key, total)

    def _take(self, key: tuple[Any, ...], total: Sequence[int | None]) -> None:
        held = self._held.setdefault(key, [0] * len(self.sums))
        for place, amount in enumerate(total):
            held[place] += amount or 0

    def get(self, *key: object) -> dict[str, int]:
        """Sums of one key by name; zeros for a key that never came."""
        return dict(zip(self.sums, self._held.get(key, [0] * len(self.sums)), strict=True))

    def __iter__(self) -> Iterator[tuple[tuple[Any, ...], dict[str, int]]]:
        """Keys in ascending order, with their sums."""
        for key in sorted(self._held):
            yield key, self.get(*key)

    def __len__(self) -> int:
        return len(self._held)
