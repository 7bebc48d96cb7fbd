"""Count the V(D)J recombination paths of junctions: what is counted, and the columns of counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait._version import __version__
from plait.devices.target import Target, resolve
from plait.dp.chain.tables import REGION_FIELDS, ChainOutput
from plait.errors import CountOverflow, InvalidInput, Unsupported, one_of
from plait.formats.row_groups import DIFFERENCES, PACKED
from plait.types import Provenance, Tabular
from plait.vdj.calls import STATUSES, Ambiguity, CallResolver, Items, as_column, make_items
from plait.vdj.chain import ChainCounter, Overflow, checked_sum
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.germline.germline_set import Chain
from plait.vdj.models import ModelName, PathModel, model_of


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PathCounts(Tabular):
    """Path counts of n junctions. Rows without status ``"ok"`` hold zeros.

    Count arrays are int64; with ``overflow="float"`` float64, with ``overflow="wide"`` Python integers
    (dtype object). D is the number of D alleles (0 for a V-J chain), P and U the values of pi and nu in the
    sweep (1 and 1 without one), N the numbers of N nucleotides 0..max_n.

    Attributes
    ----------
    status
        uint8 (n,): index into `STATUSES`.
    path_count
        (n,): sum over the allowed D alleles (over the allowed pairs in a V-D-D-J chain), and for dp1 and
        exhaustive over all N.
    by_d, zero_d_by_d
        (n, D): paths per D allele, and those with a D of zero length.
    no_d
        (n,): paths without a D gene.
    by_dd
        (n, D * D): paths per pair of D alleles (V-D-D-J chain).
    sweep_by_d, zero_d_sweep_by_d, no_d_sweep, sweep_by_dd
        (n, D, P, U), (n, D, P, U), (n, P, U) and (n, D * D, P, U): the same for every model of a sweep.
    by_n_by_d, no_d_by_n, by_n_by_dd
        (n, D, N), (n, N) and (n, D * D, N): dp1 and exhaustive.
    allowed
        bool (n, D): D alleles that the order rule allows with the row's J.
    pair_allowed
        bool (n, D * D): allowed pairs of D alleles.
    regions
        Region columns, each int32 (n,). Those of D mean nothing where ``d_match_length`` is 0.
    d_match
        int64 (n,): bit d is set where D allele d has the longest match.
    provenance
        How the counts were made.

    Notes
    -----
    `to_arrow` has the columns status, path_count, path_count_no_d and the region columns, null where the
    status is not ``ok``; counts per D allele are the arrays alone.
    """

    status: NDArray[np.uint8]
    path_count: NDArray[Any]
    by_d: NDArray[Any]
    zero_d_by_d: NDArray[Any]
    no_d: NDArray[Any]
    by_dd: NDArray[Any]
    sweep_by_d: NDArray[Any]
    zero_d_sweep_by_d: NDArray[Any]
    no_d_sweep: NDArray[Any]
    sweep_by_dd: NDArray[Any]
    by_n_by_d: NDArray[Any]
    no_d_by_n: NDArray[Any]
    by_n_by_dd: NDArray[Any]
    allowed: NDArray[np.bool_]
    pair_allowed: NDArray[np.bool_]
    regions: Mapping[str, NDArray[np.int32]]
    d_match: NDArray[np.int64]
    provenance: Provenance

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Which rows have counts, bool (n,)."""
        return np.equal(self.status, 0)

    def __len__(self) -> int:
        return int(self.status.size)

    def _table(self, rows: int | None) -> pa.Table:
        part = slice(rows)
        counts = {"path_count": self.path_count[part], "path_count_no_d": self.no_d[part]}
        status = _fitting(self.status[part], *counts.values())
        ok = status == 0
        columns = {"status": _status_texts(status)} | {k: _numbers(v, ok) for k, v in counts.items()}
        regions = {name: column[part] for name, column in self.regions.items()}
        chain: Chain = "vdj" if self.allowed.shape[1] else "vj"
        return pa.table(columns | _region_arrays(regions, region_names(chain), ok))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PathTotals(Tabular):
    """Path counts of n junctions, summed over D alleles. Rows without status ``"ok"`` hold zeros.

    Attributes
    ----------
    status
        uint8 (n,): index into `STATUSES`.
    path_count
        (n,): as in `PathCounts`.
    total
        (n, P, U): sum over the allowed D alleles, or pairs of them, for every value of pi and nu in the
        sweep; for dp1 and exhaustive (n, N), by the number of N nucleotides. Types as in `PathCounts`.
    provenance
        How the counts were made.

    Notes
    -----
    `to_arrow` has the columns status and total; where a row has several totals, a list of them, row by row of
    (P, U). They are null where the status is not ``ok``.
    """

    status: NDArray[np.uint8]
    path_count: NDArray[Any]
    total: NDArray[Any]
    provenance: Provenance

    def __len__(self) -> int:
        return int(self.status.size)

    def _table(self, rows: int | None) -> pa.Table:
        each, total = int(np.prod(self.total.shape[1:])), self.total[:rows]
        status = _fitting(self.status[:rows], total)
        numbers = _numbers(total.ravel(), np.repeat(status == 0, each))
        column = numbers if each == 1 else pa.FixedSizeListArray.from_arrays(numbers, each)
        return pa.table({"status": _status_texts(status), "total": column})


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


