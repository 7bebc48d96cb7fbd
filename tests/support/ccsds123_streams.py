"""Whole CCSDS 123 streams from the plain-Python definitions of predictor and coders."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from support.ccsds123_coders import encode_block_adaptive, encode_sample_adaptive
from support.ccsds123_hybrid import encode_hybrid
from support.ccsds123_predictor import model_residuals

from plait.hyperspectral.header import write_header
from plait.hyperspectral.parameters import BlockAdaptive, SampleAdaptive, StreamParameters

__all__ = ["model_stream"]


def model_stream(cube: NDArray[Any], parameters: StreamParameters) -> bytes:
    """The stream of a cube.

    Parameters
    ----------
    cube
        Samples, shape (rows, columns, bands).
    parameters
        What the header says.
    """
    residuals = model_residuals(cube.transpose(2, 0, 1), parameters.image, parameters.predictor)
    if isinstance(parameters.coder, SampleAdaptive):
        bits = encode_sample_adaptive(residuals, parameters)
    elif isinstance(parameters.coder, BlockAdaptive):
        bits = encode_block_adaptive(residuals, parameters)
    else:
        bits = encode_hybrid(residuals, parameters)
    size = -(-len(bits) // 8)
    stream = write_header(parameters) + (int(bits, 2) << (8 * size - len(bits))).to_bytes(size, "big")
    return stream + bytes(-len(stream) % parameters.output_word_size)
