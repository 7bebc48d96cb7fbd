"""Build the germline sets that come with plait.

The V and J sequences are those of the PyPI package pyimmunarch (Apache-2.0), which is located but not
imported. The D sequences, and alleles that the package lacks, stand in this file. The result is the same on
every machine::

    python tools/build_germline_data.py            # write src/plait/vdj/germline/data
    python tools/build_germline_data.py --check    # say whether the files are up to date
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq

from plait.alphabets import translate
from plait.vdj.germline.airr_json import airr_text
from plait.vdj.germline.fasta import with_found_anchor
from plait.vdj.germline.germline_set import Allele, Functionality, GermlineSet, Segment

PACKAGE = "pyimmunarch"
PACKAGE_VERSION = "0.1.1"
TABLE = Path("_data", "gene_segments_ref.parquet")
TABLE_SHA256 = "7bfdecb0d267785d936dff8e19cfb6168137f667e810a4565e8972ad0b95f2a3"

#: Raise the version and the date together when the content changes.
VERSION = "2"
RELEASE_DATE = "2026-11-21"

#: Set name: species in the table, binomial, locus.
SETS = MappingProxyType(
    {
        "human_tra": ("HomoSapiens", "Homo sapiens", "TRA"),
        "human_trb": ("HomoSapiens", "Homo sapiens", "TRB"),
        "mouse_tra": ("MusMusculus", "Mus musculus", "TRA"),
        "mouse_trb": ("MusMusculus", "Mus musculus", "TRB"),
    }
)
D_SEGMENTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "human_trb": {
            "TRBD1*01": "GGGACAGGGGGC",
            "TRBD2*01": "GGGACTAGCGGGGGGG",
            "TRBD2*02": "GGGACTAGCGGGAGGG",
        },
        "mouse_trb": {"TRBD1*01": "GGGACAGGGGGC", "TRBD2*01": "GGGACTGGGGGGGC"},
    }
)
#: Alleles that the package lacks and repertoires have, as the reference genome GRCm39 has them: TRUST4's file
#: of it (MIT). 2.8 % of the rearrangements of mouse TRB use TRBJ1-6.
MORE_ALLELES: Mapping[str, Mapping[Segment, Mapping[str, str]]] = MappingProxyType(
    {
        "mouse_tra": {
            "J": {
                "TRAJ44*01": "GTTACTGGCAGTGGTGGAAAACTCACTTTGGGGGCTGGAACAAGACTTCAGGTCAACCTTG",
                "TRAJ47*02": "TGGACTATGCAAACAAGATGATCTTTGGCTTGGGAACCATTTTGAGAGTCAGACCTC",
            }
        },
        "mouse_trb": {
            "V": {
                "TRBV21*01": "GACTCTGGGGTTGTCCAGAATCCTAGACATCTGGTCAAAGGAAAAGAACAGAAAGCCAAAATGGATTGCACCCCCATAA"
                "ACGGACATAGTTACGTTTATTGGTACTACAAGAAACCGGGAGAAGAACTCAAATTTTTGGTTTACTTTCAGAATGAAGACATCATCGACAA"
                "AATAGATATGATTGGTAAAAACATTTCAGCAAAATGCCCTGCTAAGAAACCATGTACCATAGAGATCCAGTCCAGCAAGCTAACAGATTCA"
                "GCTGTGTACTTCTGTGCTAGCAGTCAA"
            },
            "J": {"TRBJ1-6*01": "TTCCTATAATTCGCCCCTCTACTTTGCGGCAGGCACCCGGCTCACTGTGACAG"},
        },
    }
)
#: The D2 gene lies behind the J1 cluster, which joining can therefore not reach.
D_J_ORDER: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"human_trb": {"TRBD2": ("TRBJ2",)}, "mouse_trb": {"TRBD2": ("TRBJ2",)}}
)
CURATION = (
    "V and J names and sequences: pyimmunarch 0.1.1 (Apache-2.0), a port of immunarch; mouse TRAJ44, "
    "TRAJ47, TRBV21 and TRBJ1-6: GRCm39. D segments: as published for the locus. Anchors were found by plait "
    "from the sequences. The source states no functionality; it was derived: P for a stop codon in the frame "
    "of the conserved codon (before it in V, behind it in J), ORF where no conserved codon was found, "
    "otherwise null, which means not known."
)


def natural_key(name: str) -> list[tuple[int, str]]:
    """Sort key under which TRBV2 comes before TRBV12."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def derived_functionality(allele: Allele) -> Functionality | None:
    """What the sequence alone says about functionality: P, ORF, or None for nothing."""
    if allele.segment == "D":
        return None
    if allele.anchor is None:
        stop = "*" in translate(allele.sequence) if allele.segment == "V" else False
        return "P" if stop else "ORF"
    v = allele.segment == "V"
    coding = allele.sequence[allele.anchor % 3 : allele.anchor] if v else allele.sequence[allele.anchor :]
    return "P" if "*" in translate(coding) else None


