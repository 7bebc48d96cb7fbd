"""The summary of a counting run as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from plait.reports.plain_text import aligned, paragraph, percent
from plait.vdj.blamed_calls import BLAMED
from plait.vdj.count_files import CountedFiles
from plait.vdj.results import STATUS_MEANINGS
from plait.vdj.summary import CountSummary

__all__ = ["MEANINGS", "blamed_lines", "count_text"]

#: Every status in plain words.
MEANINGS = STATUS_MEANINGS
#: Genes with this share of zero counts, over so many rows, are listed; at most so many of them.
_NOTABLE = 0.05
_FEWEST_ROWS = 20
_MOST_GENES = 12
_MOST_CALLS = 6


def count_text(counted: CountedFiles, *, seconds: float) -> str:
    """What came of a run, in lines that fit a terminal.

    Parameters
    ----------
    counted
        The run.
    seconds
        How long it took.
    """
    summary = counted.summary
    rate = f", {summary.rows / seconds:,.0f} rows/s" if summary.rows and seconds > 0 else ""
    lines = [f"{summary.rows:,} rows in {seconds:.1f} s{rate}"]
    if summary.rows:
        lines += ["", *_status_lines(summary), "", *_zero_lines(summary, counted.remarks)]
    else:
        lines += paragraph("The input has a header and no rows; so has the output.")
    lines += [""]
    for name, new in counted.renamed.items():
        lines += paragraph(f"The input column {name} is now {new}: {name} is a result.")
    if counted.blank_lines:
        lines += paragraph(f"{counted.blank_lines:,} blank lines of the input were passed over.")
    if counted.resumed_blocks:
        lines += paragraph(f"{counted.resumed_blocks:,} blocks were taken over from the stopped run.")
    lines += [f"table    {counted.output}", f"summary  {counted.summary_path}"]
    return "\n".join(lines) + "\n"


def _status_lines(summary: CountSummary) -> list[str]:
    rows = [["rows", "share", "status", ""]]
    for status, meaning in MEANINGS.items():
        n = summary.statuses[status]
        if n:
            rows.append([f"{n:,}", percent(n, summary.rows), status, meaning])
    lines = aligned(rows, ">><<")
    return lines + blamed_lines(summary.blamed_calls)


def blamed_lines(calls_of: Callable[[str], Mapping[str, int]]) -> list[str]:
    """The calls behind statuses that blame a call.

    Parameters
    ----------
    calls_of
        From a status to rows of each call, the most frequent first.
    """
    lines: list[str] = []
    for status in BLAMED:
        names = calls_of(status)
        if names:
            shown = [f"{name} {n:,}" for name, n in list(names.items())[:_MOST_CALLS]]
            more = ", ..." if len(names) > _MOST_CALLS else ""
            lines += paragraph(f"{status}: {', '.join(shown)}{more}", indent=2)
    return lines


def _zero_lines(summary: CountSummary, remarks: Sequence[str]) -> list[str]:
    lines: list[str] = []
    if summary.counted:
        n, zeros = summary.counted, summary.zeros
        lines += paragraph(
            f"{zeros:,} of {n:,} counted rows ({percent(zeros, n)}) have count 0: no path within the limits."
        )
    else:
        lines += ["No row could be counted."]
    for remark in remarks:
        lines += paragraph(remark, indent=2)
    # What concerns the whole table comes before genes are blamed.
    if summary.whole_table_explained or not summary.counted:
        return lines
    return lines + _gene_lines(summary)


def _gene_lines(summary: CountSummary) -> list[str]:
    suspects = set(summary.suspicious())
    often = 2 * summary.zeros >= summary.counted
    notable = [
        (gene, found)
        for segment in "vj"
        for gene, found in summary.genes(segment).items()
        if gene in suspects or (not often and found.rows >= _FEWEST_ROWS and found.share >= _NOTABLE)
    ]
    notable.sort(key=lambda item: (-item[1].share, item[0]))
    if not notable:
        return [] if often else ["No gene has a notable share of them."]
    lines = ["Genes with a notable share:"]
    rows = [["gene", "rows", "zero", "share", ""]]
    for gene, found in notable[:_MOST_GENES]:
        remark = "wrong anchor or missing allele?" if gene in suspects else ""
        rows.append([gene, f"{found.rows:,}", f"{found.zeros:,}", percent(found.zeros, found.rows), remark])
    lines += aligned(rows, "<>>><")
    if len(notable) > _MOST_GENES:
        lines += [f"  and {len(notable) - _MOST_GENES} more, listed in the summary file"]
    if suspects:
        named = ", ".join(sorted(suspects))
        lines += paragraph(
            f"Check {named}: a gene that is so often 0 has a wrong anchor (plait germline show, --anchors), "
            "or its allele is missing from the germline set."
        )
    return lines