#: Columns of which dictionaries take much longer, and little less room.
_PACKED = {"path_count", "path_count_by_d", *(f"{n}_{base}" for n in ("n1", "n2") for base in "acgt")}


def region_names(chain: Chain) -> list[str]:
    """Names of the region columns that a chain has."""
    of_d = {*D_REGION_COLUMNS, "d_match_length"} if chain == "vj" else ()
    return [name for name in REGION_COLUMNS if name not in of_d]


def region_columns(
    germline: GermlineSet, model: PathModel, chain: Chain, regions: NDArray[np.int64], items: Items
) -> dict[str, NDArray[np.int32]]:
    """Region columns of n rows, from the raw region calls, int64 (n, len(REGION_FIELDS)).

    The first item of each row gives its V and J allele.
    """
    first = items.first
    field = dict(zip(REGION_FIELDS, np.ascontiguousarray(regions.T, np.int32), strict=True))
    length = items.texts.length[first].astype(np.int32)
    v_end = np.array([len(a.cdr3_end or "") for a in germline.v], np.int32)[items.texts.v[first]]
    j_end = np.array([len(a.cdr3_end or "") for a in germline.j], np.int32)[items.texts.j[first]]
    m_v, m_j, m_d = field["v_match"], field["j_match"], field["d_match"]
    d_start, d_end = field["d_start"], field["d_end"]
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
        "p5d_length": field["d_extended_left"],
        "p3d_length": field["d_extended_right"],
        "p5j_length": np.maximum(m_j - j_end, 0),
    }
    for span, part in (("n1", "before"), ("n2", "after"), ("ndn", "between")):
        columns.update({f"{span}_{base}": field[f"{part}_{bit}"] for bit, base in enumerate("atcg")})
    return {name: columns[name] for name in REGION_COLUMNS}


#: 76 decimal digits hold counts up to 2^252; larger ones are reported as overflow.
_WIDE = pa.decimal256(76, 0)
_WIDEST = 10**76 - 1
_COUNT_TYPE: Mapping[str, Any] = {"null": pa.int64(), "float": pa.float64(), "wide": _WIDE}


def _status_texts(status: NDArray[np.uint8]) -> pa.Array:
    return pa.array(STATUSES, pa.string()).take(_column(status.astype(np.int32), None))


def _fitting(status: NDArray[np.uint8], *counts: NDArray[Any]) -> NDArray[np.uint8]:
    """The statuses (n,), those of rows with a wide count that no column holds changed."""
    status = status.copy()
    for values in counts:
        if values.dtype == object:
            wide = (values > _WIDEST).astype(np.bool_)
            status[wide.any(axis=tuple(range(1, values.ndim)))] = STATUSES.index("count_overflow")
    return status


