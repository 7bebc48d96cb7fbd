"""Where the conserved codons are: Cys (IMGT 104) in V genes, Phe or Trp (IMGT 118) in J genes.

An IMGT-gapped V sequence tells (columns 310 to 312). In an ungapped V sequence, every Cys codon near the 3'
end is scored by what precedes it: framework 3 ends in ``D-S-A-x-Y-[YFL]-C`` in nearly all V genes of T- and
B-cell receptors, so a second Cys inside the CDR3 end (mouse TRBV1, ``L-Y-C-T-C-S-A``) does not mislead. A J
gene shows the motif ``[FW]-G-x-G``, 31 or 34 bases before its end, in the frame that is open to the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from plait.vdj.germline.codons import translate
from plait.vdj.germline.records import clean_sequence

__all__ = [
    "VCandidate",
    "certain_anchor",
    "find_j_anchor",
    "find_v_anchor",
    "gapped_v_anchor",
    "v_candidates",
]

# 0-based first column of the conserved Cys in an IMGT-gapped V sequence.
_GAPPED_COLUMN = 309
# How many codons at the 3' end of a V gene are searched; the longest CDR3 end known has 14.
_V_WINDOW = 20

# Score of the amino acid at a distance before the Cys: IMGT 98, 100, 102 and 103.
_V_CONTEXT = (
    (6, {"D": 3, "N": 1, "Q": 1, "E": 1, "H": 1}),
    (4, {"A": 2, "G": 1, "S": 1}),
    (2, {"Y": 4, "F": 3, "L": 1, "H": 1}),
    (1, {"Y": 2, "F": 2, "L": 2, "H": 1, "I": 1, "R": 1}),
)
# Least score in the frame of the first base: mouse TRBV1 has 4, all other genes 6 and more.
_LEAST = 4
# Least score in the other frames, where only a truncated or damaged gene has its Cys, and how far it must be
# ahead of the frame of the first base. In intact genes it never is.
_LEAST_ELSEWHERE = 8
_LEAD = 3

# Distances from the anchor to the end of the J gene that are believed for the weaker motifs.
_J_TAIL = range(28, 38)
_J_MOTIF = re.compile("[FW]G.G")
_J_WEAKER = (re.compile("[FW][GAS].[GA]"), re.compile("[^*]G.G"), re.compile("[FW]G.."))


class VCandidate(NamedTuple):
    """A Cys codon near the 3' end of a V sequence.

    Attributes
    ----------
    score
        How well the amino acids before it fit the end of framework 3, 0 to 11.
    anchor
        0-based position of its first base.
    """

    score: int
    anchor: int


def v_candidates(sequence: str, frame: int = 0) -> tuple[VCandidate, ...]:
    """Cys codons near the end of an ungapped V sequence, best first, among equals the one nearest the end."""
    protein = translate(sequence, frame)
    found = []
    for k in range(max(0, len(protein) - _V_WINDOW), len(protein)):
        if protein[k] == "C":
            score = sum(points.get(protein[k - back], 0) for back, points in _V_CONTEXT if k >= back)
            found.append(VCandidate(score, 3 * k + frame))
    return tuple(sorted(found, reverse=True))


def find_v_anchor(sequence: str) -> int | None:
    """Position of the conserved Cys codon of an ungapped V sequence.

    In the frame of the first base, unless another frame has a much more convincing one.

    Parameters
    ----------
    sequence
        Upper-case IUPAC codes without gaps.

    Returns
    -------
    int or None
        0-based position of the first base of the codon.
    """
    best = [next(iter(v_candidates(sequence, frame)), VCandidate(0, 0)) for frame in range(3)]
    here, other = best[0], max(best[1:])
    if other.score >= max(_LEAST_ELSEWHERE, here.score + _LEAD):
        return other.anchor
    return here.anchor if here.score >= _LEAST else None


def gapped_v_anchor(gapped: str) -> int | None:
    """Position, in the ungapped sequence, of columns 310 to 312 of an IMGT-gapped V sequence.

    Parameters
    ----------
    gapped
        IMGT-gapped sequence; gaps are ``.`` or ``-``.

    Returns
    -------
    int or None
        0-based position, or None if the sequence has no gaps, or gaps within the columns, or ends before
        them.
    """
    columns = "".join(gapped.split())
    codon = clean_sequence(columns[_GAPPED_COLUMN : _GAPPED_COLUMN + 3])
    if len(codon) < 3 or not ("." in columns or "-" in columns):
        return None
    return len(clean_sequence(columns[:_GAPPED_COLUMN]))


def _first(matches: Iterator[int], sequence: str) -> int | None:
    """The first anchor with no stop codon behind it, else the first."""
    anchors = list(matches)
    return next((a for a in anchors if "*" not in translate(sequence, a)), next(iter(anchors), None))


def find_j_anchor(sequence: str) -> int | None:
    """Position of the conserved Phe or Trp codon of a J sequence.

    Preferred is ``[FW]-G-x-G`` in the frame in which the J region ends with the first base of a codon; then
    weaker motifs in that frame, at a credible distance from the end; then the full motif in any frame.

    Parameters
    ----------
    sequence
        Upper-case IUPAC codes without gaps.

    Returns
    -------
    int or None
        0-based position of the first base of the codon.
    """
    size = len(sequence)
    in_frame = [a for a in range(0, size - 11) if (size - a) % 3 == 1]
    codons = {a: translate(sequence[a : a + 12]) for a in range(0, size - 11)}
    found = _first((a for a in in_frame if _J_MOTIF.match(codons[a])), sequence)
    for weaker in _J_WEAKER:
        if found is None:
            credible = (a for a in in_frame if size - a in _J_TAIL and weaker.match(codons[a]))
            found = next((a for a in credible if "*" not in translate(sequence, a)), None)
    if found is None:
        found = _first((a for a in codons if _J_MOTIF.match(codons[a])), sequence)
    return found


def certain_anchor(segment: str, sequence: str) -> int | None:
    """The conserved codon of a V or J sequence if there is exactly one convincing place for it, else None.

    Parameters
    ----------
    segment
        ``"V"`` or ``"J"``.
    sequence
        Upper-case IUPAC codes without gaps.
    """
    if segment == "V":
        found = [
            one.anchor
            for frame in range(3)
            for one in v_candidates(sequence, frame)
            if one.score >= _LEAST_ELSEWHERE and "*" not in translate(sequence[: one.anchor], frame)
        ]
    else:
        size = len(sequence)
        found = [
            a
            for a in range(size - 11)
            if (size - a) % 3 == 1 and size - a in _J_TAIL
            if _J_MOTIF.match(translate(sequence[a : a + 12])) and "*" not in translate(sequence, a)
        ]
    return found[0] if len(found) == 1 else None
