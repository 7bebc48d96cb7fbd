"""FASTA trios: headers, gaps, files found by folder or prefix, and broken ones."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.examples import often

from plait.errors import FormatError, InvalidInput
from plait.vdj.germline import (
    GermlineSet,
    bundled_germlines,
    load_germline,
    read_fasta,
    read_fasta_trio,
    validate,
    write_fasta_trio,
)
from plait.vdj.germline.fasta import find_trio, read_header
from plait.vdj.germline.germline_set import SEGMENTS

V = "GATGGGTACAAGGCCACCAGAACAACGCAAGAAGACTTCTTCCTCCTGCTGGAATTGGCTTCTCCCTCTCAGACATCTTTGTACTTCTGTGCCAGCAGTGATG"
V_ANCHOR = V.index("TGTGCCAGC")
J = "TAACTATGCTGAGCAGTTCTTCGGACCAGGGACACGACTCACCGTCCTAG"


def trio(folder: Path, v: str, j: str = f">TRBJ2-1*01\n{J}\n", d: str = "") -> tuple[Path, Path, Path | None]:
    (folder / "TRBV.fasta").write_text(v)
    (folder / "TRBJ.fasta").write_text(j)
    if d:
        (folder / "TRBD.fasta").write_text(d)
    return folder / "TRBV.fasta", folder / "TRBJ.fasta", folder / "TRBD.fasta" if d else None


@pytest.mark.parametrize(
    ("header", "name", "functionality"),
    [
        ("TRBV1*01", "TRBV1*01", None),
        ("TRBV1*01 some words | no field", "TRBV1*01", None),
        ("TRBV1*01|Mus musculus|F", "TRBV1*01", None),
        ("my id | TRBV1*01 | Mus musculus | F |", "TRBV1*01", "F"),
        ("x|mine|Mus musculus|F", "mine", "F"),
        ("TRBV1*01 some words", "TRBV1*01", None),
        ("X01642|TRBV1*01|Mus musculus|F|V-REGION|1..285|", "TRBV1*01", "F"),
        ("X01642|TRBV1*01|Mus musculus_C57BL/6|[F]|V-REGION|", "TRBV1*01", "F"),
        ("X01642|TRBV1*01|Mus musculus|ORF|", "TRBV1*01", "ORF"),
        ("X01642|TRBV1*01|Mus musculus|(P)|", "TRBV1*01", "P"),
        ("X01642|TRBV1*01|Mus musculus||", "TRBV1*01", None),
        ("X01642|TRBV1*01", "TRBV1*01", None),
        ("", "", None),
    ],
)
def test_headers(header: str, name: str, functionality: str | None) -> None:
    assert read_header(header) == (name, functionality)


def test_gapped_and_lower_case(tmp_path: Path) -> None:
    gapped = "." * (309 - V_ANCHOR - 12) + V[:40].lower() + "." * 12 + V[40:]
    plain = "\n".join(V[i : i + 20] for i in range(0, len(V), 20))
    v, j, d = trio(
        tmp_path, f">a|TRBV13-1*01|x|F|\n{gapped}\n\n>TRBV2*01\n{plain}\n", d=">TRBD1*01\nGGGACAGGGGGC\n"
    )
    germline = read_fasta_trio(v, j, d, species="mouse")
    first, second = germline.v
    assert (first.sequence, first.anchor, first.anchor_source, first.functionality) == (
        V,
        V_ANCHOR,
        "gapped",
        "F",
    )
    assert (second.sequence, second.anchor, second.anchor_source) == (V, V_ANCHOR, "motif")
    assert (germline.name, germline.species, germline.locus) == ("TRB", "Mus musculus", "TRB")
    assert germline.d[0].anchor is None
    assert germline.source == "FASTA TRBV.fasta, TRBD.fasta, TRBJ.fasta"


def test_a_shifted_alignment_does_not_win_over_the_motif(tmp_path: Path) -> None:
    # One codon more before the Cys than the numbering has, as in macaque alignments of human columns.
    gapped = "." * (309 - V_ANCHOR + 3) + V
    v, j, _ = trio(tmp_path, f">TRBV1*01\n{gapped}\n>TRBV2*01\n{gapped.replace('TTCTGTGCC', 'TTCAGTGCC')}\n")
    first, second = read_fasta_trio(v, j).v
    assert (first.anchor, first.anchor_source) == (V_ANCHOR, "motif")
    # Without any Cys the columns are all there is.
    assert (second.anchor, second.anchor_source) == (V_ANCHOR - 3, "gapped")


def test_alleles_without_anchor_stay(tmp_path: Path) -> None:
    v, j, _ = trio(tmp_path, f">TRBV1*01\n{V}\n>TRBV2*01\n{V[:30]}\n", ">TRBJ1-1*01\nACGTACGTACGTACGTACGT\n")
    germline = read_fasta_trio(v, j)
    assert [a.anchor for a in germline.v] == [V_ANCHOR, None]
    assert [a.cdr3_end for a in germline.j] == [None]
    missing = [f.allele for f in validate(germline) if f.kind == "missing_anchor"]
    assert missing == ["TRBV2*01", "TRBJ1-1*01"]


def test_one_file_with_all_segments(tmp_path: Path) -> None:
    path = tmp_path / "all.fa"
    path.write_text(f">TRBJ2-1*01\n{J}\n>TRBD1*01\nGGGACAGGGGGC\n>TRBV1*01\n{V}\n>TRBV2*01\n{V}\n")
    germline = read_fasta(path)
    assert [a.name for a in germline.alleles()] == ["TRBV1*01", "TRBV2*01", "TRBD1*01", "TRBJ2-1*01"]
    assert germline.name == "all"


@pytest.mark.parametrize("name", often(3, bundled_germlines()))
def test_round_trip(tmp_path: Path, name: str) -> None:
    germline = load_germline(name)
    written = write_fasta_trio(germline, tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in written)
    table = tmp_path / f"{name}_anchors.csv"
    again = load_germline(tmp_path / name, anchors=table, species=germline.species, locus=germline.locus)
    assert replace(again, d_d_order=germline.d_d_order).digest == without_regions(germline).digest
    assert again.name == name
    assert {a.anchor_source for a in again.v} == {"override"}


def without_regions(germline: GermlineSet) -> GermlineSet:
    """What FASTA can hold of a set: no regions and no aliases."""
    v, d, j, c = (tuple(replace(a, regions=None, aliases=()) for a in germline.alleles(s)) for s in SEGMENTS)
    return replace(germline, v=v, d=d, j=j, c=c)


@pytest.mark.parametrize(("name", "stem"), [("human_trb", "human_trb"), ("../.x/y", "_.x_y")])
def test_a_folder_gets_files_with_the_name_of_the_set(tmp_path: Path, name: str, stem: str) -> None:
    (tmp_path / "out").mkdir()
    written = write_fasta_trio(replace(load_germline("human_trb"), name=name), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert sorted(written) == sorted((tmp_path / "out").iterdir())
    assert tmp_path / "out" / f"{stem}V.fasta" in written


def test_a_device_is_no_common_start_of_names(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="device or pipe"):
        write_fasta_trio(load_germline("human_trb"), tmp_path / "pipe")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_round_trip_without_anchors(tmp_path: Path) -> None:
    germline = without_regions(load_germline("mouse_trb"))
    bare = [replace(alleles[1], anchor=None, anchor_source="none") for alleles in (germline.v, germline.j)]
    germline = replace(
        germline,
        v=(germline.v[0], bare[0], *germline.v[2:]),
        j=(germline.j[0], replace(bare[1], functionality="ORF"), *germline.j[2:]),
    )
    write_fasta_trio(germline, tmp_path / "x")
    again = load_germline(tmp_path / "x", anchors=tmp_path / "x_anchors.csv", species=germline.species)
    assert again.digest == germline.digest
    assert [again.v[1].anchor, again.j[1].anchor] == [None, None]
    assert f"{bare[1].name},,ORF\n" in (tmp_path / "x_anchors.csv").read_text()


def test_files_by_folder_and_prefix(tmp_path: Path) -> None:
    names = ("V.fasta", "J.fa", "d.fna.gz", "mouse_TRB.V.fasta", "mouse_TRB_J.fasta", "notes.txt", "V.txt")
    for name in names:
        (tmp_path / name).write_bytes(gzip.compress(b">x") if name.endswith("gz") else b">x")
    assert {s: p.name for s, p in find_trio(tmp_path / "mouse_TRB").items()} == {
        "V": "mouse_TRB.V.fasta",
        "J": "mouse_TRB_J.fasta",
    }
    with pytest.raises(InvalidInput, match=r"found V FASTA files: V\.fasta, mouse_TRB\.V\.fasta"):
        find_trio(tmp_path)
    for name in names[3:5]:
        (tmp_path / name).unlink()
    assert {s: p.name for s, p in find_trio(tmp_path).items()} == {
        "V": "V.fasta",
        "D": "d.fna.gz",
        "J": "J.fa",
    }
    (tmp_path / "J.fa").unlink()
    with pytest.raises(InvalidInput, match="found J FASTA files: none"):
        find_trio(tmp_path)


def test_a_set_named_after_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "rat"
    folder.mkdir()
    (folder / "V.fasta").write_text(f">TRBV1*01\n{V}\n")
    (folder / "J.fasta").write_text(f">TRBJ1-1*01\n{J}\n")
    assert load_germline(folder).name == "rat"


@pytest.mark.parametrize(
    ("v", "message"),
    [
        ("", "found an empty file, expected a FASTA file"),
        ("ACGT\n", "line 1: found 'ACGT', expected a header line"),
        ("# words\n>TRBV1*01\nACGT\n", "line 1: found '# words'"),
        (">\nACGT\n", "line 1: found a header without a name"),
        (">x||y|F|\nACGT\n", "line 1: found a header without a name"),
        (">TRBV1*01\nACGT\n>TRBV2*01\n>TRBV3*01\nA\n", r"line 3: found an empty sequence in TRBV2\*01"),
        (">TRBV1*01\nACGT\n>TRBV2*01\nAC!T\n", r"line 3: found symbol\(s\) '!' in TRBV2"),
        (">TRBV1*01\nMEAAVTQSP\n", r"line 1: found symbol\(s\) 'EQP' in TRBV1"),
        (">TRBV1*01\nACGT\n>TRBV1*01\nACGT\n", "line 3: found a second sequence in TRBV1"),
        (">TRBJ1*01\nACGT\n", r"line 1: found J allele 'TRBJ1\*01', expected V alleles"),
    ],
)
def test_broken_files_are_said(tmp_path: Path, v: str, message: str) -> None:
    paths = trio(tmp_path, v)
    with pytest.raises(FormatError, match=message) as caught:
        read_fasta_trio(paths[0], paths[1])
    assert caught.value.path == str(paths[0])


def test_a_name_without_a_segment_needs_files_of_their_own(tmp_path: Path) -> None:
    v, j, _ = trio(tmp_path, f">mydv7\n{V}\n")
    assert read_fasta_trio(v, j).v[0].name == "mydv7"
    with pytest.raises(FormatError, match="line 1: found allele 'mydv7', expected a name with V, D, J or C"):
        read_fasta(v)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    v, _, _ = trio(tmp_path, f">TRBV1*01\n{V}\n")
    with pytest.raises(FormatError, match="no such file"):
        read_fasta_trio(v, tmp_path / "none.fasta")


def test_not_strict_keeps_what_validate_reports(tmp_path: Path) -> None:
    v, j, _ = trio(tmp_path, ">TRBV1*01\nACZT\n>TRBV1*01\nACGT\n>TRBV2*01\n")
    germline = read_fasta_trio(v, j, strict=False)
    assert [a.sequence for a in germline.v] == ["ACZT", "ACGT", ""]
    kinds = {f.kind for f in validate(germline) if f.severity == "error"}
    assert kinds == {"invalid_symbol", "duplicate_name", "empty_sequence"}
