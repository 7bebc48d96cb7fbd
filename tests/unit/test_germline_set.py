"""Germline sets as values, the bundled ones, and what loads by name or path."""

from __future__ import annotations

import gzip
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from plait.errors import FormatError, InvalidInput
from plait.vdj.germline import (
    Allele,
    GermlineSet,
    find_j_anchor,
    find_v_anchor,
    load_germline,
    validate,
    write_airr_json,
    write_fasta_trio,
)
from plait.vdj.germline.germline_set import SEGMENTS


@pytest.mark.parametrize(
    ("name", "chain", "sizes"),
    [
        ("human_igh", "vdj", (202, 31, 8, 9)),
        ("human_igk", "vj", (68, 0, 7, 1)),
        ("human_igl", "vj", (83, 0, 9, 7)),
        ("human_tra", "vj", (68, 0, 67, 1)),
        ("human_trb", "vdj", (76, 3, 14, 2)),
        ("human_trd", "vddj", (13, 3, 4, 1)),
        ("human_trg", "vj", (11, 0, 4, 2)),
        ("mouse_igh", "vdj", (247, 16, 8, 8)),
        ("mouse_igk", "vj", (137, 0, 9, 1)),
        ("mouse_igl", "vj", (5, 0, 4, 4)),
        ("mouse_tra", "vj", (154, 0, 49, 1)),
        ("mouse_trb", "vdj", (29, 2, 16, 2)),
        ("mouse_trd", "vddj", (22, 2, 2, 1)),
        ("mouse_trg", "vj", (7, 0, 4, 4)),
    ],
)
def test_bundled(name: str, chain: str, sizes: tuple[int, int, int, int]) -> None:
    germline = load_germline(name)
    assert (germline.name, germline.chain) == (name, chain)
    assert tuple(len(germline.alleles(segment)) for segment in SEGMENTS) == sizes
    assert not [f for f in validate(germline) if f.severity == "error"]
    for allele in germline.v:
        assert allele.anchor_source == "gapped" or allele.anchor == find_v_anchor(allele.sequence)
        assert allele.anchor is not None
    for allele in germline.j:
        assert allele.anchor == find_j_anchor(allele.sequence)
        assert allele.anchor is not None
    assert germline.notes == ()


def test_mouse_trb_ends_have_the_lengths_of_the_published_models() -> None:
    # Published without the conserved codons: V 11 to 14, J 16 to 22, D 12 and 14.
    germline = load_germline("mouse_trb")
    v, j = ([a for a in part if a.functionality == "F"] for part in (germline.v, germline.j))
    assert {len(a.cdr3_end or "") for a in v} == set(range(14, 18))
    assert {len(a.cdr3_end or "") for a in j} <= set(range(19, 26))
    assert [len(a.cdr3_end or "") for a in germline.d] == [12, 14]


def test_d_j_order() -> None:
    for name, variants in (("mouse_trb", 1), ("human_trb", 2)):
        germline = load_germline(name)
        for j in germline.j:
            assert germline.allowed_d(j) == (True,) + (j.gene.startswith("TRBJ2"),) * variants
    free = replace(load_germline("mouse_trb"), d_j_order={})
    assert all(free.allowed_d(j) == (True, True) for j in free.j)


def a_j(gene: str) -> Allele:
    return Allele(name=f"{gene}*01", gene=gene, segment="J", sequence="ACGT")


def a_d(gene: str) -> Allele:
    return Allele(name=f"{gene}*01", gene=gene, segment="D", sequence="ACGT")


def test_an_order_prefix_ends_at_a_number() -> None:
    germline = GermlineSet(
        name="x",
        species="",
        locus="TRB",
        version="",
        source="",
        v=(),
        d=(a_d("TRBD1"), a_d("TRBD2")),
        j=(),
        d_j_order={"TRBD2": ("TRBJ2", "TRBJ3-1*01")},
    )
    assert germline.allowed_d(a_j("TRBJ2-1")) == (True, True)
    assert germline.allowed_d(a_j("TRBJ2")) == (True, True)
    assert germline.allowed_d(a_j("TRBJ20")) == (True, False)
    assert germline.allowed_d(a_j("TRBJ3-1")) == (True, True)
    assert germline.allowed_d(a_j("TRBJ3-2")) == (True, False)


def test_d_d_order_and_chain() -> None:
    germline = GermlineSet(
        name="x",
        species="",
        locus="TRD",
        version="",
        source="",
        v=(),
        d=(a_d("TRDD1"), a_d("TRDD2")),
        j=(),
        d_d_order=(("TRDD1", "TRDD2"),),
    )
    first, second = germline.d
    assert germline.chain == "vddj"
    assert germline.allowed_d_pair(first, second)
    assert not germline.allowed_d_pair(second, first)
    assert replace(germline, d_d_order=None).allowed_d_pair(second, first)
    assert replace(germline, d=()).chain == "vj"


