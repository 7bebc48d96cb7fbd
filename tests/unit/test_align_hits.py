"""Hits as they are written: BLAST's own lines, and every other format."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait import __version__, align
from plait.align.hits import SearchSummary, search, search_files
from plait.align.settings import SearchSettings
from plait.align.writers import (
    BLAST_COLUMNS,
    DEFAULT_BLAST_COLUMNS,
    bit_score_text,
    evalue_text,
    hit_columns,
    hit_format,
)
from plait.errors import FormatError, InvalidInput

QUERY = ">q1\nAMLELTGISELAGRYPHELSGGQQQRVALARALAPDPELILLDEPFSALDEQLRRQIREDMIAALRANGKSAVFVSHDREEALQYADRIA\n"
PROTEINS = """\
>p5344 ATP-binding\tprotein
VGLGGMGHRLPAELSGGQQQRVAVARALVLEPQVLLLDEPLSTLDARLRRRVRTEIRELQQRLGFTAVYVTHDQDEALAVSDTIIVMKEG
>p2004 entry 1
MGHRLPAELSGGQQQRVAVARALVLEPQVLLLDEPLSTLDARLRRRVRTEIRELQQRLGFTAVYVTHDQD
>p8872 entry 2
QLLEMVQLGHLAERFPSQLSGGQKQRVALARALAVEPQILLLDEPFGALDAQVRKELRRWLRQLHEELKFTSVFVTHDQEEAMEVADRVV
>p100 entry 4
MARITAEDCNKIIPDRFRLVVLATRYAKLLNYKVETNQIKKEKRDKPPVISLRRIAAGKVSVEQLEQDLINSLRTKTMIE
>p200 entry 5
VIPVKIERLKKRPDFLKAAKAPNLARGAVFMQMRPRHDDDPLIRVGFTATKKIGGSVERNRAKRRLREAARLLLPLHGRPSCDYV
>p4303 entry 6
SEYATRDVKNLSGGEQQRVSIARTLANNPEALLLDEPTSALDPTSTEIVEKLIFNLKEKMNLTIIWITH
>near entry 7
AMLELTGISELAGRYPHELSGGQQQRVALAAPDPELILLDEPFSALDEQLRRQIREDGGSGWMIAALRANGKSAVFVSHDREEALQYADRIA
>short
LLDEPFSALDEQLRRQIREDMI
"""
COLUMNS = [
    *DEFAULT_BLAST_COLUMNS,
    "qlen",
    "slen",
    "score",
    "qcovs",
    "nident",
    "positive",
    "gaps",
    "ppos",
    "btop",
]
# blastp 2.12.0+ -comp_based_stats 0 -seg no -max_hsps 1 -threshold 5 -word_size 2 -window_size 0
BLASTP = """\
q1 near 91.579 95 0 2 1 90 1 92 1.22e-56 158 90 92 399 100 87 87 8 91.58 30R-A-L-27-G-G-S-G-W30
q1 p8872 51.136 88 43 0 2 89 2 89 3.25e-31 94.0 90 90 232 98 45 67 0 76.14 ML2LMTVGQILSGEH2GE1YF1HSEQ5QK10PV\
DE1EQLIIL6SG3EA1LV1RKQEIL1ERDWMLIRAQALLHREAENLGKKFSTAS3ST2RQ3LMQEYV3IV
q1 p5344 50.602 83 41 0 7 89 2 84 7.21e-28 85.5 90 90 210 92 42 61 0 73.49 1ILSGEGLMAGGH1YL1HA11LV4AVPLDE1E\
QLVIL5FL1AT2EAQR3QRIV1ETDEMIIRAEALLQRQARNL1KFST2FY1ST2RQED3QAYVAS1RT1
q1 p2004 53.731 67 31 0 14 80 4 70 5.40e-24 75.1 90 70 183 74 36 52 0 77.61 1YL1HA11LV4AVPLDE1EQLVIL5FL1AT2E\
AQR3QRIV1ETDEMIIRAEALLQRQARNL1KFST2FY1ST2RQED
q1 p4303 64.286 42 15 0 9 50 1 42 4.71e-15 52.4 90 69 124 47 27 32 0 76.19 2LY1GT1YDPVHKEN4QE4ASLI2AT2PNDN2\
LAIL5FT4
q1 short 100.000 22 0 0 41 62 1 22 5.23e-13 46.2 90 22 108 24 22 22 0 100.00 22
q1 p100 45.455 11 6 0 56 66 64 74 0.47 15.8 90 80 29 12 5 9 0 81.82 1ILREEQ1ML1ANAS2
q1 p200 33.333 21 14 0 21 41 54 74 2.4 13.9 90 85 24 23 7 9 0 42.86 2QSQVQE1VNARLAAK1AR1ARPEDAPAER1IL1
"""
BASES = """\
>chr x
TTGACCATGCAAGTCTACGGATTCAGCTTAGGCCATTACGGATCCATTTAGGCAACGTACCTGAAATCGGCTAAGCTTACGTTAGCCATGCAT
>other
ACGGATTCAGCTAGGCCATTACGGTTCCATTTAGG
>far
CCCCCCGGGGGTTTTTAAAAACCCCGGGATATATACGCGCGCTTTAAACC
"""
# blastn 2.12.0+ -task blastn -dust no -strand plus -word_size 7
BLASTN = """\
d1 chr 100.000 47 0 0 1 47 15 61 7.87e-23 86.0 47 93 94 100 47 47 0 100.00
d1 other 94.444 36 1 1 3 38 1 35 4.65e-13 53.6 47 35 58 77 34 34 1 94.44
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "q.fa").write_text(QUERY + ">none\nWWWW\n")
    (tmp_path / "p.fa").write_text(PROTEINS)
    return tmp_path / "q.fa", tmp_path / "p.fa"


