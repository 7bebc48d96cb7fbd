"""Tables of junctions drawn from a model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait._version import __version__
from plait.errors import InvalidInput
from plait.formats.tables import open_table
from plait.types import Provenance
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.sampling import Draws, JunctionSampler
from plait.vdj.model.texts import CODONS

__all__ = ["GeneratedFile", "generate_file"]

_ACIDS: Final = np.frombuffer(
    "".join(
        next(acid for acid, codons in CODONS.items() if a + b + c in codons)
        for a in "ACGT"
        for b in "ACGT"
        for c in "ACGT"
    ).encode(),
    np.uint8,
)
_ENDS: Final = (("v_3", "p3v", 3, 0), ("d_5", "p5d", 4, 1), ("d_3", "p3d", 5, 2), ("j_5", "p5j", 6, 3))
#: Blocks without any row that is kept, after which a model is taken for one that makes none.
_MOST_EMPTY: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedFile:
    """A finished run.

    Attributes
    ----------
    output
        The table.
    rows
        Its rows.
    drawn
        Draws that were made for them.
    """

    output: Path
    rows: int
    drawn: int


def generate_file(
    model: RecombinationModel,
    output: str | os.PathLike[str],
    count: int,
    *,
    seed: int = 0,
    productive: bool = True,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> GeneratedFile:
    """Write a table of junctions drawn from a model.

    Draw number k depends on the seed and on k alone, and the table has the first ones that are wanted: it
    is the same for any number of threads, and a longer one begins with a shorter one.

    Parameters
    ----------
    model
        The model.
    output
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``.
    count
        Rows.
    seed
        What the draws depend on.
    productive
        Keep those alone that are in frame, have no stop codon and begin with Cys and end with Phe or Trp.
    threads
        Blocks made at a time.
    progress
        Called after every block with the number of rows so far.

    Raises
    ------
    InvalidInput
        If `count` or `seed` is out of range, the output cannot be, or the model makes no such junction.
    FormatError
        If the disk is full.
    """
    if count < 0:
        raise InvalidInput("count", found=count, expected="0 or more")
    if not 0 <= seed < 1 << 64:
        raise InvalidInput("seed", found=seed, expected="a whole number from 0 to 2^64 - 1")
    sampler = JunctionSampler(model, seed=seed)
    provenance = Provenance(
        version=__version__,
        device="cpu",
        schedule="scenario_sampling",
        algebra="sampling",
        parameters={
            "model": model.name,
            "model_digest": model.digest,
            "seed": seed,
            "count": count,
            "productive": productive,
        },
    )
    schema = _schema(model)
    metadata = {"plait.provenance": json.dumps(provenance.as_dict(), sort_keys=True)}
    drawn = empty = 0
    with (
        open_table(output, schema, metadata=metadata) as writer,
        closing(sampler.blocks(threads=threads)) as blocks,
    ):
        while writer.rows < count:
            draws = next(blocks)
            rows = np.flatnonzero(draws.productive) if productive else np.arange(draws.length.size)
            empty = 0 if rows.size else empty + 1
            if empty == _MOST_EMPTY:
                kind = "productive junction" if productive else "junction"
                raise InvalidInput("model", found=f"{model.name!r}, which makes no {kind}", expected="one")
            rows = rows[: count - writer.rows]
            if rows.size:
                writer.write(_table(model, draws, rows, schema))
                drawn = int(draws.number[rows[-1]]) + 1
            if progress is not None:
                progress(writer.rows)
        rows_written = writer.rows
    return GeneratedFile(output=Path(output), rows=rows_written, drawn=drawn)


def _schema(model: RecombinationModel) -> pa.Schema:
    ends = [end for end in _ENDS if model.d or not end[0].startswith("d")]
    text = ["sequence_id", "junction", "junction_aa", "v_call", *(["d_call"] if model.d else []), "j_call"]
    numbers = ["junction_length", "n1_length", *(["n2_length"] if model.d else [])]
    numbers += [f"{end[1]}_length" for end in ends] + [f"{end[0]}_deletion" for end in ends]
    return pa.schema(
        [
            *((name, pa.string()) for name in text),
            ("productive", pa.bool_()),
            *((name, pa.int32()) for name in numbers),
        ]
    )


def _table(
    model: RecombinationModel, draws: Draws, rows: NDArray[np.intp], schema: pa.Schema
) -> pa.RecordBatch:
    symbols, length, fields = draws.symbols[rows], draws.length[rows], draws.fields[rows]
    letters = np.frombuffer(b"ACGT", np.uint8)[symbols]
    width = symbols.shape[1] // 3 * 3
    codons = symbols[:, :width].reshape(len(rows), -1, 3).astype(np.int64) @ np.array([16, 4, 1])
    columns: dict[str, Any] = {
        "sequence_id": pa.array([f"{k}" for k in draws.number[rows].tolist()], pa.string()),
        "junction": _texts(letters, length),
        "junction_aa": _texts(_ACIDS[codons], np.where(length % 3 == 0, length // 3, 0)),
        "productive": pa.array(draws.productive[rows]),
        "junction_length": pa.array(length.astype(np.int32)),
        "n1_length": pa.array(fields[:, 7]),
        "n2_length": pa.array(fields[:, 8]),
    }
    for name, genes, place in (("v_call", model.v, 0), ("d_call", model.d, 1), ("j_call", model.j, 2)):
        names = pa.array([gene.name for gene in genes], pa.string())
        columns[name] = names.take(pa.array(fields[:, place])) if genes else None
    for end, short, place, palindrome in _ENDS:
        cut = fields[:, place] - model.palindromes[palindrome]
        columns[f"{end}_deletion"] = pa.array(np.maximum(cut, 0).astype(np.int32))
        columns[f"{short}_length"] = pa.array(np.maximum(-cut, 0).astype(np.int32))
    return pa.record_batch([columns[name] for name in schema.names], schema=schema)


def _texts(letters: NDArray[np.uint8], length: NDArray[np.int64]) -> pa.Array:
    """The first letters of each row as a column of texts."""
    flat = letters[np.arange(letters.shape[1]) < length[:, None]]
    offsets = np.concatenate([[0], np.cumsum(length)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(length), pa.py_buffer(offsets), pa.py_buffer(flat))
