"""Commands that write folders of parts, and that read them as one table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "commands"


def rows_of(path: Path) -> pa.Table:
    return pq.read_table(path, partitioning=None).replace_schema_metadata()


def same(one: Path, other: Path) -> bool:
    # Values that are not there are equal, too.
    tables = rows_of(one), rows_of(other)
    return tables[0].schema == tables[1].schema and repr(tables[0].to_pylist()) == repr(tables[1].to_pylist())


#: Words of commands that write a table, without its output.
COMMANDS: dict[str, tuple[str, ...]] = {
    "find": ("find", "guides.tsv", "genome.fasta", "--mismatches", "3"),
    "map": ("map", "reads_1.fastq", "genome.fasta", "--errors", "2"),
    "align": ("align", "dna.fasta", "--score-only"),
    "fold": ("fold", "rna.fasta"),
    "similar": ("similar", "rows.tsv", "--column", "junction", "--at-least", "0.5"),
    "episodes": ("episodes", "events.tsv", "--window", "1:5", "--support", "3"),
    "sharing": ("vdj", "sharing", "rows.tsv", "--subject", "v_call"),
    "neighbours": ("vdj", "neighbours", "rows.tsv", "rows.tsv", "--model", "human_TRB", "--draws", "3000"),
    "diversity": ("vdj", "diversity", "rows.tsv", "--subject", "v_call", "--replicates", "5"),
    "cells": ("vdj", "cells", "cells.csv"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_tables_are_written_as_folders(
    plait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(GOLDEN)
    for output in ("one.parquet", "parts/"):
        # A Path would lose the slash.
        done = plait(*COMMANDS[command], "-o", f"{tmp_path}/{output}")
        assert done.status == 0, done.err
    assert same(tmp_path / "parts", tmp_path / "one.parquet")
    told = json.loads((tmp_path / "parts" / "_manifest.json").read_text())
    assert told["rows"] == rows_of(tmp_path / "one.parquet").num_rows > 0
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


@pytest.fixture
def counted(plait: Any, tmp_path: Path) -> Path:
    done = plait("vdj", "count", GOLDEN / "rows.tsv", "--germline", "human_trb", "--part-rows", 50,
                 "-o", f"{tmp_path}/counts/")  # fmt: skip
    assert done.status == 0, done.err
    assert f"table    {tmp_path}/counts/" in done.out
    return tmp_path / "counts"


def test_folders_are_read_as_tables(plait: Any, counted: Path, tmp_path: Path) -> None:
    assert len(list(counted.glob("part-*.parquet"))) > 1
    pq.write_table(rows_of(counted), tmp_path / "one.parquet")
    for words in (
        ("vdj", "pgen", "--model", "human_TRB"),
        ("vdj", "scenarios", "--model", "human_TRB", "--best", "2"),
        ("vdj", "sharing", "--subject", "v_call"),
        ("vdj", "diversity", "--subject", "v_call", "--replicates", "5"),
        ("similar", "--column", "junction", "--at-least", "0.5"),
    ):
        place = 2 if words[0] == "vdj" else 1
        for name, output in ((counted, "a.parquet"), (tmp_path / "one.parquet", "b.parquet")):
            done = plait(*words[:place], name, *words[place:], "-o", tmp_path / output)
            assert done.status == 0, done.err
        assert same(tmp_path / "a.parquet", tmp_path / "b.parquet"), words


def test_a_sheet_names_folders(plait: Any, counted: Path, tmp_path: Path) -> None:
    (tmp_path / "sheet.csv").write_text("file,condition\ncounts,ill\n")
    done = plait("vdj", "count", "--sheet", tmp_path / "sheet.csv", "--germline", "human_trb",
                 "-o", tmp_path / "again.parquet")  # fmt: skip
    assert done.status == 0, done.err
    found = rows_of(tmp_path / "again.parquet")
    assert found["subject_id"].equals(rows_of(counted)["subject_id"])
    assert set(found["condition"].to_pylist()) == {"ill"}
    assert found["path_count"].equals(rows_of(counted)["path_count"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-o", "{}/o.parquet", "--partition", "v_call"), "a folder of parts with it; write a folder"),
        (("-o", "{}/o/", "--partition", "nobody"), "--partition: found 'nobody', expected a column"),
        (("-o", "{}/o/", "--part-rows", "0"), "--part-rows: found 0, expected a whole number of at least 1"),
        (("-o", "{}/none/o/"), "in a folder that does not exist"),
        (("-o", "s3://bucket/o.parquet"), "a file in a store"),
    ],
)
def test_wrong_requests(plait: Any, tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    given = (word.format(tmp_path) for word in words)
    done = plait("vdj", "count", GOLDEN / "rows.tsv", "--germline", "human_trb", *given)
    assert done.status == 2
    assert told.replace("--part-rows", "part_rows").replace("--partition", "partition") in done.err
    assert not list(tmp_path.iterdir())


def test_a_part_that_is_missing(plait: Any, counted: Path, tmp_path: Path) -> None:
    (counted / "part-00000001.parquet").unlink()
    done = plait("vdj", "pgen", counted, "--model", "human_TRB", "-o", tmp_path / "o.tsv")
    assert done.status == 2
    assert "part-00000001.parquet: found no such file, expected the part of" in done.err
    assert "copy it again, or repeat the command that wrote the dataset" in done.err
    assert not (tmp_path / "o.tsv").exists()


def test_a_folder_with_something_else(plait: Any, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "letter.txt").write_text("dear")
    words = ("vdj", "generate", "--model", "human_TRB", "-n", 10)
    done = plait(*words, "-o", f"{tmp_path}/o/")
    assert done.status == 2 and "which holds something else" in done.err
    assert [path.name for path in (tmp_path / "o").iterdir()] == ["letter.txt"]
