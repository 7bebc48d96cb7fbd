"""Lossless compression of hyperspectral cubes: CCSDS 123.0-B-1, and the lossless part of 123.0-B-2.

Names are loaded on first use, because xarray, zarr and numcodecs import this package to find its codecs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.hyperspectral.codec import compress, decompress
    from plait.hyperspectral.cube_objects import as_cube
    from plait.hyperspectral.files import compress_file, decompress_file, verify_file
    from plait.hyperspectral.parameters import (
        BlockAdaptive,
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
    from plait.hyperspectral.spectral_image import open_image
    from plait.hyperspectral.streams import compress_cube, open_stream

__all__ = [
    "BlockAdaptive",
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

_MODULES = {
    "codec": ("compress", "decompress"),
    "cube_objects": ("as_cube",),
    "files": ("compress_file", "decompress_file", "verify_file"),
    "presets": ("preset_parameters",),
    "spectral_image": ("open_image",),
    "streams": ("compress_cube", "open_stream"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = next((module for module, names in _MODULES.items() if name in names), "parameters")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
