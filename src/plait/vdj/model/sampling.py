"""Junctions drawn from a recombination model, and tables of them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait._version import __version__
from plait.dp.chain.sample import FIELDS, AliasTables, ChainDraws, DrawOutput, draw_kernel
from plait.errors import InvalidInput, whole
from plait.formats.checkpoints import Checkpoint, digest_of
from plait.formats.datasets import Folder, PartFile, Parts, PartWriter, rows_of_part
from plait.formats.files import is_dataset
from plait.formats.tables import ONE_FILE, PartSettings, TableWriter, check_one_file
from plait.run.datasets import DatasetRun, WorkedPart, open_dataset
from plait.run.executor import Executor, LocalExecutor
from plait.run.rows import Kept, Remade, kept_results, kept_table, metadata_of
from plait.settings import package_digest
from plait.types import Provenance, Tabular
from plait.vdj.airr import completed, lacking
from plait.vdj.model.junctions import ACID_OF_CODON, END_COLUMNS, choice_columns
from plait.vdj.model.recombination_model import RecombinationModel, packed_bases
from plait.vdj.reads.columns import edges_of, text_array

#: Draws that are made at a time.
_BLOCK: Final = 1 << 15


@dataclass(frozen=True, slots=True, repr=False)
class Draws(Tabular):
    """Junctions drawn, in the order of their numbers; `to_arrow` has number, junction and productive.

    Attributes
    ----------
    symbols
        uint8 (n, most): 0 to 3 for A, C, G and T.
    length
        int64 (n,).
    fields
        int32 (n, 9): see `plait.dp.chain.sample.FIELDS`; cuts count from the longest P extension.
    number
        int64 (n,): which draws they are.
    productive
        bool (n,): in frame, without stop codon, from Cys to Phe or Trp.
    """

    symbols: NDArray[np.uint8]
    length: NDArray[np.int64]
    fields: NDArray[np.int32]
    number: NDArray[np.int64]
    productive: NDArray[np.bool_]

    def __len__(self) -> int:
        return int(self.number.size)

    def _table(self, rows: int | None) -> pa.Table:
        some = self.take(np.arange(len(self))[:rows])
        junction = pa.array(some.texts(), pa.string())
        return pa.table({"number": some.number, "junction": junction, "productive": some.productive})

    def take(self, rows: NDArray[np.int64]) -> Draws:
        """Some of them.

        Parameters
        ----------
        rows
            Which ones.
        """
        return Draws(*(getattr(self, field.name)[rows] for field in fields(self)))

    def texts(self) -> list[str]:
        """The junctions as text."""
        letters = _LETTERS[self.symbols]
        return [bytes(row[:n]).decode() for row, n in zip(letters, self.length.tolist(), strict=True)]


class JunctionSampler:
    """Draws junctions from a model.

    Parameters
    ----------
    model
        The model; its distributions are scaled to a sum of 1.
    seed
        What the draws depend on, 0 to 2^64 - 1.
    functional
        Whether only functional genes are drawn.
    """

    def __init__(self, model: RecombinationModel, *, seed: int = 0, functional: bool = True) -> None:
        self.model = model
        self._seed = np.uint64(whole("seed", seed, 0, 2**64 - 1))
        self._draws, self._most = _chain_draws(model, functional)

    def blocks(self, first: int = 0, *, threads: int | None = None) -> Generator[Draws, None, None]:
        """Draws from a number on, without end, a block at a time.

        Parameters
        ----------
        first
            Number of the first draw.
        threads
            Blocks made at a time; nothing depends on it.
        """
        executor = LocalExecutor(threads)
        starts = iter(range(first, 1 << 62, _BLOCK))
        with closing(executor.map(self.block, starts)) as blocks:
            yield from blocks

    def block(self, first: int, count: int = _BLOCK) -> Draws:
        """Draws `first` to ``first + count``, without those that made no junction.

        Parameters
        ----------
        first
            Number of the first draw.
        count
            How many draws.
        """
        whole("first", first, 0, 1 << 62)
        whole("count", count)
        out = DrawOutput(
            np.zeros((count, self._most), np.uint8),
            np.zeros(count, np.int64),
            np.zeros((count, len(FIELDS)), np.int32),
        )
        draw_kernel(self._draws, self._seed, first, count, out)
        number = np.arange(first, first + count)
        draws = Draws(out.symbols, out.length, out.fields, number, _productive(out.symbols, out.length))
        made = out.length > 0
        return draws if made.all() else draws.take(np.flatnonzero(made))


def _alias(p: NDArray[np.float64]) -> tuple[list[float], list[int]]:
    """Walker's tables by Vose's method."""
    n = p.size
    scaled = (p / p.sum() * n).tolist() if p.sum() > 0 else [1.0] * n
    keep, other = [1.0] * n, list(range(n))
    small = [k for k in range(n) if scaled[k] < 1]
    large = [k for k in range(n) if scaled[k] >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        keep[low], other[low] = scaled[low], high
        scaled[high] -= 1 - scaled[low]
        (small if scaled[high] < 1 else large).append(high)
    # What is left over by rounding is a whole place, unless it was never to be drawn.
    for k in small:
        if p[k] == 0:
            keep[k], other[k] = 0.0, int(np.argmax(p))
    return keep, other


def _chain_draws(model: RecombinationModel, functional: bool) -> tuple[ChainDraws, int]:
    v = np.array([gene.functional or not functional for gene in model.v])
    j = np.array([gene.functional or not functional for gene in model.j])
    tables: list[NDArray[np.float64]] = [model.p_v * v]
    first: dict[str, int] = {}

    def add(name: str, found: list[NDArray[np.float64]]) -> None:
        first[name] = len(tables)
        tables.extend(found)

    add("joint", [(given * j).ravel() for given in model.p_dj])
    add("v_deletion", list(model.p_v_deletions))
    add("d_deletion", [table.ravel() for table in model.p_d_deletions] if model.d else [])
    add("j_deletion", list(model.p_j_deletions))
    add("length", [model.p_vd_length, model.p_dj_length])
    add("left_step", [*model.vd_steps, model.vd_first])
    add("right_step", [*model.dj_steps, model.dj_first])
    made = [_alias(table) for table in tables]
    of_v, of_d, of_j = model.extended_all("V"), model.extended_all("D"), model.extended_all("J")
    bases, edges = packed_bases([*of_v, *of_d, *of_j])
    v_end, d_end = len(of_v), len(of_v) + len(of_d)
    most = sum(max(map(len, texts), default=0) for texts in (of_v, of_d, of_j))
    most += model.p_vd_length.size + model.p_dj_length.size
    sizes = [table.size for table in tables]
    draws = ChainDraws(
        tables=AliasTables(
            np.concatenate([[0], np.cumsum(sizes)]),
            np.array([value for keep, _ in made for value in keep]),
            np.array([value for _, other in made for value in other], np.int64),
        ),
        joints=len(model.p_dj),
        j_genes=len(model.j),
        d3_deletions=model.p_d_deletions.shape[-1] if model.d else 1,
        symbols=bases,
        **first,
        v_first=edges[: v_end + 1],
        d_first=edges[v_end : d_end + 1],
        j_first=edges[d_end:],
    )
    return draws, most


def _productive(symbols: NDArray[np.uint8], length: NDArray[np.int64]) -> NDArray[np.bool_]:
    """In frame, without stop codon, from Cys to Phe or Trp."""
    found: NDArray[np.bool_] = (length % 3 == 0) & (length >= 6)
    rows = np.flatnonzero(found)
    if rows.size:
        codons = length[rows] // 3
        # Bytes: whole columns at a time, in the least memory.
        first, second, third = (symbols[rows, k : 3 * int(codons.max()) : 3] for k in range(3))
        codes = first << 4 | second << 2 | third
        stopped = (_STOPS[codes] & (np.arange(codes.shape[1]) < codons[:, None])).any(axis=1)
        last = codes[np.arange(rows.size), codons - 1]
        found[rows] = ~stopped & _STARTS[codes[:, 0]] & _ENDS[last]
    return found


_STOPS, _STARTS, _ENDS = (np.isin(ACID_OF_CODON, [*acids]) for acids in (b"*", b"C", b"FW"))


_LETTERS: Final = np.frombuffer(b"ACGT", np.uint8)


@dataclass(frozen=True)
class BlockDraws(Remade):
    """Draws wherever it is called; `schema` are its columns.

    A block is `count` draws, of which only productive ones are kept if `productive`.
    """

    model: RecombinationModel
    seed: int
    productive: bool
    count: int

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns."""
        own = _schema(self.model)
        return pa.schema([*own, *lacking(own)])

    @cached_property
    def _sampler(self) -> JunctionSampler:
        return JunctionSampler(self.model, seed=self.seed)

    def __call__(self, block: int) -> pa.RecordBatch:
        """The rows of a block of draws."""
        draws = self._sampler.block(block * self.count, self.count)
        if self.productive:
            draws = draws.take(np.flatnonzero(draws.productive))
        return self._table(draws)

    def _table(self, draws: Draws) -> pa.RecordBatch:
        symbols, length, fields = draws.symbols, draws.length, draws.fields
        most = symbols.shape[1] // 3
        codons = symbols[:, : most * 3].reshape(length.size, most, 3)
        codes = codons[:, :, 0] << 4 | codons[:, :, 1] << 2 | codons[:, :, 2]
        columns: dict[str, Any] = {
            "sequence_id": pa.array(draws.number).cast(pa.string()),
            "junction": _texts(_LETTERS, symbols, length),
            "junction_aa": _texts(ACID_OF_CODON, codes, np.where(length % 3 == 0, length // 3, 0)),
            "productive": pa.array(draws.productive),
            "junction_length": pa.array(length.astype(np.int32)),
            "n1_length": pa.array(fields[:, 7]),
            "n2_length": pa.array(fields[:, 8]),
        }
        columns |= choice_columns(self.model, fields, np.ones(length.size, np.bool_))
        own = _schema(self.model)
        rows = pa.record_batch([columns[name] for name in own.names], schema=own)
        return pa.record_batch([*rows.columns, *completed(rows, lacking(own), 0)], schema=self.schema)


class DrawnPart(NamedTuple):
    """Part `number` of a dataset, of which only so many rows are wanted."""

    number: int
    most: int | None = None


@dataclass(frozen=True)
class PartOfDraws(Remade):
    """Draws the blocks of a part, `blocks` of them, and writes it wherever it is called."""

    draws: BlockDraws
    blocks: int
    parts: Parts
    folder: Folder

    def __call__(self, part: DrawnPart) -> WorkedPart:
        """Write a part; its totals are the number of its last draw."""
        writer, last = PartWriter(part.number, self.parts), -1
        for block in range(part.number * self.blocks, (part.number + 1) * self.blocks):
            rows = self.draws(block)
            if part.most is not None:
                rows = rows.slice(0, part.most - writer.rows)
            if rows.num_rows:
                writer.write(rows)
                last = int(rows["sequence_id"][-1].as_py())
        return WorkedPart(writer.finish(self.folder), writer.rows, last)


def _schema(model: RecombinationModel) -> pa.Schema:
    ends = [end for end in END_COLUMNS if model.d or not end[0].startswith("d")]
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


def _texts(letters: NDArray[np.uint8], codes: NDArray[Any], length: NDArray[np.int64]) -> pa.Array:
    """The first letters of each row as a column of texts."""
    flat = codes[np.arange(codes.shape[1]) < length[:, None]]
    return text_array(letters[flat], edges_of(length))


#: Draws of a block: a row group of the output, and the unit of work.
_BLOCK_DRAWS: Final = 1 << 16
#: Blocks worked on at a time: one thread writes, however many draw.
_MOST_BLOCKS: Final = 12
#: Blocks without any row that is kept, after which a model is taken for one that makes none.
_MOST_EMPTY: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedFile:
    """A finished run: its table, the rows in it and the draws made for them.

    `resumed_blocks` were taken over from the run that was stopped.
    """

    output: Path | str
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
    parts: PartSettings = ONE_FILE,
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
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``; or a folder of parts, whose name ends
        in a slash.
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
        Called after every block or part with the number of rows so far.
    parts
        How a folder of parts is cut; `part_rows` are draws, kept or not.

    Raises
    ------
    InvalidInput
        If `count` or `seed` is out of range, the output cannot be, a run to resume differs, or the model
        makes no such junction.
    FormatError
        If the disk is full.
    """
    count, seed = whole("count", count), whole("seed", seed, 0, 2**64 - 1)
    executor = executor or LocalExecutor(threads)
    work = BlockDraws(model, seed, productive, _BLOCK_DRAWS)
    provenance = _provenance(model, seed, count, productive)
    key = {"provenance": provenance, "draws": _BLOCK_DRAWS, "sources": package_digest()}
    if is_dataset(output):
        made = Parts(work.schema, metadata_of({"provenance": provenance}), parts.partition).check()
        blocks = max(1, rows_of_part(parts) // _BLOCK_DRAWS)
        with open_dataset(output, made, key={**key, "part_blocks": blocks}, resume=resume) as run:
            part = PartOfDraws(work, blocks, made, run.output.folder)
            return _write_parts(run, part, executor, count, progress)
    check_one_file(output, parts)
    with kept_table(
        output, work.schema, partial(_blocks, executor, work), told={"provenance": provenance}, key=key,
        resume=resume,
    ) as (writer, results, checkpoint):  # fmt: skip
        resumed = len(checkpoint.blocks())
        drawn = _write(results, writer, count, model, progress)
    checkpoint.remove()
    return GeneratedFile(output=Path(output), rows=count, drawn=drawn, resumed_blocks=resumed)


def _write(
    blocks: Generator[pa.RecordBatch, None, None],
    writer: TableWriter,
    count: int,
    model: RecombinationModel,
    progress: Callable[[int], None] | None,
) -> int:
    """Write the first rows of blocks; returns the number of draws that were made for them."""
    drawn = empty = 0
    while writer.rows < count:
        batch = next(blocks)
        empty = 0 if batch.num_rows else empty + 1
        if empty == _MOST_EMPTY:
            raise _no_such(model)
        batch = batch.slice(0, count - writer.rows)
        if batch.num_rows:
            writer.write(batch)
            drawn = int(batch["sequence_id"][-1].as_py()) + 1
        if progress is not None:
            progress(writer.rows)
    return drawn


def _write_parts(
    run: DatasetRun, work: PartOfDraws, executor: Executor, count: int, progress: Callable[[int], None] | None
) -> GeneratedFile:
    """Write the parts with the first rows."""
    files: list[PartFile] = []
    rows = empty = drawn = 0
    resumed = len(run.checkpoint.blocks())
    draws = work.blocks * _BLOCK_DRAWS
    results = run.results(
        executor,
        work,
        map(DrawnPart, itertools.count()),
        digest=lambda part: digest_of(),
        named=lambda _, part: f"draws {part.number * draws} to {(part.number + 1) * draws - 1}",
        most=_MOST_BLOCKS,
    )
    with closing(results):
        for number in itertools.count():
            if rows >= count:
                break
            found = next(results)
            empty = 0 if found.rows else empty + work.blocks
            if empty >= _MOST_EMPTY:
                raise _no_such(work.draws.model)
            if rows + found.rows > count:
                found = work(DrawnPart(number, count - rows))
            files += found.files
            rows += found.rows
            drawn = found.totals + 1 if found.rows else drawn
            if progress is not None:
                progress(rows)
    run.finish(files, None)
    folder = f"{os.fspath(run.output.path)}/"
    return GeneratedFile(output=folder, rows=rows, drawn=drawn, resumed_blocks=resumed)


def _no_such(model: RecombinationModel) -> InvalidInput:
    return InvalidInput("model", found=f"{model.name!r}, which makes no such junction", expected="one")


def _blocks(
    executor: Executor, work: BlockDraws, checkpoint: Checkpoint, table: TableWriter
) -> Generator[pa.RecordBatch, None, None]:
    kept: Kept[int, pa.RecordBatch] = Kept(
        checkpoint=checkpoint,
        digest=lambda block: digest_of(),
        stored=lambda batch: batch,
        restored=lambda block, batch: batch,
        named=_named,
    )
    with closing(kept_results(executor, work, itertools.count(), kept, most=_MOST_BLOCKS)) as found:
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
