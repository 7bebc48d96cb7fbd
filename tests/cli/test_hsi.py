"""``plait hsi``: cubes of every kind there and back, what it tells, and what it says about bad input."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from support.examples import often

from plait.cli import hsi as stream_options
from plait.formats.cubes.files import CubeFormat
from plait.formats.cubes.layout import ByteOrder
from plait.hyperspectral.parameters import LocalSum, Mode, Order, Predictor
from plait.hyperspectral.presets import AUTO, CODER_KINDS, PRESETS

CUBE = np.random.default_rng(0).integers(0, 4000, (23, 19, 7)).astype(np.uint16)
HEADER = "ENVI\nsamples = 19\nlines = 23\nbands = 7\ndata type = 12\ninterleave = bsq\nbyte order = 1\n"
BLOCKS = ("--coder", "block-adaptive")
RAW = ("--shape", "23,19,7", "--dtype", "uint16", "--interleave", "bil", "--byte-order", "little")


@pytest.fixture
def envi(tmp_path: Path) -> Path:
    (tmp_path / "in.hdr").write_text(HEADER + "wavelength = {1, 2, 3, 4, 5, 6, 7}\n; kept\n")
    (tmp_path / "in.img").write_bytes(CUBE.transpose(2, 0, 1).astype(">u2").tobytes())
    return tmp_path / "in.hdr"


def left(folder: Path) -> list[str]:
    """Names in a folder but for the input."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("in."))


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--blocks", "rows:5", "--checksum"),
        ("--blocks", "tiles:8x8", "--threads", 2),
        ("--coder", "hybrid"),
    ],
    ids=["plain", "rows", "tiles", "hybrid"],
)
def test_an_envi_cube_there_and_back(plait: Any, envi: Path, options: tuple[Any, ...]) -> None:
    stream, back = envi.with_name("out.c123"), envi.with_name("back")
    found = plait("hsi", "compress", envi, "-o", stream, *options)
    assert (found.status, found.out) == (0, "")
    told = r"plait: 23 rows x 19 columns x 7 bands of big-endian uint16, bsq: [\d,]+ bytes, [\d.]+ bits a "
    told += rf"sample, [\d.]+:1, in [\d.]+ s, [\d.,]+ MSamples/s; {re.escape(str(stream))}\n$"
    assert re.search(told, found.err)
    blocks = "--blocks" in options
    assert left(envi.parent) == (["out.c123"] if blocks else ["out.c123", "out.c123.json"])
    # A name that ends in a slash is a folder, which may be there.
    if blocks:
        back.mkdir()
    assert plait("hsi", "decompress", stream, "-o", back if blocks else f"{back}/").status == 0
    for name in ("in.hdr", "in.img"):
        assert (back / name).read_bytes() == envi.with_name(name).read_bytes()
    assert len(list(back.iterdir())) == 2
    found = plait("hsi", "verify", stream, envi.with_suffix(".img"))
    assert (found.status, found.out) == (0, f"{stream}: the same as {envi.with_suffix('.img')}\n")
    told = "decodes, and its checksums agree"
    if blocks and "--checksum" not in options:
        told = "decodes; its bytes are those that were written; it has no checksums of samples to compare"
    assert plait("hsi", "verify", stream).out == f"{stream}: {told}\n"


def test_other_formats_and_orders(plait: Any, envi: Path) -> None:
    stream = envi.with_name("out.c123")
    assert plait("hsi", "compress", envi, "-o", stream, "--bare").status == 0
    assert left(envi.parent) == ["out.c123"]
    assert plait("hsi", "decompress", stream, "-o", envi.with_name("a.npy")).status == 0
    assert np.array_equal(np.load(envi.with_name("a.npy")), CUBE)
    words = ("-o", envi.with_name("b.raw"), "--format", "raw", "--interleave", "bil")
    assert plait("hsi", "decompress", stream, *words).status == 0
    assert envi.with_name("b.raw").read_bytes() == CUBE.transpose(0, 2, 1).tobytes()
    again = envi.with_name("again.c123")
    assert plait("hsi", "compress", envi.with_name("b.raw"), *RAW, "-o", again).status == 0
    assert again.read_bytes() == stream.read_bytes()
    assert plait("hsi", "verify", again, envi.with_name("b.raw"), *RAW).status == 0
    # As it was: raw, in the same order.
    assert plait("hsi", "decompress", again, "-o", envi.with_name("c.dat")).status == 0
    assert envi.with_name("c.dat").read_bytes() == envi.with_name("b.raw").read_bytes()
    np.save(envi.with_name("d.npy"), CUBE.transpose(2, 0, 1))
    words = (envi.with_name("d.npy"), "--interleave", "zyx", "-o", envi.with_name("d.c123"))
    assert plait("hsi", "compress", *words).status == 0
    assert envi.with_name("d.c123").read_bytes() == stream.read_bytes()


