"""Tables of other programs: each is recognised by its header, and becomes what AIRR means."""

from __future__ import annotations

import io
import logging
import re
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import FormatError, InvalidInput
from plait.formats.layouts import LAYOUTS, columns_given, layout_of
from plait.formats.rearrangements import open_rearrangements
from plait.formats.sheets import read_sample_sheet
from plait.vdj.germline import load_germline
from plait.vdj.repertoires.specificity import specificities

READ = "ACGTACGTAC" + "TGTGCCAGCAGTTTC" + "GGTACC"
HEADERS = {
    "airr": "sequence_id junction extra v_call d_call j_call duplicate_count subject_id repertoire_id",
    "immunarch": "Clones Proportion CDR3.nt CDR3.aa V.name D.name J.name Sample",
    "trust4": "#count frequency CDR3nt CDR3aa V D J C cid cid_full_length",
    "vdjtools": "#count freq cdr3nt cdr3aa v d j VEnd DStart DEnd JStart",
    "mixcr": "cloneId readCount readFraction allVHitsWithScore allDHitsWithScore allJHitsWithScore nSeqCDR3",
    "10x": "barcode is_cell contig_id chain v_gene d_gene j_gene c_gene productive fwr3 cdr3 cdr3_nt fwr4 "
    "reads umis",
    "bd": "Cell_Index Contig_ID V_gene J_gene Productive FR3_Nucleotide CDR3_Nucleotide FR4_Nucleotide",
    "adaptive": "rearrangement amino_acid templates frame_type cdr3_length v_index v_resolved j_resolved",
}


def read(folder: Path, text: str, name: str = "x.tsv", **options: Any) -> list[dict[str, Any]]:
    path = folder / name
    path.write_text(text)
    return rows_of(path, **options)


def rows_of(path: Any, **options: Any) -> list[dict[str, Any]]:
    with open_rearrangements(path, block_rows=3, **options) as reader:
        return [row for block in reader for row in block.to_pylist()]


def airr(row: dict[str, Any], names: str) -> list[Any]:
    return [row[name] for name in names.split()]


def table(header: str, *rows: str, mark: str = "\t") -> str:
    return "".join(line.replace(" ", mark) + "\n" for line in (header, *rows))


@pytest.mark.parametrize("name", HEADERS)
def test_each_header_is_recognised(name: str) -> None:
    assert layout_of("x", "auto", HEADERS[name].split()).name == name


# What `pgen` asks for by default: no genes.
@pytest.mark.parametrize("name", HEADERS)
def test_each_header_is_recognised_by_what_needs_no_genes(name: str) -> None:
    assert layout_of("x", "auto", HEADERS[name].split(), required=[("junction",)]).name == name


OLD_ADAPTIVE = (
    "nucleotide\taminoAcid\tcount (templates/reads)\tcdr3Length\tvMaxResolved\tvFamilyName\tvGeneName\t"
    "vGeneNameTies\tjMaxResolved\tjGeneName\tjGeneNameTies\tvIndex\tsequenceStatus"
)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("count CDR3nt V J", "vdjtools"),
        ("nSeqCDR3 bestVGene bestJHit cloneCount", "mixcr"),
        ("Read.count CDR3.nucleotide.sequence V.gene J.gene", "immunarch"),
        ("consensus_id v_gene j_gene cdr3_nt umis", "10x"),
        ("cdr3_rearrangement v_gene j_gene", "adaptive"),
    ],
)
def test_headers_of_other_versions(header: str, name: str) -> None:
    assert layout_of("x", "auto", header.split()).name == name


def test_mixcr_of_all_versions(tmp_path: Path) -> None:
    old = "Clone ID\tClone count\tAll V hits\tAll J hits\tN. Seq. CDR3\tAA. Seq. CDR3\n"
    row = "0\t12.0\tTRBV12-3*00(346.1),TRBV12-4*00(340)\tTRBJ1-1*01(200)\tTGTGCCTTC\tCAF\n"
    (found,) = read(tmp_path, old + row)
    assert airr(found, "sequence_id v_call j_call junction junction_aa duplicate_count") == [
        *("0", "TRBV12-3,TRBV12-4", "TRBJ1-1*01", "TGTGCCTTC", "CAF", 12)
    ]
    new = "cloneId\treadCount\tuniqueMoleculeCount\tallVHitsWithScore\tallJHitsWithScore\tnSeqCDR3\n"
    (found,) = read(tmp_path, new + "1\t100\t7\tTRAV29DV5*00(1)\tTRAJ4*00(2)\tregion_not_covered\n", "y.tsv")
    assert airr(found, "v_call j_call junction duplicate_count") == ["TRAV29/DV5", "TRAJ4", None, 7]


