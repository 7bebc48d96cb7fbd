"""Alignments as text: against what EMBOSS 6.6 prints, and as its readers see it."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.alignment_batches import rescore

from plait.align.results import Alignment, aligned_strings, alignment_lines, make_alignment
from plait.align.scoring import Scoring, load_matrix, match_mismatch
from plait.errors import InvalidInput

DNA = Scoring(match_mismatch(2, -3), 7, 2)
PROTEIN = Scoring(load_matrix("BLOSUM62"), 12, 1)

# needle -gapopen 12 -gapextend 1 -endweight -endopen 12 -endextend 1, alpha and beta chain
HAEMOGLOBINS = """\
#=======================================
#
# Aligned_sequences: 2
# 1: HBA_HUMAN
# 2: HBB_HUMAN
# Matrix: EBLOSUM62
# Gap_penalty: 12.0
# Extend_penalty: 1.0
#
# Length: 149
# Identity:      63/149 (42.3%)
# Similarity:    88/149 (59.1%)
# Gaps:           9/149 ( 6.0%)
# Score: 282.0
#
#
#=======================================

HBA_HUMAN          1 MV-LSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHF--     47
                     || |:|.:|:.|.|.||||  :..|.|.|||.|:.:.:|.|:.:|..|
HBB_HUMAN          1 MVHLTPEEKSAVTALWGKV--NVDEVGGEALGRLLVVYPWTQRFFESFGD     48

HBA_HUMAN         48 ----DLSHGSAQVKGHGKKVADALTNAVAHVDDMPNALSALSDLHAHKLR     93
                         |...|:.:||.|||||..|.::.:||:|::....:.||:||..||.
HBB_HUMAN         49 LSTPDAVMGNPKVKAHGKKVLGAFSDGLAHLDNLKGTFATLSELHCDKLH     98

HBA_HUMAN         94 VDPVNFKLLSHCLLVTLAAHLPAEFTPAVHASLDKFLASVSTVLTSKYR    142
                     |||.||:||.:.|:..||.|...||||.|.|:..|.:|.|:..|..||.
HBB_HUMAN         99 VDPENFRLLGNVLVCVLAHHFGKEFTPPVQAAYQKVVAGVANALAHKYH    147


"""
# water -gapopen 12 -gapextend 1, lysozyme and lactalbumin
LYSOZYME = """\
#=======================================
#
# Aligned_sequences: 2
# 1: LYSC_CHICK
# 2: LALBA_HUMAN_long_name
# Matrix: EBLOSUM62
# Gap_penalty: 12.0
# Extend_penalty: 1.0
#
# Length: 115
# Identity:      45/115 (39.1%)
# Similarity:    68/115 (59.1%)
# Gaps:           4/115 ( 3.5%)
# Score: 222.0
#
#
#=======================================

LYSC_CHICK         1 KVFGRCELAAAMKRHGLDNYRGYSLGNWVCAAKFESNFNTQATNRNTDGS     50
                     |.|.:|||:..:|  .:|.|.|.:|...:|.....|.::|||...|.: |
LALBA_HUMAN_l      1 KQFTKCELSQLLK--DIDGYGGIALPELICTMFHTSGYDTQAIVENNE-S     47

LYSC_CHICK        51 TDYGILQINSRWWCNDGRTPGSRNLCNIPCSALLSSDITASVNCAKKIVS    100
                     |:||:.||:::.||...:.|.|||:|:|.|...|..|||..:.|||||:
LALBA_HUMAN_l     48 TEYGLFQISNKLWCKSSQVPQSRNICDISCDKFLDDDITDDIMCAKKIL-     96

LYSC_CHICK       101 DGNGMNAWVAWRNRC    115
                     |..|::.|:|.:..|
LALBA_HUMAN_l     97 DIKGIDYWLAHKALC    111


"""
# needle -datafile EDNAFULL -gapopen 16 -gapextend 4 -endweight -endopen 16 -endextend 4, 5S ribosomal RNA
RIBOSOMAL = """\
#=======================================
#
# Aligned_sequences: 2
# 1: 5S_HUMAN
# 2: 5S_ECOLI
# Matrix: EDNAFULL
# Gap_penalty: 16.0
# Extend_penalty: 4.0
#
# Length: 124
# Identity:      66/124 (53.2%)
# Similarity:    66/124 (53.2%)
# Gaps:           7/124 ( 5.6%)
# Score: 38.0
#
#
#=======================================