def _numbers(values: NDArray[Any], known: NDArray[np.bool_]) -> pa.Array:
    """Counts (n,) as a column, null where they are not known."""
    if values.dtype == object:
        given = [Decimal(int(v)) if k else None for v, k in zip(values.tolist(), known.tolist(), strict=True)]
        return pa.array(given, _WIDE)
    return _column(values, _validity(known))


def _validity(known: NDArray[np.bool_]) -> pa.Buffer | None:
    """Bits of what is known; None if everything is."""
    return None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))


def _column(values: NDArray[Any], known: pa.Buffer | None) -> pa.Array:
    """Numbers (n,) as a column, in their own memory: to copy them keeps other threads from Python."""
    numbers = np.ascontiguousarray(values)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(numbers.dtype), numbers.size, [known, pa.py_buffer(numbers)]
    )


def _region_arrays(
    regions: Mapping[str, NDArray[np.int32]], names: Iterable[str], ok: NDArray[np.bool_]
) -> dict[str, pa.Array]:
    """Region columns, null where they mean nothing."""
    known, of_d = _validity(ok), _validity(ok & (regions["d_match_length"] > 0))
    return {name: _column(regions[name], of_d if name in D_REGION_COLUMNS else known) for name in names}


class ResultColumns:
    """Turns `PathCounts` into Arrow columns; which there are depends on what is counted.

    Rows that have no counts get null, or a list of nulls: null lists cannot be written by every Parquet
    writer in use. Items that the D-J order rule forbids are null too. `schema` has the columns in order,
    `offered` also those that have to be asked for; `axes` has, for every list column, the names and values of
    its axes, outermost first.
    """

    def __init__(self, germline: GermlineSet, model: PathModel, chain: Chain, overflow: Overflow) -> None:
        self.model = model
        self._germline = germline
        self._number = _COUNT_TYPE[overflow]
        self._lists = _lists_of(model, chain)
        self.axes = {f"path_count_{name}": _axes(germline, model, kind) for name, kind in self._lists.items()}
        fields = [pa.field("status", pa.string()), pa.field("path_count", self._number)]
        fields.append(pa.field("path_count_no_d", self._number))
        for name, axes in self.axes.items():
            items = int(np.prod([len(values) for _, values in axes]))
            fields.append(pa.field(name, pa.list_(pa.field("item", self._number), items)))
        self._chain = chain
        if chain != "vj":
            fields.append(pa.field("d_match_call", pa.string()))
        fields += [pa.field(name, pa.int32()) for name in region_names(chain)]
        fields = [field.with_metadata(PACKED) if field.name in _PACKED else field for field in fields]
        self.schema = self.offered = pa.schema(fields)
        if model.is_sweep:
            pis, nus = model.axes
            kind = pa.list_(pa.field("item", self._number), len(pis) * len(nus))
            fast = DIFFERENCES if self._number == pa.int64() else None
            self.offered = self.schema.append(pa.field(SWEEP_TOTALS, kind, metadata=fast))

    def only(self, names: Collection[str]) -> ResultColumns:
        """The same with those columns alone, out of all that are offered."""
        found = copy(self)
        found.schema = pa.schema([field for field in self.offered if field.name in names])
        found.axes = {name: axes for name, axes in self.axes.items() if name in names}
        if SWEEP_TOTALS in names:
            found.axes[SWEEP_TOTALS] = _axes(self._germline, self.model, ("pi", "nu"))
        return found

    def batch(self, counts: PathCounts | PathTotals) -> pa.RecordBatch:
        """The columns of a batch, row for row; totals have those of `TOTALLED`."""
        names, status = self.schema.names, counts.status
        if isinstance(counts, PathCounts):
            every = (getattr(counts, name) for name in ("path_count", "no_d", *self._lists))
            status = _fitting(status, *every)
        ok = status == 0
        columns: dict[str, pa.Array] = {
            "status": _status_texts(status),
            "path_count": _numbers(counts.path_count, ok),
        }
        if SWEEP_TOTALS in names:
            total, fits = _sweep_totals(counts, self._chain)
            columns[SWEEP_TOTALS] = self._list(total, ok, fits, self.schema.field(SWEEP_TOTALS).type)
        if isinstance(counts, PathCounts):
            columns |= self._parts(counts, ok)
        return pa.record_batch([columns[name] for name in names], schema=self.schema)

    def _parts(self, counts: PathCounts, ok: NDArray[np.bool_]) -> dict[str, pa.Array]:
        """What totals lack."""
        names = self.schema.names
        columns = {"path_count_no_d": _numbers(counts.no_d, ok)}
        for attribute, kind in self._lists.items():
            name = f"path_count_{attribute}"
            if name in names:
                allowed = {"d": counts.allowed, "dd": counts.pair_allowed}.get(kind[0])
                columns[name] = self._list(
                    getattr(counts, attribute), ok, allowed, self.schema.field(name).type
                )
        if "d_match_call" in names:
            has_d = counts.regions["d_match_length"] > 0
            columns["d_match_call"] = self._d_calls(counts.d_match, ok & has_d)
        return columns | _region_arrays(counts.regions, [n for n in names if n in counts.regions], ok)

    def _list(
        self, values: NDArray[Any], ok: NDArray[np.bool_], allowed: NDArray[np.bool_] | None, kind: Any
    ) -> pa.Array:
        flat = np.ascontiguousarray(values).reshape(len(values), -1)
        if allowed is None:
            allowed = np.ones((1, 1), np.bool_)
        of_each = flat.shape[1] // max(allowed.shape[1], 1)
        # By ufuncs: other threads have Python meanwhile.
        known = np.logical_and((ok[:, None] & allowed)[:, :, None], np.ones(of_each, np.bool_))
        return pa.FixedSizeListArray.from_arrays(_numbers(flat.ravel(), known.ravel()), type=kind)

    def _d_calls(self, chosen: NDArray[np.int64], known: NDArray[np.bool_]) -> pa.Array:
        """Names of the D alleles whose bits are set, with commas between."""
        found = pa.array(chosen, mask=~known).dictionary_encode()
        alleles = self._germline.d
        names = [
            ",".join(a.name for k, a in enumerate(alleles) if bits >> k & 1)
            for bits in found.dictionary.to_pylist()
        ]
        return pa.array(names, pa.string()).take(found.indices)


