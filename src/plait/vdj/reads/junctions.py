"""Where V, D, J and the junction lie in reads, and the columns of text that are cut from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.errors import Unsupported
from plait.vdj.reads.allele_alignment import GermlineMatches, SegmentMatches
from plait.vdj.reads.d_calls import (
    Columns,
    Entries,
    JoinedTexts,
    Layout,
    Matches,
    Written,
    cut_overlaps_kernel,
    join_slices_kernel,
    lay_out_kernel,
    read_triplets_kernel,
    write_columns_kernel,
    write_runs_kernel,
)
from plait.vdj.reads.germline_index import GermlineTables, SegmentTable


class JoinedReads(NamedTuple):
    """Reads, with V and J matches that do not overlap any more, and where their parts lie.

    `order`, uint8 (n,), as `plait.vdj.reads.d_calls.cut_overlaps` says. `d` are the matches with the called D
    alleles; `d_choice`, int64 (n,), bits of the D alleles of the set that match as well as the called one.
    `groups`, int64 (n,): germline set, 0 where there is none.
    """

    texts: JoinedTexts
    order: NDArray[np.uint8]
    layout: Layout
    d_choice: NDArray[np.int64]
    d: Matches
    groups: NDArray[np.int64]


def join_reads(matches: GermlineMatches, tables: GermlineTables) -> JoinedReads:
    """Find the parts of reads."""
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


_MOST = 2**31 - 1


def text_array(
    letters: NDArray[np.uint8], bounds: NDArray[Any], known: NDArray[np.bool_] | None = None
) -> pa.Array:
    """A string array over ASCII letters, which it keeps alive; null where not `known`.

    `bounds` are (n + 1,) offsets.
    """
    if int(bounds[-1]) > _MOST:
        raise Unsupported(
            f"a block of {int(bounds[-1]):,} letters", why=f"a column of a block holds {_MOST:,} at most"
        )
    nulls = None
    if known is not None and not known.all():
        nulls = pa.py_buffer(np.packbits(known, bitorder="little"))
    offsets = pa.py_buffer(np.ascontiguousarray(bounds, np.int32))
    return pa.StringArray.from_buffers(bounds.size - 1, offsets, pa.py_buffer(letters), nulls)


def slices(
    letters: NDArray[np.uint8],
    first: NDArray[np.int64],
    length: NDArray[np.int64],
    known: NDArray[np.bool_],
) -> pa.Array:
    """Slices of letters, null where not `known`; `first` and `length` have shape (n,)."""
    length = np.where(known, length, 0)
    out = _text_room(int(length.sum()), first.size)
    join_slices_kernel(letters, first, length, np.arange(first.size + 1), out)
    return text_array(out.letters, out.bounds, known)


def translations(
    letters: NDArray[np.uint8],
    first: NDArray[np.int64],
    length: NDArray[np.int64],
    known: NDArray[np.bool_],
    tables: GermlineTables,
) -> tuple[pa.Array, NDArray[np.int64]]:
    """Amino acids of the whole codons of `slices`, and how many each has."""
    codons = np.where(known, length // 3, 0)
    out = _text_room(int(codons.sum()), first.size)
    read_triplets_kernel(letters, first, 3 * codons, tables.layout, out)
    return text_array(out.letters, out.bounds, known), codons


def calls(found: SegmentMatches, table: SegmentTable, reads: JoinedReads, known: Any) -> pa.Array:
    """Names of all alleles with the best score, with commas between; null where not `known`."""
    counts = np.diff(found.allele_starts)
    alleles = found.alleles + np.repeat(table.first[reads.groups], counts)
    keep = np.repeat(known, counts)
    alleles = alleles[keep]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.where(known, counts, 0))])
    length = np.diff(table.name_starts)[alleles]
    out = _text_room(int(length.sum()) + alleles.size, counts.size)
    join_slices_kernel(table.names, table.name_starts[:-1][alleles], length, starts, out)
    return text_array(out.letters, out.bounds, known)


def d_calls(reads: JoinedReads, tables: GermlineTables) -> pa.Array:
    """Names of the D alleles with the longest match, that of the coordinates first."""
    if not tables.d.alleles:
        return pa.nulls(reads.groups.size, pa.string())
    keys = np.stack([reads.groups, reads.layout.fragment.astype(np.int64), reads.d_choice], axis=1)
    kinds, place = np.unique(keys, axis=0, return_inverse=True)
    names: list[str | None] = []
    for group, first, bits in kinds.tolist():
        if first < 0:
            names.append(None)
            continue
        alleles = tables.d.alleles[tables.d.first[group] : tables.d.first[group + 1]]
        others = [k for k in range(len(alleles)) if bits >> k & 1 and k != first]
        names.append(",".join(alleles[k].name for k in (first, *others)))
    return pa.array(names, pa.string()).take(pa.array(place.ravel()))


def cigars(reads: JoinedReads, entries: Entries, matches: Matches) -> pa.Array:
    """CIGAR strings of the whole reads, null without a match."""
    n = matches.entry.size
    # A run of pairs can alternate, two characters a pair; any number has at most ten digits.
    pairs = int(matches.runs[: int(matches.run_starts[-1]), 1].sum(dtype=np.int64))
    out = _text_room(2 * pairs + 12 * len(matches.runs) + 44 * n, n)
    write_runs_kernel(reads.texts.letters, reads.texts.starts, entries, matches, out)
    return text_array(out.letters, out.bounds, matches.entry >= 0)


def aligned_texts(reads: JoinedReads, tables: GermlineTables) -> tuple[Columns, pa.Array, pa.Array]:
    """Reads and germline as aligned, and where in them D and J begin."""
    n = reads.order.size
    texts = reads.texts
    gap = np.where((reads.texts.prefix.entry >= 0) & (reads.texts.suffix.entry >= 0),
                   np.maximum(texts.suffix.text_start - texts.prefix.text_end, 0), 0)  # fmt: skip
    size = int((reads.layout.prefix_columns + reads.layout.suffix_columns + gap).sum(dtype=np.int64))
    columns = Columns(_text_room(size, n), _text_room(size, n), np.zeros(n, np.int32), np.zeros(n, np.int32))
    write_columns_kernel(texts, reads.order, reads.layout, tables.d.entries, reads.d.entry, columns)
    known = np.diff(columns.text.bounds) > 0
    read, germline = (
        text_array(written.letters, written.bounds, known) for written in (columns.text, columns.entry)
    )
    return columns, read, germline


def _text_room(letters: int, n: int) -> Written:
    if letters > _MOST:
        raise Unsupported(
            f"a block of {letters:,} letters", why=f"a column of a block holds {_MOST:,} at most"
        )
    return Written(np.zeros(letters, np.uint8), np.zeros(n + 1, np.int32))
