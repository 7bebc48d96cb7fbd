"""``plait germline``: list, show, check and convert germline sets."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from plait.cli.options import say
from plait.errors import InvalidInput
from plait.vdj.germline import (
    GermlineSet,
    bundled_germlines,
    load_germline,
    read_fasta_trio,
    write_airr_json,
    write_csv,
    write_fasta_trio,
)
from plait.vdj.germline import validate as find_problems
from plait.vdj.germline.anchors import COLUMNS, allele_row, apply_overrides, csv_text, json_text, metadata
from plait.vdj.germline.fasta import fasta_texts

app = App(name="germline", help_format="markdown", version_flags=[])


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """What a source may not say.

    Attributes
    ----------
    anchors
        CSV table gene,anchor_index[,function] of 0-based anchors to use in the place of those of the set.
    species
        Species, where the source does not state it: a binomial, human or mouse.
    locus
        Locus, where it cannot be told from the names.
    """

    anchors: Path | None = None
    species: str = ""
    locus: str = ""


_SAID = SourceOptions()


def _print_table(table: Table) -> None:
    # Wide enough for any cell when the output goes to a file or another program.
    Console(width=None if sys.stdout.isatty() else 240).print(table)


@app.command(name="list")
def list_sets() -> None:
    """List the germline sets that come with plait."""
    table = Table(box=None, header_style="bold")
    for column in ("name", "species", "locus", "chain", "V", "D", "J", "C", "version", "digest"):
        table.add_column(column, no_wrap=True)
    for name in bundled_germlines():
        told = metadata(load_germline(name))
        keys = ("name", "species", "locus", "chain", "n_v", "n_d", "n_j", "n_c", "version")
        table.add_row(*(str(told[key]) for key in keys), told["digest"][:12])
    _print_table(table)
    say("human, human_tr, human_ig, and the same of mouse, are all sets whose names begin so, for annotate")


@app.command
def show(
    source: str,
    *,
    format: Literal["table", "json", "fasta", "csv"] = "table",
    said: SourceOptions = _SAID,
) -> None:
    """Print every allele of a germline set, with its CDR3 end as used in counting.

    Parameters
    ----------
    source
        Bundled name, AIRR JSON file, FASTA file, folder or prefix of FASTA files, or OLGA or IGoR model
        folder.
    format
        What to print; json has everything.
    said
        What the source may not say.
    """
    germline = load_germline(source, **asdict(said))
    if format == "table":
        _show_table(germline)
    elif format == "fasta":
        sys.stdout.writelines(fasta_texts(germline).values())
    else:
        sys.stdout.write((json_text if format == "json" else csv_text)(germline))


def _show_table(germline: GermlineSet) -> None:
    for key, value in metadata(germline).items():
        print(f"{key}: {value}")
    columns = [column for column in COLUMNS if column not in ("source", "sequence")]
    table = Table(box=None, header_style="bold")
    for column in columns:
        table.add_column(column, no_wrap=True)
    for allele in germline.alleles():
        row = allele_row(allele)
        table.add_row(*("-" if row[column] is None else str(row[column]) for column in columns))
    _print_table(table)


@app.command
def validate(source: str, *, said: SourceOptions = _SAID) -> int:
    """Print everything that is wrong or odd in a germline set, and a count of each kind.

    The exit code is 1 if there are errors, 0 if there are only warnings and notes, and 2 if the source cannot
    be read.

    Parameters
    ----------
    source
        As in plait germline show.
    said
        What the source may not say.
    """
    germline = load_germline(source, **asdict(said), strict=False)
    findings = find_problems(germline)
    for finding in findings:
        print("\t".join((finding.severity, finding.kind, finding.allele or germline.name, finding.message)))
    counts = Counter((finding.severity, finding.kind) for finding in findings)
    for (severity, kind), count in counts.items():
        print(f"{count} {severity} {kind}")
    print(f"{germline.name}: {len(germline.alleles())} alleles, {len(findings)} findings")
    return int(any(finding.severity == "error" for finding in findings))


@app.command
def convert(
    source: str | None = None,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    v: Path | None = None,
    d: Path | None = None,
    j: Path | None = None,
    c: Path | None = None,
    name: str | None = None,
    said: SourceOptions = _SAID,
) -> None:
    """Write a germline set in another format.

    Parameters
    ----------
    source
        As in plait germline show; leave it out to give the FASTA files one by one.
    output
        FILE.json for an AIRR Germline Set, FILE.csv for a table of alleles, a folder for FASTA files in it,
        anything else is the prefix of PREFIXV.fasta, PREFIXD.fasta and so on, and PREFIX_anchors.csv.
    v
        FASTA file of V sequences, gapped or not.
    d
        FASTA file of D sequences.
    j
        FASTA file of J sequences.
    c
        FASTA file of C sequences.
    name
        Name of the set.
    said
        What the source may not say.
    """
    if source is not None and v is d is j is c is None:
        germline = load_germline(source, name=name, **asdict(said))
    elif source is None and v is not None and j is not None:
        germline = read_fasta_trio(v, j, d, c, name=name, species=said.species, locus=said.locus)
        germline = germline if said.anchors is None else apply_overrides(germline, said.anchors)
    else:
        raise InvalidInput(
            "input", found="a mixture or too little", expected="a source, or --v and --j (and --d, --c)"
        )
    if output.suffix.lower() == ".json":
        write_airr_json(germline, output)
    elif output.suffix.lower() == ".csv":
        write_csv(germline, output)
    else:
        write_fasta_trio(germline, output)
    for note in germline.notes:
        print(f"note: {note}", file=sys.stderr)
