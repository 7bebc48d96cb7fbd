"""Score and align many sequences: lists of pairs, and one sequence against many."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from plait.align.aligner import Letters, Matrix, guess_scoring, make_aligner
from plait.align.codes import PairBatch
from plait.align.many import align_many_codes, score_many_codes
from plait.align.matrices import Kind
from plait.align.modes import FreeEnd, Mode
from plait.align.results import Alignment
from plait.errors import InvalidInput

__all__ = ["align_many", "align_pairs", "score_many", "score_pairs"]


def _listed(what: str, sequences: Iterable[Letters]) -> list[Letters]:
    """Sequences as a list: they are gone through more than once."""
    expected = "several sequences, each a str or bytes"
    if isinstance(sequences, str | bytes) or not isinstance(sequences, Iterable):
        raise InvalidInput(what, found=f"one {type(sequences).__name__}", expected=expected)
    listed = list(sequences)
    for number, sequence in enumerate(listed, 1):
        if not isinstance(sequence, str | bytes):
            found = f"a {type(sequence).__name__} as number {number}"
            raise InvalidInput(what, found=found, expected=expected)
    return listed


def _pairs(queries: Iterable[Letters], targets: Iterable[Letters]) -> tuple[list[Letters], list[Letters]]:
    listed = _listed("queries", queries), _listed("targets", targets)
    if len(listed[0]) != len(listed[1]):
        found = f"{len(listed[0])} queries and {len(listed[1])} targets"
        raise InvalidInput("pairs", found=found, expected="as many queries as targets")
    return listed


def score_pairs(
    queries: Iterable[Letters],
    targets: Iterable[Letters],
    *,
    mode: Mode = "global",
    free_ends: Iterable[FreeEnd] | None = None,
    matrix: Matrix | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    kind: Kind | None = None,
    threads: int | None = None,
    device: str = "auto",
) -> NDArray[np.int64]:
    """Scores of best alignments: the first query with the first target, and so on.

    Parameters
    ----------
    queries, targets
        Sequences, as many of each.
    mode, free_ends, matrix, gap_open, gap_extend, kind, threads, device
        As for `align`.

    Returns
    -------
    NDArray[np.int64]
        Shape (pairs,).

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong, or the numbers of sequences differ.
    """
    queries, targets = _pairs(queries, targets)
    scoring = guess_scoring(queries, targets, matrix, gap_open, gap_extend, kind)
    aligner = make_aligner(scoring, mode=mode, free_ends=free_ends, threads=threads, device=device)
    return aligner.score_codes(PairBatch(aligner.encode(queries, "query"), aligner.encode(targets, "target")))


def align_pairs(
    queries: Iterable[Letters],
    targets: Iterable[Letters],
    *,
    mode: Mode = "global",
    free_ends: Iterable[FreeEnd] | None = None,
    matrix: Matrix | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    kind: Kind | None = None,
    threads: int | None = None,
    device: str = "auto",
) -> list[Alignment]:
    """Best alignments: of the first query with the first target, and so on.

    Parameters
    ----------
    queries, targets
        Sequences, as many of each. A query that comes with many targets is aligned with all of them at once.
    mode, free_ends, matrix, gap_open, gap_extend, kind, threads, device
        As for `align`.

    Returns
    -------
    list of Alignment
        In the order of the pairs.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong, or the numbers of sequences differ.
    """
    queries, targets = _pairs(queries, targets)
    scoring = guess_scoring(queries, targets, matrix, gap_open, gap_extend, kind)
    aligner = make_aligner(scoring, mode=mode, free_ends=free_ends, threads=threads, device=device)
    return aligner.align_codes(PairBatch(aligner.encode(queries, "query"), aligner.encode(targets, "target")))


def score_many(
    query: Letters,
    targets: Iterable[Letters],
    *,
    mode: Mode = "global",
    free_ends: Iterable[FreeEnd] | None = None,
    matrix: Matrix | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    kind: Kind | None = None,
    threads: int | None = None,
    device: str = "auto",
) -> NDArray[np.int64]:
    """Scores of best alignments of one query with each of many targets.

    Parameters
    ----------
    query
        A sequence.
    targets
        Sequences.
    mode, free_ends, matrix, gap_open, gap_extend, kind, threads, device
        As for `align`.

    Returns
    -------
    NDArray[np.int64]
        Shape (targets,).

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong.
    """
    targets = _listed("targets", targets)
    scoring = guess_scoring([query], targets, matrix, gap_open, gap_extend, kind)
    aligner = make_aligner(scoring, mode=mode, free_ends=free_ends, threads=threads, device=device)
    codes = aligner.encode(targets, "target")
    return score_many_codes(scoring.encode(query, "query"), codes, scoring, aligner.free, aligner.target)


def align_many(
    query: Letters,
    targets: Iterable[Letters],
    *,
    mode: Mode = "global",
    free_ends: Iterable[FreeEnd] | None = None,
    matrix: Matrix | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    kind: Kind | None = None,
    threads: int | None = None,
    device: str = "auto",
) -> list[Alignment]:
    """Best alignments of one query with each of many targets.

    Parameters
    ----------
    query
        A sequence.
    targets
        Sequences.
    mode, free_ends, matrix, gap_open, gap_extend, kind, threads, device
        As for `align`.

    Returns
    -------
    list of Alignment
        In the order of the targets.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong.
    """
    targets = _listed("targets", targets)
    scoring = guess_scoring([query], targets, matrix, gap_open, gap_extend, kind)
    aligner = make_aligner(scoring, mode=mode, free_ends=free_ends, threads=threads, device=device)
    codes = aligner.encode(targets, "target")
    return align_many_codes(scoring.encode(query, "query"), codes, scoring, aligner.free, aligner.target)
