"""From a germline set and a model to the tables of the chain, and the counts of junctions: never wrapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_MASK, MASK_SIZE, encode
from plait.devices.target import ReferenceTarget, Target
from plait.dp.chain.insertions import Insertion
from plait.dp.chain.launches import ENUMERATION, PATH_COUNTS, CountBatch, EnumerationBatch
from plait.dp.chain.rows import Kind, PerInsertions, PerModel
from plait.dp.chain.tables import D_BITS, REGION_FIELDS, ChainOutput, ChainTables, DWords, Junctions
from plait.errors import Unsupported
from plait.lang.algebras import BIG_COUNT, COUNT, PROBABILITY, SATURATING_COUNT
from plait.lang.lanes import LANES, host_lanes, padded
from plait.vdj.germline import GermlineSet
from plait.vdj.germline.germline_set import Chain
from plait.vdj.models import PathModel, end_weight

_Masks = NDArray[np.uint8]


def chain_kind(model: PathModel, lanes: Any) -> Kind:
    """Recurrence and meaning of rows of a model, for lane groups of a width."""
    if model.name == "dp2":
        levels = 1 + max(max(limits) for limits in model.limits)
        return Kind(Insertion(np.int64(levels)), PerModel(np.int64(len(model.pis) * len(model.nus))), lanes)
    return Kind(Insertion(np.int64(model.max_n + 1)), PerInsertions(np.int64(model.max_n + 1)), lanes)


def chain_tables(germline: GermlineSet, model: PathModel, chain: Chain, dtype: Any = np.int64) -> ChainTables:
    """Tables of a chain, ``"vj"``, ``"vdj"`` or ``"vddj"``, with int64 or object weights (Python integers).

    V and J alleles without an anchor get an empty end and must not be counted with. Unsupported if a D gene
    with its extensions is longer than 62 nucleotides, or there are more than 62 of them.
    """
    genes, allowed = _genes(germline, chain)
    of_d = _d_tables(model, genes, dtype)
    ends = _end_tables(germline, model, dtype)
    words = _words(of_d.pop("called"), allowed)
    first = words.first + of_d["joined_left"]
    return ChainTables(
        **ends,
        **of_d,
        words=words,
        joined_starts=((1 << of_d["joined_length"]) - 1) << first,
        plain_starts=_plain_starts(of_d["d_row"], first, of_d["joined_length"]),
        **_lanes(model),
        allowed=allowed,
        pair_allowed=_pairs(germline, len(genes), chain),
        mirror=COMPLEMENT_MASK,
        symbol_weight=MASK_SIZE.astype(np.int64).astype(dtype),
        level_step=np.int64(len(model.pis) if model.name == "dp2" else 1),
        out_lane=_out_lanes(model),
        bound_ends=float(max(ends["end_weights"].max(), 1)) ** 2,
        bound_d=_bound_d(of_d),
        bound_symbol=np.maximum(MASK_SIZE, 1).astype(np.float64),
    )


def d_allele_words(germline: GermlineSet) -> DWords:
    """The D alleles of a set without extensions, packed; Unsupported as for `chain_tables`."""
    genes, allowed = _genes(germline, germline.chain)
    _check_d(genes, 0)
    return _words(genes, allowed)


def _genes(germline: GermlineSet, chain: Chain) -> tuple[list[_Masks], NDArray[np.uint8]]:
    """D genes of a chain, and which of them each J may follow; uint8 (J alleles, D genes)."""
    genes = [] if chain == "vj" else [encode(a.sequence) for a in germline.d]
    allowed = np.array([germline.allowed_d(j)[: len(genes)] for j in germline.j], np.uint8)
    return genes, allowed.reshape(len(germline.j), len(genes))


def _check_d(genes: Sequence[_Masks], pi: int) -> None:
    """Unsupported if a D gene is too long with its extensions, or there are too many."""
    if genes and max(g.size for g in genes) + 2 * pi > D_BITS:
        raise Unsupported(
            f"a D gene of {max(g.size for g in genes)} nt with pi={pi}",
            why=f"the length of a D gene + 2 pi must not exceed {D_BITS}",
        )
    if len(genes) > D_BITS:
        raise Unsupported(f"{len(genes)} D alleles", why=f"a chain takes at most {D_BITS}")


def _end_tables(germline: GermlineSet, model: PathModel, dtype: Any) -> dict[str, NDArray[Any]]:
    """V ends and J ends: the V and J ends, extended; alleles without an anchor have no end."""
    pi = max(model.pis)
    weights = _dp2_weights(model, dtype) if model.name == "dp2" else _dp1_weights(model, dtype)
    v_ends = [_extended(encode(a.cdr3_end or ""), pi) for a in germline.v]
    j_ends = [_extended(encode(a.cdr3_end or "")[::-1], pi) for a in germline.j]
    return {
        "v_bases": _padded(v_ends),
        "j_bases": _padded(j_ends),
        "v_length": _lengths(v_ends),
        "j_length": _lengths(j_ends),
        "v_row": _end_rows(model, v_ends, [p.size - pi for p in v_ends]),
        "j_row": _end_rows(model, j_ends, [s.size - pi for s in j_ends]),
        "end_weights": _pad(weights["end_weights"]),
        "level_weights": _pad(weights["level_weights"]),
    }


def _d_tables(model: PathModel, genes: Sequence[_Masks], dtype: Any) -> dict[str, Any]:
    """D genes as they take part in the chain, and as they are called."""
    pi = max(model.pis)
    _check_d(genes, pi)
    weights = _dp2_weights(model, dtype) if model.name == "dp2" else _dp1_weights(model, dtype)
    called = [np.concatenate([_palindrome(g[::-1], pi)[::-1], g, _palindrome(g, pi)]) for g in genes]
    joined = [_extended(g, pi) for g in genes] if model.name == "dp2" else called
    rows = _d_rows(model, genes, joined)
    d_weights, empty_row = _with_empty_rows(model, genes, joined, weights["d_weights"])
    return {
        **rows,
        "d_weights": _pad(d_weights),
        "called": called,
        "joined_left": np.full(len(genes), pi if model.name == "dp2" else 0, np.int64),
        "joined_length": _lengths(joined),
        "empty_row": empty_row,
        "region_left": np.full(len(genes), pi, np.int64),
        "region_right": np.array([pi + g.size for g in genes], np.int64),
    }


def _palindrome(masks: _Masks, pi: int) -> _Masks:
    """The pi nucleotides that mirror an end; those that the gene is too short to mirror match nothing."""
    mirrored = COMPLEMENT_MASK[masks[::-1]][:pi]
    return np.concatenate([mirrored, np.zeros(pi - mirrored.size, np.uint8)])


def _extended(masks: _Masks, pi: int) -> _Masks:
    return np.concatenate([masks, _palindrome(masks, pi)])


def _padded(rows: Sequence[_Masks]) -> _Masks:
    table = np.zeros((len(rows), max((r.size for r in rows), default=0) + 1), np.uint8)
    for table_row, masks in zip(table, rows, strict=True):
        table_row[: masks.size] = masks
    return table


def _lengths(rows: Sequence[_Masks]) -> NDArray[np.int64]:
    return np.array([r.size for r in rows], np.int64)


def _words(genes: Sequence[_Masks], allowed: NDArray[np.uint8]) -> DWords:
    """Pack D genes into words, in order, with an empty bit between two of them."""
    places: list[NDArray[np.int64]] = []
    d_of: list[NDArray[np.int64]] = []
    word, first = [], []
    free = D_BITS
    for f, masks in enumerate(genes):
        if not places or free + masks.size > D_BITS:
            places.append(np.zeros(16, np.int64))
            d_of.append(np.zeros(D_BITS, np.int64))
            free = 0
        for s, symbol in enumerate(masks.tolist()):
            places[-1][(np.arange(16) & symbol) != 0] |= 1 << (free + s)
        d_of[-1][free : free + masks.size] = f
        word.append(len(places) - 1)
        first.append(free)
        free += masks.size + 1
    lengths = _lengths(genes)
    starts = ((1 << lengths) - 1) << np.array(first, np.int64)
    allowed_starts = np.zeros((allowed.shape[0], len(places)), np.int64)
    every_start = np.zeros(len(places), np.int64)
    for f, w in enumerate(word):
        allowed_starts[:, w] |= np.where(allowed[:, f] != 0, starts[f], 0)
        every_start[w] |= starts[f]
    return DWords(
        places=np.array(places, np.int64).reshape(len(places), 16),
        word=np.array(word, np.int64),
        first=np.array(first, np.int64),
        length=lengths,
        every_start=every_start,
        d_of=np.array(d_of, np.int64).reshape(len(places), D_BITS),
        allowed_starts=allowed_starts,
        longest=np.int64(lengths.max(initial=0)),
    )


def _class_of(model: PathModel, delta: int) -> int:
    """Ends that weigh the same in every model of a sweep share a class: 0 up to germline length."""
    return max(delta, 0) if model.name == "dp2" else 0


def _end_rows(model: PathModel, ends: Sequence[_Masks], germline: Sequence[int]) -> NDArray[np.int32]:
    width = max((e.size for e in ends), default=0) + 1
    table = np.zeros((len(ends), width), np.int32)
    for row, masks, length in zip(table, ends, germline, strict=True):
        for kept in range(masks.size + 1):
            row[kept] = 1 + _class_of(model, kept - length)
    return table


def _d_rows(
    model: PathModel, genes: Sequence[_Masks], joined: Sequence[_Masks]
) -> dict[str, NDArray[np.int32]]:
    """Rows for bases [s:t) of each D gene, and for p mirrored nucleotides before [0:t)."""
    pi = max(model.pis) if model.name == "dp2" else 0
    width = max((f.size for f in joined), default=0) + 1
    plain = np.zeros((len(genes), width, width), np.int32)
    palindrome = np.zeros((len(genes), pi + 1, width), np.int32)
    for f, (gene, d) in enumerate(zip(genes, joined, strict=True)):
        for t in range(d.size + 1):
            right = _class_of(model, t - gene.size)
            plain[f, :t, t] = 1 + right
            for p in range(pi + 1):
                palindrome[f, p, t] = 1 + p * (pi + 1) + right
    return {"d_row": plain, "palindrome_row": palindrome}


def _dp2_weights(model: PathModel, dtype: Any) -> dict[str, NDArray[Any]]:
    """Weight rows over models; lane ``nu_index * len(pi) + pi_index``."""
    longest = max(model.pis)

    def rows(weight: Callable[[int, int], int], deltas: Sequence[int], repeats: int) -> NDArray[Any]:
        table = [[0] * len(model.pis)] + [[weight(d, pi) for pi in model.pis] for d in deltas]
        return np.tile(np.array(table, dtype), (1, repeats))

    def end(delta: int, pi: int) -> int:
        return end_weight(delta, pi, model.strands)

    def pair(index: int, pi: int) -> int:
        left, right = divmod(index, longest + 1)
        return end(left, pi) * end(right, pi)

    levels = 1 + max(max(limits) for limits in model.limits)
    return {
        "end_weights": rows(end, range(longest + 1), len(model.nus)),
        "level_weights": rows(end, range(longest + 1), levels),
        "d_weights": rows(pair, range((longest + 1) ** 2), len(model.nus)),
    }


def _dp1_weights(model: PathModel, dtype: Any) -> dict[str, NDArray[Any]]:
    """Every match counts once; lane n is the number of N nucleotides."""
    table = np.array([[0] * (model.max_n + 1), [1] * (model.max_n + 1)], dtype)
    levels = np.array([[0] * (model.max_n + 1), [1] + [0] * model.max_n], dtype)
    return {"end_weights": table, "level_weights": levels, "d_weights": table}


def _with_empty_rows(
    model: PathModel, genes: Sequence[_Masks], joined: Sequence[_Masks], weights: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Weight rows with one more per D gene: all ways that nothing is left of it."""
    extra = []
    for gene, d in zip(genes, joined, strict=True):
        if model.name == "dp2":
            sums = [
                sum(
                    end_weight(-t, pi, model.strands) * end_weight(t - gene.size, pi, model.strands)
                    for t in range(d.size + 1)
                )
                for pi in model.pis
            ]
            extra.append(sums * len(model.nus))
        else:
            ways = {"positions": d.size + 1, "once": 1, "none": 0}[model.empty_d]
            extra.append([ways] * (model.max_n + 1))
    rows = np.array(extra, weights.dtype).reshape(len(genes), weights.shape[1])
    first = weights.shape[0]
    return np.concatenate([weights, rows]), np.arange(first, first + len(genes), dtype=np.int32)


