"""``plait.vdj.annotate``: every form of reads gives the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.read_library import Library, block_of, simulate_reads, write_fastq
from support.read_simulation import Sequencing, SimulatedRead

from plait import vdj
from plait.errors import FormatError, InvalidInput
from plait.vdj.germline import load_germline


@pytest.fixture(scope="module")
def truth() -> list[SimulatedRead]:
    return list(simulate_reads([load_germline("mouse_trb")], Library(reads=200, clones=60), seed=7))


def columns(found: vdj.Annotations, *names: str) -> dict[str, list[Any]]:
    table = found.table.select(names or ["v_call", "j_call", "junction", "annotation_status"])
    return {name: table[name].to_pylist() for name in table.column_names}


def test_every_form_of_reads(truth: list[SimulatedRead], tmp_path: Path) -> None:
    texts = [read.read.sequence for read in truth]
    found = vdj.annotate(texts, germline="mouse_trb", min_junction_quality=0)
    assert found.table["sequence_id"].to_pylist() == [str(k) for k in range(200)]
    assert found.table.num_rows == found.summary.reads == found.summary.sequences == 200
    right = [j == t.read.junction for j, t in zip(found.table["junction"].to_pylist(), truth, strict=True)]
    assert sum(right) > 190
    path = tmp_path / "reads.fastq"
    write_fastq(truth, path)
    forms: list[Any] = [np.array(texts), pa.array(texts), pa.chunked_array([texts]), iter(texts), path]
    forms += [block_of(texts), [text.lower() for text in texts]]
    for form in forms:
        again = vdj.annotate(form, germline=load_germline("mouse_trb"), min_junction_quality=0)
        assert columns(again) == columns(found)
        assert again.provenance == found.provenance


def test_threads_do_not_matter(truth: list[SimulatedRead], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [read.read.sequence for read in truth]
    found = vdj.annotate(texts, germline="mouse_trb", threads=1)
    monkeypatch.setattr("plait.vdj.reads.annotator._BLOCK_READS", 33)
    again = vdj.annotate(texts, germline="mouse_trb", threads=3)
    assert again.table.equals(found.table) and again.summary == found.summary


def test_mates(tmp_path: Path) -> None:
    library = Library(reads=60, sequencing=Sequencing(insert_mean=220.0))
    pairs = list(simulate_reads([load_germline("mouse_trb")], library, seed=8))
    mates = [read.mate.sequence for read in pairs if read.mate is not None]
    found = vdj.annotate([read.read.sequence for read in pairs], mates=mates, germline="mouse_trb")
    assert found.summary.merged_pairs > 50
    assert sum(found.table["merged_mates"].to_pylist()) == found.summary.merged_pairs
    one, other = tmp_path / "1.fq", tmp_path / "2.fq"
    write_fastq(pairs, one, other)
    from_files = vdj.annotate(one, mates=other, germline=["mouse_trb"])
    assert columns(from_files, "j_call") == columns(found, "j_call")


def test_no_reads() -> None:
    found = vdj.annotate([], germline="mouse_trb")
    assert found.table.num_rows == 0 and "junction" in found.table.column_names


def test_settings_and_limits() -> None:
    read = "ACGTTGCAAG" * 3
    for given in ({"settings": vdj.AnnotationSettings(min_length=31)}, {"min_length": 31}):
        found = vdj.annotate([read], germline="mouse_trb", **given)
        assert found.table["annotation_status"].to_pylist() == ["too_short"]
        assert found.provenance.parameters["min_length"] == 31
    with pytest.raises(InvalidInput, match="one or the other"):
        vdj.annotate([read], germline="mouse_trb", settings=vdj.AnnotationSettings(), min_length=3)


@pytest.mark.parametrize(
    ("reads", "mates", "told"),
    [
        ("ACGT", None, "sequences in a list"),
        (7, None, "sequences in a list"),
        (["ACGT", None], None, "at 1"),
        (["ACGT", "AC!T"], None, "'!' at position 3 of read '1'"),
        (["ACGT", "ACéT"], None, "at position 3 of read '1'"),
        (["ACGT"], ["ACGT", "ACGT"], "2 for 1 reads"),
        (["ACGT"], Path("x.fq"), "both of one form"),
    ],
)
def test_wrong_reads(reads: Any, mates: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        vdj.annotate(reads, mates=mates, germline="mouse_trb")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="none"):
        vdj.annotate(tmp_path / "none.fq", germline="mouse_trb")


def test_no_germline() -> None:
    with pytest.raises(InvalidInput, match="no germline set"):
        vdj.annotate(["ACGT"], germline=[])
