"""Reads of simulated molecules, with the truth of each: what it covers, and its junction as it was read.

Every base is either good or poor, and wrong as often as its Phred score says; inserted and lost bases come on
top, and no score tells of them. Sequences of truth are in the orientation of the gene, whatever strand was
read.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from support.molecule_simulation import Molecule

__all__ = ["ReadPart", "Sequencing", "SimulatedRead"]

#: Where a read lies: about the junction, anywhere in the transcript, or from a primer on.
_Placement = Literal["junction", "anywhere", "primer"]
_GOOD, _POOR = 37, 12
_PARTNERS = str.maketrans("ACGTN", "TGCAN")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPart:
    """One read, or one mate of two, and the truth about it. Places are 0-based and half-open.

    Attributes
    ----------
    sequence, quality
        As the sequencer gives them; the scores as letters, Phred + 33.
    rev_comp
        Whether it is of the other strand than the gene.
    start, end
        Which part of the molecule it covers.
    changes
        Bases that are wrong, unknown, lost or inserted.
    junction
        What it has in the place of the junction, in the orientation of the gene; empty unless it covers it.
    junction_start, junction_end
        Where that lies in the read in the orientation of the gene; -1 unless it covers it.
    v_bases, j_bases
        Germline nucleotides of V and of J in the part that it covers.
    """

    sequence: str
    quality: str
    rev_comp: bool
    start: int
    end: int
    changes: int
    junction: str
    junction_start: int
    junction_end: int
    v_bases: int
    j_bases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRead:
    """A read or a pair of mates, with the molecule it comes from.

    Attributes
    ----------
    name
        Its name.
    molecule
        What was sequenced.
    read
        The read, or the first mate.
    mate
        The second mate, or None.
    clone
        Number of the clone it comes from, -1 for none.
    umi
        The molecule's label; empty for none.
    """

    name: str
    molecule: Molecule
    read: ReadPart
    mate: ReadPart | None = None
    clone: int = -1
    umi: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequencing:
    """How molecules are read.

    Attributes
    ----------
    length
        Bases of a read.
    placement
        ``"junction"``: what is read of a molecule (of a pair: the fragment) holds the whole junction if it is
        long enough. ``"anywhere"``: any part. ``"primer"``: it ends `primer` bases behind J, wherever it
        begins.
    primer
        See `placement`.
    reverse
        Share of the reads that begin at the end of what is read.
    insert_mean, insert_sd
        Length of the fragments that pairs are the two ends of; no pairs without a mean.
    substitutions, unknown, insertions, deletions
        Share of the bases that are wrong, N, inserted and lost.
    truncated
        Share of the reads that end early, anywhere.
    """

    length: int = 150
    placement: _Placement = "junction"
    primer: int = 30
    reverse: float = 0.5
    insert_mean: float | None = None
    insert_sd: float = 0.0
    substitutions: float = 0.0
    unknown: float = 0.0
    insertions: float = 0.0
    deletions: float = 0.0
    truncated: float = 0.0

    def read(
        self, molecule: Molecule, rng: random.Random, *, name: str = "", clone: int = -1, umi: str = ""
    ) -> SimulatedRead:
        """Sequence a molecule once.

        Parameters
        ----------
        molecule
            What to read.
        rng
            Source of randomness.
        name, clone, umi
            See `SimulatedRead`.
        """
        start, end = self._fragment(molecule, rng)
        reverse = rng.random() < self.reverse
        read = self._part(molecule, rng, start, end, reverse)
        mate = None if self.insert_mean is None else self._part(molecule, rng, start, end, not reverse)
        return SimulatedRead(name=name, molecule=molecule, read=read, mate=mate, clone=clone, umi=umi)

    def _fragment(self, molecule: Molecule, rng: random.Random) -> tuple[int, int]:
        total = len(molecule.sequence)
        size = self.length
        if self.insert_mean is not None:
            size = max(20, round(rng.gauss(self.insert_mean, self.insert_sd)))
        size = min(size, total)
        first, last = 0, total - size
        junction = molecule.junction_place
        if self.placement == "primer" and molecule.j_place[1] > 0:
            first = last = max(0, min(last, molecule.j_place[1] + self.primer - size))
        elif self.placement == "junction" and junction is not None:
            lowest, highest = max(first, junction[1] - size), min(last, junction[0])
            if lowest <= highest:
                first, last = lowest, highest
        start = rng.randint(first, last)
        return start, start + size

    def _part(self, molecule: Molecule, rng: random.Random, start: int, end: int, reverse: bool) -> ReadPart:
        """Read a fragment from its beginning or, on the other strand, from its end."""
        size = min(self.length, end - start)
        if self.truncated and rng.random() < self.truncated:
            size = rng.randint(1, size)
        start, end = (end - size, end) if reverse else (start, start + size)
        template = molecule.sequence[start:end]
        junction = molecule.junction_place
        place = None
        if junction is not None and start <= junction[0] and junction[1] <= end:
            place = (junction[0] - start, junction[1] - start)
            place = (size - place[1], size - place[0]) if reverse else place
        sequence, quality, changes, place = self._sequenced(
            _other_strand(template) if reverse else template, rng, place
        )
        junction_text, first, last = "", -1, -1
        if place is not None:
            junction_text = sequence[slice(*place)]
            first, last = place
            if reverse:
                junction_text = _other_strand(junction_text)
                first, last = len(sequence) - last, len(sequence) - first
        return ReadPart(
            sequence=sequence,
            quality=quality,
            rev_comp=reverse,
            start=start,
            end=end,
            changes=changes,
            junction=junction_text,
            junction_start=first,
            junction_end=last,
            v_bases=_shared((start, end), molecule.v_place),
            j_bases=_shared((start, end), molecule.j_place),
        )

    def _sequenced(
        self, template: str, rng: random.Random, place: tuple[int, int] | None
    ) -> tuple[str, str, int, tuple[int, int] | None]:
        """Bases and scores of a template, how many were changed, and where a part of it is now."""
        letters, scores, wrong = self._called(template, rng)
        inserted = list(_events(rng, len(template), self.insertions))
        lost = set(_events(rng, len(template), self.deletions))
        if inserted or lost:
            for at in lost:
                letters[at] = scores[at] = ""
            for at in inserted:  # before this base
                letters[at] = rng.choice("ACGT") + letters[at]
                scores[at] = chr(33 + _GOOD) + scores[at]
            if place is not None:
                first, last = place
                gone = [sum(at < edge for at in lost) for edge in place]
                more = sum(at <= first for at in inserted), sum(at < last for at in inserted)
                place = first - gone[0] + more[0], last - gone[1] + more[1]
        return "".join(letters), "".join(scores), wrong + len(inserted) + len(lost), place

    def _called(self, template: str, rng: random.Random) -> tuple[list[str], list[str], int]:
        """Bases with substitutions and N, their scores, and how many are not those of the template."""
        letters = list(template)
        good_rate, poor_rate = 10 ** (-_GOOD / 10), 10 ** (-_POOR / 10)
        best = _GOOD if self.substitutions > 0 else 40
        scores = [chr(33 + best)] * len(letters)
        wrong = 0
        if self.substitutions > 0:
            poor_share = max(0.0, (self.substitutions - good_rate) / (poor_rate - good_rate))
            good_rate = min(good_rate, self.substitutions)
            for at in _events(rng, len(letters), good_rate):
                letters[at] = _another(rng, letters[at])
                wrong += 1
            for at in _events(rng, len(letters), min(1.0, poor_share)):
                scores[at] = chr(33 + _POOR)
                if letters[at] == template[at] and rng.random() < poor_rate:
                    letters[at] = _another(rng, letters[at])
                    wrong += 1
        for at in _events(rng, len(letters), self.unknown):
            wrong += letters[at] == template[at]
            letters[at], scores[at] = "N", chr(33 + 2)
        return letters, scores, wrong


def _other_strand(sequence: str) -> str:
    return sequence[::-1].translate(_PARTNERS)


def _events(rng: random.Random, length: int, rate: float) -> Iterator[int]:
    """Places that something happens at with a rate, in order; only they cost time."""
    if rate <= 0:
        return
    if rate >= 1:
        yield from range(length)
        return
    scale, at = math.log(1.0 - rate), -1
    while True:
        at += 1 + int(math.log(1.0 - rng.random()) / scale)
        if at >= length:
            return
        yield at


def _another(rng: random.Random, letter: str) -> str:
    return rng.choice([other for other in "ACGT" if other != letter])


def _shared(a: tuple[int, int], b: tuple[int, int]) -> int:
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))
