"""Cubes on a GPU: kernels alone and host to host, bytes beside the CPU's; and blocks on one and on all GPUs.

    python benchmarks/gpu/hsi.py [CUBE.npy] [--large 1024,1024,224] [--repeat 7] [--blocks rows:64]

CUBE has shape (rows, columns, bands) and unsigned integers; without one, a cube of 145 x 145 x 200 is made
up (see ``benchmarks/hsi.py``). The large cube is a made-up one of 128 x 128 pixels, repeated and mirrored,
each time with other noise in its lowest two bits. P = 3, the sample-adaptive coder, BIP, one plain stream.

Every stream is compared with that of the CPU, byte for byte, and every sample that comes back with the
original. With ``--blocks`` the large cube becomes a container instead, on one GPU and then on all, by eight
threads, which is compared with the CPU's, too. Kernels: the sum of the times between events before and after
each, the least of the repeats. Host to host: from samples in ordinary memory to the bytes of the stream and
back, by the clock on the wall. Published figures (other cubes and machines): 357 million samples a second on
two GPUs, 322 on one, 128 on four cores to compress, 85 to decompress.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
from hsi import made_up, processor

from plait.devices.cuda import CudaKernel, cuda
from plait.hyperspectral.codec import StreamDecoder, compress, decompress, find_entries
from plait.hyperspectral.containers import _packed_entries
from plait.hyperspectral.cubes import ArrayCube
from plait.hyperspectral.gpu_codec import decompress_rows
from plait.hyperspectral.parameters import ImageLayout
from plait.hyperspectral.presets import preset_parameters
from plait.hyperspectral.writing import compress_cube


@cuda.jit
def sleep(microseconds: Any) -> None:
    """Do nothing for so long, or somewhat longer."""
    for _ in range(microseconds):
        cuda.nanosleep(1000)


class Times:
    """Seconds of each kernel, while they are measured one by one."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.measuring = False
        launch = CudaKernel.launch

        def timed(kernel: CudaKernel, *given: Any, stream: Any = 0, shared: int = 0) -> None:
            if not self.measuring:
                launch(kernel, *given, stream=stream, shared=shared)
                return
            begun, ended = cuda.event(), cuda.event()
            # While it sleeps, all that follows is handed over: no time of the host is measured.
            sleep[1, 1, stream](200)
            begun.record(stream)
            launch(kernel, *given, stream=stream, shared=shared)
            ended.record(stream)
            ended.synchronize()
            self.seconds[kernel.name.rpartition(".")[2]] += cuda.event_elapsed_time(begun, ended) / 1e3

        CudaKernel.launch = timed  # type: ignore[method-assign]

    def measure(self, repeat: int, work: Callable[[], Any]) -> tuple[dict[str, float], float, Any]:
        """The least seconds of each kernel, the least of the whole by the clock, and the result."""
        result = work()
        wall, least = float("inf"), defaultdict(lambda: float("inf"))
        for _ in range(repeat):
            begun = time.perf_counter()
            result = work()
            wall = min(wall, time.perf_counter() - begun)
        self.measuring = True
        for _ in range(repeat):
            self.seconds.clear()
            work()
            least = {name: min(least[name], seconds) for name, seconds in self.seconds.items()} | {}
            least = defaultdict(lambda: float("inf"), least)
        self.measuring = False
        return dict(least), wall, result


def say(name: str, samples: int, found: tuple[dict[str, float], float, Any]) -> None:
    """Print speeds, and the kernels by time."""
    kernels, wall, _ = found
    total = sum(kernels.values())
    print(
        f"  {name}: kernels {samples / total / 1e6:7.0f} MS/s, host to host {samples / wall / 1e6:7.0f} MS/s"
        f" ({1e3 * total:.3f} and {1e3 * wall:.3f} ms)"
    )
    for kernel, seconds in sorted(kernels.items(), key=lambda one: -one[1]):
        print(f"    {kernel:20s} {1e3 * seconds:9.3f} ms")


def measure(times: Times, name: str, cube: NDArray[Any], repeat: int) -> None:
    """Both ways, with the answers compared."""
    rows, columns, bands = cube.shape
    depth = max(int(cube.max()).bit_length(), 2)
    image = ImageLayout(columns=columns, rows=rows, bands=bands, dynamic_range=depth)
    parameters = preset_parameters(image)
    print(f"\n{name}, {rows} x {columns} x {bands}, {depth} bits", flush=True)
    begun = time.perf_counter()
    expected = compress(cube, parameters, device="cpu")
    there = time.perf_counter() - begun
    begun = time.perf_counter()
    decompress(expected)
    back = time.perf_counter() - begun
    speeds = (cube.size / seconds / 1e6 for seconds in (there, back))
    told = "  CPU, one thread, first run: {:.0f} and {:.0f} MS/s".format(*speeds)
    print(f"{told}; {8 * len(expected) / cube.size:.3f} bits a sample")
    found = times.measure(repeat, lambda: compress(cube, parameters, device="cuda"))
    assert found[2] == expected, "other bytes than those of the CPU"
    say("compress, bytes equal", cube.size, found)
    decoder = StreamDecoder(expected)
    body = memoryview(expected)[decoder.header_bytes :]
    for every in (None, 4, 16):
        entries = find_entries(decoder, every)
        found = times.measure(repeat, lambda e=entries: decompress_rows(parameters, body, e, (0,)))
        assert np.array_equal(found[2], cube), "other samples than the original"
        room = len(_packed_entries(entries))
        told = f"{len(entries.rows)} entries ({room / 1e3:.1f} kB, {100 * room / len(expected):.2f} %)"
        say(f"decompress from {told}, samples equal", cube.size, found)


