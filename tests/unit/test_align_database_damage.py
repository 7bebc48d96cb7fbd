"""Damaged databases: every changed bit ends in an error, or changes nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fuzz.kept import sealed_database

from plait.align.database import DIGESTS, HEADER_BYTES, SECTIONS, build_database, open_database
from plait.align.letters import ALPHABETS
from plait.align.settings import Kind
from plait.errors import FormatError

TEXT = {"protein": ALPHABETS["protein"], "dna": ALPHABETS["dna"]}


def fasta(path: Path, sequences: list[str], start: int = 0) -> Path:
    lines = (f">s{start + i}{' of é' * (i % 3)}\n{s}\n" for i, s in enumerate(sequences))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def some(count: int, kind: Kind = "protein", seed: int = 0, longest: int = 90) -> list[str]:
    rng = np.random.default_rng(seed)
    letters = np.array(list(TEXT[kind]))
    return ["".join(letters[rng.integers(0, len(letters), n)]) for n in rng.integers(0, longest, count)]


def built_database(tmp_path: Path, count: int = 150) -> Path:
    out = tmp_path / "x.plaitdb"
    build_database([fasta(tmp_path / "x.fa", some(count))], out)
    return out


def read_all(path: Path) -> Any:
    """Everything that a search may read, each by the way that a search reads it."""
    found = open_database(path)
    codes = found.columns(0, len(found.packed)).tobytes()
    texts = [[texts[i] for i in range(len(texts))] for texts in (found.names, found.descriptions)]
    arrays = [array.tobytes() for array in (found.first_columns, found.lengths, found.order)]
    return codes, texts, arrays, found.kind, found.residues, found.longest, len(found)


@pytest.mark.slow
def test_every_flipped_bit_is_noticed_or_does_not_matter(tmp_path: Path) -> None:
    out = tmp_path / "x.plaitdb"
    built = build_database([fasta(tmp_path / "x.fa", ["MKVLAW", "MKT", "AWWGRK"])], out)
    content, right = out.read_bytes(), read_all(out)
    held = sum(section["bytes"] for section in built.metadata["sections"].values())
    noticed = 0
    with open(out, "r+b", buffering=0) as file:
        for bit in range(8 * len(content)):
            byte = bit // 8
            os.pwrite(file.fileno(), bytes([content[byte] ^ 1 << bit % 8]), byte)
            try:
                assert read_all(out) == right
            except FormatError as error:
                assert error.path == str(out)
                noticed += 1
            os.pwrite(file.fileno(), content[byte : byte + 1], byte)
    # What is not noticed lies between the sections.
    assert noticed == 8 * (HEADER_BYTES + held)


@pytest.mark.slow
def test_flipped_bits_of_a_larger_database(tmp_path: Path) -> None:
    # Several blocks of residues, of which the last is not whole.
    out = tmp_path / "x.plaitdb"
    build_database([fasta(tmp_path / "x.fa", some(40_000, longest=120))], out)
    content = out.read_bytes()
    sections = json.loads(content[16:HEADER_BYTES])["sections"].values()
    spans = [(s["offset"], s["offset"] + s["bytes"]) for s in sections]
    for bit in np.random.default_rng(8).integers(0, 8 * len(content), 40).tolist():
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        out.write_bytes(changed)
        if bit // 8 < HEADER_BYTES or any(first <= bit // 8 < last for first, last in spans):
            with pytest.raises(FormatError):
                open_database(out).verify()
        else:
            open_database(out).verify()


@pytest.mark.parametrize("step", [64, 4096])
def test_parts_that_change_places_are_noticed(tmp_path: Path, step: int) -> None:
    out = built_database(tmp_path, 2000)
    content = bytearray(out.read_bytes())
    first = open_database(out).metadata["sections"]["packed"]["offset"]
    a, b = (slice(first + k * step, first + (k + 1) * step) for k in (1, 3))
    assert content[a] != content[b]
    content[a], content[b] = content[b], content[a]
    out.write_bytes(content)
    with pytest.raises(FormatError, match="of the section 'packed'"):
        read_all(out)


@pytest.mark.parametrize("name", [*SECTIONS, DIGESTS])
def test_a_changed_section_is_noticed(tmp_path: Path, name: str) -> None:
    out = built_database(tmp_path)
    content = bytearray(out.read_bytes())
    section = json.loads(content[16:HEADER_BYTES])["sections"][name]
    content[section["offset"] + section["bytes"] // 2] ^= 4
    out.write_bytes(content)
    with pytest.raises(FormatError, match=f"of the section '{name}', expected [0-9a-f]+; the file is"):
        open_database(out).verify()
    if name in ("first_columns", "lengths", "order", DIGESTS):
        with pytest.raises(FormatError, match=f"of the section '{name}'"):
            open_database(out)
    else:
        open_database(out)


@pytest.mark.slow
def test_only_what_is_read_is_compared(tmp_path: Path) -> None:
    out = tmp_path / "x.plaitdb"
    build_database([fasta(tmp_path / "x.fa", some(40_000, longest=120))], out)
    content = bytearray(out.read_bytes())
    section = json.loads(content[16:HEADER_BYTES])["sections"]["packed"]
    content[section["offset"] + section["bytes"] - 1] ^= 1
    out.write_bytes(content)
    found = open_database(out)
    longest = int(found.order[0])
    assert len(found.letters(longest)) == found.longest
    with pytest.raises(FormatError, match="of the section 'packed'"):
        found.columns(len(found.packed) - 1, len(found.packed))


def test_what_was_right_is_not_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = open_database(built_database(tmp_path))
    found.columns(0, len(found.packed))
    monkeypatch.setattr("plait.align.database.block_digest", None)
    found.columns(0, len(found.packed))
    with pytest.raises(TypeError):
        found.verify()


def forged(content: bytes, name: str, values: Any) -> bytes:
    """A database with other bytes in a section, whose digests and checksums are right."""
    at = json.loads(content[16:HEADER_BYTES])["sections"][name]["offset"]
    changed = bytearray(content)
    raw = np.asarray(values).tobytes()
    changed[at : at + len(raw)] = raw
    return sealed_database(bytes(changed))


@pytest.mark.parametrize(
    ("name", "values", "blamed"),
    [
        ("order", np.int64([5, 5]), "order"),
        ("order", np.int64([1 << 40]), "order"),
        ("lengths", np.int32([1 << 30]), "lengths"),
        ("lengths", np.int32([1]), "lengths"),
        ("first_columns", np.int64([4]), "first_columns"),
    ],
)
def test_a_forged_database_with_right_checksums_is_refused(
    tmp_path: Path, name: str, values: Any, blamed: str
) -> None:
    out = built_database(tmp_path)
    out.write_bytes(forged(out.read_bytes(), name, values))
    with pytest.raises(FormatError, match=f"numbers in the section '{blamed}' that do not fit"):
        open_database(out)


def test_codes_beyond_the_table_of_scores_are_refused(tmp_path: Path) -> None:
    out = built_database(tmp_path)
    out.write_bytes(forged(out.read_bytes(), "packed", np.uint8([200])))
    with pytest.raises(
        FormatError, match=r"the code 200 in bytes 0 to .* of 'packed', expected codes up to 31"
    ):
        read_all(out)
