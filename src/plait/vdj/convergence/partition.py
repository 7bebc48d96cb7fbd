"""Rows dealt out to parts by their clonotype, so that each part fits in memory and has whole clonotypes.

A task reads a stretch of one file's counts and writes one or more pieces: Arrow files whose block i has the
rows of part i. Part i is block i of all pieces, so that it is read without the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as arrow_ipc
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.text_hash import text_hash
from plait.vdj.clonotype_names import CLONOTYPE
from plait.vdj.convergence.row_groups import RowGroups
from plait.vdj.convergence.schemas import number_type, region_names
from plait.vdj.convergence.settings import StudySettings
from plait.vdj.convergence.stretch_rows import StretchRows
from plait.vdj.convergence.stretches import Dealt, Stretch

__all__ = ["Dealer", "part_rows", "row_schema", "row_width"]

#: Most bytes of a piece, whose rows are all in memory when it is written.
_PIECE_BYTES = 96 << 20
#: Bytes of a row in memory beside its sweep: junction, genes, subject, counts and regions.
_PLAIN_BYTES = 240
#: Share of distinct (clonotype, subject) among rows up to which the others are not kept.
_WORTH_COLLAPSING = 0.9
_GENE_HASHES = (np.uint64(0xD6E8FEB86659FD93), np.uint64(0xA0761D6478BD642F))


def row_width(settings: StudySettings) -> int:
    """Bytes that a row takes in memory, about.

    Parameters
    ----------
    settings
        What is counted.
    """
    return _PLAIN_BYTES + 8 * len(settings.sweep_models)


def row_schema(settings: StudySettings) -> pa.Schema:
    """Columns of the rows in a piece.

    Parameters
    ----------
    settings
        What is counted.
    """
    number = number_type(settings)
    fields = [pa.field(name, pa.large_string()) for name in (*CLONOTYPE, "subject")]
    fields += [pa.field("rows", pa.int64()), pa.field("duplicate_count", pa.int64())]
    fields += [pa.field("status", pa.string()), pa.field("path_count", number)]
    fields += [pa.field(name, pa.int32()) for name in region_names(settings)]
    models = len(settings.sweep_models)
    if models:
        fields.append(pa.field("path_count_sweep", pa.list_(pa.field("item", number), models)))
    return pa.schema(fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealer:
    """Deals out the rows of a stretch; called with one, in any process.

    Attributes
    ----------
    settings
        What is counted.
    parts
        Number of parts.
    folder
        Where the pieces are written.
    """

    settings: StudySettings
    parts: int
    folder: Path

    def __call__(self, stretch: Stretch) -> Dealt:
        """Write the pieces of a stretch.

        Parameters
        ----------
        stretch
            Where to read.
        """
        work = StretchRows(self.settings, stretch)
        schema = row_schema(self.settings)
        width = row_width(self.settings)
        held: list[pa.Table] = []
        held_rows = 0
        names = work.dealt.pieces
        for table in work.tables():
            held.append(table)
            held_rows += table.num_rows
            if held_rows * width >= _PIECE_BYTES:
                names.append(f"rows-{stretch.number:06d}-{len(names):03d}.arrow")
                self._write(self.folder / names[-1], pa.concat_tables(held).cast(schema))
                held, held_rows = [], 0
        if held_rows:
            names.append(f"rows-{stretch.number:06d}-{len(names):03d}.arrow")
            self._write(self.folder / names[-1], pa.concat_tables(held).cast(schema))
        return work.dealt

    def _write(self, path: Path, rows: pa.Table) -> None:
        hashed = _clonotype_hash(rows)
        rows, kept = _collapsed(rows, hashed)
        part = (hashed[kept] % np.uint64(self.parts)).astype(np.int64)
        order = np.argsort(part, kind="stable")
        ends = np.cumsum(np.bincount(part, minlength=self.parts))
        table = rows.take(pa.array(order)).combine_chunks()
        options = arrow_ipc.IpcWriteOptions(compression="lz4")
        with (
            AtomicFile(path, durable=False) as file,
            output_errors(path),
            arrow_ipc.new_file(file.stream, rows.schema, options=options) as writer,
        ):
            start = 0
            for end in ends.tolist():
                writer.write_batch(_one_batch(table.slice(start, end - start)))
                start = end


def part_rows(pieces: Sequence[Path], part: int, schema: pa.Schema) -> pa.Table:
    """All rows of a part, in input order.

    Parameters
    ----------
    pieces
        The pieces, in order.
    part
        Its number.
    schema
        What `row_schema` gave.

    Raises
    ------
    FormatError
        If a piece is damaged.
    """
    found = []
    for path in pieces:
        try:
            with pa.OSFile(str(path)) as source, arrow_ipc.open_file(source) as reader:
                found.append(reader.get_batch(part))
        except (pa.ArrowException, OSError) as error:
            raise FormatError(
                path,
                found=f"a damaged or unreadable piece ({error})",
                expected="the rows that this study has put aside",
                hint="something else changed the folder, or the disk is failing; run again without --resume",
            ) from error
    return pa.Table.from_batches(found, schema=schema)


def _clonotype_hash(rows: pa.Table) -> NDArray[np.uint64]:
    found = text_hash(rows["junction"].combine_chunks())
    for factor, name in zip(_GENE_HASHES, CLONOTYPE[1:], strict=True):
        encoded = rows[name].combine_chunks().dictionary_encode()
        found += factor * text_hash(encoded.dictionary)[np.asarray(encoded.indices)]
    found ^= found >> np.uint64(29)
    found *= _GENE_HASHES[0]
    found ^= found >> np.uint64(32)
    return found


def _collapsed(rows: pa.Table, hashed: NDArray[np.uint64]) -> tuple[pa.Table, NDArray[np.int64]]:
    """Rows of one clonotype and subject made one, where there are many such; and what each stands for."""
    subject = np.asarray(rows["subject"].combine_chunks().dictionary_encode().indices).astype(np.uint64)
    distinct = np.unique(hashed + subject * _GENE_HASHES[1]).size
    if distinct > _WORTH_COLLAPSING * len(hashed):
        return rows, np.arange(len(hashed))
    groups = RowGroups(rows, [*CLONOTYPE, "subject"])
    kept = groups.first_counted
    # In input order, so that the first one of a clonotype stays the first.
    order = np.argsort(kept)
    table = rows.take(pa.array(kept[order]))
    for name in ("rows", "duplicate_count"):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), groups.sums(name).take(pa.array(order)))
    return table, kept[order]


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
