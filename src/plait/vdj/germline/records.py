"""One germline allele, and the small vocabularies its fields use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from plait.alphabets import IUPAC_MASK

__all__ = [
    "FUNCTIONALITIES",
    "LOCI",
    "SEGMENTS",
    "TAXA",
    "Allele",
    "AnchorSource",
    "Functionality",
    "Segment",
    "bad_symbols",
    "clean_sequence",
    "gene_of",
    "locus_of",
    "parse_functionality",
    "species_label",
]

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
