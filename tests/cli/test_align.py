"""``plait align``: every output, every pairing and mode, and what it says about bad input."""

from __future__ import annotations

import gzip
import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.examples import often

from plait import __version__
from plait.align import align, load_matrix, local_best
from plait.align.aligner import Traceback
from plait.align.files import Pairing
from plait.align.settings import Kind, Mode
from plait.align.writers import DEFAULT_COLUMNS, FORMATS
from plait.cli import align as command
from plait.cli.entry import EXAMPLES

QUERIES = {"q1": "ACGTACGTTA", "q2": "ttgacca", "q3": "GGCAACG"}
TARGETS = {"t1": "ACGACGTTACC", "t2": "TTGGCCATT", "t3": "CAACG"}
PROTEINS = {"p1": "MKTAYIAKQRQISFVKSHFSRQ", "p2": "MKTAYIARQISFVKSHYSRQLE"}
SLOWLY = ("--device", "reference")
SUMMARY = "plait: 3 pairs, 208 cells in "


@pytest.fixture
def inputs(fasta: Any) -> tuple[Path, Path]:
    return fasta(QUERIES, "a.fa"), fasta(TARGETS, "b.fa")


def left(folder: Path) -> list[str]:
    """Names in a folder but for the input."""
    return sorted(path.name for path in folder.iterdir() if path.suffix not in (".fa", ".mat", ".gz"))


def expected(query: str, target: str, **options: Any) -> Any:
    return align(query, target, **({"kind": "dna", "device": "reference"} | options))


