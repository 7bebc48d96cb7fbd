"""Tidy rows: one row per input row, D allele and model, instead of lists."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from plait.vdj.columns import ResultColumns

__all__ = ["items_per_row", "long_batch", "long_schema"]

_ZERO_D = {
    "path_count_by_d": "path_count_zero_d_by_d",
    "path_count_sweep_by_d": "path_count_zero_d_sweep_by_d",
}
_AXIS_COLUMNS = {"d_allele": pa.string(), "pi": pa.int32(), "nu": pa.int32(), "n": pa.int32()}


def _counted(columns: ResultColumns) -> list[str]:
    """The list columns that become rows: the sweep's where there is a sweep."""
    names = [name for name in columns.axes if name not in _ZERO_D.values()]
    finest = [name for name in names if "_sweep" in name or "_by_n" in name]
    return finest or names


def long_schema(columns: ResultColumns) -> pa.Schema:
    """Columns of tidy rows: record (0-based input row), status, the axes, and the counts.

    Rows without D allele are the paths without a D gene. A pair of D alleles is written ``first+second``.
    Rows that have no counts are there once, with nulls.
    """
    axes = {axis for name in _counted(columns) for axis, _ in columns.axes[name]}
    axes = {"d_allele" if axis == "d_allele_pair" else axis for axis in axes} | {"d_allele"}
    if "n" not in axes:
        axes |= {"pi", "nu"}
    number = columns.schema.field("path_count").type
    fields = [pa.field("record", pa.int64()), pa.field("status", pa.string())]
    fields += [pa.field(name, kind) for name, kind in _AXIS_COLUMNS.items() if name in axes]
    fields.append(pa.field("path_count", number))
    if any(name in _ZERO_D for name in _counted(columns)):
        fields.append(pa.field("path_count_zero_d", number))
    return pa.schema(fields)


def items_per_row(columns: ResultColumns) -> int:
    """Most tidy rows that one input row can become."""
    return 1 + sum(int(columns.schema.field(name).type.list_size) for name in _counted(columns))


def long_batch(
    block: pa.RecordBatch,
    result: pa.RecordBatch,
    columns: ResultColumns,
    schema: pa.Schema,
    first_record: int,
) -> pa.RecordBatch:
    """Tidy rows of a block.

    Parameters
    ----------
    block
        The input columns.
    result
        The result columns of the same rows.
    columns
        What the result columns are.
    schema
        Columns of the output: those of `block`, then those of `long_schema`.
    first_record
        Number of the block's first row.
    """
    number = columns.schema.field("path_count").type
    sources: list[pa.Array] = []
    items: list[dict[str, Any]] = []
    places, zero_places, offset = [], [], 0
    n = block.num_rows
    labels = _labels(columns)
    wanted = [(name, _ZERO_D.get(name), labels[name]) for name in _counted(columns)]
    if not any(name.startswith("path_count_no_d") for name, _, _ in wanted):
        wanted.append(("path_count_no_d", None, labels["path_count_no_d"]))
    sentinel = sum(len(found) * n * (1 if zero is None else 2) for _, zero, found in wanted)
    for name, zero, found in wanted:
        items += found
        grid = offset + np.arange(n * len(found)).reshape(n, -1)
        places.append(grid)
        sources.append(_flat(result[name]))
        offset += grid.size
        if zero is None:
            zero_places.append(np.full_like(grid, sentinel))
        else:
            zero_places.append(grid + grid.size)
            sources.append(_flat(result[zero]))
            offset += grid.size
    pool = pa.concat_arrays([*sources, pa.nulls(1, number)])
    place = np.concatenate(places, axis=1)
    kept = np.asarray(pool.is_valid())[place]
    alone = ~kept.any(axis=1, keepdims=True)
    kept = np.concatenate([kept, alone], axis=1)
    row, item = np.nonzero(kept)
    filler = np.full((n, 1), sentinel)
    value = np.concatenate([place, filler], axis=1)[row, item]
    zero_value = np.concatenate([*zero_places, filler], axis=1)[row, item]
    items.append({})
    found_columns: dict[str, pa.Array] = {
        "record": pa.array(row + first_record, pa.int64()),
        "status": result["status"].take(pa.array(row)),
        "path_count": pool.take(pa.array(value)),
        "path_count_zero_d": pool.take(pa.array(zero_value)),
    }
    for axis, kind in _AXIS_COLUMNS.items():
        found_columns[axis] = pa.array([i.get(axis) for i in items], kind).take(pa.array(item))
    inputs = [column.take(pa.array(row)) for column in block.columns]
    results = [found_columns[name] for name in schema.names[block.num_columns :]]
    return pa.record_batch([*inputs, *results], schema=schema)


def _flat(column: pa.Array) -> pa.Array:
    return column.flatten() if pa.types.is_fixed_size_list(column.type) else column


def _labels(columns: ResultColumns) -> dict[str, list[dict[str, Any]]]:
    """For every counted column, the axis values of each list item."""
    base = {"pi": columns.model.pi, "nu": columns.model.nu}
    found: dict[str, list[dict[str, Any]]] = {"path_count_no_d": [base]}
    for name in _counted(columns):
        axes = [
            ("d_allele" if axis == "d_allele_pair" else axis, values) for axis, values in columns.axes[name]
        ]
        default = {} if any(axis == "n" for axis, _ in axes) else base
        found[name] = [
            {**default, **dict(zip((axis for axis, _ in axes), point, strict=True))}
            for point in product(*(values for _, values in axes))
        ]
    return found
