"""The columns of annotated reads: names and meanings of the AIRR Rearrangement schema, and Arrow types."""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa

__all__ = ["ALIGNMENT_PARTS", "COLUMNS", "SCHEMA", "Column", "schema_of"]


class Column(NamedTuple):
    """One column.

    Attributes
    ----------
    name
        Its name; that of the AIRR Rearrangement schema where `airr` says so.
    type
        Arrow type.
    meaning
        What it holds, in one line.
    airr
        Whether the AIRR Rearrangement schema has it.
    """

    name: str
    type: pa.DataType
    meaning: str
    airr: bool = True


_TEXT: Final = pa.string()
_FLAG: Final = pa.bool_()
_NUMBER: Final = pa.int32()
_REAL: Final = pa.float64()
_COUNT: Final = pa.int64()
_SEGMENTS: Final = (("v", "V"), ("d", "D"), ("j", "J"))


def _calls() -> list[Column]:
    return [
        Column("v_call", _TEXT, "V alleles with the best score, with commas between"),
        Column("d_call", _TEXT, "D alleles with the longest match, that of the coordinates first"),
        Column("j_call", _TEXT, "J alleles with the best score, with commas between"),
    ]


def _alignments() -> list[Column]:
    found = [
        Column("v_score", _NUMBER, "score of the V alignment"),
        Column("v_identity", _REAL, "equal bases / columns of the V alignment"),
        Column("v_support", _REAL, "expected number of V alignments as good by chance"),
        Column("v_cigar", _TEXT, "V alignment of the whole read: S N = X I D"),
        Column("d_score", _NUMBER, "matching bases of D"),
        Column("d_identity", _REAL, "1 where D is called: its match is exact"),
        Column("d_support", _REAL, "expected number of D matches as long by chance, in random bases"),
        Column("d_cigar", _TEXT, "the match with D"),
        Column("d_frame", _NUMBER, "frame of D that is read, 1 being that of its first base"),
        Column("j_score", _NUMBER, "score of the J alignment"),
        Column("j_identity", _REAL, "equal bases / columns of the J alignment"),
        Column("j_support", _REAL, "expected number of J alignments as good by chance"),
        Column("j_cigar", _TEXT, "J alignment of the whole read"),
    ]
    for letter, name in _SEGMENTS:
        for part, where in (
            ("sequence", "`sequence`"),
            ("germline", f"the first {name} allele"),
            ("alignment", "`sequence_alignment`"),
        ):
            for end, what in (("start", "first"), ("end", "last")):
                meaning = f"{what} aligned position of {name} in {where}"
                found.append(Column(f"{letter}_{part}_{end}", _NUMBER, meaning))
    return found


def _junction() -> list[Column]:
    return [
        Column(
            "junction", _TEXT, "from the conserved Cys codon to the conserved Phe or Trp codon, with both"
        ),
        Column("junction_aa", _TEXT, "its translation; an incomplete last codon is left out"),
        Column("junction_length", _NUMBER, "bases of `junction`"),
        Column("junction_aa_length", _NUMBER, "letters of `junction_aa`"),
        Column("cdr3", _TEXT, "the junction without its first and last codon"),
        Column("cdr3_aa", _TEXT, "its translation"),
        Column("cdr3_start", _NUMBER, "first position of the CDR3 in `sequence`"),
        Column("cdr3_end", _NUMBER, "last position of the CDR3"),
        Column("fwr4", _TEXT, "from the conserved Phe or Trp codon to the end of J or of its alignment"),
        Column("fwr4_aa", _TEXT, "its translation"),
        Column("fwr4_start", _NUMBER, "first position of framework 4 in `sequence`"),
        Column("fwr4_end", _NUMBER, "last position of framework 4"),
        Column("np1", _TEXT, "bases between V and D, or between V and J without a D"),
        Column("np1_length", _NUMBER, "bases of `np1`"),
        Column("np2", _TEXT, "bases between D and J"),
        Column("np2_length", _NUMBER, "bases of `np2`"),
        Column("n1_length", _NUMBER, "bases of `np1` that are not palindromic"),
        Column("n2_length", _NUMBER, "bases of `np2` that are not palindromic"),
        Column("p3v_length", _NUMBER, "palindromic bases behind an untrimmed V"),
        Column("p5d_length", _NUMBER, "palindromic bases before a D untrimmed there"),
        Column("p3d_length", _NUMBER, "palindromic bases behind a D untrimmed there"),
        Column("p5j_length", _NUMBER, "palindromic bases before an untrimmed J"),
    ]


#: All columns, in output order.
COLUMNS: Final[tuple[Column, ...]] = (
    Column("sequence_id", _TEXT, "name of the read"),
    Column("sequence", _TEXT, "the read on the strand of the genes: reverse-complemented where `rev_comp`"),
    Column("quality", _TEXT, "its Phred qualities, 33 added, as characters; a first one of 1 is given as 2"),
    Column("rev_comp", _FLAG, "whether the read as given is the other strand"),
    Column("productive", _FLAG, "in frame, without stop codon, and no gap shifts the frame of V or J"),
    Column("vj_in_frame", _FLAG, "whether the junction is whole codons"),
    Column("stop_codon", _FLAG, "whether there is a stop codon in the frame of the junction, V to J"),
    Column("complete_vdj", _FLAG, "whether the alignment goes from the first codon of V to the last of J"),
    Column("v_frameshift", _FLAG, "whether a gap in the V alignment shifts the frame"),
    Column("j_frameshift", _FLAG, "whether a gap in the J alignment shifts the frame"),
    Column("locus", _TEXT, "locus of the germline set"),
    *_calls(),
    Column(
        "sequence_alignment", _TEXT, "the read from the start of V to the end of J, `-` for missing bases"
    ),
    Column("germline_alignment", _TEXT, "the germline there, `-` for inserted bases, N between the genes"),
    *_junction(),
    *_alignments(),
    Column("consensus_count", _COUNT, "reads behind the sequence, if given"),
    Column("duplicate_count", _COUNT, "copies of the sequence, if given"),
    Column("umi_count", _COUNT, "unique molecular identifiers of the sequence, if given"),
    Column("repertoire_id", _TEXT, "repertoire that the read belongs to, if given"),
    Column("merged_mates", _FLAG, "whether the sequence was merged from two mates, if given", False),
    Column("annotation_status", _TEXT, "`ok`, or why the read gives no rearrangement", False),
)
#: Columns that repeat parts of others, which are given where they are asked for.
ALIGNMENT_PARTS: Final[tuple[Column, ...]] = (
    *(
        Column(f"{letter}_{kind}_alignment", _TEXT, f"the part of `{kind}_alignment` that is {name}")
        for letter, name in _SEGMENTS
        for kind in ("sequence", "germline")
    ),
    Column("sequence_alignment_aa", _TEXT, "translation of the aligned read in the frame of V"),
    Column("germline_alignment_aa", _TEXT, "translation of the aligned germline in the frame of V"),
)


def schema_of(alignment_parts: bool) -> pa.Schema:
    """Schema of the batches.

    Parameters
    ----------
    alignment_parts
        Whether `ALIGNMENT_PARTS` are asked for; they stand behind the alignments.
    """
    place = 1 + [column.name for column in COLUMNS].index("germline_alignment")
    parts = ALIGNMENT_PARTS if alignment_parts else ()
    columns = (*COLUMNS[:place], *parts, *COLUMNS[place:])
    return pa.schema([pa.field(column.name, column.type) for column in columns])


#: Schema of the batches without parts of the alignments.
SCHEMA: Final[pa.Schema] = schema_of(False)
