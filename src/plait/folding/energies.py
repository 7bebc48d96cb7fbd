"""What parameters are as weights of loops: scores, Boltzmann factors, and logarithms of these."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.dp.intervals import loops
from plait.dp.intervals.loops import LoopTables, LoopWeights
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
Meaning = Literal["scores", "fine scores", "wide scores", "sums", "logarithms"]
#: Interior loops by sides that learned scores weigh by themselves: what they weigh is no sum of one table by
#: size and one by difference, so that these have nothing for no difference, and for sizes of six and seven.
OWN_LOOPS: Final = (*((k, k) for k in range(3, 16)), (2, 4), (4, 2), (3, 4), (4, 3), (2, 5), (5, 2))
_ALGEBRAS: Final = {
    **{"scores": SCORES, "fine scores": WIDE_SCORES, "wide scores": WIDE_SCORES},
    **{"sums": SUMS, "logarithms": LOGARITHMS},
}
#: Learned scores of which the best are sought are whole ones of two to the minus so many hundredths, so that
#: sums are exact, which have so many bits.
_FINE, _BITS = 20, 52


class Weighing(NamedTuple):
    """What loops weigh in an algebra, and an unpaired base elsewhere.

    `value` is the weight of some energies, of loops of so many bases; `bonus` what a forced base that pairs
    adds to a score: more than structures are apart.
    """

    rule: NearestNeighbor
    algebra: Any
    loops: LoopWeights
    value: Callable[..., Any]
    bonus: float


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
        2: a base next to a stem in a multiloop, or in no loop, stacks on it, whatever else it does; 0: not,
        which learned scores do not have.
    """

    parameters: Parameters
    temperature: float = STANDARD
    dangles: int = 2

    def __post_init__(self) -> None:
        if self.dangles not in (0, 2):
            why = "bases that stack on one stem alone are not there; use 0 or 2"
            raise Unsupported(f"dangles of {self.dangles}", why=why)
        if self.parameters.learned and self.dangles != 2:
            raise Unsupported("dangles of 0", why=f"{self.parameters.name} has them in its scores")

    @property
    def name(self) -> str:
        """Where the parameters come from, and at which temperature if they are energies."""
        told = self.parameters.name
        return told if self.parameters.learned else f"{told}, {self.temperature:g} degrees"

    @property
    def gamma(self) -> float:
        """What a pair counts for where most is to be right, beside both its bases unpaired."""
        return 6.0 if self.parameters.learned else 1.0

    @property
    def scores(self) -> Meaning:
        """What weights mean of which the best structure is sought where no bases are forced to pair."""
        return "fine scores" if self.parameters.learned else "scores"

    @property
    def thermal_energy(self) -> float:
        """RT in hundredths of kcal/mol; hundredths of learned scores are natural logarithms."""
        return 100.0 if self.parameters.learned else (self.temperature + KELVIN) * GAS_CONSTANT / 10


@functools.lru_cache(maxsize=8)
def weigh(model: Model, meaning: Meaning, longest: int, scale: float = 0.0) -> Weighing:
    """Weights of sequences of up to `longest` bases.

    In sums, a structure of n bases weighs its Boltzmann factor times ``exp(-scale * n)``. Unsupported if the
    temperature needs enthalpies that are not there.
    """
    parameters = model.parameters.at(model.temperature)
    specials = sorted(parameters.special)
    scores = meaning.endswith("scores")
    bonus, parts = 2.0**32, 1.0
    if parameters.learned:
        rule, energies = _learned(parameters.energies, longest)
        most = max(np.abs(table[np.isfinite(table)]).max(initial=1) for table in energies[1:])
        # A pair adds four weights at most, an unpaired base one: no structures are as far apart.
        bonus = float(2.0 ** np.ceil(np.log2(8 * longest * most)))
        parts = 2.0 ** (_FINE if meaning == "fine scores" else min(_FINE, _BITS - np.log2(bonus * longest)))
    else:
        rule, energies = _energies(parameters, model.dangles, scores, longest, specials)
    of_rule, bases = _bases(longest, specials)
    dtype = np.float32 if meaning == "scores" else np.float64

    def value(energy: Any, count: Any = 0) -> Any:
        if scores:
            return (0 - np.round(np.asarray(energy, np.float64) * parts) / parts).astype(dtype)
        logarithm = -np.asarray(energy, np.float64) / model.thermal_energy - scale * np.asarray(count)
        with np.errstate(over="ignore"):
            return logarithm if meaning == "logarithms" else np.exp(logarithm)

    pairs = zip(energies[1:], bases[1:], strict=True)
    weights = [np.ascontiguousarray(value(energy, count)) for energy, count in pairs]
    numbers = [value(energy, count)[()] for energy, count in zip(rule, of_rule, strict=True)]
    hairpins = [codes_of(loop.encode()).tolist() for loop in specials]
    own = OWN_LOOPS if parameters.learned else ()
    packed = LoopTables(energies.pair_types, *weights).packed(hairpins, own)
    return Weighing(NearestNeighbor(*numbers), _ALGEBRAS[meaning], packed, value, bonus)