def test_bd_contigs(tmp_path: Path) -> None:
    header = (
        "Cell_Index Contig_ID V_gene_Dominant D_gene_Dominant J_gene_Dominant C_gene_Dominant Productive "
    )
    header += (
        "FR3_Nucleotide_Dominant CDR3_Nucleotide_Dominant FR4_Nucleotide_Dominant Read_Count Molecule_Count"
    )
    rows = (
        "7 7_TRA_1 TRAV8-2*01 x TRAJ33*01 TRAC True TACTGT GCTCTC TTTGGC 9 2",
        "8 8_1 V D J C False TGT A  1 1",
    )
    before = (
        "####################\n## BD Rhapsody Targeted Analysis Pipeline Version 1.10\n####################\n"
    )
    found = read(tmp_path, before + table(header, *rows, mark=","), "x.csv")
    names = "cell_id sequence_id v_call c_call junction productive duplicate_count consensus_count"
    assert airr(found[0], names) == ["7", "7_TRA_1", "TRAV8-2*01", "TRAC", "TGTGCTCTCTTT", True, 2, 9]
    assert airr(found[1], "cell_id junction productive") == ["8", None, False]


def test_10x_contigs(tmp_path: Path) -> None:
    header = HEADERS["10x"]
    text = table(
        header,
        "AAAC-1 True AAAC-1_contig_1 TRB TRBV20-1 None TRBJ2-4 TRBC2 True C CSADF TGCAGTGCTGATTTC F 3436 12",
        "AAAC-1 True AAAC-1_contig_2 Multi None None TRAJ10 TRBC1 None None None None None 403 2",
        "AAAG-1 TRUE AAAG-1_contig_1 TRA TRAV1 None TRAJ1 TRAC FALSE YC CAF TGTGCATTC FG 5 1",
        mark=",",
    )
    rows = read(tmp_path, text, "filtered_contig_annotations.csv")
    fields = "sequence_id cell_id locus v_call d_call j_call junction junction_aa productive duplicate_count"
    assert airr(rows[0], fields) == [
        *("AAAC-1_contig_1", "AAAC-1", "TRB", "TRBV20-1", None, "TRBJ2-4"),
        *("TGCAGTGCTGATTTC", "CSADF", True, 12),
    ]
    assert airr(rows[1], "locus v_call junction productive reads") == [None, None, None, None, "403"]
    assert airr(rows[2], "productive input_productive input_cdr3") == [False, "FALSE", "CAF"]


def adaptive(*rows: tuple[str, ...]) -> str:
    header = "rearrangement amino_acid templates frame_type cdr3_length v_index v_resolved v_gene v_gene_ties"
    return "".join("\t".join(row) + "\n" for row in [(*header.split(), "j_resolved"), *rows])


def test_adaptive_junctions_are_cut_from_reads(tmp_path: Path) -> None:
    text = adaptive(
        (READ, "CASSF", "7", "In", "15", "10", "TCRBV05-01*01", "TCRBV05-01", "no data", "TCRBJ02-07*01"),
        (READ, "na", "-1", "Out", "14", "10", "TCRBV12", "unresolved", "TCRBV12-03,TCRBV12-04", "TCRBJ01-02"),
        (READ, "CA*F", "2", "Stop", "15", "-1", "unresolved", "no data", "no data", "unresolved"),
        (READ, "", "2", "In", "no data", "no data", "TCRBV06-02/06-03*01", "x", "x", "TCRBJ01-01"),
    )
    rows = read(tmp_path, text)
    assert [row["junction"] for row in rows] == ["TGTGCCAGCAGTTTC", "TGTGCCAGCAGTTT", None, None]
    calls = ["TRBV5-1*01", "TRBV12-3,TRBV12-4", None, "TRBV6-2*01,TRBV6-3*01"]
    assert [row["v_call"] for row in rows] == calls
    assert [row["j_call"] for row in rows] == ["TRBJ2-7*01", "TRBJ1-2", None, "TRBJ1-1"]
    assert [row["productive"] for row in rows] == [True, False, False, True]
    assert [row["duplicate_count"] for row in rows] == [7, None, 2, 2]


