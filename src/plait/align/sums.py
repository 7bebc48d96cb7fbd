"""Sums over all alignments of a pair: how many there are, how many are best, and how likely residues pair.

An alignment is a string of columns: two residues, one of the query alone, or one of the target alone. Two
alignments differ when a column does: a gap in one sequence that is followed by a gap in the other counts
apart from the same two gaps in the other order, as in Biopython's ``PairwiseAligner``. A global alignment
takes all residues. A local one begins and ends with a pair of residues, at any place; two of them differ
when their columns or their places do, and the one without columns, of score 0, counts once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.align.aligner import guess_kind
from plait.align.scoring import Scoring, make_scoring
from plait.dp.pairs.states import COLUMNS, SumTask, count_all, count_best, log_sum, pair_log_sums
from plait.errors import CountOverflow, InvalidInput, Unsupported
from plait.types import Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentCount:
    """How many alignments a pair has; `mode` is ``"global"`` or ``"local"``.

    With ``overflow="float"`` the count is in float64, rounded, infinite from 2^1024 on.
    """

    count: int | float
    mode: str
    provenance: Provenance = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalCount:
    """The best score of a pair, and how many alignments have it; `mode` is ``"global"`` or ``"local"``.

    With ``overflow="float"`` the count is in float64, rounded, infinite from 2^1024 on.
    """

    score: int
    count: int | float
    mode: str
    provenance: Provenance = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPartition:
    """A partition function: natural logarithm of the sum of ``exp(score / temperature)`` over all alignments.

    `mode` is ``"global"`` or ``"local"``.
    """

    value: float
    temperature: float
    mode: str
    provenance: Provenance = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchPosteriors:
    """How likely residues are to be paired, where alignments weigh ``exp(score / temperature)``.

    `probabilities`, (m, n), are those that query residue i is paired with target residue j; `log_partition`
    is the natural logarithm of the sum of the weights; `mode` is ``"global"`` or ``"local"``.
    """

    probabilities: NDArray[np.float64]
    log_partition: float
    temperature: float
    mode: str
    provenance: Provenance = field(repr=False)

    @property
    def query_unpaired(self) -> NDArray[np.float64]:
        """Probability that each query residue is paired with none, shape (m,)."""
        return np.asarray(np.maximum(1.0 - self.probabilities.sum(axis=1), 0.0))

    @property
    def target_unpaired(self) -> NDArray[np.float64]:
        """Probability that each target residue is paired with none, shape (n,)."""
        return np.asarray(np.maximum(1.0 - self.probabilities.sum(axis=0), 0.0))


_Mode = Literal["global", "local"]
_Overflow = Literal["wide", "float", "raise"]
_Device = Literal["auto", "cpu", "reference"]

#: What a 64-bit count is when the true one may be larger.
_HELD: Final = 2**63 - 1
#: Largest product of lengths for counts in Python integers: about 5 microseconds each.
_WIDE_CELLS: Final = 1 << 22
#: Whole numbers below it are exact in float64.
_EXACT: Final = 1 << 53


def count_alignments(
    query: str | bytes,
    target: str | bytes,
    *,
    mode: _Mode = "global",
    overflow: _Overflow = "wide",
    device: _Device = "auto",
) -> AlignmentCount:
    """Count the alignments of two sequences.

    Only the lengths matter. For global alignments the counts are the Delannoy numbers.

    Parameters
    ----------
    query, target
        The sequences.
    mode
        ``"global"`` or ``"local"``; see `plait.align.sums` for what counts as different.
    overflow
        What to do where the count needs 64 bits or more: ``"wide"`` takes Python integers, of any size,
        ``"float"`` rounds to float64 from the start, ``"raise"`` gives up.
    device
        ``"auto"`` and ``"cpu"`` run compiled code, ``"reference"`` plain Python.

    Returns
    -------
    AlignmentCount
        The number. Memory is proportional to the length of the target, time to the product of the lengths.

    Raises
    ------
    InvalidInput
        If an argument is wrong.
    CountOverflow
        With ``overflow="raise"``.
    Unsupported
        With ``overflow="wide"``, if the sequences are too long for Python integers.

    Examples
    --------
    >>> from plait.align.sums import count_alignments
    >>> count_alignments("ACG", "AG").count
    25
    """
    lengths = (len(query), len(target))
    codes = [np.zeros(length, np.uint8) for length in lengths]
    interpreted = _interpreted(mode, device)
    task = SumTask(codes[0], codes[1], np.zeros((1, 1), np.int64), 0, 0, mode == "local", interpreted)
    count, algebra = _counted(task, overflow, count_all)
    return AlignmentCount(
        count=count, mode=mode, provenance=_provenance(interpreted, algebra, mode=mode, overflow=overflow)
    )


def count_optimal(
    query: str | bytes,
    target: str | bytes,
    *,
    scoring: Scoring | None = None,
    mode: _Mode = "global",
    overflow: _Overflow = "wide",
    device: _Device = "auto",
) -> OptimalCount:
    """Count the alignments of two sequences that have the best score.

    Global alignments are counted as by Biopython. Local ones are not: Biopython leaves out those that hold a
    shorter one of the same score, at either end, and the one without columns.

    Parameters
    ----------
    query, target
        The sequences.
    scoring
        Matrix and gap costs; by default those of `plait.align.align` for such sequences.
    mode
        ``"global"`` or ``"local"``; see `plait.align.sums` for what counts as different.
    overflow
        What to do where the count needs 64 bits or more: ``"wide"`` takes Python integers, of any size,
        ``"float"`` rounds to float64 from the start, ``"raise"`` gives up.
    device
        ``"auto"`` and ``"cpu"`` run compiled code, ``"reference"`` plain Python.

    Returns
    -------
    OptimalCount
        Best score and number. Memory is proportional to the length of the target, time to the product of the
        lengths.

    Raises
    ------
    InvalidInput
        If an argument is wrong or a sequence has a letter that the matrix has not.
    CountOverflow
        With ``overflow="raise"``.
    Unsupported
        With ``overflow="wide"``, if the sequences are too long for Python integers.

    Examples
    --------
    >>> from plait.align.scoring import make_scoring
    >>> from plait.align.sums import count_optimal
    >>> count = count_optimal("GAAT", "GAT", scoring=make_scoring(kind="dna"))
    >>> count.score, count.count
    (-1, 2)
    """
    task, how = _task(query, target, scoring, mode, device)
    (score, count), algebra = _counted(task, overflow, count_best)
    provenance = _provenance(task.interpreted, f"Optimal of {algebra}", overflow=overflow, **how)
    return OptimalCount(score=score, count=count, mode=mode, provenance=provenance)


def log_partition(
    query: str | bytes,
    target: str | bytes,
    *,
    scoring: Scoring | None = None,
    temperature: float = 1.0,
    mode: _Mode = "global",
    device: _Device = "auto",
) -> LogPartition:
    """Logarithm of the partition function: the sum of ``exp(score / temperature)`` over all alignments.

    Parameters
    ----------
    query, target
        The sequences.
    scoring
        Matrix and gap costs; by default those of `plait.align.align` for such sequences.
    temperature
        What scores are divided by, more than 0. Towards 0 the best alignments take all the weight.
    mode
        ``"global"`` or ``"local"``; see `plait.align.sums` for what counts as different.
    device
        ``"auto"`` and ``"cpu"`` run compiled code, ``"reference"`` plain Python.

    Returns
    -------
    LogPartition
        The logarithm; see `plait.lang.algebras.LogSum` for its error. Memory is proportional to the length of
        the target, time to the product of the lengths.

    Raises
    ------
    InvalidInput
        If an argument is wrong or a sequence has a letter that the matrix has not.
    """
    task, how = _task(query, target, scoring, mode, device)
    _check_temperature(task, temperature)
    return LogPartition(
        value=log_sum(task, temperature),
        temperature=temperature,
        mode=mode,
        provenance=_provenance(task.interpreted, "LogSum", temperature=temperature, **how),
    )


def match_posteriors(
    query: str | bytes,
    target: str | bytes,
    *,
    scoring: Scoring | None = None,
    temperature: float = 1.0,
    mode: _Mode = "global",
    device: _Device = "auto",
    memory: int = 1 << 31,
) -> MatchPosteriors:
    """Probability that a residue of the query and one of the target are paired, for all of them.

    Alignments are weighted by ``exp(score / temperature)`` and summed forwards and backwards; see Miyazawa
    (1995), Protein Eng 8:999.

    Parameters
    ----------
    query, target
        The sequences, m and n residues.
    scoring
        Matrix and gap costs; by default those of `plait.align.align` for such sequences.
    temperature
        What scores are divided by, more than 0.
    mode
        ``"global"`` or ``"local"``; see `plait.align.sums` for what counts as different. For local alignments
        the weight of the one without columns is a part of the sum.
    device
        ``"auto"`` and ``"cpu"`` run compiled code, ``"reference"`` plain Python.
    memory
        Most bytes that may be used; 8 are needed for each pair of residues.

    Returns
    -------
    MatchPosteriors
        Probabilities, shape (m, n).

    Raises
    ------
    InvalidInput
        If an argument is wrong or a sequence has a letter that the matrix has not.
    Unsupported
        If more than `memory` bytes are needed.
    """
    task, how = _task(query, target, scoring, mode, device)
    _check_temperature(task, temperature)
    needed = 8 * (task.query.size * task.target.size + COLUMNS * (task.target.size + 1))
    if needed > memory:
        raise Unsupported(
            f"a matrix of {task.query.size} x {task.target.size} probabilities",
            why=f"it needs {needed} bytes and memory={memory} are allowed; log_partition needs no matrix",
        )
    matrix, total = pair_log_sums(task, temperature)
    matrix -= total
    np.exp(matrix, out=matrix)
    # Rounding may take a certain pair above 1.
    np.minimum(matrix, 1.0, out=matrix)
    return MatchPosteriors(
        probabilities=matrix,
        log_partition=total,
        temperature=temperature,
        mode=mode,
        provenance=_provenance(task.interpreted, "LogSum", temperature=temperature, **how),
    )


def _interpreted(mode: str, device: str) -> bool:
    if mode not in ("global", "local"):
        raise InvalidInput("mode", found=repr(mode), expected="'global' or 'local'")
    if device not in ("auto", "cpu", "reference"):
        raise InvalidInput("device", found=repr(device), expected="'auto', 'cpu' or 'reference'")
    return device == "reference"


def _task(
    query: str | bytes, target: str | bytes, scoring: Scoring | None, mode: str, device: str
) -> tuple[SumTask, dict[str, Any]]:
    """What is summed, by default with the scoring that suits the sequences; and how, for provenance."""
    scoring = make_scoring(kind=guess_kind([query], [target])) if scoring is None else scoring
    interpreted = _interpreted(mode, device)
    codes = (scoring.encode(query, "query"), scoring.encode(target, "target"))
    scores = scoring.matrix.scores.astype(np.int64)
    task = SumTask(*codes, scores, scoring.gap_open, scoring.gap_extend, mode == "local", interpreted)
    if _largest(task) >= _EXACT:
        found = f"scores that may add up to {_largest(task)}"
        raise InvalidInput("scoring", found=found, expected="sums below 2^53")
    costs = {"gap_open": scoring.gap_open, "gap_extend": scoring.gap_extend}
    return task, {"mode": mode, "matrix": scoring.matrix.name, **costs}


def _largest(task: SumTask) -> int:
    """More than the size of any score."""
    step = max(int(np.abs(task.scores).max(initial=0)), task.gap_open)
    return (task.query.size + task.target.size) * step


def _check_temperature(task: SumTask, temperature: float) -> None:
    if not (temperature > 0 and math.isfinite(temperature)):
        raise InvalidInput("temperature", found=repr(temperature), expected="a number above 0")
    if _largest(task) / temperature >= _EXACT:
        raise InvalidInput(
            "temperature",
            found=repr(temperature),
            expected="one at which the logarithms of weights stay below 2^53",
            hint="towards 0 the best alignments take all the weight; count_optimal counts them",
        )


def _counted(task: SumTask, overflow: str, count: Any) -> tuple[Any, str]:
    """What ``count(task, counter)`` gives, redone where it does not fit 64 bits; and the algebra."""
    if overflow not in ("wide", "float", "raise"):
        raise InvalidInput("overflow", found=repr(overflow), expected="'wide', 'float' or 'raise'")
    if overflow == "float":
        return count(task, "float"), "Probability"
    found = count(task, "hold")
    number = found[-1] if isinstance(found, tuple) else found
    if number < _HELD:
        return (*found[:-1], int(number)) if isinstance(found, tuple) else int(number), "SaturatingCount"
    if overflow == "raise":
        raise CountOverflow(record=0, items=1)
    cells = task.query.size * task.target.size
    if cells > _WIDE_CELLS:
        raise Unsupported(
            f"an exact count of 2^63 or more for {task.query.size} x {task.target.size} residues",
            why=f"Python integers serve up to {_WIDE_CELLS} pairs of residues; ask for overflow='float'",
        )
    return count(task._replace(interpreted=True), "wide"), "Count, in Python integers"


def _provenance(interpreted: bool, algebra: str, **parameters: Any) -> Provenance:
    device = "reference" if interpreted else "cpu"
    return Provenance(
        version=__version__, device=device, schedule="state_sweep", algebra=algebra, parameters=parameters
    )
