"""From the paths of walks to CIGARs and counts, for many pairs at once."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.schedules.path_columns import COUNTS, PathColumns, Paths
from plait.targets.pair_kernels import describe_kernel

__all__ = ["DescribedPaths", "describe"]

#: Characters of a number of columns, at most, and its letter.
_RUN_CHARACTERS = 20


class DescribedPaths(NamedTuple):
    """n alignments.

    Attributes
    ----------
    counts
        int64, shape (n, 7): columns are `plait.schedules.path_columns.COUNTS`.
    cigars
        n strings.
    """

    counts: NDArray[np.int64]
    cigars: list[str]


def describe(paths: Paths) -> DescribedPaths:
    """CIGARs and counts of paths.

    Parameters
    ----------
    paths
        The paths.

    Raises
    ------
    InvalidInput
        If a path leaves its sequences.
    """
    n = len(paths.run_offsets) - 1
    # A run of pairs can fall apart into columns, each with a number of one digit.
    pairs = int(paths.runs[paths.runs[:, 0] == 0, 1].sum())
    room = 2 * pairs + _RUN_CHARACTERS * (len(paths.runs) + 1)
    out = PathColumns(
        np.zeros((n, len(COUNTS)), np.int64),
        np.empty(room, np.uint8),
        np.zeros(n + 1, np.int64),
        np.zeros(2, np.int64),
    )
    wrong = int(describe_kernel(paths, out))
    if wrong >= 0:
        found = (
            f"pair {wrong}, which ends at query {paths.query_ends[wrong]}, target {paths.target_ends[wrong]}"
        )
        raise InvalidInput("runs", found=found, expected="a path inside its sequences")
    whole = out.cigars[: out.bounds[-1]].tobytes().decode("ascii")
    return DescribedPaths(out.counts, [whole[a:b] for a, b in pairwise(out.bounds.tolist())])
