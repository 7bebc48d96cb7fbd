"""Files of compressed cubes: plain streams, side indices and containers of blocks; windows and damage."""

from __future__ import annotations

import ctypes
import struct
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.examples import often, seldom_compiled

from plait.errors import FormatError, InvalidInput, Unsupported
from plait.formats.cubes.origin import origin_path
from plait.hyperspectral import codec, waves, writing
from plait.hyperspectral.codec import ResidualStore, compress, decompress
from plait.hyperspectral.codewords import BodyEnd, BodyWriter, make_coder
from plait.hyperspectral.containers import BlockGrid, Window, block_parameters, read_container
from plait.hyperspectral.cubes import ArrayCube
from plait.hyperspectral.header import write_header
from plait.hyperspectral.parameters import ImageLayout, Representatives, SupplementaryTable, WeightOffsets
from plait.hyperspectral.presets import PRESETS, preset_parameters
from plait.hyperspectral.streams import open_stream
from plait.hyperspectral.writing import compress_cube, make_index

IMAGE = ImageLayout(columns=13, rows=150, bands=5, dynamic_range=12)
CODERS = ("sample-adaptive", "block-adaptive", "hybrid")
ORDERS = (
    {"order": "bi", "interleaving_depth": 5},
    {"order": "bi", "interleaving_depth": 2},
    {"order": "bsq"},
)


@pytest.fixture(scope="module")
def cube() -> NDArray[np.uint16]:
    steps = np.random.default_rng(1).integers(-9, 10, (150, 13, 5))
    return np.clip(np.cumsum(steps, axis=1) + 2000, 0, 4095).astype(np.uint16)


def _check(opened: Any, cube: NDArray[Any]) -> None:
    rng = np.random.default_rng(2)
    for threads in (1, 2):
        np.testing.assert_array_equal(np.concatenate(list(opened.rows(threads=threads))), cube)
    for _ in range(6):
        y, x = sorted(rng.integers(0, 151, 2)), sorted(rng.integers(0, 14, 2))
        found = opened.read(int(y[0]), int(y[1]), int(x[0]), int(x[1]), threads=2)
        np.testing.assert_array_equal(found, cube[y[0] : y[1], x[0] : x[1]])
    assert opened.shape == cube.shape
    assert opened.dtype == np.uint16
    assert opened.verify() == ()


@pytest.mark.parametrize("coder", often(1, CODERS))
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(map(str, order.values())))
@pytest.mark.parametrize("blocks", often(1, ["tiles:64x5", None, "rows:40"]))
def test_files_there_and_back(
    tmp_path: Path, cube: NDArray[Any], coder: str, order: dict[str, Any], blocks: str | None
) -> None:
    parameters = preset_parameters(IMAGE, coder=coder, **order)
    path, done = tmp_path / "a.c123", []
    summary = compress_cube(
        ArrayCube(cube),
        path,
        parameters=parameters,
        blocks=blocks,
        checksum=blocks is not None,
        attachments=None if blocks is None else {"a.hdr": b"ENVI\n"},
        threads=2,
        progress=lambda n, whole: done.append((n, whole)),
    )
    assert summary.compressed_bytes == path.stat().st_size
    assert summary.blocks == {None: 1, "rows:40": 4, "tiles:64x5": 9}[blocks]
    assert done[-1] == (cube.size, cube.size)
    with open_stream(path) as opened:
        _check(opened, cube)
        assert opened.parameters == parameters
        assert opened.is_random_access is (blocks is not None) and opened.has_checksums
        assert opened.attachments == ({} if blocks is None else {"a.hdr": b"ENVI\n"})
    with open_stream(path.read_bytes()) as opened:
        np.testing.assert_array_equal(opened.read(3, 5), cube[3:5])


@pytest.mark.parametrize("coder", often(1, CODERS[:2]))
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(map(str, order.values())))
def test_a_side_index_makes_parts(
    tmp_path: Path, cube: NDArray[Any], coder: str, order: dict[str, Any]
) -> None:
    path, index = tmp_path / "a.c123", tmp_path / "a.index"
    parameters = preset_parameters(IMAGE, coder=coder, **order)
    compress_cube(ArrayCube(cube), path, parameters=parameters, index=index, checksum=True)
    plain = tmp_path / "plain.c123"
    compress_cube(ArrayCube(cube), plain, parameters=parameters)
    assert plain.read_bytes() == path.read_bytes()
    with open_stream(path, index=index) as opened:
        assert opened.windows == (Window(0, 64, 0, 13), Window(64, 128, 0, 13), Window(128, 150, 0, 13))
        assert opened.is_random_access and opened.has_checksums
        _check(opened, cube)
    finer = tmp_path / "finer.index"
    make_index(path, finer, every=7)
    with open_stream(path, index=finer) as opened:
        assert len(opened.windows) == 22
        _check(opened, cube)


