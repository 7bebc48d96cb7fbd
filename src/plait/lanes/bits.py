"""Bit operations on signed 64-bit words."""

from __future__ import annotations

__all__ = ["highest_bit", "lowest_bit", "population"]


def highest_bit(word: int) -> int:
    """Index of the highest set bit of a word that is not zero.

    >>> highest_bit(0b10100)
    4
    """
    return (int(word) & 0xFFFFFFFFFFFFFFFF).bit_length() - 1


def lowest_bit(word: int) -> int:
    """Index of the lowest set bit of a word that is not zero.

    >>> lowest_bit(0b10100)
    2
    """
    value = int(word)
    return (value & -value).bit_length() - 1


def population(word: int) -> int:
    """Number of set bits.

    >>> population(0b10100)
    2
    """
    return (int(word) & 0xFFFFFFFFFFFFFFFF).bit_count()
