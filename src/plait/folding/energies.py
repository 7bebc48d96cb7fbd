"""What parameters are as weights of loops: scores, Boltzmann factors, and logarithms of these."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.dp.intervals.loops import (
    BEYOND,
    BULGE,
    CLOSING,
    EXTERIOR,
    GENERIC,
    HAIRPIN,
    LETTERS,
    ONE_SIDED,
    REVERSED,
    STEM,
    TWO_THREE,
    TYPES,
    LoopTables,
    LoopWeights,
)
from plait.dp.intervals.nearest_neighbor import NearestNeighbor
from plait.errors import Unsupported
from plait.folding.parameters import GAS_CONSTANT, KELVIN, NEVER, PAIRS, STANDARD, Parameters, codes_of
from plait.folding.parameters import LETTERS as BASES
from plait.lang.algebras import LOG_SUM, PROBABILITY, SaturatingMaxPlus

_Table = NDArray[np.float64]
#: Best sums of scores as single-precision numbers, whole ones of up to 2^24: hundredths of kcal/mol.
SCORES: Final = SaturatingMaxPlus(np.float32(-np.inf), np.float32(0))
#: The same with room for what forced pairs count for.
WIDE_SCORES: Final = SaturatingMaxPlus(np.float64(-np.inf), np.float64(0))
SUMS: Final = PROBABILITY._replace(zero=np.float64(0), one=np.float64(1))
LOGARITHMS: Final = LOG_SUM._replace(zero=np.float64(-np.inf), one=np.float64(0))
_MOST = 30


#: What weights are: scores of which the best counts, Boltzmann factors to be summed, or their logarithms.
Meaning = Literal["scores", "wide scores", "sums", "logarithms"]
_ALGEBRAS: Final = {"scores": SCORES, "wide scores": WIDE_SCORES, "sums": SUMS, "logarithms": LOGARITHMS}


class Weighing(NamedTuple):
    """What loops weigh in an algebra, and an unpaired base elsewhere.

    `value` is the weight of some energies, of loops of so many bases.
    """

    rule: NearestNeighbor
    algebra: Any
    loops: LoopWeights
    value: Callable[..., Any]


@dataclass(frozen=True)
class Model:
    """What structures are weighed by.

    Parameters
    ----------
    parameters
        Energies of loops.
    temperature
        Degrees Celsius.
    dangles
        2: a base next to a stem in a multiloop, or in no loop, stacks on it, whatever else it does; 0: not.
    """

    parameters: Parameters
    temperature: float = STANDARD
    dangles: int = 2

    def __post_init__(self) -> None:
        if self.dangles not in (0, 2):
            raise Unsupported(
                f"dangles of {self.dangles}",
                why="bases that stack on one stem alone are not there; use 0 or 2",
            )

    @property
    def thermal_energy(self) -> float:
        """RT, in hundredths of kcal/mol."""
        return (self.temperature + KELVIN) * GAS_CONSTANT / 10


@functools.lru_cache(maxsize=8)
def weigh(model: Model, meaning: Meaning, longest: int, scale: float = 0.0) -> Weighing:
    """Weights of sequences of up to `longest` bases.

    In sums, a structure of n bases weighs its Boltzmann factor times ``exp(-scale * n)``. Unsupported if the
    temperature needs enthalpies that are not there.
    """
    parameters = model.parameters.at(model.temperature)
    specials = sorted(parameters.special)
    scores = meaning in ("scores", "wide scores")
    rule, loops = _energies(parameters, model.dangles, scores, longest, specials)
    of_rule, bases = _bases(longest, specials)
    dtype = np.float32 if meaning == "scores" else np.float64

    def value(energy: Any, count: Any = 0) -> Any:
        if scores:
            return (0 - np.asarray(energy, np.float64)).astype(dtype)
        logarithm = -np.asarray(energy, np.float64) / model.thermal_energy - scale * np.asarray(count)
        with np.errstate(over="ignore"):
            return logarithm if meaning == "logarithms" else np.exp(logarithm)

    pairs = zip(loops[1:], bases[1:], strict=True)
    weights = [np.ascontiguousarray(value(energy, count)) for energy, count in pairs]
    numbers = [value(energy, count)[()] for energy, count in zip(rule, of_rule, strict=True)]
    hairpins = [codes_of(loop.encode()).tolist() for loop in specials]
    packed = LoopTables(loops.pair_types, *weights).packed(hairpins)
    return Weighing(NearestNeighbor(*numbers), _ALGEBRAS[meaning], packed, value)


def _bases(longest: int, specials: list[str]) -> tuple[NearestNeighbor, LoopTables]:
    """How many bases each weight is for: two of a pair that closes, and those unpaired."""
    bulge = np.arange(_MOST + 1) + 2
    bulge[1] = 1
    inward = np.array([0, 0, 0, 0, 0, 2])
    sizes = np.array([0, *map(len, specials)])
    hairpin, interior = np.arange(longest + 1) + 2, np.arange(_MOST + 1) + 2
    return NearestNeighbor(1, 1), LoopTables(None, hairpin, bulge, interior, 0, 2, 4, 5, 6, inward, 0, sizes)


def smoothed(energies: _Table) -> _Table:
    """Energies of dangling bases as sums use them: none above zero, and without a kink."""
    x = -energies / 10
    with np.errstate(invalid="ignore"):
        between = 10 * 0.38490018 * (np.sin(x - 0.34242663) + 1) ** 2
    return -np.where(x < -1.2283697, 0, np.where(x > 0.8660254, -energies, between))


def _energies(
    parameters: Parameters, dangles: int, scores: bool, longest: int, specials: list[str]
) -> tuple[tuple[Any, Any], LoopTables]:
    """Energies in the place of weights; whole numbers, and no dangling base above zero, for scores."""
    whole: Callable[[Any], Any] = np.trunc if scores else np.asarray
    found = {name: whole(table) for name, table in parameters.energies.items()}
    for name in ("mismatch_multi", "mismatch_exterior", "dangle5", "dangle3"):
        found[name] = np.minimum(found[name], 0) if scores else smoothed(found[name])
    sizes = np.arange(_MOST + 1, longest + 1) / _MOST
    longer = whole(parameters.energies["lxc"] * np.log(sizes))
    hairpin = np.concatenate([found["hairpin"], found["hairpin"][_MOST] + longer])
    special = [parameters.special[loop] for loop in specials]
    tables = LoopTables(
        pair_types=_pair_types(),
        hairpin=hairpin[: longest + 1],
        bulge=found["bulge"],
        interior=found["interior"],
        asymmetry=np.minimum(found["most_asymmetry"], found["asymmetry"] * np.arange(_MOST + 1)),
        stack=found["stack"],
        one_one=found["int11"],
        one_two=found["int21"],
        two_two=found["int22"],
        inward=_ends(found, dangles, within=True),
        outward=_ends(found, dangles, within=False),
        special=np.array([NEVER, *whole(special)]),
    )
    return (found["multi_unpaired"], np.float64(0)), tables


def _pair_types() -> NDArray[np.int8]:
    found = np.zeros((LETTERS, LETTERS), np.int8)
    for kind, pair in enumerate(PAIRS, 1):
        found[BASES.index(pair[0]), BASES.index(pair[1])] = kind
    return found.reshape(-1)


def _end_penalty(found: Mapping[str, _Table]) -> _Table:
    """By type: what a stem that ends in AU or GU costs. Shape (7, 1, 1)."""
    kinds = np.arange(TYPES)[:, None, None]
    return np.where(kinds > 2, found["terminal_au"], 0)


def _stem_ends(found: Mapping[str, _Table], mismatch: str, dangles: int) -> _Table:
    """By type, letter on the left and on the right: what a stem costs beside its loop. Shape (7, 6, 6)."""
    ends = np.zeros((TYPES, LETTERS, LETTERS))
    if dangles:
        ends[:, :BEYOND, :BEYOND] = found[mismatch]
        ends[:, :BEYOND, BEYOND] = found["dangle5"]
        ends[:, BEYOND, :BEYOND] = found["dangle3"]
    return ends + _end_penalty(found)


def _ends(found: Mapping[str, _Table], dangles: int, *, within: bool) -> _Table:
    """What a pair adds to the loop within or around it."""
    tables = np.zeros((TYPES, LETTERS, LETTERS, 6))
    for column, name in ((GENERIC, "interior"), (ONE_SIDED, "interior_1n"), (TWO_THREE, "interior_23")):
        mismatches = found[f"mismatch_{name}"]
        tables[:, :BEYOND, :BEYOND, column] = mismatches if within else _from_behind(mismatches)
    tables[..., BULGE] = _end_penalty(found)
    stems = _stem_ends(found, "mismatch_multi", dangles)
    if within:
        tables[:, :BEYOND, :BEYOND, HAIRPIN] = found["mismatch_hairpin"]
        # Seen from within, the closing pair is a stem like the others.
        tables[..., CLOSING] = found["multi_closing"] + found["multi_stem"] + _from_behind(stems)
    else:
        tables[..., STEM] = found["multi_stem"] + stems
        tables[..., EXTERIOR] = _stem_ends(found, "mismatch_exterior", dangles)
    tables[0] = NEVER
    return tables.reshape(-1, 6)


def _from_behind(table: _Table) -> _Table:
    """A table by type and two letters, of pairs that are seen from their other side."""
    return table[REVERSED].swapaxes(1, 2)
