"""What came of an annotation, of new alleles and of sharing, as text."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from plait.reports.plain_text import aligned, large_number, paragraph, percent, plural, rate_text, share_table
from plait.vdj.calls import MEANINGS

if TYPE_CHECKING:
    from plait.vdj.alleles.new_alleles import NewAlleles
    from plait.vdj.reads.annotate_files import AnnotatedFiles
    from plait.vdj.reads.annotator import ReadSummary
    from plait.vdj.repertoires.cells import PairedCells
    from plait.vdj.repertoires.diversity import RepertoireDiversity
    from plait.vdj.repertoires.expected import ExpectedSharing
    from plait.vdj.repertoires.sharing import SharingSummary
    from plait.vdj.repertoires.specificity import Specificities

#: Every status in plain words.
STATUS_MEANINGS: Mapping[str, str] = MEANINGS["annotation"]
#: What is told of inputs that are unusual.
_REMARKS = {
    "duplicate_names": "reads with the name of an earlier one; sequence_id is not unique for them",
    "empty_reads": "reads without a base; they are too_short",
    "dots": "bases written as a dot, and taken for N",
}
#: A space at which no line is broken.
_HELD = "\N{NO-BREAK SPACE}"
_MOST_GENES = 6
#: Share of the reads with a junction that may be lost without a word.
_MOST_LOST = 0.1
_MOST_FILES = 40
_MOST_Q = 0.05


def annotation_text(found: AnnotatedFiles, *, seconds: float) -> str:
    """What came of an annotation, in lines that fit a terminal."""
    total = found.total
    paired = any(file.mate_path for file in found.files)
    what = "pairs of reads" if paired else "reads"
    lines = [f"{total.reads:,} {what} {rate_text(total.reads, seconds, '/s')}"]
    if not total.reads:
        lines += paragraph("The input has no reads, and the output no rows.")
    else:
        if found.umis is not None:
            lines += [f"{found.umis.molecules:,} molecules by UMI"]
        if paired:
            merged = percent(total.merged_pairs, max(total.sequences, 1))
            lines += [
                f"{total.merged_pairs:,} {'pairs' if found.umis is None else 'of them'} ({merged}) merged"
            ]
        lines += ["", *_status_lines(total, found.umis is not None), "", *_junction_lines(total)]
        if len(found.files) > 1:
            lines += ["", *_file_lines(found)]
    return "\n".join([*lines, "", *_remark_lines(found), *_output_lines(found)]) + "\n"


def lost_text(found: AnnotatedFiles) -> str | None:
    """What share of the reads is lost for their quality, if it is a large one."""
    low = found.total.statuses["low_quality"]
    junctions = found.total.junction_lengths.total() + low
    lost = low if found.clonotypes is None else low - found.clonotypes.joined
    if lost <= _MOST_LOST * junctions:
        return None
    where = "are not written" if found.clonotypes is None else "are in no clonotype"
    return (
        f"warning: {percent(lost, junctions)} of {junctions:,} sequences with a junction {where}, because "
        "a base of it is below --min-junction-quality"
    )


def _status_lines(total: ReadSummary, umis: bool) -> list[str]:
    head = "molecules" if umis else "reads", "status"
    found = [(status, total.statuses[status]) for status in STATUS_MEANINGS if total.statuses[status]]
    return share_table(head, found, STATUS_MEANINGS, total.sequences)


def _junction_lines(total: ReadSummary) -> list[str]:
    n = sum(total.junction_lengths.values())
    if not n and total.statuses["low_quality"]:
        return ["No junction is left: the statuses say why."]
    if not n:
        return ["No junction was found: is this the germline set of the reads?"]
    lines = paragraph(
        f"Of {n:,} with a junction, {percent(total.productive, n)} are productive, "
        f"{percent(total.out_of_frame, n)} out of frame, {percent(total.stop_codon, n)} with a stop codon."
    )
    lines += paragraph(
        f"{percent(total.forward, total.sequences)} on the strand of the genes, "
        f"{percent(total.reverse, total.sequences)} on the other."
    )
    low, middle, high = (total.junction_length(share) for share in (0.05, 0.5, 0.95))
    lines += paragraph(f"Junctions: median {middle} nt, nine in ten of {low} to {high} nt.")
    for name, genes in (("V", total.v_genes), ("J", total.j_genes)):
        most = sorted(genes.items(), key=lambda item: (-item[1], item[0]))[:_MOST_GENES]
        shown = ", ".join(f"{gene} {percent(count, n)}".replace(" ", _HELD) for gene, count in most)
        lines += paragraph(f"{name} genes: {shown}{', ...' if len(genes) > _MOST_GENES else ''}")
    lines = [line.replace(_HELD, " ") for line in lines]
    if total.mean_quality is not None:
        lines += [f"Mean quality {total.mean_quality:.1f}, mean length {total.mean_length or 0:.0f} nt."]
    return lines


def _file_lines(found: AnnotatedFiles) -> list[str]:
    rows = [["repertoire", "reads", "ok", "share", "productive"]]
    for file in found.files:
        part = file.summary
        ok = part.statuses["ok"]
        share = percent(ok, part.sequences)
        rows.append([file.repertoire_id, f"{part.reads:,}", f"{ok:,}", share, f"{part.productive:,}"])
    lines = aligned(rows[: _MOST_FILES + 1], "<>>>>")
    if len(rows) > _MOST_FILES + 1:
        lines += [f"  and {len(rows) - 1 - _MOST_FILES} more, listed in the summary"]
    return lines


def _remark_lines(found: AnnotatedFiles) -> list[str]:
    lines = []
    for name, meaning in _REMARKS.items():
        n = sum(int(file.input[name]) for file in found.files)
        if n:
            exact = name != "duplicate_names" or all(file.input[f"{name}_exact"] for file in found.files)
            lines += paragraph(f"{'' if exact else 'About '}{n:,} {meaning}.")
    for reason, reads in (found.umis.left_out if found.umis else {}).items():
        lines += paragraph(f"{reads:,} reads are of no molecule: {reason.replace('_', ' ')}.")
    if found.total.without_cell:
        lines += [f"{found.total.without_cell:,} of {found.total.sequences:,} sequences have no cell."]
    if found.clonotypes is not None:
        if found.clonotypes.low_quality:
            lines += paragraph(
                f"{found.clonotypes.joined:,} of {found.clonotypes.low_quality:,} rows of low quality are "
                "counted in the one clonotype that their good bases agree with."
            )
        for reason, rows in found.clonotypes.left_out.items():
            lines += paragraph(f"{rows:,} rows are in no clonotype: {reason.replace('_', ' ')}.")
        if found.clonotypes.satellites:
            lines += paragraph(
                f"{found.clonotypes.satellites:,} clonotypes with {found.clonotypes.satellite_count:,} "
                "sequences were taken for sequencing errors of another one and merged with it."
            )
    if found.resumed_blocks:
        lines += paragraph(f"{found.resumed_blocks:,} blocks were taken over from the stopped run.")
    return lines


def _output_lines(found: AnnotatedFiles) -> list[str]:
    rows = [["table", f"{found.total.rows:,} rows", str(found.output)]]
    if found.clonotypes is not None:
        rows.append(["clonotypes", f"{found.clonotypes.clonotypes:,} rows", str(found.further.clonotypes)])
    if found.new_alleles:
        candidates = sum(one.candidates.num_rows for one in found.new_alleles)
        rows.append(["alleles", f"{candidates:,} rows", str(found.further.new_alleles)])
    rows.append(["summary", "", str(found.summary_path)])
    return [f"{name:10s}  {told:>14s}  {path}" for name, told, path in rows]


def alleles_text(
    found: NewAlleles, output: str | os.PathLike[str], extended: str | os.PathLike[str] | None = None
) -> str:
    """What was found of new alleles, in lines that fit a terminal.

    `output` has the table of candidates, `extended` the germline set, if there is one.
    """
    lines = [
        f"{found.rows:,} rows, {found.clonotypes['V']:,} independent clonotypes",
        *_left_out(found),
        "",
    ]
    rows = found.candidates.to_pylist()
    new = [row for row in rows if row["status"] == "candidate"]
    others = [row for row in rows if row["status"] != "candidate"]
    lines += [plural(len(new), "new allele")]
    if new:
        lines += _table(new)
    if others:
        lines += ["", f"{len(others)} that look like artefacts", *_table(others)]
        given = {reason for row in others for reason in row["reasons"].split(",")}
        lines += [""]
        for reason, meaning in MEANINGS["allele_artefacts"].items():
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
        meaning = MEANINGS["no_allele_evidence"].get(key, key.replace("_", " "))
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


def sharing_text(found: SharingSummary, output: str | os.PathLike[str]) -> str:
    """The distribution of sharing, in lines that fit a terminal."""
    clonotypes = sum(found.distribution["clonotypes"].to_pylist())
    sizes = (found.rows, "row"), (len(found.subjects), "individual"), (clonotypes, "clonotype")
    lines = [", ".join(plural(*size) for size in sizes)]
    for reason, rows in found.left_out.items():
        lines += paragraph(f"{rows:,} rows are in no clonotype: {reason.replace('_', ' ', 1)}.")
    if clonotypes:
        lines += ["", *_distribution_lines(found)]
    if found.expected is not None:
        lines += ["", *_expected_lines(found.expected, clonotypes)]
    if found.differing is not None:
        more, tested = found.differing
        told = f"Of {tested:,} tested clonotypes {more:,} differ by condition (q_condition <= {_MOST_Q})."
        lines += ["", *paragraph(told)]
    return "\n".join([*lines, "", f"table  {os.fspath(output)}"]) + "\n"


def specificity_text(found: Specificities, output: str | os.PathLike[str]) -> str:
    """How many receptors of a query are near more clonotypes than by chance, in lines that fit a terminal."""
    rows = found.table.select(["occurrences", "q_value"]).to_pylist()
    near = sum(bool(row["occurrences"]) for row in rows)
    more = sum(row["q_value"] is not None and row["q_value"] <= _MOST_Q for row in rows)
    missing = sum(row["q_value"] is None for row in rows)
    whose = f"{plural(found.clonotypes, 'clonotype')} of {plural(found.subjects, 'individual')}"
    lines = [f"{plural(len(rows), 'receptor')}, {whose}"]
    lines += paragraph(
        f"Near a clonotype: {near:,}; near more than chance gives (q <= {_MOST_Q}), by a background of "
        f"{found.background:,} junctions: {more:,}."
    )
    if missing:
        lines += paragraph(f"Without a junction or a gene: {missing:,}.")
    return "\n".join([*lines, "", f"table  {os.fspath(output)}"]) + "\n"


def cells_text(found: PairedCells, output: str | os.PathLike[str]) -> str:
    """How the chains of cells pair, in lines that fit a terminal."""
    rows = [["cells", "share", "chains"]]
    for pairing, number in sorted(found.pairings.items(), key=lambda item: (-item[1], item[0])):
        rows.append([f"{number:,}", percent(number, found.cells), pairing])
    lines = paragraph(f"{found.rows:,} rows give {found.chains:,} chains of {found.cells:,} cells.")
    lines += ["", *aligned(rows, ">><")]
    reasons = {
        "no_cell_id": "without a cell",
        "no_locus": "without a locus or a J gene of one",
        "no_junction": "without a junction",
        "not_productive": "not said to be productive",
    }
    for reason, words in reasons.items():
        if number := found.left_out.get(reason, 0):
            lines += paragraph(f"Rows left out, {words}: {number:,}.")
    return "\n".join([*lines, "", f"cells  {os.fspath(output)}"]) + "\n"


def diversity_text(found: RepertoireDiversity, outputs: Mapping[str, str | os.PathLike[str] | None]) -> str:
    """Hill numbers of every subject as estimated, with intervals, in lines that fit a terminal."""
    rows = [["subject", "copies", "coverage", "clonotypes", "estimated (95 %)", "order 1", "order 2"]]
    table = found.diversity.to_pylist()
    for row in table[:_MOST_FILES]:
        estimate = f"{row['hill_0_estimate']:,.0f} ({row['hill_0_low']:,.0f}-{row['hill_0_high']:,.0f})"
        told = [f"{row['copies']:,}", f"{row['coverage']:.1%}", f"{row['clonotypes']:,}", estimate]
        rows.append([row["subject"], *told, f"{row['hill_1']:,.1f}", f"{row['hill_2']:,.1f}"])
    lines = aligned(rows, "<>>>>>>")
    if len(table) > _MOST_FILES:
        lines += [f"  and {len(table) - _MOST_FILES} more"]
    for name, copies in found.left_out.items():
        lines += paragraph(f"{name} is left out: it has {copies:,} copies.")
    if found.differences is not None:
        small = sum(row["q_value"] <= _MOST_Q for row in found.differences.to_pylist())
        lines += paragraph(
            f"{small:,} of {found.differences.num_rows:,} genes and pairs of genes differ (q <= {_MOST_Q})."
        )
    width = max(map(len, outputs))
    lines += [
        "",
        *(f"{name:{width}s}  {os.fspath(path)}" for name, path in outputs.items() if path is not None),
    ]
    return "\n".join(lines) + "\n"


def _distribution_lines(found: SharingSummary) -> list[str]:
    """A table of clonotypes by the number of individuals."""
    table = found.distribution.to_pylist()
    rows = [["individuals", "clonotypes"]]
    counted = bool(table) and "counted" in table[0]
    if counted:
        rows[0] += ["median count", "middle half of counts", "count 0"]
    for entry in table:
        row = [str(entry["subjects"]), f"{entry['clonotypes']:,}"]
        if counted:
            row += [large_number(entry["path_count_median"])]
            row += [f"{large_number(entry['path_count_q25'])} - {large_number(entry['path_count_q75'])}"]
            row += [f"{entry['zero_counts']:,}"]
        rows.append(row)
    return aligned(rows, ">" * len(rows[0]))


#: Rows of the table of what is expected, of which the last one has all that follow.
_MOST_LEVELS = 12


def _expected_lines(found: ExpectedSharing, clonotypes: int) -> list[str]:
    """Observed and expected numbers of clonotypes by the number of individuals."""
    table = found.table.to_pylist()
    tested = sum(entry["observed"] for entry in table)
    lines = paragraph(
        f"{tested:,} of {clonotypes:,} clonotypes are productive and can be made by the model; of these:"
    )
    rows = [["individuals", "observed", "expected", "ratio"]]
    levels = [(str(entry["subjects"]), [entry]) for entry in table[: _MOST_LEVELS - 1]]
    if table[_MOST_LEVELS - 1 :]:
        levels.append((f"{_MOST_LEVELS} or more", table[_MOST_LEVELS - 1 :]))
    for name, entries in levels:
        seen, expected = (sum(entry[what] for entry in entries) for what in ("observed", "expected"))
        ratio = f"{seen / expected:.3g}" if expected > 0 else "-"
        rows.append([name, f"{seen:,}", f"{expected:,.1f}" if expected >= 0.05 else f"{expected:.1e}", ratio])
    lines += aligned(rows, ">>>>")
    lines.append(f"In more than generation explains, with q_sharing <= {_MOST_Q}: {found.more_shared:,}")
    q = f"{found.selection:.3g}"
    if found.selection_interval is None:
        return [*lines, f"Selection factor {q}, as given."]
    low, high = found.selection_interval
    return [*lines, *paragraph(f"Selection factor {q}, fitted (95 % interval {low:.3g} to {high:.3g}).")]
