"""Build the germline sets that come with plait: seven loci of human and mouse.

The sources and what each gives stand in src/plait/vdj/germline/data/SOURCES.md. They are not imported, and
the result is the same on every machine::

    pip install --no-deps pyimmunarch==0.1.1 abstar==0.8.0
    python tools/build_germline_data.py --genomes FOLDER      # write src/plait/vdj/germline/data
    python tools/build_germline_data.py --genomes FOLDER --check    # say whether the files are up to date

FOLDER has hg38_bcrtcr.fa and GRCm39_bcrtcr.fa of TRUST4. Records of genomes hold a spliced leader, or none,
before the V region, which ends where they end. What is left out of them is printed.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from plait.alphabets import translate
from plait.vdj.germline.airr_json import airr_text
from plait.vdj.germline.anchors import CDR3_END_LENGTHS, find_j_anchor
from plait.vdj.germline.fasta import with_found_anchor
from plait.vdj.germline.germline_set import LOCI, Allele, Functionality, GermlineSet, Segment, canonical

#: Files by what they are called here: package or None, path, SHA-256.
FILES: Mapping[str, tuple[str | None, str, str]] = MappingProxyType(
    {
        "table": (
            "pyimmunarch",
            "_data/gene_segments_ref.parquet",
            "7bfdecb0d267785d936dff8e19cfb6168137f667e810a4565e8972ad0b95f2a3",
        ),
        "V": (
            "abstar",
            "germline_dbs/bcr/human/imgt_gapped/v.fasta",
            "fe191a0fea25150dd784b195dae7898f21f8d3eb664dd348038be87c384c9b47",
        ),
        "D": (
            "abstar",
            "germline_dbs/bcr/human/imgt_gapped/d.fasta",
            "34ad5bc5a9a1cefb8a2df98ec7a9790476e34766a9f3501a496cb65ee24555af",
        ),
        "J": (
            "abstar",
            "germline_dbs/bcr/human/imgt_gapped/j.fasta",
            "b1ab1a7d10db54e5cf95ae852daa443f3a9d325cc191fb2ace82c164c309d60f",
        ),
        "human": (None, "hg38_bcrtcr.fa", "615152a7481d0a68557ab0a84b735d8f25fc1ee9d5076af3b8d31aa7792dc3df"),
        "mouse": (
            None,
            "GRCm39_bcrtcr.fa",
            "b02b76e80c1a2cca75124f7ccd59c1772d63f44ee87a6c95d580c2382e117757",
        ),
    }
)
TABLE_SPECIES = {"HomoSapiens": "human", "MusMusculus": "mouse"}
SPECIES = {"human": ("Homo sapiens", "GRCh38"), "mouse": ("Mus musculus", "GRCm39")}
TABLE, OGRDB = "pyimmunarch 0.1.1", "OGRDB 2024-10-12"

#: Raise the version and the date together when the content changes.
VERSION = "3"
RELEASE_DATE = "2026-11-23"

#: D genes as published for the locus; those of human IGH are of OGRDB, the others of mouse of the genome.
D_SEGMENTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "human_trb": {
            "TRBD1*01": "GGGACAGGGGGC",
            "TRBD2*01": "GGGACTAGCGGGGGGG",
            "TRBD2*02": "GGGACTAGCGGGAGGG",
        },
        "human_trd": {"TRDD1*01": "GAAATAGT", "TRDD2*01": "CCTTCCTAC", "TRDD3*01": "ACTGGGGGATACG"},
        "mouse_trb": {"TRBD1*01": "GGGACAGGGGGC", "TRBD2*01": "GGGACTGGGGGGGC"},
    }
)
#: Alleles of the genome whose number is known to be another one than 01.
NUMBERS = {"TRAJ47": "02"}
#: The D2 gene lies behind the J1 cluster, which joining can therefore not reach.
D_J_ORDER: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"human_trb": {"TRBD2": ("TRBJ2",)}, "mouse_trb": {"TRBD2": ("TRBJ2",)}}
)
#: Two D genes of TRD are joined in the order in which they lie in the locus.
D_D_ORDER = {
    "human_trd": (("TRDD1", "TRDD2"), ("TRDD1", "TRDD3"), ("TRDD2", "TRDD3")),
    "mouse_trd": (("TRDD1", "TRDD2"),),
}
#: Codons of FWR3, 66 to 104 in the IMGT numbering less the gaps of the locus, by locus, or by gene where it
#: has others. Those of TRB follow from what lies between FWR2 and the conserved Cys.
FWR3 = {
    "IGH": 38, "IGK": 36, "IGL": 36, "TRA": 34, "TRB": 38, "TRG": 38, "TRD": 38,
    "human TRAV2": 32, "human TRAV7": 32, "human TRAV20": 32, "human TRAV40": 31, "mouse TRBV1": 36,
    "human TRDV1": 34, "human TRGV1": 37, "human TRGV9": 39, "human TRGV10": 39, "mouse TRGV1": 39,
    "mouse TRGV2": 39, "mouse TRGV3": 39, "mouse TRGV4": 39, "mouse TRGV6": 39,
}  # fmt: skip
#: Of a V region: before the anchor where no delineation says, and least of all.
V_BASES, LEAST_BASES = 273, 270
#: Bases at the 3' end of V genes of which records have more or fewer.
END_BASES = 6

CURATION = (
    "Sources: see SOURCES.md, and the source of each allele. Anchors and delineations of V that no source "
    "states were found by plait from the sequences. So was functionality: P for a stop codon in the frame of "
    "the conserved codon (before it in V, behind it in J); ORF for V without Cys 23, Trp 41 or Cys 104, J "
    "without Phe or Trp, and genes of the genome that have no leader or that the set of OGRDB lacks; else F."
)


class Record(NamedTuple):
    """A gene or allele of a source: `sequence` may have IMGT gaps."""

    name: str
    sequence: str
    source: str


class Sources(NamedTuple):
    """`curated` alleles (OGRDB and table) by species and first four letters; `genome` by species."""

    curated: Mapping[tuple[str, str], list[Record]]
    genome: Mapping[str, list[Record]]


def natural_key(name: str) -> list[tuple[int, str]]:
    """Sort key under which TRBV2 comes before TRBV12."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def find_file(key: str, genomes: Path) -> Path:
    """A source by its key in `FILES`; SystemExit if it is not there or another one."""
    package, name, digest = FILES[key]
    path = genomes / name
    if package is not None:
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise SystemExit(f"{package} is not installed: see the beginning of this script")
        path = Path(spec.submodule_search_locations[0]) / name
    if not path.is_file():
        raise SystemExit(f"{path} is missing")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != digest:
        raise SystemExit(f"{path}: SHA-256 {found}, expected {digest}")
    return path


