"""Hashes of many texts at once, the same on every machine and in every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plait.vdj.annotation.row_values import TextBytes

__all__ = ["masked_hashes", "mixed", "salted", "text_sums"]

#: Places of a text that have random words of their own; further ones use them again, turned.
_PLACES = 512


def _words() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    generator = np.random.Generator(np.random.PCG64(20_240_817))
    words = generator.integers(0, 1 << 64, (_PLACES, 256), np.uint64)
    return words, generator.integers(0, 1 << 64, _PLACES, np.uint64)


_WORDS, _BLANK = _words()


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words with every bit depending on every bit (the finaliser of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _letters(texts: TextBytes) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """The text of every byte, its place in it, and its word."""
    lengths = np.diff(texts.starts)
    row = np.repeat(np.arange(lengths.size), lengths)
    place = np.arange(row.size) - np.repeat(texts.starts[:-1], lengths)
    words = _WORDS[place % _PLACES, texts.data]
    # So that a letter far behind is not the same as one at the beginning.
    turn = (place // _PLACES).astype(np.uint64)
    return row, place, words + turn * np.uint64(0x9E3779B97F4A7C15)


def text_sums(texts: TextBytes) -> NDArray[np.uint64]:
    """What `salted` makes hashes of."""
    return _sums(texts, _letters(texts)[2])


def _sums(texts: TextBytes, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)])
    return np.asarray(running[texts.starts[1:]] - running[texts.starts[:-1]])


def salted(sums: NDArray[np.uint64], salts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A 64-bit hash of every text and a number.

    Parameters
    ----------
    sums
        `text_sums` of the texts.
    salts
        A number for each text.
    """
    return mixed(sums ^ mixed(salts.astype(np.uint64) + np.uint64(1)))


def masked_hashes(texts: TextBytes, salts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """A hash of every text with each of its letters left out in turn.

    Texts of one length and number have such a hash in common exactly if they differ in at most one letter.

    Returns
    -------
    row : ndarray of int64
        The text.
    hashes : ndarray of uint64
        Its hashes, one for each letter.
    """
    row, place, words = _letters(texts)
    lengths = np.diff(texts.starts)
    whole = _sums(texts, words) + mixed((salts * 4096 + lengths).astype(np.uint64) + np.uint64(1))
    return row, mixed(whole[row] - words + _BLANK[place % _PLACES])
