"""CCSDS 123: compiled code against the plain-Python definitions, byte for byte, in both directions.

With the compiler, four of the sixteen kinds of predictors; without it, all of them.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ccsds123_coders import decode_block_adaptive, decode_sample_adaptive
from support.ccsds123_hybrid import decode_hybrid
from support.ccsds123_predictor import model_residuals, model_samples
from support.ccsds123_strategies import PREDICTOR_KINDS, cubes, stream_parameters
from support.ccsds123_streams import model_stream
from support.examples import often, seldom_compiled

from plait.hyperspectral.codec import Checkpoint, StreamDecoder, compress, decompress
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    Coder,
    HybridCoder,
    ImageLayout,
    Predictor,
    Representatives,
    SampleAdaptive,
    StreamParameters,
    WeightOffsets,
)
from plait.hyperspectral.waves import BandWaves, is_narrow

COMPILED = (("wide-neighbor", False, False), ("narrow-column", True, True))
KINDS = PREDICTOR_KINDS if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0") else COMPILED


@seldom_compiled
@given(data=st.data(), parameters=stream_parameters(KINDS))
def test_streams_are_those_of_the_definitions(data: st.DataObject, parameters: StreamParameters) -> None:
    cube = data.draw(cubes(parameters.image))
    stream = compress(cube, parameters)
    assert stream == model_stream(cube, parameters)
    found, told = decompress(stream)
    np.testing.assert_array_equal(found, cube)
    assert told == parameters


@seldom_compiled
@given(data=st.data(), parameters=stream_parameters(KINDS, most_bands=6))
def test_definitions_read_what_they_write(data: st.DataObject, parameters: StreamParameters) -> None:
    cube = data.draw(cubes(parameters.image))
    stream = compress(cube, parameters)
    body = stream[StreamDecoder(stream).header_bytes :]
    bits = "".join(f"{byte:08b}" for byte in body)
    decode = {
        SampleAdaptive: decode_sample_adaptive,
        BlockAdaptive: decode_block_adaptive,
        HybridCoder: decode_hybrid,
    }[type(parameters.coder)]
    residuals = decode(bits, parameters)
    np.testing.assert_array_equal(
        model_samples(residuals, parameters.image, parameters.predictor), cube.transpose(2, 0, 1)
    )


@seldom_compiled
@given(data=st.data(), parameters=stream_parameters(COMPILED))
def test_decoding_goes_on_from_checkpoints(data: st.DataObject, parameters: StreamParameters) -> None:
    if isinstance(parameters.coder, HybridCoder):
        parameters = replace(parameters, coder=BlockAdaptive(block_size=8, reference_interval=3))
    cube, rows = data.draw(cubes(parameters.image)), parameters.image.rows
    decoder, every = StreamDecoder(compress(cube, parameters)), data.draw(st.integers(1, 4))
    found: list[Checkpoint] = []
    np.testing.assert_array_equal(np.concatenate(list(decoder.rows(every=every, found=found.append))), cube)
    assert [checkpoint.row for checkpoint in found] == list(range(every, rows, every))
    for start in found:
        last = data.draw(st.integers(start.row + 1, rows))
        part = np.concatenate(list(decoder.rows(start, last, step=data.draw(st.integers(1, 5)))))
        np.testing.assert_array_equal(part, cube[start.row : last])


@pytest.mark.interpreted
def test_a_checkpoint_may_lie_behind_the_last_bit() -> None:
    """The last block holds the samples of all rows that follow, and ends with a word of 32 bits."""
    image = ImageLayout(columns=1, rows=2, bands=2, dynamic_range=12)
    predictor = Predictor(prediction_bands=1, mode="reduced", local_sum="wide-column")
    parameters = StreamParameters(image=image, predictor=predictor, coder=BlockAdaptive(block_size=8))
    cube = np.array([[[2048, 1936]], [[2048, 2048]]])
    decoder = StreamDecoder(compress(cube, parameters))
    found: list[Checkpoint] = []
    list(decoder.rows(every=1, found=found.append))
    assert {start.positions[0] for start in found} == {8 * decoder.body_bytes}
    for start in found:
        np.testing.assert_array_equal(np.concatenate(list(decoder.rows(start))), cube[start.row :])


@seldom_compiled
@given(data=st.data(), parameters=stream_parameters(COMPILED, most_bands=40))
def test_stretches_and_waves_of_any_length(data: st.DataObject, parameters: StreamParameters) -> None:
    image, predictor = parameters.image, parameters.predictor
    cube = data.draw(cubes(image))
    stretch, bands = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([16, 32]))
    values = np.ascontiguousarray(cube.reshape(-1, image.bands)) - image.middle
    expected = model_residuals(cube.transpose(2, 0, 1), image, predictor).reshape(image.bands, -1).T
    there = BandWaves(image, predictor, stretch=stretch, most_bands=bands)
    back = BandWaves(image, predictor, stretch=stretch, most_bands=bands, backwards=True)
    moved = values.copy()
    there.run(moved)
    np.testing.assert_array_equal(moved, expected)
    back.run(moved)
    np.testing.assert_array_equal(moved, values)


@seldom_compiled
@pytest.mark.parametrize("shift", often(1, [-6, 0]))
@pytest.mark.parametrize("depth", [2, 16])
def test_numbers_of_32_bits_at_their_limits(depth: int, shift: int) -> None:
    """Weights at their limits, samples at theirs, and differences shifted as far as they may be."""
    image = ImageLayout(columns=5, rows=5, bands=18, dynamic_range=depth)
    low, high = (-(1 << 21), (1 << 21) - 1)
    shifts = tuple((shift,) * min(z, 15) for z in range(18))
    predictor = Predictor(
        prediction_bands=15,
        weight_resolution=19,
        register_size=64,
        weight_initial=-6,
        weight_table_resolution=22,
        weight_table=tuple(((low, high) * 9)[: 3 + min(z, 15)] for z in range(18)),
        weight_offsets=WeightOffsets(own=(shift,) * 18, others=shifts) if shift else None,
    )
    coder = SampleAdaptive(accumulator_constant=0)
    parameters = StreamParameters(image=image, predictor=predictor, coder=coder)
    assert is_narrow(image, predictor) == (shift == 0)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        cube = np.where(rng.random((5, 5, 18)) < 0.5, image.least, image.largest)
        if seed == 0:
            cube = (np.indices(cube.shape).sum(axis=0) % 2) * image.largest
        stream = compress(cube, parameters)
        assert stream == model_stream(cube, parameters)
        np.testing.assert_array_equal(decompress(stream)[0], cube)


def test_many_bands_take_several_waves() -> None:
    image = ImageLayout(columns=4, rows=3, bands=530, dynamic_range=12)
    rng = np.random.default_rng(5)
    cube = np.clip(np.cumsum(rng.integers(-9, 10, (3, 4, 530)), axis=2) + 2048, 0, 4095)
    parameters = StreamParameters(
        image=image, predictor=Predictor(prediction_bands=15), interleaving_depth=530, output_word_size=4
    )
    stream = compress(cube, parameters)
    assert stream == model_stream(cube, parameters)
    np.testing.assert_array_equal(decompress(stream)[0], cube)


@pytest.mark.parametrize(
    ("size", "coder"),
    often(
        1,
        [
            ((1, 65536, 2), BlockAdaptive()),
            ((65536, 1, 2), SampleAdaptive()),
            ((65536, 1, 2), HybridCoder()),
            ((65536, 1, 2), BlockAdaptive()),
            ((1, 65536, 2), SampleAdaptive()),
            ((1, 65536, 2), HybridCoder()),
            ((1, 1, 65536), SampleAdaptive()),
            ((2, 2, 65536), HybridCoder()),
        ],
    ),
)
def test_the_largest_sizes(size: tuple[int, int, int], coder: Coder) -> None:
    rows, columns, bands = size
    image = ImageLayout(columns=columns, rows=rows, bands=bands, dynamic_range=9, signed=True)
    predictor = Predictor()
    if columns == 1:
        # Of the kind that other tests compile as well.
        predictor = Predictor(
            mode="reduced",
            local_sum="narrow-column",
            representatives=Representatives(resolution=0, damping=0),
            weight_offsets=WeightOffsets(
                own=(0,) * bands, others=tuple((0,) * min(z, 3) for z in range(bands))
            ),
        )
    rng = np.random.default_rng(2)
    cube = np.clip(np.cumsum(rng.integers(-1, 2, size), axis=0), -256, 255)
    for order, depth in (("bi", bands), ("bsq", 1)):
        parameters = StreamParameters(
            image=image, predictor=predictor, coder=coder, order=order, interleaving_depth=depth
        )
        found, told = decompress(compress(cube, parameters))
        np.testing.assert_array_equal(found, cube)
        assert told == parameters