def written(files: tuple[Path, Path], output: Path, **options: Any) -> SearchSummary:
    settings = SearchSettings(kind="protein", **options.pop("settings", {}))
    return search_files(*files, output, settings, **options)


def test_blastps_lines(files: tuple[Path, Path], tmp_path: Path) -> None:
    summary = written(files, tmp_path / "hits.m8", columns=COLUMNS)
    text = (tmp_path / "hits.m8").read_text()
    assert text == BLASTP.replace("\\\n", "").replace(" ", "\t")
    assert (summary.queries, summary.hits, summary.sequences, summary.residues) == (2, 8, 8, 598)


def test_blastns_lines(tmp_path: Path) -> None:
    """RNA against DNA, and lower case."""
    (tmp_path / "d.fa").write_text(BASES)
    (tmp_path / "q.fa").write_text(">d1\ncuacggattcagcttaggccauuacggatccatttaggcaacgtacc\n")
    search_files(tmp_path / "q.fa", tmp_path / "d.fa", tmp_path / "hits.m8", columns=COLUMNS)
    lines = (tmp_path / "hits.m8").read_text().splitlines()
    assert [line.rpartition("\t")[0] for line in lines] == BLASTN.replace(" ", "\t").splitlines()
    assert lines[0].endswith("\t47") and lines[1].endswith("\t11T-13AT10")


def test_columns_of_a_line(files: tuple[Path, Path], tmp_path: Path) -> None:
    columns = ["sseqid", "stitle", "qseq", "sseq", "cigar", "qcovhsp"]
    written(files, tmp_path / "hits.b6.gz", columns=columns, settings={"top": 7, "evalue": 1e-27})
    lines = gzip.decompress((tmp_path / "hits.b6.gz").read_bytes()).decode().splitlines()
    assert len(lines) == 3
    cells = lines[0].split("\t")
    assert cells[:2] == ["near", "near entry 7"] and cells[4:] == ["30=3I27=5D30=", "100"]
    assert cells[2].replace("-", "") == QUERY.split()[1] and cells[3][28:35] == "LA---AP"
    assert lines[2].startswith("p5344\tp5344 ATP-binding protein\t")


def test_tsv(files: tuple[Path, Path], tmp_path: Path) -> None:
    summary = written(files, tmp_path / "hits.tsv")
    lines = (tmp_path / "hits.tsv").read_text().splitlines()
    assert lines[0].split("\t") == list(DEFAULT_BLAST_COLUMNS) and len(lines) == 9
    assert lines[1].split("\t") == BLASTP.split()[:12]
    told = json.loads((tmp_path / "hits.tsv.json").read_text())
    assert told == {"pairs": 8, "provenance": summary.provenance.as_dict()}
    assert told["provenance"]["parameters"]["database_residues"] == 598


