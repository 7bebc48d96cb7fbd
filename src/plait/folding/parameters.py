"""Energy parameters: those that come with plait, and files of ViennaRNA's format 2.0."""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput, Unsupported
from plait.formats.files import read_text

#: Letters and pairs in the order of all tables, from 0 and from 1 on.
LETTERS: Final = "NACGU"
PAIRS: Final = ("CG", "GC", "GU", "UG", "AU", "UA")
#: Temperature of the parameters, and the zero point of its scale.
STANDARD: Final = 37.0
KELVIN: Final = 273.15
GAS_CONSTANT: Final = 1.98717
#: No energy: what cannot be.
NEVER: Final = math.inf
_MISMATCHES: Final = ("hairpin", "interior", "interior_1n", "interior_23", "multi", "exterior")
#: Shapes of tables, with the pair that is none of the six.
_SHAPES: Final[Mapping[str, tuple[int, ...]]] = {
    "stack": (7, 7),
    **{f"mismatch_{loop}": (7, 5, 5) for loop in _MISMATCHES},
    **dict.fromkeys(("dangle5", "dangle3"), (7, 5)),
    "int11": (7, 7, 5, 5),
    "int21": (7, 7, 5, 5, 5),
    "int22": (6, 6, 4, 4, 4, 4),
    **dict.fromkeys(("hairpin", "bulge", "interior"), (31,)),
}
#: Sections of a few numbers, how many at least and at most: energies by name, with an enthalpy behind each.
_NUMBERS: Final = {
    "ML_params": (6, 6, ("multi_unpaired", "multi_closing", "multi_stem")),
    "NINIO": (3, 3, ("asymmetry", "most_asymmetry")),
    "Misc": (4, 5, ("duplex", "terminal_au", "lxc")),
}
_SPECIAL: Final = {"Triloops": 5, "Tetraloops": 6, "Hexaloops": 8}
_WORDS: Final = {"INF": NEVER, "DEF": -50.0}
_HEAD: Final = "## RNAfold parameter file v2.0"
_EXPECTED: Final = "a parameter file of ViennaRNA, format 2.0, or of CONTRAfold"
#: No energy or enthalpy in hundredths of kcal/mol is anywhere near.
_MOST: Final = 1_000_000

#: Groups of CONTRAfold's parameters by how many letters, and those that are told once from either end.
_BY_LETTERS: Final = {
    "bulge_0x1_nucleotides": 1,
    **dict.fromkeys(("base_pair", "internal_1x1_nucleotides", "helix_closing"), 2),
    **dict.fromkeys(("dangle_left", "dangle_right"), 3),
    **dict.fromkeys(("terminal_mismatch", "helix_stacking"), 4),
}
_FROM_BEHIND: Final = ("base_pair", "internal_1x1_nucleotides", "helix_stacking")
#: The same by least and largest length: each length has what all up to it have.
_BY_LENGTH: Final = {
    "hairpin_length": (0, 30),
    "bulge_length": (1, 30),
    "internal_length": (2, 30),
    "internal_symmetric_length": (1, 15),
    "internal_asymmetry": (1, 28),
}
_SINGLE: Final = ("multi_base", "multi_unpaired", "multi_paired", "external_unpaired", "external_paired")

