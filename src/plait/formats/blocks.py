"""Streams of record batches: equal blocks, and reading ahead."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import pyarrow as pa

from plait.errors import InvalidInput

__all__ = ["LARGEST_ROW", "MOST_BYTES", "batch_bytes", "read_ahead", "reblock"]

#: Bytes of rows after which a block ends; more than one of so many rows takes unless rows grow on the way.
MOST_BYTES: Final = 32 << 20
#: Bytes that a row may have.
LARGEST_ROW: Final = 16 << 20

T = TypeVar("T")


def reblock(
    batches: Iterable[pa.RecordBatch], rows: int, most_bytes: int | None = None
) -> Generator[pa.RecordBatch, None, None]:
    """Cut a stream of batches anew into blocks of equal length.

    Parameters
    ----------
    batches
        Batches of one schema, of any lengths.
    rows
        Rows in a block.
    most_bytes
        Bytes that a block may have unless it is a single row; None for any number.

    Yields
    ------
    pyarrow.RecordBatch
        Exactly `rows` rows, fewer where they would have too many bytes or are the last; never an empty block.

    Raises
    ------
    InvalidInput
        If the text of a block does not fit one Arrow array (2 GiB a column).
    """
    held: list[pa.RecordBatch] = []
    held_rows = held_bytes = 0
    for batch in batches:
        rest = batch
        while rest.num_rows:
            part = rest.slice(0, rows - held_rows)
            if most_bytes is not None:
                part = _fitting(part, most_bytes - held_bytes, 0 if held else 1)
                held_bytes += batch_bytes(part)
            if part.num_rows:
                held.append(part)
            held_rows += part.num_rows
            rest = rest.slice(part.num_rows)
            if rest.num_rows or held_rows == rows:
                yield _joined(held, rows)
                held, held_rows, held_bytes = [], 0, 0
    if held:
        yield _joined(held, rows)


def batch_bytes(batch: pa.RecordBatch) -> int:
    """Bytes of the values of a batch, whatever it was cut from.

    Parameters
    ----------
    batch
        The rows.
    """
    total = 0
    for column in batch.columns:
        # What Arrow says of views is the size of all that they may point to.
        view = pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type)
        total += column.cast(pa.large_binary()).nbytes if view else column.nbytes
    return total


def _fitting(batch: pa.RecordBatch, room: int, fewest: int) -> pa.RecordBatch:
    """As many of the first rows as have no more than so many bytes."""
    if batch_bytes(batch) <= room:
        return batch
    rows = bisect_right(range(1, batch.num_rows + 1), room, key=lambda n: batch_bytes(batch.slice(0, n)))
    return batch.slice(0, max(rows, fewest))


def _joined(parts: list[pa.RecordBatch], rows: int) -> pa.RecordBatch:
    if len(parts) == 1:
        return parts[0]
    joined = pa.Table.from_batches(parts).combine_chunks().to_batches()
    if len(joined) != 1:
        raise InvalidInput(
            "block_rows", found=rows, expected="blocks with less than 2 GiB of text a column", hint="lower it"
        )
    return joined[0]


def read_ahead(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """Make the next item in another thread while the caller works on this one.

    The order does not change, and an error comes where it would have come. Closing the generator, by hand
    or by leaving the loop, waits for the thread and closes `items`.

    Parameters
    ----------
    items
        What to run ahead in; not to be used by the caller any more.

    Yields
    ------
    object
        The items.
    """
    try:
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="plait-read-ahead") as pool:
            ahead = pool.submit(_next, items)
            while item := ahead.result():
                ahead = pool.submit(_next, items)
                yield item[0]
    finally:
        items.close()


def _next(items: Iterator[T]) -> tuple[T] | None:
    for item in items:
        return (item,)
    return None
