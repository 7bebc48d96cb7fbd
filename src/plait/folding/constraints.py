"""What is known of a sequence beforehand: which bases pair, and how reactive they are.

A module of its own: files and functions give it alike, and it knows of no energies.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.dp.intervals.loops import SMALLEST_HAIRPIN
from plait.errors import FormatError, InvalidInput, Unsupported
from plait.folding.parameters import LETTERS, PAIRS, codes_of
from plait.folding.structures import partners_of
from plait.formats.compression import read_text

if TYPE_CHECKING:
    from plait.folding.folds import FoldSettings

#: Signs of a constraint, as RNAfold has them.
SIGNS: Final = ".|x<>()"
_REACTIVITIES: Final = "lines of a base and its reactivity"
_NOT_BRACKETS: Final = str.maketrans(dict.fromkeys("|x<>", "."))
_PAIRING: Final = {(LETTERS.index(pair[0]), LETTERS.index(pair[1])) for pair in PAIRS}


@dataclass(frozen=True, eq=False)
class Restraints:
    """What is known of a sequence.

    Parameters
    ----------
    constraint
        A sign a base, as RNAfold has them: ``x`` stays unpaired, ``<`` pairs with no base before it and ``>``
        with none behind it, ``(`` and ``)`` pair with each other or nothing, ``|`` and ``.`` do anything.
        With `FoldSettings.enforce`, brackets do pair, and so does ``|``.
    reactivities
        SHAPE reactivity of every base; negative ones, and those that are no numbers, count as unknown.
        Shape (n,).
    """

    constraint: str | None = None
    reactivities: Sequence[float] | NDArray[np.float64] | None = None


class Molecule(NamedTuple):
    """A sequence, int8 (n,), and what is known of it; None stands for nothing.

    `partners`: int32 (2, n), the first and the last base that each may pair with. `forced`: bool (n,), bases
    that pair. `pseudo`: (n,), hundredths of kcal/mol for each side of a stack that a base is in.
    """

    codes: NDArray[np.int8]
    partners: NDArray[np.int32] | None = None
    forced: NDArray[np.bool_] | None = None
    pseudo: NDArray[np.float64] | None = None

    @property
    def forced_bases(self) -> int:
        """How many bases have to pair."""
        return 0 if self.forced is None else int(self.forced.sum())


def molecule_of(codes: NDArray[np.int8], known: Restraints | None, settings: FoldSettings) -> Molecule:
    """A sequence with what is known of it; InvalidInput if that does not fit."""
    max_span = settings.max_span
    if known is None and max_span is None:
        return Molecule(codes)
    known = known or Restraints()
    partners = forced = pseudo = None
    if max_span is not None:
        places = np.arange(codes.size)
        partners = np.stack([places - max_span + 1, places + max_span - 1]).astype(np.int32)
    if known.constraint is not None:
        limits = _limits(codes, known.constraint)
        if partners is not None:
            limits = np.stack([np.maximum(limits[0], partners[0]), np.minimum(limits[1], partners[1])])
        partners = limits
        if settings.enforce:
            signs = np.frombuffer(known.constraint.encode(), np.uint8)
            forced = np.isin(signs, np.frombuffer(b"|()", np.uint8))
    if known.reactivities is not None:
        if settings.model.parameters.learned:
            raise Unsupported("reactivities", why=f"{settings.model.name} has no energies to add theirs to")
        pseudo = _pseudo_energies(codes.size, known.reactivities, settings)
    return Molecule(codes, partners, forced if forced is not None and forced.any() else None, pseudo)


def check_pairs(codes: NDArray[np.int8], partners: NDArray[np.int32], what: str) -> None:
    """InvalidInput if a pair of a structure cannot be."""
    for i in np.flatnonzero(partners > np.arange(partners.size)).tolist():
        j = int(partners[i])
        if (int(codes[i]), int(codes[j])) not in _PAIRING or j - i <= SMALLEST_HAIRPIN:
            raise InvalidInput(
                what,
                found=f"a pair of bases {i + 1:,} and {j + 1:,}, {LETTERS[codes[i]]} and {LETTERS[codes[j]]}",
                expected=f"CG, GC, GU, UG, AU or UA, with {SMALLEST_HAIRPIN} bases between",
            )


def _limits(codes: NDArray[np.int8], constraint: str) -> NDArray[np.int32]:
    """The first and the last base that each base may pair with. Shape (2, n)."""
    n = codes.size
    if len(constraint) != n:
        raise InvalidInput("constraint", found=f"{len(constraint):,} signs", expected=f"{n:,}, one a base")
    odd = next((place for place, sign in enumerate(constraint) if sign not in SIGNS), None)
    if odd is not None:
        raise InvalidInput(
            "constraint",
            found=f"{constraint[odd]!r} at base {odd + 1:,}",
            expected=f"signs of {' '.join(SIGNS)}",
        )
    partners = partners_of(constraint.translate(_NOT_BRACKETS), "constraint")
    check_pairs(codes, partners, "constraint")
    limits = np.empty((2, n), np.int32)
    around = [(-1, n)]
    for place, sign in enumerate(constraint):
        if sign == ")":
            around.pop()
        first, last = around[-1]
        limits[:, place] = first + 1, last - 1
        if sign in "()":
            limits[:, place] = partners[place]
        elif sign == "x":
            limits[:, place] = n, -1
        elif sign == "<":
            limits[0, place] = place + 1
        elif sign == ">":
            limits[1, place] = place - 1
        if sign == "(":
            around.append((place, int(partners[place])))
    return limits


def _pseudo_energies(
    bases: int, reactivities: Sequence[float] | NDArray[np.float64], settings: FoldSettings
) -> NDArray[np.float64]:
    """Of every base, hundredths of kcal/mol, whole ones: Deigan et al., 2009."""
    found = np.asarray(reactivities, np.float64)
    if found.shape != (bases,):
        raise InvalidInput(
            "reactivities", found=f"an array of shape {found.shape}", expected=f"({bases},), one a base"
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        energies = np.rint(100 * (settings.slope * np.log1p(found) + settings.intercept))
    return np.where(found >= 0, energies, 0.0)


class Reactivities(NamedTuple):
    """Reactivities of a sequence by base, from 1 on, with the letter if given and the line."""

    line: int
    values: Mapping[int, tuple[str | None, float, int]]


def read_reactivities(path: str | os.PathLike[str]) -> dict[str | None, Reactivities]:
    """Reactivities by the name of their sequence; None where no line ``>name`` stands before them.

    Lines have a base from 1 on, maybe its letter, and a number or NA. FormatError if they have not.
    """
    found: dict[str | None, Reactivities] = {}
    values: dict[int, tuple[str | None, float, int]] = {}
    for number, line in enumerate(read_text(path, _REACTIVITIES).splitlines(), 1):
        words = line.split()
        if line.startswith(">"):
            name = line[1:].split()[0] if len(line.split()[0]) > 1 else ""
            if name in found or not name:
                raise FormatError(path, line=number, found=repr(line[:40]), expected="a name of its own")
            values = {}
            found[name] = Reactivities(number, values)
        elif words and not line.startswith("#"):
            if not found:
                found[None] = Reactivities(number, values)
            place, entry = _entry(path, number, words)
            if place in values:
                raise FormatError(path, line=number, found=f"base {place:,} again", expected="each base once")
            values[place] = entry
    if not found:
        raise FormatError(path, found="no reactivities", expected=_REACTIVITIES)
    return found


def _entry(path: object, number: int, words: list[str]) -> tuple[int, tuple[str | None, float, int]]:
    """A base, its letter if given, its reactivity and the line."""
    letter = words[1] if len(words) > 2 else None
    try:
        place, value = int(words[0]), words[-1]
        reactivity = -1.0 if value.upper() in ("NA", "NAN") or len(words) == 1 else float(value)
        fits = place > 0 and len(words) <= 3 and len(letter or "N") == 1
        if not (fits and math.isfinite(reactivity)):
            raise ValueError
    except ValueError:
        raise FormatError(
            path,
            line=number,
            found=repr(" ".join(words)[:40]),
            expected="a base from 1 on, maybe its letter, and a reactivity or NA",
        ) from None
    return place, (letter, reactivity, number)


def reactivities_of(path: object, told: Reactivities, codes: NDArray[np.int8]) -> NDArray[np.float64]:
    """Reactivities of all bases of a sequence, unknown ones -1; FormatError if they are not of it."""
    found = np.full(codes.size, -1.0)
    for place, (letter, value, line) in told.values.items():
        if place > codes.size:
            raise FormatError(
                path, line=line, found=f"base {place:,}", expected=f"at most {codes.size:,}, the sequence's"
            )
        base = LETTERS[codes[place - 1]]
        if letter is not None and codes_of(letter.encode("utf-8", "replace"))[0] != codes[place - 1]:
            raise FormatError(path, line=line, found=f"{letter!r} as base {place:,}", expected=repr(base))
        found[place - 1] = value
    return found


def constraint_apart(text: bytes) -> tuple[bytes, str | None]:
    """A sequence, and the constraint that may stand behind it."""
    at = next((place for place, sign in enumerate(text) if chr(sign) in SIGNS), len(text))
    return text[:at], text[at:].decode("utf-8", "replace") if at < len(text) else None
