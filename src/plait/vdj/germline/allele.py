"""One germline allele, and what a V, D or J call means: names of alleles and genes as programs write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, get_args

from plait.alphabets import IUPAC_MASK

Segment = Literal["V", "D", "J"]
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
        ``"V"``, ``"D"`` or ``"J"``.
    sequence
        Coding sequence without gaps, upper-case IUPAC codes, U written as T.
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
    """

    name: str
    gene: str
    segment: Segment
    sequence: str
    functionality: Functionality | None = None
    anchor: int | None = None
    anchor_source: AnchorSource = "none"
    aliases: tuple[str, ...] = ()

    @property
    def cdr3_end(self) -> str | None:
        """The part that can lie inside the junction, conserved codon included; None without an anchor."""
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
