"""Tables as folders of parts: every reader finds the rows that were written; what is wrong is named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as arrow_dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from plait.errors import FormatError, InvalidInput
from plait.formats import datasets
from plait.formats.datasets import DatasetOutput, PartFile, Parts, PartWriter, parts_of
from plait.formats.files import beside
from plait.formats.parquet import ParquetInput
from plait.formats.rearrangements import open_rearrangements, read_columns
from plait.formats.sheets import read_sample_sheet
from plait.formats.tables import ONE_FILE, PartSettings, open_table

ROWS = pa.record_batch(
    {
        "junction": ["TGTTTC", "TGTGCATTC", "", None, "TGTTTC", "TGTAAATTC", "TGT"],
        "v_call": ["V1", "V2", "V1", "", "V2", "V1", "V1"],
        "subject_id": ["a", "b/c", None, "", "a", "%=", "007"],
        "j_call": ["J1"] * 7,
        "n": pa.array([1, 2, None, 4, 5, 6, 7], pa.int32()),
        "counts": pa.array([[1, 2], [], None, [3], [4], [5], [6]], pa.list_(pa.int64())),
    }
)


def written(folder: Path, rows: pa.RecordBatch = ROWS, settings: PartSettings = ONE_FILE) -> Path:
    with open_table(f"{folder}/", rows.schema, metadata={"plait.x": '{"y": 1}'}, parts=settings) as table:
        table.write(rows)
    return folder


def expected(rows: pa.RecordBatch, partition: str | None, most: int) -> list[dict[str, Any]]:
    """The rows of a dataset by its definition: parts of `most` rows, files in the order of their paths."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for number, row in enumerate(rows.to_pylist()):
        value = None if partition is None else row[partition]
        text = "".join(c if c.isalnum() or c in "_.-~ " else f"%{ord(c):02X}" for c in value or "")
        folder = "" if partition is None else "__HIVE_DEFAULT_PARTITION__" if value is None else text
        found.setdefault((f"subject_id={folder}/", number // most), []).append(row)
    return [row for key in sorted(found) for row in found[key]]


def read(folder: Path) -> list[dict[str, Any]]:
    names = [path for path, _ in parts_of(folder) or []]
    return [row for name in names for batch in ParquetInput(name).batches(2) for row in batch.to_pylist()]


_TEXTS = st.one_of(st.none(), st.text(st.sampled_from("aB0/%=."), max_size=3))


@examples(40)
@given(
    st.lists(st.tuples(_TEXTS, st.integers(0, 9)), max_size=12),
    st.sampled_from([None, "subject_id"]),
    st.integers(1, 5),
)
def test_rows_are_those_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, int]], partition: str | None, most: int
) -> None:
    schema = pa.schema([("n", pa.int64()), ("subject_id", pa.string())])
    batch = pa.RecordBatch.from_pylist([{"n": n, "subject_id": text} for text, n in rows], schema)
    folder = written(tmp_path_factory.mktemp("d") / "o", batch, PartSettings(partition, most))
    assert read(folder) == expected(batch, partition, most)
    assert read_columns(folder, schema.names).schema.equals(schema)


@pytest.mark.parametrize("partition", [None, "subject_id"])
def test_every_reader_reads_one_table(tmp_path: Path, partition: str | None) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install duckdb")
    # What Hive takes for nothing, and for a number, is not among them.
    rows = ROWS.take(pa.array([0, 1, 4, 5]))
    folder = written(tmp_path / "o", rows, PartSettings(partition, 2))
    known = sorted(expected(rows, partition, 2), key=lambda row: row["n"])
    glob = f"{folder}/**/*.parquet"
    hive = arrow_dataset.partitioning(pa.schema([("subject_id", pa.string())]), flavor="hive")
    found = {
        "pyarrow": arrow_dataset.dataset(folder, partitioning=hive).to_table().to_pylist(),
        "polars": polars.scan_parquet(
            glob, hive_partitioning=True, hive_schema={"subject_id": polars.String} if partition else None
        )
        .collect()
        .to_dicts(),
        "duckdb": duckdb.sql(f"select * from read_parquet('{glob}', hive_types_autocast = false)")
        .to_arrow_table()
        .to_pylist(),
    }
    for name, table in found.items():
        assert sorted(table, key=lambda row: row["n"]) == [
            {key: row[key] for key in table[0]} for row in known
        ], name
        assert set(table[0]) == set(rows.schema.names), name


