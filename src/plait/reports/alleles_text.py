"""New alleles as text."""

from __future__ import annotations

import os
from typing import Any

from plait.reports.plain_text import aligned, paragraph, percent
from plait.vdj.annotation.allele_judgement import REASONS
from plait.vdj.annotation.new_alleles import NewAlleles

__all__ = ["LEFT_OUT_MEANINGS", "alleles_text"]

#: Reasons for which rows are no evidence, in plain words; those of V and J begin with ``v_`` and ``j_``.
LEFT_OUT_MEANINGS = {
    "not_ok": "their annotation_status is not ok",
    "missing_sequence": "no sequence",
    "missing_junction": "no junction",
    "missing_call": "no call",
    "unknown_call": "the call is not in the germline set",
    "no_anchor": "the anchor of the allele is not known",
    "gap": "the alignment has a gap, and only exchanged bases are looked for",
    "outside": "the coordinates leave the read or the allele",
    "no_alignment": "no coordinates and no cigar",
    "within": "the alignment lies within the CDR3",
    "unlike": "too many bases differ: the coordinates are not those of this germline set",
}


def alleles_text(
    found: NewAlleles, output: str | os.PathLike[str], extended: str | os.PathLike[str] | None = None
) -> str:
    """What was found, in lines that fit a terminal.

    Parameters
    ----------
    found
        What to write.
    output, extended
        Where the table of candidates is, and the germline set.
    """
    lines = [
        f"{found.rows:,} rows, {found.clonotypes['V']:,} independent clonotypes",
        *_left_out(found),
        "",
    ]
    rows = found.candidates.to_pylist()
    new = [row for row in rows if row["status"] == "candidate"]
    others = [row for row in rows if row["status"] != "candidate"]
    lines += [f"{len(new)} new allele{'' if len(new) == 1 else 's'}"]
    if new:
        lines += _table(new)
    if others:
        lines += ["", f"{len(others)} that look like artefacts", *_table(others)]
        given = {reason for row in others for reason in row["reasons"].split(",")}
        lines += [""]
        for reason, meaning in REASONS.items():
            if reason in given:
                lines += paragraph(f"{reason.replace('_', ' ')}: {meaning}.")
    # Paths stay whole, however long they are.
    lines += ["", f"table     {os.fspath(output)}"]
    if extended is not None:
        lines.append(f"germline  {os.fspath(extended)}")
    return "\n".join(lines) + "\n"


def _left_out(found: NewAlleles) -> list[str]:
    lines = []
    for reason, rows in found.left_out.items():
        words = reason.split("_")
        letter = next((word for word in words if word in ("v", "j")), "")
        about = f" on {letter.upper()}" if letter else ""
        key = "_".join(word for word in words if word != letter)
        meaning = LEFT_OUT_MEANINGS.get(key, key.replace("_", " "))
        lines += paragraph(f"{rows:,} rows ({percent(rows, found.rows)}) are no evidence{about}: {meaning}.")
    return lines


def _table(rows: list[dict[str, Any]]) -> list[str]:
    table = [["clonotypes", "share", "known at", "allele"]]
    for row in rows:
        share = percent(round(1000 * row["share"]), 1000)
        covered = row["covered"].split(",")
        known = covered[0] if len(covered) == 1 else f"{covered[0]}, ..."
        name = row["allele"] + (f" ({row['reasons'].replace(',', ', ')})" if row["reasons"] else "")
        table.append([f"{row['clonotypes']:,}", share, known, name])
    return aligned(table, ">>><")