Energies = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False, repr=False)
class Parameters:
    """Energies of loops at 37 degrees, in hundredths of kcal/mol; or learned scores, with their signs turned.

    Parameters
    ----------
    name
        Where they come from.
    energies
        Tables by name.
    special
        Hairpins with an energy of their own, closing pair included.
    enthalpies
        The same two for enthalpies, without which there is no other temperature.
    """

    name: str
    energies: Energies
    special: Mapping[str, float]
    enthalpies: tuple[Energies, Mapping[str, float]] | None = None

    @classmethod
    def standard(cls) -> Self:
        """Turner's parameters of 2004, without enthalpies.

        Returns
        -------
        plait.folding.Parameters
            Those that come with plait; ``plait/folding/data/SOURCES.md`` says from where.
        """
        found: Self = _standard()
        return found

    @classmethod
    def contrafold(cls) -> Self:
        """CONTRAfold's parameters, learned from known structures.

        Returns
        -------
        plait.folding.Parameters
            Scores in natural logarithms, of which a hundred hundredths are one.
        """
        found = cls.read(Path(__file__).parent / "data" / "contrafold.params.complementary")
        return replace(found, name="CONTRAfold")

    @property
    def learned(self) -> bool:
        """Whether they are scores as CONTRAfold has them, not energies."""
        return "helix_closing" in self.energies

    @property
    def unit(self) -> str:
        """What energies are given in."""
        return "nats" if self.learned else "kcal/mol"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of ViennaRNA's format 2.0 (what it lacks is as in `standard`), or of CONTRAfold's.

        Parameters
        ----------
        path
            The file, plain or compressed.

        Returns
        -------
        plait.folding.Parameters
            Energies, and enthalpies if the file has all of them.

        Raises
        ------
        FormatError
            If it is no such file.
        """
        text = read_text(path, _EXPECTED)
        if re.match(r"[a-z]\w+ +[-+.\d]", text):
            return cls(os.fspath(path), _learned(path, text), {})
        sections, standard = _sections(path, text), _standard()
        energies, enthalpies = dict(standard.energies), dict[str, NDArray[np.float64]]()
        for name, shape in _SHAPES.items():
            for suffix, tables in (("", energies), ("_enthalpies", enthalpies)):
                section = name.replace("interior", "internal") + suffix
                if section in sections:
                    tables[name] = _table(path, section, sections[section], shape)
        for section, (least, most, names) in _NUMBERS.items():
            if section in sections:
                found = _numbers(path, section, sections[section], least, most)
                energies.update(zip(names, found[::2], strict=False))
                enthalpies.update(zip(names, found[1::2], strict=False))
        special, special_enthalpies = _specials(path, sections)
        whole = bool(special) and {*_SHAPES, "multi_closing", "terminal_au", "asymmetry"} <= {*enthalpies}
        warm = (enthalpies, special_enthalpies) if whole else None
        return cls(os.fspath(path), energies, special or standard.special, warm)

    def at(self, temperature: float) -> Parameters:
        """The energies at another temperature.

        Parameters
        ----------
        temperature
            Degrees Celsius.

        Returns
        -------
        plait.folding.Parameters
            With energies that are no whole numbers.

        Raises
        ------
        InvalidInput
            If no water is liquid at it.
        Unsupported
            If there are no enthalpies.
        """
        if not 0 <= temperature <= 100:
            raise InvalidInput("temperature", found=temperature, expected="degrees Celsius, 0 to 100")
        if temperature == STANDARD:
            return self
        if self.enthalpies is None:
            why = f"{self.name} has no enthalpies; give a file of ViennaRNA that has them"
            raise Unsupported(f"a temperature of {temperature:g}", why=why)
        share = (temperature + KELVIN) / (STANDARD + KELVIN)
        tables, loops = self.enthalpies
        energies = dict(self.energies)
        for name, warm in tables.items():
            with np.errstate(invalid="ignore"):
                found = warm - (warm - self.energies[name]) * share
            energies[name] = np.where(np.isfinite(self.energies[name]), found, NEVER)
        energies["lxc"] = self.energies["lxc"] * share
        special = {loop: loops[loop] - (loops[loop] - cold) * share for loop, cold in self.special.items()}
        return Parameters(f"{self.name} at {temperature:g} degrees", energies, special)


@functools.cache
def _standard() -> Any:
    told = json.loads((Path(__file__).parent / "data" / "turner2004.json").read_text())
    special = {loop: float(energy) for loop, energy in told.pop("special").items()}
    shapes = {name: tuple(6 if size == 7 else size for size in shape) for name, shape in _SHAPES.items()}
    energies = {
        name: _with_nothing(np.array(value, np.float64).reshape(shapes.get(name, ())))
        for name, value in told.items()
    }
    return Parameters("Turner 2004", energies, special)


def _with_nothing(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """A table of the six pairs with a row for no pair; int22, of four letters, with N as the worst."""
    table = np.where(np.isnan(table), NEVER, table)
    if table.ndim < 2:
        return table
    pairs = 2 if table.shape[:2] == (6, 6) else 1
    found = np.pad(table, [(1, 0)] * pairs + [(0, 0)] * (table.ndim - pairs), constant_values=NEVER)
    if table.ndim == 6:
        for axis in range(2, 6):
            worst = found.max(axis=axis, keepdims=True)
            found = np.concatenate([worst, found], axis=axis)
    return found


def _learned(path: str | os.PathLike[str], text: str) -> Energies:
    """Tables of CONTRAfold's scores with their signs turned, in hundredths; what has N counts for nothing."""
    told: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, _, word = line.strip().partition(" ")
        told[name] = -100 * _number(path, number, word.strip()) if name else 0.0

    def value(*names: str) -> float:
        for name in names:
            if name in told:
                return told[name]
        raise FormatError(path, found=f"no {names[0]}", expected="all of CONTRAfold's parameters")

    found: dict[str, NDArray[np.float64]] = {name: np.array(value(name)) for name in _SINGLE}
    for group, count in _BY_LETTERS.items():
        table = found[group] = np.zeros((len(LETTERS),) * count)
        for place in product(range(1, len(LETTERS)), repeat=count):
            word = "".join(LETTERS[code] for code in place)
            names = [word, word[::-1]] if group in _FROM_BEHIND else [word]
            table[place] = value(*(f"{group}_{name}" for name in names))
    for group, (least, most) in _BY_LENGTH.items():
        steps = [value(f"{group}_at_least_{k}") if least <= k <= most else 0.0 for k in range(31)]
        found[group] = np.cumsum(steps)
    found["internal_explicit"] = np.zeros((5, 5))
    for one, other in product(range(1, 5), repeat=2):
        name = f"internal_explicit_{min(one, other)}_{max(one, other)}"
        found["internal_explicit"][one, other] = value(name)
    return found


