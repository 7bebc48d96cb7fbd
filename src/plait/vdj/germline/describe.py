"""A germline set as rows and text, for people and for other programs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from plait.vdj.germline.files import PathLike, write_texts
from plait.vdj.germline.germline_set import GermlineSet
from plait.vdj.germline.records import Allele

__all__ = ["COLUMNS", "allele_row", "csv_text", "json_text", "metadata", "write_csv"]

#: Columns of the table of alleles.
COLUMNS = (
    "name",
    "gene",
    "segment",
    "functionality",
    "anchor",
    "anchor_source",
    "cdr3_end_length",
    "cdr3_end",
    "length",
    "sequence",
)


def allele_row(allele: Allele) -> dict[str, str | int | None]:
    """One allele by the names of `COLUMNS`; ``cdr3_end`` is what counting uses of it."""
    end = allele.cdr3_end
    values = (
        allele.name,
        allele.gene,
        allele.segment,
        allele.functionality,
        allele.anchor,
        allele.anchor_source,
        None if end is None else len(end),
        end,
        len(allele.sequence),
        allele.sequence,
    )
    return dict(zip(COLUMNS, values, strict=True))


def metadata(germline: GermlineSet) -> dict[str, Any]:
    """Everything about a set but its alleles, ready for JSON."""
    alleles = germline.alleles()
    return {
        "name": germline.name,
        "species": germline.species,
        "locus": germline.locus,
        "chain": germline.chain,
        "version": germline.version,
        "source": germline.source,
        "digest": germline.digest,
        "n_v": len(germline.v),
        "n_d": len(germline.d),
        "n_j": len(germline.j),
        "n_without_anchor": sum(a.anchor is None for a in alleles if a.segment != "D"),
        "d_j_order": {gene: list(prefixes) for gene, prefixes in germline.d_j_order.items()},
        "d_d_order": None if germline.d_d_order is None else [list(pair) for pair in germline.d_d_order],
        "notes": list(germline.notes),
    }


def json_text(germline: GermlineSet) -> str:
    """A set with every allele as JSON text: the keys of `metadata`, and ``alleles``."""
    rows = [allele_row(allele) | {"aliases": list(allele.aliases)} for allele in germline.alleles()]
    return json.dumps(metadata(germline) | {"alleles": rows}, indent=1) + "\n"


def csv_text(germline: GermlineSet) -> str:
    """The alleles of a set as CSV text with a header line; empty where a value is not known."""
    buffer = io.StringIO()
    table = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(allele_row(allele) for allele in germline.alleles())
    return buffer.getvalue()


def write_csv(germline: GermlineSet, path: PathLike) -> None:
    """Write the alleles of a set as CSV.

    Parameters
    ----------
    germline
        The set.
    path
        The file; it is replaced in one step.

    Raises
    ------
    InvalidInput
        If the file cannot be written.
    """
    write_texts({Path(path): csv_text(germline)})
