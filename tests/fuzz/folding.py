"""Parsers of what is folded: energy parameters, sequences with constraints, reactivities, structures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.fuzz.mutation import text_mutation
from tests.fuzz.tables import place
from tests.fuzz.trial import Parser

from plait.folding import FoldSettings, Model, Parameters
from plait.folding.energies import weigh
from plait.folding.folds import codes_checked
from plait.folding.inputs import Inputs, evaluated, reactivities_of, read_reactivities

_STACK = " ".join(str(-240 + 10 * (k % 7)) for k in range(49))
_HEAD = b"## RNAfold parameter file v2.0\n"
_PARAMETERS = (
    _HEAD + f"\n# stack\n/*  CG GC */\n{_STACK}\n# NINIO\n60 320 300\n# END\n".encode(),
    _HEAD + b"# Misc\n410 360 50 370 107.856 0\n# ML_params\n0 0 930 3000 -90 -220\n",
    _HEAD + b"# Tetraloops\nCAACGG 550 690\nCCAAGG 330 -1030\n# Triloops\nGUUAC 690 DEF\n",
)
_SEQUENCES = (
    b">a told\nGGGGAAAACCCC\n....x.......\n>b\nGGGAAAUCCC\n",
    b"GGGGAAAACCCC\n((((....))))\nACGU\n\nGGGAAACCC\r\n<.......>\r\n",
    b">a\nGGGGAAAACCCC\n>b\nNNACGU\n|.....\n",
)
_REACTIVITIES = (
    b"1 G 0.1\n2 0.3\n3 NA\n",
    b">a\n1 0.5\n# told\n2 -999\n>b\n12 C 1e-3\n",
)
_STRUCTURES = (
    b">a\nGGGGAAAACCCC\n((((....)))) ( -5.40)\n",
    b"GGGAAACCC\n(((...)))\nACGU\n....\n",
)


def _parameters(data: bytes, folder: Path) -> None:
    found = Parameters.read(place(folder, data))
    weighing = weigh(Model(found), "scores", 128)
    assert not any(np.isnan(table).any() for table in weighing.loops[1:])


def _sequences(data: bytes, folder: Path) -> None:
    path = place(folder, data)
    inputs = Inputs(path, constrained=True)
    settings = FoldSettings(enforce=len(data) % 2 == 1, max_span=30 if len(data) % 3 == 0 else None)
    for records in inputs.records():
        for k in range(len(records.sequences)):
            one = inputs.molecule(records, k, settings)
            assert one.partners is None or one.partners.shape == (2, one.codes.size)


def _reactivities(data: bytes, folder: Path) -> None:
    path = place(folder, data)
    for told in read_reactivities(path).values():
        found = reactivities_of(path, told, codes_checked("GGGGAAAACCCC", 1))
        assert np.isfinite(found).all()


def _structures(data: bytes, folder: Path) -> None:
    for _, sequence, structure, loops in evaluated(Inputs(place(folder, data)), FoldSettings()):
        assert len(sequence) == len(structure) and len(loops) == structure.count("(") + 1


PARSERS = {
    "fold_parameters": lambda: Parser(
        name="fold_parameters",
        seeds=_PARAMETERS,
        mutate=text_mutation((b"INF", b"DEF", b"-", b"# stack", b"nan", b"1e999", b"/*", b"*/")),
        read=_parameters,
    ),
    "fold_sequences": lambda: Parser(
        name="fold_sequences",
        seeds=_SEQUENCES,
        mutate=text_mutation((b"(", b")", b"<", b"|", b"x", b"N", b">")),
        read=_sequences,
    ),
    "fold_reactivities": lambda: Parser(
        name="fold_reactivities",
        seeds=_REACTIVITIES,
        mutate=text_mutation((b"NA", b"-", b">", b"nan", b"inf", b"1")),
        read=_reactivities,
    ),
    "fold_structures": lambda: Parser(
        name="fold_structures",
        seeds=_STRUCTURES,
        mutate=text_mutation((b"(", b")", b".", b"-1.0", b">")),
        read=_structures,
    ),
}
