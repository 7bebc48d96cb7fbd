"""Speed and ratio of the CCSDS 123 codec on Indian Pines, beside other codecs, with the answers checked.

    python benchmarks/hsi.py [CUBE.npy] [--repeat 5] [--threads 2] [--quick] [--json OUT.json]

The cube has shape (rows, columns, bands) and unsigned integers; by default it is that of the PyPI package
``tensorly`` (``pip install --no-deps tensorly``). Peers where they are installed: ``imagecodecs`` (JPEG-XL
of the bands, of their differences, and of what a least-squares prediction from three bands leaves; libaec,
which also checks the block-adaptive coder from outside) and ``numcodecs`` (Blosc with zstd).

The presets are compared on parts of that cube, too, and on cubes that are made up: mixtures of smooth spectra
over a fractal landscape, in light that changes, with stripes of the sensor and the noise of few photons.

Every speed is the best of the repeats, of one thread and of its processor time unless the line says
otherwise, in million samples a second; memory to memory, checked against the cube. The compiled kernels are
warm. Ratios are in bits a sample. For comparison, measured on this machine with the same cube and parameters
(P=3, full, neighbour-oriented, sample-adaptive): ESA's C code 3.6 to compress and 3.8 to decompress; naive
Numba 4.3-10 and 9-12.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from support.ccsds123_coders import coding_order
from support.ccsds123_predictor import model_residuals

from plait.hyperspectral.codec import StreamDecoder, compress, decompress, find_entries
from plait.hyperspectral.codewords import BodyWriter, make_coder
from plait.hyperspectral.cubes import ArrayCube
from plait.hyperspectral.files import compress_file, decompress_file
from plait.hyperspectral.parameters import ImageLayout, Representatives, StreamParameters
from plait.hyperspectral.presets import PRESETS, preset_parameters
from plait.hyperspectral.streams import open_stream
from plait.hyperspectral.waves import BandsAbreast, BandWaves, rows_at_a_time
from plait.hyperspectral.writing import compress_cube

#: What is asked for to compress and decompress with so many threads, in million samples a second.
ASKED = {1: (70.0, 65.0), 2: (120.0, 105.0)}


def default_cube() -> Path:
    """The cube of the package ``tensorly``."""
    found = importlib.util.find_spec("tensorly")
    if found is None or found.origin is None:
        sys.exit("give a cube, or: pip install --no-deps tensorly")
    return Path(found.origin).parent / "datasets" / "data" / "Indian_pines_corrected.npy"


def best(repeat: int, work: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> Any:
    """Least time of several runs, and the last result."""
    least, result = float("inf"), None
    for _ in range(repeat):
        start = clock()
        result = work()
        least = min(least, clock() - start)
    return least, result


def cases(image: ImageLayout) -> dict[str, StreamParameters]:
    """What is measured, by a name that says everything that matters."""
    found = {}
    for bands in (0, 1, 3, 15):
        found[f"P={bands} full neighbour, sample-adaptive, BIP"] = {"prediction_bands": bands}
    three = "P=3 full neighbour"
    found[f"{three}, sample-adaptive, BIL"] = {"interleaving_depth": 1}
    found[f"{three}, sample-adaptive, BSQ"] = {"order": "bsq"}
    for coder in ("block-adaptive", "hybrid"):
        found[f"{three}, {coder}, BIP"] = {"coder": coder}
        found[f"{three}, {coder}, BSQ"] = {"coder": coder, "order": "bsq"}
    found["P=3 reduced column, sample-adaptive, BIP"] = {"mode": "reduced", "local_sum": "wide-column"}
    return {name: preset_parameters(image, **named) for name, named in found.items()}


def one_core(cube: NDArray[Any], image: ImageLayout, repeat: int) -> list[dict[str, Any]]:
    """Plain streams of one thread."""
    rows = []
    for name, parameters in cases(image).items():
        there, stream = best(repeat + 1, lambda p=parameters: compress(cube, p, device="cpu"))
        back, result = best(repeat, lambda s=stream: decompress(s))
        assert np.array_equal(result[0], cube), name
        speeds = cube.size / there / 1e6, cube.size / back / 1e6
        rows.append({"case": name, "bits": 8 * len(stream) / cube.size, "MS/s": speeds})
        print(f"  {name:55s} {rows[-1]['bits']:7.3f}   {speeds[0]:7.1f} {speeds[1]:7.1f}", flush=True)
    return rows


def stage_times(cube: NDArray[Any], parameters: StreamParameters, repeat: int) -> list[float]:
    """Seconds of predictor and coder alone, both ways; as `Compressor` and `StreamDecoder` use them."""
    image, limits = parameters.image, parameters.predictor.error_limits
    step = rows_at_a_time(image)
    parts = [cube[first : first + step] for first in range(0, image.rows, step)]
    exact = parameters.predictor.representatives is None and limits is None
    residuals: list[NDArray[np.int64]] = []

    def predict() -> None:
        residuals.clear()
        bands = BandsAbreast(image, parameters.predictor) if exact else BandWaves(image, parameters.predictor)
        for part in parts:
            if isinstance(bands, BandsAbreast):
                residuals.append(bands.run(part).astype(np.int64))
                continue
            values = part.astype(np.int64) - image.middle
            bands.run(values.reshape(-1, image.bands))
            residuals.append(values if limits is None else values & 0xFFFFFFFF)

    def code() -> None:
        writer = BodyWriter()
        coder = make_coder(parameters, writer)
        for k, part in enumerate(residuals):
            coder.put(part, k * step)
            writer.take()

    def recover() -> None:
        waves = BandWaves(image, parameters.predictor, backwards=True)
        for part in residuals:
            waves.run(part.reshape(-1, image.bands).copy())

    decoder = StreamDecoder(compress(cube, parameters, device="cpu"))
    found = []
    for work in (predict, code, lambda: find_entries(decoder, step), recover):
        work()
        found.append(best(repeat, work)[0])
    return found


def stages(cube: NDArray[Any], image: ImageLayout, repeat: int) -> list[dict[str, Any]]:
    """Predictor and coder alone, both ways."""
    rows = []
    names = (
        "residuals of samples",
        "codewords of residuals",
        "residuals of codewords",
        "samples of residuals",
    )
    for name, seconds in zip(names, stage_times(cube, preset_parameters(image), repeat), strict=True):
        rows.append({"case": name, "MS/s": cube.size / seconds / 1e6})
        print(f"  {name:55s}           {rows[-1]['MS/s']:7.1f}", flush=True)
    return rows


def print_limits(stages: list[dict[str, Any]], plain: list[dict[str, Any]]) -> None:
    """Shares of what the stages allow: one after the other in one thread, the slower one in two."""
    predict, code, read, recover = (row["MS/s"] for row in stages)
    one = [1 / (1 / first + 1 / second) for first, second in ((predict, code), (read, recover))]
    two = [min(predict, code), min(read, recover)]
    for row, limits in zip((row for row in plain if "BIP, " in row["case"]), (one, two), strict=False):
        shares = [speed / limit for speed, limit in zip(row["MS/s"], limits, strict=True)]
        told = "{:.2f} and {:.2f} of the {:.1f} and {:.1f} that these allow".format(*shares, *limits)
        print(f"  {row['case']}: {told}", flush=True)


def wider(cube: NDArray[Any], image: ImageLayout, repeat: int) -> list[dict[str, Any]]:
    """What wider lanes, sample representatives and error limits take, beside the default."""
    deep = cube.astype(np.uint32) << 20 - image.dynamic_range
    rows: list[dict[str, Any]] = []
    print(f"{'':57s}  predict and recover, MS/s; whole streams, MS/s; times as long as the first")
    for name, samples, named in (
        ("default", cube, {}),
        ("20 bits", deep, {}),
        ("sample representatives", cube, {"representatives": Representatives(resolution=3, damping=1)}),
        ("largest error 2", cube, {"max_error": 2}),
        ("relative error 1 %", cube, {"relative_error": 0.01}),
    ):
        own = replace(image, dynamic_range=20 if samples is deep else image.dynamic_range)
        parameters = preset_parameters(own, **named)
        times = [stage_times(samples, parameters, repeat)[k] for k in (0, 3)]
        there, stream = best(repeat, lambda s=samples, p=parameters: compress(s, p, device="cpu"))
        back, (found, _) = best(repeat, lambda s=stream: decompress(s))
        least = 2 if "max_error" in named else int(samples.max()) // 50 if "relative_error" in named else 0
        assert np.abs(found.astype(np.int64) - samples).max() <= least, name
        times += [there, back]
        rows.append({"case": name, "MS/s": [cube.size / one / 1e6 for one in times]})
        ratios = (base / one for base, one in zip(rows[0]["MS/s"], rows[-1]["MS/s"], strict=True))
        told = " ".join(f"{speed:7.1f}" for speed in rows[-1]["MS/s"])
        print(f"  {name:55s}  {told}   {' '.join(f'{ratio:.2f}' for ratio in ratios)}", flush=True)
    return rows


def scaling(cube: NDArray[Any], image: ImageLayout, repeat: int, threads: int) -> list[dict[str, Any]]:
    """Blocks over threads, by the clock on the wall."""
    rows = []
    parameters = preset_parameters(image)
    for blocks in ("rows:37", "tiles:73x73"):
        for count in sorted({1, threads}):
            pieces: list[bytes] = []

            def pack(blocks: str = blocks, count: int = count, pieces: list[bytes] = pieces) -> None:
                pieces.clear()
                source = ArrayCube(cube)
                named = {"parameters": parameters, "blocks": blocks, "threads": count, "device": "cpu"}
                compress_cube(source, pieces.append, **named)

            there, _ = best(repeat, pack, time.perf_counter)
            whole = b"".join(pieces)
            with open_stream(whole) as opened:
                rows_of, columns, _ = opened.shape
                back, found = best(
                    repeat,
                    lambda o=opened, n=count: o.read(0, rows_of, 0, columns, threads=n),  # noqa: B023
                    time.perf_counter,
                )
            assert np.array_equal(found, cube)
            speeds = cube.size / there / 1e6, cube.size / back / 1e6
            name = f"default preset, {blocks}, {count} thread{'s' * (count > 1)}, wall clock"
            rows.append({"case": name, "bits": 8 * len(whole) / cube.size, "MS/s": speeds})
            print(f"  {name:55s} {rows[-1]['bits']:7.3f}   {speeds[0]:7.1f} {speeds[1]:7.1f}", flush=True)
    return rows


def plain_streams(cube: NDArray[Any], image: ImageLayout, repeat: int, threads: int) -> list[dict[str, Any]]:
    """Plain streams over threads, by the clock on the wall: in memory, and from file to file."""
    rows = []
    orders = {"BIL": {"interleaving_depth": 1}, "BSQ": {"order": "bsq"}, "BIP": {}}
    with tempfile.TemporaryDirectory() as folder:
        plain, packed, back = (Path(folder) / name for name in ("a.npy", "a.c123", "b.npy"))
        np.save(plain, cube)
        parameters = preset_parameters(image, prediction_bands=3)
        known = compress(cube, parameters, device="cpu")

        def pack(count: int) -> bytes:
            pieces: list[bytes] = []
            source = ArrayCube(cube)
            compress_cube(source, pieces.append, parameters=parameters, threads=count, device="cpu")
            return b"".join(pieces)

        def unpack(count: int) -> NDArray[Any]:
            with open_stream(known) as opened:
                return opened.read(0, image.rows, threads=count)

        def pack_file(count: int) -> bytes:
            compress_file(plain, packed, parameters={"prediction_bands": 3}, threads=count, device="cpu")
            return packed.read_bytes()

        def unpack_file(count: int) -> NDArray[Any]:
            decompress_file(packed, back, threads=count, overwrite=True, device="cpu")
            return np.load(back)

        for name, order, there, again in (
            *((f"compress_cube, read, {order}", order, pack, unpack) for order in orders),
            ("compress_file, decompress_file (.npy)", "BIP", pack_file, unpack_file),
        ):
            parameters = preset_parameters(image, prediction_bands=3, **orders[order])
            known = compress(cube, parameters, device="cpu")
            for count in sorted({1, threads}):
                assert there(count) == known and np.array_equal(again(count), cube), name
                works = [lambda f=f, n=count: f(n) for f in (there, again)]
                seconds = [best(repeat, work, time.perf_counter)[0] for work in works]
                speeds = tuple(cube.size / one / 1e6 for one in seconds)
                told = f"{name}, {count} thread{'s' * (count > 1)}, wall clock"
                rows.append({"case": told, "bits": 8 * len(known) / cube.size, "MS/s": speeds})
                print(f"  {told:55s} {rows[-1]['bits']:7.3f}   {speeds[0]:7.1f} {speeds[1]:7.1f}", flush=True)
                print_asked(count, speeds)
    return rows


def print_asked(threads: int, speeds: tuple[float, ...]) -> None:
    """Whether what is asked for is reached."""
    asked = ASKED.get(threads, ())
    told = ("reached" if own >= one else "NOT reached" for own, one in zip(speeds, asked, strict=False))
    if asked:
        print("    asked: {:.0f} and {:.0f}: {} and {}".format(*asked, *told), flush=True)


def presets(cube: NDArray[Any], image: ImageLayout, repeat: int) -> list[dict[str, Any]]:
    """The presets."""
    rows = []
    for preset in PRESETS:
        parameters = preset_parameters(image, preset)
        there, stream = best(repeat + 1, lambda p=parameters: compress(cube, p, device="cpu"))
        back, _ = best(repeat, lambda s=stream: decompress(s))
        speeds = cube.size / there / 1e6, cube.size / back / 1e6
        rows.append({"case": preset, "bits": 8 * len(stream) / cube.size, "MS/s": speeds})
        print(f"  {preset:55s} {rows[-1]['bits']:7.3f}   {speeds[0]:7.1f} {speeds[1]:7.1f}", flush=True)
    return rows


def made_up(rows: int, columns: int, bands: int, seed: int, noise: float) -> NDArray[np.uint16]:
    """A cube that is made up; see above."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(rows)[:, None], np.fft.rfftfreq(columns)[None])
    frequency[0, 0] = 1

    def landscape(power: float) -> NDArray[np.float64]:
        waves = frequency**-power * np.exp(2j * np.pi * rng.random(frequency.shape))
        found = np.fft.irfft2(waves, (rows, columns))
        return (found - found.mean()) / found.std()

    shares = np.exp(3 * np.stack([landscape(1.6) for _ in range(5)]))
    shares /= shares.sum(0)
    x = np.linspace(0, 1, bands)
    bumps = [
        zip(rng.uniform(0.1, 1, 6), rng.random(6), rng.uniform(0.05, 0.4, 6), strict=True) for _ in shares
    ]
    spectra = np.stack([sum(a * np.exp(-(((x - c) / w) ** 2)) for a, c, w in one) for one in bumps])
    sun = np.exp(-1.5 * x)
    for place, width, depth in ((0.55, 0.02, 0.8), (0.75, 0.03, 0.7)):
        sun *= 1 - depth * np.exp(-(((x - place) / width) ** 2))
    clean = np.einsum("kyx,kz->yxz", shares, spectra) * sun * np.exp(0.15 * landscape(1.8))[..., None]
    clean *= 6000 / clean.max() * (1 + 0.01 * rng.standard_normal((1, columns, bands)))
    spread = noise * np.sqrt(4 + 0.15 * clean) * rng.uniform(0.5, 1.5, bands)
    return np.clip(np.rint(clean + spread * rng.standard_normal(clean.shape)), 0, 65535).astype(np.uint16)


