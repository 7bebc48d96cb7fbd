"""Tables as the AIRR schema asks: what is added to them, and that the airr package accepts them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.alphabets import translate
from plait.formats.rearrangements import open_rearrangements
from plait.formats.tables import open_table
from plait.vdj.airr import REQUIRED, RearrangementRows, completed, lacking, productive, translations

JUNCTIONS = ["TGTGCCTTC", "tgtgcctag", "TGTTAACTTC", "TGTGCCTT", "", None, "TGTNNATTC"]


def test_what_a_junction_tells_is_added() -> None:
    rows = pa.record_batch(
        {"junction": pa.array(JUNCTIONS), "v_call": ["TRBV1"] * 7, "j_call": pa.nulls(7, pa.string())}
    )
    wanted = lacking(rows.schema)
    found = dict(zip(wanted.names, completed(rows, wanted, 40), strict=True))
    assert {*found} == {*REQUIRED.names} - {"v_call", "j_call", "junction"}
    assert found["sequence_id"].to_pylist() == [str(40 + k) for k in range(7)]
    assert found["junction_aa"].to_pylist() == ["CAF", "CA*", None, None, None, None, "CXF"]
    assert found["productive"].to_pylist() == [True, False, False, False, None, None, True]
    assert found["rev_comp"].to_pylist() == [False] * 7
    for name in ("cell_id", "d_call", "sequence", "v_cigar"):
        assert found[name].type == pa.string() and found[name].null_count == 7


def test_what_is_there_stays_and_other_tables_are_left_alone() -> None:
    full = REQUIRED.append(pa.field("x", pa.int8()))
    assert not lacking(full).names
    for names in (("junction_aa", "v_call", "j_call"), ("junction", "v_call")):
        assert not lacking(pa.schema([(name, pa.string()) for name in names])).names
    given = pa.record_batch({"junction": ["TGT"], "v_call": ["a"], "j_call": ["b"], "productive": ["no"]})
    rows = RearrangementRows(given.schema, pa.schema([("d_call", pa.string())]))
    (row,) = rows.batch(0, given, pa.record_batch({"d_call": ["d"]})).to_pylist()
    assert (row["productive"], row["d_call"], row["junction_aa"]) == ("no", "d", "C")


def test_the_airr_package_accepts_them(tmp_path: Path) -> None:
    airr = pytest.importorskip("airr", reason="the airr package is not installed")
    # From airr itself, so that a new version of the schema is noticed.
    assert {*airr.schema.RearrangementSchema.required} <= {*REQUIRED.names}
    kinds = {"string": pa.string(), "boolean": pa.bool_()}
    for field in REQUIRED:
        assert kinds[airr.schema.RearrangementSchema.type(field.name)] == field.type
    n = 3
    given = pa.record_batch({"junction": JUNCTIONS[:n], "v_call": ["TRBV1"] * n, "j_call": ["TRBJ1-1"] * n})
    rows = RearrangementRows(given.schema, pa.schema([("path_count", pa.int64())]))
    path = tmp_path / "out.tsv"
    with open_table(path, rows.schema, metadata={}) as table:
        table.write(rows.batch(0, given, pa.record_batch({"path_count": [1, 2, 3]})))
    assert airr.validate_rearrangement(str(path), debug=True)
    assert airr.load_rearrangement(str(path))["productive"].tolist() == [True, False, False]


def test_bools_of_one_file_and_text_of_another(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"junction": ["A"] * 3, "v_call": ["V"] * 3, "j_call": ["J"] * 3}
    columns["productive"] = [True, False, None]
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    (tmp_path / "b.tsv").write_text("junction\tv_call\tj_call\tproductive\nB\tV\tJ\tTRUE\nB\tV\tJ\t\n")
    for paths in (["a.parquet", "b.tsv"], ["b.tsv", "a.parquet"]):
        with open_rearrangements([tmp_path / path for path in paths], block_rows=10) as reader:
            (block,) = reader
        found = {(row["junction"], row["productive"]) for row in block.to_pylist()}
        assert found == {("A", "T"), ("A", "F"), ("A", None), ("B", "TRUE"), ("B", "")}


@given(
    st.lists(st.none() | st.text("ACGTUNRYacgtu-", max_size=12), max_size=9),
    st.integers(0, 3),
    st.sampled_from([pa.string(), pa.large_string()]),
)
def test_codons_are_those_of_each_junction(texts: list[str | None], skipped: int, kind: pa.DataType) -> None:
    column = pa.array(texts, kind).slice(skipped)
    acids, whole = [], []
    for text in texts[skipped:]:
        codons = [(text or "")[k : k + 3].upper() for k in range(0, len(text or ""), 3)]
        framed = bool(codons) and len(codons[-1]) == 3
        known = "ACGTRYN"
        acids.append(
            "".join(translate(c) if set(c) <= set(known) else "?" for c in codons) if framed else None
        )
        whole.append((framed and not {"TAA", "TAG", "TGA"} & set(codons)) if text else None)
    assert translations(column).to_pylist() == acids
    assert productive(column).to_pylist() == whole
