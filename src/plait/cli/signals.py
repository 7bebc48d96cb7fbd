"""``plait ldpc``, ``random``, ``decode``, ``episodes``: codes, random numbers, hidden states, chains."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from plait.cli.options import (
    Bar,
    DeviceOption,
    FileOutput,
    Flag,
    FurtherTable,
    OptionalOutput,
    Several,
    Signed,
    TableOutput,
    ThreadsOption,
    WholeNumber,
    files_of,
    say,
)
from plait.errors import InvalidInput, whole
from plait.lang.compiling import work_time
from plait.reports.plain_text import plural

app = App(name="ldpc", help_format="markdown", version_flags=[])
Number = Annotated[WholeNumber, Signed]
Maybe = Annotated[WholeNumber | None, Signed]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DecoderOptions:
    """How words are decoded.

    Attributes
    ----------
    iterations
        Most iterations of a word.
    method
        sum-product, in single precision; min-sum: 8 bits, several times as fast.
    schedule
        layered: checks use what others have said in the same iteration; flooding: in the one before.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        auto, cpu or cuda; the answers are the same.
    """

    iterations: Number = 50
    method: Literal["sum-product", "min-sum"] = "sum-product"
    schedule: Literal["layered", "flooding"] = "layered"
    threads: ThreadsOption = None
    device: DeviceOption = "auto"


_DECODER = DecoderOptions()


@app.command
def decode(
    ratios: Path,
    /,
    *,
    code: str,
    output: FileOutput,
    information: Flag = False,
    report: FurtherTable = None,
    decoder: DecoderOptions = _DECODER,
) -> None:
    """Decode words.

    Parameters
    ----------
    ratios
        A .npy file, (words, bits): for each bit the logarithm of how much more probable 0 is than 1; for
        min-sum also whole numbers of 8 bits, in quarters.
    code
        ar4ja-1/2-1024 (rates 1/2, 2/3, 4/5; 1024, 4096, 16384 bits), c2, wimax-1248 (576 to 2304), or an
        alist file.
    output
        The .npy file to write, bits 0 and 1 as they were sent.
    information
        Write bits of information alone.
    report
        A table to write, .tsv or .parquet: whether each word is of the code, and after how many iterations.
    decoder
        How words are decoded.
    """
    from plait.ldpc.files import decode_file

    start = work_time()
    with files_of([ratios]) as (path,):
        words, found, mean = decode_file(
            path, output, code=code, information=information, report=report, **asdict(decoder)
        )
    took = f"{mean:.1f} iterations a word, in {work_time() - start:.2f} s"
    say(f"{plural(words, 'word')}, {found:,} of them of the code, {took}")


@app.command
def encode(bits: Path, /, *, code: str, output: FileOutput) -> None:
    """Encode words.

    Parameters
    ----------
    bits
        A .npy file of bits 0 and 1, (words, bits of information).
    code
        As for decode.
    output
        The .npy file to write, bits as they are sent.
    """
    from plait.ldpc.files import encode_file

    with files_of([bits]) as (path,):
        words, size = encode_file(path, output, code=code)
    say(f"{plural(words, 'word')} of {size:,} bits")


@app.command
def simulate(
    *,
    code: str,
    ebn0: Annotated[str, Signed],
    words: Number = 10_000,
    errors: Number = 100,
    seed: Number = 1,
    output: OptionalOutput = None,
    figure: Path | None = None,
    decoder: DecoderOptions = _DECODER,
) -> None:
    """Send random words over a channel with white Gaussian noise, and tell the rates of errors.

    Parameters
    ----------
    code
        As for decode.
    ebn0
        Energies of a bit of information by density of noise in dB: 2, or 1,1.5,2, or first:last:step.
    words
        Most words at each of them.
    errors
        So many words with errors are enough.
    seed
        Which words and noise.
    output
        A table to write, .tsv or .parquet; otherwise standard output.
    figure
        Curves of both rates with their intervals, .png or .svg (needs plait[report]).
    decoder
        How words are decoded.
    """
    from plait.ldpc.files import simulate_file
    from plait.reports.error_rates import check_figure, error_rate_figure, write_figure

    if figure is not None:
        check_figure(figure)
    start = work_time()
    limits = {"words": words, "errors": errors, "seed": seed}
    with Bar("simulating", "{task.fields[done]:,} words") as bar:

        def show(ratio: float, sent: int) -> None:
            bar.rename(f"{ratio:g} dB")
            bar.show(sent, "{:,.0f}/s", sent, words)

        found = simulate_file(output, code=code, ebn0=ebn0, progress=show, **limits, **asdict(decoder))
    if figure is not None:
        write_figure(error_rate_figure(found, code), figure)
    say(f"{plural(int(found.words.sum()), 'word')} in {work_time() - start:.2f} s")


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

    streams = ("--stream", stream, "mrg32k3a"), ("--substream", substream, "mrg32k3a")
    for name, value, owner in (*streams, ("--dimensions", dimensions - 1, "sobol")):
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


def hidden_states(
    model: Path,
    observations: Path,
    /,
    *,
    output: TableOutput,
    what: Literal["best", "sum", "count", "posterior"] = "best",
    beam: Annotated[float | None, Signed] = None,
    active: Maybe = None,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Decode sequences with a hidden Markov model, or with a weighted graph: best paths, sums, counts.

    Parameters
    ----------
    model
        A hidden Markov model (.json), or a graph in OpenFst's text form with numbers for labels.
    observations
        FASTA, whose letters are symbols of the model; or .npy: symbols (frames,), or logarithms of what
        frames weigh (frames, states or labels).
    output
        The table to write: .parquet, .tsv, .tsv.gz or .tsv.zst.
    what
        best: the best path, a row per stretch of frames in one state; sum: the log-likelihood over all paths;
        count: how many paths there are, and how many are best; posterior: probabilities of states, from 1e-6.
    beam
        Graphs: drop states that are so far below the best one of a frame; otherwise none, and best is exact.
    active
        Graphs: keep at most so many states of a frame.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        auto, cpu or cuda: best paths and sums of many sequences of a model; the answers are the same.
    """
    from plait.states.files import decode_file

    if active is not None:
        whole("active", active, 1)
    sequences, rows = decode_file(
        model,
        observations,
        output,
        what=what,
        beam=math.inf if beam is None else beam,
        most=active,
        threads=threads,
        device=device,
    )
    say(f"{plural(sequences, 'sequence')}, {plural(rows, 'row')} in {output}")


