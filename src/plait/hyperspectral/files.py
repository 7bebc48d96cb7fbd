"""Compress, decompress, verify and describe cubes in files."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.atomic import check_different, check_not_input
from plait.formats.cubes.files import CubeFormat, FileCube, RawShape, create_cube, open_cube
from plait.formats.cubes.layout import ByteOrder, CubeLayout
from plait.formats.cubes.origin import origin_path
from plait.hyperspectral.choosing import fallback_of, parameters_for
from plait.hyperspectral.chunks import needed_bits
from plait.hyperspectral.containers import BlockGrid
from plait.hyperspectral.cubes import image_of
from plait.hyperspectral.mapping import MappedCube, is_mapped, mapped
from plait.hyperspectral.parameters import StreamParameters
from plait.hyperspectral.presets import check_interoperable, named_parameters
from plait.hyperspectral.streams import CompressedCube, Progress, attachment_of, open_stream
from plait.hyperspectral.writing import StreamSummary, compress_cube
from plait.settings import thread_count

#: Samples that are read at a time where rows are only looked through.
_SAMPLES = 1 << 22


@dataclass(frozen=True, slots=True)
class CompressedFile:
    """What was compressed: `layout` is that of the input, `notes` say what of it is not kept."""

    summary: StreamSummary
    layout: CubeLayout
    notes: tuple[str, ...]


#: Limits that are told one by one; of more, the smallest and the largest are.
_MOST_LIMITS = 8


class ErrorReport:
    """Errors of the samples of a near-lossless cube of `parameters`, beside their limits.

    `samples` were compared. `largest` and `squares` are the largest error of each band and the sum of its
    squared errors; `limits` the least and the largest limit that a sample of it has; `beyond` is how many
    samples are further from the original than their limits, and `first` the place of the first of them, its
    error and its limit.
    """

    def __init__(self, parameters: StreamParameters) -> None:
        bands = parameters.image.bands
        self._parameters = parameters
        self.samples = self.beyond = 0
        self.largest, self.squares = np.zeros(bands, np.int64), np.zeros(bands)
        self.limits = np.array([[1 << 32] * bands, [0] * bands], np.int64)
        self.first: tuple[tuple[int, int, int], int, int] | None = None

    def compare(
        self, cube: CompressedCube, source: Any, progress: Progress | None = None, threads: int | None = None
    ) -> None:
        """Add the samples of a cube, and the original ones of a source of the same shape.

        Up to `threads` parts are decoded at a time. InvalidInput if the original samples are no integers.
        """
        if source.dtype.kind not in "iu":
            found = f"samples of type {source.dtype}"
            raise InvalidInput("original", found=found, expected="integers, as the compressed cube has")
        lock = threading.Lock()

        def one(part: int) -> None:
            window = cube.windows[part]
            row, limits = window.first_row, list[NDArray[np.int64]]()
            # The first sample of a band of a stream is exact; that says nothing of the limits.
            begins = part == 0 or cube.kind == "blocks"
            for rows in cube.part_rows(part, window.last_row, errors=limits.append):
                last, place = row + len(rows), (row, window.first_column)
                with lock:
                    original = source.read(row, last, window.first_column, window.last_column)
                    self._add(rows.astype(np.int64) - original.astype(np.int64), limits.pop(), place, begins)
                    if progress is not None:
                        progress(self.samples, math.prod(cube.shape))
                row, begins = last, False

        with ThreadPoolExecutor(max(thread_count() if threads is None else threads, 1)) as pool:
            list(pool.map(one, range(len(cube.windows))))

    def _add(
        self, errors: NDArray[np.int64], limits: NDArray[np.int64], place: tuple[int, int], begins: bool
    ) -> None:
        sizes, axes = np.abs(errors), (0, 1)
        np.maximum(self.largest, sizes.max(axes), out=self.largest)
        self.squares += np.square(errors, dtype=np.float64).sum(axes)
        told = limits.reshape(-1, limits.shape[2])[int(begins) :]
        if len(told):
            self.limits[0] = np.minimum(self.limits[0], told.min(0))
            self.limits[1] = np.maximum(self.limits[1], told.max(0))
        wrong = sizes > limits
        if wrong.any():
            y, x, z = (int(one[0]) for one in np.nonzero(wrong))
            where = (place[0] + y, place[1] + x, z)
            if self.first is None or where < self.first[0]:
                self.first = where, int(sizes[y, x, z]), int(limits[y, x, z])
        self.beyond += int(wrong.sum())
        self.samples += errors.size

    @property
    def faults(self) -> tuple[str, ...]:
        """A line on the samples beyond their limits, if there are any."""
        if self.first is None:
            return ()
        (row, column, band), size, limit = self.first
        first = (
            f"the first in row {row}, column {column}, band {band}: by {size:,}, and its limit is {limit:,}"
        )
        return (f"{self.beyond:,} of {self.samples:,} samples differ by more than they may, {first}",)

    @property
    def noise_ratio(self) -> float:
        """Ratio of the largest sample value, 2**D - 1, to the root mean square error (PSNR), in decibels."""
        mean = float(self.squares.sum()) / self.samples
        peak = float((1 << self._parameters.image.dynamic_range) - 1)
        return math.inf if mean == 0 else 10 * math.log10(peak * peak / mean)

    def lines(self) -> list[str]:
        """The largest error for each limit, and the noise."""
        found = []
        by_limit: dict[tuple[int, int], list[int]] = {}
        for band in range(len(self.largest)):
            least, most = (int(one) for one in self.limits[:, band])
            by_limit.setdefault((min(least, most), most), []).append(band)
        if len(by_limit) <= _MOST_LIMITS:
            for (least, most), bands in sorted(by_limit.items()):
                found.append(self._line(least, most, bands))
        else:
            least, most = int(self.limits[0].min()), int(self.limits[1].max())
            found.append(self._line(least, most, range(len(self.largest))))
        root = math.sqrt(float(self.squares.sum()) / self.samples)
        return [*found, f"root mean square error {root:.3f}, PSNR {self.noise_ratio:.2f} dB"]

    def _line(self, least: int, most: int, bands: Sequence[int]) -> str:
        many = f"band {bands[0]}" if len(bands) == 1 else f"{len(bands):,} bands"
        limit = f"limit {most:,}" if least == most else f"limits {least:,} to {most:,}"
        return f"{limit}, {many}: largest error {max(int(self.largest[k]) for k in bands):,}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found when a compressed cube was decoded and compared.

    `faults` has a line for each fault; `unknown` says what there was nothing to compare with, or is None.
    `errors` are those of a near-lossless cube that was compared with the original.
    """

    faults: tuple[str, ...]
    unknown: str | None
    errors: ErrorReport | None = None


