"""Streams of CCSDS 121.0, as libaec writes them: adaptive Rice codes of blocks, without a header."""

from __future__ import annotations

import itertools
import mmap
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, one_of, whole
from plait.formats.atomic import output_errors
from plait.formats.cubes.files import RawShape, create_cube, open_cube
from plait.formats.cubes.layout import CubeLayout, interleave_axes
from plait.formats.files import input_errors
from plait.hyperspectral.codec import sample_type
from plait.hyperspectral.coders import BlockCode, decode_references
from plait.hyperspectral.codewords import BodyEnd, BodyReader
from plait.hyperspectral.parameters import ImageLayout, check_types
from plait.hyperspectral.waves import decode_blocks_kernel
from plait.lang.compile import kernel

decode_references_kernel = kernel(decode_references)
#: Samples that are decoded at a time, at the least an interval of 4,096 blocks of 64.
_SAMPLES: Final = 1 << 20
#: Zero bytes that may fill the last word of a stream.
_FILL: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class RiceParameters:
    """What has to be said of a stream of CCSDS 121.0, which has no header.

    Attributes
    ----------
    depth
        n, bits of a sample, 1 to 32.
    block_size
        J, samples of a block: 8, 16, 32 or 64.
    reference_interval
        r, blocks from one reference sample to the next, 1 to 4,096.
    signed
        Whether samples are signed.
    preprocessed
        Whether samples were predicted from the one before; otherwise the stream has them as they are.
    padded
        Whether each reference interval begins at a byte.
    restricted
        Whether the restricted set of code options was used, of up to 4 bits.

    Raises
    ------
    InvalidInput
        If a value is out of its range.
    """

    depth: int
    block_size: int = 16
    reference_interval: int = 128
    signed: bool = False
    preprocessed: bool = True
    padded: bool = False
    restricted: bool = False

    def __post_init__(self) -> None:
        # A number in the place of true or false would have another kernel compiled.
        check_types(self)
        whole("depth", self.depth, 1, 32)
        one_of("block_size", self.block_size, (8, 16, 32, 64))
        whole("reference_interval", self.reference_interval, 1, 4096)
        one_of("padded", self.padded, (False, True) if self.preprocessed else (False,))
        whole("restricted", int(self.restricted), 0, int(self.depth <= 4), " for this depth")

    def code(self, blocks: int) -> BlockCode:
        """Constants of the decoder of so many blocks."""
        label = 3 if self.depth <= 8 else 4 if self.depth <= 16 else 5
        if self.restricted:
            label = 1 if self.depth <= 2 else 2
        numbers = (self.depth, self.block_size, label, (1 << label) - 2, self.reference_interval, blocks)
        return BlockCode(*(np.int64(number) for number in numbers))


def decode_rice(
    data: Any, count: int, parameters: RiceParameters, path: str | os.PathLike[str] = "stream"
) -> NDArray[Any]:
    """So many samples of a stream of CCSDS 121.0, in the narrowest type that holds them.

    `path` is for messages. FormatError if the stream ends early, holds more, or leads to no samples.
    """
    pieces = _pieces(data, count, parameters, path)
    # No room is made before it is known that so many samples can be there.
    first = next(pieces)
    found = np.empty(count, first.dtype)
    done = 0
    for piece in itertools.chain((first,), pieces):
        found[done : done + len(piece)] = piece
        done += len(piece)
    return found


def _type_of(parameters: RiceParameters) -> np.dtype[Any]:
    depth = max(parameters.depth, 2)
    return sample_type(ImageLayout(columns=1, rows=1, bands=1, dynamic_range=depth, signed=parameters.signed))


def _pieces(
    data: Any, count: int, parameters: RiceParameters, path: str | os.PathLike[str]
) -> Iterator[NDArray[Any]]:
    """The samples in turn, some at a time; see `decode_rice`."""
    size, depth = parameters.block_size, parameters.depth
    blocks = -(-count // size)
    if len(data) < blocks // (64 * 2):
        # A run of 64 blocks of zeros takes seven bits or more.
        raise _damaged(path, f"{len(data):,} bytes", count)
    kind, low = _type_of(parameters), -(1 << (depth - 1)) if parameters.signed else 0
    reader, code = BodyReader(data), parameters.code(blocks)
    step = max(1, _SAMPLES // (size * parameters.reference_interval)) * size * parameters.reference_interval
    progress = np.zeros(2, np.int64)
    for first in range(0, count, step):
        last = min(first + step, count)
        values = np.zeros(-(-(last - first) // size) * size, np.int64)
        try:
            if parameters.preprocessed:
                window = reader.window(2 * values.size)
                decode_references_kernel(code, values, window, low, parameters.padded)
            else:
                decode_blocks_kernel(code, values, reader.window(2 * values.size), progress)
                if parameters.signed:
                    values[values >= -low] += 2 * low
            reader.check()
        except BodyEnd as error:
            raise _damaged(path, "an end before the last sample", count) from error
        own = values[: last - first]
        if int(own.min()) < low or int(own.max()) >= low + (1 << depth):
            raise _damaged(path, f"samples of more than {depth} bits", count)
        yield own.astype(kind)
    if reader.left > 8 * _FILL + 7:
        raise _damaged(path, f"{reader.left // 8:,} bytes behind the last sample", count)


def _damaged(path: str | os.PathLike[str], found: str, count: int) -> FormatError:
    return FormatError(
        path,
        found=found,
        expected=f"a stream of CCSDS 121.0 with {count:,} samples and these parameters",
        hint="it has no header: check shape, bits of a sample, block size and reference interval",
    )


def _data(path: str | os.PathLike[str]) -> Any:
    """The bytes of a file, as a map where it can be mapped."""
    with input_errors(path), open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
            return file.read()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def decompress_rice_file(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    parameters: RiceParameters,
    *,
    shape: tuple[int, int, int],
    interleave: str = "bsq",
    overwrite: bool = False,
) -> CubeLayout:
    """Decompress a stream of CCSDS 121.0 into the file of a cube.

    Parameters
    ----------
    path
        The stream.
    output
        The file; its suffix decides the format as in `plait.hyperspectral.files.decompress_file`.
    parameters
        How it was coded.
    shape
        Rows, columns and bands.
    interleave
        Order of the samples in the stream.
    overwrite
        Whether files that are there already may be written over.

    Returns
    -------
    CubeLayout
        How the samples lie in the output.

    Raises
    ------
    FormatError
        If the stream cannot be read, or is no such stream; no output is left then.
    InvalidInput
        If the output cannot be written so, or is there already.
    """
    interleave_axes(interleave)
    rows, columns, bands = shape
    kind = _type_of(parameters)
    # Sizes are checked, before anything is read.
    CubeLayout(rows=rows, columns=columns, bands=bands, dtype=kind)
    with tempfile.NamedTemporaryFile(prefix="plait-") as plain:
        # As they come, so that rows can be read whatever their order is.
        with output_errors(plain.name):
            for piece in _pieces(_data(path), rows * columns * bands, parameters, path):
                plain.write(piece.data)
            plain.flush()
        raw = RawShape(shape=shape, dtype=kind.str, interleave=interleave)
        with open_cube(plain.name, raw).source as source:
            sink = create_cube(output, shape, kind, interleave=interleave, inputs=[path], overwrite=overwrite)
            with sink:
                step = max(1, _SAMPLES // (columns * bands))
                for first in range(0, rows, step):
                    sink.write_rows(source.read(first, min(first + step, rows)))
    return sink.layout
