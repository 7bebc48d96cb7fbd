"""Fold sequences: best structures, ensembles, samples, and what a structure is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import shown_letter
from plait.devices.target import CpuTarget, Target, free_bytes, over_threads, resolve, stretches
from plait.dp.intervals import launches
from plait.dp.intervals.loops import loop_score, score_kernel
from plait.errors import InvalidInput, Unsupported, whole, whole_fields
from plait.folding.constraints import Molecule, Restraints, check_pairs, molecule_of
from plait.folding.energies import Meaning, Model, Weighing, weigh
from plait.folding.parameters import NO_BASE, Parameters, codes_of
from plait.folding.structures import (
    PairTable,
    brackets,
    described,
    loops_within,
    most_expected_accuracy,
    partners_of,
)
from plait.types import Tabular

T = TypeVar("T")

#: Short sequences of a stretch that a thread has to itself, at least.
_STRETCH: Final = 128
#: The longest sequence that can be folded.
LONGEST: Final = 32_000
#: Bases from which sums are scaled, so that they fit.
_SCALED: Final = 300
#: Scales are multiples of this many logarithms a base, so that tables serve several sequences.
_SCALE_STEP: Final = 0.02
_LEAST_TABLE: Final = 128
#: Bytes that are there in any case.
_LITTLE: Final = 1 << 22
#: Bytes for a base of a structure that is drawn: numbers for its steps, and signs.
_DRAWN: Final = 50


@dataclass(frozen=True)
class FoldSettings:
    """How sequences are folded.

    Parameters
    ----------
    model
        What structures are weighed by; otherwise Turner's parameters of 2004 at 37 degrees.
    max_span
        Most bases from one of a pair to the other, both included; otherwise any.
    enforce
        Whether bases that constraints let pair do pair.
    slope, intercept
        A base of reactivity r in a stack costs ``slope * log(r + 1) + intercept`` kcal/mol for each side.
    """

    model: Model = field(default_factory=lambda: Model(Parameters.standard()))
    max_span: int | None = None
    enforce: bool = False
    slope: float = 1.8
    intercept: float = -0.6

    def __post_init__(self) -> None:
        whole_fields(self, "max_span", least=1)
        for name, value in (("slope", self.slope), ("intercept", self.intercept)):
            if not math.isfinite(value):
                raise InvalidInput(name, found=value, expected="a number of kcal/mol")


@dataclass(frozen=True, eq=False, repr=False)
class Folds(Tabular):
    """Best structures; `to_arrow` has the columns structure and energy.

    Parameters
    ----------
    structures
        One of least energy for every sequence, in brackets.
    energies
        Their energies in kcal/mol. Shape (sequences,).
    """

    structures: list[str]
    energies: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.structures)

    def _table(self, rows: int | None) -> Any:
        import pyarrow as pa

        structures = pa.array(self.structures[:rows], pa.string())
        return pa.table({"structure": structures, "energy": self.energies[:rows]})


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble(Tabular):
    """All structures of a sequence; `to_arrow` has its pairs, bases i and j from 1 on, with probability p.

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

    def _table(self, rows: int | None) -> Any:
        import pyarrow as pa

        i, j = self.table.pairs[:rows].reshape(-1, 2).T + 1
        return pa.table({"i": i, "j": j, "p": self.table.probabilities[:rows]})

    @property
    def diversity(self) -> float:
        """Mean number of pairs that one of two structures has and the other has not."""
        return described([self.table]).diversities[0]

    @property
    def marks(self) -> str:
        """What each base mostly does, by the signs of RNAfold."""
        return described([self.table]).marks[0]

    def centroid(self) -> tuple[str, float]:
        """The structure that is nearest to all.

        Returns
        -------
        str
            Pairs more probable than one half, in brackets.
        float
            Mean distance of structures from it.
        """
        found = described([self.table])
        return brackets(found.centroids)[0], found.distances[0]

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
        return brackets([partners])[0], accuracy


