"""Unique molecular identifiers (UMIs): where they stand, and how they are taken from reads.

Examples
--------
>>> from plait.formats.umis import UmiPlace
>>> place = UmiPlace.parse("read1:0-12+read2:0-8")
>>> place.parts
(UmiPart(mate=1, begin=0, end=12), UmiPart(mate=2, begin=0, end=8))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.fastq import ReadBlock

_EXPECTED: Final = "name, name:REGEX with one group, or places such as read1:0-12 or read1:0-8+read2:0-8"
_PART: Final = re.compile(r"read([12]):([0-9]{1,9})-([0-9]{1,9})")
#: Bases behind the last colon or underscore of a name; a number of the mate may follow.
_LAST_PART: Final = r"[:_]([ACGTNacgtn]+(?:[+-][ACGTNacgtn]+)*)(?:/[12])?$"


class UmiPart(NamedTuple):
    """Bases ``begin:end`` of a mate, 1 or 2, from its start, 0-based and half-open."""

    mate: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class UmiPlace:
    """Where UMIs stand: in the names of reads, or at places of their mates.

    `pattern` is a regular expression that is searched for in names, its group being the UMI; None for places.
    Of several `parts` the bases are joined, one after the other.
    """

    pattern: re.Pattern[str] | None
    parts: tuple[UmiPart, ...] = ()

    @classmethod
    def parse(cls, text: str) -> UmiPlace:
        """The place that an option names.

        It is ``name`` for the bases behind the last colon or underscore of a read's name; ``name:REGEX`` for
        the group of a regular expression; ``read1:0-12`` for bases of the first mate, 0-based and half-open,
        ``read2:0-8`` for bases of the second, and several such places with ``+`` between. InvalidInput if it
        is none of these, the expression is wrong or has not exactly one group, or places are empty or
        overlap.
        """
        if text == "name":
            return cls(re.compile(_LAST_PART))
        if text.startswith("name:"):
            return cls(_pattern(text, text.removeprefix("name:")))
        parts = []
        for word in text.split("+"):
            found = _PART.fullmatch(word.strip())
            if not found:
                raise InvalidInput("umi", found=_shown(text), expected=_EXPECTED)
            part = UmiPart(*map(int, found.groups()))
            if part.begin >= part.end:
                raise InvalidInput(
                    "umi",
                    found=f"{_shown(text)}, in which {part.begin}-{part.end} is empty",
                    expected="places that end behind their begin",
                )
            parts.append(part)
        ordered = sorted(parts)
        for one, other in pairwise(ordered):
            if one.mate == other.mate and other.begin < one.end:
                raise InvalidInput("umi", found=_shown(text), expected="places that do not overlap")
        return cls(None, tuple(parts))

    @property
    def needs_mates(self) -> bool:
        """Whether a part stands in the second mate."""
        return any(part.mate == 2 for part in self.parts)


def _shown(text: str) -> str:
    return f"{text!r:.100}"


def _pattern(text: str, expression: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        told = f"{_shown(text)} ({error!s:.80})"
        raise InvalidInput("umi", found=told, expected="a regular expression") from None
    if pattern.groups != 1:
        raise InvalidInput(
            "umi",
            found=f"{_shown(text)} with {pattern.groups} groups",
            expected="a regular expression with one group, which is the UMI",
            hint="write (?:...) for brackets that are no group",
        )
    return pattern


class UmiReads(NamedTuple):
    """Reads without their UMIs: first mates, or single reads, second mates, or None, and the UMI of each.

    UMIs are in upper case; empty where the name does not match, or a mate ends before the place does.
    """

    reads: ReadBlock
    mates: ReadBlock | None
    umis: list[str]


def take_umis(reads: ReadBlock, mates: ReadBlock | None, place: UmiPlace) -> UmiReads:
    """Take the UMIs of reads, at `place`; one entry for each read, in order.

    From a mate with a UMI all bases up to the end of the last place are cut away: what stands before or
    between places (spacers, sample barcodes) is no part of the molecule either. Mates that are too short for
    that stay as they are. InvalidInput if the UMI stands in the second mate and there is none.
    """
    if place.pattern is not None:
        return UmiReads(reads, mates, _umis_of_names(reads.names, place.pattern))
    if place.needs_mates and mates is None:
        raise InvalidInput(
            "umi", found="a place in the second mate, of single reads", expected="a place in read1, or mates"
        )
    blocks = {1: reads, 2: mates}
    ends = {mate: max(p.end for p in parts) for mate, parts in groupby(sorted(place.parts), lambda p: p.mate)}
    known = np.ones(len(reads), np.bool_)
    for mate, end in ends.items():
        known &= _given(blocks[mate]).lengths >= end
    columns = []
    for part in place.parts:
        block = _given(blocks[part.mate])
        columns.append(block.letters[block.starts[:-1][known, None] + np.arange(part.begin, part.end)])
    bases = np.concatenate(columns, axis=1)
    text, width = bases.tobytes().decode("ascii"), bases.shape[1]
    umis = [""] * len(reads)
    for number, index in enumerate(np.flatnonzero(known).tolist()):
        umis[index] = text[number * width : (number + 1) * width]
    for mate, end in ends.items():
        blocks[mate] = _without_start(_given(blocks[mate]), np.where(known, end, 0))
    return UmiReads(_given(blocks[1]), blocks[2], umis)


def _given(block: ReadBlock | None) -> ReadBlock:
    assert block is not None
    return block


def _umis_of_names(names: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    umis = []
    for name in names:
        found = pattern.search(name)
        # A group that is left out of a match is None.
        umi = (found and found.group(1)) or ""
        umis.append(umi.upper().replace("+", "").replace("-", ""))
    return umis


def _without_start(reads: ReadBlock, cuts: NDArray[np.int64]) -> ReadBlock:
    """The reads without as many of their first bases."""
    rests = reads.lengths - cuts
    keep = np.repeat(np.tile((False, True), len(reads)), np.stack((cuts, rests), axis=1).ravel())
    starts = np.zeros(len(reads) + 1, np.int64)
    np.cumsum(rests, out=starts[1:])
    qualities = None if reads.qualities is None else reads.qualities[keep]
    return ReadBlock(reads.names, reads.letters[keep], starts, qualities)
