"""One descriptor per problem, and the parity matrix that is made from them.

A *combination* is a problem run by one schedule, with one algebra, on one target, in lane groups of one
width, split in one way. Every combination must give the oracle's answer. Adding a problem, an algebra, a
schedule, a target or a way of splitting is adding one entry to a table of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from support.answers import expected, expected_best
from support.cases import Answer, Batch, Junction, Pieces, make_germline, run_chain, run_enumeration
from support.strategies import batches, dp1_models, dp2_models

from plait.devices.target import CpuTarget, ReferenceTarget, Target
from plait.lang.algebras import BIG_COUNT, COUNT, EXACTNESS, MAX_PRODUCT, PROBABILITY, SATURATING_COUNT
from plait.lang.lanes import LANES, host_lanes
from plait.run.executor import Executor, LocalExecutor
from plait.vdj.models import PathModel

__all__ = [
    "ALGEBRAS",
    "PROBLEMS",
    "SELDOM",
    "SPLITS",
    "TARGETS",
    "WORKED_EXAMPLE",
    "AlgebraChoice",
    "Combination",
    "Problem",
    "SplitChoice",
    "TargetChoice",
    "combinations",
    "solve",
]


class AlgebraChoice(NamedTuple):
    """An algebra as the matrix uses it.

    Attributes
    ----------
    algebra
        The algebra.
    dtype
        Type of its values.
    grouped
        Whether its operations take groups of lanes.
    """

    algebra: Any
    dtype: Any
    grouped: bool

    @property
    def exactness(self) -> str:
        """``"bitwise"`` or ``"ulp"``."""
        return EXACTNESS[type(self.algebra)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetChoice:
    """A target as the matrix uses it.

    Attributes
    ----------
    make
        Makes it.
    widths
        Widths of lane groups that are worth running, by algebra and meaning of rows. Where code is compiled,
        each of them takes seconds, so that only those stand here that the package uses, and some beside.
    """

    make: Callable[[], Target]
    widths: Mapping[tuple[str, str], tuple[int, ...]]


class SplitChoice(NamedTuple):
    """A way of splitting as the matrix uses it.

    Attributes
    ----------
    pieces
        Makes the pieces of a batch of so many items.
    executor
        Makes what runs them; none runs them one by one.
    """

    pieces: Callable[[int], Pieces]
    executor: Callable[[], Executor] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem.

    Attributes
    ----------
    name
        Its name.
    inputs
        Where inputs come from.
    edge_cases
        Inputs that are always tried.
    oracle
        The right answer; what it leaves out is not compared.
    schedules
        Names of the schedules that solve it.
    algebras
        Names of the algebras in which the answer is meant.
    rows
        What lanes are: ``"models"`` or ``"insertions"``.
    benchmark_sizes
        Numbers of junctions at which speed is measured.
    """

    name: str
    inputs: st.SearchStrategy[Batch]
    edge_cases: tuple[Batch, ...]
    oracle: Callable[[Batch], Answer]
    schedules: tuple[str, ...] = ("chain_product",)
    algebras: tuple[str, ...] = ("count", "saturating_count", "big_count", "probability")
    rows: str = "models"
    benchmark_sizes: tuple[int, ...] = (10_000, 100_000)


class Combination(NamedTuple):
    """One cell of the matrix: names of its parts."""

    problem: str
    schedule: str
    target: str
    algebra: str
    width: int
    split: str

    @property
    def id(self) -> str:
        """Name of a test of it."""
        return f"{self.problem}-{self.schedule}-{self.target}-{self.algebra}-{self.width}-{self.split}"

    @property
    def seldom(self) -> bool:
        """Whether what it runs is compiled in ``make test-all`` alone."""
        return self.schedule != "enumeration" and (self.target, self.algebra, self.width) in SELDOM


