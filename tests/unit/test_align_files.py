"""Pairs of the sequences of files: which, in which order, in which batches; and aligning them."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.examples import often

from plait.align import align, make_aligner
from plait.align.aligner import Aligner
from plait.align.batches import CellProgress
from plait.align.files import (
    AlignedFiles,
    CodedFile,
    FilePairs,
    align_files,
    batches_of,
    codes_of,
)
from plait.align.scoring import make_scoring
from plait.align.statistics import karlin_altschul
from plait.align.table_writers import PairTableWriter
from plait.align.writers import COLUMNS, needs_alignment
from plait.errors import FormatError, InvalidInput, Unsupported

DNA = make_scoring(kind="dna")
Records = Sequence[tuple[str, str]]


def random_records(
    count: int, seed: int, *, letters: str = "ACGT", longest: int = 12, name: str = "s"
) -> Records:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, longest + 1, count)
    return [
        (f"{name}{k}", "".join(letters[i] for i in rng.integers(0, len(letters), size)))
        for k, size in enumerate(sizes)
    ]


QUERIES = random_records(7, 1, name="q")
TARGETS = random_records(5, 2, name="t")


@pytest.fixture
def fasta(tmp_path: Path) -> Callable[..., Path]:
    def write(records: Records, name: str = "a.fa") -> Path:
        path = tmp_path / name
        path.write_text("".join(f">{name} of a kind\n{letters}\n" for name, letters in records))
        return path

    return write


@pytest.fixture(params=["kept", "read again"])
def most_kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    if request.param == "kept":
        return 1 << 20
    monkeypatch.setattr("plait.align.files._BLOCK_BYTES", 40)
    return 0


def told(stretches: Any) -> list[tuple[str, str]]:
    """Names of all pairs, checked against their codes."""
    found = []
    for stretch in stretches:
        codes = codes_of([stretch])
        for k, (i, j) in enumerate(zip(stretch.query_rows, stretch.target_rows, strict=True)):
            query, target = stretch.queries.sequences, stretch.targets.sequences
            assert np.array_equal(codes.queries[k], DNA.encode(query.sequence(i)))
            assert np.array_equal(codes.targets[k], DNA.encode(target.sequence(j)))
            found.append((query.names[i], target.names[j]))
    return found


def names(records: Records) -> list[str]:
    return [name for name, _ in records]


def expected_pairs(queries: Records, targets: Records | None, pairing: str) -> list[tuple[str, str]]:
    if targets is None:
        return list(itertools.combinations(names(queries), 2))
    if pairing == "order":
        return list(zip(names(queries), names(targets), strict=True))
    return list(itertools.product(names(queries), names(targets)))


CASES: list[tuple[Records, Records | None, str]] = [
    (QUERIES[:5], TARGETS, "order"),
    (QUERIES, TARGETS, "all"),
    (QUERIES[:1], TARGETS, "one"),
    (QUERIES, None, "all"),
]


@pytest.mark.parametrize(("queries", "targets", "pairing"), CASES)
def test_pairs(fasta: Any, most_kept: int, queries: Records, targets: Records | None, pairing: str) -> None:
    own = CodedFile(fasta(queries), DNA, most_kept=most_kept)
    other = None if targets is None else CodedFile(fasta(targets, "b.fa"), DNA, most_kept=most_kept)
    pairs = FilePairs(own, other, pairing)  # type: ignore[arg-type]
    wanted = expected_pairs(queries, targets, pairing)
    for _ in range(2):
        assert told(pairs.stretches()) == wanted
    sizes = {name: len(letters) for name, letters in (*queries, *(targets or ()))}
    for width in (None, 3):
        survey = pairs.survey(width=width)
        assert survey.records == (len(queries), len(queries if targets is None else targets))
        assert survey.pairs == len(wanted)
        assert survey.cells == sum(sizes[a] * min(sizes[b], width or 99) for a, b in wanted)
        assert survey.duplicates == ()


@pytest.mark.parametrize(
    ("bound", "value", "load"),
    [
        ("_MOST_PAIRS", 4, lambda m, n: 1),
        ("_MOST_RESIDUES", 30, lambda m, n: m + n),
        ("_MOST_CELLS", 100, lambda m, n: m * n),
    ],
)
def test_batches_are_bounded(
    fasta: Any, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, load: Callable[[int, int], int]
) -> None:
    monkeypatch.setattr(f"plait.align.files.{bound}", value)
    files = FilePairs(CodedFile(fasta(QUERIES), DNA), CodedFile(fasta(TARGETS, "b.fa"), DNA), "all")
    batches = list(batches_of(files.stretches()))
    assert told(itertools.chain.from_iterable(batches)) == expected_pairs(QUERIES, TARGETS, "all")
    loads = [
        [load(int(m), int(n)) for stretch in batch for m, n in zip(*stretch.sizes, strict=True)]
        for batch in batches
    ]
    assert len(loads) > 3
    assert all(sum(one) <= value or len(one) == 1 for one in loads)
    # No batch could have taken the next pair as well.
    for one, following in itertools.pairwise(loads):
        assert sum(one) + following[0] > value
    assert any(len(one) > 1 for one in loads)


def test_a_band_makes_batches_of_more_pairs(fasta: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.align.files._MOST_CELLS", 100)
    files = FilePairs(CodedFile(fasta(QUERIES), DNA), CodedFile(fasta(TARGETS, "b.fa"), DNA), "all")
    whole, banded = (list(batches_of(files.stretches(), width=width)) for width in (None, 1))
    assert len(banded) < len(whole)


@pytest.mark.parametrize(
    ("counts", "pairing", "message"),
    [
        ((3, 2), "order", r"found sequences: 3 in .*a.fa and 2 in .*b.fa, expected as many of each"),
        ((2, 3), "order", r"found sequences: 2 in .*a.fa and 3 in .*b.fa, .*--pairs one"),
        ((2, 3), "one", r"found sequences: 2 in .*a.fa, expected a single one"),
        ((1, 0), "all", r"found a single sequence in .*a.fa, expected two files, or one with several"),
        ((2, 0), "order", r"found 'order' and one file"),
        ((2, 0), "one", r"found 'one' and one file"),
        ((2, 2), "each", r"found 'each', expected order, all or one"),
    ],
)
def test_counts_that_do_not_fit(
    fasta: Any, most_kept: int, counts: tuple[int, int], pairing: Any, message: str
) -> None:
    own = CodedFile(fasta(QUERIES[: counts[0]]), DNA, most_kept=most_kept)
    other = CodedFile(fasta(TARGETS[: counts[1]], "b.fa"), DNA) if counts[1] else None
    with pytest.raises(InvalidInput, match=message):
        FilePairs(own, other, pairing).survey()


def test_names_that_come_again(fasta: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = [("x", "ACGT"), ("y", "AC"), ("x", "GG"), ("y", "T"), ("x", "A")]
    own, other = CodedFile(fasta(twice), DNA), CodedFile(fasta(TARGETS, "b.fa"), DNA)
    (found,) = FilePairs(own, other, "order").survey(unique_targets=True).duplicates
    assert (found[0].name, found[0].line, found[1]) == ("x", 5, 3)
    with pytest.raises(FormatError, match=r"a\.fa, line 5: found a second sequence named 'x', .* SAM refers"):
        FilePairs(other, own, "order").survey(unique_targets=True)
    monkeypatch.setattr("plait.align.files._MOST_NAMES", 4)
    assert FilePairs(own, other, "order").survey().duplicates == ()
    with pytest.raises(FormatError, match="a second sequence named 'x'"):
        FilePairs(other, own, "order").survey(unique_targets=True)


def test_an_illegal_letter_is_found_before_anything_is_aligned(fasta: Any, tmp_path: Path) -> None:
    path = fasta([("x", "ACGT"), ("y", "ACGTTJ"), ("z", "A")])
    message = r"a\.fa, line 3: found 'J' at position 6 of sequence 'y', expected one of ACGT"
    with pytest.raises(FormatError, match=message):
        run(path, path, tmp_path / "out.tsv", aligner())
    assert [file.name for file in tmp_path.iterdir()] == ["a.fa"]


# --- aligning -------------------------------------------------------------------------------------------


def aligner(**options: Any) -> Aligner:
    return make_aligner(options.pop("scoring", DNA), **({"device": "reference"} | options))


def run(queries: Path, targets: Path | None, output: Path, how: Aligner, **options: Any) -> AlignedFiles:
    return align_files(queries, targets, output, how, **options)


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


@pytest.mark.parametrize(("queries", "targets", "pairing"), often(1, CASES))
def test_alignments_are_those_of_single_pairs(
    fasta: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    queries: Records,
    targets: Records | None,
    pairing: str,
) -> None:
    monkeypatch.setattr("plait.align.files._MOST_PAIRS", 3)
    out = tmp_path / "out.parquet"
    paths = fasta(queries), None if targets is None else fasta(targets, "b.fa")
    done = run(*paths, out, aligner(mode="overlap"), pairs=pairing if targets else None)
    letters = dict((*queries, *(targets or ())))
    wanted = expected_pairs(queries, targets, pairing)
    found = rows(out)
    assert [(row["query"], row["target"]) for row in found] == wanted
    for row, (query, target) in zip(found, wanted, strict=True):
        single = align(letters[query], letters[target], kind="dna", mode="overlap", device="reference")
        assert row["query_length"] == len(letters[query]) and row["target_length"] == len(letters[target])
        for name in ("score", "cigar", "query_start", "query_end", "target_start", "identity", "gaps"):
            assert row[name] == getattr(single, name), (query, target, name)
    assert (done.pairs, done.left_out, done.output, done.notes) == (len(wanted), 0, str(out), ())
    assert done.cells == sum(len(letters[a]) * len(letters[b]) for a, b in wanted)


@pytest.mark.parametrize("options", often(1, [{}, {"band": 12}, {"mode": "extension", "x_drop": 4}]))
@pytest.mark.parametrize("score_only", [False, True])
def test_how_it_is_split_changes_nothing(
    fasta: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], score_only: bool
) -> None:
    paths = fasta(QUERIES), fasta(TARGETS, "b.fa")
    written = []
    for threads, most in ((1, 100), (3, 100), (2, 4)):
        monkeypatch.setattr("plait.align.files._MOST_PAIRS", most)
        out = tmp_path / f"{threads}-{most}.tsv"
        how = aligner(device="cpu", threads=threads, **options)
        run(*paths, out, how, pairs="all", score_only=score_only)
        written.append(out.read_bytes())
    assert len(written[0].splitlines()) == len(QUERIES) * len(TARGETS) + 1
    assert written[0] == written[1] == written[2]


@pytest.mark.slow
def test_scores_alone(fasta: Any, tmp_path: Path) -> None:
    paths = fasta(QUERIES), fasta(TARGETS, "b.fa")
    outs = [tmp_path / name for name in ("full.parquet", "scores.parquet", "chosen.parquet")]
    run(*paths, outs[0], aligner(), pairs="all")
    run(*paths, outs[1], aligner(), pairs="all", score_only=True)
    run(*paths, outs[2], aligner(), pairs="all", columns=["score", "mode"])
    full, scores, chosen = map(rows, outs)
    assert list(scores[0]) == ["query", "target", "score", "query_length", "target_length"]
    assert scores == [{name: row[name] for name in scores[0]} for row in full]
    assert chosen == [{"score": row["score"], "mode": "global"} for row in full]


def test_columns_without_alignments_ask_for_none(
    fasta: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Aligner, "align_codes", lambda *arguments: pytest.fail("an alignment is made"))
    path = fasta(QUERIES)
    run(path, None, tmp_path / "out.jsonl", aligner(), columns=["query", "score"])
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 21


def test_statistics(fasta: Any, tmp_path: Path) -> None:
    letters = "ARNDCQEGHILKMFPSTWYV"
    records = random_records(6, 3, letters=letters, longest=30)
    scoring = make_scoring()
    out = tmp_path / "out.parquet"
    columns = ["score", "bit_score", "evalue", "query_length", "target_length"]
    run(fasta(records), None, out, aligner(scoring=scoring, mode="local"), columns=columns)
    statistics, _ = karlin_altschul(scoring)
    assert statistics is not None
    for row in rows(out):
        score, lengths = row["score"], (row["query_length"], row["target_length"])
        assert row["bit_score"] == pytest.approx(float(statistics.bit_score(score)), rel=1e-12)
        assert row["evalue"] == pytest.approx(float(statistics.evalue(score, *lengths)), rel=1e-12)


@pytest.mark.parametrize("options", often(1, [{"mode": "local"}, {}, {"band": 12}]))
@pytest.mark.parametrize("alone", [True, False])
def test_columns_at_once_are_those_of_single_pairs(
    fasta: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], alone: bool
) -> None:
    columns = [name for name in COLUMNS if name not in ("query_aligned", "target_aligned")]
    if alone or options.get("mode") != "local":
        columns = [name for name in columns if name not in ("bit_score", "evalue")]
    if alone:
        columns = [name for name in columns if not needs_alignment([name])]
    paths = fasta(QUERIES), fasta(TARGETS, "b.fa")
    monkeypatch.setattr("plait.align.files._MOST_PAIRS", 50)
    for name in ("out.parquet", "out.jsonl"):
        if name == "out.parquet":
            monkeypatch.setattr(PairTableWriter, "write", lambda *_: pytest.fail("a pair is written alone"))
        run(*paths, tmp_path / name, aligner(**options), pairs="all", columns=columns)
    single = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert rows(tmp_path / "out.parquet") == single
    assert list(single[0]) == columns


@pytest.mark.parametrize(
    "options", often(1, [{}, {"mode": "local"}, {"traceback": "full"}, {"traceback": "linear"}])
)
@pytest.mark.parametrize("score_only", [False, True])
def test_one_query_with_many_targets(
    fasta: Any, tmp_path: Path, options: dict[str, Any], score_only: bool
) -> None:
    # Enough targets for a lane each, and a stretch of a few.
    targets = random_records(40, 4, longest=30, name="t")
    queries = (*random_records(3, 5, longest=30), ("empty", ""))
    for records, name in ((queries, "a.fa"), (targets, "b.fa")):
        fasta(records, name)
    out = tmp_path / "out.parquet"
    how = aligner(device="cpu", **options)
    run(tmp_path / "a.fa", tmp_path / "b.fa", out, how, pairs="all", score_only=score_only)
    for row, ((_, query), (_, target)) in zip(rows(out), itertools.product(queries, targets), strict=True):
        single = how.align_codes(how.pair(query, target))[0]
        assert row["score"] == single.score
        assert score_only or row["cigar"] == single.cigar


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({}, {"columns": ["evalue"]}, "found 'evalue' in mode 'global', expected statistics of local"),
        ({"mode": "local", "scoring": make_scoring("BLOSUM62", 3, 3)}, {"columns": ["bit_score"]}, "12/1"),
        ({}, {"columns": ["cigar", "score"], "score_only": True}, "found 'cigar' for scores alone"),
        ({}, {"output": "out.txt", "score_only": True}, "found text for scores alone, expected tsv"),
        ({}, {"output": "out.sam", "score_only": True}, "found sam for scores alone"),
        ({}, {"output": "out.bam"}, "expected a name that ends in .txt"),
        ({}, {"columns": ["scor"]}, "did you mean score?"),
    ],
)
def test_settings_that_do_not_go_together(
    fasta: Any, tmp_path: Path, settings: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    path = fasta(QUERIES)
    output = tmp_path / options.pop("output", "out.tsv")
    with pytest.raises(InvalidInput) as caught:
        run(path, None, output, aligner(**settings), **options)
    assert message in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["a.fa"]


def test_a_pair_that_cannot_be_aligned_is_named(fasta: Any, tmp_path: Path) -> None:
    first = fasta([("q1", "ACG"), ("q2", "A")])
    second = fasta([("t1", "AC"), ("t2", "ACGTACGT")], "b.fa")
    with pytest.raises(InvalidInput, match=r"^band for q2 and t2: found -2 to 2, .* one with 7 between"):
        run(first, second, tmp_path / "out.tsv", aligner(band=2))
    assert not (tmp_path / "out.tsv").exists()


def test_full_traceback_of_long_sequences_is_refused(fasta: Any, tmp_path: Path) -> None:
    first, second = fasta([("long", "ACGT" * 50_000)]), fasta([("longer", "AACC" * 60_000)], "b.fa")
    with pytest.raises(Unsupported) as caught:
        run(first, second, tmp_path / "out.txt", aligner(traceback="full", device="cpu"))
    message = str(caught.value)
    assert message.startswith("long and longer: traceback='full' is not supported: it needs 24,")
    assert "bytes of memory" in message and "traceback='linear'" in message
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize("stop_in", often(1, ["the work", "the writing"]))
def test_a_stopped_run_leaves_nothing(
    fasta: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_in: str
) -> None:
    monkeypatch.setattr("plait.align.files._MOST_PAIRS", 4)

    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    if stop_in == "the writing":
        monkeypatch.setattr("plait.align.table_writers.PairTableWriter.write_columns", stop)
    out = tmp_path / "out.parquet"
    out.write_text("of yesterday")
    with pytest.raises(KeyboardInterrupt):
        progress = stop if stop_in == "the work" else None
        run(fasta(QUERIES), fasta(TARGETS, "b.fa"), out, aligner(), pairs="all", progress=progress)
    assert out.read_text() == "of yesterday"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.fa", "b.fa", "out.parquet"]
    assert not [t for t in threading.enumerate() if t.name.startswith("plait")]


@pytest.mark.parametrize("options", often(1, [{}, {"band": 12}]))
def test_progress(
    fasta: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setattr("plait.align.files._MOST_PAIRS", 4)
    seen: list[CellProgress] = []
    paths = fasta(QUERIES), fasta(TARGETS, "b.fa")
    done = run(*paths, tmp_path / "out.tsv", aligner(**options), pairs="all", progress=seen.append)
    cells = [state.cells for state in seen]
    assert cells == sorted(cells) and len(seen) > 4
    assert {state.total_cells for state in seen} == {done.cells}
    assert (seen[-1].cells, done.pairs) == (done.cells, 35)


def test_provenance(fasta: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    run(fasta(QUERIES), None, out, aligner(mode="semiglobal", free_ends=["query_end"]))
    facts = json.loads(pq.read_schema(out).metadata[b"plait.provenance"])
    assert (facts["device"], facts["algebra"]) == ("reference", "MaxPlus")
    chosen = {"mode": "semiglobal", "free_ends": ["query_end"], "pairs": "all", "matrix": "2/-3"}
    assert chosen.items() <= facts["parameters"].items()
