"""Plain streams are read as they were written or not at all; what nobody kept is said to be unknown."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from support.examples import often

from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.layout import CubeLayout
from plait.formats.cubes.origin import CubeOrigin, origin_path
from plait.hyperspectral.chunks import ChunkCoding
from plait.hyperspectral.containers import MAGIC
from plait.hyperspectral.cubes import ArrayCube
from plait.hyperspectral.files import compress_file, decompress_file, describe, verify_file
from plait.hyperspectral.libraries.numcodecs_codec import Ccsds123
from plait.hyperspectral.libraries.spectral_image import open_image
from plait.hyperspectral.libraries.xarray_backend import CubeBackend
from plait.hyperspectral.streams import attachment_of, open_stream
from plait.hyperspectral.writing import compress_cube, make_index

CUBE = np.random.default_rng(3).integers(0, 4000, (24, 11, 5)).astype(np.uint16)


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    np.save(tmp_path / "in.npy", CUBE)
    compress_file(tmp_path / "in.npy", tmp_path / "a.c123")
    return tmp_path / "a.c123"


def read_by_xarray(path: Path) -> Any:
    with xarray.open_dataset(path, engine=CubeBackend) as found:
        return found["cube"].values


def read_by_spectral(path: Path) -> Any:
    pytest.importorskip("spectral", reason="Spectral Python is not installed")
    return open_image(path)[:2, :, :]


READERS: dict[str, Callable[[Path], Any]] = {
    "window": lambda path: open_stream(path).read(0, 2),
    "rows": lambda path: list(open_stream(path).rows()),
    "decompress": lambda path: decompress_file(path, path.with_name("back.npy")),
    "xarray": read_by_xarray,
    "spectral": read_by_spectral,
    "index": lambda path: make_index(path, path.with_name("a.index"), every=8),
    "original": lambda path: verify_file(path, path.with_name("in.npy")),
}


def spoil(path: Path, place: int, bit: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= bit
    path.write_bytes(data)


def change(path: Path, keep_crc: bool = False, **fields: Any) -> None:
    """Change what stands beside a stream, as somebody would who takes its checksum away."""
    found = json.loads(origin_path(path).read_bytes()) | fields
    if not keep_crc:
        found.pop("crc32", None)
    origin_path(path).write_text(json.dumps({k: v for k, v in found.items() if v is not ...}))


def is_found(path: Path) -> bool:
    try:
        return bool(verify_file(path).faults)
    except FormatError:
        return True


def test_verify_finds_every_flipped_bit(stream: Path) -> None:
    whole = stream.read_bytes()
    assert verify_file(stream).faults == () and verify_file(stream).unknown is None
    for place in range(0, len(whole), 23):
        spoil(stream, place, 1 << place % 8)
        assert is_found(stream), place
        stream.write_bytes(whole)


@pytest.mark.parametrize("reader", sorted(READERS))
def test_no_reader_takes_changed_bytes(stream: Path, reader: str) -> None:
    READERS[reader](stream)
    for made in ("back.npy", "a.index"):
        stream.with_name(made).unlink(missing_ok=True)
    spoil(stream, len(stream.read_bytes()) - 9)
    with pytest.raises(FormatError, match=r"a\.c123: found bytes with the SHA-256 .*a\.c123\.json says"):
        READERS[reader](stream)
    assert not list(stream.parent.glob("back*")) and not stream.with_name("a.index").exists()


def test_bytes_behind_the_end(stream: Path) -> None:
    stream.write_bytes(stream.read_bytes() + bytes(50_000))
    with pytest.raises(FormatError, match=r"a\.c123\.json: .*50,000 bytes were added to it"):
        open_stream(stream)
    # Without what stands beside it, they show when it is decoded.
    origin_path(stream).unlink()
    (fault,) = verify_file(stream).faults
    assert "50,000 bytes follow the last sample" in fault
    with pytest.raises(FormatError, match="50,000 bytes follow"):
        decompress_file(stream, stream.with_name("back.npy"))
    assert not stream.with_name("back.npy").exists()


def test_another_number_of_rows_in_the_header(stream: Path) -> None:
    data = bytearray(stream.read_bytes())
    assert data[3:5] == bytes([0, 24])
    data[4] = 16
    stream.write_bytes(data)
    for read in (verify_file, describe, open_stream):
        with pytest.raises(FormatError, match=r"a cube of 24 rows x 11.*expected one of 16 rows x 11"):
            read(stream)
    origin_path(stream).unlink()
    assert "bytes follow the last sample" in verify_file(stream).faults[0]


@pytest.mark.parametrize("coder", ["sample-adaptive", "block-adaptive", "hybrid"])
@pytest.mark.parametrize("options", [{}, {"order": "bsq"}, {"output_word_size": 7}], ids=str)
def test_words_are_filled_up(tmp_path: Path, coder: str, options: dict[str, Any]) -> None:
    np.save(tmp_path / "in.npy", CUBE)
    compress_file(tmp_path / "in.npy", tmp_path / "a.c123", parameters={"coder": coder, **options})
    assert verify_file(tmp_path / "a.c123") == verify_file(tmp_path / "a.c123", tmp_path / "in.npy")


def test_what_cannot_be_known_is_said(stream: Path) -> None:
    change(stream, stream_sha256=..., samples_crc32=...)
    found = verify_file(stream)
    assert found.faults == () and "a.c123.json is of an earlier plait and has none" in str(found.unknown)
    decompress_file(stream, stream.with_name("old.npy"))
    assert np.array_equal(np.load(stream.with_name("old.npy")), CUBE)
    origin_path(stream).unlink()
    assert "for lack of checksums: a.c123.json is not there" in str(verify_file(stream).unknown)
    index = stream.with_name("a.index")
    make_index(stream, index, every=8)
    assert "as it was when its index was made" in str(verify_file(stream, index=index).unknown)


def test_samples_are_compared_with_their_checksum(stream: Path) -> None:
    change(stream, samples_crc32=1)
    assert "samples with the checksum" in verify_file(stream).faults[0]
    with pytest.raises(FormatError, match="not 00000001 of the original"):
        decompress_file(stream, stream.with_name("back.npy"))
    assert not stream.with_name("back.npy").exists()


def test_what_stands_beside_has_a_checksum(stream: Path) -> None:
    change(stream, keep_crc=True, header="other")
    with pytest.raises(FormatError, match=r"a\.c123\.json: found content with another checksum"):
        open_stream(stream)
    change(stream, header="other")
    with open_stream(stream) as cube:
        assert cube.origin is not None and cube.origin.header == "other"


def test_arrays_are_guarded_as_files_are(tmp_path: Path) -> None:
    path = tmp_path / "a.c123"
    compress_cube(ArrayCube(CUBE), path)
    with open_stream(path) as cube:
        assert cube.has_checksums and cube.origin is not None and cube.origin.format == "array"
    spoil(path, 400)
    assert is_found(path)
    compress_cube(ArrayCube(CUBE), path, bare=True)
    assert not origin_path(path).exists()


def test_a_file_of_somebody_else_is_not_replaced(stream: Path) -> None:
    origin_path(stream).write_text('{"mine": 1}')
    before = stream.read_bytes()
    with pytest.raises(InvalidInput, match=r"a\.c123\.json', which is no description of a cube"):
        compress_file(stream.with_name("in.npy"), stream, preset="fast")
    assert (origin_path(stream).read_text(), stream.read_bytes()) == ('{"mine": 1}', before)


@pytest.mark.parametrize("blocks", [None, "rows:8"])
def test_chunks_carry_checksums(blocks: str | None) -> None:
    codec = Ccsds123(blocks=blocks)
    data = codec.encode(CUBE)
    assert data[: len(MAGIC)] == MAGIC and np.array_equal(codec.decode(data), CUBE)
    for place in range(0, len(data), 31):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        # Bits that no reader looks at change nothing.
        try:
            found = codec.decode(bytes(changed))
        except FormatError:
            continue
        assert np.array_equal(found, CUBE)
    with pytest.raises(FormatError):
        codec.decode(data + b"\0")


def test_plain_chunks_are_read_as_ever() -> None:
    data = ChunkCoding(checksum=False).encode(CUBE)
    assert data[0] == 0 and np.array_equal(Ccsds123().decode(data), CUBE)
    assert Ccsds123(checksum=False).get_config()["checksum"] is False
    with pytest.raises(FormatError, match="bytes follow the last sample"):
        Ccsds123().decode(data + bytes(3))


# --- outputs ---------------------------------------------------------------------------------------------


HOSTILE = (
    ".bashrc", "../x", "/tmp/x", "a/b", "a\\b", "", ".", "..", "nul.img", "COM1", "c:x", "a\nb", "a.",
    "x" * 250,
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("which", often(1, ["data", "header"]))
@pytest.mark.parametrize("blocks", [None, "rows:8"])
def test_names_that_a_stranger_chose(tmp_path: Path, name: str, which: str, blocks: str | None) -> None:
    layout = CubeLayout(rows=24, columns=11, bands=5, dtype=np.dtype("<u2"))
    names = {"data": "a.img", "header": "a.hdr"} | {which: name}
    origin = CubeOrigin(format="envi", layout=layout, names=names)
    path, folder = tmp_path / "s.c123", tmp_path / "out"
    folder.mkdir()
    attached = None if blocks is None else attachment_of(origin)
    compress_cube(ArrayCube(CUBE), path, blocks=blocks, attachments=attached, origin=origin)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInput, match="as the name of a file in it"):
        decompress_file(path, folder)
    assert sorted(tmp_path.rglob("*")) == before
    # A name that the user gives is written, and nothing else.
    decompress_file(path, folder / "mine.img")
    assert sorted(os.listdir(folder)) == ["mine.hdr", "mine.img"]
    decompress_file(path, folder / "a.img")
    assert len(os.listdir(folder)) == 4 and not any(one.startswith(".") for one in os.listdir(folder))


def test_one_name_for_both_files(tmp_path: Path) -> None:
    layout = CubeLayout(rows=24, columns=11, bands=5, dtype=np.dtype("<u2"))
    origin = CubeOrigin(format="envi", layout=layout, names={"data": "a.img", "header": "a.img"})
    compress_cube(ArrayCube(CUBE), tmp_path / "s.c123", origin=origin)
    (tmp_path / "out").mkdir()
    with pytest.raises(InvalidInput, match="as the name of a file in it"):
        decompress_file(tmp_path / "s.c123", tmp_path / "out")


@pytest.mark.parametrize("name", ["back.npy", "back.img", "back.hdr", "back.raw", "in.npy"])
def test_nothing_is_written_over(stream: Path, name: str) -> None:
    form: Any = "raw" if name.endswith("raw") else None
    (stream.parent / "back.hdr").write_text("mine")
    (stream.parent / name).write_text("mine")
    with pytest.raises(InvalidInput, match=r"which is there already, expected .*; with --force"):
        decompress_file(stream, stream.parent / name, format=form)
    assert (stream.parent / name).read_text() == (stream.parent / "back.hdr").read_text() == "mine"
    decompress_file(stream, stream.parent / name, format=form, overwrite=True)
    assert verify_file(stream, stream.parent / name).faults == () if form is None else True


def test_the_stream_is_not_written_over(tmp_path: Path) -> None:
    layout = CubeLayout(rows=24, columns=11, bands=5, dtype=np.dtype("<u2"))
    for name in ("s.c123", "s.c123.json"):
        origin = CubeOrigin(format="raw", layout=layout, names={"data": name})
        compress_cube(ArrayCube(CUBE), tmp_path / "s.c123", origin=origin)
        before = (tmp_path / name).read_bytes()
        with pytest.raises(InvalidInput, match="which is also an input"):
            decompress_file(tmp_path / "s.c123", tmp_path, overwrite=True)
        assert (tmp_path / name).read_bytes() == before
