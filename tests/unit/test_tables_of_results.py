"""Results are tables too: to_arrow, to_pandas, and what is shown of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from plait import align, folding, mapping, vdj
from plait.errors import TargetUnavailable
from plait.folding import FoldSettings
from plait.mapping.hits import COLUMNS
from plait.types import Provenance, Tabular
from plait.vdj.alleles.new_alleles import NewAlleles
from plait.vdj.model.pgen import Pgen
from plait.vdj.model.sampling import Draws
from plait.vdj.reads.annotator import Annotations, ReadSummary

MADE = Provenance(version="1", device="cpu", schedule="none", algebra="none")
JUNCTION = "TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC"
CALLS = (["TRBV13-1", "TRBV13-1"], ["TRBJ2-7", "TRBJ2-7"])
GENOME = {"chr1": "GGACGTTGCAGGATTACCGATAACGTCC"}
REARRANGEMENTS = pa.table(
    {
        "junction": ["TGTGCCTTC", "tgtgccttc", "TGTAGCTTC"],
        "v_call": ["TRBV1*01"] * 3,
        "j_call": ["TRBJ1-1*01"] * 3,
        "subject_id": ["a", "b", "a"],
    }
)


def counted(**parameters: Any) -> vdj.PathCounts:
    junctions = {"junction": [JUNCTION, "no junction"], "v_call": CALLS[0], "j_call": CALLS[1]}
    return vdj.count_paths(pa.table(junctions), germline="mouse_trb", device="cpu", **parameters)


def totals(total: np.ndarray[Any, Any]) -> vdj.PathTotals:
    status, first = np.zeros(len(total), np.uint8), total[(slice(None), *[0] * (total.ndim - 1))]
    return vdj.PathTotals(status=status, path_count=first, total=total, provenance=MADE)


def drawn() -> Draws:
    symbols = np.array([[0, 1, 2], [3, 3, 0]], np.uint8)
    numbers = np.array([4, 5])
    return Draws(symbols, np.array([3, 2]), np.zeros((2, 9), np.int32), numbers, np.array([True, False]))


def new_alleles() -> NewAlleles:
    none: dict[str, Any] = {"left_out": {}, "clonotypes": {}, "satellites": {}, "error_rate": {}}
    table = pa.table({"allele": ["<b>V1</b>"]})
    return NewAlleles(candidates=table, germline=None, rows=3, **none)  # type: ignore[arg-type]


def annotations() -> Annotations:
    table = pa.table({"sequence_id": ["<script>alert(1)</script>", None]})
    return Annotations(table=table, summary=ReadSummary(), provenance=MADE)


#: Every result, its number of rows, and some of its columns.
RESULTS: dict[str, tuple[Callable[[], Any], int, tuple[str, ...]]] = {
    "PathCounts": (counted, 2, ("status", "path_count", "path_count_no_d", "v_match_length", "ndn_t")),
    "PathTotals": (lambda: totals(np.ones((3, 1, 1), np.int64)), 3, ("status", "total")),
    "Annotations": (annotations, 2, ("sequence_id",)),
    "SharingTable": (lambda: vdj.sharing(REARRANGEMENTS), 2, ("junction", "subjects")),
    "RepertoireDiversity": (lambda: vdj.diversity(pa.concat_tables([REARRANGEMENTS] * 3)), 2, ("subject",)),
    "NewAlleles": (new_alleles, 1, ("allele",)),
    "Pgen": (lambda: Pgen(np.zeros(2, np.uint8), np.array([0.5, np.nan]), MADE), 2, ("status", "pgen")),
    "Draws": (drawn, 2, ("number", "junction", "productive")),
    "Alignments": (lambda: align.align_many("ACGT", ["ACGT", "AGT"]), 2, ("score", "cigar", "gap_openings")),
    "Hits": (lambda: mapping.find({"p": "ACGTTGCAGGAT"}, GENOME, errors=0), 1, COLUMNS),
    "ReadHits": (
        lambda: mapping.map({"read": "ACGTTGCAGGATTTACCGATAACGT"}, GENOME, errors=1),
        1,
        ("read", "strand", "contig", "start", "end", "distance", "cigar", "md"),
    ),
    "Folds": (lambda: folding.mfe(["GGGGAAAACCCC"], FoldSettings()), 1, ("structure", "energy")),
    "Suboptimals": (
        lambda: folding.suboptimal(["GGGGAAAACCCC"], within=0, device="reference")[0],
        1,
        ("structure", "energy"),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_a_table(name: str) -> None:
    make, rows, columns = RESULTS[name]
    found = make()
    table = found.to_arrow()
    assert isinstance(found, Tabular) and isinstance(table, pa.Table)
    assert table.num_rows == rows and set(columns) <= set(table.column_names)
    told = repr(found)
    assert told.startswith(type(found).__name__) and f"{rows} row" in told and columns[0] in told
    assert len(told) < 200 and told.count("\n") <= 2
    shown = found._repr_html_()
    assert shown.count("<tr>") == rows + 1 and "<script>" not in shown and "<b>" not in shown


def test_pairs_of_an_ensemble_are_a_table() -> None:
    found = folding.partition(["GGGGAAAACCCC"])[0]
    best = max(found.to_arrow().to_pylist(), key=lambda row: row["p"])
    assert 0.5 < best["p"] <= 1 and best["i"] + best["j"] == 13
    assert f"{len(found.table.pairs)} rows" in repr(found)


def test_counts_are_null_where_there_are_none() -> None:
    found = counted()
    first, second = found.to_arrow().to_pylist()
    assert first["status"] == "ok" and first["path_count"] == int(found.path_count[0]) > 0
    assert second["status"] != "ok" and second["path_count"] is None and second["ndn_a"] is None
    wide = counted(overflow="wide").to_arrow()["path_count"]
    assert int(wide[0].as_py()) == first["path_count"] and wide[1].as_py() is None


def test_sweeps_are_lists_and_counts_beyond_columns_have_a_status() -> None:
    found = totals(np.arange(12).reshape(2, 2, 3)).to_arrow()
    assert found["total"].to_pylist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    wide = totals(np.array([[[7]], [[10**80]]], object)).to_arrow()
    assert wide["status"].to_pylist() == ["ok", "count_overflow"]
    assert wide["total"].to_pylist() == [7, None]
    assert totals(np.zeros((0, 2, 2), np.int64)).to_arrow().num_rows == 0


def test_hostile_text_is_escaped_and_cut() -> None:
    columns = {"<img src=x onerror=alert(1)>": ["<script>&\"'</script>", "\x1b[31m\n" + "A" * 10_000]}
    found = Annotations(table=pa.table(columns), summary=ReadSummary(), provenance=MADE)
    shown = found._repr_html_()
    assert "<img" not in shown and "<script>" not in shown and "&lt;script&gt;&amp;&quot;&#x27;" in shown
    assert "\x1b" not in shown and len(shown) < 600
    named = Annotations(table=pa.table({"a\nb\x1b": [1]}), summary=ReadSummary(), provenance=MADE)
    assert repr(named) == "Annotations: 1 row\n  columns: a?b?"


def test_a_million_rows_are_shown_by_ten() -> None:
    found = totals(np.zeros((1_000_000, 1, 1), np.int64))
    assert repr(found) == "PathTotals: 1,000,000 rows\n  columns: status, total"
    shown = found._repr_html_()
    assert shown.count("<tr>") == 11 and "1,000,000 rows, the first 10" in shown


def test_data_frames_need_pandas_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TargetUnavailable, match="pip install pandas"):
        drawn().to_pandas()


def test_data_frames_have_the_columns_of_the_table() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = drawn().to_pandas()
    assert list(frame.columns) == ["number", "junction", "productive"]
    assert frame["junction"].tolist() == drawn().texts()


NO_PANDAS = """
import importlib, pkgutil, sys