@pytest.mark.parametrize("line", EXAMPLES["align"])
def test_examples_of_help_run(plait: Any, fasta: Any, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    folder = fasta(QUERIES, "queries.fa").parent
    for name, records in (("targets.fa", TARGETS), ("genomes.fa", TARGETS), ("primer.fa", {"p": "ACGTT"})):
        fasta(records, name)
    with gzip.open(folder / "reads.fq.gz", "wt") as file:
        file.write("@r\nACGACGTTACC\n+\nIIIIIIIIIII\n")
    monkeypatch.chdir(folder)
    assert plait(*line.split()[1:], *SLOWLY).status == 0


# --- outputs --------------------------------------------------------------------------------------------


def test_text_on_standard_output(plait: Any, inputs: tuple[Path, Path]) -> None:
    found = plait("align", *inputs, *SLOWLY)
    assert found.status == 0
    start = f"{'#' * 40}\n# Program: plait {__version__}\n# Commandline: plait align {inputs[0]} {inputs[1]} "
    assert found.out.startswith(start)
    for (q, query), (t, target) in zip(QUERIES.items(), TARGETS.items(), strict=True):
        assert expected(query, target).text(query, target, query_name=q, target_name=t) in found.out
    # Nothing but the summary: standard error is no terminal here.
    assert found.err.startswith(SUMMARY) and found.err.endswith(" s; 2/-3, gaps 7/2\n")
    assert found.err.count("\n") == 1


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz", "out.tsv", "out.sam", "out.jsonl", "out.parquet"])
def test_a_file_of_every_format(plait: Any, inputs: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    found = plait("align", *inputs, *SLOWLY, "-o", out)
    assert (found.status, found.out) == (0, "")
    assert found.err.startswith(SUMMARY) and found.err.endswith(f"; {out}\n")
    content = gzip.decompress(out.read_bytes()) if name.endswith(".gz") else out.read_bytes()
    start = {"txt": b"####", "tsv": b"query\ttarget\t", "sam": b"@HD\tVN:1.6", "jsonl": b'{"query": "q1"'}
    assert content.startswith(start.get(name.split(".")[1], b"PAR1"))


@pytest.mark.parametrize("kind", often(1, ["tsv", "jsonl", "parquet"]))
def test_tables(plait: Any, inputs: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    out = tmp_path / f"out.{kind}"
    assert plait("align", *inputs, *SLOWLY, "-o", out).status == 0
    if kind == "tsv":
        header, *lines = [line.split("\t") for line in out.read_text().splitlines()]
        rows = [dict(zip(header, line, strict=True)) for line in lines]
    elif kind == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        rows = pq.read_table(out).to_pylist()
    assert len(rows) == 3
    for row, (q, query), (t, target) in zip(rows, QUERIES.items(), TARGETS.items(), strict=True):
        assert tuple(row) == DEFAULT_COLUMNS
        assert (row["query"], row["target"]) == (q, t)
        found = expected(query, target)
        for name in ("score", "cigar", "matches", "gap_openings", "query_start", "target_end"):
            assert str(row[name]) == str(getattr(found, name))
        assert float(row["identity"]) == pytest.approx(found.identity, rel=1e-15)
    if kind == "parquet":
        facts = json.loads(pq.read_schema(out).metadata[b"plait.provenance"])
    else:
        facts = json.loads(Path(f"{out}.json").read_text())
        facts = facts["metadata"]["plait.provenance"] if kind == "tsv" else facts["provenance"]
    assert (facts["version"], facts["parameters"]["gap_open"]) == (__version__, 7)


def test_sam(plait: Any, inputs: tuple[Path, Path]) -> None:
    words = ("align", *inputs, "--pairs", "all", "--mode", "local", "--format", "sam", "--md", *SLOWLY)
    found = plait(*words)
    assert found.status == 0
    lines = [line.split("\t") for line in found.out.splitlines()]
    assert lines[:4] == [
        ["@HD", "VN:1.6", "SO:unsorted", "GO:query"],
        *(["@SQ", f"SN:{name}", f"LN:{len(letters)}"] for name, letters in TARGETS.items()),
    ]
    assert lines[4][-1] == f"CL:plait {' '.join(map(str, words))}"
    pairs = [(q, t) for q in QUERIES for t in TARGETS]
    assert [(line[0], line[2]) for line in lines[5:]] == pairs
    assert [line[1] for line in lines[5:]] == ["0", "256", "256"] * 3
    for line, (q, t) in zip(lines[5:], pairs, strict=True):
        one = expected(QUERIES[q], TARGETS[t], mode="local")
        assert line[3] == str(one.target_start + 1) and one.cigar in line[5]
        assert line[9] == QUERIES[q] and line[11] == f"AS:i:{one.score}"
        assert line[13].startswith("MD:Z:")


def test_sam_counts_what_has_no_line(plait: Any, fasta: Any) -> None:
    words = (fasta({"a": "AAAA"}, "a.fa"), fasta({"c": "CCCC", "g": "GGGG"}, "b.fa"))
    found = plait("align", *words, "--pairs", "one", "--mode", "local", "--format", "sam", *SLOWLY)
    assert [line.split("\t")[:3] for line in found.out.splitlines()[4:]] == [["a", "4", "*"]]
    assert "; 1 without aligned residues have no line" in found.err


def test_scores_on_standard_output_are_a_table(plait: Any, inputs: tuple[Path, Path]) -> None:
    found = plait("align", *inputs, "--score-only", *SLOWLY)
    header, *lines = found.out.splitlines()
    assert header == "query\ttarget\tscore\tquery_length\ttarget_length"
    scores = [
        expected(query, target).score
        for query, target in zip(QUERIES.values(), TARGETS.values(), strict=True)
    ]
    assert [int(line.split("\t")[2]) for line in lines] == scores


def test_columns(plait: Any, inputs: tuple[Path, Path]) -> None:
    chosen = "target, cigar,query_aligned,mode"
    found = plait("align", *inputs, "--format", "tsv", "--columns", chosen, *SLOWLY)
    header, first, *_ = [line.split("\t") for line in found.out.splitlines()]
    assert header == ["target", "cigar", "query_aligned", "mode"]
    one = expected(QUERIES["q1"], TARGETS["t1"])
    assert first[:2] == ["t1", one.cigar] and first[3] == "global"
    assert first[2].replace("-", "") == QUERIES["q1"]


def test_statistics(plait: Any, fasta: Any) -> None:
    path = fasta(PROTEINS, "p.fa")
    words = ("--mode", "local", "--format", "jsonl", "--columns", "score,bit_score,evalue")
    found = plait("align", path, *words, *SLOWLY)
    row = json.loads(found.out)
    assert row["score"] > 50 and row["bit_score"] == pytest.approx(0.385 * row["score"] + 4.6, abs=0.5)
    assert 0 < row["evalue"] < 1e-5
    assert found.err.rstrip().endswith("BLOSUM62, gaps 12/1")


# --- several alignments, limits, strands --------------------------------------------------------------------

REPEAT = {"r": "ACGTTGCATTACCA"}
REPEATED = {"t": "GGACGTTGCATTACCAGGGGGGGTGGTAATGCAACGTGGGGGGACGTTGCCTTACCAGG"}


def lines_of(found: Any) -> list[dict[str, str]]:
    head, *rows = [line.split("\t") for line in found.out.splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rows]


@pytest.mark.parametrize("rule", often(1, [(("--apart", "7"),), (("--disjoint",),)]))
def test_several_alignments_are_those_of_local_best(plait: Any, fasta: Any, rule: tuple[str, ...]) -> None:
    files = fasta(REPEAT, "a.fa"), fasta(REPEATED, "b.fa")
    found = plait("align", *files, "--mode", "local", "--best", "3", *rule, "--format", "tsv", *SLOWLY)
    how = {"disjoint": True} if rule[0] == "--disjoint" else {"apart": 7}
    wanted = local_best(REPEAT["r"], REPEATED["t"], 3, kind="dna", device="reference", **how)
    assert len(wanted) == 3
    assert [(row["rank"], row["score"], row["cigar"], row["target_end"]) for row in lines_of(found)] == [
        (str(rank), str(one.score), one.cigar, str(one.target_end)) for rank, one in enumerate(wanted, 1)
    ]
    assert "; 3 alignments; " in found.err


def test_both_strands(plait: Any, fasta: Any) -> None:
    files = fasta(REPEAT | {"u": "TTTTTTTTTT"}, "a.fa"), fasta(REPEATED, "b.fa")
    how = ("--mode", "local", "--pairs", "all", "--strand", "both", "--min-score", "11")
    found = plait("align", *files, *how, "--best", "3", "--disjoint", "--format", "tsv", *SLOWLY)
    rows = [
        (row["strand"], int(row["query_start"]), int(row["target_start"]), row["cigar"])
        for row in lines_of(found)
    ]
    assert rows == [("+", 0, 2, "14="), ("-", 0, 23, "14="), ("+", 0, 43, "7=1X6=")]
    assert "; 1 pair without one that is asked for; " in found.err
    sam = plait("align", *files, *how, "--best", "2", "--format", "sam", *SLOWLY).out.splitlines()[-2:]
    assert [line.split("\t")[1] for line in sam] == ["0", "272"]
    assert sam[1].split("\t")[9] == "TGGTAATGCAACGT"
    paf = plait("align", *files, *how, "--format", "paf", *SLOWLY).out
    assert paf == "r\t14\t0\t14\t+\tt\t59\t2\t16\t14\t14\t255\tAS:i:28\tNM:i:0\tcg:Z:14=\n"
    scores = plait("align", *files, *how, "--score-only", *SLOWLY)
    assert [(row["strand"], row["score"]) for row in lines_of(scores)] == [("+", "28")]


def test_lower_case_is_masked(plait: Any, fasta: Any) -> None:
    files = fasta({"q": "ACGTacgtACGT"}, "a.fa"), fasta({"t": "ACGTACGTACGT"}, "b.fa")
    how = ("--mode", "local", "--format", "tsv", "--columns", "score,cigar", *SLOWLY)
    assert plait("align", *files, *how).out == "score\tcigar\n24\t12=\n"
    assert plait("align", *files, "--mask-lower-case", *how).out == "score\tcigar\n8\t4=\n"
    found = plait("align", *files, "--matrix", str(matrix_without_n(files[0].parent)), "--gap-open", "5",
                  "--gap-extend", "2", "--kind", "dna", "--mask-lower-case", *how)  # fmt: skip
    assert found.status == 2 and "mask_lower_case: found" in found.err and "without N" in found.err


def matrix_without_n(folder: Path) -> Path:
    (folder / "four.mat").write_text(
        "   A  C  G  T\nA  2 -3 -3 -3\nC -3  2 -3 -3\nG -3 -3  2 -3\nT -3 -3 -3  2\n"
    )
    return folder / "four.mat"


def test_evalues_leave_out(plait: Any, fasta: Any) -> None:
    files = fasta(PROTEINS | {"p3": "WWWWWWWW"}, "a.fa")
    found = plait("align", files, "--mode", "local", "--evalue", "1e-5", "--format", "tsv", *SLOWLY)
    assert [(row["query"], row["target"]) for row in lines_of(found)] == [("p1", "p2")]
    assert (
        "plait: 3 pairs" in found.err
        and "; 1 alignment; 2 pairs without one that is asked for; " in found.err
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ("--best", "2"),
            "several alignments of a pair: found mode 'global', expected mode 'local', no band",
        ),
        (("--best", "0", "--mode", "local"), "best: found 0, expected a whole number of at least 1"),
        (("--apart", "3"), "--apart: found no --best, expected --best K with it"),
        (("--best", "2", "--apart", "0"), "--apart: found 0, expected a whole number of at least 1"),
        (
            ("--best", "2", "--apart", "2", "--disjoint"),
            "--disjoint: found --apart too, expected one of them",
        ),
        (("--evalue", "1"), "evalue: found 'a limit' in mode 'global'"),
        (("--mode", "local", "--evalue", "-1"), "evalue: found -1.0, expected a number of at least 0"),
        (("--strand", "both", "--matrix", "BLOSUM62"), "strand: found both, with BLOSUM62"),
        (("--mode", "local", "--best", "2", "--score-only"), "best: found several for scores alone"),
    ],
)
def test_what_does_not_go_together(
    plait: Any, inputs: tuple[Path, Path], given: tuple[str, ...], said: str
) -> None:
    found = plait("align", *inputs, *given, *SLOWLY)
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith(f"plait: error: {said}")


# --- pairings, modes, settings --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairing", "pairs"),
    [
        ("order", [(f"q{k}", f"t{k}") for k in (1, 2, 3)]),
        ("all", [(q, t) for q in QUERIES for t in TARGETS]),
        ("one", [("q1", t) for t in TARGETS]),
        (None, [("q1", "q2"), ("q1", "q3"), ("q2", "q3")]),
    ],
)
def test_pairings(plait: Any, fasta: Any, pairing: str | None, pairs: list[tuple[str, str]]) -> None:
    queries = dict(list(QUERIES.items())[: 1 if pairing == "one" else 3])
    words: list[object] = [fasta(queries, "a.fa.gz")]
    if pairing is not None:
        words += [fasta(TARGETS, "b.fa"), "--pairs", pairing]
    found = plait("align", *words, "--format", "tsv", "--columns", "query,target", *SLOWLY)
    assert [tuple(line.split("\t")) for line in found.out.splitlines()[1:]] == pairs


