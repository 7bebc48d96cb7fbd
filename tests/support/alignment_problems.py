"""The problems of alignment and their parity matrix: as `support.problems`, for another subject.

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
from support.alignment import AlignmentCase, BestAlignment, best_by_gotoh
from support.alignment_batches import AlignmentBatch, alignment_batches, edge_batches
from support.alignment_solvers import (
    Found,
    SweepForm,
    solve_blocks,
    solve_pairs,
    solve_public,
    solve_rows,
    solve_tiles,
)

from plait.devices.target import CpuTarget, ReferenceTarget, Target
from plait.dp.pairs.inter_sequence import (
    score_blocks_kernel,
    score_some_blocks,
)
from plait.dp.pairs.launches import cpu_steps, reference_steps
from plait.lang.algebras import EXACTNESS, MaxPlus
from plait.lang.compile import host_features
from plait.lang.lanes import host_lanes

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
NUMBERS: dict[str, Any] = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "int32": np.int32}
#: Where anti-diagonals have their scores from, see `support.alignment_solvers.SweepForm`.
SOURCES = ("table8", "table16", "profile8", "profile16")
#: Columns of a stretch where values are to be counted from a new base often.
_SHORT = 5
_THREADS = 3
#: Type, width and form.
_Kernel = tuple[str, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentProblem:
    """A mode of alignment.

    Attributes
    ----------
    name
        The mode.
    inputs
        Where inputs come from; no sequence is empty.
    edge_cases
        Inputs that are always tried; no sequence is empty.
    oracle
        The right answer to one pair.
    schedules
        Names of the schedules that solve it.
    benchmark_sizes
        Residues of the two sequences with which speed is measured.
    """

    name: str
    inputs: st.SearchStrategy[AlignmentBatch]
    edge_cases: tuple[AlignmentBatch, ...]
    oracle: Callable[[AlignmentCase], BestAlignment | None]
    schedules: tuple[str, ...]
    benchmark_sizes: tuple[tuple[int, int], ...] = ((352, 352), (10_000, 10_000))

    @property
    def exactness(self) -> str:
        """``"bitwise"``: scores are integers, and which of the best alignments is found is laid down."""
        return EXACTNESS[MaxPlus]

    def ends(self, schedule: str) -> str:
        """What of a schedule's code the mode runs: modes of one answer share compiled kernels."""
        if schedule == "inter_sequence":
            return {"local": "cells", "extension": "cells", "global": "rows"}.get(self.name, "columns")
        return self.name if self.name in ("local", "extension") else "edges"


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
    def seldom(self) -> bool:
        """Whether what it runs is compiled in ``make test-all`` alone."""
        return self.target == "cpu" and self.kernel in _SELDOM

    @property
    def kernel(self) -> tuple[Any, ...]:
        """The same for combinations that run the same compiled code."""
        ends = ALIGNMENT_PROBLEMS[self.problem].ends(self.schedule)
        own = self.split == "scores" or (self.schedule == "public" and self.split)
        return (self.schedule, ends, self.number, self.width, self.form, own)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentTarget:
    """A target as the matrix uses it.

    Attributes
    ----------
    make
        Makes it, with so many threads.
    blocks
        Its entry point for blocks of targets.
    kernels
        For the name of a schedule and of ends: what is worth running. Where code is compiled, each kernel
        takes seconds, so that only those stand here that the package uses, and some beside.
    splits
        For the name of a schedule: ways of splitting.
    """

    make: Callable[[int], Target]
    blocks: Callable[..., Any]
    kernels: Callable[[str, str], Iterator[_Kernel]]
    splits: dict[str, tuple[str, ...]]


