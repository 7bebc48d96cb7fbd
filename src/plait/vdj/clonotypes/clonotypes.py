"""Clonotypes: rows of one repertoire, or cell, with the same junction, V gene and J gene, counted.

A *variant* is what reads of one clonotype may disagree in: calls, flags and translation. Counting goes over
variants, so that the most frequent value of each column is known in the end, whatever the order of the reads.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput, whole_fields
from plait.formats.checkpoints import letters_of
from plait.formats.layouts import is_text
from plait.formats.rearrangements import reblock
from plait.formats.sorted_runs import Direction, SortedRuns, Spilling, run_starts, whole_runs
from plait.vdj.airr import OF_READS, loci
from plait.vdj.calls import first_genes, named_rows
from plait.vdj.clonotypes.error_clonotypes import LowQualityRows, merge_satellites, split_low_quality
from plait.vdj.reads.columns import edges_of, owners, text_array

#: Between V gene, J gene, repertoire and cell in the column ``group``.
SEPARATOR: Final = "\x1f"
#: What makes a clonotype, in sorting order: possible satellites of one another follow each other.
CLONOTYPE_KEY: Final = ("group", "length", "junction")
#: What makes rows equal.
VARIANT_KEY: Final[Mapping[str, Direction]] = {
    name: "ascending"
    for name in (*CLONOTYPE_KEY, "v_call", "d_call", "j_call", "c_call", "junction_aa", "flags")
}
#: Columns with T and F; ``flags`` has for each the digit 0 (unknown), 1 (false) or 2 (true) in base three.
FLAGS: Final = ("productive", "vj_in_frame", "stop_codon")
#: Identities are added up as whole numbers of millionths: such sums do not depend on the order.
IDENTITY_UNITS: Final = 1_000_000

_IDENTITIES: Final = ("v_identity", "j_identity")


class ClonotypeRows:
    """Takes what clonotypes need out of annotated rows.

    `left_out` counts rows that belong to no clonotype, by reason: ``no_junction``, ``no_v_gene``,
    ``no_j_gene``.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.left_out: Counter[str] = Counter()

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One row for each AIRR row that has a junction, a V and a J gene.

        Columns of `VARIANT_KEY`; sums: counts, identities (in millionths, with the number of reads); and the
        qualities of the junction. InvalidInput if a column is missing or holds what it should not.
        """
        missing = [name for name in ("junction", "v_call", "j_call") if name not in batch.schema.names]
        if missing:
            raise InvalidInput("batch", found=f"no column {missing[0]!r}", expected="annotated rows")
        self.rows += batch.num_rows
        columns = {"junction": pc.utf8_upper(_text(batch, "junction"))}
        v, j = _text(batch, "v_call"), _text(batch, "j_call")
        v_gene, j_gene = (first_genes(calls).cast(pa.string()) for calls in (v, j))
        kept = named_rows({**columns, "v_gene": v_gene, "j_gene": j_gene}, self.left_out, "no")
        columns["group"] = _joined(v_gene, j_gene, _text(batch, "repertoire_id"), _text(batch, "cell_id"))
        columns["length"] = pc.binary_length(columns["junction"]).cast(pa.int32())
        columns |= {"v_call": v, "d_call": _text(batch, "d_call"), "j_call": j}
        columns |= {name: _text(batch, name) for name in ("c_call", "junction_aa")}
        columns["flags"] = _flag_codes(batch)
        columns |= _counts(batch)
        columns |= _identities(batch, columns["duplicate_count"])
        columns |= _quality(batch, columns["length"])
        rows = pa.record_batch(columns)
        return rows if kept.all() else rows.filter(pa.array(kept))


def combine(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Make one row per variant, its sums those of its rows.

    `rows` are of `ClonotypeRows.convert` or of this function, in the order of the columns of `VARIANT_KEY`
    that they have.
    """
    names = [name for name in VARIANT_KEY if name in rows.schema.names]
    starts = run_starts(rows, names)
    if starts.size == rows.num_rows:
        return rows
    keys = {name: rows[name].take(pa.array(starts)) for name in names}
    sums = add_up(rows, starts)
    return pa.record_batch({name: keys[name] if name in keys else sums[name] for name in rows.schema.names})