@pytest.mark.slow
def test_info_and_parameters_by_name(plait: Any, envi: Path) -> None:
    stream = envi.with_name("out.c123")
    options = (
        "--prediction-bands",
        2,
        "--mode",
        "reduced",
        "--local-sum",
        "narrow-column",
        "--weight-initial",
        -6,
    )
    coder = ("--coder", "block-adaptive", "--block-size", 16, "--reference-interval", 64, "--user-field", 7)
    shape = ("--order", "bsq", "--output-word-size", 4, "--dynamic-range", 16, "--preset", "best")
    parts = {
        "representatives": {"resolution": 1, "damping": 1},
        "weight_offsets": {"own": [0] * 7, "others": [[1] * min(band, 2) for band in range(7)]},
    }
    envi.with_name("p.json").write_text(json.dumps(parts | {"mode": "full"}))
    shape += ("--parameters", envi.with_name("p.json"))
    assert plait("hsi", "compress", envi, "-o", stream, *options, *coder, *shape).status == 0
    found = json.loads(plait("hsi", "info", stream, "--json").out)
    assert (found["kind"], found["rows"], found["columns"], found["bands"]) == ("stream", 23, 19, 7)
    assert (found["dynamic_range"], found["signed"], found["bytes"]) == (16, False, stream.stat().st_size)
    for name, value in zip(*(iter((*options, *coder, *shape[:4])),) * 2, strict=True):
        assert found["parameters"][name[2:].replace("-", "_")] == value
    assert found["origin"]["header"] == envi.read_text() and found["origin"]["byte_order"] == "big"
    text = plait("hsi", "info", stream).out
    for line in (
        f"{stream}: a plain stream with checksums, ",
        "23 rows x 19 columns x 7 bands, unsigned samples of 16 bits\n",
        "\n  block_size ",
        "\n  interleave  bsq\n",
        "\n  wavelength = {1, 2, 3, 4, 5, 6, 7}\n",
    ):
        assert line in text
    # What it prints is what compress takes.
    envi.with_name("p.json").write_text(json.dumps(found))
    again = envi.with_name("again.c123")
    words = ("--parameters", envi.with_name("p.json"), "--dynamic-range", 16)
    assert plait("hsi", "compress", envi, "-o", again, *words).status == 0
    assert again.read_bytes() == stream.read_bytes()


@pytest.mark.slow
def test_tables_that_the_stream_does_not_carry(plait: Any, envi: Path) -> None:
    stream, tables = envi.with_name("out.c123"), envi.with_name("t.json")
    weights = [[1, 2, 3, *range(min(band, 3))] for band in range(7)]
    content: dict[str, Any] = {
        "mode": "full",
        "local_sum": "narrow-column",
        "weight_table_resolution": 5,
        "weight_table": weights,
        "weight_table_in_header": False,
        "representatives": {"resolution": 3, "damping": list(range(7)), "in_header": False},
        "weight_offsets": {
            "own": [1] * 7,
            "others": [[-1] * min(band, 3) for band in range(7)],
            "in_header": False,
        },
        "accumulator_table": [4] * 7,
        "table_in_header": False,
    }
    tables.write_text(json.dumps(content))
    assert plait("hsi", "compress", envi, "-o", stream, "--parameters", tables).status == 0
    found = plait("hsi", "decompress", stream, "-o", envi.with_name("back.npy"))
    assert found.status == 2 and f"{stream}: found weight_offsets: none" in found.err
    words = ("-o", envi.with_name("back.npy"), "--parameters", tables)
    assert plait("hsi", "decompress", stream, *words).status == 0
    assert np.array_equal(np.load(envi.with_name("back.npy")), CUBE)
    assert plait("hsi", "info", stream, "--parameters", tables).status == 0
    assert plait("hsi", "verify", stream, envi, "--parameters", tables).status == 0
    for text, told in (
        ("{", "a JSON file with parameters by name"),
        ("[]", "found list"),
        ('{"weight_offsets": {"odd": 1}}', "found weight_offsets: found odd"),
        ('{"odd": 1}', "parameters: found odd"),
    ):
        tables.write_text(text)
        found = plait("hsi", "compress", envi, "-o", envi.with_name("x.c123"), "--parameters", tables)
        assert found.status == 2 and told in found.err and not envi.with_name("x.c123").exists()


