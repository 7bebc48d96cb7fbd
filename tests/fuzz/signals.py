"""Parsers of codes and their words, models, graphs and frames, texts with q-grams, events and episodes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
from tests.fuzz.mutation import json_mutation, raw_mutation, text_mutation
from tests.fuzz.tables import place
from tests.fuzz.trial import Parser

from plait.episodes.mining import count, read_episodes, read_events
from plait.ldpc import decode
from plait.ldpc.codes import read_alist
from plait.ldpc.files import read_words
from plait.qgrams import similarities
from plait.qgrams.files import read_texts
from plait.states import Graph, HiddenMarkovModel, posterior

_ALIST = (
    b"7 3\n3 4\n3 2 2 2 1 1 1\n4 4 4\n1 2 3\n1 2 0\n1 3 0\n2 3 0\n1 0 0\n2 0 0\n3 0 0\n"
    b"1 2 3 5\n1 2 4 6\n1 3 4 7\n",
    b"2 1\n1 2\n1 1\n2\n1\n1\n1 2\n",
)
_MODELS = tuple(
    json.dumps(one).encode()
    for one in (
        {"start": [0.5, 0.5], "transitions": [[0.9, 0.1], [0.2, 0.8]], "emissions": [[0.5, 0.5], [0.9, 0.1]]},
        {"start": [1], "transitions": [[1]], "states": ["a"], "symbols": ["x", "y"], "emissions": [[1, 0]]},
    )
)
_GRAPHS = (
    b"0 1 1 3 0.5\n0 1 2 4\n\n1 2 0 0 1\n2 0.25\n1\n",
    b"0 0 1\n0\n",
)
_TEXTS = (
    b">a x\nCASSLGF\n>b\nCASS\nLGQF\n",
    b"CASSLGF first\nCASTLGF\n\nCA\r\n",
)
_EVENTS = (
    b"type\ttime\nA\t1\nB\t3.5\nA\t4\nC\t9\n",
    b"time,type,more\n1,x,\n1,y,2\n-3,x,\n1e3,y,\n",
)
_EPISODES = (b"A -(5,15]-> B\nA\nB -(0,2.5]-> A -(0,1]-> C\n", b"episode\tcount\nA -(0,1]-> A\t5\n")


def _npy(values: object, kind: str) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array(values, kind))
    return file.getvalue()


_ARRAYS = (_npy([[0, -1.5], [2, 3]], "f8"), _npy([0, 1, 1], "i4"), _npy([[1, 2]], "u1"))


def _alist(data: bytes, folder: Path) -> None:
    code = read_alist(place(folder, data))
    words = code.encode(np.zeros((2, code.k), np.uint8))
    assert decode(np.where(words, -9.0, 9.0), code, iterations=2, device="cpu", threads=1).found.all()


def _model(data: bytes, folder: Path) -> None:
    model = HiddenMarkovModel.read(place(folder, data, "case.json"))
    if model.emissions is not None:
        shares = posterior(model, [0, 0])
        assert np.isnan(shares).all() or np.allclose(shares.sum(axis=1), 1)


def _graph(data: bytes, folder: Path) -> None:
    graph = Graph.read(place(folder, data))
    # More would be memory for its states, not a fault of the file.
    if graph.states < 1 << 16 and graph.labels < 1 << 12:
        graph.best_path(np.zeros((2, graph.labels)))


def _words(data: bytes, folder: Path) -> None:
    assert read_words(place(folder, data, "case.npy")).ndim == 2


def _similar(data: bytes, folder: Path) -> None:
    texts = read_texts(place(folder, data), smiles=len(data) % 2 == 1)[1]
    assert similarities(texts[:3], q=3, device="cpu", threads=1).shape == (min(len(texts), 3),) * 2


def _stream(data: bytes, folder: Path) -> None:
    count(*read_events(place(folder, data)), ["A -(0,2]-> B"], threads=1)


def _listed(data: bytes, folder: Path) -> None:
    assert all(isinstance(text, str) for text in read_episodes(place(folder, data)))


PARSERS = {
    "alist": lambda: Parser(
        name="alist", seeds=_ALIST, mutate=text_mutation((b"0", b"1", b"9" * 9), b" "), read=_alist
    ),
    "hidden_markov": lambda: Parser(
        name="hidden_markov",
        seeds=_MODELS,
        mutate=json_mutation(
            ("start", "transitions", "emissions", "states"), (0, 1, 0.5, -1, [1], "x", None)
        ),
        read=_model,
    ),
    "graphs": lambda: Parser(
        name="graphs",
        seeds=_GRAPHS,
        mutate=text_mutation((b"0", b"1", b"inf", b"nan", b"-1"), b" "),
        read=_graph,
    ),
    "words_npy": lambda: Parser(name="words_npy", seeds=_ARRAYS, mutate=raw_mutation, read=_words),
    "qgram_texts": lambda: Parser(
        name="qgram_texts",
        seeds=_TEXTS,
        mutate=text_mutation((b">", b"Cl", b"[", b"%12", b"\0")),
        read=_similar,
    ),
    "events": lambda: Parser(
        name="events",
        seeds=_EVENTS,
        mutate=text_mutation((b"type", b"time", b"nan", b"1e400", b"-0")),
        read=_stream,
    ),
    "episodes": lambda: Parser(
        name="episodes",
        seeds=_EPISODES,
        mutate=text_mutation((b" -(", b"]-> ", b",", b"inf", b"A")),
        read=_listed,
    ),
}
