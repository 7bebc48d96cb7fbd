"""Sharing from files to files."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import pyarrow as pa

from plait._version import __version__
from plait.executors.protocol import Executor
from plait.formats.tables import open_table
from plait.vdj.sharing_table import SharingTable, sharing

__all__ = ["share_files", "write_sharing"]

_BATCH_ROWS = 1 << 17

_Path = str | os.PathLike[str]


def share_files(
    inputs: Sequence[_Path],
    output: _Path,
    *,
    by_subject: _Path | None = None,
    subject: str | None = None,
    layout: str = "airr",
    executor: Executor | None = None,
) -> SharingTable:
    """Count sharing over files and write it.

    Parameters
    ----------
    inputs, subject, layout, executor
        As for `plait.vdj.sharing`.
    output
        The table of clonotypes.
    by_subject
        The table of clonotypes and subjects, if it is wanted.
    """
    found = sharing(inputs, subject=subject, layout=layout, executor=executor)
    write_sharing(found.clonotypes, output, found, inputs=inputs)
    if by_subject is not None:
        write_sharing(found.by_subject, by_subject, found, inputs=[*inputs, output])
    return found


def write_sharing(table: pa.Table, output: _Path, found: SharingTable, *, inputs: Sequence[_Path]) -> None:
    """Write one of the two tables, with what it was made from in its metadata.

    Parameters
    ----------
    table
        The table.
    output
        ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``.
    found
        What it is part of.
    inputs
        Files that were read.
    """
    facts = {
        "version": __version__,
        "inputs": [os.path.realpath(path) for path in inputs],
        "rows": found.rows,
        "subjects": dict(found.subjects),
        "left_out": dict(found.left_out),
    }
    metadata = {"plait.sharing": json.dumps(facts, sort_keys=True)}
    with open_table(output, table.schema, metadata=metadata, inputs=inputs) as writer:
        for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
            writer.write(batch)