def presets_by_cube(cube: NDArray[Any]) -> list[dict[str, Any]]:
    """Bits a sample of the presets, on parts of the cube and on cubes that are made up."""
    cubes = {"the cube": cube}
    for size in (100, 64, 32):
        cubes[f"{size} x {size} of it"] = cube[:size, :size]
    cubes["100 x 100, every fourth band"] = cube[:100, :100, ::4]
    cubes["100 x 100 at 8 bits"] = cube[:100, :100] >> max(int(cube.max()).bit_length() - 8, 0)
    for seed, (rows, columns, bands, noise) in enumerate(
        [
            (100, 100, 198, 1.0),
            (100, 100, 198, 0.3),
            (200, 200, 100, 1.0),
            (48, 48, 150, 0.5),
            (300, 300, 60, 0.3),
        ],
        1,
    ):
        name = f"made up, {rows} x {columns} x {bands}, noise {noise}"
        cubes[name] = made_up(rows, columns, bands, seed, noise)
    rows_found = []
    for name, samples in cubes.items():
        one = np.ascontiguousarray(samples)
        rows, columns, bands = one.shape
        depth = max(int(one.max()).bit_length(), 2)
        image = ImageLayout(columns=columns, rows=rows, bands=bands, dynamic_range=depth)
        bits = [8 * len(compress(one, preset_parameters(image, preset))) / one.size for preset in PRESETS]
        rows_found.append({"case": name, "bits": dict(zip(PRESETS, bits, strict=True))})
        told = "" if bits[2] <= bits[1] else "   best is LARGER than default"
        print(f"  {name:55s} {bits[0]:7.3f} {bits[1]:7.3f} {bits[2]:7.3f}{told}", flush=True)
    return rows_found