def add_up(rows: pa.RecordBatch, starts: NDArray[np.int64]) -> dict[str, pa.Array]:
    """Sums over runs of rows that begin at `starts`, of qualities the best; but for `VARIANT_KEY`."""
    columns = {}
    for name in rows.schema.names:
        if name == "quality":
            columns[name] = _best_quality(rows[name], starts)
        elif name not in VARIANT_KEY:
            columns[name] = pa.array(np.add.reduceat(rows[name].to_numpy(), starts))
    return columns


def _text(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column as text, empty where it is null or absent."""
    if name not in batch.schema.names:
        return pa.array([""], pa.string()).take(pa.array(np.zeros(batch.num_rows, np.int8)))
    return pc.fill_null(batch[name].cast(pa.string()), "")


def _joined(*columns: pa.Array) -> pa.Array:
    """Texts of several columns with separators between; put together once for each combination."""
    encoded = [column.dictionary_encode() for column in columns]
    code = np.zeros(len(columns[0]), np.int64)
    for column in encoded:
        code = code * max(len(column.dictionary), 1) + column.indices.to_numpy(zero_copy_only=False)
    _, first, place = np.unique(code, return_index=True, return_inverse=True)
    texts = [column.take(pa.array(first)) for column in columns]
    return pc.binary_join_element_wise(*texts, SEPARATOR).take(pa.array(place))


def _flag_codes(batch: pa.RecordBatch) -> pa.Array:
    code = np.zeros(batch.num_rows, np.int8)
    for name in FLAGS:
        code *= 3
        if name in batch.schema.names:
            code += _three_valued(name, batch[name])
    return pa.array(code)


def _three_valued(name: str, column: pa.Array) -> NDArray[np.int8]:
    """0 where unknown, 1 where false, 2 where true."""
    if is_text(column.type):
        upper = pc.utf8_upper(column)
        true = pc.is_in(upper, value_set=pa.array(["T", "TRUE"], column.type))
        false = pc.is_in(upper, value_set=pa.array(["F", "FALSE"], column.type))
        return 2 * np.asarray(true).astype(np.int8) + np.asarray(false).astype(np.int8)
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int8)
    if not pa.types.is_boolean(column.type):
        raise InvalidInput(name, found=f"values of type {column.type}", expected="T or F")
    return np.asarray(pc.fill_null(pc.add(column.cast(pa.int8()), pa.scalar(1, pa.int8())), 0))


def _numbers(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    """A column of numbers, null where it is empty."""
    column = batch[name]
    try:
        if is_text(column.type):
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise InvalidInput(name, found=str(error), expected="numbers") from error


def _counts(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """How many molecules and reads a row stands for: one where nothing is said."""
    counts = {"duplicate_count": pa.array(np.ones(batch.num_rows, np.int64))}
    for name in ("duplicate_count", "consensus_count", "umi_count"):
        # UMIs are not made up where they are not known.
        instead = pa.scalar(0, pa.int64()) if name == "umi_count" else counts["duplicate_count"]
        if name in batch.schema.names:
            counts[name] = pc.coalesce(_numbers(batch, name, pa.int64()), instead)
            least = pc.min(counts[name]).as_py()
            if least is not None and least < (name != "umi_count"):
                raise InvalidInput(name, found=least, expected="counts of at least 1")
        elif name == "consensus_count":
            counts[name] = instead
    return counts


def _identities(batch: pa.RecordBatch, weights: pa.Array) -> dict[str, pa.Array]:
    columns = {}
    weight = weights.to_numpy()
    for name in _IDENTITIES:
        if name in batch.schema.names:
            values = _numbers(batch, name, pa.float64()).to_numpy(zero_copy_only=False)
            known = ~np.isnan(values)
            millionths = np.rint(np.where(known, values, 0) * IDENTITY_UNITS).astype(np.int64)
            columns[name] = pa.array(millionths * weight)
            columns[f"{name}_count"] = pa.array(weight * known)
    return columns


def _quality(batch: pa.RecordBatch, lengths: pa.Array) -> dict[str, pa.Array]:
    """Phred scores of the junction as text, empty where unknown; from those of the read if need be."""
    length = lengths.to_numpy().astype(np.int64)
    if "junction_quality" in batch.schema.names:
        texts = _text(batch, "junction_quality")
        first = np.zeros(length.size, np.int64)
        given = pc.binary_length(texts).to_numpy().astype(np.int64)
        wrong = np.flatnonzero((given != 0) & (given != length))
        if wrong.size:
            raise InvalidInput(
                "junction_quality",
                found=f"{given[wrong[0]]} scores for {length[wrong[0]]} bases",
                expected="a score for each base of the junction",
            )
    elif {"quality", "cdr3_start"} <= set(batch.schema.names):
        texts = _text(batch, "quality")
        given = pc.binary_length(texts).to_numpy()
        # The CDR3 begins a codon behind the junction, and its coordinate counts from one.
        first = pc.fill_null(batch["cdr3_start"].cast(pa.int64()), 0).to_numpy() - 4
        given = np.where((first >= 0) & (first + length <= given), length, 0)
    else:
        return {}
    return {"quality": _slices(texts, first, given)}


def _slices(texts: pa.Array, first: NDArray[np.int64], length: NDArray[np.int64]) -> pa.Array:
    """A part of each text."""
    letters, starts = letters_of(texts)
    bounds = edges_of(length)
    places = np.repeat(starts[:-1] + first - bounds[:-1], length) + np.arange(bounds[-1])
    return text_array(letters[places], bounds)


def _best_quality(texts: pa.Array, starts: NDArray[np.int64]) -> pa.Array:
    """The highest score at each place over each run of rows; rows without scores are passed over."""
    letters, begins = letters_of(texts)
    lengths = np.diff(begins)
    bounds = edges_of(np.maximum.reduceat(lengths, starts))
    best = np.zeros(bounds[-1], np.uint8)
    shift = bounds[:-1][owners(starts, lengths.size)] - begins[:-1]
    np.maximum.at(best, np.arange(letters.size) + np.repeat(shift, lengths), letters)
    return text_array(best, bounds)


_VOTED = tuple(name for name in VARIANT_KEY if name not in CLONOTYPE_KEY)


def clonotypes_of(variants: pa.RecordBatch) -> pa.RecordBatch:
    """Make one row of the variants of each clonotype; the same columns.

    The variants are in the order of `VARIANT_KEY`, clonotypes whole. Each call, the
    translation and the flags are those that most molecules have, every column for itself. Of equally frequent
    ones a call goes before none, and then the first in the alphabet; of flags, true before false.
    """
    starts = run_starts(variants, CLONOTYPE_KEY)
    if starts.size == variants.num_rows:
        return variants
    chosen = _most_frequent_rows(variants, starts)
    keys = {name: variants[name].take(pa.array(rows)) for name, rows in chosen.items()}
    keys |= {name: variants[name].take(pa.array(starts)) for name in CLONOTYPE_KEY}
    sums = add_up(variants, starts)
    return pa.record_batch(
        {name: keys[name] if name in keys else sums[name] for name in variants.schema.names}
    )


def _most_frequent_rows(variants: pa.RecordBatch, starts: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """For each column that is voted on, a row of each clonotype with its most frequent value."""
    sizes = np.diff(np.append(starts, variants.num_rows))
    clonotype = owners(starts, variants.num_rows)
    # Most clonotypes have one variant only; there is nothing to vote on.
    several = np.flatnonzero(sizes[clonotype] > 1)
    part = variants.take(pa.array(several))
    owner = clonotype[several]
    weight = part["duplicate_count"].to_numpy()
    chosen = {}
    for name in _VOTED:
        rows = starts.copy()
        rows[owner[_run_heads(owner)]] = several[_winners(_codes(part[name]), owner, weight)]
        chosen[name] = rows
    return chosen


def _codes(column: pa.Array) -> NDArray[np.int64]:
    """A number for each value, lower for those that go before others."""
    encoded = column.dictionary_encode()
    values = encoded.dictionary
    text = pa.types.is_string(values.type)
    rank = np.empty(len(values), np.int64)
    rank[pc.array_sort_indices(values, order="ascending" if text else "descending")] = np.arange(len(values))
    if text:
        rank[np.asarray(pc.equal(values, ""))] = len(values)
    codes: NDArray[np.int64] = rank[encoded.indices.to_numpy(zero_copy_only=False)]
    return codes


def _winners(
    code: NDArray[np.int64], owner: NDArray[np.int64], weight: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Of the rows of each owner, one with the code of the greatest weight; the lowest code of equal ones."""
    order = np.lexsort((code, owner))
    heads = np.flatnonzero((np.diff(owner[order], prepend=-1) != 0) | (np.diff(code[order], prepend=-1) != 0))
    total = np.add.reduceat(weight[order], heads)
    rows = order[heads]
    best = np.lexsort((code[rows], -total, owner[rows]))
    return rows[best[_run_heads(owner[rows][best])]]


def _run_heads(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where runs of equal numbers, none of them negative, begin."""
    return np.flatnonzero(np.diff(values, prepend=-1) != 0)


_BLOCK_ROWS: Final = 65536
_OPTIONAL: Final[Mapping[str, Any]] = {
    "umi_count": pa.int64(),
    "v_identity": pa.float64(),
    "j_identity": pa.float64(),
    "junction_quality": pa.string(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClonotypeSettings:
    """How rows are collapsed; InvalidInput if a value is out of range.

    `satellite_ratio`: merge a clonotype with another of the same repertoire, V gene, J gene and length that
    differs in one base and is at least so many times as abundant; None: do not merge. `satellite_quality`:
    where qualities are known, merge only if the Phred score at the differing base is below this in all reads.

    `min_quality`: rows with a base of the junction below this Phred score make no clonotype. Each is counted
    in the one clonotype of its repertoire, genes and length that all other bases agree with, if there is
    exactly one, and at least half of the bases are good. `memory_bytes` are those of rows that wait in
    memory; the peak is about ten times that.
    """

    satellite_ratio: float | None = None
    satellite_quality: int = 25
    min_quality: int = 0
    memory_bytes: int = 16 << 20

    def __post_init__(self) -> None:
        ratio = self.satellite_ratio
        if ratio is not None and not 1 < ratio < float("inf"):
            raise InvalidInput("satellite_ratio", found=ratio, expected="a number above 1, such as 20")
        whole_fields(self, "satellite_quality", "min_quality", most=94)
        whole_fields(self, "memory_bytes", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClonotypeCounts:
    """What became of the rows.

    `left_out` are rows in no clonotype, by reason: ``no_junction``, ``no_v_gene``, ``no_j_gene``; and of
    those of low quality ``no_clonotype_agrees``, ``several_clonotypes_agree``, ``too_few_good_bases``.
    `low_quality` rows have such a base in the junction, `joined` of them are counted in a clonotype.
    `clonotypes` counts after merging; `satellites` were merged with another, `satellite_count` is the sum of
    their ``duplicate_count``.
    """

    rows: int
    left_out: Mapping[str, int]
    low_quality: int
    joined: int
    clonotypes: int
    satellites: int
    satellite_count: int


class ClonotypeCollector(Spilling):
    """Collapses annotated rows to clonotypes, in bounded memory.

    The clonotypes do not depend on the order of the rows or on the batches they come in. `folder` is its own,
    for rows that do not fit memory: made here, what a killed run left there is replaced, and as a context
    manager it removes it in the end. InvalidInput if the folder holds something else, FormatError if it
    cannot be written.

    >>> import tempfile, pyarrow as pa
    >>> rows = pa.record_batch(
    ...     {
    ...         "junction": ["TGTGCCTTC", "TGTGCCTTC", "TGTAGCTTC"],
    ...         "v_call": ["TRBV1*01", "TRBV1*01,TRBV1*02", "TRBV1*01"],
    ...         "j_call": ["TRBJ1-1*01"] * 3,
    ...     }
    ... )
    >>> with tempfile.TemporaryDirectory() as folder, ClonotypeCollector(f"{folder}/rows") as collector:
    ...     collector.add(rows)
    ...     table = pa.Table.from_batches(collector.finish())
    >>> table.select(["sequence_id", "junction", "v_call", "duplicate_count"]).to_pylist()[0]
    {'sequence_id': 'clonotype-1', 'junction': 'TGTGCCTTC', 'v_call': 'TRBV1*01', 'duplicate_count': 2}
    """

    def __init__(self, folder: str | os.PathLike[str], settings: ClonotypeSettings | None = None) -> None:
        self._settings = settings or ClonotypeSettings()
        super().__init__(folder)
        self._converter = ClonotypeRows()
        self._columns: pa.Schema | None = None
        self._variants = self._runs(VARIANT_KEY, combine)
        self._masked = self._runs(dict.fromkeys(CLONOTYPE_KEY, "ascending"), combine)
        self._low_quality: LowQualityRows | None = None
        self._clonotypes = self._satellites = self._satellite_count = 0

    @property
    def schema(self) -> pa.Schema:
        """Columns of the clonotypes: AIRR names; the optional ones as far as the rows so far have them."""
        known = () if self._columns is None else self._columns.names
        names = {"quality": "junction_quality"}
        present = {names.get(name, name) for name in known}
        text = (
            "repertoire_id",
            "cell_id",
            "locus",
            "v_call",
            "d_call",
            "j_call",
            "c_call",
            "junction",
            "junction_aa",
        )
        fields = [("sequence_id", pa.string()), *((name, pa.string()) for name in text)]
        fields += [(name, pa.bool_()) for name in FLAGS]
        fields += [("duplicate_count", pa.int64()), ("consensus_count", pa.int64())]
        fields += [(name, kind) for name, kind in _OPTIONAL.items() if name in present]
        fields += [("rev_comp", pa.bool_()), *((name, pa.string()) for name in OF_READS)]
        return pa.schema(fields)

    @property
    def counts(self) -> ClonotypeCounts:
        """What became of the rows; complete after `finish` has been exhausted."""
        low = self._low_quality
        left_out = self._converter.left_out + (Counter() if low is None else low.left_out)
        joined = 0 if low is None else low.joined
        return ClonotypeCounts(
            rows=self._converter.rows,
            left_out=dict(sorted(left_out.items())),
            low_quality=joined + (0 if low is None else low.left_out.total()),
            joined=joined,
            clonotypes=self._clonotypes,
            satellites=self._satellites,
            satellite_count=self._satellite_count,
        )

    def add(self, batch: pa.RecordBatch) -> None:
        """Take annotated rows in AIRR columns, all batches the same ones.

        Needed are junction, v_call, j_call; used if there are any repertoire_id, cell_id, d_call, c_call,
        junction_aa, productive, vj_in_frame, stop_codon, v_identity, j_identity, duplicate_count (1 where
        absent), consensus_count (as duplicate_count where absent), umi_count, and junction_quality (Phred
        scores as text, a character for each base of the junction) or quality and cdr3_start, from which it
        follows.

        InvalidInput if a column is missing or holds what it should not; FormatError if rows cannot be put
        aside, for example on a full disk.
        """
        rows = self._converter.convert(batch)
        if self._columns is None:
            self._columns = rows.schema
        elif not self._columns.equals(rows.schema):
            raise InvalidInput(
                "batch",
                found=f"the columns {', '.join(batch.schema.names)}",
                expected="the same columns in every batch",
            )
        good, masked = split_low_quality(rows, self._settings.min_quality)
        self._variants.add(good)
        if masked is not None:
            self._masked.add(masked)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The clonotypes, the most abundant first; to be called once, after the last `add`.

        Columns of `schema`; by falling duplicate_count, then by junction, V gene, J gene, repertoire and
        cell. FormatError if rows that were put aside have been damaged, or the disk is full.
        """
        final = self._runs({"duplicate_count": "descending", "junction": "ascending", "group": "ascending"})
        for rows in self._whole():
            self._clonotypes += rows.num_rows
            final.add(rows)
        number = 1
        for rows in reblock(final.drain(), _BLOCK_ROWS):
            yield _output(rows, self.schema, number)
            number += rows.num_rows

    def _runs(
        self, order: Mapping[str, Any], function: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
    ) -> SortedRuns:
        return SortedRuns(self._blocks, order, memory_bytes=self._settings.memory_bytes, combine=function)

    def _whole(self) -> Iterator[pa.RecordBatch]:
        """Clonotypes, not in their final order."""
        ratio = self._settings.satellite_ratio
        low = self._low_quality = LowQualityRows(self._masked.drain())
        clonotypes = map(clonotypes_of, whole_runs(self._variants.drain(), CLONOTYPE_KEY))
        if ratio is None and not low.any:
            yield from clonotypes
            return
        for rows in whole_runs(clonotypes, CLONOTYPE_KEY[:2]):
            if ratio is not None:
                merged = merge_satellites(rows, ratio, self._settings.satellite_quality)
                self._satellites += merged.satellites
                self._satellite_count += merged.satellite_count
                rows = merged.clonotypes
            yield low.join(rows)
        low.finish()


def _output(rows: pa.RecordBatch, schema: pa.Schema, number: int) -> pa.RecordBatch:
    """AIRR columns of clonotypes that are numbered from `number` on."""
    n = rows.num_rows
    numbers = pa.array(np.arange(number, number + n)).cast(pa.string())
    columns = {
        "sequence_id": pc.binary_join_element_wise("clonotype", numbers, "-"),
        **_of_group(rows["group"]),
        **_flags(rows["flags"].to_numpy()),
        "junction": rows["junction"],
        "duplicate_count": rows["duplicate_count"],
        "consensus_count": rows["consensus_count"],
        # Junctions are on the strand of the genes; and the airr package reads no table without it.
        "rev_comp": pa.array(np.zeros(n, np.bool_)),
    }
    for name in ("v_call", "d_call", "j_call", "c_call", "junction_aa"):
        columns[name] = _or_null(rows[name])
    for name in _OPTIONAL:
        if name == "umi_count" and name in rows.schema.names:
            columns[name] = pa.array(rows[name].to_numpy(), mask=rows[name].to_numpy() == 0)
        elif name in rows.schema.names:
            columns[name] = _mean(rows[name].to_numpy(), rows[f"{name}_count"].to_numpy())
    if "quality" in rows.schema.names:
        columns["junction_quality"] = _or_null(rows["quality"])
    for field in schema:
        columns.setdefault(field.name, pa.nulls(n, field.type))
    return pa.record_batch([columns[name] for name in schema.names], schema=schema)


def _of_group(groups: pa.Array) -> dict[str, pa.Array]:
    encoded = groups.dictionary_encode()
    parts = [text.split(SEPARATOR, 3) for text in encoded.dictionary.to_pylist()]
    names = {
        name: [part[place] or None for part in parts]
        for place, name in ((2, "repertoire_id"), (3, "cell_id"))
    }
    return {
        "locus": loci(pa.array([part[1] for part in parts], pa.string())).take(encoded.indices),
        **{name: pa.array(own, pa.string()).take(encoded.indices) for name, own in names.items()},
    }


def _flags(code: NDArray[np.int8]) -> dict[str, pa.Array]:
    columns = {}
    for place, name in enumerate(reversed(FLAGS)):
        digit = code // 3**place % 3
        columns[name] = pa.array(digit == 2, mask=digit == 0)
    return columns


def _or_null(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _mean(sums: NDArray[np.int64], count: NDArray[np.int64]) -> pa.Array:
    """Means to six digits after the point; null where there is nothing to take them of."""
    millionths = (2 * sums + count) // np.maximum(2 * count, 1)
    return pa.array(millionths / IDENTITY_UNITS, mask=count == 0)