def mfe(
    sequences: Sequence[str],
    settings: FoldSettings | None = None,
    *,
    restraints: Sequence[Restraints | None] | None = None,
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
    restraints
        What is known of each, or None.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        One of `plait.devices.target.DEVICES`.

    Returns
    -------
    Folds
        Structures and energies, in the order of the sequences.

    Raises
    ------
    InvalidInput
        If a sequence has other letters or is too long, or a restraint does not fit it or cannot be met.
    Unsupported
        If there is too little memory for the longest one.
    """
    asked = settings or FoldSettings()

    def run(some: Sequence[str], first: int, target: Target) -> list[launches.Best]:
        return _folded(molecules_of(some, asked, restraints, first=first), asked, target)

    found = _in_stretches(sequences, restraints, resolve(device, threads), run)
    energies = np.array([energy_of(score) for score, _ in found], np.float64)
    return Folds([structure for _, structure in found], energies)


def partition(
    sequences: Sequence[str],
    settings: FoldSettings | None = None,
    *,
    restraints: Sequence[Restraints | None] | None = None,
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
    restraints
        What is known of each, or None.
    probabilities
        Whether to find those of all pairs.
    samples
        Structures to draw of each.
    seed
        Which ones are drawn; each sequence's depend on it and on its place alone.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        One of `plait.devices.target.DEVICES`.

    Returns
    -------
    list of Ensemble
        In the order of the sequences.

    Raises
    ------
    InvalidInput
        If a sequence has other letters or is too long, or a restraint does not fit it or cannot be met.
    Unsupported
        If there is too little memory for the longest one.
    """
    asked = settings or FoldSettings()
    samples, seed = whole("samples", samples), whole("seed", seed)

    def run(some: Sequence[str], first: int, target: Target) -> list[Ensemble]:
        molecules = molecules_of(some, asked, restraints, ensemble=True, first=first, samples=samples)
        wanted = EnsembleRequest(probabilities, samples, seed, first)
        return sum_molecules(molecules, _folded(molecules, asked, target), asked, wanted, target)

    return _in_stretches(sequences, restraints, resolve(device, threads), run)


def _in_stretches(
    sequences: Sequence[str],
    restraints: object,
    target: Target,
    run: Callable[[Sequence[str], int, Target], list[T]],
) -> list[T]:
    """Results of all sequences; of many short ones threads have stretches, and share what Python does."""
    short = type(target) is CpuTarget and max(map(len, sequences), default=0) <= launches.SHORT
    parts = stretches(target.threads if short and not restraints else 1, len(sequences), _STRETCH)
    mine = CpuTarget(1) if len(parts) > 1 else target
    found = over_threads(target.threads, parts, lambda part: run(sequences[slice(*part)], part[0], mine))
    return list(chain.from_iterable(found))


def sample(
    sequences: Sequence[str],
    settings: FoldSettings | None = None,
    *,
    samples: int,
    seed: int = 0,
    restraints: Sequence[Restraints | None] | None = None,
    threads: int | None = None,
    device: str = "auto",
) -> list[list[str]]:
    """Draw structures of every sequence, each as often as it is probable.

    Parameters
    ----------
    sequences
        RNA or DNA, of A, C, G, U or T, and N.
    settings
        How they are folded.
    samples
        Structures to draw of each.
    seed
        Which ones are drawn, by NumPy's generator; each sequence's depend on it and on its place alone.
    restraints
        What is known of each, or None.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        One of `plait.devices.target.DEVICES`.

    Returns
    -------
    list of list of str
        Structures in brackets, of every sequence in its order.

    Raises
    ------
    InvalidInput
        As `mfe` does.
    """
    asked: dict[str, Any] = {"samples": samples, "seed": seed, "restraints": restraints}
    found = partition(sequences, settings, probabilities=False, threads=threads, device=device, **asked)
    return [one.samples for one in found]


def suboptimal(
    sequences: Sequence[str],
    settings: FoldSettings | None = None,
    *,
    within: float,
    most: int = 100_000,
    restraints: Sequence[Restraints | None] | None = None,
    threads: int | None = None,
    device: str = "auto",
) -> list[Suboptimals]:
    """Find all structures of nearly the least energy.

    Parameters
    ----------
    sequences
        RNA or DNA, of A, C, G, U or T, and N.
    settings
        How they are folded.
    within
        How much more than the least energy they may have, in kcal/mol.
    most
        Structures to give of a sequence: the best ones if there are more.
    restraints
        What is known of each, or None.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        One of `plait.devices.target.DEVICES`; GPUs are not used.

    Returns
    -------
    list of Suboptimals
        In the order of the sequences.

    Raises
    ------
    InvalidInput
        As `mfe` does, or if `within` is negative or `most` is not positive.
    """
    settings, target = settings or FoldSettings(), resolve(device, threads)
    if not within >= 0 or not math.isfinite(within):
        raise InvalidInput("within", found=within, expected="a number of at least 0")
    most = whole("most", most, 1)
    molecules = molecules_of(sequences, settings, restraints)
    if any(one.forced is not None for one in molecules):
        _folded(molecules, settings, target)
    return suboptimals_of(molecules, settings, within, most, target)


@dataclass(frozen=True, eq=False, repr=False)
class Suboptimals(Folds):
    """Structures of nearly the least energy; `to_arrow` has the columns structure and energy.

    Parameters
    ----------
    structures
        In brackets, by their energies, then by their signs.
    energies
        Their energies in kcal/mol. Shape (structures,).
    complete
        Whether these are all.
    """

    complete: bool


def suboptimals_of(
    molecules: Sequence[Molecule], settings: FoldSettings, within: float, most: int, target: Target
) -> list[Suboptimals]:
    """Structures of nearly the least energy, of sequences whose constraints can be met."""
    found: dict[int, Suboptimals] = {}
    for weighing, numbers in _weighings(molecules, settings.model):
        strands = [strand_of(molecules[k], weighing, weighing.bonus) for k in numbers]
        below = float(round(100 * within))
        launched = target.launch(
            launches.SUBOPTIMALS, launches.FoldBatch(*weighing[:3], strands, below, most)
        )
        for k, one in zip(numbers, launched, strict=True):
            energies = (0.0 - (one.scores - weighing.bonus * molecules[k].forced_bases)) / 100
            structures = [row.tobytes().decode() for row in one.structures]
            found[k] = Suboptimals(structures, energies, one.complete)
    return [found[k] for k in range(len(molecules))]


class EnsembleRequest(NamedTuple):
    """What is asked of ensembles; `first`, the number of the first sequence, decides what is drawn."""

    probabilities: bool = True
    samples: int = 0
    seed: int = 0
    first: int = 0


def codes_checked(sequence: str | bytes, number: int | str) -> NDArray[np.int8]:
    """Codes of a sequence; InvalidInput names it by its number or name."""
    text = sequence.encode("utf-8", "replace") if isinstance(sequence, str) else sequence
    codes, name = codes_of(text), f"sequence {number}"
    if (place := codes.tobytes().find(NO_BASE)) >= 0:
        told = f"{shown_letter(text, place)} at base {place + 1:,}"
        raise InvalidInput(name, found=told, expected="A, C, G, U or T, and N")
    if codes.size > LONGEST:
        raise InvalidInput(name, found=f"{codes.size:,} bases", expected=f"at most {LONGEST:,}")
    return codes


def check_memory(where: str, longest: Sequence[int], ensemble: bool, samples: int, bases: int) -> int:
    """Bytes that sequences of so many bases need at a time; Unsupported if there are fewer.

    Of so many `bases` at a time `samples` are drawn.
    """
    need = _DRAWN * samples * bases + sum(launches.bytes_needed(n, ensemble=ensemble) for n in longest)
    # To ask what is free takes as long as a short sequence.
    if need > _LITTLE and need > (free := free_bytes()):
        what = f"{where}{samples:,} samples of a sequence" if samples else f"{where}a sequence"
        why = f"{len(longest)} at a time need {need:,} bytes of memory, {free:,} are free"
        raise Unsupported(f"{what} of {max(longest):,} bases", why=why)
    return need


def energy_of(score: float) -> float:
    """kcal/mol of a score in hundredths of it."""
    return (0.0 - score) / 100


def molecules_of(
    sequences: Sequence[str],
    settings: FoldSettings,
    restraints: Sequence[Restraints | None] | None,
    ensemble: bool = False,
    first: int = 0,
    samples: int = 0,
) -> list[Molecule]:
    """Sequences with what is known of them; InvalidInput tells what is wrong where, from `first` + 1 on."""
    if isinstance(sequences, str):
        raise InvalidInput("sequences", found="one str", expected="several sequences, as a list")
    if restraints is not None and len(restraints) != len(sequences):
        raise InvalidInput(
            "restraints", found=f"{len(restraints):,} of them", expected=f"{len(sequences):,}, one a sequence"
        )
    found = []
    for number, sequence in enumerate(sequences, first + 1):
        codes = codes_checked(sequence, number)
        try:
            found.append(molecule_of(codes, restraints[number - 1] if restraints else None, settings))
        except InvalidInput as wrong:
            raise InvalidInput(
                f"{wrong.what} of sequence {number}", found=wrong.found, expected=wrong.expected
            ) from None
    sizes = [one.codes.size for one in found]
    check_memory("", [max(sizes, default=0)], ensemble or settings.enforce, samples, sum(sizes))
    return found


def fold_molecules(
    molecules: Sequence[Molecule], settings: FoldSettings, target: Target
) -> list[launches.Best]:
    """Best scores and structures of sequences; a score is -inf if not all forced bases can pair."""
    found: dict[int, launches.Best] = {}
    for weighing, numbers in _weighings(molecules, settings.model):
        strands = [strand_of(molecules[k], weighing, weighing.bonus) for k in numbers]
        launched = target.launch(launches.FOLDS, launches.FoldBatch(*weighing[:3], strands))
        for k, (score, structure) in zip(numbers, launched, strict=True):
            met = score - weighing.bonus * molecules[k].forced_bases
            found[k] = met if met > -weighing.bonus / 2 else -math.inf, structure
    return [found[k] for k in range(len(molecules))]


def _weighings(molecules: Sequence[Molecule], model: Model) -> Iterator[tuple[Weighing, list[int]]]:
    """What the scores of sequences are by, and the numbers of these: apart where bases are forced to pair."""
    kinds: tuple[Meaning, Meaning] = (model.scores, "wide scores")
    for meaning, forced in zip(kinds, (False, True), strict=True):
        if numbers := [k for k, one in enumerate(molecules) if (one.forced is not None) == forced]:
            yield weigh(model, meaning, _table_size(molecules)), numbers


def unmet(best: launches.Best) -> str | None:
    """What is found where a constraint cannot be met."""
    return "no structure in which all these bases pair" if best[0] == -math.inf else None


def _folded(molecules: Sequence[Molecule], settings: FoldSettings, target: Target) -> list[launches.Best]:
    """Best scores and structures; InvalidInput if there is none."""
    found = fold_molecules(molecules, settings, target)
    for number, one in enumerate(found, 1):
        if told := unmet(one):
            raise InvalidInput(f"constraint of sequence {number}", found=told, expected="one at least")
    return found


def sum_molecules(
    molecules: Sequence[Molecule],
    best: Sequence[launches.Best],
    settings: FoldSettings,
    wanted: EnsembleRequest,
    target: Target,
) -> list[Ensemble]:
    """Ensembles of sequences, scaled by their `best` energies; in logarithms where they do not fit."""
    thermal = settings.model.thermal_energy
    scales = [
        _scale(score / thermal, one.codes.size) if one.forced is None else math.inf
        for (score, _), one in zip(best, molecules, strict=True)
    ]
    found: dict[int, launches.Summed] = {}
    run = partial(_sums, molecules, settings, wanted)
    # Long sequences have many scales: several threads take one sequence each, others all of a scale.
    each = type(target) is CpuTarget and target.threads > 1
    for scale in sorted({0.0} & {*scales} if each else {*scales} - {math.inf}):
        found.update(run([k for k, mine in enumerate(scales) if mine == scale], scale, target))
    alone = [[k] for k, scale in enumerate(scales) if each and scale not in (0.0, math.inf)]
    for one in over_threads(target.threads, alone, lambda k: list(run(k, scales[k[0]], CpuTarget(1)))):
        found.update(one)
    fit = (k for k, one in found.items() if math.isfinite(one.logarithm + one.probabilities.sum()))
    found.update(run(sorted({*range(len(molecules))} - {*fit}), None, target))
    ensembles = []
    for k, (score, structure) in enumerate(best):
        logarithm, pairs, probabilities, drawn = found[k]
        energies = energy_of(score), energy_of(logarithm * thermal)
        table = PairTable(molecules[k].codes.size, pairs, probabilities)
        share = math.exp(min(score / thermal - logarithm, 0.0))
        ensembles.append(Ensemble(structure, *energies, table, drawn, share))
    return ensembles


def _scale(logarithm: float, bases: int) -> float:
    """Logarithms to take off for every base."""
    return round(1.07 * logarithm / bases / _SCALE_STEP) * _SCALE_STEP if bases > _SCALED else 0.0


def _sums(
    molecules: Sequence[Molecule],
    settings: FoldSettings,
    wanted: EnsembleRequest,
    numbers: list[int],
    scale: float | None,
    target: Target,
) -> Iterator[tuple[int, launches.Summed]]:
    """Sums of some sequences by their numbers, in logarithms if there is no scale."""
    if not numbers:
        return
    meaning: Meaning = "logarithms" if scale is None else "sums"
    weighing = weigh(settings.model, meaning, _table_size(molecules), scale or 0.0)
    forced = [_forced_logarithm(molecules[k], settings, target) for k in numbers]
    strands = [strand_of(molecules[k], weighing, more) for k, more in zip(numbers, forced, strict=True)]
    shares = [list(_shares(wanted, k, molecules[k].codes.size, scale is None)) for k in numbers]
    batch = launches.EnsembleBatch(*weighing[:3], strands, scale is None, wanted.probabilities, shares)
    found = target.launch(launches.ENSEMBLES, batch)
    for k, more, one in zip(numbers, forced, found, strict=True):
        scaled = (scale or 0.0) * molecules[k].codes.size - more * molecules[k].forced_bases
        yield k, one._replace(logarithm=one.logarithm + scaled)


def _forced_logarithm(molecule: Molecule, settings: FoldSettings, target: Target) -> float:
    """What a forced base that pairs counts for: all structures without it are no part of a sum.

    There are fewer than 2.29 to the n structures, none better than the best one where nothing is forced.
    """
    if molecule.forced is None:
        return 0.0
    (free, _), (bound, _) = fold_molecules([molecule._replace(forced=None), molecule], settings, target)
    return (free - bound) / settings.model.thermal_energy + 0.83 * molecule.codes.size + 45


def _shares(wanted: EnsembleRequest, number: int, bases: int, logarithms: bool) -> Iterator[NDArray[Any]]:
    """Numbers from 0 to 1 for the steps of every structure to be drawn."""
    for draw in range(wanted.samples):
        numbers = np.random.default_rng([wanted.seed, wanted.first + number, draw]).random(3 * bases + 8)
        yield np.log(numbers) if logarithms else numbers


def _table_size(molecules: Sequence[Molecule]) -> int:
    """Bases of the longest sequence, rounded up so that few tables are made."""
    longest = max((one.codes.size for one in molecules), default=0)
    return max(_LEAST_TABLE, 1 << max(longest - 1, 1).bit_length())


def strand_of(molecule: Molecule, weighing: Weighing, forced: float) -> launches.Strand:
    """A sequence with what is known of it; `forced` is what forced bases weigh."""
    stacked, paired = None, None
    if molecule.pseudo is not None:
        stacked = weighing.value(molecule.pseudo + np.append(molecule.pseudo[1:], 0))
    if molecule.forced is not None:
        paired = np.stack([molecule.forced * forced, molecule.forced * -forced])
    return launches.Strand(molecule.codes, molecule.partners, stacked, paired)


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
    one = Molecule(codes_checked(sequence, 1))
    return loops_of(one, structure, model or FoldSettings().model)


def loops_of(molecule: Molecule, structure: str, model: Model) -> list[Loop]:
    """What the loops of a structure cost, pseudo-energies of stacks included."""
    codes, partners = molecule.codes, partners_of(structure)
    if codes.size != partners.size:
        raise InvalidInput(
            "structure", found=f"{partners.size:,} signs", expected=f"{codes.size:,}, one a base"
        )
    check_pairs(codes, partners, "structure")
    weighing = weigh(model, model.scores, _table_size([molecule]))
    strands = launches.strands_of([strand_of(molecule, weighing, 0.0)], 1, weighing.algebra.one)
    found = []
    for i, members in loops_within(partners).items():
        closing, j = (None, codes.size) if i < 0 else ((i, int(partners[i])), int(partners[i]))
        known = weighing.loops, strands, weighing.rule, weighing.algebra, partners.reshape(1, -1)
        inner = [(place, int(partners[place])) for place in members if partners[place] > place]
        energy = energy_of(float(loop_score(*known, 0, i, j, 0)))
        found.append(Loop(_kind(closing, inner), closing, inner, energy))
    return found


def _kind(closing: tuple[int, int] | None, inner: Sequence[tuple[int, int]]) -> str:
    """The kind of a loop."""
    if closing is None or len(inner) != 1:
        return "exterior" if closing is None else "multiloop" if inner else "hairpin"
    sides = inner[0][0] - closing[0] - 1, closing[1] - inner[0][1] - 1
    return "interior" if all(sides) else "bulge" if any(sides) else "stack"


def energies_of(
    molecules: Sequence[Molecule], structures: Sequence[NDArray[np.int32]], model: Model
) -> list[float]:
    """kcal/mol of a structure of each sequence, of the partners of its bases."""
    weighing = weigh(model, model.scores, _table_size(molecules))
    strands = [strand_of(one, weighing, 0.0) for one in molecules]
    laid_out = launches.strands_of(strands, len(strands), weighing.algebra.one, apart=True)
    partners, scores = np.full((len(strands), laid_out.longest), -1, np.int32), np.empty(len(strands))
    lengths = np.array([one.codes.size for one in molecules], np.int64)
    for k, structure in enumerate(structures):
        partners[k, : structure.size] = structure
    score_kernel(weighing.rule, weighing.algebra, weighing.loops, laid_out, lengths, partners, scores)
    return list(map(energy_of, scores.tolist()))