def test_tables_of_rearrangements_are_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "o", settings=PartSettings("subject_id", 2))
    reader = open_rearrangements([folder], block_rows=3)
    blocks = [row for block in reader for row in block.to_pylist()]
    assert blocks == expected(ROWS, "subject_id", 2)
    ranges = reader.ranges(["subject_id", "n"], 2)
    assert ranges is not None
    assert [row for one in ranges for row in one.read().to_pylist()] == [
        {"subject_id": row["subject_id"], "n": row["n"]} for row in blocks
    ]


def test_the_manifest_and_the_bytes(tmp_path: Path) -> None:
    one, other = (written(tmp_path / name, settings=PartSettings(None, 3)) for name in "ab")
    names = sorted(path.name for path in one.iterdir())
    assert names == ["_manifest.json", *(f"part-0000000{k}.parquet" for k in range(3))]
    assert all((one / name).read_bytes() == (other / name).read_bytes() for name in names)
    told = json.loads((one / "_manifest.json").read_text())
    assert told["rows"] == 7 and told["metadata"] == {"plait.x": {"y": 1}}
    assert told["columns"][4] == {"name": "n", "type": "int32"}
    assert [part["rows"] for part in told["parts"]] == [3, 3, 1]
    assert [part["bytes"] for part in told["parts"]] == [(one / name).stat().st_size for name in names[1:]]
    assert pq.read_schema(one / names[1]).metadata[b"plait.x"] == b'{"y": 1}'


@pytest.mark.parametrize("partition", [None, "subject_id"])
def test_a_table_without_rows_keeps_its_columns(tmp_path: Path, partition: str | None) -> None:
    folder = written(tmp_path / "o", ROWS.slice(0, 0), PartSettings(partition))
    assert read(folder) == []
    assert read_columns(folder, ROWS.schema.names).schema.equals(ROWS.schema)


def test_a_sheet_names_a_folder(tmp_path: Path) -> None:
    written(tmp_path / "by", settings=PartSettings("subject_id", 4))
    written(tmp_path / "plain", ROWS.drop_columns(["subject_id"]), PartSettings(None, 3))
    written(tmp_path / "told", settings=PartSettings(None, 9))
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("file,condition\nby,a\nplain,b\ntold,c\n")
    found = read_sample_sheet(sheet)
    assert [(one.subject, one.line, one.covariates["condition"]) for one in found.samples] == [
        *((subject, 2, "a") for subject in ("%=", "", "007", None, "a", "a", "b/c")),
        *[("plain", 3, "b")] * 3,
        (None, 4, "c"),
    ]
    sheet.write_text("file\nby\nby/../by\n")
    with pytest.raises(FormatError, match="it is in line 2 already"):
        read_sample_sheet(sheet)


def damaged(name: str, change: Any) -> Any:
    def strike(folder: Path) -> None:
        path = folder / name
        content = change(path.read_bytes())
        path.unlink() if content is None else path.write_bytes(content)

    return strike


def _flipped(content: bytes) -> bytes:
    # Within the first page, behind its header.
    return content[:60] + bytes(byte ^ 255 for byte in content[60:70]) + content[70:]


def _other_version(content: bytes) -> bytes:
    return content.replace(b'"version": 1', b'"version": 9')


PART = "part-00000001.parquet"


