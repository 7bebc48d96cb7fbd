"""Alignments as text: the two rows with gaps, and EMBOSS's pair format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from plait.align.cigar import MATCH, MISMATCH, aligned_regions, column_blocks
from plait.errors import InvalidInput

if TYPE_CHECKING:
    from plait.align.results import Alignment

__all__ = ["aligned_strings", "alignment_lines"]

_GAP = ord("-")
#: Lines that are laid out at a time.
_BLOCK_LINES = 4096
#: Columns before the residues. Readers of the format cut every line there.
_MARGIN = 21
_FEWEST_DIGITS = 6
_RULE = "#" + 39 * "="
_IDENTICAL, _POSITIVE, _OTHER, _BLANK = (ord(mark) for mark in "|:. ")


def aligned_strings(alignment: Alignment, query: str | bytes, target: str | bytes) -> tuple[str, str]:
    """The aligned regions with ``-`` where a sequence has a gap.

    Parameters
    ----------
    alignment
        The alignment.
    query, target
        The whole sequences, as they were aligned.

    Returns
    -------
    tuple of str
        Two strings of one length, letters as given.

    Raises
    ------
    InvalidInput
        If a sequence is shorter than the coordinates say, or not ASCII.
    """
    aligned = aligned_regions(alignment, _letters("query", query), _letters("target", target))
    blocks = list(column_blocks(*aligned, gap=_GAP))
    first = b"".join(block.query.tobytes() for block in blocks)
    second = b"".join(block.target.tobytes() for block in blocks)
    return first.decode("ascii"), second.decode("ascii")


def alignment_lines(
    alignment: Alignment,
    query: str | bytes,
    target: str | bytes,
    *,
    names: tuple[str, str] = ("query", "target"),
    width: int = 60,
) -> Iterator[str]:
    """Lines of EMBOSS's pair format (``srspair``), one alignment.

    Between the rows, ``|`` marks a match, ``:`` a mismatch of positive score, ``.`` any other mismatch.
    Coordinates are 1-based; a line without residues of a sequence shows how many came before it.

    Parameters
    ----------
    alignment
        The alignment.
    query, target
        The whole sequences, as they were aligned.
    names
        Of query and target. Rows show the first 13 characters, fewer in front of long numbers.
    width
        Columns in a line.

    Yields
    ------
    str
        Lines with line ends; an alignment of any length is laid out piece by piece.

    Raises
    ------
    InvalidInput
        If a sequence is shorter than the coordinates say, or has a letter the matrix lacks.

    Notes
    -----
    Source: https://emboss.sourceforge.net/docs/themes/AlignFormats.html. EMBOSS itself leaves out the mark of
    a match that does not score, such as N with N; here the number of ``|`` is the identity.
    """
    if width < 1:
        raise InvalidInput("width", found=width, expected="at least 1")
    aligned = aligned_regions(alignment, _letters("query", query), _letters("target", target))
    yield from _header(alignment, names).splitlines(keepends=True)
    digits = max(_FEWEST_DIGITS, len(str(max(alignment.query_end, alignment.target_end))))
    label = _MARGIN - 2 - digits
    shown = [f"{name[:label]:<{label}}" for name in names]
    at = [alignment.query_start, alignment.target_start]
    for block in column_blocks(*aligned, gap=_GAP, columns=width * _BLOCK_LINES):
        rows = [block.query.tobytes().decode("ascii"), block.target.tobytes().decode("ascii")]
        marks = _marks(alignment, block.operations, block.query, block.target).tobytes().decode("ascii")
        for start in range(0, len(marks), width):
            lines = []
            for side in (0, 1):
                letters = rows[side][start : start + width]
                used = len(letters) - letters.count("-")
                first, at[side] = at[side] + (used > 0), at[side] + used
                lines.append(f"{shown[side]} {first:>{digits}} {letters} {at[side]:>{digits}}\n")
            yield lines[0]
            yield f"{' ' * _MARGIN}{marks[start : start + width]}\n"
            yield lines[1]
            yield "\n"
    yield "\n"


def _header(alignment: Alignment, names: tuple[str, str]) -> str:
    scoring = alignment.scoring
    length = alignment.length
    counts = {"Identity:": alignment.matches, "Similarity:": alignment.similar, "Gaps:": alignment.gaps}
    shares = "".join(
        f"# {title:<11} {count:>5}/{length} ({100 * count / length if length else 0.0:4.1f}%)\n"
        for title, count in counts.items()
    )
    return (
        f"{_RULE}\n#\n# Aligned_sequences: 2\n# 1: {names[0]}\n# 2: {names[1]}\n"
        f"# Matrix: {scoring.matrix.name}\n# Gap_penalty: {scoring.gap_open}.0\n"
        f"# Extend_penalty: {scoring.gap_extend}.0\n#\n# Length: {length}\n{shares}"
        f"# Score: {alignment.score}.0\n#\n#\n{_RULE}\n\n"
    )


def _marks(
    alignment: Alignment,
    operations: NDArray[np.uint8],
    query: NDArray[np.uint8],
    target: NDArray[np.uint8],
) -> NDArray[np.uint8]:
    marks = np.full(len(operations), _BLANK, np.uint8)
    marks[operations == MATCH] = _IDENTICAL
    different = np.flatnonzero(operations == MISMATCH)
    if not len(different):
        return marks
    matrix = alignment.scoring.matrix
    first, second = matrix.codes[query[different]], matrix.codes[target[different]]
    known = len(matrix.letters)
    for name, codes, letters in (("query", first, query), ("target", second, target)):
        if (codes >= known).any():
            letter = chr(letters[different[np.argmax(codes >= known)]])
            raise InvalidInput(name, found=f"the letter {letter!r}", expected=f"letters of {matrix.name}")
    positive = matrix.scores[first, second] > 0
    marks[different] = np.where(positive, np.uint8(_POSITIVE), np.uint8(_OTHER))
    return marks


def _letters(name: str, sequence: str | bytes) -> NDArray[np.uint8]:
    if not sequence.isascii():
        letters = sequence if isinstance(sequence, str) else sequence.decode("latin-1")
        foreign = next(letter for letter in letters if not letter.isascii())
        raise InvalidInput(name, found=f"the letter {foreign!r}", expected="ASCII letters")
    return np.frombuffer(sequence.encode("ascii") if isinstance(sequence, str) else sequence, np.uint8)