def _pad(table: NDArray[Any]) -> NDArray[Any]:
    extra = padded(table.shape[1]) - table.shape[1]
    return np.concatenate([table, np.zeros((table.shape[0], extra), table.dtype)], axis=1)


def _out_lanes(model: PathModel) -> NDArray[np.int64]:
    """Lanes run over pi within nu, results over nu within pi."""
    if model.name != "dp2":
        return np.arange(model.max_n + 1)
    return np.arange(len(model.pis) * len(model.nus)).reshape(len(model.pis), len(model.nus)).T.ravel()


def _plain_starts(
    rows: NDArray[np.int32], first: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Bits of the starts s for which bases [s:s+n) of a D gene have the row of [0:n), for every n."""
    table = np.zeros(rows.shape[:2], np.int64)
    for f, (size, bit) in enumerate(zip(lengths.tolist(), first.tolist(), strict=True)):
        for n in range(1, size + 1):
            for s in range(size - n + 1):
                if rows[f, s, s + n] == rows[f, 0, n]:
                    table[f, n] |= 1 << (bit + s)
    return table


def _lanes(model: PathModel) -> dict[str, NDArray[Any]]:
    """Which insertion level each model reads; empty tables where all models are levels, in order."""
    if model.name != "dp2":
        nothing = np.zeros(0, np.int32)
        unused = np.zeros(model.max_n + 1, np.int64)
        return {"left_lane": nothing, "right_lane": nothing, "single_lane": nothing, "middle_limit": unused}
    limits = np.array(model.limits, np.int64)
    width = len(model.pis)
    in_order = all(limits[k].tolist() == [k, k, k] for k in range(len(limits)))
    lane = [(limits[:, side, None] * width + np.arange(width)).ravel().astype(np.int32) for side in range(3)]
    if in_order:
        lane = [np.zeros(0, np.int32)] * 3
    middle = np.repeat(limits[:, 2], width)
    return {"left_lane": lane[0], "right_lane": lane[1], "single_lane": lane[2], "middle_limit": middle}


def _pairs(germline: GermlineSet, genes: int, chain: Chain) -> NDArray[np.uint8]:
    """Which D may stand before which; all zero unless two D genes are asked for."""
    if chain != "vddj":
        return np.zeros((genes, genes), np.uint8)
    pairs = [[germline.allowed_d_pair(a, b) for b in germline.d] for a in germline.d]
    return np.array(pairs, np.uint8).reshape(genes, genes)


def _bound_d(tables: Mapping[str, NDArray[Any]]) -> float:
    longest = int(tables["joined_length"].max(initial=0))
    heaviest = max(tables["d_weights"].max(), 1)
    return float((longest + 1) ** 2 * tables["palindrome_row"].shape[1]) * float(heaviest)


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

    def run(self, texts: Junctions) -> RawCounts:
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

    def totals(self, texts: Junctions) -> RawTotals:
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
            again = self._summed(self.run(texts.take(suspects)))
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

    def room(self, texts: Junctions, dtype: Any) -> ChainOutput:
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

    def _fill(self, out: ChainOutput, alg: Any, tables: ChainTables, texts: Junctions) -> None:
        """Count into `out` in the lanes of this processor."""
        batch = CountBatch(chain_kind(self.model, host_lanes()), alg, tables, texts, out)
        self._target.launch(PATH_COUNTS, batch)

    def _recount(self, texts: Junctions, items: NDArray[np.int64], out: ChainOutput) -> NDArray[np.bool_]:
        """Count with saturation; returns which of the items reach the limit."""
        again = self.room(texts.take(items), np.int64)
        kind = chain_kind(self.model, LANES[1])
        batch = CountBatch(kind, SATURATING_COUNT, self._tables, texts.take(items), again)
        self._target.launch(PATH_COUNTS, batch)
        reached = np.zeros(items.size, np.bool_)
        for whole, part in zip(out[:4], again[:4], strict=True):
            whole[items] = part
            reached |= (part == SATURATING_COUNT.limit).any(axis=tuple(range(1, part.ndim)))
        return reached

    def _count_wider(self, texts: Junctions, items: NDArray[np.int64], result: RawCounts) -> RawCounts:
        """Replace the counts of overflowed items by float64 or Python integers."""
        part = texts.take(items)
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

    def _enumerate(self, texts: Junctions) -> RawCounts:
        """Exhaustive counts; regions come from the chain, which shares its matches with dp1."""
        out = self.room(texts, np.int64)
        self._fill(out, COUNT, self._tables, texts)
        d = self._tables.words.length.size
        counts = np.zeros((texts.start.size, d + 1, self._lanes), np.int64)
        self._target.launch(ENUMERATION, EnumerationBatch(self._tables, texts, self.model.max_n, counts))
        overflow = np.zeros(texts.start.size, np.bool_)
        return RawCounts(counts[:, :d], out.empty, counts[:, d], out.pair, out.regions, overflow)
