"""Near-lossless CCSDS 123.0-B-2: compiled code against the plain-Python definitions, in both directions."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.ccsds123_coders import decode_block_adaptive, decode_sample_adaptive
from support.ccsds123_hybrid import decode_hybrid
from support.ccsds123_predictor import ModelPredictor, model_residuals, model_samples
from support.ccsds123_strategies import cubes, near_lossless
from support.ccsds123_streams import as_told, model_stream
from support.examples import seldom_compiled

from plait.hyperspectral.codec import Checkpoint, Compressor, StreamDecoder, compress, decompress
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    ErrorLimits,
    HybridCoder,
    ImageLayout,
    Predictor,
    Representatives,
    SampleAdaptive,
    StreamParameters,
)
from plait.hyperspectral.waves import BandWaves, apart
from plait.lang.lanes import LANES, host_lanes

#: Without the compiler, every width of groups; with it, that of this processor.
WIDTHS = (
    tuple(LANES.values()) if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0") else (host_lanes(64),)
)


def restored(cube: NDArray[np.int64], parameters: StreamParameters) -> tuple[NDArray[np.int64], ...]:
    """Samples as decoders have them, and their largest errors, (rows, columns, bands), by the definition."""
    image = parameters.image
    model = ModelPredictor(image, parameters.predictor)
    found, limits = np.zeros(cube.shape, np.int64), np.zeros(cube.shape, np.int64)
    predict = model._predict
    for y, x, z in np.ndindex(image.rows, image.columns, image.bands):
        limits[y, x, z] = model.error_limit(z, y, x, predict(z, y, x)[1] >> 1)
        model.residual(z, y, x, int(cube[y, x, z]))
        found[y, x, z] = model.samples[z, y, x]
    return found, limits


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("limits", "representatives", "samples", "indices"),
    [
        # 107 is 7 above 100, which is more than 2, so 5 are added; 103 is 2 below that.
        (ErrorLimits(absolute=2), None, [100, 105, 105], [55, 1, 0]),
        # 105 less a quarter of 2 psi, and a quarter of the way to 100.5, is 103: the prediction of the third.
        (
            ErrorLimits(absolute=2),
            Representatives(resolution=2, damping=1, offset=2),
            [100, 105, 103],
            [55, 1, 0],
        ),
        # Limits 10 * 100 / 256 = 3 and 10 * 107 / 256 = 4.
        (ErrorLimits(relative=10), None, [100, 107, 107], [55, 1, 0]),
        # The smaller one: 4 below is a step of 7.
        (ErrorLimits(relative=10, absolute=3), None, [100, 107, 100], [55, 1, 2]),
        (ErrorLimits(absolute=0), None, [100, 107, 103], [55, 13, 8]),
    ],
)
def test_three_samples_worked_by_hand(
    limits: ErrorLimits, representatives: Any, samples: list[int], indices: list[int]
) -> None:
    image = ImageLayout(columns=3, rows=1, bands=1, dynamic_range=8)
    predictor = Predictor(
        prediction_bands=0, mode="reduced", error_limits=limits, representatives=representatives
    )
    cube = np.array([100, 107, 103]).reshape(1, 3, 1)
    assert model_residuals(cube.transpose(2, 0, 1), image, predictor).ravel().tolist() == indices
    values = cube.reshape(3, 1) - 128
    BandWaves(image, predictor).run(values)
    assert (apart(values) + 128).ravel().tolist() == samples
    assert values.ravel().tolist() == indices
    chosen = StreamParameters(image=image, predictor=predictor)
    assert decompress(compress(cube, chosen))[0].ravel().tolist() == samples


@pytest.mark.interpreted
@given(data=st.data(), parameters=near_lossless())
def test_streams_are_those_of_the_definitions(data: st.DataObject, parameters: StreamParameters) -> None:
    cube = data.draw(cubes(parameters.image))
    pieces: list[bytes] = []
    compressor = Compressor(parameters, pieces.append)
    given_back = compressor.write(cube)
    compressor.close()
    stream = b"".join(pieces)
    assert stream == model_stream(cube, parameters)
    expected, limits = restored(cube, parameters)
    found, told = decompress(stream)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(given_back, expected)
    assert told == as_told(parameters)
    assert (np.abs(found.astype(np.int64) - cube) <= limits).all()
    # What came back is in the middle of its bins, or at the end of the range.
    assert compress(found, parameters) == stream
    errors: list[NDArray[np.int64]] = []
    list(StreamDecoder(stream).rows(errors=errors.append))
    np.testing.assert_array_equal(np.concatenate(errors), limits)


@pytest.mark.interpreted
@given(data=st.data(), parameters=near_lossless(most_bands=6))
def test_definitions_read_what_they_write(data: st.DataObject, parameters: StreamParameters) -> None:
    cube = data.draw(cubes(parameters.image))
    stream = compress(cube, parameters)
    bits = "".join(f"{byte:08b}" for byte in stream[StreamDecoder(stream).header_bytes :])
    decode = {
        SampleAdaptive: decode_sample_adaptive,
        BlockAdaptive: decode_block_adaptive,
        HybridCoder: decode_hybrid,
    }[type(parameters.coder)]
    found = model_samples(decode(bits, parameters), parameters.image, parameters.predictor)
    np.testing.assert_array_equal(found.transpose(1, 2, 0), restored(cube, parameters)[0])


@seldom_compiled
@given(data=st.data(), parameters=near_lossless())
def test_limits_of_zero_are_lossless(data: st.DataObject, parameters: StreamParameters) -> None:
    cube = data.draw(cubes(parameters.image))
    predictor = parameters.predictor
    if predictor.representatives is not None:
        still = replace(predictor.representatives, offset=0)
        predictor = replace(predictor, representatives=still)
    plain = replace(parameters, predictor=replace(predictor, error_limits=None))
    none = replace(parameters, predictor=replace(predictor, error_limits=ErrorLimits(absolute=0)))
    exact, near = compress(cube, plain), compress(cube, none)
    np.testing.assert_array_equal(decompress(near)[0], cube)
    header = StreamDecoder(exact).header_bytes, StreamDecoder(near).header_bytes
    word = plain.output_word_size
    left, right = exact[header[0] :], near[header[1] :]
    size = min(len(left), len(right))
    assert left[:size] == right[:size] and not any(left[size:] + right[size:])
    assert abs(len(left) - len(right)) < 2 * word


@pytest.mark.interpreted
@given(data=st.data(), parameters=near_lossless())
def test_decoding_goes_on_from_checkpoints(data: st.DataObject, parameters: StreamParameters) -> None:
    if isinstance(parameters.coder, HybridCoder):
        parameters = replace(parameters, coder=BlockAdaptive(block_size=8, reference_interval=3))
    cube, rows = data.draw(cubes(parameters.image)), parameters.image.rows
    limits = parameters.predictor.error_limits
    assert limits is not None
    every = data.draw(st.integers(1, 4)) << (limits.update_exponent or 0)
    decoder = StreamDecoder(compress(cube, parameters))
    found: list[Checkpoint] = []
    whole = np.concatenate(list(decoder.rows(every=every, found=found.append)))
    assert [checkpoint.row for checkpoint in found] == list(range(every, rows, every))
    for start in found:
        last = data.draw(st.integers(start.row + 1, rows))
        part = np.concatenate(list(decoder.rows(start, last, step=data.draw(st.integers(1, 5)))))
        np.testing.assert_array_equal(part, whole[start.row : last])


@pytest.mark.slow
@pytest.mark.interpreted
@given(data=st.data(), parameters=near_lossless(most_bands=40))
def test_stretches_and_waves_of_any_length(data: st.DataObject, parameters: StreamParameters) -> None:
    image, predictor = parameters.image, parameters.predictor
    limits = predictor.error_limits
    assert limits is not None
    if limits.update_exponent is not None:
        predictor = replace(predictor, error_limits=ErrorLimits(absolute=1, relative=1))
    cube = data.draw(cubes(image))
    plan = {"stretch": data.draw(st.integers(1, 9)), "most_bands": data.draw(st.sampled_from([16, 32]))}
    values = np.ascontiguousarray(cube.reshape(-1, image.bands)) - image.middle
    expected, errors = restored(cube, replace(parameters, predictor=predictor))
    there = BandWaves(image, predictor, **plan)
    back = BandWaves(image, predictor, backwards=True, **plan)
    there._lanes = back._lanes = data.draw(st.sampled_from(WIDTHS))
    there.run(values)
    np.testing.assert_array_equal(apart(values) + image.middle, expected.reshape(values.shape))
    back.run(values)
    np.testing.assert_array_equal(apart(values), errors.reshape(values.shape))
    np.testing.assert_array_equal(values + image.least, expected.reshape(values.shape))
