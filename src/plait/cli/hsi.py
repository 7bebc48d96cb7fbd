"""A compressed cube in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from plait.cli.options import (
    Bar,
    DeviceOption,
    FileOutput,
    Flag,
    FurtherFile,
    Signed,
    ThreadsOption,
    WholeNumber,
    say,
)
from plait.errors import FormatError, InvalidInput
from plait.lang.compiling import work_time
from plait.reports.plain_text import aligned

if TYPE_CHECKING:
    from plait.formats.cubes.files import RawShape

# Written out here, so that help and checks of options need not load what the words mean.
PresetOption = Literal["fast", "default", "best", "auto"]
FormatOption = Literal["envi", "npy", "raw", "geotiff", "netcdf"]
ByteOrderOption = Literal["little", "big"]
ModeOption = Literal["full", "reduced"]
SumOption = Literal["wide-neighbor", "narrow-neighbor", "wide-column", "narrow-column"]
CoderOption = Literal["sample-adaptive", "block-adaptive", "hybrid"]
OrderOption = Literal["bi", "bsq"]
# Values that may begin with a minus sign.
SignedNumber = Annotated[WholeNumber | None, Signed]
Number = WholeNumber | None
#: Options that are no parameters of the header.
_NOT_NAMED = ("parameters", "any_reference_interval", "max_error", "relative_error")


def _shape_of(text: str) -> tuple[int, int, int]:
    try:
        rows, columns, bands = (int(part) for part in text.split(","))
    except ValueError:
        expected = "rows, columns and bands such as 512,614,224"
        raise InvalidInput("--shape", found=repr(text), expected=expected) from None
    return rows, columns, bands


@Parameter(name="*", group="Files without a header")
@dataclass(frozen=True, kw_only=True)
class RawOptions:
    """What has to be said of a file without a header.

    Attributes
    ----------
    shape
        ROWS,COLUMNS,BANDS of a file without a header.
    dtype
        Its type of samples: uint8, int8, uint16, int16, uint32 or int32.
    interleave
        Its order: bsq, bil or bip, or the axes y, x and z, slowest first. For .npy and NetCDF files, what the
        dimensions are, in their order; otherwise bip, and by their names.
    byte_order
        Its byte order.
    offset
        Bytes before its first sample.
    variable
        Which variable of a NetCDF file.
    """

    shape: str | None = None
    dtype: str | None = None
    interleave: str | None = None
    byte_order: ByteOrderOption | None = None
    offset: Number = None
    variable: str | None = None

    def raw(self) -> RawShape:
        """All but the variable."""
        from plait.formats.cubes.files import RawShape

        found = {name: value for name, value in asdict(self).items() if name not in ("shape", "variable")}
        return RawShape(shape=None if self.shape is None else _shape_of(self.shape), **found)


@Parameter(name="*", group="Parameters of the stream")
@dataclass(frozen=True, kw_only=True)
class HeaderOptions:
    """Parameters of the stream by the names of the standard; what is left out is as in the preset.

    Attributes
    ----------
    parameters
        JSON file with parameters by name, tables included, as plait hsi info --json prints them.
    prediction_bands
        P, earlier bands that a band is predicted from: 0 to 15.
    mode
        Prediction mode.
    local_sum
        Neighbours that make the local sum; narrow ones are of 123.0-B-2.
    register_size
        R, bits of the register: 32 to 64.
    weight_resolution
        Omega, 4 to 19.
    weight_interval
        t_inc, a power of two from 16 to 2048.
    weight_initial
        v_min, -6 to 9.
    weight_final
        v_max, -6 to 9.
    coder
        Entropy coder; hybrid is of 123.0-B-2.
    unary_length_limit
        U_max, 8 to 32.
    initial_count_exponent
        gamma_0, 1 to 8.
    rescaling_counter_size
        gamma*, 4 to 9, and to 11 with 123.0-B-2.
    accumulator_constant
        K of the sample-adaptive coder, 0 to 14.
    block_size
        J of the block-adaptive coder: 8, 16, 32 or 64.
    reference_interval
        r of the block-adaptive coder, a multiple of 64 up to 4096.
    any_reference_interval
        Write any reference interval from 1 to 4096, though programs differ in what they do with those that
        are no multiple of 64.
    restricted
        Restricted set of code options of the block-adaptive coder, for up to 4 bits.
    order
        Order of the codewords: band-interleaved or band-sequential.
    interleaving_depth
        M of the band-interleaved order: 1 is BIL, the number of bands BIP.
    output_word_size
        B, bytes of an output word: 1 to 8.
    user_field
        The byte of the header that users may give a meaning to.
    max_error
        Near-lossless, of 123.0-B-2: no sample changes by more than this whole number. A file of whole
        numbers: one for each band.
    relative_error
        Near-lossless, of 123.0-B-2: no sample changes by more than this share of what is predicted for it,
        such as 0.01 or 1%. A file of such: one for each band. With --max-error, both hold.
    """

    parameters: Path | None = None
    prediction_bands: Number = None
    mode: ModeOption | None = None
    local_sum: SumOption | None = None
    register_size: Number = None
    weight_resolution: Number = None
    weight_interval: Number = None
    weight_initial: SignedNumber = None
    weight_final: SignedNumber = None
    coder: CoderOption | None = None
    unary_length_limit: Number = None
    initial_count_exponent: Number = None
    rescaling_counter_size: Number = None
    accumulator_constant: Number = None
    block_size: Number = None
    reference_interval: Number = None
    any_reference_interval: Flag = False
    restricted: bool | None = None
    order: OrderOption | None = None
    interleaving_depth: Number = None
    output_word_size: Number = None
    user_field: Number = None
    max_error: str | None = None
    relative_error: str | None = None

    def given(self) -> dict[str, Any]:
        """The parameters that are asked for, by name."""
        from plait.hyperspectral.presets import read_parameters

        found = {} if self.parameters is None else read_parameters(self.parameters)
        named = {name: value for name, value in asdict(self).items() if name not in _NOT_NAMED}
        named["max_error"] = _limits("--max-error", self.max_error, int, "a whole number such as 3")
        shares = "a share such as 0.01 or 1%"
        named["relative_error"] = _limits("--relative-error", self.relative_error, _share, shares)
        return found | {name: value for name, value in named.items() if value is not None}


def _share(word: str) -> float:
    return float(word[:-1]) / 100 if word.endswith("%") else float(word)


def _limits(option: str, text: str | None, of: Callable[[str], Any], expected: str) -> Any:
    """An error limit, or those of each band in a file."""
    if text is None:
        return None
    with suppress(ValueError):
        return of(text)
    path = Path(text)
    try:
        words = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        told = f"{expected}, or a text file with one for each band"
        raise InvalidInput(option, found=repr(text), expected=told) from error
    found = []
    for number, word in enumerate(words, 1):
        try:
            found.append(of(word))
        except ValueError as error:
            raise FormatError(text, found=f"{word[:40]!r} as limit {number}", expected=expected) from error
    return tuple(found)


def dynamic_range_of(text: str) -> int | None:
    """Bits of a sample, or None for as many as the samples need."""
    if text == "auto":
        return None
    try:
        return int(text)
    except ValueError:
        expected = "auto, or bits of a sample such as 16"
        raise InvalidInput("--dynamic-range", found=repr(text), expected=expected) from None


def tables_in(parameters: Path | None) -> dict[str, Any]:
    """Tables that a stream uses and does not carry, from a file of parameters."""
    from plait.hyperspectral.presets import read_parameters, tables_of

    return {} if parameters is None else tables_of(read_parameters(parameters))


app = App(name="hsi", help_format="markdown", version_flags=[])

_RAW = RawOptions()
_HEADER = HeaderOptions()


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
    output: FileOutput,
    preset: PresetOption = "default",
    dynamic_range: str = "auto",
    blocks: str | None = None,
    index: FurtherFile = None,
    checksum: Flag = False,
    bare: Flag = False,
    raw: RawOptions = _RAW,
    header: HeaderOptions = _HEADER,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
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
        How much time to spend for a smaller stream; auto compresses a sample of the cube in some forty ways,
        and may choose sample representatives and offsets of weights, which are of 123.0-B-2.
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
    device
        auto, cpu, cuda or cuda:N. GPUs make band-interleaved streams of the sample-adaptive coder; auto uses
        one if there is one, for cubes of four million samples and more.
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
            device=device,
        )
    for note in done.notes:
        say(f"note: {cube}: {note}")
    found = done.summary
    plain = found.samples * done.layout.dtype.itemsize
    limits = found.parameters.near_lossless
    limited = "" if limits is None else f", near-lossless ({limits})"
    say(
        f"{done.layout.describe()}: {found.compressed_bytes:,} bytes, {found.bits_per_sample:.3f} bits a "
        f"sample, {plain / found.compressed_bytes:.2f}:1{limited}, {_speed(found.samples, start)}; {output}"
    )


@app.command
def decompress(
    stream: Path,
    /,
    *,
    output: Annotated[str, Parameter(name=["--output", "-o"])],
    format: FormatOption | None = None,
    interleave: str | None = None,
    byte_order: ByteOrderOption | None = None,
    index: Path | None = None,
    parameters: Path | None = None,
    force: Flag = False,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Decompress a cube.

    Without --interleave and --byte-order, an ENVI, .npy or raw file becomes what it was, byte for byte.

    Parameters
    ----------
    stream
        The compressed cube.
    output
        The file to write: .npy, .tif, .nc, .hdr for ENVI; any other is written as ENVI data with a header
        beside, or as raw data if it was that. A folder, or NAME/: the names that the files had.
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
    device
        auto, cpu, cuda or cuda:N. GPUs read plain streams of the sample-adaptive coder in the order of pixels
        (BIP) whose side index is given, if it is that of four million samples or more.
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
            device=device,
        )
    say(f"{layout.describe()} {_speed(layout.samples, start)}; {output}")


@app.command
def info(
    stream: Path,
    /,
    *,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
    html: FurtherFile = None,
    parameters: Path | None = None,
    threads: ThreadsOption = None,
) -> None:
    """Print what the header of a compressed cube says, and what it came from.

    Parameters
    ----------
    stream
        The compressed cube.
    json_
        Print JSON; its parameters can be given to plait hsi compress --parameters.
    html
        Decode it, and write a page with a quick look in colour, statistics of each band and its bits.
    parameters
        JSON file with tables that the stream uses and does not carry.
    threads
        Number of threads, for the page; otherwise PLAIT_THREADS, otherwise the processors one may use.
    """
    from plait.hyperspectral.files import describe

    tables = tables_in(parameters)
    found = describe(stream, tables=tables)
    if html is not None:
        from plait.formats.atomic import check_not_input
        from plait.reports.cube_page import write_cube_page

        check_not_input(html, [stream])
        with _SampleProgress("looking") as progress:
            write_cube_page(stream, html, threads=threads, progress=progress, **tables)
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
    threads: ThreadsOption = None,
) -> int:
    """Decode a compressed cube, and compare it with its checksums, or with the original.

    A near-lossless cube is compared with the original within its error limits, and its errors are printed.
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
    if found.errors is not None:
        for line in found.errors.lines():
            print(f"{stream}: {line}")
    if not found.faults:
        told = "decodes, and its checksums agree" if original is None else f"the same as {original}"
        if found.errors is not None:
            told = f"within its error limits of {original}"
        print(f"{stream}: {told if found.unknown is None else f'decodes; {found.unknown}'}")
    return int(bool(found.faults))


