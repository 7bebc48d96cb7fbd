"""Rows of a part grouped to clonotypes, and to pairs of clonotype and subject."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

from plait.formats.atomic import AtomicFile, output_errors
from plait.vdj.clonotype_names import CLONOTYPE
from plait.vdj.convergence.pgen_columns import PGEN_FIELDS, PgenColumns
from plait.vdj.convergence.row_groups import RowGroups
from plait.vdj.convergence.schemas import clonotype_schema, pair_schema
from plait.vdj.convergence.settings import StudySettings

__all__ = ["group_rows", "write_clonotypes"]

#: Rows of a row group: some 20 MB with a sweep of 55 models.
_GROUP_ROWS = 1 << 15
#: Columns whose values hardly repeat: to look for a dictionary takes longer than to write them.
_MANY_VALUES = frozenset(("junction", "path_count", "path_count_sweep", "pgen_nt"))


def group_rows(
    rows: pa.Table, settings: StudySettings, *, duplicate_count: bool, pgen: PgenColumns | None = None
) -> tuple[pa.Table, pa.Table]:
    """Clonotypes, and pairs of clonotype and subject.

    Parameters
    ----------
    rows
        Rows in input order, of `plait.vdj.convergence.partition.row_schema`; all rows of every clonotype.
    settings
        What was counted.
    duplicate_count
        Whether any input has this column.
    pgen
        What computes generation probabilities, if there are any.

    Returns
    -------
    clonotypes, pairs : pyarrow.Table
        Of `clonotype_schema` and `pair_schema`, by junction, v_gene and j_gene, pairs then by subject. Where
        there are generation probabilities, clonotypes have `PGEN_FIELDS` besides, and pairs ``pgen_nt``.

    Notes
    -----
    Path count, status and regions of a clonotype are those of its first row, in input order, that has a path
    count, and of its first row if none has one: rows with different alleles of a gene can differ.
    """
    pairs = RowGroups(rows, [*CLONOTYPE, "subject"])
    starts = pairs.coarser(len(CLONOTYPE))
    stand_in = pa.array(pairs.representatives(starts))
    columns: dict[str, Any] = {name: rows[name].take(stand_in) for name in rows.column_names}
    first_pair = np.searchsorted(pairs.starts, starts)
    subjects = np.diff(first_pair, append=len(pairs))
    columns["subjects"] = pa.array(subjects)
    columns["rows"] = pairs.sums("rows", starts)
    columns["duplicate_count"] = pairs.sums("duplicate_count", starts)
    columns["junction_length"] = pc.binary_length(columns["junction"])
    clonotypes = _table(columns, clonotype_schema(settings, duplicate_count=duplicate_count))
    of = pa.array(np.repeat(np.arange(len(starts)), subjects))
    schema = pair_schema(settings, duplicate_count=duplicate_count)
    if pgen is not None:
        clonotypes = pgen.added(clonotypes)
        schema = schema.append(PGEN_FIELDS[0])
    taken = {name: clonotypes[name].take(of) for name in schema.names if name in clonotypes.column_names}
    taken["subject"] = rows["subject"].take(pa.array(pairs.order[pairs.starts]))
    taken["rows"] = pairs.sums("rows")
    taken["duplicate_count"] = pairs.sums("duplicate_count")
    return clonotypes, _table(taken, schema)


def write_clonotypes(clonotypes: pa.Table, path: Path) -> None:
    """Write a part of the table of clonotypes.

    Parameters
    ----------
    clonotypes
        The clonotypes.
    path
        The Parquet file.

    Raises
    ------
    FormatError
        If the disk is full.
    """
    few_values = [name for name in clonotypes.column_names if name not in _MANY_VALUES]
    with AtomicFile(path, durable=False) as file, output_errors(path):
        arrow_parquet.write_table(
            clonotypes,
            file.stream,
            row_group_size=_GROUP_ROWS,
            use_dictionary=few_values,
            compression="zstd",
            compression_level=1,
        )


def _table(columns: dict[str, Any], schema: pa.Schema) -> pa.Table:
    return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)
