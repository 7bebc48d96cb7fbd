"""What annotated reads say about the germline outside the CDR3, collected in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.checkpoints import letters_of
from plait.lang.compile import kernel, shared
from plait.vdj.alleles.sites import (
    BASE_CODE,
    NO_BASE,
    ClonotypeSample,
    RowFacts,
    SegmentAlleles,
    pack,
    salted,
    text_sums,
)
from plait.vdj.calls import CallResolver
from plait.vdj.germline import GermlineSet
from plait.vdj.reads.columns import booleans, integers, read_cigars, texts

UNKNOWN = 4


class Spans(NamedTuple):
    """Spans of n texts to compare with spans of entries; symbols are int8.

    `text_starts`, int64 (n + 1,), are offsets; `mirrored`, bool (n,): the text is read mirrored. Where a span
    begins in the text, as it is read, and among the symbols of the entries, and its `lengths`: int64 (n,).
    """

    texts: Any
    entries: Any
    text_starts: Any
    mirrored: Any
    text_offsets: Any
    entry_places: Any
    lengths: Any


class Differing(NamedTuple):
    """Differing places: text, place in the span (int64), symbol of the text, perhaps `UNKNOWN` (int8)."""

    text: Any
    place: Any
    symbol: Any


@shared
def _symbol(spans: Any, text: int, place: int) -> int:
    """Symbol of a text as it is read."""
    at = spans.text_offsets[text] + place
    if spans.mirrored[text]:
        found = int(spans.texts[spans.text_starts[text + 1] - 1 - at])
        return found if found == UNKNOWN else 3 - found
    return int(spans.texts[spans.text_starts[text] + at])


@shared
def count_differing(spans: Any, text: int, most: int) -> int:
    """Differing symbols, both known, among at most so many of the first."""
    count = 0
    for place in range(min(spans.lengths[text], most)):
        own = int(spans.entries[spans.entry_places[text] + place])
        found = _symbol(spans, text, place)
        if found != own and found != UNKNOWN and own != UNKNOWN:
            count += 1
    return count


@shared
def list_differing(spans: Any, text: int, out: Any, at: int) -> Any:
    """List, from `at` on, where a text differs or is not known, and the entry is; returns the end."""
    for place in range(spans.lengths[text]):
        own = int(spans.entries[spans.entry_places[text] + place])
        found = _symbol(spans, text, place)
        if found != own and own != UNKNOWN:
            out.text[at] = text
            out.place[at] = place
            out.symbol[at] = found
            at += 1
    return at


@kernel
def count_differing_kernel(spans: Any, most: int, counts: Any) -> None:
    """Counts for all texts, see `plait.vdj.alleles.evidence.count_differing`."""
    for text in range(counts.size):
        counts[text] = count_differing(spans, text, most)


@kernel
def list_differing_kernel(spans: Any, out: Any) -> int:
    """Differing places of all texts; returns their number. `out` has room for all places."""
    at = 0
    for text in range(spans.lengths.size):
        at = list_differing(spans, text, out, at)
    return at


#: Why a row has no alignment that can be compared; the first stands for one that has.
REASONS = ("", "outside", "gap", "no_alignment")

#: Larger shares of differing bases mean coordinates that do not fit the germline set.
_MOST_DIFFERING = 0.3
#: Pairs that tell whether a read stands as its coordinates count.
_FEW_PAIRS = 40


class AlignedSpans(NamedTuple):
    """Aligned parts without gaps, 0-based; int64, shape (n,) each.

    `reason` is why a row has none, an index into `REASONS`. `read` and `germline`: where the alignment starts
    in the read, in its orientation, and in the allele; `length`: aligned pairs.
    """

    reason: NDArray[np.int64]
    read: NDArray[np.int64]
    germline: NDArray[np.int64]
    length: NDArray[np.int64]


class Differences(NamedTuple):
    """Pairs of different bases, d of them.

    `row` and `place`, int64 (d,): the row, and how far from the beginning of the alignment; `base`,
    int8 (d,): code of the read's base, `NO_BASE` where not known. `bad`, bool (n,): rows that differ too much
    to be trusted.
    """

    row: NDArray[np.int64]
    place: NDArray[np.int64]
    base: NDArray[np.int8]
    bad: NDArray[np.bool_]


def aligned_spans(
    batch: pa.RecordBatch, part: str, alleles: NDArray[np.int64], lengths: NDArray[np.int64], *, source: str
) -> AlignedSpans:
    """Read the coordinates of one segment, ``"v"`` or ``"j"``, from AIRR rows.

    A start that has no coordinate is taken from the cigar, and so is the length. `alleles` and `lengths` are
    the bases of the allele of each row, 0 where there is none, and of the read; `source` is named in errors.
    """
    at = {
        name: integers(batch, f"{part}_{name}", source=source)
        for name in ("sequence_start", "sequence_end", "germline_start", "germline_end")
    }
    told = read_cigars(texts(batch, f"{part}_cigar"))
    read = np.where(at["sequence_start"] > 0, at["sequence_start"] - 1, told.skipped)
    germline = np.where(at["germline_start"] > 0, at["germline_start"] - 1, told.missing)
    given = np.where(at["sequence_end"] > 0, at["sequence_end"] - read, -1)
    length = np.where(told.pairs > 0, told.pairs, given)
    along = np.where(at["germline_end"] > 0, at["germline_end"] - germline, length)
    gap = (told.gaps > 0) | (given != length) & (given >= 0) | (along != length)
    outside = (read + length > lengths) | (germline + length > alleles)
    reason = np.zeros(length.size, np.int64)
    for name, holds in (("outside", outside), ("gap", gap), ("no_alignment", length <= 0)):
        reason[holds] = REASONS.index(name)
    return AlignedSpans(reason, read, germline, length)


def compared_spans(
    letters: NDArray[np.int8],
    starts: NDArray[np.int64],
    reverse: NDArray[np.bool_],
    spans: AlignedSpans,
    alleles: NDArray[np.int64],
    segment: SegmentAlleles,
) -> Spans:
    """What to compare.

    `letters` are codes of the bases of the reads as they stand in the table, with (n + 1,) offsets `starts`;
    where `reverse`, the coordinates are those of the reverse complement. Spans with a reason, or of length 0,
    have nothing to compare.
    """
    return Spans(
        letters,
        segment.letters,
        starts,
        reverse,
        spans.read,
        segment.starts[alleles] + spans.germline,
        np.where(spans.reason == 0, spans.length, 0),
    )


def disagreeing(spans: Spans) -> NDArray[np.int64]:
    """How many of the first 40 pairs of each alignment are of different bases."""
    counts = np.zeros(spans.lengths.size, np.int64)
    count_differing_kernel(spans, _FEW_PAIRS, counts)
    return counts


def differences(spans: Spans) -> Differences:
    """Compare reads with their alleles."""
    pairs = int(spans.lengths.sum())
    out = Differing(np.empty(pairs, np.int64), np.empty(pairs, np.int64), np.empty(pairs, np.int8))
    n = list_differing_kernel(spans, out)
    row, place, base = out.text[:n], out.place[:n], out.symbol[:n]
    counted = np.bincount(row[base != NO_BASE], minlength=spans.lengths.size)
    bad = counted > np.maximum(_MOST_DIFFERING * spans.lengths, 3)
    return Differences(row, place, base, bad)


#: Most clonotypes of a gene that are looked at, unless the caller says otherwise.
MOST_CLONOTYPES = 2000

_REQUIRED = ("sequence", "v_call", "j_call", "junction")
_COUNTS = ("duplicate_count", "consensus_count")
_USED = frozenset(
    [*_REQUIRED, *_COUNTS, "annotation_status", "rev_comp", "v_cigar", "j_cigar"]
    + [f"{part}_{of}_{end}" for part in "vj" for of in ("sequence", "germline") for end in ("start", "end")]
)
_STATUS = "annotation_status"
_MOST_READS = 1 << 30


class AlleleEvidence:
    """Differences between annotated reads and the germline, by clonotype.

    A clonotype is a junction with a V and a J gene. Of every gene (more exactly, of a group of its alleles)
    the clonotypes with the smallest hashes are kept, at most `most_clonotypes` (InvalidInput if below 1),
    with all of their reads: so memory is bounded, and the result depends neither on the order of the rows nor
    on how they are cut into batches. `segments` and `samples` have keys ``"V"`` and ``"J"``.
    """

    def __init__(self, germline: GermlineSet, *, most_clonotypes: int = MOST_CLONOTYPES) -> None:
        if most_clonotypes < 1:
            raise InvalidInput("most_clonotypes", found=most_clonotypes, expected="at least 1")
        self.germline = germline
        self.rows = 0
        self.segments = {"V": SegmentAlleles(germline, "V"), "J": SegmentAlleles(germline, "J")}
        self.samples = {
            name: ClonotypeSample(len(segment.groups), most_clonotypes)
            for name, segment in self.segments.items()
        }
        self._calls = {
            "V": CallResolver(germline, "V", "first"),
            "J": CallResolver(germline, "J", "first"),
        }
        self._left_out: Counter[str] = Counter()

    @property
    def left_out(self) -> Mapping[str, int]:
        """Rows that are no evidence, by reason; ``v_`` and ``j_`` reasons are those of one segment alone."""
        return dict(sorted(self._left_out.items()))

    def add(self, batch: pa.RecordBatch, *, source: str = "the table") -> None:
        """Add annotated reads, AIRR columns typed or text.

        Needed are sequence, v_call, j_call, junction; for V and J the cigar, or start and end in the read and
        in the germline; rev_comp, and duplicate_count or consensus_count, where there are such. Rows whose
        annotation_status is not ``ok`` are left out. FormatError, which names `source`, if a column is
        missing or holds something else.
        """
        absent = [name for name in _REQUIRED if name not in batch.schema.names]
        if absent:
            raise FormatError(
                source,
                found=f"no column {', '.join(absent)}",
                expected="annotated reads with their sequences (AIRR Rearrangement)",
                hint="plait vdj annotate writes them",
            )
        self.rows += batch.num_rows
        batch = batch.select([name for name in batch.schema.names if name in _USED])
        free = self._annotated(batch)
        for name in ("sequence", "junction"):
            missing = free & np.asarray(texts(batch, name).is_null())
            self._leave_out(f"missing_{name}", int(missing.sum()))
            free &= ~missing
        calls = {name: self._called(name, batch, free) for name in ("V", "J")}
        chosen = np.flatnonzero(free)
        if not chosen.size:
            return
        shared = _Shared(batch.take(pa.array(chosen)), source)
        called = {name: found[chosen] for name, found in calls.items()}
        spans = {name: self._spans(name, shared, called[name]) for name in ("V", "J")}
        turned = shared.reverse & self._as_stated(shared, spans, called)
        for name, other in (("V", "J"), ("J", "V")):
            partner = self.segments[other].gene_of[called[other]]
            self._add_segment(name, shared, spans[name], called[name], partner, turned)

    def _as_stated(
        self, shared: _Shared, spans: Mapping[str, AlignedSpans], called: Mapping[str, NDArray[np.int64]]
    ) -> NDArray[np.bool_]:
        """Whether the coordinates of a row are those of its reverse complement, as AIRR has it.

        Many programs write the sequence turned already, and set rev_comp nevertheless.
        """
        better = np.zeros(shared.reverse.size, np.int64)
        if shared.reverse.any():
            for name, segment in self.segments.items():
                for turned, sign in ((shared.reverse, 1), (np.zeros_like(shared.reverse), -1)):
                    found = compared_spans(
                        shared.letters, shared.starts, turned, spans[name], called[name], segment
                    )
                    better += sign * disagreeing(found)
        return better <= 0

    def _spans(self, name: str, shared: _Shared, alleles: NDArray[np.int64]) -> AlignedSpans:
        part, sizes = name.lower(), np.diff(self.segments[name].starts)[alleles]
        spans = aligned_spans(shared.batch, part, sizes, shared.lengths, source=shared.source)
        for why, rows in enumerate(np.bincount(spans.reason, minlength=len(REASONS)).tolist()):
            self._leave_out(f"{part}_{REASONS[why]}" if why else "", rows)
        return spans

    def _called(self, name: str, batch: pa.RecordBatch, free: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The first allele of each call; a row without one is counted, and no longer free."""
        codes, found = self._calls[name].resolve(texts(batch, f"{name.lower()}_call"))
        first = np.array([alleles[0] if alleles else -1 for _, alleles in found], np.int64)
        rows = np.bincount(codes[free], minlength=len(found))
        for (why, _), count in zip(found, rows.tolist(), strict=True):
            self._leave_out(why, count if why else 0)
        alleles = first[codes]
        free &= alleles >= 0
        return alleles

    def _annotated(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Rows that our own annotation did not reject; of other programs, all."""
        ok = np.ones(batch.num_rows, np.bool_)
        if _STATUS in batch.schema.names:
            stated = pc.fill_null(pc.equal(texts(batch, _STATUS), "ok"), False)
            ok = stated.to_numpy(zero_copy_only=False).copy()
            self._leave_out("not_ok", int((~ok).sum()))
        return ok

    def _leave_out(self, reason: str, rows: int) -> None:
        if rows and reason:
            self._left_out[reason] += rows

    def _add_segment(
        self,
        name: str,
        shared: _Shared,
        spans: AlignedSpans,
        alleles: NDArray[np.int64],
        partner: NDArray[np.int64],
        turned: NDArray[np.bool_],
    ) -> None:
        segment, sample = self.segments[name], self.samples[name]
        outside = _cut(spans, segment.window[alleles])
        covering = (spans.reason == 0) & (outside.length > 0)
        self._leave_out(f"{name.lower()}_within", int((spans.reason == 0).sum() - covering.sum()))
        found = differences(compared_spans(shared.letters, shared.starts, turned, outside, alleles, segment))
        self._leave_out(f"{name.lower()}_unlike", int(found.bad.sum()))
        group, hashes = segment.group_of[alleles], salted(shared.junction_sums, partner)
        # Not earlier: what is counted must not depend on what the sample already holds.
        good = covering & ~found.bad & sample.wanted(group, hashes)
        rows = np.flatnonzero(good)
        facts = RowFacts(
            group[rows],
            hashes[rows],
            partner[rows],
            np.where(shared.reverse, 0, shared.reads)[rows],
            np.where(shared.reverse, shared.reads, 0)[rows],
            shared.junction.take(pa.array(rows)),
        )
        kept = good[found.row]
        row, base = found.row[kept], found.base[kept].astype(np.int64)
        sample.add(
            facts,
            pack(alleles, outside.germline, outside.germline + outside.length)[rows],
            (np.cumsum(good) - 1)[row],
            pack(alleles[row], outside.germline[row] + found.place[kept], base),
        )


class _Shared:
    """What both segments need of the rows."""

    def __init__(self, batch: pa.RecordBatch, source: str) -> None:
        self.batch = batch
        self.source = source
        self.junction = pc.utf8_upper(texts(batch, "junction"))
        self.junction_sums = text_sums(letters_of(self.junction))
        self.reverse = booleans(batch, "rev_comp")
        letters, self.starts = letters_of(texts(batch, "sequence"))
        self.letters = BASE_CODE[letters]
        self.lengths = np.diff(self.starts)
        counts: NDArray[np.int64] = np.full(batch.num_rows, -1, np.int64)
        for name in _COUNTS:
            counts = np.where(counts > 0, counts, integers(batch, name, source=source))
        self.reads = np.clip(counts, 1, _MOST_READS)


def _cut(spans: AlignedSpans, window: NDArray[np.int64]) -> AlignedSpans:
    """Alignments without what lies in the CDR3; of length 0 where nothing is left."""
    begin = np.clip(spans.germline, window[:, 0], window[:, 1])
    end = np.maximum(np.minimum(spans.germline + spans.length, window[:, 1]), begin)
    return AlignedSpans(spans.reason, spans.read + begin - spans.germline, begin, end - begin)
