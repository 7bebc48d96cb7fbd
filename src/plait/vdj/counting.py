"""Count the V(D)J recombination paths of junctions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait._version import __version__
from plait.errors import CountOverflow, InvalidInput, Unsupported
from plait.schedules.chain_tables import REGION_FIELDS
from plait.targets.cpu import CpuTarget
from plait.targets.protocol import Target
from plait.targets.reference import ReferenceTarget
from plait.types import Provenance
from plait.vdj.calls import Ambiguity, CallResolver
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.germline.germline_set import Chain
from plait.vdj.items import Items, make_items
from plait.vdj.models import ModelName, PathModel, model_of
from plait.vdj.raw_counts import ChainCounter, Overflow, RawCounts
from plait.vdj.regions import region_columns
from plait.vdj.results import STATUSES, PathCounts

__all__ = ["PathCounter", "count_paths"]

_Device = Literal["auto", "cpu", "reference"]
_OVERFLOW = STATUSES.index("count_overflow")


def count_paths(
    junctions: Any,
    v_call: Any = None,
    j_call: Any = None,
    *,
    germline: GermlineSet | str,
    model: PathModel | ModelName = "dp2",
    chain: Chain | Literal["auto"] = "auto",
    ambiguous: Ambiguity = "first",
    overflow: Overflow | Literal["raise"] = "null",
    device: _Device = "auto",
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
        ``"auto"`` and ``"cpu"`` run compiled code, ``"reference"`` plain Python.
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
    columns = [_strings(values, name) for values, name in
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
    """Counts batches of junctions under one model; the tables of the model are made once.

    Parameters
    ----------
    germline, model, chain, ambiguous, overflow, device, threads
        As for `count_paths`.
    """

    def __init__(
        self,
        germline: GermlineSet | str,
        model: PathModel | None = None,
        *,
        chain: Chain | Literal["auto"] = "auto",
        ambiguous: Ambiguity = "first",
        overflow: Overflow = "null",
        device: _Device = "auto",
        threads: int | None = None,
    ) -> None:
        self.germline = load_germline(germline) if isinstance(germline, str) else germline
        self.model = model or PathModel()
        self.chain: Chain = _chain_of(self.germline, chain, self.model)
        self.overflow = overflow
        if overflow not in ("null", "float", "wide"):
            raise InvalidInput("overflow", found=repr(overflow), expected="one of null, float, wide")
        self._v = CallResolver(self.germline, "V", ambiguous)
        self._j = CallResolver(self.germline, "J", ambiguous)
        self._target = _target(device, threads)
        self._counter = ChainCounter(self.germline, self.model, self.chain, self._target, overflow)
        d = () if self.chain == "vj" else self.germline.d
        allowed = [self.germline.allowed_d(j)[: len(d)] for j in self.germline.j]
        self._allowed = np.array(allowed, np.bool_).reshape(len(allowed), len(d))
        pairs = [[self.germline.allowed_d_pair(a, b) for b in d] for a in d if self.chain == "vddj"]
        self._allowed_pairs = np.array(pairs, np.bool_).reshape(len(pairs), len(d))
        self.provenance = Provenance(
            version=__version__,
            device=self._target.name,
            schedule="enumeration" if self.model.name == "exhaustive" else "chain_product",
            algebra="Count",
            parameters={
                "germline": self.germline.name,
                "germline_digest": self.germline.digest,
                "chain": self.chain,
                "ambiguous": ambiguous,
                "overflow": overflow,
                **self.model.as_dict(),
            },
        )

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
            raw = self._counter.run(items.texts)
        return self._assemble(items, raw)

    def items(self, junctions: pa.Array, v_call: pa.Array, j_call: pa.Array) -> Items:
        """What `count` counts: encoded junctions with resolved calls.

        Parameters
        ----------
        junctions, v_call, j_call
            String arrays (n,).
        """
        return make_items(junctions, self._v, v_call, self._j, j_call)

    def _assemble(self, items: Items, raw: RawCounts) -> PathCounts:
        """Sum items to rows and put the counts under their names."""
        model, n = self.model, items.status.size
        status = items.status.copy()
        rows = _RowSums(items, raw.overflow)
        full, empty, none, pair = (rows.total(counts) for counts in raw[:4])
        allowed = rows.any_item(self._allowed[items.texts.suffix])
        # The order rule looks at the D next to J, the second one of a pair.
        pairs = allowed[:, None, :] & self._allowed_pairs[None]
        regions = rows.first_item(raw.regions)
        summed = pair if self.chain == "vddj" else full if full.shape[1] else none[:, None]
        if model.name == "dp2":
            grid = (len(model.pis), len(model.nus))
            full, empty, none, pair, summed = (_grid(c, grid) for c in (full, empty, none, pair, summed))
            base = (..., model.pis.index(model.pi), model.nus.index(model.nu))
            path_count = rows.checked_sum(summed[base], (1,))
        else:
            path_count = rows.checked_sum(summed, (1, 2))
        status[rows.overflow] = _OVERFLOW
        named = (
            _dp2_counts(model, full, empty, none, pair)
            if model.name == "dp2"
            else _dp1_counts(full, none, pair)
        )
        return PathCounts(
            status=status,
            path_count=path_count,
            **named,
            allowed=allowed,
            pair_allowed=pairs.reshape(n, pairs.shape[1] * pairs.shape[2]),
            regions=region_columns(self.germline, model, self.chain, regions, items),
            d_match=regions[:, REGION_FIELDS.index("fragment_choice")],
            provenance=self.provenance,
        )


class _RowSums:
    """Sums over the items of a row; a sum that does not fit 64 bits marks its row."""

    def __init__(self, items: Items, overflow: NDArray[np.bool_]) -> None:
        self._first = items.first
        self._single = items.texts.start.size == items.first.size
        self._bad = np.flatnonzero(items.status != 0)
        self.overflow = self.any_item(overflow)

    def total(self, counts: NDArray[Any]) -> NDArray[Any]:
        """(m, ...) to (n, ...), zero in rows that cannot be counted."""
        summed = counts
        if not self._single:
            summed = np.add.reduceat(counts, self._first, axis=0)
            if counts.dtype == np.int64:
                self._mark(np.add.reduceat(counts.astype(np.float64), self._first, axis=0))
        summed[self._bad] = 0
        return summed

    def checked_sum(self, counts: NDArray[Any], axes: tuple[int, ...]) -> NDArray[Any]:
        """Sum of rows (n, ...) over axes."""
        if counts.dtype == np.int64:
            self._mark(counts.astype(np.float64).sum(axis=axes))
        summed: NDArray[Any] = counts.sum(axis=axes)
        return summed

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

    def _mark(self, real: NDArray[np.float64]) -> None:
        # float64 rounds up to 2^63 from a little below it: such a row is reported too, never wrapped.
        self.overflow |= (real >= 2.0**63).any(axis=tuple(range(1, real.ndim)))


def _grid(counts: NDArray[Any], grid: tuple[int, int]) -> NDArray[Any]:
    return counts.reshape(*counts.shape[:-1], *grid)


def _dp2_counts(
    model: PathModel, full: NDArray[Any], empty: NDArray[Any], none: NDArray[Any], pair: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    n, d = full.shape[:2]
    base = (..., model.pis.index(model.pi), model.nus.index(model.nu))
    axis_pi, axis_nu = model.axes if model.is_sweep else ((), ())
    sweep: tuple[Any, ...] = (..., slice(None), slice(None))
    if (axis_pi, axis_nu) != (model.pis, model.nus):
        sweep = (..., *np.ix_([model.pis.index(p) for p in axis_pi], [model.nus.index(u) for u in axis_nu]))
    return {
        "by_d": full[base],
        "zero_d_by_d": empty[base],
        "no_d": none[base],
        "by_dd": pair[base],
        "sweep_by_d": full[sweep],
        "zero_d_sweep_by_d": empty[sweep],
        "no_d_sweep": none[sweep],
        "sweep_by_dd": pair[sweep],
        "by_n_by_d": np.zeros((n, d, 0), full.dtype),
        "no_d_by_n": np.zeros((n, 0), full.dtype),
        "by_n_by_dd": np.zeros((n, pair.shape[1], 0), full.dtype),
    }


def _dp1_counts(full: NDArray[Any], none: NDArray[Any], pair: NDArray[Any]) -> dict[str, NDArray[Any]]:
    n, d = full.shape[:2]
    nothing = np.zeros((n, d, 0, 0), full.dtype)
    return {
        "by_d": full.sum(axis=2),
        "zero_d_by_d": np.zeros((n, 0), full.dtype),
        "no_d": none.sum(axis=1),
        "by_dd": pair.sum(axis=2),
        "sweep_by_d": nothing,
        "zero_d_sweep_by_d": nothing,
        "no_d_sweep": np.zeros((n, 0, 0), full.dtype),
        "sweep_by_dd": np.zeros((n, pair.shape[1], 0, 0), full.dtype),
        "by_n_by_d": full,
        "no_d_by_n": none,
        "by_n_by_dd": pair,
    }


def _chain_of(germline: GermlineSet, chain: Chain | Literal["auto"], model: PathModel) -> Chain:
    chosen: Chain = germline.chain if chain == "auto" else chain
    if chosen not in ("vj", "vdj", "vddj"):
        raise InvalidInput("chain", found=repr(chain), expected="one of auto, vj, vdj, vddj")
    if chosen != "vj" and not germline.d:
        raise InvalidInput("chain", found=repr(chosen), expected="'vj': the germline set has no D alleles")
    if chosen == "vddj" and model.name == "exhaustive":
        raise Unsupported(
            "exhaustive enumeration of two D genes", why="use model dp1, which gives the same counts"
        )
    return chosen


def _target(device: str, threads: int | None) -> Target:
    if threads is not None and threads < 1:
        raise InvalidInput("threads", found=repr(threads), expected="a whole number of at least 1")
    if device in ("auto", "cpu"):
        return CpuTarget(threads)
    if device == "reference":
        return ReferenceTarget()
    raise InvalidInput("device", found=repr(device), expected="one of auto, cpu, reference")


def _columns_of(table: Any) -> tuple[Any, Any, Any]:
    try:
        found = table if isinstance(table, pa.Table | pa.RecordBatch) else pa.table(table)
        return found["junction"], found["v_call"], found["j_call"]
    except (TypeError, ValueError, KeyError) as error:
        raise InvalidInput(
            "junctions", found=type(table).__name__,
            expected="a table with columns junction, v_call and j_call, or three columns",
        ) from error  # fmt: skip


def _strings(values: Any, name: str) -> pa.Array:
    try:
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if isinstance(values, pa.Array):
            return values.cast(pa.large_string())
        return pa.array(
            list(values) if isinstance(values, Sequence | np.ndarray) else values, pa.large_string()
        )
    except (TypeError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidInput(name, found=f"{type(values).__name__}: {error}", expected="strings") from error
