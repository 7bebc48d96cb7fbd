"""Words, logarithms of ratios and error rates in files: ``plait ldpc``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import AtomicFile, TextOutput, bad_output, check_not_input, output_errors
from plait.formats.compression import read_array
from plait.formats.tables import PrintedTable, open_table
from plait.ldpc.codes import code_named
from plait.ldpc.decoding import decode
from plait.ldpc.simulation import ErrorRates, simulate


def read_words(path: str | os.PathLike[str]) -> NDArray[Any]:
    """An array of two dimensions, or one word, from a .npy file; FormatError if it is something else."""
    found = read_array(path)
    if found.ndim not in (1, 2):
        raise FormatError(path, found=f"{found.dtype} {found.shape}", expected="numbers, (words, bits)")
    return np.atleast_2d(found)


def _write(path: Path, words: NDArray[np.uint8]) -> None:
    with AtomicFile(path) as file, output_errors(path):
        np.lib.format.write_array(file.stream, words, allow_pickle=False)


def _check(path: Path, inputs: Sequence[Path]) -> None:
    if path.suffix.lower() != ".npy":
        raise bad_output(path, "", "a name that ends in .npy")
    check_not_input(path, inputs)


def encode_file(bits: Path, output: Path, *, code: str) -> tuple[int, int]:
    """Write the words of some information; their number and size. Errors are those of `Code.encode`."""
    _check(output, [bits])
    chosen = code_named(code)
    words = chosen.encode(read_words(bits))
    _write(output, words)
    return words.shape


def decode_file(
    ratios: Path, output: Path, *, code: str, information: bool, report: Path | None, **settings: Any
) -> tuple[int, int, float]:
    """Write decoded words, or their information; words, those that are of the code, mean iterations.

    Errors are those of `decode`.
    """
    _check(output, [ratios])
    if report is not None:
        check_not_input(report, [ratios, output])
    done = decode(read_words(ratios), code_named(code), **settings)
    if report is not None:
        columns = {"word": np.arange(len(done.found)), "found": done.found, "iterations": done.iterations}
        batch = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
        with open_table(report, batch.schema, metadata={"code": code}, inputs=[ratios]) as table:
            table.write(batch)
    _write(output, done.information if information else done.bits)
    return len(done.found), int(done.found.sum()), float(done.iterations.mean()) if len(done.found) else 0.0


def simulate_file(output: Path | None, *, code: str, ebn0: str, **settings: Any) -> ErrorRates:
    """Write error rates as a table, or print it; `ebn0` is a list, or ``first:last:step``."""
    chosen, ratios = code_named(code), _ratios(ebn0)
    found = simulate(chosen, ratios, **settings)
    batch = pa.record_batch({name: pa.array(values) for name, values in found._asdict().items()})
    table: Any
    if output is None:
        table = PrintedTable(TextOutput(None), batch.schema)
    else:
        table = open_table(output, batch.schema, metadata={"code": code})
    with table:
        table.write(batch)
    return found


def _ratios(text: str) -> list[float]:
    expected = "dB, such as 2 or 1,1.5,2, or first:last:step"
    try:
        if ":" not in text:
            return [float(word) for word in text.split(",")]
        first, last, *rest = map(float, text.split(":"))
        (step,) = rest or (1.0,)
        count = (last - first) / step
        if not 0 <= count <= 1000:
            raise ValueError
        return [round(first + k * step, 9) for k in range(int(count + 1e-9) + 1)]
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InvalidInput("ebn0", found=repr(text), expected=expected) from None
