"""Real proteins and genomes: every schedule agrees, and other programs do.

The environment variable PLAIT_ALIGN_DATA names a folder with FASTA files, plain or compressed: proteins in
files called ``*.fa`` or ``*.faa``, genomes in files called ``*.fna`` or ``*.fasta``, in folders of any depth.
"""

from __future__ import annotations

import os
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from support.alignment_batches import rescore

from plait.align import Alignment, align, align_many, align_pairs, match_mismatch, score, score_many
from plait.formats.fasta import read_fasta

PROTEINS = ("*.fa", "*.faa")
GENOMES = ("*.fna", "*.fasta")
PROTEIN_COSTS: dict[str, Any] = {"matrix": "BLOSUM62", "gap_open": 11, "gap_extend": 1}
#: Residues of the slices of genomes.
SLICES = (3_000, 10_000, 30_000, 100_000)


def files(patterns: tuple[str, ...]) -> list[Path]:
    named = os.environ.get("PLAIT_ALIGN_DATA")
    if not named:
        pytest.skip(reason="PLAIT_ALIGN_DATA names no folder with real sequences")
    endings = ("", ".gz", ".bz2", ".zst")
    found = {path for p in patterns for ending in endings for path in Path(named).rglob(p + ending)}
    if not found:
        pytest.skip(reason=f"no {' or '.join(patterns)} in {named}, which PLAIT_ALIGN_DATA names")
    return sorted(found)


@pytest.fixture(scope="module")
def proteins() -> list[str]:
    records = next(iter(read_fasta(files(PROTEINS)[0])))
    chosen = random.Random(1).sample(range(len(records)), min(2_000, len(records)))
    return [records.sequence(k).decode() for k in chosen]


@pytest.fixture(scope="module")
def genomes() -> list[str]:
    """The longest records of a few files, alike in that they are whole chromosomes."""
    found = []
    for path in files(GENOMES):
        records = next(iter(read_fasta(path)))
        longest = max(range(len(records)), key=lambda k: len(records.sequence(k)))
        found.append(records.sequence(longest).decode().upper())
    return sorted(found, key=len, reverse=True)[:4]


