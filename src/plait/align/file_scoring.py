"""What the sequences of files are scored with, where that is not said in full."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from plait.align.matrices import Kind, match_mismatch
from plait.align.residues import ALPHABETS, guess_kind
from plait.align.scoring import Scoring, make_scoring
from plait.errors import InvalidInput
from plait.formats.fasta import read_fasta

__all__ = ["scoring_of_files"]

_Path = str | os.PathLike[str]

#: Bytes of text at the start of a file from which the kind of its sequences is guessed.
_SAMPLED_BYTES: Final = 1 << 16
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
        What the sequences are; if None, what `plait.align.residues.guess_kind` says.

    Raises
    ------
    InvalidInput
        If a setting is wrong or does not go with another, or the files hold different kinds of sequences.
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
    chosen = _kind_of_files(paths) if kind is None else kind
    if not by_letters:
        return make_scoring(None, gap_open, gap_extend, kind=chosen)
    scores = (_MATCH if match is None else match, _MISMATCH if mismatch is None else mismatch)
    letters = match_mismatch(*scores, letters=ALPHABETS[chosen])
    return make_scoring(letters, gap_open, gap_extend, kind=chosen)


def _kind_of_files(paths: Sequence[_Path]) -> Kind:
    """What the sequences of all files are, as far as their first letters say."""
    guesses: dict[Kind, _Path] = {}
    for path in paths:
        first = next(read_fasta(path, block_residues=_SAMPLED_BYTES))
        if first.letters.size:
            guesses.setdefault(guess_kind(first.letters), path)
    if len(guesses) > 1:
        raise InvalidInput(
            "kind",
            found=f"what looks like nucleotides in {guesses['dna']} and like proteins in "
            f"{guesses['protein']}",
            expected="sequences of one kind",
            hint="say which with --kind",
        )
    return next(iter(guesses), "protein")
