"""`plait.vdj.explain`: the matches it reports, and what lifting a limit does, against counting itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from support.cases import make_germline
from support.examples import often

from plait.alphabets import reverse_complement
from plait.errors import InvalidInput
from plait.reports.count_text import explanation_text
from plait.vdj import Explanation, count_paths, explain
from plait.vdj.explanation import longest_d, match_j, match_v
from plait.vdj.germline import load_germline

JUNCTION = "TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC"
MOUSE = load_germline("mouse_trb")


def count(junction: str, v: str, j: str, germline: Any = MOUSE, **parameters: Any) -> int:
    counts = count_paths(
        [junction], [v], [j], germline=germline, overflow="wide", device="reference", **parameters
    )
    return int(counts.path_count[0])


@pytest.mark.slow
def test_counts_and_regions_are_those_of_counting(mouse_rows: Any) -> None:
    rows = mouse_rows(25)
    columns = [rows[name] for name in ("junction", "v_call", "j_call")]
    counts = count_paths(*columns, germline=MOUSE, device="reference")
    for k, (junction, v, j) in enumerate(zip(*columns, strict=True)):
        told = explain(junction, v, j, germline=MOUSE)
        region = {name: int(values[k]) for name, values in counts.regions.items()}
        assert (told.path_count, told.no_d_paths) == (counts.path_count[k], counts.no_d[k])
        assert [d.paths for d in told.d] == counts.by_d[k].tolist()
        assert (told.v.matched, told.j.matched) == (region["v_match_length"], region["j_match_length"])
        assert told.vj_gap == region["vj_gap"]
        assert told.v.palindromic == region["p3v_length"] and told.j.palindromic == region["p5j_length"]
        assert told.longest_d_match == region["d_match_length"]
        places = [
            place.junction_start
            for d in told.d
            if d.allowed and d.match.length == told.longest_d_match
            for place in d.match.places
        ]
        assert min(places) == region["d_match_start"]
        assert max(places) + told.longest_d_match == region["d_match_end"]
        assert explanation_text(told)


def test_ends_laid_along_a_junction() -> None:
    germline = make_germline(["TGTGCA"], ["ACGT"], ["CCATTC"])
    v, j = germline.v[0], germline.j[0]
    whole = match_v("TGTGCATGNCCATTC", v, 3)
    assert whole.sequence == "TGTGCA" + reverse_complement("GCA").lower()
    # The N of the junction takes in the P nucleotide opposite.
    assert (whole.matched, whole.palindromic, whole.mismatch, whole.complete) == (9, 3, None, True)
    cut = match_v("TGTGCGTGCCCATTC", v, 3)
    assert (cut.matched, cut.palindromic, cut.mismatch, cut.complete) == (5, 0, 5, False)
    assert cut.symbol_at(5) == "A"
    tail = match_j("TGTGCAGGCCATTC", j, 3)
    assert (tail.sequence, tail.start) == ("tggCCATTC", 5)
    assert (tail.matched, tail.palindromic, tail.mismatch) == (8, 2, 5)
    longer = match_j("CATTC", j, 2)
    assert (longer.start, longer.matched, longer.mismatch, longer.complete) == (-3, 5, None, True)
    found = longest_d("TTACGTTTACGTAA", germline.d[0], 2)
    assert found.sequence == "gtACGTac"
    assert [found.piece(place) for place in found.places] == ["tACGTa"] and found.length == 6
    assert found.places[0].junction_start == 7 and found.places[0].d_start == -1
    assert longest_d("GG", replace(germline.d[0], sequence="AAAA"), 0).places == ()


@pytest.mark.slow
@pytest.mark.parametrize("nu", [2, 10])
def test_a_lifted_limit_is_a_count_without_it(nu: int) -> None:
    told = explain(JUNCTION, "TRBV13-1", "TRBJ2-7", germline=MOUSE, nu=nu)
    lifted = {item.limit: item for item in told.lifted}
    size = len(JUNCTION)
    args = (JUNCTION, "TRBV13-1", "TRBJ2-7")
    assert lifted["nu_vd"].path_count == count(*args, nu=nu, nu_vd=size)
    assert lifted["nu_dj"].path_count == count(*args, nu=nu, nu_dj=size)
    assert (lifted["nu_vd"].before, lifted["nu_vd"].after) == (nu, size)
    # Forgiving the first difference is counting with a germline set that has the junction's symbol there.
    index = MOUSE.resolve("TRBV13-1", "V")
    assert index is not None
    allele = MOUSE.v[index]
    at = (allele.anchor or 0) + 12
    changed = replace(allele, sequence=allele.sequence[:at] + "T" + allele.sequence[at + 1 :])
    other = replace(MOUSE, v=tuple(changed if a is allele else a for a in MOUSE.v))
    assert lifted["v_mismatch"].before == "G"
    assert count(*args, germline=other, nu=nu) <= lifted["v_mismatch"].path_count
    assert explain(*args, germline=other, nu=nu).v.matched > told.v.matched
    best = told.most_constraining
    assert best is not None and best.path_count == max(item.path_count for item in told.lifted)


def zero_cases() -> list[tuple[str, dict[str, int]]]:
    far = JUNCTION[:30] + "TCAGTTGGGACTGGAGTTGGGAC" * 2 + JUNCTION[-20:]
    return [
        (far, {}),
        (JUNCTION, {"nu": 0}),
        (JUNCTION, {"nu": 3, "nu_vd": 0}),
        (far, {"pi": 0, "strands": 2}),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("junction", "parameters"), often(1, zero_cases()))
def test_the_smallest_limits_are_the_smallest(junction: str, parameters: dict[str, int]) -> None:
    args = (junction, "TRBV13-1", "TRBJ2-7")
    told = explain(*args, germline=MOUSE, **parameters)
    if told.path_count:
        assert (told.smallest_nu, told.smallest_pi) == (None, None)
        return
    rest = {key: value for key, value in parameters.items() if not key.startswith("nu")}
    assert told.smallest_nu is not None
    assert count(*args, nu=told.smallest_nu, **rest) > 0
    assert told.smallest_nu == 0 or count(*args, nu=told.smallest_nu - 1, **rest) == 0
    if told.smallest_pi is not None:
        assert count(*args, **{**parameters, "pi": told.smallest_pi}) > 0
    for item in told.lifted:
        if item.smallest is not None:
            limits = {"nu_vd": parameters.get("nu", 10), "nu_dj": parameters.get("nu", 10)} | parameters
            assert count(*args, **{**limits, item.limit: item.smallest}) > 0
            assert item.smallest == 0 or count(*args, **{**limits, item.limit: item.smallest - 1}) == 0
    text = " ".join(explanation_text(told).split())
    assert "Why the count is 0" in text and f"above 0: {told.smallest_nu} (now" in text


def test_other_chains() -> None:
    tra = explain("TGTGCTGTGAGAGAGCAACATGCTCACCTTT", "TRAV1-2", "TRAJ39", germline="human_tra", nu=1)
    assert (tra.chain, tra.d) == ("vj", ()) and tra.path_count == tra.no_d_paths
    assert {item.limit for item in tra.lifted} <= {"nu", "v_mismatch", "j_mismatch"}
    trd = make_germline(["TGTGCA"], ["ACGT", "GGA"], ["CCATTC"], locus="TRD", d_d_order=(("TRDD1", "TRDD2"),))
    told = explain("TGTGCAACGTTGGACCATTC", "TRDV1", "TRDJ1", germline=trd)
    assert told.chain == "vddj" and told.path_count > 0
    assert "sum over pairs of D alleles" in explanation_text(told)


def test_everything_is_json() -> None:
    told = explain(JUNCTION.lower().replace("t", "u"), "TRBV13-1", "TRBJ2-7", germline=MOUSE)
    assert isinstance(told, Explanation) and told.junction == JUNCTION
    facts = json.loads(json.dumps(told.as_dict()))
    assert facts["path_count"] == 13488875 and facts["model"]["pi"] == 4
    assert facts["d"][1]["match"]["length"] == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "dp1"}, "expected a single dp2 model"),
        ({"sweep_nu": (1, 2)}, "expected a single dp2 model"),
        ({"nu": -1}, "nu: found -1"),
        ({"chain": "vj", "germline": "nothing"}, "expected one of human_igh"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        explain(JUNCTION, "TRBV13-1", "TRBJ2-7", **({"germline": MOUSE} | options))


def test_an_allele_without_an_anchor() -> None:
    bare = replace(MOUSE, v=tuple(replace(allele, anchor=None) for allele in MOUSE.v))
    with pytest.raises(InvalidInput, match="whose conserved codon is not known"):
        explain(JUNCTION, "TRBV13-1", "TRBJ2-7", germline=bare)
