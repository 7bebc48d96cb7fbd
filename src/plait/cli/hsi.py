"""``plait hsi``: compress, decompress, describe and verify hyperspectral cubes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from plait._compiling import work_time
from plait.cli.console import Bar, say
from plait.cli.options import OutputOption, WholeNumber
from plait.cli.stream_options import (
    ByteOrderOption,
    FormatOption,
    HeaderOptions,
    PresetOption,
    RawOptions,
    dynamic_range_of,
    tables_in,
)

__all__ = ["app"]

app = App(
    name="hsi",
    help="Compress hyperspectral cubes without loss (CCSDS 123), and get them back.",
    version_flags=[],
)

_RAW = RawOptions()
_HEADER = HeaderOptions()
Flag = Parameter(negative="")


class _SampleProgress(Bar):
    """A bar of samples, with millions of them a second."""

    def __call__(self, done: int, whole: int) -> None:
        self.show(done / 1e6, "{:,.1f} MSamples/s", done, whole)


def _speed(samples: int, start: float) -> str:
    seconds = work_time() - start
    return f"in {seconds:.1f} s, {samples / max(seconds, 1e-9) / 1e6:,.1f} MSamples/s"


@app.command
def compress(
    cube: Path,
    /,
    *,
    output: OutputOption,
    preset: PresetOption = "default",
    dynamic_range: str = "auto",
    blocks: str | None = None,
    index: Path | None = None,
    checksum: Annotated[bool, Flag] = False,
    bare: Annotated[bool, Flag] = False,
    raw: RawOptions = _RAW,
    header: HeaderOptions = _HEADER,
    threads: WholeNumber | None = None,
) -> None:
    """Compress a cube into a CCSDS 123 stream, or a container of blocks.

    What the file was, its header included, is kept in a container, and otherwise in OUTPUT.json, with
    checksums.

    Parameters
    ----------
    cube
        ENVI header or data file, .npy, GeoTIFF (.tif) or NetCDF (.nc) file; with --shape any other.
    output
        The compressed cube, such as scene.c123.
    preset
        How much time to spend for a smaller stream.
    dynamic_range
        D, bits of a sample; auto: as many as the samples need, for which the cube is read twice.
    blocks
        rows:N or tiles:YxX: a container of independent standard streams, which are coded at the same time
        and read one by one.
    index
        Write a side index, with which a plain stream is read in parts and by several threads.
    checksum
        Keep checksums of the samples of each part, in the container or the side index.
    bare
        Keep nothing of what the file was, and no checksums of a plain stream.
    raw
        What has to be said of a file without a header.
    header
        Parameters of the stream.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    from plait.hyperspectral.files import compress_file

    start = work_time()
    with _SampleProgress("compressing") as progress:
        done = compress_file(
            cube,
            output,
            raw=raw.raw(),
            variable=raw.variable,
            preset=preset,
            dynamic_range=dynamic_range_of(dynamic_range),
            parameters=header.given(),
            blocks=blocks,
            index=index,
            checksum=checksum,
            keep_origin=not bare,
            interoperable=not header.any_reference_interval,
            threads=threads,
            progress=progress,
        )
    for note in done.notes:
        say(f"note: {cube}: {note}")
    found = done.summary
    plain = found.samples * done.layout.dtype.itemsize
    say(
        f"{done.layout.describe()}: {found.compressed_bytes:,} bytes, {found.bits_per_sample:.3f} bits a "
        f"sample, {plain / found.compressed_bytes:.2f}:1, {_speed(found.samples, start)}; {output}"
    )


@app.command
def decompress(
    stream: Path,
    /,
    *,
    output: OutputOption,
    format: FormatOption | None = None,
    interleave: str | None = None,
    byte_order: ByteOrderOption | None = None,
    index: Path | None = None,
    parameters: Path | None = None,
    force: Annotated[bool, Flag] = False,
    threads: WholeNumber | None = None,
) -> None:
    """Decompress a cube.

    Without --interleave and --byte-order, an ENVI, .npy or raw file becomes what it was, byte for byte.

    Parameters
    ----------
    stream
        The compressed cube.
    output
        The file to write: .npy, .tif, .nc, .hdr for ENVI; any other is written as ENVI data with a header
        beside, or as raw data if it was that. A folder: the name that it had.
    format
        The format, whatever the name says.
    interleave
        Another order of the samples: bsq, bil or bip.
    byte_order
        Another byte order.
    index
        Side index of a plain stream.
    parameters
        JSON file with tables that the stream uses and does not carry.
    force
        Write over files that are there already.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    from plait.hyperspectral.files import decompress_file

    start = work_time()
    with _SampleProgress("decompressing") as progress:
        layout = decompress_file(
            stream,
            output,
            format=format,
            interleave=interleave,
            byte_order=byte_order,
            index=index,
            tables=tables_in(parameters),
            overwrite=force,
            threads=threads,
            progress=progress,
        )
    say(f"{layout.describe()} {_speed(layout.samples, start)}; {output}")


@app.command
def info(
    stream: Path,
    /,
    *,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
    parameters: Path | None = None,
) -> None:
    """Print what the header of a compressed cube says, and what it came from.

    Parameters
    ----------
    stream
        The compressed cube.
    json_
        Print JSON; its parameters can be given to plait hsi compress --parameters.
    parameters
        JSON file with tables that the stream uses and does not carry.
    """
    from plait.hyperspectral.describe import describe
    from plait.reports.stream_text import stream_text

    found = describe(stream, tables=tables_in(parameters))
    print(json.dumps(found, indent=2) if json_ else stream_text(found))


@app.command
def verify(
    stream: Path,
    original: Path | None = None,
    /,
    *,
    index: Path | None = None,
    parameters: Path | None = None,
    raw: RawOptions = _RAW,
    threads: WholeNumber | None = None,
) -> int:
    """Decode a compressed cube, and compare it with its checksums, or with the original.

    The exit status is 0 if all is right, 1 if something differs, and 2 if a file cannot be read.

    Parameters
    ----------
    stream
        The compressed cube.
    original
        The file it came from.
    index
        Side index of a plain stream.
    parameters
        JSON file with tables that the stream uses and does not carry.
    raw
        What has to be said of an original without a header.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    from plait.hyperspectral.files import verify_file

    with _SampleProgress("verifying") as progress:
        found = verify_file(
            stream,
            original,
            raw=raw.raw(),
            variable=raw.variable,
            index=index,
            tables=tables_in(parameters),
            threads=threads,
            progress=progress,
        )
    for line in found.faults:
        print(f"{stream}: {line}")
    if not found.faults:
        told = "decodes, and its checksums agree" if original is None else f"the same as {original}"
        print(f"{stream}: {told if found.unknown is None else f'decodes; {found.unknown}'}")
    return int(bool(found.faults))


@app.command
def index(
    stream: Path,
    /,
    *,
    output: OutputOption,
    every: WholeNumber | None = None,
    parameters: Path | None = None,
) -> None:
    """Write the side index of a plain stream, with which it is read in parts and by several threads.

    Parameters
    ----------
    stream
        The compressed cube, a plain stream; containers have an index of their own.
    output
        The index.
    every
        Rows between its entries; otherwise what suits the size of the cube.
    parameters
        JSON file with tables that the stream uses and does not carry.
    """
    from plait.formats.atomic import check_not_input
    from plait.hyperspectral.streams import make_index

    check_not_input(output, [stream])
    with _SampleProgress("indexing") as progress:
        make_index(
            stream,
            output,
            every=every,
            tables=tables_in(parameters),
            progress=progress,
        )
