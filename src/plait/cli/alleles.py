"""``plait vdj alleles``."""

from __future__ import annotations

from pathlib import Path

from plait.cli.console import RowProgress, say
from plait.cli.options import OutputOption, WholeNumber
from plait.errors import InvalidInput


def alleles(
    *inputs: Path,
    germline: str,
    output: OutputOption,
    extended: Path | None = None,
    anchors: Path | None = None,
    min_clonotypes: WholeNumber = 8,
    min_share: float = 0.1,
    min_partners: WholeNumber = 3,
    max_q: float = 0.01,
    most_clonotypes: WholeNumber = 2000,
) -> None:
    """Find V and J alleles that a germline set lacks, in annotated reads of one individual.

    Parameters
    ----------
    inputs
        Tables that plait vdj annotate wrote, or other AIRR Rearrangement tables with the sequences of the
        reads: TSV (plain, .gz or .zst) or Parquet.
    germline
        The germline set that the reads were annotated with.
    output
        The table of candidates to write: .parquet, .tsv, .tsv.gz or .tsv.zst.
    extended
        Write the germline set with the new alleles, too: FILE.json, or a folder or the common start of the
        names of FASTA files. It can be given as --germline.
    anchors
        CSV table gene,anchor_index[,function] of anchors that replace those of the germline set.
    min_clonotypes
        Fewest independent clonotypes (different junctions) that carry a new allele.
    min_share
        Smallest share of the clonotypes of its gene.
    min_partners
        Fewest J genes it occurs with (V genes, for a J allele).
    max_q
        Largest expected share of errors among the changes that are called.
    most_clonotypes
        Most clonotypes of a gene that are looked at; memory grows with it.
    """
    if not inputs:
        raise InvalidInput("inputs", found="no file", expected="tables of annotated reads")
    from plait.reports.repertoire_text import alleles_text
    from plait.vdj.alleles.new_alleles import find_in_files
    from plait.vdj.alleles.sites import AlleleLimits
    from plait.vdj.germline import load_germline

    known = load_germline(germline, anchors=anchors)
    for note in known.notes:
        say(f"germline set {known.name}: {note}")
    limits = AlleleLimits(
        min_clonotypes=min_clonotypes, min_share=min_share, min_partners=min_partners, max_q=max_q
    )
    with RowProgress("reading") as progress:
        found = find_in_files(
            inputs,
            output,
            known,
            extended=extended,
            limits=limits,
            most_clonotypes=most_clonotypes,
            progress=progress,
        )
    print(alleles_text(found, output, extended), end="")