def _interpreted(schedule: str, ends: str) -> Iterator[_Kernel]:
    """Every type in every width up to 512 bits that the schedule knows."""
    if schedule in ("row_sweep", "public"):
        yield "any", 1, "any"
    blocks = schedule == "inter_sequence"
    least = {"inter_sequence": 1, "antidiagonal": 4, "tiles": 4}.get(schedule, 512)
    for name, number in NUMBERS.items():
        if (name == "int8" and not blocks) or (name == "uint8" and not (blocks and ends == "rows")):
            continue
        most = 4 if schedule == "tiles" else 64 // number().itemsize
        for width in (1, 2, 4, 8, 16, 32, 64):
            if least <= width <= most:
                # All sources in the narrowest lanes, in others by turns.
                sources = SOURCES if width == 4 else SOURCES[width // 8 % 2 :: 2]
                # Octets without a sign hold differences: one recurrence for all costs.
                for form in ("affine", "linear")[: 1 if name == "uint8" else 2] if blocks else sources:
                    yield name, width, form


_W8, _W16, _W32 = (host_lanes(bits).width for bits in (8, 16, 32))
#: Tables as `plait.dp.pairs.lists` makes them for this processor, and as for others.
_TABLE, _OTHER = ("table16", "table8") if host_features().get("avx512bw") else ("table8", "table16")
_COMPILED: dict[tuple[str, str], tuple[_Kernel, ...]] = {
    ("inter_sequence", "cells"): (
        ("int8", _W8, "affine"),
        ("int8", _W8, "linear"),
        ("int16", _W16, "affine"),
        ("int32", _W32, "affine"),
        ("int16", 1, "affine"),
        ("int32", 64, "linear"),
    ),
    ("inter_sequence", "rows"): (
        ("int8", _W8, "affine"),
        ("uint8", _W8, "affine"),
        ("int16", _W16, "affine"),
        ("int16", _W16, "linear"),
        ("int32", _W32, "affine"),
    ),
    ("inter_sequence", "columns"): (
        ("int8", _W8, "affine"),
        ("int16", _W16, "affine"),
        ("int32", 2, "linear"),
    ),
    ("antidiagonal", "edges"): (
        ("int16", _W16, "table8"),
        ("int16", _W16, "table16"),
        ("int16", _W16, "profile8"),
        ("int16", 8, "profile16"),
        ("int32", _W32, "profile16"),
    ),
    ("antidiagonal", "local"): (
        ("int16", _W16, "table8"),
        ("int16", _W16, "table16"),
        ("int16", _W16, "profile8"),
        ("int32", _W32, "profile16"),
    ),
    ("antidiagonal", "extension"): (("int16", _W16, "table8"), ("int16", _W16, "table16")),
    ("tiles", "edges"): (("int16", _W16, _TABLE), ("int16", 8, "profile8")),
    ("tiles", "local"): (("int16", _W16, _TABLE),),
    ("tiles", "extension"): (("int32", _W32, "profile16"),),
}


#: Those that only ``make test-all`` compiles (last: scores alone); all that they are made of is in others.
_SELDOM: set[tuple[Any, ...]] = {
    ("tiles", "extension", "int32", _W32, "profile16", False),
    ("inter_sequence", "cells", "int16", 1, "affine", False),
    ("inter_sequence", "cells", "int32", 64, "linear", False),
    ("inter_sequence", "rows", "int16", _W16, "affine", False),
    ("inter_sequence", "rows", "int16", _W16, "linear", False),
    ("inter_sequence", "rows", "int32", _W32, "affine", False),
    ("inter_sequence", "columns", "int16", _W16, "affine", False),
    ("inter_sequence", "columns", "int32", 2, "linear", False),
    *(
        ("antidiagonal", ends, "int16", _W16, _OTHER, own)
        for ends in ("edges", "local", "extension")
        for own in (False, True)
    ),
    ("antidiagonal", "edges", "int16", _W16, "profile8", False),
    ("antidiagonal", "edges", "int16", _W16, "profile8", True),
    ("antidiagonal", "edges", "int16", 8, "profile16", False),
    ("antidiagonal", "edges", "int32", _W32, "profile16", False),
    ("antidiagonal", "local", "int16", _W16, "profile8", True),
    ("antidiagonal", "local", "int32", _W32, "profile16", False),
    ("tiles", "edges", "int16", 8, "profile8", False),
    ("tiles", "local", "int16", _W16, _TABLE, True),
}


def _compiled(schedule: str, ends: str) -> Iterator[_Kernel]:
    if schedule in ("row_sweep", "public"):
        yield "any", 1, "any"
    yield from _COMPILED.get((schedule, ends), ())


ALIGNMENT_TARGETS = {
    "reference": AlignmentTarget(
        make=lambda threads: ReferenceTarget(),
        blocks=score_some_blocks,
        kernels=_interpreted,
        splits={
            "antidiagonal": ("whole", "short", "scores"),
            "tiles": ("whole",),
            "public": ("auto", "linear", "many"),
        },
    ),
    "cpu": AlignmentTarget(
        make=CpuTarget,
        blocks=score_blocks_kernel,
        kernels=_compiled,
        splits={
            "inter_sequence": ("whole", "threads"),
            "antidiagonal": ("whole", "short", "scores", "threads"),
            "tiles": ("whole", "scores", "threads"),
            "public": ("auto", "full", "linear", "many", "threads"),
        },
    ),
}


def alignment_combinations() -> Iterator[AlignmentCombination]:
    """Every combination that makes sense.

    Without paths, other code is compiled, which takes as long again: only in the lanes that the package uses.
    """
    for problem in ALIGNMENT_PROBLEMS.values():
        for schedule in problem.schedules:
            for name, target in ALIGNMENT_TARGETS.items():
                for kernel in target.kernels(schedule, problem.ends(schedule)):
                    for split in target.splits.get(schedule, ("whole",)):
                        combination = AlignmentCombination(problem.name, schedule, name, *kernel, split)
                        if split != "scores" or combination.target == "reference" or kernel[1] == _W16:
                            yield combination


def solve_alignment(combination: AlignmentCombination, batch: AlignmentBatch) -> list[Found] | None:
    """Run a combination; None if it cannot hold the scores, or is for others.

    Parameters
    ----------
    combination
        How.
    batch
        What. The schedules that sweep one query against many targets take the first query for all.
    """
    target = ALIGNMENT_TARGETS[combination.target]
    number = NUMBERS.get(combination.number)
    threads = _THREADS if combination.split == "threads" else 1
    match combination.schedule:
        case "row_sweep":
            return solve_rows(batch, interpreted=combination.target == "reference")
        case "public":
            walking = combination.split if combination.split in ("full", "linear") else "auto"
            return solve_public(batch, device=combination.target, traceback=walking, threads=threads)
        case "inter_sequence":
            linear = combination.form == "linear"
            if linear and not batch.linear:
                return None
            call, width = target.blocks, combination.width
            return solve_blocks(batch, call, number, width, linear=linear, threads=threads)
    form = SweepForm(number, combination.width, combination.form)
    keep = combination.split != "scores"
    if combination.schedule == "tiles":
        # Little memory, so that tiles are cut again and again down to a stripe.
        steps = reference_steps() if combination.target == "reference" else cpu_steps(threads)
        return solve_tiles(batch, steps, form._replace(stretch=2 * _SHORT), keep=keep)
    if combination.split == "short":
        form = form._replace(stretch=_SHORT)
    return solve_pairs(batch, target.make(threads), form, keep=keep)


_SCHEDULES = ("row_sweep", "inter_sequence", "antidiagonal", "tiles", "public")
#: Every problem, by name.
ALIGNMENT_PROBLEMS = {
    mode: AlignmentProblem(
        name=mode,
        inputs=alignment_batches(mode),
        edge_cases=edge_batches(mode),
        oracle=best_by_gotoh,
        schedules=_SCHEDULES,
    )
    for mode in ("global", "local", "semiglobal", "overlap", "extension")
}
