"""``plait search`` and ``plait search index``."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pyarrow.parquet as pq
import pytest
from support.examples import often

from plait.align.settings import SearchSettings
from plait.align.writers import BLAST_COLUMNS, HIT_FORMATS
from plait.cli import search as command

QUERY = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQ"
# blastp 2.12.0+ -comp_based_stats 0 -seg no
LINES = """\
q	same	100.000	66	0	0	1	66	1	66	8.49e-46	128
q	part	100.000	30	0	0	21	50	4	33	1.53e-19	61.2
"""


def fasta(path: Path, **sequences: str) -> Path:
    path.write_text("".join(f">{name} text\n{s}\n" for name, s in sequences.items()))
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a query and a database, the current one."""
    monkeypatch.chdir(tmp_path)
    fasta(tmp_path / "q.fa", q=QUERY)
    others = {f"o{k}": "".join(random.Random(k).choices("GSTPN", k=40)) for k in range(5)}
    fasta(tmp_path / "t.fa", part="WWW" + QUERY[20:50] + "CCC", **others, same=QUERY)
    return tmp_path


def test_hits_on_standard_output(plait: Any, here: Path) -> None:
    found = plait("search", "q.fa", "t.fa", "--evalue", "0.001")
    assert (found.status, found.out) == (0, LINES)
    told = found.err.splitlines()[-1]
    assert told.startswith("plait: 1 query against 7 sequences (302 residues): 19,932 cells in ")
    assert told.endswith(" GCUPS; 2 hits")


@pytest.mark.parametrize("name", ["hits.m8", "hits.tsv", "hits.jsonl", "hits.parquet", "hits.txt"])
def test_every_format(plait: Any, here: Path, name: str) -> None:
    found = plait("search", "q.fa", "t.fa", "-o", name, "--evalue", "1e-3")
    assert (found.status, found.out) == (0, "")
    data = (here / name).read_bytes()
    if name == "hits.m8":
        assert data.decode() == LINES
    elif name == "hits.tsv":
        assert data.decode().partition("\n")[2] == LINES
    elif name == "hits.parquet":
        assert pq.read_table(here / name)["sseqid"].to_pylist() == ["same", "part"]
    else:
        assert data.count(b"part") >= 1
    assert not [path for path in here.iterdir() if path.name.startswith(".")]


def test_options(plait: Any, here: Path) -> None:
    columns = "sseqid,score,qlen,slen"
    words = ("search", "q.fa", "t.fa", "--columns", columns, "--top", 2, "--min-score", 100, "--score-only")
    found = plait(*words, "--gap-open", 11, "--gap-extend", 1, "--matrix", "blosum62", "--threads", 2)
    assert found.out == "same\t321\t66\t66\npart\t147\t66\t36\n"
    found = plait(*words, "--format", "tsv", "--gap-open", 5, "--gap-extend", 3)
    assert found.out.splitlines()[0] == columns.replace(",", "\t")
    assert "plait: no E-values: there are no Karlin-Altschul parameters" in found.err
    found = plait("search", "q.fa", "t.fa", "t.fa", "--allow-duplicate-names", "--columns", "sseqid")
    assert found.out.splitlines()[:3] == ["same", "same", "part"]


def test_a_device_that_is_not_there(plait: Any, here: Path) -> None:
    found = plait("search", "q.fa", "t.fa", "--device", "cuda:9999", "-o", "hits.m8")
    assert found.status == 2 and "target 'cuda:9999' is unavailable" in found.err
    assert not (here / "hits.m8").exists()


@pytest.mark.gpu
@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:all"])
def test_gpus_give_the_same_hits(plait: Any, here: Path, device: str) -> None:
    found = plait("search", "q.fa", "t.fa", "--evalue", "0.001", "--device", device)
    assert (found.status, found.out) == (0, LINES)


