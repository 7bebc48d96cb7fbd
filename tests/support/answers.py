"""The right answers to batches, put together from the oracles."""

from __future__ import annotations

import functools
from collections.abc import Callable

from support.cases import Answer, Batch, Junction, ends_of
from support.oracles import (
    LETTERS,
    Dp2Counts,
    call_regions,
    count_dp1,
    count_dp2,
    enumerate_paths,
    letter_counts,
)
from support.simulation import simulate_dp2

__all__ = ["expected", "expected_best"]


def expected(batch: Batch) -> Answer:
    """Region calls and counts of a batch, from the oracles.

    DP-1 is its nested sums; the enumeration, which calls no regions, builds every string; DP-2 is the literal
    simulation, or the product of dense matrices where there are ambiguity codes, of which the simulation
    knows nothing.

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


def _pairs(batch: Batch, junction: Junction) -> list[tuple[str, str] | None]:
    """The pairs of D genes of a V-D-D-J chain, None where the two, or the second and this J, do not join."""
    if batch.germline.chain != "vddj":
        return []
    first = batch.germline.d
    second = list(zip(first, _allowed(batch, junction), strict=True))
    may_join = batch.germline.allowed_d_pair
    return [(a.sequence, b.sequence) if ok and may_join(a, b) else None for a in first for b, ok in second]


def _regions_of(batch: Batch, junction: Junction) -> list[int]:
    """Columns of the region call, with the letters that are left over, in the order of the mask bits."""
    v, j = ends_of(batch, junction)
    read = junction.sequence
    call = call_regions(read, v, _allowed(batch, junction), j, pi=max(batch.model.pis))
    first, last = call.prefix_match, len(read) - call.suffix_match
    before, after = (call.fragment_start, call.fragment_end) if call.fragment_match else (last, last)
    tallies = [letter_counts(read, *span) for span in ((first, before), (after, last), (first, last))]
    return [*call, *(tally[letter] for tally in tallies for letter in "ATCG")]


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
        "pair": [nothing if pair is None else paths(pair) for pair in _pairs(batch, junction)],
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

    def paths(ds: tuple[str, ...]) -> list[Dp2Counts]:
        found = []
        for pi, (vd, dj, single) in models:
            limits = {0: (single,), 1: (vd, dj), 2: (vd, single, dj)}[len(ds)]
            found.append(count(junction.sequence, v, ds, j, pi=pi, limits=limits, strands=model.strands))
        return found

    nothing = [Dp2Counts(0, 0)] * len(models)
    with_d = [nothing if d is None else paths((d,)) for d in _allowed(batch, junction)]
    with_dd = [nothing if pair is None else paths(pair) for pair in _pairs(batch, junction)]
    return {
        "none": [found.full for found in paths(())],
        "full": [[found.full for found in row] for row in with_d],
        "empty": [[found.zero_d for found in row] for row in with_d],
        "pair": [[found.full for found in row] for row in with_dd],
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
