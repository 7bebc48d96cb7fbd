"""What every reader does at the end: check the alleles and make them a `GermlineSet`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from plait.errors import FormatError
from plait.vdj.germline.allele import Allele, bad_symbols, locus_of, species_label
from plait.vdj.germline.germline_set import GermlineSet

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
            self.path, **where, found=f"{found} in {self.allele.name}", expected=expected, hint=hint
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
