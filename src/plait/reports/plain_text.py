"""Plain text that is readable on a terminal of 80 columns, without colour."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait.run.rows import FinishedRun

#: Columns of the narrowest terminal that is written for.
WIDTH = 80
_MOST_CALLS = 6


def as_options(text: str) -> str:
    """What to do about a device, worded for those who gave it as an option.

    >>> as_options("update the driver, or use device='cpu'")
    'update the driver, or use --device cpu'
    """
    return re.sub(r"\bdevice='([^']+)'", r"--device \1", text)


def aligned(rows: Sequence[Sequence[str]], alignment: str, *, indent: int = 2) -> list[str]:
    """Lines of a table whose columns are as wide as their widest cell; all rows have one length.

    `alignment` has one ``<`` or ``>`` per column. A last column that is aligned left is wrapped where it
    would leave the terminal.
    """
    widths = [max(len(row[k]) for row in rows) for k in range(len(alignment))]
    last = len(alignment) - 1
    before = indent + sum(widths[:last]) + 2 * last
    room = max(WIDTH - before, 20) if alignment[last] == "<" else widths[last]
    lines = []
    for row in rows:
        parts = [f"{cell:{side}{w}}" for cell, side, w in zip(row, alignment, widths, strict=True)][:last]
        final = row[last].rjust(widths[last]) if alignment[last] == ">" else row[last]
        for k, piece in enumerate(textwrap.wrap(final, room, drop_whitespace=False) or [""]):
            start = " " * indent + "  ".join(parts) if k == 0 else " " * (before - 2)
            lines.append(f"{start}  {piece}".rstrip() if last else f"{' ' * indent}{piece}".rstrip())
    return lines


def paragraph(text: str, *, indent: int = 0) -> list[str]:
    """Lines of running text; a word that is wider than the terminal stays whole."""
    space = " " * indent
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=space,
        subsequent_indent=space,
        break_long_words=False,
        break_on_hyphens=False,
    )


def percent(part: int, whole: int) -> str:
    """A share in percent that is 0 or 100 only where it is exactly that.

    >>> percent(1, 3), percent(0, 3), percent(1, 100_000), percent(99_999, 100_000)
    ('33.3 %', '0 %', '< 0.1 %', '> 99.9 %')
    """
    if not whole or part in (0, whole):
        return "100 %" if whole and part == whole else "0 %"
    share = 100 * part / whole
    if share < 0.05:
        return "< 0.1 %"
    return "> 99.9 %" if share > 99.95 else f"{share:.1f} %"


def share_table(
    head: tuple[str, str], counts: Iterable[tuple[str, int]], meanings: Mapping[str, str], whole: int
) -> list[str]:
    """Lines of a table of numbers by status, with their share and what they mean in plain words.

    `head` is what is counted, and what it is counted by.
    """
    rows = [[head[0], "share", head[1], ""]]
    rows += [[f"{n:,}", percent(n, whole), name, meanings[name]] for name, n in counts]
    return aligned(rows, ">><<")


def blamed_lines(blamed: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The calls behind statuses that blame one: rows by status and call, the most frequent call first."""
    lines: list[str] = []
    for status, names in blamed.items():
        shown = [f"{name} {n:,}" for name, n in list(names.items())[:_MOST_CALLS]]
        more = ", ..." if len(names) > _MOST_CALLS else ""
        lines += paragraph(f"{status}: {', '.join(shown)}{more}", indent=2)
    return lines


def plural(n: int, word: str) -> str:
    """So many of something.

    >>> plural(1, "row"), plural(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def large_number(value: float | None) -> str:
    """A path count; a hyphen where there is none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value < 1e12 else f"{value:.3g}"


def rate_text(n: int, seconds: float, unit: str = " rows/s") -> str:
    """How long something took, and how many of it that is a second."""
    rate = f", {n / seconds:,.0f}{unit}" if n and seconds > 0 else ""
    return f"in {seconds:.1f} s{rate}"


def run_text(made: FinishedRun[Any], told: Sequence[str], *, seconds: float) -> str:
    """What came of a run over rows: what is `told` of them, what a user should know, and where files are."""
    lines = [f"{plural(made.rows, 'row')} {rate_text(made.rows, seconds)}", *told, ""]
    for name, new in made.renamed.items():
        lines += paragraph(f"The input column {name} is now {new}: {name} is a result.")
    if made.blank_lines:
        lines += paragraph(f"{made.blank_lines:,} blank lines of the input were passed over.")
    if made.resumed_blocks:
        lines += paragraph(f"{made.resumed_blocks:,} blocks were taken over from the stopped run.")
    return "\n".join([*lines, f"table    {made.output}", f"summary  {made.summary_path}"]) + "\n"