@pytest.mark.parametrize(
    ("strike", "found", "name"),
    [
        (damaged(PART, lambda content: None), "no such file", PART),
        (damaged(PART, lambda content: content[:-9]), "bytes", PART),
        (damaged(PART, _flipped), "damaged or unreadable Parquet", PART),
        (damaged("_manifest.json", lambda content: content[:-9]), "found", "_manifest.json"),
        (damaged("_manifest.json", lambda content: b"{}"), "no such manifest", "_manifest.json"),
        (damaged("_manifest.json", _other_version), "no such manifest", "_manifest.json"),
        (
            damaged(
                "_manifest.json", lambda content: content.replace(b'"bytes": ', b'"bytes": 1e999, "b": ')
            ),
            "no such manifest",
            "_manifest.json",
        ),
        (
            damaged("_manifest.json", lambda content: content.replace(b'"rows": 3', b'"rows": 2')),
            "are not all",
            "_manifest.json",
        ),
        (lambda f: (f / PART).rename(f / "other.parquet"), "no such file", PART),
        (
            lambda f: (f / "more.parquet").write_bytes((f / PART).read_bytes()),
            "a file that _manifest.json does not list",
            "more.parquet",
        ),
    ],
    ids=[
        "missing",
        "cut",
        "flipped",
        "cut manifest",
        "empty manifest",
        "version",
        "infinite",
        "rows",
        "renamed",
        "one more",
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, strike: Any, found: str, name: str) -> None:
    folder = written(tmp_path / "o", settings=PartSettings(None, 3))
    strike(folder)
    with pytest.raises(FormatError, match=found) as caught:
        list(open_rearrangements([folder], block_rows=10))
    assert caught.value.path == str(folder / name)
    if name == PART:
        assert "again" in (caught.value.hint or "")


def test_a_folder_of_other_programs_is_a_table(tmp_path: Path) -> None:
    for number, value in enumerate(["a b", "c"]):
        folder = tmp_path / "o" / f"subject_id={value.replace(' ', '%20')}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table([ROWS.drop_columns(["subject_id"]).slice(number, 1)[k] for k in (0, 1, 2)],
                                ["junction", "v_call", "j_call"]), folder / "x.parquet")  # fmt: skip
    (tmp_path / "o" / "_SUCCESS").touch()
    (block,) = open_rearrangements([tmp_path / "o"], block_rows=10)
    assert block["subject_id"].to_pylist() == ["a b", "c"]
    assert block["junction"].to_pylist() == ["TGTTTC", "TGTGCATTC"]


def test_a_folder_with_everything_else_is_not_walked_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k in range(6):
        (tmp_path / f"{k}.txt").touch()
    with pytest.raises(FormatError, match="found a directory"):
        list(open_rearrangements([tmp_path], block_rows=10))
    monkeypatch.setattr(datasets, "_MOST_OTHERS", 5)
    with pytest.raises(FormatError, match="more than 5 files,"):
        list(open_rearrangements([tmp_path], block_rows=10))
    for k in range(6):
        part = tmp_path / "parts" / f"subject_id={k}" / "0.parquet"
        part.parent.mkdir(parents=True)
        table = pa.table({"junction": ["TGT" * (k + 1)], "v_call": ["V"], "j_call": ["J"]})
        pq.write_table(table, part)
    blocks = list(open_rearrangements([tmp_path / "parts"], block_rows=10))
    assert sum(block.num_rows for block in blocks) == 6


