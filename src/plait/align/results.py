"""The alignment of two sequences: coordinates, CIGAR and what is counted over its columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from plait.align.cigar import (
    DELETION,
    INSERTION,
    MATCH,
    MISMATCH,
    aligned_regions,
    column_blocks,
)
from plait.align.paths import describe
from plait.align.text import alignment_lines
from plait.errors import InvalidInput
from plait.schedules.path_columns import Paths

if TYPE_CHECKING:
    from plait.align.scoring import Scoring

__all__ = ["Alignment", "make_alignment", "make_alignments", "rescore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """An alignment of a query to a target. Coordinates are 0-based and half-open.

    Residues outside the coordinates are not aligned, which costs nothing in the mode that was asked for. An
    alignment without columns has score 0 (or what its mode says of empty sequences) and an empty CIGAR.

    Attributes
    ----------
    score
        Sum over the columns.
    query_start, query_end, target_start, target_end
        What is aligned of the two.
    cigar
        The columns: ``=`` match, ``X`` mismatch, ``I`` residue of the query alone, ``D`` of the target alone.
    matches
        Columns with one letter twice; case does not matter, U is T in nucleotides, and an ambiguity code
        matches itself. Letters that the matrix has not are what they are scored as.
    mismatches
        Columns with two different letters.
    similar
        Columns with a positive substitution score: what EMBOSS calls similarity.
    gaps
        Columns with one residue.
    gap_openings
        Runs of such columns.
    scoring
        What it was scored with; left out of comparisons.
    """

    score: int
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    cigar: str
    matches: int
    mismatches: int
    similar: int
    gaps: int
    gap_openings: int
    scoring: Scoring = field(repr=False, compare=False)

    @property
    def length(self) -> int:
        """Number of columns."""
        return self.matches + self.mismatches + self.gaps

    @property
    def identity(self) -> float:
        """Matches as a share of the columns, 0 to 1; 0 without columns."""
        return self.matches / self.length if self.length else 0.0

    @property
    def similarity(self) -> float:
        """Columns of positive score as a share of the columns, 0 to 1; 0 without columns."""
        return self.similar / self.length if self.length else 0.0

    def text(
        self,
        query: str | bytes,
        target: str | bytes,
        *,
        query_name: str = "query",
        target_name: str = "target",
        width: int = 60,
    ) -> str:
        """The alignment as EMBOSS shows it (format srspair).

        Parameters
        ----------
        query, target
            The whole sequences, as they were aligned.
        query_name, target_name
            Stand in front of the rows.
        width
            Columns in a line.

        Returns
        -------
        str
            A header and the rows, with 1-based coordinates. `plait.align.text.alignment_lines` gives the same
            line by line, for alignments that are long.

        Raises
        ------
        InvalidInput
            If a sequence is shorter than the coordinates say or has a letter the matrix lacks.
        """
        names = (query_name, target_name)
        return "".join(alignment_lines(self, query, target, names=names, width=width))


def make_alignment(
    query_codes: NDArray[np.uint8],
    target_codes: NDArray[np.uint8],
    scoring: Scoring,
    score: int,
    query_end: int,
    target_end: int,
    runs: NDArray[np.int64],
) -> Alignment:
    """An alignment from the path of one pair.

    Parameters
    ----------
    query_codes, target_codes
        uint8: the sequences as indices into the matrix.
    scoring
        What they were aligned with.
    score
        Score of the path.
    query_end, target_end
        Where the path ends, exclusive.
    runs
        int64 (r, 2): operation and number of columns, in the order of the sequences. Operation 0 is a pair of
        residues, 1 a residue of the target alone, 2 one of the query alone. Runs may be empty, and neighbours
        may be of one operation; they are one run of the alignment then.

    Raises
    ------
    InvalidInput
        If the path is longer than the sequences before its end.
    """
    zero = np.zeros(1, np.int64)
    return make_alignments(
        query_codes,
        zero,
        target_codes,
        zero,
        scoring,
        np.array([score], np.int64),
        np.array([query_end], np.int64),
        np.array([target_end], np.int64),
        runs,
        np.array([0, len(runs)], np.int64),
    )[0]


def make_alignments(
    query_codes: NDArray[np.uint8],
    query_offsets: NDArray[np.int64],
    target_codes: NDArray[np.uint8],
    target_offsets: NDArray[np.int64],
    scoring: Scoring,
    scores: NDArray[np.int64],
    query_ends: NDArray[np.int64],
    target_ends: NDArray[np.int64],
    runs: NDArray[np.int64],
    run_offsets: NDArray[np.int64],
) -> list[Alignment]:
    """Alignments from the paths of n pairs, all at once.

    Parameters
    ----------
    query_codes, target_codes
        uint8: sequences as indices into the matrix, one behind the other.
    query_offsets, target_offsets
        int64 (n,): where the sequences of each pair start; pairs may share them.
    scoring
        What they were aligned with.
    scores, query_ends, target_ends
        int64 (n,): score of each path, and where in its sequences it ends, exclusive.
    runs
        int64 (r, 2): the paths as `make_alignment` takes them, one behind the other.
    run_offsets
        int64 (n + 1,): first run of each pair, and r.

    Returns
    -------
    list of Alignment
        In the order of the pairs.

    Raises
    ------
    InvalidInput
        If a path is longer than the sequences before its end.
    """
    paths = Paths(
        query_codes,
        target_codes,
        np.ascontiguousarray(query_offsets),
        np.ascontiguousarray(target_offsets),
        np.ascontiguousarray(query_ends),
        np.ascontiguousarray(target_ends),
        scoring.matrix.scores,
        np.ascontiguousarray(runs),
        run_offsets,
    )
    found = describe(paths)
    columns = (scores.tolist(), query_ends.tolist(), target_ends.tolist(), found.counts.tolist())
    return [
        Alignment(
            score=score,
            query_start=query_start,
            query_end=query_end,
            target_start=target_start,
            target_end=target_end,
            cigar=cigar,
            matches=matches,
            mismatches=mismatches,
            similar=similar,
            gaps=gaps,
            gap_openings=gap_openings,
            scoring=scoring,
        )
        for (
            cigar, score, query_end, target_end,
            (query_start, target_start, matches, mismatches, similar, gaps, gap_openings),
        ) in zip(found.cigars, *columns, strict=True)
    ]  # fmt: skip


def rescore(
    alignment: Alignment,
    query_codes: NDArray[np.uint8],
    target_codes: NDArray[np.uint8],
    scoring: Scoring,
) -> int:
    """Score of an alignment, worked out from its CIGAR alone.

    A gap of g residues costs ``gap_open + (g - 1) * gap_extend``.

    Parameters
    ----------
    alignment
        Its coordinates and CIGAR are used, nothing else of it.
    query_codes, target_codes
        uint8: the whole sequences as indices into the matrix.
    scoring
        Matrix and gap costs.

    Raises
    ------
    InvalidInput
        If CIGAR and coordinates contradict each other or the sequences, or a run of ``=`` or ``X`` covers a
        column that is not one.
    """
    runs, query, target = aligned_regions(alignment, query_codes, target_codes)
    operations, lengths = runs
    gaps = lengths[(operations == DELETION) | (operations == INSERTION)]
    score = -int(len(gaps) * scoring.gap_open + int((gaps - 1).sum()) * scoring.gap_extend)
    table = scoring.matrix.scores
    for block in column_blocks(runs, query, target, gap=0):
        same = block.query == block.target
        wrong = np.where(same, block.operations == MISMATCH, block.operations == MATCH)
        if wrong.any():
            raise InvalidInput(
                "cigar", found="= or X in a wrong column", expected="= for equal letters, X for others"
            )
        paired = (block.operations == MATCH) | (block.operations == MISMATCH)
        score += int(table[block.query[paired], block.target[paired]].sum(dtype=np.int64))
    return score