def alleles_of(segment: Segment, sequences: Mapping[str, str]) -> Iterable[Allele]:
    """The alleles of one segment in the natural order of their names."""
    for name in sorted(sequences, key=natural_key):
        allele = with_found_anchor(segment, name, sequences[name], None)
        yield replace(allele, functionality=derived_functionality(allele))


def find_table() -> Path:
    """The table inside the installed package, which is not imported."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{PACKAGE} is not installed: pip install --no-deps {PACKAGE}=={PACKAGE_VERSION}")
    return Path(spec.submodule_search_locations[0]) / TABLE


def read_table(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Sequence by allele name, by species and gene group of the table."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != TABLE_SHA256:
        raise SystemExit(f"{path}: SHA-256 {digest}, expected {TABLE_SHA256} ({PACKAGE} {PACKAGE_VERSION})")
    groups: dict[tuple[str, str], dict[str, str]] = {}
    for row in pq.read_table(path).to_pylist():
        group = groups.setdefault((row["species"], row["gene"]), {})
        if group.setdefault(row["allele_id"], row["sequence"]) != row["sequence"]:
            raise SystemExit(f"{path}: two sequences of {row['allele_id']} in {row['species']}")
    return groups


def build(name: str, groups: Mapping[tuple[str, str], Mapping[str, str]]) -> GermlineSet:
    """One germline set."""
    table_species, species, locus = SETS[name]
    more = MORE_ALLELES.get(name, {})
    return GermlineSet(
        name=name,
        species=species,
        locus=locus,
        version=VERSION,
        source=f"{PACKAGE} {PACKAGE_VERSION} (V and J), see SOURCES.md",
        v=tuple(alleles_of("V", {**groups[table_species, f"{locus.lower()}v"], **more.get("V", {})})),
        d=tuple(alleles_of("D", D_SEGMENTS.get(name, {}))),
        j=tuple(alleles_of("J", {**groups[table_species, f"{locus.lower()}j"], **more.get("J", {})})),
        d_j_order=dict(D_J_ORDER.get(name, {})),
    )


def text_of(germline: GermlineSet) -> str:
    """The file of a set."""
    contributor: dict[str, Any] = {"contributor_id": "1", "name": "The plait maintainers"}
    return airr_text(
        germline,
        release_date=RELEASE_DATE,
        release_description="TRBJ1-6 and TRBV21 added to mouse_trb, TRAJ44 and TRAJ47 to mouse_tra",
        acknowledgements=[contributor],
        curation=CURATION,
    )


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = Path(__file__).resolve().parent.parent
    default = here / "src" / "plait" / "vdj" / "germline" / "data"
    parser.add_argument("--parquet", type=Path, help="the table; by default that of the installed package")
    parser.add_argument("--output", type=Path, default=default, help="folder of the files")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a file differs")
    options = parser.parse_args()
    groups = read_table(options.parquet or find_table())
    texts = {options.output / f"{name}_germline.json.gz": text_of(build(name, groups)) for name in SETS}
    if options.check:
        stale = [
            p.name
            for p, text in texts.items()
            if not p.is_file() or gzip.decompress(p.read_bytes()).decode() != text
        ]
        print(f"differ: {', '.join(stale)}" if stale else "up to date")
        return 1 if stale else 0
    for path, text in texts.items():
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
