"""Cells and their chains."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import FormatError, InvalidInput
from plait.formats.sheets import read_sample_sheet
from plait.vdj.repertoires.cells import CELL_SCHEMA, PairedCells, pair_cells

ARM = {"TRA": "VJ", "TRB": "VDJ", "TRG": "VJ", "TRD": "VDJ", "IGH": "VDJ", "IGK": "VJ", "IGL": "VJ"}
JUNCTIONS = ("TGTGCATTC", "TGTGCCTTC", "TGTAAATTT", "TGTTGGTTT")


def row(cell: str, locus: str, junction: str = JUNCTIONS[0], count: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "cell_id": cell,
        "v_call": f"{locus}V1*01",
        "d_call": None,
        "j_call": f"{locus}J1*01",
        "c_call": None,
        "junction": junction,
        "junction_aa": "C",
        "productive": True,
        "duplicate_count": count,
        "repertoire_id": "r",
        **more,
    }


def paired(folder: Path, rows: list[dict[str, Any]]) -> tuple[PairedCells, list[dict[str, Any]]]:
    pq.write_table(pa.Table.from_pylist(rows), folder / "in.parquet")
    found = pair_cells([folder / "in.parquet"], folder / "out.parquet")
    table = pq.read_table(folder / "out.parquet")
    assert table.schema.equals(CELL_SCHEMA) and not (folder / "out.parquet.cell-rows").exists()
    return found, table.to_pylist()


@pytest.mark.parametrize(
    ("loci", "subtype", "pairing"),
    [
        ("TRA TRB", "TRA+TRB", "single pair"),
        ("TRA", "TRA+TRB", "orphan VJ"),
        ("TRD", "TRG+TRD", "orphan VDJ"),
        ("TRA TRA TRB", "TRA+TRB", "extra VJ"),
        ("TRA TRB TRB", "TRA+TRB", "extra VDJ"),
        ("TRG TRG TRD TRD", "TRG+TRD", "two full chains"),
        ("IGH IGK", "IGH+IGK", "single pair"),
        ("IGL IGH", "IGH+IGL", "single pair"),
        ("IGH IGK IGL", "IGH+IGK/L", "extra VJ"),
        ("IGH", "IGH", "orphan VDJ"),
        ("IGK IGL", "ambiguous", "ambiguous"),
        ("TRA IGH", "ambiguous", "ambiguous"),
        ("TRA TRD", "ambiguous", "ambiguous"),
        ("TRA TRA TRA TRB", "multichain", "multichain"),
        ("TRA IGH IGH IGH", "multichain", "multichain"),
    ],
)
def test_pairings_are_those_of_scirpy(tmp_path: Path, loci: str, subtype: str, pairing: str) -> None:
    found, (cell,) = paired(tmp_path, [row("c", own, JUNCTIONS[k]) for k, own in enumerate(loci.split())])
    assert (cell["receptor_subtype"], cell["chain_pairing"]) == (subtype, pairing)
    assert found.pairings == {pairing: 1} and found.chains == len(loci.split()) and found.cells == 1


def test_chains_rank_by_their_counts_and_equal_rows_add_up(tmp_path: Path) -> None:
    rows = [
        row("c", "TRB", JUNCTIONS[0], 3),
        row("c", "TRB", JUNCTIONS[1], 2, v_call="TRBV1*02"),
        row("c", "TRB", JUNCTIONS[1], 2, v_call="TRBV1*01", d_call="TRBD1"),
        row("c", "TRB", JUNCTIONS[1].lower(), 1, v_call="TRBV1*02", c_call="TRBC1"),
    ]
    _, (cell,) = paired(tmp_path, rows)
    assert (cell["VDJ_1_junction"], cell["VDJ_1_duplicate_count"]) == (JUNCTIONS[1], 5)
    assert (cell["VDJ_1_v_call"], cell["VDJ_1_d_call"]) == ("TRBV1*01", "TRBD1")
    assert (cell["VDJ_2_junction"], cell["VDJ_2_duplicate_count"]) == (JUNCTIONS[0], 3)
    assert cell["VJ_1_junction"] is None and cell["VJ_1_duplicate_count"] is None


def test_amino_acids_that_a_table_lacks_are_translated(tmp_path: Path) -> None:
    _, cells = paired(tmp_path, [row("a", "TRB", junction_aa=None), row("b", "TRB", junction_aa="CXF")])
    assert [cell["VDJ_1_junction_aa"] for cell in cells] == ["CAF", "CXF"]


def test_rows_of_no_chain_are_counted(tmp_path: Path) -> None:
    rows = [
        row("c", "TRB"),
        row("", "TRB"),
        row("c", "TRX"),
        row("c", "TRB", ""),
        row("c", "TRB", productive=False),
        row("c", "TRB", productive=None),
    ]
    found, _ = paired(tmp_path, rows)
    left_out = {"no_cell_id": 1, "no_locus": 1, "no_junction": 1, "not_productive": 2}
    assert (found.rows, found.chains, found.left_out) == (6, 1, left_out)


def test_what_is_productive_is_seen_where_no_column_says_it(tmp_path: Path) -> None:
    rows = [row("a", "TRB"), row("b", "TRB", "TGTTAGTTC"), row("c", "TRB", "TGTGCATTCA")]
    for one in rows:
        del one["productive"]
    found, (cell,) = paired(tmp_path, rows)
    assert cell["cell_id"] == "a" and found.left_out["not_productive"] == 2


def test_cells_of_different_files_are_different_unless_a_sheet_says_not(tmp_path: Path) -> None:
    contigs = "barcode,contig_id,chain,v_gene,d_gene,j_gene,productive,cdr3,cdr3_nt,reads,umis\n"
    line = "AC-1,AC-1_contig_1,{0},{0}V1,None,{0}J1,True,CAF,TGTGCATTC,9,2\n"
    for locus in ("TRA", "TRB"):
        (tmp_path / f"{locus}.csv").write_text(contigs + line.format(locus))
    files = [tmp_path / "TRA.csv", tmp_path / "TRB.csv"]
    pair_cells(files, tmp_path / "a.parquet")
    names = ["repertoire_id", "chain_pairing", "VJ_1_consensus_count", "VDJ_1_duplicate_count"]
    cells = pq.read_table(tmp_path / "a.parquet").select(names).to_pylist()
    assert [tuple(cell.values()) for cell in cells] == [
        ("TRA", "orphan VJ", 9, None),
        ("TRB", "orphan VDJ", None, 2),
    ]
    (tmp_path / "sheet.csv").write_text("file,repertoire_id\nTRA.csv,one\nTRB.csv,one\n")
    pair_cells(read_sample_sheet(tmp_path / "sheet.csv"), tmp_path / "b.parquet")
    (cell,) = pq.read_table(tmp_path / "b.parquet").select(names).to_pylist()
    assert tuple(cell.values()) == ("one", "single pair", 9, 2)


def test_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "in.tsv"
    path.write_text("junction\tv_call\tj_call\nTGT\tTRBV1\tTRBJ1\n")
    with pytest.raises(FormatError, match=r"missing: cell_id\).*--column cell_id=NAME$"):
        pair_cells([path], tmp_path / "out.tsv")
    path.write_text("cell_id\tjunction\tv_call\tj_call\tduplicate_count\nc\tTGT\tTRBV1\tTRBJ1\tmany\n")
    with pytest.raises(FormatError, match=r"column 'duplicate_count': found .*many"):
        pair_cells([path], tmp_path / "out.tsv")
    with pytest.raises(InvalidInput, match="several files that would be the repertoire 'in'"):
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "in.tsv").write_text(path.read_text())
        pair_cells([path, tmp_path / "b" / "in.tsv"], tmp_path / "out.tsv")
    assert not list(tmp_path.glob("out*"))


ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(sorted(ARM)),
        st.sampled_from(JUNCTIONS),
        st.integers(1, 4),
        repertoire_id=st.sampled_from(["r", "s"]),
    ),
    min_size=1,
    max_size=30,
)


@given(ROWS)
def test_every_chain_is_counted_once(tmp_path_factory: Any, rows: list[dict[str, Any]]) -> None:
    found, cells = paired(tmp_path_factory.mktemp("cells"), rows)
    wanted: dict[tuple[str, str], dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
    for one in rows:
        chain = one["v_call"][:3], one["junction"]
        wanted[one["repertoire_id"], one["cell_id"]][chain] += one["duplicate_count"]
    assert [(cell["repertoire_id"], cell["cell_id"]) for cell in cells] == sorted(wanted)
    assert found.chains == sum(map(len, wanted.values()))
    for cell in cells:
        chains = wanted[cell["repertoire_id"], cell["cell_id"]]
        for arm in ("VJ", "VDJ"):
            own = sorted((n for (locus, _), n in chains.items() if ARM[locus] == arm), reverse=True)
            assert cell[f"{arm}_chains"] == len(own)
            told = [cell[f"{arm}_{k}_duplicate_count"] for k in (1, 2)]
            assert told == [*own, None, None][:2]
            for k in (1, 2):
                if told[k - 1] is not None:
                    key = cell[f"{arm}_{k}_locus"], cell[f"{arm}_{k}_junction"]
                    assert chains[key] == told[k - 1]
