"""Region calls: how far V and J match, where the longest D match lies, and what that makes of N and P.

All coordinates are 0-based in the junction, ends exclusive. V, J and D are matched greedily, with their
palindromic extensions of up to pi nucleotides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plait.schedules.chain_tables import REGION_FIELDS
from plait.vdj.germline import GermlineSet
from plait.vdj.germline.germline_set import Chain
from plait.vdj.items import Items
from plait.vdj.models import PathModel

__all__ = ["D_REGION_COLUMNS", "REGION_COLUMNS", "region_columns"]

_SPANS = ("n1", "n2", "ndn")
#: Names of the region columns, in output order.
REGION_COLUMNS = (
    "v_match_length",
    "j_match_length",
    "d_match_length",
    "d_match_start",
    "d_match_end",
    "vj_gap",
    "vd_gap",
    "dj_gap",
    "n1_length",
    "n2_length",
    "p3v_length",
    "p5d_length",
    "p3d_length",
    "p5j_length",
    *(f"{span}_{base}" for span in _SPANS for base in "acgt"),
)
#: Region columns that mean nothing where no D nucleotide occurs.
D_REGION_COLUMNS = frozenset(
    {"d_match_start", "d_match_end", "vd_gap", "dj_gap", "n2_length", "p5d_length", "p3d_length"}
    | {f"n2_{base}" for base in "acgt"}
)


def region_columns(
    germline: GermlineSet, model: PathModel, chain: Chain, regions: NDArray[np.int64], items: Items
) -> dict[str, NDArray[np.int32]]:
    """Region columns of n rows, from the raw region calls.

    Parameters
    ----------
    germline, model, chain
        What was counted.
    regions
        int64 (n, len(REGION_FIELDS)).
    items
        The items: the first one of each row gives its V and J allele.
    """
    first = items.first
    field = dict(zip(REGION_FIELDS, regions.T, strict=True))
    length = items.texts.length[first]
    v_end = np.array([len(a.cdr3_end or "") for a in germline.v])[items.texts.prefix[first]]
    j_end = np.array([len(a.cdr3_end or "") for a in germline.j])[items.texts.suffix[first]]
    m_v, m_j, m_d = field["prefix_match"], field["suffix_match"], field["fragment_match"]
    d_start, d_end = field["fragment_start"], field["fragment_end"]
    has_d = m_d > 0
    j_start = length - m_j
    n1_end = np.where(has_d, d_start, j_start)
    n2_start = np.where(has_d, d_end, j_start)
    columns = {
        "v_match_length": m_v,
        "j_match_length": m_j,
        "d_match_length": m_d,
        "d_match_start": d_start,
        "d_match_end": d_end,
        "vj_gap": j_start - m_v,
        "vd_gap": d_start - m_v,
        "dj_gap": j_start - d_end,
        "n1_length": np.maximum(n1_end - m_v, 0),
        "n2_length": np.maximum(j_start - n2_start, 0),
        "p3v_length": np.maximum(m_v - v_end, 0),
        "p5d_length": field["fragment_extended_left"],
        "p3d_length": field["fragment_extended_right"],
        "p5j_length": np.maximum(m_j - j_end, 0),
    }
    for span, part in (("n1", "before"), ("n2", "after"), ("ndn", "between")):
        columns.update({f"{span}_{base}": field[f"{part}_{bit}"] for bit, base in enumerate("atcg")})
    return {name: columns[name].astype(np.int32) for name in REGION_COLUMNS}
