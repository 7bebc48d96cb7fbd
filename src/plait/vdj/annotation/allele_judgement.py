"""Whether a candidate is a new allele or something that looks like one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plait.vdj.annotation.allele_candidates import Candidate
from plait.vdj.annotation.allele_sites import AlleleLimits

__all__ = ["REASONS", "Judged", "enough", "judge"]

#: Why a candidate may be none, in the order in which reasons are given.
REASONS = {
    "known_allele": "where it is covered, another known allele is the same",
    "hybrid": "one end is like one allele and the other end like another, both more frequent: PCR makes such",
    "hypermutation": "too few of its clonotypes differ nowhere else, as if mutated after recombination",
    "one_strand": "all its reads are of one strand, though reads of both are there",
    "few_partners": "it occurs with too few J genes (V genes, for a J allele)",
    "one_family": "most of its clonotypes have the same J gene and length of junction, as if one clone",
    "distant": "so many changes that it is rather a gene that the germline set lacks",
}

#: A hybrid is at most this share of the rarer of its two halves.
_HYBRID_SHARE = 0.5
#: Carriers that differ nowhere else, as a share of what is expected of a new allele, are at least this.
_EXACT_SHARE = 0.5
#: With a smaller share of clonotypes that differ nowhere from an allele, all are taken to be mutated.
_FEWEST_EXACT = 0.05
#: Smaller probabilities are taken as signs of an artefact.
_UNLIKELY_STRAND = 0.001
#: Largest share of one family of junctions.
_FAMILY_SHARE = 0.5
#: More changes than both are not those of an allele.
_MOST_CHANGES = 8
_MOST_CHANGED = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A candidate and what speaks against it.

    Attributes
    ----------
    candidate
        The candidate.
    reasons
        Keys of `REASONS`; none for a new allele.
    """

    candidate: Candidate
    reasons: tuple[str, ...]


def enough(candidate: Candidate, limits: AlleleLimits) -> bool:
    """Whether a candidate has the clonotypes and the share of its gene that are asked for."""
    return candidate.clonotypes >= limits.min_clonotypes and candidate.share >= limits.min_share


def judge(
    candidates: Sequence[Candidate],
    known: NDArray[np.int64],
    *,
    exact_share: float,
    partners: int,
    limits: AlleleLimits,
) -> list[Judged]:
    """Judge candidates, the most frequent first, so that hybrids of new alleles are seen too.

    Parameters
    ----------
    candidates
        Candidates of one segment.
    known
        For every allele of the segment, the clonotypes that differ nowhere from it.
    exact_share
        Share of all clonotypes that differ nowhere from their allele, known or new.
    partners
        Genes of the other segment in the data.
    limits
        What is asked for.
    """
    order = sorted(candidates, key=lambda c: (-c.clonotypes, c.parent, c.changes))
    judged: list[Judged] = []
    if not order:
        return judged
    segment = order[0].segment
    codes = segment.layout(np.arange(len(segment.alleles)))[0]
    counts = known.astype(np.int64)
    for candidate in order:
        reasons = _origin(candidate, codes, counts, len(segment.alleles))
        reasons += _evidence(candidate, exact_share, partners, limits)
        judged.append(Judged(candidate, tuple(r for r in REASONS if r in reasons)))
        if not reasons:
            codes = np.concatenate([codes, candidate.codes[None]])
            counts = np.append(counts, candidate.carriers.exact.sum())
    return judged


def _origin(
    candidate: Candidate, codes: NDArray[np.int8], counts: NDArray[np.int64], known: int
) -> list[str]:
    """Whether other alleles explain the sequence; the first `known` of them are of the germline set."""
    at = candidate.covered
    same = codes[:, at] == candidate.codes[at]
    size = same.shape[1]
    left = np.where(same.all(axis=1), size, (~same).argmax(axis=1))
    right = np.where(same.all(axis=1), size, (~same[:, ::-1]).argmax(axis=1))
    if (left[:known] == size).any():
        return ["known_allele"]
    frequent = _HYBRID_SHARE * counts >= max(int(candidate.carriers.exact.sum()), 1)
    left, right = left[frequent], right[frequent]
    if left.size and (left[:, None] + right >= size).any():
        return ["hybrid"]
    return []


def _evidence(candidate: Candidate, exact_share: float, partners: int, limits: AlleleLimits) -> list[str]:
    carriers = candidate.carriers
    n, reasons = candidate.clonotypes, []
    if _mutated(candidate, exact_share):
        reasons.append("hypermutation")
    forward, reverse = int((carriers.forward > 0).sum()), int((carriers.reverse > 0).sum())
    share = carriers.gene_reverse / max(carriers.gene_forward + carriers.gene_reverse, 1)
    if (reverse == 0 and (1 - share) ** n < _UNLIKELY_STRAND) or (
        forward == 0 and share**n < _UNLIKELY_STRAND
    ):
        reasons.append("one_strand")
    if np.unique(carriers.partner).size < min(limits.min_partners, partners):
        reasons.append("few_partners")
    if np.unique(carriers.family, return_counts=True)[1].max(initial=0) > _FAMILY_SHARE * n:
        reasons.append("one_family")
    changes = candidate.changed.size
    if changes > _MOST_CHANGES and changes > _MOST_CHANGED * candidate.covered.sum():
        reasons.append("distant")
    return reasons


def _mutated(candidate: Candidate, exact_share: float) -> bool:
    """Whether its carriers differ elsewhere, too, more often than others do.

    Mutated clonotypes share a hot spot without being free of other changes; those with a new allele are so as
    often as any other, among the clonotypes of the gene and among all. Where nearly all clonotypes are
    mutated the two cannot be told apart.
    """
    carriers, n = candidate.carriers, candidate.clonotypes
    exact = int(carriers.exact.sum())
    of_exact = exact / max(exact + carriers.gene_exact, 1)
    return (
        exact_share < _FEWEST_EXACT
        or exact < _EXACT_SHARE * exact_share * n
        or of_exact < _EXACT_SHARE * n / max(carriers.gene, 1)
    )