def fasta(path: Path) -> Iterator[tuple[str, str]]:
    """Headers and sequences in upper case."""
    for record in path.read_text().split(">")[1:]:
        header, _, lines = record.partition("\n")
        yield header, "".join(lines.split()).upper()


def imgt_name(gene: str) -> str:
    """The name of a gene of the genome files as IMGT writes it: TRAV14DV4 is TRAV14/DV4."""
    return re.sub(r"(?<=[0-9DN])DV", "/DV", gene)


def read_sources(genomes: Path) -> Sources:
    """All sources."""
    curated: dict[tuple[str, str], list[Record]] = {}
    for row in pq.read_table(find_file("table", genomes)).to_pylist():
        species, group = TABLE_SPECIES.get(row["species"]), row["gene"].upper()
        if species and (species, group[:2]) != ("human", "IG"):
            record = Record(row["allele_id"], row["sequence"], TABLE)
            curated.setdefault((species, group), []).append(record)
    for segment in "VDJ":
        for header, sequence in fasta(find_file(segment, genomes)):
            record = Record(header.partition("__")[0], sequence, OGRDB)
            curated.setdefault(("human", header[:4]), []).append(record)
    genome: dict[str, list[Record]] = {}
    for species, (_, assembly) in SPECIES.items():
        for header, sequence in fasta(find_file(species, genomes)):
            gene, chromosome, start, end, strand = header.split()
            place = f"{assembly} {chromosome}:{start}-{end}({strand})"
            genome.setdefault(species, []).append(Record(imgt_name(gene), sequence, place))
    return Sources(curated, genome)


