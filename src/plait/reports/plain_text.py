"""Plain text that is readable on a terminal of 80 columns, without colour."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

#: Columns of the narrowest terminal that is written for.
WIDTH = 80


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
