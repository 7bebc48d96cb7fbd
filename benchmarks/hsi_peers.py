"""Bits a sample and speed of plait beside other codecs, on three cubes of integers and three of float32.

    pip install imagecodecs blosc2 fpzip
    pip install --no-deps --target FOLDER zfpy    # its version is one that numcodecs cannot read
    PYTHONPATH=FOLDER python benchmarks/hsi_peers.py [--repeat 3] [--output TABLE.txt]

Every codec runs on one thread, from memory to memory, and what it gives back is compared with the cube.
Speeds are those of the best repeat in processor time, millions of samples a second, to compress and to
decompress; kernels are warm. Image codecs get a band at a time: as it is, or the difference to the band
before, modulo 2**16.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import blosc2
import fpzip
import imagecodecs
import numpy as np
import zfpy
from hsi import best, processor
from hsi_cubes import airborne_raw, indian_pines, orbital_raw, reflectance
from numpy.typing import NDArray

from plait.hyperspectral import compress, decompress
from plait.hyperspectral.choosing import parameters_for
from plait.hyperspectral.chunks import needed_bits
from plait.hyperspectral.cubes import ArrayCube, image_of
from plait.hyperspectral.mapping import mapped

_Image = Callable[[NDArray[Any]], bytes]


class Codec(NamedTuple):
    """A codec: from a cube, (rows, columns, bands), to bytes or pieces of them, and back to the cube."""

    name: str
    pack: Callable[[], Any]
    unpack: Callable[[Any], NDArray[Any]]


def ours(cube: NDArray[Any], preset: str) -> Codec:
    """Our own with a preset; choosing is part of compression."""
    source = ArrayCube(cube)

    def pack() -> Any:
        if cube.dtype.kind != "f":
            return compress(cube, parameters_for(source, image_of(source, needed_bits(cube)), preset)), None
        own = mapped(source)
        parameters = parameters_for(own, image_of(own, own.bits), preset)
        return compress(own.read(0, own.rows), parameters), own.mapping

    def unpack(packed: Any) -> NDArray[Any]:
        found = decompress(packed[0])[0]
        return found if packed[1] is None else packed[1].from_integers(found)

    return Codec(f"plait, {preset}", pack, unpack)


def images(
    name: str, cube: NDArray[Any], encode: _Image, decode: Callable[[bytes], Any], *, less: bool
) -> Codec:
    """A codec of images, of each band or of its difference to the one before."""
    bands = np.ascontiguousarray(cube.transpose(2, 0, 1))
    own = (
        np.diff(bands, axis=0, prepend=np.zeros_like(bands[:1])) + np.uint16(less * (1 << 15))
        if less
        else bands
    )

    def unpack(pieces: list[bytes]) -> NDArray[Any]:
        found = np.stack([decode(piece) for piece in pieces])
        if less:
            found = np.cumsum(found - np.uint16(1 << 15), axis=0, dtype=np.uint16)
        return found.transpose(1, 2, 0)

    what = f"{name} of differences of bands" if less else f"{name} of bands"
    return Codec(what, lambda: [encode(one) for one in own], unpack)


def aec(cube: NDArray[Any], order: str) -> Codec:
    """CCSDS 121.0 of libaec; band-sequential or by pixel."""
    axes = (2, 0, 1) if order == "BSQ" else (0, 1, 2)
    samples = np.ascontiguousarray(cube.transpose(axes))
    options = {"bitspersample": needed_bits(cube), "blocksize": 16, "rsi": 128, "flags": 8}

    def unpack(data: bytes) -> NDArray[Any]:
        # Room for the last block, which is filled up.
        found = imagecodecs.aec_decode(data, out=samples.nbytes + 256, **options)
        return (
            np.frombuffer(found, samples.dtype)[: samples.size]
            .reshape(samples.shape)
            .transpose(np.argsort(axes))
        )

    return Codec(
        f"AEC (CCSDS 121.0, libaec), {order}", lambda: imagecodecs.aec_encode(samples, **options), unpack
    )


def blosc(cube: NDArray[Any]) -> Codec:
    """Blosc2 with zstd over bits, band-sequential."""
    samples = np.ascontiguousarray(cube.transpose(2, 0, 1))
    options = {
        "typesize": cube.itemsize,
        "clevel": 9,
        "filter": blosc2.Filter.BITSHUFFLE,
        "codec": blosc2.Codec.ZSTD,
    }

    def unpack(data: bytes) -> NDArray[Any]:
        found = np.frombuffer(blosc2.decompress(data), samples.dtype)
        return found.reshape(samples.shape).transpose(1, 2, 0)

    return Codec("Blosc2, zstd 9, bit shuffle, BSQ", lambda: blosc2.compress(samples, **options), unpack)


def of_integers(cube: NDArray[Any]) -> list[Codec]:
    """Codecs of integers of 16 bits."""
    found = [ours(cube, preset) for preset in ("fast", "default", "best", "auto")]
    kinds: list[tuple[str, _Image, Callable[[bytes], Any]]] = [
        (
            "JPEG-XL, effort 5",
            lambda one: imagecodecs.jpegxl_encode(one, lossless=True, effort=5, numthreads=1),
            lambda data: imagecodecs.jpegxl_decode(data, numthreads=1),
        ),
        ("JPEG-LS", imagecodecs.jpegls_encode, imagecodecs.jpegls_decode),
        (
            "HTJ2K",
            lambda one: imagecodecs.htj2k_encode(one, reversible=True),
            imagecodecs.htj2k_decode,
        ),
    ]
    for name, encode, decode in kinds:
        found += [images(name, cube, encode, decode, less=less) for less in (False, True)]
    return [*found, aec(cube, "BSQ"), aec(cube, "BIP"), blosc(cube)]


def of_floats(cube: NDArray[Any]) -> list[Codec]:
    """Codecs of float32."""
    samples = np.ascontiguousarray(cube.transpose(2, 0, 1))
    return [
        *(ours(cube, preset) for preset in ("default", "auto")),
        Codec(
            "fpzip, BSQ",
            lambda: fpzip.compress(samples, precision=0, order="C"),
            lambda data: fpzip.decompress(data, order="C")[0].transpose(1, 2, 0),
        ),
        Codec(
            "zfp, reversible, BSQ",
            lambda: zfpy.compress_numpy(samples),
            lambda data: zfpy.decompress_numpy(data).transpose(1, 2, 0),
        ),
        blosc(cube),
    ]


def size(packed: Any) -> int:
    """Bytes of what a codec gave."""
    if isinstance(packed, tuple):
        # Levels belong to the size.
        return len(packed[0]) + (0 if packed[1] is None else len(packed[1].levels))
    return sum(map(len, packed)) if isinstance(packed, list) else len(packed)


def cubes() -> dict[str, NDArray[Any]]:
    """Cubes by name."""
    measured = reflectance()
    shifted = (
        0.49 * measured[:-1, :-1] + 0.21 * (measured[1:, :-1] + measured[:-1, 1:]) + 0.09 * measured[1:, 1:]
    )
    return {
        "Indian Pines (real): airborne, calibrated": indian_pines(),
        "airborne, raw (simulated)": airborne_raw(),
        "orbital, raw (simulated)": orbital_raw(),
        "reflectance, float32 (simulated)": measured,
        "reflectance, resampled, float32 (simulated)": np.ascontiguousarray(shifted, np.float32),
        "reflectance of four digits, float32 (simulated)": (np.rint(measured * 1e4) / 1e4).astype(np.float32),
    }


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--floats", action="store_true", help="only the cubes of float32")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    lines: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    load = os.getloadavg()[0]
    versions = f"imagecodecs {imagecodecs.__version__}, blosc2 {blosc2.__version__}"
    say(f"{processor()}, load {load:.1f} at the start; {versions}")
    for name, cube in cubes().items():
        floats = cube.dtype.kind == "f"
        if options.floats and not floats:
            continue
        say("")
        title = f"{name}, {cube.shape[0]} x {cube.shape[1]} x {cube.shape[2]}"
        say(f"{title:66s}bits/sample   MS/s there  and back")
        for codec in of_floats(cube) if floats else of_integers(cube):
            codec.unpack(codec.pack())
            there, packed = best(options.repeat, codec.pack)
            back, found = best(options.repeat, lambda unpack=codec.unpack, data=packed: unpack(data))
            bits = f"u{cube.itemsize}"
            assert np.array_equal(np.ascontiguousarray(found).view(bits), cube.view(bits)), codec.name
            speeds = [cube.size / seconds / 1e6 for seconds in (there, back)]
            say(f"  {codec.name:64s}{8 * size(packed) / cube.size:11.3f}{speeds[0]:13.1f}{speeds[1]:10.1f}")
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
