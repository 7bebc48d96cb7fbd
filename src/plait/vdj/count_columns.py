"""The result columns of path counting: names, Arrow types and what their lists run over."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.dp.chain.tables import REGION_FIELDS
from plait.vdj.calls import Items
from plait.vdj.germline import GermlineSet
from plait.vdj.germline.germline_set import Chain
from plait.vdj.models import PathModel
from plait.vdj.raw_counts import Overflow
from plait.vdj.results import STATUSES, PathCounts

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
    """Region columns of n rows, from the raw region calls, int64 (n, len(REGION_FIELDS)).

    The first item of each row gives its V and J allele.
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


#: 76 decimal digits hold counts up to 2^252; larger ones are reported as overflow.
_WIDE = pa.decimal256(76, 0)
_WIDEST = 10**76 - 1
_COUNT_TYPE: Mapping[str, Any] = {"null": pa.int64(), "float": pa.float64(), "wide": _WIDE}


class ResultColumns:
    """Turns `PathCounts` into Arrow columns; which there are depends on what is counted.

    Rows that have no counts get null, or a list of nulls: null lists cannot be written by every Parquet
    writer in use. Items that the D-J order rule forbids are null too. `schema` has the columns in order;
    `axes` has, for every list column, the names and values of its axes, outermost first.
    """

    def __init__(self, germline: GermlineSet, model: PathModel, chain: Chain, overflow: Overflow) -> None:
        self.model = model
        self._germline = germline
        self._overflow = overflow
        self._number = _COUNT_TYPE[overflow]
        self._lists = _list_columns(model, chain)
        self.axes = {name: _axes(germline, model, kind) for name, (_, kind) in self._lists.items()}
        fields = [pa.field("status", pa.string()), pa.field("path_count", self._number)]
        fields.append(pa.field("path_count_no_d", self._number))
        for name, axes in self.axes.items():
            items = int(np.prod([len(values) for _, values in axes]))
            fields.append(pa.field(name, pa.list_(pa.field("item", self._number), items)))
        self._regions = [
            name
            for name in REGION_COLUMNS
            if chain != "vj" or not name.startswith(("d_match", "vd_", "dj_", "n2_", "p5d", "p3d"))
        ]
        if chain != "vj":
            fields.append(pa.field("d_match_call", pa.string()))
        fields += [pa.field(name, pa.int32()) for name in self._regions]
        self.schema = pa.schema(fields)

    def batch(self, counts: PathCounts) -> pa.RecordBatch:
        """The columns of a batch, row for row."""
        status = counts.status.copy()
        if self._overflow == "wide":
            status[self._too_wide(counts)] = STATUSES.index("count_overflow")
        ok = status == 0
        columns: dict[str, pa.Array] = {
            "status": pa.array(np.array(STATUSES, object))
            .take(pa.array(status.astype(np.int32)))
            .cast(pa.string()),
            "path_count": self._numbers(counts.path_count, ok),
            "path_count_no_d": self._numbers(counts.no_d, ok),
        }
        for name, (attribute, kind) in self._lists.items():
            values = getattr(counts, attribute)
            allowed = {"d": counts.allowed, "dd": counts.pair_allowed}.get(kind[0])
            columns[name] = self._list(values, ok, allowed, self.schema.field(name).type)
        has_d = counts.regions["d_match_length"] > 0
        columns["d_match_call"] = self._d_calls(counts.d_match, ok & has_d)
        for name in self._regions:
            known = ok & has_d if name in D_REGION_COLUMNS else ok
            columns[name] = pa.array(counts.regions[name], pa.int32(), mask=~known)
        return pa.record_batch([columns[name] for name in self.schema.names], schema=self.schema)

    def _numbers(self, values: NDArray[Any], known: NDArray[np.bool_]) -> pa.Array:
        if values.dtype == object:
            given = [
                Decimal(int(v)) if k else None for v, k in zip(values.tolist(), known.tolist(), strict=True)
            ]
            return pa.array(given, _WIDE)
        return pa.array(values, self._number, mask=None if known.all() else ~known)

    def _list(
        self, values: NDArray[Any], ok: NDArray[np.bool_], allowed: NDArray[np.bool_] | None, kind: Any
    ) -> pa.Array:
        flat = np.ascontiguousarray(values).reshape(len(values), -1)
        known = np.broadcast_to(ok[:, None], flat.shape)
        if allowed is not None:
            known = known & np.repeat(allowed, flat.shape[1] // max(allowed.shape[1], 1), axis=1)
        return pa.FixedSizeListArray.from_arrays(self._numbers(flat.ravel(), known.ravel()), type=kind)

    def _d_calls(self, chosen: NDArray[np.int64], known: NDArray[np.bool_]) -> pa.Array:
        """Names of the D alleles whose bits are set, with commas between."""
        bits, place = np.unique(chosen, return_inverse=True)
        names = [",".join(a.name for k, a in enumerate(self._germline.d) if int(b) >> k & 1) for b in bits]
        calls = pa.array(names, pa.string()).take(pa.array(place))
        return pa.array(calls.to_numpy(zero_copy_only=False), pa.string(), mask=~known)

    def _too_wide(self, counts: PathCounts) -> NDArray[np.bool_]:
        largest = [counts.path_count, counts.no_d]
        largest += [getattr(counts, attribute) for attribute, _ in self._lists.values()]
        flags = np.zeros(len(counts), np.bool_)
        for values in largest:
            flags |= (values > _WIDEST).astype(np.bool_).reshape(len(counts), -1).any(axis=1)
        return flags


def _list_columns(model: PathModel, chain: Chain) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Column name to attribute of `PathCounts` and the axes of its lists."""
    with_d = {"vj": (), "vdj": (("d", "by_d"),), "vddj": (("d", "by_d"), ("dd", "by_dd"))}[chain]
    columns: dict[str, tuple[str, tuple[str, ...]]] = {}
    for axis, suffix in with_d:
        columns[f"path_count_{suffix}"] = (suffix, (axis,))
        if axis == "d":
            columns["path_count_zero_d_by_d"] = ("zero_d_by_d", (axis,))
    if model.name != "dp2":
        for axis, suffix in with_d:
            columns[f"path_count_by_n_{suffix}"] = (f"by_n_{suffix}", (axis, "n"))
        columns["path_count_no_d_by_n"] = ("no_d_by_n", ("n",))
    if model.is_sweep:
        for axis, suffix in with_d:
            columns[f"path_count_sweep_{suffix}"] = (f"sweep_{suffix}", (axis, "pi", "nu"))
            if axis == "d":
                columns["path_count_zero_d_sweep_by_d"] = ("zero_d_sweep_by_d", (axis, "pi", "nu"))
        columns["path_count_no_d_sweep"] = ("no_d_sweep", ("pi", "nu"))
    return columns


def _axes(germline: GermlineSet, model: PathModel, kind: tuple[str, ...]) -> list[tuple[str, list[Any]]]:
    names = [allele.name for allele in germline.d]
    values: dict[str, tuple[str, list[Any]]] = {
        "d": ("d_allele", names),
        "dd": ("d_allele_pair", [f"{a}+{b}" for a in names for b in names]),
        "pi": ("pi", list(model.axes[0])),
        "nu": ("nu", list(model.axes[1])),
        "n": ("n", list(range(model.max_n + 1))),
    }
    return [values[axis] for axis in kind]