ALGEBRAS = {
    "count": AlgebraChoice(COUNT, np.int64, True),
    "saturating_count": AlgebraChoice(SATURATING_COUNT, np.int64, False),
    "big_count": AlgebraChoice(BIG_COUNT, object, True),
    "probability": AlgebraChoice(PROBABILITY, np.float64, True),
    "max_product": AlgebraChoice(MAX_PRODUCT, np.float64, True),
}

_HOST = host_lanes().width
TARGETS = {
    "reference": TargetChoice(
        make=ReferenceTarget,
        widths={
            (name, rows): tuple(LANES) if name == "count" else (1, 8) if choice.grouped else (1,)
            for name, choice in ALGEBRAS.items()
            for rows in ("models", "insertions")
        },
    ),
    "cpu": TargetChoice(
        make=lambda: CpuTarget(1),
        widths={
            ("count", "models"): (1, _HOST),
            ("count", "insertions"): (_HOST,),
            ("saturating_count", "models"): (1,),
            ("probability", "models"): (_HOST,),
            ("max_product", "models"): (_HOST,),
        },
    ),
}

#: Kernels that the package never calls, by target, algebra and width: 15 s each, in ``make test-all`` alone.
#: These algebras are compiled in the weighted chain, all others and lanes of one number interpreted.
SELDOM = {
    ("cpu", "count", 1),
    ("cpu", "saturating_count", 1),
    ("cpu", "probability", _HOST),
    ("cpu", "max_product", _HOST),
}