@app.command
def index(
    stream: Path,
    /,
    *,
    output: FileOutput,
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
    from plait.hyperspectral.writing import make_index

    check_not_input(output, [stream])
    with _SampleProgress("indexing") as progress:
        make_index(
            stream,
            output,
            every=every,
            tables=tables_in(parameters),
            progress=progress,
        )


@app.command(name="read-121")
def read_121(
    stream: Path,
    /,
    *,
    output: FileOutput,
    shape: str,
    depth: WholeNumber,
    interleave: str = "bsq",
    block_size: WholeNumber = 16,
    reference_interval: WholeNumber = 128,
    signed: Flag = False,
    plain: Flag = False,
    padded: Flag = False,
    restricted: Flag = False,
    force: Flag = False,
) -> None:
    """Decompress a stream of CCSDS 121.0, such as libaec writes, into the file of a cube.

    The stream has no header: all of it has to be said. Samples wait in a temporary file.

    Parameters
    ----------
    stream
        The stream.
    output
        The file to write: .npy, .tif, .nc, .hdr for ENVI; any other is written as ENVI data with a header.
    shape
        ROWS,COLUMNS,BANDS.
    depth
        n, bits of a sample: 1 to 32.
    interleave
        Order of the samples: bsq, bil or bip.
    block_size
        J, samples of a block: 8, 16, 32 or 64.
    reference_interval
        r, blocks from one reference sample to the next: 1 to 4096.
    signed
        Samples are signed.
    plain
        Samples were not predicted from the one before.
    padded
        Each reference interval begins at a byte.
    restricted
        The restricted set of code options was used, of up to 4 bits.
    force
        Write over files that are there already.
    """
    from plait.hyperspectral.ccsds121 import RiceParameters, decompress_rice_file

    start = work_time()
    parameters = RiceParameters(
        depth=depth,
        block_size=block_size,
        reference_interval=reference_interval,
        signed=signed,
        preprocessed=not plain,
        padded=padded,
        restricted=restricted,
    )
    layout = decompress_rice_file(
        stream, output, parameters, shape=_shape_of(shape), interleave=interleave, overwrite=force
    )
    say(f"{layout.describe()} {_speed(layout.samples, start)}; {output}")


#: Lists of wavelengths are as wide as they like.
_WIDEST = 76


def stream_text(found: Mapping[str, Any]) -> str:
    """A compressed cube in words.

    Parameters
    ----------
    found
        As `plait.hyperspectral.files.describe` gives it.
    """
    kind = "a plain stream" if found["kind"] == "stream" else f"a container of {found['blocks']:,} blocks"
    if found["checksums"]:
        kind += " with checksums"
    if "near_lossless" in found:
        kind += f", near-lossless ({found['near_lossless']})"
    signed = "signed" if found["signed"] else "unsigned"
    lines = [
        f"{found['path']}: {kind}, {found['bytes']:,} bytes, {found['bits_per_sample']:.3f} bits a sample",
        f"{found['rows']:,} rows x {found['columns']:,} columns x {found['bands']:,} bands, "
        f"{signed} samples of {found['dynamic_range']} bits",
    ]
    rows = [(name, _value(value)) for name, value in found["parameters"].items()]
    lines += ["parameters", *aligned(rows, "<<")]
    if "origin" in found:
        origin = dict(found["origin"])
        header = origin.pop("header")
        rows = [(name, _value(value)) for name, value in origin.items() if value not in ("", 0)]
        lines += ["came from", *aligned(rows, "<<")]
        lines += ["header", *(f"  {_short(line)}" for line in header.splitlines())] if header else []
    return "\n".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(one)}" for name, one in value.items() if one is not None)
    if isinstance(value, list | tuple):
        return f"a table of {len(value):,}"
    return str(value)


def _short(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 4]} ..."
