"""Where annotated reads differ from the germline outside the CDR3, by their bases and coordinates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.schedules.span_differences import Differing, Spans
from plait.targets.span_kernels import count_differing_kernel, list_differing_kernel
from plait.vdj.annotation.allele_groups import NO_BASE, SegmentAlleles
from plait.vdj.annotation.row_values import cigars, integers, texts

__all__ = [
    "REASONS",
    "AlignedSpans",
    "Differences",
    "aligned_spans",
    "compared_spans",
    "differences",
    "disagreeing",
]

#: Why a row has no alignment that can be compared; the first stands for one that has.
REASONS = ("", "outside", "gap", "no_alignment")

#: Larger shares of differing bases mean coordinates that do not fit the germline set.
_MOST_DIFFERING = 0.3
#: Pairs that tell whether a read stands as its coordinates count.
_FEW_PAIRS = 40


class AlignedSpans(NamedTuple):
    """Aligned parts without gaps, 0-based.

    Attributes
    ----------
    reason
        Why a row has none, an index into `REASONS`; int64, shape (n,).
    read, germline
        Where the alignment starts in the read, in its orientation, and in the allele; int64, shape (n,).
    length
        Aligned pairs; int64, shape (n,).
    """

    reason: NDArray[np.int64]
    read: NDArray[np.int64]
    germline: NDArray[np.int64]
    length: NDArray[np.int64]


class Differences(NamedTuple):
    """Pairs of different bases.

    Attributes
    ----------
    row
        The row; int64, shape (d,).
    place
        How far from the beginning of the alignment; int64, shape (d,).
    base
        Code of the read's base, `NO_BASE` where it is not known; int8, shape (d,).
    bad
        Rows that differ too much to be trusted; bool, shape (n,).
    """

    row: NDArray[np.int64]
    place: NDArray[np.int64]
    base: NDArray[np.int8]
    bad: NDArray[np.bool_]


def aligned_spans(
    batch: pa.RecordBatch, part: str, alleles: NDArray[np.int64], lengths: NDArray[np.int64], *, source: str
) -> AlignedSpans:
    """Read the coordinates of one segment.

    Parameters
    ----------
    batch
        AIRR rows. A start that has no coordinate is taken from the cigar, and so is the length.
    part
        ``"v"`` or ``"j"``.
    alleles
        Bases of the allele of each row; 0 where there is none.
    lengths
        Bases of each read.
    source
        Name of the table, for error messages.
    """
    at = {
        name: integers(batch, f"{part}_{name}", source=source)
        for name in ("sequence_start", "sequence_end", "germline_start", "germline_end")
    }
    told = cigars(texts(batch, f"{part}_cigar"))
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

    Parameters
    ----------
    letters, starts
        Codes of the bases of the reads as they stand in the table, and where each begins and the last ends.
    reverse
        Whether the coordinates are those of the reverse complement.
    spans
        What is aligned; rows with a reason, or of length 0, have nothing to compare.
    alleles
        Allele of each row.
    segment
        The alleles.
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