def test_index(plait: Any, here: Path) -> None:
    found = plait("search", "index", "t.fa", "-o", "t.plaitdb", "--check")
    told = "plait: t.plaitdb: 7 sequences (protein), 302 residues"
    assert found == (0, "", f"{told}, all checksums right\n")
    assert plait("search", "index", "t.plaitdb", "--check").err == f"{told}, all checksums right\n"
    assert plait("search", "q.fa", "t.plaitdb", "--evalue", "0.001").out == LINES
    # Who has a query of that name says where it is.
    shutil.copy("q.fa", "index")
    assert plait("search", "./index", "t.fa", "--evalue", "0.001").out == LINES
    data = bytearray((here / "t.plaitdb").read_bytes())
    data[4096] ^= 1
    (here / "bad.plaitdb").write_bytes(data)
    found = plait("search", "index", "bad.plaitdb", "--check")
    assert found.status == 2 and "found checksum" in found.err and "of the section 'packed'" in found.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["q.fa"], "database: found none, expected a packed database, or FASTA files"),
        ([], "QUERY"),
        (["q.fa", "t.fa", "--top", "0"], "top: found 0"),
        (["q.fa", "t.fa", "--top", "2.5"], "found '2.5', expected a whole number"),
        (
            ["q.fa", "t.fa", "--gap-open", "-11"],
            "found -11, expected a whole number from 0 to 32767; costs are",
        ),
        (["q.fa", "t.fa", "--gap-open", "1", "--gap-extend", "2"], "less than gap_extend 2"),
        (["q.fa", "t.fa", "--matrix", "BLOSUM63"], "BLOSUM63"),
        (["q.fa", "t.fa", "--matrix", "NUC.4.4"], "'NUC.4.4', which is for nucleotides"),
        (["q.fa", "t.fa", "--columns", "qseqid,scor"], "did you mean score?"),
        (["q.fa", "t.fa", "-o", "t.fa"], "found 't.fa', expected a name that ends in .m8"),
        (["q.fa", "t.fa", "-o", "t.fa", "--format", "blast"], "'t.fa', which is also an input"),
        (["q.fa", "t.fa", "-o", "x/hits.tsv"], "in a folder that does not exist"),
        (["q.fa", "none.fa"], "none.fa: found no such file"),
        (["none.fa", "t.fa"], "none.fa: found no such file"),
        (
            ["q.fa", "bad.fa", "--kind", "protein"],
            "bad.fa, line 3: found '?' at position 3 of the sequence 'b'",
        ),
        (["bad.fa", "t.fa"], "bad.fa, line 3: found '?' at position 3 of sequence 'b'"),
        (["twice.fa", "t.fa"], "twice.fa, line 3: found a second sequence named 'a', after that of line 1"),
        (["q.fa", "twice.fa"], "allow duplicate names"),
        (["q.fa", "bases.fa"], "found queries that look like proteins, expected nucleotides, as in the"),
        (["bases.fa", "t.fa"], "found queries that look like nucleotides, expected proteins, as in the"),
        (["q.fa", "empty.fa"], "empty.fa: found an empty file"),
        (["q.fa", "cut.plaitdb"], "the file is truncated"),
        (["q.fa", "old.plaitdb"], "found a database of format version 0, expected version 2"),
        (
            ["q.fa", "t.plaitdb", "--kind", "dna"],
            "found a database of kind 'protein', expected one of kind 'dna'",
        ),
        (["q.fa", "t.plaitdb", "t.fa"], "expected one packed database, or any number of FASTA files"),
        (["index", "t.fa"], "output: found none, expected the database to write"),
        (["index", "-o", "x.plaitdb"], "found no file, expected at least one FASTA file"),
        (["index", "t.fa", "-o", "t.fa"], "also an input"),
        (["index", "twice.fa", "-o", "x.plaitdb"], "found a second sequence named 'a'"),
        (["index", "t.fa", "--check"], "t.fa: found FASTA text, expected a packed database"),
    ],
)
def test_bad_input(plait: Any, here: Path, words: list[str], message: str) -> None:
    fasta(here / "bad.fa", a="MKV", b="MK?V")
    (here / "twice.fa").write_text(">a\nMKV\n>a\nMKL\n")
    fasta(here / "bases.fa", d="ACGTACGTACGTNAC")
    (here / "empty.fa").touch()
    assert plait("search", "index", "t.fa", "-o", "t.plaitdb").status == 0
    data = (here / "t.plaitdb").read_bytes()
    (here / "cut.plaitdb").write_bytes(data[:5000])
    (here / "old.plaitdb").write_bytes(data[:8] + bytes(4) + data[12:])
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    found = plait("search", *words)
    assert found.status == 2 and found.out == ""
    assert message in found.err and "Traceback" not in found.err
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


SLOW = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "import os, time, plait.align.sweeps as s; run = s._Worker.run;"
    # One write, which the threads cannot tear apart as they do the text and the line end of print().
    "s._Worker.run = lambda *words: (os.write(1, b'running\\n'), time.sleep(0.2), run(*words))[-1]"
)