class NoPandas:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ImportError("there is none")

import plait.types
assert "pyarrow" not in sys.modules
for module in pkgutil.walk_packages(plait.__path__, "plait."):
    if not any(word in module.name for word in ("gpu", "cuda", "libraries", "__main__")):
        importlib.import_module(module.name)
assert "pandas" not in sys.modules
sys.meta_path.insert(0, NoPandas())
found = plait.folding.mfe(["GGGGAAAACCCC"])
print(repr(found), found._repr_html_())
try:
    found.to_pandas()
except plait.TargetUnavailable as error:
    print(error)
"""


@pytest.mark.slow
def test_imports_load_no_pandas_and_nothing_shown_needs_it() -> None:
    run = subprocess.run([sys.executable, "-c", NO_PANDAS], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("Folds: 1 row") and "((((....))))" in run.stdout
    assert "there is none; install it: pip install pandas" in run.stdout


def test_provenance_as_a_dictionary_of_its_own() -> None:
    parameters = {"pi": np.int64(4), "limits": (1, 2), "model": {"name": "dp2", "nus": [0, 1]}}
    made = Provenance(version="1", device="cpu", schedule="s", algebra="a", parameters=parameters)
    told = made.as_dict()
    names = {"version": "1", "device": "cpu", "schedule": "s", "algebra": "a"}
    assert told == {**names, "parameters": parameters}
    told["parameters"]["model"]["nus"].append(2)
    assert made.parameters["model"]["nus"] == [0, 1]
