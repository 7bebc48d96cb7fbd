"""``plait fold``."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from plait.cli import main

TRNA = "GCGGATTTAGCTCAGTTGGGAGAGCGCCAGACTGAAGATCTGGAGGTCCTGTGTTCGATCCACAGAATTCGCACCA"
FOLDED = "(((((((..((((........)))).(((((.......))))).....(((((.......)))))))))))).... (-22.40)"


@pytest.fixture
def fasta(tmp_path: Path) -> Path:
    path = tmp_path / "rna.fa"
    path.write_text(f">one of two\nGGGG\nAAAACCCC\n>trna\n{TRNA.lower()}\n")
    return path


def test_text_is_that_of_rnafold(fasta: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fold", str(fasta)]) == 0
    rna = TRNA.replace("T", "U")
    expected = f">one of two\nGGGGAAAACCCC\n((((....)))) ( -5.40)\n>trna\n{rna}\n{FOLDED}\n"
    assert capsys.readouterr().out == expected


def test_ensembles_as_text(fasta: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fold", str(fasta), "--probabilities", "--mea"]) == 0
    # Lines 4 to 8 and those of the tRNA are ViennaRNA 2.7.2's.
    assert capsys.readouterr().out.splitlines()[3:] == [
        "((((....)))) [ -5.51]",
        "((((....)))) { -5.40 d=0.93}",
        "((((....)))) { -5.40 MEA=10.91}",
        " frequency of mfe structure in ensemble 0.840049; ensemble diversity 1.62  ",
        ">trna",
        TRNA.replace("T", "U"),
        FOLDED,
        "(((((({...,(({{{{,({.,,,,.||,||}}},.,.||||..||||,,{{{...,,}}}})))))))))).... [-24.13]",
        "(((((((.....(((................)))...............................))))))).... { -3.01 d=16.21}",
        "(((((((....((((((.((......)).))))))....((.........(((.......)))))))))))).... {-12.10 MEA=46.96}",
        " frequency of mfe structure in ensemble 0.0606521; ensemble diversity 23.38 ",
    ]


def test_tables_and_pairs(fasta: Path, tmp_path: Path) -> None:
    for name in ("a.tsv", "a.jsonl", "a.parquet", "a.txt.gz", "a.db"):
        pairs = tmp_path / f"{name}.pairs.tsv"
        assert (
            main(["fold", str(fasta), "-o", str(tmp_path / name), "--pairs", str(pairs), "--samples", "2"])
            == 0
        )
        first, *rows = pairs.read_text().splitlines()
        assert first == "name\ti\tj\tp"
        cells = [row.split("\t") for row in rows]
        likely = {(i, j) for name, i, j, p in cells if name == "one" and float(p) > 0.5}
        assert likely == {("1", "12"), ("2", "11"), ("3", "10"), ("4", "9")}
        assert all(1e-6 <= float(cell[3]) <= 1 for cell in cells)
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == lines
    assert [row["energy"] for row in lines] == [-5.4, -22.4]
    assert [len(row["samples"]) for row in lines] == [2, 2]
    header, row, _ = (tmp_path / "a.tsv").read_text().splitlines()
    assert dict(zip(header.split("\t"), row.split("\t"), strict=True))["structure"] == "((((....))))"
    assert gzip.decompress((tmp_path / "a.txt.gz").read_bytes()) == (tmp_path / "a.db").read_bytes()


def test_lines_of_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Input:
        buffer = io.BytesIO(b"\nGGGAAACCC\n\nACGU")

    monkeypatch.setattr("sys.stdin", Input)
    assert main(["fold", "-", "--format", "tsv"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["\tGGGAAACCC\t(((...)))\t-1.2", "\tACGU\t....\t0"]


def test_blocks_keep_their_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "many.fa"
    path.write_text("".join(f">s{k}\n{'GGGGAAAACCCC' * (1 + k % 7)}\n" for k in range(900)))
    outputs = []
    for threads in ("1", "2"):
        assert main(["fold", str(path), "--threads", threads, "--samples", "1", "--seed", "3"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert [line for line in outputs[0].splitlines() if line[0] == ">"] == [f">s{k}" for k in range(900)]


def test_energies_are_explained(fasta: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "folded.txt"
    assert main(["fold", str(fasta), "-o", str(path)]) == 0
    assert main(["fold", "eval", str(path)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:3] == [">one of two", "exterior       0.00  G1-C12", "stack         -3.30  G1-C12 G2-C11"]
    assert "multiloop      1.30  U7-A66 G10-C25 C27-G43 C49-G65" in out
    assert out[-1] == FOLDED


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        (">a\nACGU\n>b\nACXU\n", [], "line 3: found 'X' at base 3 of b, expected A, C, G, U or T, and N"),
        ("ACGU\n\nACGJ\n", [], "line 3: found 'J' at base 4"),
        ("", [], "expected"),
        (">a\nACGU\n", ["--dangles", "1"], "dangles of 1 is not supported"),
        (">a\nACGU\n", ["--temperature", "20"], "no enthalpies"),
        (">a\nACGU\n", ["--max-span", "0"], "--max-span: found 0"),
        (">a\nACGU\n", ["--samples", "-1"], "--samples: found -1"),
        (">a\nACGU\n", ["-o", "a.pdf"], "a name that ends in"),
        (">a\n" + "A" * 33_000 + "\n", [], "found 33,000 bases of a, expected at most 32,000"),
        (">a\nACGU\n", ["--parameters", "none.par"], "none.par"),
    ],
)
def test_what_is_wrong_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, options: list[str], told: str
) -> None:
    path = tmp_path / "a.fa"
    path.write_text(text)
    assert main(["fold", str(path), *options]) == 2
    assert told in capsys.readouterr().err


def test_structures_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.txt"
    for text, told in (
        (">a\nGGGAAACCC\n((...)). ( -1.20)\n", "line 3: found 8 signs"),
        ("GGGAAACCC\n(((...)).\n", "line 2: found '(' at base 1"),
        (">a\nGGGAAACCC\n", "a sequence without a structure"),
    ):
        path.write_text(text)
        assert main(["fold", "eval", str(path)]) == 2
        assert told in capsys.readouterr().err


def test_too_little_memory(
    fasta: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("plait.folding.inputs.free_bytes", lambda: 1000)
    assert main(["fold", str(fasta), "--threads", "1"]) == 2
    assert "bytes of memory, 1,000 are free" in capsys.readouterr().err
