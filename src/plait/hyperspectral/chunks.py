"""Chunks of arrays as streams: what the codecs of zarr and numcodecs share."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.layout import as_rows, check_sample_type
from plait.hyperspectral.choosing import parameters_for
from plait.hyperspectral.containers import BlockGrid, Window
from plait.hyperspectral.cubes import ArrayCube, image_of
from plait.hyperspectral.parameters import ImageLayout
from plait.hyperspectral.presets import AUTO, preset_parameters, typed
from plait.hyperspectral.streams import CompressedCube, open_stream
from plait.hyperspectral.writing import compress_cube

_AXES = ("yxz", "yzx", "zyx", "zxy", "xyz", "xzy", "yx", "xy")
_OF_BANDS = (
    "interleaving_depth",
    "weight_table",
    "weight_table_resolution",
    "weight_offsets",
    "representatives",
    "error_limits",
    "max_error",
    "relative_error",
    "accumulator_table",
    "supplementary",
    "initial_sums",
)
_KINDS = {"parameters": "parameters by name", "checksum": "true or false", "blocks": "a text, or nothing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCoding:
    """How the chunks of an array are coded; InvalidInput if axes or parameters are wrong.

    `axes` are its last dimensions, y rows, x columns, z bands; those before have chunks of length one.
    `parameters`, by name, differ from the preset. `blocks`, ``"rows:N"`` or ``"tiles:YxX"``, let parts of a
    chunk be read alone. With `checksum` chunks are containers, of one block where no blocks are asked for,
    and compared when read; with neither they are plain standard streams, whose damage may go unnoticed.
    """

    axes: str = "yxz"
    preset: str = "default"
    blocks: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    checksum: bool = True

    def __post_init__(self) -> None:
        for name, kind in (("parameters", Mapping), ("checksum", bool), ("blocks", str | None)):
            if not isinstance(getattr(self, name), kind):
                told, expected = reprlib.repr(getattr(self, name)), _KINDS[name]
                raise InvalidInput(name, found=told, expected=expected)
        if self.axes not in _AXES:
            expected = f"one of {', '.join(_AXES)}: y rows, x columns, z bands"
            raise InvalidInput("axes", found=repr(self.axes), expected=expected)
        # Errors now, not when the first chunk is written.
        trial = ImageLayout(columns=2, rows=2, bands=2, dynamic_range=16)
        # What depends on the number of bands has to wait for it.
        simple = {name: value for name, value in typed(self.parameters).items() if name not in _OF_BANDS}
        preset_parameters(trial, "best" if self.preset == AUTO else self.preset, **simple)
        if self.blocks is not None:
            BlockGrid.parse(self.blocks, trial)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """The coding that `config` described; what is left out has its default."""
        if not isinstance(config, Mapping):
            told, expected = reprlib.repr(config), "parameters of the codec by name"
            raise InvalidInput("configuration", found=told, expected=expected)
        known = {field.name for field in fields(cls)}
        if left := sorted(str(name) for name in set(config) - known):
            raise InvalidInput(
                "configuration", found=", ".join(map(reprlib.repr, left)), expected=", ".join(sorted(known))
            )
        return cls(**config)

    def config(self) -> dict[str, Any]:
        """Everything that differs from the defaults, ready for JSON."""
        found = {"axes": self.axes, "preset": self.preset}
        more = {"blocks": self.blocks, "parameters": dict(self.parameters)}
        plain = {} if self.checksum else {"checksum": False}
        return found | {name: value for name, value in more.items() if value} | plain

    def check(self, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
        """InvalidInput if chunks of a shape and type of samples cannot be coded."""
        check_sample_type(kind, "array", standard=True)
        before = len(shape) - len(self.axes)
        if before < 0 or any(size != 1 for size in shape[: max(before, 0)]):
            expected = f"{len(self.axes)} dimensions ({self.axes}), and any before them of length 1"
            raise InvalidInput("chunks", found=f"a shape of {shape}", expected=expected)

    def encode(self, chunk: NDArray[Any], dynamic_range: int | None = None) -> bytes:
        """Compress a chunk of integers; InvalidInput if it cannot be coded.

        `dynamic_range` is bits of a sample, None for as many as the samples of this chunk need.
        """
        self.check(chunk.shape, chunk.dtype)
        cube = ArrayCube(cube_of(chunk, self.axes))
        bits = needed_bits(cube.read(0, cube.rows)) if dynamic_range is None else dynamic_range
        image = image_of(cube, bits)
        grid = None if self.blocks is None else BlockGrid.parse(self.blocks, image)
        pieces: list[bytes] = []
        compress_cube(
            cube,
            pieces.append,
            parameters=parameters_for(cube, image, self.preset, grid, **typed(self.parameters)),
            # A block of all rows: a container has room for checksums.
            blocks=self.blocks or (f"rows:{image.rows}" if self.checksum else None),
            checksum=self.checksum,
            threads=1,
            # Arrays are written from many threads and processes.
            device="cpu",
        )
        return b"".join(pieces)

    def decode(self, data: Any) -> NDArray[Any]:
        """Decompress a chunk: shape in the order of the axes, without the dimensions before them."""
        with open_stream(data) as cube:
            return self.read(cube)

    def read(self, cube: CompressedCube, window: Window | None = None) -> NDArray[Any]:
        """An open chunk, or a window of it, in the order of the axes."""
        found = cube.read(*(window or Window(0, cube.shape[0], 0, cube.shape[1])))
        if len(self.axes) == 2:
            found = found[..., 0]
        return found.transpose(["yxz".index(axis) for axis in self.axes])

    def check_stream(self, cube: CompressedCube, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
        """FormatError if an open stream is not one of a chunk of this shape and type of samples."""
        check_samples(cube.dtype, kind)
        sizes = dict(zip("yxz", cube.shape, strict=True))
        found = tuple(sizes[axis] for axis in self.axes)
        if found != shape[len(shape) - len(self.axes) :] or (len(self.axes) == 2 and sizes["z"] != 1):
            raise FormatError("chunk", found=f"a stream of shape {found}", expected=f"one of shape {shape}")


def check_samples(found: np.dtype[Any], kind: np.dtype[Any]) -> None:
    """FormatError if samples of a stream might have no place in a chunk of this type."""
    if not np.can_cast(found, kind):
        raise FormatError("chunk", found=f"a stream of {found.name}", expected=f"one of {kind.name}")


def cube_of(array: NDArray[Any], axes: str) -> NDArray[Any]:
    """An array as rows, columns, bands; `axes` are its last dimensions, of y, x and z or of y and x.

    Any dimensions before them have length one.
    """
    plain = array.reshape(array.shape[array.ndim - len(axes) :])
    if len(axes) == 2:
        plain, axes = plain[..., None], f"{axes}z"
    return as_rows(plain, axes)


def needed_bits(cube: NDArray[Any]) -> int:
    """Bits, 2 at the least, that hold every sample; signed ones in two's complement.

    >>> needed_bits(np.array([0, 4096])), needed_bits(np.array([-5, 3]))
    (14, 4)
    """
    least, most = int(cube.min()), int(cube.max())
    bits = max(most, ~least if least < 0 else 0).bit_length()
    return max(2, bits + (cube.dtype.kind == "i"))
