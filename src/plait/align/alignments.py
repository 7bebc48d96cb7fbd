"""Score and align: two sequences, lists of pairs, and one sequence against many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from plait.align.aligner import Aligner, Letters, Matrix, Traceback, guess_scoring, make_aligner
from plait.align.codes import PairBatch
from plait.align.matrices import Kind
from plait.align.results import Alignment
from plait.align.scoring import FreeEnd, Mode
from plait.errors import InvalidInput


class AlignmentSettings(TypedDict, total=False):
    """Settings of alignments, all optional.

    Attributes
    ----------
    mode
        ``"global"``, ``"local"``, ``"semiglobal"``, ``"overlap"`` or ``"extension"``: see
        `plait.align.scoring.free_ends_of`.
    free_ends
        For ``"semiglobal"``, any of query_start, query_end, target_start, target_end: residues left out there
        cost nothing. By default both ends of the target.
    matrix
        A matrix, the name of a bundled one, or a file in NCBI's format. By default BLOSUM62 for proteins, and
        2 for a match and -3 for a mismatch for nucleotides.
    gap_open, gap_extend
        Costs of the first and of every further residue of a gap, as positive numbers: a gap of g residues
        costs ``gap_open + (g - 1) * gap_extend``. (BLAST's existence G and extension E are G + E and E.)
        By default those of BLAST for the matrix.
    kind
        ``"protein"`` or ``"dna"`` (RNA too). By default what the matrix is for; without one, what the letters
        of both say: see `plait.align.codes.kind_of`. Where they leave it open, it has to be said.
    band
        Only cells with ``low <= j - i <= high`` are aligned, for row i and column j; one number b is (-b, b).
        Where no local alignment has a positive score, the one without columns lies at the band's first cell.
    x_drop
        For ``"extension"``: stop where the score has fallen so far below the best; see
        `plait.dp.pairs.rows`.
    traceback
        ``"full"`` keeps half a byte for each cell; ``"linear"`` keeps the edges of tiles and sweeps those the
        alignment passes through again; ``"auto"`` chooses by size. The alignment is the same.
    threads
        Threads; by default those of the settings.
    device
        ``"auto"`` (the first GPU that can be used, else the CPU), ``"cpu"``, ``"cuda"``, ``"cuda:N"``,
        ``"cuda:all"`` or ``"reference"`` (plain Python).
    """

    mode: Mode
    free_ends: Iterable[FreeEnd] | None
    matrix: Matrix | None
    gap_open: int | None
    gap_extend: int | None
    kind: Kind | None
    band: tuple[int, int] | int | None
    x_drop: int | None
    traceback: Traceback
    threads: int | None
    device: str


#: Those of the scoring; the others are of the aligner.
_OF_SCORING: Final = ("matrix", "gap_open", "gap_extend", "kind")


def _aligner(queries: Sequence[Letters], targets: Sequence[Letters], settings: AlignmentSettings) -> Aligner:
    """The aligner that is asked for, with a scoring that suits the sequences."""
    given: dict[str, Any] = dict(settings)
    scoring = {name: given.pop(name) for name in _OF_SCORING if name in given}
    return make_aligner(guess_scoring(queries, targets, **scoring), **given)


def score(
    query: Letters,
    target: Letters,
    **settings: Unpack[AlignmentSettings],
) -> int:
    """Score of a best alignment of two sequences.

    Parameters
    ----------
    query, target
        Sequences; either may be empty.
    **settings
        See `AlignmentSettings`.

    Returns
    -------
    int
        The score.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong.

    Examples
    --------
    >>> score("ACGTACGT", "ACGTCGT")
    7
    >>> score("HEAGAWGHEE", "PAWHEAE", mode="local", matrix="BLOSUM50", gap_open=8, gap_extend=8)
    28
    """
    aligner = _aligner([query], [target], settings)
    return int(aligner.score_codes(aligner.pair(query, target))[0])


def align(
    query: Letters,
    target: Letters,
    **settings: Unpack[AlignmentSettings],
) -> Alignment:
    """A best alignment of two sequences.

    Of several best alignments always the same one is given, whatever the schedule: it ends at the earliest
    query residue, then at the earliest target residue; in the traceback from there, two residues are aligned
    where that is best, else a residue of the target stands alone, else one of the query; and a gap is closed
    as soon as that is best.

    Parameters
    ----------
    query, target
        Sequences; either may be empty.
    **settings
        See `AlignmentSettings`.

    Returns
    -------
    Alignment
        Score, coordinates, CIGAR and counts.

    Raises
    ------
    InvalidInput
        If a setting or a letter is wrong.
    Unsupported
        If more memory is asked for than is sensible; the bytes are named.

    Examples
    --------
    >>> found = align("ACGTACGT", "ACGTCGT")
    >>> found.score, found.cigar
    (7, '4=1I3=')
    >>> found = align("HEAGAWGHEE", "PAWHEAE", mode="local", matrix="BLOSUM50", gap_open=8, gap_extend=8)
    >>> found.cigar, found.query_start, found.target_start
    ('2=1I2=', 4, 1)
    """
    aligner = _aligner([query], [target], settings)
    return aligner.align_codes(aligner.pair(query, target))[0]


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
    **settings: Unpack[AlignmentSettings],
) -> NDArray[np.int64]:
    """Scores of best alignments: the first query with the first target, and so on.

    Parameters
    ----------
    queries, targets
        Sequences, as many of each.
    **settings
        See `AlignmentSettings`.

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
    aligner = _aligner(queries, targets, settings)
    return aligner.score_codes(PairBatch(aligner.encode(queries, "query"), aligner.encode(targets, "target")))


def align_pairs(
    queries: Iterable[Letters],
    targets: Iterable[Letters],
    **settings: Unpack[AlignmentSettings],
) -> list[Alignment]:
    """Best alignments: of the first query with the first target, and so on.

    Parameters
    ----------
    queries, targets
        Sequences, as many of each. A query that comes with many targets is aligned with all of them at once.
    **settings
        See `AlignmentSettings`.

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
    aligner = _aligner(queries, targets, settings)
    return aligner.align_codes(PairBatch(aligner.encode(queries, "query"), aligner.encode(targets, "target")))


def score_many(
    query: Letters,
    targets: Iterable[Letters],
    **settings: Unpack[AlignmentSettings],
) -> NDArray[np.int64]:
    """Scores of best alignments of one query with each of many targets.

    Parameters
    ----------
    query
        A sequence.
    targets
        Sequences.
    **settings
        See `AlignmentSettings`.

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
    aligner = _aligner([query], targets, settings)
    return aligner.score_many(aligner.scoring.encode(query), aligner.encode(targets, "target"))


def align_many(
    query: Letters,
    targets: Iterable[Letters],
    **settings: Unpack[AlignmentSettings],
) -> list[Alignment]:
    """Best alignments of one query with each of many targets.

    Parameters
    ----------
    query
        A sequence.
    targets
        Sequences.
    **settings
        See `AlignmentSettings`.

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
    aligner = _aligner([query], targets, settings)
    return aligner.align_many(aligner.scoring.encode(query), aligner.encode(targets, "target"))