def mutated(rng: random.Random, sequence: str) -> str:
    """One residue in twelve changed, and pieces left out, repeated and moved."""
    letters = [rng.choice("ACGT") if rng.random() < 0.08 else letter for letter in sequence]
    for _ in range(len(sequence) // 1_000 + 2):
        first = rng.randrange(len(letters))
        last = min(len(letters), first + rng.choice((1, 2, 7, 30, 150)))
        letters[first:last] = rng.choice(([], letters[first:last] * 2, rng.choices("ACGT", k=last - first)))
    return "".join(letters)


def slices(genomes: list[str], size: int) -> tuple[str, str]:
    rng = random.Random(size)
    genome = genomes[0]
    first = rng.randrange(len(genome) - size)
    query = genome[first : first + size]
    return query, mutated(rng, query)


def assert_scored(found: Alignment, query: str, target: str) -> None:
    scoring = found.scoring
    assert rescore(found, scoring.encode(query), scoring.encode(target), scoring) == found.score


@pytest.mark.parametrize("mode", ["local", "global", "overlap"])
def test_proteins_by_every_way(mode: Any, proteins: list[str]) -> None:
    for query in proteins[:5]:
        many = align_many(query, proteins[:300], mode=mode, **PROTEIN_COSTS)
        pairs = align_pairs([query] * 12 + proteins[:3], proteins[:15], mode=mode, **PROTEIN_COSTS)
        assert pairs[:12] == many[:12]
        assert [a.score for a in many] == score_many(
            query, proteins[:300], mode=mode, **PROTEIN_COSTS
        ).tolist()
        for target, found in zip(proteins, many, strict=False):
            assert_scored(found, query, target)
        for k in range(3):
            assert align(query, proteins[k], mode=mode, traceback="linear", **PROTEIN_COSTS) == many[k]
            assert align(query, proteins[k], mode=mode, band=100_000, **PROTEIN_COSTS) == many[k]


@pytest.mark.parametrize("mode", ["local", "global"])
def test_proteins_against_parasail(mode: Any, proteins: list[str]) -> None:
    parasail = pytest.importorskip("parasail", reason="parasail is not installed")
    theirs = parasail.sw_scan_32 if mode == "local" else parasail.nw_scan_32
    for query in proteins[:4]:
        found = score_many(query, proteins[:500], mode=mode, **PROTEIN_COSTS)
        assert found.tolist() == [theirs(query, t, 11, 1, parasail.blosum62).score for t in proteins[:500]]


@pytest.mark.parametrize(
    ("mode", "theirs"), [("local", "sw"), ("global", "nw"), ("semiglobal", "hw"), ("overlap", "ov")]
)
def test_proteins_against_pyopal(mode: Any, theirs: str, proteins: list[str]) -> None:
    pyopal = pytest.importorskip("pyopal", reason="pyopal is not installed")
    database = pyopal.Database(proteins)
    aligner = pyopal.Aligner("BLOSUM62", gap_open=11, gap_extend=1)
    for query in (*proteins[:3], max(proteins, key=len)[:2_000], proteins[4][:9]):
        wanted = [0] * len(proteins)
        for result in aligner.align(query, database, algorithm=theirs):
            wanted[result.target_index] = max(result.score, 0) if mode == "overlap" else result.score
        assert score_many(query, proteins, mode=mode, **PROTEIN_COSTS).tolist() == wanted


@pytest.mark.parametrize("size", SLICES)
@pytest.mark.parametrize("mode", ["global", "local", "overlap", "extension"])
def test_slices_of_a_genome(size: int, mode: Any, genomes: list[str]) -> None:
    query, target = slices(genomes, size)
    found = align(query, target, mode=mode)
    assert_scored(found, query, target)
    assert found.score == score(query, target, mode=mode, threads=1)
    if size <= 30_000:
        assert found == align(query, target, mode=mode, traceback="linear", threads=1)
        assert found == align(query, target, mode=mode, traceback="full")
    if size <= 10_000:
        assert found == align(query, target, mode=mode, band=size)


@pytest.mark.parametrize("size", SLICES)
@pytest.mark.parametrize(("mode", "theirs"), [("global", "nw"), ("local", "sw"), ("overlap", "sg")])
def test_slices_against_parasail(size: int, mode: Any, theirs: str, genomes: list[str]) -> None:
    parasail = pytest.importorskip("parasail", reason="parasail is not installed")
    query, target = slices(genomes, size)
    matrix = parasail.matrix_create("ACGT", 2, -3)
    wanted = getattr(parasail, f"{theirs}_scan_32")(query, target, 7, 2, matrix).score
    assert score(query, target, mode=mode) == wanted


@pytest.mark.parametrize("size", SLICES)
@pytest.mark.parametrize(
    ("theirs", "free"), [("NW", ()), ("SHW", ("target_end",)), ("HW", ("target_start", "target_end"))]
)
def test_slices_against_edlib(size: int, theirs: str, free: tuple[Any, ...], genomes: list[str]) -> None:
    edlib = pytest.importorskip("edlib", reason="edlib is not installed")
    query, target = slices(genomes, size)
    if free:
        query = query[size // 3 : size // 2]
    unit = match_mismatch(0, -1, letters="ACGT")
    how: dict[str, Any] = {"matrix": unit, "gap_open": 1, "gap_extend": 1, "mode": "semiglobal"}
    found = align(query, target, free_ends=free, **how)
    assert -found.score == edlib.align(query, target, mode=theirs)["editDistance"]
    assert_scored(found, query, target)


def test_strains_of_one_species(genomes: list[str]) -> None:
    for one, other in combinations([genome[10_000:18_000] for genome in genomes], 2):
        found = align(one, other, mode="local")
        assert_scored(found, one, other)
        again = align(other, one, mode="local")
        assert again.score == found.score