def test_foreign_stale_and_damaged_indices_are_refused(tmp_path: Path, cube: NDArray[Any]) -> None:
    path, index = tmp_path / "a.c123", tmp_path / "a.index"
    parameters = preset_parameters(IMAGE)
    compress_cube(ArrayCube(cube), path, parameters=parameters, index=index)
    other = tmp_path / "b.c123"
    compress_cube(ArrayCube(cube[::-1]), other, parameters=parameters)
    with pytest.raises(FormatError, match="another stream"):
        open_stream(other, index=index)
    whole = index.read_bytes()
    for place in (0, 20, 60, len(whole) - 1):
        changed = bytearray(whole)
        changed[place] ^= 1
        index.write_bytes(bytes(changed))
        with pytest.raises(FormatError):
            open_stream(path, index=index)
    for size in (0, 10, 70, len(whole) - 1):
        index.write_bytes(whole[:size])
        with pytest.raises(FormatError):
            open_stream(path, index=index)
    blocks = tmp_path / "blocks.c123"
    compress_cube(ArrayCube(cube), blocks, blocks="rows:50")
    with pytest.raises(InvalidInput, match="container"):
        open_stream(blocks, index=index)
    with pytest.raises(InvalidInput, match="container"):
        make_index(blocks, index)
    hybrid = tmp_path / "hybrid.c123"
    compress_cube(ArrayCube(cube), hybrid, parameters=preset_parameters(IMAGE, coder="hybrid"))
    with pytest.raises(Unsupported):
        make_index(hybrid, index)


def _container(path: Path, cube: NDArray[Any]) -> bytearray:
    compress_cube(ArrayCube(cube), path, parameters=preset_parameters(IMAGE), blocks="rows:40", checksum=True)
    return bytearray(path.read_bytes())


