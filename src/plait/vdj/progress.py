"""How far a run over files is."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    rows
        Rows, or reads, that are done.
    bytes_read
        Bytes of the inputs that have been read.
    total_bytes
        Bytes of all inputs.
    """

    rows: int
    bytes_read: int
    total_bytes: int
