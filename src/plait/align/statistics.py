"""Bit scores and E-values of local alignments, as BLAST gives them.

The parameters are NCBI's (``data/karlin_altschul.json``). For proteins the E-value has the finite-size
correction of Park, Sheetlin, Ma, Madden and Spouge (BMC Research Notes 5:286, 2012), scaled from the target
to the database; for nucleotides it is Karlin and Altschul's (PNAS 87:2264, 1990) with the lengths shortened
by the edge correction of Altschul, Bundschuh, Olsen and Hwa (Nucleic Acids Research 29:351, 2001).
Without `composition_scores` results are those of ``blastp -comp_based_stats 0``.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from plait.align.scoring import NO_CODE, Scoring, SubstitutionMatrix, load_matrix
from plait.errors import InvalidInput

_AMINO_ACIDS: Final = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", np.uint8)
_BASES: Final = np.frombuffer(b"ACGT", np.uint8)
#: By how much composition lowers a score at the most, as in BLAST.
_LEAST_RATIO: Final = 0.5
_HALVINGS: Final = 30
_ITERATIONS: Final = 20
#: What BLAST leaves to a single alignment where several, of different frames, might make one gene.
TRANSLATED_SHARE: Final = 0.9
# What blastn takes as beta without gaps for these match and mismatch scores; for all others it is 0.
_UNGAPPED_BETA: Final = {(1, -1): -2.0, (2, -3): -2.0}


@dataclass(frozen=True)
class Parameters:
    """Parameters of the score distribution of chance alignments.

    `lambda_` is the scale, per unit of score; `k` the search-space factor; `h` the relative entropy, in nats
    per pair of residues. The mean length of a chance alignment is ``alpha * score + beta``; `alpha_v` and
    `sigma` are the slopes, in score, of the variance and the covariance of its two lengths, None where not
    known.
    """

    lambda_: float
    k: float
    h: float
    alpha: float
    beta: float
    alpha_v: float | None = None
    sigma: float | None = None


@dataclass(frozen=True)
class KarlinAltschul:
    """Statistics of the local alignments of one scoring, with parameters with and without gaps.

    `even_scores`: odd scores count as the even score below in E-values, as the parameters ask for.
    """

    scoring: Scoring
    gapped: Parameters
    ungapped: Parameters
    even_scores: bool = False

    def bit_score(self, raw: ArrayLike) -> NDArray[np.float64]:
        """Scores in bits, which do not depend on the scoring: ``(lambda * raw - ln k) / ln 2``."""
        scores = np.asarray(raw, np.float64)
        return np.asarray((self.gapped.lambda_ * scores - math.log(self.gapped.k)) / math.log(2.0))

    def evalue(
        self,
        raw: ArrayLike,
        query_length: ArrayLike,
        target_length: ArrayLike,
        *,
        database_residues: int | None = None,
        database_sequences: int = 1,
    ) -> NDArray[np.float64]:
        """Expected number of chance alignments that score as high; scores of 0 or more and lengths broadcast.

        Lengths are in residues. `database_residues` is the summed length of the sequences searched; by
        default each target is all that is searched, as if it alone were given to ``blastp -subject``.
        `database_sequences` is their number, used with `database_residues`, for nucleotides. `InvalidInput`
        if the database has no residues or no sequences.
        """
        for what, value in (("residues", database_residues), ("sequences", database_sequences)):
            if value is not None and value < 1:
                raise InvalidInput(f"database_{what}", found=repr(value), expected="1 or more")
        y, m, n = np.broadcast_arrays(
            *(np.asarray(x, np.float64) for x in (raw, query_length, target_length))
        )
        # An empty sequence has no alignment; its length only has to be one that can be divided by.
        m, n = np.maximum(m, 1.0), np.maximum(n, 1.0)
        if self.gapped.alpha_v is not None and self.gapped.sigma is not None:
            scale = 1.0 if database_residues is None else database_residues / n
            return self._pair_area(y, m, n) * self.gapped.k * np.exp(-self.gapped.lambda_ * y) * scale
        if self.even_scores:
            y = 2.0 * np.floor(y / 2.0)
        if database_residues is None:
            space = _search_space(self.gapped, m, n, np.ones_like(n))
        else:
            whole = np.full_like(m, database_residues), np.full_like(m, database_sequences)
            space = _search_space(self.gapped, m, *whole)
        return space * np.exp(math.log(self.gapped.k) - self.gapped.lambda_ * y)

    def least_score(self, evalue: float, query_length: int, longest: int, **database: int) -> int:
        """A score that an alignment of such an E-value, or a better one, has at the least.

        Targets have up to `longest` residues; `database` is as for `evalue`. That falls with the score. As
        there are more places in a longer target, it is at least that of a shorter one times the ratio of
        their lengths: some lengths tell enough of those between.
        """
        lengths = [1]
        while lengths[-1] <= longest:
            lengths.append(max(lengths[-1] * 5 // 4, lengths[-1] + 1))
        shorter, longer = np.array(lengths[:-1]), np.array(lengths[1:])

        def enough(score: int) -> bool:
            found = self.evalue(score, query_length, shorter, **database)
            return bool((found * shorter / longer).min() <= evalue)

        return bisect_left(range(1 << 10), True, key=enough)

    def _pair_area(
        self, y: NDArray[np.float64], m: NDArray[np.float64], n: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Expected number of places where an alignment of score y fits in sequences of lengths m and n.

        The two lengths of such an alignment are taken as normal with means, variances and a covariance that
        are linear in y (Park et al. 2012); their intercepts follow from the slopes with and without gaps and
        the cost of a gap.
        """
        with_gaps, without = self.gapped, self.ungapped
        assert with_gaps.alpha_v is not None and with_gaps.sigma is not None and without.alpha_v is not None
        gap = 2.0 * self.scoring.gap_open
        mean = with_gaps.alpha * y + gap * (without.alpha - with_gaps.alpha)
        variance = with_gaps.alpha_v * y + gap * (without.alpha_v - with_gaps.alpha_v)
        deviation = np.sqrt(np.maximum(2.0 * with_gaps.alpha_v / with_gaps.lambda_, variance))
        covariance = with_gaps.sigma * y + gap * (without.alpha_v - with_gaps.sigma)
        covariance = np.maximum(2.0 * with_gaps.sigma / with_gaps.lambda_, covariance)
        fits, room = [], []
        for length in (m, n):
            z = (length - mean) / deviation
            fits.append(0.5 * _erfc(z / -math.sqrt(2.0)))
            density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
            room.append((length - mean) * fits[-1] + deviation * density)
        return np.maximum(room[0] * room[1] + covariance * fits[0] * fits[1], 0.0)


