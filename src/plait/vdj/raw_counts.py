"""Run the chain on items and watch for overflow: exact, detected, never wrapped."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import ReferenceTarget, Target
from plait.dp.chain.launches import ENUMERATION, PATH_COUNTS, CountBatch, EnumerationBatch
from plait.dp.chain.tables import REGION_FIELDS, ChainOutput, ChainTables, Texts
from plait.lang.algebras import BIG_COUNT, COUNT, PROBABILITY, SATURATING_COUNT
from plait.lang.lanes import LANES, host_lanes
from plait.vdj.chain import chain_kind, chain_tables
from plait.vdj.germline import GermlineSet
from plait.vdj.germline.germline_set import Chain
from plait.vdj.models import PathModel

Overflow = Literal["null", "float", "wide"]

#: Counts whose upper bound stays below this cannot overflow, not even on the way.
_SAFE = 2.0**62


class RawCounts(NamedTuple):
    """Counts of m items; lanes (M) are models (pi-major) or numbers of N nucleotides.

    `full`, `empty`: (m, D, M); `none`: (m, M); `pair`: (m, D * D, M), D * D being 0 unless pairs are counted;
    `regions`: int64 (m, len(REGION_FIELDS)); `overflow`: bool (m,), the counts do not fit.
    """

    full: NDArray[Any]
    empty: NDArray[Any]
    none: NDArray[Any]
    pair: NDArray[Any]
    regions: NDArray[np.int64]
    overflow: NDArray[np.bool_]


class RawTotals(NamedTuple):
    """Sums over D genes of m items.

    `total`, (m, M): over the D genes, or the pairs of them; without D genes, the paths there are. `overflow`,
    bool (m,): a sum does not fit.
    """

    total: NDArray[Any]
    overflow: NDArray[np.bool_]


class ChainCounter:
    """Counts items under one model with one germline set.

    A count that does not fit 64 bits is reported (``"null"``), or everything is counted in float64
    (``"float"``), or those items with Python integers (``"wide"``).
    """

    def __init__(
        self, germline: GermlineSet, model: PathModel, chain: Chain, target: Target, overflow: Overflow
    ) -> None:
        self.model = model
        self._target = target
        self._overflow = overflow
        self._tables = chain_tables(germline, model, chain)
        self._lanes = int(self._tables.out_lane.size)
        self._pairs = len(germline.d) ** 2 if chain == "vddj" else 0
        self._source = (germline, model, chain)

    def run(self, texts: Texts) -> RawCounts:
        """Count a batch of items."""
        if self.model.name == "exhaustive":
            return self._as_asked(self._enumerate(texts))
        out = self.room(texts, np.int64)
        self._fill(out, COUNT, self._tables, texts)
        overflow = np.zeros(texts.start.size, np.bool_)
        suspects = np.flatnonzero(out.bound >= _SAFE)
        if suspects.size:
            overflow[suspects] = self._recount(texts, suspects, out)
        result = self._as_asked(RawCounts(out.full, out.empty, out.none, out.pair, out.regions, overflow))
        items = np.flatnonzero(overflow)
        if self._overflow == "null" or not items.size:
            return result
        return self._count_wider(texts, items, result)

    def totals(self, texts: Texts) -> RawTotals:
        """Count a batch of items and keep the sums over D genes alone; a device need not send the rest."""
        if self._pairs or self.model.name == "exhaustive" or self._overflow != "null":
            return self._summed(self.run(texts))
        n, m, d = texts.start.size, self._lanes, self._tables.words.length.size
        out = ChainOutput(
            full=np.zeros((n, min(d, 1), m), np.int64),
            empty=np.zeros((n, 0, m), np.int64),
            none=np.zeros((n, 0 if d else m), np.int64),
            pair=np.zeros((n, 0, m), np.int64),
            regions=np.zeros((n, 0), np.int64),
            bound=np.zeros(n, np.float64),
        )
        self._fill(out, COUNT, self._tables, texts)
        found = RawTotals(out.full[:, 0] if d else out.none, np.zeros(n, np.bool_))
        suspects = np.flatnonzero(out.bound * max(d, 1) >= _SAFE)
        if suspects.size:
            again = self._summed(self.run(_take(texts, suspects)))
            found.total[suspects], found.overflow[suspects] = again
        return found

    def _summed(self, counts: RawCounts) -> RawTotals:
        """Sums over D genes, watched for overflow."""
        parts = counts.pair if self._pairs else counts.full if counts.full.shape[1] else counts.none[:, None]
        overflow = counts.overflow.copy()
        if parts.dtype == np.int64:
            # The halves cannot overflow, and their sum tells exactly what the whole would have been.
            high, low = (parts >> 32).sum(axis=1), (parts & 0xFFFFFFFF).sum(axis=1)
            overflow |= (high + (low >> 32) >= 1 << 31).any(axis=1)
        return RawTotals(parts.sum(axis=1), overflow)

    def _as_asked(self, counts: RawCounts) -> RawCounts:
        """The counts in the type that the overflow option asks for."""
        if self._overflow == "null":
            return counts
        dtype = np.float64 if self._overflow == "float" else object
        full, empty, none, pair = (values.astype(dtype) for values in counts[:4])
        return RawCounts(full, empty, none, pair, counts.regions, counts.overflow)

    def room(self, texts: Texts, dtype: Any) -> ChainOutput:
        """Memory for the counts of a batch."""
        n, m, d = texts.start.size, self._lanes, self._tables.words.length.size
        return ChainOutput(
            full=np.zeros((n, d, m), dtype),
            empty=np.zeros((n, d, m), dtype),
            none=np.zeros((n, m), dtype),
            pair=np.zeros((n, self._pairs, m), dtype),
            regions=np.zeros((n, len(REGION_FIELDS)), np.int64),
            bound=np.zeros(n, np.float64),
        )

    def _fill(self, out: ChainOutput, alg: Any, tables: ChainTables, texts: Texts) -> None:
        """Count into `out` in the lanes of this processor."""
        batch = CountBatch(chain_kind(self.model, host_lanes()), alg, tables, texts, out)
        self._target.launch(PATH_COUNTS, batch)

    def _recount(self, texts: Texts, items: NDArray[np.int64], out: ChainOutput) -> NDArray[np.bool_]:
        """Count with saturation; returns which of the items reach the limit."""
        again = self.room(_take(texts, items), np.int64)
        kind = chain_kind(self.model, LANES[1])
        batch = CountBatch(kind, SATURATING_COUNT, self._tables, _take(texts, items), again)
        self._target.launch(PATH_COUNTS, batch)
        reached = np.zeros(items.size, np.bool_)
        for whole, part in zip(out[:4], again[:4], strict=True):
            whole[items] = part
            reached |= (part == SATURATING_COUNT.limit).any(axis=tuple(range(1, part.ndim)))
        return reached

    def _count_wider(self, texts: Texts, items: NDArray[np.int64], result: RawCounts) -> RawCounts:
        """Replace the counts of overflowed items by float64 or Python integers."""
        part = _take(texts, items)
        if self._overflow == "float":
            tables = chain_tables(*self._source, dtype=np.float64)
            again = self.room(part, np.float64)
            self._fill(again, PROBABILITY, tables, part)
        else:
            tables = chain_tables(*self._source, dtype=object)
            again = self.room(part, object)
            batch = CountBatch(chain_kind(self.model, LANES[1]), BIG_COUNT, tables, part, again)
            ReferenceTarget().launch(PATH_COUNTS, batch)
        for whole, wider in zip(result[:4], again[:4], strict=True):
            whole[items] = wider
        return result._replace(overflow=np.zeros_like(result.overflow))

    def _enumerate(self, texts: Texts) -> RawCounts:
        """Exhaustive counts; regions come from the chain, which shares its matches with dp1."""
        out = self.room(texts, np.int64)
        self._fill(out, COUNT, self._tables, texts)
        d = self._tables.words.length.size
        counts = np.zeros((texts.start.size, d + 1, self._lanes), np.int64)
        self._target.launch(ENUMERATION, EnumerationBatch(self._tables, texts, self.model.max_n, counts))
        overflow = np.zeros(texts.start.size, np.bool_)
        return RawCounts(counts[:, :d], out.empty, counts[:, d], out.pair, out.regions, overflow)


def _take(texts: Texts, items: NDArray[np.int64]) -> Texts:
    return Texts(
        texts.symbols, texts.start[items], texts.length[items], texts.prefix[items], texts.suffix[items]
    )