def test_scores_alone(files: tuple[Path, Path], tmp_path: Path) -> None:
    written(files, tmp_path / "hits.tsv", settings={"score_only": True})
    lines = (tmp_path / "hits.tsv").read_text().splitlines()
    assert lines[0] == "qseqid\tsseqid\tevalue\tbitscore\tscore\tqlen\tslen"
    assert lines[1] == "q1\tnear\t1.22e-56\t158\t399\t90\t92"
    written(files, tmp_path / "hits.txt", settings={"score_only": True})
    assert "#====" not in (tmp_path / "hits.txt").read_text()


def test_json_lines(files: tuple[Path, Path], tmp_path: Path) -> None:
    written(files, tmp_path / "hits.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "hits.jsonl").read_text().splitlines()]
    assert len(rows) == 8 and list(rows[0]) == list(DEFAULT_BLAST_COLUMNS)
    (hits, _) = search(*files, SearchSettings(kind="protein")).hits
    assert [(row["evalue"], row["bitscore"]) for row in rows] == [(hit.evalue, hit.bit_score) for hit in hits]
    assert rows[1]["pident"] == 100 * 45 / 88


def test_parquet(files: tuple[Path, Path], tmp_path: Path) -> None:
    summary = written(files, tmp_path / "hits.parquet", columns=list(BLAST_COLUMNS))
    table = pq.read_table(tmp_path / "hits.parquet")
    types = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64()}
    assert table.schema.names == list(BLAST_COLUMNS)
    assert table.schema.types == [types[column.kind] for column in BLAST_COLUMNS.values()]
    (hits, _) = search(*files, SearchSettings(kind="protein")).hits
    assert table.to_pylist() == [{n: c.value(hit) for n, c in BLAST_COLUMNS.items()} for hit in hits]
    assert json.loads(table.schema.metadata[b"plait.provenance"]) == summary.provenance.as_dict()


def test_no_hits(tmp_path: Path) -> None:
    (tmp_path / "q.fa").write_text(">none\nWWWW\n>empty\n")
    (tmp_path / "p.fa").write_text(PROTEINS)
    for suffix in ("m8", "tsv", "jsonl", "parquet", "txt"):
        summary = written((tmp_path / "q.fa", tmp_path / "p.fa"), tmp_path / f"hits.{suffix}")
        assert summary.hits == 0
    assert (tmp_path / "hits.m8").read_text() == (tmp_path / "hits.jsonl").read_text() == ""
    assert (tmp_path / "hits.tsv").read_text() == "\t".join(DEFAULT_BLAST_COLUMNS) + "\n"
    assert pq.read_table(tmp_path / "hits.parquet").num_rows == 0
    assert (tmp_path / "hits.txt").read_text().count("No hits.") == 2


def test_report(files: tuple[Path, Path], tmp_path: Path) -> None:
    written(files, tmp_path / "hits.txt", settings={"top": 2})
    text = (tmp_path / "hits.txt").read_text()
    assert text.startswith(
        f"plait {__version__}: Smith-Waterman search\n"
        "Database: p.fa (8 sequences, 598 residues)\n"
        "Scoring: BLOSUM62, the first residue of a gap costs 12, every further one 1\n\n"
        "Query: q1 (90 residues)\n\n"
        "   Sequence  Length  Score  Bits   E-value  Identity  Description\n"
        "1  near          92    399   158  1.22e-56     91.6%  entry 7\n"
        "2  p8872         90    232  94.0  3.25e-31     51.1%  entry 2\n\n#===="
    )
    (hits, _) = search(*files, SearchSettings(kind="protein", top=2)).hits
    for hit in hits:
        assert hit.alignment is not None
        names = {"query_name": "q1", "target_name": hit.target_name}
        assert hit.alignment.text(hit.query, hit.target, **names) in text  # type: ignore[arg-type]
    assert text.endswith("Query: none (4 residues)\n\nNo hits.\n\n")


