from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import InvalidInput
from plait.formats.fastq import ReadBlock
from plait.formats.reads import BarcodePart, BarcodePlace, take_barcodes

BASES = st.text("ACGTN", max_size=15)


def block(sequences: list[str], names: list[str] | None = None, *, qualities: bool = True) -> ReadBlock:
    starts = np.concatenate(([0], np.cumsum([len(s) for s in sequences], dtype=np.int64)))
    return ReadBlock(
        names or [f"r{i}" for i in range(len(sequences))],
        np.frombuffer("".join(sequences).encode(), np.uint8),
        starts,
        np.arange(starts[-1]).astype(np.uint8) if qualities else None,
    )


def sequences(reads: ReadBlock | None) -> list[str]:
    assert reads is not None
    return [reads.sequence(i) for i in range(len(reads))]


def of_names(place: str, *names: str) -> list[str]:
    reads = block(["ACGT"] * len(names), list(names))
    found = take_barcodes(reads, None, [BarcodePlace.parse(place)])
    assert found.reads is reads and found.mates is None
    return found.barcodes[0]


def test_umis_behind_the_last_colon_or_underscore() -> None:
    names = [
        "a:1:2:ACGT",
        "a_ACGTN",
        "a:acgt/1",
        "a:ACGT+TTAA",
        "a_ACG-TTA",
        "a:1:2",
        "ACGT",
        "a_ACGT_",
        "a:AX",
    ]
    wanted = ["ACGT", "ACGTN", "ACGT", "ACGTTTAA", "ACGTTA", "", "", "", ""]
    assert of_names("name", *names) == wanted


def test_umis_by_a_regular_expression() -> None:
    assert of_names(r"name:UMI=([ACGTN]+)", "xUMI=ACGT;", "x", "UMI=ttgg", "UMI=TT") == ["ACGT", "", "", "TT"]
    assert of_names(r"name:(?:a|b)\|(\w*)", "a|acg", "b|", "c|acg") == ["ACG", "", ""]
    assert of_names("name:x(A)?", "xA", "x") == ["A", ""]


def test_cells_in_names_and_tags() -> None:
    names = [
        "r_ACGT_TTTT",
        "r_ACGT_TTTT/1",
        "ACGT-1_contig_12",
        "a_b_ACGT-2_contig_1",
        "r_ACGT",
        "ACGT",
        "contig_1",
    ]
    found = take_barcodes(block(["A"] * 7, names), None, [BarcodePlace.parse("name", cell=True)])
    assert found.barcodes == [["ACGT", "ACGT", "ACGT-1", "ACGT-2", "", "", ""]]
    places = [BarcodePlace.parse("tag:UB"), BarcodePlace.parse("tag:CB", cell=True)]
    headers = ["@a CB:Z:acgt-1\tUB:Z:acgt\r", "@b 1:N:0\tXCB:Z:no UB:Z:AC", "@CB:Z:a", "@c\tCB:Z:x"]
    reads = replace(block(["A"] * 4), headers=headers)
    assert take_barcodes(reads, None, places).barcodes == [["ACGT", "AC", "", ""], ["acgt-1", "", "", "x"]]


def test_cells_and_umis_of_one_read_do_not_overlap() -> None:
    reads = block(["AACCGGTT", "AACCG"])
    places = [BarcodePlace.parse("read1:4-6"), BarcodePlace.parse("read1:0-4", cell=True)]
    found = take_barcodes(reads, None, places)
    assert found.barcodes == [["GG", ""], ["AACC", ""]] and sequences(found.reads) == ["TT", "AACCG"]
    with pytest.raises(
        InvalidInput, match="cell: found bases of the UMI, expected places that do not overlap"
    ):
        take_barcodes(reads, None, [places[0], BarcodePlace.parse("read1:0-5", cell=True)])