def over_gpus(cube: NDArray[Any], blocks: str) -> None:
    """A container of blocks on one GPU, and on all of them."""
    rows, columns, bands = cube.shape
    image = ImageLayout(columns=columns, rows=rows, bands=bands, dynamic_range=int(cube.max()).bit_length())
    print(f"\n{rows} x {columns} x {bands}, blocks of {blocks}, {len(cuda.gpus)} GPUs", flush=True)

    def pack(device: str) -> list[bytes]:
        pieces: list[bytes] = []
        named = {"parameters": preset_parameters(image), "blocks": blocks, "threads": 8, "device": device}
        compress_cube(ArrayCube(cube), pieces.append, **named)
        return pieces

    expected, seconds = b"".join(pack("cpu")), {}
    for device in ("cuda:0", "cuda:all"):
        assert b"".join(pack(device)) == expected, "other bytes than those of the CPU"
    # In turns, so that what else the machine does falls on both.
    for _ in range(5):
        for device in ("cuda:0", "cuda:all"):
            begun = time.perf_counter()
            pack(device)
            seconds[device] = min(seconds.get(device, np.inf), time.perf_counter() - begun)
    for device, least in seconds.items():
        print(f"  {device:9s} host to host {cube.size / least / 1e6:7.0f} MS/s, bytes equal")
    print(f"  all to one: {seconds['cuda:0'] / seconds['cuda:all']:.2f}")


def streams_at_once(cube: NDArray[Any]) -> None:
    """A plain stream on one GPU, then several at once, each by a thread: on that GPU, and on one each."""
    rows, columns, bands = cube.shape
    image = ImageLayout(columns=columns, rows=rows, bands=bands, dynamic_range=int(cube.max()).bit_length())
    parameters = preset_parameters(image)
    expected = compress(cube, parameters, device="cpu")
    decoder = StreamDecoder(expected)
    body, entries = memoryview(expected)[decoder.header_bytes :], find_entries(decoder)

    def pack(number: int) -> bytes:
        return compress(cube, parameters, device=f"cuda:{number}")

    def unpack(number: int) -> NDArray[Any]:
        return decompress_rows(parameters, body, entries, (number,))

    gpus = len(cuda.gpus)
    several = [[0], [0, 0], *(list(range(count)) for count in sorted({2, gpus}) if 1 < count <= gpus)]
    works: tuple[tuple[str, Callable[[int], Any], Callable[[Any], bool]], ...] = (
        ("compress", pack, lambda found: found == expected),
        ("decompress", unpack, lambda found: np.array_equal(found, cube)),
    )
    for name, work, right in works:
        one = 0.0
        for numbers in several:
            least = np.inf
            with ThreadPoolExecutor(len(numbers)) as pool:
                for _ in range(6):
                    begun = time.perf_counter()
                    found = list(pool.map(work, numbers))
                    least = min(least, time.perf_counter() - begun)
                    assert all(map(right, found)), "other bytes than those of the CPU, or other samples"
            speed = len(numbers) * cube.size / least / 1e6
            one = one or speed
            told = f"{len(numbers)} at once on GPUs {','.join(map(str, sorted(set(numbers))))}"
            print(f"  {name}, {told}: host to host {speed:7.0f} MS/s, to one {speed / one:.2f}", flush=True)


def repeated(shape: tuple[int, int, int]) -> NDArray[np.uint16]:
    """The large cube."""
    rows, columns, bands = shape
    one = made_up(128, 128, bands, 1, 1.0)
    whole = np.pad(one, ((0, rows - 128), (0, columns - 128), (0, 0)), mode="symmetric")
    whole ^= np.random.default_rng(1).integers(0, 4, whole.shape, np.uint16)
    return whole


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cube", nargs="?", type=Path)
    parser.add_argument("--large", default="1024,1024,224")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--blocks", help="blocks of the large cube, alone")
    options = parser.parse_args()
    print(f"{cuda.get_current_device().name}; {processor()}")
    if options.blocks:
        cube = repeated(tuple(map(int, options.large.split(","))))
        over_gpus(cube, options.blocks)
        streams_at_once(cube)
        return
    times = Times()
    if options.cube:
        cube, name = np.ascontiguousarray(np.load(options.cube)), options.cube.stem
    else:
        cube, name = made_up(145, 145, 200, 1, 1.0), "made up"
    measure(times, name, cube, options.repeat)
    if options.large:
        rows, columns, bands = map(int, options.large.split(","))
        measure(times, "made up and repeated", repeated((rows, columns, bands)), 3)


if __name__ == "__main__":
    main()
