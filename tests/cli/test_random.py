"""``plait random``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plait.cli import main
from plait.random import Mrg32k3a, Mt19937, Sobol, files


def test_files_are_what_generators_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PIECE", 300)
    out = tmp_path / "x.npy"
    assert main(["random", "mrg32k3a", "-n", "1000", "--skip", "5", "--stream", "2", "-o", str(out)]) == 0
    assert np.array_equal(np.load(out), Mrg32k3a(stream=2).skip(5).uniform(1000, device="cpu"))
    assert (
        main(["random", "mt19937", "-n", "999", "--seed", "9", "--distribution", "raw", "-o", str(out)]) == 0
    )
    assert np.array_equal(np.load(out), Mt19937(9).raw(999, device="cpu"))
    words = ["random", "sobol", "-n", "1000", "--dimensions", "3", "--dtype", "float32", "-o", str(out)]
    assert main(words) == 0
    assert np.array_equal(np.load(out), Sobol(3).uniform(1000, device="cpu", dtype="float32"))


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["random", "sobol", "-n", "3", "--dimensions", "2"]) == 0
    assert capsys.readouterr().out == "0.0 0.0\n0.5 0.5\n0.75 0.25\n"
    assert main(["random", "mt19937", "-n", "2", "--distribution", "raw"]) == 0
    assert capsys.readouterr().out == "3499211612\n581869302\n"
    assert main(["random", "mrg32k3a", "-n", "0"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["mt19937", "-n", "1", "--stream", "1"],
            "--stream: found it with mt19937, expected mrg32k3a",
        ),
        (
            ["mrg32k3a", "-n", "1", "--dimensions", "2"],
            "--dimensions: found it with mrg32k3a, expected",
        ),
        (["mrg32k3a", "-n", "-1"], "count: found -1, expected a whole number of at least 0"),
        (["sobol", "-n", "5", "--skip", "4294967295"], "count: found 5, expected a whole number from 0 to 1"),
        (
            ["mt19937", "-n", "1", "--seed", "4294967296"],
            "found 4294967296, expected a whole number from 0 to",
        ),
        (["mrg32k3a", "-n", "1", "-o", "x.txt"], "x.txt"),
    ],
)
def test_bad_requests(
    words: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["random", *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
