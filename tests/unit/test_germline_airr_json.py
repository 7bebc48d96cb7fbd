"""AIRR Germline Set files: our own, those of other makers, and broken ones."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from support.examples import often

from plait.errors import FormatError, InvalidInput
from plait.vdj.germline import (
    GermlineSet,
    bundled_germlines,
    load_germline,
    read_airr_json,
    validate,
    write_airr_json,
)

# Mouse TRBV13-1*01 from its 62nd codon on, and TRBJ2-1*01.
V = "GATGGGTACAAGGCCACCAGAACAACGCAAGAAGACTTCTTCCTCCTGCTGGAATTGGCTTCTCCCTCTCAGACATCTTTGTACTTCTGTGCCAGCAGTGATG"
V_ANCHOR = V.index("TGTGCCAGCAGTGATG")
J = "TAACTATGCTGAGCAGTTCTTCGGACCAGGGACACGACTCACCGTCCTAG"
J_ANCHOR = 19


def description(label: str, segment: str, sequence: str, **more: Any) -> dict[str, Any]:
    content = {
        "allele_description_id": f"X:{label}",
        "acknowledgements": None,
        "label": label,
        "sequence": sequence,
        "coding_sequence": sequence,
        "locus": "TRB",
        "sequence_type": segment,
        "functional": True,
        "inference_type": "Rearranged only",
        "aliases": None,
    }
    return content | more


def delineation(cdr3_start: int | None, **more: Any) -> dict[str, Any]:
    return {"sequence_delineation_id": "1", "delineation_scheme": "IMGT", "cdr3_start": cdr3_start} | more


def write(path: Path, *descriptions: dict[str, Any], **more: Any) -> Path:
    content = {
        "germline_set_id": "X:1",
        "release_version": 3,
        "germline_set_name": "made up",
        "germline_set_ref": "X:1.3",
        "species": {"id": "NCBITAXON:10090", "label": "Mus musculus"},
        "locus": "TRB",
        "allele_descriptions": list(descriptions),
    }
    path.write_text(json.dumps({"GermlineSet": [content | more]}))
    return path


def read(tmp_path: Path, *descriptions: dict[str, Any], **more: Any) -> GermlineSet:
    return read_airr_json(write(tmp_path / "set.json", *descriptions, **more))


@pytest.mark.parametrize("name", often(3, bundled_germlines()))
def test_round_trip(tmp_path: Path, name: str) -> None:
    germline = load_germline(name)
    write_airr_json(germline, tmp_path / "set.json")
    again = read_airr_json(tmp_path / "set.json")
    assert again == germline
    assert again.digest == germline.digest
    write_airr_json(again, tmp_path / "again.json")
    # What only a release has (date, acknowledgements, curation) is not part of a set.
    assert (tmp_path / "again.json").read_text() == (tmp_path / "set.json").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.json", "set.json"]


def test_what_the_schema_requires_is_written(tmp_path: Path) -> None:
    write_airr_json(load_germline("mouse_trb"), tmp_path / "set.json")
    (content,) = json.loads((tmp_path / "set.json").read_text())["GermlineSet"]
    assert {
        "germline_set_id", "acknowledgements", "release_version", "release_description", "release_date",
        "germline_set_name", "germline_set_ref", "species", "locus", "allele_descriptions",
    } <= content.keys()  # fmt: skip
    for allele in content["allele_descriptions"]:
        assert {
            "allele_description_id", "acknowledgements", "release_version", "release_date",
            "release_description", "label", "sequence", "coding_sequence", "locus", "sequence_type",
            "functional", "inference_type", "species",
        } <= allele.keys()  # fmt: skip
        for d in allele.get("v_gene_delineations", ()):
            assert d["unaligned_sequence"][d["cdr3_start"] - 4 : d["cdr3_start"] - 1] in ("TGT", "TGC")
        if allele["sequence_type"] == "J":
            start = allele["j_cdr3_end"] - 1
            assert allele["coding_sequence"][start : start + 3] in ("TTT", "TTC", "TGG", "CAT")  # TRBJ1-7
            # Codon position 1, 2 or 3 of the first base: so many bases are left before the next codon.
            assert start % 3 == (4 - allele["j_codon_frame"]) % 3


def test_a_file_of_another_maker(tmp_path: Path) -> None:
    leader, signal = "ATGGGCTCC", "CACAGTG"
    v = description(
        "TRBV13-1*01",
        "V",
        leader + V + signal,
        coding_sequence=V,
        gene_start=len(leader) + 1,
        gene_end=len(leader) + len(V),
        v_gene_delineations=[delineation(V_ANCHOR + 4, unaligned_sequence=V)],
        aliases=["old name", None],
    )
    j = description(
        "TRBJ2-1*01",
        "J",
        signal + J,
        coding_sequence=J,
        gene_start=len(signal) + 1,
        j_codon_frame=2,
        j_cdr3_end=len(signal) + J_ANCHOR + 1,
        functional=False,
    )
    germline = read(tmp_path, v, j)
    assert (germline.name, germline.species, germline.locus) == ("made up", "Mus musculus", "TRB")
    assert (germline.version, germline.source, germline.notes) == ("3", "X:1.3", ())
    assert (germline.v[0].sequence, germline.v[0].anchor) == (V, V_ANCHOR)
    assert (germline.v[0].anchor_source, germline.v[0].functionality) == ("given", "F")
    assert germline.v[0].aliases == ("old name",)
    assert (germline.j[0].anchor, germline.j[0].functionality) == (J_ANCHOR, "P")


@pytest.mark.parametrize(
    ("position", "offset", "note"),
    [
        (J_ANCHOR + 1, 7, "the first base of the conserved codon, counted in coding_sequence"),
        (J_ANCHOR, 7, "the last base of the CDR3, counted in coding_sequence"),
        (J_ANCHOR + 7, 7, "the last base of the CDR3, counted in sequence"),
        (J_ANCHOR, 0, "the last base of the CDR3"),
        (J_ANCHOR + 8, 7, None),
        (J_ANCHOR + 1, 0, None),
    ],
)
def test_both_meanings_of_j_cdr3_end(tmp_path: Path, position: int, offset: int, note: str | None) -> None:
    j = description(
        "TRBJ2-1*01",
        "J",
        "CACAGTG"[:offset] + J,
        coding_sequence=J,
        gene_start=offset + 1,
        j_cdr3_end=position,
    )
    germline = read(tmp_path, j)
    assert germline.j[0].anchor == J_ANCHOR
    assert len(germline.notes) == (note is not None)
    assert note is None or note in germline.notes[0]


def test_one_odd_j_follows_the_reading_of_its_file(tmp_path: Path) -> None:
    odd = "GATAGGCTTTGGGAATGTGCTGCATTGCGGGTCCGGCACTCAAGTGATTGTTTTACCAC"
    germline = read(
        tmp_path,
        description("TRBJ2-1*01", "J", J, j_cdr3_end=J_ANCHOR),
        description("TRBJ2-9*01", "J", odd, j_cdr3_end=25),
    )
    assert [a.anchor for a in germline.j] == [J_ANCHOR, 25]


def test_gapped_delineations(tmp_path: Path) -> None:
    aligned = "." * (309 - V_ANCHOR) + V
    both = delineation(V_ANCHOR + 1, unaligned_sequence=V, aligned_sequence=aligned)
    germline = read(
        tmp_path,
        description("TRBV1*01", "V", V, v_gene_delineations=[delineation(None, aligned_sequence=aligned)]),
        description("TRBV2*01", "V", V, v_gene_delineations=[both]),
        description("TRBV3*01", "V", V, v_gene_delineations=[delineation(999)]),
        description("TRBV4*01", "V", V[:20], v_gene_delineations=None),
        description("TRBV5*01", "V", V, v_gene_delineations=[delineation(V_ANCHOR + 7)]),
    )
    found = [(a.anchor, a.anchor_source) for a in germline.v]
    given_wrong = (V_ANCHOR + 3, "given")
    assert found == [
        (V_ANCHOR, "gapped"), (V_ANCHOR, "gapped"), (V_ANCHOR, "motif"), (None, "none"), given_wrong,
    ]  # fmt: skip
    assert len(germline.notes) == 2
    assert "TRBV2*01 does not follow a Cys" in germline.notes[0]
    assert "TRBV3*01 lies outside" in germline.notes[1]
    assert [f.allele for f in validate(germline) if f.kind == "anchor_codon"] == ["TRBV5*01"]


def test_a_gap_in_the_unaligned_sequence_is_counted_over(tmp_path: Path) -> None:
    unaligned = V[:10] + "..." + V[10:]
    v = description(
        "TRBV1*01",
        "V",
        V,
        v_gene_delineations=[delineation(V_ANCHOR + 7, unaligned_sequence=unaligned)],
    )
    assert read(tmp_path, v).v[0].anchor == V_ANCHOR


def test_shapes_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "set.json", description("TRBV1*01", "V", V), description("TRBJ2-1*01", "J", J))
    content = json.loads(path.read_text())
    digest = read_airr_json(path).digest
    (one,) = content["GermlineSet"]
    shapes = (
        {"Info": {"title": "x"}, "GermlineSet": [one]},
        {"GermlineSet": one},
        {"GermlineSet": {"X:1": one}},
        one,
        {
            "GermlineSet": [
                one | {"allele_descriptions": one["allele_descriptions"][:1]},
                one | {"allele_descriptions": one["allele_descriptions"][1:]},
            ]
        },
    )
    for shape in shapes:
        path.write_text(json.dumps(shape))
        assert read_airr_json(path).digest == digest
    path.write_text(json.dumps({"GermlineSet": [one, one | {"locus": "TRA"}]}))
    with pytest.raises(FormatError, match="TRA of Mus musculus; TRB of Mus musculus"):
        read_airr_json(path)


def test_constant_regions_are_genes_of_the_set(tmp_path: Path) -> None:
    germline = read(tmp_path, description("TRBV1*01", "V", V), description("TRBC1*01", "C", "ACGT"))
    assert [(a.name, a.anchor) for a in germline.c] == [("TRBC1*01", None)]
    assert germline.resolve("TRBC1", "C") == 0
    assert not germline.notes


def test_regions_of_a_delineation_are_read(tmp_path: Path) -> None:
    starts = {"cdr1_start": 10, "fwr2_start": 22, "cdr2_start": 40, "fwr3_start": 61}
    known = description("TRBV1*01", "V", V, v_gene_delineations=[delineation(None, **starts)])
    assert read(tmp_path, known).v[0].regions == (9, 21, 39, 60)
    # Positions that are missing, not in order or outside of the sequence are none.
    for wrong in ({"cdr1_start": None}, {"cdr1_start": 30}, {"fwr3_start": 10**6}):
        known["v_gene_delineations"] = [delineation(None, **starts | wrong)]
        assert read(tmp_path, known).v[0].regions is None


def test_a_known_joining_order_is_applied_and_said(tmp_path: Path) -> None:
    d = description("TRBD2*01", "D", "GGGACTGGGGGGGC")
    germline = read(tmp_path, d, description("TRBJ2-1*01", "J", J))
    assert germline.d_j_order == {"TRBD2": ("TRBJ2",)}
    assert "TRBD2 joins only TRBJ2" in germline.notes[0]
    assert read(tmp_path, d, species={"label": "Danio rerio"}).d_j_order == {}
    assert read(tmp_path, d, plait={}).d_j_order == {}


def test_joining_orders_round_trip(tmp_path: Path) -> None:
    d = description("TRBD2*01", "D", "GGGACTGGGGGGGC")
    ours = {"d_j_order": {"TRBD2": ["TRBJ1", "TRBJ2"]}, "d_d_order": [["TRBD1", "TRBD2"]]}
    germline = read(tmp_path, d, plait=ours)
    assert germline.d_j_order == {"TRBD2": ("TRBJ1", "TRBJ2")}
    assert germline.d_d_order == (("TRBD1", "TRBD2"),)
    write_airr_json(germline, tmp_path / "again.json")
    assert read_airr_json(tmp_path / "again.json") == germline


def test_an_anchor_that_was_taken_away_stays_away(tmp_path: Path) -> None:
    v = description("TRBV1*01", "V", V, plait={"anchor_source": "none", "functionality": "ORF"})
    germline = read(tmp_path, v, plait={})
    assert (germline.v[0].anchor, germline.v[0].functionality) == (None, "ORF")
    write_airr_json(germline, tmp_path / "again.json")
    assert read_airr_json(tmp_path / "again.json") == germline


def without(content: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in content.items() if k != key}


GOOD = description("TRBV1*01", "V", V)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (without(GOOD, "label"), r"column 'label': found nothing in allele_descriptions\[0\]"),
        (without(GOOD, "sequence_type"), "column 'sequence_type': found nothing in TRBV1"),
        (GOOD | {"sequence_type": "X"}, "found 'X' in TRBV1.01, expected 'V', 'D', 'J' or 'C'"),
        (GOOD | {"sequence": None, "coding_sequence": None}, "neither coding_sequence nor sequence in TRBV1"),
        (GOOD | {"coding_sequence": 5}, "found a number in TRBV1.01, expected a string"),
        (GOOD | {"coding_sequence": "ACGZ?"}, r"record 0: found symbol\(s\) 'Z\?' in TRBV1"),
        (GOOD | {"functional": "yes"}, "found 'yes' in TRBV1.01, expected true or false"),
        (GOOD | {"v_gene_delineations": 3}, "found a number in TRBV1.01, expected a list"),
        (GOOD | {"v_gene_delineations": [delineation(-1)]}, "column 'cdr3_start': found -1 in"),
        (GOOD | {"v_gene_delineations": ["x"]}, "found a string as v_gene_delineations"),
        (GOOD | {"aliases": "x"}, "found a string in TRBV1.01, expected a list of strings"),
        ("x", r"found a string as allele_descriptions\[0\]"),
    ],
)
def test_a_wrong_allele_is_said(tmp_path: Path, wrong: Any, message: str) -> None:
    path = write(tmp_path / "set.json", wrong)
    with pytest.raises(FormatError, match=message) as caught:
        read_airr_json(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: found no JSON"),
        ('{\n"a": 1,\n}', "line 3: found no JSON"),
        ("[]", "found a list as the file, expected an object"),
        ('{"Repertoire": []}', "found 'Repertoire', expected a key 'GermlineSet'"),
        ("{}", "found no key"),
        ('{"GermlineSet": []}', "expected a list of germline sets"),
        ('{"GermlineSet": [{"allele_descriptions": []}]}', "column 'locus': found nothing in germline set 0"),
        ('{"GermlineSet": [{"locus": "TRB"}]}', "column 'allele_descriptions': found nothing"),
        (
            '{"locus": "TRB", "allele_descriptions": [], "plait": {"d_j_order": {"D": 1}}}',
            "column 'd_j_order'",
        ),
        (
            '{"locus": "TRB", "allele_descriptions": [], "plait": {"d_d_order": [["D"]]}}',
            "column 'd_d_order'",
        ),
    ],
)
def test_a_wrong_file_is_said(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "set.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        read_airr_json(path)


def test_two_alleles_of_one_name(tmp_path: Path) -> None:
    path = write(tmp_path / "set.json", GOOD, GOOD)
    with pytest.raises(FormatError, match="record 1: found a second sequence in TRBV1"):
        read_airr_json(path)
    assert len(read_airr_json(path, strict=False).v) == 2


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    germline = load_germline("mouse_trb")
    with pytest.raises(InvalidInput, match="output: found"):
        write_airr_json(germline, tmp_path / "no" / "such" / "folder.json")
    (tmp_path / "taken").mkdir()
    with pytest.raises(InvalidInput, match="output: found"):
        write_airr_json(germline, tmp_path / "taken")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_a_locus_outside_the_schema_is_not_written(tmp_path: Path) -> None:
    germline = read(tmp_path, GOOD, locus="XYZ")
    with pytest.raises(InvalidInput, match="locus: found 'XYZ'"):
        write_airr_json(germline, tmp_path / "out.json")


def test_an_alignment_without_a_cys_does_not_overrule_what_is_given(tmp_path: Path) -> None:
    aligned = "." * (309 - V_ANCHOR + 3) + V
    wrong = delineation(V_ANCHOR + 7, unaligned_sequence=V, aligned_sequence=aligned)
    germline = read(tmp_path, description("TRBV1*01", "V", V, v_gene_delineations=[wrong]))
    assert (germline.v[0].anchor, germline.v[0].anchor_source) == (V_ANCHOR + 3, "given")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "set.json"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FormatError, match="no space left"):
        write_airr_json(load_germline("mouse_trb"), path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["set.json"]


def test_rna_and_gaps_are_read_as_dna(tmp_path: Path) -> None:
    rna = V.replace("T", "u").lower()
    germline = read(tmp_path, description("TRBV1*01", "V", rna, coding_sequence=f"{rna[:9]}...{rna[9:]}"))
    assert (germline.v[0].sequence, germline.v[0].anchor) == (V, V_ANCHOR)


def test_a_file_that_is_being_read_does_not_change_under_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text("old")
    with path.open() as reader:
        write_airr_json(load_germline("mouse_trb"), path)
        assert reader.read() == "old"
    assert read_airr_json(path) == load_germline("mouse_trb")
