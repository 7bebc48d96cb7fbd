"""Streams of record batches: equal blocks, and reading ahead."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa

from plait.errors import InvalidInput

__all__ = ["read_ahead", "reblock"]

T = TypeVar("T")


def reblock(batches: Iterable[pa.RecordBatch], rows: int) -> Generator[pa.RecordBatch, None, None]:
    """Cut a stream of batches anew into blocks of equal length.

    Parameters
    ----------
    batches
        Batches of one schema, of any lengths.
    rows
        Rows in a block.

    Yields
    ------
    pyarrow.RecordBatch
        Exactly `rows` rows, at the end what is left; never an empty block.

    Raises
    ------
    InvalidInput
        If the text of a block does not fit one Arrow array (2 GiB a column).
    """
    held: list[pa.RecordBatch] = []
    held_rows = 0
    for batch in batches:
        start = 0
        while held_rows + batch.num_rows - start >= rows:
            end = start + rows - held_rows
            held.append(batch.slice(start, end - start))
            yield _joined(held, rows)
            held, held_rows, start = [], 0, end
        if start < batch.num_rows:
            held.append(batch.slice(start))
            held_rows += batch.num_rows - start
    if held:
        yield _joined(held, rows)


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
