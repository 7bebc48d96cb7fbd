"""Words, logarithms of ratios and error rates in files: ``plait ldpc``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import array_file, check_different
from plait.formats.files import read_array
from plait.formats.tables import check_tables, table_or_lines
from plait.ldpc.codes import code_named
from plait.ldpc.decoding import WORTH, decode
from plait.ldpc.simulation import ErrorRates, simulate

#: Bits that are decoded at a time: as many as a GPU is worth.
_BITS: Final = WORTH


def read_words(path: str | os.PathLike[str]) -> NDArray[Any]:
    """An array of two dimensions, or one word, mapped from a .npy file; FormatError if it is another."""
    found = read_array(path, mapped=True)
    if found.ndim not in (1, 2):
        raise FormatError(path, found=f"{found.dtype} {found.shape}", expected="numbers, (words, bits)")
    return np.atleast_2d(found)


def _in_steps(source: Path, output: Path, sizes: tuple[int, int], run: Callable[[NDArray[Any]], Any]) -> int:
    """Write ``run(words)`` of words of so many bits, as words of so many; how many there were."""
    words, (bits, size) = read_words(source), sizes
    with array_file(output, "uint8", (len(words), size), [source]) as write:
        step = -(-_BITS // max(bits, 1))
        for first in range(0, max(len(words), 1), step):
            part = words[first : first + step]
            if part.dtype.kind == "f" and (where := np.argwhere(np.isnan(part))).size:
                word, bit = where[0].tolist()
                told = f"no number in word {first + word}, bit {bit}"
                raise FormatError(source, found=told, expected="numbers")
            write(run(part))
    return len(words)


def encode_file(bits: Path, output: Path, *, code: str) -> tuple[int, int]:
    """Write the words of some information; their number and size. Errors are those of `Code.encode`."""
    chosen = code_named(code)
    return _in_steps(bits, output, (chosen.k, chosen.n), chosen.encode), chosen.n


def decode_file(
    ratios: Path, output: Path, *, code: str, information: bool, report: Path | str | None, **settings: Any
) -> tuple[int, int, float]:
    """Write decoded words, or their information; words, those that are of the code, mean iterations.

    Errors are those of `decode`.
    """
    check_different(output, report)
    check_tables([ratios], report)
    chosen, found, iterations = code_named(code), [np.zeros(0, bool)], [np.zeros(0, np.int64)]

    def run(words: NDArray[Any]) -> NDArray[np.uint8]:
        done = decode(words, chosen, **settings)
        found.append(done.found)
        iterations.append(done.iterations)
        return done.information if information else done.bits

    words = _in_steps(ratios, output, (chosen.n, chosen.k if information else chosen.n), run)
    good, counts = np.concatenate(found), np.concatenate(iterations)
    if report is not None:
        _write(report, code, {"word": np.arange(words), "found": good, "iterations": counts}, [ratios])
    return words, int(good.sum()), float(counts.mean()) if words else 0.0


def simulate_file(output: Path | None, *, code: str, ebn0: str, **settings: Any) -> ErrorRates:
    """Write error rates as a table, or print it; `ebn0` is a list, or ``first:last:step``."""
    chosen, ratios = code_named(code), _ratios(ebn0)
    check_tables([], output)
    found = simulate(chosen, ratios, **settings)
    _write(output, code, found._asdict(), [])
    return found


def _write(output: Path | str | None, code: str, columns: dict[str, Any], inputs: list[Path]) -> None:
    batch = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
    with table_or_lines(output, batch.schema, metadata={"code": code}, inputs=inputs) as table:
        table.write(batch)


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
