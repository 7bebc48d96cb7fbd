"""Path counts as text: the summary of a run, and an explanation of one junction.

An explanation has the matches drawn under the junction, the counts, and what limits them.
"""

from __future__ import annotations

from collections.abc import Sequence

from plait.reports.plain_text import WIDTH, aligned, blamed_lines, paragraph, percent, run_text, share_table
from plait.run.rows import FinishedRun
from plait.vdj.calls import STATUS_MEANINGS
from plait.vdj.count_files import CountSummary
from plait.vdj.explanation import DPaths, DPlace, EndMatch, Explanation, Lifted

#: Genes with this share of zero counts, over so many rows, are listed; at most so many of them.
_NOTABLE = 0.05
_FEWEST_ROWS = 20
_MOST_GENES = 12


def count_text(counted: FinishedRun[CountSummary], *, seconds: float) -> str:
    """What came of a run, in lines that fit a terminal."""
    summary = counted.summary
    if not summary.rows:
        told = paragraph("The input has a header and no rows; so has the output.")
        return run_text(counted, told, seconds=seconds)
    statuses = [(status, summary.statuses[status]) for status in STATUS_MEANINGS if summary.statuses[status]]
    lines = ["", *share_table(("rows", "status"), statuses, STATUS_MEANINGS, summary.rows)]
    lines += [*blamed_lines(summary.blamed.as_dict()), "", *_zero_lines(summary, counted.remarks)]
    return run_text(counted, lines, seconds=seconds)


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
    if summary.whole_table_explained or not summary.zeros:
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


_BLOCK = 60
_MOST_PLACES = 4
#: An end that matches less than this was hardly ever trimmed so far; the call or the anchor is in doubt.
_SHORT_MATCH = 6


def explanation_text(told: Explanation, *, guessed: bool = False) -> str:
    """All of an explanation, in lines that fit a terminal.

    `guessed`: nobody named the germline set, the calls told which one is meant.
    """
    lines = _title(told)
    if guessed:
        lines += paragraph(f"Germline set {told.germline}: the one bundled set that has both calls.")
    lines += ["", *_drawing(told), "", *_matches(told), "", *_paths(told), ""]
    lines += _why_zero(told) if told.path_count == 0 else _limits(told)
    return "\n".join(lines) + "\n"


def _title(told: Explanation) -> list[str]:
    model = told.model
    limits = f"pi {model.pi}, nu {model.nu}"
    if model.nu_vd is not None or model.nu_dj is not None:
        vd, dj = (model.nu if nu is None else nu for nu in (model.nu_vd, model.nu_dj))
        limits = f"pi {model.pi}, nu {vd} between V and D, {dj} between D and J"
    strands = "1 strand" if model.strands == 1 else "2 strands"
    return paragraph(
        f"{told.v.allele} and {told.j.allele} of {told.germline}; model dp2, {strands}, {limits}"
    )