def test_adaptive_of_the_second_version(tmp_path: Path) -> None:
    row = [
        READ,
        "CASSF",
        "3",
        "15",
        "TCRBV28-01",
        "TCRBV28",
        "TCRBV28-01",
        "",
        "",
        "",
        "TCRBJ02-01,TCRBJ02-02",
    ]
    (found,) = read(tmp_path, OLD_ADAPTIVE + "\n" + "\t".join([*row, "10", "In"]) + "\n")
    assert airr(found, "junction v_call j_call duplicate_count productive") == [
        *("TGTGCCAGCAGTTTC", "TRBV28", "TRBJ2-1,TRBJ2-2", 3, True)
    ]


@pytest.mark.parametrize("header", ["CDR3 V J Species Epitope", "cdr3 v.segm j.segm species antigen.epitope"])
def test_receptors_of_vdjdb(header: str, tmp_path: Path) -> None:
    """They have no nucleotides: what looks for receptors alone reads them."""
    text = table(header, "CASSLAPGATNEKLFF TRBV7-6*01 TRBJ1-4*01 HomoSapiens NLVPMVATV")
    path = tmp_path / "vdjdb.tsv"
    path.write_text(text)
    wanted = [("junction_aa",), ("v_call",), ("j_call",)]
    assert layout_of(path, "auto", header.split(), "", wanted).name == "vdjdb"
    own = {
        "subject_id": ["a"],
        "junction_aa": ["CASSLAPGATNEKLFF"],
        "v_call": ["TRBV7-6"],
        "j_call": ["TRBJ1-4"],
    }
    found = specificities(path, pa.table(own), pa.table(own))
    (row,) = found.table.to_pylist()
    assert airr(row, "junction_aa v_call neighbours") == ["CASSLAPGATNEKLFF", "TRBV7-6*01", 1]
    with pytest.raises(FormatError, match="missing: junction"):
        open_rearrangements(path, block_rows=3)


def test_adaptive_of_mice(tmp_path: Path) -> None:
    """Genes that stand alone in their family are others than in humans, which have one TRBV13."""
    mice = load_germline("mouse_trb")
    genes = sorted({allele.gene for segment in ("V", "J") for allele in mice.alleles(segment)})
    numbered = [gene if "-" in gene else f"{gene}-1" for gene in genes]
    theirs = [re.sub(r"\d+", lambda n: n[0].zfill(2), gene).replace("TR", "TCR") for gene in numbered]
    text = adaptive(*((READ, "", "1", "In", "15", "10", name, "", "", "TCRBJ01-02") for name in theirs))
    rows = read(tmp_path, text, layout="adaptive-mouse")
    assert [row["v_call"] for row in rows] == genes


@pytest.mark.parametrize(("start", "length"), [("17", "15"), ("40", "3"), ("0", "1000000000000")])
def test_an_index_outside_the_read(tmp_path: Path, start: str, length: str) -> None:
    good = (READ, "C", "1", "In", "15", "10", "TCRBV28-01", "x", "x", "TCRBJ02-01")
    text = adaptive(good, (READ, "C", "1", "In", length, start, *good[6:]))
    with pytest.raises(FormatError, match=r"record 1, column 'v_index'.*within the read, which has 31"):
        read(tmp_path, text)
    with pytest.raises(FormatError, match=r"column 'v_index'.*whole numbers"):
        read(tmp_path, adaptive((READ, "C", "1", "In", "15", "ten", *good[6:])))


@given(st.lists(st.tuples(st.text("ACGT", max_size=12), st.integers(-2, 12), st.integers(0, 12)), max_size=8))
def test_cuts_are_slices(rows: list[tuple[str, int, int]]) -> None:
    inside = [(text, at, size) for text, at, size in rows if at + size <= len(text)]
    header = "rearrangement v_index cdr3_length v_resolved j_resolved"
    lines = [f"{text}\t{at}\t{size}\tTCRBV28-01\tTCRBJ02-01" for text, at, size in inside]
    with tempfile.TemporaryDirectory() as folder:
        found = read(Path(folder), "\n".join([header.replace(" ", "\t"), *lines, ""]))
    wanted = [text[at : at + size] or None if at >= 0 else None for text, at, size in inside]
    assert [row["junction"] for row in found] == wanted


