"""Fold sequences: best structures, ensembles, samples, and what a structure is worth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Target, resolve
from plait.dp.intervals.launches import ENSEMBLES, FOLDS, EnsembleBatch, FoldBatch, Folded, Summed
from plait.dp.intervals.loops import (
    BULGE,
    CLOSING,
    EXTERIOR,
    GENERIC,
    LARGEST_LOOP,
    ONE_SIDED,
    SMALLEST_HAIRPIN,
    STEM,
    asymmetry,
    bulge,
    hairpin_weight,
    interior,
    inward_row,
    loop_weight,
    outward_row,
    pair_type,
)
from plait.dp.intervals.tables import SPECIAL_SIZES, Strand, strands_of
from plait.errors import InvalidInput
from plait.folding.energies import SCORES, Model, longer_loop, weigh
from plait.folding.parameters import LETTERS, EnergyParameters, codes_of
from plait.folding.structures import (
    PairTable,
    brackets,
    centroid,
    diversity,
    most_expected_accuracy,
    partners_of,
    probability_marks,
)

#: The longest sequence that can be folded.
LONGEST: Final = 32_000
#: Bases from which sums are scaled, so that they fit.
_SCALED: Final = 300
#: Scales are multiples of this many logarithms a base, so that tables serve several sequences.
_SCALE_STEP: Final = 0.02
_LEAST_TABLE: Final = 128


@dataclass(frozen=True)
class FoldSettings:
    """How sequences are folded.

    Parameters
    ----------
    model
        What structures are weighed by; otherwise Turner's parameters of 2004 at 37 degrees.
    max_span
        Most bases from one of a pair to the other, both included; otherwise any.
    """

    model: Model = field(default_factory=lambda: Model(EnergyParameters.standard()))
    max_span: int | None = None


@dataclass(frozen=True, eq=False)
class Folds:
    """Best structures.

    Parameters
    ----------
    structures
        One of least energy for every sequence, in brackets.
    energies
        Their energies in kcal/mol. Shape (sequences,).
    """

    structures: list[str]
    energies: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """All structures of a sequence.

    Parameters
    ----------
    structure, energy
        A best structure, and its energy in kcal/mol.
    ensemble_energy
        Free energy of the ensemble in kcal/mol.
    table
        Pairs and their probabilities, where they were asked for.
    samples
        Structures drawn, each as often as it is probable.
    frequency
        Share of the best structure in the ensemble.
    """

    structure: str
    energy: float
    ensemble_energy: float
    table: PairTable
    samples: list[str]
    frequency: float

    @property
    def diversity(self) -> float:
        """Mean number of pairs that one of two structures has and the other has not."""
        return diversity(self.table)

    @property
    def marks(self) -> str:
        """What each base mostly does, by the signs of RNAfold."""
        return probability_marks(self.table)

    def centroid(self) -> tuple[str, float]:
        """The structure that is nearest to all.

        Returns
        -------
        str
            Pairs more probable than one half, in brackets.
        float
            Mean distance of structures from it.
        """
        partners, distance = centroid(self.table)
        return brackets(partners), distance

    def most_expected_accuracy(self, gamma: float = 1.0) -> tuple[str, float]:
        """The structure of which most is expected to be right.

        Parameters
        ----------
        gamma
            What a pair counts for, beside its two bases unpaired.

        Returns
        -------
        str
            The structure in brackets.
        float
            What is expected to be right of it.
        """
        partners, accuracy = most_expected_accuracy(self.table, gamma)
        return brackets(partners), accuracy


def mfe(
    sequences: Sequence[str],
    settings: FoldSettings | None = None,
    *,
    threads: int | None = None,
    device: str = "auto",
) -> Folds:
    """Find a structure of least energy for every sequence.

    Parameters
    ----------
    sequences
        RNA or DNA, of A, C, G, U or T, and N.
    settings
        How they are folded.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        One of `plait.devices.target.DEVICES`; GPUs are not used yet.

    Returns
    -------
    Folds
        Structures and energies, in the order of the sequences.

    Raises
    ------
    InvalidInput
        If a sequence has other letters, or is too long.
    """
    settings = settings or FoldSettings()
    found = fold_strands(
        [codes_checked(sequence, number) for number, sequence in enumerate(sequences, 1)],
        settings,
        resolve(device, threads),
    )
    return Folds(
        [brackets(one.partners) for one in found],
        np.array([energy_of(one.score) for one in found], np.float64),
    )


def partition(
    sequences: Sequence[str],
    settings: FoldSettings | None = None,
    *,
    probabilities: bool = True,
    samples: int = 0,
    seed: int = 0,
    threads: int | None = None,
    device: str = "auto",
) -> list[Ensemble]:
    """Sum over all structures of every sequence.

    Parameters
    ----------
    sequences
        RNA or DNA, of A, C, G, U or T, and N.
    settings
        How they are folded.
    probabilities
        Whether to find those of all pairs.
    samples
        Structures to draw of each.
    seed
        Which ones are drawn; each sequence's depend on it and on its place alone.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        One of `plait.devices.target.DEVICES`; GPUs are not used yet.

    Returns
    -------
    list of Ensemble
        In the order of the sequences.

    Raises
    ------
    InvalidInput
        If a sequence has other letters, or is too long.
    """
    codes = [codes_checked(sequence, number) for number, sequence in enumerate(sequences, 1)]
    wanted = EnsembleRequest(probabilities, samples, seed)
    return sum_strands(codes, settings or FoldSettings(), wanted, resolve(device, threads))


class EnsembleRequest(NamedTuple):
    """What is asked of ensembles; `first`, the number of the first sequence, decides what is drawn."""

    probabilities: bool = True
    samples: int = 0
    seed: int = 0
    first: int = 0


def codes_checked(sequence: str | bytes, number: int | str) -> NDArray[np.int8]:
    """Codes of a sequence; InvalidInput names it by its number or name."""
    text = sequence.encode("utf-8", "replace") if isinstance(sequence, str) else sequence
    codes = codes_of(text)
    if codes.size and codes.min() < 0:
        place = int(codes.argmin())
        raise InvalidInput(
            f"sequence {number}",
            found=f"{chr(text[place])!r} at base {place + 1:,}",
            expected="A, C, G, U or T, and N",
        )
    if codes.size > LONGEST:
        raise InvalidInput(
            f"sequence {number}", found=f"{codes.size:,} bases", expected=f"at most {LONGEST:,}"
        )
    return codes


def energy_of(score: float) -> float:
    """kcal/mol of a score in hundredths of it."""
    return (0.0 - score) / 100


def fold_strands(codes: Sequence[NDArray[np.int8]], settings: FoldSettings, target: Target) -> list[Folded]:
    """Best scores and structures of sequences."""
    weighing = weigh(settings.model, "scores", _table_size(codes))
    strands = [_strand(one, settings, weighing.specials) for one in codes]
    return target.launch(FOLDS, FoldBatch(weighing.rule, weighing.algebra, weighing.loops, strands))


def sum_strands(
    codes: Sequence[NDArray[np.int8]], settings: FoldSettings, wanted: EnsembleRequest, target: Target
) -> list[Ensemble]:
    """Ensembles of sequences, scaled by their best energies; in logarithms where they do not fit."""
    best = fold_strands(codes, settings, target)
    thermal = settings.model.thermal_energy
    scales = [_scale(one.score / thermal, sequence.size) for one, sequence in zip(best, codes, strict=True)]
    found: dict[int, tuple[Summed, float]] = {}
    for scale in sorted(set(scales)):
        numbers = [k for k, mine in enumerate(scales) if mine == scale]
        for k, summed in zip(numbers, _sums(codes, numbers, settings, wanted, target, scale), strict=True):
            found[k] = summed, scale
    unfit = [k for k, (summed, _) in found.items() if not _fits(summed)]
    for k, summed in zip(unfit, _sums(codes, unfit, settings, wanted, target, None), strict=True):
        found[k] = summed, 0.0
    ensembles = []
    for k, one in enumerate(best):
        summed, scale = found[k]
        logarithm = summed.logarithm + scale * codes[k].size
        ensembles.append(
            Ensemble(
                structure=brackets(one.partners),
                energy=energy_of(one.score),
                ensemble_energy=energy_of(logarithm * thermal),
                table=PairTable(codes[k].size, summed.pairs, summed.probabilities),
                samples=[brackets(partners) for partners in summed.drawn],
                frequency=math.exp(min(one.score / thermal - logarithm, 0.0)),
            )
        )
    return ensembles


def _fits(summed: Summed) -> bool:
    return math.isfinite(summed.logarithm) and bool(np.isfinite(summed.probabilities).all())


def _scale(logarithm: float, bases: int) -> float:
    """Logarithms to take off for every base."""
    return round(1.07 * logarithm / bases / _SCALE_STEP) * _SCALE_STEP if bases > _SCALED else 0.0


def _sums(
    codes: Sequence[NDArray[np.int8]],
    numbers: list[int],
    settings: FoldSettings,
    wanted: EnsembleRequest,
    target: Target,
    scale: float | None,
) -> list[Summed]:
    """Sums of some sequences, in logarithms if there is no scale."""
    if not numbers:
        return []
    meaning: Any = "logarithms" if scale is None else "sums"
    weighing = weigh(settings.model, meaning, _table_size(codes), scale or 0.0)
    strands = [_strand(codes[k], settings, weighing.specials) for k in numbers]
    shares = [list(_shares(wanted, k, codes[k].size, scale is None)) for k in numbers]
    batch = EnsembleBatch(
        weighing.rule,
        weighing.algebra,
        weighing.loops,
        strands,
        scale is None,
        wanted.probabilities,
        shares,  # type: ignore[arg-type]
    )
    return target.launch(ENSEMBLES, batch)


def _shares(wanted: EnsembleRequest, number: int, bases: int, logarithms: bool) -> Iterator[NDArray[Any]]:
    """Numbers from 0 to 1 for the steps of every structure to be drawn."""
    for draw in range(wanted.samples):
        numbers = np.random.default_rng([wanted.seed, wanted.first + number, draw]).random(3 * bases + 8)
        yield np.log(numbers) if logarithms else numbers


def _table_size(codes: Sequence[NDArray[np.int8]]) -> int:
    """Bases of the longest sequence, rounded up so that few tables are made."""
    longest = max((one.size for one in codes), default=0)
    return max(_LEAST_TABLE, 1 << max(longest - 1, 1).bit_length())


def _strand(codes: NDArray[np.int8], settings: FoldSettings, specials: Sequence[str]) -> Strand:
    """A sequence with its special hairpins, and what it may pair."""
    partners = None
    if settings.max_span is not None:
        places = np.arange(codes.size)
        far = settings.max_span - 1
        partners = np.stack([places - far, places + far]).astype(np.int32)
    return Strand(codes, _special_hairpins(codes, specials), partners)


def _special_hairpins(codes: NDArray[np.int8], specials: Sequence[str]) -> NDArray[np.int16]:
    """Number of the special hairpin that begins at each base, from 1 on, by size. Shape (3, n)."""
    found = np.zeros((3, codes.size), np.int16)
    text = bytes(np.frombuffer(LETTERS.encode(), np.uint8)[codes]).decode()
    for number, loop in enumerate(specials, 1):
        row = SPECIAL_SIZES.index(len(loop) - 2)
        at = text.find(loop)
        while at >= 0:
            found[row, at] = number
            at = text.find(loop, at + 1)
    return found


class Loop(NamedTuple):
    """A loop of a structure: its kind, its closing pair or None, the pairs within it, and kcal/mol."""

    kind: str
    closing: tuple[int, int] | None
    inner: list[tuple[int, int]]
    energy: float


def evaluate(sequence: str, structure: str, model: Model | None = None) -> list[Loop]:
    """Find what the loops of a structure cost.

    Parameters
    ----------
    sequence
        RNA or DNA.
    structure
        Its structure in brackets.
    model
        What it is weighed by; otherwise Turner's parameters of 2004 at 37 degrees.

    Returns
    -------
    list of Loop
        What is outside of all pairs first; energies add up to that of the structure.

    Raises
    ------
    InvalidInput
        If the structure does not fit the sequence, or a pair or a loop cannot be.
    """
    codes, partners = codes_checked(sequence, 1), partners_of(structure)
    if codes.size != partners.size:
        raise InvalidInput(
            "structure", found=f"{partners.size:,} signs", expected=f"{codes.size:,}, one a base"
        )
    model = model or FoldSettings().model
    weighing = weigh(model, "scores", _table_size([codes]))
    strand = Strand(codes, _special_hairpins(codes, weighing.specials))
    strands = strands_of([strand], 1, SCORES.one)
    found = [_outermost(weighing.loops, strands, _pairs_within(partners, 0, codes.size))]
    for i, j in enumerate(partners):
        if j > i:
            if pair_type(weighing.loops, strands, i, j, 0) == 0 or j - i <= SMALLEST_HAIRPIN:
                raise InvalidInput(
                    "structure",
                    found=f"a pair of bases {i + 1:,} and {j + 1:,}, {sequence[i]} and {sequence[j]}",
                    expected=f"CG, GC, GU, UG, AU or UA, with {SMALLEST_HAIRPIN} bases between",
                )
            found.append(_loop_within(model, weighing, strands, (i, int(j)), partners))
    return found


def _pairs_within(partners: NDArray[np.int32], first: int, last: int) -> list[tuple[int, int]]:
    """The outermost pairs of a stretch."""
    found, place = [], first
    while place < last:
        if partners[place] > place:
            found.append((place, int(partners[place])))
            place = int(partners[place])
        place += 1
    return found


def _outward(loops: Any, strands: Any, i: int, j: int, column: int) -> float:
    return float(loops.outward[outward_row(strands, pair_type(loops, strands, i, j, 0), i, j, 0), column])


def _outermost(loops: Any, strands: Any, inner: list[tuple[int, int]]) -> Loop:
    score = sum(_outward(loops, strands, i, j, EXTERIOR) for i, j in inner)
    return Loop("exterior", None, inner, energy_of(score))


def _loop_within(
    model: Model, weighing: Any, strands: Any, closing: tuple[int, int], partners: NDArray[np.int32]
) -> Loop:
    """The loop that a pair closes."""
    (i, j), loops = closing, weighing.loops
    inner = _pairs_within(partners, i + 1, j)
    row = inward_row(strands, pair_type(loops, strands, i, j, 0), i, j, 0)
    if not inner:
        score = float(hairpin_weight(loops, strands, SCORES, row, i, j, 0))
        return Loop("hairpin", closing, inner, energy_of(score))
    if len(inner) > 1:
        unpaired = j - i - 1 - sum(q - p + 1 for p, q in inner)
        score = float(loops.inward[row, CLOSING]) + unpaired * float(weighing.rule.unpaired)
        score += sum(_outward(loops, strands, p, q, STEM) for p, q in inner)
        return Loop("multiloop", closing, inner, energy_of(score))
    p, q = inner[0]
    size = p - i + j - q - 2
    name = "stack" if size == 0 else "bulge" if p == i + 1 or q == j - 1 else "interior"
    if size > LARGEST_LOOP:
        # Recurrences have no such loops; a structure from elsewhere, or a centroid, can.
        score = _long_loop(weighing, strands, closing, inner[0]) - longer_loop(model, size)
    else:
        score = float(loop_weight(loops, strands, SCORES, i, j, p, q, 0))
    return Loop(name, closing, inner, energy_of(score))


def _long_loop(weighing: Any, strands: Any, outer: tuple[int, int], inner: tuple[int, int]) -> float:
    """Score of a loop of more than 30 bases, as if it had 30."""
    (i, j), (p, q), loops = outer, inner, weighing.loops
    left, right = p - i - 1, j - q - 1
    within = inward_row(strands, pair_type(loops, strands, i, j, 0), i, j, 0)
    if 0 in (left, right):
        ends = float(loops.inward[within, BULGE]) + _outward(loops, strands, p, q, BULGE)
        return ends + float(bulge(loops, LARGEST_LOOP))
    column = ONE_SIDED if 1 in (left, right) else GENERIC
    ends = float(loops.inward[within, column]) + _outward(loops, strands, p, q, column)
    difference = min(abs(left - right), LARGEST_LOOP)
    return ends + float(interior(loops, LARGEST_LOOP)) + float(asymmetry(loops, difference))
