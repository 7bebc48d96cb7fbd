"""Rearranged receptor genes from known choices, for reads with a known truth.

Every choice is made and kept: alleles, what is eroded, palindromic and inserted nucleotides. V keeps its
conserved codon, and J its own, so that each molecule has a junction. Only `random.Random` is drawn from,
whose numbers for a seed are the same in every version of Python.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from support.oracles import palindrome_after, palindrome_before

from plait.alphabets import translate
from plait.vdj.germline.germline_set import Allele, GermlineSet

__all__ = [
    "JoiningLengths",
    "Molecule",
    "Rearrangement",
    "chimera",
    "random_molecule",
    "random_sequence",
    "simulate_productive",
    "simulate_rearrangement",
]

#: Shares of A, C, G and T among inserted nucleotides, which terminal transferase makes rich in G and C.
_INSERTED_SHARES = (0.21, 0.28, 0.29, 0.22)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoiningLengths:
    """Means of the lengths that are drawn, each from a geometric distribution.

    Attributes
    ----------
    v_trim, d_trim, j_trim
        Eroded nucleotides of V, of each end of D, and of J.
    inserted
        N nucleotides of each junction, where there is a D.
    inserted_without_d
        N nucleotides where there is none.
    palindrome_share
        Share of the ends that are not eroded which have palindromic nucleotides.
    pi
        Most palindromic nucleotides of an end.
    longest
        Most N nucleotides of a junction.
    """

    v_trim: float = 3.5
    d_trim: float = 3.5
    j_trim: float = 4.5
    inserted: float = 3.2
    inserted_without_d: float = 5.0
    palindrome_share: float = 0.35
    pi: int = 4
    longest: int = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Molecule:
    """A double-stranded molecule as its coding strand, and what of it is known. Places are half-open.

    Attributes
    ----------
    kind
        ``"receptor"``, ``"chimera"``, or what else it is.
    sequence
        The coding strand.
    locus
        ``"TRB"`` and so on; empty if it is no receptor.
    v_call, d_call, j_call
        Names of the alleles; empty if there is none.
    v_place, j_place
        Where its germline nucleotides of V and of J lie.
    junction_place
        Where its junction lies, conserved codons included; None without one.
    """

    kind: str
    sequence: str
    locus: str = ""
    v_call: str = ""
    d_call: str = ""
    j_call: str = ""
    v_place: tuple[int, int] = (0, 0)
    j_place: tuple[int, int] = (0, 0)
    junction_place: tuple[int, int] | None = None

    @property
    def junction(self) -> str:
        """The junction, or an empty string."""
        return "" if self.junction_place is None else self.sequence[slice(*self.junction_place)]


@dataclass(frozen=True, kw_only=True)
class Rearrangement:
    """All choices that make a receptor gene.

    Attributes
    ----------
    locus
        ``"TRB"`` and so on.
    v, d, j
        The alleles; `d` is None where the locus has none or nothing of it is left.
    v_trim, j_trim
        Eroded nucleotides.
    d_start, d_end
        The part of D that is left.
    p3v, p5d, p3d, p5j
        Palindromic nucleotides.
    n1, n2
        Inserted nucleotides; `n2` is empty without a D.
    head, tail
        What stands before V, and behind J.
    """

    locus: str
    v: Allele
    d: Allele | None
    j: Allele
    v_trim: int = 0
    j_trim: int = 0
    d_start: int = 0
    d_end: int = 0
    p3v: str = ""
    p5d: str = ""
    p3d: str = ""
    p5j: str = ""
    n1: str = ""
    n2: str = ""
    head: str = ""
    tail: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """Head, V, P, N1, P, D, P, N2, P, J and tail, which make the sequence."""
        v = self.v.sequence[: len(self.v.sequence) - self.v_trim]
        d = "" if self.d is None else self.d.sequence[self.d_start : self.d_end]
        j = self.j.sequence[self.j_trim :]
        joined = (self.p3v, self.n1, self.p5d, d, self.p3d, self.n2, self.p5j)
        return (self.head, v, *joined, j, self.tail)

    @cached_property
    def molecule(self) -> Molecule:
        """The molecule that the choices make."""
        parts = self.parts
        v_end = len(parts[0]) + len(parts[1])
        j_start = sum(map(len, parts[:9]))
        cys, phe = _anchor(self.v), _anchor(self.j)
        return Molecule(
            kind="receptor",
            sequence="".join(parts),
            locus=self.locus,
            v_call=self.v.name,
            d_call="" if self.d is None else self.d.name,
            j_call=self.j.name,
            v_place=(len(self.head), v_end),
            j_place=(j_start, j_start + len(parts[9])),
            junction_place=(len(self.head) + cys, j_start + phe + 3 - self.j_trim),
        )

    @property
    def productive(self) -> bool:
        """Whether the junction is in frame and has no stop codon."""
        junction = self.molecule.junction
        return len(junction) % 3 == 0 and "*" not in translate(junction)


def _anchor(allele: Allele) -> int:
    if allele.anchor is None:
        raise ValueError(f"{allele.name} has no known anchor")
    return allele.anchor


@dataclass(slots=True)
class _Lengths:
    """Draws lengths."""

    rng: random.Random
    means: JoiningLengths

    def geometric(self, mean: float, most: int) -> int:
        """A length with a mean; one that is too long is drawn again, evenly."""
        if mean <= 0 or most <= 0:
            return 0
        drawn = int(math.log(1.0 - self.rng.random()) / math.log(mean / (1.0 + mean)))
        return drawn if drawn <= most else int(self.rng.random() * (most + 1))

    def palindrome(self, eroded: int) -> int:
        """Length of the palindrome of an end that lost so many nucleotides."""
        if eroded or self.means.pi < 1 or self.rng.random() >= self.means.palindrome_share:
            return 0
        return 1 + self.geometric(0.7, self.means.pi - 1)

    def inserted(self, mean: float) -> str:
        """N nucleotides."""
        return random_sequence(self.rng, self.geometric(mean, self.means.longest), _INSERTED_SHARES)


def random_sequence(
    rng: random.Random, length: int, shares: Sequence[float] = (0.25, 0.25, 0.25, 0.25)
) -> str:
    """Independent nucleotides.

    Parameters
    ----------
    rng
        Source of randomness.
    length
        How many.
    shares
        Shares of A, C, G and T.
    """
    return "".join(rng.choices("ACGT", shares, k=length))


def simulate_rearrangement(
    germline: GermlineSet,
    rng: random.Random,
    *,
    v: Allele | None = None,
    j: Allele | None = None,
    head: str = "",
    tail: str = "",
    lengths: JoiningLengths | None = None,
) -> Rearrangement:
    """Join alleles: every gene as likely as any other, and so every allele of it; D as the set's rules allow.

    Parameters
    ----------
    germline
        The alleles. Those of V and J without an anchor are not used.
    rng
        Source of randomness.
    v, j
        An allele to take.
    head, tail
        What stands before V, and behind J.
    lengths
        Means of the lengths.
    """
    means = lengths or JoiningLengths()
    draw = _Lengths(rng, means)
    v = v or _any_allele(germline.v, rng)
    j = j or _any_allele(germline.j, rng)
    allowed = [d for d, may in zip(germline.d, germline.allowed_d(j), strict=True) if may]
    d = rng.choice(allowed) if allowed else None
    v_trim = draw.geometric(means.v_trim, len(v.sequence) - _anchor(v) - 3)
    j_trim = draw.geometric(means.j_trim, _anchor(j))
    p3v = palindrome_after(v.sequence, draw.palindrome(v_trim))
    p5j = palindrome_before(j.sequence, draw.palindrome(j_trim))
    n1 = draw.inserted(means.inserted if d else means.inserted_without_d)
    d_start = d_end = 0
    p5d = p3d = n2 = ""
    if d is not None:
        size = len(d.sequence)
        d_start = draw.geometric(means.d_trim, size)
        d_trim = draw.geometric(means.d_trim, size)
        d_end = size - d_trim
        n2 = draw.inserted(means.inserted)
        if d_start < d_end:
            p5d = palindrome_before(d.sequence, draw.palindrome(d_start))
            p3d = palindrome_after(d.sequence, draw.palindrome(d_trim))
        else:  # nothing is left of it: two stretches of N nucleotides cannot be told from one
            d, d_start, d_end, n1, n2 = None, 0, 0, n1 + n2, ""
    return Rearrangement(
        locus=germline.locus,
        v=v,
        d=d,
        j=j,
        v_trim=v_trim,
        j_trim=j_trim,
        d_start=d_start,
        d_end=d_end,
        p3v=p3v,
        p5d=p5d,
        p3d=p3d,
        p5j=p5j,
        n1=n1,
        n2=n2,
        head=head,
        tail=tail,
    )


def simulate_productive(
    germline: GermlineSet,
    rng: random.Random,
    *,
    head: str = "",
    tail: str = "",
    share: float = 1.0,
    lengths: JoiningLengths | None = None,
) -> Rearrangement:
    """A rearrangement as `simulate_rearrangement` joins them, productive in a share of all cases.

    Parameters
    ----------
    germline
        The alleles.
    rng
        Source of randomness.
    head, tail
        What stands before V, and behind J.
    share
        How often it must be productive; in the other cases it need not be.
    lengths
        Means of the lengths.
    """
    must = rng.random() < share
    while True:
        made = simulate_rearrangement(germline, rng, head=head, tail=tail, lengths=lengths)
        if made.productive or not must:
            return made


def _any_allele(alleles: Sequence[Allele], rng: random.Random) -> Allele:
    genes: dict[str, list[Allele]] = {}
    for allele in alleles:
        if allele.anchor is not None:
            genes.setdefault(allele.gene, []).append(allele)
    return rng.choice(rng.choice(list(genes.values())))


def chimera(first: Molecule, second: Molecule, *, first_end: int, second_start: int) -> Molecule:
    """The beginning of one molecule joined to the end of another, as when a polymerase changes its template.

    V is that of the first, J that of the second, where anything of them is in it.

    Parameters
    ----------
    first, second
        The molecules.
    first_end
        How much of the first is taken.
    second_start
        Where the second begins.
    """
    shift = first_end - second_start
    v_place = (first.v_place[0], min(first.v_place[1], first_end))
    j_place = (max(second.j_place[0] + shift, first_end), second.j_place[1] + shift)
    has_v, has_j = v_place[0] < v_place[1], j_place[0] < j_place[1]
    return Molecule(
        kind="chimera",
        sequence=first.sequence[:first_end] + second.sequence[second_start:],
        locus=first.locus,
        v_call=first.v_call if has_v else "",
        j_call=second.j_call if has_j else "",
        v_place=v_place if has_v else (0, 0),
        j_place=j_place if has_j else (0, 0),
        junction_place=_joined_junction(first, second, first_end, second_start),
    )


def _joined_junction(
    first: Molecule, second: Molecule, first_end: int, second_start: int
) -> tuple[int, int] | None:
    """The junction of a chimera: of one of the two, or between the anchors of both."""
    shift = first_end - second_start
    if first.junction_place and first.junction_place[1] <= first_end:
        return first.junction_place
    if second.junction_place is None:
        return None
    if second.junction_place[0] >= second_start:
        return second.junction_place[0] + shift, second.junction_place[1] + shift
    if first.junction_place and first.junction_place[0] + 3 <= first_end:
        end = second.junction_place[1] + shift
        return (first.junction_place[0], end) if end - 3 >= first_end else None
    return None


def random_molecule(rng: random.Random, length: int, *, kind: str = "random", gc: float = 0.5) -> Molecule:
    """A molecule of independent nucleotides.

    Parameters
    ----------
    rng
        Source of randomness.
    length
        Its nucleotides.
    kind
        What it is called.
    gc
        Share of G and C.
    """
    at = (1.0 - gc) / 2.0
    return Molecule(kind=kind, sequence=random_sequence(rng, length, (at, gc / 2, gc / 2, at)))