def adaptive_name(gene: str) -> str:
    """A name as Adaptive writes it: two digits, and a number for every gene of a family."""
    gene = gene.partition("/DV")[0]
    head, number = gene[:4], gene[4:].split("-")
    return (
        "TC"
        + head[1:]
        + "-".join(f"{int(part):02d}" for part in (*number, *(["1"] if len(number) == 1 else [])))
    )


@pytest.mark.parametrize("name", ["human_trb", "human_tra"])
def test_names_of_adaptive_are_those_of_the_germline_sets(tmp_path: Path, name: str) -> None:
    known = load_germline(name)
    genes = sorted(
        {
            one.gene
            for one in (*known.v, *known.j)
            if one.gene[4:].replace("/DV", "").replace("-", "").isdigit()
        }
    )
    assert len(genes) > 50
    lines = [f"TGTTTC\t{adaptive_name(gene)}\tTCRBJ01-01" for gene in genes]
    rows = read(tmp_path, "\n".join(["cdr3_rearrangement\tv_gene\tj_gene", *lines, ""]))
    assert [row["v_call"] for row in rows] == genes


def test_trust4_report_and_cdr3(tmp_path: Path) -> None:
    report = table(
        HEADERS["trust4"],
        "5 0.5 TGTGCCTTC CAF TRBV20-1*01 . TRBJ1-1*01 TRBC1 assemble1 1",
        "3.4 0.3 TGTGCC partial TRBV2*01 . * TRBC1 assemble2 0",
        "2 0.2 TGTGCCTT out_of_frame TRBV2*01 . TRBJ1-2*01 TRBC1 assemble3 0",
    )
    rows = read(tmp_path, report)
    assert [row["junction"] for row in rows] == ["TGTGCCTTC", None, "TGTGCCTT"]
    assert [row["duplicate_count"] for row in rows] == [5, 3, 2]
    assert [row["junction_aa"] for row in rows] == ["CAF", None, None]
    assert rows[1]["j_call"] is None
    cdr3 = table(
        "assemble0 0 TRBV6-2*01,TRBV6-3*01 * TRBJ1-1*01 TRBC1 CAA GTT TGTGCCTTC 1.00 12.60 98.5 1",
        "assemble1 0 TRAV2*01 * TRAJ1*01 * * * TGTGCC 0.00 2.00 90.0 0",
    )
    rows = read(tmp_path, cdr3, "cdr3.out")
    assert [airr(row, "v_call junction duplicate_count") for row in rows] == [
        ["TRBV6-2*01,TRBV6-3*01", "TGTGCCTTC", 13],
        ["TRAV2*01", None, 2],
    ]


IMGT = (
    "Sequence number\tSequence ID\tV-DOMAIN Functionality\tV-GENE and allele\tJ-GENE and allele\t"
    "D-GENE and allele\tFR3-IMGT\tCDR3-IMGT\tJUNCTION\t\n"
    "1\ts1\tproductive\tMusmus TRBV13-1*01 F, or Musmus TRBV13-2*01 F\tMusmus TRBJ1-1*01 F\t\tgat\tgcc\t"
    "tgtgccttc\t\n"
    "2\ts2\tNo results\n"
)


def zipped(text: str, name: str = "3_Nt-sequences.txt") -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1_Summary.txt", "Sequence number\n1\n")
        archive.writestr(f"run/{name}", text)
    return held.getvalue()


def txz(text: str, name: str = "3_Nt-sequences.txt") -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:xz") as archive:
        for member, content in (("1_Summary.txt", b"x\n"), (name, text.encode())):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return held.getvalue()