def test_umis_at_places() -> None:
    reads, mates = block(["AACCGGTT", "AACC", "AACCG"]), block(["TTTTT", "GGGG", "C"])
    found = take_barcodes(reads, None, [BarcodePlace.parse("read1:0-5")])
    assert found.barcodes[0] == ["AACCG", "", "AACCG"]
    assert sequences(found.reads) == ["GTT", "AACC", ""]
    assert found.reads.qualities is not None
    assert found.reads.qualities.tolist() == [5, 6, 7, 8, 9, 10, 11]
    assert found.reads.names == reads.names
    # What stands before a place is cut away with it.
    found = take_barcodes(reads, mates, [BarcodePlace.parse("read2:1-3 + read1:2-4")])
    assert found.barcodes[0] == ["TTCC", "GGCC", ""]
    assert sequences(found.reads) == ["GGTT", "", "AACCG"]
    assert sequences(found.mates) == ["TT", "G", "C"]
    found = take_barcodes(reads, mates, [BarcodePlace.parse("read1:3-4+read1:0-2")])
    assert found.barcodes[0] == ["CAA"] * 3
    assert sequences(found.reads) == ["GGTT", "", "G"]
    assert found.mates is mates


def test_umis_of_reads_without_qualities() -> None:
    found = take_barcodes(block(["ACGT"], qualities=False), None, [BarcodePlace.parse("read1:0-2")])
    assert found.reads.qualities is None and sequences(found.reads) == ["GT"]


def test_no_reads() -> None:
    for place in ("name", "read1:0-4"):
        found = take_barcodes(block([]), None, [BarcodePlace.parse(place)])
        assert found.barcodes[0] == [] and len(found.reads) == 0


@given(
    st.lists(st.tuples(BASES, BASES), max_size=12),
    st.tuples(st.integers(0, 5), st.integers(1, 5)),
    st.tuples(st.integers(0, 5), st.integers(1, 5)),
)
def test_every_base_is_in_the_umi_before_it_or_in_the_read(
    pairs: list[tuple[str, str]], one: tuple[int, int], two: tuple[int, int]
) -> None:
    parts = tuple(BarcodePart(m, begin, begin + size) for m, (begin, size) in ((1, one), (2, two)))
    place = BarcodePlace.parse("+".join(f"read{p.mate}:{p.begin}-{p.end}" for p in parts))
    assert place == BarcodePlace(None, parts)
    found = take_barcodes(block([a for a, _ in pairs]), block([b for _, b in pairs]), [place])
    rests = zip(sequences(found.reads), sequences(found.mates), strict=True)
    for umi, rest, given_pair in zip(found.barcodes[0], rests, pairs, strict=True):
        if all(len(mate) >= part.end for mate, part in zip(given_pair, parts, strict=True)):
            cut = zip(given_pair, parts, strict=True)
            assert umi == "".join(mate[part.begin : part.end] for mate, part in cut)
            assert rest == tuple(mate[part.end :] for mate, part in zip(given_pair, parts, strict=True))
        else:
            assert (umi, rest) == ("", given_pair)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "umi: found '', expected name, name:REGEX with one group, tag:CB, or places"),
        ("names", "found 'names'"),
        ("read3:0-4", "found 'read3:0-4'"),
        ("read1:0:4", "found 'read1:0:4'"),
        ("read1:-1-4", "found"),
        ("read1:0-4+", "found"),
        ("read1:0-4+name", "found"),
        ("read1:4-4", "in which 4-4 is empty, expected places that end behind their begin"),
        ("read1:0-4+read1:3-8", "expected places that do not overlap"),
        ("name:", "with 0 groups, expected a regular expression with one group"),
        ("name:[ACGT]+", "with 0 groups, .*"),
        ("name:(A)(C)", r"with 2 groups, .*; write \(\?:\.\.\.\) for brackets"),
        ("name:(A", "expected a regular expression"),
        ("read1:0-" + "9" * 5000, "expected name, name:REGEX"),
        ("read1:0-٣", "expected name, name:REGEX"),
        ("name:" + "(A)" * 5000, "with 5000 groups"),
        ("name:(A{1," + "9" * 30 + "})", "expected a regular expression"),
        ("name:" + "(" * 20000, "expected a regular expression"),
    ],
)
def test_wrong_places_are_said(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        BarcodePlace.parse(text)
    assert caught.value.what == "umi" and len(str(caught.value)) < 500


def test_a_place_in_the_second_mate_needs_mates() -> None:
    place = BarcodePlace.parse("read1:0-1+read2:0-1")
    BarcodePlace.parse("name").check_mates(False)
    with pytest.raises(InvalidInput, match="umi: found a place in the second mates, expected files of"):
        take_barcodes(block(["ACGT"]), None, [place])