def conserved(protein: str) -> tuple[int, int] | None:
    """Codons of Cys 23 and Trp 41 in what ends with codon 104: the likeliest pair, or None."""
    last, found = len(protein) - 1, []
    for w in range(len(protein)):
        # 49 codons lie between Trp 41 and codon 104 where CDR2 has 0 to 10 and FWR3 31 to 39.
        if protein[w] != "W" or not 46 <= last - w <= 64:
            continue
        fit = protein[w + 3 : w + 4] == "Q", protein[w + 1 : w + 2] in "YFVILMA"
        for c in range(max(0, w - 19), w - 10):
            if protein[c] == "C":
                found.append((*fit, -abs(last - w - 58), -abs(c - 22), c, w))
    return max(found)[-2:] if found else None


def delineated(allele: Allele, species: str) -> Allele:
    """A V allele with its regions, if Cys 23 and Trp 41 are found and CDR1 and CDR2 have possible sizes."""
    if allele.anchor is None or allele.regions is not None:
        return allele
    frame = allele.anchor % 3
    protein = translate(allele.sequence[frame : allele.anchor + 3])
    places = conserved(protein)
    if places is None:
        return allele
    c23, w41 = places
    cdr1, fwr2, cdr2 = c23 + 4, w41 - 2, w41 + 15
    locus = allele.name[:3]
    codons = FWR3.get(f"{species} {allele.gene}", FWR3[locus])
    if locus == "TRB" and codons == 38 and len(protein) - cdr2 < 44:
        codons = 37
    fwr3 = len(protein) - codons
    if not (4 <= fwr2 - cdr1 <= 12 and 0 <= fwr3 - cdr2 <= 10):
        return allele
    first, second, third, fourth = (frame + 3 * codon for codon in (cdr1, fwr2, cdr2, fwr3))
    return replace(allele, regions=(first, second, third, fourth))


def derived_functionality(allele: Allele, *, most: Functionality = "F") -> Functionality | None:
    """What the sequence alone says about functionality, at best `most`; None for D and C."""
    if allele.segment in "DC":
        return None
    if allele.anchor is None:
        stop = "*" in translate(allele.sequence) if allele.segment == "V" else False
        return "P" if stop else "ORF"
    v = allele.segment == "V"
    coding = allele.sequence[allele.anchor % 3 : allele.anchor] if v else allele.sequence[allele.anchor :]
    if "*" in translate(coding):
        return "P"
    places = {allele.anchor: "C" if v else "FW"}
    if allele.regions is not None:
        places |= {allele.regions[0] - 12: "C", allele.regions[1] + 6: "W"}
    # A sequence that begins behind Cys 23 cannot show it.
    kept = all(translate(allele.sequence[at : at + 3]) in codons for at, codons in places.items() if at >= 0)
    whole = not v or allele.regions is not None or len(allele.sequence) < LEAST_BASES
    return most if whole and kept else "ORF"