@pytest.mark.parametrize("kind", ["zip", "txz", "folder", "table"])
def test_imgt_archives(tmp_path: Path, kind: str) -> None:
    path = tmp_path / {"table": "3_Nt-sequences.txt"}.get(kind, f"run.{kind}")
    if kind == "folder":
        path.mkdir()
        (path / "3_Nt-sequences_run.txt").write_text(IMGT)
    else:
        path.write_bytes({"zip": zipped, "txz": txz}.get(kind, str.encode)(IMGT))  # type: ignore[operator]
    first, second = rows_of(path)
    assert airr(first, "sequence_id v_call j_call junction productive") == [
        *("s1", "TRBV13-1*01,TRBV13-2*01", "TRBJ1-1*01", "tgtgccttc", True)
    ]
    assert airr(second, "sequence_id v_call junction productive") == ["s2", None, None, None]


@pytest.mark.parametrize("pack", [zipped, txz])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_a_cut_archive(tmp_path: Path, pack: Any, share: float) -> None:
    whole = pack(IMGT + "3\ts3\tproductive\n" * 5000)
    path = tmp_path / "run.zip"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(FormatError, match="damaged, cut off or encrypted"):
        rows_of(path)


@pytest.mark.parametrize("pack", [zipped, txz])
def test_an_archive_of_something_else(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "run.zip"
    path.write_bytes(pack(IMGT, "2_IMGT-gapped.txt"))
    with pytest.raises(FormatError, match=r"a zip archive or an Excel workbook|xz data"):
        rows_of(path)


def test_quoted_tables_and_comments(tmp_path: Path) -> None:
    text = '"junction","v_call","note, more","j_call"\n"TGTTTC","TRBV1","say ""x"", y","TRBJ1"\n'
    (row,) = read(tmp_path, text)
    assert airr(row, "junction v_call j_call") == ["TGTTTC", "TRBV1", "TRBJ1"]
    assert row["note, more"] == 'say "x", y'
    assert read(tmp_path, text.replace('","', '"\t"'), "b.tsv") == [row]
    commented = "# Exported from immunarch\n" + table("CDR3.nt V.name J.name Clones", "TGTTTC TRBV1 TRBJ1 4")
    (row,) = read(tmp_path, commented, "c.tsv")
    assert airr(row, "junction duplicate_count") == ["TGTTTC", 4]
    with pytest.raises(FormatError, match="line 4: found 2 columns, expected 4 columns"):
        read(tmp_path, commented + "a\tb\n", "d.tsv")


def test_any_table_by_its_columns(tmp_path: Path) -> None:
    text = table("my_nt my_v my_j", "TGTTTC TRBV1 TRBJ1")
    pairs = columns_given("auto", ["junction=my_nt", "v_call=my_v", "j_call=my_j"])
    (row,) = read(tmp_path, text, layout=pairs)
    assert airr(row, "junction v_call j_call my_nt") == ["TGTTTC", "TRBV1", "TRBJ1", "TGTTTC"]
    imputed = table("nSeqImputedCDR3 nSeqCDR3 allVHits allJHits", "TGTTTC TGT TRBV1*00(1) TRBJ1*00(2)")
    (row,) = read(tmp_path, imputed, "b.tsv", layout=columns_given("auto", ["junction=nSeqImputedCDR3"]))
    assert airr(row, "junction v_call") == ["TGTTTC", "TRBV1"]
    with pytest.raises(FormatError, match=r"expected a column 'none', as --column says"):
        read(tmp_path, text, layout={"junction": "none"})
    for wrong in (["junction"], ["junction=a", "junction=b"], ["=a"], ["junction="]):
        with pytest.raises(InvalidInput, match="FIELD=COLUMN"):
            columns_given("auto", wrong)
    with pytest.raises(InvalidInput, match=r"column: found 'cdr3'.*junction"):
        read(tmp_path, text, layout={"cdr3": "my_nt"})


def test_cdr3_without_its_anchors(tmp_path: Path) -> None:
    inner = ["GCCAGCAGTGAT", "GCCTGGAGT"] * 15
    lines = [f"{cdr3}\tTRBV1\tTRBJ1" for cdr3 in inner]
    text = "\n".join(["cdr3_nt\tv\tj", *lines, ""])
    pairs = {"junction": "cdr3_nt", "v_call": "v", "j_call": "j"}
    with pytest.raises(FormatError, match=r"column 'cdr3_nt'.*0 have both conserved codons.*IMGT delimits"):
        read(tmp_path, text, layout=pairs)
    with pytest.raises(FormatError, match="IMGT delimits it lacks the conserved codons, which stand in fwr3"):
        read(tmp_path, text.replace("cdr3_nt\tv\tj", "cdr3\tv_call\tj_call"))
    around = [
        f"{line}\tGATTACTT...C{codon}\tTT-CGGC"
        for line, codon in zip(lines, ["TGT", "TGC"] * 15, strict=True)
    ]
    rows = read(tmp_path, "\n".join(["cdr3\tv_call\tj_call\tfwr3\tfwr4", *around, ""]), "b.tsv")
    assert [row["junction"] for row in rows[:2]] == ["TGTGCCAGCAGTGATTTC", "TGCGCCTGGAGTTTC"]


def test_files_of_several_layouts_in_one_run(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(table("junction v_call j_call subject_id", "TGTTTC TRBV1 TRBJ1 s"))
    (tmp_path / "b.csv").write_text(
        table("cdr3_nt v_gene j_gene contig_id", "TGTTTT TRBV2 TRBJ2 c", mark=",")
    )
    pq.write_table(pa.table({"cdr3nt": ["TGTTGG"], "v": ["TRBV3"], "j": ["TRBJ3"]}), tmp_path / "c.parquet")
    paths = [tmp_path / name for name in ("a.tsv", "b.csv", "c.parquet")]
    rows = rows_of(paths, named="subject_id")
    assert [row["junction"] for row in rows] == ["TGTTTC", "TGTTTT", "TGTTGG"]
    assert [row["subject_id"] for row in rows] == ["s", "b", "c"]


def test_sheets_add_their_columns(tmp_path: Path) -> None:
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text(table("junction v_call j_call subject_id", "TGTTTC TRBV1 TRBJ1 own"))
    sheet = tmp_path / "sheet.tsv"
    sheet.write_text(table("file subject condition", "a.tsv s1 ill", "b.tsv  well"))
    rows = rows_of(read_sample_sheet(sheet), named="subject_id")
    assert [airr(row, "subject_id condition") for row in rows] == [["s1", "ill"], ["own", "well"]]
    assert [row.get("input_subject_id") for row in rows] == ["own", None]


def test_what_is_read_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "plait.formats")
    text = table("junction v_call j_call", "TGTTTC TRBV1 TRBJ1")
    read(tmp_path, text)
    assert caplog.messages == []
    for _ in range(2):
        read(tmp_path, table("cdr3nt v j", "TGTTTC TRBV1 TRBJ1"), "other.tsv")
    assert caplog.messages == [f"reading {tmp_path / 'other.tsv'} as VDJtools clonotype tables"]


def test_unknown_layout() -> None:
    with pytest.raises(InvalidInput, match=r"layout: found 'none'.*auto.*airr.*imgt"):
        layout_of("x", "none", [])


@pytest.mark.parametrize(
    ("columns", "layout", "told"),
    [
        (
            HEADERS["mixcr"].split(),
            "airr",
            r"expected layout 'airr'.*missing: junction, v_call, j_call.*--layout mixcr",
        ),
        (["nSeqCDR3", "allJHitsWithScore"], "mixcr", r"missing: allVHitsWithScore or allVHits"),
        (["Junction", "v_call", "j_call"], "auto", "matched exactly"),
        (["a", "b"], "auto", r"or a table of immunarch.*say where they are: --column"),
        ([f"c{i}" for i in range(100)], "auto", "'c19' and 80 more"),
        (["CASSLGQAYEQYF", "TRBV5-1", "TRBJ2-7"], "auto", "there is no header.*--layout lines"),
        (["TGTGCCAGCAGTTTC"], "auto", "there is no header.*--layout lines"),
        ([], "auto", "say where they are"),
    ],
)
def test_headers_that_do_not_fit(columns: list[str], layout: str, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        layout_of("m.tsv", layout, columns)


def test_a_field_that_a_layout_has_not_is_named() -> None:
    told = r"columns junction, V or v.segm \(missing: junction\); say where they are: --column junction=NAME"
    with pytest.raises(FormatError, match=told):
        layout_of("m.tsv", "vdjdb", ["CDR3", "V", "J", "Epitope"], "", [("junction",), ("v_call",)])


def test_every_layout_says_what_it_is() -> None:
    assert all(layout.description and layout.name == name for name, layout in LAYOUTS.items())
