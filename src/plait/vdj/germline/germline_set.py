"""A germline set: the V, D and J alleles of one locus of one species, with its joining rules.

All readers end with `assemble`, which checks the alleles.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any, Literal

from plait.errors import FormatError
from plait.vdj.germline.allele import (
    SEGMENTS,
    Allele,
    NameIndex,
    Segment,
    bad_symbols,
    locus_of,
    species_label,
)

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


_VALIDATE = "run 'plait germline validate' to see every problem of the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An allele and where it stands: 1-based `line` where the file has lines, else 0-based `record`."""

    allele: Allele
    path: str
    line: int | None = None
    record: int | None = None

    def error(self, *, found: str, expected: str, hint: str | None = None) -> FormatError:
        """A `FormatError` at this allele."""
        where: dict[str, Any] = {"line": self.line, "record": self.record}
        return FormatError(
            self.path, **where, found=f"{found} in {self.allele.name[:80]}", expected=expected, hint=hint
        )


def _check(entries: Sequence[Entry]) -> None:
    seen: set[str] = set()
    for entry in entries:
        allele = entry.allele
        if not allele.sequence:
            raise entry.error(found="an empty sequence", expected="IUPAC nucleotide codes", hint=_VALIDATE)
        bad = bad_symbols(allele.sequence)
        if bad:
            raise entry.error(
                found=f"symbol(s) {bad[:20]!r}", expected="IUPAC nucleotide codes", hint=_VALIDATE
            )
        if allele.name in seen:
            raise entry.error(found="a second sequence", expected="one sequence an allele", hint=_VALIDATE)
        seen.add(allele.name)


def inferred_locus(alleles: Sequence[Allele]) -> str:
    """The locus that the names state; J genes decide, as V genes of TRA and TRD share names."""
    for segment in "JDV":
        loci = {locus_of(a.name) for a in alleles if a.segment == segment} - {None}
        if len(loci) == 1:
            return str(loci.pop())
    return ""


@cache
def _rules() -> tuple[dict[str, Any], ...]:
    text = resources.files("plait.vdj.germline").joinpath("data/order_rules.json").read_text("utf-8")
    return tuple(json.loads(text)["rules"])


def default_d_j_order(
    locus: str, species: str, d_genes: Sequence[str]
) -> tuple[dict[str, tuple[str, ...]], str | None]:
    """The known D-J order of a locus, for files that state none, and a sentence on what was applied.

    As in `GermlineSet.d_j_order`; empty, and None, if no rule is known. `species` is binomial; empty if
    unknown, which is taken as one of those that have the rule.
    """
    for rule in _rules():
        if rule["locus"] == locus and (not species or species in rule["species"]):
            order = {d: tuple(js) for d, js in rule["d_j_order"].items() if d in d_genes}
            if order:
                told = "; ".join(f"{d} joins only {', '.join(js)}" for d, js in order.items())
                return order, f"the file states no D-J order; the one known for {locus} was applied: {told}"
    return {}, None


def assemble(
    entries: Sequence[Entry],
    *,
    name: str,
    species: str,
    locus: str,
    version: str,
    source: str,
    strict: bool,
    d_j_order: Mapping[str, tuple[str, ...]] | None = None,
    d_d_order: tuple[tuple[str, str], ...] | None = None,
    notes: Sequence[str] = (),
) -> GermlineSet:
    """Make a set of alleles that were read, in their order.

    A common species name is turned into the binomial, an empty locus is inferred, and a `d_j_order` of None
    means to apply the known rule of the locus. With `strict`, empty sequences, symbols that are no IUPAC
    codes and repeated names raise a `FormatError`.
    """
    if strict:
        _check(entries)
    alleles = [entry.allele for entry in entries]
    known_locus = locus or inferred_locus(alleles)
    known_species = species_label(species)
    told = list(notes)
    if d_j_order is None:
        d_genes = [a.gene for a in alleles if a.segment == "D"]
        d_j_order, note = default_d_j_order(known_locus, known_species, d_genes)
        told += [note] if note else []
    return GermlineSet(
        name=name,
        species=known_species,
        locus=known_locus,
        version=version,
        source=source,
        d_j_order=dict(d_j_order),
        d_d_order=d_d_order,
        notes=tuple(told),
        v=tuple(a for a in alleles if a.segment == "V"),
        d=tuple(a for a in alleles if a.segment == "D"),
        j=tuple(a for a in alleles if a.segment == "J"),
    )
