"""Whole CCSDS 123 streams from the plain-Python definitions of predictor and coders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray
from support.ccsds123_coders import encode_block_adaptive, encode_sample_adaptive
from support.ccsds123_hybrid import encode_hybrid
from support.ccsds123_predictor import model_residuals

from plait.hyperspectral.header import write_header
from plait.hyperspectral.parameters import BlockAdaptive, ErrorLimits, SampleAdaptive, StreamParameters

__all__ = ["as_told", "model_stream"]


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


def as_told(parameters: StreamParameters) -> StreamParameters:
    """What a header says of parameters: not the error limits that are in the body.

    Parameters
    ----------
    parameters
        The parameters.
    """
    limits = parameters.predictor.error_limits
    assert limits is not None
    if limits.update_exponent is None:
        return parameters
    told = ErrorLimits(
        absolute_bits=limits.absolute_bits,
        relative_bits=limits.relative_bits,
        absolute_by_band=limits.absolute_by_band,
        relative_by_band=limits.relative_by_band,
        update_exponent=limits.update_exponent,
    )
    return replace(parameters, predictor=replace(parameters.predictor, error_limits=told))