def _erfc(x: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.fromiter(map(math.erfc, x.ravel().tolist()), np.float64, x.size)
    return values.reshape(x.shape)


def length_adjustment(
    parameters: Parameters, query_length: ArrayLike, residues: ArrayLike, sequences: ArrayLike
) -> NDArray[np.int64]:
    """Residues at the end of each sequence where no chance alignment can begin any more.

    The whole part of the largest l with ``l = beta + alpha / lambda * ln(k (m - l) (n - N l))``, found by the
    safeguarded fixed-point iteration of NCBI's BLAST_ComputeLengthAdjustment, so that it is the same number.
    The parameters are those with gaps; m is the length of the query, n the summed length of the N sequences
    searched, both 1 or more; the three broadcast.

    >>> parameters = Parameters(0.267, 0.041, 0.14, 1.9, -30.0)
    >>> length_adjustment(parameters, 352, 7814693, 20000).item()
    97
    """
    given = (np.asarray(x, np.float64) for x in (query_length, residues, sequences))
    m, n, number = np.broadcast_arrays(*given)
    slope, log_k = parameters.alpha / parameters.lambda_, math.log(parameters.k)

    def next_length(length: NDArray[np.float64]) -> NDArray[np.float64]:
        space = (m - length) * (n - number * length)
        return np.asarray(slope * (log_k + np.log(space)) + parameters.beta)

    # The largest length that leaves k * (m - l) * (n - N l) above max(m, n).
    rest = n * m - np.maximum(m, n) / parameters.k
    half = m * number + n
    usable = np.maximum(rest, 0.0)
    low, length = np.zeros_like(m), np.zeros_like(m)
    high = 2.0 * usable / (half + np.sqrt(half * half - 4.0 * number * usable))
    active, converged = rest >= 0.0, np.zeros(m.shape, np.bool_)
    for iteration in range(_ITERATIONS):
        proposed = next_length(length)
        below = proposed >= length
        low = np.where(active & below, length, low)
        high = np.where(active & ~below, length, high)
        converged |= active & below & (proposed - low <= 1.0)
        active &= ~converged & ~(below & (low == high))
        if not active.any():
            break
        other = high if iteration == 0 else (low + high) / 2.0
        chosen = np.where((low <= proposed) & (proposed <= high), proposed, other)
        length = np.where(active, chosen, length)
    up = np.minimum(np.ceil(low), high)
    rounds_up = converged & (np.ceil(low) <= high) & (next_length(up) >= up)
    return np.asarray(np.where(rounds_up, up, np.floor(low)), np.int64)


def _search_space(
    parameters: Parameters, m: NDArray[np.float64], n: NDArray[np.float64], number: NDArray[np.float64]
) -> NDArray[np.float64]:
    cut = length_adjustment(parameters, m, n, number).astype(np.float64)
    return np.maximum(n - number * cut, 1.0) * (m - cut)


@cache
def _pair_ratios() -> NDArray[np.float64]:
    """How much more often amino acids are paired than by chance, in their order here; of BLOSUM62."""
    file = Path(__file__).with_name("data") / "blosum62_ratios.json"
    told = json.loads(file.read_text("utf-8"))
    lower = np.zeros((_AMINO_ACIDS.size, _AMINO_ACIDS.size))
    for k, row in enumerate(told["ratios"]):
        lower[k, : k + 1] = row
    order = [told["letters"].index(chr(letter)) for letter in _AMINO_ACIDS]
    whole = np.maximum(lower, lower.T)
    return np.asarray(whole[np.ix_(order, order)])


def has_ratios(scoring: Scoring) -> bool:
    """Whether a matrix is one that `composition_scores` has the frequencies of pairs for."""
    scores = _scores_of(scoring.matrix, _AMINO_ACIDS)
    return scores is not None and _same_scores(["BLOSUM62"], scores) is not None


#: What scores for a composition are multiplied by, to be whole numbers.
COMPOSITION_SCALE: Final = 32


def composition_scores(
    statistics: KarlinAltschul, query: NDArray[np.uint8], target: NDArray[np.uint8]
) -> NDArray[np.int32]:
    """Scores of BLOSUM62 for the composition of two sequences, times 32, (codes, codes).

    Sequences are codes of the matrix. For the frequencies of the twenty amino acids in both, lambda without
    gaps is lower than for usual ones, but at least half of it, by a ratio that scores are scaled with
    (Schaeffer et al., Nucleic Acids Research 29:2994, 2001): those of ``blastp -comp_based_stats 1``, which
    masks regions of low complexity in the targets first.
    """
    matrix = statistics.scoring.matrix
    order = matrix.codes[_AMINO_ACIDS]
    counts = [np.bincount(codes, minlength=int(order.max()) + 1)[order] for codes in (query, target)]
    own, other = (frequency / max(frequency.sum(), 1) for frequency in counts)
    logarithms = np.log(_pair_ratios())
    # What is looked for is x with the sum of chance * ratio**x over all pairs = 1.
    low, high = _LEAST_RATIO, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        over = own @ np.exp(middle * logarithms) @ other > 1.0
        low, high = (low, middle) if over else (middle, high)
    share = COMPOSITION_SCALE * (low + high) / 2.0
    scores = np.rint(share * matrix.scores)
    scores[np.ix_(order, order)] = np.rint(share * logarithms / statistics.ungapped.lambda_)
    return np.asarray(scores, np.int32)


def karlin_altschul(scoring: Scoring) -> tuple[KarlinAltschul | None, str]:
    """Statistics of a scoring and ``""``; or None and why BLAST has no parameters for it, only for others.

    A protein matrix is known by its scores for the twenty amino acids, not by its name. For nucleotides the
    scores of A, C, G and T must be one match and one mismatch score. Where gaps are so dear that blastn takes
    the parameters without gaps, it derives them from the query; here all bases are equally frequent.
    """
    if scoring.matrix.kind == "protein":
        return _protein(scoring)
    return _nucleotide(scoring)


@cache
def _data() -> dict[str, Any]:
    file = Path(__file__).with_name("data") / "karlin_altschul.json"
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return data


def _scores_of(matrix: SubstitutionMatrix, letters: NDArray[np.uint8]) -> NDArray[np.int32] | None:
    codes = matrix.codes[letters]
    return None if (codes == NO_CODE).any() else matrix.scores[np.ix_(codes, codes)]


def _protein(scoring: Scoring) -> tuple[KarlinAltschul | None, str]:
    tables = _data()["protein"]
    scores = _scores_of(scoring.matrix, _AMINO_ACIDS)
    name = None if scores is None else _same_scores(tables, scores)
    if name is None:
        return None, (
            f"there are no Karlin-Altschul parameters for the matrix {scoring.matrix.name!r}, only for "
            f"{', '.join(tables)}"
        )
    table = tables[name]
    existence = scoring.gap_open - scoring.gap_extend
    for row in table["gapped"]:
        if row[:2] == [existence, scoring.gap_extend]:
            return KarlinAltschul(scoring, Parameters(*row[2:]), Parameters(*table["ungapped"])), ""
    return None, _no_gap_costs(scoring, name, [(row[0], row[1]) for row in table["gapped"]])


def _same_scores(names: Iterable[str], scores: NDArray[np.int32]) -> str | None:
    for name in names:
        bundled = _scores_of(load_matrix(name), _AMINO_ACIDS)
        if bundled is not None and np.array_equal(bundled, scores):
            return name
    return None


def _no_gap_costs(scoring: Scoring, name: str, pairs: list[tuple[float, float]], more: str = "") -> str:
    costs = [(existence + extension, extension) for existence, extension in pairs]
    whole = [f"{int(a)}/{int(b)}" for a, b in costs if float(a).is_integer() and float(b).is_integer()]
    return (
        f"there are no Karlin-Altschul parameters for {name} with gap_open/gap_extend "
        f"{scoring.gap_open}/{scoring.gap_extend}, only with {', '.join(whole)}{more}"
    )


def _nucleotide(scoring: Scoring) -> tuple[KarlinAltschul | None, str]:
    tables = _data()["nucleotide"]
    scores = _scores_of(scoring.matrix, _BASES)
    same = np.eye(len(_BASES), dtype=np.bool_)
    known = ", ".join(f"{table['match']}/{table['mismatch']}" for table in tables)
    if scores is None or len(set(scores[same].tolist())) > 1 or len(set(scores[~same].tolist())) > 1:
        return None, (
            f"there are no Karlin-Altschul parameters for the matrix {scoring.matrix.name!r}, only for one "
            f"match and one mismatch score ({known})"
        )
    match, mismatch = int(scores[0, 0]), int(scores[0, 1])
    unit = math.gcd(match, mismatch) or 1
    wanted = (match // unit, mismatch // unit)
    table = next((t for t in tables if (t["match"], t["mismatch"]) == wanted), None)
    if table is None:
        return None, (
            f"there are no Karlin-Altschul parameters for match/mismatch {match}/{mismatch}, only for "
            f"{known} and their multiples"
        )
    scale, entropy_k, entropy = table["ungapped"]
    beta = _UNGAPPED_BETA.get((match, mismatch), 0.0)
    ungapped = Parameters(scale / unit, entropy_k, entropy, scale / unit / entropy, beta)
    gapped = _nucleotide_gapped(scoring, table, unit, ungapped)
    if gapped is None:
        costs = [(row[0] * unit, row[1] * unit) for row in table["gapped"]]
        existence, extension = (cost * unit for cost in table["stringent"])
        more = f", or where gap_open - gap_extend is at least {existence} and gap_extend at least {extension}"
        return None, _no_gap_costs(scoring, f"match/mismatch {match}/{mismatch}", costs, more)
    return KarlinAltschul(scoring, gapped, ungapped, table["even_scores"]), ""


def _nucleotide_gapped(
    scoring: Scoring, table: dict[str, Any], unit: int, ungapped: Parameters
) -> Parameters | None:
    existence = (scoring.gap_open - scoring.gap_extend) / unit
    extension = scoring.gap_extend / unit
    for row in table["gapped"]:
        if (row[0], row[1]) == (existence, extension):
            scale, k, entropy, alpha, beta = row[2:]
            return Parameters(scale / unit, k, entropy, alpha / unit, beta)
    # Gaps this dear are so rare that the parameters are those without gaps.
    if existence >= table["stringent"][0] and extension >= table["stringent"][1]:
        return ungapped
    return None