@pytest.mark.parametrize(
    ("words", "options"),
    often(
        8,
        [
            (("--mode", "local"), {"mode": "local"}),
            (("--mode", "overlap"), {"mode": "overlap"}),
            (("--mode", "extension"), {"mode": "extension"}),
            (("--mode", "extension", "--x-drop", "3"), {"mode": "extension", "x_drop": 3}),
            (("--mode", "semiglobal"), {"mode": "semiglobal"}),
            (
                ("--mode", "semiglobal", "--free-ends", "query_start,target_end"),
                {"mode": "semiglobal", "free_ends": ["query_start", "target_end"]},
            ),
            (("--band", "2"), {"band": 2}),
            (("--band", "-3:2"), {"band": (-3, 2)}),
            (("--traceback", "full"), {}),
            (("--traceback", "linear"), {}),
            (("--gap-open", "3", "--gap-extend", "3"), {"gap_open": 3, "gap_extend": 3}),
            (("--matrix", "nuc.4.4"), {"matrix": "NUC.4.4"}),
            (("--kind", "protein"), {"kind": "protein"}),
            (
                ("--match", "1", "--mismatch", "-2", "--gap-open", "4", "--gap-extend", "1"),
                {"matrix": "own.mat", "gap_open": 4, "gap_extend": 1},
            ),
            (
                ("--matrix", "own.mat", "--gap-open", "4", "--gap-extend", "1"),
                {"matrix": "own.mat", "gap_open": 4, "gap_extend": 1},
            ),
        ],
    ),
    ids=" ".join,
)
def test_settings_reach_the_alignment(
    plait: Any, fasta: Any, tmp_path: Path, words: tuple[str, ...], options: dict[str, Any]
) -> None:
    letters = "ACGT"
    rows = (" ".join([a, *("1" if a == b else "-2" for b in letters)]) for a in letters)
    own = tmp_path / "own.mat"
    own.write_text("\n".join([" ".join(letters), *rows]) + "\n")
    records = {"q": "GGCACGTACGTTA", "t": "ACGACGTTACC"}
    paths = fasta({"q": records["q"]}, "a.fa"), fasta({"t": records["t"]}, "b.fa")
    given = [str(own) if word == "own.mat" else word for word in words]
    if options.get("matrix") == "own.mat":
        options = options | {"matrix": load_matrix(own)}
    if "matrix" in options:
        options = options | {"kind": None}
    found = plait("align", *paths, *given, *SLOWLY, "--format", "jsonl")
    assert found.status == 0, found.err
    row = json.loads(found.out)
    one = expected(records["q"], records["t"], **options)
    for name in ("score", "cigar", "query_start", "query_end", "target_start", "target_end"):
        assert row[name] == getattr(one, name), name