def compress_file(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    raw: RawShape | None = None,
    variable: str | None = None,
    preset: str = "default",
    dynamic_range: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    blocks: str | None = None,
    index: str | os.PathLike[str] | None = None,
    checksum: bool = False,
    keep_origin: bool = True,
    interoperable: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    device: str = "auto",
) -> CompressedFile:
    """Compress the cube of a file.

    What the file was is kept: in the container, or beside the stream in a file of its name with ``.json``
    added, with checksums of the stream and of the samples. With it `decompress_file` writes ENVI, .npy and
    raw files as they were, byte for byte.

    Parameters
    ----------
    path
        An ENVI, .npy, GeoTIFF or NetCDF file, or with a shape any other one.
    output
        The compressed cube.
    raw
        Shape, type and order of the samples, where the file does not say them.
    variable
        Which variable of a NetCDF file.
    preset
        ``"fast"``, ``"default"``, ``"best"``, or ``"auto"``, which compresses a sample in many ways first.
    dynamic_range
        Bits of a sample; None for as many as its samples need, for which the cube is read twice.
    parameters
        Parameters by name that differ from the preset.
    blocks, index, checksum, threads, progress, device
        As in `plait.hyperspectral.writing.compress_cube`.
    keep_origin
        Whether to keep what the file was, and the checksums of a plain stream.
    interoperable
        Whether to refuse what programs read differently, see
        `plait.hyperspectral.presets.check_interoperable`.

    Raises
    ------
    FormatError
        If the file is not what it should be.
    InvalidInput
        If samples or parameters cannot be coded.
    """
    opened_cube = open_cube(path, raw or RawShape(), variable=variable)
    source = opened_cube.source
    try:
        check_different(output, index, origin_path(output))
        for target in (output, *([] if index is None else [index])):
            check_not_input(target, opened_cube.files)
        check_not_input(origin_path(output), opened_cube.files)
        bits, cube = dynamic_range, mapped(source) if is_mapped(source.dtype) else source
        if bits is None:
            bits = cube.bits if isinstance(cube, MappedCube) else _bits_of(source)
        image = image_of(cube, bits)
        grid = None if blocks is None else BlockGrid.parse(blocks, image)
        named = dict(parameters or {})
        chosen = parameters_for(cube, image, preset, grid, **named)
        if interoperable:
            check_interoperable(chosen)
        attached = attachment_of(opened_cube.origin) if blocks is not None and keep_origin else None
        summary = compress_cube(
            cube,
            output,
            parameters=chosen,
            fallback=fallback_of(image, preset, grid, **named),
            blocks=blocks,
            index=index,
            checksum=checksum,
            attachments=attached,
            origin=opened_cube.origin,
            bare=not keep_origin,
            threads=threads,
            progress=progress,
            device=device,
        )
    finally:
        source.close()
    notes = (*source.notes, *_mapping_note(cube), *_small_blocks(grid))
    return CompressedFile(summary, opened_cube.origin.layout, notes)


