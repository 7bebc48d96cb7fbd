"""CCSDS 123: streams known byte for byte, and the places where implementations have gone wrong.

The worked example is coded alike by three independent programs. The other cases are compared with the
plain-Python definitions, which say in so many words what the standard says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.ccsds123_predictor import model_residuals
from support.ccsds123_streams import model_stream
from support.examples import often, seldom_compiled

from plait.hyperspectral.codec import compress, decompress
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    HybridCoder,
    ImageLayout,
    Predictor,
    Representatives,
    SampleAdaptive,
    StreamParameters,
    WeightOffsets,
)

WORKED = np.array(
    [[[100, 103, 101], [105, 108, 110]], [[120, 124, 121], [126, 131, 133]]], np.uint8
).transpose(1, 2, 0)
IMAGE = ImageLayout(columns=3, rows=2, bands=2, dynamic_range=8)
PREDICTOR = Predictor(
    prediction_bands=1,
    register_size=32,
    weight_resolution=6,
    weight_interval=16,
    weight_initial=-1,
    weight_final=3,
)
#: With these, a narrow column is the kind of predictor that other tests have compiled.
COMPILED: dict[str, Any] = {
    "representatives": Representatives(resolution=2, damping=3),
    "weight_offsets": WeightOffsets(own=(0,), others=((),)),
}
SAMPLE_ADAPTIVE = "00000300020002100002080004202059008226 3728dacaea746e"
BLOCK_ADAPTIVE = "000003000200021000020c0004202059000040 8041ff8aa2c50240bf40"


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("coder", "expected"),
    [
        (
            SampleAdaptive(
                unary_length_limit=16,
                rescaling_counter_size=6,
                initial_count_exponent=1,
                accumulator_constant=3,
            ),
            SAMPLE_ADAPTIVE,
        ),
        (BlockAdaptive(block_size=8, reference_interval=64), BLOCK_ADAPTIVE),
    ],
)
def test_the_worked_example(coder: Any, expected: str) -> None:
    parameters = StreamParameters(image=IMAGE, predictor=PREDICTOR, coder=coder, interleaving_depth=2)
    stream = bytes.fromhex(expected)
    assert compress(WORKED, parameters) == stream
    found, told = decompress(stream)
    np.testing.assert_array_equal(found, WORKED)
    assert found.dtype == np.uint8
    assert told == parameters


@pytest.mark.interpreted(alone=True)
def test_the_residuals_of_the_worked_example() -> None:
    found = model_residuals(WORKED.transpose(2, 0, 1), IMAGE, PREDICTOR)
    assert found.reshape(2, 6).tolist() == [[55, 5, 4, 6, 11, 13], [40, 2, 2, 1, 4, 2]]


def _walk(seed: int, shape: tuple[int, int, int], image: ImageLayout, step: int = 3) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return np.clip(
        np.cumsum(rng.integers(-step, step + 1, shape), axis=1) + image.middle, image.least, image.largest
    )


def _agrees(cube: NDArray[Any], parameters: StreamParameters) -> bytes:
    stream = compress(cube, parameters)
    assert stream == model_stream(cube, parameters)
    found, told = decompress(stream)
    np.testing.assert_array_equal(found, cube)
    assert told == parameters
    return stream


@seldom_compiled
@pytest.mark.parametrize("register", range(32, 39))
def test_small_registers_wrap(register: int) -> None:
    image = ImageLayout(columns=5, rows=4, bands=4, dynamic_range=16)
    cube = np.random.default_rng(register).choice([0, 1, 65534, 65535], (4, 5, 4))
    predictor = Predictor(register_size=register, weight_resolution=14, weight_initial=-6, weight_final=-6)
    _agrees(cube, StreamParameters(image=image, predictor=predictor, interleaving_depth=4))


@pytest.mark.interpreted
@pytest.mark.parametrize(("resolution", "bits"), [(4, 7), (4, 6), (4, 3), (19, 22), (19, 21), (13, 16)])
def test_custom_weights_of_the_finest_resolution(resolution: int, bits: int) -> None:
    image = ImageLayout(columns=4, rows=3, bands=3, dynamic_range=10)
    half = 1 << (bits - 1)
    table = tuple(tuple((-half, -1, 0, half - 1, 1)[k % 5] for k in range(min(z, 2) + 3)) for z in range(3))
    predictor = Predictor(
        prediction_bands=2,
        weight_resolution=resolution,
        weight_table_resolution=bits,
        weight_table=table,
    )
    _agrees(_walk(1, (3, 4, 3), image), StreamParameters(image=image, predictor=predictor))


@pytest.mark.interpreted
def test_exponents_below_zero_shift_to_the_left() -> None:
    image = ImageLayout(columns=6, rows=4, bands=2, dynamic_range=2)
    predictor = Predictor(weight_resolution=19, weight_initial=-6, weight_final=-5, weight_interval=16)
    coder = SampleAdaptive(accumulator_constant=0)
    _agrees(_walk(2, (4, 6, 2), image), StreamParameters(image=image, predictor=predictor, coder=coder))


@pytest.mark.parametrize(
    ("blocks", "interval", "sizes"),
    [
        *((64, 64, "zero"), (130, 100, "zero"), (70, 5, "end"), (133, 66, "end"), (64, 4096, "start")),
        *(
            pytest.param(*case, marks=pytest.mark.interpreted)
            for case in ((1, 1, "zero"), (5, 4096, "zero"), (65, 4096, "zero"), (66, 64, "end"))
        ),
        pytest.param(9, 4096, "start", marks=pytest.mark.interpreted),
    ],
)
def test_runs_of_zero_blocks(blocks: int, interval: int, sizes: str) -> None:
    # No prediction across bands and a constant image: every residual but the first is zero.
    image = ImageLayout(columns=8, rows=blocks, bands=1, dynamic_range=8)
    cube = np.full((blocks, 8, 1), 128)
    if sizes == "end":
        cube[-1, -1] = 131
    if sizes == "start":
        cube[0, 0] = 140
        cube[1:] = 140
    predictor = Predictor(prediction_bands=0)
    coder = BlockAdaptive(block_size=8, reference_interval=interval)
    _agrees(cube, StreamParameters(image=image, predictor=predictor, coder=coder))


@pytest.mark.interpreted
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_restricted_code_options(depth: int) -> None:
    image = ImageLayout(columns=8, rows=6, bands=2, dynamic_range=depth)
    cube = np.random.default_rng(depth).integers(0, 1 << depth, (6, 8, 2)) * (np.arange(6) % 2)[:, None, None]
    predictor = Predictor(prediction_bands=0)
    streams = [
        _agrees(
            cube,
            StreamParameters(
                image=image, predictor=predictor, coder=BlockAdaptive(block_size=8, restricted=restricted)
            ),
        )
        for restricted in (False, True)
    ]
    assert streams[0] != streams[1]


@pytest.mark.parametrize("depth", often(1, [2, 4, 8, 9]))
def test_the_shortest_bodies_are_read(depth: int) -> None:
    # Runs of 64 zero blocks take seven bits with two-bit samples, and some more with deeper ones.
    image = ImageLayout(columns=64, rows=16, bands=8, dynamic_range=depth)
    coder = BlockAdaptive(block_size=8, restricted=depth <= 4)
    stream = _agrees(
        np.full((16, 64, 8), image.middle), StreamParameters(image=image, coder=coder, interleaving_depth=8)
    )
    assert len(stream) == 19 + {2: 14, 4: 16, 8: 18, 9: 20}[depth]


@seldom_compiled
@pytest.mark.parametrize("coder", [SampleAdaptive(accumulator_constant=0), BlockAdaptive(), HybridCoder()])
@pytest.mark.parametrize("signed", [False, True])
def test_one_sample(coder: Any, signed: bool) -> None:
    image = ImageLayout(columns=1, rows=1, bands=1, dynamic_range=2, signed=signed)
    predictor = Predictor(mode="reduced", local_sum="narrow-column", **COMPILED)
    for value in range(image.least, image.largest + 1):
        for word in (1, 3, 8):
            parameters = StreamParameters(
                image=image, predictor=predictor, coder=coder, output_word_size=word
            )
            stream = _agrees(np.full((1, 1, 1), value), parameters)
            assert len(stream) % word == 0


@pytest.mark.interpreted
def test_signed_samples_give_the_residuals_of_shifted_ones() -> None:
    shape = (4, 5, 3)
    cube = np.random.default_rng(3).integers(0, 1 << 12, shape)
    plain = ImageLayout(columns=5, rows=4, bands=3, dynamic_range=12)
    signed = ImageLayout(columns=5, rows=4, bands=3, dynamic_range=12, signed=True)
    a = compress(cube, StreamParameters(image=plain))
    b = compress(cube - (1 << 11), StreamParameters(image=signed))
    assert [k for k in range(len(a)) if a[k] != b[k]] == [7]


@pytest.mark.parametrize("most", [11, 9])
def test_long_bands_rescale_often(most: int) -> None:
    image = ImageLayout(columns=40, rows=30, bands=1, dynamic_range=7)
    for coder in (
        SampleAdaptive(rescaling_counter_size=most, accumulator_constant=5, initial_count_exponent=8),
        SampleAdaptive(rescaling_counter_size=4, accumulator_constant=0, unary_length_limit=8),
        HybridCoder(rescaling_counter_size=most),
        HybridCoder(rescaling_counter_size=4, unary_length_limit=8),
    ):
        predictor = Predictor(prediction_bands=0, weight_interval=16)
        parameters = StreamParameters(image=image, predictor=predictor, coder=coder)
        _agrees(_walk(most, (30, 40, 1), image, step=2), parameters)


@pytest.mark.interpreted
def test_the_hybrid_coder_may_start_anywhere() -> None:
    image = ImageLayout(columns=7, rows=5, bands=3, dynamic_range=10)
    cube = _walk(4, (5, 7, 3), image)
    streams = []
    for sums in (None, (0, 0, 0), (2047, 1, 900)):
        coder = HybridCoder(initial_count_exponent=1, initial_sums=sums)
        parameters = StreamParameters(image=image, coder=coder, interleaving_depth=3)
        streams.append(compress(cube, parameters))
        np.testing.assert_array_equal(decompress(streams[-1])[0], cube)
    assert len(set(streams)) == 3
