"""``plait episodes``."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.episodes import neurons

from plait.cli import main


@pytest.fixture
def events(tmp_path: Path) -> Path:
    types, times, _ = neurons(seconds=5)
    table = pa.table({"type": [f"n{k:02d}" for k in types], "time": times})
    pq.write_table(table, tmp_path / "events.parquet")
    rows = zip(table["type"].to_pylist(), times.tolist(), strict=True)
    (tmp_path / "events.csv").write_text("ms,what\n" + "".join(f"{t!r},{k}\n" for k, t in rows))
    return tmp_path / "events.parquet"


def test_mining_and_counting(events: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, other, again = (tmp_path / name for name in ("found.tsv", "other.tsv", "again.parquet"))
    options = ["--window", "5:10", "--window", "0:5", "--support", "35"]
    assert main(["episodes", str(events), *options, "-o", str(out)]) == 0
    said = capsys.readouterr().err
    assert "size 1: 26 of 26 candidates" in said and "episodes in" in said
    columns = ["--type-column", "what", "--time-column", "ms", "--threads", "2"]
    assert main(["episodes", str(tmp_path / "events.csv"), *options, *columns, "-o", str(other)]) == 0
    assert other.read_bytes() == out.read_bytes()
    lines = out.read_text().splitlines()
    assert lines[0].split("\t") == ["episode", "size", "count", "all_occurrences", "first", "last"]
    assert "n00 -(5,10]-> n01 -(5,10]-> n02 -(5,10]-> n03 -(5,10]-> n04" in {
        line.split("\t")[0] for line in lines
    }
    facts = json.loads(Path(f"{out}.json").read_text())["metadata"]["plait.episodes"]
    assert facts["windows"] == [[5.0, 10.0], [0.0, 5.0]] and facts["support"] == 35
    assert main(["episodes", str(events), "--list", str(out), "-o", str(again)]) == 0
    assert pq.read_table(again)["count"].to_pylist() == [int(line.split("\t")[2]) for line in lines[1:]]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "--window, --support, --list: found neither"),
        (["--window", "1:2"], "--window, --support, --list: found one of --window, --support"),
        (["--window", "1-2", "--support", "3"], "--window: found '1-2', expected LO:HI, two numbers"),
        (["--window", "2:1", "--support", "3"], "window: found 2:1"),
        (["--window", "-1:1", "--support", "3"], "window: found -1:1"),
        (["--window", "1:2", "--support", "-3"], "support: found -3, expected a whole number of at least 1"),
        (["--window", "1:2", "--support", "3", "--time-column", "x"], "expected a column 'x'"),
        (["--window", "1:2", "--support", "3", "--time-column", "type"], "record 0, column 'type': found 'n"),
        (["--list", "LIST"], "line 3: found 'B -(2,1]-> A'"),
    ],
)
def test_bad_requests(
    events: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    (tmp_path / "list").write_text("episode\tcount\nA\t1\nB -(2,1]-> A\t1\n")
    out = tmp_path / "o.tsv"
    given = [str(tmp_path / "list") if word == "LIST" else word for word in words]
    assert main(["episodes", str(events), *given, "-o", str(out)]) == 2
    assert text in capsys.readouterr().err
    assert not out.exists()
