"""Counts of reads, their sums, and the reports made of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plait.errors import InvalidInput
from plait.formats.fastq import ReadBlock
from plait.reports.repertoire_text import STATUS_MEANINGS
from plait.vdj.reads.annotate_files import repertoire_names
from plait.vdj.reads.annotator import ReadSummary
from plait.vdj.reads.file_reports import FileReport, write_reports
from plait.vdj.reads.rearrangements import STATUSES

ROWS = pa.record_batch(
    {
        "rev_comp": pa.array([True, False, None, False]),
        "v_call": pa.array(["TRBV1*01,TRBV1*02", "TRBV2*01", None, "TRBV1*01"]),
        "j_call": pa.array(["TRBJ1-1*01", "TRBJ1-1*01", None, None]),
        "junction": pa.array(["TGTGCCTTC", "TGTGCCATTC", None, None]),
        "productive": pa.array([True, False, None, None]),
        "vj_in_frame": pa.array([True, False, None, None]),
        "stop_codon": pa.array([False, False, None, None]),
        "annotation_status": pa.array(["ok", "ok", "no_v", "no_j"]),
    }
)


def some() -> ReadSummary:
    qualities = np.array([40, 20, 30, 10], np.uint8)
    reads = ReadBlock(["a", "b"], np.frombuffer(b"ACGT", np.uint8), np.array([0, 3, 4]), qualities)
    found = ReadSummary()
    found.add_reads([reads], reads=2)
    found.add_rows(ROWS)
    return found


def test_every_count() -> None:
    found = some()
    assert (found.reads, found.sequences, found.bases) == (2, 4, 4)
    assert (found.forward, found.reverse) == (2, 1)
    assert (found.productive, found.out_of_frame, found.stop_codon) == (1, 1, 0)
    assert found.statuses == {"ok": 2, "no_v": 1, "no_j": 1}
    assert found.v_genes == {"TRBV1": 1, "TRBV2": 1} and found.j_genes == {"TRBJ1-1": 2}
    assert found.junction_lengths == {9: 1, 10: 1}
    assert (found.mean_quality, found.mean_length) == (25.0, 2.0)
    assert [found.junction_length(share) for share in (0.05, 0.5, 0.95)] == [9, 9, 10]


def test_nothing_has_no_means() -> None:
    found = ReadSummary()
    found.add_rows(ROWS.slice(0, 0))
    assert (found.mean_quality, found.mean_length, found.junction_length(0.5)) == (None, None, None)


def test_sums_and_a_way_through_json() -> None:
    found = some()
    found.merge(ReadSummary.from_state(json.loads(json.dumps(some().state()))))
    twice = some()
    twice.merge(some())
    assert found == twice and found.statuses["ok"] == 4 and found.junction_lengths[9] == 2
    assert ReadSummary.from_state(ReadSummary().state()) == ReadSummary()


def test_reports(tmp_path: Path) -> None:
    odd = {"duplicate_names": 3, "duplicate_names_exact": True, "empty_reads": 1, "dots": 0}
    files = [
        FileReport(path=f"{name}.fq", mate_path=None, repertoire_id=name, summary=some(), input=odd)
        for name in "ab"
    ]
    as_json, as_table = write_reports(tmp_path / "out.tsv", files, {"keep_failed": False})
    told = json.loads(as_json.read_text())
    assert told["total"]["statuses"] == {"ok": 4, "no_v": 2, "no_j": 2} and not told["keep_failed"]
    assert told["files"][1]["input"] == odd and told["files"][1]["mean_quality"] == 25.0
    header, *rows = [line.split("\t") for line in as_table.read_text().splitlines()]
    cells = dict(zip(header, rows[1], strict=True))
    assert len(rows) == 2 and all(f"{status}_share" in cells for status in STATUSES)
    assert (cells["repertoire_id"], cells["mate_path"], cells["ok_share"]) == ("b", "", "0.5")
    assert cells["most_frequent_v"] == "TRBV1:1,TRBV2:1" and cells["duplicate_names"] == "3"


def test_reports_of_files_with_odd_names(tmp_path: Path) -> None:
    # A tab, a line end, and a byte that is not UTF-8, as Python gives it.
    path, nothing = "a\tb\nc\udcff.fq", {"duplicate_names": 0, "empty_reads": 0}
    files = [FileReport(path=path, mate_path=None, repertoire_id="x", summary=some(), input=nothing)]
    as_json, as_table = write_reports(tmp_path / "out.tsv", files, {})
    assert json.loads(as_json.read_text("utf-8"))["files"][0]["path"] == path
    header, row = (line.split("\t") for line in as_table.read_text("utf-8").splitlines())
    assert dict(zip(header, row, strict=True))["path"] == r"a\tb\nc\udcff.fq"


def test_every_status_has_a_meaning() -> None:
    assert set(STATUS_MEANINGS) == set(STATUSES)


def test_names_of_repertoires() -> None:
    paths = ["x/a.1.fastq.gz", "b.FQ", "c_R1.fa.zst", "d", ".fastq"]
    assert repertoire_names(paths, None) == ("a.1", "b", "c_R1", "d", ".fastq")
    mates = ["a_R1_001.fq.gz", "b.1.fq", "c_11.fq", "d_r1.fa", "_1"]
    assert repertoire_names(mates, None, paired=True) == ("a", "b", "c_11", "d", "_1")
    assert repertoire_names(paths[:2], ["x", "x"]) == ("x", "x")
    for path in ("a\tb.fq", "x\udcff.fq"):
        with pytest.raises(InvalidInput, match=r"UTF-8, without tabs; .*--repertoire-id"):
            repertoire_names([path], None)
        assert repertoire_names([path], ["x"]) == ("x",)
    with pytest.raises(InvalidInput, match="'a' as the name of several files"):
        repertoire_names(["x/a.fq", "y/a.fq.gz"], None)
    for given in (["x"], ["x", " "], ["x", "a\tb"]):
        with pytest.raises(InvalidInput):
            repertoire_names(paths[:2], given)
