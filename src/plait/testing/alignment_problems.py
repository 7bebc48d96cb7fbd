"""The problems of alignment and their parity matrix: as `plait.testing.problems`, for another subject.

A *combination* is a mode solved by one schedule on one target, in lanes of one type and width, in one form
(recurrence, or source of scores) and one way of splitting the work. Every combination must give the oracle's
answer: score, both ends and, where paths are kept, every column, so that ties are broken alike everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from plait.algebras import EXACTNESS, MaxPlus
from plait.lanes import host_lanes
from plait.targets.block_kernels import (
    score_blocks_kernel,
    score_some_blocks,
    trace_some_targets,
    trace_targets_kernel,
)
from plait.targets.cpu import CpuTarget
from plait.targets.pair_kernels import align_pairs_kernel
from plait.targets.protocol import Target
from plait.targets.reference import ReferenceTarget
from plait.testing.alignment import AlignmentCase, BestAlignment, best_by_gotoh
from plait.testing.alignment_batches import AlignmentBatch, alignment_batches, edge_batches
from plait.testing.alignment_solvers import (
    Found,
    SweepForm,
    solve_blocks,
    solve_lanes,
    solve_pairs,
    solve_public,
    solve_rows,
    solve_tiles,
)

__all__ = [
    "ALIGNMENT_PROBLEMS",
    "ALIGNMENT_TARGETS",
    "NUMBERS",
    "SOURCES",
    "AlignmentCombination",
    "AlignmentProblem",
    "AlignmentTarget",
    "alignment_combinations",
    "solve_alignment",
]

#: Types of scores, by name.
NUMBERS: dict[str, Any] = {"int8": np.int8, "int16": np.int16, "int32": np.int32}
#: Where anti-diagonals have their scores from.
SOURCES = ("table8", "table16", "profile8", "profile16")
#: Columns of a stretch where values are to be counted from a new base often.
_SHORT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentProblem:
    """A mode of alignment.

    Attributes
    ----------
    name
        The mode.
    inputs
        Where inputs come from.
    edge_cases
        Inputs that are always tried; none is empty.
    oracle
        The right answer to one pair.
    schedules
        Names of the schedules that solve it.
    ends
        What of the schedules' code the mode runs: modes with one name share compiled kernels.
    benchmark_sizes
        Residues of the two sequences with which speed is measured.
    """

    name: str
    inputs: st.SearchStrategy[AlignmentBatch]
    edge_cases: tuple[AlignmentBatch, ...]
    oracle: Callable[[AlignmentCase], BestAlignment | None]
    schedules: tuple[str, ...]
    ends: str
    benchmark_sizes: tuple[tuple[int, int], ...] = ((352, 352), (10_000, 10_000))

    @property
    def exactness(self) -> str:
        """``"bitwise"``: scores are integers, and which of the best alignments is found is laid down."""
        return EXACTNESS[MaxPlus]


class AlignmentCombination(NamedTuple):
    """One cell of the matrix: names of its parts, and the width."""

    problem: str
    schedule: str
    target: str
    number: str
    width: int
    form: str
    split: str

    @property
    def id(self) -> str:
        """Name of a test of it."""
        return "-".join(map(str, self))

    @property
    def kernel(self) -> tuple[Any, ...]:
        """The same for combinations that run the same compiled code."""
        ends = ALIGNMENT_PROBLEMS[self.problem].ends
        return (self.schedule, ends, self.number, self.width, self.form, self.split == "scores")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentTarget:
    """A target as the matrix uses it.

    Attributes
    ----------
    make
        Makes it.
    blocks, lanes, pairs
        Its entry points for blocks, for paths in lanes, and for lists of pairs.
    kernels
        For the name of a schedule and of ends: (type, width, form) worth running. Where code is compiled,
        each takes seconds, so that only those stand here that the package uses, and some beside.
    public
        Whether all ways of walking back are run as users call them.
    """

    make: Callable[[int], Target]
    blocks: Callable[..., Any]
    lanes: Callable[..., Any]
    pairs: Callable[..., Any]
    kernels: Callable[[str, str], Iterator[tuple[str, int, str]]]
    public: bool


def _interpreted(schedule: str, ends: str) -> Iterator[tuple[str, int, str]]:
    """Every type, and every width up to 512 bits."""
    if schedule in ("inter_sequence", "lanes_back"):
        for number in ("int8", "int16", "int32"):
            for width in (1, 2, 4, 8, 16, 32, 64):
                fits = 8 * width * NUMBERS[number]().itemsize <= 512
                if fits and (schedule == "inter_sequence" or (number != "int8" and width > 2)):
                    yield number, width, "affine"
                    yield number, width, "linear"
    for number, widths in (("int16", (4, 8, 16, 32)), ("int32", (4, 8, 16))):
        for width in widths if schedule == "antidiagonal" else widths[:1] * (schedule == "tiles"):
            for source in SOURCES:
                yield number, width, source


_W8, _W16, _W32 = (host_lanes(bits).width for bits in (8, 16, 32))
_COMPILED: dict[tuple[str, str], tuple[tuple[str, int, str], ...]] = {
    ("inter_sequence", "local"): (
        *((number, width, form) for number, width in (("int8", _W8), ("int16", _W16)) for form in ("affine", "linear")),
        ("int32", _W32, "affine"),
        ("int8", 1, "affine"),
        ("int8", 16, "linear"),
        ("int16", 64, "affine"),
    ),
    ("inter_sequence", "edges"): (
        *((number, width, "affine") for number, width in (("int8", _W8), ("int16", _W16), ("int32", _W32))),
        ("int16", _W16, "linear"),
        ("int32", 4, "linear"),
    ),
    ("inter_sequence", "extension"): (("int16", _W16, "affine"), ("int32", 8, "linear")),
    ("lanes_back", "edges"): (("int16", _W16, "affine"), ("int16", _W16, "linear"), ("int32", _W32, "affine")),
    ("antidiagonal", "edges"): (
        ("int16", _W16, "table16"),
        ("int16", _W16, "profile8"),
        ("int16", 8, "profile16"),
        ("int16", 4, "table8"),
        ("int32", _W32, "table8"),
        ("int32", _W32, "profile16"),
    ),
    ("antidiagonal", "local"): (
        ("int16", _W16, "table16"),
        ("int16", _W16, "profile8"),
        ("int32", _W32, "table16"),
        ("int32", 4, "profile8"),
    ),
    ("antidiagonal", "extension"): (("int16", _W16, "table16"), ("int32", _W32, "profile8")),
    ("tiles", "edges"): (("int16", _W16, "table16"), ("int16", 8, "profile8"), ("int32", 4, "table8")),
    ("tiles", "local"): (("int16", _W16, "table16"),),
    ("tiles", "extension"): (("int16", 4, "profile8"),),
}  # fmt: skip


def _compiled(schedule: str, ends: str) -> Iterator[tuple[str, int, str]]:
    yield from _COMPILED.get((schedule, ends), ())


ALIGNMENT_TARGETS = {
    "reference": AlignmentTarget(
        make=lambda threads: ReferenceTarget(),
        blocks=score_some_blocks,
        lanes=trace_some_targets,
        pairs=lambda *arguments: _pairs_of_reference(*arguments),
        kernels=_interpreted,
        public=False,
    ),
    "cpu": AlignmentTarget(
        make=CpuTarget,
        blocks=score_blocks_kernel,
        lanes=trace_targets_kernel,
        pairs=align_pairs_kernel,
        kernels=_compiled,
        public=True,
    ),
}
