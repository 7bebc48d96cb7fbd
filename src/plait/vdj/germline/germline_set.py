"""A germline set: the V, D, J and C alleles of one locus of one species, with its joining rules.

Also what a V, D or J call means: names of alleles and genes as programs write them. All readers end with
`assemble`, which checks the alleles.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from plait.alphabets import IUPAC_MASK
from plait.errors import FormatError

Segment = Literal["V", "D", "J", "C"]
Functionality = Literal["F", "ORF", "P"]
AnchorSource = Literal["given", "gapped", "motif", "override", "none"]

SEGMENTS: tuple[Segment, ...] = get_args(Segment)
FUNCTIONALITIES: tuple[Functionality, ...] = get_args(Functionality)
LOCI = ("IGH", "IGK", "IGL", "TRA", "TRB", "TRG", "TRD")

#: NCBI Taxonomy identifiers of species names.
TAXA: Mapping[str, str] = MappingProxyType(
    {
        "Homo sapiens": "NCBITAXON:9606",
        "Macaca mulatta": "NCBITAXON:9544",
        "Mus musculus": "NCBITAXON:10090",
        "Rattus norvegicus": "NCBITAXON:10116",
    }
)
_COMMON_NAMES = {
    "human": "Homo sapiens",
    "rhesus": "Macaca mulatta",
    "mouse": "Mus musculus",
    "rat": "Rattus norvegicus",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Allele:
    """One germline allele.

    Attributes
    ----------
    name
        Allele name, for example ``"TRBV13-1*01"``.
    gene
        Gene name, for example ``"TRBV13-1"``.
    segment
        ``"V"``, ``"D"``, ``"J"`` or ``"C"``.
    sequence
        Coding sequence without gaps, upper-case IUPAC codes, U written as T; of a C, from its first base on.
    functionality
        ``"F"``, ``"ORF"``, ``"P"``, or None if the source does not say.
    anchor
        0-based position of the first base of the conserved codon: Cys in V (IMGT 104), Phe or Trp in J
        (IMGT 118). None in a D, and where it is not known.
    anchor_source
        ``"given"`` by the file, read off the ``"gapped"`` IMGT alignment, found by ``"motif"``, set by an
        ``"override"``, or ``"none"``.
    aliases
        Other names of the allele.
    regions
        Of a V, 0-based positions in `sequence` at which CDR1, FWR2, CDR2 and FWR3 begin, as IMGT delineates
        them; None if they are not known. FWR1 lies before, and FWR3 ends with the codon of the anchor.
    source
        Where the sequence comes from, such as an accession number, or empty.
    """

    name: str
    gene: str
    segment: Segment
    sequence: str
    functionality: Functionality | None = None
    anchor: int | None = None
    anchor_source: AnchorSource = "none"
    aliases: tuple[str, ...] = ()
    regions: tuple[int, int, int, int] | None = None
    source: str = ""

    @property
    def cdr3_end(self) -> str | None:
        """The part that can lie inside the junction, conserved codon included; None if not known, or a C."""
        if self.segment == "D":
            return self.sequence
        if self.anchor is None:
            return None
        return self.sequence[self.anchor :] if self.segment == "V" else self.sequence[: self.anchor + 3]


def gene_of(allele_name: str) -> str:
    """The gene of an allele name.

    >>> gene_of("TRBV13-1*01")
    'TRBV13-1'
    """
    return allele_name.partition("*")[0]


def locus_of(name: str) -> str | None:
    """The locus at the start of a gene or allele name, or None.

    >>> locus_of("TRBJ1-1*01")
    'TRB'
    """
    locus = name[:3].upper()
    return locus if locus in LOCI else None


def clean_sequence(sequence: str) -> str:
    """A sequence in upper case, without white space and alignment gaps, U written as T.

    >>> clean_sequence("tgu...gcc")
    'TGTGCC'
    """
    kept = "".join(sequence.split()).upper()
    return kept.replace(".", "").replace("-", "").replace("U", "T")


def bad_symbols(sequence: str) -> str:
    """The symbols of a sequence that are no IUPAC nucleotide codes, each once, in order."""
    return "".join(s for s in dict.fromkeys(sequence) if ord(s) > 127 or not IUPAC_MASK[ord(s)])


def parse_functionality(text: str) -> Functionality | None:
    """Functionality as IMGT writes it, brackets included; None for anything else.

    >>> parse_functionality("(F)"), parse_functionality("[ORF]"), parse_functionality("?")
    ('F', 'ORF', None)
    """
    bare = text.strip().strip("()[]").upper()
    return next((known for known in FUNCTIONALITIES if known == bare), None)


def species_label(name: str) -> str:
    """The binomial of a species given by a common name; any other text unchanged.

    >>> species_label("mouse")
    'Mus musculus'
    """
    return _COMMON_NAMES.get(name.strip().lower(), name.strip())


_LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
# A slash belongs to a name in TRAV14/DV4 and in an orphon such as TRBV20/OR9-2.
_JOINT = re.compile(r"/(?=DV|OR)|-(?=DV)")
_SCORE = re.compile(r"\([^)]*\)\s*$")
_SEPARATOR = re.compile(r"[,;|]|(?<=\s)(?:or|and)(?=\s)", re.IGNORECASE)
_START = re.compile(r"(?:TC?R|IG)[ABGDHKL][VDJ]", re.IGNORECASE)
_GENE = re.compile(_START.pattern + r"[^\s,;|()]*", re.IGNORECASE)
_NUMBERS = re.compile(r"(TC?R[ABGD][VDJ])([^/*\s]+)((?:/\d[^/*\s]*)+)(\*\S*)?", re.IGNORECASE)
_SHARED_GENE = re.compile(r"(TRA)(V[^/]*)/D(V[^/]*)", re.IGNORECASE)


def canonical(name: str) -> str:
    """The form in which names are compared.

    >>> canonical(" trav14/DV4*01 "), canonical("TRBV05-01")
    ('TRAV14DV4*1', 'TRBV5-1')
    """
    return _LEADING_ZEROS.sub("", _JOINT.sub("", "".join(name.upper().split())))


def split_call(call: str) -> tuple[str, ...]:
    """The single names in a call, one or several.

    >>> split_call("TRBV12-3*00(346), TRBV12-4"), split_call("TCRBV06-02/06-03*01")
    (('TRBV12-3*00', 'TRBV12-4'), ('TCRBV06-02*01', 'TCRBV06-03*01'))
    >>> split_call("TRBV13-1 or TRBV13-2/TRBV13-3"), split_call("TRAV14/DV4")
    (('TRBV13-1', 'TRBV13-2', 'TRBV13-3'), ('TRAV14/DV4',))
    """
    parts: list[str] = []
    for name in (name for element in _SEPARATOR.split(call) for name in _embedded(element)):
        several = _NUMBERS.fullmatch(name)
        if several:
            gene, first, others, allele = several.groups()
            parts += [f"{gene}{number}{allele or ''}" for number in (first, *others.strip("/").split("/"))]
        elif name:
            parts.append(name)
    return tuple(parts)


def _embedded(text: str) -> list[str]:
    """The gene names in a text if there are several; else the text, without a score."""
    starts = [found.start() for found in _START.finditer(text)]
    if len(starts) < 2:
        return [_SCORE.sub("", text).strip()]
    pieces = (text[start:end] for start, end in pairwise([*starts, len(text)]))
    return [re.split(r"[\s()]", piece, maxsplit=1)[0].rstrip("/-_+&:~.") for piece in pieces]


def _readings(name: str) -> Iterator[str]:
    """Canonical names that a single name may stand for, the most literal first."""
    key = canonical(name)
    yield key
    if key.endswith("*0"):
        yield key[:-2]
    if key.startswith("TCR") or _LEADING_ZEROS.search(gene_of(name)):
        imgt = re.sub("^TCR", "TR", key).removesuffix("*0")
        yield imgt
        gene, star, allele = imgt.partition("*")
        if gene.endswith("-1"):
            yield gene[:-2] + star + allele
    embedded = _GENE.search(name)
    if embedded and embedded.group() != name:
        yield from _readings(embedded.group())


def _allele_number(allele: Allele) -> tuple[int, str]:
    number = re.match(r"\d+", allele.name.partition("*")[2])
    return (int(number.group()) if number else 1 << 30, allele.name.partition("*")[2])


class NameIndex:
    """Names of the alleles of one segment; an index that is returned is a position in `alleles`."""

    def __init__(self, alleles: Sequence[Allele]) -> None:
        self._index: dict[str, int] = {}
        # Earlier steps win: a name that is somebody's own is never taken for an alias or a shorthand.
        for i, allele in enumerate(alleles):
            self._index.setdefault(canonical(allele.name), i)
        for i, allele in enumerate(alleles):
            for alias in allele.aliases:
                self._index.setdefault(canonical(alias), i)
        by_number = sorted(range(len(alleles)), key=lambda i: (*_allele_number(alleles[i]), i))
        for i in by_number:
            self._index.setdefault(canonical(alleles[i].gene), i)
        self._add_halves(alleles, by_number)

    def _add_halves(self, alleles: Sequence[Allele], by_number: Sequence[int]) -> None:
        genes: dict[str, set[str]] = {}
        entries: list[tuple[str, str, int]] = []
        for i in by_number:
            shared = _SHARED_GENE.fullmatch(alleles[i].gene)
            if shared:
                number = alleles[i].name[len(gene_of(alleles[i].name)) :]
                for half in (shared[1] + shared[2], "TRD" + shared[3]):
                    genes.setdefault(half, set()).add(alleles[i].gene)
                    entries += [(half, half + number, i), (half, half, i)]
        for half, name, i in entries:
            if len(genes[half]) == 1:
                self._index.setdefault(canonical(name), i)

    def resolve_all(self, call: str) -> tuple[int | None, ...]:
        """Index of the allele of every name in a call, None for an unknown name."""
        own = self._index.get(canonical(call))
        return (own,) if own is not None else tuple(self._resolve(name) for name in split_call(call))

    def _resolve(self, name: str) -> int | None:
        return next((self._index[key] for key in _readings(name) if key in self._index), None)


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
    v, d, j, c
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
    v: tuple[Allele, ...] = field(repr=False)
    d: tuple[Allele, ...] = field(repr=False)
    j: tuple[Allele, ...] = field(repr=False)
    d_j_order: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    d_d_order: tuple[tuple[str, str], ...] | None = None
    notes: tuple[str, ...] = field(default=(), repr=False)
    c: tuple[Allele, ...] = field(default=(), repr=False)

    def alleles(self, segment: Segment | None = None) -> tuple[Allele, ...]:
        """The alleles of one segment, or of all in the order V, D, J, C."""
        if segment is None:
            return self.v + self.d + self.j + self.c
        return {"V": self.v, "D": self.d, "J": self.j, "C": self.c}[segment]

    @property
    def chain(self) -> Chain:
        """What is joined: ``"vj"`` without D alleles, ``"vddj"`` in TRD, else ``"vdj"``."""
        if not self.d:
            return "vj"
        return "vddj" if self.locus == "TRD" else "vdj"

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything that can change a result, as 64 hexadecimal digits.

        It covers species, locus, the alleles in order and the joining rules; not the name, version, sources
        and notes of the set, nor how an anchor was found.
        """
        alleles = [
            [a.segment, a.name, a.gene, a.sequence, a.functionality, a.anchor, sorted(a.aliases)]
            + ([a.regions] if a.regions else [])
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
            spaces do not matter. See `plait.vdj.germline.germline_set.split_call` for the styles understood.
            A list of several names gives None: use `resolve_all`.
        segment
            ``"V"``, ``"D"``, ``"J"`` or ``"C"``.
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
            ``"V"``, ``"D"``, ``"J"`` or ``"C"``.
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
    text = Path(__file__).with_name("data").joinpath("order_rules.json").read_text("utf-8")
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
    source: str,
    strict: bool,
    version: str = "",
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
        c=tuple(a for a in alleles if a.segment == "C"),
    )
