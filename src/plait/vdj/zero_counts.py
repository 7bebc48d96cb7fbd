"""Why counted rows have count 0, read off the region columns."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.vdj.models import PathModel

__all__ = ["REASONS", "zero_reasons"]

#: An end that matches less than this is hardly ever trimmed so far.
_SHORT_MATCH = 6
#: Reasons in the order in which they are tried, in plain words.
REASONS: Mapping[str, str] = MappingProxyType(
    {
        "v_mismatch": f"V matches fewer than {_SHORT_MATCH} nt: call, allele or anchor in doubt",
        "j_mismatch": f"J matches fewer than {_SHORT_MATCH} nt: call, allele or anchor in doubt",
        "gap": "V and J leave more nt than the longest D and both N regions can fill",
        "one_side": "no D match lies so that both N regions stay within their limits",
    }
)


def zero_reasons(table: pa.Table, model: PathModel) -> dict[str, int]:
    """Rows of a counted V-D-J table with count 0, by the first of `REASONS` that holds.

    Parameters
    ----------
    table
        Rows with the columns status, path_count, v_match_length, j_match_length, d_match_length and vj_gap.
    model
        The dp2 model that was counted.
    """
    ok = pc.equal(table["status"], "ok")
    # Not to be exact: counts above 2^53 only have to stay different from zero.
    zero = pc.fill_null(pc.equal(table["path_count"].cast(pa.float64(), safe=False), 0.0), False)
    rows = table.filter(pc.and_(ok, zero))
    v, j, d, gap = (
        rows[name].to_numpy() for name in ("v_match_length", "j_match_length", "d_match_length", "vj_gap")
    )
    insertions = sum(model.nu if nu is None else nu for nu in (model.nu_vd, model.nu_dj))
    holds = (v < _SHORT_MATCH, j < _SHORT_MATCH, gap - d > insertions, np.ones(rows.num_rows, np.bool_))
    found = {}
    left = np.ones(rows.num_rows, np.bool_)
    for name, here in zip(REASONS, holds, strict=True):
        found[name] = int((left & here).sum())
        left &= ~here
    return found
