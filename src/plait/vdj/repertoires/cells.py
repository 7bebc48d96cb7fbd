"""Cells: the chains of each, paired, from rearrangements that name their cell."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.formats.files import beside
from plait.formats.layouts import AUTO, LayoutChoice
from plait.formats.rearrangements import RearrangementReader
from plait.formats.sorted_runs import Direction, SortedRuns, SpilledBlocks, run_starts, whole_runs
from plait.formats.tables import facts_of, open_table
from plait.run.executor import Progress
from plait.vdj.airr import LOCI, loci, productive, translations
from plait.vdj.calls import first_genes, named_rows, text_of, whole_numbers
from plait.vdj.reads.columns import booleans, owners

#: Chains of a cell by how many gene segments they are made from: V and J, or V, D and J.
_OF_D: Final = ("TRB", "TRD", "IGH")
#: Chains that a cell is told with: the most abundant and the next one of each arm.
_SLOTS: Final = (("VJ", 0), ("VDJ", 0), ("VJ", 1), ("VDJ", 1))
_CELL: Final = ("repertoire_id", "subject_id", "cell_id")
_CHAIN: Final = (*_CELL, "arm", "locus", "v_gene", "j_gene", "junction")
_CALLS: Final = ("v_call", "d_call", "j_call", "c_call", "junction_aa")
_COUNTS: Final = ("duplicate_count", "consensus_count")
_TOLD: Final = {
    arm: ("locus", "v_call", *d_call, "j_call", "c_call", "junction", "junction_aa", *_COUNTS)
    for arm, d_call in (("VJ", ()), ("VDJ", ("d_call",)))
}
_ORDER: Final[Mapping[str, Direction]] = {name: "ascending" for name in (*_CHAIN, *_CALLS)}
_REQUIRED: Final = (("cell_id",), ("junction",), ("v_call",), ("j_call",))
_BLOCK_ROWS, _WAITING_BYTES = 1 << 16, 16 << 20

#: Columns of the table of cells.
CELL_SCHEMA: Final = pa.schema(
    [(name, pa.string()) for name in (*_CELL, "receptor_subtype", "chain_pairing")]
    + [(f"{arm}_chains", pa.int32()) for arm in ("VJ", "VDJ")]
    + [
        (f"{arm}_{place + 1}_{name}", pa.int64() if name in _COUNTS else pa.string())
        for arm, place in _SLOTS
        for name in _TOLD[arm]
    ]
)


def _subtype(bits: int) -> str:
    """Receptor of a cell whose chains are of these loci, a bit each; as scirpy calls it."""
    found = {locus for place, locus in enumerate(LOCI) if bits >> place & 1}
    for pair in ({"TRA", "TRB"}, {"TRG", "TRD"}):
        if found <= pair:
            return "+".join(sorted(pair, key=lambda locus: (locus in _OF_D, locus)))
    names = {
        ("IGH",): "IGH",
        ("IGK",): "IGH+IGK",
        ("IGL",): "IGH+IGL",
        ("IGH", "IGK"): "IGH+IGK",
        ("IGH", "IGL"): "IGH+IGL",
        ("IGH", "IGK", "IGL"): "IGH+IGK/L",
    }
    return names.get(tuple(sorted(found)), "ambiguous")


def _pairing(vj: int, vdj: int) -> str:
    """What a cell with so many chains of each arm is, 3 standing for more than two; as scirpy calls it."""
    if max(vj, vdj) > 2:
        return "multichain"
    if not vj or not vdj:
        return "orphan VJ" if vj else "orphan VDJ"
    return {(1, 1): "single pair", (2, 1): "extra VJ", (1, 2): "extra VDJ"}.get((vj, vdj), "two full chains")


_SUBTYPES: Final = np.array([_subtype(bits) for bits in range(1 << len(LOCI))])
_PAIRINGS: Final = np.array([[_pairing(vj, vdj) for vdj in range(4)] for vj in range(4)])


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCells:
    """What became of the rows, and how many cells there are of each pairing.

    `left_out` are rows of no chain, by reason: ``no_cell_id``, ``no_locus``, ``no_junction``,
    ``not_productive``.
    """

    rows: int
    left_out: Mapping[str, int]
    chains: int
    pairings: Mapping[str, int]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return sum(self.pairings.values())


def pair_cells(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    layout: LayoutChoice = AUTO,
    progress: Callable[[Progress], None] | None = None,
) -> PairedCells:
    """Write a table of cells, one row for each, with its chains and how they pair.

    Rows of one cell with the same junction, V and J gene are one chain, whose counts are added up; calls are
    those of its row with the highest count. Chains rank by duplicate_count, then by consensus_count. Cells of
    different repertoires or subjects are different cells; rows of a file that names neither are of a
    repertoire called as the file.

    Parameters
    ----------
    inputs
        Tables of rearrangements with a cell_id, or a `plait.formats.sheets.SampleSheet`.
    output
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``.
    layout
        Layout of the inputs, as of `plait.vdj.sharing`.
    progress
        Called after every block.

    Raises
    ------
    InvalidInput
        If there is no input or the output cannot be.
    FormatError
        If an input is not what it should be, or the disk is full.
    """
    metadata = facts_of("cells", inputs)
    left_out: Counter[str] = Counter()
    pairings: Counter[str] = Counter()
    rows = chains = 0
    with (
        RearrangementReader(
            inputs, layout=layout, block_rows=_BLOCK_ROWS, required=_REQUIRED, named="repertoire_id"
        ) as reader,
        open_table(output, CELL_SCHEMA, metadata=metadata, inputs=inputs) as table,
        SpilledBlocks(beside(output, ".cell-rows")) as blocks,
    ):
        runs = SortedRuns(blocks, _ORDER, memory_bytes=_WAITING_BYTES, combine=_combined)
        convert = _Converter(reader.roles.get("count"), str(inputs[0]), left_out)
        for block in reader:
            rows += block.num_rows
            runs.add(convert(block))
            if progress is not None:
                progress(Progress(rows, reader.bytes_read(), reader.total_bytes))
        for cells in whole_runs(runs.drain(), _CELL):
            found = _cells(_chains(cells))
            chains += sum(pc.sum(found[f"{arm}_chains"]).as_py() for arm in ("VJ", "VDJ"))
            pairings.update(found["chain_pairing"].to_pylist())
            table.write(found)
    return PairedCells(rows=rows, left_out=left_out, chains=chains, pairings=pairings)


class _Converter:
    """Takes what chains need out of rows: columns of `_ORDER`, and counts, 1 where nothing is said."""

    def __init__(self, count: str | None, path: str, left_out: Counter[str]) -> None:
        self._count, self._path, self._left_out = count, path, left_out

    def __call__(self, block: pa.RecordBatch) -> pa.RecordBatch:
        """One row for each productive row with a cell, a locus and a junction."""
        columns = {name: _texts(block, name) for name in (*_CELL, *_CALLS)}
        columns["junction"] = pc.utf8_upper(_texts(block, "junction"))
        acids = columns["junction_aa"]
        columns["junction_aa"] = pc.if_else(
            pc.equal(acids, ""), text_of(translations(columns["junction"])), acids
        )
        columns |= {f"{s}_gene": first_genes(columns[f"{s}_call"]) for s in "vj"}
        told = pc.coalesce(loci(_texts(block, "locus")), loci(columns["j_call"]))
        columns["locus"] = text_of(told)
        columns["arm"] = pc.if_else(pc.is_in(told, pa.array(_OF_D)), "VDJ", "VJ")
        for name in _COUNTS:
            source = self._count if name == "duplicate_count" else name
            # Contig annotations of 10x call them so.
            if source == "consensus_count" and source not in block.schema.names:
                source = "reads"
            columns[name] = self._numbers(block, source)
        kept = named_rows(
            {name: columns[name] for name in ("cell_id", "locus", "junction")}, self._left_out, "no"
        )
        flags = (
            booleans(block, "productive")
            if "productive" in block.schema.names
            else np.asarray(pc.fill_null(productive(columns["junction"]), False))
        )
        self._left_out["not_productive"] += int((kept & ~flags).sum())
        found = pa.record_batch({name: columns[name] for name in (*_ORDER, *_COUNTS)})
        return found.filter(pa.array(kept & flags))

    def _numbers(self, block: pa.RecordBatch, name: str | None) -> pa.Array:
        if name is None or name not in block.schema.names:
            return pa.array(np.ones(block.num_rows, np.int64))
        return pc.fill_null(whole_numbers(block[name], path=self._path, name=name), 1)


def _texts(block: pa.RecordBatch, name: str) -> pa.Array:
    if name not in block.schema.names:
        return pa.repeat(pa.scalar("", pa.large_string()), block.num_rows)
    return text_of(block[name])


def _combined(rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row of those that agree in `_ORDER`, with the sums of their counts."""
    starts = run_starts(rows, _ORDER)
    columns = {name: rows[name].take(pa.array(starts)) for name in _ORDER}
    sums = {name: pa.array(np.add.reduceat(rows[name].to_numpy(), starts)) for name in _COUNTS}
    return pa.record_batch(columns | sums)


