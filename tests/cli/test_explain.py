"""``plait vdj explain``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plait.vdj import count_paths

JUNCTION = "TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC"
CALLS = ("--v", "TRBV13-1", "--j", "TRBJ2-7", "--germline", "mouse_trb")

DRAWING = """\
                     10        20        30
junction     TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC
TRBV13-1*01  TGTGCCAGCAGTGATGcatc
             ||||||||||||x
TRBD1*01                  GGGAC
TRBD2*01                  GGGACTGG
TRBJ2-7*01                ggagCTCCTATGAACAGTACTTC
                                 x|||||||||||||||
parts        VVVVVVVVVVVVNDDDDDDDDJJJJJJJJJJJJJJJ
"""


def test_a_count_drawn(plait: Any) -> None:
    found = plait("vdj", "explain", JUNCTION, *CALLS)
    assert (found.status, found.err) == (0, "")
    assert DRAWING in found.out
    counts = count_paths([JUNCTION], ["TRBV13-1"], ["TRBJ2-7"], germline="mouse_trb", device="reference")
    assert f"path count  {counts.path_count[0]:,}" in found.out
    for name, paths in zip(("TRBD1*01", "TRBD2*01"), counts.by_d[0], strict=True):
        assert any(line.split()[:2] == [name, f"{paths:,}"] for line in found.out.splitlines())
    assert "The most constraining step: N nucleotides between D and J" in found.out
    assert found.out.isascii() and max(map(len, found.out.splitlines())) <= 80


def test_the_germline_set_is_found_by_the_calls(plait: Any) -> None:
    found = plait("vdj", "explain", JUNCTION, *CALLS[:4])
    named = plait("vdj", "explain", JUNCTION, *CALLS)
    assert (found.status, found.err) == (0, "")
    line = "Germline set mouse_trb: the one bundled set that has both calls.\n"
    assert found.out.replace(line, "", 1) == named.out and line not in named.out
    told = plait("vdj", "explain", JUNCTION, *CALLS[:4], "--format", "json")
    assert json.loads(told.out)["germline"] == "mouse_trb"


@pytest.mark.parametrize(
    ("v", "j", "message"),
    [
        ("TRBV2", "TRBJ2-7", "both calls are in human_trb and mouse_trb, expected"),
        ("TRBV13-9", "TRBJ2-7", "'TRBV13-9' is in none, 'TRBJ2-7' is in human_trb and mouse_trb"),
        ("TRBV13-1", "TRAJ39", "'TRBV13-1' is in mouse_trb, 'TRAJ39' is in human_tra and mouse_tra"),
        ("", "?", "'' is in none, '?' is in none"),
    ],
)
def test_no_one_germline_set_has_the_calls(plait: Any, v: str, j: str, message: str) -> None:
    found = plait("vdj", "explain", JUNCTION, "--v", v, "--j", j)
    assert (found.status, found.out) == (2, "")
    assert message in found.err and "say which with --germline" in found.err and found.err.count("\n") == 1


def test_a_zero_explained(plait: Any) -> None:
    long = JUNCTION[:30] + "TCAGTTGGGACTGGAGTTGGGAC" * 3 + JUNCTION[-20:]
    found = plait("vdj", "explain", long, *CALLS)
    assert found.status == 0
    told = " ".join(found.out.split())
    assert "Why the count is 0: V and J leave a gap of 92 nt. The longest D match covers 8;" in told
    assert "N1 and N2 would have to fill 84, and nu allows 10 + 10." in told
    assert "Smallest nu with a count above 0: 46 (now 10)." in told
    assert "A larger pi alone does not help." in told
    # A long junction is drawn in blocks that fit.
    assert max(map(len, found.out.splitlines())) <= 80
    assert found.out.count("junction  ") == 2


def test_a_wrong_allele_suspected(plait: Any) -> None:
    other = "TGTTGGAGCAGT" + JUNCTION[12:]
    found = plait("vdj", "explain", other, *CALLS, "--nu", "3")
    told = " ".join(found.out.split())
    assert "TRBV13-1*01 already differs at nucleotide 4 of 36: junction T, germline G." in told
    assert "A wrong anchor, or an allele that the germline set lacks, looks like this." in told


def test_json(plait: Any) -> None:
    found = plait("vdj", "explain", JUNCTION, *CALLS, "--format", "json", "--nu-vd", "3")
    told = json.loads(found.out)
    assert told["model"]["nu_vd"] == 3
    assert (told["v"]["matched"], told["v"]["mismatch"]) == (12, 12)
    assert told["d"][1]["match"]["places"] == [{"junction_start": 13, "d_start": 0}]
    assert told["most_constraining"] in {lifted["limit"] for lifted in told["lifted"]}


def test_a_chain_without_d(plait: Any) -> None:
    words = ("TGTGCTGTGAGTGGGAACATGTTAACATTT", "--v", "TRAV1-2", "--j", "TRAJ39", "--germline", "human_tra")
    found = plait("vdj", "explain", *words)
    assert found.status == 0
    assert "parts: V, J germline; v, j palindromic" in found.out and "TRBD" not in found.out
    assert "N nucleotides between V and J" in found.out


@pytest.mark.parametrize(
    ("junction", "calls", "message"),
    [
        (
            JUNCTION,
            ("TRBV13-5", "TRBJ2-7"),
            "v_call: found 'TRBV13-5', expected a V gene or allele of mouse_trb",
        ),
        (JUNCTION, ("TRBV13-5", "TRBJ2-7"), "closest are TRBV13-3, TRBV13-2, TRBV13-1"),
        (JUNCTION, ("TRBV13-1", "TRBJ2-8"), "closest are TRBJ2-7"),
        (JUNCTION, ("TRBV13-1", "?"), "see plait germline show mouse_trb"),
        (JUNCTION, ("TRBV13-1,TRBV1", "TRBJ2-7"), "expected the name of one gene or allele"),
        (JUNCTION, ("", "TRBJ2-7"), "v_call: found '', expected the name of one"),
        ("TGTGC!TTC", ("TRBV1", "TRBJ2-7"), "'TGTGC!TTC': a symbol that is no IUPAC nucleotide code"),
        ("TGT", ("TRBV1", "TRBJ2-7"), "too short to hold both conserved codons"),
        ("ACGT" * 300, ("TRBV1", "TRBJ2-7"), "... (1200 nt)': far more nucleotides"),
        ("", ("TRBV1", "TRBJ2-7"), "junction: found '': nothing"),
    ],
)
def test_bad_input(plait: Any, junction: str, calls: tuple[str, str], message: str) -> None:
    found = plait("vdj", "explain", junction, "--v", calls[0], "--j", calls[1], "--germline", "mouse_trb")
    assert (found.status, found.out) == (2, "")
    assert message in found.err and found.err.count("\n") == 1
