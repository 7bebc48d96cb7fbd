"""Compiled entry points for the prediction of bands from one another."""

from __future__ import annotations

from typing import Any

from plait._jit import kernel
from plait.schedules.adaptive_codes import code_rows, decode_rows
from plait.schedules.band_wave import run_samples, skew, unskew
from plait.schedules.block_codes import code_blocks, decode_blocks
from plait.schedules.hybrid_words import code_small_rows, decode_small_rows

__all__ = [
    "code_blocks_kernel",
    "code_rows_kernel",
    "code_small_rows_kernel",
    "decode_blocks_kernel",
    "decode_rows_kernel",
    "decode_small_rows_kernel",
    "run_samples_kernel",
    "skew_kernel",
    "unskew_kernel",
]


@kernel
def run_samples_kernel(lanes: Any, numbers: Any, way: Any, memory: Any, first: int, last: int) -> None:
    """See `plait.schedules.band_wave.run_samples`."""
    run_samples(lanes, numbers, way, memory, first, last)


@kernel
def skew_kernel(samples: Any, first: int, values: Any) -> None:
    """See `plait.schedules.band_wave.skew`."""
    skew(samples, first, values)


@kernel
def unskew_kernel(values: Any, first: int, samples: Any) -> None:
    """See `plait.schedules.band_wave.unskew`."""
    unskew(values, first, samples)


@kernel
def code_rows_kernel(code: Any, residuals: Any, row: int, sums: Any, cursor: Any) -> None:
    """See `plait.schedules.adaptive_codes.code_rows`."""
    code_rows(code, residuals, row, sums, cursor)


@kernel
def decode_rows_kernel(code: Any, residuals: Any, row: int, sums: Any, cursor: Any) -> None:
    """See `plait.schedules.adaptive_codes.decode_rows`."""
    decode_rows(code, residuals, row, sums, cursor)


@kernel
def code_blocks_kernel(code: Any, values: Any, cursor: Any, progress: Any) -> None:
    """See `plait.schedules.block_codes.code_blocks`."""
    code_blocks(code, values, cursor, progress)


@kernel
def decode_blocks_kernel(code: Any, values: Any, cursor: Any, progress: Any) -> None:
    """See `plait.schedules.block_codes.decode_blocks`."""
    decode_blocks(code, values, cursor, progress)


@kernel
def code_small_rows_kernel(
    code: Any, tables: Any, residuals: Any, row: int, sums: Any, open_words: Any, cursor: Any
) -> None:
    """See `plait.schedules.hybrid_words.code_small_rows`."""
    code_small_rows(code, tables, residuals, row, sums, open_words, cursor)


@kernel
def decode_small_rows_kernel(
    code: Any, tables: Any, residuals: Any, row: int, sums: Any, open_words: Any, cursor: Any
) -> None:
    """See `plait.schedules.hybrid_words.decode_small_rows`."""
    decode_small_rows(code, tables, residuals, row, sums, open_words, cursor)
