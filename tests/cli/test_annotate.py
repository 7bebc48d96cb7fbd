"""``plait vdj annotate``: what it writes and prints, and that nothing but the request decides it."""

from __future__ import annotations

import csv
import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.examples import often
from support.read_library import Library, simulate_reads, write_fastq
from support.read_simulation import Sequencing, SimulatedRead

from plait.cli.annotate import Limits
from plait.vdj.germline import load_germline
from plait.vdj.reads.rearrangements import AnnotationSettings

BASE = ("--germline", "mouse_trb")
#: A block for every so many reads, so that small files have several.
BLOCK = 500
SMALL_BLOCKS = f"import plait.vdj.reads.annotate_files as m; m._BLOCK_READS = {BLOCK}"
#: Enough blocks that a run can be stopped between the first and the last.
COPIES = 10


@pytest.fixture(scope="module")
def reads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of some clones, with some noise among them."""
    path = tmp_path_factory.mktemp("reads") / "first.fastq.gz"
    library = Library(reads=900, clones=120, noise=0.05)
    write_fastq(simulate_reads([load_germline("mouse_trb")], library, seed=1), path)
    return path


@pytest.fixture(scope="module")
def other_reads(reads: Path) -> tuple[Path, list[SimulatedRead]]:
    """Another file, and what is true of it."""
    path = reads.with_name("second.fastq")
    library = Library(reads=400, clones=120, productive=0.5)
    return path, write_fastq(simulate_reads([load_germline("mouse_trb")], library, seed=2), path)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.vdj.reads.annotate_files._BLOCK_READS", BLOCK)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def told(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(f"{out}.summary.json").read_text())
    return found


def test_what_is_written(plait: Any, other_reads: tuple[Path, list[SimulatedRead]], tmp_path: Path) -> None:
    path, truth = other_reads
    out = tmp_path / "out.airr.tsv"
    assert plait("vdj", "annotate", path, *BASE, "-o", out).status == 0
    rows = {row["sequence_id"]: row for row in rows_of(out)}
    assert len(rows) >= 390
    right = [
        rows[read.name]["junction"] == read.read.junction
        and read.molecule.v_call.partition("*")[0] in rows[read.name]["v_call"]
        and read.molecule.j_call.partition("*")[0] in rows[read.name]["j_call"]
        for read in truth
        if read.name in rows
    ]
    # Wrong bases in the junction, and few bases of V, leave some.
    assert sum(right) >= 0.95 * len(right)
    assert {row["annotation_status"] for row in rows.values()} == {"ok"}
    assert {row["repertoire_id"] for row in rows.values()} == {"second"}
    assert [row for row in rows] == [read.name for read in truth if read.name in rows]
    assert sorted(item.name for item in tmp_path.iterdir()) == [
        f"out.airr.tsv{end}" for end in ("", ".json", ".summary.json", ".summary.tsv")
    ]


def test_parquet_has_the_same_rows(plait: Any, reads: Path, tmp_path: Path) -> None:
    for name in ("out.tsv", "out.parquet"):
        assert plait("vdj", "annotate", reads, *BASE, "-o", tmp_path / name).status == 0
    table = pq.read_table(tmp_path / "out.parquet")
    as_text = rows_of(tmp_path / "out.tsv")
    assert table.column_names == list(as_text[0])
    for name in ("sequence_id", "v_call", "junction", "j_cigar", "annotation_status"):
        assert table[name].to_pylist() == [row[name] for row in as_text]
    assert [row["productive"] for row in as_text] == ["FT"[flag] for flag in table["productive"].to_pylist()]
    facts = json.loads(table.schema.metadata[b"plait.provenance"])["parameters"]
    assert facts["germlines"] == [{"name": "mouse_trb", "digest": load_germline("mouse_trb").digest}]


def test_every_read_is_counted(plait: Any, reads: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    found = plait("vdj", "annotate", reads, *BASE, "-o", out)
    facts = told(out)["total"]
    assert facts["reads"] == facts["sequences"] == sum(facts["statuses"].values()) == 900
    assert facts["statuses"]["no_v"] > 20
    assert facts["rows"] == facts["statuses"]["ok"] == len(rows_of(out))
    assert facts["rows"] == sum(facts["v_genes"].values()) == sum(facts["junction_lengths"].values())
    assert 0.4 < facts["reverse"] / (facts["forward"] + facts["reverse"]) < 0.6
    (row,) = rows_of(Path(f"{out}.summary.tsv"))
    assert (row["reads"], row["ok"], row["no_v"]) == (
        "900",
        str(facts["rows"]),
        str(facts["statuses"]["no_v"]),
    )
    assert float(row["ok_share"]) == pytest.approx(facts["rows"] / 900, rel=1e-4)
    assert max(len(line) for line in found.out.splitlines() if str(out) not in line) <= 80
    for text in ("900 reads in ", "  ok  ", "no V gene matches", "productive", "Mean quality", f"{out}"):
        assert text in found.out


def test_defaults_are_those_of_the_settings() -> None:
    assert Limits().settings() == AnnotationSettings()


def test_alignment_parts(plait: Any, reads: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    assert plait("vdj", "annotate", reads, *BASE, "--alignment-parts", "--regions", "-o", out).status == 0
    rows = rows_of(out)
    for row in rows:
        assert row["v_sequence_alignment"] in row["sequence_alignment"] and row["fwr3"] in row["sequence"]
    assert any(row["fwr3"] for row in rows)


def test_keep_failed(plait: Any, reads: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tsv"
    assert plait("vdj", "annotate", reads, *BASE, "--keep-failed", "-o", out).status == 0
    rows = rows_of(out)
    assert [row["sequence_id"] for row in rows] == [f"read_{k + 1}" for k in range(900)]
    statuses = Counter(row["annotation_status"] for row in rows)
    assert statuses == told(out)["total"]["statuses"]
    assert all(row["sequence"] for row in rows)


@pytest.mark.slow
def test_productive(plait: Any, other_reads: tuple[Path, Any], tmp_path: Path) -> None:
    all_rows, productive = tmp_path / "all.tsv", tmp_path / "productive.tsv"
    for out, options in ((all_rows, ()), (productive, ("--productive",))):
        assert plait("vdj", "annotate", other_reads[0], *BASE, *options, "-o", out).status == 0
    wanted = [row for row in rows_of(all_rows) if row["productive"] == "T"]
    assert rows_of(productive) == wanted and len(wanted) < len(rows_of(all_rows))
    facts = told(productive)["total"]["statuses"]
    assert facts["out_of_frame"] + facts["stop_codon"] == len(rows_of(all_rows)) - len(wanted)


@pytest.mark.slow
def test_several_files_are_several_repertoires(
    plait: Any, reads: Path, other_reads: tuple[Path, Any], tmp_path: Path
) -> None:
    out, clonotypes = tmp_path / "out.tsv", tmp_path / "clonotypes.tsv"
    words = ("vdj", "annotate", reads, other_reads[0], *BASE, "--clonotypes", clonotypes)
    found = plait(*words, "-o", out)
    assert found.status == 0
    rows = Counter(row["repertoire_id"] for row in rows_of(out))
    assert rows == {file["repertoire_id"]: file["rows"] for file in told(out)["files"]}
    assert "repertoire  reads" in found.out and "\n  second" in found.out
    sums: Counter[str] = Counter()
    for row in rows_of(clonotypes):
        sums[row["repertoire_id"]] += int(row["duplicate_count"])
    assert sums == rows
    assert told(out)["clonotypes"]["clonotypes"] == len(rows_of(clonotypes))
    by_repertoire = Counter(row["repertoire_id"] for row in rows_of(clonotypes))
    assert {file["repertoire_id"]: file["clonotypes"] for file in told(out)["files"]} == by_repertoire
    # One name for both makes one repertoire of them.
    assert plait(*words, "--repertoire-id", "x", "--repertoire-id", "x", "-o", out).status == 0
    assert {row["repertoire_id"] for row in rows_of(clonotypes)} == {"x"}


@pytest.mark.slow
def test_files_in_any_order_give_the_same_clonotypes(
    plait: Any, reads: Path, other_reads: tuple[Path, Any], tmp_path: Path
) -> None:
    written, rows = [], []
    for paths in ((reads, other_reads[0]), (other_reads[0], reads)):
        out, clonotypes = tmp_path / "out.tsv", tmp_path / "clonotypes.tsv"
        assert plait("vdj", "annotate", *paths, *BASE, "--clonotypes", clonotypes, "-o", out).status == 0
        written.append(clonotypes.read_bytes())
        rows.append(sorted(map(str, rows_of(out))))
    assert written[0] == written[1]
    assert rows[0] == rows[1]


@pytest.mark.slow
def test_threads_and_blocks_do_not_change_a_row(
    plait: Any, reads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poor = reads.with_name("poor.fastq")
    library = Library(reads=900, clones=60, sequencing=Sequencing(substitutions=0.002))
    write_fastq(simulate_reads([load_germline("mouse_trb")], library, seed=5), poor)
    written = []
    for threads, block in ((1, BLOCK), (2, BLOCK), (3, BLOCK), (2, 77)):
        monkeypatch.setattr("plait.vdj.reads.annotate_files._BLOCK_READS", block)
        out, clonotypes = tmp_path / "out.tsv", tmp_path / "clonotypes.tsv"
        words = (reads, poor, *BASE, "--clonotypes", clonotypes, "--threads", threads, "-o", out)
        assert plait("vdj", "annotate", *words).status == 0
        counts = told(out)["clonotypes"]
        assert 100 < counts["joined"] < counts["low_quality"]
        assert (
            sum(int(row["duplicate_count"]) for row in rows_of(clonotypes))
            == len(rows_of(out)) + counts["joined"]
        )
        written.append(tuple(path.read_bytes() for path in sorted(tmp_path.iterdir())))
    assert len(written[0]) == 6
    assert written[0] == written[1] == written[2] == written[3]


@pytest.mark.slow
def test_several_loci(plait: Any, other_reads: tuple[Path, Any], tmp_path: Path) -> None:
    path = tmp_path / "tra.fastq"
    write_fastq(simulate_reads([load_germline("mouse_tra")], Library(reads=200), seed=3), path)
    out = tmp_path / "out.tsv"
    words = (path, other_reads[0], "--germline", "mouse_trb,mouse_tra", "-o", out)
    assert plait("vdj", "annotate", *words).status == 0
    loci = Counter((row["repertoire_id"], row["locus"]) for row in rows_of(out))
    # A read with few bases of V may be nearer to another locus.
    assert loci["tra", "TRB"] + loci["second", "TRA"] <= 4
    assert loci["tra", "TRA"] > 190 and loci["second", "TRB"] > 390


def test_mates(plait: Any, tmp_path: Path) -> None:
    library = Library(reads=300, sequencing=Sequencing(insert_mean=240.0, insert_sd=40.0))
    first, second, out = tmp_path / "a_1.fq", tmp_path / "a_2.fq", tmp_path / "out.tsv"
    truth = write_fastq(simulate_reads([load_germline("mouse_trb")], library, seed=4), first, second)
    found = plait("vdj", "annotate", first, "--mate", second, *BASE, "-o", out)
    assert found.status == 0 and found.out.startswith("300 pairs of reads in ")
    rows = {row["sequence_id"]: row for row in rows_of(out)}
    right = [rows[read.name]["junction"] == read.molecule.junction for read in truth if read.name in rows]
    assert len(right) > 280 and sum(right) >= 0.95 * len(right)
    merged = sum(row["merged_mates"] == "T" for row in rows.values())
    assert 0.8 * len(rows) < merged <= told(out)["total"]["merged_pairs"]
    # Of molecules the consensus of both mates is merged, and the share is that of molecules.
    found = plait("vdj", "annotate", first, "--mate", second, *BASE, "--umi", "read1:0-2", "-o", out)
    total = told(out)["total"]
    share = 100 * total["merged_pairs"] / total["sequences"]
    assert f"{total['merged_pairs']} of them ({share:.1f} %) merged" in found.out


def test_umis(plait: Any, tmp_path: Path) -> None:
    library = Library(
        reads=600, clones=60, umi_length=10, sequencing=Sequencing(placement="primer", reverse=0.0)
    )
    path, out, clonotypes = tmp_path / "u.fq", tmp_path / "out.tsv", tmp_path / "clonotypes.tsv"
    truth = write_fastq(simulate_reads([load_germline("mouse_trb")], library, seed=5), path)
    words = ("vdj", "annotate", path, *BASE, "--umi", "name", "--clonotypes", clonotypes, "-o", out)
    found = plait(*words)
    assert found.status == 0 and "molecules by UMI" in found.out
    facts = told(out)
    assert facts["total"]["reads"] == 600
    assert facts["total"]["sequences"] == facts["umi_counts"]["molecules"]
    rows = rows_of(out)
    assert sum(int(row["consensus_count"]) for row in rows) <= 600
    assert len(rows) < 1.2 * len({read.umi for read in truth})
    assert sum(int(row["duplicate_count"]) for row in rows_of(clonotypes)) == len(rows)
    before = out.read_bytes()
    assert plait(*words, "--threads", 1).status == 0
    assert out.read_bytes() == before
    assert plait(*words, "--umi-ratio", 10).status == 0
    assert told(out)["umis"]["umi_ratio"] == 10
    assert sorted(item.suffix for item in tmp_path.iterdir()) == [".fq", *[".json"] * 3, *[".tsv"] * 3]


@pytest.fixture(scope="module")
def of_cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same reads of 60 molecules of 20 cells, whose barcodes stand at different places."""
    folder = tmp_path_factory.mktemp("cells")
    paths = {name: folder / f"{name}.fastq" for name in ("tag", "name", "read1")}
    library = Library(reads=60, clones=20, sequencing=Sequencing(placement="primer", reverse=0.0))
    texts: dict[str, list[str]] = {name: [] for name in paths}
    for k, read in enumerate(simulate_reads([load_germline("mouse_trb")], library, seed=5)):
        cell, umi = (("".join("ACGT"[n // 4**i % 4] for i in range(8))) for n in (k % 20, 7 * k))
        letters, high = read.read.sequence, "I" * len(read.read.sequence)
        for copy in "ab":
            texts["tag"].append(
                f"@{k}{copy} 1:N:0\tUB:Z:{umi}\tCB:Z:{cell}-1\r\n{letters}\r\n+\r\n{high}\r\n"
            )
            texts["name"].append(f"@{k}{copy}_{cell}_{umi}\n{letters}\n+\n{high}\n")
            texts["read1"].append(f"@{k}{copy}\n{cell}{umi}{letters}\n+\n{'I' * 16}{high}\n")
    for name, lines in texts.items():
        paths[name].write_bytes("".join(lines).encode())
    return paths


@pytest.mark.slow
def test_cells_wherever_their_barcodes_stand(plait: Any, of_cells: dict[str, Path], tmp_path: Path) -> None:
    clonotypes, alone = {}, {}
    for name, places in {
        "tag": ("--cell", "tag:CB", "--umi", "tag:UB"),
        "name": ("--cell", "name", "--umi", "name"),
        "read1": ("--cell", "read1:0-8", "--umi", "read1:8-16"),
    }.items():
        out, table = tmp_path / f"{name}.tsv", tmp_path / f"{name}.clonotypes.tsv"
        words = ("vdj", "annotate", of_cells[name], *BASE, "--repertoire-id", "r", "-o", out)
        assert plait(*words, *places, "--clonotypes", table).status == 0
        rows = rows_of(out)
        assert len(rows) == told(out)["umi_counts"]["molecules"] == 60
        assert {row["consensus_count"] for row in rows} == {"2"}
        assert all(f":{row['cell_id']}:" in row["sequence_id"] for row in rows)
        kept = ("cell_id", "v_call", "j_call", "junction", "umi_count")
        clonotypes[name] = sorted((*(row[k].removesuffix("-1") for k in kept),) for row in rows_of(table))
        found = plait(*words, *places[:2])
        assert found.status == 0 and "have no cell" not in found.out
        alone[name] = Counter(row["cell_id"].removesuffix("-1") for row in rows_of(out))
    found = plait("vdj", "annotate", of_cells["tag"], *BASE, "--cell", "tag:XX", "-o", tmp_path / "none.tsv")
    assert "120 of 120 sequences have no cell." in found.out
    assert clonotypes["tag"] == clonotypes["name"] == clonotypes["read1"]
    assert {cell for cell, *_ in clonotypes["tag"]} == {*alone["tag"]}
    assert alone["tag"] == alone["name"] == alone["read1"] and {*alone["tag"].values()} == {6}
    cells = tmp_path / "cells.tsv"
    found = plait("vdj", "cells", tmp_path / "tag.clonotypes.tsv", "-o", cells)
    assert found.status == 0 and f"chains of {len(rows_of(cells))} cells" in found.out
    assert {row["cell_id"] for row in rows_of(cells)} <= {f"{cell}-1" for cell in alone["tag"]}


def test_a_sheet_names_files_mates_and_samples(plait: Any, reads: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.fastq.gz"
    other.write_bytes(reads.read_bytes())
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(f"file,repertoire_id,subject_id,arm\n{reads},r1,m1,old\n{other.name},r2,,\n")
    out, clonotypes = tmp_path / "out.tsv", tmp_path / "clonotypes.tsv"
    words = ("vdj", "annotate", *BASE, "-o", out)
    assert plait(*words, "--sheet", sheet, "--clonotypes", clonotypes).status == 0
    for path in (out, clonotypes):
        named = {(row["repertoire_id"], row["subject_id"], row["arm"]) for row in rows_of(path)}
        # Where no subject is said, it is called as the repertoire.
        assert named == {("r1", "m1", "old"), ("r2", "r2", "")}
    without = plait("vdj", "annotate", reads, other, *BASE, "-o", tmp_path / "plain.tsv")
    assert without.status == 0
    names = ("repertoire_id", "subject_id", "arm")
    plain, of_sheet = (
        [{k: v for k, v in row.items() if k not in names} for row in rows_of(path)]
        for path in (tmp_path / "plain.tsv", out)
    )
    assert plain == of_sheet
    for header, lines, message in (
        (
            "file,repertoire_id,arm",
            (f"{reads},r,a", f"{other},r,b"),
            "line 3: found subject_id 'r', arm 'b' for",
        ),
        ("file,repertoire_id", (f"{reads},r", f"{other},"), "line 3, column 'repertoire_id': found nothing"),
        ("file,mate", (f"{reads},{other}", f"{other},"), "line 3, column 'mate': found nothing"),
        ("file,v_call", (f"{reads},x",), "a covariate called 'v_call'"),
    ):
        sheet.write_text("\n".join((header, *lines)) + "\n")
        found = plait("vdj", "annotate", *BASE, "-o", tmp_path / "no.tsv", "--sheet", sheet)
        assert (found.status, found.out) == (2, "") and message in found.err
    found = plait(*words, reads, "--sheet", sheet)
    assert found.status == 2 and "found a sheet and reads beside it" in found.err
    assert not list(tmp_path.glob("no*"))


def test_new_alleles_are_written(plait: Any, reads: Path, tmp_path: Path) -> None:
    out, alleles = tmp_path / "out.tsv", tmp_path / "alleles.tsv"
    found = plait("vdj", "annotate", reads, *BASE, "--new-alleles", alleles, "-o", out)
    assert found.status == 0 and f"{alleles}" in found.out
    assert alleles.read_text().startswith("allele\tgene\tsegment\t")
    assert told(out)["new_alleles"][0]["germline"] == "mouse_trb"


def test_it_feeds_the_count(plait: Any, reads: Path, tmp_path: Path) -> None:
    clonotypes, counts = tmp_path / "clonotypes.tsv", tmp_path / "counts.tsv"
    words = (reads, *BASE, "--productive", "--clonotypes", clonotypes, "-o", tmp_path / "out.tsv")
    assert plait("vdj", "annotate", *words).status == 0
    assert plait("vdj", "count", clonotypes, *BASE, "--device", "cpu", "-o", counts).status == 0
    rows = rows_of(counts)
    assert {row["status"] for row in rows} == {"ok"} and len(rows) == len(rows_of(clonotypes))


@pytest.mark.slow
def test_silent_where_nobody_looks(start_plait: Any, reads: Path, tmp_path: Path) -> None:
    process = start_plait("vdj", "annotate", reads, *BASE, "-o", tmp_path / "out.tsv")
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert out.startswith("900 reads in ")


@pytest.mark.slow
def test_progress_on_a_terminal(on_terminal: Any, reads: Path, tmp_path: Path) -> None:
    found, shown = on_terminal("vdj", "annotate", reads, *BASE, "-o", tmp_path / "out.tsv")
    assert found.status == 0 and found.out.startswith("900 reads in ")
    assert b"annotating" in shown and b"reads" in shown


@pytest.fixture(scope="module")
def many_reads(other_reads: tuple[Path, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of many blocks."""
    path = tmp_path_factory.mktemp("many") / "many.fastq"
    path.write_bytes(other_reads[0].read_bytes() * COPIES)
    return path


STOPPED = (*BASE, "--threads", "1", "--clonotypes", "clonotypes.tsv", "-o", "out.parquet")


@pytest.fixture(scope="module")
def whole_run(many_reads: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """All files of a run that nobody stopped."""
    from plait.cli import main

    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("plait.vdj.reads.annotate_files._BLOCK_READS", BLOCK)
        assert main(["vdj", "annotate", str(many_reads), *STOPPED]) == 0
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"),
    often(1, [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]),
)
def test_a_stopped_run_is_resumed_to_the_byte(
    plait: Any,
    start_plait: Any,
    many_reads: Path,
    whole_run: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stopping: Any,
    number: int,
    status: int,
) -> None:
    words = ("vdj", "annotate", many_reads, *STOPPED)
    process = start_plait(*words, before=f"{SMALL_BLOCKS}; {stopping(number)}", cwd=tmp_path)
    _, err = process.communicate(timeout=300)
    assert process.returncode == status
    assert not (tmp_path / "out.parquet").exists()
    if number != signal.SIGKILL:
        message = "plait: stopped; the same command with --resume continues where it stopped"
        assert err.splitlines()[-1] == message and "Traceback" not in err
        assert [path.name for path in tmp_path.iterdir()] == ["out.parquet.checkpoint"]
    monkeypatch.chdir(tmp_path)
    found = plait(*words, "--resume")
    assert found.status == 0 and "blocks were taken over from the stopped run" in found.out
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == whole_run


@pytest.mark.slow
def test_another_run_is_not_resumed(
    plait: Any, many_reads: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(self: object, rows: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("plait.vdj.reads.annotate_files.FurtherResults.add", stop)
        assert plait("vdj", "annotate", many_reads, *STOPPED).status == 130
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet.checkpoint"]
    found = plait("vdj", "annotate", many_reads, *STOPPED, "--max-error-rate", "0.1", "--resume")
    assert found.status == 2
    assert "resume: found a checkpoint of another run" in found.err
    assert "parameters.max_error_rate (stored 0.15, now 0.1)" in found.err
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet.checkpoint"]
