"""Lists of sequences: any iterable of them, and what they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.examples import often

from plait.align import align, align_many, align_pairs, make_scoring, score, score_many, score_pairs
from plait.align.aligner import make_aligner
from plait.align.files import align_files
from plait.align.hits import search
from plait.align.settings import SearchSettings
from plait.errors import FormatError, InvalidInput

PRIMER, PEPTIDE = "GTGYCAGCMGCCGCGGTAA", "GGNGTANGG"
GENE = "TTGACGTGCCAGCAGCCGCGGTAATACGGAGGGTGCAAGCGTTAATCGGAATTACTG"
PROTEIN = "MKVLAWERTYGGNGTANGGKLMFPQ"
HOW: dict[str, Any] = {"device": "reference"}
TARGETS = ["ACGT", b"ACCT", "GGT"]


@pytest.mark.interpreted
@pytest.mark.parametrize("make", often(1, [list, tuple, iter, lambda values: (value for value in values)]))
def test_any_iterable(make: Callable[[Any], Any]) -> None:
    one = align("ACGT", "ACCT", **HOW)
    assert score_many("ACGT", make(TARGETS), **HOW).tolist() == [8, one.score, score("ACGT", "GGT", **HOW)]
    assert align_many("ACGT", make(TARGETS), **HOW)[1] == one
    assert align_pairs(make(["ACGT"] * 3), make(TARGETS), **HOW)[1] == one
    assert score_pairs(make(["ACGT"] * 3), make(TARGETS), **HOW)[1] == one.score


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("targets", "found"),
    [
        ("ACGT", "targets: found one str, expected several sequences"),
        (b"ACGT", "targets: found one bytes, expected several sequences"),
        (bytearray(b"ACGT"), "targets: found one bytearray, expected several sequences"),
        ({"a": "ACGT"}, "targets: found one dict, expected several sequences"),
        (7, "targets: found one int, expected several sequences"),
        (["A", None], "targets, number 2: found a NoneType, expected a sequence as str or bytes"),
    ],
)
def test_what_is_no_list_of_sequences(targets: Any, found: str) -> None:
    for call in (align_many, score_many, align_pairs, score_pairs):
        first: Any = "A" if call in (align_many, score_many) else ["A", "A"]
        with pytest.raises(InvalidInput, match=found):
            call(first, targets, **HOW)


@pytest.mark.interpreted
def test_numbers_that_differ() -> None:
    with pytest.raises(InvalidInput, match="pairs: found 1 queries and 2 targets"):
        align_pairs(iter(["A"]), iter(["A", "C"]), **HOW)


@pytest.mark.interpreted
@pytest.mark.parametrize(("short", "long", "kind"), [(PRIMER, GENE, "dna"), (PEPTIDE, PROTEIN, "protein")])
def test_what_is_open_is_what_the_other_is(short: str, long: str, kind: Any) -> None:
    how = {"mode": "local", **HOW}
    expected = align(short, long, kind=kind, **how)
    assert align(short, long, **how) == align_many(short, [long], **how)[0] == expected
    assert align_pairs([short, short], [short, long], **how)[1] == expected
    assert align(long, short, **how).scoring.matrix.name == make_scoring(kind=kind).matrix.name


@pytest.mark.interpreted
@pytest.mark.parametrize("targets", [[PRIMER], [PEPTIDE], [PEPTIDE, PRIMER]])
def test_what_stays_open_has_to_be_said(targets: list[str]) -> None:
    with pytest.raises(InvalidInput, match=r"may be nucleotides or amino acids.*kind="):
        align_many(PRIMER, targets, **HOW)
    assert len(align_many(PRIMER, targets, kind="dna", **HOW)) == len(targets)
    assert len(align_many(PRIMER, targets, matrix="BLOSUM62", **HOW)) == len(targets)


@pytest.mark.interpreted
def test_order_does_not_matter() -> None:
    # Many letters of one kind before those that tell what all are.
    targets = [*["ACGT" * 20_000] * 2, *["MKVLAWERTY" * 4000] * 2]
    for order in (targets, targets[::-1]):
        with pytest.raises(InvalidInput, match="nucleotides in the queries and like proteins in the targets"):
            score_many("ACGT" * 20, order, **HOW)


@pytest.mark.interpreted
def test_queries_of_a_search(tmp_path: Path) -> None:
    proteins, genes = tmp_path / "p.fa", tmp_path / "g.fa"
    proteins.write_text(f">p\n{PROTEIN}\n")
    genes.write_text(f">g\n{GENE}\n")
    how = SearchSettings(evalue=None, **HOW)
    assert search([("q", PEPTIDE)], proteins, how).hits[0][0].alignment.matches == len(PEPTIDE)
    assert search([("q", PRIMER)], genes, how).hits[0][0].score == score(PRIMER, GENE, mode="local", **HOW)
    # All queries are looked at, not the first alone.
    queries = [("a", PRIMER), ("b", GENE * 3)]
    for order in (queries, queries[::-1]):
        with pytest.raises(InvalidInput, match="queries that look like nucleotides"):
            search(order, proteins, how)
    (tmp_path / "open.fa").write_text(f">o\n{PRIMER}\n")
    with pytest.raises(InvalidInput, match="may be nucleotides or amino acids"):
        search(queries, tmp_path / "open.fa", how)
    found = search([("q", PEPTIDE)], tmp_path / "open.fa", replace(how, matrix="BLOSUM62"))
    assert found.provenance.parameters["kind"] == "protein"


@pytest.mark.parametrize(("band", "place"), [((2, 3), (0, 2)), ((-3, -2), (2, 0))])
def test_a_local_alignment_lies_in_its_band(tmp_path: Path, band: Any, place: tuple[int, int]) -> None:
    (tmp_path / "q.fa").write_text(">q\nAAAA\n")
    (tmp_path / "t.fa").write_text(">t\nCCCC\n")
    columns = ["score", "query_start", "query_end", "target_start", "target_end", "cigar"]
    aligner = make_aligner(make_scoring(kind="dna"), mode="local", band=band, **HOW)
    align_files(tmp_path / "q.fa", tmp_path / "t.fa", tmp_path / "out.jsonl", aligner, columns=columns)
    (row,) = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    i, j = place
    assert tuple(row.values()) == (0, i, i, j, j, "")


@pytest.mark.interpreted
@pytest.mark.parametrize(("text", "found"), [("AC-GT", "'-' at position 3"), ("ACGT1", "'1' at position 5")])
def test_what_is_no_letter_is_no_sign_of_a_protein(tmp_path: Path, text: str, found: str) -> None:
    with pytest.raises(InvalidInput, match=f"query: found {found}"):
        align(text, "ACGTACGT", **HOW)
    files = tmp_path / "one.fasta", tmp_path / "other.fasta"
    for path, letters in zip(files, ("ACGTACGT", text), strict=True):
        path.write_text(f">x\n{letters}\n")
    with pytest.raises(FormatError, match=f"other.fasta.*{found}"):
        search(*files, SearchSettings(**HOW))


def test_lists_take_every_setting() -> None:
    targets = [PRIMER, PRIMER[2:], PRIMER[::-1]]
    for settings in ({"band": 3}, {"mode": "extension", "x_drop": 4}, {"traceback": "linear"}):
        how: Any = {"kind": "dna", **settings, **HOW}
        expected = [align(PRIMER, target, **how) for target in targets]
        assert align_many(PRIMER, targets, **how) == expected
        assert align_pairs([PRIMER] * 3, targets, **how) == expected
        scores = [found.score for found in expected]
        assert score_many(PRIMER, targets, **how).tolist() == scores
        assert score_pairs([PRIMER] * 3, targets, **how).tolist() == scores
