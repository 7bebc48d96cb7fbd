"""Compress, decompress, verify and describe cubes in files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from plait.errors import InvalidInput
from plait.formats.atomic import check_not_input
from plait.formats.cubes.files import CubeFormat, FileCube, RawShape, create_cube, open_cube
from plait.formats.cubes.layout import ByteOrder, CubeLayout
from plait.formats.cubes.origin import origin_path
from plait.hyperspectral.chunks import needed_bits
from plait.hyperspectral.containers import BlockGrid
from plait.hyperspectral.cubes import image_of
from plait.hyperspectral.presets import check_interoperable, named_parameters, preset_parameters
from plait.hyperspectral.streams import (
    CompressedCube,
    Progress,
    StreamSummary,
    attachment_of,
    compress_cube,
    open_stream,
)

#: Samples that are read at a time where rows are only looked through.
_SAMPLES = 1 << 22


@dataclass(frozen=True, slots=True)
class CompressedFile:
    """What was compressed: `layout` is that of the input, `notes` say what of it is not kept."""

    summary: StreamSummary
    layout: CubeLayout
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found when a compressed cube was decoded and compared.

    `faults` has a line for each fault; `unknown` says what there was nothing to compare with, or is None.
    """

    faults: tuple[str, ...]
    unknown: str | None


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
        ``"fast"``, ``"default"`` or ``"best"``.
    dynamic_range
        Bits of a sample; None for as many as its samples need, for which the cube is read twice.
    parameters
        Parameters by name that differ from the preset.
    blocks, index, checksum, threads, progress
        As in `plait.hyperspectral.streams.compress_cube`.
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
        for target in (output, *([] if index is None else [index])):
            check_not_input(target, opened_cube.files)
        check_not_input(origin_path(output), opened_cube.files)
        image = image_of(source, _bits_of(source) if dynamic_range is None else dynamic_range)
        pixels = None if blocks is None else BlockGrid.parse(blocks, image).block_pixels
        chosen = preset_parameters(image, preset, pixels, **(parameters or {}))
        if interoperable:
            check_interoperable(chosen)
        attached = attachment_of(opened_cube.origin) if blocks is not None and keep_origin else None
        summary = compress_cube(
            source,
            output,
            parameters=chosen,
            blocks=blocks,
            index=index,
            checksum=checksum,
            attachments=attached,
            origin=opened_cube.origin,
            bare=not keep_origin,
            threads=threads,
            progress=progress,
        )
    finally:
        source.close()
    return CompressedFile(summary, opened_cube.origin.layout, source.notes)


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
            for rows in cube.rows(threads=threads):
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
            return Verification(_differences(cube, known.source, threads, progress), None)
        finally:
            known.source.close()


def _differences(
    cube: CompressedCube,
    source: FileCube,
    threads: int | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[str, ...]:
    if tuple(cube.shape) != (source.rows, source.columns, source.bands):
        found = f"{source.rows} rows x {source.columns} columns x {source.bands} bands"
        expected = "{} rows x {} columns x {} bands, as the compressed cube".format(*cube.shape)
        raise InvalidInput("original", found=found, expected=expected)
    row, whole, different = 0, int(np.prod(cube.shape, dtype=np.int64)), 0
    first = ""
    for rows in cube.rows(threads=threads):
        wrong = rows != source.read(row, row + len(rows))
        if wrong.any():
            if not different:
                y, x, z = (int(one[0]) for one in np.nonzero(wrong))
                first = f"the first in row {row + y}, column {x}, band {z}"
            different += int(wrong.sum())
        row += len(rows)
        if progress is not None:
            progress(row * rows.shape[1] * rows.shape[2], whole)
    return (f"{different:,} of {whole:,} samples differ, {first}",) if different else ()


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
            }
        return found
