"""Where V, D, J and the junction lie in reads, from their matches with the germline.

1. Where both the V and the J alignment claim bases of the read, they are cut at the place that leaves most
   equal bases to them, V first among equal places; after a cut each ends there with an equal base.
2. The junction goes from the Cys codon of V to the end of the Phe or Trp codon of J, as the alignments place
   them. Of a codon outside its alignment, the place follows from the diagonal of the nearer end.
3. D is the longest exact match, between V and J, of an allele that may join this J; of several the leftmost.
4. P nucleotides mirror an end that is not shortened and stand next to it: V and J first, then the ends of D.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.schedules.joined_cuts import JoinedTexts, Matches
from plait.schedules.joined_layout import Layout
from plait.targets.joined_kernels import cut_overlaps_kernel, lay_out_kernel
from plait.vdj.annotation.germline_tables import GermlineTables, SegmentTable
from plait.vdj.annotation.matches import GermlineMatches, SegmentMatches

__all__ = ["JoinedReads", "join_reads"]


class JoinedReads(NamedTuple):
    """Reads and where their parts lie.

    Attributes
    ----------
    texts
        The reads with their V and J matches, which do not overlap any more.
    order
        uint8 (n,): how V and J lie, see `plait.schedules.joined_cuts`.
    layout
        What was found.
    d_choice
        int64 (n,): bits of the D alleles of the read's set that match as well as the called one.
    d
        The matches with the called D alleles.
    groups
        int64 (n,): germline set of each read, 0 where there is none.
    """

    texts: JoinedTexts
    order: NDArray[np.uint8]
    layout: Layout
    d_choice: NDArray[np.int64]
    d: Matches
    groups: NDArray[np.int64]


def join_reads(matches: GermlineMatches, tables: GermlineTables) -> JoinedReads:
    """Find the parts of reads.

    Parameters
    ----------
    matches
        What the reads match.
    tables
        The germline sets that were matched, and limits.
    """
    n = len(matches.reads)
    letters = _plain(matches.reads.letters, np.uint8)
    starts = _plain(matches.reads.starts, np.int64)
    quality = matches.reads.qualities
    qualities = np.zeros(0, np.uint8) if quality is None else _plain(quality, np.uint8)
    groups = np.maximum(matches.germline.astype(np.int64), 0)
    known = matches.germline >= 0
    v = _matches(matches.v, tables.v, groups, known)
    j = _matches(matches.j, tables.j, groups, known)
    given = JoinedTexts(letters, starts, tables.v.entries, tables.j.entries, v, j)
    cut_v, cut_j = (_room(n, len(m.runs)) for m in (v, j))
    order = np.zeros(n, np.uint8)
    marks = np.zeros((2, int(np.diff(starts).max(initial=0)) + 1), np.uint8)
    cut_overlaps_kernel(given, marks, cut_v, cut_j, order)
    texts = given._replace(prefix=cut_v, suffix=cut_j)
    layout = Layout(*(np.zeros(n, np.int32) for _ in Layout._fields))
    choice = np.zeros(n, np.int64)
    lay_out_kernel(texts, qualities, groups, order, tables.layout, layout, choice)
    return JoinedReads(texts, order, layout, choice, _d_matches(layout, groups, tables), groups)


def _plain(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    """The values as the kernels are compiled for: contiguous, writable."""
    return np.require(values, kind, ("C", "A", "W"))


def _matches(
    found: SegmentMatches, table: SegmentTable, groups: NDArray[np.int64], known: NDArray[np.bool_]
) -> Matches:
    entry = np.full(groups.size, -1, np.int64)
    some = (np.diff(found.allele_starts) > 0) & known
    first = found.allele_starts[:-1][some]
    entry[some] = found.alleles[first] + table.first[groups[some]]
    return Matches(
        entry,
        text_start=_plain(found.read_start, np.int32),
        text_end=_plain(found.read_end, np.int32),
        entry_start=_plain(found.germline_start, np.int32),
        entry_end=_plain(found.germline_end, np.int32),
        runs=_plain(found.runs, np.int32),
        run_starts=_plain(found.run_starts, np.int64),
    )


def _room(n: int, runs: int) -> Matches:
    place = np.zeros((4, n), np.int32)
    return Matches(
        np.zeros(n, np.int64),
        place[0],
        place[1],
        place[2],
        place[3],
        np.zeros((runs, 2), np.int32),
        np.zeros(n + 1, np.int64),
    )


def _d_matches(layout: Layout, groups: NDArray[np.int64], tables: GermlineTables) -> Matches:
    called = layout.fragment >= 0
    length = layout.fragment_end - layout.fragment_start
    runs = np.zeros((int(called.sum()), 2), np.int32)
    runs[:, 1] = length[called]
    return Matches(
        np.where(called, tables.d.first[groups] + layout.fragment, -1),
        layout.fragment_start,
        layout.fragment_end,
        layout.fragment_place,
        (layout.fragment_place + length).astype(np.int32),
        runs,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(called, dtype=np.int64)]),
    )
