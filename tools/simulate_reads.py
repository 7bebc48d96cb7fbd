#!/usr/bin/env python3
"""Write simulated reads of T-cell receptors, with a table of the truth.

The same options give the same files, to the byte::

    python tools/simulate_reads.py --reads 2000 --seed 1 -o reads.fastq.gz --truth truth.tsv
    python tools/simulate_reads.py --mates mates.fastq.gz --insert 220 -o reads.fastq.gz
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from support.read_library import Library, simulate_reads, write_fastq, write_truth
from support.read_simulation import Sequencing

from plait.vdj.germline import GermlineSet, load_germline


def functional(germline: GermlineSet) -> GermlineSet:
    """A set without V and J pseudogenes and open reading frames."""
    v, j = (tuple(a for a in part if a.functionality in (None, "F")) for part in (germline.v, germline.j))
    return replace(germline, v=v, j=j)


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, help="FASTQ file; gzip if its name ends in .gz")
    add("--mates", type=Path, help="FASTQ file of the second mates")
    add("--truth", type=Path, help="table of the truth, tab-separated")
    add("--germline", default="mouse_trb", help="names of bundled sets, with commas between")
    add("--reads", type=int, default=2000, help="reads, or pairs")
    add("--clones", type=int, default=500)
    add("--common", type=int, default=0, help="how many clones come from the pool of --common-seed")
    add("--common-seed", type=int, default=0)
    add("--skew", type=float, default=0.7, help="sizes of clones fall with their rank to this power")
    add("--productive", type=float, default=0.9, help="share of the clones that are made to be productive")
    add("--chimeras", type=float, default=0.0, help="share of the reads")
    add("--noise", type=float, default=0.0, help="share of the reads that are random DNA")
    add("--umi", type=int, default=0, metavar="LENGTH", help="length of the labels in the names of reads")
    add("--reads-per-umi", type=float, default=3.0)
    add("--length", type=int, default=150, help="bases of a read")
    add("--placement", choices=("junction", "anywhere", "primer"), default="junction")
    add("--insert", type=float, help="mean length of the fragments of pairs")
    add("--insert-sd", type=float, default=20.0)
    add("--substitutions", type=float, default=0.002, help="share of the bases; also for the next three")
    add("--insertions", type=float, default=0.0)
    add("--deletions", type=float, default=0.0)
    add("--unknown", type=float, default=0.0)
    add("--truncated", type=float, default=0.0, help="share of the reads")
    add("--seed", type=int, default=1)
    found = parser.parse_args()
    if found.mates is not None and found.insert is None:
        parser.error("--mates needs --insert")
    return found


def main() -> None:
    """Write the files."""
    given = options()
    sequencing = Sequencing(
        length=given.length,
        placement=given.placement,
        insert_mean=given.insert if given.mates is not None else None,
        insert_sd=given.insert_sd,
        substitutions=given.substitutions,
        unknown=given.unknown,
        insertions=given.insertions,
        deletions=given.deletions,
        truncated=given.truncated,
    )
    library = Library(
        reads=given.reads,
        clones=given.clones,
        common=given.common,
        common_seed=given.common_seed,
        skew=given.skew,
        productive=given.productive,
        chimeras=given.chimeras,
        noise=given.noise,
        umi_length=given.umi,
        reads_per_umi=given.reads_per_umi,
        sequencing=sequencing,
    )
    germlines = [functional(load_germline(name)) for name in given.germline.split(",")]
    reads = write_fastq(simulate_reads(germlines, library, seed=given.seed), given.output, given.mates)
    if given.truth is not None:
        write_truth(reads, given.truth)


if __name__ == "__main__":
    main()