def differences(bands: NDArray[Any]) -> list[NDArray[np.uint16]]:
    """What is left of each band after the one before it."""
    found = np.diff(bands.astype(np.int64), axis=0, prepend=0)
    return [(band - band.min()).astype(np.uint16) for band in found]


def least_squares(bands: NDArray[Any], before: int = 3) -> list[NDArray[np.uint16]]:
    """What is left of each band after the best linear prediction from the bands before it."""
    plain = bands.reshape(len(bands), -1).astype(np.float64)
    found = [bands[0].astype(np.uint16)]
    for z in range(1, len(bands)):
        known = np.stack([np.ones(plain.shape[1]), *plain[max(z - before, 0) : z]], axis=1)
        weights = np.linalg.lstsq(known, plain[z], rcond=None)[0].astype(np.float32)
        left = (plain[z] - np.rint(known @ weights.astype(np.float64))).reshape(bands[z].shape)
        found.append((left - left.min()).astype(np.uint16))
    return found


def peers(cube: NDArray[Any], repeat: int, depth: int) -> list[dict[str, Any]]:
    """Other codecs on the same samples."""
    found: dict[str, Callable[[], Any]] = {}
    bands = np.ascontiguousarray(cube.transpose(2, 0, 1))
    if importlib.util.find_spec("imagecodecs") is not None:
        import imagecodecs

        def jpeg_xl(images: Any, more: int = 0) -> list[bytes]:
            # The offset of each band, and the weights of the prediction, belong to the size.
            return [
                imagecodecs.jpegxl_encode(one, lossless=True, effort=5, numthreads=1) + bytes(more)
                for one in images
            ]

        found["JPEG-XL of the bands (imagecodecs, effort 5)"] = lambda: jpeg_xl(bands)
        found["JPEG-XL of differences of bands"] = lambda: jpeg_xl(differences(bands), 4)
        found["JPEG-XL after least squares from 3 bands"] = lambda: jpeg_xl(least_squares(bands), 20)
        found["AEC, CCSDS 121.0, BSQ (imagecodecs)"] = lambda: [
            imagecodecs.aec_encode(bands, bitspersample=depth, blocksize=16, rsi=128)
        ]
    if importlib.util.find_spec("numcodecs") is not None:
        from numcodecs import Blosc

        blosc = Blosc(cname="zstd", clevel=9, shuffle=Blosc.BITSHUFFLE)
        found["Blosc zstd 9, bit shuffle (numcodecs)"] = lambda: [blosc.encode(bands)]
    rows = []
    for name, work in found.items():
        seconds, pieces = best(repeat, work)
        bits = 8 * sum(len(piece) for piece in pieces) / cube.size
        rows.append({"case": name, "bits": bits, "MS/s": (cube.size / seconds / 1e6, None)})
        print(f"  {name:55s} {bits:7.3f}   {cube.size / seconds / 1e6:7.1f}", flush=True)
    return rows