5S_HUMAN           1 -gtct-acggccataccaccctgaacgcgcccgatctcgt-ctgatctcg     47
                      |.|| .||||..||.|.|..||..|.|.||.||.|.|.| |.||.|||.
5S_ECOLI           1 TGCCTGGCGGCAGTAGCGCGGTGGTCCCACCTGACCCCATGCCGAACTCA     50

5S_HUMAN          48 gaagctaagcagggtcgggcctggttagtacttggatgggagaccgcctg     97
                     ||||..||.|...||.|.|||  |.|.|||.|  |..|||...||.|.||
5S_ECOLI          51 GAAGTGAAACGCCGTAGCGCC--GATGGTAGT--GTGGGGTCTCCCCATG     96

5S_HUMAN          98 ggaataccgggtgctgtaggcttt    121
                     .||.....|||..|||...|...|
5S_ECOLI          97 CGAGAGTAGGGAACTGCCAGGCAT    120


"""


def rows_of(text: str) -> tuple[str, str]:
    """The two rows in EMBOSS's output."""
    lines = [line[21:].split()[0] for line in text.splitlines() if line[:1] not in ("#", " ", "")]
    return "".join(lines[::2]), "".join(lines[1::2])


def from_rows(first: str, second: str, scoring: Scoring) -> tuple[Alignment, bytes, bytes]:
    """The alignment of two rows, and their residues."""
    kinds = [1 if a == "-" else 2 if b == "-" else 0 for a, b in zip(first, second, strict=True)]
    runs = np.array([(kind, 1) for kind in kinds], np.int64).reshape(-1, 2)
    query, target = (row.replace("-", "").encode() for row in (first, second))
    codes = scoring.encode(query), scoring.encode(target, "target")
    ends = len(query), len(target)
    score = rescore(make_alignment(*codes, scoring, 0, *ends, runs), *codes, scoring)
    return make_alignment(*codes, scoring, score, *ends, runs), query, target


@pytest.mark.parametrize(
    ("printed", "scoring"),
    [
        (HAEMOGLOBINS, PROTEIN),
        (LYSOZYME, PROTEIN),
        (RIBOSOMAL, Scoring(load_matrix("NUC.4.4"), 16, 4)),
    ],
    ids=["needle protein", "water", "needle DNA"],
)
def test_as_emboss_prints_it(printed: str, scoring: Scoring) -> None:
    names = [line.split()[-1] for line in printed.splitlines() if line[:5] in ("# 1: ", "# 2: ")]
    alignment, query, target = from_rows(*rows_of(printed), scoring)
    text = alignment.text(query, target, query_name=names[0], target_name=names[1], width=50)
    # Its names of these two matrices, and no blanks at the ends of lines, which editors take away.
    for ours, theirs in (("BLOSUM62", "EBLOSUM62"), ("NUC.4.4", "EDNAFULL")):
        text = text.replace(f"# Matrix: {ours}\n", f"# Matrix: {theirs}\n")
    assert [line.rstrip() for line in text.splitlines()] == printed.splitlines()


def test_a_line_of_gaps_shows_what_came_before() -> None:
    alignment, query, target = from_rows("--------AC-------T", "ACGTACGTACGTACGTAT", DNA)
    rows = [line for line in alignment.text(query, target, width=4).splitlines() if line[:1] in "qt" and line]
    assert rows[::2] == [
        "query              0 ----      0",
        "query              0 ----      0",
        "query              1 AC--      2",
        "query              2 ----      2",
        "query              3 -T      3",
    ]
    assert rows[1] == "target             1 ACGT      4"


def test_marks() -> None:
    alignment, query, target = from_rows("NKKwAA-", "NRWWU-A", Scoring(load_matrix("BLOSUM62"), 12, 1))
    marks = next(line for line in alignment.text(query, target).splitlines() if line.startswith(" " * 21))
    # A match counts as one whatever it scores; U, which BLOSUM62 lacks, counts as X.
    assert marks == f"{'':21}|:.|.  "
    assert (alignment.matches, alignment.similar) == (2, 3)


def test_only_the_aligned_region_is_shown() -> None:
    codes = DNA.encode("TTACGTT"), DNA.encode("GACGG")
    alignment = make_alignment(*codes, DNA, 6, 5, 4, np.array([(0, 3)], np.int64))
    assert "query              3 ACG      5\n" in alignment.text("TTACGTT", "GACGG")
    assert "target             2 ACG      4\n" in alignment.text("TTACGTT", "GACGG")
    assert aligned_strings(alignment, "TTacGTT", "GACGG") == ("acG", "ACG")