def _sections(path: str | os.PathLike[str], text: str) -> dict[str, list[tuple[int, str]]]:
    """Words of every section, with the numbers of their lines."""
    if not text.startswith(_HEAD):
        raise FormatError(path, line=1, found=repr(text[:40].partition("\n")[0]), expected=f"{_HEAD!r}")
    text = re.sub(r"/\*.*?\*/", lambda told: "\n" * told[0].count("\n"), text, flags=re.DOTALL)
    found: dict[str, list[tuple[int, str]]] = {}
    words: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("#"):
            words += [(number, word) for word in line.split()]
        elif not line.startswith("##"):
            words = found.setdefault(line[1:].strip(), [])
    return found


def _number(path: object, line: int, word: str) -> float:
    if word in _WORDS:
        return _WORDS[word]
    try:
        found = float(word)
    except ValueError:
        found = NEVER
    if not abs(found) <= _MOST:
        raise FormatError(
            path, line=line, found=repr(word), expected=f"a number of at most {_MOST:,}, INF or DEF"
        )
    return found


def _numbers(
    path: object, section: str, words: list[tuple[int, str]], least: int, most: int
) -> NDArray[np.float64]:
    if len(words) < least:
        line = words[-1][0] if words else None
        raise FormatError(
            path, line=line, found=f"{len(words):,} numbers in {section}", expected=f"{least:,} of them"
        )
    return np.array([_number(path, *word) for word in words[:most]], np.float64)


def _table(
    path: object, section: str, words: list[tuple[int, str]], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    size = math.prod(shape)
    table = _numbers(path, section, words, size, size).reshape(shape)
    return _with_nothing(table[tuple(slice(0, 6) if size == 7 else slice(None) for size in shape)])


def _specials(
    path: object, sections: Mapping[str, list[tuple[int, str]]]
) -> tuple[dict[str, float], dict[str, float]]:
    energies: dict[str, float] = {}
    enthalpies: dict[str, float] = {}
    for section, length in _SPECIAL.items():
        words = sections.get(section, [])
        for (line, loop), energy, enthalpy in zip(words[::3], words[1::3], words[2::3], strict=False):
            if len(loop) != length or set(loop) - set(LETTERS):
                raise FormatError(path, line=line, found=repr(loop), expected=f"{length} bases")
            energies[loop] = _number(path, *energy)
            enthalpies[loop] = _number(path, *enthalpy)
        if len(words) % 3:
            raise FormatError(
                path, line=words[-1][0], found=f"{len(words)} words in {section}", expected="three a hairpin"
            )
    return energies, enthalpies


#: The byte of the code -1.
NO_BASE: Final = 255


def codes_of(sequence: bytes) -> NDArray[np.int8]:
    """Codes of the letters of a sequence, either case, T for U; -1 is none of them."""
    return np.frombuffer(sequence.translate(_CODES), np.int8)


def _codes() -> bytes:
    found = np.full(256, -1, np.int8)
    for code, base in enumerate(LETTERS):
        found[[ord(base), ord(base.lower())]] = code
    found[[ord("T"), ord("t")]] = LETTERS.index("U")
    return found.tobytes()


_CODES: Final = _codes()
