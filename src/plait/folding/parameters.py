"""Energy parameters: those that come with plait, and files of ViennaRNA's format 2.0."""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput, Unsupported
from plait.formats.compression import ByteSource, FileKind, check_readable

#: Letters and pairs in the order of all tables, from 0 and from 1 on.
LETTERS: Final = "NACGU"
PAIRS: Final = ("CG", "GC", "GU", "UG", "AU", "UA")
#: Temperature of the parameters, and the zero point of its scale.
STANDARD: Final = 37.0
_KELVIN: Final = 273.15
_GAS_CONSTANT: Final = 1.98717
#: No energy: what cannot be.
NEVER: Final = math.inf
_BY_PAIR: Final = {
    "mismatch_hairpin": "mismatch_hairpin",
    "mismatch_interior": "mismatch_internal",
    "mismatch_interior_1n": "mismatch_internal_1n",
    "mismatch_interior_23": "mismatch_internal_23",
    "mismatch_multi": "mismatch_multi",
    "mismatch_exterior": "mismatch_exterior",
}
#: Sections of files, and the shapes of their tables with the pair that is none of the six.
_SECTIONS: Final[Mapping[str, tuple[str, tuple[int, ...]]]] = {
    "stack": ("stack", (7, 7)),
    **{name: (section, (7, 5, 5)) for name, section in _BY_PAIR.items()},
    "dangle5": ("dangle5", (7, 5)),
    "dangle3": ("dangle3", (7, 5)),
    "int11": ("int11", (7, 7, 5, 5)),
    "int21": ("int21", (7, 7, 5, 5, 5)),
    "int22": ("int22", (6, 6, 4, 4, 4, 4)),
    "hairpin": ("hairpin", (31,)),
    "bulge": ("bulge", (31,)),
    "interior": ("internal", (31,)),
}
#: Sections of a few numbers: names of energies, and of enthalpies behind them.
_NUMBERS: Final = {
    "ML_params": ("multi_unpaired", "multi_closing", "multi_stem"),
    "NINIO": ("asymmetry",),
    "Misc": ("duplex", "terminal_au", "lxc"),
}
_SPECIAL: Final = {"Triloops": 5, "Tetraloops": 6, "Hexaloops": 8}
_WORDS: Final = {"INF": NEVER, "DEF": -50.0}
_HEAD: Final = "## RNAfold parameter file v2.0"
_EXPECTED: Final = "a parameter file of ViennaRNA, format 2.0"
_MOST_BYTES: Final = 1 << 24
#: No energy or enthalpy in hundredths of kcal/mol is anywhere near.
_MOST: Final = 1_000_000

Energies = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False, repr=False)
class Parameters:
    """Energies of loops at 37 degrees, in hundredths of kcal/mol.

    Parameters
    ----------
    name
        Where they come from.
    energies
        Tables by name.
    special
        Hairpins with an energy of their own, closing pair included.
    enthalpies, special_enthalpies
        The same for enthalpies, without which there is no other temperature.
    """

    name: str
    energies: Energies
    special: Mapping[str, float]
    enthalpies: Energies | None = None
    special_enthalpies: Mapping[str, float] | None = None

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
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of ViennaRNA's format 2.0; what it lacks is taken from `standard`.

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
        sections = _sections(path)
        energies = dict(_shipped()[1])
        enthalpies: dict[str, NDArray[np.float64]] = {}
        for name, (section, shape) in _SECTIONS.items():
            for suffix, tables in (("", energies), ("_enthalpies", enthalpies)):
                if section + suffix in sections:
                    tables[name] = _table(path, section + suffix, sections[section + suffix], shape)
        for section, names in _NUMBERS.items():
            if section in sections:
                _read_numbers(path, section, sections[section], names, energies, enthalpies)
        special, special_enthalpies = _specials(path, sections)
        whole = bool(special) and {*_SECTIONS, "multi_closing", "terminal_au", "asymmetry"} <= {*enthalpies}
        return cls(
            os.fspath(path),
            energies,
            special if special else dict(_shipped()[2]),
            enthalpies if whole else None,
            special_enthalpies if whole else None,
        )

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
        if self.enthalpies is None or self.special_enthalpies is None:
            raise Unsupported(
                f"a temperature of {temperature:g}",
                why=f"{self.name} has no enthalpies; give a file of ViennaRNA that has them",
            )
        share = (temperature + _KELVIN) / (STANDARD + _KELVIN)
        energies = dict(self.energies)
        for name, warm in self.enthalpies.items():
            with np.errstate(invalid="ignore"):
                found = warm - (warm - self.energies[name]) * share
            energies[name] = np.where(np.isfinite(self.energies[name]), found, NEVER)
        energies["lxc"] = self.energies["lxc"] * share
        warm_loops = self.special_enthalpies
        special = {
            loop: warm_loops[loop] - (warm_loops[loop] - cold) * share for loop, cold in self.special.items()
        }
        return Parameters(f"{self.name} at {temperature:g} degrees", energies, special)