def _sweep_totals(
    counts: PathCounts | PathTotals, chain: Chain
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Sums over D genes, or pairs, for every model (n, P, U); and which fit, (n, P * U) or None: all."""
    if isinstance(counts, PathTotals):
        return counts.total, None
    parts = {"vj": counts.no_d_sweep[:, None], "vdj": counts.sweep_by_d, "vddj": counts.sweep_by_dd}[chain]
    total, over = checked_sum(lambda values: values.sum(axis=1), parts)
    if total.dtype == object:
        over |= (total > _WIDEST).astype(np.bool_)
    return total, ~over.reshape(len(over), -1)


#: The totals of a sweep, a column that is there where it is asked for; and what `PathTotals` have columns of.
SWEEP_TOTALS = "path_count_sweep"
TOTALLED = frozenset({"status", "path_count", SWEEP_TOTALS})
#: Attributes of `PathCounts` that are columns of lists, named ``path_count_...``, with the axes of the lists.
_LISTS: Mapping[str, tuple[str, ...]] = {
    "by_d": ("d",),
    "zero_d_by_d": ("d",),
    "by_dd": ("dd",),
    "by_n_by_d": ("d", "n"),
    "by_n_by_dd": ("dd", "n"),
    "no_d_by_n": ("n",),
    "sweep_by_d": ("d", "pi", "nu"),
    "zero_d_sweep_by_d": ("d", "pi", "nu"),
    "sweep_by_dd": ("dd", "pi", "nu"),
    "no_d_sweep": ("pi", "nu"),
}


def _lists_of(model: PathModel, chain: Chain) -> dict[str, tuple[str, ...]]:
    """Those of `_LISTS` whose axes there are."""
    there = {"vj": set[str](), "vdj": {"d"}, "vddj": {"d", "dd"}}[chain]
    there |= {"pi", "nu"} if model.is_sweep else set()
    there |= {"n"} if model.name != "dp2" else set()
    return {name: axes for name, axes in _LISTS.items() if there.issuperset(axes)}


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


class RowSums:
    """Sums over the items of a row, and over lists of counts.

    Given `overflow`, bool (m,), of items whose counts do not fit; the attribute, bool (n,), has rows with
    such an item, or with a sum that does not fit.
    """

    def __init__(self, items: Items, overflow: NDArray[np.bool_]) -> None:
        self._first = items.first
        self._single = items.texts.start.size == items.first.size
        self._bad = np.flatnonzero(items.status != 0)
        self.overflow = self.any_item(overflow)

    def total(self, counts: NDArray[Any]) -> NDArray[Any]:
        """(m, ...) to (n, ...), zero in rows that cannot be counted; `counts` are overwritten."""
        summed = counts
        if not self._single:
            summed = self._checked(lambda values: np.add.reduceat(values, self._first, axis=0), counts)
        summed[self._bad] = 0
        if summed.dtype == np.float64:
            self._mark(~np.isfinite(summed))
        return summed

    def over(self, counts: NDArray[Any], axes: tuple[int, ...]) -> NDArray[Any]:
        """Sums of rows (n, ...) over axes."""
        return self._checked(lambda values: values.sum(axis=axes), counts)

    def any_item(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether any item of a row has a flag; never in rows that cannot be counted."""
        found = flags.copy() if self._single else np.logical_or.reduceat(flags, self._first, axis=0)
        found[self._bad] = False
        return found

    def first_item(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of the first item of each row, zero in rows that cannot be counted."""
        found = values if self._single else values[self._first]
        found[self._bad] = 0
        return found

    def _checked(self, add: Callable[[NDArray[Any]], NDArray[Any]], counts: NDArray[Any]) -> NDArray[Any]:
        total, over = checked_sum(add, counts)
        self._mark(over)
        return total

    def _mark(self, flags: NDArray[np.bool_]) -> None:
        self.overflow |= flags.any(axis=tuple(range(1, flags.ndim)))


#: Attributes of `plait.vdj.counting.PathCounts` with each kind of raw counts: under the single model, under
#: every model of a sweep, and by the number of N nucleotides.
_NAMES = (
    ("by_d", "sweep_by_d", "by_n_by_d"),
    ("zero_d_by_d", "zero_d_sweep_by_d", None),
    ("no_d", "no_d_sweep", "no_d_by_n"),
    ("by_dd", "sweep_by_dd", "by_n_by_dd"),
)


def named_counts(model: PathModel, chain: Chain, rows: RowSums, raw: ChainOutput) -> dict[str, NDArray[Any]]:
    """The count attributes of `plait.vdj.counting.PathCounts`; the raw counts are overwritten."""
    full, empty, none, pair = (rows.total(counts) for counts in raw[:4])
    summed = pair if chain == "vddj" else full if full.shape[1] else none[:, None]
    dp2 = model.name == "dp2"
    single = (..., model.pis.index(model.pi), model.nus.index(model.nu)) if dp2 else ()
    if dp2:
        named = {"path_count": rows.over(_by_limits(model, summed)[single], (1,))}
    else:
        named = {"path_count": rows.over(summed, (1, 2))}
    for (one, sweep, by_n), counts in zip(_NAMES, (full, empty, none, pair), strict=True):
        shape = counts.shape[:-1]
        if dp2:
            grid = _by_limits(model, counts)
            named[one], of_n = grid[single], np.zeros((*shape, 0), counts.dtype)
            named[sweep] = grid[_swept(model)] if model.is_sweep else np.zeros((*shape, 0, 0), counts.dtype)
        else:
            named[one], of_n = rows.over(counts, (-1,)), counts
            named[sweep] = np.zeros((*shape, 0, 0), counts.dtype)
        if by_n is not None:
            named[by_n] = of_n
    return named


def by_model(model: PathModel, counts: NDArray[Any]) -> NDArray[Any]:
    """Counts of rows (n, M) by the axes of a sweep (n, P, U); those of dp1 and exhaustive stay (n, N)."""
    return counts if model.name != "dp2" else _by_limits(model, counts)[_swept(model)]


def _of_one(model: PathModel, counts: NDArray[Any]) -> NDArray[Any]:
    """Those counts (..., M) that are of the model itself, (...,)."""
    found: NDArray[Any] = _by_limits(model, counts)[..., model.pis.index(model.pi), model.nus.index(model.nu)]
    return found


def _by_limits(model: PathModel, counts: NDArray[Any]) -> NDArray[Any]:
    """Counts (..., M) by all values of pi and nu that are counted with, (..., pis, nus)."""
    return counts.reshape(*counts.shape[:-1], len(model.pis), len(model.nus))


def _swept(model: PathModel) -> tuple[Any, ...]:
    """Where the sweep is in counts by all values of pi and nu."""
    pis, nus = model.axes
    if (pis, nus) == (model.pis, model.nus):
        return (..., slice(None), slice(None))
    return (..., *np.ix_([model.pis.index(p) for p in pis], [model.nus.index(u) for u in nus]))


_OVERFLOW = STATUSES.index("count_overflow")
_ALGEBRA = {
    "null": "Count",
    "float": "Count, and Probability where it overflows",
    "wide": "Count, in Python integers where it overflows",
}


def count_paths(
    junctions: Any,
    v_call: Any = None,
    j_call: Any = None,
    *,
    germline: GermlineSet | str | os.PathLike[str],
    model: PathModel | ModelName = "dp2",
    chain: Chain | Literal["auto"] = "auto",
    ambiguous: Ambiguity = "first",
    overflow: Overflow | Literal["raise"] = "null",
    device: str = "auto",
    threads: int | None = None,
    **parameters: Any,
) -> PathCounts:
    """Count the recombination paths of every junction.

    Parameters
    ----------
    junctions
        Nucleotide sequences (n,), from the conserved Cys to the conserved Phe/Trp codon, IUPAC codes
        allowed: a sequence of str, a NumPy array or an Arrow array. Or an Arrow table (anything that
        ``pyarrow.table`` takes) with the AIRR columns junction, v_call and j_call.
    v_call, j_call
        V and J calls (n,), gene or allele names. Left out when `junctions` is a table.
    germline
        A germline set, or the name or path of one.
    model
        The path-counting model: a `PathModel`, or the name of one, with `parameters`.
    chain
        ``"vj"``, ``"vdj"`` or ``"vddj"``; ``"auto"`` takes what the germline set implies.
    ambiguous
        What a list of calls means: its ``"first"`` member, the sum over ``"all"``, or ``"fail"`` (a status).
    overflow
        Where a count needs 64 bits or more: ``"null"`` (status ``count_overflow``), ``"float"`` (all counts
        in float64), ``"wide"`` (Python integers) or ``"raise"``.
    device
        ``"auto"`` (the first GPU that can be used, else the CPU), ``"cpu"``, ``"cuda"``, ``"cuda:N"``,
        ``"cuda:all"`` or ``"reference"`` (plain Python).
    threads
        CPU threads; all processors this process may use by default.
    **parameters
        Fields of `PathModel` where `model` is a name: ``strands=2, pi=3, sweep_nu=range(11)`` and so on.

    Returns
    -------
    PathCounts
        Counts in input order, one row per junction.

    Raises
    ------
    InvalidInput
        If an argument is wrong or the columns differ in length.
    CountOverflow
        With ``overflow="raise"``, if a count does not fit.
    TargetUnavailable
        If CUDA is asked for and cannot be used.
    Unsupported
        If the chain or the germline set cannot be counted.

    Examples
    --------
    >>> from plait.vdj import count_paths
    >>> counts = count_paths(
    ...     ["TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC"], ["TRBV13-1"], ["TRBJ2-7"], germline="mouse_trb"
    ... )
    >>> counts.status.tolist(), counts.by_d.shape
    ([0], (1, 2))
    """
    if v_call is None and j_call is None:
        junctions, v_call, j_call = _columns_of(junctions)
    columns = [as_column(values, name) for values, name in
               ((junctions, "junctions"), (v_call, "v_call"), (j_call, "j_call"))]  # fmt: skip
    if len({len(column) for column in columns}) > 1:
        lengths = ", ".join(str(len(column)) for column in columns)
        raise InvalidInput("junctions, v_call, j_call", found=f"lengths {lengths}", expected="equal lengths")
    counter = PathCounter(
        germline, model_of(model, parameters), chain=chain, ambiguous=ambiguous,
        overflow="null" if overflow == "raise" else overflow, device=device, threads=threads,
    )  # fmt: skip
    counts = counter.count(*columns)
    overflown = np.flatnonzero(counts.status == _OVERFLOW)
    if overflow == "raise" and overflown.size:
        raise CountOverflow(record=int(overflown[0]), items=int(overflown.size))
    return counts


class PathCounter:
    """Counts batches of junctions under one model; its tables are made once, when they are needed.

    Pickled are its settings alone: the device is one of the machine that counts.

    Parameters
    ----------
    germline, model, chain, ambiguous, overflow, device, threads
        As for `count_paths`.
    """

    def __init__(
        self,
        germline: GermlineSet | str | os.PathLike[str],
        model: PathModel | None = None,
        *,
        chain: Chain | Literal["auto"] = "auto",
        ambiguous: Ambiguity = "first",
        overflow: Overflow = "null",
        device: str = "auto",
        threads: int | None = None,
    ) -> None:
        self.germline = germline if isinstance(germline, GermlineSet) else load_germline(germline)
        for segment in ("V", "J"):
            if not self.germline.alleles(segment):
                raise InvalidInput("germline", found=f"no {segment} alleles", expected="at least one")
        self.model = model or PathModel()
        self.chain: Chain = _chain_of(self.germline, chain, self.model)
        self.overflow = overflow
        one_of("overflow", overflow, ("null", "float", "wide"))
        self._v = CallResolver(self.germline, "V", ambiguous)
        self._j = CallResolver(self.germline, "J", ambiguous)
        self._ambiguous, self._device, self._threads = ambiguous, device, threads

    def __reduce__(self) -> tuple[Any, ...]:
        settings: dict[str, Any] = {"chain": self.chain, "ambiguous": self._ambiguous}
        settings |= {"overflow": self.overflow, "device": self._device, "threads": self._threads}
        return partial(PathCounter, **settings), (self.germline, self.model)

    @cached_property
    def _target(self) -> Target:
        return resolve(self._device, self._threads)

    @cached_property
    def _counter(self) -> ChainCounter:
        return ChainCounter(self.germline, self.model, self.chain, self._target, self.overflow)

    @cached_property
    def _allowed(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which D (J, D) and which second D behind a first one (D, D or 0, D) the order rule allows."""
        d = () if self.chain == "vj" else self.germline.d
        allowed = [self.germline.allowed_d(j)[: len(d)] for j in self.germline.j]
        pairs = [[self.germline.allowed_d_pair(a, b) for b in d] for a in d if self.chain == "vddj"]
        return (
            np.array(allowed, np.bool_).reshape(len(allowed), len(d)),
            np.array(pairs, np.bool_).reshape(len(pairs), len(d)),
        )

    @cached_property
    def at_default_limits(self) -> PathCounter | None:
        """One with the default limits, where those of this one are tighter."""
        model = self.model.at_default_limits
        settings: dict[str, Any] = {
            "chain": self.chain,
            "ambiguous": self._ambiguous,
            "threads": self._threads,
        }
        return None if model is None else PathCounter(self.germline, model, device="cpu", **settings)

    @cached_property
    def columns(self) -> ResultColumns:
        """Its counts as columns of a table."""
        return ResultColumns(self.germline, self.model, self.chain, self.overflow)

    def count(self, junctions: pa.Array, v_call: pa.Array, j_call: pa.Array) -> PathCounts:
        """Count one batch.

        Parameters
        ----------
        junctions, v_call, j_call
            String arrays (n,).
        """
        items = self.items(junctions, v_call, j_call)
        # What overflows on the way is found from bounds and counted again: NumPy need not warn of it.
        with np.errstate(over="ignore"):
            return self._assemble(items, *self._counter.run(items.texts))

    def totals(self, junctions: pa.Array, v_call: pa.Array, j_call: pa.Array) -> PathTotals:
        """Count one batch and keep the sums over D alleles alone.

        A GPU then sends a few bytes of each junction, not kilobytes, and nothing else is made of them here.

        Parameters
        ----------
        junctions, v_call, j_call
            String arrays (n,).
        """
        items = self.items(junctions, v_call, j_call)
        with np.errstate(over="ignore"):
            counts, overflow = self._counter.totals(items.texts)
        rows = RowSums(items, overflow)
        summed = rows.total(counts)
        path_count = rows.over(summed, (1,)) if self.model.name != "dp2" else _of_one(self.model, summed)
        total = by_model(self.model, summed)
        status = items.status.copy()
        status[rows.overflow] = _OVERFLOW
        path_count[rows.overflow] = total[rows.overflow] = 0
        return PathTotals(status=status, path_count=path_count, total=total, provenance=self.provenance)

    @property
    def totals_are_enough(self) -> bool:
        """Whether `totals` finds every overflow that `count` does: also of what is no part of a total."""
        return self.model.name == "dp2" and self.overflow == "null" and self._ambiguous != "all"

    @property
    def provenance(self) -> Provenance:
        """How counts are made; where a GPU that nobody asked for has failed, its name is not the only one."""
        return Provenance(
            version=__version__,
            device=self._target.description,
            schedule="enumeration" if self.model.name == "exhaustive" else "chain_product",
            algebra=_ALGEBRA[self.overflow],
            parameters={
                "germline": self.germline.name,
                "germline_digest": self.germline.digest,
                "chain": self.chain,
                "ambiguous": self._ambiguous,
                "overflow": self.overflow,
                **self.model.as_dict(),
            },
        )

    @property
    def on_gpu(self) -> bool:
        """Whether large batches run on GPUs."""
        return self._target.name.startswith("cuda")

    def items(self, junctions: pa.Array, v_call: pa.Array, j_call: pa.Array) -> Items:
        """What `count` counts: encoded junctions with resolved calls.

        Parameters
        ----------
        junctions, v_call, j_call
            String arrays (n,).
        """
        return make_items(junctions, self._v, v_call, self._j, j_call)

    def _assemble(self, items: Items, raw: ChainOutput, overflow: NDArray[np.bool_]) -> PathCounts:
        """Sum items to rows and put the counts under their names."""
        status = items.status.copy()
        rows = RowSums(items, overflow)
        d_allowed, pairs_allowed = self._allowed
        allowed = rows.any_item(d_allowed[items.texts.j])
        # The order rule looks at the D next to J, the second one of a pair.
        pairs = allowed[:, None, :] & pairs_allowed[None]
        regions = rows.first_item(raw.regions)
        named = named_counts(self.model, self.chain, rows, raw)
        status[rows.overflow] = _OVERFLOW
        for counts in named.values():
            counts[rows.overflow] = 0
        return PathCounts(
            status=status,
            **named,
            allowed=allowed,
            pair_allowed=pairs.reshape(status.size, pairs.shape[1] * pairs.shape[2]),
            regions=region_columns(self.germline, self.model, self.chain, regions, items),
            d_match=regions[:, REGION_FIELDS.index("d_alleles")],
            provenance=self.provenance,
        )


def _chain_of(germline: GermlineSet, chain: Chain | Literal["auto"], model: PathModel) -> Chain:
    chosen: Chain = germline.chain if chain == "auto" else chain
    one_of("chain", chain, ("auto", "vj", "vdj", "vddj"))
    if chosen != "vj" and not germline.d:
        raise InvalidInput("chain", found=repr(chosen), expected="'vj': the germline set has no D alleles")
    if chosen == "vddj" and model.name == "exhaustive":
        raise Unsupported(
            "exhaustive enumeration of two D genes", why="use model dp1, which gives the same counts"
        )
    return chosen


def _columns_of(table: Any) -> tuple[Any, Any, Any]:
    try:
        found = table if isinstance(table, pa.Table | pa.RecordBatch) else pa.table(table)
        return found["junction"], found["v_call"], found["j_call"]
    except (TypeError, ValueError, KeyError) as error:
        raise InvalidInput(
            "junctions", found=type(table).__name__,
            expected="a table with columns junction, v_call and j_call, or three columns",
        ) from error  # fmt: skip