def test_cdr3_ends() -> None:
    v = Allele(name="V", gene="V", segment="V", sequence="AAATGTGCC", anchor=3)
    j = replace(v, segment="J", sequence="CCTTTGGG", anchor=2)
    assert (v.cdr3_end, j.cdr3_end) == ("TGTGCC", "CCTTT")
    assert replace(v, segment="D", anchor=None).cdr3_end == "AAATGTGCC"
    assert replace(v, anchor=None).cdr3_end is None


def test_the_digest_covers_what_can_change_a_result() -> None:
    germline = load_germline("mouse_trb")
    v = germline.v[0]
    other = (
        replace(germline, v=germline.v[::-1]),
        replace(germline, v=germline.v[1:]),
        replace(germline, v=(replace(v, anchor=0), *germline.v[1:])),
        replace(germline, v=(replace(v, sequence=v.sequence + "A"), *germline.v[1:])),
        replace(germline, v=(replace(v, name="TRBV1*09"), *germline.v[1:])),
        replace(germline, v=(replace(v, aliases=("other",)), *germline.v[1:])),
        replace(germline, d_j_order={}),
        replace(germline, d_d_order=()),
        replace(germline, species="Homo sapiens"),
    )
    digests = [germline.digest, *(changed.digest for changed in other)]
    assert len(set(digests)) == len(digests)
    same = replace(germline, name="a", version="b", source="c", notes=("d",))
    assert same.digest == germline.digest
    assert hash(same) == hash(germline)
    assert len(germline.digest) == 64


@pytest.mark.slow
def test_the_digest_does_not_depend_on_the_process() -> None:
    code = "from plait.vdj.germline import load_germline; print(load_germline('human_trb').digest)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == load_germline("human_trb").digest


@pytest.mark.slow
def test_importing_is_light() -> None:
    # The parent package is stood in for, so that what it imports itself does not count.
    code = (
        "import importlib.util, sys, types; "
        "folder = importlib.util.find_spec('plait').submodule_search_locations[0]; "
        "parent = types.ModuleType('plait.vdj'); parent.__path__ = [folder + '/vdj']; "
        "sys.modules['plait.vdj'] = parent; "
        "import plait.vdj.germline as g; g.load_germline('mouse_trb'); "
        "print([m for m in ('numba', 'pyarrow', 'rich', 'cyclopts') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_bundled_set_can_be_renamed_and_given_anchors(tmp_path: Path) -> None:
    table = tmp_path / "anchors.csv"
    table.write_text("gene,anchor_index\nTRBV1*01,276\n")
    germline = load_germline("mouse_trb", anchors=table, name="mine")
    assert germline.name == "mine"
    assert (germline.v[0].anchor, germline.v[0].anchor_source) == (276, "override")
    assert load_germline("mouse_trb").v[0].anchor == 270


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_paths_of_every_kind_load(tmp_path: Path, suffix: str) -> None:
    germline = load_germline("mouse_trb")
    v = tuple(replace(a, regions=None) for a in germline.v)
    germline = replace(germline, v=v, c=tuple(replace(a, aliases=()) for a in germline.c))
    (tmp_path / "one").mkdir()
    write_airr_json(germline, tmp_path / "set.json")
    written = write_fasta_trio(germline, tmp_path / "one" / "TRB")
    single = tmp_path / "all.fasta"
    single.write_text("".join(path.read_text() for path in written if path.suffix == ".fasta"))
    if suffix:
        for path in (tmp_path / "set.json", single, *(p for p in written if p.suffix == ".fasta")):
            path.with_name(path.name + suffix).write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    sources: list[str | Path] = [
        tmp_path / f"set.json{suffix}",
        tmp_path / f"all.fasta{suffix}",
        str(tmp_path / "one"),
        tmp_path / "one" / "TRB",
    ]
    for source in sources:
        assert load_germline(source, species="mouse").digest == germline.digest, source


def test_what_is_no_germline_set_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"one of human.*did you mean mouse_trb\?"):
        load_germline("Mous-TRB")
    (tmp_path / "mous_notes.txt").write_text("x")
    with pytest.raises(InvalidInput, match=r"found '.*mous'"):
        load_germline(tmp_path / "mous")
    table = tmp_path / "table.tsv"
    table.write_text("v_call\tj_call\n")
    with pytest.raises(FormatError, match=r"table\.tsv: found text that starts with 'v'"):
        load_germline(table)
    with pytest.raises(InvalidInput, match="V FASTA files: none"):
        load_germline(tmp_path)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "an empty file"),
        (b" \n\n", "an empty file"),
        (b"\x89PNG\xff\x00", "no UTF-8"),
        (b">a\n\0\0", "binary data"),
        (gzip.compress(b">TRBV1*01\nACGT" * 50)[:-12], "cut-off gzip"),
    ],
    ids=["empty", "blank", "binary", "zeros", "truncated gz"],
)
def test_unreadable_files_are_said(tmp_path: Path, content: bytes, found: str) -> None:
    path = tmp_path / "set.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=found) as caught:
        load_germline(path)
    assert caught.value.path == str(path)