def test_schemas_that_differ_are_named(tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    columns = {"junction": ["TGT"], "v_call": ["V"], "j_call": ["J"]}
    pq.write_table(pa.table({**columns, "n": [1]}), tmp_path / "o" / "a.parquet")
    pq.write_table(pa.table({**columns, "n": [1.5]}), tmp_path / "o" / "b.parquet")
    with pytest.raises(FormatError, match=r"column 'n': .*double.*int64, as in .*a\.parquet") as caught:
        open_rearrangements([tmp_path / "o"], block_rows=10)
    assert caught.value.path == str(tmp_path / "o" / "b.parquet")


def test_an_older_dataset_is_replaced_as_a_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = written(tmp_path / "o", settings=PartSettings(None, 1))
    caplog.set_level("INFO")
    with pytest.raises(KeyError), open_table(f"{folder}/", ROWS.schema, metadata={}) as table:
        table.write(ROWS)
        raise KeyError
    assert len(list(folder.iterdir())) == 8
    written(folder, ROWS.slice(0, 2))
    assert read(folder) == ROWS.slice(0, 2).to_pylist()
    assert [path.name for path in tmp_path.iterdir()] == ["o"]
    assert "was there before and has been replaced" in caplog.text


def test_what_may_not_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    (tmp_path / "o.unfinished").mkdir()
    (tmp_path / "o.unfinished" / "mine.txt").write_text("x")
    source = written(tmp_path / "source")
    cases: list[tuple[Path, list[Path], str]] = [
        (tmp_path / "file", [], "which is a file"),
        (tmp_path / "full", [], "which holds something else"),
        (tmp_path / "o", [], "which holds something else"),
        (tmp_path / "none" / "o", [], "in a folder that does not exist"),
        (source, [source], "which is also an input"),
        (source, [source / "part-00000000.parquet"], "which holds an input"),
        (source / "inner", [source], "which is in an input"),
        (tmp_path / "full" / "..", [], "the name of a folder"),
    ]
    for output, inputs, why in cases:
        with pytest.raises(InvalidInput, match=why):
            open_table(f"{output}/", ROWS.schema, metadata={}, inputs=inputs)
    assert (tmp_path / "full" / "mine.txt").exists() and (tmp_path / "o.unfinished" / "mine.txt").exists()


def test_what_a_user_has_put_into_a_dataset_stays(tmp_path: Path) -> None:
    folder = written(tmp_path / "o")
    (folder / "README").write_text("mine")
    with pytest.raises(InvalidInput, match="which holds something else"):
        written(folder)
    assert (folder / "README").read_text() == "mine" and read(folder) == ROWS.to_pylist()
    monthly = tmp_path / "link"
    monthly.symlink_to(written(tmp_path / "may"))
    written(monthly, ROWS.slice(0, 2))
    assert monthly.is_symlink() and read(tmp_path / "may") == ROWS.slice(0, 2).to_pylist()


def test_links_in_a_dataset(tmp_path: Path) -> None:
    folder = written(tmp_path / "o", settings=PartSettings(None, 3))
    (folder / "loop").symlink_to("loop")
    (folder / PART).rename(tmp_path / "elsewhere")
    (folder / PART).symlink_to(tmp_path / "elsewhere")
    assert read(folder) == ROWS.to_pylist()
    (tmp_path / "elsewhere").unlink()
    with pytest.raises(FormatError, match=f"{PART}: found no such file"):
        list(open_rearrangements([folder], block_rows=10))
    (folder / "_manifest.json").unlink()
    (folder / "_manifest.json").mkdir()
    with pytest.raises(FormatError, match="a file that can be read"):
        list(open_rearrangements([folder], block_rows=10))


@pytest.mark.parametrize("name", ["a b", "ü=%20", "line\nline", "*?[a]", "-o"])
def test_names_with_odd_characters(tmp_path: Path, name: str) -> None:
    schema = pa.schema([("junction", pa.string()), (name, pa.string())])
    rows = pa.record_batch({"junction": ["TGT"] * 3, name: [f"{name}/..", name, None]}, schema)
    folder = written(tmp_path / name, rows, PartSettings(name))
    assert sorted(read(folder), key=str) == sorted(rows.to_pylist(), key=str)
    found = arrow_dataset.dataset(folder, partitioning="hive").to_table()
    assert found["junction"].to_pylist() == ["TGT"] * 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_two_claims_of_a_store(tmp_path: Path) -> None:
    where = f"file://{tmp_path}/o/"
    (tmp_path / "o").mkdir()
    parts = Parts(ROWS.schema, {})

    def put(output: DatasetOutput, number: int) -> list[PartFile]:
        writer = PartWriter(number, parts)
        writer.write(ROWS)
        return list(writer.finish(output.folder))

    first = DatasetOutput(where)
    files = put(first, 0)
    with pytest.raises(InvalidInput, match="which another run is writing"):
        DatasetOutput(where)
    second = DatasetOutput(where, resume=True)
    others = put(second, 1)
    with pytest.raises(FormatError, match="another run that writes there, too"):
        first.finish(files, parts, None)
    first.discard()
    second.finish(others, parts, None)
    second.close()
    assert read(tmp_path / "o") == ROWS.to_pylist()
    assert [path.name for path in sorted((tmp_path / "o").glob("part*"))] == ["part-00000001.parquet"]


def test_two_runs_into_one_dataset(tmp_path: Path) -> None:
    with open_table(f"{tmp_path}/o/", ROWS.schema, metadata={}) as table:
        with pytest.raises(InvalidInput, match="which another run is writing"):
            open_table(f"{tmp_path}/o/", ROWS.schema, metadata={})
        table.write(ROWS)
    assert read(tmp_path / "o") == ROWS.to_pylist()


def test_an_older_folder_that_a_killed_run_had_moved_comes_back(tmp_path: Path) -> None:
    folder = written(tmp_path / "o")
    os.rename(folder, tmp_path / ".o.replaced")
    open_table(f"{folder}/", ROWS.schema, metadata={}).discard()
    assert read(folder) == ROWS.to_pylist()


def test_a_process_that_comes_late_writes_nothing(tmp_path: Path) -> None:
    output = DatasetOutput(f"{tmp_path}/o/")
    parts = Parts(ROWS.schema, {})
    late = PartWriter(1, parts)
    late.write(ROWS)
    output.finish(PartWriter.empty(parts, output.folder), parts, None)
    output.close()
    with pytest.raises(FormatError, match="No such file"):
        late.finish(output.folder)
    assert [path.name for path in tmp_path.iterdir()] == ["o"]


def test_parts_that_are_not_whole_are_known(tmp_path: Path) -> None:
    with pytest.raises(KeyError), DatasetOutput(f"{tmp_path}/o/") as output:
        writer = PartWriter(0, Parts(ROWS.schema, {}))
        writer.write(ROWS)
        (part,) = writer.finish(output.folder)
        assert output.whole(part)
        assert not output.whole(PartFile(part.path, 7, part.bytes, "0" * 32))
        assert not output.whole(part._replace(path="part-00000009.parquet"))
        raise KeyError


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (PartSettings("nobody"), "a column of the output: junction"),
        (PartSettings("n"), "a column of text among others"),
        (PartSettings(None, 0), "at least 1"),
    ],
)
def test_wrong_settings(tmp_path: Path, settings: PartSettings, expected: str) -> None:
    with pytest.raises(InvalidInput, match=expected):
        written(tmp_path / "o", settings=settings)
    assert not list(tmp_path.iterdir())