def _mapping_note(cube: FileCube | MappedCube) -> tuple[str, ...]:
    if not isinstance(cube, MappedCube):
        return ()
    how = f"its samples are kept bit for bit, {cube.mapping.describe()}"
    if cube.mapping.kind != "order":
        return (how,)
    return (f"{how}; if they were integers before they were scaled or masked, those would take far less",)


#: Blocks of fewer pixels are warned of: streams of half as many took 1 to 5 % more than one of all.
_FEW_PIXELS = 2_500


def _small_blocks(grid: BlockGrid | None) -> tuple[str, ...]:
    if grid is None or len(grid) == 1 or grid.block_pixels >= _FEW_PIXELS:
        return ()
    why = f"blocks of {grid.block_pixels:,} pixels cost some percent, for each learns anew"
    return (f"{why}; of {2 * _FEW_PIXELS:,} and more it is one or two",)


def _bits_of(source: FileCube) -> int:
    step = max(1, _SAMPLES // (source.columns * source.bands))
    return max(
        needed_bits(source.read(first, min(first + step, source.rows)))
        for first in range(0, source.rows, step)
    )


def decompress_file(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    format: CubeFormat | None = None,
    interleave: str | None = None,
    byte_order: ByteOrder | None = None,
    index: str | os.PathLike[str] | None = None,
    tables: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    device: str = "auto",
) -> CubeLayout:
    """Decompress a cube into a file.

    In the format, interleave and byte order of the file it came from, it is written as it was.

    Parameters
    ----------
    path
        The compressed cube.
    output
        The file; of an existing folder, the name that the cube came from. The suffix decides the format:
        .npy, .tif, .nc, .hdr (ENVI). Any other is raw if the cube came from that, and otherwise ENVI data
        with a header beside.
    format
        The format, whatever the suffix.
    interleave, byte_order
        Another order than that of the file it came from.
    index
        Its side index.
    tables
        Tables that the stream uses and does not carry.
    overwrite
        Whether files that are there already may be written over.
    threads
        Number of threads; None for as many as there are processors.
    progress
        Called as it goes on.
    device
        Name of a device, see `plait.devices.target`. GPUs decode plain streams with a side index.

    Returns
    -------
    CubeLayout
        How the samples lie in the output.

    Raises
    ------
    FormatError
        If the compressed cube is truncated or damaged; no output is left then.
    InvalidInput
        If the output cannot be written so, or is there already.
    """
    with open_stream(path, index=index, **(tables or {})) as cube:
        sink = create_cube(
            output,
            cube.shape,
            cube.dtype,
            origin=cube.origin,
            format=format,
            interleave=interleave,
            byte_order=byte_order,
            inputs=[path, origin_path(path), *([] if index is None else [index])],
            overwrite=overwrite,
        )
        with sink:
            done, whole = 0, int(np.prod(cube.shape, dtype=np.int64))
            for rows in cube.rows(threads=threads, device=device):
                sink.write_rows(rows)
                done += rows.size
                if progress is not None:
                    progress(done, whole)
        return sink.layout


def verify_file(
    path: str | os.PathLike[str],
    original: str | os.PathLike[str] | None = None,
    *,
    raw: RawShape | None = None,
    variable: str | None = None,
    index: str | os.PathLike[str] | None = None,
    tables: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Decode a compressed cube and compare it with its checksums, or with the original.

    Parameters
    ----------
    path
        The compressed cube.
    original
        The file it came from.
    raw, variable
        As in `compress_file`, for the original.
    index, tables, threads, progress
        As in `decompress_file`.

    Returns
    -------
    Verification
        What is wrong, and what cannot be known.
    """
    with open_stream(path, index=index, **(tables or {})) as cube:
        if original is None:
            return Verification(cube.verify(threads=threads, progress=progress), cube.unknown)
        known = open_cube(original, raw or RawShape(), variable=variable)
        try:
            _check_shape(cube, known.source)
            if cube.parameters.predictor.error_limits is not None:
                errors = ErrorReport(cube.parameters)
                errors.compare(cube, known.source, progress, threads)
                return Verification(errors.faults, None, errors)
            return Verification(_differences(cube, known.source, threads, progress), None)
        finally:
            known.source.close()


def _check_shape(cube: CompressedCube, source: FileCube) -> None:
    if tuple(cube.shape) != (source.rows, source.columns, source.bands):
        found = f"{source.rows} rows x {source.columns} columns x {source.bands} bands"
        expected = "{} rows x {} columns x {} bands, as the compressed cube".format(*cube.shape)
        raise InvalidInput("original", found=found, expected=expected)


def _differences(
    cube: CompressedCube,
    source: FileCube,
    threads: int | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[str, ...]:
    row, whole, different = 0, int(np.prod(cube.shape, dtype=np.int64)), 0
    first = ""
    for rows in cube.rows(threads=threads):
        known = source.read(row, row + len(rows))
        wrong = rows != known
        if rows.dtype == known.dtype and rows.dtype.kind == "f":
            # NaN is like itself, and 0 is not -0.
            bits = f"u{rows.dtype.itemsize}"
            wrong = rows.view(bits) != known.view(bits)
        if wrong.any():
            if not different:
                y, x, z = (int(one[0]) for one in np.nonzero(wrong))
                first = f"the first in row {row + y}, column {x}, band {z}"
            different += int(wrong.sum())
        row += len(rows)
        if progress is not None:
            progress(row * rows.shape[1] * rows.shape[2], whole)
    return (f"{different:,} of {whole:,} samples differ, {first}",) if different else ()


def _without_levels(mapping: Mapping[str, Any]) -> dict[str, Any]:
    # There are many.
    return {name: value for name, value in mapping.items() if name != "levels"}


def describe(path: str | os.PathLike[str], *, tables: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a compressed cube says of itself, ready for JSON.

    FormatError or InvalidInput if it is no compressed cube, or its header is damaged.
    """
    with open_stream(path, **(tables or {})) as cube:
        image = cube.parameters.image
        size = os.path.getsize(path)
        samples = cube.shape[0] * cube.shape[1] * cube.shape[2]
        found: dict[str, Any] = {
            "path": os.fspath(path),
            "kind": cube.kind,
            "bytes": size,
            "rows": cube.shape[0],
            "columns": cube.shape[1],
            "bands": cube.shape[2],
            "dynamic_range": image.dynamic_range,
            "signed": image.signed,
            "bits_per_sample": 8 * size / samples,
            "blocks": len(cube.windows),
            "checksums": cube.has_checksums,
            "parameters": named_parameters(cube.parameters),
        }
        if (limits := cube.parameters.near_lossless) is not None:
            found["near_lossless"] = limits
        origin = cube.origin
        if origin is not None:
            found["origin"] = {
                "format": origin.format,
                "dtype": origin.layout.dtype.str,
                "interleave": origin.layout.interleave or origin.layout.axes,
                "byte_order": origin.layout.byte_order,
                "offset": origin.layout.offset,
                "names": dict(origin.names),
                "header": origin.header,
                **({"mapping": _without_levels(origin.mapping)} if origin.mapping else {}),
            }
        return found
