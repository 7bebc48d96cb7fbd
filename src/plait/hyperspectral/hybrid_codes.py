"""The sixteen variable-to-variable codes of the hybrid entropy coder (CCSDS 123.0-B-2, annex B), as data."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources

__all__ = ["HIGH_ENTROPY_THRESHOLD", "HybridCode", "hybrid_codes"]

#: A sample is of high entropy from this threshold on: S * 2**14 >= G * threshold. That of the first code.
HIGH_ENTROPY_THRESHOLD = 303336


@dataclass(frozen=True, slots=True)
class HybridCode:
    """One code.

    Attributes
    ----------
    limit
        L, the largest residual that is a symbol of its own; larger ones are the escape symbol ``X``.
    threshold
        T: the code serves where S * 2**14 < G * T.
    words
        Output word, as bits, of each complete input word, as hexadecimal digits and ``X``.
    flush
        Output word of each incomplete input word.
    """

    limit: int
    threshold: int
    words: dict[str, str]
    flush: dict[str, str]


@functools.cache
def hybrid_codes() -> tuple[HybridCode, ...]:
    """The codes, in order of falling thresholds."""
    data = resources.files("plait.hyperspectral") / "data" / "hybrid_codes.json"
    found = json.loads(data.read_text(encoding="ascii"))
    return tuple(
        HybridCode(limit, threshold, table["code"], table["flush"])
        for limit, threshold, table in zip(found["L"], found["T"], found["tables"], strict=True)
    )