def outside_check(cube: NDArray[Any], image: ImageLayout) -> str:
    """The block-adaptive coder against libaec: bodies of the same length, each read by the other.

    Where two codes of a block are equally long, either may be chosen, so the bytes themselves may differ.
    """
    if importlib.util.find_spec("imagecodecs") is None:
        return "imagecodecs is not installed"
    checked = equal = 0
    small = replace(image, rows=12, columns=40, bands=10)
    for block, interval, order, step in itertools.product(
        (8, 16, 32, 64), (64, 128, 4096), ("bi", "bsq"), (1, 64, 4096)
    ):
        parameters = preset_parameters(
            small, coder="block-adaptive", block_size=block, reference_interval=interval, order=order
        )
        equal += _agrees(cube[:12, :40, :10] // step, parameters, block, interval)
        checked += 1
    return f"libaec: {checked} bodies of the same length, each read by the other; {equal} equal byte for byte"


def _agrees(samples: NDArray[Any], parameters: StreamParameters, block: int, interval: int) -> bool:
    import imagecodecs

    image = parameters.image
    stream = compress(samples, parameters)
    size = StreamDecoder(stream).header_bytes
    residuals = model_residuals(samples.transpose(2, 0, 1).astype(int), image, parameters.predictor)
    values = np.array([residuals[place] for place in coding_order(parameters)], np.uint16)
    values = np.concatenate([values, np.zeros(-values.size % block, np.uint16)])
    # Flag 0: neither their preprocessor nor signed samples.
    options = {"bitspersample": image.dynamic_range, "blocksize": block, "rsi": interval, "flags": 0}
    theirs = imagecodecs.aec_encode(values, **options)
    assert len(theirs) == len(stream) - size, (block, interval, parameters.order)
    assert np.array_equal(decompress(stream[:size] + theirs)[0], samples)
    back = imagecodecs.aec_decode(stream[size:], out=values.nbytes, **options)
    assert np.array_equal(np.frombuffer(back, np.uint16), values)
    return theirs == stream[size:]


def processor() -> str:
    """Name of the processor, as the system has it."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{name or platform.processor()} ({platform.machine()}, {os.cpu_count()} processors)"


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cube", nargs="?", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="plain streams alone")
    options = parser.parse_args()
    cube = np.ascontiguousarray(np.load(options.cube or default_cube()))
    depth = max(int(cube.max()).bit_length(), 2)
    rows, columns, bands = cube.shape
    image = ImageLayout(columns=columns, rows=rows, bands=bands, dynamic_range=depth)
    load = os.getloadavg()[0]
    print(f"{rows} x {columns} x {bands}, {depth} bits; {processor()}, load {load:.1f} at the start")
    print(f"\n  one core, whole streams{'':32s} bits/sample   compress and decompress, MS/s")
    results = {"one core": one_core(cube, image, options.repeat)}
    ours = next(row for row in results["one core"] if row["case"].startswith("P=3"))["MS/s"]
    print_asked(1, ours)
    print(f"\n  plain streams over threads, P=3{'':24s} bits/sample   compress and decompress, MS/s")
    results["plain streams"] = plain_streams(cube, image, options.repeat, options.threads)
    print("\n  what the default preset takes, one core")
    results["stages"] = stages(cube, image, options.repeat)
    print_limits(results["stages"], results["plain streams"])
    if options.quick:
        return
    print("\n  wider numbers, one core")
    results["wider"] = wider(cube, image, options.repeat)
    print("\n  presets, one core")
    results["presets"] = presets(cube, image, options.repeat)
    print(f"\n  presets by cube, bits/sample{'':28s}    fast default    best")
    results["presets by cube"] = presets_by_cube(cube)
    print("\n  blocks over threads")
    results["blocks"] = scaling(cube, image, options.repeat, options.threads)
    print("\n  other codecs, one core, compression alone")
    results["peers"] = peers(cube, 1, depth)
    print(f"\n  {outside_check(cube, image)}")
    if options.json:
        facts = {"cube": [rows, columns, bands], "depth": depth, "load": load, "repeat": options.repeat}
        options.json.write_text(json.dumps({**facts, **results}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
