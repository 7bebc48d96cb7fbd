"""What is known of a sequence beforehand: which bases pair, and how reactive they are.

A module of its own: files and functions give it alike, and it knows of neither files nor energies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.dp.intervals.loops import SMALLEST_HAIRPIN
from plait.errors import InvalidInput, Unsupported
from plait.folding.parameters import LETTERS, PAIRS
from plait.folding.structures import partners_of

if TYPE_CHECKING:
    from plait.folding.folds import FoldSettings

#: Signs of a constraint, as RNAfold has them.
SIGNS: Final = ".|x<>()"
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
        places, max_span = np.arange(codes.size), min(max_span, codes.size)
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
            told = f"a pair of bases {i + 1:,} and {j + 1:,}, {LETTERS[codes[i]]} and {LETTERS[codes[j]]}"
            expected = f"CG, GC, GU, UG, AU or UA, with {SMALLEST_HAIRPIN} bases between"
            raise InvalidInput(what, found=told, expected=expected)


def _limits(codes: NDArray[np.int8], constraint: str) -> NDArray[np.int32]:
    """The first and the last base that each base may pair with. Shape (2, n)."""
    n = codes.size
    if len(constraint) != n:
        raise InvalidInput("constraint", found=f"{len(constraint):,} signs", expected=f"{n:,}, one a base")
    odd = next((place for place, sign in enumerate(constraint) if sign not in SIGNS), None)
    if odd is not None:
        told = f"{constraint[odd]!r} at base {odd + 1:,}"
        raise InvalidInput("constraint", found=told, expected=f"signs of {' '.join(SIGNS)}")
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
