"""``plait episodes``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plait.cli.options import Bar, OutputOption, Signed, ThreadsOption, WholeNumber, say
from plait.errors import InvalidInput
from plait.reports.plain_text import plural

Number = Annotated[WholeNumber | None, Signed]


def episodes(
    events: Path,
    /,
    *,
    output: OutputOption,
    window: Annotated[tuple[str, ...], Parameter(negative="", allow_leading_hyphen=True)] = (),
    support: Number = None,
    max_size: Annotated[WholeNumber, Signed] = 6,
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
        found = "both" if list is not None else "one of --window, --support" if searched else "neither"
        raise InvalidInput(
            "--window, --support, --list", found=found, expected="--window and --support, or --list"
        )
    with Bar("counting", "{task.fields[done]:,} candidates") as bar:

        def show(size: int, done: int, total: int) -> None:
            bar.rename(f"size {size}")
            bar.show(done, "{:,.0f}/s", done, total)

        found_episodes = episodes_file(
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
    for size, candidates, frequent, seconds in found_episodes.levels:
        say(f"size {size}: {frequent:,} of {plural(candidates, 'candidate')}, {seconds:.2f} s")
    say(f"{plural(found_episodes.table.num_rows, 'episode')} in {output}")


def _window(text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    try:
        if colon:
            return float(low), float(high)
    except ValueError:
        pass
    raise InvalidInput("--window", found=repr(text), expected="LO:HI, two numbers")