#: How a batch of n junctions is cut up, and what runs the pieces.
SPLITS: Mapping[str, SplitChoice] = {
    "whole": SplitChoice(lambda n: [(0, n)]),
    "single": SplitChoice(lambda n: [(k, k + 1) for k in range(n)]),
    "backwards": SplitChoice(lambda n: [(n // 2, n), (0, n // 2)]),
    "local": SplitChoice(lambda n: [(k, k + 1) for k in range(n)], lambda: LocalExecutor(2)),
}


def combinations() -> Iterator[Combination]:
    """Every combination that makes sense; ways of splitting are tried with one algebra and width."""
    for problem in PROBLEMS.values():
        for schedule in problem.schedules:
            for target, choice in TARGETS.items():
                if schedule == "enumeration":
                    yield Combination(problem.name, schedule, target, "count", 1, "whole")
                    continue
                for algebra in problem.algebras:
                    for width in sorted(set(choice.widths.get((algebra, problem.rows), ()))):
                        yield Combination(problem.name, schedule, target, algebra, width, "whole")
                for split in SPLITS:
                    if split != "whole":
                        yield Combination(problem.name, schedule, target, problem.algebras[0], _HOST, split)


def solve(combination: Combination, batch: Batch) -> Answer:
    """Run a combination.

    Parameters
    ----------
    combination
        How.
    batch
        What.
    """
    target = TARGETS[combination.target].make()
    split = SPLITS[combination.split]
    pieces = split.pieces(len(batch.junctions))
    if combination.schedule == "enumeration":
        return run_enumeration(batch, target, pieces=pieces)
    choice = ALGEBRAS[combination.algebra]
    return run_chain(
        batch,
        target,
        choice.algebra,
        LANES[combination.width],
        dtype=choice.dtype,
        pieces=pieces,
        executor=split.executor() if split.executor else None,
    )


#: The worked example of the models' description.
WORKED_EXAMPLE = Batch(
    make_germline(["ACCTGCAGTGCAGA"], ["GGGACAGGGGGC"], ["CAAACACAGAAGTCTTC"]),
    PathModel(),
    (Junction("ACCTGCAGTGCAGACCTGGGGAACACAGAAGTCTTC"),),
)


def _edge_cases(locus: str, *models: PathModel) -> tuple[Batch, ...]:
    """Nothing to read, genes shorter than their palindromes, many D genes, codes, and a real junction."""
    d = [] if locus == "TRA" else ["G", "GGACT"]
    many = [*d, "GGGACTGGGGGGGC", "ATATATATAT", "GGRACC", "CCATTC", "TGGACTATG"] if locus == "TRB" else d
    tiny = make_germline(["A", "ACGT"], many, ["TGA", "CCATTC"], locus=locus)
    coded = make_germline(["ANRT"], d[1:], ["CSWTTY"], locus=locus)
    example = WORKED_EXAMPLE.germline
    genes = ["ACCTGCAGTGCAGA"], [a.sequence for a in example.d] if d else [], ["CAAACACAGAAGTCTTC"]
    real = make_germline(*genes, locus=locus)
    reads = ("", "A", "TGA", "ACGTCCATTC", "ACGTACGTCCTGGACTATGGCCATTC"[: 14 if locus == "TRD" else None])
    items = tuple(Junction(read, k % 2, k // 2 % 2) for k, read in enumerate((*reads, *reversed(reads))))
    codes = (Junction("NNNNNN"), Junction("ANGTGGASWCCTTY"), Junction("ACKTRNYSTTC"))
    return tuple(
        Batch(*parts)
        for model in models
        for parts in ((tiny, model, items), (coded, model, codes), (real, model, WORKED_EXAMPLE.junctions))
    )


_SMALL_DP1 = PathModel(name="dp1", pi=2, max_n=2)
_SMALL_DP2 = PathModel(pi=2, nu=2, nu_dj=1, sweep_pi=(0, 1, 3))
_SWEEP = PathModel(pi=4, nu=2, sweep_pi=(0, 4), sweep_nu=(0, 1, 2))

#: Every problem, by name.
PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem(
            name="exhaustive",
            inputs=batches("vdj", dp1_models(name="exhaustive", pi=2, most=2), longest=4, most=2),
            edge_cases=_edge_cases("TRB", PathModel(name="exhaustive", pi=2, max_n=1)),
            oracle=expected,
            schedules=("enumeration",),
            algebras=("count",),
            benchmark_sizes=(1,),
        ),
        Problem(
            name="dp1",
            inputs=batches("vdj", dp1_models(), codes=True),
            edge_cases=_edge_cases("TRB", _SMALL_DP1),
            oracle=expected,
            rows="insertions",
        ),
        Problem(
            name="dp2-one-strand",
            inputs=batches("vdj", dp2_models(strands=1), codes=True),
            edge_cases=_edge_cases("TRB", _SMALL_DP2, _SWEEP),
            oracle=expected,
        ),
        Problem(
            name="dp2-two-strands",
            inputs=batches("vdj", dp2_models(strands=2), codes=True),
            edge_cases=_edge_cases("TRB", replace(_SWEEP, strands=2)),
            oracle=expected,
        ),
        Problem(
            name="dp2-best",
            inputs=batches("vdj", dp2_models(), codes=True),
            edge_cases=_edge_cases("TRB", _SMALL_DP2),
            oracle=expected_best,
            algebras=("max_product",),
        ),
        Problem(
            name="vj-dp1",
            inputs=batches("vj", dp1_models(), codes=True),
            edge_cases=_edge_cases("TRA", _SMALL_DP1),
            oracle=expected,
            rows="insertions",
        ),
        Problem(
            name="vj-dp2",
            inputs=batches("vj", dp2_models(), codes=True),
            edge_cases=_edge_cases("TRA", _SMALL_DP2),
            oracle=expected,
        ),
        Problem(
            name="vddj-dp1",
            inputs=batches("vddj", dp1_models(pi=2, most=2), codes=True, longest=3, most=2),
            edge_cases=_edge_cases("TRD", replace(_SMALL_DP1, pi=1))[:2],
            oracle=expected,
            rows="insertions",
            benchmark_sizes=(1_000, 10_000),
        ),
        Problem(
            name="vddj-dp2",
            inputs=batches("vddj", dp2_models(pi=2, nu=2), codes=True, longest=4, most=2),
            edge_cases=_edge_cases("TRD", _SMALL_DP2),
            oracle=expected,
            benchmark_sizes=(1_000, 10_000),
        ),
    )
}
