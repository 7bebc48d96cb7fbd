"""Columns that are chosen: the values of the whole table, whatever is read, made and written for them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cases import make_germline
from support.examples import often

from plait.cli.entry import main
from plait.errors import FormatError, InvalidInput
from plait.formats.files import FileKind
from plait.formats.layouts import LAYOUTS, ConvertedFile
from plait.formats.parquet import ParquetInput
from plait.formats.rearrangements import DelimitedFile
from plait.formats.tables import PartSettings
from plait.run.dask import DaskExecutor
from plait.run.executor import Progress
from plait.run.rows import FinishedRun
from plait.vdj import PathCounter, PathModel
from plait.vdj.count_files import BlockCounter, CountSummary, count_files
from plait.vdj.model import load_model
from plait.vdj.model.pgen import pgen_files, posterior_files
from plait.vdj.model.scenarios import scenario_files

BLOCK = 16
SWEEP = PathModel(pi=3, sweep_pi=(0, 2), sweep_nu=(3, 5))


@pytest.fixture(scope="module")
def counter() -> PathCounter:
    return PathCounter("mouse_trb", device="cpu", threads=1)


@pytest.fixture
def table(tmp_path: Path, mouse_rows: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rows with columns that have the names of results, and some that cannot be counted, in small blocks."""
    monkeypatch.setattr("plait.vdj.count_files._MOST_ROWS", BLOCK)
    monkeypatch.setattr("plait.vdj.count_files._FEWEST_ROWS", BLOCK)
    rows = mouse_rows(50)
    rows["v_call"][3], rows["junction"][20] = "TRBV99", ""
    rows |= {"status": [f"s{k}" for k in range(50)], "path_count": list(range(50))}
    rows["a.b"] = [k / 2 for k in range(50)]
    pq.write_table(pa.table(rows), tmp_path / "in.parquet", row_group_size=20)
    return tmp_path / "in.parquet"


def count(
    table: Path, counter: PathCounter, name: str, columns: Any = None, **options: Any
) -> FinishedRun[CountSummary]:
    return count_files([table], f"{table.parent}/{name}", counter, columns=columns, **options)


def rows_of(made: FinishedRun[Any]) -> pa.Table:
    return pq.read_table(str(made.output)).replace_schema_metadata()


