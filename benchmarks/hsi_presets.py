"""The presets of CCSDS 123 on several cubes, beside the best parameters that an exhaustive search finds.

    python benchmarks/hsi_presets.py [--search] [--output TABLE.txt]

Cubes are those of `hsi_cubes`: one that an instrument took and four that are simulated. Every size is that
of a whole stream, and every stream of a preset is decoded and compared. With ``--search``, 480 combinations
are tried on each cube: local sum, mode, prediction bands, damping of sample representatives, interval and
final exponent of learning; then the ten best with each memory of the coder and resolution of the weights.
It takes some minutes.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from hsi import processor
from hsi_cubes import CUBES
from numpy.typing import NDArray

from plait.hyperspectral.choosing import parameters_for
from plait.hyperspectral.chunks import needed_bits
from plait.hyperspectral.codec import compress, decompress
from plait.hyperspectral.cubes import ArrayCube, image_of
from plait.hyperspectral.parameters import ImageLayout, Representatives
from plait.hyperspectral.presets import preset_parameters

_SUMS = ("wide-neighbor", "wide-column", "narrow-neighbor", "narrow-column")
_LEARNING = ((64, 3), (256, 5), (256, 7), (1024, 7))
_BANDS = (1, 3, 5, 8, 15)


def search(cube: NDArray[Any], image: ImageLayout) -> tuple[float, dict[str, Any]]:
    """Bits a sample of the best parameters there are, and these."""

    def bits(named: dict[str, Any]) -> float:
        return 8 * len(compress(cube, preset_parameters(image, "best", **named))) / cube.size

    grid = itertools.product(_SUMS, ("full", "reduced"), _BANDS, (0, 2, 3), _LEARNING)
    found = []
    for local_sum, mode, bands, damping, (interval, final) in grid:
        named: dict[str, Any] = {"local_sum": local_sum, "mode": mode, "prediction_bands": bands}
        named |= {"weight_interval": interval, "weight_final": final, "rescaling_counter_size": 5}
        if damping:
            named["representatives"] = Representatives(resolution=3, damping=damping)
        found.append((bits(named), named))
    found.sort(key=lambda one: one[0])
    for _, named in found[:10]:
        for size, resolution in itertools.product((4, 6, 7), (13, 19)):
            one = {**named, "rescaling_counter_size": size, "weight_resolution": resolution}
            found.append((bits(one), one))
    return min(found, key=lambda one: one[0])


def told(named: dict[str, Any]) -> str:
    """Parameters in short."""
    damping = named.get("representatives")
    text = f"{named['local_sum']}, {named['mode']}, P={named['prediction_bands']}"
    text += f", t_inc {named['weight_interval']}, v_max {named['weight_final']}"
    text += f", gamma* {named['rescaling_counter_size']}"
    return f"{text}, damping {damping.damping}/{1 << damping.resolution}" if damping else text


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    say(f"{processor()}, load {os.getloadavg()[0]:.1f} at the start; bits a sample")
    say(
        f"{'':44s}{'fast':>8s}{'default':>8s}{'best':>8s}{'auto':>8s}  choosing, s"
        + "  searched" * options.search
    )
    for name, made in CUBES.items():
        cube = made()
        source = ArrayCube(cube)
        image = image_of(source, needed_bits(cube))
        sizes = {}
        for preset in ("fast", "default", "best", "auto"):
            start = time.process_time()
            parameters = parameters_for(source, image, preset)
            seconds = time.process_time() - start
            stream = compress(cube, parameters)
            assert np.array_equal(decompress(stream)[0], cube), name
            sizes[preset] = 8 * len(stream) / cube.size
        shown = "".join(f"{bits:8.3f}" for bits in sizes.values())
        line = f"{f'{name}, {cube.shape[2]} bands, {image.dynamic_range} bits':44.44s}{shown}{seconds:13.1f}"
        if options.search:
            least, named = search(cube, image)
            more = 100 * (sizes["auto"] / least - 1)
            line += f"{least:10.3f}, auto {more:+.2f} %; {told(named)}"
        say(line)
        assert sizes["best"] < sizes["default"] and sizes["auto"] <= min(sizes.values()), name
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
