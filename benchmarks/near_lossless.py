"""Rate and distortion of near-lossless CCSDS 123.0-B-2, beside other ways to the same largest error.

    python benchmarks/near_lossless.py [CUBE.npy] [--repeat 5] [--figure FIGURE.svg]

The cubes are that of `hsi.py`, a part of it at 8 bits, and two that are made up, with much noise and with
little. For each largest error: bits a sample; root mean square error; PSNR, from 2**D - 1; and the spectral
angle between the pixels and those that came back, on average and at most. Every cube is read back, and its
errors are compared with the limit.

Other ways: samples rounded to multiples of ``2 * limit + 1`` and then kept without loss by the preset
`default`; JPEG-LS of the bands with that limit, where `imagecodecs` is installed.

Speeds are those of `hsi.py`: one thread, processor time, best of the repeats. With `--figure` the first cube
is drawn as SVG, by what draws the figures of reports.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from hsi import best, default_cube, made_up, processor
from numpy.typing import NDArray

from plait.hyperspectral.codec import compress, decompress
from plait.hyperspectral.parameters import ImageLayout
from plait.hyperspectral.presets import preset_parameters
from plait.reports.figure import StudyFigure, figure_files

LIMITS = (0, 1, 2, 4, 8, 16, 32, 64)
#: What is compared, by name: parameters of `preset_parameters`.
WAYS: dict[str, dict[str, Any]] = {
    "sample-adaptive": {},
    "hybrid": {"coder": "hybrid"},
    "hybrid, samples as they are": {"coder": "hybrid", "representatives": None},
}
ROUNDED = "rounded, then lossless"
JPEG_LS = "JPEG-LS of the bands"
Cube = NDArray[Any]


def image_of(cube: Cube) -> ImageLayout:
    """Size of a cube, with as many bits as its samples need."""
    rows, columns, bands = cube.shape
    depth = max(int(cube.max()).bit_length(), 2)
    return ImageLayout(columns=columns, rows=rows, bands=bands, dynamic_range=depth)


def near_lossless(cube: Cube, limit: int, **named: Any) -> tuple[int, Cube]:
    """Bytes of a stream, and the cube that comes back."""
    stream = compress(cube, preset_parameters(image_of(cube), max_error=limit, **named))
    return len(stream), decompress(stream)[0]


def rounded(cube: Cube, limit: int) -> tuple[int, Cube]:
    """The same of samples that are rounded before."""
    steps = (cube.astype(np.int64) + limit) // (2 * limit + 1)
    stream = compress(steps, preset_parameters(image_of(steps)))
    back = decompress(stream)[0].astype(np.int64) * (2 * limit + 1)
    return len(stream), np.minimum(back, (1 << image_of(cube).dynamic_range) - 1)


def jpeg_ls(cube: Cube, limit: int) -> tuple[int, Cube]:
    """The same of bands one by one."""
    import imagecodecs

    bands = [np.ascontiguousarray(band) for band in cube.transpose(2, 0, 1)]
    streams = [imagecodecs.jpegls_encode(band, level=limit) for band in bands]
    back = np.stack([imagecodecs.jpegls_decode(stream) for stream in streams], axis=2)
    return sum(map(len, streams)), back


def angles(cube: Cube, back: Cube) -> NDArray[np.float64]:
    """Spectral angles between pixels, in degrees."""
    a, b = (one.reshape(-1, one.shape[2]).astype(np.float64) for one in (cube, back))
    # By the distance of unit vectors, because the cosine of a small angle is 1.
    a, b = (one / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1e-30) for one in (a, b))
    return np.degrees(2 * np.arcsin(np.clip(np.linalg.norm(a - b, axis=1) / 2, 0, 1)))


def measured(cube: Cube, limit: int, size: int, back: Cube) -> dict[str, float]:
    """Rate and distortion; the errors must be within the limit."""
    errors = back.astype(np.int64) - cube
    assert int(np.abs(errors).max()) <= limit
    root = float(np.sqrt(np.square(errors, dtype=np.float64).mean()))
    peak, own = (1 << image_of(cube).dynamic_range) - 1, angles(cube, back)
    return {
        "limit": limit,
        "bits": 8 * size / cube.size,
        "error": int(np.abs(errors).max()),
        "rms": root,
        "PSNR": 20 * np.log10(peak / root) if root else float("inf"),
        "angle": float(own.mean()),
        "largest angle": float(own.max()),
    }


def ways() -> Iterator[tuple[str, Callable[[Cube, int], tuple[int, Cube]]]]:
    """All that is compared."""
    for name, named in WAYS.items():
        yield name, lambda cube, limit, named=named: near_lossless(cube, limit, **named)
    yield ROUNDED, rounded
    if importlib.util.find_spec("imagecodecs") is not None:
        yield JPEG_LS, jpeg_ls


def rates(name: str, cube: Cube) -> list[dict[str, Any]]:
    """Every way to every limit."""
    print(f"\n  {name}, {image_of(cube).dynamic_range} bits")
    print("  limit  way                          bits/sample  error     rms   PSNR  angle, degrees   at most")
    found = []
    for limit in LIMITS:
        for way, work in ways():
            row = measured(cube, limit, *work(cube, limit))
            found.append({"way": way, **row})
            print(
                f"  {limit:5d}  {way:28s} {row['bits']:11.3f} {row['error']:6d} {row['rms']:7.2f}"
                f" {row['PSNR']:6.1f} {row['angle']:15.4f} {row['largest angle']:9.4f}",
                flush=True,
            )
    return found


def speeds(cube: Cube, repeat: int) -> None:
    """Near-lossless beside lossless, by turns, so that both have the same neighbours."""
    image = image_of(cube)
    cases: dict[str, dict[str, Any]] = {"lossless": {}}
    for limit in (1, 4, 32):
        cases[f"largest error {limit}"] = {"max_error": limit}
    cases["relative error 0.01"] = {"relative_error": 0.01}
    cases["lossless, hybrid"] = {"coder": "hybrid"}
    cases["largest error 32, hybrid"] = {"coder": "hybrid", "max_error": 32}
    least = {name: [float("inf")] * 2 for name in cases}
    for _ in range(repeat):
        for name, named in cases.items():
            parameters = preset_parameters(image, **named)
            there, stream = best(1, lambda p=parameters: compress(cube, p))
            back, _ = best(1, lambda s=stream: decompress(s))
            least[name] = [min(pair) for pair in zip(least[name], (there, back), strict=True)]
    for name, (there, back) in least.items():
        base = least["lossless, hybrid" if "hybrid" in name else "lossless"]
        ratios = f"{there / base[0]:5.2f} {back / base[1]:5.2f}"
        print(f"  {name:38s} {cube.size / there / 1e6:7.1f} {cube.size / back / 1e6:7.1f}   {ratios}")


def figure(rows: list[dict[str, Any]]) -> bytes:
    """Bits by largest error, and spectral angle by bits, as SVG."""
    style = json.loads((files("plait.reports") / "data" / "figures.json").read_text("utf-8"))
    names = [name for name, _ in ways()]
    colours = ["$count", "$shared", "$alone", "$n2", "$ndn"][: len(names)]
    colour = {"field": "way", "title": None, "scale": {"domain": names, "range": colours}}
    colour["legend"] = {"orient": "bottom", "columns": 3}
    mark = {"type": "line", "strokeWidth": 2, "point": {"filled": True, "size": 45}}
    panels = []
    for x, y in (
        (("limit", "largest error of a sample", "symlog"), ("bits", "bits a sample", "linear")),
        (("bits", "bits a sample", "linear"), ("angle", "mean spectral angle, degrees", "linear")),
    ):
        axes = {
            way: {"field": field, "type": "quantitative", "title": title, "scale": {"type": scale}}
            for way, (field, title, scale) in (("x", x), ("y", y))
        }
        if x[0] == "limit":
            axes["x"]["axis"] = {"values": list(LIMITS)}
        order = {"field": "limit", "type": "quantitative"}
        encoding = {**axes, "order": order, "color": {**colour, "type": "nominal"}}
        panels.append({"mark": mark, "encoding": encoding, "width": 380, "height": 300})
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "$paper",
        "data": {"values": rows},
        "config": style["config"],
        "hconcat": panels,
    }
    caption = (
        "Indian Pines (AVIRIS, 145 x 145 pixels, 200 bands, 14 bits); three bands before, full prediction."
    )
    title = "Near-lossless compression: rate and distortion"
    return figure_files(StudyFigure("near-lossless", "", title, caption, spec=spec))[1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cube", nargs="?", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    cube = np.ascontiguousarray(np.load(options.cube or default_cube()))
    print(f"{processor()}, load {os.getloadavg()[0]:.1f} at the start")
    print(f"\n  one core{'':31s} compress and decompress, MS/s, and their time to that of lossless")
    speeds(cube, options.repeat)
    rows = rates("{} x {} x {}".format(*cube.shape), cube)
    if options.figure:
        options.figure.write_bytes(figure(rows))
    eight = np.ascontiguousarray(cube[:100, :100] >> max(int(cube.max()).bit_length() - 8, 0))
    rates("100 x 100 of it at 8 bits", eight.astype(np.uint8))
    rates("made up, 100 x 100 x 198, noise 1.0", made_up(100, 100, 198, 1, 1.0))
    rates("made up, 200 x 200 x 60, noise 0.1", made_up(200, 200, 60, 2, 0.1))


if __name__ == "__main__":
    main()