def v_region(record: Record, species: str) -> tuple[Allele, bool] | None:
    """The V region at the end of a genome record, if it has one, and whether an open leader is before it."""
    allele = delineated(with_found_anchor("V", record.name, record.sequence, None), species)
    anchor, regions, tr = allele.anchor, allele.regions, record.name.startswith("TR")
    if anchor is None or (regions is None and not tr):
        return None
    if len(record.sequence) - anchor < CDR3_END_LENGTHS["V"][0]:
        return None
    if regions is None:
        start = max(anchor - V_BASES, anchor % 3)
    else:
        start = regions[0] - 3 * (25 if record.name[:3] in ("IGH", "IGL") else 26)
        regions = (regions[0] - start, regions[1] - start, regions[2] - start, regions[3] - start)
    if start < 0 or len(record.sequence) - start < LEAST_BASES:
        return None
    leader = translate(record.sequence[start % 3 : start])
    opened = re.search(r"M[^*]{12,}$", leader) is not None
    cut = replace(allele, sequence=record.sequence[start:], anchor=anchor - start, regions=regions)
    return cut, opened


def allele_name(gene: str) -> str:
    """The name of the one allele of a gene that the genome has."""
    return f"{gene}*{NUMBERS.get(gene, '01')}"


def open_part(sequence: str) -> str:
    """A spliced constant gene without what follows its stop codon, in the frame that is open for longest."""
    ends = [3 * (translate(sequence, frame) + "*").index("*") + 3 + frame for frame in range(3)]
    return sequence[: max(ends)]


def genome_alleles(
    records: Iterable[Record], segment: Segment, species: str, ogrdb: bool
) -> Iterator[Allele]:
    """Alleles of genes that no curated source has."""
    for record in records:
        name = allele_name(record.name)
        if segment == "V":
            found = v_region(record, species)
            if found is None:
                print(f"left out: {species} {record.name} ({record.source}): no frame up to a conserved Cys")
                continue
            allele, opened = found
            most: Functionality = "F" if opened and not ogrdb else "ORF"
        else:
            sequence = open_part(record.sequence) if segment == "C" else record.sequence
            allele, most = with_found_anchor(segment, name, sequence, None), "ORF" if ogrdb else "F"
            if segment == "J" and allele.anchor is None:
                print(f"left out: {species} {record.name} ({record.source}): no conserved codon")
                continue
        allele = replace(allele, name=name, source=record.source)
        yield replace(allele, functionality=derived_functionality(allele, most=most))


def alleles_of(segment: Segment, name: str, sources: Sources) -> tuple[Allele, ...]:
    """The alleles of one segment of a set in the natural order of their names."""
    species, locus = name.split("_")[0], name.split("_")[1].upper()
    records = list(sources.curated.get((species, locus + segment), ()))
    if segment == "D":
        records += [Record(own, text, "published") for own, text in D_SEGMENTS.get(name, {}).items()]
    if (locus, segment) == ("TRD", "V"):
        records += [r for r in sources.curated[species, "TRAV"] if "/DV" in r.name]
    alleles = {}
    for record in records:
        allele = delineated(with_found_anchor(segment, record.name, record.sequence, None), species)
        allele = replace(allele, source=record.source)
        alleles[record.name] = replace(allele, functionality=derived_functionality(allele))
    if segment != "D" or not alleles:
        known = {canonical(allele.gene) for allele in alleles.values()}
        more = genome_genes(sources.genome[species], locus, segment, known)
        ogrdb = species == "human" and locus.startswith("IG")
        alleles |= {a.name: a for a in genome_alleles(more, segment, species, ogrdb)}
    return distinct([alleles[own] for own in sorted(alleles, key=natural_key)])


def distinct(alleles: Iterable[Allele]) -> tuple[Allele, ...]:
    """Alleles without those of the genome that are another one but for V ends; their names become aliases."""
    found: list[Allele] = []
    for allele in sorted(alleles, key=lambda own: own.source.startswith("GRC")):
        size = len(allele.sequence) - (END_BASES if allele.segment == "V" else 0)
        same = (i for i, other in enumerate(found) if other.sequence[:size] == allele.sequence[:size])
        i = next(same, None) if allele.source.startswith("GRC") and allele.segment != "C" else None
        if i is None:
            found.append(allele)
        else:
            found[i] = replace(found[i], aliases=(*found[i].aliases, allele.name, allele.gene))
    return tuple(sorted(found, key=lambda own: natural_key(own.name)))