def text_of(table: Path) -> Path:
    columns = pq.read_table(table).to_pydict()
    lines = ["\t".join(columns), *("\t".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    text = table.with_suffix(".tsv")
    text.write_text("\n".join(lines) + "\n")
    return text


@pytest.mark.parametrize("seed", often(4, range(12)))
def test_they_are_those_of_the_whole_table(table: Path, counter: PathCounter, seed: int) -> None:
    draw = random.Random(seed)
    source = draw.choice([table, text_of(table)])
    long = draw.random() < 0.3
    whole = count(source, counter, "whole.parquet", long=long)
    wanted = rows_of(whole)
    columns = draw.sample(wanted.schema.names, draw.randrange(1, 7))
    found = count(source, counter, "some.parquet", columns, long=long, threads=draw.choice([1, 2]))
    assert rows_of(found).equals(wanted.select(columns))
    assert found.summary == whole.summary
    assert {**found.renamed}.items() <= {**whole.renamed}.items()
    assert {*found.renamed.values()} == {"input_status", "input_path_count"} & {*columns}
    parts = count(source, counter, "parts/", columns, long=long, parts=PartSettings(None, 8))
    assert rows_of(parts).equals(wanted.select(columns)) and parts.summary.rows == 50
    text = count(source, counter, "some.tsv", columns, long=long)
    whole_text = count(source, counter, "whole.tsv", long=long).output.read_text().splitlines()
    header = whole_text[0].split("\t")
    places = [header.index(name) for name in columns]
    lines = ["\t".join(line.split("\t")[place] for place in places) for line in whole_text]
    assert text.output.read_text().split("\n") == [*lines, ""]


@pytest.mark.parametrize(
    "columns", [["path_count"], ["junction"], ["path_count", "status", "a.b"], ["sequence_id", "vd_gap"]]
)
@pytest.mark.parametrize("suffix", often(1, ["parquet", "tsv"]))
def test_stopped_and_resumed(table: Path, counter: PathCounter, columns: list[str], suffix: str) -> None:
    count(table, counter, f"whole.{suffix}", columns)

    def stop(state: Progress) -> None:
        if state.rows > BLOCK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count(table, counter, f"out.{suffix}", columns, progress=stop, threads=2)
    with pytest.raises(InvalidInput, match="another run"):
        count(table, counter, f"out.{suffix}", ["v_call"], resume=True)
    counted = count(table, counter, f"out.{suffix}", columns, resume=True)
    assert counted.resumed_blocks > 1
    for end in ("", ".summary.json"):
        whole = table.with_name(f"whole.{suffix}{end}").read_bytes()
        assert table.with_name(f"out.{suffix}{end}").read_bytes() == whole


@pytest.mark.slow
@pytest.mark.parametrize("name", ["there.parquet", "there/"])
def test_workers_read_and_make_the_same(
    table: Path, counter: PathCounter, dask_cluster: DaskExecutor, name: str
) -> None:
    columns = ["path_count", "junction_aa", "input_status"]
    here = count(table, counter, "here.parquet", columns)
    assert rows_of(count(table, counter, name, columns, executor=dask_cluster)).equals(rows_of(here))


def test_what_is_left_out_is_not_read(table: Path, counter: PathCounter) -> None:
    with pq.ParquetFile(table) as file:
        chunk = file.metadata.row_group(1).column(file.schema_arrow.get_field_index("subject_id"))
    content = bytearray(table.read_bytes())
    content[chunk.data_page_offset : chunk.data_page_offset + 8] = bytes(8)
    table.write_bytes(content)
    with pytest.raises(FormatError, match="damaged"):
        count(table, counter, "all.parquet")
    assert rows_of(count(table, counter, "some.parquet", ["path_count"])).num_rows == 50


@pytest.mark.parametrize("locus", often(2, ["TRB", "TRA", "TRD"]))
@pytest.mark.parametrize("model", [SWEEP, PathModel(nu=3)])
@pytest.mark.parametrize("options", often(2, [{}, {"ambiguous": "all"}, {"overflow": "wide"}]))
def test_totals_of_models(tmp_path: Path, locus: str, model: PathModel, options: dict[str, Any]) -> None:
    genes = [] if locus == "TRA" else ["GGGACAGGGGGC", "TTTT"]
    germline = make_germline(["ACCTGCAGTGCAGA", "ACCTG"], genes, ["CAAACACAGAAGTCTTC"], locus=locus)
    counter = PathCounter(germline, model, device="reference", threads=1, **options)
    junctions = ["ACCTGCAGTGCAGACCTGGGGAACACAGAAGTCTTC", "", "ACCTGTTC", "?"]
    calls = [f"{locus}V1", f"{locus}V2,{locus}V1", "x", f"{locus}V1"]
    given = pa.table({"junction": junctions, "v_call": calls, "j_call": [f"{locus}J1"] * 4})
    table = tmp_path / "in.parquet"
    pq.write_table(given, table)
    whole = rows_of(count(table, counter, "whole.parquet"))
    few = ["status", "path_count"] + ["path_count_sweep"] * model.is_sweep
    found = rows_of(count(table, counter, "few.parquet", few))
    assert found.select(few[:2]).equals(whole.select(few[:2]))
    if model.is_sweep:
        name = {
            "TRB": "path_count_sweep_by_d",
            "TRA": "path_count_no_d_sweep",
            "TRD": "path_count_sweep_by_dd",
        }
        lists = whole[name[locus]].to_pylist()
        models = len(model.axes[0]) * len(model.axes[1])
        sums: list[list[Any]] = [
            [sum(row[k::models]) if row[k] is not None else None for k in range(models)] for row in lists
        ]
        assert found["path_count_sweep"].to_pylist() == sums
        # Beside other columns they are made in another way.
        more = rows_of(count(table, counter, "more.parquet", [*few, "path_count_no_d"]))
        assert more.select(few).equals(found)
        axes = json.loads(pq.read_schema(tmp_path / "few.parquet").metadata[b"plait.list_axes"])
        assert [axis["axis"] for axis in axes["path_count_sweep"]] == ["pi", "nu"] and len(axes) == 1


def test_few_rows_are_counted_at_a_time(
    table: Path, counter: PathCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = PathCounter("human_igh", PathModel(sweep_pi=range(5), sweep_nu=range(11)), device="cpu", threads=1)
    assert BlockCounter(many).most * 8 * 55 * len(many.germline.d) < 1 << 26
    whole = rows_of(count(table, counter, "whole.parquet"))
    counted: list[int] = []

    def counting(self: PathCounter, junctions: Any, *calls: Any) -> Any:
        counted.append(len(junctions))
        return counts(self, junctions, *calls)

    counts = PathCounter.count
    monkeypatch.setattr(PathCounter, "count", counting)
    monkeypatch.setattr(BlockCounter, "most", 7)
    columns = ["path_count", "vd_gap", "status"]
    assert rows_of(count(table, counter, "few.parquet", columns)).equals(whole.select(columns))
    assert counted.count(7) == 6 and counted.count(16) == 0


@pytest.mark.slow
def test_what_overflows_is_the_same(tmp_path: Path) -> None:
    germline = make_germline(["ACCTGCAGTGCAGA", "ACCTG"], ["GGGACAGGGGGC", "TTTT"], ["CAAACACAGAAGTCTTC"])
    read = "ACCTGCAGTGCAGACCTGGGGAACACAGAAGTCTTC"
    junctions = [read[:10] + "N" * n + read[-12:] for n in range(15, 45)]
    given = pa.table({"junction": junctions, "v_call": ["TRBV1"] * 30, "j_call": ["TRBJ1"] * 30})
    pq.write_table(given, tmp_path / "in.parquet")
    for model in (PathModel(nu=3, sweep_nu=(3, 20, 40)), PathModel(nu=40)):
        counter = PathCounter(germline, model, device="reference", threads=1)
        whole = rows_of(count(tmp_path / "in.parquet", counter, "whole.parquet"))
        few = ["status", "path_count"]
        assert "count_overflow" in whole["status"].to_pylist()
        assert rows_of(count(tmp_path / "in.parquet", counter, "few.parquet", few)).equals(whole.select(few))


MODEL = "human_TRB"


def test_columns_of_probabilities(tmp_path: Path) -> None:
    model, table = load_model(MODEL), tmp_path / "in.parquet"
    junctions = ["TGTGCCAGCAGTTTAGGGGGCTACGAGCAGTACTTC", "TGTGCCAGCAGCCAAGATACGCAGTATTTT", ""]
    pq.write_table(pa.table({"name": ["a", "b", "c"], "junction": junctions, "pgen_nt": [1, 2, 3]}), table)
    for run in (pgen_files, posterior_files, scenario_files):
        whole = rows_of(run([table], tmp_path / "whole.parquet", model))
        for columns in (["pgen_nt"], whole.schema.names[::-2], ["junction"]):
            found = rows_of(run([table], tmp_path / "some.parquet", model, columns=columns))
            assert found.equals(whole.select(columns))
        with pytest.raises(InvalidInput, match="names out of"):
            run([table], tmp_path / "some.parquet", model, columns=["pgen"])


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("path_cuont", "did you mean path_count?"),
        ("junction,junction", "'junction' more than once"),
        ("", "found no name, expected names out of junction, v_call"),
        ("path_count_sweep", "found 'path_count_sweep'"),
        ("junction=cdr3", "found 'junction=cdr3'"),
    ],
)
def test_other_names(table: Path, capsys: pytest.CaptureFixture[str], columns: str, told: str) -> None:
    output = table.with_name("out.parquet")
    words = ["vdj", "count", str(table), "--germline", "mouse_trb", "--columns", columns, "-o", str(output)]
    assert main(words) == 2 and told in capsys.readouterr().err
    assert not output.exists() and not output.with_name("out.parquet.checkpoint").exists()


def test_a_partition_is_written(table: Path, counter: PathCounter) -> None:
    options: dict[str, Any] = {"parts": PartSettings("subject_id", None)}
    with pytest.raises(InvalidInput, match="partition: found 'subject_id', expected a column of the output"):
        count(table, counter, "parts/", ["path_count"], **options)
    made = count(table, counter, "parts/", ["junction", "subject_id", "v_call", "j_call"], **options)
    # The files of the folder lack the column, which is read with others or alone.
    for columns in (["subject_id", "path_count"], ["subject_id"], ["path_count"]):
        found = rows_of(
            count_files([made.output], table.with_name("again.parquet"), counter, columns=columns)
        )
        assert found.schema.names == columns and found.num_rows == 50
        if "subject_id" in columns:
            given = pq.read_table(table)["subject_id"].to_pylist()
            assert sorted(found["subject_id"].to_pylist()) == sorted(given)


def test_files_give_the_columns_that_are_asked_for(table: Path) -> None:
    for file in (ParquetInput(table), DelimitedFile(text_of(table), FileKind.PLAIN)):
        whole = pa.Table.from_batches(file.batches(7))
        for columns in (["v_call"], ["a.b", "junction"], ["status", "subject_id", "path_count"]):
            found = pa.Table.from_batches(file.batches(7, columns))
            assert {*found.schema.names} == {*columns}
            assert found.equals(whole.select(found.schema.names))


def test_fields_of_other_layouts_are_read_with_what_they_are_made_of(tmp_path: Path) -> None:
    path = tmp_path / "in.tsv"
    path.write_text(
        "nSeqCDR3\tbestVHit\tbestJHit\tcloneCount\tmore\nTGTTTC\tTRBV1*00(3)\tTRBJ1-1*00\t3.0\tx\n"
    )
    layout = LAYOUTS["mixcr"]
    file = ConvertedFile(DelimitedFile(path, FileKind.PLAIN), layout, {"subject_id": "s"})
    (whole,) = file.batches(9)
    for columns in (["v_call"], ["subject_id"], ["more", "duplicate_count"], ["junction", "cloneCount"]):
        (found,) = file.batches(9, columns)
        assert {*columns} <= {*found.schema.names}
        assert found.select(columns).equals(whole.select(columns))
    assert np.all(np.array(whole["duplicate_count"]) == 3)
