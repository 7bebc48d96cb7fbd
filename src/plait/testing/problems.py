"""One descriptor per problem, and the parity matrix that is made from them.

A *combination* is a problem run by one schedule, with one algebra, on one target, in lane groups of one
width, in one piece or several. Every combination must give the oracle's answer. Adding a problem, an
algebra, a schedule, a target or a way of splitting is adding one entry to a table of this module.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from plait.algebras import BIG_COUNT, COUNT, EXACTNESS, MAX_PRODUCT, PROBABILITY, SATURATING_COUNT
from plait.lanes import LANES, host_lanes
from plait.targets.cpu import CpuTarget
from plait.targets.protocol import Target
from plait.targets.reference import ReferenceTarget
from plait.testing.cases import (
    Answer,
    Batch,
    Junction,
    Pieces,
    ends_of,
    make_germline,
    run_chain,
    run_enumeration,
)
from plait.testing.oracles import LETTERS, Dp2Counts, call_regions, count_dp1, count_dp2, enumerate_paths
from plait.testing.simulation import simulate_dp2
from plait.testing.strategies import batches, dp1_models, dp2_models
from plait.vdj.models import PathModel

__all__ = [
    "ALGEBRAS",
    "PROBLEMS",
    "SPLITS",
    "TARGETS",
    "WORKED_EXAMPLE",
    "AlgebraChoice",
    "Combination",
    "Problem",
    "TargetChoice",
    "combinations",
    "expected",
    "expected_best",
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

SPLITS: Mapping[str, Callable[[int], Pieces]] = {
    "whole": lambda n: [(0, n)],
    "single": lambda n: [(k, k + 1) for k in range(n)],
    "backwards": lambda n: [(n // 2, n), (0, n // 2)],
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
    pieces = SPLITS[combination.split](len(batch.junctions))
    if combination.schedule == "enumeration":
        return run_enumeration(batch, target, pieces=pieces)
    choice = ALGEBRAS[combination.algebra]
    return run_chain(
        batch, target, choice.algebra, LANES[combination.width], dtype=choice.dtype, pieces=pieces
    )


def expected(batch: Batch) -> Answer:
    """Region calls and counts of a batch, from the oracles.

    Region calls are part of it for all but the enumeration. DP-1 is its nested sums; the enumeration builds every string; DP-2 is the literal simulation, or the
    product of dense matrices where there are ambiguity codes, which the simulation does not know.

    Parameters
    ----------
    batch
        The batch.
    """
    model, chain = batch.model, batch.germline.chain
    answer: Answer = {"none": [], "full": []}
    if model.name != "exhaustive":
        answer["regions"] = []
    if model.name == "dp2":
        answer["empty"] = []
    if chain == "vddj":
        answer["pair"] = []
    for junction in batch.junctions:
        found = _dp2_of(batch, junction) if model.name == "dp2" else _by_n_of(batch, junction)
        found["regions"] = _regions_of(batch, junction)
        for name, values in answer.items():
            values.append(found[name])
    return answer


def _allowed(batch: Batch, junction: Junction) -> list[str | None]:
    """The D genes, None where this J may not have it."""
    allowed = batch.germline.allowed_d(batch.germline.j[junction.j])
    return [d.sequence if ok else None for d, ok in zip(batch.germline.d, allowed, strict=True)]


def _pairs(batch: Batch) -> list[tuple[str, str] | None]:
    """The pairs of D genes that a V-D-D-J chain is made of, None where they may not stand together."""
    d = batch.germline.d if batch.germline.chain == "vddj" else ()
    return [(a.sequence, b.sequence) if batch.germline.allowed_d_pair(a, b) else None for a in d for b in d]


def _regions_of(batch: Batch, junction: Junction) -> list[int]:
    v, j = ends_of(batch, junction)
    return list(call_regions(junction.sequence, v, _allowed(batch, junction), j, pi=max(batch.model.pis)))


def _by_n_of(batch: Batch, junction: Junction) -> Answer:
    """Counts by the number of N nucleotides."""
    v, j = ends_of(batch, junction)
    model = batch.model
    count = count_dp1 if model.name == "dp1" else enumerate_paths

    def paths(ds: tuple[str, ...]) -> list[int]:
        return count(junction.sequence, v, ds, j, pi=model.pi, most=model.max_n, empty_d=model.empty_d)

    nothing = [0] * (model.max_n + 1)
    return {
        "none": paths(()),
        "full": [nothing if d is None else paths((d,)) for d in _allowed(batch, junction)],
        "pair": [nothing if pair is None else paths(pair) for pair in _pairs(batch)],
    }


def _dp2_of(batch: Batch, junction: Junction) -> Answer:
    """Counts per model, nu within pi; simulated if all is A, C, G and T, else multiplied out."""
    v, j = ends_of(batch, junction)
    genes = (v, j, *(d.sequence for d in batch.germline.d), junction.sequence)
    count = simulate_dp2 if set("".join(genes)) <= set(LETTERS) else count_dp2
    return _dp2_answer(batch, junction, count)


def _dp2_answer(batch: Batch, junction: Junction, count: Callable[..., Dp2Counts]) -> Answer:
    v, j = ends_of(batch, junction)
    model = batch.model
    models = [(pi, limits) for pi in model.pis for limits in model.limits]

    def paths(ds: tuple[str, ...], kind: str) -> list[int]:
        counts = []
        for pi, (vd, dj, single) in models:
            limits = {0: (single,), 1: (vd, dj), 2: (vd, single, dj)}[len(ds)]
            found = count(junction.sequence, v, ds, j, pi=pi, limits=limits, strands=model.strands)
            counts.append(getattr(found, kind))
        return counts

    nothing = [0] * len(models)
    allowed = _allowed(batch, junction)
    return {
        "none": paths((), "full"),
        "full": [nothing if d is None else paths((d,), "full") for d in allowed],
        "empty": [nothing if d is None else paths((d,), "zero_d") for d in allowed],
        "pair": [nothing if pair is None else paths(pair, "full") for pair in _pairs(batch)],
    }


def expected_best(batch: Batch) -> Answer:
    """The largest product of weights of a DP-2 path, where the same fragments at the same place are one path.

    Parameters
    ----------
    batch
        The batch.
    """
    count = functools.partial(count_dp2, choose=max)
    found = [_dp2_answer(batch, junction, count) for junction in batch.junctions]
    return {name: [answer[name] for answer in found] for name in ("none", "full", "empty")}


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
    items = tuple(Junction(read, v, j) for read in reads for v in (0, 1) for j in (0, 1))
    codes = (Junction("NNNNNN"), Junction("ANGTGGASWCCTTY"), Junction("ACKTRNYSTTC"))
    return tuple(
        Batch(*parts)
        for model in models
        for parts in ((tiny, model, items), (coded, model, codes), (real, model, WORKED_EXAMPLE.junctions))
    )


_SMALL_DP1 = PathModel(name="dp1", pi=2, max_n=2)
_SMALL_DP2 = PathModel(pi=2, nu=2, nu_dj=1, sweep_pi=(0, 1, 3))
_SWEEP = PathModel(pi=4, nu=3, sweep_pi=(0, 4), sweep_nu=(0, 1, 2, 3))

#: Every problem, by name.
PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem(
            name="exhaustive",
            inputs=batches("vdj", dp1_models(name="exhaustive", pi=2, most=2), longest=4, most=2),
            edge_cases=(),
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
            edge_cases=(),
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
