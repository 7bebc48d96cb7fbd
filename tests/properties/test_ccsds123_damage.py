"""CCSDS 123: truncated and corrupted streams give an error or other samples, never a crash or a hang."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import InvalidInput
from plait.hyperspectral.codec import StreamDecoder, compress, decompress
from plait.hyperspectral.codewords import BodyEnd
from plait.hyperspectral.header import HeaderEnd, write_header
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    HybridCoder,
    ImageLayout,
    Predictor,
    SampleAdaptive,
    StreamParameters,
)

CODERS = (SampleAdaptive(), BlockAdaptive(block_size=8), HybridCoder())
FAULTS = (BodyEnd, HeaderEnd, InvalidInput)


@functools.cache
def stream_of(which: tuple[int, str]) -> bytes:
    number, order = which
    image = ImageLayout(columns=9, rows=7, bands=4, dynamic_range=11)
    cube = np.clip(np.cumsum(np.random.default_rng(1).integers(-9, 10, (7, 9, 4)), axis=1) + 1000, 0, 2047)
    parameters = StreamParameters(image=image, coder=CODERS[number], order=order)  # type: ignore[arg-type]
    return compress(cube, parameters)


STREAMS = [(number, order) for number in range(len(CODERS)) for order in ("bi", "bsq")]


@given(which=st.sampled_from(STREAMS), data=st.data())
def test_changed_bytes(which: tuple[int, str], data: st.DataObject) -> None:
    stream = bytearray(stream_of(which))
    # Not the size, which may become any that the bytes suffice for, and not the kind of predictor, which
    # would be compiled.
    places = st.integers(7, len(stream) - 1).filter(lambda place: place not in (12, 13))
    for place in data.draw(st.lists(places, min_size=1, max_size=8)):
        stream[place] = data.draw(st.integers(0, 255))
    try:
        found, told = decompress(bytes(stream))
    except FAULTS:
        return
    assert found.shape == (7, 9, 4)
    assert int(found.min()) >= told.image.least and int(found.max()) <= told.image.largest


@given(which=st.sampled_from(STREAMS), data=st.data())
def test_truncated_streams(which: tuple[int, str], data: st.DataObject) -> None:
    stream = stream_of(which)
    cut = data.draw(st.integers(0, len(stream) - 2))
    try:
        found, _ = decompress(stream[:cut])
    except FAULTS:
        return
    # What a hybrid stream ends with may be found elsewhere in it by chance; the others end where they end.
    assert which[0] == 2
    assert found.shape == (7, 9, 4)


@given(body=st.binary(max_size=600), which=st.integers(0, 2))
def test_bodies_of_any_bytes(body: bytes, which: int) -> None:
    image = ImageLayout(columns=9, rows=7, bands=4, dynamic_range=11)
    header = write_header(StreamParameters(image=image, coder=CODERS[which]))
    try:
        found, _ = decompress(header + body)
    except FAULTS:
        return
    assert found.shape == (7, 9, 4)


@given(data=st.binary(max_size=64))
def test_any_bytes(data: bytes) -> None:
    # What is too short for its declared size is refused before memory is made for it.
    try:
        decoder = StreamDecoder(data)
    except FAULTS:
        return
    assert decoder.parameters.image.samples <= 64 * 64 * 64 * 8


@pytest.mark.parametrize("which", range(3))
def test_declared_sizes_are_compared_with_the_bytes(which: int) -> None:
    image = ImageLayout(columns=65536, rows=65536, bands=65536, dynamic_range=16)
    header = write_header(StreamParameters(image=image, predictor=Predictor(), coder=CODERS[which]))
    with pytest.raises(BodyEnd, match="281,474,976,710,656 samples"):
        StreamDecoder(header + bytes(100_000))


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("order", ["bi", "bsq"])
def test_bytes_behind_the_end_are_refused(which: int, order: str) -> None:
    stream = stream_of((which, order))
    for more in (bytes(1), bytes(300_000), b"\x01"):
        # A hybrid stream is read from its end.
        told = "follow the last sample" if which < 2 or not any(more) else "."
        with pytest.raises(BodyEnd, match=told):
            decompress(stream + more)


@pytest.mark.parametrize("order", ["bi", "bsq"])
def test_hybrid_streams_without_their_end_are_refused(order: str) -> None:
    # They are read from their last bit on; that what is read ends at the header tells.
    stream = stream_of((2, order))
    for cut in range(len(stream)):
        with pytest.raises((BodyEnd, HeaderEnd)):
            decompress(stream[:cut])
