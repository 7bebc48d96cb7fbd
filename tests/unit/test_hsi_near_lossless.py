"""Near-lossless cubes in containers, side indices, arrays and files: errors within limits, and told truly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr
from zarr.storage import MemoryStore

from plait.errors import FormatError, InvalidInput
from plait.hyperspectral.choosing import parameters_for
from plait.hyperspectral.chunks import ChunkCoding
from plait.hyperspectral.codec import Compressor, StreamDecoder, compress, decompress
from plait.hyperspectral.codewords import BodyEnd
from plait.hyperspectral.cubes import ArrayCube
from plait.hyperspectral.files import ErrorReport, compress_file, describe, verify_file
from plait.hyperspectral.gpu_codec import unserved
from plait.hyperspectral.libraries.numcodecs_codec import Ccsds123
from plait.hyperspectral.libraries.xarray_backend import CubeBackend
from plait.hyperspectral.libraries.zarr_codec import Ccsds123Codec
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    ErrorLimits,
    HybridCoder,
    ImageLayout,
    Predictor,
    Representatives,
    SampleAdaptive,
    StreamParameters,
)
from plait.hyperspectral.presets import limits_of, preset_parameters, read_parameters
from plait.hyperspectral.streams import open_stream
from plait.hyperspectral.writing import compress_cube, make_index

SHAPE = (40, 30, 6)
CUBE = np.clip(np.cumsum(np.random.default_rng(0).integers(-9, 10, SHAPE), 1) + 500, 0, 1023).astype(
    np.uint16
)
IMAGE = ImageLayout(rows=40, columns=30, bands=6, dynamic_range=10)
#: Every 8 rows others, of each band.
UPDATED = ErrorLimits(
    absolute=tuple(tuple((k + z) % 5 for z in range(6)) for k in range(5)), update_exponent=3
)


def parameters(limits: ErrorLimits, **more: Any) -> StreamParameters:
    return preset_parameters(IMAGE, "default", error_limits=limits, **more)


def error(found: Any, cube: Any = CUBE) -> Any:
    return np.abs(np.asarray(found).astype(np.int64) - cube)


def period_limits(first: int, last: int) -> Any:
    return np.array(UPDATED.absolute)[np.arange(first, last) // 8][:, np.newaxis]


@pytest.mark.parametrize("blocks", ["rows:16", "tiles:8x11"])
@pytest.mark.parametrize("limits", [ErrorLimits(absolute=4), ErrorLimits(relative=9), UPDATED])
def test_containers_keep_checksums_of_what_they_give(blocks: str, limits: ErrorLimits) -> None:
    pieces: list[bytes] = []
    chosen = parameters(limits)
    compress_cube(ArrayCube(CUBE), pieces.append, parameters=chosen, blocks=blocks, checksum=True)
    with open_stream(b"".join(pieces)) as cube:
        assert cube.verify() == ()
        found = cube.read(3, 37, 5, 22)
        limit = {4: 4, None: 8}.get(limits.absolute) if limits is not UPDATED else period_limits(3, 37)
        assert (error(found, CUBE[3:37, 5:22]) <= limit).all()
        assert error(found, CUBE[3:37, 5:22]).any()
        report = ErrorReport(cube.parameters)
        report.compare(cube, ArrayCube(CUBE))
    assert report.faults == () and report.samples == CUBE.size


def test_blocks_begin_where_limits_are_updated() -> None:
    with pytest.raises(
        InvalidInput, match="blocks: found a block from row 12 on, expected blocks of a multi"
    ):
        compress_cube(ArrayCube(CUBE), [].append, parameters=parameters(UPDATED), blocks="rows:12")


@pytest.mark.parametrize("coder", ["sample-adaptive", "block-adaptive"])
def test_a_side_index_of_updated_limits(tmp_path: Path, coder: str) -> None:
    stream, index = tmp_path / "a.c123", tmp_path / "a.index"
    compress_cube(ArrayCube(CUBE), stream, parameters=parameters(UPDATED, coder=coder))
    with pytest.raises(InvalidInput, match="every: found 12, expected a multiple of 8"):
        make_index(stream, index, every=12)
    make_index(stream, index, every=16)
    with open_stream(stream) as plain, open_stream(stream, index=index) as cube:
        assert len(cube.windows) == 3 and cube.verify() == ()
        np.testing.assert_array_equal(cube.read(33, 40), plain.read(33, 40))
        assert (error(cube.read(17, 40), CUBE[17:]) <= period_limits(17, 40)).all()
        report = ErrorReport(cube.parameters)
        report.compare(cube, ArrayCube(CUBE))
        assert report.faults == ()


def test_an_index_of_another_period_is_refused() -> None:
    decoder = StreamDecoder(compress(CUBE, parameters(UPDATED)))
    found: list[Any] = []
    list(decoder.rows(every=16, found=found.append))
    with pytest.raises(InvalidInput, match="row of a checkpoint: found 15, expected a multiple of 8"):
        list(decoder.rows(found[0]._replace(row=15)))


@pytest.mark.parametrize("coder", [SampleAdaptive(), BlockAdaptive(), HybridCoder()])
def test_nothing_is_lost_when_compressed_again(coder: Any) -> None:
    # The centre of a bin is in that bin, so the same predictions lead to the same indices.
    damped = Representatives(resolution=3, damping=2, offset=5)
    for limits in (ErrorLimits(absolute=4), ErrorLimits(relative=30), ErrorLimits(absolute=3, relative=9)):
        predictor = Predictor(error_limits=limits, representatives=damped)
        chosen = StreamParameters(image=IMAGE, predictor=predictor, coder=coder)
        stream = compress(CUBE, chosen)
        assert compress(decompress(stream)[0], chosen) == stream


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("depth", [8, 17, 32])
def test_limits_of_relative_errors_are_of_the_value(depth: int, signed: bool) -> None:
    image = ImageLayout(rows=12, columns=9, bands=2, dynamic_range=depth, signed=signed)
    rng = np.random.default_rng(depth)
    cube = rng.integers(image.least, image.largest, (12, 9, 2), endpoint=True)
    most = (1 << min(depth - 1, 16)) - 1
    chosen = preset_parameters(image, error_limits=ErrorLimits(relative=most), order="bsq")
    found = decompress(compress(cube, chosen))[0].astype(np.int64)
    errors: list[Any] = []
    list(StreamDecoder(compress(cube, chosen)).rows(errors=errors.append))
    limits = np.concatenate(errors)
    assert (np.abs(found - cube) <= limits).all()
    # Larger values may have larger errors, signed ones of either sign.
    assert limits.max() <= most * max(-image.least, image.largest) >> depth
    assert limits[0, 0].tolist() == [0, 0] and limits.max() > 0


def test_the_rows_that_are_given_back_are_those_of_decoders() -> None:
    pieces: list[bytes] = []
    compressor = Compressor(parameters(UPDATED), pieces.append)
    given = [compressor.write(CUBE[first : first + 7]) for first in range(0, 40, 7)]
    compressor.close()
    np.testing.assert_array_equal(np.concatenate(given), decompress(b"".join(pieces))[0])


def test_limits_in_words() -> None:
    assert ErrorLimits(absolute=3).describe(10) == "absolute 3"
    assert ErrorLimits(relative=(4, 4, 8)).describe(10) == "relative 0.00391 to 0.00781"
    assert UPDATED.describe(10) == "absolute 0 to 4, updated every 8 rows"
    told = decompress(compress(CUBE, parameters(UPDATED)))[1].predictor.error_limits
    assert told is not None and told.describe(10) == "absolute, updated every 8 rows"


def test_limits_that_only_a_body_has_cannot_be_compressed_with() -> None:
    told = decompress(compress(CUBE, parameters(UPDATED)))[1]
    with pytest.raises(InvalidInput, match="absolute: found none, expected the limits of 3 bits"):
        compress(CUBE, told)


@pytest.mark.parametrize("coder", [SampleAdaptive(), BlockAdaptive(block_size=8)])
def test_limits_in_the_body_that_are_cut_off_or_too_large(coder: Any) -> None:
    limits = ErrorLimits(absolute=((3,), (3,)), absolute_bits=2, update_exponent=2)
    image = ImageLayout(rows=8, columns=2, bands=1, dynamic_range=10)
    chosen = StreamParameters(image=image, predictor=Predictor(error_limits=limits), coder=coder)
    stream = compress(np.full((8, 2, 1), 700), chosen)
    head = StreamDecoder(stream).header_bytes
    if isinstance(coder, SampleAdaptive):
        for cut in range(head + 2, len(stream)):
            with pytest.raises(BodyEnd):
                decompress(stream[:cut])
        return
    # Numbers as they are: the first one, the limit, is 1023.
    with pytest.raises(BodyEnd, match="an error limit of more than 2 bits"):
        decompress(stream[:head] + b"\xff" * (len(stream) - head))


def test_presets_take_limits_by_what_they_mean() -> None:
    assert limits_of(IMAGE) is None
    assert limits_of(IMAGE, 3) == ErrorLimits(absolute=3, absolute_bits=2)
    # 0.01 of 2**10, rounded down.
    assert limits_of(IMAGE, relative_error=0.01) == ErrorLimits(relative=10, relative_bits=4)
    assert limits_of(IMAGE, [1, 2, 0, 0, 0, 9], 0.1) == ErrorLimits(absolute=(1, 2, 0, 0, 0, 9), relative=102)
    assert limits_of(IMAGE, relative_error=(0, 0.25)) == ErrorLimits(relative=(0, 256))
    chosen = preset_parameters(IMAGE, "best", max_error=2, relative_error=0.1)
    assert chosen.predictor.error_limits == ErrorLimits(absolute=2, relative=102)
    for wrong in ({"max_error": 512}, {"max_error": 1.5}, {"max_error": -1}, {"relative_error": 0.5}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            preset_parameters(IMAGE, **wrong)
    for share in (1e-4, -0.1, 7, "1", True, float("nan")):
        with pytest.raises(InvalidInput, match=r"a share from 0\.00098 to 0\.499023 for"):
            limits_of(IMAGE, relative_error=share)
    with pytest.raises(InvalidInput, match="error_limits: found both"):
        preset_parameters(IMAGE, max_error=1, error_limits=ErrorLimits(absolute=1))
    with pytest.raises(InvalidInput, match="found 2 limits, expected 6 of them in 6 bands"):
        preset_parameters(IMAGE, max_error=(1, 2))


def test_arrays_of_zarr_and_numcodecs() -> None:
    made = zarr.create_array(
        MemoryStore(),
        shape=CUBE.shape,
        chunks=(16, 30, 6),
        dtype=CUBE.dtype,
        serializer=Ccsds123Codec(parameters={"max_error": 3}, blocks="rows:8"),
        compressors=None,
    )
    made[...] = CUBE
    assert 0 < error(made[...]).max() <= 3
    assert error(made[5:9], CUBE[5:9]).max() <= 3
    codec = Ccsds123(parameters={"error_limits": {"absolute": [0, 1, 2, 3, 4, 5]}})
    again = Ccsds123.from_config(json.loads(json.dumps(codec.get_config())))
    found = error(again.decode(codec.encode(CUBE)).reshape(CUBE.shape))
    assert (found <= np.arange(6)).all() and found[..., 0].max() == 0 and found.max() > 2
    with pytest.raises(InvalidInput, match="error_limits"):
        ChunkCoding(parameters={"error_limits": {"absolut": 3}})


def test_xarray_and_files(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", CUBE)
    stream = tmp_path / "a.c123"
    compress_file(tmp_path / "in.npy", stream, parameters={"max_error": (2,) * 5 + (9,), "coder": "hybrid"})
    with xarray.open_dataset(stream, engine=CubeBackend) as found:
        assert error(found["cube"].values.transpose(1, 2, 0)).max() == 9
        assert found["cube"].attrs["near_lossless"] == "absolute 2 to 9"
    told = describe(stream)["parameters"]["error_limits"]
    assert told["absolute"] == (2,) * 5 + (9,) and told["absolute_bits"] == 4 and told["relative"] is None
    (tmp_path / "named.json").write_text(json.dumps(describe(stream)))
    again = preset_parameters(IMAGE, **read_parameters(tmp_path / "named.json"))
    with open_stream(stream) as cube:
        assert again.predictor == cube.parameters.predictor
    done = verify_file(stream, tmp_path / "in.npy")
    assert done.faults == () and done.errors is not None
    lines = done.errors.lines()
    assert lines[:2] == ["limit 2, 5 bands: largest error 2", "limit 9, band 5: largest error 9"]
    squares = np.square(error(open_stream(stream).read(0, 40)).astype(float)).mean()
    assert lines[2] == f"root mean square error {squares**0.5:.3f}, PSNR {done.errors.noise_ratio:.2f} dB"
    assert done.errors.noise_ratio == pytest.approx(10 * np.log10(1023**2 / squares))
    wrong = CUBE.copy()
    wrong[7, 3, 1] += 9
    np.save(tmp_path / "wrong.npy", wrong)
    faults = verify_file(stream, tmp_path / "wrong.npy").faults
    assert len(faults) == 1
    assert (
        "1 of 7,200 samples differ by more than they may, the first in row 7, column 3, band 1" in faults[0]
    )
    assert faults[0].endswith("and its limit is 2")


def test_updated_limits_by_name(tmp_path: Path) -> None:
    limits = [[(k + z) % 5 for z in range(6)] for k in range(5)]
    named = {"error_limits": {"absolute": limits, "update_exponent": 3}, "coder": "block-adaptive"}
    (tmp_path / "named.json").write_text(json.dumps(named))
    np.save(tmp_path / "in.npy", CUBE)
    stream = tmp_path / "a.c123"
    compress_file(tmp_path / "in.npy", stream, parameters=read_parameters(tmp_path / "named.json"))
    done = verify_file(stream, tmp_path / "in.npy")
    assert done.faults == () and done.errors is not None
    assert done.errors.lines()[0] == "limits 0 to 4, 6 bands: largest error 4"
    assert verify_file(stream).faults == ()
    # The header says what limits there are, and not which.
    told = describe(stream)
    assert told["near_lossless"] == "absolute, updated every 8 rows"
    assert told["parameters"]["error_limits"]["absolute"] is None


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_are_compared_side_by_side(threads: int) -> None:
    pieces: list[bytes] = []
    compress_cube(ArrayCube(CUBE), pieces.append, parameters=parameters(UPDATED), blocks="tiles:8x9")
    other = CUBE.copy()
    # In blocks of the second and of the first row of blocks, the left one later.
    for place in ((9, 2, 4), (3, 20, 0), (5, 1, 3)):
        other[place] += 100
    done: list[int] = []
    with open_stream(b"".join(pieces)) as cube:
        report = ErrorReport(cube.parameters)
        report.compare(cube, ArrayCube(other), lambda n, whole: done.append(n), threads)
    assert report.beyond == 3 and report.samples == CUBE.size and sorted(done) == done
    assert report.faults[0].startswith(
        "3 of 7,200 samples differ by more than they may, the first in row 3, "
    )
    assert report.limits.tolist() == [[0] * 6, [4] * 6]


def test_other_originals_are_refused(tmp_path: Path) -> None:
    compress_cube(ArrayCube(CUBE), tmp_path / "a.c123", parameters=parameters(ErrorLimits(absolute=1)))
    np.save(tmp_path / "in.npy", CUBE + 0.25)
    with pytest.raises(InvalidInput, match="original: found samples of type float64, expected integers"):
        verify_file(tmp_path / "a.c123", tmp_path / "in.npy")


def test_many_limits_are_told_together() -> None:
    image = ImageLayout(rows=5, columns=6, bands=20, dynamic_range=12)
    cube = np.random.default_rng(3).integers(0, 4096, (5, 6, 20))
    pieces: list[bytes] = []
    chosen = preset_parameters(image, max_error=tuple(range(20)))
    compress_cube(ArrayCube(cube.astype(np.uint16)), pieces.append, parameters=chosen)
    with open_stream(b"".join(pieces)) as found:
        report = ErrorReport(chosen)
        report.compare(found, ArrayCube(cube))
    assert report.lines()[0] == f"limits 0 to 19, 20 bands: largest error {report.largest.max()}"
    assert (report.largest <= np.arange(20)).all()
    assert ErrorReport(chosen).faults == ()


def test_damage_shows(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", CUBE)
    stream = tmp_path / "a.c123"
    compress_file(tmp_path / "in.npy", stream, parameters={"max_error": 3})
    changed = bytearray(stream.read_bytes())
    changed[-40] ^= 16
    stream.write_bytes(changed)
    assert len(verify_file(stream).faults) == 1
    with pytest.raises(FormatError, match="SHA-256"):
        verify_file(stream, tmp_path / "in.npy")


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_mapped_samples_are_lossless(tmp_path: Path, dtype: str) -> None:
    source, chosen = ArrayCube(CUBE.astype(dtype)), parameters(ErrorLimits(absolute=1))
    with pytest.raises(
        InvalidInput, match=f"a near-lossless stream of samples of type {dtype}, expected a loss"
    ):
        compress_cube(source, tmp_path / "a.c123", parameters=chosen)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limits", [{"max_error": 4}, {"error_limits": UPDATED}])
def test_a_preset_that_looks_keeps_the_limits(limits: Any) -> None:
    chosen = parameters_for(ArrayCube(CUBE), IMAGE, "auto", **limits)
    assert chosen.predictor.error_limits == limits.get("error_limits", ErrorLimits(absolute=4))
    usual = preset_parameters(IMAGE, "default", **limits)
    assert len(compress(CUBE, chosen)) <= len(compress(CUBE, usual))


def test_gpus_leave_near_lossless_streams_to_the_processor() -> None:
    assert unserved(parameters(ErrorLimits(absolute=1))) == "it has lossless streams alone"