def test_a_side_index(plait: Any, envi: Path) -> None:
    stream, index = envi.with_name("out.c123"), envi.with_name("out.idx")
    assert plait("hsi", "compress", envi, "-o", stream, "--index", index, "--checksum").status == 0
    other = envi.with_name("other.idx")
    assert plait("hsi", "index", stream, "-o", other, "--every", 8).status == 0
    for one in (index, other):
        assert plait("hsi", "verify", stream, envi, "--index", one, "--threads", 2).status == 0
        words = ("-o", envi.with_name("back.img"), "--index", one, "--force")
        assert plait("hsi", "decompress", stream, *words).status == 0
        assert envi.with_name("back.img").read_bytes() == envi.with_suffix(".img").read_bytes()
    assert plait("hsi", "compress", envi, "-o", stream, "--preset", "fast").status == 0
    found = plait("hsi", "verify", stream, "--index", index)
    assert found.status == 2 and str(index) in found.err
    found = plait("hsi", "index", stream, "-o", stream)
    assert found.status == 2 and "which is also an input" in found.err


def test_a_side_index_that_is_not_there(plait: Any, envi: Path) -> None:
    stream, missing = envi.with_name("out.c123"), envi.with_name("missing.index")
    assert plait("hsi", "compress", envi, "-o", stream).status == 0
    for words in (("verify", stream), ("decompress", stream, "-o", envi.with_name("back.npy"))):
        found = plait("hsi", *words, "--index", missing)
        assert found.status == 2 and "index: found " in found.err and "No such file" in found.err
    assert left(envi.parent) == ["out.c123", "out.c123.json"]


def test_what_an_earlier_stream_was_is_forgotten(plait: Any, envi: Path) -> None:
    stream, beside = envi.with_name("out.c123"), envi.with_name("out.c123.json")
    words = ("hsi", "compress", envi, "-o", stream)
    for others in (("--bare",), ("--blocks", "rows:4")):
        assert plait(*words).status == 0 and beside.exists()
        assert plait(*words, "--preset", "fast", *others).status == 0 and not beside.exists()
        assert plait("hsi", "verify", stream, envi).status == 0
        assert plait("hsi", "decompress", stream, "-o", envi.with_name("back.npy"), "--force").status == 0
    beside.write_text('{"mine": 1}')
    assert plait(*words, "--bare").status == 0
    assert beside.read_text() == '{"mine": 1}'


def test_verify_finds_what_differs(plait: Any, envi: Path) -> None:
    stream = envi.with_name("out.c123")
    assert plait("hsi", "compress", envi, "-o", stream, "--blocks", "rows:4", "--checksum").status == 0
    data = bytearray(envi.with_suffix(".img").read_bytes())
    data[-1] ^= 1
    envi.with_suffix(".img").write_bytes(data)
    found = plait("hsi", "verify", stream, envi)
    told = f"{stream}: 1 of 3,059 samples differ, the first in row 22, column 18, band 6\n"
    assert (found.status, found.out) == (1, told)
    damaged = bytearray(stream.read_bytes())
    damaged[200] ^= 4
    stream.write_bytes(damaged)
    found = plait("hsi", "verify", stream)
    assert found.status == 1 and found.out.count("\n") == 1 and "block 0 (rows 0 to 3" in found.out
    found = plait("hsi", "decompress", stream, "-o", envi.with_name("back.npy"))
    assert found.status == 2 and "block 0" in found.err and left(envi.parent) == ["out.c123"]


