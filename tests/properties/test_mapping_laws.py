"""Finding patterns: what holds for any patterns and texts."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.mapping import bulge_limits, edit_ends, mismatch_hits, reverse_complement, site_hits

from plait import mapping
from plait.mapping import find, off_targets
from plait.mapping.files import in_windows, product_table
from plait.mapping.hits import HitRows

#: Where a hit begins in which sequence, on which strand.
PLACES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(0, 1)), max_size=40)
LETTERS = st.sampled_from("ACGT")
PATTERNS = st.text(LETTERS | st.sampled_from("RYN"), min_size=8, max_size=20)
TEXTS = st.text(LETTERS | st.sampled_from("acgtN"), max_size=120)


@st.composite
def near(draw: st.DrawFn) -> tuple[str, str]:
    """A pattern, and a text with something like it."""
    pattern = draw(PATTERNS)
    inner = list(pattern.replace("R", "A").replace("Y", "T").replace("N", "C"))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(inner) - 1))
        inner[place : place + draw(st.integers(0, 1))] = draw(st.text(LETTERS, max_size=2))
    own = "".join(inner)
    own = reverse_complement(own) if own and draw(st.booleans()) else own
    return pattern, draw(TEXTS) + own + draw(TEXTS)


@examples(60)
@given(near(), st.integers(0, 3))
def test_mismatches_are_those_of_every_place(case: tuple[str, str], k: int) -> None:
    pattern, text = case
    found = find({"p": pattern}, {"t": text}, mismatches=k)
    got = sorted(zip(found.strand, found.start.tolist(), found.distance.tolist(), strict=True))
    strands = {"+": pattern, "-": reverse_complement(pattern)}
    assert got == sorted((s, *hit) for s, own in strands.items() for hit in mismatch_hits(own, text, k))


@examples(60)
@given(near(), st.integers(0, 3))
def test_ends_of_edits_are_those_of_the_matrix(case: tuple[str, str], k: int) -> None:
    pattern, text = case
    found = find({"p": pattern}, {"t": text}, errors=k, edits=True, report="ends", strands="+")
    got = list(zip(found.end.tolist(), found.distance.tolist(), strict=True))
    assert got == edit_ends(pattern, text, k)


@examples(40)
@given(near(), st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)), st.sampled_from([3, 5]))
def test_sites_are_those_of_all_alignments(
    case: tuple[str, str], limits: tuple[int, int, int], side: int
) -> None:
    guide, text = case
    most, dna, rna = limits
    errors = min(most + dna + rna, (len(guide) - 1) // 2)
    found = off_targets(
        {"g": guide}, {"t": text}, pam="RN", pam_side=side, mismatches=most, dna_bulges=dna, rna_bulges=rna,
        errors=errors,
    )  # fmt: skip
    rows = found.rows
    got = []
    for k in range(len(rows)):
        first = bool(rows.strand[k]) == (side == 3)
        place = int(rows.start[k] if first else rows.end[k] - 2)
        got.append((place, "+-"[rows.strand[k]], (rows.mismatches[k], rows.extra[k], rows.missing[k])))
    limit = min(most, errors)
    assert sorted(got) == site_hits(guide, "RN", text, (limit, dna, rna, errors), side=side)


@examples(40)
@given(near(), near())
def test_sequences_beside_each_other_are_found_as_if_alone(
    one: tuple[str, str], two: tuple[str, str]
) -> None:
    settings = {"errors": 2, "edits": True}
    both = find({"p": one[0]}, [("a", one[1]), ("b", two[1])], **settings)
    alone = [find({"p": one[0]}, {name: text}, **settings) for name, text in (("a", one[1]), ("b", two[1]))]
    tables = [found.to_arrow().to_pylist() for found in alone]
    assert both.to_arrow().to_pylist() == [*tables[0], *tables[1]]


@examples(40)
@given(near(), st.integers(0, 2), st.booleans())
def test_more_errors_lose_nothing_and_a_turned_text_mirrors(
    case: tuple[str, str], k: int, edits: bool
) -> None:
    pattern, text = case
    text = "".join(c if c in "ACGT" else "A" for c in text.upper())

    def ends(text: str, k: int) -> set[tuple[str, int, int]]:
        settings = {"errors": k, "edits": True, "report": "ends"} if edits else {"mismatches": k}
        found = find({"p": pattern}, {"t": text}, **settings)
        return set(zip(found.strand, found.end.tolist(), found.distance.tolist(), strict=True))

    few = ends(text, k)
    assert few <= ends(text, k + 1)
    if not edits:
        turned = ends(reverse_complement(text), k)
        size, own = len(text), len(pattern)
        assert {("-+"[strand == "-"], size - end + own, d) for strand, end, d in turned} == few


@examples(25)
@given(st.data())
def test_laws_of_mapping(data: st.DataObject) -> None:
    """Turned contigs mirror loci, joined files give the union, and more substitutions lose nothing."""
    contigs = {name: data.draw(st.text(LETTERS, min_size=40, max_size=150)) for name in ("a", "b")}
    reads = {}
    for k in range(3):
        source = contigs[data.draw(st.sampled_from(["a", "b"]))]
        at = data.draw(st.integers(0, len(source) - 30))
        own = list(source[at : at + 30])
        own[data.draw(st.integers(0, 29))] = data.draw(LETTERS)
        reads[f"r{k}"] = "".join(own)

    def loci(contigs: dict[str, str], errors: int) -> set[tuple[object, ...]]:
        found = mapping.map(reads, contigs, errors=errors, substitutions_only=True).to_arrow().to_pylist()
        keys = ("read", "contig", "start", "strand", "distance")
        return {tuple(row[key] for key in keys) for row in found if row["contig"] is not None}

    both = loci(contigs, 2)
    assert both == set().union(*(loci({name: text}, 2) for name, text in contigs.items()))
    assert loci(contigs, 1) <= both
    turned = loci({name: reverse_complement(text) for name, text in contigs.items()}, 2)
    assert both == {
        (read, name, len(contigs[name]) - start - 30, "-+"[strand == "-"], d)
        for read, name, start, strand, d in turned
    }
    assert len(both) >= 3


def test_the_oracle_of_bulges() -> None:
    assert bulge_limits("ACGT", "ACGT", (0, 0, 0, 0)) == (0, 0, 0)
    assert bulge_limits("ACGT", "AGT", (0, 0, 1, 1)) == (0, 0, 1)
    assert bulge_limits("ACGT", "ACTGT", (0, 1, 0, 1)) == (0, 1, 0)
    assert bulge_limits("ACGT", "TTTT", (2, 1, 1, 2)) is None


@examples(80)
@given(PLACES, st.integers(1, 4), st.integers(8, 30))
def test_products_do_not_depend_on_where_the_texts_are_cut(
    places: list[tuple[int, int, int]], every: int, longest: int
) -> None:
    sequence, start, strand = np.array(places, np.int64).reshape(-1, 3).T
    none, table = np.zeros(start.size, np.int64), np.zeros((start.size, 0), np.uint8)
    hits = (none, sequence, start, start + 8, strand, none, none, none, table, table, table)
    rows = HitRows(*hits).in_order()
    names = SimpleNamespace(names=["a", "b", "c"], lengths=[70, 70, 70])
    # Hits at a place come together.
    apart = np.flatnonzero(np.diff(rows.sequence * 100 + rows.start)) + 1
    edges = [0, *apart[::every].tolist(), len(rows)]
    parts = [(names, rows.taken(slice(*edge))) for edge in pairwise(edges)]
    found = [own for _, own in in_windows(parts, longest)]
    primers = [mapping.Pattern("p", "ACGTACGT")]
    tables = [product_table(own, primers, names.names, longest).to_pylist() for own in found]
    assert [row for table in tables for row in table] == product_table(
        rows, primers, names.names, longest
    ).to_pylist()
    # No more is held than what a product may span from the last hit back.
    for own, last, new in zip(found, [0, *edges[1:]], [*np.diff(edges).tolist(), 0], strict=True):
        if not len(rows):
            continue
        beside = (rows.sequence == rows.sequence[last - 1]) & (rows.start >= rows.start[last - 1] - longest)
        assert len(own) <= new + int(beside[:last].sum())
