"""AIRR rearrangements from reads and their matches with the germline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.fastq import ReadBlock
from plait.vdj.germline import GermlineSet
from plait.vdj.reads.allele_alignment import GermlineMatches, SegmentMatches
from plait.vdj.reads.d_calls import CROSSED, ORDERED, Columns, Matches, Written
from plait.vdj.reads.germline_index import GermlineTables, SegmentTable, germline_tables
from plait.vdj.reads.junctions import (
    JoinedReads,
    aligned_texts,
    calls,
    cigars,
    d_calls,
    join_reads,
    slices,
    text_array,
    translations,
)
from plait.vdj.reads.settings import STATUSES, AnnotationSettings

_GAP = ord("-")


class Place(NamedTuple):
    """Where a gene lies in the alignments, in columns; shape (n,) each."""

    first: NDArray[Any]
    length: NDArray[Any]
    known: NDArray[np.bool_]


def alignment_parts(
    reads: JoinedReads, tables: GermlineTables, aligned: Columns, places: Mapping[str, Place]
) -> dict[str, pa.Array]:
    """The columns `ALIGNMENT_PARTS`; `places` says where in the alignment ``"v"``, ``"d"``, ``"j"`` lie."""
    columns: dict[str, pa.Array] = {}
    v = reads.texts.prefix
    anchors = tables.v.entries.anchors
    anchor = anchors[np.maximum(v.entry, 0)] if anchors.size else np.full(v.entry.size, -1)
    framed = places["v"].known & (anchor >= 0)
    skipped = (anchor - v.entry_start) % 3
    for kind, written in (("sequence", aligned.text), ("germline", aligned.entry)):
        start = written.bounds[:-1].astype(np.int64)
        for letter, (first, length, known) in places.items():
            columns[f"{letter}_{kind}_alignment"] = slices(written.letters, start + first, length, known)
        bare = _without_gaps(written)
        begin = bare.bounds[:-1].astype(np.int64) + skipped
        size = np.maximum(bare.bounds[1:] - begin, 0)
        columns[f"{kind}_alignment_aa"], _ = translations(bare.letters, begin, size, framed, tables)
    return columns


def _without_gaps(written: Written) -> Written:
    letters = written.letters[: int(written.bounds[-1])]
    kept = letters != _GAP
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    return Written(letters[kept], ends[written.bounds])


class Column(NamedTuple):
    """One column: name, type and meaning in one line; `airr`: it is in the AIRR Rearrangement schema."""

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
    Column("productive", _FLAG, "junction in frame, no stop codon, and V in frame with the junction"),
    Column("vj_in_frame", _FLAG, "whether the junction is whole codons"),
    Column("stop_codon", _FLAG, "whether there is a stop codon in the frame of the junction, V to J"),
    Column("complete_vdj", _FLAG, "whether the alignment goes from the first codon of V to the last of J"),
    Column("v_frameshift", _FLAG, "whether gaps in V shift the frame between its start and the Cys codon"),
    Column(
        "j_frameshift", _FLAG, "whether gaps in J shift the frame between the Phe or Trp codon and its end"
    ),
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
    """Schema of the batches; `ALIGNMENT_PARTS`, if asked for, stand behind the alignments."""
    place = 1 + [column.name for column in COLUMNS].index("germline_alignment")
    parts = ALIGNMENT_PARTS if alignment_parts else ()
    columns = (*COLUMNS[:place], *parts, *COLUMNS[place:])
    return pa.schema([pa.field(column.name, column.type) for column in columns])


#: Schema of the batches without parts of the alignments.
SCHEMA: Final[pa.Schema] = schema_of(False)


_Flags = NDArray[np.bool_]
#: Identities are given to this many decimal places.
_PLACES = 4
#: A cell of TSV that begins with a quotation mark goes on to the next one for most readers, over line ends.
_QUOTE = ord('"')


class RearrangementBuilder:
    """Makes AIRR rearrangements of reads that were matched with these germline sets, in this order.

    `schema` has the columns of the batches. InvalidInput if there is no germline set; Unsupported if a D
    allele is longer than 62 bases, or a set has more than 62 of them.
    """

    def __init__(self, germlines: Sequence[GermlineSet], settings: AnnotationSettings | None = None) -> None:
        if not germlines:
            raise InvalidInput("germlines", found="none", expected="at least one germline set")
        self.settings = AnnotationSettings() if settings is None else settings
        self.schema = schema_of(self.settings.alignment_parts)
        self._tables = germline_tables(germlines, self.settings)
        self._loci = pa.array([*self._tables.loci, None], pa.string())

    def build(
        self,
        matches: GermlineMatches,
        *,
        consensus_count: Any = None,
        duplicate_count: Any = None,
        umi_count: Any = None,
        merged: Any = None,
        repertoire_id: str | Sequence[str] | None = None,
    ) -> pa.RecordBatch:
        """One row for each read, in order.

        Counts have shape (n,), and are null where not given; `merged`, bool (n,): merged from two mates.
        `repertoire_id` is that of all reads, or of each. InvalidInput if a column has not as many values as
        there are reads.
        """
        reads = join_reads(matches, self._tables)
        facts = _Facts(reads)
        given = {
            "consensus_count": consensus_count,
            "duplicate_count": duplicate_count,
            "umi_count": umi_count,
            "merged_mates": merged,
            "repertoire_id": repertoire_id,
        }
        columns = {name: self._given(name, values, len(matches.reads)) for name, values in given.items()}
        columns |= self._read_columns(matches, reads, facts)
        columns |= self._flag_columns(reads, facts)
        columns |= self._junction_columns(reads, facts)
        columns |= self._middle_columns(reads, facts)
        columns |= self._match_columns(matches, reads, facts)
        columns |= self._alignment_columns(reads, facts)
        columns["annotation_status"] = self._statuses(reads, facts)
        return pa.record_batch([columns[name] for name in self.schema.names], schema=self.schema)

    def _given(self, name: str, values: Any, n: int) -> pa.Array:
        kind = self.schema.field(name).type
        if values is None:
            return pa.nulls(n, kind)
        if isinstance(values, str):
            return pa.array([values], kind).take(pa.array(np.zeros(n, np.int64)))
        if len(values) != n:
            raise InvalidInput(name, found=f"{len(values)} values", expected=f"one for each of {n} reads")
        return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)

    def _read_columns(
        self, matches: GermlineMatches, reads: JoinedReads, facts: _Facts
    ) -> dict[str, pa.Array]:
        starts = reads.texts.starts
        known = facts.has_v | facts.has_j
        locus = np.where(known, matches.germline, len(self._loci) - 1)
        return {
            "sequence_id": pa.array(matches.reads.names, pa.string()),
            "sequence": text_array(reads.texts.letters, starts),
            "quality": _quality_texts(matches.reads),
            "rev_comp": _array(matches.reversed, pa.bool_(), known),
            "locus": self._loci.take(pa.array(locus)),
        }

    def _flag_columns(self, reads: JoinedReads, facts: _Facts) -> dict[str, pa.Array]:
        found = reads.layout
        v_shift, j_shift = found.prefix_shifted > 0, found.suffix_shifted > 0
        flags = {
            "vj_in_frame": (facts.in_frame, facts.known),
            "stop_codon": (facts.stop, facts.known),
            "productive": (facts.productive, facts.known),
            "v_frameshift": (v_shift, facts.has_v),
            "j_frameshift": (j_shift, facts.has_j),
            "complete_vdj": (self._complete(reads, facts), facts.ordered),
        }
        return {name: _array(values, pa.bool_(), known) for name, (values, known) in flags.items()}

    def _last_codon(self, reads: JoinedReads) -> NDArray[np.int64]:
        """End of the last whole codon of the J allele of each read."""
        j = self._tables.j.entries
        if not j.anchors.size:
            return np.zeros(reads.groups.size, np.int64)
        entry = np.maximum(reads.texts.suffix.entry, 0)
        anchor = j.anchors[entry]
        found: NDArray[np.int64] = anchor + (np.diff(j.starts)[entry] - anchor) // 3 * 3
        return found

    def _complete(self, reads: JoinedReads, facts: _Facts) -> _Flags:
        v, j = reads.texts.prefix, reads.texts.suffix
        complete: _Flags = facts.ordered & (v.entry_start == 0) & (j.entry_end >= self._last_codon(reads))
        return complete

    def _junction_columns(self, reads: JoinedReads, facts: _Facts) -> dict[str, pa.Array]:
        known = facts.known
        start, end = facts.middle
        fwr4_end = np.minimum(
            reads.texts.suffix.text_end,
            reads.texts.suffix.text_end - reads.texts.suffix.entry_end + self._last_codon(reads),
        )
        parts = {
            "junction": (start, end, known),
            "cdr3": (start + 3, end - 3, known),
            "fwr4": (end - 3, fwr4_end, known & (fwr4_end > end - 3)),
        }
        columns: dict[str, pa.Array] = {}
        for name, (low, high, there) in parts.items():
            first, length = reads.texts.starts[:-1] + low, high - low
            columns[name] = slices(reads.texts.letters, first, length, there)
            columns[f"{name}_aa"], codons = translations(
                reads.texts.letters, first, length, there, self._tables
            )
            if name == "junction":
                columns["junction_length"] = _array(length, pa.int32(), there)
                columns["junction_aa_length"] = _array(codons, pa.int32(), there)
            else:
                some = there & (length > 0)
                columns[f"{name}_start"] = _array(low + 1, pa.int32(), some)
                columns[f"{name}_end"] = _array(high, pa.int32(), some)
        return columns

    def _middle_columns(self, reads: JoinedReads, facts: _Facts) -> dict[str, pa.Array]:
        found = reads.layout
        begin = reads.texts.prefix.text_end.astype(np.int64)
        end = reads.texts.suffix.text_start.astype(np.int64)
        called = facts.called
        first_end = np.where(called, found.fragment_start, end)
        second = np.where(called, found.fragment_end, end)
        base = reads.texts.starts[:-1]
        right = np.where(called, found.fragment_extended_left, found.suffix_extended)
        lengths = {
            "np1_length": (first_end - begin, facts.ordered),
            "np2_length": (end - second, called),
            "n1_length": (first_end - begin - found.prefix_extended - right, facts.ordered),
            "n2_length": (end - second - found.fragment_extended_right - found.suffix_extended, called),
            "p3v_length": (found.prefix_extended, facts.ordered),
            "p5d_length": (found.fragment_extended_left, called),
            "p3d_length": (found.fragment_extended_right, called),
            "p5j_length": (found.suffix_extended, facts.ordered),
        }
        columns = {name: _array(values, pa.int32(), known) for name, (values, known) in lengths.items()}
        letters = reads.texts.letters
        columns["np1"] = slices(letters, base + begin, first_end - begin, facts.ordered)
        columns["np2"] = slices(letters, base + second, end - second, called)
        return columns

    def _match_columns(
        self, matches: GermlineMatches, reads: JoinedReads, facts: _Facts
    ) -> dict[str, pa.Array]:
        found, tables, texts = reads.layout, self._tables, reads.texts
        columns = self._d_columns(reads, facts)
        equal = {
            "v": (found.prefix_equal, found.prefix_columns),
            "j": (found.suffix_equal, found.suffix_columns),
        }
        segments: tuple[tuple[str, SegmentMatches, SegmentTable, Matches, _Flags], ...] = (
            ("v", matches.v, tables.v, texts.prefix, facts.has_v),
            ("j", matches.j, tables.j, texts.suffix, facts.has_j),
        )
        for letter, given, table, cut, known in segments:
            same, size = equal[letter]
            columns[f"{letter}_call"] = calls(given, table, reads, known)
            columns[f"{letter}_score"] = _array(given.score, pa.int32(), known)
            identity = np.round(same / np.maximum(size, 1), _PLACES)
            columns[f"{letter}_identity"] = _array(identity, pa.float64(), known)
            columns[f"{letter}_support"] = _array(given.support, pa.float64(), known)
            columns |= _places(letter, cut, known)
            columns[f"{letter}_cigar"] = cigars(reads, table.entries, cut)
        return columns

    def _d_columns(self, reads: JoinedReads, facts: _Facts) -> dict[str, pa.Array]:
        called, d, tables = facts.called, reads.d, self._tables
        columns = _places("d", d, called)
        columns["d_call"] = d_calls(reads, tables)
        columns["d_cigar"] = cigars(reads, tables.d.entries, d)
        length = (d.text_end - d.text_start).astype(np.int64)
        columns["d_score"] = _array(length, pa.int32(), called)
        columns["d_identity"] = _array(np.ones(called.size), pa.float64(), called)
        # Places for a match of this length, in the read and in the D alleles that may join this J.
        support = np.zeros(called.size)
        j = reads.texts.suffix
        room = (j.text_start - reads.texts.prefix.text_end)[called] - length[called] + 1
        chances = room * tables.d_places[j.entry[called], length[called]]
        support[called] = chances * 0.25 ** length[called]
        columns["d_support"] = _array(support, pa.float64(), called)
        first = d.text_start.astype(np.int64) - d.entry_start
        frame = 1 + (facts.middle[0] - first) % 3
        columns["d_frame"] = _array(frame, pa.int32(), called & facts.known)
        return columns

    def _alignment_columns(self, reads: JoinedReads, facts: _Facts) -> dict[str, pa.Array]:
        aligned, read, germline = aligned_texts(reads, self._tables)
        found = reads.layout
        columns = {"sequence_alignment": read, "germline_alignment": germline}
        places: dict[str, Place] = {}
        uncrossed = reads.order != CROSSED
        d_length = found.fragment_end - found.fragment_start
        for letter, first, length, known in (
            ("v", np.zeros_like(found.prefix_columns), found.prefix_columns, facts.has_v & uncrossed),
            ("d", aligned.fragment_at, d_length, facts.called),
            ("j", aligned.suffix_at, found.suffix_columns, facts.has_j & uncrossed),
        ):
            columns[f"{letter}_alignment_start"] = _array(first + 1, pa.int32(), known)
            columns[f"{letter}_alignment_end"] = _array(first + length, pa.int32(), known)
            places[letter] = Place(first, length, known)
        if self.settings.alignment_parts:
            columns |= alignment_parts(reads, self._tables, aligned, places)
        return columns

    def _statuses(self, reads: JoinedReads, facts: _Facts) -> pa.Array:
        found, limits = reads.layout, self.settings
        length = np.diff(reads.texts.starts)
        holds = {
            "too_short": length < limits.min_length,
            "too_long": length > limits.max_length,
            "no_v": ~facts.has_v,
            "no_j": ~facts.has_j,
            "wrong_order": reads.order == CROSSED,
            "too_many_errors": found.errors > limits.max_error_rate * found.compared,
            "no_anchor": ~facts.known,
            "low_quality": found.worst < limits.min_junction_quality,
        }
        if limits.productive_only:
            holds["out_of_frame"] = ~facts.in_frame | (found.prefix_shifted > 0)
            holds["stop_codon"] = facts.stop
        names = list(holds)
        codes = np.select([holds[name] for name in names], [STATUSES.index(name) for name in names],
                          STATUSES.index("ok"))  # fmt: skip
        return pa.array(STATUSES, pa.string()).take(pa.array(codes))


class _Facts:
    """Which parts of reads are known, and what the flags say."""

    def __init__(self, reads: JoinedReads) -> None:
        found = reads.layout
        self.has_v: _Flags = reads.texts.prefix.entry >= 0
        self.has_j: _Flags = reads.texts.suffix.entry >= 0
        self.ordered: _Flags = reads.order == ORDERED
        self.called: _Flags = found.fragment >= 0
        self.known: _Flags = found.middle_start >= 0
        self.middle = found.middle_start.astype(np.int64), found.middle_end.astype(np.int64)
        self.in_frame: _Flags = self.known & ((self.middle[1] - self.middle[0]) % 3 == 0)
        self.stop: _Flags = found.stops > 0
        self.productive: _Flags = self.in_frame & ~self.stop & (found.prefix_shifted == 0)


def _array(values: NDArray[Any], kind: pa.DataType, known: _Flags) -> pa.Array:
    return pa.array(values, kind, mask=None if known.all() else ~known)


def _quality_texts(reads: ReadBlock) -> pa.Array:
    """Qualities as characters. A first one of 1 is given as 2, see `_QUOTE`."""
    if reads.qualities is None:
        return pa.nulls(len(reads), pa.string())
    letters = reads.qualities + np.uint8(33)
    first = reads.starts[:-1][reads.lengths > 0]
    letters[first[letters[first] == _QUOTE]] += 1
    return text_array(letters, reads.starts)


def _places(letter: str, match: Matches, known: _Flags) -> dict[str, pa.Array]:
    """1-based closed coordinates of a match."""
    places = {
        "sequence_start": match.text_start + 1,
        "sequence_end": match.text_end,
        "germline_start": match.entry_start + 1,
        "germline_end": match.entry_end,
    }
    return {f"{letter}_{name}": _array(values, pa.int32(), known) for name, values in places.items()}