CONSTANT = {"IGH": r"IGH(M|D|G\w*|E|A\d?)", "D": r"\w{3}D\d.*", "C": r"\w{3}C\d?"}


def genome_genes(records: Iterable[Record], locus: str, segment: Segment, known: set[str]) -> list[Record]:
    """Genes of a locus that are not known: no orphons, no genes named after clans; one record each.

    Of several records of a constant gene that of the shortest place is taken: the secreted form.
    """
    pattern = rf"{locus}{segment}(P?\d.*|[ABP])"
    if segment == "C":
        pattern = CONSTANT["IGH"] if locus == "IGH" else CONSTANT["C"]
    elif segment == "D":
        pattern = CONSTANT["D"]
    found: dict[str, tuple[tuple[int, int], Record]] = {}
    for record in records:
        if not record.name.startswith(locus) or not re.fullmatch(pattern, record.name):
            continue
        if (
            "OR" in record.name
            or (record.name.endswith("P") and segment == "C")
            or canonical(record.name) in known
        ):
            continue
        start, end = map(int, re.findall(r"[:-](\d+)", record.source))
        # Of records that differ in little but their ends the longest; others go on into what follows.
        frame = segment == "J" and (len(record.sequence) - (find_j_anchor(record.sequence) or 0)) % 3 != 1
        extent = (end - start) // {"C": 100}.get(segment, 1000)
        rank = (extent + frame, -len(record.sequence))
        if record.name not in found or rank < found[record.name][0]:
            found[record.name] = rank, record
    return [record for _, record in found.values()]


def by_place(d: Iterable[Allele]) -> tuple[tuple[str, str], ...]:
    """Pairs of human IGHD genes in the order of the locus, which the number behind the hyphen is."""
    genes = sorted({allele.gene for allele in d}, key=lambda gene: int(gene.partition("-")[2]))
    return tuple(combinations(genes, 2))


def build(name: str, sources: Sources) -> GermlineSet:
    """One germline set."""
    species, _, locus = name.partition("_")
    v, d, j, c = (alleles_of(segment, name, sources) for segment in ("V", "D", "J", "C"))
    with_d = locus in ("igh", "trb", "trd")
    return GermlineSet(
        name=name,
        species=SPECIES[species][0],
        locus=locus.upper(),
        version=VERSION,
        source="see SOURCES.md",
        v=v,
        d=d if with_d else (),
        j=j,
        c=c,
        d_j_order=dict(D_J_ORDER.get(name, {})),
        d_d_order=D_D_ORDER.get(name) or (by_place(d) if name == "human_igh" else None),
    )


def text_of(germline: GermlineSet) -> str:
    """The file of a set."""
    contributor: dict[str, Any] = {"contributor_id": "1", "name": "The plait maintainers"}
    return airr_text(
        germline,
        release_date=RELEASE_DATE,
        release_description="All loci, constant genes, delineation of V, functionality",
        acknowledgements=[contributor],
        curation=CURATION,
    )


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = Path(__file__).resolve().parent.parent
    default = here / "src" / "plait" / "vdj" / "germline" / "data"
    parser.add_argument("--genomes", type=Path, required=True, help="folder of the genome records of TRUST4")
    parser.add_argument("--output", type=Path, default=default, help="folder of the files")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a file differs")
    options = parser.parse_args()
    sources = read_sources(options.genomes)
    names = [f"{species}_{locus.lower()}" for species in SPECIES for locus in LOCI]
    texts = {options.output / f"{name}_germline.json.gz": text_of(build(name, sources)) for name in names}
    if options.check:
        stale = [
            path.name
            for path, text in texts.items()
            if not path.is_file() or gzip.decompress(path.read_bytes()).decode() != text
        ]
        print(f"differ: {', '.join(stale)}" if stale else "up to date")
        return 1 if stale else 0
    for path, text in texts.items():
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
