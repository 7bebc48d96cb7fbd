"""Write AIRR Germline Set files (schema 2.0)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plait.errors import InvalidInput
from plait.vdj.germline.files import PathLike, write_texts
from plait.vdj.germline.germline_set import GermlineSet
from plait.vdj.germline.records import LOCI, TAXA, Allele

__all__ = ["airr_text", "write_airr_json"]

_DELINEATED = ("fwr1", "cdr1", "fwr2", "cdr2", "fwr3")


def _delineation(allele: Allele, anchor: int) -> dict[str, Any]:
    """The one boundary that is known: the conserved Cys ends framework 3."""
    bounds: dict[str, int | None] = {
        f"{part}_{end}": None for part in _DELINEATED for end in ("start", "end")
    }
    bounds |= {"fwr1_start": 1, "fwr3_end": anchor + 3, "cdr3_start": anchor + 4}
    return {
        "sequence_delineation_id": "1",
        "delineation_scheme": "IMGT",
        "unaligned_sequence": allele.sequence,
        "aligned_sequence": None,
        **bounds,
        "alignment_labels": None,
    }


def _codon_frame(anchor: int) -> int:
    """Codon position of the first base of a J sequence, 1 to 3."""
    return (-anchor) % 3 + 1


def _description(
    allele: Allele, species: dict[str, Any], locus: str, dates: dict[str, Any]
) -> dict[str, Any]:
    anchor = allele.anchor
    j_anchor = anchor if allele.segment == "J" else None
    stem = locus + allele.segment
    content: dict[str, Any] = {
        "allele_description_id": allele.name,
        "acknowledgements": [],
        **dates,
        "label": allele.name,
        "sequence": allele.sequence,
        "coding_sequence": allele.sequence,
        "aliases": list(allele.aliases),
        "locus": locus,
        "sequence_type": allele.segment,
        # The schema asks for the key and lets it be null: not known.
        "functional": None if allele.functionality is None else allele.functionality == "F",
        "inference_type": None,
        "species": species,
        "gene_designation": allele.gene.removeprefix(stem),
        "allele_designation": allele.name.partition("*")[2] or None,
        "gene_start": 1,
        "gene_end": len(allele.sequence),
    }
    if allele.segment == "V":
        content["v_gene_delineations"] = [] if anchor is None else [_delineation(allele, anchor)]
    if allele.segment == "J":
        content["j_codon_frame"] = None if j_anchor is None else _codon_frame(j_anchor)
        content["j_cdr3_end"] = None if j_anchor is None else j_anchor + 1
    content["plait"] = {
        "gene": allele.gene,
        "functionality": allele.functionality,
        "anchor_source": allele.anchor_source,
    }
    return content


def airr_text(
    germline: GermlineSet,
    *,
    release_date: str | None = None,
    release_description: str = "",
    acknowledgements: Sequence[dict[str, Any]] = (),
    curation: str | None = None,
) -> str:
    """A germline set as the text of an AIRR Germline Set file, the same for the same input.

    `release_date` is ``YYYY-MM-DD`` or None for null, `acknowledgements` are contributors as the schema
    describes them. A locus that the schema does not have raises an `InvalidInput`.
    """
    if germline.locus not in LOCI:
        raise InvalidInput("locus", found=repr(germline.locus), expected=", ".join(LOCI), hint="use --locus")
    species = {"id": TAXA.get(germline.species), "label": germline.species}
    dates = {
        "release_version": int(germline.version) if re.fullmatch("[0-9]{1,9}", germline.version) else 1,
        "release_date": release_date,
        "release_description": release_description,
    }
    d_d_order = germline.d_d_order
    content = {
        "germline_set_id": germline.name,
        "acknowledgements": list(acknowledgements),
        **dates,
        "germline_set_name": germline.name,
        "germline_set_ref": f"plait:{germline.name}",
        "species": species,
        "locus": germline.locus,
        "allele_descriptions": [
            _description(allele, species, germline.locus, dates) for allele in germline.alleles()
        ],
        "curation": curation,
        "plait": {
            "version": germline.version,
            "source": germline.source,
            "d_j_order": {gene: list(prefixes) for gene, prefixes in germline.d_j_order.items()},
            "d_d_order": None if d_d_order is None else [list(pair) for pair in d_d_order],
        },
    }
    return json.dumps({"GermlineSet": [content]}, indent=1) + "\n"


def write_airr_json(germline: GermlineSet, path: PathLike) -> None:
    """Write a germline set as an AIRR Germline Set file.

    Parameters
    ----------
    germline
        The set. Everything but its notes is kept: reading the file gives the same digest.
    path
        The file; it is replaced in one step.

    Raises
    ------
    InvalidInput
        If the locus is not one of the schema, or the file cannot be written.
    """
    write_texts({Path(path): airr_text(germline)})
