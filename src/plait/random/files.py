"""Numbers in files: ``plait random``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from plait.errors import whole
from plait.formats.atomic import TextOutput, array_file
from plait.random.draws import Generator
from plait.random.generators import Sobol

#: Numbers that are drawn at a time, in a file and for text.
_PIECE, _LINES = 1 << 24, 1 << 16


def write_numbers(
    generator: Generator, output: Path | None, *, count: int, distribution: str, dtype: str, **asked: Any
) -> None:
    """Draw numbers, or points of `Sobol`, into a .npy file; without one, as lines on standard output.

    `asked`: device and threads. `InvalidInput` if the name ends otherwise; `FormatError` if it cannot be
    written.
    """
    whole("count", count, 0, generator.left if isinstance(generator, Sobol) else math.inf)
    kind = "uint32" if distribution == "raw" else dtype
    shape = (count, generator.dimensions) if isinstance(generator, Sobol) else (count,)
    if distribution != "raw":
        asked["dtype"] = dtype

    def pieces(size: int) -> Iterator[NDArray[Any]]:
        step = max(size // math.prod(shape[1:]), 1)
        for first in range(0, count, step):
            yield getattr(generator, distribution)(min(step, count - first), **asked)

    if output is None:
        with TextOutput(None) as text:
            for piece in pieces(_LINES):
                rows = piece.reshape(len(piece), -1).tolist()
                text.write("".join(" ".join(map(str, row)) + "\n" for row in rows).encode())
        return
    with array_file(output, kind, shape, []) as write:
        for piece in pieces(_PIECE):
            write(piece)
