"""``plait vdj alleles``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.allele_simulation import Individual, changed_allele, simulate_individual, truth_rows
from support.examples import often

from plait.vdj.germline import load_germline

MOUSE = load_germline("mouse_trb")
OWN = MOUSE.v[0]
NEW = changed_allele(OWN, {(OWN.anchor or 0) - 9: "T", (OWN.anchor or 0) - 40: "A"})


@pytest.fixture(scope="module")
def rows() -> pa.RecordBatch:
    individual = Individual(
        germline=MOUSE, hidden={OWN.name: [NEW]}, clonotypes=50, genes=(OWN.name, MOUSE.v[3].name)
    )
    return truth_rows(simulate_individual(individual, seed=8), MOUSE)


def as_text(rows: pa.RecordBatch) -> dict[str, list[str]]:
    words = {True: "T", False: "F"}
    return {
        name: [words[value] if isinstance(value, bool) else str(value) for value in rows[name].to_pylist()]
        for name in rows.schema.names
    }


def test_from_text_and_from_parquet(plait: Any, write_tsv: Any, rows: pa.RecordBatch, tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_batches([rows]), tmp_path / "in.parquet")
    tables = []
    for source in (write_tsv(as_text(rows)), tmp_path / "in.parquet"):
        out = tmp_path / f"{source.suffix}.out.tsv"
        found = plait("vdj", "alleles", source, "--germline", "mouse_trb", "-o", out)
        assert (found.status, found.err) == (0, "")
        assert "1 new allele\n" in found.out and NEW.name in found.out
        assert f"{rows.num_rows:,} rows, " in found.out
        assert max(len(line) for line in found.out.splitlines() if str(out) not in line) <= 80
        tables.append(out.read_text())
        facts = json.loads(Path(f"{out}.json").read_text())["metadata"]["plait.new_alleles"]
        assert facts["limits"]["min_clonotypes"] == 8 and facts["germline"]["digest"] == MOUSE.digest
    assert tables[0] == tables[1]
    header, line = (text.split("\t") for text in tables[0].splitlines())
    row = dict(zip(header, line, strict=True))
    assert row["allele"] == NEW.name and row["status"] == "candidate" and row["sequence"] == NEW.sequence


def test_two_files_are_one_individual(
    plait: Any, write_tsv: Any, rows: pa.RecordBatch, tmp_path: Path
) -> None:
    half = rows.num_rows // 2
    first, second = rows.slice(0, half), rows.slice(half)
    files = [write_tsv(as_text(part), name=f"{k}.tsv") for k, part in enumerate((first, second))]
    whole = write_tsv(as_text(rows))
    outs = [tmp_path / f"out{k}.parquet" for k in range(2)]
    for given, out in zip(([whole], files[::-1]), outs, strict=True):
        assert plait("vdj", "alleles", *given, "--germline", "mouse_trb", "-o", out).status == 0
    assert pq.read_table(outs[0]).equals(pq.read_table(outs[1]))


@pytest.mark.parametrize("target", often(1, ["more.json", "folder", "folder/trb"]))
def test_the_extended_set_can_be_used(
    plait: Any, write_tsv: Any, rows: pa.RecordBatch, tmp_path: Path, target: str
) -> None:
    (tmp_path / "folder").mkdir()
    out, extended = tmp_path / "out.tsv", tmp_path / target
    source = write_tsv(as_text(rows))
    found = plait("vdj", "alleles", source, "--germline", "mouse_trb", "-o", out, "--extended", extended)
    assert found.status == 0 and str(extended) in found.out
    more = load_germline(extended)
    place = more.resolve(NEW.name, "V")
    assert place is not None and more.v[place].sequence == NEW.sequence
    assert more.v[place].anchor == OWN.anchor
    if target.endswith("json"):
        assert NEW.name in json.loads(extended.read_text())["GermlineSet"][0]["curation"]
    assert plait("germline", "validate", extended).status == 0
    again = plait("vdj", "alleles", source, "--germline", extended, "-o", out)
    assert "0 new alleles" in again.out


def test_what_looks_like_an_artefact_is_told(plait: Any, write_tsv: Any, tmp_path: Path) -> None:
    individual = Individual(germline=MOUSE, clonotypes=60, genes=(OWN.name,), mutated=0.6, hot_spot=240)
    table = as_text(truth_rows(simulate_individual(individual, seed=1), MOUSE))
    table["junction"][0] = ""
    out = tmp_path / "out.parquet"
    found = plait("vdj", "alleles", write_tsv(table), "--germline", "mouse_trb", "-o", out)
    assert "0 new alleles" in found.out and "that look like artefacts" in found.out
    assert "hypermutation: too few of its clonotypes" in found.out
    assert "1 rows (" in found.out and "are no evidence: no junction" in found.out
    assert set(pq.read_table(out)["status"].to_pylist()) == {"likely_artefact"}


@pytest.mark.parametrize(
    ("changes", "words", "message"),
    [
        ({"sequence": None}, (), "no column sequence"),
        ({"v_germline_start": ["x"]}, (), "expected whole numbers"),
        ({"junction": None}, (), "missing: junction"),
        ({}, ("--germline", "nothing"), "expected one of"),
        ({}, ("--min-clonotypes", "0"), "min_clonotypes: found 0"),
        ({}, ("--min-share", "2"), "min_share: found 2.0"),
        ({}, ("--most-clonotypes", "0"), "most_clonotypes: found 0"),
        ({}, ("--extended", "{out}"), "for two outputs, expected a file for each"),
        ({}, ("--extended", "{in}"), "which is also an input"),
    ],
)
def test_bad_input(
    plait: Any,
    write_tsv: Any,
    rows: pa.RecordBatch,
    tmp_path: Path,
    changes: dict[str, list[str] | None],
    words: tuple[str, ...],
    message: str,
) -> None:
    columns: dict[str, Any] = {name: values[:1] for name, values in as_text(rows).items()} | changes
    path = write_tsv({name: values for name, values in columns.items() if values is not None})
    out = tmp_path / "out.parquet"
    options = [word.format(out=out, **{"in": path}) for word in words]
    if "--germline" not in options:
        options += ["--germline", "mouse_trb"]
    found = plait("vdj", "alleles", path, "-o", out, *options)
    assert (found.status, found.out) == (2, "")
    assert message in found.err
    assert not out.exists()


def test_no_input(plait: Any, tmp_path: Path) -> None:
    found = plait("vdj", "alleles", "--germline", "mouse_trb", "-o", tmp_path / "out.tsv")
    assert found.status == 2 and "inputs: found no file" in found.err
