"""AIRR rearrangements from reads and their matches with the germline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.read_block import ReadBlock
from plait.schedules.joined_cuts import CROSSED, ORDERED, Matches
from plait.vdj.annotation.airr_columns import schema_of
from plait.vdj.annotation.alignment_parts import Place, alignment_parts
from plait.vdj.annotation.annotation_settings import STATUSES, AnnotationSettings
from plait.vdj.annotation.germline_tables import SegmentTable, germline_tables
from plait.vdj.annotation.junctions import JoinedReads, join_reads
from plait.vdj.annotation.matches import GermlineMatches, SegmentMatches
from plait.vdj.annotation.text_columns import (
    aligned_texts,
    calls,
    cigars,
    d_calls,
    slices,
    text_array,
    translations,
)
from plait.vdj.germline import GermlineSet

__all__ = ["STATUSES", "AnnotationSettings", "RearrangementBuilder"]

_Flags = NDArray[np.bool_]
#: Identities are given to this many decimal places.
_PLACES = 4
#: A cell of TSV that begins with a quotation mark goes on to the next one for most readers, over line ends.
_QUOTE = ord('"')


class RearrangementBuilder:
    """Makes AIRR rearrangements of reads.

    Parameters
    ----------
    germlines
        The germline sets that reads were matched with, in that order.
    settings
        Limits; the default ones if None.

    Attributes
    ----------
    schema : pyarrow.Schema
        Columns of the batches.
    settings : AnnotationSettings
        The limits.

    Raises
    ------
    InvalidInput
        If there is no germline set.
    Unsupported
        If a D allele is longer than 62 bases, or a set has more than 62 of them.
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

        Parameters
        ----------
        matches
            Reads and what they match.
        consensus_count, duplicate_count, umi_count
            Counts of each read, shape (n,); null where not given.
        merged
            Whether each read was merged from two mates, bool (n,).
        repertoire_id
            Repertoire of all reads, or of each.

        Raises
        ------
        InvalidInput
            If a column has not as many values as there are reads.
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