def episodes(
    events: Path,
    /,
    *,
    output: TableOutput,
    window: Annotated[tuple[str, ...], Several, Signed] = (),
    support: Maybe = None,
    max_size: Number = 6,
    list: Path | None = None,
    type_column: str = "type",
    time_column: str = "time",
    threads: ThreadsOption = None,
) -> None:
    """Find the serial episodes that occur often in a stream of events, or count given ones.

    An episode A -(5,15]-> B is an event of type B more than 5 and at most 15 after one of type A. It counts
    as often as it occurs without overlap, exactly.

    Parameters
    ----------
    events
        Table with a row per event, in any order: text with tabs or commas, plain, .gz or .zst, or Parquet.
    output
        The table to write, one row per episode: .parquet, .tsv, .tsv.gz or .tsv.zst.
    window
        LO:HI, a step takes more than LO and at most HI, in the unit of the times; several: any of them.
    support
        Occurrences without overlap that an episode must have.
    max_size
        Events of an episode, at most.
    list
        Count the episodes of this file instead, one a line, as A -(5,15]-> B.
    type_column
        Column with the type of each event.
    time_column
        Column with its time, a number.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    from plait.episodes.mining import episodes_file

    searched = bool(window) or support is not None
    if (list is None) != searched or (searched and not (window and support is not None)):
        told = "both" if list is not None else "one of --window, --support" if searched else "neither"
        expected = "--window and --support, or --list"
        raise InvalidInput("--window, --support, --list", found=told, expected=expected)
    with Bar("counting", "{task.fields[done]:,} candidates") as bar:

        def show(size: int, done: int, total: int) -> None:
            bar.rename(f"size {size}")
            bar.show(done, "{:,.0f}/s", done, total)

        found = episodes_file(
            events,
            output,
            listed=list,
            windows=[_window(text) for text in window],
            support=support or 0,
            max_size=max_size,
            columns=(type_column, time_column),
            threads=threads,
            progress=show,
        )
    for size, candidates, frequent, seconds in found.levels:
        say(f"size {size}: {frequent:,} of {plural(candidates, 'candidate')}, {seconds:.2f} s")
    say(f"{plural(found.table.num_rows, 'episode')} in {output}")


def _window(text: str) -> tuple[float, float]:
    with suppress(ValueError):
        low, high = map(float, text.split(":"))
        return low, high
    raise InvalidInput("--window", found=repr(text), expected="LO:HI, two numbers")
