"""One schema for several input files."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as kinds

from plait.errors import FormatError

__all__ = ["conform", "is_text", "union_schema"]


def is_text(kind: pa.DataType) -> bool:
    """Whether a type holds text, in any of Arrow's ways.

    Parameters
    ----------
    kind
        The type.

    Returns
    -------
    bool
        True for string, large string and string view.
    """
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def union_schema(files: Sequence[tuple[str | os.PathLike[str], pa.Schema]]) -> pa.Schema:
    """Columns of all files in the order of first appearance.

    A column that is text in one file and whole numbers in another becomes text, which loses nothing.
    Whole numbers of several widths become int64, floating ones float64.

    Parameters
    ----------
    files
        Path and schema of each file.

    Returns
    -------
    pyarrow.Schema
        The schema; every column may be null, as a file may lack it.

    Raises
    ------
    FormatError
        If the files hold a column in types that cannot be joined without loss.
    """
    chosen: dict[str, pa.DataType] = {}
    first: dict[str, str | os.PathLike[str]] = {}
    for path, schema in files:
        for field in schema:
            if field.name not in chosen:
                chosen[field.name], first[field.name] = field.type, path
                continue
            joined = _joined(chosen[field.name], field.type)
            if joined is None:
                raise FormatError(
                    path,
                    column=field.name,
                    found=f"values of type {field.type}",
                    expected=f"{chosen[field.name]}, as in {first[field.name]}",
                    hint="convert one of the files, or run them separately",
                )
            chosen[field.name] = joined
    return pa.schema(list(chosen.items()))


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give a batch the columns and types of a schema; columns that it lacks become null.

    Parameters
    ----------
    batch
        Rows of one file.
    schema
        What `union_schema` made of it and others.

    Returns
    -------
    pyarrow.RecordBatch
        The same rows.
    """
    if batch.schema.equals(schema):
        return batch
    arrays = []
    for field in schema:
        place = batch.schema.get_field_index(field.name)
        if place < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            arrays.append(batch.column(place).cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _joined(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Type that holds every value of both unchanged, or None."""
    if a.equals(b) or kinds.is_null(b):
        return a
    if kinds.is_null(a):
        return b
    if all(is_text(kind) or kinds.is_integer(kind) for kind in (a, b)):
        if is_text(a) or is_text(b):
            return pa.string()
        return None if kinds.is_uint64(a) or kinds.is_uint64(b) else pa.int64()
    if all(kinds.is_float32(kind) or kinds.is_float64(kind) for kind in (a, b)):
        return pa.float64()
    return None
