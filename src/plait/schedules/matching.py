"""Which parts of a text match prefixes, suffixes and fragments; found once, for all models."""

from __future__ import annotations

from typing import Any

from plait._jit import shared

__all__ = ["load_text", "matched_prefix", "matched_suffix", "mirror_arms"]


@shared
def load_text(alg: Any, tables: Any, texts: Any, item: int, scratch: Any) -> Any:
    """Copy a text's masks and insertion weights to scratch; returns its length and whether all weigh one."""
    first = texts.start[item]
    length = texts.length[item]
    plain = True
    for i in range(length):
        mask = texts.symbols[first + i]
        weight = tables.symbol_weight[mask]
        scratch.masks[i] = mask
        scratch.weight[i] = weight
        plain = plain and weight == alg.one
    scratch.weight[length] = alg.one
    return length, plain


@shared
def matched_prefix(tables: Any, prefix: int, masks: Any, length: int) -> int:
    """Length of the longest prefix of the text that is a prefix of the extended end."""
    n = 0
    most = min(length, tables.prefix_length[prefix])
    while n < most and (tables.prefix_symbols[prefix, n] & masks[n]) != 0:
        n += 1
    return n


@shared
def matched_suffix(tables: Any, suffix: int, masks: Any, length: int) -> int:
    """Length of the longest suffix of the text that is a suffix of the extended end."""
    n = 0
    most = min(length, tables.suffix_length[suffix])
    while n < most and (tables.suffix_symbols[suffix, n] & masks[length - 1 - n]) != 0:
        n += 1
    return n


@shared
def mirror_arms(mirror: Any, masks: Any, length: int, most: int, arms: Any) -> None:
    """For every centre c, the longest p <= most such that text[c-p:c) mirrors text[c:c+p)."""
    for c in range(length + 1):
        p = 0
        reach = min(most, c, length - c)
        while p < reach and (masks[c - 1 - p] & mirror[masks[c + p]]) != 0:
            p += 1
        arms[c] = p
