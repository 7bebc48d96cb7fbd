"""Every kind of finding, made by one change to a set that has none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.vdj.germline import Allele, Finding, GermlineSet, bundled_germlines, load_germline, validate

_BUNDLED = load_germline("mouse_trb")
#: Without pseudogenes, and TRBJ1-6, whose motif is FAAG.
CLEAN = replace(
    _BUNDLED,
    v=tuple(v for v in _BUNDLED.v if v.functionality == "F"),
    j=tuple(j for j in _BUNDLED.j if j.functionality == "F" and j.gene != "TRBJ1-6"),
)


def found(germline: GermlineSet) -> list[tuple[str, str, str]]:
    return [(f.severity, f.kind, f.allele) for f in validate(germline)]


def with_v(**changes: object) -> GermlineSet:
    return replace(CLEAN, v=(replace(CLEAN.v[0], **changes), *CLEAN.v[1:]))  # type: ignore[arg-type]


def with_j(**changes: object) -> GermlineSet:
    return replace(CLEAN, j=(replace(CLEAN.j[0], **changes), *CLEAN.j[1:]))  # type: ignore[arg-type]


V, J = CLEAN.v[0], CLEAN.j[0]
assert V.anchor is not None
assert J.anchor is not None


def test_a_clean_set_has_no_findings() -> None:
    assert validate(CLEAN) == []


def test_what_the_bundled_sets_have() -> None:
    human = [f for f in validate(load_germline("human_tra")) if f.kind == "anchor_codon"]
    assert [f.allele for f in human] == ["TRAJ35*01"]
    assert "TGC (C), not F or W" in human[0].message
    beta = [f for f in validate(load_germline("human_trb")) if f.kind == "duplicate_sequence"]
    assert [(f.allele, f.message) for f in beta] == [("TRBV6-3*01", "has the sequence of TRBV6-2*01")]
    for name in bundled_germlines():
        germline = load_germline(name)
        pseudogenes = {a.name for a in germline.alleles() if a.functionality == "P"}
        assert {f.allele for f in validate(germline) if f.kind == "stop_codon"} == pseudogenes


@pytest.mark.parametrize(
    ("germline", "expected"),
    [
        (with_v(anchor=None), ("warning", "missing_anchor", "TRBV1*01")),
        (with_j(anchor=None), ("warning", "missing_anchor", "TRBJ1-1*01")),
        (with_v(anchor=len(V.sequence) - 2), ("error", "anchor_range", "TRBV1*01")),
        (with_v(anchor=-3), ("error", "anchor_range", "TRBV1*01")),
        (with_v(anchor=V.anchor + 3), ("warning", "anchor_codon", "TRBV1*01")),
        (with_j(anchor=J.anchor + 6), ("warning", "anchor_codon", "TRBJ1-1*01")),
        (with_v(sequence="A" + V.sequence, anchor=V.anchor + 1), ("warning", "anchor_frame", "TRBV1*01")),
        (with_j(sequence=J.sequence + "A"), ("warning", "anchor_frame", "TRBJ1-1*01")),
        (with_j(anchor=J.anchor - 3), ("warning", "anchor_motif", "TRBJ1-1*01")),
        (with_v(anchor=V.anchor - 30), ("warning", "cdr3_end_length", "TRBV1*01")),
        (with_v(sequence=V.sequence[: V.anchor + 3]), ("warning", "cdr3_end_length", "TRBV1*01")),
        (with_v(sequence=V.sequence[60:], anchor=V.anchor - 60), ("warning", "sequence_length", "TRBV1*01")),
        (with_v(sequence=CLEAN.v[1].sequence), ("warning", "duplicate_sequence", "TRBV2*01")),
        (with_v(name="TRBV2*01"), ("error", "duplicate_name", "TRBV2*01")),
        (with_v(sequence=V.sequence + "Z"), ("error", "invalid_symbol", "TRBV1*01")),
        (with_v(sequence="", anchor=None), ("error", "empty_sequence", "TRBV1*01")),
        (with_v(sequence="TAA" + V.sequence[3:]), ("warning", "stop_codon", "TRBV1*01")),
        (with_v(sequence="TAA" + V.sequence[3:], anchor=None), ("warning", "stop_codon", "TRBV1*01")),
        (with_j(sequence=J.sequence[:-4] + "TGAC"), ("warning", "stop_codon", "TRBJ1-1*01")),
        (with_v(name="TRAV1*01"), ("warning", "locus", "TRAV1*01")),
        (replace(CLEAN, locus=""), ("error", "locus", "")),
        (replace(CLEAN, v=()), ("error", "missing_segment", "")),
        (replace(CLEAN, j=(), d_j_order={}), ("error", "missing_segment", "")),
        (replace(CLEAN, d_j_order={"TRBD3": ("TRBJ1",)}), ("error", "order_rule", "TRBD3")),
        (replace(CLEAN, d_j_order={"TRBD2": ("TRBJ3",)}), ("error", "order_rule", "TRBD2")),
        (replace(CLEAN, d_d_order=(("TRBD1", "TRBD9"),)), ("error", "order_rule", "TRBD9")),
        (replace(CLEAN, notes=("said by a reader",)), ("note", "note", "")),
    ],
)
def test_findings(germline: GermlineSet, expected: tuple[str, str, str]) -> None:
    assert expected in found(germline)


def test_a_stop_where_joining_can_trim_it_is_none() -> None:
    # Mouse TRBV4 ends in ..AGC TAA GA, and several J genes begin with TAA.
    assert next(a for a in CLEAN.v if a.gene == "TRBV4").sequence.endswith("AGCTAAGA")
    assert not [f for f in validate(CLEAN) if f.kind == "stop_codon"]


def test_shared_v_genes_of_tra_and_trd_are_no_strangers() -> None:
    j = Allele(name="TRDJ1*01", gene="TRDJ1", segment="J", sequence=J.sequence, anchor=J.anchor)
    germline = replace(load_germline("human_tra"), locus="TRD", j=(j,), c=())
    assert "locus" not in {f.kind for f in validate(germline)}


def test_errors_come_first_and_notes_last() -> None:
    germline = replace(with_v(anchor=None, name="TRBV2*01"), notes=("n",))
    severities = [f.severity for f in validate(germline)]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert len(set(severities)) == 3


def test_a_finding_is_a_value() -> None:
    one = Finding(kind="k", severity="note", allele="", message="m")
    assert one == Finding(kind="k", severity="note", allele="", message="m")
