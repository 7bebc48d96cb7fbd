"""The rows that clonotypes are counted from: what is kept of annotated reads, and how equal ones become one.

A *variant* is what reads of one clonotype may disagree in: calls, flags and translation. Counting goes over
variants, so that the most frequent value of each column is known in the end, whatever the order of the reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.rearrangements import is_text
from plait.formats.sorted_runs import Direction, run_starts
from plait.vdj.calls import first_gene
from plait.vdj.reads.columns import letters_of, owners, text_array

#: Between V gene, J gene and repertoire in the column ``group``.
SEPARATOR: Final = "\x1f"
#: What makes a clonotype, in sorting order: possible satellites of one another follow each other.
CLONOTYPE_KEY: Final = ("group", "length", "junction")
#: What makes rows equal.
VARIANT_KEY: Final[Mapping[str, Direction]] = {
    name: "ascending" for name in (*CLONOTYPE_KEY, "v_call", "d_call", "j_call", "junction_aa", "flags")
}
#: Columns with T and F; ``flags`` has for each the digit 0 (unknown), 1 (false) or 2 (true) in base three.
FLAGS: Final = ("productive", "vj_in_frame", "stop_codon")
#: Identities are added up as whole numbers of millionths: such sums do not depend on the order.
IDENTITY_UNITS: Final = 1_000_000

_IDENTITIES: Final = ("v_identity", "j_identity")
#: Distinct calls whose genes are remembered.
_MOST_CALLS: Final = 1 << 16


class ClonotypeRows:
    """Takes what clonotypes need out of annotated rows.

    `left_out` counts rows that belong to no clonotype, by reason: ``no_junction``, ``no_v_gene``,
    ``no_j_gene``.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.left_out: Counter[str] = Counter()
        self._genes: dict[str, str] = {}

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
        v_gene, j_gene = self._gene(v), self._gene(j)
        kept = np.ones(batch.num_rows, np.bool_)
        needed = (("no_junction", columns["junction"]), ("no_v_gene", v_gene), ("no_j_gene", j_gene))
        for reason, column in needed:
            blank = kept & np.asarray(pc.equal(column, ""))
            if blank.any():
                self.left_out[reason] += int(blank.sum())
            kept &= ~blank
        columns["group"] = _joined(v_gene, j_gene, _text(batch, "repertoire_id"))
        columns["length"] = pc.binary_length(columns["junction"]).cast(pa.int32())
        columns |= {"v_call": v, "d_call": _text(batch, "d_call"), "j_call": j}
        columns["junction_aa"] = _text(batch, "junction_aa")
        columns["flags"] = _flags(batch)
        columns |= _counts(batch)
        columns |= _identities(batch, columns["duplicate_count"])
        columns |= _quality(batch, columns["length"])
        rows = pa.record_batch(columns)
        return rows if kept.all() else rows.filter(pa.array(kept))

    def _gene(self, calls: pa.Array) -> pa.Array:
        """First gene of each call."""
        encoded = calls.dictionary_encode()
        if len(self._genes) > _MOST_CALLS:
            self._genes.clear()
        genes = []
        for call in encoded.dictionary.to_pylist():
            if call not in self._genes:
                self._genes[call] = first_gene(call)
            genes.append(self._genes[call])
        return pa.array(genes, pa.string()).take(encoded.indices)


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


def _flags(batch: pa.RecordBatch) -> pa.Array:
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
    bounds = np.concatenate(([0], np.cumsum(length)))
    places = np.repeat(starts[:-1] + first - bounds[:-1], length) + np.arange(bounds[-1])
    return text_array(letters[places], bounds)


def _best_quality(texts: pa.Array, starts: NDArray[np.int64]) -> pa.Array:
    """The highest score at each place over each run of rows; rows without scores are passed over."""
    letters, begins = letters_of(texts)
    lengths = np.diff(begins)
    bounds = np.concatenate(([0], np.cumsum(np.maximum.reduceat(lengths, starts))))
    best = np.zeros(bounds[-1], np.uint8)
    shift = bounds[:-1][owners(starts, lengths.size)] - begins[:-1]
    np.maximum.at(best, np.arange(letters.size) + np.repeat(shift, lengths), letters)
    return text_array(best, bounds)
