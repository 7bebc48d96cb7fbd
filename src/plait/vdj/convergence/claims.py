"""What an interval allows one to say, how figures are put in words, and small tables of them as text."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Final

from plait.errors import FormatError
from plait.formats.atomic import AtomicFile, output_errors

_MISSING = frozenset(("", "nan", "NaN"))


def write_table(
    path: str | os.PathLike[str], columns: Sequence[str], rows: Iterable[Mapping[str, object]]
) -> None:
    """Write a table: a header, then a line for each row; the file appears when it is complete.

    Numbers that are not whole are rounded to ten digits, so that they are the same text on all machines. What
    is missing, None or NaN, is an empty cell. Tabs and line ends within a text become blanks. FormatError if
    it cannot be written.
    """
    with AtomicFile(path, durable=False) as file, output_errors(path):
        file.stream.write(_line(columns))
        for row in rows:
            file.stream.write(_line([_cell(row.get(name)) for name in columns]))


def read_table(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Rows of a table that `write_table` wrote, every cell as text by column.

    FormatError if a line has more or fewer cells than the header.
    """
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    header = lines[0].split("\t")
    rows = []
    for place, line in enumerate(lines[1:-1], 2):
        cells = line.split("\t")
        if len(cells) != len(header):
            raise FormatError(
                path, line=place, found=f"{len(cells)} cells", expected=f"{len(header)}, as in the header"
            )
        rows.append(dict(zip(header, cells, strict=True)))
    return rows


def number(value: object) -> float | None:
    """A number from a cell or value; None for None, NaN or an empty text, ValueError for other text."""
    if value is None or (isinstance(value, str) and value in _MISSING):
        return None
    found = float(value)  # type: ignore[arg-type]
    return None if math.isnan(found) else found


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return _float_text(float(value))
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, Decimal):
        return str(value)
    return " ".join(str(value).split()) if isinstance(value, str) else str(value)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return ""
    if value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return f"{value:.10g}"


def _line(cells: Sequence[str]) -> bytes:
    return ("\t".join(cells) + "\n").encode("utf-8")


#: Correlations within this distance of zero are called weak.
WEAK: Final = 0.1
#: Clonotypes, shared and not shared, below which a headline says that they are few.
_ENOUGH: Final = 100


class Verdict(Enum):
    """Where an interval lies: above, below or around zero.

    ``AROUND``: zero is in it or at its end, so no sign can be told. ``UNKNOWN``: there is no interval.
    """

    ABOVE = "above"
    BELOW = "below"
    AROUND = "around"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its interval; None where there is none, or where the number of rows is not known."""

    value: float | None
    low: float | None
    high: float | None
    n: int | None = None

    @property
    def known(self) -> bool:
        """Whether there is an estimate with an interval."""
        return self.value is not None and self.low is not None and self.high is not None

    def less(self, other: Estimate) -> Estimate:
        """The difference to another estimate, with an interval that is wide enough whatever ties the two.

        The standard error of a difference is at most the sum of the standard errors. Both have the same
        confidence.
        """
        if not (self.known and other.known):
            return Estimate(None, None, None, self.n)
        assert self.value is not None and self.low is not None and self.high is not None
        assert other.value is not None and other.low is not None and other.high is not None
        value = self.value - other.value
        down = (self.value - self.low) + (other.high - other.value)
        up = (self.high - self.value) + (other.value - other.low)
        return Estimate(value, value - down, value + up, self.n)

    def named(self, name: str) -> dict[str, float | None]:
        """Its figures by name, for study.json."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}


def estimate_of(row: Mapping[str, Any], value: str, low: str, high: str, n: str = "n") -> Estimate:
    """An estimate from a row of a table, of numbers or text; columns that are not there are missing."""
    rows = number(row.get(n))
    return Estimate(
        number(row.get(value)),
        number(row.get(low)),
        number(row.get(high)),
        None if rows is None else int(rows),
    )


def verdict(estimate: Estimate) -> Verdict:
    """What the interval of an estimate tells of its sign."""
    if not estimate.known:
        return Verdict.UNKNOWN
    assert estimate.low is not None and estimate.high is not None
    if estimate.low > 0:
        return Verdict.ABOVE
    return Verdict.BELOW if estimate.high < 0 else Verdict.AROUND


def strength(estimate: Estimate) -> str:
    """How strong a correlation is, as far as the whole interval allows a word; empty where it does not."""
    if not estimate.known:
        return ""
    assert estimate.low is not None and estimate.high is not None
    return "weak" if max(abs(estimate.low), abs(estimate.high)) < WEAK else ""


def answer(name: str, headline: str, sentences: Iterable[str], figures: Mapping[str, Any]) -> dict[str, Any]:
    """An answer, as study.json holds it; empty sentences are left out."""
    text = " ".join(sentence for sentence in sentences if sentence)
    return {"id": name, "headline": headline, "text": text, "figures": dict(figures)}


def as_text(value: float) -> str:
    """A figure: three decimals, or two digits where these would say little."""
    return f"{value:.3f}" if abs(value) >= 0.0095 or value == 0 else f"{value:.2g}"


def percent(share: float) -> str:
    """A share (1 for all) in per cent, with two digits or more."""
    value = 100 * share
    if value == 0:
        return "0 %"
    return f"{value:.0f} %" if abs(value) >= 9.95 else f"{value:.2g} %"


def whole(n: float) -> str:
    """A number of things."""
    return f"{int(n):,}"


def interval_text(estimate: Estimate, unit: str = "", *, confidence: float = 0.95) -> str:
    """Figures of an estimate, for brackets; `unit` is what n counts."""
    if estimate.value is None:
        return f"no estimate{_n_text(estimate, unit)}"
    if not estimate.known:
        return f"{as_text(estimate.value)}, no interval{_n_text(estimate, unit)}"
    assert estimate.low is not None and estimate.high is not None
    ends = f"{as_text(estimate.low)} to {as_text(estimate.high)}"
    return f"{as_text(estimate.value)}, {100 * confidence:g} % interval {ends}{_n_text(estimate, unit)}"


def ends_text(estimate: Estimate) -> str:
    """Figures of an estimate without more words: ``0.123 (0.100 to 0.146)``, the interval if there is one."""
    value = as_text(estimate.value or 0.0)
    if not estimate.known:
        return value
    assert estimate.low is not None and estimate.high is not None
    return f"{value} ({as_text(estimate.low)} to {as_text(estimate.high)})"


def few_text(shared: float | None, clonotypes: float | None, what: str = "") -> str:
    """Of which kind, shared or not, there are few clonotypes, and how many; empty if there are enough."""
    if shared is None or clonotypes is None or min(shared, clonotypes - shared) >= _ENOUGH:
        return ""
    fewer = min(shared, clonotypes - shared)
    kind = "shared" if shared == fewer else "not shared"
    noun, verb = ("clonotype", "is") if fewer == 1 else ("clonotypes", "are")
    return f"only {whole(fewer)} {noun}{what} {verb} {kind}"


def few_sentence(few: str) -> str:
    """What few clonotypes mean, from `few_text`."""
    return f"{few[0].upper()}{few[1:]}, too few to lean on these figures." if few else ""


def _n_text(estimate: Estimate, unit: str) -> str:
    return "" if estimate.n is None else f", n = {whole(estimate.n)}{' ' if unit else ''}{unit}"
