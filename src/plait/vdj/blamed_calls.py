"""The calls behind statuses that blame a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from plait.vdj.calls import first_name

__all__ = ["BLAMED", "BlamedCalls"]

#: Statuses that blame a call, and the segment of the call.
BLAMED = {"unknown_v_call": "v", "no_v_anchor": "v", "unknown_j_call": "j", "no_j_anchor": "j"}
#: Different calls kept per status; a wrong column can hold another text in every row.
_MOST_CALLS = 1000
_OTHER = "(other)"


@dataclass(slots=True)
class BlamedCalls:
    """How many rows each call has cost. Sums of blocks, in any order."""

    _calls: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in BLAMED})

    def add(self, status: pa.Array, calls: Mapping[str, pa.Array]) -> None:
        """Add a block.

        Parameters
        ----------
        status
            The status of every row.
        calls
            The V calls (``"v"``) and J calls (``"j"``) of the same rows, as far as they were used.
        """
        for name, segment in BLAMED.items():
            if segment in calls:
                blamed = calls[segment].filter(pc.equal(status, name))
                for entry in pc.value_counts(blamed).to_pylist():
                    self._blame(name, first_name(entry["values"]), entry["counts"])

    def merge(self, other: BlamedCalls) -> None:
        """Add those of other blocks.

        Parameters
        ----------
        other
            Left unchanged.
        """
        for status, names in other._calls.items():
            self.blame(status, names)

    def blame(self, status: str, names: Mapping[str, int]) -> None:
        """Add rows of calls to a status.

        Parameters
        ----------
        status
            One of `BLAMED`.
        names
            Rows by name.
        """
        for name, rows in names.items():
            self._blame(status, name, rows)

    def _blame(self, status: str, name: str, rows: int) -> None:
        known = self._calls[status]
        known[name if name in known or len(known) < _MOST_CALLS else _OTHER] += rows

    def of(self, status: str) -> dict[str, int]:
        """Rows per gene of the calls behind a status, the most frequent first.

        Parameters
        ----------
        status
            One of `BLAMED`; others blame no call.
        """
        return dict(sorted(self._calls.get(status, {}).items(), key=lambda item: (-item[1], item[0])))

    def as_dict(self) -> dict[str, dict[str, int]]:
        """All of them, ready for JSON."""
        return {name: self.of(name) for name in BLAMED if self._calls[name]}
