"""Count the V(D)J recombination paths of junctions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from plait._version import __version__
from plait.errors import CountOverflow, InvalidInput, Unsupported
from plait.schedules.chain_tables import REGION_FIELDS
from plait.targets.devices import resolve
from plait.types import Provenance
from plait.vdj.calls import Ambiguity, CallResolver
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.germline.germline_set import Chain
from plait.vdj.items import Items, make_items
from plait.vdj.models import ModelName, PathModel, model_of
from plait.vdj.raw_counts import ChainCounter, Overflow, RawCounts
from plait.vdj.regions import region_columns
from plait.vdj.results import STATUSES, PathCounts, PathTotals
from plait.vdj.row_counts import RowSums, by_model, named_counts

__all__ = ["CounterSettings", "PathCounter", "count_paths"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSettings:
    """What a `PathCounter` is made of; picklable, so that one can be made where the work is.

    Attributes
    ----------
    germline, model, chain, ambiguous, overflow, device
        As for `count_paths`; the device is one of the machine that counts.
    """

    germline: GermlineSet
    model: PathModel
    chain: Chain | Literal["auto"] = "auto"
    ambiguous: Ambiguity = "first"
    overflow: Overflow = "null"
    device: str = "auto"

    def counter(self, threads: int | None = None) -> PathCounter:
        """Make the counter.

        Parameters
        ----------
        threads
            CPU threads.
        """
        return PathCounter(
            self.germline,
            self.model,
            chain=self.chain,
            ambiguous=self.ambiguous,
            overflow=self.overflow,
            device=self.device,
            threads=threads,
        )


class PathCounter:
    """Counts batches of junctions under one model; the tables of the model are made once.

    Parameters
    ----------
    germline, model, chain, ambiguous, overflow, device, threads
        As for `count_paths`.

    Attributes
    ----------
    settings : CounterSettings
        What it was made of.
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
        if overflow not in ("null", "float", "wide"):
            raise InvalidInput("overflow", found=repr(overflow), expected="one of null, float, wide")
        self.settings = CounterSettings(
            germline=self.germline,
            model=self.model,
            chain=chain,
            ambiguous=ambiguous,
            overflow=overflow,
            device=device,
        )
        self._v = CallResolver(self.germline, "V", ambiguous)
        self._j = CallResolver(self.germline, "J", ambiguous)
        self._target = resolve(device, threads)
        self._counter = ChainCounter(self.germline, self.model, self.chain, self._target, overflow)
        d = () if self.chain == "vj" else self.germline.d
        allowed = [self.germline.allowed_d(j)[: len(d)] for j in self.germline.j]
        self._allowed = np.array(allowed, np.bool_).reshape(len(allowed), len(d))
        pairs = [[self.germline.allowed_d_pair(a, b) for b in d] for a in d if self.chain == "vddj"]
        self._allowed_pairs = np.array(pairs, np.bool_).reshape(len(pairs), len(d))
        self._provenance = Provenance(
            version=__version__,
            device=self._target.description,
            schedule="enumeration" if self.model.name == "exhaustive" else "chain_product",
            algebra=_ALGEBRA[overflow],
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
            raw = self._counter.totals(items.texts)
        rows = RowSums(items, raw.overflow)
        total = by_model(self.model, rows.total(raw.total))
        status = items.status.copy()
        status[rows.overflow] = _OVERFLOW
        total[rows.overflow] = 0
        return PathTotals(status=status, total=total, provenance=self.provenance)

    @property
    def provenance(self) -> Provenance:
        """How counts are made; where a GPU that nobody asked for has failed, its name is not the only one."""
        return replace(self._provenance, device=self._target.description)

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

    def _assemble(self, items: Items, raw: RawCounts) -> PathCounts:
        """Sum items to rows and put the counts under their names."""
        status = items.status.copy()
        rows = RowSums(items, raw.overflow)
        allowed = rows.any_item(self._allowed[items.texts.suffix])
        # The order rule looks at the D next to J, the second one of a pair.
        pairs = allowed[:, None, :] & self._allowed_pairs[None]
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
            d_match=regions[:, REGION_FIELDS.index("fragment_choice")],
            provenance=self.provenance,
        )


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
