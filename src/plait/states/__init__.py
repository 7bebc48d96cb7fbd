"""Hidden Markov models and weighted graphs: best paths, sums over all, posteriors, fitting."""

from plait.states.decoding import (
    Decoded,
    Fitted,
    decode,
    decode_each,
    fit,
    likelihood,
    likelihood_each,
    paths,
    posterior,
    ties,
)
from plait.states.graphs import Graph, Path
from plait.states.models import HiddenMarkovModel

__all__ = [
    "Decoded",
    "Fitted",
    "Graph",
    "HiddenMarkovModel",
    "Path",
    "decode",
    "decode_each",
    "fit",
    "likelihood",
    "likelihood_each",
    "paths",
    "posterior",
    "ties",
]