def _chains(rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row for each chain of rows in order: the calls of its most abundant row, and all counts."""
    starts = run_starts(rows, _CHAIN)
    chain = owners(starts, rows.num_rows)
    order = np.lexsort((-rows["duplicate_count"].to_numpy(), chain))
    found = rows.take(pa.array(order[starts]))
    for name in _COUNTS:
        sums = pa.array(np.add.reduceat(rows[name].to_numpy(), starts))
        found = found.set_column(found.schema.get_field_index(name), name, sums)
    return found


def _cells(chains: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `CELL_SCHEMA` from the chains of whole cells."""
    starts = run_starts(chains, _CELL)
    cell, n = owners(starts, chains.num_rows), starts.size
    # Of equal counts the last junction goes first, as in scirpy.
    junctions = np.unique(chains["junction"].to_numpy(zero_copy_only=False), return_inverse=True)[1]
    keys = [-junctions, *(-chains[name].to_numpy() for name in reversed(_COUNTS))]
    arms = {arm: np.asarray(pc.equal(chains["arm"], arm)) for arm in ("VJ", "VDJ")}
    counts = {arm: np.bincount(cell[own], minlength=n) for arm, own in arms.items()}
    code = _codes(chains["locus"])
    columns: dict[str, Any] = {name: chains[name].take(pa.array(starts)) for name in _CELL}
    bits = np.zeros(n, np.int64)
    for arm, place in _SLOTS:
        own = np.flatnonzero(arms[arm])
        ranked = own[np.lexsort([*(key[own] for key in keys), cell[own]])]
        first = np.cumsum(counts[arm]) - counts[arm]
        there = counts[arm] > place
        chosen = np.zeros(n, np.int64)
        chosen[there] = ranked[first[there] + place]
        bits[there] |= 1 << code[chosen[there]]
        taken = chains.take(pa.array(chosen, mask=~there))
        columns |= {f"{arm}_{place + 1}_{name}": taken[name] for name in _TOLD[arm]}
    subtype = _SUBTYPES[bits]
    pairing = _PAIRINGS[np.minimum(counts["VJ"], 3), np.minimum(counts["VDJ"], 3)]
    many = pairing == "multichain"
    columns["receptor_subtype"] = pa.array(np.where(many, pairing, subtype))
    columns["chain_pairing"] = pa.array(np.where((subtype == "ambiguous") & ~many, subtype, pairing))
    columns |= {f"{arm}_chains": pa.array(own) for arm, own in counts.items()}
    arrays = [_or_null(columns[field.name]).cast(field.type) for field in CELL_SCHEMA]
    return pa.record_batch(arrays, schema=CELL_SCHEMA)


def _codes(loci: pa.Array) -> NDArray[np.int64]:
    found: NDArray[np.int64] = pc.index_in(loci, pa.array(LOCI, loci.type)).to_numpy().astype(np.int64)
    return found


def _or_null(column: pa.Array) -> pa.Array:
    if not pa.types.is_large_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