def _bases(longest: int, specials: list[str]) -> tuple[NearestNeighbor, LoopTables]:
    """How many bases each weight is for: two of a pair that closes, and those unpaired."""
    inward = np.array([0, 0, 0, 0, 0, 2])
    sizes = np.array([0, *map(len, specials)])
    hairpin, by_size, own = np.arange(longest + 1) + 2, np.arange(_MOST + 1) + 2, np.sum(OWN_LOOPS, 1) + 2
    small = 2, 3, 4, 5, 6
    tables = LoopTables(None, hairpin, by_size, by_size, by_size, 0, own, *small, inward, 0, sizes)
    return NearestNeighbor(1, 1), tables


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
    asymmetry = np.minimum(found["most_asymmetry"], found["asymmetry"] * np.arange(_MOST + 1))
    tables = LoopTables(
        pair_types=_pair_types(),
        hairpin=hairpin[: longest + 1],
        bulge=found["bulge"],
        one_sided=found["interior"] + np.append([0, 0], asymmetry[:-2]),
        interior=found["interior"],
        asymmetry=asymmetry,
        own=np.full(loops.OWN, NEVER),
        stack=found["stack"],
        none_one=np.repeat(found["stack"][:, :, None] + found["bulge"][1], 5, 2),
        one_one=found["int11"],
        one_two=found["int21"],
        two_two=found["int22"],
        inward=_ends(found, dangles, within=True),
        outward=_ends(found, dangles, within=False),
        special=np.array([NEVER, *whole(special)]),
    )
    return (found["multi_unpaired"], np.float64(0)), tables


def _learned(found: Mapping[str, _Table], longest: int) -> tuple[tuple[Any, Any], LoopTables]:
    """CONTRAfold's scores in the place of weights, with their signs turned.

    What a pair counts for is shared by the loops on both of its sides, so that these look alike from either.
    """
    left, right = np.array([[0, *(BASES.index(pair[side]) for pair in PAIRS)] for side in (0, 1)])
    pair = found["base_pair"][left, right] / 2
    closing = (found["helix_closing"][left, right] + pair)[:, None, None]
    # What is beyond the ends counts for as much as N does.
    letters = np.array([0, 1, 2, 3, 4, 0])
    ends = closing + found["terminal_mismatch"][left, right][:, letters[:, None], letters]
    stems = closing + found["dangle_left"][left, right][:, letters, None]
    stems = stems + found["dangle_right"][left, right][:, None, letters]
    inward, outward = np.repeat(ends[..., None], 6, 3), np.repeat(_from_behind(ends)[..., None], 6, 3)
    inward[..., loops.CLOSING] = found["multi_base"] + found["multi_paired"] + stems
    outward[..., loops.STEM] = found["multi_paired"] + _from_behind(stems)
    outward[..., loops.EXTERIOR] = found["external_paired"] + _from_behind(stems)
    inward[0] = outward[0] = NEVER
    size, bulge = found["internal_length"], found["bulge_length"]
    asymmetry, explicit = found["internal_asymmetry"], found["internal_explicit"]

    def interior(one: int, other: int) -> Any:
        known = explicit[one, other] if max(one, other) <= 4 else 0.0
        alike = found["internal_symmetric_length"][one] if one == other else 0.0
        return size[one + other] + asymmetry[abs(one - other)] + known + alike

    by_size, by_difference = size.copy(), asymmetry.copy()
    by_size[5], by_size[6:8], by_difference[0] = interior(2, 3) - asymmetry[1], NEVER, NEVER
    # By the pair around, that within as seen from there, and letters; ends of the second from behind.
    o, w = np.arange(loops.TYPES)[:, None], np.arange(loops.TYPES)
    first, second = ends[:, :5, :5], ends[:, :5, :5].swapaxes(1, 2)
    none_one = first[o, :, left[w]] + first[w, right[o]] + found["bulge_0x1_nucleotides"] + bulge[1]
    one_one = first[:, None] + second + found["internal_1x1_nucleotides"] + interior(1, 1)
    one_two = first[:, None, :, None] + second[:, :, :, None] + interior(1, 2)
    two_two = first[:, None, :, None, None] + second[:, None, :, :, None] + interior(2, 2)
    tables = LoopTables(
        pair_types=_pair_types(),
        hairpin=found["hairpin_length"][np.minimum(np.arange(longest + 1), _MOST)],
        bulge=bulge,
        one_sided=np.array([0, 0, *(interior(1, k) for k in range(1, _MOST))]),
        interior=by_size,
        asymmetry=by_difference,
        own=np.array([interior(*sides) for sides in OWN_LOOPS]),
        stack=found["helix_stacking"][left[o], right[o], right[w], left[w]] + pair[:, None] + pair,
        none_one=none_one,
        one_one=one_one,
        one_two=one_two,
        two_two=two_two,
        inward=inward.reshape(-1, 6),
        outward=outward.reshape(-1, 6),
        special=np.array([NEVER]),
    )
    return (found["multi_unpaired"], found["external_unpaired"]), tables


