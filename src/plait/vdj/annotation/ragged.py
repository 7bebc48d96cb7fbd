"""Groups of entries one after the other, with where each group begins and the last ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["edges_of", "join_edges", "take_groups"]


def edges_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where groups of so many entries begin, and the end of the last."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def join_edges(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Where groups begin when lists of groups are put one behind the other."""
    return edges_of(np.concatenate([np.diff(part) for part in parts]))


def take_groups(
    edges: NDArray[np.int64], which: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which entries some groups have, and where those of each of them begin.

    Parameters
    ----------
    edges
        Where the entries of each group begin, and the end of the last.
    which
        The groups.
    """
    sizes = edges[which + 1] - edges[which]
    taken = edges_of(sizes)
    return np.repeat(edges[which] - taken[:-1], sizes) + np.arange(taken[-1]), taken