def test_without_columns() -> None:
    alignment, query, target = from_rows("", "", DNA)
    text = alignment.text(query, target)
    assert "# Length: 0\n# Identity:       0/0 ( 0.0%)\n" in text
    assert text.endswith("#=======================================\n\n\n")
    assert aligned_strings(alignment, query, target) == ("", "")


def test_long_coordinates_shorten_the_name_and_not_the_margin() -> None:
    n = 12_345_678
    residues = b"A" * n
    codes = DNA.encode(residues)
    alignment = make_alignment(codes, codes[:9], DNA, 2, n, 9, np.array([(0, 1)], np.int64))
    text = alignment.text(residues, residues[:9], query_name="a_name_of_some_length", target_name="b")
    assert (
        "\na_name_of_s 12345678 A 12345678\n                     |\nb                  9 A        9\n" in text
    )
    assert "# 1: a_name_of_some_length\n" in text


COLUMNS = st.lists(st.sampled_from(["AA", "AC", "nN", "ut", "A-", "-G"]), max_size=60)


@given(COLUMNS)
def test_rows_round_trip(columns: list[str]) -> None:
    first, second = ("".join(column[side] for column in columns) for side in (0, 1))
    alignment, query, target = from_rows(first, second, DNA)
    assert aligned_strings(alignment, query, target) == (first, second)
    assert aligned_strings(alignment, query.decode(), target.decode()) == (first, second)


@given(COLUMNS, st.integers(1, 70), st.integers(1, 3))
def test_text_in_pieces_is_the_same(columns: list[str], width: int, lines: int) -> None:
    first, second = ("".join(column[side] for column in columns) for side in (0, 1))
    alignment, query, target = from_rows(first, second, DNA)
    whole = alignment.text(query, target, width=width)
    assert rows_of(whole.split("=\n\n")[1] if columns else "") == (first, second)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plait.align.results._BLOCK_LINES", lines)
        assert "".join(alignment_lines(alignment, query, target, width=width)) == whole


def test_text_is_made_as_it_is_read() -> None:
    """The first lines of a long alignment take the memory and time of a piece."""
    n = 3_000_000
    codes = np.zeros(n, np.uint8)
    alignment = make_alignment(codes, codes, DNA, 2 * n, n, n, np.array([(0, n)], np.int64))
    lines = alignment_lines(alignment, b"A" * n, b"A" * n)
    assert isinstance(lines, Iterator)
    assert sum(next(lines).count("A" * 60) for _ in range(20)) > 0
    assert sum(line.count("|") for line in alignment_lines(alignment, b"A" * n, b"A" * n)) == n


@pytest.mark.parametrize(
    ("query", "target", "message"),
    [
        (
            "ACG",
            "ACCG",
            "query: found a sequence of 3 residues, expected the one that was aligned, from 0 to 4",
        ),
        ("ACGT", "", "target: found a sequence of 0 residues"),
        ("ACGT", "ACZG", "target: found the letter 'Z', expected letters of 2/-3"),
        ("AC!T", "ACCG", "query: found the letter '!'"),
        ("ACÖT", "ACCG", "query: found the letter 'Ö', expected ASCII"),
    ],
)
def test_other_sequences_are_refused(query: str, target: str, message: str) -> None:
    alignment = from_rows("ACGT", "ACCG", DNA)[0]
    with pytest.raises(InvalidInput) as caught:
        alignment.text(query, target)
    assert message in str(caught.value)


def test_no_width_is_refused() -> None:
    with pytest.raises(InvalidInput, match="width: found 0"):
        from_rows("A", "A", DNA)[0].text("A", "A", width=0)


@pytest.mark.parametrize("width", [50, 60, 7])
def test_biopython_reads_it(width: int) -> None:
    align_io = pytest.importorskip("Bio.AlignIO", reason="Biopython is not installed")
    for printed, scoring in ((HAEMOGLOBINS, PROTEIN), (LYSOZYME, PROTEIN), (RIBOSOMAL, DNA)):
        rows = rows_of(printed)
        alignment, query, target = from_rows(*rows, scoring)
        text = alignment.text(query, target, query_name="q", target_name="t", width=width)
        read = align_io.read(io.StringIO(text), "emboss")
        assert [str(record.seq) for record in read] == list(rows)
        assert [record.id for record in read] == ["q", "t"]
        assert read.annotations == {
            "identity": alignment.matches,
            "similarity": alignment.similar,
            "gaps": alignment.gaps,
            "score": alignment.score,
        }
