"""From a germline set and a model to the tables of the chain, and the counts of junctions: never wrapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

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
    weights = _weights(model, dtype)
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
    weights = _weights(model, dtype)
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


def _weights(model: PathModel, dtype: Any) -> dict[str, NDArray[Any]]:
    """Weight rows: dp2, over models, lane ``nu_index * len(pi) + pi_index``; dp1, by N nucleotides.

    In dp1 every match counts once; lane n is the number of N nucleotides.
    """
    if model.name != "dp2":
        table = np.array([[0] * (model.max_n + 1), [1] * (model.max_n + 1)], dtype)
        levels = np.array([[0] * (model.max_n + 1), [1] + [0] * model.max_n], dtype)
        return {"end_weights": table, "level_weights": levels, "d_weights": table}
    longest = max(model.pis)

    def rows(weight: Callable[[int, int], int], deltas: Sequence[int], repeats: int) -> NDArray[Any]:
        table = [[0] * len(model.pis)] + [[weight(d, pi) for pi in model.pis] for d in deltas]
        return np.tile(np.array(table, dtype), (1, repeats))

    def end(delta: int, pi: int) -> int:
        return end_weight(delta, pi, model.strands)

    def pair(index: int, pi: int) -> int:
        left, right = divmod(index, longest + 1)
        return end(left, pi) * end(right, pi)

    most = 1 + max(max(limits) for limits in model.limits)
    return {
        "end_weights": rows(end, range(longest + 1), len(model.nus)),
        "level_weights": rows(end, range(longest + 1), most),
        "d_weights": rows(pair, range((longest + 1) ** 2), len(model.nus)),
    }


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


def checked_sum(
    add: Callable[[NDArray[Any]], NDArray[Any]], counts: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A sum of counts, and where it does not fit 64 bits."""
    total = add(counts)
    small = 0 <= counts.min(initial=0) <= counts.max(initial=0) < (1 << 62) // max(counts.size, 1)
    if counts.dtype != np.int64 or small:
        return total, np.zeros(total.shape, np.bool_)
    # The halves cannot overflow, and their sum tells exactly what the whole would have been.
    high, low = add(counts >> 32), add(counts & 0xFFFFFFFF)
    return total, high + (low >> 32) >= 1 << 31


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

    def run(self, texts: Junctions) -> tuple[ChainOutput, NDArray[np.bool_]]:
        """Counts of a batch of items, and which of them do not fit, bool (m,).

        Lanes (M) are models (pi-major) or numbers of N nucleotides; there are no pairs unless they are
        counted.
        """
        batch, overflow = self._batch(texts), np.zeros(texts.start.size, np.bool_)
        self._target.launch(PATH_COUNTS, batch)
        out = batch.out
        suspects = np.flatnonzero(out.bound >= _SAFE)
        if self.model.name == "exhaustive":
            # Regions come from the chain, which shares its matches with dp1.
            counts = np.zeros((texts.start.size, out.full.shape[1] + 1, self._lanes), np.int64)
            self._target.launch(ENUMERATION, EnumerationBatch(self._tables, texts, self.model.max_n, counts))
            out = out._replace(full=counts[:, :-1], none=counts[:, -1])
        elif suspects.size:
            again = self._batch(texts.take(suspects), SATURATING_COUNT, lanes=LANES[1])
            self._target.launch(PATH_COUNTS, again)
            for part in _put(out, suspects, again.out):
                overflow[suspects] |= (part == SATURATING_COUNT.limit).any(axis=tuple(range(1, part.ndim)))
        if self._overflow == "null":
            return out, overflow
        dtype = np.float64 if self._overflow == "float" else object
        wide = {name: getattr(out, name).astype(dtype) for name in ("full", "empty", "none", "pair")}
        out, items = out._replace(**wide), np.flatnonzero(overflow)
        if items.size:
            how: tuple[Any, Any, Target] = PROBABILITY, None, self._target
            if self._overflow == "wide":
                how = BIG_COUNT, LANES[1], ReferenceTarget()
            alg, lanes, target = how
            tables = chain_tables(*self._source, dtype=dtype)
            again = self._batch(texts.take(items), alg, lanes=lanes, tables=tables, dtype=dtype)
            target.launch(PATH_COUNTS, again)
            _put(out, items, again.out)
        return out, np.zeros_like(overflow)

    def totals(self, texts: Junctions) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Sums over D genes, or pairs of them, (m, M), and which items have one that does not fit, bool (m,).

        Without D genes, the paths there are. A device need not send the rest.
        """
        if self._pairs or self.model.name == "exhaustive" or self._overflow != "null":
            return self._summed(texts)
        d = self._tables.words.length.size
        batch = self._batch(texts, totals=True)
        self._target.launch(PATH_COUNTS, batch)
        total, overflow = batch.out.full[:, 0] if d else batch.out.none, np.zeros(texts.start.size, np.bool_)
        suspects = np.flatnonzero(batch.out.bound * max(d, 1) >= _SAFE)
        if suspects.size:
            total[suspects], overflow[suspects] = self._summed(texts.take(suspects))
        return total, overflow

    def _summed(self, texts: Junctions) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Sums over D genes of all counts, watched for overflow."""
        out, overflow = self.run(texts)
        parts = out.pair if self._pairs else out.full if out.full.shape[1] else out.none[:, None]
        total, over = checked_sum(lambda counts: counts.sum(axis=1), parts)
        return total, overflow | over.any(axis=1)

    def room(self, texts: Junctions, dtype: Any = np.int64, *, totals: bool = False) -> ChainOutput:
        """Memory for the counts of a batch, or for their `totals` over D genes."""
        n, m, d = texts.start.size, self._lanes, self._tables.words.length.size
        return ChainOutput(
            full=np.zeros((n, min(d, 1) if totals else d, m), dtype),
            empty=np.zeros((n, 0 if totals else d, m), dtype),
            none=np.zeros((n, 0 if totals and d else m), dtype),
            pair=np.zeros((n, self._pairs, m), dtype),
            regions=np.zeros((n, 0 if totals else len(REGION_FIELDS)), np.int64),
            bound=np.zeros(n, np.float64),
        )

    def _batch(
        self,
        texts: Junctions,
        alg: Any = COUNT,
        *,
        tables: ChainTables | None = None,
        dtype: Any = np.int64,
        lanes: Any = None,
        totals: bool = False,
    ) -> CountBatch:
        """What is counted in an algebra, with room for it; by default in the lanes of this processor."""
        out, kind = self.room(texts, dtype, totals=totals), chain_kind(self.model, lanes or host_lanes())
        return CountBatch(kind, alg, tables or self._tables, texts, out)


def _put(out: ChainOutput, items: NDArray[np.int64], found: ChainOutput) -> Sequence[NDArray[Any]]:
    """Put the counts of some items among those of all; returns them."""
    for whole, part in zip(out[:4], found[:4], strict=True):
        whole[items] = part
    return found[:4]
