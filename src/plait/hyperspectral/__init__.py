"""Lossless and near-lossless compression of hyperspectral cubes: CCSDS 123.0-B-1 and 123.0-B-2.

Names are loaded on first use, because xarray, zarr and numcodecs import this package to find its codecs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait._exports import on_first_use

if TYPE_CHECKING:
    from plait.hyperspectral.codec import compress, decompress
    from plait.hyperspectral.cube_objects import as_cube
    from plait.hyperspectral.files import compress_file, decompress_file, verify_file
    from plait.hyperspectral.libraries.spectral_image import open_image
    from plait.hyperspectral.parameters import (
        BlockAdaptive,
        ErrorLimits,
        HybridCoder,
        ImageLayout,
        Predictor,
        Representatives,
        SampleAdaptive,
        StreamParameters,
        SupplementaryTable,
        WeightOffsets,
    )
    from plait.hyperspectral.presets import preset_parameters
    from plait.hyperspectral.streams import open_stream
    from plait.hyperspectral.writing import compress_cube

__all__ = [
    "BlockAdaptive",
    "ErrorLimits",
    "HybridCoder",
    "ImageLayout",
    "Predictor",
    "Representatives",
    "SampleAdaptive",
    "StreamParameters",
    "SupplementaryTable",
    "WeightOffsets",
    "as_cube",
    "compress",
    "compress_cube",
    "compress_file",
    "decompress",
    "decompress_file",
    "open_image",
    "open_stream",
    "preset_parameters",
    "verify_file",
]

__getattr__, __dir__ = on_first_use(__name__, __file__)
