"""AIRR rearrangements from reads and their matches with the germline: limits, statuses, columns, rows.

A module of its own, as the columns of the output are looked for here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput, whole_fields
from plait.formats.fastq import ReadBlock
from plait.vdj.calls import MEANINGS
from plait.vdj.germline import GermlineSet
from plait.vdj.reads.allele_alignment import Found, GermlineMatches
from plait.vdj.reads.columns import (
    CROSSED,
    ORDERED,
    AlignedTexts,
    Matches,
    aligned_texts,
    cigar_texts,
    edges_of,
    joined_names,
    slices,
    text_array,
    translations,
    without_gaps,
)
from plait.vdj.reads.gene_calls import DCalls, names_of_ties
from plait.vdj.reads.junctions import (
    REGIONS,
    JoinedReads,
    Regions,
    SegmentLayout,
    SegmentTable,
    c_genes,
    d_matches,
    germline_tables,
    join_reads,
    region_tables,
    regions_of,
)

#: Reasons in order of precedence; the first that holds is given, ``"ok"`` if none does.
STATUSES: Final = (*list(MEANINGS["annotation"])[1:], "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationSettings:
    """Limits of what is taken for a rearrangement.

    Attributes
    ----------
    min_length, max_length
        Bases of a read; others are ``too_short`` and ``too_long``.
    max_error_rate
        Largest share of mismatches and gaps in the aligned germline outside the junction. A base that may be
        the one of the germline, such as N, does not count; a gap counts once.
    min_junction_quality
        Least Phred quality of any base of the junction; 0 for no limit. Reads without qualities pass.
    min_d_length
        Bases that must match for a D allele to be called.
    max_anchor_distance
        How far outside its alignment an anchor codon may reach, in bases. The codon is then taken from the
        diagonal of the alignment's nearer end.
    max_p_length
        Longest palindromic (P) extension of a gene's end.
    productive_only
        Whether an unproductive rearrangement has a reason too: ``out_of_frame`` or ``stop_codon``.
    alignment_parts
        Whether to give the aligned parts of each gene, and the translations of the alignments, as columns of
        their own.
    regions
        Whether to give frameworks and CDRs with their mutations, too.

    Raises
    ------
    InvalidInput
        If a limit makes no sense.
    """

    min_length: int = 20
    max_length: int = 10_000
    max_error_rate: float = 0.15
    min_junction_quality: int = 15
    min_d_length: int = 5
    max_anchor_distance: int = 12
    max_p_length: int = 4
    productive_only: bool = False
    alignment_parts: bool = False
    regions: bool = False

    def __post_init__(self) -> None:
        """Check every limit."""
        for name, least, most in (
            ("min_length", 0, math.inf),
            ("max_length", 1, math.inf),
            ("min_junction_quality", 0, 93),
            ("min_d_length", 1, math.inf),
            ("max_anchor_distance", 0, math.inf),
            ("max_p_length", 0, 16),
        ):
            whole_fields(self, name, least=least, most=most)
        if self.min_length > self.max_length:
            raise InvalidInput(
                "min_length", found=self.min_length, expected=f"at most max_length, {self.max_length}"
            )
        rate = self.max_error_rate
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise InvalidInput("max_error_rate", found=repr(rate), expected="a number from 0 to 1")
        for name in ("productive_only", "alignment_parts", "regions"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(name, found=repr(getattr(self, name)), expected="True or False")


class Column(NamedTuple):
    """One column: name, type and meaning in one line; `airr`: it is in the AIRR Rearrangement schema."""

    name: str
    type: pa.DataType
    meaning: str
    airr: bool = True


@cache
def _columns() -> tuple[tuple[str, Column], ...]:
    """Columns of ``data/columns.tsv`` in order, and where they are given: ``always``, or if asked for."""
    text = (Path(__file__).with_name("data") / "columns.tsv").read_text("utf-8")
    rows = (line.split("\t") for line in text.splitlines()[1:])
    return tuple(
        (when, Column(name, pa.type_for_alias(kind), meaning, airr == "airr"))
        for name, kind, airr, when, meaning in rows
    )


#: Columns that repeat parts of others, which are given where they are asked for.
ALIGNMENT_PARTS: Final = tuple(column for when, column in _columns() if when == "parts")
#: Columns of regions, given likewise.
REGION_COLUMNS: Final = tuple(column for when, column in _columns() if when == "regions")
#: All others, in output order.
COLUMNS: Final = tuple(column for when, column in _columns() if when == "always")


def schema_of(settings: AnnotationSettings) -> pa.Schema:
    """Schema of the batches; columns that are asked for stand where they belong."""
    wanted = {"always": True, "parts": settings.alignment_parts, "regions": settings.regions}
    return pa.schema([(column.name, column.type) for when, column in _columns() if wanted[when]])


#: Schema of the batches without what has to be asked for.
SCHEMA: Final[pa.Schema] = schema_of(AnnotationSettings())


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
        self.schema = schema_of(self.settings)
        self._tables = germline_tables(
            germlines,
            furthest=self.settings.max_anchor_distance,
            least_d=self.settings.min_d_length,
            most_p=self.settings.max_p_length,
        )
        self._loci = pa.array([*self._tables.loci, None], pa.string())
        self._d_names = [[allele.name for allele in own] for own in self._tables.d.alleles]
        self._c_genes = [c_genes(germline) for germline in germlines]
        self._regions = region_tables(germlines, self._tables.d_places, self.settings.regions)

    def build(
        self,
        matches: GermlineMatches,
        *,
        consensus_count: Any = None,
        duplicate_count: Any = None,
        umi_count: Any = None,
        merged: Any = None,
        repertoire_id: str | Sequence[str] | None = None,
        cell_id: Sequence[str | None] | None = None,
    ) -> pa.RecordBatch:
        """One row for each read, in order.

        Counts have shape (n,), and are null where not given; `merged`, bool (n,): merged from two mates.
        `repertoire_id` is that of all reads, or of each. InvalidInput if a column has not as many values as
        there are reads.
        """
        parts = join_reads(matches, self._tables)
        facts = _Facts(parts)
        out = _Columns(self.schema)
        given = {
            "consensus_count": consensus_count,
            "duplicate_count": duplicate_count,
            "umi_count": umi_count,
            "merged_mates": merged,
            "repertoire_id": repertoire_id,
            "cell_id": cell_id,
        }
        for name, values in given.items():
            out[name] = self._given(name, values, len(matches.reads))
        self._put_read(matches, parts, facts, out)
        self._put_flags(parts, facts, out)
        self._put_junction(parts, facts, out)
        self._put_between(parts, facts, out)
        self._put_match("v", matches.v, self._tables.v, parts.reads.v, parts.layout.v, parts, out)
        self._put_d(parts, facts, out)
        self._put_match("j", matches.j, self._tables.j, parts.reads.j, parts.layout.j, parts, out)
        self._put_alignments(parts, facts, out)
        found = regions_of(parts, self._tables, self._regions)
        self._put_further_genes(found, parts, out)
        if self.settings.regions:
            self._put_regions(found, parts, out)
        out["annotation_status"] = self._statuses(parts, facts)
        return pa.record_batch([out[name] for name in self.schema.names], schema=self.schema)

    def _given(self, name: str, values: Any, n: int) -> pa.Array:
        kind = self.schema.field(name).type
        if values is None:
            return pa.nulls(n, kind)
        if isinstance(values, str):
            return pa.array([values], kind).take(pa.array(np.zeros(n, np.int64)))
        if len(values) != n:
            raise InvalidInput(name, found=f"{len(values)} values", expected=f"one for each of {n} reads")
        return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind)

    def _put_read(self, matches: GermlineMatches, parts: JoinedReads, facts: _Facts, out: _Columns) -> None:
        known = facts.has_v | facts.has_j
        locus = np.where(known, matches.germline, len(self._loci) - 1)
        out["sequence_id"] = pa.array(list(matches.reads.names), pa.string())
        out["sequence"] = text_array(parts.reads.letters, parts.reads.starts)
        out["quality"] = _quality_texts(matches.reads)
        out["locus"] = self._loci.take(pa.array(locus))
        out.put(known, rev_comp=matches.reversed)

    def _put_flags(self, parts: JoinedReads, facts: _Facts, out: _Columns) -> None:
        found, v, j = parts.layout, parts.reads.v, parts.reads.j
        productive = facts.in_frame & ~facts.stop & (found.v.shifted == 0)
        complete = (v.germline_start == 0) & (j.germline_end >= _last_codon(j))
        out.put(facts.known, vj_in_frame=facts.in_frame, stop_codon=facts.stop, productive=productive)
        out.put(facts.has_v, v_frameshift=found.v.shifted > 0)
        out.put(facts.has_j, j_frameshift=found.j.shifted > 0)
        out.put(facts.ordered, complete_vdj=complete)

    def _put_junction(self, parts: JoinedReads, facts: _Facts, out: _Columns) -> None:
        (start, end), j = facts.junction, parts.reads.j
        fwr4_end = np.minimum(j.read_end, j.read_end - j.germline_end + _last_codon(j))
        for name, low, high, known in (
            ("junction", start, end, facts.known),
            ("cdr3", start + 3, end - 3, facts.known),
            ("fwr4", end - 3, fwr4_end, facts.known & (fwr4_end > end - 3)),
        ):
            first, length = parts.reads.starts[:-1] + low, high - low
            out[name] = slices(parts.reads.letters, first, length, known)
            out[f"{name}_aa"], codons = translations(parts.reads.letters, first, length, known)
            if name == "junction":
                out.put(known, junction_length=length, junction_aa_length=codons)
            else:
                out.put(known & (length > 0), f"{name}_", start=low + 1, end=high)

    def _put_between(self, parts: JoinedReads, facts: _Facts, out: _Columns) -> None:
        found, called = parts.layout, facts.called
        begin = parts.reads.v.read_end.astype(np.int64)
        end = parts.reads.j.read_start.astype(np.int64)
        first_end = np.where(called, found.d.read_start, end)
        second = np.where(called, found.d.read_end, end)
        np1, np2 = first_end - begin, end - second
        out.put(
            facts.ordered,
            np1_length=np1,
            n1_length=np1 - found.v_p - np.where(called, found.d_p_left, found.j_p),
            p3v_length=found.v_p,
            p5j_length=found.j_p,
        )
        out.put(
            called,
            np2_length=np2,
            n2_length=np2 - found.d_p_right - found.j_p,
            p5d_length=found.d_p_left,
            p3d_length=found.d_p_right,
        )
        letters, base = parts.reads.letters, parts.reads.starts[:-1]
        out["np1"] = slices(letters, base + begin, np1, facts.ordered)
        out["np2"] = slices(letters, base + second, np2, called)

    def _put_match(
        self,
        letter: str,
        given: Found,
        table: SegmentTable,
        match: Matches,
        layout: SegmentLayout,
        parts: JoinedReads,
        out: _Columns,
    ) -> None:
        """The columns of V, or of J."""
        known = match.allele >= 0
        counts = given.alleles.sizes
        alleles = given.alleles.values + np.repeat(table.first[parts.groups], counts)
        lists = edges_of(np.where(known, counts, 0))
        names = joined_names(table.names, table.name_starts, lists, alleles[np.repeat(known, counts)])
        out[f"{letter}_call"] = text_array(names.letters, names.bounds, known)
        identity = np.round(layout.equal / np.maximum(layout.columns, 1), _PLACES)
        out.put(known, f"{letter}_", score=given.scores, identity=identity, support=given.support)
        out.put(known, f"{letter}_", **_coordinates(match))
        out[f"{letter}_cigar"] = cigar_texts(parts.reads, match)

    def _put_d(self, parts: JoinedReads, facts: _Facts, out: _Columns) -> None:
        called, d, j = facts.called, parts.d, parts.reads.j
        out["d_call"] = self._d_calls(parts.layout.d, parts.groups)
        out["d_cigar"] = cigar_texts(parts.reads, d)
        length = (d.read_end - d.read_start).astype(np.int64)
        # Places for a match of this length, in the read and in the D alleles that may join this J.
        support = np.zeros(called.size)
        room = (j.read_start - parts.reads.v.read_end)[called] - length[called] + 1
        chances = room * self._tables.d_places[j.allele[called], length[called]]
        support[called] = chances * 0.25 ** length[called]
        out.put(called, "d_", score=length, identity=np.ones(called.size), support=support, **_coordinates(d))
        first = d.read_start.astype(np.int64) - d.germline_start
        out.put(called & facts.known, d_frame=1 + (facts.junction[0] - first) % 3)

    def _d_calls(self, calls: DCalls, groups: NDArray[np.int64]) -> pa.Array:
        return names_of_ties(calls.allele, calls.ties, groups, self._d_names)

    def _put_regions(self, found: Regions, parts: JoinedReads, out: _Columns) -> None:
        letters, base = parts.reads.letters, parts.reads.starts[:-1]
        for k, name in enumerate(REGIONS):
            begin, end = found.begin[:, k].astype(np.int64), found.end[:, k].astype(np.int64)
            known = end > begin
            skip = np.minimum(found.skip[:, k], end - begin)
            out[name] = slices(letters, base + begin, end - begin, known)
            out[f"{name}_aa"], _ = translations(letters, base + begin + skip, end - begin - skip, known)
            out.put(known, f"{name}_", start=begin + 1, end=end)
            out.put(known, f"{name}_", replacements=found.replaced[:, k], silent_mutations=found.silent[:, k])

    def _put_further_genes(self, found: Regions, parts: JoinedReads, out: _Columns) -> None:
        """The columns of C, and of a second D."""
        out["c_call"] = names_of_ties(found.c, found.c_ties, parts.groups, self._c_genes)
        out["isotype"] = isotypes(out["c_call"])
        called = found.d.allele >= 0
        out["d2_call"] = self._d_calls(found.d, parts.groups)
        out.put(called, "d2_", **_coordinates(d_matches(found.d, parts.groups, self._tables.d)))

    def _put_alignments(self, parts: JoinedReads, facts: _Facts, out: _Columns) -> None:
        found = parts.layout
        aligned = aligned_texts(parts.reads, parts.order, parts.d, found.v.columns + found.j.columns)
        written = {"sequence": aligned.read, "germline": aligned.germline}
        known = np.diff(aligned.read.bounds) > 0
        for kind, own in written.items():
            out[f"{kind}_alignment"] = text_array(own.letters, own.bounds, known)
        uncrossed = parts.order != CROSSED
        for letter, first, length, there in (
            ("v", np.zeros_like(found.v.columns), found.v.columns, facts.has_v & uncrossed),
            ("d", aligned.d_at, found.d.read_end - found.d.read_start, facts.called),
            ("j", aligned.j_at, found.j.columns, facts.has_j & uncrossed),
        ):
            out.put(there, f"{letter}_alignment_", start=first + 1, end=first + length)
            if self.settings.alignment_parts:
                for kind, own in written.items():
                    begin = own.bounds[:-1].astype(np.int64) + first
                    out[f"{letter}_{kind}_alignment"] = slices(own.letters, begin, length, there)
        if self.settings.alignment_parts:
            _put_translations(aligned, parts.reads.v, facts.has_v & uncrossed, out)

    def _statuses(self, parts: JoinedReads, facts: _Facts) -> pa.Array:
        found, limits = parts.layout, self.settings
        length = np.diff(parts.reads.starts)
        holds = {
            "too_short": length < limits.min_length,
            "too_long": length > limits.max_length,
            "no_v": ~facts.has_v,
            "no_j": ~facts.has_j,
            "wrong_order": parts.order == CROSSED,
            "too_many_errors": found.errors > limits.max_error_rate * found.compared,
            "no_anchor": ~facts.known,
            "low_quality": found.worst < limits.min_junction_quality,
        }
        if limits.productive_only:
            holds["out_of_frame"] = ~facts.in_frame | (found.v.shifted > 0)
            holds["stop_codon"] = facts.stop
        codes = [STATUSES.index(name) for name in holds]
        status = np.select(list(holds.values()), codes, STATUSES.index("ok"))
        return pa.array(STATUSES, pa.string()).take(pa.array(status))


class _Facts:
    """Which parts of reads are known; `junction`: where it starts and ends."""

    def __init__(self, parts: JoinedReads) -> None:
        found = parts.layout
        self.has_v: _Flags = parts.reads.v.allele >= 0
        self.has_j: _Flags = parts.reads.j.allele >= 0
        self.ordered: _Flags = parts.order == ORDERED
        self.called: _Flags = found.d.allele >= 0
        self.known: _Flags = found.junction_start >= 0
        self.junction = found.junction_start.astype(np.int64), found.junction_end.astype(np.int64)
        self.in_frame: _Flags = self.known & ((self.junction[1] - self.junction[0]) % 3 == 0)
        self.stop: _Flags = found.stops > 0


class _Columns(dict[str, pa.Array]):
    """The columns of a batch under way, by name."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__()
        self._schema = schema

    def put(self, known: _Flags, prefix: str = "", /, **columns: NDArray[Any]) -> None:
        """Add columns, (n,), null where not `known`; `prefix` is the beginning of all names."""
        mask = None if known.all() else ~known
        for name, values in columns.items():
            self[prefix + name] = pa.array(values, self._schema.field(prefix + name).type, mask=mask)


