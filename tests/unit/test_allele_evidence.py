"""From annotated rows to the bases of clonotypes: columns, coordinates, strands, sampling, consensus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from plait.alphabets import reverse_complement
from plait.errors import FormatError, InvalidInput
from plait.formats.checkpoints import letters_of
from plait.vdj.alleles.evidence import AlleleEvidence
from plait.vdj.alleles.sites import (
    BASES,
    NO_BASE,
    ClonotypeSample,
    RowFacts,
    SegmentAlleles,
    clonotype_bases,
    pack,
    salted,
    satellites,
    text_sums,
    unpack,
)
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.reads.columns import booleans, integers, read_cigars, texts

V = "GATTACAGATTACCAGATGCATGTGCCAGC"
J = "AACTTTGGAGGTGGCACCCGA"


def allele(name: str, sequence: str, anchor: int | None) -> Allele:
    return Allele(
        name=name,
        gene=name.split("*")[0],
        segment=name[3],
        sequence=sequence,
        anchor=anchor,  # type: ignore[arg-type]
    )


def germline(*more: Allele) -> GermlineSet:
    alleles = [allele("TRBV1*01", V, 21), allele("TRBJ1*01", J, 3), *more]
    v, j = (tuple(a for a in alleles if a.segment == segment) for segment in "VJ")
    return GermlineSet(name="small", species="", locus="TRB", version="", source="", v=v, d=(), j=j)


def read(v: str = V[2:27], j: str = J[2:18], head: str = "CC", middle: str = "AA") -> dict[str, Any]:
    """A read with V from its third base on and J, and its row."""
    sequence = head + v + middle + j
    begin, end = len(head), len(head) + len(v)
    j_begin = end + len(middle)
    return {
        "sequence": sequence,
        "rev_comp": False,
        "v_call": "TRBV1*01",
        "j_call": "TRBJ1*01",
        "junction": sequence[begin + 19 : j_begin + 4],
        "v_cigar": f"{begin}S2N{len(v)}={len(sequence) - end}S3N",
        "j_cigar": f"{j_begin}S2N{len(j)}=3N",
        "v_sequence_start": begin + 1,
        "v_sequence_end": end,
        "v_germline_start": 3,
        "v_germline_end": 2 + len(v),
        "j_sequence_start": j_begin + 1,
        "j_sequence_end": len(sequence),
        "j_germline_start": 3,
        "j_germline_end": 2 + len(j),
    }


def bases_of(rows: list[dict[str, Any]], segment: str = "V", known: GermlineSet | None = None) -> list[str]:
    """Consensus bases of all clonotypes of the first gene, `.` where not known."""
    evidence = AlleleEvidence(known or germline())
    evidence.add(pa.RecordBatch.from_pylist(rows))
    sample = evidence.samples[segment]
    sample.merge()
    found = clonotype_bases(evidence.segments[segment].groups[0], sample.group(0)).bases
    return ["".join((BASES + ".")[code] for code in row) for row in found]


CHANGED = V[2:9] + "C" + V[10:27]
SEEN = ".." + CHANGED[:19]


def test_what_lies_outside_the_junction_is_kept() -> None:
    assert bases_of([read(CHANGED)]) == [SEEN]
    assert bases_of([read()], "J") == [J[6:18] + "..."]
    assert bases_of([read(j=J[2:9] + "N" + J[10:18])], "J") == [J[6:9] + "." + J[10:18] + "..."]


@pytest.mark.parametrize(
    "absent",
    [
        ("v_cigar", "j_cigar"),
        ("v_sequence_start", "v_sequence_end", "v_germline_start", "v_germline_end"),
        ("v_sequence_end", "v_germline_end", "rev_comp"),
    ],
    ids=["no-cigar", "no-coordinates", "no-ends"],
)
@pytest.mark.parametrize("as_text", [False, True], ids=["typed", "text"])
def test_coordinates_or_cigar_are_enough(absent: tuple[str, ...], as_text: bool) -> None:
    row = {name: value for name, value in read(CHANGED).items() if name not in absent}
    row["v_cigar"] = row.get("v_cigar", "").replace("=", "M")
    if as_text:
        row = {name: {False: "F", True: "T"}.get(value, str(value)) for name, value in row.items()}
    assert bases_of([row]) == [SEEN]


@pytest.mark.parametrize("turned", [False, True], ids=["as-stated", "written-turned"])
def test_the_other_strand_in_either_convention(turned: bool) -> None:
    row = read(CHANGED) | {"rev_comp": True}
    if not turned:
        row["sequence"] = reverse_complement(row["sequence"])
    assert bases_of([row]) == [SEEN]
    assert bases_of([row], "J") == [J[6:18] + "..."]


def test_most_reads_of_a_clonotype_decide() -> None:
    other = read(CHANGED)
    assert bases_of([read(), other, other]) == [SEEN]
    tie = SEEN[:9] + "." + SEEN[10:]
    assert bases_of([read(), other]) == [tie]
    assert bases_of([read() | {"duplicate_count": 3}, other | {"duplicate_count": 2}]) == [".." + V[2:21]]
    assert bases_of([read() | {"consensus_count": 3}, other | {"consensus_count": 2}]) == [".." + V[2:21]]


def test_clonotypes_differ_in_junction_or_gene() -> None:
    known = germline(allele("TRBJ2*01", J, 3))
    rows = [read(), read(middle="GGTT"), read() | {"j_call": "TRBJ2*01"}, read()]
    assert len(bases_of(rows, known=known)) == 3


def test_alleles_of_a_gene_share_an_axis() -> None:
    shorter = allele("TRBV1*02", V[4:15] + "A" + V[16:], 17)
    shifted = allele("TRBV1*03", V[:9] + V[11:], 19)
    segment = SegmentAlleles(germline(shorter, shifted), "V")
    assert [group.alleles.tolist() for group in segment.groups] == [[0, 1], [2]]
    assert segment.groups[0].codes[1][:4].tolist() == [NO_BASE] * 4
    assert segment.group_of.tolist() == [0, 0, 1]
    no_anchor = SegmentAlleles(germline(allele("TRBV2*01", V, None)), "V")
    assert no_anchor.group_of.tolist() == [0, -1]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"junction": ""}, "missing_junction"),
        ({"sequence": None}, "missing_sequence"),
        ({"v_call": ""}, "missing_v_call"),
        ({"v_call": "TRBV99*01"}, "unknown_v_call"),
        ({"v_call": "TRBV2*01"}, "no_v_anchor"),
        ({"j_call": "TRBJ9"}, "unknown_j_call"),
        ({"v_cigar": "2S2N10=1D14="}, "v_gap"),
        ({"v_germline_end": 40}, "v_gap"),
        ({"v_sequence_start": 40, "v_sequence_end": 64}, "v_outside"),
        ({"j_germline_start": 12, "j_germline_end": 27}, "j_outside"),
        ({"v_sequence_start": 26, "v_germline_start": 26, "v_cigar": "25S25N2=18S"}, "v_within"),
        ({"j_sequence_end": 33, "j_germline_end": 6, "j_cigar": ""}, "j_within"),
        ({"sequence": "ACGT" * 12}, "v_unlike"),
        ({"annotation_status": "low_quality"}, "not_ok"),
    ],
)
def test_rows_that_are_no_evidence_are_counted(changes: dict[str, Any], reason: str) -> None:
    evidence = AlleleEvidence(germline(allele("TRBV2*01", V, None)))
    evidence.add(pa.RecordBatch.from_pylist([read() | changes, read() | {"annotation_status": "ok"}]))
    assert evidence.rows == 2
    assert evidence.left_out.get(reason) == 1


def test_missing_columns_and_bad_cells_are_refused() -> None:
    evidence = AlleleEvidence(germline())
    row = read()
    del row["sequence"]
    with pytest.raises(FormatError, match="no column sequence"):
        evidence.add(pa.RecordBatch.from_pylist([row]))
    with pytest.raises(FormatError, match="expected whole numbers"):
        evidence.add(pa.RecordBatch.from_pylist([read() | {"v_germline_start": "x"}]), source="in.tsv")
    with pytest.raises(InvalidInput, match="most_clonotypes"):
        AlleleEvidence(germline(), most_clonotypes=0)


def test_nothing_is_evidence_of_nothing() -> None:
    evidence = AlleleEvidence(germline())
    evidence.add(pa.RecordBatch.from_pylist([read()]).slice(0, 0))
    assert evidence.rows == 0 and evidence.left_out == {}


# --- columns --------------------------------------------------------------------------------------------


def batch(**columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_columns_of_any_type() -> None:
    table = batch(
        a=["3", "", "12.0", None],
        b=[3, None, 12, 0],
        c=["T", "false", "true", ""],
        d=[True, None, False, True],
    )
    assert integers(table, "a").tolist() == [3, -1, 12, -1]
    assert integers(table, "b").tolist() == [3, -1, 12, 0]
    assert integers(table, "z").tolist() == [-1] * 4
    assert booleans(table, "c").tolist() == [True, False, True, False]
    assert booleans(table, "d").tolist() == [True, False, False, True]
    assert booleans(table, "z").tolist() == [False] * 4
    assert texts(table, "a").to_pylist() == ["3", None, "12.0", None]
    data, starts = letters_of(texts(table.slice(2), "a"))
    assert (bytes(data), starts.tolist()) == (b"12.0", [0, 4, 4])


@pytest.mark.parametrize(
    ("cigar", "expected"),
    [
        ("106S228N41M306S2N", (106, 228, 41, 0)),
        ("12N3=1X4=120S9N", (0, 12, 8, 0)),
        ("5S10=1D3=2I4=7S", (5, 0, 17, 3)),
        ("30M", (0, 0, 30, 0)),
        ("", (0, 0, 0, 0)),
        ("5S", (5, 0, 0, 0)),
    ],
)
def test_cigars(cigar: str, expected: tuple[int, ...]) -> None:
    found = read_cigars(texts(batch(c=["7S4N2=", cigar, None, "1X"]), "c"))
    assert tuple(int(column[1]) for column in found) == expected
    assert [int(column[3]) for column in found] == [0, 0, 1, 0]
    assert [int(column[0]) for column in found] == [7, 4, 2, 0]


def test_hashes_depend_on_text_and_number_alone() -> None:
    words = ["ACGT", "ACTG", "", "ACGT", "A" * 700, "A" * 701]
    salts = np.array([1, 1, 1, 2, 1, 1], np.int64)
    found = salted(text_sums(letters_of(texts(batch(w=["x", *words]).slice(1), "w"))), salts)
    assert len(set(found.tolist())) == len(words)
    alone = salted(text_sums(letters_of(texts(batch(w=[words[1]]), "w"))), salts[:1])
    assert alone[0] == found[1]


# --- sampling -------------------------------------------------------------------------------------------


def test_packing() -> None:
    parts = (np.array([0, 70_000]), np.array([65535, 1]), np.array([3, 65535]))
    assert [part.tolist() for part in unpack(pack(*parts))] == [part.tolist() for part in parts]


def facts(group: list[int], hashes: list[int]) -> RowFacts:
    n = len(group)
    one = np.ones(n, np.int64)
    return RowFacts(
        np.array(group, np.int64),
        np.array(hashes, np.uint64),
        one,
        one,
        0 * one,
        pa.array([f"j{h}" for h in hashes], pa.large_string()),
    )


@pytest.mark.parametrize("often", [False, True], ids=["once", "every-time"])
def test_the_smallest_hashes_are_kept_with_all_their_reads(often: bool) -> None:
    rng = np.random.default_rng(1)
    groups, hashes = rng.integers(0, 3, 400), rng.integers(0, 60, 400)
    sample = ClonotypeSample(4, 10)
    for part in np.array_split(np.arange(400), 9):
        part = part[sample.wanted(groups[part], hashes[part].astype(np.uint64))]
        told = facts(groups[part].tolist(), hashes[part].tolist())
        spans = pack(told.group, told.group, told.group + 5)
        sample.add(told, spans, np.arange(part.size), pack(told.group, told.group, told.partner))
        if often:
            sample.merge()
    sample.merge()
    for group in range(4):
        found = sample.group(group)
        mine = hashes[groups == group]
        smallest = np.unique(mine)[:10]
        assert found.facts.hash.tolist() == smallest.tolist()
        assert found.facts.forward.tolist() == [int((mine == h).sum()) for h in smallest]
        assert found.facts.junction.to_pylist() == [f"j{h}" for h in smallest]
        for rows, _, reads in (found.spans, found.differences):
            assert rows.tolist() == list(range(smallest.size))
            assert reads.tolist() == found.facts.forward.tolist()
        assert found.whole == (np.unique(mine).size < 10)


def test_satellites() -> None:
    junctions = ["ACGTAC", "ACGTAA", "ACGTTA", "ACGTAC", "ACGTACC", "TTTTTT", "TTTTTA"]
    partner = np.array([1, 1, 1, 2, 1, 1, 1])
    reads = np.array([9, 2, 1, 9, 1, 3, 3])
    hashes = np.array([5, 6, 7, 8, 9, 11, 10], np.uint64)
    found = satellites(pa.array(junctions, pa.large_string()), partner, reads, hashes)
    # The third is one base from the second, and the last has the smaller hash of two equals.
    assert found.tolist() == [False, True, True, False, False, True, False]
