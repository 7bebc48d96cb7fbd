"""New alleles from files to files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from plait._version import __version__
from plait.errors import InvalidInput
from plait.formats.atomic import check_not_input
from plait.formats.tables import open_table
from plait.vdj.annotation.allele_evidence import MOST_CLONOTYPES
from plait.vdj.annotation.allele_sites import AlleleLimits
from plait.vdj.annotation.new_alleles import CANDIDATE_SCHEMA, NewAlleles, find_new_alleles
from plait.vdj.germline import GermlineSet, write_fasta_trio
from plait.vdj.germline.airr_write import airr_text
from plait.vdj.germline.files import write_texts
from plait.vdj.progress import Progress

__all__ = ["find_in_files", "write_extended"]

_Path = str | os.PathLike[str]


def find_in_files(
    inputs: Sequence[_Path],
    output: _Path,
    germline: GermlineSet,
    *,
    extended: _Path | None = None,
    limits: AlleleLimits | None = None,
    most_clonotypes: int = MOST_CLONOTYPES,
    progress: Callable[[Progress], None] | None = None,
) -> NewAlleles:
    """Find new alleles in annotated reads and write them.

    Parameters
    ----------
    inputs, germline, limits, most_clonotypes, progress
        As for `plait.vdj.annotation.new_alleles.find_new_alleles`.
    output
        The table of candidates: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``.
    extended
        The germline set with the new alleles, if it is wanted; see `write_extended`.

    Returns
    -------
    NewAlleles
        What was found.

    Raises
    ------
    InvalidInput
        If an output cannot be written, or is an input.
    FormatError
        If a file is not what it should be.
    """
    asked = limits or AlleleLimits()
    if extended is not None:
        check_not_input(extended, [*inputs, output])
        if os.path.realpath(extended) == os.path.realpath(output):
            raise InvalidInput(
                "extended", found=f"{os.fspath(output)!r}", expected="another file than output"
            )
        _extended_texts(germline, extended)
    facts = {
        "version": __version__,
        "inputs": [os.path.realpath(path) for path in inputs],
        "germline": {"name": germline.name, "digest": germline.digest},
        "limits": asdict(asked) | {"most_clonotypes": most_clonotypes},
    }
    metadata = {"plait.new_alleles": json.dumps(facts, sort_keys=True)}
    with open_table(output, CANDIDATE_SCHEMA, metadata=metadata, inputs=inputs) as writer:
        found = find_new_alleles(
            list(inputs), germline, limits=asked, most_clonotypes=most_clonotypes, progress=progress
        )
        for batch in found.candidates.to_batches():
            writer.write(batch)
        if extended is not None:
            write_extended(found.extended, extended)
    return found


def write_extended(germline: GermlineSet, path: _Path) -> None:
    """Write an extended germline set so that it can be used as one.

    Parameters
    ----------
    germline
        The set.
    path
        FILE.json for an AIRR Germline Set, in which ``curation`` says where the new alleles come from; a
        folder for FASTA files in it; anything else is the common start of the names of FASTA files.
    """
    texts = _extended_texts(germline, path)
    if texts:
        write_texts(texts)
    else:
        write_fasta_trio(germline, Path(path) / germline.name if os.path.isdir(path) else path)


def _extended_texts(germline: GermlineSet, path: _Path) -> dict[Path, str]:
    """The JSON file, or nothing; raises what writing would raise, but for the file itself."""
    if Path(path).suffix.lower() != ".json":
        return {}
    return {Path(path): airr_text(germline, curation=". ".join(germline.notes) or None)}
