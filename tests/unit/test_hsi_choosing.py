"""Parameters that are chosen for a cube by compressing a sample of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.examples import often

from plait.errors import InvalidInput
from plait.hyperspectral import compress, compress_cube, compress_file, open_stream, preset_parameters
from plait.hyperspectral.choosing import parameters_for
from plait.hyperspectral.containers import BlockGrid
from plait.hyperspectral.cubes import ArrayCube, image_of
from plait.hyperspectral.parameters import BlockAdaptive, WeightOffsets


def _cube(rows: int, columns: int, bands: int, *, stripes: float = 0, noise: float = 3) -> NDArray[np.uint16]:
    rng = np.random.default_rng(5)
    y, x, z = np.ogrid[:rows, :columns, :bands]
    ground = 1000 + 200 * np.sin(y / 9 + z / 5) + 150 * np.cos(x / 7)
    ground = ground + stripes * rng.standard_normal((columns, bands))
    return np.rint(ground + noise * rng.standard_normal(ground.shape)).clip(0, 4095).astype(np.uint16)


class _Watched(ArrayCube):
    def __init__(self, samples: NDArray[Any]) -> None:
        super().__init__(samples)
        self.reads: list[tuple[int, int, int, int]] = []

    def read(
        self, first: int, last: int, first_column: int = 0, last_column: int | None = None
    ) -> NDArray[Any]:
        last_column = self.columns if last_column is None else last_column
        self.reads.append((first, last, first_column, last_column))
        return super().read(first, last, first_column, last_column)


@pytest.mark.parametrize("stripes", [0, 60])
@pytest.mark.parametrize(
    "shape", often(2, [((24, 20, 9),), ((1, 1, 1),), ((5, 40, 3),), ((1, 7, 2),), ((9, 1, 4),)])
)
def test_it_is_no_larger_than_any_preset(shape: tuple[int, int, int], stripes: float) -> None:
    cube = _cube(*shape, stripes=stripes)
    source = ArrayCube(cube)
    image = image_of(source, 12)
    # All of it is in the sample, so that the sizes are those of the streams.
    chosen = len(compress(cube, parameters_for(source, image, "auto")))
    others = [len(compress(cube, preset_parameters(image, name))) for name in ("fast", "default", "best")]
    assert chosen <= min(others)
    assert parameters_for(source, image, "best") == preset_parameters(image, "best")


@pytest.mark.slow
def test_stripes_ask_for_sums_of_columns(tmp_path: Path) -> None:
    cube = _cube(60, 40, 12, stripes=80)
    summary = compress_cube(ArrayCube(cube), tmp_path / "a.c123", preset="auto")
    assert summary.parameters.predictor.local_sum.endswith("column")
    usual = compress_cube(ArrayCube(cube), tmp_path / "b.c123")
    assert summary.compressed_bytes < 0.9 * usual.compressed_bytes
    with open_stream(tmp_path / "a.c123") as opened:
        np.testing.assert_array_equal(opened.read(0, 60), cube)


def test_offsets_of_weight_exponents() -> None:
    """They are chosen, and where none are asked for all else is."""
    cube = _cube(60, 40, 12, stripes=60)
    source = ArrayCube(cube)
    image = image_of(source, 12)
    found = parameters_for(source, image, "auto")
    offsets = found.predictor.weight_offsets
    assert offsets is not None and offsets.others[1] == (-1,) and set(offsets.own) == {0}
    before = found.predictor.prediction_bands
    assert [len(one) for one in offsets.others] == [min(z, before) for z in range(12)]
    without = parameters_for(source, image, "auto", weight_offsets=None)
    assert without == replace(found, predictor=replace(found.predictor, weight_offsets=None))
    assert len(compress(cube, found)) < len(compress(cube, without))


def test_only_a_sample_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.hyperspectral.choosing.SAMPLE", 16 * 20 * 4)
    source = _Watched(_cube(400, 20, 4, stripes=50))
    image = image_of(source, 12)
    whole = parameters_for(source, image, "auto")
    assert source.reads == [(0, 4, 0, 20), (100, 104, 0, 20), (200, 204, 0, 20), (300, 304, 0, 20)]
    assert whole.image == image and whole.predictor.local_sum.endswith("column")
    source.reads.clear()
    # Blocks of 100 pixels: three of them are as many as the sample has.
    parameters_for(source, image, "auto", BlockGrid.parse("tiles:10x10", image))
    assert (
        source.reads == [(130, 140, 0, 10), (200, 210, 10, 20), (330, 340, 10, 20)] or len(source.reads) == 3
    )
    assert all(last - first == 10 == right - left for first, last, left, right in source.reads)


def test_what_is_named_stays() -> None:
    cube = _cube(30, 20, 6, stripes=70)
    source = ArrayCube(cube)
    image = image_of(source, 12)
    named: dict[str, Any] = {"local_sum": "wide-neighbor", "prediction_bands": 2, "representatives": None}
    found = parameters_for(source, image, "auto", **named).predictor
    assert {name: getattr(found, name) for name in named} == named
    offsets = WeightOffsets(own=(0,) * 6, others=tuple((1,) * min(z, 3) for z in range(6)))
    found = parameters_for(source, image, "auto", weight_offsets=offsets).predictor
    assert found.prediction_bands == 3 and found.weight_offsets == offsets
    other = parameters_for(source, image, "auto", coder="block-adaptive", order="bsq", block_size=8)
    assert isinstance(other.coder, BlockAdaptive) and other.order == "bsq"
    best = preset_parameters(image, "best", coder="block-adaptive", order="bsq", block_size=8)
    assert len(compress(cube, other)) <= len(compress(cube, best))


def test_it_needs_a_cube() -> None:
    image = image_of(ArrayCube(_cube(2, 3, 4)), 12)
    with pytest.raises(InvalidInput, match="a cube to look at"):
        preset_parameters(image, "auto")
    with pytest.raises(InvalidInput, match="odd"):
        parameters_for(ArrayCube(_cube(2, 3, 4)), image, "auto", odd=1)


@pytest.mark.parametrize(
    ("blocks", "told"), [("tiles:10x10", True), ("rows:30", False), ("tiles:50x50", False)]
)
def test_small_blocks_are_warned_of(tmp_path: Path, blocks: str, told: bool) -> None:
    np.save(tmp_path / "a.npy", _cube(60, 100, 2))
    done = compress_file(tmp_path / "a.npy", tmp_path / "a.c123", preset="fast", blocks=blocks)
    assert [note for note in done.notes if "learns anew" in note] == list(done.notes) and bool(
        done.notes
    ) is told
    if told:
        assert done.notes[0].startswith("blocks of 100 pixels cost some percent")


@pytest.mark.parametrize("blocks", [None, "rows:100"])
def test_it_is_no_larger_than_fast_where_the_sample_misleads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, blocks: str | None
) -> None:
    monkeypatch.setattr("plait.hyperspectral.choosing.SAMPLE", 16 * 20 * 4)
    cube, striped = _cube(400, 20, 4, noise=1), _cube(400, 20, 4, stripes=300)
    # The rows that are looked at, and no others.
    for first in (0, 100, 200, 300):
        cube[first : first + 4] = striped[first : first + 4]
    image = image_of(ArrayCube(cube), 12)
    grid = None if blocks is None else BlockGrid.parse(blocks, image)
    fast = preset_parameters(image, "fast")

    def size(**options: Any) -> int:
        pieces: list[bytes] = []
        compress_cube(ArrayCube(cube), pieces.append, blocks=blocks, **options)
        return sum(map(len, pieces))

    misled = parameters_for(ArrayCube(cube), image, "auto", grid)
    least = size(parameters=fast)
    if blocks is None:
        assert size(parameters=misled) > least
    assert size(parameters=misled, fallback=fast) == min(size(parameters=misled), least)
    np.save(tmp_path / "in.npy", cube)
    done = compress_file(
        tmp_path / "in.npy", tmp_path / "a.c123", preset="auto", blocks=blocks, dynamic_range=12
    )
    assert done.summary.compressed_bytes == (tmp_path / "a.c123").stat().st_size
    beside = compress_file(
        tmp_path / "in.npy", tmp_path / "b.c123", preset="fast", blocks=blocks, dynamic_range=12
    )
    assert done.summary.compressed_bytes <= beside.summary.compressed_bytes
    with open_stream(tmp_path / "a.c123") as opened:
        assert opened.verify() == ()
        np.testing.assert_array_equal(opened.read(0, 400), cube)


def test_a_fallback_has_the_same_image() -> None:
    cube = ArrayCube(_cube(9, 5, 3))
    image = image_of(cube, 12)
    other = preset_parameters(image_of(ArrayCube(_cube(9, 5, 4)), 12))
    with pytest.raises(InvalidInput, match="cube: found 9 rows, 5 columns, 3 bands"):
        compress_cube(cube, [].append, parameters=preset_parameters(image), fallback=other)
