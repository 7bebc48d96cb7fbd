"""Tables of junctions drawn from a model."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from plait._version import __version__
from plait.errors import InvalidInput
from plait.executors.local import LocalExecutor
from plait.executors.protocol import Executor
from plait.formats.blocks import read_ahead
from plait.formats.checkpoints import Checkpoint, digest_of, kept_if_useful
from plait.formats.tables import TableWriter, open_table
from plait.settings import source_digest, thread_count
from plait.types import Provenance
from plait.vdj.model.generation_blocks import BlockDraws
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.resumable import Kept, kept_results

__all__ = ["GeneratedFile", "generate_file"]

#: Draws of a block: a row group of the output, and the unit of work.
_BLOCK_DRAWS: Final = 1 << 16
#: Blocks worked on at a time: one thread writes, however many draw.
_MOST_BLOCKS: Final = 12
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
    resumed_blocks
        Blocks taken over from the run that was stopped.
    """

    output: Path
    rows: int
    drawn: int
    resumed_blocks: int


def generate_file(
    model: RecombinationModel,
    output: str | os.PathLike[str],
    count: int,
    *,
    seed: int = 0,
    productive: bool = True,
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    progress: Callable[[int], None] | None = None,
) -> GeneratedFile:
    """Write a table of junctions drawn from a model.

    Draw number k depends on the seed and on k alone, and the table has the first ones that are wanted: it
    is the same for any number of threads, and a longer one begins with a shorter one. While the run lasts,
    blocks are kept in ``OUTPUT.checkpoint``.

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
        Blocks made at a time, at most 12.
    executor
        Where blocks are made; by default so many threads of this process. The output is the same.
    resume
        Take over the blocks that a stopped run with the same model and parameters has made.
    progress
        Called after every block with the number of rows so far.

    Raises
    ------
    InvalidInput
        If `count` or `seed` is out of range, the output cannot be, a run to resume differs, or the model
        makes no such junction.
    FormatError
        If the disk is full.
    """
    if count < 0:
        raise InvalidInput("count", found=count, expected="0 or more")
    if not 0 <= seed < 1 << 64:
        raise InvalidInput("seed", found=seed, expected="a whole number from 0 to 2^64 - 1")
    if executor is None:
        executor = LocalExecutor(thread_count() if threads is None else threads)
    work = BlockDraws(model, seed, productive, _BLOCK_DRAWS)
    provenance = _provenance(model, seed, count, productive)
    metadata = {"plait.provenance": json.dumps(provenance, sort_keys=True)}
    key = {"provenance": provenance, "draws": _BLOCK_DRAWS, "sources": _sources()}
    with open_table(output, work.schema, metadata=metadata) as writer:
        checkpoint = Checkpoint(Path(f"{os.fspath(output)}.checkpoint"), key=key, resume=resume)
        resumed = len(checkpoint.blocks())
        blocks = _blocks(executor, work, checkpoint)
        with kept_if_useful(checkpoint), closing(read_ahead(blocks)) as results:
            drawn = _write(results, writer, count, model.name, progress)
        rows = writer.rows
    checkpoint.remove()
    return GeneratedFile(output=Path(output), rows=rows, drawn=drawn, resumed_blocks=resumed)


def _write(
    blocks: Generator[pa.RecordBatch, None, None],
    writer: TableWriter,
    count: int,
    name: str,
    progress: Callable[[int], None] | None,
) -> int:
    """Write the first rows of blocks; returns the number of draws that were made for them."""
    drawn = empty = 0
    while writer.rows < count:
        batch = next(blocks)
        empty = 0 if batch.num_rows else empty + 1
        if empty == _MOST_EMPTY:
            raise InvalidInput("model", found=f"{name!r}, which makes no such junction", expected="one")
        batch = batch.slice(0, count - writer.rows)
        if batch.num_rows:
            writer.write(batch)
            drawn = int(batch["sequence_id"][-1].as_py()) + 1
        if progress is not None:
            progress(writer.rows)
    return drawn


def _blocks(
    executor: Executor, work: BlockDraws, checkpoint: Checkpoint
) -> Generator[pa.RecordBatch, None, None]:
    kept: Kept[int, pa.RecordBatch] = Kept(
        checkpoint=checkpoint,
        digest=lambda block: digest_of(),
        stored=lambda batch: batch,
        restored=lambda block, batch: batch,
        named=_named,
    )
    parts = itertools.count()
    results = kept_results(executor, work, parts, kept, most=_MOST_BLOCKS)
    with closing(results) as found:
        for _, batch, _ in found:
            yield batch


def _named(index: int, block: int) -> str:
    return f"draws {block * _BLOCK_DRAWS} to {(block + 1) * _BLOCK_DRAWS - 1}"


def _provenance(model: RecombinationModel, seed: int, count: int, productive: bool) -> dict[str, object]:
    made = Provenance(
        version=__version__,
        device="cpu",
        schedule="scenario_sampling",
        algebra="sampling",
        parameters={
            **model.identity(),
            "seed": seed,
            "count": count,
            "productive": productive,
        },
    )
    return made.as_dict()


def _sources() -> str:
    return source_digest(Path(__file__).parents[2].rglob("*.py"))