def isotypes(c_call: pa.Array) -> pa.Array:
    """Isotypes (``IgG``) of lists of genes of heavy chains, null where they differ or there are none."""
    found = pc.dictionary_encode(c_call)
    names = [_isotype(names) for names in found.dictionary.to_pylist()]
    return pa.array(names, pa.string()).take(found.indices)


def _isotype(genes: str) -> str | None:
    found = {gene[3:4] for gene in genes.split(",") if gene.startswith("IGH")}
    return f"Ig{found.pop()}" if len(found) == 1 else None


def _last_codon(j: Matches) -> NDArray[np.int64]:
    """End of the last whole codon of the J allele of each read."""
    if not j.alleles.anchors.size:
        return np.zeros(j.allele.size, np.int64)
    number = np.maximum(j.allele, 0)
    anchor = j.alleles.anchors[number]
    found: NDArray[np.int64] = anchor + (np.diff(j.alleles.starts)[number] - anchor) // 3 * 3
    return found


def _put_translations(aligned: AlignedTexts, v: Matches, known: _Flags, out: _Columns) -> None:
    """Translations of the alignments, in the frame of V."""
    anchors = v.alleles.anchors
    anchor = anchors[np.maximum(v.allele, 0)] if anchors.size else np.full(v.allele.size, -1)
    skipped = (anchor - v.germline_start) % 3
    for kind, written in (("sequence", aligned.read), ("germline", aligned.germline)):
        bare = without_gaps(written)
        begin = bare.bounds[:-1].astype(np.int64) + skipped
        size = np.maximum(bare.bounds[1:] - begin, 0)
        out[f"{kind}_alignment_aa"], _ = translations(bare.letters, begin, size, known & (anchor >= 0))


def _quality_texts(reads: ReadBlock) -> pa.Array:
    """Qualities as characters. A first one of 1 is given as 2, see `_QUOTE`."""
    if reads.qualities is None:
        return pa.nulls(len(reads), pa.string())
    letters = reads.qualities + np.uint8(33)
    first = reads.starts[:-1][reads.lengths > 0]
    letters[first[letters[first] == _QUOTE]] += 1
    return text_array(letters, reads.starts)


def _coordinates(match: Matches) -> dict[str, NDArray[Any]]:
    """1-based closed coordinates of a match."""
    return {
        "sequence_start": match.read_start + 1,
        "sequence_end": match.read_end,
        "germline_start": match.germline_start + 1,
        "germline_end": match.germline_end,
    }