def test_compressed_input(plait: Any, inputs: tuple[Path, Path], tmp_path: Path) -> None:
    packed = [tmp_path / f"{path.name}.zst" for path in inputs]
    for path, target in zip(inputs, packed, strict=True):
        target.write_bytes(pa.Codec("zstd").compress(path.read_bytes(), asbytes=True))
    plain, zipped = (plait("align", *paths, "--format", "tsv", *SLOWLY).out for paths in (inputs, packed))
    assert plain == zipped and plain.count("\n") == 4


def test_empty_sequences_have_alignments(plait: Any, fasta: Any) -> None:
    paths = fasta({"none": "", "some": "ACGT"}, "a.fa"), fasta({"some": "ACG", "none": ""}, "b.fa")
    found = plait("align", *paths, "--format", "tsv", "--columns", "score,cigar,identity", *SLOWLY)
    assert found.out.splitlines()[1:] == ["-11\t3D\t0", "-13\t4I\t0"]
    found = plait("align", *paths, "--format", "tsv", "--columns", "score,cigar", "--mode", "local", *SLOWLY)
    assert found.out.splitlines()[1:] == ["0\t", "0\t"]


def test_names_that_come_again_are_told(plait: Any, fasta: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.fa"
    path.write_text(">x\nACGT\n>x\nACG\n>x\nAC\n")
    found = plait("align", path, "--score-only", *SLOWLY)
    assert found.status == 0
    note = "the name 'x' was there before (so it is with 2 records); results cannot be told apart by name"
    assert found.err.splitlines()[0] == f"plait: note: {path}, line 3: {note}"


def test_threads_do_not_change_a_byte(plait: Any, fasta: Any, tmp_path: Path) -> None:
    rng = random.Random(3)
    records = {f"s{k}": "".join(rng.choices("ACGT", k=rng.randrange(120))) for k in range(60)}
    path = fasta(records, "a.fa")
    written = []
    for threads in (1, 2, 3):
        out = tmp_path / f"{threads}" / "out.parquet"
        out.parent.mkdir()
        assert plait("align", path, "--threads", threads, "-o", out).status == 0
        written.append(out.read_bytes())
    assert written[0] == written[1] == written[2]
    assert pq.read_metadata(out).num_rows == 60 * 59 // 2


# --- the process ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_help_loads_neither_compiler_nor_tables() -> None:
    program = (
        "import sys, plait.cli; plait.cli.main(['align', '--help']); print(*sys.modules, file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"numpy", "numba", "pyarrow"}.isdisjoint(found.stderr.split())
    assert "--free-ends" in found.stdout and "--pairs" in found.stdout


def test_options_offer_what_there_is() -> None:
    assert get_args(command.PairsOption) == get_args(Pairing)
    assert get_args(command.ModeOption) == get_args(Mode)
    assert get_args(command.TracebackOption) == get_args(Traceback)
    assert get_args(command.FormatOption) == tuple(FORMATS)
    assert get_args(command.KindOption) == get_args(Kind)


@pytest.mark.slow
def test_progress_on_a_terminal(on_terminal: Any, inputs: tuple[Path, Path]) -> None:
    found, shown = on_terminal("align", *inputs, "--score-only", *SLOWLY)
    assert found.status == 0 and found.out.startswith("query\ttarget\tscore")
    assert b"aligning" in shown and b"GCUPS" in shown


TELLING_TILES = (
    # A parent may have had Ctrl-C ignored for its children.
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "import os, plait.dp.pairs.tiles as s; run = s.sweep_tile;"
    "s.sweep_tile = lambda *words: (run(*words), os.write(1, b'tile\\n'))[0]"
)


@pytest.mark.slow
def test_a_long_pair_can_be_stopped(start_plait: Any, fasta: Any, tmp_path: Path) -> None:
    rng = random.Random(6)
    letters = ["".join(rng.choices("ACGT", k=300_000)) for _ in range(2)]
    paths = fasta({"a": letters[0]}, "a.fa"), fasta({"b": letters[1]}, "b.fa")
    process = start_plait("align", *paths, "-o", tmp_path / "out.txt", before=TELLING_TILES)
    # Into the sweep of the pair, which has hundreds of tiles.
    assert process.stdout.readline() == "tile\n"
    assert (tmp_path / ".out.txt.partial").exists()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "plait: stopped" and "Traceback" not in err
    assert left(tmp_path) == []