def thermal_energy(temperature: float) -> float:
    """RT, in hundredths of kcal/mol."""
    return (temperature + _KELVIN) * _GAS_CONSTANT / 10


@functools.cache
def _standard() -> Any:
    return Parameters(*_shipped())


@functools.cache
def _shipped() -> tuple[str, dict[str, NDArray[np.float64]], dict[str, float]]:
    told = json.loads((Path(__file__).parent / "data" / "turner2004.json").read_text())
    special = {loop: float(energy) for loop, energy in told.pop("special").items()}
    energies = {}
    for name, value in told.items():
        shape = _SECTIONS[name][1] if name in _SECTIONS else ()
        shape = tuple(6 if size == 7 else size for size in shape)
        energies[name] = _with_nothing(np.array(value, np.float64).reshape(shape))
    return "Turner 2004", energies, special


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


def _sections(path: str | os.PathLike[str]) -> dict[str, list[tuple[int, str]]]:
    """Words of every section, with the numbers of their lines."""
    check_readable(path)
    with ByteSource(path, FileKind.PLAIN) as source:
        text = source.read(_MOST_BYTES).decode("utf-8", "replace")
    if not text.startswith(_HEAD):
        raise FormatError(path, line=1, found=repr(text[:40].partition("\n")[0]), expected=f"{_HEAD!r}")
    text = re.sub(r"/\*.*?\*/", lambda told: "\n" * told[0].count("\n"), text, flags=re.DOTALL)
    found: dict[str, list[tuple[int, str]]] = {}
    words: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("##"):
            continue
        if line.startswith("#"):
            words = found.setdefault(line[1:].strip(), [])
            continue
        words += [(number, word) for word in line.split()]
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


def _numbers(path: object, section: str, words: list[tuple[int, str]], count: int) -> NDArray[np.float64]:
    if len(words) < count:
        line = words[-1][0] if words else None
        raise FormatError(
            path, line=line, found=f"{len(words):,} numbers in {section}", expected=f"{count:,} of them"
        )
    return np.array([_number(path, *word) for word in words[:count]], np.float64)


def _table(
    path: object, section: str, words: list[tuple[int, str]], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    table = _numbers(path, section, words, math.prod(shape)).reshape(shape)
    return _with_nothing(table[tuple(slice(0, 6) if size == 7 else slice(None) for size in shape)])


def _read_numbers(
    path: object,
    section: str,
    words: list[tuple[int, str]],
    names: tuple[str, ...],
    energies: dict[str, NDArray[np.float64]],
    enthalpies: dict[str, NDArray[np.float64]],
) -> None:
    found = _numbers(path, section, words, 3 if section == "NINIO" else 4 if section == "Misc" else 6)
    for k, name in enumerate(names):
        if 2 * k < found.size:
            energies[name] = found[2 * k]
            enthalpies[name] = found[2 * k + 1]
    if section == "NINIO":
        energies["most_asymmetry"] = found[2]
    if section == "Misc" and len(words) > 4:
        energies["lxc"] = np.float64(_number(path, *words[4]))  # type: ignore[assignment]
        enthalpies.pop("lxc", None)


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


def whole(energies: Any) -> Any:
    """Energies without what is behind the point."""
    return np.trunc(energies)