# --- bad input ------------------------------------------------------------------------------------------


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def test_files_of_another_size(plait: Any, envi: Path) -> None:
    cut(envi.with_suffix(".img"), 6000)
    found = plait("hsi", "compress", envi, "-o", envi.with_name("out.c123"))
    told = f"plait: error: {envi.with_suffix('.img')}: found 6,000 bytes (118 too few), expected 6,118 bytes"
    assert found.status == 2 and found.err.startswith(told) and left(envi.parent) == []


@pytest.mark.parametrize("size", [0, 10, 19, 40, 2000])
@pytest.mark.parametrize("blocks", [(), ("--blocks", "rows:4")], ids=["plain", "blocks"])
def test_streams_that_end_early(plait: Any, envi: Path, size: int, blocks: tuple[str, ...]) -> None:
    stream = envi.with_name("out.c123")
    assert plait("hsi", "compress", envi, "-o", stream, "--bare", *blocks).status == 0
    cut(stream, size)
    for words in (("decompress", stream, "-o", envi.with_name("x.npy")), ("info", stream)):
        if size == 2000 and words[0] == "info" and not blocks:
            continue
        found = plait("hsi", *words)
        assert (found.status, found.out) == (2, "") and found.err.startswith(f"plait: error: {stream}")
        assert found.err.count("\n") == 1 and left(envi.parent) == ["out.c123"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--shape", "1,2"), "--shape: found '1,2', expected rows, columns and bands"),
        (("--shape", "23,19,7"), "dtype: found nothing"),
        (("--dynamic-range", "x"), "--dynamic-range: found 'x', expected auto, or bits"),
        (("--dynamic-range", "8"), "expected 0 to 255, as 8 bits hold"),
        (("--dynamic-range", "40"), "dynamic_range: found 40, expected a whole number from 2 to 32"),
        (("--blocks", "lines:4"), "lines:4"),
        (("--checksum",), "checksum: found a plain stream"),
        (("--prediction-bands", "16"), "prediction_bands: found 16"),
        (("--block-size", "16"), "parameters: found block_size"),
        ((*BLOCKS, "--reference-interval", "16"), "; --any-reference-interval writes it"),
        ((*BLOCKS, "--restricted"), "restricted: found restricted code options for samples of 12 bits"),
        (("--preset", "slow"), "--preset"),
        (("--variable", "v"), "variable: found 'v'"),
        (("--index", "{}/i", "--blocks", "rows:4"), "index: found one for a container"),
        (("--threads", "1.5"), "--threads"),
        (("--index", "{}/new/"), "new/', expected the name of a file"),
    ],
    ids=[
        *("shape", "no-type", "range", "too-few-bits", "too-many-bits", "blocks", "checksum", "bands"),
        *("other-coder", "interval", "restricted", "preset", "variable", "index", "threads", "index-folder"),
    ],
)
def test_wrong_options(plait: Any, envi: Path, words: tuple[str, ...], told: str) -> None:
    found = plait(
        "hsi", "compress", envi, "-o", envi.with_name("out.c123"), *(one.format(envi.parent) for one in words)
    )
    assert (found.status, found.out) == (2, "") and told in found.err and left(envi.parent) == []


def test_a_folder_is_no_stream(plait: Any, envi: Path) -> None:
    found = plait("hsi", "compress", envi, "-o", f"{envi.parent}/new/")
    assert (found.status, found.out) == (2, "") and "new/', expected the name of a file" in found.err
    assert left(envi.parent) == []


def test_any_reference_interval_is_written_when_asked_for(plait: Any, envi: Path) -> None:
    stream, back = envi.with_name("out.c123"), envi.with_name("back.npy")
    words = ("-o", stream, *BLOCKS, "--reference-interval", 16, "--any-reference-interval")
    assert plait("hsi", "compress", envi, *words).status == 0
    assert json.loads(plait("hsi", "info", stream, "--json").out)["parameters"]["reference_interval"] == 16
    assert plait("hsi", "decompress", stream, "-o", back).status == 0
    assert np.array_equal(np.load(back), CUBE)


