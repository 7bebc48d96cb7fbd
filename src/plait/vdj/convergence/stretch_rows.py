"""The rows of a stretch: read, named, and brought to the columns that a study needs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as arrow_parquet

from plait.errors import FormatError
from plait.vdj.clonotype_names import GeneNames, named_rows, text_of, whole_numbers
from plait.vdj.convergence.schemas import region_names
from plait.vdj.convergence.settings import StudySettings
from plait.vdj.convergence.stretches import Dealt, Stretch

__all__ = ["StretchRows"]

_READ_BYTES = 32 << 20


class StretchRows:
    """Reads a stretch and names its rows.

    Parameters
    ----------
    settings
        What is studied.
    stretch
        Where to read.

    Attributes
    ----------
    dealt : Dealt
        Totals of the rows read so far.
    """

    def __init__(self, settings: StudySettings, stretch: Stretch) -> None:
        self._settings = settings
        self._stretch = stretch
        self._sample = stretch.sample
        self._genes = GeneNames()
        self._regions = region_names(settings)
        self._sweep = _sweep_column(settings)
        self.dealt = Dealt()

    def tables(self) -> Iterator[pa.Table]:
        """Read the rows.

        Yields
        ------
        pyarrow.Table
            Rows that have a clonotype and a subject, with the columns of
            `plait.vdj.convergence.partition.row_schema`.

        Raises
        ------
        FormatError
            If the counts are damaged, or a column holds something else than numbers.
        """
        sample = self._sample
        optional = [sample.subject_column, sample.duplicate_count, self._sweep]
        columns = [sample.junction, sample.v_call, sample.j_call, "status", "path_count", *self._regions]
        columns += [name for name in optional if name is not None]
        try:
            with arrow_parquet.ParquetFile(sample.counts, pre_buffer=False, buffer_size=1 << 20) as file:
                width = 8 * _items(file.schema_arrow, self._sweep) + 400
                groups = list(range(self._stretch.first, self._stretch.last))
                rows = max(256, _READ_BYTES // width)
                for batch in file.iter_batches(rows, row_groups=groups, columns=list(dict.fromkeys(columns))):
                    yield self._named(batch)
        except (pa.ArrowException, OSError) as error:
            raise FormatError(
                sample.counts,
                found=f"damaged or unreadable Parquet ({error})",
                expected="path counts as this study wrote them",
                hint="remove the file and run again",
            ) from error

    def _named(self, batch: pa.RecordBatch) -> pa.Table:
        sample = self._sample
        columns = {
            "junction": pc.utf8_upper(text_of(batch[sample.junction])),
            "v_gene": self._genes.of(batch[sample.v_call]),
            "j_gene": self._genes.of(batch[sample.j_call]),
            "subject": self._subject(batch),
        }
        dealt = self.dealt
        dealt.rows += batch.num_rows
        dealt.statuses.update(_value_counts(text_of(batch["status"])))
        kept = named_rows(columns, dealt.left_out)
        keep = pa.array(kept)
        unnamed = columns["subject"].filter(pa.array(~kept))
        dealt.left_out_of.update({name: n for name, n in _value_counts(unnamed).items() if name})
        columns["rows"] = pa.array(np.ones(batch.num_rows, np.int64))
        columns["duplicate_count"] = self._duplicate_count(batch)
        for name in ("status", "path_count", *self._regions):
            columns[name] = batch[name]
        if self._sweep is not None:
            columns["path_count_sweep"] = _summed(batch[self._sweep], len(self._settings.sweep_models))
        table = pa.table(columns).filter(keep)
        for names, column in (
            (dealt.subjects, "subject"),
            (dealt.v_genes, "v_gene"),
            (dealt.j_genes, "j_gene"),
        ):
            names.update(_value_counts(table[column]))
        return table

    def _subject(self, batch: pa.RecordBatch) -> pa.Array:
        if self._sample.subject_column is None:
            name = pa.scalar(self._sample.subject, pa.large_string())
            return pa.repeat(name, batch.num_rows)
        return text_of(batch[self._sample.subject_column])

    def _duplicate_count(self, batch: pa.RecordBatch) -> pa.Array:
        name = self._sample.duplicate_count
        if name is None:
            return pa.nulls(batch.num_rows, pa.int64())
        return whole_numbers(batch[name], path=str(self._sample.source), name=name)


def _sweep_column(settings: StudySettings) -> str | None:
    if not settings.sweep_models:
        return None
    names = {"vj": "no_d_sweep", "vdj": "sweep_by_d", "vddj": "sweep_by_dd"}
    return f"path_count_{names[settings.chain]}"


def _items(schema: pa.Schema, column: str | None) -> int:
    return 0 if column is None else int(schema.field(column).type.list_size)


def _summed(lists: pa.Array, models: int) -> pa.Array:
    """Lists over D alleles and models as lists over models, null where no D allele has a count."""
    flat = lists.flatten()
    known = np.asarray(flat.is_valid()).reshape(len(lists), -1, models)
    if known.shape[1] == 1:
        return pa.FixedSizeListArray.from_arrays(flat, models)
    values = np.asarray(flat.fill_null(0)).reshape(known.shape)
    total = values.sum(axis=1)
    none = ~known.any(axis=1)
    if values.dtype.kind == "i":
        # A sum that does not fit is not known; whether it fits is told by its halves.
        none |= (values >> 32).sum(axis=1) + ((values & 0xFFFFFFFF).sum(axis=1) >> 32) >= 1 << 31
    return pa.FixedSizeListArray.from_arrays(pa.array(total.ravel(), mask=none.ravel()), models)


def _value_counts(column: pa.Array | pa.ChunkedArray) -> dict[str, int]:
    counts = pc.value_counts(column)
    return dict(zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True))
