"""Columns of annotated reads: one row known in full, the AIRR schema, and the document that lists them."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.germline_matches import Hit, make_matches, read_block
from support.rearrangement_rows import check_rows

from plait.errors import Unsupported
from plait.formats.tables import open_table
from plait.vdj.germline import load_germline
from plait.vdj.reads.columns import text_array
from plait.vdj.reads.rearrangements import (
    ALIGNMENT_PARTS,
    COLUMNS,
    REGION_COLUMNS,
    SCHEMA,
    AnnotationSettings,
    RearrangementBuilder,
)

pytestmark = pytest.mark.interpreted

GERMLINE = load_germline("mouse_trb")
V = GERMLINE.resolve("TRBV13-1*01", "V") or 0
J = GERMLINE.resolve("TRBJ2-7*01", "J") or 0

#: Fields of the AIRR Rearrangement schema 1.4 and 2.0 that must be there, and types of those that are.
REQUIRED = [
    "sequence_id",
    "sequence",
    "rev_comp",
    "productive",
    "v_call",
    "d_call",
    "j_call",
    "sequence_alignment",
    "germline_alignment",
    "junction",
    "junction_aa",
    "v_cigar",
    "d_cigar",
    "j_cigar",
]
STRINGS = [
    "quality",
    "locus",
    "cdr3",
    "cdr3_aa",
    *(f"{name}{end}" for name in ("fwr1", "fwr2", "fwr3", "fwr4", "cdr1", "cdr2") for end in ("", "_aa")),
    "c_call",
    "d2_call",
    "np1",
    "np2",
    "repertoire_id",
    "cell_id",
    *(name for name in REQUIRED if name not in ("rev_comp", "productive")),
]
BOOLEANS = [
    "rev_comp",
    "productive",
    "vj_in_frame",
    "stop_codon",
    "complete_vdj",
    "v_frameshift",
    "j_frameshift",
]
NUMBERS = [
    "v_score",
    "v_identity",
    "v_support",
    "d_score",
    "d_identity",
    "d_support",
    "j_score",
    "j_identity",
    "j_support",
]


def a_read() -> tuple[str, Hit, Hit]:
    """A read of TRBV13-1, TRBD1 and TRBJ2-7, and its alignments."""
    v, j = GERMLINE.v[V].sequence, GERMLINE.j[J].sequence
    assert GERMLINE.v[V].anchor == 270 and GERMLINE.j[J].anchor == 16
    assert v[270:] == "TGTGCCAGCAGTGATG" and j[:19] == "CTCCTATGAACAGTACTTC"
    wrong = {"A": "C", "C": "A", "G": "T", "T": "G"}[v[210]]
    # 86 bases of V with a mismatch, P, N, D without its first two bases, N, and J without its first five.
    read = "ACG" + v[200:210] + wrong + v[211:286] + "CA" + "TT" + "GACAGGGGGC" + "A" + j[5:] + "GG"
    hits = Hit(3, 200, "86M", (V,)), Hit(104, 5, f"{len(j) - 5}M", (J,))
    return read, *hits


def places_of_that_read() -> dict[str, int]:
    """Coordinates of its genes."""
    places = {
        "v": (4, 89, 201, 286, 1, 86),
        "d": (94, 103, 3, 12, 91, 100),
        "j": (105, 146, 6, 47, 102, 143),
    }
    kinds = [f"{part}_{end}" for part in ("sequence", "germline", "alignment") for end in ("start", "end")]
    names = [f"{letter}_{kind}" for letter in places for kind in kinds]
    return dict(zip(names, [value for values in places.values() for value in values], strict=True))


NO_FURTHER_GENE = dict.fromkeys(
    [
        *("c_call", "isotype", "d2_call"),
        *(f"d2_{part}_{end}" for part in ("sequence", "germline") for end in ("start", "end")),
    ]
)


def row_of_that_read(read: str) -> dict[str, Any]:
    """All that must be found in it."""
    v, j = GERMLINE.v[V].sequence, GERMLINE.j[J].sequence
    junction = v[270:] + "CATTGACAGGGGGCA" + j[5:19]
    return {
        "sequence_id": "r0",
        "sequence": read,
        "quality": "I" * len(read),
        "rev_comp": True,
        "productive": True,
        "vj_in_frame": True,
        **dict.fromkeys(("stop_codon", "complete_vdj", "v_frameshift", "j_frameshift"), False),
        "locus": "TRB",
        "v_call": "TRBV13-1*01",
        "d_call": "TRBD1*01",
        "j_call": "TRBJ2-7*01",
        "sequence_alignment": read[3:-2],
        "germline_alignment": v[200:286] + "NNNN" + "GACAGGGGGC" + "N" + j[5:],
        "junction": junction,
        "junction_aa": "CASSDALTGGNEQYF",
        "junction_length": 45,
        "junction_aa_length": 15,
        "cdr3": junction[3:-3],
        "cdr3_aa": "ASSDALTGGNEQY",
        "cdr3_start": 77,
        "cdr3_end": 115,
        "fwr4": j[16:46],
        "fwr4_aa": "FGPGTRLTVL",
        "fwr4_start": 116,
        "fwr4_end": 145,
        "np1": "CATT",
        "np1_length": 4,
        "np2": "A",
        "np2_length": 1,
        "n1_length": 1,
        "n2_length": 1,
        **dict(zip(("p3v_length", "p5d_length", "p3d_length", "p5j_length"), (3, 0, 0, 0), strict=True)),
        "v_score": 84,
        "v_identity": 0.9884,
        "v_support": 1e-20,
        "v_cigar": "3S200N10=1X75=59S",
        "d_score": 10,
        "d_identity": 1.0,
        "d_support": 6 * (3 + 5) / 4**10,
        "d_cigar": "93S2N10=45S",
        "d_frame": 1,
        "j_score": 42,
        "j_identity": 1.0,
        "j_support": 1e-20,
        "j_cigar": "104S5N42=2S",
        "consensus_count": 5,
        "duplicate_count": 3,
        "umi_count": None,
        "repertoire_id": "mouse 1",
        "cell_id": "AAAC-1",
        "merged_mates": True,
        **NO_FURTHER_GENE,
        "annotation_status": "ok",
        **places_of_that_read(),
    }


def test_a_row_known_in_full() -> None:
    read, v, j = a_read()
    reads = make_matches(read_block([read]), [GERMLINE], [v], [j], mirrored=[True])
    settings = AnnotationSettings()
    batch = RearrangementBuilder([GERMLINE], settings).build(
        reads,
        duplicate_count=[3],
        consensus_count=np.array([5]),
        repertoire_id="mouse 1",
        cell_id=["AAAC-1"],
        merged=[True],
    )
    check_rows(batch, [GERMLINE], settings)
    (row,) = batch.to_pylist()
    assert row == row_of_that_read(read)


def test_types_are_those_of_the_airr_schema() -> None:
    assert set(REQUIRED) <= set(SCHEMA.names)
    assert len(set(SCHEMA.names)) == len(SCHEMA.names) and SCHEMA.names[-1] == "annotation_status"
    for column in COLUMNS + ALIGNMENT_PARTS + REGION_COLUMNS:
        if not column.airr:
            continue
        if column.name in STRINGS or re.search("_alignment(_aa)?$", column.name):
            assert column.type == pa.string(), column.name
        elif column.name in BOOLEANS:
            assert column.type == pa.bool_(), column.name
        elif column.name in NUMBERS:
            assert pa.types.is_floating(column.type) or pa.types.is_integer(column.type), column.name
        else:
            assert re.search("_(start|end|length|count|frame)$", column.name) and pa.types.is_integer(
                column.type
            )


def test_columns_are_documented(repository: Path) -> None:
    text = (repository / "docs" / "reference" / "annotation-columns.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \|$", text, re.MULTILINE)
    kinds = {pa.string(): "string", pa.bool_(): "bool", pa.int32(): "int32", pa.int64(): "int64"}
    every = COLUMNS + ALIGNMENT_PARTS + REGION_COLUMNS
    assert listed == [(c.name, kinds.get(c.type, "double"), c.meaning) for c in every]


def test_no_reads_give_no_rows() -> None:
    matches = make_matches(read_block([]), [GERMLINE], [], [])
    batch = RearrangementBuilder([GERMLINE]).build(matches)
    assert batch.num_rows == 0 and batch.schema == SCHEMA


def test_rows_do_not_depend_on_the_block() -> None:
    read, v, j = a_read()
    builder = RearrangementBuilder([GERMLINE])
    reads, ones = [read, read[:60], read[30:]] * 3, [v, v._replace(cigar="57M"), None] * 3
    twos = [j, None, j._replace(read_start=74)] * 3
    whole = builder.build(make_matches(read_block(reads), [GERMLINE], ones, twos))
    for k, parts in enumerate(zip(reads, ones, twos, strict=True)):
        one = builder.build(make_matches(read_block([parts[0]]), [GERMLINE], [parts[1]], [parts[2]]))
        assert {**whole.slice(k, 1).to_pylist()[0], "sequence_id": "r0"} == one.to_pylist()[0]


def test_the_airr_package_accepts_the_table(tmp_path: Path) -> None:
    airr = pytest.importorskip("airr", reason="the airr package is not installed")
    read, v, j = a_read()
    reads = read_block([read, read[:60], "ACGT" * 20])
    matches = make_matches(reads, [GERMLINE], [v, v._replace(cigar="57M"), None], [j, None, None])
    batch = RearrangementBuilder([GERMLINE]).build(matches, umi_count=[1, 2, 3])
    path = tmp_path / "out.tsv"
    with open_table(path, SCHEMA, metadata={}) as table:
        table.write(batch)
    assert airr.validate_rearrangement(str(path), debug=True)
    with open(path, encoding="utf-8") as handle:
        rows = list(airr.io.RearrangementReader(handle, validate=True))
    for found, given in zip(rows, batch.to_pylist(), strict=True):
        for name in REQUIRED:
            assert found[name] == ("" if given[name] is None and name in STRINGS else given[name])


def test_arrays_that_cannot_be_written_are_taken_too() -> None:
    read, v, j = a_read()
    matches = make_matches(read_block([read]), [GERMLINE], [v], [j])
    builder = RearrangementBuilder([GERMLINE])
    rows = builder.build(matches)
    reads = matches.reads
    for values in (
        reads.letters,
        reads.starts,
        reads.qualities,
        matches.v.paths.runs.values,
        matches.j.alleles.starts,
    ):
        assert values is not None
        values.setflags(write=False)
    assert builder.build(matches) == rows


@pytest.mark.slow
def test_threads_share_a_builder() -> None:
    read, v, j = a_read()
    builder = RearrangementBuilder([GERMLINE])
    blocks = [make_matches(read_block([read] * n), [GERMLINE], [v] * n, [j] * n) for n in range(1, 30)]
    one_by_one = [builder.build(block) for block in blocks]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(builder.build, blocks)) == one_by_one


def test_a_block_that_no_column_can_hold_is_refused() -> None:
    with pytest.raises(Unsupported, match="a block of 2,147,483,648 letters"):
        text_array(np.zeros(0, np.uint8), np.array([0, 2**31]))


def test_parts_of_the_alignments_are_given_where_they_are_asked_for() -> None:
    read, v, j = a_read()
    settings = AnnotationSettings(alignment_parts=True)
    matches = make_matches(read_block([read, read[:60]]), [GERMLINE], [v, v._replace(cigar="57M")], [j, None])
    batch = RearrangementBuilder([GERMLINE], settings).build(matches)
    check_rows(batch, [GERMLINE], settings)
    (row, other) = batch.to_pylist()
    assert {name: row[name] for name in SCHEMA.names} == row_of_that_read(read) | {
        "rev_comp": False, "consensus_count": None, "duplicate_count": None, "repertoire_id": None,
        "cell_id": None, "merged_mates": None,
    }  # fmt: skip
    assert row["d_germline_alignment"] == "GACAGGGGGC" and row["sequence_alignment_aa"].endswith(
        "CASSDALTGGNEQYFGPGTRLTVL"
    )
    assert row["germline_alignment_aa"].endswith("CASSDXXTGGXEQYFGPGTRLTVL")
    assert (other["j_sequence_alignment"], other["v_sequence_alignment"]) == (None, read[3:60])


def test_no_quality_begins_with_a_quotation_mark() -> None:
    reads = read_block(["ACGT", "", "ACGT"])
    assert reads.qualities is not None
    reads.qualities[:] = [1, 1, 0, 93, 40, 1, 2, 3]
    batch = RearrangementBuilder([GERMLINE]).build(make_matches(reads, [GERMLINE], [None] * 3, [None] * 3))
    assert batch["quality"].to_pylist() == ['#"!~', "", 'I"#$']
    assert reads.qualities[0] == 1