def _pair_types() -> NDArray[np.int8]:
    found = np.zeros((loops.LETTERS, loops.LETTERS), np.int8)
    for kind, pair in enumerate(PAIRS, 1):
        found[BASES.index(pair[0]), BASES.index(pair[1])] = kind
    return found.reshape(-1)


def _end_penalty(found: Mapping[str, _Table]) -> _Table:
    """By type: what a stem that ends in AU or GU costs. Shape (7, 1, 1)."""
    kinds = np.arange(loops.TYPES)[:, None, None]
    return np.where(kinds > 2, found["terminal_au"], 0)


def _stem_ends(found: Mapping[str, _Table], mismatch: str, dangles: int) -> _Table:
    """By type, letter on the left and on the right: what a stem costs beside its loop. Shape (7, 6, 6)."""
    ends = np.zeros((loops.TYPES, loops.LETTERS, loops.LETTERS))
    if dangles:
        ends[:, : loops.BEYOND, : loops.BEYOND] = found[mismatch]
        ends[:, : loops.BEYOND, loops.BEYOND] = found["dangle5"]
        ends[:, loops.BEYOND, : loops.BEYOND] = found["dangle3"]
    return ends + _end_penalty(found)


def _ends(found: Mapping[str, _Table], dangles: int, *, within: bool) -> _Table:
    """What a pair adds to the loop within or around it."""
    tables = np.zeros((loops.TYPES, loops.LETTERS, loops.LETTERS, 6))
    kinds = (loops.GENERIC, ""), (loops.ONE_SIDED, "_1n"), (loops.TWO_THREE, "_23")
    for column, name in kinds:
        mismatches = found[f"mismatch_interior{name}"]
        tables[:, : loops.BEYOND, : loops.BEYOND, column] = mismatches if within else _from_behind(mismatches)
    tables[..., loops.BULGE] = _end_penalty(found)
    stems = _stem_ends(found, "mismatch_multi", dangles)
    if within:
        tables[:, : loops.BEYOND, : loops.BEYOND, loops.HAIRPIN] = found["mismatch_hairpin"]
        # Seen from within, the closing pair is a stem like the others.
        tables[..., loops.CLOSING] = found["multi_closing"] + found["multi_stem"] + _from_behind(stems)
    else:
        tables[..., loops.STEM] = found["multi_stem"] + stems
        tables[..., loops.EXTERIOR] = _stem_ends(found, "mismatch_exterior", dangles)
    tables[0] = NEVER
    return tables.reshape(-1, 6)


def _from_behind(table: _Table) -> _Table:
    """A table by type and two letters, of pairs that are seen from their other side."""
    return table[loops.REVERSED].swapaxes(1, 2)
