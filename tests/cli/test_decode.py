"""``plait decode``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plait.cli import main
from plait.states import HiddenMarkovModel, likelihood, posterior


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Islands: C and G are frequent in one of two states."""
    emissions = [[0.35, 0.15, 0.15, 0.35], [0.1, 0.4, 0.4, 0.1]]
    found = HiddenMarkovModel(
        [0.5, 0.5], [[0.95, 0.05], [0.1, 0.9]], emissions, ("sea", "island"), tuple("ACGT")
    )
    found.write(tmp_path / "model.json")
    (tmp_path / "dna.fasta").write_text(">one\nATTATATATTAGCGCGCGGCGCGCCGATATTATATA\n>two\nAT\n")
    return tmp_path / "model.json"


def rows_of(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_models(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, out = HiddenMarkovModel.read(model), tmp_path / "o.tsv"
    words = ["decode", str(model), str(tmp_path / "dna.fasta"), "-o", str(out)]
    assert main(words) == 0
    assert "2 sequences, 4 rows" in capsys.readouterr().err
    found = rows_of(out)
    assert found[0] == ["sequence_id", "score", "first", "last", "state"]
    assert [row[2:] for row in found[1:4]] == [
        ["1", "11", "sea"],
        ["12", "26", "island"],
        ["27", "36", "sea"],
    ]
    assert main([*words, "--what", "sum"]) == 0
    assert float(rows_of(out)[2][1]) == likelihood(own, "AT")
    assert main([*words, "--what", "count", "--threads", "1"]) == 0
    assert rows_of(out)[2] == ["two", "4", "1"]
    assert main([*words, "--what", "posterior"]) == 0
    assert float(rows_of(out)[-1][3]) == posterior(own, "AT")[1, 1]


def test_numbers_of_paths_have_all_their_digits(model: Path, tmp_path: Path) -> None:
    # Of more digits than Python turns into text of its own accord.
    (tmp_path / "long.fasta").write_text(f">one\n{'ACGT' * 3750}\n")
    out = tmp_path / "o.tsv"
    assert main(["decode", str(model), str(tmp_path / "long.fasta"), "-o", str(out), "--what", "count"]) == 0
    digits = rows_of(out)[1][1]
    assert len(digits) == 4516 and int(digits[-9:]) == pow(2, 15_000, 10**9)


def test_graphs(tmp_path: Path) -> None:
    (tmp_path / "g.txt").write_text("0 1 1 7 0.5\n1 0 2 8\n0\n1 1\n")
    np.save(tmp_path / "frames.npy", np.zeros((3, 2)))
    words = ["decode", str(tmp_path / "g.txt"), str(tmp_path / "frames.npy"), "-o", str(tmp_path / "o.tsv")]
    for active in ("2", "99999999999999999999"):
        assert main([*words, "--beam", "5", "--active", active]) == 0
    assert rows_of(tmp_path / "o.tsv") == [["sequence_id", "score", "labels"], ["1", "-2", "7,8,7"]]
    assert main([*words, "--what", "count"]) == 0
    assert rows_of(tmp_path / "o.tsv")[1] == ["1", "1"]
    assert main([*words, "--what", "sum"]) == 0
    assert rows_of(tmp_path / "o.tsv")[1] == ["1", "-2"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["MODEL", "bad.fasta"], "found N, symbol 2 of sequence 'x', expected one of A, C, G, T"),
        (["MODEL", "dna.fasta", "--beam", "3"], "found a hidden Markov model, expected best with a graph"),
        (["g.txt", "frames.npy", "--what", "sum", "--active", "3"], "beam, active: found sum with a graph"),
        (["g.txt", "frames.npy", "--active", "0"], "active: found 0, expected a whole number of at least 1"),
        (["gone.txt", "frames.npy"], "gone.txt: found no such file, expected a file to read"),
        (["none.json", "dna.fasta"], "none.json: found the fields none, expected an object with start"),
        (["MODEL", "text.npy"], "expected a .npy file of numbers"),
        (["g.txt", "dna.fasta"], "expected logarithms (frames, labels) for a graph"),
        (["g.txt", "dna.fasta", "--what", "posterior"], "expected a hidden Markov model"),
        (["g.txt", "frames.npy", "--beam", "-1"], "beam: found -1.0, expected at least 0"),
    ],
)
def test_bad_requests(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    (tmp_path / "bad.fasta").write_text(">x\nAN\n")
    (tmp_path / "text.npy").write_text("text")
    (tmp_path / "none.json").write_text("{}")
    (tmp_path / "g.txt").write_text("0 0 2 0\n0\n")
    np.save(tmp_path / "frames.npy", np.zeros((1, 2)))
    paths = [str(model) if w == "MODEL" else str(tmp_path / w) if "." in w else w for w in words]
    assert main(["decode", *paths, "-o", str(tmp_path / "o.tsv")]) == 2
    assert text in capsys.readouterr().err
    assert not (tmp_path / "o.tsv").exists()
