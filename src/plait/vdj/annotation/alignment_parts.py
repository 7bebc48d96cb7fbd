"""Parts of the alignments as columns of their own: each gene's, and translations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.schedules.joined_texts import Columns, Written
from plait.vdj.annotation.germline_tables import GermlineTables
from plait.vdj.annotation.junctions import JoinedReads
from plait.vdj.annotation.text_columns import slices, translations

__all__ = ["Place", "alignment_parts"]

_GAP = ord("-")


class Place(NamedTuple):
    """Where a gene lies in the alignments; shape (n,) each.

    Attributes
    ----------
    first, length
        Columns.
    known
        Whether it is there.
    """

    first: NDArray[Any]
    length: NDArray[Any]
    known: NDArray[np.bool_]


def alignment_parts(
    reads: JoinedReads, tables: GermlineTables, aligned: Columns, places: Mapping[str, Place]
) -> dict[str, pa.Array]:
    """The columns `plait.vdj.annotation.airr_columns.ALIGNMENT_PARTS`.

    Parameters
    ----------
    reads
        The reads.
    tables
        The germline.
    aligned
        Reads and germline as aligned.
    places
        Where in that V, D and J (``"v"``, ``"d"``, ``"j"``) lie.
    """
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