def test_inputs_are_not_overwritten(plait: Any, envi: Path) -> None:
    before = envi.with_suffix(".img").read_bytes()
    for target in (envi, envi.with_suffix(".img")):
        found = plait("hsi", "compress", envi, "-o", target)
        assert found.status == 2 and "which is also an input" in found.err
    stream = envi.with_name("out.c123")
    assert plait("hsi", "compress", envi, "-o", stream).status == 0
    found = plait("hsi", "decompress", stream, "-o", stream)
    assert found.status == 2 and "which is also an input" in found.err
    assert envi.with_suffix(".img").read_bytes() == before


def test_a_full_disk(plait: Any, envi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = envi.with_name("out.c123")
    before.write_bytes(b"older")
    monkeypatch.setattr(os, "fsync", full)
    found = plait("hsi", "compress", envi, "-o", before)
    assert found.status == 2 and "found no space left on the device, expected room for" in found.err
    assert before.read_bytes() == b"older" and left(envi.parent) == ["out.c123"]


@pytest.mark.slow
@pytest.mark.parametrize("number", often(1, [signal.SIGINT, signal.SIGTERM]), ids=["interrupt", "terminate"])
def test_stopped_halfway(start_plait: Any, envi: Path, number: signal.Signals) -> None:
    stream = envi.with_name("out.c123")
    stream.write_bytes(b"older")
    before = (
        "import signal, os; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from plait.hyperspectral.codec import Compressor as c; close = c.close;"
        f"c.close = lambda self: (os.kill(os.getpid(), {int(number)}), close(self))[1]"
    )
    process = start_plait("hsi", "compress", envi, "-o", stream, before=before)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 128 + number and "plait: stopped" in told
    assert stream.read_bytes() == b"older" and left(envi.parent) == ["out.c123"]


@pytest.mark.slow
def test_progress_on_a_terminal(on_terminal: Any, envi: Path) -> None:
    found, shown = on_terminal("hsi", "compress", envi, "-o", envi.with_name("out.c123"))
    assert found.status == 0 and b"compressing" in shown


def test_options_name_what_there_is() -> None:
    for option, known in (
        (stream_options.PresetOption, (*PRESETS, AUTO)),
        (stream_options.CoderOption, tuple(CODER_KINDS)),
        (stream_options.FormatOption, get_args(CubeFormat)),
        (stream_options.ByteOrderOption, get_args(ByteOrder)),
        (stream_options.ModeOption, get_args(Mode)),
        (stream_options.SumOption, get_args(LocalSum)),
        (stream_options.OrderOption, get_args(Order)),
    ):
        assert get_args(option) == known
    options = stream_options.HeaderOptions.__dataclass_fields__
    parts = [Predictor, *CODER_KINDS.values()]
    numbers = {
        name for part in parts for name, field in part.__dataclass_fields__.items() if field.type == "int"
    }
    assert numbers <= set(options)


def test_files_that_are_there_already(plait: Any, envi: Path) -> None:
    stream, index, back = (envi.with_name(name) for name in ("out.c123", "out.idx", "back.npy"))
    words = ("hsi", "compress", envi, "-o", stream, "--index", index)
    assert "replaced" not in plait(*words).err
    told = plait(*words).err
    assert f"plait: '{stream}' was there before and has been replaced\n" in told
    assert f"plait: '{index}' was there before and has been replaced\n" in told
    assert f"'{index}' was there before" in plait("hsi", "index", stream, "-o", index).err
    back.write_text("mine")
    found = plait("hsi", "decompress", stream, "-o", back)
    assert found.status == 2 and "--force" in found.err and back.read_text() == "mine"
    assert plait("hsi", "decompress", stream, "-o", back, "--force").status == 0
    assert np.array_equal(np.load(back), CUBE)


def test_verify_says_what_it_cannot_know(plait: Any, envi: Path) -> None:
    stream = envi.with_name("out.c123")
    assert plait("hsi", "compress", envi, "-o", stream, "--bare").status == 0
    told = (
        "decodes; damage that still decodes is not noticed, for lack of checksums: out.c123.json is not there"
    )
    found = plait("hsi", "verify", stream)
    assert (found.status, found.out) == (0, f"{stream}: {told}\n")
    stream.write_bytes(stream.read_bytes() + bytes(50_000))
    found = plait("hsi", "verify", stream)
    assert found.status == 1 and "50,000 bytes follow the last sample" in found.out


def test_near_lossless_cubes(plait: Any, envi: Path) -> None:
    stream, limits = envi.with_name("out.c123"), envi.with_name("in.limits.txt")
    limits.write_text("0 1 2 3\n4 5\n6\n")
    image = envi.with_suffix(".img")
    found = plait("hsi", "compress", envi, "-o", stream, "--max-error", limits, "--relative-error", "10%")
    assert found.status == 0
    assert re.search(
        r"bits a sample, [\d.]+:1, near-lossless \(absolute 0 to 6, relative 0\.0999\), in ", found.err
    )
    found = plait("hsi", "verify", stream, envi)
    assert found.status == 0
    lines = found.out.splitlines()
    assert lines[0] == f"{stream}: limit 0, band 0: largest error 0"
    assert lines[-2].startswith(f"{stream}: root mean square error ")
    assert lines[-1] == f"{stream}: within its error limits of {envi}"
    assert plait("hsi", "verify", stream).out == f"{stream}: decodes, and its checksums agree\n"
    found = plait("hsi", "info", stream)
    assert ", near-lossless (absolute 0 to 6, relative 0.0999), " in found.out.splitlines()[0]
    words = "error_limits absolute a table of 7, relative 409, absolute_bits 3, relative_bits 9,"
    assert words in " ".join(found.out.split())
    # As ENVI, in the order and with the header that the original has.
    back = envi.with_name("back")
    back.mkdir()
    assert plait("hsi", "decompress", stream, "-o", back).status == 0
    assert (back / "in.hdr").read_bytes() == envi.read_bytes()
    samples = np.frombuffer((back / "in.img").read_bytes(), ">u2").astype(int).reshape(7, 23, 19)
    errors = np.abs(samples.transpose(1, 2, 0) - CUBE)
    assert (errors <= np.arange(7)).all() and errors.any()
    # The bound is broken: another original.
    other = bytearray(image.read_bytes())
    other[1] ^= 0x40
    image.write_bytes(other)
    found = plait("hsi", "verify", stream, envi)
    assert found.status == 1
    told = (
        "1 of 3,059 samples differ by more than they may, the first in row 0, column 0, band 0: by 64, and "
    )
    assert found.out.splitlines()[0] == f"{stream}: {told}its limit is 0"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ("--max-error", "few"),
            "--max-error: found 'few', expected a whole number such as 3, or a text file",
        ),
        (
            ("--max-error", 4096),
            "max_error: found 4096, expected a whole number from 0 to 2047 for samples of",
        ),
        (
            ("--relative-error", "80%"),
            "relative_error: found 0.8, expected 0, or a share from 0.00024 to 0.4997",
        ),
        (("--relative-error", "1e-9"), "relative_error: found 1e-09, expected 0, or a share from 0.00024 to"),
        (("--max-error", "in.words"), "in.words: found 'two' as limit 2, expected a whole number such as 3"),
        (("--max-error", "in.short"), "absolute: found 2 limits, expected 7 of them in 7 bands"),
        (
            ("--max-error", "in.img"),
            "--max-error: found 'in.img', expected a whole number such as 3, or a text",
        ),
    ],
)
def test_error_limits_that_are_none(
    plait: Any, envi: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[Any, ...], told: str
) -> None:
    monkeypatch.chdir(envi.parent)
    Path("in.words").write_text("1 two 3")
    Path("in.short").write_text("1 2")
    found = plait("hsi", "compress", envi, "-o", "out.c123", *options)
    assert found.status == 2
    assert told in found.err
    assert left(envi.parent) == []
