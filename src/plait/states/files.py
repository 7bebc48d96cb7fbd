"""Models and observations in files, and what is found as tables: ``plait decode``."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from plait._version import __version__
from plait.devices.target import over_threads, resolve
from plait.errors import FormatError, InvalidInput
from plait.formats.fasta import read_fasta
from plait.formats.files import read_array
from plait.formats.tables import open_table
from plait.states.decoding import Decoded, decode_each, likelihood_each, paths, posterior, ties
from plait.states.graphs import Graph
from plait.states.models import HiddenMarkovModel

#: Columns by name of each of some sequences.
_Columns: TypeAlias = list[dict[str, Any]]
_FIELDS: Final = {
    "best": [("score", pa.float64()), ("first", pa.int64()), ("last", pa.int64()), ("state", pa.string())],
    "sum": [("log_likelihood", pa.float64())],
    "count": [("paths", pa.string()), ("best_paths", pa.string())],
    "posterior": [("frame", pa.int64()), ("state", pa.string()), ("probability", pa.float64())],
    "graph": [("score", pa.float64()), ("labels", pa.list_(pa.int32()))],
}
#: Posteriors below this are left out.
_LEAST: Final = 1e-6
#: Sequences whose answers are held at a time.
_HELD: Final = 256


def decode_file(
    model: Path, observations: Path, output: Path | str, what: str, beam: float, most: int | None, **on: Any
) -> tuple[int, int]:
    """Decode sequences of a file and write a table; numbers of sequences and of rows.

    `what`: ``best``, ``sum``, ``count`` or ``posterior``, which graphs lack; `on`: device and threads.
    FormatError if a file is not what it should be; InvalidInput if the two do not fit.
    """
    is_model, answer = os.fspath(model).lower().endswith(".json"), partial(_of_graph, what, beam, most)
    fields, found = _FIELDS[what], "a hidden Markov model" if is_model else f"{what} with a graph"
    own: Any = (HiddenMarkovModel if is_model else Graph).read(model)
    if is_model:
        answer = partial(_of_model, what, on)
    elif what == "posterior":
        raise InvalidInput("what", found=found, expected="a hidden Markov model (.json)")
    else:
        fields = _FIELDS["graph"] if what == "best" else fields[:1]
    if (beam < math.inf or most is not None) and found != "best with a graph":
        raise InvalidInput("beam, active", found=found, expected="best with a graph, to which they belong")
    answer, schema = partial(answer, own), pa.schema([("sequence_id", pa.string()), *fields])
    facts = {"version": __version__, "model": os.path.realpath(model), "what": what}
    facts |= {"observations": os.path.realpath(observations), "beam": str(beam), "most": str(most)}
    told, sequences = {"plait.decode": json.dumps(facts)}, 0
    with open_table(output, schema, metadata=told, inputs=[model, observations]) as writer:
        for held in _held(observations):
            sequences += len(held)
            names, given = zip(*held, strict=True)
            try:
                each = answer(given)
            except InvalidInput as error:
                raise _blamed(error, observations, answer, held) from error
            counts = [len(one[fields[0][0]]) for one in each]
            columns = [pa.array(np.repeat(np.array(names, object), counts), pa.string())]
            for name, kind in fields:
                columns.append(pa.concat_arrays([pa.array(one[name], kind) for one in each]))
            writer.write(pa.record_batch(columns, schema=schema))
    return sequences, writer.rows


def _blamed(error: InvalidInput, path: object, answer: Any, held: Sequence[tuple[str, Any]]) -> Exception:
    """What is wrong with which of several sequences: told by looking at each."""
    for name, one in held if error.what in ("observations", "frames") else ():
        try:
            answer([one])
        except InvalidInput as own:
            return FormatError(path, found=f"{own.found} of sequence {name!r}", expected=own.expected)
    return error


def _held(path: str | os.PathLike[str]) -> Iterator[Sequence[tuple[str, Any]]]:
    """Some sequences with their names at a time: an array, or those of a FASTA file."""
    if os.fspath(path).lower().endswith(".npy"):
        yield [("1", read_array(path))]
        return
    for block in read_fasta(path):
        for first in range(0, len(block), _HELD):
            part = range(first, min(first + _HELD, len(block)))
            yield [(block.names[k], block.sequence(k).decode()) for k in part]


def _of_graph(what: str, beam: float, most: int | None, graph: Graph, given: Sequence[Any]) -> _Columns:
    """Columns for a sequence of frames; it comes alone, from an array."""
    (frames,) = given[:1]
    if isinstance(frames, str) or frames.ndim == 1:
        raise InvalidInput("frames", found="symbols", expected="logarithms (frames, labels) for a graph")
    if what == "sum":
        return [{"log_likelihood": [graph.log_sum(frames)]}]
    if what == "count":
        return [{"paths": [_digits(graph.paths(frames))]}]
    found = graph.best_path(frames, beam=beam, most=most)
    return [{"score": [found.score], "labels": [found.outputs.tolist()]}]


def _digits(number: int) -> str:
    """A whole number of any size as text; Python's own stops at 4,300 digits."""
    return f"{Decimal(number):f}"


def _of_model(what: str, on: Any, model: HiddenMarkovModel, given: Sequence[Any]) -> _Columns:
    """Columns for each of some sequences."""
    if what == "best":
        return [_stretches(model, one) for one in decode_each(model, given, **on)]
    if what == "sum":
        return [{"log_likelihood": [log]} for log in likelihood_each(model, given, **on).tolist()]

    def one(given: Any) -> dict[str, Any]:
        if what == "count":
            return {"paths": [_digits(paths(model, given))], "best_paths": [_digits(ties(model, given))]}
        shares = posterior(model, given)
        frames, own = np.nonzero(shares >= _LEAST)
        names = pa.array(model.states, pa.string()).take(pa.array(own))
        return {"frame": frames + 1, "state": names, "probability": shares[frames, own]}

    return over_threads(resolve("cpu", on["threads"]).threads, given, one)


def _stretches(model: HiddenMarkovModel, found: Decoded) -> dict[str, Any]:
    """A row for each stretch of frames in one state."""
    path, names = found.path, pa.array(model.states, pa.string())
    if found.score == -math.inf or not path.size:
        return {"score": [found.score], "first": [None], "last": [None], "state": [None]}
    ends = np.array([0, *(np.flatnonzero(np.diff(path)) + 1), path.size])
    states = names.take(pa.array(path[ends[:-1]]))
    return {"score": [found.score] * len(states), "first": ends[:-1] + 1, "last": ends[1:], "state": states}
