"""``plait random``."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from plait.cli.options import DeviceOption, OptionalOutput, Signed, ThreadsOption, WholeNumber
from plait.errors import InvalidInput

Number = Annotated[WholeNumber, Signed]
Maybe = Annotated[WholeNumber | None, Signed]


def random(
    generator: Literal["mrg32k3a", "sobol", "mt19937"],
    /,
    *,
    count: Annotated[WholeNumber, Parameter(name=["--count", "-n"], allow_leading_hyphen=True)],
    output: OptionalOutput = None,
    distribution: Literal["raw", "uniform", "normal", "exponential"] = "uniform",
    dtype: Literal["float64", "float32"] = "float64",
    skip: Number = 0,
    seed: Maybe = None,
    stream: Number = 0,
    substream: Number = 0,
    dimensions: Number = 1,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Draw random numbers from a standard stream, from any place of it on.

    Parameters
    ----------
    generator
        mrg32k3a, L'Ecuyer's; mt19937, the Mersenne Twister; sobol, points of low discrepancy.
    count
        Numbers, or points, to draw.
    output
        A .npy file to write; otherwise lines on standard output.
    distribution
        raw: integers of 32 bits; uniform: between 0 and 1; normal; exponential.
    dtype
        Type of the numbers.
    skip
        Numbers of the stream, or points, to leave out; of any size.
    seed
        mrg32k3a: below 4294944443, otherwise 12345; mt19937: below 2^32, otherwise 5489; sobol: shifts the
        points at random, otherwise they are not shifted.
    stream
        mrg32k3a: streams are 2^127 numbers apart.
    substream
        mrg32k3a: those within a stream are 2^76 apart.
    dimensions
        sobol: coordinates of a point, to 4096.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        auto, cpu, or cuda; the numbers are the same.
    """
    from plait.random import Mrg32k3a, Mt19937, Sobol
    from plait.random.files import write_numbers

    for name, value, owner in (
        ("--stream", stream, "mrg32k3a"),
        ("--substream", substream, "mrg32k3a"),
        ("--dimensions", dimensions - 1, "sobol"),
    ):
        if value and generator != owner:
            raise InvalidInput(name, found=f"it with {generator}", expected=f"{owner}, which alone has it")
    if generator == "sobol":
        source: Mrg32k3a | Mt19937 | Sobol = Sobol(dimensions, skip=skip, seed=seed)
    elif generator == "mt19937":
        source = Mt19937(5489 if seed is None else seed).skip(skip)
    else:
        source = Mrg32k3a(12345 if seed is None else seed, stream=stream, substream=substream).skip(skip)
    write_numbers(
        source, output, count=count, distribution=distribution, dtype=dtype, device=device, threads=threads
    )