def _drawing(told: Explanation) -> list[str]:
    """The junction in blocks, and under it every match where it lies."""
    size = len(told.junction)
    # Numbers that end over every tenth nucleotide, counted from 1.
    ruler = "".join(f"{ten:>10}" for ten in range(10, size + 1, 10))
    rows = [("", ruler), ("junction", told.junction)]
    rows += _end_rows(told.v, told.junction)
    for d in told.d:
        if d.allowed and d.match.length:
            rows += _d_rows(d, size)
    rows += _end_rows(told.j, told.junction)
    rows.append(("parts", _parts(told)))
    margin = max(len(label) for label, _ in rows) + 2
    lines = []
    block = max(10, min(_BLOCK, (WIDTH - margin) // 10 * 10))
    for start in range(0, size, block):
        if start:
            lines.append("")
        for label, text in rows:
            piece = text[start : start + block]
            if label in ("junction", "parts") or piece.strip():
                lines.append(f"{label:<{margin}}{piece}".rstrip())
    kinds = "V, J germline; v, j palindromic (P)"
    if told.chain != "vj":
        kinds = "V, D, J germline; v, d, j palindromic (P)"
    legend = f"parts: {kinds}; N random; + where two reach. Lower case in the alleles: palindromic."
    return [*lines, "", *paragraph(f"{legend} | match, x first difference.")]


def _end_rows(match: EndMatch, junction: str) -> list[tuple[str, str]]:
    size = len(junction)
    first, last = max(0, match.start), min(size, match.start + len(match.sequence))
    letters = " " * first + match.sequence[first - match.start : last - match.start]
    marks = [" "] * size
    reached = range(match.matched) if match.start == 0 else range(size - match.matched, size)
    for position in reached:
        marks[position] = "|"
    if match.mismatch is not None:
        marks[match.mismatch] = "x"
    return [(match.allele, letters.ljust(size)), ("", "".join(marks))]


def _d_rows(d: DPaths, size: int) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for place in d.match.places[:_MOST_PLACES]:
        text = " " * place.junction_start + d.match.piece(place)
        rows.append(("" if rows else d.match.allele, text.ljust(size)))
    return rows


def _drawn_d(told: Explanation) -> tuple[DPaths, DPlace] | None:
    """The match that stands for D in the row of parts: the leftmost of the longest ones."""
    allowed = [d for d in told.d if d.allowed and d.match.length == told.longest_d_match > 0]
    pairs = [(d, place) for d in allowed for place in d.match.places]
    return min(pairs, key=lambda pair: pair[1].junction_start, default=None)


def _parts(told: Explanation) -> str:
    size = len(told.junction)
    parts = ["N"] * size

    def claim(position: int, letter: str) -> None:
        parts[position] = letter if parts[position] == "N" else "+"

    for k in range(told.v.matched):
        claim(k, "V" if k < told.v.germline_length else "v")
    for k in range(told.j.matched):
        claim(size - 1 - k, "J" if k < told.j.germline_length else "j")
    drawn = _drawn_d(told)
    if drawn is not None:
        d, place = drawn
        for k, symbol in enumerate(d.match.piece(place)):
            claim(place.junction_start + k, "D" if symbol.isupper() else "d")
    return "".join(parts)


def _matches(told: Explanation) -> list[str]:
    rows = [["V", told.v.allele, _end_text(told.v, told)], ["J", told.j.allele, _end_text(told.j, told)]]
    for d in told.d:
        rows.insert(-1, ["D", d.match.allele, _d_text(d)])
    lines = aligned(rows, "<<<", indent=0)
    gap = told.vj_gap
    if gap < 0:
        return [*lines, f"V and J matches overlap by {-gap} nt."]
    return [*lines, f"V and J matches leave a gap of {gap} nt."]


def _end_text(match: EndMatch, told: Explanation) -> str:
    germline = match.matched - match.palindromic
    text = f"{germline} of {match.germline_length} germline nt match"
    if match.palindromic:
        text += f", and {match.palindromic} P nt"
    if match.mismatch is not None:
        junction, allele = told.junction[match.mismatch], match.symbol_at(match.mismatch)
        which = "germline" if allele.isupper() else "P"
        text += f"; nucleotide {match.mismatch + 1} differs: junction {junction}, {which} {allele.upper()}"
    return text


def _d_text(d: DPaths) -> str:
    if not d.allowed:
        return "may not join this J"
    if not d.match.length:
        return "no match"
    count = len(d.match.places)
    places = ", ".join(
        f"{p.junction_start + 1}-{p.junction_start + d.match.length}" for p in d.match.places[:_MOST_PLACES]
    )
    more = f" and {count - _MOST_PLACES} more places" if count > _MOST_PLACES else ""
    return f"longest match {d.match.length} nt, at {places}{more}"


def _paths(told: Explanation) -> list[str]:
    rows = [["paths", "all", "D of length 0"]]
    for d in told.d:
        if d.allowed:
            rows.append([d.match.allele, f"{d.paths:,}", f"{d.zero_d_paths:,}"])
    if told.chain != "vj":
        rows.append(["without D", f"{told.no_d_paths:,}", ""])
    rows.append(["path count", f"{told.path_count:,}", ""])
    if told.chain == "vj":
        rows = [row[:2] for row in rows]
    lines = aligned(rows, "<>>"[: len(rows[0])], indent=0)
    if told.chain == "vdj":
        return [*lines, "The path count is the sum over the D alleles; paths without D are extra."]
    if told.chain == "vddj":
        return [*lines, "The path count is the sum over pairs of D alleles; the rows above are extra."]
    return lines


def _limit_name(limit: str, told: Explanation) -> str:
    names = {
        "nu": "N nucleotides between V and J",
        "nu_vd": "N nucleotides between V and D",
        "nu_dj": "N nucleotides between D and J",
        "v_mismatch": f"the first difference from {told.v.allele}",
        "j_mismatch": f"the first difference from {told.j.allele}",
    }
    return names[limit]


def _change(lifted: Lifted) -> str:
    if isinstance(lifted.before, str):
        return f"{lifted.before.upper()} taken for any base"
    return f"{lifted.before} -> {lifted.after}"


def _table_of_limits(told: Explanation) -> list[str]:
    rows = [["One limit lifted at a time", "", "path count", "times"]]
    for lifted in told.lifted:
        times = f"{lifted.path_count / told.path_count:.3g}" if told.path_count else ""
        rows.append([_limit_name(lifted.limit, told), _change(lifted), f"{lifted.path_count:,}", times])
    kept = 4 if told.path_count else 3
    return aligned([row[:kept] for row in rows], "<<>>"[:kept], indent=0) if told.lifted else []


def _limits(told: Explanation) -> list[str]:
    best = told.most_constraining
    if best is None:
        return paragraph("No limit holds the count down: lifting any one of them adds no path.")
    times = best.path_count / told.path_count
    return [
        *_table_of_limits(told),
        "",
        *paragraph(
            f"The most constraining step: {_limit_name(best.limit, told)}; without that limit there would be "
            f"{times:.3g} times as many paths."
        ),
    ]


def _why_zero(told: Explanation) -> list[str]:
    lines = paragraph(f"Why the count is 0: {' '.join(_gap_sentences(told))}")
    for match, limit in ((told.v, "v_mismatch"), (told.j, "j_mismatch")):
        lines += _doubt(match, limit, told)
    table = _table_of_limits(told)
    if table:
        lines += ["", *table]
    best = told.most_constraining
    if best is None:
        closing = "No limit gives a count above 0 when it is lifted alone."
    else:
        closing = f"The most constraining step: {_limit_name(best.limit, told)}."
        if best.smallest is not None:
            closing += f" Lifted alone, {best.smallest} is the smallest limit with a count above 0."
    return [*lines, "", *paragraph(closing)]


def _gap_sentences(told: Explanation) -> list[str]:
    model, gap, reach = told.model, told.vj_gap, told.longest_d_match
    vd, dj = (model.nu if nu is None else nu for nu in (model.nu_vd, model.nu_dj))
    found = [f"V and J leave a gap of {gap} nt."]
    if told.chain == "vj":
        found.append(f"The one insertion would have to fill it, and nu allows {max(vd, dj)}.")
    elif gap - reach > vd + dj:
        found.append(
            f"The longest D match covers {reach}; N1 and N2 would have to fill {gap - reach}, and nu "
            f"allows {vd} + {dj}."
        )
    else:
        found.append(
            f"The longest D match covers {reach}, but no D match lies so that at most {vd} nt remain before "
            f"it and {dj} behind it."
        )
    for limit, name, smallest in (("nu", model.nu, told.smallest_nu), ("pi", model.pi, told.smallest_pi)):
        if smallest is not None:
            found.append(f"Smallest {limit} with a count above 0: {smallest} (now {name}).")
        else:
            found.append(f"A larger {limit} alone does not help.")
    return found


def _doubt(match: EndMatch, limit: str, told: Explanation) -> list[str]:
    """A remark where an end matches so badly that the set rather than biology is to blame."""
    forgiven = next((item.path_count for item in told.lifted if item.limit == limit), 0)
    if match.complete or (match.matched >= _SHORT_MATCH and not forgiven):
        return []
    assert match.mismatch is not None
    return paragraph(
        f"{match.allele} already differs at nucleotide {match.mismatch + 1} of {len(told.junction)}: "
        f"junction {told.junction[match.mismatch]}, germline {match.symbol_at(match.mismatch).upper()}. "
        "A wrong anchor, or an allele that the germline set lacks, looks like this."
    )
