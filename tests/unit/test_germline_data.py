"""The script that builds the bundled sets, and that these are its result and sound."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from plait.alphabets import translate
from plait.errors import InvalidInput
from plait.vdj.germline import bundled_germlines, load_germline, load_germlines
from plait.vdj.germline.germline_set import LOCI

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "tools" / "build_germline_data.py"
GENOMES = Path(os.environ.get("PLAIT_SHARED_DATA", "/nonexistent")) / "germline"
ACIDS_OF_89 = frozenset("AVILMFWCTY")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_germline_data", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(
    importlib.util.find_spec("abstar") is None or not GENOMES.is_dir(),
    reason="abstar and the genome records, sources of the data, are not there",
)
def test_the_files_are_those_of_the_sources() -> None:
    command = [sys.executable, SCRIPT, "--genomes", GENOMES, "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.splitlines()[-1]) == (0, "up to date")


def test_another_source_is_refused(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "hg38_bcrtcr.fa").write_text(">TRBV1 chr7 1 4 +\nACGT\n")
    with pytest.raises(SystemExit, match=r"SHA-256 .*, expected "):
        script.find_file("human", tmp_path)
    with pytest.raises(SystemExit, match="is missing"):
        script.find_file("mouse", tmp_path)


def test_all_loci_of_both_species_are_there() -> None:
    assert set(bundled_germlines()) == {f"{s}_{locus.lower()}" for s in ("human", "mouse") for locus in LOCI}
    for name, loci in (
        ("human", LOCI),
        ("Mouse_IG", LOCI[:3]),
        ("mouse-tr", LOCI[3:]),
        ("HUMAN_TRB", ["TRB"]),
    ):
        assert [germline.locus for germline in load_germlines(name)] == list(loci)
    assert load_germline("Human_TRB") == load_germline("human_trb")
    with pytest.raises(
        InvalidInput, match=r"found 'human_tr', which is 4 of them, expected one of human_tra"
    ):
        load_germline("human_tr")
    with pytest.raises(InvalidInput, match=r"anchors: found 7 germline sets"):
        load_germlines("human", anchors="anchors.csv")


def test_genes_that_repertoires_have_are_there() -> None:
    genes = {
        "human_trb": "TRBV23-1 TRBV21-1 TRBV30 TRBC1 TRBC2 TRBD2",
        "human_tra": "TRAJ16 TRAJ58 TRAJ61 TRAV8-7 TRAV14/DV4 TRAC",
        "human_trd": "TRDV1 TRDV2 TRDV3 TRAV14/DV4 TRDD3 TRDJ4 TRDC",
        "human_trg": "TRGV9 TRGV2 TRGJP TRGJP1 TRGJ2 TRGC2",
        "human_igh": "IGHV1-69 IGHV3-23 IGHD3-10 IGHJ6 IGHM IGHD IGHG1 IGHG4 IGHA2 IGHE",
        "human_igk": "IGKV1-39 IGKV1D-39 IGKV3-20 IGKJ1 IGKC",
        "human_igl": "IGLV2-14 IGLJ3 IGLC2",
        "mouse_trb": "TRBV22 TRBV21 TRBJ1-6 TRBJ1-7",
        "mouse_igh": "IGHV1-72 IGHD1-1 IGHD2-6 IGHJ4 IGHG2C IGHM",
        "mouse_trg": "TRGV5 TRGJ1 TRGC4",
    }
    for name, wanted in genes.items():
        germline = load_germline(name)
        for gene in wanted.split():
            found = [germline.resolve(gene, segment) for segment in ("V", "D", "J", "C")]
            assert any(index is not None for index in found), (name, gene)


@pytest.mark.parametrize("name", bundled_germlines())
def test_regions_lie_where_imgt_numbers_them(name: str) -> None:
    germline = load_germline(name)
    functional = [a for a in germline.v if a.functionality == "F"]
    hydrophobic = 0
    for allele in germline.v:
        assert allele.anchor is not None
        if allele.regions is None:
            assert allele not in functional or len(allele.sequence) < 270
            continue
        places = (0, *allele.regions, allele.anchor + 3)
        sizes = [(end - start) // 3 for start, end in pairwise(places)]
        assert all((place - allele.anchor) % 3 == 0 for place in allele.regions)
        assert sizes[0] <= 27
        assert 4 <= sizes[1] <= 12
        assert sizes[2] in (16, 17)
        assert sizes[3] <= 10
        assert 31 <= sizes[4] <= 39
    for allele in functional:
        if allele.regions is None:
            continue
        conserved = (allele.regions[0] - 12, allele.regions[1] + 6, allele.anchor)
        codons = [translate(allele.sequence[place : place + 3]) for place in conserved if place >= 0]
        assert "".join(codons) in ("CWC", "WC")
        # Position 89 is fifteen codons before the Cys, and hydrophobic.
        hydrophobic += translate(allele.sequence[allele.anchor - 45 : allele.anchor - 42]) in ACIDS_OF_89
    assert hydrophobic >= 0.9 * len(functional)


@pytest.mark.parametrize("name", bundled_germlines())
def test_every_allele_is_sound_and_says_where_it_comes_from(name: str) -> None:
    germline = load_germline(name)
    assert germline.c
    assert {a.functionality for a in (*germline.d, *germline.c)} <= {None}
    for allele in germline.alleles():
        assert allele.source.startswith(("OGRDB", "pyimmunarch", "published", "GRCh38 chr", "GRCm39 chr"))
        assert set(allele.sequence) <= set("ACGTNRYKMSW")
    for allele in germline.j:
        assert allele.anchor is not None
        found = translate(allele.sequence[allele.anchor : allele.anchor + 3])
        assert allele.functionality != "F" or found in ("F", "W")
    for allele in germline.c:
        # One frame is open up to its last codon.
        assert any("*" not in translate(allele.sequence, frame)[:-1] for frame in range(3))


def test_functionality_is_derived_from_defects_alone(script: ModuleType) -> None:
    germline = load_germline("mouse_trb")
    v, j, d = germline.v[0], germline.j[0], germline.d[0]
    derived = script.derived_functionality
    assert [derived(a) for a in (v, j, d)] == ["F", "F", None]
    assert derived(v, most="ORF") == "ORF"
    assert derived(replace(v, regions=None)) == "ORF"
    assert derived(replace(v, sequence="TAA" + v.sequence[3:])) == "P"
    assert derived(replace(v, sequence="TAA" + v.sequence[3:], anchor=None)) == "P"
    assert derived(replace(v, anchor=None)) == "ORF"
    assert derived(replace(j, anchor=None)) == "ORF"
    assert derived(replace(j, sequence=j.sequence[:-4] + "TGAC")) == "P"


def test_a_record_is_cut_behind_its_leader(script: ModuleType) -> None:
    v = load_germline("human_trb").v[1]
    leader = "ATG" + "GCT" * 18
    cut = script.v_region(script.Record(v.gene, leader + v.sequence, "made up"), "human")
    assert cut is not None
    allele, opened = cut
    assert (allele.sequence, allele.regions, opened) == (v.sequence, v.regions, True)
    closed = script.v_region(script.Record(v.gene, "TAG" + leader[3:] + v.sequence, "made up"), "human")
    assert closed is not None
    assert not closed[1]
    assert script.v_region(script.Record("IGHV1", "ACGT" * 80, "made up"), "human") is None


def test_an_allele_that_the_genome_repeats_becomes_an_alias(script: ModuleType) -> None:
    v = load_germline("human_trb").v[1]
    again = replace(v, name="TRBV99*01", gene="TRBV99", source="GRCh38 chr7:1-2(+)", sequence=v.sequence[:-2])
    (only,) = script.distinct([again, v])
    assert (only.name, only.aliases) == (v.name, ("TRBV99*01", "TRBV99"))
    assert script.distinct([again]) == (again,)


def test_two_d_genes_stand_in_the_order_of_the_locus() -> None:
    germline = load_germline("human_igh")
    d = {allele.gene: allele for allele in germline.d}
    assert germline.allowed_d_pair(d["IGHD1-1"], d["IGHD3-3"])
    assert not germline.allowed_d_pair(d["IGHD3-3"], d["IGHD1-1"])
    assert not germline.allowed_d_pair(d["IGHD3-3"], d["IGHD3-3"])
    delta = load_germline("human_trd")
    assert [delta.allowed_d_pair(delta.d[a], delta.d[b]) for a, b in ((0, 2), (2, 0))] == [True, False]


def test_natural_order(script: ModuleType) -> None:
    names = ["TRBV12-1*01", "TRBV2*01", "TRBV12-1*02", "TRBV1*01", "TRBV12*01", "TRBV2-10*01", "TRBV2-9*01"]
    assert sorted(names, key=script.natural_key) == [
        "TRBV1*01", "TRBV2*01", "TRBV2-9*01", "TRBV2-10*01", "TRBV12*01", "TRBV12-1*01", "TRBV12-1*02",
    ]  # fmt: skip
