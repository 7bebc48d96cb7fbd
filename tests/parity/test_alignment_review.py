"""What a review tried to break: damaged databases, odd letters, statistics beside BLAST's."""

from __future__ import annotations

import math
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plait.align import SubstitutionMatrix, align, score_many
from plait.align.database import build_database, open_database
from plait.align.scoring import make_scoring
from plait.align.statistics import karlin_altschul
from plait.errors import FormatError, InvalidInput

MUTANT = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVVHSLAKWKRQTLGQHDFSAGEGLY"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    fasta = tmp_path / "entries.fa"
    fasta.write_text("".join(f">entry{i} number {i}\n{MUTANT[i : i + 40]}\n" for i in range(20)))
    build_database([fasta], tmp_path / "entries.plaitdb")
    return tmp_path / "entries.plaitdb"


def damaged(database: Path, section: str, at: int, new: bytes) -> Path:
    """A copy with some bytes of a section replaced."""
    raw = bytearray(database.read_bytes())
    first = open_database(database).metadata["sections"][section]["offset"] + at
    raw[first : first + len(new)] = new
    copy = database.with_name("damaged.plaitdb")
    copy.write_bytes(raw)
    return copy


@pytest.mark.parametrize(
    ("section", "at", "new"),
    [
        ("names", 0, b"\xff"),
        ("name_offsets", 8, struct.pack("<q", -5)),
        ("name_offsets", 8, struct.pack("<q", 10**15)),
        ("name_offsets", 0, struct.pack("<q", 7)),
        ("description_offsets", 8, struct.pack("<q", 2**62)),
        ("descriptions", 3, b"\x80"),
    ],
)
def test_damaged_names_are_errors_and_no_other_names(
    database: Path, section: str, at: int, new: bytes
) -> None:
    bad = open_database(damaged(database, section, at, new))
    texts = bad.names if "name" in section else bad.descriptions
    with pytest.raises(FormatError, match="the file is damaged"):
        texts[0]
    with pytest.raises(FormatError, match="checksum"):
        bad.verify()


def test_letters_beyond_ascii_are_no_question_marks() -> None:
    matrix = SubstitutionMatrix("q", "A?", np.array([[1, -1], [-1, 1]]), "protein")
    with pytest.raises(InvalidInput, match="'é' at position 2"):
        align("Aé", "A?", matrix=matrix, gap_open=2, gap_extend=1)
    with pytest.raises(InvalidInput, match="target 2: found '\u4e2d' at position 1"):
        score_many("A?", ["A", "\u4e2d"] * 10, matrix=matrix, gap_open=2, gap_extend=1)
    assert align("A?", "A?", matrix=matrix, gap_open=2, gap_extend=1).cigar == "2="


@pytest.mark.parametrize(
    ("matrix", "existence", "extension"), [("BLOSUM62", 11, 1), ("BLOSUM45", 14, 2), ("PAM30", 9, 1)]
)
def test_bits_and_evalues_of_blastp(matrix: str, existence: int, extension: int, tmp_path: Path) -> None:
    """What blastp says of alignments, short and long ones alike, for the raw scores that it finds."""
    if shutil.which("blastp") is None:
        pytest.skip("blastp is not installed (Debian: ncbi-blast+)")
    queries = {"whole": MUTANT, "short": MUTANT[30:45], "long": MUTANT * 9}
    targets = {f"t{i}": MUTANT[: 20 + i] + "PGSN" * i + MUTANT[25 + i :] for i in range(0, 60, 7)}
    for name, sequences in (("queries", queries), ("targets", targets)):
        text = "".join(f">{key}\n{letters}\n" for key, letters in sequences.items())
        (tmp_path / f"{name}.fa").write_text(text)
    settings = ["-matrix", matrix, "-gapopen", str(existence), "-gapextend", str(extension), "-seg", "no"]
    settings += ["-comp_based_stats", "0", "-evalue", "1000"]
    settings += ["-outfmt", "6 qseqid sseqid score bitscore evalue"]
    files = ["-query", str(tmp_path / "queries.fa"), "-subject", str(tmp_path / "targets.fa")]
    told = subprocess.run(["blastp", *files, *settings], capture_output=True, text=True, check=True).stdout
    found, _ = karlin_altschul(make_scoring(matrix, existence + extension, extension))
    assert found is not None
    assert told.count("\n") > len(targets)
    for query, target, raw, bits, evalue in (line.split("\t") for line in told.splitlines()):
        own = found.evalue(
            int(raw),
            len(queries[query]),
            len(targets[target]),
            database_residues=sum(map(len, targets.values())),
            database_sequences=len(targets),
        )
        # From 100 on, BLAST cuts the decimals off.
        own_bits = found.bit_score(int(raw)).item()
        assert (math.floor(own_bits) if own_bits > 99.9 else own_bits) == pytest.approx(float(bits), abs=0.06)
        # From 0.0009 to 0.1 it writes three decimals, elsewhere two digits or more.
        rounding = 5.1e-4 if 9e-4 < own.item() < 0.1 else 1e-180
        assert own.item() == pytest.approx(float(evalue), rel=0.06, abs=rounding)


@pytest.mark.parametrize("band", [1.5, "5", (-2, 2, 3), (3, -3), (1,), -1])
def test_what_is_no_band_is_said(band: Any) -> None:
    with pytest.raises(InvalidInput, match="band: found"):
        align("ACGTACGT", "ACGTTCGT", band=band)


@pytest.mark.parametrize("band", [10**30, (-(2**63), 2**63 - 1), np.int64(20)])
def test_a_band_may_be_wider_than_any_matrix(band: Any) -> None:
    assert align("ACGTACGT", "ACGTTCGT", band=band) == align("ACGTACGT", "ACGTTCGT")


@pytest.mark.parametrize("x_drop", [1.5, float("nan"), "5", -1])
def test_what_is_no_x_drop_is_said(x_drop: Any) -> None:
    with pytest.raises(InvalidInput, match="x_drop: found"):
        align("ACGTACGT", "ACGTTCGT", mode="extension", x_drop=x_drop)


def test_a_file_named_twice_has_every_name_twice(tmp_path: Path) -> None:
    path = tmp_path / "d.fa"
    path.write_text(">x\nMKVLAG\n>y\nMKV\n")
    with pytest.raises(FormatError, match="name"):
        build_database([path, path], tmp_path / "d.plaitdb")