def test_without_statistics(files: tuple[Path, Path], tmp_path: Path) -> None:
    settings = {"gap_open": 5, "gap_extend": 3, "top": 1}
    summary = written(files, tmp_path / "hits.m8", settings=settings)
    assert "no E-values: there are no Karlin-Altschul parameters" in summary.notes[0]
    assert (tmp_path / "hits.m8").read_text().splitlines()[0].endswith("\tN/A\tN/A")
    written(files, tmp_path / "hits.parquet", settings=settings)
    assert pq.read_table(tmp_path / "hits.parquet")["evalue"].null_count == 2
    written(files, tmp_path / "hits.txt", settings=settings)
    assert "\nNote: no E-values" in (tmp_path / "hits.txt").read_text()


@pytest.mark.parametrize(
    ("output", "format", "chosen"),
    [
        (None, None, "blast"), ("-", "text", "text"), ("a.m8", None, "blast"), ("a.B6.gz", None, "blast"),
        ("a.tsv.zst", None, "tsv"), ("a.out", "blast", "blast"), ("a", "tsv", "tsv"), ("a.txt", None, "text"),
    ],
)  # fmt: skip
def test_the_format_is_chosen_by_name(output: Any, format: str | None, chosen: str) -> None:
    assert hit_format(output, format) == chosen


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "a.csv"}, "expected a name that ends in .m8, .tsv, .parquet, .jsonl, .txt, or a format"),
        ({"output": "a.tsv", "format": "blast"}, "for the format blast"),
        ({"output": "a.out", "format": "parquet"}, "a name that ends in .parquet"),
        ({"output": None, "format": "parquet"}, "found standard output"),
        ({"output": "a.tsv", "columns": ["qseqid", "bits"]}, "found 'bits', expected names out of qseqid, "),
        ({"output": "a.tsv", "columns": ["bitscor"]}, "did you mean bitscore?"),
        ({"output": "a.tsv", "columns": []}, "found no name"),
        ({"output": "a.txt", "columns": ["score"]}, "columns for text"),
        ({"output": "a.tsv", "columns": ["score", "btop"], "aligned": False}, "found btop of hits that are"),
    ],
)
def test_wrong_outputs(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        chosen = hit_format(options["output"], options.get("format"))
        hit_columns(chosen, options.get("columns"), aligned=options.get("aligned", True))
    assert message in str(caught.value)


def test_outputs_are_checked_before_the_search(files: tuple[Path, Path], tmp_path: Path) -> None:
    def never(state: object) -> None:
        raise AssertionError

    with pytest.raises(InvalidInput, match="also an input"):
        written(files, files[1], format="blast", progress=never)
    with pytest.raises(InvalidInput, match="in a folder that does not exist"):
        written(files, tmp_path / "x" / "hits.tsv", progress=never)
    (tmp_path / "q.fa").write_text("")
    with pytest.raises(FormatError, match="an empty file"):
        written(files, tmp_path / "hits.tsv", progress=never)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.fa", "q.fa"]


def test_numbers_as_blastp_prints_them() -> None:
    evalues = {
        1e-181: "0.0", 1.5e-180: "1.50e-180", 9.996e-100: "1.00e-99", 8.99e-4: "8.99e-04", 9e-4: "0.001",
        0.0994: "0.099", 0.1: "0.10", 0.99: "0.99", 1.0: "1.0", 9.94: "9.9", 10.0: "10", 514.3: "514",
    }  # fmt: skip
    assert [evalue_text(value) for value in evalues] == list(evalues.values())
    bits = {13.94: "13.9", 99.9: "99.9", 99.94: "99", 100.9: "100", 99999.0: "99999", 100000.0: "1.000e+05"}
    assert [bit_score_text(value) for value in bits] == list(bits.values())


def turned(sequence: str) -> str:
    return sequence[::-1].translate(str.maketrans("ACGT", "TGCA"))


def nucleotides(seed: int) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Queries, and sequences with copies of them on both strands."""
    rng = random.Random(seed)

    def drawn(size: int) -> str:
        return "".join(rng.choices("ACGT", k=size))

    queries = [(f"q{k}", drawn(rng.randint(30, 60))) for k in range(3)]
    copies = [rng.choice((str, turned))(rng.choice(queries)[1][rng.randint(0, 9) :]) for _ in range(20)]
    targets = {f"t{k}": drawn(40) + copies[2 * k] + drawn(30) + copies[2 * k + 1] for k in range(10)}
    return queries, targets


def named_file(path: Path, sequences: dict[str, str]) -> Path:
    path.write_text("".join(f">{name}\n{letters}\n" for name, letters in sequences.items()))
    return path


@pytest.mark.parametrize("top", [2, 500])
def test_both_strands_are_two_searches(tmp_path: Path, top: int) -> None:
    queries, targets = nucleotides(1)
    database = named_file(tmp_path / "t.fa", targets)
    how = {"evalue": None, "kind": "dna", "top": top}
    found = search(queries, database, SearchSettings(strand="both", **how), scores=True)
    for place, (name, letters) in enumerate(queries):
        wanted = []
        for number, target in enumerate(targets.values()):
            plus, minus = (align.align(one, target, mode="local") for one in (letters, turned(letters)))
            best, strand = (minus, "-") if minus.score > plus.score else (plus, "+")
            wanted.append((-best.score, number, strand, best))
            assert found.scores is not None and found.scores[place, number] == best.score
        wanted.sort(key=lambda own: own[:2])
        hits = [(-hit.score, hit.target_record, hit.strand, hit.alignment) for hit in found.hits[place]]
        by_score = sorted(hits, key=lambda own: (own[0], own[1]))
        assert by_score == [own for own in wanted if own[:2] in [hit[:2] for hit in by_score]]
        assert [own[0] for own in hits] == [own[0] for own in wanted[:top]], name


@pytest.mark.slow
def test_several_hits_of_a_target_are_those_of_the_pair(tmp_path: Path) -> None:
    queries, targets = nucleotides(2)
    database = named_file(tmp_path / "t.fa", targets)
    found = search(
        queries, database, SearchSettings(hits_per_target=3, evalue=None, min_score=12, kind="dna")
    )
    assert max(hit.rank for hits in found.hits for hit in hits) == 3
    for (_, letters), hits in zip(queries, found.hits, strict=True):
        for name, target in targets.items():
            wanted = align.local_best(letters, target, 3, disjoint=True, min_score=12)
            own = [hit for hit in hits if hit.target_name == name]
            assert [hit.alignment for hit in own] == wanted
            assert [hit.rank for hit in own] == [1, 2, 3][: len(own)]
    both = search(queries, database, SearchSettings(hits_per_target=3, strand="both", kind="dna"))
    assert {hit.strand for hits in both.hits for hit in hits} == {"+", "-"}
    for hits in both.hits:
        per_target = [[hit.score for hit in hits if hit.target_name == name] for name in targets]
        assert all(scores == sorted(scores, reverse=True) for scores in per_target)


def test_the_other_strand_as_blastn_writes_it(tmp_path: Path) -> None:
    """Query places rise, those of the target fall; rows are in the direction of the query."""
    query = "ACGGATTCAGCTTAGGCCATTACGGATCCA"
    target = "TTTTT" + turned(query[:14] + query[15:]) + "GGGG"
    columns = ["qstart", "qend", "sstart", "send", "sstrand", "qseq", "sseq", "btop"]
    queries, database = (
        named_file(tmp_path / "q.fa", {"q": query}),
        named_file(tmp_path / "t.fa", {"t": target}),
    )
    out = tmp_path / "hits.m8"
    search_files(queries, database, out, SearchSettings(strand="both", kind="dna"), columns=columns)
    (line,) = out.read_text().splitlines()
    row = dict(zip(columns, line.split("\t"), strict=True))
    gap = row["sseq"].index("-")
    assert row == {
        "qstart": "1", "qend": "30", "sstart": "34", "send": "6", "sstrand": "minus",
        "qseq": query, "sseq": query[:gap] + "-" + query[gap + 1 :],
        "btop": f"{gap}{query[gap]}-{29 - gap}",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hits_per_target": 0}, "hits_per_target: found 0"),
        ({"hits_per_target": 2, "score_only": True}, "hits_per_target: found 2 for scores alone"),
        ({"strand": "minus"}, "strand: found 'minus'"),
        ({"strand": "both"}, "strand: found both, with BLOSUM62"),
    ],
)
def test_settings_of_hits_that_cannot_be(
    files: tuple[Path, Path], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        search(files[0], files[1], SearchSettings(**settings))
