"""Bits in words of 32, the first bit in the highest: appended, and read one after the other.

What is read backwards lies in words whose lowest bit is read first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared

__all__ = ["BitCursor", "filled", "filled_backwards", "put", "take"]

_WORD = 0xFFFFFFFF


class BitCursor(NamedTuple):
    """A place in a stream of bits.

    Attributes
    ----------
    words
        uint32, shape (words,).
    state
        Bits that are not in a word yet, or not used up; their number; the next word. int64, shape (3,).
    """

    words: Any
    state: Any


@shared
def put(words: Any, held: int, bits: int, at: int, value: int, size: int) -> Any:
    """Append up to 32 bits; returns what is held, its size, and the next word."""
    held = (held << size) | value
    bits += size
    if bits >= 32:
        bits -= 32
        words[at] = (held >> bits) & _WORD
        at += 1
    return held & ((1 << bits) - 1), bits, at


@shared
def filled(words: Any, held: int, bits: int, at: int) -> Any:
    """At least 32 bits held, zeros behind the end; at most 63."""
    if bits < 32:
        word = words[at] if at < words.size else 0
        held = (held << 32) | word
        bits += 32
        at += 1
    return held, bits, at


@shared
def take(words: Any, held: int, bits: int, at: int, size: int) -> Any:
    """The number in the next bits, up to 32 of them; then what is held, its size, and the next word."""
    held, bits, at = filled(words, held, bits, at)
    bits -= size
    value = held >> bits
    return value, held - (value << bits), bits, at


@shared
def filled_backwards(words: Any, held: int, bits: int, at: int) -> Any:
    """As `filled`, where the lowest bits come first."""
    if bits < 32:
        word = words[at] if at < words.size else 0
        held |= word << bits
        bits += 32
        at += 1
    return held, bits, at
