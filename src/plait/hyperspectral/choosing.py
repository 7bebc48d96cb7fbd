"""Parameters that are chosen for a cube by compressing a sample of it: the preset ``auto``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.hyperspectral.codec import Compressor
from plait.hyperspectral.containers import BlockGrid, Window
from plait.hyperspectral.cubes import CubeSource
from plait.hyperspectral.parameters import (
    ErrorLimits,
    ImageLayout,
    Representatives,
    StreamParameters,
    WeightOffsets,
)
from plait.hyperspectral.presets import AUTO, preset_parameters

#: Samples of a cube that are looked at; a row of each strip at the least.
SAMPLE: Final = 1 << 21
_STRIPS = 4
_Settings = Mapping[str, Any]


def _damped(eighths: int) -> dict[str, Any]:
    found = Representatives(resolution=3, damping=eighths) if eighths else None
    return {"representatives": found}


#: What is tried, one step after the other; each goes on from what was best before.
_STEPS: Final[tuple[tuple[dict[str, Any], ...], ...]] = (
    tuple(
        {"local_sum": local_sum, "mode": mode}
        for local_sum in ("wide-neighbor", "wide-column", "narrow-neighbor", "narrow-column")
        for mode in ("full", "reduced")
    ),
    tuple(_damped(eighths) for eighths in (0, 1, 2, 3, 4, 5)),
    tuple({"prediction_bands": bands} for bands in (1, 2, 3, 5, 8, 10, 15)),
    tuple(
        {"weight_interval": interval, "weight_final": final}
        for interval, final in ((64, 3), (64, 5), (256, 3), (256, 5), (256, 7), (1024, 5), (1024, 7))
    ),
    tuple({"rescaling_counter_size": size} for size in (4, 5, 6, 7)),
    tuple({"weight_resolution": resolution} for resolution in (13, 16, 19)),
    tuple(_damped(eighths) for eighths in (0, 1, 2, 3, 4, 5)),
)
#: Weight exponent offsets that are tried last: of the nearest band before, and of the others.
_OFFSETS: Final = ((-1, 0), (-1, 1))
#: Tables whose size is that of the predictor, by what then stays as it is.
_TABLES: Final = ("weight_table", "weight_offsets")
_OF_TABLES: Final = ("prediction_bands", "mode", "weight_resolution")


class _Piece(NamedTuple):
    """Samples, (rows, columns, bands), of a block of `pixels` pixels, or of a part of it."""

    samples: NDArray[Any]
    pixels: int


def parameters_for(
    source: CubeSource,
    image: ImageLayout,
    preset: str,
    grid: BlockGrid | None = None,
    **named: Any,
) -> StreamParameters:
    """Parameters of a preset, with some of one's own; those of ``auto`` are chosen for the cube.

    `image` is that of `source`, `grid` its blocks. What is `named` stays as it is. InvalidInput as in
    `preset_parameters`.
    """
    pixels = None if grid is None else grid.block_pixels
    if preset != AUTO:
        return preset_parameters(image, preset, pixels, **named)
    # Wrong names and values are told before anything is tried.
    preset_parameters(image, "default", pixels, **named)
    windows = [Window(0, image.rows, 0, image.columns)] if grid is None else list(grid)
    trial = _Trial(_sample(source, image, windows), image, named)
    # Tables go with the bands before of the usual preset, unless those are named.
    presets = ["default"] if _has_tables(named) else ["best", "default", "fast"]
    chosen = min(presets, key=lambda one: trial.bits(one, pixels, {}))
    best: dict[str, Any] = {}
    for step in _STEPS:
        best = trial.better(chosen, pixels, best, step)
    found = preset_parameters(image, chosen, pixels, **best, **named)
    best = trial.better(chosen, pixels, best, _offsets(image.bands, found.predictor.prediction_bands))
    return preset_parameters(image, chosen, pixels, **best, **named)


def _offsets(bands: int, before: int) -> list[dict[str, Any]]:
    found = []
    for nearest, other in _OFFSETS:
        rates = (nearest, *[other] * (before - 1))
        others = tuple(rates[: min(band, before)] for band in range(bands))
        found.append({"weight_offsets": WeightOffsets(own=(0,) * bands, others=others)})
    return found


def fallback_of(
    image: ImageLayout, preset: str, grid: BlockGrid | None = None, **named: Any
) -> StreamParameters | None:
    """Parameters of ``fast``, where a sample does not prove that those of ``auto`` make no larger stream.

    Arguments are as in `parameters_for`. None of other presets, and of cubes that the sample has all of.
    """
    pixels = image.rows * image.columns if grid is None else len(grid) * grid.block_pixels
    limits = named.get("error_limits")
    updated = isinstance(limits, ErrorLimits) and limits.update_exponent is not None
    if preset != AUTO or _has_tables(named) or (pixels * image.bands <= SAMPLE and not updated):
        return None
    return preset_parameters(image, "fast", None if grid is None else grid.block_pixels, **named)


def _has_tables(named: _Settings) -> bool:
    return any(named.get(name) is not None for name in _TABLES)


class _Trial:
    """Sizes of a sample with one set of parameters and another; `fixed` are names that may not change."""

    def __init__(self, pieces: Sequence[_Piece], image: ImageLayout, named: _Settings) -> None:
        self._pieces, self._image = pieces, image
        # There may be a value for each row, and a sample has few of them.
        self._named = {name: value for name, value in named.items() if name != "supplementary"}
        if isinstance(limits := named.get("error_limits"), ErrorLimits):
            self._named["error_limits"] = limits.at_first
        self.fixed = {*named}
        if _has_tables(named):
            self.fixed |= {*_OF_TABLES}
        if image.columns == 1:
            self.fixed |= {"mode", "local_sum"}
        if named.get("coder") == "block-adaptive":
            self.fixed.add("rescaling_counter_size")
        self._known: dict[str, float] = {}

    def bits(self, preset: str, pixels: int | None, settings: _Settings) -> float:
        """Bits of the blocks that the sample is of, as far as it tells."""
        key = repr((preset, sorted(settings.items())))
        if key not in self._known:
            self._known[key] = sum(
                _bits(
                    piece,
                    preset_parameters(
                        self._of(piece), preset, pixels or piece.pixels, **settings, **self._named
                    ),
                )
                for piece in self._pieces
            )
        return self._known[key]

    def better(
        self, preset: str, pixels: int | None, best: dict[str, Any], step: Sequence[_Settings]
    ) -> dict[str, Any]:
        """The best settings so far, or those with some of a step that may change and are better."""
        ways = [best, *({**best, **settings} for settings in step if not self.fixed & {*settings})]
        return min(ways, key=lambda one: self.bits(preset, pixels, one))

    def _of(self, piece: _Piece) -> ImageLayout:
        rows, columns, _ = piece.samples.shape
        return replace(self._image, rows=rows, columns=columns)


def _bits(piece: _Piece, parameters: StreamParameters) -> float:
    """Size of the block that a piece is of: what follows is taken to cost what its second half does."""
    rows, columns, _ = piece.samples.shape
    # In band-sequential order nothing is written before the end.
    half = 0 if parameters.order == "bsq" else rows // 2
    size = 0

    def add(data: bytes) -> None:
        nonlocal size
        size += len(data)

    compressor = Compressor(parameters, add)
    compressor.write(piece.samples[:half])
    before = size
    compressor.write(piece.samples[half:])
    compressor.close()
    more = (piece.pixels - half * columns) / ((rows - half) * columns)
    return float(8 * (before + more * (size - before)))


def _sample(source: CubeSource, image: ImageLayout, windows: Sequence[Window]) -> list[_Piece]:
    """Some of the blocks, or of one that is too large strips from all over it, one below the other."""
    most = SAMPLE // image.bands
    count = min(len(windows), max(1, most // windows[0].pixels))
    chosen = [windows[(2 * k + 1) * len(windows) // (2 * count)] for k in range(count)]
    found = []
    for window in chosen:
        first, last, left, right = window
        rows = max(_STRIPS, most // (right - left))
        if rows >= last - first:
            strips = [(first, last)]
        else:
            ends = [first + k * (last - first) // _STRIPS for k in range(_STRIPS)]
            strips = [(start, start + rows // _STRIPS) for start in ends]
        samples = np.concatenate([np.asarray(source.read(*strip, left, right)) for strip in strips])
        found.append(_Piece(samples, window.pixels))
    return found
