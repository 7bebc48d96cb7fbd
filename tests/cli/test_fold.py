"""``plait fold``."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.examples import often

from plait.cli import main
from plait.folding import inputs

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


def test_pairs_in_a_folder_of_parts(fasta: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs"
    words = ["fold", str(fasta), "-o", str(tmp_path / "o.txt"), "--probabilities", "--pairs"]
    assert main([*words, f"{pairs}/"]) == main([*words, f"{pairs}.parquet"]) == 0
    assert pq.read_table(pairs).to_pylist() == pq.read_table(f"{pairs}.parquet").to_pylist() != []


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


def test_an_absent_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fold", "GGGAAACCC"]) == 2
    assert capsys.readouterr().err.startswith("plait: error: GGGAAACCC: found no such file, expected a file")


@pytest.mark.parametrize("command", [["fold"], ["fold", "eval"]])
def test_a_pipe_is_not_read_twice(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    reader, writer = os.pipe()
    os.write(writer, b">a\nGGGAAACCC\n(((...)))\n")
    os.close(writer)
    try:
        assert main([*command, f"/dev/fd/{reader}"]) == 2
    finally:
        os.close(reader)
    assert "found a pipe or device, expected a file to read" in capsys.readouterr().err


def test_what_is_kept_of_a_file_is_bounded_by_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "many.gz"
    path.write_bytes(gzip.compress(b"GGGAAACCC\n" * 4000))
    # It fits compressed, and so do its first blocks.
    monkeypatch.setattr(inputs, "_HELD_BYTES", 1 << 18)
    read = inputs.Inputs(path)
    assert sum(len(records.sequences) for records in read.records()) == 4000
    assert read._held == []
    assert main(["fold", str(path), "--format", "tsv"]) == 0
    assert capsys.readouterr().out.count("GGGAAACCC") == 4000
    monkeypatch.setattr(inputs, "_HELD_BYTES", 1 << 20)
    assert sum(len(records.sequences) for records in inputs.Inputs(path)._held) == 4000


@pytest.mark.slow
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


@pytest.mark.parametrize("device", often(1, ["reference", "cpu"]))
def test_constraints_below_sequences_and_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], device: str
) -> None:
    path, lines, other = tmp_path / "a.fa", tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_text(">a\nGGGGAAAACCCC\n(.........).\n>b\nGGGGAAAACCCC\n")
    lines.write_text("GGGGAAAACCCC\n\n(.........).\nGGGGAAAACCCC\n")
    other.write_text("(.........).\n............\n")
    # What RNAfold 2.7.2 gives with -C and --enforceConstraint.
    expected = ["(((.....))). ( -4.20)", "((((....)))) ( -5.40)"]
    for words in ([str(path), "--constraint"], [str(lines), "--constraint"]):
        assert main(["fold", *words, "--enforce", "--device", device]) == 0
        assert [line for line in capsys.readouterr().out.splitlines() if "-" in line] == expected
    path.write_text(">a\nGGGGAAAACCCC\n>b\nGGGGAAAACCCC\n")
    assert main(["fold", str(path), "--constraint-file", str(other), "--enforce", "--device", device]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "-" in line] == expected


@pytest.mark.parametrize("device", often(1, ["reference", "cpu"]))
def test_reactivities_and_suboptimal_structures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], device: str
) -> None:
    path, shape, output = tmp_path / "a.fa", tmp_path / "a.shape", tmp_path / "o.jsonl"
    path.write_text(">a\nGGGGAAAACCCC\n>b\nGGGGAAAACCCC\n")
    shape.write_text("# of one\n>b told\n1 G 0.1\n2 0.3\n3 NA\n")
    on = ["--device", device]
    words = ["--shape", str(shape), "--suboptimal", "1.2", "--most", "2"]
    assert main(["fold", str(path), *words, *on, "-o", str(output)]) == 0
    first, second = (json.loads(line) for line in output.read_text().splitlines())
    # ViennaRNA 2.7.2 has -5.40 and, with these reactivities, -6.09.
    assert (first["energy"], second["energy"]) == (-5.4, -6.09)
    assert first["suboptimal"] == ["((((....))))", "(((.....)))."]
    assert first["suboptimal_energies"] == [-5.4, -4.2]
    assert "with more suboptimal structures" not in capsys.readouterr().err
    folded = tmp_path / "a.txt"
    assert main(["fold", str(path), *words[:2], *on, "-o", str(folded)]) == 0
    assert main(["fold", "eval", str(folded), *words[:2]]) == 0
    totals = [line for line in capsys.readouterr().out.splitlines() if line.startswith("((((")]
    assert totals == ["((((....)))) ( -5.40)", "((((....)))) ( -6.09)"]
    assert main(["fold", str(path), "--suboptimal", "4", "--most", "2", *on]) == 0
    told = capsys.readouterr()
    assert "2 sequences with more suboptimal structures: the best 2 are written" in told.err
    assert told.out.splitlines()[3:5] == ["((((....))))  -5.40", "(((.....))).  -4.20"]


def test_drawings_are_written(tmp_path: Path) -> None:
    path, folder = tmp_path / "a.fa", tmp_path / "drawn"
    path.write_text(">a/b\nGGGGAAAACCCC\n>a/b again\nACGU\n>..c\nGGGAAACCC\n")
    assert main(["fold", str(path), "--plot", str(folder), "-o", str(tmp_path / "o.txt")]) == 0
    names = {f"{name}{end}" for name in ("a_b", "a_b_2", "c") for end in (".html", ".svg", "_pairs.svg")}
    assert {file.name for file in folder.iterdir()} > names
    page = (folder / "a_b.html").read_text()
    assert "<h1>a/b</h1>" in page and "-5.40 kcal/mol" in page and "((((....)))) centroid" in page


ENFORCED = ["--constraint", "--enforce"]


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
        (">a\nACGU\n", ["--enforce"], "--enforce: found no constraints"),
        (">a\nACGU\n", ["--suboptimal", "-1"], "--suboptimal: found -1.0, expected a number from 0 to 1000"),
        (">a\nACGU\n", ["--most", "0"], "--most: found 0"),
        (">a\nACGU\n..[.\n", ["--constraint"], "line 1: found '[' at base 3 of a"),
        (">a\nACGU\n...\n", ["--constraint"], "line 1: found 3 signs of a, expected 4, one a base"),
        (
            ">a\nACGUAC\n|.....\n",
            [*ENFORCED, "--device", "reference"],
            "line 1: found no structure in which",
        ),
        (">a\nACGU\n", ["--constraint-file", "a.fa"], "line 1: found 'A' at base 1 of a"),
        (">a\nACGU\n", ["--shape", "a.fa"], "line 2: found 'ACGU', expected a base from 1 on"),
        (">a\nACGU\n", ["--plot", "a.fa"], "which is a file"),
        (">a\nACGU\n....\n", [], "'.' at base 5 of a, expected A, C, G, U or T, and N; --constraint for"),
        ("ACGU\n(..)\n", [], "and N; --constraint for"),
        (
            ">a\nACGU\n",
            ["--shape-slope", "2"],
            "--shape-slope, --shape-intercept: found no --shape",
        ),
        (">a\nACGU\n", ["--shape-intercept", "0"], "found no --shape, expected its file"),
    ],
)
def test_what_is_wrong_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    options: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.fa"
    path.write_text(text)
    assert main(["fold", str(path), *options]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        (">c\n1 0.5\n", "line 1: found 'c', expected a sequence of"),
        ("1 0.5\n", "found reactivities without a name"),
        (">a\n1 0.5\n1 0.6\n", "line 3: found base 1 again"),
        (">a\n5 0.5\n", "line 2: found base 5, expected at most 4"),
        (">a\n1 C 0.5\n", "line 2: found 'C' as base 1, expected 'A'"),
        (">a\n0 0.5\n", "line 2: found '0 0.5'"),
        (">a\n1 inf\n", "line 2: found '1 inf'"),
        (">a\n>a\n", "line 2: found '>a', expected a name of its own"),
        ("\n", "found an empty file"),
        ("# nothing\n", "found no reactivities"),
    ],
)
def test_reactivities_that_do_not_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: str, told: str
) -> None:
    path, other = tmp_path / "a.fa", tmp_path / "a.shape"
    path.write_text(">a\nACGU\n>b\nACGU\n")
    other.write_text(shape)
    folded = tmp_path / "a.txt"
    folded.write_text(">a\nACGU\n....\n>b\nACGU\n....\n")
    for words in (["fold", str(path)], ["fold", "eval", str(folded)]):
        assert main([*words, "--shape", str(other)]) == 2
        told_now = capsys.readouterr()
        assert told in told_now.err and not told_now.out


def test_as_many_constraints_as_sequences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = tmp_path / "a.fa", tmp_path / "a.txt"
    path.write_text(">a\nACGU\n>b\nACGU\n")
    for text, told in (("....\n", "found 1 constraint,"), ("....\n" * 3, "found 3 constraints,")):
        other.write_text(text)
        assert main(["fold", str(path), "--constraint-file", str(other)]) == 2
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fasta = tmp_path / "long.fa"
    fasta.write_text(">long\n" + "ACGU" * 600)
    monkeypatch.setattr("plait.folding.folds.free_bytes", lambda: 1000)
    assert main(["fold", str(fasta), "--threads", "1"]) == 2
    assert "bytes of memory, 1,000 are free" in capsys.readouterr().err
    monkeypatch.undo()
    fasta.write_text(">short\nGGGAAACCC\n")
    assert main(["fold", str(fasta), "--samples", str(10**12), "--threads", "1"]) == 2
    told = capsys.readouterr()
    assert "long.fa: 1,000,000,000,000 samples of a sequence of 9 bases" in told.err.replace(
        f"{tmp_path}/", ""
    )
    assert not told.out