@pytest.mark.parametrize(("number", "status"), often(1, [(signal.SIGINT, 130), (signal.SIGTERM, 143)]))
def test_a_stopped_search_leaves_nothing(start_plait: Any, here: Path, number: int, status: int) -> None:
    fasta(here / "many.fa", **{f"q{k}": QUERY for k in range(500)})
    process = start_plait("search", "many.fa", "t.fa", "-o", "hits.tsv", before=SLOW, cwd=here)
    assert process.stdout.readline() == "running\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == status
    assert err.splitlines()[-1] == "plait: stopped" and "Traceback" not in err
    assert sorted(path.name for path in here.iterdir()) == ["many.fa", "q.fa", "t.fa"]


@pytest.mark.slow
def test_progress_on_a_terminal(on_terminal: Any, here: Path) -> None:
    found, shown = on_terminal("search", "q.fa", "t.fa", "--evalue", "0.001", cwd=here)
    assert (found.status, found.out) == (0, LINES)
    assert b"searching" in shown and b"GCUPS" in shown


@pytest.mark.slow
def test_a_small_search_loads_little(plait: Any, here: Path) -> None:
    """Neither tables nor terminals, which take longer than the search."""
    plait("search", "q.fa", "t.fa")
    program = (
        "import sys; from plait.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    )
    words = [sys.executable, "-c", program, "search", "q.fa", "t.fa", "-o", "hits.m8"]
    found = subprocess.run(words, capture_output=True, text=True, check=True, cwd=here)
    assert {"pyarrow", "rich", "matplotlib"}.isdisjoint(found.stderr.split())


def test_translations_and_modes(plait: Any, here: Path) -> None:
    """As blastx has them, and end to end."""
    codons = {"M": "ATG", "K": "AAA", "T": "ACA", "A": "GCT", "Y": "TAT", "I": "ATT", "Q": "CAA"}
    fasta(here / "n.fa", n="CC" + "".join(codons[letter] for letter in QUERY[:9] if letter in codons))
    columns = "qseqid,sseqid,qstart,qend,qframe,sframe,frames,qlen,score"
    found = plait("search", "n.fa", "t.fa", "--translate", "--columns", columns, "--top", "1")
    assert (found.status, found.out) == (0, "n\tsame\t3\t29\t3\t0\t3/0\t29\t44\n")
    told = plait("search", "n.fa", "t.fa", "--translate", "--format", "text").out
    assert "Query: n (29 residues)" in told and "# 1: n (frame +3)" in told
    found = plait("search", "q.fa", "t.fa", "--mode", "global", "--top", "1", "--columns", "std,score")
    assert found.out.split()[:2] == ["q", "same"]
    assert found.out.split()[10:] == ["N/A", "N/A", "321"]
    assert "note: no E-values" in found.err or "no E-values: scores of mode 'global' have none" in found.err
    free = ("--mode", "semiglobal", "--free-ends", "query_start,query_end", "--columns", "sseqid,cigar")
    assert plait("search", "q.fa", "t.fa", *free, "--top", "2").out.splitlines()[0] == "same\t66="
    found = plait("search", "q.fa", "t.fa", "--mode", "semiglobal", "--free-ends", "nowhere")
    assert (found.status, "free_ends: found 'nowhere', expected any of" in found.err) == (2, True)


@pytest.mark.slow
def test_lower_case_in_an_index(plait: Any, here: Path) -> None:
    fasta(here / "t.fa", low=QUERY.lower(), high=QUERY)
    plait("search", "index", "t.fa", "-o", "t.plaitdb", "--mask-lower-case")
    found = plait("search", "q.fa", "t.plaitdb", "--columns", "sseqid")
    assert (found.status, found.out) == (0, "high\n")
    assert plait("search", "q.fa", "t.fa", "--mask-lower-case", "--columns", "sseqid").out == "high\n"
    assert plait("search", "q.fa", "t.fa", "--composition", "--columns", "sseqid").out == "low\nhigh\n"


def test_reads_are_searched_for(plait: Any, here: Path) -> None:
    (here / "r.fq").write_text(f"@q one\n{QUERY}\n+\n{'I' * len(QUERY)}\n")
    assert plait("search", "r.fq", "t.fa", "--evalue", "0.001").out == LINES


def test_choices_and_defaults_are_those_of_the_library() -> None:
    assert set(get_args(command.FormatOption)) == set(HIT_FORMATS)
    assert asdict(command.SearchOptions()) == asdict(SearchSettings())
    told = " ".join((command.search.__doc__ or "").split())
    assert all(name in told for name in BLAST_COLUMNS)


def test_help(plait: Any) -> None:
    found = plait("search", "--help")
    words = " ".join(found.out.replace("│", " ").split())
    for text in (
        "BLAST's existence and extension together",
        "without composition-based statistics",
        "./index",
    ):
        assert text in words
    assert max(map(len, found.out.splitlines())) <= 80
    assert plait("search", "index", "--help").status == 0
