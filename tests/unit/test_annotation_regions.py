"""Frameworks and CDRs with their mutations, constant genes and second D, against the text of the columns."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from support.germline_matches import Hit, make_matches, read_block
from support.rearrangement_rows import check_rows

from plait.alphabets import translate
from plait.errors import Unsupported
from plait.vdj.germline import Allele, GermlineSet, load_germline
from plait.vdj.reads.annotator import ReadAnnotator, germlines_of
from plait.vdj.reads.rearrangements import AnnotationSettings, RearrangementBuilder

SETTINGS = AnnotationSettings(regions=True, min_junction_quality=0)
NAMES = ("fwr1", "cdr1", "fwr2", "cdr2", "fwr3")
C = ("GAGGATCTGAGAAATGTGACTCCACCCAAG", "GAGGATCTGAGAAATGTGACACCACCCAAG", "GCAGAATCTTCTTATTTTAGACGCAGCCAA")


def the_set() -> GermlineSet:
    """TRB of the mouse with regions and constant genes that are made up."""
    germline = load_germline("mouse_trb")
    v = tuple(
        replace(own, regions=(own.anchor % 3 + 69, own.anchor - 177, own.anchor - 126, own.anchor - 108))
        for own in germline.v
        if own.anchor is not None
    )
    genes = ("IGHG1", "IGHG2", "IGHM")
    c = tuple(
        Allele(name=f"{gene}*01", gene=gene, segment="C", sequence=own)
        for gene, own in zip(genes, C, strict=True)
    )
    return replace(germline, v=v, c=c)


GERMLINE = the_set()


def expected_regions(row: dict[str, Any]) -> dict[str, Any]:
    """Regions and mutations of a row, from its columns of the alignment with V."""
    allele = next(own for own in GERMLINE.v if own.name == row["v_call"].split(",")[0])
    assert allele.regions is not None and allele.anchor is not None
    edges = (0, *allele.regions, allele.anchor + 3)
    size = row["v_alignment_end"]
    columns = list(zip(row["sequence_alignment"][:size], row["germline_alignment"][:size], strict=True))
    p, q = row["v_sequence_start"] - 1, row["v_germline_start"] - 1
    pairs: dict[int, int] = {}
    reached: dict[int, int] = {}
    for own, other in columns:
        if other != "-":
            reached[q] = p
            if own != "-":
                pairs[q] = p
        p += own != "-"
        q += other != "-"
    found: dict[str, Any] = {}
    for name, begin, end in zip(NAMES, edges[:-1], edges[1:], strict=True):
        first, last = max(begin, row["v_germline_start"] - 1), min(end, row["v_germline_end"])
        keys = ("", "_aa", "_start", "_end", "_replacements", "_silent_mutations")
        found |= {name + key: None for key in keys}
        if first >= last:
            continue
        start, stop = reached[first], reached[last - 1] + (last - 1 in pairs)
        if name == "fwr3" and row["junction"] is not None:
            stop = row["cdr3_start"] - 1
        if start >= stop:
            continue
        text = row["sequence"][start:stop]
        bare = text[(allele.anchor - first) % 3 :]
        changes = [0, 0]
        for codon in range(first + (allele.anchor - first) % 3, last - 2, 3):
            # Whole codons in a run of pairs.
            places = [pairs.get(codon + k) for k in range(3)]
            if None in places or places != [places[0] + k for k in range(3)]:  # type: ignore[operator]
                continue
            germline = allele.sequence[codon : codon + 3]
            for k in range(3):
                letter = row["sequence"][places[k]]
                if letter != germline[k] and letter in "ACGT":
                    changed = germline[:k] + letter + germline[k + 1 :]
                    changes[translate(changed) == translate(germline)] += 1
        values = (text, translate(bare[: len(bare) // 3 * 3]), start + 1, stop, *changes)
        found |= {name + key: value for key, value in zip(keys, values, strict=True)}
    return found


@pytest.mark.parametrize("gaps", [0.0, 0.01])
def test_regions_and_mutations_are_those_of_the_alignment(gaps: float) -> None:
    rng = random.Random(5)
    reads = []
    for _ in range(60):
        v, j = rng.choice(GERMLINE.v).sequence, rng.choice(GERMLINE.j).sequence
        whole = v[rng.choice((0, 0, 40, 150)) :] + "GGGACAG" + j[3:]
        letters = [rng.choice("ACGTN") if rng.random() < 0.06 else own for own in whole]
        letters = [own * rng.choice((0, 2)) if rng.random() < gaps else own for own in letters]
        reads.append("".join(letters))
    annotator = ReadAnnotator([GERMLINE], settings=SETTINGS, device="cpu")
    rows, _ = annotator.annotate(read_block(reads))
    check_rows(rows, [GERMLINE], SETTINGS)
    compared = 0
    for row in rows.to_pylist():
        if row["v_call"] is None or row["sequence_alignment"] is None:
            continue
        expected = expected_regions(row)
        assert {name: row[name] for name in expected} == expected
        compared += sum(row[f"{name}_replacements"] or 0 for name in NAMES)
    assert compared > 200


def test_constant_genes_that_fit_best_are_called() -> None:
    j = GERMLINE.j[0].sequence
    tails = {C[0]: "IGHG1", C[1]: "IGHG2", C[0][:18]: "IGHG1,IGHG2", C[2][:9]: "IGHM", C[2][:7]: None}
    tails |= {
        C[2][:4] + "T" + C[2][5:]: "IGHM",
        "T" + C[0]: None,
        "": None,
        C[0][:12] + "ACGT" * 9: "IGHG1,IGHG2",
    }
    reads = [j + tail for tail in tails]
    # The end of J is not aligned; C follows where J would end.
    hits = [Hit(0, 0, f"{len(j) - 4}M")] * len(reads)
    matches = make_matches(read_block(reads), [GERMLINE], [None] * len(reads), hits)
    rows = RearrangementBuilder([GERMLINE], SETTINGS).build(matches)
    assert rows["c_call"].to_pylist() == list(tails.values())
    isotypes = [None if genes is None else f"Ig{genes[3]}" for genes in tails.values()]
    assert rows["isotype"].to_pylist() == isotypes


@pytest.mark.parametrize(
    ("middle", "first", "second", "place"),
    [
        ("TTGGGACAGGGGGCATGGGACTGGGGGGGCT", "TRBD2*01", "TRBD1*01", 3),
        ("TTGGGACTGGGGGGGCATGGGACAGGGGGCT", "TRBD2*01", "TRBD1*01", 19),
        ("TTGGGACTGGGGGGGCATCAT", "TRBD2*01", None, None),
    ],
    ids=["before", "behind", "none"],
)
def test_a_second_d_lies_beside_the_first(
    middle: str, first: str, second: str | None, place: int | None
) -> None:
    v, j = GERMLINE.v[0].sequence, next(own for own in GERMLINE.j if own.gene == "TRBJ2-7").sequence
    number = next(k for k, own in enumerate(GERMLINE.j) if own.gene == "TRBJ2-7")
    read = v + middle + j
    hits = Hit(0, 0, f"{len(v)}M"), Hit(len(v) + len(middle), 0, f"{len(j)}M", (number,))
    matches = make_matches(read_block([read]), [GERMLINE], [hits[0]], [hits[1]])
    (row,) = RearrangementBuilder([GERMLINE], SETTINGS).build(matches).to_pylist()
    assert row["d_call"] == first and row["d2_call"] == second
    assert row["d2_sequence_start"] == (None if place is None else len(v) + place)
    if second is not None:
        text = row["sequence"][row["d2_sequence_start"] - 1 : row["d2_sequence_end"]]
        allele = next(own for own in GERMLINE.d if own.name == second).sequence
        assert text == allele[row["d2_germline_start"] - 1 : row["d2_germline_end"]]


def test_sets_without_regions_and_c_genes_leave_the_columns_empty() -> None:
    plain = replace(GERMLINE, c=(), v=tuple(replace(own, regions=None) for own in GERMLINE.v))
    v = plain.v[0].sequence
    matches = make_matches(read_block([v]), [plain], [Hit(0, 0, f"{len(v)}M")], [None])
    (row,) = RearrangementBuilder([plain], SETTINGS).build(matches).to_pylist()
    assert {row[name] for name in (*NAMES, "c_call", "isotype", "d2_call", "fwr1_replacements")} == {None}


def test_too_many_constant_genes_are_refused() -> None:
    c = [Allele(name=f"IGHG{k}*01", gene=f"IGHG{k}", segment="C", sequence=C[0]) for k in range(63)]
    with pytest.raises(Unsupported, match="63 C genes"):
        RearrangementBuilder([replace(GERMLINE, c=tuple(c))], SETTINGS)


def test_a_species_stands_for_all_its_sets() -> None:
    loci = [one.locus for one in germlines_of("human")]
    assert {"TRA", "TRB"} <= set(loci) and len(set(loci)) == len(loci)
    assert [one.locus for one in germlines_of("mouse_trb, Mouse_TRA")] == ["TRB", "TRA"]