def test_a_damaged_block_is_named_and_the_others_are_read(tmp_path: Path, cube: NDArray[Any]) -> None:
    path = tmp_path / "a.blocks"
    whole = _container(path, cube)
    entry = read_container(whole, path).entries[1]
    whole[entry.offset + entry.length // 2] ^= 16
    path.write_bytes(bytes(whole))
    with open_stream(path) as opened:
        (fault,) = opened.verify()
        assert "block 1 (rows 40 to 79" in fault
        np.testing.assert_array_equal(opened.read(0, 40), cube[:40])
        np.testing.assert_array_equal(opened.read(80, 150), cube[80:])
        with pytest.raises(FormatError, match="block 1"):
            opened.read(30, 50)
        with pytest.raises(FormatError, match="block 1"):
            list(opened.rows(threads=2))


def test_checksums_of_samples_are_compared(tmp_path: Path, cube: NDArray[Any]) -> None:
    path = tmp_path / "a.blocks"
    pieces: list[bytes] = []

    def spoil(data: bytes) -> None:
        pieces.append(data)

    compress_cube(
        ArrayCube(cube), spoil, parameters=preset_parameters(IMAGE), blocks="rows:40", checksum=True
    )
    whole = bytearray(b"".join(pieces))
    path.write_bytes(bytes(whole))
    entry = read_container(whole, path).entries[2]
    # The checksum of samples of block 2, and with it that of the index.
    place = whole.rindex(struct.pack("<QQII", entry.offset, entry.length, entry.crc, entry.samples_crc))
    struct.pack_into("<I", whole, place + 20, entry.samples_crc ^ 1)
    offset, length = struct.unpack_from("<QQ", whole, len(whole) - 28)
    struct.pack_into("<I", whole, len(whole) - 12, zlib.crc32(whole[offset : offset + length]))
    path.write_bytes(bytes(whole))
    with open_stream(path) as opened:
        (fault,) = opened.verify()
        assert "block 2 (rows 80 to 119" in fault and "checksum" in fault


@pytest.mark.parametrize("cut", [0, 7, 39, 41, 500, -1, -29])
def test_a_container_that_was_cut_short(tmp_path: Path, cube: NDArray[Any], cut: int) -> None:
    path = tmp_path / "a.blocks"
    whole = _container(path, cube)
    path.write_bytes(bytes(whole[:cut]))
    with pytest.raises(FormatError):
        open_stream(path)


def test_every_byte_of_header_and_index_is_guarded(tmp_path: Path, cube: NDArray[Any]) -> None:
    path = tmp_path / "a.blocks"
    whole = _container(path, cube)
    for place in (*range(8, 40), *range(len(whole) - 28 - 12 - 4 * 24, len(whole))):
        changed = bytearray(whole)
        changed[place] ^= 1
        with pytest.raises(FormatError):
            open_stream(bytes(changed))


@pytest.mark.parametrize("size", [0, 5, 19, 900])
def test_plain_streams_that_were_cut_short(tmp_path: Path, cube: NDArray[Any], size: int) -> None:
    path = tmp_path / "a.c123"
    compress_cube(ArrayCube(cube), path, parameters=preset_parameters(IMAGE))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(FormatError, match=r"a\.c123"), open_stream(path) as opened:
        list(opened.rows())


def test_options_that_do_not_go_together(tmp_path: Path, cube: NDArray[Any]) -> None:
    source, path = ArrayCube(cube), tmp_path / "a.c123"
    for options in (
        {"checksum": True},
        {"attachments": {"a": b""}},
        {"index": tmp_path / "i", "blocks": "rows:9"},
        {"index": tmp_path / "i", "parameters": preset_parameters(IMAGE, coder="hybrid")},
        {"blocks": "rows:0"},
        {"blocks": "tiles:3"},
        {"preset": "tiny"},
        {"parameters": preset_parameters(ImageLayout(columns=3, rows=4, bands=5, dynamic_range=12))},
    ):
        with pytest.raises(InvalidInput):
            compress_cube(source, path, **options)  # type: ignore[arg-type]
    table = SupplementaryTable(kind="unsigned", purpose=10, structure=2, values=(1,) * 65, depth=1)
    with pytest.raises(InvalidInput, match="supplementary"):
        compress_cube(
            source, path, parameters=preset_parameters(IMAGE, supplementary=(table,)), blocks="rows:9"
        )
    with pytest.raises(InvalidInput, match="row 140, column 2, band 4"):
        spoiled = cube.copy()
        spoiled[140, 2, 4] = 4096
        compress_cube(ArrayCube(spoiled), path, parameters=preset_parameters(IMAGE))
    with pytest.raises(InvalidInput, match="complex128"):
        ArrayCube(cube.astype(complex))
    with pytest.raises(InvalidInput, match="No such"):
        open_stream(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


def test_windows_outside_the_cube(cube: NDArray[Any]) -> None:
    pieces: list[bytes] = []
    compress_cube(ArrayCube(cube), pieces.append, parameters=preset_parameters(IMAGE))
    with open_stream(b"".join(pieces)) as opened:
        for window in ((0, 151), (-1, 3), (4, 3), (0, 1, 0, 14), (0, 1, 5, 4)):
            with pytest.raises(InvalidInput):
                opened.read(*window)
        assert opened.read(7, 7).shape == (0, 13, 5)


@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.parametrize("depth", [2, 8, 16, 32])
def test_presets_serve_all_depths_and_sizes(preset: str, depth: int) -> None:
    for columns in (1, 4):
        image = ImageLayout(columns=columns, rows=2, bands=3, dynamic_range=depth)
        found = preset_parameters(image, preset, weight_resolution=9, order="bsq")
        assert found.predictor.weight_resolution == 9
        # Few pixels are predicted from few bands.
        assert found.predictor.prediction_bands == min(PRESETS[preset]["prediction_bands"], 3)
        assert found.order == "bsq"
    with pytest.raises(InvalidInput, match="weigth"):
        preset_parameters(image, preset, weigth_resolution=9)


@pytest.mark.parametrize("size", [30, 48, 70])
@pytest.mark.parametrize("blocks", [None, "tiles:24x24"])
def test_best_is_not_spoilt_by_few_pixels(size: int, blocks: str | None) -> None:
    rng = np.random.default_rng(size)
    x, scene = np.linspace(0, 1, 60), rng.integers(-9, 10, (4, size, size)).cumsum(1).cumsum(2)
    spectra = np.exp(-(((x - rng.random((4, 1))) / 0.2) ** 2))
    mixed = np.einsum("kyx,kz->yxz", scene / np.abs(scene).max(), spectra) * 900 + 2000
    made = np.rint(mixed + rng.normal(0, 6, mixed.shape)).astype(np.uint16)
    sizes = {}
    for preset in PRESETS:
        pieces: list[bytes] = []
        compress_cube(ArrayCube(made), pieces.append, preset=preset, blocks=blocks, threads=1)
        sizes[preset] = sum(map(len, pieces))
    # With ten bands it was up to a tenth larger than the default.
    assert sizes["best"] <= 1.001 * sizes["default"]


@pytest.mark.interpreted(alone=True)
def test_grids() -> None:
    grid = BlockGrid.parse("tiles:64x5", IMAGE)
    windows = list(grid)
    assert len(windows) == len(grid) == 9
    assert windows[-1] == Window(128, 150, 10, 13)
    assert sum(window.pixels for window in windows) == 150 * 13
    assert len(BlockGrid.parse("rows:1000", IMAGE)) == 1


@seldom_compiled
def test_a_block_of_one_column_is_predicted_from_columns() -> None:
    samples = np.random.default_rng(4).integers(0, 4096, (4, 3, 2))
    image = ImageLayout(columns=3, rows=4, bands=2, dynamic_range=12)
    pieces: list[bytes] = []
    parameters = preset_parameters(
        image,
        "fast",
        local_sum="narrow-neighbor",
        representatives=Representatives(resolution=1, damping=1),
        weight_offsets=WeightOffsets(own=(1, -1), others=((), (2,))),
        weight_table_resolution=5,
        weight_table=((1, 2, 3), (4, 5, 6, 7)),
    )
    narrow = block_parameters(parameters, Window(0, 4, 2, 3)).predictor
    assert (narrow.mode, narrow.local_sum, narrow.weight_table) == ("reduced", "narrow-column", ((), (7,)))
    wide = replace(parameters, predictor=replace(parameters.predictor, local_sum="narrow-column"))
    compress_cube(ArrayCube(samples), pieces.append, parameters=wide, blocks="tiles:4x2", threads=1)
    with open_stream(b"".join(pieces)) as opened:
        np.testing.assert_array_equal(opened.read(0, 4), samples)


@pytest.mark.interpreted(alone=True)
@pytest.mark.parametrize("room", [64, 7000, 9 << 20])
def test_bytes_are_put_together_in_place(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_MANY_BYTES", 3000)
    # Other libraries declare the same functions otherwise.
    monkeypatch.setattr(ctypes.pythonapi.PyBytes_FromStringAndSize, "restype", ctypes.py_object)
    pieces = [bytes([k]) * (k * k) for k in range(0, 256, 7)]
    for given in ([], pieces, [memoryview(b"".join(pieces))] * 3):
        made = codec.NewBytes(room)
        for piece in given:
            made.write(piece)
        found = made.take()
        assert type(found) is bytes and found == b"".join(given) and hash(found) == hash(b"".join(given))
        del made
        assert sys.getrefcount(found) <= 2 or not given
    codec.NewBytes(room).write(pieces[-1])  # Given up.


@pytest.mark.interpreted(alone=True)
def test_residuals_wait_in_a_file_as_in_memory() -> None:
    values = np.random.default_rng(3).integers(0, 4096, (150, 13, 5))
    for most in (0, 1 << 20):
        store = ResidualStore(IMAGE, most_bytes=most)
        store.put(0, 0, values[:70].transpose(2, 0, 1))
        store.put(0, 70, np.ascontiguousarray(values[70:].transpose(2, 0, 1)))
        np.testing.assert_array_equal(store.get(0, 5, 11, 99), values[11:99].transpose(2, 0, 1))
        np.testing.assert_array_equal(store.get(1, 4, 60, 80), values[60:80, :, 1:4].transpose(2, 0, 1))
        store.close()


def test_blocks_wait_in_files_as_in_memory(cube: NDArray[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for most in (0, 1 << 25):
        monkeypatch.setattr(writing, "_MOST_BYTES", most)
        pieces: list[bytes] = []
        compress_cube(ArrayCube(cube), pieces.append, blocks="rows:40", checksum=True, threads=2)
        found.append(b"".join(pieces))
        with open_stream(found[-1]) as opened:
            assert opened.verify() == ()
    assert found[0] == found[1]


@pytest.mark.parametrize("coder", CODERS)
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(map(str, order.values())))
def test_two_threads_share_a_stream(
    cube: NDArray[Any], coder: str, order: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waves, "_SAMPLES", 1300)
    parameters = preset_parameters(IMAGE, coder=coder, **order)
    stream = compress(cube, parameters, device="cpu")
    assert compress(cube, parameters, device="cpu", threads=2) == stream
    np.testing.assert_array_equal(decompress(stream, threads=2)[0], cube)
    with pytest.raises(BodyEnd):
        decompress(stream[: len(stream) - 40], threads=2)


def _none(*_: Any) -> None:
    pytest.fail("residuals of the whole image were stored")


@pytest.mark.interpreted
@pytest.mark.parametrize("coder", ["sample-adaptive", "block-adaptive"])
@pytest.mark.parametrize("depth", [12, 20])
def test_bands_in_turn_are_coded_and_read_without_a_store(
    coder: str, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As rows come in, and some bands at a time; the last wave has fewer, and some codewords are long."""
    rng = np.random.default_rng(depth)
    cube = np.cumsum(rng.integers(-9, 10, (9, 5, 21)), axis=1) + 2000
    cube[rng.random(cube.shape) < 0.05] = (1 << depth) - 1
    image = ImageLayout(columns=5, rows=9, bands=21, dynamic_range=depth)
    parameters = preset_parameters(image, coder=coder, order="bsq")
    monkeypatch.setattr(waves, "_SAMPLES", 400)
    with monkeypatch.context() as large:
        large.setattr(codec, "_MOST_BYTES", 0)
        stream = compress(cube, parameters, device="cpu")
        np.testing.assert_array_equal(decompress(stream)[0], cube)
    monkeypatch.setattr(codec, "_BANDS", 16)
    monkeypatch.setattr(codec, "_STRETCH", 20)
    monkeypatch.setattr(codec, "_Stored", _none)
    with monkeypatch.context() as without:
        if coder == "sample-adaptive":
            without.setattr(codec, "ResidualStore", _none)
        for threads in (1, 2):
            assert compress(cube, parameters, device="cpu", threads=threads) == stream
    for threads in (1, 2):
        np.testing.assert_array_equal(decompress(stream, threads=threads)[0], cube)
        rows = list(codec.StreamDecoder(stream).rows(step=4, threads=threads))
        assert [len(part) for part in rows] == [4, 4, 1]
        np.testing.assert_array_equal(np.concatenate(rows), cube)
        for damaged in (stream[:-9], stream + bytes(9)):
            with pytest.raises(BodyEnd):
                decompress(damaged, threads=threads)


@pytest.mark.interpreted
@pytest.mark.parametrize("order", ["bi", "bsq"])
def test_a_residual_that_no_sample_has(order: str) -> None:
    """Its codeword is one of the code's, and its bits are more than those of samples."""
    image = ImageLayout(columns=5, rows=4, bands=3, dynamic_range=16)
    parameters = preset_parameters(image, order=order)
    writer = BodyWriter()
    coder = make_coder(parameters, writer)
    residuals = np.full((4, 5, 3), 20_000)
    residuals[2, 3, 1] = 70_000
    coder.put(residuals, 0)
    head = write_header(parameters)
    body = writer.take() + b"".join(writer.take() for _ in coder.finish())
    stream = head + body + writer.close(len(head) + len(body), parameters.output_word_size)
    for threads in (1, 2):
        with pytest.raises(BodyEnd, match="a residual of more than 16 bits"):
            decompress(stream, threads=threads)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(map(str, order.values())))
def test_two_threads_share_a_file(
    cube: NDArray[Any], order: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools: list[int] = []

    def pool(size: int) -> ThreadPoolExecutor:
        pools.append(size)
        return ThreadPoolExecutor(size)

    monkeypatch.setattr(waves, "_SAMPLES", 1300)
    monkeypatch.setattr(codec, "ThreadPoolExecutor", pool)
    parameters, path = preset_parameters(IMAGE, **order), tmp_path / "a.c123"
    compress_cube(ArrayCube(cube), path, parameters=parameters, threads=1, device="cpu")
    stream, beside = path.read_bytes(), origin_path(path).read_bytes()
    assert not pools
    compress_cube(ArrayCube(cube), path, parameters=parameters, threads=2, device="cpu")
    assert path.read_bytes() == stream and origin_path(path).read_bytes() == beside and pools.pop() == 1
    interleaved = parameters.order == "bi"
    with open_stream(path) as opened:
        np.testing.assert_array_equal(np.concatenate(list(opened.rows(threads=1, device="cpu"))), cube)
        assert opened.verify(threads=1) == () and not pools
        np.testing.assert_array_equal(np.concatenate(list(opened.rows(threads=2, device="cpu"))), cube)
        np.testing.assert_array_equal(opened.read(70, 140, 2, 11, threads=2), cube[70:140, 2:11])
        assert opened.verify(threads=2) == () and len(pools) == 2 + interleaved
        # Nobody reads on: the thread that reads ahead ends.
        next(iter(opened.rows(threads=2, device="cpu")))
    path.write_bytes(stream[: len(stream) // 2] + bytes(9) + stream[len(stream) // 2 + 9 :])
    with open_stream(path) as opened:
        assert len(opened.verify(threads=2)) == 1
    with open_stream(stream[: len(stream) - 40]) as opened, pytest.raises(FormatError, match="stream"):
        list(opened.rows(threads=2, device="cpu"))


def test_parts_that_overlap_make_a_small_file_no_large_one(tmp_path: Path, cube: NDArray[Any]) -> None:
    pieces: list[bytes] = []
    many = {f"{k}": bytes(3000) for k in range(50)}
    compress_cube(ArrayCube(cube), pieces.append, blocks="rows:40", attachments=many)
    whole = bytearray(b"".join(pieces))
    index, length, _, end = struct.unpack_from("<QQI8s", whole, len(whole) - 28)
    blocks = 4
    # Every attachment, and then every block, begins at the first byte and goes up to the index.
    place = index + 12 + 24 * blocks
    for k in range(50):
        data = bytes(whole[:index])
        struct.pack_into("<QQI", whole, place, 0, index, zlib.crc32(data))
        place += 22 + len(f"{k}")
    sealed = zlib.crc32(whole[index : index + length])
    struct.pack_into("<QQI8s", whole, len(whole) - 28, index, length, sealed, end)
    with pytest.raises(FormatError, match=r"attachments of .* bytes in .* expected attachments that do not"):
        open_stream(bytes(whole))
    for k in range(blocks):
        struct.pack_into("<QQ", whole, index + 12 + 24 * k, 52, index - 52)
    sealed = zlib.crc32(whole[index : index + length])
    struct.pack_into("<QQI8s", whole, len(whole) - 28, index, length, sealed, end)
    with pytest.raises(FormatError, match=r"blocks of .* bytes in .* expected blocks that do not overlap"):
        open_stream(bytes(whole))


def test_an_index_whose_entries_overlap(tmp_path: Path, cube: NDArray[Any]) -> None:
    compress_cube(ArrayCube(cube), tmp_path / "a.c123", parameters=preset_parameters(IMAGE))
    make_index(tmp_path / "a.c123", tmp_path / "a.index", every=10)
    whole = bytearray((tmp_path / "a.index").read_bytes())
    head, count = 64, 14
    data = bytes(whole)
    for k in range(count):
        place = head + 28 * k + 8
        struct.pack_into("<QQI", whole, place, 0, len(data) // 2, zlib.crc32(data[: len(data) // 2]))
    end = head + 28 * count
    struct.pack_into("<I", whole, end, zlib.crc32(whole[:end]))
    (tmp_path / "a.index").write_bytes(whole)
    with pytest.raises(FormatError, match=r"entries of .* bytes in .* expected entries that do not overlap"):
        open_stream(tmp_path / "a.c123", index=tmp_path / "a.index")


def test_a_container_of_no_bands_names_the_file(tmp_path: Path, cube: NDArray[Any]) -> None:
    whole = _container(tmp_path / "a.blocks", cube)
    struct.pack_into("<I", whole, 20, 0)
    size = struct.calcsize("<8sHHIIIBBHII")
    struct.pack_into("<I", whole, size, zlib.crc32(whole[:size]))
    (tmp_path / "a.blocks").write_bytes(whole)
    with pytest.raises(FormatError, match=r"a\.blocks: found bands: 0"):
        open_stream(tmp_path / "a.blocks")
