"""What the sequences of files are scored with, where that is not said in full."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from plait.align.matrices import Kind, match_mismatch
from plait.align.residues import ALPHABETS, common_kind, count_sample
from plait.align.scoring import Scoring, make_scoring
from plait.errors import InvalidInput

__all__ = ["scoring_of_files"]

_Path = str | os.PathLike[str]

#: Scores of equal and of different letters where only one of the two is given.
_MATCH: Final = 2
_MISMATCH: Final = -3


def scoring_of_files(
    paths: Sequence[_Path],
    *,
    matrix: _Path | None = None,
    match: int | None = None,
    mismatch: int | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    kind: Kind | None = None,
) -> Scoring:
    """The scoring that is asked for, with defaults that suit the sequences of files.

    Parameters
    ----------
    paths
        FASTA files. They are looked at if neither `matrix` nor `kind` is given.
    matrix, gap_open, gap_extend
        As for `plait.align.scoring.make_scoring`.
    match, mismatch
        Scores of equal and of different letters, in the place of a matrix; 2 and -3 if one is left out.
    kind
        What the sequences are; if None, what the first letters of all files say, see
        `plait.align.residues.kind_of`.

    Raises
    ------
    InvalidInput
        If a setting is wrong or does not go with another, or the files hold different kinds of sequences, or
        what may be of either.
    FormatError
        If a file cannot be read.
    """
    by_letters = match is not None or mismatch is not None
    if by_letters and matrix is not None:
        raise InvalidInput(
            "matrix", found="a matrix and match or mismatch scores", expected="one or the other"
        )
    if matrix is not None:
        return make_scoring(matrix, gap_open, gap_extend, kind=kind)
    chosen = kind or common_kind({os.fspath(path): count_sample(path) for path in paths})
    if not by_letters:
        return make_scoring(None, gap_open, gap_extend, kind=chosen)
    scores = (_MATCH if match is None else match, _MISMATCH if mismatch is None else mismatch)
    letters = match_mismatch(*scores, letters=ALPHABETS[chosen])
    return make_scoring(letters, gap_open, gap_extend, kind=chosen)