def test_values_that_name_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("subject_id", pa.string()), ("n", pa.int64())])
    long = pa.record_batch({"subject_id": ["x" * 300], "n": [1]}, schema)
    with pytest.raises(InvalidInput, match="values that name folders"):
        written(tmp_path / "o", long, PartSettings("subject_id"))
    null = pa.record_batch({"subject_id": ["__HIVE_DEFAULT_PARTITION__", None], "n": [1, 2]}, schema)
    with pytest.raises(InvalidInput, match="the folder of rows without a value"):
        written(tmp_path / "o", null, PartSettings("subject_id"))
    for hidden in ("_id", ".id"):
        with pytest.raises(InvalidInput, match="readers pass over such folders"):
            written(tmp_path / "o", long.rename_columns([hidden, "n"]), PartSettings(hidden))
    monkeypatch.setattr("plait.formats.datasets._MOST_VALUES", 2)
    many = pa.record_batch({"subject_id": list("abc"), "n": [1, 2, 3]}, schema)
    with pytest.raises(InvalidInput, match="more than 2 values in a part"):
        written(tmp_path / "o", many, PartSettings("subject_id"))
    assert not list(tmp_path.iterdir())


def test_what_only_folders_have(tmp_path: Path) -> None:
    for settings in (PartSettings("v_call"), PartSettings(None, 3)):
        with pytest.raises(InvalidInput, match=r"a folder of parts with it; write a folder: .*o\.parquet/"):
            open_table(tmp_path / "o.parquet", ROWS.schema, metadata={}, parts=settings)
    with pytest.raises(InvalidInput, match="a file in a store"):
        open_table("s3://bucket/o.parquet", ROWS.schema, metadata={})


def test_beside_a_folder(tmp_path: Path) -> None:
    assert beside(f"{tmp_path}/o/", ".checkpoint") == tmp_path / "o.checkpoint"
    assert beside(tmp_path / "o.tsv", ".checkpoint") == tmp_path / "o.tsv.checkpoint"
