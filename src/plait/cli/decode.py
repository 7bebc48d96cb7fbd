"""``plait decode``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

from plait.cli.options import OutputOption, Signed, ThreadsOption, WholeNumber, say
from plait.reports.plain_text import plural


def decode(
    model: Path,
    observations: Path,
    /,
    *,
    output: OutputOption,
    what: Literal["best", "sum", "count", "posterior"] = "best",
    beam: Annotated[float | None, Signed] = None,
    active: Annotated[WholeNumber | None, Signed] = None,
    threads: ThreadsOption = None,
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
    """
    from plait.states.files import decode_file

    sequences, rows = decode_file(
        model,
        observations,
        output,
        what=what,
        beam=math.inf if beam is None else beam,
        most=active,
        threads=threads,
    )
    say(f"{plural(sequences, 'sequence')}, {plural(rows, 'row')} in {output}")
