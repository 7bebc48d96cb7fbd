"""`plait.vdj.count_paths`: inputs, options, and what a row's counts are made of."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.cases import make_germline

from plait.alphabets import IUPAC_MASK
from plait.errors import CountOverflow, InvalidInput, Unsupported
from plait.vdj import STATUSES, PathCounter, PathModel, calls, count_paths
from plait.vdj.calls import encode_junctions
from plait.vdj.germline import load_germline

JUNCTION = "TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC"
CALLS = (["TRBV13-1"], ["TRBJ2-7"])
#: Each of the N nucleotides opposite these has four choices: more paths than 64 bits hold.
LARGE = JUNCTION[:12] + "N" * 40 + JUNCTION[-17:]
WIDE = {"nu": 40, "device": "reference"}
EXAMPLE = make_germline(
    ["ACCTGCAGTGCAGA"], ["GGGACAGGGGGC", "TTTT"], ["CAAACACAGAAGTCTTC"], d_j_order={"TRBD2": ("TRBJ9",)}
)


def status(counts: Any) -> list[str]:
    return [STATUSES[code] for code in counts.status]


def test_the_worked_example() -> None:
    read = "ACCTGCAGTGCAGACCTGGGGAACACAGAAGTCTTC"
    counts = count_paths([read], ["TRBV1"], ["TRBJ1"], germline=EXAMPLE, sweep_pi=(0, 2), sweep_nu=(3, 5))
    assert counts.path_count.tolist() == [8729500]
    assert (counts.by_d[0, 0], counts.zero_d_by_d[0, 0], counts.no_d[0]) == (8729500, 5062500, 250)
    assert counts.sweep_by_d[0, 0].tolist() == [[40, 776], [3294, 65799]]
    # D2 may not join J1: it is not counted, and no part of the sum.
    assert counts.allowed.tolist() == [[True, False]]
    assert counts.by_d[0, 1] == 0
    regions = {name: int(values[0]) for name, values in counts.regions.items()}
    assert (regions["v_match_length"], regions["j_match_length"], regions["vj_gap"]) == (14, 15, 7)


@pytest.mark.slow
def test_the_worked_example_by_insertions() -> None:
    read = "ACCTGCAGTGCAGACCTGGGGAACACAGAAGTCTTC"
    by_n = count_paths([read], ["TRBV1"], ["TRBJ1"], germline=EXAMPLE, model="dp1")
    assert by_n.by_n_by_d[0, 0].tolist() == [0, 0, 0, 2, 13, 47, 137, 400, 720, 1094, 1525]
    assert by_n.path_count.tolist() == [3938] == by_n.by_n_by_d.sum(axis=(1, 2)).tolist()


@pytest.mark.parametrize(
    "columns",
    [
        ([JUNCTION], *CALLS),
        ((JUNCTION,), *CALLS),
        tuple(np.array(column) for column in ([JUNCTION], *CALLS)),
        tuple(pa.array(column) for column in ([JUNCTION], *CALLS)),
        tuple(pa.chunked_array([column]) for column in ([JUNCTION], *CALLS)),
        tuple(pa.array(column).dictionary_encode() for column in ([JUNCTION], *CALLS)),
        (pa.table({"j_call": CALLS[1], "more": [1], "v_call": CALLS[0], "junction": [JUNCTION]}),),
        ({"junction": [JUNCTION], "v_call": CALLS[0], "j_call": CALLS[1]},),
    ],
    ids=["list", "tuple", "numpy", "arrow", "chunked", "dictionary", "table", "mapping"],
)
def test_kinds_of_columns(columns: tuple[Any, ...]) -> None:
    counts = count_paths(*columns, germline="mouse_trb", device="reference")
    assert counts.path_count.tolist() == [13488875]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([JUNCTION], ["TRBV1", "TRBV2"], ["TRBJ1-1"]), "found lengths 1, 2, 1, expected equal lengths"),
        (([1], ["TRBV1"], ["TRBJ1-1"]), "junctions: found list"),
        (([JUNCTION], None, ["TRBJ1-1"]), "v_call"),
        ((pa.table({"junction": [JUNCTION]}),), "expected a table with columns junction, v_call and j_call"),
        ((7,), "found int, expected a table"),
    ],
)
def test_wrong_columns(columns: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        count_paths(*columns, germline="mouse_trb")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda9"}, "device: found 'cuda9'"),
        ({"threads": 0}, "threads: found 0"),
        ({"overflow": "wrap"}, "overflow: found 'wrap'"),
        ({"chain": "vv"}, "chain: found 'vv'"),
        ({"ambiguous": "some"}, "ambiguous: found 'some'"),
        ({"model": "dp3"}, "model: found 'dp3'"),
        ({"colour": 1}, "colour: found an unknown parameter"),
        ({"model": PathModel(), "pi": 2}, "pi: found values beside a PathModel"),
        ({"germline": "nothing_trb"}, "expected one of human_igh"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        count_paths([JUNCTION], *CALLS, **({"germline": "mouse_trb"} | options))


@pytest.mark.slow
def test_many_letters_have_the_codes_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    column = pa.array([bytes(range(256)), b"TGTNacgu", None, b"", b"TGT\xff"], pa.large_binary())[1:]
    few = encode_junctions(column)
    monkeypatch.setattr(calls, "_MANY_LETTERS", 0)
    many = encode_junctions(column)
    assert all(map(np.array_equal, few, many))
    assert many.symbols[:8].tolist() == IUPAC_MASK[list(b"TGTNACGU")].tolist() and many.symbols[-1] == 0


def test_many_letters_are_encoded_without_numba() -> None:
    # Compiled here, if it is not kept, and loaded by another process.
    rows = calls._MANY_LETTERS // len(JUNCTION) + 1
    assert not encode_junctions(pa.array([JUNCTION] * rows)).status.any()
    program = (
        "import sys, pyarrow as pa; from plait.vdj.calls import encode_junctions; "
        f"encode_junctions(pa.array([{JUNCTION!r}] * {rows})); raise SystemExit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_no_rows() -> None:
    counts = count_paths([], [], [], germline="mouse_trb", sweep_nu=(0, 1))
    assert len(counts) == 0
    assert counts.by_d.shape == (0, 2) and counts.sweep_by_d.shape == (0, 2, 1, 2)


def test_rows_are_independent(mouse_rows: Any) -> None:
    rows = mouse_rows(30)
    rows["v_call"][3], rows["junction"][7], rows["j_call"][29] = "TRBV99", "ACGT!", ""
    columns = [rows[name] for name in ("junction", "v_call", "j_call")]
    counter = PathCounter("mouse_trb", device="reference")
    whole = counter.count(*(pa.array(column, pa.large_string()) for column in columns))
    assert np.flatnonzero(whole.status).tolist() == [3, 7, 29]
    for k in range(30):
        one = counter.count(*(pa.array([column[k]], pa.large_string()) for column in columns))
        assert one.status[0] == whole.status[k]
        assert one.by_d[0].tolist() == whole.by_d[k].tolist()
        assert all(one.regions[name][0] == whole.regions[name][k] for name in one.regions)
    bad = whole.status != 0
    assert not whole.path_count[bad].any() and not whole.allowed[bad].any()
    assert np.count_nonzero(whole.path_count) > 20


def test_targets_and_threads_agree(mouse_rows: Any) -> None:
    rows = mouse_rows(60)
    columns = [rows[name] for name in ("junction", "v_call", "j_call")]
    found = [
        count_paths(*columns, germline="mouse_trb", sweep_pi=range(5), sweep_nu=range(11), **options)
        for options in ({"device": "reference"}, {"threads": 1}, {"threads": 3})
    ]
    for other in found[1:]:
        for name in ("path_count", "by_d", "zero_d_by_d", "no_d", "sweep_by_d", "zero_d_sweep_by_d"):
            assert np.array_equal(getattr(found[0], name), getattr(other, name))
        assert all(np.array_equal(found[0].regions[name], other.regions[name]) for name in other.regions)
    assert [counts.provenance.device for counts in found] == ["reference", "cpu", "cpu"]
    assert found[0].provenance.parameters["sweep_nu"] == list(range(11))


def test_a_list_of_calls_is_summed_over_its_pairs() -> None:
    germline = load_germline("mouse_trb")
    pairs = [(v, j) for v in ("TRBV13-1", "TRBV13-2", "TRBV13-3") for j in ("TRBJ2-7", "TRBJ1-1")]
    single = count_paths(
        [JUNCTION] * 6, [v for v, _ in pairs], [j for _, j in pairs], germline=germline, device="reference"
    )
    several = count_paths(
        [JUNCTION],
        ["TRBV13-1,TRBV13-2,TRBV13-3"],
        ["TRBJ2-7,TRBJ1-1"],
        germline=germline,
        ambiguous="all",
        device="reference",
    )
    assert several.path_count[0] == single.path_count.sum()
    assert several.by_d[0].tolist() == single.by_d.sum(axis=0).tolist()
    # D2 joins one of the two J genes: it is allowed, and its paths are those with that J.
    assert several.allowed.tolist() == [[True, True]]
    assert several.regions["v_match_length"][0] == single.regions["v_match_length"][0]


@pytest.mark.slow
def test_a_sum_over_calls_that_overflows_is_noticed() -> None:
    # Each of the four counts fits, their sum does not.
    for size in range(24, 40):
        junction = JUNCTION[:12] + "N" * size + JUNCTION[-17:]
        one = count_paths([junction], CALLS[0], CALLS[1], germline="mouse_trb", overflow="wide", **WIDE)
        if one.path_count[0] >= 2**62:
            break
    assert one.path_count[0] >= 2**62
    copies = replace(
        load_germline("mouse_trb"),
        v=tuple(
            replace(allele, name=f"{allele.gene}*0{copy}")
            for allele in load_germline("mouse_trb").v
            for copy in (1, 2, 3, 4)
        ),
    )
    call = [",".join(f"TRBV13-1*0{copy}" for copy in (1, 2, 3, 4))]
    found = count_paths([junction], call, CALLS[1], germline=copies, ambiguous="all", **WIDE)
    assert status(found) == ["count_overflow"]
    wide = count_paths([junction], call, CALLS[1], germline=copies, ambiguous="all", overflow="wide", **WIDE)
    assert wide.path_count[0] == 4 * one.path_count[0] > 2**63


def test_overflow_is_a_status_a_float_a_wide_number_or_an_error() -> None:
    columns = ([JUNCTION, LARGE], CALLS[0] * 2, CALLS[1] * 2)
    null = count_paths(*columns, germline="mouse_trb", **WIDE)
    assert status(null) == ["ok", "count_overflow"]
    wide = count_paths(*columns, germline="mouse_trb", overflow="wide", **WIDE)
    assert status(wide) == ["ok", "ok"]
    assert wide.path_count[0] == null.path_count[0]
    assert wide.path_count[1] == sum(wide.by_d[1].tolist()) > 2**63
    real = count_paths(*columns, germline="mouse_trb", overflow="float", **WIDE)
    assert real.path_count.dtype == np.float64
    assert real.path_count[1] == pytest.approx(float(wide.path_count[1]), rel=1e-12)
    with pytest.raises(CountOverflow, match=r"1 item\(s\), the first at record 1") as caught:
        count_paths(*columns, germline="mouse_trb", overflow="raise", **WIDE)
    assert (caught.value.record, caught.value.items) == (1, 1)


def test_chain_without_d() -> None:
    junction = "TGTGCTGTGAGAGAGCAACATGCTCACCTTT"
    tra = count_paths([junction], ["TRAV1-2"], ["TRAJ39"], germline="human_tra", device="reference")
    assert tra.by_d.shape == (1, 0) and tra.path_count[0] == tra.no_d[0] > 0
    trb = load_germline("mouse_trb")
    for model in ("dp2", "dp1"):
        as_vj = count_paths(
            [JUNCTION], *CALLS, germline=trb, model=model, chain="vj", nu=12, device="reference"
        )
        bare = replace(trb, d=())
        assert as_vj.path_count.tolist() == [
            count_paths([JUNCTION], *CALLS, germline=bare, model=model, nu=12, device="reference").path_count[
                0
            ]
        ]
        assert as_vj.by_d.shape == (1, 0) and as_vj.pair_allowed.shape == (1, 0)
    assert as_vj.by_n_by_d.shape == (1, 0, 11)


def test_chain_with_two_d() -> None:
    germline = make_germline(
        ["TGTGCA"], ["ACGT", "GGA"], ["CCATTC"], locus="TRD", d_d_order=(("TRDD1", "TRDD2"),)
    )
    read = "TGTGCAACGTTGGACCATTC"
    for model in ("dp2", "dp1"):
        counts = count_paths([read], ["TRDV1"], ["TRDJ1"], germline=germline, model=model, device="reference")
        assert counts.by_dd.shape == (1, 4)
        assert counts.pair_allowed.tolist() == [[False, True, False, False]]
        assert counts.path_count[0] == counts.by_dd[0, 1] > 0
        assert counts.by_dd[0, [0, 2, 3]].tolist() == [0, 0, 0]
    with pytest.raises(Unsupported, match="two D genes"):
        count_paths([read], ["TRDV1"], ["TRDJ1"], germline=germline, model="exhaustive")
    with pytest.raises(InvalidInput, match="the germline set has no D alleles"):
        count_paths([read], ["TRAV1-2"], ["TRAJ39"], germline="human_tra", chain="vddj")
