"""Laws that path counts obey, whatever the genes: found without any oracle."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import Answer, Batch, Junction, make_germline, run_chain
from support.oracles import LETTERS, alike, end_ways, reverse_complement
from support.strategies import batches, dp1_models, dp2_models, lane_widths, sequences

from plait.devices.target import ReferenceTarget
from plait.lang.algebras import COUNT
from plait.lang.lanes import LANES
from plait.vdj.models import PathModel

pytestmark = pytest.mark.interpreted(alone=True)

ANY_CHAIN = st.sampled_from(("vj", "vdj", "vddj"))
COUNTS = ("full", "empty", "none", "pair")


def run(batch: Batch, width: int = 1) -> Answer:
    return run_chain(batch, ReferenceTarget(), COUNT, LANES[width])


def flat(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        yield from itertools.chain.from_iterable(map(flat, value))
    else:
        yield value


def counts(batch: Batch) -> list[int]:
    found = run(batch)
    return [count for name in COUNTS for count in flat(found[name])]


def of_any_chain(models: st.SearchStrategy[PathModel], *, codes: bool = True) -> st.SearchStrategy[Batch]:
    return ANY_CHAIN.flatmap(lambda chain: batches(chain, models, codes=codes, longest=5))


def single(pi: int, nu: int, strands: int = 1) -> PathModel:
    return PathModel(pi=pi, nu=nu, strands=strands)


@given(of_any_chain(st.just(PathModel())), st.integers(0, 3), st.integers(0, 3), st.sampled_from((1, 2)))
def test_more_freedom_never_takes_a_path_away(batch: Batch, pi: int, nu: int, strands: int) -> None:
    here = counts(replace(batch, model=single(pi, nu, strands)))
    for freer in (single(pi + 1, nu, strands), single(pi, nu + 1, strands), single(pi, nu, 2)):
        assert all(a <= b for a, b in zip(here, counts(replace(batch, model=freer)), strict=True))


@given(of_any_chain(dp2_models(strands=1)))
def test_a_second_strand_at_most_doubles_each_end(batch: Batch) -> None:
    one, two = run(batch), run(replace(batch, model=replace(batch.model, strands=2)))
    for name, ends in (("none", 2), ("full", 4), ("empty", 4), ("pair", 6)):
        for a, b in zip(flat(one[name]), flat(two[name]), strict=True):
            assert a <= b <= 2**ends * a


@given(of_any_chain(dp2_models(strands=1, pi=0)))
def test_without_extension_strands_do_not_matter(batch: Batch) -> None:
    assert counts(batch) == counts(replace(batch, model=replace(batch.model, strands=2)))


@given(of_any_chain(dp2_models()), lane_widths())
def test_a_sweep_holds_its_single_models(batch: Batch, width: int) -> None:
    swept = run(batch, width)
    model = batch.model
    for lane, (pi, nu) in enumerate(itertools.product(model.pis, model.nus)):
        alone = run(replace(batch, model=replace(model, pi=pi, nu=nu, sweep_pi=(), sweep_nu=())))
        assert [row[lane] for row in swept["none"]] == [row[0] for row in alone["none"]]
        for name in ("full", "empty", "pair"):
            picked = [[lanes[lane : lane + 1] for lanes in rows] for rows in swept[name]]
            assert picked == alone[name]


@given(batches("vdj", st.one_of(dp2_models(), dp1_models()), codes=True))
def test_a_d_gene_counts_as_if_it_were_alone(batch: Batch) -> None:
    together = run(batch)
    germline = batch.germline
    for f, d in enumerate(germline.d):
        alone = run(replace(batch, germline=replace(germline, d=(d,))))
        for name in ("full", "empty"):
            assert [rows[f] for rows in together[name]] == [rows[0] for rows in alone[name]]
        assert together["none"] == alone["none"]


@given(batches("vdj", st.one_of(dp2_models(), dp1_models()), codes=True))
def test_the_order_rule_removes_and_changes_nothing_else(batch: Batch) -> None:
    ruled = run(batch)
    free = run(replace(batch, germline=replace(batch.germline, d_j_order={})))
    for k, junction in enumerate(batch.junctions):
        allowed = batch.germline.allowed_d(batch.germline.j[junction.j])
        for f, ok in enumerate(allowed):
            for name in ("full", "empty"):
                assert ruled[name][k][f] == (free[name][k][f] if ok else [0] * len(free[name][k][f]))
        assert ruled["regions"][k][7] & ~sum(1 << f for f, ok in enumerate(allowed) if ok) == 0
        assert ruled["none"][k] == free["none"][k]


@given(batches("vddj", dp2_models(pi=2, nu=2), codes=True, longest=4))
def test_the_pair_rule_removes_and_changes_nothing_else(batch: Batch) -> None:
    d = batch.germline.d
    ruled, free = run(batch), run(replace(batch, germline=replace(batch.germline, d_d_order=None)))
    allowed = [batch.germline.allowed_d_pair(a, b) for a in d for b in d]
    for a, b in zip(ruled["pair"], free["pair"], strict=True):
        assert a == [row if ok else [0] * len(row) for row, ok in zip(b, allowed, strict=True)]
    assert ruled["full"] == free["full"]


def test_where_no_pair_may_join_there_is_no_chain_of_two() -> None:
    germline = make_germline(["ACGT"], ["GGA", "CCT"], ["TTC"], locus="TRD", d_d_order=())
    for model in (PathModel(pi=1, nu=2), PathModel(name="dp1", pi=1, max_n=2)):
        found = run(Batch(germline, model, (Junction("ACGGATTC"),)))
        assert any(flat(found["full"]))
        assert not any(flat(found["pair"]))


@given(batches("vdj", dp2_models(), codes=True))
def test_a_lost_d_is_one_of_the_paths(batch: Batch) -> None:
    found = run(batch)
    assert all(a <= b for a, b in zip(flat(found["empty"]), flat(found["full"]), strict=True))


@given(
    batches("vdj", st.just(PathModel()), codes=True),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from((1, 2)),
)
def test_a_lost_d_beside_an_empty_junction_is_no_d(batch: Batch, pi: int, nu: int, strands: int) -> None:
    # With one junction empty, the D process only multiplies by the ways to lose the whole gene.
    for limits in ({"nu_vd": nu, "nu_dj": 0}, {"nu_vd": 0, "nu_dj": nu}):
        found = run(replace(batch, model=PathModel(pi=pi, nu=nu, strands=strands, **limits)))
        for k, junction in enumerate(batch.junctions):
            allowed = batch.germline.allowed_d(batch.germline.j[junction.j])
            for f, d in enumerate(batch.germline.d):
                size = len(d.sequence)
                lost = sum(
                    end_ways(-t, pi, strands) * end_ways(t - size, pi, strands) for t in range(size + pi + 1)
                )
                assert found["empty"][k][f][0] == lost * found["none"][k][0] * allowed[f]


def turned(batch: Batch) -> Batch:
    """The same chains read on the other strand: V and J change places."""
    germline = batch.germline
    other = make_germline(
        [reverse_complement(a.cdr3_end or "") for a in germline.j],
        [reverse_complement(a.sequence) for a in germline.d],
        [reverse_complement(a.cdr3_end or "") for a in germline.v],
        locus=germline.locus,
    )
    items = tuple(Junction(reverse_complement(i.sequence), i.j, i.v) for i in batch.junctions)
    return replace(batch, germline=other, junctions=items)


@given(st.one_of(batches("vj", dp2_models(), codes=True), batches("vj", dp1_models(), codes=True)))
def test_v_j_chains_read_the_same_on_both_strands(batch: Batch) -> None:
    there, back = run(batch), run(turned(batch))
    assert there["none"] == back["none"]
    assert [row[:2] for row in there["regions"]] == [row[1::-1] for row in back["regions"]]


@given(batches("vdj", dp1_models(), codes=True))
def test_dp1_reads_the_same_on_both_strands(batch: Batch) -> None:
    # Not so DP-2, in which the D joins J first.
    free = replace(batch, germline=replace(batch.germline, d_j_order={}))
    there, back = run(free), run(turned(free))
    assert (there["full"], there["none"]) == (back["full"], back["none"])


def expansions(sequence: str) -> list[str]:
    return [
        "".join(letters)
        for letters in itertools.product(*([x for x in LETTERS if alike(x, s)] for s in sequence))
    ]


def coded(batch: Batch, places: tuple[int, ...], codes: str) -> tuple[Batch, list[Batch]]:
    """The first junction with codes put in, and a batch for each sequence that it may stand for."""
    item = batch.junctions[0]
    symbols = list(item.sequence)
    for place, code in zip(places, codes, strict=False):
        if symbols:
            symbols[place % len(symbols)] = code
    one = replace(batch, junctions=(replace(item, sequence="".join(symbols)),))
    return one, [replace(one, junctions=(replace(item, sequence=s),)) for s in expansions("".join(symbols))]


ADDITIVE = st.one_of(
    batches("vdj", dp2_models(pi=0)),
    batches("vj", dp2_models()),
    batches("vdj", dp1_models()),
    batches("vddj", dp2_models(pi=0, nu=2), longest=4),
)


@given(ADDITIVE, st.tuples(st.integers(0, 20), st.integers(0, 20)), st.sampled_from(("N", "R", "YB", "NW")))
def test_a_code_counts_what_its_nucleotides_count_together(
    batch: Batch, places: tuple[int, int], codes: str
) -> None:
    # Every path makes each symbol from one germline or N nucleotide, so that it fits one of them.
    one, each = coded(batch, places, codes)
    assert counts(one) == [sum(column) for column in zip(*map(counts, each), strict=True)]


@given(
    batches("vdj", dp2_models()),
    st.tuples(st.integers(0, 20), st.integers(0, 20)),
    st.sampled_from(("N", "RY")),
)
def test_a_mirrored_code_counts_at_least_as_much(batch: Batch, places: tuple[int, int], codes: str) -> None:
    # A palindrome in the read ties two symbols to each other; codes that only may be alike count as alike.
    one, each = coded(batch, places, codes)
    together = [sum(column) for column in zip(*map(counts, each), strict=True)]
    assert all(a >= b for a, b in zip(counts(one), together, strict=True))


@given(sequences(0, 6, codes=True))
def test_only_n_nucleotides(read: str) -> None:
    # Ends that match nothing are eroded away and leave the read to N nucleotides.
    germline = make_germline(["?"], [], ["???"], locus="TRA")
    for nu in range(len(read) + 1):
        (paths,) = flat(run(Batch(germline, PathModel(pi=0, nu=nu), (Junction(read),)))["none"])
        assert paths == (len(expansions(read)) if nu == len(read) else 0)
