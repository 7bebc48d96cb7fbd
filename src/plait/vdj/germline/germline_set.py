"""A germline set: the V, D and J alleles of one locus of one species, with its joining rules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from plait.vdj.germline.allele import SEGMENTS, Allele, NameIndex, Segment

Chain = Literal["vj", "vdj", "vddj"]


def gene_has_prefix(allele: Allele, prefix: str) -> bool:
    """Whether an allele belongs to the gene, allele or cluster of genes named by a prefix.

    ``TRBJ2`` takes in ``TRBJ2-7`` and not ``TRBJ20``.
    """
    if allele.name == prefix or allele.gene == prefix:
        return True
    if not allele.gene.startswith(prefix):
        return False
    return not (prefix[-1:].isdigit() and allele.gene[len(prefix)].isdigit())


@dataclass(frozen=True, kw_only=True)
class GermlineSet:
    """The alleles of one locus, in a fixed order, with their joining rules.

    Attributes
    ----------
    name
        Name of the set, for example ``"mouse_trb"``.
    species
        Binomial species name, or empty if unknown.
    locus
        ``"TRB"`` and so on, or empty if unknown.
    version
        Version of the content, as its source states it.
    source
        Where the content comes from.
    v, d, j
        The alleles. Their positions in these tuples are the indices that `resolve` returns.
    d_j_order
        For a D gene, the J genes (or prefixes of their names) that it may join. A D gene that is missing here
        joins any J.
    d_d_order
        Pairs (5' D gene, 3' D gene) that may stand in one chain, or None if any pair may.
    notes
        What the reader had to decide or leave out, one sentence each. No part of the digest.
    """

    name: str
    species: str
    locus: str
    version: str
    source: str
    v: tuple[Allele, ...]
    d: tuple[Allele, ...]
    j: tuple[Allele, ...]
    d_j_order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    d_d_order: tuple[tuple[str, str], ...] | None = None
    notes: tuple[str, ...] = ()

    def alleles(self, segment: Segment | None = None) -> tuple[Allele, ...]:
        """The alleles of one segment, or of all in the order V, D, J."""
        if segment is None:
            return self.v + self.d + self.j
        return {"V": self.v, "D": self.d, "J": self.j}[segment]

    @property
    def chain(self) -> Chain:
        """What is joined: ``"vj"`` without D alleles, ``"vddj"`` in TRD, else ``"vdj"``."""
        if not self.d:
            return "vj"
        return "vddj" if self.locus == "TRD" else "vdj"

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything that can change a result, as 64 hexadecimal digits.

        It covers species, locus, the alleles in order and the joining rules; not the name, version, source
        and notes of the set, nor how an anchor was found.
        """
        alleles = [
            [a.segment, a.name, a.gene, a.sequence, a.functionality, a.anchor, sorted(a.aliases)]
            for a in self.alleles()
        ]
        d_j_order = {gene: sorted(prefixes) for gene, prefixes in self.d_j_order.items()}
        d_d_order = None if self.d_d_order is None else sorted(self.d_d_order)
        content = [self.species, self.locus, alleles, d_j_order, d_d_order]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def allowed_d(self, j: Allele) -> tuple[bool, ...]:
        """Which D alleles may join a J allele, in the order of `d`."""
        return tuple(
            d.gene not in self.d_j_order or any(gene_has_prefix(j, p) for p in self.d_j_order[d.gene])
            for d in self.d
        )

    def allowed_d_pair(self, first: Allele, second: Allele) -> bool:
        """Whether two D alleles may stand in one chain.

        Parameters
        ----------
        first
            The 5' one.
        second
            The 3' one.
        """
        return self.d_d_order is None or (first.gene, second.gene) in self.d_d_order

    def resolve(self, call: str, segment: Segment) -> int | None:
        """Index of the allele that a call means, or None.

        Parameters
        ----------
        call
            An allele name, or a gene name, which means the gene's allele with the lowest number. Case and
            spaces do not matter. See `plait.vdj.germline.allele` for the styles understood. A list of several
            names gives None: use `resolve_all`.
        segment
            ``"V"``, ``"D"`` or ``"J"``.
        """
        found = self.resolve_all(call, segment)
        return found[0] if len(found) == 1 else None

    def resolve_all(self, call: str, segment: Segment) -> tuple[int | None, ...]:
        """Index of every name in a call, None for a name that the set does not have.

        Parameters
        ----------
        call
            Names as `resolve` understands them, with commas or other separators between.
        segment
            ``"V"``, ``"D"`` or ``"J"``.
        """
        return self._names[segment].resolve_all(call)

    @cached_property
    def _names(self) -> dict[Segment, NameIndex]:
        return {segment: NameIndex(self.alleles(segment)) for segment in SEGMENTS}

    def __hash__(self) -> int:
        return hash(self.digest)
